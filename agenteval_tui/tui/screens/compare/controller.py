"""What the Compare screen compares, which changes it lists, and what its actions are meant for. It knows no widget."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.analysis.attribution import Attributed, attribute
from agenteval_tui.analysis.comparison import compare, metric_changes
from agenteval_tui.analysis.comparison_model import Comparison, MetricChange, TestChange, TestKey
from agenteval_tui.analysis.comparison_sides import Sides, sides_of
from agenteval_tui.analysis.criterion_versions import compare_versions, stored_spec
from agenteval_tui.analysis.regressions import Regressions, regressions_of
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_hash
from agenteval_tui.core.numbers import count
from agenteval_tui.history.quarantines import active
from agenteval_tui.history.references import References
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.inspect_target import RunToOpen
from agenteval_tui.tui.presenters.comparison import CompareRow, CompareRows, detail_lines, head_lines, rows_of
from agenteval_tui.tui.styled_text import Cell, Line, empty_state
from agenteval_tui.views.comparison import regressed_words

MOST = 300
"""Tests that are explained by themselves; further ones when the cursor comes to them."""
_AT_A_TIME_S = 0.1
"""How long tests are explained before the result so far is shown."""


PURPOSE = "What got worse or better between two executions, by criterion, and what changed it."


class Versions(Struct, frozen=True):
    """Two versions of a criterion (hashes) over the stored runs of its test.

    `back` is the row of the comparison before that esc leads to; "": esc leaves the screen.
    """

    suite_key: str
    test: str
    criterion: str
    old: str
    new: str
    back: str = ""


class ChangeReasons(Struct):
    """What was found out of the changes of one comparison, by the test's key."""

    attributed: dict[TestKey, Attributed | None] = field(default_factory=dict)
    metrics: dict[TestKey, Mapping[str, tuple[MetricChange, ...]]] = field(default_factory=dict)


class ReasonsToRead(Struct, frozen=True):
    """The tests to explain next: `who` changed their verdicts, by criterion what their `metrics` say now.

    `in_view`: the person sees them.
    """

    who: list[TestChange]
    metrics: list[TestChange]
    in_view: bool = False


def read_comparison(session: Session, sides: Sides, earlier: Comparison | None = None) -> Comparison:
    """Compare these sides; `earlier` itself where the same runs and quarantines would be compared again.

    Raises `AgentevalError`.
    """
    a, b = sides_of(session.store, sides, session.projects)
    quarantined = active(session.store)
    # What criteria said of a run that has ended is never written again.
    if earlier is not None and (earlier.a, earlier.b) == (a, b) and earlier.held_by(quarantined):
        return earlier
    comparison = compare(session.store, a, b, quarantined=quarantined)
    comparison.check_in_common()
    return comparison


def newest_execution(session: Session) -> str:
    """The id of the newest execution of the projects that are looked at. Raises `AgentevalError`."""
    return References(session.store, session.projects).execution().id


def read_versions(session: Session, versions: Versions) -> Comparison:
    """Compare two versions of a criterion. Raises `AgentevalError`."""
    old, new = stored_spec(session.store, versions.old), stored_spec(session.store, versions.new)
    return compare_versions(session.store, versions.suite_key, versions.test, old, new, versions.criterion)


def explain(session: Session, reasons_to_read: ReasonsToRead) -> ChangeReasons:
    """Explain the first of these tests, and further ones as far as the time allows."""
    change_reasons, end = ChangeReasons(), time.monotonic() + _AT_A_TIME_S
    for change in reasons_to_read.who:
        change_reasons.attributed[change.key] = attribute(session.store, change.pairs)
        if time.monotonic() >= end:
            return change_reasons
    for change in reasons_to_read.metrics:
        change_reasons.metrics[change.key] = metric_changes(session.store, change)
        if time.monotonic() >= end:
            return change_reasons
    return change_reasons


