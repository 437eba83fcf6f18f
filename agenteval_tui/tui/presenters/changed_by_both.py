"""What a person and somebody else changed in the same place, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agenteval_tui.uxon.merge import BothChanged


def values_of_both(criterion: str, both: Sequence[BothChanged]) -> list[tuple[str, str, str]]:
    """(what it is, mine, the file's) of each value of a criterion's config that both sides changed."""
    return [
        (
            f"{criterion}: {'.'.join(map(str, changed.path)) or 'config'}",
            _words(changed.mine),
            _words(changed.theirs),
        )
        for changed in both
    ]


def _words(value: Any) -> str:
    """A value as it is shown; "" for one that was taken out."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
