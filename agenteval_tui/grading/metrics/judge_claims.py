"""What the fields of a judge's reply say about its verdict, beside the score: `"correct": false`, `"grade": "F"`.

A field is recognised by the words of its name, or by a value that is a verdict by itself ("FAIL"), and never by a list
of whole names: judges invent them. What may be read in several ways (is a rating of 4 one of 5 or of 10?) contradicts a
score only if no reading agrees with it. Text isn't a verdict, so sentences aren't searched.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping
from typing import Any
from unicodedata import normalize

from msgspec import Struct

from agenteval_tui.grading.metrics.judge_scale import Scale, plain_number

_FIGURES = frozenset(
    (
        "score",
        "scores",
        "scoring",
        "rating",
        "grade",
        "overall",
        "mark",
        "marks",
        "points",
        "percent",
        "percentage",
        "pct",
    )
)
_GOOD = frozenset(
    (
        "pass",
        "passed",
        "passes",
        "passing",
        "correct",
        "correctly",
        "right",
        "success",
        "successful",
        "succeeded",
        "ok",
        "valid",
        "acceptable",
        "accepted",
        "accept",
        "approved",
        "approve",
        "satisfied",
        "satisfactory",
        "met",
        "meets",
        "fulfilled",
    )
)
_BAD = frozenset(
    (
        "fail",
        "failed",
        "fails",
        "failing",
        "failure",
        "incorrect",
        "wrong",
        "unsuccessful",
        "invalid",
        "unacceptable",
        "rejected",
        "reject",
        "unsatisfactory",
        "unsatisfied",
        "unmet",
    )
)
_NEUTRAL = frozenset(
    (
        "verdict",
        "outcome",
        "result",
        "decision",
        "judgment",
        "judgement",
        "conclusion",
        "assessment",
        "evaluation",
        "determination",
        "ruling",
        "status",
        "label",
    )
)
_BESIDE = frozenset(
    (
        "final",
        "overall",
        "total",
        "aggregate",
        "aggregated",
        "average",
        "avg",
        "mean",
        "weighted",
        "normalized",
        "normalised",
        "numeric",
        "raw",
        "judge",
        "judges",
        "eval",
        "evaluated",
        "answer",
        "response",
        "output",
        "agent",
        "test",
        "criteria",
        "criterion",
        "requirement",
        "requirements",
        "expectation",
        "expectations",
        "summary",
        "global",
        "is",
        "was",
        "has",
        "does",
        "did",
        "the",
        "all",
        "in",
        "of",
        "value",
        "my",
    )
)
"""Words that may stand beside those above without making the field about something else, as `confidence` does."""
_FINAL = frozenset(("final", "overall", "total", "aggregate"))
_WHOLE = frozenset(
    ("final", "overall", "aggregate", "aggregated", "average", "avg", "mean", "weighted", "normalized", "normalised")
)
"""Words that alone name the score; so does `total` with a fraction (a whole number may count things)."""
_INVENTED = frozenset(
    (
        "hallucination",
        "hallucinations",
        "hallucinated",
        "hallucinates",
        "fabrication",
        "fabrications",
        "fabricated",
        "fabricates",
        "contradiction",
        "contradictions",
        "contradicts",
    )
)
"""What no answer that passes has. Their absence doesn't count."""
_PARTS = frozenset(
    (
        "dimension",
        "dimensions",
        "criteria",
        "criterion",
        "rubric",
        "rubrics",
        "breakdown",
        "aspect",
        "aspects",
        "axes",
        "categories",
        "category",
        "subscores",
        "subratings",
        "ratings",
        "scores",
        "metrics",
        "components",
        "factors",
    )
)
_OF_PARTS = frozenset(("sub", "by", "per", "score", "rating", "scored", "result", "results", "evaluations"))
_MERITS = frozenset(
    (
        "accuracy",
        "correctness",
        "helpfulness",
        "relevance",
        "relevancy",
        "completeness",
        "quality",
        "clarity",
        "coherence",
        "faithfulness",
        "groundedness",
        "factuality",
        "truthfulness",
        "consistency",
        "usefulness",
    )
)
"""Aspects of which more is better, as judges call them without being asked for dimensions."""
_PERCENT = frozenset(("percent", "percentage", "pct"))
_YES = _GOOD | {"true", "yes"}
_WELL = frozenset(("excellent", "perfect", "flawless"))
_POOR = frozenset(
    (
        "bad",
        "very bad",
        "poor",
        "very poor",
        "terrible",
        "awful",
        "inadequate",
        "insufficient",
        "not good",
        "not good enough",
    )
)
"""Verdicts in fields that speak of the whole. "good" and "fair" may be on either side of a threshold."""
_NO = _BAD | {"false", "no", "not passed", "not correct", "not acceptable", "not ok", "does not pass", "did not pass"}
_ALONE = frozenset(("pass", "passed", "fail", "failed", "correct", "incorrect", "not passed", "not correct"))
"""Values that are a verdict whatever their field is called."""
_LETTERS = {"a": True, "f": False}
_DEEPEST = 4
_SHARE = re.compile(r"([0-9]+(?:\.[0-9]+)?) */ *([0-9]+(?:\.[0-9]+)?)")
_ROUNDED = 0.005001  # a share that was rounded to a whole percent
_NATURAL = (5.0, 10.0, 100.0)


