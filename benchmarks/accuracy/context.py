"""How surely a change of what the model sees is found: planted losses, and recordings without any.

    python -m benchmarks.accuracy.context ../shared/data/tau_bench/FILE.json

A recording is a conversation of the file, asked answer by answer as an agent does it, in the four protocols that
recordings know. In a planted one the agent changes its context before one of its answers: it drops the oldest
messages, replaces them by a summary, shortens a result of a tool, moves a message, leaves a tool out, or changes its
system prompt.
Found means: that request is the first with a loss or such a change, of that kind, and the lost text is named.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import content_of
from agenteval_tui.transcripts.request_changes import RequestChange, difference
from agenteval_tui.transcripts.visible_messages import Sight

Message = dict[str, Any]
SEED = 7
EACH = 10
UNTOUCHED = 200
TOOLS = ("get_user_details", "get_reservation_details", "search_direct_flight", "calculate", "think")
SUMMARY = "Summary of the conversation until here: the customer asked for help with a booking."


class Asked:
    """What an agent sends for an answer: its context, its tools and its system prompt."""

    def __init__(self, system: str, messages: Sequence[Message]) -> None:
        self.system, self.messages, self.tools = system, [dict(one) for one in messages], list(TOOLS)


Plant = Callable[[Asked, random.Random], str | None]
"""Changes what is sent, and gives the text that is lost ("": none is); None where there is nothing to change."""


def truncation(asked: Asked, draw: random.Random) -> str | None:
    """The oldest messages are dropped, calls with their results."""
    end = _whole(asked.messages, draw.randint(2, max(2, len(asked.messages) // 2)))
    gone, asked.messages = asked.messages[:end], asked.messages[end:]
    return content_of(gone[0]) if gone and len(asked.messages) > 1 else None


def compaction(asked: Asked, draw: random.Random) -> str | None:
    """They give way to a summary."""
    lost = truncation(asked, draw)
    if lost is not None:
        asked.messages.insert(0, {"role": "user", "content": SUMMARY})
    return lost


def masking(asked: Asked, draw: random.Random) -> str | None:
    """The result of a tool is shortened."""
    results = [one for one in asked.messages[:-1] if one["role"] == "tool" and len(content_of(one)) > 40]
    if not results:
        return None
    chosen = draw.choice(results)
    lost = content_of(chosen)
    chosen["content"] = "[result removed]"
    return lost


def reordering(asked: Asked, draw: random.Random) -> str | None:
    """A message of the user moves to the front."""
    texts = Counter(map(content_of, asked.messages))
    places = [
        place
        for place, one in enumerate(asked.messages[:-1])
        if place and one["role"] == "user" and texts[content_of(one)] == 1
    ]
    if not places:
        return None
    asked.messages.insert(0, asked.messages.pop(draw.choice(places)))
    return ""


def changed_tools(asked: Asked, draw: random.Random) -> str | None:
    """A tool is left out."""
    asked.tools.remove(draw.choice(asked.tools))
    return ""


def changed_system(asked: Asked, draw: random.Random) -> str | None:
    """A line of the system prompt goes."""
    lines = asked.system.splitlines()
    place = draw.choice([number for number, line in enumerate(lines) if line.strip()])
    lost = lines.pop(place)
    asked.system = "\n".join(lines)
    return lost


PLANTS: dict[str, tuple[Plant, tuple[str, ...]]] = {
    "truncation": (truncation, ("dropped",)),
    "compaction": (compaction, ("replaced",)),
    "masking": (masking, ("masked",)),
    "reordering": (reordering, ("moved",)),
    "changed tools": (changed_tools, ("tool_removed",)),
    "changed system prompt": (changed_system, ("system",)),
}


def _whole(messages: Sequence[Message], end: int) -> int:
    """`end`, moved on so that no call is parted from its results."""
    while end < len(messages) and messages[end]["role"] != "user":
        end += 1
    return end


def recording(
    conversation: Sequence[Message], protocol: str, plant: Plant | None, draw: random.Random
) -> tuple[list[Exchange], int, str] | None:
    """A conversation, asked answer by answer: (the exchanges, the request with the plant from 1, what it lost). The
    change stays in all later requests. None where the plant has no place."""
    system = content_of(conversation[0]) if conversation[0]["role"] == "system" else "You help customers."
    messages = [one for one in conversation if one["role"] != "system"]
    answers = [place for place, one in enumerate(messages) if one["role"] == "assistant" and place]
    if len(answers) < 4:
        return None
    at = draw.randrange(len(answers) // 2, len(answers))
    exchanges: list[Exchange] = []
    changed: Asked | None = None
    lost, since = "", 0
    for number, place in enumerate(answers):
        asked = Asked(system, messages[:place])
        if plant is not None and number == at:
            found = plant(asked, draw)
            if found is None or not asked.messages:
                return None
            lost, changed, since = found, asked, place
        elif changed is not None:
            asked = Asked(changed.system, [*changed.messages, *messages[since:place]])
            asked.tools = changed.tools
        exchanges.append(_exchange(protocol, asked, messages[place], len(exchanges) * 10.0))
    return exchanges, at + 1, lost


# Protocols


def _exchange(protocol: str, asked: Asked, answer: Message, at_ms: float) -> Exchange:
    path, body, reply = PROTOCOLS[protocol](asked, answer)
    question = Question("POST", path, {}, body)
    return Exchange(question, Answer(200, "application/json", reply), "", at_ms, at_ms + 5)


def _chat(asked: Asked, answer: Message) -> tuple[str, Any, Any]:
    tools = [
        {"type": "function", "function": {"name": name, "description": name, "parameters": {}}} for name in asked.tools
    ]
    messages = [{"role": "system", "content": asked.system}, *asked.messages]
    reply = {"model": "m", "choices": [{"message": answer, "finish_reason": "stop"}]}
    return "openai/v1/chat/completions", {"model": "m", "messages": messages, "tools": tools}, reply


def _responses(asked: Asked, answer: Message) -> tuple[str, Any, Any]:
    tools = [{"type": "function", "name": name, "description": name, "parameters": {}} for name in asked.tools]
    items = [item for one in asked.messages for item in _items(one)]
    output = [
        {**item, "content": [{"type": "output_text", "text": item["content"]}]} if item.get("role") else item
        for item in _items(answer)
    ]
    body = {"model": "m", "instructions": asked.system, "input": items, "tools": tools}
    return "openai/v1/responses", body, {"model": "m", "id": "r", "status": "completed", "output": output}


def _items(message: Message) -> Iterator[Any]:
    if message["role"] == "tool":
        yield {"type": "function_call_output", "call_id": message["tool_call_id"], "output": content_of(message)}
        return
    if message.get("content"):
        yield {"type": "message", "role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls") or ():
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _anthropic(asked: Asked, answer: Message) -> tuple[str, Any, Any]:
    tools = [{"name": name, "description": name, "input_schema": {}} for name in asked.tools]
    messages = [
        {"role": "user" if one["role"] != "assistant" else "assistant", "content": _blocks(one)}
        for one in asked.messages
    ]
    body = {"model": "m", "system": asked.system, "messages": messages, "tools": tools, "max_tokens": 9}
    return (
        "anthropic/v1/messages",
        body,
        {"model": "m", "role": "assistant", "content": _blocks(answer), "stop_reason": "end_turn"},
    )


def _blocks(message: Message) -> list[Any]:
    if message["role"] == "tool":
        return [{"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": content_of(message)}]
    blocks: list[Any] = [{"type": "text", "text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        given = json.loads(call["function"]["arguments"])
        blocks.append({"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": given})
    return blocks


def _gemini(asked: Asked, answer: Message) -> tuple[str, Any, Any]:
    body = {
        "systemInstruction": {"parts": [{"text": asked.system}]},
        "contents": [
            {"role": "model" if one["role"] == "assistant" else "user", "parts": _parts(one)} for one in asked.messages
        ],
        "tools": [
            {"functionDeclarations": [{"name": name, "description": name, "parameters": {}} for name in asked.tools]}
        ],
    }
    content = {"role": "model", "parts": _parts(answer)}
    return (
        "gemini/v1beta/models/m:generateContent",
        body,
        {"candidates": [{"content": content, "finishReason": "STOP"}]},
    )


def _parts(message: Message) -> list[Any]:
    if message["role"] == "tool":
        told = {"id": message["tool_call_id"], "name": message["name"]}
        return [{"functionResponse": {**told, "response": {"result": content_of(message)}}}]
    parts: list[Any] = [{"text": message["content"]}] if message.get("content") else []
    for call in message.get("tool_calls") or ():
        given = json.loads(call["function"]["arguments"])
        parts.append({"functionCall": {"id": call["id"], "name": call["function"]["name"], "args": given}})
    return parts


PROTOCOLS: dict[str, Callable[[Asked, Message], tuple[str, Any, Any]]] = {
    "Chat Completions": _chat,
    "Responses": _responses,
    "Messages": _anthropic,
    "Gemini": _gemini,
}


# What is found


def first_change(transcript: Transcript) -> tuple[int, tuple[RequestChange, ...], str] | None:
    """The first request that does more than grow: (its number, what changed, the texts that it is without)."""
    requests = transcript.requests
    assert requests is not None
    for request in requests.all:
        before = requests.before(request.number)
        made = None if before is None else difference(before, request)
        if before is not None and made is not None and not made.grew_only:
            texts = [content_of(before.messages[place]) for change in made.changes for place in change.before]
            texts += [change.was for change in made.changes]
            return request.number, made.changes, "\n".join(texts)
    return None


def is_found(exchanges: Sequence[Exchange], at: int, kinds: Sequence[str], lost: str) -> bool:
    """Whether the planted change is named: its request, its kind, and the text that was lost."""
    found = first_change(transcript_of(exchanges))
    return (
        found is not None
        and found[0] == at
        and {change.kind for change in found[1]} - {"added"} == set(kinds)
        and lost in found[2]
    )


def has_alarm(exchanges: Sequence[Exchange]) -> bool:
    """Whether something is said to be lost, or shown as not seen."""
    transcript = transcript_of(exchanges)
    sight, count = Sight(transcript), len(exchanges)
    return first_change(transcript) is not None or any(sight.out_of_sight(number) for number in range(1, count + 1))


def conversations(path: Path) -> list[list[Message]]:
    """The conversations of a file of tau-bench."""
    return [one["traj"] for one in json.loads(path.read_text("utf-8"))]


def named(recorded: Sequence[Sequence[Message]], plant: Plant, kinds: Sequence[str], draw: random.Random) -> int:
    """Of `EACH` recordings with a plant, in all protocols in turn: in how many it is named."""
    protocols = list(PROTOCOLS)
    found = number = 0
    while number < EACH:
        made = recording(draw.choice(recorded), protocols[number % len(protocols)], plant, draw)
        if made is not None:
            exchanges, at, lost = made
            found += is_found(exchanges, at, kinds, lost)
            number += 1
    return found


def measured(path: Path) -> tuple[dict[str, tuple[int, int]], tuple[int, int]]:
    """({plant: (found, of)}, (false alarms, of))."""
    draw = random.Random(SEED)
    recorded = conversations(path)
    table = {name: (named(recorded, plant, kinds, draw), EACH) for name, (plant, kinds) in PLANTS.items()}
    protocols = list(PROTOCOLS)
    untouched = [
        made
        for number in range(UNTOUCHED)
        if (made := recording(recorded[number // 2 % len(recorded)], protocols[number % 4], None, draw)) is not None
    ]
    return table, (sum(has_alarm(exchanges) for exchanges, _, _ in untouched), len(untouched))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("file", type=Path)
    table, (alarms, of) = measured(parser.parse_args().file)
    print("| planted | named: request, kind and text |\n|---|---|")
    for name, (found, number) in table.items():
        print(f"| {name} | {found} of {number} |")
    print(f"| nothing | {alarms} false alarms in {of} |")


if __name__ == "__main__":
    main()
