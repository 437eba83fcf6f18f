"""What is shown of a test that was made of runs: where it is, what it expects, and what to do with it."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.drafted_test import DraftedTest, GoodRuns
from agenteval_tui.core.display import command_line, one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.suites.yaml.write import block_item
from agenteval_tui.views.model import Node, Paragraph, Text, Tree, View, text


def drafted_test_view(drafted_test: DraftedTest, runs: GoodRuns) -> View:
    """The test: its text where it was not written, else its criteria; then what to know of it."""
    head = "new test " if drafted_test.written else "it would be test "
    first = Paragraph(
        text((head, "dim"), (one_line(drafted_test.id, 80), "bold"), f" in {one_line(str(drafted_test.path), 300)}")
    )
    notes = tuple(map(Paragraph, _notes(drafted_test, runs)))
    if not drafted_test.written:
        return (
            first,
            Tree((Node((), block=tuple(block_item(drafted_test.test, column=2, eol="\n").splitlines())),)),
            *notes,
        )
    return (
        first,
        Tree(tuple(Node(text(one_line(name, 200)), sign=("·", "dim")) for name in drafted_test.criteria)),
        *notes,
    )


def _notes(drafted_test: DraftedTest, runs: GoodRuns) -> Iterator[Text]:
    if runs.failed:
        listed = ", ".join(map(short_id, runs.failed[:5]))
        word = "run" if len(runs.failed) == 1 else "runs"
        yield text(("! ", "warn"), f"{word} {listed} did not pass, and these criteria expect what it did")
    run = command_line("agenteval", "run", str(drafted_test.path))
    if drafted_test.agentless:
        yield text(("! ", "warn"), f"no agent: {run} --agent NAME, or write `agent:` into it")
    elif drafted_test.written:
        command = f"{run} {command_line('--test', drafted_test.id)}"
        yield text((command, "bold"), " runs it", ("; sharpen its criteria", "dim"))
