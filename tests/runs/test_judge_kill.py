"""`kill -9` while a judge is asked: each whole answer that came before is stored, and not paid for again."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest
from scripted import Answer, Request  # type: ignore[import-not-found]
from threaded import serving  # type: ignore[import-not-found]

from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.store import Store

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("kill")]

QUESTIONS = ("Is it short?", "Is it polite?", "Is it slow?")
PATIENCE_S = 20.0


def criterion(question: str) -> dict[str, object]:
    metric = {"type": "Judge", "criteria": question}
    return {"name": question, "prototype_class": "TextResponse", "config_uxon": {"metrics": [metric]}}


def stored(db: Path) -> int:
    try:
        with Store.open_to_look(db) as store:
            return sum(len(store.replies(row.id)) for row in store.run_rows(list(store.run_ids())))
    except HistoryError:
        return 0  # it is not made yet


def test_answers_of_a_judge_that_came_before_a_kill_are_not_asked_for_again(tmp_path: Path) -> None:
    asked: Counter[str] = Counter()
    killed = threading.Event()

    async def judge(request: Request) -> Answer:
        text = json.dumps(request.json["messages"])
        (question,) = [one for one in QUESTIONS if one in text]
        asked[question] += 1
        while question == QUESTIONS[2] and not killed.is_set():
            await asyncio.sleep(0.02)
        message = {"role": "assistant", "content": '{"score": 0.9, "reasoning": "yes"}'}
        return Answer(200, json.dumps({"model": "j", "choices": [{"index": 0, "message": message}]}))

    with serving(judge) as server:
        agents = {
            "bot": {"kind": "demo", "pace": 0},
            "judge": {"kind": "openai", "base_url": server.url, "model": "j", "stream": False, "max_attempts": 1},
        }
        test = {"id": "hello", "prompt": "Say hello", "criteria": [criterion(one) for one in QUESTIONS]}
        suite = {"name": "Greetings", "agent": "bot", "agents": agents, "tests": [test]}
        (tmp_path / "kill.suite.yaml").write_text(json.dumps(suite), "utf-8")
        db = tmp_path / "kill.db"
        command = [sys.executable, "-m", "agenteval_tui"]
        running = subprocess.Popen(
            [*command, "run", "kill.suite.yaml", "--judge", "judge", "--db", str(db)], cwd=tmp_path
        )
        until = time.monotonic() + PATIENCE_S
        while (asked[QUESTIONS[2]] < 1 or stored(db) < 2) and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        before = stored(db)
        killed.set()
        done = subprocess.run([*command, "resume", "--db", str(db)], cwd=tmp_path, capture_output=True, text=True)
        assert "1 passed of 1 run" in done.stdout, done.stderr
        assert before == 2
        assert asked == {QUESTIONS[0]: 1, QUESTIONS[1]: 1, QUESTIONS[2]: 2}
        assert stored(db) == 3
