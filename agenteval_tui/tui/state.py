"""What is kept between two starts: the theme, and for each folder or suite that the app was started on, where one was.

One JSON file for all. Two apps at once: each writes only what is its own, on top of what the file says then. Missing
and broken data count as absent; nothing here raises. Something that is not our file (a FIFO, a folder, 30 MB) is left
unchanged, and `problem` reports it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.core.atomic_write import PRIVATE, locked, write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.private_files import make_private, read_small_bytes

MOST_STARTS = 30  # folders whose place is kept; the oldest goes
_THEME = {False: "theme", True: "theme of 16 colours"}


class State:
    """The file as it was read, and what this app changes in it. `start` names what the app was started on."""

    def __init__(self, path: Path, start: str) -> None:
        self._path = path
        self._start = start
        self.problem: AgentevalError | None = None
        try:
            data = read(path)
        except AgentevalError as error:
            data, self.problem = {}, error
        self._themes = {poor: text(data, name) for poor, name in _THEME.items()}
        self._place = mapping(mapping(data, "starts"), start)

    def theme(self, poor: bool) -> str:
        """The theme that was chosen, "" for none; `poor`: in a terminal of 16 colours or less."""
        return self._themes[poor]

    @property
    def screen(self) -> str:
        """The screen that was shown last; "" for none."""
        return text(self._place, "screen")

    def of(self, screen: str) -> Mapping[str, Any]:
        """What a screen kept; {} for nothing."""
        return mapping(mapping(self._place, "screens"), screen)

    def keep_theme(self, name: str, poor: bool = False) -> None:
        """The person chose a theme, for terminals like this one."""
        self._themes[poor] = name
        self._write(lambda data: data.update({_THEME[poor]: name}))

    def keep_place(self, screen: str, screens: Mapping[str, Mapping[str, Any]]) -> None:
        """Where the person is: the screen, and what each screen that was shown wants to know again."""
        place: dict[str, Any] = {
            "screen": screen,
            "screens": {**mapping(self._place, "screens"), **screens},
        }
        if {**place, "at": 0} == {**self._place, "at": 0}:
            return
        place["at"] = int(time.time())
        self._place = place

        def change(data: dict[str, Any]) -> None:
            starts = dict(mapping(data, "starts"))
            starts[self._start] = place
            newest = sorted(starts, key=lambda name: number(mapping(starts, name), "at"), reverse=True)
            data["starts"] = {name: starts[name] for name in newest[:MOST_STARTS]}

        self._write(change)

    def _write(self, change: Any) -> None:
        if self.problem is not None:
            return
        try:
            make_private(self._path.parent)
            with locked(self._path.with_suffix(".lock")):
                data = read(self._path)
                change(data)
                write_whole(self._path, (json.dumps(data, indent=1).encode(),), mode=PRIVATE, durable=False)
        except (OSError, AgentevalError):
            return  # a folder that can't be written is not a reason to stop


def name_of_start(paths: Sequence[Path], db: Path) -> str:
    """What a start is kept under: the paths that were given (the current folder without any), and the history."""
    return "\n".join([*sorted(str(path.resolve()) for path in paths or (Path.cwd(),)), str(db.absolute())])


def read(path: Path) -> dict[str, Any]:
    """The file's content; {} if there is none, or it can't be understood. Raises AgentevalError for anything but a
    readable regular file of at most 1 MB.
    """
    content = read_small_bytes(path, "the state of the app")
    try:
        data = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    return dict(data) if isinstance(data, dict) else {}


def mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping within `data`; {} for anything else."""
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def text(data: Mapping[str, Any], key: str) -> str:
    """A text within `data`; "" for anything else."""
    value = data.get(key)
    return value if isinstance(value, str) else ""


def texts(data: Mapping[str, Any], key: str) -> list[str]:
    """A list of texts within `data`; what is none is left out."""
    listed = data.get(key)
    return [item for item in listed if isinstance(item, str)] if isinstance(listed, list) else []


def flag(data: Mapping[str, Any], key: str) -> bool:
    """Whether something is set within `data`."""
    return data.get(key) is True


def number(data: Mapping[str, Any], key: str) -> float:
    """A number within `data`; 0 for anything else."""
    value = data.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0
