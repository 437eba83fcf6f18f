"""When something that failed is tried again."""

from __future__ import annotations

import random

from msgspec import Struct

MAX_ATTEMPTS = 3
MAX_BACK_OFF_S = 30.0


class Retries(Struct, frozen=True):
    """When to try again: at most `attempts` in all, waiting `base_s`, twice that, ... (with jitter) between them."""

    attempts: int = MAX_ATTEMPTS
    base_s: float = 0.5

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Seconds to wait after failed attempt number `attempt`. What a server asks for is the least."""
        back_off = min(self.base_s * 2.0 ** (attempt - 1), MAX_BACK_OFF_S)
        jitter = random.random()  # noqa: S311 - spreads load, hides nothing
        if retry_after_s is not None:
            # A little more than it asks for, and not all runs at the same moment.
            return max(retry_after_s, 0.0) + back_off * 0.1 * jitter
        return back_off * (0.5 + 0.5 * jitter)
