"""The kind `command`: a program in any language, asked on its standard input, heard on its standard output."""

from __future__ import annotations

import asyncio
import codecs
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    Failed,
    LogLine,
    Noted,
    Prepared,
    TextDelta,
    UsageReported,
)
from agenteval_tui.agents.options import options_for, prefix_refusal, read_options
from agenteval_tui.agents.process.child_process import (
    GRACE_S,
    SUITE_DIR,
    WORKDIR,
    LineSplitter,
    Program,
    find_program,
    found_in,
    start,
)
from agenteval_tui.agents.process.environment_messages import program_remedy
from agenteval_tui.agents.process.errors import (
    exit_description,
    is_only_noted,
    pending_question,
    remedy_for,
    silence_error,
    traceback_without_secrets,
    with_last_words,
)
from agenteval_tui.agents.process.health_check import check_answer, unreachable
from agenteval_tui.agents.process.node_report import NodePrograms, NodeReport
from agenteval_tui.agents.process.options import CommandOptions, folder_of
from agenteval_tui.agents.process.process_tree import python_that_catches
from agenteval_tui.agents.process.protocol import EventError, EventReader, is_event, prompt_of, request_document
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.traceback_text import last_place, traceback_in
from agenteval_tui.agents.recording.providers import PROXY_VARIABLE
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.suites.command_words import argv_for, argv_of, asks_in_words
from agenteval_tui.suites.env_files import env_files
from agenteval_tui.transcripts.model import ErrorCode, Note, RunError
from agenteval_tui.transcripts.observed import ASKED_PAST, TEXT_ONLY
from agenteval_tui.transcripts.traceback import Traceback, place_words, raised_words

_SHOWN = 80  # characters of a line that an error repeats
_TAIL = 2_000  # characters of an output that an error may repeat
_PLACE_S = 0.5  # how long a program may take to say where it is
_BOM = b"\xef\xbb\xbf"


class OutputError(Exception):
    """The output can't be read. `cut_off`: its last line is not complete."""

    def __init__(self, what: str, fix: str, cut_off: bool = False) -> None:
        super().__init__(what)
        self.fix = fix
        self.cut_off = cut_off


_BY_HAND = "run it by hand with the same input; `agenteval docs agents` describes it"
_READ_ON = (
    "it asked “{}”, and a run can't answer: pass the answer as an option or a variable. A program that reads its "
    "questions in a loop needs `capture: model` and `answer: auto`"
)


