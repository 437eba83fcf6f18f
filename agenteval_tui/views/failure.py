"""Why a test fails, in short: each reason with how many of its runs give it, the expected and the actual value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar
from unicodedata import normalize

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.display import one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import cut
from agenteval_tui.grading.explain import why
from agenteval_tui.grading.results import CriterionResult, Evidence, Outcome
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.comparison_text import NOTHING
from agenteval_tui.views.evidence_comparison import comparisons, leaves

REASONS = 3  # that are told apart
MOST_TESTS = 50  # failed tests of which the clearest failure is looked for
_VALUE = 200  # characters of a value

_WITHOUT_REASON = {
    "needs_review": "it waits for a person",
    "skipped": "it was not needed",
    "cancelled": "it was cancelled",
    "queued": "it never started",
}

T = TypeVar("T")


class Miss(Struct, frozen=True):
    """What a failed run missed first. `what` says where ("get_order order_id"); `expected` and `got` are JSON or texts
    in quotes, `at` the first character of `got` that differs, and `note` what the values alone do not show ("would
    match ignoring case"); where nothing can be compared, `sentence` is the reason."""

    criterion: str
    what: str = ""
    expected: str = ""
    got: str = ""
    sentence: str = ""
    note: str = ""
    at: int = 0

    @property
    def looks_equal(self) -> bool:
        """Whether the values look the same on one line, so that only the note tells them apart."""
        expected, actual = (normalize("NFC", one_line(side)) for side in (self.expected, self.got))
        return bool(self.note) and expected == actual


class Failure(Struct, frozen=True):
    """A reason, and how many runs give it (`runs` of `of`). What `miss` says holds for each of these runs; if `varies`,
    its `got` holds for `run` only."""

    miss: Miss
    runs: int
    of: int
    run: str = ""
    """The id of one of the runs."""
    varies: bool = False

    @property
    def got_label(self) -> str:
        """What stands before the actual value: `got`, or `got e.g.` where others got something else."""
        return "got e.g." if self.varies else "got"


class Failures(Struct, frozen=True):
    """The reasons of a test, the most frequent first. `last`: they are of its last execution, in which some run did not
    pass; else of all runs that were looked at."""

    reasons: tuple[Failure, ...] = ()
    last: bool = True


def failures(runs: Sequence[RunRow], results_of: Callable[[str], Sequence[CriterionResult]]) -> Failures:
    """The reasons of these runs of a test (newest first): of those of the last execution, unless all of these passed.

    `results_of` gives the results of a run by its id.
    """
    ended = [run for run in runs if run.status in ("passed", "failed", "error")]
    # What failed long ago may be fixed: older runs only speak where the last execution has nothing to say.
    newest = [run for run in ended if run.execution_id == ended[0].execution_id]
    last = any(run.status != "passed" for run in newest)
    looked_at = newest if last else ended
    bad = [run for run in looked_at if run.status != "passed"]
    by_reason = grouped((reason_of(run), run) for run in bad)
    # Of equal ones the newest run's first, as `runs` has them.
    frequent = sorted(by_reason.items(), key=lambda entry: -len(entry[1]))[:REASONS]
    return Failures(tuple(_failure(reason, alike, len(looked_at), results_of) for reason, alike in frequent), last)


def reason_of(run: RunRow) -> str:
    """Why a run did not pass, as it was said when it ended; where nothing was said, what its status means."""
    return run.why or run.error_message or _WITHOUT_REASON.get(run.status, run.status)


def reasons_text(runs: Sequence[RunRow]) -> str:
    """Why these runs did not pass: the reason, if they have the same one; else the most frequent reason with its
    number of runs, and how many more there are."""
    reasons = Counter(map(reason_of, runs)).most_common()
    if len(reasons) < 2:
        return "".join(reason for reason, _ in reasons)
    return f"{reasons[0][0]} ({reasons[0][1]} of {len(runs)} runs), and {count(len(reasons) - 1, 'other reason')}"


def _failure(
    reason: str, alike: Sequence[RunRow], of: int, results_of: Callable[[str], Sequence[CriterionResult]]
) -> Failure:
    """The reason of some runs. What each run missed is read until one missed something else."""
    run = alike[0]
    first = first_miss(results_of(run.id)) if run.status == "failed" else None
    failure = Failure(first or Miss("", sentence=reason), len(alike), of, run.id)
    if first is None or not first.expected:
        return failure
    # One that missed something else ends it: then the reason is all that they share.
    for other in alike[1:]:
        miss = first_miss(results_of(other.id)) if other.status == "failed" else None
        if miss is None or (miss.criterion, miss.what, miss.expected) != (first.criterion, first.what, first.expected):
            return replace(failure, miss=Miss("", sentence=reason))
        if miss != first:
            # What the note says of one value may be wrong of what other runs got.
            failure = replace(failure, miss=replace(first, note=""), varies=True)
    return failure


def first_miss(results: Sequence[CriterionResult]) -> Miss | None:
    """What the first criterion that failed missed first; a warning only where no other failed. None: none failed."""
    failed = [result for result in results if result.outcome is Outcome.FAILED]
    result = next((decisive for decisive in failed if decisive.severity == "error"), failed[0] if failed else None)
    if result is None:
        return None
    # Of a negated criterion the metrics that passed are what is wrong: no expected value lies beside theirs.
    if not result.negate:
        for metric in result.metrics:
            if metric.outcome is Outcome.FAILED:
                missed = next((line for line in metric.evidence if line.passed is False), None)
                if missed is not None and (compared := _compared(result.criterion, missed)):
                    return compared
    return Miss(result.criterion, sentence=why(result))


def clearest(failures: Mapping[T, Failures]) -> T | None:
    """Whose first reason is the easiest to understand: two short values beside each other, in all runs. None where
    nothing failed; of equal ones the first."""

    def unclear(owner: T) -> tuple[bool, float, int]:
        first = failures[owner].reasons[0]
        return not first.miss.expected, -first.runs / first.of, len(first.miss.expected + first.miss.got)

    return min((owner for owner in failures if failures[owner].reasons), key=unclear, default=None)


def clearest_of(
    runs: Sequence[RunRow], results_of: Callable[[str], Sequence[CriterionResult]], most: int = MOST_TESTS
) -> Failure | None:
    """Of the runs of an execution the failure that is the easiest to understand; of many failed tests the first `most`
    are looked at. None where nothing failed."""
    tests = grouped(((run.suite_key, run.test_id, run.variation), run) for run in runs)
    failed = [which for which, rows in tests.items() if any(run.status in ("failed", "error") for run in rows)]
    reasons = {which: failures(tests[which], results_of) for which in failed[:most]}
    key = clearest(reasons)
    return reasons[key].reasons[0] if key is not None else None


def _compared(criterion: str, line: Evidence) -> Miss | None:
    """The first difference; None where nothing can be compared."""
    for compared in leaves(comparisons(line)):
        if compared.expected is not None or (compared.got is not None and compared.name):
            what = f"{line.fields.get('tool', '')} {compared.name}".strip()
            at = compared.at or 0
            expected, actual = (
                NOTHING if side is None else part(side, at)[0] for side in (compared.expected, compared.got)
            )
            place = part(compared.got or "", at)[1]
            return Miss(criterion, what, expected, actual, note=compared.short, at=place)
    return None


def part(text: str, at: int, size: int = _VALUE) -> tuple[str, int]:
    """A text in at most `size` characters, of a longer one the part around the character `at`; and where that is."""
    # More of what follows than of what is before: the difference begins at this place.
    before = size * 3 // 10
    start = max(at - before, 0) if len(text) > size else 0
    visible = "…" * bool(start) + text[start:].replace("\n", "⏎")
    return cut(visible, size), at - start + bool(start)
