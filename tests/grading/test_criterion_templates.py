"""Criteria to begin with: right as they are, for every metric."""

from __future__ import annotations

import json

from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.criterion_templates import Starter, starters, text_starter, tools_starter
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.registry import metric_names, prototype_names
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript


def outcome(starter: Starter, transcript: Transcript) -> str:
    spec = CriterionSpec(starter.name, starter.prototype_class, json.loads(starter.config))
    return grade(transcript, [spec], {}).results[0].outcome


def test_every_metric_has_one_and_none_has_a_problem() -> None:
    found = starters()
    assert sorted(one.metric for one in found) == sorted(metric_names())
    for one in found:
        assert one.prototype_class in prototype_names()
        codes = {problem.code for problem in diagnose(one.config, one.prototype_class)}
        assert codes == ({"unwritten"} if '"…"' in one.config else set())
        assert one.about
    # An agent that answers within seconds is fast enough.
    timed = Transcript((Message("assistant", "Yes."),), timing=Timing(total_ms=3_000))
    assert outcome(next(one for one in found if one.metric == "Latency"), timed) == "passed"


def test_a_text_is_wanted_as_it_is_also_with_braces() -> None:
    for text in ("It is 5,000.", 'say "{{name}}" \\ twice\nand {{more', "{{"):
        starter = text_starter(text)
        assert not diagnose(starter.config, "TextResponse")
        assert outcome(starter, Transcript((), final_output=f"Well: {text}!")) == "passed"
        assert outcome(starter, Transcript((), final_output="Something else")) == "failed"


def test_calls_are_wanted_with_their_arguments() -> None:
    arguments = {"id": "W1", "deep": {"a": [1, "x"]}, "odd": "{{name}}", "more": {"$any": 1}}

    def called(**given: object) -> Transcript:
        call = ToolCall("1", "get_order", {**arguments, **given}, "found", message=0)
        return Transcript((Message("assistant", "", tool_calls=(0,)),), (call,))

    starter = tools_starter([("get_order", arguments)])
    assert starter.name == "Calls get_order"
    assert outcome(starter, called()) == "passed"
    assert outcome(starter, called(odd="anything")) == "passed"
    assert outcome(starter, called(id="W2")) == "failed"
