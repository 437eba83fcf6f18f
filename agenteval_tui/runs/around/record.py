"""What an execution had around its runs, as it is stored with it: services, and hooks that belong to no single run."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agenteval_tui.transcripts.model import HookRun

STARTING, READY, REUSED, FAILED, DIED, ENDED = "starting", "ready", "reused", "failed", "died", "ended"


class ServiceState(Struct, frozen=True, omit_defaults=True):
    """A service of an execution. `status` is starting, ready, reused (it was there already), failed (it never got
    ready), died, or ended. `ready_ms`: how long it took. `output`: the end of what it printed, at most 64 KB."""

    name: str
    command: str
    status: str = STARTING
    ready_ms: float | None = None
    output: str = ""
    error: str = ""
    mend: str = ""


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
