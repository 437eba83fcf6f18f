"""What an agent's configuration would execute on this machine, in words, for a person who shall trust it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.core.entry_points import is_local_agent
from agenteval_tui.suites.tool_files import declared_tools


def executes(config: Mapping[str, Any], base_dir: Path, context: Mapping[str, Any]) -> tuple[str, ...]:
    """Each program that a run of this agent may start, once; empty when it starts none.

    `config` is an agent's configuration (kind and options, a variation's merged in), `context` the test's testing
    context. Give it before `${VAR}` is expanded: then it contains no secret. A file of tools is read from `base_dir`,
    or from where it really is when it lies outside; nothing is started, and nothing is raised: what can't be read can't
    be started either, since no agent can be built from it.
    """
    lines = [*_services(config), *_agent(config), *_tools(config, base_dir), *_sample_tools(context)]
    return tuple(dict.fromkeys(lines))


def program_words(command: Any) -> str:
    """A command as a person would type it."""
    if isinstance(command, list | tuple):
        return shlex.join(str(part) for part in command)
    return str(command)


def _agent(config: Mapping[str, Any]) -> Iterator[str]:
    if config.get("kind") == "command":
        shell = " (by a shell)" if config.get("shell") else ""
        yield f"command: {program_words(config.get('command', ''))}{shell}"
    if config.get("kind") == "python":
        yield f"python agent {config.get('callable', '')}{_interpreter(config, 'python')}"


def _services(config: Mapping[str, Any]) -> Iterator[str]:
    services = config.get("services")
    for name, service in services.items() if isinstance(services, Mapping) else ():
        if isinstance(service, Mapping):
            shell = " (by a shell)" if service.get("shell") else ""
            yield f"service {name}: {program_words(service.get('command', ''))}{shell}"


def _tools(config: Mapping[str, Any], base_dir: Path) -> Iterator[str]:
    tools = config.get("tools")
    # Programs and functions bring their own tools: what they call is part of what they do.
    if is_local_agent(config.get("kind")):
        return
    # Which file that is depends on the environment of the run, and so nothing in it can be named here.
    if isinstance(tools, str) and "${" in tools:
        yield f"all tools that the file {tools} declares"
    for entry in declared_tools(config, base_dir):
        yield from _tool(entry)


def _sample_tools(context: Mapping[str, Any]) -> Iterator[str]:
    sample = context.get("sample_tools")
    if isinstance(sample, Mapping):
        sample = [{**tool, "name": str(name)} for name, tool in sample.items() if isinstance(tool, Mapping)]
    for entry in sample if isinstance(sample, list | tuple) else ():
        inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
        if isinstance(inner, Mapping):
            yield from _tool(inner)


def _tool(entry: Mapping[str, Any]) -> Iterator[str]:
    if "python" in entry:
        yield f"python tool {entry['python']}{_interpreter(entry, 'interpreter')}"
    if "command" in entry:
        shell = " (by a shell)" if entry.get("shell") else ""
        yield f"tool {entry.get('name', '')}: {program_words(entry['command'])}{shell}"
    server = entry.get("mcp")
    if isinstance(server, Mapping) and "command" in server:
        yield f"MCP server {program_words(server['command'])}"


def _interpreter(config: Mapping[str, Any], option: str) -> str:
    return f" (with {config[option]})" if config.get(option) else ""
