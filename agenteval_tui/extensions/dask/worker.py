"""What happens on a worker of a Dask cluster: one attempt of one run, with this machine's environment and keys."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    Agent,
    AgentEvent,
    Asks,
    Done,
    Failed,
    ReasoningDelta,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallStarted,
    closing,
)
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.agents.secrets import PROGRAMS, secrets_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.version import __version__
from agenteval_tui.extensions.dask.task_codec import Task, event_data, read_task
from agenteval_tui.runs.plan.agents import expanded
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.transcripts.model import RunError
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor

MERGE_S = 0.05
"""How long texts are gathered before they are sent."""
LOOK_S = 0.1
"""How often a worker looks whether the answer is still wanted."""
CLOSE_S = 5.0
YIELD_EVERY = 100
LOST = ""
"""The result of a task that was already started elsewhere, or that is no longer wanted."""
PIECE = 16_000
"""Characters of one message, unless a single event is longer."""
LONGEST = 64_000
STREAMED = 1_000_000
"""Characters of a task that are streamed. What comes after that, or after an event longer than `LONGEST`, comes with
the task's result: a scheduler keeps the last thousand messages of an execution in memory."""
Place = type[AgentEvent] | int
"""Where a text belongs: the answer, the reasoning, or the arguments of the call with this key."""


def run_task(text: str) -> str:
    """Run the task (`task_codec.task_data` as JSON text); gives all its events as a JSON list, or `LOST`.

    Called in a thread of a worker. A scheduler starts a task again when its worker is lost. Here that must not happen:
    the other half of an answer may be on the screen already, and only the execution decides about another attempt. So
    the first worker that starts it leaves a mark with the scheduler, and any other worker that finds the mark does
    nothing.
    """
    import distributed

    library: Any = distributed
    worker = library.get_worker()
    name = str(worker.get_current_task())
    mark = library.Event(f"{name}-begun", client=library.get_client())
    if mark.is_set():
        return LOST
    mark.set()
    return asyncio.run(_Attempt(worker, name, json.loads(text)).run())


class _Attempt:
    def __init__(self, worker: Any, name: str, data: Mapping[str, Any]) -> None:
        self._worker = worker
        self._name = name
        self._data = data
        self._gathered = EventBuffer(self._send, NOTHING)
        self._unwanted = False

    async def run(self) -> str:
        self._send(0, [])  # it has begun, and here
        task = asyncio.current_task()
        assert task is not None
        beside = [asyncio.create_task(self._look(task)), asyncio.create_task(self._flush())]
        try:
            await self._ask()
        except asyncio.CancelledError:
            if not self._unwanted:
                raise
            return LOST
        finally:
            for other in beside:
                other.cancel()
        self._gathered.flush()
        events = self._gathered.events
        self._tell({"first": len(events), "events": [], "end": True})
        return json.dumps(events)

    async def _ask(self) -> None:
        try:
            task = read_task(self._data)
            agent, config = self._made(task)
        except AgentevalError as error:
            where = f"on worker {self._worker.address}: "
            self._gathered.add(Failed(RunError.told("worker", where + error.what, error.fix)))
            return
        try:
            await self._listen(agent, replace(task.request, config=config))
        except Exception as error:
            reason = str(error) or "no message"
            self._gathered.add(Failed(RunError.told("exception", f"the agent raised {type(error).__name__}: {reason}")))
        finally:
            with suppress(Exception):
                await asyncio.wait_for(agent.close(), CLOSE_S)

    def _made(self, task: Task) -> tuple[Agent, dict[str, Any]]:
        """The agent and its configuration, with the variables of this machine. Raises `AgentevalError`."""

        if task.version != __version__:
            raise AgentevalError(
                f"agenteval is {__version__} there, and the execution's is {task.version}",
                fix="install the same version on all workers",
            )
        agent_plan = task.agent
        if agent_plan.config.get("kind") in PROGRAMS and not agent_plan.base_dir.is_dir():
            raise AgentevalError(
                f"the folder {agent_plan.base_dir} is not there",
                fix="put the suite's folder at the same path on all workers, or on a shared disk",
            )
        env = environment_for(agent_plan.base_dir, os.environ, agent_plan.config)
        config = expanded(agent_plan, env)
        secrets = secrets_of(agent_plan.config, env, agent_plan.base_dir, trusted=task.permission.trusted)
        self._gathered = EventBuffer(self._send, TranscriptRedactor(secrets))
        agent = make_agent(
            agent_plan.name, agent_plan.config, base_dir=agent_plan.base_dir, env=env, permission=task.permission
        )
        return agent, config

    async def _listen(self, agent: Agent, request: Any) -> None:
        count, last = 0, 0.0
        async with closing(agent.run(request)) as events:
            async for event in events:
                if isinstance(event, Asks):
                    continue  # nobody there can let it wait
                self._gathered.add(event)
                if isinstance(event, Done | Failed):
                    return
                if (now := time.monotonic()) - last >= MERGE_S:  # the first word goes out at once
                    last = now
                    self._gathered.flush()
                count += 1
                if count % YIELD_EVERY == 0:
                    await asyncio.sleep(0)

    async def _flush(self) -> None:
        while True:
            await asyncio.sleep(MERGE_S)
            self._gathered.flush()

    async def _look(self, task: asyncio.Task[Any]) -> None:
        """End the attempt when the execution let go of it, or is gone, or the worker ends."""
        while self._is_wanted():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(LOOK_S)
        self._unwanted = True
        task.cancel()

    def _is_wanted(self) -> bool:
        # A thread can't be ended from outside: what the scheduler says of a task is kept in the worker's own state.
        state = self._worker.state.tasks.get(self._name)
        ending = self._worker.status.name in ("closing", "closed", "failed")
        return state is not None and state.state != "cancelled" and not ending

    def _send(self, first: int, events: list[Any]) -> None:
        self._tell({"first": first, "events": events, "end": False})

    def _tell(self, message: dict[str, Any]) -> None:
        fields = {"task": self._name, "worker": self._worker.address, **message}
        self._worker.log_event(self._data["topic"], {**fields, "events": json.dumps(fields["events"])})


