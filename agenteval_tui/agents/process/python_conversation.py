"""What a Python agent said, put together from pieces that may repeat one another. Runs in the child: needs only the
standard library, of Python 3.8 or later.

Frameworks tell the same thing several times: as it comes, when a message is whole, and with everything at the end. Each
piece is merged into one list of messages; what is new in it is told as events. Where the order turns out to differ from
the one told, `restart` takes back what was told, and tells it again.

A message is a dict: {"role": "assistant", "text", "reasoning", "calls": [{"id", "name", "arguments"}], "closed",
"usage", "model", "finish", "agent" (the name of the one that wrote it)}, or {"role": "tool", "call_id", "name", "text",
"error"}; with "id" where the framework gave one, which may be "provisional": the whole message has a different id.
Others ("user", "system") only help to find the place.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Call, Event, Figures, Item, Message, Part

EVENTS = (
    *("text", "reasoning", "tool_call", "tool_result", "message_end", "usage", "done", "error"),
    *("restart", "note", "ready", "agent", "model_request"),
)
"""The types of events that an agent may give (docs/schemas/agent-event.json)."""


class Conversation:
    """`messages`: those that the agent was asked with ({"role", "content"}), which a framework may give back."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.empty = True  # nothing that could be read has come
        self._given = [(message.get("role"), message.get("content") or "") for message in messages]
        self._items: list[Item] = []
        self._told: list[Item] = []  # of the items, those that were told, in this order
        # A run may have thousands of calls: what no piece has changed since it was told is not looked at again.
        self._unchanged = 0  # so many of the first items
        self._by_key: dict[tuple[str, str], list[Item]] = {}  # the items by what `_same_id` compares
        self._event_ids: set[object] = set()  # of the calls in events
        self._call_ids: set[object] = set()  # of these, and of the calls that were told
        self._totals: Any = []  # (what it is of, the figures)
        self._notes: list[Event] = []
        self._said_notes: set[tuple[str, str]] = set()
        self._usage_given = False
        self._done = False
        self._about: dict[str, object] = {}
        self._going_on: Item | None = None  # the item whose text was told whole, and that is the last
        self._more: list[str] = []  # what its text has grown by
        self._more_told = 0  # this many of these were told
        self._agent: str | None = None  # the name that was told last
        self._is_provisional = False  # whether an item has an id that does not last

    @property
    def acts(self) -> bool:
        """Whether a tool was called, or has answered."""
        return any(item["role"] == "tool" or item.get("calls") for item in self._items)

    # What comes in.

    def text(self, text: str, key: object = None, what: Part = "text", agent: str | None = None) -> None:
        """More of the answer (or of the "reasoning"): of the message with this key, or of the current one. `agent`: who
        writes it, if it is new."""
        self.empty = False
        last = self._items[-1] if self._items else None
        # A stream gives thousands of pieces: adding each to the text, and comparing all items after it, would take time
        # that grows with its square.
        if last is not None and last is self._going_on and what == "text" and key in (None, last["id"]):
            self._more.append(text)  # as nearly all pieces are
            return
        self._fold()
        if key is None:
            item = last if last and last["role"] == "assistant" and not last["closed"] and last.get("live") else None
        else:
            item = next((item for item in reversed(self._items) if item.get("id") == key), None)
        if item is None:
            item = _message("assistant", key, agent)
            item["live"] = True
            self._add(item)
        item[what] += text
        self._changed(item)

    def event(self, event: Event) -> None:
        """An event as the agent gave it."""
        self.empty = False
        kind = event.get("type")
        if kind in ("text", "reasoning") and isinstance(event.get("text"), str):
            self.text(event["text"], what=kind)
            return
        self._fold()
        self._usage_given = self._usage_given or kind == "usage"
        self._done = self._done or kind in ("done", "error")
        self._items.append({"role": "event", "event": event, "closed": True})
        if kind == "tool_call" and isinstance(event.get("id"), str):
            self._event_ids.add(event["id"])
            self._call_ids.add(event["id"])

    def one(self, message: Message) -> None:
        """A message, or as much as there is of it: in the place of the one with its id, else a new one."""
        self.empty = False
        self._fold()
        known = {id(item): item for key in _keys(message) for item in self._by_key.get(key, ())}
        same = [item for item in known.values() if _same_id(item, message)]
        earlier = same[0] if same else None
        if len(same) > 1:
            earlier = next(item for item in self._items if any(item is entry for entry in same))
        if earlier is None and (self._is_provisional or message.get("provisional")):
            earlier = next(
                (item for item in self._items if _is_provisional(item, message) and _same(item, message)), None
            )
        if earlier is None:
            self._add(_complete(message))
        else:
            self._update(earlier, message)

    def _add(self, item: Item, place: int | None = None) -> None:
        """A new item, at its place or as the last one."""
        at = len(self._items) if place is None else place
        self._items.insert(at, item)
        self._unchanged = min(self._unchanged, at)
        self._index(item)

    def _update(self, item: Item, message: Message) -> None:
        """The same message once more."""
        if _replace(item, message):
            self._changed(item)
            self._index(item)

    def _index(self, item: Item) -> None:
        self._is_provisional = self._is_provisional or bool(item.get("provisional"))
        for key in _keys(item):
            items = self._by_key.setdefault(key, [])
            if not any(entry is item for entry in items):
                items.append(item)

    def _changed(self, item: Item) -> None:
        # It is nearly always one of the last ones.
        last = range(len(self._items) - 1, -1, -1)
        self._unchanged = min(self._unchanged, next((n for n in last if self._items[n] is item), 0))

    def whole(self, messages: Sequence[Message]) -> None:
        """Messages in their order, of which some may be known: by their ids, by the ids of their calls, or, from the
        first to the last, by what they say."""
        self.empty = self.empty and not messages
        self._fold()
        spoken = []
        for message in messages[self._begin(messages) :]:
            if message["role"] in ("assistant", "tool"):
                spoken.append(message)
            elif spoken and message["role"] == "user":
                self.note("left_out", "a message of the user within the agent's answer")
        self._forget_joined(spoken)
        # Where each is that is known, from the first to the last.
        places: list[int | None] = []
        at = 0
        for message in spoken:
            place = next((n for n in range(at, len(self._items)) if _same(self._items[n], message)), None)
            if place is None:  # known by its id, though out of order
                place = next((n for n in range(at) if _same_id(self._items[n], message)), None)
            else:
                at = place + 1
            places.append(place)
        # An unknown one comes after the one before it; the first ones come before the first known one.
        first = next((place for place in places if place is not None), len(self._items))
        items = [None if place is None else self._items[place] for place in places]
        at = first
        for message, item in zip(spoken, items):  # noqa: B905 - Python 3.8
            if item is None:
                self._add(_complete(message), at)
                at += 1
            else:
                self._update(item, message)
                near = chain(range(at, len(self._items)), range(at))
                at = next(n for n in near if self._items[n] is item) + 1

    def _forget_joined(self, messages: list[Message]) -> None:
        """Texts of several messages that came as one, in pieces, are the texts of these messages."""
        live = [item for item in self._items if item.get("live") and item["id"] is None and item["text"]]
        if not live:
            return
        whole = "".join(message["text"] for message in messages if message["role"] == "assistant")
        texts = [message["text"].strip() for message in messages if message["role"] == "assistant"]
        for item in live:
            if item["text"].strip() not in texts and "".join(item["text"].split()) == "".join(whole.split()):
                self._remove(item)

    def _remove(self, item: Item) -> None:
        self._changed(item)
        self._items = [entry for entry in self._items if entry is not item]
        for key in _keys(item):
            self._by_key[key] = [entry for entry in self._by_key.get(key, ()) if entry is not item]

    def append(self, messages: Sequence[Message]) -> None:
        """Messages that are not known, unless by an id."""
        for message in messages[self._begin(messages) :]:
            if message["role"] in ("assistant", "tool"):
                self.one(message)

    def final(self, text: str) -> None:
        """The answer, as the framework says it: a message of its own unless the last one says it already."""
        self.empty = False
        self._fold()
        last = next((item for item in reversed(self._items) if item["role"] == "assistant"), None)
        if text and (last is None or not _equal(last["text"], text)):
            self._add(_complete({"role": "assistant", "text": text}))

    def ends_with(self, messages: Sequence[Message]) -> tuple[str | None, bool]:
        """Make the last message of a state, if that is an answer, the last one: (the answer that came after it and is
        not in the state, whether the state has an answer)."""
        self._fold()
        last = next((item for item in reversed(self._items) if item["role"] == "assistant" and item["text"]), None)
        new = messages[self._begin(messages) :]
        # A graph may keep what an agent says as a message of the user to the next one.
        if last is None or any(_same(last, message) or _equal(last["text"], message["text"]) for message in new):
            return None, True
        if not new:
            return last["text"], False
        item = next((item for item in reversed(self._items) if _same(item, new[-1])), None)
        if item is None or item["role"] != "assistant" or not new[-1]["text"]:
            return None, True
        self._remove(item)
        self._add(item)
        return last["text"], True

    def total(self, of: object, usage: Figures, whole: bool = False) -> None:
        """What something (an object, or the id of a response) used in all; this counts more than the messages'."""
        if not usage:  # most chunks of a stream have none, and take nothing back
            return
        for total in self._totals:
            if total[0] is of or (isinstance(of, str) and total[0] == of):
                total[1] = usage
                return
        self._totals.append([of, usage, whole])

    def only_total(self, of: object, usage: Figures) -> None:
        """The same of a whole run, which knows more than what was counted while it streamed."""
        if usage:
            self._totals = [total for total in self._totals if total[0] is of or total[2]]
            self.total(of, usage, whole=True)

    def call(self, key: object, call: Call, agent: str | None = None) -> None:
        """A call of the message with this key (which `agent` writes, if it is new); once, however often it is told."""
        self.empty = False
        self._fold()
        known = self._by_key.get(("call", str(call["id"])), ()) if call.get("id") else self._items
        if any(_key(call) == _key(other) for item in known if item["role"] == "assistant" for other in item["calls"]):
            return
        item = next((item for item in self._items if item.get("id") == key), None)
        if item is None:
            item = _message("assistant", key, agent)
            self._add(item)
        item["calls"] = [*item["calls"], call]
        item["closed"] = True
        self._changed(item)
        self._index(item)

    def close(self) -> None:
        """The current message is complete; what follows starts a new one."""
        self._fold()
        if self._items:
            self._items[-1]["closed"] = True
            self._changed(self._items[-1])

    def about(
        self, model: str | None = None, finish: str | None = None, outputs: dict[str, object] | None = None
    ) -> None:
        """Which model answered, why its last answer ended, and what was returned beside it."""
        facts = (("model", model), ("finish", finish), ("outputs", outputs))
        self._about = dict(self._about, **{k: v for k, v in facts if v})

    def note(self, code: str, what: str) -> None:
        """Something that the run must say: what could not be read, for one."""
        if (code, what) not in self._said_notes:
            self._said_notes.add((code, what))
            self._notes.append({"type": "note", "code": code, "what": what})

    def _begin(self, messages: Sequence[Message]) -> int:
        """How many of the first messages are those that the agent was asked with."""
        spoken = [entry for entry in self._given if entry[0] not in ("system", "developer")]
        at = 0
        for number, message in enumerate(messages):
            if message["role"] in ("system", "developer"):
                continue
            if at == len(spoken) or (message["role"], message["text"]) != spoken[at]:
                break
            at += 1
            if at == len(spoken):
                return number + 1
        # The prompt may have been changed; what was answered before was not.
        before = [text for role, text in spoken if role == "assistant"]
        answered = [number for number, message in enumerate(messages) if message["role"] == "assistant"][: len(before)]
        if before and len(answered) == len(before) and [messages[number]["text"] for number in answered] == before:
            return answered[-1] + 1
        return 0

    # What goes out.

    def news(self, end: bool = False) -> Iterator[Event]:
        """Events of what is new. At the `end` also what was not sure before: usage, model, why it ended."""
        if self._going_on is not None and not end:
            yield {"type": "text", "text": "".join(self._more[self._more_told :])}
            self._more_told = len(self._more)
            return
        self._fold()
        # What was told can't be changed, only taken back as a whole.
        if self._stale():
            yield {"type": "restart"}
            self._told, self._agent, self._unchanged = [], None, 0
            for item in self._items:
                item.pop("told", None)
            self._call_ids = self._event_ids.copy()
        for number, item in enumerate(self._items[self._unchanged :], self._unchanged):
            sure = end or item["closed"] or number < len(self._items) - 1
            yield from self._tell(item, sure)
        # More of the last one may be sure when another one follows.
        self._unchanged = max(0, len(self._items) - 1)
        yield from self._notes
        self._notes = []
        if end:
            yield from self._end()
        last = self._items[-1] if self._items else None
        if last is not None and last["role"] == "assistant" and not last["closed"] and "told" in last:
            self._going_on = last

    def _fold(self) -> None:
        if self._going_on is not None:
            text = "".join(self._more[: self._more_told])
            self._going_on["told"]["text"] += text
            self._going_on["text"] += "".join(self._more)
            self._changed(self._going_on)
            self._going_on, self._more, self._more_told = None, [], 0

    def _stale(self) -> bool:
        visible = [item for item in self._items[self._unchanged :] if _has(item)]
        # Those before were told as they are now.
        last = (n for n in range(self._unchanged - 1, -1, -1) if "told" in self._items[n])
        before = next((self._items[n]["told"]["at"] + 1 for n in last), 0)
        told = self._told[before:]
        if len(told) > len(visible) or any(entry is not visible[n] for n, entry in enumerate(told)):
            return True
        for number, item in enumerate(told, before):
            sent = item["told"]
            if any(not item[name].startswith(sent[name]) for name in ("text", "reasoning") if name in sent):
                return True
            if sent.get("calls", []) != [_key(call) for call in item.get("calls", ())][: len(sent.get("calls", []))]:
                return True
            # A name that is known late can still be told for the last message, and for no other.
            if sent.get("agent") != item.get("agent") and "calls" in sent and number < len(self._told) - 1:
                return True
            # Text can only be added to the last message that was told.
            grown = any(len(item[name]) > len(sent[name]) for name in ("text", "reasoning", "calls") if name in sent)
            if grown and number < len(self._told) - 1:
                return True
        return False

    def _tell(self, item: Item, sure: bool) -> Iterator[Event]:
        sent = item.get("told")
        if sent is None:
            if not _has(item):
                return
            self._told.append(item)
        at = len(self._told) - 1
        if item["role"] == "event":
            if sent is None:
                item["told"] = {"at": at}
                yield item["event"]
            return
        if item["role"] == "tool":
            if sent is None:
                item["told"] = {"at": at}
                yield from self._result(item)
            return
        if sent is None:
            if self._is_open(self._told[:-1]):
                yield {"type": "message_end"}
            sent = item["told"] = {"at": at, "text": "", "reasoning": "", "calls": []}
        if item["agent"] != self._agent:
            yield {"type": "agent", "name": item["agent"] or ""}
        sent["agent"] = self._agent = item["agent"]
        for what in ("reasoning", "text"):
            more = item[what][len(sent[what]) :]
            if more:
                sent[what] = item[what]
                yield {"type": what, "text": more}
        for call in item["calls"][len(sent["calls"]) :] if sure else ():
            sent["calls"].append(_key(call))
            if item["role"] == "assistant":
                self._call_ids.add(call.get("id"))
            yield dict(call, type="tool_call")

    @staticmethod
    def _is_open(items: list[Item]) -> bool:
        """Whether the last message of these continues: results of its own calls end it, those of an agent that called
        another agent don't."""
        answered: set[object] = set()
        for item in reversed(items):
            if item["role"] == "assistant":
                ids = {call.get("id") for call in item["calls"]}
                return not (ids & answered or (ids and None in answered))
            answered.add(item.get("call_id"))
        return False

    def _result(self, item: Item) -> Iterator[Event]:
        # A result of a call that was not seen, as of an earlier turn in the memory of a graph.
        if item["call_id"] is not None and item["call_id"] not in self._call_ids:
            self.note("unmatched_result", item["name"] or item["call_id"])
            return
        result = {"type": "tool_result", "result": item["text"], "error": bool(item["error"])}
        if item["call_id"] is not None:
            result["id"] = item["call_id"]
        yield result

    def _end(self) -> Iterator[Event]:
        if not self._usage_given:
            # Both count the same tokens: the messages' figures are for where there is no total.
            figures = [total[1] for total in self._totals]
            if not figures:
                figures = [item["usage"] for item in self._items if item.get("usage")]
            # One event for each place: they are added up where they are read.
            yield from (dict(figure, type="usage") for figure in figures if figure)
        about = {
            name: self._about[key]
            for key, name in (("finish", "finish_reason"), ("model", "model"), ("outputs", "outputs"))
            if key in self._about
        }
        for item in self._items:
            # The last message that has them counts: a run ends as its last answer did.
            for name, key in (("finish", "finish_reason"), ("model", "model")):
                if item.get(name):
                    about[key] = item.get(name)
        if about and not self._done:
            yield dict(about, type="done")


