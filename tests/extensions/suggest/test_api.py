"""`agenteval.suggest` in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import agenteval_tui as agenteval
from tests.api.test_api import SUITE, db, in_customs

__all__ = ["db"]  # a fixture


def test_criteria_are_suggested_from_examples_and_from_stored_runs(db: Path) -> None:
    good, bad = ["It waits at customs.", "Customs has it."], ["It is on its way."]
    suggested = agenteval.suggest(good=good, bad=bad, unlabelled=["At customs, on its way."])
    assert next(one.agrees for one in suggested) == 3
    assert all(agenteval.grade(text, suggested.criteria[0]).passed for text in good)
    assert not agenteval.grade(bad[0], suggested.criteria[0]).passed
    assert "2 good, 1 bad" in str(suggested)
    execution = agenteval.run(SUITE, agent=in_customs, db=db)
    stored = agenteval.suggest(execution[0], good=execution.runs[:2])
    assert (stored.found.good, stored.found.runs) == (2, 3)
    for wrong in ({}, {"from_judge": True}, {"bad": bad}):
        with pytest.raises(agenteval.AgentevalError):
            agenteval.suggest(**wrong)
