"""ToolCheck and its matchers read a second time, from the description of the metric alone."""

from __future__ import annotations

import random
import re
from typing import Any

from tally import Tally, near

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

Calls = list[tuple[str, dict[str, Any]]]
KINDS = {"string": str, "array": list, "object": dict, "boolean": bool, "null": type(None)}


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_matcher(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(key.startswith("$") for key in value)


def is_optional(value: Any) -> bool:
    return is_matcher(value) and "$optional" in value


def holds(wanted: Any, given: Any) -> bool:
    """Whether a given argument is the wanted one: as JSON, or by a matcher."""
    if is_matcher(wanted):
        return all(one_holds(name, operand, given) for name, operand in wanted.items())
    if number(wanted) and number(given):
        return bool(wanted == given)
    if type(wanted) is not type(given):
        return False
    if isinstance(wanted, list):
        return len(wanted) == len(given) and all(holds(*pair) for pair in zip(wanted, given, strict=True))
    if isinstance(wanted, dict):
        if any(name not in wanted for name in given):
            return False
        return all(holds(value, given[name]) if name in given else is_optional(value) for name, value in wanted.items())
    return bool(wanted == given)


def just(wanted: Any, given: Any) -> bool:
    """Whether two values are the same as JSON."""
    if number(wanted) and number(given):
        return bool(wanted == given)
    if type(wanted) is not type(given):
        return False
    if isinstance(wanted, list):
        return len(wanted) == len(given) and all(just(*pair) for pair in zip(wanted, given, strict=True))
    if isinstance(wanted, dict):
        return wanted.keys() == given.keys() and all(just(value, given[name]) for name, value in wanted.items())
    return bool(wanted == given)


def one_holds(name: str, operand: Any, given: Any) -> bool:
    if name == "$any":
        return True
    if name == "$literal":
        return just(operand, given)
    if name == "$optional":
        return holds(operand, given)
    if name == "$not":
        return not holds(operand, given)
    if name == "$one_of":
        return any(holds(one, given) for one in operand)
    if name == "$type":
        return number(given) if operand == "number" else isinstance(given, KINDS[operand])
    if name in ("$contains", "$ignore_case", "$regex"):
        if not isinstance(given, str):
            return False
        if name == "$contains":
            return operand in given
        return operand.lower() == given.lower() if name == "$ignore_case" else bool(re.search(operand, given))
    if not number(given):
        return False
    return {"$gt": given > operand, "$gte": given >= operand, "$lt": given < operand, "$lte": given <= operand}[name]


def call_is_right(tool: dict[str, Any], given: dict[str, Any]) -> bool:
    wanted: dict[str, list[Any]] = {}
    listed = tool["arguments"] if isinstance(tool["arguments"], list) else [tool["arguments"]]
    for one in listed:
        for name, value in one.items():
            wanted.setdefault(name, []).append(value)
    for name, values in wanted.items():
        if name in given:
            if not any(holds(value, given[name]) for value in values):
                return False
        elif not any(is_optional(value) for value in values):
            return False
    return bool(tool.get("allow_additional_arguments")) or all(name in wanted for name in given)


def parts(tool: dict[str, Any], calls: Calls) -> tuple[float, float]:
    """(usage, arguments) of one entry."""
    own = [given for name, given in calls if name == tool["name"]]
    required = tool.get("required", True)
    least = tool.get("min_calls", 1 if required else 0)
    most = tool.get("max_calls", float("inf"))
    if not own and required:
        usage = 0.0
    elif least <= len(own) <= most or (not own and not required):
        usage = 1.0
    else:
        usage = 0.5
    if not own:
        return usage, 0.0 if required else 1.0
    if "arguments" not in tool:
        return usage, 1.0
    return usage, sum(call_is_right(tool, given) for given in own) / len(own)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 1.0


def reading(config: dict[str, Any], calls: Calls) -> tuple[str, float | None]:
    """(outcome, score); the score is None where nothing is configured."""
    tools = config.get("tools") or []
    forbidden = [name for name in config.get("forbidden_tools") or [] if name]
    if not tools and not forbidden and not config.get("tool_call_forbidden"):
        return "passed", None
    called = {name for name, _ in calls}
    both = [parts(tool, calls) for tool in tools]
    usage, arguments = mean([one for one, _ in both]), mean([one for _, one in both])
    if config.get("tool_call_forbidden") and calls:
        return "failed", 0.0
    clean = float(not called & set(forbidden))
    score = 0.5 * usage + 0.3 * arguments + 0.2 * clean
    missing = any(tool.get("required", True) and tool["name"] not in called for tool in tools)
    if missing or not clean:
        score = min(score, 0.25)
    return ("passed" if usage == arguments == clean == 1 else "failed"), score


NAMES = ["f", "g", "F", "get_order"]
ARGUMENTS = ["a", "b", "c"]
TEXTS = ["x", "X", "xy", "", "W1", "1"]


def value(dice: random.Random, depth: int = 2) -> Any:
    if depth and dice.random() < 0.2:
        if dice.random() < 0.5:
            return [value(dice, depth - 1) for _ in range(dice.randint(0, 2))]
        return {name: value(dice, depth - 1) for name in dice.sample(ARGUMENTS, dice.randint(0, 2))}
    return dice.choice([*TEXTS, 0, 1, 1.0, 2, 2.5, -1, True, False, None])


def matcher(dice: random.Random, near_to: Any, depth: int = 2, optional: bool = True) -> dict[str, Any]:
    """A matcher, of which every second one or so holds for a value near by. `$optional` stands outside of others."""
    text = near_to if isinstance(near_to, str) and dice.random() < 0.6 else dice.choice(TEXTS)
    limit = near_to if number(near_to) and dice.random() < 0.5 else dice.choice([0, 1, 1.5, 2])

    def inner() -> Any:
        return wanted(dice, near_to, depth - 1, optional=False) if depth else near_to

    made: dict[str, Any] = {}
    for _ in range(dice.choice([1, 1, 1, 2])):
        names = [
            "$any",
            "$contains",
            "$ignore_case",
            "$regex",
            "$one_of",
            "$not",
            "$type",
            "$gt",
            "$gte",
            "$lt",
            "$lte",
            "$literal",
        ]
        name = dice.choice([*names, "$optional", "$optional"] if optional else names)
        made[name] = {
            "$any": lambda: True,
            "$contains": lambda: text[:1],
            "$ignore_case": lambda: text.swapcase(),
            "$regex": lambda: dice.choice(["^" + re.escape(text) + "$", "x|1", "^[A-Z]"]),
            "$one_of": lambda: [inner() for _ in range(dice.randint(1, 3))],
            "$optional": inner,
            "$not": inner,
            "$literal": lambda: dice.choice([near_to, {"$gt": limit}]),
            "$type": lambda: dice.choice(["string", "number", "boolean", "array", "object", "null"]),
        }.get(name, lambda: limit)()
    return made


def wanted(dice: random.Random, given: Any, depth: int = 2, *, optional: bool = True) -> Any:
    """What may be expected of an argument that is given so: often the same, or the same with matchers inside."""
    chance = dice.random()
    if isinstance(given, dict) and given and chance < 0.4:
        inside = {name: wanted(dice, one, depth, optional=optional) for name, one in given.items()}
        if optional and dice.random() < 0.3:
            inside["d"] = {"$optional": value(dice, 0)}
        return inside
    if chance < 0.45:
        return given
    return matcher(dice, given, depth, optional) if chance < 0.8 else value(dice, 1)


def case(dice: random.Random) -> tuple[dict[str, Any], Calls]:
    """A config and the calls of a run."""
    calls = [
        (dice.choice(NAMES), {name: value(dice) for name in dice.sample(ARGUMENTS, dice.randint(0, 3))})
        for _ in range(dice.choice([0, 1, 1, 2, 3, 4]))
    ]
    tools = []
    for _ in range(dice.choice([0, 1, 1, 1, 2, 3])):
        name = dice.choice(calls)[0] if calls and dice.random() < 0.75 else dice.choice(NAMES)
        tool: dict[str, Any] = {"name": name}
        if dice.random() < 0.4:
            tool["required"] = dice.random() < 0.5
        if dice.random() < 0.3:
            tool["min_calls"] = dice.randint(0, 3)
        if dice.random() < 0.3:
            tool["max_calls"] = dice.randint(0, 3)
        if dice.random() < 0.7:
            own = [given for called, given in calls if called == name]
            like = dice.choice(own) if own else {}
            names = [one for one in ARGUMENTS if dice.random() < (0.85 if one in like else 0.15)]
            arguments: Any = {one: wanted(dice, like.get(one)) for one in names}
            if dice.random() < 0.2:
                arguments = [{one: given} for one, given in arguments.items()]
                arguments += [{one: value(dice)} for one in names if dice.random() < 0.5]
                dice.shuffle(arguments)
            tool["arguments"] = arguments
        if dice.random() < 0.4:
            tool["allow_additional_arguments"] = dice.random() < 0.7
        tools.append(tool)
    config: dict[str, Any] = {}
    if tools or dice.random() < 0.3:
        config["tools"] = tools
    if dice.random() < 0.25:
        config["forbidden_tools"] = [dice.choice([*NAMES, "", "drop"]) for _ in range(dice.randint(0, 2))]
    if dice.random() < 0.05:
        config["tool_call_forbidden"] = dice.random() < 0.7
    return config, calls


def transcript_of(calls: Calls, text: str = "") -> Transcript:
    made = tuple(ToolCall(f"c{n}", name, given, message=0) for n, (name, given) in enumerate(calls))
    return Transcript((Message("assistant", text, tool_calls=tuple(range(len(made)))),), made, final_output=text)


def compare(count: int, seed: int) -> Tally:
    """Verdict and score of so many cases, with and without evidence."""
    dice, tally = random.Random(seed), Tally()
    for _ in range(count):
        config, calls = case(dice)
        expected, score = reading(config, calls)
        if dice.random() < 0.1 and "tools" in config:
            config = {("tool" if name == "tools" else name): given for name, given in config.items()}
        checker = Checker(CriterionSpec("it", "ToolResponse", {"metrics": [{"type": "ToolCheck", **config}]}))
        transcript = transcript_of(calls)
        found = [checker.check(transcript, explain=explain) for explain in (True, False)]
        tally.same(
            all(one.outcome.value == expected and near(one.score, score) for one in found),
            config,
            calls,
            (found[0].outcome.value, found[0].score),
            (expected, score),
        )
    return tally