class CompareController:
    """The state of the Compare screen. `row` in its methods is the one with the cursor."""

    def __init__(self) -> None:
        self.comparison: Comparison | None = None  # None: nothing is compared yet
        self.sides: Sides | None = None  # what was compared last, two versions left aside
        self.versions: Versions | None = None  # two versions of a criterion are compared
        self.rows: CompareRows | None = None
        self.everything = False
        self.words = ""
        self.newest = ""  # the newest execution when it was compared
        self.outdated = False  # there is a newer one by now
        self.place = ""  # the row that the cursor goes to when what is read is there
        self._test: tuple[str, str] | None = None  # the suite's key and id of the test that the cursor goes to then
        self._explained = ChangeReasons()
        self._regressions = Regressions()

    # What is compared

    def take(self, comparison: Comparison, sides: Sides, test: tuple[str, str] | None = None) -> None:
        """These sides are compared now. `test`: the suite's key and the id of the test to begin with."""
        self.sides, self.versions, self._test = sides, None, test
        self._take(comparison)

    def take_versions(self, comparison: Comparison, versions: Versions) -> None:
        """Two versions of a criterion are compared now; what was compared before is a step back."""
        self.versions, self._test = versions, None
        self._take(comparison)

    def _take(self, comparison: Comparison) -> None:
        self.comparison, self._explained = comparison, ChangeReasons()
        self._regressions = regressions_of(comparison)
        self.newest, self.outdated = "", False
        self.arrange()

    @property
    def of_versions(self) -> bool:
        """Whether two versions of a criterion stand beside each other: the outputs are the same."""
        return self.comparison is not None and self.comparison.a.kind == "version"

    @property
    def of_newest(self) -> bool:
        """Is the newest execution compared, whichever that is? Where nothing could be compared it is asked for."""
        return self.versions is None and self.sides in (None, Sides())

    def note_newest(self, execution: str) -> bool:
        """This is the newest execution now. True: it differs from the newest when this was compared."""
        # Versions of a criterion may be compared by the time that the history answers: they have no newest execution.
        before, self.newest = self.newest, self.newest or execution
        self.outdated = bool(before) and before != execution and not self.of_versions
        return self.outdated

    @property
    def followed_newest(self) -> bool:
        """Was the execution on the right the newest one when it was compared?"""
        return self.comparison is not None and not self.of_versions and self.newest in self.comparison.b.executions

    @property
    def news(self) -> str:
        """What has happened since it was compared; "" for nothing."""
        if not self.outdated:
            return ""
        news = "{compare.refresh} to compare it" if self.followed_newest else "{compare.right} to choose it"
        return f"there is a newer execution: press {news}"

    @property
    def waits(self) -> bool:
        """Are there runs on either side that have not ended?"""
        return self.comparison is not None and bool(self.comparison.a.waiting or self.comparison.b.waiting)

    def swapped(self) -> Sides | Versions | str | None:
        """The left side to the right: what to compare then, or why that can't be; None: nothing is compared."""
        comparison, sides, versions = self.comparison, self.sides, self.versions
        if versions is not None:
            return replace(versions, old=versions.new, new=versions.old)
        if sides is None or comparison is None:
            return None
        if comparison.a.kind == "baseline":
            return "The baseline stays on the left. Press {compare.left} to choose another left side."
        a, b = comparison.a.reference, comparison.b.reference
        return replace(sides, a=b, b=a, agents=sides.agents[::-1], variations=sides.variations[::-1])

    def before_versions(self) -> Sides | None:
        """What was compared before two versions of a criterion, at its row; None: there is no way back to it."""
        if self.versions is None or not self.versions.back or self.sides is None:
            return None
        self.place = self.versions.back
        return self.sides

    @property
    def executions(self) -> Comparison | None:
        """The comparison, where its sides are executions."""
        return None if self.of_versions else self.comparison

    def reference(self, side: str) -> str:
        """How the "left" or "right" side is named; "" if it is not an execution."""
        comparison = self.executions
        if comparison is None:
            return ""
        return comparison.a.reference if side == "left" else comparison.b.reference

    def command(self) -> list[str] | None:
        """The command that prints this comparison; None: nothing is compared."""
        comparison, sides, versions = self.comparison, self.sides, self.versions
        if versions is not None:
            name = f"{versions.test}/{versions.criterion}"
            return ["agenteval", "criterion", name, "--compare", short_hash(versions.old), short_hash(versions.new)]
        if comparison is None or sides is None:
            return None
        words = ["agenteval", "compare", comparison.a.reference, comparison.b.reference]
        words += [word for agent in sides.agents for word in ("--agent", agent)]
        return [*words, *(word for variation in sides.variations for word in ("--variation", variation))]

    # The rows

    def arrange(self) -> None:
        """Rebuild the rows: those that have the words, unchanged tests only where `everything` is shown."""
        if self.comparison is not None:
            rows = rows_of(self.comparison, everything=self.everything, words=self.words)
            self.rows = CompareRows(rows, self._explained.attributed, versions=self.of_versions)

    def row_at(self, index: int) -> CompareRow | None:
        """The row at `index`; None where there is none."""
        return self.rows.rows[index] if self.rows is not None and 0 <= index < self.rows.count() else None

    def go_to_test(self) -> str:
        """The first row of the test that was asked for ("" for none); one that did not change is shown for it."""
        test_key, self._test = self._test, None
        if test_key is None or self.comparison is None or self.rows is None:
            return ""
        test_changes = [test for test in self.comparison.tests if (test.suite_key, test.test) == test_key]
        if test_changes and all(test_change.state == "same" for test_change in test_changes) and not self.everything:
            self.everything = True
            self.arrange()
        keys = (row.key for row in self.rows.rows if row.change is not None and row.change in test_changes)
        return next(keys, "")

    def criterion(self, row: CompareRow) -> str:
        """The row's criterion, else the first of its test; "" for none."""
        if row.criterion is not None:
            return row.criterion.name
        return next((criterion.name for criterion in row.change.criteria), "") if row.change is not None else ""

    def run_to_open(self, row: CompareRow, side: int, *, edit: bool) -> RunToOpen | str:
        """The run of the left (0) or right (1) side; or why there is none. `edit`: with its criterion's config."""
        change = row.change
        if change is None:
            return "Choose a test first."
        runs = (change.was_runs, change.now_runs)[side]
        if not runs:
            return f"{one_line(change.label, 60)} was not run on the {('left', 'right')[side]}."
        run = change.pair[side] if change.pair is not None else runs[0]
        return RunToOpen(run, self.criterion(row) if edit or row.criterion is not None else "", runs)

    # Whose doing it was

    def next_to_explain(self, row: CompareRow | None, in_view: Iterable[CompareRow] = ()) -> ReasonsToRead | None:
        """What to explain now: the test under the cursor, with who changed the others `in_view`; who changed those that
        are listed; then their metrics, which are seen when the cursor comes to them. None: all are explained."""
        change_reasons = self._explained
        flipped = [test for test in self.comparison.tests if test.pairs][:MOST] if self.comparison is not None else []
        unattributed = [test for test in flipped if test.key not in change_reasons.attributed]
        if row is not None and row.change is not None and self.lacks_explanation(row):
            own = row.change.key
            keys = {compare_row.change.key for compare_row in in_view if compare_row.change is not None}
            beside = [test for test in unattributed if test.key in keys and test.key != own]
            who = beside if own in change_reasons.attributed else [row.change, *beside]
            return ReasonsToRead(who, [row.change], in_view=True)
        if unattributed:
            return ReasonsToRead(unattributed, [])
        unmeasured = [test for test in flipped if test.key not in change_reasons.metrics]
        return ReasonsToRead([], unmeasured) if unmeasured else None

    def lacks_explanation(self, row: CompareRow | None) -> bool:
        """Is there something of the row's test that is not known yet?"""
        return row is not None and row.change is not None and row.change.key not in self._explained.metrics

    def take_explanation(self, of: Comparison, answer: ChangeReasons) -> bool:
        """What was found out of some tests. False: another comparison is shown by now."""
        if self.comparison is not of:
            return False
        self._explained.attributed.update(answer.attributed)
        self._explained.metrics.update(answer.metrics)
        return True

    # Lines

    def detail(self, row: CompareRow | None, width: int) -> list[Line]:
        """The row's change in full."""
        if row is None or row.change is None:
            return []
        change_reasons, key = self._explained, row.change.key
        return detail_lines(
            row,
            width,
            change_reasons.attributed.get(key),
            change_reasons.metrics.get(key),
            waiting=key not in change_reasons.attributed and bool(row.change.pairs),
            versions=self.of_versions,
            regressed=regressed_words(row.change, self._regressions),
        )

    def head(self, width: int) -> list[Line]:
        """What is compared, and how it went as a whole."""
        return head_lines(self.comparison, width, self.news) if self.comparison is not None else []

    def empty(self) -> list[Line]:
        """What is shown instead of rows."""
        if self.comparison is None:
            return empty_state(PURPOSE, "Nothing is compared yet.")
        if self.words:
            return empty_state("", "No test or criterion matches these words.", "{everywhere.back}", "clear the filter")
        message = "Nothing changed: pass rates and scores are the same."
        return empty_state("", message, "{compare.everything}", "show the unchanged tests too", style="passed")

    def heading(self) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        """The left and right texts of the title."""
        if self.comparison is None:
            return (), ()
        counts = self.comparison.counts()
        worse, better = counts.get("worse", 0), counts.get("better", 0)
        cells: list[Cell] = [(f"{count(worse, 'test')} worse", "bold failed" if worse else "dim")]
        cells += [("   ", ""), (f"{count(better, 'test')} better", "bold passed" if better else "dim")]
        if mixed := counts.get("mixed", 0):
            cells.append((f"   {count(mixed, 'test')} both ways", "bold review"))
        if self.words:
            cells.append((f"   “{one_line(self.words, 30)}”", ""))
        return tuple(cells), ((count(len(self.comparison.tests), "test"), "dim"),)
