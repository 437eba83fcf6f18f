"""Which files a child of Python tells that it read: the project's, however many others were opened before."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval_tui.agents.process import python_effects

CHILD = """\
import importlib.util, json, os, sys
tool, others, agent, data = sys.argv[1:]
sys.path.insert(0, tool)
from python_effects import Effects
effects = Effects()
effects.on = True
for number in range(2_100):
    open(os.path.join(others, str(number), "text")).close()
    if "site-packages" in others:
        os.listdir(os.path.join(others, str(number)))
spec = importlib.util.spec_from_file_location("loaded", agent)
spec.loader.exec_module(importlib.util.module_from_spec(spec))
os.listdir(data)
print(json.dumps(effects.files()))
"""


@pytest.mark.parametrize("others", ["lib/site-packages/big", "project/records"])
def test_the_projects_own_files_are_told_after_thousands_of_others(tmp_path: Path, others: str) -> None:
    """A file that is loaded by its path is in no `sys.modules`; only that it is opened tells of it."""
    project, data = tmp_path / "project", tmp_path / "project" / "data"
    data.mkdir(parents=True)
    agent = project / "agent.py"
    agent.write_text("ANSWER = 3\n")
    for number in range(2_100):
        path = tmp_path / others / str(number) / "text"
        path.parent.mkdir(parents=True)
        path.write_text("")
    tool = Path(python_effects.__file__).parent
    paths = [str(path) for path in (tool, tmp_path / others, agent, data)]
    done = subprocess.run([sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=True)
    files, folders = json.loads(done.stdout)
    assert str(agent) in files
    assert str(data) in folders
