"""What programs asked of models, as the history keeps it beside their runs."""

from __future__ import annotations

import json
import random
import sqlite3
import string
import zlib
from contextlib import closing
from pathlib import Path
from typing import Any

from history_made import ended, planned, record
from msgspec.structs import replace

from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.store import Store
from agenteval_tui.history.tapes import pack_tape

RUN = "EXECUTION-1-RUN-00000"
TAPE = [{"request": {"path": "p", "json": {"text": "ä" * 900}}, "answer": {"status": 200}}]


def fill(store: Store) -> None:
    store.begin_execution(record(), [planned(0), planned(1)])
    store.run_ended(replace(ended(0), tape=TAPE))
    store.run_ended(ended(1)).result()
    store.end_execution("EXECUTION-1", "finished").result()


def test_a_tape_stays_with_its_run_also_when_that_is_graded_again_or_taken_over(store: Store, tmp_path: Path) -> None:
    fill(store)
    assert (store.tape(RUN), store.tape("EXECUTION-1-RUN-00001"), store.tape("none")) == (TAPE, [], [])
    store.run_ended(ended(0, passed=False)).result()
    assert store.tape(RUN) == TAPE
    store.run_ended(replace(ended(0), tape=[{"other": 1}])).result()
    assert store.tape(RUN) == [{"other": 1}]
    with Store.open(tmp_path / "other.db") as other:
        merge_history(other, store.path)
        assert other.tape(RUN) == [{"other": 1}]
        assert merge_history(other, store.path).runs == 0
        other.delete_execution("EXECUTION-1").result()
        assert other.read(lambda c: c.execute("SELECT count(*) FROM tapes").fetchone()[0]) == 0


def test_a_tape_that_is_damaged_is_none(store: Store) -> None:
    fill(store)
    with closing(sqlite3.connect(store.path)) as raw, raw:
        raw.execute("UPDATE tapes SET data = x'00'")
    assert store.tape(RUN) == []


def test_what_a_conversation_repeats_is_kept_once(store: Store) -> None:
    fill(store)
    rnd = random.Random(7)
    words = ["".join(rnd.choices(string.ascii_lowercase, k=8)) for _ in range(5_000)]
    messages: list[dict[str, Any]] = []
    tape = []
    for _ in range(60):
        messages.append({"role": "user", "content": " ".join(rnd.choices(words, k=300))})
        body = {"model": "m", "messages": list(messages), "tools": [{"name": "find"}], "stop": ["x"], "n": 1}
        messages.append({"role": "assistant", "content": "Yes."})
        request = {"method": "POST", "path": "openai/v1/chat/completions", "json": body}
        tape.append({"request": request, "answer": {"status": 200, "json": {"choices": [{"message": messages[-1]}]}}})
    store.run_ended(replace(ended(0), tape=tape)).result()
    assert store.tape(RUN) == tape
    assert [list(one["request"]["json"]) for one in store.tape(RUN)] == [list(one["request"]["json"]) for one in tape]
    once = len(zlib.compress(json.dumps(messages).encode(), 6))
    assert len(pack_tape(tape)) < 1.3 * once
    assert len(zlib.compress(json.dumps(tape).encode(), 6)) > 20 * once


def test_a_tape_of_an_older_history_is_read(store: Store) -> None:
    fill(store)
    store.run_ended(replace(ended(0), tape=TAPE)).result()
    with sqlite3.connect(store.path) as connection:
        connection.execute("UPDATE tapes SET data = ?", (zlib.compress(json.dumps(TAPE).encode()),))
    assert store.tape(RUN) == TAPE
