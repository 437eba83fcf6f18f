"""Transcripts without secrets, before anybody else sees them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.fingerprint import fingerprint
from agenteval_tui.core.key_shapes import STAND_IN
from agenteval_tui.core.redaction import SHORTEST, SHORTEST_IN_ERRORS, Redactor
from agenteval_tui.transcripts.model import Attachment, HookRun, Message, Note, Output, RunError, ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequests, OfferedTool
from agenteval_tui.transcripts.state import ProbeState, Reading
from agenteval_tui.transcripts.traceback import Traceback, with_texts


class TranscriptRedactor(Redactor):
    """A `Redactor` that also takes whole transcripts and errors; in errors it finds secrets of 4 to 7 characters too,
    where they stand as words of their own."""

    __slots__ = ("_words",)

    def __init__(self, values: Iterable[str] = ()) -> None:
        values = tuple(values)
        super().__init__(values)
        short = sorted(
            {value for value in values if SHORTEST_IN_ERRORS <= len(value) < SHORTEST}, key=len, reverse=True
        )
        self._words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, short))})(?!\w)") if short else None

    def error(self, error: RunError) -> RunError:
        """`error` without secrets; the same object where there are none."""
        kind, message, fix = self._quoting(error.kind), self._quoting(error.message), self._quoting(error.fix)
        traceback, fields = self.traceback(error.traceback), self._fields(error.fields)
        if message is not error.message and "fingerprint" in fields:
            # It was made of the words with the secret in them, and may hold a part of it.
            fields = {**fields, "fingerprint": fingerprint(message)}
        changed = RunError(kind, message, fix, error.code, fields, traceback)
        return error if changed == error else changed

    def _fields(self, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        return {
            name: self._quoting(value) if isinstance(value, str) else self.data(value) for name, value in fields.items()
        }

    def traceback(self, traceback: Traceback | None) -> Traceback | None:
        """`traceback` without secrets; the same object where there are none."""
        return None if traceback is None else with_texts(traceback, self._quoting)

    def _quoting(self, text: str) -> str:
        # Messages quote what a server said, cut to a length.
        redacted = self.text(text)
        body = redacted.rstrip("…") if redacted.endswith("…") else redacted
        # Without the mark of the cut, behind which a beginning of a secret would not be at the end.
        if (cut := self.cut(body)) is not body:
            redacted = cut + redacted[len(body) :]
        if self._words is None or self._words.search(redacted) is None:
            return redacted
        return self._words.sub(STAND_IN, redacted)

    def transcript(self, transcript: Transcript) -> Transcript:
        """`transcript` with `***` for every secret, in all of its texts; the same object where there are none."""
        # Most transcripts hold no secret, and then nothing is copied.
        if not self._anywhere(transcript):
            return transcript
        changed: dict[str, Any] = {}
        messages = [self._message(message) for message in transcript.messages]
        # By identity: what has no secret comes back as the same object.
        if any(new is not old for new, old in zip(messages, transcript.messages, strict=True)):
            changed["messages"] = tuple(messages)
        calls = [self._call(call) for call in transcript.tool_calls]
        if any(new is not old for new, old in zip(calls, transcript.tool_calls, strict=True)):
            changed["tool_calls"] = tuple(calls)
        for name in ("model", "finish_reason", "final_output", "log"):
            self._note(changed, name, getattr(transcript, name))
        steps = tuple([replace(step, name=self.text(step.name)) for step in transcript.timing.steps]) if changed else ()
        if changed and steps != transcript.timing.steps:
            changed["timing"] = replace(transcript.timing, steps=steps)
        redactors: dict[str, Callable[[Any], Any]] = {
            "notes": self.note,
            "output": self._output,
            "hooks": self._hook,
        }
        for name, redactor in redactors.items():
            redacted = tuple(map(redactor, getattr(transcript, name)))
            if redacted != getattr(transcript, name):
                changed[name] = redacted
        if self._in_state(transcript.state):
            changed["state"] = tuple(
                [
                    replace(
                        probe_state,
                        before=None if probe_state.before is None else self.reading(probe_state.before),
                        after=None if probe_state.after is None else self.reading(probe_state.after),
                    )
                    for probe_state in transcript.state
                ]
            )
        if transcript.requests is not None and self._in_requests(transcript.requests):
            changed["requests"] = self._requests(transcript.requests)
        if self.inside(transcript.outputs):
            changed["outputs"] = self.data(transcript.outputs)
        error = transcript.error
        if error is not None:
            run_error = self.error(error)
            if run_error is not error:
                changed["error"] = run_error
        return replace(transcript, **changed) if changed else transcript

    def _anywhere(self, transcript: Transcript) -> bool:
        """Whether there is anything to do. One look at one long text: this is asked for every run."""
        error = transcript.error
        parts: list[str | None] = [transcript.model, transcript.finish_reason, transcript.log]
        for message in transcript.messages:
            parts += (message.content, message.reasoning, message.role, message.tool_call_id, message.name)
            parts += [getattr(attachment, name) for attachment in message.attachments for name in _TEXTS]
        for call in transcript.tool_calls:
            parts += (call.id, call.name, call.result)
        # Nearly always the last message's text: it is looked at once.
        if transcript.final_output not in parts:
            parts.append(transcript.final_output)
        parts += [step.name for step in transcript.timing.steps]
        parts += [text for note in transcript.notes for text in (note.code, note.what, note.place)]
        parts += [text for piece in transcript.output for text in (piece.text, piece.level, piece.logger)]
        parts += [text for hook in transcript.hooks for text in (hook.name, hook.output)]
        if any(self._hook(hook) != hook for hook in transcript.hooks):
            return True
        if error is not None:
            parts += (error.message, error.fix)
            if self.error(error) is not error:
                return True
        text = "\n".join([part for part in parts if part])
        if self.text(text) is not text or any(part and self.cut(part) is not part for part in parts):
            return True
        if self._in_state(transcript.state):
            return True
        if transcript.requests is not None and self._in_requests(transcript.requests):
            return True
        if self.inside(transcript.outputs):
            return True
        if any(self.traceback(call.traceback) is not call.traceback for call in transcript.tool_calls):
            return True
        arguments = [call.arguments for call in transcript.tool_calls]
        return any(
            self.inside(argument) or (isinstance(argument, str) and self.cut(argument) is not argument)
            for argument in arguments
        )

    def _in_requests(self, requests: ModelRequests) -> bool:
        tools = [[tool.name, tool.description, tool.parameters] for listed in requests.tools for tool in listed]
        references = [[reference.model, reference.previous, reference.error] for reference in requests.references]
        about = [[line.name, line.about] for line in requests.lines]
        return self.inside([requests.messages, requests.systems, requests.parameters, tools, references, about])

    def _requests(self, requests: ModelRequests) -> ModelRequests:
        return replace(
            requests,
            messages=tuple(map(self.data, requests.messages)),
            systems=tuple(map(self.text, requests.systems)),
            tools=tuple(
                tuple(
                    OfferedTool(
                        self.text(offered_tool.name),
                        self.text(offered_tool.description),
                        self.data(offered_tool.parameters),
                    )
                    for offered_tool in listed
                )
                for listed in requests.tools
            ),
            parameters=tuple(map(self.data, requests.parameters)),
            references=tuple(
                replace(
                    reference,
                    model=self.text(reference.model),
                    previous=self.text(reference.previous),
                    error=self._quoting(reference.error),
                )
                for reference in requests.references
            ),
            lines=tuple(
                replace(line, name=self.text(line.name), about=self.text(line.about)) for line in requests.lines
            ),
        )

    def note(self, note: Note) -> Note:
        """`note` without secrets."""
        return replace(note, code=self.text(note.code), what=self.text(note.what), place=self.text(note.place))

    def _output(self, output: Output) -> Output:
        text, level, logger = self.cut(self.text(output.text)), self.text(output.level), self.text(output.logger)
        return replace(output, text=text, level=level, logger=logger)

    def _hook(self, hook: HookRun) -> HookRun:
        error = hook.error if hook.error is None else self.error(hook.error)
        return replace(hook, name=self.text(hook.name), output=self.cut(self.text(hook.output)), error=error)

    def _message(self, message: Message) -> Message:
        changed: dict[str, Any] = {}
        for name in ("content", "reasoning", "role", "tool_call_id", "name"):
            self._note(changed, name, getattr(message, name))
        attachments = tuple([self.attachment(attachment) for attachment in message.attachments])
        if attachments != message.attachments:
            changed["attachments"] = attachments
        return replace(message, **changed) if changed else message

    def attachment(self, attachment: Attachment) -> Attachment:
        """An image or file without secrets in what is said of it; the same object where there are none."""
        changed: dict[str, Any] = {}
        for name in _TEXTS:
            self._note(changed, name, getattr(attachment, name))
        return replace(attachment, **changed) if changed else attachment

    def reading(self, reading: Reading) -> Reading:
        """What a probe read without secrets; the same object where there are none."""
        if not self._in_reading(reading):
            return reading
        fields = self._fields(reading.fields)
        traceback, output = self.traceback(reading.traceback), self.cut(self._quoting(reading.output))
        return replace(reading, value=self.data(reading.value), fields=fields, traceback=traceback, output=output)

    def _in_state(self, state: Iterable[ProbeState]) -> bool:
        readings = (reading for probe_state in state for reading in (probe_state.before, probe_state.after))
        return any(map(self._in_reading, readings))

    def _in_reading(self, reading: Reading | None) -> bool:
        if reading is None:
            return False
        printed = self.cut(self._quoting(reading.output)) is not reading.output
        raised = self.traceback(reading.traceback) is not reading.traceback
        return printed or raised or self.inside(reading.value) or self._fields(reading.fields) != reading.fields

    def _call(self, call: ToolCall) -> ToolCall:
        changed: dict[str, Any] = {}
        for name in ("id", "name", "result"):
            self._note(changed, name, getattr(call, name))
        arguments = self.data(call.arguments)
        if isinstance(arguments, str):  # what a model wrote, and perhaps did not end
            arguments = self.cut(arguments)
        if arguments is not call.arguments:
            changed["arguments"] = arguments
        if (traceback := self.traceback(call.traceback)) is not call.traceback:
            changed["traceback"] = traceback
        return replace(call, **changed) if changed else call

    def _note(self, changed: dict[str, Any], name: str, value: str | None) -> None:
        if value and (text := self.cut(self.text(value))) is not value:
            changed[name] = text


_TEXTS = ("media_type", "name", "description", "url", "mark")


NOTHING = TranscriptRedactor()
"""No secrets are known by value."""
