"""Runs recorded runs again with the agent's code as it is now, and tells what that changes.

Requests to models are answered from the recordings, and judges are not asked: nothing is paid for. The agent's code and
its tools, the hooks, services and probes of the suite run for real.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import ReadsFiles
from agenteval_tui.agents.process.python_tree import Lease, function_files
from agenteval_tui.agents.recording.answers import RecordedAnswers
from agenteval_tui.agents.recording.capture import known_prices
from agenteval_tui.core.ids import new_id
from agenteval_tui.core.phrasing import abridged
from agenteval_tui.history.programs import as_stored
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_pool import Prepared, prepare_agents
from agenteval_tui.runs.budget import SpendingLimit
from agenteval_tui.runs.change.model import CodeChange, Effect, RunChange, code_change, first_difference
from agenteval_tui.runs.change.plans import environment_without_keys, with_own_servers, without_keys
from agenteval_tui.runs.change.recorded_runs import RecordedRun, Tapes
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.events import Command, Ended, Event, Graded
from agenteval_tui.runs.grading_pool import failed_criteria
from agenteval_tui.runs.plan.model import Limits, Plan, RunPlan
from agenteval_tui.transcripts.model import ErrorCode, Transcript

KEY_REFUSED = frozenset(
    ("AuthenticationError", "PermissionDeniedError", "UnauthorizedError", "ClientAuthenticationError")
)
"""The exceptions of clients of model servers whose key was refused."""
_CORES = os.cpu_count() or 1
"""So many runs begin at once: if more shared the cores, the first verdict would be there as late as the last."""
_FIRST = 50
"""So many runs are waited for. The others leave a core to the app and the editor: a key comes before them."""
_LOOK_S = 0.15
"""How often the cores are looked at: a run that waits is not held back for long."""
_LOOKS_IF_BUSY = 7
"""Looks after which more runs begin also on busy cores: about once a second."""
_IDLE_SHARE = 0.5
"""Of the time of the cores that the runs may use. From there on, more at once do not make the first verdict later."""
_LIMIT = "the limit on cost is reached"
_NO_PRICE = "what the model costs is not known, so a limit on cost can't be kept: add its price"
NOT_JUDGED = "runs after a save don't ask judges that have not answered this before"
_ASKS_AT_IMPORT = (
    "its module asks a model when it is imported, which no recording answers, and keys are withheld after a save: let "
    "only a call ask the model, or run the file as a `command`"
)
_NEEDS = "its model was asked, and the requests were not recorded"


class CheckOptions(Struct, frozen=True):
    """How a check is made. `live`: requests that are not recorded, and judges, are asked, for at most `max_cost` US
    dollars in all (None: no limit)."""

    live: bool = False
    max_cost: float | None = None


FREE = CheckOptions()
"""Nobody is asked."""
OnChange = Callable[[RunChange], None]
"""Is called with each run as soon as it has ended."""


class CodeCheck:
    """Checks recorded runs of one plan, again and again: the agents' processes stay between two checks. Close it."""

    def __init__(self, plan: Plan, store: Store, *, tools_recorded: bool = False) -> None:
        self._plan = plan
        self._store = store
        cost = known_prices() or (lambda _model, _usage: None)
        self._tapes = Tapes(store, cost, tools_recorded=tools_recorded)
        self._tools_recorded = tools_recorded
        self._agents: dict[str, Prepared] = {}
        self._agents_live = False
        self._env: Mapping[str, str] = {}
        """What the agents, and the services of the runs, have of our environment."""
        self._of_same_code: frozenset[str] = frozenset()
        """The recorded runs (ids) whose code is that of now."""
        self._lease: Lease | None = None
        """Keeps the processes of metrics, hooks and probes from one check to the next."""
        self._free_runs: Store | None = None
        """The history again, for runs that cost nothing and can be made again: no verdict waits for the disk."""

    def files(self, agent: str) -> frozenset[str]:
        """The files of the project that an agent (its hash) has imported or read by now; empty: not known."""
        prepared = self._agents.get(agent)
        if prepared is None or not isinstance(prepared.agent, ReadsFiles):
            return frozenset()
        return prepared.agent.files

    def function_files(self) -> frozenset[str]:
        """The files of the project that metrics, hooks and probes in Python have read by now."""
        return function_files()

    def real_tools(self, runs: Sequence[RecordedRun]) -> tuple[str, ...]:
        """The agents whose tools run for real although their calls were to be answered from recordings: there are
        none."""
        return self._tapes.without_tools(runs) if self._tools_recorded else ()

    async def run(
        self,
        runs: Sequence[RecordedRun],
        saved: tuple[str, ...] = (),
        options: CheckOptions = FREE,
        *,
        not_affected: int = 0,
        changed: OnChange | None = None,
    ) -> CodeChange:
        """Make these runs again, in their order. When the awaiting task is cancelled, the runs in flight are cancelled
        and deleted from the history.

        Raises `AgentevalError` where an agent is wrong, or the history can't be written.
        """
        began = time.monotonic()
        self._lease = self._lease or Lease()
        self._tapes.know(runs)
        results = _Results(self._store, self._tapes, changed, live=options.live)
        to_run: list[tuple[RecordedRun, RunPlan]] = []
        for run in runs:
            if not options.live and self._tapes.needs_model(run):
                results.not_made(run, _NEEDS)
            else:
                to_run.append((run, run.again(live=options.live)))
        error = ""
        fix = ""
        execution = ""
        if to_run:
            plan = self._planned([again for _, again in to_run], saved, options)
            is_new = await self._prepare(plan, options)
            # Asked once for all runs: else each of them would end with the same error of an import.
            error, fix = await self._broken()
            if not error:
                # Their code was read meanwhile; processes that are older may have begun before an edit.
                self._of_same_code = await self._recorded_with_code_of_now(runs) if is_new else frozenset()
                execution = plan.execution_id
                error = await self._execute(plan, to_run, options, results)
        return code_change(
            saved,
            () if error else results.in_order(runs),
            not_affected=not_affected,
            answers=results.answers,
            requests=results.requests,
            real_tools=results.real_tools,
            cost=results.cost,
            duration_ms=(time.monotonic() - began) * 1000,
            execution=execution,
            error=error,
            fix=fix,
        )

    async def close(self) -> None:
        """End the agents' processes, and what the runs are written with."""
        await self._close_agents()
        if self._lease is not None:
            await self._lease.close()
            self._lease = None
        free_runs, self._free_runs = self._free_runs, None
        if free_runs is not None:
            await asyncio.to_thread(free_runs.close)

    async def _close_agents(self) -> None:
        agents, self._agents = self._agents, {}
        for prepared in agents.values():
            await prepared.agent.close()

    def _store_of(self, options: CheckOptions) -> Store:
        """Where the runs are stored."""
        if options.live:
            return self._store
        if self._free_runs is None:
            self._free_runs = Store.open(self._store.path, durable=False)
        return self._free_runs

    async def _prepare(self, plan: Plan, options: CheckOptions) -> bool:
        """Make the agents, unless they are there: with the keys of model servers if the models may be asked. Returns
        whether they are new."""
        hashes = {agent.hash for run in plan.runs for agent in run.agents}
        # A start of an agent's processes, with its imports, takes longer than most runs: they stay while they can.
        if hashes <= self._agents.keys() and self._agents_live == options.live:
            return False
        await self._close_agents()
        self._env = dict(os.environ) if options.live else environment_without_keys(plan.runs)
        self._agents = prepare_agents(plan, self._store, self._env, 0.5)
        self._agents_live = options.live
        return True

    async def _recorded_with_code_of_now(self, runs: Sequence[RecordedRun]) -> frozenset[str]:
        now: dict[str, dict[str, str]] = {}
        for prepared in self._agents.values():
            identity = await asyncio.wrap_future(prepared.identity)
            now.setdefault(prepared.name, {}).update(as_stored(identity.program))
        programs = self._store.programs_of({run.row.execution_id for run in runs})
        states = {run.row.id: programs.get(run.row.execution_id, {}).get(run.row.agent, "") for run in runs}
        files = {state: self._store.program_files(state) for state in {*states.values()} if state}
        return frozenset(
            run.row.id for run in runs if (code := now.get(run.row.agent)) and files.get(states[run.row.id]) == code
        )

    async def _broken(self) -> tuple[str, str]:
        """Why the code of an agent can't be imported, and how to fix it; "" if it can."""
        for prepared in self._agents.values():
            if prepared.config.get("kind") == "python":
                report = await prepared.agent.check()
                if not report.ok:
                    is_withheld = report.key_refused and not self._agents_live
                    return report.message, _ASKS_AT_IMPORT if is_withheld else report.fix
        return "", ""

    async def _execute(
        self, plan: Plan, runs: Sequence[tuple[RecordedRun, RunPlan]], options: CheckOptions, results: _Results
    ) -> str:
        """Make the runs; gives why they could not all be made, such as a service that ended; "" if they could."""
        by_id = {
            again.ref.run: (run, self._tapes.playbacks(run, is_same_code=run.row.id in self._of_same_code))
            for run, again in runs
        }
        recorded = {
            name: RecordedAnswers(
                playbacks.begin, live=options.live, max_cost=options.max_cost, tools=self._tapes.tool_calls(run)
            )
            for name, (run, playbacks) in by_id.items()
        }

        checking = asyncio.current_task()
        assert checking is not None

        def emit(event: Event) -> None:
            # Runs that were cut short tell nothing: the next save makes them again.
            if isinstance(event, Graded) and event.run in by_id and not checking.cancelling():
                run, playbacks = by_id[event.run]
                self._tapes.learn(run, playbacks)
                results.add_run(run, event, playbacks.answered)
                at_once.run_ended()

        # The plan's limit counts what judges cost as well; theirs also asks one after another.
        judges = SpendingLimit(options.max_cost) if options.max_cost is not None else None
        store = self._store_of(options)
        engine = Engine(
            replace(plan, concurrency=min(plan.concurrency, _CORES)),
            store,
            emit,
            env=self._env,
            recorded=recorded,
            agents=self._agents,
            judges=judges if options.live else SpendingLimit(closed=NOT_JUDGED),
        )
        at_once = RunsAtOnce(engine.command, plan.concurrency)
        ended: Ended | None = None
        more = asyncio.create_task(at_once.raise_while_idle())
        try:
            ended = await engine.run()
        finally:
            more.cancel()
            if ended is None:
                store.delete_execution(plan.execution_id)
        if ended.status == "failed":
            return ended.message
        for run, _ in runs:
            if not results.has(run):  # the limit on cost was reached before it
                results.not_made(run, results.limit)
        return ""

    def _planned(self, runs: Sequence[RunPlan], saved: tuple[str, ...], options: CheckOptions) -> Plan:
        names = [Path(file).name for file in saved]
        return replace(
            self._plan,
            execution_id=new_id(),
            title=f"after a save of {abridged(names, 1)}" if names else "again with the code of now",
            runs=with_own_servers(runs if options.live else [without_keys(run) for run in runs]),
            options={"purpose": "change"},
            limits=Limits(cost=options.max_cost) if options.live else Limits(),
            kind="fork",  # counts nowhere
            # An answer in the history was given by the code before the save.
            cache="",
            name="",
            note="",
            meta={},
        )


