"""Tool results on the screen: JSON as a line a key, nested values in short until somebody unfolds or marks them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.results import Span
from agenteval_tui.runs.events import Planned, RunRef, RunStarted, StreamPart
from agenteval_tui.runs.live_view import ExecutionView
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.presenters.block_layout import Fold, FoldedText
from agenteval_tui.tui.presenters.highlights import Mark
from agenteval_tui.tui.presenters.run_stream import RunStream
from agenteval_tui.tui.presenters.tool_results import LONGEST, moved, result_body, summary
from agenteval_tui.tui.presenters.transcript import TranscriptDocument
from agenteval_tui.tui.styled_text import plain

ITEMS = [{"sku": "A1", "name": "Kettle", "price": 3.5, "n": 1}, {"sku": "B2", "name": "Lamp", "price": 13.5, "n": 2}]
ORDER: dict[str, Any] = {"id": "#W1042", "status": "shipped", "items": ITEMS, "tags": ["a", "b"]}


def document(result: str, *marks: Mark, width: int = 70) -> TranscriptDocument:
    messages = (Message("user", "?"), Message("assistant", "", tool_calls=(0,)), Message("tool", result, tool_call=0))
    return TranscriptDocument(Transcript(messages, (ToolCall("a", "get_order", {}, result),)), marks=marks, width=width)


def shown(of: TranscriptDocument) -> list[str]:
    of.settle(0, 200)
    return [plain(of.line(row)).rstrip() for row in range(of.height)]


def test_a_result_has_a_line_a_key_and_nested_values_in_short() -> None:
    lines = shown(document(json.dumps(ORDER)))
    assert lines[2:] == [
        '       ◂   id      "#W1042"',
        '           status  "shipped"',
        "           items   2 × {sku, name, price, …}  f",
        '           tags    ["a", "b"]',
    ]


def test_a_result_without_a_letter_is_not_an_empty_row() -> None:
    assert any("(nothing)" in line for line in shown(document("")))
    assert any('(white space: "  \\n")' in line for line in shown(document("  \n")))


def test_the_key_that_unfolds_never_stands_alone_on_a_row() -> None:
    for width in range(24, 60):
        lines = [line.strip() for line in shown(document(json.dumps(ORDER), width=width))]
        assert "f" not in lines
        assert any(line.endswith("…}  f") for line in lines)


def test_unfolding_shows_all_of_it_and_folding_hides_it_again() -> None:
    of = document(json.dumps(ORDER), width=90)
    block = of.index_of(("result", 0))
    assert block is not None
    assert of.is_folded(block)
    of.fold(block, folded=False)
    lines = shown(of)
    assert '             {"sku": "A1", "name": "Kettle", "price": 3.5, "n": 1},' in lines
    assert not any("2 ×" in line for line in lines)
    assert not of.is_folded(block)


def test_what_is_found_or_marked_in_a_nested_value_is_seen() -> None:
    of = document(json.dumps(ORDER))
    assert of.search("Lamp") == 1
    row = of.show_place(of.matches[0])
    of.settle(0, 200)
    assert "Lamp" in plain(of.line(row))
    raw = json.dumps(ORDER)
    at = raw.index("Kettle")
    of = document(raw, Mark(Span("message", 2, at, at + 6), "miss"))
    of.settle(0, 200)
    row = of.show_place(of.places[0])
    marked = [text for text, style in of.line(row) if "miss" in style]
    assert "Kettle" in "".join(marked)


@pytest.mark.parametrize(
    "text", ["", "no JSON", '{"a": ', "[]", "{}", "12", '"text"', '{"a": 1} and more', "[1, 2" + " " * LONGEST + "]"]
)
def test_what_is_no_object_or_list_is_shown_as_it_came(text: str) -> None:
    assert result_body(text).text == text


def test_numbers_that_json_has_not_and_texts_with_lines_are_shown_as_they_are() -> None:
    long = {"n": ["x" * 30] * 3, "nan": float("nan"), "text": "one\ntwo", "big": 10**30}
    text = result_body(json.dumps({"a": long})).text
    assert "NaN" in text
    assert str(10**30) in text
    assert '"one\n' in text
    assert str(10**30) in result_body(json.dumps({"a": {"n": ["x" * 30] * 3, "big": 10**30}})).text


def test_deep_and_hostile_results_are_shown() -> None:
    assert result_body("[" * 40_000).text == "[" * 40_000
    deep = "[" * 900 + "]" * 900
    assert result_body(deep).text
    lines = shown(document(json.dumps({"\x1b[2Jkey": "\u202eevil\x07", "b": {"c" * 80: "\x9b31m"}})))
    assert not any("\x1b" in line or "\x07" in line or "\u202e" in line or "\x9b" in line for line in lines)


def test_summaries() -> None:
    assert summary({"a": 1, "b": 2}) == "{a, b}"
    assert summary(ITEMS) == "2 × {sku, name, price, …}"
    assert summary([1, 2.5]) == "2 numbers"
    assert summary(["a"] * 1200) == "1,200 texts"
    assert summary([1, "a"]) == "2 entries"


def test_a_piece_of_the_result_is_the_same_piece_when_it_is_formatted() -> None:
    raw = '{"a": "x", "b": "x", "c": "caf\\u00e9"}'
    text = result_body(raw).text
    second = raw.index('"x"', raw.index('"b"')) + 1
    start, end = moved(raw, text, second, second + 1)
    assert text[start:end] == "x"
    assert text[:start].count("x") == 1
    at = raw.index("caf")
    start, end = moved(raw, text, at, at + 9)
    assert text[start:end] == "café"
    assert moved(raw, text, 0, len(raw)) == (0, len(text.split("\n")[0]))


def test_a_run_shows_results_as_inspect_does() -> None:
    ref = RunRef("RUN", "order-status", "Order", "", 0, 1, "shop")
    part = StreamPart("tool", key=0, name="get_order", result=json.dumps(ORDER), done=True)
    view = ExecutionView()
    for event in (Planned(1, "E", "shop", (ref,), 1, 0), RunStarted(2, "RUN", 1, 0)):
        view.apply(event)
    lines = [plain(line).rstrip() for line in RunStream().lines(view.runs["RUN"], 71, [part])]
    assert '    ◂       id      "#W1042"' in lines
    assert "            items   2 × {sku, name, price, …}" in lines


@given(st.data())
def test_offsets_of_folded_texts_go_both_ways(data: st.DataObject) -> None:
    full = data.draw(st.text("ab\n", max_size=40))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(full)), max_size=6)))
    folds = [Fold(start, end, "…") for start, end in zip(cuts[::2], cuts[1::2], strict=False)]
    folded = FoldedText(full, folds)
    for offset in range(len(full) + 1):
        there = folded.forth(offset)
        hidden = any(one.start < offset < one.end for one in folds)
        assert (there is None) == hidden
        if there is not None and there < len(folded.text):
            assert folded.back(there) in (offset, *(one.start for one in folds if one.end == offset))


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"x": [{"a": 1, "a": 1}]}', '{"a": 1e999}', "[-1e999]"])
def test_a_result_that_a_value_would_not_hold_is_shown_as_it_came(text: str) -> None:
    assert result_body(text).text == text


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (True, "force = true"),
        (None, "force = null"),
        (0.5, "force = 0.5"),
        (["state", "owner"], 'force = ["state","owner"]'),
        ({"a": 1}, 'force = {"a":1}'),
        ("true", 'force = "true"'),
        ("", 'force = ""'),
    ],
)
def test_an_argument_of_a_run_has_quotes_only_if_it_is_a_text(value: Any, line: str) -> None:
    ref = RunRef("RUN", "order-status", "Order", "", 0, 1, "shop")
    part = StreamPart("tool", key=0, name="get_order", arguments=json.dumps({"force": value}), done=True)
    view = ExecutionView()
    for event in (Planned(1, "E", "shop", (ref,), 1, 0), RunStarted(2, "RUN", 1, 0)):
        view.apply(event)
    lines = [plain(line).strip() for line in RunStream().lines(view.runs["RUN"], 71, [part])]
    assert line in lines
