"""The Compare screen: two executions, agents, variations or a baseline; what got worse comes first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import permutations
from typing import ClassVar

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize, ScreenResume

from agenteval_tui.analysis.comparison_model import Comparison, SidesError, TestChange
from agenteval_tui.analysis.comparison_sides import BASELINE, NothingBeforeError, Sides, names_of
from agenteval_tui.core.display import command_line, one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count, moment, percent
from agenteval_tui.history.baselines import baselines_of, has_baselines
from agenteval_tui.history.comparison_queries import ComparedRun
from agenteval_tui.history.errors import NothingRanError
from agenteval_tui.history.quarantines import ActiveQuarantines, active
from agenteval_tui.history.records import ExecutionRow, RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.tui.actions import bindings, keyed, named_keys
from agenteval_tui.tui.presenters.comparison import CompareRow
from agenteval_tui.tui.presenters.status_style import ARROW
from agenteval_tui.tui.screen_registry import ask
from agenteval_tui.tui.screens.baseline_dialogs import ask_for_baseline, ask_to_clear
from agenteval_tui.tui.screens.compare.controller import (
    PURPOSE,
    ChangeReasons,
    CompareController,
    Versions,
    explain,
    newest_execution,
    read_comparison,
    read_versions,
)
from agenteval_tui.tui.screens.criterion_versions import show_versions
from agenteval_tui.tui.screens.filterable_screen import FilteredScreen, without_runs
from agenteval_tui.tui.screens.select_dialog import Choice, SelectScreen
from agenteval_tui.tui.styled_text import Cell, Line, empty_state, error_state
from agenteval_tui.tui.widgets.filter_box import FilterBox
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import is_busy

EXECUTIONS = 200  # to choose from: older ones are chosen in History
WIDE = 180  # columns from which a change is shown in full beside the list
CHOOSE_SIDES = "Press {compare.left} to choose the left side, or {compare.right} to choose the right one."
OTHER_SIDES = "press {compare.left} to choose another left side, or {compare.right} another right one"
NOTHING_BEFORE = (
    "No execution before has a verdict on these tests, and they have no baseline.",
    "{go.suites}",
    "go to the suites; run the tests again, then see here what changed",
    CHOOSE_SIDES,
)
_PAIRS = 12  # of agents or variations, at most


class CompareScreen(FilteredScreen):
    """The list of changes, and the chosen one in full. Who changed what is found out in the background.

    What is compared and listed is the controller's.
    """

    SCOPE = "compare"
    LIST = "#changes"
    BINDINGS: ClassVar[list[BindingType]] = bindings("compare")

    def __init__(self) -> None:
        super().__init__()
        self.controller = CompareController()
        self._composed = False
        self._pending: Callable[[], None] | None = None  # what was to be compared before the screen was there
        self._explaining: list[TestChange] = []  # the tests of which the metrics were asked last
        self._renews = False  # whether the next look for a newer execution compares it

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._head, id="head")
        yield FilterBox("words in tests and criteria", id="search")
        with Container(id="body"):
            yield VirtualList(empty=self.controller.empty(), id="changes")
            yield LinesView(id="details")
        yield self.key_bar()

    def on_mount(self) -> None:
        self._composed = True
        self._list.focus()
        if self._pending is not None:
            self._pending()
        else:
            self.open(Sides())

    def on_resize(self, event: Resize) -> None:
        self.update_classes({"narrow": event.size.width < self.NARROW, "wide": event.size.width >= WIDE})

    @property
    def _row(self) -> CompareRow | None:
        return self.controller.row_at(self._list.cursor)

    # What is compared

    def compare(self, a: str, b: str, test: tuple[str, str] | None) -> None:
        """As `open`; the sides as `Services.compare` takes them."""
        self.open(Sides(a, b), test)

    def open(self, sides: Sides, test: tuple[str, str] | None = None, *, earlier: Comparison | None = None) -> None:
        """Compare these sides; without any: the newest execution with its baseline. `test`: the suite's key and the id
        of the test to begin with. `earlier`: what is shown, and stays as it is where nothing changed."""
        if not self._composed:
            self._pending = partial(self.open, sides, test)
            return
        session = self.agenteval.session
        if self.controller.comparison is None:
            self._list.set_empty([(), (("  comparing …", "dim"),)])

        def then(comparison: Comparison) -> None:
            # Nothing has changed: not even a row is painted anew.
            if comparison is earlier:
                return
            # It is read again: the cursor stays where it is.
            if earlier is not None:
                self.controller.place = self._list.cursor_key or ""
            self.controller.take(comparison, sides, test)
            self._show()
            self._look_for_newer()

        self.ask(lambda: read_comparison(session, sides, earlier), then, group="open", failed=self._failed)

    def open_versions(self, suite_key: str, test: str, criterion: str, old: str, new: str) -> None:
        """Compare two versions of a criterion (hashes) over the stored runs of its test."""
        self._open_versions(Versions(suite_key, test, criterion, old, new))

    def _open_versions(self, versions: Versions) -> None:
        if not self._composed:
            self._pending = partial(self._open_versions, versions)
            return
        session = self.agenteval.session

        def then(comparison: Comparison) -> None:
            self.controller.take_versions(comparison, versions)
            self._show()

        self.ask(lambda: read_versions(session, versions), then, group="open", failed=self._failed)

    def projects_changed(self) -> None:
        self.open(Sides())

    def on_screen_resume(self, event: ScreenResume) -> None:
        self.new_runs()

    def new_runs(self) -> None:
        """What is compared may have been waiting for them."""
        if self.controller.waits:
            self.action_reload()
        else:
            self._look_for_newer()

    def _look_for_newer(self, *, renew: bool = False) -> None:
        """Say that there is a newer execution than the one that is compared. `renew`: compare it, where that one was
        the newest."""
        controller, session = self.controller, self.agenteval.session
        if controller.comparison is None or controller.of_versions:
            return

        # The look that the key asked for may be replaced by the one of the screen's return.
        self._renews = self._renews or renew

        def then(newest: str) -> None:
            renews, self._renews = self._renews, False
            if controller.note_newest(newest) and renews and controller.followed_newest:
                self.open(Sides())
            else:
                self.query_one("#head", LineBlock).retell()

        self.ask(lambda: newest_execution(session), then, group="newest", failed=lambda error: None)

    def revisited(self) -> None:
        """There may be a newer execution than the one that is compared, or another baseline.

        What waits for runs is read again anyway, as the screen is resumed.
        """
        if not self.controller.of_newest:
            self._look_for_newer(renew=True)
        elif not self.controller.waits:
            self.open(Sides(), earlier=self.controller.comparison)

    def action_reload(self) -> None:
        self.controller.place = self._list.cursor_key or ""
        if self.controller.versions is not None:
            self._open_versions(self.controller.versions)
        elif self.controller.outdated and self.controller.followed_newest:
            self.open(Sides())
        else:
            self.open(self.controller.sides or Sides())

    def action_swap(self) -> None:
        """The left side to the right."""
        swapped = self.controller.swapped()
        if isinstance(swapped, str):
            self.agenteval.say(swapped)
        elif isinstance(swapped, Versions):
            self._open_versions(swapped)
        elif swapped is not None:
            self.open(swapped)

    def action_left(self) -> None:
        self._choose("left")

    def action_right(self) -> None:
        self._choose("right")

    def _choose(self, side: str) -> None:
        session, comparison = self.agenteval.session, self.controller.executions
        sides, value = self.controller.sides or Sides(), self.controller.reference(side)

        def answered(chosen: str | None) -> None:
            if chosen:
                self.open(_chosen_sides(sides, comparison, side, chosen))

        def read(then: Callable[[Sequence[Choice]], None]) -> None:
            self.ask(lambda: _choices_of(session.store, comparison, side, session.projects), then, group="choose")

        def show(choices: Sequence[Choice]) -> None:
            if not choices:
                self.agenteval.say("No execution has ended yet.")
                return
            self.app.push_screen(
                SelectScreen(f"Compare: the {side} side", choices, value=value, read_again=read), answered
            )

        read(show)

    def step_back(self) -> bool:
        if super().step_back():
            return True
        before = self.controller.before_versions()
        if before is not None:
            self.open(before)
        return before is not None

    # What is shown

    def _show(self) -> None:
        """Another comparison, or the same one read again."""
        view, place = self._list, self.controller.place
        self.query_one("#head", LineBlock).retell()
        self.show_filtered()
        if not (place and view.move_to_key(place)) and view.count > 1:
            view.cursor = 1  # the first row is a section's head
        self.controller.place = ""
        if key := self.controller.go_to_test():
            self.show_filtered()
            view.move_to_key(key)
        self._detail()
        self._explain()

    def _failed(self, error: AgentevalError) -> None:
        if isinstance(error, SidesError):  # its own remedy is a command, and a screen names keys
            error.fix = OTHER_SIDES
        if self.controller.comparison is not None:
            self.agenteval.say_error(error)
            return
        self.add_class("nothing")
        self._nothing_ran = isinstance(error, NothingRanError)
        self.rekey()
        if (lines := without_runs(error, PURPOSE)) is not None:
            self._list.set_empty(lines)
        elif isinstance(error, NothingBeforeError):
            self._list.set_empty(empty_state(PURPOSE, *NOTHING_BEFORE))
        else:
            hint: Line = () if isinstance(error, SidesError) else ((f"  {CHOOSE_SIDES}", "dim"),)
            self._list.set_empty([*error_state(error, self.size.width), (), hint])

    def show_filtered(self) -> None:
        """Show the rows that have the words, and the chosen one in full."""
        self.controller.words = self._words
        self.controller.arrange()
        rows, view = self.controller.rows, self._list
        if rows is not None:
            view.set_empty(self.controller.empty())
            view.set_source(rows, keep_key=view.cursor_key)
            self.set_class(not rows.count(), "nothing")
            self.rekey()
            self.retitle()
            self._detail()

    def action_everything(self) -> None:
        """Unchanged tests too, or only what changed."""
        self.controller.everything = not self.controller.everything
        self.show_filtered()

    def _head(self, width: int) -> list[Line]:
        return keyed(self.controller.head(width), self.agenteval.keymap)

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        return self.controller.heading()

    def keys(self) -> list[tuple[str, str, str]]:
        """Only what does something with what is shown."""
        rows, keymap = self.controller.rows, self.agenteval.keymap
        if self._nothing_ran and rows is None:
            return self.keys_without_runs()
        if rows is not None and rows.count():
            return super().keys()
        names = ["everything", "baseline", "left", "right"] if rows is not None else ["left", "right"]
        return [*named_keys(self.SCOPE, names, keymap), *super().keys()[-1:]]

    def _detail(self) -> None:
        row = self._row
        self.query_one("#details", LinesView).show(lambda width: self.controller.detail(row, width), keep_place=False)

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show the change in full; what is not known of it yet comes next."""
        self.show_soon(self._follow)

    def _follow(self) -> None:
        self._detail()
        if self.controller.lacks_explanation(self._row):
            self._explain()

    def _explain(self) -> None:
        """Find out who changed the next tests: the one under the cursor and those in view, then down the list."""
        in_view = filter(None, map(self.controller.row_at, self._list.in_view))
        comparison, reasons_to_read = self.controller.comparison, self.controller.next_to_explain(self._row, in_view)
        if comparison is None or reasons_to_read is None:
            return
        if reasons_to_read.in_view and reasons_to_read.metrics == self._explaining and is_busy(self, "attribution"):
            return  # of the row under the cursor it is asked already
        self._explaining = reasons_to_read.metrics
        session = self.agenteval.session

        def then(answer: ChangeReasons) -> None:
            if not self.controller.take_explanation(comparison, answer):
                return
            if answer.attributed:
                self._list.refresh()
            row = self._row
            if row is not None and row.change is not None and row.change.key in {**answer.attributed, **answer.metrics}:
                self._detail()
            self._explain()

        beside, painted = True, not reasons_to_read.in_view
        self.ask(lambda: explain(session, reasons_to_read), then, group="attribution", beside=beside, painted=painted)

    # What a person does with a change

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Enter, or a click on the chosen row."""
        self.action_open()

    def _chosen(self) -> tuple[CompareRow, TestChange] | None:
        """The row with the cursor and its test; says so where there is none."""
        row = self._row
        if row is None or row.change is None:
            self.agenteval.say("Choose a test first.")
            return None
        return row, row.change

    def action_open(self) -> None:
        """Both transcripts side by side: the run before on the left, as the sides stand here."""
        chosen = self._chosen()
        if chosen is None:
            return
        _, change = chosen
        if change.pair is None:
            self.agenteval.say(f"{one_line(change.label, 60)} ran on one side only.")
        elif change.pair[0] == change.pair[1]:
            self.action_inspect()  # two versions of a criterion on the same run
        else:
            self.agenteval.show_difference(*change.pair)

    def action_inspect(self) -> None:
        self._inspect(1)

    def action_inspect_before(self) -> None:
        self._inspect(0)

    def action_edit(self) -> None:
        """The config of the chosen criterion, beside the run on the right."""
        self._inspect(1, edit=True)

    def _inspect(self, side: int, *, edit: bool = False) -> None:
        chosen = self._chosen()
        if chosen is None:
            return
        request = self.controller.run_to_open(chosen[0], side, edit=edit)
        if isinstance(request, str):
            self.agenteval.say(request)
        else:
            self.agenteval.inspect(request.run, criterion=request.criterion, runs=request.runs, edit=edit)

    def action_versions(self) -> None:
        """The versions of the chosen criterion."""
        chosen = self._chosen()
        if chosen is None:
            return
        row, change = chosen
        name = self.controller.criterion(row)
        if not name:
            self.agenteval.say("This test has no criterion.")
            return

        def beside(old: str, new: str) -> None:
            self._open_versions(Versions(change.suite_key, change.test, name, old, new, back=row.key))

        show_versions(self, change.suite_key, change.test, name, compare=beside)

    def action_quarantine(self) -> None:
        """Let the chosen test (or criterion) run, and not gate."""
        chosen = self._chosen()
        if chosen is None:
            return
        (row, change), session = chosen, self.agenteval.session
        names = [criterion.name for criterion in change.criteria]
        of_test = (change.suite_key, change.test)

        def show(held: ActiveQuarantines) -> None:
            mine = [quarantine for quarantine in held if (quarantine.suite_key, quarantine.test_id) == of_test]
            criterion = row.criterion.name if row.criterion is not None else ""
            ask(
                "quarantine_test",
                self,
                self.action_reload,
                *of_test,
                criterion=criterion,
                criteria=names,
                held=mine,
            )

        self.ask(lambda: active(session.store), show, group="quarantine")

    def action_clear_baseline(self) -> None:
        """Take the chosen test's baseline away; asks."""
        chosen = self._chosen()
        if chosen is not None:
            ask_to_clear(self, chosen[1].suite_key, chosen[1].test)

    # And with the whole

    def action_baseline(self) -> None:
        """The right side's execution becomes the baseline of its tests."""
        comparison = self.controller.comparison
        if self.controller.of_versions:
            self.agenteval.say("These are versions, not executions. Press {compare.left} to choose executions.")
        elif comparison is not None:
            ask_for_baseline(self, comparison.b)
        else:
            self._say_nothing_is_compared()

    def action_causes(self) -> None:
        """Why the right side's runs failed: decide about each cause once."""
        comparison = self.controller.comparison
        if comparison is not None and len(comparison.b.executions) == 1:
            self.agenteval.show_causes(comparison.b.executions[0])
        else:
            self.agenteval.say("Causes belong to one execution. Press {compare.right} to choose one.")

    def action_copy(self) -> None:
        """Copy the command that prints this comparison."""
        words = self.controller.command()
        if words is None:
            self._say_nothing_is_compared()
            return
        command = command_line(*words) + self.agenteval.session.db_option
        self.agenteval.copy(command, command)

    def _say_nothing_is_compared(self) -> None:
        self.agenteval.say("Nothing is compared yet. Press {compare.left} or {compare.right} to choose an execution.")


