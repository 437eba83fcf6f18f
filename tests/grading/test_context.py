"""The prototype class Context: what the model was asked, as text and as a list of tools; what is not known is not
checked."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.grading.causes import cause_of, words_of
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.completion import complete_config
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.observed_tools import AgentFacts
from agenteval_tui.grading.relax.suggest import relaxations
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence, why_not_observed
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript, Usage
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


def of_tokens(*counts: int | None, **of_last: Any) -> Transcript:
    """A run whose requests have these tokens."""
    *first, last = [
        ModelRequest(number, 1, "m", messages=(user(f"question {number}"),), answer=number, input_tokens=tokens)
        for number, tokens in enumerate(counts, 1)
    ]
    requests = ModelRequests.of([*first, replace(last, **of_last)])
    usage = Usage(input_tokens=sum(tokens or 0 for tokens in counts), output_tokens=5)
    return Transcript(MESSAGES, final_output=f"answer {len(counts)}", requests=requests, usage=usage)


@pytest.mark.parametrize(
    ("config", "most", "said"),
    [
        ({}, 8000, "request 3 has 5,000 tokens, expected at most 8,000"),
        ({}, 4000, "request 3 has 5,000 tokens, 1,000 more than the maximum of 4,000"),
        ({"of": "first"}, 100, "request 1 has 100 tokens, expected at most 100"),
        ({"of": "any"}, 8000, "request 2 has 9,000 tokens, 1,000 more than the maximum of 8,000"),
        ({"at": 2}, 9000, "request 2 has 9,000 tokens, expected at most 9,000"),
    ],
)
@pytest.mark.parametrize("bound", ["max", "input_max"])
def test_the_tokens_of_a_request_have_a_limit(config: dict[str, Any], most: int, said: str, bound: str) -> None:
    result = checked(of_tokens(100, 9000, 5000), metrics=[{"type": "Tokens", bound: most}], **config)
    assert result.outcome is (Outcome.FAILED if "more than" in said else Outcome.PASSED)
    (line,) = result.metrics[0].evidence
    assert evidence_sentence(line) == said
    assert [span.kind for span in line.spans] == (["request"] if "more than" in said else [])


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(
    ("run", "config", "bound"),
    [
        (of_tokens(100, None), {}, "max"),
        (of_tokens(None, 100), {"of": "any"}, "max"),  # the other one may have been larger
        (of_tokens(100), {"part": "system"}, "max"),
        (of_tokens(100), {"part": "tools"}, "max"),
        (of_tokens(100), {}, "output_max"),
    ],
)
def test_tokens_that_nobody_counted_are_not_checked(
    run: Transcript, config: dict[str, Any], bound: str, negate: bool
) -> None:
    result = checked(run, negate=negate, metrics=[{"type": "Tokens", bound: 8000}], **config)
    assert result.outcome is Outcome.ERROR
    assert "not checked: " in criterion_sentence(result)
    assert "tokens" in why_not_observed(result)
    cause = cause_of(result)
    assert cause is not None
    assert words_of(cause) == "not checked: the tokens of a request are not known"


def test_a_request_that_was_too_large_is_one_though_another_was_not_counted() -> None:
    run = of_tokens(9000, None)
    assert checked(run, of="any", metrics=[{"type": "Tokens", "max": 8000}]).outcome is Outcome.FAILED


def test_tokens_are_counted_where_the_text_is_not_known() -> None:
    kept, unread = of_tokens(100, 200, previous="resp_1"), of_tokens(100, 200)
    assert unread.requests is not None
    unread = replace(unread, requests=replace(unread.requests, unrecorded=("system",)))
    for run in (kept, unread):
        result = checked(run, metrics=[{"type": "Tokens", "max": 200}])
        assert (result.outcome, result.value) == (Outcome.PASSED, None)
        assert checked(run, metrics=[{"type": "Tokens", "max": 199}]).outcome is Outcome.FAILED
        both = checked(run, metrics=[{"type": "Tokens", "max": 200}, {"type": "TextMatch", "contains": "question"}])
        assert both.outcome is Outcome.ERROR
        assert "not checked" in criterion_sentence(both)
        assert (
            compile_criterion(CriterionSpec("c", "Context", {"metrics": [{"type": "Tokens", "max": 200}]}))
            .check(run, explain=False)
            .outcome
            is Outcome.PASSED
        )


def test_edits_and_findings_of_a_limit_of_tokens() -> None:
    spec = CriterionSpec("c", "Context", '{"metrics": [{"type": "Tokens", "max": 8000}]}')
    assert "9000" in relaxations(spec, of_tokens(9000))[0].new_text
    for config in (
        '"part": "tools", "metrics": [{"type": "Tokens", "max": 1}]',
        '"metrics": [{"type": "Tokens", "output_max": 1}]',
    ):
        (found,) = diagnose(f"{{{config}}}", "Context")
        assert (found.severity, found.code) == ("error", "not-counted")
    assert not diagnose('{"of": "any", "metrics": [{"type": "Tokens", "max": 8000}]}', "Context")


def test_the_editor_knows_it() -> None:
    text = '{"of": '
    assert {one.label for one in complete_config(text, len(text), "Context", AgentFacts())} >= {"last", "first", "any"}
    assert [one.message for one in diagnose('{"at": 0, "metrics": [{"type": "Json"}]}', "Context")]
    assert not diagnose(
        '{"at": 2, "part": "tools", "metrics": [{"type": "Json", "schema": {"maxItems": 3}}]}', "Context"
    )
