"""When two requests are equal: whatever the order of JSON's keys, the ids of calls, and what is known to vary.

What varies, `volatile_parts` finds by comparing what a program asked twice.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from itertools import islice, zip_longest
from operator import eq
from typing import Any

import msgspec
from msgspec.structs import replace

from agenteval_tui.agents.recording.answers import Difference
from agenteval_tui.agents.recording.cassette import ANY, PATTERNS, Volatile
from agenteval_tui.agents.recording.exchange import Question
from agenteval_tui.agents.recording.protocols import without_system
from agenteval_tui.agents.recording.repeated_ids import IDS, with_ids
from agenteval_tui.core.common_prefix import SharedStarts, common_end, common_start
from agenteval_tui.core.json_values import with_texts

# What no answer depends on.
_BESIDE = frozenset(("metadata", "user", "safety_identifier", "prompt_cache_key", "service_tier"))
_CALL_IDS = frozenset(("id", "tool_call_id", "tool_use_id", "toolUseId", "call_id"))
_CONVERSATION = frozenset(("messages", "input", "contents"))
# What is a model's or a tool's own words: an id in it is data.
_DATA = frozenset(
    ("arguments", "args", "input", "json", "response", "parameters", "input_schema", "json_schema", "schema")
)
_ORDER = (ANY, *PATTERNS)
_CONCURRENT = 8
"""How many requests of another run are looked at for the one that is the same: a program may ask several at once."""
_NEAR = 12  # characters before and behind a number, by which it is told from others
# `prompt` is all that Ollama generates from, and older completions.
_PROMPTS = ("system", "instructions", "systemInstruction", "system_instruction", "prompt")
_MESSAGE = re.compile(r"[^\[]*\[\d+\]")
_EPOCH = re.compile(r"\b1\d{9}(?:\d{3}|\d{6}|\d{9}|\.\d+)?\b")
_OF_MODELS = ("assistant", "model")
_Comparison = Callable[[object, object], bool]


class Matcher:
    """Compares requests. `system` False leaves the system prompt out."""

    def __init__(self, volatile: Sequence[Volatile] = (), *, system: bool = True) -> None:
        self.volatile = tuple(volatile)
        # The most particular pattern first, whichever rule came first: without its digits, an id looks like none.
        in_order = sorted(volatile, key=lambda part: _ORDER.index(part.like))
        self._rules = [(re.compile(_pattern_of(part.at)), part.like, part.between) for part in in_order]
        self._system = system
        self._conversations = SharedStarts[_Numbered]()
        self._alone = threading.Lock()

    def key(self, question: Question) -> str:
        """A text that equal requests have in common: a digest, as the requests of a long conversation are megabytes."""
        essence = self.essence(question)
        body = essence["body"]
        if isinstance(body, Mapping) and not self._rules:
            # The conversation is repeated in each request: its digest goes on from the one before.
            # As a list: a text that is a digest is another conversation.
            essence["body"] = {
                key: [value.digest] if isinstance(value, _Items) else value for key, value in body.items()
            }
        text = json.dumps(essence, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    def essence(self, question: Question) -> dict[str, Any]:
        """What of a request counts."""
        body = question.body if self._system else without_system(question)
        # JSON has no bytes.
        if isinstance(body, bytes):
            body = body.hex()
        if isinstance(body, Mapping):
            body = {key: value for key, value in body.items() if key not in _BESIDE}
        # Before what is volatile is masked: places are the same, and ids are numbers then.
        counted = self._numbered(body)
        if self._rules:
            ids: dict[str, str] = {}
            counted = self._masked(counted, "", ids)
            if ids:
                counted = with_ids(counted, ids)
            if counted is _NOTHING:
                counted = None
        return {"to": question.title, "query": dict(question.query), "body": counted}

    def differences(self, recorded: Question, now: Question) -> list[Difference]:
        """Where a request differs from a recorded one."""
        return _all_differences(self.essence(recorded), self.essence(now))

    def body_differences(self, recorded: Question, now: Question) -> dict[str, Difference]:
        """The same of the bodies alone, by the place ("": all of a body that is not an object)."""
        differences = _differences(self.essence(recorded)["body"], self.essence(now)["body"], "", _is_same)
        return {difference.at: difference for difference in differences}

    def _numbered(self, body: object) -> object:
        if not isinstance(body, Mapping):
            return body
        # Ids are the same in all parts of a request; as a rule, there is one conversation.
        numbered = _Numbered()
        counted = dict(body)
        for key in sorted(_CONVERSATION & body.keys()):
            items = body[key]
            if isinstance(items, list) and not numbered.known:
                exact = [*map(_exact, items)]
                # Runs that are made again side by side share the index of their cassette, each in a thread.
                with self._alone:
                    numbered = self._conversations.of(exact, partial(_Numbered.of, items))
                counted[key] = numbered.items
            else:
                counted[key] = numbered.walked(items)
        return counted

    def _masked(self, value: object, at: str, ids: dict[str, str]) -> object:
        """`ids` gets those that are masked, each with what stands for it elsewhere: in what the model said of them."""
        for rule, like, between in self._rules:
            if rule.fullmatch(at):
                # Left out, not masked: what varies may be there in one request, and not in the other.
                if like == ANY:
                    return _NOTHING
                if isinstance(value, str):
                    if like in IDS:
                        for name in PATTERNS[like].findall(value):
                            ids.setdefault(name, f"…{len(ids) + 1}")
                    value = _without_between(value, like, *between) if between else PATTERNS[like].sub("…", value)
                # Not true and false, which Python takes for numbers: a request for a stream is another one.
                elif type(value) in (int, float) and like == "number":
                    return "…"
        if isinstance(value, Mapping):
            members = ((key, self._masked(item, f"{at}.{key}" if at else str(key), ids)) for key, item in value.items())
            return {key: item for key, item in members if item is not _NOTHING}
        if isinstance(value, list):
            items = [self._masked(item, f"{at}[{number}]", ids) for number, item in enumerate(value)]
            # Only at the end: what follows keeps its place.
            while items and items[-1] is _NOTHING:
                items.pop()
            return ["…" if item is _NOTHING else item for item in items]
        return value


def nearest(matcher: Matcher, questions: Sequence[Question], now: Question) -> tuple[int, list[Difference]] | None:
    """Which of the recorded requests is nearest to one that is not there, and where it differs. None: there are none.

    Nearest is the one of the same address with the fewest differences; of those alike the one that has most in common
    at the place of its first difference.
    """
    best: tuple[tuple[bool, int, float], int] | None = None
    essence = matcher.essence(now)
    for number, question in enumerate(questions):
        # 1 and 1.0 alone make no request nearer, and to tell them apart takes twice as long.
        differences = _all_differences(matcher.essence(question), essence, eq)
        rank = (question.path != now.path, _weight(differences), -_in_common(differences))
        if best is None or rank < best[0]:
            best = rank, number
    return None if best is None else (best[1], matcher.differences(questions[best[1]], now))


def without_clock(question: Question, *days: date) -> Question:
    """A request without what a clock puts into a prompt: dates of these days and of those beside them, with the times
    in the same text. Only what comes before a model's first answer is looked at: what tools gave stays as it is."""
    body = question.body
    if not isinstance(body, Mapping):
        return question
    # A clock may be of another time zone.
    near = {day + timedelta(days=offset) for day in days for offset in (-1, 0, 1)}
    without_now = partial(_without_now, days=near)
    changed = {key: with_texts(part, without_now) if key in _PROMPTS else part for key, part in body.items()}
    for key in _CONVERSATION & body.keys():
        items = body[key]
        first = len(items) if isinstance(items, list) else 0
        for number, message in enumerate(items if isinstance(items, list) else ()):
            if not isinstance(message, Mapping) or message.get("role", _OF_MODELS[0]) in _OF_MODELS:
                first = number
                break
        changed[key] = (
            [*(with_texts(message, without_now) for message in items[:first]), *items[first:]] if first else items
        )
        # The Responses API takes a text for a conversation of one message.
        if isinstance(items, str):
            changed[key] = without_now(items)
    return replace(question, body=changed)


