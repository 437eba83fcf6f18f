"""Help for where you are: every key of the screen, then those that work everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from agenteval_tui.tui.actions import ACTIONS, EVERYWHERE, key_word
from agenteval_tui.tui.lines import Line, fit, left
from agenteval_tui.tui.widgets.lines_view import LinesView

_LISTS: tuple[tuple[str, str], ...] = (
    ("↑ ↓ or j k", "one row"),
    ("pgup pgdn", "one page"),
    ("g G", "first, last"),
)

WITH_EDITOR = ("inspect", "edit")


def help_lines(scope: str, keymap: Mapping[str, str], width: int) -> list[Line]:
    """The help of a screen in `width` cells."""
    lines: list[Line] = []
    editor = (("In the config editor", "config"),) if scope in WITH_EDITOR else ()
    for title, wanted in ((f"On {scope}", scope), *editor, ("Everywhere", EVERYWHERE)):
        lines.append(((title, "bold accent"),))
        for action in ACTIONS:
            if action.scope == wanted:
                keys = " ".join(key_word(key) for key in keymap.get(action.id, action.keys).split(","))
                lines.append(
                    fit((("  " + left(keys, 14), "bold"), (action.description, ""), (f"  {action.id}", "dim")), width)
                )
        lines.append(())
    lines.append((("In lists and texts", "bold accent"),))
    lines += [fit((("  " + left(keys, 14), "bold"), (what, "")), width) for keys, what in _LISTS]
    lines += [(), (("Own keys: a file keys.yaml in the configuration folder, `action: keys`.", "dim"),)]
    return lines


class HelpScreen(ModalScreen[None]):
    """A sheet over the screen; escape, q or ? closes it."""

    CSS_PATH = "help.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,f1", "dismiss", "close", show=False),
    ]

    def __init__(self, scope: str, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._scope = scope
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        with Vertical(id="sheet"):
            yield LinesView(id="help")

    def on_mount(self) -> None:
        view = self.query_one("#help", LinesView)
        view.show(lambda width: help_lines(self._scope, self._keymap, width))
        view.focus()
