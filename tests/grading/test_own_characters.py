"""Evidence quotes the agent and the criterion as they wrote it: case and forms are folded only to compare."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval_tui.grading.causes import cause_of
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.extracted_value import Value
from agenteval_tui.grading.results import CriterionResult, Evidence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.views.evidence_comparison import comparisons, leaves

# Folding changes lengths (İ), is not what upper case undoes (ß, ſ, K as Kelvin, ς), or joins characters (ﬁ, é).
_CHARS = "aAsSßẞſİiıIﬁfΣσςkK\u212aéEe\u0301 .,1-\n"
_TEXT = st.text(_CHARS, min_size=1, max_size=40)
_NEEDLE = st.text(_CHARS, min_size=1, max_size=12).filter(lambda text: bool(text.strip()))


def judged(answer: str, metric: dict[str, Any], calls: list[tuple[str, Any]] | None = None) -> CriterionResult:
    tools = tuple(ToolCall(f"c{n}", name, args, "ok", message=1) for n, (name, args) in enumerate(calls or ()))
    messages = (Message("user", "Hi"), Message("assistant", answer, tool_calls=tuple(range(len(tools)))))
    prototype = "ToolResponse" if tools else "TextResponse"
    spec = CriterionSpec("c", prototype, {"metrics": [metric]})
    return compile_criterion(spec).check(Transcript(messages, tools, final_output=answer))


def lines_of(result: CriterionResult) -> Iterator[Evidence]:
    for metric in result.metrics:
        yield from metric.evidence


def quoted_of_agent(line: Evidence) -> Iterator[str]:
    """The pieces of the agent's text that a line of evidence quotes."""
    found = line.found
    yield from found if isinstance(found, list) else [found] if isinstance(found, str) else []
    near = line.fields.get("near") or {}
    yield from (near[name] for name in ("text", "before", "after", "goes_on", "found") if near.get(name))
    yield from (word for word, _ in line.fields.get("often") or ())
    if isinstance(line.fields.get("text"), str):
        yield line.fields["text"]


def quoted_of_criterion(line: Evidence) -> Iterator[str]:
    near = line.fields.get("near") or {}
    yield from (near[name] for name in ("ends_before", "expected") if near.get(name))


def is_part(piece: str, text: str) -> bool:
    return all(part in text for part in piece.split("…"))


def check(answer: str, needle: str, metric: dict[str, Any]) -> None:
    for line in lines_of(judged(answer, metric)):
        for piece in quoted_of_agent(line):
            assert is_part(piece, answer), (line.condition, piece)
        for piece in quoted_of_criterion(line):
            assert piece in needle, (line.condition, piece)
        for span in (*line.spans, *line.near):
            # The question is "Hi"; every other place is in the answer.
            text = "Hi" if (span.kind, span.index) == ("message", 0) else answer
            assert 0 <= span.start <= span.end <= len(text)
        if line.passed is False and isinstance(line.expected, str):
            for leaf in leaves(comparisons(line)):
                if leaf.got is not None:
                    assert is_part(leaf.got.removeprefix('"').removesuffix('"'), answer), leaf


METRICS = {
    "equals": lambda needle: {"type": "TextMatch", "equals": needle},
    "equals_ignore_case": lambda needle: {"type": "TextMatch", "equals_ignore_case": needle},
    "contains": lambda needle: {"type": "TextMatch", "contains": needle},
    "contains_ignore_case": lambda needle: {"type": "TextMatch", "contains_ignore_case": needle},
    "contains_any": lambda needle: {"type": "TextMatch", "contains_any": [needle]},
    "starts_with": lambda needle: {"type": "TextMatch", "starts_with": needle},
    "ends_with": lambda needle: {"type": "TextMatch", "ends_with": needle},
    "not_contains_any": lambda needle: {"type": "TextMatch", "not_contains_any": [needle]},
    "Keywords": lambda needle: {"type": "Keywords", "keywords": [needle]},
    "Lexical": lambda needle: {"type": "Lexical", "to": needle, "min": 0.99},
    "Classification": lambda needle: {
        "type": "Classification",
        "label": needle,
        "labels": [needle],
        "ignore_case": True,
    },
    "Leak": lambda needle: {"type": "Leak", "secrets": [needle]},
    "Injection": lambda needle: {"type": "Injection", "canary": needle},
    "Repetition": lambda needle: {"type": "Repetition", "max_ratio": 0.1},
}


