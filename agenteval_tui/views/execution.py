"""What is shown of an execution: what it is, how its runs ended, its last lines; and a run as a line of a list."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.analysis.summary import OverallFigures
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line, told_apart
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import quoted
from agenteval_tui.core.timespan import IN_FUTURE, in_future
from agenteval_tui.grading.sentences import not_made_in_runs_sentence, not_made_sentence
from agenteval_tui.history.recordings import PROGRAM
from agenteval_tui.history.records import ExecutionRow, RunRow, checks_not_made
from agenteval_tui.runs.events import AroundProblem
from agenteval_tui.suites.commits import Commit
from agenteval_tui.views.evidence import place_of
from agenteval_tui.views.fork_origin import origin_text
from agenteval_tui.views.model import Span, Text, View, outcome_sign, outcome_text, paragraphs, plain, text

_INTERRUPTED = 130  # what shells give for Ctrl+C: the runs may be fine, so it is not "did not pass"
_MOST_ERRORS = 5
_MOST_NAMES = 4
_COMMIT = 9  # digits of a hash, as git shows it in repositories of some size


def ends_text(row: ExecutionRow) -> Text:
    """`4 passed, 1 failed, 2 in error`: how its runs ended. What is not needed was saved by early stopping; what was
    brought in without a verdict is not graded."""
    ends = (
        (row.passed, "passed", "good"),
        (row.failed, "failed", "bad"),
        (row.errors, "in error", "broken"),
        *_without_verdict(row),
    )
    parts: list[str | Span] = []
    for number, word, token in ends:
        if number > 0:
            parts += [", "] if parts else []
            parts.append((f"{number:,} {word}", token))
    return text(*parts or ["nothing ran"])


def without_verdict_text(row: ExecutionRow) -> str:
    """`3 to be reviewed, 6 not run`: the runs that neither have a verdict nor are in error, in the same words; ""."""
    return ", ".join(f"{number:,} {word}" for number, word, _ in _without_verdict(row) if number > 0)


def _without_verdict(row: ExecutionRow) -> tuple[tuple[int, str, str], ...]:
    return (
        (row.needs_review, "to be reviewed", "warn"),
        (row.skipped, "not graded" if row.kind == "import" else "not needed", "dim"),
        (row.cancelled, "cancelled", "dim"),
        (row.runs - row.ended, "not run yet" if row.status == "running" else "not run", "warn"),
    )


def took_ms(row: ExecutionRow) -> int | None:
    """How long it took in all, in milliseconds; None where it has not ended, or was brought in: reading a file took
    that long, not what is in it."""
    took = row.finished_ms - row.started_ms if row.finished_ms and row.kind != "import" else 0
    return took if took > 0 else None


def scheduler_text(row: ExecutionRow) -> str:
    """The cluster on whose workers its agents ran; "" for this machine."""
    return one_line(str(row.options.get("scheduler") or ""), 60)


def execution_line(row: ExecutionRow, *, with_project: bool = False) -> Text:
    """An execution in a list: when, what, how it ended, how long it took and where."""
    took, where = numbers.duration(took_ms(row)), scheduler_text(row)
    return text(
        (short_id(row.id), "dim"),
        f"  {numbers.moment(row.started_ms)}  {one_line(row.title, 48):<48}  ",
        *ends_text(row),
        f" of {row.runs:,}",
        (f"  {one_line(row.name, 40)}" if row.name else "", "accent"),
        (f"  {commit_text(row.commits[0])}" if row.commits else "", "dim"),
        (f"  in {took}" if took else "", "dim"),
        (f"  on {where}" if where else "", "dim"),
        ("" if row.status == "finished" else f"  {row.status}", "warn"),
        (f"  {IN_FUTURE}" if in_future(row.started_ms) else "", "warn"),
        (f"  {numbers.count(len(row.notes), 'note')}" if row.notes else "", "dim"),
        (f"  {one_line(row.project or 'project not known')}" if with_project else "", "dim"),
    )


def run_lines(rows: Sequence[RunRow], *, with_suite: bool = False) -> list[Text]:
    """Runs in a list: how each ended, its id, test and repetition, how long it took, and why it ended so; of one that
    passed what it answered."""
    reasons = [row.why or row.error_message or (row.output_head if row.status == "passed" else "") for row in rows]
    return [
        _run_line(row, reason, row.suite_key if with_suite else "")
        for row, reason in zip(rows, told_apart(reasons, 100), strict=True)
    ]


def _run_line(row: RunRow, reason: str, suite: str) -> Text:
    return text(
        outcome_sign(row.status),
        f" {row.id}  {one_line(row.case_name, 36):<36} {row.repetition:>3} {numbers.duration(row.duration_ms):>8}",
        (f"  {reason}" if reason else "", "dim"),
        (f"  {one_line(suite)}" if suite else "", "dim"),
    )


def run_head(row: RunRow) -> View:
    """A run over its transcript: what was tested, how it ended, where it is from, and when."""
    when = ", ".join(filter(None, (numbers.moment(row.started_ms), numbers.duration(row.duration_ms))))
    missing = not_made_sentence(row.checks_not_made)
    status = outcome_text(row.status)
    about = (f", {plain(place_of(row))}, {when}", "dim")
    head = text((one_line(row.test_name), "bold"), (f"  {row.id}", "dim"))
    continued = text((origin_text(row), "accent"))
    return paragraphs([head, text(status, about, (f"  {missing}" if missing else "", "warn")), continued])


def name_text(row: ExecutionRow) -> Text:
    """`v2.1  commit 1a2b3c4d5 (main, changed)  model=mini`: what it is called, and what it is a version of; () where
    nothing is known."""
    words = "  ".join(version_words(row))
    return text((one_line(row.name, 80), "accent"), (f"{'  ' if row.name and words else ''}{words}", "dim"))


def version_words(row: ExecutionRow) -> list[str]:
    """The commits and the metadata, one by one: `commit 1a2b3c4d5 (main)`, `model=mini`."""
    commits = [f"{commit_text(commit)}{_of_what(commit, row.commits)}" for commit in row.commits]
    return [*commits, *(f"{one_line(key)}={one_line(value, 40)}" for key, value in row.meta.items())]


def commit_text(commit: Commit, *, whole: bool = False) -> str:
    """`commit 1a2b3c4d5 (main, changed)`; `whole`: its whole hash, and without the word."""
    state = {True: "changed", False: "", None: "changes not known"}[commit.dirty]
    about = ", ".join(filter(None, (one_line(commit.branch, 40), state)))
    return (commit.commit if whole else f"commit {commit.commit[:_COMMIT]}") + (f" ({about})" if about else "")


def _of_what(commit: Commit, commits: Sequence[Commit]) -> str:
    """Which of several repositories."""
    return f" of the {' and '.join(commit.of)}" if len(commits) > 1 else ""


def note_text(row: ExecutionRow) -> Text:
    """A person's note; () where there is none."""
    return text((one_line(row.note, 400), "")) if row.note else ()


