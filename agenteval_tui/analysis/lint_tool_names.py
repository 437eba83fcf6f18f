"""The linter that knows the agent: criteria against the tools, arguments and texts that were really seen.

A name that was never seen is not an error: the agent may use it tomorrow. So these are warnings and infos, and they say
on how many runs and calls they rest. Texts and names with placeholders are filled where that can be done, else passed
over.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError, Problem, Severity
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed, quoted, shown
from agenteval_tui.grading.config.diagnostics import marked_range
from agenteval_tui.grading.metrics.matchers import LITERAL, is_literal, is_matcher, type_of
from agenteval_tui.grading.observed_tools import AgentFacts, ArgumentFacts, ToolFacts, with_declared
from agenteval_tui.grading.placeholders import PlaceholderError, fill, has_placeholders
from agenteval_tui.grading.registry import known_metric
from agenteval_tui.grading.spec import json_like, metrics_in
from agenteval_tui.grading.type_names import short_name
from agenteval_tui.history.agent_facts import facts_for
from agenteval_tui.history.store import Store
from agenteval_tui.suites.agents_file import resolve_agent
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig, Suite, Test
from agenteval_tui.suites.tool_files import load_tools
from agenteval_tui.uxon.edit import Path, node_of
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.tree import Document

ENOUGH = 3
"""Runs or calls from which what was never seen is a warning; below it is an info."""

_MATCHED = {
    "$contains": "string",
    "$ignore_case": "string",
    "$regex": "string",
    "$gt": "number",
    "$gte": "number",
    "$lt": "number",
    "$lte": "number",
}
_SINGLE = ("contains", "contains_ignore_case", "starts_with", "ends_with", "equals", "equals_ignore_case")
_ANY = ("contains_any", "starts_with_any", "ends_with_any")

ToolProblem = tuple[str, Path, str, str | None, Severity]
"""Code, path in the config, message, remedy in words, severity. A path ending in `_NAME` means the property's name."""

_NAME = "\0name"


def facts_problems(loaded: LoadedSuite, store: Store, user_agents: Mapping[str, AgentConfig]) -> list[Problem]:
    """What in a suite's criteria does not fit what was recorded of its agent; [] when nothing was."""
    suite = loaded.suite
    if suite is None:
        return []
    agent_facts = facts_for(store, loaded.key)
    problems: list[Problem] = []
    for test in suite.tests:
        facts = with_declared(agent_facts, _declared(loaded, suite, test, user_agents))
        if not facts.runs and not facts.tools_by_name:
            continue
        own: AgentFacts | None = None
        for number, criterion in enumerate(test.criteria):
            source = loaded.config_source(test.id, number)
            document = parse(source.text)
            # The linter itself says what is wrong with it.
            if document.broken:
                continue
            # Only read once a criterion can be looked at.
            if own is None:
                own = facts_for(store, loaded.key, test.id) if agent_facts.runs else AgentFacts()
            variables = _given(test, number)
            for code, path, message, remedy, severity in _criterion(
                document.value, short_name(criterion.prototype_class), facts, own, variables
            ):
                start, end = _place(document, path)
                first, last = source.to_offset(start), source.to_offset(end)
                problems.append(loaded.problem(code, first, max(first, last), message, remedy, severity))
    return sorted(problems, key=lambda problem: (problem.line, problem.column))


def _declared(
    loaded: LoadedSuite, suite: Suite, test: Test, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Mapping[str, Any]]:
    """The tools that the configurations of the test's agents declare, and the mock tools that it brings along."""
    for context in (test.context, *(variation.context for variation in test.variations)):
        if context is not None:
            yield from (tool for tool in context.as_dict().get("sample_tools", ()) if isinstance(tool, dict))
    names = [test.agent or suite.agent, *(variation.agent for variation in test.variations)]
    for name in dict.fromkeys(name for name in names if name):
        try:
            config = resolve_agent(name, suite, user_agents).as_dict()
            tools = load_tools(config.get("tools"), loaded.path.parent)
            yield from (tool for tool in tools if "mcp" not in tool)  # what a server has is known when it runs
        except (AgentevalError, TypeError):
            continue  # the linter says elsewhere what is wrong with it


def _given(test: Test, number: int) -> dict[str, Any] | None:
    """The values of placeholders; None if the rows of a dataset give them."""
    if test.dataset is not None:
        return None
    variables = dict(test.variables)
    expected = test.criteria[number].expected_value
    if expected is not None:
        try:
            variables["expected_value"] = fill(json_like(expected), variables, typed=True)
        except PlaceholderError:
            return None
    return variables


def _filled(value: object, variables: Mapping[str, Any] | None) -> object:
    """`value` with its placeholders filled; None when that can't be done."""
    if not has_placeholders(value):
        return value
    if variables is None:
        return None
    try:
        return fill(value, variables)
    except PlaceholderError:
        return None


