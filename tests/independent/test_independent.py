"""A few cases of every comparison with a second reading; `python tests/independent` makes all of them."""

from __future__ import annotations

import pytest
from compared_with import COMPARISONS

# SciPy is loaded in one process of the tests (tests/analysis/test_statistics.py), which takes a second.
SCIPY = pytest.mark.xdist_group("scipy")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[SCIPY] if name == "statistics" else []) for name in COMPARISONS]
)
def test_a_second_reading_says_the_same(name: str) -> None:
    one = COMPARISONS[name]
    if not one.there:
        pytest.skip("recordings beside the project are not here")
    tally = one.compare(one.brief, 7)
    assert tally.cases >= one.brief
    assert tally.differences == []
