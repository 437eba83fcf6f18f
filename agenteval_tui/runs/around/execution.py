"""What the runs of one execution need around them, while it runs: services, hooks, working folders.

The order in an attempt of a run: its services are ready, `before_all` has run once, the working folder is made,
`before` hooks run; then the agent; then `after` hooks, whatever happened. `after_all` runs when the last run of its
test or suite is over. None of it is the agent's time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.workdirs import remove_if_empty, remove_workdirs, workdirs_of
from agenteval_tui.runs.around.hooks import Hooks, HookTask
from agenteval_tui.runs.around.plan import SUITE, TEST, ServicePlan, Surroundings, services_of_agent
from agenteval_tui.runs.around.record import AroundRecord, ServiceState, encoded
from agenteval_tui.runs.around.services import OutputFromNow, ServiceError, Services
from agenteval_tui.runs.around.workdirs import WorkdirError, make_workdir
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.transcripts.model import SETUP, ErrorCode, HookRun, RunError

Scope = tuple[str, str]
"""A suite's key, and a test's id ("": all tests of the suite)."""
_Ran = tuple[list[HookRun], dict[str, Any]]
"""Hooks that ran, and the variables that they brought."""


class SetupFailed(Exception):  # noqa: N818 - it carries the error of a run
    """A run can't begin: `error` is what it ends with."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error


class _Shared(Struct):
    """What the runs of a suite or a test share: `left` runs are not over. `before` is set once one has started:
    it gives the hooks that ran, and the variables that they brought."""

    around: Surroundings
    left: int = 0
    before: asyncio.Task[_Ran] | None = None
    after: asyncio.Task[None] | None = None
    exclusive: str = ""


