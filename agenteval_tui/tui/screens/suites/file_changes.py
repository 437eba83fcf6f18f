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
    written_files: list[WrittenFile],
) -> None:
    """Make `change(suite, ids)` in each of the files, one after the other.

    `what` says it in a few words ("copy one-2"). `done` gets the suites that were written, all or those before the
    person left one as it is; it is called in every case, so that what the files say now can be shown.
    `written_files` gets what undoing each change needs.
    """
    if screen.still_writes("change"):
        return
    remaining = list(files)
    suites: list[LoadedSuite] = []

    def work() -> None:
        while remaining:
            loaded, ids = remaining[0]
            before = bytes_of(loaded)
            now = change(loaded, ids)
            suites.append(now)
            undo = change_record(loaded, now, before)
            if undo is not None:
                written_files.append(undo)
            # Only now: a file that can't be written stays the first one, which is asked about.
            del remaining[0]

    def read_again() -> None:
        loaded, ids = remaining[0]
        remaining[0] = load_suite(loaded.path), ids

    def answered(go_on: bool | None) -> None:
        if go_on:
            screen.ask(read_again, lambda _: begin(), group="change", failed=failed)
        else:
            done(suites)

    def failed(error: AgentevalError) -> None:
        if isinstance(error, FileChanged):
            name = remaining[0][0].path.name
            screen.app.push_screen(FileConflictScreen(name, error.diff, f"{what} in the new version"), answered)
        else:
            screen.agenteval.say_error(error)
            done(suites)

    def begin() -> None:
        screen.ask(work, lambda _: done(suites), group="change", failed=failed)

    begin()


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