def execution_view(row: ExecutionRow, runs: Sequence[RunRow]) -> View:
    """An execution with its runs: when, by whom, what is to be known of it, and how they ended."""
    agents = f", agents {one_line(row.agents)}" if row.agents else ""
    future = f"{IN_FUTURE}: the clock of the machine that ran it was wrong, or this one is"
    return paragraphs(
        [
            title_text(row),
            name_text(row),
            note_text(row),
            text((f"{numbers.moment(row.started_ms)}, {row.kind}, {row.status}{agents}", "dim")),
            text((future if in_future(row.started_ms) else "", "warn")),
            startup_text(row),
            text((row.message, "warn")),
            *(text(("note ", "warn"), note) for note in row.notes),
            *run_lines(runs),
            *_ends(row, runs),
        ]
    )


def startup_text(row: ExecutionRow) -> Text:
    """How long it took to start what its runs have in common."""
    took = numbers.duration(row.startup_ms) if row.startup_ms is not None else ""
    return text((f"start and imports before the runs: {took}; not in the time of any run" if took else "", "dim"))


def title_text(row: ExecutionRow) -> Text:
    """Its title and its id."""
    return text((one_line(row.title), "bold"), (f"  {row.id}", "dim"))


class NotObserved(Struct):
    """Criteria that were not checked because what they look at wasn't observed: why, and what helps, in words; their
    names, each once; and in how many runs."""

    reason: str
    criteria: list[str]
    runs: int = 0


def ended_view(
    row: ExecutionRow,
    runs: Sequence[RunRow],
    errors: Sequence[tuple[str, int]] = (),
    not_observed: Sequence[NotObserved] = (),
    around: Sequence[tuple[AroundProblem, int]] = (),
) -> View:
    """How the runs of an execution ended: first what was not checked because it wasn't observed, then the same error
    of many once (`errors`), and what failed `around` them, then how many ended how."""
    unchecked = [_not_observed_text(entry) for entry in not_observed]
    broken = [
        text((f"{numbers.count(many, 'run')} in error: ", "broken"), one_line(reason, 300)) for reason, many in errors
    ]
    beside = [
        text((f"in {numbers.count(count, 'run')}: ", "warn"), around_sentence(problem, 300))
        for problem, count in around
    ]
    lines = (*_first(unchecked, "other reason"), *_first(broken, "other error"), *_first(beside, "other problem"))
    return paragraphs([*lines, *_ends(row, runs)])


