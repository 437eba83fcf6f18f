"""Routes of FastAPI, Flask and Quart that take a message."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.discovery.fields import ANSWER_FIELDS, MESSAGE_FIELDS, fields_of, placeholder
from agenteval_tui.agents.discovery.model import AgentCandidate, Sign, agent_name, relative
from agenteval_tui.agents.discovery.module_description import without_sections
from agenteval_tui.agents.discovery.python_agents import python_of
from agenteval_tui.agents.discovery.python_module import (
    Function,
    Module,
    Modules,
    code_of,
    keyword,
    returns_dicts,
    source_of,
)

_APPS = {"fastapi.FastAPI": "FastAPI", "flask.Flask": "Flask", "quart.Quart": "Quart"}
_ROUTERS = {"fastapi.APIRouter": "prefix", "flask.Blueprint": "url_prefix", "quart.Blueprint": "url_prefix"}
"""What has routes and is included in an app, and by which argument it says where."""
_INCLUDE = ("include_router", "register_blueprint")
_MOST_INCLUDED = 6  # routers in routers
_DEFAULT_PORT = {"FastAPI": 8000, "Flask": 5000, "Quart": 5000}


def routes_of(modules: Modules, module: Module) -> Iterator[AgentCandidate]:
    """The routes of a module that take a message by POST."""
    for app in _apps(module):
        yield from _routes_on(modules, app, module, app.variable, "", app.functions)
        yield from _included(modules, app, module, app.variable, "", 0)


class _App(Struct, frozen=True):
    """What a server runs. `name` is its name in the module: the app's, or that of the factory that makes it."""

    module: Module
    name: str
    framework: str
    variable: str
    """What the app is called where its routes are."""
    functions: tuple[Function, ...]
    """Those that may be routes on it."""

    @property
    def is_made(self) -> bool:
        """Whether a function makes it."""
        return self.name != self.variable


def _apps(module: Module) -> Iterator[_App]:
    for name, value in module.values.items():
        if framework := _framework(module, value):
            yield _App(module, name, framework, name, tuple(module.functions.values()))
    for factory in module.functions.values():
        if len(factory.args.args) > len(factory.args.defaults):
            continue  # a server can't call it
        nested = [node for node in ast.walk(factory) if node is not factory]
        returned = {
            node.value.id for node in nested if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)
        }
        for node in nested:
            if isinstance(node, ast.Assign) and (framework := _framework(module, node.value)):
                names = {target.id for target in node.targets if isinstance(target, ast.Name)} & returned
                inside = tuple(part for part in nested if isinstance(part, Function))
                yield from (_App(module, factory.name, framework, name, inside) for name in names)


def _framework(module: Module, value: ast.expr) -> str:
    return _APPS.get(module.qualified(value.func), "") if isinstance(value, ast.Call) else ""


def _routes_on(
    modules: Modules, app: _App, module: Module, owner: str, prefix: str, functions: Iterable[Function]
) -> Iterator[AgentCandidate]:
    """The routes on an app or a router with this name in a module."""
    for function in functions:
        for decorator in function.decorator_list:
            route = _route(decorator)
            if route is not None and route[0] == owner and "{" not in route[1] and "<" not in route[1]:
                agent = _agent(modules, app, module, function, decorator, prefix + route[1])
                if agent is not None:
                    yield agent


def _included(
    modules: Modules, app: _App, module: Module, owner: str, prefix: str, depth: int
) -> Iterator[AgentCandidate]:
    """The routes on routers that an app or a router includes."""
    for call in module.calls if depth < _MOST_INCLUDED else ():
        func = call.func
        if not (isinstance(func, ast.Attribute) and func.attr in _INCLUDE and call.args):
            continue
        if not isinstance(func.value, ast.Name) or func.value.id != owner:
            continue
        place = modules.value(module, call.args[0])
        inside, router = place if place is not None else (module, None)
        if not isinstance(router, ast.Call) or (where_said := _ROUTERS.get(inside.qualified(router.func))) is None:
            continue
        names = [name for name, value in inside.values.items() if value is router]  # chat_router = r = APIRouter()
        prefixes = [(module, keyword(call, where_said)), (inside, keyword(router, where_said))]
        parts = [modules.text(where, node) for where, node in prefixes if node]
        if not all(parts):
            continue  # where it is served is not written as a text
        # A blueprint is where it is registered, or else where it says itself.
        whole = prefix + "".join(parts if where_said == "prefix" else parts[:1])
        for name in names:
            yield from _routes_on(modules, app, inside, name, whole, inside.functions.values())
            yield from _included(modules, app, inside, name, whole, depth + 1)


def _route(decorator: ast.expr) -> tuple[str, str] | None:
    """(the app's name, the path) of a decorator that routes POST."""
    if not isinstance(decorator, ast.Call) or not isinstance(decorator.func, ast.Attribute):
        return None
    owner, method = decorator.func.value, decorator.func.attr
    path = keyword(decorator, "path", "rule") or next(iter(decorator.args), None)
    if not isinstance(owner, ast.Name) or not isinstance(path, ast.Constant) or not isinstance(path.value, str):
        return None
    methods = keyword(decorator, "methods")
    if method == "post" or (method in ("route", "api_route") and methods is not None and "POST" in code_of(methods)):
        return owner.id, path.value
    return None


