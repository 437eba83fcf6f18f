"""A conversation taken apart: messages, calls, tools, sentences, members of JSON, words. Parts can be taken out of it.

The parts are a tree. What is taken out takes its parts with it, and what can't be without it: a call goes with its
result, and a tool stays while a call of it does. `conversation` puts the rest together; None where that is no
conversation that an agent could be asked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import ToolSpec
from agenteval_tui.agents.tools.changes import ToolChange, ToolChanges
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.runs.fork.edits import complete
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Message, ToolCall

Kind = Literal[
    "message", "text", "call", "arguments", "result", "member", "item", "sentence", "word", "value", "tool", "property"
]
_SENTENCE = re.compile(r".*?(?:[.!?]+[\"')\]]*(?:\s+|$)|\n+|$)", re.DOTALL)
_WORD = re.compile(r"\s*\S+\s*")
OBJECT = "{}"
"""The key of a value that has members or items."""
DEEPEST = 12
"""Levels of JSON that are taken apart."""


class Part(Struct):
    """A part of the case. `id`: its number in the order of the conversation. `text`: what a leaf says; `key`: a
    member's name. `level`: when it is tried, the coarse ones first; 0: it can't be taken out by itself."""

    id: int
    kind: Kind
    level: int
    text: str = ""
    key: str = ""
    parts: list[Part] = []
    index: int = 0
    """Of a message, a call or a tool: which one of the conversation."""
    scalar: Any = None
    array: bool = False

    def walk(self) -> Iterator[Part]:
        """It and all below it."""
        yield self
        for part in self.parts:
            yield from part.walk()


MESSAGES, CALLS, TOOLS, SENTENCES, JSON, WORDS = 1, 2, 3, 4, 5, 5 + DEEPEST
"""The levels. JSON has one for each depth; properties of a tool's arguments are in the first."""


