"""Regex, Keywords, Length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.grading.sentences import evidence_sentence, metric_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.grading.tokenization import count_sentences, count_words, spoken_texts, words_without_markup
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.uxon.serialize import to_text


def run(text: str, expected: Any = None, **metric: Any) -> CriterionResult:
    transcript = Transcript((Message("assistant", text),), final_output=text)
    checker = Checker(CriterionSpec("it", "TextResponse", {"metrics": [metric]}, expected_value=expected))
    result = checker.check(transcript)
    quick = checker.check(transcript, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    return result


def of(text: str, **metric: Any) -> MetricResult:
    return run(text, **metric).metrics[0]


def marked(text: str, result: MetricResult, line: int = 0, near: bool = False) -> list[str]:
    one = result.evidence[line]
    return [text[span.start : span.end] for span in (one.near if near else one.spans)]


def said(config: dict[str, Any]) -> dict[str, str]:
    return {one.code: one.message for one in diagnose(to_text({"metrics": [config]}), "TextResponse")}


@pytest.mark.parametrize(
    ("text", "config", "passed", "spans"),
    [
        ("Total: 12 and 15", {"pattern": r"\d+"}, True, ["12", "15"]),
        ("Total: none", {"pattern": r"\d+"}, False, []),
        ("TOTAL", {"pattern": "total"}, False, []),
        ("TOTAL", {"pattern": "total", "flags": "i"}, True, ["TOTAL"]),
        ("TOTAL", {"pattern": "/total/i"}, True, ["TOTAL"]),
        ("a\nb/c", {"pattern": "^b/", "flags": "m"}, True, ["b/"]),
        ("a\nb", {"pattern": "/a.b/", "flags": "s"}, True, ["a\nb"]),
        ("sorry, no", {"pattern": "sorry", "not": True}, False, ["sorry"]),
        ("fine", {"pattern": "sorry", "not": True}, True, []),
    ],
)
def test_regex(text: str, config: dict[str, Any], passed: bool, spans: list[str]) -> None:
    result = of(text, type="Regex", **config)
    assert (result.outcome is Outcome.PASSED, result.score) == (passed, float(passed))
    assert marked(text, result) == spans


def test_regex_says_how_far_it_got() -> None:
    text = "Your refund: 12,50 EUR"
    result = of(text, type="Regex", pattern=r"refund: \d+\.\d+")
    assert metric_sentence(result).startswith(r"refund: \d+\.\d+ is not in the text; its beginning refund: \d+ matches")
    assert marked(text, result, near=True) == ["refund: 12"]


def test_findings_of_regex() -> None:
    assert "cannot fail" in said({"type": "Regex", "pattern": "a*"})["cannot-fail"]
    assert "never pass" in said({"type": "Regex", "pattern": "a*", "not": True})["contradictory"]
    assert said({"type": "Regex", "pattern": "a+"}) == {}
    assert said({"type": "Regex", "pattern": "^(?!sorry)"}) == {}
    assert "flag g" in said({"type": "Regex", "pattern": "a", "flags": "ig"})["bad-flags"]


def test_keywords() -> None:
    text = "Your ORDER is on its way."
    result = of(text, type="Keywords", keywords=["order", "", "refund", "way"], min_fraction=0.6)
    assert result.outcome is Outcome.PASSED
    assert result.score == pytest.approx(2 / 3)
    assert marked(text, result, 1) == ["ORDER"]
    strict = of(text, type="Keywords", keywords=["order", "way"], ignore_case=False)
    assert (strict.outcome, strict.score) == (Outcome.FAILED, 0.5)
    assert "would match ignoring case" in metric_sentence(strict) or "ignoring case" in metric_sentence(strict)
    assert marked(text, strict, near=True) == ["ORDER"]
    most = of(text, type="Keywords", keywords=["order", "way", "refund"], min_fraction=0.67)
    sentences = [evidence_sentence(line) for line in most.evidence]
    assert "2 of 3 keywords found (66.7 %), expected at least 67 %" in sentences
    all_of_them = of(text, type="Keywords", keywords=["order", "refund"])
    assert all_of_them.outcome is Outcome.FAILED
    assert run(text, type="Keywords", keywords=["", ""]).neutral
    assert "checks nothing" in said({"type": "Keywords", "keywords": []})["checks-nothing"]
    assert "cannot-fail" in said({"type": "Keywords", "keywords": ["a"], "min_fraction": 0})
    assert "duplicate" in said({"type": "Keywords", "keywords": ["a", "A"]})
    assert said({"type": "Keywords", "keywords": ["a", "A"], "ignore_case": False}) == {}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("one two", 2),
        ("It's a well-known 42nd don’t", 5),
        ("a_b", 2),
        ("naïve cafe\u0301 日本", 3),
        ("... !!!", 0),
        ("rock 'n' roll", 3),
    ],
)
def test_words(text: str, words: int) -> None:
    assert count_words(text) == words
    assert len(words_without_markup(text)) == words
    assert count_words(f"- {text}") == words + 1  # a run of dashes is one by the letter; nobody says it


@given(st.text("ab' -’é\u0301_1.", max_size=20))
def test_spoken_words_with_and_without_places(text: str) -> None:
    assert [word.text for word in words_without_markup(text)] == spoken_texts(text)
    assert all(text[word.start : word.end] == word.text for word in words_without_markup(text))


def test_length() -> None:
    text = "one two three four"
    assert of(text, type="Length", min_words=4, max_words=4, max_chars=18).outcome is Outcome.PASSED
    long = of(text, type="Length", max_words=2, min_chars=3)
    assert (long.outcome, long.score) == (Outcome.FAILED, 0.5)
    assert metric_sentence(long) == "4 words, 2 more than the maximum of 2"
    assert marked(text, long) == ["three four"]
    chars = of(text, type="Length", max_chars=5)
    assert marked(text, chars) == ["wo three four"]
    short = of(text, type="Length", min_words=6)
    assert metric_sentence(short) == "4 words, 2 fewer than the minimum of 6"
    assert run(text, type="Length").neutral
    assert "never pass" in said({"type": "Length", "min_words": 5, "max_words": 4})["contradictory"]
    assert "never pass" in said({"type": "Length", "min_words": 5, "max_chars": 8})["contradictory"]
    assert said({"type": "Length", "min_words": 5, "max_chars": 9}) == {}
    assert "cannot-fail" in said({"type": "Length", "min_chars": 0})
    assert "checks-nothing" in said({"type": "Length"})


def test_sentences() -> None:
    assert count_sentences("The cat sat. The yellow dog.") == 2
    assert count_sentences("It costs 3.14 euros. Really?! Yes") == 3
