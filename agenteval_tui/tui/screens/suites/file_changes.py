"""Changes of suites' files that are made of their tests' ids: copies, moves, tags. Where another program wrote a file
meanwhile, the difference is shown, and the change is made in the new text if the person wants that."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.editing import ChangedSince, WrittenFile, change_record
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.yaml.save import FileChanged, bytes_of
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.file_conflict_dialog import FileConflictScreen

Change = Callable[[LoadedSuite, list[str]], LoadedSuite]


def change_files(
    screen: FrameScreen,
    files: Iterable[tuple[LoadedSuite, list[str]]],
    change: Change,
    what: str,
    done: Callable[[list[LoadedSuite]], None],
    *,
    written_files: list[WrittenFile] | None = None,
) -> None:
    """Make `change(suite, ids)` in each of the files, one after the other.

    `what` says it in a few words ("copy one-2"). `done` gets the suites that were written, all or those before the
    person left one as it is; it is called in every case, so that what the files say now can be shown.
    `written_files` gets what undoing each change needs.
    """
    if not screen.still_writes("change"):
        _FileChanges(
            screen, list(files), change, what, done, written_files if written_files is not None else []
        ).begin()


def undo_files(
    screen: FrameScreen,
    files: Iterable[WrittenFile],
    done: Callable[[], None],
    on_stop: Callable[[list[WrittenFile], bool], None],
) -> None:
    """Write each file as it was before its change. If a file can't be written, show why, and call `on_stop` with the
    remaining files, and with whether somebody else has changed the first file since. Then its undo has to wait."""
    remaining, workspace = list(files), screen.agenteval.session.workspace

    def work() -> None:
        while remaining:
            workspace.undo(remaining[0])
            del remaining[0]

    def failed(error: AgentevalError) -> None:
        screen.agenteval.say_error(error)
        on_stop(remaining, isinstance(error, ChangedSince))

    screen.ask(work, lambda _: done(), group="change", failed=failed)


class _FileChanges:
    """The files that still have to change, next one first, and those already written."""

    def __init__(
        self,
        screen: FrameScreen,
        todo: list[tuple[LoadedSuite, list[str]]],
        change: Change,
        what: str,
        done: Callable[[list[LoadedSuite]], None],
        written_files: list[WrittenFile],
    ) -> None:
        self._screen = screen
        self._todo = todo
        self._change = change
        self._what = what
        self._done = done
        self._taken = written_files
        self._written: list[LoadedSuite] = []

    def begin(self) -> None:
        """Write what is to be written, or what is left of it."""
        self._screen.ask(self._write, lambda _: self._done(self._written), group="change", failed=self._failed)

    def _write(self) -> None:
        """In a thread."""
        while self._todo:
            loaded, ids = self._todo[0]
            before = bytes_of(loaded)
            now = self._change(loaded, ids)
            self._written.append(now)
            undo = change_record(loaded, now, before)
            if undo is not None:
                self._taken.append(undo)
            del self._todo[0]

    def _failed(self, error: AgentevalError) -> None:
        if isinstance(error, FileChanged):
            self._ask_about(self._todo[0][0], error.diff)
        else:
            self._screen.agenteval.say_error(error)
            self._done(self._written)

    def _ask_about(self, loaded: LoadedSuite, diff: str) -> None:
        action = f"{self._what} in the new version"
        self._screen.app.push_screen(FileConflictScreen(loaded.path.name, diff, action), self._answered)

    def _answered(self, go_on: bool | None) -> None:
        if go_on:
            self._screen.ask(self._read_again, lambda _: self.begin(), group="change", failed=self._failed)
        else:
            self._done(self._written)

    def _read_again(self) -> None:
        """In a thread: the file as the other program left it."""
        loaded, ids = self._todo[0]
        self._todo[0] = load_suite(loaded.path), ids
