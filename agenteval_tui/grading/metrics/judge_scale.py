"""The scales of a judge: what a score may be, and how it becomes a figure 0..1."""

from __future__ import annotations

import math
import re
from typing import Literal

from msgspec import Struct

from agenteval_tui.core.phrasing import cut

ScaleName = Literal["pass_fail", "zero_to_one", "one_to_five", "zero_to_ten"]

_TRUE = {"true", "pass", "passed", "yes"}
_FALSE = {"false", "fail", "failed", "no"}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class OffScaleError(ValueError):
    """A `number` that is not on the scale."""

    def __init__(self, message: str, number: float) -> None:
        super().__init__(message)
        self.number = number

    @property
    def fits(self) -> str:
        """The narrowest scale that the number is on; "" for none."""
        return next((name for name in ("one_to_five", "zero_to_ten") if _is_on(SCALES[name], self.number)), "")


class NoScoreError(ValueError):
    """Something that is not a score at all."""


class Scale(Struct, frozen=True):
    """Scores from `low` to `high`. `threshold` is what passes where nothing else is said, on the scale itself."""

    name: str
    low: float
    high: float
    threshold: float
    in_words: str
    example: str

    def read(self, value: object) -> float:
        """The score in what a judge wrote. Raises `OffScaleError`, or `NoScoreError` when it is not a score. `"false"`
        is false. A number may be in quotes.
        """
        if self.name == "pass_fail" and (passed := _word(value)) is not None:
            return float(passed)
        if isinstance(value, bool):
            raise NoScoreError(f"{str(value).lower()} is not a number")
        number = plain_number(value)
        if number is None:
            raise NoScoreError(f"{_short(value)} is not a score")
        if not self.low <= number <= self.high or (self.name == "pass_fail" and number not in (0, 1)):
            raise OffScaleError(f"{number:g} is not on the scale ({self.in_words})", number)
        return number

    def passes(self, score: float, threshold: float) -> bool:
        """Whether a score passes where `threshold` is the least share 0..1 that does. On pass_fail a score says it."""
        if self.name == "pass_fail" and score in (0, 1):
            return bool(score)
        return self.share(score) >= threshold - 1e-9

    def share(self, score: float) -> float:
        """The score as a figure 0..1."""
        return (score - self.low) / (self.high - self.low)

    def score(self, share: float) -> float:
        """The score of a share 0..1."""
        return self.low + share * (self.high - self.low)


SCALES: dict[str, Scale] = {
    "pass_fail": Scale("pass_fail", 0, 1, 0.7, "true or false", "true"),
    "zero_to_one": Scale("zero_to_one", 0, 1, 0.7, "a number from 0 to 1", "0.85"),
    "one_to_five": Scale("one_to_five", 1, 5, 3.5, "a number from 1 to 5", "4"),
    "zero_to_ten": Scale("zero_to_ten", 0, 10, 7, "a number from 0 to 10", "8"),
}


def _is_on(scale: Scale, number: float) -> bool:
    return scale.low <= number <= scale.high


def read_verdict(value: object) -> bool:
    """Pass or fail, as a judge wrote it: a word, true or false, 1 or 0. Raises `NoScoreError` when it is neither."""
    passed = _word(value)
    if passed is not None:
        return passed
    number = plain_number(value)
    if number not in (0, 1):
        raise NoScoreError(f"{_short(value)} is neither pass nor fail")
    return bool(number)


def _word(value: object) -> bool | None:
    if isinstance(value, str):
        word = value.strip().lower()
        return True if word in _TRUE else False if word in _FALSE else None
    return value if isinstance(value, bool) else None


def plain_number(value: object) -> float | None:
    """A number, or a text that is nothing but one; None for anything else."""
    if isinstance(value, str):
        if _NUMBER.fullmatch(value.strip()) is None:  # float() would also read "1_0" and "١"
            return None
        value = float(value)
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _short(value: object) -> str:
    return cut(repr(value), 60)
