"""Every action of the program: its name, what it does, its keys, where it applies.

The bindings, the footer, the help screen and the palette are made from this one list, and a person's keymap file
names these ids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from textual.binding import Binding, BindingType

from agenteval_tui.core import entry_points
from agenteval_tui.tui.action import EVERYWHERE, Action, close_action, part_action
from agenteval_tui.tui.styled_text import Line

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


_CORE: tuple[Action, ...] = (
    Action("go.suites", "app.go('suites')", "1", "suites", "Go to the suites"),
    Action("go.editor", "app.go('editor')", "2", "edit", "Go to the editor: a test as a form"),
    Action("go.run", "app.go('run')", "3", "run", "Go to the execution you are watching"),
    Action("go.inspect", "app.go('inspect')", "4", "inspect", "Go to the run you opened last"),
    Action("go.history", "app.go('history')", "5", "history", "Go to the run history"),
    Action("go.compare", "app.go('compare')", "6", "compare", "Go to the comparison, worst changes first"),
    Action("go.trends", "app.go('trends')", "7", "trends", "Go to the trends: pass rates over time, flaky tests"),
    Action("go.agents", "app.go('agents')", "8", "agents", "Go to the agents: check them, try a prompt"),
    Action("go.causes", "app.go('causes')", "9", "causes", "Go to the causes of failures, to decide once about each"),
    Action("go.review", "app.go('review')", "0", "review", "Review the runs that need a person, one at a time"),
    Action("projects", "app.projects", "H", "here/all", "Show the runs of this project, or of all projects"),
    Action("back", "app.back", "escape", "back", "Go back to where you came from"),
    Action("zoom", "app.zoom", "z,alt+z", "zoom", "Zoom the focused pane, or restore the layout"),
    Action("help", "app.help", "question_mark,f1", "help", "Show the keys of this screen", footer=90),
    Action("palette", "app.command_palette", "ctrl+p", "commands", "Find any command by name"),
    Action(
        "palette.quick", "app.command_palette", "colon", "commands", "Find any command by name, outside text fields"
    ),
    Action("jump", "app.jump", "ctrl+o", "jump", "Jump: type the letter shown at the place to go to", priority=True),
    Action("jump.quick", "app.jump", "semicolon", "jump", "Jump by letter, outside text fields"),
    Action(
        "notice.go",
        "app.visit_notice",
        "ctrl+g",
        "go there",
        "Go to what the last notification was about",
        priority=True,
    ),
    Action("notice.list", "app.list_notices", "N", "notices", "List the last notifications"),
    Action("new_suite", "app.new_suite", "", "new suite", "Make a new suite, with a first test"),
    Action("record", "app.record", "alt+c", "record…", "Record a program: its model calls become a run"),
    Action("theme", "app.change_theme", "f2", "theme", "Choose a theme, with a live preview"),
    Action("screenshot", "app.save_screen", "f12", "picture", "Save a picture (SVG) of this screen in the data folder"),
    Action("redraw", "app.redraw", "ctrl+l", "redraw", "Repaint the screen after another program wrote on it"),
    Action("quit", "app.quit", "q", "quit", "Quit; running executions continue"),
    # Suites
    Action("suites.run", "run_selection", "r", "run", "Run what is selected", scope="suites", footer=1),
    Action("suites.run_shown", "run_shown", "R", "run shown", "Run every test in the list", scope="suites", footer=2),
    Action(
        "suites.run_failed", "run_failed", "alt+r", "rerun failed", "Run what failed last", scope="suites", footer=3
    ),
    Action(
        "suites.plan", "plan", "P", "plan a run…", "Plan a run: repeats, agent, limits, A/B", scope="suites", footer=4
    ),
    Action(
        "suites.inspect",
        "inspect",
        "enter",
        "inspect",
        "Open the latest failure of what is selected",
        scope="suites",
        footer=5,
    ),
    Action(
        "suites.watch_code", "watch_code", "W", "watch code", "Run what is selected again after each save", "suites"
    ),
    Action("suites.causes", "causes", "C", "causes", "See why its newest runs failed, grouped by cause", "suites"),
    Action("suites.compare", "compare", "c", "compare", "Compare the newest runs with the baseline", "suites"),
    Action("suites.fold", "toggle_fold", "f", "fold", "Open or close the selected suite or test", "suites"),
    Action("suites.open", "open_fold", "l,right", "open", "Open the selected suite or test", "suites"),
    Action("suites.close", "close_fold", "h,left", "close", "Close it, or go to its parent", "suites"),
    Action("suites.edit", "edit", "e", "edit", "Edit the config of the selected criterion", scope="suites", footer=6),
    Action("suites.editor", "open_editor", "o", "$EDITOR", "Open the suite's file in $EDITOR at the line", "suites"),
    Action(
        "suites.filter",
        "filter",
        "slash",
        "filter",
        "Filter: text, tag:x, outcome:x, agent:x, …",
        scope="suites",
        footer=7,
    ),
    Action("suites.pane", "next_pane", "tab", "details", "Switch between the list and the details", "suites"),
    Action("suites.edit_test", "edit_test", "E", "edit test", "Open the selected test in the Editor", "suites"),
    Action("suites.new", "new_test", "a", "new", "Make a new test in the selected suite", scope="suites", footer=8),
    Action("suites.samples", "samples", "alt+v", "samples", "Look at the sample suites", "suites"),
    Action("suites.import", "import_file", "i", "import…", "Import recordings from another tool", "suites"),
    Action("suites.mark", "mark", "space", "mark", "Mark or unmark the test, to run, copy, delete or tag it", "suites"),
    Action(
        "suites.mark_range", "mark_range", "M", "mark to here", "Mark all tests from the last mark to here", "suites"
    ),
    Action("suites.unmark", "unmark", "U", "unmark", "Remove all marks (or press esc)", "suites"),
    Action("suites.undo", "undo", "u", "undo", "Undo the last copy, move, delete or tagging of tests", "suites"),
    Action("suites.sort", "sort", "s", "worst first", "Sort by worst first, or in the order of the files", "suites"),
    Action("suites.duplicate", "duplicate", "D", "duplicate", "Copy the marked tests, or the selected one", "suites"),
    Action("suites.delete", "delete", "x,delete", "delete", "Delete the marked tests, or the selected one", "suites"),
    Action("suites.tag", "tag", "number_sign", "tags", "Add tags to the marked tests, or remove them", "suites"),
    Action("suites.down", "move(1)", "J", "move down", "Move the test down in its file", "suites"),
    Action("suites.up", "move(-1)", "K", "move up", "Move the test up in its file", "suites"),
    Action(
        "suites.quarantine",
        "quarantine",
        "Q",
        "quarantine",
        "Quarantine the test: it runs, but does not gate",
        "suites",
    ),
    # Editor
    Action(
        "edit.save",
        "save",
        "ctrl+s",
        "save",
        "Save the test: only the lines you edited change in the file",
        scope="edit",
        footer=1,
        priority=True,
    ),
    Action(
        "edit.new",
        "new",
        "a",
        "new",
        "Add a criterion (in the criteria) or a test (in the tests)",
        scope="edit",
        footer=2,
    ),
    Action(
        "edit.duplicate", "duplicate", "D", "duplicate", "Copy the selected test or criterion", scope="edit", footer=3
    ),
    Action(
        "edit.delete",
        "delete",
        "x,delete",
        "delete",
        "Delete the selected criterion or test (asks)",
        scope="edit",
        footer=4,
    ),
    Action("edit.down", "move(1)", "J", "move down", "Move the selected test or criterion down", "edit"),
    Action("edit.up", "move(-1)", "K", "move up", "Move the selected test or criterion up", "edit"),
    Action("edit.undo", "undo", "ctrl+z", "undo", "Undo the last change in the form", scope="edit", footer=5),
    Action("edit.revert", "revert", "f6", "revert", "Revert to the saved test", "edit", priority=True),
    Action(
        "edit.next_problem",
        "next_problem",
        "f8",
        "next problem",
        "Go to the field of the next problem",
        scope="edit",
        footer=6,
    ),
    Action(
        "edit.pane", "next_pane", "ctrl+n", "pane", "Switch between tests, test and criteria", scope="edit", footer=7
    ),
    Action("edit.fix", "apply_fix", "f4", "apply fix", "Apply the fix for the problem in the config", "edit"),
    Action("edit.explain", "explain", "f3", "explain", "Explain the word at the cursor in the config", "edit"),
    Action("edit.start", "run_test", "r,ctrl+t", "run", "Run the saved test and watch it", "edit"),
    Action("edit.run", "on_a_run", "f10", "on a run", "Open the current run in Inspect, with this edit", "edit"),
    Action("edit.next_run", "step_run(1)", "right_square_bracket,alt+n", "older run", "Check an older run", "edit"),
    Action("edit.previous_run", "step_run(-1)", "left_square_bracket,alt+p", "newer run", "Check a newer run", "edit"),
    Action("edit.flips", "flips", "f9", "flips", "List the stored runs that the edit would flip", "edit"),
    Action("edit.relax_now", "relax_now", "A", "smallest edit", "Apply the smallest edit that passes", "edit"),
    Action("edit.relax", "relax", "f7", "smallest edits", "List the smallest edits that pass", "edit", priority=True),
    Action("edit.filter", "filter", "slash", "filter", "Filter the tests by id or name", "edit"),
    Action("edit.editor", "open_editor", "o", "$EDITOR", "Open the suite's file in $EDITOR at the line", "edit"),
    # Watch
    Action("watch.open", "open", "enter", "open", "Open the new run in Inspect", scope="watch", footer=1),
    Action(
        "watch.difference", "difference", "d", "diff", "Show the recorded run beside the new one", "watch", footer=2
    ),
    Action(
        "watch.model",
        "model",
        "dollar_sign",
        "ask the model",
        "Let the runs that need it ask the model",
        scope="watch",
        footer=3,
    ),
    Action("watch.real", "real", "R", "run for real", "Run the changed tests for real", scope="watch", footer=4),
    Action("watch.check", "check", "r", "run again", "Run all recorded runs again now", scope="watch", footer=5),
    Action(
        "watch.everything",
        "everything",
        "F",
        "all",
        "List unchanged runs, too, or only changed ones",
        scope="watch",
        footer=6,
    ),
    Action(
        "watch.tools",
        "recorded_tools",
        "t",
        "tools",
        "Answer calls of tools from the recordings, or run the tools",
        "watch",
    ),
    Action("watch.pane", "next_pane", "tab", "details", "Switch between the list and the details", "watch"),
    Action("watch.end", "end", "S", "stop", "Stop watching", scope="watch", footer=7),
    # Run
    Action("run.pause", "pause", "space", "pause", "Pause or continue", scope="run", footer=1),
    Action(
        "run.cancel",
        "cancel",
        "S",
        "stop",
        "Stop the execution and cancel its unfinished runs (asks)",
        scope="run",
        footer=2,
    ),
    Action("run.more", "more", "plus,equals_sign", "more", "Increase the concurrency by one", scope="run", footer=3),
    Action("run.less", "less", "minus", "fewer", "Decrease the concurrency by one", scope="run", footer=4),
    Action("run.inspect", "inspect", "enter", "inspect", "Inspect the chosen run", scope="run", footer=6),
    Action("run.next_cell", "next_cell", "l,right", "next run", "Go to the next run of the test", "run"),
    Action("run.previous_cell", "previous_cell", "h,left", "previous run", "Go to the previous run of the test", "run"),
    Action(
        "run.errors",
        "errors",
        "exclamation_mark",
        "errors",
        "List the errors: how often, why, how to fix them",
        scope="run",
        footer=5,
    ),
    Action("run.next_failure", "next_failure", "n", "next failure", "Go to the next run that did not pass", "run"),
    Action("run.follow", "follow", "T", "follow", "Follow whatever is running now", "run"),
    Action("run.detach", "detach", "", "detach", "Leave; the execution continues", "run"),
    Action("run.compare", "compare", "c", "compare", "Compare this execution with the baseline", "run"),
    Action("run.resume", "resume", "R", "resume", "Run the rest of an execution that was stopped", "run"),
    Action("run.watch_code", "watch_code", "W", "watch code", "Run its recorded runs again after each save", "run"),
    Action("run.watch", "watch", "alt+w", "watch another", "Choose which of the running executions to watch", "run"),
    Action("run.causes", "causes", "C", "causes", "See why its runs failed, grouped by cause", "run"),
    Action("run.pane", "next_pane", "tab", "pane", "Switch between the cells and the transcript", "run"),
    # Inspect
    Action("inspect.pane", "next_pane", "tab", "pane", "Go to the next pane", scope="inspect", footer=1),
    Action(
        "inspect.previous_pane", "previous_pane", "shift+tab", "previous pane", "Go to the previous pane", "inspect"
    ),
    Action(
        "inspect.next_failure",
        "next_failure",
        "n",
        "next failure",
        "Go to the next failed run",
        scope="inspect",
        footer=2,
    ),
    Action("inspect.previous_failure", "previous_failure", "p", "previous", "Go to the previous failed run", "inspect"),
    Action(
        "inspect.next_run",
        "next_run",
        "right_square_bracket",
        "next run",
        "Go to the next run, passed or not",
        "inspect",
    ),
    Action(
        "inspect.previous_run",
        "previous_run",
        "left_square_bracket",
        "previous run",
        "Go to the previous run, passed or not",
        "inspect",
    ),
    Action(
        "inspect.next_evidence",
        "next_evidence",
        "full_stop",
        "evidence",
        "Go to the next evidence",
        scope="inspect",
        footer=3,
    ),
    Action(
        "inspect.previous_evidence",
        "previous_evidence",
        "comma",
        "previous evidence",
        "Go to the previous evidence",
        "inspect",
    ),
    Action(
        "inspect.next_criterion",
        "next_criterion",
        "greater_than_sign",
        "criterion",
        "Go to the next criterion of the test",
        scope="inspect",
        footer=4,
    ),
    Action(
        "inspect.previous_criterion",
        "previous_criterion",
        "less_than_sign",
        "previous criterion",
        "Go to the previous criterion",
        "inspect",
    ),
    Action("inspect.edit", "edit", "e", "edit", "Go to the config editor", scope="inspect", footer=5),
    Action("inspect.fold", "fold", "f", "fold", "Fold or unfold the block under the cursor", "inspect"),
    Action("inspect.fold_all", "fold_all", "alt+a", "fold all", "Fold or unfold every result", "inspect"),
    Action(
        "inspect.tools",
        "tool_text",
        "t",
        "tool calls",
        "Show formatted tool calls, or evidence",
        scope="inspect",
        footer=7,
    ),
    Action(
        "inspect.difference",
        "difference",
        "d",
        "diff",
        "Show the difference with another run",
        scope="inspect",
        footer=6,
    ),
    Action(
        "inspect.choose_difference", "choose_difference", "alt+d", "diff with…", "Choose the run to compare", "inspect"
    ),
    Action("inspect.branches", "branches", "v", "divergence", "Show where repetitions diverge", "inspect"),
    Action("inspect.error", "error", "exclamation_mark", "error", "Show why the agent did not finish", "inspect"),
    Action("inspect.output", "output", "alt+o", "output", "Show what the agent's code printed and logged", "inspect"),
    Action("inspect.state", "state", "alt+e", "state", "Show what probes read before and after the run", "inspect"),
    Action(
        "inspect.context", "context", "alt+x", "context", "Show what the model was asked for this answer", "inspect"
    ),
    Action("inspect.fork", "fork", "F", "fork", "Fork: change something here, and continue the run", "inspect"),
    Action("inspect.replay", "replay", "alt+t", "replay…", "Replay a recorded run with changed code", "inspect"),
    Action(
        "inspect.watch_code", "watch_code", "W", "watch code", "Run this test's runs again after each save", "inspect"
    ),
    Action(
        "inspect.debug", "debug_run", "alt+g", "debug", "Debug: run its test here in the terminal, with pdb", "inspect"
    ),
    Action("inspect.versions", "versions", "V", "versions", "List the criterion's versions; restore one", "inspect"),
    Action(
        "inspect.make", "make_criterion", "m", "make criterion", "Make a criterion from a selection or call", "inspect"
    ),
    Action("inspect.make_test", "make_test", "alt+m", "make a test", "Make a test of this run", "inspect"),
    Action("inspect.make_calls", "calls_criterion", "", "of all calls", "Make a criterion from all calls", "inspect"),
    Action("inspect.raw", "raw", "O", "JSON", "Show the transcript as JSON, or as text", "inspect"),
    Action("inspect.search", "search", "slash", "search", "Search in the transcript", "inspect"),
    Action("inspect.flips", "flips", "f9", "flips", "List the runs that the edit would flip", "inspect", priority=True),
    Action("inspect.copy", "copy_address", "y", "copy", "Copy the run's address", "inspect"),
    Action("inspect.copy_text", "copy_text", "Y", "copy text", "Copy the selection, or this block", "inspect"),
    Action("inspect.attachment", "open_attachment", "o", "open file", "Open the image or file of a message", "inspect"),
    Action("inspect.label", "label", "L", "label", "Label the run or criterion: 1 to 5, passed, why", "inspect"),
    Action(
        "inspect.replies", "replies", "quotation_mark", "replies", "Show judges' replies and failed attempts", "inspect"
    ),
    Action("inspect.row", "add_row", "a", "to dataset", "Add the run to a dataset as a row", "inspect"),
    Action("inspect.take_back", "take_back_row", "u", "undo row", "Remove the row that was added last", "inspect"),
    Action("inspect.export", "export", "X", "export", "Export the run: Markdown, JSON, OpenAI, OTLP", "inspect"),
    Action("inspect.relax_now", "relax_now", "A", "smallest edit", "Apply the smallest edit that passes", "inspect"),
    Action("inspect.run", "run_again", "r,ctrl+t", "run again", "Run the saved test and watch it", "inspect"),
    Action(
        "inspect.save", "save", "ctrl+s", "save", "Save the edited config to the suite's file", "inspect", priority=True
    ),
    Action(
        "inspect.fix",
        "apply_fix",
        "f4",
        "apply fix",
        "Apply the fix for the problem at the cursor",
        "inspect",
        priority=True,
    ),
    Action(
        "inspect.relax", "relax", "f7", "smallest edits", "List the smallest edits that pass", "inspect", priority=True
    ),
    Action(
        "inspect.decisive",
        "decisive",
        "asterisk",
        "decisive step",
        "Go to the step where it went wrong, then to the others",
        "inspect",
    ),
    Action("inspect.explain", "explain", "f3", "explain", "Explain the word at the cursor", "inspect"),
    Action("inspect.revert", "revert", "f6", "revert", "Go back to the saved config", "inspect", priority=True),
    # Difference
    Action(
        "difference.next", "next_difference", "n", "next", "Go to the next difference", scope="difference", footer=1
    ),
    Action(
        "difference.previous",
        "previous_difference",
        "p",
        "previous",
        "Go to the previous difference",
        scope="difference",
        footer=2,
    ),
    Action(
        "difference.open",
        "open_left",
        "enter",
        "transcript",
        "Go to this step in the transcript",
        scope="difference",
        footer=3,
    ),
    Action(
        "difference.other", "open_right", "", "other", "Open the other run at this step", scope="difference", footer=4
    ),
    Action(
        "difference.swap",
        "swap",
        "",
        "swap",
        "Open the other run, compared with this one",
        scope="difference",
        footer=5,
    ),
    Action("difference.fold", "fold", "f", "fold", "Fold or unfold a step, or steps that match", "difference"),
    Action("difference.fold_all", "fold_all", "alt+a", "fold all", "Fold or unfold all steps that match", "difference"),
    Action("difference.copy", "copy", "y", "copy", "Copy the command that prints this difference", "difference"),
    # Compare
    Action(
        "compare.open", "open", "enter", "side by side", "Show both transcripts side by side", scope="compare", footer=1
    ),
    Action("compare.inspect", "inspect", "", "inspect", "Inspect the run on the right", scope="compare", footer=2),
    Action("compare.before", "inspect_before", "", "the left run", "Inspect the run on the left", "compare"),
    Action(
        "compare.versions", "versions", "V", "versions", "List the versions of the criterion", scope="compare", footer=3
    ),
    Action("compare.edit", "edit", "e", "edit", "Edit the config of the criterion", scope="compare", footer=8),
    Action(
        "compare.causes",
        "causes",
        "C",
        "causes",
        "See why the right runs failed, grouped by cause",
        scope="compare",
        footer=7,
    ),
    Action("compare.left", "left", "h", "left side…", "Choose the left side", scope="compare", footer=5),
    Action("compare.right", "right", "l", "right side…", "Choose the right side", scope="compare", footer=6),
    Action("compare.everything", "everything", "F", "all", "Show unchanged tests too, or only changes", "compare"),
    Action(
        "compare.baseline",
        "baseline",
        "b",
        "baseline",
        "Accept the right side as the baseline",
        scope="compare",
        footer=4,
    ),
    Action("compare.clear", "clear_baseline", "B", "clear baseline", "Clear the test's baseline", "compare"),
    Action(
        "compare.quarantine",
        "quarantine",
        "Q",
        "quarantine",
        "Quarantine the test: it runs, but does not gate",
        "compare",
    ),
    Action("compare.swap", "swap", "", "swap", "Swap the two sides", "compare"),
    Action("compare.filter", "filter", "slash", "filter", "Filter by words in tests and criteria", "compare"),
    Action("compare.pane", "next_pane", "tab", "details", "Switch between the list and the details", "compare"),
    Action("compare.copy", "copy", "y", "copy", "Copy the command that prints this comparison", "compare"),
    Action("compare.refresh", "reload", "ctrl+r", "reload", "Compare again", "compare"),
    # Causes
    Action(
        "causes.open",
        "open",
        "enter",
        "inspect",
        "Inspect it; n and p there go through the cause",
        scope="causes",
        footer=1,
    ),
    Action(
        "causes.fix", "decide('fix')", "e", "fix", "Edit its config: the criterion is wrong", scope="causes", footer=2
    ),
    Action(
        "causes.accept",
        "decide('accept')",
        "b",
        "baseline",
        "Accept it as the baseline of its tests",
        scope="causes",
        footer=3,
    ),
    Action(
        "causes.quarantine",
        "decide('quarantine')",
        "Q",
        "quarantine",
        "Quarantine its tests: they run, but do not gate",
        scope="causes",
        footer=4,
    ),
    Action(
        "causes.label", "decide('label')", "L", "label", "Label its runs as failed or passed", scope="causes", footer=5
    ),
    Action(
        "causes.ignore",
        "decide('ignore')",
        "I",
        "ignore",
        "Ignore it until something changes",
        scope="causes",
        footer=6,
    ),
    Action("causes.reopen", "reopen", "u", "undo", "Undo the decision: the cause is open again", "causes"),
    Action(
        "causes.next", "next_example", "n", "next run", "Explain the next run with this cause", scope="causes", footer=7
    ),
    Action("causes.previous", "previous_example", "p", "previous run", "Explain the previous run", "causes"),
    Action("causes.scope", "scope", "w", "which runs", "Show the newest runs, the last execution, or all", "causes"),
    Action("causes.only_open", "only_open", "F", "only open", "Show only open causes, or all", "causes"),
    Action("causes.review", "review", "", "review", "Review the runs that need a person", "causes"),
    Action("causes.history", "history", "ctrl+e", "execution", "Go to its execution in the history", "causes"),
    Action("causes.filter", "filter", "slash", "filter", "Filter by words in causes, tests and notes", "causes"),
    Action("causes.pane", "next_pane", "tab", "details", "Switch between the list and the details", "causes"),
    Action("causes.copy", "copy", "y", "copy", "Copy the command that decides about it", "causes"),
    Action("causes.refresh", "reload", "ctrl+r", "reload", "Reload the causes", "causes"),
    # Review
    Action(
        "review.passed", "verdict(True)", "y", "passed", "Label it passed and go to the next", scope="review", footer=1
    ),
    Action(
        "review.failed", "verdict(False)", "n", "failed", "Label it failed and go to the next", scope="review", footer=2
    ),
    Action("review.comment", "comment", "e", "comment", "Write a comment on your verdict", scope="review", footer=3),
    Action(
        "review.skip", "skip", "right_square_bracket", "skip", "Skip it and go to the next", scope="review", footer=4
    ),
    Action(
        "review.undo", "undo", "u", "undo", "Go back to the previous run and remove its label", scope="review", footer=5
    ),
    Action("review.open", "open", "enter", "inspect", "Open it in Inspect", scope="review", footer=6),
    Action("review.failures", "include('failures')", "F", "failures", "Include unlabelled failures, or not", "review"),
    Action(
        "review.differ",
        "include('disagreements')",
        "d",
        "differ",
        "Include results that differ from their label",
        "review",
    ),
    Action("review.sample", "include('sample')", "w", "sample", "Include 20 random runs, or not", "review"),
    Action("review.label", "label", "L", "label", "Give a rating, a verdict and your name", "review"),
    Action(
        "review.agreement",
        "agreement",
        "c",
        "agreement",
        "Show how often criteria agree with people",
        scope="review",
        footer=7,
    ),
    Action("review.pane", "next_pane", "tab", "pane", "Switch between rating, transcript and evidence", "review"),
    Action("review.refresh", "reload", "ctrl+r", "reload", "Reload the queue", "review"),
    # Branches of a test's repetitions
    Action(
        "branches.fork",
        "fork",
        "n",
        "divergence",
        "Go to where passing and failing runs diverge",
        scope="branches",
        footer=1,
    ),
    Action(
        "branches.inspect", "inspect", "enter", "inspect", "Inspect a run of this branch", scope="branches", footer=2
    ),
    Action(
        "branches.compare",
        "compare",
        "d",
        "diff",
        "Compare a failing run with a passing one",
        scope="branches",
        footer=3,
    ),
    Action(
        "branches.arguments",
        "arguments",
        "t",
        "arguments",
        "Compare arguments, or only tool names",
        scope="branches",
        footer=4,
    ),
    Action(
        "branches.scope",
        "scope",
        "w",
        "which runs",
        "Show repetitions of this execution, or of all",
        scope="branches",
        footer=5,
    ),
    Action("branches.fold", "fold", "f", "fold", "Unfold everything, or fold it again", scope="branches", footer=6),
    Action(
        "branches.forks",
        "forks",
        "Z",
        "forks",
        "Show the forks of the run, or its repetitions",
        scope="branches",
        footer=7,
    ),
    Action("branches.keep", "keep", "", "keep", "Keep the fork as a test of the suite", "branches"),
    Action(
        "branches.keep_prompt",
        "keep_prompt",
        "",
        "keep prompt",
        "Save its system prompt as the agent's",
        "branches",
    ),
    Action("branches.stop", "stop", "S", "stop", "Stop the running continuations", "branches"),
    # The error of an agent
    Action("context.next", "next_request", "n", "next", "Go to the next request", scope="context", footer=1),
    Action(
        "context.previous", "previous_request", "p", "previous", "Go to the request before", scope="context", footer=2
    ),
    Action("context.older", "older_messages", "plus", "more", "Show more of its older messages", scope="context"),
    Action(
        "context.answer", "answer", "enter", "answer", "Go to the answer in the transcript", scope="context", footer=3
    ),
    Action(
        "error.next",
        "next_frame",
        "n",
        "next",
        "Go to the next frame: the caller, then the causes",
        scope="error",
        footer=1,
    ),
    Action("error.previous", "previous_frame", "p", "previous", "Go to the frame before", scope="error", footer=2),
    Action(
        "error.editor", "open_editor", "o", "$EDITOR", "Open the line of the frame in $EDITOR", scope="error", footer=3
    ),
    Action("error.fold", "fold", "f", "fold", "Show the frames of packages too, or fold them", scope="error", footer=4),
    # The config editor, wherever it is
    Action("config.complete", "complete", "ctrl+@,ctrl+space", "complete", "List completions", "config"),
    Action("config.tidy", "tidy", "f5", "format", "Format the config; comments stay", "config"),
    Action("config.next_problem", "next_problem", "f8", "next problem", "Go to the next problem", "config"),
    Action("config.search", "search", "ctrl+f", "find", "Find text in the config as you type", "config"),
    Action("config.select_all", "select_all", "ctrl+a", "select all", "Select the whole config", "config"),
    Action("config.start", "start", "ctrl+home", "start", "Go to the start of the text", "config"),
    Action("config.end", "end", "ctrl+end", "end", "Go to the end of the text", "config"),
    # History
    Action(
        "history.open", "open", "enter", "open", "Open the execution, or inspect the run", scope="history", footer=1
    ),
    Action("history.view", "toggle_view", "tab", "runs", "Show executions, or all runs", scope="history", footer=2),
    Action(
        "history.search",
        "filter",
        "slash",
        "search",
        "Search: words, outcome:failed, agent:x, …",
        scope="history",
        footer=3,
    ),
    Action(
        "history.failed",
        "only_failed",
        "F",
        "failed only",
        "Show only runs that did not pass, or all",
        scope="history",
        footer=4,
    ),
    Action(
        "history.mark",
        "mark",
        "space",
        "mark",
        "Mark or unmark it, to compare, delete or export",
        scope="history",
        footer=5,
    ),
    Action("history.unmark", "unmark", "U", "unmark", "Remove all marks", "history"),
    Action(
        "history.compare",
        "compare",
        "c",
        "compare",
        "Compare two marked, or with the baseline",
        scope="history",
        footer=6,
    ),
    Action(
        "history.baseline",
        "baseline",
        "b",
        "baseline",
        "Make it the baseline of its tests (asks)",
        scope="history",
        footer=7,
    ),
    Action("history.clear", "clear_baseline", "B", "clear baseline", "Clear its tests' baseline (asks)", "history"),
    Action(
        "history.name",
        "name",
        "e",
        "edit",
        "Name the execution, or change its note and metadata",
        scope="history",
        footer=8,
    ),
    Action("history.delete", "delete", "x,delete", "delete", "Delete what is marked or selected (asks)", "history"),
    Action("history.prune", "prune", "", "prune…", "Prune old runs, by age and count", "history"),
    Action("history.import", "import_file", "i", "import…", "Import recordings from other tools", "history"),
    Action("history.export", "export", "X", "export…", "Write the runs to a file", "history"),
    Action("history.causes", "causes", "C", "causes", "See why its runs failed, grouped by cause", "history"),
    Action("history.watch", "watch", "alt+w", "watch", "Watch an execution that is running", "history"),
    Action("history.resume", "resume", "R", "resume", "Run the rest of an execution and watch it", "history"),
    Action("history.refresh", "reload", "ctrl+r", "reload", "Reload the list", "history"),
    # Trends
    Action(
        "trends.open",
        "open",
        "enter",
        "open",
        "Open the executions at the cursor, or the run",
        scope="trends",
        footer=1,
    ),
    Action("trends.next", "move(1)", "l,right", "later", "Go to the next period", "trends"),
    Action("trends.previous", "move(-1)", "h,left", "earlier", "Go to the previous period", "trends"),
    Action(
        "trends.measure",
        "measure(1)",
        "right_square_bracket",
        "measure",
        "Show the next measure: pass rate, latency, tokens, cost, calls",
        scope="trends",
        footer=2,
    ),
    Action(
        "trends.measure_before",
        "measure(-1)",
        "left_square_bracket",
        "previous measure",
        "Show the previous measure",
        "trends",
    ),
    Action(
        "trends.group", "group", "s", "split", "Split by suite, test, tag or agent, or not", scope="trends", footer=3
    ),
    Action(
        "trends.window",
        "window(1)",
        "w",
        "window",
        "Show a longer time window, or the shortest",
        scope="trends",
        footer=4,
    ),
    Action("trends.window_before", "window(-1)", "", "shorter", "Show a shorter time window", "trends"),
    Action("trends.by", "by", "", "period", "Plot by execution, hour, day or week, or automatically", "trends"),
    Action(
        "trends.view",
        "view(1)",
        "tab",
        "list",
        "Show the next list: groups, flaky tests, causes, criteria, alerts",
        scope="trends",
        footer=5,
    ),
    Action("trends.view_before", "view(-1)", "shift+tab", "previous list", "Show the previous list", "trends"),
    Action("trends.alert", "alert", "", "alert", "Set the pass rate that triggers an alert", scope="trends", footer=6),
    Action(
        "trends.quarantine",
        "quarantine",
        "Q",
        "quarantine",
        "Quarantine the test: it runs, but does not gate",
        scope="trends",
        footer=7,
    ),
    Action("trends.filter", "filter", "slash", "filter", "Filter: text, tag:x, agent:x, suite:x, name:x", "trends"),
    Action("trends.executions", "executions", "ctrl+e", "executions", "Go to the executions at the cursor", "trends"),
    Action("trends.regrade", "regrade", "", "today's criteria", "Grade all runs with today's criteria", "trends"),
    Action("trends.refresh", "reload", "ctrl+r", "reload", "Reload everything", "trends"),
    # Agents
    Action(
        "agents.chat", "chat", "enter", "try a prompt", "Send a prompt to the chosen agent", scope="agents", footer=1
    ),
    Action(
        "agents.check", "check", "r", "check", "Check the chosen agent; this may cost tokens", scope="agents", footer=2
    ),
    Action(
        "agents.check_all", "check_all", "", "check all", "Check every agent that is shown", scope="agents", footer=3
    ),
    Action(
        "agents.test",
        "make_test",
        "m,ctrl+s",
        "make a test",
        "Make a test from this conversation",
        scope="agents",
        footer=4,
    ),
    Action("agents.new", "forget", "a", "new chat", "Start a new conversation", scope="agents", footer=5),
    Action(
        "agents.editor", "open_editor", "o", "$EDITOR", "Open its configuration in $EDITOR", scope="agents", footer=6
    ),
    Action("agents.filter", "filter", "slash", "filter", "Filter the agents by any word", scope="agents", footer=7),
    Action("agents.pane", "next_pane", "tab", "pane", "Switch between list, details and conversation", "agents"),
    Action("agents.refresh", "reload", "ctrl+r", "reload", "Reload the agents", "agents"),
)


def with_extensions() -> tuple[Action, ...]:
    """The actions of the core, and those of agenteval's own extensions in their places among them."""
    actions = [*_CORE, *PARTS]
    for offered in entry_points.loaded_own(entry_points.ACTIONS, "actions"):
        for action in offered:
            ids = [known.id for known in actions]
            actions.insert(ids.index(action.after) + 1 if action.after in ids else len(ids), action)
    return tuple(actions)


