"""Cassettes: recorded exchanges as JSON lines, without keys. The first line says what the file is, and what varies in
equal requests, as a program makes it anew each time: a date in a prompt, an id."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from agenteval_tui.agents.recording.exchange import Exchange, encoded, from_json, to_json
from agenteval_tui.core.atomic_write import append_whole, locked, write_pieces
from agenteval_tui.core.display import command_line
from agenteval_tui.core.errors import AgentevalError

ANY = "any"
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sep(?:t(?:ember)?)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"  # noqa: E501
_DAY = r"(?:Mon|Tues?|Wed(?:nes)?|Thu(?:rs)?|Fri|Sat(?:ur)?|Sun)(?:day)?"
PATTERNS: Mapping[str, re.Pattern[str]] = {
    "uuid": re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"),
    "date-time": re.compile(
        r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
    ),
    "date": re.compile(
        rf"\b\d{{4}}-\d{{2}}-\d{{2}}\b|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b"
        rf"|(?:\b{_DAY},? )?\b{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?\b"
        rf"|(?:\b{_DAY},? )?\b\d{{1,2}}\.? {_MONTH}\.?(?: \d{{4}})?\b|\b{_DAY}\b",
        re.IGNORECASE,
    ),
    "time": re.compile(r"\b\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?"),
    "hex": re.compile(r"\b(?=[0-9a-fA-F]*\d)[0-9a-fA-F]{8,}\b"),
    "id": re.compile(r"\b(?=\w*\d)(?=\w*[A-Za-z])\w{12,}\b"),
    "number": re.compile(r"\d+(?:[.,]\d+)*"),
}
"""What varies, by the name that a cassette has for it; the most particular first."""
VERSION = 1
_KEY = "agenteval_cassette"


class Volatile(Struct, frozen=True, omit_defaults=True):
    """A part of requests that varies: `at` is its place ("messages[0].content", `[*]` for every item, "*" for every
    place), `like` the name of a pattern (then only what looks like that is left out), or "any": all of it. `between`:
    only where these texts are before and behind it ("" is the start or the end of the whole text)."""

    at: str
    like: str = ANY
    between: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.like != ANY and self.like not in PATTERNS:
            raise ValueError(f"there is no pattern {self.like!r}")


class Cassette(Struct, frozen=True):
    """Recorded exchanges, in the order of the requests, and what of the requests varies."""

    exchanges: tuple[Exchange, ...] = ()
    volatile: tuple[Volatile, ...] = ()


def documents(cassette: Cassette) -> Iterator[dict[str, Any]]:
    """What the lines of a cassette hold."""
    head: dict[str, Any] = {_KEY: VERSION}
    if cassette.volatile:
        head["volatile"] = to_builtins(cassette.volatile)
    yield head
    yield from map(to_json, cassette.exchanges)


def lines(cassette: Cassette) -> Iterator[str]:
    """The lines of a cassette, each with its end."""
    return (encoded(document) + "\n" for document in documents(cassette))


def of_documents(listed: Sequence[Any], where: str) -> Cassette:
    """The cassette that `documents` gave. Raises `AgentevalError`."""
    return parse("\n".join(map(encoded, listed)), where)


def parse(text: str, where: str) -> Cassette:
    """The cassette in a text. Raises `AgentevalError` with the line that is wrong, or for another version."""
    exchanges: list[Exchange] = []
    volatile: tuple[Volatile, ...] = ()
    # Not `splitlines`: a text in a line may have other ends of lines in it. Blank lines are left where people put them.
    numbered = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not numbered:
        raise AgentevalError("this cassette is empty", where=where, fix="record it again: agenteval record --cassette")
    for place, (number, line) in enumerate(numbered):
        at = f"{where}:{number}"
        try:
            value = json.loads(line)
            if place == 0:
                volatile = _head(value, at)
            else:
                exchanges.append(from_json(value))
        except RecursionError:
            raise AgentevalError("this line is nested too deeply", where=at) from None
        except ValueError as error:  # not JSON, or not an exchange, which `from_json` says in words
            reason = _not_json(line) if isinstance(error, json.JSONDecodeError) else str(error)
            raise AgentevalError(
                f"this line of the cassette can't be read: {reason}", where=at, fix="fix the line, or record it again"
            ) from None
    return Cassette(tuple(exchanges), volatile)


def read(path: Path) -> Cassette:
    """The cassette in a file. Raises `AgentevalError`."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # editors of some systems put a mark before the first line
    except FileNotFoundError:
        raise AgentevalError(
            "there is no such cassette",
            where=str(path),
            fix=f"record it: {command_line('agenteval', 'record', '--cassette', str(path))} -- PROGRAM",
        ) from None
    except OSError as error:
        raise AgentevalError(
            f"this cassette can't be read: {str(error.strerror).lower()}", where=str(path), fix="name another file"
        ) from None
    except UnicodeDecodeError:
        raise AgentevalError(
            "this is not a cassette: it is not UTF-8", where=str(path), fix="name another file, or record it again"
        ) from None
    return parse(text, str(path))


