"""The keys of sheets, and of the widgets that several screens and sheets have: lists, texts, forms."""

from __future__ import annotations

from agenteval_tui.tui.action import Action

_MOVES = (
    ("down", "down,j", "Next row"),
    ("up", "up,k", "Previous row"),
    ("page_down", "pagedown,ctrl+f", "Next page"),
    ("page_up", "pageup,ctrl+b", "Previous page"),
    ("half_down", "ctrl+d", "Half a page down"),
    ("half_up", "ctrl+u", "Half a page up"),
    ("first", "home,g", "First row"),
    ("last", "end,G", "Last row"),
)


def _moves(scope: str, **methods: str) -> tuple[Action, ...]:
    """What moves in a list or a text: the method of each of `_MOVES` that it can do."""
    return tuple(
        Action(f"{scope}.{name}", methods[name], keys, name.replace("_", " "), description, scope, part=True)
        for name, keys, description in _MOVES
        if name in methods
    )


def _closes(scope: str, keys: str = "", label: str = "close", description: str = "Close the sheet") -> Action:
    """What closes a sheet without a text field, where letters are keys: `q`, and the key that opened it."""
    return Action(f"{scope}.close", "close", f"escape,q{keys and ','}{keys}", label, description, scope, part=True)


def _part(
    name: str, method: str, keys: str, label: str, description: str, scope: str = "", *, priority: bool = False
) -> Action:
    return Action(name, method, keys, label, description, scope or name.split(".")[0], priority=priority, part=True)


PARTS: tuple[Action, ...] = (
    *_moves(
        "list",
        down="cursor_down",
        up="cursor_up",
        page_down="page_down",
        page_up="page_up",
        half_down="half_page(1)",
        half_up="half_page(-1)",
        first="first",
        last="last",
    ),
    _part("list.select", "select", "enter", "choose", "Choose the row"),
    *_moves(
        "text",
        down="scroll_down",
        up="scroll_up",
        page_down="page_down",
        page_up="page_up",
        half_down="half_page(1)",
        half_up="half_page(-1)",
        first="scroll_home",
        last="scroll_end",
    ),
    *_moves(
        "transcript",
        down="down",
        up="up",
        page_down="page(1)",
        page_up="page(-1)",
        half_down="half_page(1)",
        half_up="half_page(-1)",
        first="first",
        last="last",
    ),
    _part("transcript.next_step", "next_step", "right_curly_bracket", "next step", "Next step"),
    _part("transcript.previous_step", "previous_step", "left_curly_bracket", "previous step", "Previous step"),
    _part("transcript.fold_all", "fold_all", "alt+a", "fold all", "Fold or unfold everything"),
    _part("transcript.fold", "toggle_fold", "f,enter", "fold", "Fold or unfold", "folds"),
    _part("transcript.next_mark", "next_mark", "full_stop", "next evidence", "Next evidence", "evidence"),
    _part("transcript.previous_mark", "previous_mark", "comma", "previous evidence", "Previous evidence", "evidence"),
    _part("form.next", "move(1)", "down", "field", "Next field"),
    _part("form.previous", "move(-1)", "up", "field", "Previous field"),
    _part("choice.next", "step(1)", "right,l,space,plus", "choose", "Next choice"),
    _part("choice.previous", "step(-1)", "left,h,minus", "choose", "Previous choice"),
    _part("choice.submit", "submit", "enter", "submit", "Submit the form"),
    *_moves(
        "rating",
        down="move('down')",
        up="move('up')",
        page_down="move('page_down')",
        page_up="move('page_up')",
        first="move('start')",
        last="move('end')",
    ),
    *(_part(f"rating.{number}", f"rate({number})", str(number), "rate", f"Rate {number}") for number in range(1, 6)),
    *_moves(
        "look",
        down="look(1)",
        up="look(-1)",
        page_down="look_pages(1)",
        page_up="look_pages(-1)",
        half_down="look_pages(0.5)",
        half_up="look_pages(-0.5)",
    ),
    _part("look.type", "type", "enter", "type", "Edit the config"),
    _part("message.up", "screen.scroll_chat('scroll_up')", "up", "scroll", "Scroll the conversation up"),
    _part("message.down", "screen.scroll_chat('scroll_down')", "down", "scroll", "Scroll the conversation down"),
    _part("message.page_up", "screen.scroll_chat('page_up')", "pageup", "page", "Scroll the conversation a page up"),
    _part(
        "message.page_down",
        "screen.scroll_chat('page_down')",
        "pagedown",
        "page",
        "Scroll the conversation a page down",
    ),
    # Sheets
    _part("sheet.close", "close", "escape", "close", "Close the sheet, or stop what it does"),
    _closes("agreement", "c"),
    _closes("errors", "exclamation_mark"),
    _closes("executions", "W"),
    _closes("flips", "f9"),
    _closes("notices", "N"),
    _closes("relax", "f7"),
    _closes("run_picker"),
    _closes("trust", "n", "run nothing", "Run nothing"),
    _part("trust.once", "answer('once')", "o", "once", "Trust it this once"),
    _part("trust.always", "answer('trust')", "t", "trust", "Trust it from now on"),
    _closes("conflict", "n", "keep the file as it is", "Leave the file alone; the edit stays in the editor"),
    _part("conflict.apply", "apply", "y,enter", "apply", "Apply the edit to the file as it is now"),
    _closes("json", "O"),
    _part("json.copy", "copy", "y", "copy this part", "Copy the part at the cursor, or what is selected"),
    _closes("replies", "quotation_mark"),
    _part("replies.next", "step(1)", "n,right_square_bracket", "next", "Next reply"),
    _part("replies.previous", "step(-1)", "p,left_square_bracket", "previous", "Previous reply"),
    _part("replies.copy", "copy", "y", "copy it", "Copy the question with its reply"),
    _closes("versions", "V"),
    _part("versions.restore", "restore", "r", "restore this version", "Restore this version of the criterion"),
    _part("versions.compare", "compare", "c", "compare over the runs", "Compare it over the stored runs"),
    _closes("help", "question_mark,f1"),
    _part("help.find", "dismiss(True)", "ctrl+p,colon", "find a command", "Find a command by name"),
    _part("help.ids", "toggle_ids", "i", "names of actions", "Show the names of actions, or hide them"),
    _part("select.next", "step(1)", "down", "move", "Next choice", priority=True),
    _part("select.previous", "step(-1)", "up", "move", "Previous choice", priority=True),
    _part("import.complete", "complete", "tab", "complete", "Complete the file name"),
    _part("quarantine.end", "end", "ctrl+e", "end it now", "End the quarantine", priority=True),
    _part("add_row.write", "write", "ctrl+s", "add it", "Add the run to the dataset", priority=True),
    _part("fork.start", "start", "ctrl+s", "continue from here", "Continue the run", priority=True),
    *(_part(f"label.{number}", f"rate({number})", str(number), "rate", f"Rate {number}") for number in range(1, 6)),
    _part("label.passed", "say(True)", "y", "passed", "Say that it passed"),
    _part("label.failed", "say(False)", "n", "failed", "Say that it failed"),
    _part("label.save", "save", "enter", "save", "Save the label"),
    _part("label.whole", "whole", "t", "whole run", "Label the whole run, or the criterion"),
    _part("label.comment", "comment", "c,tab,down", "comment", "Write a comment"),
)
