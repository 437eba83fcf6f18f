"""A test that was made of runs as the document of `agenteval make-test --json`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta

from agenteval_tui.analysis.drafted_test import DraftedTest, GoodRuns
from agenteval_tui.core.document import Document, extended


class DraftedTestDocument(Document, frozen=True, kw_only=True):
    """`agenteval make-test`: a test made of runs."""

    version: Literal[1] = 1
    suite: Annotated[str, Meta(description="the suite's file")]
    id: Annotated[str, Meta(description="the test's id")]
    written: Annotated[bool, Meta(description="false: --dry-run")]
    runs: Annotated[tuple[str, ...], Meta(description="the runs from which it was made")]
    failed: Annotated[tuple[str, ...], Meta(description="those that did not pass; the test expects what they did")]
    agent: Annotated[str | None, Meta(description="the agent that the test names; null: that of its suite")]
    test: Annotated[dict[str, Any], Meta(description="the test, with the keys of a suite file")]


def drafted_test_document(drafted_test: DraftedTest, runs: GoodRuns) -> DraftedTestDocument:
    """The test, and what it was made of."""
    return extended(
        DraftedTestDocument,
        drafted_test,
        suite=str(drafted_test.path),
        runs=runs.ids,
        failed=runs.failed,
        agent=drafted_test.test.get("agent"),
        test=dict(drafted_test.test),
    )
