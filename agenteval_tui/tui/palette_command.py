"""A command as the palette offers it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct


class Offered(Struct, frozen=True):
    """A command in the palette: its group, what it does, its keys as a person reads them, and what does it."""

    group: str
    label: str
    keys: str
    act: Callable[[], Awaitable[None]]
