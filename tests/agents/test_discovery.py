"""Agents are found by reading: what is one, what isn't, and what is written for them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_candidates import agents_of, assert_object_is_found, only, project
from programs import executable

from agenteval_tui.agents.discovery.first_suite import write_first_suite
from agenteval_tui.agents.discovery.model import Sign
from agenteval_tui.agents.discovery.module_description import first_line
from agenteval_tui.agents.discovery.search import find_agents
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.views.agent_candidates import unread

OBJECTS = {
    "pydantic-ai": "from pydantic_ai import Agent as A\nx = A('openai:m', system_prompt=RULES)\n",
    "openai-agents": "import agents\nx = agents.Agent[None](name='x', instructions=RULES)\n",
    "LangGraph": "from langgraph.graph import StateGraph, MessagesState\nb = StateGraph(MessagesState)\n"
    "b.add_edge('a', 'b')\nx = b.compile()\n",
    "LangChain": "from langchain.agents import create_agent\nx = create_agent('m', [], prompt=RULES)\n",
}


@pytest.mark.parametrize("tool", ["llamaagents", "llamadeploy"])
def test_the_workflows_that_llama_agents_serves(tmp_path: Path, tool: str) -> None:
    workflow = "from workflows import Workflow\nclass Flow(Workflow):\n    'Answers.'\nflow = Flow(timeout=None)\n"
    table = f'[project]\nname = "app"\n[tool.{tool}]\nname = "x"\n[tool.{tool}.workflows]\nask_me = "app.flows:flow"\n'
    agents = agents_of(tmp_path, {"svc/pyproject.toml": table, "svc/src/app/flows.py": workflow})
    (first,) = agents  # not its class, and not the object again
    assert (first.sign, first.framework, first.name, first.folder) == (Sign.CONFIGURED, "LlamaIndex", "ask-me", "svc")
    assert first.config["callable"] == "app.flows:flow"
    assert first.place == "svc/pyproject.toml:6"


@pytest.mark.parametrize("table", ["workflows = 3", "workflows = {a = 1, b = 'x', c = 'no.such:thing', d = 'app:'}"])
def test_workflows_that_are_not_there(tmp_path: Path, table: str) -> None:
    assert agents_of(tmp_path, {"pyproject.toml": f"[tool.llamaagents]\n{table}\n", "app.py": "x = 1\n"}) == []


@pytest.mark.parametrize(
    ("file", "settings", "path"),
    [
        ("cook/root_agent.yaml", "cook/root_agent.yaml", None),
        ("apps/cook/root_agent.yaml", "apps/cook/root_agent.yaml", ["apps"]),
        ("root_agent.yaml", "root_agent.yaml", [".."]),
    ],
)
def test_an_agent_of_google_adk_in_yaml(tmp_path: Path, file: str, settings: str, path: list[str] | None) -> None:
    text = "name: cook\nmodel: m\ninstruction: Recipes only.\n"
    text += "tools:\n  - name: cook.tools.search\n  - name: google_search\n"
    agent = only(tmp_path, {file: text})
    assert (agent.sign, agent.framework, agent.name, agent.file) == (Sign.ROOT, "Google ADK", "cook", file)
    assert agent.config["callable"] == "google.adk.agents.config_agent_utils:from_config"
    assert agent.config["settings"] == {"config_path": settings}
    assert agent.config.get("path") == path
    assert agent.instructions == "Recipes only."
    assert [tool.name for tool in agent.tools] == ["search", "google_search"]


@pytest.mark.parametrize("text", ["", "- a", "name: [1]", "name: x\n\tb: {", "name: &a [*a]", "\x00", "name: x: y"])
def test_yaml_that_is_no_agent_of_google_adk(tmp_path: Path, text: str) -> None:
    assert agents_of(tmp_path, {"a/root_agent.yaml": text}) == []


@pytest.mark.parametrize("framework", OBJECTS)
def test_an_object_of_each_framework(tmp_path: Path, framework: str) -> None:
    assert_object_is_found(tmp_path, framework, OBJECTS[framework])


@pytest.mark.parametrize(
    "text",
    [
        "class Agent: ...\nx = Agent()\n",  # its own
        "from agents import Agent\nx = Agent()\n",  # a module beside it
        "from pydantic_ai import Agent\ndef make(model):\n    return Agent(model)\n",  # needs something
        "from pydantic_ai import Agent\nx: Agent\n",
        "# from pydantic_ai import Agent\nx = Agent()\n",
        "from langgraph.graph import StateGraph\nx = StateGraph(dict)\n",  # not compiled
    ],
)
def test_what_is_not_an_agent(tmp_path: Path, text: str) -> None:
    assert agents_of(tmp_path, {"bot.py": text, "agents.py": "class Agent: ...\n"}) == []


@pytest.mark.parametrize("line", ["class SearchTool:", "class Search(base.BaseTool):"])
def test_a_tool_that_asks_a_model_is_no_agent(tmp_path: Path, line: str) -> None:
    body = "    def __call__(self, query):\n        return client.messages.create(messages=[query]).content\n"
    text = f"import anthropic\nfrom tools import base\nclient = anthropic.Anthropic()\n{line}\n{body}"
    assert agents_of(tmp_path, {"bot.py": text}) == []
    assert len(agents_of(tmp_path, {"bot.py": text.replace(line, "class Search:")})) == 1


def test_a_library_that_is_called_as_a_module_beside_its_user(tmp_path: Path) -> None:
    files = {
        "shop/__init__.py": "",
        "shop/agents.py": "from agents import Agent\ntriage = Agent[None](name='t')\n",
        "shop/rails.py": "from agents import Agent, Runner\nguard = Agent(name='g')\n",
        "own/agents.py": "class Agent: ...\n",
        "own/bot.py": "from agents import Agent\nx = Agent(name='own')\n",
        "deep/agents/__init__.py": "from .agent import Agent\n",
        "deep/agents/agent.py": "class Agent: ...\n",
        "deep/bot.py": "from agents import Agent\nx = Agent(name='deep')\n",
        "deep/agents/other.py": "from agents.agent import Agent\nx = Agent(name='other')\n",
    }
    found = {agent.config["callable"]: agent.framework for agent in agents_of(tmp_path, files)}
    assert found == {"shop/agents.py:triage": "openai-agents", "shop/rails.py:guard": "openai-agents"}


def test_factories_and_what_they_give(tmp_path: Path) -> None:
    text = (
        "from pydantic_ai import Agent\n"
        "def build(model='m', settings=None):\n    agent = Agent(model, system_prompt='Be a cook.')\n    return agent\n"
        "async def later() -> Agent:\n    return await somewhere()\n"
        "def answer(prompt):\n    return Agent().run_sync(prompt)\n"
        "async def chat(message: str) -> str:\n    return (await Agent().run(message)).output\n"
    )
    agents = agents_of(tmp_path, {"bot.py": text})
    assert [(agent.config["callable"], agent.sign) for agent in agents] == [
        ("bot.py:build", Sign.FACTORY),
        ("bot.py:later", Sign.FACTORY),
    ]
    assert agents[0].instructions == "Be a cook."


def test_a_function_that_asks_a_model_but_not_a_tool(tmp_path: Path) -> None:
    text = (
        "import openai\nclient = openai.OpenAI()\n"
        "def answer(question: str) -> str:\n    return client.chat.completions.create(messages=[question])\n"
        "@tool\ndef search(query):\n    return client.responses.create(input=query)\n"
        "def shape(text):\n    return text.strip()\n"
    )
    agent = only(tmp_path, {"bot.py": text})
    assert (agent.sign, agent.config["callable"], agent.config["capture"]) == (Sign.FUNCTION, "bot.py:answer", "model")


def test_the_agent_that_has_the_others_comes_first(tmp_path: Path) -> None:
    text = (
        "from agents import Agent\n"
        "math = Agent(name='Math', instructions='m')\n"
        "triage = Agent(name='Triage', handoffs=[math])\n"
    )
    agents = agents_of(tmp_path, {"bot.py": text})
    assert [(agent.name, agent.is_part) for agent in agents] == [("triage", False), ("math", True)]


def test_what_its_project_says_of_it(tmp_path: Path) -> None:
    files = {
        "src/shop/__init__.py": "",
        "src/shop/prompts.py": "RULES = 'You sell ' + 'pans.'\n",
        "src/shop/tools.py": "def get_order(order_id: str):\n    '''Look up an order.\n\n    Args: x\n    '''\n",
        "src/shop/bot.py": "from pydantic_ai import Agent\nfrom . import prompts\nfrom .tools import get_order\n"
        "bot = Agent('m', system_prompt=prompts.RULES, tools=[get_order])\n"
        "@bot.tool_plain\ndef cancel(id: str):\n    'Cancel an order.'\n"
        "if __name__ == '__main__':\n    print(bot.run_sync('Where is my order?'))\n",
        "pyproject.toml": "[project]\nname = 'x'\n",
    }
    agent = only(tmp_path, files)
    assert agent.instructions == "You sell pans."
    assert [(tool.name, tool.description) for tool in agent.tools] == [
        ("cancel", "Cancel an order."),
        ("get_order", "Look up an order."),
    ]
    assert agent.prompts == ("Where is my order?",)
    _, suite = write_first_suite(agent, tmp_path)
    assert suite.suite is not None
    first, second = suite.suite.tests
    assert (first.prompt, second.prompt) == (
        "Where is my order?",
        "Use your tool cancel: Cancel an order. Choose id yourself, and ask nothing back.",
    )
    assert first.criteria[0].name == "Calls get_order"
    assert "# The prompt of `uses-cancel` names a tool. Write what" in (tmp_path / "bot.suite.yaml").read_text()
    before = (tmp_path / "bot.suite.yaml").read_bytes()
    with pytest.raises(AgentevalError, match="already exists"):
        write_first_suite(agent, tmp_path)
    assert (tmp_path / "bot.suite.yaml").read_bytes() == before


def test_a_tool_is_asked_for_with_what_is_known_of_it(tmp_path: Path) -> None:
    said = """Upsert a memory in the database.

    Args:
        content: The main content of the memory. For example:
            "User expressed interest in learning about French."
    """
    text = (
        "from pydantic_ai import Agent, RunContext\nfrom langchain.tools import InjectedToolArg\n"
        "bot = Agent('m', system_prompt='You remember.')\n@bot.tool\n"
        "def upsert(ctx: RunContext, content: str, *, user: Annotated[str, InjectedToolArg], again: int, n: int = 1):\n"
        f"    {said!r}\n"
    )
    (tool,) = (agent := only(tmp_path, {"bot.py": text})).tools
    assert tool.parameters == ("content", "again")
    assert tool.example == "User expressed interest in learning about French."
    _, suite = write_first_suite(agent, tmp_path)
    assert suite.suite is not None
    assert suite.suite.tests[0].prompt == (
        "Use your tool upsert: Upsert a memory in the database. "
        "For example: User expressed interest in learning about French."
    )


@pytest.mark.parametrize("declares", ["{} = {!r}", "{}: str = {!r}", "{}: str = Field(default={!r})"])
def test_a_tool_that_is_a_class_has_its_name_and_description_in_it(tmp_path: Path, declares: str) -> None:
    name, description = declares.format("name", "Order search"), declares.format("description", "Look up an order.")
    tools = f"from pydantic import Field\nclass Orders(BaseTool):\n    {name}\n    {description}\n"
    bot = "from langchain.agents import create_agent\nfrom tools import Orders\n"
    bot += "bot = create_agent('m', tools=[Orders()])\n"
    agent = only(tmp_path, {"tools.py": tools, "bot.py": bot})
    assert [(tool.name, tool.description) for tool in agent.tools] == [("Order search", "Look up an order.")]


@pytest.mark.parametrize("made", ["flow = Flow(5)", "_x = Flow\nflow = Flow(time=3)"])
def test_an_object_that_a_module_makes_is_found_and_not_its_class(tmp_path: Path, made: str) -> None:
    workflow = "from workflows import Workflow\nclass Flow(Workflow):\n    def __init__(self, time): 'x'\n"
    agent = only(tmp_path, {"flows.py": f"{workflow}{made}\n"})
    assert (agent.sign, agent.config["callable"]) == (Sign.OBJECT, "flows.py:flow")
    bot = (
        "import openai\nclass Bot:\n    def run(self, prompt):\n        return openai.responses.create(input=prompt)\n"
    )
    agent = only(tmp_path / "b", {"bots.py": f"{bot}bot = Bot()\n"})
    assert (agent.sign, agent.config["callable"]) == (Sign.OBJECT, "bots.py:bot")


def test_contexts_and_states_are_written(tmp_path: Path) -> None:
    deps = (
        "from dataclasses import dataclass, field\nfrom pydantic_ai import Agent\nimport duck\n"
        "@dataclass\nclass Deps:\n    customer: int\n    tier: str\n    db: duck.Connection\n"
        "    tags: list = field(default_factory=list)\n"
        "bot = Agent('m', deps_type=Deps)\n"
        "def main():\n    bot.run_sync('Hello you', deps=Deps(customer=7, tier=tier(), db=None))\n"
    )
    agent = only(tmp_path / "a", {"bot.py": deps})
    assert agent.config["context"] == {"customer": 7, "tier": "example"}
    assert agent.incomplete == ("db",)
    graph = (
        "from langgraph.graph import StateGraph\nfrom typing import TypedDict\n"
        "class State(TypedDict):\n    docs: list\n    question: str\n    draft: str\n    answer: str\n"
        "graph = StateGraph(State).add_node('a').compile()\n"
    )
    agent = only(tmp_path / "b", {"bot.py": graph})
    assert (agent.config["input"], agent.config["output"]) == ({"question": "{{prompt}}"}, "answer")


@pytest.mark.parametrize(
    ("state", "nodes", "expected"),
    [
        # A type is read as code, not as text: "Registry" has "str" in it, and dict[str, int] is no text.
        ("registry: ToolRegistry\n    counts: dict[str, int]\n    goal: str", "", {"goal": "{{prompt}}"}),
        ("registry: ToolRegistry\n    goal: Optional[str]", "", {"goal": "{{prompt}}"}),
        # A text that names something asks nothing.
        ("user_id: str\n    output_dir: str\n    goal: str", "", {"goal": "{{prompt}}"}),
        # What a node writes is not what the graph is given.
        ("plan: str\n    goal: str", "def a(state):\n    return {'plan': 'x'}\n", {"goal": "{{prompt}}"}),
        (
            "plan: str\n    goal: str",
            "def a(state):\n    state['plan'] = 'x'\n    return state\n",
            {"goal": "{{prompt}}"},
        ),
        ("plan: str\n    goal: str", "def a(state):\n    return Command(update={'plan': 1})\n", {"goal": "{{prompt}}"}),
        # A model in a state, with what it must have.
        (
            "order: Order\n    registry: ToolRegistry | None\n    output_dir: str",
            "",
            {"order": {"wish": "{{prompt}}", "lines": [], "span": [1, 1], "tone": "example"}},
        ),
        # All of them are written by nodes: the first text, as well as any.
        ("plan: str", "def a(state):\n    return {'plan': 'x', 'done': 'y'}\n", {"plan": "{{prompt}}"}),
    ],
)
def test_the_field_of_a_state_that_takes_the_prompt(
    tmp_path: Path, state: str, nodes: str, expected: dict[str, Any]
) -> None:
    graph = (
        "from langgraph.graph import StateGraph\nfrom typing import Optional, TypedDict\n"
        "from pydantic import BaseModel\n"
        "class Order(BaseModel):\n    number_id: str = ''\n    wish: str\n    lines: list[Line]\n"
        "    span: tuple[int, int]\n    tone: str\n"
        f"class State(TypedDict):\n    {state}\n    done: str\n{nodes}"
        "graph = StateGraph(State).add_node('a').compile()\n"
    )
    assert only(tmp_path, {"bot.py": graph}).config["input"] == expected


@pytest.mark.parametrize(
    ("decorator", "is_agent"),
    [
        ("@traceable(run_type='chain')", True),
        ("@observe()", True),
        ("@retry(stop=stop_after_attempt(3))", True),
        ("@weave.op", True),
        ("@func.register_function(metadata={})", True),
        ("@lru_cache", True),
        ("@app.post('/ask')", False),
        ("@app.route('/ask', methods=['POST'])", False),
        ("@click.command()", False),
        ("@mcp.tool()", False),
        ("@bot.message_handler()", False),
        ("@cl.on_message", False),
        ("@pytest.fixture", False),
        ("@contextmanager", False),
    ],
)
def test_a_decorated_function_is_asked_unless_the_decorator_makes_something_else_of_it(
    tmp_path: Path, decorator: str, is_agent: bool
) -> None:
    source = (
        "import openai, weave, click, pytest, telebot\nimport chainlit as cl\nfrom functools import lru_cache\n"
        f"{decorator}\ndef answer(question):\n    return openai.responses.create(input=question)\n"
    )
    agents = [
        agent.config["callable"]
        for agent in agents_of(tmp_path / "a", {"bot.py": source})
        if agent.sign is Sign.FUNCTION
    ]
    assert agents == ["bot.py:answer"] * is_agent
    # One of any name, that the project calls.
    files = {
        "bot.py": source.replace("question", "lines"),
        "main.py": "from bot import answer\nprint(answer('Hi you'))\n",
    }
    agents = [agent.config["callable"] for agent in agents_of(tmp_path / "b", files) if agent.sign is Sign.FUNCTION]
    assert agents == ["bot.py:answer"] * is_agent


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ("goal: str\n    story: str\n    output_dir: str", "story"),
        ("goal: str\n    tale: Tale | None\n    saved: bool\n    output_dir: str", "tale"),
        ("goal: str\n    answer: str\n    story: str", "answer"),
    ],
)
def test_the_field_of_a_state_that_has_the_answer(tmp_path: Path, fields: str, output: str) -> None:
    graph = (
        "from langgraph.graph import StateGraph\nfrom typing import TypedDict\n"
        f"class State(TypedDict):\n    {fields}\n"
        "def a(state):\n    return {'story': tell(), 'tale': tell(), 'answer': '', 'saved': True}\n"
        "graph = StateGraph(State).add_node('a').compile()\n"
    )
    assert only(tmp_path, {"bot.py": graph}).config["output"] == output


def test_the_folder_that_an_agents_module_imports_from_is_written(tmp_path: Path) -> None:
    """`from core.clients import ask` finds what is in none of the folders in which Python looks by itself."""
    asks = "def answer(question):\n    return openai.responses.create(input=question)\n"
    files = {"pyproject.toml": "", "app/__init__.py": "", "app/core/__init__.py": "", "app/core/clients.py": ""}
    files["app/core/packs/default/bot.py"] = f"from core.clients import ask\nimport openai\nimport core\n{asks}"
    assert only(tmp_path / "a", files).config["path"] == ["app"]
    # The package that the file is in, and the project's own folder, are looked in by themselves.
    for name in ("app/bot.py", "app/core/bot.py"):
        own = {path: text for path, text in files.items() if path != "app/core/packs/default/bot.py"}
        source = f"from app.core.clients import ask\nfrom app import core\nimport openai\n{asks}"
        assert "path" not in only(tmp_path / name.replace("/", "-"), {**own, name: source}).config


def test_what_a_docstring_says_of_an_agent(tmp_path: Path) -> None:
    """Not what it says of parameters, nor what a function that makes an agent says of that."""
    asks = "import openai\ndef answer(question):\n    {}return openai.responses.create(input=question)\n"
    doc = "'''Sells tickets.\n\n    Args:\n        question: The wish.\n    '''\n    "
    assert only(tmp_path / "a", {"bot.py": asks.format(doc)}).instructions.strip() == "Sells tickets."
    makes = "from langgraph.graph import StateGraph\ndef build():\n    {}return StateGraph(dict).compile()\n"
    assert only(tmp_path / "b", {"bot.py": makes.format("'Compiles the workflow.'\n    ")}).instructions == ""


def test_projects_that_name_their_agents(tmp_path: Path) -> None:
    graph = (
        "from langgraph.prebuilt import create_react_agent\nasync def make():\n    return create_react_agent('m', [])\n"
    )
    files = {
        "one/langgraph.json": '{"graphs": {"agent": "./src/my/g.py:make", "gone": "./no.py:x", "js": "./a.ts:g"}}',
        "one/src/my/g.py": graph,
        "two/pyproject.toml": '[tool.agenteval.agents.shop]\nkind = "python"\ncallable = "bot:run"\n'
        "settings = {a = 1}\n",
        "two/bot.py": "def run(prompt):\n    return prompt\n",
        "three/cook/__init__.py": "from . import agent\n",
        "three/cook/agent.py": "from google.adk.agents import Agent\nfrom .sub import helper\n"
        "root_agent = Agent(name='cook', sub_agents=[helper])\n",
        "three/cook/sub.py": "from google.adk.agents import Agent\nhelper = Agent(name='helper')\n",
    }
    agents = {agent.file: agent for agent in agents_of(tmp_path, files)}
    assert list(agents)[:3] == ["two/pyproject.toml", "one/langgraph.json", "three/cook/agent.py"]
    assert agents["one/langgraph.json"].config == {"kind": "python", "callable": "src/my/g.py:make"}
    assert agents["one/langgraph.json"].folder == "one"
    assert agents["two/pyproject.toml"].config["settings"] == {"a": 1}
    assert agents["three/cook/agent.py"].sign is Sign.ROOT
    assert "one/src/my/g.py" not in agents  # once


@pytest.mark.parametrize(
    ("place", "folder", "target"),
    [
        ("desk/graph.py", "app", "desk.graph:make"),
        ("src/desk/graph.py", "app", "desk.graph:make"),
        ("packages/core/src/desk/graph.py", "app/packages/core", "src/desk/graph.py:make"),
    ],
)
def test_a_graph_that_is_named_by_its_module(tmp_path: Path, place: str, folder: str, target: str) -> None:
    files = {
        "app/langgraph.json": '{"graphs": {"lead": "desk.graph:make"}}',
        "app/pyproject.toml": '[tool.uv.workspace]\nmembers = ["**x", "../*", "/*", "", 7, "packages/*"]\n',
        "app/packages/core/pyproject.toml": "",
        f"app/{place}": "from langchain.agents import create_agent\ndef make():\n    return create_agent('m', [])\n",
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.name, agent.folder) == (Sign.CONFIGURED, "lead", folder)
    assert agent.config == {"kind": "python", "callable": target}


GRAPH_OF_NODE = """
const graph = { invoke: async ({ messages }) => ({ messages: [...messages, { content: CONTENT }] }) };
"""


@pytest.mark.sweep
@pytest.mark.parametrize(
    "export", ["export { graph };", "export const make = async () => graph;", "export default graph;"]
)
@pytest.mark.parametrize("content", ["'Hello ' + messages[0].content", "[], text: 'Hello ' + messages[0].content"])
def test_a_graph_of_langgraph_for_node_is_asked(tmp_path: Path, export: str, content: str) -> None:
    name = "default" if "default" in export else "make" if "make" in export else "graph"
    files = {
        "bot/package.json": '{"type": "module", "dependencies": {"@langchain/langgraph": "1"}}',
        "bot/langgraph.json": f'{{"graphs": {{"agent": "./src/shop/graph.mjs:{name}", "gone": "./no.ts:x"}}}}',
        "bot/src/shop/graph.mjs": GRAPH_OF_NODE.replace("CONTENT", content) + export,
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.framework, agent.name, agent.folder) == (Sign.CONFIGURED, "LangGraph", "shop", "bot")
    assert (agent.config["kind"], agent.config["capture"]) == ("command", "model")
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    assert agent.config["input"] == "json"
    asked = json.dumps({"messages": [{"role": "user", "content": "you"}]})
    done = subprocess.run(
        agent.config["command"], cwd=tmp_path / "bot", input=asked, capture_output=True, text=True, check=True
    )
    assert done.stdout == "Hello you\n"


def test_no_name_of_a_file_becomes_code(tmp_path: Path) -> None:
    file = """src/READ "ASKS's" AGENT.mjs"""
    graphs = {"graphs": {"agent": f"./{file}:graph"}}
    files = {
        "package.json": '{"type": "module", "dependencies": {"@langchain/langgraph": "1"}}',
        "langgraph.json": json.dumps(graphs),
        file: GRAPH_OF_NODE.replace("CONTENT", "'Hello'") + "export { graph };",
    }
    agent = only(tmp_path, files)
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    done = subprocess.run(
        agent.config["command"], cwd=tmp_path, input='{"messages": []}', capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("Hello\n", "")


def test_a_server_for_node_without_routes_that_are_known(tmp_path: Path) -> None:
    text = (
        "import Fastify from 'fastify';\nimport { run } from '@openai/agents';\n"
        "const app = Fastify();\nawait app.register(plugin);\nrun(agent, 'hi');\napp.listen({ port: 5050 });\n"
    )
    files = {"bot/package.json": '{"dependencies": {"@openai/agents": "1"}}', "bot/index.ts": text}
    assert [agent.config["url"] for agent in agents_of(tmp_path, files)] == ["http://127.0.0.1:5050/"]


def test_a_graph_in_typescript_is_run_by_tsx(tmp_path: Path) -> None:
    files = {"langgraph.json": '{"graphs": {"a": {"path": "./g.ts:graph"}}}', "g.ts": "export const graph = 1;"}
    assert only(tmp_path, files).config["command"][:3] == ["npx", "--yes", "tsx"]


def test_classes_that_wrap_an_agent_or_a_model(tmp_path: Path) -> None:
    code = (
        "from pydantic_ai import Agent\n"
        "class {name}:\n    def __init__(self{more}):\n        self.agent = Agent(name='a')\n"
        "    async def {method}(self, prompt):\n        return await self.agent.run(prompt)\n"
    )
    agent = only(tmp_path / "a", {"agent.py": code.format(name="Helper", more="", method="chat")})
    assert (agent.sign, agent.framework) == (Sign.FACTORY, "pydantic-ai")
    assert agent.config == {"kind": "python", "callable": "agent.py:Helper", "capture": "model"}
    sdk = (
        "from openai import OpenAI\nclass Bot:\n    client = OpenAI()\n    def __call__(self, text):\n"
        "        return self.client.responses.create(model='m', input=text).output_text\n"
    )
    assert only(tmp_path / "b", {"bot.py": sdk}).config["callable"] == "bot.py:Bot"
    others = [code.format(name="Helper", more=", key", method="chat"), code.format(name="H", more="", method="other")]
    others.append(code.format(name="_Helper", more="", method="chat"))
    for number, text in enumerate(others):
        assert agents_of(tmp_path / str(number), {"agent.py": text}) == [], text


def test_a_class_that_is_made_with_plain_values(tmp_path: Path) -> None:
    code = (
        "from anthropic import Anthropic\n"
        "class Agent:\n    def __init__(self, name: str, turns: int, tools: list | None = None{more}):\n"
        "        self.client = Anthropic()\n"
        "    def run(self, text):\n        return self.client.messages.create(model='m', messages=[text])\n"
    )
    agent = only(tmp_path / "a", {"desk.py": code.format(more="")})
    settings = {"name": "example", "turns": 1}
    assert agent.config == {"kind": "python", "callable": "desk.py:Agent", "capture": "model", "settings": settings}
    path, _ = write_first_suite(agent, tmp_path / "a")
    assert "# `name` in its settings is only an example: write what your agent needs there." in path.read_text()
    assert agents_of(tmp_path / "b", {"desk.py": code.format(more=", *, index: Index")}) == []
    # What the project itself makes of it is better known.
    main = "from desk import Agent\nagent = Agent('Ben', 3)\nprint(agent.run('Who are you?'))\n"
    agent = only(tmp_path / "c", {"desk.py": code.format(more=""), "main.py": main})
    assert (agent.sign, agent.config["settings"]) == (Sign.METHOD, {"name": "Ben", "turns": 3})


def test_a_method_that_gets_the_id_of_a_conversation(tmp_path: Path) -> None:
    desk = (
        "from openai import OpenAI\nclass Desk:\n    def __init__(self):\n        self.client = OpenAI()\n"
        "    async def stream(self, query, context_id):\n"
        "        yield self.client.responses.create(model='m', input=query, user=context_id)\n"
    )
    executor = (
        "from desk import Desk\nclass Executor:\n    def __init__(self):\n        self.agent = Desk()\n"
        "    async def execute(self, context, task):\n"
        "        async for item in self.agent.stream(context.get_user_input(), task.context_id):\n"
        "            print(item)\n"
    )
    agent = only(tmp_path, {"desk.py": desk, "executor.py": executor})
    assert (agent.sign, agent.config["callable"]) == (Sign.METHOD, "desk.py:Desk.stream")
    assert agent.config["input"] == {"query": "{{prompt}}", "context_id": "{{run}}"}
    assert agent.variables == {}


@pytest.mark.parametrize(
    ("imported", "is_program"),
    [
        ("from mcp import ClientSession\nfrom mcp.client.stdio import stdio_client", True),
        ("from mcp.server.fastmcp import FastMCP", False),
        ("import mcp.server", False),
    ],
)
def test_a_client_of_mcp_is_a_program_and_a_server_is_none(tmp_path: Path, imported: str, is_program: bool) -> None:
    code = (
        f"import httpx2\n{imported}\n"
        "def main():\n"
        "    print(httpx2.post('https://api.groq.com/openai/v1/chat/completions', json={'messages': input()}))\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    programs = [agent for agent in agents_of(tmp_path, {"chat.py": code}) if agent.sign is Sign.PROGRAM]
    assert [agent.framework for agent in programs] == ["httpx2"] * is_program


def test_crews_get_the_inputs_of_their_project(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "src/trip/crew.py": "from crewai import Agent, Crew\nfrom crewai.project import CrewBase, crew\n"
        "@CrewBase\nclass TripCrew:\n    @crew\n    def crew(self) -> Crew:\n        return Crew()\n",
        "src/trip/main.py": "from trip.crew import TripCrew\ndef run():\n"
        "    inputs = {'city': 'Oslo', 'days': 3, 'x': y}\n"
        "    TripCrew().crew().kickoff(inputs=inputs)\n",
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.name, agent.variables) == (Sign.CLASS, "trip-crew", {"city": "Oslo", "days": 3})
    _, suite = write_first_suite(agent, tmp_path)
    assert suite.suite is not None
    assert suite.suite.tests[0].variables == {"city": "Oslo", "days": 3}


def test_routes_that_take_a_message(tmp_path: Path) -> None:
    fast = (
        "from fastapi import FastAPI\nfrom pydantic import BaseModel\napp = FastAPI()\n"
        "class Ask(BaseModel):\n    user: int\n    question: str\n    top_k: int = 3\n"
        "class Reply(BaseModel):\n    answer: str\n"
        "@app.post('/v1/ask', response_model=Reply)\nasync def ask(body: Ask): ...\n"
        "@app.post('/upload')\nasync def upload(body: File): ...\n@app.get('/chat')\ndef page(): ...\n"
    )
    agent = only(tmp_path / "a", {"src/app/__init__.py": "", "src/app/main.py": fast, "pyproject.toml": ""})
    assert agent.config == {
        "kind": "http",
        "url": "http://127.0.0.1:8000/v1/ask",
        "body": {"user": 1, "question": "{{ prompt }}"},
        "answer": "answer",
    }
    command = agent.services["server"]["command"]
    assert command[1:] == ["-m", "uvicorn", "app.main:app", "--port", "8000", "--app-dir", "src"]
    flask = (
        "from flask import Flask, request, jsonify\napp = Flask(__name__)\n"
        "@app.route('/chat', methods=['POST'])\ndef chat():\n    data = request.get_json()\n"
        "    return jsonify({'reply': think(data['message'])})\n"
        "if __name__ == '__main__':\n    app.run(port=5055)\n"
    )
    agent = only(tmp_path / "b", {"server.py": flask})
    assert (agent.config["url"], agent.config["body"], agent.config["answer"]) == (
        "http://127.0.0.1:5055/chat",
        {"message": "{{ prompt }}"},
        "reply",
    )


def test_routes_of_routers_that_an_app_includes(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "app/__init__.py": "",
        "app/main.py": "from fastapi import FastAPI\nfrom app.api import chat, router as api\n"
        "from app.late import late\n"
        "app = FastAPI()\napp.include_router(api, prefix='/api')\napp.include_router(late, prefix=settings.PREFIX)\n",
        "app/api/__init__.py": "from fastapi import APIRouter\nfrom . import chat\nV1 = '/v1'\n"
        "router = APIRouter(prefix=V1)\nrouter.include_router(chat.router)\n",
        "app/api/chat.py": "from fastapi import APIRouter\nfrom pydantic import BaseModel\n"
        "class Ask(BaseModel):\n    message: str\nrouter = r = APIRouter(prefix='/chat')\n"
        "other = APIRouter()\n"
        "@r.post('/ask')\nasync def ask(body: Ask): ...\n@other.post('/never')\nasync def never(body: Ask): ...\n",
        "app/late.py": "from fastapi import APIRouter\nfrom app.api.chat import Ask\nlate = APIRouter()\n"
        "@late.post('/late')\nasync def ask(body: Ask): ...\n",
    }
    agent = only(tmp_path, files)
    assert agent.config["url"] == "http://127.0.0.1:8000/api/v1/chat/ask"
    assert agent.config["body"] == {"message": "{{ prompt }}"}
    assert agent.file == "app/api/chat.py"
    assert "app.main:app" in agent.services["server"]["command"]


@pytest.mark.parametrize(
    "settings",
    [
        "class Settings(BaseSettings):\n    PREFIX: str = '/api'\n",
        "class Settings(BaseSettings):\n    PREFIX: str = Field(default='/api', description='where')\n",
        "class Settings:\n    def __init__(self):\n        self.PREFIX = os.getenv('PREFIX', '/api')\n",
        "class Settings:\n    PREFIX = os.environ.get('PREFIX', '/api')\n",
    ],
)
def test_routes_below_a_prefix_of_the_settings(tmp_path: Path, settings: str) -> None:
    files = {
        "config.py": settings + "settings = Settings()\n",
        "main.py": "from fastapi import FastAPI\nfrom config import settings\nfrom chat import router\n"
        "app = FastAPI()\napp.include_router(router, prefix=settings.PREFIX)\n",
        "chat.py": "from fastapi import APIRouter\nfrom pydantic import BaseModel\nrouter = APIRouter()\n"
        "class Ask(BaseModel):\n    message: str\n@router.post('/ask')\nasync def ask(body: Ask): ...\n",
    }
    assert only(tmp_path, files).config["url"] == "http://127.0.0.1:8000/api/ask"
    files["config.py"] = files["config.py"].replace("'/api'", "where()")
    assert agents_of(tmp_path / "b", files) == []


@pytest.mark.parametrize("package", ["flask", "quart"])
def test_routes_of_blueprints_and_of_apps_that_a_function_makes(tmp_path: Path, package: str) -> None:
    name = package.title()
    files = {
        "src/shop/__init__.py": f"from {package} import {name}\ndef create_app(config=None):\n"
        f"    app = {name}(__name__)\n    from . import chat\n    app.register_blueprint(chat.bp)\n"
        "    app.register_blueprint(chat.old, url_prefix='/v1')\n"
        "    @app.post('/ask')\n    def ask():\n        return {'answer': request.json['question']}\n"
        "    return app\n",
        "src/shop/chat.py": f"from {package} import Blueprint, request\n"
        "bp = Blueprint('chat', __name__, url_prefix='/chat')\nold = Blueprint('old', __name__, url_prefix='/old')\n"
        "@bp.post('/now')\nasync def now():\n    return (await request.get_json())['message']\n"
        "@old.route('/then', methods=['POST'])\ndef then():\n    return request.get_json()['message']\n",
        # A server can't make it, and this one is not what the function returns.
        "other.py": f"from {package} import {name}\ndef create_app(config):\n    app = {name}(__name__)\n"
        "    @app.post('/never')\n    def never():\n        return request.json['question']\n    return app\n",
        "another.py": f"from {package} import {name}\ndef run():\n    app = {name}(__name__)\n"
        "    @app.post('/never')\n    def never():\n        return request.json['question']\n    app.run()\n",
    }
    agents = agents_of(tmp_path, files)
    base = "http://127.0.0.1:5000"
    assert {agent.config["url"] for agent in agents} == {f"{base}/ask", f"{base}/chat/now", f"{base}/v1/then"}
    for agent in agents:
        assert agent.services["server"]["command"][1:5] == ["-m", package, "--app", "src/shop/__init__.py:create_app"]


def test_an_app_of_fastapi_that_a_function_makes(tmp_path: Path) -> None:
    files = {
        "main.py": "from fastapi import FastAPI\nfrom api import router\ndef build():\n    app = FastAPI()\n"
        "    app.include_router(router, prefix='/v1')\n    return app\n",
        "api.py": "from fastapi import APIRouter\nfrom pydantic import BaseModel\nrouter = APIRouter(prefix='/chat')\n"
        "class Ask(BaseModel):\n    message: str\n@router.post('/ask')\nasync def ask(body: Ask): ...\n",
    }
    agent = only(tmp_path, files)
    assert agent.config["url"] == "http://127.0.0.1:8000/v1/chat/ask"
    assert agent.services["server"]["command"][1:] == ["-m", "uvicorn", "main:build", "--port", "8000", "--factory"]


def test_programs_of_node(tmp_path: Path) -> None:
    files = {
        "package.json": '{"scripts": {"dev": "tsx watch src/server.ts", "chat": "npx tsx src/chat.ts"},'
        ' "dependencies": {"ai": "5", "express": "4"}, "devDependencies": {"tsx": "4"}}',
        "src/chat.ts": "import { generateText, tool } from 'ai';\nasync function main() {\n"
        "  await generateText({ model, system: 'You sell pans.', prompt: 'Which pan is best?' });\n}\nmain();\n",
        "src/server.ts": "import express from 'express';\nimport { streamText } from 'ai';\nconst app = express();\n"
        "app.post('/api', (req, res) => { const { message } = req.body; streamText({ model, prompt: message }); });\n"
        "app.listen(8080);\n",
        "src/parts.ts": "import { streamText } from 'ai';\nexport const ask = () => streamText({});\n",
        "node_modules/x/index.js": "require('openai'); main();\n",
    }
    agents = {agent.sign: agent for agent in agents_of(tmp_path, files)}
    assert set(agents) == {Sign.ROUTE, Sign.SCRIPT}
    assert agents[Sign.ROUTE].config["url"] == "http://127.0.0.1:8080/api"
    assert agents[Sign.ROUTE].config["body"] == {"message": "{{ prompt }}"}
    script = agents[Sign.SCRIPT]
    assert (script.config["command"], script.config["capture"]) == (["tsx", "src/chat.ts"], "model")
    assert (script.instructions, script.prompts) == ("You sell pans.", ("Which pan is best?",))


@pytest.mark.parametrize(
    ("line", "installed", "command"),
    [
        (
            "node --env-file=.env --import tsx ./ask.ts",
            "tsx",
            ["node", "--env-file=.env", "--import", "tsx", "./ask.ts"],
        ),
        ("NODE_ENV=dev npx tsx watch ask.ts | pino-pretty", "tsx", ["tsx", "ask.ts"]),
        ("dotenv -e .env -- ts-node -r x ask.ts", "ts-node", ["ts-node", "-r", "x", "ask.ts"]),
        ("tsx ask.ts", "", ["npx", "--yes", "tsx", "ask.ts"]),  # in a workspace that is not installed, say
        ("bun run --watch ask.ts", "tsx", ["tsx", "ask.ts"]),
        ("tsx 'ask.ts", "tsx", ["tsx", "ask.ts"]),  # no script that can be read: the source is run
        ("tsc && node dist/ask.js", "", ["npx", "--yes", "tsx", "ask.ts"]),
    ],
)
def test_a_script_of_a_package_is_run_as_the_package_says(
    tmp_path: Path, line: str, installed: str, command: list[str]
) -> None:
    package = {
        "dependencies": {"ai": "5"},
        "scripts": {"ask": line},
        "devDependencies": dict.fromkeys([installed], "1"),
    }
    text = "import { generateText } from 'ai';\nawait generateText({ model });\n"
    assert only(tmp_path, {"package.json": json.dumps(package), "ask.ts": text}).config["command"] == command


def test_a_program_that_the_whole_workspace_has_is_not_fetched(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "node_modules" / ".bin").mkdir(parents=True)
    executable(tmp_path / "node_modules" / ".bin" / "tsx", "#!/bin/sh\n")
    text = "import { generateText } from 'ai';\nawait generateText({ model });\n"
    files = {"package.json": '{"dependencies": {"ai": "5"}}', "ask.ts": text}
    assert only(tmp_path / "apps" / "bot", files).config["command"] == ["tsx", "ask.ts"]


def test_the_route_that_takes_a_message_and_routes_by_place(tmp_path: Path) -> None:
    package = (
        '{{"dependencies": {{"ai": "5", "{0}": "1"}}, "scripts": {{"dev": "tsx s.ts"}},'
        ' "devDependencies": {{"tsx": "4"}}}}'
    )
    server = (
        "import { streamText } from 'ai';\nconst app = express();\n"
        "app.post('/', (req, res) => { streamText({ model, prompt }); });\n"
        "app.post('/chat', (request, response) => {\n"
        "  pipeAgentUIStreamToResponse({ agent, uiMessages: request.body.messages, response });\n});\n"
        "app.get('/messages', (req, res) => { req.body.messages });\napp.listen(8080);\n"
    )
    agent = only(tmp_path / "a", {"package.json": package.format("express"), "s.ts": server})
    assert agent.config["url"] == "http://127.0.0.1:8080/chat"
    assert agent.config["body"]["messages"][0]["parts"] == [{"type": "text", "text": "{{ prompt }}"}]
    assert agent.config["stream"] == "sse"
    nuxt = (
        "import { streamText } from 'ai';\nexport default defineLazyEventHandler(async () => {\n"
        "  return defineEventHandler(async event => {\n    const { messages } = await readBody(event);\n"
        "    return streamText({ model, messages }).toUIMessageStreamResponse();\n  });\n});\n"
    )
    agent = only(tmp_path / "b", {"package.json": package.format("nuxt"), "server/api/chat.ts": nuxt})
    assert agent.config["url"] == "http://127.0.0.1:3000/api/chat"
    assert agent.services["server"]["command"][:2] == ["nuxt", "dev"]
    svelte = (
        "import { streamText } from 'ai';\nexport const POST = async ({ request }) => {\n"
        "  const { messages } = await request.json();\n  return streamText({ model, messages });\n};\n"
    )
    path = "src/routes/api/chat/+server.ts"
    agent = only(tmp_path / "c", {"package.json": package.format("@sveltejs/kit"), path: svelte})
    assert agent.config["url"] == "http://127.0.0.1:5173/api/chat"
    assert agent.config["body"] == {"messages": "{{ messages }}"}


def test_of_several_routes_that_takes_the_prompt_whose_key_says_so(tmp_path: Path) -> None:
    server = (
        "import { run } from '@openai/agents';\nconst app = express();\n"
        "app.post('/reset', (_req, res) => { res.json(fresh()); });\n"
        "app.post('/approve', (req, res) => { approve(Boolean(req.body?.approved)); });\n"
        "app.post('/convene', async (req, res) => {\n  const wish = req.body?.reviewRequest;\n"
        "  await run(chief, wish);\n});\n"
        "app.listen(3001);\n"
    )
    package = '{"dependencies": {"@openai/agents": "1", "express": "5"}, "scripts": {"dev": "tsx s.ts"}}'
    agent = only(tmp_path, {"package.json": package, "s.ts": server})
    assert agent.config["url"] == "http://127.0.0.1:3001/convene"
    assert agent.config["body"] == {"reviewRequest": "{{ prompt }}"}


def test_an_address_that_traces_go_to_is_no_model_server(tmp_path: Path) -> None:
    text = "OPENAI_MODEL=gpt\nPHOENIX_COLLECTOR_ENDPOINT=http://localhost:6006\nQDRANT_BASE_URL=http://localhost:6333\n"
    assert agents_of(tmp_path, {".env.example": text}) == []


@pytest.mark.parametrize("provider", ["", "ollama:"])
def test_a_model_server_without_its_key(tmp_path: Path, provider: str) -> None:
    text = "OPENAI_API_KEY=sk-not-to-be-seen\nOPENAI_BASE_URL=http://localhost:11434/v1\n"
    text += f"OPENAI_MODEL={provider}qwen3:8b\n"
    agent = only(tmp_path, {".env": text})
    assert agent.config == {"kind": "openai", "base_url": "http://localhost:11434/v1", "model": "qwen3:8b"}
    assert "sk-not" not in repr(agent)


def test_nothing_is_run_or_followed(tmp_path: Path) -> None:
    outside = project(tmp_path / "outside", {"bot.py": OBJECTS["pydantic-ai"]})
    here = project(
        tmp_path / "here",
        {
            "loud.py": "from pydantic_ai import Agent\nraise SystemExit('it ran')\n",
            ".venv/lib/bot.py": OBJECTS["pydantic-ai"],
            "myenv/pyvenv.cfg": "",
            "myenv/bot.py": OBJECTS["pydantic-ai"],
            "tests/test_bot.py": OBJECTS["pydantic-ai"],
            "broken.py": "from pydantic_ai import Agent\nx = Agent(\n",
            "nul.py": "from pydantic_ai import Agent\0\n",
        },
    )
    (here / "link").symlink_to(outside)
    (here / "link.py").symlink_to(outside / "bot.py")
    (here / "loop").symlink_to(here)
    before = set(sys.modules)
    assert find_agents(here).agents == ()
    assert not {name for name in set(sys.modules) - before if name.startswith(("loud", "pydantic_ai"))}


def test_templates_of_a_generator_of_projects_are_passed_over(tmp_path: Path) -> None:
    code = "from pydantic_ai import Agent\nagent = Agent('m', name='shop')\n"
    files = {"templates/{{cookiecutter.name}}/agent.py": code, "shop/agent.py": code}
    assert [agent.file for agent in agents_of(tmp_path, files)] == ["shop/agent.py"]


def test_a_search_ends(tmp_path: Path) -> None:
    findings = find_agents(project(tmp_path, {"bot.py": OBJECTS["pydantic-ai"]}), seconds=-1)
    assert (findings.agents, findings.reason) == ((), "time")
    deep = "x = " + "(" * 150 + ")" * 150
    assert agents_of(tmp_path / "b", {"bot.py": f"from pydantic_ai import Agent\nx = Agent\n{deep}\n"}) == []
    cycle = {"bot.py": "from pydantic_ai import Agent\nfrom other import x\nx = x\n", "other.py": "from bot import x\n"}
    assert agents_of(tmp_path / "c", cycle) == []


@pytest.mark.parametrize("prompt", ["{{ boom }} now", "pay ${HOME} now", "a: b # c", "\x1b[31m red one", "% yes: [no"])
def test_any_text_makes_a_right_suite(tmp_path: Path, prompt: str) -> None:
    text = f"from pydantic_ai import Agent\nx = Agent(system_prompt={prompt!r})\nx({prompt!r})\n"
    agent = only(tmp_path, {"bot.py": text})
    path, suite = write_first_suite(agent, tmp_path)
    assert [problem.message for problem in suite.problems] == []
    assert "\x1b" not in path.read_text("utf-8")


def names(agents: Any) -> list[str]:
    return [agent.name for agent in agents]


def test_each_name_is_there_once(tmp_path: Path) -> None:
    agents = agents_of(tmp_path, {f"{folder}/bot.py": OBJECTS["pydantic-ai"] for folder in "abc"})
    assert names(agents) == ["x", "x-2", "x-3"]


def test_equal_names_in_several_projects_say_which(tmp_path: Path) -> None:
    files = {f"cookbook/{folder}/requirements.txt": "" for folder in ("search", "chat")}
    files |= {f"cookbook/{folder}/bot.py": OBJECTS["pydantic-ai"] for folder in ("search", "chat")}
    assert names(agents_of(tmp_path, files)) == ["chat-x", "search-x"]


FLOW = {
    "requirements.txt": "",
    "utils.py": "from openai import OpenAI\ndef call_llm(prompt):\n"
    "    return OpenAI().chat.completions.create(messages=[{'content': prompt}]).choices[0].message.content\n"
    "if __name__ == '__main__':\n    print(call_llm('Who are you?'))\n",
    "nodes.py": "from utils import call_llm\nclass Decide:\n    def exec(self, question): return call_llm(question)\n",
    "flow.py": "from nodes import Decide\ndef make_flow(): return Decide()\n",
    "other.py": "def main(): print('no model here')\nif __name__ == '__main__':\n    main()\n",
}


def test_a_program_that_asks_through_its_other_modules(tmp_path: Path) -> None:
    main = (
        "import sys\nfrom flow import make_flow\ndef main():\n    question = 'Who won?'\n"
        "    for arg in sys.argv[1:]:\n        if arg.startswith('--'):\n            question = arg[2:]\n"
        "    print(make_flow().exec(question))\nif __name__ == '__main__':\n    main()\n"
    )
    readme = 'Run it:\n\n    python main.py --"What is rain?"\n'
    program, function = agents_of(tmp_path, {**FLOW, "main.py": main, "README.md": readme})
    assert (program.sign, program.file, program.framework) == (Sign.PROGRAM, "main.py", "OpenAI SDK")
    assert program.config["command"] == ["python3", "main.py", "--{{prompt}}"]
    assert program.prompts[0] == "What is rain?"
    assert (function.sign, function.file, function.is_part) == (Sign.FUNCTION, "utils.py", True)


def test_a_program_whose_model_is_chosen_by_name(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "src/mini/__init__.py": "",
        "src/mini/models/__init__.py": "import importlib\nCLASSES = {'m': 'mini.models.litellm_model.LitellmModel'}\n"
        "def get_model(name):\n    return importlib.import_module(CLASSES[name])\n",
        "src/mini/models/litellm_model.py": "import litellm\nclass LitellmModel:\n"
        "    def query(self, messages): return litellm.completion(messages=messages)\n",
        "src/mini/run.py": '"""The simplest example of bindings."""\n'
        "import typer\nfrom mini.models import get_model\napp = typer.Typer()\n@app.command()\n"
        "def main(task: str = typer.Option(None, '-t', '--task')): print(get_model('m'))\n"
        "if __name__ == '__main__':\n    app()\n",
    }
    agent = only(tmp_path, files)
    assert (agent.framework, agent.name) == ("LiteLLM", "mini")
    assert agent.config["command"] == ["python3", "-m", "mini.run", "--task={{prompt}}"]
    assert agent.instructions == "", "what a script says of itself is nothing that its model is told"


def test_a_program_whose_model_the_package_of_another_module_imports(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "deep/__init__.py": "from .llm import Remote\n",
        "deep/llm/__init__.py": "from .remote import Remote\n",
        "deep/llm/base.py": "class BaseLLM: ...\n",
        "deep/llm/remote.py": "import openai\nfrom .base import BaseLLM\nclass Remote(BaseLLM):\n"
        "    def chat(self, messages): return openai.OpenAI().chat.completions.create(messages=messages)\n",
        "deep/main.py": "import argparse\nfrom deep.llm.base import BaseLLM\nP = argparse.ArgumentParser()\n"
        "P.add_argument('--query')\nif __name__ == '__main__':\n    print(P.parse_args())\n",
        # In its own package, a program needs not all that the package imports.
        "deep/tidy.py": "from deep import log\nif __name__ == '__main__':\n    print(log)\n",
        "deep/log.py": "",
    }
    agent = only(tmp_path, files)
    assert (agent.file, agent.framework) == ("deep/main.py", "OpenAI SDK")
    assert agent.config["command"] == ["python3", "-m", "deep.main", "--query={{prompt}}"]


CLICK = (
    "import click\nfrom .flow import make_flow\n@click.command()\n@click.argument('words')\n"
    "def main(words): print(make_flow().exec(words))\n"
)
ARGPARSE = (
    "import argparse\ndef get_parser():\n    p = argparse.ArgumentParser()\n    p.add_argument('files', nargs='*')\n"
    "    p.add_argument('--read', metavar='FILE')\n    p.add_argument('-m', '--message')\n    return p\n"
)
ARGPARSE_MAIN = (
    "import sys\nfrom tool.args import get_parser\nfrom tool.flow import make_flow\n"
    "def main():\n    import uvicorn\n    print(make_flow().exec(get_parser().parse_args(sys.argv[1:]).message))\n"
    "if __name__ == '__main__':\n    main()\n"
)
TOOL = {
    "src/tool/__init__.py": "",
    "src/tool/llm.py": "from openai import OpenAI\nCLIENT = OpenAI()\n",
    "src/tool/flow.py": "import requests\nfrom . import llm\nURL = 'http://127.0.0.1:11434/api/chat'\nclass Flow:\n"
    "    def exec(self, text): return llm.CLIENT.chat.completions.create(messages=text)\n"
    "def make_flow(): return Flow()\n",
    "src/tool/__main__.py": "from tool.main import main\nif __name__ == '__main__':\n    main()\n",
    "src/tool/db.py": "import sqlite3\ndef main(): sqlite3.connect('tool.db')\n",
}


@pytest.mark.parametrize(("main", "words"), [(CLICK, ["--", "{{prompt}}"]), (ARGPARSE_MAIN, ["--message={{prompt}}"])])
@pytest.mark.parametrize("name", ["tool", "tool-chat"])
def test_a_command_that_a_project_installs(tmp_path: Path, name: str, main: str, words: list[str]) -> None:
    scripts = '[project.scripts]\ntool-db = "tool.db:main"\ntool = "tool.main:main"\n'
    files = {**TOOL, "src/tool/main.py": main, "src/tool/args.py": ARGPARSE}
    files["pyproject.toml"] = f'[project]\nname = "{name}"\n{scripts}'
    agent = only(tmp_path, files)
    assert (agent.sign, agent.place, agent.source) == (Sign.SCRIPT, "pyproject.toml:5", 'tool = "tool.main:main"')
    assert (agent.name, agent.framework, agent.folder) == ("tool", "OpenAI SDK", "")
    assert agent.config["command"] == ["tool", *words]
    project(tmp_path, {".venv/pyvenv.cfg": "", ".venv/bin/tool": ""})
    assert only(tmp_path, files).config["command"] == [".venv/bin/tool", *words]


SETUP = 'from setuptools import setup\nNAME = "tool"\nsetup(name=NAME, {}, package_dir={{"": "src"}})\n'


@pytest.mark.parametrize(
    ("file", "text", "line", "source"),
    [
        (
            "setup.py",
            SETUP.format('entry_points={"console_scripts": ["tool-db = tool.db:main", "tool=tool.main:main [cli]"]}'),
            3,
            "tool=tool.main:main [cli]",
        ),
        (
            "setup.py",
            SETUP.format("entry_points=dict(console_scripts=COMMANDS)").replace(
                "setup(", "COMMANDS = [\n    'tool = tool.main:main',\n]\nsetup("
            ),
            4,
            "tool = tool.main:main",
        ),
        (
            "setup.py",
            SETUP.format('entry_points="""\n[console_scripts]\ntool-db=tool.db:main\ntool=tool.main:main\n"""'),
            6,
            "tool=tool.main:main",
        ),
        (
            "setup.cfg",
            "[metadata]\nname = tool\n[options.entry_points]\nconsole_scripts =\n    # both\n"
            "    tool-db = tool.db:main\n    tool = tool.main:main\n[flake8]\nignore = %E501\n",
            7,
            "tool = tool.main:main",
        ),
        (
            "pyproject.toml",
            '[tool.flit.metadata]\ndist-name = "tool"\n[tool.flit.scripts]\ntool="tool.main:main"\n',
            4,
            'tool="tool.main:main"',
        ),
    ],
)
def test_a_command_that_a_setup_file_installs(tmp_path: Path, file: str, text: str, line: int, source: str) -> None:
    agent = only(tmp_path, {**TOOL, "src/tool/main.py": CLICK, file: text})
    assert (agent.sign, agent.place, agent.source) == (Sign.SCRIPT, f"{file}:{line}", source)
    assert (agent.name, agent.folder) == ("tool", "")
    assert agent.config["command"] == ["tool", "--", "{{prompt}}"]


MANAGED = """
from django.core.management.base import BaseCommand
from shop.bot import reply

