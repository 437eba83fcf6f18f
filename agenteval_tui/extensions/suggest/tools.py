"""Tool calls that good runs make and bad ones do not: which, how often, with which arguments, in which order."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import regex

from agenteval_tui.core.ids import canonical_json
from agenteval_tui.core.phrasing import shown
from agenteval_tui.extensions.suggest.conditions import TOOLS, Family, Measure, Pool, Say, bits
from agenteval_tui.extensions.suggest.examples import Examples, most_frequent, numbers, runs_by_key
from agenteval_tui.extensions.suggest.texts import escaped, times_in_words
from agenteval_tui.grading.criterion_templates import expected_argument
from agenteval_tui.grading.placeholders import text_of
from agenteval_tui.transcripts.model import ToolCall

_TOOLS = 40
_VALUES = 12
_ORDERED = 6
_MANY = 400
"""Conditions on arguments that are tried."""
_LARGEST = 1e15
"""Numbers that are bounded: a larger one is an id, or no number that a double can have."""
_MODES = (("strict", "calls exactly"), ("unordered", "calls in any order"), ("superset", "calls all of"))
_DIGITS = re.compile(r"\d+")


def tool_families(examples: Examples) -> list[Family]:
    """All families of tool calls."""
    calls = [example.transcript.tool_calls for example in examples.runs]
    labelled = ((number, calls[number]) for number in numbers(examples.labelled))
    masks = runs_by_key((call.name, number) for number, run_calls in labelled for call in run_calls if call.name)
    names = [name for name, _ in most_frequent(masks, _TOOLS)]
    if not names:
        return []
    cost = bits(len(names))
    families: list[Family] = [
        Measure(
            [float(len(run_calls)) for run_calls in calls], _no_call, 2.0, prototype=TOOLS, whole=True, about="calls"
        )
    ]
    for name in names:
        values = [float(sum(call.name == name for call in run_calls)) for run_calls in calls]
        families.append(Measure(values, _usage(name), cost + 1.0, prototype=TOOLS, whole=True, about=f"tool {name}"))
    families.append(_arguments(examples, names, cost))
    families.append(_numbers(examples, names, cost))
    families.append(_order(examples, names, cost))
    families.append(_sequence(examples))
    return families


def _no_call(least: float | None, most: float | None) -> tuple[str, Mapping[str, Any]] | None:
    # How many calls there may be is for Steps to say, which the registry has.
    if most == 0:
        return "calls no tool", {"type": "ToolCheck", "tool_call_forbidden": True}
    return None


def _usage(name: str) -> Say:
    """How often one tool is called."""

    def say(least: float | None, most: float | None) -> tuple[str, Mapping[str, Any]]:
        if most == 0:
            return f"does not call {name}", {"type": "ToolCheck", "forbidden_tools": [name]}
        tool: dict[str, Any] = {"name": name}
        words = []
        if least is None:
            tool["required"] = False
        elif least > 1:
            tool["min_calls"] = least
            words.append(f"at least {times_in_words(least)}")
        if most is not None:
            tool["max_calls"] = most
            words.append(f"at most {times_in_words(most)}")
        if least is not None and least == most:
            words = [f"exactly {times_in_words(least)}"]
        title = f"calls {name}" + (f" {' and '.join(words)}" if words else "")
        return title, {"type": "ToolCheck", "tools": [tool]}

    return say


def _check(name: str, arguments: Mapping[str, Any], *, others: bool = True, **more: Any) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": name, **more, "arguments": dict(arguments)}
    if others:
        tool["allow_additional_arguments"] = True
    return {"type": "ToolCheck", "tools": [tool]}


def _arguments(examples: Examples, names: Sequence[str], cost: float) -> Family:
    """Values of arguments, and matchers made from these values."""
    pool = Pool(examples, 20)
    tried: dict[str, tuple[str, dict[str, Any], float, int, str]] = {}
    for name in names:
        by_run = {
            number: [call for call in examples.runs[number].transcript.tool_calls if call.name == name]
            for number in numbers(examples.good)
        }
        listed = {
            argument: None
            for run_calls in by_run.values()
            for call in run_calls
            if isinstance(call.arguments, dict)
            for argument in call.arguments
        }
        price = cost + bits(len(listed)) + 1.0
        # With one argument there are no others to allow.
        others = len(_all_arguments(examples, name)) > 1
        optional = any(not run_calls for run_calls in by_run.values())
        for title, arguments, more, source, lone in _of_tool(examples, by_run, list(listed)):
            # Where good runs also do without the tool, a second condition lets them.
            for extra in ({}, {"required": False}) if optional else ({},):
                metric = _check(name, arguments, others=others and not lone, **extra)
                sentence = f"calls {name} with {title}" if not extra else f"calls {name}, if at all, with {title}"
                # The same condition may come of several values: the first, which is the simplest, counts.
                tried.setdefault(
                    canonical_json(metric), (sentence, metric, price + more + 1.5 * len(extra), source, f"tool {name}")
                )
    for sentence, metric, price, source, about in list(tried.values())[:_MANY]:
        pool.add(sentence, metric, price, source=source, prototype=TOOLS, whole=True, about=about)
    return pool


def _all_arguments(examples: Examples, name: str) -> set[str]:
    return {
        argument
        for example in examples.runs
        for call in example.transcript.tool_calls
        if call.name == name and isinstance(call.arguments, dict)
        for argument in call.arguments
    }


_Expected = tuple[str, dict[str, Any], float, int, bool]
"""Title, arguments, what it costs, the runs it was made of, and whether no other argument may be given."""


def _of_tool(
    examples: Examples, by_run: Mapping[int, Sequence[ToolCall]], listed: Sequence[str]
) -> Iterator[_Expected]:
    """What calls of a tool may be expected to have."""
    objects = [
        (call.arguments, number)
        for number, run_calls in by_run.items()
        for call in run_calls
        if isinstance(call.arguments, dict)
    ]
    whole = runs_by_key((canonical_json(arguments), number) for arguments, number in objects)
    # With a single argument, its values below say the same.
    if len(listed) > 1:
        for key, mask in most_frequent(whole, 3):
            expected = {argument: expected_argument(value) for argument, value in json.loads(key).items()}
            yield shown(json.loads(key), 60), expected, 1.0 + len(expected), mask, True
    for argument in listed:
        values: dict[str, tuple[Any, int]] = {}
        mask = 0
        for arguments, number in objects:
            if argument in arguments:
                value = arguments[argument]
                key = canonical_json(value)
                values[key] = value, values.get(key, (None, 0))[1] | 1 << number
                mask |= 1 << number
        ordered = sorted(values.values(), key=lambda entry: (-entry[1].bit_count(), canonical_json(entry[0])))
        for value, source in ordered[:_VALUES]:
            yield f"{argument} = {shown(value, 40)}", {argument: expected_argument(value)}, 0.0, source, False
        yield f"{argument} given", {argument: {"$any": True}}, 0.5, mask, False
        options = [value for value, _ in ordered]
        if 1 < len(options) <= 5 and all(isinstance(value, str | int | float) for value in options):
            words = ", ".join(shown(value, 20) for value in options)
            yield f"{argument} one of {words}", {argument: {"$one_of": options}}, 1.0 * len(options), mask, False
        texts = [value for value in options if isinstance(value, str) and value]
        if texts and len(texts) == len(options):
            yield from _text_matchers(argument, texts, mask)
        for variable in sorted({key for example in examples.runs for key in example.variables}):
            if variable.isidentifier() and any(
                text_of(examples.runs[number].variables.get(variable, "")) == text_of(arguments.get(argument))
                for arguments, number in objects
            ):
                yield f"{argument} = the row's {variable}", {argument: f"{{{{{variable}}}}}"}, -1.0, mask, False


def _text_matchers(argument: str, texts: Sequence[str], mask: int) -> Iterator[_Expected]:
    shapes = {"^" + _DIGITS.sub("\0", escaped(text)).replace("\0", "\\d+") + "$" for text in texts}
    if len(texts) > 1 and len(shapes) == 1 and "\\d+" in (shape := shapes.pop()):
        yield f"{argument} like {shown(texts[0], 30)}", {argument: {"$regex": shape}}, 1.0, mask, False
    folded = {text.lower() for text in texts}
    if len(folded) == 1 and len(texts) > 1:
        yield (
            f"{argument} = {shown(texts[0], 40)} in any case",
            {argument: {"$ignore_case": texts[0]}},
            0.5,
            mask,
            False,
        )
    if max(map(len, texts)) > 20:
        shared = _shared_words(texts)
        for piece in shared[:6]:
            yield f"{argument} with {shown(piece, 30)}", {argument: {"$contains": piece}}, 1.0, mask, False


def _shared_words(texts: Sequence[str]) -> list[str]:
    """Words that all of these have, longest first."""
    words = regex.findall(r"[\p{L}\p{N}][\p{L}\p{N}_.'-]{2,}", texts[0])
    shared = {word for word in words if all(word in text for text in texts)}
    return sorted(shared, key=lambda word: (-len(word), word))


def _numbers(examples: Examples, names: Sequence[str], cost: float) -> Family:
    """Bounds on numbers that are given as arguments: of every call, so the least and the greatest one count."""
    pool = Pool(examples)
    for name in names:
        for argument in sorted(_all_arguments(examples, name)):
            smallest: list[float | None] = []
            greatest: list[float | None] = []
            for example in examples.runs:
                arguments = [
                    call.arguments.get(argument)
                    for call in example.transcript.tool_calls
                    if call.name == name and isinstance(call.arguments, dict)
                ]
                usable = [
                    value
                    for value in arguments
                    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
                ]
                whole = bool(usable) and len(usable) == len(arguments)
                smallest.append(float(min(usable)) if whole else None)
                greatest.append(float(max(usable)) if whole else None)
            if len({*smallest, *greatest} - {None}) < 2:
                continue
            for values, matcher in ((smallest, "$gte"), (greatest, "$lte")):
                counts = all(value is None or value.is_integer() for value in values)
                measure = Measure(values, _bound(name, argument, matcher), cost + 3.0, whole_numbers=counts)
                for condition in measure.fit(examples.good, examples.bad) if examples.bad else ():
                    pool.add(
                        condition.title,
                        condition.metric,
                        condition.cost,
                        margin=condition.margin,
                        prototype=TOOLS,
                        whole=True,
                        about=f"tool {name}",
                    )
    return pool


def _bound(name: str, argument: str, matcher: str) -> Say:
    def say(least: float | None, most: float | None) -> tuple[str, Mapping[str, Any]] | None:
        bound = least if matcher == "$gte" and most is None else most if matcher == "$lte" and least is None else None
        if bound is None:
            return None
        words = f"{argument} {'at least' if matcher == '$gte' else 'at most'} {bound:g}"
        return f"calls {name} with {words}", _check(name, {argument: {matcher: bound}})

    return say


def _order(examples: Examples, names: Sequence[str], cost: float) -> Family:
    """One tool before another: a pattern over the calls' text, since no metric says only that."""
    pool = Pool(examples)
    for first in names[:_ORDERED]:
        for then in names[:_ORDERED]:
            mask = examples.mask(lambda example, a=first, b=then: _comes_before(example.transcript.tool_calls, a, b))  # type: ignore[misc]
            if first == then or not mask & examples.good or (not examples.bad and examples.good & ~mask):
                continue
            pattern = f"/\\A(?>[\\s\\S]*?^Toolname:\\n{escaped(first)}$)[\\s\\S]*?^Toolname:\\n{escaped(then)}$/m"
            metric = {"type": "Regex", "pattern": pattern}
            title = f"calls {first} before {then}"
            pool.add(title, metric, 2 * cost + 2.0, source=mask, prototype=TOOLS, about="order")
    return pool


def _comes_before(calls: Sequence[ToolCall], first: str, then: str) -> bool:
    names = [call.name for call in calls]
    return first in names and then in names[names.index(first) + 1 :]


def _sequence(examples: Examples) -> Family:
    """All calls in their order."""
    pool = Pool(examples)
    good = ((examples.runs[number].transcript.tool_calls, number) for number in numbers(examples.good))
    masks = runs_by_key((tuple(call.name for call in calls), number) for calls, number in good if 1 < len(calls) <= 12)
    for names, mask in most_frequent(masks, 3):
        for mode, words in _MODES:
            metric = {
                "type": "Trajectory",
                "mode": mode,
                "arguments_mode": "ignore",
                "calls": [{"name": name} for name in names],
            }
            title, cost = f"{words} {', '.join(names)}", 4.0 + 2.0 * len(names)
            pool.add(title, metric, cost, source=mask, prototype=TOOLS, whole=True, about="order")
    return pool
