"""What an importer is: how a file of a foreign format is known, and who reads it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.recording import Recording, Skipped, skipped_element, with_unread
from agenteval_tui.formats.importers.suite_import import FoundTests
from agenteval_tui.formats.stream.json_reader import skipped_by
from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement, UnreadableFile
from agenteval_tui.formats.stream.source import Source

Recordings = Iterator[Recording | Skipped]


class Format(Struct, frozen=True, kw_only=True):
    """A foreign format (entry point group `agenteval.importers`): its name, what a file of it is (`title`, after "is")
    and how it looks, both in words, a test of a file's first value, and its readers.

    `recordings` reads runs, `tests` reads tests; a format has one, or both. `gathered`: its runs are made of several
    values of the file, so that one that can't be read may have been a call of any run that is told after it.
    `of_name`: a test of the file's name, for files without values that can be looked at. `yaml`: a test of the keys of
    a YAML document. `zip`: files of it may be ZIP archives. `parts`: the other files that belong to one of this format.
    `index_of`: the file that represents a folder of such files; None: it is another folder.
    `aliases`: other names for what the same reader takes. `page`: of the documentation, for people who come from there;
    `page_of`: where it depends on the file, "" for none. `rank`: formats are tried from the lowest, so that the ones
    with telling keys go first.
    """

    name: str
    title: str
    looks_like: str
    can_read: Callable[[Any], bool]
    recordings: Callable[[Source], Recordings] | None = None
    gathered: bool = False
    tests: Callable[[Source], FoundTests] | None = None
    of_name: Callable[[Path], bool] | None = None
    yaml: Callable[[frozenset[str]], bool] | None = None
    zip: bool = False
    parts: Callable[[Source], Sequence[Path]] | None = None
    index_of: Callable[[Path], Path | None] | None = None
    aliases: tuple[str, ...] = ()
    page: str = ""
    page_of: Callable[[Path], str] | None = None
    rank: int = 1000

    def runs(self, source: Source) -> Recordings:
        """What `recordings` reads. Of runs that may lack a call, because a value can't be read, a note says so."""
        lost = ""
        for part in () if self.recordings is None else self.recordings(source):
            if isinstance(part, Recording):
                yield with_unread(part, lost) if lost else part
            else:
                lost = lost or (part.reason if self.gathered and part.unread else "")
                yield part

    @property
    def described(self) -> str:
        """What a file of it is, and how it looks."""
        return f"{self.title}: {self.looks_like}"

    def page_for(self, path: Path) -> str:
        """The page of the documentation for people who have this file."""
        return self.page if self.page_of is None else self.page_of(path)


def by_value(read: Callable[[Iterable[JsonElement | BrokenElement]], Recordings]) -> Callable[[Source], Recordings]:
    """The reader of a format whose values follow one another."""
    return lambda source: read(source.values())


def run_per_value(
    read: Callable[[Any], Recording], *, can_read: Callable[[Any], bool], refusal: str
) -> Callable[[Source], Recordings]:
    """The reader of a format each of whose values is a run. `refusal` is said of a value that `can_read` does not know.

    A value that `read` raises an `AgentevalError` for is skipped, with the error's words; reading continues after it.
    """

    def runs(source: Source) -> Recordings:
        for element in source.values():
            if isinstance(element, BrokenElement):
                yield skipped_element(element)
            elif not can_read(element.value):
                yield Skipped(refusal, element.line)
            else:
                try:
                    yield read(element.value)
                except AgentevalError as error:
                    yield Skipped(error.what, element.line)

    return runs


def run_per_element(
    keys: Collection[str],
    read: Callable[[Mapping[str, Any], str, int], Recording],
    *,
    needs: Sequence[str],
    refusal: str,
    document: str,
) -> Callable[[Source], Recordings]:
    """The reader of a format whose runs are the elements of the lists under these keys of one document, which need not
    fit into memory. `read` gets an element, its key, and its place in the list, from 1.

    `needs`: keys of which an element has one; `refusal` is said of others. `document`: what the file is, in words.
    """

    def runs(source: Source) -> Recordings:
        reader = source.reader()
        try:
            for key in reader.members():
                if key not in keys:
                    continue
                for place, _ in enumerate(reader.elements(), 1):
                    line = reader.line  # before the element, which may have many
                    element = reader.bounded()
                    if not isinstance(element, Mapping) or not any(need in element for need in needs):
                        yield Skipped(refusal, line)
                        continue
                    try:
                        yield read(element, key, place)
                    except AgentevalError as error:
                        yield Skipped(error.what, line)
        except UnreadableFile as error:
            yield Skipped(f"from here on the {document} can't be read: {error.reason}", reader.line, error.cut_off)
        # Only now is it known what was passed over.
        yield from skipped_by(reader)

    return runs
