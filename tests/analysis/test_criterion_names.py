"""Which criterion a number, a name or the beginning of a name means, on every door."""

from __future__ import annotations

import pytest

from agenteval_tui.analysis.criterion_names import criterion_place
from agenteval_tui.core.errors import AgentevalError

NAMES = ("Polite", "polite", "Names the order", "names it", "2")


@pytest.mark.parametrize(
    ("reference", "place"),
    [("1", 0), ("5", 4), ("2", 1), ("Polite", 0), ("polite", 1), ("POLITE", 0), ("names THE", 2), ("names i", 3)],
)
def test_a_criterion_is_named(reference: str, place: int) -> None:
    assert criterion_place(NAMES, reference) == place


@pytest.mark.parametrize(
    ("reference", "what"),
    [("names", "several criteria begin with 'names'"), ("", "several"), ("6", "there is no criterion '6'"),
     ("0", "there is no"), ("rude", "there is no criterion 'rude'")],
)  # fmt: skip
def test_what_names_none_or_several_is_refused_with_the_names(reference: str, what: str) -> None:
    with pytest.raises(AgentevalError, match=what) as refused:
        criterion_place(NAMES, reference, "run R")
    assert refused.value.where == "run R"
    assert refused.value.fix == "its criteria: 1 Polite, 2 polite, 3 Names the order, 4 names it, 5 2"
