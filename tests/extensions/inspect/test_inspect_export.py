"""Runs as an Inspect log, read back by Inspect itself where it is installed.

`inspect_ai` brings 80 packages, so that it is in no environment of ours: AGENTEVAL_INSPECT_PYTHON names an interpreter
that has it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.formats.exporters.export import exporters, stored_runs
from agenteval_tui.history.store import Store

Import = Callable[..., Any]
_OWN = sys.executable if importlib.util.find_spec("inspect_ai") is not None else ""
PYTHON = os.environ.get("AGENTEVAL_INSPECT_PYTHON", _OWN)

TALK = [
    {"role": "system", "content": "be good"},
    {"role": "user", "content": "Where is it?"},
    {"role": "assistant", "content": "", "reasoning_content": "look", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "not JSON"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "r"},
    {"role": "tool", "tool_call_id": "c2", "content": "no such tool", "is_error": True},
    {"role": "user", "content": "And?", "name": "someone"},
    {"role": "assistant", "content": "On its way."},
]  # fmt: skip


def written(store: Store, imported: Import, path: Path) -> Path:
    lines = [{"messages": TALK, "id": "where", "repetition": number, "model": "m/x"} for number in (1, 2)]
    _, runs = imported("\n".join(map(json.dumps, lines)))
    path.write_text("".join(exporters()["inspect"].pieces(stored_runs(store, [row for row, _ in runs]))), "utf-8")
    return path


def test_the_log_has_samples_epochs_and_the_conversation(store: Store, imported: Import, tmp_path: Path) -> None:
    log = json.loads(written(store, imported, tmp_path / "log.json").read_text("utf-8"))
    assert [(one["id"], one["epoch"]) for one in log["samples"]] == [("where", 1), ("where", 2)]
    assert log["results"]["total_samples"] == 2
    messages = log["samples"][0]["messages"]
    assert [one["role"] for one in messages] == ["system", "user", "assistant", "tool", "tool", "user", "assistant"]
    first, second = messages[2]["tool_calls"]
    assert (first["function"], first["arguments"]) == ("f", {"x": 1})
    assert (second["arguments"], second["parse_error"]) == ({}, "not JSON")
    assert messages[4]["error"]["message"] == "no such tool"


def test_nothing_to_export_is_an_empty_log(tmp_path: Path) -> None:
    log = json.loads("".join(exporters()["inspect"].pieces([])))
    assert log["samples"] == []


READ = """
import json, sys
from inspect_ai.log import read_eval_log
log = read_eval_log(sys.argv[1])
print(json.dumps([[s.id, s.epoch, s.output.completion, [[m.role, m.text] for m in s.messages],
                   [[c.function, c.arguments] for m in s.messages for c in (getattr(m, "tool_calls", None) or [])],
                   {k: v.value for k, v in (s.scores or {}).items()}] for s in log.samples]))
"""


@pytest.mark.skipif(not PYTHON, reason="inspect_ai is not installed, and AGENTEVAL_INSPECT_PYTHON names no interpreter")
def test_inspect_reads_the_log(store: Store, imported: Import, tmp_path: Path) -> None:
    path = written(store, imported, tmp_path / "log.json")
    said = subprocess.run([PYTHON, "-c", READ, str(path)], capture_output=True, text=True, check=True, cwd=tmp_path)
    first, second = json.loads(said.stdout)
    assert first[:3] == ["where", 1, "On its way."]
    assert second[1] == 2
    assert first[3][1] == ["user", "Where is it?"]
    assert first[4] == [["f", {"x": 1}], ["g", {}]]
