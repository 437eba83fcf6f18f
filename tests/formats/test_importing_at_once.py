"""Two imports of one file at the same time bring it once, in threads and in processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agenteval_tui.formats.import_file import ImportReport, import_file
from agenteval_tui.history.store import Store

ROOT = Path(__file__).resolve().parents[2]


def recorded(path: Path, runs: int = 3) -> Path:
    lines = [
        {"id": f"t{number}", "messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
        for number in range(runs)
    ]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    return path


def check_once(db: Path, runs: int, reports: list[ImportReport]) -> None:
    with Store.open(db) as store:
        (execution,) = store.executions()
        assert (execution.status, execution.runs) == ("finished", runs)
        assert store.counts().runs == runs
    assert sorted(report.already for report in reports) == [False] + [True] * (len(reports) - 1)
    assert {report.execution_id for report in reports} == {execution.id}
    assert sorted(report.added for report in reports) == [0] * (len(reports) - 1) + [runs]


@pytest.mark.parametrize("names", [("a.jsonl", "a.jsonl"), ("a.jsonl", "b.jsonl"), ("a.jsonl", "b.jsonl", "c.jsonl")])
@pytest.mark.parametrize("one_store", [True, False])
def test_threads(tmp_path: Path, names: tuple[str, ...], one_store: bool) -> None:
    db = tmp_path / "h.db"
    paths = [recorded(tmp_path / name) for name in names]
    with Store.open(db) as shared:
        together = threading.Barrier(len(names))

        def work(path: Path) -> ImportReport:
            if one_store:
                return import_file(path, shared, on_progress=lambda *_: together.wait(250) and None)
            with Store.open(db) as own:
                # All have written their runs before the first of them ends.
                return import_file(path, own, on_progress=lambda *_: together.wait(250) and None)

        with ThreadPoolExecutor(len(names)) as pool:
            reports = list(pool.map(work, paths))
    check_once(db, 3, reports)
    with Store.open(db) as store:
        assert import_file(paths[0], store).already


IMPORTER = """
import json, sys
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store
waited = []
def wait(done, size):
    if not waited:
        waited.append(True)
        print("ready", flush=True)
        sys.stdin.readline()
with Store.open(sys.argv[2]) as store:
    report = import_file(sys.argv[1], store, on_progress=wait)
    print(json.dumps([report.already, report.execution_id, report.added]), flush=True)
"""


def test_processes(tmp_path: Path) -> None:
    db = tmp_path / "h.db"
    paths = [recorded(tmp_path / name) for name in ("a.jsonl", "b.jsonl")]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    given = [
        subprocess.Popen(
            [sys.executable, "-c", IMPORTER, str(path), str(db)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True,
        )
        for path in paths
    ]  # fmt: skip
    try:
        for one in given:
            assert one.stdout is not None
            assert one.stdout.readline() == "ready\n"  # its runs are written
        said = [json.loads(one.communicate("\n", timeout=250)[0]) for one in given]
    finally:
        for one in given:
            one.kill()
            one.communicate()
    check_once(db, 3, [ImportReport(uid, "openai", added, added, already=already) for already, uid, added in said])


def test_the_import_of_a_deleted_execution_comes_in_again(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl")
    with Store.open(tmp_path / "h.db") as store:
        store.delete_execution(import_file(path, store).execution_id).result()
        assert import_file(path, store).added == 3
