"""Agents that a project's configuration names: pyproject.toml, langgraph.json, and files with a model server."""

from __future__ import annotations

import ast
import configparser
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import structs

from agenteval_tui.agents.discovery.frameworks import finders
from agenteval_tui.agents.discovery.model import AgentCandidate, ConsoleScript, Sign, agent_name
from agenteval_tui.agents.discovery.node_objects import graph_of
from agenteval_tui.agents.discovery.node_programs import SOURCES
from agenteval_tui.agents.discovery.project_files import ProjectFiles
from agenteval_tui.agents.discovery.python_agents import PythonAgents
from agenteval_tui.agents.discovery.python_module import bindings, called_name, constant_text, keyword
from agenteval_tui.agents.process.project_environment import workspace_members
from agenteval_tui.agents.process.project_interpreter import parsed_toml, table_in, tables_of
from agenteval_tui.core.json_values import json_object

_ADDRESS = re.compile(
    r"^\s*(?:export\s+)?([A-Z][A-Z0-9_]*(?:BASE_URL|API_BASE|_ENDPOINT|OLLAMA_HOST))\s*=\s*[\"']?(https?://[^\s\"'#]+)"
)
_MODEL = re.compile(r"^\s*(?:export\s+)?([A-Z][A-Z0-9_]*MODEL(?:_NAME)?)\s*=\s*[\"']?([\w./:@-]+)")
_OTHER_ADDRESS = re.compile(
    "ANTHROPIC|LANG|OTEL|AZURE|SEARCH|GEMINI|COLLECTOR|PHOENIX|QDRANT|WEAVIATE|SUPABASE|S3|STORAGE"
)
_PROVIDER = re.compile(
    "^(?:anthropic|azure(?:_openai)?|fireworks|google_genai|groq|mistralai|ollama|openai|together|watsonx|xai):"
)
"""What frameworks want before the model's name, and its server does not know; `llama3:8b` is a name."""
_OTHER_MODEL = re.compile("EMBED|RERANK|WHISPER|TTS")
_IMAGES = {
    "ollama/ollama": 11434,
    "vllm/vllm-openai": 8000,
    "ghcr.io/berriai/litellm": 4000,
    "ggml-org/llama.cpp": 8080,
}


def scripts_of(files: ProjectFiles, path: str) -> Iterator[tuple[str, ConsoleScript]]:
    """The commands that a pyproject.toml, setup.cfg or setup.py installs, each with the file of its function, the main
    one first."""
    data = files.text(path) or b""
    name, scripts = _SCRIPTS[path.rpartition("/")[2]](data)
    folder = path.rpartition("/")[0]
    mains = [command for command in scripts if f"-{command}-" in f"-{name}-"]
    for command, target in sorted(scripts.items(), key=lambda script: script[0] not in mains):
        module = str(target).partition("[")[0].strip().rpartition(":")[0]  # [extra]: packages that it needs
        file = _file(files, folder, module)
        if file:
            line, source = _place_of_script(data, command, str(target))
            yield file, ConsoleScript(command, path, line, source, command in mains)


def _scripts_of_pyproject(data: bytes) -> tuple[str, Mapping[str, Any]]:
    """The name of a project, and its commands, each with the function that it calls."""
    tables = parsed_toml(data.decode("utf-8", "replace"))
    project, poetry, flit = (table_in(tables, *names) for names in (("project",), ("tool", "poetry"), ("tool", "flit")))
    name = str(project.get("name") or poetry.get("name") or table_in(flit, "metadata").get("dist-name"))
    return name, {**table_in(flit, "scripts"), **table_in(poetry, "scripts"), **table_in(project, "scripts")}


def _scripts_of_setup_cfg(data: bytes) -> tuple[str, Mapping[str, Any]]:
    settings = _settings(data.decode("utf-8", "replace"))
    name = settings.get("metadata", "name", fallback="")
    return name, _lines_with_targets(settings.get("options.entry_points", "console_scripts", fallback=""))