def left_in(text: str) -> tuple[Exchange, ...]:
    """The exchanges that a killed process left behind. Skips a line that is not an exchange, or that was cut off."""
    exchanges = []
    for line in text.split("\n"):
        with suppress(ValueError, RecursionError):
            exchanges.append(from_json(json.loads(line)))
    return tuple(exchanges)


def write(path: Path, cassette: Cassette) -> None:
    """Write a cassette, in place of an existing one. Raises `AgentevalError`."""
    write_pieces(path, lines(cassette), force=True)


def append(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Add all exchanges to the cassette in a file, or none. Creates the file if it doesn't exist, and keeps the
    exchanges that another process adds at the same time. Raises `AgentevalError`."""
    try:
        # Another process may create the file between our look and our write. Where a file system has no locks, that
        # stays possible.
        with locked(path.parent, needed=False):
            if path.exists():
                _add(path, "".join([encoded(to_json(exchange)) + "\n" for exchange in exchanges]).encode())
            else:
                write(path, Cassette(tuple(exchanges)))
    except OSError as error:
        raise AgentevalError(f"this cassette can't be written: {error.strerror}", where=str(path)) from None


def _add(path: Path, data: bytes) -> None:
    """Append to the file. Raises OSError, and then leaves the file unchanged."""
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
    try:
        size = os.fstat(descriptor).st_size
        last = os.pread(descriptor, 1, size - 1) if size else b""
        # A line that was cut off has no end: the first new one must not become a part of it.
        append_whole(descriptor, data if last in (b"", b"\n") else b"\n" + data)
    finally:
        os.close(descriptor)


def _head(value: Any, at: str) -> tuple[Volatile, ...]:
    version = value.get(_KEY) if isinstance(value, dict) else None
    if version is None:
        raise AgentevalError(
            "this is not a cassette: its first line does not say so",
            where=at,
            fix=f'a cassette begins with {{"{_KEY}": {VERSION}}}; `agenteval docs record` says how to make one',
        )
    # JSON's true equals 1, and is no version.
    if type(version) is not int or version != VERSION:
        raise AgentevalError(
            f"this cassette has version {version!r:.40}, and this program reads version {VERSION}",
            where=at,
            fix="record it again, or use the version of agenteval that wrote it",
        )
    try:
        return tuple(convert(value.get("volatile", []), list[Volatile]))
    except ValidationError:
        raise AgentevalError(
            "`volatile` of this cassette is wrong",
            where=at,
            fix='write it as [{"at": "messages[*].content", "like": "date"}], or record it again',
        ) from None


def _not_json(line: str) -> str:
    # Every line is an object: one that begins as such and has no end was cut off while it was written.
    whole = line.rstrip().endswith("}")
    return "it is not JSON" if whole or not line.startswith("{") else "it is cut off"
