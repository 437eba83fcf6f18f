"""What `agenteval record --json` prints."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from agenteval_tui.agents.recording.answers import Difference, Miss
from agenteval_tui.core.document import Count, Document, Outcome, extended
from agenteval_tui.formats.documents.model_request import Change, change_document


class RecordedMiss(Document, frozen=True, kw_only=True):
    """A request that is not in the cassette."""

    request: Annotated[str, Meta(description="its method and path")]
    nearest: Annotated[int | None, Meta(description="the number of the recorded request that is most like it, from 1")]
    differences: tuple[Difference, ...]
    context: Annotated[
        tuple[Change, ...],
        Meta(description="changes of the context since the recorded request with the same newest message"),
    ]


class VolatilePart(Document, frozen=True, kw_only=True):
    """A part of requests that varies, and is left out when requests are compared."""

    at: Annotated[str, Meta(description='its place: "messages[*].content", [*] is every item')]
    like: Annotated[str, Meta(description='what is left out of the text there, such as "date"; "any": all of it')]


class RecordedProgram(Document, frozen=True, kw_only=True):
    """What a program did behind the proxy."""

    version: Literal[1] = 1
    execution: Annotated[str, Meta(description="where it is in the history")]
    run: str
    outcome: Annotated[Outcome, Meta(description="of the test's criteria; skipped: there was no test to grade by")]
    score: float | None
    exit_code: Annotated[int, Meta(description="of the program; negative: the signal that ended it")]
    requests: Annotated[Count, Meta(description="to models")]
    live: Annotated[Count, Meta(description="how many of the requests servers answered")]
    served: Annotated[Count, Meta(description="tool calls that went through MCP servers which were recorded, too")]
    cost: Annotated[float | None, Meta(description="US dollars, judges not included; null: not known")]
    judge_cost: Annotated[float | None, Meta(description="US dollars that judges and others took; null: not known")]
    cassette: Annotated[str | None, Meta(description="the file that was written")]
    misses: tuple[RecordedMiss, ...]
    volatile: tuple[VolatilePart, ...]
    suite: Annotated[str | None, Meta(description="the file that the new test was written to")]
    test: Annotated[str | None, Meta(description="the id of the new test")]
    fork_of: Annotated[str | None, Meta(description="the run that was replayed")]
    step: Annotated[int | None, Meta(description="its last message that came from the recording, from 0")]


def miss_document(miss: Miss) -> RecordedMiss:
    """A miss as it is printed."""
    return extended(RecordedMiss, miss, request=miss.question.title, context=tuple(map(change_document, miss.context)))
