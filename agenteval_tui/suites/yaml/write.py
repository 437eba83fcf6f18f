"""Values as YAML text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agenteval_tui.suites.yaml.tree import ScalarNode, untyped

# What JSON leaves as it is but YAML does not allow, or takes for a line break or an order mark.
_ESCAPED = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff\ud800-\udfff]")
# What a block has no way to write: it has no escapes, and one line end counts as any other.
_NOT_IN_BLOCK = re.compile(f"[\x00-\x08\x0b-\x1f]|{_ESCAPED.pattern}")
_PLAIN = re.compile(r"[A-Za-z_](?:[\w ./-]*[\w./])?\Z", re.ASCII)
SHORT = 60
"""Lists and objects of plain values that are not longer than this stand on one line."""


def double_quoted(text: str) -> str:
    """`text` in double quotes, on one line; valid JSON as well."""
    quoted = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match.group()):04x}", quoted)


def _single_quoted(text: str) -> str | None:
    """`text` in single quotes, or None when it does not fit there on one line."""
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else None


def plain(text: str) -> str | None:
    """`text` without quotes, or None when it would be read as something else."""
    return text if _PLAIN.match(text) and untyped(ScalarNode(text, 0, 0)) == text else None


def scalar(value: object, like: ScalarNode | None = None) -> str:
    """A scalar as YAML text; a text quoted as `like` was, where that is possible."""
    if not isinstance(value, str):
        return json.dumps(value)
    written = None
    if like is not None and like.plain and isinstance(untyped(like), str):
        written = plain(value)
    elif like is not None and like.style == "'":
        written = _single_quoted(value)
    return double_quoted(value) if written is None else written


def flow(value: object, *, bare_keys: bool = False) -> str:
    """Any JSON value on one line, as YAML reads it. `bare_keys`: keys without quotes where that is possible."""
    if isinstance(value, dict):
        pairs = (f"{key_text(key, bare=bare_keys)}: {flow(item, bare_keys=bare_keys)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(flow(item, bare_keys=bare_keys) for item in value) + "]"
    return scalar(value)


def key_text(key: str, *, bare: bool) -> str:
    """A key as YAML text."""
    return (plain(key) if bare else None) or double_quoted(key)


def literal(text: str, *, indent: int, parent: int, eol: str, header_rest: str = "") -> tuple[str, bool] | None:
    """`text` as a literal block, header included: (the block, whether it owns the blank lines that follow).

    The block ends without a line end unless it owns what follows. `indent` and `parent` are columns: of the lines,
    and of the key. None when the text can't be written so (empty, white space only, or with what needs an escape).
    """
    if not text.strip() or _NOT_IN_BLOCK.search(text):
        return None
    lines = text.split("\n")
    keeps = text.endswith("\n\n")
    chomping = "+" if keeps else "" if text.endswith("\n") else "-"
    first = next(line for line in lines if line)
    indicator = ""
    if first.startswith((" ", "\t")):
        if indent - parent > 9:
            indent = parent + 2
        indicator = str(indent - parent)
    if lines[-1] == "":
        lines.pop()
    body = eol.join(" " * indent + line if line else "" for line in lines)
    return f"|{indicator}{chomping}{header_rest}{eol}{body}" + (eol if keeps else ""), keeps


# Values as YAML over several lines, for what is added to a suite: as a person would write it


def block_item(value: Mapping[str, Any], *, column: int, eol: str) -> str:
    """An object as an item of a block list whose dashes are at `column`; without a line end after it."""
    inner = column + 2
    body = _mapping(value, inner, eol)
    return f"{' ' * column}- {body[inner:]}"


def block_pair(key: str, value: object, column: int, eol: str) -> str:
    """A key with its value, as written at `column` of an object over several lines; its first line is not indented."""
    name = key_text(key, bare=True) if key else ""
    return f"{name}:{_behind(value, column, eol)}"


def _mapping(value: Mapping[str, Any], column: int, eol: str) -> str:
    keys = {key: key_text(key, bare=True) for key in value}
    return eol.join(f"{' ' * column}{keys[key]}:{_behind(item, column, eol)}" for key, item in value.items())


def _behind(value: object, column: int, eol: str) -> str:
    """The text after a key's colon."""
    if isinstance(value, str):
        return " " + _text(value, column, eol)
    if isinstance(value, Mapping) and value and not _fits(value):
        return eol + _mapping(value, column + 2, eol)
    if isinstance(value, list) and value and not _fits(value):
        return eol + eol.join(_item(item, column + 2, eol) for item in value)
    return " " + flow(value, bare_keys=True)


def _item(value: object, column: int, eol: str) -> str:
    if isinstance(value, Mapping) and value:
        return block_item(value, column=column, eol=eol)
    written = _text(value, column, eol) if isinstance(value, str) else flow(value, bare_keys=True)
    return f"{' ' * column}- {written}"


def _text(value: str, parent: int, eol: str) -> str:
    if "\n" in value and not value.endswith("\n\n"):
        block = literal(value, indent=parent + 2, parent=parent, eol=eol)
        if block is not None:
            return block[0]
    return plain(value) or double_quoted(value)


def _fits(value: Any) -> bool:
    parts = value.values() if isinstance(value, Mapping) else value
    simple = not any(isinstance(part, dict | list) or (isinstance(part, str) and "\n" in part) for part in parts)
    return simple and len(flow(value, bare_keys=True)) <= SHORT
