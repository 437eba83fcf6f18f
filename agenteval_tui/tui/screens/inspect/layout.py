"""The panes of Inspect: their titles, what they show, and which of them has the keys."""

from __future__ import annotations

from textual.events import DescendantFocus

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.actions import BY_ID, key_of
from agenteval_tui.tui.presenters.evidence_pane import looked_rows, tool_text_lines
from agenteval_tui.tui.presenters.highlights import marks_of
from agenteval_tui.tui.presenters.impact import impact_in_one_line, impact_lines, problem_lines
from agenteval_tui.tui.presenters.label_agreement import against_labels
from agenteval_tui.tui.presenters.number_format import count
from agenteval_tui.tui.presenters.run_header import facts, pane_title, run_cells, run_heading
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.text_layout import indented
from agenteval_tui.tui.screens.inspect.base import InspectBase
from agenteval_tui.tui.screens.rerun import again_key
from agenteval_tui.tui.styled_text import Cell, Line, spread, width_of
from agenteval_tui.tui.widgets.line_block import LineBlock

PANES = ("transcript", "looked", "config")
EDITED = "○" if UNICODE else "*"


class InspectPanes(InspectBase):
    """Draws the open run."""

    _tab_ends: tuple[tuple[str, int], ...] = ()  # the columns where the names of the panes end, on narrow screens

    # Drawing

    def _draw(self, *, keep_place: bool = True) -> None:
        bench, result = self._bench, self._result
        if bench is None:
            return

        self.transcript.view.set_marks(marks_of([result] if result is not None else []))
        self._draw_heading()
        self._draw_looked(keep_place=keep_place)
        self._draw_config()
        self._draw_impact()
        self.transcript.retitle()
        self._retitle_pane("looked-title")

    def _draw_heading(self) -> None:
        bench = self._bench
        if bench is None:
            return
        self.query_one("#run", LineBlock).show(
            lambda width: [run_heading(bench, self._results_now(), width, self._facts)]
        )
        self.query_one("#tabs", LineBlock).show(self._tab_lines)

    def _draw_looked(self, *, keep_place: bool = True) -> None:
        bench, result = self._bench, self._result
        if bench is None or result is None:
            return

        results = self._results_now()
        number = self._criterion
        view = self._looked
        if self._show_tools:
            view.show(lambda width: indented(tool_text_lines(bench, result, width - 1)), keep_place=keep_place)
        else:
            facts = self._facts

            def lines(width: int) -> list[Line]:
                made = looked_rows(bench, number, result, results, width - 1, facts)
                self._targets = made.targets
                return indented(made.lines)

            view.show(lines, keep_place=keep_place)

    def _draw_config(self) -> None:
        diagnostics, result = self._diagnostics, self._result
        text = self._editor.text
        most = 3 if self.size.height < 30 else 5
        self.query_one("#problems", LineBlock).show(lambda width: problem_lines(result, diagnostics, text, width, most))
        self._retitle_pane("config-title")
        self.query_one("#tabs", LineBlock).show(self._tab_lines)
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def _draw_impact(self) -> None:
        # Of a new criterion there is no now: what is counted is what saving it would say.
        impact, edited, labels = self._impact, self._edited or self._is_new, self._agreement
        make = impact_in_one_line if self.has_class("narrow") else impact_lines
        narrow = self.has_class("narrow")

        def lines(width: int) -> list[Line]:
            made = make(impact, edited, width)
            # One line is all that a narrow screen has room for: labels come in where an edit goes against them.
            return (
                [*made, *against_labels(labels, edited, width)] if not narrow or (labels and labels.against) else made
            )

        self.query_one("#impact", LineBlock).show(lines)

    def _retitle_pane(self, name: str) -> None:
        makers = {
            "looked-title": self._looked_title,
            "config-title": self._config_title,
        }
        self.query_one(f"#{name}", LineBlock).show(makers[name])

    def _looked_title(self, width: int) -> list[Line]:
        which = f"criterion {self._criterion + 1} of {len(self._bench.criteria)}" if self._bench else ""
        what = "tool text" if self._show_tools else "looked at"
        return pane_title(what, which, width, self._pane == "looked")

    def _config_title(self, width: int) -> list[Line]:
        bench = self._bench
        if bench is None:
            return pane_title("config_uxon", "", width, self._pane == "config")
        if self._is_new:
            state = f"new {EDITED}"
        elif bench.criteria[self._criterion].index is None:
            state = "not in a file"
        else:
            state = f"edited {EDITED}" if self._edited else ("saved ●" if UNICODE else "saved")
        return pane_title("config_uxon", state, width, self._pane == "config")

    def _tab_lines(self, width: int) -> list[Line]:
        """Narrow screens show one pane at a time; this line says which."""
        looked = "tool text" if self._show_tools else "looked at"
        names = {"transcript": "transcript", "looked": looked, "config": "config_uxon"}
        if self._edited or self._is_new:
            names["config"] += f" {EDITED}"
        cells: list[Cell] = [(" ", "")]
        ends: list[tuple[str, int]] = []
        for pane in PANES:
            active = pane == self._pane
            cells.append((f"[{names[pane]}]" if active else f" {names[pane]} ", "bold accent" if active else "dim"))
            cells.append(("  ", ""))
            ends.append((pane, width_of(cells) - 2))
        self._tab_ends = tuple(ends)
        right: tuple[Cell, ...] = (*facts(self._bench), (" ", "")) if self._bench else ()
        if self.transcript.hits:
            # The titles of panes are not shown here.
            right = ((self.transcript.hits, "bold"), (" ", ""))
        return [spread(cells, right, width)]

    def on_line_block_clicked(self, event: LineBlock.Clicked) -> None:
        """A click on the name of a pane goes there."""
        if event.block.id == "tabs":
            pane = next((name for name, end in self._tab_ends if event.x < end), "")
        else:
            pane = (event.block.id or "").removesuffix("-title")
        if pane in PANES:
            self._focus_pane(pane)

    def heading(self, width: int) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
        bench = self._bench
        if bench is None:
            return (), ()
        failures = self._around.failures()
        right: tuple[Cell, ...] = ()
        if bench.run.id in failures:
            right = ((f"failure {failures.index(bench.run.id) + 1} of {len(failures)}", "dim"),)
        elif failures:
            right = ((count(len(failures), "failure"), "dim"),)
        if width < self.NARROW:
            room = width - len(" agenteval  inspect   ") - width_of((*right, *self.agenteval.live_note())) - 2
            return run_cells(bench, width=room), right
        return ((one_line(bench.run.suite_name, 50), "dim"),), right

    # Panes

    def on_descendant_focus(self, event: DescendantFocus) -> None:
        """Say in the pane's title that it has the keys now."""
        # The focus may have moved on since this event was sent: what counts is where it is now.
        panes = {"transcript": "transcript", "find": "transcript", "looked": "looked", "config": "config"}
        pane = panes.get((self.focused.id or "") if self.focused else "", self._pane)
        # Where one pane is shown at a time, hiding a pane moves the focus: there the pane leads, not the focus.
        if pane != self._pane and not self.has_class("narrow"):
            self._set_pane(pane)

    def _set_pane(self, pane: str) -> None:
        self._pane = pane
        for one in PANES:
            self.query_one(f"#{one}-pane").set_class(one == pane, "active")
        self.transcript.retitle()
        for title in ("looked-title", "config-title"):
            self._retitle_pane(title)
        self.query_one("#tabs", LineBlock).show(self._tab_lines)
        self.query_one("#keys", LineBlock).show(self._key_lines)

    def _focus_pane(self, pane: str) -> None:
        self._set_pane(pane)
        # A pane that was hidden can take the focus only when it is shown.
        self.call_after_refresh(self.query_one(f"#{pane}").focus)

    def action_next_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) + 1) % len(PANES)])

    def action_previous_pane(self) -> None:
        self._focus_pane(PANES[(PANES.index(self._pane) - 1) % len(PANES)])

    def action_edit(self) -> None:
        self._focus_pane("config")

    def _show_edit(self) -> None:
        """What was put into the editor is to be seen: where one pane is shown at a time, go to it."""
        if self.has_class("narrow"):
            self._focus_pane("config")

    def keys(self) -> list[tuple[str, str, str]]:
        if self._pane == "transcript" and self.transcript.words:
            hits = (("n", "next hit", "next_failure"), ("N", "hit before", "next_run"), ("/", "other words", "search"))
            return [*hits, ("esc", "end", "app.back"), ("F1", "help", "app.help")]
        if self._pane != "config":
            footer, tools = super().keys(), "looked at" if self._show_tools else "tool text"
            return [(key, tools if do == "tool_text" else word, do) for key, word, do in footer]
        named = [("relax", "smallest edits"), ("explain", "what is this")]
        if self._edited or self._is_new:
            named = [("save", "save"), ("fix", "fix"), ("relax", "smallest edits"), ("revert", "revert")]
        keymap = self.agenteval.keymap
        shown = [(key_of(f"inspect.{name}", keymap), label, BY_ID[f"inspect.{name}"].method) for name, label in named]
        last = ("^z", "undo", "focused.undo") if self._edited else ("^space", "complete", "focused.complete")
        if self._is_new:
            shown = [(key, "to the Editor" if do == "save" else word, do) for key, word, do in shown]
        again = [] if self._edited or self._is_new else [(again_key(self), "run again", "run_again")]
        return [*again, *shown[:2], ("esc", "leave", "app.back"), *shown[2:], last, ("F1", "help", "app.help")]
