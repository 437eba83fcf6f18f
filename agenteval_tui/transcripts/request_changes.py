"""What changed from one request of a model to the next one of the same agent.

A conversation grows: added messages don't change what the model sees. What matters is what went, was shortened
or moved, and what else was asked differently.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from agenteval_tui.core.document import Count, Document
from agenteval_tui.transcripts.model_request import (
    ModelRequest,
    ModelRequests,
    OfferedTool,
    calls_of,
    content_of,
    files_of,
    message_key,
)

Kind = Literal[
    "added",
    "dropped",
    "replaced",
    "masked",
    "changed",
    "moved",
    "restarted",
    "system",
    "tool_added",
    "tool_removed",
    "tool_changed",
    "tools_moved",
    "parameter",
]
_MOST_PAIRS = 1_000_000
"""Pairs of messages in which one with two texts is looked for."""
_MOST_ALIKE = 2_500
"""Pairs whose words are counted."""
_TOLD = ("user", "assistant")
"""Roles of messages that a program may write by itself, such as a summary and an answer to it."""
_TELLING = 12
"""Characters by which a text is recognised inside another."""
_CUT = 20
"""Characters at its beginning by which a text that was cut is recognised."""
_ALIKE = 0.5
"""The share of their words that two texts of one message have in common."""


class RequestChange(Document, frozen=True):
    """One change. `before` and `after` are places of messages (from 0) in the two requests; for all else they are
    empty. `was` and `now` are the texts: of one message, of lines of the system prompt, of a parameter as JSON ("": it
    is not set).

    added: messages after all that were there. dropped: they are not in the request any more. replaced: the messages
    `before` gave way to those of `after`, as to a summary. masked: a shorter text in the same place; changed: another
    text there. moved: the same messages, in another place; tools_moved: tools in another order.
    restarted: no message of the request before is in this one.
    """

    kind: Kind
    before: Annotated[tuple[Count, ...], Meta(description="messages of the request before, counted from 0")] = ()
    after: Annotated[tuple[Count, ...], Meta(description="messages of this request, counted from 0")] = ()
    name: Annotated[str, Meta(description="of a tool or a parameter; of the system prompt the line")] = ""
    was: str = ""
    now: str = ""


class RequestDifference(Struct, frozen=True):
    """All changes. `common`: how many messages both requests begin with; a server's cache holds no longer than that, or
    than the system prompt and the tools stay."""

    changes: tuple[RequestChange, ...]
    common: int

    @property
    def grew_only(self) -> bool:
        """Whether the model sees all that it saw before."""
        return all(change.kind == "added" for change in self.changes)


def changes_since(requests: ModelRequests, number: int) -> RequestDifference | None:
    """What changed since the request before of the same agent; None for its first."""
    earlier = requests.earlier[number - 1]
    if not earlier:
        return None
    was, now = requests.references[earlier - 1], requests.references[number - 1]
    if now.previous:
        return _of_kept(requests.request(earlier), requests.request(number))
    # The usual case, which places in the tables tell without a look at the texts.
    same = (was.model, was.system, was.tools, was.parameters) == (now.model, now.system, now.tools, now.parameters)
    if same and _grew(was.messages, now.messages):
        sizes = [sum(end - first for first, end in request_reference.messages) for request_reference in (was, now)]
        added = tuple(range(*sizes))
        return RequestDifference((RequestChange("added", after=added),) if added else (), sizes[0])
    keys = [
        [requests.key(place) for first, end in request_reference.messages for place in range(first, end)]
        for request_reference in (was, now)
    ]
    return _difference(requests.request(earlier), requests.request(number), *keys)


def _of_kept(before: ModelRequest, after: ModelRequest) -> RequestDifference:
    """What changed where the server keeps the conversation, so that a request has only what is new in it."""
    added = RequestChange("added", after=tuple(range(len(after.messages))))
    return RequestDifference((*((added,) if added.after else ()), *_of_the_rest(before, after)), 0)


def _grew(was: Sequence[tuple[int, int]], now: Sequence[tuple[int, int]]) -> bool:
    """Whether these stretches of the table begin with all of those."""
    if not was:
        return True
    last = len(was) - 1
    return (
        len(now) > last and now[:last] == was[:last] and now[last][0] == was[last][0] and now[last][1] >= was[last][1]
    )


def difference(before: ModelRequest, after: ModelRequest) -> RequestDifference:
    """What changed between two requests of one agent."""
    return _difference(before, after, [*map(message_key, before.messages)], [*map(message_key, after.messages)])


def _difference(before: ModelRequest, after: ModelRequest, was: Sequence[str], now: Sequence[str]) -> RequestDifference:
    """The same, with what tells the messages apart."""
    # A server's cache goes by what was sent, ids and all.
    pairs = zip(before.messages, after.messages, strict=False)
    common = next(
        (place for place, (old, new) in enumerate(pairs) if old != new), min(len(before.messages), len(after.messages))
    )
    changes = (*_of_messages(before.messages, after.messages, was, now), *_of_the_rest(before, after))
    return RequestDifference(changes, common)


def _of_the_rest(before: ModelRequest, after: ModelRequest) -> Iterator[RequestChange]:
    yield from _of_system(before.system, after.system)
    yield from _of_tools(before.tools, after.tools)
    yield from _of_parameters(before, after)


def _of_messages(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    was: Sequence[str],
    now: Sequence[str],
) -> Iterator[RequestChange]:
    if was == now[: len(was)]:
        if len(now) > len(was):
            yield RequestChange("added", after=tuple(range(len(was), len(now))))
        return
    both = set(was) & set(now)
    sides = _Units(before, was, both), _Units(after, now, both)
    for change in _of_units(sides[0].messages, sides[1].messages, sides[0].keys, sides[1].keys):
        yield replace(change, before=sides[0].places(change.before), after=sides[1].places(change.after))


class _Units:
    """Messages in parts that are compared: the text of an answer, and each of its calls. In one protocol they are one
    message, in another each is one, and where one ends is not said. Those that are on `both` sides stay whole."""

    def __init__(self, messages: Sequence[Mapping[str, Any]], keys: Sequence[str], both: Collection[str]) -> None:
        self.messages: list[Mapping[str, Any]] = []
        self.keys: list[str] = []
        self._places: list[int] = []
        for place, (message, key) in enumerate(zip(messages, keys, strict=True)):
            is_whole = key in both or message.get("role") != "assistant"
            for part in (message,) if is_whole else _parts(message):
                self.messages.append(part)
                self.keys.append(key if is_whole else message_key(part))
                self._places.append(place)

    def places(self, units: Sequence[int]) -> tuple[int, ...]:
        """The messages that these parts are of."""
        return tuple(dict.fromkeys(self._places[unit] for unit in units))


def _parts(message: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        yield message
        return
    if message.get("content"):
        yield {key: value for key, value in message.items() if key != "tool_calls"}
    for call in calls:
        yield {"role": "assistant", "content": "", "tool_calls": [call]}


def _of_units(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    was: Sequence[str],
    now: Sequence[str],
) -> Iterator[RequestChange]:
    removed, added, masked, moved = _unmatched(before, after, was, now)
    # The answer to the request before comes right behind what stayed of it. That an older one says the same moves none;
    # nor is an older "Yes." the one that is said now.
    answer = max(set(range(len(now))) - {*added, *(new for _, new in moved)}, default=-1) + 1
    for old, new in [*moved]:
        is_answer = new == answer and after[new].get("role") == "assistant"
        is_short = after[new].get("role") == "user" and len(content_of(after[new])) < _TELLING
        if is_answer or (new > answer and is_short):
            moved.remove((old, new))
            removed, added = sorted([*removed, old]), sorted([*added, new])
    if len(removed) == len(was) and not masked and not moved and was:
        # What is asked comes last; what stands before it is there in place of the messages that went. An answer that
        # stands first may be the last one, which stayed.
        only_texts = all(message.get("role") in _TOLD and not message.get("tool_calls") for message in after)
        if len(added) > 1 and only_texts and after[0].get("role") == after[-1].get("role") == "user":
            yield RequestChange("replaced", tuple(removed), tuple(added[:-1]))
            yield RequestChange("added", after=tuple(added[-1:]))
        else:
            yield RequestChange("restarted", tuple(removed), tuple(added))
        return
    for old, new in masked:
        texts = content_of(before[old]), content_of(after[new])
        if texts[0] == texts[1]:
            texts = files_of(before[old]), files_of(after[new])
        kind: Kind = "masked" if len(texts[1]) < len(texts[0]) else "changed"
        yield RequestChange(kind, (old,), (new,), was=texts[0], now=texts[1])
    if moved:
        yield RequestChange("moved", tuple(old for old, _ in moved), tuple(new for _, new in moved))
    # What came after everything that stayed is how a conversation grows.
    stayed = set(range(len(now))) - set(added)
    last = max(stayed, default=-1)
    within, behind = [place for place in added if place < last], [place for place in added if place > last]
    if removed:
        took_place = _in_place_of(removed, before, after, behind)
        within, behind = within + took_place, [place for place in behind if place not in took_place]
        yield RequestChange("replaced" if within else "dropped", tuple(removed), tuple(within))
    elif within:
        yield RequestChange("added", after=tuple(within))
    if behind:
        yield RequestChange("added", after=tuple(behind))


def _in_place_of(
    removed: Collection[int],
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    behind: Sequence[int],
) -> list[int]:
    """Of the messages `behind` all that stayed, those of the user that took the place of what is `gone`, as a summary
    does: before the answer to the request before, or before what is asked now. As many as the user says at once anyway
    are what is asked."""
    users = [after[place].get("role") == "user" for place in behind]
    first = next((number for number, is_user in enumerate(users) if not is_user), len(users))
    last = next((number for number in range(len(users), 0, -1) if not users[number - 1]), 0)
    last_asked = max((place for place, message in enumerate(before) if message.get("role") == "user"), default=-1)
    habit = 0
    while last_asked - habit >= 0 and before[last_asked - habit].get("role") == "user":
        habit += 1
    usual = max(1, sum(place not in removed for place in range(last_asked - habit + 1, last_asked + 1)))
    leading = range(first) if first < len(users) else ()
    # What was asked, or a remark that stands behind it.
    if last_asked == len(before) - 1 and min(removed) > last_asked - habit:
        last = len(users)
    return [behind[number] for number in (*leading, *range(last, len(users) - usual))]


def _unmatched(
    before: Sequence[Mapping[str, Any]],
    after: Sequence[Mapping[str, Any]],
    was: Sequence[str],
    now: Sequence[str],
) -> tuple[list[int], list[int], list[tuple[int, int]], list[tuple[int, int]]]:
    """(places that went, places that came, pairs of one message with two texts, pairs of messages that moved)."""
    anchors, moved = _anchors(was, now)
    removed: list[int] = []
    added: list[int] = []
    masked: list[tuple[int, int]] = []
    elsewhere = {old for old, _ in moved}, {new for _, new in moved}
    start = (0, 0)
    for anchor in (*anchors, (len(was), len(now))):
        between = [place for place in range(start[0], anchor[0]) if place not in elsewhere[0]]
        against = [place for place in range(start[1], anchor[1]) if place not in elsewhere[1]]
        start = anchor[0] + 1, anchor[1] + 1
        if not between or not against:
            removed += between
            added += against
            continue
        matcher = SequenceMatcher(
            None, [was[number] for number in between], [now[number] for number in against], autojunk=False
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if tag == "equal":
                continue
            old, new = between[i1:i2], against[j1:j2]
            # What comes at the end may be asked anew, in words like those before.
            is_between = anchor[0] < len(was) or i2 < len(between)
            # What was made of a text comes before what only has words in common with it.
            for alike in (False, True) if is_between else (False,):
                # Each is compared with each, which of very many would take too long.
                few = len(old) * len(new) <= (_MOST_ALIKE if alike else _MOST_PAIRS)
                for place in list(old) if few else ():
                    twin = next(
                        (other for other in new if _is_same_message(before[place], after[other], alike=alike)), None
                    )
                    if twin is not None:
                        masked.append((place, twin))
                        old.remove(place)
                        new.remove(twin)
            if (
                len(old) == 1
                and new
                and (len(new) == 1 or not is_between)
                and _stands_there(before, after, old[0], new[0], between=is_between)
            ):
                masked.append((old.pop(), new.pop(0)))
            removed += old
            added += new
    again = _in_another_order(was, now, removed, added, max((new for _, new in anchors), default=-1))
    removed = [place for place in removed if place not in {old for old, _ in again}]
    added = [place for place in added if place not in {new for _, new in again}]
    return removed, added, masked, sorted([*moved, *again])


def _in_another_order(
    was: Sequence[str], now: Sequence[str], removed: Sequence[int], added: Sequence[int], last: int
) -> list[tuple[int, int]]:
    """Of messages that are said several times ("Yes."), those that moved. What comes behind `last`, all that stayed, is
    said anew."""
    free = [place for place in added if place < last]
    pairs: list[tuple[int, int]] = []
    for place in removed:
        twin = next((other for other in free if now[other] == was[place]), None)
        if twin is not None:
            pairs.append((place, twin))
            free.remove(twin)
    return pairs


def _anchors(was: Sequence[str], now: Sequence[str]) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """(pairs of messages that each side has once, in the same order on both; those in another order).

    Messages that come several times ("Yes.") would pair with any other. Source: B. Cohen's patience diff.
    """
    counts = Counter(was), Counter(now)
    places = {key: place for place, key in enumerate(now)}
    pairs = [(old, places[key]) for old, key in enumerate(was) if counts[0][key] == 1 and counts[1].get(key) == 1]
    # The longest run of pairs that rises on both sides: of each length, the pair that ends it lowest.
    ends: list[int] = []
    links: list[int] = []
    tops: list[int] = []
    for number, (_, new) in enumerate(pairs):
        place = bisect_left(tops, new)
        links.append(ends[place - 1] if place else -1)
        if place == len(tops):
            tops.append(new)
            ends.append(number)
        else:
            tops[place], ends[place] = new, number
    numbers = []
    number = ends[-1] if ends else -1
    while number >= 0:
        numbers.append(number)
        number = links[number]
    order = set(numbers)
    return [pairs[number] for number in sorted(order)], [
        pair for number, pair in enumerate(pairs) if number not in order
    ]


def _is_same_message(message: Mapping[str, Any], other: Mapping[str, Any], *, alike: bool) -> bool:
    """Whether these are one message with two texts: the result of the same call, the same call, or a text that was made
    from the other. `alike`: much the same words do."""
    if message.get("role") != other.get("role"):
        return False
    if message.get("role") == "tool":
        if message.get("tool_call_id") or other.get("tool_call_id"):
            return message.get("tool_call_id") == other.get("tool_call_id")
        return message.get("name") == other.get("name")  # Gemini's have no ids, as a rule
    calls = _call_ids(message), _call_ids(other)
    if calls[0] or calls[1]:
        return calls[0] == calls[1] and (any(calls[0]) or message.get("tool_calls") == other.get("tool_calls"))
    return _is_same_text(content_of(message), content_of(other), alike=alike)


def _stands_there(
    before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]], old: int, new: int, *, between: bool
) -> bool:
    """Whether a message stands where another stood: between the same two, or as what was asked before the answer to
    it. What a conversation begins with may be a summary."""
    role = before[old].get("role")
    if role != after[new].get("role"):
        return False
    if between:
        return old > 0 or role != "user"
    is_answered = new + 1 < len(after) and after[new + 1].get("role") == "assistant"
    return role == "user" and old == new == len(before) - 1 and is_answered


def _call_ids(message: Mapping[str, Any]) -> list[str]:
    return [str(call.get("id") or "") for call in calls_of(message)]


def _is_same_text(text: str, other: str, *, alike: bool) -> bool:
    """Whether one text was made from the other: it was cut, something was put around it, or words were left out."""
    if not text.strip() or not other.strip():
        return False
    if alike:
        words = Counter(text.split()), Counter(other.split())
        shared = 2 * (words[0] & words[1]).total() >= _ALIKE * (words[0].total() + words[1].total())
        return shared or text.startswith(other[: max(_CUT, len(other) // 2)])
    # Half of the other text is enough: one that was cut may end with words that say so.
    shorter = min(len(text), len(other))
    in_other = shorter >= _TELLING and (text in other or other in text)
    return in_other or text.startswith(other[: max(2 * _CUT, len(other) // 2)])


def _of_system(was: str, now: str) -> Iterator[RequestChange]:
    if was == now:
        return
    lines = was.splitlines(), now.splitlines()
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, *lines, autojunk=False).get_opcodes():
        if tag != "equal":
            # Lines have numbers as editors show them.
            yield RequestChange(
                "system", name=str(j1 + 1), was="\n".join(lines[0][i1:i2]), now="\n".join(lines[1][j1:j2])
            )


def _of_tools(before: Sequence[OfferedTool], after: Sequence[OfferedTool]) -> Iterator[RequestChange]:
    was, now = (
        {offered_tool.name: offered_tool for offered_tool in before},
        {offered_tool.name: offered_tool for offered_tool in after},
    )
    for name, tool in was.items():
        if name not in now:
            yield RequestChange("tool_removed", name=name, was=tool.description)
    for name, tool in now.items():
        if name not in was:
            yield RequestChange("tool_added", name=name, now=tool.description)
        elif tool.description != was[name].description:
            yield RequestChange("tool_changed", name=name, was=was[name].description, now=tool.description)
        elif tool.parameters != was[name].parameters:
            yield RequestChange("tool_changed", name=name, was=_json(was[name].parameters), now=_json(tool.parameters))
    stayed = [name for name in was if name in now], [name for name in now if name in was]
    if stayed[0] != stayed[1]:
        yield RequestChange("tools_moved", was=", ".join(stayed[0]), now=", ".join(stayed[1]))


def _of_parameters(before: ModelRequest, after: ModelRequest) -> Iterator[RequestChange]:
    was, now = ({"model": model_request.model, **model_request.parameters} for model_request in (before, after))
    for name in dict.fromkeys((*was, *now)):
        if was.get(name) != now.get(name):
            texts = (_json(side[name]) if side.get(name) is not None else "" for side in (was, now))
            yield RequestChange("parameter", (), (), name, *texts)


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
