"""What the Suites screen lists, marks and remembers, and what its actions are meant for. It knows no widget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from agenteval_tui.agents.discovery.model import Findings
from agenteval_tui.core import directories
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.numbers import count
from agenteval_tui.history.records import RunFilter, TestSummary
from agenteval_tui.tui.actions import key_of
from agenteval_tui.tui.inspect_target import RunToOpen
from agenteval_tui.tui.presenters.failure_banner import banner, failure_lines, key_entries
from agenteval_tui.tui.presenters.suite_query import Query
from agenteval_tui.tui.presenters.suite_tree import Node, SuiteTree
from agenteval_tui.tui.state import text, texts
from agenteval_tui.tui.styled_text import Cell, Line, indented, paragraph
from agenteval_tui.views.agent_candidates import seen, what_it_is

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.formats.foreign_file import ForeignFile
    from agenteval_tui.history.store import Store
    from agenteval_tui.suites.editing import WrittenFile
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.suites.model import Suite, Test
    from agenteval_tui.tui.presenters.suite_detail import TestRuns
    from agenteval_tui.tui.workspace import Offer

FOUND_SHOWN = 4  # agents of a folder without suites
MOST_RUNNING = 8  # newest executions that are looked at for one that runs
MOST_KEPT = 500  # folds that are kept for the next start
MOST_UNDONE = 20  # changes of files that can be undone, one after the other
_CHANGES = {"copied": ("copy", "to"), "deleted": ("delete", "from"), "tagged": ("tag", "in"), "moved": ("move", "in")}


class RunRequest(Struct, frozen=True):
    """What to run: the suites' files, the tests as `FILE::ID` (() for all), and what the execution is called."""

    paths: list[Path]
    tests: tuple[str, ...]
    title: str


class PlanRequest(Struct, frozen=True):
    """What a run is planned of: the suite, those of its tests that are meant, and what it would run."""

    suite: Suite
    chosen: list[Test]
    run: RunRequest


class FileChange(Struct, frozen=True):
    """A change of tests in their files: each suite with the ids in it, and in words whose tests these are.

    `undo` gets what undoing each file needs, as the files are written.
    """

    done: str
    who: str
    files: list[tuple[LoadedSuite, list[str]]]
    undo: list[WrittenFile] = field(default_factory=list)

    @property
    def title(self) -> str:
        """What is being done: "copy one-2"."""
        return f"{_CHANGES[self.done][0]} {self.who}"

    def sentence(self, written: int) -> str:
        """What was done, after this many of the files were written: "one-2 copied to a.suite.yaml"."""
        some = "" if written == len(self.files) else "Not all: "
        files = ", ".join(written_file.path.name for written_file in self.undo)
        return f"{some}{self.who} {self.done} {_CHANGES[self.done][1]} {files}"


def newest_execution(store: Store, suite_key: str, test_id: str = "") -> str:
    """The id of the newest execution of a suite, or of one of its tests. Raises `AgentevalError`."""
    execution_rows = store.execution_rows(
        store.execution_ids(RunFilter(suite_key=suite_key, test_id=test_id, counted=True))[:1]
    )
    if not execution_rows:
        raise AgentevalError("this has never run, so there is nothing to compare", fix="press {suites.run} to run it")
    return execution_rows[0].id


def is_running(store: Store, tree: SuiteTree) -> bool:
    """Are tests of these suites being run now, by whichever process? Raises `AgentevalError`."""
    here = {suite.loaded.key for suite in tree.overview.suites}
    newest = store.execution_rows(store.execution_ids(RunFilter(counted=True))[:MOST_RUNNING])
    return any(row.status == "running" and not here.isdisjoint(row.suite_keys) for row in newest)