class Claim(Struct, frozen=True):
    """What a field says. `passes`: whether the answer passes, in each way to read it; `share`: the score 0..1 that it
    states as the whole figure, or None."""

    name: str
    passes: frozenset[bool]
    share: float | None = None

    def agrees(self, passed: bool, share: float) -> bool:
        """Whether the field can be true beside a score of this share, with this verdict."""
        return passed in self.passes and (self.share is None or abs(self.share - share) <= _ROUNDED)


def claims(
    reply: Mapping[str, Any], scale: Scale, threshold: float, known_names: Container[str], depth: int = 0
) -> Iterator[Claim]:
    """What the fields of a reply claim, and those of objects in fields that speak of the verdict. `known_names`: names
    that are read elsewhere, here but not in such objects."""
    for name, value in reply.items():
        if not depth and (name in known_names or name.strip().lower() in known_names):
            continue
        tokens = _tokens(name)
        if isinstance(value, Mapping):
            if depth < _DEEPEST and tokens and tokens <= _FIGURES | _GOOD | _NEUTRAL | _BESIDE:
                yield from claims(value, scale, threshold, known_names, depth + 1)
            continue
        claim = _claim(name, tokens, value, scale, threshold)
        if claim is not None:
            yield claim


def parts(reply: Mapping[str, Any], scale: Scale, threshold: float) -> Iterator[bool]:
    """Whether the answer passes by each of the dimensions that weren't asked for, as far as a reply tells that."""
    for name, value in reply.items():
        tokens = _tokens(name)
        if tokens & _PARTS and tokens <= _PARTS | _OF_PARTS | _BESIDE:
            for part in value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ():
                yield from _part(part, scale, threshold)
        elif tokens & _MERITS and tokens <= _MERITS | _FIGURES | _BESIDE:
            yield from _part(value, scale, threshold)


def _part(value: object, scale: Scale, threshold: float) -> Iterator[bool]:
    if isinstance(value, Mapping):
        beside = claims(
            {name: entry for name, entry in value.items() if not isinstance(entry, Mapping)}, scale, threshold, ()
        )
        passes = [claim.passes for claim in beside]
        if passes:
            yield not any(outcomes == {False} for outcomes in passes)
        return
    stated = _verdict_in(value)
    if stated is None:
        number = plain_number(value)
        if number is None or not scale.low <= number <= scale.high:
            return
        stated = scale.passes(number, threshold)
    yield stated


