"""Recording and replaying programs from Python."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scripted import Answer, Request
from threaded import serving

import agenteval_tui as agenteval
from agenteval_tui.history.store import Store

PROGRAM = """
import json, os, urllib.request
body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "WHAT"}]}).encode()
address = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
try:
    urllib.request.urlopen(urllib.request.Request(address, body, {"content-type": "application/json"}))
except urllib.error.HTTPError:
    raise SystemExit(1)
"""
SUITE = {
    "name": "Parcels",
    "agent": "none",
    "agents": {"none": {"kind": "demo"}},
    "tests": [
        {
            "id": "where",
            "prompt": "Where?",
            "criteria": [
                {
                    "name": "Says yes",
                    "prototype_class": "TextResponse",
                    "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "yes"}]},
                }
            ],
        }
    ],
}


def model(request: Request) -> Answer:
    said = f"yes to {request.json['messages'][0]['content']}"
    choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
    return Answer(body=json.dumps({"model": "m", "choices": [choice]}))


def program(what: str) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", PROGRAM.replace("WHAT", what)]


def test_a_program_is_recorded_and_replayed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    db = tmp_path / "history.db"
    with serving(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        recorded = agenteval.record(program("a"), suites=SUITE, test="where", cassette="c.jsonl", calibrate=True, db=db)
        assert recorded.passed
        assert recorded[0].output == "yes to a"
        changed = agenteval.replay(recorded[0], program("b"))
        assert (changed[0].output, changed[0].row.fork_of) == ("yes to b", recorded[0].id)
        assert len(server.requests) == 2
        again = agenteval.record(program("a"), cassette="c.jsonl", replay=True, db=db)
        assert again[0].output == "yes to a"
        assert agenteval.record(program("b"), cassette="c.jsonl", replay=True, db=db)[0].status == "error"
        assert len(server.requests) == 2
    with pytest.raises(agenteval.AgentevalError, match="list of words"):
        agenteval.record("python agent.py")
    with pytest.raises(agenteval.AgentevalError, match="no cassette to replay"):
        agenteval.record(program("a"), replay=True)


def test_what_was_paid_for_is_stored_where_nothing_more_can_be_made_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = tmp_path / "history.db"
    path = '(("/chat/completions", "/embeddings")[os.path.exists("again")])'
    other = PROGRAM.replace('"/chat/completions"', path) + "open('again', 'w')\n"
    words = [sys.executable, "-I", "-S", "-c", other]
    with serving(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        with pytest.raises(agenteval.AgentevalError, match="sent different requests the second time"):
            agenteval.record(words, cassette="c.jsonl", calibrate=True, db=db)
        (tmp_path / "folder").mkdir()
        with pytest.raises(agenteval.AgentevalError, match="this is a folder"):
            agenteval.record(program("a"), cassette="folder", db=db)
    with Store.open_to_look(db) as store:
        assert len(store.executions()) == 2
    assert len((tmp_path / "c.jsonl").read_text("utf-8").splitlines()) == 2


def test_the_dotenv_of_a_folder_reaches_a_program_only_with_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    db = tmp_path / "history.db"
    with serving(model) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        recorded = agenteval.record(program("a"), db=db)
        monkeypatch.delenv("OPENAI_BASE_URL")
        (tmp_path / ".env").write_text(f"OPENAI_BASE_URL={server.url}\n", "utf-8")
        asked = len(server.requests)
        with pytest.raises(agenteval.AgentevalError, match="gives the program OPENAI_BASE_URL"):
            agenteval.record(program("b"), db=db)
        with pytest.raises(agenteval.AgentevalError, match="gives the program OPENAI_BASE_URL"):
            agenteval.replay(recorded[0], program("b"))
        assert len(server.requests) == asked
        assert agenteval.replay(recorded[0], program("b"), trust=True)[0].output == "yes to b"
