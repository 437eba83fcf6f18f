"""TextMatch read a second time, from the description of the metric alone: no line of the program decides here."""

from __future__ import annotations

import random
from typing import Any

from tally import Tally, near

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript

ONE = ("contains", "contains_ignore_case", "starts_with", "ends_with", "equals", "equals_ignore_case")
MANY = ("contains_all", "contains_any", "not_contains_any", "starts_with_any", "ends_with_any")
PIECES = ["a", "b", "A", "ab", "Ab", "a b", "", " ", "\n", "ß", "SS", "İ", "i̇", "é", "e\u0301", "5.000", "ſ", "Σ", "ς"]


def conditions(config: dict[str, Any], text: str) -> dict[str, list[bool]]:
    """What each configured condition says of the text, by group."""
    groups: dict[str, list[bool]] = {}

    def add(group: str, holds: bool) -> None:
        groups.setdefault(group, []).append(holds)

    low = text.lower()
    if config.get("contains"):
        add("Contains", config["contains"] in text)
    if config.get("contains_ignore_case"):
        add("Contains", config["contains_ignore_case"].lower() in low)
    needles = {name: [one for one in config.get(name) or [] if one != ""] for name in MANY}
    if needles["contains_all"]:
        add("Contains", all(one in text for one in needles["contains_all"]))
    if needles["contains_any"]:
        add("Contains", any(one in text for one in needles["contains_any"]))
    if needles["not_contains_any"]:
        add("ContainsNot", not any(one in text for one in needles["not_contains_any"]))
    if config.get("starts_with"):
        add("StartsWith", text[: len(config["starts_with"])] == config["starts_with"])
    if needles["starts_with_any"]:
        add("StartsWith", any(text[: len(one)] == one for one in needles["starts_with_any"]))
    if config.get("ends_with"):
        add("EndsWith", text[max(0, len(text) - len(config["ends_with"])) :] == config["ends_with"])
    if needles["ends_with_any"]:
        add("EndsWith", any(text[max(0, len(text) - len(one)) :] == one for one in needles["ends_with_any"]))
    if config.get("equals") is not None:
        add("Equals", text == config["equals"])
    if config.get("equals_ignore_case") is not None:
        add("Equals", low == config["equals_ignore_case"].lower())
    return groups


def reading(config: dict[str, Any], text: str) -> tuple[str, float | None]:
    """(outcome, score); the score is None where nothing is configured."""
    groups = conditions(config, text)
    if not groups:
        return "passed", None
    score = sum(all(held) for held in groups.values()) / len(groups)
    return ("passed" if score == 1 else "failed"), score


def phrase(dice: random.Random, most: int = 3) -> str:
    return "".join(dice.choice(PIECES) for _ in range(dice.randint(0, most)))


def needle(dice: random.Random, text: str) -> str:
    """A part of the text, that part in another case, or anything."""
    if text and dice.random() < 0.6:
        start = dice.choice([0, dice.randrange(len(text))])
        end = dice.choice([len(text), dice.randint(start, len(text))])
        part = text[start:end]
        return dice.choice([part, part, part.upper(), part.lower(), part + "x"])
    return phrase(dice)


def case(dice: random.Random) -> tuple[dict[str, Any], str]:
    """A config and a text."""
    text = phrase(dice, 6)
    config: dict[str, Any] = {}
    for name in dice.sample((*ONE, *MANY), dice.choice([0, 1, 1, 1, 2, 2, 3, 5])):
        if name in ONE:
            config[name] = text if name.startswith("equals") and dice.random() < 0.4 else needle(dice, text)
        else:
            config[name] = [needle(dice, text) for _ in range(dice.randint(0, 3))]
    return config, text


def compare(count: int, seed: int) -> Tally:
    """Verdict and score of so many cases, with and without evidence, as they are and by placeholders."""
    dice, tally = random.Random(seed), Tally()
    for _ in range(count):
        config, text = case(dice)
        expected, score = reading(config, text)
        given, row = config, {}
        filled = [name for name in config if name in ONE and config[name]]
        if filled and dice.random() < 0.2:
            name = dice.choice(filled)
            given, row = {**config, name: "{{wanted}}"}, {"wanted": config[name]}
        negate = dice.random() < 0.2
        spec = CriterionSpec("it", "TextResponse", {"metrics": [{"type": "TextMatch", **given}]}, negate=negate)
        transcript = Transcript((Message("user", "?"), Message("assistant", text)), final_output=text)
        checker = Checker(spec)
        if row and not row["wanted"].strip():
            expected, score = "error", None  # a hole in the data is no needle
        elif negate and score is not None:
            expected, score = {"passed": "failed", "failed": "passed"}[expected], 1 - score
        found = [checker.check(transcript, row, explain=explain) for explain in (True, False)]
        tally.same(
            all(one.outcome.value == expected and near(one.score, score) for one in found),
            (given, row, negate, text),
            (found[0].outcome.value, found[0].score),
            (expected, score),
        )
    return tally
