"""Where values in a transcript come from: the result, the user's words, the system prompt, or nowhere."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal

from msgspec import Struct

from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.transcripts.model import Transcript

Source = Literal["result", "user", "system", "agent", "nowhere"]

_WORD = re.compile(r"[^\W_]+(?:[.'-][^\W_]+)*")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d|,\d)")
_LONGEST_RESULT = 500_000  # characters of a result that is read as JSON


class Origin(Struct, frozen=True):
    """Where a value was before a step: `source` says in what, `step` in which message; None: in none."""

    source: Source
    step: int | None = None


def call_steps(transcript: Transcript) -> dict[int, int]:
    """The message that made each tool call, by the call's index. Calls that no message made are left out."""
    steps: dict[int, int] = {}
    for index, message in enumerate(transcript.messages):
        for number in message.tool_calls:
            steps.setdefault(number, index)
    # Calls that no message lists may still say themselves which one made them.
    for number, call in enumerate(transcript.tool_calls):
        if call.message is not None:
            steps.setdefault(number, call.message)
    return steps


def atoms(value: object) -> Iterator[str]:
    """The texts and numbers within a JSON value, as texts."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from atoms(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from atoms(item)
    elif value is not None and not isinstance(value, bool):
        yield str(value)


def origin_of(value: str, transcript: Transcript, before: int) -> Origin:
    """The newest message before step `before` that has the value: a tool's result first, then the user's words, then
    the system prompt, then what the agent itself said."""
    first_at: dict[str, int] = {}
    for index in range(min(before, len(transcript.messages)) - 1, -1, -1):
        message = transcript.messages[index]
        source = {"tool": "result", "user": "user", "system": "system", "developer": "system"}.get(
            message.role, "agent"
        )
        if source not in first_at and has_value(message.content, value):
            first_at[source] = index
            # Going back, the first result is the newest, and results come before all else.
            if source == "result":
                break
    sources: tuple[Source, ...] = ("result", "user", "system", "agent")
    for source in sources:
        if source in first_at:
            return Origin(source, first_at[source])
    return Origin("nowhere")


def has_value(text: str, value: str) -> bool:
    """Whether a text has a value, in any case, and not as a part of a longer word or number."""
    # 1,234 and 1234 are the same figure; 1,2 in a list are two.
    folded, sought = (
        _THOUSANDS.sub(lambda match: match[0].replace(",", ""), each.casefold()) for each in (text, value)
    )
    sought = sought.strip()
    start = folded.find(sought) if sought else -1
    while start >= 0:
        end = start + len(sought)
        left, right = folded[max(0, start - 2) : start], folded[end : end + 2]
        if not (_goes_on(sought[0], left[::-1]) or _goes_on(sought[-1], right)):
            return True
        start = folded.find(sought, start + 1)
    return False


def _goes_on(last: str, beside: str) -> bool:
    """Whether a word or number continues behind its `last` character; `beside`: the two that follow it."""
    # "12" is not in "12.5", but it is in "12." at the end of a sentence.
    in_number = beside[:1] == "." and beside[1:].isdigit() and last.isdigit()
    return last.isalnum() and (beside[:1].isalnum() or in_number)


def words_of(value: object) -> set[str]:
    """The words in a text, or in the texts within a JSON value, in lower case."""
    return {word for text in atoms(value) for word in _WORD.findall(text.casefold())}


def record_of(value: str, transcript: Transcript, before: int) -> Mapping[str, Any] | None:
    """The newest record of an id in the results before step `before`: the smallest object that has the id as a value,
    or whose key is the id. None if no result has one."""
    for index in range(min(before, len(transcript.messages)) - 1, -1, -1):
        message = transcript.messages[index]
        if message.role == "tool" and value in message.content:
            record = _within(_parsed(message.content), value)
            if record is not None:
                return record
    return None


def telling_words(record: Mapping[str, Any], other: Mapping[str, Any] | None) -> set[str]:
    """The words that distinguish a record from the other record, without ids and numbers. Without another record, all
    its words."""
    words = {word for word in words_of(record) if not word.isdecimal() and len(word) > 1}
    return words if other is None else words - words_of(other)


# Inside


@lru_cache(maxsize=64)
def _parsed(text: str) -> object:
    return None if len(text) > _LONGEST_RESULT else parsed_json(text)


def _within(node: Any, value: str) -> Mapping[str, Any] | None:
    if isinstance(node, Mapping):
        # The smallest object first: what is inside before what is around it.
        under = node.get(value)
        if isinstance(under, Mapping):
            return under
        for inner in node.values():
            record = _within(inner, value)
            if record is not None:
                return record
        if any(str(scalar) == value for scalar in node.values() if isinstance(scalar, str | int)):
            return node
    elif isinstance(node, list):
        for inner in node:
            record = _within(inner, value)
            if record is not None:
                return record
    return None
