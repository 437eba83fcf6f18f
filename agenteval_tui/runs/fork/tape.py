"""Continuing a recorded run from its tape: its program starts anew, and gets the recorded answers up to a step.

No server is asked for these, and they cost nothing. What the program itself does until then, such as calling its own
tools, it does again. If it asks for something else than it did, the continuation is an error: it is none of that step.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from agenteval_tui.agents.models.requests import RequestReader
from agenteval_tui.agents.recording.answers import Miss, RecordedAnswers
from agenteval_tui.agents.recording.cassette import Cassette
from agenteval_tui.agents.recording.conversation import asked_of, transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.mcp_requests import is_mcp
from agenteval_tui.agents.recording.options import AUTO, MODEL
from agenteval_tui.agents.recording.playback import CassetteIndex, Playback
from agenteval_tui.agents.registry import capture_of
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.model import ForkOrigin
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.tapes import tape_of
from agenteval_tui.transcripts.model import Transcript

_CAPTURES = (MODEL, AUTO)
"""The captures that answer from a tape."""


def answers_before(store: Store, row: RunRow, agent: AgentPlan) -> Mapping[int, int]:
    """By message of the run's transcript that is a model's answer: how many answers of the tape stand before it. {}:
    the run has no tape, its agent's requests are not captured, or the tape can't tell."""
    if capture_of(agent.config) not in _CAPTURES or not store.tape(row.recorded):
        return {}
    answered = _answered(tape_of(store, row))
    retold, transcript = transcript_of(answered), store.transcript(row.id)
    references = retold.requests.references if retold.requests is not None else ()
    # Answers are found by their place in the conversation, so both must be the same.
    if len(references) != len(answered) or not _is_same(retold, transcript):
        return {}
    return {reference.answer: number for number, reference in enumerate(references) if reference.answer is not None}


def tape_answers(store: Store, origin: ForkOrigin | None) -> RecordedAnswers | None:
    """What answers the requests of a run that continues another from its tape; None: it does not. Raises
    `AgentevalError` if the tape is gone."""
    if origin is None or origin.answers is None:
        return None
    index = CassetteIndex(tape_of(store, store.run(origin.run)))
    return RecordedAnswers(partial(_Beginning, index, origin.answers), live=True, stands=origin.answers)


class _Beginning:
    """The first `answers` answers of models on a tape, and what servers of tools answered between them."""

    def __init__(self, index: CassetteIndex, answers: int) -> None:
        self._playback = Playback(index)
        self._left = answers

    def knows(self, question: Question) -> bool:
        """Whether anything was recorded of its MCP server."""
        return self._playback.knows(question)

    def answer(self, question: Question) -> Answer | Miss:
        """The recorded answer; a miss if all answers that stand were given."""
        # Calls of tools between the answers are not counted: they belong to the answer before.
        if is_mcp(question):
            return self._playback.answer(question)
        if not self._left:
            return Miss(question)
        answer = self._playback.answer(question)
        if not isinstance(answer, Miss):
            self._left -= 1
        return answer


def _answered(tape: Cassette) -> list[Exchange]:
    reader = RequestReader()
    return [
        exchange for exchange in tape.exchanges if exchange.answer.succeeded and asked_of(exchange, reader) is not None
    ]


def _is_same(transcript: Transcript, other: Transcript) -> bool:
    return [(message.role, message.content) for message in transcript.messages] == [
        (message.role, message.content) for message in other.messages
    ]
