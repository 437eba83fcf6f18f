"""Readers of frameworks: entry points name them, and each is loaded where an agent of its framework runs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import agenteval_tui as agenteval
from agenteval_tui.agents.discovery.frameworks import framework_packages, makers
from agenteval_tui.agents.discovery.search import find_agents
from agenteval_tui.agents.process import python_frameworks
from agenteval_tui.agents.process.framework_readers import reader_files
from agenteval_tui.core import entry_points

from .conftest import run_in
from .test_debugged_call import shown

READER = '''
import sys

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_frameworks as frameworks
else:
    frameworks = sys.modules["_agenteval.python_frameworks"]


class Asked:
    """What an agent was asked: a class of the reader's own."""

    def __init__(self, prompt):
        self.prompt = prompt


class Pieces:
    def __init__(self, conversation, read):
        self._conversation = conversation

    def read(self, piece):
        if type(piece).__name__ == "Asked":
            self._conversation.text("You asked: " + piece.prompt)
            return True
        return False


FRAMEWORK = frameworks.Framework(
    title="Toys",
    runner=lambda agent, target: (lambda request: Asked(request["prompt"])) if hasattr(agent, "toy") else None,
    pieces=Pieces,
    makers=(frameworks.Maker("toys", ("Toy",)),),
)
'''


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that reads objects of the framework `toys`, installed for agenteval, and not for the agent."""
    place = tmp_path / "installed"
    (place / "toys_reader").mkdir(parents=True)
    (place / "toys_reader" / "__init__.py").write_text("")
    (place / "toys_reader" / "reader.py").write_text(READER)
    about = place / "toys_reader-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toys-reader\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[agenteval.frameworks]\ntoys = toys_reader.reader:FRAMEWORK\n")
    project = tmp_path / "project"
    project.mkdir()
    (project / "toys.py").write_text("class Toy:\n    toy = True\n")
    (project / "bot.py").write_text("from toys import Toy\nagent = Toy()\n")
    monkeypatch.syspath_prepend(str(place))
    caches = (entry_points._plugins, reader_files, makers, framework_packages)
    for cache in caches:
        cache.cache_clear()
    monkeypatch.setattr(python_frameworks, "_known", {})
    yield project
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("toys_reader", "toys", "bot")]:
        del sys.modules[name]
    for cache in caches:
        cache.cache_clear()


BOT = {"kind": "python", "callable": "bot:agent"}


async def test_a_reader_of_a_plug_in_runs_agents_of_its_framework(toys: Path) -> None:
    ran = await run_in(toys)(BOT, "Hello?")
    assert (ran.transcript.error, ran.transcript.notes) == (None, ())
    assert ran.transcript.final_output == "You asked: Hello?"


def test_its_agents_are_found(toys: Path) -> None:
    (found,) = find_agents(toys).agents
    assert (found.framework, found.config["callable"]) == ("Toys", "bot.py:agent")


@pytest.mark.parametrize("text", [None, "import nothing_like_this\n", "FRAMEWORKS = 1\n"])
async def test_a_broken_reader_is_said_once_and_harms_nothing_else(toys: Path, text: str | None) -> None:
    reader = toys.parent / "installed" / "toys_reader" / "reader.py"
    reader.unlink() if text is None else reader.write_text(text)
    (toys / "other.py").write_text("def agent(prompt):\n    return 'fine'\n")
    ran = await run_in(toys)(BOT)
    assert ran.transcript.error is not None
    assert ran.transcript.error.message.startswith("the reader of objects of toys can't be loaded: ")
    assert ran.transcript.error.message.endswith("reader.py); install its package again")
    other = await run_in(toys)({"kind": "python", "callable": "other:agent"})
    assert other.transcript.final_output == "fine"
    assert [found.framework for found in find_agents(toys).agents] == []


def test_in_our_own_process_the_reader_is_a_module(toys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(toys))
    agent = import_module("bot").agent
    framework = python_frameworks.of(agent)
    assert framework is not None
    run = framework.runner(agent, "bot:agent")
    assert run is not None
    assert python_frameworks.of(run({"prompt": "Hello?"})) is framework
    config = {"metrics": [{"type": "TextMatch", "contains": "You asked: Hello?"}]}
    criterion = {"name": "asked", "prototype_class": "TextResponse", "config_uxon": config}
    graded = agenteval.grade(run({"prompt": "Hello?"}), criterion)
    assert graded.passed


def test_the_readers_of_agenteval_are_files(tmp_path: Path) -> None:
    """Their names are packages, as agents import them."""
    files = reader_files()
    assert {"smolagents", "google.adk", "workflows"} <= files.keys()
    assert [file for file, _ in files.values() if not Path(file).is_file()] == []


def test_a_debugged_agent_has_its_reader(toys: Path) -> None:
    assert shown(toys, "bot:agent").strip() == "You asked: Hello?"
