"""The evidence of a Trajectory: which expected call is which, what is missing, and what is too much."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.metrics.tool_scoring import arguments_of
from agenteval_tui.grading.metrics.trajectory_matching import Compared, CompiledTrajectory, Wanted
from agenteval_tui.grading.metrics.verdicts import kept_value
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.transcripts.model import ToolCall

_LINES = 60
_ARGUMENTS = 40
_NEAR = 200  # calls that are compared with one that is missing


def evidence_of(check: CompiledTrajectory, found: Compared, calls: tuple[ToolCall, ...]) -> Iterator[Evidence]:
    """A line for each expected call, for each call too much, for each message that differs."""
    mode = check.mode
    yield from _structure(found)
    if mode in ("any", "none") or (not check.wanted and not calls):
        yield _whole(check, found, calls)
    owner = {right: left for left, right in found.pairs.items()}
    told = 0
    for number, one in enumerate(check.wanted):
        right = found.pairs.get(number)
        if told >= _LINES:
            break
        if mode in ("strict", "unordered", "exact", "superset", "all") or right is not None:
            told += 1
            yield _expected(check, number, one, right, calls, owner)
    if mode in ("strict", "unordered", "exact", "subset"):
        unpaired = [index for index in range(len(calls)) if index not in owner]
        for index in unpaired[:_LINES]:
            yield _too_much(check, index, calls)
        if len(unpaired) > _LINES:
            rest = len(unpaired) - _LINES
            fields = {"calls": rest}
            yield Evidence("calls[more]", False, "", 0, rest, group=mode, code=Code.UNEXPECTED, fields=fields)


def _structure(found: Compared) -> Iterator[Evidence]:
    for code, fields in found.structure[:_LINES]:
        index = fields["message"] if "message" in fields else min(fields["messages"], fields["expected_messages"])
        yield Evidence(f"messages[{index}]", False, group="messages", code=code, fields=fields)


def _whole(check: CompiledTrajectory, found: Compared, calls: tuple[ToolCall, ...]) -> Evidence:
    names = sorted({one.name for one in check.wanted})
    fields: dict[str, Any] = {"calls": len(calls)}
    if not check.wanted and check.mode not in ("any", "none"):
        fields["expected_none"] = True
        return Evidence("calls", True, "", 0, 0, group=check.mode, code=Code.NOT_CALLED, fields=fields)
    spans = tuple(dict.fromkeys(Span("tool", index) for index in found.pairs.values()))
    near: tuple[Span, ...] = ()
    fields["any_of"] = names
    if check.mode == "any":
        code = Code.CALLED if found.pairs else Code.NEVER_CALLED
        near = () if found.pairs else _alike(check, calls)
    else:
        code, fields["forbidden"] = Code.CALLED if found.pairs else Code.NOT_CALLED, True
    return Evidence("calls", found.passed, "", names, len(found.pairs), spans, near, check.mode, code, fields)


def _alike(check: CompiledTrajectory, calls: tuple[ToolCall, ...]) -> tuple[Span, ...]:
    return tuple(
        Span("tool", index) for index, call in enumerate(calls[:_NEAR]) if any(one.named(call) for one in check.wanted)
    )[:20]


def _expected(
    check: CompiledTrajectory,
    number: int,
    one: Wanted,
    right: int | None,
    calls: tuple[ToolCall, ...],
    owner: dict[int, int],
) -> Evidence:
    name, mode = f"calls[{number}]", check.mode
    if right is not None:
        call = calls[right]
        spans: tuple[Span, ...] = (Span("tool", right),)
        if one.matchers and one.how != "ignore":
            given = arguments_of(call) or {}
            spans = tuple(Span("arguments", right, path=key) for key in one.matchers if key in given) or spans
        fields: dict[str, Any] = {"tool": one.name, "wanted": one.said, "call": right}
        if mode == "none":
            fields["forbidden"] = True
        return Evidence(name, mode != "none", "", one.said, call.name, spans, (), mode, Code.CALLED, fields)
    fields = {"tool": one.name, "wanted": one.said, "calls": len(calls)}
    if mode == "strict" and check.reference is None:
        fields["position"] = number
        if calls and number < len(calls) and not one.named(calls[number]):
            fields["instead"] = calls[number].name
    near = _nearest(check, one, calls, owner) if calls else None
    if near is None:
        return Evidence(name, False, "", one.said, None, (), (), mode, Code.NEVER_CALLED, fields)
    code, fields["near_call"], spans = near
    return Evidence(name, False, "", one.said, None, (), spans, mode, code, fields)


def _nearest(
    check: CompiledTrajectory, one: Wanted, calls: tuple[ToolCall, ...], owner: dict[int, int]
) -> tuple[Code, dict[str, Any], tuple[Span, ...]] | None:
    """The call that comes closest: of the same tool, with the fewest differences, not another one's partner."""
    same = [index for index, call in enumerate(calls) if one.named(call)][:_NEAR]
    open_ones = [index for index in same if index not in owner]
    elsewhere = next((index for index in open_ones if one.holds(calls[index])), None)
    if elsewhere is not None:
        return Code.OUT_OF_PLACE, {"tool": one.name, "call": elsewhere}, (Span("tool", elsewhere),)
    if open_ones:
        best = min(open_ones, key=lambda index: len(one.differences(calls[index])))
        parts = one.differences(calls[best])
        given = [part["argument"] for part in parts if part["is"] in ("differs", "extra")]
        spans = tuple(Span("arguments", best, path=key) for key in given) or (Span("tool", best),)
        near = {"tool": one.name, "call": best, "differences": len(parts), "arguments": parts[:_ARGUMENTS]}
        return Code.DIFFERS, near, spans
    if same:
        return Code.NEVER_CALLED, {"tool": one.name, "call": same[0], "taken": len(same)}, (Span("tool", same[0]),)
    from difflib import get_close_matches

    names = list(dict.fromkeys(call.name for call in calls))
    close = get_close_matches(one.name, names, n=1, cutoff=0.7)
    if not close:
        return None
    at = next(index for index, call in enumerate(calls) if call.name == close[0])
    return Code.NEVER_CALLED, {"tool": close[0], "call": at}, (Span("tool", at),)


def _too_much(check: CompiledTrajectory, index: int, calls: tuple[ToolCall, ...]) -> Evidence:
    call = calls[index]
    fields = {"tool": call.name, "call": index, "arguments": kept_value(call.arguments)}
    spans = (Span("tool", index),)
    return Evidence(f"calls[+{index}]", False, "", None, call.name, spans, (), check.mode, Code.UNEXPECTED, fields)
