"""What people decided about causes of failure: once for a signature, with what held when they did."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.core.storable import storable
from agenteval_tui.grading.causes import cause_from, cause_id
from agenteval_tui.history import tombstones
from agenteval_tui.history.blobs import json_text
from agenteval_tui.history.store import Store
from agenteval_tui.history.writer import Operation, Totals

DECISIONS = ("accept", "fix", "quarantine", "label", "ignore")
"""accept: it is the baseline. fix: the criterion is wrong. quarantine: its tests don't gate. label: people said what
the runs are worth. ignore: until something changes."""


class Recurrence(Struct, frozen=True):
    """What runs show about a cause: those that started after a decision, or those that the person looked at.

    `versions`: hashes of the criterion's versions that failed with this cause; none for an agent's error. `tests`:
    (suite key, test id). `failed` of `runs` runs of these tests have the cause.
    """

    versions: tuple[str, ...] = ()
    tests: tuple[tuple[str, str], ...] = ()
    failed: int = 0
    runs: int = 0


class Context(Recurrence, frozen=True):
    """What held when it was decided. `examples`: ids of some runs, which pruning leaves, so that it can be seen later
    what was decided about."""

    examples: tuple[str, ...] = ()


class Decision(Struct, frozen=True):
    """A decision about a cause. `until_ms`: it is open again from then on; None: no date was given."""

    signature: str
    decision: str
    note: str = ""
    who: str = ""
    at_ms: int = 0
    until_ms: int | None = None
    context: Context = field(default_factory=Context)

    @property
    def id(self) -> str:
        """The short name of the cause."""
        return cause_id(self.signature)


class Decide(Operation):
    """A decision; it replaces the one that there was about the cause."""

    # Nothing was paid for it, and a person waits: if another process keeps the lock, they hear of it soon.
    decision: Decision

    def prepare(self) -> None:
        """Refuse what is not a decision."""
        decision = self.decision
        if decision.decision not in DECISIONS:
            raise AgentevalError(f"{decision.decision!r} is not a decision", fix=f"one of {', '.join(DECISIONS)}")
        try:
            cause_from(decision.signature)
        except ValueError as wrong:
            raise AgentevalError(str(wrong)) from None
        decision = self.decision = replace(decision, at_ms=decision.at_ms or now_ms())
        if decision.until_ms is not None and decision.until_ms <= decision.at_ms:
            raise AgentevalError("the end of a decision must lie in the future", fix="give a later day")

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Write it."""
        decision = self.decision
        connection.execute(
            "INSERT INTO triage (signature, decision, note, who, at_ms, context, until_ms) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (signature) DO UPDATE SET decision = excluded.decision, note = excluded.note,"
            " who = excluded.who, at_ms = excluded.at_ms, context = excluded.context, until_ms = excluded.until_ms",
            (
                storable(decision.signature),
                decision.decision,
                storable(decision.note),
                storable(decision.who),
                decision.at_ms,
                json_text(to_builtins(decision.context)),
                decision.until_ms,
            ),
        )


class UndecidedError(AgentevalError):
    """There is no decision to take back."""


class Reopen(Operation):
    """A decision is taken back: the cause is open again."""

    signature: str

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> None:
        """Delete it, and remember that. Raises AgentevalError when there is none."""
        if not connection.execute("DELETE FROM triage WHERE signature = ?", (storable(self.signature),)).rowcount:
            raise UndecidedError(
                f"nothing was decided about {cause_id(self.signature)}", fix="see agenteval triage without arguments"
            )
        # Else a merge with a copy of this history would bring the decision back.
        tombstones.add_tombstone(connection, "triage", self.signature, now_ms())


def decide(store: Store, decision: Decision) -> None:
    """Write a decision down; blocks until it is on the disk. Raises AgentevalError for what is none."""
    store.write(Decide(decision)).result()


def reopen(store: Store, signature: str) -> None:
    """Take a decision back; blocks. Raises AgentevalError when there is none."""
    store.write(Reopen(signature)).result()


def decisions(store: Store) -> list[Decision]:
    """All decisions, the newest first."""
    return store.read(read_all)


def decisions_by_signature(store: Store) -> dict[str, Decision]:
    """All decisions, by the cause's signature."""
    return {decision.signature: decision for decision in store.read(read_all)}


def signature_of(signatures: Sequence[str], ref: str) -> str:
    """The one of the `signatures` whose short name begins with `ref`. Raises AgentevalError: none, or several."""
    prefix = ref.strip().lower()
    matching = (
        [signature for signature in dict.fromkeys(signatures) if cause_id(signature).startswith(prefix)]
        if prefix
        else []
    )
    if len(matching) == 1:
        return matching[0]
    if matching:
        names = ", ".join(cause_id(signature) for signature in matching[:5])
        raise AmbiguousError(f"{ref} may be several causes: {names}", fix="give more of its digits")
    raise AgentevalError(f"there is no cause {ref} here", fix="`agenteval causes` lists them with their names")


def read_all(connection: sqlite3.Connection) -> list[Decision]:
    """All decisions, the newest first."""
    rows = connection.execute(
        "SELECT signature, decision, note, who, at_ms, until_ms, context FROM triage ORDER BY at_ms DESC, id DESC"
    )
    return [
        Decision(
            signature, decision=decision, note=note, who=who, at_ms=at_ms, until_ms=until_ms, context=_context(context)
        )
        for signature, decision, note, who, at_ms, until_ms, context in rows.fetchall()
    ]


def _context(text: str) -> Context:
    """What is stored of it; what is something else (another history's) counts as not there."""
    try:
        data: Any = json.loads(text)
        return Context(
            tuple(str(version) for version in data.get("versions") or ()),
            tuple((str(suite), str(test)) for suite, test in data.get("tests") or ()),
            int(data.get("failed") or 0),
            int(data.get("runs") or 0),
            tuple(str(example) for example in data.get("examples") or ()),
        )
    except (ValueError, TypeError, AttributeError):
        return Context()
