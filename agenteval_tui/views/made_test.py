"""What is shown of a test that was made of runs: where it is, what it expects, and what to do with it."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.analysis.drafted_test import GoodRuns, MadeTest
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.suites.yaml.write import block_item
from agenteval_tui.views.model import Node, Paragraph, Text, Tree, View, text


def made_test_view(made: MadeTest, runs: GoodRuns) -> View:
    """The test: its text where it was not written, else its criteria; then what to know of it."""
    head = "new test " if made.written else "it would be test "
    first = Paragraph(text((head, "dim"), (one_line(made.id, 80), "bold"), f" in {one_line(str(made.path), 300)}"))
    notes = tuple(map(Paragraph, _notes(made, runs)))
    if not made.written:
        return (first, Tree((Node((), block=tuple(block_item(made.test, column=2, eol="\n").splitlines())),)), *notes)
    return (first, Tree(tuple(Node(text(one_line(name, 200)), sign=("·", "dim")) for name in made.criteria)), *notes)


def _notes(made: MadeTest, runs: GoodRuns) -> Iterator[Text]:
    if runs.failed:
        listed = ", ".join(map(short_id, runs.failed[:5]))
        word = "run" if len(runs.failed) == 1 else "runs"
        yield text(("! ", "warn"), f"{word} {listed} did not pass, and these criteria expect what it did")
    where = one_line(str(made.path), 300)
    if made.agentless:
        yield text(("! ", "warn"), f"no agent: agenteval run {where} --agent NAME, or write `agent:` into it")
    elif made.written:
        yield text(
            (f"agenteval run {where} --test {one_line(made.id, 80)}", "bold"),
            " runs it",
            (
                "; sharpen its \
criteria",
                "dim",
            ),
        )
