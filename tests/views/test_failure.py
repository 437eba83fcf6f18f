"""Why a test fails, in short."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import replace

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.history.records import RunRow
from agenteval_tui.views.failure import (
    Failure,
    Failures,
    Miss,
    clearest,
    clearest_of,
    failures,
    first_miss,
    reasons_text,
)


def result(name: str, *lines: Evidence, severity: str = "error", negate: bool = False) -> CriterionResult:
    metric = MetricResult("m", "TextMatch", Outcome.FAILED, 0.0, evidence=lines)
    return CriterionResult(name, Outcome.FAILED, 0.0, severity, negate=negate, metrics=(metric,))


ORDER = Evidence(
    "tools[0].arguments", False, expected={"order_id": '"#W1"'}, found={"order_id": "W1"}, code=Code.DIFFERS,
    fields={"tool": "get_order", "call": 0, "arguments": [
        {"is": "differs", "argument": "order_id", "path": "order_id", "expected": '"#W1"', "found": "W1"}]},
)  # fmt: skip
TEXT = Evidence(
    "contains", False, expected="5000", found="5.000", code=Code.MISSING,
    fields={"side": "contains", "near": {"is": "form", "text": "5.000", "line": 4, "steps": ["separators"]}},
)  # fmt: skip
ABSENT = Evidence("contains", False, expected="14 days", code=Code.MISSING, fields={"side": "contains"})


def run(id: str, status: str, execution: str, why: str = "") -> RunRow:
    empty: dict[str, Any] = dict.fromkeys(RunRow.__struct_fields__, "")
    return RunRow(
        **cast("dict[str, Any]", {**empty, "id": id, "status": status, "execution_id": execution, "why": why})
    )


def test_what_was_expected_stands_beside_what_came() -> None:
    assert first_miss([result("asks", ORDER)]) == Miss("asks", "get_order order_id", '"#W1"', '"W1"')
    assert first_miss([result("says", TEXT)]) == Miss(
        "says", "", '"5000"', '"5.000"', note="would match without the separators in numbers", at=2
    )
    assert first_miss([result("says", ABSENT)]) == Miss("says", sentence='"14 days" is not in the text')
    passed = CriterionResult("fine", Outcome.PASSED, 1.0)
    assert first_miss([passed]) is None
    decisive = first_miss([result("warns", ORDER, severity="warning"), passed, result("says", TEXT)])
    assert decisive is not None
    assert decisive.criterion == "says", "what decided comes before a warning"
    value = Evidence(
        "equals", False, code=Code.DIFFERS,
        fields={"path": ["order"], "value": {"id": 2, "lines": [{"n": 1}]}, "wanted": {"id": 2, "lines": [{"n": 3}]}},
    )  # fmt: skip
    assert first_miss([result("counts", value)]) == Miss("counts", "order.lines[0].n", "3", "1"), (
        "the part that differs"
    )
    long = "a" * 500
    text = Evidence(
        "equals", False, expected=f"{long}b\n", found=f"{long}c", code=Code.DIFFERS, fields={"side": "equals"}
    )
    assert first_miss([result("says", text)]) == Miss("says", "", f'…{"a" * 60}b⏎"', f'…{"a" * 60}c"', at=61), (
        "where it differs"
    )
    turned = first_miss([result("must not", TEXT, negate=True)])
    assert turned is not None
    assert turned.sentence
    assert not turned.expected, "of a check that must fail nothing was expected"


def test_what_is_missing_or_too_much_stands_beside_nothing() -> None:
    def missed(**argument: Any) -> Miss | None:
        fields = {"tool": "get_order", "call": 0, "arguments": [{"argument": "id", "path": "id", **argument}]}
        return first_miss([result("asks", Evidence("tools[0].arguments", False, code=Code.DIFFERS, fields=fields))])

    assert missed(**{"is": "missing", "expected": '"#W1"', "wanted": "#W1"}) == Miss(
        "asks", "get_order id", '"#W1"', "nothing"
    )
    assert missed(**{"is": "extra", "found": True}) == Miss("asks", "get_order id", "nothing", "true")
    renamed = {"is": "missing", "expected": '"#W1"', "wanted": "#W1", "elsewhere": "order", "found": "#W1"}
    assert missed(**renamed) == Miss("asks", "get_order id", '"#W1"', "nothing", note='perhaps it is order = "#W1"')


def test_values_that_look_equal_are_told_apart_by_the_note() -> None:
    assert Miss("c", "", '"a b"', '"a\u00a0 b"', note="a space is extra").looks_equal
    assert Miss("c", "", '"é"', '"e\u0301"', note="a space is extra").looks_equal
    assert not Miss("c", "", '"a"', '"A"', note="would match ignoring case").looks_equal
    unreadable = {"tool": "t", "is": "unreadable", "malformed": True, "type": "string", "found": "{"}
    missed = first_miss(
        [result("asks", Evidence("tools[0].arguments", False, code=Code.UNREADABLE, fields=unreadable))]
    )
    assert missed is not None
    assert missed.sentence == 'the arguments of the call of t are not valid JSON: "{"'


def test_the_last_execution_counts_unless_all_of_it_passed() -> None:
    read: list[str] = []

    def results_of(run_id: str) -> list[CriterionResult]:
        read.append(run_id)
        return [result("asks", ORDER)]

    runs = [
        run("5", "running", "B"), run("4", "failed", "B", "late"), run("3", "failed", "B", "late"),
        run("2", "error", "B"), run("1", "failed", "A", "early"),
    ]  # fmt: skip
    asks = Miss("asks", "get_order order_id", '"#W1"', '"W1"')
    assert failures(runs, results_of) == Failures(
        (Failure(asks, 2, 3, "4"), Failure(Miss("", sentence="error"), 1, 3, "2"))
    )
    assert read == ["4", "3"], "each run of a reason is read, and none of an error"
    passed = [run("6", "passed", "C"), *runs]
    found = failures(passed, results_of)
    assert not found.last
    assert [(one.runs, one.of) for one in found.reasons] == [(2, 5), (1, 5), (1, 5)]
    assert failures([run("1", "passed", "A")], results_of) == Failures((), False)
    assert failures([], results_of) == Failures((), False)


def test_a_reason_of_several_runs_says_only_what_all_of_them_missed() -> None:
    def missed(expected: str, found: str) -> list[CriterionResult]:
        line = Evidence("equals", False, "", expected, found, code=Code.DIFFERS, fields={"side": "equals"})
        return [result("says", line)]

    runs = [run("3", "failed", "A", "late"), run("2", "failed", "A", "late"), run("1", "failed", "A", "late")]

    def reason(*results: list[CriterionResult]) -> Failure:
        by_run = dict(zip(("3", "2", "1"), results, strict=True))
        (only,) = failures(runs, by_run.__getitem__).reasons
        return only

    alike = reason(*[missed("yes", "no")] * 3)
    assert (alike.miss.expected, alike.miss.got, alike.runs, alike.got_label) == ('"yes"', '"no"', 3, "got")
    varied = reason(missed("yes", "no"), missed("yes", "no"), missed("yes", "perhaps"))
    assert (varied.miss.expected, varied.miss.got, varied.got_label) == ('"yes"', '"no"', "got e.g.")
    for place in range(3):
        rows = [missed("no" if number == place else "yes", "perhaps") for number in range(3)]
        assert reason(*rows).miss == Miss("", sentence="late"), place


def test_the_reasons_of_runs_are_those_of_all_of_them() -> None:
    late, early = run("1", "failed", "A", "late"), run("2", "failed", "A", "early")
    assert reasons_text([late, late]) == "late"
    assert reasons_text([early, late, late]) == "late (2 of 3 runs), and 1 other reason"
    assert reasons_text([late, early, run("3", "error", "A")]) == "late (1 of 3 runs), and 2 other reasons"


def test_the_clearest_failure_compares_two_short_values() -> None:
    def one(miss: Miss, runs: int = 3) -> Failures:
        return Failures((Failure(miss, runs, 3),))

    said, long = one(Miss("c", sentence="not there")), one(Miss("c", "", '"a long value"', '"another"'))
    short, rare = one(Miss("c", "", '"#1"', '"1"')), one(Miss("c", "", '"a"', '"b"'), runs=1)
    assert clearest({"passed": Failures(), "said": said, "long": long, "short": short, "rare": rare}) == "short"
    assert clearest({"said": said, "too": said}) == "said"
    assert clearest({"passed": Failures()}) is None


def test_the_clearest_failure_of_an_execution_names_its_run() -> None:
    named = (("a", "failed", "vague"), ("b", "failed", "clear"), ("c", "passed", "fine"))
    rows = [replace(run(id, status, "E"), test_id=test) for id, status, test in named]
    results = {"a": [result("says", ABSENT)], "b": [result("asks", ORDER)]}
    found = clearest_of(rows, results.__getitem__)
    assert found is not None
    assert (found.run, found.miss.expected, found.runs, found.of) == ("b", '"#W1"', 1, 1)
    assert clearest_of(rows[2:], results.__getitem__) is None
    first = clearest_of(rows, results.__getitem__, most=1)
    assert first is not None
    assert first.run == "a"
