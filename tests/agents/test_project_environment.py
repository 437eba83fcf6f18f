"""Which Python a project's code runs with, where its modules are found, and what is said where one lacks something."""

from __future__ import annotations

import ast
import base64
import hashlib
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from programs import executable

from agenteval_tui.agents.base import AgentRequest, CheckReport
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process import project_environment as module
from agenteval_tui.agents.process import python_imports, python_start
from agenteval_tui.agents.process.environment_messages import remedy
from agenteval_tui.agents.process.framework_readers import reader_files
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.project_interpreter import is_older
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.transcripts.model import Message, Transcript

ALLOWED = permission_for((), everything=True)
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user without an active environment, in a home folder of their own."""
    for name in list(os.environ):
        if re.match(
            r"VIRTUAL_ENV|CONDA|UV_|POETRY|PIPENV|PYENV|WORKON_HOME|PDM|HATCH|XDG_(?!RUNTIME)|MAMBA|PIXI|OPENAI", name
        ):
            monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository."""
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "evals").mkdir()
    return root


def environment(prefix: Path, package: str = "", version: str = "", *, conda: bool = False) -> Path:
    """A virtual environment that runs, with a package in it. Returns its folder."""
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    if conda:
        (prefix / "conda-meta").mkdir()
        (prefix / "conda-meta" / f"python-{version or '3.11.7'}-h1_0.json").touch()
    if not conda or not version:
        home = Path(os.path.realpath(sys.executable)).parent
        (prefix / "pyvenv.cfg").write_text(f"home = {home}\nversion = {version or '3.11.7'}\n")
    packages = prefix / "lib" / f"python{MINOR}" / "site-packages"
    packages.mkdir(parents=True)
    if package:
        (packages / f"{package}.py").write_text(f"WHERE = {str(prefix)!r}\n")
    return prefix


