"""The versions of a criterion: which judged when, how they differ from the one in the file, and restoring one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.criterion_versions import Versions, load, own_spec, restore, text_difference, versions
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_hash
from agenteval_tui.core.numbers import count, moment
from agenteval_tui.history.criterion_versions import CriterionVersion
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.sheet_edges import Keys
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.file_conflict_dialog import diff_lines
from agenteval_tui.tui.styled_text import Cell, Line, fit, left, paragraph, right
from agenteval_tui.tui.terminal.sheet import Sheet, if_answered
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList

COMPARE = "compare:"
_WITH_TIME = 92  # cells of a row that has room for the time of day


def show_versions(
    screen: FrameScreen,
    suite_key: str,
    test: str,
    criterion: str,
    then: Callable[[], None] | None = None,
    compare: Callable[[str, str], None] | None = None,
) -> None:
    """Show the versions of a test's criterion over a screen; `then` is called when one was restored, `compare` with
    two hashes to compare (without it the Compare screen is gone to)."""
    store = screen.agenteval.session.store

    def work() -> Versions:
        return versions(store, suite_key, test, criterion)

    def restored(loaded: LoadedSuite) -> None:
        line = f"{loaded.path.name}:{loaded.line_of(test)}"
        screen.agenteval.say(f"Restored in {line}. The next run uses it.")
        if then is not None:
            then()

    def show(versions: Versions) -> None:
        def answered(chosen: str) -> None:
            if chosen.startswith(COMPARE):
                old, new = chosen.removeprefix(COMPARE).split(":")
                if compare is not None:
                    compare(old, new)
                else:
                    screen.agenteval.compare_versions(suite_key, test, criterion, old, new)
                return

            def write() -> LoadedSuite:
                version = own_spec(store, suite_key, test, criterion, chosen)
                loaded = restore(load(suite_key), test, criterion, version)
                screen.agenteval.session.note_own_write(loaded.path)
                return loaded

            screen.ask(write, restored, group="restore")

        screen.app.push_screen(CriterionVersionsScreen(versions), if_answered(answered))

    screen.ask(work, show, group="versions")


def _line(criterion_version: CriterionVersion, width: int, current: str) -> Line:
    decided = criterion_version.passed + criterion_version.failed
    rate = f"{criterion_version.passed}/{decided} passed" if decided else "none decided"
    cells: list[Cell] = [(" ", ""), (short_hash(criterion_version.hash), "accent"), ("  ", "")]
    cells.append((left("in the file now" if criterion_version.hash == current else "", 16), "bold"))
    cells += [(right(count(criterion_version.runs, "run"), 9), ""), (right(rate, 14), "dim")]
    length = 16 if width >= _WITH_TIME else 10  # `2026-11-21 22:04`, or only the day
    since, last = (moment(ms)[:length] for ms in (criterion_version.first_ms, criterion_version.last_ms))
    cells.append((f"   {since}" + (f" to {last}" if last != since else ""), "dim"))
    return fit(cells, width)


class CriterionVersionsScreen(Sheet[str]):
    """Dismissed with the hash of the version to restore, with two to compare behind `COMPARE`, or None."""

    SCOPE = "versions"
    BINDINGS: ClassVar[list[BindingType]] = bindings("versions")

    def __init__(self, versions: Versions) -> None:
        super().__init__()
        self._versions = versions

    def compose(self) -> ComposeResult:
        versions = self._versions
        subject = f"{one_line(versions.test_id, 60)} / {one_line(versions.criterion, 80)}"
        with SheetFrame(count(len(versions.versions), "version"), self._keys, subject=subject, width="large"):
            if versions.was_named or versions.current not in {version.hash for version in versions.versions}:
                yield LineBlock(self._about, id="about")
            line = partial(_line, current=versions.current)
            yield VirtualList(Rows(versions.versions, line, lambda version: version.hash), id="versions")
            yield Section(self._shown, id="shown")
            yield LinesView(id="text")

    def on_mount(self) -> None:
        self.query_one("#versions", VirtualList).focus()
        self._show()

    def _about(self, width: int) -> list[Line]:
        versions = self._versions
        lines: list[Line] = []
        if versions.was_named:
            lines += paragraph(f"Renamed: it was {one_line(versions.was_named, 80)}.", width, "dim")
        if versions.current not in {version.hash for version in versions.versions}:
            lines += paragraph(_missing(versions), width, "dim")
        return lines

    @property
    def _chosen(self) -> str | None:
        return self.query_one("#versions", VirtualList).cursor_key if self.is_mounted else None

    def _keys(self) -> Keys:
        """What can be done with the chosen one."""
        chosen, versions = self._chosen, self._versions
        other = chosen is not None and chosen != versions.current
        names = ["restore"] if other else []
        # What is in the file may not have graded yet: then versions are compared with the newest one.
        names += ["compare"] if other and chosen != self._base else []
        return self.edge(*names, ("tab", "text"))

    def _shown(self) -> str:
        chosen, base = self._chosen, self._base
        if chosen is None or chosen == base:
            return "text"
        return f"changes from {self._name_of_base}"

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """Show what this version says."""
        self._show()

    def _show(self) -> None:
        chosen, versions = self._chosen, self._versions
        if chosen is None:
            return
        self.query_one(SheetFrame).retell()
        lines = self._difference(chosen)
        view = self.query_one("#text", LinesView)
        if lines:
            view.show(lambda width: diff_lines("\n".join(lines), width), keep_place=False)
        else:
            text = versions.texts[chosen]
            view.show(lambda width: paragraph(text, width), keep_place=False)

    @property
    def _base(self) -> str:
        """What the chosen one is compared with: the one in the file, else the newest."""
        versions = self._versions
        return versions.current if versions.current in versions.texts else versions.versions[0].hash

    @property
    def _name_of_base(self) -> str:
        which = "in the file now" if self._base == self._versions.current else "the newest"
        return f"{short_hash(self._base)} ({which})"

    def _difference(self, chosen: str) -> list[str]:
        """From the one in the file (else the newest) to the chosen one; [] where that is the same."""
        texts = self._versions.texts
        return text_difference(texts[self._base], texts[chosen], (self._name_of_base, short_hash(chosen)))

    def action_restore(self) -> None:
        chosen, versions = self._chosen, self._versions
        if chosen is None:
            return
        if chosen == versions.current:
            self.agenteval.say("This is the version in the file.")
            return
        self.dismiss(chosen)

    def action_compare(self) -> None:
        """The stored runs under this version and under the one in the file (else the newest)."""
        chosen, base = self._chosen, self._base
        if chosen is None or chosen == base:
            self.agenteval.say("Choose another version to compare it with this one.")
            return
        self.dismiss(f"{COMPARE}{base}:{chosen}")


def _missing(versions: Versions) -> str:
    if not versions.current:
        return "The criterion is no longer in the suite's file."
    return f"The one in the file ({short_hash(versions.current)}) has not graded a run yet."
