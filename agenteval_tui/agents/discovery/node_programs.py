"""Programs and routes in JavaScript and TypeScript that use an AI SDK, or ask a model's server by themselves. The
sources are searched, not parsed."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import dropwhile, pairwise, takewhile
from typing import Any

from msgspec import Struct, structs

from agenteval_tui.agents.discovery.arguments import node_words
from agenteval_tui.agents.discovery.model import AgentCandidate, Sign, agent_name, relative
from agenteval_tui.agents.discovery.model_servers import WAITS, node_client, node_request
from agenteval_tui.agents.discovery.node_objects import Package, objects_of, told_in

_SDKS = {
    "@anthropic-ai/claude-agent-sdk": "Claude Agent SDK",
    "@anthropic-ai/claude-code": "Claude Agent SDK",
    "@openai/agents": "openai-agents",
    "@langchain/langgraph": "LangGraph",
    "@langchain/": "LangChain",
    "langchain": "LangChain",
    "@mastra/core": "Mastra",
    "@ai-sdk/": "AI SDK",
    "ai": "AI SDK",
    "openai": "OpenAI SDK",
    "@anthropic-ai/sdk": "Anthropic SDK",
    "@google/adk": "Google ADK",
    "@google/genai": "Google GenAI SDK",
    "llamaindex": "LlamaIndex",
    "beeai-framework": "BeeAI",
    "bee-agent-framework": "BeeAI",  # its name until 2025
}
_IMPORT = re.compile(r"""(?:from\s+|require\(\s*|import\(\s*)["']([^"'.][^"']*)["']""")
_ASKS = re.compile(
    r"\b(generateText|streamText|generateObject|streamObject|query|ToolLoopAgent|createAgent|createReactAgent"
    r"|new \w*Agent|run|unstable_v2_\w+|chat\.completions\.create|messages\.(?:create|stream)|responses\.create"
    r"|generateContent(?:Stream)?)\s*(?:<[^>]*>)?\("
)
_OWN_IMPORT = re.compile(r"""(?:from\s+|require\(\s*|import\(\s*|^import\s+)["']((?:\.|[@~]/)[^"']*)["']""", re.M)
_DRAWS = re.compile(
    r"""["'](?:ink|@mariozechner/pi-tui|@opentui/[\w-]+|(?:neo-)?blessed|terminal-kit|@ai-sdk/tui)["']"""
)
"""What draws a whole terminal: nothing can be asked on a standard input."""
_MOST_IMPORTED = 60
_SERVER = re.compile(r"\b(?:createServer|express|fastify|Fastify|new Hono|new Elysia)\s*\(|Bun\.serve\(|Deno\.serve\(")
_ROUTES = re.compile(r"""\b(?:app|router|server|fastify)\.(\w+)\(\s*["'`]([^"'`]+)["'`]""")
_PORT = re.compile(
    r"\blisten\(\s*\{?\s*(?:port\s*:\s*)?(\d{2,5})|\bport\s*:\s*(\d{2,5})|\bPORT\s*(?:\|\||\?\?)\s*['\"]?(\d{2,5})"
)
_KEY = re.compile(
    r"(?:\{([^{}]+)\}\s*(?::[^=]+)?=\s*(?:\(?\s*await\s+)?(?:\w+(?:\.req)?\.(?:json\(\)|body)|readBody\(|body\b))|(?:\breq(?:uest)?\.body\??\.(\w+))"
)
_FILE_ROUTES = (
    (
        "next",
        re.compile(r"(?:^|/)(?:src/)?app/((?:.*/)?)route\.[tj]sx?$"),
        3000,
        ["next", "dev", "--port", "3000"],
    ),
    (
        "nuxt",
        re.compile(r"^server/(?:routes/)?(.+?)(?:\.post)?\.[tj]s$"),
        3000,
        ["nuxt", "dev", "--port", "3000"],
    ),
    (
        "@sveltejs/kit",
        re.compile(r"^src/routes/(.*?)/?\+server\.[tj]s$"),
        5173,
        ["vite", "dev", "--port", "5173"],
    ),
)
"""Frameworks in which the place of a file is its route: the package, the place, its port, and what starts it."""
_OPERATORS = re.compile(r"[|&;<>$`]")
_STARTS = re.compile(r"npx|bunx|pnpm|yarn|exec|dlx|--yes|cross-env|dotenv|-e|\.env[\w.]*|--|[A-Z]\w*=\S*")
"""Words of a script before the program that runs a source: what starts that program, and variables."""
_RUNNERS = ("tsx", "ts-node", "node", "bun")
_SOURCE = re.compile(r"[\w./-]+\.[cm]?[jt]sx?")
_AT_ONCE = re.compile(
    r"^(?:await |void )?(?:main|run|start)\w*\(|^\(?async \(\) =>|^(?:[^/\s*][^=\n]*= )?await |^\}\)\(\)"
    r"|^for await|\.catch\(console",
    re.M,
)
_READLINE = re.compile(r"\breadline\b")
_CALLED = re.compile(r"^(\w+)\(", re.M)
_NOT_RUN = frozenset(("build", "lint", "test", "format", "typecheck", "type-check", "clean", "postinstall", "prepare"))
_MESSAGES = ("message", "prompt", "query", "question", "input", "text", "content")
_ENDS_AS_MESSAGE = re.compile(r"(?:message|prompt|query|question|request|input|text)$", re.IGNORECASE)
_UI_MESSAGES = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "{{ prompt }}"}]}]
_UI_STREAM = {
    "stream": "sse",
    "delta": "(type == 'text-delta' && delta) || `null`",
    "reasoning": "(type == 'reasoning-delta' && delta) || `null`",
    "tool_calls": "(type == 'tool-input-available' && [@]) || `null`",
    "tool_call": {"id": "toolCallId", "name": "toolName", "arguments": "input"},
    "tool_results": "(starts_with(type, 'tool-output-') && !preliminary && [@]) || `null`",
    "tool_result": {"id": "toolCallId", "result": "not_null(output, errorText)", "error": "errorText"},
    "finish_reason": "finishReason",
    "error": "(type == 'error' && errorText) || `null`",
}
"""The stream of messages that the AI SDK's parts for browsers read."""
_MOST = 40  # sources of a package
SOURCES = (".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs")


