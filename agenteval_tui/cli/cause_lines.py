"""Causes of failures in lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenteval_tui.cli.output import Output, Style, moment, percent, plural
from agenteval_tui.core.display import one_line

if TYPE_CHECKING:
    from agenteval_tui.analysis.causes import CauseGroup, Causes
    from agenteval_tui.analysis.triage import TriageStatus
    from agenteval_tui.history.store import Store

_WORST = 3
_TESTS = 4
_TRENDS: dict[str, tuple[str, Style]] = {
    "new": ("  new", "bad"),
    "gone": ("  gone", "good"),
    "known": ("  known", "dim"),
}


def print_causes(out: Output, causes: Causes, decided: Mapping[str, TriageStatus]) -> None:
    """All causes, worst first, each with its tests, since when, an example and what was decided."""
    compared = f", compared with {causes.scope.before_words}" if causes.scope.before_words else ""
    out.line((causes.said, "bold"), (f"  {causes.scope.words}{compared}", "dim"))
    for group in causes.groups:
        _print_group(out, group, decided.get(group.cause.signature))
    if causes.present:
        out.line(("agenteval triage CAUSE accept|fix|quarantine|label|ignore decides about one", "dim"))


def _print_group(out: Output, group: CauseGroup, standing: TriageStatus | None) -> None:
    style: Style = "dim" if group.trend == "gone" or (standing is not None and standing.holds) else "bold"
    out.line()
    out.line(
        (f"{group.count:>5} × ", "bad" if style == "bold" else "dim"),
        (one_line(group.title, 200), style),
        _TRENDS.get(group.trend, ("", "")),
    )
    tests = ", ".join(one_line(name, 40) for _, name in group.tests[:_TESTS])
    more = f" and {len(group.tests) - _TESTS} more" if len(group.tests) > _TESTS else ""
    if group.trend == "gone":
        out.line((f"        {group.cause.id}  {plural(group.before, 'run')} before, in {tests}{more}", "dim"))
    else:
        share = f"{percent(group.share)} of the failures, {group.count} of {plural(group.ended, 'run')}"
        since = f", since {moment(group.since_ms)}" if group.since_ms else ""
        out.line((f"        {group.cause.id}  {share} of {tests}{more}{since}", "dim"))
        out.line((f"        agenteval why {group.address()}", "dim"))
    if standing is not None:
        print_standing(out, standing)


def print_standing(out: Output, standing: TriageStatus) -> None:
    """What was decided, by whom, and whether it holds."""
    one = standing.decision
    who = f", {one_line(one.who, 40)}" if one.who else ""
    until = f", until {moment(one.until_ms)}" if one.until_ms else ""
    note = f": {one_line(one.note, 200)}" if one.note else ""
    style: Style = "good" if standing.holds else "warn"
    out.line(("        " + standing.said, style), (f" ({moment(one.at_ms)}{who}{until}){note}", "dim"))


def print_in_short(out: Output, store: Store, execution_id: str) -> None:
    """`212 failures = 6 causes` and the worst three; nothing where nothing failed, or all is one cause in one run."""
    from agenteval_tui.formats.exporters.cause_json import cause_of_execution

    causes, decided = cause_of_execution(store, execution_id)
    if not causes.present:
        return
    out.line((causes.said, "bold"), (f"  (agenteval causes {execution_id[:10]})", "dim"))
    for group in causes.present[:_WORST]:
        standing = decided.get(group.cause.signature)
        said = f"  {standing.said}" if standing is not None else ""
        fresh = "  new" if group.trend == "new" else ""
        out.line((f"{group.count:>5} × ", "bad"), one_line(group.title, 160), (fresh + said, "dim"))
    if len(causes.present) > _WORST:
        out.line((f"      and {plural(len(causes.present) - _WORST, 'more cause')}", "dim"))
