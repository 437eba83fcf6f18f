"""The kind `function`: a function or an agent object of the program that called `agenteval_tui.run`.

It runs in this process, where it is. Nothing about it is written down but its name, so that what it did can be graded
and compared later, but not run again from another process.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import Field

from agenteval_tui.agents.base import (
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    Failed,
)
from agenteval_tui.agents.options import AgentOptions, options_for, read_options
from agenteval_tui.agents.process import python_call, python_errors, python_objects
from agenteval_tui.agents.process.errors import traceback_without_secrets
from agenteval_tui.agents.process.protocol import EventError, EventReader, request_document
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.python_target import WrongTarget
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.event_loop_end import end_tasks
from agenteval_tui.core.ids import free_name
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.traceback import Traceback, traceback_from

KIND = "function"

_offered: dict[str, Any] = {}


class FunctionOptions(AgentOptions):
    """What a function of this process is called with."""

    callable: str = Field(description="Its module and name, as `module:name`.")
    settings: dict[str, Any] = Field(default_factory=dict, description="Passed to it as `config`.")


def name_of(value: object) -> str:
    """`module:name` of a function; of another object that of its class."""
    named = value if hasattr(value, "__qualname__") else type(value)
    return f"{named.__module__}:{named.__qualname__}"


@contextmanager
def offered(value: object, settings: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """The configuration of an agent that calls `value` (a function, or an agent object of a framework). It can be used
    until the context ends.

    Raises `AgentevalError` when agenteval does not know how to call it.
    """
    name = name_of(value)
    try:
        python_objects.runner(value, name)
    except Exception as error:
        raise AgentevalError(str(error), where=name, fix="`agenteval docs python` says what may be given") from None
    # There may be another one of that name, as lambdas are.
    key = free_name(name, lambda key: _offered.get(key, value) is not value, "#")
    already = key in _offered
    _offered[key] = value
    try:
        yield {"kind": KIND, "callable": key, **({"settings": dict(settings)} if settings else {})}
    finally:
        if not already:
            _offered.pop(key, None)


class FunctionAgent:
    """Calls the function in a thread of its own for each request, so that one that blocks holds up no other run.

    Coroutines of all runs share one event loop, in a thread of its own: clients that a framework keeps go on working. A
    coroutine that is cancelled ends; a plain function can't be ended, and what it gives later is dropped. Failures are
    of the kinds program (what the function raised), protocol and bad_request.
    """

    options_model = FunctionOptions

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        self._options = read_options(FunctionOptions, setup.name, setup.config)
        self._offered_agent(self._options)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One call of the function: its events as it gives them."""
        try:
            options = options_for(request, self._setup, self._options)
            agent = self._offered_agent(options)
        except AgentevalError as error:
            yield Failed(RunError.told("program", error.what, error.fix))
            return
        call = _Call(agent, options.callable, request_document(request, options.settings), self._shared_loop())
        reader, done = EventReader(), Done()
        try:
            async for output in call.events():
                if reader.ended:
                    continue
                for event in reader.read(output):
                    if isinstance(event, Done):
                        done = event
                        continue
                    yield event
                    if isinstance(event, Failed):
                        return
            yield done
        except EventError as error:
            fix = "`agenteval docs agents` says what a function may give"
            yield Failed(
                RunError.told("protocol", f"{options.callable} gave an event that can't be read: {error}", fix)
            )
        except _RaisedError as error:
            env = self._setup.env
            yield Failed(
                RunError.raised(
                    without_secrets(str(error), env),
                    error.fix,
                    reduced=without_secrets(error.reduced, env),
                    traceback=traceback_without_secrets(error.traceback, env),
                )
            )
        finally:
            call.stop()

    async def check(self, thorough: bool = False) -> CheckReport:
        """It is there, or there would be no such agent."""
        return CheckReport(True, f"{self._options.callable} is there")

    async def close(self) -> None:
        """End the thread of its coroutines."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._loop = None

    def _offered_agent(self, options: FunctionOptions) -> object:
        try:
            return _offered[options.callable]
        except KeyError:
            raise AgentevalError(
                f"{options.callable} is a function of the Python program that ran this, which is not running here",
                where=f"agent {self._setup.name!r}",
                fix="run that program again, or name another agent with --agent",
            ) from None

    def _shared_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=_run_loop, args=(self._loop,), name="agenteval-functions", daemon=True).start()
        return self._loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(end_tasks(loop))
        loop.close()


class _RaisedError(Exception):
    def __init__(self, message: str, fix: str = "", reduced: str = "", traceback: Traceback | None = None) -> None:
        super().__init__(message)
        self.fix = fix
        self.reduced = reduced
        self.traceback = traceback


class _Call:
    """One call, in a thread."""

    def __init__(self, agent: Any, target: str, request: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        self._agent = agent
        self._target = target
        self._request = request
        self._loop = loop
        self._outputs: asyncio.Queue[Any] = asyncio.Queue()
        self._listener = asyncio.get_running_loop()
        self._waited_for: Any = None
        self._stopped = False

    async def events(self) -> AsyncIterator[Any]:
        """What it says, as it comes. Raises `_RaisedError`."""
        threading.Thread(target=self._work, name=f"agenteval {self._target}", daemon=True).start()
        while (output := await self._outputs.get()) is not None:
            if isinstance(output, BaseException):
                raise _raised(output, self._target)
            yield output

    def stop(self) -> None:
        """Nobody listens any more."""
        self._stopped = True
        if self._waited_for is not None:
            self._waited_for.cancel()

    def _work(self) -> None:
        try:
            python_call.run(self._agent, self._target, self._request, tell=self._tell, wait=self._wait)
        except _StoppedError:
            return
        except BaseException as error:  # SystemExit too: it must not be lost in a thread
            self._end(error)
        else:
            self._end(None)

    def _tell(self, output: object) -> None:
        if self._stopped:
            raise _StoppedError  # ends a generator that nobody listens to
        self._end(json.loads(json.dumps(output)))  # as from another process; what is no JSON is the function's mistake

    def _end(self, output: object) -> None:
        try:
            self._listener.call_soon_threadsafe(self._outputs.put_nowait, output)
        except RuntimeError:  # the execution is over
            self._stopped = True

    def _wait(self, awaitable: Awaitable[Any]) -> object:
        async def awaited() -> object:
            return await awaitable

        self._waited_for = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        return self._waited_for.result()


class _StoppedError(Exception):
    """The run was cancelled or timed out."""


def _raised(error: BaseException, target: str) -> _RaisedError:
    if isinstance(error, WrongTarget):
        return _RaisedError(str(error), "`agenteval docs agents` says what it may give")
    return _RaisedError(
        f"{target} raised {python_errors.words_of(error)}",
        reduced=f"{target} raised {python_errors.reduced(error)}",
        traceback=traceback_from(python_errors.traceback_of(error)),
    )