def _without_now(text: str, days: Collection[date]) -> str:
    times = 0

    def masked(match: re.Match[str]) -> str:
        nonlocal times
        near = _is_near(match.group(), days)
        times += near
        return "…" if near else match.group()

    for name in ("date-time", "date"):
        text = PATTERNS[name].sub(masked, text)
    text = _EPOCH.sub(masked, text)
    # A time alone may be what the prompt is about; beside a date of today it is the clock's.
    return PATTERNS["time"].sub("…", text) if times else text


def _is_near(matched: str, days: Collection[date]) -> bool:
    """Whether a date, or the seconds since 1970, is one of these days."""
    if _EPOCH.fullmatch(matched):
        return date.fromtimestamp(int(matched[:10])) in days
    numbers, lower = [int(number) for number in re.findall(r"\d+", matched)], matched.lower()
    return any(_is_of_day(numbers, lower, day) for day in days)


def _is_of_day(numbers: Sequence[int], lower: str, day: date) -> bool:
    """Whether these numbers of a date in lower case, in its order, mean that day."""
    if "-" in lower:
        return [*numbers[:3]] == [day.year, day.month, day.day]
    # Which of both is the day differs from country to country.
    if len(numbers) == 3:
        return sorted(numbers[:2]) == sorted((day.month, day.day)) and numbers[2] in (day.year, day.year % 100)
    if not numbers:
        return day.strftime("%a").lower() in lower
    has_month = re.search(rf"\b{day.strftime('%b').lower()}", lower) is not None
    return has_month and [*numbers] in ([day.day], [day.day, day.year])


