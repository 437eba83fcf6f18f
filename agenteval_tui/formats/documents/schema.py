"""The JSON Schema of a document, made from its type. Objects stand where they are used; only what holds itself is a
definition of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.json import schema_components

Schema = dict[str, Any]

_REFERENCE = "#/$defs/{name}"


def schema_of(kind: Any) -> Schema:
    """The JSON Schema (draft 2020-12) of the JSON that `msgspec` makes of a `kind`: a Struct, or a type of several."""
    (whole,), definitions = schema_components([kind], ref_template=_REFERENCE)
    recursive = {name: body for name, body in definitions.items() if _names(body, definitions, name)}
    schema = _plain(whole, definitions, recursive)
    if recursive:
        schema["$defs"] = {name: _object(body, definitions, recursive) for name, body in recursive.items()}
    return schema


def _names(body: Any, definitions: Mapping[str, Schema], wanted: str) -> bool:
    """Whether a definition names `wanted`, itself or through another."""
    seen: set[str] = set()
    waiting = [body]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            name = _named(part)
            if name == wanted:
                return True
            if name and name not in seen:
                seen.add(name)
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
    made = {key: value for key, value in part.items() if key not in ("title", "default")}
    for key in ("items", "additionalProperties"):
        if isinstance(made.get(key), dict):
            made[key] = _plain(made[key], definitions, recursive)
    if "enum" in made:
        made.pop("type", None)
        if len(made["enum"]) == 1:
            made["const"] = made.pop("enum")[0]
    if "prefixItems" in made:
        parts = [_plain(one, definitions, recursive) for one in made.pop("prefixItems")]
        if any(one != parts[0] for one in parts):
            made["prefixItems"] = parts
        else:
            made["items"] = parts[0]
    if "anyOf" in made:
        made.pop("type", None)
        return _any_of(made, definitions, recursive)
    return made


def _any_of(made: Schema, definitions: Mapping[str, Schema], recursive: Mapping[str, Schema]) -> Schema:
    parts = made.pop("anyOf")
    options = [_plain(one, definitions, recursive) for one in parts]
    if made.pop("discriminator", None):  # tagged types: the docstring of each says what it is
        docs = [{"description": definitions[_named(one)]["description"]} for one in parts]
        return {"oneOf": [{**one, **doc} for one, doc in zip(options, docs, strict=True)], **made}
    others = [one for one in options if one != {"type": "null"}]
    if len(others) == 1 and len(options) == 2 and isinstance(others[0].get("type"), str):
        return {**others[0], "type": [others[0]["type"], "null"], **made}
    return {"anyOf": options, **made}


def _object(body: Schema, definitions: Mapping[str, Schema], recursive: Mapping[str, Schema]) -> Schema:
    """An object. The docstring of its class is for people who read the code. What is besides its fields is refused, if
    the class forbids it.

    Each field is always there, also one that has a default; only `UNSET` is left out, which has no place in a schema.
    """
    if "properties" not in body:
        return _plain({key: value for key, value in body.items() if key != "description"}, definitions, recursive)
    properties = {name: _plain(one, definitions, recursive) for name, one in body["properties"].items()}
    always = [name for name, one in body["properties"].items() if name in body["required"] or "default" in one]
    return {
        "type": "object",
        "properties": properties,
        **({"required": always} if always else {}),
        **{key: value for key, value in body.items() if key == "additionalProperties"},
    }
