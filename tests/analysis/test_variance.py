"""The ledger: flaky tests and criteria, what might go into quarantine, and the judge's part of the variance."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from jsonschema import Draft202012Validator
from trend_made import DAY, DESK, NOON, SHOP, filled

from agenteval_tui.analysis.judge_variance import split_verdicts
from agenteval_tui.analysis.quarantine_gate import gating
from agenteval_tui.analysis.trends import TrendQuery
from agenteval_tui.analysis.variance import Part, VarianceComponent, ledger
from agenteval_tui.formats.documents.flaky import flaky_document
from agenteval_tui.formats.documents.registry import schema
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.views.flaky import flaky_view
from agenteval_tui.views.terminal import plain_text

NOW = NOON + 3_600_000
ALL = TrendQuery(None, NOW)


def test_all_variance_is_the_agents_where_the_judge_is_steady() -> None:
    found = split_verdicts([[True, True], [False, False], [True, True], [False, False]])
    assert found is not None
    assert (found.judge, found.judge_share) == (0.0, 0.0)
    # Of verdicts that are the outputs' own, the agent's part is the variance between outputs: 4/12.
    assert found.agent == pytest.approx(1 / 3)


def test_all_variance_is_the_judges_where_outputs_are_alike() -> None:
    found = split_verdicts([[True, False], [False, True], [True, False]])
    assert found is not None
    assert (found.agent, found.judge_share) == (0.0, 1.0)
    assert found.judge == pytest.approx(0.5)


def test_the_parts_are_those_of_the_textbook() -> None:
    # Searle et al., section 3.6, by hand: groups 1,1,0 / 0,0 / 1 -> SSW = 2/3 with 3 degrees, SSB = 5/6 with 2.
    found = split_verdicts([[True, True, False], [False, False], [True]])
    assert found is not None
    assert found.judge == pytest.approx(2 / 9)
    m0 = (6 - (9 + 4 + 1) / 6) / 2
    assert found.agent == pytest.approx((5 / 12 - 2 / 9) / m0)
    assert (found.outputs, found.verdicts, found.repeated) == (3, 6, 2)


def test_it_is_unknown_where_the_judge_spoke_once_or_of_one_output() -> None:
    assert split_verdicts([[True], [False], [True]]) is None
    assert split_verdicts([[True, False, True]]) is None
    assert split_verdicts([]) is None
    nothing = split_verdicts([[True, True], [True]])
    assert nothing is not None
    assert nothing.judge_share is None, "nothing varies: there is nothing to share"


def test_the_least_predictable_stand_first_with_their_criteria(tmp_path: Path) -> None:
    with filled(tmp_path / "h.db") as store:
        found = ledger(store, ALL, NOW)
        assert [(one.test_id, one.passed, one.n) for one in found.tests] == [
            ("orders", 49, 90), ("refunds", 60, 90), ("greeting", 87, 87),
        ]  # fmt: skip
        assert [one.test_id for one in found.flaky] == ["orders", "refunds"]
        assert found.tests[2].errors == 3
        refunds = found.tests[1]
        criteria = found.criteria_of(refunds)
        assert [(one.criterion, one.passed, one.whose) for one in criteria] == [
            ("right", 60, "agent"), ("polite", 90, "nobody"),
        ]  # fmt: skip
        assert refunds.whose == "agent", "no criterion of it asks anybody: what varies is the output"
        assert refunds.variance == pytest.approx(2 / 9 * 90 / 89)
        (document,) = flaky_document(found, [refunds], []).tests
        assert document.pass_hat_k["3"] == pytest.approx(60 * 59 * 58 / (90 * 89 * 88))
        assert [(one.test_id, one.criterion) for one in found.suggestions()] == [
            ("orders", "right"),
            ("refunds", "right"),
        ]
        # Of few runs nothing is suggested; what is in quarantine is not suggested again.
        day = ledger(store, TrendQuery(NOON - 1, NOW), NOW)
        assert [one.test_id for one in day.flaky] == ["refunds"]
        assert day.suggestions() == []
        quarantines.put(store, Quarantine(SHOP, "refunds", NOW + DAY, "right", at_ms=NOW)).result()
        assert [one.test_id for one in ledger(store, ALL, NOW).suggestions()] == ["orders"]


def test_runs_gate_without_what_is_in_quarantine(tmp_path: Path) -> None:
    with filled(tmp_path / "h.db", range(2)) as store:
        runs = store.runs_of_execution("EXECUTION-01")
        before = [run.status for run in runs]
        assert before.count("failed") == 4
        for held in (
            Quarantine(SHOP, "refunds", NOW + DAY, "right", at_ms=NOW),
            Quarantine(SHOP, "orders", NOW + DAY, at_ms=NOW),
            Quarantine(DESK, "greeting", NOW + DAY, "gone", at_ms=NOW),
        ):
            quarantines.put(store, held).result()
        found = gating(store, runs, quarantines.active(store, NOW))
        assert found.counts == {"passed": 6}
        assert found.pass_rate == 1.0
        assert {one.quarantine.test_id: (one.runs, one.not_passed) for one in found.left_out} == {
            "refunds": (3, 1), "orders": (3, 3), "greeting": (3, 0),
        }  # fmt: skip
        after = gating(store, runs, quarantines.active(store, NOW + DAY))
        assert ([run.status for run in after.runs], after.left_out) == (before, ())


def test_what_changed_with_the_agent_or_the_criterion_is_not_flaky(tmp_path: Path) -> None:
    def spec(text: str) -> CriterionSpec:
        return CriterionSpec("good", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": text}]})

    # (test, agent, text that the criterion wants, whether each run passed)
    ran = [
        ("regressed", "v1", "a", (True, True, True)), ("regressed", "v2", "a", (False, False, False)),
        ("fixed", "v1", "a", (False, False, False)), ("fixed", "v1", "b", (True, True, True)),
        ("flaky", "v1", "a", (True, False, True)), ("flaky", "v2", "a", (True, True, True)),
        ("both", "v1", "a", (True, False, False)), ("both", "v1", "b", (True, True, True)),
    ]  # fmt: skip
    runs = []
    for test, agent, text, passed in ran:
        one = spec(text)
        for good in passed:
            planned = PlannedRun(
                *(f"F-{len(runs)}", "F", len(runs), "/suites/f.suite.yaml", "Changed", test, test),
                prompt="please", agent=agent, criteria=(one.hash,), specs=(spec_to_dict(one),),
            )  # fmt: skip
            outcome = Outcome.PASSED if good else Outcome.FAILED
            result = CriterionResult("good", outcome, float(good), criterion_hash=one.hash)
            ended = RunEnded(planned.id, str(outcome), 1.0, NOON + len(runs), 1.0, 1, Transcript(()), (result,))
            runs.append((planned, ended))
    with Store.open(tmp_path / "h.db") as store:
        store.import_runs(ExecutionRecord("F", "f", "run", "f", ("/suites/f.suite.yaml",), NOON), iter(runs))
        found = ledger(store, ALL, NOW)
    by_id = {one.test_id: one for one in found.tests}
    assert sorted(one.test_id for one in found.flaky) == ["both", "flaky"]
    assert sorted(one.test_id for one in found.suggestions()) == ["both", "flaky"]
    assert (by_id["regressed"].passed, by_id["regressed"].n, by_id["regressed"].variance) == (3, 6, 0.0)
    assert by_id["regressed"].by_agent == (("v1", 3, 3), ("v2", 0, 3))
    assert by_id["fixed"].by_agent == ()
    assert {one.test_id: one.whose for one in found.tests} == {
        "regressed": "nobody", "fixed": "nobody", "flaky": "agent", "both": "agent",
    }  # fmt: skip
    assert not any(one.flaky for one in (*found.criteria_of(by_id["regressed"]), *found.criteria_of(by_id["fixed"])))


def stepping(store: Store, histories: dict[str, list[str]]) -> None:
    """Tests with the outcomes of their runs (P, F) by execution, all by one configuration and one criterion."""
    one = CriterionSpec("good", "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "a"}]})
    for number in range(max(map(len, histories.values()))):
        uid, runs = f"STEP-{number}", []
        for test, executions in histories.items():
            for letter in executions[number] if number < len(executions) else "":
                planned = PlannedRun(
                    *(f"{uid}-{len(runs)}", uid, len(runs), "/suites/s.suite.yaml", "Steps", test, test),
                    prompt="please", agent="a", agent_version="v", criteria=(one.hash,), specs=(spec_to_dict(one),),
                )  # fmt: skip
                outcome = Outcome.PASSED if letter == "P" else Outcome.FAILED
                result = CriterionResult("good", outcome, float(letter == "P"), criterion_hash=one.hash)
                at_ms = NOON + number * 10_000 + len(runs)
                ended = RunEnded(planned.id, str(outcome), 1.0, at_ms, 1.0, 1, Transcript(()), (result,))
                runs.append((planned, ended))
        record = ExecutionRecord(uid, uid, "run", "s", ("/suites/s.suite.yaml",), NOON + number * 10_000)
        store.import_runs(record, iter(runs))


HISTORIES = {
    "regressed": ["PPPPP", "FFFFF"],
    "fixed": ["FFFFF", "PPPPP"],
    "turns": ["PPPPP", "FFFFF", "PPPPP"],
    "flaky": ["PFPPF", "PPFPP"],
    "mixed": ["PPPPP", "PFFFF"],
    "was-flaky": ["PFPPFPPFPP", "FFFFFFFFFF"],
    "fixed-but-flaky": ["FFFFFFFFFF", "PPPFPPPPPP"],
}


def test_a_step_between_executions_is_neither_flaky_nor_a_reason_to_quarantine(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        stepping(store, HISTORIES)
        found = ledger(store, ALL, NOW)
    steps = {test.test_id: test.step.kind for test in found.tests if test.step is not None}
    assert steps == {
        "regressed": "regression", "fixed": "improvement", "turns": "changed", "mixed": "regression",
        "was-flaky": "regression", "fixed-but-flaky": "improvement",
    }  # fmt: skip
    assert {test.test_id for test in found.flaky} == {"flaky", "mixed", "was-flaky", "fixed-but-flaky"}
    assert {test.test_id for test in found.changed} == {"regressed", "turns", "fixed"}
    assert found.changed[0].test_id == "regressed"
    # A quarantine would hide what regressed, also where runs vary besides.
    assert {one.test_id for one in found.suggestions()} == {"flaky", "fixed-but-flaky"}
    for test in found.tests:
        (criterion,) = found.criteria_of(test)
        assert criterion.flaky is test.flaky
        assert (criterion.step is None) is (test.step is None)
        assert test.whose == ("agent" if test.flaky else "nobody"), "what steps is nobody's chance"
    regressed = next(test for test in found.tests if test.test_id == "regressed")
    assert regressed.variance == 0
    lines = plain_text(flaky_view(found, "all"))
    assert "regression between executions: 5 of 5 passed, then 0 of 5 (p = 0.0079)" in lines
    assert "improvement between executions: 0 of 5 passed, then 5 of 5 (p = 0.0079)" in lines
    assert "changed between executions: 5 of 5 passed, then 0 of 5, then 5 of 5 (p < 0.001)" in lines
    assert "also a regression between executions: 5 of 5 passed, then 1 of 5 (p = 0.048)" in lines
    document = flaky_document(found, found.tests, found.suggestions())
    Draft202012Validator(schema("flaky")).validate(msgspec.json.decode(msgspec.json.encode(document)))
    (told,) = (test for test in document.tests if test.test == "regressed")
    assert (told.flaky, told.step, told.step_counts) == (False, "regression", ((5, 5), (0, 5)))
    assert told.step_p_value == pytest.approx(2 / 252)
    assert told.by_configuration[0].executions == ((5, 5), (0, 5))


def test_a_step_with_the_configuration_is_told_beside_runs_that_vary(tmp_path: Path) -> None:
    steady, varying = Part("a", 10, 10, "v1", "c", 1, ((10, 10),)), Part("a", 3, 10, "v2", "c", 2, ((3, 10),))
    component = VarianceComponent("/s", "S", "t", "t", "", 0, "", "", 20, 13, 0, 0, parts=(steady, varying))
    assert component.flaky
    assert component.step is not None
    assert (component.step.kind, component.step.parts) == ("regression", ((10, 10), (3, 10)))
    assert not component.quarantinable
    assert not component.step_within


# A judge

JUDGED = CriterionSpec("good", "TextResponse", {"metrics": [{"type": "Judge", "criteria": "Is it good?", "votes": 3}]})


def judged(store: Store, votes: list[list[float]], *, keep: bool = True) -> None:
    """Runs of one test with a judge's votes on each."""
    spec = JUDGED
    checker = compile_criterion(spec)
    runs, kept = [], []
    for number, scores in enumerate(votes):
        planned = PlannedRun(
            *(f"J-{number}", "J", number, "/suites/j.suite.yaml", "Judged", "poem", "Poem"),
            prompt="please", criteria=(spec.hash,), specs=(spec_to_dict(spec),),
        )  # fmt: skip
        transcript = Transcript((Message("assistant", f"poem {number}"),), final_output=f"poem {number}")
        passed = sorted(scores)[1] >= 0.7
        outcome = Outcome.PASSED if passed else Outcome.FAILED
        result = CriterionResult("good", outcome, float(passed), criterion_hash=spec.hash)
        runs.append((planned, RunEnded(planned.id, str(outcome), 1.0, NOON + number, 1.0, 1, transcript, (result,))))
        requests = checker.requests(transcript, {}, {})
        assert len(requests) == 3
        kept.append(
            [
                StoredReply(request, "judge-a", Reply(json.dumps({"score": score, "reasoning": ""}), at_ms=1 + number))
                for request, score in zip(requests, scores, strict=True)
            ]
        )
    store.import_runs(ExecutionRecord("J", "j", "run", "j", ("/suites/j.suite.yaml",), NOON), iter(runs))
    for (planned, _), replies in zip(runs, kept, strict=True):
        if keep:
            store.keep_replies(planned.id, replies).result()