class ExecutionSurroundings:
    """All of it, for one execution. Used in its event loop.

    `service_changed` is told of services; `service_died` of each that is not there any more, or never was. `hold` and
    `free` are called with the name of what only one run may use, while hooks use it beyond a run. `changed` is called
    when the execution may be over.
    """

    def __init__(
        self,
        plan: Plan,
        history: Path,
        env: Mapping[str, str],
        *,
        service_changed: Callable[[ServiceState], None],
        service_died: Callable[[ServicePlan, RunError], None],
        hold: Callable[[str], None],
        free: Callable[[str], None],
        changed: Callable[[], None],
    ) -> None:
        self.permission: Permission = plan.permission
        self.services = Services(plan.permission, env, service_changed, service_died)
        self.hooks = Hooks(plan.permission)
        self.root = workdirs_of(history)
        self.failed_after: list[HookRun] = []
        """Hooks of `after_all` that failed; no run says it."""
        self.ran: list[HookRun] = []
        """All hooks that belong to no single run."""
        self._env = env
        self._hold = hold
        self._free = free
        self._changed = changed
        self._shared: dict[Scope, _Shared] = {}
        self._environments: dict[str, dict[str, str]] = {}
        for run in plan.runs:
            if run.around is not None:
                for scope in _scopes(run):
                    shared = self._shared.setdefault(scope, _Shared(run.around))
                    shared.left += 1

    def of(self, run: RunPlan) -> RunSurroundings | None:
        """What a run needs; None if it needs nothing."""
        services = services_of(run)
        if run.around is None and not services:
            return None
        return RunSurroundings(self, run, services)

    def run_over(self, run: RunPlan) -> None:
        """A run has its end: what comes after the last run of its test or suite begins."""
        if run.around is None:
            return
        for scope in _scopes(run):
            shared = self._shared[scope]
            shared.left -= 1
            if shared.left <= 0:
                self._begin_after(scope, run.around.exclusive)

    def finish(self) -> bool:
        """No more runs begin: whether everything after them is done. Else it begins, and `changed` is called."""
        if any(shared.after is not None and not shared.after.done() for shared in self._shared.values()):
            return False
        waiting = [
            scope for scope, shared in self._shared.items() if shared.before is not None and shared.after is None
        ]
        # Tests before their suite, whose hooks clean up behind them.
        for scope in sorted(waiting, key=lambda scope: not scope[1]):
            self._begin_after(scope, self._shared[scope].exclusive)
        return not waiting

    def document(self) -> str:
        """Its services, and the hooks that belong to no single run, as JSON."""
        return encoded(AroundRecord(self.services.states(), tuple(self.ran)))

    async def close(self) -> None:
        """End services and processes."""
        for shared in self._shared.values():
            for task in (shared.before, shared.after):
                if task is not None and not task.done():
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
        try:
            # Hooks first: they may use the services.
            await self.hooks.close()
        finally:
            await self.services.close()
            remove_if_empty(self.root)

    async def before_all(self, run: RunPlan) -> _Ran:
        """The hooks of `before_all` of a run's suite and test, and what they brought. They run once."""
        ran: list[HookRun] = []
        brought: dict[str, Any] = {}
        for scope in _scopes(run):
            shared = self._shared[scope]
            if shared.before is None:
                assert run.around is not None
                shared.exclusive = run.around.exclusive
                shared.before = asyncio.ensure_future(self._before(scope, run, dict(brought)))
            # Shielded: other runs wait for the same hooks, also if this run is cancelled.
            hooks, variables = await asyncio.shield(shared.before)
            ran += hooks
            brought.update(variables)
            # What the suite could not prepare, its test can't use.
            if any(hook.error for hook in hooks):
                break
        return ran, brought

    async def environment(self, folder: str) -> dict[str, str]:
        """The environment of the project in which a suite's folder lies, with its `.env`. Raises `AgentevalError`."""
        environment = self._environments.get(folder)
        if environment is None:
            environment = self._environments[folder] = await asyncio.to_thread(self._environment, Path(folder))
        return environment

    def _environment(self, folder: Path) -> dict[str, str]:
        env = environment_for(folder, self._env)
        return {"PYTHONUNBUFFERED": "1", **project_environment(folder).variables(env)}

    async def _before(self, scope: Scope, run: RunPlan, brought: dict[str, Any]) -> _Ran:
        around = run.around
        assert around is not None
        # The rows of a dataset have nothing in common.
        own = run.variables if scope[1] and not run.ref.row else {}
        return await self._run_shared("before_all", scope, around, {**own, **brought})

    async def _run_shared(self, phase: str, scope: Scope, around: Surroundings, variables: Mapping[str, Any]) -> _Ran:
        ran: list[HookRun] = []
        brought: dict[str, Any] = {}
        about = {"suite": scope[0], "test": scope[1] or None}
        for hook in around.of_phase(phase, TEST if scope[1] else SUITE):
            try:
                env = await self.environment(around.folder)
            except AgentevalError as error:
                ran.append(HookRun(phase, hook.name, 0.0, error=_error_of(error, hook.name, phase)))
                break
            task = HookTask(Path(around.folder), None, {**variables, **brought}, about, env)
            result = await self.hooks.run(hook, task)
            ran.append(result.run)
            brought.update(result.variables)
            # What cleans up runs whatever the hooks before it did.
            if result.run.error is not None and phase == "before_all":
                break
        self.ran += ran
        return ran, brought

    def _begin_after(self, scope: Scope, exclusive: str) -> None:
        shared = self._shared[scope]
        # Where no run has begun there is nothing to clean up.
        if shared.before is None or shared.after is not None:
            return
        if exclusive:
            self._hold(exclusive)
        shared.after = asyncio.ensure_future(self._after(scope, shared, exclusive))

    async def _after(self, scope: Scope, shared: _Shared, exclusive: str) -> None:
        try:
            brought: dict[str, Any] = {}
            if shared.before is not None:
                with suppress(asyncio.CancelledError):
                    brought = (await shared.before)[1]
            if not scope[1]:  # after those of its tests
                # Its tests' tasks exist by now: a test's last run is over before its suite's last one, or `finish`
                # begins them first.
                tests = [shared.after for other, shared in self._shared.items() if other[0] == scope[0] and other[1]]
                await asyncio.gather(*filter(None, tests), return_exceptions=True)
            ran, _ = await self._run_shared("after_all", scope, shared.around, brought)
            self.failed_after += [hook for hook in ran if hook.error is not None]
        finally:
            if exclusive:
                self._free(exclusive)
            # Its own task is done only after this.
            asyncio.get_running_loop().call_soon(self._changed)


