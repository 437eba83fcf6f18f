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
PROGRAM = f"""kind: command, command: ["{sys.executable}", -c, "print('hello')"]"""
SUITE = f"""\
name: Greetings
agent: bot
agents:
  bot: {{{PROGRAM}}}
tests:
  - id: hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: '{{"metrics": [{{"type": "TextMatch", "contains": "hello"}}]}}'
"""
# What names a part of each group, and what the core says where the part is gone. A part that nobody can name is missing
# in silence: a check of the doctor, the options of a kind, a kind that is in another group too, a key, a packing, a
# reader of objects.
NAMED: dict[str, tuple[tuple[str, ...], str]] = {
    "agenteval.commands": (("NAME",), "there is no verb 'NAME'"),
    "agenteval.documents": (("schema", "NAME"), "there is no schema 'NAME'"),
    "agenteval.agents": (("validate", "GROUP.NAME.suite.yaml"), "there is no kind of agent 'NAME'"),
    "agenteval.toolsets": (("validate", "GROUP.NAME.suite.yaml"), "there is no toolset 'NAME'"),
    "agenteval.captures": (("validate", "GROUP.NAME.suite.yaml"), "there is no capture 'NAME'"),
    "agenteval.prototypes": (("validate", "GROUP.NAME.suite.yaml"), "there is no prototype class 'NAME'"),
    "agenteval.metrics": (("validate", "GROUP.NAME.suite.yaml"), 'There is no metric of type "NAME"'),
    "agenteval.embedders": (("validate", "GROUP.NAME.suite.yaml"), 'there is no agent "NAME"'),
    "agenteval.importers": (("import", "hello.suite.yaml", "--format", "NAME"), "there is no format 'NAME'"),
    "agenteval.exporters": (("export", "last", "-", "--format", "NAME"), "there is no format 'NAME' to export"),
    "agenteval.suite_exporters": (
        ("export", "hello.suite.yaml", "-", "--format", "NAME"),
        "there is no format 'NAME' to export",
    ),
    "agenteval.executors": (("run", "hello.suite.yaml", "--executor", "NAME"), "'NAME' is not 'local'"),
}
# Suites that use a part of a group: what stands in SUITE, and what stands there instead.
METRIC = '{"type": "TextMatch", "contains": "hello"}'
USES = {
    "agenteval.agents": ("kind: command", "kind: NAME"),
    "agenteval.captures": ("kind: command", "kind: command, capture: NAME"),
    "agenteval.toolsets": (PROGRAM, 'kind: openai, base_url: "http://127.0.0.1:1/v1", model: m, tools: "builtin:NAME"'),
    "agenteval.prototypes": ("prototype_class: TextResponse", "prototype_class: NAME"),
    "agenteval.metrics": (METRIC, '{"type": "NAME"}'),
    "agenteval.embedders": (METRIC, '{"type": "Similarity", "to": "hello", "embedder": "NAME"}'),
}
SILENT = {
    *("agenteval.doctor_checks", "agenteval.agent_options", "agenteval.frameworks", "agenteval.key_finders"),
    *("agenteval.agent_finders", "agenteval.actions", "agenteval.packings", "agenteval.api", "agenteval.test_criteria"),
    *("agenteval.capture_checks", "agenteval.mcp_tools", "agenteval.mcp_asking_tools"),
    *("agenteval.local_agents", "agenteval.local_embedders"),
}

CORE = """
import asyncio, contextlib, importlib, io, json, os, pkgutil, sys, traceback
from pathlib import Path
import agenteval_tui
from agenteval_tui.core import entry_points
entry_points.own(entry_points.ACTIONS).clear()  # the table of actions imports them: here it is that of the core
from agenteval_tui.cli.main import main
from agenteval_tui.cli.app_start import AppStart
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

def answer(request):
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    importlib.invalidate_caches()  # an extension has gone
    entry_points._own.cache_clear()  # so have its lines, which the options of agents read when they were imported
    answers = {" ".join(verb): called(*verb) for verb in request["verbs"]}
    return {
        "said": answers,
        "screen": asyncio.run(screen()) if request["app"] else "",
        "place": agenteval_tui.__file__,
    }

# Each is answered in a process that has imported the core, and nothing of an extension.
# Others ask for entry points when they are imported.
for room in ("analysis", "history", "suites", "tui.presenters", "tui.widgets", "views"):
    package = importlib.import_module(f"agenteval_tui.{room}")
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(module.name)
with contextlib.suppress(ImportError):
    import keyring, numpy  # the doctor imports what it looks for
assert not [name for name in sys.modules if name.startswith("agenteval_tui.extensions.")]
for line in sys.stdin:
    if os.fork() == 0:
        os.close(0)
        try:
            text, code = json.dumps(answer(json.loads(line))), 0
        except BaseException:
            text, code = traceback.format_exc(), 1
        with open("answer.json", "w", encoding="utf-8") as file:
            file.write(text)
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
"""
ALL_MODULES = """
import importlib, pkgutil, agenteval_tui
# What an agent's own Python reads as files is not imported here.
elsewhere = ("agenteval_tui.agents.process.python_", "agenteval_tui.__main__")
for module in pkgutil.walk_packages(agenteval_tui.__path__, "agenteval_tui."):
    if not module.name.startswith(elsewhere):
        importlib.import_module(module.name)
print(agenteval_tui.__file__)
"""
VERBS = (("--help",), ("validate", "hello.suite.yaml"), ("run", "hello.suite.yaml", "--trust"), ("doctor",))
OF_FORMATS = (("import", "hello.json"), ("export", "last", "-"))
OF_FRAMEWORKS = (("init", "--list"),)
# What parts of these groups could break. All else is tried without all extensions.
BREAKABLE = {
    **dict.fromkeys(("agenteval.importers", "agenteval.exporters", "agenteval.suite_exporters"), OF_FORMATS),
    "agenteval.frameworks": OF_FRAMEWORKS,
}
pytestmark = pytest.mark.xdist_group("removal")  # one copy, and one process that has imported it
MESSAGES = [{"role": "user", "content": "Say hello"}, {"role": "assistant", "content": "hello"}]


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


