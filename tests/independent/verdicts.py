"""From metrics to a criterion to a test's verdict, read a second time: weights, thresholds, negation, errors."""

from __future__ import annotations

import random
from typing import Any

import text_match
import tool_check
from tally import Tally, near

from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.spec import CriterionSpec

Reading = tuple[str, float | None]


def of_metric(metric: dict[str, Any], text: str, calls: tool_check.Calls) -> Reading:
    config = {name: given for name, given in metric.items() if name not in ("type", "weight")}
    if metric["type"] == "Cost":
        return "error", None  # nothing says what the run cost
    if metric["type"] == "TextMatch":
        return text_match.reading(config, text)
    return tool_check.reading(config, calls)


def of_criterion(one: dict[str, Any], text: str, calls: tool_check.Calls) -> Reading:
    found = [(metric.get("weight", 1), *of_metric(metric, text, calls)) for metric in one["metrics"]]
    if any(outcome == "error" for _, outcome, _ in found):
        return "error", None
    told = [(weight, outcome, score) for weight, outcome, score in found if score is not None]
    if not told:
        return "passed", None
    weights = sum(weight for weight, _, _ in told)
    score = sum(weight * score for weight, _, score in told) / weights if weights else 0.0
    passed = all(outcome == "passed" for _, outcome, _ in told)
    if one["pass_threshold"] is not None:
        passed = score >= one["pass_threshold"] - 1e-9
    if one["negate"]:
        passed, score = not passed, 1 - score
    return ("passed" if passed else "failed"), score


def of_test(criteria: list[dict[str, Any]], threshold: float | None, readings: list[Reading]) -> Reading:
    """Neutral criteria count nowhere; a failed error-severity criterion decides before one that could not run."""
    both = list(zip(criteria, readings, strict=True))
    scored = [(one["weight"], score) for one, (_, score) in both if score is not None]
    weights = sum(weight for weight, _ in scored)
    score = sum(weight * given for weight, given in scored) / weights if weights else 0.0
    severe = {outcome for one, (outcome, _) in both if one["severity"] == "error"}
    if "failed" in severe:
        return "failed", score
    errors = [one for one, (outcome, _) in both if outcome == "error"]
    if threshold is not None and any(one["weight"] > 0 or one["severity"] == "error" for one in errors):
        return "error", None
    if "error" in severe:
        return "error", score
    return ("failed" if threshold is not None and score < threshold - 1e-9 else "passed"), score


def compare(count: int, seed: int) -> Tally:
    """The outcome and score of so many tests, and of each of their criteria."""
    dice, tally = random.Random(seed), Tally()
    while tally.cases < count:
        (config, text), (tools, calls) = text_match.case(dice), tool_check.case(dice)
        criteria = []
        for _ in range(dice.randint(0, 4)):
            metrics: list[dict[str, Any]] = []
            for _ in range(dice.choice([1, 1, 1, 2, 3])):
                chance = dice.random()
                if chance < 0.1:
                    made: dict[str, Any] = {"type": "Cost", "max": 1}
                elif chance < 0.4:
                    made = {"type": "ToolCheck", **tools}
                elif chance < 0.7:
                    made = {"type": "TextMatch", **config}
                else:
                    made = {"type": "TextMatch", "contains": dice.choice(text) if text else "a"}
                if dice.random() < 0.3:
                    made["weight"] = dice.choice([0.5, 2, 3])
                metrics.append(made)
            threshold = dice.choice([None, None, None, 0.3, 0.5, 0.75, 1.0])
            criteria.append(
                {
                    "metrics": metrics,
                    "negate": dice.random() < 0.2,
                    "pass_threshold": threshold,
                    "weight": dice.choice([0, 1, 1, 1, 2.5]),
                    "severity": dice.choice(["error", "error", "warning", "info"]),
                }
            )
        whole = dice.choice([None, None, 0.5, 0.75, 1.0])
        readings = [of_criterion(one, text, calls) for one in criteria]
        specs = [
            CriterionSpec(
                f"c{number}", "TextResponse", {"metrics": one["metrics"]}, weight=one["weight"],
                severity=one["severity"], negate=one["negate"], pass_threshold=one["pass_threshold"],
            )
            for number, one in enumerate(criteria)
        ]  # fmt: skip
        verdict = grade(tool_check.transcript_of(calls, text), specs, pass_threshold=whole, explain=dice.random() < 0.5)
        for one, result, (outcome, score) in zip(criteria, verdict.results, readings, strict=True):
            tally.same(
                result.outcome.value == outcome and near(result.score, score),
                one,
                text,
                calls,
                (result.outcome.value, result.score),
                (outcome, score),
            )
        expected, mean = of_test(criteria, whole, readings)
        known = verdict.score is None or mean is None or near(verdict.score, mean)
        told = [(one["severity"], one["weight"], *reading) for one, reading in zip(criteria, readings, strict=True)]
        tally.same(
            verdict.outcome.value == expected and known,
            told,
            whole,
            (verdict.outcome.value, verdict.score),
            (expected, mean),
        )
    return tally