def _criterion(
    value: object, prototype: str, facts: AgentFacts, own: AgentFacts, variables: Mapping[str, Any] | None
) -> Iterator[ToolProblem]:
    for number, metric in enumerate(metrics_in(value)):
        if not isinstance(metric, dict) or not isinstance(metric.get("type"), str):
            continue
        at: Path = ("metrics", number)
        kind = known_metric(metric["type"])
        if kind == "ToolCheck":
            yield from _tool_check(at, metric, facts, own, variables)
        elif kind == "TextMatch" and prototype == "TextResponse" and own.answers:
            yield from _texts(at, metric, own, variables)


# Tools


def _tool_check(
    at: Path, metric: Mapping[str, Any], facts: AgentFacts, own: AgentFacts, variables: Mapping[str, Any] | None
) -> Iterator[ToolProblem]:
    listed_as = "tools" if "tools" in metric else "tool"
    entries = metric.get(listed_as)
    for number, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = _filled(entry.get("name"), variables) if isinstance(entry, dict) else None
        if not isinstance(name, str) or not name:
            continue
        place = (*at, listed_as, number)
        tool = facts.tools_by_name.get(name)
        if tool is None:
            yield from _unknown_tool((*place, "name"), name, facts, own)
        else:
            yield from _arguments(place, entry, tool, variables)
    forbidden = metric.get("forbidden_tools")
    for number, name in enumerate(forbidden if isinstance(forbidden, list) else ()):
        # That it was never called is what is wanted; that it is hardly the name of a tool is not.
        tools = facts.tools()
        if isinstance(name, str) and name and name not in tools and (near := closest(name, tools)):
            message = f"{quoted(name)} was never called{_declared_words(facts)}, but {near} was: did you mean {near}?"
            yield "unknown-tool", (*at, "forbidden_tools", number), message, f"write {near}", "warning"


def _unknown_tool(path: Path, name: str, facts: AgentFacts, own: AgentFacts) -> Iterator[ToolProblem]:
    tools = facts.tools()
    near = closest(name, tools)
    declared = any(tool.declared for tool in facts.tools_by_name.values())
    if not near and not declared and not own.runs:
        return  # this test was never run: other tests need not have called its tools
    runs = count(facts.runs, "stored run")
    message = f"{quoted(name)} was never called in {runs} of this suite{_declared_words(facts)}"
    if near:
        message += f": did you mean {near}?"
    else:
        message += f": there {'is' if len(tools) == 1 else 'are'} {listed(list(tools), 8)}" if tools else ""
    strong = declared or facts.runs >= ENOUGH
    yield "unknown-tool", path, message, f"write {near}" if near else None, "warning" if strong else "info"


def _declared_words(facts: AgentFacts) -> str:
    return ", and no agent declares it" if any(tool.declared for tool in facts.tools_by_name.values()) else ""


def _arguments(
    place: Path, entry: Mapping[str, Any], tool: ToolFacts, variables: Mapping[str, Any] | None
) -> Iterator[ToolProblem]:
    arguments = entry.get("arguments")
    if isinstance(arguments, dict):
        named = [((*place, "arguments", name), name, value) for name, value in arguments.items()]
    elif isinstance(arguments, list):
        named = [
            ((*place, "arguments", number, name), name, value)
            for number, entry in enumerate(arguments)
            if isinstance(entry, dict)
            for name, value in entry.items()
        ]
    else:
        return
    if not tool.calls and not tool.declared:
        return
    for path, name, value in named:
        argument_facts = tool.arguments.get(name)
        if argument_facts is None:
            if tool.calls or tool.closed:
                yield _unknown_argument(path, name, tool)
            continue
        yield from _type(path, tool, argument_facts, _filled(value, variables))
    if entry.get("allow_additional_arguments") is not True and entry.get("required") is not False:
        expected = {name for _, name, _ in named}
        for name, declared in tool.arguments.items():
            if declared.required and name not in expected:
                message = (
                    f"{tool.name} declares {name} as required: each call has it, but this criterion does not expect it"
                )
                remedy = f"add {name}, or allow_additional_arguments"
                yield "missing-argument", (*place, "arguments", _NAME), message, remedy, "warning"


def _unknown_argument(path: Path, name: str, tool: ToolFacts) -> ToolProblem:
    near = closest(name, tool.arguments)
    lack = f"none of {count(tool.calls, 'call')} of {tool.name} had" if tool.calls else f"{tool.name} does not declare"
    message = f"{lack} an argument {quoted(name)}"
    if near:
        message += f": did you mean {near}?"
    elif tool.arguments:
        message += f": there {'is' if len(tool.arguments) == 1 else 'are'} {listed(list(tool.arguments), 8)}"
    strong = tool.closed or tool.calls >= ENOUGH
    severity: Severity = "warning" if strong else "info"
    return "unknown-argument", (*path, _NAME), message, f"write {near}" if near else None, severity


