"""Taking up a conversation in the middle: what was called since the customer spoke last has its recorded results."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.agents.shop.protocol import Talk, Turn
from agenteval_tui.transcripts.model import Message, ToolCall

Made = list[tuple[str, ToolOutcome]]
"""The calls of one message: the tool's name, and what it gave."""
_CHANCES = 64  # ways that are tried until one is the recorded one


def made_since(messages: Sequence[Message], calls: Sequence[ToolCall]) -> list[Made]:
    """The calls that were made since the last user message, message by message; those without a result are none."""
    last = max((number for number, message in enumerate(messages) if message.role == "user"), default=0)
    answers = {message.tool_call: message.content for message in messages if message.tool_call is not None}
    rounds: list[Made] = []
    for message in messages[last:]:
        own = [(calls[at], answers.get(at, calls[at].result)) for at in message.tool_calls if at < len(calls)]
        outcomes = [(call.name, ToolOutcome(text, call.status == "error")) for call, text in own if text is not None]
        if outcomes:
            rounds.append(outcomes)
    return rounds


def take_up(start: Callable[[int], Talk], rounds: Sequence[Made]) -> tuple[Talk, Turn, Made]:
    """The assistant's program, told what was called, with the turn that comes next. `start` gives the program; its
    number is one of chance, 0 for the one that is meant.

    Chance had a say in which calls were made, so the first number is taken with which the program makes them. Where
    there is none (a call was left out, or is not what the program does), the calls that are left are given back: their
    results are for whatever call of that name comes.
    """
    for number in range(_CHANCES if rounds else 1):
        talk = start(number)
        turn = _told(talk, rounds)
        if turn is not None:
            return talk, turn, []
        talk.close()
    talk = start(0)
    return talk, next(talk), [call for calls in rounds for call in calls]


def _told(talk: Talk, rounds: Sequence[Made]) -> Turn | None:
    turn = next(talk)
    for calls in rounds:
        if [call.name for call in turn.calls] != [name for name, _ in calls]:
            return None
        try:
            turn = talk.send(tuple(outcome for _, outcome in calls))
        except StopIteration:
            return None
    return turn


def known_outcome(name: str, outcomes: Made) -> ToolOutcome | None:
    """The recorded outcome of the first call of that name, which is taken out of `outcomes`; None: there is none."""
    for place, (tool_name, outcome) in enumerate(outcomes):
        if tool_name == name:
            del outcomes[place]
            return outcome
    return None
