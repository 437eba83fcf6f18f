"""The Suites screen's tree and its filter, and what stands beside it of the selected row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.events import Resize, ScreenResume
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.tui.actions import named_keys
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.suite_query import Query
from agenteval_tui.tui.presenters.suite_tree import PULSE_CELLS, Node, SuiteTree
from agenteval_tui.tui.presenters.text_layout import error_lines, paragraph
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.state import text, texts
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.core.errors import Problem
    from agenteval_tui.history.records import RunRow, TestSummary

FILTER_HINT = "filter: text  tag:smoke  outcome:failed  agent:x  suite:x  flaky:yes"
LAST_RUNS = 20
MOST_KEPT = 500  # folds that are kept for the next start


class SuitesTree(FrameScreen):
    """A tree of suites, tests and criteria; beside it the selected thing in full."""

    SCOPE = "suites"

    def __init__(self) -> None:
        super().__init__()
        self._tree: SuiteTree | None = None
        self._runs: dict[str, Sequence[RunRow]] = {}
        self._runs_before: dict[str, Sequence[RunRow]] = {}  # shown until they have been read again
        self._detailed = ""  # the row whose details are shown
        self._watching = False
        self._changed: set[Path] = set()  # files that another program wrote, until they have been read
        self._read: set[Path] = set()  # those that have been, until they have been checked
        self._wanted = ""  # the row to go to when the suites have been read
        self._restored: Mapping[str, Any] = {}  # what the last start kept, until they have been
        self._waiting: Callable[[], None] | None = None  # the key that was pressed before they had been
        self._chosen: str | None = None  # the row that was chosen last by a person: a filter can hide it for a while
        self._landed: str | None = None  # the row that the filter's last letter put the cursor on

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield LineBlock(self._hint_lines, id="hint")
                yield Input(
                    placeholder=FILTER_HINT,
                    id="filter",
                    classes="filter",
                )
                yield VirtualList(cursor_width=-PULSE_CELLS, id="tree")
            yield LinesView(id="detail")
        yield self.key_bar()

    def on_mount(self) -> None:
        self.set_class(self.app.size.width < self.NARROW, "narrow")  # already for the first frame
        self.query_one("#filter", Input).display = False
        tree = self.query_one("#tree", VirtualList)
        tree.set_empty([(("  Loading the suites …", "dim"),)])
        tree.on_sign = self._fold_clicked
        tree.focus()
        # Not beside the first frame: a thread that imports and reads would take half of the processor from it.
        self.call_after_refresh(self.reload)

    def kept(self) -> dict[str, Any] | None:
        tree = self._tree
        if tree is None:
            return None
        return {
            "filter": self.query_one("#filter", Input).value,
            "folded": sorted(tree.folded)[:MOST_KEPT],
            "opened": sorted(tree.opened)[:MOST_KEPT],
            "worst_first": "yes" if tree.worst_first else "",
            "cursor": self.query_one("#tree", VirtualList).cursor_key or "",
        }

    def restore(self, kept: Mapping[str, Any]) -> None:
        self._restored = kept

    def _take_restored(self, overview: Overview) -> SuiteTree:
        """The first tree: folded, filtered and with the cursor as the last start left it."""
        kept, self._restored = self._restored, {}
        tree = SuiteTree(overview, folded=texts(kept, "folded"), opened=texts(kept, "opened"))
        if text(kept, "worst_first"):
            tree.worst_first = True
            tree.arrange()
        words = text(kept, "filter")
        if words:
            box = self.query_one("#filter", Input)
            with box.prevent(Input.Changed):
                box.value = words
            box.display = True
            tree.query = Query.parse(words)
            tree.arrange()
        cursor = text(kept, "cursor")
        if not self._wanted and any(row.key == cursor for row in tree.rows):
            self.query_one("#tree", VirtualList).set_source(tree, keep_key=cursor)
        return tree

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")

    def on_screen_resume(self, event: ScreenResume) -> None:
        if self._tree is not None:
            self.reload()

    # What is shown

    def reload(self) -> None:
        """Read suites and history again; the cursor stays where it is."""
        self.ask(self.agenteval.session.overview, self._show_overview, group="overview", failed=self._show_failure)

    def new_runs(self) -> None:
        """Runs have ended: only what the history says of the tests is read again."""
        from agenteval_tui.analysis.overview import read_summaries, with_summaries

        tree, store = self._tree, self.agenteval.session.store
        if tree is None:
            return
        seen = tree.overview

        def then(found: Mapping[str, Mapping[str, TestSummary]]) -> None:
            # What was read meanwhile is as new.
            if self._tree is tree and (overview := with_summaries(tree.overview, found)) != tree.overview:
                self._show_tree(overview)

        self.ask(lambda: read_summaries(seen, store), then, group="figures", failed=lambda error: None)

    def _check(self) -> None:
        """Find out what is wrong with the suites that are shown: the tree does not wait for it."""
        assert self._tree is not None
        seen, session = self._tree.overview, self.agenteval.session
        self.ask(
            lambda: session.problems(seen),
            lambda found: self._show_problems(seen, found),
            group="problems",
            painted=True,
        )

    def _show_problems(self, of: Overview, found: Mapping[str, tuple[Problem, ...]]) -> None:
        """The same rows, with what is wrong; nothing moves."""
        from agenteval_tui.analysis.overview import with_problems

        tree = self._tree
        if tree is None:
            return
        overview = with_problems(tree.overview, of, found)
        if overview != tree.overview:
            tree.update(overview)
            self.query_one("#tree", VirtualList).refresh_rows()
            self.retitle()
            node = self._node
            key = test_key(node)
            self._draw_detail(node, self._runs.get(key, self._runs_before.get(key, ())))
        self._say_changed(overview)

    def _wait_for_suites(self, action: Callable[[], None] | None = None) -> bool:
        """Are the suites still being read? Then `action` is done when they have been; without one, because nobody can
        see yet what it would be done with, say so."""
        if self._tree is None and action is None:
            self.agenteval.say("The suites are still being read.")
        elif self._tree is None:
            self._waiting = action
        return self._tree is None

    def _show_failure(self, error: AgentevalError) -> None:
        """The suites or the history can't be read: say so where the list would be."""
        self._waiting = None
        if self._tree is not None:
            self.agenteval.say_error(error)
            return
        lines = error_lines(error, max(self.query_one("#left").size.width - 4, 20))
        self.query_one("#tree", VirtualList).set_empty([(), *(((" ", ""), *line) for line in lines)])

    def _show_overview(self, overview: Overview) -> None:
        from agenteval_tui.analysis.overview import with_known_problems

        self._show_tree(overview if self._tree is None else with_known_problems(overview, self._tree.overview))
        self._read |= self._changed
        self._changed = set()
        self._check()
        if not self._watching:
            self._watching = True
            start_worker(self, self._watch_files, group="files", exclusive=False)
            for notice in self.agenteval.session.notices:
                self.agenteval.say(notice, severity="warning")
            self._say_drafts()
        self.agenteval.count_running()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting()

    def _show_tree(self, overview: Overview) -> None:
        old = self._tree
        if old is None:
            tree = self._take_restored(overview)
        else:
            tree = SuiteTree(overview, folded=old.folded, opened=old.opened)
            tree.query, tree.worst_first = old.query, old.worst_first
            tree.arrange()
        self._tree = tree
        if old is not None:
            tree.marked = {key_of(node) for node in self._all_tests()} & old.marked
        self._runs_before, self._runs = self._runs, {}
        view = self.query_one("#tree", VirtualList)
        view.set_empty(self._empty())
        view.set_source(tree, keep_key=view.cursor_key)
        if self._wanted:
            wanted, self._wanted = self._wanted, ""
            self._go_to(tree, wanted)
        self.query_one("#hint", LineBlock).show(self._hint_lines)
        self.retitle()
        self._show_detail()

    def _say_drafts(self) -> None:
        """Edits of an earlier start that were not saved are in the Editor."""
        from agenteval_tui.tui.draft_store import Drafts

        def then(kept: int) -> None:
            if kept:
                was = "edit was" if kept == 1 else "edits were"
                self.agenteval.say(f"{kept} {was} not saved: 2 goes to the Editor, where it can be restored.")

        known = {key_of(node) for node in self._all_tests()}
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

    def show_test(self, file: str, test: str) -> None:
        """Read the suites again and put the cursor on a test."""
        self._wanted = f"{file}\x1f{test}" if test else file
        if self._tree is not None:
            self.reload()

    async def _watch_files(self) -> None:
        from agenteval_tui.suites.watch import watch

        session = self.agenteval.session
        async for changed in watch(session.looked_in):
            self._changed |= {path.resolve() for path in changed if not session.is_own(path)}
            self.reload()

    def _say_changed(self, overview: Overview) -> None:
        """Say which suites another program wrote."""
        changed, self._read = self._read, set()
        if not changed:
            return
        found = [one for one in overview.suites if one.loaded.path.resolve() in changed]
        self.agenteval.say_changed((one.loaded.key, one.loaded.path.name, len(one.own_errors)) for one in found)

    def _empty(self) -> list[Line]:
        if self._tree is not None and self._tree.query:
            return [(), (("  Nothing matches the filter.", ""),), (("  esc clears it.", "dim"),)]
        places = one_line(", ".join(str(path) for path in self.agenteval.session.looked_in))
        return [
            (),
            (("  No suites in ", ""), (places, "bold")),
            (),
            (("  A suite is a file named *.suite.yaml.", "dim"),),
            (("  n", "bold accent"), ("                writes one here, with a first test", "dim")),
            (("  agenteval init", "bold"), ("   writes one with examples to begin with", "dim")),
            (("  agenteval demo", "bold"), ("   opens the samples, with an agent that needs no network", "dim")),
        ]

    def _hint_lines(self, width: int) -> list[Line]:
        """The first start says which key to press."""
        tree = self._tree
        if tree is not None and tree.query.problem:
            return [*(((" ", ""), *line) for line in paragraph(tree.query.problem, width - 2, "error"))]
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
        if not overview.checked:
            facts.append("checking …")
        if self._tree.query:
            left = ((f"{len(self._tree.shown_tests())} shown", "dim"),)
        if self._tree.worst_first:
            left = (*left, (("  " if left else "") + "worst first", "dim"))
        if self._tree.marked:
            left = (*left, (("  " if left else "") + f"{len(self._tree.marked)} marked", "accent"))
        return left, ((" · ".join(facts), "dim"),)

    def keys(self) -> list[tuple[str, str, str]]:
        """What can be done with what is marked, else with what the cursor stands on."""
        tree, node, narrow = self._tree, self._node, self.has_class("narrow")
        last = super().keys()[-1:]
        if tree is None or node is None:
            return [*named_keys("suites", ("run", "run_shown", "filter", "new"), self.agenteval.keymap), *last]
        if tree.marked:
            names = ["run", "duplicate", "delete", "tag", "mark", "mark_range", "unmark"]
        elif node.test is None:
            names = ["run", "run_shown", "run_failed", "plan", "filter", "new", "causes"]
        elif test_key(node) in self._runs and not self._runs[test_key(node)]:
            names = ["run", "run_shown", "plan", "edit_test", "filter", "new"]
        else:
            names = ["run", "run_failed", "inspect", "edit", "causes", "compare", "filter"]
        if narrow:
            # The details are behind the list: only this key shows them.
            names = [*names[:3], "pane", *names[3:6]]
        keys = named_keys("suites", names, self.agenteval.keymap)
        if node.test is None and not tree.marked:
            keys.insert(2, ("enter", "close" if tree.is_open(node) else "open", "inspect"))
        if self.has_class("show-detail"):
            keys = [(key, "list" if do == "next_pane" else word, do) for key, word, do in keys]
        return [*keys[:7], *last]

    def _rekey(self) -> None:
        self.query_one("#keys", LineBlock).show(self._key_lines)

    @property
    def _node(self) -> Node | None:
        view = self.query_one("#tree", VirtualList)
        rows = self._tree.rows if self._tree else []
        return rows[view.cursor] if 0 <= view.cursor < len(rows) else None

    def _all_tests(self) -> list[Node]:
        assert self._tree is not None
        return [
            Node("test", suite, test)
            for suite in self._tree.overview.suites
            for test in (suite.loaded.suite.tests if suite.loaded.suite else [])
        ]

    # The selected row

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The cursor moved: show what it stands on."""
        self.soon(self._show_detail)

    def _show_detail(self) -> None:
        node = self._node
        key = test_key(node)
        runs = self._runs.get(key, self._runs_before.get(key, ()))
        self._draw_detail(node, runs)
        if node is not None and node.test is not None and test_key(node) not in self._runs:
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
        self._runs[test_key(node)] = rows
        current = self._node
        if current is not None and test_key(current) == test_key(node):
            self._draw_detail(current, rows)

    def _draw_detail(self, node: Node | None, runs: Sequence[RunRow]) -> None:
        self._rekey()
        from agenteval_tui.tui.presenters.suite_detail import detail

        at = now_ms()
        view = self.query_one("#detail", LinesView)
        before, self._detailed = self._detailed, node.key if node is not None else ""
        view.show(
            lambda width: [((" ", ""), *line) for line in detail(node, runs, at, width - 1)],
            keep_place=before == self._detailed,
        )

    # Folding, filtering, panes

    def _fold_clicked(self, index: int, column: int) -> bool:
        """A click on the sign before a name opens or closes it, wherever the cursor is."""
        tree = self._tree
        if tree is None or not index < len(tree.rows):
            return False
        sign = {"suite": 2, "test": 4}.get(tree.rows[index].kind)
        if sign is None or abs(column - sign) > 1:
            return False
        self.query_one("#tree", VirtualList).cursor = index
        self.action_toggle_fold()
        return True

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
        self._rekey()

    def action_sort(self) -> None:
        """Worst first, or as in the files."""
        tree = self._tree
        if tree is None:
            return
        view = self.query_one("#tree", VirtualList)
        keep = view.cursor_key
        tree.worst_first = not tree.worst_first
        tree.arrange()
        view.set_source(tree, keep_key=keep)
        if tree.worst_first:
            view.action_first()
        self.retitle()

    def action_next_pane(self) -> None:
        tree = self.query_one("#tree", VirtualList)
        detail = self.query_one("#detail", LinesView)
        if self.has_class("narrow"):
            details = not self.has_class("show-detail")
            self.set_class(details, "show-detail")
            # What was hidden can take the focus only when it is shown.
            self.call_after_refresh((detail if details else tree).focus)
        else:
            (detail if tree.has_focus else tree).focus()
        self._rekey()

    def step_back(self) -> bool:
        box = self.query_one("#filter", Input)
        if self.has_class("show-detail"):
            self.remove_class("show-detail")
            self.query_one("#tree", VirtualList).focus()
            self._rekey()
            return True
        if box.display:
            box.value = ""
            box.display = False
            self.query_one("#tree", VirtualList).focus()
            return True
        if self._tree is not None and self._tree.marked:
            self._tree.marked.clear()
            self._show_marks()
        return True

    def _show_marks(self) -> None:
        """Which tests are marked, how many, and what can be done with them."""
        self.query_one("#tree", VirtualList).refresh_rows()
        self.retitle()
        self._rekey()

    def action_filter(self) -> None:
        self.remove_class("show-detail")
        self._rekey()
        box = self.query_one("#filter", Input)
        if not box.display:
            self._chosen = self._landed = None
        box.display = True
        box.focus()  # at once: what is typed behind the slash goes into it

    def on_input_changed(self, event: Input.Changed) -> None:
        """Every letter filters. While the cursor's row is hidden the first test that was found has the cursor; when it
        is back it has it again, unless another one was gone to meanwhile."""
        if self._tree is None:
            return
        view = self.query_one("#tree", VirtualList)
        # Before the rows change: the cursor may be below the last of the new ones.
        keep = view.cursor_key
        if self._chosen is None or keep != self._landed:
            self._chosen = keep
        self._tree.query = Query.parse(event.value)
        self._tree.arrange()
        if any(row.key == self._chosen for row in self._tree.rows):
            keep = self._chosen
        elif (first := next((row.key for row in self._tree.rows if row.kind == "test"), None)) is not None:
            keep = first
        self.query_one("#hint", LineBlock).show(self._hint_lines)
        view.set_empty(self._empty())
        view.set_source(self._tree, keep_key=keep)
        self._landed = view.cursor_key
        self.retitle()
        self._show_detail()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter in the filter goes to the list, to the test that was found."""
        view, node = self.query_one("#tree", VirtualList), self._node
        view.focus()
        if node is not None and node.test is not None:
            self._chosen = view.cursor_key
        if not event.value:
            event.input.display = False


def key_of(node: Node) -> str:
    """What the tree calls the node's test."""
    return Node("test", node.suite, node.test).key


def test_key(node: Node | None) -> str:
    return "" if node is None or node.test is None else f"{node.suite.loaded.key}\x1f{node.test.id}"
