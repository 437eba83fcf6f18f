"""Grading: from what an agent left behind, and what judges said of it, to what is recorded of the run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.grading import sentences
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.grade import grade, not_made
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import recordings_of
from agenteval_tui.runs.budget import SpendingLimit
from agenteval_tui.runs.judge_client import Answers, JudgeClient, JudgeRequestGroup
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.stored_judgments import JudgeLabels
from agenteval_tui.transcripts.model import Transcript, Usage

CANCELLED = "cancelled"
SKIPPED = "skipped"
"""Of a run that was not needed: its test was decided without it."""
LARGE = 200_000
"""Characters from which grading a transcript is left to a thread: it would hold up all other runs."""


class GradedRun(Struct, frozen=True):
    """A run's status (an outcome, or cancelled), score and results; `why`: one line on what failed first."""

    status: str
    score: float | None
    results: tuple[CriterionResult, ...]
    warnings: int
    why: str

    @classmethod
    def nothing(cls, status: str, why: str = "") -> GradedRun:
        """There is nothing to grade."""
        return cls(status, None, (), 0, why)

    @property
    def as_event(self) -> dict[str, Any]:
        """What a `Graded` says of it."""
        return {"outcome": self.status, "score": self.score, "failed": self.failed, "not_made": self.not_made}

    @property
    def failed(self) -> tuple[tuple[str, str], ...]:
        """The criteria that did not pass, with the reason."""
        return failed_criteria(self.results)

    @property
    def not_made(self) -> int:
        """How many of its checks could not run."""
        return not_made(self.results)


def failed_criteria(results: Iterable[CriterionResult]) -> tuple[tuple[str, str], ...]:
    """The criteria that did not pass, with the reason."""
    return tuple(
        (result.criterion, sentences.criterion_sentence(result))
        for result in results
        if result.outcome in (Outcome.FAILED, Outcome.ERROR, Outcome.NEEDS_REVIEW)
    )


class JudgeNeeded:
    """Whether runs ask a respondent: a judge, an embedder, a function, a person. Each criterion is looked at once."""

    def __init__(self) -> None:
        self._known: dict[int, bool] = {}  # by identity: a plan's specs live as long as its execution

    def __call__(self, run: RunPlan) -> bool:
        """Whether a criterion of this run asks."""
        # All repetitions of a test share their specs, so most runs compile nothing.
        for spec in run.specs:
            if id(spec) not in self._known:
                self._known[id(spec)] = compile_criterion(spec).asks
            if self._known[id(spec)]:
                return True
        return False


def judge(run: RunPlan, transcript: Transcript, replies: Mapping[str, Reply] | None = None) -> GradedRun:
    """Grade what the agent did, with what judges and others replied.

    Where it did not finish there is nothing to grade: outcome error, criteria skipped.
    """
    error = transcript.error
    if error is not None and error.kind == CANCELLED:
        return GradedRun.nothing(CANCELLED, error.message)
    verdict = grade(transcript, run.specs, run.variables, run.pass_threshold, replies=replies, row=run.ref.row)
    why = sentences.verdict_sentence(verdict) if error is None else error.message
    return GradedRun(verdict.outcome.value, verdict.score, verdict.results, verdict.warnings, why)


def is_large(transcript: Transcript) -> bool:
    """Whether grading may take long enough to be felt by others."""
    size = sum(len(message.content) for message in transcript.messages)
    return size + 200 * len(transcript.tool_calls) > LARGE


class GradingPool:
    """Grades the runs of one execution. Nobody is asked, and nothing of that loaded, where no criterion asks.

    The runs are in the history already: each answer of a judge is stored when it comes. `limit`: of what they may cost;
    None: the engine counts that.
    """

    def __init__(
        self,
        plan: Plan,
        store: Store,
        env: Mapping[str, str],
        retry_base_s: float,
        *,
        limit: SpendingLimit | None = None,
    ) -> None:
        self._limit = limit
        self._plan = plan
        self._store = store
        self._env = env
        self._retry_base_s = retry_base_s
        self.asks = JudgeNeeded()
        """Whether somebody is asked about a run, which takes time and may cost money."""
        self.asker: JudgeClient | None = None

    @property
    def usage(self) -> Usage:
        """What judges and embedders have used since the start."""
        return self.asker.usage if self.asker is not None else Usage()

    async def judge(self, run: RunPlan, transcript: Transcript) -> tuple[GradedRun, tuple[StoredReply, ...]]:
        """The verdict, and the replies on which it rests, to be stored."""
        # A run that did not finish is an error whatever a judge says: it would be paid for nothing.
        if transcript.error is not None:
            return judge(run, transcript), ()
        replies: Mapping[str, Reply] | None = None
        stored: tuple[StoredReply, ...] = ()
        if self.asks(run):
            answers = await self._ask(run, transcript)
            replies, stored = answers.replies, answers.stored
        if is_large(transcript):
            return await asyncio.to_thread(judge, run, transcript, replies), stored
        return judge(run, transcript, replies), stored

    async def close(self) -> None:
        """Give back connections."""
        if self.asker is not None:
            await self.asker.close()

    async def _ask(self, run: RunPlan, transcript: Transcript) -> Answers:
        # Made when it is needed: most plans ask nobody, and read no configuration for it.
        if self.asker is None:
            self.asker = JudgeClient(
                self._plan.respondents,
                env=self._env,
                known=self._store.known_reply,
                labels=JudgeLabels(self._store),
                transcripts=lambda reference: recordings_of(self._store, reference, self._plan.execution_id),
                permission=self._plan.permission,
                retry_base_s=self._retry_base_s,
                limit=self._limit,
            )
        case = JudgeRequestGroup(run.suite_key, run.specs, transcript, run.variables)

        def keep(reply: StoredReply) -> None:
            self._store.keep_replies(run.ref.run, [reply])

        return await self.asker.answer(case, keep)
