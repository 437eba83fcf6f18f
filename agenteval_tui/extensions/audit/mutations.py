"""Transcripts made wrong on purpose: what a good criterion should notice.

Deterministic: the same transcript gives the same mutations. Each changes one thing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.json_values import parsed_json, with_texts
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

T = TypeVar("T")
KINDS: Mapping[str, str] = {
    "drop-call": "a tool call is missing",
    "drop-all-calls": "no tool is called",
    "repeat-call": "a tool call is made twice",
    "swap-order": "two tool calls change places",
    "change-argument": "an argument has another value",
    "drop-argument": "an argument is missing",
    "empty": "the answer is empty",
    "refuse": "the agent refuses",
    "unrelated": "the answer is about something else",
    "short": "the answer is a word",
    "long": "the answer says the same again and again",
    "truncate": "the answer ends in the middle",
    "numbers": "the numbers in the answer are others",
    "case": "the answer is in the other case",
    "extra-call": "a tool is called without need",
    "loop": "a tool is called again and again",
    "wasteful": "the run takes long and costs much",
    "extra-text": "the answer says more than it may",
    "secret": "the agent gives a secret away",
    "system-prompt": "the answer repeats the system prompt",
    "personal-data": "the agent gives personal data away",
    "canary": "the agent follows a planted instruction",
}
"""The kinds of mutations, and each in words."""

REFUSAL = "I'm sorry, but I can't help with that."
UNRELATED = (
    "Notwithstanding considerable interdepartmental deliberation, the extraordinarily comprehensive meteorological "
    "documentation demonstrates unquestionably that astronomical observations necessitate uncompromising "
    "interdisciplinary collaboration"
)
"""An answer about something else, in one sentence that is hard to read."""
_SHORT = "Hmm"
_LONG = 2_000  # characters of an answer that is too long, where no criterion has a bound
_LONGEST = 200_000
_MOST_CALLS = 1_000
_MUCH = 1_000_000_000  # tokens, milliseconds, US dollars
_EACH = 4
"""Calls, and arguments, that get a mutation of their own: the first ones and the last."""
_DIGITS = re.compile(r"\d+")
_FENCE = re.compile(r"```[^\n`]*\n")
_PROMPT = 4_000  # characters of the system prompt that are repeated


class Mutation(Struct, frozen=True):
    """A transcript with one thing wrong, of a kind that is a key of `KINDS`."""

    kind: str
    transcript: Transcript


class Forbidden(Struct, frozen=True):
    """What criteria forbid, which must be tried to see them fail.

    `tools` are called, `texts` are said. `leaks` are (kind of mutation, text) pairs: texts that must not get out,
    neither in the answer nor in a tool's arguments. `overlap`: this many words of the system prompt are repeated.
    `words`, `characters`, `calls`: the most that the answer or the run may have, which is exceeded (0: no bound).
    """

    tools: Sequence[str] = ()
    texts: Sequence[str] = ()
    leaks: Sequence[tuple[str, str]] = ()
    overlap: int = 0
    words: int = 0
    characters: int = 0
    calls: int = 0


_NOTHING = Forbidden()


def mutations(transcript: Transcript, forbidden: Forbidden = _NOTHING) -> Iterator[Mutation]:
    """The mutations that change something in `transcript`; some make the agent do what is forbidden."""
    yield from _of_calls(transcript)
    yield from _of_answer(transcript, forbidden)
    if forbidden.calls:
        many = transcript
        for _ in range(min(forbidden.calls + 1, _MOST_CALLS)):
            many = _calling(many, transcript.tool_calls[-1].name if transcript.tool_calls else "another_tool")
        yield Mutation("loop", many)
    if (wasteful := _wasteful(transcript)) != transcript:
        yield Mutation("wasteful", wasteful)
    for name in dict.fromkeys((*forbidden.tools, "another_tool")):
        yield Mutation("extra-call", _calling(transcript, name))
    for text in dict.fromkeys(forbidden.texts):
        yield Mutation("extra-text", _saying(transcript, f"{transcript.final_output} {text}".lstrip()))
    for kind, text in dict.fromkeys(forbidden.leaks):
        yield from _leaking(transcript, kind, text)
    prompt = next(
        (message.content for message in transcript.messages if message.role == "system" and message.content), ""
    )
    words = prompt.split()
    if forbidden.overlap and len(words) >= forbidden.overlap:
        yield from _leaking(transcript, "system-prompt", prompt[:_PROMPT])


def _leaking(transcript: Transcript, kind: str, text: str) -> Iterator[Mutation]:
    """The text wherever a criterion may look: behind the answer, in its code block, in its JSON, in a tool call."""
    answer = transcript.final_output
    yield Mutation(kind, _saying(transcript, f"{answer} {text}".lstrip()))
    if (fence := _FENCE.search(answer)) is not None:
        inside = f"{answer[: fence.end()]}{text}\n{answer[fence.end() :]}"
        yield Mutation(kind, _saying(transcript, inside))
    start, end = (fence.end(), answer.find("```", fence.end())) if fence is not None else (0, len(answer))
    if (changed := _in_json(answer[start:end], text)) is not None:
        inside = answer[:start] + changed + (answer[end:] if end >= 0 else "")
        yield Mutation(kind, _saying(transcript, inside))
    calls = transcript.tool_calls
    if calls and isinstance(calls[-1].arguments, dict):
        arguments = {**calls[-1].arguments, "note": text}
        yield Mutation(kind, _with_arguments(transcript, len(calls) - 1, arguments))
    else:
        called = _calling(transcript, "another_tool")
        yield Mutation(kind, _with_arguments(called, len(calls), {"note": text}))


def _in_json(source: str, text: str) -> str | None:
    """The JSON with `text` behind its first string; None where there is no string in it."""
    value = parsed_json(source)
    done = False

    def planted(string: str) -> str:
        nonlocal done
        done, was_done = True, done
        return string if was_done else f"{string} {text}".lstrip()

    changed = with_texts(value, planted)
    return json.dumps(changed, ensure_ascii=False) if done else None


def _of_answer(transcript: Transcript, forbidden: Forbidden) -> Iterator[Mutation]:
    answer = transcript.final_output
    half = answer[: len(answer) // 2]
    for kind, text in (
        ("empty", ""),
        ("refuse", REFUSAL),
        ("unrelated", UNRELATED),
        ("short", _SHORT),
        ("long", _again_and_again(answer, forbidden)),
        ("truncate", half if half.strip() else answer),
        ("numbers", _DIGITS.sub(_other_number, answer)),
        ("case", answer.upper() if answer != answer.upper() else answer.lower()),
    ):
        if text != answer:
            yield Mutation(kind, _saying(transcript, text))


def _again_and_again(answer: str, forbidden: Forbidden) -> str:
    """The answer, as often as it takes to have more words and characters than it may."""
    once = f"{answer if answer.strip() else UNRELATED} "
    by_words = forbidden.words // max(len(once.split()), 1) + 1
    times = max(_LONG // len(once), forbidden.characters // len(once), by_words) + 1
    return (once * min(times, max(_LONGEST // len(once), 2))).rstrip()


def _wasteful(transcript: Transcript) -> Transcript:
    """With far more of each thing that was measured."""
    usage, timing = transcript.usage, transcript.timing
    spent = {name: _MUCH for name in ("input_tokens", "output_tokens", "cost") if getattr(usage, name) is not None}
    took = {name: float(_MUCH) for name in ("first_token_ms", "total_ms") if getattr(timing, name) is not None}
    return replace(transcript, usage=replace(usage, **spent), timing=replace(timing, **took))


def _other_number(match: re.Match[str]) -> str:
    """Another number with as many digits."""
    # No digit becomes 0, which at the beginning would make the number shorter.
    return "".join(str((int(digit) + 1) % 9 + 1) if digit.isascii() else digit for digit in match[0])


def _saying(transcript: Transcript, text: str) -> Transcript:
    final = transcript.final_message
    messages = tuple(
        replace(message, content=text) if number == final else message
        for number, message in enumerate(transcript.messages)
    )
    return replace(transcript, messages=messages, final_output=text)


def _of_calls(transcript: Transcript) -> Iterator[Mutation]:
    calls = transcript.tool_calls
    if not calls:
        return
    for index in _some(range(len(calls))):
        yield Mutation("drop-call", _with_calls(transcript, [n for n in range(len(calls)) if n != index]))
    if len(calls) > 1:
        yield Mutation("drop-all-calls", _with_calls(transcript, []))
    last = len(calls) - 1
    yield Mutation("repeat-call", _with_calls(transcript, [*range(len(calls)), last]))
    for index in range(last):
        # Equal calls that change places are the same run.
        if (calls[index].name, calls[index].arguments) != (calls[index + 1].name, calls[index + 1].arguments):
            order = list(range(len(calls)))
            order[index], order[index + 1] = index + 1, index
            yield Mutation("swap-order", _with_calls(transcript, order))
            break
    for index in _some(range(len(calls))):
        arguments = calls[index].arguments
        if not isinstance(arguments, dict):
            continue
        for name in _some(list(arguments)):
            changed = {**arguments, name: _other_value(arguments[name])}
            yield Mutation("change-argument", _with_arguments(transcript, index, changed))
            less = {key: value for key, value in arguments.items() if key != name}
            yield Mutation("drop-argument", _with_arguments(transcript, index, less))


def _some(values: Sequence[T]) -> list[T]:
    return list(values) if len(values) <= _EACH else [*values[: _EACH - 1], values[-1]]


def _other_value(value: object) -> object:
    """A value of the same type that is not this one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        changed = _DIGITS.sub(_other_number, value)
        return changed if changed != value else f"{value[::-1]} x"
    if isinstance(value, list):
        return value[:-1] if value else ["x"]
    if isinstance(value, dict):
        if not value:
            return {"x": "x"}
        return {key: (_other_value(item) if place == 0 else item) for place, (key, item) in enumerate(value.items())}
    return "x"


