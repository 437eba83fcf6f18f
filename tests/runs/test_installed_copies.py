"""Commands that run a copy of the project's code, as the records of installed packages tell (PEP 376 and 610)."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from agenteval_tui.runs.installed_copies import remedy_for_copy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "my shop"
    (folder / ".git").mkdir(parents=True)
    script = folder / ".venv" / "bin" / "shop"
    script.parent.mkdir(parents=True)
    script.write_text("#!/usr/bin/env python\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return folder


def installed(project: Path, origin: object, scripts: str = "../../../bin/shop,sha256=x,210\n") -> None:
    record = project / ".venv" / "lib" / "python3.12" / "site-packages" / "shop-0.1.dist-info"
    record.mkdir(parents=True)
    (record / "direct_url.json").write_text(origin if isinstance(origin, str) else json.dumps(origin))
    (record / "RECORD").write_text(f"shop/__init__.py,,\n{scripts}")


@pytest.mark.parametrize("command", [".venv/bin/shop ask", [".venv/bin/shop", "ask", "{{prompt}}"]])
def test_a_command_that_was_copied_from_the_project_names_how_to_link_it(project: Path, command: object) -> None:
    installed(project, {"url": project.as_uri(), "dir_info": {}})
    (project / "evals").mkdir()
    fix = remedy_for_copy({"kind": "command", "command": command}, project)
    python = project / ".venv" / "bin" / "python"
    assert fix == f"install it with links to the code: '{python}' -m pip install -e '{project}'"
    config = {"kind": "command", "command": command, "cwd": ".."}
    assert remedy_for_copy(config, project / "evals") == fix


@pytest.mark.parametrize(
    ("origin", "scripts"),
    [
        ({"dir_info": {"editable": True}}, "../../../bin/shop,,\n"),
        ({"dir_info": {}}, "../../../bin/other,,\n"),
        ({"url": "file:///elsewhere/shop", "dir_info": {}}, "../../../bin/shop,,\n"),
        ({"url": "https://example.com/shop.whl"}, "../../../bin/shop,,\n"),
        ("{broken", "../../../bin/shop,,\n"),
        ("[]", "../../../bin/shop,,\n"),
    ],
)
def test_what_is_no_copy_of_the_project_needs_nothing(project: Path, origin: object, scripts: str) -> None:
    if isinstance(origin, dict):
        origin = {"url": project.as_uri(), **origin}
    installed(project, origin, scripts)
    assert remedy_for_copy({"kind": "command", "command": ".venv/bin/shop ask"}, project) == ""


@pytest.mark.parametrize(
    "config", [{"kind": "command", "command": ""}, {"kind": "command", "command": "absent"}, {"kind": "python"}]
)
def test_what_is_no_command_needs_nothing(project: Path, config: dict[str, object]) -> None:
    installed(project, {"url": project.as_uri(), "dir_info": {}})
    assert remedy_for_copy(config, project) == ""
