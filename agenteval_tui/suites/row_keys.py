"""What a row of a dataset is: its id, or the hash of its variables. Its place in the file means nothing.

A key is `id:VALUE`, or `content:HASH`. Rows with equal content are numbered among themselves (`content:HASH~2` is the
second): a row that is inserted elsewhere does not change their keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import canonical_json, content_hash

ID_COLUMN = "id"
"""The column whose values are the rows' ids, where a dataset names none."""
ID = "id:"
"""How the key of a row with an id begins."""
_CONTENT = "content:"


class RepeatedId(Struct, frozen=True):
    """Two rows with the same id. `line`: where the other one begins."""

    id: str
    line: int


class MissingId(Struct, frozen=True):
    """A row without a value in the column that the dataset names as `row_id`."""

    column: str


class RowKeys:
    """Gives the rows of one dataset their keys, one after another. `column`: the dataset's `row_id`.

    Keeps a hash for each row, so that repeated ones are found.
    """

    def __init__(self, column: str | None = None) -> None:
        self._column = column
        self._lines: dict[str, int] = {}
        self._contents: dict[str, int] = {}

    def of(self, variables: Mapping[str, Any], line: int) -> str | RepeatedId | MissingId:
        """The key of the next row, which begins on `line`; or why it has none."""
        name = id_in(variables, self._column or ID_COLUMN)
        if name is None:
            if self._column is not None:
                return MissingId(self._column)
            return self._numbered(content_key(variables))
        if name in self._lines:
            return RepeatedId(name, self._lines[name])
        self._lines[name] = line
        return id_key(name)

    def _numbered(self, key: str) -> str:
        number = self._contents[key] = self._contents.get(key, 0) + 1
        return numbered(key, number)


def content_key(variables: Mapping[str, Any]) -> str:
    """The key of the first row with this content."""
    return _CONTENT + content_hash(variables)


def id_key(name: str) -> str:
    """The key of the row with this id."""
    return ID + name


def numbered(key: str, number: int) -> str:
    """The key of the `number`-th row (from 1) with the content of `key`."""
    return key if number == 1 else f"{key}~{number}"


def number_of(key: str) -> int:
    """Which of the rows with its content this is, from 1."""
    if not key.startswith(_CONTENT):
        return 1
    return int(key.partition("~")[2] or 1)


def id_in(variables: Mapping[str, Any], column: str) -> str | None:
    """What the row has in its id column, as text without spaces around it; None: nothing."""
    value = variables.get(column)
    if value is None:
        return None
    text = (value if isinstance(value, str) else canonical_json(value)).strip()
    return text or None


def row_case(place: int, key: str) -> str:
    """What tells a row from others, also where no key was stored; "" without a dataset."""
    return key or (f"place:{place}" if place else "")


def row_label(place: int, key: str) -> str:
    """What people call a row, behind a `#`: its id, or its place in the file as it was; "" without a dataset.

    An id may hold anything: `core.display.one_line` before it is shown.
    """
    if key.startswith(ID):
        return key[len(ID) :]
    return str(place) if place else ""


def describe_repeated_key(repeated: RepeatedId) -> tuple[str, str]:
    """What is wrong with two rows of one id, and what to do."""
    fix = "give each row a unique id, or name another column: `row_id: COLUMN` in the suite's `dataset`"
    return f"the row id {repeated.id!r} is used twice: also on line {repeated.line}", fix


def describe_missing_key(missing: MissingId) -> tuple[str, str]:
    """What is wrong with a row without an id, and what to do."""
    return f'this row has no "{missing.column}", which is the `row_id` of the dataset', f'fill in "{missing.column}"'


def key_or_raise(keys: RowKeys, variables: Mapping[str, Any], file: str, line: int) -> str:
    """The key of the next row. Raises `AgentevalError` with its line where it has none."""
    key = keys.of(variables, line)
    if isinstance(key, str):
        return key
    what, fix = describe_repeated_key(key) if isinstance(key, RepeatedId) else describe_missing_key(key)
    raise AgentevalError(what, where=f"{file}:{line}:1", fix=fix)
