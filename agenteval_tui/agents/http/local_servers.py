"""The servers on this machine that this process started itself: no other program listens there."""

from __future__ import annotations

from ipaddress import ip_address

_listening: set[tuple[str, int]] = set()


def opened(host: str, port: int) -> None:
    """A server of this process listens at this address (the host as the socket names it)."""
    _listening.add((host, port))


def closed(host: str, port: int) -> None:
    """It listens there no more: the port may be anybody's from now on."""
    _listening.discard((host, port))


def is_own(host: str, port: int | None) -> bool:
    """Whether a request to this address reaches a server of this process. A name can lead to another address of this
    machine, where somebody else has the same port: only addresses count."""
    try:
        return port is not None and (str(ip_address(host)), port) in _listening
    except ValueError:
        return False
