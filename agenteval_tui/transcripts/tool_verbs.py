"""Which tools change something, told by the verb in their names."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Tools that change nothing: those of tau-bench and tau2-bench, and what is usual elsewhere.
_READS = re.compile(
    r"(get|list|find|search|calculate|think|check|view|look|lookup|show|read|query|fetch|verify|count|is|has|can|"
    r"respond|transfer_to_human\w*|run_speed_test|grep|kb_search)(_|$|[A-Z])"
)


def changes_something(name: str, kinds: Mapping[str, str] | None = None) -> bool:
    """Whether a tool changes something: by its kind where a file says that (`kinds`), else by its name's verb."""
    kind = (kinds or {}).get(name)
    return kind == "write" if kind in ("read", "write", "think", "generic") else _READS.match(name) is None
