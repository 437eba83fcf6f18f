"""Rules over several keys of an object, as JSON Schema says them: for `json_schema_extra` of a model that checks them.

A key that is null counts as absent.
"""

from __future__ import annotations

from typing import Any, Final

Rule = dict[str, Any]

NAME_CHARACTERS: Final = r"\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f"
"""For `[^...]`: all of ASCII but letters, digits and the underscore. What is beyond ASCII counts as a letter: editors'
regular expressions (JavaScript) know no other letters by `\\w`."""


def given(*keys: str) -> Rule:
    """The object has all of these keys."""
    return {"required": list(keys), "properties": {key: {"not": {"type": "null"}} for key in keys}}


def set_to(key: str, value: object) -> Rule:
    """The object has this key with this value."""
    return {"required": [key], "properties": {key: {"const": value}}}


def at_least_one(*keys: str) -> Rule:
    """The object has one of these keys, or more."""
    return {"anyOf": [given(key) for key in keys]}


def exactly_one(*keys: str) -> Rule:
    """The object has one of these keys and none of the others."""
    return {"oneOf": [given(key) for key in keys]}


def without(*keys: str, why: str) -> Rule:
    """The object has none of these keys. `why` is what an editor says."""
    return {"properties": {key: {"type": "null", "errorMessage": why, "doNotSuggest": True} for key in keys}}


def where(condition: Rule, then: Rule, otherwise: Rule | None = None) -> Rule:
    """`then` holds where `condition` does, `otherwise` where it does not."""
    return {"if": condition, "then": then, **({"else": otherwise} if otherwise is not None else {})}
