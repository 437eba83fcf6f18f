"""The JSON Schema of a document, made from its type. Objects stand where they are used; only what holds itself is a
definition of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any, get_origin

from msgspec import Struct, inspect
from msgspec.json import schema_components

Schema = dict[str, Any]

_REFERENCE = "#/$defs/{name}"


def schema_of(kind: Any) -> Schema:
    """The JSON Schema (draft 2020-12) of the JSON that `msgspec` makes of a `kind`: a Struct, or a type of several."""
    (whole,), definitions = schema_components([kind], ref_template=_REFERENCE)
    for omitting in _omitting(inspect.type_info(kind)):
        if omitting.__name__ in definitions:
            definitions[omitting.__name__] = _without_defaults(definitions[omitting.__name__], omitting)
    # What holds itself can't stand where it is used.
    recursive = {name: body for name, body in definitions.items() if _names(body, definitions, name)}
    schema = _plain(whole, definitions, recursive)
    if recursive:
        schema["$defs"] = {name: _object(body, definitions, recursive) for name, body in recursive.items()}
    return schema


def _omitting(kind: inspect.Type) -> list[type[Struct]]:
    """The classes within a type that leave out what is as by default."""
    waiting: list[Any] = [kind]
    classes: dict[type[Struct], None] = {}
    while waiting:
        part = waiting.pop()
        if isinstance(part, inspect.StructType):
            if (struct := get_origin(part.cls) or part.cls) not in classes:
                classes[struct] = None
                waiting.extend(each.type for each in part.fields)
        elif isinstance(part, inspect.Type):
            values = (getattr(part, name) for name in part.__struct_fields__)
            waiting.extend(each for value in values for each in (value if isinstance(value, tuple) else (value,)))
    return [each for each in classes if each.__struct_config__.omit_defaults]


def _without_defaults(body: Schema, kind: type[Struct]) -> Schema:
    """The schema of such a class: a field with a default may be absent, and never has that value. It has no others,
    unless it is an event, which may say more than is read."""
    properties = {}
    for name, part in body["properties"].items():
        default = part.get("default", ...)
        part = {key: value for key, value in part.items() if key != "default"}
        if default is None:
            options = [option for option in part.pop("anyOf") if option != {"type": "null"}]
            part = {**(options[0] if len(options) == 1 else {"anyOf": options}), **part}
        elif default in part.get("enum", ()):
            part["enum"] = [word for word in part["enum"] if word != default]
        properties[name] = part
    always = [name for name, part in body["properties"].items() if "default" not in part]
    closed = {} if kind.__struct_config__.tag else {"additionalProperties": False}
    return {**body, "properties": properties, "required": always, **closed}


def _names(body: Any, definitions: Mapping[str, Schema], sought: str) -> bool:
    """Whether a definition names `sought`, itself or through another."""
    visited: set[str] = set()
    waiting = [body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = _named(part)
            if name == sought:
                return True
            if name and name not in visited:
                visited.add(name)
                waiting.append(definitions[name])
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return False


def _named(part: Mapping[str, Any]) -> str:
    reference = part.get("$ref")
    return reference.rpartition("/")[2] if isinstance(reference, str) else ""


def _plain(part: Schema, definitions: Mapping[str, Schema], recursive: Mapping[str, Schema]) -> Schema:
    """A part in the form that people write: no title and no default of a class, references replaced by what they name.

    "or null" is a second type where that is possible, a single value is a constant, and a tuple of equal parts a list
    of that length.
    """
    name = _named(part)
    if name:
        about = {key: value for key, value in part.items() if key == "description"}
        if name in recursive:
            return {"$ref": part["$ref"], **about}
        return {**_object(definitions[name], definitions, recursive), **about}
    plain = {key: value for key, value in part.items() if key not in ("title", "default")}
    for key in ("items", "additionalProperties"):
        if isinstance(plain.get(key), dict):
            plain[key] = _plain(plain[key], definitions, recursive)
    # The values say their type.
    if "enum" in plain:
        plain.pop("type", None)
        if len(plain["enum"]) == 1:
            plain["const"] = plain.pop("enum")[0]
    if "prefixItems" in plain:
        parts = [_plain(item, definitions, recursive) for item in plain.pop("prefixItems")]
        if any(part != parts[0] for part in parts):
            plain["prefixItems"] = parts
        else:
            plain["items"] = parts[0]
    if "anyOf" in plain:
        plain.pop("type", None)
        return _any_of(plain, definitions, recursive)
    return plain


def _any_of(schema: Schema, definitions: Mapping[str, Schema], recursive: Mapping[str, Schema]) -> Schema:
    parts = schema.pop("anyOf")
    options = [_plain(part, definitions, recursive) for part in parts]
    if schema.pop("discriminator", None):
        # Tagged types: the docstring of each says what it is. msgspec takes its indentation away only since 0.23.
        docs = [{"description": cleandoc(definitions[_named(part)]["description"])} for part in parts]
        return {"oneOf": [{**option, **doc} for option, doc in zip(options, docs, strict=True)], **schema}
    others = [option for option in options if option != {"type": "null"}]
    if len(others) == 1 and len(options) == 2 and isinstance(others[0].get("type"), str):
        return {**others[0], "type": [others[0]["type"], "null"], **schema}
    return {"anyOf": options, **schema}


def _object(body: Schema, definitions: Mapping[str, Schema], recursive: Mapping[str, Schema]) -> Schema:
    """An object. The docstring of its class is for people who read the code. What is besides its fields is refused, if
    the class forbids it.

    Each field is always there, also one that has a default; only `UNSET` is left out, which has no place in a schema.
    """
    if "properties" not in body:
        return _plain({key: value for key, value in body.items() if key != "description"}, definitions, recursive)
    properties = {name: _plain(part, definitions, recursive) for name, part in body["properties"].items()}
    always = [
        name for name, definition in body["properties"].items() if name in body["required"] or "default" in definition
    ]
    return {
        "type": "object",
        "properties": properties,
        **({"required": always} if always else {}),
        **{key: value for key, value in body.items() if key == "additionalProperties"},
    }
