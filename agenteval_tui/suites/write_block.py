"""Values as YAML over several lines, for what is added to a suite: as a person would write it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.suites import write_scalar

SHORT = 60
"""Lists and objects of plain values that are not longer than this stand on one line."""


def block_item(value: Mapping[str, Any], *, column: int, eol: str) -> str:
    """An object as an item of a block list whose dashes stand at `column`; without a line end behind it."""
    inner = column + 2
    body = _mapping(value, inner, eol)
    return f"{' ' * column}- {body[inner:]}"


def block_pair(key: str, value: Any, column: int, eol: str) -> str:
    """A key with its value, as it stands at `column` of an object over several lines; its first line not indented."""
    name = write_scalar.key_text(key, bare=True) if key else ""
    return f"{name}:{_behind(value, column, eol)}"


def _mapping(value: Mapping[str, Any], column: int, eol: str) -> str:
    keys = {key: write_scalar.key_text(key, bare=True) for key in value}
    return eol.join(f"{' ' * column}{keys[key]}:{_behind(one, column, eol)}" for key, one in value.items())


def _behind(value: Any, column: int, eol: str) -> str:
    """What stands behind a key's colon."""
    if isinstance(value, str):
        return " " + _text(value, column, eol)
    if isinstance(value, Mapping) and value and not _fits(value):
        return eol + _mapping(value, column + 2, eol)
    if isinstance(value, list) and value and not _fits(value):
        return eol + eol.join(_item(one, column + 2, eol) for one in value)
    return " " + write_scalar.flow(value, bare_keys=True)


def _item(value: Any, column: int, eol: str) -> str:
    if isinstance(value, Mapping) and value:
        return block_item(value, column=column, eol=eol)
    written = _text(value, column, eol) if isinstance(value, str) else write_scalar.flow(value, bare_keys=True)
    return f"{' ' * column}- {written}"


def _text(value: str, parent: int, eol: str) -> str:
    if "\n" in value and not value.endswith("\n\n"):
        made = write_scalar.literal(value, indent=parent + 2, parent=parent, eol=eol)
        if made is not None:
            return made[0]
    return write_scalar.plain(value) or write_scalar.double_quoted(value)


def _fits(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value
    simple = not any(isinstance(one, dict | list) or (isinstance(one, str) and "\n" in one) for one in parts)
    return simple and len(write_scalar.flow(value, bare_keys=True)) <= SHORT
