"""Agents that a source in JavaScript or TypeScript exports. A program asks them that is written into the command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from agenteval_tui.agents.finding.model import FoundAgent, Sign, agent_name, relative
from agenteval_tui.agents.finding.node_package import Package, package_of
from agenteval_tui.agents.finding.node_words import told_in
from agenteval_tui.agents.finding.project_files import ProjectFiles

_MADE = re.compile(
    r"^(export\s+)?(?:(?:const|let)\s+(\w+)(?:\s*:[^=\n]+)?\s*=|default)\s*(?:await\s+)?"
    r"(?:new\s+(?:\w*Agent)\s*(?:<[^>]*>)?\(|(?:createReactAgent|createAgent|Agent\.create)\s*\()",
    re.M,
)
_EXPORTS = re.compile(r"^export\s+(?:\{([^}]*)\}|default\s+(\w+)\s*;?\s*$)", re.M)
_MESSAGES = """\
  const { messages } = await agent.invoke({ messages: request.messages });
  const last = messages[messages.length - 1];
  console.log(typeof last.content === "string" ? last.content : last.text);
"""
_ASKS = {
    "openai-agents": """\
  const { run } = await LOAD("@openai/agents");
  const { finalOutput } = await run(agent, content);
  console.log(typeof finalOutput === "string" ? finalOutput : JSON.stringify(finalOutput));
""",
    "AI SDK": """\
  console.log((await agent.generate({ prompt: content })).text);
""",
    "Mastra": """\
  console.log((await agent.generate(content)).text);
""",
    "Google ADK": """\
  const { InMemoryRunner } = await LOAD("@google/adk");
  const runner = new InMemoryRunner({ agent, appName: "agenteval" });
  const { id } = await runner.sessionService.createSession({ appName: "agenteval", userId: "user" });
  const newMessage = { role: "user", parts: [{ text: content }] };
  for await (const event of runner.runAsync({ userId: "user", sessionId: id, newMessage })) {
    if (event.errorMessage) throw new Error(event.errorMessage);
    for (const part of event.content?.parts ?? []) if (part.text) console.log(part.text);
  }
""",
    "LangGraph": _MESSAGES,
    "LangChain": _MESSAGES,
}
_REGISTERED = re.compile(r"^export\s+const\s+(\w+)\s*=\s*new\s+Mastra\s*\(", re.M)
# What keeps a connection or a timer would not end.
_PROGRAM = """\
import(FILE).then(async (loaded) => {
  const agent = AGENT;
  const READ;
ASKS  process.exit();
});
"""
_BLANK = re.compile(r"\b(?:FILE|AGENT|READ|ASKS|LOAD)\b")
_INPUT = 'require("fs").readFileSync(0, "utf8")'


def objects_of(package: Package, path: str, texts: Mapping[str, str], library: str) -> Iterator[FoundAgent]:
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
        yield FoundAgent(
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


def graph_of(files: ProjectFiles, path: str, name: str, folder: str) -> FoundAgent | None:
    """The graph of LangGraph that a source exports under `name`."""
    data = files.text(path)
    if data is None:
        return None
    package = package_of(files, f"{folder}/package.json".lstrip("/")) or Package(files, f"{folder}/package.json", {})
    return FoundAgent(
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
    # LangChain takes the messages of Chat Completions as they are, with their calls: a conversation can be continued.
    takes_messages = _ASKS[library] is _MESSAGES
    blanks = {
        "FILE": json.dumps(f"./{own}"),
        "AGENT": agent,
        "READ": f"request = JSON.parse({_INPUT})" if takes_messages else f"content = {_INPUT}",
        "LOAD": "import" if is_module else "require",
    }
    # What a blank is filled with is not looked at again: a file may be called as a blank is.
    blanks["ASKS"] = _BLANK.sub(lambda match: blanks[match[0]], _ASKS[library])
    code = _BLANK.sub(lambda match: blanks[match[0]], _PROGRAM)
    task = {"command": [*package.starts(own), "-e", code], "input": "json" if takes_messages else "text"}
    return {"kind": "command", **task, "capture": "model", "answer": "model"}
