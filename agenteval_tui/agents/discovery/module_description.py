"""What a module says about its agents: the tools they have, and what its own code asks them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from agenteval_tui.agents.discovery.model import FoundTool
from agenteval_tui.agents.discovery.python_module import (
    Function,
    Module,
    Modules,
    bindings,
    called_name,
    code_of,
    constant_text,
    keyword,
    needed,
)

_INSTRUCTIONS = (
    *("instructions", "system_prompt", "system_message", "instruction", "prompt", "system", "state_modifier"),
    *("global_instruction", "goal", "backstory", "description"),
)
_ASKING = frozenset(
    (
        *("run", "run_sync", "run_streamed", "run_stream", "run_stream_sync", "iter", "invoke", "ainvoke"),
        *("stream", "astream", "kickoff", "kickoff_async", "query", "aquery", "chat", "achat", "stream_chat"),
        *("arun", "ask", "run_async", "run_debug", "send_message", "print_response", "stream_async"),
        *("invoke_async", "create", "stream_query"),
    )
)
_ARGUMENTS = ("input", "task", "prompt", "user_prompt", "message", "query", "user_msg", "question", "content")
_MOST = 6
MOST_PROMPT = 600  # characters of a prompt that is taken
_EXAMPLE = re.compile(r"(?i:\bfor example|\be\.g\.|\bexample)[:,]?\s+[\"'“`]([^\"”`]{3,120}?)[\"'”`](?!\w)")
_FILLED = frozenset(("self", "cls", "ctx", "context", "config", "runtime", "state", "store", "tool_context", "wrapper"))
_FILLED_TYPES = re.compile(r"\bInjected|Context\b|Context\[|\bRunnableConfig\b|\bToolRuntime\b")
_SECTION = re.compile(
    r"\n[ \t]*(?::(?:param|return)|(?:parameters|args|arguments|returns?|raises?|yields?)"
    r"(?:[ \t]*\([^)\n]*\))?[ \t]*(?::|(?=\n|$)))",
    re.I,
)
"""Where a section of a docstring starts: its name, with a colon or on a line of its own. A sentence may have the
same word at the beginning of a line."""


def instructions_of(modules: Modules, module: Module, call: ast.Call) -> str:
    """The text that tells an agent what it is; "" if the code doesn't have it."""
    for name in _INSTRUCTIONS:
        node = keyword(call, name)
        place = modules.value(module, node)
        if place is not None and isinstance(place[1], Function):
            text = next(
                (
                    text
                    for part in ast.walk(place[1])
                    if isinstance(part, ast.Return) and (text := modules.text(place[0], part.value))
                ),
                "",
            )
        else:
            text = modules.text(module, node)
        if text.strip():
            return text.strip()
    return ""


def tools_of(modules: Modules, module: Module, call: ast.Call, name: str) -> tuple[FoundTool, ...]:
    """The tools of an agent: those that it is made with, and those that decorators give it."""
    listed: list[FoundTool] = []
    for function in module.functions.values():
        for decorator in function.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            is_tool = isinstance(target, ast.Attribute) and target.attr in ("tool", "tool_plain")
            if is_tool and name and code_of(target).rpartition(".")[0] == name:
                listed.append(_of_function(function, decorator))
    named = keyword(call, "tools") or next(
        (node for node in call.args[1:2] if isinstance(node, ast.List | ast.Name)), None
    )
    for tool in _listed(modules, module, named, 0):
        if tool.name not in {other.name for other in listed}:
            listed.append(tool)
    return tuple(listed[:20])


def tools_in(modules: Modules, module: Module) -> tuple[FoundTool, ...]:
    """The tools that a graph's module gives to its models and nodes, with those of the modules that it imports."""
    for other in (module, *_imported(modules, module)):
        for call in other.calls:
            if called_name(call) in ("bind_tools", "ToolNode") and call.args:
                tools = tuple(_listed(modules, other, call.args[0], 0))
                if tools:
                    return tools[:20]
    return ()


def _imported(modules: Modules, module: Module) -> Iterator[Module]:
    visited = {module.path}
    for name in list(module.imports)[:60]:
        place = modules.resolve(module, name)
        if place is not None and place[0].path not in visited:
            visited.add(place[0].path)
            yield place[0]


def _listed(modules: Modules, module: Module, node: ast.expr | None, depth: int) -> Iterator[FoundTool]:
    place = modules.value(module, node)
    if place is None or depth > 4:
        return
    where, value = place
    if isinstance(value, ast.List | ast.Tuple):
        for part in value.elts:
            inner = part.value if isinstance(part, ast.Starred) else part
            if isinstance(part, ast.Starred):
                yield from _listed(modules, where, inner, depth + 1)
            elif (tool := _tool(modules, where, inner)) is not None:
                yield tool
    elif isinstance(value, ast.BinOp):
        yield from _listed(modules, where, value.left, depth + 1)
        yield from _listed(modules, where, value.right, depth + 1)