class Command(BaseCommand):
    def add_arguments(self, parser):
        parser.add_argument("--question", required=True)
        parser.add_argument("--shop", default="main")

    def handle(self, *args, **options):
        self.stdout.write(reply(options["question"], options["shop"]))
"""
REPLIES = "from openai import OpenAI\ndef reply(question, shop):\n    r = OpenAI().responses.create(input=question)\n"


@pytest.mark.parametrize("home", ["", "web/"])
@pytest.mark.parametrize("asks_itself", [False, True])
def test_a_command_of_django_that_asks_a_model(tmp_path: Path, home: str, asks_itself: bool) -> None:
    command = MANAGED.replace("from shop.bot import reply\n", REPLIES) if asks_itself else MANAGED
    files = {
        "pyproject.toml": "",
        f"{home}manage.py": "import os\nif __name__ == '__main__':\n    os.environ\n",
        f"{home}shop/__init__.py": "",
        f"{home}shop/bot.py": REPLIES + "    return r.output_text\n",
        f"{home}shop/management/commands/ask_shop.py": command,
        f"{home}shop/management/commands/_base.py": command,
        f"{home}shop/management/commands/sum_up.py": command.replace("--question", "--shop-id"),
    }
    if asks_itself:
        del files[f"{home}shop/bot.py"]
    agent = only(tmp_path, files)
    assert (agent.sign, agent.framework) == (Sign.PROGRAM, "OpenAI SDK")
    assert agent.config["command"] == ["python3", f"{home}manage.py", "ask_shop", "--question={{prompt}}"]
    assert (agent.line, agent.source) == (command[: command.index("class Command")].count("\n") + 1, "class Command")


@pytest.mark.parametrize(
    ("guard", "installed", "command"),
    [
        ("", False, ["tool"]),
        ("", True, [".venv/bin/tool"]),
        ("if __name__ == '__main__':\n    main()\n", False, [".venv/bin/python", "-m", "tool.main"]),
        ("if __name__ == '__main__':\n    main()\n", True, [".venv/bin/tool"]),
    ],
)
def test_a_command_that_is_not_installed(tmp_path: Path, guard: str, installed: bool, command: list[str]) -> None:
    files = {
        **TOOL,
        "src/tool/main.py": CLICK + guard,
        "pyproject.toml": '[project]\nname = "tool"\n[project.scripts]\ntool = "tool.main:main"\n',
        ".venv/pyvenv.cfg": "",
        **({".venv/bin/tool": ""} if installed else {}),
    }
    flat = {name.removeprefix("src/"): text for name, text in files.items()}
    assert only(tmp_path / "flat", flat).config["command"] == [*command, "--", "{{prompt}}"]
    # What is in `src` is imported only where it is installed.
    in_src = [".venv/bin/tool"] if installed else ["tool"]
    assert only(tmp_path / "src", files).config["command"] == [*in_src, "--", "{{prompt}}"]


@pytest.mark.parametrize(
    "text",
    [
        'P = {"console_scripts": P}\nsetup(entry_points=P)\n',
        "P = dict(console_scripts=Q)\nQ = P\nsetup(entry_points=Q)\n",
        "setup(",
        "import setuptools\nsetuptools.setup(**read())\n",
        "x = 1\n",
        "setup(entry_points=POINTS)\n",
    ],
)
@pytest.mark.parametrize("file", ["setup.py", "setup.cfg"])
def test_a_setup_file_that_says_nothing_of_commands(tmp_path: Path, file: str, text: str) -> None:
    agents = agents_of(tmp_path, {**TOOL, "src/tool/main.py": CLICK, file: text})
    assert [agent.sign for agent in agents] == [Sign.PROGRAM]


@pytest.mark.parametrize("text", ["x = " + "[" * 100_000, "[project", "x = '\udcff'"], ids=["deep", "cut", "no text"])
def test_a_project_file_that_can_not_be_read_hides_no_agent(tmp_path: Path, text: str) -> None:
    files = {"bot.py": "from pydantic_ai import Agent\nbot = Agent('m')\n", "pyproject.toml": ""}
    project(tmp_path, files)
    (tmp_path / "pyproject.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    assert [agent.config["callable"] for agent in find_agents(tmp_path).agents] == ["bot.py:bot"]


def test_the_commands_of_a_poetry_project(tmp_path: Path) -> None:
    scripts = 'serve = "tool.server:main"\nask = "tool.ask:main"\nsum = "tool.sum:main"\nbad = {callable = "x:y"}\n'
    files = {
        **TOOL,
        "pyproject.toml": f'[tool.poetry]\nname = "shop"\n[tool.poetry.scripts]\n{scripts}none = "gone:main"\n',
        "src/tool/ask.py": CLICK.replace("'words'", "'question'"),
        "src/tool/sum.py": CLICK,  # of several commands, one that takes something else
        "src/tool/server.py": "import uvicorn\nfrom . import llm\ndef main(): uvicorn.run(llm)\n",
    }
    agents = agents_of(tmp_path, files)
    assert [agent.name for agent in agents if agent.sign is Sign.SCRIPT] == ["ask"]


def test_a_program_that_another_one_imports_is_a_part_of_it(tmp_path: Path) -> None:
    llm = f"{ASKS}if __name__ == '__main__':\n    ask('Who are you?')\n"
    main = "import llm\nif __name__ == '__main__':\n    print(llm.ask(input()))\n"
    agents = agents_of(tmp_path, {"pyproject.toml": "", "llm.py": llm, "main.py": main})
    assert [(agent.file, agent.is_part) for agent in agents] == [("main.py", False), ("llm.py", True)]


@pytest.mark.parametrize("imported", ["fastapi", "google.oauth2", "openai"])
def test_a_method_is_an_agent_only_where_a_model_can_be_asked(tmp_path: Path, imported: str) -> None:
    desk = f"import {imported}\nclass Mails:\n    def __init__(self, client): self.client = client\n"
    desk += "    def recent(self, query): return self.client.messages.create(query)\n"
    files = {"mails.py": desk, "main.py": "from mails import Mails\nmails = Mails(None)\nprint(mails.recent('new'))\n"}
    assert [agent.sign for agent in agents_of(tmp_path, files)] == [Sign.METHOD] * (imported == "openai")


@pytest.mark.parametrize("method", ["predict", "invoke", "stream", "astream"])
def test_a_program_that_asks_a_model_of_langchain(tmp_path: Path, method: str) -> None:
    code = "import argparse\nfrom langchain_openai import ChatOpenAI\ndef main():\n    P = argparse.ArgumentParser()\n"
    code += f"    P.add_argument('query_text')\n    print(ChatOpenAI().{method}(P.parse_args().query_text))\n"
    agent = only(tmp_path, {"query.py": f"{code}if __name__ == '__main__':\n    main()\n"})
    assert (agent.sign, agent.framework) == (Sign.PROGRAM, "LangChain")
    assert agent.config["command"] == ["python3", "query.py", "--", "{{prompt}}"]


@pytest.mark.parametrize(
    "main",
    [
        "import uvicorn\nfrom flow import make_flow\nif __name__ == '__main__':\n    uvicorn.run(make_flow)\n",
        "from flow import make_flow\nprint(make_flow())\n",  # no program
        "from flow import make_flow\nfrom chat import Bot\nif __name__ == '__main__':\n    Bot(make_flow()).run()\n",
        "from bot import x\nfrom flow import make_flow\nif __name__ == '__main__':\n    print(x('Rain?'))\n",
    ],
)
def test_a_program_that_serves_or_whose_agent_is_there_is_none(tmp_path: Path, main: str) -> None:
    chat = "from telegram.ext import ApplicationBuilder\nclass Bot:\n    def run(self): ...\n"
    files = {**FLOW, "main.py": main, "chat.py": chat, "bot.py": f"{OBJECTS['pydantic-ai']}x.run('Rain?')\n"}
    assert Sign.PROGRAM not in [agent.sign for agent in agents_of(tmp_path, files)]


def test_a_route_of_next_whose_agent_is_elsewhere(tmp_path: Path) -> None:
    files = {
        "package.json": '{"dependencies": {"ai": "3", "next": "14"}}',
        "app/api/chat/route.ts": "import { Message } from 'ai';\nimport { engine } from './engine';\n"
        "export async function POST(request) {\n  const body = await request.json();\n"
        "  const { messages, data }: { messages: Message[] } = body;\n  return engine.chat(messages);\n}\n",
        "app/api/other/route.ts": "import { Message } from 'ai';\nexport async function POST() {}\n",
    }
    agent = only(tmp_path, files)
    assert (agent.place, agent.config["url"]) == ("app/api/chat/route.ts:3", "http://127.0.0.1:3000/api/chat")
    assert agent.config["body"] == {"messages": "{{ messages }}"}


@pytest.mark.parametrize(
    ("docstring", "line"),
    [
        ("Looks an order up and\nreturns its state.", "Looks an order up and returns its state."),
        ("Takes all\n    arguments of a call.\n\n    More.", "Takes all arguments of a call."),
        ("Reads the\nparameters from a file.", "Reads the parameters from a file."),
        ("Adds two numbers.\nArgs:\n    a: one", "Adds two numbers."),
        ("Adds two numbers.\n    Args (of both): a, b", "Adds two numbers."),
        ("Adds two numbers.\nReturns: the sum", "Adds two numbers."),
        ("Adds two numbers.\nReturns\n-------\nint", "Adds two numbers."),
        ("Adds two numbers.\nYields", "Adds two numbers."),
        ("Adds two numbers.\n:param a: one", "Adds two numbers."),
        ("Adds two numbers.\n    :returns: the sum", "Adds two numbers."),
    ],
)
def test_a_description_ends_where_a_section_begins(docstring: str, line: str) -> None:
    assert first_line(docstring) == line


NAMED_AS_A_TEST = """\
from pydantic_ai import Agent
def orders(number: str) -> str:
    "Looks an order up."