class _Results:
    """The changes so far, as the runs end."""

    def __init__(self, store: Store, tapes: Tapes, changed: OnChange | None, *, live: bool) -> None:
        self._live = live
        self.runs: list[RunChange] = []
        self._ended: set[str] = set()
        self.answers = 0
        self.requests = 0
        self.real_tools: list[str] = []
        self.cost: float | None = 0.0
        self._store = store
        self._tapes = tapes
        self._changed = changed

    @property
    def limit(self) -> str:
        """Why a limit on cost lets no more be asked."""
        return _LIMIT if self.cost is not None else _NO_PRICE

    def has(self, run: RecordedRun) -> bool:
        """Whether the run has ended."""
        return run.row.id in self._ended

    def not_made(self, run: RecordedRun, reason: str) -> None:
        """A run needs the model from its beginning."""
        self._add(_change(run, "needs_model", reason=reason, request=1, cost=self._tapes.price(run)))

    def add_run(self, run: RecordedRun, graded: Graded, answers: int) -> None:
        """A run has ended; the recording answered this many of its requests."""
        # In the history by now: `Graded` comes after the run is stored.
        transcript = self._store.transcript(graded.run)
        self._count(transcript, answers, self._store.run(graded.run).cost)
        self.real_tools += [note.what for note in transcript.notes if note.code == "real_tool"]
        self._add(self._effect(run, graded, transcript))

    def in_order(self, runs: Sequence[RecordedRun]) -> tuple[RunChange, ...]:
        """The changes in the order of the runs, whichever ended first."""
        places = {run.row.id: place for place, run in enumerate(runs)}
        return tuple(sorted(self.runs, key=lambda change: places[change.before]))

    def _add(self, change: RunChange) -> None:
        self.runs.append(change)
        self._ended.add(change.before)
        if self._changed is not None:
            self._changed(change)

    def _effect(self, run: RecordedRun, graded: Graded, transcript: Transcript) -> RunChange:
        error = transcript.error
        criterion, reason = graded.failed[0] if graded.failed else ("", "")
        if error is not None and error.code == ErrorCode.NOT_RECORDED:
            request = int(error.fields.get("request", 1))
            return _change(
                run,
                "needs_model",
                graded=graded,
                reason=str(error.fields.get("change", "")),
                request=request,
                cost=self._tapes.price(run, request),
            )
        if graded.outcome == "cancelled":
            return _change(run, "needs_model", graded=graded, reason=self.limit, cost=self._tapes.price(run))
        if not self._live and error is not None and error.traceback is not None:
            kinds = {exception.type.rpartition(".")[2] for exception in error.traceback.exceptions}
            if kinds & KEY_REFUSED:  # it got a key that is none: that says nothing of its code
                return _change(run, "needs_model", graded=graded, reason=error.message, cost=self._tapes.price(run))
        if error is None and graded.outcome == "error" and graded.not_made:
            return _change(run, "needs_model", graded=graded, criterion=criterion, reason=reason)
        effect: Effect = "unchanged"
        if (graded.outcome == "passed") == run.failed:
            effect = "passes" if run.failed else "fails"
        elif graded.outcome == "error" and run.row.status == "failed":
            effect = "fails"  # as after a syntax error in a program: among the unchanged, nobody would see it
        elif run.failed and graded.failed:
            # Nor would anybody see what else a save broke in a run that failed already.
            before = {name for name, _ in failed_criteria(self._store.results(run.row.id))}
            new = [failure for failure in graded.failed if failure[0] not in before]
            if new and before:
                effect, (criterion, reason) = "fails", new[0]
        return _change(
            run,
            effect,
            graded=graded,
            criterion=criterion,
            reason=reason if error is None else error.message,
            step=None if effect == "unchanged" else first_difference(self._store.transcript(run.row.id), transcript),
        )

    def _count(self, transcript: Transcript, answers: int, cost: float | None) -> None:
        # All requests but the recorded ones went to servers.
        sent = 0 if transcript.requests is None else len(transcript.requests.references)
        live = max(sent - answers, 0) if self._live else 0
        self.answers += answers
        self.requests += live
        if live:
            self.cost = None if self.cost is None or cost is None else self.cost + cost


