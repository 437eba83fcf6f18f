"""Runs a program behind the recording proxy, and stores its requests as a run, which is graded like any other run."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import stat
import time
from collections.abc import Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.key_destinations import sends_to
from agenteval_tui.agents.models.requests import first_words
from agenteval_tui.agents.permission import Permission, Use, program_words
from agenteval_tui.agents.prices import Cost, Prices
from agenteval_tui.agents.process.command import input_of
from agenteval_tui.agents.process.launchers import launched
from agenteval_tui.agents.process.options import CommandOptions, folder_of
from agenteval_tui.agents.recording.answers import Answers, Miss
from agenteval_tui.agents.recording.capture import NOTHING_SEEN
from agenteval_tui.agents.recording.cassette import Cassette, Volatile, append, documents, write
from agenteval_tui.agents.recording.conversation import transcript_of, transcripts
from agenteval_tui.agents.recording.exchange import Exchange
from agenteval_tui.agents.recording.journal import Journal
from agenteval_tui.agents.recording.keys import keys_of, without_keys
from agenteval_tui.agents.recording.matching import volatile_parts
from agenteval_tui.agents.recording.mcp_config import shimmed
from agenteval_tui.agents.recording.mcp_requests import is_mcp, tool_requests
from agenteval_tui.agents.recording.playback import OrderedPlayback, PaidAnswers, Playback
from agenteval_tui.agents.recording.program import run_program
from agenteval_tui.agents.recording.providers import PROVIDERS, upstreams
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash, new_id, now_ms, short_id
from agenteval_tui.core.phrasing import listed, on_one_line
from agenteval_tui.history.execution_names import KeepCommits
from agenteval_tui.history.recordings import PROGRAM, UNGRADED
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import Configured
from agenteval_tui.runs.budget import SpendingLimit
from agenteval_tui.runs.events import RunRef
from agenteval_tui.runs.fork.model import ForkOrigin, encode_origin
from agenteval_tui.runs.grading_pool import GradedRun, GradingPool
from agenteval_tui.runs.handshake import Handshake
from agenteval_tui.runs.live_recording import LiveRecording
from agenteval_tui.runs.plan.agents import AgentPlan, expanded
from agenteval_tui.runs.plan.model import DEFAULT, Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_untrusted_plan
from agenteval_tui.runs.recording_request import ProxyOptions
from agenteval_tui.runs.resume import StoredPlan, stored_plan
from agenteval_tui.runs.store_records import begin
from agenteval_tui.runs.trust_check import check_agents, check_trust, check_use
from agenteval_tui.runs.unfinished_recording import UnfinishedRecording
from agenteval_tui.suites.command_words import argv_for, argv_of, asks_in_words
from agenteval_tui.suites.commits import COMMITS_S, Commit, CommitReading, agent_folder, places_of
from agenteval_tui.suites.env_files import EnvFiles, env_files
from agenteval_tui.suites.environment import environment_for, expand
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.suites.slugs import slug
from agenteval_tui.suites.trust import Sending, repository_of
from agenteval_tui.transcripts.model import ErrorCode, RunError, Transcript

_NAME = 60
_SEPARATORS = re.compile(r"[\s,;:|&<>()'\"`=]+")  # of file names in an argument
_INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM)  # as shells, and many programs, tell it
STOPPED = -1000
"""In place of the exit code of a program that was stopped by somebody who watched it."""
_STDERR = 2


class Program(ProxyOptions, frozen=True):
    """A program, and where its answers come from.

    `cassette`: recorded answers; None: the servers answer. `on_miss`, `system`: see `Session` and
    `Playback`. `reads`: the program reads this process' standard input, else nothing; `given`: it reads these bytes
    instead. `stdout`: a file descriptor for its output; None: that of this process. `mcp_config`: a file with its MCP
    servers, which a word of `argv` names; they are recorded, too.
    """

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    upstreams: Mapping[str, str]
    cassette: Cassette | None = None
    on_miss: Literal["error", "live"] = "error"
    system: bool = True
    reads: bool = True
    given: bytes | None = None
    stdout: int | None = None
    mcp_config: Path | None = None
    given_upstreams: Mapping[str, str] = {}
    """The `upstreams` that the user named."""
    brought: EnvFiles = EnvFiles()
    """What the files of its folder add to `env`. `permission_of` asks about it."""

    @property
    def name(self) -> str:
        """Its name in lists."""
        return _name(self.written)

    @property
    def written(self) -> list[str]:
        """The words of its command as they are stored, without keys: a suite can have them."""
        return without_keys(self.argv, self.env)

    @property
    def varies(self) -> tuple[Volatile, ...]:
        """The parts of its requests that are known to vary."""
        return self.cassette.volatile if self.cassette is not None else ()

    @property
    def test(self) -> str:
        """The name of its test if no test grades it: the script's name, else the program's."""
        script = next((word for word in self.argv[1:] if (self.cwd / word).is_file()), self.argv[0])
        return slug(Path(script).stem) or "program"


class Recording(Struct, frozen=True):
    """The requests of a program's run. `live`: the number of its requests to models that servers answered, for `spent`
    US dollars (as far as prices are known). `missed_at`: the number of requests before the first one that is not in the
    cassette; `went_live`: whether servers, also those of tools, answered from there."""

    exit_code: int
    """`STOPPED`: a watcher, or a signal to this process, ended the program."""
    exchanges: tuple[Exchange, ...]
    transcript: Transcript
    duration_ms: float
    started_ms: int
    live: int
    went_live: bool = False
    spent: float = 0.0
    misses: tuple[Miss, ...] = ()
    missed_at: int | None = None
    unpriced: tuple[str, ...] = ()
    uncounted: Mapping[str, int] = {}
    """Models that answered without a count of tokens, and how often."""
    volatile: tuple[Volatile, ...] = ()
    """The parts of its requests that are known to vary."""
    continued: int = 0
    """The number of answers that are from a recording that was cut off, and were not paid for again."""
    unfinished: UnfinishedRecording | None = None
    commits: tuple[Commit, ...] = ()
    """Of the repository of its program, at its start."""

    @property
    def unknown_cost(self) -> str:
        """The models whose cost is not known, in words; "": none."""
        return listed([*self.unpriced, *sorted(self.uncounted)])

    @property
    def cassette(self) -> Cassette:
        """Its exchanges, to replay them."""
        return Cassette(tuple([exchange for exchange in self.exchanges if not exchange.refused]), self.volatile)

    @property
    def cut_off(self) -> bool:
        """Whether Ctrl-C, a signal or a watcher ended the program. The same command continues the recording."""
        return self.exit_code < 0 or self.exit_code in _INTERRUPTED

    @property
    def requests(self) -> int:
        """The number of its requests to models."""
        return sum(not is_mcp(exchange.question) for exchange in self.exchanges)

    @property
    def served(self) -> int:
        """The number of calls that reached MCP servers."""
        return len(tool_requests(self.exchanges))

    @property
    def prompt(self) -> str:
        """The user's first message."""
        return first_words([{"role": message.role, "content": message.content} for message in self.transcript.messages])


