"""The tools of an agent: a list in place, or a YAML file beside the suite."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import TOOLSETS
from agenteval_tui.core.errors import AgentevalError, raise_first
from agenteval_tui.suites.callable_name import named_callable
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.yaml.line_index import ProblemReport
from agenteval_tui.suites.yaml.tree import SequenceNode, compose, plain_data, resolve

BUILT_IN = "builtin:"
"""What the name of a toolset is written after."""


def load_tools(tools: Any, base_dir: Path, *, trusted: bool = False) -> list[dict[str, Any]]:
    """The tools as a list of objects with `name`, whether given in place or as a path relative to `base_dir`.

    An object with `mcp` is a server and stands for all its tools: it may have no name. A Python function gets its own
    name where it has none. The file holds the list, or
    `tools:` with it. Raises `AgentevalError` when the file is absent or no such list, or its path leaves `base_dir`
    and the user does not trust the folder (`trusted`), and for "builtin:NAME": a toolset is not a list. Starts nothing.
    """
    if tools is None:
        return []
    if isinstance(tools, str):
        if tools.startswith(BUILT_IN):
            raise no_toolset(tools)
        path = require_inside(tools, base_dir, trusted=trusted)
        return _checked(_read(path), str(path))
    return _checked(tools, "tools")


def tools_as_read(tools: Any, base_dir: Path, *, trusted: bool = False) -> Any:
    """The tools of a file. Other tools stay as they are written, and so does the name of a file that can't be read:
    whoever makes the agent says what is wrong with it."""
    if isinstance(tools, str) and not tools.startswith(BUILT_IN):
        with suppress(AgentevalError):
            return load_tools(tools, base_dir, trusted=trusted)
    return tools


def no_toolset(tools: str) -> AgentevalError:
    """The error of "builtin:NAME" for a name that no toolset has."""
    names = ", ".join(entry_points.names(TOOLSETS)) or "none"
    return AgentevalError(f"there is no toolset {tools.removeprefix(BUILT_IN)!r}", fix=f"toolsets: {names}")


def declared_tools(config: Mapping[str, Any], base_dir: Path) -> list[dict[str, Any]]:
    """The tools of an agent's configuration, wherever their file lies; none where they are the program's own, or can't
    be read: no agent can be made with those."""
    tools = config.get("tools")
    if isinstance(tools, str) and (tools.startswith(BUILT_IN) or "${" in tools):
        return []
    try:
        return load_tools(tools, base_dir, trusted=True)
    except AgentevalError:
        return []


def require_inside(file: str, base_dir: Path, *, trusted: bool = False, what: str = "file") -> Path:
    """The path of `file` (or of another `what`), relative to `base_dir`. Raises `AgentevalError` when it is outside
    of it (links count), unless the user trusts the folder.
    """
    try:
        path, folder = (base_dir / file).resolve(), base_dir.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        # A loop of links (a RuntimeError up to Python 3.12), or a character that no name can have.
        name = file.replace("\0", "\\0")
        raise AgentevalError(
            f"the {what} {name} can't be looked up: {_why(error)}", where=str(base_dir), fix="check its name and links"
        ) from None
    if not trusted and not path.is_relative_to(folder):
        raise AgentevalError(
            f"the {what} {file} is outside the suite's folder",
            where=str(base_dir),
            fix=f"{'copy it beside' if what == 'file' else 'name one beside'} the suite, or trust the folder",
        )
    return path


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or "it can't be read"
    return "its links form a loop" if isinstance(error, RuntimeError) else "no name holds such a character"


def _read(path: Path) -> object:
    text = decode_utf8(read_bytes(path), path)
    report = ProblemReport(text, path)
    root, _ = compose(text, report)
    raise_first(report.problems[:1])
    if root is None:
        return []
    data = plain_data(root)
    if isinstance(data, dict) and set(data) == {"tools"}:
        data = data["tools"]
    if not isinstance(data, list) and not isinstance(resolve(root), SequenceNode):
        raise AgentevalError("this file has no list of tools", where=str(path), fix="start every tool with `- name:`")
    return data


def _checked(tools: Any, where: str) -> list[dict[str, Any]]:
    if not isinstance(tools, list | tuple):
        raise AgentevalError("tools must be a list, or the path of a file", where=where, fix="begin with `- name:`")
    checked = []
    for number, tool in enumerate(tools, 1):
        # OpenAI's form wraps the tool: {"type": "function", "function": {...}}.
        inner = tool.get("function", tool) if isinstance(tool, dict) else tool
        if isinstance(inner, dict) and "name" not in inner:
            if "mcp" in inner:
                checked.append(dict(inner))
                continue
            if isinstance(target := inner.get("python"), str):
                try:
                    inner = {"name": named_callable(target, "python").name.rpartition(".")[2], **inner}
                except ValueError as error:
                    raise AgentevalError(f"tool {number}: {error}", where=where) from None
        if not isinstance(inner, dict) or not isinstance(inner.get("name"), str) or not inner["name"]:
            raise AgentevalError(f"tool {number} has no name", where=where, fix="add `name: ...`")
        checked.append(dict(inner))
    return checked
