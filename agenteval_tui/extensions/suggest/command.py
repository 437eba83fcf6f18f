"""`agenteval suggest`: criteria from runs that people labelled, or that a judge has judged."""

from __future__ import annotations

from collections.abc import Mapping

import click

from agenteval_tui.cli import shell_completion
from agenteval_tui.cli.declared_options import declared
from agenteval_tui.cli.invocation import Invocation, all_projects, common_options, json_option, pass_invocation
from agenteval_tui.extensions.suggest.document import suggested_document
from agenteval_tui.extensions.suggest.search import SuggestOptions, check, suggest
from agenteval_tui.extensions.suggest.stored_examples import TestExamples, examples_of_execution, examples_of_test
from agenteval_tui.extensions.suggest.view import suggestions_view
from agenteval_tui.history.references import References


@click.command("suggest")
@click.argument("reference", metavar="[TEST[/CRITERION]]", default="", shell_complete=shell_completion.references)
@click.option(
    "--execution",
    metavar="REF",
    help="Use the runs of this execution (an id, or `last`) instead of a test's.",
    shell_complete=shell_completion.executions,
)
@declared(SuggestOptions, "from_judge")
@click.option("--good", multiple=True, metavar="RUN", help="Count this run as good, without storing a label.")
@click.option("--bad", multiple=True, metavar="RUN", help="Count this run as bad, without storing a label.")
@declared(SuggestOptions, "most")
@json_option
@all_projects("--all")
@common_options
@pass_invocation
def command(
    invocation: Invocation,
    reference: str,
    execution: str | None,
    from_judge: bool,
    good: tuple[str, ...],
    bad: tuple[str, ...],
    most: int,
    as_json: bool,
) -> int:
    """Suggest criteria for TEST: the smallest configs that agree with the labels of its runs, best first.

    Label runs with `agenteval label RUN passed` or `failed`: two good runs and one bad run are enough. With good runs
    only, it shows what these share. Labels of the run as a whole count; with /CRITERION (a number, a name or the start
    of one), the labels of that criterion count. With --from-judge, it looks for a criterion that says what the judge
    says, without asking it.

    TEST is a test's id (FILE::ID if several suites have it), or one of its runs; without it, the test of the first
    --good. No model is asked and nothing is written. See `agenteval docs suggest`.
    """
    if bool(reference or good) == bool(execution):
        raise click.UsageError("name a test, or an execution by --execution")
    with invocation.store(to_look=True) as store:
        find = invocation.references(store)
        opinions = {find.run(run).id: True for run in good} | {find.run(run).id: False for run in bad}
        test_examples = _given(find, reference or "".join(good[:1]), execution or "", from_judge, opinions)
        suggestions, checked = suggest(test_examples.examples, most), check(test_examples.examples)
    if as_json:
        invocation.out.json(suggested_document(suggestions, test_examples, checked))
    else:
        invocation.out.view(suggestions_view(suggestions, test_examples, checked, invocation.db_option))
    return 0


def _given(
    find: References, reference: str, execution: str, from_judge: bool, opinions: Mapping[str, bool]
) -> TestExamples:
    if execution:
        return examples_of_execution(find.store, find.execution(execution).id, from_judge=from_judge, opinions=opinions)
    row, criterion = find.address(reference)
    key, test = row.suite_key, row.test_id
    return examples_of_test(find.store, key, test, criterion=criterion, from_judge=from_judge, opinions=opinions)
