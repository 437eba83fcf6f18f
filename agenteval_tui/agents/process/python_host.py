"""A Python process that runs functions of the user's: what is asked of it, and what it answers."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct, field

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.child_process import GRACE_S, Program, start
from agenteval_tui.agents.process.line_splitter import LineSplitter

_CHILD = Path(__file__).with_name("python_child.py")
_LIMIT = 16_000_000


class HostError(Exception):
    """The process gave no answer; the text says how it ended."""


class RaisedError(Exception):
    """The function raised; the text is the exception's type, message and place. `wrong`: the target is not a function
    or an agent, or its result can't be read; then the text is the whole message. `kinds`: the names of the
    exception's classes."""

    def __init__(self, said: str, wrong: bool = False, kinds: Sequence[str] = ()) -> None:
        super().__init__(said)
        self.wrong = wrong
        self.kinds = tuple(kinds)


class _Asked(Struct):
    """A request that waits for answers. It keeps at most `room` bytes, however slowly the caller reads."""

    room: int
    answers: asyncio.Queue[Mapping[str, Any] | None] = field(default_factory=asyncio.Queue)

    def give(self, line: bytes, answer: Mapping[str, Any]) -> None:
        before, self.room = self.room, self.room - len(line)
        if self.room >= 0:
            self.answers.put_nowait(answer)
        elif before >= 0:
            self.answers.put_nowait({"too_much": True})


class PythonHost:
    """The process (`python_child` says what can be asked). Several may ask at once.

    Use as `async with await start_host(...) as host`; leaving it ends the process and all that it started.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._number = 0
        self._asked: dict[int, _Asked] = {}
        self._dead = False
        self._reading = asyncio.create_task(self._read())

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return not self._dead

    async def events(
        self, do: str, target: str, *, limit: int = _LIMIT, **asked: Any
    ) -> AsyncGenerator[Mapping[str, Any], None]:
        """What the process says to a request: any number of {"event"}, at the end {"returned"}.

        Raises `RaisedError` when the function raised, `HostError` when the process ended, or said more than `limit`
        bytes.
        """
        self._number += 1
        number = self._number
        self._asked[number] = waiting = _Asked(limit)
        if self._dead:
            waiting.answers.put_nowait(None)
        request = {"id": number, "do": do, "target": target, **asked}
        self.program.write(json.dumps(request, default=str).encode("ascii") + b"\n")
        try:
            while True:
                answer = await waiting.answers.get()
                if answer is None:
                    await self.program.exited(GRACE_S)
                    raise HostError("ended without an answer")
                if "too_much" in answer:
                    raise HostError(f"gave more than {limit / 1e6:g} MB")
                if "raised" in answer:
                    kinds = answer.get("kinds")
                    known = kinds if isinstance(kinds, list) else ()
                    raise RaisedError(str(answer["raised"]), bool(answer.get("wrong")), known)
                yield answer
                if "returned" in answer:
                    return
        finally:
            if self._asked.pop(number, None) is not None and do == "tool":
                self.program.write(json.dumps({"id": number, "do": "cancel"}).encode("ascii") + b"\n")

    async def call(self, do: str, target: str, *, limit: int = _LIMIT, **asked: Any) -> Any:
        """What a request returns. Raises like `events`."""
        async with aclosing(self.events(do, target, limit=limit, **asked)) as answers:
            async for answer in answers:
                if "returned" in answer:
                    return answer["returned"]
        return None

    async def end(self, politely: bool = False) -> None:
        """End it with all that it started. `politely`: it has nothing to do, and may put things away first."""
        try:
            if politely and self.alive:
                self.program.close_stdin()
                await self.program.exited(GRACE_S)
        finally:
            self._reading.cancel()
            await self.program.end()

    async def __aenter__(self) -> PythonHost:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end(politely=kind is None)

    async def _read(self) -> None:
        lines, held = LineSplitter(), 0
        try:
            while data := await self.program.read():
                found = lines.feed(data)
                held = 0 if found else held + len(data)
                if held > 4 * _LIMIT:
                    break
                for line in found:
                    with suppress(ValueError, KeyError, TypeError, AttributeError, RecursionError):
                        answer = json.loads(line)
                        waiting = self._asked.get(answer["id"])
                        if waiting is not None:
                            waiting.give(line, answer)
        finally:
            self._dead = True
            for one in self._asked.values():
                one.answers.put_nowait(None)


async def start_host(
    folder: Path,
    env: Mapping[str, str],
    *,
    permission: Permission,
    interpreter: str | None = None,
    path: Sequence[Path] = (),
) -> PythonHost:
    """A process with `folder` as its working directory and first place for modules, then the places of `path`.

    `interpreter` is a program as in a command (this process' own Python if None). Raises `AgentevalError` when it
    can't be started.
    """
    # Another interpreter may be older than 3.11, which has no -P: the child takes its own folder out of sys.path before
    # it imports anything, and puts the suite's in by itself.
    python = [interpreter] if interpreter else [sys.executable, "-P"]
    argv = [*python, str(_CHILD), *(str(one) for one in path)]
    return PythonHost(await start(argv, cwd=folder, env=env, permission=permission))
