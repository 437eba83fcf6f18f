"""Help for where you are: what is used most, the screens, then every other key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.action import EVERYWHERE, Action
from agenteval_tui.tui.actions import ACTIONS, BY_ID, beside_pane, bindings, key_of, key_word, keys_of
from agenteval_tui.tui.introductions import introduction, part_purpose
from agenteval_tui.tui.presenters.tabs import INSPECT_TABS
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Line, indented, left, paragraph, width_of
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

_LISTS: tuple[tuple[str, str], ...] = (
    ("↑ ↓ or j k", "one row"),
    ("pgup pgdn", "one page"),
    ("^d ^u", "half a page"),
    ("g G", "first, last"),
)

# Textual's scrolling widgets have these keys also where nothing is wider than they are.
_SIDEWAYS = ("scroll_left", "scroll_right", "page_left", "page_right")

WITH_EDITOR = ("inspect", "edit")
MOST_USED = 8  # actions at the top
COLUMN = 13  # cells of the keys
NARROW = 34  # columns: with fewer, what keys do is below them

TITLES = {
    "suites": "Suites",
    "edit": "Edit",
    "run": "Run",
    "inspect": "Inspect",
    "history": "History",
    "compare": "Compare",
    "trends": "Trends",
    "agents": "Agents",
    "causes": "Causes",
    "review": "Review",
    "difference": "Difference",
    "branches": "Where runs diverge",
    "error": "Error",
    "context": "Context",
}

PaneKeys = Sequence[tuple[str, str, str]]
"""What a pane's own keys do: (keys as people read them, what they do, the action's name or "")."""


def pane_keys(screen: Screen[Any]) -> PaneKeys:
    """The keys of the pane that has the focus, without those of the screen and the app."""
    by_action: dict[str, tuple[list[str], Binding]] = {}
    scope = screen.pane_scope() if isinstance(screen, FrameScreen) else ""
    sideways = screen.focused is not None and screen.focused.max_scroll_x > 0
    for key, active in screen.active_bindings.items():
        if active.node is screen or active.node is screen.app or not active.enabled:
            continue
        if active.binding.id in BY_ID and BY_ID[active.binding.id].scope == scope:
            continue
        if active.binding.action in _SIDEWAYS and not sideways:
            continue
        keys, _ = by_action.setdefault(active.binding.action, ([], active.binding))
        keys.append(key_word(key))
    return [
        (" ".join(dict.fromkeys(keys)), binding.description, binding.id or "")
        for keys, binding in by_action.values()
        if binding.description
    ]


def help_of(screen: FrameScreen, keymap: Mapping[str, str]) -> HelpScreen:
    """The help of a screen, and of its pane that has the focus."""
    part = screen.focused.id if screen.focused is not None else None
    return HelpScreen(screen.SCOPE, keymap, pane_keys(screen), screen.pane_scope(), part, typing_scopes(screen))


def typing_scopes(screen: FrameScreen) -> tuple[str, ...]:
    """The scopes whose keys work while letters go into a text; () where they don't."""
    if not screen.is_typing:
        return ()
    in_config = any(
        (active_binding.binding.id or "").startswith("config.") for active_binding in screen.active_bindings.values()
    )
    return (screen.SCOPE, "config") if in_config else (screen.SCOPE,)


