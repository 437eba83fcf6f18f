"""Distribution functions that the standard library lacks."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=2048)
def student_t_quantile(probability: float, degrees: int) -> float:
    """The value that Student's t with `degrees` degrees of freedom stays below with `probability` (0.5..1).

    By Newton's method on its distribution function, which is a regularised incomplete beta function; halving takes
    over where a step would leave what is known to hold the value.
    Source: Abramowitz and Stegun, "Handbook of mathematical functions" (1964), 26.7.1.
    """
    if degrees < 1 or not 0.5 <= probability < 1:
        raise ValueError(f"no t quantile for probability {probability}, {degrees} degrees")
    tail = 2 * (1 - probability)  # both tails together
    low, high = 0.0, 1.0
    while _t_tails(high, degrees) > tail:
        low, high = high, high * 2
    at = (low + high) / 2
    log_front = math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2) - math.log(degrees * math.pi) / 2
    for _ in range(200):
        over = _t_tails(at, degrees) - tail
        if over > 0:
            low = at
        else:
            high = at
        density = math.exp(log_front - (degrees + 1) / 2 * math.log1p(at * at / degrees))
        step = at + over / (2 * density)
        following = step if low < step < high else (low + high) / 2
        if abs(following - at) <= 1e-15 * at or following in (low, high):
            return following
        at = following
    return at


def _t_tails(t: float, degrees: int) -> float:
    return incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by Lentz's continued fraction.

    Source: NIST Digital Library of Mathematical Functions, 8.17.22.
    """
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - incomplete_beta(b, a, 1 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    tiny = 1e-300
    c, d = 1.0, 1 / _off_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        d = 1 / _off_zero(1 + even * d, tiny)
        c = _off_zero(1 + even / c, tiny)
        fraction *= c * d
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = 1 / _off_zero(1 + odd * d, tiny)
        c = _off_zero(1 + odd / c, tiny)
        fraction *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return math.exp(log_front) * fraction / a


def _off_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