def _type(path: Path, tool: ToolFacts, argument_facts: ArgumentFacts, value: Any) -> Iterator[ToolProblem]:
    is_value = is_literal(value) or not is_matcher(value)
    value = value[LITERAL] if is_literal(value) else value
    if value is None or has_placeholders(value):
        return
    expected_type = type_of(value) if is_value else _wanted_type(value)
    types = set(argument_facts.types) | set(argument_facts.declared)
    if expected_type is not None and types and expected_type not in types:
        if argument_facts.calls:
            kinds = listed([_a(kind) for kind in argument_facts.types])
            types_seen = f"was {kinds} in {_all(argument_facts.calls)} of {tool.name}"
        else:
            types_seen = f"is declared as {listed(list(argument_facts.declared))}"
        message = f"{argument_facts.name} {types_seen}, but {shown(value, 40)} expects {_a(expected_type)}"
        strong = bool(argument_facts.declared) or argument_facts.calls >= ENOUGH
        yield "argument-type", path, message, _other_type(value, types), "warning" if strong else "info"
    elif argument_facts.choices and is_value and value not in argument_facts.choices:
        near = (
            closest(value, [choice for choice in argument_facts.choices if isinstance(choice, str)])
            if isinstance(value, str)
            else None
        )
        choices = listed([shown(choice, 30) for choice in argument_facts.choices], 8)
        message = f"{argument_facts.name} of {tool.name} is declared as one of {choices}, not {shown(value, 40)}"
        yield "argument-value", path, message, f"write {quoted(near)}" if near else None, "warning"


def _wanted_type(value: Any) -> str | None:
    """The JSON type that an expected value or matcher can only be right for; None: several."""
    if not is_matcher(value):
        return type_of(value)
    if isinstance(value.get("$type"), str):
        return str(value["$type"])
    # A matcher of two kinds can be right for both, or for neither.
    types = {_MATCHED.get(name) for name in value}
    return types.pop() if len(types) == 1 else None


def _other_type(value: object, types: set[str]) -> str | None:
    # `true` is a number in Python.
    if isinstance(value, bool) or is_matcher(value):
        return None
    if isinstance(value, int | float) and "string" in types:
        return f'write "{shown(value)}"'
    if isinstance(value, str) and "number" in types:
        try:
            float(value)
        except ValueError:
            return None
        return f"write {value}"
    return None


def _a(kind: str) -> str:
    return kind if kind == "null" else f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _all(calls: int) -> str:
    return "the only call" if calls == 1 else f"all {calls:,} calls"


# Texts


def _texts(
    at: Path, metric: Mapping[str, Any], own: AgentFacts, variables: Mapping[str, Any] | None
) -> Iterator[ToolProblem]:
    where = f"{count(own.answers_runs, 'stored answer')} of this test"
    for name in _SINGLE:
        needle = _filled(metric.get(name), variables)
        if isinstance(needle, str) and needle and not _occurs(needle, own.answers, name.endswith("_ignore_case")):
            yield _unseen((*at, name), needle, where)
    everything = metric.get("contains_all")
    for number, written in enumerate(everything if isinstance(everything, list) else ()):
        needle = _filled(written, variables)
        if isinstance(needle, str) and needle and not _occurs(needle, own.answers, False):
            yield _unseen((*at, "contains_all", number), needle, where)
    # One of these is enough, so all must be known and none seen.
    for name in _ANY:
        needles = [_filled(written, variables) for written in metric.get(name) or () if written]
        texts = [needle for needle in needles if isinstance(needle, str)]
        if texts and len(texts) == len(needles) and not any(_occurs(text, own.answers, False) for text in texts):
            subject = f"none of {len(texts)} texts" if len(texts) > 1 else quoted(texts[0], 40)
            yield "unseen-text", (*at, name), f"{subject} was in any of {where}", None, "info"


def _unseen(path: Path, needle: str, where: str) -> ToolProblem:
    return "unseen-text", path, f"{quoted(needle, 40)} was not in any of {where}", None, "info"


def _occurs(needle: str, answers: Sequence[str], ignore_case: bool) -> bool:
    if ignore_case:
        needle = needle.lower()
        return any(needle in answer.lower() for answer in answers)
    return any(needle in answer for answer in answers)


# Places


def _place(document: Document, path: Path) -> tuple[int, int]:
    """The characters of a value (of an object or list its bracket), or of a property's name."""
    if path and path[-1] == _NAME:
        owner = node_of(document, path[:-2])
        member = owner.member(str(path[-2])) if owner is not None else None
        if member is not None:
            return member.key_start, member.key_end
        path = path[:-1]
    return marked_range(document, path)
