"""The Editor's three panes: what is in them, what their titles and the last line say, which of them has the keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import DescendantFocus
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Input

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.actions import BY_ID, key_word
from agenteval_tui.tui.draft_store import Drafts
from agenteval_tui.tui.presenters.editor_rows import EDITED
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.run_header import pane_title
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.screens.completion_controller import Assist
from agenteval_tui.tui.screens.editor.document import SuiteDocument
from agenteval_tui.tui.screens.editor.fields import criterion_fields, test_fields
from agenteval_tui.tui.styled_text import Cell, Line, fit
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
from agenteval_tui.tui.widgets.form import Form
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.virtual_list import VirtualList

if TYPE_CHECKING:
    from agenteval_tui.analysis.overview import Overview
    from agenteval_tui.grading.criterion_templates import Starter
    from agenteval_tui.suites.model import AgentConfig
    from agenteval_tui.tui.draft_store import Kept
    from agenteval_tui.uxon.diagnostics import Diagnostic

PANES = ("tests", "test", "criteria", "live")


class EditorFrame(FrameScreen):
    """The tests; the chosen one as a form; its criteria. Where it is narrow one of the three at a time."""

    SCOPE = "edit"

    def reload(self) -> None:
        """Read the suites again. Edits stay."""
        raise NotImplementedError

    def __init__(self) -> None:
        super().__init__()
        self._overview: Overview | None = None
        self._agents: Mapping[str, AgentConfig] = {}
        self._docs: dict[str, SuiteDocument] = {}
        self._kept: dict[str, Kept] = {}
        self._doc: SuiteDocument | None = None
        self._pane = "tests"
        self._wanted: tuple[str, str, str, Starter | None] | None = None
        self._drafts = Drafts()
        self._keep_timer: Timer | None = None
        self._check_again = False
        self._checking = False
        self._diagnostics: tuple[Diagnostic, ...] = ()
        self._assist = Assist()
        self._filter = ""
        self._filling = False
        self._previewed: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield self.title_bar()
        yield LineBlock(self._tab_lines, id="tabs")
        with Horizontal(id="body"):
            with Vertical(id="tests-pane", classes="pane"):
                yield LineBlock(self._tests_title, id="tests-title", classes="pane-title")
                yield Input(placeholder="filter the tests", id="filter", classes="filter")
                yield VirtualList(id="tests")
            # They wait for the test that is opened.
            with Vertical(id="test-pane", classes="pane", disabled=True):
                yield LineBlock(self._test_title, id="test-title", classes="pane-title")
                with VerticalScroll(id="scroll", can_focus=False):
                    yield Form(test_fields(), below=True, id="fields")
                    yield LineBlock(id="dataset")
            with Vertical(id="live-pane", classes="pane", disabled=True):
                yield LineBlock(self._live_title, id="live-title", classes="pane-title")
                yield LinesView(id="live")
                yield LineBlock(id="impact")
            with Vertical(id="criteria-pane", classes="pane", disabled=True):
                yield LineBlock(self._criteria_title, id="criteria-title", classes="pane-title")
                yield VirtualList(id="criteria")
                yield Form(criterion_fields(), below=True, id="criterion")
                yield LineBlock(self._config_title, id="config-title")
                yield ConfigEditor(id="config")
                yield LineBlock(id="verdict")
        yield LineBlock(id="problems")
        yield self.key_bar()

    # Panes

    def focus_next(self, selector: Any = "*") -> Widget | None:
        """Tab goes to the next field; where one pane is shown and has no other, to the next pane."""
        focused = self.focused
        if self.has_class("narrow") and focused is not None and focused.id in ("tests", "live"):
            self.action_next_pane()
            return self.focused
        return super().focus_next(selector)

    def action_next_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) + 1) % len(PANES)])

    def _focus_pane(self, pane: str) -> None:
        self._set_pane(pane)
        if pane == "test":
            self.call_after_refresh(self.query_one("#fields #field-name").focus)
        else:
            self.call_after_refresh(self.query_one(f"#{pane}").focus)

    def _set_pane(self, pane: str) -> None:
        self._pane = pane
        # Beside the criteria stands what they say of a run; beside the fields there is no room for it.
        before = self.classes
        self.set_class(pane in ("criteria", "live"), "judging", update=False)
        whole = self.classes != before
        for one in PANES:
            self.query_one(f"#{one}-pane").set_class(one == pane, "active", update=not whole)
        if whole:
            self.update_node_styles()  # once, and not for each pane
        self._retitle_panes()
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say which pane has the keys now."""
        focused = self.focused
        if focused is None:
            return
        ids = {focused.id, *(one.id for one in focused.ancestors)}
        pane = next((one for one in PANES if f"{one}-pane" in ids), self._pane)
        if pane != self._pane:
            self._set_pane(pane)
        else:
            self.query_one("#keys", LineBlock).show(self._key_lines)

    def step_back(self) -> bool:
        box = self.query_one("#filter", Input)
        if box.display and self._pane == "tests":
            box.value = ""
            box.display = False
            self.query_one("#tests", VirtualList).focus()
            return True
        focused = self.focused
        if self._pane == "criteria" and focused is not None and focused.id != "criteria":
            self.query_one("#criteria", VirtualList).focus()
            return True
        if self._pane != "tests":
            self._focus_pane("tests")
            return True
        return False

    # Lines

    def keys(self) -> list[tuple[str, str, str]]:
        def key(name: str) -> str:
            return key_word(self.agenteval.keymap.get(f"edit.{name}", BY_ID[f"edit.{name}"].keys))

        focused = self.focused.id if self.focused is not None else ""
        save = (key("save"), "save", "save")
        pane = (key("pane"), "pane", "next_pane")
        if focused == "live":
            middle = [(key("next_run"), "older run", "step_run(1)"), (key("previous_run"), "newer", "step_run(-1)")]
            middle += [(key("flips"), "flips", "flips"), (key("relax"), "smallest edits", "relax")]
            middle += [(key("run"), "in Inspect", "on_a_run")]
        elif focused in ("tests", "criteria"):
            middle = [(key("new"), "new" if focused == "tests" else "add", "new")]
            middle += [(key("duplicate"), "copy", "duplicate"), (key("delete"), "delete", "delete")]
            moves = f"{key('down')} {key('up')}"
            middle += [(moves, "move", "move(1)|move(-1)"), ("enter", "fields", "focused.select")]
        elif focused == "config":
            middle = [
                ("^space", "complete", "focused.complete"),
                (key("fix"), "fix", "apply_fix"),
                (key("explain"), "what is this", "explain"),
            ]
            middle += [(key("relax"), "smallest edits", "relax"), ("esc", "criteria", "app.back")]
        else:
            middle = [(key("undo"), "undo", "undo"), (key("next_problem"), "next problem", "next_problem")]
            middle += [("tab", "field", "app.focus_next"), ("esc", "list", "app.back")]
        return [save, *middle, pane, ("F1", "help", "app.help")]

    def _retitle_panes(self) -> None:
        for name, make in (
            ("tests-title", self._tests_title), ("test-title", self._test_title),
            ("criteria-title", self._criteria_title), ("config-title", self._config_title), ("tabs", self._tab_lines),
            ("live-title", self._live_title),
        ):  # fmt: skip
            self.query_one(f"#{name}", LineBlock).show(make)

    def _tests_title(self, width: int) -> list[Line]:
        edited = sum(doc.edited for doc in self._docs.values()) + len(self._kept)
        much = f"{edited} not saved" if edited else count(self._overview.tests, "test") if self._overview else ""
        return pane_title("tests", much, width, self._pane == "tests")

    def _live_title(self, width: int) -> list[Line]:
        return pane_title("on a run", "", width, self._pane == "live")

    def _test_title(self, width: int) -> list[Line]:
        doc = self._doc
        state = "" if doc is None else f"not saved {EDITED}" if doc.edited else "saved"
        return pane_title(one_line(doc.test_id, 40) if doc is not None else "test", state, width, self._pane == "test")

    def _criteria_title(self, width: int) -> list[Line]:
        much = count(len(self._doc.form.criteria), "criterion") if self._doc is not None else ""
        return pane_title("criteria", much, width, self._pane == "criteria")

    def _config_title(self, width: int) -> list[Line]:
        if self._doc is None or self._doc.chosen is None:
            return []
        problems = count(len(self._diagnostics), "problem") if self._diagnostics else ""
        focused = self.focused
        return pane_title("config_uxon", problems, width, focused is not None and focused.id == "config")

    def _tabs(self) -> list[tuple[str, str]]:
        words = {"tests": "tests", "test": "test", "criteria": "criteria", "live": "on a run"}
        return [(pane, words[pane]) for pane in PANES]

    def _tab_lines(self, width: int) -> list[Line]:
        """Narrow screens show one pane at a time; this line says which."""
        cells: list[Cell] = [(" ", "")]
        for pane, word in self._tabs():
            active = pane == self._pane
            cells.append((f"[{word}]" if active else f" {word} ", "bold accent" if active else "dim"))
            cells.append(("  ", ""))
        return [fit(cells, width)]

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        doc = self._doc
        if doc is None:
            return (), ()
        state: Cell = (f"not saved {EDITED}", "accent") if doc.edited else ("saved", "dim")
        where = f"{one_line(doc.loaded.path.name, 50)}:{doc.loaded.line_of(doc.test_id)}"
        return ((one_line(doc.test_id, 60), "bold"), ("   ", ""), state), ((where, "dim"),)
