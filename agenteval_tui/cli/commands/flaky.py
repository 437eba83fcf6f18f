"""`agenteval flaky`: tests that pass sometimes, whose doing that is, and what might go into quarantine."""

from __future__ import annotations

from pathlib import Path

import click

from agenteval_tui.analysis.time_buckets import window_ms
from agenteval_tui.analysis.trends import TrendQuery
from agenteval_tui.analysis.variance import ledger
from agenteval_tui.cli.declared_options import Until, selected_agents, selected_tags, selected_tests
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.cli.named_tests import paths_and_tests
from agenteval_tui.core.ids import now_ms
from agenteval_tui.formats.documents.flaky import flaky_document
from agenteval_tui.history import quarantines
from agenteval_tui.history.current_user import current_user
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.views.flaky import flaky_view, reason_text, suggestions_view


@click.command("flaky")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--window", default="30d", metavar="TIME", help="How far to look back: 24h, 30d (the default), 8w, all.")
@selected_tests()
@selected_tags
@selected_agents()
@click.option("--all", "everything", is_flag=True, help="List all tests and criteria, steady ones too.")
@click.option("--count-errors", is_flag=True, help="Count runs that ended in an error as not passed.")
@click.option("--quarantine", is_flag=True, help="Quarantine the suggested tests and criteria.")
@click.option("--until", "until_ms", type=Until(), help="With --quarantine: until when (default: 14d).")
@json_option
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
    """List the flaky tests of the suites at PATH (default: this project's), least predictable first.

    A test is flaky when some of its runs passed and others did not, with the same configuration of the agent and the
    same version of the criteria. A test that always passes in one execution, or with one configuration, and always
    fails in the next is not flaky but changed: it is listed separately with a p-value, and not suggested for
    quarantine. For each flaky test you see how often it passed, Wilson's 95 % interval, pass@3 and pass^3, its flaky
    criteria, and the source: the agent, whose outputs differ, or the judge, which gives one output different verdicts.
    FILE::TEST is one test of a suite.
    """
    if until_ms is not None and not quarantine:
        raise click.UsageError("--until needs --quarantine")
    paths, tests = paths_and_tests(paths, tests)
    span, now = window_ms(window), now_ms()
    query = TrendQuery(
        None if span is None else now - span,
        now + 1,
        paths=paths,
        tests=tests,
        tags=tags,
        agents=agents,
        count_errors=count_errors,
        projects=() if paths else invocation.projects,
    )
    until = until_ms if until_ms is not None else quarantines.default_until()
    with invocation.store(to_look=not quarantine) as store:
        nothing = "" if paths else invocation.why_nothing(store)
        report = ledger(store, query, now)
        suggested = report.suggestions()
        if quarantine:
            for component in suggested:
                quarantines.put(
                    store,
                    Quarantine(
                        component.suite_key,
                        component.test_id,
                        until,
                        criterion=component.criterion,
                        reason=reason_text(component),
                        who=current_user(),
                    ),
                ).result()
    if nothing and as_json:
        invocation.note(nothing)
    if as_json:
        listed = report.tests if everything else report.flaky
        invocation.out.json(flaky_document(report, listed, suggested))
        return 0
    if nothing:
        invocation.out.line(nothing)
        return 0
    invocation.out.view(flaky_view(report, window, everything=everything))
    invocation.out.view(suggestions_view(suggested, until if quarantine else None, invocation.db_option))
    return 0
