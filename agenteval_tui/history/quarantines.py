"""Quarantines: until its end date, a test (or a single criterion of a test) runs and is shown, but does not gate.

A quarantine that is over stays in the history, with its end date in the past.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import datetime, time, timedelta
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation, Totals

DAY_MS = 86_400_000
DEFAULT_DAYS = 14
"""How long a quarantine lasts by default: long enough to fix a test, too short to forget it."""


class Quarantine(Struct, frozen=True):
    """A test that does not gate. With `criterion` (its name), only that criterion of the test does not gate.

    The quarantine has the criterion's name and not its hash, so a criterion that is edited stays in quarantine.
    `until_ms` is when the quarantine ends, `at_ms` when it started (0: now). The names are for lists.
    """

    suite_key: str
    test_id: str
    until_ms: int
    criterion: str = ""
    reason: str = ""
    who: str = ""
    at_ms: int = 0
    suite_name: str = ""
    test_name: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is about: the suite's key, the test's id, the criterion's name ("": the whole test)."""
        return self.suite_key, self.test_id, self.criterion

    @property
    def last_day(self) -> str:
        """The last day on which it holds, `2026-12-06`: one that ends at midnight ends on the day before."""
        return datetime.fromtimestamp((self.until_ms - 1) / 1000).strftime("%Y-%m-%d")

    def holds(self, at_ms: int) -> bool:
        """Whether it is in force at that time. Nothing holds at its very end."""
        return self.at_ms <= at_ms < self.until_ms


class ActiveQuarantines(Struct, frozen=True):
    """The quarantines that hold at one time, for questions by test and criterion."""

    by_key: dict[tuple[str, str, str], Quarantine]

    def test(self, suite_key: str, test_id: str) -> Quarantine | None:
        """That of the whole test; None: it gates."""
        return self.by_key.get((suite_key, test_id, ""))

    def reason(self, suite_key: str, test_id: str) -> str:
        """Why the whole test does not gate; "": it gates."""
        held = self.test(suite_key, test_id)
        return "" if held is None else held.reason or "in quarantine"

    def criterion(self, suite_key: str, test_id: str, criterion: str) -> Quarantine | None:
        """That of the whole test, else that of this criterion (a name); None: it gates."""
        return self.test(suite_key, test_id) or self.by_key.get((suite_key, test_id, criterion))

    def criteria_of(self, suite_key: str, test_id: str) -> frozenset[str]:
        """The names of the test's criteria that are in quarantine by themselves."""
        return frozenset(name for key, test, name in self.by_key if name and (key, test) == (suite_key, test_id))

    def __len__(self) -> int:
        return len(self.by_key)

    def __iter__(self) -> Iterator[Quarantine]:
        return iter(self.by_key.values())


class PutQuarantine(Operation):
    """A quarantine begins. One that holds for the same test and criterion is replaced; those that are over stay."""

    quarantine: Quarantine

    def prepare(self) -> None:
        """Refuse what would hold for ever, or never."""
        quarantine = self.quarantine
        quarantine = self.quarantine = replace(quarantine, at_ms=quarantine.at_ms or now_ms())
        if quarantine.until_ms <= quarantine.at_ms:
            raise AgentevalError("a quarantine's end must lie in the future", fix="give a later day")

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Insert it; a test that never ran is made known by it."""
        quarantine = self.quarantine
        # Updates that change nothing: else nothing would be returned of a suite or a test that is there.
        (suite,) = connection.execute(
            "INSERT INTO suites (key, name) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET key = excluded.key"
            " RETURNING id",
            (
                storable(quarantine.suite_key),
                storable(quarantine.suite_name or quarantine.suite_key.rpartition("/")[2]),
            ),
        ).fetchone()
        (test,) = connection.execute(
            "INSERT INTO tests (suite, test_id, name) VALUES (?, ?, ?)"
            " ON CONFLICT (suite, test_id) DO UPDATE SET test_id = excluded.test_id RETURNING id",
            (suite, storable(quarantine.test_id), storable(quarantine.test_name or quarantine.test_id)),
        ).fetchone()
        connection.execute(
            "DELETE FROM quarantines WHERE test = ? AND criterion = ? AND until_ms > ?",
            (test, storable(quarantine.criterion), quarantine.at_ms),
        )
        connection.execute(
            "INSERT INTO quarantines (test, criterion, reason, until_ms, who, at_ms) VALUES (?, ?, ?, ?, ?, ?)",
            (
                test,
                storable(quarantine.criterion),
                storable(quarantine.reason),
                quarantine.until_ms,
                storable(quarantine.who),
                quarantine.at_ms,
            ),
        )


class EndQuarantine(Operation):
    """A quarantine is over before its day. `criterion` "": that of the whole test, and not those of its criteria."""

    suite_key: str
    test_id: str
    criterion: str = ""
    at_ms: int = 0

    def prepare(self) -> None:
        """Know the time."""
        self.at_ms = self.at_ms or now_ms()

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Let it end now. Raises AgentevalError when there is none that holds."""
        cursor = connection.execute(
            "UPDATE quarantines SET until_ms = ?1 WHERE until_ms > ?1 AND criterion = ?2 AND test IN ("
            " SELECT t.id FROM tests t JOIN suites s ON s.id = t.suite WHERE s.key = ?3 AND t.test_id = ?4)",
            (self.at_ms, storable(self.criterion), storable(self.suite_key), storable(self.test_id)),
        )
        if not cursor.rowcount:
            what = f"criterion {self.criterion!r} of {self.test_id}" if self.criterion else self.test_id
            raise AgentevalError(f"{what} is not in quarantine", fix="see agenteval quarantine list")


def put(store: Store, quarantine: Quarantine) -> Future[Any]:
    """Put a test or one of its criteria in quarantine; the future is done when it is on the disk."""
    return store.write(PutQuarantine(quarantine))


def end(store: Store, suite_key: str, test_id: str, criterion: str = "") -> Future[Any]:
    """End it now; the future holds an `AgentevalError` when none holds."""
    return store.write(EndQuarantine(suite_key, test_id, criterion))


def default_until() -> int:
    """When a quarantine that begins now ends by default: at the end of that day in two weeks."""
    day = datetime.fromtimestamp(now_ms() / 1000).date()
    return round(datetime.combine(day + timedelta(days=DEFAULT_DAYS + 1), time.min).timestamp() * 1000)


def listed(store: Store) -> list[Quarantine]:
    """All that there ever were, those that end last first."""
    return store.read(quarantines)


def active(store: Store, at_ms: int | None = None) -> ActiveQuarantines:
    """Those that hold at that time (None: now)."""
    moment = now_ms() if at_ms is None else at_ms
    return ActiveQuarantines({held.key: held for held in store.read(quarantines) if held.holds(moment)})


# Reading


def quarantines(connection: sqlite3.Connection) -> list[Quarantine]:
    """All that there ever were, those that end last first. A test that is gone takes its quarantines along."""
    rows = connection.execute(
        "SELECT s.key, t.test_id, coalesce(q.until_ms, 0), q.criterion, q.reason, q.who, q.at_ms, s.name, t.name"
        " FROM quarantines q JOIN tests t ON t.id = q.test JOIN suites s ON s.id = t.suite"
        " ORDER BY q.until_ms DESC, q.id"
    )
    return [Quarantine(*row) for row in rows.fetchall()]