_ALL = with_extensions()
BY_ID = {action.id: action for action in _ALL}
ACTIONS = tuple(action for action in _ALL if not action.part)
"""The actions of screens and their panes."""
SCREENS_OF_PANES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("difference", "branches", "error", "context"), ("inspect",)),
    "config": ("edit", "inspect"),
}
"""The scopes of panes, and those of the screens that have such a pane."""


def in_scope(scope: str) -> list[Action]:
    """The actions of a screen, then those that apply everywhere."""
    scopes = dict.fromkeys((scope, EVERYWHERE))
    return [a for scope in scopes for a in ACTIONS if a.scope == scope]


def beside_pane(scope: str, pane: str, keymap: Mapping[str, str]) -> list[Action]:
    """The actions of a screen that have a key while a pane with the scope `pane` ("": none) has the focus."""
    pane_keys = {key for a in ACTIONS if a.scope == pane for key in keymap.get(a.id, a.keys).split(",") if key}
    return [a for a in ACTIONS if a.scope == scope and not pane_keys & set(keymap.get(a.id, a.keys).split(","))]


def answering(scope: str) -> list[Action]:
    """The actions that a key may mean where a scope is: its own; on a screen those that apply everywhere, too, in a
    pane those of its screens that take a key before it, and over a sheet those of the app that do."""
    own = [a for a in _ALL if a.scope == scope]
    if scope == EVERYWHERE:
        return own
    if any(a.part for a in own):
        return own + [a for a in ACTIONS if a.priority and a.scope == EVERYWHERE]
    before = [a for a in ACTIONS if a.priority and a.scope in SCREENS_OF_PANES.get(scope, ())]
    return [*in_scope(scope), *before]


