"""What the project's own code asks: `answer = Desk(model="m").propagate("...")`, `answer = get_answer("...")`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.discovery.fields import MESSAGE_FIELDS, is_text, names_a_thing
from agenteval_tui.agents.discovery.python_module import (
    Function,
    Module,
    Modules,
    returns_a_value,
    stays_callable,
)

_MISSING = object()
_NAMES_CONVERSATION = re.compile(r"(?:^|_)(?:id|uuid)$")
_OF_RUN = "{{run}}"
"""The template of what is another text in each run, and the same in its turns."""
_Asked = ast.ClassDef | Function
Asks = Callable[[Module, _Asked], bool]
_Object = tuple[ast.Call, Module, ast.ClassDef]
"""The call that makes an object, and its class in its module."""


class OwnCall(Struct, frozen=True, kw_only=True):
    """A call of a `function` in `module`, which is a method of the class `owner`, if there is one. `settings` make the
    class, `input` gives the parameters (empty: there is only the one for the prompt), `output` is the path to the
    answer in what comes back ("": all of it), `prompt` and `variables` are what the project's code gives ("": a prompt
    that is not written in the code)."""

    module: Module
    owner: ast.ClassDef | None
    function: Function
    settings: Mapping[str, Any]
    input: Mapping[str, Any]
    output: str
    prompt: str
    variables: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it calls, in its module."""
        return self.function.name if self.owner is None else f"{self.owner.name}.{self.function.name}"


def own_calls(
    modules: Modules, read: Iterable[Module], paths: Iterable[str], asks: Asks, *, functions: bool
) -> Iterator[OwnCall]:
    """The first call of a method of each class in the modules `read`, and of each of their `functions`, if wanted, in
    the files `paths`. `asks`: whether a model or an agent is asked in a class or function."""
    places: dict[int, _Asked] = {}
    for module in read:
        nodes = [*module.classes.values(), *(module.functions.values() if functions else ())]
        places.update({id(node): node for node in nodes if stays_callable(module, node) and asks(module, node)})
    if not places:
        return
    names = "|".join(sorted({re.escape(node.name) for node in places.values()}))
    calls = re.compile(rf"\b(?:{names})\s*\(".encode())
    for path in paths:
        text = modules.files.text(path)
        if text is None or not calls.search(text) or (caller := modules.get(path)) is None:
            continue
        for call in _in_module(modules, caller, places):
            yield call
            del places[id(call.owner or call.function)]


def _in_module(modules: Modules, module: Module, places: Mapping[int, _Asked]) -> Iterator[OwnCall]:
    objects: dict[str, _Object] = {}
    for target, value in _assignments(module):
        if isinstance(target, ast.Name | ast.Attribute) and (made := _construction(modules, module, value)) is not None:
            objects[ast.unparse(target)] = made
    unpacked = {id(value): target for target, value in _assignments(module) if isinstance(target, ast.Tuple | ast.List)}
    for node in module.calls:
        called = node.func
        owner: ast.ClassDef | None = None
        function: ast.AST | None
        settings: dict[str, Any] | None = {}
        if isinstance(called, ast.Attribute) and (made := _object(modules, module, called.value, objects)) is not None:
            construction, home, owner = made
            methods = {each.name: each for each in owner.body if isinstance(each, Function)}
            function = methods.get(called.attr)
            settings = _settings(modules, module, construction, methods.get("__init__"))
        else:
            home, function = modules.value(module, called) or (module, None)
        if not isinstance(function, Function) or id(owner or function) not in places:
            continue
        if (
            function.name.startswith("_")
            or not stays_callable(home, function)
            or settings is None
            or not returns_a_value(function)
        ):
            continue
        values = _values(modules, module, node, function, is_method=owner is not None)
        if values is None:
            continue
        into = next(iter(values))
        prompt = values.pop(into)
        # What a function of any name takes is taken for a prompt only where something says so.
        if prompt is _MISSING and not _is_for_text(function, into, undeclared=owner is not None):
            continue
        variables = {name: value for name, value in values.items() if isinstance(value, str) and value != _OF_RUN}
        inputs = {into: "{{prompt}}", **values, **{name: f"{{{{{name}}}}}" for name in variables}}
        yield OwnCall(
            module=home,
            owner=owner,
            function=function,
            settings=settings,
            input=inputs if values else {},
            output=_output(unpacked.get(id(node))),
            prompt=prompt if isinstance(prompt, str) else "",
            variables=variables,
        )


