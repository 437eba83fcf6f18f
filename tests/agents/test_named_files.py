"""Every file that a command names is found, however it is named and wherever it lies."""

from __future__ import annotations

import os
import py_compile
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.agents.process.python_host import start_host

SH = Path(shutil.which("sh") or "").resolve()
ENV = Path(shutil.which("env") or "").resolve()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the suite's, with programs of all kinds."""
    folder = tmp_path / "outside"
    (folder / "app").mkdir(parents=True)
    for name in ("agent.sh", "agent.txt", "config.json", "app/__main__.py", "app/more.py", "lib.so"):
        (folder / name).write_text("true\n")
    (folder / "agent.sh").write_text("#!/usr/bin/env sh\ntrue\n")
    (folder / "agent.sh").chmod(0o755)
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "link.sh").symlink_to("../outside/agent.txt")
    return folder


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"command": ["{outside}/agent.sh"]}, ["agent.sh", SH, ENV]),
        ({"command": "{outside}/agent.sh --fast"}, ["agent.sh"]),
        ({"command": ["sh", "{outside}/agent.txt"]}, ["agent.txt", SH]),
        ({"command": "sh ../outside/agent.txt"}, ["agent.txt"]),
        ({"command": ["sh", "link.sh"]}, ["agent.txt"]),
        ({"command": ["sh", "-c", ". {outside}/agent.txt; true"]}, ["agent.txt"]),
        ({"command": "cat x | {outside}/agent.sh > y", "shell": True}, ["agent.sh"]),
        ({"command": "x=$({outside}/agent.sh)", "shell": True}, ["agent.sh"]),
        ({"command": ["sh", "x", "--config={outside}/config.json"]}, ["config.json"]),
        ({"command": ["sh", "@{outside}/config.json"]}, ["config.json"]),
        ({"command": ["python3", "{outside}/app"]}, ["app/__main__.py", "app/more.py"]),
        ({"command": ["sh", "x"], "env": {"LD_PRELOAD": "{outside}/lib.so"}}, ["lib.so"]),
        ({"command": ["sh", "x"], "env": {"PYTHONPATH": "{outside}/app"}}, ["app/more.py"]),
        ({"command": ["sh", "${{NOPE:-{outside}/agent.txt}}"]}, ["agent.txt"]),
        ({"command": ["agent.sh"], "env": {"PATH": "{outside}"}}, ["agent.sh"]),
        ({"kind": "python", "callable": "m:f", "python": "{outside}/agent.sh"}, ["agent.sh"]),
        ({"kind": "openai", "tools": [{"name": "t", "command": ["{outside}/agent.sh"]}]}, ["agent.sh"]),
        ({"kind": "openai", "tools": [{"mcp": {"command": "{outside}/agent.sh stdio"}}]}, ["agent.sh"]),
        ({"kind": "openai", "tools": [{"name": "t", "python": "m:f", "path": ["{outside}/app"]}]}, ["app/more.py"]),
    ],
)  # fmt: skip
def test_what_a_command_names(outside: Path, tmp_path: Path, config: dict[str, Any], named: list[Any]) -> None:
    config = {"kind": "command", **_filled(config, outside)}
    found = files_of_agent(config, tmp_path / "suite")
    for one in named:
        assert (one if isinstance(one, Path) else (outside / one).resolve()) in found


def _filled(value: Any, outside: Path) -> Any:
    if isinstance(value, str):
        return value.replace("{outside}", str(outside)).replace("${{", "${").replace("}}", "}")
    if isinstance(value, dict):
        return {key: _filled(one, outside) for key, one in value.items()}
    if isinstance(value, (list, set)):
        return [_filled(one, outside) for one in value]
    return value


@pytest.mark.parametrize("command", ["", [], "'", ["\0"], ["x" * 100_000], ["~nobody/x"], [{"a": 1}]])
def test_what_is_no_command_names_nothing(tmp_path: Path, command: Any) -> None:
    assert files_of_agent({"kind": "command", "command": command}, tmp_path) == ()


def test_what_a_shell_writes_to_is_not_among_them(tmp_path: Path) -> None:
    for name in ("x.log", "y.txt", "agent.txt", "read.txt"):
        (tmp_path / name).write_text("true\n")

    def found(text: str) -> set[str]:
        config = {"kind": "command", "command": text, "shell": True}
        return {file.name for file in files_of_agent(config, tmp_path)} - {SH.name}

    assert found("sh agent.txt > y.txt 2>>x.log") == {"agent.txt"}
    assert found("sh agent.txt < read.txt >| y.txt; sh x.log > x.log") == {"agent.txt", "read.txt", "x.log"}


@pytest.mark.parametrize("interpreter", [None, sys.executable])
async def test_bytecode_is_used_and_written_as_by_python_itself(tmp_path: Path, interpreter: str | None) -> None:
    (tmp_path / "checks.py").write_text("def good(value): return 1\n")
    (tmp_path / "kept.py").write_text("def good(value): return 6\n")
    cached = tmp_path / "__pycache__" / f"kept.{sys.implementation.cache_tag}.pyc"
    py_compile.compile(
        str(tmp_path / "kept.py"), str(cached), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH
    )
    (tmp_path / "kept.py").write_text("def good(value): return 0\n")
    allowed = permission_for((), everything=True)
    async with await start_host(tmp_path, dict(os.environ), permission=allowed, interpreter=interpreter) as host:
        offered = {"transcript": {}, "expected": None, "variables": {}}
        asked = {"value": 1, "arguments": {}, "offered": offered}
        assert await host.call("metric", "checks:good", **asked) == 1
        assert await host.call("metric", "kept:good", **asked) == 6
    tag = sys.implementation.cache_tag
    assert sorted(file.name for file in cached.parent.iterdir()) == [f"checks.{tag}.pyc", f"kept.{tag}.pyc"]