def volatile_parts(pairs: Sequence[tuple[Question, Question]]) -> tuple[Volatile, ...]:
    """What varies between requests of which each pair should be equal."""
    rules: dict[Volatile, None] = {}
    for question, other in pairs:
        differences = Matcher().body_differences(question, other)
        # What one pair taught need not be learned from the next. But what is left is learned from the whole texts: a
        # rule so far may take out what tells an id from a word.
        for at in Matcher(tuple(rules)).body_differences(question, other):
            for rule in _rules_for(differences[at]) if at in differences else ():
                rules.setdefault(rule)
    return tuple(rules)


def varying_parts(asked: Sequence[Question], before: Sequence[Question]) -> tuple[Volatile, ...]:
    """What varies between two runs of a program: only ids, dates and numbers, in its own words and those of its tools.
    What the runs asked is compared up to where they parted: there, the model said something else, or more differs.
    """
    rules: dict[Volatile, None] = {}
    left = list(before)
    for question in asked:
        # A program that asks several at once asks them in another order each time.
        same = most_alike(question, left[:_CONCURRENT])
        if same is None:
            break
        place, needed = same
        rules.update(dict.fromkeys(needed))
        del left[place]
    return tuple(rules)


def most_alike(
    question: Question, others: Sequence[Question], *, numbers: bool = True
) -> tuple[int, tuple[Volatile, ...]] | None:
    """(the place of the request that is the same by the fewest rules, these rules); None: no request is. `numbers`:
    whether one may be that has other numbers."""
    candidates = [
        (len(rules), place, rules)
        for place, other in enumerate(others)
        if (rules := _rules_between(question, other)) is not None
        and (numbers or all(rule.like != "number" for rule in rules))
    ]
    return min(candidates, key=lambda candidate: candidate[:2])[1:] if candidates else None


def _rules_between(question: Question, other: Question) -> tuple[Volatile, ...] | None:
    """By which rules the two are equal; None: by none that hides only ids, dates and numbers."""
    if (question.title, question.query, _length(question)) != (other.title, other.query, _length(other)):
        return None
    differences = Matcher().body_differences(question, other)
    own = [difference for at, difference in differences.items() if not _is_said_by_model(question, at)]
    rules = tuple(dict.fromkeys(rule for difference in own for rule in _narrow_rules(difference)))
    if any(rule.like == ANY for rule in rules):
        return None
    # What the model repeats of the ids is equal, too; what else it said is not.
    return None if differences and Matcher(rules).body_differences(question, other) else rules