def _construction(modules: Modules, module: Module, node: ast.expr) -> _Object | None:
    """The call that makes an object of a class of the project, where `node` is one."""
    place = modules.value(module, node.func) if isinstance(node, ast.Call) else None
    if not isinstance(node, ast.Call) or place is None or not isinstance(place[1], ast.ClassDef):
        return None
    return node, place[0], place[1]


def _object(modules: Modules, module: Module, node: ast.expr, objects: Mapping[str, _Object]) -> _Object | None:
    """What the object was made with whose method is called: one with a name, or one that is made there."""
    return objects.get(ast.unparse(node)) or _construction(modules, module, node)


def _assignments(module: Module) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Each target with its value, also what is awaited."""
    for node in module.nodes:
        if isinstance(node, ast.Assign):
            value = node.value.value if isinstance(node.value, ast.Await) else node.value
            for target in node.targets:
                yield target, value
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            yield node.optional_vars, node.context_expr


def _arguments(
    modules: Modules, module: Module, call: ast.Call, function: Function | None, *, is_method: bool
) -> tuple[dict[str, Any], list[str]] | None:
    """What a call gives by the names of the parameters, in their order, `_MISSING` for what only running would tell,
    and the parameters without a default; None where the call can't be read so."""
    if function is None:  # a class without __init__
        return None if call.args or call.keywords else ({}, [])
    arguments = function.args
    names = [each.arg for each in [*arguments.posonlyargs, *arguments.args]][int(is_method) :]
    keywords = [each.arg for each in arguments.kwonlyargs]
    if len(call.args) > len(names) or any(isinstance(each, ast.Starred) for each in call.args):
        return None
    nodes = dict(zip(names, call.args, strict=False))
    for word in call.keywords:
        if word.arg is None or word.arg not in (*names, *keywords):
            return None
        nodes[word.arg] = word.value
    values = {name: _literal(modules, module, nodes[name]) for name in (*names, *keywords) if name in nodes}
    needed = names[: len(names) - len(arguments.defaults)]
    needed += [name for name, default in zip(keywords, arguments.kw_defaults, strict=True) if default is None]
    return values, needed


def _literal(modules: Modules, module: Module, node: ast.expr) -> object:
    value = modules.literal(module, node)
    plain = value is not None and isinstance(value, str | int | float | bool | list | dict)
    return value if plain or (isinstance(node, ast.Constant) and node.value is None) else _MISSING


def _settings(modules: Modules, module: Module, construction: ast.Call, init: Function | None) -> dict[str, Any] | None:
    """The settings that make the object as the project does, as far as they are written; None where it needs others."""
    read = _arguments(modules, module, construction, init, is_method=True)
    if read is None or any(read[0].get(name, _MISSING) is _MISSING for name in read[1]):
        return None
    return {name: value for name, value in read[0].items() if value is not _MISSING}


def _values(
    modules: Modules, module: Module, call: ast.Call, function: Function, *, is_method: bool
) -> dict[str, Any] | None:
    """What a call gives, by the names of the parameters, that of the prompt first; None where no parameter takes one,
    or another needs what only running would tell."""
    read = _arguments(modules, module, call, function, is_method=is_method)
    if read is None:
        return None
    values, needed = read
    texts = [name for name, value in values.items() if value is _MISSING or isinstance(value, str)]
    into = next((name for name in values if name in MESSAGE_FIELDS), next(iter(texts), None))
    # Who asks in a conversation makes its id.
    ids = [
        name for name in needed if name != into and values.get(name) is _MISSING and _NAMES_CONVERSATION.search(name)
    ]
    values.update(dict.fromkeys(ids, _OF_RUN))
    if into is None or any(name != into and values.get(name, _MISSING) is _MISSING for name in needed):
        return None
    return {into: values.pop(into), **{name: value for name, value in values.items() if value is not _MISSING}}


def _is_for_text(function: Function, name: str, *, undeclared: bool) -> bool:
    """Whether a parameter is called as a prompt, or declared to be a text: not a client, a model or a list.
    `undeclared`: what is said of one without a type."""
    parameters = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    declared = next(each.annotation for each in parameters if each.arg == name)
    if name in MESSAGE_FIELDS:
        return True
    if names_a_thing(name):
        return False
    return undeclared if declared is None else is_text(declared)


def _output(target: ast.expr | None) -> str:
    """Which part of a tuple is the answer: the last that is given a name."""
    if not isinstance(target, ast.Tuple | ast.List):
        return ""
    names = [
        number for number, each in enumerate(target.elts) if isinstance(each, ast.Name) and not each.id.startswith("_")
    ]
    return f"[{names[-1]}]" if names else ""
