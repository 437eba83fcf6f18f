"""A package for Node: what starts its sources, what each says of its agent (instructions, tools, what it is asked), and
the agents that it exports. A program asks those that is written into the command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.agents.discovery.model import AgentCandidate, FoundTool, Sign, agent_name, relative
from agenteval_tui.agents.discovery.project_files import ProjectFiles
from agenteval_tui.agents.process.node_packages import program_of_package
from agenteval_tui.core.json_values import json_object

_NPX = ["npx", "--yes"]  # what is no dependency, npx may ask for before it fetches it
_TEXT = r"""(?:'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"|`([^`$]+)`)"""
_PROMPT = re.compile(rf"\b(?:(?:prompt|content|input)\s*:\s*|run\(\s*\w+\s*,\s*){_TEXT}")
_SYSTEM = re.compile(rf"\b(?:system|instructions?|systemPrompt)\s*:\s*{_TEXT}")
_TOOL = re.compile(rf"\b([A-Za-z_]\w*)\s*[:=]\s*(?:dynamicT|t)ool\(\s*\{{\s*description\s*:\s*{_TEXT}")
_NAMED_TOOL = re.compile(
    rf"""\b(?:name|id)\s*:\s*["']([A-Za-z_][\w-]*)["']\s*,\s*description\s*:\s*(?:\n\s*)?{_TEXT}\s*,"""
    r"\s*(?:strict|parameters|inputSchema|input_schema|outputSchema|schema|needsApproval|execute)\b"
)
_MADE = re.compile(
    r"^(export\s+)?(?:(?:const|let)\s+(\w+)(?:\s*:[^=\n]+)?\s*=|default)\s*(?:await\s+)?"
    r"(?:new\s+(?:\w*Agent)\s*(?:<[^>]*>)?\(|(?:createReactAgent|createAgent|Agent\.create)\s*\()",
    re.M,
)
_EXPORTS = re.compile(r"^export\s+(?:\{([^}]*)\}|default\s+(\w+)\s*;?\s*$)", re.M)
_MESSAGES = """\
  const { messages } = await agent.invoke({ messages: request.messages });
  const last = messages[messages.length - 1];
  print(typeof last.content === "string" ? last.content : last.text);
"""
_PARTS = """\
  const messages = request.messages.map(({ role, content, tool_calls = [], tool_call_id: toolCallId }) => {
    if (role === "tool") {
      const output = { type: "text", value: content };
      return { role, content: [{ type: "tool-result", toolCallId, toolName: names[toolCallId], output }] };
    }
    const calls = tool_calls.map(({ id, function: { name, arguments: text } }) => {
      return { type: "tool-call", toolCallId: id, toolName: name, input: JSON.parse(text || "{}") };
    });
    if (!calls.length) return { role, content };
    return { role, content: [...(content ? [{ type: "text", text: content }] : []), ...calls] };
  });
"""
_ASKS = {
    "openai-agents": """\
  const { run } = await LOAD("@openai/agents");
  const items = request.messages.flatMap(({ role, content, tool_calls = [], tool_call_id: callId }) => {
    if (role === "tool") {
      const output = { type: "text", text: content };
      return [{ type: "function_call_result", callId, name: names[callId], status: "completed", output }];
    }
    if (role !== "assistant") return [{ role, content }];
    const calls = tool_calls.map(({ id, function: { name, arguments: text } }) => {
      return { type: "function_call", callId: id, name, arguments: text, status: "completed" };
    });
    if (!content) return calls;
    return [{ role, status: "completed", content: [{ type: "output_text", text: content }] }, ...calls];
  });
  const { finalOutput } = await run(agent, items);
  print(typeof finalOutput === "string" ? finalOutput : JSON.stringify(finalOutput));
""",
    "AI SDK": f"""\
{_PARTS}\
  print((await agent.generate({{ messages }})).text);
""",
    "Mastra": f"""\
{_PARTS}\
  print((await agent.generate(messages)).text);
""",
    "Google ADK": """\
  const { InMemoryRunner, createEvent } = await LOAD("@google/adk");
  const runner = new InMemoryRunner({ agent, appName: "agenteval" });
  const session = await runner.sessionService.createSession({ appName: "agenteval", userId: "user" });
  const contents = request.messages.map(({ role, content, tool_calls = [], tool_call_id: id }) => {
    if (role === "tool") {
      let response = { result: content };
      try {
        const read = JSON.parse(content);
        if (read && typeof read === "object" && !Array.isArray(read)) response = read;
      } catch {}
      return { role: "user", parts: [{ functionResponse: { id, name: names[id], response } }] };
    }
    const calls = tool_calls.map(({ id, function: { name, arguments: text } }) => {
      return { functionCall: { id, name, args: JSON.parse(text || "{}") } };
    });
    const parts = [...(content ? [{ text: content }] : []), ...calls];
    return { role: role === "assistant" ? "model" : "user", parts };
  });
  const newMessage = contents.pop();
  for (const content of contents) {
    const author = content.role === "model" ? agent.name : "user";
    const event = createEvent({ author, content, invocationId: "earlier" });
    await runner.sessionService.appendEvent({ session, event });
  }
  for await (const event of runner.runAsync({ userId: "user", sessionId: session.id, newMessage })) {
    if (event.errorMessage) throw new Error(event.errorMessage);
    for (const part of event.content?.parts ?? []) if (part.text) print(part.text);
  }
""",
    "LangGraph": _MESSAGES,
    "LangChain": _MESSAGES,
}
_REGISTERED = re.compile(r"^export\s+const\s+(\w+)\s*=\s*new\s+Mastra\s*\(", re.M)
# What is printed is the answer: what a framework logs, as Google ADK does, would be part of it. What keeps a connection
# or a timer would not end.
_PROGRAM = """\
const print = console.log;
console.log = console.info = console.debug = console.error;
import(FILE).then(async (loaded) => {
  const agent = AGENT;
  const request = JSON.parse(require("fs").readFileSync(0, "utf8"));
ASKS  process.exit();
});
"""
_NAMES = """\
  const names = {};
  for (const { id, function: { name } } of request.messages.flatMap((each) => each.tool_calls ?? [])) names[id] = name;
"""
_BLANK = re.compile(r"\b(?:FILE|AGENT|ASKS|LOAD)\b")


class Package:
    """A folder with a package.json; the root of the search may have none."""

    def __init__(self, files: ProjectFiles, path: str, read: Mapping[str, Any]) -> None:
        self.files = files
        self.path = path
        self.folder = path.rpartition("/")[0]
        listed = [read.get(key) for key in ("dependencies", "devDependencies")]
        self.names = {str(name) for table in listed if isinstance(table, dict) for name in table}
        self.is_module = read.get("type") == "module"
        """Whether its sources are modules, and not of CommonJS."""
        scripts = read.get("scripts")
        self.scripts = (
            {str(k): v for k, v in scripts.items() if isinstance(v, str)} if isinstance(scripts, dict) else {}
        )

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


def package_of(files: ProjectFiles, path: str) -> Package | None:
    """The package of a package.json."""
    read = json_object(files.text(path) or b"")
    return None if read is None else Package(files, path, read)


def told_in(text: str) -> dict[str, Any]:
    """What a source says of its agent."""
    return {
        "instructions": _first(_SYSTEM, text),
        "tools": tuple(
            FoundTool(_called(m[1], text), next(filter(None, m.groups()[1:]), ""))
            for pattern in (_TOOL, _NAMED_TOOL)
            for m in pattern.finditer(text)
        )[:20],
        "prompts": tuple(dict.fromkeys(" ".join(filter(None, m.groups())) for m in _PROMPT.finditer(text)))[:6],
    }


def _called(name: str, text: str) -> str:
    """What a model calls a tool: the key that it has among the tools of an agent, where that is not its own name."""
    tools = re.search(rf"\btools\s*:\s*\{{[^{{}}]*?\b(\w+)\s*:\s*{name}\b", text)
    return name if tools is None else tools[1]


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text)
    return " ".join(filter(None, match.groups())).strip() if match is not None else ""


