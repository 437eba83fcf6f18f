"""Tools that agenteval answers for a model: their descriptions, and the results of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from agenteval_tui.agents.base import ToolOutcome, ToolSpec
from agenteval_tui.agents.permission import NOTHING, Permission, program_words
from agenteval_tui.agents.process.options import folder_of, places_of
from agenteval_tui.agents.tools.changes import NO_CHANGES, ToolChanges, tool_changes
from agenteval_tui.agents.tools.command import CommandTool, late
from agenteval_tui.agents.tools.mcp import McpServer, McpTools, ToolHost, check_installed
from agenteval_tui.agents.tools.mock import mock_tool
from agenteval_tui.agents.tools.options import CommandEntry, McpEntry, MockEntry, PythonEntry, read_entry
from agenteval_tui.agents.tools.python import PythonTools
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import TOOLSETS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.environment import expand
from agenteval_tui.suites.tool_files import BUILT_IN, load_tools, no_toolset
from agenteval_tui.transcripts.call_arguments import decode_arguments

_RUNNING = ("python", "interpreter", "path", "command", "shell", "cwd", "env", "mcp")


class Tool(Protocol):
    """Something that answers calls. One with a `timeout_s` gets that many seconds for each; what has printed something
    by then says so itself, and has no `timeout_s`."""

    @property
    def spec(self) -> ToolSpec:
        """What the model is told."""
        ...

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        """The answer. Never raises for wrong arguments: that is an outcome with `error`."""
        ...


class Source(Protocol):
    """What must run so that there are tools."""

    async def open(self) -> Sequence[Tool]:
        """Start it. Raises `AgentevalError` when it can't be."""
        ...

    async def close(self) -> None:
        """Give back what it holds; also when it was not opened, or only half."""
        ...


class Toolset(Protocol):
    """Tools that a package offers by a name (entry point group `agenteval.toolsets`): a class without arguments. A run
    has one of its own, from its first turn to its last."""

    @property
    def tools(self) -> Sequence[Tool]:
        """The tools, ready to be called."""
        ...

    def shut(self) -> None:
        """Give back what they hold."""
        ...


class _ShutAtEnd(Struct, frozen=True):
    """A toolset that ends with its toolbox. Its tools are in the box already."""

    toolset: Toolset

    async def open(self) -> Sequence[Tool]:
        return ()

    async def close(self) -> None:
        self.toolset.shut()


class Toolbox(Struct):
    """The tools of one run, by name: `async with toolbox:` around the run starts what must run and gives it back.

    Entering raises `AgentevalError` when something can't be started, or when `changes` name a tool that is not there;
    then nothing is left running.
    """

    tools: dict[str, Tool] = field(default_factory=dict)
    sources: Sequence[Source] = ()
    replacing: Mapping[str, Tool] = field(default_factory=dict)
    """Take the place of tools of the same name, or are added."""
    changes: ToolChanges = NO_CHANGES
    """The tools that are withheld, and the descriptions that differ."""

    async def __aenter__(self) -> Toolbox:
        opening = [asyncio.ensure_future(source.open()) for source in self.sources]
        try:
            for tools in await asyncio.gather(*opening):
                for tool in tools:
                    self._add(tool)
            self.changes.check({**self.tools, **self.replacing})
        except BaseException:
            for task in opening:
                task.cancel()
            # What was starting must have ended before it is closed.
            await asyncio.gather(*opening, return_exceptions=True)
            await self._close()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._close()

    def specs(self) -> list[ToolSpec]:
        """What the model is told of the tools, in order. Complete once the toolbox was entered."""
        return self.changes.offered([tool.spec for tool in self._all().values()])

    async def call(self, name: str, arguments_text: str) -> ToolOutcome:
        """The outcome of a call as the model made it: unknown tools and malformed arguments are failures in words."""
        tools_by_name = self._all()
        tool = tools_by_name.get(name)
        if tool is None:
            return ToolOutcome(f"there is no tool {name!r}; tools: {', '.join(tools_by_name) or 'none'}", error=True)
        arguments, malformed = decode_arguments(arguments_text)
        if malformed:
            return ToolOutcome("the arguments are not valid JSON", error=True)
        if not isinstance(arguments, Mapping):
            return ToolOutcome("the arguments must be a JSON object", error=True)
        timeout_s: Any = getattr(tool, "timeout_s", None)
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return await tool.call(arguments)
        # What cancels the run is no `Exception`, and no outcome of the tool.
        except Exception as error:
            if limit.expired():
                return late(timeout_s)
            return ToolOutcome(f"the tool failed: {error or type(error).__name__}", error=True)

    def _all(self) -> dict[str, Tool]:
        tools = {**self.tools, **self.replacing}
        return {name: tool for name, tool in tools.items() if name not in self.changes.withheld}

    def _add(self, tool: Tool) -> None:
        name = tool.spec.name
        # A place was kept for a tool whose signature was not known yet.
        if name in self.tools and not isinstance(self.tools[name], _NotYet):
            raise AgentevalError(
                f"two tools are called {name!r}", fix="rename one; an MCP server's tools can have a `prefix`"
            )
        self.tools[name] = tool

    async def _close(self) -> None:
        closing = [asyncio.ensure_future(source.close()) for source in self.sources]
        try:
            # All are closed before the first error is told.
            for failed in await asyncio.gather(*closing, return_exceptions=True):
                if isinstance(failed, Exception):
                    raise failed
        finally:
            for task in closing:
                task.cancel()


