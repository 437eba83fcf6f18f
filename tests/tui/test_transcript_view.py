"""The transcript on the screen: keys, scrolling over estimated heights, folds, evidence, growth, selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.app import App, ComposeResult
from textual.geometry import Offset
from textual.selection import Selection

from agenteval_tui.analysis.blame.model import Blame, Suspect
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.presenters.blame_strip import blame_strip
from agenteval_tui.tui.presenters.highlights import Mark
from agenteval_tui.tui.widgets.transcript_view import TranscriptView


def session(steps: int, words: int = 30) -> Transcript:
    """`steps` calls of a tool; every result is a text whose wrapped height the estimate gets wrong."""
    messages = [Message("user", "Where is my order?")]
    calls = []
    for n in range(steps):
        calls.append(
            ToolCall(f"c{n}", "get_order", {"order_id": f"#W{n}"}, f"order {n}\n" * (n % 6 + 1), duration_ms=n)
        )
        messages.append(Message("assistant", f"step {n}: " + "unbreakablywide " * (n % words), tool_calls=(n,)))
        messages.append(Message("tool", calls[-1].result or "", tool_call=n))
    messages.append(Message("assistant", "It is on its way."))
    return Transcript(tuple(messages), tuple(calls))


class ViewApp(App[None]):
    def __init__(self, transcript: Transcript, marks: tuple[Mark, ...] = ()) -> None:
        super().__init__()
        self.view = TranscriptView(transcript, marks=marks, empty=[(("Nothing was said.", "dim"),)])

    def compose(self) -> ComposeResult:
        yield self.view


def screen(app: ViewApp) -> list[str]:
    return [app.view.render_line(y).text.rstrip() for y in range(app.view.size.height)]


async def test_walking_down_shows_every_row_once_and_up_again_the_same() -> None:
    """Heights are estimates until seen: yet nothing jumps, nothing is skipped, in either direction."""
    app = ViewApp(session(40))
    async with app.run_test(size=(60, 16)) as pilot:
        view = app.view
        view.document.settle(0, 100_000)
        whole = [view.document.line(row) for row in range(view.document.height)]
        view.show_transcript(session(40))
        await pilot.pause()
        assert view.document.height != len(whole), "the estimate is right: this test shows nothing"
        down = []
        for _ in range(2000):
            down.append(view.document.line(view.scroll_offset.y))
            before = view.scroll_offset.y
            view.scroll_to(y=before + 1, animate=False)
            if view.scroll_offset.y == before:
                break
        assert down == whole[: len(down)]
        assert len(down) == len(whole) - 16 + 1
        view.show_transcript(session(40))
        view.action_last()
        await pilot.pause()
        assert view.document.line(view.scroll_offset.y + 15) == whole[-1]
        up = []
        for _ in range(2000):
            up.append(view.document.line(view.scroll_offset.y + 15))
            if view.scroll_offset.y == 0:
                break
            view.scroll_to(y=view.scroll_offset.y - 1, animate=False)
        assert up == whole[15:][::-1]


async def test_keys() -> None:
    app = ViewApp(session(30))
    async with app.run_test(size=(80, 20)) as pilot:
        view = app.view
        assert view.cursor_key == ("message", 0)
        await pilot.press("j")
        assert view.cursor_key == ("message", 1)
        await pilot.press("right_curly_bracket")
        assert view.cursor_key == ("call", 0)
        await pilot.press("right_curly_bracket", "left_curly_bracket", "left_curly_bracket")
        assert view.cursor_key == ("message", 1)
        await pilot.press("G")
        assert view.cursor_key == ("message", 61)
        assert "It is on its way." in screen(app)[-1]
        assert screen(app)[-1].startswith("▌")
        await pilot.press("pageup")
        assert any(line.startswith("▌") for line in screen(app))
        await pilot.press("g")
        assert view.scroll_offset.y == 0
        await pilot.press("pagedown", "k")
        assert any(line.startswith("▌") for line in screen(app))
        await pilot.pause()


async def test_the_cursor_walks_through_a_long_block_by_rows() -> None:
    app = ViewApp(Transcript((Message("user", "\n".join(f"line {n}" for n in range(50))), Message("assistant", "end"))))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("j")
        assert (app.view.cursor, app.view.scroll_offset.y) == (0, 1)
        await pilot.press(*["j"] * 29)
        assert (app.view.cursor, app.view.scroll_offset.y) == (0, 30)
        await pilot.press("j")
        assert app.view.cursor == 1
        await pilot.press("k", "k")
        assert app.view.cursor == 0


async def test_evidence_is_shown_one_after_the_other() -> None:
    marks = (
        Mark(Span("message", 1, 0, 4), "hit"),
        Mark(Span("arguments", 20, path="order_id"), "miss", "expected #W1"),
        Mark(Span("message", 61, 3, 5), "near"),
    )
    app = ViewApp(session(30), marks)
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("full_stop")
        assert app.view.cursor_key == ("message", 1)
        await pilot.press("full_stop")
        assert app.view.cursor_key == ("call", 20)
        assert any('order_id = "#W20"  ✗ expected #W1' in line for line in screen(app))
        await pilot.press("full_stop")
        assert "It is on its way." in screen(app)[-1]
        assert app.view.cursor_key == ("message", 61)
        await pilot.press("full_stop")
        assert app.view.cursor_key == ("message", 1)
        await pilot.press("comma")
        assert app.view.cursor_key == ("message", 61)
        assert app.view.show_mark(marks[1])
        assert app.view.cursor_key == ("call", 20)
        app.view.set_marks(marks[:1])
        await pilot.press("full_stop")
        assert not any("expected" in line for line in screen(app))
        app.view.set_marks(())
        assert app.view.next_mark() is None
        await pilot.pause()


async def test_folding_keeps_the_block_in_sight() -> None:
    result = "\n".join(f"row {n}" for n in range(100))
    transcript = Transcript(
        (Message("assistant", "I look.", tool_calls=(0,)), Message("tool", result, tool_call=0)),
        (ToolCall("a", "query", {}, result),),
    )
    app = ViewApp(transcript)
    async with app.run_test(size=(80, 20)) as pilot:
        assert any("… 92 more lines" in line for line in screen(app))
        await pilot.press("j", "j", "f")
        assert not any("more lines" in line for line in screen(app))
        await pilot.press(*["j"] * 40)
        assert app.view.scroll_offset.y == 40
        await pilot.press("f")
        assert app.view.cursor_key == ("result", 0)
        assert any("… 98 more lines" in line for line in screen(app))
        await pilot.press("alt+a")
        assert app.view.document.height == 5
        await pilot.press("alt+a")
        assert app.view.document.height == 102
        # A click on the row that stands for hidden ones unfolds them.
        app.view.show_transcript(transcript)
        await pilot.pause()
        row = next(y for y, line in enumerate(screen(app)) if "… 92 more lines" in line)
        await pilot.click(TranscriptView, offset=(20, row))
        assert not any("more lines" in line for line in screen(app))


async def test_search_goes_through_what_is_found() -> None:
    app = ViewApp(session(30))
    async with app.run_test(size=(80, 20)) as pilot:
        assert app.view.search("ORDER 1") == sum(n % 6 + 1 for n in (1, *range(10, 20)))
        await pilot.pause()
        assert app.view.cursor_key == ("result", 1)
        app.view.next_match()
        assert app.view.cursor_key == ("result", 1)
        app.view.next_match()
        assert app.view.cursor_key == ("result", 10)
        app.view.previous_match()
        app.view.previous_match()
        app.view.previous_match()
        assert app.view.cursor_key == ("result", 19)
        assert app.view.search("no such words") == 0
        assert app.view.search("") == 0


async def test_who_looks_at_the_end_follows_it_and_who_does_not_stays() -> None:
    app = ViewApp(session(10))
    async with app.run_test(size=(80, 20)) as pilot:
        view = app.view
        await pilot.press("G")
        for size in range(1, 40):
            grown = session(10)
            text = "\n".join(f"streamed {n}" for n in range(size))
            view.update(Transcript((*grown.messages, Message("assistant", text)), grown.tool_calls))
            await pilot.pause(0)
            assert f"streamed {size - 1}" in screen(app)[-1]
        await pilot.press("g")
        before = screen(app)
        view.update(Transcript((*grown.messages, Message("assistant", text + "\nmore")), grown.tool_calls))
        await pilot.pause()
        assert screen(app) == before


async def test_raw_shows_the_same_message() -> None:
    app = ViewApp(session(30))
    async with app.run_test(size=(80, 20)) as pilot:
        app.view.go_to_key(("message", 21))
        app.view.show_raw(True)
        await pilot.pause()
        assert app.view.is_raw
        assert app.view.cursor_key == ("raw", 21)
        assert any('"content": "step 10:' in line for line in screen(app))
        app.view.show_raw(False)
        await pilot.pause()
        assert app.view.cursor_key == ("message", 21)


async def test_nothing_to_show_says_so() -> None:
    app = ViewApp(Transcript())
    async with app.run_test(size=(80, 20)) as pilot:
        assert screen(app)[0] == "Nothing was said."
        await pilot.press("j", "k", "G", "g", "f", "F", "right_curly_bracket", "full_stop", "pagedown", "pageup")
        assert app.view.cursor_key is None
        assert app.view.selected_text == ""
        app.view.update(Transcript((Message("user", "Hello"),)))
        await pilot.pause()
        assert screen(app)[0] == "▌ user      Hello"
        assert app.view.cursor_key == ("message", 0)


async def test_selected_text() -> None:
    app = ViewApp(session(3))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.press("G")
        assert app.view.selected_text == "It is on its way."
        app.screen.selections = {app.view: Selection(Offset(12, 0), Offset(12 + 5, 0))}
        await pilot.pause()
        assert app.view.selected_text == "Where"
        reversed_or_coloured = [s for s in app.view.render_line(0) if s.text == "Where"]
        assert len(reversed_or_coloured) == 1


async def test_wide_letters_are_marked_as_far_as_they_are_selected() -> None:
    app = ViewApp(Transcript((Message("user", "日本語の質問です"),)))
    async with app.run_test(size=(80, 20)) as pilot:
        await pilot.pause()
        # The pointer is behind four letters of two cells each.
        _, behind = app.screen.get_widget_and_offset_at(12 + 8, 0)
        assert behind == Offset(12 + 4, 0)
        app.screen.selections = {app.view: Selection(Offset(12, 0), behind)}
        await pilot.pause()
        assert app.view.selected_text == "日本語の"
        assert [segment.text for segment in app.view.render_line(0) if "日本語" in segment.text] == ["日本語の"]


async def test_a_strip_beside_it_marks_steps_and_moves_no_text() -> None:
    free = Blame(
        run="run",
        reproduces="always",
        runs=3,
        passed=0,
        low=0.0,
        high=0.5,
        possible="unknown",
        fault="agent",
        decisive=Suspect(1, "agent", ()),
        others=(Suspect(2, "tool", ()),),
        steps=6,
    )
    app = ViewApp(session(2))
    async with app.run_test(size=(60, 16)) as pilot:
        view = app.view
        plain = screen(app)
        view.show_transcript(session(2), has_strip=True)
        before = screen(app)
        moved = [" " * bool(row) + row[1:39] for row in plain]
        assert [row[1:40] for row in before] == moved, "room is kept, and it is empty"
        view.show_strip(blame_strip(free))
        shown = screen(app)
        assert [row[2:] for row in shown] == [row[2:] for row in before]
        # A message and its call are one step; the result is a step of its own, wherever it stands.
        beside = [(row[1], row[2:].split()[0]) for row in shown if row[2:].strip()]
        assert beside[:6] == [
            ("┊", "user"), ("◆", "assistant"), ("┃", "tool"), ("┃", "order_id"), ("◇", "◂"), ("┊", "assistant")
        ]  # fmt: skip
        view.text_select_all()
        assert view.selected_text.startswith("Where is my order?")
        view.show_raw(True)
        assert "◆" in {row[1] for row in screen(app)}
        view.show_raw(False)
        view.show_transcript(session(2))
        await pilot.pause()
        assert screen(app) == plain


async def test_resizing_keeps_the_top_row() -> None:
    app = ViewApp(session(30))
    async with app.run_test(size=(100, 20)) as pilot:
        app.view.go_to_key(("call", 20))
        await pilot.pause()
        assert "#W20" in "".join(screen(app))
        await pilot.resize_terminal(60, 20)
        await pilot.pause()
        assert "#W20" in "".join(screen(app))
        await pilot.resize_terminal(40, 12)
        await pilot.pause()
        assert "#W20" in "".join(screen(app))
        assert max(len(line) for line in screen(app)) <= 40


SOURCE = """
from textual.app import App
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.widgets.transcript_view import TranscriptView

row = "the quick brown fox jumps over the lazy dog\\n"
calls = tuple(ToolCall(f"c{n}", "query", {"n": n}, row * 60, duration_ms=9.0) for n in range(2000))
messages = [Message("user", "Question")]
for n in range(2000):
    messages += [Message("assistant", f"step {n}", tool_calls=(n,)), Message("tool", row * 60, tool_call=n)]

class ViewApp(App):
    def compose(self):
        yield TranscriptView(Transcript(tuple(messages), calls))

ViewApp().run()
"""


@pytest.mark.e2e
def test_five_megabytes_in_a_terminal(run_in_terminal: Callable[..., Any]) -> None:
    with run_in_terminal(SOURCE, columns=120, rows=40) as terminal:
        terminal.wait_for("step 2")
        terminal.settle()
        assert 0 < terminal.bytes_for("j") < 500
        assert terminal.read(1.0) == b""
        terminal.send("G")
        terminal.wait_for("step 1999")
        terminal.send("{")
        terminal.wait_for(lambda t: any(line.startswith("▌ tool  ▸   query") for line in t.screen.display))
