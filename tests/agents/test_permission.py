"""There is one trust check, and no second way in: who calls what is listed here, and a new caller fails."""

from __future__ import annotations

import ast
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from sources import modules, of_all_sources

from agenteval_tui.agents.permission import NOTHING, NotTrustedError, Permission, Use, permission_for
from agenteval_tui.agents.process.child_process import start
from agenteval_tui.agents.registry import make_agent, make_embedder
from agenteval_tui.core import directories

# What makes something that can act or send, and the modules that may call it. Each of them passes on a permission that
# it was given, or gets one from the check. A new module in this table is a new way in: give it a permission of
# `runs.trust_check`, and say here that it has.
WAYS_IN = {
    "make_agent": {
        "runs/judge_client.py",
        "runs/agent_factory.py",
        "runs/agent_pool.py",
        "extensions/dask/worker.py",
        "runs/fork/request.py",  # asks nobody: it writes down what would be sent
    },
    "make_embedder": {"runs/judge_client.py"},
    "call_function": {"runs/judge_client.py"},
    # Of these, `runs/debug.py` asks for the permission itself, before it reads the agent's options.
    "AgentSetup": {"agents/registry.py", "extensions/demo/shop/record.py", "runs/debug.py"},
    "make_toolbox": {"agents/models/loop.py"},
    "McpServer": {"agents/tools/toolset.py"},
    "CommandTool": {"agents/tools/toolset.py"},
    "PythonTools": {"agents/tools/toolset.py"},
    "start_host": {"agents/process/python_tree.py"},
    "Lease": {
        "agents/process/python.py",
        "agents/tools/mcp.py",
        "agents/tools/python.py",
        "formats/importers/prompt_functions.py",
        "runs/around/hooks.py",
        "runs/change/check.py",  # keeps what others start from one check to the next
        "runs/judge_client.py",
        "runs/state_probes.py",
    },
    "start": {
        "agents/probes/probe.py",
        "agents/process/command.py",
        "agents/tools/command.py",
        "agents/tools/mcp.py",
        "agents/process/python_host.py",
        "runs/around/hooks.py",
        "runs/around/services.py",
    },
    "JudgeClient": {
        "analysis/judge_repeatability.py",
        "api/grading.py",
        "cli/commands/grade.py",
        "runs/grading_pool.py",
    },
    # What hands out a permission.
    "Permission": {"agents/permission.py"},
    "permission_for": {
        "cli/mcp_shim.py",  # a program that the user typed
        "runs/trust_check.py",
    },
    "permission_from_json": {"extensions/dask/task_codec.py"},
    "check_trust": {
        "api/recordings.py",
        "cli/trust_prompt.py",
        "runs/fork/plan.py",
        "runs/plan/planner.py",
        "runs/recorded_program.py",
        "runs/resume.py",
        "tui/recordings.py",
        "tui/workspace.py",
    },
    "check_asking": {"api/grading.py", "cli/commands/grade.py", "cli/commands/judge_report.py"},
    "check_agents": {
        "cli/commands/agents.py",
        "runs/recorded_program.py",  # a program that the user typed
        "tui/screens/agents_controller.py",
    },
    # What speaks with servers.
    "AsyncClient": {"agents/http/connection_pool.py", "agents/tools/mcp_package.py"},
    "Connections": {
        "agents/http/agent.py",
        "agents/models/loop.py",
        "agents/price_update.py",  # an address that the user typed, with no key
        "agents/recording/proxy.py",  # for a program that sends its own key
        "runs/state_probes.py",  # addresses of probes
    },
}

PROCESSES = {
    "agents/process/child_process.py": "subprocess_exec",  # with a permission
    "agents/process/python_threads.py": "fork",  # in a program that was started with a permission
    "agents/process/python_fork.py": "fork",  # in a program that was started with a permission
    "agents/process/orphans.py": "Popen",  # our own script
    "agents/process/orphan_reaper.py": "run",  # the system's ps
    "agents/recording/program.py": "create_subprocess_exec",  # with a permission
    "cli/mcp_shim.py": "Popen",  # with a permission
    "runs/client.py": "Popen",  # directories.own_command
    "suites/commits.py": "Popen",  # git, with words of our own that run nothing of the folder
    "suites/samples.py": "run",  # git, in a folder of our own
    "tui/code_watch.py": "create_subprocess_exec",  # directories.own_command
    "tui/external_programs.py": "run",  # the person's own editor
}
INTERPRETERS = {
    "agents/process/python_debug.py",  # names it only
    "runs/debug.py",
    "core/directories.py",  # own_command: with -P
    "agents/process/project_interpreter.py",  # only names it: python_host starts it, with -P
    "agents/process/python_host.py",  # with -P
    "agents/process/orphans.py",  # with -I
}
MODULES_THAT_START = {"subprocess", "multiprocessing", "pty", "runpy", "code"}
CALLS_THAT_START = {
    *("Popen", "subprocess_exec", "subprocess_shell", "create_subprocess_exec", "create_subprocess_shell", "system"),
    *("popen", "spawnv", "spawnve", "spawnvp", "spawnl", "execv", "execve", "execvp", "execvpe", "execl", "execlp"),
    *("posix_spawn", "posix_spawnp", "fork", "forkpty", "startfile", "check_output", "check_call"),
}


