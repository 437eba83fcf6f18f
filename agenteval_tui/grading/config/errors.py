"""What pydantic says about a config, in plain words with a remedy."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.phrasing import abridged, shown
from agenteval_tui.grading.config.schema import model_at, property_names

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

_WANTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
}
_MOST = 4


def message_for(error: ValidationError, model: type[BaseModel], where: str = "") -> str:
    """All errors in one line, joined by "; ". `where` is the path of the object that was read (`metrics[0]`)."""
    texts: list[str] = []
    for detail in error.errors(include_url=False):
        text = in_words_of(detail, model, where)
        if text not in texts:
            texts.append(text)
    return abridged(texts, _MOST, separator="; ")


def _path_text(path: Sequence[str | int], where: str = "") -> str:
    """`metrics[0].tools[1].name`."""
    text = where
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def path_of(error: Any) -> tuple[str | int, ...]:
    """Where in the object an error is: names and list indexes."""
    path = [step for step in error["loc"] if not _is_option(step)]
    return (*path, *getattr(error.get("ctx", {}).get("error"), "path", ()))


def in_words_of(error: Any, model: type[BaseModel], where: str = "") -> str:
    """One of pydantic's errors in one line."""
    kind = str(error["type"])
    path = path_of(error)
    place = _path_text(path, where)
    if kind == "extra_forbidden":
        name = str(path[-1])
        fields = _fields_at(model, path[:-1])
        hint = did_you_mean(name, fields, quotes="`")
        listed = f" (known are {', '.join(fields)})" if fields else ""
        return f"`{place}` is not known" + (f": {hint}" if hint else listed)
    if kind == "missing":
        return f"`{place}` is missing"
    raw = error.get("input")
    if kind in _WANTED:
        expected = _WANTED[kind]
        if kind == "list_type" and isinstance(raw, str | int | float | dict):
            return f"`{place}` must be a list, not {_named(raw)}: write [{shown(raw)}]"
        if kind == "string_type" and isinstance(raw, int | float):
            return f"`{place}` must be a string, not {_named(raw)}: write {json.dumps(json.dumps(raw))}"
        if kind == "string_type" and isinstance(raw, list) and len(raw) == 1 and isinstance(raw[0], str):
            return f"`{place}` must be a string, not a list: write {shown(raw[0])}"
        return f"`{place}` must be {expected}, not {_named(raw)}"
    if kind in ("greater_than_equal", "greater_than", "less_than_equal"):
        return f"`{place}` must be {error['msg'].removeprefix('Input should be ')}, not {shown(raw)}"
    if kind == "string_too_short":
        return f"`{place}` must not be empty"
    cause = error.get("ctx", {}).get("error")
    if cause is not None:
        return f"`{place}`: {cause}"
    message = str(error["msg"])
    return f"`{place}`: {message[:1].lower()}{message[1:]}"


def _is_option(step: Any) -> bool:
    """pydantic puts the options of a union into the path: `list[dict[str,any]]`, `dict[str,any]`."""
    return isinstance(step, str) and step.endswith("]") and step.startswith(("list[", "dict["))


def _named(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {shown(value, 30)}"
    if isinstance(value, int | float):
        return f"the number {shown(value)}"
    return "an object" if isinstance(value, Mapping) else "a list"


def _fields_at(model: Any, path: Sequence[Any]) -> list[str]:
    """The property names of the model that `path` leads to."""
    inner_model = model_at(model, path)
    return property_names(inner_model) if inner_model is not None else []
