"""A row of a dataset before it is written, after it is written, and taken back."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval_tui.suites.dataset_append import append_row
from agenteval_tui.suites.datasets import rows_and_problems
from agenteval_tui.suites.row_keys import ID_COLUMN, id_in
from agenteval_tui.text.problems import AgentevalError, Problem

SHOWN = 4_000
"""Characters of a row that a preview has."""


@dataclass(frozen=True, slots=True)
class Added:
    """A row that was added as number `number`. `before`: what the file held, None for no file; `digest`: of it now."""

    path: Path
    number: int
    before: bytes | None
    digest: str


@dataclass(frozen=True, slots=True)
class Preview:
    """What writing a row would do: its number, its text in the form of the file, and whether columns are added."""

    number: int
    text: str
    widened: bool
    new_file: bool


def preview_row(path: Path, row: Mapping[str, Any], provenance: Mapping[str, Any] | None = None) -> Preview:
    """Add the row to a copy and look. Raises `AgentevalError` where `append_row` would."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        before = b""
        if path.is_file():
            shutil.copyfile(path, copy)
            before = copy.read_bytes()
        try:
            number = append_row(copy, _with_own_id(copy, row), provenance)
        except AgentevalError as error:
            raise AgentevalError(error.what, where=str(path), mend=error.mend) from None
        after = copy.read_bytes()
    old, new = before.splitlines(), after.splitlines()
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    if after.startswith(before) or same >= len(old):
        text = b"\n".join(new[same:])
    else:
        # Columns were added to every row, or a list in brackets grew: the head and the last line tell.
        text = b"\n".join([new[same], *new[-1:]] if same + 1 < len(new) else new[same:])
    widened = bool(before.strip()) and same < len(old) and path.suffix.lower() == ".csv"
    return Preview(number, text.decode("utf-8", "replace")[:SHOWN], widened, not before)


def add_row(path: Path, row: Mapping[str, Any], provenance: Mapping[str, Any] | None = None) -> Added:
    """Add the row to the dataset, so that it can be taken back. Raises as `append_row` does."""
    before = path.read_bytes() if path.is_file() else None
    number = append_row(path, _with_own_id(path, row), provenance)
    return Added(path, number, before, _digest(path))


def take_back(added: Added) -> None:
    """Make the file what it was before the row. Raises `AgentevalError` when it was changed since."""
    try:
        if _digest(added.path) != added.digest:
            raise AgentevalError(
                f"the file was changed since row {added.number} was added",
                where=str(added.path),
                mend="take the row out by hand",
            )
        if added.before is None:
            added.path.unlink()
            return
        path = added.path.resolve()
        temporary = path.with_name(f".{path.name[:50]}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(added.before)
            with contextlib.suppress(OSError):
                shutil.copymode(path, temporary)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise AgentevalError(f"the row can't be taken back: {error.strerror or error}", where=str(added.path)) from None


def _with_own_id(path: Path, row: Mapping[str, Any]) -> dict[str, Any]:
    """The row; where the file has a row of its id, with a number behind it: made of a run of that, it is another."""
    made = dict(row)
    name = id_in(made, ID_COLUMN)
    if name is None or not path.is_file():
        return made
    known = {id_in(one.variables, ID_COLUMN) for one in rows_and_problems(path) if not isinstance(one, Problem)}
    number = 1
    while id_in(made, ID_COLUMN) in known:
        number += 1
        made[ID_COLUMN] = f"{name}-{number}"
    return made


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
