"""How often criteria and judges agree with people: a row each; enter opens where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.analysis.agreement import JudgeFigures, judge_figures
from agenteval_tui.analysis.labels import gradings_of
from agenteval_tui.core.display import one_line
from agenteval_tui.core.ids import short_hash
from agenteval_tui.core.numbers import count, interval_phrase, percent
from agenteval_tui.tui.actions import bindings, key_of
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Cell, Line, paragraph, right, spread
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.sheet_frame import Section, SheetFrame
from agenteval_tui.tui.widgets.virtual_list import Rows, VirtualList


def _line(figures: JudgeFigures, width: int) -> Line:
    agreement = figures.agreement
    head: list[Cell] = [(one_line(figures.criterion, 80), "bold")]
    head.append((f"  {one_line(', '.join(figures.judges) or figures.suite, 40)}", "dim"))
    kappa = "  –  " if agreement.kappa is None else f"{agreement.kappa:5.2f}"
    differ = len(figures.differ)
    share = "–" if agreement.accuracy is None else percent(agreement.accuracy)
    tail: list[Cell] = [(right(share, 7), ""), (f"  {kappa}", "")]
    tail += [(right(str(agreement.n), 5), "dim"), (right(str(differ) if differ else "", 7), "failed"), (" ", "")]
    return spread(head, tail, width)


class AgreementScreen(Sheet["tuple[str, ...]"]):
    """Dismissed with the addresses (RUN/NUMBER) of what the chosen criterion and people differ on, or None."""

    SCOPE = "agreement"
    BINDINGS: ClassVar[list[BindingType]] = bindings("agreement")

    def __init__(self, figures: Sequence[JudgeFigures]) -> None:
        super().__init__()
        # What can be compared first, the least agreement of it at the top.
        with_labels = [figure for figure in figures if figure.agreement.n]
        self._figures = sorted(
            with_labels, key=lambda figures: (figures.agreement.accuracy or 0.0, -figures.agreement.n)
        )

    def compose(self) -> ComposeResult:
        keymap = self.agenteval.keymap
        label = key_of("inspect.label", keymap)
        empty = [
            ((" Nothing to compare yet: label some runs first.", ""),),
            ((f" Press {label} in Inspect to label a run; Review takes you through many.", "dim"),),
        ]
        keys = self.edge(*((("enter", "where they differ"),) if self._figures else ()))
        with SheetFrame("How often criteria and judges agree with people", keys, width="medium"):
            yield LineBlock(_names, id="names")
            rows = Rows(self._figures, _line, lambda figures: f"{figures.suite_key}\x1f{figures.criterion}")
            yield VirtualList(rows, empty=empty, id="criteria")
            if self._figures:
                yield Section(self._chosen, id="chosen")
                yield LineBlock(id="detail")

    def on_virtual_list_highlighted(self, event: VirtualList.Highlighted) -> None:
        """The figures of this one."""
        self.query_one("#chosen", Section).retell()
        self.query_one("#detail", LineBlock).show(self._detail)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """What they differ on."""
        figures = self._figures[event.index]
        if figures.differ:
            self.dismiss(tuple(figures.differ))

    def _chosen(self) -> str:
        place = self.query_one("#criteria", VirtualList).cursor if self.is_mounted else -1
        return self._figures[place].criterion if 0 <= place < len(self._figures) else ""

    def _detail(self, width: int) -> list[Line]:
        place = max(self.query_one("#criteria", VirtualList).cursor, 0)
        if not 0 <= place < len(self._figures):
            return []
        figures = self._figures[place]
        agreement = figures.agreement
        who = "judge" if figures.by_judge else "criterion"
        kappa = (
            "Cohen's kappa is undefined: one verdict only"
            if agreement.kappa is None
            else (f"Cohen's kappa {agreement.kappa:.2f}: agreement beyond chance")
        )
        sentence = (
            f"They agree on {agreement.both_yes + agreement.both_no} of {agreement.n} ({percent(agreement.accuracy)}, "
            f"{interval_phrase(agreement.interval)}). {kappa}."
        )
        table = (
            f"both passed {agreement.both_yes}, both failed {agreement.both_no}, "
            f"only the {who} passed it {agreement.only_judge}, only the person {agreement.only_person}"
        )
        lines = [*paragraph(sentence, width), *paragraph(table, width, "dim")]
        if figures.undecided:
            lines += paragraph(f"{count(figures.undecided, 'labelled run')} without a verdict left out", width, "dim")
        if figures.silent:
            lines += paragraph(f"the judge left {count(figures.silent, 'run')} to people", width, "dim")
        for version in figures.versions if len(figures.versions) > 1 else ():
            share = "–" if version.accuracy is None else percent(version.accuracy)
            text = f"version {short_hash(version.hash)}: {share} of {version.n}"
            if version.p_value is not None:
                text += f"; better than the version before in {version.better}, worse in {version.worse}"
            lines += paragraph(text, width, "dim")
        return lines


def _names(width: int) -> list[Line]:
    return [spread((("criterion", "dim"),), (("  agree  kappa    n  differ", "dim"),), width)]


def show_agreement(screen: FrameScreen) -> None:
    """The sheet over `screen`; a chosen disagreement opens in Inspect, next and previous there go through them."""
    app, store = screen.agenteval, screen.agenteval.session.store

    def work() -> list[JudgeFigures]:
        rows = gradings_of(store, dict.fromkeys(label.run_id for label in store.labels()))
        return judge_figures(store, rows)

    def chosen(differ: tuple[str, ...] | None) -> None:
        if not differ:
            return
        run, _, number = differ[0].partition("/")

        def open_it(name: str) -> None:
            app.inspect(run, criterion=name, runs=list(dict.fromkeys(address.partition("/")[0] for address in differ)))

        screen.ask(lambda: store.results(run)[int(number) - 1].criterion, open_it, group="differ")

    def show(figures: list[JudgeFigures]) -> None:
        screen.app.push_screen(AgreementScreen(figures), chosen)

    screen.ask(work, show, group="agreement")