class _NotYet(Struct, frozen=True):
    """A tool that exists once the toolbox was entered; it keeps the tool's place in the order."""

    spec: ToolSpec

    async def call(self, arguments: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome("the tool was not started", error=True)


def make_toolbox(
    tools: str | Sequence[Any] | None,
    context: Mapping[str, Any],
    base_dir: Path,
    *,
    env: Mapping[str, str] | None = None,
    permission: Permission = NOTHING,
    host: ToolHost | None = None,
    run: str = "",
    turn: int = 1,
) -> Toolbox:
    """The tools of an agent's configuration, with those of the test's context (`sample_tools`) in their place or added,
    less what the context takes away (`without_tools`).

    `tools` is a list, the name of a file with one, or "builtin:" and the name of a toolset (entry point group
    `agenteval.toolsets`). Programs get `env`, from which `${VAR}` in a file of tools is expanded too. `permission` (of
    the trust check) starts what must run; with trust, files and folders outside of `base_dir` may be used. `host` keeps
    the MCP servers that runs share; without one each run has its own. It also keeps the toolset of `run` from one
    `turn` to the next, until `host.release(run)`. Nothing is started before the toolbox is entered.
    Raises `AgentevalError` when a tool is written wrongly.
    """
    making = _Making(base_dir.resolve(), dict(env or {}), permission, host)
    named = tools.removeprefix(BUILT_IN) if isinstance(tools, str) and tools.startswith(BUILT_IN) else ""
    if named and (point := entry_points.find(TOOLSETS, named)) is not None:
        lasting = host is not None and bool(run)
        make: Callable[[], Toolset] = point.load()
        toolset = host.kept(run, turn, make) if host is not None and lasting else make()
        box = Toolbox({tool.spec.name: tool for tool in toolset.tools}, [] if lasting else [_ShutAtEnd(toolset)])
    else:
        for raw in load_tools(tools, base_dir, trusted=permission.trusted):
            making.add(raw, from_file=isinstance(tools, str))
        box = Toolbox(making.tools, making.sources)
    box.replacing = {tool.spec.name: tool for tool in _sample_tools(context.get("sample_tools"))}
    box.changes = tool_changes(context)
    return box


class _Making:
    """Tools on their way from a list to a box."""

    def __init__(self, folder: Path, env: Mapping[str, str], permission: Permission, host: ToolHost | None) -> None:
        self.tools: dict[str, Tool] = {}
        self.sources: list[Source] = []
        self._folder = folder
        self._env = env
        self._permission = permission
        self._trusted = permission.trusted
        self._host = host
        self._python: dict[tuple[Any, ...], Any] = {}

    def add(self, raw: Mapping[str, Any], *, from_file: bool) -> None:
        if from_file:
            raw = {key: expand(value, self._env) if key in _RUNNING else value for key, value in raw.items()}
        entry = read_entry(raw)
        if isinstance(entry, McpEntry):
            self._add_server(entry)
            return
        if entry.name in self.tools:
            raise AgentevalError(f"two tools are called {entry.name!r}", fix="rename one")
        if isinstance(entry, MockEntry):
            self.tools[entry.name] = mock_tool(entry)
            return
        # Of a function, the process that imports it tells the signature.
        spec = ToolSpec(
            entry.name, (entry.description or ""), {"type": "object"} if entry.parameters is None else entry.parameters
        )
        self.tools[entry.name] = _NotYet(spec)
        if isinstance(entry, CommandEntry):
            argv = tuple(argv_of(entry.command, entry.shell))
            folder = folder_of(entry.cwd, self._folder, self._trusted)
            self.sources.append(
                CommandTool(spec, argv, folder, {**self._env, **entry.env}, entry.timeout, self._permission)
            )
        else:
            self._add_function(entry)

    def _add_function(self, entry: PythonEntry) -> None:
        path = places_of(entry.python, entry.path, self._folder, self._trusted)
        key = (entry.interpreter, tuple(path))
        if key not in self._python:
            python_tools = PythonTools(
                *(self._folder, self._env, self._permission),
                interpreter=entry.interpreter,
                path=path,
                lease=None if self._host is None else self._host.lease,
            )
            self._python[key] = python_tools
            self.sources.append(python_tools)
        self._python[key].entries.append(entry)

    def _add_server(self, entry: McpEntry) -> None:
        options = entry.mcp
        name = entry.name or (str(options.url) if options.command is None else program_words(options.command))
        check_installed(f"the MCP server {name}")
        folder = folder_of(options.cwd, self._folder, self._trusted)
        make = lambda: McpServer(name, options, folder, self._env, self._permission)  # noqa: E731 - one for each run
        self.sources.append(McpTools(make, options, entry.timeout, self._host))


def _sample_tools(sample: Any) -> list[Tool]:
    if isinstance(sample, Mapping):
        sample = [{**tool, "name": name} for name, tool in sample.items()]
    tools: list[Tool] = []
    for raw in load_tools(list(sample or ()), Path()):
        entry = read_entry(raw, mock=True)
        assert isinstance(entry, MockEntry)
        tools.append(mock_tool(entry))
    return tools


def tool_problems(config: Mapping[str, Any], base_dir: Path) -> list[str]:
    """Each wrong tool in one sentence; empty when all is well, or when only a run can tell (`${VAR}` in a path).

    Whether a program is there is not looked at: it may be on the machine that runs the suite.
    """
    tools = config.get("tools")
    if not isinstance(tools, str | list):
        return []  # what it must be is said with the other options
    if isinstance(tools, str) and "${" in tools:
        return []
    if isinstance(tools, str) and tools.startswith(BUILT_IN):
        point = entry_points.find(TOOLSETS, tools.removeprefix(BUILT_IN))
        return [] if point is not None else [no_toolset(tools).sentence]
    try:
        entries = load_tools(tools, base_dir, trusted=True)
    except AgentevalError as error:
        return [str(error)]
    problems, names = [], set[str]()
    for raw in entries:
        try:
            entry = read_entry(raw)
            if isinstance(entry, MockEntry):
                mock_tool(entry)
        except AgentevalError as error:
            if "${" not in str(raw):
                problems.append(str(error))
            continue
        if not isinstance(entry, McpEntry):
            if entry.name in names:
                problems.append(f"two tools are called {entry.name!r}")
            names.add(entry.name)
    return problems
