"""Evidence as a comparison: by argument, by piece of text, and with the place where they part."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.results import Evidence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.views.comparison_text import comparison_text
from agenteval_tui.views.evidence_comparison import (
    Comparison,
    comparison_title,
    comparisons,
    hidden_differences,
    leaves,
    parting_note,
)
from agenteval_tui.views.terminal import cells, cut


def missed(metric: dict[str, Any], text: str = "", *calls: ToolCall) -> list[Evidence]:
    transcript = Transcript((Message("user", "?"), Message("assistant", text)), calls, final_output=text)
    kind = "ToolResponse" if calls else "TextResponse"
    result = compile_criterion(CriterionSpec("it", kind, {"metrics": [metric]})).check(transcript)
    return [one for made in result.metrics for one in made.evidence if one.passed is False]


def of_call(expected: dict[str, Any], given: dict[str, Any]) -> tuple[Evidence, tuple[Comparison, ...]]:
    metric = {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": expected}]}
    (one,) = missed(metric, "", ToolCall("a", "get_order", given))
    return one, comparisons(one)


def test_an_argument_stands_below_what_was_expected_with_the_place_that_differs() -> None:
    one, (made,) = of_call({"order_id": "#W1042"}, {"order_id": "W1042"})
    assert comparison_title(one) == ("get_order", "1 of 1 argument differs")
    assert made == Comparison("order_id", '"#W1042"', '"W1042"', 1, "'#' is missing")


@pytest.mark.parametrize(
    "metric",
    [
        {"type": "ToolCheck", "tools": [{"name": "get_orders", "arguments": {f"a{n}": n for n in range(15)}}]},
        {"type": "Trajectory", "calls": [{"name": "get_order", "arguments": {f"a{n}": n for n in range(15)}}]},
    ],
    ids=["a tool of another name", "a step of a trajectory"],
)
def test_differences_of_the_nearest_call_that_are_not_shown_are_counted(metric: dict[str, Any]) -> None:
    given = {f"a{number}": -number - 1 for number in range(15)}
    (line,) = [each for each in missed(metric, "", ToolCall("a", "get_order", given)) if comparisons(each)]
    assert len(comparisons(line)) == 12
    assert hidden_differences(line) == 3


def test_of_lists_and_objects_only_what_differs_is_open() -> None:
    wanted = {"filter": {"country": "DE", "tags": ["a", {"x": 1, "y": 2}], "limit": 5, "sort": "name"}}
    given = {"filter": {"country": "AT", "tags": ["a", {"x": 1, "y": 3}], "limit": 5, "page": 2}}
    _, (made,) = of_call(wanted, given)
    assert (made.name, made.alike) == ("filter", 1)
    country, tags, sort, page = made.parts
    assert (country.name, country.expected, country.got, country.at) == ("country", '"DE"', '"AT"', 1)
    assert tags.alike == 1
    assert [(one.name, one.alike) for one in tags.parts] == [("[1]", 1)]
    assert tags.parts[0].parts == (Comparison("y", "2", "3"),)
    assert (sort.expected, sort.got) == ('"name"', None)
    assert (page.expected, page.got, page.note) == (None, "2", "is not expected")


def test_of_a_value_that_is_kept_in_part_no_place_is_pointed_at_and_no_kind_is_guessed() -> None:
    long = "a" * 3_000
    one, (made,) = of_call({"q": long + "x"}, {"q": long + "y"})
    # A result that is older has no part around the difference.
    (argument,) = one.fields["arguments"]
    old = {**argument, "hint": {key: value for key, value in argument["hint"].items() if key != "around"}}
    (made,) = comparisons(replace(one, fields={**one.fields, "arguments": [old]}))
    assert (made.at, made.note) == (None, "at character 3,001: 'y' instead of 'x'")
    # What is kept of a long object is a text: that is no reason to say that a text was given.
    _, (made,) = of_call({"q": [1]}, {"q": {"a": long}})
    assert (made.at, made.note, made.expected) == (None, "", "[1]")
    assert made.got is not None
    assert made.got.startswith('{"a": "aaa')
    _, (made,) = of_call({"q": "short"}, {"q": long})
    assert (made.at, made.note, made.expected) == (None, "", '"short"')


def test_a_text_is_text_and_not_an_escape() -> None:
    _, (made,) = of_call({"q": 'Toolname:\nsearch "all"'}, {"q": 'Toolname:\nfind "all"'})
    assert made.expected == '"Toolname:\nsearch "all""'
    assert made.got is not None
    assert made.at is not None
    assert made.got[made.at] == "f"
    assert made.note == "'find' instead of 'search'"


@pytest.mark.parametrize(
    ("metric", "text", "got", "pointed", "note", "where"),
    [
        (
            {"contains": "revenue > 5000"},
            "a\nrevenue > 5.000 b",
            '"revenue > 5.000"',
            ".",
            "without the separators",
            "line 2",
        ),
        ({"contains": "Standard Shipping"}, "standard shipping", '"standard shipping"', "s", "ignoring case", "line 1"),
        ({"starts_with": "SELECT"}, "sql\nSELECT 1", '"sql\nSELECT"', "s", "the language tag 'sql' is", "line 2"),
        ({"ends_with": "Bye."}, "Hello. Bye.  ", '"Bye.  "', " ", "white space (2 characters) is after it", "line 1"),
        ({"equals": "x y  z"}, "x y z", '"x y z"', "z", "white space made equal", ""),
        ({"contains": "zu 東京タワー"}, "zu 東京タウー", '"zu 東京タウー"', "ウ", "'ウ' instead of 'ワ'", "line 1"),
    ],
)
def test_a_text_stands_above_the_nearest_one(
    metric: dict[str, Any], text: str, got: str, pointed: str, note: str, where: str
) -> None:
    (one,) = missed({"type": "TextMatch", **metric}, text)
    (made,) = comparisons(one)
    assert made.got == got
    assert made.at is not None
    assert made.got[made.at] == pointed
    assert note in made.note
    assert made.where == where


def test_of_a_long_text_that_was_not_kept_the_part_around_the_difference_is_shown() -> None:
    wanted = "the quick brown fox jumps over the lazy dog and then sleeps"
    (one,) = missed({"type": "Keywords", "keywords": [wanted]}, "So " + wanted.replace("lazy", "crazy") + ".")
    (made,) = comparisons(one)
    assert made.got is not None
    assert made.at is not None
    assert made.got.startswith('"…')
    assert made.got[made.at] == "c"
    assert made.note == "'c' instead of 'l'"


@pytest.mark.parametrize("side", ["equals", "contains", "starts_with", "ends_with"])
@pytest.mark.parametrize(("before", "after"), [(500, 500), (3_000, 20), (25_000, 3_000)])
def test_of_long_texts_the_first_character_that_differs_is_shown_on_both_sides(
    side: str, before: int, after: int
) -> None:
    alike = "".join(f"{number} sheep, " for number in range(5_000))
    wanted, given = (alike[:before] + char + alike[-after:] for char in "yx")
    (one,) = missed({"type": "TextMatch", side: wanted}, given)
    (made,) = comparisons(one)
    assert made.expected is not None
    assert made.got is not None
    assert made.at is not None
    assert (made.expected[made.at], made.got[made.at]) == ("y", "x")
    assert made.expected.startswith('"…')
    assert made.note == "'x' instead of 'y'"
    assert len(made.expected) < 100


@pytest.mark.parametrize(
    ("wanted", "given", "note"),
    [
        ("x", "y", "at character 3,001: 'y' instead of 'x'"),
        ("xy z", "xy", "at character 3,003: ' z' is missing at the end"),
        ("X", "x", "would match ignoring case"),
    ],
)
def test_of_a_long_argument_the_part_around_the_difference_is_shown(wanted: str, given: str, note: str) -> None:
    _, (made,) = of_call({"q": "a" * 3_000 + wanted}, {"q": "a" * 3_000 + given})
    assert made.expected is not None
    assert made.got is not None
    assert made.at is not None
    assert made.expected.startswith('"…aaa')
    assert made.expected[made.at] != made.got[made.at]
    assert made.note == note
    assert len(made.got) < 100


def test_of_a_long_text_that_ends_too_early_its_end_is_shown() -> None:
    wanted = "".join(f"{number} sheep, " for number in range(100))
    (one,) = missed({"type": "TextMatch", "equals": wanted}, wanted[:-1])
    (made,) = comparisons(one)
    assert made.expected is not None
    assert made.at is not None
    assert made.expected[made.at] == " "
    assert made.note == "would match with white space made equal"


def test_json_is_compared_by_path() -> None:
    found = missed({"type": "Json", "equals": {"a": "5", "b": [1, 2]}}, '{"a": 5, "b": [1, 3]}')
    assert [comparisons(one) for one in found] == [
        (Comparison("a", '"5"', "5", 0, "a number instead of a text"),),
        (Comparison("b[1]", "2", "3"),),
    ]


def test_what_cannot_be_compared_is_left_to_a_sentence() -> None:
    (one,) = missed({"type": "TextMatch", "contains": "14 days"}, "We are open.")
    assert comparisons(one) == ()
    (one,) = missed({"type": "TextMatch", "not_contains_any": ["open"]}, "We are open.")
    assert comparisons(one) == ()
    assert comparisons(Evidence("x", False, fields={"arguments": 5, "near": [1]}, code="differs")) == ()
    assert comparisons(Evidence("x", False, expected="a", fields={"near": {"is": "alike"}}, code="missing")) == ()


@pytest.mark.parametrize(
    ("expected", "got", "note"),
    [
        ("#W1", "W1", "'#' is missing"),
        ("W1", "W1 ", "a space is extra"),
        ("a b", "a\u00a0b", "a no-break space instead of a space"),
        ("a\nb", "a b", "a space instead of a line break"),
        ("Yes", "yes", "only the case differs"),
        ("ab", "", "'ab' is missing"),
        ("a\u200bb", "ab", "zero width space is missing"),
    ],
)
def test_what_differs_is_said_in_a_few_words(expected: str, got: str, note: str) -> None:
    assert parting_note(expected, got) == note


@pytest.mark.parametrize(
    ("expected", "got", "note"),
    [
        ("12 EUR", "12\u00a0EUR", "a no-break space instead of a space; would match with white space made equal"),
        ("on its way", "on  its way", "a space is extra; would match with white space made equal"),
        ("on its way", "on its\nway", "a line break instead of a space; would match with white space made equal"),
        (
            "order shipped",
            "or\u200bder shipped",
            "zero width space is extra; would match with Unicode forms made equal",
        ),
        (
            "Café au lait",
            "Cafe\u0301 au lait",
            "e and combining acute accent instead of 'é'; would match with Unicode forms made equal",
        ),
        ("It's", "IT’S", "would match ignoring case and with straight quotes and plain dashes"),
        ("12", "１２", "would match with Unicode forms made equal"),
    ],
)
def test_a_difference_that_cannot_be_seen_is_named(expected: str, got: str, note: str) -> None:
    (one,) = missed({"type": "TextMatch", "contains": expected}, f"He: {got}.")
    assert [made.note for made in comparisons(one)] == [note]
    _, (made,) = of_call({"q": expected}, {"q": got})
    assert made.note == note


@pytest.mark.parametrize("side", ["contains_any", "starts_with_any", "ends_with_any"])
def test_of_several_texts_the_one_that_is_nearest_is_compared(side: str) -> None:
    (one,) = missed({"type": "TextMatch", side: ["something else", "on its way"]}, "On Its Way")
    (made,) = comparisons(one)
    assert (made.expected, made.got, made.note) == ('"on its way"', '"On Its Way"', "would match ignoring case")
    assert comparison_title(one) == ("", "the nearest of 2 texts")
    old = replace(one, fields={**one.fields, "near": {k: v for k, v in one.fields["near"].items() if k != "of"}})
    assert comparisons(old) == (), "of results that are older a sentence"


def test_arguments_that_are_not_expected_are_counted_apart() -> None:
    for expected, given, how in (
        ({"a": 1}, {"a": 1, "b": 2}, "1 argument is not expected"),
        ({"a": 1}, {"a": 1, "b": 2, "c": 3}, "2 arguments are not expected"),
        ({"a": 1, "d": 4}, {"a": 2, "d": 4, "b": 2}, "1 of 2 arguments differs, 1 is not expected"),
        ({"a": 1, "d": 4}, {"b": 2, "c": 4, "e": 6}, "2 of 2 arguments differ, 3 are not expected"),
        ({"a": 1}, {}, "1 of 1 argument differs"),
    ):
        one, _ = of_call(expected, given)
        assert comparison_title(one) == ("get_order", how)


def test_arguments_that_are_not_json_are_shown_as_they_came_with_the_place_of_the_error() -> None:
    metric = {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"id": "1"}}]}
    for given, at, note in (
        ('{"id": "1"', 10, "the JSON is not complete"),
        ("{id: 1}", 1, "not valid JSON from here on"),
        ([1], None, "a list instead of an object"),
    ):
        (one, *_) = missed(metric, "", ToolCall("a", "get_order", given, malformed=isinstance(given, str)))
        assert comparison_title(one) == ("get_order", "the arguments can't be read")
        (made,) = comparisons(one)
        assert (made.expected, made.at, made.note) == (None, at, note)
        assert made.got == (given if isinstance(given, str) else "[1]")


def test_of_lists_with_the_same_entries_it_is_said_that_only_the_order_differs() -> None:
    _, (made,) = of_call({"ids": [1, 2, {"a": [3]}]}, {"ids": [{"a": [3]}, 1, 2]})
    note = "the same entries in another order"
    assert made == Comparison("ids", '[1, 2, {"a": [3]}]', '[{"a": [3]}, 1, 2]', note=note, short=note)
    _, (made,) = of_call({"ids": [1, 2, 2]}, {"ids": [1, 1, 2]})
    assert made.parts == () or made.note != "the same entries in another order"


def test_arguments_of_a_trajectory_and_missing_ones_are_values_not_words() -> None:
    calls = [{"name": "get_order", "arguments": {"id": "#W1", "by": "me", "at": {"$any": True}, "in": [1]}}]
    (one, _) = missed({"type": "Trajectory", "calls": calls}, "", ToolCall("a", "get_order", {"id": "W1", "in": [2]}))
    made = {compared.name: compared for compared in leaves(comparisons(one))}
    assert made["id"] == Comparison("id", '"#W1"', '"W1"', 1, "'#' is missing")
    assert made["in[0]"] == Comparison("in[0]", "1", "2")
    assert made["by"] == Comparison("by", '"me"', None)
    assert made["at"] == Comparison("at", "anything", None), "a matcher is said in words"
    _, (missing,) = of_call({"id": {"n": 1}}, {})
    assert missing == Comparison("id", '{"n": 1}', None)
    named = {
        "overrides": {"get_order": ["id.n", "by"]},
        "calls": [{"name": "get_order", "arguments": {"id": {"n": 1}}}],
    }
    one, _ = missed({"type": "Trajectory", **named}, "", ToolCall("a", "get_order", {"id": {"n": 2}, "by": 3}))
    assert [(c.name, c.expected, c.got) for c in comparisons(one)] == [("id.n", "1", "2"), ("by", "nothing", "3")]


def test_a_comparison_is_text_with_its_caret_below_the_character_that_differs() -> None:
    _, made = of_call({"order_id": "#W1042", "n": 1}, {"order_id": "W1042"})
    assert comparison_text(made) == (
        'order_id  expected  "#W1042"',
        '          got       "W1042"',
        "                     ^ '#' is missing",
        "n         expected  1",
        "          got       nothing",
    )
    (near,) = comparison_text_of(
        {"type": "TextMatch", "contains": "arrives on Friday"}, "It comes\ton Friday \x1b[31m."
    )
    assert near[0] == 'expected  "arrives on Friday"'
    assert near[1].endswith("   line 1")
    assert all(char.isprintable() for line in near for char in line)
    # Of long values the part that differs, and wide characters below each other.
    long = Comparison("", f'"{"你" * 100}a"', f'"{"你" * 100}b"', 101, "'b' instead of 'a'")
    expected, got, caret = comparison_text([long])
    assert expected.startswith("expected  …你")
    assert len(got) < 100
    assert cells(got[: got.index("b")]) == caret.index("^")
    name = "x" * 40
    assert comparison_text([Comparison(name, None, "1", None, "is not expected")]) == (
        name, "got       1", "          is not expected",
    )  # fmt: skip


def comparison_text_of(metric: dict[str, Any], text: str) -> list[tuple[str, ...]]:
    return [comparison_text(comparisons(one)) for one in missed(metric, text)]


def test_joiners_take_no_cell() -> None:
    assert [cells(text) for text in ("می\u200cخواهم", "👨\u200d👩\u200d👧 x", "क\u094d\u200dष")] == [7, 4, 2]
    assert cut((("👨\u200d👩\u200d👧 x", ""),), 3) == (("👨\u200d👩\u200d👧…", ""),)