def objects_of(package: Package, path: str, texts: Mapping[str, str], library: str) -> Iterator[AgentCandidate]:
    """The agents that a source of a package exports. `texts`: all sources that use an AI SDK; `library`: which this one
    makes them with."""
    if library not in _ASKS:
        return
    text = texts[path]
    exported = {
        names.split()[0]: names.split()[-1]
        for match in _EXPORTS.finditer(text)
        for names in (match[1] or f"{match[2]} as default").split(",")
        if names.strip()
    }
    for match in _MADE.finditer(text):
        own = match[2] or "default"
        name = own if match[1] else exported.get(own, "")
        if not name.isidentifier():  # it is not exported, or under a text
            continue
        line = text.count("\n", 0, match.start()) + 1
        yield AgentCandidate(
            sign=Sign.OBJECT,
            name=agent_name(re.sub(r"_?[aA]gent$|^default$", "", name), path, package.files.root),
            framework=library,
            file=path,
            line=line,
            source=text.splitlines()[line - 1].strip()[:60],
            folder=package.folder,
            config=_registered(package, texts, own) or _config(package, path, _exported(name), library),
            export=f"{path}:{name}",
            # Another agent of the same file has it.
            is_part=re.search(rf"\b{own}\b(?!\s*,?\s*\}}\s*;?\s*$)", text[match.end() :], re.M) is not None,
            **told_in(text),
        )