def _name(written: Sequence[str]) -> str:
    words = [Path(written[0]).name, *written[1:]]
    return on_one_line(" ".join(words).replace("$${", "${"), _NAME)


def program_in(folder: Path, argv: Sequence[str], *, given_upstreams: Mapping[str, str] | None = None) -> Program:
    """A program that the user named, in a folder, with this process' environment and the folder's `.env`. It needs
    the permission of `permission_of`. Raises `AgentevalError` when the `.env` can't be read."""
    return _in_environment(Program(tuple(argv), folder, {}, {}, given_upstreams=given_upstreams or {}), folder)


def _in_environment(program: Program, folder: Path) -> Program:
    # A variable of the user's environment stands before the same one of a `.env`.
    brought = env_files(folder)
    env = {**brought.variables, **os.environ}
    return replace(program, cwd=folder, env=env, upstreams=upstreams(env, program.given_upstreams), brought=brought)


def permission_of(program: Program, *, trusted: bool = False) -> Permission:
    """The permission of a program that the user named on the command line. The program is the user's word, but the
    variables of a `.env` are the folder's: they can lead the user's keys elsewhere. `trusted`: the user allowed them
    for this time. Raises `NotTrustedError` where they are not trusted.
    """
    names = [name for name in program.brought.variables if name not in os.environ]
    if names:
        files = listed([str(file) for file in program.brought.files])
        sends = tuple(_led_away(program, names))
        what = (f"gives the program {listed(names)} from {files}", *map(str, sends))
        check_use(Use(program.cwd, what, sends), trusted=trusted)
    return check_agents([Configured(program.name, agent_config(program), program.cwd / "-", 1)])