class Case:
    """A conversation and its parts. A part of each system prompt stays. `keep_calls`: calls stay, and only their
    arguments and results are split; the agent may repeat a call that is removed, and gets the result from its tool.
    `tools`: the descriptions of the tools in the whole case; `keep_tools`: these descriptions stay whole."""

    def __init__(
        self,
        conversation: Conversation,
        *,
        keep_calls: bool = False,
        tools: Sequence[ToolSpec] = (),
        keep_tools: bool = False,
    ) -> None:
        self.original = conversation
        self.specs = tuple(tools)
        self._keep_calls = keep_calls
        self.parts: list[Part] = []
        """All parts, by id."""
        self.messages = self._take_apart()
        self.tools = [] if keep_tools else [self._tool(index, spec) for index, spec in enumerate(self.specs)]

    def level(self, level: int, removed: Collection[int]) -> list[Part]:
        """The remaining parts of a level that can be removed, in order."""
        called = self._called(removed) if level == TOOLS else ()
        return [
            part for part in self.parts if part.level == level and part.id not in removed and part.text not in called
        ]

    @property
    def levels(self) -> list[int]:
        """The levels that have parts, the coarse ones first."""
        return sorted({part.level for part in self.parts if part.level})

    def without(self, removed: Collection[int], more: Collection[int]) -> frozenset[int]:
        """The ids that are removed if these parts are removed, too: the parts and everything below them."""
        gone = set(removed)
        for number in more:
            gone.update(part.id for part in self.parts[number].walk())
        return frozenset(gone)

    def conversation(self, removed: Collection[int]) -> Conversation | None:
        """The rest of the conversation. None if an agent can't continue it."""
        gone = removed if isinstance(removed, frozenset | set) else set(removed)
        messages: list[Message] = []
        calls: list[ToolCall] = []
        for part in self.messages:
            message = self.original.messages[part.index]
            # An agent without a prompt would get its own again.
            prompt = message.role in SYSTEM_ROLES
            if part.id in gone:
                if prompt:
                    return None
                continue
            text = "".join(_text(child, gone) for child in part.parts if child.kind == "text")
            call_parts = [child for child in part.parts if child.kind == "call" and child.id not in gone]
            if not text.strip() and not call_parts:
                if prompt:
                    return None
                continue
            first = len(calls)
            numbers = tuple(range(first, first + len(call_parts)))
            at = len(messages)
            # No reasoning: it was about a whole that is not there any more.
            messages.append(replace(message, content=text, tool_calls=numbers, reasoning=""))
            for call_part in call_parts:
                call = self.original.tool_calls[call_part.index]
                arguments, result = call_part.parts
                own_arguments = call.arguments if _whole(arguments, gone) else _value(arguments.parts[0], gone)
                result_text = call.result if _whole(result, gone) else _result(result, gone)
                calls.append(
                    replace(
                        call, arguments=own_arguments, result=result_text, message=at, started_ms=None, duration_ms=None
                    )
                )
            # Behind the message with all of its calls, as models require their results.
            for number, call_part in zip(numbers, call_parts, strict=True):
                answer = self._answers.get(call_part.index)
                if answer is not None:
                    messages.append(replace(answer, content=calls[number].result or "", tool_call=number))
        tools = self._changes(gone)
        # A call of a tool that the model is not told of is no conversation that it could have had.
        if tools is not None and any(call.name in tools.without for call in calls):
            return None
        try:
            return complete(Conversation(tuple(messages), tuple(calls), self.original.turns, tools=tools))
        except AgentevalError:
            return None

    def size(self, removed: Collection[int]) -> int:
        """The number of characters in the rest: texts, arguments, results, and descriptions of tools."""
        conversation = self.conversation(removed)
        if conversation is None:
            return 0
        tools = self.offered(removed)
        return size_of(conversation) + sum(len(t.name) + len(t.description) + len(dumped(t.parameters)) for t in tools)

    def offered(self, removed: Collection[int]) -> list[ToolSpec]:
        """The descriptions of the remaining tools, as the model gets them."""
        changes = self._changes(removed)
        return list(self.specs) if changes is None else changes.offered(self.specs)

    # Tools

    def _called(self, removed: Collection[int]) -> set[str]:
        """The tools that the remaining calls call."""
        return {part.text for part in self.parts if part.kind == "call" and part.id not in removed}

    def _changes(self, gone: Collection[int]) -> ToolChanges | None:
        """The changes to the tools. Without removed parts of tools, the changes of the original conversation."""
        before = self.original.tools
        without, changed = [], {}
        for part, spec in zip(self.tools, self.specs, strict=False):  # there are no parts of tools that stay
            if part.id in gone:
                without.append(spec.name)
            elif not _whole(part, gone):
                changed[spec.name] = _changed(part, spec, gone)
        if not without and not changed:
            return before
        if before is not None:
            return ToolChanges((*before.without, *without), {**before.changed, **changed})
        return ToolChanges(tuple(without), changed)

    # Taking apart

    def _take_apart(self) -> list[Part]:
        self._answers = {
            message.tool_call: message for message in self.original.messages if message.tool_call is not None
        }
        parts = []
        for index, message in enumerate(self.original.messages):
            if message.tool_call is not None:
                continue  # it goes with its call
            # A message with calls that stay can't go; what it says can.
            stays = self._keep_calls and bool(message.tool_calls)
            whole = self._part("message", 0 if stays else MESSAGES, index=index)
            text = self._part("text", 0)
            whole.parts = [text]
            text.parts = self._sentences(message.content)
            # The only thing in a message goes with the message: asked alone, it would be the same question.
            several = len(message.tool_calls) > 1 or bool(message.content)
            for number in message.tool_calls:
                call = self.original.tool_calls[number]
                part = self._part("call", CALLS if several and not stays else 0, index=number, text=call.name)
                whole.parts.append(part)
                arguments, result = self._part("arguments", 0), self._part("result", 0)
                part.parts = [arguments, result]
                arguments.parts = [self._json(call.arguments, 1)]
                result.parts = self._result(call.result or "")
            parts.append(whole)
        return parts

    def _tool(self, index: int, spec: ToolSpec) -> Part:
        tool = self._part("tool", TOOLS, index=index, text=spec.name)
        text = self._part("text", 0)
        text.parts = self._sentences(spec.description)
        properties = spec.parameters.get("properties")
        names = properties if isinstance(properties, dict) else ()
        tool.parts = [text, *(self._part("property", JSON, key=name, text=name) for name in names)]
        return tool

    def _part(self, kind: Kind, level: int, **more: Any) -> Part:
        part = Part(len(self.parts), kind, level, parts=[], **more)
        self.parts.append(part)
        return part

    def _sentences(self, text: str) -> list[Part]:
        sentences = [sentence_text for sentence_text in _SENTENCE.findall(text) if sentence_text]
        parts = []
        for sentence in sentences:
            part = self._part("sentence", SENTENCES, text=sentence)
            part.parts = self._words(sentence)
            parts.append(part)
        return parts

    def _words(self, text: str) -> list[Part]:
        words = _WORD.findall(text)
        if len(words) < 2:
            return []
        return [self._part("word", WORDS, text=word) for word in words]

    def _result(self, text: str) -> list[Part]:
        value = parsed_json(text)
        if isinstance(value, dict | list):
            return [self._json(value, 1)]
        return self._sentences(text)

    def _json(self, value: object, depth: int) -> Part:
        """A value: an object or a list with its members, or a leaf. Only members and items can be taken out."""
        if depth > DEEPEST or not isinstance(value, dict | list):
            part = self._part("value", 0, scalar=value)
            if isinstance(value, str) and depth <= DEEPEST:
                part.parts = self._words(value)
            return part
        part = self._part("value", 0, array=isinstance(value, list), key=OBJECT)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, inner in items:
            member = self._part("item" if part.array else "member", JSON + depth - 1, key=str(key))
            part.parts.append(member)
            member.parts = [self._json(inner, depth + 1)]
        return part