agent = Agent("openai:m", tools=[orders])
agent.run_sync("Uses orders")
"""


def test_a_prompt_of_the_project_stays_whatever_it_says(tmp_path: Path) -> None:
    agent = only(tmp_path, {"app.py": NAMED_AS_A_TEST})
    path, suite = write_first_suite(agent, tmp_path)
    assert [test.name for test in suite.suite.tests] == ["Uses orders", "Says what it is for"]
    assert "names a tool" not in path.read_text()


CLASS = """
from langgraph.graph import StateGraph

class Desk:
    def __init__(self, analysts=("a",), debug=False, config=None):
        self.graph = StateGraph(dict)

    def propagate(self, company, day, kind="stock", depth=1):
        "Look at a company."
        state = self.graph.invoke({"company": company})
        return state, state["decision"]

    def note(self, text):
        self.text = text

    async def answer(self, question):
        return await self.graph.ainvoke(question)

    def ask(self, agent, messages):
        return self.graph.invoke(messages)

    def recall(self, session_id: str):
        return self.graph.get_state(session_id).values

    def show(self, question):
        if not question:
            return None
        print(self.graph.invoke(question))

    def _inner(self, text):
        return self.graph.invoke(text)
"""


@pytest.mark.parametrize(
    ("lines", "target", "options", "prompt", "variables"),
    [
        (
            "d = Desk(debug=True, config=settings.copy())\nd.note('x y')\n"
            "_, decision = d.propagate('NVDA', '2024-05-10', depth=3)\n",
            "propagate",
            {
                "settings": {"debug": True},
                "input": {"company": "{{prompt}}", "day": "{{day}}", "depth": 3},
                "output": "[1]",
            },
            "NVDA",
            {"day": "2024-05-10"},
        ),
        ("async def main():\n    d = Desk()\n    print(await d.answer(input()))\n", "answer", {}, "", {}),
        (
            "d = Desk()\nwhile True:\n    print(d.propagate(input(), day='today'))\n",
            "propagate",
            {"input": {"company": "{{prompt}}", "day": "{{day}}"}},
            "",
            {"day": "today"},
        ),
        ("d = Desk()\nd.propagate('NVDA', date.today())\n", None, {}, "", {}),
        ("d = Desk(*names)\nd.answer('hello')\n", None, {}, "", {}),
        ("d = Desk()\nd.ask(other, [{'role': 'user', 'content': 'hello'}])\n", None, {}, "", {}),
        ("d = Desk()\nd._inner('hello')\nd.note('hello')\n", None, {}, "", {}),
        ("d = Desk()\nd.show('hello')\n", None, {}, "", {}),
        ("d = Desk()\nd.recall(session.id)\nd.answer(text)\n", "answer", {}, "", {}),
    ],
)
def test_a_method_that_the_project_asks(
    tmp_path: Path, lines: str, target: str | None, options: dict[str, Any], prompt: str, variables: dict[str, Any]
) -> None:
    files = {"pyproject.toml": "", "desk/__init__.py": "", "desk/graph/__init__.py": "", "desk/graph/setup.py": ""}
    files |= {"desk/graph/desk.py": CLASS, "main.py": "from desk.graph.desk import Desk\n" + lines}
    if target is None:
        assert agents_of(tmp_path, files) == []
        return
    agent = only(tmp_path, files)
    assert agent.sign is Sign.METHOD
    assert agent.folder == ""
    config = {"kind": "python", "callable": f"desk/graph/desk.py:Desk.{target}", "capture": "model", **options}
    assert dict(agent.config) == config
    assert agent.prompts[:1] == ((prompt,) if prompt else ())
    assert dict(agent.variables) == variables
    # Functions that are asked, too, are its parts.
    files |= {"parts.py": FUNCTION, "more.py": "from parts import shorten\nshorten('x y')\n"}
    assert [each.sign for each in agents_of(tmp_path, files)] == [Sign.METHOD]
    _, loaded = write_first_suite(agent, tmp_path)
    assert loaded.problems == ()
    assert loaded.suite is not None
    if prompt:
        assert {test.prompt for test in loaded.suite.tests} == {prompt}


def test_a_class_asks_a_graph_that_another_module_makes_and_a_model_of_it_is_no_agent(tmp_path: Path) -> None:
    desk = CLASS.replace("import StateGraph", "import prebuilt").replace("StateGraph(dict)", "build.make()")
    adapter = "from langchain_openai import ChatOpenAI\nclass Plain(ChatOpenAI):\n"
    adapter += "    def invoke(self, input): return super().invoke(input)\nclass Local(Plain): ...\n"
    files = {
        "desk/desk.py": desk,
        "desk/adapter.py": adapter,
        "desk/build.py": "",
        "main.py": "from desk.desk import Desk\nd = Desk()\nprint(d.propagate('NVDA', 'today'))\n",
    }
    agent = only(tmp_path, files)
    assert (agent.sign, agent.framework) == (Sign.METHOD, "LangGraph")
    assert agent.config["callable"] == "desk/desk.py:Desk.propagate"


MANAGER = """
from agents import Runner
from planner import planner
from writer import writer

