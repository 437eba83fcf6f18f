"""The config editor: exact text, colours, problems, fixes, keys; and what a key costs a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from agenteval_tui.core.errors import Fix, TextEdit
from agenteval_tui.tui.presenters.config_lines import HighlightedLines, moved, painted, partner, token_layers
from agenteval_tui.tui.widgets.config_editor import ConfigEditor
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
        self.changes: list[tuple[str, int]] = []

    def compose(self) -> ComposeResult:
        yield self.editor

    def on_config_editor_changed(self, event: ConfigEditor.Changed) -> None:
        self.changes.append((event.text, event.revision))


def row(app: EditorApp, y: int) -> str:
    return app.editor.render_line(y).text.rstrip()


def problem(text: str, word: str, severity: Any = "error", fix: Fix | None = None) -> Diagnostic:
    start = text.index(word)
    return Diagnostic(severity, "test", f"{word} is wrong", start, start + len(word), fix)


async def test_what_is_on_the_screen_is_what_would_be_painted_afresh() -> None:
    """Only changed cells are repainted: after any keys the screen must be as if all were."""
    app = EditorApp()
    async with app.run_test(size=(60, 12)) as pilot:
        app.editor.set_diagnostics([problem(CONFIG, "TextMatch")])
        for keys in (
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


async def test_every_edit_is_told_with_text_and_revision() -> None:
    app = EditorApp("{}")
    async with app.run_test(size=(60, 12)) as pilot:
        app.editor.load("[]")
        await pilot.pause()
        assert app.changes == []
        await pilot.press("a", "b", "ctrl+z")
        await pilot.pause()
    assert [text for text, _ in app.changes] == ["a[]", "ab[]", "[]"]
    assert [later[1] - earlier[1] for earlier, later in zip(app.changes, app.changes[1:], strict=False)] == [1, 1]


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
    lines = HighlightedLines.of(CONFIG.split("\n"), 1)
    assert token_layers(tokenize(CONFIG), lines, 1) == [
        (2, 22, "json-key"),
        (24, 25, "json-number"),
        (27, 39, "comment"),
    ]
    text = '{\n/* a\nb */ "k": 1}'
    lines = HighlightedLines.of(text.split("\n"), 1)
    assert token_layers(tokenize(text), lines, 1) == [(0, 4, "comment")]
    assert token_layers(tokenize(text), lines, 2)[:2] == [(0, 4, "comment"), (5, 8, "json-key")]
    assert painted("  ab", None, [(2, 4, "x"), (3, 4, "y")]) == (("  ", ""), ("a", "x"), ("b", "x y"))


async def test_problems_stand_in_the_margin_and_move_with_the_text() -> None:
    app = EditorApp()
    async with app.run_test(size=(80, 12)) as pilot:
        editor = app.editor
        assert editor.set_diagnostics([problem(CONFIG, "5000"), problem(CONFIG, "metrics", "warning")])
        assert [line[0] for line in (row(app, y) for y in range(6))] == [" ", " ", "!", "✗", " ", " "]
        underlined = [s.text for s in editor.render_line(3) if s.style and s.style.underline]
        assert underlined == ["5000"]
        await pilot.press("enter")
        await pilot.pause()
        assert [line[0] for line in (row(app, y) for y in range(7))] == [" ", " ", " ", "!", "✗", " ", " "]
        assert not editor.set_diagnostics([], revision=editor.revision - 1), "of a text that is gone"
        assert len(editor.diagnostics) == 2
        assert editor.set_diagnostics([], revision=editor.revision)
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
        # Sideways only for who edits: the focus goes to the cursor, and away from it to the lines' starts.
        app.editor.apply_fix(Fix("longer", (TextEdit(1, 1, "k" * 60),)))
        await pilot.pause()
        assert "…" in row(app, 0)[:6]
        app.set_focus(None)
        await pilot.pause()
        assert row(app, 0).startswith('   1 "kkkk')
        app.editor.apply_fix(Fix("longer", (TextEdit(1, 1, "k"),)))
        await pilot.pause()
        assert row(app, 0).startswith('   1 "kkkk')
        app.editor.replace_all(app.editor.text.replace("kkey0", "kkey7"))
        await pilot.pause()
        assert row(app, 0).startswith('   1 "kkkk')
        app.editor.focus()
        await pilot.pause()
        assert app.editor.scroll_offset.x > 0
        assert app.editor.cursor_screen_offset.x < 40


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
        assert new[kept.start : kept.end] == old[one.start : one.end]


SOURCE = """
from textual.app import App
from agenteval_tui.tui.widgets.config_editor import ConfigEditor

row = '  "metrics": [{"type": "TextMatch", "contains_all": ["country", "5000"], "weight": 2}], // row '
rows = [row + str(n) for n in range(60)]

class EditorApp(App):
    def compose(self):
        yield ConfigEditor("{\\n" + "\\n".join(rows) + "\\n}")

EditorApp().run()
"""


@pytest.mark.e2e
def test_a_key_costs_less_than_4000_bytes_and_idle_nothing(run_in_terminal: Callable[..., Any]) -> None:
    with run_in_terminal(SOURCE, columns=120, rows=40) as terminal:
        terminal.wait_for("// row 20")
        terminal.settle()
        for key in ("\x1b[B", "\x1b[B", "x", '"', "{", "\x7f", "\x1b[C", "\x1b[F", "]"):
            assert 0 < terminal.bytes_for(key) < 4000, repr(key)
        assert terminal.read(1.5) == b""