class SuitesController:
    """The state of the Suites screen; the rows, their folds, marks and order are the tree's.

    `node` in its methods is the row with the cursor. What can't be done answers with a sentence that says why.
    """

    def __init__(self) -> None:
        self.tree: SuiteTree | None = None  # None: the suites are still being read
        self.filter_text = ""
        self.row_to_show = ""  # the row to go to when the suites have been read
        self._restored: Mapping[str, Any] = {}  # what the last start kept, until they have been
        self._waiting: Callable[[], None] | None = None  # the action that was asked for before they had been
        self._runs: dict[str, TestRuns] = {}
        self._runs_before: dict[str, TestRuns] = {}  # shown until they have been read again
        self._changed: set[Path] = set()  # files that another program wrote, until they have been read
        self._read: set[Path] = set()  # those that have been, until they have been checked
        self._chosen: str | None = None  # the row that was chosen last by a person: a filter can hide it for a while
        self._filter_cursor: str | None = None  # the row that the filter's last letter put the cursor on
        self._mark_from = ""  # the test that was marked last: a range begins there
        self.offer: Offer | None = None  # the clearest failure of the first run, until it was opened
        self._began_without_runs = False
        self._running = False  # tests of these suites, whose first run has not ended
        self._findings: Findings | None = None  # the agents of a folder without suites, once they were looked for
        self._foreign: tuple[ForeignFile, ...] = ()  # the files of other tools in it
        self._before: set[int] = set()  # executions that the samples begin with
        self._undo: list[tuple[str, list[WrittenFile]]] = []  # what was done, in words, and the files of it

    def node_at(self, index: int) -> Node | None:
        """The row at `index`; None where there is none."""
        rows = self.tree.rows if self.tree is not None else []
        return rows[index] if 0 <= index < len(rows) else None

    # What was read

    def take_overview(self, overview: Overview, *, on_samples: bool = False) -> str | None:
        """Show these suites, folded, filtered and marked as those before. Gives the row to put the cursor on, at the
        first time; None: it stays. `on_samples`: the suites are samples."""
        old = self.tree
        # Files count as read with the tree that has them, and are said when that has been checked.
        self._read |= self._changed
        self._changed = set()
        if old is None:
            return self._first_tree(overview, on_samples)
        self._show(old, overview.with_known_problems(old.overview))
        return None

    def _first_tree(self, overview: Overview, on_samples: bool) -> str | None:
        """As the last start left it."""
        stored, self._restored = self._restored, {}
        self.filter_text = self.filter_text or text(stored, "filter")
        tree = self.tree = SuiteTree(
            overview,
            folded=texts(stored, "folded"),
            opened=texts(stored, "opened"),
            query=Query.parse(self.filter_text),
            worst_first=bool(text(stored, "worst_first")),
        )
        # The demo begins with labelled runs of a single test: nothing was run by the person all the same.
        begun = sum(len(suite.summaries) for suite in overview.suites)
        self._before = tree.executions if on_samples and begun == 1 else set()
        self._began_without_runs = not tree.has_runs or bool(self._before)
        if self.row_to_show:
            return None
        cursor = text(stored, "cursor")
        return cursor if any(row.key == cursor for row in tree.rows) else self._first_cursor(tree)

    def _first_cursor(self, tree: SuiteTree) -> str | None:
        """Where to begin without a row that was kept: on the test that failed in the newest execution, else on the
        first. A suite that can't be read has no tests: the cursor stays on it."""
        keys = {row.key for row in tree.rows}
        failed = [] if self._began_without_runs else [node for node in tree.failed_tests() if node.key in keys]
        newest = max(failed, key=_newest_execution, default=None)
        return newest.key if newest is not None else next((row.key for row in tree.rows[1:2] if row.test), None)

    def _show(self, old: SuiteTree, overview: Overview) -> None:
        tree = self.tree = SuiteTree(
            overview, folded=old.folded, opened=old.opened, query=old.query, worst_first=old.worst_first
        )
        # Only of tests that are still there.
        tree.marked = {node.test_key for node in tree.all_tests()} & old.marked if old.marked else set()
        # What was known is shown until it has been read anew: the pane does not flicker.
        self._runs_before, self._runs = self._runs, {}

    def take_summaries(self, of: SuiteTree, summaries: Mapping[str, Mapping[str, TestSummary]]) -> bool:
        """What the history says now of the tests of this tree. False: it is as it was, or was read anew meanwhile."""
        if self.tree is not of or (overview := of.overview.with_summaries(summaries)) == of.overview:
            return False
        self._show(of, overview)
        return True

    def take_problems(self, of: Overview, problems: Mapping[str, tuple[Problem, ...]]) -> bool:
        """What is wrong in these suites; the rows stay. False: all of it was known."""
        if self.tree is None or (overview := self.tree.overview.with_problems(of, problems)) == self.tree.overview:
            return False
        self.tree.update(overview)
        return True

    def go_to_wanted(self) -> str:
        """The row that was asked for ("" for none), whatever was folded or filtered: it is shown now."""
        test_key, self.row_to_show = self.row_to_show, ""
        if test_key and self.tree is not None:
            self.tree.folded.discard(test_key.partition("\x1f")[0])
            if self.tree.query:
                self.filter_text, self.tree.query = "", Query()
            self.tree.arrange()
        return test_key

    def wait(self, action: Callable[[], None]) -> bool:
        """Are the suites still being read? Then `action` is done when they have been (`waiting`)."""
        if self.tree is None:
            self._waiting = action
        return self.tree is None

    def waiting(self) -> Callable[[], None] | None:
        """The action that waited for the suites, once."""
        waiting, self._waiting = self._waiting, None
        return waiting

    def file_changed(self, path: Path) -> None:
        """Another program wrote this file: it is said when it has been read and checked."""
        self._changed.add(path.resolve())

    def checked_changes(self) -> list[tuple[str, str, int]]:
        """The changed suites that have been read and checked: key, file's name, and how many errors are in the file."""
        changed, self._read = self._read, set()
        suites = self.tree.overview.suites if self.tree is not None else ()
        suite_overviews = [suite for suite in suites if suite.loaded.path.resolve() in changed] if changed else []
        return [
            (suite_overview.loaded.key, suite_overview.loaded.path.name, len(suite_overview.own_errors))
            for suite_overview in suite_overviews
        ]

    # The runs of a test

    def runs(self, node: Node | None) -> TestRuns | None:
        """What the history says of the row's test: what it said before, while it is read again; None at first."""
        key = node.test_key if node is not None else ""
        return self._runs.get(key) or self._runs_before.get(key)

    def knows_runs(self, node: Node) -> bool:
        """Have the runs of the row's test been read?"""
        return node.test_key in self._runs

    def take_runs(self, node: Node, runs: TestRuns) -> None:
        """The last runs of the row's test."""
        self._runs[node.test_key] = runs

    def run_to_open(self, node: Node) -> RunToOpen | None:
        """The newest run of the row's test that failed, else the newest; None: it was not run yet."""
        test_runs = self._runs.get(node.test_key)
        if test_runs is None or not test_runs.rows:
            return None
        opened = next((run.id for run in test_runs.rows if run.status in ("failed", "error")), test_runs.rows[0].id)
        return RunToOpen(opened, node.criterion_name, [run.id for run in test_runs.rows])

    # The filter

    def open_filter(self) -> None:
        """The filter begins: where the cursor is now is where it comes back to."""
        self._chosen = self._filter_cursor = None

    def filter(self, words: str, cursor: str | None) -> str | None:
        """Show what `words` let through. Gives the row for the cursor: the one that was chosen; while it is hidden, the
        first test. `cursor` is the row that has it."""
        self.filter_text = words
        if self.tree is None:
            return cursor  # the first tree takes the words
        if self._chosen is None or cursor != self._filter_cursor:
            self._chosen = cursor
        self.tree.query = Query.parse(words)
        self.tree.arrange()
        if any(row.key == self._chosen for row in self.tree.rows):
            return self._chosen
        return next((row.key for row in self.tree.rows if row.kind == "test"), cursor)

    def set_filter_cursor(self, cursor: str | None) -> None:
        """The row that has the cursor since the filter's last letter."""
        self._filter_cursor = cursor

    def choose(self, node: Node | None) -> None:
        """A person went from the filter to this test: the cursor stays there when the filter goes."""
        if node is not None and node.test is not None:
            self._chosen = node.key

    # Marks

    @property
    def marked(self) -> list[Node]:
        """The marked tests, in the order of their files."""
        if self.tree is None or not self.tree.marked:
            return []
        return [node for node in self.tree.all_tests() if node.test_key in self.tree.marked]

    def selected_tests(self, node: Node | None) -> list[Node]:
        """The marked tests, else the cursor's."""
        alone = [Node("test", node.suite, node.test)] if node is not None and node.test is not None else []
        return self.marked or alone

    def mark(self, node: Node) -> None:
        """Mark the row's test, or take its mark away; of a suite all of its tests that are shown."""
        assert self.tree is not None
        if node.test is not None:
            self.tree.marked ^= {node.test_key}
            self._mark_from = node.test_key
            return
        own = {test.test_key for test in self.tree.tests_of(node.suite)}
        self.tree.marked = self.tree.marked - own if own <= self.tree.marked else self.tree.marked | own

    def mark_range(self, node: Node) -> str:
        """Mark all tests between the one that was marked last and this row's. Gives "", or why not."""
        assert self.tree is not None
        keys = [node.test_key for node in self.tree.shown_tests()]
        here = node.test_key
        if self._mark_from not in keys or here not in keys:
            return "Mark a test with {suites.mark} first, then press {suites.mark_range} to mark all up to the cursor."
        first, last = sorted((keys.index(self._mark_from), keys.index(here)))
        self.tree.marked |= set(keys[first : last + 1])
        self._mark_from = here
        return ""

    def unmark(self) -> bool:
        """Take all marks away. False: there were none."""
        were = self.tree is not None and bool(self.tree.marked)
        if self.tree is not None:
            self.tree.marked.clear()
        return were

    # What is run

    def run_selection(self, node: Node | None) -> RunRequest | None:
        """The marked tests, else the cursor's test or suite; None: there is nothing."""
        if marked := self.marked:
            return _run_of(marked, count(len(marked), "test"))
        if node is None:
            return None
        return _run_of([node], node.test.id if node.test is not None else node.suite_name)

    def run_shown(self) -> RunRequest | str:
        """All tests that are shown."""
        assert self.tree is not None
        nodes = self.tree.shown_tests()
        if not nodes:
            return "There is no test in the list to run."
        request = _run_of(nodes, "what was shown")
        return request if self.tree.query else RunRequest(request.paths, (), "all suites")

    def run_failed(self) -> RunRequest | str:
        """All tests that failed last time."""
        assert self.tree is not None
        failed = self.tree.failed_tests()
        return _run_of(failed, "what failed last") if failed else "Nothing failed last time."

    def plan(self, node: Node | None) -> PlanRequest | str:
        """A plan of the cursor's suite or test; what is filtered away stays out."""
        if node is None or self.tree is None:
            return "There is no test to run."
        suite = node.suite.loaded.suite
        if suite is None:
            return "This suite can't be read; see its problems beside it."
        if node.test is not None:
            return PlanRequest(suite, [node.test], _run_of([node], node.test.id))
        path, title = node.suite.loaded.path, node.suite_name
        suite_nodes = self.tree.tests_of(node.suite)
        if not self.tree.query or len(suite_nodes) == len(suite.tests):
            return PlanRequest(suite, list(suite.tests), RunRequest([path], (), title))
        keys = {node.test_key for node in suite_nodes}
        nodes = [other for other in self.tree.all_tests() if other.suite is node.suite and other.test_key in keys]
        chosen = [node.test for node in nodes if node.test is not None]
        return PlanRequest(suite, chosen, RunRequest([path], tuple(node.selector for node in nodes), title))

    # What is changed in the files

    def change(self, done: str, nodes: Sequence[Node]) -> FileChange:
        """A change of these tests. `done`: "copied", "deleted", "tagged" or "moved"."""
        files: dict[str, tuple[LoadedSuite, list[str]]] = {}
        ids = [node.test.id for node in nodes if node.test is not None]
        for node, test in zip(nodes, ids, strict=True):
            files.setdefault(node.suite.loaded.key, (node.suite.loaded, []))[1].append(test)
        return FileChange(done, ids[0] if len(ids) == 1 else count(len(ids), "test"), list(files.values()))

    def movable(self, node: Node | None) -> Node | str:
        """The test that the cursor's row moves in its file."""
        if node is None or node.test is None:
            return "Choose a test to move it."
        if self.tree is not None and self.tree.worst_first:
            return "Sorted by worst first. Press {suites.sort} for the file's order, then {suites.down} or {suites.up}."
        return Node("test", node.suite, node.test)

    def remember(self, change: FileChange, written: int) -> str:
        """The change was made in this many of its files and can be undone. Returns what was done; "" for nothing."""
        if not change.undo:
            return ""
        description = change.sentence(written)
        self._undo = [*self._undo[1 - MOST_UNDONE :], (description, change.undo)]
        return description

    @property
    def can_undo(self) -> bool:
        """Is there a change to undo?"""
        return bool(self._undo)

    def last_change(self) -> tuple[str, list[WrittenFile]]:
        """The change to undo, in words and with its files; it counts as undone."""
        return self._undo.pop()

    def keep_change(self, description: str, files: list[WrittenFile], *, last: bool) -> None:
        """It could not be undone in these files: it is again the `last` one, or those before it come first."""
        self._undo.insert(len(self._undo) if last else 0, (description, files))

    # What is kept for the next start

    def kept(self, cursor: str | None) -> dict[str, Any] | None:
        """Folds, filter, order and the cursor's row; None while the suites are still being read."""
        tree = self.tree
        if tree is None:
            return None
        return {
            "filter": self.filter_text,
            "folded": sorted(tree.folded)[:MOST_KEPT],
            "opened": sorted(tree.opened)[:MOST_KEPT],
            "worst_first": "yes" if tree.worst_first else "",
            "cursor": cursor or "",
        }

    def restore(self, stored: Mapping[str, Any]) -> None:
        """Take what an earlier start kept, for the first tree."""
        self._restored = stored

    # Lines

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title."""
        if self.tree is None:
            return (), ()
        overview = self.tree.overview
        facts = [count(len(overview.suites), "suite"), count(overview.tests, "test")]
        if width >= 100:
            facts.append(count(overview.criteria, "criterion"))
        if not overview.checked:
            facts.append("checking …")
        parts: list[tuple[str, str]] = []
        if self.tree.query:
            parts.append((f"{len(self.tree.shown_tests()):,} shown", "dim"))
        if self.tree.worst_first:
            parts.append(("worst first", "dim"))
        if self.tree.marked:
            parts.append((f"{len(self.tree.marked):,} marked", "accent"))
        cells = tuple(("  " * bool(place) + words, style) for place, (words, style) in enumerate(parts))
        return cells, ((" · ".join(facts), "dim"),)

    def hint(self, width: int, *, samples: str, keymap: Mapping[str, str], explicit: bool = True) -> list[Line]:
        """What is not understood in the filter; at the first start what is here and which key to press; after the first
        run its clearest failure.

        `samples`: the folder of the sample suites, where these are shown. `explicit`: a person asked for them; else
        they are here because the folder has no suites. `keymap`: the keys that the person has.
        """
        tree = self.tree
        if tree is not None and tree.query.problem:
            return indented(paragraph(tree.query.problem, width - 2, "error"))
        if tree is None or not tree.overview.tests:
            return []
        if self.offer is not None and self._only_execution() is not None:
            return banner(_offered(self.offer, width - 4, keymap))
        if not self.awaits_runs:
            return []
        if self._running:
            return banner(_first_runs(width - 4, keymap))
        return banner(_first_start(tree, samples, width - 4, keymap, explicit=explicit))

    # The first run

    @property
    def awaits_runs(self) -> bool:
        """Has no run of these tests ended yet?"""
        return self.tree is not None and not self.tree.executions - self._before

    def take_running(self, running: bool) -> bool:
        """Tests are being run, though no run has ended yet. False: that was known."""
        was, self._running = self._running, running
        return was != running

    @property
    def awaits_offer(self) -> bool:
        """Was nothing run when the app was started, and are there runs now, of one execution?"""
        return self._began_without_runs and self.offer is None and self._only_execution() is not None

    def _only_execution(self) -> int | None:
        executions = self.tree.executions - self._before if self.tree is not None else set()
        return executions.pop() if len(executions) == 1 else None

    def take_offer(self, offer: Offer | None) -> str:
        """The clearest failure of the first run; None: there is none yet. Gives the row to put the cursor on."""
        if offer is None or not self.awaits_offer:
            return ""
        self.offer, self._began_without_runs = offer, False
        return f"{offer.suite_key}\x1f{offer.test_id}"

    def end_offer(self) -> bool:
        """It was opened, or something else was done. False: there was none."""
        was, self.offer = self.offer, None
        return was is not None

    def take_findings(self, findings: Findings, foreign: Sequence[ForeignFile] = ()) -> None:
        """The agents of a folder without suites, and the files of other tools in it."""
        self._findings, self._foreign = findings, tuple(foreign)

    @property
    def awaits_findings(self) -> bool:
        """Whether there are no suites, and agents weren't searched for yet."""
        return self.tree is not None and not self.tree.overview.suites and self._findings is None

    def _found(self) -> list[Line]:
        """The agents that a suite can be written for."""
        if self._findings is None:
            return [(("  Looking for your agents …", "dim"),)]
        agents = self._findings.agents
        lines: list[Line] = []
        for agent in agents[:FOUND_SHOWN]:
            lines.append((("  ", ""), (one_line(agent.name, 40), "accent"), (f"  {what_it_is(agent)}", "")))
            lines.append(((f"    {seen(agent)}", "dim"),))
        if len(agents) > FOUND_SHOWN:
            lines.append(((f"  and {len(agents) - FOUND_SHOWN:,} more", "dim"),))
        return lines

    def empty(self, places: str) -> list[Line]:
        """What is shown instead of rows. `places`: where suites were looked for."""
        if self.tree is not None and self.tree.query:
            return [(), (("  Nothing matches the filter.", ""),), (("  Press {everywhere.back} to clear it.", "dim"),)]
        agents = self._found()
        count_found = len(self._findings.agents) if self._findings is not None else 0
        what = "choose one of these agents: a suite is written" if count_found else "write one here, with a first test"
        return [
            (),
            (("  No suites in ", ""), (places, "bold")),
            *([(), ((f"  {count(count_found, 'agent')} found:", ""),)] if count_found else []),
            *agents,
            *self._foreign_lines(),
            (),
            (("  A suite is a file named *.suite.yaml.", "dim"),),
            (("  {suites.new}", "bold accent"), (f"                {what}", "dim")),
            (("  agenteval init", "bold"), ("   the same on the command line", "dim")),
            (("  {suites.samples}", "bold accent"), ("            look at the samples: no key, no network", "dim")),
        ]

    def _foreign_lines(self) -> Iterator[Line]:
        """The files of other tools, and the commands that lead from there."""
        for file in self._foreign[:FOUND_SHOWN]:
            yield ()
            yield (("  ", ""), (one_line(str(file.path.name), 60), "accent"), (f" is {file.what}:", ""))
            yield from ((("    " + one_line(remedy, 160), "bold"),) for remedy in file.remedies)

    def key_names(self, node: Node | None, *, narrow: bool) -> list[str]:
        """What can be done with what is marked, else with the cursor's row: names of actions."""
        if self.tree is None or node is None:
            return ["run", "run_shown", "filter", "new"]
        if self.tree.marked:
            names = ["run", "duplicate", "delete", "tag", "mark", "mark_range", "unmark"]
        elif node.test is None:
            names = ["run", "run_shown", "run_failed", "plan", "filter", "new", "causes"]
        elif (test_runs := self.runs(node)) is not None and not test_runs.rows:
            names = ["run", "run_shown", "plan", "edit", "filter", "new"]
        else:
            names = ["run", "run_failed", "inspect", "edit", "causes", "compare", "filter"]
        if not self.tree.has_failed:
            names = [name for name in names if name != "run_failed"]
        # Narrow, the details are behind the list: only this key shows them.
        return [*names[:3], "pane", *names[3:6]] if narrow else names


