"""What the search knows of a framework, beside the names of what makes its agents (`python_frameworks.Maker`)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.finding.model import FoundAgent, FoundApp, FoundTool, Sign
from agenteval_tui.agents.finding.project_files import ProjectFiles
from agenteval_tui.agents.finding.python_module import Module, Modules
from agenteval_tui.core import entry_points
from agenteval_tui.core.errors import AgentevalError

Line = list[tuple[Module, ast.ClassDef]]
"""A class, then the classes of the project that it is made of, with their modules."""


AppFinder = Callable[[Modules, Module], FoundApp | None]


class ClassAgent(Struct, frozen=True):
    """What a class of the project is to a framework. `sign` None: as any class that makes agents, or the object that
    its module makes of it."""

    sign: Sign | None = None
    variables: Mapping[str, Any] = {}
    tools: tuple[FoundTool, ...] = ()


class FrameworkFinder(Struct, frozen=True, kw_only=True):
    """How agents of a framework look in a project (entry point group `agenteval.agent_finders`)."""

    framework: str
    """Its title, as in its `Framework`."""
    files: Mapping[str, Callable[[ProjectFiles, str], Iterable[FoundAgent]]] = {}
    """Who reads the files of these names, which nothing else does."""
    tables: Callable[[Mapping[str, Any]], Iterable[tuple[str, str]]] = lambda tools: ()
    """The agents that `[tool]` of pyproject.toml names: the name of each, and the target."""
    methods: tuple[str, ...] = ()
    """Methods that make an agent of another object of the framework."""
    packages: tuple[str, ...] = ()
    """The packages whose objects have these methods."""
    root: str = ""
    """The object that the framework's own tools look for. Beside it, others are its parts."""
    beside_root: tuple[str, ...] = ()
    """Names of objects that are agents beside it."""
    part: str = ""
    """How what makes a part of an agent is called: another object of its module has it."""
    of_class: Callable[[Modules, Line, bool], ClassAgent | None] = lambda modules, line, is_made: None
    """What a class is to the framework, or None; the last argument: its module makes an object of it."""
    needed_state: Callable[[Modules, Module, ast.Call], Iterable[str]] = lambda modules, module, call: ()
    """The fields of the context without which an agent does not begin, by the call that makes it."""
    app: AppFinder | None = None
    """How the app in a module that imports the framework is asked; None where it has no field for a prompt."""


@cache
def finders() -> tuple[FrameworkFinder, ...]:
    """Those of all frameworks, each once."""
    return tuple({id(finder): finder for finder in _by_package().values()}.values())


def finder_of(framework: str) -> FrameworkFinder:
    """That of a framework by its title; one that knows nothing where there is none."""
    return next((finder for finder in finders() if finder.framework == framework), FrameworkFinder(framework=framework))


@cache
def app_finders() -> dict[str, AppFinder]:
    """By the package that an app imports, how it is asked."""
    return {package: finder.app for package, finder in _by_package().items() if finder.app is not None}


@cache
def _by_package() -> dict[str, FrameworkFinder]:
    by_package = {}
    for package in entry_points.names(entry_points.AGENT_FINDERS):
        with suppress(AgentevalError):  # the doctor says what is wrong with an extension
            entry = entry_points.find(entry_points.AGENT_FINDERS, package)
            assert entry is not None
            by_package[package] = entry.load_as("finder of agents of")
    return by_package
