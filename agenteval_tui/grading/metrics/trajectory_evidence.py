"""The evidence of a Trajectory: which expected call is which, what is missing, and what is too much."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.grading.metrics.tool_scoring import arguments_of
from agenteval_tui.grading.metrics.trajectory_matching import Compared, CompiledTrajectory, Wanted
from agenteval_tui.grading.results import Evidence, Span
from agenteval_tui.grading.words import count, nth, shown
from agenteval_tui.transcripts.model import ToolCall

_LINES = 60
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
            yield Evidence("calls[more]", False, f"{count(rest, 'more call')} not expected", 0, rest, group=mode)


def _structure(found: Compared) -> Iterator[Evidence]:
    for index, reason in found.structure[:_LINES]:
        yield Evidence(f"messages[{index}]", False, reason, group="messages")


def _whole(check: CompiledTrajectory, found: Compared, calls: tuple[ToolCall, ...]) -> Evidence:
    names = sorted({one.name for one in check.wanted})
    if not check.wanted and check.mode not in ("any", "none"):
        return Evidence("calls", True, "no call is expected, and none was made", 0, 0, group=check.mode)
    spans = tuple(dict.fromkeys(Span("tool", index) for index in found.pairs.values()))
    made = count(len(calls), "call")
    if check.mode == "any":
        reason = "one of the expected tools was called" if found.pairs else f"none of the expected tools in {made}"
        near = () if found.pairs else _alike(check, calls)
        return Evidence("calls", found.passed, reason, names, len(found.pairs), spans, near, "any")
    reason = "a tool that must not be called was called" if found.pairs else f"none of these tools in {made}"
    return Evidence("calls", found.passed, reason, names, len(found.pairs), spans, group="none")


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
        reason = f"{one.said} is the {nth(right + 1)} call"
        if mode == "none":
            return Evidence(name, False, f"{one.said} must not be called, but is the {nth(right + 1)} call", one.said,
                            call.name, spans, group=mode)  # fmt: skip
        return Evidence(name, True, reason, one.said, call.name, spans, group=mode)
    where = f" as the {nth(number + 1)} call" if mode == "strict" and check.reference is None else ""
    reason = f"{one.said} was not called{where}"
    if not calls:
        return Evidence(name, False, f"{reason}: the agent called no tool", one.said, None, group=mode)
    if mode == "strict" and check.reference is None and number < len(calls) and not one.named(calls[number]):
        reason += f", {calls[number].name} was"
    near = _nearest(check, number, one, calls, owner)
    if near is None:
        return Evidence(name, False, reason, one.said, None, group=mode)
    said, spans = near
    return Evidence(name, False, f"{reason}; {said}", one.said, None, (), spans, mode)


def _nearest(
    check: CompiledTrajectory, number: int, one: Wanted, calls: tuple[ToolCall, ...], owner: dict[int, int]
) -> tuple[str, tuple[Span, ...]] | None:
    """The call that comes closest: of the same tool, with the fewest differences, not another one's partner."""
    same = [index for index, call in enumerate(calls) if one.named(call)][:_NEAR]
    open_ones = [index for index in same if index not in owner]
    elsewhere = next((index for index in open_ones if one.holds(calls[index])), None)
    if elsewhere is not None:
        return f"it is the {nth(elsewhere + 1)} call", (Span("tool", elsewhere),)
    if open_ones:
        best = min(open_ones, key=lambda index: len(one.differences(calls[index])))
        parts = one.differences(calls[best])
        spans = tuple(Span("arguments", best, path=key) for key, _ in parts if key) or (Span("tool", best),)
        only = "only " if len(parts) == 1 else ""
        return f"the {nth(best + 1)} call differs {only}in {'; '.join(text for _, text in parts[:4])}", spans
    if same:
        return f"each call of {one.name} ({len(same)}) stands for another expected one already", (
            Span("tool", same[0]),
        )
    from difflib import get_close_matches

    names = list(dict.fromkeys(call.name for call in calls))
    close = get_close_matches(one.name, names, n=1, cutoff=0.7)
    if not close:
        return None
    at = next(index for index, call in enumerate(calls) if call.name == close[0])
    return f"nearest {close[0]}, the {nth(at + 1)} call", (Span("tool", at),)


def _too_much(check: CompiledTrajectory, index: int, calls: tuple[ToolCall, ...]) -> Evidence:
    call = calls[index]
    reason = f"the {nth(index + 1)} call, {call.name}({shown(call.arguments, 60)}), is not expected"
    spans = (Span("tool", index),)
    return Evidence(f"calls[+{index}]", False, reason, None, call.name, spans, group=check.mode)
