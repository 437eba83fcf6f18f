"""`agenteval trends`: how tests do over time; an alert when a window's pass rate is under its threshold."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec.structs import replace

from agenteval_tui.analysis.time_buckets import window_label, window_ms
from agenteval_tui.analysis.trend_alerts import AlertCheck, watch, watch_feedback
from agenteval_tui.analysis.trend_scores import extras
from agenteval_tui.analysis.trends import MEASURES, TrendQuery, trend
from agenteval_tui.cli.declared_options import selected_agents, selected_tags, selected_tests
from agenteval_tui.cli.exit_codes import read_rate
from agenteval_tui.cli.invocation import (
    Invocation,
    all_projects,
    allow_one_of,
    common_options,
    json_option,
    pass_invocation,
)
from agenteval_tui.cli.named_tests import paths_and_tests
from agenteval_tui.core.errors import INFRASTRUCTURE
from agenteval_tui.core.ids import now_ms
from agenteval_tui.formats.documents.trends import trends_csv, trends_document
from agenteval_tui.history.execution_names import check_group
from agenteval_tui.history.feedback import check_key
from agenteval_tui.views.trends import alert_view, regrading_text, trends_view

_FIRED = 1
_SCALE = 31  # cells of a drawn rate, from 0 to 100 %
_ROOM_FOR_SCALE = 115  # columns of a terminal


@click.command("trends")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--window", default="30d", metavar="TIME", help="How far to look back: 24h, 7d, 30d (the default), 8w, all."
)
@click.option(
    "--by",
    type=click.Choice(("execution", "hour", "day", "week")),
    default=None,
    help="The period that a line covers (default: hours, days or weeks, depending on the window).",
)
@click.option("--group", metavar="BY", help="Group by suite, test, tag, agent, name, commit or meta.KEY; worst first.")
@click.option(
    "--suite", "suites", multiple=True, metavar="SUITE", help="Only this suite (name or file); may be repeated."
)
@selected_tests()
@selected_tags
@selected_agents()
@click.option("--alert-below", metavar="RATE", help="Exit code 1 when the window's pass rate is below this (0.7, 70%).")
@click.option(
    "--alert-feedback",
    multiple=True,
    metavar="KEY=SCORE",
    help="Exit code 1 when the mean of this feedback is below SCORE (user_satisfaction=0.7); may be repeated.",
)
@click.option("--alert-empty", is_flag=True, help="With an alert: exit code 1 also when nothing ran, or was scored.")
@click.option("--count-errors", is_flag=True, help="Count runs that ended in an error as not passed.")
@click.option(
    "--regrade", is_flag=True, help="Grade the stored runs with today's criteria; no agent and no judge is asked."
)
@json_option
@click.option("--csv", "as_csv", is_flag=True, help="Print a table as CSV: one line per period and group.")
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    paths: tuple[Path, ...],
    window: str,
    by: str | None,
    group: str | None,
    suites: tuple[str, ...],
    tests: tuple[str, ...],
    tags: tuple[str, ...],
    agents: tuple[str, ...],
    alert_below: str | None,
    alert_feedback: tuple[str, ...],
    alert_empty: bool,
    count_errors: bool,
    regrade: bool,
    as_json: bool,
    as_csv: bool,
) -> int:
    """Show the runs of a time window: pass rate with its 95 % interval, latency, tokens, cost, steps, the causes of
    failures, the scores of each criterion, and feedback. PATH: only the suites there (files or folders), or FILE::TEST.

    With --alert-below, the exit code is 1 when the pass rate of the whole window (or of any group, with --group) is
    below RATE; tests and criteria in quarantine do not count. With --alert-feedback, it is 1 when the mean of these
    scores is below SCORE. It is 3 when every run ended in an error, and 0 when nothing ran, unless you give
    --alert-empty. `agenteval docs trends` has a line for cron and a job for CI.
    """
    paths, tests = paths_and_tests(paths, tests)
    allow_one_of("as_json", "as_csv")
    limits = _limits(alert_feedback)
    if alert_empty and alert_below is None and not limits:
        raise click.UsageError("--alert-empty needs --alert-below or --alert-feedback")
    if regrade and alert_below is not None:
        raise click.UsageError("an alert uses the stored verdicts: give --regrade or --alert-below")
    below = read_rate(alert_below, "--alert-below") if alert_below is not None else None
    span, now = window_ms(window), now_ms()
    query = TrendQuery(
        None if span is None else now - span,
        # Runs of this millisecond count: the end is exclusive.
        until_ms=now + 1,
        by=by,  # type: ignore[arg-type]
        group=check_group(group) if group else "",
        paths=paths,
        suites=suites,
        tests=tests,
        tags=tags,
        agents=agents,
        count_errors=count_errors,
        # Suites that are named are meant, wherever they are.
        projects=() if paths else invocation.projects,
    )
    with invocation.store(to_look=True) as store:
        nothing = "" if paths else invocation.why_nothing(store)
        again = None
        if regrade:
            # Here and not above: grading takes 93 ms to import.
            from agenteval_tui.analysis.trend_regrade import regrade_history, regraded_trend

            again = regrade_history(store, query)
            result, more = regraded_trend(store, query, MEASURES, again)
        else:
            result, more = trend(store, query, MEASURES), extras(store, query)
        watched = watch(store, query, below, now) if below is not None else None
        if limits:
            watched = replace(watched or AlertCheck((), ()), feedback=watch_feedback(more.feedback, limits))
    if nothing and (as_json or as_csv):
        invocation.note(nothing)
    if as_json:
        invocation.out.json(trends_document(result, more, watched, again))
    elif as_csv:
        invocation.out.line(trends_csv(result).rstrip())
    elif nothing:
        invocation.out.line(nothing)
    else:
        if again is not None:
            invocation.out.line((regrading_text(again), "bold"))
        # Where the table would not have its room, no rates are drawn.
        scale = _SCALE if invocation.out.is_terminal and invocation.out.width >= _ROOM_FOR_SCALE else 0
        invocation.out.view(trends_view(result, more, window_label(span), scale, invocation.db_option))
    if watched is None:
        return 0

    # A document on stdout stays one: what a person wants to know of the alert goes to stderr then.
    output = invocation.err if as_json or as_csv else invocation.out
    output.view(alert_view(watched, window_label(span)))
    return _code(watched, alert_empty)


def _limits(words: tuple[str, ...]) -> dict[str, float]:
    """The limits of feedback by key. Raises `AgentevalError`, `click.UsageError`."""
    limits = {}
    for word in words:
        key, sign, score = word.partition("=")
        if not sign:
            raise click.UsageError(f"--alert-feedback {word} has no limit: write KEY=SCORE, such as {word}=0.7")
        limits[check_key(key)] = read_rate(score, "--alert-feedback")
    return limits


def _code(watched: AlertCheck, alert_empty: bool) -> int:
    states = {*(alert.state for alert in watched.alerts), *(alert.state for alert in watched.feedback)}
    if "alert" in states or ("empty" in states and alert_empty):
        return _FIRED
    return INFRASTRUCTURE if "errors" in states else 0
