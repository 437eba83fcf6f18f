"""numpy and scipy, imported when a test first computes with them.

Every worker imports every file of tests, and these two take a sixth of a second. And where numpy is imported,
hypothesis puts numpy's chance back before and after each of its examples: a tenth of what a small one takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Module:
    """A module by its name, which is imported with the first of its parts."""

    name: str

    def __getattr__(self, part: str) -> Any:
        if part.startswith("_"):  # pytest asks everything in a file of tests what it is
            raise AttributeError(part)
        return getattr(import_module(self.name), part)


numpy, scipy = Module("numpy"), Module("scipy")
