"""Programs and routes in JavaScript and TypeScript that use an AI SDK, or ask a model's server by themselves. The
sources are searched, not parsed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, pairwise
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.finding.arguments import node_words
from agenteval_tui.agents.finding.model import FoundAgent, FoundTool, Sign, agent_name, relative
from agenteval_tui.agents.finding.model_servers import node_client, node_request
from agenteval_tui.agents.finding.project_files import ProjectFiles
from agenteval_tui.agents.process.node_packages import program_of_package
from agenteval_tui.core.json_values import json_object

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
    "@google/genai": "Google GenAI SDK",
    "llamaindex": "LlamaIndex",
}
_IMPORT = re.compile(r"""(?:from\s+|require\(\s*|import\(\s*)["']([^"'.][^"']*)["']""")
_ASKS = re.compile(
    r"\b(generateText|streamText|generateObject|streamObject|query|ToolLoopAgent|createAgent|createReactAgent|new Agent"
    r"|run|unstable_v2_\w+|chat\.completions\.create|messages\.(?:create|stream)|responses\.create"
    r"|generateContent(?:Stream)?)\s*(?:<[^>]*>)?\("
)
_PROMPT = re.compile(r"""\b(?:prompt|content|input)\s*:\s*(?:'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"|`([^`$]+)`)""")
_SYSTEM = re.compile(
    r"""\b(?:system|instructions|systemPrompt)\s*:\s*(?:'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"|`([^`$]+)`)"""
)
_TOOL = re.compile(
    r"""\b([A-Za-z_]\w*)\s*[:=]\s*(?:dynamicT|t)ool\(\s*\{\s*description\s*:\s*(?:'([^'\n]+)'|"([^"\n]+)"|`([^`$]+)`)"""
)
_SERVER = re.compile(r"\b(?:createServer|express|fastify|Fastify|new Hono|new Elysia)\s*\(|Bun\.serve\(|Deno\.serve\(")
_ROUTES = re.compile(r"""\b(?:app|router|server|fastify)\.(\w+)\(\s*["'`]([^"'`]+)["'`]""")
_PORT = re.compile(
    r"\blisten\(\s*\{?\s*(?:port\s*:\s*)?(\d{2,5})|\bport\s*:\s*(\d{2,5})|\bPORT\s*(?:\|\||\?\?)\s*['\"]?(\d{2,5})"
)
_KEY = re.compile(
    r"(?:\{([^{}]+)\}\s*(?::[^=]+)?=\s*(?:\(?\s*await\s+)?(?:\w+(?:\.req)?\.(?:json\(\)|body)|readBody\(|body\b))|(?:\breq(?:uest)?\.body\.(\w+))"
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
"""What stands in a script before the program that runs the source."""
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
_UI_MESSAGES = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "{{ prompt }}"}]}]
_UI_STREAM = {"stream": "sse", "delta": "(type == 'text-delta' && delta) || `null`"}
_MOST = 40  # sources of a package
SOURCES = (".ts", ".tsx", ".mts", ".js", ".mjs", ".cjs")
_NPX = ["npx", "--yes"]  # what is no dependency, npx may ask for before it fetches it
_ASK_GRAPH = """\
import("./FILE").then(async (loaded) => {
  const graph = typeof loaded.NAME === "function" ? await loaded.NAME({}) : loaded.NAME;
  const content = require("fs").readFileSync(0, "utf8");
  const state = await graph.invoke({ messages: [{ role: "user", content }] });
  const last = state.messages[state.messages.length - 1];
  console.log(typeof last.content === "string" ? last.content : last.text);
});
"""


class Package:
    """A folder with a package.json; the root of the search may have none."""

    def __init__(self, files: ProjectFiles, path: str, read: Mapping[str, Any]) -> None:
        self.files = files
        self.path = path
        self.folder = path.rpartition("/")[0]
        listed = [read.get(key) for key in ("dependencies", "devDependencies")]
        self.names = {str(name) for table in listed if isinstance(table, dict) for name in table}
        scripts = read.get("scripts")
        self.scripts = (
            {str(k): v for k, v in scripts.items() if isinstance(v, str)} if isinstance(scripts, dict) else {}
        )

    @property
    def has_sdk(self) -> bool:
        """Whether an AI SDK is among its dependencies."""
        return any(_library(name) for name in self.names)

    def starts(self, file: str) -> list[str]:
        """The words that start a source of the package, or code that imports it."""
        if file.endswith((".js", ".mjs", ".cjs")):
            return ["node"]
        bun = any(self.files.has(f"{self.folder}/{name}".lstrip("/")) for name in ("bun.lock", "bun.lockb"))
        return ["bun"] if bun and not self.has("tsx") else self.runner("tsx")

    def has(self, program: str) -> bool:
        """Whether one of its packages has the program, or one that is installed above it."""
        return program in self.names or program_of_package(program, self.files.root / self.folder) is not None

    def runner(self, program: str) -> list[str]:
        """The words that start a program of npm."""
        return [program] if self.has(program) else [*_NPX, program]


class Script(Struct, frozen=True):
    """A script of package.json that runs a source: its name, the source, and the words that run it."""

    name: str
    file: str
    command: list[str]


def _script(package: Package, name: str, line: str) -> Script | None:
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
    return Script(name, file, command)


def package_of(files: ProjectFiles, path: str) -> Package | None:
    """The package of a package.json."""
    read = json_object(files.text(path) or b"")
    return None if read is None else Package(files, path, read)


