"""Clues in a conversation of several agents, whose messages have names: who lost the request, whose code failed, where
it broke off, and what everything else rests on. No expectation is needed: such histories have none, as a rule."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from agenteval_tui.analysis.blame.model import Clue, ClueCode
from agenteval_tui.transcripts.model import Message, Transcript

_MOST_SHARED = 0.3
"""A task that has at most this share of the request's words is another task."""
_FEWEST_WORDS = 5
_HEAD = 120  # characters by which two messages are the same
_DIRECTION = re.compile(r"\s*\((.*)\)\s*$", re.DOTALL)  # "Orchestrator (-> WebSurfer)", "Orchestrator (thought)"
_WORD = re.compile(r"[^\W_]{4,}")
# What those who run code for others say of it (AutoGen, and Python itself), and what ends a run from outside.
_FAILED = re.compile(r"exit ?code: *-?[1-9]\d*\b|Traceback \(most recent call last\)")
_REPORT = re.compile(r"\s*exit ?code:|\s*There is no code from the last \d+ message")
_CRASH = re.compile(r"Traceback \(most recent call last\)|\bError code: \d{3}\b")
_CODE = "```"
# How much of a page, or of a document, its reader says it has shown (AutoGen's browsers).
_SEEN = re.compile(r"viewport shows (?P<percent>\d+)% of|Showing page (?P<page>\d+) of (?P<pages>\d+)", re.IGNORECASE)


def is_of_several(transcript: Transcript) -> bool:
    """Whether several agents with names speak in a transcript, and no tool is called."""
    names = {message.name for message in transcript.messages if message.name and message.role in ("assistant", "user")}
    return len(names) > 1 and not transcript.tool_calls


def speaker(message: Message) -> str:
    """Who says a message: the name without what it is for."""
    return _DIRECTION.sub("", message.name or message.role)


def clues_of_several(transcript: Transcript) -> tuple[Clue, ...]:
    """All clues in a conversation of several agents, in no order."""
    messages = transcript.messages
    start = next((index for index, message in enumerate(messages) if message.role == "user" and not message.name), -1)
    answering = {message.name for message in messages if message.role == "assistant"}
    # What an agent was told, as a recording of its requests has it, is nothing that it says.
    turns = [
        index
        for index, message in enumerate(messages)
        if index > start and message.role != "system" and not (message.role == "user" and message.name in answering)
    ]
    if not turns:
        return ()
    request = messages[start].content if start >= 0 else ""
    return (
        *_lost(messages, turns, request),
        *_executions(messages, turns),
        *_seen_in_part(messages, turns),
        *_called_done(messages, turns),
        *_end(messages, turns),
        *_repeated(messages, turns),
        *_first_result(messages, turns),
    )


def _lost(messages: tuple[Message, ...], turns: list[int], request: str) -> Iterator[Clue]:
    words = _words(request)
    first = messages[turns[0]]
    shared = len(words & _words(first.content))
    # Of a short request any paraphrase would have lost its words.
    if len(words) >= _FEWEST_WORDS and shared <= _MOST_SHARED * len(words):
        fields = {"name": speaker(first), "shared": shared, "words": len(words)}
        yield Clue(ClueCode.REQUEST_LOST, turns[0], "agent", None, fields)


def _executions(messages: tuple[Message, ...], turns: list[int]) -> Iterator[Clue]:
    """The author of code that failed: the agent that wrote the last code before the report of the failure."""
    for place, index in enumerate(turns):
        if place and _is_report(messages[index]) and _FAILED.search(messages[index].content):
            # Who runs the code only reports it; who wrote it is to blame, however long ago.
            author = next(
                (turn for turn in reversed(turns[:place]) if _CODE in messages[turn].content), turns[place - 1]
            )
            fields = {"name": speaker(messages[author]), "failed_step": index}
            yield Clue(ClueCode.EXECUTION_FAILED, author, "agent", None, fields)


def _seen_in_part(messages: tuple[Message, ...], turns: list[int]) -> Iterator[Clue]:
    """The first time that a coordinator starts another task although it saw only a part of the last result."""
    task: set[str] | None = None
    result = -1
    for index in turns:
        message = messages[index]
        if not _is_task(message):
            # What is thought in between is no result.
            result = result if _is_thought(message) else index
            continue
        words = _words(message.content)
        if task is not None and result >= 0 and len(words) >= _FEWEST_WORDS:
            extent = _shown(messages[result].content)
            if extent is not None and len(words & task) <= _MOST_SHARED * len(words):
                fields = {"name": speaker(message), "seen_step": result, **extent}
                yield Clue(ClueCode.SEEN_IN_PART, index, "agent", None, fields)
                return
        task = words