def bindings(scope: str) -> list[BindingType]:
    """Textual bindings of a screen, a pane, a sheet or a widget (or of the app, for `EVERYWHERE`), with ids, so that a
    keymap can change them."""
    return [
        Binding(a.keys or _NO_KEY, a.method, a.description, show=False, id=a.id, priority=a.priority)
        for a in _ALL
        if a.scope == scope
    ]


_NO_KEY = "no-key"  # no terminal sends it; a keymap can give the action a real one

_KEY_WORDS = {
    "question_mark": "?",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "left_square_bracket": "[",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "right_square_bracket": "]",
    "plus": "+",
    "equals_sign": "=",
    "semicolon": ";",
    "colon": ":",
    "exclamation_mark": "!",
    "dollar_sign": "$",
    "quotation_mark": '"',
    "number_sign": "#",
    "less_than_sign": "<",
    "asterisk": "*",
    "greater_than_sign": ">",
    "minus": "-",
    "escape": "esc",
    "space": "space",
    "enter": "enter",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "ctrl+@": "^space",
}
_PLACEHOLDER = re.compile(r"\{([a-z]+\.[a-z_]+)\}")
_NAMES_OF_WORDS = {word: key for key, word in _KEY_WORDS.items()}


def named_keys(scope: str, names: Iterable[str], keymap: dict[str, str]) -> list[tuple[str, str, str]]:
    """(key, label, method) of some actions of a scope, for a last line that follows what a person does. What has no key
    is in the palette only."""
    actions = [BY_ID[f"{scope}.{name}"] for name in names]
    return [(key_word(keys), a.label, a.method) for a in actions if (keys := keymap.get(a.id, a.keys))]


