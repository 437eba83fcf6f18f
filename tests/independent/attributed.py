"""Who changed a verdict, read a second time: the table of old and new output under the old and the new criterion."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import text_match
from compared import NEW, NO, NOON, OLD, POLITE, YES, Planned, answered, keep
from tally import Tally

from agenteval_tui.analysis.attribution import attribute_pair
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.store import Store

WORDS = ["a", "b", "ab", "ba", "abc"]
AT_ONCE = 200


def spec(config: dict[str, Any]) -> CriterionSpec:
    return CriterionSpec("answer", "TextResponse", {"metrics": [{"type": "TextMatch", **config}]})


def config(dice: random.Random) -> dict[str, Any]:
    name = dice.choice(["contains", "starts_with", "ends_with", "equals", "contains_any", "not_contains_any"])
    return {name: dice.sample(WORDS, 2) if name.endswith("any") else dice.choice(WORDS)}


def expected(outputs: tuple[str, str], configs: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """agent, criterion, both; unknown where the verdict is the same."""
    (old, new), (before, after) = outputs, configs
    was, now = text_match.reading(before, old)[0], text_match.reading(after, new)[0]
    if was == now:
        return "unknown"
    if before == after:
        return "agent"
    by_criterion = text_match.reading(after, old)[0] == now
    by_agent = text_match.reading(before, new)[0] == now
    if by_criterion != by_agent:
        return "criterion" if by_criterion else "agent"
    return "both"  # each alone, or only together


def case(dice: random.Random, number: int) -> tuple[Planned, Planned, str]:
    """A test before and after, and who changed its verdict."""
    name, outputs = f"t{number}", (dice.choice(WORDS), dice.choice(WORDS))
    kind = dice.random()
    if kind < 0.7:
        configs = config(dice), config(dice)
        if dice.random() < 0.2:
            configs = configs[0], configs[0]
        before, after = (
            Planned(name, [answered(said)], [spec(given)]) for said, given in zip(outputs, configs, strict=True)
        )
        return before, after, expected(outputs, configs)
    if kind < 0.95:
        judged = dice.choice([YES, NO]), dice.choice([YES, NO])
        before, after = (
            Planned(name, [answered(said)], [POLITE], [one]) for said, one in zip(outputs, judged, strict=True)
        )
        if judged[0] == judged[1]:
            return before, after, "unknown"
        return before, after, "judge noise" if outputs[0] == outputs[1] else "agent"
    broken = Planned(name, [answered("", error="refused")], [spec({"contains": "a"})])
    right = Planned(name, [answered("a")], [spec({"contains": "a"})])
    return (right, broken, "unknown") if dice.random() < 0.5 else (broken, right, "unknown")


def compare(count: int, seed: int) -> Tally:
    """Who changed the verdict of so many tests, in histories of some hundred each."""
    dice, tally = random.Random(seed), Tally()
    while tally.cases < count:
        cases = [case(dice, number) for number in range(min(AT_ONCE, count - tally.cases))]
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "h.db")) as store:
            keep(store, OLD, [before for before, _, _ in cases])
            keep(store, NEW, [after for _, after, _ in cases], at_ms=NOON + 5_000)
            for before, after, who in cases:
                names = [f"{execution[-3:]}-{before.test}-0-1" for execution in (OLD, NEW)]
                found = attribute_pair(store, *names).test
                tally.same(found.who == who, before, after, (found.who, found.reason), who)
    return tally