class Manager:
    async def run(self, query: str):
        yield "Planning"
        plan = await Runner.run(planner, query)
        yield (await Runner.run(writer, plan)).final_output
"""


@pytest.mark.parametrize(
    "asks",
    ["async for text in Manager().run(query): print(text)", "manager = Manager()\n    return manager.run(query)"],
)
def test_a_method_that_asks_several_agents_comes_before_them(tmp_path: Path, asks: str) -> None:
    files = {
        f"{name}.py": f"from agents import Agent\n{name} = Agent(name='{name}', instructions='Do it.')\n"
        for name in ("planner", "writer")
    }
    app = f"from manager import Manager\nasync def answer(query):\n    {asks}\n"
    agents = agents_of(tmp_path, {**files, "manager.py": MANAGER, "app.py": app})
    assert [(agent.sign, agent.is_part) for agent in agents] == [(Sign.METHOD, False)] + [(Sign.OBJECT, True)] * 2
    assert agents[0].config["callable"] == "manager.py:Manager.run"


def test_a_graph_that_takes_messages_comes_before_an_index(tmp_path: Path) -> None:
    graph = "from langgraph.graph import StateGraph, MessagesState\nfrom typing import TypedDict\n"
    graph += "class Docs(TypedDict):\n    docs: list[str]\n"
    files = {
        "langgraph.json": '{"graphs": {"indexer": "./index.py:graph", "talk": "./talk.py:graph"}}',
        "index.py": graph + "graph = StateGraph(Docs).compile()\n",
        "talk.py": graph + "graph = StateGraph(MessagesState).compile()\n",
    }
    assert [agent.name for agent in agents_of(tmp_path, files)] == ["talk", "indexer"]


FUNCTION = """
from openai import OpenAI
client = OpenAI()

