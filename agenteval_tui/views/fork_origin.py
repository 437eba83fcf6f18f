"""The words of what a fork continues, and of what was changed. Steps count from 1, as wherever they are shown."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.agents.tools.changes import ToolChanges
from agenteval_tui.analysis.trajectory_alignment import arguments_json
from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import abridged, cut
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.runs.fork.model import AnyEdit, Arguments, Drop, Insert, Result, System, Text, Tools, read_origin
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Transcript

_BEFORE = 12  # characters before the place where a text differs
_VALUE = 60  # characters of a text in the words of an edit
_NAMED = 4  # tools in the words of an edit
NO_CHANGE = "unchanged"


def edit_text(edit: AnyEdit, was: Transcript | None = None) -> str:
    """One edit in words: `step 5: result "order #W1 not found"`. Steps count from 1, as wherever they are shown.

    `was`: the transcript that was edited; of a long text the words then begin where it differs from what was there.
    """
    match edit:
        case System(content):
            return f"system prompt {_quoted(content, _prompt(was))}"
        case Text(step, content):
            return f"step {step + 1}: text {_quoted(content, _content(was, step))}"
        case Arguments(step, value, call):
            which = f" of call {call + 1}" if call else ""
            return f"step {step + 1}: arguments{which} {cut(one_line(arguments_json(value), 1_000), _VALUE)}"
        case Result(step, content, error):
            return f"step {step + 1}: {'error' if error else 'result'} {_quoted(content, _content(was, step))}"
        case Insert(step, role, content):
            return f"after step {step + 1}: {role} {_quoted(content)}"
        case Drop(step):
            return f"without step {step + 1}"
        case Tools(changes):
            return tools_text(changes)


def tools_text(changes: ToolChanges) -> str:
    """Changes of an agent's tools in words: `without the tools a, b; another description of tool c`."""
    verbs = (("without", changes.without), ("another description of", tuple(changes.changed)))
    return "; ".join(f"{verb} {_tools(names)}" for verb, names in verbs if names)


def branch_text(branch: Outcomes, was: Transcript | None = None) -> str:
    """What a branch is: what a person calls it, else its edits in words (`was`: of this transcript)."""
    return (
        branch.label
        or "; ".join(edit_text(edit, was) for edit in branch.edits)
        or f"from step {branch.step + 1}, {NO_CHANGE}"
    )


def agent_label(agent: str, edits: Sequence[AnyEdit], label: str = "") -> str:
    """What a branch is called that another agent continues."""
    changed = label or "; ".join(map(edit_text, edits))
    return f"agent {agent}{f'; {changed}' if changed else ''}"


def origin_text(row: RunRow) -> str:
    """Of a fork: `continues run 5XK2Q8AB from step 5: result "…"`; "" for any other run."""
    origin = read_origin(row.fork_of, row.fork)
    if origin is None:
        return ""
    changed = origin.label or "; ".join(map(edit_text, origin.edits))
    if origin.purpose == "change":
        return f"run {short_id(origin.run)} again, with the agent's code as it was then"
    if origin.purpose == "shrink":  # what was taken out of the conversation is seen in it
        changed = f"parts removed{f'; {changed}' if changed else ''}"
    changed = changed or NO_CHANGE
    return f"continues run {short_id(origin.run)} from step {origin.step + 1}: {changed}"


def _tools(names: Sequence[str]) -> str:
    listed = abridged([one_line(name, 40) for name in names], _NAMED)
    return f"the {'tools' if len(names) > 1 else 'tool'} {listed}"


def _content(was: Transcript | None, step: int) -> str:
    return was.messages[step].content if was is not None and step < len(was.messages) else ""


def _prompt(was: Transcript | None) -> str:
    messages = was.messages if was is not None else ()
    return next((message.content for message in messages if message.role in SYSTEM_ROLES), "")


def _quoted(content: str, was: str = "") -> str:
    """A text in quotes on one line; one that begins as `was` does from a little before where it differs."""
    # Longer than what is shown: the difference may be far from the beginning.
    line, old = one_line(content, 4_000), one_line(was, 4_000)
    alike = common_start(line, old)
    if alike > _VALUE // 2 and len(line) > _VALUE:
        line = f"…{line[max(alike - _BEFORE, 0) :]}"
    return f'"{cut(line, _VALUE)}"'
