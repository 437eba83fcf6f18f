"""`agenteval flaky`: tests that pass sometimes, whose doing that is, and what might go into quarantine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from agenteval_tui.analysis.time_buckets import window_ms
from agenteval_tui.analysis.trends import TrendQuery
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, pass_invocation
from agenteval_tui.cli.output import Output, percent, percent_range, plural
from agenteval_tui.cli.param_types import Until
from agenteval_tui.cli.quarantine_lines import day_of
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.trends import NEWEST

if TYPE_CHECKING:
    from agenteval_tui.analysis.variance import VarianceComponent, VarianceReport

_WHOSE = {
    "agent": "the agent: its outputs differ",
    "judge": "the judge: it says different things of one output",
    "both": "both: outputs differ, and the judge on one output too",
    "unknown": "unknown: the judge was asked once about each output (`votes` asks it more often)",
    "nobody": "",
}
_MOST_CHANGED = 20


@click.command("flaky")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--window", default="30d", metavar="TIME", help="Runs of this time: 24h, 30d (the default), 8w, all.")
@click.option("--test", "tests", multiple=True, metavar="ID", help="Only this test; may come often.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="Only tests with this tag; with several: with all.")
@click.option("--agent", "agents", multiple=True, metavar="A", help="Only runs of this agent; may come often.")
@click.option("--all", "everything", is_flag=True, help="All tests and criteria, steady ones too.")
@click.option("--count-errors", is_flag=True, help="Count runs that ended in an error as not passed.")
@click.option("--quarantine", is_flag=True, help="Put what is suggested in quarantine.")
@click.option("--until", "until_ms", type=Until(), help="With --quarantine: until when (default: 14d).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@all_projects()
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    paths: tuple[Path, ...],
    window: str,
    tests: tuple[str, ...],
    tags: tuple[str, ...],
    agents: tuple[str, ...],
    everything: bool,
    count_errors: bool,
    quarantine: bool,
    until_ms: int | None,
    as_json: bool,
) -> int:
    """List the flaky tests of the suites at PATH (default: those of this project), the least predictable first.

    A test is flaky when some of its runs passed and some did not, with one configuration of the agent and one version
    of the criteria: one that passes with one configuration and fails with the next has changed, and is listed apart.
    For each: how often it passed, Wilson's 95 % interval, pass@3 and pass^3, its flaky criteria, and whose doing it is:
    the agent's, when its outputs differ, or the judge's, when it says different things of one output.
    """

    if until_ms is not None and not quarantine:
        raise click.UsageError("--until goes with --quarantine")
    span, now = window_ms(window), now_ms()
    wanted = TrendQuery(
        None if span is None else now - span,
        now + 1,
        paths=paths,
        tests=tests,
        tags=tags,
        agents=agents,
        count_errors=count_errors,
        projects=() if paths else invocation.projects,
    )
    with invocation.store(to_look=not quarantine) as store:
        if not paths and (said := invocation.elsewhere(store)):
            invocation.err.line(("note: ", "warn"), said)
        found = ledger(store, wanted, now)
        suggested = found.suggestions()
        if quarantine:
            from agenteval_tui.history.current_user import current_user

            until = until_ms if until_ms is not None else quarantines.default_until()
            for one in suggested:
                quarantines.put(
                    store,
                    Quarantine(one.suite_key, one.test_id, until, one.criterion, reason_for(one), current_user()),
                ).result()
    if as_json:
        shown = found.tests if everything else found.flaky
        invocation.out.json(
            {
                "version": 1,
                "since": found.since_ms,
                "cut": found.cut,
                "tests": [
                    {**one.to_json(), "criteria": [part.to_json() for part in found.criteria_of(one)]} for one in shown
                ],
                "changed": [one.to_json() for one in found.changed],
                "suggested": [
                    {"file": one.suite_key, "test": one.test_id, "criterion": one.criterion or None}
                    for one in suggested
                ],
            }
        )
        return 0
    _print(invocation.out, found, window, everything)
    if not suggested:
        return 0
    invocation.out.line()
    if quarantine:
        until_text = day_of(until)
        for one in suggested:
            invocation.out.line(("~ in quarantine: ", "warn"), _what(one), (f"  until {until_text}", "dim"))
        return 0
    invocation.out.line(("suggested, or all of it by --quarantine:", "dim"))
    for one in suggested:
        invocation.out.line(f"  {command_for(one)}")
    return 0


def reason_for(one: VarianceComponent) -> str:
    """Why it is in quarantine: what the figures say."""
    return f"flaky: {one.passed} of {one.n} passed"


def command_for(one: VarianceComponent) -> str:
    """The command that puts it in quarantine."""
    import shlex

    criterion = f" --criterion {shlex.quote(one.criterion)}" if one.criterion else ""
    return f"agenteval quarantine add {shlex.quote(one.address)}{criterion} --reason {shlex.quote(reason_for(one))}"


def _what(one: VarianceComponent) -> str:
    return one_line(f"{one.name} / {one.criterion}" if one.criterion else one.name, 100)


def _print(out: Output, found: VarianceReport, window: str, everything: bool) -> None:
    shown = found.tests if everything else found.flaky
    decided = [one for one in found.tests if one.n]
    if not decided:
        out.line(f"no run with a verdict in this window ({one_line(window, 20)}): a longer one by --window, or all")
        return
    if not shown:
        most = max(one.n for one in decided)
        out.line(f"nothing is flaky: {plural(len(decided), 'test')}, up to {plural(most, 'run')} each")
        _print_changed(out, found)
        if most < 3:
            out.line(("few runs show little: agenteval run PATH --repeat 5", "dim"))
        return
    width = min(max(len(_name(one)) for test in shown for one in (test, *found.criteria_of(test))), 44)
    head = f"{'':2}{'test':<{width}}  {'passed':>9} {'rate':>6}  {'95 % interval':<13} {'pass@3':>6} {'pass^3':>6}"
    out.line((head, "dim"))
    suites = len({test.suite_key for test in shown}) > 1
    for test in shown:
        held = f"  in quarantine until {day_of(test.quarantine.until_ms)}" if test.quarantine is not None else ""
        sign = "~" if test.flaky or test.quarantine is not None else " "
        where = f"  {one_line(test.suite, 30)}" if suites else ""
        out.line((f"{sign} {_figures(test, width)}", "warn" if test.flaky else ""), (where + held, "dim"))
        for one in found.criteria_of(test):
            if one.flaky or everything:
                out.line(f"  {_figures(one, width)}", (f"  {_share(one)}", "dim"))
        if test.by_agent:
            each = (f"{one_line(agent, 40)} {passed} of {n}" for agent, passed, n in test.by_agent)
            out.line((f"    by agent: {', '.join(each)}", "dim"))
        if test.flaky and (whose := _whose(test, found)):
            out.line((f"    {whose}", "dim"))
        if len(test.parts) > 1:
            out.line((f"    by configuration: {_by_configuration(test)}", "dim"))
    _print_changed(out, found)
    if found.cut:
        out.line((f"only the newest {NEWEST:,} of these runs were looked at: a shorter --window shows others", "warn"))


def _print_changed(out: Output, found: VarianceReport) -> None:
    """The tests that are not flaky: they do otherwise since something about them is another."""
    listed = found.changed
    if not listed:
        return
    out.line()
    out.line("not flaky, but changed with the agent's configuration or the criteria:")
    for test in listed[:_MOST_CHANGED]:
        worse = test.step == "regression"
        out.line(
            ("✗ " if worse else "✓ ", "bad" if worse else "good"),
            one_line(test.name, 60),
            (f"  {test.step}: {_by_configuration(test)}", "dim"),
        )
    if len(listed) > _MOST_CHANGED:
        out.line((f"  and {len(listed) - _MOST_CHANGED} more: --json has all of them", "dim"))


def _by_configuration(test: VarianceComponent) -> str:
    """`5 of 5, then 0 of 5`, oldest first; what ran before configurations were stored is marked."""
    told = [f"{one.passed} of {one.n}" + ("" if one.version else " (configuration not stored)") for one in test.parts]
    return ", then ".join(told)


def _whose(test: VarianceComponent, found: VarianceReport) -> str:
    flaky = [one for one in found.criteria_of(test) if one.flaky]
    if test.whose == "unknown" and flaky and not any(one.criterion_hash for one in flaky):
        return "another tool's verdicts: whose doing it is can't be told"
    return _WHOSE[test.whose]


def _name(one: VarianceComponent) -> str:
    return one_line(f"  {one.criterion}" if one.criterion else one.name)


def _figures(one: VarianceComponent, width: int) -> str:
    low, high = one.interval
    figures = one.to_json()
    at_3, hat_3 = (figures[key].get("3") for key in ("pass_at_k", "pass_hat_k"))
    interval = percent_range(low, high, " - ")
    name = f"  {one_line(one.criterion, width - 2)}" if one.criterion else one_line(one.name, width)
    return (
        f"{name:<{width}}  {f'{one.passed} of {one.n}':>9} {percent(one.rate):>6}  {interval:<13}"
        f" {percent(at_3):>6} {percent(hat_3):>6}"
    )


def _share(one: VarianceComponent) -> str:
    if one.split is not None and one.split.judge_share is not None:
        outputs = plural(one.split.outputs, "output")
        return f"judge {percent(one.split.judge_share)} of the variance ({one.split.verdicts} verdicts on {outputs})"
    if one.whose == "unknown":
        return "agent or judge: unknown" if one.criterion_hash else "another tool's verdict"
    return "agent" if one.whose == "agent" else ""
