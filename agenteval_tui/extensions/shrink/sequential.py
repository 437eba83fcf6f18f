"""Does the cause come back often enough? Wald's sequential probability ratio test, asked after each answer.

Source: A. Wald, "Sequential Tests of Statistical Hypotheses", Annals of Mathematical Statistics 16 (1945). The rate is
taken as high enough (H1: `rate`) or as too low (H0: `rate / 2`), each with a chance of about 5 % to be wrong at those
rates. Between them either answer is acceptable: a rate that is only just too low costs hundreds of answers to tell.
"""

from __future__ import annotations

import math
from typing import Literal

ALPHA = 0.05
MOST = 24
"""Answers after which a question stays open."""
Answer = Literal["yes", "no", "open"]


def decide(hits: int, n: int, rate: float) -> Answer:
    """Whether `hits` of `n` answers say that the rate is at least `rate` (0..1)."""
    bound = math.log((1 - ALPHA) / ALPHA)
    misses = n - hits
    if misses and rate >= 1:
        return "no"
    evidence = hits * math.log(2) + (misses * math.log((1 - rate) / (1 - rate / 2)) if misses else 0.0)
    return "yes" if evidence >= bound else "no" if evidence <= -bound else "open"


def fewest(hits: int, n: int, rate: float) -> int:
    """How many more answers can decide, at best."""
    for more in range(1, MOST + 1):
        if decide(hits + more, n + more, rate) != "open" or decide(hits, n + more, rate) != "open":
            return more
    return 1