def _newest_execution(node: Node) -> int:
    """The newest execution that the row's test ran in; 0: none is known."""
    summary = node.suite.summaries.get(node.test.id) if node.test is not None else None
    return max(summary.executions, default=0) if summary is not None else 0


def _run_of(nodes: Iterable[Node], title: str) -> RunRequest:
    """These tests, or one whole suite."""
    chosen = list(nodes)
    paths = list(dict.fromkeys(node.suite.loaded.path for node in chosen))
    return RunRequest(paths, tuple(node.selector for node in chosen if node.test is not None), title)


def _first_start(tree: SuiteTree, samples: str, width: int, keymap: Mapping[str, str], *, explicit: bool) -> list[Line]:
    run = (key_of("suites.run_shown", keymap), "run all now")
    look = (key_of("suites.inspect", keymap), "look at one")
    if not samples:
        lines = paragraph("Nothing has run yet.", width)
        return [*lines, *key_entries(width, run, (key_of("suites.run", keymap), "run what is selected"), look)]
    what = f"{count(len(tree.overview.suites), 'sample suite')} with {count(tree.overview.tests, 'test')}."
    if not explicit:
        what = f"This folder has no suites (agenteval init writes one). Here are {what}"
    place = f"They are copies that you can edit; git diff shows your changes: {samples}"
    if not Path(samples).is_relative_to(directories.demo_dir()):
        place = f"They are in {samples}"
    return [
        *paragraph(f"{what} Their agent is a small program that needs no key and no network.", width),
        *key_entries(
            width, run, look, (key_of("suites.import", keymap), "import a recording"), (key_of("help", keymap), "keys")
        ),
        *paragraph(place, width, "dim"),
    ]


def _first_runs(width: int, keymap: Mapping[str, str]) -> list[Line]:
    lines = paragraph("Tests are running now. Each result appears here when its run ends.", width)
    return [*lines, *key_entries(width, (key_of("go.run", keymap), "watch them"))]


def _offered(offer: Offer, width: int, keymap: Mapping[str, str]) -> list[Line]:
    return [
        *paragraph(f"{offer.passed:,} of {count(offer.tests, 'test')} passed. The clearest failure:", width),
        *failure_lines(offer.test_id, offer.failure, width),
        *key_entries(width, (key_of("suites.inspect", keymap), "open it")),
    ]
