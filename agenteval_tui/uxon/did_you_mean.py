"""Did you mean ...?"""

from __future__ import annotations

from collections.abc import Iterable

_NEAR = 0.6  # of 1; below it a guess confuses more than it helps


def closest(name: str, options: Iterable[str]) -> str | None:
    """The option that `name` was probably meant to be; None when none is near. Case, `-`, `_`, spaces do not count."""
    plain_name = _plain(name)
    candidates = list(options)
    for option in candidates:
        if _plain(option) == plain_name:
            return option
    if not 1 < len(plain_name) <= 100:
        return None
    from rapidfuzz.distance import OSA

    best: tuple[float, str] | None = None
    for option in candidates:
        plain = _plain(option)
        score = OSA.normalized_similarity(plain_name, plain)
        if min(len(plain), len(plain_name)) >= 4 and (plain.startswith(plain_name) or plain_name.startswith(plain)):
            score = max(score, _NEAR + 0.05)
        if score >= _NEAR and (best is None or score > best[0]):
            best = (score, option)
    return best[1] if best else None


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
