"""Watches the code of agents: after each save, the recorded runs that went through it are made again."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.agents.process.node_report import is_node_source
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import dollars
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.check import FREE, CheckOptions, CodeCheck
from agenteval_tui.runs.change.model import (
    Checked,
    CodeChange,
    Ignored,
    NotBuilt,
    RunChecked,
    Saved,
    WatchEvent,
    Watching,
    code_change,
    with_runs,
)
from agenteval_tui.runs.change.recorded_runs import RecordedRun, RecordedRuns, is_of_program, recorded_runs
from agenteval_tui.runs.change.saves import (
    BuiltProgram,
    Contents,
    OwnWrites,
    built_program,
    folders_of,
    saves,
    with_targets,
)
from agenteval_tui.runs.installed_copies import installed_copies
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.suites.datasets import dataset_files
from agenteval_tui.suites.discover import is_suite_name
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.trust import working_copy_of
from agenteval_tui.suites.watch import BESIDE

_GONE_S = 0.3
"""How long a file may be away: some editors, and a checkout, delete it before they write it anew."""
Unbuilt = Mapping[BuiltProgram, Collection[str]]
"""The sources that each built program does not have yet."""
Plans = Callable[[], Plan]
"""Plans the runs as the suites are now, permitted. Raises `AgentevalError`."""


class Watch:
    """Watches the agents of a plan. `tell` gets each event in the loop's thread."""

    def __init__(
        self,
        store: Store,
        plans: Plans,
        tell: Callable[[WatchEvent], None],
        *,
        live: CheckOptions | None = None,
        tools_recorded: bool = False,
    ) -> None:
        self._store = store
        self._plans = plans
        self._tell = tell
        self._live = live
        self._tools_recorded = tools_recorded
        self._plan = plans()
        self._built: dict[str, BuiltProgram] = {}
        """The programs that are built from sources, by the agent's hash."""
        self._projects: dict[str, Path] = {}
        """The folder of each agent's project, by the agent's hash."""
        self._commands: frozenset[str] = frozenset()
        """The hashes of the agents that are programs of any language."""
        self._datasets: frozenset[str] = frozenset()
        self._programs: frozenset[str] = frozenset()
        """The files that commands of hooks and probes name."""
        self._contents = Contents()
        self.recorded = self._look()
        """The runs that are made again."""
        self._check = CodeCheck(self._plan, store, tools_recorded=tools_recorded)
        self._stop = asyncio.Event()
        self._moved = asyncio.Event()
        """Set when other folders are to be watched."""
        self._work: asyncio.Task[None] | None = None
        self._files: tuple[str, ...] = ()
        self._runs: Sequence[RecordedRun] = ()
        """What the last check was begun for."""
        self._since = math.inf
        """The start of the first check whose files are not known yet: what an interrupted one has started may go on."""
        self._executions: list[str] = []
        self._known: dict[str, frozenset[str]] = {}
        self._spent: float | None = 0.0
        """US dollars of all that was asked live; None: not known."""
        self._functions: frozenset[str] = frozenset()
        """The files of metrics, hooks and probes in Python, as far as they have run."""
        self._broken: frozenset[str] = frozenset()
        """The hashes of the agents whose code could not be run the last time: it may not have come to what it needs."""
        self._watched: frozenset[Path] = frozenset()
        self._own_writes = OwnWrites()
        self.last: CodeChange | None = None
        """The change after the last save that could be checked."""

    async def run(self) -> None:
        """Check all runs with the code as it is, then after each save, until `stop`. Raises `AgentevalError` where the
        history can't be written."""
        self._tell(self._watching())
        self._begin((), self.recorded.runs)
        try:
            async for paths in saves(self._folders, self._contents, self._stop, self._moved):
                await self._saved(paths)
        finally:
            await self._cancel()
            await self._check.close()

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        self._moved.set()

    async def ask_model(self, options: CheckOptions) -> None:
        """Let the runs that need the model ask it, as far as the limit on cost of the whole watch allows. Which these
        are is known when the runs in flight have ended."""
        # `wait`, and not `await`: a save meanwhile cancels that task, and not this question.
        if self._work is not None:
            await asyncio.wait({self._work})
        last = self.last
        if last is None:
            return
        if not self._within_limit(options).live:
            spent = dollars(self._spent) or "an unknown sum"
            self.refuse(
                AgentevalError(f"the limit on cost is reached: {spent} is spent", fix="give a higher --max-cost")
            )
            return
        needed = {run.before for run in last.runs if run.effect == "needs_model"}
        runs = [run for run in self.recorded.runs if run.row.id in needed]
        if runs:
            await self._cancel()
            self._begin(last.files, runs, options, beside=last)

    async def check_all(self) -> None:
        """Make all recorded runs again."""
        await self._cancel()
        self._begin((), self.recorded.runs)

    def changed_tests(self) -> tuple[tuple[str, str], ...]:
        """The suites (their keys) and tests whose runs are not as they were recorded, or of which none is."""
        last = self.last
        effects = {} if last is None else {run.before: run.effect for run in last.runs}
        changed = [run for run in self.recorded.runs if effects.get(run.row.id, "unchanged") != "unchanged"]
        tests = [(run.row.suite_key, run.row.test_id) for run in changed]
        missing = [(run.suite_key, run.ref.test) for run in self.recorded.missing]
        return tuple(dict.fromkeys([*tests, *missing]))

    def refuse(self, error: AgentevalError) -> None:
        """Tell why what was asked for could not be done."""
        self._tell(Checked(change=_not_made((), error)))

    async def look_again(self) -> None:
        """Take the newest recorded runs, and make them again: some were run for real meanwhile."""
        self.recorded = self._look()
        self._tell(self._watching())
        await self.check_all()

    # A save

    async def _saved(self, paths: Sequence[str]) -> None:
        # A suite may have other tests or agents now, so all runs are planned and made again.
        if any(_is_of_suite(path) or path in self._datasets for path in paths):
            await self._cancel()
            if await self._planned_again(tuple(paths)):
                self._begin(tuple(paths), self.recorded.runs)
            return
        unbuilt = {program: program.lacking(paths) for program in set(self._built.values())}
        for program, sources in unbuilt.items():
            if sources:
                self._tell(NotBuilt(files=tuple(filter(sources.__contains__, paths)), folder=str(program.folder)))
        # Before the own writes are told apart: files that no agent reads say nothing of who writes.
        paths = [path for path in paths if self._affected([path], unbuilt)]
        if not paths:
            return
        read = self._beside_agents.union(*self._known.values())
        paths, written = self._own_writes.saved(paths, read)
        for file in written:
            self._tell(Ignored(file=file))
        affected = self._affected(paths, unbuilt)
        if not affected:
            return
        # The files and the runs of an interrupted check count again: it told nothing yet.
        again = {run.row.id for run in affected}
        if self._work is not None and not self._work.done():
            again |= {run.row.id for run in self._runs}
        interrupted = await self._cancel()
        runs = [run for run in self.recorded.runs if run.row.id in again]
        self._begin((*self._own_writes.without(interrupted), *paths), runs)

    def _affected(self, paths: Collection[str], unbuilt: Unbuilt) -> tuple[RecordedRun, ...]:
        """The runs whose agents these files change; all, if metrics, hooks or probes have read one."""
        if any(self._is_read(path, self._beside_agents) for path in paths):
            return self.recorded.runs
        affected = {
            agent: any(self._affects(path, agent, folder, unbuilt) for path in paths)
            for agent, folder in self._projects.items()
        }
        return tuple([run for run in self.recorded.runs if affected[run.plan.agent.hash]])

    def _affects(self, path: str, agent: str, project: Path, unbuilt: Unbuilt) -> bool:
        """Whether the agent has read the file. Of one whose files are not known, any file of its project counts, and so
        it does while the code can't be run; but no source that is not in its program yet. Of a command, only the
        sources for Node that it has read are known."""
        files = self._known.get(agent, frozenset())
        if files and agent not in self._broken:
            if self._is_read(path, files):
                return True
            if agent not in self._commands or (is_node_source(path) and agent not in self._built):
                return False
        program = self._built.get(agent)
        return Path(path).is_relative_to(project) and (program is None or path not in unbuilt[program])

    def _is_read(self, path: str, read: Collection[str]) -> bool:
        """Whether a file is one of these, or in one of the folders that were listed. A folder that was made since
        counts as its own would."""
        if path in read:
            return True
        for folder in Path(path).parents:
            if str(folder) in read or folder in self._watched:
                return str(folder) in read
        return False

    async def _planned_again(self, paths: tuple[str, ...]) -> bool:
        """Plan the runs as the suites are now; gives whether they can be."""
        try:
            plan = self._plans()
        except AgentevalError as error:
            self._tell(Checked(change=_not_made(paths, error)))
            return False
        await self._check.close()
        self._plan = plan
        self.recorded = self._look()
        self._check = CodeCheck(plan, self._store, tools_recorded=self._tools_recorded)
        return True

    def _look(self) -> RecordedRuns:
        recorded = recorded_runs(self._store, self._plan.runs)
        agents = {run.plan.agent.hash: run.plan.agent for run in recorded.runs}
        self._projects = {name: working_copy_of(agent.base_dir) for name, agent in agents.items()}
        self._commands = frozenset(name for name, agent in agents.items() if agent.config.get("kind") == "command")
        self._datasets = _dataset_files_of(self._plan)
        self._programs = _program_files_of(self._plan)
        self._contents.look(self._datasets | self._programs)
        self._built = {}
        for name in self._commands:
            agent = agents[name]
            self._find_build(name, files_of_agent(agent.config, agent.base_dir))
        return recorded

    def _find_build(self, agent: str, files: Iterable[Path]) -> None:
        program = built_program(files, self._projects[agent])
        if program is not None:
            self._built.setdefault(agent, program)

    # The runs

    def _begin(
        self,
        files: tuple[str, ...],
        runs: Sequence[RecordedRun],
        options: CheckOptions | None = None,
        beside: CodeChange | None = None,
    ) -> None:
        """Make runs again; `beside`: in a change whose other runs stay as they are."""
        files = tuple(dict.fromkeys(files))
        self._files, self._runs = files, runs
        self._tell(Saved(files=files, runs=len(runs)))
        options = self._within_limit(options or self._live or FREE)
        self._since = min(self._since, time.time())
        self._own_writes.begin()
        # In a task, so that a newer save can interrupt it.
        self._work = asyncio.create_task(self._checked(files, runs, options, beside))

    def _within_limit(self, options: CheckOptions) -> CheckOptions:
        """The same with what is left of the limit on cost; no model is asked if nothing is left, or if the cost
        so far is not known."""
        if not options.live or options.max_cost is None:
            return options
        remaining = None if self._spent is None else options.max_cost - self._spent
        return replace(options, max_cost=remaining) if remaining is not None and remaining > 0 else FREE

    async def _checked(
        self, files: tuple[str, ...], runs: Sequence[RecordedRun], options: CheckOptions, beside: CodeChange | None
    ) -> None:
        # Imports would fail meanwhile. The file that comes back is a newer save, which ends this wait.
        if any(not Path(file).exists() for file in files):  # noqa: ASYNC240 - a look at a few names
            await asyncio.sleep(_GONE_S)
        try:
            change = await self._check.run(
                runs,
                files,
                options,
                not_affected=len(self.recorded.runs) - len(runs),
                changed=lambda run: self._tell(RunChecked(change=run)),
            )
        except AgentevalError as error:
            change = _not_made(files, error)
        self._own_writes.end()
        if change.requests:
            # A cost that is not known makes the sum unknown, and then nothing more is asked.
            self._spent = None if self._spent is None or change.cost is None else self._spent + change.cost
        failed = {run.before for run in change.runs if run.status == "error" and run.effect != "needs_model"}
        broken = [
            run.plan.agent.hash
            for run in runs
            if change.error or (run.row.id in failed and run.plan.agent.hash in self._commands)
        ]
        self._broken = (self._broken - {run.plan.agent.hash for run in runs}).union(broken)
        if not change.error:
            self._superseded(change, stay=beside is not None)
            if beside is not None:
                change = with_runs(beside, change)
            self.last = change
        # After the runs: what they imported is known only now, and a later save is told from these contents.
        for agent in self._projects:
            read_before = self._known.get(agent, frozenset())
            files_read = with_targets(self._check.files(agent) - read_before)
            # Never fewer: a run that failed early has read less than its code needs.
            self._known[agent] = read_before | files_read
            if agent in self._commands:
                self._find_build(agent, map(Path, self._known[agent]))
            self._look_at(files_read)
        self._functions |= with_targets(self._check.function_files())
        self._look_at(self._functions)
        self._since = math.inf
        self._tell(Checked(change=change))

    def _look_at(self, files: frozenset[str]) -> None:
        """Tell later saves of these files from what they say now."""
        is_late = self._contents.look(files, since=self._since)
        # What was imported may be outside the watched folders: `saves` asks for them again. So it does for what was
        # saved before it was known to count.
        if is_late or not folders_of((), files) <= self._watched:
            self._moved.set()

    @property
    def _beside_agents(self) -> frozenset[str]:
        """The files of the code that tests use beside their agents."""
        return self._functions | self._programs

    def _superseded(self, change: CodeChange, *, stay: bool) -> None:
        """The runs of the save before are of no use any more, unless they `stay` beside these. What was paid for
        stays in any case."""
        if not stay:
            for execution in self._executions:
                self._store.delete_execution(execution)
            self._executions.clear()
        # Only those that cost nothing are deleted by the next save.
        if change.execution and not change.requests:
            self._executions.append(change.execution)

    async def _cancel(self) -> tuple[str, ...]:
        """End the runs in flight; gives the files of the save that they were made for."""
        work, self._work = self._work, None
        if work is None or work.done():
            return ()
        work.cancel()
        with suppress(asyncio.CancelledError):
            await work
        self._own_writes.end()
        return self._files

    def _folders(self) -> frozenset[Path]:
        """The folders to watch."""
        files = [file for agent in self._projects for file in self._known.get(agent, ())]
        files += [*self._beside_agents, *self._datasets]
        suites = [key for key in self._plan.suite_keys if Path(key).is_absolute()]
        whole = {
            folder for agent, folder in self._projects.items() if agent in self._commands or not self._known.get(agent)
        }
        # A build writes into a folder that is passed over elsewhere.
        whole |= {program.folder for program in self._built.values()}
        self._watched = folders_of(whole, [*files, *suites])
        self._own_writes.look(self._watched)
        return self._watched

    def _watching(self) -> Watching:
        runs = self.recorded.runs
        programs = sum(is_of_program(run) for run in self._plan.runs)
        return Watching(
            recorded=len(runs),
            failing=sum(run.failed for run in runs),
            missing=len(self.recorded.missing),
            not_programs=len(self._plan.runs) - programs,
            projects=tuple(sorted({str(folder) for folder in self._projects.values()})),
            real_tools=self._check.real_tools(runs),
            copies=installed_copies(run.plan for run in runs),
        )


