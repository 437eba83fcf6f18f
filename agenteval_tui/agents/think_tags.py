"""Thinking that a server sends in the text of its answer, between tags: `<think>...</think>`.

Models that think (DeepSeek R1, QwQ, Qwen 3) write it so, and servers without a parser for it pass it on. It is not part
of the answer. Only what an answer begins with is thinking: further on, such tags are text, as in an answer about them.
If the prompt's template has opened the tag, an answer begins inside the thinking: then all is thinking up to a closing
tag that has no opening one before it. One in quotes or backticks is text.
The names are those that litellm knows (`_parse_content_for_reasoning`), and that of Gemini's OpenAI-compatible API.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing

from agenteval_tui.agents.base import (
    AgentEvent,
    Attached,
    Done,
    Failed,
    ReasoningDelta,
    Restarted,
    TextDelta,
    TextWasReasoning,
    ToolCallStarted,
    TurnEnded,
)

_NAMES = ("think", "thinking", "thought")
_OPENINGS = tuple(f"<{name}>" for name in _NAMES)
_OPENING = re.compile(rf"\s*<({'|'.join(_NAMES)})>")
_TAG = re.compile(rf"(?<![`'\"])<(/?)(?:{'|'.join(_NAMES)})>")
_LONGEST_TAG = max(map(len, _OPENINGS)) + 1
_PARTS = (Attached, ToolCallStarted, TurnEnded, Done, Failed)
"""Events before which the text so far is settled."""


async def without_thinking(events: AsyncGenerator[AgentEvent, None]) -> AsyncGenerator[AgentEvent, None]:
    """The same events, in which thinking between tags at an answer's beginning is `ReasoningDelta`."""
    tags = _ThinkTags()
    inside: _UnopenedThinking | None = _UnopenedThinking()
    async with aclosing(events):
        async for event in events:
            if type(event) is TextDelta:
                if inside is not None and (thinking := inside.take(event.text)) is not None:
                    inside = None
                    if thinking:
                        tags = _ThinkTags(follows_thinking=True)
                        yield TextWasReasoning(thinking[0])
                        for delta in tags.take(thinking[1]):
                            yield delta
                        continue
                if tags.in_answer:
                    yield event
                    continue
                for part in tags.take(event.text):
                    yield part
                continue
            if isinstance(event, _PARTS):
                for part in tags.rest():
                    yield part
            if type(event) in (TurnEnded, Restarted):
                tags, inside = _ThinkTags(), _UnopenedThinking()
            elif type(event) is Attached:
                inside = None
            yield event
    for part in tags.rest():
        yield part


class _ThinkTags:
    """The text of one message, in pieces that may be cut anywhere."""

    def __init__(self, *, follows_thinking: bool = False) -> None:
        self.in_answer = False
        self._end = ""
        """The tag that ends the thinking; "" while there is none."""
        self._held = ""
        """Text that may be part of a tag, or white space before or behind one."""
        self._thought = follows_thinking

    def take(self, text: str) -> Iterator[AgentEvent]:
        """What is known after this piece."""
        self._held += text
        while not self.in_answer:
            if self._end:
                thinking, tag, rest = self._held.partition(self._end)
                if not tag:
                    keep = _begun(thinking, self._end)
                    if thought := thinking[: len(thinking) - keep]:
                        yield ReasoningDelta(thought)
                    self._held = thinking[len(thinking) - keep :]
                    return
                if thinking:
                    yield ReasoningDelta(thinking)
                self._end, self._held, self._thought = "", rest, True
                continue
            if (opening := _OPENING.match(self._held)) is not None:
                self._end = f"</{opening[1]}>"
                self._held = self._held[opening.end() :]
                continue
            begun = self._held.lstrip()
            if any(opening.startswith(begun) for opening in _OPENINGS):
                return
            yield from self.rest()

    def rest(self) -> Iterator[AgentEvent]:
        """What was held back: thinking that never ended, or text."""
        held, self._held = self._held, ""
        if self._end:
            if held:
                yield ReasoningDelta(held)
            return
        self.in_answer = True
        if self._thought:
            held = held.lstrip()
        if held:
            yield TextDelta(held)


class _UnopenedThinking:
    """The text of one message so far, and where its first tag is: a closing tag ends thinking that it did not open."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._end = ""

    def take(self, text: str) -> tuple[str, str] | tuple[()] | None:
        """The thinking, and the text behind it; () if there is none, whatever comes; None while that is not known."""
        self._text.append(text)
        end = self._end + text
        self._end = end[-_LONGEST_TAG - 1 :]  # with the character before a tag
        if _TAG.search(end) is None or _TAG.search(whole := "".join(self._text)) is None:
            return None
        return split_unopened(whole) or ()


def split_unopened(text: str) -> tuple[str, str] | None:
    """The thinking and the text behind it, if the text's first tag is a closing one; else None."""
    tag = _TAG.search(text)
    return (text[: tag.start()], text[tag.end() :]) if tag is not None and tag[1] else None


def split_thinking(text: str) -> tuple[str, str]:
    """The thinking between tags at an answer's beginning ("" for none), and the answer."""
    unopened = split_unopened(text)
    thinking, rest = unopened or ("", text)
    tags = _ThinkTags(follows_thinking=unopened is not None)
    deltas = [*tags.take(rest), *tags.rest()]
    thinking += "".join([delta.text for delta in deltas if isinstance(delta, ReasoningDelta)])
    return thinking, "".join([delta.text for delta in deltas if isinstance(delta, TextDelta)])


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
