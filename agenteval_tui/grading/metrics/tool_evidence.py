"""The evidence of a ToolCheck: each part, with the calls and arguments that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.metrics.tool_differences import differences
from agenteval_tui.grading.metrics.tool_nearest import Nearest, nearest_calls
from agenteval_tui.grading.metrics.tool_scoring import CompiledToolCheck, Tool
from agenteval_tui.grading.metrics.verdicts import kept_value
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.grading.sentences import of_wanted
from agenteval_tui.transcripts.model import ToolCall

_SPANS = 50
_CALLS = 100
_NEAREST = 5  # expected calls of one entry that are said with their nearest actual call

Numbered = list[tuple[int, ToolCall]]


def evidence_of(check: CompiledToolCheck, calls: tuple[ToolCall, ...]) -> Iterator[Evidence]:
    """A line for each tool's usage, for each of its calls' arguments, for each forbidden tool."""
    if check.none_at_all:
        yield _none_at_all(calls)
    # What is nearest is looked for only where something is missing or wrong.
    right = check.score(calls)[1]
    paired = () if right else nearest_calls(check.tools, calls)
    for number, tool in enumerate(check.tools):
        own = [(index, call) for index, call in enumerate(calls) if call.name == tool.name]
        nearest = [one for one in paired if one.tool == number and one.call is not None]
        yield _usage(number, tool, own, calls, nearest)
        if tool.expected is not None:
            yield from _arguments(number, tool, own, nearest)
    for number, name in enumerate(check.forbidden):
        yield _forbidden(number, name, calls)


def _none_at_all(calls: tuple[ToolCall, ...]) -> Evidence:
    name, group = "tool_call_forbidden", "forbidden"
    if not calls:
        return Evidence(name, True, "", 0, 0, group=group, code=Code.NOT_CALLED, fields={"forbidden": True, "calls": 0})
    called = list(dict.fromkeys(call.name for call in calls))
    fields = {"forbidden": True, "calls": len(calls), "called": called}
    spans = tuple(Span("tool", index) for index in range(min(len(calls), _SPANS)))
    return Evidence(name, False, "", 0, len(calls), spans, group=group, code=Code.CALLED, fields=fields)


def _usage(number: int, tool: Tool, own: Numbered, calls: tuple[ToolCall, ...], nearest: list[Nearest]) -> Evidence:
    name = f"tools[{number}].usage"
    spans = tuple(Span("tool", index) for index, _ in own[:_SPANS])
    wanted = of_wanted(tool.least, tool.most)
    times = len(own)
    fields: dict[str, Any] = {"tool": tool.name, "calls": times, "least": tool.least, "most": tool.most}
    near: tuple[Span, ...] = ()
    if times == 0:
        if not tool.required:
            return Evidence(name, True, "", wanted, 0, group="usage", code=Code.NOT_CALLED, fields=fields)
        fields["called"] = list(dict.fromkeys(call.name for call in calls))
        if calls and nearest:
            fields["nearest"] = _nearest(tool, calls, nearest[0])
            near = tuple(Span("tool", one.call or 0) for one in nearest)[:_SPANS]
        return Evidence(name, False, "", wanted, 0, near=near, group="usage", code=Code.NEVER_CALLED, fields=fields)
    passed = tool.usage(times) == 1.0
    if passed:
        return Evidence(name, True, "", wanted, times, spans, group="usage", code=Code.CALLED, fields=fields)
    others = [one for one in nearest if not one.same_name and one.call is not None]
    if others:
        fields["perhaps"] = [_named(one, tool, calls) for one in others[:_NEAREST]]
        near = tuple(Span("tool", one.call or 0) for one in others)
    code = Code.TOO_FEW if times < tool.least else Code.TOO_MANY
    return Evidence(name, False, "", wanted, times, spans, near, "usage", code, fields)


def _nearest(tool: Tool, calls: tuple[ToolCall, ...], one: Nearest) -> dict[str, Any]:
    """The call of another tool that was meant, perhaps."""
    name = calls[one.call or 0].name
    made: dict[str, Any] = {"tool": name, "call": one.call, "calls": sum(call.name == name for call in calls)}
    if name.lower() == tool.name.lower():
        made["case"] = True
    if tool.expected:
        made["arguments"] = [argument.fields() for argument in one.differences]
    return made


def _named(one: Nearest, tool: Tool, calls: tuple[ToolCall, ...]) -> dict[str, Any]:
    made: dict[str, Any] = {"call": one.call or 0, "tool": calls[one.call or 0].name}
    if tool.expected and not one.differences:
        made["equal"] = True
    return made


def _arguments(number: int, tool: Tool, own: Numbered, nearest: list[Nearest]) -> Iterator[Evidence]:
    expected = {one.name: one.said for one in tool.expected or ()}
    name = f"tools[{number}].arguments"
    if not own:
        if tool.required:
            missing = {"tool": tool.name, "arguments_of": True}
            yield Evidence(name, False, "", expected, None, group="arguments", code=Code.NEVER_CALLED, fields=missing)
        return
    judged = [(position, index, call, tool.right(call)) for position, (index, call) in enumerate(own, start=1)]
    # An agent that ran wild made thousands of calls: the wrong ones are said first, the rest is counted.
    told = judged if len(judged) <= _CALLS else sorted(judged, key=lambda one: one[3])[:_CALLS]
    nearest = [one for one in nearest if one.same_name][:_NEAREST]
    # Where no call is right, the one that comes nearest is what a person should read first.
    closest = {one.call for one in nearest} if not any(right for *_, right in judged) else set()
    for position, index, call, right in sorted(told, key=lambda one: (one[1] not in closest, one[0])):
        condition = name if len(own) == 1 else f"{name}[{position}]"
        fields: dict[str, Any] = {"tool": tool.name, "call": index}
        if len(own) > 1:
            fields["position"] = position
        if right:
            spans = tuple(Span("arguments", index, path=one.name) for one in tool.expected or ())
            spans, code = spans or (Span("tool", index),), Code.EQUAL
        else:
            code, spans = _differences(tool, index, call, fields)
        yield Evidence(condition, right, "", expected, kept_value(call.arguments), spans, (), "arguments", code, fields)
    if len(own) > 1 and not all(right for *_, right in judged):
        places = {index: position for position, index, *_ in judged}
        for one in nearest:
            yield _paired(number, tool, one, places[one.call or 0])
    if len(told) < len(judged):
        wrong = sum(not right for *_, right in judged) - sum(not right for *_, right in told)
        fields = {"tool": tool.name, "more": len(judged) - len(told), "wrong": wrong}
        yield Evidence(
            f"{name}[more]", wrong == 0, "", expected, None, group="arguments", code=Code.CALLED, fields=fields
        )


def _paired(number: int, tool: Tool, one: Nearest, position: int) -> Evidence:
    """Which of several calls an expected call is, or is nearest to: said beside the verdict, not part of it."""
    expected = {argument.name: argument.said for argument in tool.expected or ()}
    place = (Span("tool", one.call or 0),)
    name = f"tools[{number}].nearest" if tool.least <= 1 else f"tools[{number}].nearest[{one.slot + 1}]"
    slot = None if tool.least <= 1 else one.slot
    fields: dict[str, Any] = {"tool": tool.name, "call": one.call, "position": position, "slot": slot}
    if not one.differences:
        return Evidence(name, None, "", expected, None, place, code=Code.EQUAL, fields=fields)
    fields["arguments"] = [argument.fields() for argument in one.differences]
    return Evidence(name, None, "", expected, None, near=place, code=Code.DIFFERS, fields=fields)


def _differences(tool: Tool, index: int, call: ToolCall, fields: dict[str, Any]) -> tuple[Code, tuple[Span, ...]]:
    """The code of a call that is wrong and where it shows; `fields` gets what is wrong."""
    found = differences(tool, call)
    given = [one for one in found if one.kind in ("differs", "extra")]
    spans = tuple(Span("arguments", index, path=one.path) for one in given) or (Span("tool", index),)
    if len(found) == 1 and found[0].kind == "unreadable":
        fields |= found[0].fields()
        return Code.UNREADABLE, spans
    fields["arguments"] = [one.fields() for one in found]
    return Code.DIFFERS, spans


def _forbidden(number: int, name: str, calls: tuple[ToolCall, ...]) -> Evidence:
    condition = f"forbidden_tools[{number}]"
    hits = [index for index, call in enumerate(calls) if call.name == name]
    fields = {"tool": name, "forbidden": True, "calls": len(hits)}
    if not hits:
        return Evidence(condition, True, "", name, 0, group="forbidden", code=Code.NOT_CALLED, fields=fields)
    spans = tuple(Span("tool", index) for index in hits[:_SPANS])
    return Evidence(condition, False, "", name, len(hits), spans, (), "forbidden", Code.CALLED, fields)
