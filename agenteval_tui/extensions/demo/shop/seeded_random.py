"""Chance that can be repeated: what differs between repetitions of a test, and only that."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Throws named by what they decide. The same seed and name always give the same throw, in any order.

    Names make two versions of a program comparable: where their code is the same, the same seed does the same.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def chance(self, name: str, probability: float) -> bool:
        """True with the given probability."""
        return self._random(name).random() < probability

    def choose(self, name: str, options: Sequence[T]) -> T:
        """One of the options."""
        return self._random(name).choice(options)

    def _random(self, name: str) -> random.Random:
        return random.Random(f"{self._seed}|{name}")  # noqa: S311 - not for secrets
