"""How people come to the program: its commands, other packages of that name, Windows, make, a release, an image."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval_tui.cli.commands import doctor
from agenteval_tui.core import installed_packages
from agenteval_tui.core.installed_packages import CommandState, command_states
from agenteval_tui.core.platforms import ON_WINDOWS
from agenteval_tui.core.version import __version__

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


# The commands


def test_both_commands_start_the_program() -> None:
    scripts = PROJECT["project"]["scripts"]
    assert scripts == dict.fromkeys(("agenteval", "agenteval-tui"), "agenteval_tui.__main__:main")
    assert set(scripts) == set(installed_packages.COMMANDS)


def test_what_is_required_is_listed_once() -> None:
    """Of two lower bounds of one package, one is not true, and the lowest versions can't be installed together."""
    lists = {"dependencies": PROJECT["project"]["dependencies"], **PROJECT["project"]["optional-dependencies"]}
    for where, required in lists.items():
        names = [re.split(r"[^\w.-]", one, maxsplit=1)[0].lower() for one in required]
        assert len(names) == len(set(names)), where


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of scripts of an environment that has both commands; PATH has no other folder."""
    scripts = tmp_path / "env" / "bin"
    scripts.mkdir(parents=True)
    for name in installed_packages.COMMANDS:
        script(scripts / name, "from agenteval_tui.__main__ import main")
    monkeypatch.setattr(installed_packages.sysconfig, "get_path", lambda name: str(scripts))
    monkeypatch.setenv("PATH", str(scripts))
    return scripts


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/usr/bin/python3\n{text}\n", "utf-8")
    path.chmod(0o755)


def said() -> list[str]:
    return [f"{one.state}: {one.message}; {one.fix}" for one in doctor._command()]


def test_nothing_is_said_where_the_command_is_ours(environment: Path, tmp_path: Path, monkeypatch: Any) -> None:
    assert said() == []
    # pipx and uv link the script; pyenv and asdf have shims; and an environment need not be on PATH.
    linked = tmp_path / "links"
    linked.mkdir()
    (linked / "agenteval").symlink_to(environment / "agenteval")
    shims = tmp_path / "shims"
    script(shims / "agenteval", "exec pyenv")
    for path in (f"{linked}:{environment}", f"{shims}:{environment}", "/nowhere"):
        monkeypatch.setenv("PATH", path)
        assert said() == [], path


def test_another_command_that_comes_first_on_path_is_named(environment: Path, tmp_path: Path, monkeypatch: Any) -> None:
    script(tmp_path / "first" / "agenteval", "from agenteval.cli import main")
    monkeypatch.setenv("PATH", f"{tmp_path / 'first'}:{environment}")
    (line,) = said()
    assert line.startswith(
        f"warning: another `agenteval` comes first on PATH: {tmp_path}/first/agenteval; this one is "
    )
    assert f"put {environment} first on PATH, or: start this program with agenteval-tui" in line


def test_another_package_that_owns_the_script_or_the_module_is_named(
    environment: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    site = tmp_path / "site"
    info = site / "agenteval-0.9.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: agenteval\nVersion: 0.9\n", "utf-8")
    (info / "entry_points.txt").write_text("[console_scripts]\nagenteval = agenteval.cli:main\n", "utf-8")
    (site / "agenteval").mkdir()
    (site / "agenteval" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(site))
    module = f"`import agenteval` gives another package's module: {site}/agenteval/__init__.py; in Python: "
    assert [line.removeprefix("warning: ").partition(" its next update")[0] for line in said()] == [
        "agenteval 0.9 installs `agenteval` too:", f"{module}import agenteval_tui as agenteval",
    ]  # fmt: skip
    script(environment / "agenteval", "from agenteval.cli import main")
    assert said()[0].startswith("warning: `agenteval` starts agenteval 0.9, which replaced our script: ")
    assert [one.starts_ours for one in command_states()] == [False, True]


def test_a_command_that_is_not_on_path_is_not_shadowed() -> None:
    assert not CommandState("agenteval", "/env/bin/agenteval", "", starts_ours=True).shadowed


# Windows


def test_a_start_on_windows_ends_with_a_sentence_before_anything_of_unix_is_imported() -> None:
    unix = ("fcntl", "termios", "tty", "pty", "pwd", "grp", "resource")
    code = (
        "import sys\nsys.platform = 'win32'\n"
        f"sys.modules.update(dict.fromkeys({unix}))\n"
        "from agenteval_tui.__main__ import main\ncodes = [main([]), main(['run', 'x'])]\n"
        "import agenteval_tui\n"
        "try:\n    agenteval_tui.load\nexcept ImportError as error:\n    print(codes, error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=250, check=True,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    assert "WSL" in ON_WINDOWS
    assert done.stderr == f"agenteval: {ON_WINDOWS}\n" * 2
    assert done.stdout == f"[2, 2] agenteval: {ON_WINDOWS}\n"


# make


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_takes_the_newest_python_that_is_new_enough_and_works(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("make", "sh", "ls", "grep", "sort", "tail", "cut"):
        found = shutil.which(name)
        assert found is not None
        (tools / name).symlink_to(found)

    def python(name: str, code: str) -> None:
        file = tmp_path / "pythons" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"#!/bin/sh\n{code}\n", "utf-8")
        file.chmod(0o755)

    def chosen() -> subprocess.CompletedProcess[str]:
        names = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "PYTHON"))}
        return subprocess.run(
            ["make", "--no-print-directory", "-C", str(ROOT), "python"], capture_output=True, text=True, check=False,
            env={**names, "PATH": f"{tmp_path / 'pythons'}:{tools}"}, timeout=250,
        )  # fmt: skip

    python("python3", "exit 127")  # as a shim of pyenv for a version that is not active
    python("python3.10", "exit 0")  # too old: it prints nothing
    none = chosen()
    assert none.returncode == 2
    assert "agenteval needs Python 3.11 or newer, with venv and pip, and there is none on PATH" in none.stderr
    real = os.path.realpath(sys.executable)
    python("python3", f'exec {real} "$@"')
    assert os.path.realpath(chosen().stdout.strip()) == real, "the real one, asked for its version"
    python("python3.98", "echo 98 /opt/a python/bin/python3.98")
    python("python3.9", "echo 9 /usr/bin/python3.9")
    python("python3.99", "exit 1")
    assert chosen().stdout == "/opt/a python/bin/python3.98\n", "98 is more than 9"


# A release, and CI


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_pin_their_actions_and_have_few_rights(path: Path) -> None:
    """Also checked by actionlint, where somebody has it."""
    text = path.read_text("utf-8")
    workflow: dict[Any, Any] = yaml.safe_load(text)
    uses = re.findall(r"uses: (.+)", text)
    assert uses
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) for one in uses), uses
    assert workflow["permissions"] in ({}, {"contents": "read"})
    assert all("timeout-minutes" in job for job in workflow["jobs"].values())
    if actionlint := shutil.which("actionlint"):
        done = subprocess.run([actionlint, str(path)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_a_release_builds_tries_attests_and_then_publishes_without_a_secret() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8")
    jobs = yaml.safe_load(text)["jobs"]
    assert [(name, job.get("needs")) for name, job in jobs.items()] == [
        ("build", None), ("attest", "build"), ("publish", "attest"),
    ]  # fmt: skip
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert "secrets." not in text
    # The step that compares the tag with the version, as it is written there.
    (check,) = [one["run"] for one in jobs["build"]["steps"] if one.get("name") == "The tag is the version"]
    for tag, code in ((f"v{__version__}", 0), ("v99.0.0", 1)):
        done = subprocess.run(["bash", "-e", "-c", check], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag},
                              capture_output=True, check=False)  # fmt: skip
        assert done.returncode == code, tag
    assert PROJECT["project"]["version"] == __version__


def test_ci_runs_every_python_that_the_package_names() -> None:
    named = [one.rpartition(" ")[2] for one in PROJECT["project"]["classifiers"] if " :: 3." in one]
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]["test"]["strategy"]
    assert matrix["matrix"]["python"] == named == ["3.11", "3.12", "3.13", "3.14"]


# The image, and what shells complete


def test_the_image_has_what_the_package_is_built_from_and_runs_as_a_user() -> None:
    lines = (ROOT / "Dockerfile").read_text("utf-8").splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 1000"]
    assert lines.index("USER 1000") < lines.index('ENTRYPOINT ["agenteval"]')
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    built = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    needed = {one.partition("/")[0] for one in (*built["packages"], *built["force-include"], *built["shared-data"])}
    assert needed | {"docs", "README.md", "LICENSE", "pyproject.toml"} <= kept
    if hadolint := shutil.which("hadolint"):
        done = subprocess.run([hadolint, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_completion_is_in_the_wheel_and_in_the_sdist() -> None:
    targets = PROJECT["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["force-include"]["completions"] == "agenteval_tui/bundled/completions"
    assert "completions" in targets["sdist"]["include"]
    assert {Path(one).name for one in targets["wheel"]["shared-data"]} == {
        path.name for path in (ROOT / "completions").iterdir()
    }
