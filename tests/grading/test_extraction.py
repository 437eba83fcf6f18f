"""TextResponse and ToolResponse: what they take out, where it came from, and why there was nothing."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import CriterionResult, Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

BLOCKS = "Sure:\n```python\nprint(1)\n```\nthen\n```sql\nSELECT 1;\n```\nand\n```\nplain\n```"


def answer(text: str) -> Transcript:
    return Transcript((Message("user", "Hi"), Message("assistant", text)), final_output=text)


def extract(text: str, **extraction: Any) -> CriterionResult:
    spec = CriterionSpec("it", "TextResponse", extraction)
    result = compile_criterion(spec).check(answer(text))
    quick = compile_criterion(spec).check(answer(text), explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


@pytest.mark.parametrize(
    ("extraction", "value"),
    [
        ({}, BLOCKS),
        ({"extract_code_block": 1}, "python\nprint(1)\n"),
        ({"extract_code_block": 2}, "sql\nSELECT 1;\n"),
        ({"extract_code_block": 3}, "\nplain\n"),
        ({"extract_code_block": 2, "with_block": True}, "```sql\nSELECT 1;\n```"),
        ({"extract_code_block": 1, "code_language": "sql"}, "SELECT 1;"),
        ({"code_language": "SQL"}, "SELECT 1;"),
        ({"code_language": "sql", "with_block": True}, "```sql\nSELECT 1;\n```"),
        ({"extract_by_regex": "/select (\\d)/i"}, "1"),
        ({"extract_by_regex": "SELECT \\d"}, "SELECT 1"),
        ({"extract_by_regex": "#print\\((\\d)\\)#"}, "1"),
        ({"extract_by_regex": "~PLAIN~i"}, "plain"),
        ({"extract_by_regex": "(?:plain|then)"}, "then"),
        ({"extract_by_regex": "[a-t]"}, "r"),
        ({"extract_by_regex": "{SELECT (\\d)}"}, "1"),
        ({"extract_by_regex": "/print.(\\d)/", "with_block": True}, "print(1"),
        ({"extract_by_regex": "/```(\\w+)/", "extract_match": 2}, "sql"),
        ({"extract_by_regex": "/^and$/m"}, "and"),
        ({"extract_by_regex": "/Sure.*print/s"}, "Sure:\n```python\nprint"),
        ({"extract_code_block": 2, "extract_by_regex": "/[A-Z]+ (\\d)/"}, "1"),
        ({"extract_by_regex": "/(?<word>the\\w+)/"}, "then"),
    ],
)
def test_values_and_their_place_in_the_message(extraction: dict[str, Any], value: str) -> None:
    result = extract(BLOCKS, **extraction)
    assert result.value == value
    (span,) = result.value_spans
    assert span.kind == "message"
    assert span.index == 1
    assert BLOCKS[span.start : span.end] == value


def test_language_strips_the_line_breaks_around_the_code_only() -> None:
    assert extract("```sql\n\n  a\n\n b\n\n```", code_language="sql").value == "  a\n\n b"
    assert extract("```sql title=x\na\n```", code_language="sql").value == "a"
    assert extract("```sql\n```", code_language="sql").value == ""
    assert extract("```sql```", code_language="sql").outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("text", "extraction", "words"),
    [
        ("no code", {"extract_code_block": 1}, ["nothing extracted", "no code block in the final answer", "1 line"]),
        (BLOCKS, {"extract_code_block": 4}, ["4th code block", "3 code blocks"]),
        (
            BLOCKS,
            {"code_language": "rust"},
            ["1st rust code block", '"python" (line 2)', '"sql" (line 6)', "no language"],
        ),
        ("```sql\nSELECT", {"extract_code_block": 1}, ["never closed", "line 1"]),
        ("total: 5", {"extract_by_regex": "/total = (\\d+)/"}, ["no match for", "its beginning total", "line 1"]),
        ("a=1", {"extract_by_regex": "/a=(\\d)/", "extract_match": 2}, ["2nd match", "1 match"]),
        ("b", {"extract_by_regex": "/(a)|b/"}, ["group 1 matched nothing"]),
        ("b", {"extract_by_regex": "/a/"}, ["no match for /a/ in the final answer (1 line, 1 character)"]),
        ("", {"extract_by_regex": "/a/"}, ["the final answer is empty"]),
        (BLOCKS, {"extract_code_block": 2, "extract_by_regex": "/print/"}, ["no match", "in the code block"]),
    ],
)
def test_nothing_extracted(text: str, extraction: dict[str, Any], words: list[str]) -> None:
    result = extract(text, **extraction)
    assert result.outcome is Outcome.FAILED
    assert result.score == 0.0
    assert result.rating == 1
    assert result.value is None
    for word in words:
        assert word in criterion_sentence(result)
    (line,) = result.metrics[0].evidence
    assert line.passed is False
    assert all(span.kind == "message" for span in (*line.spans, *line.near))


def test_nothing_extracted_marks_what_was_searched_and_what_is_near() -> None:
    (line,) = extract(BLOCKS, extract_code_block=5).metrics[0].evidence
    assert line.spans == (Span("message", 1, 0, len(BLOCKS)),)
    assert [BLOCKS[s.start : s.end] for s in line.near][1] == "```sql\nSELECT 1;\n```"
    text = "The total: 5"
    (line,) = extract(text, extract_by_regex="/total = (\\d+)/").metrics[0].evidence
    assert [text[s.start : s.end] for s in line.near] == ["total"]


def test_extraction_alone_is_a_check() -> None:
    assert extract("a1", extract_by_regex="/\\d/").outcome is Outcome.PASSED
    assert extract("a1", extract_by_regex="/\\d/").score == 1.0
    spec = CriterionSpec("it", "TextResponse", {"extract_by_regex": "/password/"}, negate=True)
    assert compile_criterion(spec).check(answer("none")).outcome is Outcome.PASSED
    assert compile_criterion(spec).check(answer("my password")).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("extraction", "words"),
    [
        ({"extract_by_regex": "/(a/"}, ["extract_by_regex", "never closed"]),
        ({"extract_by_regex": ""}, ["empty"]),
        ({"extract_by_regex": "/a/q"}, ["flag q"]),
        ({"extract_code_block": 0}, ["extract_code_block", "1"]),
        ({"extract_code_block": "1"}, ["a whole number"]),
        ({"extract_code_block": True}, ["a whole number"]),
        ({"with_block": "yes"}, ["true or false"]),
        ({"extract_codeblock": 1}, ["did you mean `extract_code_block`"]),
        ({"extract_match": 0}, ["extract_match"]),
    ],
)
def test_broken_properties(extraction: dict[str, Any], words: list[str]) -> None:
    result = extract("text", **extraction)
    assert result.outcome is Outcome.ERROR
    for word in words:
        assert word in criterion_sentence(result)


def test_a_slow_pattern_is_an_error_also_when_negated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.grading.regex_search.TIME_LIMIT", 0.05)
    spec = CriterionSpec("it", "TextResponse", {"extract_by_regex": "/^(a|a|aa)+$b/"}, negate=True)
    result = compile_criterion(spec).check(answer("a" * 60))
    assert result.outcome is Outcome.ERROR
    assert result.score is None
    assert "longer than" in criterion_sentence(result)


def test_tool_text_maps_back_to_the_calls() -> None:
    calls = (
        ToolCall("a", "search_user", {"name": "John", "limit": 10}),
        ToolCall("b", "get_order", {"ids": [1, 2], "note": "John"}),
    )
    transcript = Transcript((Message("assistant", "", tool_calls=(0, 1)),), calls)
    config = {"metrics": [{"type": "TextMatch", "contains_all": ["John", "get_order", '"[1,2]"', "Toolname"]}]}
    result = compile_criterion(CriterionSpec("it", "ToolResponse", config)).check(transcript)
    assert result.outcome is Outcome.PASSED
    assert result.value is not None
    assert result.value.startswith('Toolname:\nsearch_user\n\nArguments:\nname = "John"\nlimit = "10"\n\nToolname:')
    john, order, ids, heading = result.metrics[0].evidence
    assert john.spans[1:] == (Span("arguments", 0, path="name"),)
    assert result.value[john.spans[0].start : john.spans[0].end] == "John"
    assert order.spans[1:] == (Span("tool", 1),)
    assert ids.spans[1:] == (Span("arguments", 1, path="ids"),)
    assert heading.spans == (Span("value", 0, 0, 8),)


def test_no_calls_give_the_empty_text() -> None:
    config = {"metrics": [{"type": "TextMatch", "equals": ""}]}
    result = compile_criterion(CriterionSpec("it", "ToolResponse", config)).check(Transcript())
    assert result.value == ""
    assert result.outcome is Outcome.PASSED