@dataclass(frozen=True)
class Named:
    """By what a module names: the modules (as paths in the package)."""

    called: defaultdict[str, set[str]]  # the last part of what is called
    handed_on: defaultdict[str, set[str]]  # as a value, in a call
    imported: defaultdict[tuple[str, str], set[str]]  # (module, name in it, or nothing)
    attributes: defaultdict[tuple[str, str], set[str]]  # (name of what it is of, or nothing; attribute)

    def callers(self, name: str) -> set[str]:
        """The modules that call it, or hand it on as a value."""
        return self.called[name] | self.handed_on[name]

    def importers(self, start: str) -> set[str]:
        """The modules that import something of this package."""
        return {path for (module, _), paths in self.imported.items() if module.split(".")[0] == start for path in paths}


@cache
def named() -> Named:
    """All modules of the program, read once."""
    found = Named(*(defaultdict(set) for _ in range(4)))  # type: ignore[arg-type]
    for path, nodes in modules().items():
        if "bundled" in path.split("/"):
            continue
        for node in nodes:
            if isinstance(node, ast.Call):
                function = node.func
                called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
                found.called[called].add(path)
                for one in node.args:
                    if isinstance(one, ast.Name):
                        found.handed_on[one.id].add(path)
            elif isinstance(node, ast.Attribute):
                found.attributes[getattr(node.value, "id", ""), node.attr].add(path)
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    found.imported[alias.name, ""].add(path)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    found.imported[node.module or "", alias.name].add(path)
    return found


@of_all_sources
@pytest.mark.parametrize("name", WAYS_IN)
def test_who_makes_what_can_act(name: str) -> None:
    if name == "start":  # many an object has such a method
        found = named().imported["agenteval_tui.agents.process.child_process", "start"]
    else:
        found = named().callers(name)
    assert found == WAYS_IN[name]


@of_all_sources
def test_who_starts_processes() -> None:
    # Runs are forked by a function of ours, which starts nothing; the system's is one of `os`.
    ours = named().imported["agenteval_tui.runs.fork.edits", "fork"] - named().attributes["os", "fork"]
    called = [named().called[name] - (ours if name == "fork" else set()) for name in CALLS_THAT_START]
    imported = [named().importers(module) for module in MODULES_THAT_START]
    assert set().union(*called, *imported) == set(PROCESSES)


@of_all_sources
def test_who_names_an_interpreter() -> None:
    """A child of ours that is a Python starts with -P: nothing is imported from the folder it is started in."""
    found = named().attributes["sys", "executable"]
    assert found - {"cli/commands/doctor.py", "cli/commands/init.py"} == INTERPRETERS
    assert directories.own_command("m")[1:] == ["-P", "-m", "m"]


@of_all_sources
def test_nobody_else_makes_a_permission() -> None:
    with pytest.raises(TypeError):
        Permission(object(), everything=True)  # type: ignore[arg-type]
    for name in ("_KEY", "_Key"):
        assert {path for (_, one), paths in named().attributes.items() if one == name for path in paths} == set()
        assert {path for one, paths in named().imported.items() if name in one for path in paths} == set()


@pytest.mark.parametrize(
    "config",
    [
        {"kind": "command", "command": "touch was_here"},
        {"kind": "python", "callable": "a:b"},
        {"kind": "openai", "model": "m", "tools": [{"name": "t", "command": "x"}]},
        {"kind": "openai", "model": "m", "tools": [{"name": "t", "python": "m:f"}]},
        {"kind": "anthropic", "model": "m", "tools": [{"mcp": {"command": "x"}}]},
        {"kind": "openai", "model": "m", "base_url": "https://elsewhere.test", "api_key_env": "K"},
        {"kind": "http", "url": "https://elsewhere.test", "headers": {"a": "${K}"}},
        {"kind": "replay", "file": "../outside.jsonl"},
    ],
)
def test_what_nobody_asked_about_is_not_made(tmp_path: Path, config: dict[str, object]) -> None:
    with pytest.raises(NotTrustedError):
        make_agent("a", config, base_dir=tmp_path, env={"K": "value"})
    other = permission_for([Use(tmp_path / "other", ("x",))], everything=False, trust=_Trusting())
    with pytest.raises(NotTrustedError):
        make_agent("a", config, base_dir=tmp_path, env={"K": "value"}, permission=other)


def test_nor_an_embedder(tmp_path: Path) -> None:
    config = {"kind": "openai", "model": "m", "base_url": "https://elsewhere.test", "api_key_env": "K"}
    with pytest.raises(NotTrustedError):
        make_embedder("a", config, base_dir=tmp_path, env={"K": "value"})


async def test_nor_a_program_started(tmp_path: Path) -> None:
    with pytest.raises(NotTrustedError):
        await start(["touch", "was_here"], cwd=tmp_path, env={}, permission=NOTHING)
    assert not (tmp_path / "was_here").exists()


class _Trusting:
    """A list that trusts every folder."""

    def why_not(self, folder: Path, sends: object = ()) -> str:
        return ""
