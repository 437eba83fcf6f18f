"""From an agent's events to a transcript."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentNamed,
    Attached,
    Captured,
    Done,
    Failed,
    LogLine,
    ModelAsked,
    Noted,
    Prepared,
    Printed,
    PromptSent,
    ReasoningDelta,
    Recorded,
    Restarted,
    TextDelta,
    TextWasReasoning,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.usage import UsageSum
from agenteval_tui.core.document import extended
from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.impossible_figures import with_possible_figures
from agenteval_tui.transcripts.model import (
    SYSTEM_ROLES,
    Attachment,
    CallStatus,
    Message,
    Note,
    Output,
    RunError,
    Step,
    Timing,
    ToolCall,
    Transcript,
    last_answer,
)
from agenteval_tui.transcripts.observed import (
    DUMPED,
    TOLD_BY_AGENT,
    UNREAD_CALLS,
    ObservedKind,
    may_call_in_words,
    unseen,
)
from agenteval_tui.transcripts.traceback import Traceback

if TYPE_CHECKING:
    from agenteval_tui.agents.recording.conversation import Asked

_IN_WORDS = "models were offered no tools, and asked several times: what they wrote may have been calls"
_CALLS = frozenset[ObservedKind](("tool_calls", "tool_results"))
NOTES_KEPT = 50
OUTPUT_KEPT = 64 * 1024
"""Characters of what code printed and logged: the end of it."""
LOG_KEPT = 64 * 1024
"""Characters of what programs wrote to their standard error: the end of it."""


class _Call(Struct):
    id: str
    name: str
    began_ms: float
    arguments: list[str] = field(default_factory=list)
    result: str | None = None
    error: bool = False
    started_ms: float | None = None
    duration_ms: float | None = None
    traceback: Traceback | None = None


class _Turn(Struct):
    """One message of the model, and the calls that it made."""

    started_ms: float
    agent: str | None = None
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    attachments: list[Attachment] = field(default_factory=list)
    behind_mark: bool = False  # what is said next is on a line of its own
    ended_ms: float | None = None


class Recorder:
    """Consumes the events of one run; `transcript()` is valid at any time, so a run that breaks keeps what it had.

    Tool messages follow the message that made the calls, in the order of the calls, whichever ended first:
    two runs that did the same give the same transcript. Events that make no sense (results of unknown calls) are
    ignored. `messages` is the conversation that the agent is given, with its calls in `tool_calls`; `clock` gives
    seconds.

    A conversation of several turns is one recording: `next_turn` between the answers.
    """

    def __init__(
        self,
        messages: Sequence[Message],
        clock: Callable[[], float] = time.monotonic,
        tool_calls: Sequence[ToolCall] = (),
    ) -> None:
        self._clock = clock
        self._began = clock()
        self._given = tuple(messages)
        self._given_calls = tuple(tool_calls)
        self._turns: list[_Turn] = []
        self._calls: dict[int, _Call] = {}
        self._made = len(self._given_calls)
        # Where the user spoke again: before the answer with this index, and what was said.
        self._later: list[tuple[int, Message]] = []
        self._open: _Turn | None = None
        self._agent: str | None = None
        self._now = 0.0
        self._worked = 0.0  # when the agent itself last said something
        self._last_end = 0.0
        self._first_token: float | None = None
        self._ended: float | None = None
        self._usage = UsageSum()
        self._model = ""
        self._finish = ""
        self._outputs: Mapping[str, Any] = {}
        self._error: RunError | None = None
        self._recorded: Transcript | None = None
        self._captured: Transcript | None = None
        self._captured_answers = self._captured_beside = False
        self._asked: list[Asked | None] = []
        self._log = ""
        self._output = deque[Output]()
        self._output_size = 0
        self._setup: list[Step] = []
        self._notes: list[Note] = []
        self._answers_from = 0  # of the turns, the first that answers what the user said last
        self._farewell: Message | None = None
        self._raised: dict[str, Traceback] = {}  # by the ids of calls that were not told

    def apply(self, event: AgentEvent) -> None:
        """Take one event. Its time is now."""
        self._now = max(self._now, (self._clock() - self._began) * 1000)
        if not isinstance(event, Prepared | Printed):
            self._worked = self._now
        match event:
            case TextDelta(text):
                if text:
                    turn = self._token()
                    if turn.behind_mark:
                        text, turn.behind_mark = f"\n{text}", False
                    turn.text.append(text)
            case AgentNamed(name):
                self._agent = name or None
                if self._open is not None:
                    self._open.agent = self._agent
            case Attached(attachment):
                turn = self._token()
                turn.text.append(f"\n{attachment.mark}" if turn.text else attachment.mark)
                turn.attachments.append(attachment)
                turn.behind_mark = True
            case ReasoningDelta(text):
                if text:
                    self._token().reasoning.append(text)
            case ToolCallStarted(key, call_id, name):
                call = _Call(call_id or f"call_{self._made}", name, self._now)
                self._made += 1
                self._token().calls.append(call)
                self._calls[key] = call
            case ToolArgumentsDelta(key, text):
                if key in self._calls:
                    self._calls[key].arguments.append(text)
            case ToolCallFinished():
                self._finish_call(event)
            case TurnEnded():
                self._end_turn()
            case Prepared(name, duration_ms):
                self._prepared(name, duration_ms)
            case Restarted():
                self._restart()
            case TextWasReasoning(text):
                turn = self._token()
                turn.text.clear()
                turn.reasoning.append(text)
            case Noted(note):
                self.note(note)
            case UsageReported(usage):
                self._usage.add(usage)
            case PromptSent(messages):
                self._prompted(messages)
            case Printed():
                self._print(event)
            case ModelAsked():
                self._asked.append(self._as_asked(event))
            case LogLine(text):
                self._log = f"{self._log}{text}"[-LOG_KEPT:]
            case Recorded(transcript):
                self._recorded = with_possible_figures(transcript)
            case Captured(transcript, _, answers, beside):
                self._captured, self._captured_answers = with_possible_figures(transcript), answers
                self._captured_beside = beside
            case Done(reason, model, outputs):
                self._end_turn()
                self._ended, self._finish = self._now, reason
                self._model, self._outputs = model or self._model, outputs
            case Failed(error):
                self._end_turn()
                self._ended, self._error = self._now, error

    @property
    def recorded(self) -> bool:
        """Whether a whole transcript came at once: nothing can follow it."""
        return self._recorded is not None

    def next_turn(self, message: Message) -> None:
        """The user speaks again; what comes from now on answers that. Keys of tool calls start again."""
        self._end_turn()
        self._calls, self._agent = {}, None
        self._later.append((len(self._turns), message))
        self._answers_from = len(self._turns)
        self._ended, self._finish = None, ""

    def end_with(self, message: Message) -> None:
        """The user's last words: they get no answer, and the final output stays what it is."""
        self._farewell = message

    def note(self, note: Note) -> None:
        """Something that the run must say, once; the first `NOTES_KEPT` are kept."""
        if note not in self._notes and len(self._notes) < NOTES_KEPT:
            self._notes.append(note)

    def stored(self) -> Transcript:
        """What is kept of the run: what its models were asked, where that was captured, with what the agent itself said
        of its answer, its time and its error; else as `transcript`, with the requests that the agent told of."""
        recorded = self.transcript()
        tells_calls = self._tells_calls(recorded)
        captured, is_beside = self._captured, self._captured_beside
        if captured is None and (not tells_calls or len(recorded.tool_calls) <= len(self._given_calls)):
            captured, is_beside = self._asked_for(recorded), True
        if captured is None or not captured.messages:
            return self._with_told_requests(recorded)
        if is_beside and tells_calls and not self._made_others(recorded, captured):
            return self._with_captured_requests(self._with_told_requests(recorded), captured)

        def at(moment: float | None) -> float | None:
            """On the clock of the run: the one that measured the requests did not stop while something was started."""
            if moment is None:
                return None
            for step in self._setup:
                if step.started_ms <= moment:
                    moment -= min(step.duration_ms, moment - step.started_ms)
            return moment

        measured = bool(recorded.usage.counted_tokens) or recorded.usage.cost is not None
        # What their functions raised, which their framework told the model in other words.
        raised = {call.id: call.traceback for call in recorded.tool_calls if call.traceback is not None} | self._raised
        calls = tuple([_with_raised(call, at(call.started_ms), raised.get(call.id)) for call in captured.tool_calls])
        steps = [replace(step, started_ms=at(step.started_ms) or 0.0) for step in captured.timing.steps]
        first = recorded.timing.first_token_ms
        messages, final = captured.messages, captured.final_output
        answers = self._captured_answers or (bool(final) and any(note.code == DUMPED for note in recorded.notes))
        if not answers and recorded.final_output.strip() not in ("", final.strip()):
            final = recorded.final_output
            messages = (*messages, Message("assistant", final))
        notes = [*captured.notes, *(note for note in recorded.notes if note.code not in TOLD_BY_AGENT)]
        if may_call_in_words(captured, 1 + len(self._later)):
            notes.append(Note(UNREAD_CALLS, _IN_WORDS))
        return replace(
            recorded,
            messages=messages,
            tool_calls=calls,
            timing=Timing(
                at(captured.timing.first_token_ms) if first is None else first,
                recorded.timing.total_ms,
                (*self._setup, *steps),
            ),
            model=captured.model or recorded.model,
            finish_reason=captured.finish_reason or recorded.finish_reason,
            final_output=final,
            notes=tuple(notes),
            usage=recorded.usage if measured else captured.usage,
            requests=captured.requests,
        )

    def transcript(self) -> Transcript:
        """The transcript so far, without requests to models. A run that was not told to have ended has the time of its
        last event as its total."""
        if self._recorded is not None:
            return self._recorded if self._error is None else replace(self._recorded, error=self._error)
        messages, calls, steps = list(self._given), self._calls_given(), list[Step]()
        later = iter((*self._later, (-1, None)))
        place, message = next(later)
        answers_from = len(messages)
        for number, turn in enumerate((*self._turns, None), 1):
            while message is not None and place == number - 1:
                messages.append(message)
                answers_from = len(messages)
                place, message = next(later)
            if turn is None:
                break
            self._add_turn(turn, messages, calls)
            end = self._now if turn.ended_ms is None else turn.ended_ms
            steps.append(Step(f"turn {number}", turn.started_ms, end - turn.started_ms))
            steps.extend(
                Step(call.name, call.started_ms, call.duration_ms)
                for call in turn.calls
                if call.started_ms is not None and call.duration_ms is not None
            )
        total = self._now if self._ended is None else self._ended
        done = tuple(messages)
        return Transcript(
            messages=done if self._farewell is None else (*done, self._farewell),
            tool_calls=tuple(calls),
            timing=Timing(self._first_token, total, (*self._setup, *steps)),
            usage=self._usage.total,
            model=self._model,
            finish_reason=self._finish,
            final_output=last_answer(done[answers_from:]),
            error=self._error,
            log=self._log,
            output=tuple(self._output),
            notes=(*self._notes, *self._usage.notes),
            outputs=self._outputs,
        )

    def _with_told_requests(self, transcript: Transcript) -> Transcript:
        if not self._asked or self._recorded is not None:
            return transcript
        # As in `_as_asked`.
        from agenteval_tui.agents.recording.imported_requests import with_requests

        return with_requests(transcript, self._asked, len(self._given))

    def _tells_calls(self, transcript: Transcript) -> bool:
        """Whether the agent said itself what it did."""
        if self._recorded is not None:
            return True
        answered = any(message.role == "assistant" for message in transcript.messages[len(self._given) :])
        return answered and unseen(transcript, _CALLS) is None

    def _made_others(self, transcript: Transcript, captured: Transcript) -> bool:
        """Whether tools ran where the agent tells of none. A call without a result may be a form of the answer only."""
        given = len(self._given_calls)
        answered = [call for call in captured.tool_calls[given:] if call.result is not None]
        return self._recorded is None and bool(answered) and len(transcript.tool_calls) <= given

    def _asked_for(self, transcript: Transcript) -> Transcript | None:
        """What the agent's framework told of its requests, if they led to the answer; None: they did not."""
        asked = [request for request in self._asked if request is not None]
        if not asked or len(asked) < len(self._asked) or self._recorded is not None:
            return None
        # As in `_as_asked`.
        from agenteval_tui.agents.recording.conversation import transcript_of_asked

        told, answer = transcript_of_asked(asked), transcript.final_output.strip()
        # Without an answer nothing says that the run was about these requests: the messages stay as they were given.
        return told if answer and told.final_output.strip() == answer else None

    def _with_captured_requests(self, transcript: Transcript, captured: Transcript) -> Transcript:
        if transcript.requests is not None or self._recorded is not None:
            return transcript
        # As in `_as_asked`.
        from agenteval_tui.agents.recording.imported_requests import with_requests_of

        return with_requests_of(transcript, captured, len(self._given))

    def _as_asked(self, event: ModelAsked) -> Asked | None:
        # 80 ms of httpx, which who grades a stored run does not need.
        from agenteval_tui.agents.recording.imported_requests import asked_in

        messages, answer = event.messages, event.answer
        # By the agent's clock where it tells that: when an event arrives here says little on a busy machine, and
        # requests that seem to overlap would be of two agents.
        started = event.started_ms if event.started_ms is not None else max(0.0, self._now - event.duration_ms)
        return asked_in(
            None
            if messages is None
            else [message if isinstance(message, dict) else dict(message) for message in messages],
            [] if answer is None else [dict(answer)],
            number=len(self._asked),
            started=started,
            ended=self._now if event.started_ms is None else started + event.duration_ms,
            about=event.about,
            agent=event.agent,
            error=event.error,
            unrecorded=event.unrecorded,
            usage=event.usage,
        )

    def _print(self, event: Printed) -> None:
        """A line that is still open continues; of more than `OUTPUT_KEPT` characters the first are let go."""
        last = self._output[-1] if self._output else None
        self._output_size += len(event.text)
        if last is not None and last.source == event.source != "log" and not last.text.endswith("\n"):
            self._output[-1] = replace(last, text=last.text + event.text)
        else:
            self._output.append(Output(self._now, event.source, event.text, event.level, event.logger))
        while self._output_size > OUTPUT_KEPT:
            first = self._output[0]
            surplus = self._output_size - OUTPUT_KEPT
            if surplus >= len(first.text) and len(self._output) > 1:
                self._output.popleft()
                self._output_size -= len(first.text)
            else:
                self._output[0] = replace(first, text=first.text[surplus:])
                self._output_size -= surplus

    def _prepared(self, name: str, duration_ms: float) -> None:
        """The clock stood still meanwhile: at most since the agent itself last said something."""
        took = min(max(0.0, duration_ms), self._now - self._worked)
        self._setup.append(Step(name, self._worked, duration_ms, setup=True))
        self._began += took / 1000
        self._now -= took

    def _restart(self) -> None:
        """The events of this user turn are told again; only its start time stays."""
        self._end_turn()
        gone = self._turns[self._answers_from :]
        del self._turns[self._answers_from :]
        self._made -= sum(len(turn.calls) for turn in gone)
        self._calls, self._agent = {}, None

    def _prompted(self, messages: tuple[Message, ...]) -> None:
        """What the model really gets. In a later turn that holds the whole conversation: only what is new is taken."""
        if not self._later:
            self._given = _marked(messages, self._given)
            return
        place, message = self._later[-1]
        if messages and messages[-1].role == message.role:
            self._later[-1] = (place, _marked(messages[-1:], (message,))[0])
        if not any(message.role in SYSTEM_ROLES for message in self._given):
            self._given = (*takewhile(lambda message: message.role in SYSTEM_ROLES, messages), *self._given)

    def _calls_given(self) -> list[ToolCall]:
        """The calls that were made before the run, each with the place of its message as it is now."""
        if not self._given_calls:
            return []
        places = {call: place for place, message in enumerate(self._given) for call in message.tool_calls}
        return [replace(call, message=places.get(index)) for index, call in enumerate(self._given_calls)]

    def _token(self) -> _Turn:
        """The current turn; a new one when the last has ended."""
        if self._first_token is None:
            self._first_token = self._now
        if self._open is None:
            # The model started to think when the previous step ended, not when its first token arrived.
            self._open = _Turn(self._last_end, self._agent)
            self._turns.append(self._open)
        return self._open

    def _end_turn(self) -> None:
        if self._open is not None:
            self._open.ended_ms = self._last_end = self._now
            self._open = None

    def _finish_call(self, event: ToolCallFinished) -> None:
        if event.call_id and event.traceback is not None:
            self._raised[event.call_id] = event.traceback
            return
        call = self._calls.get(event.key)
        if call is None or call.result is not None:
            return
        if self._open is not None and any(open_call is call for open_call in self._open.calls):
            self._end_turn()
        call.result, call.error, call.traceback = event.result, event.error, event.traceback
        call.duration_ms = event.duration_ms
        if call.duration_ms is None:
            call.duration_ms = max(0.0, self._now - max(call.began_ms, self._last_turn_end()))
        call.started_ms = max(0.0, self._now - call.duration_ms)
        self._last_end = self._now

    def _last_turn_end(self) -> float:
        return (self._turns[-1].ended_ms or 0.0) if self._turns else 0.0

    @staticmethod
    def _add_turn(turn: _Turn, messages: list[Message], calls: list[ToolCall]) -> None:
        place, first = len(messages), len(calls)
        messages.append(
            Message(
                role="assistant",
                content="".join(turn.text),
                reasoning="".join(turn.reasoning),
                tool_calls=tuple(range(first, first + len(turn.calls))),
                name=turn.agent,
                attachments=tuple(turn.attachments),
            )
        )
        for call in turn.calls:
            arguments, malformed = decode_arguments("".join(call.arguments))
            status: CallStatus = "pending" if call.result is None else "error" if call.error else "ok"
            index = len(calls)
            calls.append(
                extended(ToolCall, call, arguments=arguments, status=status, message=place, malformed=malformed)
            )
            if call.result is not None:
                messages.append(
                    Message(role="tool", content=call.result, tool_call=index, tool_call_id=call.id, name=call.name)
                )


def _marked(messages: tuple[Message, ...], prompts: tuple[Message, ...]) -> tuple[Message, ...]:
    """What an agent says that it sent, with the marks of the messages that it was given: prompts come before those."""
    if not any(message.simulated for message in prompts):
        return messages
    first = len(messages) - len(prompts)
    return tuple(
        replace(message, simulated=True)
        if place >= first and prompts[place - first].simulated and message.role == prompts[place - first].role
        else message
        for place, message in enumerate(messages)
    )


def _with_raised(call: ToolCall, started_ms: float | None, raised: Traceback | None) -> ToolCall:
    if raised is None:
        return replace(call, started_ms=started_ms)
    return replace(call, started_ms=started_ms, status="error", traceback=raised)
