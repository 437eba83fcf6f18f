"""Agents in JavaScript and TypeScript are found by reading, and what is written for them asks them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from agent_candidates import agents_of, only
from scripted import ScriptedServer, stream_of

from agenteval_tui.agents.discovery.model import Sign

from .conftest import Run

PACKAGE = '{"type": "TYPE", "dependencies": {"SDK": "1"}, "devDependencies": {"tsx": "4"}}'
ADK = """
exports.LlmAgent = class { constructor(options) { Object.assign(this, options); } };
exports.createEvent = (event) => event;
exports.InMemoryRunner = class {
  constructor({ agent, appName }) { Object.assign(this, { agent, appName }); }
  events = [];
  sessionService = {
    createSession: async ({ appName, userId }) => ({ id: appName + userId }),
    appendEvent: async ({ event: { author, content } }) => { this.events.push([author, content]); },
  };
  async *runAsync({ newMessage }) {
    yield { content: { parts: [{ functionCall: {} }] } };
    yield { content: { parts: [{ text: JSON.stringify([...this.events, newMessage]) }] } };
  }
};
"""
CONVERSATION = [
    {"role": "user", "content": "Where is W1?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"order": "W1"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": '{"at": "sea"}'},
    {"role": "assistant", "content": "At sea."},
    {"role": "user", "content": "And W2?"},
]
CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"order": "W1"}}
OUTPUT = {"type": "text", "value": '{"at": "sea"}'}
OF_AI_SDK = [
    CONVERSATION[0],
    {"role": "assistant", "content": [CALL]},
    {"role": "tool", "content": [{"type": "tool-result", "toolCallId": "c1", "toolName": "find", "output": OUTPUT}]},
    *CONVERSATION[3:],
]
SDKS = {
    "@openai/agents": (
        "Agent",
        "exports.run = async (agent, items) => ({ finalOutput: items });",
        [
            CONVERSATION[0],
            {
                **{"type": "function_call", "callId": "c1", "name": "find", "arguments": '{"order": "W1"}'},
                "status": "completed",
            },
            {
                **{"type": "function_call_result", "callId": "c1", "name": "find", "status": "completed"},
                "output": {"type": "text", "text": '{"at": "sea"}'},
            },
            {"role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": "At sea."}]},
            CONVERSATION[4],
        ],
    ),
    "ai": (
        "ToolLoopAgent",
        "exports.say = (agent, { messages }) => ({ text: JSON.stringify(messages) });",
        OF_AI_SDK,
    ),
    "@google/adk": (
        "LlmAgent",
        ADK,
        [
            ["user", {"role": "user", "parts": [{"text": "Where is W1?"}]}],
            [
                "shop",
                {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "find", "args": {"order": "W1"}}}]},
            ],
            [
                "user",
                {
                    "role": "user",
                    "parts": [{"functionResponse": {"id": "c1", "name": "find", "response": {"at": "sea"}}}],
                },
            ],
            ["shop", {"role": "model", "parts": [{"text": "At sea."}]}],
            {"role": "user", "parts": [{"text": "And W2?"}]},
        ],
    ),
}
MADE = "exports.{0} = exports.{0} ?? class {{ constructor(options) {{ Object.assign(this, options); }}\n"
MADE += "  generate(asked) {{ return exports.say(this, asked); }} }};\n"


@pytest.mark.parametrize("sdk", SDKS)
@pytest.mark.parametrize("form", ["module", "commonjs"])
def test_an_exported_agent_gets_the_conversation(tmp_path: Path, sdk: str, form: str) -> None:
    made, code, conversation = SDKS[sdk]
    load = f"import {{ {made} }} from '{sdk}';\n" if form == "module" else f"const {{ {made} }} = require('{sdk}');\n"
    export = f"export const shopAgent = new {made}({{ name: 'shop', instructions: 'You sell pans.' }});\n"
    files = {
        "package.json": PACKAGE.replace("TYPE", form).replace("SDK", sdk),
        "src/shop.ts": f"import {{ {made} }} from '{sdk}';\n{export}",
        f"node_modules/{sdk}/package.json": '{"main": "index.js"}',
        f"node_modules/{sdk}/index.js": code + MADE.format(made),
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.name, agent.place) == (Sign.OBJECT, "shop", "src/shop.ts:2")
    assert (agent.instructions, agent.config["command"][:2]) == ("You sell pans.", ["tsx", "-e"])
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    # The same in JavaScript, which needs no package to run.
    script = load + export.replace("export const", "const")
    script += "export { shopAgent };\n" if form == "module" else "exports.shopAgent = shopAgent;\n"
    # What it logs is no part of its answer.
    (tmp_path / "src" / "shop.js").write_text(script + "console.log('loaded'); console.info('loaded');\n")
    command = ["node", "-e", agent.config["command"][2].replace("shop.ts", "shop.js")]
    assert agent.config["input"] == "json"
    assert json.loads(printed(command, tmp_path)) == conversation


def printed(command: list[str], folder: Path) -> str:
    request = json.dumps({"messages": CONVERSATION})
    return subprocess.run(command, cwd=folder, input=request, capture_output=True, text=True, check=True).stdout


MASTRA = """
exports.Agent = class {
  constructor(options) { Object.assign(this, options); }
  async generate(messages) { return { text: JSON.stringify([this.storage, ...messages]) }; }
};
exports.Mastra = class {
  constructor({ agents, storage }) {
    this.agents = agents;
    for (const agent of Object.values(agents)) agent.storage = storage;
  }
  getAgent(name) { return this.agents[name]; }
};
setInterval(() => {}, 1000);
"""


def test_an_agent_of_mastra_has_the_storage_of_what_it_is_registered_in(tmp_path: Path) -> None:
    files = {
        "package.json": PACKAGE.replace("TYPE", "module").replace("SDK", "@mastra/core"),
        "src/agent.js": "import { Agent } from '@mastra/core';\nexport const chef = new Agent({ name: 'chef' });\n",
        "src/index.js": "import { Mastra } from '@mastra/core';\nimport { chef } from './agent.js';\n"
        "export const mastra = new Mastra({ agents: { chef }, storage: 'disk' });\n",
        "node_modules/@mastra/core/package.json": '{"main": "index.js"}',
        "node_modules/@mastra/core/index.js": MASTRA,
    }
    agent = only(tmp_path, files)
    assert (agent.name, agent.framework, agent.file) == ("chef", "Mastra", "src/agent.js")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    assert json.loads(printed(agent.config["command"], tmp_path)) == ["disk", *OF_AI_SDK]


@pytest.mark.parametrize("folder", ["", "server/"])
def test_a_graph_that_a_file_names_is_not_told_again_as_an_object(tmp_path: Path, folder: str) -> None:
    files = {
        "package.json": '{"dependencies": {"langchain": "1"}}',
        f"{folder}langgraph.json": '{"graphs": {"desk": "./src/agent.ts:graph"}}',
        f"{folder}src/agent.ts": "import { createAgent } from 'langchain';\nexport const graph = createAgent({});\n",
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.name, f"{agent.folder}/".lstrip("/")) == (Sign.CONFIGURED, "desk", folder)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("const agent = new Agent({ name: 'x' });", []),  # nobody else can ask it
        ("const agent = new Agent({ name: 'x' });\nexport { agent as helper };", ["agents"]),
        ("const agent = new Agent<Context>({ name: 'x' });\nexport default agent;", ["agents"]),
        (
            "export const billing: Agent = new Agent({ name: 'x' });\nexport const desk = new Agent({ a: billing });",
            None,
        ),
    ],
)
def test_which_agents_are_exported(tmp_path: Path, line: str, names: list[str] | None) -> None:
    text = f"import {{ Agent }} from '@openai/agents';\n{line}\n"
    agents = agents_of(tmp_path, {"package.json": '{"dependencies": {"@openai/agents": "1"}}', "src/agents.ts": text})
    if names is None:
        assert [(agent.name, agent.is_part) for agent in agents] == [("desk", False), ("billing", True)]
    else:
        assert len(agents) == len(names)


def test_a_program_of_beeai_is_found(tmp_path: Path) -> None:
    text = "import { BeeAgent } from 'beeai-framework/agents/bee/agent';\nconst agent = new BeeAgent({});\n"
    text += "for await (const { prompt } of reader) await agent.run({ prompt });\n"
    # What it imports reads a line.
    reader = "import readline from 'node:readline/promises';\nexport const ask = () => rl.question('You: ');\n"
    files = {
        "package.json": '{"dependencies": {"beeai-framework": "1"}}',
        "src/agent.ts": "import { reader } from './helpers/reader.js';\n" + text,
        "src/helpers/reader.ts": reader,
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.framework, agent.line) == (Sign.PROGRAM, "BeeAI", 3)
    assert agent.config["input"] == "line"


MANAGER = (
    "import { Agent, run } from '@openai/agents';\nexport const planner = new Agent({ instructions: 'Plan trips.' });\n"
)
MANAGER += "export class Manager { ask(query) { return run(planner, query); } }\n"
MAIN = "import { Manager } from 'WHERE';\nasync function main() {\n  const rl = createInterface({ input });\n"
MAIN += "  rl.question('Where to? ', (query) => new Manager().ask(query));\n}\nmain();\n"


@pytest.mark.parametrize("where", ["./manager", "./manager.js", "@/manager", "./more"])
def test_a_program_that_asks_by_way_of_another_source(tmp_path: Path, where: str) -> None:
    files = {
        "package.json": '{"dependencies": {"@openai/agents": "1"}, "scripts": {"start": "tsx src/main.ts"},'
        ' "devDependencies": {"tsx": "4"}}',
        "src/main.ts": "import readline from 'node:readline';\n" + MAIN.replace("WHERE", where),
        "src/manager.ts": MANAGER,
        "src/more/index.ts": "export * from '../manager.js';\n",
    }
    program, part = agents_of(tmp_path, files)
    assert (program.sign, program.framework) == (Sign.SCRIPT, "openai-agents")
    assert (program.config["command"], program.config["input"]) == (["tsx", "src/main.ts"], "line")
    assert program.instructions == "Plan trips."
    assert (part.name, part.is_part) == ("planner", True)


@pytest.mark.parametrize("more", ["import { render } from 'ink';", "import makeSocket from '@whiskeysockets/baileys';"])
def test_a_program_that_nothing_can_be_written_to(tmp_path: Path, more: str) -> None:
    files = {
        "package.json": '{"dependencies": {"@openai/agents": "1"}, "scripts": {"start": "tsx main.ts"}}',
        "main.ts": "import { ask } from './ask';\nawait ask();\n",
        "ask.ts": f"{more}\nimport {{ run }} from '@openai/agents';\nexport const ask = () => run(agent, 'hi');\n",
    }
    assert agents_of(tmp_path, files) == []


@pytest.mark.parametrize(
    ("name", "words"), [("serverScript", []), ("prompt", ["{{prompt}}"]), ("query: string", ["{{prompt}}"])]
)
def test_a_program_that_asks_by_readline_and_has_an_argument(tmp_path: Path, name: str, words: list[str]) -> None:
    text = "import readline from 'readline';\nimport OpenAI from 'openai';\n"
    text += f"const {name} = process.argv[2];\nasync function main() {{ await rl.question('You: '); }}\n"
    text += "main();\nclient.responses.create({});\n"
    agent = only(tmp_path, {"package.json": '{"dependencies": {"openai": "1"}}', "main.js": text})
    assert agent.config["command"] == ["node", "main.js", *words]
    assert agent.config.get("input") == (None if words else "line")


STREAM = (
    {"type": "start"},
    {"type": "reasoning-delta", "id": "r", "delta": "Hm."},
    {"type": "tool-input-start", "toolCallId": "a", "toolName": "weather"},
    {"type": "tool-input-available", "toolCallId": "a", "toolName": "weather", "input": {"city": "Ulm"}},
    {"type": "tool-input-available", "toolCallId": "b", "toolName": "weather", "input": {"city": "Rom"}},
    {"type": "tool-output-available", "toolCallId": "b", "output": {"state": "loading"}, "preliminary": True},
    {"type": "tool-output-error", "toolCallId": "a", "errorText": "no such city"},
    {"type": "tool-output-available", "toolCallId": "b", "output": {"state": "sunny"}},
    {"type": "text-delta", "id": "t", "delta": "Sunny "},
    {"type": "text-delta", "id": "t", "delta": "in Rome."},
)
ROUTE = "import { createAgentUIStreamResponse, tool, ToolLoopAgent } from 'ai';\n"
ROUTE += "const weatherTool = tool({ description: 'Tells the weather.', inputSchema });\n"
ROUTE += "const agent = new ToolLoopAgent({ tools: { weather: weatherTool } });\n"
ROUTE += "export async function POST(request) {\n  const { messages } = await request.json();\n"
ROUTE += "  return createAgentUIStreamResponse({ agent, uiMessages: messages });\n}\n"


@pytest.mark.parametrize("end", [{"type": "finish", "finishReason": "stop"}, {"type": "error", "errorText": "no key"}])
async def test_a_route_that_streams_messages_for_a_browser_is_read_whole(
    run_agent: Run, tmp_path: Path, end: dict[str, str]
) -> None:
    files = {"package.json": '{"dependencies": {"ai": "6", "next": "16"}}', "app/api/chat/route.ts": ROUTE}
    agent = only(tmp_path, files)
    assert [tool.name for tool in agent.tools] == ["weather"]
    async with ScriptedServer(lambda _: stream_of(*STREAM, end)) as server:
        transcript = (await run_agent({**agent.config, "url": f"{server.url}/api/chat"})).transcript
    calls = [(call.name, call.arguments, call.result, call.status) for call in transcript.tool_calls]
    assert calls == [
        ("weather", {"city": "Ulm"}, "no such city", "error"),
        ("weather", {"city": "Rom"}, '{"state": "sunny"}', "ok"),
    ]
    if end["type"] == "error":
        assert transcript.error is not None
        assert "no key" in transcript.error.message
    else:
        assert (transcript.final_output, transcript.finish_reason) == ("Sunny in Rome.", "stop")


@pytest.mark.parametrize(
    "tool",
    [
        "const find = tool({ description: 'Finds a pan.', inputSchema });",
        "const t = tool({\n  name: 'find',\n  description: 'Finds a pan.',\n  parameters: z.object({}) });",
        "const t = createTool({ id: \"find\", description:\n    'Finds a pan.', inputSchema: x });",
        "const t = tool(async () => 1, { name: 'find', description: 'Finds a pan.', schema: x });",
        "const tools = [{ name: 'find', description: 'Finds a pan.', input_schema: {} }];",
    ],
)
def test_tools_are_read(tmp_path: Path, tool: str) -> None:
    text = f"import {{ generateText }} from 'ai';\n{tool}\nawait generateText({{ model }});\n"
    agent = only(tmp_path, {"package.json": '{"dependencies": {"ai": "5"}}', "main.ts": text})
    assert [(tool.name, tool.description) for tool in agent.tools] == [("find", "Finds a pan.")]
