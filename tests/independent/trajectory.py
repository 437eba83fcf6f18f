"""Trajectory by brute force: every way to pair the calls is tried."""

from __future__ import annotations

import random
from itertools import permutations, product
from typing import Any

from tally import Tally, near
from tool_check import Calls, holds, is_optional

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

MODES = ("strict", "unordered", "subset", "superset", "any", "all", "exact", "none")
UMBRACO = ("any", "all", "exact", "none")  # where the case of names does not matter
ARGUMENTS = ("exact", "ignore", "subset", "superset")
Wanted = list[dict[str, Any]]


def arguments_fit(how: str, wanted: dict[str, Any] | None, given: dict[str, Any]) -> bool:
    if how == "ignore" or wanted is None:
        return True
    shared = all(holds(wanted[name], given[name]) for name in wanted if name in given)
    none_more = all(name in wanted for name in given)
    none_less = all(name in given or is_optional(one) for name, one in wanted.items())
    return shared and (none_more or how == "superset") and (none_less or how == "subset")


def fits(mode: str, how: str, wanted: dict[str, Any], call: tuple[str, dict[str, Any]]) -> bool:
    name, given = call
    left, right = (wanted["name"], name) if mode not in UMBRACO else (wanted["name"].lower(), name.lower())
    return left == right and arguments_fit(how, wanted.get("arguments"), given)


def most_pairs(table: list[list[bool]]) -> int:
    """The largest number of pairs, each row and column in one at most, by trying all of them."""

    def best(row: int, taken: frozenset[int]) -> int:
        if row == len(table):
            return 0
        free = [column for column, fit in enumerate(table[row]) if fit and column not in taken]
        return max([best(row + 1, taken), *(1 + best(row + 1, taken | {column}) for column in free)])

    return best(0, frozenset())


def reading(mode: str, how: str, wanted: Wanted, messages: list[Calls]) -> bool:
    """Whether the calls, message by message, are the wanted ones."""
    calls = [call for message in messages for call in message]
    table = [[fits(mode, how, one, call) for call in calls] for one in wanted]
    pairs = most_pairs(table)
    if mode == "strict":
        if len(calls) != len(wanted):
            return False
        # Calls of one message have no order.
        orders = product(*(permutations(message) for message in messages))
        flat = ([call for message in order for call in message] for order in orders)
        return any(all(fits(mode, how, *pair) for pair in zip(wanted, way, strict=True)) for way in flat)
    if mode in ("unordered", "exact"):
        return pairs == len(wanted) == len(calls)
    if mode == "subset":
        return pairs == len(calls)
    if mode == "superset":
        return pairs == len(wanted)
    called = [any(row) for row in table]
    return {"any": any(called), "all": all(called), "none": not any(called)}[mode]


def case(dice: random.Random) -> tuple[Wanted, list[Calls]]:
    values: list[Any] = [0, 1, 1.0, "x", True]

    def arguments() -> dict[str, Any]:
        return {name: dice.choice(values) for name in "xy" if dice.random() < 0.4}

    messages = [
        [(dice.choice("aabA"), arguments()) for _ in range(dice.choice([0, 1, 1, 1, 2]))]
        for _ in range(dice.randint(0, 3))
    ]
    wanted: Wanted = []
    for name, given in [call for message in messages for call in message]:
        chance = dice.random()
        if chance < 0.7:
            like = dict(given)
            if dice.random() < 0.2:
                like["x"] = dice.choice([{"$any": True}, {"$gte": 1}, {"$optional": 1}, {"$type": "number"}, 0])
            wanted.append({"name": name, "arguments": like})
        elif chance < 0.85:
            wanted.append({"name": name})
    if dice.random() < 0.3:
        wanted.append({"name": dice.choice("abc"), "arguments": arguments()})
    if dice.random() < 0.3:
        dice.shuffle(wanted)
    return wanted, messages


def transcript_of(messages: list[Calls]) -> Transcript:
    calls: list[ToolCall] = []
    made = []
    for number, message in enumerate(messages):
        first = len(calls)
        calls += [ToolCall(f"c{first + n}", name, given, message=number) for n, (name, given) in enumerate(message)]
        made.append(Message("assistant", "", tool_calls=tuple(range(first, len(calls)))))
    return Transcript(tuple(made), tuple(calls))


def compare(count: int, seed: int) -> Tally:
    """The verdict of so many cases; where both sides must be equal the score, too: the share of calls in a pair."""
    dice, tally = random.Random(seed), Tally()
    for _ in range(count):
        wanted, messages = case(dice)
        mode, how = dice.choice(MODES), dice.choice(ARGUMENTS)
        config = {"metrics": [{"type": "Trajectory", "mode": mode, "arguments_mode": how, "calls": wanted}]}
        expected = reading(mode, how, wanted, messages)
        checker, transcript = Checker(CriterionSpec("it", "ToolResponse", config)), transcript_of(messages)
        found = [checker.check(transcript, explain=explain) for explain in (True, False)]
        right = all(one.outcome.value == ("passed" if expected else "failed") for one in found)
        if mode == "unordered":
            calls = [call for message in messages for call in message]
            pairs = most_pairs([[fits(mode, how, one, call) for call in calls] for one in wanted])
            both = len(wanted) + len(calls)
            right = right and near(found[0].score, 2 * pairs / both if both else 1.0)
        tally.same(right, mode, how, wanted, messages, (found[0].outcome.value, found[0].score), expected)
    return tally