def _tool(modules: Modules, module: Module, node: ast.expr) -> FoundTool | None:
    place = modules.value(module, node)
    if place is None:
        return None
    where, value = place
    if isinstance(value, Function):
        return _of_function(value, value.decorator_list[0] if value.decorator_list else None)
    if isinstance(value, ast.Call):
        arguments = {word.arg: word.value for word in value.keywords if word.arg}
        agent = modules.value(where, arguments.get("agent") or next(iter(value.args), None))
        if "AgentTool" in code_of(value.func) and agent is not None and isinstance(agent[1], ast.Call):
            name = modules.text(agent[0], keyword(agent[1], "name"))
            return (
                FoundTool(name, first_line(modules.text(agent[0], keyword(agent[1], "description")))) if name else None
            )
        for key in ("func", "function", "fn", "python_function"):
            if key in arguments:
                return _tool(modules, where, arguments[key])
        name = modules.text(where, arguments.get("name") or arguments.get("tool_name"))
        if name:
            return FoundTool(
                name, first_line(modules.text(where, arguments.get("description") or arguments.get("tool_description")))
            )
        maker = modules.value(where, value.func)
        if maker is not None and isinstance(maker[1], ast.ClassDef):
            home, own = maker[0], bindings(maker[1].body)
            name, description = (modules.default_text(home, own.get(field)) for field in ("name", "description"))
            return FoundTool(name, first_line(description)) if name else None
        if len(value.args) >= 1 and isinstance(value.args[0], ast.Name):
            return _tool(modules, where, value.args[0])
    return None


def _of_function(function: Function, decorator: ast.expr | None) -> FoundTool:
    name = function.name
    if isinstance(decorator, ast.Call):
        words = [keyword(decorator, "name_override", "name"), *decorator.args[:1]]
        name = next(filter(None, map(constant_text, words)), name)
    name = name if name.replace("_", "").replace("-", "").isalnum() else function.name
    docstring = ast.get_docstring(function) or ""
    example = _EXAMPLE.search(" ".join(docstring.split()))
    return FoundTool(
        name, first_line(docstring), tuple(_asked_of_model(function)), example[1].strip() if example else ""
    )


def _asked_of_model(function: Function) -> Iterator[str]:
    """The parameters that have no default, without those that a framework fills."""
    for argument in needed(function):
        kind = code_of(argument.annotation) if argument.annotation is not None else ""
        if argument.arg not in _FILLED and not _FILLED_TYPES.search(kind):
            yield argument.arg


def first_line(text: str) -> str:
    """The first sentence or paragraph of a description, on one line."""
    return " ".join(without_sections(text).strip().partition("\n\n")[0].split())[:300]


def without_sections(docstring: str) -> str:
    """What a docstring says before it lists parameters and results."""
    return _SECTION.split(docstring, maxsplit=1)[0]


def prompts_in(modules: Modules, module: Module, agent: str = "") -> tuple[str, ...]:
    """What the module's code asks agents or models, in its order; those for the agent of this name first."""
    own: list[str] = []
    others: list[str] = []
    for node in module.calls:
        receiver = ""
        if isinstance(node.func, ast.Attribute) and node.func.attr in _ASKING:
            receiver = code_of(node.func.value)
        elif isinstance(node.func, ast.Name) and node.func.id in ("query", "HumanMessage", "UserMessage", agent):
            receiver = node.func.id if node.func.id == agent else ""
        else:
            continue
        first = code_of(node.args[0]) if node.args else ""
        for text in _texts(modules, module, node):
            if 2 < len(text) <= MOST_PROMPT and "{" not in text and text not in own:
                is_own = bool(agent) and agent in (receiver, first)
                (own if is_own else others).append(text)
    return tuple(dict.fromkeys([*own, *others]))[:_MOST]


def _texts(modules: Modules, module: Module, call: ast.Call) -> Iterator[str]:
    words = [word.value for word in call.keywords if word.arg in (*_ARGUMENTS, "messages")]
    for node in [*call.args[:2], *words]:
        place = modules.value(module, node)
        if place is None:
            continue
        value = place[1]
        if isinstance(value, ast.Call) and value.keywords:
            yield from _texts(modules, place[0], value)
        if isinstance(value, ast.JoinedStr) and not all(isinstance(part, ast.Constant) for part in value.values):
            continue
        if isinstance(value, ast.Constant | ast.JoinedStr):
            yield " ".join(modules.text(place[0], value).split())
        literal = modules.literal(place[0], node)
        yield from (" ".join(text.split()) for text in _in_data(literal))


def _in_data(data: object) -> Iterator[str]:
    if isinstance(data, list):
        for part in data:
            if (
                isinstance(part, dict)
                and part.get("role") in ("user", "human")
                and isinstance(part.get("content"), str)
            ):
                yield part["content"]
            elif isinstance(part, tuple) and len(part) == 2 and part[0] in ("user", "human"):
                yield str(part[1])
    elif isinstance(data, dict):
        for key, value in data.items():
            if key == "messages":
                yield from _in_data(value)
            elif key in _ARGUMENTS and isinstance(value, str):
                yield value


def inputs_in(modules: Modules, module: Module) -> dict[str, Any]:
    """The named texts that a module starts a crew or a flow with."""
    for node in module.calls:
        if isinstance(node.func, ast.Attribute) and node.func.attr.startswith("kickoff"):
            value = keyword(node, "inputs")
            literal = modules.literal(module, value)
            if literal is None and isinstance(value, ast.Name):
                literal = _assigned(module, value.id)
            elif literal is None and isinstance(value, ast.Dict):
                literal = _plain_of(value)
            if isinstance(literal, dict):
                return {str(key): text for key, text in literal.items() if isinstance(text, str | int | float)}
    return {}


def _assigned(module: Module, name: str) -> dict[str, Any] | None:
    for node in module.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Dict) and name in map(code_of, node.targets):
            return _plain_of(node.value)
    return None


def _plain_of(node: ast.Dict) -> dict[str, Any]:
    """The entries of a dict that are literals."""
    plain: dict[str, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Constant):
            plain[key.value] = value.value
    return plain