def _choices_of(store: Store, comparison: Comparison | None, side: str, projects: tuple[str, ...] = ()) -> list[Choice]:
    """What can stand on a side, of these projects (none: of all).

    Of the left one also pairs of agents and variations within the right execution.
    """
    choices: list[Choice] = []
    if side == "left":
        tests = {(run.suite_key, run.test_id) for run in comparison.b.runs} if comparison is not None else set()
        if baselines_of(store, tests) if tests else has_baselines(store):
            choices.append((BASELINE, "baseline", "the baseline runs of these tests"))
        if comparison is not None:
            for kind, names in zip(("agent", "variation"), names_of(comparison.b.runs), strict=True):
                for first, other in list(_comparable(comparison.b.runs, kind, names))[:_PAIRS]:
                    about = f"two {kind}s of the right execution, compared with each other"
                    choices.append((f"{kind}\x1f{first}\x1f{other}", f"{first} {ARROW} {other}", about))
    rows = [
        row for row in store.execution_rows(store.execution_ids(RunFilter(projects=projects))[:EXECUTIONS]) if row.ended
    ]
    if comparison is not None:
        # What has tests in common with the other side is what is meant; recordings of other tools come behind.
        suites = {run.suite_key for run in (comparison.b if side == "left" else comparison.a).runs}
        rows.sort(key=lambda row: not suites.intersection(row.suite_keys))
    return [*choices, *map(_execution, rows)]


