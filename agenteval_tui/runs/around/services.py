"""The services of an execution: each is started once, before the first run that needs it, and ended at the end.

A service is a process group that this process leads to its end, however that comes: `agents.process.orphans` ends it
if this process is killed.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import Program, Tail, start
from agenteval_tui.agents.process.environment_messages import program_remedy
from agenteval_tui.agents.process.errors import exit_description, remedy_for, stderr_tail
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.traceback_text import tracebacks_in
from agenteval_tui.agents.recording.providers import server_startup
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.around.plan import ServicePlan
from agenteval_tui.runs.around.record import DIED, ENDED, FAILED, READY, REUSED, STARTING, ServiceState
from agenteval_tui.suites.env_files import env_files
from agenteval_tui.suites.environment import environment_for, expand
from agenteval_tui.suites.tool_files import require_inside
from agenteval_tui.transcripts.model import SETUP, ErrorCode, RunError
from agenteval_tui.transcripts.traceback import Traceback, raised_words

GRACE_S = 5.0
"""How long a service that is told to end may take; then it is killed."""
_PAUSE_S = 0.05  # between two looks whether it is ready
_LOOK_S = 5.0  # for one look
_QUIET_S = 0.1
"""A server writes what it raised after it has answered; this long after its last output there is nothing more."""
_MIXED = re.compile(r"\n[\w.]*(?:Error|Exception)\b")
"""The end of another traceback: two threads wrote theirs at once, line by line."""
_LATE_S = 0.5  # to write it at all
_READY = frozenset((400, 401, 402, 403))  # a server that answers so is there
_LONGEST_LINE = 64 * 1024


class ServiceError(Exception):
    """A service is not there. `error` is what runs that need it end with."""

    def __init__(self, error: RunError) -> None:
        super().__init__(error.message)
        self.error = error


class Services:
    """Starts services and watches them. `changed` is called with each that changes its status, and with what is said
    of it; `died` with the error once one that was ready has ended, or one did not get ready."""

    def __init__(
        self,
        permission: Permission,
        env: Mapping[str, str],
        changed: Callable[[ServiceState], None],
        died: Callable[[ServicePlan, RunError], None],
    ) -> None:
        self._permission = permission
        self._env = env
        self._changed = changed
        self._died = died
        self._running: dict[ServicePlan, _Running] = {}
        self._closing = False

    async def ready(self, plans: Sequence[ServicePlan]) -> None:
        """Wait until these are ready, one after another: one may need those before it. Raises `ServiceError`."""
        for plan in plans:
            # Begun at its first use: what no run needs is never started.
            running = self._of(plan)
            # Shielded: other runs wait for the same start.
            await asyncio.shield(running.starting)
            if running.error is not None:
                raise ServiceError(running.error)

    def output_from_now(self, plans: Sequence[ServicePlan]) -> OutputFromNow:
        """What these print from now on. They are ready."""
        return OutputFromNow([self._of(plan) for plan in plans])

    def states(self) -> tuple[ServiceState, ...]:
        """All that were started, in the order in which they were."""
        return tuple(running.state for running in self._running.values())

    async def close(self) -> None:
        """End them, the last first."""
        self._closing = True
        for running in reversed(list(self._running.values())):
            await running.end()

    def _of(self, plan: ServicePlan) -> _Running:
        # Plans are equal by content: a suite and an agent that name the same service share it. A plain dictionary has
        # no hash.
        key = replace(plan, env=_Frozen(plan.env))
        running = self._running.get(key)
        if running is None:
            running = self._running[key] = _Running(plan, self._permission, self._env, self._changed, self._failed)
            running.begin()
        return running

    def _failed(self, plan: ServicePlan, error: RunError) -> None:
        if not self._closing:
            self._died(plan, error)


class OutputFromNow:
    """What services print after a moment."""

    def __init__(self, services: Sequence[_Running]) -> None:
        self._begun = [(service, service.output.size) for service in services]

    def texts(self) -> Iterator[tuple[str, str]]:
        """(its name, the end of what it printed) of each that printed something."""
        for service, begun in self._begun:
            if text := service.output_after(begun):
                yield service.plan.name, text

    async def raised(self) -> tuple[str, Traceback] | None:
        """(the service, what it raised); None where nothing was raised, or different errors: then it is not known to
        which of the requests that were answered at the same time one belongs."""
        raised: list[tuple[str, Traceback]] = []
        read = -1
        quiet_since = time.monotonic()
        while (now := time.monotonic()) - quiet_since < (_QUIET_S if raised else _LATE_S):
            if read != (read := sum(service.output.size for service, _ in self._begun)):
                quiet_since = now
                raised = [(service.plan.name, each) for service, begun in self._begun for each in service.raised(begun)]
            await asyncio.sleep(_PAUSE_S)
        words = {raised_words(each) for _, each in raised}
        return raised[0] if len(words) == 1 and not any(map(_MIXED.search, words)) else None


class _Frozen(dict[str, str]):
    """Variables as part of a key."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(sorted(self.items())))


