"""Reading text files, one or all that a pattern matches."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from agenteval_tui.agents.probes.limits import MOST_BYTES, MOST_FILES, UnreadError, decoded, too_large
from agenteval_tui.core.open_histories import is_of_open_history
from agenteval_tui.transcripts.state import ReadingProblem

_MOST_LOOKED_AT = 200_000  # files and folders that a pattern may go through


def read_file(name: str, folder: Path, *, trusted: bool) -> str:
    """The text of a file relative to `folder`; outside of it only where the folder is `trusted`. Raises
    `UnreadError`."""
    data = _bytes(place_of(name, folder), name, folder, MOST_BYTES, trusted)
    if data is None:
        raise UnreadError(ReadingProblem.NO_FILE, file=name)
    return decoded(data, file=name)


def read_files(pattern: str, folder: Path, *, trusted: bool, until: float) -> dict[str, str]:
    """The texts of the files that a pattern matches, by their paths as the pattern is written: relative to `folder`, or
    absolute. {} where there are none. Links to folders are not followed. `until`: when to give up, on the monotonic
    clock. Raises `UnreadError`."""
    texts: dict[str, str] = {}
    size = 0
    for path, name in sorted(_matches(pattern, folder, until), key=lambda pair: pair[1]):
        data = _bytes(path, name, folder, MOST_BYTES - size, trusted)
        if data is None:
            continue  # it was removed meanwhile
        size += len(data) + len(name.encode("utf-8", "replace"))
        if size > MOST_BYTES:
            raise too_large()
        texts[name] = decoded(data, file=name)
    return texts


def _matches(pattern: str, folder: Path, until: float) -> Iterator[tuple[Path, str]]:
    """The regular files that a pattern matches, with their names."""
    base, parts = _base(pattern, folder)
    count = looked_at = 0
    if not parts:
        parts = [base.name]
        base = base.parent
    waiting: list[tuple[Path, tuple[str, ...]]] = [(base, tuple(parts))]
    visited: set[tuple[Path, tuple[str, ...]]] = set()
    while waiting:
        place, rest = waiting.pop()
        if (place, rest) in visited:
            continue
        visited.add((place, rest))
        first, later = rest[0], rest[1:]
        if first == "**" and later:
            waiting.append((place, later))
        try:
            entries = list(os.scandir(place))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise UnreadError(ReadingProblem.UNUSABLE, message=f"{place.name}: {error.strerror or error}") from None
        looked_at += len(entries)
        if time.monotonic() > until:
            raise TimeoutError
        if looked_at > _MOST_LOOKED_AT:
            raise UnreadError(ReadingProblem.TOO_MANY, most=_MOST_LOOKED_AT, what="files")
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if first == "**":
                if is_folder and not entry.name.startswith("."):
                    waiting.append((Path(entry.path), rest))
                elif not later and not entry.is_dir():  # also no link to a folder
                    yield Path(entry.path), _name(Path(entry.path), pattern, folder)
                    count += 1
            elif PurePosixPath(entry.name).match(first) and (first.startswith(".") or not entry.name.startswith(".")):
                if later and is_folder:
                    waiting.append((Path(entry.path), later))
                elif not later and not entry.is_dir():
                    yield Path(entry.path), _name(Path(entry.path), pattern, folder)
                    count += 1
            if count > MOST_FILES:
                raise UnreadError(ReadingProblem.TOO_MANY, most=MOST_FILES, what="files")


def _base(pattern: str, folder: Path) -> tuple[Path, list[str]]:
    """The folder where a pattern begins, and its parts from there on."""
    whole = place_of(pattern, folder)
    fixed: list[str] = []
    parts = list(whole.parts)
    while parts and not any(mark in parts[0] for mark in "*?["):
        fixed.append(parts.pop(0))
    return Path(*fixed), parts


def _name(path: Path, pattern: str, folder: Path) -> str:
    if Path(pattern).expanduser().is_absolute():
        return str(path)
    return os.path.relpath(path, folder) if ".." in Path(pattern).parts else str(path.relative_to(folder))


def place_of(name: str, folder: Path) -> Path:
    """The path that a name means in `folder`. Raises `UnreadError` where it can't be one."""
    if "\0" in name:
        raise UnreadError(ReadingProblem.UNUSABLE, message="a path can't hold the character 0")
    try:
        return folder / Path(name).expanduser()
    except RuntimeError as error:  # ~somebody
        raise UnreadError(ReadingProblem.UNUSABLE, message=str(error)) from None


def real_path(path: Path, name: str, folder: Path, *, trusted: bool) -> Path:
    """The path without links. Raises `UnreadError` where it is outside of a folder that is not trusted."""
    real = path.resolve()
    if not trusted and not real.is_relative_to(folder.resolve()):
        raise UnreadError(ReadingProblem.OUTSIDE, file=name)
    return real


def _bytes(path: Path, name: str, folder: Path, most: int, trusted: bool) -> bytes | None:
    """What is in a regular file; None where there is none. A pipe or a device is never waited for."""
    try:
        real = real_path(path, name, folder, trusted=trusted)
        if is_of_open_history(real):
            raise UnreadError(ReadingProblem.UNUSABLE, message=f"{name} is the history that this run is stored in")
        handle = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, RuntimeError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise UnreadError(ReadingProblem.NOT_A_FILE, file=name) from None
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UnreadError(ReadingProblem.UNUSABLE, message=f"{name}: {why}") from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise UnreadError(ReadingProblem.NOT_A_FILE, file=name)
    try:
        with os.fdopen(handle, "rb") as file:
            data = file.read(max(most, 0) + 1)
    except OSError as error:
        raise UnreadError(ReadingProblem.UNUSABLE, message=f"{name}: {error.strerror or error}") from None
    if len(data) > most:
        raise too_large(file=name)
    return data
