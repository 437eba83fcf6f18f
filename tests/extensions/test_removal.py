"""Each extension is removed in turn, with its lines of pyproject.toml: the core works, and says what is missing."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.entry_points import read_groups

ROOT = Path(__file__).resolve().parents[2]
EXTENSIONS = ROOT / "agenteval_tui" / "extensions"
NAMES = sorted(path.name for path in EXTENSIONS.iterdir() if (path / "__init__.py").is_file())
COPIED = ("agenteval_tui", "themes", "sample_suites", "docs", "pyproject.toml")
SUITE = f"""\
name: Greetings
agent: bot
agents:
  bot: {{kind: command, command: ["{sys.executable}", -c, "print('hello')"]}}
tests:
  - id: hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{{"metrics": [{{"type": "TextMatch", "contains": "hello"}}]}}'
"""
# What names a part of each group, and what the core says where the part is gone. A part that nobody can name is missing
# in silence: a check of the doctor, the options of a kind, a kind that is in another group too.
NAMED: dict[str, tuple[tuple[str, ...], str]] = {
    "agenteval.commands": (("NAME",), "there is no verb 'NAME'"),
    "agenteval.agents": (("validate", "NAME.suite.yaml"), "there is no kind of agent 'NAME'"),
    "agenteval.embedders": (("validate", "NAME.suite.yaml"), 'there is no agent "NAME"'),
    "agenteval.executors": (("run", "hello.suite.yaml", "--executor", "NAME"), "'NAME' is not 'local'"),
}
# Suites that use a part of a group: what stands in SUITE, and what stands there instead.
METRIC = '{"type": "TextMatch", "contains": "hello"}'
USES = {
    "agenteval.agents": ("kind: command", "kind: NAME"),
    "agenteval.embedders": (METRIC, '{"type": "Similarity", "to": "hello", "embedder": "NAME"}'),
}
SILENT = {
    *("agenteval.doctor_checks", "agenteval.agent_options", "agenteval.key_finders"),
    *("agenteval.local_agents", "agenteval.local_embedders"),
}

CORE = """
import asyncio, contextlib, importlib, io, json, pkgutil, sys
from pathlib import Path
import agenteval_tui
from agenteval_tui.cli.main import main
from agenteval_tui.cli.start import AppStart
from agenteval_tui.tui.app import AgentevalApp

def called(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        code = main(list(arguments), launch_app=lambda start: 0)
    return [code, out.getvalue()]

async def screen():
    app = AgentevalApp(AppStart(paths=(Path("hello.suite.yaml"),)))
    async with app.run_test(size=(100, 30)) as pilot:
        await pilot.pause()
        return type(app.screen).__name__

said = {" ".join(arguments): called(*arguments) for arguments in json.loads(sys.argv[1])}
# What an agent's own Python reads as files is not imported here.
elsewhere = ("agenteval_tui.extensions.", "agenteval_tui.agents.process.python_", "agenteval_tui.__main__")
for module in pkgutil.walk_packages(agenteval_tui.__path__, "agenteval_tui."):
    if not module.name.startswith(elsewhere):
        importlib.import_module(module.name)
json.dump({"said": said, "screen": asyncio.run(screen()), "place": agenteval_tui.__file__}, sys.stdout)
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what agenteval needs of its checkout, compiled files included."""
    folder = tmp_path_factory.mktemp("checkout")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        else:
            shutil.copy2(ROOT / name, folder / name)
    return folder


def lines_of(name: str) -> re.Pattern[str]:
    """The entry points of an extension in pyproject.toml."""
    return re.compile(rf'(?m)^[\w-]+ = "agenteval_tui\.extensions\.{name}\..*\n')


@pytest.fixture(params=NAMES)
def extension(request: pytest.FixtureRequest, checkout: Path, tmp_path: Path) -> Iterator[str]:
    """The name of an extension that the copy lacks, with its entry points."""
    name = str(request.param)
    folder, project = checkout / "agenteval_tui" / "extensions" / name, checkout / "pyproject.toml"
    lines = project.read_text("utf-8")
    shutil.move(folder, tmp_path / "removed")
    project.write_text(lines_of(name).sub("", lines), "utf-8")
    yield name
    shutil.move(tmp_path / "removed", folder)
    project.write_text(lines, "utf-8")


def core(checkout: Path, folder: Path, *commands: tuple[str, ...]) -> Any:
    """What these commands say in the copy, all in one process, which then imports the core and opens the app."""
    done = subprocess.run(
        [sys.executable, "-c", CORE, json.dumps(commands)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    value = json.loads(done.stdout)
    assert Path(value["place"]).is_relative_to(checkout)
    return value


@pytest.mark.xdist_group("removal")
def test_the_core_works_without_it_and_says_what_is_missing(extension: str, checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "hello.suite.yaml").write_text(SUITE, "utf-8")
    lines = (ROOT / "pyproject.toml").read_text("utf-8")
    removed = [
        (group, name)
        for group, targets in read_groups(lines).items()
        for name, target in targets.items()
        if target.startswith(f"agenteval_tui.extensions.{extension}.")
    ]
    assert removed, "nothing names it"
    for group, name in removed:
        if group in USES:
            (tmp_path / f"{name}.suite.yaml").write_text(SUITE.replace(*USES[group]).replace("NAME", name), "utf-8")
    asked = {}
    for group, name in removed:
        if group not in SILENT:
            words, answer = NAMED[group]
            asked[tuple(word.replace("NAME", name) for word in words)] = answer.replace("NAME", name)
    verbs = (("--help",), ("validate", "hello.suite.yaml"), ("run", "hello.suite.yaml", "--trust"), ("doctor",))
    value = core(checkout, tmp_path, *verbs, *asked)
    said = value["said"]
    assert [said[" ".join(verb)][0] for verb in verbs] == [0, 0, 0, 0], said
    assert "pass rate 100 %" in said["run hello.suite.yaml --trust"][1]
    assert value["screen"] == "SuitesScreen"
    for words, answer in asked.items():
        code, text = said[" ".join(words)]
        assert code == 2, text
        assert answer in text
        assert "Traceback" not in text
