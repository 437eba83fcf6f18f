"""The transcript as a page: what stands where, marks, folds, search, growth; at any width, with any text."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agenteval_tui.core.display import displayable
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.transcripts.model import Message, Note, RunError, Step, Timing, ToolCall, Transcript
from agenteval_tui.transcripts.observed import TEXT_ONLY
from agenteval_tui.tui.presenters.arguments import call_body
from agenteval_tui.tui.presenters.block_layout import Range, lay_out
from agenteval_tui.tui.presenters.highlights import Mark, marks_of
from agenteval_tui.tui.presenters.prefix_sums import Heights
from agenteval_tui.tui.presenters.transcript import TranscriptDocument
from agenteval_tui.tui.presenters.transcript_blocks import blocks_of
from agenteval_tui.tui.styled_text import plain, width_of

SQL = "SELECT name FROM customers\nWHERE country = 'DE'\n  AND revenue > 5.000"

SHOP = Transcript(
    messages=(
        Message("user", "Gib alle Kunden aus Deutschland mit mehr als 5000 € Umsatz aus."),
        Message("assistant", reasoning="First the schema.", tool_calls=(0, 1)),
        Message("tool", "id, name, country, revenue", tool_call=0),
        Message("tool", "\n".join(f"row {n}" for n in range(40)), tool_call=1),
        Message("assistant", f"Hier ist die Abfrage:\n```sql\n{SQL}\n```"),
    ),
    tool_calls=(
        ToolCall("a", "describe_table", {"table": "customers"}, "id, name, country, revenue", duration_ms=12.4),
        ToolCall("b", "query", {"sql": SQL, "options": {"limit": 3, "only": ["a", None]}}, "...", duration_ms=31.0),
    ),
    timing=Timing(
        None, 1400.0, (Step("turn 1", 0, 900.0), Step("describe_table", 5, 12.4), Step("turn 2", 950, 450.0))
    ),
)


def lines(document: TranscriptDocument) -> list[str]:
    document.settle(0, 1_000_000)
    return [plain(document.line(row)).rstrip() for row in range(document.height)]


def test_it_reads_like_the_sketch() -> None:
    assert lines(TranscriptDocument(SHOP, width=70)) == [
        " user      Gib alle Kunden aus Deutschland mit mehr als 5000",
        "           € Umsatz aus.",
        " reasoning First the schema.                                    900 ms",
        " tool  ▸   describe_table                                        12 ms",
        '           table = "customers"',
        "       ◂   id, name, country, revenue",
        " tool  ▸   query                                                 31 ms",
        '           sql = "SELECT name FROM customers',
        "             WHERE country = 'DE'",
        '               AND revenue > 5.000"',
        "           options = {",
        '             "limit": 3,',
        '             "only": [',
        '               "a",',
        "               null",
        "             ]",
        "           }",
        *[f"       ◂   row {n}" if n == 0 else f"           row {n}" for n in range(8)],
        "           … 32 more lines  f",
        " assistant Hier ist die Abfrage:                                450 ms",
        "           ```sql",
        "           SELECT name FROM customers",
        "           WHERE country = 'DE'",
        "             AND revenue > 5.000",
        "           ```",
    ]


def test_a_narrow_pane_has_the_roles_above() -> None:
    shown = lines(TranscriptDocument(SHOP, width=40))
    assert shown[:4] == [
        " user",
        "   Gib alle Kunden aus Deutschland mit",
        "   mehr als 5000 € Umsatz aus.",
        " reasoning                        900 ms",
    ]
    assert " tool ▸                            12 ms" in shown
    assert " ◂" in shown
    assert all(len(line) <= 40 for line in shown)


def test_what_went_wrong_is_said_in_words() -> None:
    transcript = Transcript(
        messages=(Message("assistant", "", tool_calls=(0, 1)), Message("tool", "lost"), Message("assistant", "")),
        tool_calls=(
            ToolCall("a", "broken", '{"table": ', malformed=True, result="no such tool", status="error"),
            ToolCall("b", "slow", {}, status="pending"),
            ToolCall("c", "nobody", {"x": 1}),
        ),
        error=RunError("timeout", "The agent did not answer in 60 s.", "Give it more time: `timeout: 120`."),
    )
    assert lines(TranscriptDocument(transcript, width=70)) == [
        " tool  ▸   broken                               arguments are not JSON",
        '           {"table":',
        "       ◂   no such tool                                          error",
        " tool  ▸   slow                                              no answer",
        " tool  ◂   lost                                        matches no call",
        " assistant (nothing)",
        " tool  ▸   nobody",
        "           x = 1",
        " error !   timeout: The agent did not answer in 60 s.",
        "           Give it more time: `timeout: 120`.",
    ]


def row_with(document: TranscriptDocument, text: str) -> int:
    document.settle(0, 10_000)
    return next(row for row in range(document.height) if text in plain(document.line(row)))


def styles_of(document: TranscriptDocument, row: int, text: str) -> str:
    return next(style for cell, style in document.line(row) if cell == text)


def test_marks_are_signs_and_colours_in_the_text() -> None:
    answer = SHOP.messages[4].content
    start = answer.index("5.000")
    marks = [
        Mark(Span("message", 4, start, start + 5), "near"),
        Mark(Span("message", 4, answer.index("country"), answer.index("country") + 7), "hit"),
        Mark(Span("message", 3, 4, 5), "miss"),
        Mark(Span("arguments", 1, path="options.limit"), "miss", "expected 5"),
        Mark(Span("arguments", 0, path="schema"), "miss", "schema is missing"),
        Mark(Span("tool", 1), "hit"),
    ]
    document = TranscriptDocument(SHOP, marks=marks, width=70)
    row = next(row for row in range(document.height) if plain(document.line(row)).startswith("≈"))
    assert "AND revenue > 5.000" in plain(document.line(row))
    assert "on-near-miss" in styles_of(document, row, "5.000")
    hit = row_with(document, "WHERE country")  # in the call's SQL first
    hit = next(r for r in range(hit + 1, document.height) if "WHERE country" in plain(document.line(r)))
    assert plain(document.line(hit)).startswith("✓")
    assert "underline" in styles_of(document, hit, "country")
    assert plain(document.line(row_with(document, "row 0"))).startswith("✗")
    assert plain(document.line(row_with(document, '"limit": 3'))).rstrip().endswith('"limit": 3,  ✗ expected 5')
    missing = row_with(document, "schema is missing")
    assert plain(document.line(missing)).startswith("✗tool  ▸   describe_table  ✗ schema is missing")
    assert [place.mark.span.kind for place in document.places if place.mark] == [
        "arguments", "tool", "arguments", "message", "message", "message",
    ]  # fmt: skip
    # A sign is never left behind by its note.
    for width in range(24, 70):
        narrow = TranscriptDocument(SHOP, marks=marks, width=width)
        lines = [plain(narrow.line(row)).rstrip() for row in range(narrow.height)]
        assert not [line for line in lines if line.endswith("✗")], width
        assert any("✗ schema" in line for line in lines)


def test_an_empty_place_gets_a_caret() -> None:
    transcript = Transcript((Message("assistant", "Dear ,"),))
    document = TranscriptDocument(transcript, marks=[Mark(Span("message", 0, 5, 5), "miss")], width=60)
    assert lines(document) == ["✗assistant Dear ‸,"]


def test_marks_keep_their_place_when_signs_stand_for_characters() -> None:
    # One raw character may show as none, as one of another width, or as four (a tab).
    text = "a\r\nb\t\u202ec\ufe0fd\x1b[31m日本needle!"
    start = text.index("needle")
    transcript = Transcript((Message("assistant", text),))
    document = TranscriptDocument(transcript, marks=[Mark(Span("message", 0, start, start + 6), "near")], width=60)
    shown = lines(document)
    assert shown[1] == "≈          b    ↔cd␛[31m日本needle!"
    assert "on-near-miss" in styles_of(document, 1, "needle")


def test_folded_results_say_what_they_hide_and_a_mark_unfolds_them() -> None:
    result = SHOP.messages[3].content
    start = result.index("row 33")
    document = TranscriptDocument(SHOP, marks=[Mark(Span("message", 3, start, start + 6), "hit")], width=70)
    row = row_with(document, "… 32 more lines, evidence in them (1)")
    block = document.block_at(row)
    assert document.is_folded(block)
    place = document.next_place(document.places, 0, 1)
    assert place is not None
    found = document.show_place(place)
    assert plain(document.line(found)).rstrip() == "✓          row 33"
    assert not document.is_folded(block)
    document.fold(block, folded=True)
    document.settle(0, 1000)
    assert document.bottom(block) - document.top(block) == 3


def test_search_finds_everything_in_any_case() -> None:
    document = TranscriptDocument(SHOP, width=70)
    assert document.search("COUNTRY") == 3
    found = [document.blocks[place.block].key for place in document.matches]
    assert found == [("result", 0), ("call", 1), ("message", 4)]
    place = document.next_place(document.matches, 0, 1)
    row = document.show_place(place)
    assert "reverse" in styles_of(document, row, "country")
    assert document.show_place(document.next_place(document.matches, 0, 1)) > row
    assert document.search("") == 0
    assert document.search("row 39") == 1, "also in what is folded"
    assert document.search("İstanbul") == 0


def test_growth_touches_only_what_changed() -> None:
    base = SHOP.messages[:-1]
    document = TranscriptDocument(Transcript(base, SHOP.tool_calls), width=70)
    before = lines(document)
    for end in range(1, len(SHOP.messages[4].content) + 1, 7):
        grown = Transcript((*base, Message("assistant", SHOP.messages[4].content[:end])), SHOP.tool_calls)
        start = document.update(grown)
        assert start == 6
        assert lines(document)[: len(before)] == before
        assert lines(document) == lines(TranscriptDocument(grown, width=70))


def test_what_stands_before_the_first_message_belongs_to_no_step() -> None:
    notes = (Note(TEXT_ONLY, "a text"), Note("unread", "a part"))
    setup = Step("imports", 0, 500.0, setup=True)
    document = TranscriptDocument(replace(SHOP, notes=notes, timing=Timing(steps=(setup,))), width=80)
    kinds = [block.key[0] for block in document.blocks[:4]]
    assert kinds == ["ending", "unseen", "setup", "message"]
    assert [document.step_of(block) for block in range(4)] == [None, None, None, 0]
    assert document.first_of_step(3)


@pytest.mark.parametrize("seed", range(5))
def test_streaming_ends_like_opening(seed: int) -> None:
    """Whatever the steps in between were, the page is the one that opening the last state gives."""
    rng = random.Random(seed)
    document = TranscriptDocument(Transcript(), width=50)
    messages: list[Message] = []
    calls: list[ToolCall] = []
    for _ in range(60):
        choice = rng.random()
        if choice < 0.3 or not messages:
            messages.append(Message(rng.choice(["user", "assistant"]), "x"))
        elif choice < 0.5:
            last = messages[-1]
            messages[-1] = Message(
                last.role, last.content + " word\n" * rng.randint(1, 5), last.reasoning, last.tool_calls
            )
        elif choice < 0.7 and messages[-1].role == "assistant":
            last = messages[-1]
            calls.append(ToolCall(str(len(calls)), "tool", {"n": len(calls)}, status="pending"))
            messages[-1] = Message("assistant", last.content, last.reasoning, (*last.tool_calls, len(calls) - 1))
        elif calls:
            n = rng.randrange(len(calls))
            calls[n] = ToolCall(calls[n].id, "tool", calls[n].arguments, "line\n" * rng.randint(0, 20), "ok", 1.0, 2.0)
            if rng.random() < 0.5:
                messages.append(Message("tool", calls[n].result or "", tool_call=n))
        state = Transcript(tuple(messages), tuple(calls))
        document.update(state)
        if rng.random() < 0.3:
            document.settle(rng.randrange(max(document.height, 1)), 30)
        assert lines(document) == lines(TranscriptDocument(state, width=50, folds=document.folds))


def test_the_stored_form_is_json() -> None:
    document = TranscriptDocument(SHOP, width=100, raw=True)
    text = "".join(document.text(index) for index in range(len(document.blocks)))
    assert '"content": "Gib alle Kunden aus Deutschland' in text
    assert json.loads(document.text(0))["role"] == "user"
    assert json.loads(document.text(5)) == {
        "id": "a", "name": "describe_table", "arguments": {"table": "customers"},
        "result": "id, name, country, revenue", "status": "ok", "duration_ms": 12.4,
    }  # fmt: skip
    assert styles_of(document, row_with(document, '"role": "user"'), '"role"') == "json-key"


def test_long_texts_are_laid_out_in_pieces_and_only_where_seen() -> None:
    line = "wörter und noch mehr Wörter 日本語 " * 3
    transcript = Transcript((Message("user", "Q"), Message("assistant", "\n".join([line] * 20_000))))
    document = TranscriptDocument(transcript, width=80)
    document.settle(0, 50)
    assert len(document._rows) <= 3
    middle = document.height // 2
    document.settle(middle, 50)
    assert all(plain(document.line(row)).strip() for row in range(middle, middle + 50))
    assert len(document._rows) <= 6


def test_width_changes_keep_the_text() -> None:
    document = TranscriptDocument(SHOP, width=100)
    document.fold_all(folded=False)
    wanted = "".join("".join(lines(document)).split())
    document.set_width(66)
    assert "".join("".join(lines(document)).split()) == wanted
    assert all(width_of(document.line(row)) <= 66 for row in range(document.height))


def test_selected_rows_come_without_roles_and_with_their_lines() -> None:
    document = TranscriptDocument(SHOP, width=50)
    document.settle(0, 1000)
    row = row_with(document, "Gib alle")
    assert document.text_between(row, 0, row + 1, -1) == SHOP.messages[0].content
    row = row_with(document, "```sql")
    assert document.text_between(row + 1, 0, row + 3, -1) == SQL
    assert document.text_between(row + 1, 11 + 7, row + 1, 11 + 11) == "name"


def test_evidence_becomes_marks_once_a_kind() -> None:
    here, there = Span("message", 4, 0, 4), Span("arguments", 1, path="sql")
    metric = MetricResult(
        "m", "TextMatch", Outcome.FAILED, 0.0,
        evidence=(
            Evidence("contains[0]", True, "found", spans=(here, Span("value", 0, 1, 2))),
            Evidence("contains[1]", True, "found", spans=(here,)),
            Evidence("contains[2]", False, "not found", near=(there,)),
            Evidence("not_contains[0]", False, "found", spans=(here,)),
        ),
    )  # fmt: skip
    marks = marks_of([CriterionResult("c", Outcome.FAILED, 0.0, metrics=(metric,))])
    assert [(mark.span, mark.kind) for mark in marks] == [(here, "hit"), (there, "near"), (here, "miss")]


ANY_TEXT = st.text(
    alphabet=st.one_of(st.characters(), st.sampled_from("a \n\t\r日é\u0301\u202e\x1b\ufe0f\ud800👍")), max_size=200
)


@given(text=ANY_TEXT, width=st.integers(1, 30), data=st.data())
@settings(max_examples=75, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_is_lost_when_text_is_laid_out(text: str, width: int, data: st.DataObject) -> None:
    bounds = st.integers(0, len(text))
    ranges = [
        Range(*sorted((data.draw(bounds), data.draw(bounds))), "bold", weight=n, signs=data.draw(st.booleans()))
        for n in range(data.draw(st.integers(0, 3)))
    ]
    rows = lay_out(text, 0, len(text), width, ranges=ranges)
    shown = "".join(cell for row in rows for cell, _ in row.cells)
    for sign in "[]‸":
        if sign not in text:
            shown = shown.replace(sign, "")
    if not any(sign in text for sign in "[]‸"):
        assert "".join(shown.split()) == "".join(displayable(text).split())
    assert all(not row.cells or displayable(plain(row.cells)) == plain(row.cells) for row in rows)
    assert [row.start for row in rows] == sorted(row.start for row in rows)


@given(heights=st.lists(st.integers(0, 5), max_size=40), data=st.data())
@settings(deadline=None)
def test_heights_are_sums(heights: list[int], data: st.DataObject) -> None:
    tree = Heights(heights)
    if heights:
        at = data.draw(st.integers(0, len(heights) - 1))
        heights[at] = data.draw(st.integers(0, 9))
        tree.set(at, heights[at])
        heights[at:at] = [3, 1]
        tree.splice(at, at, [3, 1])
    assert [tree.top(n) for n in range(len(heights) + 1)] == [sum(heights[:n]) for n in range(len(heights) + 1)]
    rows = [(n, into) for n, height in enumerate(heights) for into in range(height)]
    assert [tree.at(row) for row in range(len(rows))] == rows
    assert tree.at(len(rows) + 2) == (len(heights), 2)


def test_places_of_arguments() -> None:
    body = call_body("f", {"a": {"b": [1, {"c": "x"}]}, "d": True})
    assert body.text[slice(*body.places["a.b.1.c"])] == '"c": "x"'
    assert body.text[slice(*body.places["a.b.0"])] == "1"
    assert body.text[slice(*body.places["d"])] == "d = true"
    deep: object = 1
    for _ in range(500):
        deep = {"k": deep}
    assert "…" in call_body("f", {"deep": deep}).text


def test_each_step_says_which_agent_wrote_it() -> None:
    transcript = Transcript(
        messages=(
            Message("user", "Hello"),
            Message("assistant", "I hand over", name="desk", tool_calls=(0,)),
            Message("assistant", name="refunds", tool_calls=(1,)),
            Message("assistant", "Done", name="a very long name"),
            Message("assistant", "Bye"),
        ),
        tool_calls=(ToolCall("a", "transfer", {}, "ok", duration_ms=1.0), ToolCall("b", "refund", {}, "ok")),
    )
    steps = [(block.label, block.aside[0]) for _, block in blocks_of(transcript) if block.key[0] in ("message", "call")]
    assert steps == [
        ("user", ""), ("desk", ""), ("tool", "1 ms"), ("tool", "refunds"), ("a very l…", ""), ("assistant", ""),
    ]  # fmt: skip