def _led_away(program: Program, names: Collection[str]) -> Iterator[Sending]:
    """The keys of the user that variables of a `.env` (these `names`) lead to a server."""
    for provider in PROVIDERS:
        variable = next((name for name in provider.variables if program.env.get(name, "").strip()), "")
        if variable in names and provider.name not in program.given_upstreams and program.env.get(provider.key):
            sending = sends_to(provider.key, program.env[variable])
            if sending is not None:
                yield sending


def agent_config(program: Program) -> dict[str, object]:
    """The configuration of this program as an agent of a suite. The program gets no conversation, so it can't continue
    one. Its answer is what its model said last: what it prints goes to the terminal, and is not recorded."""
    return {
        "kind": "command",
        "command": program.written,
        "input": "text",
        "output": "text",
        "capture": "model",
        "answer": "model",
    }


def program_of(agent: Configured, arguments: Sequence[str], max_cost: float | None) -> tuple[Program, Permission]:
    """The program of a suite's agent, with further `arguments`, and its permission from the trust of the suite's
    folder. For callers without a terminal. Raises `NotTrustedError` if the folder is not trusted, or if the arguments
    name a file that is not. Raises `AgentevalError` if the agent is not a program, or if its arguments choose the
    program."""
    env = environment_for(agent.base_dir, os.environ, agent.config)
    config = expand(dict(agent.config), env)
    if agent.kind != "command" or config.get("shell"):
        raise AgentevalError(
            f"agent {agent.name!r} is not a program that can be recorded",
            where=str(agent.file),
            fix="name an agent of kind `command` without `shell`",
        )
    words = argv_of(config["command"])
    if asks_in_words(config["command"]):
        raise AgentevalError(
            f"the command of agent {agent.name!r} has `{{{{prompt}}}}`, and there is no test here to fill it in",
            where=str(agent.file),
            fix="record its command as you type it: `agenteval record -- PROGRAM …`",
        )
    if arguments and launched(words) is None:
        raise AgentevalError(
            f"agent {agent.name!r} accepts no arguments here: its command does not name the script that "
            f"{words[0]} runs",
            where=str(agent.file),
            fix="write the script into the agent's `command`",
        )
    permission = check_agents([agent])
    own = {str(key): str(value) for key, value in (config.get("env") or {}).items()}
    env = {**env, **own}
    # From here on for arguments: a caller without a terminal, such as an editor, must not start a file that nobody
    # trusted.
    folder = folder_of(str(config.get("cwd", ".")), agent.base_dir, permission.trusted)
    for file in _outside(arguments, folder, repository_of(agent.base_dir)):
        check_use(Use(file.parent, (f"command: {program_words((*words, *arguments))}",)))
    program = Program((*words, *arguments), folder, env, upstreams(env), max_cost=max_cost, reads=False, stdout=_STDERR)
    return program, permission


def _outside(arguments: Sequence[str], folder: Path, repository: Path) -> Iterator[Path]:
    """The files out of the repository that arguments name: the program could run them."""
    for argument in arguments:
        words = (argument, argument.lstrip("@"), *_SEPARATORS.split(argument))
        for word in dict.fromkeys(words):
            try:
                file = (folder / Path(word).expanduser()).resolve()
                if word and file.is_file() and not file.is_relative_to(repository):
                    yield file
            except (OSError, RuntimeError, ValueError):
                continue