def size_of(conversation: Conversation) -> int:
    """Characters of a conversation: texts, names and arguments of calls, results."""
    texts = sum(len(message.content) for message in conversation.messages)
    argument_size = sum(len(call.name) + len(dumped(call.arguments)) for call in conversation.tool_calls)
    return texts + argument_size + sum(map(len, conversation.turns))


def pieces(part: Part, removed: Collection[int], *, gone: bool = False) -> Iterator[tuple[str, bool]]:
    """What a part says, in pieces, each with whether it is there; JSON with its brackets and names."""
    gone = gone or part.id in removed
    if part.kind == "value" and part.key == OBJECT:
        yield ("[" if part.array else "{"), not gone
        first = True
        for member in part.parts:
            out = gone or member.id in removed
            if member is not part.parts[0]:
                # The comma belongs to the second of two members that are there.
                yield ", ", not (out or first)
            first = first and out
            if member.kind == "member":
                yield f"{dumped_json(member.key)}: ", not out
            yield from pieces(member.parts[0], removed, gone=out)
        yield ("]" if part.array else "}"), not gone
    elif part.kind == "value":
        if part.parts:
            yield '"', not gone
            for word in part.parts:
                yield word.text, not (gone or word.id in removed)
            yield '"', not gone
        else:
            yield dumped_json(part.scalar), not gone
    elif part.kind == "word" or not part.parts:
        yield part.text, not gone
    else:
        for inner in part.parts:
            yield from pieces(inner, removed, gone=gone)


def _whole(part: Part, gone: Collection[int]) -> bool:
    return not any(child.id in gone for child in part.walk())


def _text(part: Part, gone: Collection[int]) -> str:
    """The text of the present sentences and words."""
    if part.id in gone:
        return ""
    if not part.parts:
        return part.text
    text = "".join(_text(child, gone) for child in part.parts)
    # The space around what is gone goes, too: a model may see it.
    return text if _whole(part, gone) else text.strip() + _tail(part, gone)


def _tail(part: Part, gone: Collection[int]) -> str:
    """The space behind a sentence, of which words are gone."""
    ending = part.text[len(part.text.rstrip()) :]
    return ending if part.kind == "sentence" and any(child.id not in gone for child in part.parts) else ""


def _result(part: Part, gone: Collection[int]) -> str:
    if part.parts and part.parts[0].kind == "value":
        return dumped(_value(part.parts[0], gone))
    return "".join(_text(child, gone) for child in part.parts)


def _changed(tool: Part, spec: ToolSpec, gone: Collection[int]) -> ToolChange:
    """What is told of a tool of which parts are gone."""
    text, *properties = tool.parts
    out = {child.key for child in properties if child.id in gone}
    parameters = None
    if out:
        remaining = {name: value for name, value in spec.parameters["properties"].items() if name not in out}
        parameters = {**spec.parameters, "properties": remaining}
        # A schema must not require what it does not describe.
        required = [name for name in parameters.pop("required", ()) if name not in out]
        if required:
            parameters["required"] = required
    return ToolChange(None if _whole(text, gone) else _text(text, gone), parameters)


def _value(part: Part, gone: Collection[int]) -> object:
    if part.key != OBJECT:
        if not part.parts:
            return part.scalar
        return "".join(child.text for child in part.parts if child.id not in gone).strip()
    if part.array:
        return [_value(child.parts[0], gone) for child in part.parts if child.id not in gone]
    return {child.key: _value(child.parts[0], gone) for child in part.parts if child.id not in gone}


def dumped(value: object) -> str:
    """A value as a transcript has it: a text as it is, other JSON as JSON."""
    return value if isinstance(value, str) else dumped_json(value)


def dumped_json(value: object) -> str:
    """A value as JSON."""
    return json.dumps(value, ensure_ascii=False)
