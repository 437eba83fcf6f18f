"""Criteria from labelled runs: what is found, that it grades as it says, and what to label next."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
import regex
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.suggest.conditions import Measure, graded
from agenteval_tui.extensions.suggest.examples import Example, Examples
from agenteval_tui.extensions.suggest.search import Check, Suggestion, Suggestions, check, suggest, unseen_share
from agenteval_tui.extensions.suggest.shapes import SHAPES, metric_families
from agenteval_tui.extensions.suggest.texts import counter
from agenteval_tui.extensions.suggest.view import check_text, next_lines
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Message, Timing, ToolCall, Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading
from agenteval_tui.uxon.parse import parse
from agenteval_tui.views.model import plain

Call = tuple[str, Mapping[str, Any]]


def run(text: str = "", *calls: Call, ms: float | None = None) -> Transcript:
    made = tuple(ToolCall(f"c{n}", name, dict(given), "", message=1) for n, (name, given) in enumerate(calls))
    messages = (Message("user", "please"), Message("assistant", text))
    return Transcript(messages, made, Timing(total_ms=ms), final_output=text)


def suggested(
    good: list[Transcript],
    bad: list[Transcript],
    others: list[Transcript] | None = None,
    rows: list[Mapping[str, Any]] | None = None,
) -> Suggestions:
    """What is suggested; each config was looked at: it is right, and it grades as the suggestion says."""
    listed = [(one, True) for one in good] + [(one, False) for one in bad] + [(one, None) for one in others or ()]
    given = Examples(
        [
            Example(f"run-{number}", transcript, rows[number] if rows else {}, label)
            for number, (transcript, label) in enumerate(listed)
        ]
    )
    found = suggest(given)
    assert found == suggest(given)
    for one in found.suggestions:
        assert not [problem for problem in diagnose(one.config, one.prototype_class) if problem.severity != "info"], (
            one.config
        )
        passed, failed = graded(given, CriterionSpec("", one.prototype_class, one.config))
        agrees = (passed & given.good).bit_count() + (failed & given.bad).bit_count()
        assert (one.agrees, one.passes) == (agrees, passed.bit_count())
        assert one.wrong == given.ids(given.labelled & ~((passed & given.good) | (failed & given.bad)))
    return found


def metrics(one: Suggestion) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = parse(one.config).value["metrics"]
    return found


def first(found: Suggestions) -> dict[str, Any]:
    """The only metric of the best criterion, which agrees with every label."""
    best = found.suggestions[0]
    assert best.agrees == best.labelled
    (metric,) = metrics(best)
    return metric


def test_two_good_runs_and_a_bad_one() -> None:
    found = suggested(
        [run("Your order was cancelled and you get 12.50 EUR."), run("I cancelled it; 12.50 EUR will come back.")],
        [run("I can't do that for your order.")],
    )
    assert (found.good, found.bad, found.runs, found.unseen) == (2, 1, 3, None)
    assert found.suggestions[0].agrees == found.suggestions[0].labelled == 3
    said = [metric for one in found.suggestions for metric in metrics(one)]
    assert any("12.50" in str(metric) or "cancelled" in str(metric) for metric in said)


def test_good_runs_only_say_what_they_share_and_how_sure_that_is() -> None:
    order = ("get_order", {"order_id": "#W7"})
    found = suggested([run("Order #W7 is on its way.", order), run("#W7 left: it is on its way.", order)], [])
    assert found.unseen == pytest.approx(1 - 0.05**0.5)
    assert metrics(found.suggestions[0]) == [
        {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W7"}}]}
    ]
    assert {"type": "TextMatch", "contains_all": ["#W7", "is on its way"]} in [
        metric for one in found.suggestions for metric in metrics(one)
    ]
    assert all(one.left_out is None and one.agrees == 2 for one in found.suggestions)


def test_the_share_that_was_not_seen_is_near_three_of_n() -> None:
    assert unseen_share(1) == pytest.approx(0.95)
    assert unseen_share(100) == pytest.approx(0.03, abs=0.001)


@pytest.mark.parametrize("labels", [[], [False]])
def test_without_a_good_run_there_is_nothing_to_look_for(labels: list[bool]) -> None:
    with pytest.raises(AgentevalError, match="label"):
        suggest(Examples([Example("a", run("x"), {}, label) for label in [*labels, None]]))


def test_numbers_and_ids_become_patterns() -> None:
    found = suggested(
        [run("Return R0417 was made."), run("Done, see R0882."), run("I made return R1290 for you.")],
        [run("I made nothing for you."), run("Done, see above."), run("Return was refused.")],
    )
    best = found.suggestions[0]
    assert best.agrees == 6
    assert all(
        Checker(CriterionSpec("", best.prototype_class, best.config)).check(run(text)).outcome is outcome
        for text, outcome in (("It is R5555.", Outcome.PASSED), ("It is gone.", Outcome.FAILED))
    )


@pytest.mark.parametrize("huge", [10**400, -(10**400), float("inf"), float("nan")], ids=["+", "-", "inf", "nan"])
def test_a_number_that_no_bound_can_have_is_no_bound(huge: float) -> None:
    good = [run("ok", ("page", {"limit": n, "id": huge})) for n in (10, 20, 40)]
    bad = [run("ok", ("page", {"limit": n, "id": 5})) for n in (50, 60, 90)]
    assert first(suggested(good, bad))["tools"][0]["arguments"] == {"limit": {"$lte": 40}}


def test_arguments_of_calls() -> None:
    def calls(*values: object) -> list[Transcript]:
        return [run(f"answer {n}", ("search", {"limit": value, "q": f"words {n}"})) for n, value in enumerate(values)]

    found = suggested(calls(5, 8, 10), calls(50, 80))
    assert first(found)["tools"][0]["arguments"] == {"limit": {"$lte": 40}}
    found = suggested(calls("#W1", "#W22", "#W9"), calls("1", "22"))
    assert first(found)["tools"][0]["arguments"] == {"limit": {"$regex": "^#W\\d+$"}}
    found = suggested(calls("a", "b", "a"), calls("c", "d"))
    assert first(found)["tools"][0]["arguments"] == {"limit": {"$one_of": ["a", "b"]}}


def test_calls_their_number_and_order() -> None:
    look, act = ("look", {}), ("act", {})
    assert first(suggested([run("a", look), run("b", look)], [run("c"), run("d")]))["tools"] == [{"name": "look"}]
    assert first(suggested([run("a"), run("b", look)], [run("c", act), run("d", act, look)])) == {
        "type": "ToolCheck",
        "forbidden_tools": ["act"],
    }
    found = suggested([run("a", look, act), run("b", look, act)], [run("c", act, look), run("d", act, look)])
    assert "before" in found.suggestions[0].title or first(found)["mode"] == "strict"
    found = suggested([run("a", look), run("b", look)], [run("c", look, look), run("d", look, look, look)])
    assert first(found) in (
        {"type": "ToolCheck", "tools": [{"name": "look", "required": False, "max_calls": 1}]},
        {"type": "Steps", "max": 1},
    )


def test_values_at_json_paths() -> None:
    good = [run('{"status": "sent", "items": [1, 2]}'), run('{"items": [3], "status": "sent"}')]
    found = suggested(good, [run('{"status": "lost", "items": [1]}'), run('{"status": "open", "items": [4]}')])
    assert any(
        one.prototype_class == "JsonResponse" and '"extract_path": "status"' in one.config for one in found.suggestions
    )
    found = suggested(good, [run('{"items": [1]}'), run('{"items": [2, 3]}')])
    assert any({"type": "Json", "required_keys": ["status"]} in metrics(one) for one in found.suggestions)


def left(text: str, **probes: tuple[Any, Any]) -> Transcript:
    """A run that says `text`; `probes`: what each read before and after it."""
    state = tuple(ProbeState(name, Reading(before), Reading(after)) for name, (before, after) in probes.items())
    return replace(run(text), state=state)


PENDING, CANCELLED = [{"id": "W1", "status": "pending"}], [{"id": "W1", "status": "cancelled"}]


def test_what_runs_left_behind() -> None:
    good = [left(f"done {n}", orders=(PENDING, CANCELLED), mails=({}, {"out.txt": "x" * n})) for n in (1, 2, 3)]
    bad = [left(f"done {n}", orders=(PENDING, PENDING), mails=({}, {})) for n in (4, 5)]
    (first_one, *_) = suggested(good, bad).suggestions
    assert (first_one.prototype_class, first_one.agrees) == ("State", 5)
    assert first_one.title in ("orders changes", "mails changes")
    config = parse(suggested(bad, good).suggestions[0].config).value
    assert config["metrics"] == [{"type": "Json", "equals": {}}]


def test_what_good_runs_left_behind_in_common() -> None:
    good = [left(f"done {n}", order=("pending", "cancelled"), mails=({}, {})) for n in (1, 2)]
    configs = [parse(one.config).value for one in suggested(good, []).suggestions if one.prototype_class == "State"]
    assert {"probe": "mails", "of": "change", "metrics": [{"type": "Json", "equals": {}}]} in configs
    (order,) = [config for config in configs if config["probe"] == "order"]
    expected = {"before": "pending", "after": "cancelled"}
    assert order == {"probe": "order", "of": "change", "metrics": [{"type": "Json", "equals": expected}]}


def test_a_state_that_could_not_be_read_is_no_state() -> None:
    unread = replace(run("done"), state=(ProbeState("order", Reading("a"), Reading(problem="no_file")),))
    good = [left(f"done {n}", order=("a", "b")) for n in (1, 2)]
    assert all(one.prototype_class != "State" for one in suggested([*good, unread], []).suggestions)


def test_equal_answers_with_other_states_do_not_contradict_each_other() -> None:
    found = suggested([left("done", order=("a", "b"))] * 2, [left("done", order=("a", "a"))])
    assert found.contradictions == ()
    assert found.suggestions[0].prototype_class == "State"


def test_bounds_of_metrics_come_from_their_registry() -> None:
    found = suggested([run("same", ms=100), run("same", ms=140)], [run("same", ms=900), run("same", ms=2000)])
    assert first(found) == {"type": "Latency", "max": 500}
    texts = ["one two " * 20, "one two " * 25, "one two " * 110, "one two " * 200]
    given = Examples([Example(str(n), run(text), {}, n < 2) for n, text in enumerate(texts)])
    fitted = [family.fit(given.good, given.bad) for family in metric_families(given)]
    assert {"type": "Length", "max_words": 200} in [conditions[0].metric for conditions in fitted if conditions]


def test_what_is_asked_for_may_be_in_the_row() -> None:
    answers = ["Berlin is it", "It is Rome", "Oslo", "Berlin", "Paris", "It is Oslo"]
    rows = [{"city": city} for city in ("Berlin", "Rome", "Oslo", "Rome", "Berlin", "Paris")]
    found = suggested([run(text) for text in answers[:3]], [run(text) for text in answers[3:]], rows=rows)
    assert first(found) == {"type": "TextMatch", "contains_ignore_case": "{{city}}"}


def test_two_conditions_where_one_is_not_enough() -> None:
    act = ("act", {"n": 1})
    found = suggested(
        [run(f"well done {word}", act) for word in ("now", "today", "again")],
        [run("well done then"), run("well done later"), run("sorry now", act), run("sorry today", act)],
    )
    best = found.suggestions[0]
    assert (best.agrees, best.conditions) == (7, 2)
    assert {metric["type"] for metric in metrics(best)} >= {"ToolCheck"}


def test_one_of_several_texts() -> None:
    found = suggested(
        [run(text) for text in ("it was shipped x1", "we shipped x2 it", "it arrived x3", "x4 arrived here")],
        [run(text) for text in ("it was lost x5", "here it is lost x6", "we lost x7 it", "x8 is lost we think")],
    )
    assert first(found)["type"] in ("TextMatch", "Regex")


def test_the_run_that_would_tell_most() -> None:
    good, bad = [run("yes, Anna"), run("yes, Anna!")], [run("no, Ben"), run("no, Ben!")]
    found = suggested(good, bad, [run("yes, Anna?"), run("yes, Ben"), run("no, Ben?")])
    assert found.label_next == "run-5"
    assert "run-5" in {one.teaches for one in found.suggestions}


def test_leaving_a_run_out_tells_luck_from_a_rule() -> None:
    rule = suggested([run(f"total {n}") for n in range(6)], [run(f"sum {n}") for n in range(6)])
    assert rule.suggestions[0].left_out == 12
    chance = random.Random(3)
    words = [" ".join(chance.choice("abcdefgh") * 3 for _ in range(6)) for _ in range(12)]
    luck = suggested([run(text) for text in words[:6]], [run(text) for text in words[6:]])
    assert all(one.left_out is not None and one.left_out < 12 for one in luck.suggestions[:1])


def test_a_wrong_label_is_named() -> None:
    good = [run(f"{word} blue") for word in ("one", "two", "three", "four")]
    bad = [run(f"{word} red") for word in ("one", "two", "three", "four")]
    found = suggested([*good, run("five red")], [*bad, run("five red")])
    assert found.suggestions[0].agrees == 9
    assert len(found.suggestions[0].wrong) == 1


TEXTS = (
    "", "a", "A, b. C! D?\n\n- x\n* y\n1. z\n\n\n[p] <q> <<r>> **s** *t* `u` \"v\"\n| a |\n---\n# H\n",
    "ÄÖ ü\r\n\r\nß ж 漢 あ",
    "P.S. x\n  P.P.S y\n12:30 2024-01-02 $5 5 % #tag W123 a@b.co http://x.y\nSection 1\nSECTION 2", "a.b.c... d?! e",
)  # fmt: skip


def test_a_count_that_is_written_as_a_pattern_is_the_count() -> None:
    for what, pattern, flags in SHAPES:
        find = regex.compile(pattern, (regex.M if "m" in flags else 0) | (regex.I if "i" in flags else 0))
        say = counter(pattern, flags, what)
        for least, most in ((2, None), (None, 1), (1, 2)):
            checker = Checker(CriterionSpec("", "TextResponse", {"metrics": [say(least, most)[1]]}))
            for text in TEXTS:
                count = sum(1 for _ in find.finditer(text))
                holds = (least is None or count >= least) and (most is None or count <= most)
                assert checker.check(run(text)).outcome is (Outcome.PASSED if holds else Outcome.FAILED), (what, text)


LONG = ("a" * 30_000, "1" * 30_000, "* " * 15_000, "A. " * 9_000, "\n \n" * 9_000, "[" * 20_000, '"<*`' * 6_000)


def test_no_pattern_is_slow() -> None:
    """A search that takes a second is an error of the check. Suggestions count every match, with no limit."""
    for what, pattern, flags in SHAPES:
        counted = regex.compile(pattern, (regex.M if "m" in flags else 0) | (regex.I if "i" in flags else 0) | regex.V0)
        metric = counter(pattern, flags, what)(7, 7)[1]
        checker = Checker(CriterionSpec("", "TextResponse", {"metrics": [metric]}))
        for text in LONG:
            assert checker.check(run(text), explain=False).outcome is not Outcome.ERROR, what
            list(counted.finditer(text, timeout=2))  # TimeoutError: the pattern is slow


def test_a_bound_is_a_round_number_between_good_and_bad() -> None:
    def say(least: float | None, most: float | None) -> tuple[str, dict[str, Any]]:
        return f"{least}..{most}", {}

    values: list[float | None] = [12, 31, 34, 88, 93, 140, None]
    measure = Measure(values, say, 0.0)
    assert measure.fit(0b111000, 0b000111)[0].title == "50..None"
    assert measure.fit(0b000111, 0b111000)[0].title == "None..50"
    assert measure.fit(0b001100, 0b110011)[0].title == "32..90"


@pytest.mark.parametrize("text", ["{{x}} a", "a/b \\d [x", "ß ﬁ İ", "\x00 \u202e", "  "])
def test_odd_texts_do_no_harm(text: str) -> None:
    suggested([run(text + " one"), run(text + " two")], [run("three"), run("four " + text[:2])])


def test_where_nothing_tells_runs_apart_nothing_is_suggested() -> None:
    found = suggested([run(), run()], [run()], [run()])
    assert (found.suggestions, found.label_next) == ((), "")
    assert found.contradictions == (("run-0", "run-2"), ("run-1", "run-2"))
    same = suggested([run("one and the same")] * 2, [run("one and the same")] * 2, [run("another")])
    assert all(one.agrees == 2 for one in same.suggestions)


def test_random_labels_are_never_an_error() -> None:
    chance = random.Random(5)
    for _ in range(8):
        runs = [
            run(" ".join(chance.choice(("yes", "no", "12", "A-7", "{}", "x.")) for _ in range(chance.randrange(8))),
                *(((chance.choice(("a", "b"))), {"k": chance.choice((1, "x", None, [1], {"$any": True}))})
                  for _ in range(chance.randrange(3))))
            for _ in range(9)
        ]  # fmt: skip
        suggested(runs[:3], runs[3:6], runs[6:])


def test_labels_that_a_criterion_was_not_made_of_tell_a_rule_from_chance() -> None:
    words = ["parcel", "order", "shop", "basket", "red", "blue", "green", "late", "early", "north", "south", "tea"]
    chance = random.Random(8)
    texts = [" ".join(chance.sample(words, 5)) for _ in range(10)]
    rule = [Example(str(n), run(text), {}, "tea" in text.split()) for n, text in enumerate(texts)]
    found = check(Examples(rule))
    assert found is not None
    assert found.better
    assert (found.labels, found.usual) == (10, 6)
    # A criterion fits any labels, and its own leave-one-out says that it is right.
    coin = [Example(str(n), run(text), {}, n % 2 == 0) for n, text in enumerate(texts)]
    best = suggest(Examples(coin)).suggestions[0]
    assert best.left_out is not None
    assert best.left_out == 10
    found = check(Examples(coin))
    assert found is not None
    assert (found.better, found.usual) == (False, 5)
    words_of = plain(check_text(found))
    assert words_of.startswith("! No better than a guess: ")
    assert "always saying “good” would be right 5 times. More labels may help." in words_of
    assert check(Examples(coin[:4])) is None, "too few to tell"
    lone = plain(check_text(Check(4, 5, 4, mostly=True)))
    assert lone == "! It is too early to tell how good this is: only one run is labelled bad. Label a second bad run."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([("no", False), ("never", False)], "all labelled runs are bad.*label a good run, too.*--repeat 8 makes more"),
        ([("yes", None)], "no run is labelled.*--repeat 8 makes more runs"),
        ([("", True), ("", True)], "labelled good have no answer, no tool call and no state"),
    ],
)
def test_labels_that_nothing_can_be_made_of(given: list[tuple[str, bool | None]], said: str) -> None:
    with pytest.raises(AgentevalError, match=said):
        suggest(Examples([Example(str(n), run(text), {}, label) for n, (text, label) in enumerate(given)]))


def test_equal_runs_with_other_labels_are_named() -> None:
    found = suggested(
        [run("It was sent.", ms=5.0), run("Sent today.")], [run("It was sent.", ms=9.0), run("Who knows?")]
    )
    assert found.contradictions == (("run-0", "run-2"),)
    (said,) = [plain(one) for one in next_lines(found) if "labelled good" in plain(one)]
    assert said.endswith("Take one label back: agenteval label run-2 --remove")