# An agent's events on a worker: merged, without secrets, and sent piece by piece so that no scheduler is flooded


class EventBuffer:
    """All events of a task, each final once it is in `events` (as `task_codec.event_data`).

    `send(first, events)` gets those to stream, in order; `first` is the place of the first.
    """

    def __init__(self, send: Callable[[int, list[Any]], None], withheld: TranscriptRedactor) -> None:
        self.events: list[Any] = []
        self._send = send
        self._withheld = withheld
        self._events = EventRedactor(withheld)
        self._place: Place | None = None
        self._texts: list[str] = []
        self._kept: dict[Place, str] = {}  # an end that may be the beginning of a secret
        self._sent = 0
        self._room = STREAMED

    def add(self, event: AgentEvent) -> None:
        """One more event. Texts of the same kind become one until `flush`."""
        match event:
            case TextDelta(text) | ReasoningDelta(text):
                self._text(type(event), text)
            case ToolArgumentsDelta(key, text):
                self._text(key, text)
            case ToolCallStarted():
                self._seal()
                self.events.append(event_data(self._events.whole(event)))
            case _:
                self._seal()
                # Nothing follows these texts any more: what was held back is no beginning of a secret.
                for place, text in self._kept.items():
                    self.events.append(event_data(_delta(place, self._withheld.ending(text))))
                self._kept.clear()
                self.events.append(event_data(self._events.whole(event)))

    def flush(self) -> None:
        """Send what has come since the last time."""
        self._seal()
        while self._sent < len(self.events) and self._room > 0:
            first, size = self._sent, 0
            for event in self.events[first:]:
                length = len(json.dumps(event))
                if length > LONGEST:
                    self._room = 0
                if length > LONGEST or (size and size + length > PIECE):
                    break
                size += length
                self._sent += 1
            self._room -= size
            if self._sent > first:
                self._send(first, self.events[first : self._sent])

    def _text(self, place: Place, text: str) -> None:
        if place != self._place:
            self._seal()
            self._place = place
        self._texts.append(text)

    def _seal(self) -> None:
        if self._place is None:
            return
        place, text = self._place, "".join(self._texts)
        self._place = None
        self._texts.clear()
        # A secret may be cut by the pieces of a stream: an end that may be its beginning waits for more.
        text, rest = self._withheld.piece(self._kept.pop(place, "") + text)
        if rest:
            self._kept[place] = rest
        for start in range(0, len(text), PIECE):
            self.events.append(event_data(_delta(place, text[start : start + PIECE])))


def _delta(place: Place, text: str) -> AgentEvent:
    if isinstance(place, int):
        return ToolArgumentsDelta(place, text)
    return TextDelta(text) if place is TextDelta else ReasoningDelta(text)
