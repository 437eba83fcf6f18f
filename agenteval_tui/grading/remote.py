"""Metrics that ask somebody: a judge, an embedder, a person, a function in another process.

Grading stays pure. Such a metric says what it would ask (`requests`, plain data with a hash) and what it makes of the
replies (`conclude`). Whoever runs tests does the asking, keeps prompt and raw reply, and gives the replies by hash:
the same question has the same hash, so a stored result can be shown and scored again without asking again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

from agenteval_tui.grading.context import Context
from agenteval_tui.grading.metrics.metric import Metric
from agenteval_tui.grading.results import Evidence, MetricResult, Outcome
from agenteval_tui.grading.value import Value
from agenteval_tui.text.identity import content_hash

AskKind = Literal["chat", "embed", "call", "person"]


@dataclass(frozen=True)
class RemoteRequest:
    """One question. `payload` is JSON data; the hash over all fields is its identity.

    `chat`: `messages` [{role, content}] and `vote` (counts from 1) for the agent `target` ("": the default judge).
    `embed`: `text` for the embedder `target`. `call`: `target` is `module:function`, `payload` what it is called with.
    `person`: `question` and what it is about.
    """

    kind: AskKind
    target: str
    payload: Mapping[str, Any]

    @cached_property
    def hash(self) -> str:
        """32 hexadecimal digits; equal for equal questions."""
        return content_hash(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The request as JSON data."""
        return {"kind": self.kind, "target": self.target, "payload": dict(self.payload)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RemoteRequest:
        """What `to_json` gave. Raises KeyError when a part is missing."""
        return cls(data["kind"], data["target"], data["payload"])


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, as it came. `raw` is a judge's text, or JSON text for the other kinds.

    `error`: no reply was had, and why, in one line; `raw` is then empty or what came before it broke.
    """

    raw: str = ""
    model: str = ""
    error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    at_ms: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its reply; where the reply could not be used and a second one was asked for, that too."""

    request: RemoteRequest
    reply: Reply
    repair: RemoteRequest | None = None
    repaired: Reply | None = None

    @property
    def last(self) -> Reply:
        """The reply that counts."""
        return self.reply if self.repaired is None else self.repaired


class UnusableError(Exception):
    """No verdict can be drawn from what came back: why, in one line."""


class RemoteMetric(Metric):
    """Base of metrics that ask. `check` answers from `context.replies`; what is not answered there is an `error`."""

    asks: ClassVar[AskKind] = "chat"

    @property
    def target(self) -> str:
        """Who is asked: the name of a judge or an embedder, or `module:function`; "" for the default."""
        return ""

    def requests(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        """What is asked of `value`. Raises `UnusableError` when there is nothing to ask with."""
        raise NotImplementedError

    def follow_up(self, request: RemoteRequest, reply: Reply) -> RemoteRequest | None:
        """A second question, when the first reply can't be read; None when it can, or asking again is no use."""
        return None

    def conclude(self, asked: Sequence[Asked], value: Value, context: Context) -> MetricResult:
        """The result. `asked` is in the order of `requests`, none of the replies is an error.

        Raises `UnusableError` when a reply can't be read.
        """
        raise NotImplementedError

    def unanswered(self, missing: Sequence[RemoteRequest], context: Context) -> MetricResult:
        """The result while replies are missing: never a verdict."""
        if context.replies is None:
            return self.error(f"{self.respondent} was not asked yet")
        return self.error(f"{self.respondent} was not asked this yet: it needs asking again")

    @property
    def respondent(self) -> str:
        """Who is asked, in words."""
        return {"chat": "the judge", "embed": "the embedder", "call": "the function", "person": "nobody"}[self.asks]

    def check(self, value: Value, context: Context) -> MetricResult:
        if self.checks_nothing():
            return self.neutral()
        try:
            asked, missing = self.look_up(value, context)
            if missing:
                return self.unanswered(missing, context)
            broken = [one for one in asked if one.last.error]
            if broken:
                return self.error(broken[0].last.error, replies_as_evidence(asked))
            return self.conclude(asked, value, context)
        except UnusableError as problem:
            return self.error(str(problem))

    def missing(self, value: Value, context: Context) -> tuple[RemoteRequest, ...]:
        """The questions for which there is no reply yet; () when all are answered, or none can be asked."""
        if self.checks_nothing():
            return ()
        try:
            return self.look_up(value, context)[1]
        except UnusableError:
            return ()

    def look_up(self, value: Value, context: Context) -> tuple[tuple[Asked, ...], tuple[RemoteRequest, ...]]:
        """The questions with their replies, and those that have none. Raises `UnusableError`."""
        replies = context.replies or {}
        asked: list[Asked] = []
        missing: list[RemoteRequest] = []
        for request in self.requests(value, context):
            reply = replies.get(request.hash)
            if reply is None:
                missing.append(request)
                continue
            again = None if reply.error else self.follow_up(request, reply)
            second = None if again is None else replies.get(again.hash)
            if again is not None and second is None:
                missing.append(again)
            else:
                asked.append(Asked(request, reply, again, second))
        return tuple(asked), tuple(missing)

    def waiting(self, reason: str) -> MetricResult:
        """A result that waits for a person."""
        name = self.name or self.type_name
        return MetricResult(name, self.type_name, Outcome.NEEDS_REVIEW, None, self.weight, False, (), reason)


def replies_as_evidence(asked: Sequence[Asked]) -> tuple[Evidence, ...]:
    """The raw replies, for a result that is an error: so that a person sees what could not be read."""
    many = len(asked) > 1
    found = []
    for number, one in enumerate(asked, 1):
        for which, reply in (("reply", one.reply), ("second reply", one.repaired)):
            if reply is not None and (reply.raw or reply.error):
                name = f"{which} {number}" if many else which
                said = reply.error or "what came back, as it came"
                found.append(Evidence(name, None, said, found=reply.raw))
    return tuple(found)
