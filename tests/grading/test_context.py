"""The prototype class Context: what the model was asked, as text and as a list of tools; what is not known is not
checked."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.completion import complete_config
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.observed_tools import AgentFacts
from agenteval_tui.grading.relax.suggest import relaxations
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, OfferedTool


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c", "content": "42 socks"}
FIND, PAY = OfferedTool("find", "finds", {"type": "object"}), OfferedTool("pay")
REQUESTS = (
    ModelRequest(1, 1, "m", "No refunds.", (user("Any socks?"),), (FIND, PAY), answer=2),
    ModelRequest(2, 2, "m", "You write titles.", (user("Title for: socks"),), answer=4),
    ModelRequest(3, 1, "m", "", (user("Any socks?"), CALL, RESULT), (FIND,), answer=5),
    ModelRequest(4, 1, "m", "", (user("And shoes?"),), answer=7),
)
MESSAGES = tuple(Message("assistant", f"answer {number}") for number in range(8))
RUN = Transcript(MESSAGES, final_output="answer 7", requests=ModelRequests.of(REQUESTS))


def checked(transcript: Transcript = RUN, *, negate: bool = False, **config: Any) -> CriterionResult:
    return compile_criterion(CriterionSpec("c", "Context", config, negate=negate)).check(transcript)


def value(**config: Any) -> str | None:
    return checked(metrics=[{"type": "TextMatch", "not_contains_any": ["§"]}], **config).value


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({}, "user: And shoes?"),
        ({"of": "first"}, "system: No refunds.\n\nuser: Any socks?"),
        ({"of": "first", "part": "system"}, "No refunds."),
        ({"at": 3, "part": "messages"}, "user: Any socks?\n\nassistant: find({})\n\ntool: 42 socks"),
        ({"at": 2}, "system: You write titles.\n\nuser: Title for: socks"),
        ({"at": 3, "part": "tools"}, '[{"name":"find","description":"finds","parameters":{"type":"object"}}]'),
        ({"of": "any", "part": "system"}, "No refunds.\n\nYou write titles."),
    ],
)
def test_what_is_looked_at(config: dict[str, Any], text: str) -> None:
    assert value(**config) == text


def test_every_text_of_all_requests_is_there_once() -> None:
    whole = value(of="any") or ""
    assert whole.count("Any socks?") == 1
    assert "And shoes?" in whole
    assert "42 socks" in whole


def test_the_last_request_is_that_of_the_agent_which_gave_the_final_answer() -> None:
    titled = Transcript(MESSAGES, final_output="answer 4", requests=ModelRequests.of(REQUESTS))
    metrics = [{"type": "TextMatch", "contains": "Title for"}]
    assert checked(titled, metrics=metrics).outcome is Outcome.PASSED
    assert checked(metrics=metrics).outcome is Outcome.FAILED


def test_a_policy_that_left_the_context_and_a_secret_that_never_came() -> None:
    policy = [{"type": "TextMatch", "contains": "No refunds"}]
    assert checked(of="first", metrics=policy).outcome is Outcome.PASSED
    assert checked(metrics=policy).outcome is Outcome.FAILED
    assert checked(of="any", metrics=[{"type": "TextMatch", "not_contains_any": ["sk-"]}]).outcome is Outcome.PASSED
    assert checked(metrics=[{"type": "Length", "max_words": 2}]).outcome is Outcome.FAILED


def test_tools_are_json() -> None:
    tools = [{"type": "Json", "schema": {"type": "array", "maxItems": 1}}]
    assert checked(at=1, part="tools", metrics=tools).outcome is Outcome.FAILED
    assert checked(at=3, part="tools", metrics=tools).outcome is Outcome.PASSED


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("metric", [{"contains": "x"}, {"not_contains_any": ["x"]}])
def test_what_is_not_known_is_not_checked(metric: dict[str, Any], negate: bool) -> None:
    metrics = [{"type": "TextMatch", **metric}]
    result = checked(Transcript(MESSAGES), negate=negate, metrics=metrics)
    assert result.outcome is Outcome.ERROR
    assert "what the model saw is not recorded" in criterion_sentence(result)
    kept = Transcript(requests=ModelRequests.of([ModelRequest(1, 1, "m", "S", (user("and now?"),), previous="resp_1")]))
    for part in ("all", "messages"):
        result = checked(kept, negate=negate, part=part, metrics=metrics)
        assert result.outcome is Outcome.ERROR
        assert "which is not in request 1" in criterion_sentence(result)
    assert checked(kept, part="system", metrics=[{"type": "TextMatch", "equals": "S"}]).outcome is Outcome.PASSED


def test_a_request_that_was_never_made_is_a_failure() -> None:
    result = checked(at=9, metrics=[{"type": "TextMatch", "contains": "x"}])
    assert result.outcome is Outcome.FAILED
    assert criterion_sentence(result) == "nothing extracted: the model was asked 4 times, so there is no request 9"
    nothing = checked(Transcript(requests=ModelRequests()), metrics=[{"type": "TextMatch", "contains": "x"}])
    assert criterion_sentence(nothing) == "nothing extracted: the model was never asked"


def test_near_misses_and_edits_work_as_everywhere() -> None:
    result = checked(metrics=[{"type": "TextMatch", "contains": "and shoes?"}])
    ((near,),) = (line.near for line in result.metrics[0].evidence)
    assert (near.kind, near.index, near.start, near.end) == ("request", 4, 6, 16)
    spec = CriterionSpec("c", "Context", '{"metrics": [{"type": "TextMatch", "contains": "and shoes?"}]}')
    assert relaxations(spec, RUN)


def test_the_editor_knows_it() -> None:
    text = '{"of": '
    assert {one.label for one in complete_config(text, len(text), "Context", AgentFacts())} >= {"last", "first", "any"}
    assert [one.message for one in diagnose('{"at": 0, "metrics": [{"type": "Json"}]}', "Context")]
    assert not diagnose(
        '{"at": 2, "part": "tools", "metrics": [{"type": "Json", "schema": {"maxItems": 3}}]}', "Context"
    )
