"""Who changed a verdict, read a second time: the table of old and new output under the old and the new criterion."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
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


# A test of several criteria, with all that can decide it. A criterion has words: it passes where the answer has all of
# them, or as large a share of them as its threshold says. The test passes where every criterion of severity error does,
# and the weighted mean of the shares reaches its threshold.


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    words: tuple[str, ...]
    threshold: float | None = None
    severity: str = "error"
    weight: float = 1.0
    negate: bool = False

    def share(self, answer: str) -> Fraction:
        share = Fraction(sum(word in answer.split() for word in self.words), len(self.words))
        return 1 - share if self.negate else share

    def passes(self, answer: str) -> bool:
        share = Fraction(sum(word in answer.split() for word in self.words), len(self.words))
        return (share >= Fraction(str(self.threshold if self.threshold is not None else 1.0))) is not self.negate

    def spec(self) -> CriterionSpec:
        metrics = [{"type": "TextMatch", "contains": word} for word in self.words]
        return CriterionSpec(
            self.name, "TextResponse", {"metrics": metrics}, pass_threshold=self.threshold, severity=self.severity,
            weight=self.weight, negate=self.negate,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rules:
    checks: tuple[Check, ...]
    threshold: float | None = None

    def passes(self, answer: str) -> bool:
        if not all(check.passes(answer) for check in self.checks if check.severity == "error"):
            return False
        if self.threshold is None:
            return True
        weights = sum(Fraction(str(check.weight)) for check in self.checks)
        score = sum(Fraction(str(check.weight)) * check.share(answer) for check in self.checks) / weights
        return score >= Fraction(str(self.threshold))


CHANGES = ("config", "threshold", "negate", "severity", "weight", "test threshold", "added", "removed")


def rules(changed: Collection[str] = (), test_threshold: float | None = 0.5) -> Rules:
    """A test, in which these things are as they are now."""
    checks = [
        Check("config", ("house",) if "config" not in changed else ("mouse",)),
        Check("threshold", ("red", "blue"), 0.5 if "threshold" not in changed else 1.0),
        Check("negate", ("never",), negate="negate" not in changed),
        Check("severity", ("green",), severity="warning" if "severity" not in changed else "error"),
        Check("weight", ("tall",), severity="warning", weight=1.0 if "weight" not in changed else 8.0),
    ]
    if "added" in changed:
        checks.append(Check("added", ("new",)))
    if "removed" not in changed:
        checks.append(Check("removed", ("old",)))
    if "test threshold" in changed:
        test_threshold = 0.9 if test_threshold is None or test_threshold < 0.9 else None
    return Rules(tuple(checks), test_threshold)


def expected_by_rules(outputs: tuple[str, str], sides: tuple[Rules, Rules]) -> str:
    (old, new), (before, after) = outputs, sides
    was, now = before.passes(old), after.passes(new)
    if was == now:
        return "unknown"
    by_criterion, by_agent = after.passes(old) == now, before.passes(new) == now
    if by_criterion != by_agent:
        return "criterion" if by_criterion else "agent"
    return "both"


ANSWERS = tuple(
    " ".join(words)
    for words in (
        ("house", "mouse", "red", "blue", "green", "tall", "new", "old"),  # passes, whatever changed but `negate`
        ("house", "mouse", "red", "blue", "green", "tall", "new", "old", "never"),
        ("house", "red", "old", "tall"),  # passes as it was
        ("mouse", "red", "blue", "green", "new", "never"),
        ("house", "mouse", "red", "old", "green"),
        ("house", "red", "blue", "old", "tall", "new"),
        ("house", "mouse", "red", "blue", "old", "new"),
        ("red",),
    )
)


def every_change(most: int) -> Iterator[tuple[str, tuple[str, str], tuple[Rules, Rules], tuple[str, ...]]]:
    """All ways to change up to `most` things of a test at once, with all pairs of answers: (name, answers, rules, what
    changed), of those whose verdict changed. Some tests have no threshold before."""
    number = 0
    for count, threshold in product(range(most + 1), (0.5, None)):
        for changed in combinations(CHANGES, count):
            sides = rules((), threshold), rules(changed, threshold)
            for back in (False, True):
                ordered = (sides[1], sides[0]) if back else sides
                for outputs in product(ANSWERS, ANSWERS):
                    if ordered[0].passes(outputs[0]) != ordered[1].passes(outputs[1]):
                        yield f"r{number}", outputs, ordered, changed
                        number += 1


def planned(name: str, output: str, side: Rules) -> Planned:
    return Planned(name, [answered(output)], [check.spec() for check in side.checks], threshold=side.threshold)


def case(dice: random.Random, number: int) -> tuple[Planned, Planned, str]:
    """A test before and after, and who changed its verdict."""
    name, outputs = f"t{number}", (dice.choice(WORDS), dice.choice(WORDS))
    kind = dice.random()
    if kind < 0.4:
        said = dice.choice(ANSWERS), dice.choice(ANSWERS)
        threshold = dice.choice([0.5, None])
        both = [rules(dice.sample(CHANGES, dice.randint(0, 4)), threshold) for _ in said]
        ends = [planned(name, output, side) for output, side in zip(said, both, strict=True)]
        return ends[0], ends[1], expected_by_rules(said, (both[0], both[1]))
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