def _length(question: Question) -> int:
    """How many messages its conversation has."""
    body = question.body if isinstance(question.body, Mapping) else {}
    return sum(len(items) for key in _CONVERSATION & body.keys() if isinstance(items := body[key], list))


def _is_said_by_model(question: Question, at: str) -> bool:
    """Whether a place in a request is of a message that a model gave, and the program sends back."""
    place = re.match(rf"({'|'.join(sorted(_CONVERSATION))})\[(\d+)\]", at)
    if place is None or not isinstance(question.body, Mapping):
        return False
    items = question.body[place[1]]
    number = int(place[2])
    if not isinstance(items, list) or number >= len(items) or not isinstance(items[number], Mapping):
        return False
    item = items[number]
    return item.get("role") in _OF_MODELS or str(item.get("type", "")).endswith(("_call", "reasoning"))


def _rules_for(difference: Difference) -> list[Volatile]:
    """What must be left out so that the two sides are equal."""
    recorded, other = difference.recorded, difference.now
    everywhere = re.sub(r"\[\d+\]", "[*]", difference.at)
    if {type(recorded), type(other)} <= {int, float}:
        return [Volatile(everywhere, "number")]
    if isinstance(recorded, str) and isinstance(other, str):
        needed: list[str] = []
        for name in PATTERNS:
            if _without(recorded, needed) == _without(other, needed):
                break
            # A pattern that is found on both sides, and brings them nearer.
            if PATTERNS[name].search(_without(recorded, needed)) and PATTERNS[name].search(_without(other, needed)):
                needed.append(name)
        if needed and _without(recorded, needed) == _without(other, needed):
            # A pattern that another one makes needless is left out: each hides more than it should.
            for name in list(needed):
                rest = [other_name for other_name in needed if other_name != name]
                if rest and _without(recorded, rest) == _without(other, rest):
                    needed = rest
            return [Volatile(everywhere, name) for name in needed]
    return [Volatile(difference.at)]


def _narrow_rules(difference: Difference) -> Iterator[Volatile]:
    """The same; of numbers in a text only those that differ: another number there may be what a change brought."""
    rules = _rules_for(difference)
    recorded, now = difference.recorded, difference.now
    for rule in rules:
        if rule.like != "number" or not isinstance(recorded, str) or not isinstance(now, str):
            yield rule
            continue
        others = [other.like for other in rules if other is not rule]
        recorded, now = _without(recorded, others), _without(now, others)
        number = PATTERNS["number"]
        parts = number.split(recorded)
        for place, (before, after) in enumerate(zip(number.findall(recorded), number.findall(now), strict=True)):
            if before != after:
                yield replace(rule, between=(parts[place][-_NEAR:], parts[place + 1][:_NEAR]))


def _without_between(text: str, like: str, before: str, after: str) -> str:
    def masked(match: re.Match[str]) -> str:
        start, end = match.span()
        is_there = (text.endswith(before, 0, start) if before else start == 0) and (
            text.startswith(after, end) if after else end == len(text)
        )
        return "…" if is_there else match.group()

    return PATTERNS[like].sub(masked, text)


def _without(text: str, names: Sequence[str]) -> str:
    for name in names:
        text = PATTERNS[name].sub("…", text)
    return text


def _pattern_of(at: str) -> str:
    if at == "*":
        return ".*"
    return re.escape(at).replace(r"\[\*\]", r"\[\d+\]")


class _Items(list[object]):
    """The messages of a conversation. `digest` is that of the whole."""

    digest = ""


