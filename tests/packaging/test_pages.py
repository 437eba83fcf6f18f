"""Pages that scripts make are as the scripts make them: what commands print, which are run here from a page's top to
its end, in this process; and the tables of the reference, which come from the models."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from pydantic import BaseModel

from agenteval_tui.grading.metrics.matchers import MATCHER_DOCS, NAMES
from agenteval_tui.tui.action import EVERYWHERE
from agenteval_tui.tui.actions import ACTIONS, key_word
from agenteval_tui.uxon.parse import parse

ROOT = Path(__file__).resolve().parents[2]


def _script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make_console = _script("make_console")


@pytest.mark.sweep
@pytest.mark.parametrize("page", make_console.pages(), ids=lambda path: path.stem)
def test_the_page_shows_what_its_commands_print(page: Path, tmp_path: Path) -> None:
    made = make_console.page(page, tmp_path)
    assert made == page.read_text("utf-8"), f"run python docs/make_console.py {page.relative_to(ROOT)}"


make_suites = _script("make_suites")
make_uxon = _script("make_uxon")


@pytest.mark.parametrize("script", [make_suites, make_uxon], ids=["suites", "uxon"])
def test_the_tables_are_made_anew(script: ModuleType) -> None:
    page = script.PAGE.read_text("utf-8")
    assert script.page(page) == page, f"run python docs/make_{script.PAGE.stem}.py"


def test_every_key_of_a_suite_says_what_it_is() -> None:
    models = make_suites.models()
    assert models.keys() == make_suites.HEADINGS.keys(), "a section for each model"
    page = make_suites.PAGE.read_text("utf-8")
    for name, model in models.items():
        assert f"<!-- keys: {name} -->" in page
        assert re.search(rf"^##+ {re.escape(make_suites.HEADINGS[name])}$", page, re.MULTILINE), name
        assert [key for key, field in model.model_fields.items() if not field.description] == [], name


def test_every_key_of_a_suite_is_in_an_example() -> None:
    """The suites of the page are loaded, validated and run by its commands; together they have every key."""
    used: dict[str, set[str]] = {}
    page = make_suites.PAGE.read_text("utf-8")
    for title, block in re.findall(r"```yaml title=\"([\w.-]+)\"\n(.*?)```", page, re.DOTALL):
        if title != "broken.suite.yaml":
            _collect(make_suites.models()["Suite"], yaml.safe_load(block), used)
    for name, model in make_suites.models().items():
        assert _keys(model).keys() - used.get(name, set()) == set(), name


def _keys(model: type[BaseModel]) -> dict[str, Any]:
    """What people write for the fields of a model: the type of each."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


def _collect(model: type[BaseModel], value: Any, used: dict[str, set[str]]) -> None:
    for key in value.keys() & _keys(model).keys():
        used.setdefault(model.__name__, set()).add(key)
        for inner in make_suites.inner_models(_keys(model)[key]):
            for one in _objects(value[key], inner):
                _collect(inner, one, used)


def _objects(value: Any, model: type[BaseModel]) -> list[dict[str, Any]]:
    """The objects of a value that are written as that model: itself, the items of a list, or the values by name."""
    if isinstance(value, list):
        return [one for one in value if isinstance(one, dict)]
    if not isinstance(value, dict):
        return []
    return [value] if value.keys() & _keys(model).keys() else [one for one in value.values() if isinstance(one, dict)]


def test_every_matcher_and_every_mistake_is_on_the_page() -> None:
    assert make_uxon.MATCHED.keys() == set(NAMES) == MATCHER_DOCS.keys()
    for text in make_uxon.MISTAKES:
        assert parse(text).diagnostics[0].fix is not None, "each has a fix"


def test_the_pictures_are_made_anew() -> None:
    made = _script("make_pictures").pictures()
    there = {path.name: path.read_text("utf-8") for path in (ROOT / "docs" / "pictures").glob("*.svg")}
    assert there == made, "run python docs/make_pictures.py"
    for name in made:
        ElementTree.fromstring(made[name])
        assert f"](pictures/{name})" in (ROOT / "docs" / "concepts.md").read_text("utf-8")


@pytest.mark.parametrize("page", ["docs/architecture.md", "CONTRIBUTING.md"])
def test_what_a_page_for_developers_names_is_there(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    named = {name.split("#")[0] for name in re.findall(r"`([\w./*-]+)`", text) if "/" in name}
    named |= set(re.findall(r"\b((?:tests|docs|benchmarks|agenteval_tui)/[\w./-]*\w)", text))
    missing = [name for name in sorted(named) if not any([*ROOT.glob(name), *(ROOT / "agenteval_tui").glob(name)])]
    assert missing == []
    # A file beside one that was named: `schema.py` exists in many folders, and any of them counts.
    files = {path.name for path in (ROOT / "agenteval_tui").rglob("*.py")}
    assert set(re.findall(r"`(\w+\.py)`", text)) <= files


SCREENS = {
    "docs/inspect.md": ("inspect", "difference", "branches", "error", "config"),
    "docs/history.md": ("history",),
    "docs/triage.md": ("causes", "review", "inspect", "suites"),
    "docs/compare.md": ("compare", "suites", "run", "history", "inspect"),
    "docs/trends.md": ("trends", "suites"),
    "docs/fork.md": ("inspect", "branches"),
    "docs/blame.md": ("inspect",),
    "docs/shrink.md": ("inspect",),
    "docs/suggest.md": ("inspect", "edit"),
    "docs/record.md": ("run", "inspect"),
    "docs/listen.md": ("run",),
    "docs/tour.md": ("inspect",),
    "README.md": ("suites", "inspect", "edit"),
}
"""Pages that tell the keys of screens, and whose actions they may be."""
KEY = re.compile(r"`([][.,<>/\":*?A-Za-z0]|F\d+|\^[a-z]|alt\+[a-z]|space)`")
ELSEWHERE = {
    "docs/compare.md": {"r"},
    "docs/blame.md": {"r", "S"},
    "docs/suggest.md": {"y", "n", "u", "]", "["},
    "docs/fork.md": {"^s"},
    "docs/tour.md": {"y", "n"},
    "README.md": {"y", "n"},
    "docs/trends.md": {"a", "v"},
}
"""Keys of sheets and names of formulas, which are no actions of a screen."""
SAID_OTHERWISE = {
    "docs/inspect.md": {"n", "p"},  # they go from hit to hit while a search is open
}
"""Keys that do there something beside what the table of actions says."""
NEAR = 110  # letters around a key, in which the page says what it does


def _stems(words: str) -> set[str]:
    return {word[:4].lower() for word in re.findall(r"[A-Za-z]{3,}", words)} - {"the", "and", "with", "this", "that"}


@pytest.mark.parametrize("page", SCREENS)
def test_a_page_names_only_keys_that_there_are_and_says_what_they_do(page: str) -> None:
    by_key: dict[str, set[str]] = {}
    for one in ACTIONS:
        if one.scope in (*SCREENS[page], EVERYWHERE):
            for key in filter(None, one.keys.split(",")):
                by_key.setdefault(key_word(key), set()).update(_stems(f"{one.id} {one.label} {one.description}"))
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    wrong = []
    for found in KEY.finditer(text):
        key = found[1]
        if key in ELSEWHERE.get(page, set()):
            continue
        near = text[max(found.start() - NEAR, 0) : found.end() + NEAR]
        says = key in SAID_OTHERWISE.get(page, set()) or by_key.get(key, set()) & _stems(near)
        if key not in by_key or not says:
            wrong.append((key, near))
    assert KEY.search(text)
    assert wrong == []
