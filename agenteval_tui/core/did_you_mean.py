"""Did you mean ...?"""

from __future__ import annotations

from collections.abc import Iterable

_NEAR = 0.6  # of 1; below it a guess confuses more than it helps


def closest(name: object, options: Iterable[object], *, least: float = _NEAR) -> str | None:
    """The option that `name` was probably meant to be; None when none is near. Case, `-`, `_`, spaces do not count.
    `name` itself is never the answer.

    `least`: how near it has to be, of 1.
    """
    plain_name = _plain(name)
    candidates = [option for option in map(str, options) if option != name]
    for option in candidates:
        if _plain(option) == plain_name:
            return option
    if not 1 < len(plain_name) <= 100:
        return None
    from rapidfuzz.distance import OSA  # 26 ms, and what is right needs no guess

    best: tuple[float, str] | None = None
    for option in candidates:
        plain = _plain(option)
        score = OSA.normalized_similarity(plain_name, plain)
        if min(len(plain), len(plain_name)) >= 4 and (plain.startswith(plain_name) or plain_name.startswith(plain)):
            score = max(score, _NEAR + 0.05)
        if score >= least and (best is None or score > best[0]):
            best = (score, option)
    return best[1] if best else None


def did_you_mean(name: object, options: Iterable[object], otherwise: str = "", *, quotes: str = "") -> str:
    """`did you mean NAME?`, with the name in `quotes`; `otherwise` when none of the options is near."""
    near = closest(name, options)
    return f"did you mean {quotes}{near}{quotes}?" if near else otherwise


def _plain(name: object) -> str:
    return str(name).lower().replace("_", "").replace("-", "").replace(" ", "")
