"""What screens do with suites and stored runs beyond the first list: check, judge, run and write them.

No widget, no Textual; safe to call in threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from agenteval_tui.agents.discovery.first_suite import write_first_suite
from agenteval_tui.agents.discovery.model import AgentCandidate, Findings
from agenteval_tui.agents.discovery.search import find_agents
from agenteval_tui.agents.permission import TrustRequirement
from agenteval_tui.analysis.causes import group_failures
from agenteval_tui.analysis.drafted_test import GoodRuns, make_test, stored_runs
from agenteval_tui.analysis.lint import check_loaded
from agenteval_tui.analysis.overview import Overview
from agenteval_tui.analysis.review_queue import ReviewFilter, queue
from agenteval_tui.analysis.save_fork import save_as_test, save_system_prompt
from agenteval_tui.analysis.test_gates import gates_of_test
from agenteval_tui.analysis.triage import statuses
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.typed_path import current_folder
from agenteval_tui.formats.foreign_file import ForeignFile, one_for_each_page
from agenteval_tui.grading.criterion_templates import starters
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.scope import count_elsewhere
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import Configured, configured_agents
from agenteval_tui.runs.client import start
from agenteval_tui.runs.estimate import Estimate, estimate
from agenteval_tui.runs.fork.continuations import Outcomes
from agenteval_tui.runs.fork.edits import fork
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import ForkPrice, Source, priced, requested_plan, source_of
from agenteval_tui.runs.live_registry import ExecutionRequest, Live
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_untrusted_plan
from agenteval_tui.runs.plan.preview import Preview, preview_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.runs.trust_check import check_trust
from agenteval_tui.suites.agents_file import load_agents
from agenteval_tui.suites.editing import (
    TestEdit,
    WrittenFile,
    add_test,
    delete_tests,
    duplicate_tests,
    free_id,
    move_test,
    save_test,
    tag_tests,
    undo_change,
)
from agenteval_tui.suites.load import LoadedSuite, load_suite, load_suites
from agenteval_tui.suites.new_suite import file_for, write_suite
from agenteval_tui.suites.slugs import slug
from agenteval_tui.suites.trust import Trust
from agenteval_tui.suites.unquoted_hash import quote_cut_text
from agenteval_tui.suites.yaml.save import save_config
from agenteval_tui.tui.code_watch import WatchRequest
from agenteval_tui.tui.presenters.cause_rows import rows_of
from agenteval_tui.tui.presenters.suite_detail import TestRuns
from agenteval_tui.tui.presenters.suite_tree import SuiteTree
from agenteval_tui.tui.screens.causes_controller import CauseScope
from agenteval_tui.views.failure import Failure, clearest, failures

LAST_RUNS = 20  # of a test, that the details speak of
MOST_READ = 50  # failed tests of which the clearest is looked for


def read_runs(store: Store, suite_key: str, test_id: str) -> TestRuns:
    """The last runs of a test, and why it fails. Raises `AgentevalError`."""
    rows = store.runs_of_test(suite_key, test_id, LAST_RUNS)
    return TestRuns(rows, failures(rows, store.results), gates_of_test(store, rows))


class Offer(Struct, frozen=True):
    """The clearest failure of the first run: how many of how many tests passed."""

    suite_key: str
    test_id: str
    failure: Failure
    passed: int
    tests: int


BUNDLED = "shop"
"""What the bundled agent is called in a new suite."""


def _test_with_criterion(test_id: str, name: str, prompt: str) -> dict[str, Any]:
    """A new test as it is written, with a criterion to begin with."""
    starter = next(starter for starter in starters() if starter.metric == "TextMatch")
    criterion = {"name": starter.name, "prototype_class": starter.prototype_class, "config_uxon": starter.config + "\n"}
    return {"id": test_id, "name": name, "prompt": prompt, "criteria": [criterion]}


class SuitesAndHistory(Protocol):
    """What the app was started with: `Session` has it."""

    paths: tuple[Path, ...]
    db: Path

    @property
    def store(self) -> Store:
        """The history."""

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects whose runs are listed; () for all."""

    @property
    def paths_looked_in(self) -> tuple[Path, ...]:
        """Where suites were looked for last."""

    def suite_paths(self) -> tuple[Path, ...]:
        """Where suites are looked for."""

    def on_samples(self) -> bool:
        """Are the suites those that ship with the program?"""

    def note_own_write(self, path: Path) -> None:
        """This app wrote that file."""


SEARCH_S = 6.0  # that looking for agents may take


