"""Running suites from Python, and what comes out: executions and their runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.function import name_of, offered
from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.analysis.explanation import stored_explanation
from agenteval_tui.analysis.quarantine_gate import gating_now
from agenteval_tui.analysis.statistics import interval_of
from agenteval_tui.analysis.test_gates import GateVerdict, TestGates, gates_now
from agenteval_tui.api.display import Shown, criteria_table, line, outcome_cell, table
from agenteval_tui.api.suites import Source, Suite, suites_of
from agenteval_tui.core import directories, numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import InfrastructureError
from agenteval_tui.core.ids import free_name
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.history.feedback import Feedback
from agenteval_tui.history.records import ExecutionRow, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.events import Command
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.commits import Commit
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, recorded_requests
from agenteval_tui.views.evidence import explanation_view
from agenteval_tui.views.execution import ended_view, run_head, title_text
from agenteval_tui.views.failure import reasons_text
from agenteval_tui.views.gates import excuse_text, gates_view
from agenteval_tui.views.model import View
from agenteval_tui.views.terminal import plain_text

File = str | PathLike[str]

_REASON = 200
"""Characters of a reason in a `repr`, which an assertion of pytest prints."""


class Run(Shown, Struct, frozen=True, eq=False):
    """A run that is stored. `row` is its row in the history; the rest is read when it is asked for.

    `excuse`: why it fails nothing although it did not pass: its test reached its gate, or is in quarantine. "" else.
    """

    row: RunRow
    db: Path
    excuse: str = ""

    @property
    def id(self) -> str:
        """Its id, for `agenteval why`, `show` and the app."""
        return self.row.id

    @property
    def test(self) -> str:
        """The id of its test."""
        return self.row.test_id

    @property
    def status(self) -> str:
        """passed, failed, error, needs_review, skipped or cancelled."""
        return self.row.status

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.row.status == "passed"

    @property
    def score(self) -> float | None:
        """Its score from 0 to 1; None where nothing was scored."""
        return self.row.score

    @property
    def requests(self) -> tuple[ModelRequest, ...]:
        """What the model was asked for each of its answers, of a run that was recorded. Raises `AgentevalError` where
        that is not known."""
        return recorded_requests(self.transcript.requests, self.row.id).all

    @property
    def transcript(self) -> Transcript:
        """What the agent did."""
        # Opened for each question: an object that a notebook keeps for hours must not hold the file.
        with Store.open_to_look(self.db) as store:
            return store.transcript(self.row.id)

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The conversation as OpenAI's chat messages."""
        return to_openai_messages(self.transcript)

    @property
    def output(self) -> str:
        """The agent's last answer."""
        return self.transcript.final_output

    @property
    def feedback(self) -> tuple[Feedback, ...]:
        """The scores by key that it was given, oldest first."""
        with Store.open_to_look(self.db) as store:
            return tuple(store.feedback([self.id]))

    @property
    def criteria(self) -> tuple[CriterionResult, ...]:
        """What each criterion said: outcome, score, and the evidence."""
        with Store.open_to_look(self.db) as store:
            return store.results(self.row.id)

    def why(self, criterion: str = "") -> str:
        """Why it ended as it did, in words; with `criterion` (name, its beginning, or number) only that one."""
        with Store.open_to_look(self.db) as store:
            explained = stored_explanation(store, self.row, criterion)
        return plain_text(explanation_view(explained, directories.db_option(self.db)))

    def __repr__(self) -> str:
        return f"<Run {self.id} of {self.test!r}: {self.status}>"

    def view(self) -> View:
        """What it was, and what each criterion said."""
        return (*run_head(self.row), criteria_table(self.criteria))


