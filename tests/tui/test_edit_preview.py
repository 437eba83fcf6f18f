"""What an edit changes, as old above new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.errors import TextEdit
from agenteval_tui.tui.presenters.edit_preview import changed_pieces, preview_lines
from agenteval_tui.tui.styled_text import plain, width_of

CALL = """{"metrics": [{"type": "ToolCheck", "ordered": true,
  "tools": [{"name": "get_order", "arguments": {"order_id": "#W1042"}}]}]}"""


@pytest.mark.parametrize(
    ("old", "new", "pieces"),
    [
        ('"#W1042"', '{"$one_of": ["#W1042", "W1042"]}',
         [('"order_id": "#W1042"', '"order_id": {"$one_of": ["#W1042", "W1042"]}')]),
        ('"#W1042"', '"W1042"', [('"order_id": "#W1042"', '"order_id": "W1042"')]),
        (', "ordered": true', "", [('"ordered": true', "")]),
        ("", ', "mode": "any"', [("", '"mode": "any"')]),
    ],
)  # fmt: skip
def test_the_value_stands_with_its_name(old: str, new: str, pieces: list[tuple[str, str]]) -> None:
    start = CALL.index(old) if old else CALL.index("true") + 4
    assert changed_pieces(CALL, [TextEdit(start, start + len(old), new)]) == pieces


def test_an_item_stands_in_its_list_and_places_of_different_lines_apart() -> None:
    text = '{"contains_all": ["a", "b"],\n "contains_any": ["c"]}'
    at, later = text.index('"a", '), text.index('"c"')
    assert changed_pieces(text, [TextEdit(later + 3, later + 3, ', "d"'), TextEdit(at, at + 5, "")]) == [
        ('"contains_all": ["a", "b"]', '"contains_all": ["b"]'),
        ('"contains_any": ["c"]', '"contains_any": ["c", "d"]'),
    ]


def test_a_value_of_several_lines_is_one_place_on_one_line() -> None:
    old = '{\n      "id": "#W1",\n      "tags": [\n        "x"\n      ]\n    }'
    text = '{\n  "arguments": {\n    "order": ' + old + ',\n    "note": "hi"\n  }\n}'
    new = text.replace(old, '{"$one_of": [' + old + ', {"id": "#W1", "tags": ["y"]}]}')
    first = text.index('"id"')
    edits = [
        TextEdit(first, first, '"$one_of": [{'),
        TextEdit(text.index('"x"'), text.index('"x"') + 3, '"x"]}, {"id": "#W1", "tags": ["y"'),
        TextEdit(text.index("}", first), text.index("}", first), "]"),
    ]
    (piece,) = changed_pieces(text, edits)
    assert piece[0] == '"order": { "id": "#W1", "tags": [ "x" ] }'
    assert piece[1].startswith('"order": { "$one_of": [')
    assert new.count("one_of") == 1


def test_an_object_that_becomes_another_one_has_its_name() -> None:
    text = '{"arguments": {"order": {"id": "#W1",\n "note": "hi"}}}'
    start = text.index('"id"')
    assert changed_pieces(text, [TextEdit(start, text.index("}", start), '"$type": "object"')]) == [
        ('"order": {"id": "#W1", "note": "hi"}', '"order": {"$type": "object"}')
    ]


def test_what_is_short_is_whole_and_what_differs_stands_out() -> None:
    text = '{"contains": "' + "word " * 30 + 'end"}'
    at = text.index("end")
    lines = preview_lines(text, [TextEdit(at, at + 3, "ending")], 40)
    assert all(width_of(line) <= 40 for line in lines)
    said = "".join(plain(line)[3:] for line in lines)
    assert said.count("word") == 60
    assert said.count("ending") == 1
    assert [text for line in lines for text, style in line if "underline" in style] == ["ing"]
    assert [plain(line)[:3] for line in lines if plain(line)[1] != " "] == [" - ", " + "]


@pytest.mark.parametrize("changed", ["ending", "ending " * 300])
def test_of_a_long_value_the_part_that_differs_is_in_view(changed: str) -> None:
    text = '{"contains": "' + "word " * 300 + "end" + " word" * 300 + '"}'
    at = text.index("end")
    lines = [plain(line) for line in preview_lines(text, [TextEdit(at, at + 3, changed)], 70)]
    assert len(lines) <= 14, "old and new together"
    old = lines[: next(n for n, line in enumerate(lines) if line.startswith(" + "))]
    assert "end" in " ".join(old)
    assert "ending" in " ".join(lines)
    assert "…" in lines[0]


@given(
    text=st.text(alphabet='{}[]:," ab1\n', max_size=40),
    start=st.integers(0, 40),
    size=st.integers(0, 6),
    new=st.text(max_size=5),
)
def test_any_edit_of_any_text_can_be_shown(text: str, start: int, size: int, new: str) -> None:
    start = min(start, len(text))
    edit = TextEdit(start, min(start + size, len(text)), new)
    assert len(changed_pieces(text, [edit])) == 1
    preview_lines(text, [edit], 20)
