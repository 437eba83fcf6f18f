"""The prototype class State: values, changes, near misses, edits, causes; what could not be read is not checked."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.grading.causes import cause_of
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.config.completion import complete_config, hover_config
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.extractors.state import change_between
from agenteval_tui.grading.metrics.matchers import same_json
from agenteval_tui.grading.observed_tools import AgentFacts
from agenteval_tui.grading.relax.suggest import relaxations
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.sentences import criterion_sentence
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.state import ProbeState, Reading, ReadingProblem, unread, value_text

ROWS = [{"id": "W1", "status": "cancelled"}, {"id": "W2", "status": "pending"}]
RUN = Transcript(
    state=(
        ProbeState("order", Reading("pending"), Reading("cancelled")),
        ProbeState("orders", Reading([{"id": "W1", "status": "pending"}, ROWS[1]]), Reading(ROWS)),
        ProbeState("mails", Reading({}), Reading({"out/1.eml": "To: Ann"})),
        ProbeState("gone", Reading("x"), unread(ReadingProblem.NO_FILE, file="x")),
    )
)


def checked(transcript: Transcript = RUN, *, negate: bool = False, **config: Any) -> CriterionResult:
    return compile_criterion(CriterionSpec("c", "State", config, negate=negate)).check(transcript)


def text_match(**config: Any) -> list[dict[str, Any]]:
    return [{"type": "TextMatch", **config}]


def test_values_before_and_after() -> None:
    assert checked(probe="order", metrics=text_match(equals="cancelled")).outcome is Outcome.PASSED
    assert checked(probe="order", of="before", metrics=text_match(equals="pending")).outcome is Outcome.PASSED
    assert checked(probe="order", of="before", metrics=text_match(equals="cancelled")).outcome is Outcome.FAILED
    rows = [{"type": "Json", "equals": ROWS}]
    assert checked(probe="orders", metrics=rows).outcome is Outcome.PASSED
    assert checked(probe="orders", metrics=text_match(contains='"status":"cancelled"')).outcome is Outcome.PASSED


def test_a_miss_says_what_is_near_and_where() -> None:
    result = checked(probe="order", metrics=text_match(equals="Cancelled"))
    (line,) = result.metrics[0].evidence
    (near,) = line.near
    assert (near.kind, near.index, near.start, near.end, near.path) == ("state", 0, 0, 9, "after")
    assert "ignoring case" in criterion_sentence(result)


def test_a_place_in_json_is_one_of_what_is_shown() -> None:
    result = checked(probe="orders", metrics=[{"type": "Json", "equals": [ROWS[0], {**ROWS[1], "status": "open"}]}])
    span = result.metrics[0].evidence[-1].spans[0]
    assert value_text(ROWS)[span.start : span.end] == '"pending"'


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize("of", ["after", "change"])
def test_what_was_not_read_is_not_checked(of: str, negate: bool) -> None:
    result = checked(probe="gone", of=of, metrics=text_match(not_contains_any=["y"]), negate=negate)
    assert result.outcome is Outcome.ERROR
    assert 'the probe "gone" could not be read after the run: there is no file x' in criterion_sentence(result)


@pytest.mark.parametrize("negate", [False, True])
def test_a_run_without_state_is_not_checked(negate: bool) -> None:
    result = checked(Transcript(final_output="cancelled"), probe="order", metrics=text_match(equals="x"), negate=negate)
    assert result.outcome is Outcome.ERROR
    assert criterion_sentence(result) == 'no state was recorded with this run, so the probe "order" can\'t be checked'


def test_a_probe_that_the_run_does_not_have_names_the_nearest() -> None:
    result = checked(probe="mail", metrics=text_match(equals="x"))
    assert criterion_sentence(result) == 'no probe "mail" was read in this run; did you mean "mails"?'
    assert result.outcome is Outcome.ERROR


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("a", "a", {}),
        ("a", "b", {"before": "a", "after": "b"}),
        (None, "b", {"before": None, "after": "b"}),
        (1, 1.0, {}),
        (1, True, {"before": 1, "after": True}),
        ({"a": 1}, {"a": 1.0}, {}),
        ({"a": 1}, {"b": 2}, {"added": {"b": 2}, "removed": {"a": 1}}),
        ({"a": 1, "b": 2}, {"a": 3, "b": 2}, {"changed": {"a": {"before": 1, "after": 3}}}),
        ([1, 2, 2], [2, 1, 3], {"added": [3], "removed": [2]}),
        ([1, 2], [2, 1], {"before": [1, 2], "after": [2, 1]}),
        ([{"a": 1}], [{"a": 1.0}, {"a": 1}], {"added": [{"a": 1}]}),
        ('{"a": 1}', '{"a": 2}', {"changed": {"a": {"before": 1, "after": 2}}}),
        ('{"a": 1}', "{broken", {"before": '{"a": 1}', "after": "{broken"}),
        ([], {}, {"before": [], "after": {}}),
    ],
)
def test_changes(before: Any, after: Any, change: dict[str, Any]) -> None:
    assert change_between(before, after) == change


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0]) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, _JSON)
def test_a_change_is_empty_exactly_where_nothing_changed(before: Any, after: Any) -> None:
    assert (change_between(before, after) == {}) == same_json(before, after)


def test_changes_are_graded() -> None:
    mails = {"probe": "mails", "of": "change"}
    assert checked(**mails, metrics=[{"type": "Json", "equals": {}}]).outcome is Outcome.FAILED
    assert checked(**mails, metrics=[{"type": "Json", "required_keys": ["added"]}]).outcome is Outcome.PASSED
    same = Transcript(state=(ProbeState("mails", Reading({"a": "b"}), Reading({"a": "b"})),))
    assert checked(same, **mails, metrics=[{"type": "Json", "equals": {}}]).outcome is Outcome.PASSED


def test_edits_that_make_it_pass() -> None:
    spec = CriterionSpec("c", "State", {"probe": "order", "metrics": text_match(equals="Cancelled")})
    found = relaxations(spec, RUN)
    assert found
    for one in found:
        again = CriterionSpec("c", "State", one.new_text)
        assert compile_criterion(again).check(RUN).outcome is Outcome.PASSED
    before = {"probe": "order", "of": "before", "metrics": text_match(equals="cancelled")}
    titles = [one.title for one in relaxations(CriterionSpec("c", "State", before), RUN)]
    assert "look at the value after the run" in titles


def test_causes_are_told_apart_by_the_probe_that_was_not_read() -> None:
    two = [checked(probe=name, metrics=text_match(equals="x")) for name in ("gone", "order")]
    assert len({cause_of(one).signature for one in two}) == 2


def test_the_editor_offers_probes_moments_and_words() -> None:
    text = '{"probe": "'
    facts = AgentFacts(probe_names=("order", "mails"))
    assert [one.label for one in complete_config(text, len(text), "State", facts)][:2] == ["order", "mails"]
    text = '{"probe": "order", "of": "'
    assert {one.label for one in complete_config(text, len(text), "State", facts)} >= {"after", "before", "change"}
    hover = hover_config('{"probe": "order"}', 3, "State")
    assert hover is not None
    assert "probe in `state`" in hover.doc
    messages = [one.message for one in diagnose('{"prob": "order", "metrics": [{"type": "Json"}]}', "State")]
    assert any("prob" in one for one in messages)
