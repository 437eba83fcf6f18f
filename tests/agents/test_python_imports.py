"""What level 1 of the tree of processes imports: what a project's modules import from outside, found by reading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agenteval_tui.agents.process.python_effects import is_installed
from agenteval_tui.agents.process.python_imports import outside


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of modules, and one of installed packages."""
    packages = tmp_path / "lib" / "site-packages"
    (packages / "outer" / "deep").mkdir(parents=True)
    for path in ("outer/__init__.py", "outer/deep/__init__.py", "outer/part.py", "single.py", "other.py"):
        (packages / path).write_text("")
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder), str(packages), *sys.path])
    return folder


def found(project: Path, source: str, **modules: str) -> dict[str, set[str]]:
    """The packages that `mine` imports, less Python's own, and the names that it takes from them."""
    for name, text in {"mine": source, **modules}.items():
        path = project / f"{name.replace('pack_', 'pack/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return {name: names for name, names in outside(["mine"], is_installed) if name.partition(".")[0] in PACKAGES}


PACKAGES = ("outer", "single", "other")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import single", {"single": set()}),
        ("import outer.deep as d, other", {"outer.deep": set(), "other": set()}),
        ("from outer import part, name", {"outer": {"part", "name"}}),
        ("from outer.deep import *", {"outer.deep": set()}),
        ("try:\n    import single\nexcept ImportError:\n    single = None", {"single": set()}),
        ("import absent, single", {"single": set()}),
        ("if TYPE_CHECKING:\n    import outer\nimport single", {"single": set()}),
        ("def f():\n    import outer\nimport single", {"single": set()}),
        ("if __name__ == '__main__':\n    main()\nimport single", {"single": set()}),
        # What comes after a statement that may change it is left to the module.
        ("import os\nos.environ['A'] = '1'\nimport single", {}),
        ("import os\nos.environ.setdefault('A', '1')\nimport single", {}),
        ("import sys\nsys.path.insert(0, 'x')\nimport single", {}),
        ("import outer\nouter.patch()\nimport single", {"outer": set()}),
        ("def own(): ...\nown()\nimport single", {}),
        ("import os\nfor x in 'ab':\n    os.environ[x] = x\nimport single", {}),
        # These change nothing.
        ("from single import load_dotenv\nload_dotenv()\nimport other", {"single": {"load_dotenv"}, "other": set()}),
        ("import logging\nlogging.basicConfig()\nimport single", {"single": set()}),
        ("import single\nx = single.Graph()\nx.add('a').add('b')\nimport other", {"single": set(), "other": set()}),
        ("import os\nkey = os.environ.get('A')\nimport single", {"single": set()}),
        ("import single\ndef broken(:", {}),
    ],
)
def test_what_a_module_imports(project: Path, source: str, expected: dict[str, set[str]]) -> None:
    assert found(project, source) == expected


def test_imports_of_the_projects_own_modules_are_followed(project: Path) -> None:
    modules = {
        "pack___init__": "import single",
        "pack_one": "from . import two\nfrom .two import x",
        "pack_two": "from outer import part\nimport pack.one",
    }
    assert found(project, "from pack.one import f", **modules) == {"single": set(), "outer": {"part"}}


def test_a_module_of_the_project_comes_before_a_package_of_the_same_name(project: Path) -> None:
    assert found(project, "import single", single="import other") == {"other": set()}


def test_a_module_that_changes_something_ends_the_reading_for_those_that_import_it(project: Path) -> None:
    source = "import outer\nimport setup\nimport single"
    assert found(project, source, setup="import other\nimport os\nos.environ['A'] = '1'") == {
        "outer": set(),
        "other": set(),
    }


def test_what_a_package_imports_at_its_first_call_is_imported_before_runs(tmp_path: Path) -> None:
    for name in ("langgraph/__init__.py", "langchain_core/__init__.py", "langchain_core/prompt_values.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    program = (
        "import sys\nfrom agenteval_tui.agents.process import python_imports\nsys.path.insert(0, sys.argv[1])\n"
        "python_imports.load([('json', set())])\nprint('langchain_core' in sys.modules)\n"
        "python_imports.load([('langgraph', set())])\nprint('langchain_core.prompt_values' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
