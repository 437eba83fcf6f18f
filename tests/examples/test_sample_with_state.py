"""The sample suite that looks at the database: run as a person does, and its state where it goes with the runs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.history.store import Store

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "sample_suites" / "orders"


Agenteval = Callable[..., str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("orders")
    shutil.copytree(EXAMPLE, place, dirs_exist_ok=True)
    return place


@pytest.fixture(scope="module")
def agenteval(folder: Path, installed: Path) -> Agenteval:
    """What the command prints in the folder."""

    def run(*arguments: object, code: int = 0) -> str:
        done = subprocess.run(
            [installed / "agenteval", *map(str, arguments)],
            cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=250, check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="module")
def ran(agenteval: Agenteval) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(
        agenteval("run", ".", "--test", "cancel", "--trust", "--db", "h.db", "--json", "-", code=1)
    )
    return document


def test_the_answers_are_equal_and_the_states_are_not(ran: dict[str, Any]) -> None:
    cancelled, claimed = sorted(ran["runs"], key=lambda run: run["outcome"] != "passed")
    assert cancelled["final_output"] == claimed["final_output"]
    assert (cancelled["outcome"], claimed["outcome"]) == ("passed", "failed")
    outcomes = {one["criterion"]: one["outcome"] for one in claimed["criteria"]}
    assert outcomes == {
        "Says that it is cancelled": "passed",
        "The order was pending": "passed",
        "The order is cancelled in the database": "failed",
        "Only this order changed": "failed",
        "One mail is sent": "failed",
    }


def test_the_answer_is_right_and_the_state_is_not(agenteval: Agenteval) -> None:
    printed = agenteval("run", ".", "--test", "too-late", "--trust", "--db", "late.db", "--json", "-", code=1)
    (run,) = json.loads(printed)["runs"]
    outcomes = {one["criterion"]: one["outcome"] for one in run["criteria"]}
    assert outcomes == {
        "Says that it is too late": "passed",
        "No order changed": "failed",
        "No mail is sent": "passed",
    }


def states(db: Path) -> list[Any]:
    with Store.open(db) as store:
        (execution,) = store.executions()
        rows = sorted(store.runs_of_execution(execution.id), key=lambda row: row.variation)
        return [store.transcript(row.id).state for row in rows]


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["agenteval", "openai", "otel", "inspect", "atif", "tau-bench", "tau2-bench"])
def test_state_goes_with_a_file(
    agenteval: Agenteval, folder: Path, ran: dict[str, Any], form: str, tmp_path: Path
) -> None:
    file = tmp_path / f"runs.{'jsonl' if form in ('agenteval', 'openai') else 'json'}"
    agenteval("export", "last", file, "--format", form, "--db", "h.db")
    agenteval("import", file, "--db", tmp_path / "other.db", "-q")
    assert states(tmp_path / "other.db") == states(folder / "h.db")


def test_state_goes_with_a_history_and_a_shared_page(
    agenteval: Agenteval, folder: Path, ran: dict[str, Any], tmp_path: Path
) -> None:
    agenteval("db", "import", "h.db", "--db", tmp_path / "merged.db")
    assert states(tmp_path / "merged.db") == states(folder / "h.db")
    agenteval("share", "last", tmp_path / "page.html", "--db", "h.db")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "<b>state</b>" in page
    assert "mails/W1044.txt" in page


def test_show_and_why_say_it(agenteval: Agenteval, ran: dict[str, Any]) -> None:
    (failed,) = [run for run in ran["runs"] if run["outcome"] == "failed"]
    shown = agenteval("show", failed["run"], "--db", "h.db")
    assert "state order  unchanged" in shown
    document = json.loads(agenteval("show", failed["run"], "--db", "h.db", "--json"))
    found = json.dumps(document)
    assert '"name": "order"' in found
    assert '"before": {"value": "pending"}' in found
    assert "the state after the run" in agenteval("why", failed["run"], "--db", "h.db")
