"""Runs on an existing Dask cluster: the one connection of an execution to its scheduler.

An attempt of a run is a task. Its events come through the scheduler as messages of a topic: they are ordered, and a
scheduler keeps few. A message that is missing does no harm, since the task's result has all events again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import platform
import warnings
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import aclosing
from types import ModuleType
from typing import Any, Protocol, cast

from agenteval_tui.agents.base import Agent, AgentEvent, AgentRequest, CheckReport, Done, Failed
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.stored_config import without_keys
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.ids import new_id
from agenteval_tui.core.version import __version__
from agenteval_tui.extensions.dask.task_codec import read_event, task_data
from agenteval_tui.extensions.dask.worker import run_task
from agenteval_tui.runs.executors.base import OnLost
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.transcripts.model import ErrorCode, RunError

CONNECT_S = 10.0
"""For the first connection, and for coming back when it broke."""
WORKERS_S = 10.0
FREE_S = 1.0
PACKAGE = "agenteval_tui"
"""As it is imported: older libraries look for `__version__` in it, newer ones for the installed package."""
_HERE = ("replay",)
"""Kinds that stay: they read the history, which only the execution's process has, and they compute nothing."""


class DaskExecutor:
    """An `Executor` on the cluster whose scheduler has this address. Raises `AgentevalError` without the extra."""

    address_variable = "DASK_SCHEDULER_ADDRESS"

    def __init__(self, scheduler: str) -> None:
        self._scheduler = scheduler
        self._library = _library()
        self._client: Any = None
        self._lost: OnLost | None = None
        self._inboxes: dict[str, Inbox] = {}
        self._marks: set[str] = set()  # of tasks that may yet begin a second time
        self._clearing: set[asyncio.Task[None]] = set()

    def takes(self, agent: AgentPlan) -> bool:
        """All but those that read the history."""
        return agent.config.get("kind") not in _HERE

    def agent(self, agent: AgentPlan, here: Agent | None, *, permission: Permission) -> Agent:
        """The agent whose runs are tasks of the cluster."""
        written = without_keys(agent.config)[1]
        if written:
            raise AgentevalError(
                "a key is written into the configuration, and no key is ever sent to a cluster",
                where=f"{'.'.join(written[0])} of agent {agent.name!r}",
                fix="write it as ${NAME}, and set NAME where the workers run",
            )
        return ClusterAgent(self, agent, here, permission)

    async def open(self, on_lost: OnLost) -> int:
        """Connect and look who is there; gives the threads of all workers."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions that differ are looked at below
            self._client = await self._connected()
        self._lost = on_lost
        try:
            threads = await self._threads()
            await self._check_versions()
        except BaseException:
            await self.close()
            raise
        # The client's own topic has the events of tasks; "all" tells of workers that are gone.
        self._client.subscribe_topic(self._client.id, self._take)
        self._client.subscribe_topic("all", self._take_from_all)
        return threads

    async def close(self) -> None:
        """Disconnect. The scheduler forgets what was asked of it, and workers end what runs."""
        client, self._client = self._client, None
        if client is None:
            return
        with contextlib.suppress(Exception, asyncio.TimeoutError):
            for mark in tuple(self._marks) if client.status == "running" else ():
                self._clear(client, mark)
            await asyncio.wait_for(asyncio.gather(*self._clearing, return_exceptions=True), CONNECT_S)
        with contextlib.suppress(Exception):
            await asyncio.wait_for(client.close(), CONNECT_S)

    async def ask(self, agent: AgentPlan, request: AgentRequest, permission: Permission) -> AsyncIterator[AgentEvent]:
        """One attempt on some worker: its events as they come. Ending the iteration ends it there too."""
        gone = await self._gone()
        if gone:
            yield Failed(RunError.told("cluster", gone, "start the scheduler, then `agenteval resume --errors`"))
            return
        client = self._client
        name = f"agenteval-{new_id()}"
        inbox = self._inboxes[name] = Inbox()
        data = json.dumps(task_data(client.id, agent, request, permission))
        # Each attempt is asked anew: Dask would else give the result of an equal task again.
        future = client.submit(_entry(), data, key=name, pure=False)
        watching = asyncio.ensure_future(_settled(future))
        watching.add_done_callback(lambda _: inbox.wake())
        whole = False
        try:
            while True:
                if inbox.closing:
                    # The scheduler must know that the worker is free before the next task is sent, or that one may
                    # be put behind another that takes long. Whoever gets the last event does not come back for more.
                    await asyncio.wait({watching}, timeout=FREE_S)
                    whole = inbox.whole
                events = inbox.taken()
                for event in events:
                    yield event
                if events:
                    continue  # more may have come meanwhile
                if inbox.ended or inbox.lost or watching.done():
                    break
                await inbox.news()
            if inbox.ended:
                return
            if inbox.lost:
                yield _worker_lost(inbox.worker)
                return
            rest = await self._rest(future, inbox)
            whole = future.status == "finished"
            for event in rest:
                yield event
        finally:
            self._inboxes.pop(name, None)
            watching.cancel()
            future.release()  # the worker sees it, and ends what still runs
            mark = f"{name}-begun"
            if whole and client.status == "running":
                self._clear(client, mark)
            else:
                self._marks.add(mark)  # the scheduler may be about to begin it again

    async def _rest(self, future: Any, inbox: Inbox) -> list[AgentEvent]:
        """What the stream did not bring, out of the result; or why there is none."""
        error = None
        if future.status == "finished":
            try:
                answers = await asyncio.wait_for(_result(future), CONNECT_S * 6)
                if not answers:
                    return [_worker_lost(inbox.worker)]
                # Only what the stream did not bring: events are told once.
                return [read_event(load) for load in json.loads(answers)[inbox.count :]]
            except Exception as problem:
                # The worker that had it is gone, or does not speak as we do.
                error = problem
        elif future.status == "error":
            error = await future.exception()
            if isinstance(error, self._library.KilledWorker):
                return [_worker_lost(inbox.worker)]
        if error is not None:
            message = f"a worker could not run this: {type(error).__name__}: {error}"
            return [Failed(RunError.told("worker", message, f"install agenteval {__version__} on all workers"))]
        message = f"the connection to the scheduler {self._scheduler} was lost"
        return [Failed(RunError("cluster", message, code=ErrorCode.SCHEDULER_LOST), retry=True)]

    # The cluster

    async def _connected(self) -> object:
        try:
            client = self._library.Client(
                self._scheduler, asynchronous=True, timeout=CONNECT_S, set_as_default=False, name="agenteval"
            )
        except (ValueError, OSError, RuntimeError) as error:
            raise _unreachable(self._scheduler, error) from error
        try:
            return await client
        except (TimeoutError, ValueError, OSError, ImportError, RuntimeError) as error:
            with contextlib.suppress(Exception):
                await client.close(timeout=1)
            raise _unreachable(self._scheduler, error) from error

    async def _threads(self) -> int:
        with contextlib.suppress(asyncio.TimeoutError):
            await self._client.wait_for_workers(1, timeout=WORKERS_S)
        threads = await self._client.nthreads()
        if not threads:
            raise InfrastructureError(
                "the cluster has no workers",
                where=self._scheduler,
                fix=f"start some: dask worker {self._scheduler}",
            )
        return sum(map(int, threads.values()))

    async def _check_versions(self) -> None:
        """The same agenteval and the same Python everywhere: code and data of one are for the other."""
        versions = await self._client.get_versions(packages=[PACKAGE])
        python = ".".join(platform.python_version_tuple()[:2])
        for address, worker in sorted(versions["workers"].items()):
            if not isinstance(worker, dict) or "packages" not in worker:
                continue  # it disappeared while it was asked
            theirs = worker["packages"].get(PACKAGE)
            if theirs != __version__:
                what = f"agenteval {theirs}" if theirs else "no agenteval"
                raise InfrastructureError(
                    f"worker {address} has {what}, and this is {__version__}",
                    where=self._scheduler,
                    fix=f"install agenteval {__version__} on all workers",
                )
            their_python = ".".join(str(worker["packages"]["python"]).split(".")[:2])
            if their_python != python:
                raise InfrastructureError(
                    f"worker {address} has Python {their_python}, and this is {python}",
                    where=self._scheduler,
                    fix="run workers and agenteval with the same Python",
                )

    async def _gone(self) -> str:
        """Why nothing can be run there any more, "" when it can. Waits while the connection is being made again."""
        while self._client is not None and self._client.status == "connecting":  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.05)
        if self._client is not None and self._client.status == "running":
            return ""
        message = f"the scheduler {self._scheduler} is gone"
        if self._lost is not None:
            tell, self._lost = self._lost, None
            tell(message)
        return message

    # Messages

    def _take(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if not isinstance(message, dict) or "task" not in message:
            return  # what the scheduler itself tells a client
        inbox = self._inboxes.get(message["task"])
        if inbox is not None:
            inbox.put(message)

    def _take_from_all(self, event: tuple[float, Any]) -> None:
        message = event[1]
        if isinstance(message, dict) and message.get("action") == "remove-worker":
            for name in message.get("processing-tasks") or ():
                inbox = self._inboxes.get(name)
                if inbox is not None and inbox.worker == message.get("worker"):
                    inbox.lose()

    def _clear(self, client: Any, mark: str) -> None:
        async def clear() -> None:
            with contextlib.suppress(Exception):
                await self._library.Event(mark, client=client).clear()

        self._marks.discard(mark)
        task = asyncio.ensure_future(clear())
        self._clearing.add(task)
        task.add_done_callback(self._clearing.discard)


def _worker_lost(worker: str) -> Failed:
    who = f"worker {worker}" if worker else "its worker"
    return Failed(RunError("worker_lost", f"{who} was lost while it ran this", code=ErrorCode.WORKER_LOST), retry=True)


async def _settled(future: Any) -> None:
    with contextlib.suppress(Exception):
        await future.exception()


async def _result(future: Any) -> str:
    result = await future.result()
    return str(result)


def _entry() -> Callable[[str], str]:
    # A function within a function travels as code, so that the scheduler, which unpacks it too, needs no agenteval.
    def agenteval_run(text: str) -> str:
        return run_task(text)

    return agenteval_run


def _unreachable(scheduler: str, error: BaseException) -> InfrastructureError:
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    return InfrastructureError(
        f"the scheduler can't be reached: {reason}",
        where=scheduler,
        fix="check --scheduler tcp://HOST:PORT, and that `dask scheduler` runs there",
    )


def _library() -> ModuleType:
    with _quiet():
        try:
            import distributed
        except ImportError as error:
            raise AgentevalError(
                "running on a Dask cluster needs the extra `dask`", fix="pip install 'agenteval-tui[dask]'"
            ) from error
    return distributed


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The library gives its loggers handlers of their own, which write into our output. What it says is said by us."""
    try:
        yield
    finally:
        for name in ("distributed", "distributed.client", "bokeh", "tornado", "tornado.application"):
            logger = logging.getLogger(name)
            logger.handlers.clear()
            logger.propagate = True
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        logging.getLogger("distributed.client").setLevel(logging.CRITICAL)


