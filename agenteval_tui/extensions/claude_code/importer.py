"""Claude Code's sessions (`~/.claude/projects/*/SESSION.jsonl`), and what `claude -p` prints with `--output-format
stream-json` or `json`: an object an event, messages as Anthropic's API has them.

A session is a tree (`parentUuid`): where the user went back, the conversation is the way to the last event, and each
branch that was left is a run of its own. An answer that came in pieces is several events with the same message id; each
piece repeats the usage so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.formats.importers.format import Format, by_value
from agenteval_tui.formats.importers.message_formats import as_object, plain_text, type_of
from agenteval_tui.formats.importers.recording import Recording, Skipped, as_id, skipped_element
from agenteval_tui.formats.importers.session_log import Session, SessionRequest, session_recording
from agenteval_tui.formats.importers.usage_import import number
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement
from agenteval_tui.transcripts.codec import content_text
from agenteval_tui.transcripts.observed import without_calls

NAME = "claude-code"
_ROLES = ("user", "assistant")
_ABOUT = ("summary", "system", "file-history-snapshot", "queue-operation", "progress", "custom-title", "ai-title")
_PRINTED = (*_ROLES, "system", "result", "stream_event", "rate_limit_event")
_SYNTHETIC = "<synthetic>"
"""The model of messages that Claude Code itself wrote in place of an answer."""
_LOCAL = ("<local-command-stdout>", "<local-command-stderr>", "<local-command-caveat>")
_COMPACTED = ("compact_boundary", "microcompact_boundary")
_KEPT_IN_COMPACTION = ("preservedSegment", "preserved_segment")
"""What a compaction says where it left messages in the context, and not which."""
_MOST_BRANCHES = 100

Event = Mapping[str, Any]


def can_read(value: Any) -> bool:
    """Whether a file's first value is an event of a session."""
    if not isinstance(value, Mapping):
        return False
    kind = value.get("type")
    if "session_id" in value and kind in _PRINTED:
        return isinstance(value.get("message"), Mapping) or kind not in _ROLES
    if kind in _ROLES:
        return "sessionId" in value and isinstance(value.get("message"), Mapping)
    return kind in _ABOUT and bool(value.keys() & {"sessionId", "leafUuid", "messageId"})


class _Log(Struct):
    """The events of a session in the order of the file, with those that belong to no session yet before it."""

    name: str
    events: list[Event] = field(default_factory=list)
    before: list[Event] = field(default_factory=list)


def recordings(elements: Iterable[JsonElement | BrokenElement]) -> Iterator[Recording | Skipped]:
    """A run for each session of the file; what an agent gave to an agent below it is a run of its own."""
    logs: dict[str, _Log] = {}
    before: list[Event] = []  # what stands before the first event that names its session
    below: dict[str, str] = {}  # an event of an agent below that has no name: its conversation
    for element in elements:
        if isinstance(element, BrokenElement):
            yield skipped_element(element)
            continue
        event = element.value
        if not isinstance(event, Mapping):
            yield Skipped("not an event: it is not an object", element.line)
            continue
        name = plain_text(event.get("sessionId") or event.get("session_id")) or next(iter(logs), "")
        if not name:
            before.append(event)
            continue
        log = logs.setdefault(named := _conversation_of(event, name, below), _Log(named))
        log.before += before
        before.clear()
        log.events.append(event)
    for log in logs.values():
        yield from _runs(log)


def _conversation_of(event: Event, name: str, below: dict[str, str]) -> str:
    """The session that an event is of: of an agent below, by its name or by the call that asked it; of older sessions,
    which have neither, by the event that it starts with."""
    asked_by = plain_text(event.get("parent_tool_use_id"))
    if event.get("isSidechain") is not True and not asked_by:
        return name
    if agent := plain_text(event.get("agentId")) or asked_by:
        return f"{name} {agent}"
    begun = below.get(plain_text(event.get("parentUuid")))
    if begun is None:
        several = len({conversation for conversation in below.values() if conversation.startswith(f"{name} sidechain")})
        begun = f"{name} sidechain {several + 1}" if several else f"{name} sidechain"
    below[plain_text(event.get("uuid"))] = begun
    return begun