async def record(
    program: Program,
    permission: Permission,
    *,
    answers: Answers | None = None,
    journal: Journal | None = None,
    paid: PaidAnswers | None = None,
    live: LiveRecording | None = None,
) -> Recording:
    """Run a program to its end behind the proxy. `answers` replaces the program's cassette. `journal` gets the servers'
    answers, and `paid` has the answers from before the recording was cut off. The watchers of `live` see the run, and
    can stop it. Raises `AgentevalError` if the program can't be started, or if the port is not free."""
    if answers is None and program.cassette is not None:
        answers = Playback(program.cassette, system=program.system)
    # What a cassette's journal keeps, or a recording answers, need not be kept once more.
    asks = journal is None and (answers is None or (program.cassette is not None and program.on_miss == "live"))
    unfinished = UnfinishedRecording(_what(program), program.varies) if asks else None
    keeping = journal or unfinished
    session = Session(
        answers=answers,
        on_miss=program.on_miss,
        keys=keys_of(program.env),
        cost=prices(),
        max_cost=program.max_cost,
        pace=program.pace,
        keep=None if keeping is None else keeping.add,
        paid=paid if unfinished is None else unfinished.paid,
    )
    started_ms, began = now_ms(), time.perf_counter()
    # The program's own repository, where its command names a file: it may be started from anywhere.
    folder = agent_folder({"command": list(program.argv)}, program.cwd) or program.cwd
    commits = CommitReading(places_of((), [folder]))
    with shimmed(program.mcp_config, program.argv, program.cwd) as argv:
        running = run_program(
            argv,
            session,
            upstreams=program.upstreams,
            cwd=program.cwd,
            env=program.env,
            permission=permission,
            port=program.port,
            reads=program.reads,
            input_data=program.given,
            stdout=program.stdout,
        )
        code = await (running if live is None else _watched(running, session, live))
    took = (time.perf_counter() - began) * 1000
    exchanges = session.exchanges()
    return Recording(
        exit_code=code,
        exchanges=exchanges,
        transcript=_transcript(exchanges, session, code, took),
        duration_ms=took,
        started_ms=started_ms,
        live=session.live_requests,
        went_live=session.went_live,
        spent=session.spent,
        misses=tuple(session.misses),
        missed_at=session.missed_at,
        unpriced=tuple(sorted(session.unpriced)),
        uncounted=dict(session.uncounted),
        volatile=program.varies,
        continued=session.continued,
        unfinished=unfinished,
        commits=await asyncio.to_thread(commits.result, COMMITS_S),
    )


async def _watched(running: Coroutine[Any, Any, int], session: Session, live: LiveRecording) -> int:
    """Shows the program's run, and returns its exit code. Returns `STOPPED` if a watcher or a signal to this process
    ended it first; then all processes that it started have ended, too."""

    async def show() -> None:
        async for transcript in transcripts(session):
            live.show(transcript)

    program = asyncio.ensure_future(running)
    stop, showing = asyncio.ensure_future(live.stopped.wait()), asyncio.ensure_future(show())
    loop, handled = asyncio.get_running_loop(), list[signal.Signals]()
    with suppress(NotImplementedError, RuntimeError, ValueError):  # not the main thread: its owner has the signals
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # as of nohup
                loop.add_signal_handler(number, live.stopped.set)
                handled.append(number)
    try:
        await asyncio.wait((program, stop), return_when=asyncio.FIRST_COMPLETED)
        # Cancelled, it ends all that it started before it is done.
        if not program.done():
            program.cancel()
            await asyncio.wait((program,))
            return STOPPED
        return program.result()
    finally:
        for number in handled:
            loop.remove_signal_handler(number)
        for task in (program, stop, showing):
            task.cancel()
        await asyncio.gather(program, stop, showing, return_exceptions=True)


def _what(program: Program) -> list[object]:
    """The properties that a recording must share with an earlier one to continue it."""
    tape = None if program.cassette is None else list(documents(program.cassette))
    return [list(program.argv), str(program.cwd), dict(program.upstreams), program.system, tape]


