"""Checking from Python what a change of the agent's code does to recorded runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.api.display import Shown, line
from agenteval_tui.api.runs import File, Run
from agenteval_tui.api.suites import Source, Suite, suites_of
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.check import CheckOptions, CodeCheck
from agenteval_tui.runs.change.model import CodeChange
from agenteval_tui.runs.change.recorded_runs import RecordedRun, recorded_runs
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.views.code_change import change_lines
from agenteval_tui.views.model import View


class Change(Shown, Struct, frozen=True, eq=False):
    """What the code of now does to recorded runs. `document` has all of it, as `run --watch --json -` prints it."""

    document: CodeChange
    db: Path

    @property
    def passes(self) -> int:
        """How many runs pass now, and did not when they were recorded."""
        return self.document.passes

    @property
    def fails(self) -> int:
        """How many runs passed when they were recorded, and do not now."""
        return self.document.fails

    @property
    def needs_model(self) -> int:
        """How many runs ask their model, or a judge, something that was not recorded."""
        return self.document.needs_model

    @property
    def error(self) -> str:
        """Why nothing could be run, such as an import that fails; "": it could be."""
        return self.document.error

    def runs(self, effect: str) -> tuple[Run, ...]:
        """The new runs with one effect: passes, fails, needs_model (those that were begun) or unchanged."""
        names = [run.after for run in self.document.runs if run.effect == effect and run.after]
        with Store.open_to_look(self.db) as store:
            return tuple(Run(store.run(name), self.db) for name in names)

    def __bool__(self) -> bool:
        """Whether the code can be run, and no run that passed fails now."""
        return not self.error and not self.fails

    def __repr__(self) -> str:
        document = self.document
        counts = document.error or f"{document.passes} pass now, {document.fails} fail now"
        return f"<Change: {counts}>"

    def view(self) -> View:
        """As `agenteval run --watch` prints it."""
        return tuple(line(text) for text in change_lines(self.document, Path.cwd()))


@allowed_once_by("trust=True")
def check_change(
    suites: Source | Suite | Sequence[Source | Suite] = ".",
    *,
    tests: Sequence[str] = (),
    tags: Sequence[str] = (),
    live: bool = False,
    max_cost: float | None = None,
    recorded_tools: bool = False,
    trust: bool = False,
    db: File | None = None,
) -> Change:
    """Run the newest recorded runs of these suites again with the agents' code as it is now.

    Requests to models that are as recorded are answered from the recordings, and judges are not asked: it costs
    nothing. The agents' code and their tools run for real; with `recorded_tools` calls of tools are answered from the
    recordings, too. `live`: what is not recorded is asked, for at most `max_cost` US dollars. The new runs count in
    no figure. `trust`: programs and functions of the suites' folders may run. `db`: the history file (None: your own).

    Raises `AgentevalError`: a suite is wrong, no test has a recorded run, or something needs your trust.
    """
    options = PlanOptions(tests=tuple(tests), tags=tuple(tags), trust=trust, max_cost=max_cost)
    loaded = [suite.loaded for suite in suites_of(suites)]
    path = directories.history_file(db)
    with Store.open(path) as store:
        plan = make_plan(loaded, options, user_agents=load_agents(directories.config_dir()), store=store)
        runs = recorded_runs(store, plan.runs).runs
        if not runs:
            raise AgentevalError(
                "no test has a recorded run of an agent that is a program",
                fix="run the suite first: agenteval run",
            )
        asks = CheckOptions(live=live, max_cost=max_cost)
        document = run_in_thread(lambda: _check(plan, store, runs, asks, recorded_tools))
        return Change(document, path)


async def _check(
    plan: Plan, store: Store, runs: Sequence[RecordedRun], options: CheckOptions, recorded_tools: bool
) -> CodeChange:
    check = CodeCheck(plan, store, tools_recorded=recorded_tools)
    try:
        return await check.run(runs, (), options)
    finally:
        # Shielded, as Ctrl+C cancels this: what the check has started must end all the same.
        await asyncio.shield(check.close())
