"""TextMatch: groups, scores, evidence, and spans that point at the exact characters."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import CriterionResult, Evidence, Outcome, Span
from agenteval_tui.grading.sentences import criterion_sentence, evidence_sentence, metric_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript


def answer(text: str) -> Transcript:
    return Transcript((Message("user", "Hi"), Message("assistant", text)), final_output=text)


def check(text: str, /, extraction: dict[str, Any] | None = None, **metric: Any) -> CriterionResult:
    spec = CriterionSpec("it", "TextResponse", {**(extraction or {}), "metrics": [{"type": "TextMatch", **metric}]})
    result = compile_criterion(spec).check(answer(text))
    quick = compile_criterion(spec).check(answer(text), explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


def evidence(result: CriterionResult, condition: str) -> Evidence:
    return next(one for metric in result.metrics for one in metric.evidence if one.condition == condition)


def marked(text: str, spans: tuple[Span, ...]) -> list[str]:
    assert all(span.kind == "message" and span.index == 1 for span in spans)
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("metric", "score"),
    [
        ({"contains": "b c"}, 1.0),
        ({"contains": "B c"}, 0.0),
        ({"contains_ignore_case": "B C"}, 1.0),
        ({"contains_all": ["a", "d"]}, 1.0),
        ({"contains_all": ["a", "x"]}, 0.0),
        ({"contains_any": ["x", "d"]}, 1.0),
        ({"contains_any": ["x", "y"]}, 0.0),
        ({"not_contains_any": ["x", "y"]}, 1.0),
        ({"not_contains_any": ["x", "a"]}, 0.0),
        ({"starts_with": "a b"}, 1.0),
        ({"starts_with": "b"}, 0.0),
        ({"starts_with_any": ["x", "a"]}, 1.0),
        ({"ends_with": "d"}, 1.0),
        ({"ends_with_any": ["x", "c d"]}, 1.0),
        ({"ends_with_any": ["x", "y"]}, 0.0),
        ({"equals": "a b c d"}, 1.0),
        ({"equals": "A b c d"}, 0.0),
        ({"equals_ignore_case": "A B C D"}, 1.0),
        # One group, one of its conditions broken: the group is 0.
        ({"contains": "a", "contains_all": ["x"]}, 0.0),
        # Two groups, one broken.
        ({"contains": "a", "starts_with": "x"}, 0.5),
        ({"contains": "a", "not_contains_any": ["x"], "starts_with": "x", "ends_with": "d", "equals": "a b c d"}, 0.8),
        # Empty needles are ignored beside others.
        ({"contains_any": ["", "x"]}, 0.0),
        ({"not_contains_any": ["", "x"]}, 1.0),
        ({"starts_with": "", "ends_with": "x"}, 0.0),
    ],
)
def test_scores(metric: dict[str, Any], score: float) -> None:
    result = check("a b c d", **metric)
    assert result.score == pytest.approx(score)
    assert result.outcome is (Outcome.PASSED if score == 1.0 else Outcome.FAILED)
    assert all(
        evidence_sentence(one) and "\n" not in evidence_sentence(one) for m in result.metrics for one in m.evidence
    )


def test_empty_equals_is_a_condition() -> None:
    assert check("", equals="").outcome is Outcome.PASSED
    assert check("x", equals="").outcome is Outcome.FAILED
    assert check("", equals_ignore_case="").outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "metric", [{}, {"contains": ""}, {"contains_all": []}, {"contains_any": [""]}, {"not_contains_any": [""]}]
)
def test_nothing_configured_is_neutral(metric: dict[str, Any]) -> None:
    result = check("text", **metric)
    assert result.metrics[0].neutral
    assert result.metrics[0].rating == 3
    assert result.metrics[0].score is None
    assert result.outcome is Outcome.PASSED
    assert result.score is None
    assert result.neutral


def test_case_is_folded_by_lower_and_spans_stay_right() -> None:
    # The lower case of İ is two characters long: offsets behind it move.
    text = "İİİ Straße und MÜNCHEN"
    found = evidence(check(text, contains_ignore_case="münchen"), "contains_ignore_case")
    assert marked(text, found.spans) == ["MÜNCHEN"]
    assert check("Straße", equals_ignore_case="STRASSE").outcome is Outcome.FAILED


def test_spans_of_hits() -> None:
    text = "one two\nthree two"
    assert marked(text, evidence(check(text, contains="two"), "contains").spans) == ["two"]
    assert marked(text, evidence(check(text, starts_with="one t"), "starts_with").spans) == ["one t"]
    assert marked(text, evidence(check(text, ends_with="e two"), "ends_with").spans) == ["e two"]
    assert marked(text, evidence(check(text, contains_any=["x", "three"]), "contains_any").spans) == ["three"]
    forbidden = evidence(check(text, not_contains_any=["two"]), "not_contains_any[0]")
    assert [(span.start, span.end) for span in forbidden.spans] == [(4, 7), (14, 17)]
    assert evidence_sentence(forbidden) == '"two" must not be in the text, but it is (lines 1 and 2)'
    assert evidence(check(text, contains_all=["one", "two"]), "contains_all[1]").passed


def test_spans_inside_an_extraction_point_into_the_message() -> None:
    text = "Here:\n```sql\nSELECT 1\n```\nDone."
    result = check(text, {"extract_code_block": 1, "code_language": "sql"}, equals="SELECT 1")
    assert result.value == "SELECT 1"
    assert marked(text, result.value_spans) == ["SELECT 1"]
    assert marked(text, evidence(result, "equals").spans) == ["SELECT 1"]


def test_final_output_that_no_message_holds_is_marked_in_the_value() -> None:
    transcript = Transcript((Message("assistant", "other"),), final_output="the value")
    spec = CriterionSpec("it", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "value"}]})
    result = compile_criterion(spec).check(transcript)
    assert result.metrics[0].evidence[0].spans == (Span("value", 0, 4, 9),)


NEAR = [
    # text, metric, marked near miss, words of the reason
    (
        "SELECT *\nFROM t\nWHERE a\n AND revenue > 5.000",
        {"contains": "5000"},
        "5.000",
        ["5.000", "line 4", "separators"],
    ),
    ("yes:no", {"contains": " yes:no"}, "yes:no", ["white space"]),
    ("about 3.5 km", {"contains": "35 km"}, "3.5 km", ["differs at"]),
    ("1.234.567 km", {"contains": "1234567 KM"}, "1.234.567 km", ["ignoring case and without the separators"]),
    ("user mia_kim_4397 found", {"contains": "mia_kim_5300"}, "mia_kim_4397", ['differs at "4"']),
    ("Order #W123 shipped", {"contains": "order #W123"}, "Order #W123", ["ignoring case"]),
    ("a  b\n c", {"contains": "a b c"}, "a  b\n c", ["white space"]),
    ("He said „yes“ – twice", {"contains": '"yes" - twice'}, "„yes“ – twice", ["quotes"]),
    ("Cafe\u0301 au lait", {"contains": "Café"}, "Cafe\u0301", ["Unicode"]),
    ("The Order was CANCELED", {"contains": "order was cancelled"}, None, ["nearest", "differs at"]),
    ("Berlin, Germany", {"contains": "Berlin; Germany"}, "Berlin, Germany", ['differs at ","', 'expected ";"']),
    ("  yes", {"starts_with": "yes"}, "yes", ["white space before it"]),
    ("yes.\n", {"ends_with": "yes."}, "yes.", ["white space after it"]),
    ("Sure: yes", {"starts_with": "yes"}, "yes", ["line 1", "Sure: "]),
    ("Yes, done", {"starts_with": "yes"}, "Yes", ["ignoring case"]),
    ("Total: 42 EUR", {"ends_with": "42 eur"}, "42 EUR", ["ignoring case"]),
    ("abc\ndef", {"equals": "abc\ndeg"}, "abc\ndef", ["line 2", 'differs at "f"']),
    ("abc", {"equals": "abcd"}, "abc", ['ends before "d"']),
    ("abcd", {"equals": "abc"}, "abc", ["after it"]),
    # The beginning of the next line is near only where it makes the whole nearer.
    (
        "FROM t\nWHERE country = 'DE'\n  AND x",
        {"contains": "country = 'Deutschland'"},
        "country = 'DE'",
        ["also in case"],
    ),
    ("FROM t\nWHERE a = 'DE'\n  AND x", {"contains": "a = 'Deutsch' AND x"}, "a = 'DE'\n  AND x", ['differs at "E"']),
    ("Hello Berlin", {"contains_any": ["Paris", "berlin"]}, "Berlin", ["ignoring case"]),
]


@pytest.mark.parametrize(("text", "metric", "near", "words"), NEAR)
def test_near_misses(text: str, metric: dict[str, Any], near: str | None, words: list[str]) -> None:
    result = check(text, **metric)
    assert result.outcome is Outcome.FAILED
    one = result.metrics[0].evidence[0]
    assert not one.passed
    for word in words:
        assert word in evidence_sentence(one)
    if near is not None:
        assert marked(text, one.near) == [near]


def test_language_tag_before_the_code() -> None:
    text = "Here:\n```sql\nSELECT 1\n```"
    one = check(text, {"extract_code_block": 1}, starts_with="SELECT").metrics[0].evidence[0]
    assert 'language tag "sql"' in evidence_sentence(one)
    assert "code_language" in evidence_sentence(one)
    assert marked(text, one.near) == ["SELECT"]


def test_nothing_near() -> None:
    one = check("completely different", contains="0123456789").metrics[0].evidence[0]
    assert one.near == ()
    assert evidence_sentence(one) == '"0123456789" is not in the text'
    assert (
        evidence_sentence(check("", contains="x").metrics[0].evidence[0]) == '"x" is not in the text: the text is empty'
    )


def test_near_misses_in_long_texts_are_bounded_and_right() -> None:
    text = "x" * 15_000 + " the Answer is 42 " + "y" * 500_000
    one = check(text, contains="the answer is 42").metrics[0].evidence[0]
    assert marked(text, one.near) == ["the Answer is 42"]
    long = "z" * 100_000
    assert check(long, contains="q" * 50_000).outcome is Outcome.FAILED
    assert check(long + "Yes", ends_with="yes").metrics[0].evidence[0].near[0].start == 100_000


def test_long_lists_of_needles_get_a_bounded_number_of_near_misses() -> None:
    text = " ".join(f"Word{number}" for number in range(300))
    lines = check(text, contains_all=[f"word{number}" for number in range(300)]).metrics[0].evidence
    assert len(lines) == 300
    assert not any(one.passed for one in lines)
    assert sum(bool(one.near) for one in lines) == 12


def test_reason_of_the_metric_counts_the_other_misses() -> None:
    result = check("abc", contains_all=["x1", "y2"], starts_with="q")
    assert metric_sentence(result.metrics[0]).startswith('"x1" is not in the text')
    assert metric_sentence(result.metrics[0]).endswith("(and 2 more)")


@pytest.mark.parametrize(
    ("metric", "words"),
    [
        ({"contains_all": "x"}, ["metrics[0].contains_all", "a list", '["x"]']),
        ({"contains": ["x"]}, ["metrics[0].contains", "a string", 'write "x"']),
        ({"contains": 5}, ["must be a string", '"5"']),
        ({"contains_all": ["a", 5]}, ["metrics[0].contains_all[1]", "a string"]),
        ({"contains": None}, ["metrics[0].contains", "null"]),
        ({"contain_all": ["x"]}, ["contain_all", "did you mean `contains_all`"]),
        ({"weight": -1}, ["weight"]),
        ({"weight": "2"}, ["weight", "a number"]),
        ({"weight": True}, ["weight"]),
        ({"name": 5}, ["name"]),
    ],
)
def test_wrong_types_are_an_error_with_the_reason(metric: dict[str, Any], words: list[str]) -> None:
    result = check("x", **metric)
    assert result.outcome is Outcome.ERROR
    assert result.score is None
    for word in words:
        assert word in criterion_sentence(result)
