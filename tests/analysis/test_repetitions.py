"""Which run to compare with, and where the stored repetitions of a test part."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.analysis.repetitions import (
    divergence_beside,
    divergence_of,
    repetitions,
    run_to_compare,
    runs_to_choose,
)
from agenteval_tui.history.recordings import UNGRADED
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.divergence import divergence_text, parting_text

SUITE = """\
name: Shop
tests:
  - id: german
    prompt: All customers
    criteria:
      - name: The filter
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "Germany"}]}'
  - id: other
    prompt: Hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "Hi"}]}'
"""


@pytest.fixture
def store(make_history: Callable[..., tuple[Path, Store]], answered: Callable[..., Transcript]) -> Store:
    good = answered("of Germany", ("describe", {"table": "t"}), ("query", {"sql": "1"}))
    bad = answered("of nowhere", ("query", {"sql": "1"}))
    runs = [("german", good), ("german", bad), ("other", answered("Hi")), ("german", good), ("german", bad)]
    return make_history(SUITE, runs)[1]


def rows(store: Store) -> list[RunRow]:
    return store.runs_of_execution(store.executions()[0].id)


def test_repetitions_are_those_of_the_same_test_newest_first(store: Store) -> None:
    first, second, other, third, fourth = rows(store)
    assert repetitions(store, first, everywhere=True) == [fourth, third, second, first]
    assert repetitions(store, other, everywhere=False) == [other]
    elsewhere = replace(first, execution_id="another")
    assert repetitions(store, elsewhere, everywhere=False) == []
    assert len(repetitions(store, elsewhere, everywhere=True)) == 4
    assert repetitions(store, replace(first, row=1), everywhere=True) == []
    assert repetitions(store, replace(first, variation="v"), everywhere=True) == []
    # A program that was recorded without a test repeats what was asked the same, whatever its test is called.
    recorded = replace(first, suite_name=UNGRADED)
    assert repetitions(store, recorded, everywhere=True) == [fourth, third, second, first]
    assert repetitions(store, replace(recorded, prompt_head="Another question"), everywhere=True) == []


def test_the_nearest_run_that_ended_otherwise_is_compared(store: Store) -> None:
    first, second, other, third, fourth = rows(store)
    known = repetitions(store, first, everywhere=True)
    assert run_to_compare(fourth, known) == third
    assert run_to_compare(first, known) == second
    # A near one of another execution, or of another agent, is further than a far one of its own.
    assert run_to_compare(fourth, [replace(third, execution_id="x"), first]) == first
    assert run_to_compare(fourth, [replace(third, agent="x"), first]) == first
    # Nothing ended otherwise: the run before; of the first one the next.
    assert run_to_compare(fourth, [fourth, second]) == second
    assert run_to_compare(second, [fourth, second]) == fourth
    assert run_to_compare(second, [replace(fourth, status="cancelled"), second]) is None
    assert run_to_compare(other, [other]) is None


def test_every_other_run_of_the_test_can_be_chosen(store: Store) -> None:
    first, second, other, third, fourth = rows(store)
    assert runs_to_choose(store, second) == [fourth, third, first]
    assert runs_to_choose(store, replace(second, row=7)) == [fourth, third, first]
    assert runs_to_choose(store, other) == []


def test_where_they_part(store: Store) -> None:
    first, second, other, *_ = rows(store)
    found = divergence_of(store, second)
    assert found.fork is not None
    assert not found.everywhere
    assert divergence_text(found) == "step 1: 2 of 4 call describe (2/2 pass), 2 call query (0/2 pass)"
    assert parting_text(divergence_beside(store, second)) == (
        "passing runs call describe at step 1 (2 of 2 pass); this run called query (0 of 2 pass)"
    )
    assert (
        divergence_text(divergence_of(store, other))
        == "this test has no other finished run with this row and variation"
    )
    assert parting_text(divergence_beside(store, other)) == ""
    assert parting_text(divergence_beside(store, replace(first, status="running"))) == ""


def test_where_arguments_tell_nothing_the_tools_alone_may(
    make_history: Callable[..., tuple[Path, Store]], answered: Callable[..., Transcript]
) -> None:
    runs = []
    for number in range(3):
        look = ("look", {"random": number})
        runs.append(("german", answered("of Germany", look)))
        runs.append(("german", answered("of nowhere", ("guess", {"random": number}))))
    _, store = make_history(SUITE, runs)
    run = rows(store)[1]
    found = divergence_of(store, run)
    assert not found.with_arguments
    assert divergence_text(found) == "step 1: 3 of 6 call look (3/3 pass), 3 call guess (0/3 pass)"
    assert (
        divergence_text(divergence_of(store, run, with_arguments=True))
        == "no step separates the passing runs from the failing ones"
    )


def test_why_there_is_no_fork(
    make_history: Callable[..., tuple[Path, Store]], answered: Callable[..., Transcript]
) -> None:
    _, store = make_history(SUITE, [("german", answered("of Germany"))] * 2 + [("other", answered("Hi"))])
    assert (
        divergence_text(divergence_of(store, rows(store)[0]))
        == "all 2 runs passed, so there is no difference to explain"
    )
    assert divergence_of(store, rows(store)[0]).everywhere
