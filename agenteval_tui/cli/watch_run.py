"""`agenteval run --watch`: the recorded runs again after each save, and what that changes."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
import termios
import tty
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from agenteval_tui.cli.attach_client import handle_interrupt
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.named_tests import named, refuse_both
from agenteval_tui.cli.run_inline import plan_of
from agenteval_tui.cli.run_options import ReportFiles
from agenteval_tui.cli.run_progress import progress_for
from agenteval_tui.cli.run_suites import load_for_run, options_of
from agenteval_tui.cli.standard_input import STDIN
from agenteval_tui.cli.suite_arguments import paths_given
from agenteval_tui.cli.trust_prompt import plan_with_permission
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.history.store import Store
from agenteval_tui.runs.change.check import CheckOptions
from agenteval_tui.runs.change.model import (
    Checked,
    CodeChange,
    Ignored,
    NotBuilt,
    RunChecked,
    Saved,
    WatchEvent,
    Watching,
)
from agenteval_tui.runs.change.watch import Plans, Watch
from agenteval_tui.runs.event_loop import run_to_end
from agenteval_tui.runs.execution_host import Host
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.views.code_change import (
    change_lines,
    copy_text,
    needed_text,
    not_built_text,
    saved_text,
    unrecorded_tools_text,
    what_runs,
)

_BEHIND_KEYS = 5
"""Hundreds of runs after a save take all cores: the keys of the app that steers them come first."""


class WatchOptions(Struct, frozen=True):
    """How to watch. `live`: changed requests are asked at once; `once`: check once, and end."""

    live: bool = False
    once: bool = False
    as_json: bool = False
    tools_recorded: bool = False
    max_cost: float | None = None
    steered: bool = False
    """Commands come on standard input, a word a line: model, real, check, stop. Its end ends the watch."""


def watch(
    invocation: Invocation,
    paths: tuple[Path, ...],
    options: PlanOptions,
    reports: ReportFiles,
    values: dict[str, Any],
) -> int:
    """Watch the code of the agents of these suites; gives the exit code."""
    if STDIN in paths:
        raise AgentevalError("a suite on standard input can't be watched", fix="write it into a file first")
    if values["watch_live"] and options.max_cost is None:
        raise AgentevalError("--watch-live may ask models after each save", fix="limit that: --max-cost USD")
    named_tests = named(paths_given(paths))
    refuse_both(named_tests, values["tests"])
    trusted = options.trust
    with invocation.store() as store:

        def plans() -> Plan:
            nonlocal trusted
            loaded = load_for_run(invocation, named_tests.paths, values["tests"], named_tests)
            chosen = {**values, "tests": values["tests"] or named_tests.chosen(loaded)}
            planned = options_of(store, loaded, chosen, replace(options, trust=trusted))
            permitted = plan_with_permission(invocation, plan_of(store, loaded, planned))
            # What was permitted once holds for each plan of this watch: a save must not ask again.
            trusted = permitted.trust
            return permitted

        return watch_suites(
            invocation,
            store,
            plans,
            WatchOptions(
                live=values["watch_live"],
                once=values["once"],
                as_json=reports.on_stdout,
                tools_recorded=values["recorded_tools"],
                max_cost=options.max_cost,
                steered=values["steer"],
            ),
        )


def watch_suites(invocation: Invocation, store: Store, plans: Plans, options: WatchOptions) -> int:
    """Watch until Ctrl-C or `q`; gives the exit code: with `once`, 1 if a run fails now, or nothing could be run."""
    return run_to_end(_Session(invocation, store, plans, options).run())


class _Session:
    """One watch in a terminal, or in a pipe with JSON lines in it."""

    def __init__(self, invocation: Invocation, store: Store, plans: Plans, options: WatchOptions) -> None:
        self._invocation = invocation
        self._store = store
        self._plans = plans
        self._options = options
        self._out = invocation.out
        self._folder = Path.cwd()
        self._stopped = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._watch: Watch | None = None
        self._asking = False

    async def run(self) -> int:
        """Watch, and give the exit code."""
        if self._options.steered:
            os.nice(_BEHIND_KEYS)
        watch = self._new_watch()
        # Who steers it, as the app does, asked to watch, and not to run anything that may cost.
        if watch.recorded.missing and not self._options.steered:
            tests = set(watch.changed_tests())
            has = "has" if len(tests) == 1 else "have"
            self._say(f"{count(len(tests), 'test')} {has} no recorded run: run first")
            await self._for_real(tests)
            watch = self._new_watch()
        self._watch = watch
        if not watch.recorded.runs and not (watch.recorded.missing and self._options.steered):
            raise AgentevalError(
                "there is nothing to watch: no test has an agent whose code is here",
                fix="watch a suite whose agents are of the kind `python` or `command`, or servers that are services",
            )
        loop = asyncio.get_running_loop()
        with (
            handle_interrupt(loop, watch.stop),
            _keys(loop, self._key) if self._reads_keys else contextlib.nullcontext(),
            _commands(loop, self._command) if self._options.steered else contextlib.nullcontext(),
        ):
            if self._options.once:
                return await self._once(watch)
            await watch.run()
        return 0

    def _new_watch(self) -> Watch:
        asks = CheckOptions(live=True, max_cost=self._options.max_cost)
        return Watch(
            self._store,
            self._plans,
            self._tell,
            live=asks if self._options.live else None,
            tools_recorded=self._options.tools_recorded,
        )

    async def _once(self, watch: Watch) -> int:
        # A watch that is ended by Ctrl-C never has its first check.
        running = asyncio.create_task(watch.run())
        stopped = asyncio.create_task(self._stopped.wait())
        await asyncio.wait({running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        watch.stop()
        await running
        return int(watch.last is None or bool(watch.last.fails))

    @property
    def _reads_keys(self) -> bool:
        return self._out.is_terminal and sys.stdin.isatty() and not self._options.once and not self._options.as_json

    def _key(self, key: str) -> None:
        self._command({"q": "stop", "$": "model", "R": "real", "r": "check"}.get(key, ""))

    def _command(self, command: str) -> None:
        watch = self._watch
        if watch is None or (self._asking and command != "stop"):
            return
        match command:
            case "stop":
                watch.stop()
            case "model":
                self._start(watch.ask_model(CheckOptions(live=True, max_cost=self._options.max_cost)))
            case "real":
                # Two runs for real would answer for the same tests: what is pressed until it is over is left out. Set
                # here, as keys that come together are read together, before the task of the first one begins.
                self._asking = True
                self._start(self._run_changed(watch))
            case "check":
                self._start(watch.check_all())

    def _start(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_changed(self, watch: Watch) -> None:
        tests = set(watch.changed_tests())
        try:
            if not tests:
                self._say("Every run is as it was recorded: there is nothing to run.")
                return
            await self._for_real(tests)
        except AgentevalError as error:
            watch.refuse(error)
            return
        finally:
            self._asking = False
        await watch.look_again()

    async def _for_real(self, tests: set[tuple[str, str]]) -> None:
        """Run the tests, named by the keys of their suites and their ids."""
        # Planned anew: the suites may be others than when the watch began.
        plan = self._plans()
        plan = replace(plan, runs=tuple([run for run in plan.runs if (run.suite_key, run.ref.test) in tests]))
        progress = progress_for(self._invocation, self._store, silent=self._options.as_json)
        await Host(plan, self._store, progress.apply).run()

    # What is printed

    def _tell(self, event: WatchEvent) -> None:
        if self._options.as_json:
            self._out.plain_line(json.dumps(to_builtins(event)))
        else:
            self._print(event)
        if isinstance(event, Checked):
            self._stopped.set()

    def _print(self, event: WatchEvent) -> None:
        out = self._out
        match event:
            case Watching(recorded=recorded, failing=failing, projects=projects):
                self._say(
                    f"Watching {', '.join(map(self._place, projects))}: {count(recorded, 'recorded run')}, "
                    f"{failing:,} failed."
                )
                self._say(what_runs(live=self._options.live, tools_recorded=self._options.tools_recorded))
                for copy in event.copies:
                    self._say(copy_text(copy))
                if event.real_tools:
                    self._say(unrecorded_tools_text(event))
            case Saved(files=files, runs=runs):
                out.status(f"{saved_text(files, self._folder)}: {count(runs, 'run')} …")
            # The line of the change sums these up.
            case RunChecked():
                pass
            case Checked(change=change):
                self._print_change(change)
            case Ignored(file=file):
                self._say(f"{self._place(file)} is left alone while runs are made: they write it.")
            case NotBuilt():
                self._say(not_built_text(event, self._folder))

    def _print_change(self, change: CodeChange) -> None:
        out = self._out
        out.status("")
        for text in change_lines(change, self._folder):
            out.text(text)
        if self._reads_keys:
            needed = needed_text(change)
            keys = [f"$ {needed}"] * bool(needed)
            keys += ["R run the changed tests for real"] * bool(change.passes + change.fails + change.needs_model)
            keys += ["r run again"]
            out.line(("  ·  ".join([*keys, "q quit"]), "dim"))
        out.flush()

    def _say(self, sentence: str) -> None:
        if not self._options.as_json and not self._invocation.quiet:
            self._out.line((sentence, "dim"))

    def _place(self, file: str) -> str:
        path = Path(file)
        if path == self._folder:
            return "this folder"
        return str(path.relative_to(self._folder)) if path.is_relative_to(self._folder) else file


@contextlib.contextmanager
def _commands(loop: asyncio.AbstractEventLoop, told: Callable[[str], None]) -> Iterator[None]:
    """Calls `told` with each line on standard input, and with `stop` at its end."""
    descriptor = sys.stdin.fileno()
    left = ""

    def read() -> None:
        nonlocal left
        text = os.read(descriptor, 4096).decode("utf-8", "replace")
        *lines, left = (left + text).split("\n")
        # Whoever steers it is gone.
        for line in lines if text else ["stop"]:
            told(line.strip())
        if not text:
            loop.remove_reader(descriptor)

    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)


@contextlib.contextmanager
def _keys(loop: asyncio.AbstractEventLoop, pressed: Callable[[str], None]) -> Iterator[None]:
    """Calls `pressed` with each key on the terminal's input, which is not shown there meanwhile."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)

    def read() -> None:
        for key in os.read(descriptor, 64).decode("utf-8", "replace"):
            pressed(key)

    # Not raw: Ctrl-C must stay a signal.
    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
