"""Rules of the house that no linter knows, and what is in the wheel."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TUI = ROOT / "agenteval_tui" / "tui"


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    """(name of what is called, the call) in a source file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            yield name, node


@pytest.mark.parametrize("path", sorted(TUI.rglob("*.py")), ids=lambda p: str(p.relative_to(TUI)))
def test_foreign_text_has_no_way_around_the_one_door(path: Path) -> None:
    """No bare notify (markup), no Static or Label (markup by default), no print: `notifications` and lines instead."""
    banned = {"notify", "Static", "Label", "Markdown", "RichLog", "DataTable", "OptionList", "Tooltip", "print"}
    if not banned & set(re.findall(r"\w+", path.read_text(encoding="utf-8"))):
        return  # what is not even named is not called: most modules need not be parsed
    found = [f"{name} in line {call.lineno}" for name, call in calls(path) if name in banned]
    assert not found


@pytest.mark.parametrize(
    "path",
    sorted([*(TUI / "presenters").glob("*.py"), *(TUI / "screens").rglob("*controller.py")]),
    ids=lambda p: p.relative_to(TUI).as_posix(),
)
def test_presenters_and_controllers_know_nothing_of_the_toolkit(path: Path) -> None:
    toolkit = r"^\s*(from|import) (textual|agenteval_tui\.tui\.(widgets|terminal))"
    assert not re.search(toolkit, path.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built and unpacked as an installer does it: the folder that is on the path then."""
    folder = tmp_path_factory.mktemp("wheel")
    done = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    return folder / "site"


@pytest.mark.xdist_group("wheel")
def test_the_wheel_holds_themes_and_sample_suites(installed: Path) -> None:
    for wanted in (
        "agenteval_tui/bundled/themes/dusk.yaml",
        "agenteval_tui/bundled/sample_suites/support.suite.yaml",
        "agenteval_tui/bundled/sample_suites/recorded/demo-rules-v1.jsonl",
        "agenteval_tui/extensions/serve/page/index.html",
        "agenteval_tui/tui/app.tcss",
        "agenteval_tui/tui/screens/inspect/screen.tcss",
        "agenteval_tui/py.typed",
    ):
        assert (installed / wanted).is_file()
    assert not [name for name in ("tests", "benchmarks", "docs") if (installed / name).exists()]


@pytest.mark.xdist_group("wheel")
def test_who_installed_the_wheel_reads_the_documentation(installed: Path, tmp_path: Path) -> None:
    pages = installed / "agenteval_tui" / "bundled" / "docs"
    there = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    there = {path for path in there if path.parts[0] not in ("decisions", "site")}
    assert {path.relative_to(pages) for path in pages.rglob("*.md")} == there
    done = subprocess.run(
        [sys.executable, "-m", "agenteval_tui", "docs", "agents"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("Agents\n======\n")
    assert "`agenteval docs network`" in done.stdout


@pytest.mark.xdist_group("wheel")
def test_the_readme_of_the_package_has_no_link_that_leads_nowhere(installed: Path) -> None:
    (info,) = installed.glob("*.dist-info")
    metadata = (info / "METADATA").read_text(encoding="utf-8")
    described = metadata.partition("\n\n")[2]
    assert described.startswith("# agenteval\n")
    assert re.findall(r"\]\((?!https?://)", described) == []
    hooks = runpy.run_path(str(ROOT / "docs" / "hatch_build.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    absolute = hooks["for_package_index"](readme, "https://example.com/agenteval")
    assert "](https://example.com/agenteval/raw/main/docs/screenshots/loop.svg)" in absolute
    assert re.findall(r"\]\((?!https?://)", absolute) == []
    assert hooks["for_package_index"]("[docs/ci.md](docs/ci.md) [CI](docs/ci.md#x)", "") == (
        "`agenteval docs ci` CI (`agenteval docs ci`)"
    )
    addresses = hooks["addresses"]("https://example.com/agenteval", "https://docs.example.com")
    assert set(addresses) == {"Documentation", "Repository", "Issues", "Changelog"}
    assert hooks["addresses"]("", "") == {}


def test_every_module_says_what_it_is() -> None:
    for path in sorted((ROOT / "agenteval_tui").rglob("*.py")):
        # Up to the end of the first statement, and not the whole: to parse all of the program takes seconds.
        first = re.match(r'"""(?s:.*?)"""\n', path.read_text(encoding="utf-8"))
        assert first, path
        assert ast.get_docstring(ast.parse(first[0])), path


def test_what_is_counted_of_a_whole_has_its_thousands_apart() -> None:
    """`1,100 of 1,200 passed`: figures of runs, in whatever is shown or printed."""
    bare = re.compile(r"""f["'][^"']*\{[\w.]+\.(passed|failed|errors|n|runs|total|done|count)\} of """)
    sources = (ROOT / "agenteval_tui").rglob("*.py")
    assert [path.name for path in sources if bare.search(path.read_text("utf-8")) and "api" not in path.parts] == []


def test_one_more_of_something_is_not_one_mores() -> None:
    """How many more there are is a count with its noun, which is singular after 1."""
    bare = re.compile(r"""f["'][^"']*\{[^{}"']+\} more (?!characters)[a-z]+s\b""")
    sources = (ROOT / "agenteval_tui").rglob("*.py")
    found = [hit for path in sources for hit in bare.findall(path.read_text("utf-8"))]
    # Those of difference and github are two at least; `step_text` counts "times".
    assert [hit for hit in found if "{number}" not in hit and "{remaining}" not in hit and "times" not in hit] == []


def test_names_say_what_is_inside() -> None:
    vague = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
    assert not [path for path in (ROOT / "agenteval_tui").rglob("*.py") if path.stem in vague]


def test_our_own_classes_stand_at_most_two_deep() -> None:
    """Below a library's class or a protocol: what needs more is composed."""
    bases: dict[tuple[str, str], set[str]] = {}
    for path in sorted((ROOT / "agenteval_tui").rglob("*.py")):
        for name, given in re.findall(r"(?m)^class (\w+)\(([^)]*)\):", path.read_text(encoding="utf-8")):
            bases[str(path), name] = set(re.findall(r"\w+", re.sub(r"\[.*\]", "", given)))
    public = {name: (path, name) for path, name in bases if not name.startswith("_")}

    def above(path: str, name: str) -> set[tuple[str, str]]:
        named = ((path, base) if (path, base) in bases else public.get(base) for base in bases[path, name])
        own = {base for base in named if base and base != (path, name)}
        return own.union(*(above(*base) for base in own))

    assert [one for one in bases if len(above(*one)) > 2] == []


def test_every_action_has_a_method_a_key_and_a_palette_entry() -> None:
    from agenteval_tui.core.entry_points import ACTIONS as GROUP
    from agenteval_tui.core.entry_points import EntryPoint
    from agenteval_tui.tui.actions import ACTIONS, BY_ID, with_extensions
    from agenteval_tui.tui.app import AgentevalApp
    from agenteval_tui.tui.screen_registry import FACTORIES
    from agenteval_tui.tui.screens.inspect.run_views import BranchesPane, ContextPane, DifferencePane, ErrorPane
    from agenteval_tui.tui.widgets.config_editor import ConfigEditor

    screens = [factory() for factory in FACTORIES.values()]
    owners: dict[str, type] = {screen.SCOPE: type(screen) for screen in screens} | {"config": ConfigEditor}
    owners |= {pane.NAME: pane for pane in (DifferencePane, BranchesPane, ErrorPane, ContextPane)}
    assert len(BY_ID) == len(with_extensions())
    for action in ACTIONS:
        assert action.description
        name = action.method.split("(")[0]
        if name == "extension":
            assert callable(EntryPoint(GROUP, action.id, ast.literal_eval(action.method[9:]), "").load()), action.id
        elif name.startswith("app."):
            assert hasattr(AgentevalApp, f"action_{name[4:]}"), action.id
        else:
            assert hasattr(owners[action.scope], f"action_{name}"), action.id


def test_every_key_of_a_sheet_or_widget_is_an_action_that_it_can_do() -> None:
    from textual.binding import Binding
    from textual.dom import DOMNode

    from agenteval_tui.tui.actions import BY_ID

    for path in (*TUI.rglob("*.py"), *(ROOT / "agenteval_tui" / "extensions").glob("*/sheet.py")):
        import_module(".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"))
    used: set[str] = set()
    for cls in _below(DOMNode):
        own = cls.__dict__.get("BINDINGS", ()) if cls.__module__.startswith("agenteval_tui.") else ()
        for binding in own:
            assert isinstance(binding, Binding)
            assert binding.id in BY_ID, f"{cls.__name__}: {binding}"
            method = BY_ID[binding.id].method.split("(")[0]
            if "." not in method and method != "extension":
                assert hasattr(cls, f"action_{method}"), f"{cls.__name__}: {binding.id}"
            used.add(binding.id)
    assert not [action.id for action in BY_ID.values() if action.id not in used]


def _below(cls: type) -> Iterator[type]:
    for below in cls.__subclasses__():
        yield below
        yield from _below(below)


def test_no_key_of_a_screen_means_two_things() -> None:
    from agenteval_tui.tui.action import EVERYWHERE
    from agenteval_tui.tui.actions import ACTIONS

    for scope in {action.scope for action in ACTIONS}:
        taken: dict[str, str] = {}
        for action in ACTIONS:
            if action.scope in (scope, EVERYWHERE):
                for key in filter(None, action.keys.split(",")):
                    assert key not in taken, f"{key} is {taken.get(key)} and {action.id} on {scope}"
                    taken[key] = action.id


ANSWERS = {"y": "review.passed", "n": "review.failed"}
"""Review asks a question, as sheets do: there these keys answer it, and nothing is copied or gone to."""


def test_terminals_can_send_every_alt_key() -> None:
    """Most send escape and the letter, and some of those mean another key: escape and f is ctrl+right."""
    from textual._ansi_sequences import ANSI_SEQUENCES_KEYS

    from agenteval_tui.tui.actions import ACTIONS

    keys = {key.removeprefix("alt+") for one in ACTIONS for key in one.keys.split(",") if key.startswith("alt+")}
    assert keys
    assert not {key for key in keys if f"\x1b{key}" in ANSI_SEQUENCES_KEYS}


def test_a_key_means_one_thing_on_all_screens() -> None:
    from agenteval_tui.tui.actions import ACTIONS, BY_ID, key_word

    meanings = runpy.run_path(str(ROOT / "docs" / "make_keys.py"))["MEANINGS"]
    assert len({said[0] for key, said in meanings.items() if key != "="}) == len(meanings) - 1, "two keys, one meaning"
    used: dict[str, set[str]] = {}
    for action in ACTIONS:
        for key in map(key_word, filter(None, action.keys.split(","))):
            if len(key) > 1 or key.isdigit():
                continue  # digits are screens; keys with names have the meaning of their name
            assert action.label in meanings[key][1:], f"{key} means {meanings[key][0]}: {action.id}"
            used.setdefault(key, set()).add(action.label)
    assert {key: set(said[1:]) for key, said in meanings.items()} == used, "a meaning that no action has"
    assert {key: BY_ID[one].keys for key, one in ANSWERS.items()} == {key: key for key in ANSWERS}
    assert [one.id for one in ACTIONS if one.label in ("passed", "failed")] == list(ANSWERS.values())


def test_the_page_of_keys_is_made_anew() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_keys.py"))["page"]()
    assert (ROOT / "docs" / "keys.md").read_text(encoding="utf-8") == made, "run python docs/make_keys.py"
