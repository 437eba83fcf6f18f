"""The kind `python`: a function of the user's, in a child process."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    Failed,
    Prepared,
    Preparing,
    Printed,
    ToolCallFinished,
)
from agenteval_tui.agents.options import options_for, read_options
from agenteval_tui.agents.process.child_pool import ReusedHosts
from agenteval_tui.agents.process.child_process import STDERR_KEPT, SUITE_DIR, WORKDIR
from agenteval_tui.agents.process.environment_messages import remedy
from agenteval_tui.agents.process.errors import (
    BREAKPOINT_REMEDY,
    BREAKPOINTS,
    exit_description,
    remedy_for,
    signal_name,
    silence_error,
    traceback_without_secrets,
    with_last_words,
)
from agenteval_tui.agents.process.health_check import check_answer, unreachable
from agenteval_tui.agents.process.options import PythonOptions, places_of
from agenteval_tui.agents.process.printed_output import printed_piece, printed_text
from agenteval_tui.agents.process.project_environment import ProjectEnvironment, project_environment
from agenteval_tui.agents.process.protocol import EventError, EventReader, request_document
from agenteval_tui.agents.process.python_host import CallError, HostError, HostProcess, PythonHost, RaisedError
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.python_start import StartWatch, held_error
from agenteval_tui.agents.process.python_tree import Lease, Root, Tree
from agenteval_tui.agents.process.state_mapping import ToldText, events_of_state, mapping_of
from agenteval_tui.agents.process.traceback_text import frames_in_dump
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.traceback import RaisedException, Traceback, place_words

_FATAL = frozenset((signal.SIGSEGV, signal.SIGFPE, signal.SIGABRT, signal.SIGBUS, signal.SIGILL))
"""The signals at which `faulthandler` writes where the process is."""
_PRINTED_AT_IMPORT = 16_000  # characters
_LOOK = "look at what ends its process: `os._exit`, `os.closerange`, a crash of a native library"
_REMEDIES = {
    **dict.fromkeys(BREAKPOINTS, BREAKPOINT_REMEDY),
    "ImportTimeout": "find out what its module does when it is imported, and move that into the function",
    "StartTimeout": "find out what it waits for: the agent and its context are made before it is asked",
    "SystemExit": (
        'find out why it ends the program; what a module does as a program belongs below `if __name__ == "__main__":`'
    ),
    "EOFError": "standard input is empty in a run: take what is asked for from the prompt or `settings`",
}
"""What to do about an exception, by its class."""


class PythonAgent:
    """Calls the function once for each request.

    Each request has a process of its own, forked from one that has made the imports (`python_tree`), so that runs can't
    see what others left behind. With `reuse` a process takes the next run when one ended well (`child_pool`). There are
    never more processes than runs at once. Failures are of the kinds program (the process, or what the function
    raised), protocol, timeout, bad_request.
    """

    options_model = PythonOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(PythonOptions, setup.name, setup.config)
        # Refuses a folder that the suite may not use before the first run, and not in each.
        self._places(self._options)
        # As the agent was made: a process that was prepared with these can serve each run that has no others (`_host`).
        self._env = {**setup.env, **self._options.env}
        self._roots: dict[tuple[Any, ...], Root] = {}
        self._lease: Lease | None = None
        self._reused: dict[tuple[Any, ...], ReusedHosts] = {}
        self._closed = False
        self._read: frozenset[str] = frozenset()
        self._asked_past: dict[str, tuple[str, ...]] = {}

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One call of the function: its events as it gives them."""
        began = time.perf_counter()
        # Before the imports: the first run waits for them, and should not look as if it had hung.
        yield Preparing()
        options = self._options
        try:
            options = options_for(request, self._setup, options)
            reused = self._reused_hosts(options) if options.reuse else None
            host = await (self._host(options) if reused is None else reused.take())
        except AgentevalError as error:
            yield Failed(RunError.told("program", error.problem, error.fix))
            return
        except CallError as error:
            if error.printed.strip():
                yield self._printed_at_import(error.printed, options)
            yield self._failed(error, error.program, options)
            return
        # Only a process whose run ended well may take another one: after an error or a time limit its state is not
        # known. But after an error, too, it may put things away: what watches an agent sends its traces then.
        well = ended = False
        try:
            async with aclosing(self._call(host, request, options, began)) as events:
                async for event in events:
                    well, ended = isinstance(event, Done), isinstance(event, (Done, Failed))
                    if reused is not None and isinstance(event, Prepared):
                        reused.ready(host)
                    yield event
        finally:
            if reused is None:
                await host.end(politely=ended)
            elif well and host.alive and not self._closed:
                reused.give_back(host)
            else:
                await reused.end(host, politely=ended)

    async def check(self, thorough: bool = False) -> CheckReport:
        """Is the function there? Its module is imported for that. `thorough` asks it for an answer."""
        options, began = self._options, time.perf_counter()
        try:
            tree = self._tree(options)
            # A check is asked for to see what was just saved: processes that served runs have the code of before.
            tree.look_again()
            await self._end_free()
            for outcome in await tree.outcomes():
                if "raised" in outcome:
                    raise RaisedError.of(outcome)
        except AgentevalError as error:
            return unreachable(error.problem, error.fix)
        except CallError as error:
            refused = isinstance(error, RaisedError) and bool(error.clues.get("refused"))
            return unreachable(*self._sentence_and_fix(error, error.program, options), key_refused=refused)
        return await check_answer(self, f"{options.callable} is there", began, thorough=thorough)

    async def close(self) -> None:
        """End the processes that wait for another run."""
        # Before the free ones are ended: a run that ends meanwhile must not give its process back.
        self._closed = True
        await self._end_free()
        if self._lease is not None:
            await self._lease.close()
            self._lease = None

    async def _end_free(self) -> None:
        await asyncio.gather(*(hosts.close() for hosts in self._reused.values()))

    @property
    def files(self) -> frozenset[str]:
        """The files of the project that its processes have imported or read by now."""
        trees = () if self._lease is None else self._lease.used
        return self._read.union(*(tree.files for tree in trees))

    def asked_past(self, run: str) -> tuple[str, ...]:
        """The servers of models that a run asked past the proxy that it was led to; once."""
        return self._asked_past.pop(run, ())

    def _reused_hosts(self, options: PythonOptions) -> ReusedHosts:
        key = (options.callable, options.python, tuple(options.path), tuple(sorted(options.env.items())))
        hosts = self._reused.get(key)
        if hosts is None:
            hosts = self._reused[key] = ReusedHosts(lambda: self._host(options))
        return hosts

    async def _host(self, options: PythonOptions) -> PythonHost:
        # A variation may set variables. Only those that differ cost the run its shared imports.
        more = {name: value for name, value in options.env.items() if self._env.get(name) != value}
        return await self._tree(options).host(more, ahead=not options.reuse)

    def _tree(self, options: PythonOptions) -> Tree:
        key = (options.callable, options.python, tuple(options.path))
        root = self._roots.get(key)
        if root is None:
            steps = (("find agent", options.callable),)
            root = self._roots[key] = Root.of(self._project(options), self._env, steps)
        if self._lease is None:
            self._lease = Lease()
        return self._lease.tree(root, self._setup.permission)

    def _project(self, options: PythonOptions) -> ProjectEnvironment:
        return project_environment(
            self._setup.base_dir,
            targets=(options.callable,),
            interpreter=options.python,
            path=self._places(options),
            config=self._setup.config,
        )

    def _places(self, options: PythonOptions) -> list[Path]:
        return places_of(options.callable, options.path, self._setup.base_dir, self._setup.trusted)

    def _environment(self, options: PythonOptions) -> dict[str, str]:
        return {**self._setup.env, **options.env}

    async def _call(
        self, host: PythonHost, request: AgentRequest, options: PythonOptions, began: float
    ) -> AsyncGenerator[AgentEvent, None]:
        reader, loop = EventReader(), asyncio.get_running_loop()
        document = request_document(request, options.settings)
        # With `reuse`, the process has printed for earlier runs, too.
        printed_before = host.program.written.size
        # Its start takes its time; the run's own limit holds for what comes then.
        wait_s: float | None = None
        what = ""
        limit = int(options.max_reply_mb * 1_000_000)
        done = Done()
        told_text = ToldText()
        words = ""  # the last that its code printed and logged
        try:
            how = mapping_of(options, document)
            if request.recorded is not None and request.recorded.tools is not None:
                how["recorded_tools"] = [
                    {"id": call.id, "name": call.name, "arguments": call.arguments, "result": call.result}
                    for call in request.recorded.tools
                ]
        except AgentevalError as error:
            yield Failed(RunError.told("bad_request", error.what, error.fix))
            return
        place = {} if request.workdir is None else self._place(request.workdir)
        if request.proxy:
            place["proxy"] = request.proxy
        asking = host.events(
            "agent", options.callable, limit=limit, request=document, how=how, last=not options.reuse, **place
        )
        watch = StartWatch(host.program)
        try:
            async with aclosing(asking) as answers:
                while True:
                    due = None if wait_s is None else loop.time() + wait_s
                    while True:
                        # Not around a `yield`: a limit that ends while the reader of these events has the word would
                        # cancel the reader.
                        async with asyncio.timeout_at(due):
                            answer = await anext(answers)
                        if "output" not in answer:
                            break
                        # What it prints is no sign of the agent itself: it has no more time for that.
                        words = (words + printed_text(answer["output"]))[-STDERR_KEPT:]
                        if (piece := printed_piece(answer["output"], self._environment(options))) is not None:
                            paused = loop.time()
                            yield piece
                            due = None if due is None else due + loop.time() - paused
                    if "returned" in answer:
                        self._learn(answer, request, options)
                        break
                    if "prepared" in answer:
                        watch.close()
                        yield Prepared("start of the process", (time.perf_counter() - began) * 1000)
                        if host.printed.strip():
                            yield self._printed_at_import(host.printed, options)
                        wait_s, what = options.timeouts.first_token, "gave no sign"
                        continue
                    if reader.ended:
                        continue  # it said that it was done; its process is free once it returns
                    mapped = (
                        events_of_state(answer["state"], options, document, told_text.text) if "state" in answer else ()
                    )
                    for written in [answer["event"]] if "event" in answer else mapped:
                        told_text.add(written)
                        for event in reader.read(written):
                            if isinstance(event, ToolCallFinished) and event.traceback is not None:
                                clean = traceback_without_secrets(event.traceback, self._environment(options))
                                event = replace(event, traceback=clean)
                            if isinstance(event, Done):
                                done = event
                                continue
                            yield event
                            if isinstance(event, Failed):
                                return
                    wait_s, what = options.timeouts.silence, "was silent"
            async for event in self._rest_of_output(host, printed_before, options):
                yield event
            yield done
        except TimeoutError:
            async for event in self._rest_of_output(host, printed_before, options):
                yield event
            sentence = f"{options.callable} {what} for {wait_s:g} s"
            words += host.program.written.text(printed_before)
            last_place = await self._last_place(host, request, options)
            sentence += place_words(last_place)
            silence = silence_error(with_last_words(sentence, words, self._environment(options)))
            yield Failed(replace(silence, traceback=last_place))
        except asyncio.CancelledError:
            # One that is made again may end at a request that has no answer: what it read before is known only now.
            if request.cut_off.late or request.recorded is not None:
                last_place = await self._last_place(host, request, options)
                if request.cut_off.late:
                    request.cut_off.traceback = last_place
            raise
        except AgentevalError as error:
            yield Failed(RunError.told("protocol", error.what, error.fix))
        except EventError as error:
            fix = "`agenteval docs agents` says what a function may return"
            sentence = f"{options.callable} gave something that is not an event: {error}"
            yield Failed(RunError.told("protocol", sentence, fix))
        except CallError as error:
            async for event in self._rest_of_output(host, printed_before, options):
                yield event
            written = host.program.written.text(printed_before)
            failure: CallError = error
            self._learn(error.seen, request, options)
            if watch.had_to_kill:
                failure = held_error("StartTimeout", "it was not made in time", written, self._setup.base_dir)
            yield self._failed(failure, host.program, options, words + written)
        finally:
            watch.close()

    def _learn(self, seen: Mapping[str, Any], request: AgentRequest, options: PythonOptions) -> None:
        """Take what the process has seen of a run (`python_child`)."""
        self._read = self._read.union(seen.get("files", ()))
        self._tree(options).learn(seen.get("late", ()), seen.get("new_modules", 0))
        if request.proxy and seen.get("asked_past"):
            self._asked_past[request.run] = tuple(seen["asked_past"])

    async def _last_place(self, host: PythonHost, request: AgentRequest, options: PythonOptions) -> Traceback | None:
        traceback, seen = await host.place(self._setup.base_dir)
        self._learn(seen, request, options)
        return traceback_without_secrets(traceback, self._environment(options))

    def _printed_at_import(self, text: str, options: PythonOptions) -> Printed:
        """The end of what the imports printed: each run continues from it."""
        return Printed("stderr", without_secrets(text, self._environment(options))[-_PRINTED_AT_IMPORT:])

    def _place(self, workdir: Path) -> dict[str, Any]:
        """Where the process works, with what says so in its environment."""
        return {"cwd": str(workdir), "env": {WORKDIR: str(workdir), SUITE_DIR: str(self._setup.base_dir)}}

    async def _rest_of_output(
        self, host: PythonHost, before: int, options: PythonOptions
    ) -> AsyncGenerator[AgentEvent, None]:
        """What was written behind Python's back, by libraries and other programs. `before`: bytes of earlier runs."""
        await asyncio.sleep(0)  # what was written before its last word is there to be read
        text = host.program.written.text(before)
        if text.strip():
            yield Printed("stderr", without_secrets(text, self._environment(options)))

    def _failed(
        self, error: CallError, program: HostProcess | None, options: PythonOptions, words: str | None = None
    ) -> Failed:
        sentence, fix = self._sentence_and_fix(error, program, options, words)
        env = self._environment(options)
        if isinstance(error, RaisedError):
            reduced = sentence if error.wrong else without_secrets(f"{options.callable} raised {error.reduced}", env)
            traceback = traceback_without_secrets(error.traceback, env)
            return Failed(RunError.raised(sentence, fix, reduced=reduced, traceback=traceback))
        crash, code = None, None if program is None else program.returncode
        if program is not None and code is not None and -code in _FATAL:
            frames = frames_in_dump(program.stderr, self._setup.base_dir, fatal=True)
            crash = Traceback((RaisedException(signal_name(code), frames=frames),)) if frames else None
        return Failed(replace(RunError.told("program", sentence, fix), traceback=traceback_without_secrets(crash, env)))

    def _sentence_and_fix(
        self, error: CallError, program: HostProcess | None, options: PythonOptions, words: str | None = None
    ) -> tuple[str, str]:
        """What is said of an error, and its remedy. `words`: what the run wrote, if known; else the process'."""
        env = self._environment(options)
        if isinstance(error, RaisedError):
            if error.wrong:
                return without_secrets(
                    str(error), env
                ), "`agenteval docs agents` says what may be named, and what it may give"
            sentence = f"{options.callable} raised {error}"
            fix = self._remedy(error, options)
            # The classes go from the most special to the most general, so that the nearest remedy wins.
            fix = next((_REMEDIES[kind] for kind in error.kinds if kind in _REMEDIES), fix)
            return without_secrets(sentence, env), fix
        if isinstance(error, HostError) and error.too_much:  # how its process ended is our doing
            return f"{options.callable} {error}", "give less, or raise `max_reply_mb`"
        code = None if program is None else program.returncode
        ended = str(error) if code is None else f"{error}, its process {exit_description(code)}"
        fix = remedy_for(code, _LOOK)
        if words is None:
            words = "" if program is None else program.stderr
        return with_last_words(f"{options.callable} {ended}", words, env), fix

    def _remedy(self, error: RaisedError, options: PythonOptions) -> str:
        try:
            return remedy(error.clues, self._project(options))
        except AgentevalError as problem:  # it changed meanwhile
            return problem.fix
