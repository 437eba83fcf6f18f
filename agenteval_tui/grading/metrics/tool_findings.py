"""What is contradictory or without effect in the properties of a ToolCheck."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agenteval_tui.grading.metrics.metric import Finding
from agenteval_tui.grading.words import quoted

if TYPE_CHECKING:
    from agenteval_tui.grading.metrics.tool_check import ToolCheck, ToolCheckData


def findings_of(metric: ToolCheck) -> Iterator[Finding]:
    """Checks nothing, contradictory, cannot fail, without effect."""
    tools = metric.tools or []
    if metric.checks_nothing():
        yield Finding("warning", "checks-nothing", "this ToolCheck names no tool: it checks nothing")
        return
    forbidden = [name for name in metric.forbidden_tools or () if name]
    seen: set[str] = set()
    for number, tool in enumerate(tools):
        at = ("tools", number)
        yield from _tool(tool, at)
        if tool.name in forbidden and (tool.required or tool.least):
            text = f"{quoted(tool.name)} is both required and forbidden: this can never pass"
            yield Finding("error", "contradictory", text, ("forbidden_tools", _place(metric, tool.name)))
        elif tool.name in forbidden:
            text = f"{quoted(tool.name)} is forbidden: what stands here can change nothing"
            yield Finding("warning", "without-effect", text, (*at, "name"))
        if metric.tool_call_forbidden and tool.required:
            text = f"{quoted(tool.name)} is required, but no tool may be called: this can never pass"
            yield Finding("error", "contradictory", text, ("tool_call_forbidden",))
        if tool.name in seen:
            text = f"{quoted(tool.name)} is listed twice: every call of it is measured against both"
            yield Finding("warning", "duplicate", text, (*at, "name"))
        seen.add(tool.name)
    for number, name in enumerate(metric.forbidden_tools or ()):
        if not name:
            yield Finding("warning", "checks-nothing", "an empty name is ignored here", ("forbidden_tools", number))
        elif name in (metric.forbidden_tools or ())[:number]:
            yield Finding("info", "duplicate", f"{quoted(name)} is in the list already", ("forbidden_tools", number))
    if metric.tool_call_forbidden and forbidden and not tools:
        text = "`tool_call_forbidden` forbids every tool: this list can change nothing"
        yield Finding("info", "without-effect", text, ("forbidden_tools",))
    if tools and not forbidden and not metric.tool_call_forbidden and all(_cannot_fail(tool) for tool in tools):
        text = "this cannot fail: no tool is required, and any number of calls with any arguments is right"
        yield Finding("warning", "cannot-fail", text, ("tools",))


def _tool(tool: ToolCheckData, at: tuple[str | int, ...]) -> Iterator[Finding]:
    if tool.max_calls is not None and tool.least > tool.max_calls:
        if tool.min_calls is not None:
            text = f"`min_calls` {tool.min_calls} is more than `max_calls` {tool.max_calls}: this can never pass"
            yield Finding("error", "contradictory", text, (*at, "min_calls"))
        else:
            text = f"{quoted(tool.name)} is required (`required` is true), but `max_calls` is 0: this can never pass"
            yield Finding("error", "contradictory", text, (*at, "max_calls"))
    if tool.required and tool.min_calls == 0:
        text = "`min_calls` 0 has no effect while the tool is required: it must be called once"
        yield Finding("warning", "without-effect", text, (*at, "min_calls"))
    if tool.allow_additional_arguments and tool.arguments is None:
        text = "without `arguments` no argument is checked: this has no effect"
        yield Finding("info", "without-effect", text, (*at, "allow_additional_arguments"))


def _cannot_fail(tool: ToolCheckData) -> bool:
    anything = tool.arguments is None or (not tool.arguments and tool.allow_additional_arguments)
    # An optional tool with a minimum fails when it is called less often than that.
    return not tool.required and tool.least <= 1 and tool.max_calls is None and anything


def _place(metric: ToolCheck, name: str) -> int:
    return (metric.forbidden_tools or []).index(name)
