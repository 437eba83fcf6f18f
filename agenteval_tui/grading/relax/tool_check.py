"""What may relax a ToolCheck or a trajectory: each failing condition with the changes that could make it hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed as listing
from agenteval_tui.core.phrasing import shown
from agenteval_tui.grading.metrics.matchers import (
    LITERAL,
    compile_matcher,
    is_literal,
    is_matcher,
    is_number,
    literal,
    same_json,
    taken_for_matcher,
    type_of,
)
from agenteval_tui.grading.metrics.tool_check import Leaf, Tool, arguments_of, differences, nearest_calls, only_leaf
from agenteval_tui.grading.relax.changes import Change, ConfigEdit, Path, entry_removal
from agenteval_tui.grading.relax.config import metric_changes
from agenteval_tui.grading.results import Evidence, MetricResult, may_be_cut
from agenteval_tui.transcripts.model import ToolCall

_VALUES = 4
"""Different values of an argument that are still listed one by one."""
_LONG_VALUE = 400


def tool_changes(
    at: Path, raw: Mapping[str, Any], tools: Sequence[Tool], forbidden: Sequence[str], calls: Sequence[ToolCall]
) -> Iterator[tuple[str, Change]]:
    """For each failing condition (a key) the changes that could fix it. `raw` is the metric as it is written."""
    listed = "tools" if "tools" in raw else "tool"
    broken: dict[int, frozenset[str]] = {}
    for number, tool in enumerate(tools):
        own = [call for call in calls if call.name == tool.name]
        place = (*at, listed, number)
        written = raw[listed][number]
        key = f"{at}{listed}[{number}]"
        changes = [*_usage(key, place, tool=tool, tools=tools, number=number, own=own, calls=calls)]
        changes += _arguments(key, place, written, tool, own)
        conditions = frozenset(condition for condition, _ in changes)
        broken[number] = frozenset(condition for condition in conditions if not condition.endswith(".usage"))
        yield from changes
        if conditions:
            gone = entry_removal(at, listed, number, len(raw[listed]))
            change = Change(f"ignore {tool.name}", (gone,), 4.0, conditions)
            yield from ((condition, change) for condition in conditions)
    if tools:
        yield from _one_entry((*at, listed), raw[listed], tools, calls, broken)
    names = {call.name for call in calls}
    for number, name in enumerate(raw.get("forbidden_tools") or ()):
        if number < len(forbidden) and forbidden[number] in names:
            gone = entry_removal(at, "forbidden_tools", number, len(raw["forbidden_tools"]))
            yield f"{at}forbidden[{number}]", Change(f"allow {shown(name, 40)}", (gone,), 11.0)
    if raw.get("tool_call_forbidden") and calls:
        change = Change("allow tool calls", (ConfigEdit("remove", (*at, "tool_call_forbidden")),), 11.0)
        yield f"{at}tool_call_forbidden", change


def _one_entry(
    place: Path,
    written: Sequence[Mapping[str, Any]],
    tools: Sequence[Tool],
    calls: Sequence[ToolCall],
    broken: Mapping[int, frozenset[str]],
) -> Iterator[tuple[str, Change]]:
    """Several entries of one tool as one with a list of arguments: every call is measured against every entry."""
    by_name = grouped((tool.name, number) for number, tool in enumerate(tools))
    for name, numbers in by_name.items():
        entries = [tools[number] for number in numbers]
        covers = frozenset(condition for number in numbers for condition in broken[number])
        # One entry has one setting for all: where the entries differ in it, none says the same.
        alike = len({entry.additional for entry in entries}) == 1 and all(entry.most is None for entry in entries)
        if len(numbers) < 2 or not covers or not alike or any(entry.expected is None for entry in entries):
            continue
        first, *others = numbers
        least = sum(entry.least for entry in entries)
        arguments = [item for entry in entries for item in _listed(entry.data.arguments)]
        merged = Tool(entries[0].data.model_copy(update={"arguments": arguments, "min_calls": least}))
        mismatches = [
            difference for call in calls if call.name == name for difference in differences(merged, call)
        ]  # what no entry expects
        accepted = _different([mismatch.got for mismatch in mismatches])
        if (
            any(mismatch.kind != "differs" or not _short(mismatch.got) for mismatch in mismatches)
            or len(accepted) > _VALUES
        ):
            continue
        more = {(mismatch.name, repr(mismatch.got)): {mismatch.name: literal(mismatch.got)} for mismatch in mismatches}
        listed = [item for number in numbers for item in _listed(written[number]["arguments"])]
        ops = [
            ConfigEdit("set", (*place, first, "arguments"), [*listed, *more.values()]),
            *([ConfigEdit("set", (*place, first, "min_calls"), least)] if least > 1 else ()),
            *(ConfigEdit("remove", (*place, number)) for number in others),
        ]
        title = f"expect the calls of {name} in one entry"
        if mismatches:
            names = listing(list(dict.fromkeys(mismatch.name for mismatch in mismatches)))
            title += f", also accept {_list_text(accepted)} as {names}"
        change = Change(title, tuple(ops), 1.2 + 0.5 * len(more), covers)
        yield from ((condition, change) for condition in sorted(covers))


def _listed(arguments: object) -> list[Any]:
    return list(arguments) if isinstance(arguments, list) else [arguments]


def _usage(
    key: str,
    place: Path,
    tool: Tool,
    tools: Sequence[Tool],
    number: int,
    own: Sequence[ToolCall],
    calls: Sequence[ToolCall],
) -> Iterator[tuple[str, Change]]:
    times = len(own)
    condition = f"{key}.usage"
    if tool.usage(times) == 1.0:
        return
    if times == 0:
        # That it was never called breaks its arguments too; nothing is asked of an optional tool that is not called.
        for near in nearest_calls(tools, calls):
            if near.tool == number and not near.differences:
                name = calls[near.call].name
                if any(other.name == name for other in tools):
                    break  # that tool has its own entry
                yield condition, Change(f"expect {name} instead", (ConfigEdit("set", (*place, "name"), name),), 1.5)
                break
        ops = (ConfigEdit("set", (*place, "required"), False),)
        yield condition, Change(f"{tool.name} does not have to be called", ops, 3.5)
        return
    if times < tool.least:
        ops = (ConfigEdit("set", (*place, "min_calls"), times),)
        yield condition, Change(f"`min_calls` {times} for {tool.name}", ops, 1.3)
    elif tool.most is not None:
        if tool.most > 0 or not tool.required:
            ops = (ConfigEdit("set", (*place, "max_calls"), times),)
            yield condition, Change(f"`max_calls` {times} for {tool.name}", ops, 1.3)
        gone = (ConfigEdit("remove", (*place, "max_calls")),)
        yield condition, Change(f"any number of calls of {tool.name}", gone, 1.7)


def _arguments(
    key: str, place: Path, written: Mapping[str, Any], tool: Tool, own: Sequence[ToolCall]
) -> Iterator[tuple[str, Change]]:
    wrong = [call for call in own if not tool.right(call)]
    if not wrong:
        return
    mismatches = [difference for call in wrong for difference in differences(tool, call)]
    conditions = frozenset(f"{key}.{mismatch.kind}.{mismatch.name}" for mismatch in mismatches)
    # Without `arguments` nothing is asked of them: one edit for whatever is wrong.
    removal = (ConfigEdit("remove", (*place, "arguments")),)
    ignored = Change(f"ignore the arguments of {tool.name}", removal, 3.0, conditions)
    yield from ((condition, ignored) for condition in sorted(conditions))
    extras = sorted({mismatch.name for mismatch in mismatches if mismatch.kind == "extra"})
    if extras:
        covers = frozenset(f"{key}.extra.{name}" for name in extras)
        title = f"allow additional arguments of {tool.name}"
        change = Change(title, (ConfigEdit("set", (*place, "allow_additional_arguments"), True),), 1.3, covers)
        yield from ((condition, change) for condition in sorted(covers))
    for name in extras:
        values = _values(name, own)
        if len(values) == len(own) and isinstance(written["arguments"], Mapping):
            ops = (ConfigEdit("set", (*place, "arguments", name), {"$any": True}),)
            yield f"{key}.extra.{name}", Change(f"expect {name} too, with any value", ops, 1.6)
    for name in sorted({mismatch.name for mismatch in mismatches if mismatch.kind == "missing"}):
        for change in _dropped(place, written, tool, name, own):
            yield f"{key}.missing.{name}", change
    for name in sorted({mismatch.name for mismatch in mismatches if mismatch.kind == "differs"}):
        for change in _differing(place, written, tool, name, own):
            yield f"{key}.differs.{name}", change


def _values(name: str, calls: Sequence[ToolCall]) -> list[Any]:
    arguments = [arguments_of(call) for call in calls]
    return [mapping[name] for mapping in arguments if mapping is not None and name in mapping]


def _dropped(
    place: Path, written: Mapping[str, Any], tool: Tool, name: str, own: Sequence[ToolCall]
) -> Iterator[Change]:
    arguments = written["arguments"]
    if isinstance(arguments, Mapping):
        gone = [ConfigEdit("remove", (*place, "arguments", name))]
    else:
        gone = [
            ConfigEdit(
                "remove", (*place, "arguments", number) if len(entry) == 1 else (*place, "arguments", number, name)
            )
            for number, entry in enumerate(arguments)
            if name in entry
        ]
    # A call that has the argument would have one that is not expected.
    if tool.additional or not _values(name, own):
        yield Change(f"no longer require the argument {name}", tuple(gone), 2.1)
    else:
        gone.append(ConfigEdit("set", (*place, "allow_additional_arguments"), True))
        yield Change(f"no longer require the argument {name}, allow additional ones", tuple(gone), 2.6)


def _differing(
    place: Path, written: Mapping[str, Any], tool: Tool, name: str, own: Sequence[ToolCall]
) -> Iterator[Change]:
    values = _different(_values(name, own))
    expected = next(expected for expected in tool.expected or () if expected.name == name)
    wrong = [value for value in values if not expected.holds(value)]
    arguments = written["arguments"]
    if not isinstance(arguments, Mapping):
        # Several values of an argument are several entries here.
        if len(wrong) <= _VALUES and all(_short(value) for value in wrong):
            ops = tuple(ConfigEdit("append", (*place, "arguments"), {name: literal(value)}) for value in wrong)
            yield Change(f"also accept {_list_text(wrong)} as {name}", ops, 1.5)
    else:
        path = (*place, "arguments", name)
        leaves = [only_leaf(arguments[name], value) for value in wrong]
        inner = [leaf for leaf in leaves if leaf is not None]
        if inner and len(inner) == len(wrong) and inner[0][0] and len({leaf[0] for leaf in inner}) == 1:
            # Only one value inside of an object or list differs: that one is relaxed, the rest stays.
            yield from widened((*path, *inner[0][0]), _name(name, inner[0]), inner[0][1], [leaf[2] for leaf in inner])
        yield from widened(path, name, arguments[name], wrong, expected.values[0])
    yield from _dropped(place, written, tool, name, own)


def _name(name: str, leaf: Leaf) -> str:
    return ".".join((name, *map(str, leaf[0])))


def widened(path: Path, name: str, written: Any, wrong: Sequence[Any], expected: Any = None) -> Iterator[Change]:
    """Matchers in place of an expected value: from hardly wider to anything at all. `written` may be a placeholder."""
    expected = written if expected is None else expected
    if is_literal(written) and not is_literal(expected):
        expected = {LITERAL: expected}

    def change(title: str, value: object, cost: float) -> Iterator[Change]:
        try:
            holds = compile_matcher(value if value is not written else expected, named=True).holds
        except ValueError:
            return
        if "{{" in str(value) or all(holds(actual) for actual in wrong):
            yield Change(title, (ConfigEdit("set", path, value),), cost)

    if isinstance(expected, str) and all(isinstance(actual, str) for actual in wrong):
        if all(actual.lower() == expected.lower() for actual in wrong):
            yield from change(f"ignore case in {name}", {"$ignore_case": written}, 1.1)
        if expected and all(expected in actual for actual in wrong):
            yield from change(f"{name} contains it", {"$contains": written}, 1.4)
    if all(taken_for_matcher(expected, actual) for actual in wrong):
        yield from change(f"take {name} as it is written, without matchers", {LITERAL: written}, 1.0)
    if is_matcher(expected):
        yield from _wider_matcher(path, name, expected, wrong)
    elif is_number(expected) and all(map(is_number, wrong)):
        if all(actual > expected for actual in wrong):
            yield from change(f"{name} is at least {shown(expected)}", {"$gte": expected}, 1.7)
        elif all(actual < expected for actual in wrong):
            yield from change(f"{name} is at most {shown(expected)}", {"$lte": expected}, 1.7)
    if (
        len(wrong) <= _VALUES
        and all(_short(actual) for actual in wrong)
        and "$one_of" not in (expected if isinstance(expected, Mapping) else ())
    ):
        values = [written, *map(literal, wrong)]
        yield from change(f"also accept {_list_text(wrong)} as {name}", {"$one_of": values}, 1.5)
    types = {type_of(actual) for actual in wrong}
    if len(types) == 1 and (is_matcher(expected) or type_of(expected) in types):
        kind = types.pop()
        yield from change(f"any {kind} as {name}", {"$type": kind}, 1.9)
    yield from change(f"anything as {name}", {"$any": True}, 2.0)


def _wider_matcher(path: Path, name: str, expected: Mapping[str, Any], wrong: Sequence[Any]) -> Iterator[Change]:
    for bound, choose in (("$gte", min), ("$gt", min), ("$lte", max), ("$lt", max)):
        if bound in expected and wrong and all(map(is_number, wrong)):
            limit = choose([expected[bound], *wrong])
            inclusive = {"$gt": "$gte", "$lt": "$lte"}.get(bound, bound)
            if inclusive == bound:
                yield Change(f"{name}: `{bound}` {shown(limit)}", (ConfigEdit("set", (*path, bound), limit),), 1.3)
            elif inclusive not in expected:
                ops = (ConfigEdit("set", (*path, bound), limit), ConfigEdit("rename", (*path, bound), inclusive))
                yield Change(f"{name}: `{inclusive}` {shown(limit)}", ops, 1.3)
    if isinstance(expected.get("$one_of"), list) and len(wrong) <= _VALUES and all(map(_short, wrong)):
        more = tuple(ConfigEdit("append", (*path, "$one_of"), literal(actual)) for actual in wrong)
        yield Change(f"also accept {_list_text(wrong)} as {name}", more, 1.4)
    if isinstance(expected.get("$contains"), str) and len(expected) == 1:
        needle = expected["$contains"].lower()
        if "{{" not in needle and all(isinstance(actual, str) and actual.lower() == needle for actual in wrong):
            yield Change(f"ignore case in {name}", (ConfigEdit("rename", (*path, "$contains"), "$ignore_case"),), 1.2)


def _different(values: Sequence[Any]) -> list[Any]:
    distinct: list[Any] = []
    for value in values:
        if len(distinct) > 2 * _VALUES:
            break
        if not any(same_json(value, other) for other in distinct):
            distinct.append(value)
    return distinct


def _list_text(values: Sequence[Any]) -> str:
    return shown(values[0], 40) if len(values) == 1 else count(len(values), "more value")


def _short(value: object) -> bool:
    text = shown(value, _LONG_VALUE + 1)
    return len(text) <= _LONG_VALUE and "{{" not in text


_CALL = re.compile(r"calls\[(\d+)\]")


def trajectory_changes(at: Path, raw: Mapping[str, Any], result: MetricResult) -> Iterator[tuple[str, Change]]:
    """For each argument that differs, and for each other line that failed (a key), the changes that could make it
    right. `raw` is the metric as it is written. What a `reference` expects is recorded: there nothing can be widened.
    """
    others = []
    for line in result.evidence:
        changes = [] if line.passed is not False or "reference" in raw else list(_argument_changes(at, raw, line))
        if not changes:
            others.append(line)
            continue
        yield from changes
        number = _number(line)
        if number is not None and len(raw["calls"]) > 1:
            keys = frozenset(key for key, _ in changes)
            gone = (ConfigEdit("remove", (*at, "calls", number)),)
            change = Change(f"no longer look for {shown(raw['calls'][number], 40)}", gone, 2.0, keys)
            yield from ((key, change) for key in sorted(keys))
    yield from metric_changes(at, raw, replace(result, evidence=tuple(others)))


def _number(line: Evidence) -> int | None:
    matched = _CALL.fullmatch(line.condition)
    return int(matched[1]) if matched is not None else None


def _argument_changes(at: Path, raw: Mapping[str, Any], line: Evidence) -> Iterator[tuple[str, Change]]:
    calls, number = raw.get("calls"), _number(line)
    if number is None or not isinstance(calls, list) or number >= len(calls):
        return
    written = calls[number].get("arguments")
    if not isinstance(written, Mapping):
        return
    for part in (line.fields.get("near_call") or {}).get("arguments") or ():
        name = part.get("argument")
        key, path = f"{at}{line.condition}.{part['is']}.{name}", (*at, "calls", number, "arguments", name)
        if part["is"] == "differs" and part["path"] == name in written and not may_be_cut(part.get("found")):
            for change in widened(path, name, written[name], [part.get("found")], part.get("wanted")):
                yield key, change
        elif part["is"] == "missing" and name in written:
            yield key, Change(f"no longer require the argument {name}", (ConfigEdit("remove", path),), 2.1)
        elif part["is"] == "extra":
            yield key, Change(f"expect {name} too, with any value", (ConfigEdit("set", path, {"$any": True}),), 1.6)
