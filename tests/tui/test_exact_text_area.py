"""A text area gives back exactly the text that it was given."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.tui.widgets.exact_text_area import ExactDocument

TEXTS = st.text(alphabet=st.sampled_from("ab\n\r\u2028\u0085\x0b\t{"), max_size=30)


@given(text=TEXTS)
def test_a_document_gives_back_its_text(text: str) -> None:
    assert ExactDocument(text).text == text


@given(text=TEXTS, insert=st.text(alphabet=st.sampled_from("x\n\u2028"), max_size=6), data=st.data())
def test_an_edit_changes_what_it_names(text: str, insert: str, data: st.DataObject) -> None:
    document = ExactDocument(text)
    size = len(document.newline)

    def place() -> tuple[tuple[int, int], int]:
        row = data.draw(st.integers(0, document.line_count - 1))
        column = data.draw(st.integers(0, len(document.get_line(row))))
        return (row, column), sum(len(line) + size for line in document.lines[:row]) + column

    (start, first), (end, last) = sorted((place(), place()))
    old = document.text
    result = document.replace_range(start, end, insert)
    assert result.replaced_text == old[first:last]
    assert document.text == old[:first] + insert.replace("\n", document.newline) + old[last:]
    row, column = result.end_location
    assert document.get_line(row)[:column].endswith(insert.rpartition("\n")[2])


def test_what_was_deleted_is_put_back_as_it_was() -> None:
    # In a file in which both ends of lines occur, `\r` is a character of its line.
    document = ExactDocument("a\r\nb\nc")
    deleted = document.replace_range((0, 0), (1, 0), "").replaced_text
    assert document.replace_range((0, 0), (0, 0), deleted).end_location == (1, 0)
    assert document.text == "a\r\nb\nc"