class _Numbered:
    """A conversation in which ids of calls and messages are numbers, in the order in which they occur."""

    def __init__(self) -> None:
        self.items = _Items()
        self.known: dict[str, str] = {}
        self._states: list[tuple[int, str]] = []  # behind each item: how many ids there are, and the digest until there

    @classmethod
    def of(cls, items: Sequence[object], shared: int, earlier: _Numbered | None) -> _Numbered:
        """The conversation of these items, of which an earlier one has the first `shared`."""
        later, ids, digest = cls(), 0, ""
        if earlier is not None:
            later._states = earlier._states[:shared]
            later.items = _Items(earlier.items[:shared])
            ids, digest = later._states[-1]
            later.known = dict(islice(earlier.known.items(), ids))
        for item in items[shared:]:
            numbered = later.walked(item)
            later.items.append(numbered)
            text = digest + json.dumps(numbered, sort_keys=True, ensure_ascii=True)
            digest = hashlib.sha256(text.encode("ascii")).hexdigest()
            later._states.append((len(later.known), digest))
        later.items.digest = digest
        return later

    def walked(self, value: object) -> object:
        """A part of a request with numbers for ids."""
        # Nearly all parts are texts, and to ask whether something is a mapping takes long.
        if isinstance(value, str):
            return value
        if isinstance(value, list):
            return [self.walked(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {
            key: self._number(item)
            if isinstance(item, str) and key in _CALL_IDS
            else item
            if key in _DATA
            else self.walked(item)
            # Sorted: the numbers would else tell in which order a program writes an item's `id` and `call_id`.
            for key, item in sorted(value.items())
        }

    def _number(self, name: str) -> str:
        return self.known.setdefault(name, f"#{len(self.known) + 1}")


def _exact(item: object) -> bytes:
    """An item by which it is told from others: Python takes 1, 1.0 and True for equal."""
    try:
        return _encoder.encode(item)
    except (UnicodeEncodeError, OverflowError):  # half of a pair of surrogates; a number of more than 64 bits
        return json.dumps(item).encode("ascii")


_encoder = msgspec.json.Encoder()


_NOTHING = object()
"""In place of a member or an item that is not there: `None` is JSON's null."""


def _is_same(value: object, other: object) -> bool:
    return value == other and _exact(value) == _exact(other)


def _all_differences(
    recorded: Mapping[str, Any], now: Mapping[str, Any], is_same: _Comparison = _is_same
) -> list[Difference]:
    return [
        *_differences(recorded["to"], now["to"], "address", is_same),
        *_differences(recorded["query"], now["query"], "query", is_same),
        *(
            replace(difference, at=difference.at or "body")
            for difference in _differences(recorded["body"], now["body"], "", is_same)
        ),
    ]


def _differences(value: object, other: object, at: str, is_same: _Comparison) -> Iterator[Difference]:
    if is_same(value, other):
        return
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys((*value, *other)):
            below = f"{at}.{key}" if at else str(key)
            yield from _differences(value.get(key, _NOTHING), other.get(key, _NOTHING), below, is_same)
    elif isinstance(value, list) and isinstance(other, list):
        for number, (item, other_item) in enumerate(zip_longest(value, other, fillvalue=_NOTHING)):
            # Most messages are equal: to look into each of them takes long.
            if not is_same(item, other_item):
                yield from _differences(item, other_item, f"{at}[{number}]", is_same)
    else:
        yield Difference(at, _told(value, other), _told(other, value))


def _told(value: object, beside: object) -> object:
    """A side of a difference: None says that there is nothing, so null beside nothing is told as a text."""
    if value is _NOTHING:
        return None
    return "null" if value is None and beside is _NOTHING else value


def _weight(differences: Sequence[Difference]) -> int:
    """A message on one side only weighs more than one that is changed, however many fields of it are."""
    weights: dict[str, int] = {}
    for difference in differences:
        message = _MESSAGE.match(difference.at)
        place = difference.at if message is None else message[0]
        is_missing = difference.recorded is None or difference.now is None
        weights[place] = 3 if is_missing and place == difference.at else min(2, weights.get(place, 0) + 1)
    return sum(weights.values())


def _in_common(differences: Sequence[Difference]) -> float:
    """How much of the first texts that differ is the same, from 0 to 1."""
    if not differences or not isinstance(differences[0].recorded, str) or not isinstance(differences[0].now, str):
        return 0.0
    recorded, other = differences[0].recorded, differences[0].now
    same = common_start(recorded, other) + common_end(recorded, other)
    return min(1.0, same / max(1, len(recorded), len(other)))
