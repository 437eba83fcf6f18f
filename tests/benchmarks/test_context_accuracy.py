"""Planted changes of what the model sees are named, and nothing is named where there is none: the published figures."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.accuracy import context


@pytest.fixture(scope="module")
def recorded() -> list[list[context.Message]]:
    path = Path(__file__).resolve().parents[3] / "shared" / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"
    if not path.is_file():
        pytest.skip("recordings beside the project are not here")
    return context.conversations(path)


@pytest.mark.parametrize("name", context.PLANTS)
def test_planted_changes_are_named(recorded: list[list[context.Message]], name: str) -> None:
    plant, kinds = context.PLANTS[name]
    found = context.named(recorded, plant, kinds, random.Random(name))
    # In a request of the Responses API, a call behind the text of another answer can't be told from one of that answer.
    assert found >= (context.EACH - 2 if name == "reordering" else context.EACH)


@pytest.mark.sweep
@pytest.mark.parametrize("protocol", context.PROTOCOLS)
def test_nothing_is_named_where_nothing_was_changed(recorded: list[list[context.Message]], protocol: str) -> None:
    made = [context.recording(one, protocol, None, random.Random(7)) for one in recorded]
    assert not any(context.has_alarm(one[0]) for one in made if one is not None)