class PackageScript(Struct, frozen=True):
    """A script of package.json that runs a source: its name, the source, and the words that run it."""

    name: str
    file: str
    command: list[str]


def _script(package: Package, name: str, line: str) -> PackageScript | None:
    try:
        words = shlex.split(_OPERATORS.split(line)[0])
    except ValueError:
        return None
    words = list(dropwhile(_STARTS.fullmatch, words))
    place = next((number for number, word in enumerate(words) if _SOURCE.fullmatch(word)), 0)
    if not place or words[0] not in _RUNNERS:
        return None
    file = words[place].removeprefix("./")
    command = [word for word in words if word not in ("watch", "--watch")]
    if words[0] == "bun":
        command = [*package.starts(file), file]
    elif words[0] != "node":
        command = [*package.runner(words[0]), *command[1:]]
    return PackageScript(name, file, command)


def _library(name: str) -> str:
    for prefix, library in _SDKS.items():
        if name == prefix or (name.startswith(prefix + "/") or (prefix.endswith("/") and name.startswith(prefix))):
            return library
    return ""


class _Source(Struct, frozen=True):
    """A source of a package. `library`: what it asks a model with, "" for none; `asks`: where it does."""

    path: str
    text: str
    library: str
    asks: re.Match[str] | None


class _Sources:
    """The sources of a package, read as they are asked for."""

    def __init__(self, package: Package, paths: Sequence[str]) -> None:
        self._package = package
        self._paths = frozenset(paths)
        self._has_sdk = any(map(_library, package.names))
        self._read: dict[str, _Source] = {}

    def get(self, path: str) -> _Source:
        """A source; one without a text where it can't be read."""
        if path not in self._read:
            text = (self._package.files.text(path) or b"").decode("utf-8", "replace")
            library, asks = "", None
            if self._has_sdk:
                library = next(filter(None, (_library(name) for name in _IMPORT.findall(text))), "")
                asks = _ASKS.search(text)
            if not library:
                library, asks = node_client(text), node_request(text)
            self._read[path] = _Source(path, text, library, asks)
        return self._read[path]

    def with_imported(self, path: str) -> list[_Source]:
        """A source, and those that it imports, and so on, the nearest first."""
        paths = [path]
        for place in paths:  # which grows meanwhile
            for name in _OWN_IMPORT.findall(self.get(place).text):
                imported = self._imported(name, place)
                if imported and imported not in paths and len(paths) < _MOST_IMPORTED:
                    paths.append(imported)
        return [self.get(each) for each in paths]

    def _imported(self, name: str, path: str) -> str:
        folders = [path.rpartition("/")[0]]
        if name.startswith(("@/", "~/")):  # what the settings of most projects call their own folder
            name = name[2:]
            folders = [f"{self._package.folder}/{place}" for place in ("src", "app", "")]
        stem = re.sub(r"\.[cm]?jsx?$", "", name)
        endings = ("", *SOURCES, *(f"/index{ending}" for ending in SOURCES))
        places = (posixpath.normpath(f"{folder}/{stem}{end}").lstrip("/") for folder in folders for end in endings)
        return next(filter(self._paths.__contains__, places), "")