class RunSurroundings:
    """What one run needs: `open` before each attempt, `close` after it. `ran`: the hooks of all attempts."""

    def __init__(self, execution: ExecutionSurroundings, run: RunPlan, services: tuple[ServicePlan, ...]) -> None:
        self.ran: list[HookRun] = []
        self.workdir: Path | None = None
        self.services = services
        self._execution = execution
        self._run = run
        self._variables: Mapping[str, Any] = run.variables
        self._attempt = 0
        self.is_open = False
        """Whether there is something to be closed."""

    async def open(self, attempt: int) -> Mapping[str, Any]:
        """Prepare an attempt; gives the variables of the run. Raises `SetupFailed`."""
        execution, around = self._execution, self._run.around
        # From the beginning again: an attempt does not see what the hooks of the one before brought.
        self._attempt, self.is_open, self._variables = attempt, False, self._run.variables
        try:
            await execution.services.ready(self.services)
        except ServiceError as error:
            raise SetupFailed(error.error) from None
        if around is None:
            return self._run.variables
        hooks, brought = await execution.before_all(self._run)
        if failed := [hook for hook in hooks if hook.error is not None]:
            self.ran += failed
            raise SetupFailed(_first(failed))
        self._bring(brought)
        if around.workdir:
            trusted = execution.permission.trusted
            try:
                self.workdir = await asyncio.to_thread(
                    make_workdir, around, execution.root, self._run.ref.run, trusted=trusted
                )
            except AgentevalError as error:
                why = error.why if isinstance(error, WorkdirError) else "missing"
                raise SetupFailed(RunError.told(SETUP, error.what, error.fix, ErrorCode.WORKDIR, why=why)) from None
        # From here on `after` hooks run, also if a `before` hook fails.
        self.is_open = True
        for hook in around.of_phase("before"):
            result = await execution.hooks.run(hook, await self._task(around), attempt)
            self.ran.append(result.run)
            if result.run.error is not None:
                raise SetupFailed(result.run.error)
            self._bring(result.variables)
        return self._variables

    def output_from_now(self) -> OutputFromNow:
        """What its services print from now on."""
        return self._execution.services.output_from_now(self.services)

    def _bring(self, variables: Mapping[str, Any]) -> None:
        """Take what a hook brought. The conversation that a fork continues has the values of then."""
        own = self._run.variables if self._run.continues else {}
        self._variables = {**self._variables, **variables, **own}

    async def close(self) -> tuple[HookRun, ...]:
        """Run what is after an attempt; gives the hooks that failed. Each runs, whatever the others did."""
        around = self._run.around
        if around is None or not self.is_open:
            return ()
        self.is_open = False
        failed = []
        for hook in around.of_phase("after"):
            result = await self._execution.hooks.run(hook, await self._task(around), self._attempt)
            self.ran.append(result.run)
            if result.run.error is not None:
                failed.append(result.run)
        return tuple(failed)

    def forget(self) -> None:
        """The run passed: its working folder is of no use any more. Blocks."""
        if self.workdir is not None:
            remove_workdirs(self._execution.root, [self._run.ref.run])

    async def _task(self, around: Surroundings) -> HookTask:
        ref = self._run.ref
        about = {
            "suite": self._run.suite_key,
            "test": ref.test,
            "run": ref.run,
            "agent": ref.agent,
            "variation": ref.variation,
            "row": ref.row or None,
            "repetition": ref.repetition,
            "attempt": self._attempt,
        }
        try:
            env = await self._execution.environment(around.folder)
        except AgentevalError as error:
            raise SetupFailed(_error_of(error, "", "before")) from None
        return HookTask(Path(around.folder), self.workdir, self._variables, about, env)


def services_of(run: RunPlan) -> tuple[ServicePlan, ...]:
    """The services that a run needs: those of its suite, then those of its agent."""
    own = () if run.around is None else run.around.services
    return (*own, *services_of_agent(run.agent.config, run.agent.base_dir))


def needs_surroundings(runs: Iterable[RunPlan]) -> bool:
    """Whether anything is to be prepared for any of these runs."""
    return any(run.around is not None or run.agent.config.get("services") for run in runs)


def _scopes(run: RunPlan) -> Iterator[Scope]:
    yield run.suite_key, ""
    yield run.suite_key, run.ref.test


def _first(failed: list[HookRun]) -> RunError:
    error = failed[0].error
    assert error is not None
    return error


def _error_of(error: AgentevalError, hook: str, phase: str) -> RunError:
    return RunError.told(SETUP, error.what, error.fix, ErrorCode.HOOK, phase=phase, hook=hook, why="start")
