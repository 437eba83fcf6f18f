"""What is shown of flaky tests: how often each passed, whose doing that is, and what might go into quarantine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from agenteval_tui.analysis.statistics import pass_at_k, pass_hat_k
from agenteval_tui.analysis.variance import VarianceComponent, VarianceReport
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.history.trends import NEWEST
from agenteval_tui.views.model import Column, Paragraph, Row, Span, Table, Text, View, paragraphs, row_key, text
from agenteval_tui.views.trends import interval_text, percent

_WHOSE = {
    "agent": "the agent: its outputs differ",
    "judge": "the judge: it says different things of one output",
    "both": "both: outputs differ, and the judge on one output too",
    "unknown": "unknown: the judge was asked once about each output (`votes` asks it more often)",
    "nobody": "",
}
_MOST_CHANGED = 20
_K = 3


def flaky_view(found: VarianceReport, window: str, *, everything: bool = False) -> View:
    """The flaky tests with their criteria (`everything`: the steady ones too), then those that changed."""
    decided = [one for one in found.tests if one.n]
    if not decided:
        said = f"no run with a verdict in this window ({one_line(window, 20)}): a longer one by --window, or all"
        return paragraphs([text(said)])
    if found.tests if everything else found.flaky:
        cut = f"only the newest {NEWEST:,} of these runs were looked at: a shorter --window shows others"
        return (
            flaky_table(found, everything=everything),
            *_changed(found),
            *paragraphs([text((cut if found.cut else "", "warn"))]),
        )
    most = max(one.n for one in decided)
    few = "few runs show little: agenteval run PATH --repeat 5" if most < _K else ""
    return (
        Paragraph(
            text(f"nothing is flaky: {numbers.count(len(decided), 'test')}, up to {numbers.count(most, 'run')} each")
        ),
        *_changed(found),
        *paragraphs([text((few, "dim"))]),
    )


def flaky_table(found: VarianceReport, *, everything: bool = False, in_short: bool = False) -> Table:
    """A row a test and a row a criterion of it that is flaky; below them, unless `in_short`, whose doing it is."""
    columns = [Column("  test / criterion"), Column("passed", "right"), Column("rate", "right")]
    columns.append(Column("95 %" if in_short else "95 % interval", "right" if in_short else "left"))
    columns += [] if in_short else [Column(f"pass@{_K}", "right"), Column(f"pass^{_K}", "right"), Column("")]
    shown = found.tests if everything else found.flaky
    several = len({test.suite_key for test in shown}) > 1
    rows: list[Row] = []
    for test in shown:
        flaky = test.flaky or test.quarantine is not None
        name = text(("~ " if flaky else "  ", "warn"), (test.name, "warn" if test.flaky else ""))
        rows += _rows(test, name, test.suite if several else "", in_short)
        for one in found.criteria_of(test):
            if one.flaky or everything:
                rows += _rows(one, text((f"    {one.criterion}", "dim")), share_text(one), in_short)
        rows += [] if in_short else [Row((text((f"    {line}", "dim")),)) for line in _more(test, found)]
    return Table(tuple(columns), tuple(rows))


def _rows(one: VarianceComponent, name: Text, note: str, in_short: bool) -> Iterator[Row]:
    held = held_text(one)
    if in_short:
        where = f"  ({note})" if note and not one.criterion else ""
        name += text((where, "dim"), (f"  {held}" if held else "", "warn"))
    cells = [name, text(f"{one.passed} of {one.n}"), text((percent(one.rate), "" if one.criterion else "bold"))]
    cells.append(text((interval_text(one.interval), "dim")))
    if not in_short:
        enough = one.n >= _K
        cells += [text(percent(share(one.passed, one.n, _K) if enough else None)) for share in (pass_at_k, pass_hat_k)]
        cells.append(text((note, "dim")))
    yield Row(tuple(cells), row_key("test", one.suite_key, one.test_id, one.criterion))
    if held and not in_short:
        yield Row((text((f"{'      ' if one.criterion else '    '}{held}", "warn")),))


def held_text(one: VarianceComponent) -> str:
    """`in quarantine until 2026-12-05`, the last day; "" where it is not."""
    return f"in quarantine until {one.quarantine.last_day}" if one.quarantine is not None else ""


def share_text(one: VarianceComponent) -> str:
    """Whose doing a flaky criterion is: `judge 40 % of the variance (12 verdicts on 4 outputs)`, `agent`."""
    if one.split is not None and one.split.judge_share is not None:
        outputs = numbers.count(one.split.outputs, "output")
        return f"judge {percent(one.split.judge_share)} of the variance ({one.split.verdicts} verdicts on {outputs})"
    if one.whose == "unknown":
        return "agent or judge: unknown" if one.criterion_hash else "another tool's verdict"
    return "agent" if one.whose == "agent" else ""


def _more(test: VarianceComponent, found: VarianceReport) -> list[str]:
    """What is known of a test beside its figures."""
    lines = []
    if test.by_agent:
        each = (f"{one_line(agent, 40)} {passed} of {n}" for agent, passed, n in test.by_agent)
        lines.append(f"by agent: {', '.join(each)}")
    if test.flaky and (whose := _whose(test, found)):
        lines.append(whose)
    return [*lines, f"by configuration: {_by_configuration(test)}"] if len(test.parts) > 1 else lines


def _whose(test: VarianceComponent, found: VarianceReport) -> str:
    flaky = [one for one in found.criteria_of(test) if one.flaky]
    if test.whose == "unknown" and flaky and not any(one.criterion_hash for one in flaky):
        return "another tool's verdicts: whose doing it is can't be told"
    return _WHOSE[test.whose]


def _changed(found: VarianceReport) -> View:
    """The tests that are not flaky: they do otherwise since something about them is another."""
    if not (listed := found.changed):
        return ()
    lines = []
    for test in listed[:_MOST_CHANGED]:
        sign: Span = ("✗ ", "bad") if test.step == "regression" else ("✓ ", "good")
        lines.append(text(sign, one_line(test.name, 60), (f"  {test.step}: {_by_configuration(test)}", "dim")))
    if len(listed) > _MOST_CHANGED:
        lines.append(text((f"  and {len(listed) - _MOST_CHANGED} more: --json has all of them", "dim")))
    head = "not flaky, but changed with the agent's configuration or the criteria:"
    return (Paragraph(()), Paragraph(text(head)), *paragraphs(lines))


def _by_configuration(test: VarianceComponent) -> str:
    """`5 of 5, then 0 of 5`, oldest first; what ran before configurations were stored is marked."""
    told = [f"{one.passed} of {one.n}" + ("" if one.version else " (configuration not stored)") for one in test.parts]
    return ", then ".join(told)


def suggestions_view(suggested: Sequence[VarianceComponent], until_ms: int | None = None) -> View:
    """What might go into quarantine, as commands; with `until_ms`: what went there."""
    if not suggested:
        return ()
    if until_ms is None:
        lines = [
            text(("suggested, or all of it by --quarantine:", "dim")),
            *(text(f"  {_command(one)}") for one in suggested),
        ]
    else:
        until = (f"  until {numbers.date(until_ms - 1)}", "dim")
        lines = [text(("~ in quarantine: ", "warn"), one_line(_name(one), 100), until) for one in suggested]
    return (Paragraph(()), *paragraphs(lines))


def _name(one: VarianceComponent) -> str:
    return f"{one.name} / {one.criterion}" if one.criterion else one.name


def reason_text(one: VarianceComponent) -> str:
    """Why it is in quarantine: what the figures say."""
    return f"flaky: {one.passed} of {one.n} passed"


def _command(one: VarianceComponent) -> str:
    criterion = f" --criterion {shlex.quote(one.criterion)}" if one.criterion else ""
    return f"agenteval quarantine add {shlex.quote(one.address)}{criterion} --reason {shlex.quote(reason_text(one))}"
