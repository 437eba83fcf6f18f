"""The incremental reader against `json.loads`, on broken and cut-off files, and in bounded memory."""

from __future__ import annotations

import io
import json
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.formats.stream.json_stream import BrokenElement, JsonElement, read_values

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=False, width=32) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def values_of(text: str | bytes, chunk: int = 7, **options: Any) -> tuple[list[Any], list[BrokenElement]]:
    data = text.encode() if isinstance(text, str) else text
    found = list(read_values(io.BytesIO(data), chunk=chunk, **options))
    return [f.value for f in found if isinstance(f, JsonElement)], [f for f in found if isinstance(f, BrokenElement)]


@given(st.lists(json_values, max_size=6), st.integers(1, 40), st.sampled_from([None, 2]), st.booleans())
@settings(deadline=None)
def test_a_list_is_read_as_json_reads_it(values: list[Any], chunk: int, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(values, indent=indent, ensure_ascii=ascii_only)
    assert values_of(text, chunk) == (values, [])


@given(st.lists(json_values.filter(lambda v: not isinstance(v, list)), max_size=6), st.integers(1, 40))
@settings(deadline=None)
def test_json_lines_are_read_as_json_reads_them(values: list[Any], chunk: int) -> None:
    text = "\n".join(json.dumps(value) for value in values)
    assert values_of(text, chunk) == (values, [])


@given(st.lists(st.dictionaries(st.text(max_size=5), st.text()), min_size=1, max_size=5), st.data())
@settings(deadline=None)
def test_a_cut_off_list_gives_what_was_whole_and_says_the_rest(values: list[Any], data: st.DataObject) -> None:
    text = json.dumps(values)
    cut = data.draw(st.integers(1, len(text) - 1))
    read, broken = values_of(text[:cut], data.draw(st.integers(1, 30)))
    assert read == values[: len(read)]
    assert len(broken) == 1
    assert broken[0].cut_off


@given(st.text(alphabet='[]{}",:\\\n 1a', max_size=60), st.integers(1, 9))
@settings(deadline=None)
def test_it_ends_and_never_raises(text: str, chunk: int) -> None:
    values_of(text, chunk)


def test_the_same_whatever_the_window() -> None:
    text = json.dumps(
        [{"a": 'x\\"\u00e9\U0001f600' * 20, "n": 12345678901234567890}, [1, 2.5e10, None]], ensure_ascii=False
    )
    expected = json.loads(text)
    for chunk in range(1, 80):
        assert values_of(text, chunk) == (expected, [])


def test_a_broken_element_costs_only_itself() -> None:
    text = '[{"a": 1}, {"b": oops, "c": "]}"}, {"d": 4}, {"e": "x" "y"}, 5]'
    values, broken = values_of(text)
    assert values == [{"a": 1}, {"d": 4}, 5]
    assert [(b.number, b.cut_off) for b in broken] == [(2, False), (4, False)]
    assert "not valid JSON" in broken[0].reason


def test_a_lost_quote_is_survived_at_the_lines_end() -> None:
    values, broken = values_of('[\n{"a": lost",\n "b": 1},\n{"c": 2}\n]')
    assert {"c": 2} in values
    assert broken


def test_a_broken_line_of_json_lines_costs_only_itself() -> None:
    values, broken = values_of('{"a": 1}\n{"b": \n{"c": 3}\nnonsense\n{"d": 4}\n', chunk=3)
    assert values == [{"a": 1}, {"c": 3}, {"d": 4}] or values == [{"a": 1}, {"d": 4}]
    assert broken
    assert broken[0].line == 2


def test_lists_one_a_line_are_told_apart() -> None:
    found = list(read_values(io.BytesIO(b'[{"a":1},{"b":2}]\n[{"c":3}]\n')))
    assert [(f.value, f.container, f.line) for f in found if isinstance(f, JsonElement)] == [
        ({"a": 1}, 1, 1),
        ({"b": 2}, 1, 1),
        ({"c": 3}, 2, 2),
    ]


def test_bom_wrong_utf8_and_emptiness() -> None:
    assert values_of(b"\xef\xbb\xbf[1]") == ([1], [])
    values, broken = values_of(b'["a\xffb"]')
    assert values == ["a\ufffdb"]
    assert "UTF-8" in broken[0].reason
    assert values_of("") == ([], [])
    assert values_of(" \n ") == ([], [])


def test_what_is_too_large_is_left_out() -> None:
    values, broken = values_of(json.dumps([1, "x" * 500, 2]), chunk=16, largest=100)
    assert values == [1, 2]
    assert "larger than 100" in broken[0].reason


def test_deep_nesting_is_told_not_raised() -> None:
    values, broken = values_of("[" + "[" * 200_000 + "]" * 200_000 + ", 7]", chunk=1 << 16)
    assert values == [7]
    assert len(broken) == 1


class _Endless(io.RawIOBase):
    """A list of `count` objects of about 1 kB, made while it is read."""

    def __init__(self, count: int) -> None:
        self._parts: Iterator[bytes] = self._make(count)
        self._rest = b""

    @staticmethod
    def _make(count: int) -> Iterator[bytes]:
        for number in range(count):
            yield (b"[" if number == 0 else b",") + json.dumps({"n": number, "text": "x" * 1000}).encode()
        yield b"]"

    def read(self, size: int = -1) -> bytes:
        while len(self._rest) < size and (part := next(self._parts, b"")):
            self._rest += part
        out, self._rest = self._rest[:size], self._rest[size:]
        return out


def test_thirty_megabytes_need_less_than_two() -> None:
    tracemalloc.start()
    try:
        count = sum(1 for found in read_values(_Endless(30_000)) if isinstance(found, JsonElement))  # type: ignore[arg-type]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 30_000
    assert peak < 2_000_000


@pytest.mark.parametrize("text", ["12", "true", '"text"', "-3.5e2"])
def test_a_lone_scalar_is_a_value(text: str) -> None:
    assert values_of(text, chunk=1) == ([json.loads(text)], [])
