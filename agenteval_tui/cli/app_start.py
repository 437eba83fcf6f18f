"""With what the app opens: the one thing that the command line tells the screens."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct


class AppStart(Struct, frozen=True):
    """`paths` are suite files or folders ((): the app chooses), `db` the history file (None: the usual one).

    `screen` is where the app opens: suites, run, inspect or history; `target` what it shows there (a run's or an
    execution's id); `criterion` is the one of a run to begin with ("": the first that failed).
    """

    paths: tuple[Path, ...] = ()
    db: Path | None = None
    screen: str = "suites"
    target: str = ""
    criterion: str = ""
