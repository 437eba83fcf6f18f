"""The names of prototype classes and metrics, as Power UI writes them and in short."""

from __future__ import annotations

import re
from functools import lru_cache

_SEPARATORS = re.compile(r"[\\/.:]+")
STATE = "State"
"""The prototype class that grades what a probe read."""
_SUFFIXES = ("TestCriterion", "TestMetric", "Criterion", "Metric")


@lru_cache(maxsize=512)  # a suite has the same few names thousands of times
def short_name(name: str) -> str:
    """`axenox\\GenAI\\TextResponseTestCriterion.php`, `axenox.GenAI.TextMatch` -> `TextResponse`, `TextMatch`.

    A namespace goes, however it is separated, then `.php`, then Power UI's class suffix. What is already short stays.
    """
    name = name.strip()
    if name.lower().endswith(".php"):
        name = name[:-4]
    last = _SEPARATORS.split(name.rstrip("\\/.:"))[-1]
    for suffix in _SUFFIXES:
        if last.endswith(suffix):
            return last[: -len(suffix)] or last
    return last