def _first(lines: Sequence[Text], others: str) -> Iterator[Text]:
    """The first of these lines, and how many others there are."""
    yield from lines[:_MOST_ERRORS]
    if (more := len(lines) - _MOST_ERRORS) > 0:
        yield text((f"and {numbers.count(more, others)}", "dim"))


def tools_raised_sentence(tools: Iterable[str]) -> str:
    """The tools that raised, each once; "" for none."""
    names = list(dict.fromkeys(tools))
    return f"{numbers.count(len(names), 'tool')} raised: {one_line(', '.join(names), 40)}" if names else ""


def around_sentence(problem: AroundProblem, most: int = 400) -> str:
    """What failed around a run, in one line of at most `most` characters."""
    message = problem.message
    if problem.kind == "probe":
        message = f"the probe {quoted(problem.name)} could not be read, and no criterion asks for it: {message}"
    return one_line(message, most)


def _not_observed_text(what: NotObserved) -> Text:
    names = [one_line(name, 60) for name in what.criteria[:_MOST_NAMES]]
    if len(what.criteria) > _MOST_NAMES:
        names.append(f"{len(what.criteria) - _MOST_NAMES} more")
    head = f"not checked in {numbers.count(what.runs, 'run')}: "
    return text((head, "broken"), f"{', '.join(names)}: {one_line(what.reason, 400)}")


def _ends(row: ExecutionRow, runs: Sequence[RunRow]) -> Iterator[Text]:
    yield text(*ends_text(row), f" of {numbers.count(row.runs, 'run')}")
    # Checks of runs that have a verdict all the same.
    yield text((not_made_in_runs_sentence(checks_not_made(runs)), "warn"))


def rate_view(row: ExecutionRow, overall: OverallFigures, retries: int = 0) -> View:
    """What is known of the pass rate when an execution has ended, and what kept runs from being made or repeated
    them."""
    lines = []
    if row.status == "stopped":  # why it broke off, or died, is the last line (`RunReport.code`)
        lines.append(text((f"{row.status}: ", "warn"), one_line(row.message or "no reason given", 400)))
    if (rate := overall.pass_rate) is not None:
        beside = [f"{overall.errors:,} in error"] if overall.errors else []
        # What early stopping saved has a line of its own below.
        beside += [line] if (line := without_verdict_text(replace(row, skipped=0, runs=row.runs - row.skipped))) else []
        by_test, of_runs = numbers.percent(rate), numbers.percent(overall.passed / overall.n)
        # Where tests ran unequally often, the mean over the tests is not the share of the runs.
        mean = "" if by_test == of_runs else f"{by_test} by test, "
        line = "; ".join([f"pass rate {mean}{of_runs} of {numbers.count(overall.n, 'run')}", *beside])
        lines.append(text(line, (f"  ({numbers.interval_phrase(overall.interval, of='by test: ')})", "dim")))
    if row.skipped:
        lines.append(text((f"early stop: {numbers.count(row.skipped, 'run')} saved, their tests were decided", "dim")))
    if retries:
        phrase = "attempt failed and was" if retries == 1 else "attempts failed and were"
        lines.append(text((f"{retries:,} {phrase} retried", "dim")))
    return paragraphs(lines)


def next_view(row: ExecutionRow, options: str = "") -> View:
    """What can be done next: resume what was stopped, look at it. `options`: those that the commands need, as
    ` --db FILE`."""
    again = {
        "stopped": f"agenteval resume {short_id(row.id)}{options} --max-... runs what is missing, with a higher limit",
        "cancelled": f"agenteval resume {short_id(row.id)}{options} runs what is missing",
    }.get(row.status, "")
    if PROGRAM in row.options and again:
        again = "the same command continues it, and does not pay for an answer again"
    last = f"execution {row.id}  (agenteval show {short_id(row.id)}{options})"
    return paragraphs([text((again, "dim")), text((last, "dim"))])


def end_text(row: ExecutionRow, pass_rate: float | None, code: int) -> str:
    """`Orders: did not pass (1 passed, 1 failed, 0 in error, 50 % passed)`. `code`: that of `agenteval run`."""
    rate = f", {numbers.percent(pass_rate)} passed" if pass_rate is not None else ""
    how = "passed" if code == 0 else row.status if code == _INTERRUPTED else "did not pass"
    others = f", {text}" if (text := without_verdict_text(row)) else ""
    figures = f"{row.passed} passed, {row.failed} failed, {row.errors} in error{others}{rate}"
    return f"{one_line(row.title, 200)}: {how} ({figures})"
