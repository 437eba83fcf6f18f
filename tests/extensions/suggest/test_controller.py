"""The sheet of suggested criteria, without an app: which run is asked about, and what follows from an answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.extensions.suggest.controller import SuggestController
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Message, Transcript

ANSWERS = ("sent today", "no idea", "sent on Friday", "I don't know", "sent")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    def runs() -> Any:
        for number, answer in enumerate(ANSWERS):
            transcript = Transcript((Message("user", "?"), Message("assistant", answer)), final_output=answer)
            planned = PlannedRun(f"RUN-{number}-OF-THE-TEST", "EXECUTION", number, "s", "S", "where", "Where")
            yield planned, RunEnded(planned.id, "passed", None, 1, 1.0, 1, transcript)

    with Store.open(tmp_path / "history.db") as opened:
        record = ExecutionRecord("EXECUTION", "s", "run", "s", ("s",), started_ms=now_ms())
        opened.import_runs(record, runs())
        yield opened


def test_one_key_after_the_other(store: Store) -> None:
    controller = SuggestController(store, "s", "where", "RUN-2-OF-THE-TEST")
    state = controller.read()
    assert state.problem is not None
    assert controller.shown is not None
    assert controller.shown.run == "RUN-2-OF-THE-TEST"
    state = controller.say("RUN-2-OF-THE-TEST", True)
    assert state.suggestions is not None
    assert (state.suggestions.good, state.suggestions.bad, state.suggestions.unseen is not None) == (1, 0, True)
    assert controller.shown.good is None, "the next one is one that nobody labelled"
    controller.say("RUN-1-OF-THE-TEST", False)
    assert controller.suggestions[0].agrees == 2
    opened_again = SuggestController(store, "s", "where", "RUN-2-OF-THE-TEST")
    opened_again.read()
    assert opened_again.shown is not None
    assert opened_again.shown.run != "RUN-2-OF-THE-TEST", "it is labelled already"
    # Taken back, it is asked about again, and the history does not have it.
    controller.take_back()
    assert controller.shown.run == "RUN-1-OF-THE-TEST"
    assert [label.run_id for label in store.labels()] == ["RUN-2-OF-THE-TEST"]
    controller.take_back()
    assert controller.take_back() is None
    assert not store.labels()


def test_runs_are_stepped_through_and_a_criterion_is_taken(store: Store) -> None:
    controller = SuggestController(store, "s", "where")
    assert (controller.shown, controller.suggestions) == (None, ())
    controller.read()
    newest = controller.shown
    assert newest is not None
    controller.step(-1)
    assert controller.shown == newest
    controller.step(1)
    older = controller.shown
    assert older is not None
    assert older.run != newest.run
    for number, good in ((0, True), (2, True), (1, False)):
        controller.say(f"RUN-{number}-OF-THE-TEST", good)
    starter = controller.starter(0)
    assert starter.prototype_class == controller.suggestions[0].prototype_class
    assert '"metrics"' in starter.config


def test_a_test_without_runs_is_an_error(store: Store) -> None:
    with pytest.raises(AgentevalError, match="no run"):
        SuggestController(store, "s", "nothing").read()
