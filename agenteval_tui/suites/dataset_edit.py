"""Adds a row to a dataset in the file's own format; the rest of the file stays as it is."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core.atomic_write import locked, write_whole
from agenteval_tui.core.common_prefix import common_start
from agenteval_tui.core.delimited_text import HEAD, TextForm, is_header, text_form
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.ids import free_name
from agenteval_tui.core.json_values import json_text
from agenteval_tui.suites.datasets import (
    EXPECTED_COLUMNS,
    PROMPT_COLUMNS,
    form_of,
    kind_of,
    rows_and_problems,
)
from agenteval_tui.suites.row_keys import ID_COLUMN, id_in
from agenteval_tui.suites.table_files import KINDS as TABLES
from agenteval_tui.suites.yaml.edit import same
from agenteval_tui.suites.yaml.tree import MappingNode, ScalarNode, SequenceNode, compose, is_null, plain_data, resolve
from agenteval_tui.suites.yaml.write import flow, key_text, scalar

PROVENANCE = "provenance"
SHOWN = 4_000
"""Characters of a row that a preview has."""


def append_row(
    path: Path, row: Mapping[str, Any], provenance: Mapping[str, Any] | None = None, encoding: str | None = None
) -> int:
    """Add `row` as the last one of a .csv, .jsonl or .yaml dataset, made if it does not exist. Gives its number.

    `input` and `expected` are written into the column that serves as such in this file (`question`, `answer`). The
    column `provenance` says where the row came from, as an object; columns that a .csv lacks are added, empty in the
    other rows. A .jsonl of the course's form gets `{"inputs", "outputs", "metadata"}`. The file is replaced in one
    step; its encoding (`encoding`, if the suite says it), delimiter, line ends, mode and every other byte stay. Raises
    `AgentevalError` when the file is broken, can't be written, lacks a character of the row in its encoding, or would
    not be read back as what was meant; then it is as it was.
    """
    if path.is_dir():
        fix = "export its rows to a .jsonl file and use that"
        raise AgentevalError("rows can't be added to a dataset that is a folder", where=str(path), fix=fix)
    kind = kind_of(path)
    if kind == "json" or kind in TABLES.values():
        raise AgentevalError(
            f"rows can't be added to a .{kind} dataset", where=str(path), fix="save it as .csv or .jsonl first"
        )
    path = path.resolve()
    try:
        with locked(path.parent, needed=False):  # no other process adds a row meanwhile
            before, mode = _before(path)
            # Before the row is made: a file that is wrong already is not written on.
            count = _checked(path, encoding) if before.strip() else 0
            make = {"csv": _csv, "jsonl": _jsonl, "yaml": _yaml}[kind]
            form = text_form(before) if kind == "yaml" else form_of(path, before[:HEAD], encoding)
            text = make(path, form.decode(before), {**row}, dict(provenance or {}), form.delimiter)
            try:
                data = form.encode(text)
            except UnicodeEncodeError as error:
                character = error.object[error.start]
                if "\ud800" <= character <= "\udfff":
                    what, fix = "this row holds half a character (a lone surrogate)", ""
                else:
                    what = f"this row holds {character!r}, which {form.encoding_name} does not have"
                    fix = "save the file as UTF-8 first"
                raise AgentevalError(what, where=str(path), fix=fix) from None
            _replace(path, data, mode, count + 1, encoding)
    except OSError as error:
        raise AgentevalError(
            f"the row can't be written: {error.strerror or error}", where=str(path), fix="check its folder"
        ) from None
    return count + 1


def _before(path: Path) -> tuple[bytes, int | None]:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise AgentevalError("this is not a regular file", where=str(path), fix="give a dataset file")
        if not os.access(path, os.W_OK):
            raise AgentevalError("this file is read-only", where=str(path), fix="change its permissions")
        return path.read_bytes(), stat.S_IMODE(status.st_mode)
    except FileNotFoundError:
        return b"", None


def _checked(path: Path, encoding: str | None = None) -> int:
    """How many rows there are. Raises `AgentevalError` for the first that is wrong: nothing is added to a ruin."""
    count = 0
    for entry in rows_and_problems(path, encoding=encoding):
        if isinstance(entry, Problem):
            if entry.code == "empty":
                continue
            raise AgentevalError(f"no row can be added: {entry.message}", where=entry.where, fix=entry.fix or "")
        count = entry.number
    return count


def _replace(path: Path, data: bytes, mode: int | None, rows: int, encoding: str | None) -> None:
    def check(draft: Path) -> None:
        try:
            # The draft is read as what it will be: a quote left open before could take the new row in.
            count = _checked(draft, encoding)
        except AgentevalError:
            count = -1
        if count != rows:
            raise AgentevalError(
                "the row can't be added to this file without changing another", where=str(path), fix="add it by hand"
            )

    write_whole(path, (data,), mode=mode, check=check, suffix=path.suffix)


def _renamed(row: dict[str, Any], columns: list[str]) -> dict[str, Any]:
    """`row` with its prompt and expected value under the names that this file has for them."""
    for name, names in (("input", PROMPT_COLUMNS), ("expected", EXPECTED_COLUMNS)):
        if name in row and name not in columns:
            own = next((column for column in columns if column.lower() in names), None)
            if own is not None and own not in row:
                row = {own if key == name else key: value for key, value in row.items()}
    return row


def _eol(text: str) -> str:
    return "\r\n" if "\r\n" in text[: text.find("\n") + 1] else "\n"


# .csv


def _csv(path: Path, text: str, row: dict[str, Any], provenance: dict[str, Any], delimiter: str) -> str:
    if provenance:
        row = {**row, PROVENANCE: provenance}
    eol = _eol(text)
    lines = io.StringIO(text, newline="").readlines()
    at = next((at for at, line in enumerate(lines) if is_header(line)), None)
    if at is None:
        head = text if not text or text.endswith(("\n", "\r")) else text + eol
        return head + _line(list(row), delimiter) + eol + _cells(row, delimiter) + eol
    reader = csv.reader(iter(lines[at:]), delimiter=delimiter, strict=True)
    columns = [name.strip() for name in next(reader)]
    row = _renamed(row, columns)
    added = [name for name in row if name not in columns]
    if added:
        lines = _widened(lines, at, added, delimiter)
    text = "".join(lines)
    if not text.endswith(("\n", "\r")):
        text += eol
    full = {name: row.get(name) for name in [*columns, *added]}
    return text + _cells(full, delimiter) + eol


def _widened(lines: list[str], at: int, added: list[str], delimiter: str) -> list[str]:
    """The lines with these columns behind the others: their names in the header, nothing in every row."""
    widened = list(lines)
    reader = csv.reader(iter(lines[at:]), delimiter=delimiter, strict=True)
    more = delimiter + _line(added, delimiter)
    for cells in reader:
        if not cells:
            continue  # a blank line
        # A row may have several lines: the cells go behind its last one.
        last = at + reader.line_num - 1
        body = widened[last].rstrip("\r\n")
        widened[last] = body + more + widened[last][len(body) :]
        more = delimiter * len(added)
    return widened


def _cells(row: Mapping[str, Any], delimiter: str) -> str:
    return _line([json_text(value) for value in row.values()], delimiter)


def _line(cells: list[str], delimiter: str) -> str:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter, lineterminator="", quoting=csv.QUOTE_MINIMAL).writerow(cells)
    return out.getvalue()


# .jsonl


def _jsonl(path: Path, text: str, row: dict[str, Any], provenance: dict[str, Any], delimiter: str) -> str:
    # The first row tells which names, and which layout, the others have.
    sample = next((json.loads(line) for line in io.StringIO(text) if line.strip()), None)
    data: dict[str, Any]
    if isinstance(sample, dict) and isinstance(sample.get("inputs"), dict):
        outputs = sample.get("outputs") or {}
        own = _renamed(row, [*sample["inputs"], *outputs])
        out = {key: own.pop(key) for key in [*own] if key in outputs or key in EXPECTED_COLUMNS}
        data = {"inputs": own, "outputs": out}
        if provenance:
            data["metadata"] = {PROVENANCE: provenance}
    else:
        data = _renamed(row, list(sample or ()))
        if provenance:
            data = {**data, PROVENANCE: provenance}
    glue = "" if not text or text.endswith(("\n", "\r")) else _eol(text)
    return text + glue + json.dumps(data, ensure_ascii=False) + _eol(text)


# .yaml


def _yaml(path: Path, text: str, row: dict[str, Any], provenance: dict[str, Any], delimiter: str) -> str:
    def tree(text: str) -> SequenceNode | None:
        root, _ = compose(text, lambda *_: None)
        if root is not None and not is_null(root):
            top = resolve(root)
            if isinstance(top, MappingNode):
                listed = top.get("rows")
                top = resolve(listed) if listed is not None else top
            if isinstance(top, SequenceNode):
                return top
        return None

    eol = _eol(text)
    old = tree(text)
    rows: list[Any] = plain_data(old) if old is not None else []
    columns = list(rows[0]) if rows and isinstance(rows[0], dict) else []
    # As it will be read back, where tuples are lists and keys are texts.
    row = json.loads(json.dumps(_renamed(row, columns)))
    if provenance:
        row[PROVENANCE] = json.loads(json.dumps(provenance))
    like = ScalarNode("x", 0, 0)  # texts without quotes where that is possible
    if old is not None and old.flow:
        comma = ", " if old.items else ""
        close = old.end - 1
        at = close
        # Behind the last item, before the blanks or the line end in front of the bracket; it may have its comma.
        while at > old.start + 1 and text[at - 1] in " \t\r\n":
            at -= 1
        if text[at - 1] == ",":
            comma = " "
        changed = text[:at] + comma + flow(row, bare_keys=True) + text[at:]
    else:
        indent = ""
        if old is not None and old.items:
            begin = old.items[-1].start
            line_start = text.rfind("\n", 0, begin) + 1
            indent = text[line_start:begin].partition("-")[0]
        written = (
            (key, flow(item, bare_keys=True) if isinstance(item, dict | list) else scalar(item, like))
            for key, item in row.items()
        )
        pairs = [f"{key_text(key, bare=True)}: {value}" for key, value in written]
        glue = "" if not text or text.endswith("\n") else eol
        body = f"{eol}{indent}  ".join(pairs) if pairs else "{}"
        changed = f"{text}{glue}{indent}- {body}{eol}"
    # Read again: a comment or an anchor at the end may have taken the row in.
    now = tree(changed)
    if now is None or not same(plain_data(now), [*rows, row]):
        raise AgentevalError(
            "the row can't be added to this file without changing another", where=str(path), fix="add it by hand"
        )
    return changed


# A row of a dataset before it is written, after it is written, and taken back


class RowAdded(Struct, frozen=True):
    """A row that was added as number `number`. `before`: what the file held, None for no file; `digest`: of it now."""

    path: Path
    number: int
    before: bytes | None
    digest: str


class Preview(Struct, frozen=True):
    """What writing a row would do: its number, its text in the form of the file, and whether columns are added."""

    number: int
    text: str
    widened: bool
    new_file: bool


def preview_row(
    path: Path, row: Mapping[str, Any], provenance: Mapping[str, Any] | None = None, encoding: str | None = None
) -> Preview:
    """Add the row to a copy and look. Raises `AgentevalError` where `append_row` would."""
    # A copy is written for real, so that the preview can't differ from what happens.
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        before = b""
        if path.is_file():
            shutil.copyfile(path, copy)
            before = copy.read_bytes()
        try:
            number = append_row(copy, _with_own_id(copy, row, encoding), provenance, encoding)
        except AgentevalError as error:
            raise AgentevalError(error.what, where=str(path), fix=error.fix) from None
        after = copy.read_bytes()
    form = text_form(before or after, encoding)
    old, new = _lines(form, before), _lines(form, after)
    same = common_start(old, new)
    if after.startswith(before) or same >= len(old):
        text = "\n".join(new[same:])
    else:
        # Columns were added to every row, or a list in brackets grew: the head and the last line tell.
        text = "\n".join([new[same], *new[-1:]] if same + 1 < len(new) else new[same:])
    widened = bool(before.strip()) and same < len(old) and path.suffix.lower() in (".csv", ".tsv")
    return Preview(number, text[:SHOWN], widened, not before)


def _lines(form: TextForm, data: bytes) -> list[str]:
    return re.split(r"\r\n|\r|\n", form.decode(data).rstrip("\r\n")) if data.strip() else []


def add_row(
    path: Path, row: Mapping[str, Any], provenance: Mapping[str, Any] | None = None, encoding: str | None = None
) -> RowAdded:
    """Add the row to the dataset, so that it can be taken back. Raises as `append_row` does."""
    before = path.read_bytes() if path.is_file() else None
    number = append_row(path, _with_own_id(path, row, encoding), provenance, encoding)
    return RowAdded(path, number, before, _digest(path))


def undo_add_row(added: RowAdded) -> None:
    """Make the file what it was before the row. Raises `AgentevalError` when it was changed since."""
    try:
        if _digest(added.path) != added.digest:
            raise AgentevalError(
                f"the file has changed since row {added.number} was added",
                where=str(added.path),
                fix="remove the row by hand",
            )
        if added.before is None:
            added.path.unlink()
            return
        path = added.path.resolve()
        write_whole(path, (added.before,), like=path.stat())
    except OSError as error:
        raise AgentevalError(f"the row can't be removed: {error.strerror or error}", where=str(added.path)) from None


def _with_own_id(path: Path, row: Mapping[str, Any], encoding: str | None) -> dict[str, Any]:
    """The row; where the file has a row of its id, with a number behind it: made of a run of that, it is another."""
    new_row = dict(row)
    name = id_in(new_row, ID_COLUMN)
    if name is None or not path.is_file():
        return new_row
    used_ids = {
        id_in(entry.variables, ID_COLUMN)
        for entry in rows_and_problems(path, encoding=encoding)
        if not isinstance(entry, Problem)
    }
    if name in used_ids:
        new_row[ID_COLUMN] = free_name(name, used_ids.__contains__)
    return new_row


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
