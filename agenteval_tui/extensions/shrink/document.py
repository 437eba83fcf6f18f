"""A shrunk run as the document of `agenteval shrink --json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Share, one_of
from agenteval_tui.extensions.shrink.shrink import Count as Answers
from agenteval_tui.extensions.shrink.shrink import Shrunk
from agenteval_tui.extensions.shrink.stored_run import ShrinkQuestion
from agenteval_tui.formats.documents.fork import Step
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript


class Reproduced(Document, frozen=True, kw_only=True):
    """How often the run failed for the cause."""

    failed: Count
    continuations: Count
    rate: Share | None


class ShrunkRun(Document, frozen=True, kw_only=True):
    """The smallest input that was found."""

    version: Literal[1] = 1
    run: str
    step: Annotated[Step, Meta(description="the last message that the agent gets, as `agenteval show` counts")]
    criterion: Annotated[str, Meta(description="whose failure must come back; empty: the agent's error")]
    cause: Annotated[str, Meta(description="its signature, as `agenteval causes --json` has it")]
    ending: Annotated[str, one_of("shrunk", "whole", "not_reproduced", "stopped")]
    why: Annotated[str, Meta(description="why it was stopped; empty: it was not")]
    out_of_sight: Annotated[
        Count,
        Meta(description="messages of the run that are not in the case, or are shorter there: the model saw them so"),
    ]
    characters_before: Count
    characters: Count
    minimal: Annotated[bool, Meta(description="each single part was taken out, and the failure went with it")]
    whole_case: Reproduced
    small_case: Reproduced
    questions: Annotated[Count, Meta(description="different conversations that were asked")]
    continuations: Annotated[Count, Meta(description="answers to them, those that were known among them")]
    asked: Annotated[Count, Meta(description="continuations that were asked for just now")]
    execution: Annotated[str, Meta(description="what was asked just now; empty: nothing had to be asked")]
    cost: Annotated[float | None, Meta(description="US dollars that this took; null: nothing was asked")]
    messages: Annotated[tuple[dict[str, Any], ...], Meta(description="the small case as OpenAI chat messages")]
    tools: Annotated[
        tuple[dict[str, Any], ...] | None,
        Meta(description="its tools as OpenAI chat completions have them; null: the agent brings its own"),
    ]
    without_tools: Annotated[tuple[str, ...], Meta(description="the tools that are left out")]


def shrunk_document(
    question: ShrinkQuestion, shrunk: Shrunk, *, asked: int, execution: str, cost: float | None
) -> ShrunkRun:
    """The document of the result."""
    conversation = shrunk.conversation
    before, after = shrunk.sizes
    return ShrunkRun(
        run=question.run.id,
        step=question.step + 1,
        criterion=question.criterion,
        cause=question.cause,
        ending=shrunk.ending,
        why=shrunk.why,
        out_of_sight=shrunk.unseen,
        characters_before=before,
        characters=after,
        minimal=shrunk.minimal,
        whole_case=_reproduced(shrunk.first),
        small_case=_reproduced(shrunk.last),
        questions=shrunk.questions,
        continuations=shrunk.answers,
        asked=asked,
        execution=execution,
        cost=cost,
        messages=tuple(to_openai_messages(Transcript(conversation.messages, conversation.tool_calls))),
        tools=None if shrunk.tools_stay else tuple(spec.declared for spec in shrunk.tools),
        without_tools=() if conversation.tools is None else conversation.tools.without,
    )


def _reproduced(count: Answers) -> Reproduced:
    return Reproduced(failed=count.hits, continuations=count.n, rate=count.hits / count.n if count.n else None)
