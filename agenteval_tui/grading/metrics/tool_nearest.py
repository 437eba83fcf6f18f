"""Which actual call each expected call is, or is nearest to: the assignment with the smallest total difference."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.grading.assign import assign
from agenteval_tui.grading.metrics.tool_differences import ArgumentDifference, differences, distance
from agenteval_tui.grading.metrics.tool_scoring import Tool
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.model import ToolCall

MOST_SLOTS = 40
MOST_CALLS = 120
"""Calls that are compared: those of the expected names first. What is beyond is judged, but not paired."""

_ALIKE = 0.7
_OTHER_NAME = 2.0  # a call of another name is never nearer than one of the right name
_SAME_ARGUMENTS = 0.25


@dataclass(frozen=True, slots=True)
class Nearest:
    """The expected call `slot` (from 0) of entry `tool`, and the actual call that it is paired with.

    `call` is None when no call is left that comes near. `same_name` is False for a call of another tool;
    `differences` are those of the arguments (() when they are right, or not looked at).
    """

    tool: int
    slot: int
    call: int | None = None
    same_name: bool = True
    differences: tuple[ArgumentDifference, ...] = ()


def nearest_calls(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> tuple[Nearest, ...]:
    """Each expected call (an entry with `min_calls` k stands for k of them) with the nearest actual one.

    Each actual call is used once, and the differences add up to the least there can be: a call that is just right
    for one entry is not called the near miss of another.
    """
    slots = _slots(tools, calls)
    chosen = _chosen(tools, calls)
    if not slots or not chosen:
        return tuple(Nearest(tool, slot) for tool, slot in slots)
    lines: dict[int, list[float]] = {}
    names: dict[tuple[str, str], float] = {}
    for number in {tool for tool, _ in slots}:
        lines[number] = [_cost(tools[number], calls[index], names) for index in chosen]
    paired = dict(assign([lines[tool] for tool, _ in slots]).pairs)
    found = []
    for row, (number, slot) in enumerate(slots):
        column = paired.get(row)
        if column is None or not _comes_near(tools[number], calls[chosen[column]], names):
            found.append(Nearest(number, slot))
            continue
        call = calls[chosen[column]]
        found.append(
            Nearest(number, slot, chosen[column], call.name == tools[number].name, differences(tools[number], call))
        )
    return tuple(found)


def name_likeness(left: str, right: str) -> float:
    """0..1; 1 for names that differ only in case."""
    from rapidfuzz import fuzz

    return fuzz.ratio(left.lower(), right.lower()) / 100


def _slots(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> list[tuple[int, int]]:
    """The expected calls; of an optional tool as many as there are, because they are taken."""
    slots: list[tuple[int, int]] = []
    for number, tool in enumerate(tools):
        least = max(tool.least, int(tool.required))
        if not tool.required:
            made = sum(call.name == tool.name for call in calls)
            least = made and max(least, 1)
        slots += [(number, slot) for slot in range(min(least, MOST_SLOTS))]
    return slots[:MOST_SLOTS]


def _chosen(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> list[int]:
    if len(calls) <= MOST_CALLS:
        return list(range(len(calls)))
    names = {tool.name for tool in tools}
    return sorted(range(len(calls)), key=lambda index: calls[index].name not in names)[:MOST_CALLS]


def _likeness(tool: Tool, call: ToolCall, names: dict[tuple[str, str], float]) -> float:
    key = (tool.name, call.name)
    if key not in names:
        names[key] = name_likeness(*key)
    return names[key]


def _cost(tool: Tool, call: ToolCall, names: dict[tuple[str, str], float]) -> float:
    cost = distance(tool, call)
    if call.name != tool.name:
        cost += _OTHER_NAME + 2 * (1 - _likeness(tool, call, names))
    return cost


def _comes_near(tool: Tool, call: ToolCall, names: dict[tuple[str, str], float]) -> bool:
    """A call of another tool is a near miss when the names are alike, or it has just the expected arguments."""
    if call.name == tool.name or _likeness(tool, call, names) >= _ALIKE:
        return True
    return bool(tool.expected) and distance(tool, call) <= _SAME_ARGUMENTS
