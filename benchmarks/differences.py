"""How long a person waits for two transcripts side by side, and for the tree of a test's repetitions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from agenteval_tui.analysis.divergence import Trajectory, acts_of, first_divergence, tree_of
from agenteval_tui.analysis.trajectory_alignment import align
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.presenters.difference import DifferenceDocument
from benchmarks.table import Row

STEPS = 2_000
SCREEN = 43  # rows of the view at 140x45


def transcript(differs: Callable[[int], bool], steps: int = STEPS) -> Transcript:
    """Turns of four steps (a prompt, a call, its result, an answer). The turns in `differs` have different words."""
    messages: list[Message] = []
    calls: list[ToolCall] = []
    for turn in range(steps // 4):
        word = "other" if differs(turn) else "same"
        messages.append(Message("user", f"Where is order #W{turn} of the customer, and when does it come?"))
        messages.append(Message("assistant", "", tool_calls=(turn,)))
        arguments = {"order_id": f"#W{turn}", "with": {"items": [1, 2, 3], "note": word}}
        result = f'{{"id": "#W{turn}", "status": "{word}", "items": ["Notebook", "Pencil", "Paper"]}}'
        calls.append(ToolCall(f"c{turn}", "get_order", arguments, result))
        messages.append(Message("assistant", f"Your order #W{turn} is on its way.\nIt is the {word} as before. " * 3))
    return Transcript(tuple(messages), tuple(calls))


def opened(left: Transcript, right: Transcript) -> DifferenceDocument:
    """The difference, aligned, with the layout of its first screenful, as when the screen opens."""
    document = DifferenceDocument(align(left, right), 138)
    document.settle(0, SCREEN)
    for row in range(SCREEN):
        document.line(row)
    return document


def run(quick: bool = False) -> list[Row]:
    """Medians over a few rounds."""
    rounds = 3 if quick else 15
    left = transcript(lambda turn: False)
    rows = []
    for name, differs in (("one turn in 10", lambda turn: turn % 10 == 5), ("every turn", lambda turn: True)):
        right = transcript(differs)
        took = [_milliseconds(lambda right=right: opened(left, right)) for _ in range(rounds)]  # type: ignore[misc]
        rows.append(_row(f"difference of two transcripts of {STEPS:,} steps, {name} differs: opened", took, 150))
        rows.append(_row("  to the next difference", _stepped(opened(left, right), 30 if quick else 300), 16))
    return [*rows, _branches(100 if quick else 1_000)]


def _stepped(document: DifferenceDocument, number: int) -> list[float]:
    block = 0
    took: list[float] = []
    for _ in range(number):

        def step() -> None:
            nonlocal block
            found = document.next_difference(block, 1)
            assert found is not None
            block = found
            top = document.top(block)
            document.settle(top, SCREEN)
            for row in range(top, top + SCREEN):
                document.line(row)

        took.append(_milliseconds(step))
    return took


def _branches(runs: int) -> Row:
    kinds = [transcript(lambda turn, kind=kind: turn == 20 + kind, 200) for kind in range(5)]  # type: ignore[misc]

    def work() -> None:
        tree = tree_of(Trajectory(str(number), number % 5 == 0, acts_of(kinds[number % 5])) for number in range(runs))
        assert first_divergence(tree) is not None

    took = [_milliseconds(work) for _ in range(3)]
    return _row(f"first divergence of {runs:,} repetitions of 100 steps", took, None)


def _milliseconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


def _row(name: str, took: list[float], due: int | None) -> Row:
    middle = statistics.median(took)
    measured = f"{middle:.1f} ms (worst {max(took):.1f})"
    return Row(name, measured, f"< {due} ms" if due else "", middle < due if due else None)
