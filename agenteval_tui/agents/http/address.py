"""Where an address really leads: read by the parser of the HTTP client that will use it."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_OWN = {
    "api.openai.com": ("OPENAI_API_KEY",),
    "api.anthropic.com": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
}
"""By host, the variables whose values that host has given out: they go to it, by https, without a question."""


def read_address(address: str) -> httpx.URL | None:
    """The address as the client understands it; None where it would refuse it, or can't tell a host in it."""
    import httpx  # a third of what `validate` takes, and few suites name a server

    try:
        url = httpx.URL(address)
        # A template or a variable in front of the path could become another host.
        authority = address.partition("://")[2].split("/", 1)[0]
        if url.scheme not in ("http", "https") or not url.host or "{" in authority or "\\" in address:
            return None
        if not authority.isascii() and (is_this_machine(url) or own_keys(url)):
            return None  # letters that only become the known name
    except (httpx.InvalidURL, UnicodeError, ValueError, TypeError):
        return None
    return url


def is_this_machine(url: httpx.URL) -> bool:
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


def own_keys(url: httpx.URL) -> tuple[str, ...]:
    """The variables whose keys belong to the server at this address; () for plain http and any other port."""
    return _OWN.get(url.host, ()) if url.scheme == "https" and url.port is None else ()
