"""Verdicts of other programs on texts: promptfoo, Inspect, openai/evals, tau-bench.

Each case becomes a criterion in our own language. What has no counterpart here is listed below, with the reason, and a
test holds that list to the file: no case is left out in silence.
"""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Transcript

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILE = SHARED / "conformance" / "text_match.json"

pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="recordings beside the project are not here")

NO_COUNTERPART = {
    "levenshtein": "a number of edits: Lexical measures a share of the length, 0 to 1",
    "inspect-match": "compares numbers after normalising them (½, 三, 1e3): no metric reads numbers out of text",
    "inspect-exact": "SQuAD's normalisation (no punctuation, no articles): TextMatch compares texts as they are",
    "inspect-f1": "SQuAD's token F1: Lexical measures order too (rouge_l) or sets (token_set)",
}
DIFFERENT = {
    "pf-022": "promptfoo finds an empty needle in every text; here empty needles are ignored",
    "pf-024": "a list of empty needles fails in promptfoo; here it checks nothing, and the editor warns",
}

CASES: list[dict[str, Any]] = json.loads(FILE.read_text())["cases"] if FILE.is_file() else []


def plain(check: str) -> str:
    return check.removeprefix("not-")


COMPARED = [case for case in CASES if plain(case["check"]) not in NO_COUNTERPART and case["id"] not in DIFFERENT]


def text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def needles(value: Any) -> list[str]:
    """promptfoo's lists: a list, or a line of comma-separated values."""
    if isinstance(value, list):
        return [text(one) for one in value]
    row = next(csv.reader([re.sub(r'\s*,\s*(?=")|(?<=")\s*,\s*', ",", text(value))], skipinitialspace=True), [])
    return [one.strip() for one in row]


def word_bounds(value: Any) -> dict[str, int]:
    if isinstance(value, dict):
        return {f"{side}_words": bound for side, bound in value.items()}
    return {"min_words": int(value), "max_words": int(value)}


def only_group(pattern: str, number: int) -> str:
    """The pattern with one of its groups capturing; the others only group."""
    parts = re.split(r"(?<!\\)\((?!\?)", pattern)
    opened = ["(" if index == number else "(?:" for index in range(1, len(parts))]
    return parts[0] + "".join(sign + part for sign, part in zip(opened, parts[1:], strict=True))


ANSWER = {  # Inspect's three ways to read an answer; the last one in the text counts
    "letter": r"/.*ANSWER\s*:\s*([A-Za-z])(?:[^\w]|\n|$)/is",
    "word": r"/.*ANSWER\s*:\s*(\S+?)[.,!?;:]?(?:\s|$)/is",
    "line": r"/.*ANSWER\s*:\s*([^\n]+)/is",
}


