"""What the app was started with: the suites, the history. No widget, no Textual; safe to call in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.projects import projects_open, shows_all
from agenteval_tui.suites.samples import are_samples, copied_samples

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.history.store import Store
    from agenteval_tui.tui.workspace import Workspace


_SEARCH_S = 2.0  # the samples may be waited for so long


class Session:
    """One start of the app: the paths it was given, the history file, and what was read from them.

    Every method may take long: screens call them in a worker. Errors are `AgentevalError`s.
    """

    def __init__(self, paths: Sequence[Path], db: Path) -> None:
        # The folder that the program is in may be deleted while it runs: relative paths would mean nothing then.
        self.paths = tuple(path.absolute() for path in paths)
        self._here: Path | None = None
        self.db = db
        self._lock = threading.Lock()
        self._store: Store | None = None
        self._moved = ""  # what happened to the file, until it is said
        self._cannot = ""  # why what is at its place can't be opened, as it was said
        self._looked_in: tuple[Path, ...] | None = None
        self.wants_samples = False
        """Whether the sample suites are shown where there are no suites."""
        self._has_agents: bool | None = None  # the folder without suites; None: not known
        self._own: dict[Path, tuple[int, int]] = {}
        self._workspace: Workspace | None = None
        self.everything = shows_all()
        """Whether lists show the runs of all projects, and not only of the open one."""

    @property
    def db_option(self) -> str:
        """What a command that the app hands out needs to find this history: ` --db FILE`, or nothing."""
        return directories.db_option(self.db)

    @property
    def store(self) -> Store:
        """The history, opened at first use."""
        with self._lock:
            if self._store is None:
                # 13 ms, for which the first frame does not wait.
                from agenteval_tui.history.store import Store

                self._store = Store.open_to_look(self.db)
            elif not self._store.in_place:
                self._open_again(self._store)
            return self._store

    def _open_again(self, before: Store) -> None:
        """Somebody moved, deleted or replaced the file: what is at its place now is the history."""
        what = "replaced by another file" if self.db.exists() else "moved or deleted"
        try:
            self._store = before.open_to_look(self.db)
        except AgentevalError as error:
            # The one that is open can still be read; whoever writes to it is told.
            message = f"The history was {what}: {error.sentence}"
            self._moved, self._cannot = ("" if message == self._cannot else message), message
            return
        self._cannot = ""
        remark = "it is shown now" if "replaced" in what else "a new one was created in its place"
        self._moved = f"The history was {what} while it was open, and {remark}: {self.db}"
        # Closing waits for whoever still reads.
        threading.Thread(target=before.close, daemon=True, name="close-moved-history").start()

    def moved(self) -> str:
        """What happened to the history file since this was asked last, in a sentence; "" for nothing.

        Where it is another file now, that one is opened.
        """
        with self._lock:
            store = self._store
        if store is not None and not store.in_place:
            _ = self.store
        with self._lock:
            message, self._moved = self._moved, ""
        return message

    @property
    def notices(self) -> tuple[str, ...]:
        """What the history had to say when it was opened (a salvaged file, a newer version)."""
        return self.store.notices

    def suite_paths(self) -> tuple[Path, ...]:
        """Where suites are looked for: what was given, else the current folder if it has suites or agents, else the
        sample suites."""
        if self.paths and not self.wants_samples:
            self._looked_in = self.paths
            return self._looked_in
        here = self._here = self._here or Path.cwd()
        own = self.paths or (here,)
        is_own = bool(discover(own)) or (not self.wants_samples and self._finds_agents(here))
        self._looked_in = own if is_own else (_samples(),)
        return self._looked_in

    def _finds_agents(self, folder: Path) -> bool:
        """Whether the folder has an agent that a suite can be written for. Reads its files, once."""
        if self._has_agents is None:
            # 40 ms that only a folder without suites needs.
            from agenteval_tui.agents.discovery.search import find_agents

            self._has_agents = bool(find_agents(folder, seconds=_SEARCH_S).agents)
        return self._has_agents

    @property
    def paths_looked_in(self) -> tuple[Path, ...]:
        """Where suites were looked for last; walks no folder, so that a screen may ask while it paints."""
        return self._looked_in or self.paths

    def on_samples(self) -> bool:
        """Are the suites those that ship with the program, or the demo's copies? Walks no folder either."""
        return bool(self.paths_looked_in) and all(map(are_samples, self.paths_looked_in))

    @property
    def shows_all(self) -> bool:
        """Whether lists show all projects; reads nothing."""
        return self.everything or self.db == directories.demo_history()

    @property
    def projects(self) -> tuple[str, ...]:
        """The projects whose runs are listed: those of the suites that are open; () for all. The demo has no others."""
        if self.shows_all:
            return ()
        looked = self.paths_looked_in or self.suite_paths()
        opened = projects_open(looked)
        # Without suites here the samples are shown; what was imported here is of this folder.
        return opened if self.paths else tuple(dict.fromkeys((*opened, *projects_open())))

    def overview(self) -> Overview:
        """All suites with what the history knows of their tests; what is wrong with them says the workspace."""
        # 70 ms with what reads suites: the first frame does not wait for it.
        from agenteval_tui.analysis.overview import overview

        return overview(self.suite_paths(), self.store)

    @property
    def workspace(self) -> Workspace:
        """What screens do with the suites and the runs beyond listing them, imported at first use."""
        # 35 ms beyond what the tree of suites needs, which does not wait for it.
        from agenteval_tui.tui.workspace import Workspace

        with self._lock:
            self._workspace = self._workspace or Workspace(self)
            return self._workspace

    def note_own_write(self, path: Path) -> None:
        """This app wrote that file, so the message that it changed is not news."""
        try:
            stat = path.stat()
        except OSError:
            # Gone again, or not to be looked at: then the message about it is news.
            return
        self._own[path.resolve()] = (stat.st_mtime_ns, stat.st_size)

    def is_own(self, path: Path) -> bool:
        """Is the file as this app wrote it last?"""
        try:
            stat = path.stat()
        except OSError:
            return False
        return self._own.get(path.resolve()) == (stat.st_mtime_ns, stat.st_size)

    def close(self) -> None:
        """Close the history."""
        if self._workspace is not None:
            self._workspace.close()
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None


def _samples() -> Path:
    """The user's copies of the sample suites; where they can't be written, those that ship with the program."""
    try:
        return copied_samples()
    except (OSError, AgentevalError):
        return directories.bundled("sample_suites")
