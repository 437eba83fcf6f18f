"""Shrinking runs from Python: the smallest input that still fails for the same cause."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.api.display import Shown
from agenteval_tui.api.runs import File, Run
from agenteval_tui.core import directories
from agenteval_tui.extensions.shrink import shrink as analysis
from agenteval_tui.extensions.shrink import stored_run
from agenteval_tui.extensions.shrink.shrink import DEFAULTS, ShrinkOptions
from agenteval_tui.extensions.shrink.view import shrunk_view
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.model import View


class Shrunk(Shown, Struct, frozen=True, eq=False):
    """What came of shrinking a run."""

    shrunk: analysis.Shrunk
    question: stored_run.ShrinkQuestion
    db: Path

    @property
    def run(self) -> Run:
        """The run that was shrunk."""
        return Run(self.question.run, self.db)

    @property
    def ending(self) -> str:
        """shrunk, whole (nothing can go), not_reproduced, or stopped."""
        return self.shrunk.ending

    @property
    def minimal(self) -> bool:
        """Whether each single part was tried, and none can go."""
        return self.shrunk.minimal

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The small case as OpenAI chat messages."""
        conversation = self.shrunk.conversation
        return to_openai_messages(Transcript(conversation.messages, conversation.tool_calls))

    @property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that are left, as OpenAI chat completions have them; none for an agent that brings its own."""
        return [spec.declared for spec in self.shrunk.tools]

    def __repr__(self) -> str:
        before, after = self.shrunk.sizes
        return f"<Shrunk {self.question.run.id}: {self.ending}, {after} of {before} characters>"

    def view(self) -> View:
        """As `agenteval shrink` prints it."""
        return shrunk_view(self.shrunk, self.question.criterion)


@allowed_once_by("trust=True")
def shrink(
    run: str | Run,
    *,
    at: int | None = None,
    criterion: str = "",
    rate: float = DEFAULTS.rate,
    keep_calls: bool = False,
    keep_tools: bool = False,
    max_cost: float | None = None,
    concurrency: int | None = None,
    trust: bool = False,
    db: File | None = None,
) -> Shrunk:
    """Take parts out of what a failed run's agent was told while it still fails for the same cause. A test's id is its
    newest run that failed.

    `at`: the last message that is told (a number from 1, as `agenteval show` prints it); None: the one before the step
    that is to blame. `criterion`: whose failure is meant ("": the first). `rate`: how often it must come back.
    `keep_calls`: no call is taken out, only parts of what calls and results say. `keep_tools`: the list of tools stays
    as it is. `max_cost`: US dollars, judges included. What was asked before is not asked again. Raises
    `AgentevalError`: an option outside its limits, the run did not fail, or its agent can't continue a conversation.
    """
    options = ShrinkOptions(
        at=at,
        criterion=criterion,
        rate=rate,
        keep_calls=keep_calls,
        keep_tools=keep_tools,
        max_cost=max_cost,
        concurrency=concurrency,
        trust=trust,
    )
    path = run.db if isinstance(run, Run) else directories.history_file(db)
    with Store.open(path) as store:
        row = run.row if isinstance(run, Run) else References(store, projects_open()).failed_run(run)
        question = stored_run.question_of(store, row, options)
        oracle = Oracle(store, row, options, purpose="shrink")
        return Shrunk(stored_run.shrink(question, oracle, options), question, path)
