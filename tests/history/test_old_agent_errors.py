"""Causes of agents' errors that older programs made of sentences: a history of commit 5965f95."""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agenteval_tui.analysis.causes import failure_causes
from agenteval_tui.grading.causes import agent_cause, cause_from
from agenteval_tui.history.agent_signatures import coded
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import decisions_by_signature as decisions
from agenteval_tui.transcripts.error_codes import ErrorCode
from agenteval_tui.transcripts.model import RunError

DATA = Path(__file__).parent / "data"
sys.path.insert(0, str(DATA))
from make_history_12_errors import SAID, asked  # noqa: E402

OLD = gzip.decompress((DATA / "history-12-errors.db.gz").read_bytes())
TODAY = {
    "key": RunError("auth", "", "", ErrorCode.KEY_MISSING, {"variable": "OPENAI_API_KEY"}),
    "embedding": RunError("protocol", "", "", ErrorCode.NO_EMBEDDING),
    "object": RunError("protocol", "", "", ErrorCode.NOT_AN_OBJECT),
    "too long": RunError("protocol", "", "", ErrorCode.TOO_LONG),
    "no answer": RunError("timeout", "", "", ErrorCode.SILENCE, {"after": "first_token"}),
    "fell silent": RunError("timeout", "", "", ErrorCode.SILENCE, {"after": "silence"}),
    "no prompt": RunError("bad_request", "", "", ErrorCode.NO_PROMPT),
    "steps": RunError("max_steps", "", "", ErrorCode.MAX_STEPS),
    "no reason": RunError("agent", "", "", ErrorCode.NO_REASON),
    "not done": RunError("protocol", "", "", ErrorCode.NOT_DONE),
    "not done chat": RunError("protocol", "", "", ErrorCode.NOT_DONE),
    "run": RunError("timeout", "", "", ErrorCode.RUN_TIMEOUT),
    "length": RunError("length", "", "", ErrorCode.ENDING, {"ending": "length"}),
    "filter": RunError("content_filter", "", "", ErrorCode.ENDING, {"ending": "content_filter"}),
    "worker": RunError("worker_lost", "", "", ErrorCode.WORKER_LOST),
    "its worker": RunError("worker_lost", "", "", ErrorCode.WORKER_LOST),
    "scheduler": RunError("cluster", "", "", ErrorCode.SCHEDULER_LOST),
    **{name: RunError.told(*SAID[name]) for name in ("own", "own kind", "program", "raised")},
}
"""What is created for `SAID` now."""


@pytest.fixture
def store(old: Path) -> Iterator[Store]:
    with Store.open(old) as store:
        yield store


def _now(name: str) -> RunError:
    return asked[name]() if name in asked else TODAY[name]


def _stored(store: Store) -> dict[str, str]:
    ids = [row.id for row in store.run_rows(range(1, len(asked) + len(SAID) + 1))]
    names = {row.id: row.test_name for row in store.run_rows(range(1, len(ids) + 1))}
    return {names[run]: causes[0].signature for run, causes in failure_causes(store, ids).items()}


def test_the_file_is_one_of_before(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (12,)
        causes = [json.loads(one) for (one,) in connection.execute("SELECT cause FROM criterion_results")]
        assert all(len(cause) == 7 and not cause[5] for cause in causes)


def test_errors_of_today_have_the_migrated_causes(store: Store) -> None:
    stored = _stored(store)
    assert stored.keys() == asked.keys() | SAID.keys()
    assert stored == {name: agent_cause(_now(name)).signature for name in stored}


def test_no_decision_is_lost(store: Store) -> None:
    found = decisions(store)
    for name, cause in _stored(store).items():
        assert found[cause].decision == "ignore", name
    notes = " ".join(one.note for one in found.values())
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(OLD)
        for (note,) in connection.execute("SELECT note FROM triage"):
            assert note in notes


def test_an_old_history_comes_in_with_its_decisions(old: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "new.db") as store:
        merge_history(store, old)
        assert agent_cause(_now("refused")).signature in decisions(store)


def test_a_signature_is_brought_up_once(store: Store) -> None:
    for cause in _stored(store).values():
        assert coded(cause) == cause
        assert cause_from(cause).words


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "7", "nothing", '["agent"]', '["agent","","","",7,"","URL answered 500"]', "[" * 9),
        '["agent","","","","server","status","URL answered 500"]',
        '["failed","","","","server","","URL answered 500"]',
        '["agent","","","","server","","URL answered 500: out of order"]',
    ],
)
def test_what_is_no_old_signature_stays(text: str) -> None:
    assert coded(text) == text