def _agent(
    modules: Modules, app: _App, module: Module, function: Function, decorator: ast.expr, path: str
) -> AgentCandidate | None:
    body = _body_of_model(modules, module, function) or _body_of_keys(function)
    if body is None:
        return None
    files = modules.files
    framework = app.framework
    folder = files.project_of(app.module.path)
    port = _port(app.module) or _DEFAULT_PORT[framework]
    config: dict[str, Any] = {"kind": "http", "url": f"http://127.0.0.1:{port}{path}", "body": body}
    text = _code_in(function)
    if "event-stream" in text or "EventSourceResponse" in text:
        config["stream"] = "sse"
    elif "StreamingResponse" not in text and (answer := _answer(modules, module, function, decorator)):
        config["answer"] = answer
    own = relative(app.module.path, folder)
    place = _place_of_module(files, app.module.path, folder)
    python = python_of(files.root, folder)
    if framework == "FastAPI":
        words = [python, "-m", "uvicorn", f"{place[1]}:{app.name}", "--port", str(port)]
        words += ["--factory"] if app.is_made else []
        words += ["--app-dir", place[0]] if place[0] else []
    else:
        served = f"{own}:{app.name}" if app.is_made else own
        words = [python, "-m", framework.lower(), "--app", served, "run", "--port", str(port)]
    name = agent_name(path.strip("/").replace("/", "-") or function.name, module.path, files.root)
    return AgentCandidate(
        sign=Sign.ROUTE,
        name=name,
        framework=framework,
        file=module.path,
        line=getattr(decorator, "lineno", function.lineno),
        source=f"@{source_of(decorator)}",
        folder=folder,
        config=config,
        services={"server": {"command": words, "ready": {"port": port}, "reuse_existing": True}},
        instructions=without_sections(ast.get_docstring(function) or ""),
    )


def _code_in(function: Function) -> str:
    """The code of a function, without the statements that can't be written."""
    head = [*function.decorator_list, function.args, *filter(None, [function.returns])]
    return "\n".join(map(code_of, (*head, *function.body)))


def _place_of_module(files: Any, path: str, folder: str) -> tuple[str, str]:
    """(the folder from which a module is imported, within the project; "" is the project's, its dotted name)."""
    own = relative(path, folder).removesuffix(".py").removesuffix("/__init__")
    parts = own.split("/")
    package = len(parts) - 1
    while package and files.has("/".join([*([folder] if folder else []), *parts[:package], "__init__.py"])):
        package -= 1
    return "/".join(parts[:package]), ".".join(parts[package:])


def _body_of_model(modules: Modules, module: Module, function: Function) -> dict[str, Any] | None:
    for parameter in [*function.args.args, *function.args.kwonlyargs]:
        fields = fields_of(modules, module, parameter.annotation)
        if fields is None:
            continue
        names = [field.name for field in fields[1]]
        into = next((name for name in MESSAGE_FIELDS if name in names), None)
        if into is None:
            continue
        body: dict[str, Any] = {}
        for field in fields[1]:
            if field.name == into:
                is_list = field.annotation is not None and "ist[" in code_of(field.annotation)
                body[into] = "{{ messages }}" if is_list else "{{ prompt }}"
            elif not field.has_default:
                can, value = placeholder(modules, fields[0], field.annotation)
                if can:
                    body[field.name] = value
        return body
    return None


def _body_of_keys(function: Function) -> dict[str, Any] | None:
    """The keys that the function reads of the request's JSON."""
    text = _code_in(function)
    if not any(mark in text for mark in ("request.json", "get_json(", ".json()", "await request.json")):
        return None
    keys: list[str] = []
    for node in ast.walk(function):
        key: Any = None
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
            key = node.slice.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "get"
            and node.args
        ):
            key = node.args[0].value if isinstance(node.args[0], ast.Constant) else None
        if isinstance(key, str):
            keys.append(key)
    into = next((name for name in MESSAGE_FIELDS if name in keys), None)
    if into is None:
        return None
    return {into: "{{ messages }}" if into == "messages" else "{{ prompt }}"}


def _answer(modules: Modules, module: Module, function: Function, decorator: ast.expr) -> str:
    names: list[str] = []
    if isinstance(decorator, ast.Call):
        for hint in (keyword(decorator, "response_model"), function.returns):
            fields = fields_of(modules, module, hint)
            names += [field.name for field in fields[1]] if fields is not None else []
    names += returns_dicts(function)
    return next((name for name in ANSWER_FIELDS if name in names), "")


def _port(module: Module) -> int:
    for node in module.nodes:
        if isinstance(node, ast.Call) and code_of(node.func).rpartition(".")[2] == "run":
            value = keyword(node, "port")
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                return value.value
    return 0
