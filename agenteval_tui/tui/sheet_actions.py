"""The keys of sheets, and of the widgets that several screens and sheets have: lists, texts, forms."""

from __future__ import annotations

from agenteval_tui.tui.action import Action, close_action, part_action

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
    part_action("list.select", "select", "enter", "choose", "Choose the row"),
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
    part_action("transcript.next_step", "next_step", "right_curly_bracket", "next step", "Next step"),
    part_action("transcript.previous_step", "previous_step", "left_curly_bracket", "previous step", "Previous step"),
    part_action("transcript.fold_all", "fold_all", "alt+a", "fold all", "Fold or unfold everything"),
    part_action("transcript.fold", "toggle_fold", "f,enter", "fold", "Fold or unfold", "folds"),
    part_action("transcript.next_mark", "next_mark", "full_stop", "next evidence", "Next evidence", "evidence"),
    part_action(
        "transcript.previous_mark", "previous_mark", "comma", "previous evidence", "Previous evidence", "evidence"
    ),
    part_action("form.next", "move(1)", "down", "field", "Next field"),
    part_action("form.previous", "move(-1)", "up", "field", "Previous field"),
    part_action("choice.next", "step(1)", "right,l,space,plus", "choose", "Next choice"),
    part_action("choice.previous", "step(-1)", "left,h,minus", "choose", "Previous choice"),
    part_action("choice.submit", "submit", "enter", "submit", "Submit the form"),
    *_moves(
        "rating",
        down="move('down')",
        up="move('up')",
        page_down="move('page_down')",
        page_up="move('page_up')",
        first="move('start')",
        last="move('end')",
    ),
    *(
        part_action(f"rating.{number}", f"rate({number})", str(number), "rate", f"Rate {number}")
        for number in range(1, 6)
    ),
    *_moves(
        "look",
        down="look(1)",
        up="look(-1)",
        page_down="look_pages(1)",
        page_up="look_pages(-1)",
        half_down="look_pages(0.5)",
        half_up="look_pages(-0.5)",
    ),
    part_action("look.type", "type", "enter", "type", "Edit the config"),
    part_action("message.up", "screen.scroll_chat('scroll_up')", "up", "scroll", "Scroll the conversation up"),
    part_action("message.down", "screen.scroll_chat('scroll_down')", "down", "scroll", "Scroll the conversation down"),
    part_action(
        "message.page_up", "screen.scroll_chat('page_up')", "pageup", "page", "Scroll the conversation a page up"
    ),
    part_action(
        "message.page_down",
        "screen.scroll_chat('page_down')",
        "pagedown",
        "page",
        "Scroll the conversation a page down",
    ),
    # Sheets
    part_action("sheet.close", "close", "escape", "close", "Close the sheet, or stop what it does"),
    close_action("agreement", "c"),
    close_action("errors", "exclamation_mark"),
    close_action("executions", "alt+w"),
    close_action("flips", "f9"),
    close_action("notices", "N"),
    close_action("relax", "f7"),
    close_action("run_picker"),
    close_action("trust", "n", "run nothing", "Run nothing"),
    part_action("trust.once", "answer('once')", "o", "once", "Trust it this once"),
    part_action("trust.always", "answer('trust')", "t", "trust", "Trust it from now on"),
    close_action("conflict", "n", "keep the file as it is", "Leave the file alone; the edit stays in the editor"),
    part_action("conflict.apply", "apply", "y,enter", "apply", "Apply the edit to the file as it is now"),
    close_action("json", "O"),
    part_action("json.copy", "copy", "y", "copy this part", "Copy the part at the cursor, or what is selected"),
    close_action("replies", "quotation_mark"),
    part_action("replies.next", "step(1)", "n,right_square_bracket", "next", "Next reply"),
    part_action("replies.previous", "step(-1)", "p,left_square_bracket", "previous", "Previous reply"),
    part_action("replies.copy", "copy", "y", "copy it", "Copy the question with its reply"),
    close_action("versions", "V"),
    part_action("versions.restore", "restore", "r", "restore this version", "Restore this version of the criterion"),
    part_action("versions.compare", "compare", "c", "compare over the runs", "Compare it over the stored runs"),
    close_action("help", "question_mark,f1"),
    part_action("help.find", "dismiss(True)", "ctrl+p,colon", "find a command", "Find a command by name"),
    part_action("help.ids", "toggle_ids", "i", "names of actions", "Show the names of actions, or hide them"),
    part_action("select.next", "step(1)", "down", "move", "Next choice", priority=True),
    part_action("select.previous", "step(-1)", "up", "move", "Previous choice", priority=True),
    part_action("import.complete", "complete", "tab", "complete", "Complete the file name"),
    part_action("quarantine.end", "end", "ctrl+e", "end it now", "End the quarantine", priority=True),
    part_action("add_row.write", "write", "ctrl+s", "add it", "Add the run to the dataset", priority=True),
    part_action("fork.start", "start", "ctrl+s", "continue from here", "Continue the run", priority=True),
    *(
        part_action(f"label.{number}", f"rate({number})", str(number), "rate", f"Rate {number}")
        for number in range(1, 6)
    ),
    part_action("label.passed", "say(True)", "y", "passed", "Say that it passed"),
    part_action("label.failed", "say(False)", "n", "failed", "Say that it failed"),
    part_action("label.save", "save", "enter", "save", "Save the label"),
    part_action("label.whole", "whole", "t", "whole run", "Label the whole run, or the criterion"),
    part_action("label.comment", "comment", "c,tab,down", "comment", "Write a comment"),
)
