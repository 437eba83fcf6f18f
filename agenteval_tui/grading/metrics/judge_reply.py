"""What a judge answered, read out of its text.

Strict, because a guess would be a verdict: one JSON object with a score, or nothing. Text around it, a code block
and further keys do no harm. Several objects that disagree are not read: the judged text may have put one there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval_tui.grading.metrics.judge_scale import NoScoreError, Scale

_LONGEST = 200_000  # characters of a reply that are looked at
_STARTS = 200  # places where an object may begin
_BARE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*\.?\s*")
_SCORE = ("score", "overall", "overall_score")
_PASS = ("score", "pass", "passed", "verdict", "outcome")
_BY_DIMENSION = ("dimensions", "scores")


class UnreadableError(ValueError):
    """The reply holds no judgment: why, in a few words."""


@dataclass(frozen=True, slots=True)
class Judgment:
    """A judge's answer: scores on the scale itself, and its words."""

    score: float
    dimensions: Mapping[str, float]
    reasoning: str = ""
    strengths: tuple[str, ...] = ()
    weaknesses: tuple[str, ...] = ()


def read_judgment(text: str, scale: Scale, dimensions: Sequence[str] = ()) -> Judgment:
    """The judgment in a reply. Raises `UnreadableError`, and `OffScaleError` for a score that is not on the scale.

    Without an overall score, the mean of the dimensions is it. Each of `dimensions` must have a score.
    """
    if len(text) > _LONGEST:
        raise UnreadableError(f"the reply is longer than {_LONGEST} characters")
    if not text.strip():
        raise UnreadableError("the reply is empty")
    bare = _BARE.fullmatch(text)
    if bare is not None and scale.name == "one_to_five" and not dimensions:
        return Judgment(scale.read(bare[1]), {})
    found: list[Judgment] = []
    why = "there is no JSON object in the reply"
    for given in _objects(text):
        try:
            found.append(_judgment(given, scale, dimensions))
        except (UnreadableError, NoScoreError) as problem:
            why = str(problem)
    if not found:
        raise UnreadableError(why)
    if any((one.score, one.dimensions) != (found[-1].score, found[-1].dimensions) for one in found):
        raise UnreadableError("there are several JSON objects in the reply, with different scores")
    return found[-1]


def _judgment(given: Mapping[str, Any], scale: Scale, dimensions: Sequence[str]) -> Judgment:
    scores = _dimensions(given, scale, dimensions)
    key = next((name for name in (_PASS if scale.name == "pass_fail" else _SCORE) if given.get(name) is not None), None)
    if key is not None:
        score = scale.read(given[key])
    elif scores:
        score = sum(scores.values()) / len(scores)
    else:
        raise UnreadableError("the JSON object has no `score`")
    return Judgment(
        score,
        scores,
        _text(given.get("reasoning", given.get("reason", ""))),
        _texts(given.get("strengths")),
        _texts(given.get("weaknesses")),
    )


def _dimensions(given: Mapping[str, Any], scale: Scale, wanted: Sequence[str]) -> dict[str, float]:
    if not wanted:
        return {}
    held = next((given[name] for name in _BY_DIMENSION if isinstance(given.get(name), Mapping)), given)
    found = {}
    for name in wanted:
        one = held.get(name)
        if isinstance(one, Mapping):  # {"helpful": {"score": 4, "reasoning": "..."}}
            one = one.get("score")
        if one is None:
            raise UnreadableError(f"there is no score for the dimension {name!r}")
        found[name] = scale.read(one)
    return found


def _objects(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects in a text, outermost ones, in order."""
    decoder = json.JSONDecoder()
    at, tries = text.find("{"), 0
    while at >= 0 and tries < _STARTS:
        tries += 1
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        if isinstance(value, Mapping):
            yield value
        at = text.find("{", end)


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given
    return "" if given is None else json.dumps(given, ensure_ascii=False, default=str)


def _texts(given: Any) -> tuple[str, ...]:
    if isinstance(given, str):
        return (given,) if given.strip() else ()
    return tuple(_text(one) for one in given) if isinstance(given, list) else ()
