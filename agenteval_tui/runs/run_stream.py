"""What streams of one run to the watchers: texts gathered, tool calls with their arguments whole."""

from __future__ import annotations

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    ReasoningDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnEnded,
)
from agenteval_tui.runs.events import (
    Event,
    ReasoningStreamed,
    StreamPart,
    Tell,
    TextStreamed,
    ToolArguments,
    ToolFinished,
    ToolStarted,
    UsageCounted,
)
from agenteval_tui.runs.live_view import PARTS, TEXT_TAIL
from agenteval_tui.transcripts.codec import arguments_text
from agenteval_tui.transcripts.model import Transcript, Usage
from agenteval_tui.transcripts.redact import TranscriptRedactor

RESULT_LIMIT = 4_000
ARGUMENTS_LIMIT = 16_000
RECORDED_CALLS = 50


class Stream:
    """Tells what an agent yields. Texts wait for `flush`; a run's tool calls have numbers of their own in all turns."""

    def __init__(self, run: str, tell: Tell, withheld: TranscriptRedactor) -> None:
        self._run = run
        self._tell = tell
        self._withheld = withheld
        self._texts: list[str] = []
        self._kind: type[Event] = TextStreamed
        self._arguments: dict[int, list[str]] = {}
        self._base = 0  # the agent counts its calls from the same number in each turn
        self._next = 0
        self.shown = False
        """Something of this attempt has streamed."""
        self.silent = False
        """What the agent itself tells is not shown any more: what it was seen to do is."""

    def begin(self) -> None:
        """A new attempt."""
        self._texts.clear()
        self._arguments.clear()
        self._base = self._next = 0
        self.shown = self.silent = False

    def next_turn(self) -> None:
        """The user speaks again."""
        self.end()
        self._arguments.clear()
        self._base = self._next

    def text(self, text: str) -> None:
        """More of the answer."""
        if self.silent:
            return
        # Nearly every event of a run is a piece of its answer: the short way.
        if self._kind is TextStreamed:
            self.shown = True
            self._texts.append(text)
        else:
            self._gather(TextStreamed, text)

    def other(self, event: AgentEvent) -> None:
        """Anything but text, usage and the end."""
        if self.silent:
            return
        match event:
            case ReasoningDelta(text):
                self._gather(ReasoningStreamed, text)
            case ToolCallStarted(key, _, name):
                # Texts go out before the call, in the order in which they came.
                self.end()
                self.shown = True
                key += self._base
                self._next = max(self._next, key + 1)
                self._arguments[key] = []
                self._tell(ToolStarted, self._run, key, self._withheld.text(name))
            case ToolArgumentsDelta(key, text):
                if key + self._base in self._arguments:
                    self._arguments[key + self._base].append(text)
            case ToolCallFinished(key, result, error) if not event.call_id:
                self.end()
                self._send_arguments(key + self._base)
                text = self._withheld.text(result)[:RESULT_LIMIT]
                self._tell(ToolFinished, self._run, key + self._base, text, error)
            case TurnEnded():
                for key in tuple(self._arguments):
                    self._send_arguments(key)

    def usage(self, usage: Usage) -> None:
        """Tokens and cost so far."""
        self._tell(UsageCounted, self._run, usage.input_tokens, usage.output_tokens, usage.cost)

    def show(self, transcript: Transcript) -> None:
        """A whole recording: its last calls, then the answer."""
        self.shown = True
        clean = self._withheld.text
        for index, call in list(enumerate(transcript.tool_calls))[-RECORDED_CALLS:]:
            self._tell(ToolStarted, self._run, index, clean(call.name))
            self._tell(ToolArguments, self._run, index, clean(arguments_text(call))[:ARGUMENTS_LIMIT])
            if call.result is not None:
                result = clean(call.result)[:RESULT_LIMIT]
                self._tell(ToolFinished, self._run, index, result, call.status == "error")
        if transcript.final_output:
            self._gather(TextStreamed, transcript.final_output)

    def flush(self) -> None:
        """Send the text that was gathered, as one event; but for an end that may be the beginning of a secret."""
        if self._texts:
            self._send(whole=False)

    def end(self) -> None:
        """Send all of it: the text is complete."""
        if self._texts:
            self._send(whole=True)

    def _gather(self, kind: type[Event], text: str) -> None:
        self.shown = True
        if kind is not self._kind:
            self.end()
            self._kind = kind
        self._texts.append(text)

    # A key may be cut in two by the agent's pieces: the end of a text that may be its beginning waits for the next
    # piece.
    def _send(self, *, whole: bool) -> None:
        text = "".join(self._texts)
        self._texts.clear()
        if whole:
            text = self._withheld.ending(text)
        else:
            text, rest = self._withheld.piece(text)
            if rest:
                self._texts.append(rest)
        if not text:
            return
        self._tell(self._kind, self._run, text)

    def _send_arguments(self, key: int) -> None:
        pieces = self._arguments.pop(key, None)
        if pieces is not None:
            self.end()
            text = self._withheld.cut(self._withheld.text("".join(pieces)))
            self._tell(ToolArguments, self._run, key, text[:ARGUMENTS_LIMIT])


def last_parts(transcript: Transcript) -> tuple[list[StreamPart], int]:
    """The parts of a transcript as far as those who watch can use them, and how many are left out before them. The
    whole is in the history."""
    parts = transcript_parts(transcript)
    return [_cut(part) for part in parts[-PARTS:]], max(0, len(parts) - PARTS)


def _cut(part: StreamPart) -> StreamPart:
    text = part.text[-TEXT_TAIL:]
    return replace(
        part,
        text=text,
        arguments=part.arguments[:ARGUMENTS_LIMIT],
        result=part.result[:RESULT_LIMIT],
        cut=len(text) < len(part.text),
    )


def transcript_parts(transcript: Transcript) -> list[StreamPart]:
    """A transcript as the parts that streamed. What the test asked first is not among them: it did not stream."""
    parts: list[StreamPart] = []
    answered = False
    for message in transcript.messages:
        if message.role == "user" and (answered or message.simulated):
            parts.append(StreamPart("user", message.content, simulated=message.simulated))
        if message.role != "assistant":
            continue
        answered = True
        if message.reasoning:
            parts.append(StreamPart("reasoning", message.reasoning))
        if message.content:
            parts.append(StreamPart("text", message.content))
        for index in message.tool_calls:
            call = transcript.tool_calls[index]
            parts.append(
                StreamPart(
                    "tool",
                    key=index,
                    name=call.name,
                    arguments=arguments_text(call),
                    result=call.result or "",
                    done=call.result is not None,
                    error=call.status == "error",
                )
            )
    return parts
