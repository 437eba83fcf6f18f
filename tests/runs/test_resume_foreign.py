"""What somebody else's history says is to be run here is run when a person has said so, and not before."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.core import directories
from agenteval_tui.core.ids import now_ms
from agenteval_tui.history.merge import merge_history
from agenteval_tui.history.store import Store
from agenteval_tui.history.task_specs import pack
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_untrusted_plan
from agenteval_tui.runs.resume import resume_plan
from agenteval_tui.runs.store_records import begin
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.suites.trust import Trust

PROGRAM = {"kind": "command", "command": ["sh", "-c", "touch owned"]}
TEXT = {
    "name": "c",
    "prototype_class": "TextResponse",
    "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "a"}]},
}


@pytest.fixture
def left(tmp_path: Path) -> Callable[..., Path]:
    """A history with an execution that was stopped before anything ended."""

    def make(suite: Path, agents: Mapping[str, AgentConfig] | None = None) -> Path:
        path = tmp_path / "theirs.db"
        plan = make_untrusted_plan([load_suite(suite)], PlanOptions(), user_agents=agents or {})
        with Store.open(path) as theirs:
            begin(theirs, plan, now_ms()).result()
            theirs.end_execution(plan.execution_id, "stopped").result()
        return path

    return make


def suite_at(folder: Path, agent: dict[str, Any] | None) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    data = {"name": "S", "agent": "bot", "tests": [{"id": "t", "prompt": "hi", "criteria": [TEXT]}]}
    path = folder / "s.suite.yaml"
    path.write_text(json.dumps({**data, **({"agents": {"bot": agent}} if agent else {})}), "utf-8")
    return path


def refused(store: Store) -> str:
    with pytest.raises(NotTrustedError) as error:
        resume_plan(store, "last")
    assert resume_plan(store, "last", PlanOptions(trust=True)).plan.permission.trusted, "a person may say so"
    return str(error.value)


def test_a_folder_that_is_trusted_does_not_speak_for_another_history(tmp_path: Path, left: Callable[..., Path]) -> None:
    """Its tasks may say another command than the folder's files do."""
    suite = suite_at(tmp_path / "suites", PROGRAM)
    theirs = left(suite)
    suite_at(tmp_path / "suites", {"kind": "command", "command": ["true"]})
    Trust.load().trust(suite.parent)
    with Store.open(tmp_path / "mine.db") as mine:
        merge_history(mine, theirs)
        said = refused(mine)
    assert "touch owned" in said
    assert "came with another history" in said
    with Store.open(theirs) as own:  # of an own history the folder's trust counts, as before
        assert resume_plan(own, "last").plan.permission.trusted


def test_what_the_user_wrote_is_told_by_the_users_file(tmp_path: Path, left: Callable[..., Path]) -> None:
    """A history may say that the user's own file has an agent."""
    suite = suite_at(tmp_path / "suites", None)
    directories.config_dir().mkdir(parents=True, exist_ok=True)
    theirs = left(suite, {"bot": AgentConfig.model_validate(PROGRAM)})
    with Store.open(theirs) as own:
        assert "touch owned" in refused(own)
    with Store.open(tmp_path / "mine.db") as mine:
        merge_history(mine, theirs)
        assert "touch owned" in refused(mine)


def test_bundled_folders_do_not_speak_for_it_either(tmp_path: Path, left: Callable[..., Path]) -> None:
    suite = suite_at(tmp_path / "suites", PROGRAM)
    theirs = left(suite)
    bundled = str(directories.bundled("sample_suites"))
    with Store.open(tmp_path / "mine.db") as mine:
        merge_history(mine, theirs)
        setup = mine.setup_of(mine.execution("last").id)
    said = pack(json.loads(json.dumps(setup).replace(str(suite.parent), bundled))).data
    with sqlite3.connect(tmp_path / "mine.db") as direct:
        direct.execute("UPDATE tasks SET data = ? WHERE id = (SELECT setup FROM executions)", (said,))
    direct.close()
    with Store.open(tmp_path / "mine.db") as mine:
        assert "touch owned" in refused(mine)
