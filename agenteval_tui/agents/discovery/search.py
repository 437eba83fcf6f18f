"""Find the agents of a folder."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import structs

from agenteval_tui.agents.discovery.configured_agents import (
    SETUPS,
    of_compose,
    of_env,
    of_langgraph,
    of_pyproject,
    scripts_of,
)
from agenteval_tui.agents.discovery.frameworks import SDKS, finders, framework_packages
from agenteval_tui.agents.discovery.model import AgentCandidate, ConsoleScript, Findings, Sign
from agenteval_tui.agents.discovery.model_servers import may_ask
from agenteval_tui.agents.discovery.node_objects import Package, package_of
from agenteval_tui.agents.discovery.node_programs import programs_of
from agenteval_tui.agents.discovery.project_files import MOST_SECONDS, ProjectFiles
from agenteval_tui.agents.discovery.python_agents import PARTS, PythonAgents
from agenteval_tui.agents.discovery.python_module import Module, Modules
from agenteval_tui.agents.discovery.python_routes import routes_of
from agenteval_tui.suites.slugs import slug

_PACKAGES = (*SDKS, "fastapi", "flask", "quart")
_ORDER = list(Sign)


def find_agents(root: Path, *, seconds: float = MOST_SECONDS) -> Findings:
    """The agents of a folder, the best first. Nothing of it is imported or run; the search is bounded in files, their
    size and time. `root` must be a folder."""
    readers = {name: read for finder in finders() for name, read in finder.files.items()}
    files = ProjectFiles(root, names=readers, seconds=seconds)
    modules = Modules(files)
    python = PythonAgents(modules)
    agents: list[AgentCandidate] = []
    packages: list[Package] = []
    sources: list[str] = []
    paths: list[str] = []
    read: list[Module] = []
    scripts: dict[str, ConsoleScript] = {}
    names = "|".join(map(re.escape, (*framework_packages(), *_PACKAGES)))
    roots = re.compile(rb"^(?:%s)\b" % "|".join(finder.root for finder in finders() if finder.root).encode(), re.M)
    # LangChain has a package of its own for each provider.
    imports = re.compile(rb"^[ \t]*(?:from|import)\s+(?:langchain_\w+|%s)\b" % names.encode(), re.M)
    for path in files:
        name = path.rpartition("/")[2]
        if name in SETUPS:
            for file, script in scripts_of(files, path):
                scripts.setdefault(file, script)
        if name == "pyproject.toml":
            agents += of_pyproject(files, path, python)
        elif name == "langgraph.json":
            agents += of_langgraph(files, path, python)
        elif name in readers:
            agents += readers[name](files, path)
        elif name.startswith(".env"):
            agents += of_env(files, path)
        elif name == "package.json":
            package = package_of(files, path)
            if package is not None:
                packages.append(package)
        elif "compose" in name:
            agents += of_compose(files, path)
        elif name.endswith(".py"):
            paths.append(path)
            data = files.text(path)
            # To parse a file takes longer than all else: only those are that may have an agent.
            if data is None or not (imports.search(data) or roots.search(data) or may_ask(data)):
                continue
            if (module := modules.get(path)) is not None:
                read.append(module)
                agents += python.of(module)
                agents += routes_of(modules, module)
        elif not name.endswith((".yaml", ".yml", ".cfg")):
            sources.append(path)
    if not any(package.folder == "" for package in packages):
        packages.append(Package(files, "", {}))  # sources without a package.json
    for package in packages:
        others = [other.folder for other in packages if other.folder != package.folder]
        # Of packages within one another the innermost has it.
        own = [
            path
            for path in sources
            if _is_in(path, package.folder)
            and not any(_is_in(path, other) and len(other) > len(package.folder) for other in others)
        ]
        agents += programs_of(package, own)
    agents += python.subclasses(read, paths)
    agents += python.constructed(read, paths)
    named = {_in_module(str(agent.config.get("callable"))) for agent in agents}
    for agent in python.asked(read, paths, functions=False):
        # Of a class that is an agent itself, methods are none.
        if _in_module(str(agent.config["callable"])).rpartition(".")[0] not in named:
            agents.append(agent)
    agents = _with_parts(agents, modules)
    # Of a class that the project makes and asks, what it is made with is known.
    taken = {_in_module(str(agent.config.get("callable"))) for agent in agents}
    taken |= {name.rpartition(".")[0] for name in taken}
    for agent in python.made_with_settings(read):
        if _in_module(str(agent.config["callable"])) not in taken:
            agents.append(agent)
    if all(agent.sign in (Sign.PROGRAM, Sign.SERVER) for agent in agents):
        # A function with a parameter of any name is taken for an agent only where nothing else is.
        agents += python.asked(read, paths, functions=True)
    programs = list(python.scripts(scripts, agents))
    # What a command starts is not another program.
    starts = {path for path, script in scripts.items() if any(program.place == script.place for program, _ in programs)}
    for path in paths:
        if path.endswith("__main__.py") and (module := modules.get(path)) is not None:
            starts |= {path for part in modules.imported(module) if part.path in starts}
    agents = [agent for agent in agents if agent.sign is not Sign.PROGRAM or agent.file not in starts]
    programs += python.programs([path for path in paths if path not in starts], agents)
    parts = {path for _, asking in programs for path in asking}
    # A function that only sends the program's requests is a part of it.
    agents = [
        structs.replace(agent, is_part=agent.is_part or (agent.sign in PARTS and agent.file in parts))
        for agent in agents
    ]
    agents += [program for program, _ in programs]
    ordered = sorted(_once(agents), key=_rank)
    return Findings(
        agents=tuple(_named_apart(ordered)), files=files.read, reason=files.reason, notebooks=files.notebooks
    )


def _with_parts(agents: list[AgentCandidate], modules: Modules) -> list[AgentCandidate]:
    """The agents; those that a method asks together are parts of it."""
    parts: set[str] = set()
    for agent in agents:
        module = modules.get(agent.file) if agent.sign is Sign.METHOD else None
        imported = {part.path for part in modules.imported(module)} if module is not None else set()
        asked = [other.place for other in agents if other.sign is Sign.OBJECT and other.file in imported - {agent.file}]
        if len(asked) > 1:
            parts.update(asked)
    return [structs.replace(agent, is_part=agent.is_part or agent.place in parts) for agent in agents]


def _is_in(path: str, folder: str) -> bool:
    return not folder or path.startswith(folder + "/")


def _once(agents: list[AgentCandidate]) -> list[AgentCandidate]:
    """Each once: what is declared wins over the same object that was seen."""
    kept: dict[tuple[str, str], AgentCandidate] = {}
    for agent in sorted(agents, key=lambda agent: _ORDER.index(agent.sign)):
        # What a file says whole is itself, whoever makes an agent of it.
        is_file = agent.sign is Sign.ROOT and not agent.file.endswith(".py")
        named = agent.config.get("callable") or agent.config.get("url") or agent.config.get("command")
        target = agent.place if is_file or not named else str(named)
        # The files of Node's projects may name one from several folders.
        kept.setdefault(("", agent.export) if agent.export else (agent.folder, _in_module(target)), agent)
    return list(kept.values())


def _in_module(target: str) -> str:
    """A target that names a file, as one that names its module."""
    file, mark, name = target.removeprefix("./").rpartition(".py:")
    if not mark:
        return target.removeprefix("./")
    return f"{file.removeprefix('src/').removesuffix('/__init__').replace('/', '.')}:{name}"


def _rank(agent: AgentCandidate) -> tuple[int, int, int, int, int, str, int]:
    depth = agent.file.count("/")
    # What takes messages is more likely to be what a person talks to than a graph with another state, an index say.
    order = _ORDER.index(agent.sign), int("input" in agent.config)
    needs = bool(agent.incomplete) or any(name.startswith("settings.") for name in agent.examples)
    return (int(agent.is_part), int(needs), *order, depth, agent.file, agent.line)


def _named_apart(agents: list[AgentCandidate]) -> list[AgentCandidate]:
    """Their names, each once: of equal ones those of other folders say which, and what is equal still gets a number."""
    folders: dict[str, set[str]] = {}
    for agent in agents:
        folders.setdefault(agent.name, set()).add(agent.folder)
    names: dict[str, int] = {}
    apart: list[AgentCandidate] = []
    for agent in agents:
        name = agent.name
        if len(folders[name]) > 1:
            place = slug(agent.folder.rpartition("/")[2])
            name = name if not place or name.startswith(place) else f"{place}-{name}"
        number = names[name] = names.get(name, 0) + 1
        apart.append(structs.replace(agent, name=f"{name}-{number}" if number > 1 else name))
    return apart
