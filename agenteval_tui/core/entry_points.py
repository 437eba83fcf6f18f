"""The registry: what packages offer under a name. Entry points say it, agenteval's own as those of a plug-in.

agenteval's own entry points are read from one file, and plug-ins only where a name is not agenteval's, or where all
names are listed: `importlib.metadata` takes 21 ms to import and 5 to 15 ms to look through 150 packages,
which neither `agenteval validate` nor a first screen needs; the one file takes 0.3 ms.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.version import __version__

PROTOTYPES = "agenteval.prototypes"
METRICS = "agenteval.metrics"
AGENTS = "agenteval.agents"
AGENT_OPTIONS = "agenteval.agent_options"
LOCAL_AGENTS = "agenteval.local_agents"
KEY_FINDERS = "agenteval.key_finders"
FRAMEWORKS = "agenteval.frameworks"
AGENT_FINDERS = "agenteval.agent_finders"
CAPTURES = "agenteval.captures"
CAPTURE_CHECKS = "agenteval.capture_checks"
EMBEDDERS = "agenteval.embedders"
LOCAL_EMBEDDERS = "agenteval.local_embedders"
IMPORTERS = "agenteval.importers"
PACKINGS = "agenteval.packings"
EXPORTERS = "agenteval.exporters"
SUITE_EXPORTERS = "agenteval.suite_exporters"
EXECUTORS = "agenteval.executors"
TOOLSETS = "agenteval.toolsets"
TEST_CRITERIA = "agenteval.test_criteria"
COMMANDS = "agenteval.commands"
ACTIONS = "agenteval.actions"
API = "agenteval.api"
DOCUMENTS = "agenteval.documents"
MCP_TOOLS = "agenteval.mcp_tools"
MCP_ASKING_TOOLS = "agenteval.mcp_asking_tools"
DOCTOR_CHECKS = "agenteval.doctor_checks"

_PACKAGE = "agenteval-tui"
_PREFIX = "agenteval."


class EntryPoint(NamedTuple):
    """A name of a group: where its object is (`package.module:Name`), and the package that offers it."""

    group: str
    name: str
    target: str
    package: str

    @property
    def module(self) -> str:
        """The module that has the object."""
        return self.target.partition(":")[0].strip()

    @property
    def attribute(self) -> str:
        """The object's name in its module."""
        return self.target.partition(":")[2].strip()

    def load(self) -> Any:
        """The object. Raises whatever its module raises when it is imported."""
        return getattr(import_module(self.module), self.attribute)

    def load_as(self, what: str) -> Any:
        """The object; `what` it is for people ("importer"). Raises `AgentevalError` where it can't be loaded."""
        try:
            return self.load()
        except Exception as error:  # the code of others
            raise AgentevalError(
                f"the {what} {self.name!r} can't be loaded: {type(error).__name__}: {error}",
                where=self.target,
                fix="update or uninstall its package",
            ) from error


def names(group: str) -> tuple[str, ...]:
    """All names of a group, sorted: agenteval's own and those of plug-ins."""
    return tuple(sorted({*own(group), *_plugins().get(group, {})}))


def find(group: str, name: str) -> EntryPoint | None:
    """The entry point of that name, None where there is none.

    A plug-in can't replace what is agenteval's own. Raises `AgentevalError` where two plug-ins offer the name.
    """
    if name in own(group):
        return EntryPoint(group, name, own(group)[name], _PACKAGE)
    offered = _plugins().get(group, {}).get(name, ())
    if len(offered) > 1:
        raise AgentevalError(_both(offered), fix="uninstall one of these packages")
    return offered[0] if offered else None


def own(group: str) -> dict[str, str]:
    """agenteval's own names of a group, with where their objects are."""
    return _own().setdefault(group, {})


def loaded_own(group: str, what: str) -> Iterator[Any]:
    """agenteval's own objects of a group, in the order of their names; `what` each is for people ("importer"). One that
    can't be loaded is left out, so that a broken extension harms no other part: `agenteval doctor` says what is wrong.
    """
    for name, target in sorted(own(group).items()):
        with suppress(AgentevalError):
            yield EntryPoint(group, name, target, _PACKAGE).load_as(what)


