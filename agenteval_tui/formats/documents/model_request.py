"""What models were asked in a run: what `agenteval show RUN --request N --json` prints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from msgspec import Meta

from agenteval_tui.analysis.lost_from_sight import LostFromSight
from agenteval_tui.core.document import Count, Document, one_of
from agenteval_tui.transcripts.model_request import UNRECORDED, ModelRequests
from agenteval_tui.transcripts.request_changes import RequestChange, changes_since
from agenteval_tui.views.model_request import change_text, lost_text


class Tool(Document, frozen=True, kw_only=True):
    """A tool that the model could call."""

    name: str
    description: str
    parameters: Annotated[Mapping[str, Any], Meta(description="its JSON Schema")]


class Change(Document, frozen=True, kw_only=True):
    """What is different since the request before of the same agent."""

    kind: Annotated[
        str,
        one_of(
            *("added", "dropped", "replaced", "masked", "changed", "moved", "restarted"),
            *("system", "tool_added", "tool_removed", "tool_changed", "parameter"),
        ),
    ]
    before: Annotated[list[Count], Meta(description="messages of the request before, counted from 0")]
    after: Annotated[list[Count], Meta(description="messages of this request, counted from 0")]
    name: Annotated[str, Meta(description="of a tool or a parameter; of the system prompt the line")]
    was: str
    now: str
    said: Annotated[str, Meta(description="the same in words")]


class RunRequest(Document, frozen=True, kw_only=True):
    """One request, whole."""

    number: Annotated[Count, Meta(description="from 1, in the order of time")]
    agent: Annotated[Count, Meta(description="which of `agents` asked, from 1")]
    model: str
    system: str
    messages: Annotated[list[Mapping[str, Any]], Meta(description="as OpenAI has them, without the system prompt")]
    tools: list[Tool]
    parameters: Mapping[str, Any]
    previous: Annotated[
        str, Meta(description="the id of what the server keeps of the conversation, which is not in the request")
    ]
    cached_tokens: Count | None
    error: Annotated[str, Meta(description='why it has no answer; "": it has one')]
    since: Annotated[Count | None, Meta(description="the request before of this agent; null: this is its first")]
    changes: list[Change]


class AskingAgent(Document, frozen=True, kw_only=True):
    """One conversation with a model: of an agent, a sub-agent, a summariser."""

    name: Annotated[str, Meta(description="as messages of the transcript name it")]
    about: Annotated[str, Meta(description="how its system prompt begins, or what it was asked first")]
    called_by: Annotated[
        Count | None, Meta(description="the transcript's tool call that it worked for, from 0; null: none is known")
    ]
    used_in: Annotated[
        Count | None, Meta(description="the request of another agent, from 1, that has its last answer; null: none")
    ]


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
        one_of("dropped", "replaced", "masked", "restarted", "changed", "system", "tool_removed", "tool_changed"),
    ]
    need: Annotated[
        str, one_of("value", "tool", "instruction", ""), Meta(description='what `needed` is; "": nothing was needed')
    ]
    needed: Annotated[
        tuple[str, ...], Meta(description="what failed criteria need, and the request for the failed answer had not")
    ]
    said: Annotated[str, Meta(description="the same in words")]


def lost_document(lost: LostFromSight, run: str) -> LostDocument:
    """What left the model's sight in this run."""
    need = lost.need if lost.needed else ""
    return LostDocument(
        request=lost.request, step=lost.answer, kind=lost.change.kind, need=need, needed=lost.needed,
        said=lost_text(lost, run),
    )  # fmt: skip


def requests_document(run_id: str, requests: ModelRequests, numbers: Iterable[int]) -> RunRequests:
    """These requests of a run, each with what changed since the one before of the same agent."""
    return RunRequests(
        run=run_id,
        agents=[
            AskingAgent(name=line.name, about=line.about, called_by=line.called_by, used_in=line.used_in)
            for line in requests.lines
        ],
        unrecorded=list(requests.unrecorded),
        requests=[_request(requests, number) for number in numbers],
    )


def _request(requests: ModelRequests, number: int) -> RunRequest:
    request, before, difference = requests.request(number), requests.before(number), changes_since(requests, number)
    return RunRequest(
        number=request.number,
        agent=request.line,
        model=request.model,
        system=request.system,
        messages=list(request.messages),
        tools=[
            Tool(name=tool.name, description=tool.description, parameters=tool.parameters) for tool in request.tools
        ],
        parameters=request.parameters,
        previous=request.previous,
        cached_tokens=request.cached_tokens,
        error=request.error,
        since=None if before is None else before.number,
        changes=[change_document(change) for change in (difference.changes if difference is not None else ())],
    )


def change_document(change: RequestChange) -> Change:
    """A change as it is printed."""
    return Change(
        kind=change.kind,
        before=list(change.before),
        after=list(change.after),
        name=change.name,
        was=change.was,
        now=change.now,
        said=change_text(change),
    )
