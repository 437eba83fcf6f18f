"""What results look like as JSON and in words."""

from __future__ import annotations

import json
from typing import Any

from agenteval_tui.grading.codec import result_from_json, result_to_json
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.explain import explain, headline
from agenteval_tui.grading.grade import foreign_result
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.views.evidence import fact_tree
from agenteval_tui.views.terminal import plain_text

TEXT = "Revenue:\n\n5.000 EUR"
TRANSCRIPT = Transcript(
    (Message("user", "How much?"), Message("assistant", TEXT)),
    (ToolCall("a", "get_order", {"order_id": "W1"}),),
    final_output=TEXT,
)


def check(*metrics: dict[str, Any], **more: Any) -> CriterionResult:
    spec = CriterionSpec("The right sum", "TextResponse", {"metrics": list(metrics)}, **more)
    return compile_criterion(spec).check(TRANSCRIPT)


SUM = {"type": "TextMatch", "name": "sum", "contains_all": ["Revenue", "5000"]}
CALL = {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1"}}]}


def test_json_shape() -> None:
    result = check(SUM, CALL, weight=2.0, severity="warning")
    data = json.loads(json.dumps(result_to_json(result)))
    assert list(data)[:3] == ["criterion", "outcome", "score"]
    assert {"rating", "value", "metrics"} <= data.keys()
    assert data["criterion"] == "The right sum"
    assert data["outcome"] == "failed"
    assert data["rating"] == 2
    assert data["value"] == TEXT
    first = data["metrics"][0]
    assert list(first)[:4] == ["name", "type", "outcome", "score"]
    assert {"rating", "evidence"} <= first.keys()
    assert (first["name"], first["type"], first["outcome"], first["score"], first["rating"]) == (
        "sum", "TextMatch", "failed", 0.0, 1,
    )  # fmt: skip
    line = first["evidence"][1]
    assert line["condition"] == "contains_all[1]"
    assert line["passed"] is False
    assert line["expected"] == "5000"
    assert line["found"] == "5.000"
    assert line["near"] == [{"kind": "message", "index": 1, "start": 10, "end": 15}]
    call = data["metrics"][1]["evidence"][1]
    assert call["spans"] == [{"kind": "arguments", "index": 0, "path": "order_id"}]
    assert data["weight"] == 2.0
    assert data["severity"] == "warning"
    assert result_from_json(data) == result


def test_json_of_errors_neutral_and_foreign_results() -> None:
    error = json.loads(json.dumps(result_to_json(check({"type": "Nothing"}))))
    assert (error["outcome"], error["score"], error["rating"], error["metrics"]) == ("error", None, None, [])
    neutral = result_to_json(check({"type": "TextMatch"}))
    assert (neutral["outcome"], neutral["score"], neutral["rating"]) == ("passed", None, 3)
    assert neutral["metrics"][0]["rating"] == 3
    foreign = foreign_result("tau-bench reward", score=0.0, source="tau-bench", reason="reward 0")
    assert result_from_json(result_to_json(foreign)) == foreign
    assert result_to_json(foreign)["source"] == "tau-bench"


def test_headlines() -> None:
    assert headline(check(SUM)) == (
        'The right sum: "5000" is not in the text; nearest "5.000" (line 3): '
        "would match without the separators in numbers"
    )
    assert headline(check(CALL)) == (
        'The right sum: the call of get_order differs only in order_id: expected "#W1", got "W1"'
    )
    assert headline(check({"type": "TextMatch", "contains": "EUR"})) == "The right sum: passed"
    assert headline(check({"type": "TextMatch"})) == "The right sum: checks nothing"
    assert "did you mean TextMatch" in headline(check({"type": "TextMach"}))
    negated = headline(check({"type": "TextMatch", "contains": "EUR"}, negate=True))
    assert negated == "The right sum: negated: every metric passed, and must not"


def test_the_tree_in_words() -> None:
    text = plain_text((fact_tree(explain([check(SUM, CALL)])),))
    assert text.splitlines() == [
        "✗ The right sum: failed, score 0.35",
        '  · TextResponse found "Revenue:\\n\\n5.000 EUR"',
        "  ✗ sum (TextMatch): 0.00",
        "    ✗ contains_all[1]",
        '        expected  "5000"',
        '        nearest   "5.000"   line 3',
        "                    ^ would match without the separators in numbers",
        "      ≈ closest: message 2, characters 11 to 15",
        '    ✓ contains_all[0]: the text contains "Revenue" (line 1)',
        "  ✗ ToolCheck: 0.70",
        "    ✗ tools[0].arguments: get_order, 1 of 1 argument differs",
        '        order_id  expected  "#W1"',
        '                  got       "W1"',
        "                             ^ '#' is missing",
        "    ✓ tools[0].usage: get_order was called once",
    ]


def test_the_tree_carries_places() -> None:
    (fact,) = explain([check(SUM)])
    metric = fact.children[1]
    miss = metric.children[0]
    assert miss.mark == "failed"
    assert miss.children[0].mark == "near"
    assert miss.children[0].span is not None
    assert TEXT[miss.children[0].span.start : miss.children[0].span.end] == "5.000"
    hit = metric.children[1]
    assert hit.span is not None
    assert TEXT[hit.span.start : hit.span.end] == "Revenue"


def test_threshold_and_foreign_in_words() -> None:
    text = plain_text((fact_tree(explain([check(SUM, {"type": "TextMatch", "contains": "EUR"}, pass_threshold=0.5)])),))
    assert "score 0.50 reaches the threshold 0.5" in text
    text = plain_text(
        (fact_tree(explain([foreign_result("reward", score=0.0, source="tau-bench", reason="reward 0")])),)
    )
    assert text == "✗ reward: failed, score 0.00 (from tau-bench)\n  ✗ reward 0"


def test_what_decided_beside_the_metrics_is_said_once() -> None:
    text = {"type": "TextMatch", "contains": "EUR"}
    below = plain_text((fact_tree(explain([check(SUM, text, pass_threshold=0.8)])),)).splitlines()
    assert below[:2] == ["✗ The right sum: failed, score 0.50", "  ✗ score 0.50 is below the threshold 0.8"]
    negated = plain_text((fact_tree(explain([check(text, negate=True)])),)).splitlines()
    assert negated[1] == "  ✗ negated: every metric passed, and must not"
    for plain in (check(SUM, CALL), check(SUM), check(text)):
        (fact,) = explain([plain])
        assert fact.children[0].text.startswith("TextResponse found")
    broken = CriterionResult(
        "it", Outcome.ERROR, None, message="judge: no answer",
        metrics=(MetricResult("judge", "Judge", Outcome.ERROR, message="no answer"),),
    )  # fmt: skip
    assert plain_text((fact_tree(explain([broken])),)) == "! it: error\n  ! judge (Judge): no answer"


def test_the_size_of_a_long_value_is_in_plain_numbers() -> None:
    spec = CriterionSpec("it", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "a"}]})
    for text, size in (("a" * 1_200, "(1 line, 1,200 characters)"), ("a\n" * 600, "(601 lines, 1,200 characters)")):
        result = compile_criterion(spec).check(Transcript((Message("assistant", text),), final_output=text))
        assert size in plain_text((fact_tree(explain([result])),))
