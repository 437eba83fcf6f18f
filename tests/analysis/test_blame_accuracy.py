"""The published accuracy of the free answer holds: docs/blame.md, made by `python -m benchmarks.accuracy.blame`."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.analysis.blame.model import ClueCode
from agenteval_tui.analysis.blame.reliability import decides, is_reliable
from benchmarks.accuracy.blame import (
    BEGIN,
    BY_HAND,
    END,
    GENERATED,
    HELD_BEGIN,
    HELD_END,
    KINDS_BEGIN,
    KINDS_END,
    MAGENTIC,
    MEASUREMENTS_FILE,
    PAGE,
    SHOWN_BEGIN,
    SHOWN_END,
    TAU,
    Case,
    Outcome,
    Score,
    cases_of,
    counts_of,
    held_out_table,
    kinds_table,
    measurements_text,
    outcomes_of,
    people,
    score,
    shown_table,
    table,
)


@pytest.fixture(scope="module")
def cases(shared: Path) -> list[Case]:
    """All failures that people labelled, with our answers."""
    return cases_of(shared / "data")


@pytest.mark.shared
def test_what_decides_is_as_reliable_as_the_page_says(shared: Path, cases: list[Case]) -> None:
    outcomes = outcomes_of(cases, shared / "data")
    counts = counts_of(outcomes)
    page = PAGE.read_text(encoding="utf-8")
    assert measurements_text(counts) == MEASUREMENTS_FILE.read_text(encoding="utf-8")
    assert kinds_table(counts) == page.partition(KINDS_BEGIN)[2].partition(KINDS_END)[0].strip()
    assert shown_table(outcomes) == page.partition(SHOWN_BEGIN)[2].partition(SHOWN_END)[0].strip()
    for source in {outcome.source for outcome in outcomes}:
        shown = [
            outcome
            for outcome in outcomes
            if outcome.source == source and outcome.code is not None and decides(outcome.code)
        ]
        assert sum(outcome.right for outcome in shown) >= 0.8 * len(shown), source


def test_counts_are_by_kind_and_set() -> None:
    made = [
        Outcome("a", code, right) for code, right in ((ClueCode.ANSWER, True), (ClueCode.ANSWER, False), (None, True))
    ]
    assert counts_of([*made, Outcome("b", ClueCode.PARTED, True)]) == {
        ClueCode.PARTED: {"b": (1, 1)},
        ClueCode.ANSWER: {"a": (1, 2)},
    }


@pytest.mark.parametrize(
    ("counts", "reliable"),
    [
        ([], False),
        ([(3, 3)], False),
        ([(4, 4)], True),
        ([(4, 5)], False),
        ([(8, 10)], False),
        ([(13, 16)], True),
        ([(20, 20), (0, 1)], False),
        ([(20, 20), (2, 3)], False),
        ([(20, 20), (4, 5)], True),
    ],
)
def test_evidence_decides_if_it_was_right_in_four_of_five_of_each_set_and_surely_in_half(
    counts: list[tuple[int, int]], reliable: bool
) -> None:
    assert is_reliable(counts) is reliable


@pytest.mark.shared
def test_accuracy_is_what_the_page_says(cases: list[Case]) -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert table(cases) == page.partition(BEGIN)[2].partition(END)[0].strip()
    assert held_out_table(cases) == page.partition(HELD_BEGIN)[2].partition(HELD_END)[0].strip()
    assert people(cases) == Score(7, 3, 4), "the page says so"
    scores = {
        source: score([case for case in cases if case.source == source], lambda case: case.answer)
        for source in (TAU, MAGENTIC, BY_HAND, GENERATED)
    }
    assert scores[BY_HAND].exact / scores[BY_HAND].n > 0.214
    assert scores[GENERATED].exact / scores[GENERATED].n > 0.190
    simple = [score([case for case in cases if case.source == TAU], lambda case, rule=rule: case.baselines[rule])  # type: ignore[misc]
              for rule in ("last write", "first unexpected write")]  # fmt: skip
    assert all(scores[TAU].exact > one.exact and scores[TAU].near > one.near for one in simple)
