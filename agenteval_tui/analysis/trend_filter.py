"""What people type to narrow a trend, and what ran in a piece of its time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from agenteval_tui.analysis.trends import TrendQuery, select_runs
from agenteval_tui.history import trends as rows

if TYPE_CHECKING:
    from agenteval_tui.analysis.time_buckets import Bin
    from agenteval_tui.history.connections import Connection
    from agenteval_tui.history.store import Store
    from agenteval_tui.history.trends import ExecutionTime

_NOBODY = "\0"  # no agent, tag or test has this name


def filtered(store: Store, wanted: TrendQuery, text: str) -> TrendQuery:
    """`wanted`, narrowed by `text`: `test:x`, `tag:x`, `agent:x`, `suite:x` (a part of the name is enough), and words
    that the test's id, name or suite must have. What fits nothing leaves nothing."""
    words = text.casefold().split()
    if not words:
        return wanted
    return store.read(lambda connection: _filtered(connection, wanted, words))


def _filtered(connection: Connection, wanted: TrendQuery, words: list[str]) -> TrendQuery:
    known = rows.tests_known(connection)
    tests = False
    for word in words:
        field, colon, value = word.partition(":")
        if colon and field == "agent":
            fits = tuple(name for name in rows.agents_known(connection) if value in name.casefold())
            wanted = replace(wanted, agents=fits or (_NOBODY,))
        elif colon and field == "tag":
            tags = [name for name in rows.tags_known(connection) if name.casefold().startswith(value)]
            exact = [name for name in tags if name.casefold() == value]
            wanted = replace(wanted, tags=(*wanted.tags, *(exact or tags or [_NOBODY])[:1]))
        elif colon and field == "suite":
            tests = True
            known = [one for one in known if value in one.suite.casefold() or value in one.suite_key.casefold()]
        elif colon and field == "test":
            tests = True
            # One that is called so, else all that have it in their names.
            exact_ones = [one for one in known if one.test_id.casefold() == value]
            known = exact_ones or [one for one in known if value in f"{one.test_id}\n{one.test}".casefold()]
        else:
            tests = True
            known = [one for one in known if word in f"{one.test_id} {one.test} {one.suite}".casefold()]
    return replace(wanted, only=tuple(one.row for one in known)) if tests else wanted


def executions_at(store: Store, wanted: TrendQuery, place: Bin) -> list[ExecutionTime]:
    """The executions that had a wanted run in this piece of time, in the order in which these began."""

    def read(connection: Connection) -> list[ExecutionTime]:
        picked = replace(select_runs(connection, wanted), since_ms=place.since_ms, until_ms=place.until_ms)
        found = rows.executions_in(connection, picked)
        return [one for one in found if not place.execution or one.id == place.execution]

    return store.read(read)
