"""Tools that are Python functions: they run in a process that lives as long as the run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.errors import stderr_tail, truncate_for_store
from agenteval_tui.agents.process.python_host import HostError, PythonHost, RaisedError, start_host
from agenteval_tui.agents.tools.command import LONGEST
from agenteval_tui.agents.tools.options import TIMEOUT_S, PythonEntry
from agenteval_tui.core.errors import AgentevalError


class PythonTools:
    """The functions of one interpreter: one process for each run, so that a run's calls share what a module holds, and
    runs do not. Sync functions run in threads, async ones in one event loop; a process that fell is started again.
    """

    def __init__(
        self,
        folder: Path,
        env: Mapping[str, str],
        permission: Permission,
        *,
        interpreter: str | None = None,
        path: Sequence[Path] = (),
    ) -> None:
        self.entries: list[PythonEntry] = []
        self._folder = folder
        self._env = env
        self._permission = permission
        self._interpreter = interpreter
        self._path = tuple(path)
        self._host: PythonHost | None = None
        self._starting = asyncio.Lock()

    async def open(self) -> list[PythonTool]:
        """The tools, with what their signatures say. Raises `AgentevalError` when a function is not there."""
        return [await self._tool(entry) for entry in self.entries]

    async def close(self) -> None:
        """End the process."""
        if self._host is not None:
            await self._host.end(politely=True)

    async def call(self, target: str, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What a function returns, as text: a text as it is, any other value as JSON."""
        host = await self._running()
        try:
            returned = await host.call("tool", target, limit=LONGEST, arguments=dict(arguments))
        except RaisedError as error:
            return ToolOutcome(truncate_for_store(str(error)), error=True)
        except HostError as error:
            return ToolOutcome(f"the tool's process {self._said(error, host)}", error=True)
        return ToolOutcome(
            truncate_for_store(returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False))
        )

    async def _tool(self, entry: PythonEntry) -> PythonTool:
        host = await self._running()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                do = "find" if entry.parameters is not None else "describe"
                told = await host.call(do, entry.python)
        except (RaisedError, HostError, TimeoutError) as error:
            said = "could not be imported in time" if isinstance(error, TimeoutError) else self._said(error, host)
            raise AgentevalError(
                f"tool {entry.name!r}: {entry.python}: {said}", mend="it is looked for beside the suite, and in `path`"
            ) from None
        if entry.parameters is not None:
            spec = ToolSpec(entry.name, entry.said, entry.parameters)
        else:
            spec = ToolSpec(entry.name, entry.description or told["description"], told["parameters"])
        return PythonTool(spec, self, entry.python, entry.timeout)

    async def _running(self) -> PythonHost:
        async with self._starting:
            if self._host is not None and not self._host.alive:
                await self._host.end()
                self._host = None
            if self._host is None:
                self._host = await start_host(
                    self._folder,
                    self._env,
                    permission=self._permission,
                    interpreter=self._interpreter,
                    path=self._path,
                )
            return self._host

    def _said(self, error: Exception, host: PythonHost) -> str:
        words = stderr_tail(host.program.stderr, self._env) if isinstance(error, HostError) else ""
        return f"{error}: {words}" if words else str(error)


class PythonTool:
    """One function."""

    def __init__(self, spec: ToolSpec, tools: PythonTools, target: str, timeout_s: float) -> None:
        self.spec = spec
        self.timeout_s = timeout_s
        self._tools = tools
        self._target = target

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """What the function returns."""
        return await self._tools.call(self._target, arguments)
