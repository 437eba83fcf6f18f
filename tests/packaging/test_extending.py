"""docs/extending.md works: its files are written into a copy of the checkout, and its commands run there."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
SECTIONS = {found[1]: found[2] for found in re.finditer(r"^## (A[^:]*):.*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)}
BLOCK = re.compile(r"(?:^[^\n]*?`(?P<path>[^`\n]+)`(?:, below the line with `(?P<below>[^`\n]+)`)?:\n\n)?"
                   r"^```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.M | re.S)  # fmt: skip
COPIED = ("agenteval_tui", "themes", "sample_suites", "docs", "pyproject.toml", "tests/conftest.py", "tests/packaging")
COPIED_TESTS = (
    "agents/conftest.py",
    "analysis/conftest.py",
    "cli/conftest.py",
    "extensions/conftest.py",
    "formats/conftest.py",
    "grading/test_metric_pages.py",
    "servers/forked_python.py",
    "servers/prestarted.py",
    "slow.txt",
    "sweeps.py",
    "tui/conftest.py",
    "tui/shop.py",
    "tui/terminal.py",
)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the page needs of the checkout, compiled files included."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".git").mkdir()  # a project of its own, as every checkout is
    for name in (*COPIED, *(f"tests/{one}" for one in COPIED_TESTS)):
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        else:
            shutil.copy2(source, target)
    return folder


def run(line: str, folder: Path) -> str:
    """What a command of the page prints. `python`, `pytest` and `agenteval` are those of this environment."""
    words = shlex.split(line)
    programs = {
        "python": [],
        # Plug-ins that no test of the page uses cost each start a third of a second.
        "pytest": ["-m", "pytest", "-p", "no:cacheprovider", "-p", "no:textual-snapshot", "-p", "no:syrupy"],
        "agenteval": ["-m", "agenteval_tui"],
    }
    done = subprocess.run(
        [sys.executable, *programs[words[0]], *words[1:]],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def follow(section: str, folder: Path) -> dict[str, str]:
    """Do what a section says; gives what each command printed."""
    printed = {}
    for block in BLOCK.finditer(SECTIONS[section]):
        if block["kind"] == "sh":
            printed.update({line: run(line, folder) for line in block["text"].splitlines()})
            continue
        path = folder / block["path"]
        if block["below"] is None:
            assert not path.exists(), "the page writes over a file"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block["text"], encoding="utf-8")
            continue
        before, line, after = re.split(rf"(^.*{re.escape(block['below'])}.*\n)", path.read_text("utf-8"), flags=re.M)
        path.write_text(before + line + block["text"] + after, encoding="utf-8")
    return printed


def test_a_metric(checkout: Path) -> None:
    printed = follow("A metric", checkout)
    assert "pass rate 100 %" in printed["agenteval run questions.suite.yaml"]
    assert "Questions" in (checkout / "docs" / "metrics" / "README.md").read_text("utf-8")


def test_a_kind_of_agent(checkout: Path) -> None:
    printed = follow("A kind of agent", checkout)
    assert "pass rate 100 %" in printed["agenteval run echo.suite.yaml"]
    assert "How often it says it." in (checkout / "docs" / "agents.md").read_text("utf-8")


def test_a_framework(checkout: Path) -> None:
    assert follow("A framework", checkout)


def test_a_format(checkout: Path) -> None:
    printed = follow("A format", checkout)
    assert "questions-answers" in printed["agenteval import faq.jsonl"]
    assert "It was sent yesterday." in printed["agenteval export last -"]


def test_a_command(checkout: Path) -> None:
    printed = follow("A command", checkout)
    assert "0 errors in" in printed["agenteval errors --db demo.db --all-projects"]
    assert "List the runs of an execution that ended in an error." in printed["agenteval --help"]
    assert "## errors" in (checkout / "docs" / "command-line.md").read_text("utf-8")


def test_a_screen(checkout: Path) -> None:
    follow("A screen", checkout)
    assert "Go to the version" in (checkout / "docs" / "keys.md").read_text("utf-8")
