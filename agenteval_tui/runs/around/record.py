"""What an execution had around its runs, as it is stored with it: services, and hooks that belong to no single run."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta, Struct

from agenteval_tui.core.document import one_of
from agenteval_tui.transcripts.model import HookRun

STARTING, READY, REUSED, FAILED, DIED, ENDED = "starting", "ready", "reused", "failed", "died", "ended"


class ServiceState(Struct, frozen=True, omit_defaults=True):
    """A service of an execution."""

    name: str
    command: str
    status: Annotated[
        str,
        one_of(STARTING, READY, REUSED, FAILED, DIED, ENDED),
        Meta(description="reused: it ran already; failed: it never was ready; died: it ended while it was needed"),
    ] = STARTING
    ready_ms: Annotated[float | None, Meta(description="how long it took to be ready")] = None
    output: Annotated[str, Meta(description="the end of what it printed: the last 64 KB")] = ""
    error: str = ""
    fix: str = ""


class AroundRecord(Struct, frozen=True, omit_defaults=True):
    """Services with the end of their output, and the hooks `before_all` and `after_all`."""

    services: tuple[ServiceState, ...] = ()
    hooks: tuple[HookRun, ...] = ()


NOTHING = AroundRecord()
"""Of an execution whose runs needed nothing around them."""


def encoded(record: AroundRecord) -> str:
    """As JSON text."""
    return msgspec.json.encode(record).decode("utf-8")


def decoded(text: str) -> AroundRecord:
    """What `encoded` gave; nothing where the text is something else."""
    try:
        return msgspec.json.decode(text, type=AroundRecord) if text else NOTHING
    except msgspec.DecodeError:
        return NOTHING
