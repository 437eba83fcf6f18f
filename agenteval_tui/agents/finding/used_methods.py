"""Methods of classes that the project's own code asks: `desk = Desk(model="m")`, `answer = desk.propagate("...")`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.finding.python_module import Function, Module, Modules

Asks = Callable[[ast.ClassDef], bool]
_MISSING = object()


class UsedMethod(Struct, frozen=True, kw_only=True):
    """A method of the class `owner` in `module`. `settings` make the class, `input` gives the method's parameters
    (empty: it has only the one for the prompt), `output` is the path to the answer in what it returns ("": all of it),
    `prompt` and `variables` are what the project gives it ("": a prompt that is not written in the code)."""

    module: Module
    owner: ast.ClassDef
    method: Function
    settings: Mapping[str, Any]
    input: Mapping[str, Any]
    output: str
    prompt: str
    variables: Mapping[str, Any]


def used_methods(modules: Modules, read: Iterable[Module], paths: Iterable[str], asks: Asks) -> Iterator[UsedMethod]:
    """The methods that the files in `paths` ask of classes in the modules `read`, each class once. `asks`: whether a
    model or an agent is asked in a class."""
    owners = {id(cls): cls for module in read for cls in module.classes.values() if asks(cls)}
    if not owners:
        return
    names = "|".join(sorted({re.escape(cls.name) for cls in owners.values()}))
    constructions = re.compile(rf"\b(?:{names})\s*\(".encode())
    for path in paths:
        text = modules.files.text(path)
        if text is None or not constructions.search(text) or (module := modules.get(path)) is None:
            continue
        for used in _in_module(modules, module, owners):
            del owners[id(used.owner)]
            yield used


def _in_module(modules: Modules, module: Module, owners: Mapping[int, ast.ClassDef]) -> Iterator[UsedMethod]:
    objects: dict[str, tuple[Module, ast.ClassDef, ast.Call]] = {}
    for target, value in _assignments(module.tree):
        if isinstance(target, ast.Name) and isinstance(value, ast.Call):
            place = modules.value(module, value.func)
            if place is not None and isinstance(place[1], ast.ClassDef) and id(place[1]) in owners:
                objects[target.id] = place[0], place[1], value
    if not objects:
        return
    unpacked = {
        id(value): target for target, value in _assignments(module.tree) if isinstance(target, ast.Tuple | ast.List)
    }
    done: set[int] = set()
    for call in module.calls:
        function = call.func
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
            continue
        there = objects.get(function.value.id)
        if there is None or id(there[1]) in done:
            continue
        home, owner, construction = there
        methods = {each.name: each for each in owner.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
        method = methods.get(function.attr)
        if method is None or method.name.startswith("_") or method.decorator_list or not _gives(method):
            continue
        settings = _settings(modules, module, construction, methods.get("__init__"))
        given = _given(modules, module, call, method)
        if settings is None or given is None:
            continue
        done.add(id(owner))
        into, values = given
        prompt = values.pop(into)
        variables = {name: value for name, value in values.items() if isinstance(value, str)}
        inputs = {into: "{{prompt}}", **values, **{name: f"{{{{{name}}}}}" for name in variables}}
        yield UsedMethod(
            module=home,
            owner=owner,
            method=method,
            settings=settings,
            input=inputs if values else {},
            output=_output(unpacked.get(id(call))),
            prompt=prompt if isinstance(prompt, str) else "",
            variables=variables,
        )


def _assignments(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with its value, also what is awaited."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            value = node.value.value if isinstance(node.value, ast.Await) else node.value
            for target in node.targets:
                yield target, value
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr


def _arguments(
    modules: Modules, module: Module, call: ast.Call, function: Function | None
) -> tuple[dict[str, Any], list[str]] | None:
    """What a call gives by the names of the parameters, `_MISSING` for what only running would tell, and the
    parameters without a default; None where the call can't be read so."""
    arguments = function.args if function is not None else ast.arguments([], [ast.arg("self")], None, [], [], None, [])
    names = [each.arg for each in [*arguments.posonlyargs, *arguments.args]][1:]
    keywords = [each.arg for each in arguments.kwonlyargs]
    if len(call.args) > len(names) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    nodes = dict(zip(names, call.args, strict=False))
    for word in call.keywords:
        if word.arg is None or word.arg not in (*names, *keywords):
            return None
        nodes[word.arg] = word.value
    values = {name: _literal(modules, module, node) for name, node in nodes.items()}
    needed = names[: len(names) - len(arguments.defaults)]
    needed += [name for name, default in zip(keywords, arguments.kw_defaults, strict=True) if default is None]
    return values, needed


def _literal(modules: Modules, module: Module, node: ast.expr) -> Any:
    value = modules.literal(module, node)
    plain = value is not None and isinstance(value, str | int | float | bool | list | dict)
    return value if plain or (isinstance(node, ast.Constant) and node.value is None) else _MISSING


def _settings(modules: Modules, module: Module, construction: ast.Call, init: Function | None) -> dict[str, Any] | None:
    """The settings that make the object as the project does, as far as they are written; None where it needs others."""
    read = _arguments(modules, module, construction, init)
    if read is None or any(read[0].get(name, _MISSING) is _MISSING for name in read[1]):
        return None
    return {name: value for name, value in read[0].items() if value is not _MISSING}


def _given(modules: Modules, module: Module, call: ast.Call, method: Function) -> tuple[str, dict[str, Any]] | None:
    """The parameter that gets the prompt, and what the call gives; None where no parameter does, or another needs what
    only running would tell."""
    read = _arguments(modules, module, call, method)
    if read is None or not read[0]:
        return None
    values, needed = read
    into = next((name for name, value in values.items() if value is _MISSING or isinstance(value, str)), None)
    if into is None or any(name != into and values.get(name, _MISSING) is _MISSING for name in needed):
        return None
    return into, {name: value for name, value in values.items() if name == into or value is not _MISSING}


def _gives(function: Function) -> bool:
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))


def _output(target: ast.expr | None) -> str:
    """Which part of a tuple is the answer: the last that is given a name."""
    if not isinstance(target, ast.Tuple | ast.List):
        return ""
    names = [
        number for number, each in enumerate(target.elts) if isinstance(each, ast.Name) and not each.id.startswith("_")
    ]
    return f"[{names[-1]}]" if names else ""
