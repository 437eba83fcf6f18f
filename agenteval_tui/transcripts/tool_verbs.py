"""Which tools change something, told by the verb in their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Tools that change nothing: those of tau-bench and tau2-bench, and what is usual elsewhere.
_READS = re.compile(
    r"(get|list|find|search|calculate|think|check|view|look|lookup|show|read|query|fetch|verify|count|is|has|can|"
    r"respond|transfer_to_human\w*|run_speed_test|grep|kb_search)(_|$|[A-Z])"
)

_READ_LAST = frozenset(("read", "search", "get", "fetch", "lookup", "find", "grep", "retrieve", "retrieval"))
"""Verbs that may also come last, after what is read: `file_read`, `web_search`."""
_WRITES = frozenset(("add", "create", "delete", "remove", "save", "send", "set", "start", "stop", "update", "write"))
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def changes_something(name: str, kinds: Mapping[str, str] | None = None) -> bool:
    """Whether a tool changes something: by its kind where a file says that (`kinds`), else by its name's verb."""
    kind = (kinds or {}).get(name)
    if kind in ("read", "write", "think", "generic"):
        return kind == "write"
    words = [word.lower() for word in _WORD.findall(name)]
    reads_last = bool(words) and words[-1] in _READ_LAST and words[0] not in _WRITES
    return _READS.match(name) is None and not reads_last
