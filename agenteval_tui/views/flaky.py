"""What is shown of flaky tests: how often each passed, whose doing that is, and what might go into quarantine."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from agenteval_tui.analysis.execution_steps import Step, StepKind
from agenteval_tui.analysis.statistics import pass_at_k, pass_hat_k
from agenteval_tui.analysis.variance import VarianceComponent, VarianceReport
from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import percent
from agenteval_tui.history.trends import NEWEST
from agenteval_tui.views.comparison import p_value_text
from agenteval_tui.views.model import Column, Paragraph, Row, Span, Table, Text, View, paragraphs, row_key, text
from agenteval_tui.views.trends import interval_text

_WHOSE = {
    "agent": "the agent: its outputs differ",
    "judge": "the judge: it gives one output different verdicts",
    "both": "both: outputs differ, and the judge gives one output different verdicts",
    "unknown": "unknown: the judge was asked once about each output (`votes` asks it more often)",
    "nobody": "",
}
_STEPS: dict[StepKind, str] = {
    "regression": "a regression",
    "improvement": "an improvement",
    "changed": "changed",
}
_SIGNS: dict[StepKind, Span] = {"regression": ("✗", "bad"), "improvement": ("✓", "good"), "changed": ("~", "warn")}
_MOST_CHANGED = 20
_MOST_PARTS = 5
_K = 3


def flaky_view(report: VarianceReport, window: str, *, everything: bool = False) -> View:
    """The flaky tests with their criteria (`everything`: the steady ones too), then those that changed."""
    decided = [test for test in report.tests if test.n]
    if not decided:
        message = (
            f"no run has a verdict in this window ({one_line(window, 20)}): try a longer --window, or --window all"
        )
        return paragraphs([text(message)])
    if report.tests if everything else report.flaky:
        cut = f"only the newest {NEWEST:,} of these runs were analysed: a shorter --window shows others"
        return (
            flaky_table(report, everything=everything),
            *_changed(report),
            *paragraphs([text((cut if report.cut else "", "warn"))]),
        )
    most = max(flaky.n for flaky in decided)
    few = "a few runs show little: agenteval run PATH --repeat 5" if most < _K else ""
    return (
        Paragraph(
            text(f"nothing is flaky: {numbers.count(len(decided), 'test')}, up to {numbers.count(most, 'run')} each")
        ),
        *_changed(report),
        *paragraphs([text((few, "dim"))]),
    )


def flaky_table(report: VarianceReport, *, everything: bool = False, in_short: bool = False) -> Table:
    """A row a test and a row a criterion of it that is flaky; below them, unless `in_short`, whose doing it is."""
    columns = [Column("  test / criterion"), Column("passed", "right"), Column("rate", "right")]
    columns.append(Column("95 %" if in_short else "95 % interval", "right" if in_short else "left"))
    columns += [] if in_short else [Column(f"pass@{_K}", "right"), Column(f"pass^{_K}", "right"), Column("")]
    tests = report.tests if everything else report.flaky
    # The suite is only said where there are several.
    several = len({test.suite_key for test in tests}) > 1
    rows: list[Row] = []
    for test in tests:
        # What is in quarantine is marked, whether it still varies or not.
        flaky = test.flaky or test.quarantine is not None
        name = text(("~ " if flaky else "  ", "flaky"), (test.name, "flaky" if test.flaky else ""))
        rows += _rows(test, name, test.suite if several else "", in_short)
        for criterion in report.criteria_of(test):
            if criterion.flaky or everything:
                rows += _rows(criterion, text((f"    {criterion.criterion}", "dim")), share_text(criterion), in_short)
        rows += [] if in_short else [Row((text((f"    {line}", "dim")),)) for line in _more(test, report)]
    return Table(tuple(columns), tuple(rows))


def _rows(component: VarianceComponent, name: Text, note: str, in_short: bool) -> Iterator[Row]:
    held = held_text(component)
    if in_short:
        where = f"  ({note})" if note and not component.criterion else ""
        name += text((where, "dim"), (f"  {held}" if held else "", "warn"))
    cells = [
        name,
        text(f"{component.passed:,} of {component.n:,}"),
        text((percent(component.rate), "" if component.criterion else "bold")),
    ]
    cells.append(text((interval_text(component.interval), "dim")))
    if not in_short:
        # pass@k of fewer runs than k is not defined.
        enough = component.n >= _K
        cells += [
            text(percent(share(component.passed, component.n, _K) if enough else None))
            for share in (pass_at_k, pass_hat_k)
        ]
        cells.append(text((note, "dim")))
    yield Row(tuple(cells), row_key("test", component.suite_key, component.test_id, component.criterion))
    if held and not in_short:
        yield Row((text((f"{'      ' if component.criterion else '    '}{held}", "warn")),))


def held_text(component: VarianceComponent) -> str:
    """`in quarantine until 2026-12-05`, the last day; "" where it is not."""
    return f"in quarantine until {component.quarantine.last_day}" if component.quarantine is not None else ""


def share_text(component: VarianceComponent) -> str:
    """Whose doing a flaky criterion is: `judge 40 % of the variance (12 verdicts on 4 outputs)`, `agent`."""
    split = component.split
    if split is not None and split.judge_share is not None:
        outputs = numbers.count(split.outputs, "output")
        return f"judge {percent(split.judge_share)} of the variance ({split.verdicts} verdicts on {outputs})"
    if component.whose == "unknown":
        return "agent or judge: unknown" if component.criterion_hash else "another tool's verdict"
    return "agent" if component.whose == "agent" else ""


def _more(test: VarianceComponent, report: VarianceReport) -> list[str]:
    """What is known of a test beside its figures."""
    lines = []
    if test.by_agent:
        each = (f"{one_line(agent, 40)} {passed:,} of {n:,}" for agent, passed, n in test.by_agent)
        lines.append(f"by agent: {', '.join(each)}")
    if test.flaky and (whose := _whose(test, report)):
        lines.append(whose)
    if test.flaky and (step := test.step) is not None:
        lines.append(f"also {_STEPS[step.kind]} {_between(test)}: {step_text(step)}")
    return [*lines, f"by configuration: {_by_configuration(test)}"] if len(test.parts) > 1 else lines


def _whose(test: VarianceComponent, report: VarianceReport) -> str:
    flaky = [criterion for criterion in report.criteria_of(test) if criterion.flaky]
    if test.whose == "unknown" and flaky and not any(test.criterion_hash for test in flaky):
        return "another tool's verdicts: the source is unknown"
    return _WHOSE[test.whose]


def _changed(report: VarianceReport) -> View:
    """The tests that are not flaky: they step from one execution to another, or with what about them is another."""
    if not (listed := report.changed):
        return ()
    lines = []
    for test in listed[:_MOST_CHANGED]:
        assert test.step is not None
        sign, token = _SIGNS[test.step.kind]
        change = f"  {test.step.kind} {_between(test)}: {step_text(test.step)}"
        lines.append(text((f"{sign} ", token), one_line(test.name, 60), (change, "dim")))
    if len(listed) > _MOST_CHANGED:
        lines.append(text((f"  and {len(listed) - _MOST_CHANGED:,} more: --json lists all", "dim")))
    head = "not flaky, but changed: nothing varies on either side of the change"
    return (Paragraph(()), Paragraph(text(head)), *paragraphs(lines))


def step_text(step: Step) -> str:
    """`5 of 5 passed, then 0 of 5 (p = 0.0079)`."""
    parts = [f"{passed:,} of {n:,}" for passed, n in step.parts]
    phrases = [f"{parts[0]} passed", *parts[1:_MOST_PARTS]]
    if len(parts) > _MOST_PARTS:
        phrases.append(f"{len(parts) - _MOST_PARTS} more times by turns")
    return f"{', then '.join(phrases)} ({p_value_text(step.p_value)})"


def _between(test: VarianceComponent) -> str:
    return "between executions" if test.step_within else "with another configuration or other criteria"


def _by_configuration(test: VarianceComponent) -> str:
    """`5 of 5, then 0 of 5`, oldest first; what ran before configurations were stored is marked."""
    return ", then ".join(
        f"{part.passed:,} of {part.n:,}{'' if part.version else ' (configuration not stored)'}" for part in test.parts
    )


def suggestions_view(suggested: Sequence[VarianceComponent], until_ms: int | None = None, options: str = "") -> View:
    """What might go into quarantine, as commands; with `until_ms`: what went there."""
    if not suggested:
        return ()
    if until_ms is None:
        lines = [
            text(("suggested (--quarantine does all of it):", "dim")),
            *(text(f"  {_command(component, options)}") for component in suggested),
        ]
    else:
        # The end is exclusive: what ends at a midnight holds for the day before.
        until = (f"  until {numbers.date(until_ms - 1)}", "dim")
        lines = [text(("~ in quarantine: ", "warn"), one_line(_name(component), 100), until) for component in suggested]
    return (Paragraph(()), *paragraphs(lines))


def _name(component: VarianceComponent) -> str:
    return f"{component.name} / {component.criterion}" if component.criterion else component.name


def reason_text(component: VarianceComponent) -> str:
    """Why it is in quarantine: what the figures say."""
    return f"flaky: {component.passed:,} of {component.n:,} passed"


def _command(component: VarianceComponent, options: str) -> str:
    criterion = f" --criterion {shlex.quote(component.criterion)}" if component.criterion else ""
    address, reason = shlex.quote(component.address), shlex.quote(reason_text(component))
    return f"agenteval quarantine add {address}{criterion} --reason {reason}{options}"