def short(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()[:8]


async def run(folder: Path, **options: Any) -> Transcript:
    """One run of a Python agent of a suite in `folder`."""
    config = {"kind": "python", **options}
    agent = make_agent("tested", config, base_dir=folder, env=environment_for(folder, None, config), permission=ALLOWED)
    asked = AgentRequest((Message("user", "hello"),))
    recorder = Recorder(asked.messages)
    try:
        async for event in agent.run(asked):
            recorder.apply(event)
    finally:
        await agent.close()
    return recorder.transcript()


async def checked(folder: Path, **options: Any) -> CheckReport:
    config = {"kind": "python", **options}
    agent = make_agent("tested", config, base_dir=folder, env=environment_for(folder), permission=ALLOWED)
    try:
        return await agent.check()
    finally:
        await agent.close()


def answer(transcript: Transcript) -> str:
    assert transcript.error is None, transcript.error
    return transcript.final_output


# Which Python


def test_without_any_environment_the_code_runs_with_ours(project: Path) -> None:
    found = project_environment(project / "evals")
    assert (found.interpreter.source, found.program) == ("own", None)


@pytest.mark.parametrize("name", [".venv", "venv", "env"])
@pytest.mark.parametrize("place", [".", "evals"])
def test_the_nearest_virtual_environment_up_to_the_root_is_used(name: str, place: str, project: Path) -> None:
    environment(project.parent / ".venv")
    environment(project / place / name)
    found = project_environment(project / "evals")
    assert found.program == str((project / place / name).resolve() / "bin" / "python")
    assert found.interpreter.version == "3.11.7"


def test_the_nearer_one_wins(project: Path) -> None:
    environment(project / ".venv")
    environment(project / "evals" / "venv")
    assert project_environment(project / "evals").interpreter.prefix == project / "evals" / "venv"


def test_a_folder_of_that_name_without_an_environment_is_passed_over(project: Path) -> None:
    (project / "evals" / "env").mkdir()
    (project / "evals" / ".venv").touch()
    environment(project / "venv")
    assert project_environment(project / "evals").interpreter.prefix == project / "venv"


def test_the_active_environment_wins(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment(project / ".venv")
    monkeypatch.setenv("VIRTUAL_ENV", str(environment(tmp_path / "active")))
    found = project_environment(project)
    assert (found.interpreter.source, found.interpreter.prefix) == ("VIRTUAL_ENV", tmp_path / "active")
    named = project_environment(project, interpreter=".venv/bin/python")
    assert (named.interpreter.source, named.program) == ("option", ".venv/bin/python")


def test_an_active_environment_in_a_file_of_variables_is_not_active(project: Path, tmp_path: Path) -> None:
    (project / ".env").write_text(f"VIRTUAL_ENV={environment(tmp_path / 'other')}\n")
    assert project_environment(project).interpreter.source == "own"


def layouts() -> dict[str, Any]:
    """By tool: what writes the files of a project and says where its environment is, and the exported variables."""

    def uv(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "uv.lock").touch()
        return root / "made", {"UV_PROJECT_ENVIRONMENT": "made"}

    def poetry(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pyproject.toml").write_text('[tool.poetry]\nname = "My Shop"\n')
        parent = home / ".cache" / "pypoetry" / "virtualenvs"
        name = f"my_shop-{short(str(root))}"
        environment(parent / f"{name}-py3.9")
        parent.joinpath("envs.toml").write_text(f'["{name}"]\nminor = "{MINOR}"\npatch = "{MINOR}.1"\n')
        environment(parent / f"{name}-py3.99")
        return parent / f"{name}-py{MINOR}", {}

    def poetry_moved(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pyproject.toml").write_text(
            '[project]\nname = "shop"\n[build-system]\nbuild-backend = "poetry.core.x"\n'
        )
        return home / "envs" / f"shop-{short(str(root))}-py{MINOR}", {"POETRY_VIRTUALENVS_PATH": str(home / "envs")}

    def poetry_configured(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pyproject.toml").write_text('[project]\nname = "shop"\n')
        (root / "poetry.lock").touch()
        (root / "poetry.toml").write_text('[virtualenvs]\npath = "{cache-dir}/mine"\n')
        return home / "c" / "mine" / f"shop-{short(str(root))}-py{MINOR}", {"POETRY_CACHE_DIR": str(home / "c")}

    def pipenv(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "Pipfile").touch()
        return home / ".local" / "share" / "virtualenvs" / f"shop-{short(str(root / 'Pipfile'))}", {}

    def pipenv_moved(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "Pipfile").touch()
        return home / "work" / "mine", {"WORKON_HOME": str(home / "work"), "PIPENV_CUSTOM_VENV_NAME": "mine"}

    def pipenv_pointed(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "Pipfile").touch()
        (root / ".venv").write_text("mine\n")
        return home / ".local" / "share" / "virtualenvs" / "mine", {}

    def pdm_saved(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / ".pdm-python").write_text(f"{home}/pdm/bin/python\n")
        return home / "pdm", {}

    def pdm(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pdm.lock").touch()
        digest = base64.urlsafe_b64encode(hashlib.md5(str(root).encode(), usedforsecurity=False).digest()).decode()[:8]
        return home / ".local" / "share" / "pdm" / "venvs" / f"shop-{digest}-{MINOR}", {}

    def hatch(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pyproject.toml").write_text(
            '[project]\nname = "My.Shop"\n[build-system]\nbuild-backend = "hatchling.build"\n'
        )
        parent = home / ".local" / "share" / "hatch" / "env" / "virtual"
        return parent / "my-shop" / short(str(root)) / "my-shop", {}

    def hatch_path(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.hatch.envs.default]\npath = "made"\n')
        return root / "made", {}

    def pixi(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "pixi.toml").touch()
        return root / ".pixi" / "envs" / "default", {}

    def conda(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "environment.yml").write_text("name: shop  # ours\ndependencies: [python]\n")
        return home / "miniconda3" / "envs" / "shop", {}

    def conda_moved(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "environment.yaml").write_text("name: 'shop'\n")
        (home / ".condarc").write_text(f"channels: [x]\nenvs_dirs:\n  - {home}/none\n  - {home}/e\nauto: 1\n")
        return home / "e" / "shop", {}

    def conda_active(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        return home / "envs" / "any", {"CONDA_PREFIX": str(home / "envs" / "any")}

    def conda_here(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        return root / ".conda", {}

    def folder_of_any_name(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / "requirements.txt").touch()
        return root / "shop-env", {}

    def folder_of_direnv(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        return root / ".direnv" / f"python-{MINOR}", {}

    def virtualenvwrapper(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        for name, place in (("other", home), ("shop", root)):
            (home / ".virtualenvs" / name).mkdir(parents=True)
            (home / ".virtualenvs" / name / ".project").write_text(f"{place}\n")
        return home / ".virtualenvs" / "shop", {}

    def pyenv(root: Path, home: Path) -> tuple[Path, dict[str, str]]:
        (root / ".python-version").write_text("shop\n")
        return home / ".pyenv" / "versions" / "shop", {}

    return {name: make for name, make in locals().items() if callable(make)}


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(layouts()))
async def test_the_environment_of_each_tool_is_found_and_runs(
    name: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    prefix, variables = layouts()[name](project, home)
    environment(prefix, "only_there", conda=name.startswith(("conda", "pixi")))
    source = "folder" if name == "conda_here" else name.partition("_")[0]
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    found = project_environment(project / "evals")
    assert found.program == str(prefix / "bin" / "python")
    assert found.interpreter.source == source
    (project / "evals" / "mine.py").write_text("import only_there\ndef f(prompt): return only_there.WHERE\n")
    assert answer(await run(project / "evals", callable="mine:f")) == str(prefix)


@pytest.mark.parametrize(
    ("named", "chosen"), [("3.9.2", "3.9.2"), ("3.9", "3.9.18"), ("3.8", ""), ("../up", ""), ("", "")]
)
def test_a_python_of_pyenv(
    named: str, chosen: str, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("3.9.2", "3.9.18", "3.90.1"):
        folder = tmp_path / "pyenv" / "versions" / version / "bin"
        folder.mkdir(parents=True)
        (folder / "python").symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    (project / ".python-version").write_text(named)
    found = project_environment(project / "evals").interpreter
    if chosen:
        expected = "pyenv", str(tmp_path / "pyenv" / "versions" / chosen / "bin" / "python"), None
        assert (found.source, found.program, found.prefix) == expected
    else:
        assert found.source == "own"


def test_of_several_environments_of_other_names_none_is_taken(project: Path) -> None:
    environment(project / "one")
    environment(project / "two")
    assert project_environment(project).interpreter.source == "own"


@pytest.mark.parametrize("target", ["shop.py:agent", "with:colon.py:agent", "shop.py"])
def test_a_file_is_not_looked_for_as_a_module(project: Path, target: str) -> None:
    other = project / "other"
    for package in ("shop", "with"):
        (other / package).mkdir(parents=True)
        (other / package / "__init__.py").touch()
        (other / package / "py.py").touch()
    (other / "with.py").touch()
    (other / "pyproject.toml").touch()
    assert other not in project_environment(project / "evals", targets=[target]).path
    assert other in project_environment(project / "evals", targets=["shop.py.more:agent"]).path


def test_a_folder_beside_the_project_wins_over_its_tool(project: Path, tmp_path: Path) -> None:
    prefix, _ = layouts()["poetry"](project, tmp_path / "home")
    environment(prefix)
    environment(project / ".venv")
    assert project_environment(project).interpreter.prefix == project / ".venv"


async def test_packages_in_the_project_itself_are_found(project: Path) -> None:
    packages = project / "__pypackages__" / MINOR / "lib"
    packages.mkdir(parents=True)
    (packages / "only_there.py").write_text("WHERE = 'there'\n")
    (project / "evals" / "mine.py").write_text("import only_there\ndef f(prompt): return only_there.WHERE\n")
    assert answer(await run(project / "evals", callable="mine:f")) == "there"


async def test_programs_of_the_environment_are_found_first(project: Path) -> None:
    prefix = environment(project / ".venv")
    (project / "evals" / "mine.py").write_text(
        "import os, sys\ndef f(prompt): return os.pathsep.join([os.environ['VIRTUAL_ENV'], os.environ['PATH']])\n"
    )
    said = answer(await run(project / "evals", callable="mine:f"))
    assert said.startswith(f"{prefix}{os.pathsep}{prefix}/bin{os.pathsep}")


# An environment that can't be used


def gone(prefix: Path) -> None:
    environment(prefix)
    (prefix / "bin" / "python").unlink()
    (prefix / "bin" / "python").symlink_to("/opt/removed/bin/python3.11")


def windows(prefix: Path) -> None:
    (prefix / "Scripts").mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("version = 3.12.0\n")


def emptied(prefix: Path) -> None:
    prefix.mkdir(parents=True)
    (prefix / "pyvenv.cfg").write_text("version = 3.12.0\n")


def foreign(head: bytes) -> Any:
    def make(prefix: Path) -> None:
        environment(prefix)
        (prefix / "bin" / "python").unlink()
        (prefix / "bin" / "python").write_bytes(head)
        (prefix / "bin" / "python").chmod(0o755)

    return make


def not_executable(prefix: Path) -> None:
    foreign(b"#!/bin/sh\n")(prefix)
    (prefix / "bin" / "python").chmod(0o644)


def old(prefix: Path) -> None:
    environment(prefix, version="3.7.16")


OTHER_ELF = b"\x7fELF\x02\x01\x01" + bytes(11) + (22).to_bytes(2, "little")  # s390x
UNUSABLE = {
    "gone": (gone, "the Python of .* is gone: .*/bin/python leads to /opt/removed/bin/python3.11"),
    "windows": (windows, "was made on Windows"),
    "emptied": (emptied, "has no bin/python"),
    "old": (old, r"is Python 3\.7\.16; agenteval runs code with Python 3\.8 or later"),
    "processor": (foreign(OTHER_ELF), r"is a program for Linux \(s390x\), and this is Linux"),
    "macos": (foreign(b"\xcf\xfa\xed\xfe" + bytes(16)), "is a program for macOS, and this is Linux"),
    "garbage": (foreign(b"no program"), "bin/python is not a program"),
    "empty": (foreign(b""), "bin/python is not a program"),
    "not_executable": (not_executable, "bin/python is not executable"),
}


@pytest.mark.skipif(sys.platform != "linux", reason="the programs are for other systems than Linux")
@pytest.mark.parametrize("name", list(UNUSABLE))
async def test_an_environment_that_cannot_be_used_is_an_error_of_the_run(name: str, project: Path) -> None:
    make, words = UNUSABLE[name]
    make(project / ".venv")
    (project / "uv.lock").touch()
    (project / "evals" / "mine.py").write_text("def f(prompt): return 'never'\n")
    transcript = await run(project / "evals", callable="mine:f")
    assert transcript.error is not None
    assert re.search(words, transcript.error.message), transcript.error.message
    assert str(project / ".venv") in transcript.error.message
    assert "`python: PATH`" in transcript.error.fix
    if name != "old":
        assert f"in {project} (uv sync)" in transcript.error.fix
    assert not (await checked(project / "evals", callable="mine:f")).ok


@pytest.mark.skipif(sys.platform != "linux", reason="as above")
@pytest.mark.parametrize("name", ["gone", "old", "macos"])
def test_so_is_one_that_the_option_names(name: str, project: Path) -> None:
    make, words = UNUSABLE[name]
    make(project / "other")
    for named in ("../other/bin/python", "../other"):
        with pytest.raises(AgentevalError, match=words):
            project_environment(project / "evals", interpreter=named)


@pytest.mark.parametrize(
    ("named", "words"),
    [
        ("none/bin/python", "`python` names .*/evals/none/bin/python, which does not exist"),
        ("/none/bin/python", "`python` names /none/bin/python, which does not exist"),
        ("folder/here", "`python` names the folder .*/evals/folder/here, which is not a virtual environment"),
        ("no-such-python-xyz", "there is no program 'no-such-python-xyz' in PATH"),
    ],
)
async def test_an_interpreter_that_does_not_exist_names_the_option(project: Path, named: str, words: str) -> None:
    (project / "evals" / "folder" / "here").mkdir(parents=True)
    (project / "evals" / "mine.py").write_text("def f(prompt): return 'never'\n")
    error = (await run(project / "evals", callable="mine:f", python=named)).error
    assert error is not None
    assert re.search(words, error.message), error.message
    assert error.fix
    assert not (await checked(project / "evals", callable="mine:f", python=named)).ok


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("exit 0", "doesn't run as a Python: it ended with exit code 0"),
        ("echo no such library >&2; exit 127", "it ended with exit code 127: no such library"),
        ("kill -9 $$", "it was ended by the signal SIGKILL"),
        ("exec sleep 600", "it gave no sign for 0.5 s"),
    ],
)
async def test_a_program_that_is_no_python_is_said(
    project: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    if "sleep" in body:
        monkeypatch.setattr(python_start, "START_S", 0.5)
    executable(project / "evals" / "python", f"#!/bin/sh\n{body}\n")
    (project / "evals" / "mine.py").write_text("def f(prompt): return 'never'\n")
    error = (await run(project / "evals", callable="mine:f", python="./python")).error
    assert error is not None
    assert words in error.message, error.message
    assert "`python: PATH`" in error.fix


def test_an_active_environment_that_is_gone_is_said(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/nowhere/env")
    with pytest.raises(AgentevalError, match="VIRTUAL_ENV names the environment /nowhere/env, which does not exist"):
        project_environment(project)


# The project's own modules


WHERE = "import os\ndef f(prompt): return os.path.relpath(__file__, {root!r})\n"


@pytest.mark.parametrize(
    ("files", "target", "place"),
    [
        (["src/shop/agent.py"], "shop.agent", "src/shop/agent.py"),
        (["shop/agent.py"], "shop.agent", "shop/agent.py"),
        (["agent.py"], "agent", "agent.py"),
        (["evals/agent.py", "agent.py", "src/agent.py"], "agent", "evals/agent.py"),
        (["src/shop/agent.py", "shop/other.py"], "shop.agent", "src/shop/agent.py"),
        (["packages/a/src/a/x.py", "packages/b/src/b/x.py"], "b.x", "packages/b/src/b/x.py"),
        (["packages/a/a/x.py", "packages/b/a/x.py", "src/other/x.py"], "a.x", "packages/a/a/x.py"),
        (["lib/shop/agent.py"], "shop.agent", "lib/shop/agent.py"),
        (["src/types.py", "types.py"], "shop.agent", ""),
    ],
)
async def test_the_modules_of_the_project_are_found(files: list[str], target: str, place: str, project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "shop"\n[tool.setuptools.package-dir]\n"" = "lib"\n')
    for file in files:
        path = project / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(WHERE.format(root=str(project)))
        if path.parent not in (project, project / "src", project / "evals"):
            (path.parent / "__init__.py").touch()
    for member in ("packages/a", "packages/b"):
        if (project / member).is_dir():
            (project / member / "pyproject.toml").write_text(f'[project]\nname = "{Path(member).name}"\n')
    transcript = await run(project / "evals", callable=f"{target}:f")
    if place:
        assert answer(transcript) == place
    else:
        assert transcript.error is not None
        assert "No module named 'shop'" in transcript.error.message


async def test_a_suite_in_a_package_of_a_monorepo_finds_its_own_and_the_others(project: Path) -> None:
    (project / "pyproject.toml").write_text('[tool.uv.workspace]\nmembers = ["libs/*"]\n')
    for name, text in (("front", "import back\ndef f(prompt): return back.NAME\n"), ("back", "NAME = 'back'\n")):
        package = project / "libs" / name / "src" / name
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
        (project / "libs" / name / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
    (project / "libs" / "front" / "evals").mkdir()
    assert answer(await run(project / "libs" / "front" / "evals", callable="front:f")) == "back"


@pytest.mark.parametrize(
    "target", ["../../back/src/back/__init__.py:f", "../../back/main.py:f", "back:f", "back.deep:f", "main:f"]
)
async def test_code_of_another_project_of_a_monorepo_runs_in_its_environment(target: str, project: Path) -> None:
    (project / "pyproject.toml").write_text('[project]\nname = "all"\n')
    environment(project / ".venv", "where")
    for name in ("front", "back"):
        folder = project / "libs" / name
        (folder / "src" / name).mkdir(parents=True)
        for file in ("main.py", f"src/{name}/__init__.py", f"src/{name}/deep.py"):
            (folder / file).write_text("import where\ndef f(prompt): return where.WHERE\n")
        (folder / "pyproject.toml").write_text(f'[project]\nname = "{name}"\n')
        environment(folder / ".venv", "where")
    (project / "libs" / "front" / "main.py").unlink()
    (project / "libs" / "front" / "evals").mkdir()
    assert answer(await run(project / "libs" / "front" / "evals", callable=target)) == str(
        project / "libs" / "back" / ".venv"
    )


async def test_an_editable_install_is_used_as_it_is(project: Path, tmp_path: Path) -> None:
    prefix = environment(project / ".venv")
    elsewhere = tmp_path / "checkout" / "code"
    elsewhere.mkdir(parents=True)
    (elsewhere / "shop_agent.py").write_text("def f(prompt): return __file__\n")
    (prefix / "lib" / f"python{MINOR}" / "site-packages" / "x.pth").write_text(f"{elsewhere}\n")
    assert answer(await run(project / "evals", callable="shop_agent:f")) == str(elsewhere / "shop_agent.py")


async def test_the_sources_win_over_an_installed_copy(project: Path) -> None:
    environment(project / ".venv", "shop")
    (project / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    (project / "src").mkdir()
    (project / "src" / "shop.py").write_text("def f(prompt): return 'source'\n")
    assert answer(await run(project / "evals", callable="shop:f")) == "source"


async def test_an_installed_package_wins_over_a_folder_of_its_name_beside_the_sources(project: Path) -> None:
    environment(project / ".venv", "tools")
    (project / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    for name in ("src/shop", "tools"):
        (project / name).mkdir(parents=True)
        (project / name / "__init__.py").write_text("import tools\ndef f(prompt): return tools.WHERE\n")
    assert answer(await run(project / "evals", callable="shop:f")) == str(project / ".venv")


@pytest.mark.parametrize("target", ["mine:f", "mine.py:f", "evals.mine:f"])
async def test_a_suite_in_a_package_hides_no_library(project: Path, target: str) -> None:
    environment(project / ".venv", "tools")
    folder = project / "evals"
    (folder / "__init__.py").touch()
    (folder / "tools.py").write_text("WHERE = 'hides the library'\n")
    (folder / "beside.py").write_text("NAME = 'beside'\n")
    (folder / "mine.py").write_text(
        "import tools\nfrom . import beside as own\nimport beside\n"
        "def f(prompt): return f'{tools.WHERE} {own.NAME} {beside.NAME} {__name__}'\n"
    )
    assert answer(await run(folder, callable=target)) == f"{project / '.venv'} beside beside evals.mine"


async def test_what_lies_beside_a_suite_in_a_package_wins_over_a_library_of_its_name(project: Path) -> None:
    environment(project / ".venv", "tools")
    (project / "evals" / "__init__.py").touch()
    (project / "evals" / "tools.py").write_text("def f(prompt): return __name__\n")
    assert answer(await run(project / "evals", callable="tools:f")) == "evals.tools"


def test_nothing_outside_of_the_repository_is_taken(project: Path) -> None:
    (project.parent / "secret").mkdir()
    (project.parent / "secret" / "stolen.py").touch()
    (project / "pyproject.toml").write_text(
        '[tool.setuptools.package-dir]\n"" = "../secret"\n[tool.uv.workspace]\nmembers = ["../secret"]\n'
        '[tool.poetry.dependencies]\nx = {path = "../secret"}\n[tool.pytest.ini_options]\npythonpath = ["/"]\n'
    )
    found = project_environment(project / "evals", targets=["stolen:f"])
    assert all(one.is_relative_to(project) for one in (*found.path, *found.last))


ODD = [
    *(
        "not = toml =",
        "[tool.uv.workspace]\nmembers = 5\n",
        '[tool.uv.workspace]\nmembers = ["**x", 7]\n',
        "[tool.poetry]\npackages = 7\n",
        "\x00",
    ),
    *("[tool]\nuv = 3\npoetry = []\n", "[tool.hatch.envs]\ndefault = 1\n"),
]


@pytest.mark.parametrize("text", ODD)
def test_settings_that_are_odd_change_nothing(text: str, project: Path) -> None:
    for name in ("pyproject.toml", "poetry.toml", "hatch.toml", "environment.yml", ".pdm-python", "langgraph.json"):
        (project / name).write_text("" if name == ".pdm-python" else text)
    assert project_environment(project / "evals", targets=["x:y"]).interpreter.source == "own"


def test_imports_are_followed_through_folders_without_init(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "samples_x" / "airline").mkdir(parents=True)
    (project / "samples_x" / "airline" / "main.py").write_text("import json\nfrom samples_x.airline import other\n")
    (project / "samples_x" / "airline" / "other.py").write_text("import decimal\n")
    monkeypatch.syspath_prepend(str(project))
    found = python_imports.outside(["samples_x.airline.main"], lambda origin: not origin.startswith(str(project)))
    assert [name for name, _ in found] == ["json", "decimal"]


# Errors


def fail(text: str, project: Path) -> None:
    (project / "evals" / "mine.py").write_text(text)


async def test_a_package_that_is_missing_names_the_environment_and_the_line(project: Path) -> None:
    prefix = environment(project / ".venv")
    (project / "uv.lock").touch()
    fail("import pydantic_absent.models\ndef f(prompt): return ''\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert "No module named 'pydantic_absent'" in error.message
    assert "mine.py, line 1" in error.message
    assert f"it ran with {prefix}/bin/python (3.11.7), of {prefix}" in error.fix
    assert "uv sync, or uv add pydantic_absent" in error.fix
    assert "`python: PATH`" in error.fix
    assert "if pydantic_absent is your own module, name its folder in `path`" in error.fix


@pytest.mark.parametrize("place", ["app/parts", "evals/parts", "parts"])
async def test_a_module_of_the_project_where_python_does_not_look_is_named(place: str, project: Path) -> None:
    environment(project / ".venv")
    (project / place / "own").mkdir(parents=True)
    (project / place / "own" / "__init__.py").touch()
    (project / ".hidden" / "own").mkdir(parents=True)
    (project / ".hidden" / "own" / "__init__.py").touch()
    fail("import own.models\ndef f(prompt): return ''\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    path = os.path.relpath(project / place, project / "evals")
    assert f"if you mean {project / place / 'own'}, write `path: [{path}]` in the agent" in error.fix


@pytest.mark.parametrize(
    ("has_own", "locked", "words", "fix"),
    [
        (
            False,
            False,
            ["python"],
            "it ran with {bin}/python; install it there ({bin}/python -m pip install absent), or",
        ),
        (
            True,
            False,
            ["python"],
            "it ran with {bin}/python; the project has another Python: name it in `command` ({own})",
        ),
        (
            True,
            False,
            ["{own}"],
            "it ran with {own}; install it there ({own} -m pip install absent), or name the Python",
        ),
        (
            True,
            True,
            ["{own}"],
            "it ran with {own}; install it there (in {project}: uv sync, or uv add absent), or name",
        ),
        (
            True,
            True,
            ["uv", "run"],
            "it ran in the project's environment; install it there (in {project}: uv sync, or uv",
        ),
        (
            False,
            True,
            ["uv", "run"],
            "it ran in the project's environment; make the project's environment (in {project}: ",
        ),
        (True, True, ["{bin}/other"], "run it by hand with the same input"),
        (True, False, ["{bin}/shop"], "it ran with {own}; install it there ({own} -m pip install absent), or name"),
        (True, False, ["shop-long"], "it ran with {own}; install it there ({own} -m pip install absent), or name"),
        (False, False, ["shop-env"], "it ran with {bin}/python; install it there ({bin}/python -m pip install absent)"),
    ],
)
async def test_a_program_that_misses_a_package_names_the_python_that_it_ran_with(
    project: Path, tmp_path: Path, has_own: bool, locked: bool, words: list[str], fix: str
) -> None:
    (project / "agent.py").write_text("import absent.models\n")
    programs = environment(tmp_path / "installed") / "bin"
    places = {"bin": programs, "own": project / ".venv" / "bin" / "python", "project": project}
    if has_own:
        environment(project / ".venv")
    if locked:
        (project / "uv.lock").touch()
    executable(programs / "uv", f'#!/bin/sh\nshift\nexec "{programs}/python" "$@"\n')
    executable(programs / "other", f'#!/bin/sh\nexec "{programs}/python" "$@"\n')
    script, quotes = "import absent.models\n", "'" * 3
    executable(programs / "shop", f"#!{places['own']}\n{script}")
    executable(programs / "shop-long", f'#!/bin/sh\n{quotes}exec\' "{places["own"]}" "$0" "$@"\n\' {quotes}\n{script}')
    executable(programs / "shop-env", f"#!/usr/bin/env python\n{script}")
    command = [*(word.format(**places) for word in words), str(project / "agent.py")]
    error = (await run(project, kind="command", command=command, env={"PATH": f"{programs}:/usr/bin:/bin"})).error
    assert error is not None
    assert error.fix.startswith(fix.format(**places))


@pytest.mark.parametrize(
    "text",
    ["def f[T](x: T = 1 2) -> T: ...", "from typing import newer", "import compression.zstd"],
)
@pytest.mark.parametrize(
    ("settings", "versions"),
    [
        ('[project]\nname = "shop"\nrequires-python = ">=3.99,<4"\n', ">=3.99,<4"),
        ('[tool.poetry.dependencies]\npython = "^3.99"\n', "^3.99"),
        ('[project]\nname = "shop"\nrequires-python = ">=3.8"\n', ""),
        ("", ""),
    ],
)
async def test_a_python_that_is_too_old_for_the_project_is_named(
    project: Path, text: str, settings: str, versions: str
) -> None:
    environment(project / ".venv")
    (project / "pyproject.toml").write_text(settings)
    fail(text + "\ndef f(prompt): return ''\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert (f"pyproject.toml asks for Python {versions}; make the project's" in error.fix) == bool(versions)


def test_how_projects_write_which_python_they_ask_for() -> None:
    assert is_older("3.11.7", ">=3.12")
    assert is_older("3.9", "~=3.10")
    assert is_older("3.8.1", "==3.11.*")
    assert is_older("2.7.18", "<4,>=3.8")
    assert not is_older("3.12.1", ">=3.12,<4")
    assert not is_older("3.13", "^3.9")
    assert not is_older("", ">=3.12")
    assert not is_older("3.8.1", "*")


@pytest.mark.parametrize(
    ("module", "install"),
    [
        ("agents.models", "uv add openai-agents)"),
        ("google.adk.agents", "uv add google-adk)"),
        ("google.cloud.dataform_v1", "install the package that provides google"),
        ("dotenv", "uv add python-dotenv)"),
        ("absent.google", "uv add absent)"),
    ],
)
def test_a_package_is_named_as_it_is_installed(project: Path, module: str, install: str) -> None:
    environment(project / ".venv")
    (project / "uv.lock").touch()
    own = project_environment(project / "evals", targets=("mine:f",))
    assert install in remedy({"module": module}, own)


async def test_a_framework_that_hides_the_missing_package_is_seen_through(project: Path) -> None:
    text = "try:\n    import absent_sdk\nexcept ImportError as e:\n    raise ImportError('install the extra') from e\n"
    fail(text, project)
    (project / "Pipfile").touch()
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert "Pipenv has made none" in error.fix
    assert f"no virtual environment from {project / 'evals'} up to {project}" in error.fix
    assert "pipenv install" in error.fix


async def test_a_variable_that_is_missing_names_the_file_and_the_line(project: Path) -> None:
    fail("import os\ndef f(prompt): return os.environ['SHOP_URL']\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert error.message.endswith("KeyError: 'SHOP_URL' (mine.py, line 2)"), "never a place in Python's own os.py"
    assert f"none from {project / 'evals'} up to {project}" in error.fix
    assert f"write SHOP_URL=... into {project}/.env" in error.fix
    assert "`env_file: PATH`" in error.fix
    (project / ".env").write_text("OTHER=1\nPYTHONPATH=x\n")
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert f"{project}/.env (1 variable)" in error.fix
    assert "PYTHONPATH" in error.fix
    (project / ".env").write_text("SHOP_URL=there\n")
    assert answer(await run(project / "evals", callable="mine:f")) == "there"


async def test_another_missing_key_is_no_matter_of_the_environment(project: Path) -> None:
    fail("import os\ndef f(prompt): return {}['SHOP_URL'] + os.environ.get('X_API_KEY', '')\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert "SHOP_URL" not in error.fix


CLIENTS = {
    "openai_like": (
        "openai/_client.py",
        "import os\nclass OpenAIError(Exception): pass\nclass OpenAI:\n    def __init__(self, api_key=None):\n"
        "        api_key = api_key or os.environ.get('OPENAI_API_KEY')\n"
        "        if api_key is None: raise OpenAIError('whatever it says today')\n",
        "OPENAI_API_KEY",
    ),
    "anthropic_like": (
        "anthropic/_client.py",
        "class OpenAI:\n    def __init__(self):\n        self._validate_headers()\n"
        "    def _validate_headers(self): raise TypeError('words')\n",
        "ANTHROPIC_API_KEY",
    ),
    "provider_like": (
        "pydantic_ai/_client.py",
        "import os\nclass UserError(Exception): pass\nclass OpenAI:\n    def __init__(self):\n"
        "        key = os.getenv('MOONSHOTAI_API_KEY')\n        if not key: raise UserError('x')\n",
        "MOONSHOTAI_API_KEY",
    ),
}


@pytest.mark.parametrize("name", list(CLIENTS))
async def test_a_client_that_misses_its_key_is_told_by_type_and_code(name: str, project: Path) -> None:
    path, source, variable = CLIENTS[name]
    prefix = environment(project / ".venv")
    place = prefix / "lib" / f"python{MINOR}" / "site-packages" / path
    place.parent.mkdir()
    (place.parent / "__init__.py").touch()
    place.write_text(source)
    fail(
        f"from {path.partition('/')[0]}._client import OpenAI\ndef f(prompt):\n    OpenAI()\n    return 'ok'\n", project
    )
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert f"write {variable}=... into" in error.fix
    assert error.message.endswith("(mine.py, line 3)"), "the place is the project's, not the package's"


async def test_a_wrong_argument_of_a_client_is_no_missing_key(project: Path) -> None:
    place = environment(project / ".venv") / "lib" / f"python{MINOR}" / "site-packages" / "anthropic/_client.py"
    place.parent.mkdir()
    (place.parent / "__init__.py").touch()
    place.write_text(
        "import os\nclass Anthropic:\n    def __init__(self, http_client):\n"
        "        self.signs = os.environ.get('ANTHROPIC_WEBHOOK_SIGNING_KEY')\n"
        "        if not callable(http_client): raise TypeError('Invalid `http_client` argument')\n"
    )
    (project / ".env").write_text("ANTHROPIC_API_KEY=there\n")
    fail("from anthropic._client import Anthropic\ndef f(prompt):\n    Anthropic(1)\n    return 'ok'\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert "Invalid `http_client`" in error.message
    assert "is not set" not in error.fix


@pytest.mark.parametrize(
    "calls",
    [
        "    OpenAI(\n        api_key=os.getenv('DEEPSEEK_API_KEY'),\n    )\n",
        "    key = os.environ.get('DEEPSEEK_API_KEY')\n    OpenAI(api_key=key)\n",
    ],
)
async def test_a_client_that_is_given_another_key_misses_that_one(calls: str, project: Path) -> None:
    """Code that names another server gives its client that server's key."""
    path, source, _ = CLIENTS["openai_like"]
    place = environment(project / ".venv") / "lib" / f"python{MINOR}" / "site-packages" / path
    place.parent.mkdir()
    (place.parent / "__init__.py").touch()
    place.write_text(source)
    other = "os.getenv('TRACES_API_KEY')\n"
    fail(f"import os\nfrom openai._client import OpenAI\n{other}def f(prompt):\n{calls}    return 'ok'\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert error.fix.startswith("DEEPSEEK_API_KEY is not set")
    assert "write DEEPSEEK_API_KEY=... into" in error.fix


async def test_code_of_the_project_in_a_package_called_as_a_library_is_no_client(project: Path) -> None:
    folder = project / "evals" / "agents"
    folder.mkdir()
    (folder / "__init__.py").touch()
    text = "class Bot:\n    def __init__(self): self.model = {}.model\n    def run(self, prompt): return 'x'\n"
    (folder / "bot.py").write_text(text)
    error = (await run(project / "evals", callable="agents/bot.py:Bot")).error
    assert error is not None
    assert "has no attribute 'model'" in error.message
    assert "OPENAI_API_KEY" not in error.fix


async def test_a_key_that_is_refused_names_the_file(project: Path) -> None:
    (project / ".env").write_text("OPENAI_API_KEY=wrong\n")
    fail("class Refused(Exception):\n    status_code = 401\ndef f(prompt): raise Refused('no')\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert f"{project}/.env" in error.fix


async def test_settings_of_pydantic_name_their_variables(project: Path) -> None:
    prefix = environment(project / ".venv")
    place = prefix / "lib" / f"python{MINOR}" / "site-packages" / "pydantic_settings.py"
    place.write_text(
        "class E(Exception):\n    def errors(self): return [{'type': 'missing', 'loc': ('url',)}]\n"
        "class BaseSettings:\n    model_config = {'env_prefix': 'shop_'}\n    def __init__(self): raise E('1 error')\n"
    )
    fail("from pydantic_settings import BaseSettings\ndef f(prompt): BaseSettings()\n", project)
    error = (await run(project / "evals", callable="mine:f")).error
    assert error is not None
    assert "SHOP_URL is not set" in error.fix


def test_the_child_is_written_for_python_3_8() -> None:
    folder = Path(module.__file__).parent
    readers = {Path(file) for file, _ in reader_files().values()}
    for path in sorted({*folder.glob("python_*.py"), *readers}):
        if path.stem in ("python_host", "python_tree"):
            continue  # they run here
        ast.parse(path.read_text(), str(path), feature_version=(3, 8))


@pytest.mark.sweep
@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.12", "3.13", "3.14"])
async def test_code_runs_with_every_other_python_that_is_here(version: str, project: Path) -> None:
    programs = sorted(Path(os.path.expanduser("~root") or "/").glob(f".pyenv/versions/{version}.*/bin/python"))
    if not programs:
        pytest.skip(f"there is no Python {version}")
    fail(
        "import os, sys\ndef f(prompt):\n    return '%d.%d ' % sys.version_info[:2] + os.environ['ABSENT_KEY']\n",
        project,
    )
    error = (await run(project / "evals", callable="mine:f", python=str(programs[-1]))).error
    assert error is not None
    assert error.message.endswith("(mine.py, line 3)")
    assert "ABSENT_KEY=..." in error.fix
