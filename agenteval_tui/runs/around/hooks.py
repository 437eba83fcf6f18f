"""Runs one hook: a command, or a Python function in the project's environment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import SUITE_DIR, WORKDIR, found_in, start
from agenteval_tui.agents.process.environment_messages import remedy
from agenteval_tui.agents.process.errors import exit_description, remedy_for, stderr_tail, traceback_without_secrets
from agenteval_tui.agents.process.printed_output import returned_by
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.python_host import HostError, PythonHost, RaisedError
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.python_tree import Lease, Root
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import json_object
from agenteval_tui.grading.spec import json_like
from agenteval_tui.runs.around.plan import HookPlan
from agenteval_tui.suites.callable_name import parse_callable
from agenteval_tui.suites.environment import expand
from agenteval_tui.suites.tool_files import require_inside
from agenteval_tui.transcripts.model import SETUP, ErrorCode, HookRun, RunError

OUTPUT_KEPT = 16 * 1024
"""Characters of what a hook printed: the end of it."""
MOST_VARIABLES = 1_000_000
"""Bytes of a JSON object that a hook may print."""
MOST_IN_ENVIRONMENT = 32 * 1024  # characters of a variable: a program can't be started with a longer one
_PREFIX = "AGENTEVAL_VAR_"


class HookTask(Struct, frozen=True):
    """What a hook is about: its document has `variables`, and which run it is. `folder` is the suite's, `workdir` the
    run's own (None: it has none). `env` is the environment of the project."""

    folder: Path
    workdir: Path | None
    variables: Mapping[str, Any]
    about: Mapping[str, Any]
    env: Mapping[str, str]

    @property
    def cwd(self) -> Path:
        """Where hooks run."""
        return self.workdir or self.folder

    def document(self, phase: str) -> dict[str, Any]:
        """What a command reads from its standard input, and a function can have by name."""
        workdir = str(self.workdir) if self.workdir else None
        return {"phase": phase, **self.about, "workdir": workdir, "variables": json_like(dict(self.variables))}

    def more_env(self, hook: HookPlan) -> dict[str, str]:
        """The variables of the environment that a hook gets beside those of the project."""
        environment = run_environment(self.folder, self.workdir, self.variables)
        return {**environment, **{name: str(expand(value, self.env)) for name, value in hook.env.items()}}


def run_environment(folder: Path, workdir: Path | None, variables: Mapping[str, Any]) -> dict[str, str]:
    """What programs beside a run get in their environment: the suite's folder, the run's own, and its variables."""
    environment = {SUITE_DIR: str(folder), **({WORKDIR: str(workdir)} if workdir else {})}
    for name, value in variables.items():
        text = value if isinstance(value, str) else json.dumps(json_like(value), ensure_ascii=False)
        # What no environment can hold is left out; the hook's document has it.
        if len(text) <= MOST_IN_ENVIRONMENT and "\0" not in text and "=" not in name and "\0" not in name:
            environment[f"{_PREFIX}{name}"] = text
    return environment


class HookResult(Struct, frozen=True):
    """How a hook ended, and the variables that it brought."""

    run: HookRun
    variables: Mapping[str, Any] = {}


