"""`agenteval compare`: two executions, agents, variations or a baseline; what got worse first, and who changed it."""

from __future__ import annotations

import click

from agenteval_tui.analysis.attribution import Attributed, attribute
from agenteval_tui.analysis.comparison import compare, metric_changes
from agenteval_tui.analysis.comparison_model import Comparison, MetricChange, TestKey
from agenteval_tui.analysis.comparison_sides import BASELINE, Sides, sides_of
from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import selected_agents
from agenteval_tui.cli.invocation import (
    Invocation,
    all_projects,
    allow_one_of,
    common_options,
    json_option,
    pass_invocation,
)
from agenteval_tui.formats.documents.comparison import comparison_document
from agenteval_tui.history.quarantines import active
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.views.comparison import comparison_page, comparison_view
from agenteval_tui.views.markdown import markdown

MOST = 100
"""Tests whose change is attributed: their transcripts are read and graded crosswise."""


@click.command("compare")
@click.argument("a", required=False, default="", shell_complete=shell_completion.sides)
@click.argument("b", required=False, default="", shell_complete=shell_completion.executions)
@selected_agents("Only this agent's runs; given twice, compare the two.")
@click.option(
    "--variation",
    "variations",
    multiple=True,
    metavar="V",
    help="Only this variation (`default`: none); given twice, compare the two.",
    shell_complete=shell_completion.variations,
)
@click.option("--all", "everything", is_flag=True, help="Show unchanged tests too.")
@click.option("--quick", is_flag=True, help="Do not look for the cause of each change; read no transcripts.")
@json_option
@click.option("--md", "as_markdown", is_flag=True, help="Print Markdown, to paste into a review.")
@all_projects()
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    a: str,
    b: str,
    agents: tuple[str, ...],
    variations: tuple[str, ...],
    everything: bool,
    quick: bool,
    as_json: bool,
    as_markdown: bool,
) -> int:
    """Compare execution B (default: the newest) with A (default: the baseline of its tests, or the previous execution
    if there is none).

    A and B are ids or the start of one, names, metadata or commits (the newest execution that has them), a test's id
    (its newest execution), `last`, or `baseline` for A. Each test is compared with itself, row by row and repetition by
    repetition; errors are not verdicts. For each test that changed, the old output is graded with the new criterion and
    the new output with the old one: that shows what caused the change, the agent, the criterion, both, or the judge's
    noise. No agent or judge is called.
    """
    allow_one_of("as_json", "as_markdown")
    with invocation.store(to_look=True) as store:
        references = invocation.references(store)
        # With A and two agents or variations, both sides are in A.
        if not b and not (a and (len(agents) > 1 or len(variations) > 1)):
            b = references.execution().id
        a, b = (reference if reference in ("", BASELINE) else _full_id(references, reference) for reference in (a, b))
        left, right = sides_of(store, Sides(a, b, agents, variations))
        comparison = compare(store, left, right, quarantined=active(store))
        comparison.check_in_common()
        attributed: dict[TestKey, Attributed | None] = {}
        metrics: dict[TestKey, dict[str, tuple[MetricChange, ...]]] = {}
        if not quick:
            attributed, metrics = _looked_at(store, comparison, with_metrics=as_json)
    if as_json:
        invocation.out.json(comparison_document(comparison, attributed, metrics))
    elif as_markdown:
        page = comparison_page(comparison, attributed, everything=everything)
        invocation.out.line(markdown(page).rstrip("\n"))
    else:
        invocation.out.view(
            comparison_view(comparison, attributed, everything=everything, options=invocation.db_option)
        )
    return 0


def _full_id(references: References, reference: str) -> str:
    """Of an execution or a run. A test is compared with itself in another execution, and not by one of its runs."""
    if references.test(reference) is not None:
        return references.execution(reference).id
    return references.either(reference).id


def _looked_at(
    store: Store, comparison: Comparison, *, with_metrics: bool
) -> tuple[dict[TestKey, Attributed | None], dict[TestKey, dict[str, tuple[MetricChange, ...]]]]:
    flipped = [test for test in comparison.tests if test.pairs][:MOST]
    attributed = {change.key: attribute(store, change.pairs) for change in flipped}
    if not with_metrics:
        return attributed, {}
    states = ("worse", "better", "mixed", "score", "criteria")
    changed = [test for test in comparison.tests if test.state in states][:MOST]
    return attributed, {change.key: metric_changes(store, change) for change in changed}
