"""Examples out of a history."""

from __future__ import annotations

import shutil
from pathlib import Path

from agenteval_tui.analysis.labels import give_label
from agenteval_tui.cli.labelled_samples import label_samples
from agenteval_tui.core.directories import bundled
from agenteval_tui.extensions.suggest.search import suggest
from agenteval_tui.extensions.suggest.stored_examples import examples_of_test
from agenteval_tui.history.labels import Label
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.edits import fork
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.fork.plan import Question
from tests.runs.test_fork import made, newest, store

__all__ = ["made", "store"]  # fixtures


def test_a_fork_is_no_example(store: Store) -> None:
    row = newest(store)

    def labels() -> list[bool | None]:
        examples = examples_of_test(store, row.suite_key, row.test_id, criterion="Gives nothing away").examples
        return [example.good for example in examples.runs]

    give_label(store, Label(row.id, criterion="Gives nothing away", passed=False, who="kim"))
    before = labels()
    assert before.count(False) == 1
    oracle = Oracle(store, row)
    oracle.ask_all([Question(fork(store.transcript(row.id), 0))], 2)
    for run in store.runs_of_execution(oracle.execution_id):
        give_label(store, Label(run.id, criterion="Gives nothing away", passed=True, who="kim"))
    assert labels() == before


def test_the_labelled_samples_are_enough_for_a_criterion(tmp_path: Path) -> None:
    samples, db = shutil.copytree(bundled("sample_suites"), tmp_path / "samples"), tmp_path / "history.db"
    label_samples(db, samples)
    with Store.open_to_look(db) as store:
        (execution,) = store.executions()
        key = store.runs_of_execution(execution.id)[0].suite_key
        found = suggest(examples_of_test(store, key, "return-window").examples)
    assert (found.good, found.bad, found.suggestions[0].agrees) == (2, 1, 3)
