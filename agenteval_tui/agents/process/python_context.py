"""The run context of an agent: pydantic-ai's `deps`, the `context` of openai-agents and LangGraph. Runs in the child:
only the standard library, of Python 3.8 or later.

It is made from fields, by the type that the agent declares. A type whose fields all have defaults needs none.
"""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import sys
import typing
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from . import python_pieces as pieces
from . import python_signature as signature

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Request

_PLAIN = (object, type(None), None, Any, inspect.Parameter.empty)
_JSON = (bool, int, float, str, list, dict)
_SHOWN = 80
CONFIG = ("configurable", "tags", "metadata", "recursion_limit", "max_concurrency", "run_name")
"""What of LangChain's config can be given as fields beside those of a context."""


def of(request: Request) -> tuple[Any, bool]:
    """What the request's `context` option gives: (fields or a value, whether an object was made by a factory)."""
    how = request.get("_how") or {}
    if "made_context" in how:
        return how["made_context"], True
    return how.get("context"), False


def fields_of(request: Request, target: str, what: str) -> dict[str, Any]:
    """The fields of the context, for a framework that takes an object of any; {} where there are none."""
    value = of(request)[0]
    if value is None:
        return {}
    # An object that a factory made has no fields that could be taken from it without knowing its type.
    if not isinstance(value, dict):
        raise pieces.WrongTarget(target + " takes fields: write `context` as an object, for " + what)
    return dict(value)


def refuse(request: Request, target: str, problem: str) -> None:
    """For a framework that has nothing like a context: it is not left out in silence."""
    if of(request)[0] is not None:
        raise pieces.WrongTarget(target + " can't be given the fields of `context`: " + problem)


def refuse_option(request: Request, target: str) -> None:
    """For a function without a place for the agent's `context`. Fields that only the test has aren't errors."""
    if (request.get("_how") or {}).get("context_option"):
        problem = " can't be given the fields of `context`: it has no parameter of that name; "
        raise pieces.WrongTarget(target + problem + "add the parameter `context`, or remove the option")


def messages_for(function: Any, name: str, value: Any) -> object:
    """Messages as the parameter's type wants them: of LangChain, or of a class with a role and a content. They stay
    dicts where it declares no such type, and so does any other value."""
    if not isinstance(value, list) or not all(isinstance(each, dict) and "role" in each for each in value):
        return value
    kind = declared(function, name)
    if typing.get_origin(kind) in (None, dict):
        return value
    for item in _classes(kind):
        if any(
            base.__name__ == "BaseMessage" and base.__module__.startswith("langchain_core") for base in item.__mro__
        ):
            messages: Any = importlib.import_module("langchain_core.messages")
            return messages.convert_to_messages(value)
        names = names_of(item)[0] if not _is_typed_dict(item) and _made_of_fields(item) else None
        if names is not None and (names is True or {"role", "content"} <= set(names)):
            own = [{key: part for key, part in each.items() if names is True or key in names} for each in value]
            return [_of_fields(item, each, getattr(function, "__name__", name), name) for each in own]
    return value


def argument_for(function: Any, name: str, value: Any, target: str) -> object:
    """What the option `input` gives a parameter, as the type that it declares: messages as in `messages_for`, and an
    object, or a list of objects, as a model of pydantic or a dataclass. Raises WrongTarget where fields can't be."""
    value = messages_for(function, name, value)
    several = isinstance(value, list)
    objects: list[Any] = value if several else [value]
    kind = declared(function, name)
    origin = typing.get_origin(kind)
    if (
        not objects
        or origin is dict
        or several != (origin is not None)
        or not all(isinstance(each, dict) for each in objects)
    ):
        return value
    classes = [item for item in _classes(kind) if _made_of_fields(item)]
    if len(classes) != 1:
        return value
    for needed in names_of(classes[0])[1]:
        if not all(needed in each for each in objects):
            made = pieces.article(classes[0].__name__)
            problem = " is " + made + ", which needs " + needed + "; write it in `input`"
            raise pieces.WrongTarget("the argument " + name + " of " + target + problem)
    own = [_of_fields(classes[0], each, target, "argument " + name) for each in objects]
    return own if several else own[0]


def _classes(kind: Any) -> Iterator[type]:
    """The classes in an annotation."""
    inner = typing.get_args(kind)
    if isinstance(kind, type) and not inner:
        yield kind
    for each in inner:
        yield from _classes(each)


