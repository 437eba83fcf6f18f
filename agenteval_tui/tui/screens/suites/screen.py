"""The Suites screen: what can be run, how it went, and why it fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.actions import bindings, key_of
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.suite_tree import Node
from agenteval_tui.tui.screens.suites.file_changes import change_files
from agenteval_tui.tui.screens.suites.run_actions import SuitesRuns

if TYPE_CHECKING:
    from agenteval_tui.suites.editing import Written
    from agenteval_tui.suites.load import LoadedSuite

_DOING = {"copied": "copy", "deleted": "delete", "tagged": "tag", "moved": "move"}
_WHERE = {"copied": "to", "deleted": "from", "tagged": "in", "moved": "in"}
MOST_UNDONE = 20  # changes of files that can be undone, one after the other


class SuitesScreen(SuitesRuns):
    """The tree (`suites_tree`), runs of it (`suites_runs`), and here: changes of the suites' files."""

    CSS_PATH = "screen.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("suites"))

    def __init__(self) -> None:
        super().__init__()
        self._undo: list[tuple[str, list[Written]]] = []  # what was done, in words, and the files of it

    def action_new_test(self) -> None:
        if self._wait_for_suites():
            return
        node = self._node
        if node is not None:
            self.agenteval.new_test(node.suite.loaded)
        elif self._tree is not None and self._tree.query:
            self.agenteval.say("No suite is shown to write a test to: esc clears the filter.")
        else:
            self.action_new_suite()

    def action_new_suite(self) -> None:
        self.agenteval.new_suite()

    def action_duplicate(self) -> None:
        session = self.agenteval.session
        self._change("copied", lambda loaded, tests: session.duplicate_tests(loaded, tests))

    def action_delete(self) -> None:
        from agenteval_tui.tui.screens.editor.dialogs import delete_question

        meant, session = self._meant(), self.agenteval.session
        if not meant:
            self.agenteval.say("Choose a test, or mark several.")
            return

        def answered(answer: str | None) -> None:
            if answer:
                self._change("deleted", lambda loaded, tests: session.delete_tests(loaded, tests), meant)

        files = list(dict.fromkeys(node.suite.loaded.path.name for node in meant))
        ids = [node.test.id for node in meant if node.test is not None]
        self.app.push_screen(delete_question(ids, ", ".join(files)), answered)

    def action_tag(self) -> None:
        from agenteval_tui.tui.screens.new_test import TagsScreen

        meant, session = self._meant(), self.agenteval.session
        if not meant:
            self.agenteval.say("Choose a test, or mark several.")
            return

        def answered(answer: tuple[list[str], list[str]] | None) -> None:
            if answer is not None:
                add, remove = answer
                self._change("tagged", lambda loaded, tests: session.tag_tests(loaded, tests, add, remove), meant)

        tags = sorted({tag for node in meant if node.test is not None for tag in node.test.tags})
        self.app.push_screen(TagsScreen(len(meant), tags), answered)

    def action_move(self, by: int) -> None:
        node, session = self._node, self.agenteval.session
        if node is None or node.test is None:
            self.agenteval.say("Choose a test to move it.")
            return
        if self._tree is not None and self._tree.worst_first:
            self.agenteval.say("The worst stand first now: s shows the file's order, then J and K move.")
            return
        one = Node("test", node.suite, node.test)
        self._change("moved", lambda loaded, tests: session.move_test(loaded, tests[0], by), [one])

    def _change(
        self, what: str, change: Callable[[LoadedSuite, list[str]], LoadedSuite], meant: list[Node] | None = None
    ) -> None:
        """Change the files of these tests (each file once), and read the suites again."""
        nodes = self._meant() if meant is None else meant
        if not nodes:
            self.agenteval.say("Choose a test, or mark several.")
            return
        by_file: dict[str, tuple[LoadedSuite, list[str]]] = {}
        for node in nodes:
            loaded = node.suite.loaded
            by_file.setdefault(loaded.key, (loaded, []))[1].append(node.test.id if node.test is not None else "")

        who = nodes[0].test.id if len(nodes) == 1 and nodes[0].test is not None else count(len(nodes), "test")

        taken: list[Written] = []

        def done(written: list[LoadedSuite]) -> None:
            if taken:
                some = "" if len(written) == len(by_file) else "Not all: "
                said = f"{some}{who} {what} {_WHERE[what]} {', '.join(one.path.name for one in taken)}"
                self._undo = [*self._undo[1 - MOST_UNDONE :], (said, taken)]
                self.agenteval.say(f"{said}, {key_of('suites.undo', self.agenteval.keymap)} undoes.")
            self.reload()

        change_files(self, by_file.values(), change, f"{_DOING[what]} {who}", done, taken=taken)

    def action_undo(self) -> None:
        """Take the last change of files back."""
        if not self._undo:
            self.agenteval.say("Nothing was changed here that could be undone.")
            return
        if self.still_writes("change"):
            return
        said, taken = self._undo.pop()
        session = self.agenteval.session

        def done(_: list[LoadedSuite]) -> None:
            self.agenteval.say(f"Undone: {said}.")
            self.reload()

        def failed(error: AgentevalError) -> None:
            self.agenteval.say_error(error)
            self.reload()

        self.ask(lambda: session.take_back(taken), done, group="change", failed=failed)

    def action_quarantine(self) -> None:
        from agenteval_tui.tui.screens.quarantine import quarantine_of

        node = self._node
        if node is None or node.test is None:
            self.agenteval.say("Choose a test, or one of its criteria.")
            return
        suite = node.suite
        self.app.push_screen(
            quarantine_of(suite, node.test, node.criterion), lambda said: self._quarantined(said) if said else None
        )

    def _quarantined(self, said: str) -> None:
        self.agenteval.say(said)
        self.reload()

    def action_open_editor(self) -> None:
        node = self._node
        if node is None:
            return
        line = node.suite.loaded.line_of(node.test.id if node.test else None, node.criterion)
        if node.test is None:
            # Who opens a file with problems wants to mend them.
            line = min((problem.line for problem in node.suite.own_errors), default=line)
        self.agenteval.open_editor(node.suite.loaded.path, line)
        self.reload()