def shorten(lines: str, style="plain"):
    return client.chat.completions.create(model="m", messages=lines)

def load(path):
    return open(path).read()

def node(model):
    return model.invoke("x")
"""


@pytest.mark.parametrize(
    ("lines", "options", "prompt"),
    [
        ("print(shorten('Rain all day.'))\n", {}, "Rain all day."),
        (
            "text = shorten('rain', style='brief')\nload('notes.txt')\n",
            {"input": {"lines": "{{prompt}}", "style": "{{style}}"}},
            "rain",
        ),
        ("import sys\nfrom words import node\nnode(client)\nprint(shorten(sys.argv[1]))\n", {}, ""),
    ],
)
def test_a_function_that_the_project_asks(tmp_path: Path, lines: str, options: dict[str, Any], prompt: str) -> None:
    agent = only(tmp_path, {"words.py": FUNCTION, "main.py": "from words import load, shorten\n" + lines})
    assert agent.sign is Sign.FUNCTION
    assert dict(agent.config) == {"kind": "python", "callable": "words.py:shorten", "capture": "model", **options}
    assert agent.prompts[:1] == ((prompt,) if prompt else ())


@pytest.mark.parametrize(
    ("declared", "is_found"),
    [
        ("", True),
        (": str", True),
        (": 'str | None' = None", True),
        (": Optional[str] = None", True),
        (": List[Dict[str, Any]]", False),
        (": pd.DataFrame", False),
        (": int", False),
    ],
)
def test_what_a_method_takes_is_no_prompt_where_its_type_says_so(tmp_path: Path, declared: str, is_found: bool) -> None:
    text = f"from openai import OpenAI\nclass Desk:\n    def score(self, signals{declared}):\n"
    text += "        return OpenAI().chat.completions.create(model='m', messages=signals)\n"
    main = "import sys\nfrom desk import Desk\ndesk = Desk()\nprint(desk.score(load(sys.argv)))\n"
    agents = agents_of(tmp_path, {"pyproject.toml": "", "desk.py": text, "main.py": main})
    assert [agent.sign for agent in agents] == [Sign.METHOD] * is_found


BASE = """
from abc import ABC, abstractmethod
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import CustomLLM