def _stored(recording: Recording) -> None:
    """Note that the history has the recording's answers, so `replay` can use them. If the recording was cut off, the
    same command asks for the rest."""
    if recording.unfinished is not None:
        if recording.cut_off:
            recording.unfinished.leave()
        else:
            recording.unfinished.done()


async def calibrated(program: Program, permission: Permission, first: Recording) -> Recording:
    """The recording with its volatile parts. Runs the program again with the recorded answers, without asking a server;
    the parts of requests that differ are volatile. Raises `AgentevalError` if the program sends quite different
    requests."""
    answers = OrderedPlayback(first.exchanges)
    # Answers come in the order of the recording, whatever varies in the requests: so the parts that vary show.
    again = await record(replace(program, on_miss="error"), permission, answers=answers)
    if again.misses:
        raise AgentevalError(
            f"the program sent different requests the second time: {again.misses[0].description}",
            fix="--calibrate needs a program that sends the same requests when it gets the same answers",
        )
    return replace(first, volatile=volatile_parts(answers.pairs))


def keep_cassette(path: Path, before: Cassette | None, recording: Recording) -> bool:
    """Write a recording into a cassette. Adds the servers' answers to the exchanges from `before`, and to those that
    other processes have added since. Returns whether there was anything to write. Raises `AgentevalError`."""
    new = tuple([exchange for exchange in recording.cassette.exchanges if exchange.live])
    if not new and (before is None or path.exists()):
        return False
    # Appended, and not written anew: another process may have added its own answers since.
    if before is not None and path.exists():
        append(path, new)
        return True
    cassette = Cassette(volatile=recording.volatile) if before is None else before
    write(path, replace(cassette, exchanges=(*cassette.exchanges, *new)))
    return True


def prices() -> Cost:
    """What tokens cost, by the user's prices and the bundled ones."""
    return Prices.load(config_dir()).cost


def plan_for(
    loaded: Sequence[LoadedSuite],
    test: str,
    program: Program,
    *,
    user_agents: Mapping[str, AgentConfig],
    judge: str | None = None,
    trust: bool = False,
) -> Plan:
    """The one run of a test, with the program as its agent: to be permitted before it is graded.

    Raises `AgentevalError` where there is no such test, or it is more than one run.
    """
    name = program.name
    agents = {**user_agents, name: AgentConfig.model_validate(agent_config(program))}
    options = PlanOptions(tests=(test,), agent=name, variation=DEFAULT, repeat=1, judge=judge, trust=trust)
    plan = make_untrusted_plan(loaded, options, user_agents=agents)
    if len(plan.runs) != 1:
        names = listed(list(dict.fromkeys(f"{run.ref.test} {run.ref.row_label}".strip() for run in plan.runs)), 4)
        raise AgentevalError(
            f"a recording is one run, but these are {len(plan.runs)}: {names}",
            fix="name a test without a dataset, as ID or FILE::ID",
        )
    return replace(plan, options={**plan.options, **_options(program)})


def _options(program: Program) -> dict[str, str]:
    """The options of an execution that records a program."""
    return {PROGRAM: shlex.join(program.written)}


def live_recording(
    program: Program, plan: Plan | None, *, of: RunRow | None = None, handshake: Handshake | None = None
) -> LiveRecording:
    """A recording, for those who watch; its `ref` and `execution` say how it will be stored."""
    if plan is not None:
        return LiveRecording(plan.execution_id, plan.title, plan.runs[0].ref, handshake=handshake)
    ref = RunRef(
        new_id(),
        test=program.test,
        test_name=program.name,
        variation="",
        row=0,
        repetition=1,
        agent=program.name,
        suite=UNGRADED,
    )
    if of is None:
        return LiveRecording(new_id(), f"{program.name} (recorded)", ref, handshake=handshake)
    ref = replace(ref, test=of.test_id, test_name=of.test_name, suite=of.suite_name)
    return LiveRecording(new_id(), _title(of), ref, handshake=handshake)