def _message(role: str, key: object = None, agent: str | None = None) -> Item:
    message: Item = {"role": role, "id": key, "text": "", "reasoning": "", "calls": [], "closed": False}
    message.update({"call_id": None, "name": None, "error": False, "agent": agent})
    return message


def _complete(message: Message) -> Item:
    whole = _message(message["role"])
    whole["closed"] = True
    for name, value in message.items():
        if value is not None:
            whole[name] = value  # type: ignore[literal-required]
    return whole


def _replace(item: Item, message: Message) -> bool:
    """The same message once more: whether it changes anything. The new content counts, but a summary does not remove
    known content."""
    known = dict(item)
    for name, value in message.items():
        if value is None or (name in ("text", "reasoning", "calls") and not value):
            continue
        if name == "calls":
            calls, earlier = message["calls"], item["calls"]
            whole = {_key(call) for call in calls} >= {_key(call) for call in earlier}
            item["calls"] = calls if whole else _joined(earlier, calls)
        else:
            item[name] = value  # type: ignore[literal-required]
    item["closed"] = message.get("closed", True)
    item["provisional"] = bool(item.get("provisional") and message.get("provisional"))
    return known != item


def _is_provisional(message: Message, other: Message) -> bool:
    """Whether one of two messages has an id that does not last."""
    return bool(message.get("provisional") or other.get("provisional"))


