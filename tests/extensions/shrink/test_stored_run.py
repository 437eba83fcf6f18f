"""Shrinking a stored run."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agenteval_tui.extensions.shrink.shrink import Progress
from agenteval_tui.extensions.shrink.stored_run import question_of, shrink
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.edits import fork
from agenteval_tui.runs.fork.model import Tools, read_origin
from agenteval_tui.runs.fork.oracle import Oracle
from agenteval_tui.runs.resume import stored_plan
from tests.runs.test_fork import made, newest, store

__all__ = ["made", "store"]  # fixtures


def test_shrinking_that_was_killed_asks_nothing_twice(store: Store, tmp_path: Path) -> None:
    """Its tools too. After kill -9 the history has what had ended: here a copy that was made in the middle."""
    row = newest(store)
    question = question_of(store, row)
    seen: list[Progress] = []

    def note(progress: Progress) -> None:
        seen.append(progress)
        if len(seen) == 12:
            with closing(sqlite3.connect(store.path)) as source, closing(sqlite3.connect(tmp_path / "k.db")) as copy:
                source.backup(copy)

    whole = Oracle(store, row, purpose="shrink")
    found = shrink(question, whole, on_progress=note)
    assert (found.ending, found.minimal) == ("shrunk", True)
    assert [spec.name for spec in found.tools] == ["search_products", "get_reviews", "issue_voucher"]
    with Store.open(tmp_path / "k.db") as killed:
        known = [one for one in killed.forks_of(row.id) if one.status == "failed" or one.status == "passed"]
        told = [read_origin(one.fork_of, one.fork) for one in known]
        assert any(one is not None and one.edits and isinstance(one.edits[0], Tools) for one in told)
        oracle = Oracle(killed, row, purpose="shrink")
        again = shrink(question, oracle)
        assert 12 <= len(known) < whole.asked
        assert oracle.asked == whole.asked - len(known), "what had ended is known"
        assert (again.conversation, again.questions) == (found.conversation, found.questions)
        # A run that was asked without tools is planned again without them.
        last = next(one for one in reversed(killed.forks_of(row.id)) if read_origin(one.fork_of, one.fork).edits)
        assert "describe_table" in stored_plan(killed, last).run.context["without_tools"]
        deeper = Oracle(killed, last)
        assert len(deeper.tools(fork(killed.transcript(last.id), 0)) or ()) < 11, "a fork of it has its tools"