def programs_of(package: Package, paths: Sequence[str]) -> Iterator[AgentCandidate]:
    """The programs, routes and exported agents of a package; `paths` are those of its sources."""
    scripts: dict[str, PackageScript] = {}
    for name, line in package.scripts.items():
        script = _script(package, name, line)
        if script is not None and name.partition(":")[0] not in _NOT_RUN:
            scripts.setdefault(script.file, script)
    sources = _Sources(package, paths)
    agents: list[AgentCandidate] = []
    parts: set[str] = set()
    read = takewhile(lambda source: not package.files.is_late(), map(sources.get, paths))
    texts = {source.path: source.text for source in read if source.library}
    for path in paths:
        if len(agents) >= _MOST or package.files.is_late():
            break
        source, script = sources.get(path), scripts.get(relative(path, package.folder))
        if path in texts:
            agents += objects_of(package, path, texts, source.library)
        with_imported = sources.with_imported(path)
        if any(_DRAWS.search(each.text) or WAITS.search(each.text) for each in with_imported):
            continue
        asks_line = any(_asks_line(each.text) for each in with_imported)
        agent = _agent(package, source, [each for each in with_imported if each.library], script, asks_line=asks_line)
        if agent is not None:
            agents.append(agent)
            parts.update(each.path for each in with_imported[1:])
    # An agent that a program asks is a part of it.
    yield from (structs.replace(agent, is_part=agent.is_part or agent.file in parts) for agent in agents)


def _agent(
    package: Package, source: _Source, asking: list[_Source], script: PackageScript | None, *, asks_line: bool
) -> AgentCandidate | None:
    """The program or the route in a source. `asking`: the sources that use an SDK, among it and its imports.
    `asks_line`: it or an import reads a line."""
    path, text, asks = source.path, source.text, source.asks if source.library else None
    own = relative(path, package.folder)
    # Its own use, or another source's.
    used = asks or next((each.asks for each in asking if each.asks), None)
    if not asking or (used is None and script is None and not any(route[1].search(own) for route in _FILE_ROUTES)):
        return None
    start = asks.start() if asks is not None else 0
    line = text.count("\n", 0, start) + 1
    services: dict[str, Any] = {}
    sign = Sign.PROGRAM
    command = [*package.starts(own), own] if script is None else script.command
    if (file_route := _file_route(package, own, text)) is not None:
        place, port, starts = file_route
        parts = [part for part in place.strip("/").split("/") if part and not part.startswith("(")]
        # Who asks fills in a part of the address.
        if any("[" in part for part in parts):
            return None
        sign = Sign.ROUTE
        config = _http(port, "/" + "/".join(parts), text)
        if asks is None:
            if "body" not in config:
                return None
            line = text.count("\n", 0, max(0, text.find("POST"))) + 1
        services = _service(starts, port)
    elif _SERVER.search(text) is not None:
        port_match = _PORT.search(text)
        if port_match is None:
            return None
        if asks is None and not any(route[1] == "post" for route in _ROUTES.finditer(text)):
            return None  # its routes are in other sources
        sign, port = Sign.ROUTE, int(next(filter(None, port_match.groups())))
        config = _http(port, *_route(text))
        services = _service(command, port)
    # Components are shown in a page, and not run.
    elif own.endswith("x") or not _runs_at_once(text) or "/components/" in own or used is None:
        return None
    else:
        if script is not None:
            sign = Sign.SCRIPT
        # What `readline` reads counts when its line ends.
        reads = "line" if asks_line else "text"
        question = node_words(text, asks_line=reads == "line")
        task: dict[str, Any] = {"command": [*command, *question]} if question else {"command": command, "input": reads}
        config = {"kind": "command", **task, "capture": "model", "answer": "auto"}
    return AgentCandidate(
        sign=sign,
        name=agent_name(own.rpartition("/")[2].partition(".")[0], path, package.files.root),
        framework=source.library or asking[0].library,
        file=path if script is None else package.path,
        line=line if script is None else _line(package, script.name),
        source=(
            text.splitlines()[line - 1].strip()[:60]
            if script is None
            else f'"{script.name}": "{package.scripts[script.name]}"'
        ),
        folder=package.folder,
        config=config,
        services=services,
        **told_in("\n".join(dict.fromkeys([text, *(each.text for each in asking)]))),
    )