def _comparable(runs: Sequence[ComparedRun], kind: str, names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs of agents (or variations) that ran a test in common, both ways round."""
    index = ("agent", "variation").index(kind)
    tests: dict[str, set[tuple[str, str]]] = {}
    for run in runs:
        tests.setdefault(names_of([run])[index][0], set()).add((run.suite_key, run.test_id))
    return ((first, other) for first, other in permutations(names, 2) if tests[first] & tests[other])


def _execution(row: ExecutionRow) -> Choice:
    decided = row.passed + row.failed
    share = f"{percent(row.passed / decided)} of runs" if decided else "nothing decided"
    name = row.title or row.suites or row.id
    return row.id, name, f"{moment(row.started_ms)}  {count(row.runs, 'run')}  {share}  {row.agents}"


def _chosen_sides(sides: Sides, comparison: Comparison | None, side: str, chosen: str) -> Sides:
    """The two sides, with what was chosen on one side."""
    kind, _, names = chosen.partition("\x1f")
    right = sides.b if comparison is None else comparison.b.reference
    if names:
        pair = tuple(names.split("\x1f"))
        new_sides = replace(sides, a="", b=right, agents=(), variations=())
        return replace(new_sides, agents=pair) if kind == "agent" else replace(new_sides, variations=pair)
    new_sides = replace(sides, agents=sides.agents[:1] * (len(sides.agents) < 2), variations=())
    if side == "left":
        return replace(new_sides, a=chosen, b=right)
    reference = sides.a
    if comparison is not None and comparison.a.kind not in ("agent", "variation"):
        reference = comparison.a.reference
    return replace(new_sides, a=reference, b=chosen)
