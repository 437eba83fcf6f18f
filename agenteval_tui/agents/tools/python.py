"""Tools that are Python functions: they run in a process that lives as long as the run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.environment_messages import remedy
from agenteval_tui.agents.process.errors import stderr_tail, traceback_without_secrets
from agenteval_tui.agents.process.printed_output import PrintedPieces
from agenteval_tui.agents.process.project_environment import ProjectEnvironment, project_environment
from agenteval_tui.agents.process.python_host import HostError, HostProcess, PythonHost, RaisedError
from agenteval_tui.agents.process.python_tree import Lease, Root, Tree
from agenteval_tui.agents.tools.command import LONGEST, late
from agenteval_tui.agents.tools.options import PythonEntry
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.storable import storable

_MEND = "it is looked for beside the suite, and in `path`"


class PythonTools:
    """The functions of one interpreter: one process for each run, forked from one that has made the imports, so that a
    run's calls share what a module holds, and runs do not. Sync functions run in threads, async ones in one event loop;
    a process that fell is replaced. Without a `lease` of the agent's, nothing is left for the next run.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        permission: Permission,
        *,
        interpreter: str | None = None,
        path: Sequence[Path] = (),
        lease: Lease | None = None,
    ) -> None:
        self.entries: list[PythonEntry] = []
        self._folder = folder
        self._env = env
        self._permission = permission
        self._interpreter = interpreter
        self._path = tuple(path)
        self._lease = lease
        self._owns_lease = lease is None
        self._host: PythonHost | None = None
        self._starting = asyncio.Lock()

    async def open(self) -> list[PythonTool]:
        """The tools, with what their signatures say. Raises `AgentevalError` when a function is not there."""
        try:
            answers = await self._tree().outcomes()
        except HostError as error:
            first = self.entries[0]
            words = self._words(error, error.program)
            raise AgentevalError(f"tool {first.name!r}: {first.python}: {words}", fix=_MEND) from None
        return [self._tool(entry, answer) for entry, answer in zip(self.entries, answers, strict=True)]

    async def close(self) -> None:
        """End the process."""
        try:
            if self._host is not None:
                await self._host.end(politely=True)
        finally:
            if self._owns_lease and self._lease is not None:
                await self._lease.close()

    async def call(self, target: str, arguments: Mapping[str, Any], limit_s: float) -> ToolOutcome:
        """What a function returns, as text: a text as it is, any other value as JSON. It may take `limit_s` seconds."""
        printed = PrintedPieces()
        try:
            async with asyncio.timeout(limit_s):
                outcome = await self._answer(target, arguments, printed)
        except TimeoutError:
            outcome = late(limit_s)
        return replace(outcome, printed=printed.joined(self._env))

    async def _answer(self, target: str, arguments: Mapping[str, Any], printed: PrintedPieces) -> ToolOutcome:
        returned: Any = None
        try:
            host = await self._running()
        except HostError as error:
            return ToolOutcome(f"the tool's process {self._words(error, error.program)}", error=True)
        try:
            async with aclosing(host.events("tool", target, limit=LONGEST, arguments=dict(arguments))) as answers:
                async for answer in answers:
                    printed.add(answer.get("output"))
                    returned = answer.get("returned")
        except RaisedError as error:
            traceback = traceback_without_secrets(error.traceback, self._env)
            return ToolOutcome(storable(str(error)), True, traceback)
        except HostError as error:
            return ToolOutcome(f"the tool's process {self._words(error, host.program)}", True)
        text = returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False)
        return ToolOutcome(storable(text))

    def _tool(self, entry: PythonEntry, answer: Mapping[str, Any]) -> PythonTool:
        if "raised" in answer:
            error = RaisedError.of(answer)
            raise AgentevalError(f"tool {entry.name!r}: {entry.python}: {error}", fix=self._remedy(error))
        if entry.parameters is not None:
            spec = ToolSpec(entry.name, (entry.description or ""), entry.parameters)
        else:
            described = answer["returned"]
            spec = ToolSpec(entry.name, entry.description or described["description"], described["parameters"])
        return PythonTool(spec, self, entry.python, entry.timeout)

    def _project(self) -> ProjectEnvironment:
        targets = [entry.python for entry in self.entries]
        return project_environment(self._folder, targets=targets, interpreter=self._interpreter, path=self._path)

    def _tree(self) -> Tree:
        if self._lease is None:
            self._lease = Lease()
        steps = tuple(("find" if entry.parameters is not None else "describe", entry.python) for entry in self.entries)
        root = Root.of(self._project(), self._env, steps)
        return self._lease.tree(root, self._permission)

    async def _running(self) -> PythonHost:
        # A model's calls come several at a time: the first of them starts the process, and the others wait for it.
        async with self._starting:
            if self._host is not None and not self._host.alive:
                await self._host.end()
                self._host = None
            if self._host is None:
                self._host = await self._tree().host()
            return self._host

    def _remedy(self, error: RaisedError) -> str:
        return remedy(error.clues, self._project()) or _MEND

    def _words(self, error: HostError, program: HostProcess | None) -> str:
        words = stderr_tail(program.stderr, self._env) if program is not None else ""
        return f"{error}: {words}" if words else str(error)


class PythonTool:
    """One function."""

    def __init__(self, spec: ToolSpec, tools: PythonTools, target: str, limit_s: float) -> None:
        self.spec = spec
        self._limit_s = limit_s
        self._tools = tools
        self._target = target

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the function returns."""
        return await self._tools.call(self._target, arguments, self._limit_s)
