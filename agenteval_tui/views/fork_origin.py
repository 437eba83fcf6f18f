"""The words of what a fork continues, and of what was changed. Steps count from 1, as wherever they are shown."""

from __future__ import annotations

from agenteval_tui.analysis.trajectory_alignment import arguments_json
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import cut
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.fork.answers import Outcomes
from agenteval_tui.runs.fork.model import AnyEdit, Arguments, Drop, Insert, Result, System, Text, read_origin

_VALUE = 60  # characters of a text in the words of an edit
NO_CHANGE = "nothing is changed"


def edit_text(edit: AnyEdit) -> str:
    """One edit in words: `step 5: result "order #W1 not found"`. Steps count from 1, as wherever they are shown."""
    match edit:
        case System(said):
            return f"system prompt {_quoted(said)}"
        case Text(step, said):
            return f"step {step + 1}: text {_quoted(said)}"
        case Arguments(step, value, call):
            which = f" of call {call + 1}" if call else ""
            return f"step {step + 1}: arguments{which} {cut(one_line(arguments_json(value), 1_000), _VALUE)}"
        case Result(step, said, error):
            return f"step {step + 1}: {'error' if error else 'result'} {_quoted(said)}"
        case Insert(step, role, said):
            return f"behind step {step + 1}: {role} {_quoted(said)}"
        case Drop(step):
            return f"without step {step + 1}"


def branch_text(branch: Outcomes) -> str:
    """What a branch is: what a person calls it, else its edits in words."""
    return branch.label or "; ".join(map(edit_text, branch.edits)) or f"from step {branch.step + 1}, {NO_CHANGE}"


def origin_text(row: RunRow) -> str:
    """Of a fork: `continues run 5XK2Q8AB from step 5: result "…"`; "" for any other run."""
    origin = read_origin(row.fork_of, row.fork)
    if origin is None:
        return ""
    changed = origin.label or "; ".join(map(edit_text, origin.edits)) or NO_CHANGE
    return f"continues run {short_id(origin.run)} from step {origin.step + 1}: {changed}"


def _quoted(said: str) -> str:
    return f'"{cut(one_line(said, 1_000), _VALUE)}"'
