"""Inspect's scores as criterion results: `inspect match`, `inspect includes`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from agenteval_tui.exchange.message_dialects import plain_text
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult

SOURCE = "inspect"
_GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0, "yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_PLACEHOLDER = "88F74D2C"  # what Inspect calls the only score of a log from before scores had names
_PARTS = 1_000
_REASON = 20_000


def results_of(scores: Any, legacy: Any, header: Mapping[str, Any]) -> tuple[CriterionResult, ...]:
    """A sample's `scores` (or its `score`, as old logs have it), one result each; of an object one for each key."""
    if not isinstance(scores, Mapping):
        scores = {_PLACEHOLDER: legacy} if isinstance(legacy, Mapping) else {}
    found: list[CriterionResult] = []
    for name, score in scores.items():
        called = _only_scorer(header) if name == _PLACEHOLDER else str(name)
        given = score if isinstance(score, Mapping) else {"value": score}
        found += list(_results(f"{SOURCE} {called}", given.get("value"), _said(given)))
    return tuple(found)


def _results(name: str, value: Any, said: str) -> Iterator[CriterionResult]:
    if isinstance(value, Mapping | list):
        parts = value.items() if isinstance(value, Mapping) else enumerate(value)
        for key, one in list(parts)[:_PARTS]:
            if not isinstance(one, Mapping | list):
                yield from _results(f"{name}/{key}", one, said)
            elif one:
                inner = foreign_result(
                    f"{name}/{key}", source=SOURCE, reason=f"Inspect gave {plain_text(one)[:_REASON]}"
                )
                yield replace(inner, severity="info")  # what it says of right and wrong nobody knows
        return
    score, problem = _score(value)
    if score is None:
        yield foreign_result(name, source=SOURCE, reason=f"{problem}; {said}" if said else problem)
        return
    shown = f"Inspect gave {plain_text(value)!r}" if isinstance(value, str) else f"Inspect gave {value:g}"
    yield foreign_result(name, score=score, source=SOURCE, reason=f"{shown}: {said}" if said else shown)


def _score(value: Any) -> tuple[float | None, str]:
    """(0..1, "") of a value, as Inspect itself counts it; (None, why) when that says nothing on right or wrong."""
    if isinstance(value, str):
        text = value.strip()
        if text in _GRADES or text.lower() in _GRADES:
            return _GRADES.get(text, _GRADES.get(text.lower())), ""
        try:
            value = float(text)
        except ValueError:
            return None, f"Inspect gave {text[:_REASON]!r}, which is neither right nor wrong"
    if isinstance(value, bool):
        return float(value), ""
    if not isinstance(value, int | float):
        return None, "Inspect gave no value"
    try:
        value = float(value)
    except OverflowError:
        value = math.inf
    if math.isnan(value):
        return None, "Inspect left it unscored"
    if not 0 <= value <= 1:
        return None, f"Inspect gave {value:g}, and what is enough is not in the log"
    return value, ""


def _said(score: Mapping[str, Any]) -> str:
    answer, explanation = plain_text(score.get("answer")), plain_text(score.get("explanation"))
    parts = [f"answer {answer!r}" if answer and answer != explanation else "", explanation]
    return "; ".join(part for part in parts if part)[:_REASON]


def _only_scorer(header: Mapping[str, Any]) -> str:
    scorers = header.get("scorers")
    names = [one.get("name") for one in scorers if isinstance(one, Mapping)] if isinstance(scorers, list) else []
    name = names[0] if len(names) == 1 else None
    return name.rpartition("/")[2] if isinstance(name, str) and name else "score"
