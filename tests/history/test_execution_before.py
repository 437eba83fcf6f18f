"""Which execution the newest one is compared with, where nobody names one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

import pytest
from history_made import ended, planned, record
from msgspec.structs import replace

from agenteval_tui.history.comparison_queries import execution_before
from agenteval_tui.history.store import Store

NUMBERS = count(1)


def ran(store: Store, tests: Iterable[str], *, kind: str = "run", status: str = "passed") -> str:
    """An execution of these tests, a run each; its id."""
    execution = f"EXECUTION-{next(NUMBERS)}"
    pairs = []
    for place, test in enumerate(tests):
        run = planned(place, execution, test_id=test)
        pairs.append((run, replace(ended(place, execution), run_id=run.id, status=status)))
    store.import_runs(record(execution, kind=kind), iter(pairs))
    return execution


def before(store: Store, execution: str) -> str | None:
    return store.read(lambda c: execution_before(c, [execution]))


def test_the_newest_with_half_of_the_tests_comes_before_newer_ones_with_fewer(store: Store) -> None:
    ran(store, "abcd")
    half = ran(store, "ab")
    ran(store, "a")
    ran(store, "abcd", status="error")  # nothing came to a verdict
    ran(store, "xyz")
    assert before(store, ran(store, "abcd")) == half


def test_where_none_has_half_the_newest_with_any_of_them_is_taken(store: Store) -> None:
    ran(store, "a")
    newest = ran(store, "b")
    assert before(store, ran(store, "abcd")) == newest


@pytest.mark.parametrize(("tests", "counts"), [("a", False), ("ab", True)])
def test_what_was_imported_is_taken_only_with_half_of_the_tests(store: Store, tests: str, counts: bool) -> None:
    imported = ran(store, tests, kind="import")
    assert before(store, ran(store, "abcd")) == (imported if counts else None)


def test_an_import_may_follow_an_import_with_few_of_its_tests(store: Store) -> None:
    imported = ran(store, "a", kind="import")
    assert before(store, ran(store, "abcd", kind="import")) == imported


def test_what_came_later_is_not_before(store: Store) -> None:
    first = ran(store, "ab")
    ran(store, "ab")
    assert before(store, first) is None
