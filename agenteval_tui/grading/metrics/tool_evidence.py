"""The evidence of a ToolCheck: each part in words, with the calls and arguments that it is about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.grading.metrics.matchers import type_of
from agenteval_tui.grading.metrics.tool_scoring import CompiledToolCheck, Expected, Tool, arguments_of
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.grading.words import count, listed, nth, shown
from agenteval_tui.transcripts.model import ToolCall

_SPANS = 50
_CALLS = 100
_LONG = 2000
_ALIKE = 70.0

Numbered = list[tuple[int, ToolCall]]


def evidence_of(check: CompiledToolCheck, calls: tuple[ToolCall, ...]) -> Iterator[Evidence]:
    """A line for each tool's usage, for each of its calls' arguments, for each forbidden tool."""
    if check.none_at_all:
        yield _none_at_all(calls)
    for number, tool in enumerate(check.tools):
        own = [(index, call) for index, call in enumerate(calls) if call.name == tool.name]
        yield _usage(number, tool, own, calls)
        if tool.expected is not None:
            yield from _arguments(number, tool, own)
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


def _usage(number: int, tool: Tool, own: Numbered, calls: tuple[ToolCall, ...]) -> Evidence:
    name = f"tools[{number}].usage"
    spans = tuple(Span("tool", index) for index, _ in own[:_SPANS])
    wanted = _wanted(tool)
    times = len(own)
    if times == 0:
        if not tool.required:
            reason = f"{tool.name} was not called, and need not be"
            return Evidence(name, True, reason, wanted, 0, group="usage")
        reason, near = _never_called(tool.name, calls)
        return Evidence(name, False, reason, wanted, 0, near=near, group="usage")
    said = f"{tool.name} was called {_times(times)}"
    passed = tool.usage(times) == 1.0
    if not passed:
        said += f", expected {wanted}"
    return Evidence(name, passed, said, wanted, times, spans, group="usage")


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


def _never_called(name: str, calls: tuple[ToolCall, ...]) -> tuple[str, tuple[Span, ...]]:
    reason = f"{name} was never called"
    if not calls:
        return f"{reason}: the agent called no tool", ()
    from rapidfuzz import fuzz

    names = list(dict.fromkeys(call.name for call in calls))
    best = max(names, key=lambda other: fuzz.ratio(other.lower(), name.lower()))
    if fuzz.ratio(best.lower(), name.lower()) < _ALIKE:
        return f"{reason}; called were {listed(names)}", ()
    spans = tuple(Span("tool", index) for index, call in enumerate(calls) if call.name == best)[:_SPANS]
    hint = ", which differs only in case" if best.lower() == name.lower() else ""
    return f"{reason}; nearest {best}{hint} ({count(len(spans), 'call')})", spans


def _arguments(number: int, tool: Tool, own: Numbered) -> Iterator[Evidence]:
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
    for position, index, call, right in sorted(told, key=lambda one: one[0]):
        condition = name if len(own) == 1 else f"{name}[{position}]"
        said = f"the call of {tool.name}" if len(own) == 1 else f"the {nth(position)} call of {tool.name}"
        if right:
            spans = tuple(Span("arguments", index, path=one.name) for one in tool.expected or ())
            reason = f"{said} has the expected arguments"
            spans = spans or (Span("tool", index),)
        else:
            reason, spans = _differences(said, tool, index, call)
        yield Evidence(condition, right, reason, expected, _kept(call.arguments), spans, group="arguments")
    if len(told) < len(judged):
        wrong = sum(not right for *_, right in judged) - sum(not right for *_, right in told)
        rest = f"{count(len(judged) - len(told), 'more call')} of {tool.name}, {wrong} of them with other arguments"
        yield Evidence(f"{name}[more]", wrong == 0, rest, expected, None, group="arguments")


def _kept(arguments: Any) -> Any:
    """The arguments as evidence keeps them: long ones are in the transcript already."""
    return arguments if len(shown(arguments, _LONG + 1)) <= _LONG else shown(arguments, 300)


def _differences(said: str, tool: Tool, index: int, call: ToolCall) -> tuple[str, tuple[Span, ...]]:
    given = arguments_of(call)
    if given is None:
        what = "are not valid JSON" if call.malformed else f"are no object but {type_of(call.arguments)}"
        return f"the arguments of {said} {what}: {shown(call.arguments)}", (Span("tool", index),)
    expected = tool.expected or ()
    wrong = [one for one in expected if one.name in given and not one.holds(given[one.name])]
    missing = [one for one in expected if one.name not in given]
    additional = [] if tool.additional else tool.additional_names(given)
    spans = tuple(Span("arguments", index, path=name) for name in (*(one.name for one in wrong), *additional)) or (
        Span("tool", index),
    )
    if len(wrong) == 1 and not missing and not additional:
        return f"{said} differs only in {wrong[0].name}: {_expected_got(wrong[0], given)}", spans
    parts = [f"{one.name}: {_expected_got(one, given)}" for one in wrong]
    parts += [_missing(one, given, additional) for one in missing]
    parts += [f"{name} = {shown(given[name], 40)} is not expected" for name in additional]
    if len(parts) == 1:
        return f"{said} differs only in its arguments: {parts[0]}", spans
    return f"{said} differs in {count(len(parts), 'argument')}: {'; '.join(parts)}", spans


def _expected_got(one: Expected, given: Mapping[str, Any]) -> str:
    got = given[one.name]
    return f"expected {one.said}, got {shown(got)}{_would_match(one, got)}"


def _would_match(one: Expected, got: Any) -> str:
    """What little change of the value would make it right: case, white space around it, its type."""
    if isinstance(got, str):
        if one.holds(got.strip()):
            return " (would match without the white space around it)"
        if len(one.matchers) == 1 and one.matchers[0].plain and one.said.lower() == shown(got).lower():
            return " (would match ignoring case)"
        as_number = _number(got)
        if as_number is not None and one.holds(as_number):
            return " (a string instead of a number)"
    elif isinstance(got, int | float) and not isinstance(got, bool) and one.holds(str(got)):
        return " (a number instead of a string)"
    return ""


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _missing(one: Expected, given: Mapping[str, Any], additional: list[str]) -> str:
    said = f"{one.name} is missing (expected {one.said})"
    # A name that is written differently: the value is there under another name.
    squeezed = one.name.replace("_", "").replace("-", "").lower()
    for name in additional:
        if name.replace("_", "").replace("-", "").lower() == squeezed or one.holds(given[name]):
            return f"{said}, perhaps it is {name} = {shown(given[name], 40)}"
    return said


def _forbidden(number: int, name: str, calls: tuple[ToolCall, ...]) -> Evidence:
    condition = f"forbidden_tools[{number}]"
    hits = [index for index, call in enumerate(calls) if call.name == name]
    if not hits:
        return Evidence(condition, True, f"{name} was not called", name, 0, group="forbidden")
    spans = tuple(Span("tool", index) for index in hits[:_SPANS])
    reason = f"{name} must not be called, but was called {_times(len(hits))}"
    return Evidence(condition, False, reason, name, len(hits), spans, group="forbidden")
