"""`agenteval stats`: pass rates with intervals, pass@k and pass^k."""

from __future__ import annotations

import click

from agenteval_tui.analysis.ab import ABResult, compare_ab
from agenteval_tui.analysis.classification_report import labelling_of
from agenteval_tui.analysis.costs import Costs, costs_of
from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.analysis.umbraco_metrics import umbraco_figures
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.invocation import (
    Invocation,
    all_projects,
    allow_one_of,
    common_options,
    json_option,
    pass_invocation,
)
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.stats import ab_document, costs_document, stats_document
from agenteval_tui.views.ab import ab_view
from agenteval_tui.views.cost import costs_view
from agenteval_tui.views.execution import title_text
from agenteval_tui.views.model import paragraphs
from agenteval_tui.views.stats import labelling_view, stats_view, umbraco_view

_WIDE = 100  # columns of a terminal
_MOST_K, _MOST_K_NARROW = 6, 3


@click.command("stats")
@click.argument("execution", required=False, shell_complete=shell_completion.executions)
@click.option("--last", is_flag=True, help="The newest execution (the default).")
@click.option("--count-errors", is_flag=True, help="Count runs that ended in an error as not passed.")
@click.option("--costs", is_flag=True, help="Show tokens and cost by test, agent and criterion.")
@click.option("--ab", is_flag=True, help="For a run with --ab: show both sides, their difference and what it proves.")
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation, execution: str | None, last: bool, count_errors: bool, costs: bool, ab: bool, as_json: bool
) -> int:
    """Show the figures of EXECUTION (an id or the start of one, or `last`), by test and overall.

    Intervals are 95 %: Wilson's for a test; overall they are clustered by test, because repetitions of one test are not
    independent. A test that stopped early has the interval of its confidence sequence. Errors are counted separately.
    """
    if execution and last:
        raise click.UsageError("give an execution or --last, not both")
    allow_one_of("costs", "ab")
    if costs or ab:
        return _costs_or_ab(invocation, execution or "last", costs=costs, count_errors=count_errors, as_json=as_json)
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).execution(execution or "")
        steps = store.steps_of_execution(row.id)
        runs = store.runs_of_execution(row.id)
        stats = execution_stats(runs, count_errors=count_errors, steps=steps, imported=row.kind == "import")
        labelling = labelling_of(store, runs)
        umbraco = umbraco_figures(row.options, runs)
    if as_json:
        invocation.out.json(stats_document(row.id, stats, labelling, umbraco))
    else:
        out = invocation.out
        out.view(paragraphs([title_text(row)]))
        out.view(stats_view(stats, _MOST_K if out.width >= _WIDE else _MOST_K_NARROW))
        out.view(umbraco_view(umbraco))
        if labelling is not None:
            out.view(labelling_view(labelling))
    return 0


def _costs_or_ab(invocation: Invocation, reference: str, *, costs: bool, count_errors: bool, as_json: bool) -> int:
    """What it used, or how its two sides differ."""
    figures: Costs | ABResult
    with invocation.store(to_look=True) as store:
        row = invocation.references(store).execution(reference)
        runs = store.runs_of_execution(row.id)
        if costs:
            figures = costs_of(store.costs(row.id), runs)
        elif row.options.get("ab"):
            figures = compare_ab(runs, count_errors=count_errors)
        else:
            raise AgentevalError("this execution does not compare two sides", fix="agenteval run PATH --ab NAME NAME")
    if as_json:
        invocation.out.json(
            costs_document(row.id, figures) if isinstance(figures, Costs) else ab_document(row.id, figures)
        )
        return 0
    invocation.out.view(paragraphs([title_text(row)]))
    invocation.out.view(costs_view(figures) if isinstance(figures, Costs) else ab_view(figures, tests=True))
    return 0
