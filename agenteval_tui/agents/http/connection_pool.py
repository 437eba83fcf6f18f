"""Connections to servers: kept between runs, without cookies, redirects or a stranger's certificate.

Certificates are checked against those that come with httpx, or those that the environment names instead.
"""

from __future__ import annotations

import os
import ssl
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from urllib.parse import urlsplit

import httpx
from msgspec import Struct

from agenteval_tui.agents.http.chunk_coalescing import GatheringTransport
from agenteval_tui.agents.http.proxies import Proxy, proxy_to
from agenteval_tui.core.errors import AgentevalError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The first one that is set counts. The last two are what requests and curl read: who has set one means it for all."""
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=100)


class Connection(Struct, frozen=True):
    """The way to one server: the client, and the proxy that it goes through (None: directly)."""

    client: httpx.AsyncClient
    proxy: Proxy | None


class Connections:
    """One client for each server, since their settings differ."""

    def __init__(self) -> None:
        self._known: dict[str, Connection] = {}
        self._tls: ssl.SSLContext | None = None

    def to(self, url: str) -> Connection:
        """The connections to the server of this address.

        Raises `AgentevalError` where the environment names a proxy or certificates that can't be used.
        """
        parts = urlsplit(url)
        # The proxy is chosen by the host and the scheme, and so are the certificates.
        place = f"{parts.scheme}://{parts.netloc}"
        if place not in self._known:
            proxy = proxy_to(url)
            secure = self._context() if parts.scheme == "https" else None
            secure_proxy = self._context() if proxy is not None and proxy.url.startswith("https:") else None
            client = httpx.AsyncClient(
                transport=GatheringTransport(
                    # Loading the machine's certificates takes longer than many a run. Plain HTTP needs none, and
                    # should TLS be wanted all the same, a context without certificates trusts nobody.
                    verify=secure or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                    limits=_LIMITS,
                    proxy=None if proxy is None else httpx.Proxy(proxy.url, ssl_context=secure_proxy),
                ),
                trust_env=False,  # what counts of the environment was looked up above
                follow_redirects=False,  # a redirect would carry the key and the prompt to who knows where
                # A cookie would tie one run to another.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            )
            self._known[place] = Connection(client, proxy)
        return self._known[place]

    async def close(self) -> None:
        """Close them all."""
        while self._known:
            _, pooled = self._known.popitem()
            await pooled.client.aclose()

    def _context(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = _tls_context()
        return self._tls


def without_credentials(url: str) -> str:
    """The address without a user, a password and a query in it."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def named_source() -> tuple[str, str]:
    """(the variable that names certificates, what it holds); ("", "") where none is set."""
    return next(((name, os.environ[name]) for name in VARIABLES if os.environ.get(name)), ("", ""))


def _tls_context() -> ssl.SSLContext:
    """Our side of TLS. Raises `AgentevalError` where the variable that counts names nothing that can be read."""
    variable, place = named_source()
    if not variable:
        return httpx.create_ssl_context(trust_env=False)
    places = [folder for folder in place.split(os.pathsep) if folder] if variable == "SSL_CERT_DIR" else [place]
    try:
        there = [Path(place).is_dir() for place in places if Path(place).exists()]
    except OSError as error:
        raise _unusable(variable, place, error.strerror or "it can't be read") from None
    if not there:
        raise _unusable(variable, place, "it does not exist")
    if variable == "SSL_CERT_FILE" and there == [True]:
        raise _unusable(variable, place, "it is a folder", "name a PEM file, or set SSL_CERT_DIR instead")
    if variable == "SSL_CERT_DIR" and not any(there):
        raise _unusable(variable, place, "it is a file", "name a folder, or set SSL_CERT_FILE instead")
    try:
        if there[0]:
            return ssl.create_default_context(capath=place)
        return ssl.create_default_context(cafile=place)
    except ssl.SSLError:
        raise _unusable(variable, place, "it holds no certificates in PEM form") from None
    except OSError as error:
        raise _unusable(variable, place, error.strerror or "it can't be read") from None


def _unusable(variable: str, place: str, why: str, fix: str = "name a PEM file with certificates") -> AgentevalError:
    return AgentevalError(
        f"the certificates that {variable} names can't be used: {why}: {place[:300]}",
        fix=f"{fix}, or unset {variable}; see `agenteval docs network`",
    )
