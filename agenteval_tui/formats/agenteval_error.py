"""An agent's error as our own files say it beside foreign messages: with its code and fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.transcripts.error_codes import ErrorCode
from agenteval_tui.transcripts.model import RunError

_CODES = frozenset(ErrorCode)


def coded_error(kind: str, said: str, given: Any) -> RunError:
    """The error of a file. One with a code of ours and its fields is known by these, else by its words."""
    code = given.get("code") if isinstance(given, Mapping) else None
    fields = given.get("fields") if isinstance(given, Mapping) else None
    if not isinstance(code, str) or code not in _CODES or not isinstance(fields, Mapping):
        return RunError.told(kind, said)
    return RunError(kind, said, "", code, dict(fields))


def error_beside(error: RunError) -> dict[str, Any]:
    """What `coded_error` reads."""
    return {"kind": error.kind, "message": error.message, "code": error.code, "fields": dict(error.fields)}