def _runs(log: _Log) -> Iterator[Recording | Skipped]:
    """The run that a session is, and those of the branches that the user left."""
    events, branches, taken_back, left_out = _branches(log.events)
    own = {id(event) for branch in branches for event in branch.own}
    rest = [event for event in log.events if id(event) not in own]
    notes = []
    if taken_back:
        notes.append(f"taken back by the user before they were answered: {count(taken_back, 'message')}")
    if left_out:
        notes.append(f"left out: {count(left_out, 'answer')} in further branches that the user left")
    names = [f"{log.name} rewound {number}" for number in range(1, len(branches) + 1)]
    if names:
        listed = ", ".join(map(as_id, names[:3])) + (" and more" if len(names) > 3 else "")
        notes.append(f"the user went back: what was said before that is a run of its own ({listed})")
    yield _run(log.name, events, [*log.before, *rest], notes)
    for name, branch in zip(names, branches, strict=True):
        run = _run(name, branch.way, branch.own, [], fresh=branch.own)
        yield replace(run, test_name=f"{run.test_name} (rewound)") if isinstance(run, Recording) else run


class _Branch(Struct):
    """A branch that the user left: the whole way to its end, and the events on it that no other run has."""

    way: list[Event]
    own: list[Event]


def _branches(events: Sequence[Event]) -> tuple[list[Event], list[_Branch], int, int]:
    """(the events of the conversation, the branches that were left, how many messages without an answer and how many
    answers are in neither)."""
    if not any("parentUuid" in event for event in events):
        return list(events), [], 0, 0
    tree = _Tree(events)
    spoken = [at for at, event in enumerate(events) if _is_said(event)]
    main_way = tree.way(spoken[-1]) if spoken else set()
    main = [events[at] for at in sorted(main_way)]
    branches: list[_Branch] = []
    # One without an answer is no branch: the user took it back.
    remaining = [at for at in spoken if at not in main_way and _is_answer(events[at])]
    while remaining and len(branches) < _MOST_BRANCHES:
        way = tree.way(remaining[-1])
        own = way - main_way
        branches.insert(0, _Branch([events[at] for at in sorted(way)], [events[at] for at in sorted(own)]))
        main_way |= own
        remaining = [at for at in remaining if at not in own]
    taken_back = sum(1 for at in spoken if at not in main_way and _is_prompt(events[at]))
    return main, branches, taken_back, len(remaining)


class _Tree:
    """The events of a session by the ways that lead to them."""

    def __init__(self, events: Sequence[Event]) -> None:
        self._events = events
        self._at = {plain_text(event["uuid"]): at for at, event in enumerate(events) if event.get("uuid")}
        self._answers: dict[str, list[int]] = {}  # message id -> its pieces
        self._results: dict[str, list[int]] = {}  # id of a call -> what answered it
        for at, event in enumerate(events):
            message = event.get("message")
            if not isinstance(message, Mapping):
                continue
            if event.get("type") == "assistant" and message.get("id"):
                self._answers.setdefault(plain_text(message["id"]), []).append(at)
            for call in _answered_in(message):
                self._results.setdefault(call, []).append(at)

    def way(self, end: int) -> set[int]:
        """The places of the events that lead to one, with all pieces of their answers and all results of their
        calls: of several calls at once each piece and each result may be a branch."""
        path: set[int] = set()
        at: int | None = end
        while at is not None and at not in path:
            path.add(at)
            at = self._before(at)
        waiting = list(path)
        while waiting:
            message = self._events[waiting.pop()].get("message")
            if not isinstance(message, Mapping):
                continue
            more = list(self._answers.get(plain_text(message.get("id")), ()))
            more += [place for call in _called_in(message) for place in self._results.get(call, ())]
            fresh = [place for place in more if place not in path]
            path.update(fresh)
            waiting += fresh
        return path

    def _before(self, at: int) -> int | None:
        event = self._events[at]
        parent = event.get("parentUuid")
        # After a compaction the tree begins anew, and says by another field what it went on from.
        if parent is None and (event.get("isCompactSummary") is True or _is_compaction(event)):
            parent = event.get("logicalParentUuid") or ""
        if parent is None:
            return None
        place = self._at.get(plain_text(parent))
        if place is not None and place != at:
            return place
        # It is in another file, or was not kept: the conversation went on from what came before.
        return next(
            (
                number
                for number in range(at - 1, -1, -1)
                if _is_said(self._events[number]) or _is_compaction(self._events[number])
            ),
            None,
        )