def _change(
    run: RecordedRun,
    effect: Effect,
    *,
    graded: Graded | None = None,
    reason: str = "",
    criterion: str = "",
    request: int | None = None,
    cost: float | None = None,
    step: int | None = None,
) -> RunChange:
    row = run.row
    return RunChange(
        effect=effect,
        suite=row.suite_name,
        test=row.test_id,
        test_name=row.test_name,
        variation=row.variation,
        row_key=row.row_key,
        repetition=row.repetition,
        agent=row.agent,
        before=row.id,
        status_before=row.status,
        after="" if graded is None else graded.run,
        status="" if graded is None else graded.outcome,
        reason=reason,
        criterion=criterion,
        request=request,
        cost=cost,
        step=step,
    )


class RunsAtOnce:
    """How many runs of a check are in progress at once, of at most `most`; `command` tells the engine."""

    def __init__(self, command: Callable[[Command], object], most: int, cores: int = _CORES) -> None:
        self._command = command
        self._most = most
        self._cores = cores
        self._number = cores
        self._ended = 0
        self._left = 0
        """The cores that are left to others."""

    def run_ended(self) -> None:
        """One more has ended. The first ones are waited for. The rest leaves a core free, where there are two."""
        self._ended += 1
        if self._ended == _FIRST:
            self._left = min(1, self._cores - 1)
            self._set(min(self._most, self._cores - self._left))

    async def raise_while_idle(self) -> None:
        """Let more and more runs begin while those in progress wait for something else than a core. If the cores are
        busy, it may be with something else, so the first runs become more all the same, but slowly."""
        looks = 0
        while True:
            before = idle_s()
            await asyncio.sleep(_LOOK_S)
            looks += 1
            now = idle_s()
            waited_for = self._ended < _FIRST
            due = (self._left + _IDLE_SHARE * (self._cores - self._left)) * _LOOK_S
            idle = waited_for if before is None or now is None else now - before >= due
            if self._number < self._most and (idle or (waited_for and looks % _LOOKS_IF_BUSY == 0)):
                self._set(min(2 * self._number, self._most))

    def _set(self, number: int) -> None:
        self._number = number
        self._command(Command("set_concurrency", number=number))


_STAT = Path("/proc/stat")
_IDLE = slice(4, 6)  # of the first line, which is that of all cores: idle, and idle while a disk is waited for


def idle_s() -> float | None:
    """The seconds that all cores together have been idle since the start of the machine; None: not known."""
    try:
        with _STAT.open("rb") as stat:
            ticks = sum(map(int, stat.readline().split()[_IDLE]))
        return ticks / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