async def store_graded(store: Store, plan: Plan, recording: Recording, max_cost: float | None) -> GradedRun:
    """Grade a recording with the criteria of the plan's run, and keep it as that run. Judges may cost what the program
    has left of `max_cost` US dollars."""
    run = plan.runs[0]
    judged, replies = GradedRun.nothing("cancelled", "the recording was stopped"), None
    # Begun before it is graded: replies of judges are kept with a run that is there.
    begin(store, plan, recording.started_ms).result()
    # Read while the program ran: the commit is that of its start.
    if recording.commits:
        store.write(KeepCommits(plan.execution_id, recording.commits))
    if recording.exit_code != STOPPED:
        limit = None if max_cost is None else SpendingLimit(max_cost, recording.spent, recording.unknown_cost)
        pool = GradingPool(plan, store, dict(os.environ), 0.5, limit=limit)
        if pool.asks(run) and recording.transcript.error is None:
            # Judges take their time: what the program did is not lost meanwhile.
            store.run_ended(_ended(run.ref.run, recording, GradedRun.nothing("skipped", "not graded yet"))).result()
        try:
            judged, replies = await pool.judge(run, recording.transcript)
        finally:
            await pool.close()
    # Before the run's end: a result is never in the history without what it rests on.
    if replies:
        store.keep_replies(run.ref.run, replies)
    store.run_ended(_ended(run.ref.run, recording, judged)).result()
    store.end_execution(plan.execution_id, _status(recording)).result()
    _stored(recording)
    return judged


def store_ungraded(
    store: Store,
    program: Program,
    recording: Recording,
    *,
    origin: ForkOrigin | None = None,
    of: RunRow | None = None,
    ids: tuple[str, str] | None = None,
) -> str:
    """Keep a recording that nothing grades; gives the id of its execution. Its test is called after the program, or is
    that of the run that it is a replay `of`, with the `origin`. `ids`: of the execution and of the run."""
    execution, run = ids or (new_id(), new_id())
    planned = PlannedRun(
        id=run,
        execution_id=execution,
        position=0,
        suite_key=str(program.cwd / UNGRADED),
        suite_name=UNGRADED,
        test_id=program.test,
        test_name=on_one_line(recording.prompt, _NAME) or program.name,
        agent=program.name,
        prompt=recording.prompt,
    )
    if of is not None:
        planned = replace(
            planned,
            suite_key=of.suite_key,
            suite_name=of.suite_name,
            test_id=of.test_id,
            test_name=of.test_name,
            fork_of=of.id,
            fork="" if origin is None else encode_origin(origin),
        )
    record = ExecutionRecord(
        id=execution,
        title=f"{program.name} (recorded)" if of is None else _title(of),
        kind="import" if of is None else "fork",
        source=program.name,
        suite_keys=(planned.suite_key,),
        started_ms=recording.started_ms,
        options=_options(program),
        commits=recording.commits,
    )
    store.begin_execution(record, [planned]).result()
    store.run_ended(_ended(run, recording, ungraded(recording))).result()
    store.end_execution(execution, _status(recording)).result()
    _stored(recording)
    return execution


def ungraded(recording: Recording) -> GradedRun:
    """What is said of a recording that nothing grades."""
    error = recording.transcript.error
    if error is None:
        return GradedRun.nothing("skipped", "not graded yet")
    return GradedRun.nothing("cancelled" if recording.exit_code == STOPPED else "error", error.message)


def _status(recording: Recording) -> str:
    return "cancelled" if recording.exit_code == STOPPED else "finished"


# A run that is replayed: from its recording up to the first request that is another one, live from there.


def _first_plan(store: Store, row: RunRow, user_agents: Mapping[str, AgentConfig]) -> StoredPlan:
    """How the program was planned when it was recorded first: a replay of it was planned from its `Program`. Raises
    `AgentevalError`."""
    return stored_plan(store, store.run(row.recording) if row.recording else row, user_agents=user_agents)