def _made_of_fields(kind: type) -> bool:
    return hasattr(kind, "model_validate") or dataclasses.is_dataclass(kind)


def declared(function: Any, name: str) -> object:
    """The type of a parameter, as the function or class declares it; None where nothing says it."""
    made_by = getattr(function, "__init__", None) if inspect.isclass(function) else function
    hints = signature._hints(made_by)
    return signature._without_none(hints.get(name))


def create(kind: Any, request: Request, target: str, what: str) -> object:
    """The context of this run; None where neither the agent nor the options have one. `kind` is the type that the
    agent declares. Raises WrongTarget where its fields can't be."""
    value, ready = of(request)
    if kind in _PLAIN:
        return value
    # `Deps | None`: an agent that can do without a context gets none.
    own = signature._without_none(kind)
    if own is not kind and value is None:
        return None
    # `Generic[int]` is no type; what it is made of is.
    origin = typing.get_origin(own) or own
    if not isinstance(origin, type) or type(own).__name__ == "UnionType":
        return value
    if ready:
        if value is None or (type(value) in _JSON and not _is_typed_dict(origin) and not isinstance(value, origin)):
            gave = "nothing (None)" if value is None else pieces.article(type(value).__name__)
            raise _wrong(target, what, origin, "the function that `context` names doesn't make: it returns " + gave)
        return value
    if origin in (int, float, str, bool, dict, list, tuple, set):
        if value is None or isinstance(value, origin) or (origin is float and isinstance(value, int)):
            return value
        raise _wrong(target, what, origin, "is of the type " + origin.__name__ + ", not " + repr(value))
    if not _is_typed_dict(origin) and isinstance(value, origin):
        return value
    if value is not None and not isinstance(value, dict):
        raise _wrong(target, what, origin, "is made of fields, not of " + repr(value))
    return _of_fields(origin, value, target, what)


def _of_fields(kind: Any, value: Any, target: str, what: str) -> object:
    names, needed = names_of(kind)
    # A class written in C, say: it gets the fields as they are, and says itself what it thinks of them.
    if names is None:
        return value
    fields = dict(value or {})
    missing = [name for name in needed if name not in fields]
    if missing:
        if value is None and _is_typed_dict(kind):
            return None  # a TypedDict, which nodes read with `get` as well
        hints = signature._hints(kind.__init__ if _made_by_init(kind) else kind)
        # Clients and stores that ask for nothing are made, so that an agent with such `deps` runs without a factory.
        fields.update({name: hints[name]() for name in missing if _needs_nothing(hints.get(name))})
        missing = [name for name in missing if name not in fields]
    if missing:
        raise _wrong(target, what, kind, "needs " + ", ".join(missing), missing)
    other = [name for name in fields if names is not True and name not in names]
    # A misspelt field would be left out in silence by some kinds of classes.
    if other:
        raise _wrong(target, what, kind, "has no " + ", ".join(other) + "; its fields: " + ", ".join(names))
    try:
        if hasattr(kind, "model_validate"):
            return kind.model_validate(fields)
        fields = _typed(kind, fields, target, what)
        if _is_typed_dict(kind) or issubclass(kind, dict):
            return fields
        return kind(**signature.converted(kind, fields))
    except (TypeError, ValueError) as error:
        # Nothing was written in `context`: the error is the class's own.
        if not fields:
            raise
        raise _wrong(target, what, kind, "doesn't accept these fields: " + str(error)) from None


def _typed(kind: Any, fields: dict[str, Any], target: str, what: str) -> dict[str, Any]:
    """The fields as their types want them, as far as those are plain. A number may be a text, as templates make it."""
    hints = signature._hints(kind.__init__ if _made_by_init(kind) and not _is_typed_dict(kind) else kind)
    typed = dict(fields)
    for name, value in fields.items():
        hint = signature._without_none(hints.get(name))
        hint = typing.get_origin(hint) or hint
        if value is None or hint not in _JSON or isinstance(value, hint) or (hint is float and isinstance(value, int)):
            continue
        if hint in (int, float) and isinstance(value, str):
            try:
                typed[name] = hint(value)
                continue
            except ValueError:
                pass
        problem = "wants " + pieces.article(hint.__name__) + " for " + name + ", not " + repr(value)[:_SHOWN]
        raise _wrong(target, what, kind, problem)
    return typed


def _made_by_init(kind: Any) -> bool:
    """Whether the fields of a class are the parameters of what makes it."""
    return not isinstance(getattr(kind, "model_fields", None), dict) and not dataclasses.is_dataclass(kind)


