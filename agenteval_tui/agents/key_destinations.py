"""What of the user's an agent's configuration would send away: another way for a suite to do harm."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from agenteval_tui.agents.http.local_servers import is_own
from agenteval_tui.agents.secrets import PROGRAMS
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import KEY_FINDERS, EntryPoint, is_local_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import texts_in
from agenteval_tui.core.phrasing import cut
from agenteval_tui.suites.environment import environment_if_readable, expand, expansions
from agenteval_tui.suites.tool_files import load_tools
from agenteval_tui.suites.trust import Sending

if TYPE_CHECKING:
    import httpx

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


def sends_keys(
    config: Mapping[str, Any], base_dir: Path, environ: Mapping[str, str] | None = None
) -> tuple[Sending, ...]:
    """What this agent would send of the user's own to servers that the file names: keys, and values of environment
    variables in any option, each with where it would go. () if there is none.

    Not among them: an agent that can't be built because a variable is not set; a server on this machine that this
    process started; a server's own key at its own https address. `config` is the configuration before `${VAR}` is
    expanded, `environ` the environment (None: this process'). Nothing is raised: an address that can't be read counts
    as foreign.
    """
    env = environment_if_readable(base_dir, environ, config)
    sends: dict[Sending, None] = {}
    kind = str(config.get("kind"))
    if (target := entry_points.own(KEY_FINDERS).get(kind)) is not None:
        sends[EntryPoint(KEY_FINDERS, kind, target, "").load()(config)] = None
    for part in _parts(config, base_dir):
        sends.update(dict.fromkeys(part.sent(env)))
    return tuple(sends)


def sends_headers(
    config: Mapping[str, Any], base_dir: Path, environ: Mapping[str, str] | None = None
) -> tuple[str, ...]:
    """In words, which headers this agent would send to servers that the file names, beside what `sends_keys` has."""
    env = environment_if_readable(base_dir, environ, config)
    return tuple(dict.fromkeys(header for part in _parts(config, base_dir) for header in part.headers(env)))


def sends_to(name: str, address: str) -> Sending | None:
    """The sending of the key in the variable `name` to an address; None if that needs no consent."""
    place = _place(address, hidden=False)
    return None if place is None or name in place.keys else Sending(name, place.name)


class _Place(Struct, frozen=True):
    """A server: what it is called, the variables whose keys belong to it, and whether it is on this machine."""

    name: str
    keys: tuple[str, ...] = ()
    local: bool = False


class _Part:
    """One server that is spoken to, and all that is sent there."""

    def __init__(self, kind: str, config: Mapping[str, Any], more: Any = None) -> None:
        self._kind = kind
        self._config = config
        self._all = (config, more)

    def sent(self, env: Mapping[str, str]) -> Iterator[Sending]:
        """Each secret, and where it would go without a question asked before."""
        keys = self._keys()
        expanded = [expansion for part in self._all for expansion in expansions(part, env, unset=True)]
        if any(not expanded_variable.value for expanded_variable in expanded):
            return  # it can't be expanded, so nothing is made of it
        if not keys and not expanded and self._address_is_plain() and self._usual_key(env) is None:
            return
        for place in self._places(env):
            for name in keys:
                if name not in place.keys:
                    yield Sending(name, place.name)
            usual = self._usual_key(env)
            if usual is not None and not place.keys:
                yield Sending(usual, place.name)
            for part in self._all:
                for expansion in expansions(part, env):
                    as_key = expansion.path[:1] == ("headers",) and expansion.path[-1].lower() in _KEY_HEADERS
                    if not (as_key and expansion.name in place.keys):
                        yield Sending(expansion.name, place.name)

    def headers(self, env: Mapping[str, str]) -> Iterator[str]:
        """In words, the headers that go to a server elsewhere that no key belongs to."""
        headers = self._config.get("headers")
        if not headers or any(
            not expansion.value for part in self._all for expansion in expansions(part, env, unset=True)
        ):
            return
        names = ", ".join(str(name) for name in headers) if isinstance(headers, Mapping) else "headers"
        for place in self._places(env):
            if not place.keys and not place.local:
                yield f"sends headers ({cut(names, 80)}) to {cut(place.name, 300)}"

    def _places(self, env: Mapping[str, str]) -> Iterator[_Place]:
        """Where it asks, but for servers that this process started."""
        for written, address in self._addresses(env):
            hidden = any(True for _ in expansions(written, env))
            place = _place(address, hidden=hidden, written=written)
            if place is not None:
                yield place

    def _keys(self) -> list[str]:
        return [str(value) for name, value in self._config.items() if name.endswith("_env") and value]

    def _address_is_plain(self) -> bool:
        return not any("${" in text for text in self._written())

    def _written(self) -> list[str]:
        names = _ADDRESSES.get(self._kind)
        if names is None:  # a plug-in's kind: whatever looks like an address may be one
            return [text for text in texts_in(self._config) if "://" in text or "${" in text]
        return [str(self._config[name]) for name in names if self._config.get(name)]

    def _addresses(self, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
        """Each as it is written, and expanded."""
        written = self._written()
        if not written and self._kind in _USUAL:
            yield _USUAL[self._kind][0], _USUAL[self._kind][0]
        has_address = False
        for text in written:
            try:
                address = str(expand(text, env))
            except AgentevalError:
                address = text
            if self._kind in _ADDRESSES or "://" in address:
                has_address = True
                yield text, address
        if not has_address and self._kind not in _ADDRESSES:
            somewhere = f"wherever agents of kind {self._kind} ask"
            yield somewhere, somewhere

    def _usual_key(self, env: Mapping[str, str]) -> str | None:
        """The key that is sent although the configuration does not name it."""
        if self._kind not in _USUAL or self._keys():
            return None
        address, name = _USUAL[self._kind]
        return name if any(place.rstrip("/") == address for _, place in self._addresses(env)) else None


def _parts(config: Mapping[str, Any], base_dir: Path) -> Iterator[_Part]:
    """The agent's own server, and the MCP servers among its tools."""
    kind = str(config.get("kind", ""))
    tools = config.get("tools")
    own = {name: value for name, value in config.items() if name != "tools"}
    # What a model is told of tools goes to its server; what an MCP server gets goes to that one alone.
    described = [_without_server(tool) for tool in tools] if isinstance(tools, list | tuple) else None
    # What programs send is asked about as programs.
    if kind not in PROGRAMS and not is_local_agent(kind):
        yield _Part(kind, own, described)
    if isinstance(tools, str) and (tools.startswith("builtin:") or "${" in tools):
        return
    try:
        entries = load_tools(tools, base_dir, trusted=True)
    except AgentevalError:
        entries = [dict(tool) for tool in tools if isinstance(tool, Mapping)] if isinstance(tools, list | tuple) else []
    for entry in entries:
        server = entry.get("mcp")
        if isinstance(server, Mapping) and server.get("command") is None:
            yield _Part("mcp", server)


def _without_server(entry: object) -> object:
    if not isinstance(entry, Mapping):
        return entry
    return {name: value for name, value in entry.items() if name != "mcp"}


def _place(address: str, *, hidden: bool, written: str = "") -> _Place | None:
    """Where an address leads; None for a server that this process started. `hidden`: a value of the environment is part
    of it, and may be what must not be shown; then it is called as it is `written`."""
    url = _read_address(address)
    if url is None:
        return _Place(written or address)
    local = _is_this_machine(url)
    if local and is_own(url.host, url.port):
        return None
    if local:  # another user of this machine may listen at any of its ports
        name = f"{f'[{url.host}]' if ':' in url.host else url.host}:{url.port or _PORTS[url.scheme]}"
    elif hidden:
        name = written
    else:
        name = url.netloc.decode("ascii", "replace")
        if url.scheme == "http":  # anybody on the way reads it
            name = f"http://{name}"
    return _Place(name, _own_keys(url), local)


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
        address = ip_address(url.host)
    except ValueError:
        return False
    if isinstance(address, IPv4Address):
        return address.is_loopback
    return address == IPv6Address("::1") and "%" not in url.host


def is_secure_or_local(address: str) -> bool:
    """Whether no one else reads what an address gives: https, or plain http on this machine. False for no address."""
    url = _read_address(address)
    return url is not None and (url.scheme == "https" or _is_this_machine(url))


def _own_keys(url: httpx.URL) -> tuple[str, ...]:
    """The variables whose keys belong to the server at this address; () for plain http and any other port."""
    return _OWN.get(url.host, ()) if url.scheme == "https" and url.port is None else ()