def key_word(keys: str) -> str:
    """The first of a binding's keys as a person reads it: "/", "^s", "esc"."""
    first = keys.split(",")[0]
    if not first:
        return ""
    if first.startswith("ctrl+") and first not in _KEY_WORDS:
        return "^" + first[5:]
    if first[0] == "f" and first[1:].isdigit():
        return first.upper()
    return _KEY_WORDS.get(first, first)


def key_name(word: str) -> str:
    """The key that a person reads as `word`, as Textual names it; "" for what names no one key ("↑ ↓", "1-5")."""
    if word in _NAMES_OF_WORDS:
        return _NAMES_OF_WORDS[word]
    if len(word) == 2 and word[0] == "^":
        return f"ctrl+{word[1]}"
    if word[:1] == "F" and word[1:].isdigit():
        return word.lower()
    return word if len(word) == 1 or word in ("tab", "delete") or word.startswith(("alt+", "shift+")) else ""


def key_of(action: str, keymap: Mapping[str, str]) -> str:
    """The key of an action as a person reads it, with the person's own keys. Of what has none: that of the palette."""
    keys = keymap.get(action, BY_ID[action].keys)
    return key_word(keys or keymap.get("palette", BY_ID["palette"].keys))


def typing_key(action: str, keymap: Mapping[str, str]) -> str:
    """The key of an action that works also where letters are text: the last of its keys."""
    return key_word(keymap.get(action, BY_ID[action].keys).split(",")[-1])