def _scripts_of_setup_py(data: bytes) -> tuple[str, Mapping[str, Any]]:
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return "", {}
    nodes = list(ast.walk(tree))
    call = next((node for node in nodes if isinstance(node, ast.Call) and called_name(node) == "setup"), None)
    if call is None:
        return "", {}
    values = bindings(nodes)

    def resolved(node: ast.expr | None) -> ast.expr | None:
        """What a name stands for. None: it has no value here."""
        names: set[str] = set()
        while isinstance(node, ast.Name) and node.id not in names:
            names.add(node.id)
            node = values.get(node.id)
        return node

    name = constant_text(resolved(keyword(call, "name")))
    points = resolved(keyword(call, "entry_points"))
    if isinstance(points, ast.Dict):
        members = zip(map(constant_text, points.keys), points.values, strict=True)
        listed = resolved(next((value for key, value in members if key == "console_scripts"), None))
    elif isinstance(points, ast.Call) and called_name(points) == "dict":
        listed = resolved(keyword(points, "console_scripts"))
    else:  # a text, as the file that it becomes
        settings = _settings(constant_text(points))
        return name, dict(settings["console_scripts"]) if settings.has_section("console_scripts") else {}
    texts = listed.elts if isinstance(listed, ast.List | ast.Tuple) else [listed]
    lines = "\n".join(map(constant_text, texts))
    return name, _lines_with_targets(lines)


_SCRIPTS: Mapping[str, Callable[[bytes], tuple[str, Mapping[str, Any]]]] = {
    "pyproject.toml": _scripts_of_pyproject,
    "setup.cfg": _scripts_of_setup_cfg,
    "setup.py": _scripts_of_setup_py,
}
SETUPS = tuple(_SCRIPTS)
"""The files in which a project says what it installs."""


def _settings(text: str) -> configparser.ConfigParser:
    settings = configparser.ConfigParser(interpolation=None, strict=False, delimiters=("=",))
    settings.optionxform = str  # type: ignore[assignment, method-assign]  # commands keep their case
    try:
        settings.read_string(text)
    except configparser.Error:
        settings.clear()
    return settings


def _lines_with_targets(text: str) -> dict[str, str]:
    """The lines `command = module:function` of a text."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.lstrip().startswith("#"))
    return {command.strip(): target.strip() for command, mark, target in pairs if mark and ":" in target}


def _place_of_script(data: bytes, command: str, target: str) -> tuple[int, str]:
    """The line that declares a command, from 1, and what is in it."""
    declaration = rf"(?<![\w-]){re.escape(command)}[\"']?\s*=\s*([\"']?){re.escape(target)}\1"
    if match := re.search(declaration.encode(), data):
        return data.count(b"\n", 0, match.start()) + 1, match[0].decode("utf-8", "replace")
    return 1, f"{command} = {target}"


def of_pyproject(files: ProjectFiles, path: str, python: PythonAgents) -> Iterator[AgentCandidate]:
    """`[tool.agenteval.agents.NAME]`, with the keys of `agents:` in a suite; or `agent = "module:name"`. The workflows
    of `[tool.llamaagents.workflows]`, which was `[tool.llamadeploy.workflows]`."""
    data = files.text(path) or b""
    tools = table_in(parsed_toml(data.decode("utf-8", "replace")), "tool")
    folder = path.rpartition("/")[0]
    for finder in finders():
        for key, target in finder.tables(tools):
            agent = _code(files, folder, target, python, Sign.CONFIGURED, key)
            if agent is not None:
                line, source = _line(data, target.encode()), f'{key} = "{target}"'
                yield structs.replace(
                    agent,
                    config={**agent.config, "callable": target},
                    folder=folder,
                    framework=finder.framework,
                    source=source,
                    file=path,
                    line=line,
                )
    table = table_in(tools, "agenteval")
    line = _line(data, b"[tool.agenteval")
    named = dict(table_in(table, "agents"))
    short = table.get("agent")
    if isinstance(short, str):
        named.setdefault("", {"kind": "python", "callable": short})
    for name, config in named.items():
        if not isinstance(config, dict) or not isinstance(config.get("kind"), str):
            continue
        code = _code(files, folder, str(config.get("callable", "")), python)
        yield AgentCandidate(
            sign=Sign.DECLARED,
            name=agent_name(name or "agent", path, files.root),
            framework=code.framework if code is not None else "",
            file=path,
            line=line,
            source="[tool.agenteval]",
            folder=folder,
            config=config,
            instructions=code.instructions if code is not None else "",
            tools=code.tools if code is not None else (),
            prompts=code.prompts if code is not None else (),
        )


def _code(
    files: ProjectFiles,
    folder: str,
    target: str,
    python: PythonAgents,
    sign: Sign = Sign.DECLARED,
    called: str = "",
) -> AgentCandidate | None:
    module, _, name = target.rpartition(":")
    path = _file(files, folder, module)
    return python.target(path, name, sign, called) if path else None


def _file(files: ProjectFiles, folder: str, module: str) -> str:
    """The file of a module that a project names, by its name or as a file; "" if there is none."""
    base = module.replace(".", "/") if not module.endswith(".py") else module.removesuffix(".py")
    for place in (f"{within}{base}" for within in ("", "src/", *_members(files, folder)) if base):
        for ending in (".py", "/__init__.py"):
            path = f"{folder}/{place}{ending}" if folder else place + ending
            if files.has(path):
                return path
    return ""


def _members(files: ProjectFiles, folder: str) -> Iterator[str]:
    """Where the packages of uv's workspace in a folder are imported from, as beginnings of paths within it."""
    place = files.root / folder
    for member in workspace_members(place, tables_of(place)):
        within = member.relative_to(place).as_posix()
        yield from (f"{within}/", f"{within}/src/")