class Workspace:
    """The suites and the history of a session, to work with.

    Every method may take long: screens call them in a worker. Errors are `AgentevalError`s.
    """

    def __init__(self, opened: SuitesAndHistory) -> None:
        self._opened = opened
        self._checking: object | None = None  # the question after problems that was asked last

    def elsewhere(self) -> int:
        """How many executions other projects have, where the open one has none."""
        projects = self._opened.projects
        if not projects or self._opened.store.execution_ids(RunFilter(projects=projects)):
            return 0
        return self._opened.store.read(lambda c: count_elsewhere(c, projects))

    def has_run(self) -> bool:
        """Whether the open project has any execution."""
        return bool(self._opened.store.execution_ids(RunFilter(projects=self._opened.projects)))

    def problems(self, overview: Overview) -> Mapping[str, tuple[Problem, ...]]:
        """What is wrong with these suites, by their keys. Takes several times as long as reading them.

        When it is asked anew, or the session is closed, the one before ends without its result.
        """
        mine = self._checking = object()
        return check_loaded([suite.loaded for suite in overview.suites], lambda: self._checking is mine)

    def runs_of_test(self, suite_key: str, test_id: str) -> TestRuns:
        """The last runs of a test, and why it fails."""
        return read_runs(self._opened.store, suite_key, test_id)

    def clearest_failure(self, tree: SuiteTree) -> Offer | None:
        """Of what was run of these tests; None while an execution runs, or where all passed."""
        store = self._opened.store
        if any(row.status == "running" for row in store.execution_rows(sorted(tree.executions))):
            return None
        failed = {(node.suite.loaded.key, node.test.id): node for node in tree.failed_tests() if node.test is not None}
        reasons = {
            which: failures(store.runs_of_test(*which, LAST_RUNS), store.results) for which in list(failed)[:MOST_READ]
        }
        which = clearest(reasons)
        ran = sum(len(suite.summaries) for suite in tree.overview.suites)
        if which is None:
            return None
        return Offer(*which, reasons[which].reasons[0], ran - len(failed), ran)

    def workbench(self, run_id: str) -> Workbench:
        """What Inspect needs to know of a run: its transcript, criteria, and the stored runs beside it."""
        return Workbench.open(self._opened.store, run_id)

    def count_waiting(self) -> tuple[int, int]:
        """How many causes of the newest runs of each test are open, and how many runs need a review."""
        store, projects = self._opened.store, self._opened.projects
        causes = group_failures(store, CauseScope().scope(store, projects))
        decided = statuses(store, causes)
        open_causes = sum(row.is_open for row in rows_of(causes, decided))
        return open_causes, len(queue(store, ReviewFilter(projects=projects)))

    def start(self, paths: Sequence[Path], options: PlanOptions) -> tuple[Live, Estimate]:
        """Start an execution in a process of its own; returns when it runs, with what its plan says that it takes, or
        raises what kept it from running.

        Raises `NotTrustedError` before anything is started where it would run programs of a folder not trusted.
        """
        plan = self._plan(paths, options)
        # The process would refuse as well; here it can be asked about.
        check_trust(plan)
        takes = estimate(plan, self._opened.store)
        request = ExecutionRequest(
            paths=tuple(str(path) for path in paths),
            options=options,
            db=str(self._opened.db),
            config_dir=str(directories.config_dir()),
        )
        return start(request), takes

    def watched(self, request: WatchRequest) -> WatchRequest:
        """The request, which may run. Raises as `start` does."""
        check_trust(self._plan(request.paths, PlanOptions(tests=request.tests, trust=request.trusted)))
        return request

    def preview(self, paths: Sequence[Path], options: PlanOptions) -> Preview:
        """What a run would start and take. Nothing is run. Raises `AgentevalError` as planning does."""
        return preview_plan(self._plan(paths, options), self._opened.store)

    def resume(self, execution: str, options: PlanOptions) -> Live:
        """Run what is left of an execution, in a process of its own. Raises as `start` does."""
        # The process asks again; here it can be asked about.
        resumed = resume_plan(self._opened.store, execution, options)
        return start(
            ExecutionRequest(
                paths=(),
                options=options,
                db=str(self._opened.db),
                config_dir=str(directories.config_dir()),
                resume=resumed.plan.execution_id,
            )
        )

    def limits_of(self, execution: str) -> PlanOptions:
        """What an execution may use, as it was started; nothing else of its options."""
        options = self._opened.store.execution(execution).options
        names = ("max_cost", "max_tokens", "max_seconds")
        return PlanOptions(**{name: options[name] for name in names if options.get(name) is not None})

    def why_not(self, need: TrustRequirement) -> str:
        """Why this may not be, in a sentence; "" when it may."""
        return Trust.load().why_not(need.folder, need.sends)

    def trust(self, needs: Sequence[TrustRequirement]) -> None:
        """Trust these repositories, and agree to what they send."""
        trust = Trust.load()
        for need in needs:
            trust.trust(need.folder, need.sends)

    def price_of_fork(self, request: ForkRequest) -> ForkPrice:
        """What continuing a run so would take."""
        return priced(self._opened.store, request)

    def gone_tools(self, run: str, step: int, agent: str = "") -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The tools that a run called up to a step and that its agent, or another `agent`, does not have; and those
        that it has. Nothing where that can't be known yet: starting the fork says why."""
        store = self._opened.store
        try:
            oracle = Oracle(store, store.run(run), agent=agent)
            return oracle.known_gone_tools(fork(store.transcript(run), step, ()))
        except AgentevalError:
            return (), ()

    def start_fork(self, request: ForkRequest) -> Live:
        """Continue a run in a process of its own; returns when it runs. Raises `NotTrustedError` before."""
        requested_plan(self._opened.store, request)  # the process would refuse as well; here it can be asked
        return start(ExecutionRequest(db=str(self._opened.db), config_dir=str(directories.config_dir()), fork=request))

    def save_fork(self, run: str, branch: Outcomes) -> tuple[Path, str]:
        """Write a fork of a run as a test behind the last one of the run's suite: (the file, the test's id)."""
        store = self._opened.store
        conversation = fork(store.transcript(run), branch.step, branch.edits)
        loaded, test_id = save_as_test(self._continued(run, branch), conversation, edits=branch.edits)
        return self._written(loaded).path, test_id

    def save_system_prompt(self, run: str, branch: Outcomes) -> Path:
        """Write the system prompt of a fork into the configuration of the run's agent; gives the file."""
        path = save_system_prompt(self._continued(run, branch), branch.edits)
        self._opened.note_own_write(path)
        return path

    def _continued(self, run: str, branch: Outcomes) -> Source:
        """The run, with the agent that continued it in this branch."""
        row = self._opened.store.run(run)
        agent_name = next((answer.run.agent for answer in branch.answers), row.agent)
        return source_of(self._opened.store, row, agent="" if agent_name == row.agent else agent_name)

    def _plan(self, paths: Sequence[Path], options: PlanOptions) -> Plan:
        user_agents = load_agents(directories.config_dir())
        return make_untrusted_plan(load_suites(paths), options, user_agents=user_agents, store=self._opened.store)

    def agents(self) -> tuple[list[Configured], list[Problem]]:
        """All agents that are configured, with their places; what is wrong in agents.yaml, and which suites can't be
        read."""
        suites = self.suites()
        agents, problems = configured_agents(suites, directories.config_dir())
        return agents, [*problems, *(problem for suite in suites if suite.unreadable for problem in suite.problems)]

    def suites(self) -> list[LoadedSuite]:
        """The suites, read anew; a file that can't be read is one without tests, and its problem says why."""
        return load_suites(self._opened.suite_paths(), keep_unreadable=True)

    def good_run(self, run: str) -> GoodRuns:
        """A stored run, to make a test of. Raises `AgentevalError` where it has no answer."""
        return stored_runs(self._opened.store, [self._opened.store.run(run)])

    def make_test(self, runs: GoodRuns, path: Path, test_id: str, name: str) -> tuple[LoadedSuite, str]:
        """Write a test made of runs into a suite's file: (the suite as it then is, the test's id).

        `test_id` "": one made from the name.
        """
        user_agents = load_agents(directories.config_dir())
        drafted_test = make_test(runs, path, test_id=test_id, name=name, agents=user_agents)
        assert drafted_test.suite is not None
        return self._written(drafted_test.suite), drafted_test.id

    def _written(self, loaded: LoadedSuite) -> LoadedSuite:
        self._opened.note_own_write(loaded.path)
        return loaded

    def save_config(self, loaded: LoadedSuite, test_id: str, criterion: int, text: str) -> LoadedSuite:
        """Write the edited config into the suite's file, that place only."""
        return self._written(save_config(loaded, test_id, criterion, text))

    def save_test(self, loaded: LoadedSuite, test_id: str, edit: TestEdit) -> LoadedSuite:
        """Write the edit of a test into the suite's file, those places only."""
        return self._written(save_test(loaded, test_id, edit))

    def quote_cut_text(self, loaded: LoadedSuite, start: int) -> LoadedSuite:
        """Put a text that a `#` cuts short into quotes, in the suite's file."""
        return self._written(quote_cut_text(loaded, start))

    def new_test(self, path: Path, name: str, prompt: str, test_id: str = "") -> str:
        """Write a new test into a suite's file, with a criterion to begin with. Gives its id; "": made of the name."""
        loaded = load_suite(path)
        new_id = test_id or free_id(loaded, name)
        add_test(loaded, _test_with_criterion(new_id, name, prompt))
        self._opened.note_own_write(path)
        return new_id

    def folder_for_new(self) -> Path:
        """Where a new suite is written: the first folder that was opened; the current one instead of the samples'.
        Raises `AgentevalError`: that was deleted."""
        first = next(iter(self._opened.paths_looked_in), None)
        if first is None or self._opened.on_samples():
            return current_folder()
        return first if first.is_dir() else first.parent

    def agents_for_new(self) -> list[tuple[str, str]]:
        """Agents that a new suite may have, as (key, words): the user's, those of suites beside it, the bundled one."""
        agents, _ = self.agents()
        folder = self.folder_for_new().resolve()
        own = [(agent.key, f"{agent.name}   agents.yaml") for agent in agents if not agent.suite]
        beside = [
            (agent.key, f"{agent.name}   as in {agent.suite}")
            for agent in agents
            if agent.suite and agent.base_dir == folder
        ]
        return [*own, *beside, (BUNDLED, "shop   bundled: rules, no key, no network")]

    def agent_candidates(self) -> Findings:
        """The agents in the folder of a new suite, by reading its files. Raises `AgentevalError`."""
        return find_agents(self.folder_for_new(), seconds=SEARCH_S)

    def foreign_files(self) -> tuple[ForeignFile, ...]:
        """The files of other tools in the folder of a new suite, one for each page of the documentation."""
        return one_for_each_page([self.folder_for_new()])

    def suite_for(self, agent: AgentCandidate) -> tuple[str, str]:
        """Write the suite of an agent that was found: the suite's key and its first test's id. Raises
        `AgentevalError`."""
        path, loaded_suite = write_first_suite(agent, self.folder_for_new())
        self._look_at(path)
        assert loaded_suite.suite is not None
        return loaded_suite.key, loaded_suite.suite.tests[0].id

    def new_suite(self, name: str, file: str, agent: str, test_name: str, prompt: str) -> tuple[str, str]:
        """Write a new suite with a first test. `agent` is a key of `agents_for_new`. Gives the suite's key and the
        test's id."""
        chosen = next((configured for configured in self.agents()[0] if configured.key == agent), None)
        called = chosen.name if chosen is not None else BUNDLED
        agents: dict[str, Mapping[str, Any]] = {}
        if chosen is None:
            agents = {BUNDLED: {"kind": "demo", "version": "v2"}}
        elif chosen.suite:
            agents = {chosen.name: chosen.config}
        test_id = slug(test_name)[:60].strip("-._") or "test"
        test = _test_with_criterion(test_id, test_name, prompt)
        path = self.folder_for_new() / (file or file_for(name))
        loaded_suite = write_suite(path, name, called, agents, test)
        self._look_at(path)
        return loaded_suite.key, test_id

    def _look_at(self, path: Path) -> None:
        """The app has written this suite, and shows it from now on."""
        self._opened.note_own_write(path)
        # Where files were opened, and not their folder, it is one more of them.
        if self._opened.paths and not any(
            path.resolve().is_relative_to(place.resolve()) for place in self._opened.paths
        ):
            self._opened.paths = (*self._opened.paths, path)

    def duplicate_tests(self, loaded: LoadedSuite, tests: Sequence[str]) -> LoadedSuite:
        """Copies of tests, each behind its own."""
        return self._written(duplicate_tests(loaded, tests)[0])

    def delete_tests(self, loaded: LoadedSuite, tests: Sequence[str]) -> LoadedSuite:
        """Take tests out of the suite's file."""
        return self._written(delete_tests(loaded, tests))

    def move_test(self, loaded: LoadedSuite, test: str, by: int) -> LoadedSuite:
        """Move a test within its file."""
        return self._written(move_test(loaded, test, by))

    def tag_tests(
        self, loaded: LoadedSuite, tests: Sequence[str], add: Sequence[str], remove: Sequence[str]
    ) -> LoadedSuite:
        """Give tests tags, and take some away."""
        return self._written(tag_tests(loaded, tests, add, remove))

    def undo(self, changed: WrittenFile) -> LoadedSuite:
        """Write a file as it was before a change. Raises `ChangedSince`, or `SaveFailed`."""
        return self._written(undo_change(changed))

    def close(self) -> None:
        """Nobody wants to know any more what is wrong with the suites."""
        self._checking = None