def program_text(store: Store, row: RunRow) -> str:
    """The command of the program that was recorded, as the app's sheets take it: with `${NAME}` for keys. "" if it is
    unknown."""
    try:
        stored = _first_plan(store, row, {})
        prompt = next((message.content for message in reversed(stored.run.messages) if message.role == "user"), "")
        variables = {**stored.run.variables, "prompt": prompt.replace("${", "$${")}
        return shlex.join(argv_for(stored.run.agent.config["command"], False, variables))
    except (AgentevalError, KeyError):
        return str(store.execution(row.execution_id).options.get(PROGRAM, ""))  # nothing grades it


def input_told(store: Store, row: RunRow) -> bytes | None:
    """What a run's program read: its task, where a suite's agent started it with one; None: not known, or it had a
    terminal."""
    try:
        run = _first_plan(store, row, {}).run
        config = expanded(run.agent, environment_for(run.agent.base_dir, config=run.agent.config))
        if config.get("kind") != "command" or run.turns:
            return None
        options = CommandOptions.model_validate(config)
    except (AgentevalError, ValueError):
        return None
    if _is_recorded(run.agent):
        return None
    return input_of(run.request(config), options)


def with_input(program: Program, store: Store, row: RunRow) -> Program:
    """The program of a replay, which reads what the run's program read: a task of a suite comes that way. What a pipe
    or a file brings comes first."""
    piped = program.reads and not _is_device(0)
    return program if piped else replace(program, given=input_told(store, row))


def _is_device(descriptor: int) -> bool:
    """Whether nothing was piped into it: it is a terminal, /dev/null, or closed."""
    try:
        return stat.S_ISCHR(os.fstat(descriptor).st_mode)
    except OSError:
        return True


class Surroundings(Struct, frozen=True):
    """Where a run's program ran: its `folder`, and the variables that its suite gave it, by their names. `agent`: the
    suite's agent; None: `agenteval record` started it."""

    folder: Path
    variables: Mapping[str, str] = {}
    agent: AgentPlan | None = None

    def around(self, program: Program) -> Program:
        """The program, started there."""
        if self.agent is None:
            return _in_environment(program, self.folder)
        env = {**environment_for(self.agent.base_dir, os.environ, self.agent.config), **self.variables}
        servers = upstreams(env, program.given_upstreams)
        # `replay_plan` asks about an agent of a suite, and the `.env` that is for it.
        return replace(program, cwd=self.folder, env=env, upstreams=servers, brought=EnvFiles())


def surroundings_of(store: Store, row: RunRow, user_agents: Mapping[str, AgentConfig]) -> Surroundings | None:
    """Where the program of a recorded run ran; None: it is not known, or not there any more. Nothing is started there
    without the permission that `replay_plan` asks for. Raises `AgentevalError` where a variable has no value."""
    folder: Path | None = None
    if row.suite_name == UNGRADED:
        folder = Path(row.suite_key).parent
        return Surroundings(folder) if folder.is_dir() else None
    try:
        stored = _first_plan(store, row, user_agents)
    except AgentevalError:
        return None
    agent = stored.run.agent
    if agent.config.get("kind") != "command" or _is_recorded(agent):
        return None
    config = expanded(agent, environment_for(agent.base_dir, os.environ, agent.config))
    folder = folder_of(str(config.get("cwd", ".")), agent.base_dir, trusted=True)
    own = {str(key): str(value) for key, value in (config.get("env") or {}).items()}
    return Surroundings(folder, own, agent) if folder.is_dir() else None


def _is_recorded(agent: AgentPlan) -> bool:
    """Whether `agenteval record` made this agent from a program."""
    return agent.name == _name(argv_of(agent.config["command"]))