def _not_made(files: tuple[str, ...], error: AgentevalError) -> CodeChange:
    return code_change(files, (), duration_ms=0.0, error=error.problem, fix=error.fix)


def _is_of_suite(path: str) -> bool:
    name = Path(path).name
    return is_suite_name(name) or name in BESIDE or name.startswith(".env")


def _dataset_files_of(plan: Plan) -> frozenset[str]:
    """The files with the rows of the plan's tests, as far as their suites can be read."""
    files: list[str] = []
    for suite_file in map(Path, plan.suite_keys):
        try:
            suite = load_suite(suite_file).suite if suite_file.is_file() else None
        except AgentevalError:  # told where it is planned
            continue
        for test in () if suite is None else suite.tests:
            if test.dataset is not None:
                files += map(str, dataset_files(test.dataset, suite_file.parent))
    return with_targets(files)


def _program_files_of(plan: Plan) -> frozenset[str]:
    """The files of the project that commands of the tests' hooks and probes name. The files of functions, such as
    metrics, are known once they have run (`CodeCheck.function_files`)."""
    programs = {str(entry): (entry, folder) for run in plan.runs for entry, folder in _programs(run, plan)}
    files: list[str] = []
    for entry, folder in programs.values():
        project = working_copy_of(folder)
        files += [str(file) for file in files_of_agent(entry, folder) if file.is_relative_to(project)]
    return with_targets(files)


def _programs(run: RunPlan, plan: Plan) -> Iterator[tuple[Mapping[str, Any], Path]]:
    folder = plan.respondents.base_dir(run.suite_key)
    for hook in () if run.around is None else run.around.hooks:
        yield {"command": hook.shell or list(hook.command), "shell": bool(hook.shell), "env": hook.env}, folder
    for probe in run.state.values():
        if "command" in probe:
            yield probe, folder
