"""The Suites screen: what can be run, how it went, and why it fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume
from textual.geometry import Size
from textual.widgets import Input

from agenteval_tui.agents.discovery.model import Findings
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.numbers import count
from agenteval_tui.history.records import TestSummary
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.suites.watch import watch
from agenteval_tui.tui.actions import bindings, key_of, named_keys
from agenteval_tui.tui.code_watch import WatchRequest
from agenteval_tui.tui.draft_store import Drafts
from agenteval_tui.tui.presenters.suite_tree import Node, SuiteTree
from agenteval_tui.tui.presenters.tabs import BESIDE_NAME
from agenteval_tui.tui.screen_registry import ask, sheet
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.suites.controller import (
    RunRequest,
    SuitesController,
    is_running,
    newest_execution,
)
from agenteval_tui.tui.styled_text import Cell, Line, cell_len, error_state, indented
from agenteval_tui.tui.terminal.mounting import is_there
from agenteval_tui.tui.terminal.sheet import if_answered
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.titled_pane import Heading, PaneTitle
from agenteval_tui.tui.widgets.virtual_list import GUTTER, VirtualList
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.formats.foreign_file import ForeignFile
    from agenteval_tui.suites.editing import WrittenFile
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.tui.presenters.suite_detail import TestRuns
    from agenteval_tui.tui.screens.import_export_dialogs import ImportOutcome
    from agenteval_tui.tui.screens.suites.file_changes import Change
    from agenteval_tui.tui.workspace import Offer

FRAME = 4  # rows of the strip, the titles and the keys
LOW = 12
"""Rows of the terminal from which there is room for the banner above the list."""
FILTER_HINT = "filter: text  tag:smoke  outcome:failed  agent:x  suite:x  flaky:yes"
SCROLLBAR = 1  # cells beside the list, in which it is shown at every height
WIDE = 180  # columns, from which the list says more and takes more room
CHOOSE = "Choose a test, or mark several."


class SuitesScreen(FrameScreen):
    """A tree of suites, tests and criteria; beside it the selected thing in full. What both say is the controller's."""

    SCOPE = "suites"
    BINDINGS: ClassVar[list[BindingType]] = bindings("suites")

    def __init__(self) -> None:
        super().__init__()
        self.controller = SuitesController()
        self._detailed = ""  # the row whose details are shown
        self._watching = False
        self._is_unread = False  # the suites could not be read, and nobody has asked for them since

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._hint_lines, id="hint")
        with Horizontal(id="body"):
            with Vertical(id="left", classes="pane"):
                yield FilterBox(FILTER_HINT, id="filter")
                yield PaneTitle(self._list_heading, id="tree-title")
                yield VirtualList(id="tree")
            with Vertical(id="right", classes="pane"):
                yield PaneTitle(self._detail_heading, id="detail-title")
                yield LinesView(id="detail")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._fit(self.app.size)  # already for the first frame
        self._list.set_empty([(("  Loading the suites …", "dim"),)])
        self._list.on_sign = self._sign_clicked
        self._list.focus()
        # Not beside the first frame: a thread that imports and reads would take half of the processor from it.
        self.call_after_refresh(self.reload)

    def on_resize(self, event: Resize) -> None:
        self._fit(event.size)

    def _fit(self, size: Size) -> None:
        self.update_classes({"narrow": size.width < self.NARROW, "wide": size.width >= WIDE, "low": size.height < LOW})

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self.controller.tree is not None:
            self.reload()

    def kept(self) -> dict[str, Any] | None:
        return self.controller.kept(self._list.cursor_key)

    def restore(self, stored: Mapping[str, Any]) -> None:
        self.controller.restore(stored)

    @property
    def selected_test(self) -> str:
        """The key of the test with the cursor, or of its criterion; "" for none."""
        node = self._node if is_there(self) else None
        return node.test_key if node is not None else ""

    @property
    def _list(self) -> VirtualList:
        return self.query_one("#tree", VirtualList)

    @property
    def _filter_box(self) -> FilterBox:
        return self.query_one("#filter", FilterBox)

    @property
    def _node(self) -> Node | None:
        return self.controller.node_at(self._list.cursor)

    # Reading

    def reload(self) -> None:
        """Read suites and history again; the cursor stays where it is."""
        self.ask(self.agenteval.session.overview, self._show_overview, group="overview", failed=self._show_failure)

    def new_runs(self) -> None:
        """Runs have ended: only what the history says of the tests is read again."""
        tree, store = self.controller.tree, self.agenteval.session.store
        if tree is None:
            return
        overview = tree.overview

        def then(summaries: Mapping[str, Mapping[str, TestSummary]]) -> None:
            if self.controller.take_summaries(tree, summaries):
                self._show_tree()
            self._look_for_offer()
            self._look_for_running()

        self.ask(lambda: overview.read_summaries(store), then, group="figures", failed=lambda error: None, beside=True)

    def show_test(self, file: str, test: str) -> None:
        """Read the suites again and put the cursor on a test."""
        self.controller.row_to_show = f"{file}\x1f{test}" if test else file
        if self.controller.tree is not None:
            self.reload()

    def _check(self, overview: Overview) -> None:
        """Find out what is wrong with the suites that are shown: the tree does not wait for it."""
        session = self.agenteval.session
        self.ask(
            lambda: session.workspace.problems(overview),
            lambda problems: self._show_problems(overview, problems),
            group="problems",
            painted=True,
        )

    def _wait_for_suites(self, action: Callable[[], None] | None = None) -> bool:
        """Whether the suites are still being read. Then `action` is done afterwards; without one, because its target is
        not visible yet, this is reported."""
        if self._is_unread:
            # What kept them from being read may be gone.
            self._is_unread = False
            self.reload()
        if action is not None:
            return self.controller.wait(action)
        if self.controller.tree is None:
            self.agenteval.say("The suites are still loading.")
        return self.controller.tree is None

    async def _watch_files(self) -> None:
        session = self.agenteval.session
        async for changed in watch(session.paths_looked_in):
            for path in changed:
                if not session.is_own(path):
                    self.controller.file_changed(path)
            self.reload()

    def _say_drafts(self, tree: SuiteTree) -> None:
        """Edits of an earlier start that were not saved are in the Editor."""

        def then(unsaved: int) -> None:
            if unsaved:
                it = "it" if unsaved == 1 else "them"
                self.agenteval.say(
                    f"{count(unsaved, 'unsaved edit')}. Press {{go.editor}} to restore {it} in the Editor."
                )

        def count_kept() -> int:
            draft_keys = [f"{stored_draft.suite}\x1f{stored_draft.test}" for stored_draft in Drafts().listed("test")]
            test_keys = {node.test_key for node in tree.all_tests()} if draft_keys else set()
            return sum(key in test_keys for key in draft_keys)

        self.ask(count_kept, then, group="drafts", beside=True)

    # What is shown

    def _show_overview(self, overview: Overview) -> None:
        first = self.controller.tree is None
        cursor = self.controller.take_overview(overview, on_samples=self.agenteval.session.on_samples())
        if first and self.controller.filter_text:
            self._show_filter_text()
        tree = self._show_tree(cursor)
        self._check(tree.overview)
        if not self._watching:
            self._watching = True
            # The tree is painted first: to import what watches files and executions takes 30 ms.
            self.call_after_refresh(start_worker, self, self._watch_files, group="files", exclusive=False)
            for notice in self.agenteval.session.notices:
                self.agenteval.say(notice, severity="warning")
            self._say_drafts(tree)
        self.call_after_refresh(self.agenteval.count_running)
        self._look_for_agents()
        self._look_for_offer()
        self._look_for_running()
        waiting = self.controller.waiting()
        if waiting is not None:
            waiting()

    def _show_tree(self, cursor: str | None = None) -> SuiteTree:
        """The rows anew; the cursor on `cursor`, or where it is."""
        tree = self.controller.tree
        assert tree is not None
        test_key = self.controller.go_to_wanted()
        if test_key:
            self._show_filter_text()
        self._list.set_empty(self._empty_lines())
        self._list.set_source(tree, keep_key=cursor or self._list.cursor_key)
        if test_key:
            self._list.set_source(tree, keep_key=test_key)
            self._list.focus()
        self.query_one("#hint", LineBlock).retell()
        self.retitle()
        self._show_detail()
        return tree

    def _show_filter_text(self) -> None:
        """The box shows what the controller filters by, if that was not typed."""
        words, box = self.controller.filter_text, self._filter_box
        if box.value != words:
            box.fill(words)

    def _show_problems(self, of: Overview, problems: Mapping[str, tuple[Problem, ...]]) -> None:
        """The same rows, with what is wrong; nothing moves."""
        if self.controller.take_problems(of, problems):
            self._list.refresh_rows()
            self.retitle()
            self._draw_detail()
        if changed := self.controller.checked_changes():
            self.agenteval.say_changed(changed)

    def _show_failure(self, error: AgentevalError) -> None:
        """The suites or the history can't be read: say so where the list would be."""
        # What waited for the suites is not done any more.
        self.controller.waiting()
        if self.controller.tree is not None:
            self.agenteval.say_error(error)
            return
        self._is_unread = True
        self._list.set_empty(error_state(error, self.query_one("#left").size.width))

    def _empty_lines(self) -> list[Line]:
        return self.controller.empty(one_line(", ".join(str(path) for path in self.agenteval.session.paths_looked_in)))

    def _hint_lines(self, width: int) -> list[Line]:
        session = self.agenteval.session
        samples = one_line(str(session.paths_looked_in[0])) if session.on_samples() else ""
        explicit = bool(session.paths) or session.db == directories.demo_history()
        lines = self.controller.hint(width, samples=samples, keymap=self.agenteval.keymap, explicit=explicit)
        return lines[: max((self.size.height - FRAME) // 2, 1)]  # the list has at least as many rows

    def _look_for_agents(self) -> None:
        """In a folder without suites: the agents that one can be written for."""
        if not self.controller.awaits_findings:
            return

        workspace = self.agenteval.session.workspace

        def then(findings: tuple[Findings, tuple[ForeignFile, ...]]) -> None:
            self.controller.take_findings(*findings)
            self._list.set_empty(self._empty_lines())

        self.ask(
            lambda: (workspace.agent_candidates(), workspace.foreign_files()),
            then,
            group="agents found",
            failed=lambda error: None,
            painted=True,
        )

    def _look_for_offer(self) -> None:
        """After the first run: the clearest failure has the cursor, and the banner says what it is."""
        tree, session = self.controller.tree, self.agenteval.session
        if tree is None or not self.controller.awaits_offer:
            return

        def then(offer: Offer | None) -> None:
            if key := self.controller.take_offer(offer):
                self._show_tree(key)

        self.ask(
            lambda: session.workspace.clearest_failure(tree),
            then,
            group="offer",
            failed=lambda error: None,
            beside=True,
        )

    def _look_for_running(self) -> None:
        """Before the first run has ended: whoever may have started it, the banner says that there is one."""
        tree, store = self.controller.tree, self.agenteval.session.store
        if tree is None or not self.controller.awaits_runs:
            return

        def then(running: bool) -> None:
            if self.controller.take_running(running):
                self.query_one("#hint", LineBlock).retell()

        self.ask(lambda: is_running(store, tree), then, group="running tests", failed=lambda error: None, beside=True)

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading(width)

    def keys(self) -> list[tuple[str, str, str]]:
        """What can be done with what is marked, else with what the cursor is on."""
        tree, node, last = self.controller.tree, self._node, super().keys()[-1:]
        names = self.controller.key_names(node, narrow=self.has_class("narrow"))
        keys = named_keys("suites", names, self.agenteval.keymap)
        if tree is not None and node is not None and node.test is None and not tree.marked:
            keys.insert(2, ("enter", "close" if tree.is_open(node) else "open", "inspect"))
        if self.has_class("show-detail"):
            keys = [(key, "list" if do == "next_pane" else word, do) for key, word, do in keys]
        return [*keys[:7], *last]

    def _title_panes(self) -> None:
        """Update the titles of list and details, if they changed."""
        for title in self.query(PaneTitle):
            title.retell()

    def _list_heading(self) -> Heading:
        tree, name = self.controller.tree, "suites"
        if tree is None or not tree.rows:
            return name, ""
        beside = cell_len(name) + BESIDE_NAME - GUTTER - SCROLLBAR
        return name, lambda room: tree.heading(room + beside)

    def _detail_heading(self) -> tuple[str, str]:
        if self.controller.tree is None:
            return "details", ""
        # As in `_draw_detail`.
        from agenteval_tui.tui.presenters.suite_detail import title_of

        return title_of(self._node)

    # The selected row

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The cursor moved: show what it is on."""
        self.show_soon(self._show_detail)

    def _show_detail(self) -> None:
        node = self._node
        self._draw_detail()
        if node is not None and node.test is not None and not self.controller.knows_runs(node):
            self._ask_runs(node, lambda: None)

    def _ask_runs(self, node: Node, then: Callable[[], None]) -> None:
        assert node.test is not None
        key, test = node.suite.loaded.key, node.test.id
        session = self.agenteval.session

        def got(runs: TestRuns) -> None:
            self.controller.take_runs(node, runs)
            current = self._node
            # The cursor may be on another test by now.
            if current is not None and current.test_key == node.test_key:
                self._draw_detail()
            then()

        self.ask(lambda: session.workspace.runs_of_test(key, test), got, group="runs")

    def _draw_detail(self) -> None:
        # 100 ms with what it says of runs: the tree has loaded most of that when there is something to show.
        from agenteval_tui.tui.presenters.suite_detail import detail

        self.rekey()
        self._title_panes()
        node, at = self._node, now_ms()
        runs = self.controller.runs(node)
        before, self._detailed = self._detailed, node.key if node is not None else ""
        run = key_of("suites.run", self.agenteval.keymap)
        self.query_one("#detail", LinesView).show(
            lambda width: indented(detail(node, runs, at, width - 1, run)),
            keep_place=before == self._detailed,
        )

    # Folding, order, panes

    def _sign_clicked(self, index: int, column: int) -> bool:
        """A click on the sign before a name opens or closes it, wherever the cursor is."""
        node = self.controller.node_at(index)
        sign = {"suite": 2, "test": 4}.get(node.kind) if node is not None else None
        if sign is None or abs(column - sign) > 1:
            return False
        self._list.cursor = index
        self.action_toggle_fold()
        return True

    def action_toggle_fold(self) -> None:
        self._fold(lambda tree, node: tree.toggle(node))

    def action_open_fold(self) -> None:
        """Open the row; where it is open go to the first row in it, as closing goes to the parent."""
        node, tree = self._node, self.controller.tree
        if node is not None and tree is not None and node.kind != "criterion" and tree.is_open(node):
            self._list.action_cursor_down()
        else:
            self._fold(lambda tree, node: tree.set_open(node, True))

    def action_close_fold(self) -> None:
        node, tree = self._node, self.controller.tree
        if node is None or tree is None:
            return
        if node.kind != "criterion" and tree.is_open(node):
            self._fold(lambda t, n: t.set_open(n, False))
        elif tree.parent_key(node):
            self._list.move_to_key(tree.parent_key(node))

    def _fold(self, change: Callable[[SuiteTree, Node], None]) -> None:
        node, tree = self._node, self.controller.tree
        if node is None or tree is None:
            return
        change(tree, node)
        self._list.set_source(tree, keep_key=node.key)
        self.rekey()

    def action_sort(self) -> None:
        """Worst first, or as in the files."""
        tree = self.controller.tree
        if tree is None:
            return
        keep = self._list.cursor_key
        tree.worst_first = not tree.worst_first
        tree.arrange()
        self._list.set_source(tree, keep_key=keep)
        if tree.worst_first:
            self._list.action_first()
        self.retitle()

    def action_next_pane(self) -> None:
        detail = self.query_one("#detail", LinesView)
        if self.has_class("narrow"):
            details = not self.has_class("show-detail")
            self.set_class(details, "show-detail")
        else:
            details = self._list.has_focus
        (detail if details else self._list).focus()  # at once, as of the filter: keys may follow in one breath
        self.rekey()

    def step_back(self) -> bool:
        if self.has_class("show-detail"):
            self.remove_class("show-detail")
            self._list.focus()
            self.rekey()
        elif self._filter_box.close():
            self._list.focus()
        else:
            self.action_unmark()
        return True

    # The filter

    def action_filter(self) -> None:
        self.remove_class("show-detail")
        self.rekey()
        if not self._filter_box.display:
            self.controller.open_filter()
        self._filter_box.open()

    def leave_text(self) -> None:
        self._list.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters. While the cursor's row is hidden, the cursor is on the first test found; when the row
        is back, the cursor returns to it unless it was moved meanwhile."""
        view = self._list
        keep = self.controller.filter(event.value, view.cursor_key)
        tree = self.controller.tree
        if tree is None:
            return
        self.query_one("#hint", LineBlock).retell()
        view.set_empty(self._empty_lines())
        view.set_source(tree, keep_key=keep)
        self.controller.set_filter_cursor(view.cursor_key)
        self.retitle()
        self._show_detail()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list, to the test that was found."""
        self._list.focus()
        self.controller.choose(self._node)
        if not event.value:
            event.input.display = False

    # Marks

    def action_mark(self) -> None:
        """The test, and the cursor moves on; a suite: all of its tests that are shown."""
        node = self._node
        if node is None:
            return
        self.controller.mark(node)
        if node.test is not None:
            self._list.action_cursor_down()
        self._show_marks()

    def action_mark_range(self) -> None:
        """All tests between the one that was marked last and the cursor."""
        node = self._node
        if node is None or node.test is None:
            return
        if why_not := self.controller.mark_range(node):
            self.agenteval.say(why_not)
        else:
            self._show_marks()

    def action_unmark(self) -> None:
        if self.controller.unmark():
            self._show_marks()

    def _show_marks(self) -> None:
        """Which tests are marked, how many, and what can be done with them."""
        self._list.refresh_rows()
        self.retitle()
        self.rekey()

    # Runs

    def _run(self, request: RunRequest | str | None) -> None:
        if isinstance(request, str):
            self.agenteval.say(request)
        elif request is not None:
            self.agenteval.start_run(request.paths, _options(request))

    def action_run_selection(self) -> None:
        if not self._wait_for_suites():
            self._run(self.controller.run_selection(self._node))

    def action_run_shown(self) -> None:
        if not self._wait_for_suites(self.action_run_shown):
            self._run(self.controller.run_shown())

    def action_run_failed(self) -> None:
        if not self._wait_for_suites(self.action_run_failed):
            self._run(self.controller.run_failed())

    def action_watch_code(self) -> None:
        """Run the recorded runs of the selection again after each save of its agents' code."""
        if self._wait_for_suites():
            return
        request = self.controller.run_selection(self._node)
        if request is None:
            self.agenteval.say("There is no test to watch.")
        else:
            self.agenteval.watch_code(WatchRequest(tuple(request.paths), request.tests, request.title))

    def action_plan(self) -> None:
        """Plan a run of the selected suite or test; what is filtered away stays out."""
        if self._wait_for_suites():
            return
        node = self._node
        request = self.controller.plan(node)
        if isinstance(request, str):
            self.agenteval.say(request, severity="information" if node is None else "warning")
            return
        run = request.run

        plan = sheet("plan", run.paths, _options(run), request.suite, request.chosen)
        self.app.push_screen(plan, if_answered(partial(self.agenteval.start_run, run.paths)))

    def action_compare(self) -> None:
        """The newest execution of the selected suite or test beside its baseline."""
        node = self._node
        if node is None:
            return
        store, key, test_id = self.agenteval.session.store, node.suite.loaded.key, node.test.id if node.test else ""
        test = (key, test_id) if test_id else None
        self.ask(
            lambda: newest_execution(store, key, test_id),
            lambda execution: self.agenteval.compare("", execution, test=test),
            group="compare",
        )

    def action_causes(self) -> None:
        """The causes of the newest failures of the selected suite or test."""
        node = self._node
        if node is None:
            self.agenteval.show_causes()
        else:
            tests = (node.test.id,) if node.test is not None else ()
            self.agenteval.show_causes(suites=(node.suite.loaded.key,), tests=tests)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter or a click on the row that is selected already."""
        self.action_inspect()

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
                self.agenteval.say("Choose a test or criterion to edit, or press {suites.editor} to open the file.")
            else:
                self.action_toggle_fold()
        elif self.controller.knows_runs(node):
            self._open_run(node, edit=edit)
        else:
            # Faster than the history answers: go there when it has.
            self._ask_runs(node, lambda: self._open_run(node, edit=edit))

    def _open_run(self, node: Node, *, edit: bool) -> None:
        assert node.test is not None
        if self.controller.end_offer():
            self.query_one("#hint", LineBlock).retell()
        request = self.controller.run_to_open(node)
        if request is not None:
            self.agenteval.inspect(request.run, criterion=request.criterion, runs=request.runs, edit=edit)
        else:
            # Without a run there is nothing to judge a config by: the Editor knows how to live without. There a
            # criterion is looked at first: in a field the next key would be typed.
            name = node.criterion_name or next(iter(node.test.criterion_names), "")
            self.agenteval.edit_test(node.suite.loaded.key, node.test.id, criterion=name)

    # Files

    def action_edit_test(self) -> None:
        node = self._node
        if node is None or node.test is None:
            self.agenteval.say("Choose a test to edit as a form, or press {suites.editor} to open the whole file.")
            return
        self.agenteval.edit_test(node.suite.loaded.key, node.test.id, criterion=node.criterion_name)

    def action_new_test(self) -> None:
        if self._wait_for_suites():
            return
        node = self._node
        if node is not None:
            self.agenteval.new_test(node.suite.loaded)
        elif self.controller.tree is not None and self.controller.tree.query:
            self.agenteval.say("The filter hides every suite. Press {everywhere.back} to clear it, then make the test.")
        else:
            self.agenteval.new_suite()

    def action_samples(self) -> None:
        """The sample suites, in a folder that has none."""
        session = self.agenteval.session
        if self.controller.tree is None or self.controller.tree.overview.suites:
            self.agenteval.say("This folder has suites. `agenteval demo` opens the samples.")
            return
        session.wants_samples = True
        self.reload()

    def action_import_file(self) -> None:
        """Bring in recordings of another tool, and show them."""

        def done(brought: ImportOutcome | str | None) -> None:
            if brought is not None and not isinstance(brought, str):
                self.agenteval.show_execution(brought.execution)

        self.app.push_screen(sheet("import"), done)

    def action_duplicate(self) -> None:
        session = self.agenteval.session
        nodes = self.controller.selected_tests(self._node)
        if nodes:
            self._change("copied", nodes, lambda loaded, tests: session.workspace.duplicate_tests(loaded, tests))
        else:
            self.agenteval.say(CHOOSE)

    def action_delete(self) -> None:
        nodes, session = self.controller.selected_tests(self._node), self.agenteval.session
        if not nodes:
            self.agenteval.say(CHOOSE)
            return

        def answered(answer: str) -> None:
            self._change("deleted", nodes, lambda loaded, tests: session.workspace.delete_tests(loaded, tests))

        files = list(dict.fromkeys(node.suite.loaded.path.name for node in nodes))
        ids = [node.test.id for node in nodes if node.test is not None]
        self.app.push_screen(sheet("delete_tests", ids, ", ".join(files)), if_answered(answered))

    def action_tag(self) -> None:
        nodes, session = self.controller.selected_tests(self._node), self.agenteval.session
        if not nodes:
            self.agenteval.say(CHOOSE)
            return

        def answered(answer: tuple[list[str], list[str]]) -> None:
            add, remove = answer
            self._change("tagged", nodes, lambda loaded, tests: session.workspace.tag_tests(loaded, tests, add, remove))

        tags = sorted({tag for node in nodes if node.test is not None for tag in node.test.tags})
        self.app.push_screen(sheet("tags", len(nodes), tags), if_answered(answered))

    def action_move(self, by: int) -> None:
        session, node = self.agenteval.session, self.controller.movable(self._node)
        if isinstance(node, str):
            self.agenteval.say(node)
        elif node.test is not None and node.is_last(by):
            self.agenteval.say(f"{node.test.id} is the {'last' if by > 0 else 'first'} test of its file.")
        else:
            self._change("moved", [node], lambda loaded, tests: session.workspace.move_test(loaded, tests[0], by))

    def _change(self, what: str, nodes: Sequence[Node], change: Change) -> None:
        """Change the files of these tests (each file once), and read the suites again."""
        doing = self.controller.change(what, nodes)

        def done(written: list[LoadedSuite]) -> None:
            if message := self.controller.remember(doing, len(written)):
                self.agenteval.say(f"{message}. Press {key_of('suites.undo', self.agenteval.keymap)} to undo.")
            self.reload()

        # 90 ms with what reads suites, as above.
        from agenteval_tui.tui.screens.suites.file_changes import change_files

        change_files(self, doing.files, change, doing.title, done, written_files=doing.undo)

    def action_undo(self) -> None:
        """Take the last change of files back."""
        if not self.controller.can_undo:
            self.agenteval.say("There is nothing to undo here.")
            return
        if self.still_writes("change"):
            return
        description, files = self.controller.last_change()

        def done() -> None:
            self.agenteval.say(f"Undone: {description}.")
            self.reload()

        def kept(remaining: list[WrittenFile], changed_since: bool) -> None:
            # A file that somebody has changed since is not in the way of the changes before.
            self.controller.keep_change(description, remaining, last=not changed_since)
            self.reload()

        # As in `_change`.
        from agenteval_tui.tui.screens.suites.file_changes import undo_files

        undo_files(self, files, done, kept)

    def action_quarantine(self) -> None:
        node = self._node
        if node is None or node.test is None:
            self.agenteval.say("Choose a test, or one of its criteria.")
            return
        ask("quarantine", self, self.reload, node.suite, node.test, node.criterion)

    def action_open_editor(self) -> None:
        node = self._node
        if node is None:
            return
        line = node.suite.loaded.line_of(node.test.id if node.test else None, node.criterion)
        if node.test is None:
            # A user who opens a file with problems wants to fix them.
            line = min((problem.line for problem in node.suite.own_errors), default=line)
        self.agenteval.open_editor(node.suite.loaded.path, line)
        # The app has waited for the editor: the file may be another now.
        self.reload()


def _options(request: RunRequest) -> PlanOptions:
    return PlanOptions(tests=request.tests, title=request.title)
