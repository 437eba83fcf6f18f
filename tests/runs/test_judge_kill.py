"""`kill -9` while a judge is asked: each whole answer that came before is stored, and not paid for again. And what
judges of a recording may cost."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import prestarted  # type: ignore[import-not-found]
import pytest
from plain_client import POST
from scripted import Answer, Request  # type: ignore[import-not-found]
from threaded import serving  # type: ignore[import-not-found]

from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.store import Store

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("kill")]

QUESTIONS = ("Is it short?", "Is it polite?", "Is it slow?")
PATIENCE_S = 120.0


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
        running = prestarted.popen(
            [*command, "run", "kill.suite.yaml", "--judge", "judge", "--db", str(db)], cwd=tmp_path
        )
        until = time.monotonic() + PATIENCE_S
        while (asked[QUESTIONS[2]] < 1 or stored(db) < 2) and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        before = stored(db)
        killed.set()
        done = prestarted.run([*command, "resume", "--db", str(db)], cwd=tmp_path)
        assert "1 passed of 1 run" in done.stdout, done.stderr
        assert before == 2
        assert asked == {QUESTIONS[0]: 1, QUESTIONS[1]: 1, QUESTIONS[2]: 2}
        assert stored(db) == 3


PROGRAM = f"""{POST}
said = [{{"role": "user", "content": "Where is it?"}}]
for _ in range(2):
    _, reply = post("chat/completions", {{"model": "gpt-4o", "messages": said}})
    said.append(reply["choices"][0]["message"])
"""
PRICED = {"input": 1000, "output": 0}  # a dollar for a thousand tokens


def chat(content: str, model: str = "gpt-4o") -> Answer:
    usage = {"prompt_tokens": 100, "completion_tokens": 0, "total_tokens": 100}
    message = {"role": "assistant", "content": content}
    return Answer(200, json.dumps({"model": model, "choices": [{"index": 0, "message": message}], "usage": usage}))


def recorded_suite(folder: Path, address: str, **judge: object) -> None:
    agents = {
        "bot": {"kind": "demo", "pace": 0},
        "judge": {"kind": "openai", "base_url": f"{address}/judge", "model": "j", "stream": False, "max_attempts": 1,
                  **judge},
    }  # fmt: skip
    test = {"id": "hello", "prompt": "Where is it?", "criteria": [criterion(one) for one in QUESTIONS]}
    (folder / "kill.suite.yaml").write_text(
        json.dumps({"name": "Greetings", "agent": "bot", "agents": agents, "tests": [test]}), "utf-8"
    )
    (folder / "agent.py").write_text(PROGRAM, "utf-8")


def record_command(db: Path, *more: str) -> list[str]:
    words = [sys.executable, "-m", "agenteval_tui", "record", "--suite", "kill.suite.yaml", "--test", "hello"]
    words += ["--judge", "judge", "--db", str(db), *more]
    return [*words, "--", sys.executable, "-I", "-S", "agent.py"]


@pytest.mark.parametrize("more", [(), ("--cassette", "c.jsonl")])
def test_a_recording_and_what_its_judges_said_outlive_a_kill(tmp_path: Path, more: tuple[str, ...]) -> None:
    asked: Counter[str] = Counter()
    killed = threading.Event()

    async def serve(request: Request) -> Answer:
        text = json.dumps(request.json["messages"])
        if "judge" not in request.path:
            asked["model"] += 1
            return chat("Here it is.")
        (question,) = [one for one in QUESTIONS if one in text]
        asked[question] += 1
        while question == QUESTIONS[2] and not killed.is_set():
            await asyncio.sleep(0.02)
        return chat('{"score": 0.9, "reasoning": "yes"}', "j")

    with serving(serve) as server:
        recorded_suite(tmp_path, server.url)
        env = {**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        db = tmp_path / "kill.db"
        running = prestarted.popen(record_command(db, *more), cwd=tmp_path, env=env)
        until = time.monotonic() + PATIENCE_S
        while (asked[QUESTIONS[2]] < 1 or stored(db) < 2) and time.monotonic() < until:
            time.sleep(0.02)
        running.send_signal(signal.SIGKILL)
        running.wait()
        with Store.open_to_look(db) as store:
            (row,) = store.run_rows(list(store.run_ids()))
            assert (row.status, store.transcript(row.id).final_output) == ("skipped", "Here it is.")
            assert len(store.replies(row.id)) == 2
        killed.set()
        done = prestarted.run(record_command(db, *more), cwd=tmp_path, env=env)
        assert "1 passed of 1 run" in done.stdout, done.stderr
        assert asked == {"model": 2, QUESTIONS[0]: 1, QUESTIONS[1]: 1, QUESTIONS[2]: 2}
        assert not list(tmp_path.glob("*.partial"))


def recorded(folder: Path, address: str, *more: str) -> dict[str, Any]:
    env = {**os.environ, "OPENAI_BASE_URL": address, "OPENAI_API_KEY": "none"}
    command = record_command(folder / "h.db", "--json", *more)
    done = prestarted.run(command, cwd=folder, env=env)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_judges_of_a_recording_may_cost_what_its_program_left_of_the_limit(tmp_path: Path) -> None:
    def serve(request: Request) -> Answer:
        return chat('{"score": 0.9, "reasoning": "yes"}', "j") if "judge" in request.path else chat("Here it is.")

    with serving(serve) as server:
        recorded_suite(tmp_path, server.url, price=PRICED)
        first = recorded(tmp_path, server.url, "--max-cost", "0.15")
        judged = [one for one in server.requests if "judge" in one.path]
        assert (first["outcome"], first["judge_cost"], len(judged)) == ("error", pytest.approx(0.2), 2)
        with Store.open_to_look(tmp_path / "h.db") as store:
            (row,) = store.run_rows(list(store.run_ids()))
            assert "--max-cost is reached: $0.2005 of $0.15 are spent" in row.why
        # Nobody is asked again what was paid for.
        second = recorded(tmp_path, server.url, "--max-cost", "0.15")
        judged = [one for one in server.requests if "judge" in one.path]
        assert (second["outcome"], len(judged)) == ("passed", 3)


def test_a_judge_of_unknown_price_is_asked_once_within_a_limit(tmp_path: Path) -> None:
    def serve(request: Request) -> Answer:
        if "judge" in request.path:
            return chat('{"score": 0.9, "reasoning": "yes"}', "j-of-unknown-price")
        return chat("Here it is.")

    with serving(serve) as server:
        recorded_suite(tmp_path, server.url)
        assert recorded(tmp_path, server.url, "--max-cost", "1")["outcome"] == "error"
        assert sum("judge" in one.path for one in server.requests) == 1
        assert recorded(tmp_path, server.url)["outcome"] == "passed"
