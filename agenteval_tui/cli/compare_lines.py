"""A comparison as lines of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_model import ORDER
from agenteval_tui.analysis.comparison_text import (
    measures,
    points,
    rows_to_show,
    said_of_counts,
    said_of_criteria,
    said_of_figures,
    said_of_power,
    said_of_rate,
    said_of_row,
    said_of_rows,
    said_of_test,
    section,
    version,
)
from agenteval_tui.cli.output import Output, Style, dollars, duration, moment
from agenteval_tui.core.display import one_line

if TYPE_CHECKING:
    from agenteval_tui.analysis.attribution import Attributed
    from agenteval_tui.analysis.comparison_model import (
        Comparison,
        CriterionChange,
        Overall,
        Side,
        State,
        TestChange,
        TestKey,
    )

_MOST = 100  # tests of a section
_MOST_ROWS = 20  # rows of a test
_SAY: dict[str, Callable[[float], str]] = {
    "score": lambda value: f"{value:.3f}", "time": duration, "tokens": lambda value: f"{value:,.0f}", "cost": dollars,
}  # fmt: skip
_SIGNS: dict[str, tuple[str, Style]] = {
    "worse": ("✗", "bad"),
    "better": ("✓", "good"),
    "mixed": ("↕", "warn"),
    "score": ("±", ""),
    "criteria": ("·", "dim"),
    "undecided": ("!", "broken"),
    "added": ("+", "good"),
    "removed": ("-", "bad"),
    "same": ("=", "dim"),
}


def print_comparison(
    out: Output,
    found: Comparison,
    attributed: Mapping[TestKey, Attributed | None] | None = None,
    *,
    everything: bool = False,
) -> None:
    """Both sides, all tests together, then what changed; what got worse first."""
    out.line(*_side(found.a), ("  →  ", "bold"), *_side(found.b))
    print_overall(out, found.overall)
    for note in (*found.notes, said_of_criteria(found.not_comparable)):
        if not note:
            continue
        out.line(("note: ", "warn"), one_line(note, 400))
    states = found.counts()
    if len(states) != 1 or ("same" in states and not everything):
        out.line(said_of_counts(found))  # of a single section its head says the same
    for state in ORDER:
        listed = found.in_state(state)
        if listed and (state != "same" or everything):
            _section(out, state, listed, attributed or {}, everything=everything)


def _side(side: Side) -> list[str | tuple[str, Style]]:
    when = moment(side.started_ms or None)
    return [(one_line(side.name, 60), "bold"), (f" {when}" if when else "", "dim")]


def print_overall(out: Output, one: Overall) -> None:
    """The pass rate with interval, test and power, then what was measured."""
    style: Style = ""
    if one.rate is not None and abs(one.rate.difference) > 1e-9:
        style = "good" if one.rate.difference > 0 else "bad"
    out.line("pass rate ", (said_of_rate(one), style))
    for said in (said_of_test(one), said_of_power(one)):
        if said:
            out.line((f"  {said}", "dim"))
    measured = [
        f"{name} {_SAY[name](measure.was)} to {_SAY[name](measure.now)}"
        for name, measure in measures(one)
        if abs(measure.difference) > 1e-12 or name == "score"
    ]
    if measured:
        out.line((f"  mean of a run: {', '.join(measured)}", "dim"))
    if one.left_out:
        out.line((f"  {one.left_out:,} cases were decided on one side only, and are left out", "dim"))


def _section(
    out: Output,
    state: State,
    listed: list[TestChange],
    attributed: Mapping[TestKey, Attributed | None],
    *,
    everything: bool,
) -> None:
    out.line()
    out.line((section(state, len(listed)), "bold"))
    for one in listed[:_MOST]:
        _test(out, one, attributed, everything=everything)
    if len(listed) > _MOST:
        out.line((f"  and {len(listed) - _MOST} more: --json has all of them", "dim"))


def _test(out: Output, one: TestChange, attributed: Mapping[TestKey, Attributed | None], *, everything: bool) -> None:
    sign, style = _SIGNS[one.state]
    more = [f"{points(one.difference)} points"] if one.difference else []
    more += ["in quarantine"] if one.quarantine else []
    out.line(
        (f"{sign} ", style),
        one_line(one.label, 60),
        f"  {said_of_figures(one)}",
        (f"  {', '.join(more)}" if more else "", "dim"),
    )
    found = attributed.get(one.key)
    if found is not None:
        out.line(("    who changed it: ", "dim"), (found.who, "bold"), (f"  {one_line(found.reason, 300)}", "dim"))
        if found.divergence:
            out.line((f"    first divergence: {one_line(found.divergence, 300)}", "dim"))
    _rows(out, one, everything=everything)
    for criterion in one.criteria:
        if criterion.state not in ("same", "undecided") or criterion.edited or criterion.was_name:
            _criterion(out, one, criterion, found)
    if one.pair is not None and one.pair[0] != one.pair[1] and one.state in ("worse", "better", "mixed"):
        out.line((f"    agenteval show {one.pair[0]} --diff {one.pair[1]}", "dim"))


def _rows(out: Output, one: TestChange, *, everything: bool) -> None:
    """What became of the rows of its dataset: those that flipped, came, went or were edited, and how many of each."""
    if not one.rows:
        return
    out.line((f"    {said_of_rows(one)}", "dim"))
    shown = list(one.rows) if everything else rows_to_show(one)
    for row in shown if everything else shown[:_MOST_ROWS]:
        sign, style = _SIGNS[row.state]
        more: list[str | tuple[str, Style]] = []
        if row.state in ("worse", "better") and row.pair is not None:
            more = [(f"  agenteval show {row.pair[0]} --diff {row.pair[1]}", "dim")]
        out.line((f"      {sign} ", style), one_line(f"#{row.label}", 40), (f"  {said_of_row(row)}", "dim"), *more)
    if not everything and len(shown) > _MOST_ROWS:
        out.line((f"      and {len(shown) - _MOST_ROWS} more rows: --all and --json have all of them", "dim"))


def _criterion(out: Output, test: TestChange, one: CriterionChange, found: Attributed | None) -> None:
    if test.state in ("added", "removed"):
        return
    sign, style = _SIGNS[one.state]
    parts = [f"criterion {one.state}" if one.state in ("added", "removed") else said_of_figures(one)]
    if one.was_name:
        parts.append(f"renamed, it was {one_line(one.was_name, 40)}")
    if one.edited:
        parts.append(
            f"not comparable: config changed {version(one.versions_was[-1])} → {version(one.versions_now[-1])}"
        )
    mine = found.by_criterion.get(one.name) if found is not None else None
    if mine is not None and len(found.by_criterion if found is not None else ()) > 1:
        parts.append(mine.who)
    out.line((f"    {sign} ", style), one_line(one.name, 60), (f"  {', '.join(parts)}", "dim"))
