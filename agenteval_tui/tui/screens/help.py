"""Help for where you are: what the screen is for and what to do there first, what is used most, the screens, then every
other key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen

from agenteval_tui.core.display import one_line
from agenteval_tui.tui.action import EVERYWHERE, Action
from agenteval_tui.tui.actions import ACTIONS, BY_ID, beside_pane, bindings, key_of, key_word, keys_of, with_keys
from agenteval_tui.tui.presenters.tabs import INSPECT_TABS
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.styled_text import Line, indented, left, paragraph, width_of
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

SCREENS: dict[str, str] = {
    "suites": "Your suites, with their tests, criteria and latest outcomes. Press {suites.run} to run what is "
    "selected, then {suites.inspect} on a failure to see why.",
    "edit": "Edit a test as a form and see at once what its criteria say about a recorded run. Choose a test at "
    "the left, change a field, and save with {edit.save}: only the lines that you changed are written.",
    "run": "Watch an execution: one cell per run, and the transcript of the chosen run. Press {run.next_failure} "
    "to go to the first failure, and {run.inspect} to see why it failed.",
    "watch": "Edit an agent in your own editor: after each save its recorded runs are run again from their recordings, "
    "and the verdicts that change are listed. Press {watch.difference} to see both runs of a row side by side.",
    "inspect": "One run: its transcript, the evidence of a criterion and the criterion's config, side by side. "
    "Read the evidence first. Press {inspect.relax} for the smallest edits that make the run pass.",
    "history": "All stored executions and runs. Press {history.open} to see the runs of an execution, and "
    "{history.search} to search prompts, answers and tool calls.",
    "compare": "What got worse and what got better between two executions, with the worst first. Press "
    "{compare.open} on a test to see both transcripts side by side.",
    "trends": "How pass rates, latency, tokens and cost change over time. Choose a test in the list, move along "
    "the plot with {trends.previous} and {trends.next}, and open what you see with {trends.open}.",
    "agents": "Your configured agents, and a chat with the chosen one. Press {agents.chat} and ask it something, then "
    "{agents.test} to turn the conversation into a test.",
    "causes": "All failures, grouped by cause, most frequent first. Open a cause with {causes.open}, then decide "
    "once for all its runs: press {causes.fix} to fix the criterion, or {causes.accept} to accept the new behaviour.",
    "review": "Runs that need a person's verdict, one at a time. Read the question and the answer, then press "
    "{review.passed} or {review.failed}.",
    "difference": "Two runs of a test side by side, step by step. Press {difference.next} to go to the first "
    "difference.",
    "branches": "All repetitions of a test as one tree of steps. Press {branches.fork} to go to the step where "
    "passing and failing runs diverge.",
    "error": "Why the agent did not finish, and the code in which it broke: your own frames first, the last call on "
    "top. Press {error.next} to go to the caller, and {error.editor} to open its line.",
    "context": "What the model was asked for one answer, and what changed since the request before. Press "
    "{context.next} to go to the next request, and {context.answer} to go to its answer in the transcript.",
}
"""By scope: what the screen is for, and what to do there first. `{suites.run}` stands for the key that a person has for
this action."""

PARTS: dict[str, dict[str, str]] = {
    "suites": {
        "tree": "The tree has suites, their tests and their criteria; the figures come from the newest runs.",
        "detail": "The details of what is selected in the tree: its prompt, its criteria, why it fails.",
        "filter": "The filter keeps the tests that match words, or tag:x, agent:x, outcome:x.",
    },
    "edit": {
        "tests": "The tests of all suites; the form beside the list shows the selected test.",
        "criteria": "The criteria of the test, with what each says about the recorded run.",
        "config": "The config of the criterion; below it you see what an edit changes for all stored runs.",
        "live": "The recorded run on which the criterion is tried.",
        "filter": "The filter keeps the tests with these words in their id or name.",
    },
    "watch": {
        "runs": "The runs that differ now from the recorded ones: those that pass come first.",
        "details": "The selected run: why it is what it is now, and the first message that differs.",
    },
    "run": {
        "cells": "One row per test, one cell per run, in the order they started.",
        "stream": "The transcript of the chosen run, live.",
    },
    "inspect": {
        "transcript": "The messages and tool calls of the run; the parts that the criterion checked are marked.",
        "looked": "What the criterion expected and what it got, condition by condition.",
        "config": "The criterion's config. Each edit re-grades all stored runs at once; nothing is written until "
        "you save.",
        "find": "Words to search for in the transcript.",
    },
    "history": {
        "list": "The newest executions are at the top; mark rows to compare, export or delete them.",
        "search": "Words in prompts, answers and tool calls, or outcome:x, agent:x, test:x.",
    },
    "compare": {
        "changes": "Tests and criteria with a changed outcome, worst first.",
        "details": "The figures of the selected change, and its likely cause.",
        "search": "The filter keeps the rows with these words in the test or criterion.",
    },
    "trends": {
        "list": "The tests (or suites, tags, agents); the plot above shows the selected one.",
        "search": "The filter keeps the rows that match these words.",
    },
    "agents": {
        "agents": "Your configured agents, and whether they respond.",
        "detail": "The selected agent's configuration, and the file it comes from.",
        "chat": "The conversation so far; it is not stored.",
        "prompt": "Your message to the agent. Press enter to send it.",
        "filter": "The filter keeps the agents that match these words.",
    },
    "causes": {
        "causes": "One row per cause: how many failures it has, and what you decided about it.",
        "details": "The selected cause, an example, and the tests it occurs in.",
        "search": "The filter keeps the causes that match these words.",
    },
    "review": {
        "rating": "Your verdict on this run: 1 to 5, or passed or failed.",
        "transcript": "The question, and what the agent did.",
        "looked": "The verdict of each criterion.",
        "comment": "A comment that is stored with your verdict.",
    },
    "difference": {"difference": "The steps of both runs, side by side where there is room."},
    "branches": {
        "tree": "One row per step: how many runs took it, and how many of those passed.",
        "details": "The selected step, and the runs that took it.",
    },
    "error": {"error": "The frames of the traceback, with their lines and variables."},
    "context": {"context": "What changed in the request; below it, its system prompt, messages and tools."},
}
"""By scope and the id of the widget that has the focus: what it is for."""


def introduction(scope: str, keymap: Mapping[str, str]) -> str:
    """Some sentences about a screen, "" for none."""
    of_actions = (action.introduction for action in ACTIONS if action.scope == scope)
    return with_keys(" ".join(filter(None, (SCREENS.get(scope, ""), *of_actions))), keymap)


def part_purpose(scope: str, widget: str | None) -> str:
    """A sentence about the widget with this id, "" for none."""
    return PARTS.get(scope, {}).get(widget or "", "")


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
            yield LinesView(self._lines, id="help")

    def _lines(self, width: int) -> list[Line]:
        return help_lines(
            self._scope,
            self._keymap,
            width=width,
            pane=self._pane,
            pane_scope=self._pane_scope,
            part=self._part,
            typing=self._typing,
            with_ids=self._with_ids,
        )

    def action_toggle_ids(self) -> None:
        """Show the actions' names, which a keymap file needs, or not."""
        self._with_ids = not self._with_ids
        self.query_one("#help", LinesView).show(self._lines)