class BaseAgent(ABC):
    def __init__(self, model=None):
        self.agent = FunctionAgent(tools=self.get_tools())

    @abstractmethod
    def get_tools(self): ...

    async def run(self, message, user_name=None):
        return str(await self.agent.run(message))

class Gateway(CustomLLM):
    def chat(self, messages):
        return self.client.chat(messages)
"""
MARKET = """
from base import BaseAgent

class Market(BaseAgent):
    "Knows the market."
    def get_tools(self):
        return [print]

class Half(BaseAgent):
    def other(self):
        return 1

class Needs(BaseAgent):
    def __init__(self, index):
        super().__init__()
    def get_tools(self):
        return []
"""


def test_subclasses_of_an_abstract_agent(tmp_path: Path) -> None:
    agent = only(tmp_path, {"base.py": BASE, "market.py": MARKET})
    assert (agent.sign, agent.framework, agent.instructions) == (Sign.FACTORY, "LlamaIndex", "Knows the market.")
    assert dict(agent.config) == {"kind": "python", "callable": "market.py:Market", "capture": "model"}


MAKES = """
from smolagents import CodeAgent

def create_agent(config, model) -> CodeAgent:
    try:
        return CodeAgent(tools=[], model=model, instructions="Know the deadlines.")
    except KeyError as error:
        print(error)
        raise
