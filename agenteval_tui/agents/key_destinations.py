"""What of the user's an agent's configuration would send away: another way for a suite to do harm."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.agents.http.own_servers import is_own
from agenteval_tui.core.entry_points import is_local_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import cut
from agenteval_tui.suites.env_files import env_files
from agenteval_tui.suites.environment import expand, expansions
from agenteval_tui.suites.tool_files import load_tools

if TYPE_CHECKING:
    import httpx

_PROGRAMS = ("command", "python")  # what they send is asked about as programs
_ADDRESSES = {
    "openai": ("base_url",),
    "anthropic": ("base_url",),
    "gemini": ("base_url",),
    "http": ("url",),
    "mcp": ("url",),
}
# Where a kind asks when no address is written, and the key that it takes there without being told.
_USUAL = {
    "openai": ("https://api.openai.com/v1", "OPENAI_API_KEY"),
    "anthropic": ("https://api.anthropic.com", "ANTHROPIC_API_KEY"),
    "gemini": ("https://generativelanguage.googleapis.com", "GEMINI_API_KEY"),
}
_OWN = {
    "api.openai.com": ("OPENAI_API_KEY",),
    "api.anthropic.com": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "generativelanguage.googleapis.com": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""By host, the variables whose values that host has given out: they go to it, by https, without a question."""
_PORTS = {"http": 80, "https": 443}
_KEY_HEADERS = frozenset(("authorization", "x-api-key", "api-key", "x-goog-api-key"))