def _claim(name: str, tokens: frozenset[str], value: object, scale: Scale, threshold: float) -> Claim | None:
    stated = _verdict_in(value)
    if tokens & _INVENTED and tokens <= _INVENTED | _NEUTRAL | _BESIDE:
        is_there = stated is True or (
            isinstance(value, list) and any(isinstance(entry, str) and entry for entry in value)
        )
        return Claim(name, frozenset((False,))) if is_there else None
    if "answer" in tokens and tokens <= _BESIDE and stated is False:
        return Claim(name, frozenset((False,)))  # "yes" and "no" may also be what the agent answered
    if tokens <= _FIGURES | _NEUTRAL | _BESIDE and tokens & (_FIGURES | _NEUTRAL):
        if isinstance(value, str) and stated is None:
            stated = True if _plain(value) in _WELL else False if _plain(value) in _POOR else None
        shares = _shares(value, tokens, scale)
        if shares:
            is_whole = bool(tokens & _FINAL) and "score" in tokens and len(shares) == 1
            passes = frozenset(share >= threshold - 1e-9 for share in shares)
            return Claim(name, passes, next(iter(shares)) if is_whole else None)
        if stated is None and "grade" in tokens and isinstance(value, str):
            stated = _LETTERS.get(value.strip().rstrip("+-").lower())
        return None if stated is None else Claim(name, frozenset((stated,)))
    if tokens <= _BESIDE and (tokens & _WHOLE or ("total" in tokens and _has_fraction(value))):
        shares = _shares(value, tokens, scale)
        if shares:
            return Claim(name, frozenset(share >= threshold - 1e-9 for share in shares))
        if scale.name == "pass_fail" and stated is not None:
            return Claim(name, frozenset((stated,)))
    if tokens <= _GOOD | _NEUTRAL | _BESIDE and tokens & _GOOD:
        stated = stated if stated is not None else _as_flag(value)
        return None if stated is None else Claim(name, frozenset((stated,)))
    if tokens <= _BAD | _NEUTRAL | _BESIDE and tokens & _BAD:
        if isinstance(value, str) and stated is not None and _plain(value) in _BAD:
            return Claim(name, frozenset((stated,)))  # "failed": "failed"
        return None if stated is None else Claim(name, frozenset((not stated,)))
    if isinstance(value, str) and _plain(value) in _ALONE and stated is not None:
        return Claim(name, frozenset((stated,)))
    return None


def _tokens(name: str) -> frozenset[str]:
    """The words of a name: `finalScore`, `final-score` and `Final Score` are the same ones."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", normalize("NFKC", name))
    return frozenset(re.findall(r"[^\W_]+", parted.lower()))


def _plain(value: str) -> str:
    return " ".join(re.findall(r"[^\W_]+", normalize("NFKC", value).lower()))


def _verdict_in(value: object) -> bool | None:
    """A verdict in a value: true, false, or a text that is nothing but a word for it (`**FAIL** ❌`)."""
    if isinstance(value, bool):
        return value
    word = _plain(value) if isinstance(value, str) and len(value) <= 40 else ""
    return True if word in _YES else False if word in _NO else None


def _as_flag(value: object) -> bool | None:
    number = None if isinstance(value, bool) else plain_number(value)
    return bool(number) if number in (0, 1) else None


def _has_fraction(value: object) -> bool:
    number = None if isinstance(value, bool) else plain_number(value)
    return number is not None and number != int(number)


def _shares(value: object, tokens: frozenset[str], scale: Scale) -> frozenset[float]:
    """The shares 0..1 that a figure may stand for: on the scale; `10 %`, `1/10`; beyond the scale any usual one."""
    if isinstance(value, bool):
        return frozenset()
    if isinstance(value, str):
        text = normalize("NFKC", value).strip()
        if (parts := _SHARE.fullmatch(text)) is not None:
            return _within(float(parts[1]) / float(parts[2]) if float(parts[2]) else -1)
        if text.endswith("%"):
            number = plain_number(text[:-1])
            return frozenset() if number is None else _within(number / 100)
    number = plain_number(value)
    if number is None:
        return frozenset()
    if tokens & _PERCENT:
        return _within(number / 100, number)
    on_scale = _within(scale.share(number))
    # A field that is called so may be on another scale than the one that was asked for.
    if on_scale and not tokens & {"rating", "grade", "mark", "marks", "points"}:
        return on_scale
    if "total" in tokens or number < 0:
        return on_scale  # a sum is on no scale that is known here
    usual = [number / most for most in _NATURAL if number <= most]
    # The last one is a figure of 1 to 5, whose lowest is 1.
    return on_scale | _within(*usual, (number - 1) / 4)


def _within(*shares: float) -> frozenset[float]:
    return frozenset(share for share in shares if 0 <= share <= 1)