def with_keys(text: str, keymap: Mapping[str, str]) -> str:
    """The text with the person's keys in place of `{suites.run}` and the like (`{everywhere.projects}` for what works
    everywhere); whatever names no action stays."""

    def key(match: re.Match[str]) -> str:
        action = match[1].removeprefix(f"{EVERYWHERE}.")
        return key_of(action, keymap) if action in BY_ID else match[0]

    return _PLACEHOLDER.sub(key, text)


def keyed(lines: Iterable[Line], keymap: Mapping[str, str]) -> list[Line]:
    """The lines, each cell `with_keys`."""
    return [tuple((with_keys(text, keymap) if "{" in text else text, style) for text, style in line) for line in lines]


def keys_of(action: Action, keymap: Mapping[str, str]) -> str:
    """All keys of an action as a person reads them: "x del"."""
    keys = keymap.get(action.id, action.keys)
    return " ".join(dict.fromkeys(key_word(key) for key in keys.split(","))) if keys else ""


def footer(scope: str, keymap: dict[str, str], most: int = 8) -> list[tuple[str, str, str]]:
    """(key, label, method) of what the footer names, most important first, at most `most`. What has no key is in the
    palette only."""
    named = sorted((a for a in in_scope(scope) if a.footer and keymap.get(a.id, a.keys)), key=lambda a: a.footer)
    chosen = [a for a in named if a.scope == scope][: most - 1] + [a for a in named if a.scope == EVERYWHERE][:1]
    return [(key_word(keymap.get(a.id, a.keys)), a.label, a.method) for a in chosen]
