"""JsonResponse, Transcript: what they take out, where it stands, and what they say when there is nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import CriterionResult, Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript


def answer(text: str, *before: Message, calls: tuple[ToolCall, ...] = ()) -> Transcript:
    return Transcript((*before, Message("assistant", text)), calls, final_output=text)


def look(
    transcript: Transcript, prototype: str, config: dict[str, Any] | None = None, **metric: Any
) -> CriterionResult:
    metrics = [metric] if metric else []
    return Checker(CriterionSpec("it", prototype, {**(config or {}), "metrics": metrics})).check(transcript)


def marked(transcript: Transcript, spans: tuple[Span, ...]) -> list[str]:
    return [transcript.messages[one.index].content[one.start : one.end] for one in spans if one.kind == "message"]


@pytest.mark.parametrize(
    ("text", "path", "value", "stands"),
    [
        ('{"a": 1}', None, '{"a":1}', '{"a": 1}'),
        (' {"a": {"b": [1, 2.50]}} ', "a.b", "[1,2.5]", "[1, 2.50]"),
        (' {"a": {"b": [1, 2.50]}} ', "a.b[1]", "2.5", "2.50"),
        ('{"a": "caf\\u00e9"}', "a", "café", '"caf\\u00e9"'),
        ('{"a": "as it is"}', "a", "as it is", "as it is"),
        ('Here:\n```json\n{"total": 12}\n```\nDone.', "total", "12", "12"),
        ('```{"total": "x"}```', "total", "x", "x"),
        ("```python\n[1]\n```\n```\n[true]\n```", "[0]", "true", "true"),
        ('"only text"', None, "only text", "only text"),
        ('{"a": [{"n": 1}, {"n": 2}]}', "a[].n", "[1,2]", None),
        ('{"a": [{"n": 1}, {"n": 2}]}', "a[?n > `1`].n | [0]", "2", None),
        ('{"a": false}', "a", "false", "false"),
    ],
)
def test_json_out_of_an_answer(text: str, path: str | None, value: str, stands: str | None) -> None:
    transcript = answer(text)
    result = look(transcript, "JsonResponse", {} if path is None else {"extract_path": path})
    assert (result.outcome, result.value) == (Outcome.PASSED, value)
    if stands is not None:
        assert marked(transcript, result.value_spans) == [stands]


def test_places_inside_a_json_string_are_exact() -> None:
    transcript = answer('{"note": "the refund of 12.50 is on its way"}')
    result = look(transcript, "JsonResponse", {"extract_path": "note"}, type="TextMatch", contains="12.50")
    assert marked(transcript, result.metrics[0].evidence[0].spans) == ["12.50"]


@pytest.mark.parametrize(
    ("text", "path", "reason", "near"),
    [
        ("", None, "the final answer is empty", []),
        ("Sorry.", None, "the final answer is not JSON: expecting value (line 1, column 1)", ["S"]),
        ('{"a": 1,}', None, "the final answer is not JSON", ["}", ","]),
        ('The result is {"a": 1}.', None, '"{\\"a\\": 1}" in line 1 is, with text around it', ['{"a": 1}']),
        ('x\n```json\n{"a": 1\n```', None, "the code block is not JSON: expecting ',' delimiter", None),
        ("[NaN]", None, "NaN is not JSON", ["N"]),
        ('{"order": {"total": 1}}', "order.totel", "did you mean order.total?", ["1"]),
        ('{"order": {"total": 1}}', "order.total.net", "order.total is not an object", ["1"]),
        ('{"order": null}', "order", "`order` is null", ["null"]),
        ('{"items": [1]}', "items[3]", "items is a list of 1", ["[1]"]),
        ('{"items": [1]}', "items[].x | [0]", "finds nothing in the JSON", []),
    ],
)
def test_no_json_value(text: str, path: str | None, reason: str, near: list[str] | None) -> None:
    transcript = answer(text)
    result = look(transcript, "JsonResponse", {} if path is None else {"extract_path": path}, type="Json")
    assert result.outcome is Outcome.FAILED
    assert criterion_sentence(result).startswith("nothing extracted: ")
    assert reason in criterion_sentence(result)
    if near is not None:
        found = marked(transcript, result.metrics[0].evidence[0].near)
        assert found == near or (found and found[0] in near)


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=6),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab.{", max_size=3), inner, max_size=3),
    ),
    st.sampled_from([None, 2]),
)
def test_any_json_comes_out_as_it_went_in(data: Any, indent: int | None) -> None:
    transcript = answer(json.dumps(data, indent=indent))
    result = look(transcript, "JsonResponse", None, type="Json", equals=data)
    assert result.outcome is Outcome.PASSED, criterion_sentence(result)


def test_a_wrong_path_is_diagnosed_where_it_goes_wrong() -> None:
    text = '{"extract_path": "items[0", "metrics": [{"type": "Json"}]}'
    (found,) = diagnose(text, "JsonResponse")
    assert (found.code, found.severity) == ("bad-path", "error")
    assert text.index("items") < found.start <= text.index("items[0") + 7


CONVERSATION = Transcript(
    (
        Message("system", "Be kind."),
        Message("user", "Where is it?"),
        Message("assistant", "", tool_calls=(0,)),
        Message("tool", "shipped", tool_call=0),
        Message("assistant", "On its way."),
    ),
    (ToolCall("c", "track", {}, "shipped", message=2),),
    final_output="On its way.",
)


def test_the_conversation_as_text() -> None:
    text = "system: Be kind.\n\nuser: Where is it?\n\ntool: shipped\n\nassistant: On its way."
    assert look(CONVERSATION, "Transcript").value == text
    some = look(CONVERSATION, "Transcript", {"roles": ["user", "assistant"]})
    assert some.value == "user: Where is it?\n\nassistant: On its way."
    assert marked(CONVERSATION, some.value_spans) == ["Where is it?", "On its way."]
    hit = look(CONVERSATION, "Transcript", None, type="TextMatch", contains="shipped")
    assert hit.metrics[0].evidence[0].spans == (Span("message", 3, 0, 7),)


def test_a_final_answer_that_is_in_no_message_belongs_to_the_conversation() -> None:
    beside = Transcript((Message("user", "Hi"),), final_output="Hello")
    assert look(beside, "Transcript").value == "user: Hi\n\nassistant: Hello"
    assert look(beside, "Transcript", {"roles": ["user"]}).value == "user: Hi"
    assert look(beside, "Transcript", {"roles": ["tool"]}).value == ""


def test_roles_that_nobody_has_are_found() -> None:
    (one,) = diagnose('{"roles": ["asistant"], "metrics": [{"type": "TextMatch", "equals": "x"}]}', "Transcript")
    assert (one.severity, one.code) == ("warning", "unknown-role")
    codes = {
        one.code for one in diagnose('{"roles": [], "metrics": [{"type": "TextMatch", "equals": "x"}]}', "Transcript")
    }
    assert codes == {"checks-nothing"}