class Execution(Shown, Struct, frozen=True, eq=False):
    """Runs that were started together, as the history has them. A sequence of its runs.

    `gates`: how each test that has a gate did against it.
    """

    row: ExecutionRow
    runs: tuple[Run, ...]
    db: Path
    gates: tuple[GateVerdict, ...] = ()

    @property
    def id(self) -> str:
        """Its id, for `agenteval show`, `compare` and the app."""
        return self.row.id

    @property
    def name(self) -> str:
        """What it was called (`run(name=...)`); "": it has no name. So `note`."""
        return self.row.name

    @property
    def note(self) -> str:
        """A person's note; "": there is none."""
        return self.row.note

    @property
    def meta(self) -> Mapping[str, str]:
        """Its metadata."""
        return self.row.meta

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits at its start, of the repositories of its suites and agents."""
        return self.row.commits

    @property
    def status(self) -> str:
        """finished, cancelled, stopped (a limit was reached), failed, interrupted or running."""
        return self.row.status

    @property
    def passed(self) -> bool:
        """Whether all of it ran, every gate was reached, and of tests without a gate every run passed: whether
        `agenteval run` would end with 0."""
        # Nothing failed where nothing ran, and that is no success.
        some = any(run.status != "skipped" for run in self.runs)
        return (
            self.row.status == "finished" and some and not self.failures and not any(gate.fails for gate in self.gates)
        )

    @property
    def failures(self) -> tuple[Run, ...]:
        """The runs that did not pass, without those that were not needed or that a gate or a quarantine excuses."""
        return tuple(run for run in self.runs if run.status not in ("passed", "skipped") and not run.excuse)

    @property
    def pass_rate(self) -> float | None:
        """The share of runs with a verdict that passed; None where none has one."""
        decided = _decided(self.runs)
        return sum(decided) / len(decided) if decided else None

    def of(self, test: str) -> tuple[Run, ...]:
        """The runs of a test, by its id."""
        # A suite has no two ids that differ only in their case.
        return tuple(run for run in self.runs if run.test.casefold() == test.casefold())

    def __len__(self) -> int:
        return len(self.runs)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def __getitem__(self, number: int) -> Run:
        return self.runs[number]

    def __bool__(self) -> bool:
        """Whether it passed, so that `assert execution` means `assert execution.passed`."""
        return self.passed

    def __repr__(self) -> str:
        why = reasons_text([run.row for run in self.failures])
        reasons = f"; {one_line(why, _REASON)}" if why else ""
        return f"<Execution {self.id}: {self.row.passed} of {self.row.runs} runs passed{reasons}>"

    def view(self) -> View:
        """How each test did, and how the runs ended in all."""
        rows = []
        for test in dict.fromkeys(run.test for run in self.runs):
            runs = self.of(test)
            decided = _decided(runs)
            rate = numbers.percent(sum(decided) / len(decided)) if decided else ""
            ends = interval_of(sum(decided), len(decided))
            between = numbers.TOO_FEW * bool(decided)
            if ends is not None:
                between = " to ".join(f"{end} %" for end in numbers.percent_interval(*ends))
            worst = next((run for run in runs if not run.passed), runs[0])
            why = one_line(reasons_text([run.row for run in runs if not run.passed]), 80)
            rows.append((outcome_cell(worst.status), test, f"{sum(decided)}/{len(runs)}", rate, between, why))
        heads = ("outcome", "test", "passed#", "rate#", "95 % interval", "why")
        ended = ended_view(self.row, [run.row for run in self.runs])
        return (line(title_text(self.row)), table(heads, rows), *gates_view(TestGates(self.gates)), *ended)


def _decided(runs: Iterable[Run]) -> list[bool]:
    """Whether they passed, of the runs with a verdict."""
    return [run.passed for run in runs if run.status in ("passed", "failed")]


@allowed_once_by("trust=True")
def run(
    suites: Source | Suite | Sequence[Source | Suite] = ".",
    *,
    agent: str | Any = None,
    settings: Mapping[str, Any] | None = None,
    tests: Sequence[str] = (),
    tags: Sequence[str] = (),
    repeat: int | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
    judge: str | None = None,
    seed: int = 0,
    max_cost: float | None = None,
    trust: bool = False,
    title: str = "",
    name: str = "",
    note: str = "",
    meta: Mapping[str, str] | None = None,
    db: File | None = None,
) -> Execution:
    """Run suites and grade what the agent does. Every run is in the history as soon as it ends.

    `agent`: the name of an agent of the suites or of agents.yaml; or a function, or an agent object of a framework
    (pydantic-ai, openai-agents, LangGraph, ...), which runs in this process and gets `settings` as `config`. None: the
    agents that the suites name. `timeout`: seconds for each run; `max_cost`: US dollars. `trust`: programs and
    functions of the suites' folders may run. `name`, `note` and `meta` describe the execution, as those of `agenteval
    run`. `db`: the history file (None: your own).

    Works where an event loop runs already, as in a notebook. Ctrl+C cancels, and keeps the runs that ended.
    Raises `AgentevalError`: an option outside its limits, a suite is wrong, nothing is left to run, or something needs
    your trust.
    """
    options = PlanOptions(
        tests=tuple(tests),
        tags=tuple(tags),
        repeat=repeat,
        concurrency=concurrency,
        timeout=timeout,
        judge=judge,
        seed=seed,
        max_cost=max_cost,
        trust=trust,
        title=title,
        name=name,
        note=note,
        meta=dict(meta or {}),
    )
    loaded = [suite.loaded for suite in suites_of(suites)]
    path = directories.history_file(db)
    # The stack ends with the run: an agent that is an object is offered no longer than that.
    with ExitStack() as used, Store.open(path) as store:
        agents = load_agents(directories.config_dir())
        if agent is not None and not isinstance(agent, str):
            # Offered as long as it runs: the plan names it, and its runs find it in this process.
            config = used.enter_context(offered(agent, settings))
            names = {agent_name for each in loaded if each.suite for agent_name in each.suite.agents}
            name = free_name(name_of(agent), names.__contains__, "#")
            agents = {**agents, name: AgentConfig.model_validate(config)}
            options = replace(options, agent=name)
        elif agent is not None:
            options = replace(options, agent=agent)
        plan = make_plan(loaded, options, user_agents=agents, store=store)
        host = Host(plan, store)
        # In a thread with its own event loop: the caller's may run already, as in a notebook.
        ended = run_in_thread(host.run, lambda: host.engine.command(Command("cancel")))
        if ended.status == "failed":
            raise InfrastructureError(
                ended.message or "the execution broke off",
                where=f"execution {plan.execution_id}",
                fix="the runs that ended are in the history",
            )
        return execution_of(store, store.execution(plan.execution_id), path)


def execution_of(store: Store, row: ExecutionRow, db: Path) -> Execution:
    """A stored execution with its runs."""
    runs = store.runs_of_execution(row.id)
    held = gating_now(store, runs)
    gates = gates_now(store, row, runs, held)
    return Execution(row, tuple(Run(run, db, excuse_text(run, held, gates)) for run in runs), db, gates.verdicts)
