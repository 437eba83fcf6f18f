"""What `agenteval listen --json` prints: a line for each run that arrives."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agenteval_tui.core.document import Count, Document, Status


class HeardRunDocument(Document, frozen=True, kw_only=True):
    """A trace that was stored as a run."""

    run: str
    execution: str
    trace: Annotated[str, Meta(description="the trace's id, in hexadecimal")]
    again: Annotated[bool, Meta(description="more of a trace came after it had been stored: the run was stored again")]
    suite: Annotated[str, Meta(description="what the program calls itself (`service.name`)")]
    test: str
    agent: str
    status: Status
    why: str
    messages: Count
    tool_calls: Count
    notes: Annotated[tuple[str, ...], Meta(description="what could not be read")]