@pytest.fixture(scope="module")
def core(checkout: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has imported the core of the copy, and answers each line that it reads."""
    with subprocess.Popen(
        [sys.executable, "-c", CORE],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process


def lines_of(name: str) -> re.Pattern[str]:
    """The entry points of an extension in pyproject.toml."""
    return re.compile(rf'(?m)^[\w".-]+ = "agenteval_tui\.extensions\.{name}\..*\n')


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


def python(checkout: Path, folder: Path, program: str) -> str:
    """What a Python program prints that imports agenteval from the copy."""
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ask(core: subprocess.Popen[str], folder: Path, verbs: list[tuple[str, ...]], *, app: bool) -> Any:
    """What the core answers to these verbs in this folder, and which screen the app opens."""
    assert core.stdin is not None
    assert core.stdout is not None
    request = {"folder": str(folder), "environment": dict(os.environ), "verbs": verbs, "app": app}
    print(json.dumps(request), file=core.stdin, flush=True)
    code = core.stdout.readline()
    text = (folder / "answer.json").read_text("utf-8")
    assert int(code) == 0, text
    return json.loads(text)


def check_core(core: subprocess.Popen[str], checkout: Path, folder: Path, parts: list[tuple[str, str]]) -> None:
    """The verbs of the core work, the app opens, and who names a part (group, name) that is missing is told so."""
    (folder / "hello.suite.yaml").write_text(SUITE, "utf-8")
    (folder / "hello.json").write_text(json.dumps({"messages": MESSAGES}), "utf-8")
    groups = {group for group, _ in parts}
    is_narrow = groups <= BREAKABLE.keys()
    verbs = [verb for group in sorted(groups if is_narrow else BREAKABLE) for verb in BREAKABLE[group]]
    verbs = list(dict.fromkeys(verbs if is_narrow else (*VERBS, *verbs)))
    asked = {}
    for group, name in parts:
        if group in USES:
            suite = SUITE.replace(*USES[group]).replace("NAME", name)
            (folder / f"{group}.{name}.suite.yaml").write_text(suite, "utf-8")
        if group not in SILENT:
            words, answer = NAMED[group]
            asked[tuple(word.replace("GROUP", group).replace("NAME", name) for word in words)] = answer.replace(
                "NAME", name
            )
    if ("agenteval.importers", "inspect") in parts:  # the only format that may be an archive
        (folder / "hello.zip").write_bytes(b"PK\x03\x04")
        asked["import", "hello.zip"] = "this is a ZIP archive"
    value = ask(core, folder, [*verbs, *asked], app=not is_narrow)
    assert Path(value["place"]).is_relative_to(checkout)
    said = value["said"]
    assert {verb: said[" ".join(verb)][1] for verb in verbs if said[" ".join(verb)][0] != 0} == {}
    if not is_narrow:
        assert "pass rate 100 %" in said["run hello.suite.yaml --trust"][1]
        assert value["screen"] == "SuitesScreen"
    for words, answer in asked.items():
        code, text = said[" ".join(words)]
        assert code == 2, text
        assert answer in text
        assert "Traceback" not in text


def parts_of(name: str) -> list[tuple[str, str]]:
    """The entry points of an extension: (group, name)."""
    groups = read_groups((ROOT / "pyproject.toml").read_text("utf-8"))
    place = f"agenteval_tui.extensions.{name}."
    return [(group, part) for group, parts in groups.items() for part in parts if parts[part].startswith(place)]


@pytest.mark.sweep
def test_the_core_works_without_it_and_says_what_is_missing(
    extension: str, core: subprocess.Popen[str], checkout: Path, tmp_path: Path
) -> None:
    parts = parts_of(extension)
    assert parts, "nothing names it"
    check_core(core, checkout, tmp_path, parts)


def test_the_core_works_without_all_of_them(core: subprocess.Popen[str], checkout: Path, tmp_path: Path) -> None:
    folder, project = checkout / "agenteval_tui" / "extensions", checkout / "pyproject.toml"
    lines = project.read_text("utf-8")
    shutil.move(folder, tmp_path / "removed")
    project.write_text(lines_of(r"\w+").sub("", lines), "utf-8")
    try:
        assert python(checkout, tmp_path, ALL_MODULES).startswith(str(checkout))
        # Only the metric Similarity names an embedder, and it is gone too.
        parts = [part for name in NAMES for part in parts_of(name) if part[0] != "agenteval.embedders"]
        check_core(core, checkout, tmp_path, parts)
    finally:
        shutil.move(tmp_path / "removed", folder)
        project.write_text(lines, "utf-8")
