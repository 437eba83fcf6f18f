"""What the last save changed, as the history has it: for who did not watch, such as an editor."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agenteval_tui.agents.recording.answers import NOT_RECORDED_KIND
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.model import read_origin


class TestChange(Struct):
    """How the runs of a test did after the last save, beside the recorded ones."""

    __test__ = False  # not a test class, whatever its name says to pytest

    passes: int = 0
    fails: int = 0
    needs_model: int = 0
    unchanged: int = 0

    @property
    def words(self) -> str:
        """In words: `3 pass now, 1 fails now`."""
        parts = [f"{self.passes} {'passes' if self.passes == 1 else 'pass'} now"] * bool(self.passes)
        parts += [f"{self.fails} {'fails' if self.fails == 1 else 'fail'} now"] * bool(self.fails)
        parts += [f"{self.needs_model} {'needs' if self.needs_model == 1 else 'need'} the model"] * bool(
            self.needs_model
        )
        return ", ".join(parts) or "nothing changes"


def last_change(store: Store, suite_key: str) -> Mapping[str, TestChange]:
    """By test, what the last save changed; empty where runs were made for real since, or nothing was saved."""
    newest = store.execution_ids(RunFilter(suite_key=suite_key))[:1]
    changes: dict[str, TestChange] = {}
    for execution in store.execution_rows(newest):
        if execution.kind != "fork" or execution.options.get("purpose") != "change":
            return {}
        rows = [row for row in store.runs_of_execution(execution.id) if row.suite_key == suite_key]
        for row in rows:
            origin = read_origin(row.fork_of, row.fork)
            if origin is None:
                continue
            change = changes.setdefault(row.test_id, TestChange())
            before = store.run(origin.run).status
            if row.error_kind == NOT_RECORDED_KIND:
                change.needs_model += 1
            elif (before == "passed") == (row.status == "passed"):
                change.unchanged += 1
            elif row.status == "passed":
                change.passes += 1
            else:
                change.fails += 1
    return changes
