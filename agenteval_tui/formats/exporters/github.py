"""What GitHub Actions shows of an execution: annotations at the lines of tests, and the page of the job's summary.

Workflow commands and their escapes: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from agenteval_tui.analysis.quarantine_gate import GatedRuns
from agenteval_tui.analysis.regression_gate import BaselineResult
from agenteval_tui.analysis.test_gates import TestGates
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.exporters.report_figures import BAD
from agenteval_tui.formats.exporters.report_md import report_md
from agenteval_tui.grading.sentences import not_made_in_runs_sentence, not_made_sentence
from agenteval_tui.history.records import ExecutionRow, RunRow, checks_not_made
from agenteval_tui.history.store import Store
from agenteval_tui.views.baseline import fell_text, notice_lines
from agenteval_tui.views.failure import reasons_text
from agenteval_tui.views.gates import excuse_text, verdict_text

MOST = 10
"""GitHub shows this many errors of a step, and drops the rest silently."""
SUMMARY_BYTES = 1_000_000
"""A step's summary may have 1 MiB; one that is larger is not shown at all."""
SUMMARY_FAILURES = 50

Place = tuple[str, int]


def annotation_lines(
    runs: list[RunRow],
    place_of: Callable[[RunRow], Place | None],
    regressed: Mapping[tuple[str, str], str] | None = None,
    held: GatedRuns | None = None,
    gates: TestGates | None = None,
) -> Iterator[str]:
    """A workflow command for each test that did not pass, or passed without all of its checks, each a line; `place_of`
    says file and line of a test.

    Tests in `regressed` (by suite key and id: `5/5, now 2/5`) come first, and say so. The repetitions of a test are one
    annotation. The last one says how many more there are. What `held` or `gates` excuse is a notice, and no error.
    """
    held, gates = held or GatedRuns(), gates or TestGates()
    excused = held.excused | gates.excused
    tests = _by_test(run for run in runs if run.status in BAD and run.id not in excused)
    worse = regressed or {}
    # GitHub keeps the first ones: those that got worse must be among them.
    ordered = sorted(tests.items(), key=lambda entry: entry[0] not in worse)
    for number, (key, alike) in enumerate(ordered):
        remaining = len(tests) - number
        # The last place is for how many others there are: GitHub would drop them without a word.
        if number == MOST - 1 and remaining > 1:
            yield command("error", f"{remaining} more tests did not pass", title="agenteval")
            break
        first = alike[0]
        rows = [replace(run, why=held.whys.get(run.id) or run.why) for run in alike]
        why = one_line(reasons_text(rows), 1000)
        since = f"regressed since the baseline ({worse[key]}); " if key in worse else ""
        missing = f"; {sentence}" if (sentence := not_made_in_runs_sentence(checks_not_made(alike))) else ""
        verdicts = dict.fromkeys(verdict for run in alike if (verdict := gates.missed_by(run)) is not None)
        missed = "".join(f"{one_line(verdict_text(verdict), 300)}\n" for verdict in verdicts)
        message = f"{since}{missed}{_statuses(alike)}: {why}{missing}\nagenteval why {first.id}"
        yield command("error", message, place=place_of(first), title=one_line(first.test_name, 200))
    yield from _warnings(runs, place_of)
    yield from _notices(runs, place_of, held, gates)


def _warnings(runs: list[RunRow], place_of: Callable[[RunRow], Place | None]) -> Iterator[str]:
    """The tests that passed although a check of theirs could not run."""
    tests = _by_test(run for run in runs if run.status == "passed" and run.checks_not_made)
    for number, alike in enumerate(tests.values()):
        remaining = len(tests) - number
        if number == MOST - 1 and remaining > 1:
            yield command("warning", f"checks of {remaining} more tests could not run", title="agenteval")
            break
        first = alike[0]
        # The reason of a run that passed is which of its checks could not run; an imported one may have none.
        rows = [replace(run, why=run.why or not_made_sentence(run.checks_not_made)) for run in alike]
        why = one_line(reasons_text(rows), 1000)
        whole = f" ({not_made_in_runs_sentence(checks_not_made(alike))})" if len(alike) > 1 else ""
        message = f"passed, but {why}{whole}\nagenteval why {first.id}"
        yield command("warning", message, place=place_of(first), title=one_line(first.test_name, 200))


def _notices(
    runs: list[RunRow], place_of: Callable[[RunRow], Place | None], held: GatedRuns, gates: TestGates
) -> Iterator[str]:
    excused = held.excused | gates.excused
    for alike in list(_by_test(run for run in runs if run.id in excused).values())[:MOST]:
        first = alike[0]
        why = one_line(reasons_text(alike), 1000)
        excuses = dict.fromkeys(excuse_text(run, held, gates) for run in alike)
        excuse = one_line("; ".join(excuses), 300)
        message = f"{excuse}; {_statuses(alike)}: {why}\nagenteval why {first.id}"
        yield command("notice", message, place=place_of(first), title=one_line(first.test_name, 200))


def _by_test(runs: Iterable[RunRow]) -> dict[tuple[str, str], list[RunRow]]:
    return grouped(((run.suite_key, run.test_id), run) for run in runs)


def _statuses(runs: Sequence[RunRow]) -> str:
    """How these runs ended: `failed`, `failed (3 runs)`, `failed (2 runs), error (1 run)`."""
    if len(runs) == 1:
        return _words(runs[0].status)
    ends = Counter(_words(run.status) for run in runs).most_common()
    return ", ".join(f"{status} ({count(n, 'run')})" for status, n in ends)


def _words(status: str) -> str:
    return "to be reviewed" if status == "needs_review" else status


def baseline_annotations(against: BaselineResult) -> Iterator[str]:
    """What an execution says against its baseline beside single tests: that all together fell, and what is missing."""
    if fell := fell_text(against):
        yield command("error", fell, title="agenteval")
    for line in notice_lines(against.notices):
        yield command("notice", one_line(line, 1000), title="agenteval")


def command(kind: str, message: str, *, place: Place | None = None, title: str = "") -> str:
    """`::error file=...,line=...,title=...::message`, with everything escaped that has a meaning there."""
    properties_given = [("file", place[0]), ("line", str(place[1]))] if place is not None else []
    properties_given += [("title", title)] if title else []
    properties = ",".join(f"{name}={_property(value)}" for name, value in properties_given)
    return f"::{kind}{' ' if properties else ''}{properties}::{_data(displayable(message))}"


def summary_md(store: Store, execution: ExecutionRow) -> str:
    """The report, as large as a step's summary may be."""
    # GitHub drops a summary that is too large as a whole: rather fewer failures than none.
    for most in (SUMMARY_FAILURES, 10, 1):
        text = report_md(store, execution, most=most)
        if len(text.encode("utf-8", "replace")) < SUMMARY_BYTES:
            return text
    return f"The report of execution {one_line(execution.id)} is too large for this page.\n"


def _data(text: str) -> str:
    # The sign of escapes first, or it would be escaped twice.
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(displayable(text)).replace(":", "%3A").replace(",", "%2C")
