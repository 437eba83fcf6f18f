"""The smallest edits under which the open run would pass, with what each would flip; enter puts one into the editor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical

from agenteval_tui.analysis.workbench import Suggestion, Workbench
from agenteval_tui.core.display import one_line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.tui.services import services
from agenteval_tui.tui.styled_text import Line, spread
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.line_block import LineBlock
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from agenteval_tui.tui.workers import start_worker

Alone = Callable[[Callable[[], Any]], Awaitable[Any]]


def _suggestion_line(suggestion: Suggestion, width: int) -> Line:
    """What would be edited, and what that does to the stored runs."""
    against = len(suggestion.labels.against)
    warn: tuple[tuple[str, str], ...] = ((f"  ! against {against} labels", "error"),) if against else ()
    return spread(
        ((" ", ""), (one_line(suggestion.relaxation.title), "")),
        ((suggestion.said, "dim"), *warn, (" ", "")),
        width,
    )


class _Rows:
    def __init__(self, suggestions: Sequence[Suggestion]) -> None:
        self._suggestions = suggestions

    def count(self) -> int:
        return len(self._suggestions)

    def key(self, index: int) -> str:
        return str(index)

    def line(self, index: int, width: int, *, focused: bool) -> Line:
        return _suggestion_line(self._suggestions[index], width)


class RelaxScreen(Sheet[str]):
    """Dismissed with the new text of the config, or "" for none."""

    CSS_PATH = "relax.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,f7", "dismiss('')", "close", show=False)]

    def __init__(self, bench: Workbench, criterion: int, text: str, alone: Alone) -> None:
        """`alone` does a piece of work in the one thread that uses the workbench."""
        super().__init__()
        self._alone = alone
        self._bench = bench
        self._criterion = criterion
        self._config = text
        self._suggestions: Sequence[Suggestion] = ()

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LineBlock(
                lambda width: [(("The smallest edits under which this run passes, best first", "bold"),), ()], id="head"
            )
            yield VirtualList(id="relaxations")
            yield LineBlock(
                lambda width: [
                    (),
                    (
                        ("enter", "bold accent"),
                        (" put it into the editor   ", ""),
                        ("esc", "bold accent"),
                        (" close", ""),
                    ),
                ],
                id="foot",
            )

    def on_mount(self) -> None:
        rows = self.query_one("#relaxations", VirtualList)
        rows.set_empty([(("  Looking …", "dim"),)])
        rows.focus()
        start_worker(self, self._count, group="relax")

    async def _count(self) -> None:
        rows = self.query_one("#relaxations", VirtualList)
        counting = self._bench.relaxations(self._criterion, self._config)
        # Finding them takes up to some tenths of a second: not on the loop that reads the keys.
        try:
            self._suggestions = await self._alone(lambda: next(counting, ()))
        except AgentevalError as error:
            services(self).say_error(error)
            return
        rows.set_empty(
            [(("  No small edit makes it pass.", ""),), (("  The answer is far from what is asked.", "dim"),)]
        )
        rows.set_source(_Rows(self._suggestions))
        try:
            while await self._alone(lambda: next(counting, None)) is not None:
                rows.refresh_rows()
        except AgentevalError as error:
            services(self).say_error(error)

    def on_virtual_list_selected(self, event: VirtualList.Selected) -> None:
        """Put this one into the editor."""
        self.dismiss(self._suggestions[event.index].relaxation.new_text)