class Hooks:
    """Runs hooks in one event loop. Close it: it holds a lease of processes for Python functions."""

    def __init__(self, permission: Permission) -> None:
        self._permission = permission
        self._lease: Lease | None = None

    async def run(self, hook: HookPlan, task: HookTask, attempt: int = 0) -> HookResult:
        """Run a hook to its end, at most as long as it may take. Nothing that it started outlives it. Raises only
        CancelledError."""
        began = time.monotonic()
        running = _Running(hook, task)
        variables: Mapping[str, Any] = {}
        try:
            self._permission.require_code(task.folder, hook.description)
            env = {**task.env, **task.more_env(hook)}
            running.env = env
            async with asyncio.timeout(hook.timeout_s):
                variables = await (self._call(running) if hook.callable else self._execute(running))
        except TimeoutError:
            running.fail("timeout", f"did not end within {hook.timeout_s:g} s", _TIMEOUT_MEND)
        except AgentevalError as error:
            running.fail("start", error.sentence if error.where else error.what, error.fix, joint=": ")
        took_ms = (time.monotonic() - began) * 1000
        output = without_secrets(running.output, running.env)
        return HookResult(HookRun(hook.phase, hook.name, took_ms, output, running.error, attempt), variables)

    async def close(self) -> None:
        """Give the processes back."""
        if self._lease is not None:
            await self._lease.close()
            self._lease = None

    # Commands

    async def _execute(self, running: _Running) -> Mapping[str, Any]:
        hook, task = running.hook, running.task
        argv = [str(expand(word, task.env)) for word in hook.argv]
        if not hook.shell:
            argv = found_in(task.folder, task.cwd, argv)
        program = await start(argv, cwd=task.cwd, env=running.env, permission=self._permission)
        printed = bytearray()
        # Only the end of the output is kept; `size` tells whether that is all of it.
        size = 0
        async with program:
            program.write(
                json.dumps(task.document(hook.phase), ensure_ascii=False, default=str).encode("utf-8", "replace")
            )
            program.close_stdin()
            try:
                while data := await program.read():
                    size += len(data)
                    printed += data
                    # At twice as much: else each piece would move all that is kept.
                    if len(printed) > 2 * MOST_VARIABLES:
                        del printed[:-MOST_VARIABLES]
                await program.exited()
            finally:
                # Also after a time-out: what it printed until then says what it waited for.
                running.heard(bytes(printed).decode("utf-8", "replace"), program.stderr)
            code = program.returncode
        if code != 0:
            words = stderr_tail(program.stderr or running.printed[-1000:], running.env)
            fix = remedy_for(
                code, "run it by hand in the same folder; `agenteval docs services-and-hooks` describes it"
            )
            running.fail("exit", exit_description(code) + (f": {words}" if words else ""), fix, status=code)
            return {}
        # Nothing runs behind the others that could use their variables.
        if hook.phase not in ("before_all", "before"):
            return {}
        return running.read(whole=size == len(printed))

    # Python functions

    async def _call(self, running: _Running) -> Mapping[str, Any]:
        hook, task = running.hook, running.task
        file = parse_callable(hook.callable).file
        places = [require_inside(file, task.folder, trusted=self._permission.trusted).parent] if file else []
        project = project_environment(task.folder, targets=(hook.callable,), path=places)
        root = Root.of(project, task.env, (("find", hook.callable),))
        host: PythonHost | None = None
        try:
            self._lease = self._lease or Lease()
            host = await self._lease.tree(root, self._permission).host()
            offered = {**task.variables, **task.document(hook.phase)}
            # `last`: no other hook runs in this process, so nothing of this one is left for the next.
            fields = {"offered": json_like(offered), "cwd": str(task.cwd), "env": task.more_env(hook), "last": True}
            events = host.events("hook", hook.callable, limit=2 * MOST_VARIABLES, **fields)
            returned = await returned_by(events, running.heard)
        except RaisedError as error:
            usual = "call the function by hand; `agenteval docs services-and-hooks` says what it gets"
            running.raised(error, remedy(error.clues, project) or usual)
            return {}
        except HostError as error:
            code = None if host is None else host.program.returncode
            message = str(error) if code is None else f"{error}, its process {exit_description(code)}"
            running.fail("exit", message, remedy_for(code, "look at what ends its process"), status=code)
            return {}
        finally:
            if host is not None:
                # One that timed out may hold on: it is not asked first.
                await host.end(politely=running.error is None)
        if returned is None or hook.phase not in ("before_all", "before"):
            return {}
        if isinstance(returned, Mapping):
            return dict(returned)
        message = f"returned a {type(returned).__name__}, not an object with variables"
        running.fail("output", message, "return a dictionary, or nothing")
        return {}


_TIMEOUT_MEND = "find out what it waits for, or raise its `timeout`"


class _Running:
    """A hook at work: what it printed, and how it failed."""

    def __init__(self, hook: HookPlan, task: HookTask) -> None:
        self.hook = hook
        self.task = task
        self.env: Mapping[str, str] = task.env
        self.error: RunError | None = None
        self.printed = ""
        self._errors = ""

    @property
    def output(self) -> str:
        """The end of what it printed."""
        joint = "\n" if self.printed and self._errors and not self.printed.endswith("\n") else ""
        return f"{self.printed}{joint}{self._errors}"[-OUTPUT_KEPT:]

    def heard(self, printed: str, errors: str = "") -> None:
        """It printed more."""
        self.printed = (self.printed + printed)[-2 * MOST_VARIABLES :]
        self._errors = errors

    def fail(self, why: str, message: str, fix: str, *, joint: str = " ", status: int | None = None) -> None:
        """It failed. `why` is a word for how; the sentence says it after the hook's name."""
        more = {} if status is None else {"status": status}
        words = without_secrets(f"{self._called}{joint}{message}", self.env)
        self.error = RunError.told(SETUP, words, fix, ErrorCode.HOOK, phase=self.hook.phase, why=why, **more)

    def raised(self, error: RaisedError, fix: str) -> None:
        """Its function raised an exception."""
        joint = ": " if error.wrong else " raised "
        self.fail("raised", str(error), fix, joint=joint)
        assert self.error is not None
        traceback = traceback_without_secrets(error.traceback, self.env)
        self.error = RunError(
            self.error.kind, self.error.message, self.error.fix, self.error.code, self.error.fields, traceback
        )

    def read(self, *, whole: bool) -> Mapping[str, Any]:
        """The variables in what it printed: all of it, or its last line, as a JSON object."""
        text = self.printed.strip()
        last = text.rpartition("\n")[2]
        # If the beginning was cut off, only the last line is sure to be whole.
        for candidate in (text, last) if whole else (last,):
            document = json_object(candidate) if len(candidate) <= MOST_VARIABLES else None
            if document is not None:
                self.printed = text[: len(text) - len(candidate)]
                return document
        if last.startswith("{") or (whole and text.startswith("{")):
            message = f"printed a JSON object that can't be read, or that has more than {MOST_VARIABLES / 1e6:g} MB"
            self.fail("output", message, "print one JSON object with the variables, and everything else before it")
        return {}

    @property
    def _called(self) -> str:
        return f"the hook {self.hook.name} ({self.hook.phase} of the {self.hook.scope})"
