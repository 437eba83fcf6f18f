"""Fenced code blocks: what closes one, and who reads them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.code_fences import fenced_blocks, whole_block
from agenteval_tui.grading.extracted_value import JsonValue
from agenteval_tui.grading.extractors.json_response import JsonResponse
from agenteval_tui.transcripts.model import Message, Transcript

CODE = "```python\nprint(1)\n```"


def read(answer: str) -> Any:
    transcript = Transcript(messages=(Message("user", "q"), Message("assistant", answer)), final_output=answer)
    value = JsonResponse().extract(transcript)
    return value.data if isinstance(value, JsonValue) else None


@pytest.mark.parametrize("answer", [
    "```json\n{}\n```",
    "````json\n{}\n````",
    "`````\n{}\n`````",
    "~~~json\n{}\n~~~",
    "```json\n{}\n`````",
    "```json\r\n{}\r\n```\r\n",
    "Here:\n\n  ```JSON title\n  {}\n  ```\nand text with ```.",
    "```python\nx = '```'\n```\n```json\n{}\n```",
])  # fmt: skip
@pytest.mark.parametrize("value", [{"a": 1}, {"code": CODE}, {"b": "```"}, ["````\n{}\n````"]])
def test_json_in_a_block_may_hold_fences(answer: str, value: Any) -> None:
    assert read(answer.replace("{}", json.dumps(value), 1)) == value


@pytest.mark.parametrize("answer", ["```json\n{}```", "Here: ```json\n{}\n```", "```{}```", "see ```{}``` there"])
def test_fences_that_stand_in_a_line_are_read_too(answer: str) -> None:
    assert read(answer.replace("{}", '{"a": 1}')) == {"a": 1}


def test_nothing_inside_of_a_block_is_taken_for_one() -> None:
    assert read('```json\n{"a": "```{}```", "b": }\n```') is None


@pytest.mark.parametrize("answer", ['```json\n{"a": 1}', '````json\n{"a": 1}\n```', '~~~json\n{"a": 1}\n```'])
def test_a_block_that_is_never_closed_is_none(answer: str) -> None:
    assert list(fenced_blocks(answer)) == []


def test_a_shorter_fence_is_code() -> None:
    text = "````markdown\n```json\n{}\n```\n````"
    block = whole_block(text)
    assert block is not None
    assert text[block.inner_start : block.inner_end] == "```json\n{}\n```"


lines = st.lists(st.sampled_from(["```", "````", "~~~", "```json", "  ```", "{}", "", "text ``` text", "~~~~", "``"]))


@given(lines, st.integers(3, 6), st.sampled_from("`~"))
def test_what_is_fenced_longer_than_what_it_holds_is_one_block(inside: list[str], more: int, kind: str) -> None:
    fence = kind * (more + 4)
    text = "\n".join([fence + "x", *inside, fence])
    block = whole_block(text)
    assert block is not None
    assert text[block.inner_start : block.inner_end].split("\n") == (inside or [""])


@given(lines)
def test_blocks_are_apart_and_inside_of_the_text(inside: list[str]) -> None:
    text, at = "\n".join(inside), 0
    for block in fenced_blocks(text):
        assert at <= block.start <= block.inner_start <= block.inner_end <= block.end <= len(text)
        assert text[block.start] == text[block.end - 1]
        at = block.end


def test_many_fences_cost_no_quadratic_work() -> None:
    # A search for the end of each would read 60 thousand million characters.
    assert list(fenced_blocks("````x\n" * 100_000 + "```")) == []
