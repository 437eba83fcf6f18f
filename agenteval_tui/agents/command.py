"""The kind `command`: a program in any language, asked on its standard input, heard on its standard output."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from pathlib import Path

from agenteval_tui.agents.command_options import CommandOptions
from agenteval_tui.agents.command_output import OutputError, OutputReader
from agenteval_tui.agents.interface import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    CheckStep,
    Done,
    Failed,
    Logged,
    Noted,
    Prepared,
    UsageReported,
)
from agenteval_tui.agents.options import read_options
from agenteval_tui.agents.programs.options import argv_of, folder_of
from agenteval_tui.agents.programs.ping import ping
from agenteval_tui.agents.programs.process import GRACE_S, Program, find_program, start
from agenteval_tui.agents.programs.request import prompt_of, request_document
from agenteval_tui.agents.programs.words import how_it_ended, last_words, remedy_for, without_secrets
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.transcripts.error_codes import ErrorCode
from agenteval_tui.transcripts.model import RunError

_NO_ANSWER = (
    "print the answer on standard output, and flush it; for an empty answer on purpose print an empty line, "
    'or the event {"type": "text", "text": ""}'
)


class CommandAgent:
    """Runs the program once for each request, in a process group of its own that never outlives the run.

    Failures are `Failed` events of the kinds program (it can't be started, or ended with an exit code other than 0),
    protocol (its events are none), timeout, bad_request; and whatever kind the program's own `error` event names.
    """

    options_model = CommandOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(CommandOptions, setup.name, setup.config)
        folder_of(self._options.cwd, setup.base_dir, setup.trusted)

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One process: its events as it writes them."""
        options, began = self._options, time.perf_counter()
        try:
            if request.config and request.config != self._setup.config:
                options = read_options(CommandOptions, self._setup.name, request.config)
            program = await self._start(options)
        except AgentevalError as error:
            yield Failed(RunError.told("program", error.what, error.mend))
            return
        async with program:
            # What it does then is its own business, unless it says with `ready` that it was still starting.
            yield Prepared("start of the process", (time.perf_counter() - began) * 1000)
            program.write(_input(request, options))
            program.close_stdin()
            async with aclosing(self._listen(program, options)) as events:
                async for event in events:
                    if isinstance(event, Done | Failed) and program.stderr:
                        yield Logged(without_secrets(program.stderr, self._env(options)))
                    yield event
                    if isinstance(event, Done):
                        await program.exited(GRACE_S)  # it may have things to put away

    async def check(self, thorough: bool = False) -> CheckReport:
        """Is the program there, and may it be executed? `thorough` asks it for an answer."""
        began = time.perf_counter()
        options = self._options
        argv = argv_of(options.command, options.shell)
        try:
            found = find_program(argv[0], self._folder(options), self._env(options))
        except AgentevalError as error:
            steps = (CheckStep("reachable", False, error.what),)
            return CheckReport(False, error.what, mend=error.mend, steps=steps)
        took = (time.perf_counter() - began) * 1000
        reachable = CheckStep("reachable", True, f"{found} is there and may be executed", took)
        if not thorough:
            return CheckReport(True, reachable.message, took, steps=(reachable,))
        return await ping(self, reachable)

    async def close(self) -> None:
        """Nothing is open between runs."""

    async def _start(self, options: CommandOptions) -> Program:
        argv = argv_of(options.command, options.shell)
        return await start(argv, cwd=self._folder(options), env=self._env(options), permission=self._setup.permission)

    def _folder(self, options: CommandOptions) -> Path:
        return folder_of(options.cwd, self._setup.base_dir, self._setup.trusted)

    def _env(self, options: CommandOptions) -> dict[str, str]:
        # A Python program would keep its events in a buffer until it ends.
        return {"PYTHONUNBUFFERED": "1", **self._setup.env, **options.env}

    async def _listen(self, program: Program, options: CommandOptions) -> AsyncGenerator[AgentEvent, None]:
        reader = OutputReader(options.output, int(options.max_reply_mb * 1_000_000))
        name = argv_of(options.command, options.shell)[0] if not options.shell else "the command"
        wait_s, what = options.timeouts.first_token, "gave no sign"
        spoke = False
        try:
            while True:
                async with asyncio.timeout(wait_s):
                    data = await program.read()
                for event in reader.feed(data) if data else reader.end():
                    spoke = spoke or not isinstance(event, UsageReported | Prepared | Noted)
                    yield event
                if reader.done:
                    return
                if not data:
                    break
                wait_s, what = options.timeouts.silence, "was silent"
            if not await program.exited(wait_s):
                raise TimeoutError
        except TimeoutError:
            mend = "raise `timeouts`, or look at what it waits for"
            said = self._said(f"{name} {what} for {wait_s:g} s", program, options)
            yield Failed(RunError.told("timeout", said, mend, ErrorCode.SILENCE))
            return
        except OutputError as error:
            # How it ended says more than half a line at its end.
            broken = error.cut_off and await program.exited(GRACE_S) and program.returncode != 0
            if not broken:
                said = self._said(f"{name}: {error}", program, options)
                yield Failed(RunError.told("protocol", said, error.mend))
                return
        if program.returncode != 0:
            said = self._said(f"{name} {how_it_ended(program.returncode)}", program, options)
            mend = remedy_for(program.returncode, "run it by hand with the same input, see docs/agents.md")
            yield Failed(RunError.told("program", said, mend, ErrorCode.EXIT, status=program.returncode))
        elif spoke:
            yield Done()
        else:
            said = self._said(f"{name} printed {'nothing' if not reader.read else 'no answer'}", program, options)
            yield Failed(RunError.told("protocol", said, _NO_ANSWER, ErrorCode.NO_ANSWER))

    def _said(self, sentence: str, program: Program, options: CommandOptions) -> str:
        env = self._env(options)
        words = last_words(program.stderr, env)
        return without_secrets(sentence, env) + (f": {words}" if words else "")


def _input(request: AgentRequest, options: CommandOptions) -> bytes:
    if options.input == "text":
        return prompt_of(request).encode("utf-8", "replace")
    document = request_document(request, options.settings)
    return json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
