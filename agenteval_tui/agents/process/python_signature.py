"""A function's parameters as a JSON Schema. Runs in the child: needs only the standard library, knows pydantic."""

from __future__ import annotations

import dataclasses
import enum
import inspect
import math
import re
import typing
from typing import Any

_NAMES = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    list: "array",
    tuple: "array",
    set: "array",
    dict: "object",
    type(None): "null",
}


def describe(function: Any) -> dict[str, Any]:
    """{"name", "description", "parameters"}: what a model is told of it."""
    text = inspect.getdoc(function) or ""
    summary, descriptions = _docstring(text)
    properties, required, more = {}, [], False
    defs: dict[str, Any] = {}
    hints = _hints(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.VAR_KEYWORD:
            more = True
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        # Models give arguments by name.
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise TypeError(f"its parameter {parameter.name!r} can't be given by name")
        schema = _schema_of(hints.get(parameter.name, parameter.annotation), defs)
        if parameter.name in descriptions:
            schema.setdefault("description", descriptions[parameter.name])
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif isinstance(parameter.default, (str, int)) or _is_finite(parameter.default):
            schema["default"] = parameter.default
        properties[parameter.name] = schema
    parameters: dict[str, Any] = {"type": "object", "properties": properties, "required": required}
    if defs:
        parameters["$defs"] = defs
    if not more:
        parameters["additionalProperties"] = False
    return {"name": getattr(function, "__name__", ""), "description": summary, "parameters": parameters}


def converted(function: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments from JSON as the function's annotations want them: models, dataclasses and enums are made."""
    values = fields_as_declared(function, arguments)
    try:
        inspect.signature(function).bind(**values)
    except TypeError as error:
        raise TypeError(f"wrong arguments: {error}") from None
    except ValueError:  # a function written in C
        pass
    return values


def fields_as_declared(owner: Any, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a function or class from JSON, each as its annotation wants it."""
    hints = _hints(owner)
    return {name: _as_wanted(hints.get(name), value) for name, value in fields.items()}


def _as_wanted(kind: Any, value: Any) -> object:
    kind = _without_none(kind)
    inner = typing.get_args(kind)
    if value is None:
        return None
    if hasattr(kind, "__metadata__"):  # Annotated
        return _as_wanted(inner[0], value)
    origin = typing.get_origin(kind) or kind
    if not isinstance(origin, type) or type(kind).__name__ == "UnionType":
        return value  # of several types none is chosen
    if hasattr(origin, "model_validate"):
        return origin.model_validate(value)
    if dataclasses.is_dataclass(origin) and isinstance(value, dict):
        return origin(**fields_as_declared(origin, value))
    if isinstance(value, list) and inner and origin is not tuple:
        return [_as_wanted(inner[0], item) for item in value]
    if isinstance(value, dict) and len(inner) == 2:
        return {name: _as_wanted(inner[1], item) for name, item in value.items()}
    return origin(value) if issubclass(origin, enum.Enum) else value


def _schema_of(kind: Any, defs: dict[str, Any], within: tuple[type, ...] = ()) -> dict[str, Any]:
    """The JSON Schema of an annotation; {} where it says nothing that can be said. `defs` gets what it refers to;
    `within`: the classes that it is a field of, which are not described once more."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is not None and hasattr(kind, "__metadata__"):  # Annotated
        schema = _schema_of(inner[0], defs, within)
        for note in kind.__metadata__:
            text = note if isinstance(note, str) else getattr(note, "description", None)
            if isinstance(text, str):
                schema["description"] = text
        return schema
    if getattr(origin, "__name__", "") == "Literal" or origin is getattr(typing, "Literal", 0):
        return {"enum": list(inner)}
    if origin is typing.Union or type(kind).__name__ == "UnionType":
        options = [_schema_of(option, defs, within) for option in inner]
        # Shorter, and understood by servers that know no `anyOf`.
        if all(set(option) == {"type"} and isinstance(option["type"], str) for option in options):
            return {"type": [option["type"] for option in options]}
        return {"anyOf": options}
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        return {"type": "array", "minItems": len(inner), "maxItems": len(inner)}
    base = origin or kind
    if not isinstance(base, type):
        return {}
    if hasattr(base, "model_json_schema"):
        return _of_pydantic(base, defs)
    if issubclass(base, enum.Enum):
        return {"enum": [member.value for member in base]}
    if base in within:
        return {"type": "object"}
    if dataclasses.is_dataclass(base):
        hints = _hints(base)
        fields = dataclasses.fields(base)
        missing = dataclasses.MISSING
        return {
            "type": "object",
            "properties": {field.name: _schema_of(hints.get(field.name), defs, (*within, base)) for field in fields},
            "required": [
                field.name for field in fields if field.default is missing and field.default_factory is missing
            ],
        }
    if issubclass(base, dict) and getattr(base, "__annotations__", None):  # a TypedDict
        return {
            "type": "object",
            "properties": {name: _schema_of(hint, defs, (*within, base)) for name, hint in _hints(base).items()},
            "required": sorted(getattr(base, "__required_keys__", ())),
        }
    for base_type, name in _NAMES.items():
        # `bool` is derived from `int`: these two are only told by themselves.
        if base is base_type or (name not in ("boolean", "integer") and issubclass(base, base_type)):
            schema = {"type": name}
            if name == "array" and inner and inner[0] is not Ellipsis:
                schema["items"] = _schema_of(inner[0], defs, within)
            return schema
    names = {ancestor.__name__ for ancestor in base.__mro__}
    if names & {"Mapping", "MutableMapping"}:
        return {"type": "object"}
    if names & {"Sequence", "Iterable", "Set"}:
        return {"type": "array", "items": _schema_of(inner[0], defs, within)} if inner else {"type": "array"}
    return {}


def _of_pydantic(model: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """The schema of a model. References begin at the top of the whole schema, so what they lead to has to be there."""
    schema: dict[str, Any] = model.model_json_schema()
    own = schema.pop("$defs", {})
    if any(defs.get(name, definition) != definition for name, definition in own.items()):
        # Another model refers to another class of the same name.
        prefix = model.__name__ + str(len(defs)) + "_"
        schema = model.model_json_schema(ref_template="#/$defs/" + prefix + "{model}")
        own = {prefix + name: definition for name, definition in schema.pop("$defs").items()}
    defs.update(own)
    return schema


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)  # JSON has no other number


def _without_none(kind: Any) -> Any:
    rest = [argument for argument in typing.get_args(kind) if argument is not type(None)]
    union = typing.get_origin(kind) is typing.Union or type(kind).__name__ == "UnionType"
    return rest[0] if union and len(rest) == 1 else kind


def _hints(owner: Any) -> dict[str, Any]:
    target = owner if inspect.isfunction(owner) or inspect.ismethod(owner) or inspect.isclass(owner) else owner.__call__
    try:
        return typing.get_type_hints(target, include_extras=True)
    except TypeError:  # Python 3.8 has no extras
        try:
            return typing.get_type_hints(target)
        except Exception:
            return {}
    except Exception:  # a name in an annotation that is not there when the program runs
        return {}


def _docstring(text: str) -> tuple[str, dict[str, str]]:
    """The part of a docstring before its parameters, and what it says of each (Google's, NumPy's and Sphinx' forms)."""
    descriptions = {}
    for name, words in re.findall(r":param (?:[\w\[\], ]+ )?(\w+):\s*(.+)", text):
        descriptions[name] = words.strip()
    head = re.split(r"\n\s*(?::param|:return|Args:|Arguments:|Parameters:?\n|Returns:?\n|Raises:)", text, maxsplit=1)[0]
    block = re.search(r"\n(?:Args|Arguments|Parameters):?\s*\n(?:-+\n)?((?:.*\n?)*)", text)
    if block:
        for name, words in re.findall(r"^\s+(\w+)\s*(?:\([^)]*\))?:\s*(.+)$", block.group(1), re.MULTILINE):
            descriptions.setdefault(name, words.strip())
        for name, words in re.findall(r"^(\w+)\s*:.*\n\s+(.+)$", block.group(1), re.MULTILINE):
            descriptions.setdefault(name, words.strip())
    return head.strip(), descriptions
