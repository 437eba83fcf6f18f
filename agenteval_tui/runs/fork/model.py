"""What a fork is: the run that it continues, the step from which it does, and what was changed before.

A step is the index of a message in the run's transcript, from 0.
"""

from __future__ import annotations

import json
from typing import Any, Literal

from msgspec import MsgspecError, Struct, convert, to_builtins
from msgspec.json import Decoder

from agenteval_tui.agents.tools.changes import ToolChanges
from agenteval_tui.history.blobs import json_text

Purpose = Literal["fork", "tape", "blame", "shrink", "change"]
"""Who asked: a person; a program that was replayed up to a change; the search for the decisive step; the search for the
smallest input; a save of the agent's code, after which the whole run was made again."""
Role = Literal["system", "user", "assistant"]


class Edit(Struct, frozen=True, tag_field="edit", tag=str.lower):
    """The base of all edits. An edit names steps of the transcript as it was, whatever other edits do."""


class System(Edit, frozen=True):
    """Another system prompt, in place of all there are."""

    text: str


class Text(Edit, frozen=True):
    """Another text of a message of the user, the assistant or the system."""

    step: int
    text: str


class Arguments(Edit, frozen=True):
    """Other arguments of a call; its recorded result stands. `call`: which of the message's calls, from 0."""

    step: int
    arguments: Any
    call: int = 0


class Result(Edit, frozen=True):
    """Another result of a tool. `step` is the message with the result. `error`: the tool failed."""

    step: int
    text: str
    error: bool = False


class Insert(Edit, frozen=True):
    """One more message behind a step (and behind the results of its calls)."""

    step: int
    role: Role
    text: str


class Drop(Edit, frozen=True):
    """Removes a message: with its calls and their results, or, if the message is a result, with its call."""

    step: int


class Tools(Edit, frozen=True):
    """Changes the tools: removes some of the agent's tools, or changes their descriptions."""

    changes: ToolChanges


AnyEdit = System | Text | Arguments | Result | Insert | Drop | Tools


class ForkOrigin(Struct, frozen=True, omit_defaults=True):
    """The origin of a run that continues another run.

    `run` is the id of the other run, and `step` its last step that is kept. `question` is the same for all runs with
    the same conversation: their answers are answers to one question.
    """

    run: str
    step: int
    edits: tuple[AnyEdit, ...] = ()
    purpose: Purpose = "fork"
    question: str = ""
    label: str = ""
    """A person's name for this branch; "": none."""
    answers: int | None = None
    """How many recorded answers its program gets from the tape of the other run; None: it is told the conversation."""


_decoder = Decoder(ForkOrigin)


def encode_origin(origin: ForkOrigin) -> str:
    """The origin as JSON text, as the history keeps it: people's words may have half of a surrogate pair."""
    return json_text(to_builtins(origin))


def read_origin(run: str, text: str) -> ForkOrigin | None:
    """The origin in what the history keeps of a run (`RunRow.fork_of`, `RunRow.fork`); None: it is not a fork. One that
    can't be read says only which run it was."""
    if not run:
        return None
    try:
        return _decoder.decode(text)
    except MsgspecError:
        pass
    try:
        return convert(json.loads(text), ForkOrigin)  # it takes NaN and halves of surrogate pairs
    except (ValueError, RecursionError, MsgspecError):
        return ForkOrigin(run, 0)
