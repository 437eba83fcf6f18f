"""Where an agent's configuration would send the user's keys to: another way for a suite to do harm."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agenteval_tui.agents.secrets import is_secret_name
from agenteval_tui.suites.environment import read_dotenv
from agenteval_tui.suites.tool_files import load_tools
from agenteval_tui.text.problems import AgentevalError

_OWN_HOSTS = frozenset(("api.openai.com", "api.anthropic.com"))  # whose keys are theirs
_REFERENCE = re.compile(r"\$\{([A-Za-z_]\w*)")
_USER = re.compile(r"\A[^/]*@")


def sends_keys(config: Mapping[str, Any], base_dir: Path) -> tuple[str, ...]:
    """In words, each key of the user's environment that this agent would send to a server that the file names.

    Empty where there is none to fear: a server on this machine, a model's maker's own, an address that comes from the
    user's environment itself (`${OPENAI_BASE_URL}`), a key that the folder brings along in its `.env`. `config` is
    the configuration before `${VAR}` is expanded; nothing is raised.
    """
    try:
        brought = read_dotenv(base_dir / ".env")
    except AgentevalError:
        brought = {}
    said: dict[str, None] = {}
    for part in (config, *_servers_of_tools(config, base_dir)):
        host = _host(str(part.get("base_url") or part.get("url") or ""))
        if host:
            for name in _named(part):
                if name not in brought:
                    said[f"sends {name} to {host}"] = None
    return tuple(said)


def _servers_of_tools(config: Mapping[str, Any], base_dir: Path) -> Iterator[Mapping[str, Any]]:
    tools = config.get("tools")
    if isinstance(tools, str) and (tools.startswith("builtin:") or "${" in tools):
        return
    try:
        entries = load_tools(tools, base_dir, trusted=True)
    except AgentevalError:
        return
    for entry in entries:
        server = entry.get("mcp")
        if isinstance(server, Mapping):
            yield server


def _host(address: str) -> str:
    """The host that the file itself names; "" for none, for this machine, and for one that needs no fear."""
    if "://" not in address or address.startswith("${"):
        return ""
    place = _USER.sub("", address.partition("://")[2]).partition("/")[0].partition("?")[0]
    if "${" not in place:
        try:
            place = urlsplit(f"//{place}").hostname or place
        except ValueError:
            return place
    own = place in _OWN_HOSTS or place in ("localhost", "::1") or re.fullmatch(r"127(\.\d+){3}", place)
    return "" if own else place


def _named(config: Mapping[str, Any]) -> Iterator[str]:
    """The variables of the environment that it takes keys from."""
    for name, value in _texts({key: value for key, value in config.items() if key != "tools"}, ""):
        if name.endswith("_env"):
            yield value
        else:
            yield from (one for one in _REFERENCE.findall(value) if is_secret_name(one))


def _texts(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping) and depth < 50:
        for key, one in value.items():
            yield from _texts(one, str(key), depth + 1)
    elif isinstance(value, list | tuple) and depth < 50:
        for one in value:
            yield from _texts(one, name, depth + 1)
