"""Accuracy and Cohen's kappa, against cases computed by hand and against the definition."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.analysis.agreement import Agreement, agreement
from agenteval_tui.analysis.statistics import wilson


@pytest.mark.parametrize(
    ("counts", "accuracy", "kappa"),
    [
        # both yes, both no, only the judge, only the person
        ((20, 15, 5, 10), 0.7, 0.4),  # po 35/50; pe (25*30 + 25*20)/2500 = 0.5; (0.7 - 0.5)/0.5
        ((45, 15, 25, 15), 0.6, 3 / 23),  # po 0.6; pe (70*60 + 30*40)/10000 = 0.54; 0.06/0.46
        ((25, 35, 5, 35), 0.6, 7 / 27),  # po 0.6; pe (30*60 + 70*40)/10000 = 0.46; 0.14/0.54
        ((10, 10, 0, 0), 1.0, 1.0),
        ((0, 0, 10, 10), 0.0, -1.0),  # pe (10*10 + 10*10)/400 = 0.5
        ((5, 5, 5, 5), 0.5, 0.0),  # no better than chance
        ((9, 0, 1, 0), 0.9, 0.0),  # the judge always says yes: nothing beyond chance
    ],
)
def test_cases_by_hand(counts: tuple[int, int, int, int], accuracy: float, kappa: float) -> None:
    told = Agreement(*counts)
    assert told.accuracy == pytest.approx(accuracy)
    assert told.kappa == pytest.approx(kappa)
    assert told.n == sum(counts)
    assert told.interval == wilson(counts[0] + counts[1], told.n)


def test_where_kappa_is_not_defined() -> None:
    assert (Agreement().accuracy, Agreement().kappa) == (None, None)
    assert (Agreement(both_yes=7).accuracy, Agreement(both_yes=7).kappa) == (1.0, None)
    assert Agreement(both_no=7).kappa is None


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_is_what_the_definition_says(pairs: list[tuple[bool, bool]]) -> None:
    told = agreement(pairs)
    n = len(pairs)
    judge, person = [one for one, _ in pairs], [other for _, other in pairs]
    observed = Fraction(sum(one == other for one, other in pairs), n)
    chance = sum(Fraction(judge.count(said), n) * Fraction(person.count(said), n) for said in (True, False))
    assert told.accuracy == pytest.approx(float(observed))
    if chance == 1:
        assert told.kappa is None
    else:
        assert told.kappa == pytest.approx(float((observed - chance) / (1 - chance)))
        assert -1 <= told.kappa <= 1
