"""Did you mean ...?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_NEAR = 0.6  # of 1; below it a guess confuses more than it helps


def closest(name: str, options: Iterable[str]) -> str | None:
    """The option that `name` was probably meant to be; None when none is near. Case, `-`, `_`, spaces do not count."""
    wanted = _plain(name)
    candidates = list(options)
    for option in candidates:
        if _plain(option) == wanted:
            return option
    if not 1 < len(wanted) <= 100:
        return None
    from rapidfuzz.distance import OSA

    best: tuple[float, str] | None = None
    for option in candidates:
        plain = _plain(option)
        score = OSA.normalized_similarity(wanted, plain)
        if min(len(plain), len(wanted)) >= 4 and (plain.startswith(wanted) or wanted.startswith(plain)):
            score = max(score, _NEAR + 0.05)
        if score >= _NEAR and (best is None or score > best[0]):
            best = (score, option)
    return best[1] if best else None


def listed(names: Sequence[str], most: int = 12, word: str = "and") -> str:
    """`a, b and c` (or another `word`); with more than `most`, the first of them and how many more there are."""
    if not names:
        return "none"
    if len(names) > most:
        return ", ".join(names[:most]) + f" and {len(names) - most} more"
    if len(names) == 1:
        return names[0]
    return ", ".join(names[:-1]) + f" {word} " + names[-1]


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")
