"""Forking runs from Python: continue a stored run from one of its steps, with something changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.analysis import forks as analysis
from agenteval_tui.api.display import Shown
from agenteval_tui.api.runs import File, Run
from agenteval_tui.core import directories
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import questions_of
from agenteval_tui.suites.projects import projects_open
from agenteval_tui.views.fork import forks_view
from agenteval_tui.views.fork_origin import branch_text
from agenteval_tui.views.model import View


class Branch(Struct, frozen=True, eq=False):
    """One change, and what became of it."""

    outcomes: Outcomes
    db: Path

    @property
    def name(self) -> str:
        """What was changed, in words."""
        return branch_text(self.outcomes)

    @property
    def runs(self) -> tuple[Run, ...]:
        """The continuations."""
        return tuple(Run(answer.run, self.db) for answer in self.outcomes.answers)

    @property
    def passed(self) -> int:
        """How many passed."""
        return self.outcomes.passed

    @property
    def decided(self) -> int:
        """How many passed or failed."""
        return self.outcomes.decided

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % interval of the pass rate; None: nothing was decided."""
        return analysis.interval_of(self.outcomes)

    def __repr__(self) -> str:
        return f"<Branch {self.name!r}: {self.passed} of {self.decided} passed>"


class Forks(Shown, Struct, frozen=True, eq=False):
    """A run and its branches."""

    forks: analysis.Forks
    db: Path

    @property
    def run(self) -> Run:
        """The run that was continued."""
        return Run(self.forks.run, self.db)

    @property
    def branches(self) -> tuple[Branch, ...]:
        """A branch for each change."""
        return tuple(Branch(branch, self.db) for branch in self.forks.branches)

    @property
    def cost(self) -> float | None:
        """US dollars that was paid just now, judges included; None: not measured."""
        return self.forks.cost

    def __repr__(self) -> str:
        return f"<Forks of {self.forks.run.id}: {len(self.forks.branches)} branches>"

    def view(self) -> View:
        """As `agenteval fork` prints it."""
        return forks_view(self.forks)


@allowed_once_by("trust=True")
def fork(
    run: str | Run,
    *,
    at: int | None = None,
    tool_result: str | None = None,
    tool_error: str | None = None,
    arguments: object = None,
    text: str | None = None,
    system: str | None = None,
    without_tools: Sequence[str] = (),
    insert: tuple[str, str] | None = None,
    drop: bool = False,
    sweep: Sequence[Mapping[str, Any]] = (),
    n: int = 5,
    agent: str = "",
    max_cost: float | None = None,
    concurrency: int | None = None,
    trust: bool = False,
    db: File | None = None,
) -> Forks:
    """Continue a stored run from step `at` (a message's number, from 1, as `agenteval show` prints it), `n` times.

    `tool_result`, `tool_error`, `arguments`, `text`, `insert` (role and text of a message behind the step) and `drop`
    change the step; `system` is another system prompt; `without_tools` are tools that the agent is not given. `sweep`:
    several changes, a branch each, with these names, `at` and `label`. Each continuation is graded by the run's
    criteria and stored; forks count in no rate, trend, baseline or gate. What was asked before is not asked again.
    `agent`: another agent of the run's suite continues it. `max_cost`: US dollars, judges included. `trust`: programs
    and functions of the suite's folder may run.

    Works where an event loop runs already, as in a notebook. Ctrl+C cancels, and keeps what has finished. Raises
    `AgentevalError`: an option outside its limits, no such run or step, nothing that the agent could answer, or an
    agent that can't continue a conversation.
    """
    path = run.db if isinstance(run, Run) else directories.history_file(db)
    # What is None is no change; an empty text is one: the tool returned nothing.
    changes = {
        "tool_result": tool_result,
        "tool_error": tool_error,
        "arguments": arguments,
        "text": text,
        "system": system,
        "without_tools": list(without_tools) or None,
        "drop": drop or None,
        "insert": None if insert is None else {"role": insert[0], "text": insert[1]},
    }
    request = ForkRequest(
        run.id if isinstance(run, Run) else run,
        at,
        {name: value for name, value in changes.items() if value is not None},
        n,
        tuple(sweep),
        agent,
        max_cost=max_cost,
        concurrency=concurrency,
        trust=trust,
    )
    with Store.open(path) as store:
        row = run.row if isinstance(run, Run) else References(store, projects_open()).run(run)
        questions = questions_of(store.transcript(row.id), request.at, request.changes, request.sweep)
        oracle = Oracle(store, row, request, agent=request.agent)
        oracle.check_tools(questions)
        outcomes = oracle.ask_all(questions, request.n)
        return Forks(analysis.forks_asked(store, row, outcomes, execution=oracle.execution_id, sent=oracle.asked), path)
