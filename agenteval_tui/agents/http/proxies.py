"""The proxies that the environment names: which one leads to a server, and which variable says so."""

from __future__ import annotations

import importlib
import ipaddress
import os
from urllib.parse import SplitResult, urlsplit
from urllib.request import getproxies

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError

PAGE = "see `agenteval docs network`"
_SCHEMES = ("http", "https", "socks5", "socks5h")


class Proxy(Struct, frozen=True):
    """The way through a proxy. `url` may hold a password; `address` is the same without one. `variable` names it."""

    url: str
    address: str
    variable: str

    @property
    def named(self) -> str:
        """What is said of it."""
        return f"the proxy {self.address} (from {self.variable})"


def proxy_to(url: str) -> Proxy | None:
    """The proxy for the server of an address; None: there is none to be used. Servers of this machine need none.

    `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` count, in small letters before large ones. Raises
    `AgentevalError` where a variable holds no proxy that can be used.
    """
    # The rules of curl and requests, which people know; httpx has others for NO_PROXY, and none for a network in it.
    target = urlsplit(url)
    host = target.hostname or ""
    proxies = getproxies()
    scheme = next((name for name in (target.scheme, "all") if proxies.get(name)), None)
    # A model server on this machine must be reached without a proxy, whatever the environment says of others.
    if scheme is None or is_local(host) or _excepted(host, _port(target), proxies.get("no", "")):
        return None
    proxy = proxies[scheme].strip()
    variable = _variable(scheme, proxies[scheme])
    # Proxies are often written without a scheme; curl and requests take that for HTTP.
    whole = proxy if "://" in proxy else f"http://{proxy}"
    try:
        parts = urlsplit(whole)
        address = f"{parts.scheme.lower()}://{_bare(parts)}"
    except ValueError:
        parts, address = SplitResult("http", "", "", "", ""), ""
    if not parts.hostname:
        raise AgentevalError(
            f"{variable} holds no address of a proxy", fix=f"write it like http://proxy.example:3128, {PAGE}"
        )
    if parts.scheme.lower() not in _SCHEMES:
        raise AgentevalError(
            f"the proxy in {variable} can't be used: its address begins with {parts.scheme[:20]}://",
            fix=f"use http://, https://, socks5:// or socks5h://, {PAGE}",
        )
    if parts.scheme.lower().startswith("socks"):
        # httpx would say so only when the first request is made, and without the name of the extra.
        try:
            importlib.import_module("socksio")
        except ImportError:
            raise AgentevalError(
                f"the SOCKS proxy in {variable} needs the extra `socks` of agenteval-tui",
                fix=f"pip install 'agenteval-tui[socks]', or unset {variable}; {PAGE}",
            ) from None
    # The path and the query of a proxy's address mean nothing.
    return Proxy(
        parts._replace(scheme=parts.scheme.lower(), path="", query="", fragment="").geturl(), address, variable
    )


def is_local(host: str) -> bool:
    """Whether a host is this machine."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _excepted(host: str, port: int, no_proxy: str) -> bool:
    """Whether `NO_PROXY` names the host: a host and all below it, `.domain`, `*.domain`, an address, a network
    (10.0.0.0/8), each also with a port; or `*`."""
    name = host.rstrip(".").lower()
    # Commas separate the entries; some programs also take spaces.
    for entry in no_proxy.lower().replace(",", " ").split():
        pattern = entry.partition("://")[2] or entry
        if pattern == "*" or _same_address(name, pattern.strip("[]")):
            return True
        # The colons of an address of IPv6 without brackets are no port's.
        bare, colon, last = pattern.rpartition(":")
        if colon and last.isdigit() and (bare.startswith("[") or ":" not in bare):
            if int(last) != port:
                continue
            pattern = bare
        if _same_address(name, pattern.strip("[]")):
            return True
        domain = pattern.removeprefix("*").strip(".")
        if domain and (name == domain or name.endswith(f".{domain}")):
            return True
    return False


def _same_address(host: str, entry: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False


def _port(target: SplitResult) -> int:
    try:
        return target.port or (443 if target.scheme == "https" else 80)
    except ValueError:  # the request will say so
        return 0


def _bare(parts: SplitResult) -> str:
    """Host and port. Raises `ValueError` where the port is none."""
    host = parts.hostname or ""
    shown_host = f"[{host}]" if ":" in host else host
    return shown_host if parts.port is None else f"{shown_host}:{parts.port}"


def _variable(scheme: str, value: str) -> str:
    name = f"{scheme}_proxy"
    for variable in (name, name.upper()):
        if os.environ.get(variable) == value:
            return variable
    # Windows and macOS keep proxies elsewhere too.
    return next((variable for variable in os.environ if variable.lower() == name), "the settings of this system")