def _registered(package: Package, texts: Mapping[str, str], name: str) -> dict[str, Any]:
    """An agent of Mastra by way of what it is registered in, which has its storage; nothing where it is not."""
    for path, text in texts.items():
        match = _REGISTERED.search(text)
        if match is not None and re.search(rf"\b{name}\b", text[match.end() :]):
            return _config(package, path, f'loaded.{match[1]}.getAgent("{name}")', "Mastra")
    return {}


def _exported(name: str) -> str:
    return f'typeof loaded.{name} === "function" ? await loaded.{name}({{}}) : loaded.{name}'


def graph_of(files: ProjectFiles, path: str, name: str, folder: str) -> AgentCandidate | None:
    """The graph of LangGraph that a source exports under `name`."""
    data = files.text(path)
    if data is None:
        return None
    package = package_of(files, f"{folder}/package.json".lstrip("/")) or Package(files, f"{folder}/package.json", {})
    return AgentCandidate(
        sign=Sign.CONFIGURED,
        name=name,
        framework="LangGraph",
        file=path,
        line=1,
        source=name,
        folder=folder,
        config=_config(package, path, _exported(name), "LangGraph"),
        export=f"{path}:{name}",
        **told_in(data.decode("utf-8", "replace")),
    )


def _config(package: Package, path: str, agent: str, library: str) -> dict[str, Any]:
    own = relative(path, package.folder)
    # The other way, a package would be loaded a second time, beside the one that the agent is made with.
    is_module = package.is_module or own.endswith((".mjs", ".mts"))
    # LangChain takes the messages of Chat Completions as they are, with their calls.
    code = _ASKS[library] if _ASKS[library] is _MESSAGES else _NAMES + _ASKS[library]
    blanks = {"FILE": json.dumps(f"./{own}"), "AGENT": agent, "LOAD": "import" if is_module else "require"}
    # What a blank is filled with is not looked at again: a file may be called as a blank is.
    blanks["ASKS"] = _BLANK.sub(lambda match: blanks[match[0]], code)
    code = _BLANK.sub(lambda match: blanks[match[0]], _PROGRAM)
    command = [*package.starts(own), "-e", code]
    return {"kind": "command", "command": command, "input": "json", "capture": "model", "answer": "auto"}
