"""What nobody could see is not judged: every prototype class and metric against every way of not having seen it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.grading import registry
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Message, Note, ToolCall, Transcript, Usage
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.transcripts.observed import KINDS, observes

WHATS = {
    "text_only": "str", "no_calls_option": "", "nothing_at_path": "calls", "dumped": "haystack.ChatMessage",
    "format_without_calls": "CSV", "unread_calls": "a stream", "open_spans": "2", "unrecorded": "3 of shop",
    "asked_past": "api.openai.com",
}  # fmt: skip
"""Codes of notes after which tool calls are not known."""

TOOLS = {"type": "ToolCheck", "tools": [{"name": "refund", "required": False, "max_calls": 0}]}
METRICS: dict[str, tuple[dict[str, Any], bool]] = {
    # A config of each, and whether it looks at tool calls whatever the prototype class extracts.
    "TextMatch": ({"contains": "Paris"}, False),
    "Regex": ({"pattern": "Paris"}, False),
    "Length": ({"max_chars": 500}, False),
    "Keywords": ({"keywords": ["Paris"]}, False),
    "Lexical": ({"to": "It is Paris", "min": 0.1}, False),
    "ToolCheck": ({"tools": [{"name": "refund", "required": False, "max_calls": 0}]}, True),
    "Trajectory": ({"mode": "none", "calls": [{"name": "refund"}]}, True),
    "Steps": ({"max": 3}, True),
    "Latency": ({"max": 1e9}, False),
    "Repetition": ({"max_ratio": 0.9}, False),
    "Readability": ({"max_grade": 100}, False),
    "Pii": ({}, False),
    "Leak": ({"secrets": ["hunter2-hunter2"]}, False),
    "Injection": ({"canary": "PWNED"}, True),
}


def transcript(*notes: Note) -> Transcript:
    messages = (Message("user", "Where?"), Message("assistant", "It is Paris"))
    return Transcript(messages, final_output="It is Paris", notes=notes)


def check(prototype: str, metrics: list[dict[str, Any]], of: Transcript) -> CriterionResult:
    return compile_criterion(CriterionSpec("c", prototype, {"metrics": metrics})).check(of)


@pytest.mark.parametrize("code", ["not_in_state", "nothing_printed"])
def test_what_a_model_said_is_not_judged_as_the_answer_of_a_program_that_gave_none(code: str) -> None:
    noted = transcript(Note(code, "report"))
    result = check("TextResponse", [{"type": "TextMatch", "contains": "Paris"}], noted)
    assert (result.outcome, result.code) == (Outcome.ERROR, Code.NOT_OBSERVED)
    assert criterion_sentence(result).startswith("not checked: its answer is not known: ")
    assert check("ToolResponse", [TOOLS], noted).outcome is Outcome.PASSED


@pytest.mark.parametrize("code", WHATS)
@pytest.mark.parametrize(
    "prototype", ["TextResponse", "ToolResponse", "Transcript", "Retrieval", "JsonResponse", "Context"]
)
def test_no_prototype_class_extracts_what_nobody_saw(prototype: str, code: str) -> None:
    result = check(
        prototype, [{"type": "TextMatch", "not_contains_any": ["refund"]}], transcript(Note(code, WHATS[code]))
    )
    needed = registry.prototype(prototype)().needs
    unseen = needed - set(observes(transcript(Note(code, WHATS[code]))))
    assert (result.code == Code.NOT_OBSERVED) == bool(unseen)
    if unseen:
        assert (result.outcome, result.score) == (Outcome.ERROR, None)
        assert criterion_sentence(result).startswith("not checked: ")
        assert result.fields["kind"] in unseen
        assert check(prototype, [], transcript(Note(code, WHATS[code]))).outcome is Outcome.ERROR
    assert bool(unseen) == (prototype in ("ToolResponse", "Transcript", "Retrieval", "Context") or code == "dumped")


@pytest.mark.parametrize("code", WHATS)
@pytest.mark.parametrize("name", METRICS)
def test_no_metric_judges_what_nobody_saw(name: str, code: str) -> None:
    config, looks_at_calls = METRICS[name]
    metric = {"type": name, **config}
    assert check("TextResponse", [metric], transcript()).code not in (Code.BAD_CONFIG, Code.NOT_OBSERVED), name
    result = check("TextResponse", [metric], transcript(Note(code, WHATS[code])))
    if code == "dumped" or looks_at_calls:
        assert (result.outcome, result.score) == (Outcome.ERROR, None)
        assert "not checked: " in criterion_sentence(result) or any(
            one.code == Code.NOT_OBSERVED for one in result.metrics
        )
    else:
        assert result.code != Code.NOT_OBSERVED


def test_every_metric_is_in_the_table() -> None:
    asks = {name for name in registry.metric_names() if registry.metric(name).asks is not None}
    others = {"Classification", "Json", "JsonSchema", "Retrieval", "Human", "Similarity", "Tokens", "Cost"}
    """Of values that are extracted, of figures that are measured or not, and of people."""
    assert set(registry.metric_names()) - asks - others == set(METRICS) - asks - others


def test_what_was_seen_is_enough_to_fail() -> None:
    obeyed = Transcript((Message("user", "x"), Message("assistant", "PWNED")), final_output="PWNED")
    obeyed = Transcript(obeyed.messages, final_output="PWNED", notes=(Note("text_only", "str"),))
    assert check("TextResponse", [{"type": "Injection", "canary": "PWNED"}], obeyed).outcome is Outcome.FAILED


def test_negation_makes_no_verdict_of_it() -> None:
    spec = CriterionSpec("c", "TextResponse", {"metrics": [TOOLS]}, negate=True)
    assert compile_criterion(spec).check(transcript(Note("text_only", "str"))).outcome is Outcome.ERROR


@pytest.mark.parametrize(
    "shown",
    [
        {"criteria": "Did it refund?", "see": ["output", "tools"]},
        {"criteria": "Did it refund?", "see": ["transcript"]},
        {"prompt": "Did it refund? {{transcript}}", "reply": "yes_no"},
    ],
)
def test_a_judge_that_sees_the_calls_is_not_asked(shown: dict[str, Any]) -> None:
    metric = {"type": "Judge", **shown}
    checker = compile_criterion(CriterionSpec("c", "TextResponse", {"metrics": [metric]}))
    assert checker.requests(transcript()) != ()
    assert checker.requests(transcript(Note("text_only", "str"))) == ()


def test_calls_that_were_seen_are_judged() -> None:
    call = ToolCall("1", "refund", {}, "ok", message=1)
    messages = (Message("user", "x"), Message("assistant", "", tool_calls=(0,)), Message("assistant", "Done"))
    seen = Transcript(messages, (call,), final_output="Done")
    assert check("TextResponse", [TOOLS], seen).outcome is Outcome.FAILED
    assert observes(seen) == ("text", "tool_calls", "tool_results", "reasoning")


def test_json_says_what_could_be_seen() -> None:
    blind = transcript(Note("no_calls_option", ""))
    assert list(to_json(blind)["observes"]) == ["text", "reasoning"]
    assert from_json(to_json(blind)) == blind
    assert "observes" not in to_json(transcript())
    assert observes(Transcript(usage=Usage(1, 2), requests=ModelRequests())) == KINDS


@pytest.mark.parametrize("name", METRICS)
def test_no_metric_judges_requests_that_nobody_recorded(name: str) -> None:
    result = check("Context", [{"type": name, **METRICS[name][0]}], transcript())
    assert (result.outcome, result.code, result.fields["kind"]) == (Outcome.ERROR, Code.NOT_OBSERVED, "requests")
    said = "record the agent (`agenteval record`), or set `capture: model`"
    assert criterion_sentence(result) == f"not checked: what the model saw is not recorded; {said}"


@pytest.mark.parametrize("part", ["all", "system", "tools", "messages"])
def test_a_part_of_requests_that_was_not_recorded_is_not_judged(part: str) -> None:
    asked = ModelRequest(1, 1, messages=({"role": "user", "content": "Where?"},), answer=1)
    requests = ModelRequests.of([asked], unrecorded=("system", "tools"))
    spec = CriterionSpec(
        "c", "Context", {"part": part, "metrics": [{"type": "TextMatch", "not_contains_any": ["sk-"]}]}
    )
    result = compile_criterion(spec).check(replace(transcript(), requests=requests))
    assert (result.code == Code.REQUEST_PART_UNKNOWN) == (part != "messages")
