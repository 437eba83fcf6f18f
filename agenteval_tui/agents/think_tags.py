"""Thinking that a server sends in the text of its answer, between tags: `<think>...</think>`.

Models that think (DeepSeek R1, QwQ, Qwen 3) write it so, and servers without a parser for it pass it on. It is not part
of the answer. Only what an answer begins with is thinking: further on, such tags are text, as in an answer about them.
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
    ToolCallStarted,
    TurnEnded,
)

_NAMES = ("think", "thinking", "thought")
_OPENINGS = tuple(f"<{name}>" for name in _NAMES)
_OPENING = re.compile(rf"\s*<({'|'.join(_NAMES)})>")
_PARTS = (Attached, ToolCallStarted, TurnEnded, Done, Failed)
"""Events before which the text so far is settled."""


async def without_thinking(events: AsyncGenerator[AgentEvent, None]) -> AsyncGenerator[AgentEvent, None]:
    """The same events, in which thinking between tags at an answer's beginning is `ReasoningDelta`."""
    tags = _ThinkTags()
    async with aclosing(events):
        async for event in events:
            if type(event) is TextDelta and not tags.in_answer:
                for one in tags.take(event.text):
                    yield one
                continue
            if isinstance(event, _PARTS):
                for one in tags.rest():
                    yield one
            if type(event) in (TurnEnded, Restarted):
                tags = _ThinkTags()
            yield event
    for one in tags.rest():
        yield one


class _ThinkTags:
    """The text of one message, in pieces that may be cut anywhere."""

    def __init__(self) -> None:
        self.in_answer = False
        self._end = ""
        """The tag that ends the thinking; "" while there is none."""
        self._held = ""
        """Text that may be part of a tag, or white space before or behind one."""
        self._thought = False

    def take(self, text: str) -> Iterator[AgentEvent]:
        """What is known after this piece."""
        self._held += text
        while not self.in_answer:
            if self._end:
                thinking, tag, rest = self._held.partition(self._end)
                if not tag:
                    keep = _begun(thinking, self._end)
                    if said := thinking[: len(thinking) - keep]:
                        yield ReasoningDelta(said)
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
            if any(one.startswith(begun) for one in _OPENINGS):
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


def _begun(text: str, tag: str) -> int:
    """How many characters at the end of a text may be the beginning of a tag."""
    return next((size for size in range(min(len(tag) - 1, len(text)), 0, -1) if text.endswith(tag[:size])), 0)