def loaded(group: str, what: str) -> Iterator[tuple[str, Any]]:
    """The objects of a group, agenteval's own and those of plug-ins, by name; `what` and what is left out are as for
    `loaded_own`."""
    for name in names(group):
        with suppress(AgentevalError):
            if (entry := find(group, name)) is not None:
                yield name, entry.load_as(what)


def is_local_agent(kind: object) -> bool:
    """Whether agents of this kind stay in our process: they send nothing, start nothing, and always answer alike."""
    name = str(kind)
    is_ours = name in own(AGENTS) or name in own(EMBEDDERS)
    return name in (own if is_ours else _offered)(LOCAL_AGENTS)


def is_ready_embedder(name: str) -> bool:
    """Whether it is a kind of embedder that is used by its name alone. One that is also a kind of agent needs an
    agent's options: an address, a model."""
    here = own if name in own(EMBEDDERS) else _offered
    return name in here(EMBEDDERS) and name not in here(AGENTS)


def conflicts(own_names: Mapping[str, Collection[str]] | None = None) -> Iterator[str]:
    """A sentence for each name of a plug-in that is not used, because agenteval or another plug-in has it, too.

    `own_names`: by group, agenteval's own names beside those of its entry points.
    """
    for group, offers in sorted(_plugins().items()):
        for name, offered in sorted(offers.items()):
            if name in own(group) or name in (own_names or {}).get(group, ()):
                packages = " and ".join(point.package for point in offered)
                yield f"{name!r} of {packages} is not used: agenteval has its own {name!r} in {group}"
            elif len(offered) > 1:
                yield _both(offered)


def plugin_packages() -> tuple[str, ...]:
    """The packages that offer something, sorted."""
    return tuple(
        sorted({point.package for group in _plugins().values() for points in group.values() for point in points})
    )


def _offered(group: str) -> Collection[str]:
    return _plugins().get(group, {})


def _both(offered: tuple[EntryPoint, ...]) -> str:
    return f"{offered[0].name!r} is offered by two packages in {offered[0].group}: " + " and ".join(
        point.package for point in offered
    )


@cache
def _own() -> dict[str, dict[str, str]]:
    """By group. A wheel has them beside the package, a checkout in its pyproject.toml: a new line there counts at once,
    and an editable installation need not be made again."""
    folder = Path(__file__).resolve().parents[2]
    for place in (folder / f"agenteval_tui-{__version__}.dist-info" / "entry_points.txt", folder / "pyproject.toml"):
        try:
            groups = read_groups(place.read_text("utf-8"))
        except OSError:
            continue
        if METRICS in groups:
            return groups
    from importlib.metadata import distribution  # 21 ms; only where the package was moved into something else

    groups = {}
    for point in distribution(_PACKAGE).entry_points:
        groups.setdefault(point.group, {})[point.name] = point.value
    return groups


def read_groups(text: str) -> dict[str, dict[str, str]]:
    """The groups `agenteval.*` of an entry_points.txt or a pyproject.toml, whose lines differ in nothing but quotes.

    tomllib takes 10 ms for the same.
    """
    groups: dict[str, dict[str, str]] = {}
    here: dict[str, str] | None = None
    for line in text.splitlines():
        if line.startswith("["):
            group = line.strip("[] ").removeprefix("project.entry-points.").strip('"')
            here = groups.setdefault(group, {}) if group.startswith(_PREFIX) else None
        elif here is not None and "=" in line and not line.startswith("#"):
            name, _, target = line.partition("=")
            here[name.strip().strip('"')] = target.partition("#")[0].strip().strip('"')
    return groups


@cache
def _plugins() -> Mapping[str, Mapping[str, tuple[EntryPoint, ...]]]:
    """What all other packages offer: by group, by name."""
    from importlib.metadata import distributions  # the top of the file gives the cost

    packages = {_PACKAGE}
    points_by_group: dict[str, dict[str, tuple[EntryPoint, ...]]] = {}
    for installed in distributions():
        offered = [point for point in installed.entry_points if point.group.startswith(_PREFIX)]
        if not offered or (normal := installed.name.lower().replace("_", "-")) in packages:
            continue  # what comes later on the path is not what is imported
        packages.add(normal)
        package = f"{installed.name} {installed.version}"
        for point in offered:
            names_here = points_by_group.setdefault(point.group, {})
            entry = EntryPoint(point.group, point.name, point.value, package)
            names_here[point.name] = (*names_here.get(point.name, ()), entry)
    return points_by_group