def _calling(transcript: Transcript, name: str) -> Transcript:
    """With one more call, at the end, made by the last assistant message that there is."""
    index = len(transcript.tool_calls)
    messages = list(transcript.messages)
    owner = next((n for n in reversed(range(len(messages))) if messages[n].role == "assistant"), None)
    if owner is not None:
        messages[owner] = replace(messages[owner], tool_calls=(*messages[owner].tool_calls, index))
    call = ToolCall(f"mutated-{index}", name, {}, "", "ok", message=owner)
    return replace(transcript, messages=tuple(messages), tool_calls=(*transcript.tool_calls, call))


def _with_arguments(transcript: Transcript, index: int, arguments: dict[str, Any]) -> Transcript:
    calls = list(transcript.tool_calls)
    calls[index] = replace(calls[index], arguments=arguments)
    return replace(transcript, tool_calls=tuple(calls))


def _with_calls(transcript: Transcript, indices: list[int]) -> Transcript:
    """With these calls, in this order (a number may occur twice); messages point at where their calls are now."""
    calls: list[ToolCall] = [transcript.tool_calls[index] for index in indices]
    places = grouped((index, place) for place, index in enumerate(indices))
    messages: list[Message] = []
    for message in transcript.messages:
        if message.role == "tool" and message.tool_call is not None:
            if message.tool_call not in places:
                continue  # the answer of a call that is not there
            message = replace(message, tool_call=places[message.tool_call][0])
        elif message.tool_calls:
            numbers = sorted(place for index in message.tool_calls for place in places.get(index, ()))
            message = replace(message, tool_calls=tuple(numbers))
        messages.append(message)
    return replace(transcript, messages=tuple(messages), tool_calls=tuple(_moved(calls, messages)))


def _moved(calls: list[ToolCall], messages: list[Message]) -> Iterator[ToolCall]:
    """The calls with the message that makes each, whose number changes when messages go."""
    owner = {place: number for number, message in enumerate(messages) for place in message.tool_calls}
    for place, call in enumerate(calls):
        yield replace(call, message=owner.get(place, call.message))
