"""The last lines of a run: how its runs ended, what is known of the pass rate, what it cost, and what comes next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval_tui.analysis.costs import costs_of
from agenteval_tui.analysis.triage import causes_of_execution
from agenteval_tui.cli.output import STYLES, Output, Style, percent, percent_range
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.grading.sentences import not_made_in_runs_sentence
from agenteval_tui.history.records import checks_not_made
from agenteval_tui.views.causes import causes_in_short
from agenteval_tui.views.cost import judges_lines, spent_lines

if TYPE_CHECKING:
    from agenteval_tui.history.records import ExecutionRow, RunRow
    from agenteval_tui.history.store import Store

_MOST_ERRORS = 5
_ENDS = (
    ("passed", "passed"),
    ("failed", "failed"),
    ("error", "in error"),
    ("needs_review", "to be reviewed"),
    ("skipped", "not needed"),
    ("cancelled", "cancelled"),
)


def counts_of(row: ExecutionRow) -> dict[str, int]:
    """How many runs ended how."""
    return {
        "passed": row.passed,
        "failed": row.failed,
        "error": row.errors,
        "needs_review": row.needs_review,
        "skipped": row.skipped,
        "cancelled": row.cancelled,
    }


def print_summary(
    out: Output,
    store: Store,
    row: ExecutionRow,
    runs: Sequence[RunRow],
    overall: Mapping[str, Any],
    *,
    errors: Sequence[tuple[str, int]] = (),
    retries: int = 0,
) -> None:
    """Everything that is said of an execution when it has ended."""

    out.line()
    _print_errors(out, errors)
    _print_counts(out, counts_of(row), row.runs)
    print_not_made(out, runs)
    out.view(causes_in_short(*causes_of_execution(store, row.id), row.id))
    if row.status == "stopped":  # why it broke off, or died, is the last line (`Done.code`)
        out.line((f"{row.status}: ", "warn"), one_line(row.message or "no reason was given", 400))
    rate = overall["pass_rate"]
    if rate is not None:
        low, high = overall["interval"]
        broken = f"; {overall['errors']:,} in error" if overall["errors"] else ""
        out.line(
            f"pass rate {percent(rate)} of {count(overall['n'], 'run')}{broken}",
            (f"  (95 % interval by test: {percent_range(low, high)})", "dim"),
        )
    if row.skipped:
        out.line((f"early stop: {count(row.skipped, 'run')} saved, their tests were decided", "dim"))
    if retries:
        made = "attempt failed and was" if retries == 1 else "attempts failed and were"
        out.line((f"{retries:,} {made} made again", "dim"))
    _print_ab(out, row, runs)
    out.view(spent_lines(costs_of(store.costs(row.id), runs)))
    out.view(judges_lines(*store.judge_usage(row.id)))
    if row.status in ("stopped", "cancelled"):
        higher = " --max-..." if row.status == "stopped" else ""
        more = ", with a higher limit" if higher else ""
        out.line((f"agenteval resume {row.id[:10]}{higher} runs what is missing{more}", "dim"))
    out.line((f"execution {row.id}  (agenteval show {row.id[:10]})", "dim"))


def _print_counts(out: Output, counts: Mapping[str, int], total: int) -> None:
    parts: list[str | tuple[str, Style]] = []
    for status, word in _ENDS:
        if counts.get(status):
            parts.append((f"{counts[status]} {word}", STYLES.get(status, "dim")))
            parts.append(", ")
    left = total - sum(counts.values())
    if left > 0:
        parts += [(f"{left} not run", "warn"), ", "]
    out.line(*(parts[:-1] or ["nothing was run"]), f" of {count(total, 'run')}")


def print_not_made(out: Output, runs: Iterable[RunRow]) -> None:
    """How many checks could not be made in runs that have a verdict all the same; nothing where there are none."""

    if said := not_made_in_runs_sentence(checks_not_made(runs)):
        out.line((said, "warn"))


def _print_errors(out: Output, errors: Sequence[tuple[str, int]]) -> None:
    """The same error of many runs, once."""
    for error, runs in errors[:_MOST_ERRORS]:
        out.line((f"{count(runs, 'run')} in error: ", "broken"), one_line(error, 300))
    if len(errors) > _MOST_ERRORS:
        out.line((f"and {len(errors) - _MOST_ERRORS} more kinds of errors", "dim"))


def _print_ab(out: Output, row: ExecutionRow, runs: Sequence[RunRow]) -> None:
    if not row.options.get("ab"):
        return
    from agenteval_tui.analysis.ab import compare_ab
    from agenteval_tui.views.ab import ab_lines

    try:
        out.view(ab_lines(compare_ab(runs)))
    except AgentevalError as error:
        out.line(("A/B: ", "warn"), str(error))
