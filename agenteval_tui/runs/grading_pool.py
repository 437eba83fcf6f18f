"""Grading a run that landed: asking whom its criteria want to be asked, then the verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenteval_tui.runs.grade_run import GradedRun, JudgeNeeded, is_large, judge
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.recordings import recordings_of
from agenteval_tui.transcripts.model import Transcript, Usage

if TYPE_CHECKING:
    from agenteval_tui.grading.remote_requests import Reply
    from agenteval_tui.history.replies import StoredReply
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.judge_client import Answers, JudgeClient


class GradingPool:
    """Grades the runs of one execution. Nobody is asked, and nothing of that loaded, where no criterion asks."""

    def __init__(self, plan: Plan, store: Store, env: Mapping[str, str], retry_base_s: float) -> None:
        self._plan = plan
        self._store = store
        self._env = env
        self._retry_base_s = retry_base_s
        self._asks = JudgeNeeded()
        self.asker: JudgeClient | None = None

    @property
    def usage(self) -> Usage:
        """What judges and embedders have used since the start."""
        return self.asker.usage if self.asker is not None else Usage()

    async def judge(self, run: RunPlan, transcript: Transcript) -> tuple[GradedRun, tuple[StoredReply, ...]]:
        """The verdict, and the replies on which it rests, to be stored."""
        if transcript.error is not None:
            return judge(run, transcript), ()
        replies: Mapping[str, Reply] | None = None
        stored: tuple[StoredReply, ...] = ()
        if self._asks(run):
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
        from agenteval_tui.runs.judge_client import JudgeClient, JudgeRequestGroup

        if self.asker is None:
            self.asker = JudgeClient(
                self._plan.respondents,
                env=self._env,
                known=self._store.known_reply,
                transcripts=lambda reference: recordings_of(self._store, reference),
                permission=self._plan.permission,
                retry_base_s=self._retry_base_s,
            )
        return await self.asker.answer(JudgeRequestGroup(run.suite_key, run.specs, transcript, run.variables))
