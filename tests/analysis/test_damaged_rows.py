"""A history with a row that can't be read, or that another version wrote: a sentence says so; nothing else is lost."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.blame.recorded_facts import known_blame
from agenteval_tui.analysis.criterion_versions import own_spec, stored_spec
from agenteval_tui.analysis.explanation import stored_explanation
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.maintenance import check, repair
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import known_spec
from agenteval_tui.transcripts.model import Transcript

SUITE = """\
name: Shop
tests:
  - id: germany
    prompt: All customers
    criteria:
      - name: The filter
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "Germany"}]}'
      - name: Says so
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "customers"}]}'
"""
RUN = "EXECUTION-RUN-0000"
GOOD = {"name": "The filter", "prototype_class": "TextResponse", "config": "{}"}
SPECS = [
    "{}",
    "null",
    "[]",
    '"x"',
    "7",
    json.dumps({name: value for name, value in GOOD.items() if name != "prototype_class"}),
    json.dumps({name: value for name, value in GOOD.items() if name != "name"}),
    json.dumps(GOOD | {"prototype_class": None}),
    json.dumps(GOOD | {"config": 7}),
    json.dumps(GOOD | {"weight": "heavy"}),
    json.dumps(GOOD | {"pass_threshold": []}),
]

Made = tuple[Path, Store]


@pytest.fixture
def made(make_history: Callable[..., Made], answered: Callable[..., Transcript]) -> Made:
    return make_history(SUITE, [("germany", answered("customers of France")), ("germany", answered("no idea"))])


def write(store: Store, statement: str, *values: Any) -> None:
    with closing(sqlite3.connect(store.path)) as connection, connection:
        assert connection.execute(statement, values).rowcount


@pytest.mark.parametrize("spec", SPECS)
def test_a_stored_criterion_that_is_not_one_costs_that_criterion_alone(made: Made, spec: str) -> None:
    path, store = made
    row = store.run(RUN)
    lost, kept = row.criteria
    write(store, "UPDATE criteria SET spec = ? WHERE hash = ?", spec, lost)
    path.unlink()  # so that the stored criteria are asked for

    bench = Workbench.open(store, RUN)
    assert [one.name for one in bench.criteria] == ["Says so"]
    assert [str(one.outcome) for one in bench.judge_all()] == ["passed"]
    assert known_spec(store, lost) is None
    assert known_spec(store, kept) is not None
    assert known_blame(store, row).run == RUN
    assert [number for number, _ in stored_explanation(store, row).criteria] == [1, 2]
    with pytest.raises(AgentevalError, match=r"can't be read|is not stored"):
        stored_spec(store, lost)


def test_all_criteria_lost_leave_a_scratch_criterion_and_the_verdicts(made: Made) -> None:
    path, store = made
    write(store, "UPDATE criteria SET spec = '{}'")
    path.unlink()
    bench = Workbench.open(store, RUN)
    assert [one.scratch for one in bench.criteria] == [True]
    assert "can't be read" in bench.note
    assert [str(one.outcome) for one in bench.stored] == ["failed", "passed"]


def test_a_criterion_of_a_newer_version_has_more_fields(made: Made) -> None:
    path, store = made
    (digest, _) = store.run(RUN).criteria
    data = store.criterion(digest)
    write(store, "UPDATE criteria SET spec = ? WHERE hash = ?", json.dumps({**(data or {}), "mood": "good"}), digest)
    path.unlink()
    assert [one.name for one in Workbench.open(store, RUN).criteria] == ["The filter", "Says so"]


def test_the_text_of_a_version_that_is_not_a_criterion_is_an_error_in_words(made: Made) -> None:
    _, store = made
    row = store.run(RUN)
    write(store, 'UPDATE criterion_texts SET spec = \'{"name": "x"}\'')
    with pytest.raises(AgentevalError, match="can't be read: it has no prototype_class"):
        own_spec(store, row.suite_key, row.test_id, "The filter", row.criteria[0])


@pytest.mark.parametrize(
    ("column", "ask"),
    [
        ("plans.tags", lambda store: store.run(RUN)),
        ("plans.variables", lambda store: store.run(RUN)),
        ("plans.criteria", lambda store: store.run(RUN)),
        ("executions.options", lambda store: store.execution("EXECUTION")),
        ("executions.suite_keys", lambda store: store.execution("EXECUTION")),
    ],
)
@pytest.mark.parametrize("value", ["{", "7", ""])
def test_a_row_that_is_not_json_is_an_error_in_words(
    made: Made, column: str, ask: Callable[[Store], object], value: str
) -> None:
    _, store = made
    table, name = column.split(".")
    write(store, f"UPDATE {table} SET {name} = ?", value)
    with pytest.raises(HistoryError, match="what is stored can't be read") as told:
        ask(store)
    assert "db check --fix" in told.value.fix
    assert any(name in said for said in check(store.path).wrong)
    repair(store)
    assert check(store.path).wrong == ()
    ask(store)


@pytest.mark.parametrize("spec", ["{", "7", ""])
def test_a_repair_takes_out_a_criterion_that_is_not_one(made: Made, spec: str) -> None:
    _, store = made
    write(store, "UPDATE criteria SET spec = ? WHERE id = 1", spec)
    write(store, "UPDATE criterion_texts SET spec = ? WHERE criterion = 1", spec)
    assert len(check(store.path).wrong) == 2
    repair(store)
    assert check(store.path).wrong == ()
    assert known_spec(store, store.run(RUN).criteria[0]) is None
    assert known_spec(store, store.run(RUN).criteria[1]) is not None