def _is_said(event: Event) -> bool:
    return event.get("type") in _ROLES and isinstance(event.get("message"), Mapping)


def _is_compaction(event: Event) -> bool:
    return event.get("type") == "system" and event.get("subtype") in _COMPACTED


def _is_synthetic(event: Event) -> bool:
    return event.get("isApiErrorMessage") is True or event["message"].get("model") == _SYNTHETIC


def _is_failure(event: Event) -> bool:
    """Whether it says that a request failed."""
    is_error = event.get("isApiErrorMessage") is True or bool(event.get("error"))
    return is_error and _is_said(event) and _is_synthetic(event)


def _is_answer(event: Event) -> bool:
    return event.get("type") == "assistant" and not _is_synthetic(event)


def _is_prompt(event: Event) -> bool:
    """Whether a person said it."""
    return event.get("type") == "user" and event.get("isMeta") is not True and not _answered_in(event["message"])


def _is_local(event: Event) -> bool:
    """Whether it is what a command of the user's printed, which no model is to answer."""
    return event.get("type") == "user" and content_text(event["message"].get("content")).lstrip().startswith(_LOCAL)


def _called_in(message: Mapping[str, Any]) -> list[str]:
    return [
        plain_text(block.get("id")) for block in _blocks(message.get("content")) if type_of(block).endswith("tool_use")
    ]


def _answered_in(message: Mapping[str, Any]) -> list[str]:
    blocks = _blocks(message.get("content"))
    return [plain_text(block.get("tool_use_id")) for block in blocks if type_of(block).endswith("tool_result")]


def _blocks(content: Any) -> list[Any]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []


# A run of the events on one way


def _run(
    name: str, events: Sequence[Event], source: Sequence[Event], notes: Sequence[str], fresh: Sequence[Event] = ()
) -> Recording | Skipped:
    """`fresh`: the events whose usage counts, where it is not that of all."""
    session = Session(name, agent=NAME, notes=list(notes))
    session.source = [(plain_text(event.get("type")), event) for event in source]
    conversation = _Conversation(session, {id(event) for event in fresh or events})
    on_way = {id(event) for event in events}
    conversation.failures = sum(1 for event in source if _is_failure(event) and id(event) not in on_way)
    for event in events:
        conversation.take(event)
    conversation.end()
    try:
        recording = session_recording(session)
    except AgentevalError as error:
        return Skipped(error.what, place=f"session {session.id[:60]}")
    if conversation.is_text_only:
        return replace(recording, transcript=without_calls(recording.transcript, NAME))
    return recording