def replay_plan(
    store: Store,
    row: RunRow,
    program: Program,
    *,
    user_agents: Mapping[str, AgentConfig],
    trust: bool = False,
    around: Surroundings | None = None,
) -> Plan | None:
    """The plan of a replay, which is graded as the run was, permitted; None: nothing grades that run. `around`: where
    the program is started, on the word of who wrote that.

    Raises `NotTrustedError` for functions of a suite that was not trusted, and for what it says of surroundings.
    """
    try:
        stored = _first_plan(store, row, user_agents)
    except AgentevalError:
        return None  # it came from elsewhere, or no test was named when it was recorded
    config = agent_config(program)
    own = {**stored.own, program.name: AgentConfig.model_validate(config)}
    base_dir = config_dir()
    if around is not None and (suites := around.agent) is not None:
        config = {**config, **{name: suites.config[name] for name in ("cwd", "env") if name in suites.config}}
        base_dir = suites.base_dir
        # The user's own agent: its variables and folder are the user's word, and need no trust.
        mine = stored.own.get(suites.name)
        if mine is not None and mine.as_dict() == suites.config:
            own[program.name] = AgentConfig.model_validate(config)
    agent = AgentPlan(program.name, config, base_dir, content_hash([program.name, config, str(base_dir)]))
    run = replace(
        stored.run,
        ref=replace(stored.run.ref, run=new_id(), agent=program.name, gate=None),
        agent=agent,
        turns=(),
        stop=None,
    )
    plan = Plan(
        execution_id=new_id(),
        title=_title(row),
        runs=(run,),
        concurrency=1,
        source=program.name,
        options={"fork_of": row.id, **_options(program)},
        respondents=stored.respondents,
        trust=trust,
        kind="fork",
    )
    return replace(plan, permission=check_trust(plan, own=own, foreign=stored.foreign))


def origin_of(row: RunRow, recording: Recording) -> ForkOrigin:
    """Where a replay left its recording: the last message of the run that was told again."""
    # Of the replay's own requests: what the recording has of errors and of retries is not asked for again.
    messages = transcript_of(recording.exchanges[: recording.missed_at]).messages
    return ForkOrigin(row.id, max(0, len(messages) - 1), purpose="tape")


def requests_in(tape: Cassette) -> int:
    """How many requests of models a recording has answers to, with which a program could go on."""
    return sum(not is_mcp(exchange.question) and exchange.answer.succeeded for exchange in tape.exchanges)


def as_fork(plan: Plan, origin: ForkOrigin) -> Plan:
    """The plan of a replay, now that it is known where it left the recording."""
    return replace(plan, runs=tuple([replace(run, fork=origin) for run in plan.runs]))


def _title(row: RunRow) -> str:
    return f"replay of {row.test_name or row.test_id}, run {short_id(row.id)}"


def _ended(run: str, recording: Recording, judged: GradedRun) -> RunEnded:
    return RunEnded(
        run_id=run,
        status=judged.status,
        score=judged.score,
        started_ms=recording.started_ms,
        duration_ms=recording.duration_ms,
        attempts=1,
        transcript=recording.transcript,
        results=judged.results,
        warnings=judged.warnings,
        why=judged.why,
        tape=tuple(documents(recording.cassette)) if recording.cassette.exchanges else (),
    )


def _transcript(exchanges: Sequence[Exchange], session: Session, code: int, took_ms: float) -> Transcript:
    """What the program did, with its cost, and why it is an error where it is one."""
    transcript = transcript_of(exchanges)
    # What came from a cassette was paid for when it was recorded.
    usage = replace(transcript.usage, cost=session.known_cost if exchanges else None)
    error: RunError | None = None
    if session.misses and session.missed_at is not None and not session.went_live:
        message = session.misses[0].description
        error = RunError.told("cassette", message, "record it again, or give --live-after-miss")
    elif code == STOPPED:
        error = RunError("cancelled", "the recording was stopped", code=ErrorCode.CANCELLED)
    elif code != 0:
        message = f"the program ended with exit code {code}" if code > 0 else f"the program was ended by signal {-code}"
        error = RunError("program", message, "run it by hand to see why", ErrorCode.EXIT, {"status": code})
    notes = (*transcript.notes, *session.notes)
    if not exchanges:
        notes = (*notes, NOTHING_SEEN)
    return replace(
        transcript, usage=usage, error=error, notes=notes, timing=replace(transcript.timing, total_ms=took_ms)
    )