class _Running:
    """One service, from its start to its end."""

    def __init__(
        self,
        plan: ServicePlan,
        permission: Permission,
        env: Mapping[str, str],
        changed: Callable[[ServiceState], None],
        failed: Callable[[ServicePlan, RunError], None],
    ) -> None:
        self.plan = plan
        self.error: RunError | None = None
        self._state = ServiceState(plan.name, plan.words)
        self._permission = permission
        self._env: Mapping[str, str] = env
        self._changed = changed
        self._failed = failed
        self._program: Program | None = None
        self.output = Tail()
        self._line = bytearray()
        self._matched = asyncio.Event()
        self._watching: asyncio.Task[None] | None = None
        self._last = ""  # what the last look whether it is ready showed
        self._ending = False

    def begin(self) -> None:
        """Start it, in the background."""
        self.starting = asyncio.ensure_future(self._start())

    @property
    def state(self) -> ServiceState:
        """As it is now."""
        return replace(self._state, output=self.output_after(0))

    def output_after(self, begun: int) -> str:
        """What it printed after its first `begun` bytes, as far as it is kept. Without secrets."""
        return without_secrets(self.output.text(begun), self._env)

    def raised(self, begun: int) -> Iterator[Traceback]:
        """What it raised, as what it printed after its first `begun` bytes says."""
        return tracebacks_in(self.output_after(begun), self.plan.folder)

    async def end(self) -> None:
        """End it with all that it started."""
        # First, or `_watch` would take the end for a death.
        self._ending = True
        self.starting.cancel()
        await asyncio.gather(self.starting, return_exceptions=True)
        if self._program is not None:
            await self._program.end(GRACE_S)
        if self._watching is not None:
            await asyncio.gather(self._watching, return_exceptions=True)
        if self._state.status in (STARTING, READY):
            self._set(ENDED)

    async def _start(self) -> None:
        began = time.monotonic()
        self._set(STARTING)
        plan = self.plan
        try:
            if await self._is_there():
                self._set(REUSED, ready_ms=0.0)
                return
            self._program = await self._started()
            self._watching = asyncio.ensure_future(self._watch(self._program))
            try:
                async with asyncio.timeout(plan.timeout_s):
                    await self._until_ready()
            except TimeoutError:
                why = self._last or self._awaited()
                message = f"was not ready within {plan.timeout_s:g} s: {why}{self._words()}"
                await self._program.end(GRACE_S)
                raise _StartError("timeout", message, "check its `ready`, or raise its `timeout`") from None
        except _StartError as error:
            self._fail(FAILED, error.why, str(error), error.fix, error.status)
        except AgentevalError as error:
            self._fail(FAILED, "start", f"can't be started: {error.what}", error.fix)
        else:
            self._set(READY, ready_ms=(time.monotonic() - began) * 1000)

    async def _is_there(self) -> bool:
        """Whether to use what is there already. Raises `_StartError` where it must not be there."""
        address = self._address()
        if address is None or not await _answers(*address):
            return False
        host, port = address
        if not self.plan.reuse_existing:
            message = f"can't be started: port {port} of {host} is taken by another program"
            fix = "stop that program, choose another port, or set `reuse_existing: true` to use it"
            raise _StartError("port", message, fix)
        if self.plan.url and (problem := await asyncio.to_thread(_problem_of, self._url())):
            message = f"can't be used: what is at {host}:{port} is not ready: {problem}"
            raise _StartError("port", message, "stop that program, or check `url`")
        return True

    async def _started(self) -> Program:
        plan, folder = self.plan, Path(self.plan.folder)
        env = await asyncio.to_thread(environment_for, folder, self._env)
        project = await asyncio.to_thread(project_environment, folder)
        env = project.variables(env)
        # Python holds back what it prints to a pipe, so a line that `ready` waits for would come late.
        env = {"PYTHONUNBUFFERED": "1", **env, **{name: str(expand(v, env)) for name, v in plan.env.items()}}
        self._env = {**env, **server_startup(env)}
        argv = [str(expand(word, env)) for word in plan.argv]
        cwd = require_inside(plan.cwd, folder, trusted=self._permission.trusted, what="folder")
        return await start(argv, cwd=cwd, env=self._env, permission=self._permission, merged=True)

    async def _until_ready(self) -> None:
        program = self._program
        assert program is not None
        while True:
            if await self._is_ready():
                # Another program may have taken its port meanwhile.
                # One turn of the event loop, in which the end of our own program gets known.
                await asyncio.sleep(0)
                if program.returncode is None:
                    return
            if program.returncode is not None:
                await program.exited()
                # All that it printed is read before its last words are shown.
                await asyncio.gather(*filter(None, [self._watching]), return_exceptions=True)
                code = program.returncode
                message = f"{exit_description(code)} before it was ready{self._words()}"
                fix = await self._remedy() or remedy_for(code, "run its command by hand in the same folder")
                raise _StartError("exit", message, fix, code)
            with suppress(TimeoutError):
                async with asyncio.timeout(_PAUSE_S):
                    await (self._matched.wait() if self.plan.log else program.exited())

    async def _is_ready(self) -> bool:
        if self.plan.log:
            return self._matched.is_set()
        if self.plan.url:
            self._last = await asyncio.to_thread(_problem_of, self._url())
            return not self._last
        # A server on `localhost` may listen on one of the two only.
        return await _answers("127.0.0.1", self.plan.port) or await _answers("::1", self.plan.port)

    async def _watch(self, program: Program) -> None:
        """Read what it prints, to its end."""
        while data := await program.read():
            self.output.add(data)
            if self.plan.log and not self._matched.is_set():
                self._look_for_line(data)
        await program.exited()
        if self._state.status == READY and not self._ending:
            code = program.returncode
            message = f"ended while it was needed: it {exit_description(code)}{self._words()}"
            self._fail(DIED, "exit", message, await self._remedy() or remedy_for(code, "look at its output"), code)

    def _look_for_line(self, data: bytes) -> None:
        self._line += data
        *lines, rest = self._line.split(b"\n")
        del self._line[:]
        self._line += rest[-_LONGEST_LINE:]
        # The last line may have no end yet: a program may print what is awaited without a newline.
        if any(re.search(self.plan.log, line.decode("utf-8", "replace")) for line in (*lines, self._line)):
            self._matched.set()

    def _fail(self, status: str, why: str, message: str, fix: str, code: int | None = None) -> None:
        more = {} if code is None else {"status": code}
        words = without_secrets(f"the service {self.plan.name} {message}", self._env)
        error = RunError.told(SETUP, words, fix, ErrorCode.SERVICE, service=self.plan.name, why=why, **more)
        self.error = replace(error, traceback=self._traceback())
        self._set(status, error=self.error.message, fix=fix)
        self._failed(self.plan, self.error)

    def _set(self, status: str, **more: Any) -> None:
        self._state = replace(self._state, status=status, **more)
        self._changed(self.state)

    def _words(self) -> str:
        """What it raised, or the last of what it printed, to end a sentence with."""
        traceback = self._traceback()
        if traceback is not None:
            return f": {raised_words(traceback)}"
        words = stderr_tail(self.output.text()[-4_000:], self._env)
        return f": {words}" if words else ""

    async def _remedy(self) -> str:
        """What to do about its end; "" if that is not known."""
        plan, words, traceback = self.plan, self.output.text()[-4_000:], self._traceback()

        def remedy() -> str:
            folder = Path(plan.folder)
            try:
                files = env_files(folder)
            except AgentevalError as problem:  # it changed meanwhile
                return problem.fix
            return program_remedy(words, traceback, plan.argv, folder / plan.cwd, self._env, files)

        return await asyncio.to_thread(remedy)

    def _traceback(self) -> Traceback | None:
        """What it raised at last, if it has ended."""
        ended = self._program is not None and self._program.returncode is not None
        return next(reversed([*self.raised(0)]), None) if ended else None

    def _awaited(self) -> str:
        return (
            f"no line of its output matches {self.plan.log!r}" if self.plan.log else f"port {self.plan.port} is closed"
        )

    def _url(self) -> str:
        return str(expand(self.plan.url, self._env))

    def _address(self) -> tuple[str, int] | None:
        """Where it will listen on this machine; None: that is not known."""
        if self.plan.port:
            return "127.0.0.1", self.plan.port
        if not self.plan.url:
            return None
        try:
            parts = urlsplit(self._url())
            port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError as error:
            raise _StartError("start", f"can't be started: its url is wrong: {error}", "correct `url`") from None
        return (parts.hostname or "", port) if parts.hostname else None


class _StartError(Exception):
    def __init__(self, why: str, message: str, fix: str, status: int | None = None) -> None:
        super().__init__(message)
        self.why = why
        self.fix = fix
        self.status = status


async def _answers(host: str, port: int) -> bool:
    """Whether something listens there."""
    try:
        async with asyncio.timeout(_LOOK_S):
            _, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError, socket.gaierror, UnicodeError):
        return False
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    return True


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    # A redirect is an answer already. Where it leads may need more than this service.
    def redirect_request(self, *arguments: Any, **more: Any) -> None:
        return None


def _problem_of(url: str) -> str:
    """Why a server is not ready; "" if it is. Blocks. No proxy is asked, and no redirect followed."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect)
    try:
        with opener.open(url, timeout=_LOOK_S) as answer:
            status = int(answer.status)
    except urllib.error.HTTPError as error:
        status = error.code
        error.close()
    except (OSError, ValueError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", error)
        words = getattr(reason, "strerror", None) or str(reason) or type(error).__name__
        return f"{url} can't be reached ({words})"
    except Exception as error:  # http.client: what answers does not speak HTTP
        return f"{url} does not answer as a web server ({type(error).__name__})"
    return "" if status < 400 or status in _READY else f"{url} answered {status}"
