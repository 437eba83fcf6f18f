"""How transcripts and results lie in the history."""

from __future__ import annotations

import json

from recorder import Files, Recorder

from agenteval_tui.grading.codec import result_to_json
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome, Span
from agenteval_tui.history.blobs import inflated, pack_results, pack_transcript, unpack_results, unpack_transcript
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.model import (
    ErrorCode,
    Message,
    Note,
    RunError,
    Step,
    Timing,
    ToolCall,
    Transcript,
    Usage,
)

TRANSCRIPT = Transcript(
    messages=(
        Message("system", "Be brief."),
        Message("user", "Where is #W17? Grüße \U0001f600 \ud800"),
        Message("assistant", "", reasoning="I look it up.", tool_calls=(0, 1)),
        Message("tool", "shipped", tool_call=0, tool_call_id="a", name="get_order"),
        Message("tool", "no such tool", tool_call=1, tool_call_id="b", name="find"),
        Message("user", "And?", name="kim"),
        Message("assistant", "It was shipped."),
    ),
    tool_calls=(
        ToolCall("a", "get_order", {"id": "#W17", "deep": [1, 2.5, None, True]}, "shipped", "ok", 100.0, 20.5, 2),
        ToolCall("b", "find", '{"broken', "no such tool", "error", None, None, 2, malformed=True),
        ToolCall("c", "wait", {}, None, "pending"),
    ),
    timing=Timing(50.0, 1234.5, (Step("start", 0.0, 10.0, setup=True), Step("model", 10.0, 1000.25))),
    usage=Usage(100, 20, 10, 5, 0.0025),
    model="shop-1",
    finish_reason="stop",
    final_output="It was shipped.",
    error=RunError("server", "the server failed (503)", "try again later"),
    log="warning: slow\n",
    notes=(Note("unread", "Image"), Note("usage", "input_tokens: -1")),
)  # fmt: skip
"""One with everything that a transcript can hold."""

CODED = RunError("server", "the server failed (503)", "try again later", ErrorCode.TOLD, {"status": 503})

RESULTS = (
    CriterionResult("plain", Outcome.PASSED, 1.0),
    CriterionResult(
        "whole",
        Outcome.FAILED,
        0.25,
        severity="warning",
        weight=2.0,
        negate=True,
        prototype_class="TextResponse",
        criterion_hash="0123456789abcdef",
        value="It was shipped.",
        value_spans=(Span("message", 6, 0, 15), Span("call", 0, path="arguments.order_id")),
        metrics=(
            MetricResult(
                *("words", "TextMatch", Outcome.FAILED, 0.5, 2.0, True),
                evidence=(
                    Evidence(
                        "contains", True, "", "shipped", "shipped", (Span("message", 6, 7, 14),), (), "", "present"
                    ),
                    Evidence(
                        *("contains_all[0]", None, "as told", ["x", 1], None, (), (Span("message", 6, 0, 2),), "all"),
                        *("missing", {"near": {"text": "It", "line": 1}, "side": "contains"}),
                    ),
                ),
                message="a plug-in's words",
                code="checks_nothing",
                fields={"measure": "words"},
            ),
            MetricResult("later", "Judge", Outcome.ERROR, None, code="not_asked", fields={"judge": "strict"}),
        ),
        message="another tool's words",
        source="promptfoo",
        code="threshold",
        fields={"threshold": 0.5},
        derived=True,
    ),
)
"""Results with everything that they can hold."""


def layouts(recorder: Recorder) -> Files:
    """The JSON that is stored, by position; how it is packed; and what is read back, for people."""
    content_hash, packed = pack_transcript(TRANSCRIPT)
    packed_results = pack_results(RESULTS)
    assert unpack_transcript(packed) == TRANSCRIPT
    assert unpack_results(packed_results) == RESULTS
    return {
        "transcript.json": {
            "hash": content_hash.hex(),
            "packed": _packing(packed),
            "stored": json.loads(inflated(packed, 1 << 20)),
            "for people": to_json(TRANSCRIPT),
        },
        "results.json": {
            "packed": _packing(packed_results),
            "stored": json.loads(inflated(packed_results, 1 << 20)),
            "for people": [result_to_json(one) for one in RESULTS],
        },
        "small.json": {
            "results": pack_results(RESULTS[:1]).decode("ascii"),
            "transcript with a coded error": pack_transcript(Transcript(error=CODED))[1].decode("ascii"),
            "for people": to_json(Transcript(error=CODED)),
        },
    }


def _packing(packed: bytes) -> str:
    """The head of the compressed stream: method and window, that a dictionary is used, and which (its checksum). The
    rest is zlib's own business."""
    return packed[:6].hex(" ")
