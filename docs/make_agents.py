"""Writes the tables of options in docs/agents.md from the kinds' own models; the text around them is written by hand.

python docs/make_agents.py

A table stands between `<!-- options: KIND -->` and `<!-- end -->`; the one named `every kind` has what all kinds take.
A kind that has no table yet gets a section at the end.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.registry import options_model
from agenteval_tui.core.entry_points import AGENTS, own

PAGE = Path(__file__).parent / "agents.md"
EVERY = "every kind"
_TABLE = re.compile(r"(<!-- options: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_WORDS = {str: "text", int: "whole number", float: "number", bool: "true or false", dict: "object", list: "list"}


def page(text: str) -> str:
    """The page with its tables made anew."""
    named = {found[1] for found in _TABLE.findall(text)}
    for kind in sorted(own(AGENTS).keys() - named):
        text = f"{text.rstrip()}\n\n## {kind}\n\n<!-- options: {kind} -->\n<!-- end -->\n"
    return _TABLE.sub(lambda found: f"{found[1]}{_table(found[2])}{found[3]}", text)


def _table(kind: str) -> str:
    common = set(AgentOptions.model_fields)
    model = AgentOptions if kind == EVERY else options_model(kind) or AgentOptions
    rows = [row for row in _rows(model) if kind == EVERY or row[0].partition(".")[0] not in common]
    lines = ["| option | value | default | meaning |", "|---|---|---|---|"]
    lines += [f"| `{name}` | {value} | {default} | {meaning} |" for name, value, default, meaning in rows]
    return "\n".join(lines) + "\n"


def _rows(model: type[BaseModel], before: str = "") -> Iterator[tuple[str, str, str, str]]:
    for name, field in model.model_fields.items():
        nested = next((one for one in _members(field.annotation) if _is_model(one)), None)
        default = _default(field)
        if nested is not None:
            yield f"{before}{name}", "object", "" if default.startswith("`{") else default, _cell(field.description)
            yield from _rows(nested, f"{before}{name}.")
        else:
            yield f"{before}{name}", _value(field.annotation), default, _cell(field.description)


def _members(annotation: Any) -> list[Any]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [one for one in get_args(annotation) if one is not type(None)]
    return [annotation]


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _value(annotation: Any) -> str:
    words: list[str] = []
    for one in _members(annotation):
        origin = get_origin(one)
        if origin is Literal:
            words += [f"`{choice}`" for choice in get_args(one)]
        elif origin in (list, tuple, set, frozenset):
            words.append("list of texts" if get_args(one)[:1] == (str,) else "list")
        else:
            words.append(_WORDS.get(origin or one, "any value" if one is Any else "object"))
    return _cell(", ".join(words[:-1]) + (" or " if len(words) > 1 else "") + words[-1])


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined or value in ({}, [], (), ""):
        return ""
    if isinstance(value, BaseModel):
        return "`{}`"
    words = str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)
    return _cell(f"`{words}`")


def _cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
