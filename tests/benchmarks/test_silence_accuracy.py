"""A judge that may keep silent is wrong as rarely as promised, and decides most of the cases all the same."""

from __future__ import annotations

import pytest

from benchmarks.accuracy.silence import JUDGES, kept

SPLITS = 40
WEAK = "a weak judge of ringnorm"


@pytest.mark.parametrize("name", [name for name in JUDGES if name != WEAK])
def test_the_bound_holds_and_most_is_decided(name: str) -> None:
    found = kept(JUDGES[name], splits=SPLITS)
    assert found.holds >= 0.95
    assert found.decided >= 0.7
    assert found.wrong < min(0.1, found.alone)


def test_a_weak_judge_decides_little_rather_than_wrongly() -> None:
    found = kept(JUDGES[WEAK], splits=SPLITS)
    assert found.alone > 0.15
    assert found.decided < 0.4
    assert found.holds >= 0.95