def _called_done(messages: tuple[Message, ...], turns: list[int]) -> Iterator[Clue]:
    for index in turns:
        if _is_stuck(messages[index]):
            return
        if _says(_ledger(messages[index]), "is_request_satisfied", True):
            yield Clue(ClueCode.CALLED_DONE, index, "agent", None, {"name": speaker(messages[index])})
            return


def _end(messages: tuple[Message, ...], turns: list[int]) -> Iterator[Clue]:
    last = turns[-1]
    if _is_report(messages[last]) or not _CRASH.search(messages[last].content):
        return
    # What is stuck or repeats itself was ended from outside: the crash is not its cause.
    if not any(_is_stuck(messages[index]) for index in turns) and not any(_repeated(messages, turns)):
        yield Clue(ClueCode.BROKE_OFF, last, "environment", None, {"name": speaker(messages[last])})


def _repeated(messages: tuple[Message, ...], turns: list[int]) -> Iterator[Clue]:
    """Messages that begin alike, of the same speaker, what it thinks aside: it does the same again."""
    counts: Counter[tuple[str, str]] = Counter()
    for index in turns:
        message = messages[index]
        if _is_thought(message) or _is_report(message):
            continue
        key = (message.name or message.role, " ".join(message.content.split())[:_HEAD])
        counts[key] += 1
        # Once, where it begins: what follows is the same again.
        if counts[key] == 2:
            yield Clue(ClueCode.REPEATED, index, "agent", None, {"name": speaker(message), "times": 2})


def _first_result(messages: tuple[Message, ...], turns: list[int]) -> Iterator[Clue]:
    """What the first one who is not the coordinator brings in; without a coordinator, what follows the opening."""
    lead = speaker(messages[turns[0]])
    of_lead = [messages[index] for index in turns if speaker(messages[index]) == lead]
    coordinated = any(_DIRECTION.search(message.name or "") for message in of_lead)
    for index in turns[1:]:
        message = messages[index]
        if _is_report(message) or (coordinated and speaker(message) == lead):
            continue
        yield Clue(ClueCode.FIRST_RESULT, index, "agent", None, {"name": speaker(message)})
        return
    yield Clue(ClueCode.FIRST_RESULT, turns[0], "agent", None, {"name": lead})


def _is_report(message: Message) -> bool:
    return bool(_REPORT.match(message.content))


def _is_thought(message: Message) -> bool:
    direction = _DIRECTION.search(message.name or "")
    return direction is not None and not direction[1].startswith("->")


def _is_task(message: Message) -> bool:
    direction = _DIRECTION.search(message.name or "")
    return direction is not None and direction[1].startswith("->")


def _shown(text: str) -> dict[str, object] | None:
    """How much of a whole a result shows, if that is not all of it."""
    match = _SEEN.search(text)
    if match is None:
        return None
    unit = "percent" if match["percent"] else "page"
    amount, whole = (int(match["percent"]), 100) if match["percent"] else (int(match["page"]), int(match["pages"]))
    return {"seen": amount, "whole": whole, "unit": unit} if amount < whole else None


def _is_stuck(message: Message) -> bool:
    """Whether a coordinator's ledger (Magentic-One) says that it is in a loop or makes no progress."""
    ledger = _ledger(message)
    return _says(ledger, "is_in_loop", True) or _says(ledger, "is_progress_being_made", False)


def _ledger(message: Message) -> object:
    """The ledger of a coordinator; None: the message has none."""
    # A model may write words before its JSON.
    at = message.content.find("{")
    if at < 0 or "is_in_loop" not in message.content:
        return None
    try:
        return json.JSONDecoder().raw_decode(message.content, at)[0]
    except (ValueError, RecursionError):
        return None


def _says(ledger: object, key: str, answer: bool) -> bool:
    entry = ledger.get(key) if isinstance(ledger, Mapping) else None
    return isinstance(entry, Mapping) and entry.get("answer") is answer


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))