def configs(case: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Criteria of which one must pass: prototype class and config."""
    check, value = plain(case["check"]), case["value"]

    def match(**properties: Any) -> list[tuple[str, dict[str, Any]]]:
        return [("TextResponse", {"metrics": [{"type": "TextMatch", **properties}]})]

    if check == "equals":
        if isinstance(value, str):
            return match(equals=value)
        return [("TextResponse", {"metrics": [{"type": "Json", "equals": value}]})]
    if check in ("contains", "icontains"):
        return match(**{"contains" if check == "contains" else "contains_ignore_case": text(value)})
    if check == "contains-any":
        return match(contains_any=needles(value))
    if check == "contains-all":
        return match(contains_all=needles(value))
    if check == "starts-with-any":
        return match(starts_with_any=needles(value))
    if check in ("icontains-any", "icontains-all"):
        wanted = [needle for needle in needles(value) if needle]
        share = 1.0 if check == "icontains-all" else 1 / len(wanted)
        return [("TextResponse", {"metrics": [{"type": "Keywords", "keywords": wanted, "min_fraction": share}]})]
    if check == "regex":
        return [("TextResponse", {"metrics": [{"type": "Regex", "pattern": value}]})]
    if check == "is-json":
        return [("TextResponse", {"metrics": [{"type": "Json", **({"schema": value} if value else {})}]})]
    if check == "contains-json":
        json_in_text = r"/\{(?:[^{}]|(?R))*\}|\[(?:[^\[\]]|(?R))*\]/s"
        metric = {"type": "Json", **({"schema": value} if value else {})}
        return [("TextResponse", {"extract_by_regex": json_in_text, "metrics": [metric]})]
    if check == "word-count":
        return [("TextResponse", {"metrics": [{"type": "Length", **word_bounds(value)}]})]
    if check == "json-equals":
        return [
            ("JsonResponse", {"metrics": [{"type": "Json", "equals": json.loads(one)}]})
            for one in (value if isinstance(value, list) else [value])
        ]
    if check == "tau-any-message-contains":
        metric = {"type": "TextMatch", "contains_ignore_case": value}
        return [("Transcript", {"roles": ["assistant"], "metrics": [metric]})]
    if check == "inspect-answer":
        pattern = ANSWER[case["params"]["mode"]]
        return [
            (
                "TextResponse",
                {"extract_by_regex": pattern, "metrics": [{"type": "TextMatch", "equals_ignore_case": one}]},
            )
            for one in value
        ]
    raise AssertionError(check)


def transcript_of(output: Any) -> Transcript:
    if isinstance(output, str):
        return Transcript((Message("assistant", output),), final_output=output)
    # tau-bench takes the commas out of numbers; that is the adapter's business.
    said = [one.replace(",", "") for one in output]
    return Transcript(tuple(Message("assistant", one) for one in said), final_output=said[-1])


def passes(prototype: str, config: dict[str, Any], transcript: Transcript, negate: bool = False) -> bool:
    checker = Checker(CriterionSpec("it", prototype, config, negate=negate))
    result = checker.check(transcript)
    assert result.outcome in (Outcome.PASSED, Outcome.FAILED), criterion_sentence(result)
    quick = checker.check(transcript, explain=False)
    assert (quick.outcome, quick.score) == (result.outcome, result.score)
    assert result.outcome is Outcome.PASSED or criterion_sentence(result)
    return result.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    "case", [pytest.param(one, id=one["id"]) for one in COMPARED if one["check"] != "inspect-pattern"]
)
def test_equal_to_the_others(case: dict[str, Any]) -> None:
    transcript = transcript_of(case["output"])
    negate = case["check"].startswith("not-")
    found = [passes(prototype, config, transcript, negate) for prototype, config in configs(case)]
    assert any(found) is case["expected"]


@pytest.mark.parametrize(
    "case", [pytest.param(one, id=one["id"]) for one in COMPARED if one["check"] == "inspect-pattern"]
)
def test_groups_of_a_pattern(case: dict[str, Any]) -> None:
    """Inspect: one group (or each, with match_all) is a target. Here: a criterion for each group."""
    params, transcript = case["params"], transcript_of(case["output"])
    flags = "i" if params.get("ignore_case", True) else ""
    equals = "equals_ignore_case" if flags else "equals"
    groups = re.compile(params["pattern"]).groups
    hits = []
    for number in range(1, groups + 1):
        config = {
            "extract_by_regex": f"/{only_group(params['pattern'], number)}/{flags}",
            "metrics": [{"type": "TextMatch", equals: case["value"][0]}],
        }
        hits.append(passes("TextResponse", config, transcript))
    assert (all(hits) if params.get("match_all") else any(hits)) is case["expected"]


def test_nothing_is_left_out_in_silence() -> None:
    assert len(CASES) == 206
    checks = Counter(plain(case["check"]) for case in CASES)
    assert set(checks) >= set(NO_COUNTERPART)
    assert {case["id"] for case in CASES} >= set(DIFFERENT)
    left_out = sum(checks[check] for check in NO_COUNTERPART) + len(DIFFERENT)
    assert (len(COMPARED), left_out) == (147, 59)


def test_what_differs_differs_as_it_says() -> None:
    for case in CASES:
        if case["id"] in DIFFERENT:
            config = {"metrics": [{"type": "Keywords", "keywords": needles(case["value"]), "min_fraction": 0.1}]}
            assert passes("TextResponse", config, transcript_of(case["output"])) is not case["expected"]
