"""A customer of the bundled shop: the simulated user that `demo-rules` plays, by rules.

The goal is a list of wishes, a sentence each, as the customer says them ("Please cancel my order."); "you" and "your"
of a goal that is written for a model become "I" and "my". One wish is told after the other. Asked back, the customer
tells what fits of what they know. After the last answer they say goodbye.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.agents.base import STOP
from agenteval_tui.extensions.demo.shop.seeded_random import Dice
from agenteval_tui.transcripts.model import Message

_SENTENCE = re.compile(r"[^.?!\n]+[.?!]?")
_MINE = (
    (re.compile(r"\byou are\b", re.IGNORECASE), "I am"),
    (re.compile(r"\byour\b", re.IGNORECASE), "my"),
    (re.compile(r"\byou\b", re.IGNORECASE), "I"),
)
_NO_QUESTION = re.compile(r"anything else|sonst noch", re.IGNORECASE)
_GREETINGS = ("", "Hello. ", "Hi! ")
_GOODBYES = ("Thank you, that is all.", "Thanks, bye.", "That is all I wanted to know. Thank you.")


def next_message(brief: Mapping[str, Any], messages: Sequence[Message], dice: Dice) -> str:
    """What the customer says to `messages`, which are the conversation from the customer's side."""
    wishes = list(_wishes(str(brief.get("goal") or "")))
    mine = [message.content for message in messages if message.role == "assistant"]
    heard = next((message.content for message in reversed(messages) if message.role == "user"), "")
    count = sum(any(text.endswith(wish) for text in mine) for wish in wishes)
    if mine and count:
        wish = wishes[count - 1]
        facts = _facts(brief.get("knows"), heard)
        if "?" in heard and not _NO_QUESTION.search(heard) and facts and not any(facts in text for text in mine):
            return f"{facts} {wish}"
    if count >= len(wishes):
        return f"{dice.choose('goodbye', _GOODBYES)} {STOP}"
    return wishes[count] if mine else dice.choose("greeting", _GREETINGS) + wishes[count]


def _wishes(goal: str) -> Iterator[str]:
    for sentence in _SENTENCE.findall(goal):
        if wish := " ".join(sentence.split()):
            for mark, mine in _MINE:
                wish = mark.sub(mine, wish)
            yield wish[0].upper() + wish[1:]


def _facts(knows: object, question: str) -> str:
    """What the customer knows that is asked for; all of it where that can't be told."""
    if isinstance(knows, Mapping):
        relevant = {name: value for name, value in knows.items() if str(name).lower() in question.lower()}
        return " ".join(f"My {name} is {value}." for name, value in (relevant or knows).items())
    if isinstance(knows, list | tuple):
        return " ".join(map(str, knows))
    return str(knows or "")
