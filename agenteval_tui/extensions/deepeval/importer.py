"""DeepEval: the test runs that it saves (`.deepeval/.latest_test_run.json`, or a file in DEEPEVAL_RESULTS_FOLDER)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.usage import UsageReader
from agenteval_tui.formats.importers.derived_criteria import criteria_of_target, criteria_of_tools
from agenteval_tui.formats.importers.format import Format, run_per_element
from agenteval_tui.formats.importers.message_formats import (
    as_list,
    objects_in,
    plain_text,
    transcript_of,
    value_at,
)
from agenteval_tui.formats.importers.recording import Recording, as_id
from agenteval_tui.formats.importers.span_tool_calls import UntoldCall, with_untold_calls
from agenteval_tui.formats.importers.trace_conversation import decoded
from agenteval_tui.formats.importers.usage_import import moment_ms, number, share, with_usage
from agenteval_tui.grading.grade import foreign_result, unreadable_result
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import Timing, Transcript
from agenteval_tui.transcripts.observed import without_calls

NAME = "deepeval"
_LISTS = ("testCases", "conversationalTestCases")
# What a run made of a test case was given, beside its messages.
_VARIABLES = {
    "expectedOutput": "expected_value",
    "expectedOutcome": "expected_value",
    "context": "context",
    "retrievalContext": "retrieval_context",
    "expectedTools": "expected_tools",
    "scenario": "scenario",
    "userDescription": "user_description",
    "chatbotRole": "chatbot_role",
    "metadata": "metadata",
    "additionalMetadata": "metadata",
    "comments": "comments",
}
_LONGEST = 20_000


def can_read(value: Any) -> bool:
    """Whether a file's first value is a test run."""
    if not isinstance(value, Mapping) or not any(isinstance(value.get(key), list) for key in _LISTS):
        return False
    return any(key in value for key in ("metricsScores", "testPassed", "testFailed", "runDuration"))


def _recording(case: Mapping[str, Any], field: str, number_of_case: int) -> Recording:
    """The run of a test case, with its metrics as foreign verdicts."""
    name = plain_text(case.get("name")) or f"test case {number_of_case}"
    turns = case.get("turns")
    transcript = transcript_of(_of_turns(turns) if isinstance(turns, list) else _of_case(case))
    transcript = _with_trace(transcript, case)
    duration = number(case.get("runDuration"))
    used = UsageReader()
    tokens = {key: case.get(key) for key in ("inputTokenCount", "outputTokenCount")}
    used.add({**tokens, "cost": case.get("tokenCost")})
    transcript = replace(
        with_usage(transcript, used),
        timing=Timing(total_ms=None if duration is None else duration * 1000),
        final_output=transcript.final_output or plain_text(case.get("actualOutput")),
    )
    variables = {name: case[key] for key, name in _VARIABLES.items() if case.get(key) not in (None, "", [], {})}
    return Recording(
        test_id=as_id(name),
        test_name=name[:500],
        transcript=transcript,
        prompt=plain_text(case.get("input")),
        variables=variables,
        results=tuple(_results(case)),
        tags=tuple(plain_text(tag) for tag in as_list(case.get("tags"))),
        expected=(*criteria_of_target(case.get("expectedOutput")), *criteria_of_tools(case.get("expectedTools"))),
        source=((f"{field}[]", case),),
    )


def _with_trace(transcript: Transcript, case: Mapping[str, Any]) -> Transcript:
    """With the calls of the case's trace, where the case itself lists none. DeepEval leaves `toolsCalled` out unless
    the test gives it: then it is unknown."""
    spans = value_at(case, "trace", "toolSpans")
    if any(isinstance(turn.get("toolsCalled"), list) for turn in (case, *objects_in(case.get("turns")))):
        return transcript
    if not isinstance(spans, list):
        return without_calls(transcript, NAME)
    tools = sorted(objects_in(spans), key=lambda span: moment_ms(span.get("startTime")) or 0.0)
    return with_untold_calls(transcript, [_of_span(number, span) for number, span in enumerate(tools)])


def _of_span(number: int, span: Mapping[str, Any]) -> UntoldCall:
    started, ended = moment_ms(span.get("startTime")), moment_ms(span.get("endTime"))
    failed = plain_text(span.get("status")).upper() == "ERRORED"
    output = span.get("error") if failed and span.get("error") else span.get("output")
    return UntoldCall(
        plain_text(span.get("uuid")) or f"span-{number}",
        plain_text(span.get("name")),
        decoded(span.get("input")),
        None if output is None else plain_text(output),
        failed,
        duration_ms=None if started is None or ended is None else max(0.0, ended - started),
    )


def _of_case(case: Mapping[str, Any]) -> list[dict[str, Any]]:
    question, answered = case.get("input"), case.get("actualOutput")
    messages = [{"role": "user", "content": plain_text(question)}, *_of_calls(case.get("toolsCalled"), "")]
    return messages if answered is None else [*messages, {"role": "assistant", "content": plain_text(answered)}]


def _of_turns(turns: list[Any]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for at, turn in enumerate(turns):
        if not isinstance(turn, Mapping):
            messages.append({"role": "user", "content": plain_text(turn)})
            continue
        messages += _of_calls(turn.get("toolsCalled"), f"{at}.")
        messages.append({"role": plain_text(turn.get("role")) or "user", "content": plain_text(turn.get("content"))})
    return messages


def _of_calls(calls: Any, before: str) -> list[dict[str, Any]]:
    """The calls as messages. DeepEval stores the calls and their results, but not the text that came with them."""
    messages: list[dict[str, Any]] = []
    for at, call in enumerate(as_list(calls)):
        if not isinstance(call, Mapping):
            continue
        name = plain_text(call.get("name"))
        parameters = call.get("inputParameters")
        function = {"name": name, "arguments": json.dumps({} if parameters is None else parameters, default=str)}
        reasoning = plain_text(call.get("reasoning"))
        tool_call = {"id": f"call-{before}{at}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": reasoning, "tool_calls": [tool_call]})
        if call.get("output") is not None:
            output = call["output"]
            text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False, default=str)
            messages.append({"role": "tool", "tool_call_id": tool_call["id"], "content": text})
    return messages


def _results(case: Mapping[str, Any]) -> Iterator[CriterionResult]:
    for metric in objects_in(case.get("metricsData")):
        name = f"{NAME} {plain_text(metric.get('name')) or 'metric'}"
        reason = plain_text(metric.get("reason"))[:_LONGEST]
        error = plain_text(metric.get("error")).strip()
        passed = metric.get("success")
        if error:
            yield unreadable_result(name, source=NAME, reason=f"the metric broke: {error}"[:_LONGEST])
            continue
        score = number(metric.get("score"))
        passed = passed if isinstance(passed, bool) else None
        if not reason and score is not None:
            reason = f"score {score:g}, threshold {plain_text(metric.get('threshold'))}"
        yield foreign_result(name, score=share(score), passed=passed, source=NAME, reason=reason)


FORMAT = Format(
    name=NAME,
    title="a test run of DeepEval",
    looks_like="JSON with `testCases` and `metricsScores`",
    can_read=can_read,
    recordings=run_per_element(
        _LISTS,
        _recording,
        needs=("input", "turns"),
        refusal="no test case: it has neither an `input` nor `turns`",
        document="test run",
    ),
    page="coming-from/deepeval",
    rank=85,
)