@pytest.mark.parametrize("name", METRICS)
@example(answer="1", needle="I", inside=False, upper=False)
@given(answer=_TEXT, needle=_NEEDLE, inside=st.booleans(), upper=st.booleans())
@example(answer="Die Straße", needle="STRASSE", inside=False, upper=False)
@example(answer="ist in İstanbul!", needle="istanbul", inside=False, upper=False)
@example(answer="İİİ AS", needle="as", inside=True, upper=True)
def test_quotes_are_in_the_characters_of_whoever_wrote_them(
    name: str, answer: str, needle: str, inside: bool, upper: bool
) -> None:
    if inside:
        answer = f"{answer} {needle.upper() if upper else needle} {answer}"
    check(answer, needle, METRICS[name](needle))


@pytest.mark.parametrize("length", [30, 300, 3_000, 30_000])
@pytest.mark.parametrize("name", ["equals_ignore_case", "contains_ignore_case", "contains", "ends_with", "Keywords"])
def test_also_in_long_texts_and_needles(name: str, length: int) -> None:
    answer = "İSTANBUL, Die STRAßE. " * (length // 20)
    for needle in ("i̇stanbul, die strasse", answer[: length // 2].lower() + "x", "GROSSE Straße"):
        check(answer, needle, METRICS[name](needle))


def near_of(answer: str, metric: dict[str, Any]) -> dict[str, Any]:
    return next(line.fields["near"] for line in lines_of(judged(answer, metric)) if "near" in line.fields)


def test_a_difference_is_said_in_the_needles_own_character() -> None:
    near = near_of("in der straße", {"type": "TextMatch", "contains": "DER STRASSE"})
    assert (near["found"], near["expected"], near["case"]) == ("ß", "S", True)
    near = near_of("İstanbul", {"type": "TextMatch", "equals_ignore_case": "ISTANBUL"})
    assert (near["found"], near["expected"]) == ("İ", "I")


def test_what_is_beside_a_text_is_not_folded() -> None:
    result = judged("Die Hauptstadt ist PARIS, I know", {"type": "TextMatch", "equals_ignore_case": "Paris"})
    (line,) = lines_of(result)
    assert line.fields["near"]["before"] == "Die Hauptstadt ist "
    (leaf,) = leaves(comparisons(line))
    assert leaf.got == '"Die Hauptstadt ist PARIS, I know"'


def test_a_place_after_a_character_that_lower_case_makes_two_of() -> None:
    answer = "İİ then Paris"
    (line,) = lines_of(judged(answer, {"type": "TextMatch", "contains_ignore_case": "PARIS"}))
    assert line.found == "Paris"
    assert [answer[span.start : span.end] for span in line.spans] == ["Paris"]
    (line,) = lines_of(judged("İ", {"type": "TextMatch", "contains_ignore_case": "i"}))
    assert line.found == "İ"


@given(st.text(_CHARS.replace("Σ", ""), min_size=1, max_size=40))  # what Σ becomes depends on its neighbours
def test_each_piece_in_lower_case_is_a_piece_of_the_text(text: str) -> None:
    value = Value(Transcript(), text)
    for start in range(len(value.lower)):
        for end in range(start, len(value.lower) + 1):
            first, last = value.in_text(start, end)
            assert value.lower[start:end] in text[first:last].lower()
            assert (first == last) == (start == end)


def test_a_label_is_shown_as_the_agent_wrote_it_and_counted_as_the_labels_write_it() -> None:
    metric = {"type": "Classification", "label": "ham", "labels": ["ham", "spam"], "ignore_case": True}
    results = [judged(answer, metric) for answer in ("SPAM", "Spam", "spam")]
    assert [next(lines_of(result)).found for result in results] == ["SPAM", "Spam", "spam"]
    assert len({cause_of(result) for result in results}) == 1


def test_an_argument_that_is_compared_without_case_is_shown_as_it_was_given() -> None:
    metric = {"type": "ToolCheck", "tools": [{"name": "go", "arguments": {"to": {"$ignore_case": "STRASSE"}}}]}
    (line,) = [line for line in lines_of(judged("x", metric, [("go", {"to": "Straße"})])) if "arguments" in line.fields]
    assert line.fields["arguments"][0]["found"] == "Straße"
    trajectory = {
        "type": "Trajectory",
        "mode": "all",
        "calls": [{"name": "go", "arguments": metric["tools"][0]["arguments"]}],
    }
    (line,) = [line for line in lines_of(judged("x", trajectory, [("go", {"to": "Straße"})])) if line.passed is False]
    assert line.fields["near_call"]["arguments"][0]["found"] == "Straße"