class OutputReader:
    """Makes events of output, in order; at most `limit` bytes.

    "auto": events when the first line that is not empty is an event, else text. `done` is true once the program said
    `done` or `error`.
    """

    def __init__(self, form: Literal["auto", "jsonl", "text"], limit: int) -> None:
        self._form = form
        self._limit = limit
        self.read = 0
        """Bytes of output that came."""
        self.last_words = ""
        """The end of an output that is a text: many programs print there what went wrong."""
        self._breaks = ""  # at the end of the text by now
        self._has_text = False
        self._number = 0
        self._begin = bytearray()  # the output before its form was known
        self._in_object = False  # its first line starts with {, and is not complete
        self._lines = LineSplitter()
        self._events = EventReader()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    @property
    def is_text(self) -> bool:
        """Whether the output is the answer, and no events: it says nothing of tool calls."""
        return self._form == "text"

    @property
    def done(self) -> bool:
        """Whether the program said that it is done."""
        return self._events.ended

    def feed(self, data: bytes) -> list[AgentEvent]:
        """The events in the next bytes. Raises `OutputError`."""
        self.read += len(data)
        if self.read > self._limit:
            raise OutputError(f"it wrote more than {self._limit / 1e6:g} MB", "raise `max_reply_mb`, or make it brief")
        if self._form == "auto":
            self._begin += data
            # A long first line that begins like JSON is not read again with each piece: only its end can decide.
            if (self._in_object and b"\n" not in data) or not self._decide(final=False):
                return []
            data, self._begin = bytes(self._begin), bytearray()
        if self._form == "text":
            return self._text(self._decoder.decode(data))
        return self._read(self._lines.feed(data))

    def end(self) -> list[AgentEvent]:
        """The events in what is left at the end. Raises `OutputError`."""
        if self._form == "auto":
            self._decide(final=True)
            data, self._begin = bytes(self._begin), bytearray()
            # `feed` counts these bytes again.
            self.read -= len(data)
            return [*self.feed(data), *self.end()]
        if self._form == "text":
            last = self._text(self._decoder.decode(b"", final=True))
            # Blank lines alone are an empty answer.
            return last if last or self._has_text or not self._breaks else [TextDelta("")]
        return self._read([self._lines.rest], last=True)

    def _decide(self, final: bool) -> bool:
        """Say which form the output has, as soon as that can be told."""
        start = bytes(self._begin).removeprefix(_BOM).lstrip()
        line, end, _ = start.partition(b"\n")
        if line and not line.startswith(b"{"):
            # No event starts otherwise, so the text can be shown before its first line is complete.
            self._form = "text"
        elif end or (final and line):
            self._form = "jsonl" if is_event(_json(line)) else "text"
        elif final:
            self._form = "text"
        self._in_object = bool(line)
        return self._form != "auto"

    def _text(self, text: str) -> list[AgentEvent]:
        self.last_words = (self.last_words + text)[-_TAIL:]
        # The line breaks at its end are no part of an answer, as for a shell that takes what a command prints.
        text, self._breaks = self._breaks + text, ""
        answer = text.rstrip("\r\n")
        self._breaks = text[len(answer) :]
        self._has_text = self._has_text or bool(answer)
        return [TextDelta(answer)] if answer else []

    def _read(self, lines: list[bytes], last: bool = False) -> list[AgentEvent]:
        read: list[AgentEvent] = []
        for line in lines:
            self._number += 1
            # What a program writes after `done` is not read, as it may be anything.
            if self._events.ended:
                break
            # Some programs begin UTF-8 with a byte order mark, which JSON may not have.
            line = line.removeprefix(_BOM).strip() if self._number == 1 else line.strip()
            if not line:
                continue
            try:
                read += self._events.read(_json(line))
            except EventError as error:
                if last and _json(line) is None:
                    raise OutputError(
                        f"its last line, {self._number}, is cut off: {_shown(line)}",
                        "end each event with a newline",
                        True,
                    ) from None
                what = f"line {self._number} of its output is not an event: {error}: {_shown(line)}"
                fix = "write one JSON object per line, and everything else to standard error; or set `output: text`"
                raise OutputError(what, fix) from None
        return read


def _json(line: bytes) -> object:
    """The line's value; None when it is not JSON."""
    return parsed_json(line.decode("utf-8", "replace"))


