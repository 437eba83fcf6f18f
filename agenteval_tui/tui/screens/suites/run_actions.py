"""Runs from the Suites screen: what is run, planned, and looked at."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.suite_tree import Node
from agenteval_tui.tui.presenters.test_status import outcome_of
from agenteval_tui.tui.screens.suites.tree import SuitesTree, key_of, test_key
from agenteval_tui.tui.widgets.virtual_list import VirtualList


class SuitesRuns(SuitesTree):
    """Starts runs of what is selected, marked or shown, and opens the runs that there are."""

    _mark_from = ""  # the test that was marked last: a range begins there

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the row that is selected already."""
        self.action_inspect()

    def action_run_selection(self) -> None:
        if self._wait_for_suites():
            return
        node = self._node
        marked = self._marked()
        if marked:
            paths = list(dict.fromkeys(one.suite.loaded.path for one in marked))
            self._start(paths, tuple(_test_name(one) for one in marked), count(len(marked), "test"))
        elif node is not None:
            tests = (_test_name(node),) if node.test is not None else ()
            self._start([node.suite.loaded.path], tests, node.test.id if node.test else _name(node))

    def action_run_shown(self) -> None:
        if self._wait_for_suites(self.action_run_shown) or self._tree is None:
            return
        shown = self._tree.shown_tests()
        if not shown:
            self.agenteval.say("No test is shown, so there is nothing to run.")
            return
        paths = list(dict.fromkeys(node.suite.loaded.path for node in shown))
        tests = tuple(_test_name(node) for node in shown) if self._tree.query else ()
        self._start(paths, tests, "all suites" if not self._tree.query else "what was shown")

    def action_run_failed(self) -> None:
        if self._wait_for_suites(self.action_run_failed) or self._tree is None:
            return
        failed = [
            n for n in self._all_tests() if outcome_of(n.suite.summaries.get(n.test.id if n.test else "")) in _BAD
        ]
        if not failed:
            self.agenteval.say("Nothing failed last time.")
            return
        paths = list(dict.fromkeys(node.suite.loaded.path for node in failed))
        self._start(paths, tuple(_test_name(node) for node in failed), "what failed last")

    def action_compare(self) -> None:
        """The newest execution of the selected suite or test beside its baseline."""
        from agenteval_tui.tui.screens.compare_shortcuts import compare_newest

        node = self._node
        if node is not None:
            compare_newest(self, node.suite.loaded.key, node.test.id if node.test is not None else "")

    def action_plan(self) -> None:
        """Plan a run of the selected suite or test; what is filtered away stays out."""
        from agenteval_tui.runs.plan.model import PlanOptions
        from agenteval_tui.tui.screens.plan import PlanScreen

        if self._wait_for_suites():
            return
        node, tree = self._node, self._tree
        if node is None or tree is None:
            self.agenteval.say("There is no test to run.")
            return
        loaded = node.suite.loaded
        if loaded.suite is None:
            self.agenteval.say("This suite can't be read; its problems stand beside it.", severity="warning")
            return
        chosen = [node.test] if node.test is not None else list(loaded.suite.tests)
        if node.test is None and tree.query:
            shown = {one.test.id for one in tree.shown_tests() if one.suite is node.suite and one.test is not None}
            chosen = [test for test in chosen if test.id in shown]
        tests: tuple[str, ...] = ()
        if node.test is not None or len(chosen) < len(loaded.suite.tests):
            tests = tuple(f"{loaded.key}::{test.id}" for test in chosen)
        title = node.test.id if node.test is not None else _name(node)
        sheet = PlanScreen([loaded.path], PlanOptions(tests=tests, title=title), loaded.suite, chosen)

        def then(planned: PlanOptions | None) -> None:
            if planned is not None:
                self.agenteval.start_run([loaded.path], planned)

        self.app.push_screen(sheet, then)

    def _start(self, paths: list[Path], tests: tuple[str, ...], title: str) -> None:
        from agenteval_tui.runs.plan.model import PlanOptions

        self.agenteval.start_run(paths, PlanOptions(tests=tests, title=title))

    # Looking at runs

    def action_causes(self) -> None:
        """The causes of the newest failures of the selected suite or test."""
        node = self._node
        if node is None:
            self.agenteval.show_causes()
        else:
            tests = (node.test.id,) if node.test is not None else ()
            self.agenteval.show_causes(suites=(node.suite.loaded.key,), tests=tests)

    def action_inspect(self) -> None:
        self._inspect(edit=False)

    def action_edit(self) -> None:
        self._inspect(edit=True)

    def _inspect(self, *, edit: bool) -> None:
        node = self._node
        if node is None:
            return
        if node.test is None:
            if edit:
                self.agenteval.say("Choose a test or one of its criteria to edit its config; o opens the whole file.")
            else:
                self.action_toggle_fold()
            return
        runs = self._runs.get(test_key(node))
        if runs is None:
            # Faster than the history answers: go there when it has.
            self._ask_runs(node, lambda: self._inspect_node(node, edit=edit))
            return
        self._inspect_node(node, edit=edit)

    def _inspect_node(self, node: Node, *, edit: bool) -> None:
        assert node.test is not None
        runs = self._runs.get(test_key(node), ())
        if not runs and edit:
            # Without a run there is nothing to judge a config by: the Editor knows how to live without.
            self.action_edit_test()
            return
        if not runs:
            self.agenteval.say(f"{node.test.id} was not run yet: press r to run it.")
            return
        failing = [run.id for run in runs if run.status in ("failed", "error")]
        name = node.test.criterion_names[node.criterion] if node.criterion is not None else ""
        self.agenteval.inspect((failing or [runs[0].id])[0], criterion=name, runs=[r.id for r in runs], edit=edit)

    def action_edit_test(self) -> None:
        node = self._node
        if node is None or node.test is None:
            self.agenteval.say("Choose a test to edit it as a form; o opens the whole file.")
            return
        name = node.test.criterion_names[node.criterion] if node.criterion is not None else ""
        self.agenteval.edit_test(node.suite.loaded.key, node.test.id, criterion=name)

    # Several tests

    def _marked(self) -> list[Node]:
        """The marked tests, in the order of their files."""
        marked = self._tree.marked if self._tree is not None else set()
        return [node for node in self._all_tests() if key_of(node) in marked] if marked else []

    def _meant(self) -> list[Node]:
        """The marked tests, else the selected one."""
        marked, node = self._marked(), self._node
        return marked or ([Node("test", node.suite, node.test)] if node is not None and node.test is not None else [])

    def action_mark(self) -> None:
        """The test, and the cursor goes on; a suite: all of its tests that are shown."""
        node, tree = self._node, self._tree
        if tree is None or node is None:
            return
        view = self.query_one("#tree", VirtualList)
        if node.test is None:
            own = {key_of(one) for one in tree.tests_of(node.suite)}
            tree.marked = tree.marked - own if own <= tree.marked else tree.marked | own
        else:
            tree.marked ^= {key_of(node)}
            self._mark_from = key_of(node)
            view.action_cursor_down()
        self._show_marks()

    def action_mark_range(self) -> None:
        """All tests between the one that was marked last and the cursor."""
        node, tree = self._node, self._tree
        if tree is None or node is None or node.test is None:
            return
        shown = [key_of(one) for one in tree.shown_tests()]
        here = key_of(node)
        if self._mark_from not in shown or here not in shown:
            self.agenteval.say("Mark a test with m first: M marks all from there to the cursor.")
            return
        first, last = sorted((shown.index(self._mark_from), shown.index(here)))
        tree.marked |= set(shown[first : last + 1])
        self._mark_from = here
        self._show_marks()

    def action_unmark(self) -> None:
        if self._tree is not None and self._tree.marked:
            self._tree.marked.clear()
            self._show_marks()


_BAD = ("failed", "error", "flaky")


def _name(node: Node) -> str:
    return node.suite.loaded.suite.name if node.suite.loaded.suite else node.suite.loaded.path.name


def _test_name(node: Node) -> str:
    """The node's test as an execution is told of it: other suites may have a test of the same id."""
    return f"{node.suite.loaded.key}::{node.test.id}" if node.test is not None else ""
