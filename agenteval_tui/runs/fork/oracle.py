"""An oracle for questions of the form "what becomes of this run if it continues like this?".

It runs continuations of one stored run through the engine, keeps each as a run of its own (`fork_of`), and never asks
for what the history knows: whoever asks again after a crash gets the stored answers, and pays for the others only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import ToolSpec
from agenteval_tui.agents.permission import Permission
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import new_id
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.estimate import Estimate
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.events import Command, Event
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.fork.continuations import Outcomes, answers_of
from agenteval_tui.runs.fork.model import AnyEdit, Purpose
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.fork.plan import ForkPlan, Question, execution_plan, fork_plan, price, source_of, title_of
from agenteval_tui.runs.fork.request import tools_of
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.store_records import planned_runs
from agenteval_tui.runs.task_payload import Tasks


class Oracle:
    """Continues one stored run. All continuations of an oracle are one execution of kind `fork`, which no statistics
    count.

    Its limit on cost is that of all continuations of this oracle together. `emit` gets the events of the runs. `agent`:
    the name of a different agent that continues the run. Raises `AgentevalError` if the run
    was made elsewhere, if its agent can't continue a conversation (`fork.plan.CannotContinueError`), or if a key is
    missing. Asking raises `NotTrustedError`.
    """

    def __init__(
        self,
        store: Store,
        row: RunRow,
        options: ContinuationOptions = ContinuationOptions(),  # noqa: B008  it can't be changed
        *,
        purpose: Purpose = "fork",
        title: str = "",
        emit: Callable[[Event], None] | None = None,
        agent: str = "",
    ) -> None:
        self.source = source_of(store, row, agent=agent, by_tape=purpose == "blame")
        self.execution_id = ""
        """The execution that holds what was asked; "": nothing had to be asked yet."""
        self.branches: dict[str, int] = {}
        """By run id: which of the questions asked last a continuation answers, from 0."""
        self.options: dict[str, Any] = {"purpose": purpose}
        """What is kept with the execution, to be read by who reads its answers."""
        self.asked = 0
        """Continuations that were asked for, and not known before."""
        self._store = store
        self._purpose: Purpose = purpose
        self._max_cost = options.max_cost
        self._concurrency = options.concurrency
        self.trust = options.trust
        self._title = title or title_of(row, purpose)
        self._emit = emit
        self._stopped = False
        self._running: tuple[asyncio.AbstractEventLoop, Host] | None = None

    @property
    def spent(self) -> float:
        """US dollars that this oracle has used, as far as they are known: agents and judges."""
        if not self.execution_id:
            return 0.0
        return sum(cost_row.cost or 0.0 for cost_row in self._store.costs(self.execution_id))

    def plan(self, questions: Sequence[Question], count: int) -> ForkPlan:
        """What is known of these questions, and what would be asked."""
        return fork_plan(self._store, self.source, questions, count, self._purpose)

    def price(self, questions: Sequence[Question], count: int) -> Estimate:
        """What asking would take, without what is known: requests are `runs`; see `estimate.Estimate`."""
        return price(self._store, self.source, self.plan(questions, count).runs, self._concurrency)

    @property
    def permission(self) -> Permission:
        """To use the run's agent. Raises `NotTrustedError`."""
        return execution_plan(self.source, (self.source.stored.run,), trust=self.trust).permission

    def tools(self, conversation: Conversation) -> tuple[ToolSpec, ...] | None:
        """What the agent would tell its model of its tools; None: it brings its own. Blocks; raises as `tools_of`."""
        return tools_of(self.source, conversation, self.permission)

    def gone_tools(self, conversation: Conversation) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(the tools that were called in it and that the agent does not have any more, those that it has). Blocks;
        raises as `tools_of`."""
        if self.source.tape:  # its program has its own
            return (), ()
        offered = self.tools(replace(conversation, tools=None, unseen_tools=())) if conversation.tool_calls else None
        names = tuple(tool.name for tool in offered or ())
        called = dict.fromkeys(call.name for call in conversation.tool_calls)
        return () if offered is None else tuple(name for name in called if name not in names), names

    def known_gone_tools(self, conversation: Conversation) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The same before anything is asked: nothing where the agent needs trust first, or its tools
        can't be had: who asks is told that. Blocks."""
        try:
            return self.gone_tools(conversation)
        except AgentevalError:
            return (), ()

    def check_tools(self, questions: Sequence[Question]) -> None:
        """Raise `AgentevalError` where a question changes a tool that the agent does not have. Blocks."""
        for question in questions:
            if question.conversation.tools is not None:
                self.tools(question.conversation)

    def ask(self, conversation: Conversation, count: int, *, step: int = 0, edits: Sequence[AnyEdit] = ()) -> Outcomes:
        """`count` answers to one question. Blocks; works where an event loop runs already."""
        return self.ask_all([Question(conversation, step, tuple(edits))], count)[0]

    def ask_all(self, questions: Sequence[Question], count: int) -> tuple[Outcomes, ...]:
        """`count` answers to each question, all asked at once. Blocks. Ctrl+C cancels and keeps what has finished."""
        return run_in_thread(lambda: self.asking(questions, count), self._cancel)

    async def asking(self, questions: Sequence[Question], count: int) -> tuple[Outcomes, ...]:
        """The same for callers that have an event loop."""
        planned = self.plan(questions, count)
        self.branches = {run.ref.run: place for place, runs in enumerate(planned.missing) for run in runs}
        reason = ""
        if planned.runs:
            reason = await self._run(planned.runs)
        rows = {row.id: row for row in self._store.runs_of_execution(self.execution_id)} if planned.runs else {}
        outcomes = []
        for question, known_rows, missing in zip(questions, planned.answers, planned.missing, strict=True):
            new = [rows[run.ref.run] for run in missing if run.ref.run in rows]
            ended = [row for row in new if row.status in ("passed", "failed", "needs_review", "error")]
            self.asked += len(ended)
            answers = [*answers_of(self._store, known_rows, stored=True), *answers_of(self._store, ended, stored=False)]
            short = reason if len(answers) < count else ""
            outcomes.append(
                Outcomes(question.step, question.edits, tuple(answers), short, question.label, self._purpose)
            )
        return tuple(outcomes)

    def stop(self) -> None:
        """Ask nothing more; what runs is cancelled, and `ask` returns with what there is. From any thread."""
        self._stopped = True
        running = self._running
        # The loop belongs to another thread, and may have ended by now.
        if running is not None and not running[0].is_closed():
            running[0].call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        self._stopped = True
        if self._running is not None:
            self._running[1].engine.command(Command("cancel"))

    async def _run(self, runs: tuple[RunPlan, ...]) -> str:
        """Run them; gives why not all ended, "" when they did."""
        if self._stopped:
            return "it was stopped"
        # The engine knows only this part of the execution: it gets what the parts before have left.
        remaining = None if self._max_cost is None else self._max_cost - self.spent
        if remaining is not None and remaining <= 0:
            return f"the limit on cost (${self._max_cost:g}) was reached"
        continues = bool(self.execution_id)
        plan = execution_plan(
            self.source,
            runs,
            execution_id=self.execution_id or new_id(),
            title=self._title,
            max_cost=remaining,
            concurrency=self._concurrency,
            trust=self.trust,
            continues=continues,
            options=self.options if self._max_cost is None else {**self.options, "max_cost": self._max_cost},
        )
        # The runs are added before the engine resumes the execution: it begins only what is stored.
        if continues:
            first = self._store.execution(plan.execution_id).runs
            await asyncio.wrap_future(self._store.add_runs(plan.execution_id, planned_runs(plan, Tasks(plan), first)))
        host = Host(plan, self._store, self._emit)
        self._running = asyncio.get_running_loop(), host
        try:
            self.execution_id = plan.execution_id
            ended = await host.run()
        finally:
            self._running = None
        if ended.status == "failed":
            raise InfrastructureError(
                ended.message or "the execution broke off",
                where=f"execution {plan.execution_id}",
                fix="ask again: the finished continuations are stored",
            )
        return "it was stopped" if ended.status == "cancelled" else ended.message
