"""A comparison as Markdown: what a review or a report shows of it. Nothing that was said elsewhere can act in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from agenteval_tui.analysis.comparison_text import (
    figures_of,
    measures,
    points,
    rows_to_show,
    said_of_counts,
    said_of_criteria,
    said_of_power,
    said_of_rate,
    said_of_row,
    said_of_rows,
    said_of_suites,
    said_of_test,
    section,
    share,
)
from agenteval_tui.core.display import one_line
from agenteval_tui.formats.exporters.report_figures import dollars, seconds
from agenteval_tui.grading.explain import escape_markdown

if TYPE_CHECKING:
    from agenteval_tui.analysis.attribution import Attributed
    from agenteval_tui.analysis.comparison_model import Comparison, Overall, State, SummaryMetric, TestChange, TestKey

MOST = 50
_ROWS: dict[str, tuple[str, Callable[[float], str]]] = {
    "score": ("Score", lambda value: f"{value:.3f}"),
    "time": ("Latency (mean)", seconds),
    "tokens": ("Tokens/run (mean)", lambda value: f"{value:,.0f}"),
    "cost": ("Cost/run (mean)", dollars),
}
_SHOWN: tuple[State, ...] = ("worse", "better", "mixed", "score", "undecided", "added", "removed")


def comparison_md(found: Comparison, attributed: Mapping[TestKey, Attributed | None] | None = None) -> str:
    """Both sides, the figures as a table, and what changed; what got worse first."""
    lines = [
        f"## Comparison: {_text(found.a.name)} → {_text(found.b.name)}",
        "",
        *figures_table(found.overall),
        "",
        _text(conclusion(found)),
        "",
    ]
    for state in _SHOWN:
        listed = [one for one in found.tests if one.state == state]
        if listed:
            lines += [f"### {_text(section(state, len(listed)))}", "", *tests_table(listed, attributed or {}), ""]
    lines += rows_lines(found.tests)
    return "\n".join(lines)


def rows_lines(tests: Iterable[TestChange]) -> list[str]:
    """A table for each test whose dataset's rows changed: which broke, healed, came, went, moved, or were edited."""
    lines: list[str] = []
    for one in tests:
        shown = rows_to_show(one)
        if not shown:
            continue
        lines += [f"### Rows of {_text(one.label)}", "", f"{_text(said_of_rows(one))}.", ""]
        lines += ["| Row | State | Change |", "|---|---|---|"]
        lines += [
            "| " + " | ".join(map(_text, (row.label, row.state, said_of_row(row)))) + " |" for row in shown[:MOST]
        ]
        lines += ["", f"{len(shown) - MOST} more are not listed here.", ""] if len(shown) > MOST else [""]
    return lines


def conclusion(found: Comparison) -> str:
    """What the numbers say, and how sure they are."""
    one = found.overall
    other = said_of_criteria(found.not_comparable)
    said = [
        f"{said_of_counts(found)}.",
        *([f"{other[:1].upper()}{other[1:]}."] if other else []),
        f"Pass rate {said_of_rate(one)}.",
    ]
    said += [f"{part[:1].upper()}{part[1:]}." for part in (said_of_test(one), said_of_power(one)) if part]
    said += [f"{part[:1].upper()}{part[1:]}." for part in map(said_of_suites, found.paired)]
    return " ".join(said)


def figures_table(one: Overall) -> list[str]:
    """metric | baseline | now | change, of the means over what both sides have."""
    lines = ["| Metric | Baseline | Now | Change |", "|--------|----------|-----|--------|"]
    if one.rate is not None:
        lines.append(
            f"| Pass rate | {share(one.rate.was)} | {share(one.rate.now)} | {points(one.rate.difference)} points |"
        )
    for name, measure in measures(one):
        label, say = _ROWS[name]
        change = f"{measure.difference:+.3f}" if name == "score" else _relative(measure)
        lines.append(f"| {label} | {say(measure.was)} | {say(measure.now)} | {change} |")
    return lines


def tests_table(listed: Iterable[TestChange], attributed: Mapping[TestKey, Attributed | None]) -> list[str]:
    """A line each test: was, now, who changed it, where it parts."""
    tests = list(listed)
    lines = ["| Test | Was | Now | Who changed it | First divergence |", "|---|---|---|---|---|"]
    for one in tests[:MOST]:
        lines.append("| " + " | ".join(map(_text, change_row(one, attributed.get(one.key)))) + " |")
    if len(tests) > MOST:
        lines += ["", f"{len(tests) - MOST} more are not listed here."]
    return lines


def change_row(one: TestChange, found: Attributed | None) -> tuple[str, str, str, str, str]:
    """A test that changed: its name, was, now, who changed it, where it parts; as people read them, not escaped."""
    was, now = figures_of(one)
    who = "in quarantine" if one.quarantine else (found.who if found is not None else "")
    return one.label, was, now, who, found.divergence if found is not None else ""


def _relative(measure: SummaryMetric) -> str:
    return f"{100 * measure.difference / measure.was:+.0f} %" if measure.was else ("new" if measure.now else "0 %")


def _text(text: str) -> str:
    return escape_markdown(one_line(text, 1_000))
