"""`Retrieval`: which documents a tool found."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field, field_validator

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.config.model import TOOL_NAMES
from agenteval_tui.grading.extracted_value import ExtractionError, ListValue, NothingExtracted, Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.json_paths import PathFailedError, compile_path, usable_path
from agenteval_tui.grading.json_reading import NotJsonError, UnreadableJsonError, content_fields, read_json
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import ToolCall, Transcript
from agenteval_tui.transcripts.observed import ObservedKind


class _NoListError(CodedError):
    """A tool's result holds no list of documents: why."""

    code = Code.NO_LIST


class Retrieval(Prototype):
    """The ids of the documents that a tool found, in order.

    If there are several calls, their lists are joined; a document that was found twice counts once.
    """

    tool: str | None = Field(
        None,
        min_length=1,
        description="The tool that searches. Default: every tool that was called.",
        json_schema_extra=TOOL_NAMES,
    )
    path: str | None = Field(
        None,
        min_length=1,
        description="A JMESPath expression for the ids in the tool's result (JSON): `hits[].id`. Without it, the "
        "result itself is the list. For an object in the list, its `id` counts.",
    )

    _usable = field_validator("path")(usable_path)

    @property
    def can_find_nothing(self) -> bool:
        return True

    @property
    def needs(self) -> frozenset[ObservedKind]:
        return frozenset(("tool_calls", "tool_results"))

    def extract(self, transcript: Transcript) -> Value | None:
        call_by_id: dict[str, int] = {}
        any_list = False
        for index, call in self._calls(transcript):
            try:
                ids = self._ids(call)
            except _NoListError:
                continue
            any_list = True
            for document_id in ids:
                # A document that is found twice has the rank of the first time.
                call_by_id.setdefault(document_id, index)
        if not any_list:
            return None
        items = tuple(call_by_id.items())
        return ListValue(transcript, tuple(call_by_id), lambda number: _place(transcript, *items[number]))

    def why_nothing(self, transcript: Transcript) -> NothingExtracted:
        calls = list(self._calls(transcript))
        if not calls:
            return self._never_called(transcript)
        # The last call is what the agent ended with: its reason says most.
        index, call = calls[-1]
        try:
            self._ids(call)
        except _NoListError as why:
            places = tuple(Span("tool", at) for at, _ in calls[:50])
            return NothingExtracted("", places, code=why.code, fields={**why.fields, "tool": call.name})
        return NothingExtracted("", (Span("tool", index),), code=Code.NO_LIST)

    def _calls(self, transcript: Transcript) -> Iterator[tuple[int, ToolCall]]:
        for index, call in enumerate(transcript.tool_calls):
            if self.tool is None or call.name == self.tool:
                yield index, call

    def _ids(self, call: ToolCall) -> list[str]:
        if call.result is None:
            raise _NoListError(problem="missing")
        try:
            data: Any = read_json(call.result)
            if self.path is not None:
                data = compile_path(self.path).search(data)
        except NotJsonError as problem:
            raise _NoListError(code=Code.NOT_JSON, **{"in": "result", **problem.fields}) from None
        except (UnreadableJsonError, PathFailedError) as problem:
            raise ExtractionError(code=problem.code, tool=call.name, **problem.fields) from None
        if not isinstance(data, list):
            if self.path is None:
                raise _NoListError(problem="not_a_list", there=content_fields(data))
            raise _NoListError(problem="at_path", pattern=self.path)
        return [text for item in data if (text := _id(item)) is not None]

    def _never_called(self, transcript: Transcript) -> NothingExtracted:
        names = list(dict.fromkeys(call.name for call in transcript.tool_calls))
        fields: dict[str, Any] = {"tool": self.tool, "called": names}
        near = closest(self.tool or "", names)
        if near is None:
            return NothingExtracted("", (), (), (), Code.NEVER_CALLED, fields)
        fields["nearest"] = near
        spans = tuple(Span("tool", i) for i, call in enumerate(transcript.tool_calls) if call.name == near)[:50]
        return NothingExtracted("", (), spans, (near,), Code.NEVER_CALLED, fields)


def _id(item: object) -> str | None:
    if isinstance(item, Mapping):
        item = item.get("id")
    if isinstance(item, bool) or item is None or isinstance(item, list | Mapping):
        return None
    return str(item)


def _place(transcript: Transcript, document_id: str, call: int) -> tuple[Span, ...]:
    """Where an id is in the message that answered the call; the call as a whole when it is not found."""
    # Tools write letters beyond ASCII as such or as escapes.
    written = (json.dumps(document_id, ensure_ascii=False), json.dumps(document_id))
    for index, message in enumerate(transcript.messages):
        if message.tool_call == call:
            for text in written:
                at = message.content.find(text)
                if at >= 0:
                    return (Span("message", index, at + 1, at + len(text) - 1),)
            if document_id.isdecimal() and (number := re.search(rf"(?<!\w){document_id}(?!\w)", message.content)):
                return (Span("message", index, number.start(), number.end()),)
    return (Span("tool", call),)
