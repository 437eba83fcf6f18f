"""The evidence of a ToolCheck: each part in words, with the calls and arguments that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenteval_tui.grading.metrics.tool_differences import differences, in_words
from agenteval_tui.grading.metrics.tool_nearest import Nearest, nearest_calls
from agenteval_tui.grading.metrics.tool_scoring import CompiledToolCheck, Tool
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.grading.words import count, listed, nth, shown
from agenteval_tui.transcripts.model import ToolCall

_SPANS = 50
_CALLS = 100
_LONG = 2000
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
    if not calls:
        return Evidence("tool_call_forbidden", True, "no tool was called", 0, 0, group="forbidden")
    names = listed(list(dict.fromkeys(call.name for call in calls)))
    return Evidence(
        "tool_call_forbidden",
        False,
        f"no tool may be called, but there {'is' if len(calls) == 1 else 'are'} {count(len(calls), 'call')}: {names}",
        0,
        len(calls),
        tuple(Span("tool", index) for index in range(min(len(calls), _SPANS))),
        group="forbidden",
    )


def _usage(number: int, tool: Tool, own: Numbered, calls: tuple[ToolCall, ...], nearest: list[Nearest]) -> Evidence:
    name = f"tools[{number}].usage"
    spans = tuple(Span("tool", index) for index, _ in own[:_SPANS])
    wanted = _wanted(tool)
    times = len(own)
    if times == 0:
        if not tool.required:
            reason = f"{tool.name} was not called, and need not be"
            return Evidence(name, True, reason, wanted, 0, group="usage")
        reason, near = _never_called(tool, calls, nearest)
        return Evidence(name, False, reason, wanted, 0, near=near, group="usage")
    said = f"{tool.name} was called {_times(times)}"
    passed = tool.usage(times) == 1.0
    if not passed:
        said += f", expected {wanted}"
    others = [one for one in nearest if not one.same_name and one.call is not None]
    if passed or not others:
        return Evidence(name, passed, said, wanted, times, spans, group="usage")
    said += f"; perhaps {listed([_named(one, tool, calls) for one in others[:_NEAREST]])} was meant"
    near = tuple(Span("tool", one.call or 0) for one in others)
    return Evidence(name, passed, said, wanted, times, spans, near, group="usage")


def _wanted(tool: Tool) -> str:
    least, most = tool.least, tool.most
    if most is None:
        return f"at least {_times(least)}" if least else "any number of calls"
    if least > most:
        return f"at least {_times(least)} and at most {_times(most)}, which cannot be"
    if least == most:
        return f"exactly {_times(least)}"
    return f"{least} to {most} times" if least else f"at most {_times(most)}"


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def _never_called(tool: Tool, calls: tuple[ToolCall, ...], nearest: list[Nearest]) -> tuple[str, tuple[Span, ...]]:
    reason = f"{tool.name} was never called"
    if not calls:
        return f"{reason}: the agent called no tool", ()
    if not nearest:
        return f"{reason}; called were {listed(list(dict.fromkeys(call.name for call in calls)))}", ()
    name = calls[nearest[0].call or 0].name
    times = sum(call.name == name for call in calls)
    hint = ", which differs only in case" if name.lower() == tool.name.lower() else ""
    reason += f"; nearest {name}{hint} ({count(times, 'call')})"
    if tool.expected:
        wrong = nearest[0].differences
        own = "with the expected arguments" if not wrong else "; ".join(one.said for one in wrong)
        reason += f", {own}"
    return reason, tuple(Span("tool", one.call or 0) for one in nearest)[:_SPANS]


def _named(one: Nearest, tool: Tool, calls: tuple[ToolCall, ...]) -> str:
    said = f"call {(one.call or 0) + 1}, {calls[one.call or 0].name}"
    if tool.expected:
        said += " with the expected arguments" if not one.differences else ""
    return said


def _arguments(number: int, tool: Tool, own: Numbered, nearest: list[Nearest]) -> Iterator[Evidence]:
    expected = {one.name: one.said for one in tool.expected or ()}
    name = f"tools[{number}].arguments"
    if not own:
        if tool.required:
            reason = f"{tool.name} was never called, so its arguments are not there"
            yield Evidence(name, False, reason, expected, None, group="arguments")
        return
    judged = [(position, index, call, tool.right(call)) for position, (index, call) in enumerate(own, start=1)]
    # An agent that ran wild made thousands of calls: the wrong ones are said first, the rest is counted.
    told = judged if len(judged) <= _CALLS else sorted(judged, key=lambda one: one[3])[:_CALLS]
    nearest = [one for one in nearest if one.same_name][:_NEAREST]
    # Where no call is right, the one that comes nearest is what a person should read first.
    closest = {one.call for one in nearest} if not any(right for *_, right in judged) else set()
    for position, index, call, right in sorted(told, key=lambda one: (one[1] not in closest, one[0])):
        condition = name if len(own) == 1 else f"{name}[{position}]"
        said = f"the call of {tool.name}" if len(own) == 1 else f"the {nth(position)} call of {tool.name}"
        if right:
            spans = tuple(Span("arguments", index, path=one.name) for one in tool.expected or ())
            reason = f"{said} has the expected arguments"
            spans = spans or (Span("tool", index),)
        else:
            reason, spans = _differences(said, tool, index, call)
        yield Evidence(condition, right, reason, expected, _kept(call.arguments), spans, group="arguments")
    if len(own) > 1 and not all(right for *_, right in judged):
        places = {index: position for position, index, *_ in judged}
        for one in nearest:
            yield _paired(number, tool, one, places[one.call or 0])
    if len(told) < len(judged):
        wrong = sum(not right for *_, right in judged) - sum(not right for *_, right in told)
        rest = f"{count(len(judged) - len(told), 'more call')} of {tool.name}, {wrong} of them with other arguments"
        yield Evidence(f"{name}[more]", wrong == 0, rest, expected, None, group="arguments")


def _paired(number: int, tool: Tool, one: Nearest, position: int) -> Evidence:
    """Which of several calls an expected call is, or is nearest to: said beside the verdict, not part of it."""
    call = f"the {nth(position)} call of {tool.name}"
    wanted = "the expected call" if tool.least <= 1 else f"the {nth(one.slot + 1)} expected call"
    expected = {argument.name: argument.said for argument in tool.expected or ()}
    place = (Span("tool", one.call or 0),)
    name = f"tools[{number}].nearest" if tool.least <= 1 else f"tools[{number}].nearest[{one.slot + 1}]"
    if not one.differences:
        return Evidence(name, None, f"{wanted} is {call}", expected, None, place)
    reason = f"nearest to {wanted}: {in_words(call, one.differences)}"
    return Evidence(name, None, reason, expected, None, near=place)


def _kept(arguments: Any) -> Any:
    """The arguments as evidence keeps them: long ones are in the transcript already."""
    return arguments if len(shown(arguments, _LONG + 1)) <= _LONG else shown(arguments, 300)


def _differences(said: str, tool: Tool, index: int, call: ToolCall) -> tuple[str, tuple[Span, ...]]:
    found = differences(tool, call)
    given = [one for one in found if one.kind in ("differs", "extra")]
    spans = tuple(Span("arguments", index, path=one.path) for one in given) or (Span("tool", index),)
    return in_words(said, found), spans


def _forbidden(number: int, name: str, calls: tuple[ToolCall, ...]) -> Evidence:
    condition = f"forbidden_tools[{number}]"
    hits = [index for index, call in enumerate(calls) if call.name == name]
    if not hits:
        return Evidence(condition, True, f"{name} was not called", name, 0, group="forbidden")
    spans = tuple(Span("tool", index) for index in hits[:_SPANS])
    reason = f"{name} must not be called, but was called {_times(len(hits))}"
    return Evidence(condition, False, reason, name, len(hits), spans, group="forbidden")