@pytest.mark.parametrize(
    ("votes", "whose"),
    [
        ([[0.9, 0.8, 0.9], [0.1, 0.2, 0.1], [0.9, 0.9, 0.9], [0.1, 0.1, 0.1]], "agent"),
        ([[0.9, 0.1, 0.9], [0.1, 0.9, 0.1], [0.9, 0.1, 0.9], [0.1, 0.1, 0.9]], "judge"),
    ],
)
def test_votes_say_whose_doing_it_is(tmp_path: Path, votes: list[list[float]], whose: str) -> None:
    with Store.open(tmp_path / "h.db") as store:
        judged(store, votes)
        found = ledger(store, ALL, NOW)
        (test,) = found.flaky
        assert test.whose == whose
        (one,) = found.criteria_of(test)
        assert one.split is not None
        assert (one.split.outputs, one.split.verdicts) == (4, 12)
        Draft202012Validator(schema("flaky")).validate(
            msgspec.json.decode(msgspec.json.encode(flaky_document(found, [test], [])))
        )


def test_without_replies_it_is_unknown(tmp_path: Path) -> None:
    with Store.open(tmp_path / "h.db") as store:
        judged(store, [[0.9, 0.9, 0.9], [0.1, 0.1, 0.1]], keep=False)
        (test,) = ledger(store, ALL, NOW).flaky
        assert test.whose == "unknown"
        assert [one.split for one in ledger(store, ALL, NOW).criteria_of(test)] == [None]
