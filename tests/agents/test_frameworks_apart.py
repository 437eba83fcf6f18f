"""Real agents of frameworks in environments of their own (`framework_runs`), through the kind `python`. Each framework
plays all of its cases in one process."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
from framework_runs import (
    FOLDER,
    authors_of,
    interpreter_of,
    played_with_model,
)
from packaging.requirements import Requirement


def run_tests_of(name: str, *files: str) -> None:
    """Runs test files in the environment of this name, where agenteval is installed too."""
    python, root = interpreter_of(name), Path(__file__).parents[2]
    options = ("-q", "-p", "no:cacheprovider", "-W", "ignore")
    ran = subprocess.run([python, "-m", "pytest", *options, *files], cwd=root, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-4000:]


def test_litellm_has_its_tests_in_its_own_environment() -> None:
    """It needs an `openai` that the agents of OpenAI can't be with."""
    run_tests_of("litellm", "tests/extensions/litellm/test_agent.py")


@pytest.mark.parametrize("name", ["mcp", "mcp-lowest"])
def test_tools_of_mcp_and_the_server_work_with_the_first_version_of_the_package(name: str) -> None:
    run_tests_of(name, "tests/agents/test_mcp.py", "tests/extensions/mcp/test_server.py")


def test_the_lowest_version_of_mcp_is_the_one_that_is_tried() -> None:
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    (needed,) = project["optional-dependencies"]["mcp"]
    tried = (FOLDER / "install.py").read_text("utf-8")
    (lowest,) = [each.version for each in Requirement(needed).specifier if each.operator == ">="]
    assert f'"mcp=={lowest}.0"' in tried


def test_the_extra_leaves_frameworks_the_version_of_mcp_that_they_need() -> None:
    """Each is the newest that its environment could get; a range without it makes resolvers take an old framework."""
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
    (needed,) = project["optional-dependencies"]["mcp"]
    asked = "import importlib.metadata as m; print(m.version('mcp'))"
    versions = {}
    for python in sorted(Path(os.environ.get("AGENTEVAL_FRAMEWORKS", "/nowhere")).glob("*/bin/python")):
        ran = subprocess.run([python, "-c", asked], capture_output=True, text=True)
        if ran.returncode == 0:
            versions[python.parts[-3]] = ran.stdout.strip()
    if not versions:
        pytest.skip("AGENTEVAL_FRAMEWORKS names no folder with a framework that has mcp")
    assert {name: version for name, version in versions.items() if version not in Requirement(needed).specifier} == {}


HANDED = ["transfer_to_shop", "find"]
LANGGRAPH_SEVERAL = {
    "swarm": (["desk", "shop", "shop"], HANDED, 40),
    "supervisor": (["desk", "shop", "shop", "shop", "desk"], [*HANDED, "transfer_back_to_desk"], 60),
    "streamed": (["desk", "shop", "shop", "shop", "desk"], [*HANDED, "transfer_back_to_desk"], 60),
}


@pytest.fixture(scope="module")
def langgraph_several() -> Any:
    return played_with_model("langgraph-several", "langgraph_swarm", tuple(LANGGRAPH_SEVERAL))


@pytest.mark.xdist_group("langgraph_several")
@pytest.mark.parametrize("name", LANGGRAPH_SEVERAL)
def test_supervisors_and_swarms_of_langgraph_say_which_agent_wrote(langgraph_several: Any, name: str) -> None:
    assert langgraph_several[0][name].raised == ""
    transcript = langgraph_several[0][name].transcript
    authors, calls, tokens = LANGGRAPH_SEVERAL[name]
    assert (authors_of(transcript), [call.name for call in transcript.tool_calls]) == (authors, calls)
    assert (transcript.final_output, transcript.notes) == ("3 pairs", ())
    assert transcript.usage.input_tokens == tokens