def _joined(calls: list[Call], more: list[Call]) -> list[Call]:
    keys = [_key(call) for call in calls]
    return calls + [call for call in more if _key(call) not in keys]


def _key(call: Call) -> str:
    # Some frameworks have no ids: then a call is known by what it asks for.
    return call.get("id") or json.dumps([call.get("name"), call.get("arguments")], default=str, sort_keys=True)


def _keys(message: Message) -> Iterator[tuple[str, str]]:
    """What a message has in common with each that `_same_id` takes for the same."""
    if message["role"] == "tool":
        if message.get("call_id") is not None:
            yield "tool", str(message["call_id"])
    elif message["role"] == "assistant":
        if message.get("id") is not None:
            yield "id", str(message["id"])
        for call in message.get("calls", ()):
            if call.get("id") is not None:
                yield "call", str(call["id"])


def _same_id(message: Message, other: Message) -> bool:
    if message["role"] != other["role"]:
        return False
    if message["role"] == "tool":
        return other.get("call_id") is not None and message["call_id"] == other["call_id"]
    if other.get("id") is not None and message.get("id") is not None:
        return bool(message["id"] == other["id"])
    ids = {call.get("id") for call in message.get("calls", ())} - {None}
    return bool(ids & {call.get("id") for call in other.get("calls", ())})


def _same(message: Message, other: Message) -> bool:
    if message["role"] != other["role"] or message["role"] not in ("assistant", "tool"):
        return False
    if _same_id(message, other):
        return True
    if message["role"] == "tool":
        return message["call_id"] is None and other.get("call_id") is None and message["text"] == other["text"]
    if message.get("id") is not None and other.get("id") is not None and not _is_provisional(message, other):
        return False
    if message["calls"] and other.get("calls"):
        return [_key(call) for call in message["calls"]] == [_key(call) for call in other["calls"]]
    # As text that was told before the message was whole.
    return bool(message["text"]) and message["text"].strip() == other.get("text", "").strip()


def _equal(text: str, other: str) -> bool:
    # A structured answer comes as the model wrote it, and again as its framework writes it: with other spaces.
    if text.strip() == other.strip():
        return True
    try:
        return bool(json.loads(text) == json.loads(other))
    except (ValueError, RecursionError):
        return False


def _has(item: Item) -> bool:
    # A message of the assistant begins before there is anything in it.
    if item["role"] == "assistant":
        return bool("told" in item or item["text"] or item["reasoning"] or item["calls"])
    return True