"""
APP = """
import gradio
from makers import create_agent

def create_compliance_agent():
    "Of the config."
    return create_agent(load(), None)

def serve(agent): ...

def main():
    serve(create_compliance_agent())
"""


@pytest.mark.parametrize("package", ["", "makers/"])
def test_a_factory_in_a_module_that_knows_no_framework(tmp_path: Path, package: str) -> None:
    folder = {f"{package}__init__.py": "from .makes import create_agent\n", f"{package}makes.py": MAKES}
    agent = only(tmp_path, {"app.py": APP, **(folder if package else {"makers.py": MAKES})})
    assert (agent.sign, agent.framework, agent.instructions) == (Sign.FACTORY, "smolagents", "Know the deadlines.")
    assert dict(agent.config) == {"kind": "python", "callable": "app.py:create_compliance_agent"}


def test_an_object_in_a_module_that_knows_no_framework(tmp_path: Path) -> None:
    main = "from makers import create_agent\nagent = create_agent({}, 'big')\n"
    agent = only(tmp_path, {"main.py": main, "makers.py": MAKES})
    assert (agent.sign, agent.config["callable"]) == (Sign.OBJECT, "main.py:agent")


CREW = """
from crewai import Agent, Crew, Task
from crewai.project import CrewBase, crew

@CrewBase
class SurpriseTravelCrew:
    "{docstring}"

    @crew
    def crew(self):
        return Crew(agents=[], tasks=[])
"""


@pytest.mark.parametrize(
    ("docstring", "asked"),
    [("SurpriseTravel crew", ["Answers"]), ("Plans a journey.", ["Speaks of what its instructions say", "Answers"])],
)
def test_a_docstring_that_repeats_the_name_is_no_criterion(tmp_path: Path, docstring: str, asked: list[str]) -> None:
    agent = only(tmp_path, {"crew.py": CREW.replace("{docstring}", docstring)})
    _, suite = write_first_suite(agent, tmp_path)
    assert [criterion.name for criterion in suite.suite.tests[0].criteria] == asked


@pytest.mark.parametrize("value", ["CONFIG.get('name')", "os.getenv('name')", "load_text('name')", "get_name('name')"])
def test_the_key_of_a_value_is_not_its_text(tmp_path: Path, value: str) -> None:
    main = f"import os\nfrom agents import Agent\nbot = Agent(name={value}, instructions={value})\n"
    agent = only(tmp_path, {"main.py": main})
    assert (agent.name, agent.instructions) == ("bot", "")


def test_a_library_with_the_name_of_a_package_within_a_package(tmp_path: Path) -> None:
    triage = "from agents import Agent\nfrom .parts import part\n"
    triage += (
        "def create_triage():\n    try:\n        agent = Agent(name='Triage', handoffs=[part])\n        return agent\n"
    )
    triage += "    except ValueError:\n        raise\n"
    files = {
        "app/__init__.py": "",
        "app/agents/__init__.py": "class Agent:\n    'Ours.'\n",
        "app/agents/triage.py": triage,
    }
    assert [(agent.name, agent.framework) for agent in agents_of(tmp_path, files)] == [("triage", "openai-agents")]


ASKS = "from openai import OpenAI\ndef ask(q):\n    OpenAI().responses.create(input=q)\n"


@pytest.mark.parametrize(
    ("reads", "words"),
    [
        ("import sys\nif __name__ == '__main__':\n    ask(sys.argv[1])\n", ["{{prompt}}"]),
        ("from sys import argv\nif __name__ == '__main__':\n    ask(' '.join(argv[1:]))\n", ["{{prompt}}"]),
        ("if __name__ == '__main__':\n    ask(input())\n", None),
        ("P.add_argument('query', nargs='*')\nP.add_argument('--kb')\n", ["--", "{{prompt}}"]),
        (
            "P.add_argument('--verbose', action='store_true')\nP.add_argument('-q', '--question')\n",
            ["--question={{prompt}}"],
        ),
        ("P.add_argument('mode', choices=['a'])\nP.add_argument('text')\n", ["a", "--", "{{prompt}}"]),
        ("P.add_argument('source')\nP.add_argument('target')\n", None),
        ("P.add_argument('file')\nP.add_argument('--question')\n", None),
        ("P.add_argument('file', nargs='?')\nP.add_argument('--question')\n", ["--question={{prompt}}"]),
        ("P.add_argument('question', nargs='*')\nP.add_argument('--input')\n", ["--", "{{prompt}}"]),
        ("P.add_argument('mode', choices=MODES)\nP.add_argument('text')\n", None),
        ("P.add_argument('bot', nargs='?', choices=BOTS)\nP.add_argument('text')\n", ["--", "{{prompt}}"]),
        ("P.add_argument('bot', nargs='?', choices=BOTS)\nP.add_argument('--text')\n", ["--text={{prompt}}"]),
        ("P.add_argument('--prompt', '-p', action='append')\n", ["--prompt={{prompt}}"]),
        (
            "P.add_argument('file', nargs='?')\nS = P.add_subparsers()\nS.add_parser('ask').add_argument('query')\n",
            ["ask", "--", "{{prompt}}"],
        ),
        (
            "import click\n@click.argument('file', required=False)\n@click.option('-q', '--query')\ndef main(): ...\n",
            ["--query={{prompt}}"],
        ),
        ("import sys\nP.add_argument('mode', choices=['ask'])\nP.parse_known_args(sys.argv[1:])\n", None),
        ("S = P.add_subparsers()\nS.add_parser('ask').add_argument('query')\n", ["ask", "--", "{{prompt}}"]),
        (
            "S = P.add_subparsers()\nC = S.add_parser('load')\nC.add_argument('path')\nC = S.add_parser('query')\n"
            "G = C.add_argument_group()\nG.add_argument('query')\nC.add_argument('--depth', default=3)\n",
            ["query", "--", "{{prompt}}"],
        ),
        (  # what comes before the word is not known
            "P.add_argument('--db', required=True)\nP.add_subparsers().add_parser('ask').add_argument('query')\n",
            None,
        ),
        (
            "import click\n@click.group()\ndef main(): ...\n@main.command()\n@click.argument('q')\ndef ask(q): ...\n",
            None,
        ),
        (
            "import click\n@click.group()\ndef main(): ...\n@main.command()\n@click.argument('path')\n"
            "def load(path): ...\n@main.command('put')\n@click.option('-q', '--query', required=True)\n"
            "def ask_it(query): ...\n",
            ["put", "--query={{prompt}}"],
        ),
        (
            "import click\n@click.group()\ndef main(): ...\n@main.group()\ndef bot(): ...\n@bot.command()\n"
            "@click.argument('text')\ndef ask_it(text): ...\n",
            ["bot", "ask-it", "--", "{{prompt}}"],
        ),
        (
            "import click\n@click.group()\ndef main(): ...\n@click.command()\n@click.argument('text')\n"
            "def say(text): ...\nmain.add_command(say)\n",
            ["say", "--", "{{prompt}}"],
        ),
        ("P.add_argument('--prompt', action='store_true')\n", None),
        ("import click\n@click.command()\n@click.argument('what')\ndef main(what): ask(what)\n", ["--", "{{prompt}}"]),
        (
            "import click\n@click.option('-m', '--message')\ndef main(message): ask(message)\n",
            ["--message={{prompt}}"],
        ),
        (
            "import typer\ndef main(question: str, loud: bool = False): ask(question)\ntyper.run(main)\n",
            ["--", "{{prompt}}"],
        ),
        (
            "import typer\napp = typer.Typer()\n@app.command()\n"
            "def main(user_input: str = typer.Option(...)): ask(user_input)\n",
            ["--user-input={{prompt}}"],
        ),
        (
            "import typer\napp = typer.Typer()\n@app.command(help='Asks.')\n"
            "def main(text: str = typer.Option(None, '-t', '--task'), goal: str = 'x'): ask(text)\n",
            ["--task={{prompt}}"],
        ),
        (
            "import typer\napp = typer.Typer()\nsub = typer.Typer()\napp.add_typer(sub, name='bot')\n@app.command()\n"
            "def load(path: str): ...\n@sub.command()\ndef ask_it(ctx: typer.Context, query: str): ask(query)\n",
            ["bot", "ask-it", "--", "{{prompt}}"],
        ),
        ("import fire\ndef main(idea: str, rounds=3): ask(idea)\nfire.Fire(main)\n", ["--idea={{prompt}}"]),
        (
            "import fire\nclass Bot:\n    def __init__(self, model='m'): ...\n    def load(self, path): ...\n"
            "    def chat(self, message, loud=False): ask(message)\nfire.Fire(Bot)\n",
            ["chat", "--message={{prompt}}"],
        ),
        (
            "import fire\ndef load(path): ...\ndef talk(text): ask(text)\nfire.Fire({'in': load, 'say': talk})\n",
            ["say", "--text={{prompt}}"],
        ),
        ("import fire\ndef load(path): ...\nfire.Fire()\n", None),
    ],
)
def test_a_program_that_takes_its_question_as_a_word(tmp_path: Path, reads: str, words: list[str] | None) -> None:
    text = f"{ASKS}{reads}if __name__ == '__main__':\n    main()\n"
    agent = only(tmp_path, {"pyproject.toml": "", "tool.py": text})
    assert agent.config["command"] == ["python3", "tool.py", *(words or [])]
    assert agent.config.get("input") == (None if words else "text")


def test_a_script_with_packages_of_its_own_and_the_commands_that_it_shows(tmp_path: Path) -> None:
    text = (
        '#!/usr/bin/env -S uv run --script\n# /// script\n# dependencies = ["openai"]\n# ///\n'
        '"""Asks a database.\n\nUsage:\n    uv run ask.py -d ./shop.db -p "How many users are there?" -c 5\n'
        '    uv run ask.py \\\\\n        --db=./other.db --prompt \'Which are new?\'\n    uv run ask.py -p "open\n"""\n'
        f"{ASKS}P.add_argument('-d', '--db', required=True)\nP.add_argument('-p', '--prompt', required=True)\n"
        "P.add_argument('-c', '--limit', type=int, default=3)\nif __name__ == '__main__':\n    main()\n"
    )
    agent = only(tmp_path, {"pyproject.toml": "", "ask.py": text})
    script = ["uv", "run", "--script", "ask.py"]
    # Its environment has no package of the project, unless the script lists it.
    own = only(tmp_path / "own", {"pyproject.toml": "", "shop/__init__.py": "", "shop/ask.py": f"import shop\n{text}"})
    assert own.config["command"][:4] == ["uv", "run", "--script", "shop/ask.py"]
    assert agent.config["command"] == [*script, "-d", "./shop.db", "--prompt={{prompt}}"]
    assert agent.prompts == ("How many users are there?", "Which are new?")
    readme = (
        "# Ask\nRun ask.py to start.\n\n```\n> uv run ask.py --db a.db -p 'How many?'  # all\n```\n"
        "Look at ask.py, then run it.\n"
    )
    bare = text.replace("Usage:", "").replace("uv run ask.py", "it")
    agent = only(tmp_path / "other", {"pyproject.toml": "", "README.md": readme, "ask.py": bare})
    assert agent.config["command"] == [*script, "--db", "a.db", "--prompt={{prompt}}"]
    assert agent.prompts == ("How many?",)


