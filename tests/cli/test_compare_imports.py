"""Imports of one eval are compared by test, whatever their files are called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def tau(task: int, trial: int, reward: float, said: str = "hi") -> dict[str, Any]:
    return {
        "task_id": task, "trial": trial, "reward": reward,
        "info": {"task": {"actions": [{"name": "book", "kwargs": {"n": task}}]}},
        "traj": [{"role": "user", "content": said}, {"role": "assistant", "content": "done"}],
    }  # fmt: skip


def chat(said: str, answer: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]}


def brought(cli: Any, path: Path, content: Any) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content), "utf-8")
    return str(cli("import", path, "--json").json("import")[0]["execution"])


def test_two_files_of_one_eval(cli: Any, tmp_path: Path) -> None:
    was = brought(cli, tmp_path / "a" / "results.json", [tau(1, 0, 1.0), tau(2, 0, 1.0), tau(3, 0, 0.0)])
    now = brought(cli, tmp_path / "b" / "results-2.json", [tau(1, 0, 0.0, "hello"), tau(2, 0, 1.0), tau(4, 0, 0.0)])
    document = cli("compare", was, now, "--json").json("compare")
    assert {one["test"]: one["state"] for one in document["tests"]} == {
        "1": "worse", "2": "same", "3": "removed", "4": "added"
    }  # fmt: skip
    assert document["paired_suites"] == [
        {
            "was": "import:tau-bench:results.json",
            "now": "import:tau-bench:results-2.json",
            "by": "tests",
            "asked_alike": True,
        }
    ]
    note = "imports of two files: the tests of results.json are paired by id with those of results-2.json"
    assert document["notes"][0] == note
    assert note in cli("compare", was, now).out
    assert note[1:] in cli("compare", was, now, "--md").out
    assert document["tests"][0]["attribution"] is not None


def test_the_same_file_name_needs_no_pairing(cli: Any, tmp_path: Path) -> None:
    was = brought(cli, tmp_path / "a" / "r.json", [tau(1, 0, 1.0)])
    now = brought(cli, tmp_path / "b" / "r.json", [tau(1, 0, 0.0)])
    document = cli("compare", was, now, "--json").json("compare")
    assert document["paired_suites"] == []
    assert document["counts"] == {"worse": 1}


def test_files_that_ask_other_things_are_doubted(cli: Any, tmp_path: Path) -> None:
    """Many tools number their tests from one."""
    was = brought(cli, tmp_path / "one.jsonl", [chat("What is 1 + 1?", "2"), chat("And 2 + 2?", "4")])
    now = brought(cli, tmp_path / "other.jsonl", [chat("Who wrote Faust?", "Goethe"), chat("And Emma?", "Austen")])
    document = cli("compare", was, now, "--json").json("compare")
    assert [one["asked_alike"] for one in document["paired_suites"]] == [False]
    assert "check that both files come from the same eval" in cli("compare", was, now).out


def test_imports_without_a_test_in_common(cli: Any, tmp_path: Path) -> None:
    was = brought(cli, tmp_path / "a.json", [tau(1, 0, 1.0)])
    now = brought(cli, tmp_path / "b.json", [tau(2, 0, 1.0)])
    refused = cli("compare", was, now)
    assert refused.code == 2
    assert "no test in common" in refused.err
