"""How a text file of another program is written: its encoding and, of a table, what separates its columns.

Excel writes `;` between columns where the comma is the decimal sign (German, French), Unicode text as UTF-16 with tabs,
and "CSV" in the code page of Windows.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterable, Iterator
from itertools import dropwhile, islice

from msgspec import Struct
from msgspec.structs import replace

HEAD = 1 << 16
"""Bytes of a file that tell how it is written."""
DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}

# A byte order mark, the encoding of what follows, and the one that also skips the mark.
_BOMS = (
    (codecs.BOM_UTF8, "utf-8", "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32-le", "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32-be", "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16-le", "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16-be", "utf-16"),
)
_ROWS = 50
# Excel's own first line, which says what separates the columns.
_SEPARATOR_LINE = re.compile(r'"?sep=([,;\t|])"?\s*\Z', re.IGNORECASE)


class TextForm(Struct, frozen=True):
    """`bom`: the byte order mark the file begins with, or nothing. `encoding`: of what follows it, as Python names it.
    `delimiter`: one character. `assumed`: what isn't stated, but the head shows, in codes: "encoding", "delimiter".
    """

    bom: bytes = b""
    encoding: str = "utf-8"
    delimiter: str = ","
    assumed: tuple[str, ...] = ()

    @property
    def reading(self) -> str:
        """The encoding to open the file with: it skips the mark."""
        return next((reading for bom, _, reading in _BOMS if bom == self.bom), self.encoding)

    @property
    def encoding_name(self) -> str:
        """The encoding as people know it: UTF-8, Windows-1252."""
        plain = self.encoding.replace("_", "-")
        if plain.startswith("utf-"):
            return plain.removesuffix("-le").removesuffix("-be").upper()
        return f"Windows-{plain[2:]}" if re.fullmatch(r"cp125\d", plain) else plain

    def describe_assumed(self) -> str:
        """What was assumed, as the end of "is read …"; "" if nothing was."""
        parts = []
        if "encoding" in self.assumed:
            parts.append(f"as {self.encoding_name}")
        if "delimiter" in self.assumed:
            parts.append(f"with {DELIMITERS[self.delimiter]} between columns")
        return " and ".join(parts)

    def decode(self, data: bytes) -> str:
        """The text of the whole file. Raises UnicodeDecodeError."""
        return data.removeprefix(self.bom).decode(self.encoding)

    def encode(self, text: str) -> bytes:
        """The whole file. Raises UnicodeEncodeError."""
        return self.bom + text.encode(self.encoding)


def encoding_or_none(name: str) -> str | None:
    """Python's name of a text encoding; None if there is none of this name."""
    try:
        encoding = codecs.lookup(name).name
        # Codecs of bytes ("hex"), and those that only have a name ("undefined"), don't make this text.
        return encoding if "a,b\n".encode(encoding).decode(encoding) == "a,b\n" else None
    except (LookupError, UnicodeError, ValueError):
        return None


def text_form(head: bytes, named: str | None = None) -> TextForm:
    """The encoding of a file that begins with `head`. A byte order mark wins over `named`, a name of Python's.

    Without both, UTF-16 that begins with ASCII is known by its zeros; everything else is UTF-8.
    """
    for bom, encoding, _ in _BOMS:
        if head.startswith(bom):
            return TextForm(bom, encoding)
    if named is not None:
        encoding = codecs.lookup(named).name
        bare = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
        return TextForm(encoding=bare.get(encoding, encoding))
    if len(head) >= 4 and head[1] == head[3] == 0 and head[0] and head[2]:
        return TextForm(encoding="utf-16-le", assumed=("encoding",))
    if len(head) >= 4 and head[0] == head[2] == 0 and head[1] and head[3]:
        return TextForm(encoding="utf-16-be", assumed=("encoding",))
    return TextForm()


def table_form(head: bytes, named: str | None = None, *, usual: str = ",") -> TextForm:
    """How a table is written that begins with `head` (its first `HEAD` bytes). `named`: the encoding, if it is known.

    The delimiter is the one that gives the header several columns and the rows as many; `usual` unless another fits
    better.
    """
    form = text_form(head, named)
    lines = head.removeprefix(form.bom).decode(form.encoding, "replace").splitlines(keepends=True)
    if len(head) >= HEAD and len(lines) > 1:
        lines.pop()  # the head may end in the middle of it
    table = list(from_header(lines))
    for line in lines[: len(lines) - len(table)]:
        if (stated := delimiter_line(line)) is not None:
            return replace(form, delimiter=stated)
    delimiter = usual
    best = _fit(table, usual)
    for candidate in DELIMITERS:
        if candidate != usual and (fit := _fit(table, candidate)) > best:
            delimiter, best = candidate, fit
    assumed = (*form.assumed, "delimiter") if delimiter != usual else form.assumed
    return replace(form, delimiter=delimiter, assumed=assumed)


def delimiter_line(line: str) -> str | None:
    """The delimiter that a line `sep=;` states; None: it is another line."""
    stated = _SEPARATOR_LINE.match(line)
    return stated.group(1) if stated is not None else None


def is_header(line: str) -> bool:
    """Whether a line of a table, the first of its kind, is the header: no comment, not blank, not Excel's `sep=;`."""
    return not line.startswith("#") and not line.isspace() and delimiter_line(line) is None


def from_header(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a table from its header on."""
    return dropwhile(lambda line: not is_header(line), lines)


def _fit(lines: list[str], delimiter: str) -> tuple[bool, float, bool, int]:
    """How well a delimiter fits; more is better. All rows as wide as the header count most, then a header whose names
    do not begin with a space ("Price, net"), then more columns.
    """
    reader = csv.reader(iter(lines), delimiter=delimiter, strict=True)
    try:
        header = next(reader)
    except (StopIteration, csv.Error):
        return (False, 0.0, False, 0)
    if len(header) < 2:
        return (False, 0.0, False, 0)
    rows = equal = 0
    try:
        for row in islice(reader, _ROWS):
            if row:
                rows += 1
                equal += len(row) == len(header)
    except csv.Error:
        pass  # the head may end within quotes
    return (True, equal / rows if rows else 1.0, not any(name.startswith(" ") for name in header), len(header))
