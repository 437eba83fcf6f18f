"""What models were asked in a run: what `agenteval show RUN --request N --json` prints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, get_args

from msgspec import Meta

from agenteval_tui.analysis.lost_context import LOST_KINDS, LostFromSight, NeedKind
from agenteval_tui.core.document import Count, Document, extended, one_of
from agenteval_tui.transcripts.model_request import UNRECORDED, AskedRequest, ModelRequests, OfferedTool, RequestLine
from agenteval_tui.transcripts.request_changes import RequestChange, changes_since
from agenteval_tui.views.model_request import change_text, lost_text


class Tool(OfferedTool, frozen=True, omit_defaults=False):
    """A tool that the model could call, with all its fields."""


class Change(RequestChange, frozen=True, kw_only=True):
    """What is different since the request before of the same agent, in words too."""

    description: Annotated[str, Meta(description="the same in words")]


class RunRequest(AskedRequest, frozen=True, kw_only=True):
    """One request, whole."""

    tools: tuple[Tool, ...]
    since: Annotated[Count | None, Meta(description="the request before of this agent; null: this is its first")]
    changes: list[Change]


class AskingAgent(RequestLine, frozen=True, omit_defaults=False):
    """One conversation with a model, with all its fields: of an agent, a sub-agent, a summariser."""


class RunRequests(Document, frozen=True, kw_only=True):
    """The requests of a run."""

    run: str
    agents: Annotated[list[AskingAgent], Meta(description="as far as requests tell them apart")]
    unrecorded: Annotated[
        list[Annotated[str, one_of(*UNRECORDED)]],
        Meta(description="what of requests was not recorded: it is empty, and the model may have seen some"),
    ]
    requests: list[RunRequest]


class LostDocument(Document, frozen=True, kw_only=True):
    """A part of what the model was given that left its sight."""

    request: Annotated[Count, Meta(description="the request that no longer had it, from 1")]
    step: Annotated[
        Count | None, Meta(description="the message that it led to, from 0; null: the request has no answer")
    ]
    kind: Annotated[
        str,
        one_of(*LOST_KINDS),
    ]
    need: Annotated[str, one_of(*get_args(NeedKind), ""), Meta(description='what `needed` is; "": nothing was needed')]
    needed: Annotated[
        tuple[str, ...], Meta(description="what failed criteria need, and the request for the failed answer had not")
    ]
    description: Annotated[str, Meta(description="the same in words")]


def lost_document(lost: LostFromSight, run: str) -> LostDocument:
    """What left the model's sight in this run."""
    need = lost.need if lost.needed else ""
    return LostDocument(
        request=lost.request,
        step=lost.answer,
        kind=lost.change.kind,
        need=need,
        needed=lost.needed,
        description=lost_text(lost, run),
    )


def requests_document(run_id: str, requests: ModelRequests, numbers: Iterable[int]) -> RunRequests:
    """These requests of a run, each with what changed since the one before of the same agent."""
    return RunRequests(
        run=run_id,
        agents=[extended(AskingAgent, line) for line in requests.lines],
        unrecorded=list(requests.unrecorded),
        requests=[_request(requests, number) for number in numbers],
    )


def _request(requests: ModelRequests, number: int) -> RunRequest:
    request, before, difference = requests.request(number), requests.before(number), changes_since(requests, number)
    return extended(
        RunRequest,
        request,
        tools=tuple(extended(Tool, tool) for tool in request.tools),
        since=None if before is None else before.number,
        changes=[change_document(change) for change in (difference.changes if difference is not None else ())],
    )


def change_document(change: RequestChange) -> Change:
    """A change as it is printed."""
    return extended(Change, change, description=change_text(change))