def _needs_nothing(kind: Any) -> bool:
    """Whether a field can be made without a value: an object of a class that asks for none, as clients and databases
    are. What the standard library has stands for a value that somebody chooses."""
    if not isinstance(kind, type) or _is_typed_dict(kind) or issubclass(kind, enum.Enum):
        return False
    if kind.__module__.partition(".")[0] in (*sys.builtin_module_names, *getattr(sys, "stdlib_module_names", ())):
        return False
    names, needed = names_of(kind)
    return names is not None and not needed


def names_of(kind: Any) -> tuple[Any, Any]:
    """(its fields, those without a default); (None, ()) where nothing says them. True: any field."""
    model_fields = getattr(kind, "model_fields", None)
    if isinstance(model_fields, dict):
        names: Any = []
        for name, field in model_fields.items():
            names.append(name)
            if field.alias:
                names.append(field.alias)
        needed = [field.alias or name for name, field in model_fields.items() if field.is_required()]
        return (True if (kind.model_config or {}).get("extra") == "allow" else names), needed
    if dataclasses.is_dataclass(kind):
        nothing = dataclasses.MISSING
        fields = [field for field in dataclasses.fields(kind) if field.init]
        needed = [field.name for field in fields if field.default is nothing and field.default_factory is nothing]
        return [field.name for field in fields], needed
    if _is_typed_dict(kind) or (issubclass(kind, dict) and hasattr(kind, "__annotations__")):
        return list(signature._hints(kind)), sorted(getattr(kind, "__required_keys__", ()))
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return None, ()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        names = True
    else:
        names = [
            parameter.name
            for parameter in parameters
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY)
        ]
    return names, [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _is_typed_dict(kind: Any) -> bool:
    """One of typing_extensions can't be asked by `isinstance` or `issubclass`."""
    return getattr(kind, "__total__", None) is not None and hasattr(kind, "__required_keys__")


def _wrong(target: str, what: str, kind: Any, problem: str, missing: Sequence[str] = ()) -> pieces.WrongTarget:
    name = getattr(kind, "__name__", str(kind))
    message = "the " + what + " of " + target + " is " + pieces.article(name) + ", which " + problem
    if problem.startswith("is "):
        message = "the " + what + " of " + target + " " + problem
    if missing:
        lines = "{" + ", ".join(name + ": ..." for name in missing) + "}"
        message += "; write `context: " + lines + "` in the agent, or name a function that makes it: "
        message += "`context: package.module:function`"
    return pieces.WrongTarget(message)


# Which type an agent declares.


def of_openai_agents(agent: Any) -> type | None:
    """The context's type of an openai-agents agent, or of those that it hands over to; None where none says it."""
    waiting, visited = [agent], set()
    while waiting:
        current = waiting.pop(0)
        if current is None or id(current) in visited:
            continue
        visited.add(id(current))
        inner = typing.get_args(getattr(current, "__orig_class__", None))
        if inner and isinstance(inner[0], type) and inner[0] not in _PLAIN:
            return inner[0]
        for function in (getattr(current, "instructions", None), getattr(current, "prompt", None)):
            if inspect.isroutine(function):
                for hint in signature._hints(function).values():
                    inner = typing.get_args(hint)
                    if inner and "RunContextWrapper" in str(hint) and isinstance(inner[0], type):
                        return inner[0]
        for other in getattr(current, "handoffs", None) or ():
            # A handoff holds its agent by a weak reference.
            reference = getattr(other, "_agent_ref", None)
            waiting.append(reference() if callable(reference) else other)
    return None


def of_graph(graph: Any, request: Request, target: str) -> tuple[object, dict[str, Any]]:
    """(context, config) for a graph, or for another runnable of LangChain."""
    value, ready = of(request)
    schema = getattr(graph, "context_schema", None)
    config: Any = {"configurable": {}}
    if isinstance(value, dict) and not ready:
        names = names_of(schema)[0] if isinstance(schema, type) else ()
        fields = dict(value)
        for name in CONFIG:
            if name in fields and names is not True and name not in (names or ()):
                config[name] = fields.pop(name)
        # Also with a schema: graphs made with `config_schema`, as it was called, read them here.
        config["configurable"] = dict(config["configurable"], **fields)
        if not isinstance(schema, type):
            return None, config
        request = dict(request, _how=dict(request["_how"], context=fields or None))
    return create(schema, request, target, "context"), config