def help_lines(
    scope: str,
    keymap: Mapping[str, str],
    width: int,
    pane: PaneKeys = (),
    pane_scope: str = "",
    part: str | None = None,
    typing: Sequence[str] = (),
    *,
    with_ids: bool = False,
) -> list[Line]:
    """The help of a screen in `width` cells: what it is for, what is used most, the screens, the rest. `pane`: the keys
    of the pane that has the focus, `part` its id; `pane_scope`: where it has actions. `typing`: letters go into a text,
    and keys of these scopes work. `with_ids`: the actions' names, as a keymap file has them, beside them."""
    lines: list[Line] = [*paragraph(introduction(pane_scope or scope, keymap), width), ()]
    if purpose := part_purpose(pane_scope or scope, part):
        lines += [*paragraph(f"You are here: {purpose[:1].lower()}{purpose[1:]}", width, "dim"), ()]

    def section(title: str, actions: Sequence[Action]) -> None:
        bound = [action for action in actions if keymap.get(action.id, action.keys)]
        if not bound:
            return
        lines.extend(paragraph(title, width, "bold accent"))
        for action in bound:
            lines.extend(_entry(keys_of(action, keymap), action.description, width, action.id if with_ids else ""))
        lines.append(())

    here = beside_pane(scope, pane_scope, keymap)
    own = [action for action in ACTIONS if action.scope == pane_scope]
    used = sorted((action for action in here if action.footer), key=lambda action: action.footer)[:MOST_USED]
    everywhere = [action for action in ACTIONS if action.scope == EVERYWHERE]
    if typing:
        # A letter would be written: what it does elsewhere comes after the keys that work.
        lines += paragraph("While you type", width, "bold accent")
        sentences: set[str] = set()
        for action in (action for scope_typed in typing for action in ACTIONS if action.scope == scope_typed):
            words = " ".join(dict.fromkeys(map(key_word, _beside_letters(action, keymap))))
            if words and words not in sentences:
                sentences.add(words)
                lines += _entry(words, action.description, width, action.id if with_ids else "")
        lines += [*_entry(key_word("escape"), "Stop typing; then the keys below work", width), ()]
    if own:
        section(f"On {INSPECT_TABS.get(pane_scope, pane_scope)}", own)
    section(f"Used most on {TITLES.get(scope, scope)}", used)
    section("Screens", [action for action in everywhere if action.id.startswith("go.")])
    section(f"Also on {TITLES.get(scope, scope)}", [action for action in here if action not in used])
    if scope in WITH_EDITOR and "config" not in typing:
        section("In the config editor", [action for action in ACTIONS if action.scope == "config"])
    if pane:
        lines += paragraph("In the pane with the focus", width, "bold accent")
        for keys, what, name in pane:
            lines += _entry(keys, one_line(what), width, name if with_ids else "")
        lines.append(())
    section("Everywhere", [action for action in everywhere if not action.id.startswith("go.")])
    if not pane:
        lines += paragraph("In lists and texts", width, "bold accent")
        lines += [line for keys, what in _LISTS for line in _entry(keys, what, width)]
        lines.append(())
    words = (
        "To change keys, write `action: keys` into keys.yaml in the configuration folder, which"
        f" `agenteval doctor` names. Press {key_of('help.ids', keymap)} to see the names of the actions."
    )
    return [*lines, *paragraph(words, width, "dim")]


def _beside_letters(action: Action, keymap: Mapping[str, str]) -> list[str]:
    """The keys of an action that work while letters are typed: with ctrl, and function keys."""
    keys = keymap.get(action.id, action.keys).split(",")
    return [key for key in keys if key.startswith("ctrl+") or (key[:1] == "f" and key[1:].isdigit())]


def _entry(keys: str, what: str, width: int, name: str = "") -> list[Line]:
    """Keys, and beside them what they do and the action's `name`: in as many lines as it takes, nothing is cut."""
    lines: list[Line] = []
    if width < NARROW:
        below = [((f"  {keys}", "bold"),), *indented(paragraph(what, max(width - 4, 4)), 4)]
        return [*below, *indented(paragraph(name, max(width - 4, 4), "dim"), 4)] if name else below
    room = width - COLUMN
    if width_of(((keys, ""),)) > COLUMN - 3:
        lines.append(((f"  {keys}", "bold"),))
        keys = ""
    for text in paragraph(what, room):
        lines.append(((left(f"  {keys}", COLUMN), "bold"), *text))
        keys = ""
    if name and width_of(lines[-1]) + 2 + len(name) <= width:
        lines[-1] = (*lines[-1], (f"  {name}", "dim"))
    elif name:
        lines.append((("".ljust(COLUMN), ""), (name, "dim")))
    return lines


class HelpScreen(Sheet["bool | None"]):
    """A sheet over the screen; escape, q or ? closes it. Dismissed with True: find a command."""

    SCOPE = "help"
    BINDINGS: ClassVar[list[BindingType]] = bindings("help")

    def __init__(
        self,
        scope: str,
        keymap: Mapping[str, str],
        pane: PaneKeys = (),
        pane_scope: str = "",
        part: str | None = None,
        typing: Sequence[str] = (),
    ) -> None:
        """`part`: the id of the widget that has the focus, `pane` its own keys, `pane_scope` where it has actions,
        `typing` the scopes whose keys work in a text."""
        super().__init__()
        self._typing = typing
        self._pane_scope = pane_scope
        self._pane = pane
        self._part = part
        self._scope = scope
        self._keymap = keymap
        self._with_ids = False

    def compose(self) -> ComposeResult:
        keys = self.edge(("j k", "scroll"), "find", "ids")
        with SheetFrame("Help", keys, subject=TITLES.get(self._scope, self._scope), width="medium"):
            yield LinesView(id="help")

    def on_mount(self) -> None:
        view = self.query_one("#help", LinesView)
        view.show(self._lines)
        view.focus()

    def _lines(self, width: int) -> list[Line]:
        scope, own, part = self._scope, self._pane_scope, self._part
        keymap, typing = self._keymap, self._typing
        return help_lines(
            scope,
            keymap,
            width=width,
            pane=self._pane,
            pane_scope=own,
            part=part,
            typing=typing,
            with_ids=self._with_ids,
        )

    def action_toggle_ids(self) -> None:
        """Show the actions' names, which a keymap file needs, or not."""
        self._with_ids = not self._with_ids
        self.query_one("#help", LinesView).show(self._lines)