def _file_route(package: Package, own: str, text: str) -> tuple[str, int, list[str]] | None:
    for name, pattern, port, command in _FILE_ROUTES:
        match = pattern.search(own) if name in package.names else None
        if match is not None and ("POST" in text or (name == "nuxt" and "EventHandler" in text)):
            return match[1], port, command
    return None


def _route(text: str) -> tuple[str, str]:
    """The path that takes a message, and the text of what answers there: the first that reads one by one of its usual
    names, else by a name that ends in such a one, else the first that reads anything, else the first."""
    routes = list(_ROUTES.finditer(text))
    places = [*(route.start() for route in routes), len(text)]
    posts = [
        (route[2], text[start:end])
        for route, (start, end) in zip(routes, pairwise(places), strict=True)
        if route[1] == "post"
    ]
    return min(posts, key=lambda post: _rank(_keys(post[1])), default=("/", text))


def _rank(keys: Sequence[str]) -> int:
    """How surely a route with these keys in its body takes a message: 0 surely."""
    if {"messages", *_MESSAGES} & {*keys}:
        return 0
    return 1 if _message_key(keys) else 2 if keys else 3


def _message_key(keys: Sequence[str]) -> str:
    """The key of the request's body that has the message; "" for none."""
    usual = next((name for name in _MESSAGES if name in keys), "")
    return usual or next((name for name in keys if _ENDS_AS_MESSAGE.search(name)), "")


def _keys(text: str) -> list[str]:
    """The keys of the request's body that are read."""
    return [key for match in _KEY.finditer(text) for key in re.split(r"[\s,:]+", match[1] or match[2] or "")]


def _http(port: int, path: str, text: str) -> dict[str, Any]:
    config: dict[str, Any] = {"kind": "http", "url": f"http://127.0.0.1:{port}{path}"}
    keys = _keys(text)
    into = _message_key(keys)
    if "messages" in keys:
        config["body"] = {
            "messages": _UI_MESSAGES if re.search("[uU][iI]Message|convertToModelMessages", text) else "{{ messages }}"
        }
    elif into:
        config["body"] = {into: "{{ prompt }}"}
    if "UIMessageStream" in text or "AgentUIStream" in text:
        config.update(_UI_STREAM)
    return config


def _service(command: list[str], port: int) -> dict[str, Any]:
    return {"server": {"command": command, "ready": {"port": port}, "reuse_existing": True}}


def _asks_line(text: str) -> bool:
    """Whether a source asks by `readline`, which reads a line."""
    # Not one pattern for both: where the second is missing, it would look for it behind each of the first.
    match = _READLINE.search(text)
    return match is not None and ".question(" in text[match.end() :]


def _runs_at_once(text: str) -> bool:
    """Whether a source does something when it is run, and isn't only imported."""
    return _AT_ONCE.search(text) is not None or any(
        re.search(rf"\basync function {name}\b|\b{name} = async\b", text) for name in _CALLED.findall(text)
    )


def _line(package: Package, script: str) -> int:
    data = package.files.text(package.path) or b""
    place = data.find(f'"{script}"'.encode())
    return data.count(b"\n", 0, place) + 1 if place >= 0 else 1
