"""What is in quarantine, until when, and what is no longer."""

from __future__ import annotations

import pytest
from history_made import SUITE, planned, record

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history import quarantines
from agenteval_tui.history.quarantines import DAY_MS, EndQuarantine, PutQuarantine, Quarantine
from agenteval_tui.history.store import Store

AT = 1_700_000_000_000


def one(test: str = "test-0", **more: object) -> Quarantine:
    values: dict[str, object] = {"until_ms": AT + DAY_MS, "at_ms": AT, "reason": "flaky \x1b[31m", "who": "Ann"}
    return Quarantine(SUITE, test, **{**values, **more})  # type: ignore[arg-type]


def test_a_quarantine_holds_until_its_end_and_not_longer(filled: Store) -> None:
    quarantines.put(filled, one()).result()
    now = quarantines.active(filled, AT)
    held = now.test(SUITE, "test-0")
    assert held is not None
    assert (held.reason, held.who, held.suite_name, held.test_name) == ("flaky \x1b[31m", "Ann", "Support", "Test 0")
    assert now.test(SUITE, "test-1") is None
    assert now.criterion(SUITE, "test-0", "polite") == held, "a whole test's covers its criteria"
    assert len(quarantines.active(filled, AT + DAY_MS - 1)) == 1
    assert len(quarantines.active(filled, AT + DAY_MS)) == 0, "at its very end it no longer holds"
    assert len(quarantines.active(filled, AT - 1)) == 0, "nor before it was put"
    assert [item.test_id for item in quarantines.listed(filled)] == ["test-0"], "what is over is still listed"


def test_a_criterion_is_apart_from_its_test(filled: Store) -> None:
    quarantines.put(filled, one(criterion="polite")).result()
    now = quarantines.active(filled, AT)
    assert now.test(SUITE, "test-0") is None
    assert now.criterion(SUITE, "test-0", "polite") is not None
    assert now.criterion(SUITE, "test-0", "looks it up") is None
    assert now.criteria_of(SUITE, "test-0") == {"polite"}


def test_putting_again_replaces_what_holds_and_keeps_what_is_over(filled: Store) -> None:
    quarantines.put(filled, one(reason="first"))
    quarantines.put(filled, one(reason="second", until_ms=AT + 3 * DAY_MS)).result()
    assert [(item.reason, item.until_ms) for item in quarantines.listed(filled)] == [("second", AT + 3 * DAY_MS)]
    later = AT + 5 * DAY_MS
    quarantines.put(filled, one(reason="third", at_ms=later, until_ms=later + DAY_MS)).result()
    assert [item.reason for item in quarantines.listed(filled)] == ["third", "second"]
    assert [item.reason for item in quarantines.active(filled, later)] == ["third"]


def test_ending_it_lets_the_test_gate_again(filled: Store) -> None:
    quarantines.put(filled, one())
    quarantines.put(filled, one(criterion="polite")).result()
    filled.write(EndQuarantine(SUITE, "test-0", at_ms=AT + 10)).result()
    now = quarantines.active(filled, AT + 10)
    assert [item.criterion for item in now] == ["polite"], "that of the criterion is another one"
    with pytest.raises(AgentevalError, match="test-0 is not in quarantine"):
        filled.write(EndQuarantine(SUITE, "test-0", at_ms=AT + 20)).result()
    with pytest.raises(AgentevalError, match="criterion 'tidy' of test-0"):
        quarantines.end(filled, SUITE, "test-0", "tidy").result()


def test_an_end_in_the_past_is_refused_and_a_time_is_set(filled: Store) -> None:
    for until in (AT, AT - 1, 0):
        with pytest.raises(AgentevalError, match="must lie in the future"):
            filled.write(PutQuarantine(one(until_ms=until))).result()
    before = now_ms()
    quarantines.put(filled, one(at_ms=0, until_ms=before + DAY_MS)).result()
    (held,) = quarantines.active(filled)
    assert before <= held.at_ms <= now_ms()


def test_a_test_that_never_ran_can_be_in_quarantine_and_runs_then(store: Store) -> None:
    quarantines.put(store, one("test-1", suite_name="Support")).result()
    store.begin_execution(record(), [planned(n) for n in range(3)]).result()
    held = quarantines.active(store, AT).test(SUITE, "test-1")
    assert held is not None
    assert held.test_name == "Test 1", "the run brought its name up to date"