def sends_keys(config: Mapping[str, Any], base_dir: Path, environ: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """In words, what this agent would send of the user's own to servers that the file names: keys, headers, values of
    environment variables in any option. () if there is no risk.

    These are not a risk: an agent that can't be built because a variable is not set; a server on this machine that this
    process started, or that gets the file's own text only; a server's own key at its own https address; a key or
    variable with the value that the project's `.env` gives (unless by plain http). `config` is the configuration before
    `${VAR}` is expanded, `environ` the environment (None: this process'). Nothing is raised: an address that can't be
    read counts as foreign.
    """
    try:
        brought = env_files(base_dir, config).variables
        env: Mapping[str, str] = {**brought, **(os.environ if environ is None else environ)}
    except AgentevalError:
        brought, env = {}, dict(os.environ if environ is None else environ)
    said: dict[str, None] = {}
    if config.get("kind") == "litellm":  # its model's name may be an address, and it takes keys from many places
        said[f"asks {cut(str(config.get('model', '')), 80)} through litellm, which finds your keys by itself"] = None
    for part in _parts(config, base_dir):
        for one in part.sent(env, brought):
            said[one] = None
    return tuple(said)


class _Part:
    """One server that is spoken to, and all that is sent there."""

    def __init__(self, kind: str, config: Mapping[str, Any], more: Any = None) -> None:
        self._kind = kind
        self._config = config
        self._all = (config, more)

    def sent(self, env: Mapping[str, str], brought: Mapping[str, str]) -> Iterator[str]:
        keys = self._keys()
        taken = [one for part in self._all for one in expansions(part, env, unset=True)]
        if any(not one.value for one in taken):
            return  # it can't be expanded, so nothing is made of it
        headers = self._config.get("headers")
        silent = not keys and not taken and not headers and self._address_is_plain()
        if silent and self._usual_key(env) is None:
            return
        for written, address in self._addresses(env):
            yield from self._to(address, written, env, brought)

    def _to(self, address: str, written: str, env: Mapping[str, str], brought: Mapping[str, str]) -> Iterator[str]:
        url = _read_address(address)
        hidden = any(True for _ in expansions(written, env))
        local = url is not None and _is_this_machine(url)
        if url is not None and local and is_own(url.host, url.port):
            return
        own = _own_keys(url) if url is not None else ()
        secure = url is not None and url.scheme == "https"
        # Where a value of the environment is part of the address, it may be what must not be shown.
        where = url.netloc.decode("ascii", "replace") if url is not None and not hidden else cut(written, 80)
        if url is not None and local:  # another user of this machine may listen at any of its ports
            where = f"{f'[{url.host}]' if ':' in url.host else url.host}:{url.port or _PORTS[url.scheme]}"

        def free(name: str, *, as_key: bool) -> bool:
            if as_key and name in own:
                return True
            value = env.get(name, "").strip()
            return secure and bool(value) and value == brought.get(name, "").strip()

        for name in self._keys():
            if not free(name, as_key=True):
                yield f"sends {name} to {where}"
        usual = self._usual_key(env)
        if usual is not None and not own:
            yield f"sends {usual} to {where}"
        for part in self._all:
            for one in expansions(part, env):
                as_key = one.path[:1] == ("headers",) and one.path[-1].lower() in _KEY_HEADERS
                if not free(one.name, as_key=as_key):
                    yield f"sends {one.name} to {where}"
        headers = self._config.get("headers")
        if headers and not own and not local:
            names = ", ".join(str(name) for name in headers) if isinstance(headers, Mapping) else "headers"
            yield f"sends headers ({cut(names, 80)}) to {where}"

    def _keys(self) -> list[str]:
        found = [str(value) for name, value in self._config.items() if name.endswith("_env") and value]
        return [one for one in found if isinstance(one, str)]

    def _address_is_plain(self) -> bool:
        return not any("${" in text for text in self._written())

    def _written(self) -> list[str]:
        names = _ADDRESSES.get(self._kind)
        if names is None:  # a plug-in's kind: whatever looks like an address may be one
            return [text for text in _texts(self._config) if "://" in text or "${" in text]
        return [str(self._config[name]) for name in names if self._config.get(name)]

    def _addresses(self, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Each as it is written, and expanded."""
        written = self._written()
        if not written and self._kind in _USUAL:
            yield _USUAL[self._kind][0], _USUAL[self._kind][0]
        found = False
        for text in written:
            try:
                address = str(expand(text, env))
            except AgentevalError:
                address = text
            if self._kind in _ADDRESSES or "://" in address:
                found = True
                yield text, address
        if not found and self._kind not in _ADDRESSES:
            somewhere = f"wherever agents of kind {self._kind} ask"
            yield somewhere, somewhere

    def _usual_key(self, env: Mapping[str, str]) -> str | None:
        """The key that is sent although the configuration does not name it."""
        if self._kind not in _USUAL or self._keys():
            return None
        address, name = _USUAL[self._kind]
        return name if any(one.rstrip("/") == address for _, one in self._addresses(env)) else None


def _parts(config: Mapping[str, Any], base_dir: Path) -> Iterator[_Part]:
    """The agent's own server, and the MCP servers among its tools."""
    kind = str(config.get("kind", ""))
    tools = config.get("tools")
    own = {name: value for name, value in config.items() if name != "tools"}
    # What a model is told of tools goes to its server; what an MCP server gets goes to that one alone.
    described = [_without_server(one) for one in tools] if isinstance(tools, list | tuple) else None
    if kind not in _PROGRAMS and not is_local_agent(kind):
        yield _Part(kind, own, described)
    if isinstance(tools, str) and (tools.startswith("builtin:") or "${" in tools):
        return
    try:
        entries = load_tools(tools, base_dir, trusted=True)
    except AgentevalError:
        entries = [dict(one) for one in tools if isinstance(one, Mapping)] if isinstance(tools, list | tuple) else []
    for entry in entries:
        server = entry.get("mcp")
        if isinstance(server, Mapping) and server.get("command") is None:
            yield _Part("mcp", server)


def _without_server(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    return {name: value for name, value in entry.items() if name != "mcp"}


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping) and depth < 50:
        for one in value.values():
            yield from _texts(one, depth + 1)
    elif isinstance(value, list | tuple) and depth < 50:
        for one in value:
            yield from _texts(one, depth + 1)


# Where an address really leads: read by the parser of the HTTP client that will use it


def _read_address(address: str) -> httpx.URL | None:
    """The address as the client understands it; None where it would refuse it, or can't tell a host in it."""
    import httpx  # a third of what `validate` takes, and few suites name a server

    try:
        url = httpx.URL(address)
        # A template or a variable in front of the path could become another host.
        authority = address.partition("://")[2].split("/", 1)[0]
        if url.scheme not in ("http", "https") or not url.host or "{" in authority or "\\" in address:
            return None
        if not authority.isascii() and (_is_this_machine(url) or _own_keys(url)):
            return None  # letters that only become the known name
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
        return None
    return url


def _is_this_machine(url: httpx.URL) -> bool:
    """Whether an address is this machine's loopback, written plainly: `localhost`, 127.0.0.0/8 or `::1`.

    Other spellings (`2130706433`, `127.1`, `::ffff:127.0.0.1`, `localhost.`) are not: resolvers differ about them.
    """
    if url.host == "localhost":
        return True
    try:
        found = ip_address(url.host)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return found.is_loopback
    return found == IPv6Address("::1") and "%" not in url.host


def is_secure_or_local(address: str) -> bool:
    """Whether no one else reads what an address gives: https, or plain http on this machine. False for no address."""
    url = _read_address(address)
    return url is not None and (url.scheme == "https" or _is_this_machine(url))


def _own_keys(url: httpx.URL) -> tuple[str, ...]:
    """The variables whose keys belong to the server at this address; () for plain http and any other port."""
    return _OWN.get(url.host, ()) if url.scheme == "https" and url.port is None else ()
