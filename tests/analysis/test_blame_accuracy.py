"""The published accuracy of the free answer holds: docs/blame.md, made by `python -m benchmarks.accuracy.blame`."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.accuracy.blame import (
    BEGIN,
    BY_HAND,
    END,
    GENERATED,
    HELD_BEGIN,
    HELD_END,
    MAGENTIC,
    PAGE,
    TAU,
    Score,
    cases_of,
    held_out_table,
    people,
    score,
    table,
)


@pytest.mark.shared
def test_accuracy_is_what_the_page_says(shared: Path) -> None:
    cases = cases_of(shared / "data")
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
