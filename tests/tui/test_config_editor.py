"""The config editor: exact text, colours, problems, fixes, keys; and what a key costs a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual import events
from textual.app import App, ComposeResult

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.tui.presenters.config_lines import (
    HighlightedLines,
    changed_lines,
    moved,
    painted,
    partner,
    token_layers,
)
from agenteval_tui.tui.widgets.config_editor import ConfigEditor, Popup
from agenteval_tui.uxon.complete import Completion
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.tokens import tokenize

CONFIG = """{
  "extract_code_block": 1, // the first
  "metrics": [
    {"type": "TextMatch", "contains_all": ["country", "5000"]}
  ]
}"""


class EditorApp(App[None]):
    def __init__(self, text: str = CONFIG, **options: Any) -> None:
        super().__init__()
        self.editor = ConfigEditor(text, **options)
        self.changes: list[str] = []
        self.questions: list[ConfigEditor.Asked] = []

    def compose(self) -> ComposeResult:
        yield self.editor

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        self.changes.append(event.text)

    def on_config_editor_asked(self, event: ConfigEditor.Asked) -> None:
        self.questions.append(event)


def row(app: EditorApp, y: int) -> str:
    return app.editor.render_line(y).text.rstrip()


def problem(text: str, word: str, severity: Any = "error", fix: Fix | None = None) -> Diagnostic:
    start = text.index(word)
    return Diagnostic(severity, "test", f"{word} is wrong", start, start + len(word), fix)


async def test_what_is_on_the_screen_is_what_would_be_painted_afresh() -> None:
    """After any keys the screen is as if all of it were painted anew."""
    app = EditorApp()
    async with app.run_test(size=(44, 12)) as pilot:
        app.editor.set_diagnostics([problem(CONFIG, "TextMatch")])
        app.editor.compare_with(CONFIG)
        for keys in (
            [*"some words that wrap ", *"and wrap", "home", "delete", "ctrl+z"],
            ["down", "down", "end", "x", "y", "backspace"],
            ["enter", "{", "enter", "z"],
            ["ctrl+z", "ctrl+z", "up", "shift+down", "shift+right", "ctrl+x"],
            ["ctrl+v", "ctrl+v", "home", "delete", "ctrl+k"],
            [*"/*", "down", "down", *"*/", "ctrl+z", "tab", "ctrl+end", *"日本é", "left", "x"],
        ):
            await pilot.press(*keys)
            await pilot.pause()
            compositor = [strip.text for strip in app.screen._compositor.render_strips()]
            styles = [[(s.text, s.style) for s in strip] for strip in app.screen._compositor.render_strips()]
            app.editor.refresh()
            await pilot.pause()
            assert compositor == [strip.text for strip in app.screen._compositor.render_strips()]
            assert styles == [[(s.text, s.style) for s in strip] for strip in app.screen._compositor.render_strips()]


async def test_another_width_is_painted_at_once() -> None:
    app = EditorApp(WRAPPED)
    async with app.run_test(size=(46, 12)) as pilot:
        for width in (90, 60, 100, 33):
            await pilot.resize_terminal(width, 12)
            await pilot.pause()
            shown = [strip.text.rstrip()[: width - 1] for strip in app.screen._compositor.render_strips()]
            assert [line.rstrip() for line in shown] == [row(app, y) for y in range(12)]


async def test_every_edit_is_told_with_the_text() -> None:
    app = EditorApp("{}")
    async with app.run_test(size=(60, 12)) as pilot:
        app.editor.load_text("[]")
        await pilot.pause()
        assert app.changes == []
        await pilot.press("a", "b", "ctrl+z")
        await pilot.pause()
    assert app.changes == ["a[]", "ab[]", "[]"]


async def test_an_answer_about_an_older_text_offers_nothing() -> None:
    app = EditorApp("")
    item = Completion("metrics", "property", "", (TextEdit(0, 2, "metrics"),), 7, 0)
    async with app.run_test(size=(60, 12)) as pilot:
        await pilot.press("m")
        await pilot.pause()
        await pilot.press("e")
        await pilot.pause()
        old, new = app.questions
        app.editor.offer([item], revision=old.revision, typed=True)
        assert not app.query(Popup), "not even made"
        app.editor.offer([item], revision=new.revision, typed=True)
        assert app.query_one(Popup).display


async def test_a_text_that_is_loaded_is_told_to_nobody() -> None:
    app = EditorApp("a")
    async with app.run_test(size=(60, 12)) as pilot:
        app.editor.load_text("b\u2028c")
        await pilot.pause()
        assert app.changes == []
        assert row(app, 0).endswith("1 b⏎c")


@pytest.mark.parametrize("text", ["a\u2028b\n\u0085c\x0bd", "a\r\nb\r\n", "a\r\nb\nc\rd", "\n\n", ""])
async def test_text_is_kept_exactly(text: str) -> None:
    app = EditorApp(text)
    async with app.run_test(size=(60, 12)) as pilot:
        assert app.editor.text == text
        await pilot.press("x")
        assert app.editor.text == "x" + text
        await pilot.press("ctrl+z")
        assert app.editor.text == text


async def test_colours_are_the_parsers() -> None:
    assert token_layers(tokenize(CONFIG), 2, 41) == [
        (2, 22, "json-key"),
        (24, 25, "json-number"),
        (27, 39, "comment"),
    ]
    text = '{\n/* a\nb */ "k": 1}'
    assert token_layers(tokenize(text), 2, 6) == [(0, 4, "comment")]
    assert token_layers(tokenize(text), 3, 5) == [(0, 2, "comment")]
    assert token_layers(tokenize(text), 7, 20)[:2] == [(0, 4, "comment"), (5, 8, "json-key")]
    assert painted("  ab", None, [(2, 4, "x"), (3, 4, "y")]) == (("  ", ""), ("a", "x"), ("b", "x y"))


async def test_problems_stand_in_the_margin_and_move_with_the_text() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 12)) as pilot:
        editor = app.editor
        editor.set_diagnostics([problem(CONFIG, "5000"), problem(CONFIG, "metrics", "warning")])
        assert [line[0] for line in (row(app, y) for y in range(6))] == [" ", " ", "▲", "!", " ", " "]
        underlined = [s.text for s in editor.render_line(3) if s.style and s.style.underline]
        assert underlined == ["5000"]
        await pilot.press("enter")
        await pilot.pause()
        assert [line[0] for line in (row(app, y) for y in range(7))] == [" ", " ", " ", "▲", "!", " ", " "]
        assert len(editor.diagnostics) == 2
        editor.set_diagnostics([])
        assert row(app, 4).startswith(" 5")


async def test_going_to_problems() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 12)) as pilot:
        editor = app.editor
        first, second = problem(CONFIG, "metrics"), problem(CONFIG, "5000")
        editor.set_diagnostics([second, first])
        assert editor.diagnostic_at_cursor() is None
        await pilot.press("f8")
        assert editor.diagnostic_at_cursor() == first
        assert editor.cursor_location == (2, 3)
        await pilot.press("end")
        assert editor.diagnostic_at_cursor() == first, "the nearest of the line"
        await pilot.press("f8")
        assert editor.diagnostic_at_cursor() == second
        await pilot.press("f8")
        assert editor.diagnostic_at_cursor() == first
        editor.go_to(10_000)
        assert editor.cursor_offset == len(CONFIG)


async def test_a_fix_is_one_step_of_undo() -> None:
    app = EditorApp('{"contains_all": "x", "b": 1,}')
    async with app.run_test(size=(80, 12)) as pilot:
        fix = Fix('write ["x"]', (TextEdit(17, 17, "["), TextEdit(20, 20, "]"), TextEdit(28, 29, "")))
        await pilot.press("end", "y")
        app.editor.apply_fix(fix)
        assert app.editor.text == '{"contains_all": ["x"], "b": 1}y'
        await pilot.press("ctrl+z")
        assert app.editor.text == '{"contains_all": "x", "b": 1,}y'
        await pilot.press("ctrl+z")
        assert app.editor.text == '{"contains_all": "x", "b": 1,}'
        await pilot.press("ctrl+y", "ctrl+y")
        assert app.editor.text == '{"contains_all": ["x"], "b": 1}y'
        app.editor.replace_all(CONFIG)
        assert app.editor.text == CONFIG
        await pilot.press("ctrl+z")
        assert app.editor.text == '{"contains_all": ["x"], "b": 1}y'


async def test_enter_keeps_the_indentation() -> None:
    app = EditorApp('  {"a": []}')
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("end", "left", "left", "enter", "1")
        assert app.editor.text == '  {"a": [\n    1\n  ]}'
        await pilot.press("enter", "2")
        assert app.editor.text == '  {"a": [\n    1\n    2\n  ]}'


async def test_read_only() -> None:
    app = EditorApp(read_only=True)
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("x", "enter", "delete", "down", "down")
        assert app.editor.text == CONFIG
        assert app.editor.cursor_location[0] == 2


async def test_tab_leaves_the_editor() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("tab")
        assert app.editor.text == CONFIG


async def test_a_bracket_shows_its_partner() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 12)) as pilot:
        await pilot.press("ctrl+end")
        await pilot.pause()
        marked = [s.text for s in app.editor.render_line(0) if s.style and s.style.underline]
        assert marked == ["{"]
        text = '{"a": ["]", {"b": 1}]}'
        assert partner(tokenize(text), text, 0) == (0, len(text) - 1)
        assert partner(tokenize(text), text, 6) == (6, 20)
        assert partner(tokenize(text), text, 3) is None
        assert partner(tokenize("[[["), "[[[", 0) is None


async def test_the_mouse_finds_the_character() -> None:
    app = EditorApp('a\t日本 \x1b "x"')
    async with app.run_test(size=(80, 12)) as pilot:
        # margin 3; a, tab as two spaces, two wide characters, space, ␛, space, quote
        await pilot.click(ConfigEditor, offset=(3 + 10, 0))
        assert app.editor.cursor_location == (0, 7)
        assert row(app, 0) == ' 1 a  日本 ␛ "x"'
        await pilot.click(ConfigEditor, offset=(3 + 40, 0))
        assert app.editor.cursor_location == (0, 10)


async def test_long_texts_scroll_with_the_cursor() -> None:
    app = EditorApp("\n".join(f'"key{n}": {n},' for n in range(300)))
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("ctrl+end")
        assert row(app, 11).startswith(' 300 "key299": 299,')
        await pilot.press("enter", "x")
        await pilot.pause()
        assert any(row(app, y).startswith(" 301 x") for y in range(12))
        await pilot.press("ctrl+home")
        assert row(app, 0).startswith("   1 ")
        app.editor.apply_fix(Fix("longer", (TextEdit(1, 1, "k" * 60),)))
        await pilot.pause()
        assert row(app, 0) == '   1 "' + "k" * 32, "never sideways"
        assert row(app, 1) == "       " + "k" * 28 + "key"
        assert row(app, 2) == '       0": 0,'
        assert app.editor.scroll_offset.x == 0
        assert app.editor.cursor_screen_offset == (7 + 28, 1)


WRAPPED = """{
  "metrics": [
    {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1042"}}]}
  ]
}"""


async def test_lines_wrap_with_a_hanging_indent() -> None:
    app = EditorApp(WRAPPED)
    async with app.run_test(size=(46, 12)) as pilot:
        editor = app.editor
        assert [row(app, y) for y in range(8)] == [
            " 1 {",
            ' 2   "metrics": [',
            ' 3     {"type": "ToolCheck", "tools":',
            '         [{"name": "get_order", "arguments":',
            '         {"order_id": "#W1042"}}]}',
            " 4   ]",
            " 5 }",
            "",
        ]
        await pilot.press("down", "down", "down")
        assert editor.cursor_screen_offset == (9, 3), "a row down, not a line"
        assert editor.cursor_location == (2, WRAPPED.splitlines()[2].index("[{"))
        await pilot.press("down", "down")
        assert editor.cursor_location == (3, 0)
        await pilot.press("end", "up")
        assert editor.cursor_screen_offset == (9, 4), "where the cursor was moved to last, else the row's start"
        await pilot.press("up", "end")
        assert editor.cursor_screen_offset.y == 3, "the end of the row"
        await pilot.press("end")
        assert editor.cursor_screen_offset == (9 + 25, 4), "then that of the line"
        await pilot.press("home")
        assert editor.cursor_screen_offset == (9, 4)
        await pilot.press("home", "home")
        assert editor.cursor_location == (2, 4), "row by row, then where the text of the line begins"
        await pilot.press("home")
        assert editor.cursor_location == (2, 0)
        await pilot.click(ConfigEditor, offset=(9 + 13, 4))
        assert editor.document.get_line(2)[editor.cursor_location[1] :].startswith('"#W1042"')
        await pilot.click(ConfigEditor, offset=(45, 3))
        assert editor.cursor_screen_offset.y == 3, "behind a row, but in it"
        await pilot.press("shift+down", "shift+down")
        marked = [
            [s.text for s in editor.render_line(y) if s.style and s.style.bgcolor != base(app)] for y in (3, 4, 5)
        ]
        assert [len("".join(texts)) > 0 for texts in marked] == [True, True, True]
        await pilot.press("ctrl+home", "pagedown", "ctrl+k")
        assert editor.text.startswith("{")


def base(app: EditorApp) -> Any:
    """The background of the text."""
    return app.editor.rich_style.bgcolor


async def test_keys_delete_to_the_ends_of_lines_not_of_rows() -> None:
    app = EditorApp("one two three four five six\nseven")
    async with app.run_test(size=(20, 8)) as pilot:
        await pilot.press("down", "ctrl+k")
        assert app.editor.text == "one two three \nseven"
        await pilot.press("ctrl+z", "up", "down", "down", "up", "ctrl+u")
        assert app.editor.text.endswith("\nseven")
        assert app.editor.cursor_location == (0, 0)
        await pilot.press("ctrl+end", "home", "ctrl+u")
        assert "\n" not in app.editor.text, "at the start of a line it is joined to the one before"


async def test_problems_and_changes_stand_beside_the_first_row_of_a_line() -> None:
    app = EditorApp(WRAPPED)
    async with app.run_test(size=(46, 12)) as pilot:
        editor = app.editor
        editor.compare_with(WRAPPED)
        await pilot.pause()
        assert not any("~" in row(app, y) for y in range(8))
        editor.replace_all(WRAPPED.replace('"#W1042"', '{"$one_of": ["#W1042", "W1042"]}'))
        await pilot.pause()
        assert [row(app, y)[:4] for y in (2, 3, 4, 5, 6)] == ["~3  ", "    ", "    ", "    ", " 4  "]
        editor.set_diagnostics([problem(editor.text, "$one_of")])
        await pilot.pause()
        assert row(app, 2).startswith("!3~ ")
        underlined = [s.text for y in range(8) for s in editor.render_line(y) if s.style and s.style.underline]
        assert underlined == ["{", "$one_of", "}"], "the problem, and the brackets at the cursor"
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert not any("~" in row(app, y) for y in range(8))
        editor.compare_with(None)
        await pilot.press("x")
        await pilot.pause()
        assert not any("~" in row(app, y) for y in range(8)), "there is nothing to compare with"


@pytest.mark.parametrize("text", ["a\r\nb\r\n", "a\r\nb\nc"])
async def test_no_line_of_a_text_that_is_as_it_was_is_marked(text: str) -> None:
    app = EditorApp(text)
    async with app.run_test(size=(46, 12)) as pilot:
        app.editor.compare_with(text)
        await pilot.pause()
        assert not any("~" in row(app, y) for y in range(4))


async def test_an_edit_made_from_elsewhere_is_in_view() -> None:
    lines = [f'"key{n}": "some words that take more than a row of this editor",' for n in range(60)]
    app = EditorApp("\n".join(lines))
    async with app.run_test(size=(40, 12)) as pilot:
        app.set_focus(None)
        app.editor.compare_with(app.editor.text)
        app.editor.replace_all("\n".join(line.replace("key40", "one and another, so_long") for line in lines))
        await pilot.pause()
        shown = [row(app, y) for y in range(12)]
        assert [line[:3] for line in shown if "~" in line] == ["~41"]
        assert any("so_long" in line for line in shown[2:-2]), "with what stands around it"
        app.editor.replace_all("\n".join(lines))
        await pilot.pause()
        assert any('"key40"' in row(app, y) for y in range(12))


async def test_the_cursor_is_in_view_after_many_lines_have_come_or_gone() -> None:
    app = EditorApp("x" * 2000)
    async with app.run_test(size=(44, 12)) as pilot:

        def in_view() -> bool:
            top = app.editor.scroll_offset.y
            return top <= app.editor.cursor_cell.y < top + app.editor.scrollable_content_region.height

        await pilot.press("ctrl+end")
        app.post_message(events.Paste("line\n" * 3000))
        await pilot.pause()
        await pilot.pause()
        assert app.editor.cursor_location[0] == 3000
        assert in_view()
        await pilot.press("ctrl+z")
        await pilot.pause()
        assert in_view()
        await pilot.press("ctrl+y")
        await pilot.pause()
        assert in_view()


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\x85", "\u2028", "\u2029"])
async def test_what_is_pasted_has_line_ends(end: str) -> None:
    """Terminals send CR for the end of a line; other programs have others."""
    app = EditorApp("[]")
    async with app.run_test(size=(40, 12)) as pilot:
        await pilot.press("right")
        app.post_message(events.Paste(f'"a",{end}{end}"b"'))
        await pilot.pause()
        assert app.editor.text == '["a",\n\n"b"]'
        assert app.editor.cursor_location == (2, 3)
        await pilot.press("ctrl+z")
        assert app.editor.text == "[]"
        app.copy_to_clipboard(f"1,{end}2")
        await pilot.press("ctrl+v")
        assert app.editor.text == "[1,\n2]"


LINES = st.lists(st.sampled_from(["{", "}", "a", "b", "c", "d"]), min_size=1, max_size=8)


@given(saved=LINES, lines=LINES)
def test_lines_that_are_not_marked_are_saved_ones_in_their_order(saved: list[str], lines: list[str]) -> None:
    marked = changed_lines(saved, lines)
    assert marked <= set(range(len(lines)))
    assert bool(marked) == (saved != lines)
    rest = iter(saved)
    assert all(line in rest for number, line in enumerate(lines) if number not in marked)


def test_a_line_that_is_taken_out_marks_where_it_was() -> None:
    assert changed_lines(["a", "b", "c"], ["a", "c"]) == {1}
    assert changed_lines(["a", "b", "c"], ["a", "b"]) == {1}
    assert changed_lines(["a", "b"], ["a", "x", "b"]) == {1}


async def test_a_terminal_with_no_room_at_all() -> None:
    app = EditorApp(WRAPPED)
    async with app.run_test(size=(20, 5)) as pilot:
        await pilot.press("ctrl+end", "x", "up", "end", "home", "pageup", "down")
        for width in (5, 3, 2, 1, 30):
            await pilot.resize_terminal(width, 3)
            await pilot.press("ctrl+end", "left", "up", "pageup", "y", "backspace")
        assert app.editor.text.startswith("{")


TEXTS = st.text(alphabet=st.sampled_from('ab"{[]}:,/*\n \t日'), max_size=40)


@given(text=TEXTS, offset=st.integers(0, 45))
def test_offsets_and_places_agree(text: str, offset: int) -> None:
    lines = HighlightedLines.of(text.split("\n"), 1)
    offset = min(offset, len(text))
    assert lines.offset(*lines.place(offset)) == offset


@given(old=TEXTS, new=TEXTS, at=st.integers(0, 40), size=st.integers(1, 5))
def test_problems_that_move_stay_on_their_words(old: str, new: str, at: int, size: int) -> None:
    start = min(at, len(old))
    one = Diagnostic("error", "x", "y", start, min(start + size, len(old)))
    for kept in moved([one], old, new):
        # On its words, or, where only they were edited, on what became of them.
        within = new[: kept.start] == old[: one.start] and new[kept.end :] == old[one.end :]
        assert within or new[kept.start : kept.end] == old[one.start : one.end]


SOURCE = """
from agenteval_tui.tui.terminal.terminal_app import TerminalApp
from agenteval_tui.tui.widgets.config_editor import ConfigEditor, Popup

row = '  "metrics": [{"type": "TextMatch", "contains_all": ["country", "5000"], "weight": 2}], // row '
rows = [row + str(n) for n in range(60)]

class EditorApp(TerminalApp):
    def compose(self):
        yield ConfigEditor("{\\n" + "\\n".join(rows) + "\\n}")

EditorApp().run()
"""


@pytest.mark.e2e
def test_a_key_costs_at_most_1000_bytes_and_idle_nothing(run_in_terminal: Callable[..., Any]) -> None:
    with run_in_terminal(SOURCE, columns=120, rows=40) as terminal:
        terminal.wait_for("// row 20")
        terminal.settle()
        for key in ("\x1b[B", "\x1b[B", "x", '"', "{", "\x7f", "\x1b[C", "\x1b[F", "]"):
            assert 0 < terminal.bytes_for(key) <= 1000, repr(key)
        assert terminal.read(1.5) == b""


async def test_a_search_goes_on_with_each_letter() -> None:
    app = EditorApp(CONFIG)
    async with app.run_test(size=(70, 12)) as pilot:
        await pilot.press("ctrl+f", "T", "e")
        assert app.editor.selected_text == "Te", "of TextMatch"
        await pilot.press("backspace", "y", "p", "e")
        assert app.editor.selected_text == "type"
        await pilot.press("backspace", "backspace", "backspace", "backspace", *"co")
        first = app.editor.selection
        await pilot.press("enter")
        assert app.editor.selection != first
        await pilot.press("up")
        assert app.editor.selection == first
        await pilot.press("z")
        assert app.editor.selection == first, "what is not there moves nothing"
        await pilot.press("escape", "x")
        assert app.editor.text == CONFIG.replace("contains", "xntains"), "the first hit behind where the search stood"
        assert app.screen is app.screen_stack[0], "esc ended the search only"


async def test_a_key_that_is_no_part_of_a_search_ends_it() -> None:
    app = EditorApp(CONFIG)
    async with app.run_test(size=(70, 12)) as pilot:
        await pilot.press("ctrl+f", *"code", "right", "x")
        assert "codex_block" in app.editor.text


async def test_the_whole_config_is_selected() -> None:
    app = EditorApp(CONFIG)
    async with app.run_test(size=(70, 12)) as pilot:
        await pilot.press("ctrl+a")
        assert app.editor.selected_text == CONFIG
        await pilot.press("x")
        assert app.editor.text == "x"
