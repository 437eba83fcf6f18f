"""Model servers by the variables that lead programs to them."""

from __future__ import annotations

import functools
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from agenteval_tui.agents.process.python_hidden_variables import VARIABLE as HIDDEN_VARIABLE
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import listed


class Provider(Struct, frozen=True):
    """A server that programs know by environment variables. `prefix` is in the proxy's addresses for the server's
    own; `usual` is its address where nothing says another ("": only where a variable says one)."""

    name: str
    prefix: str
    variables: tuple[str, ...]
    usual: str

    @property
    def key(self) -> str:
        """The variable of its key."""
        return "AZURE_OPENAI_API_KEY" if self.name == "azure" else f"{self.name.upper()}_API_KEY"


PROVIDERS = (
    Provider("openai", "openai/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "https://api.openai.com/v1"),
    Provider("anthropic", "anthropic", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"), "https://api.anthropic.com"),
    Provider("gemini", "gemini", ("GOOGLE_GEMINI_BASE_URL",), "https://generativelanguage.googleapis.com"),
    Provider("azure", "azure", ("AZURE_OPENAI_ENDPOINT",), ""),
    Provider("groq", "groq", ("GROQ_BASE_URL",), "https://api.groq.com"),
    # Its variable, OLLAMA_HOST, takes addresses that are none, such as 0.0.0.0: its clients are led here by themselves.
    Provider("ollama", "ollama", (), ""),
    # Requests to it are signed, with its name in them: its clients need its address.
    Provider("bedrock", "bedrock", (), ""),
)
# Clients differ in which of both they read.
_NO_PROXY = ("NO_PROXY", "no_proxy")
_HOST = "127.0.0.1"
_LOOPBACK = f"{_HOST},localhost"
# With a port: what follows `http://127.0.0.1:` may else be a password, and the host behind it.
_OF_THIS_MACHINE = re.compile(r"http://127\.0\.0\.1:\d+/\S*")
MCP = "mcp"
"""The path below a run's address at which the shims of MCP servers tell what they see."""
MCP_VARIABLE = "AGENTEVAL_MCP_RECORDING"
_FOLDER = "/agenteval-recording/"
PROXY_VARIABLE = "AGENTEVAL_PROXY"
SERVER_VARIABLE = "AGENTEVAL_SERVER"
SERVER_HEADER = "x-agenteval-run"
_STARTUP = str(Path(__file__).parents[1] / "process" / "startup")
_NODE_OPTION = "--require " + json.dumps(f"{_STARTUP}{os.sep}node_clients.cjs", ensure_ascii=False)


def upstreams(env: Mapping[str, str], own_addresses: Mapping[str, str] | None = None) -> dict[str, str]:
    """The address of each provider's server, by the provider's name: what was given, what the environment says, or the
    usual one. Raises `AgentevalError` for an unknown provider or an address that is none."""
    own_addresses = dict(own_addresses or {})
    names = [provider.name for provider in PROVIDERS if provider.variables]
    for name in own_addresses:
        if name not in names:
            raise AgentevalError(f"there is no provider {name!r}", fix=f"providers: {listed(names, 9)}")
    addresses = {}
    for provider in PROVIDERS:
        variable = next((name for name in provider.variables if env.get(name, "").strip()), "")
        address = own_addresses.get(provider.name) or env.get(variable, "").strip() or provider.usual
        if address:
            addresses[provider.name] = _checked(
                address, variable if provider.name not in own_addresses else f"--upstream {provider.name}"
            )
    return addresses


def usable_upstreams(env: Mapping[str, str]) -> dict[str, str]:
    """The servers that an environment names itself, by the provider's name; without those whose variables differ or are
    no address."""
    addresses = {}
    for provider in PROVIDERS:
        # Two variables that differ would be two servers, and the proxy's address stands for one.
        values = {env[name].strip().rstrip("/") for name in provider.variables if env.get(name, "").strip()}
        if len(values) == 1:
            with suppress(AgentevalError):
                addresses[provider.name] = _checked(values.pop(), "")
    return addresses


def leading(base: str, addresses: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The variables of an environment that lead a program to the proxy at `base`, for the providers in `addresses`:
    none that it does not have. A proxy of the network must not be asked for this machine."""
    # With a slash at the end where the program's own address had one: some clients join addresses as texts.
    variables = {
        name: f"{base}/{provider.prefix}{'/' if env[name].strip().endswith('/') else ''}"
        for provider in PROVIDERS
        if provider.name in addresses
        for name in provider.variables
        if env.get(name, "").strip()
    }
    return {**variables, **(past_proxies(env) if variables and _network(env) else {})}


def has_own_network(env: Mapping[str, str]) -> bool:
    """Whether a program with this environment reaches servers by other proxies of the network than agenteval does."""
    # agenteval's proxy would reach the servers another way than the program does, so it is not put in between.
    return _network(env) != _network(os.environ)


def _network(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if value and name.lower().endswith("_proxy")}


def environment(base: str, addresses: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The variables that lead a program to the proxy at `base` (for the providers in `addresses`); its keys stay as
    they are. A proxy of the network must not be asked for this machine."""
    variables = {
        name: f"{base}/{provider.prefix}"
        for provider in PROVIDERS
        if provider.name in addresses
        for name in provider.variables
    }
    return {**variables, **client_startup(base, env), **to_shims(base, env), **past_proxies(env)}


def hiding(variables: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The variable that hides from a Python program which of its `environment` it has not set itself."""
    # Anthropic's own agent, which Python programs start with an environment that they make, is led only by its own.
    names = [
        name
        for provider in PROVIDERS
        for name in provider.variables
        if name in variables and not env.get(name, "").strip() and provider.name != "anthropic"
    ]
    return {HIDDEN_VARIABLE: " ".join(dict.fromkeys((*env.get(HIDDEN_VARIABLE, "").split(), *names)))}


def to_shims(base: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables that tell the shims of MCP servers, which a program starts, of the proxy at `base`."""
    return {MCP_VARIABLE: f"{base}/{MCP}", **_path(base, env)}


def client_startup(base: str, env: Mapping[str, str]) -> dict[str, str]:
    """The variables by which each Python and each Node that a program starts lead their requests to models to the proxy
    at `base`, whatever address their code has for them (`process/startup/`). Other languages ignore them."""
    return {**_startup(env), PROXY_VARIABLE: base}


def server_startup(env: Mapping[str, str]) -> dict[str, str]:
    """The same for a server, whose requests go by way of the proxy of the run that they belong to: each request of
    `run_header` says which that is."""
    return {**_startup(env), SERVER_VARIABLE: _token()}


def run_header(base: str) -> tuple[str, str]:
    """The header, and its value, by which a server knows that what follows from a request goes to the proxy at
    `base`."""
    return SERVER_HEADER, f"{_token()} {base}"


@functools.cache
def _token() -> str:
    """What the servers that this process starts believe such a header by."""
    return secrets.token_hex(16)


def _startup(env: Mapping[str, str]) -> dict[str, str]:
    # A program that is recorded may start another recording: each variable has our part once.
    folders = [folder for folder in env.get("PYTHONPATH", "").split(os.pathsep) if folder and folder != _STARTUP]
    options = env.get("NODE_OPTIONS", "").replace(_NODE_OPTION, "").strip()
    return {
        "PYTHONPATH": os.pathsep.join([_STARTUP, *folders]),
        "NODE_OPTIONS": f"{options} {_NODE_OPTION}".strip(),
    }


def mcp_address(env: Mapping[str, str]) -> str:
    """Where the shim of an MCP server tells what it sees; "" where nothing is recorded."""
    folders = (folder for folder in env.get("PATH", "").split(os.pathsep) if folder.startswith(_FOLDER))
    in_path = (f"http://{_HOST}:{folder.removeprefix(_FOLDER)}/{MCP}" for folder in folders)
    address = env.get(MCP_VARIABLE) or next(in_path, "")
    # Whoever sets the variable decides where a program's calls are told: only this machine may be that.
    return address if _OF_THIS_MACHINE.fullmatch(address) else ""


def _path(base: str, env: Mapping[str, str]) -> dict[str, str]:
    """PATH with the address in it. MCP clients give it to the servers that they start, and hardly any other variable;
    a folder that is not there is passed over."""
    before = env.get("PATH")
    # Without PATH, programs look in the usual folders; with only ours in it, they would find nothing.
    if not before:
        return {}
    folders = [folder for folder in before.split(os.pathsep) if not folder.startswith(_FOLDER)]
    return {"PATH": os.pathsep.join([*folders, _FOLDER + base.removeprefix(f"http://{_HOST}:")])}


def past_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with which a program asks no proxy of the network for this machine."""
    return {name: ",".join(filter(None, (env.get(name, "").strip(), _LOOPBACK))) for name in _NO_PROXY}


def provider_of(path: str) -> tuple[Provider, str] | None:
    """The provider that a path of the proxy ("openai/v1/chat/completions") means, and the rest of the path."""
    for provider in PROVIDERS:
        if path == provider.prefix or path.startswith(f"{provider.prefix}/"):
            return provider, path[len(provider.prefix) :]
    return None


def _checked(address: str, variable: str) -> str:
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, or half an address of IPv6
        fine = False
    if not fine:
        raise AgentevalError(
            f"{variable} is not the address of a server: {address[:80]}", fix="write it like https://api.openai.com/v1"
        )
    return address.rstrip("/")
