"""Secrets do not reach watchers or the history: they are taken out by value where text leaves the engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

STAND_IN = "***"


class Withheld:
    """Some texts that must not be told. False when there are none: then nothing needs to be looked at."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets = tuple(sorted({one for one in secrets if one}, key=len, reverse=True))

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def text(self, text: str) -> str:
        """The text with a stand-in for each secret."""
        for one in self._secrets:
            if one in text:
                text = text.replace(one, STAND_IN)
        return text

    def open_end(self, text: str) -> int:
        """How many characters at the end of a text may be the beginning of a secret, of which more is to come."""
        return max((_overlap(text, one) for one in self._secrets), default=0)

    def error(self, error: RunError) -> RunError:
        """The error without secrets."""
        return replace(error, message=self.text(error.message), mend=self.text(error.mend))

    def transcript(self, transcript: Transcript) -> Transcript:
        """The transcript without secrets; the same object when there is none in it."""
        messages = tuple(self._message(message) for message in transcript.messages)
        calls = tuple(self._call(call) for call in transcript.tool_calls)
        error = transcript.error and self.error(transcript.error)
        output = self.text(transcript.final_output)
        model, finish = self.text(transcript.model), self.text(transcript.finish_reason)
        made = replace(
            transcript,
            messages=messages,
            tool_calls=calls,
            error=error,
            final_output=output,
            model=model,
            finish_reason=finish,
        )
        return transcript if made == transcript else made

    def _message(self, message: Message) -> Message:
        return replace(
            message,
            content=self.text(message.content),
            reasoning=self.text(message.reasoning),
            name=message.name and self.text(message.name),
            tool_call_id=message.tool_call_id and self.text(message.tool_call_id),
        )

    def _call(self, call: ToolCall) -> ToolCall:
        return replace(
            call,
            id=self.text(call.id),
            name=self.text(call.name),
            arguments=self._value(call.arguments),
            result=call.result and self.text(call.result),
        )

    def _value(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key) if isinstance(key, str) else key: self._value(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._value(one) for one in value]
        return value


def _overlap(text: str, secret: str) -> int:
    """The length of the longest end of `text` that begins `secret` and is not all of it."""
    for length in range(min(len(secret) - 1, len(text)), 0, -1):
        if text.endswith(secret[:length]):
            return length
    return 0


NOTHING = Withheld()
