"""Who changed a verdict: old and new output under old and new criteria."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import attributed
import pytest
from compared import (
    NEW,
    NICE,
    NO,
    NOON,
    OLD,
    POLITE,
    YES,
    Planned,
    answered,
    keep,
    text,
    two_executions,
)  # fmt: skip
from msgspec.structs import replace

from agenteval_tui.analysis.attribution import Reason, ReasonCode, attribute, attribute_pair
from agenteval_tui.analysis.divergence import first_change
from agenteval_tui.analysis.regrade import CriteriaSource, regrade, save_verdicts, threshold_of
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.store import Store
from agenteval_tui.views.attribution import reason_text
from agenteval_tui.views.divergence import step_change_text
from tests.sweeps import share


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "h.db") as opened:
        yield opened


def who(store: Store, test: str, number: int = 1) -> tuple[str, str]:
    flip = attribute_pair(store, f"OLD-{test}-0-{number}", f"NEW-{test}-0-{number}")
    return flip.test.who, reason_text(flip.test.reason)


def test_agent_criterion_both_and_judge_noise(store: Store) -> None:
    two_executions(store)
    assert who(store, "refund-policy")[0] == "agent"
    said, reason = who(store, "customers-germany", 2)
    assert said == "criterion"
    assert "with it, the old output also passes" in reason
    assert who(store, "both-ways") == ("both", "the criterion and the output changed; each change alone fails")
    assert who(store, "greeting")[0] == "judge noise"
    found = attribute(store, [(f"OLD-refund-policy-0-{n}", f"NEW-refund-policy-0-{n}") for n in (1, 3, 5)])
    assert found is not None
    assert (found.who, len(found.flips)) == ("agent", 3)
    assert step_change_text(found.divergence) == "step 1: it called search_docs, now it answers at once"
    assert set(found.by_criterion) == {"cites the policy", "looks it up"}
    assert attribute(store, [("OLD-gone-0-1", "nowhere")]) is None
    # Errors are not verdicts.
    assert who(store, "broken") == ("unknown", "a run ended as error, without a verdict")


def test_only_together_and_what_can_not_be_judged_crosswise(store: Store) -> None:
    judge = {"type": "Judge", "criteria": "Is it kind?", "scale": "pass_fail"}
    asked_else = CriterionSpec(POLITE.name, "TextResponse", {"metrics": [judge]})
    bad = CriterionSpec("answer", "TextResponse", {"metrics": [{"type": "Regex", "pattern": "("}]})
    keep(store, OLD, [
        Planned("together", [answered("a")], [text("a", "c")]),
        Planned("asked", [NICE], [POLITE], [YES]),
        Planned("new-criterion", [answered("a")], [text("a")]),
        Planned("threshold", [answered("a")], [text("a")]),
        Planned("values", [answered("a")], [text("{{wanted}}")], variables=(("wanted", "a"),)),
        Planned("broken-before", [answered("a")], [bad]),
    ])  # fmt: skip
    keep(store, NEW, [
        Planned("together", [answered("c")], [text("a")]),
        Planned("asked", [answered("Go away.")], [asked_else], [NO]),
        Planned("new-criterion", [answered("a")], [text("a"), text("z", name="more")]),
        Planned("threshold", [answered("a")], [text("a")]),
        Planned("values", [answered("a")], [text("{{wanted}}")], variables=(("wanted", "b"),)),
        Planned("broken-before", [answered("a")], [text("z")]),
    ], at_ms=NOON + 5)  # fmt: skip
    assert who(store, "together") == ("both", "the criterion and the output changed; it fails only with both changes")
    said, reason = who(store, "asked")
    assert said == "unknown"
    assert "has no verdict" in reason
    assert who(store, "new-criterion") == ("criterion", "criterion 'more' is new and fails")
    assert who(store, "threshold") == ("unknown", "both ended the same way")
    assert who(store, "values")[0] == "criterion", "the same output: other expected values of the row"
    assert who(store, "broken-before")[0] == "unknown"


def test_every_change_of_a_test_with_and_without_another_answer(store: Store) -> None:
    """Up to two things of a test changed at once, forwards and back: what each alone gives decides who it was. The
    table is a reading of the rules without our code (tests/independent/attributed.py)."""
    cases: dict[tuple[object, ...], tuple[str, tuple[str, str], tuple[attributed.Rules, attributed.Rules]]] = {}
    for name, outputs, sides, changed in attributed.every_change(2):
        expected = attributed.expected_by_rules(outputs, sides)
        cases.setdefault((changed, sides, outputs[0] == outputs[1], expected), (name, outputs, sides))
    cases = dict(share(cases.items(), lambda case: case[0][3]))
    for side, (execution, at_ms) in enumerate(((OLD, NOON), (NEW, NOON + 5_000))):
        planned = [attributed.planned(name, outputs[side], sides[side]) for name, outputs, sides in cases.values()]
        keep(store, execution, planned, at_ms=at_ms)
    seen = {"agent": 0, "criterion": 0, "both": 0}
    for (changed, _, _, expected), (name, outputs, sides) in cases.items():
        found = attribute_pair(store, f"OLD-{name}-0-1", f"NEW-{name}-0-1").test
        assert found.who == expected, (changed, outputs, found.reason, sides)
        assert reason_text(found.reason)
        seen[expected] += 1
    assert min(seen.values()) > 10


RED = text("red", name="red")
WARNING = text("blue", name="blue", severity="warning")


@pytest.mark.parametrize(
    ("before", "after", "who_it_was", "reason"),
    [
        (  # a new criterion and a changed answer, which fail only together
            (["red blue"], [RED], None), (["red"], [RED, text("blue", name="blue")], None),
            "both", "criterion 'blue' (added) changed, and the output; it fails only with both changes",
        ),
        (  # the threshold was raised and the score has fallen, neither far enough alone
            (["red blue"], [RED, WARNING], 0.4), (["red"], [RED, WARNING], 0.8),
            "both", "the test's threshold (0.4 to 0.8) changed, and the output; it fails only with both changes",
        ),
        (  # the same, where the score fell below the old threshold, too
            (["red blue"], [RED, WARNING], 0.6), (["red"], [RED, WARNING], 0.8),
            "agent", "the output changed: without the change of the test's threshold (0.6 to 0.8), the new one also"
            " fails; with it, the old output still passed",
        ),
        (
            (["red"], [RED, WARNING], 0.4), (["red"], [RED, WARNING], 0.8),
            "criterion", "the test's threshold (0.4 to 0.8) changed: with that, the old output also fails; without it,"
            " the new output passed",
        ),
        (
            (["red blue"], [RED, WARNING], None), (["red"], [RED, replace(WARNING, severity="error")], None),
            "both",
            "the severity of 'blue' (warning to error) changed, and the output; it fails only with both changes",
        ),
        (
            (["red"], [RED, WARNING], 0.5), (["red"], [RED, replace(WARNING, weight=3.0)], 0.5),
            "criterion", "the weight of 'blue' (1 to 3) changed: with that, the old output also fails; without it, the"
            " new output passed",
        ),
        (
            (["red"], [RED], None), (["red"], [replace(RED, negate=True)], None),
            "criterion", "the criterion changed: with it, the old output also fails; with the old criterion, the new"
            " output passed",
        ),
        (  # a weight says nothing where no test has a threshold
            (["red"], [RED], None), (["blue"], [replace(RED, weight=3.0)], None),
            "agent", "the criterion is the same, the output changed",
        ),
        (  # what was removed did not fail: the answer did
            (["red"], [RED, text("r", name="r")], None), (["blue"], [RED], None),
            "agent", "the output changed: without the change of criterion 'r' (removed), the new one also fails; with"
            " it, the old output still passed",
        ),
    ],
)  # fmt: skip
def test_what_changed_of_a_test_is_named(
    store: Store,
    before: tuple[list[str], list[CriterionSpec], float | None],
    after: tuple[list[str], list[CriterionSpec], float | None],
    who_it_was: str,
    reason: str,
) -> None:
    for execution, (said, specs, threshold), at_ms in ((OLD, before, NOON), (NEW, after, NOON + 5)):
        keep(store, execution, [Planned("t", list(map(answered, said)), specs, threshold=threshold)], at_ms=at_ms)
    assert who(store, "t") == (who_it_was, reason)


def test_the_same_answer_scored_otherwise_by_a_judge_is_noise_whatever_the_threshold_is(store: Store) -> None:
    judged = replace(POLITE, severity="warning")
    keep(store, OLD, [Planned("t", [NICE], [judged], [YES], threshold=0.5)])
    keep(store, NEW, [Planned("t", [NICE], [judged], [NO], threshold=0.5)], at_ms=NOON + 5)
    assert who(store, "t")[0] == "judge noise"


def test_a_threshold_counts_as_it_was_when_the_run_was_graded(store: Store) -> None:
    keep(store, OLD, [Planned("t", [answered("red blue")], [RED, WARNING], threshold=0.4)])
    keep(store, NEW, [Planned("t", [answered("red")], [RED, WARNING], threshold=0.4)], at_ms=NOON + 5)
    rules = CriteriaSource((RED, WARNING), 0.8)
    execution = store.execution(NEW)
    graded = regrade(store, [store.run("NEW-t-0-1")], lambda _: rules)
    again = save_verdicts(store, execution, graded, "graded again")
    (run,) = store.runs_of_execution(again)
    assert run.status == "failed"
    found = attribute_pair(store, "OLD-t-0-1", run.id).test
    assert (found.who, found.reason.code) == ("both", "only_together")
    assert threshold_of(store, run) == 0.8


def test_a_judge_that_says_both_of_one_answer_is_noise(store: Store) -> None:
    votes = CriterionSpec(
        "polite", "TextResponse", {"metrics": [{"type": "Judge", "criteria": "?", "scale": "pass_fail"}]}
    )
    keep(store, OLD, [Planned("t", [NICE], [votes], [YES]), Planned("u", [NICE], [votes], [YES])])
    keep(store, NEW, [
        Planned("t", [answered("Hm.")], [votes], [NO]), Planned("u", [answered("Hm.")], [votes], [NO]),
    ], at_ms=NOON + 5)  # fmt: skip
    assert who(store, "t") == ("agent", "the criterion is the same, the output changed")
    # Somebody asks again later, and the judge thinks otherwise.
    (first,) = store.replies("NEW-u-0-1")
    again = replace(first, reply=replace(first.reply, raw=YES, at_ms=first.reply.at_ms + 1_000))
    store.keep_replies("NEW-u-0-1", [again]).result()
    assert who(store, "u") == ("judge noise", "of 2 judge replies about the new output, 1 said passed")


def test_the_first_divergence_in_words() -> None:
    one = answered("x", ("get_order", {"id": "#W1"}))
    assert step_change_text(first_change(one, one)) == ""
    other = answered("x", ("get_order", {"id": "#W2"}))
    assert (
        step_change_text(first_change(one, other))
        == 'step 1: it called get_order with id="#W1", now it calls get_order with id="#W2"'
    )
    longer = answered("x", ("get_order", {"id": "#W1"}), ("refund", {}))
    assert step_change_text(first_change(one, longer)) == "step 2: it answered at once, now it calls refund"


def test_each_code_has_its_sentence() -> None:
    inner = Reason("score_moved")
    fields = {
        "by": {"polite": "agent"}, "output": "old", "result": CriterionResult("c", Outcome.SKIPPED, None),
        "changed": "row", "now": "failed", "times": 3, "passed": 1, "status": "error", "criterion": "polite", "more": 2,
        "reason": inner, "number": 2, "pairs": 3, "others": {"both": 1},
    }  # fmt: skip
    said = [reason_text(Reason(code, fields)) for code in get_args(ReasonCode)]
    assert len(set(said)) == len(said)
    assert not any("{" in one and "polite" not in one for one in said)
    agree = reason_text(Reason("criteria_agree", {"criterion": "polite", "more": 1, "reason": inner}))
    assert agree == "polite and 1 more: the score crossed the test's threshold"
    differ = reason_text(Reason("criteria_differ", {"by": {"polite": "agent", "kind": "both"}}))
    assert differ == "polite: agent, kind: both"