def _shown(line: bytes) -> str:
    text = line.decode("utf-8", "replace")
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


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
        self._node = NodePrograms(setup.base_dir)
        self._asked_past: dict[str, tuple[str, ...]] = {}

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One process: its events as it writes them."""
        with self._node.of_run() as report:
            async with aclosing(self._events(request, report)) as events:
                async for event in events:
                    yield event

    async def _events(self, request: AgentRequest, report: NodeReport) -> AsyncGenerator[AgentEvent]:
        began = time.perf_counter()
        try:
            options = options_for(request, self._setup, self._options)
            if (refusal := prefix_refusal(options, request)) is not None:
                yield refusal
                return
            program = await self._start(options, request, report)
        except AgentevalError as error:
            yield Failed(RunError.told("program", error.problem, error.fix))
            return
        async with program:
            # What it does then is its own business, unless it says with `ready` that it was still starting.
            yield Prepared("start of the process", (time.perf_counter() - began) * 1000)
            program.write(input_of(request, options))
            program.close_stdin()
            async with aclosing(self._listen(program, options, request, report)) as events:
                async for event in events:
                    if isinstance(event, Done | Failed) and (servers := report.of("past")):
                        self._asked_past[request.run] = servers
                    # Before the last event: what comes after it is no longer read.
                    if isinstance(event, Done | Failed) and program.stderr:
                        yield LogLine(without_secrets(program.stderr, self._env(options)))
                    yield event
                    if isinstance(event, Done):
                        await program.exited(GRACE_S)  # it may have things to put away

    @property
    def files(self) -> frozenset[str]:
        """The files of the project that its Node programs have loaded or read by now."""
        return self._node.files

    def asked_past(self, run: str) -> tuple[str, ...]:
        """The servers of models that a run asked past the proxy that it was led to; once."""
        return self._asked_past.pop(run, ())

    async def check(self, thorough: bool = False) -> CheckReport:
        """Is the program there, and may it be executed? `thorough` asks it for an answer."""
        began = time.perf_counter()
        options = self._options
        argv = argv_of(options.command, options.shell)
        try:
            program = find_program(argv[0], self._folder(options), self._env(options))
        except AgentevalError as error:
            return unreachable(error.problem, error.fix)
        return await check_answer(self, f"{program} is there and may be executed", began, thorough=thorough)

    async def close(self) -> None:
        """Nothing is open between runs."""

    async def _start(self, options: CommandOptions, request: AgentRequest, report: NodeReport) -> Program:
        argv = words_for(request, options)
        folder, env, workdir = self._folder(options), self._env(options), request.workdir
        # Only a program that is recorded has the part of ours that tells what it reads.
        if PROXY_VARIABLE in env:
            env |= self._node.variables(report)
        if workdir is not None:
            # The run works in a folder of its own, but a command such as `./agent.sh` is meant from the suite's.
            argv = argv if options.shell else found_in(folder, workdir, argv)
            env |= {WORKDIR: str(workdir), SUITE_DIR: str(self._setup.base_dir)}
        return await start(argv, cwd=workdir or folder, env=env, permission=self._setup.permission)

    def _folder(self, options: CommandOptions) -> Path:
        return folder_of(options.cwd, self._setup.base_dir, self._setup.trusted)

    def _env(self, options: CommandOptions) -> dict[str, str]:
        # A Python program would keep its events in a buffer until it ends.
        return {"PYTHONUNBUFFERED": "1", **self._setup.env, **options.env}

    async def _listen(
        self, program: Program, options: CommandOptions, request: AgentRequest, report: NodeReport
    ) -> AsyncGenerator[AgentEvent, None]:
        reader = OutputReader(options.output, int(options.max_reply_mb * 1_000_000))
        name = argv_of(options.command, options.shell)[0] if not options.shell else "the command"
        wait_s, what = options.timeouts.first_token, "gave no sign"
        spoke = False
        try:
            while True:
                async with asyncio.timeout(wait_s):
                    data = await program.read()
                for event in reader.feed(data) if data else reader.end():
                    # A program that only says what it used has given no answer.
                    spoke = spoke or not isinstance(event, UsageReported | Prepared | Noted)
                    yield event
                if reader.done:
                    return
                if not data:
                    break
                # Only the first output has the longer limit: before it the program loads, and asks a model for the
                # first time.
                wait_s, what = options.timeouts.silence, "was silent"
            # Its output has ended. One that closed its output and goes on has not finished its run.
            if not await program.exited(wait_s):
                raise TimeoutError
        except TimeoutError:
            words = program.stderr  # without the stack that is asked for
            place = await self._last_place(program, options)
            sentence = f"{name} {what} for {wait_s:g} s{place_words(place)}"
            silence = silence_error(with_last_words(sentence, words, self._env(options)))
            yield Failed(replace(silence, traceback=place))
            return
        except asyncio.CancelledError:
            if request.cut_off.late:
                request.cut_off.traceback = await self._last_place(program, options)
            raise
        except OutputError as error:
            # How it ended says more than half a line at its end.
            broken = error.cut_off and await program.exited(GRACE_S) and program.returncode != 0
            if not broken:
                sentence = with_last_words(f"{name}: {error}", program.stderr, self._env(options))
                yield Failed(RunError.told("protocol", sentence, error.fix))
                return
        if program.returncode == 0 and spoke:
            if reader.is_text:
                yield Noted(Note(TEXT_ONLY, "standard output"))
                # A program that tells its calls itself tells them all.
                if servers := report.of("past"):
                    yield Noted(Note(ASKED_PAST, ", ".join(servers)))
            yield Done()
            return
        env, words = self._env(options), program.stderr
        if program.returncode != 0:
            sentence = f"{name} {exit_description(program.returncode)}"
            # Programs that only warn on standard error say on standard output what went wrong.
            words = reader.last_words or words if is_only_noted(words.strip()) else words
        else:
            sentence = f"{name} printed {'nothing' if not reader.read else 'no answer'}"
        # A traceback says more than the last lines of standard error, and causes are grouped by it. Also where the
        # program ended as if all were well: many only print what they caught.
        traceback = traceback_in(without_secrets(program.stderr, env), str(self._folder(options)))
        remedy = await asyncio.to_thread(self._remedy, words, traceback, options)
        if traceback is None:
            message = with_last_words(sentence, words, env)
        else:
            message = without_secrets(f"{sentence}: {raised_words(traceback)}", env)
        if program.returncode == 0:
            failure = RunError.told("protocol", message, remedy or _NO_ANSWER, ErrorCode.NO_ANSWER)
        else:
            # Python says so by its exception; what Node raises then, programs show as a sentence.
            read_on = (traceback is not None and traceback.exceptions[0].type == "EOFError") or bool(report.of("ended"))
            question = pending_question(reader.last_words, env) if traceback is None or read_on else ""
            usual = _READ_ON.format(question) if question else _BY_HAND
            fix = remedy or remedy_for(program.returncode, usual)
            code = ErrorCode.INPUT_ENDED if read_on else ErrorCode.EXIT
            failure = RunError.told("program", message, fix, code, status=program.returncode)
        yield Failed(replace(failure, traceback=traceback))

    async def _last_place(self, program: Program, options: CommandOptions) -> Traceback | None:
        """Where a Python program is, if its requests are recorded: our `sitecustomize` is in it then."""
        python = await asyncio.to_thread(python_that_catches, program.pid, signal.SIGQUIT)
        if python is None:
            return None
        before = program.written.size
        with suppress(ProcessLookupError):
            os.kill(python, signal.SIGQUIT)
        # How long a stack is, nobody says: it is whole once nothing more comes.
        size, stop = before, time.monotonic() + _PLACE_S
        while (program.written.size == before or program.written.size > size) and time.monotonic() < stop:
            size = program.written.size
            await asyncio.sleep(_PLACE_S / 10)
        place = last_place(program.written.text(before), self._folder(options))
        return traceback_without_secrets(place, self._env(options))

    def _remedy(self, words: str, traceback: Traceback | None, options: CommandOptions) -> str:
        argv = argv_of(options.command, options.shell)
        try:
            files = env_files(self._setup.base_dir, self._setup.config)
        except AgentevalError as problem:  # it changed meanwhile
            return problem.fix
        return program_remedy(words, traceback, argv, self._folder(options), self._env(options), files)


def words_for(request: AgentRequest, options: CommandOptions) -> list[str]:
    """The words of the command for this request. Raises `AgentevalError` where a template can't be filled."""
    if not asks_in_words(options.command):
        return argv_of(options.command, options.shell)
    document = request_document(request, options.settings)
    return argv_for(options.command, options.shell, {**document["variables"], **document})


def input_of(request: AgentRequest, options: CommandOptions) -> bytes:
    """What the program reads: its task."""
    if options.input == "none":
        return b""
    if options.input == "text":
        return prompt_of(request).encode("utf-8", "replace")
    if options.input == "line":
        return (" ".join(prompt_of(request).splitlines()) + "\n").encode("utf-8", "replace")
    document = request_document(request, options.settings)
    return json.dumps(document, ensure_ascii=False, default=str).encode("utf-8", "replace") + b"\n"
