"""Questions to judges, embedders, people and functions, and their replies: plain data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import Struct

from agenteval_tui.core.ids import content_hash
from agenteval_tui.transcripts.traceback import Traceback

AskKind = Literal["chat", "embed", "call", "person", "labels", "user"]

FROM_HISTORY = frozenset(("person", "labels"))
"""Kinds of questions that the history answers: they reach no server, and their replies are not stored."""

GOOD_FROM = 4
"""The least rating 1..5 with which a person says yes: 3 is undecided, and no approval."""


class RemoteRequest(Struct, frozen=True, dict=True):
    """One question. `payload` is JSON data; the hash over all fields is its identity.

    `chat`: `messages` [{role, content}] and `vote` (counts from 1) for the agent `target` ("": the default judge);
    with a prompt of a person's own also `fence` (the code around what is judged), and `reply` "text" if it is no JSON.
    `embed`: `text` for the embedder `target`. `call`: `target` is `module:function`, `payload` what it is called with.
    `person`: `target` is the criterion that asks, by name: two criteria may ask the same. `question` and its subject.
    `labels`: how the judge `target` scored what people labelled, for the criterion `target`; answered with a
    `LabelledScores`, as JSON.
    `user`: what the simulated user that the agent `target` plays says next; no criterion asks that.
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


class Reply(Struct, frozen=True):
    """The reply, unchanged. `raw` is a judge's text, or JSON text for the other kinds. `error`: why there is no reply,
    in one line; `raw` is then empty, or the text received before it broke. `traceback`: where the function that was
    called raised.
    """

    raw: str = ""
    model: str = ""
    error: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost: float | None = None
    at_ms: int = 0
    traceback: Traceback | None = None


class RemoteCall(Struct, frozen=True):
    """A question with its reply; where the reply could not be used and a second one was asked for, that too."""

    request: RemoteRequest
    reply: Reply
    repair: RemoteRequest | None = None
    repaired: Reply | None = None

    @property
    def last(self) -> Reply:
        """The reply that counts."""
        return self.reply if self.repaired is None else self.repaired
