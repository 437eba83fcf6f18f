"""How pytest is told to allow what needs trust."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agenteval_tui.agents.permission import NotTrustedError


@contextmanager
def allowed_once() -> Iterator[None]:
    """What needs trust says which option of pytest allows it."""
    try:
        yield
    except NotTrustedError as error:
        raise error.allowed_by("--agenteval-trust") from None
