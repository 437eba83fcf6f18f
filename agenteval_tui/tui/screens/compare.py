"""The Compare screen: two executions, agents, variations or a baseline; what got worse stands first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widgets import Input

from agenteval_tui.analysis.attribution import attribute
from agenteval_tui.analysis.comparison import compare, metric_changes
from agenteval_tui.analysis.comparison_sides import Sides, sides_of
from agenteval_tui.analysis.criterion_versions import compare_versions, stored_spec
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.shell import command_line
from agenteval_tui.history.quarantines import active
from agenteval_tui.history.queries import NOTHING_RAN
from agenteval_tui.history.references import NothingHereError
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.comparison import (
    CompareRow,
    CompareRows,
    cells_to_figures,
    detail_lines,
    head_lines,
    rows_of,
)
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.text_layout import error_lines, nothing_here, nothing_ran
from agenteval_tui.tui.screens.baseline_dialogs import ask_for_baseline, ask_to_clear
from agenteval_tui.tui.screens.compare_picker import choices_of, chosen_sides
from agenteval_tui.tui.screens.criterion_versions import show_versions
from agenteval_tui.tui.screens.filterable_screen import FilteredScreen
from agenteval_tui.tui.screens.quarantine import QuarantineScreen
from agenteval_tui.tui.screens.select_dialog import Choice, ChooseScreen
from agenteval_tui.tui.styled_text import Cell, Line
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import GUTTER, VirtualList

if TYPE_CHECKING:
    from agenteval_tui.analysis.attribution import Attributed
    from agenteval_tui.analysis.comparison_model import Comparison, MetricChange, TestChange, TestKey
    from agenteval_tui.analysis.comparison_sides import Sides
    from agenteval_tui.history.quarantines import Quarantined

MOST = 300
"""Tests whose change is attributed by itself; further ones when the cursor comes to them."""


@dataclass(slots=True)
class _Known:
    """What was found out of the changes, by the test's key."""

    attributed: dict[TestKey, Attributed | None] = field(default_factory=dict)
    metrics: dict[TestKey, dict[str, tuple[MetricChange, ...]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Versions:
    """Two versions of a criterion (hashes) over the stored runs of its test.

    `back` is the row of the comparison before that esc leads to; "": esc leaves the screen.
    """

    suite_key: str
    test: str
    criterion: str
    old: str
    new: str
    back: str = ""


class CompareScreen(FilteredScreen):
    """The list of changes, and the chosen one in full. Who changed what is found out in the background."""

    SCOPE = "compare"
    BY_PROJECT = True
    LIST = "#changes"
    CSS_PATH = "compare.tcss"
    BINDINGS: ClassVar[list[BindingType]] = list(bindings("compare"))

    def __init__(self) -> None:
        super().__init__()
        self._wanted: Sides | None = None
        self._found: Comparison | None = None
        self._known = _Known()
        self._everything = False
        self._test: tuple[str, str] | None = None  # the suite's key and id of the test that the cursor goes to then
        self._place = ""  # the row that the cursor goes to when what is read is there
        self._versions: _Versions | None = None  # two versions of a criterion are compared
        self._composed = False
        self._pending: Callable[[], None] | None = None

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._head_lines, id="head")
        yield Input(placeholder="words in tests and criteria", id="search", classes="filter")
        with Container(id="body"):
            yield VirtualList(empty=self._empty(), id="changes")
            yield LinesView(id="details")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._composed = True
        self.hide_filter()
        if self._pending is not None:
            self._pending()
        else:
            self.open(Sides())

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < self.NARROW, "narrow")
        # The row under the cursor is one to its figures, and to whose doing it was.
        self.query_one("#changes", VirtualList).cursor_width = GUTTER + cells_to_figures(event.size.width - GUTTER)

    def open(self, sides: Sides, test: tuple[str, str] | None = None) -> None:
        """Compare these sides; without any: the newest execution with its baseline. `test`: the suite's key and the id
        of the test to begin with."""
        if not self._composed:
            self._pending = partial(self.open, sides, test)
            return
        session = self.agenteval.session
        store = session.store
        view = self.query_one("#changes", VirtualList)
        if self._found is None:
            view.set_empty([(), (("  comparing …", "dim"),)])

        def work() -> Comparison:

            a, b = sides_of(store, sides, session.projects)
            found = compare(store, a, b, quarantined=active(store))
            found.check_in_common()
            return found

        def then(found: Comparison) -> None:
            self._wanted, self._versions, self._test = sides, None, test
            self._opened(found)

        self.ask(work, then, group="open", failed=self._failed)

    def open_versions(self, suite_key: str, test: str, criterion: str, old: str, new: str, *, back: str = "") -> None:
        """Compare two versions of a criterion (hashes) over the stored runs of its test. `back`: the row of what is
        compared now that esc leads back to."""
        if not self._composed:
            self._pending = partial(self.open_versions, suite_key, test, criterion, old, new)
            return
        store = self.agenteval.session.store

        def work() -> Comparison:
            specs = stored_spec(store, old), stored_spec(store, new)
            return compare_versions(store, suite_key, test, specs[0], specs[1], criterion)

        def then(found: Comparison) -> None:
            self._versions = _Versions(suite_key, test, criterion, old, new, back)
            self._opened(found)

        self.ask(work, then, group="open", failed=self._failed)

    def projects_changed(self) -> None:
        self.open(Sides())

    def _read_versions(self, one: _Versions) -> None:
        self.open_versions(one.suite_key, one.test, one.criterion, one.old, one.new, back=one.back)

    def _failed(self, error: AgentevalError) -> None:
        if self._found is not None:
            self.agenteval.say_error(error)
            return
        if isinstance(error, NothingHereError):
            self.query_one("#changes", VirtualList).set_empty(nothing_here(error.elsewhere, "H"))
            return
        if error.what == NOTHING_RAN:
            self.query_one("#changes", VirtualList).set_empty(nothing_ran())
            return
        lines = error_lines(error, max(self.size.width - 4, 20))
        hint = ("  s chooses the left side, S the right one; 5: history, 1: suites.", "dim")
        view = self.query_one("#changes", VirtualList)
        view.set_empty([(), *(((" ", ""), *line) for line in lines), (), (hint,)])

    def _opened(self, found: Comparison) -> None:
        self._found, self._known = found, _Known()
        self.query_one("#head", LineBlock).show(self._head_lines)
        self.show_filtered()
        view = self.query_one("#changes", VirtualList)
        if not (self._place and view.move_to_key(self._place)) and view.count > 1:
            view.cursor = 1  # the first row is a section's head
        self._place = ""
        self._go_to_test()
        self._detail()
        self._attribute()

    def _go_to_test(self) -> None:
        """To the first row of the test that was asked for; one that did not change is shown for it."""
        wanted, self._test = self._test, None
        found = self._found
        if wanted is None or found is None:
            return
        asked = [one for one in found.tests if (one.suite_key, one.test) == wanted]
        if asked and all(one.state == "same" for one in asked) and not self._everything:
            self._everything = True
            self.show_filtered()
        view = self.query_one("#changes", VirtualList)
        rows = view.source.rows if isinstance(view.source, CompareRows) else ()
        keys = (one.key for one in rows if one.change is not None and one.change in asked)
        if (key := next(keys, None)) is not None:
            view.move_to_key(key)

    def _empty(self) -> list[Line]:
        if self._found is None:
            return [(), (("  Nothing is compared yet.", ""),)]
        if self._words:
            return [(), (("  No test or criterion has these words.", ""),), (("  esc clears the filter.", "dim"),)]
        return [
            (),
            (("  Nothing changed: every test passes as often, with the same scores.", "passed"),),
            (("  f shows the unchanged tests too.", "dim"),),
        ]

    def show_filtered(self) -> None:
        """Show the rows that have the words, and the chosen one in full."""
        found = self._found
        if found is None:
            return
        view = self.query_one("#changes", VirtualList)
        rows = rows_of(found, everything=self._everything, words=self._words)
        view.set_empty(self._empty())
        view.set_source(CompareRows(rows, self._known.attributed, versions=self._of_versions), keep_key=view.cursor_key)
        self.retitle()
        self._detail()

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        found = self._found
        if found is None:
            return (), ()
        counts = found.counts()
        worse, better = counts.get("worse", 0), counts.get("better", 0)
        cells: list[Cell] = [(f"{count(worse, 'test')} worse", "bold failed" if worse else "dim")]
        cells += [("   ", ""), (f"{count(better, 'test')} better", "bold passed" if better else "dim")]
        if mixed := counts.get("mixed", 0):
            cells.append((f"   {count(mixed, 'test')} both ways", "bold review"))
        if self._words:
            cells.append((f"   “{one_line(self._words, 30)}”", ""))
        return tuple(cells), ((count(len(found.tests), "test"), "dim"),)

    @property
    def _of_versions(self) -> bool:
        """Whether two versions of a criterion stand beside each other: the outputs are the same."""
        return self._found is not None and self._found.a.kind == "version"

    def _head_lines(self, width: int) -> list[Line]:
        return head_lines(self._found, width) if self._found is not None else []

    # Who changed it

    def _attribute(self) -> None:
        """Find out who changed the next test; the one under the cursor first, then down the list."""
        found, known = self._found, self._known
        change = self._next()
        if found is None or change is None:
            return
        store = self.agenteval.session.store

        def work() -> tuple[Attributed | None, dict[str, tuple[MetricChange, ...]]]:

            return attribute(store, change.pairs), metric_changes(store, change)

        def then(answer: tuple[Attributed | None, dict[str, tuple[MetricChange, ...]]]) -> None:
            known.attributed[change.key], known.metrics[change.key] = answer
            if self._known is not known:
                return  # other sides are compared by now
            self.query_one("#changes", VirtualList).refresh()
            row = self._row()
            if row is not None and row.change is not None and row.change.key == change.key:
                self._detail()
            self._attribute()

        self.ask(work, then, group="attribution")

    def _next(self) -> TestChange | None:
        found, known = self._found, self._known
        row = self._row()
        if row is not None and row.change is not None and row.change.key not in known.attributed:
            return row.change
        if found is None or len(known.attributed) >= MOST:
            return None
        return next((one for one in found.tests if one.pairs and one.key not in known.attributed), None)

    def _row(self) -> CompareRow | None:
        view = self.query_one("#changes", VirtualList)
        rows = view.source
        if not isinstance(rows, CompareRows) or not 0 <= view.cursor < rows.count():
            return None
        return rows.rows[view.cursor]

    def _detail(self) -> None:
        row = self._row()
        view = self.query_one("#details", LinesView)
        if row is None or row.change is None:
            view.show(lambda width: [], keep_place=False)
            return
        key, known = row.change.key, self._known
        attributed, metrics = known.attributed.get(key), known.metrics.get(key)
        waiting = key not in known.attributed and bool(row.change.pairs)
        versions = self._of_versions
        view.show(
            lambda width: detail_lines(row, width, attributed, metrics, waiting=waiting, versions=versions),
            keep_place=False,
        )

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show the change in full; what is not known of it yet comes next."""
        self.soon(self._follow)

    def _follow(self) -> None:
        self._detail()
        row = self._row()
        if row is not None and row.change is not None and row.change.key not in self._known.attributed:
            self._attribute()

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter, or a click on the chosen row."""
        self.action_open()

    # Actions

    def _change(self) -> TestChange | None:
        row = self._row()
        if row is None or row.change is None:
            self.agenteval.say("Choose a test first.")
            return None
        return row.change

    def action_open(self) -> None:
        """Both transcripts side by side: the run before on the left, as the sides stand here."""
        change = self._change()
        if change is None:
            return
        if change.pair is None:
            self.agenteval.say(f"{one_line(change.label, 60)} was run on one side only.")
            return
        if change.pair[0] == change.pair[1]:
            self.action_inspect()  # two versions of a criterion on the same run
            return
        self.agenteval.show_difference(*change.pair)

    def action_inspect(self) -> None:
        self._inspect(1)

    def action_inspect_before(self) -> None:
        self._inspect(0)

    def _inspect(self, side: int, *, edit: bool = False) -> None:
        row, change = self._row(), self._change()
        if row is None or change is None:
            return
        runs = (change.was_runs, change.now_runs)[side]
        if not runs:
            self.agenteval.say(f"{one_line(change.label, 60)} was not run on the {('left', 'right')[side]}.")
            return
        run = change.pair[side] if change.pair is not None else runs[0]
        names = [one.name for one in change.criteria] if edit else [""]
        name = row.criterion.name if row.criterion is not None else names[0] if names else ""
        self.agenteval.inspect(run, criterion=name, runs=runs, edit=edit)

    def action_everything(self) -> None:
        """Unchanged tests too, or only what changed."""
        self._everything = not self._everything
        self.show_filtered()

    def action_swap(self) -> None:
        """The left side to the right."""
        wanted, found, versions = self._wanted, self._found, self._versions
        if versions is not None:
            self._read_versions(replace(versions, old=versions.new, new=versions.old))
            return
        if wanted is None or found is None:
            return
        if found.a.kind == "baseline":
            self.agenteval.say("The baseline stays on the left: s chooses another left side.")
            return
        a, b = found.a.reference, found.b.reference
        self.open(replace(wanted, a=b, b=a, agents=wanted.agents[::-1], variations=wanted.variations[::-1]))

    def action_left(self) -> None:
        self._choose("left")

    def action_right(self) -> None:
        self._choose("right")

    def _choose(self, side: str) -> None:

        session, found = self.agenteval.session, self._found
        store = session.store
        if found is not None and found.a.kind == "version":
            found = None  # those sides are no executions
        wanted = self._wanted or Sides()

        def answered(chosen: str | None) -> None:
            if chosen:
                self.open(chosen_sides(wanted, found, side, chosen))

        def show(choices: list[Choice]) -> None:
            title = f"Compare: the {side} side"
            self.app.push_screen(ChooseScreen(title, choices, value=_reference(found, side)), answered)

        self.ask(lambda: choices_of(store, found, side, session.projects), show, group="choose")

    def action_baseline(self) -> None:
        """The right side's execution becomes the baseline of its tests."""
        found = self._found
        if found is None:
            return
        if found.b.kind == "version":
            self.agenteval.say("Two versions of a criterion are compared: no execution to set. s chooses one.")
            return
        ask_for_baseline(self, found.b)

    def action_clear_baseline(self) -> None:
        """Take the chosen test's baseline away; asks."""
        change = self._change()
        if change is not None:
            ask_to_clear(self, change.suite_key, change.test)

    def action_versions(self) -> None:
        """The versions of the chosen criterion."""
        row, change = self._row(), self._change()
        if row is None or change is None:
            return
        names = [one.name for one in change.criteria]
        name = row.criterion.name if row.criterion is not None else names[0] if names else ""
        if not name:
            self.agenteval.say("This test has no criterion.")
            return

        def beside(old: str, new: str) -> None:
            self.open_versions(change.suite_key, change.test, name, old, new, back=row.key)

        show_versions(self, change.suite_key, change.test, name, compare=beside)

    def action_causes(self) -> None:
        """Why the right side's runs failed: decide about each cause once."""
        found = self._found
        if found is not None and len(found.b.executions) == 1:
            self.agenteval.show_causes(found.b.executions[0])
        else:
            self.agenteval.say("Causes are of one execution: s and S choose other sides.")

    def action_edit(self) -> None:
        """The config of the chosen criterion, beside the run on the right."""
        self._inspect(1, edit=True)

    def action_quarantine(self) -> None:
        """Let the chosen test (or criterion) run, and not gate."""

        change = self._change()
        if change is None:
            return
        store, names = self.agenteval.session.store, [one.name for one in change.criteria]

        def done(said: str | None) -> None:
            if said:
                self.agenteval.say(said)
                self.action_reload()

        def show(held: Quarantined) -> None:
            mine = [one for one in held if (one.suite_key, one.test_id) == (change.suite_key, change.test)]
            self.app.push_screen(QuarantineScreen(change.suite_key, change.test, criteria=names, held=mine), done)

        self.ask(lambda: active(store), show, group="quarantine")

    def action_copy(self) -> None:
        """Copy the command that prints this comparison."""
        found, wanted, versions = self._found, self._wanted, self._versions
        if versions is not None:
            name = f"{versions.test}/{versions.criterion}"
            self._copy("agenteval", "criterion", name, "--compare", versions.old[:8], versions.new[:8])
            return
        if found is None or wanted is None:
            return
        words = ["agenteval", "compare", found.a.reference, found.b.reference]
        words += [word for one in wanted.agents for word in ("--agent", one)]
        words += [word for one in wanted.variations for word in ("--variation", one)]
        self._copy(*words)

    def _copy(self, *words: str) -> None:
        command = command_line(*words)
        self.app.copy_to_clipboard(command)
        self.agenteval.say(f"Copied: {command}")

    def action_reload(self) -> None:
        self._place = self.query_one("#changes", VirtualList).cursor_key or ""
        if self._versions is not None:
            self._read_versions(self._versions)
        elif self._wanted is not None:
            self.open(self._wanted)

    def action_next_pane(self) -> None:
        view, details = self.query_one("#changes", VirtualList), self.query_one("#details", LinesView)
        (view if details.has_focus else details).focus()

    # The way back

    def step_back(self) -> bool:
        if super().step_back():
            return True
        if self._versions is not None and self._versions.back and self._wanted is not None:
            self._place = self._versions.back
            self.open(self._wanted)  # from two versions of a criterion to what was compared before
            return True
        return False


def _reference(found: Comparison | None, side: str) -> str:
    if found is None:
        return ""
    return found.a.reference if side == "left" else found.b.reference
