"""Gates of tests: what counts, when a gate is reached, when n is too small, whose gate it is."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval_tui.analysis.statistics import clustered_interval, rate_over_rows, wilson
from agenteval_tui.analysis.test_gates import GateVerdict, TestGates, judge_gates
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.confidence_sequence import confidence_sequence
from agenteval_tui.runs.plan.gates import StoredGates, gate_of, stop_threshold
from agenteval_tui.suites.model import Gate, Stop, Suite, Test
from agenteval_tui.views.gates import certainty_text, gate_text, verdict_text

SIGNS = {"+": "passed", "x": "failed", "!": "error", "?": "needs_review", "-": "cancelled", ".": "skipped"}


def run(test: str, sign: str, number: int, **given: Any) -> RunRow:
    values: dict[str, Any] = dict.fromkeys(RunRow.__struct_fields__[: RunRow.__struct_fields__.index("tags")], None)
    values |= {
        "rowid": number, "id": f"{test}-{given.get('variation', '')}-{number}", "execution_id": "E", "position": number,
        "suite_key": "k", "suite_name": "S", "test_id": test, "test_name": test, "variation": "", "row": 0,
        "repetition": number, "status": SIGNS[sign],
    }  # fmt: skip
    return RunRow(**{**values, **given})


def runs(test: str, signs: str, **given: Any) -> list[RunRow]:
    """A run a sign; rows of a dataset are separated by a space."""
    rows = signs.split(" ")
    keyed = [(row, sign) for row, of_row in enumerate(rows, 1) for sign in of_row]
    return [run(test, sign, at, row=row if len(rows) > 1 else 0, **given) for at, (row, sign) in enumerate(keyed, 1)]


def judged(signs: str, pass_rate: float) -> tuple[GateVerdict, TestGates]:
    gates = judge_gates(StoredGates({"gates": {"k": {"t": pass_rate}}}), runs("t", signs))
    return gates.verdicts[0], gates


def test_a_rate_is_not_rounded_to_the_gate_that_it_misses() -> None:
    near, _ = judged("+" * 1_999 + "x" * 501, 0.8)
    assert verdict_text(near).startswith("gate 80 % missed: 1,999 of 2,500 runs passed (79.96 %, ")
    assert gate_text(0.985) == "gate 98.5 %"
    assert gate_text(0.9875) == "gate 98.75 %"


@pytest.mark.parametrize(
    ("signs", "pass_rate", "outcome", "fails", "excused"),
    [
        ("+++xx", 0.6, "reached", False, 2),
        ("+++xx", 0.61, "missed", True, 0),
        ("+++xx" * 3, 0.6, "reached", False, 6),  # 9/15 is 0.6 whatever a float makes of it
        ("+++!!", 1.0, "reached", False, 0),  # an error is not a verdict
        ("+x!", 0.5, "reached", False, 1),
        ("+++x?", 0.75, "reached", False, 2),  # what waits for a person does not count, and does not fail it either
        ("!!", 0.5, "undecided", False, 0),  # the exit code says 3, for the errors
        ("??", 0.5, "undecided", True, 0),
        ("--", 0.5, "undecided", False, 0),
        ("xx", 0.0, "reached", False, 2),
        ("+ x + +", 0.75, "reached", False, 1),  # rows of a dataset are measured together
    ],
)
def test_a_gate_is_reached_by_the_share_of_the_decided_runs(
    signs: str, pass_rate: float, outcome: str, fails: bool, excused: int
) -> None:
    verdict, gates = judged(signs, pass_rate)
    assert (verdict.outcome, verdict.fails, len(gates.excused)) == (outcome, fails, excused)
    assert gates.fails is fails
    if excused:
        assert gates.without_excused({"failed": 6, "passed": 9}, ())["passed"] == 9


def test_each_variation_reaches_it_by_itself() -> None:
    every = [*runs("t", "++++"), *runs("t", "xxxx", variation="terse")]
    gates = judge_gates(StoredGates({"fail_under_test": 0.5}), every)
    assert [(one.variation, one.outcome) for one in gates.verdicts] == [("", "reached"), ("terse", "missed")]
    assert gates.missed_by(every[-1]) is gates.verdicts[1]
    assert gates.missed_by(every[0]) is None


def test_n_is_too_small_while_the_interval_holds_the_gate() -> None:
    few, _ = judged("+++xx", 0.8)
    assert few.interval == wilson(3, 5)
    assert not few.sure
    assert few.needed == 16
    assert verdict_text(few) == (
        "gate 80 % missed: 3 of 5 runs passed (60 %, 95 % interval 23 % to 88 %); "
        "5 runs are too few to decide (at this rate it takes 16)"
    )
    # The number is right: with as many runs at this rate the interval is on one side, with one run less it is not.
    for pass_rate, passed, n in ((0.8, 3, 5), (0.5, 3, 4), (0.9, 1, 2)):
        verdict, _ = judged("+" * passed + "x" * (n - passed), pass_rate)
        assert verdict.needed is not None
        for many, holds in ((verdict.needed, False), (verdict.needed - 1, True)):
            # Wilson's interval of a share that n runs can't have exactly: by the score test that it is made of.
            distance = abs(passed / n - pass_rate) / (pass_rate * (1 - pass_rate) / many) ** 0.5
            assert (distance < 1.959963984540054) is holds
    at_the_gate, _ = judged("+++xx", 0.6)
    assert (at_the_gate.sure, at_the_gate.needed) == (False, None), "at the gate itself no number of runs decides"
    assert certainty_text(at_the_gate) == "5 runs are too few to decide"
    assert certainty_text(judged("+", 0.5)[0]) == "1 run is too few to decide (at this rate it takes 4)"
    for signs, pass_rate in (("+" * 16, 0.8), ("x" * 9, 0.8), ("+++x", 1.0), ("++++", 1.0)):
        assert judged(signs, pass_rate)[0].sure, (signs, pass_rate)


def test_the_interval_is_that_of_how_the_runs_came_to_be() -> None:
    stopped, _ = judged("+++x....", 0.5)
    assert stopped.interval == confidence_sequence(3, 4), "the answers decided when to stop"
    rows, _ = judged("+ x + + +", 0.5)
    assert rows.interval == wilson(4, 5), "rows without repetitions are drawn one by one"
    repeated, _ = judged("++ xx ++ +x", 0.5)
    assert repeated.interval == pytest.approx(clustered_interval([(2, 2), (0, 2), (2, 2), (1, 2)]))
    assert rate_over_rows([(2, 2), (2, 2), (0, 0)]) == wilson(2, 2), "rows that are all alike: as many as they are"
    assert rate_over_rows([]) == (0.0, 1.0)


def test_the_gate_of_a_test_comes_before_its_suites_and_the_options() -> None:
    own, bare = Test.model_construct(id="own", gate=Gate(pass_rate=0.6)), Test.model_construct(id="bare", gate=None)
    suite = Suite.model_construct(gate=Gate(pass_rate=0.9))
    assert [gate_of(suite, one, 0.5) for one in (own, bare)] == [
        StoredGates({"gates": {"k": {"": 0.9, "own": 0.6}}, "fail_under_test": 0.5}).of("k", name)
        for name in ("own", "bare")
    ]
    assert gate_of(Suite.model_construct(gate=None), bare, 0.5).origin == "option"  # type: ignore[union-attr]
    assert gate_of(Suite.model_construct(gate=None), bare) is None
    kept = StoredGates({"gates": {"k": {"own": 0.6}}, "fail_under_test": 0.5})
    assert [(kept.of("k", name).pass_rate, kept.of("k", name).origin) for name in ("own", "bare")] == [  # type: ignore[union-attr]
        (0.6, "test"), (0.5, "option"),
    ]  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"gates": 3}, {"gates": {"k": 1}}, {"gates": {"k": {"t": "x", "": True}}},
                                     {"gates": {"k": {"t": 7}}, "fail_under_test": "a lot"}])  # fmt: skip
def test_gates_of_a_foreign_history_that_can_not_be_read_are_none(options: dict[str, Any]) -> None:
    assert StoredGates(options).of("k", "t") is None
    assert judge_gates(StoredGates(options), runs("t", "x")).verdicts == ()


def test_early_stopping_decides_about_the_gate_unless_it_says_another_threshold() -> None:
    gate = StoredGates({"fail_under_test": 0.6}).of("k", "t")
    assert stop_threshold(Stop(), gate) == 0.6
    assert stop_threshold(Stop(threshold=0.7), gate) == 0.7
    assert stop_threshold(Stop(), None) == 0.8
    assert stop_threshold(Stop(), StoredGates({"fail_under_test": 1.0}).of("k", "t")) == 0.8
