"""The code that counts for `--cache`: what a program imports or reads is part of the question that it is asked."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.history.store import Store
from agenteval_tui.runs.program_code import program_code, project_of
from agenteval_tui.runs.response_cache import fingerprint

PYTHON = {"kind": "command", "command": ["python3", "agent.py"]}
AGENT = "from lib import helper\nprint(helper.WORD)\n"


def files(folder: Path, content: Mapping[str, str]) -> None:
    for name, text in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


BESIDE = {"evals/agent.py": AGENT, "evals/lib/helper.py": "WORD = 1\n"}
CASES: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "a helper beside it": (BESIDE, PYTHON, "evals/lib/helper.py"),
    "in a package of the project": (
        {"pyproject.toml": "", "evals/agent.py": "import shop.prices", "src/shop/prices.py": "ONE = 1"},
        PYTHON,
        "src/shop/prices.py",
    ),
    "for a python agent": (BESIDE, {"kind": "python", "callable": "agent:main"}, "evals/lib/helper.py"),
    "for a function in a file": (BESIDE, {"kind": "python", "callable": "agent.py:main"}, "evals/lib/helper.py"),
    "for a function in a file elsewhere": (
        {"evals/a.suite.yaml": "", "app/agent.py": AGENT, "app/lib/helper.py": "WORD = 1"},
        {"kind": "python", "callable": "../app/agent.py:main"},
        "app/lib/helper.py",
    ),
    "a module": (BESIDE, {"kind": "command", "command": "python3 -m agent"}, "evals/lib/helper.py"),
    "code in the command of a runner of TypeScript": (
        {"evals/agent.ts": "import './prices.js'", "evals/prices.ts": "export const ONE = 1"},
        {"kind": "command", "command": ["npx", "--yes", "tsx", "-e", "import('./agent')"]},
        "evals/prices.ts",
    ),
    "code in the command": (
        BESIDE,
        {"kind": "command", "command": ["python3", "-c", "import agent"]},
        "evals/agent.py",
    ),
    "in a shell": (
        BESIDE,
        {"kind": "command", "command": "cd . && python3 agent.py", "shell": True},
        "evals/lib/helper.py",
    ),
    "in another folder": (
        {"evals/a.suite.yaml": "", "app/agent.py": AGENT, "app/lib/helper.py": "WORD = 1"},
        {"kind": "command", "command": "python3 agent.py", "cwd": "../app"},
        "app/lib/helper.py",
    ),
    "named in another folder": (
        {"evals/a.suite.yaml": "", "app/agent.py": AGENT, "app/lib/helper.py": "WORD = 1"},
        {"kind": "command", "command": "python3 ../app/agent.py"},
        "app/lib/helper.py",
    ),
    "on the path of modules": (
        {"evals/agent.py": "import helper", "lib/helper.py": "WORD = 1"},
        {**PYTHON, "env": {"PYTHONPATH": "../lib"}},
        "lib/helper.py",
    ),
    "JavaScript": (
        {"evals/agent.js": "require('./lib/words')", "evals/lib/words.js": "module.exports = 1"},
        {"kind": "command", "command": "node agent.js"},
        "evals/lib/words.js",
    ),
    "a shell's": (
        {"evals/agent.sh": ". ./words.sh", "evals/words.sh": "WORD=1"},
        {"kind": "command", "command": "sh agent.sh"},
        "evals/words.sh",
    ),
    "a prompt that it reads": (
        {"evals/agent.py": "print(open('prompts/system.md').read())", "evals/prompts/system.md": "be kind"},
        PYTHON,
        "evals/prompts/system.md",
    ),
    "a folder of prompts": (
        {"evals/agent.py": "list(Path('prompts').glob('*'))", "evals/prompts/system.md": "be kind"},
        PYTHON,
        "evals/prompts/system.md",
    ),
    "a tool's": (
        {"evals/tool.py": "import helper", "evals/helper.py": "WORD = 1"},
        {"kind": "openai", "model": "m", "tools": [{"name": "look", "command": ["python3", "tool.py"]}]},
        "evals/helper.py",
    ),
    "an MCP server's": (
        {"evals/tool.py": "import helper", "evals/helper.py": "WORD = 1"},
        {"kind": "openai", "model": "m", "tools": [{"mcp": {"command": ["python3", "tool.py"]}}]},
        "evals/helper.py",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_program_is_made_of_counts(tmp_path: Path, case: str) -> None:
    content, config, changed = CASES[case]
    files(tmp_path, content)

    def now() -> str:
        code = program_code(config, tmp_path / "evals")
        assert not code.unknown
        return fingerprint(config, tmp_path / "evals", trusted=True, code=code)

    before = now()
    assert before
    assert now() == before
    (tmp_path / changed).write_text("another")
    assert now() != before
    (tmp_path / changed).write_text(content[changed])
    assert now() == before


def test_what_a_program_and_its_execution_write_does_not_count(tmp_path: Path) -> None:
    files(tmp_path, {"agent.py": "with open('asked.txt', 'a') as f: f.write('x')\n", "a.suite.yaml": "tests: []"})
    before = program_code(PYTHON, tmp_path)
    files(
        tmp_path,
        {
            "asked.txt": "x",
            "reports/results.json": "{}",
            "h.db": "",
            "__pycache__/agent.pyc": "",
            "x.log": "",
            ".next/server/page.js": "",
            "tsconfig.tsbuildinfo": "",
        },
    )
    files(tmp_path, {"a.suite.yaml": "tests: [1]"})
    assert program_code(PYTHON, tmp_path) == before


def test_a_project_may_lie_in_the_folder_of_a_tool(tmp_path: Path) -> None:
    files(tmp_path, {".cache/app/agent.py": "import helper\n", ".cache/app/helper.py": "WORD = 1\n", "evals/a.txt": ""})
    config = {"kind": "command", "command": ["python3", "../.cache/app/agent.py"]}
    assert any(name.endswith("helper.py") for name in program_code(config, tmp_path / "evals").files)


def test_what_a_packed_file_happens_to_say_names_nothing(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    files(tmp_path, {"agent.py": "print('hi')\n", "logo.eps": "a\0b\nnotes.csv\n", "notes.csv": "1"})
    before = program_code(PYTHON, tmp_path)
    files(tmp_path, {"notes.csv": "2"})
    assert program_code(PYTHON, tmp_path) == before
    files(tmp_path, {"logo.eps": "a\0c\nnotes.csv\n"})
    assert program_code(PYTHON, tmp_path) != before


def test_two_checkouts_of_one_project_are_the_same_program(tmp_path: Path) -> None:
    for name in ("one", "two"):
        files(tmp_path / name, BESIDE)
    assert program_code(PYTHON, tmp_path / "one/evals") == program_code(PYTHON, tmp_path / "two/evals")


@pytest.mark.parametrize(
    ("config", "unknown"),
    [
        ({"kind": "http", "url": "http://127.0.0.1:1/"}, "server"),
        ({"kind": "command", "command": "docker run shop/agent"}, "server"),
        ({"kind": "command", "command": "curl -d @- http://127.0.0.1:1", "shell": True}, "server"),
        ({"kind": "openai", "model": "m", "tools": [{"mcp": {"url": "http://127.0.0.1:1"}}]}, "server"),
        ({"kind": "command", "command": "npx some-agent"}, "installed"),
        ({"kind": "command", "command": ["python3", "-m", "some_package"]}, "installed"),
        ({"kind": "python", "callable": "some_package:main"}, "installed"),
    ],
)
def test_where_nobody_can_tell_an_answer_is_not_kept_but_for_a_revision(
    tmp_path: Path, config: dict[str, Any], unknown: str
) -> None:
    files(tmp_path, BESIDE)
    code = program_code(config, tmp_path)
    assert (code.hash, code.unknown) == ("", unknown)
    assert fingerprint(config, tmp_path, code=code) == ""
    one, two = (fingerprint({**config, "revision": name}, tmp_path, code=code) for name in ("a", "b"))
    assert one
    assert one != two


def test_a_program_that_says_itself_where_its_modules_are(tmp_path: Path) -> None:
    files(tmp_path / "evals", {"agent.py": "import sys\nsys.path.append(place())\nimport helper_elsewhere\n"})
    assert program_code(PYTHON, tmp_path / "evals").unknown == "path"
    files(tmp_path / "evals", {"lib/helper_elsewhere.py": ""})
    assert program_code(PYTHON, tmp_path / "evals").unknown == ""


def test_a_package_of_the_projects_own_environment_is_installed(tmp_path: Path) -> None:
    code = "import sys\nsys.path.append(place())\nimport sdk_of_it, fast_of_it, linked_of_it\n"
    packages = ".venv/lib/python3.11/site-packages"
    files(
        tmp_path,
        {
            "agent.py": code,
            ".venv/pyvenv.cfg": "home = /usr/bin\nversion = 3.11.2\n",
            f"{packages}/sdk_of_it/__init__.py": "",
            f"{packages}/fast_of_it.cpython-311-x86_64-linux-gnu.so": "",
            f"{packages}/links.pth": f"import nothing\n{tmp_path / 'beside'}\n",
            "beside/linked_of_it.py": "WORD = 1",
        },
    )
    (tmp_path / ".venv/bin").mkdir()
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    own = {"agent.py", "beside/linked_of_it.py"}
    agent = {"kind": "python", "callable": "agent.py:main"}
    for config in (agent, PYTHON):
        code = program_code(config, tmp_path)
        assert (code.unknown, code.files.keys() & own) == ("", own)


def test_what_is_in_the_project_is_known_where_more_may_count(tmp_path: Path) -> None:
    files(tmp_path, {"agent.py": "import sys\nsys.path.append(place())\nimport helper_elsewhere\n"})
    code = program_code(PYTHON, tmp_path)
    assert (code.hash, code.unknown, "agent.py" in code.files) == ("", "path", True)


def test_a_model_has_no_program(tmp_path: Path) -> None:
    config = {"kind": "openai", "model": "m"}
    assert program_code(config, tmp_path) == program_code({"kind": "replay"}, tmp_path)
    assert fingerprint(config, tmp_path, code=program_code(config, tmp_path))


@pytest.mark.parametrize("mark", [".git", "pyproject.toml", ""])
def test_the_project_of_a_folder(tmp_path: Path, mark: str) -> None:
    here = tmp_path / "a" / "b"
    here.mkdir(parents=True)
    if mark:
        (tmp_path / mark).mkdir() if mark == ".git" else (tmp_path / mark).touch()
    assert project_of(here) == (tmp_path if mark else here)


def test_the_home_folder_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / "a").mkdir()
    assert project_of(tmp_path / "a") == tmp_path / "a"


def test_a_history_in_the_project_is_left_to_sqlite(tmp_path: Path) -> None:
    """To read it would drop the locks of the process on it, and lose what is written after that."""
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    return open('history.db', 'rb').read()\n")
    opened: list[str] = []
    watching = True

    def hook(event: str, given: tuple[object, ...]) -> None:
        if watching and event == "open" and "history.db" in str(given[0]):
            opened.append(str(given[0]))

    with Store.open(tmp_path / "history.db"):
        sys.addaudithook(hook)
        program_code({"kind": "python", "callable": "agent:answer"}, tmp_path)
        watching = False
    assert opened == []
