"""Whose certificates count: those that come with httpx, or what the environment names instead."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

import httpx

from agenteval_tui.core.errors import AgentevalError

VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The first one that is set counts. The last two are what requests and curl read: who has set one means it for all."""


def named_source() -> tuple[str, str]:
    """(the variable that names certificates, what it holds); ("", "") where none is set."""
    return next(((name, os.environ[name]) for name in VARIABLES if os.environ.get(name)), ("", ""))


def tls_context() -> ssl.SSLContext:
    """Our side of TLS. Raises `AgentevalError` where the variable that counts names nothing that can be read."""
    variable, place = named_source()
    if not variable:
        return httpx.create_ssl_context(trust_env=False)
    places = [one for one in place.split(os.pathsep) if one] if variable == "SSL_CERT_DIR" else [place]
    try:
        there = [Path(one).is_dir() for one in places if Path(one).exists()]
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


def _unusable(variable: str, place: str, why: str, mend: str = "name a PEM file with certificates") -> AgentevalError:
    return AgentevalError(
        f"the certificates that {variable} names can't be used: {why}: {place[:300]}",
        mend=f"{mend}, or unset {variable}; see docs/network.md",
    )
