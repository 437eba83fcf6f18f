"""Which format a file is in, told by its content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import IMPORTERS, EntryPoint
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.stream.sniff import LOOKED_AT, LOOKED_AT_MOST, Head, sniff
from agenteval_tui.formats.stream.source import Source


def formats() -> dict[str, Format]:
    """All formats by name, in the order in which they are tried: agenteval's own, then those of plug-ins."""
    return {format_.name: format_ for format_ in _tried()}


def format_named(name: str) -> Format:
    """The format of that name. Raises `AgentevalError`."""
    if (point := entry_points.find(IMPORTERS, name)) is not None:
        return _load(point)
    aliases = {alias: format_ for format_ in _tried() for alias in format_.aliases}
    if name not in aliases:
        names = ", ".join(sorted({*entry_points.names(IMPORTERS), *aliases}))
        raise AgentevalError(f"there is no format {name!r}", fix=f"formats: {names}")
    return aliases[name]


def indices_of(folder: Path) -> Iterator[tuple[Format, Path]]:
    """The formats of which a folder holds one recording in several files, each with the file that stands for all."""
    for format_ in _tried():
        index = None if format_.index_of is None else format_.index_of(folder)
        if index is not None:
            yield format_, index


def _tried() -> Iterator[Format]:
    """A plug-in is looked for only where no format of agenteval's own can read the file."""
    yield from _own()
    yield from _of_plugins()[0]


@cache
def _own() -> tuple[Format, ...]:
    loaded = (_load(EntryPoint(IMPORTERS, *item, "")) for item in entry_points.own(IMPORTERS).items())
    return tuple(sorted(loaded, key=attrgetter("rank")))


@cache
def _of_plugins() -> tuple[tuple[Format, ...], Mapping[str, str]]:
    """Those that can be loaded, and what is wrong with the others, by name: one broken plug-in does not block every
    file."""
    loaded, broken = [], {}
    for name in entry_points.names(IMPORTERS):
        if name not in entry_points.own(IMPORTERS):
            try:
                loaded.append(format_named(name))
            except AgentevalError as error:
                broken[name] = on_one_line(error.what, 200)
    return tuple(sorted(loaded, key=attrgetter("rank"))), broken


def _load(point: EntryPoint) -> Format:
    loaded = point.load_as("importer")
    if not isinstance(loaded, Format) or loaded.name != point.name:
        raise AgentevalError(
            f"the importer {point.name!r} is not a Format of that name",
            where=point.target,
            fix="an importer is a `Format` (see formats/importers/format.py)",
        )
    return loaded


def detect(source: Source) -> Format:
    """The file's format. Raises `AgentevalError` that says what was looked for, what was found instead, and which
    plug-ins could not look."""
    broken: dict[str, str] = {}
    named = next(
        (format_ for format_ in _tried() if format_.of_name is not None and format_.of_name(source.path)), None
    )
    if named is not None:
        return named
    head = sniff(source)
    format_ = _of_head(head, broken)
    # Most files tell by their first bytes; some begin with a field that is larger than that.
    if format_ is None and source.size > LOOKED_AT:
        format_ = _of_head(sniff(source, LOOKED_AT_MOST), broken)
    if format_ is None:
        fix = _looked_for({**_of_plugins()[1], **broken})
        raise AgentevalError(_why_unknown(head), where=str(source.path), fix=fix)
    return format_


def _of_head(head: Head, broken: dict[str, str]) -> Format | None:
    """`broken` gets what the plug-ins raise that fail on this file, by name."""
    if head.zip:
        return next((format_ for format_ in _tried() if format_.zip), None)
    value = head.values[:1]
    tests: tuple[Callable[[Format], bool], ...] = (
        lambda candidate: any(map(candidate.can_read, value)),
        lambda candidate: candidate.yaml is not None and candidate.yaml(head.yaml),
    )
    for test in tests:
        for candidate in _tried():
            try:
                if test(candidate):
                    return candidate
            except Exception as error:  # the code of others
                # A fault of this program is to be seen; one of a plug-in must not keep others from reading the file.
                if candidate in _own():
                    raise
                broken[candidate.name] = on_one_line(f"it failed on this file: {type(error).__name__}: {error}", 200)
    return None


def _why_unknown(head: Head) -> str:
    if head.zip:
        return "this is a ZIP archive, and none of these formats may be one"
    if head.values:
        return f"this format is unknown: its first value is {_described(head.values[0])}"
    if head.broken is None:
        return "there is nothing in this file"
    return f"nothing in this file can be read as JSON (line {head.broken.line}: {head.broken.reason})"


def _described(value: Any) -> str:
    if not isinstance(value, Mapping):
        kinds = {str: "a text", bool: "true or false", list: "a list", type(None): "null"}
        return kinds.get(type(value), "a number")
    names = ", ".join(repr(str(key)[:40]) for key in list(value)[:8])
    more = " and more" if len(value) > 8 else ""
    return f"an object with the keys {names}{more}" if value else "an empty object"


def _looked_for(broken: Mapping[str, str]) -> str:
    by_name = formats()
    wide = max(map(len, (*by_name, *broken))) + 2
    lines = [f"  {name:<{wide}}{broken.get(name, format_.described)}" for name, format_ in by_name.items()]
    lines += [f"  {name:<{wide}}{reason}" for name, reason in broken.items() if name not in by_name]
    return "\n".join(["These formats were tried (--format NAME chooses one):", *lines])
