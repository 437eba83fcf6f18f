"""Results of batches: each request is a run by its `custom_id`, and one that failed is in error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Import = Callable[..., Any]
SAID = {"role": "assistant", "content": "Hi"}
COMPLETION = {"model": "m", "choices": [{"index": 0, "message": SAID, "finish_reason": "stop"}],
              "usage": {"prompt_tokens": 24, "completion_tokens": 15, "total_tokens": 39}}  # fmt: skip
ANSWERED: dict[str, dict[str, Any]] = {
    "a chat completion": {"custom_id": "r 1", "response": {"status_code": 200, "body": COMPLETION}, "error": None},
    "a response": {"custom_id": "r 1", "error": None, "response": {"status_code": 200, "body": {
        "object": "response", "model": "m", "status": "completed", "error": None,
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}],
        "usage": {"input_tokens": 24, "output_tokens": 15}}}},
    "a message of Anthropic": {"custom_id": "r 1", "result": {"type": "succeeded", "message": {
        "role": "assistant", "model": "m", "content": [{"type": "text", "text": "Hi"}],
        "usage": {"input_tokens": 24, "output_tokens": 15}}}},
    "an answer of Gemini": {"key": "r 1", "response": {
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "finishReason": "STOP"}],
        "modelVersion": "m", "usageMetadata": {"promptTokenCount": 24, "candidatesTokenCount": 15}}},
}  # fmt: skip
FAILED: dict[str, tuple[dict[str, Any], str, str]] = {
    "an error of the server": (
        {"custom_id": "r", "error": None, "response": {"status_code": 400, "body": {
            "error": {"message": "bad model", "type": "invalid_request_error"}}}},
        "invalid_request_error", "bad model",
    ),
    "a status without words": (
        {"custom_id": "r", "response": {"status_code": 500, "body": {}}}, "HTTP 500", "the request failed",
    ),
    "an error of the batch": (
        {"custom_id": "r", "response": None, "error": {"code": "batch_expired", "message": "too late"}},
        "batch_expired", "too late",
    ),
    "an error of Anthropic": (
        {"custom_id": "r", "result": {"type": "errored", "error": {
            "type": "error", "error": {"type": "invalid_request_error", "message": "max_tokens: required"}}}},
        "invalid_request_error", "max_tokens: required",
    ),
    "one that expired": ({"custom_id": "r", "result": {"type": "expired"}}, "expired", "expired"),
    "one that was cancelled": ({"custom_id": "r", "result": {"type": "canceled"}}, "canceled", "cancelled"),
    "an error of Gemini": (
        {"key": "r", "error": {"code": 3, "message": "no such model", "status": "INVALID_ARGUMENT"}},
        "3", "no such model",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", ANSWERED)
def test_an_answer_is_a_run(imported: Import, what: str) -> None:
    report, ((row, transcript),) = imported(ANSWERED[what], "f.jsonl")
    assert (report.format, report.read, row.test_id, row.test_name) == ("openai", 1, "r-1", "r 1")
    assert (transcript.final_output, transcript.model, row.agent) == ("Hi", "m", "m")
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (24, 15)
    assert transcript.error is None


@pytest.mark.parametrize("what", FAILED)
def test_a_request_that_failed_is_a_run_in_error(imported: Import, what: str) -> None:
    given, kind, said = FAILED[what]
    first = {**ANSWERED["a chat completion"], "custom_id": "first"}
    report, (_, (row, transcript)) = imported("\n".join(map(json.dumps, [first, given])), "f.jsonl")
    assert (report.read, report.added, report.skipped) == (2, 2, ())
    assert (row.test_id, row.status, transcript.error.kind) == ("r", "error", kind)
    assert said in transcript.error.message


def test_a_file_of_errors_alone_is_read(imported: Import) -> None:
    report, runs = imported("\n".join(json.dumps(given) for given, _, _ in FAILED.values()), "errors.jsonl")
    assert (report.format, len(runs)) == ("openai", len(FAILED))
    assert {row.status for row, _ in runs} == {"error"}


def test_what_is_no_conversation_is_left_out(imported: Import) -> None:
    body = {"object": "list", "data": [{"object": "embedding", "embedding": [0.1]}], "model": "m"}
    lines = [ANSWERED["a chat completion"], {"custom_id": "e", "response": {"status_code": 200, "body": body}}]
    report, runs = imported("\n".join(map(json.dumps, lines)), "f.jsonl")
    assert (len(runs), [reason for reason, _ in report.skipped]) == (
        1, ["no conversation: the response has no message"],
    )  # fmt: skip


@pytest.mark.shared
def test_the_batches_of_the_report(imported: Import, shared: Path) -> None:
    for file, names in (("out.jsonl", ["request-1", "request-2", "request-3"]),
                        ("anth_batch_out.jsonl", ["r1", "r2", "r3", "r4"])):  # fmt: skip
        _, runs = imported(shared / "data" / "reports" / "15-openai-batch-errors" / file)
        assert [row.test_id for row, _ in runs] == names
        assert [row.status for row, _ in runs[1:]] == ["error"] * (len(names) - 1)
