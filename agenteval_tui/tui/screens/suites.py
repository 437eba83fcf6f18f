"""The Suites screen: what can be run, how it went, and why it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume
from textual.widgets import Input

from agenteval_tui.text.display import one_line
from agenteval_tui.text.identity import now_ms
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.lines import Cell, Line
from agenteval_tui.tui.presenters.figures import count
from agenteval_tui.tui.presenters.paragraphs import error_lines, paragraph
from agenteval_tui.tui.presenters.suite_tree import Node, Query, SuiteTree, outcome_of
from agenteval_tui.tui.screens.frame import FrameScreen
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.history.rows import RunRow
    from agenteval_tui.runs.plan import PlanOptions
    from agenteval_tui.suites.load import LoadedSuite

LAST_RUNS = 20


class SuitesScreen(FrameScreen):
    """A tree of suites, tests and criteria; beside it the selected thing in full."""

    SCOPE = "suites"
    CSS_PATH = "suites.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("suites"))

    def __init__(self) -> None:
        super().__init__()
        self._tree: SuiteTree | None = None
        self._runs: dict[str, Sequence[RunRow]] = {}
        self._watching = False
        self._wanted = ""  # the row to go to when the suites have been read

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LineBlock(self._hint_lines, id="hint")
                yield Input(
                    placeholder="filter: text  tag:smoke  outcome:failed  agent:x", id="filter", classes="filter"
                )
                yield VirtualList(id="tree")
            yield LinesView(id="detail")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.query_one("#filter", Input).display = False
        tree = self.query_one("#tree", VirtualList)
        tree.set_empty([(("  Loading the suites …", "dim"),)])
        tree.focus()
        self.reload()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._tree is not None:
            self.reload()

    # What is shown

    def reload(self) -> None:
        """Read suites and history again; the cursor stays where it is."""
        self.ask(self.agenteval.session.overview, self._show_overview, group="overview", failed=self._show_failure)

    def _show_failure(self, error: AgentevalError) -> None:
        """The suites or the history can't be read: say so where the list would be."""
        if self._tree is not None:
            self.agenteval.say_error(error)
            return
        lines = error_lines(error, max(self.query_one("#left").size.width - 4, 20))
        self.query_one("#tree", VirtualList).set_empty([(), *(((" ", ""), *line) for line in lines)])

    def _show_overview(self, overview: Overview) -> None:
        old = self._tree
        tree = SuiteTree(overview, folded=old.folded if old else (), opened=old.opened if old else ())
        if old is not None and old.query:
            tree.query = old.query
            tree.arrange()
        self._tree = tree
        if old is not None:
            tree.marked = {_key_of(node) for node in self._all_tests()} & old.marked
        self._runs.clear()
        view = self.query_one("#tree", VirtualList)
        view.set_empty(self._empty())
        view.set_source(tree, keep_key=view.cursor_key)
        if self._wanted:
            wanted, self._wanted = self._wanted, ""
            self._go_to(tree, wanted)
        self.query_one("#hint", LineBlock).show(self._hint_lines)
        self.retitle()
        self._show_detail()
        if not self._watching:
            self._watching = True
            self.run_worker(self._watch_files(), group="files", exit_on_error=False)
            for notice in self.agenteval.session.notices:
                self.agenteval.say(notice, severity="warning")
            self._say_drafts()
        self.agenteval.count_running()

    def _say_drafts(self) -> None:
        """Edits of an earlier start that were not saved are in the Editor."""
        from agenteval_tui.tui.drafts import Drafts

        def then(kept: int) -> None:
            if kept:
                was = "edit was" if kept == 1 else "edits were"
                self.agenteval.say(f"{kept} {was} not saved: 2 goes to the Editor, where it can be restored.")

        known = {_key_of(node) for node in self._all_tests()}
        self.ask(
            lambda: sum(f"{one.suite}\x1f{one.test}" in known for one in Drafts().listed("test")), then, group="drafts"
        )

    def _go_to(self, tree: SuiteTree, key: str) -> None:
        """The cursor to a test, whatever was folded or filtered."""
        view = self.query_one("#tree", VirtualList)
        tree.folded.discard(key.partition("\x1f")[0])
        if tree.query:
            box = self.query_one("#filter", Input)
            with box.prevent(Input.Changed):
                box.value = ""
            box.display = False
            tree.query = Query()
        tree.arrange()
        view.set_source(tree, keep_key=key)
        view.focus()

    async def _watch_files(self) -> None:
        from agenteval_tui.suites.watch import watch

        async for _changed in watch(self.agenteval.session.looked_in):
            self.reload()

    def _empty(self) -> list[Line]:
        if self._tree is not None and self._tree.query:
            return [(), (("  Nothing matches the filter.", ""),), (("  esc clears it.", "dim"),)]
        places = one_line(", ".join(str(path) for path in self.agenteval.session.looked_in))
        return [
            (),
            (("  No suites in ", ""), (places, "bold")),
            (),
            (("  A suite is a file named *.suite.yaml. Start with a sample:", "dim"),),
            (("  agenteval demo", "bold"),),
        ]

    def _hint_lines(self, width: int) -> list[Line]:
        """The first start says which key to press."""
        tree = self._tree
        if tree is None or not tree.overview.tests or any(suite.summaries for suite in tree.overview.suites):
            return []
        text = "Nothing was run yet. R runs every test, r the selected one."
        if self.agenteval.session.on_samples():
            text += (
                " These are the sample suites; their agent is a rule-based program that needs no network and no key."
            )
        return [*(((" ", ""), *line) for line in paragraph(text, width - 2, "accent")), ()]

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        if self._tree is None:
            return (), ()
        overview = self._tree.overview
        facts = [count(len(overview.suites), "suite"), count(overview.tests, "test")]
        if width >= 100:
            facts.append(count(overview.criteria, "criterion"))
        left: tuple[Cell, ...] = ()
        if self._tree.query:
            left = ((f"{len(self._tree.shown_tests())} shown", "dim"),)
        if self._tree.marked:
            left = (*left, (("  " if left else "") + f"{len(self._tree.marked)} marked", "accent"))
        return left, ((" · ".join(facts), "dim"),)

    @property
    def _node(self) -> Node | None:
        view = self.query_one("#tree", VirtualList)
        rows = self._tree.rows if self._tree else []
        return rows[view.cursor] if 0 <= view.cursor < len(rows) else None

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The cursor moved: show what it stands on."""
        self._show_detail()

    def _show_detail(self) -> None:
        node = self._node
        runs = self._runs.get(_test_key(node), ()) if node else ()
        self._draw_detail(node, runs)
        if node is not None and node.test is not None and _test_key(node) not in self._runs:
            self._ask_runs(node, lambda: None)

    def _ask_runs(self, node: Node, then: Callable[[], None]) -> None:
        assert node.test is not None
        key, test = node.suite.loaded.key, node.test.id
        session = self.agenteval.session

        def got(rows: Sequence[RunRow]) -> None:
            self._got_runs(node, rows)
            then()

        self.ask(lambda: session.store.runs_of_test(key, test, LAST_RUNS), got, group="runs")

    def _got_runs(self, node: Node, rows: Sequence[RunRow]) -> None:
        self._runs[_test_key(node)] = rows
        current = self._node
        if current is not None and _test_key(current) == _test_key(node):
            self._draw_detail(current, rows)

    def _draw_detail(self, node: Node | None, runs: Sequence[RunRow]) -> None:
        from agenteval_tui.tui.presenters.suite_detail import detail

        at = now_ms()
        view = self.query_one("#detail", LinesView)
        view.show(lambda width: [((" ", ""), *line) for line in detail(node, runs, at, width - 1)], keep_place=False)

    # What a person does

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the row that is selected already."""
        self.action_inspect()

    def action_toggle_fold(self) -> None:
        self._fold(lambda tree, node: tree.toggle(node))

    def action_open_fold(self) -> None:
        self._fold(lambda tree, node: tree.set_open(node, True))

    def action_close_fold(self) -> None:
        node, tree = self._node, self._tree
        if node is None or tree is None:
            return
        if node.kind != "criterion" and tree.is_open(node):
            self._fold(lambda t, n: t.set_open(n, False))
        elif tree.parent_key(node):
            self.query_one("#tree", VirtualList).move_to_key(tree.parent_key(node))

    def _fold(self, change: object) -> None:
        node, tree = self._node, self._tree
        if node is None or tree is None or not callable(change):
            return
        change(tree, node)
        self.query_one("#tree", VirtualList).set_source(tree, keep_key=node.key)

    def action_next_pane(self) -> None:
        tree = self.query_one("#tree", VirtualList)
        detail = self.query_one("#detail", LinesView)
        (detail if tree.has_focus else tree).focus()
        if self.has_class("narrow"):
            self.set_class(detail.has_focus or not self.has_class("show-detail"), "show-detail")

    def step_back(self) -> bool:
        box = self.query_one("#filter", Input)
        if self.has_class("show-detail"):
            self.remove_class("show-detail")
            self.query_one("#tree", VirtualList).focus()
            return True
        if box.display:
            box.value = ""
            box.display = False
            self.query_one("#tree", VirtualList).focus()
            return True
        return True

    def action_filter(self) -> None:
        box = self.query_one("#filter", Input)
        box.display = True
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters."""
        if self._tree is None:
            return
        view = self.query_one("#tree", VirtualList)
        # Before the rows change: the cursor may be below the last of the new ones.
        keep = view.cursor_key
        self._tree.query = Query.parse(event.value)
        self._tree.arrange()
        view.set_empty(self._empty())
        view.set_source(self._tree, keep_key=keep)
        self.retitle()
        self._show_detail()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list."""
        self.query_one("#tree", VirtualList).focus()
        if not event.value:
            event.input.display = False

    def action_run_selection(self) -> None:
        node = self._node
        marked = self._marked()
        if marked:
            paths = list(dict.fromkeys(one.suite.loaded.path for one in marked))
            self._start(paths, tuple(_test_name(one) for one in marked), count(len(marked), "test"))
        elif node is not None:
            tests = (_test_name(node),) if node.test is not None else ()
            self._start([node.suite.loaded.path], tests, node.test.id if node.test else _name(node))

    def action_run_shown(self) -> None:
        if self._tree is None:
            return
        shown = self._tree.shown_tests()
        if not shown:
            self.agenteval.say("No test is shown, so there is nothing to run.")
            return
        paths = list(dict.fromkeys(node.suite.loaded.path for node in shown))
        tests = tuple(_test_name(node) for node in shown) if self._tree.query else ()
        self._start(paths, tests, "all suites" if not self._tree.query else "what was shown")

    def action_run_failed(self) -> None:
        if self._tree is None:
            return
        failed = [
            n for n in self._all_tests() if outcome_of(n.suite.summaries.get(n.test.id if n.test else "")) in _BAD
        ]
        if not failed:
            self.agenteval.say("Nothing failed last time.")
            return
        paths = list(dict.fromkeys(node.suite.loaded.path for node in failed))
        self._start(paths, tuple(_test_name(node) for node in failed), "what failed last")

    def _all_tests(self) -> list[Node]:
        assert self._tree is not None
        return [
            Node("test", suite, test)
            for suite in self._tree.overview.suites
            for test in (suite.loaded.suite.tests if suite.loaded.suite else [])
        ]

    def action_plan(self) -> None:
        """Plan a run of the selected suite or test; what is filtered away stays out."""
        from agenteval_tui.runs.plan import PlanOptions
        from agenteval_tui.tui.screens.plan import PlanScreen

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

    def show_test(self, file: str, test: str) -> None:
        """Read the suites again and put the cursor on a test."""
        self._wanted = f"{file}\x1f{test}"
        if self._tree is not None:
            self.reload()

    def _start(self, paths: list[Path], tests: tuple[str, ...], title: str) -> None:
        from agenteval_tui.runs.plan import PlanOptions

        self.agenteval.start_run(paths, PlanOptions(tests=tests, title=title))

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
        runs = self._runs.get(_test_key(node))
        if runs is None:
            # Faster than the history answers: go there when it has.
            self._ask_runs(node, lambda: self._inspect_node(node, edit=edit))
            return
        self._inspect_node(node, edit=edit)

    def _inspect_node(self, node: Node, *, edit: bool) -> None:
        assert node.test is not None
        runs = self._runs.get(_test_key(node), ())
        if not runs and edit:
            # Without a run there is nothing to judge a config by: the Editor knows how to live without.
            self.action_edit_test()
            return
        if not runs:
            self.agenteval.say(f"{node.test.id} was not run yet: press r to run it.")
            return
        failing = [run.id for run in runs if run.status in ("failed", "error")]
        name = node.test.criteria[node.criterion].name if node.criterion is not None else ""
        self.agenteval.inspect((failing or [runs[0].id])[0], criterion=name, runs=[r.id for r in runs], edit=edit)

    # Changing the suites' files

    def action_edit_test(self) -> None:
        node = self._node
        if node is None or node.test is None:
            self.agenteval.say("Choose a test to edit it as a form; o opens the whole file.")
            return
        name = node.test.criteria[node.criterion].name if node.criterion is not None else ""
        self.agenteval.edit_test(node.suite.loaded.key, node.test.id, criterion=name)

    def action_new_test(self) -> None:
        node = self._node
        if node is None:
            self.agenteval.say("There is no suite to write a test to: `agenteval init` makes one.")
            return
        self.agenteval.new_test(node.suite.loaded)

    def _marked(self) -> list[Node]:
        """The marked tests, in the order of their files."""
        marked = self._tree.marked if self._tree is not None else set()
        return [node for node in self._all_tests() if _key_of(node) in marked] if marked else []

    def _meant(self) -> list[Node]:
        """The marked tests, else the selected one."""
        marked, node = self._marked(), self._node
        return marked or ([Node("test", node.suite, node.test)] if node is not None and node.test is not None else [])

    def action_mark(self) -> None:
        node, tree = self._node, self._tree
        if tree is None or node is None or node.test is None:
            self.agenteval.say("Tests can be marked.")
            return
        tree.marked ^= {_key_of(node)}
        view = self.query_one("#tree", VirtualList)
        view.refresh_rows()
        view.action_cursor_down()
        self.retitle()

    def action_unmark(self) -> None:
        if self._tree is not None and self._tree.marked:
            self._tree.marked.clear()
            self.query_one("#tree", VirtualList).refresh_rows()
            self.retitle()

    def action_duplicate(self) -> None:
        session = self.agenteval.session
        self._change("copied", lambda loaded, tests: session.duplicate_tests(loaded, tests))

    def action_delete(self) -> None:
        from agenteval_tui.tui.screens.editor_questions import delete_question

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

        def work() -> list[str]:
            return [change(loaded, tests).path.name for loaded, tests in by_file.values()]

        def done(files: list[str]) -> None:
            who = nodes[0].test.id if len(nodes) == 1 and nodes[0].test is not None else count(len(nodes), "test")
            if what != "moved":
                self.agenteval.say(f"{who} {what} in {', '.join(files)}.")
            self.reload()

        def failed(error: AgentevalError) -> None:
            # Another program wrote the file: what it says now is shown, then it can be tried again.
            self.agenteval.say_error(error)
            self.reload()

        self.ask(work, done, group="change", failed=failed)

    def action_open_editor(self) -> None:
        node = self._node
        if node is None:
            return
        line = node.suite.loaded.line_of(node.test.id if node.test else None, node.criterion)
        self.agenteval.open_editor(node.suite.loaded.path, line)
        self.reload()


_BAD = ("failed", "error", "flaky")


def _name(node: Node) -> str:
    return node.suite.loaded.suite.name if node.suite.loaded.suite else node.suite.loaded.path.name


def _test_name(node: Node) -> str:
    """The node's test as an execution is told of it: other suites may have a test of the same id."""
    return f"{node.suite.loaded.key}::{node.test.id}" if node.test is not None else ""


def _key_of(node: Node) -> str:
    """What the tree calls the node's test."""
    return Node("test", node.suite, node.test).key


def _test_key(node: Node | None) -> str:
    return "" if node is None or node.test is None else f"{node.suite.loaded.key}\x1f{node.test.id}"
