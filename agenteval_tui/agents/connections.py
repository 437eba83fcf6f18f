"""Connections to servers: kept between runs, without cookies, redirects or a stranger's certificate."""

from __future__ import annotations

import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx

from agenteval_tui.agents.gathered import GatheringTransport

_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=100)


class Connections:
    """One client for each server, since their settings differ."""

    def __init__(self) -> None:
        self._clients: dict[str, httpx.AsyncClient] = {}

    def to(self, url: str) -> httpx.AsyncClient:
        """The connections to the server of this address."""
        parts = urlsplit(url)
        place = f"{parts.scheme}://{parts.netloc}"
        if place not in self._clients:
            host = parts.hostname or ""
            here = host in ("localhost", "::1") or host.startswith("127.")
            # Loading the machine's certificates takes longer than many a run. Plain HTTP on this machine needs none,
            # and should TLS be wanted all the same, a context without certificates trusts nobody.
            verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if here and parts.scheme == "http" else True
            # With a transport of our own httpx would pass over the proxies of the environment.
            proxied = not here and any(getproxies().get(one) for one in (parts.scheme, "all"))
            self._clients[place] = httpx.AsyncClient(
                transport=None if proxied else GatheringTransport(verify=verify, limits=_LIMITS),
                verify=verify,
                limits=_LIMITS,
                trust_env=not here,  # a proxy from the environment is for other machines
                follow_redirects=False,  # a redirect would carry the key and the prompt to who knows where
                # A cookie would tie one run to another.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
        return self._clients[place]

    async def close(self) -> None:
        """Close them all."""
        while self._clients:
            _, client = self._clients.popitem()
            await client.aclose()


def without_credentials(url: str) -> str:
    """The address without a user, a password and a query in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
