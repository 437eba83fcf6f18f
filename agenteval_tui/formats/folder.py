"""A folder of foreign files: which may be imported, and what is passed over, by reason."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.detect import indices_of
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.stream.source import Source

ENDINGS = (".json", ".jsonl", ".ndjson", ".eval", ".yaml", ".yml")
"""How files end that may be in a known format; packed ones have `.gz` behind that."""
MOST_FILES = 10_000  # of a folder


class Folder(Struct, frozen=True):
    """The files of a folder that may be in a known format, in order; `passed_over`: (reason, how many, the first)."""

    files: tuple[Path, ...]
    passed_over: tuple[tuple[str, int, str], ...] = ()

    def skipped_lines(self) -> Iterator[str]:
        """What was passed over, a line each: `2 with the ending .txt: notes.txt and others`."""
        for reason, count, first in self.passed_over:
            yield f"{count:,} {reason}: {first}" + (" and others" if count > 1 else "")


def folder_of(folder: Path) -> Folder:
    """What is in a folder, and in those in it; links to folders are not followed.

    Raises `AgentevalError` when nothing in it may be in a known format, or there is more than anybody means.
    """
    files: list[Path] = []
    reasons: Counter[str] = Counter()
    firsts: dict[str, str] = {}

    def pass_over(path: Path, reason: str) -> None:
        reasons[reason] += 1
        firsts.setdefault(reason, str(path.relative_to(folder)))

    def unreadable(error: OSError) -> None:
        pass_over(Path(error.filename or folder), f"unreadable ({error.strerror or 'no reason was given'})")

    for inner, folders, names in os.walk(folder, onerror=unreadable):
        here = Path(inner)
        for name in sorted(folders):
            if name.startswith("."):
                pass_over(here / name, "hidden")
            elif (here / name).is_symlink():
                pass_over(here / name, "link to a folder, not followed")
        # `os.walk` goes into what is left in its list.
        folders[:] = sorted(
            folder for folder in folders if not folder.startswith(".") and not (here / folder).is_symlink()
        )
        for format_, index in indices_of(here):
            # They come in with the file that stands for the folder.
            parts = [part for part in _parts(format_, index) if part.is_relative_to(here)]
            inside = {part.relative_to(here).parts[0] for part in parts}
            folders[:] = [name for name in folders if name not in inside]
        for name in sorted(names):
            reason = _passed_over(here / name)
            if reason:
                pass_over(here / name, reason)
                continue
            files.append(here / name)
            if len(files) > MOST_FILES:
                raise AgentevalError(
                    f"there are more than {MOST_FILES:,} files in this folder", where=str(folder), fix="name parts"
                )
    contents = Folder(tuple(files), tuple((reason, count, firsts[reason]) for reason, count in sorted(reasons.items())))
    if not files:
        rest = "; ".join(contents.skipped_lines())
        raise AgentevalError(
            f"no file in this folder ends with {', '.join(ENDINGS)}" + (f" (passed over: {rest})" if rest else ""),
            where=str(folder),
        )
    return contents


def _parts(format_: Format, index: Path) -> Sequence[Path]:
    try:
        with Source(index) as source:
            return () if format_.parts is None else format_.parts(source)
    # What is wrong with it is said when it is imported.
    except (OSError, AgentevalError):
        return ()


def _passed_over(path: Path) -> str:
    """Why a file of a folder is passed over; "" when it may be in a known format."""
    if path.name.startswith("."):
        return "hidden"
    if path.is_symlink() and not path.exists():
        return "link to nothing"
    if not path.is_file():
        return "pipe or device"
    lower = path.name.lower()
    if lower.removesuffix(".gz").endswith(ENDINGS):
        return "" if os.access(path, os.R_OK) else "unreadable (no permission)"
    # Behind `.gz` the ending that counts is the one before it.
    ending = "".join(Path(lower).suffixes[-2:]) if lower.endswith(".gz") else Path(lower).suffix
    return f"with the ending {ending}" if ending else "without an ending"
