"""Model servers by the variables that lead programs to them."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import listed


class Provider(Struct, frozen=True):
    """A server that programs know by environment variables. `prefix` stands in the proxy's addresses for the server's
    own; `usual` is its address where nothing says another ("": only where a variable says one)."""

    name: str
    prefix: str
    variables: tuple[str, ...]
    usual: str


PROVIDERS = (
    Provider("openai", "openai/v1", ("OPENAI_BASE_URL", "OPENAI_API_BASE"), "https://api.openai.com/v1"),
    Provider("anthropic", "anthropic", ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_URL"), "https://api.anthropic.com"),
    Provider("gemini", "gemini", ("GOOGLE_GEMINI_BASE_URL",), "https://generativelanguage.googleapis.com"),
    Provider("azure", "azure", ("AZURE_OPENAI_ENDPOINT",), ""),
    Provider("groq", "groq", ("GROQ_BASE_URL",), "https://api.groq.com"),
)
_NO_PROXY = ("NO_PROXY", "no_proxy")
_LOOPBACK = "127.0.0.1,localhost"


def upstreams(env: Mapping[str, str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The address of each provider's server, by the provider's name: what was given, what the environment says, or the
    usual one. Raises `AgentevalError` for an unknown provider or an address that is none."""
    given = dict(given or {})
    names = [one.name for one in PROVIDERS]
    for name in given:
        if name not in names:
            raise AgentevalError(f"there is no provider {name!r}", mend=f"providers: {listed(names, 9)}")
    found = {}
    for one in PROVIDERS:
        variable = next((name for name in one.variables if env.get(name, "").strip()), "")
        address = given.get(one.name) or env.get(variable, "").strip() or one.usual
        if address:
            found[one.name] = _checked(address, variable if one.name not in given else f"--upstream {one.name}")
    return found


def environment(base: str, known: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """The variables that lead a program to the proxy at `base` (for the providers in `known`); its keys stay as they
    are. A proxy of the network must not be asked for this machine."""
    made = {name: f"{base}/{one.prefix}" for one in PROVIDERS if one.name in known for name in one.variables}
    return {**made, **past_proxies(env)}


def past_proxies(env: Mapping[str, str]) -> dict[str, str]:
    """The variables with which a program asks no proxy of the network for this machine."""
    made = {}
    for name in _NO_PROXY:
        before = env.get(name, "").strip()
        made[name] = f"{before},{_LOOPBACK}" if before else _LOOPBACK
    return made


def provider_of(path: str) -> tuple[Provider, str] | None:
    """The provider that a path of the proxy ("openai/v1/chat/completions") means, and the rest of the path."""
    for one in PROVIDERS:
        if path == one.prefix or path.startswith(f"{one.prefix}/"):
            return one, path[len(one.prefix) :]
    return None


def _checked(address: str, variable: str) -> str:
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine:
        raise AgentevalError(
            f"{variable} is not the address of a server: {address[:80]}", mend="write it like https://api.openai.com/v1"
        )
    return address.rstrip("/")