def of_langgraph(files: ProjectFiles, path: str, python: PythonAgents) -> Iterator[AgentCandidate]:
    """The graphs that langgraph.json names: "./src/agent/graph.py:graph"."""
    data = files.text(path) or b""
    graphs = (json_object(data) or {}).get("graphs")
    folder = path.rpartition("/")[0]
    for key, entry in graphs.items() if isinstance(graphs, dict) else ():
        target = entry.get("path") if isinstance(entry, dict) else entry
        place, _, name = str(target).removeprefix("./").rpartition(":")
        if not name.isidentifier() or ".." in place.split("/"):
            continue
        file = f"{folder}/{place}" if folder else place
        line, source = _line(data, f'"{key}"'.encode()), f'"{key}": "{target}"'
        if place.endswith(SOURCES):
            graph = graph_of(files, file, name, folder)
            if graph is not None:
                yield structs.replace(
                    graph, name=agent_name(str(key), file, files.root), file=path, line=line, source=source
                )
            continue
        if place.endswith(".py"):
            agent = python.target(file, name, Sign.CONFIGURED, str(key))
            agent = agent and structs.replace(agent, folder=folder)
            written = f"{place}:{name}"
        else:
            agent = _code(files, folder, str(target), python, Sign.CONFIGURED, str(key))
            written = str(target)
        if agent is not None:
            framework = agent.framework or "LangGraph"
            yield structs.replace(
                agent,
                # Of a member of the workspace, the project is its own.
                config={**agent.config, "callable": written} if agent.folder == folder else agent.config,
                framework=framework,
                source=source,
                file=path,
                line=line,
            )


def of_env(files: ProjectFiles, path: str) -> Iterator[AgentCandidate]:
    """A `.env` that names a server which speaks Chat Completions, and its model. No value of a key is read."""
    address = model = ""
    line = 1
    for number, text in enumerate((files.text(path) or b"").decode("utf-8", "replace").splitlines(), 1):
        if (match := _ADDRESS.match(text)) and not address and not _OTHER_ADDRESS.search(match[1]):
            address, line = match[2], number
        if (match := _MODEL.match(text)) and not model and not _OTHER_MODEL.search(match[1]):
            model = _PROVIDER.sub("", match[2], count=1)
    if address and model:
        yield _server(files, path, line, address, model, address)


def of_compose(files: ProjectFiles, path: str) -> Iterator[AgentCandidate]:
    """A model server among the services of Docker Compose."""
    for number, text in enumerate((files.text(path) or b"").decode("utf-8", "replace").splitlines(), 1):
        for image, port in _IMAGES.items():
            if re.match(rf"\s*image:\s*[\"']?{re.escape(image)}", text):
                yield _server(files, path, number, f"http://127.0.0.1:{port}/v1", "", text.strip())


def _server(files: ProjectFiles, path: str, line: int, address: str, model: str, source: str) -> AgentCandidate:
    folder = path.rpartition("/")[0]
    config = {"kind": "openai", "base_url": address, "model": model or "${MODEL:-llama3.1}"}
    # A server of this machine wants no key.
    if not re.match(r"https?://(127\.0\.0\.1|localhost|\[::1\])", address):
        config["api_key_env"] = "OPENAI_API_KEY"
    return AgentCandidate(
        sign=Sign.SERVER,
        name=agent_name(model or "model", path, files.root),
        framework="",
        file=path,
        line=line,
        source=source,
        folder=folder,
        config=config,
    )


def _line(data: bytes, what: bytes) -> int:
    place = data.find(what)
    return data.count(b"\n", 0, place) + 1 if place >= 0 else 1
