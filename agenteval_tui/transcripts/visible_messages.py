"""Which messages of a transcript the model saw when it gave an answer, and where others left its sight."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.transcripts.model_request import ModelRequests, functions_of, message_key
from agenteval_tui.transcripts.request_changes import RequestChange, changes_since

LOSSES = ("dropped", "replaced", "masked", "restarted")
"""Kinds of change after which the model no longer sees what it saw."""


def losses(requests: ModelRequests, kinds: Collection[str] = LOSSES) -> Iterator[tuple[int, RequestChange]]:
    """Each loss, as (the number of the request that lacks something, what it lacks)."""
    for number in range(1, len(requests.references) + 1):
        difference = changes_since(requests, number)
        for change in difference.changes if difference is not None else ():
            if change.kind in kinds and not _asks_anew(requests, number, change):
                yield number, change


def _asks_anew(requests: ModelRequests, number: int, change: RequestChange) -> bool:
    """Whether only what was asked before is gone, of which no answer was in a request: no conversation is lost where
    each request is a question by itself. Examples of answers that its first request had are none of the model's."""
    before = requests.before(number)
    if before is None or not change.before:
        return False
    answers = [place for place, message in enumerate(before.messages) if message.get("role") == "assistant"]
    if change.kind == "restarted" or not answers:
        return change.kind == "restarted" and not answers
    line = before.line
    first = next(reference for reference in requests.references if reference.line == line)
    examples = {requests.key(place) for start, end in first.messages for place in range(start, end)}
    asked = max(place for place, message in enumerate(before.messages) if message.get("role") != "user")
    return min(change.before) > asked and all(message_key(before.messages[place]) in examples for place in answers)


class Sight:
    """Which messages of a transcript the model saw at each answer. Made once, each question costs little."""

    def __init__(self, transcript: Transcript) -> None:
        self._requests = transcript.requests or ModelRequests()
        places: dict[_Key, set[int]] = {}
        for place, message in enumerate(self._requests.messages):
            places.setdefault(_key(str(message.get("role")), message.get("content"), _calls(message)), set()).add(place)
        nowhere: set[int] = set()
        self._places = [places.get(_own_key(transcript, message), nowhere) for message in transcript.messages]
        """Of each message: where it is in the table of all requests."""
        self._calls = {
            _own_key(transcript, message): message.tool_calls for message in transcript.messages if message.tool_calls
        }
        self._results = {m.tool_call: place for place, m in enumerate(transcript.messages) if m.tool_call is not None}
        self._texts = [message.content.strip() for message in transcript.messages]
        self._prompts = [message.content if message.role == "system" else None for message in transcript.messages]

    def request_at(self, message: int) -> int:
        """The number (from 1) of the request for this message, or for the first answer behind it; 0: there is none."""
        answers = [
            (request_reference.answer, number)
            for number, request_reference in enumerate(self._requests.references, 1)
            if request_reference.answer is not None and request_reference.answer >= message
        ]
        return min(answers)[1] if answers else 0

    def other_results(self, number: int) -> dict[int, str]:
        """The messages with tool results that have another text in this request, each with that text."""
        if not number:
            return {}
        others: dict[int, str] = {}
        open_results: list[int] = []
        for message in self._requests.request(number).messages:
            calls = _calls(message)
            if calls:
                numbers = self._calls.get(_key(str(message.get("role")), "", calls), ())
                open_results = [self._results[call] for call in numbers if call in self._results]
            elif message.get("role") == "tool" and open_results:
                others[open_results.pop(0)] = str(message.get("content") or "")
        return {place: text for place, text in others.items() if text.strip() != self._texts[place]}

    def standing(self, number: int) -> dict[int, int]:
        """Which messages of the transcript before the answer are in this request: the place (from 0) of each there.
        A text that was said several times ("Yes.") stands beside what stood beside it."""
        request = self._requests.references[number - 1] if number else None
        if request is None or request.answer is None:
            return {}
        told = [place for first, end in request.messages for place in range(first, end)]
        options: dict[int, set[int]] = {}
        for index, places in enumerate(self._places[: request.answer]):
            for place in places:
                options.setdefault(place, set()).add(index)
        chosen: list[int | None] = [None] * len(told)

        def choose(position: int, index: int) -> None:
            chosen[position] = index
            for place in self._places[index]:
                options[place].discard(index)

        for position, place in enumerate(told):
            if len(options.get(place, ())) == 1:
                choose(position, min(options[place]))
        for step in (1, -1):
            for position in range(len(told))[::step]:
                beside = chosen[position - step] if 0 <= position - step < len(told) else None
                if chosen[position] is None and beside is not None and beside + step in options.get(told[position], ()):
                    choose(position, beside + step)
        last = request.answer
        for position in range(len(told) - 1, -1, -1):
            left = options.get(told[position], set())
            if chosen[position] is None and left:
                choose(position, max((index for index in left if index < last), default=max(left)))
            last = min(last, request.answer if chosen[position] is None else chosen[position] or 0)
        return {index: position for position, index in enumerate(chosen) if index is not None}

    def only_told(self, number: int) -> dict[int, list[Message]]:
        """The messages of a request that the transcript has nowhere before the answer: a summary in place of others, a
        text that was shortened, a reminder. By the message of the transcript that they follow.

        Results of tools (`other_results`) and calls are not among them."""
        standing = {position: index for index, position in self.standing(number).items()}
        if not number or self._requests.references[number - 1].answer is None:
            return {}
        only: dict[int, list[Message]] = {}
        messages = self._requests.request(number).messages
        behind = min(standing, default=len(messages))
        last = standing[behind] - 1 if standing else (self._requests.references[number - 1].answer or 0) - 1
        for position, message in enumerate(messages):
            last = standing.get(position, last)
            if (
                position not in standing
                and message.get("role") in ("user", "assistant")
                and not message.get("tool_calls")
            ):
                only.setdefault(last, []).append(Message(str(message["role"]), str(message.get("content") or "")))
        return only

    def out_of_sight(self, number: int) -> frozenset[int]:
        """The messages before the answer to this request that are not in it. None are where that is not known: there is
        no such request, or the server keeps a part of the conversation."""
        request = self._requests.references[number - 1] if number else None
        if request is None or request.answer is None or request.previous:
            return frozenset()
        standing = self.standing(number)
        system = self._requests.systems[request.system]
        texts = {system, *system.split("\n\n")}
        return frozenset(
            [
                index
                for index, prompt in enumerate(self._prompts[: request.answer])
                if index not in standing and (prompt is None or prompt not in texts)
            ]
        )


_Key = tuple[str, str]


def _own_key(transcript: Transcript, message: Message) -> _Key:
    calls = [[call.name, call.arguments] for call in map(transcript.tool_calls.__getitem__, message.tool_calls)]
    return _key(message.role, message.content, calls)


def _key(role: str, content: object, calls: list[list[Any]]) -> _Key:
    """What makes a message the same in another place. A text beside calls is often left out when it is told again."""
    return role, json.dumps(calls, sort_keys=True, default=str) if calls else str(content or "").strip()


def _calls(message: Mapping[str, Any]) -> list[list[Any]]:
    return [
        [str(function.get("name")), decode_arguments(function.get("arguments"))[0]]
        for function in functions_of(message)
    ]