class _Conversation:
    def __init__(self, session: Session, counted: set[int]) -> None:
        self.is_text_only = False
        """Whether only the last answer is known, and not how it came about."""
        self._session = session
        self._counted = counted
        self._places: dict[str, int] = {}  # message id -> its place in the messages
        self._failed = ""  # why the last request failed
        self.failures = 0
        """How many requests failed, also those that the conversation went on beside."""
        self._outputs = 0
        self._compacted = ""
        self._asked: list[tuple[int, int]] = []  # of each answer: where what the model saw begins, and its place
        self._begins = 0
        self._marks: set[int] = set()
        self._is_known = True
        """Whether the log says what the model saw: results that were cleared in between are not in it."""

    def take(self, event: Event) -> None:
        session = self._session
        session.saw(event.get("timestamp"))
        kind = event.get("type")
        if _is_said(event):
            self._message(event)
        elif kind == "result":
            self._result(event)
        elif kind == "system" and event.get("subtype") == "init":
            session.model = plain_text(event.get("model")) or session.model
        elif _is_compaction(event):
            self._compacted = _compaction(event)
            about = event.get("compactMetadata") or event.get("compact_metadata")
            has_context = isinstance(about, Mapping) and any(about.get(key) for key in _KEPT_IN_COMPACTION)
            self._is_known = self._is_known and not has_context and event.get("subtype") == "compact_boundary"

    def _message(self, event: Event) -> None:
        message = dict(event["message"])
        if _is_synthetic(event):
            if _is_failure(event):
                self._failed = content_text(message.get("content")) or plain_text(event.get("error"))
                self.failures += 1
            return
        if _is_local(event):
            self._outputs += 1
            return
        # The request was made again, and went well.
        if _is_answer(event):
            self._failed = ""
        # It is in another run, too, where its usage counts.
        if id(event) not in self._counted:
            message.pop("usage", None)
        if event.get("isMeta") is True or event.get("isCompactSummary") is True:
            message["name"] = NAME
        self._mark()
        messages = self._session.messages
        place = self._places.get(plain_text(message.get("id"))) if message.get("id") else None
        if place is None:
            if message.get("id"):
                self._places[plain_text(message["id"])] = len(messages)
            if _is_answer(event):
                self._asked.append((self._begins, len(messages)))
            messages.append(message)
            return
        before = messages[place]
        blocks = [*_blocks(before.get("content")), *_blocks(message.get("content"))]
        fields = {key: value for key, value in message.items() if value is not None}
        messages[place] = {**before, **fields, "content": blocks}  # the usage is that of the whole answer so far

    def _result(self, event: Event) -> None:
        """How a session ended that was printed."""
        session = self._session
        text = plain_text(event.get("result"))
        subtype = plain_text(event.get("subtype"))
        if event.get("is_error") is True or subtype.startswith("error"):
            errors = "; ".join(plain_text(error) for error in event.get("errors") or ())
            self._failed = text or errors or subtype
        elif text and not any(message.get("role") == "assistant" for message in session.messages):
            self.is_text_only = True
            session.messages.append({"role": "assistant", "content": text})
        if isinstance(event.get("usage"), Mapping):
            # That of the whole, in place of what the answers said.
            session.usage = UsageReader()
            session.usage.add({**event["usage"], "cost": event.get("total_cost_usd")})
        session.took_ms = number(event.get("duration_ms"))

    def end(self) -> None:
        session = self._session
        session.error = self._failed
        between = self.failures - bool(self._failed and self.failures)
        if between:
            session.notes.append(f"{count(between, 'request')} of it failed, and it went on")
        if self._outputs:
            session.notes.append(
                f"what commands of the user printed is not in the conversation ({self._outputs:,} times)"
            )
        self._mark()
        if self._is_known:
            session.requests = [
                SessionRequest(
                    self._seen(begins, place), (session.messages[place],), session.messages[place].get("usage")
                )
                for begins, place in self._asked
            ]

    def _seen(self, begins: int, end: int) -> tuple[dict[str, Any], ...]:
        messages = self._session.messages
        return tuple([messages[place] for place in range(begins, end) if place not in self._marks])

    def _mark(self) -> None:
        """Where the conversation was compacted, a message says so."""
        if self._compacted:
            self._marks.add(len(self._session.messages))
            self._begins = len(self._session.messages) + 1
            self._session.messages.append({"role": "user", "name": NAME, "content": self._compacted})
            self._compacted = ""


def _compaction(event: Event) -> str:
    about = event.get("compactMetadata") or event.get("compact_metadata") or event.get("microcompactMetadata")
    about = as_object(about)
    why = plain_text(about.get("trigger"))
    before = number(about.get("preTokens", about.get("pre_tokens")))
    details = ", ".join(filter(None, (why, f"{before:,.0f} tokens before" if before is not None else "")))
    behind = f" ({details})" if details else ""
    return f"[compacted{behind}: the model sees a summary instead of the messages above]"


FORMAT = Format(
    name=NAME,
    title="Claude Code sessions",
    looks_like="lines with `type`, `sessionId` and `message`, or what `claude -p` prints as JSON",
    can_read=can_read,
    recordings=by_value(recordings),
    gathered=True,
    rank=64,
)
