"""Changes of suites' files that are made of their tests' ids: copies, moves, tags. Where another program wrote a file
meanwhile, the difference is shown, and the change is made in the new text if the person wants that."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.screens.base_screen import FrameScreen

if TYPE_CHECKING:
    from agenteval_tui.suites.editing import Written
    from agenteval_tui.suites.load import LoadedSuite

Change = Callable[["LoadedSuite", list[str]], "LoadedSuite"]


def change_files(
    screen: FrameScreen,
    files: Iterable[tuple[LoadedSuite, list[str]]],
    change: Change,
    what: str,
    done: Callable[[list[LoadedSuite]], None],
    *,
    taken: list[Written] | None = None,
) -> None:
    """Make `change(suite, ids)` in each of the files, one after the other.

    `what` says it in a few words ("copy one-2"). `done` gets the suites that were written, all or those before the
    person left one as it is; it is called in every case, so that what the files say now can be shown. `taken` gets what
    undoing each of them needs.
    """
    todo = list(files)
    written: list[LoadedSuite] = []

    def work() -> None:
        # Not at the top: loading suites takes a quarter of the time until the first screen, which imports this.
        from agenteval_tui.suites.editing import bytes_of
        from agenteval_tui.suites.editing import written as remembered

        while todo:
            loaded, ids = todo[0]
            before = bytes_of(loaded)
            written.append(change(loaded, ids))
            if taken is not None and (one := remembered(loaded, written[-1], before)) is not None:
                taken.append(one)
            del todo[0]

    def failed(error: AgentevalError) -> None:
        from agenteval_tui.suites.yaml.save import FileChanged

        if isinstance(error, FileChanged):
            _ask(todo[0][0], error.diff)
        else:
            screen.agenteval.say_error(error)
            done(written)

    def _ask(loaded: LoadedSuite, diff: str) -> None:
        from agenteval_tui.tui.screens.file_conflict_dialog import ChangedFileScreen

        def answered(go_on: bool | None) -> None:
            if go_on:
                screen.ask(read_again, lambda _: begin(), group="change", failed=failed)
            else:
                done(written)

        screen.app.push_screen(ChangedFileScreen(loaded.path.name, diff, f"{what}, in the file as it is now"), answered)

    def read_again() -> None:
        from agenteval_tui.suites.load import load_suite

        loaded, ids = todo[0]
        todo[0] = load_suite(loaded.path), ids

    def begin() -> None:
        screen.ask(work, lambda _: done(written), group="change", failed=failed)

    if not screen.still_writes("change"):
        begin()
