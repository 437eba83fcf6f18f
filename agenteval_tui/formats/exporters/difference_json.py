"""The difference of two runs as JSON: what `agenteval show RUN --diff RUN2 --json` prints."""

from __future__ import annotations

from typing import Any

from agenteval_tui.analysis.text_diff import compare_arguments
from agenteval_tui.analysis.trajectory_alignment import Alignment, Pair, Step
from agenteval_tui.history.records import RunRow

VERSION = 1
DIGITS = 6  # of a score: a mean has no more to say, and what follows is noise of the arithmetic


def difference_document(left: RunRow, right: RunRow, alignment: Alignment) -> dict[str, Any]:
    """Both runs, and all steps in order; of calls that both made, the arguments that differ. Texts are raw."""
    return {
        "version": VERSION,
        "left": _run(left),
        "right": _run(right),
        "differences": len(alignment.differences),
        "steps": [_pair(pair) for pair in alignment.pairs],
    }


def _run(row: RunRow) -> dict[str, Any]:
    return {
        "run": row.id,
        "test": row.test_id,
        "variation": row.variation,
        "repetition": row.repetition,
        "agent": row.agent,
        "status": row.status,
        "score": None if row.score is None else round(row.score, DIGITS),
    }


def _pair(pair: Pair) -> dict[str, Any]:
    step = pair.step
    made: dict[str, Any] = {
        "state": pair.state,
        "kind": step.kind,
        "tool": step.name,
        "left": _step(pair.left),
        "right": _step(pair.right),
    }
    both = (pair.left, pair.right)
    if pair.state == "changed" and step.kind == "call":
        calls = [one.call for one in both if one is not None and one.call is not None]
        made["arguments"] = [
            {"path": one.path, "state": one.state, "left": one.left, "right": one.right}
            for one in compare_arguments(calls[0].arguments, calls[1].arguments)
        ]
    return made


def _step(step: Step | None) -> dict[str, Any] | None:
    return None if step is None else {"index": step.place[1], "text": step.text}