def _library(name: str) -> str:
    for prefix, library in _SDKS.items():
        if name == prefix or (name.startswith(prefix + "/") or (prefix.endswith("/") and name.startswith(prefix))):
            return library
    return ""


def programs_of(package: Package, sources: Sequence[str]) -> Iterator[FoundAgent]:
    """The programs and routes of a package; `sources` are the paths of its files."""
    scripts: dict[str, Script] = {}
    for name, line in package.scripts.items():
        script = _script(package, name, line)
        if script is not None and name.partition(":")[0] not in _NOT_RUN:
            scripts.setdefault(script.file, script)
    count = 0
    for path in sources:
        if count >= _MOST or package.files.is_late():
            return
        data = package.files.text(path)
        if data is None:
            continue
        text = data.decode("utf-8", "replace")
        library, asks = "", None
        if package.has_sdk:
            library = next(filter(None, (_library(name) for name in _IMPORT.findall(text))), "")
            asks = _ASKS.search(text)
        if not library:
            library, asks = node_client(text), node_request(text)
        own = relative(path, package.folder)
        if not library or (
            asks is None and own not in scripts and not any(route[1].search(own) for route in _FILE_ROUTES)
        ):
            continue
        agent = _agent(package, path, text, library, asks, scripts.get(own))
        if agent is not None:
            count += 1
            yield agent


def _agent(
    package: Package,
    path: str,
    text: str,
    library: str,
    asks: re.Match[str] | None,
    script: Script | None,
) -> FoundAgent | None:
    own = relative(path, package.folder)
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
        sign, port = Sign.ROUTE, int(next(filter(None, port_match.groups())))
        config = _http(port, *_route(text))
        services = _service(command, port)
    # Components are shown in a page, and not run.
    elif own.endswith("x") or not _runs_at_once(text) or "/components/" in own or (asks is None):
        return None
    else:
        if script is not None:
            sign = Sign.SCRIPT
        question = node_words(text)
        # What `readline` reads counts when its line ends.
        reads = "line" if _asks_line(text) else "text"
        task: dict[str, Any] = {"command": [*command, *question]} if question else {"command": command, "input": reads}
        config = {"kind": "command", **task, "capture": "model", "answer": "model"}
    return FoundAgent(
        sign=sign,
        name=agent_name(own.rpartition("/")[2].partition(".")[0], path, package.files.root),
        framework=library,
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
        **_told_in(text),
    )


def graph_of(files: ProjectFiles, path: str, name: str, folder: str) -> FoundAgent | None:
    """The graph of LangGraph that a source exports under `name`: a line of JavaScript asks it."""
    data = files.text(path)
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    own = relative(path, folder)
    package = package_of(files, f"{folder}/package.json".lstrip("/")) or Package(files, "", {})
    start = package.starts(own)
    code = _ASK_GRAPH.replace("FILE", own).replace("NAME", name)
    config = {"kind": "command", "command": [*start, "-e", code], "input": "text", "capture": "model"}
    return FoundAgent(
        sign=Sign.CONFIGURED,
        name=name,
        framework="LangGraph",
        file=path,
        line=1,
        source=name,
        folder=folder,
        config={**config, "answer": "model"},
        **_told_in(text),
    )


def _told_in(text: str) -> dict[str, Any]:
    """What a source says of its agent."""
    return {
        "instructions": _first(_SYSTEM, text),
        "tools": tuple(FoundTool(m[1], next(filter(None, m.groups()[1:]), "")) for m in _TOOL.finditer(text))[:20],
        "prompts": tuple(dict.fromkeys(" ".join(filter(None, m.groups())) for m in _PROMPT.finditer(text)))[:6],
    }


def _file_route(package: Package, own: str, text: str) -> tuple[str, int, list[str]] | None:
    for name, pattern, port, command in _FILE_ROUTES:
        match = pattern.search(own) if name in package.names else None
        if match is not None and ("POST" in text or (name == "nuxt" and "EventHandler" in text)):
            return match[1], port, command
    return None


def _route(text: str) -> tuple[str, str]:
    """The path that takes a message, and the text of what answers there: the first that reads one, else the first."""
    routes = list(_ROUTES.finditer(text))
    places = [*(route.start() for route in routes), len(text)]
    posts = [
        (route[2], text[start:end])
        for route, (start, end) in zip(routes, pairwise(places), strict=True)
        if route[1] == "post"
    ]
    takes = ("messages", *_MESSAGES)
    return next((post for post in posts if any(key in takes for key in _keys(post[1]))), (posts or [("/", text)])[0])


def _keys(text: str) -> list[str]:
    """The keys of the request's body that are read."""
    return [key for match in _KEY.finditer(text) for key in re.split(r"[\s,:]+", match[1] or match[2] or "")]


def _http(port: int, path: str, text: str) -> dict[str, Any]:
    config: dict[str, Any] = {"kind": "http", "url": f"http://127.0.0.1:{port}{path}"}
    keys = _keys(text)
    into = next((name for name in _MESSAGES if name in keys), None)
    if "messages" in keys:
        config["body"] = {
            "messages": _UI_MESSAGES if re.search("[uU][iI]Message|convertToModelMessages", text) else "{{ messages }}"
        }
    elif into is not None:
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


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return " ".join(filter(None, match.groups())).strip() if match is not None else ""


def _line(package: Package, script: str) -> int:
    data = package.files.text(package.path) or b""
    place = data.find(f'"{script}"'.encode())
    return data.count(b"\n", 0, place) + 1 if place >= 0 else 1