def test_a_function_for_a_chat_of_gradio(tmp_path: Path) -> None:
    text = "import gradio as gr\nfrom openai import OpenAI\ndef predict(message, history):\n"
    text += "    return OpenAI().chat.completions.create(model='m', messages=[*history, message])\n"
    agent = only(tmp_path, {"pyproject.toml": "", "app.py": text + "gr.ChatInterface(predict).launch()\n"})
    assert (agent.sign, agent.config["callable"]) == (Sign.FUNCTION, "app.py:predict")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("required=True, choices=['short', 'long']", ["--kind", "short"]),
        ("required=True, choices=KINDS", []),
        ("choices=['short', 'long']", []),
    ],
)
def test_a_placeholder_in_a_usage_is_no_value(tmp_path: Path, option: str, words: list[str]) -> None:
    text = f'"""Usage: python ask.py "<query>" --kind <kind> --tone={{tone}}"""\n{ASKS}P.add_argument("query")\n'
    text += f"P.add_argument('--kind', {option})\nif __name__ == '__main__':\n    main()\n"
    agent = only(tmp_path, {"pyproject.toml": "", "ask.py": text})
    assert agent.config["command"] == ["python3", "ask.py", *words, "--", "{{prompt}}"]


def test_a_program_in_a_folder_that_imports_from_the_root_is_started_as_a_module(tmp_path: Path) -> None:
    text = f"{ASKS}from db import rows\nfrom words import near\nif __name__ == '__main__':\n    ask(input())\n"
    files = {"pyproject.toml": "", "db/__init__.py": "rows = []\n", "jobs/words.py": "near = 1\n", "jobs/ask.py": text}
    assert only(tmp_path / "a", files).config["command"] == ["python3", "-m", "jobs.ask"]
    beside = {**files, "jobs/db.py": "rows = []\n"}
    assert only(tmp_path / "b", beside).config["command"] == ["python3", "jobs/ask.py"]


def test_a_program_whose_model_is_one_of_langchain(tmp_path: Path) -> None:
    models = "def model():\n    from langchain_openai import ChatOpenAI\n    return ChatOpenAI()\n"
    asks = "from models import model\nfrom langchain_core.prompts import ChatPromptTemplate\n"
    asks += "def main():\n    print(model().invoke(input()))\nif __name__ == '__main__':\n    main()\n"
    model_asks = models + "def ask(text):\n    return model().invoke(text)\n"
    agents = agents_of(tmp_path, {"pyproject.toml": "", "main.py": asks, "models.py": model_asks})
    program = next(agent for agent in agents if agent.sign is Sign.PROGRAM)
    assert (program.file, program.framework) == ("main.py", "LangChain")


def test_the_questions_of_an_argument_are_the_quoted_ones(tmp_path: Path) -> None:
    text = f"{ASKS}import sys\nif __name__ == '__main__':\n    ask(sys.argv[1])\n"
    readme = "Run ask.py to start.\n\n    python ask.py 'Where is it?'\n\nOr try `python ask.py \"And when?\"` now.\n"
    agent = only(tmp_path, {"pyproject.toml": "", "README.md": readme, "ask.py": text})
    assert agent.config["command"] == ["python3", "ask.py", "{{prompt}}"]
    assert agent.prompts == ("Where is it?", "And when?")


def test_a_program_whose_agent_is_called_like_a_function(tmp_path: Path) -> None:
    text = (
        "import argparse\nfrom pydantic_ai import Agent\nfrom builder.tools import get_tools\n"
        "def main():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('query', nargs='*')\n"
        "    agent = Agent(tools=get_tools())\n    agent(' '.join(parser.parse_args().query))\n"
        "if __name__ == '__main__':\n    main()\n"
    )
    files = {
        "pyproject.toml": "",
        "src/builder/__init__.py": "",
        "src/builder/pydantic_ai.py": text,
        "src/builder/tools.py": "",
    }
    agent = only(tmp_path, files)
    # By its path, the file would hide the library that it is called like.
    assert agent.config["command"] == ["python3", "-m", "builder.pydantic_ai", "--", "{{prompt}}"]


@pytest.mark.parametrize(
    ("reads", "words"),
    [
        ("const question = process.argv[2];", ["{{prompt}}"]),
        ("const question = process.argv.slice(2).join(' ');", ["{{prompt}}"]),
        ("const [, , question] = process.argv;", ["{{prompt}}"]),
        ("const question = readFileSync(0, 'utf8');", []),
    ],
)
def test_a_program_for_node_that_takes_its_question_as_a_word(tmp_path: Path, reads: str, words: list[str]) -> None:
    text = (
        "import { generateText } from 'ai';\n"
        f"{reads}\nconst {{ text }} = await generateText({{ model, prompt: question }});\nconsole.log(text);\n"
    )
    package = '{"dependencies": {"ai": "5"}, "scripts": {"ask": "node ask.mjs"}}'
    agent = only(tmp_path, {"package.json": package, "ask.mjs": text})
    assert agent.config["command"] == ["node", "ask.mjs", *words]
    assert agent.config.get("input") == (None if words else "text")


STATES = """
import operator
from dataclasses import dataclass, field
from typing import Annotated, Any, Optional
from typing_extensions import TypedDict
from langgraph.graph import StateGraph, add_messages
@dataclass(kw_only=True)
class InputState:
    topic: str
    schema: dict[str, Any]
    depth: int = 2
    info: Optional[dict] = field(default=None)
@dataclass(kw_only=True)
class State(InputState):
    messages: Annotated[list, add_messages] = field(default_factory=list)
@dataclass
class OutputState:
    info: dict[str, Any]
class Asked(TypedDict):
    place: str
    question: str
class More(Asked):
    thread: str
"""


@pytest.mark.parametrize(
    ("arguments", "config"),
    [
        (
            "State, input=InputState, output=OutputState",
            {"input": {"topic": "{{prompt}}", "schema": {}}, "output": "info"},
        ),
        ("State, input_schema=InputState", {"input": {"topic": "{{prompt}}", "schema": {}}}),
        ("State, output=OutputState", {}),
        ("State, input=More, output=OutputState", {"input": {"question": "{{prompt}}"}, "output": "info"}),
    ],
)
def test_a_graph_that_takes_no_messages_although_its_state_has_some(
    tmp_path: Path, arguments: str, config: dict[str, Any]
) -> None:
    text = f"{STATES}builder = StateGraph({arguments})\ngraph = builder.compile()\n"
    agent = only(tmp_path, {"pyproject.toml": "", "graph.py": text})
    assert {name: value for name, value in agent.config.items() if name in ("input", "output")} == config
    assert agent.examples == (("input.schema",) if "schema" in config.get("input", {}) else ())
    path, suite = write_first_suite(agent, tmp_path)
    assert suite.suite is not None
    assert ("# `schema` in its input is only an example" in path.read_text()) == bool(agent.examples)


def test_notebooks_are_not_read_and_that_is_said(tmp_path: Path) -> None:
    agent = "from pydantic_ai import Agent\nagent = Agent('m')\n"
    findings = find_agents(project(tmp_path, {"Planning/plan.ipynb": "{}", ".ipynb_checkpoints/plan.ipynb": "{}"}))
    assert (findings.notebooks, unread(findings).partition(":")[0]) == (1, "1 notebook not read")
    findings = find_agents(project(tmp_path, {"agent.py": agent}))
    assert (findings.notebooks, unread(findings)) == (1, "")


def test_of_two_libraries_the_one_that_is_imported_first_is_named(tmp_path: Path) -> None:
    lines = "import openai\nimport anthropic\nif __name__ == '__main__':\n    openai.OpenAI().responses.create()\n"
    assert only(tmp_path, {"ask.py": lines}).framework == "OpenAI SDK"


def test_an_expression_of_any_length_keeps_no_agent_from_being_found(tmp_path: Path) -> None:
    long = " + ".join(['"a"'] * 700)
    route = f"    text = {long}\n    return {{'answer': request.json()['message'] + text}}\n"
    files = {
        "app.py": f"from fastapi import FastAPI\napp = FastAPI()\n@app.post('/chat')\ndef chat(request):\n{route}",
        "bot.py": f"from pydantic_ai import Agent\nx = Agent('m')\n@x.tool\ndef tool(word={long}):\n    'Says it.'\n",
        "run.py": f"import openai\nif {long}:\n    y = 1\nif __name__ == '__main__':\n    openai.chat.create()\n",
    }
    assert {agent.place for agent in agents_of(tmp_path, files)} == {"app.py:3", "bot.py:2", "run.py:4"}


def test_instructions_that_are_put_together_of_many_texts(tmp_path: Path) -> None:
    words = [f"Rule {number}." for number in range(12)]
    code = f"from pydantic_ai import Agent\nx = Agent('m', instructions={' + '.join(map(repr, words))})\n"
    assert only(tmp_path, {"bot.py": code}).instructions == "".join(words)


@pytest.mark.parametrize(
    "code",
    [
        "from fastapi import FastAPI\nfrom models import Body\nx = FastAPI()\nclass Body(Body):\n    message: str\n"
        "@x.post('/chat')\ndef chat(body: Body):\n    return {'answer': 1}\n",
        "from pydantic_ai import Agent\nclass Deps:\n    parent: 'Deps'\nx = Agent('m', deps_type=Deps)\n",
        "from langgraph.graph import StateGraph\nclass State(State):\n    q: str\nx = StateGraph(State).compile()\n",
    ],
)
def test_classes_that_are_made_of_themselves(tmp_path: Path, code: str) -> None:
    assert only(tmp_path, {"bot.py": code}).file == "bot.py"


def test_a_text_that_looks_like_a_module_but_is_too_long_for_a_file(tmp_path: Path) -> None:
    token = ".".join("x" * 300 for _ in range(3))
    code = f"import importlib\nimport flow\nif __name__ == '__main__':\n    importlib.import_module('{token}')\n"
    flow = "import openai\ndef go():\n    openai.OpenAI().chat.completions.create()\n"
    assert only(tmp_path, {"run.py": code, "flow.py": flow}).file == "run.py"