# An agent whose runs happen on a cluster: to the engine it is an agent like any other


class AgentSource(Protocol):
    """Where its runs are asked for."""

    def ask(self, agent: AgentPlan, request: AgentRequest, permission: Permission) -> AsyncIterator[AgentEvent]:
        """One attempt: its events as they come."""
        ...


class ClusterAgent:
    """Sends each request to the cluster. `here` is the same agent on this machine, None if it can't be built."""

    def __init__(self, cluster: AgentSource, agent: AgentPlan, here: Agent | None, permission: Permission) -> None:
        self._cluster = cluster
        self._agent = agent
        self._here = here
        self._permission = permission

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One attempt on a worker."""
        answer_events = self._cluster.ask(self._agent, request, self._permission)
        async with aclosing(cast(Any, answer_events)) as events:
            async for event in events:
                yield event

    async def check(self, thorough: bool = False) -> CheckReport:
        """That of the agent on this machine."""
        if self._here is None:
            return CheckReport(False, "this agent can only be made on the workers of its cluster")
        return await self._here.check(thorough)

    async def close(self) -> None:
        """The connection is the executor's; what was made here is closed."""
        if self._here is not None:
            await self._here.close()


# What a task on a cluster has told so far, put into order


class Inbox:
    """The messages of one task. After one that is missing, or can't be read, the rest is left to the result.

    `ended`: all events were taken. `lost`: its worker is gone. `worker`: the one that started it, "" before that.
    """

    def __init__(self) -> None:
        self.count = 0
        """Events that came in order."""
        self.worker = ""
        self.whole = False
        """True when all events have come, whether they were taken or not."""
        self.lost = False
        self._waiting: list[AgentEvent] = []
        self._broken = False
        self._news = asyncio.Event()

    @property
    def closing(self) -> bool:
        """True when the agent's last event is to be taken."""
        return bool(self._waiting) and isinstance(self._waiting[-1], Done | Failed)

    @property
    def ended(self) -> bool:
        """True when nothing more is to come and nothing is missing."""
        return self.whole and not self._waiting

    def put(self, message: Mapping[str, Any]) -> None:
        """One message: the place of its events, the events, whether it is the last."""
        self.worker = self.worker or str(message.get("worker", ""))
        # A gap, or another worker: from here on only the result is right.
        if self._broken or message.get("first") != self.count or message.get("worker") != self.worker:
            self._broken = True
            return
        try:
            events = [read_event(load) for load in json.loads(message["events"])]
        except (KeyError, TypeError, ValueError):
            self._broken = True
            return
        self.count += len(events)
        self._waiting += events
        self.whole = bool(message.get("end"))
        self.wake()

    def taken(self) -> list[AgentEvent]:
        """The events since the last time."""
        events, self._waiting = self._waiting, []
        return events

    def lose(self) -> None:
        """Its worker is gone: nothing more is to come, unless all has."""
        self.lost = not self.whole
        self.wake()

    def wake(self) -> None:
        """There is something to look at."""
        self._news.set()

    async def news(self) -> None:
        """Wait for something new."""
        await self._news.wait()
        self._news.clear()
