"""Agents of frameworks, as their users have them: in a project with an environment of its own, nothing configured.

    python -m benchmarks.agents [--quick]

Measures the whole command `agenteval run` with 20 repetitions of one test. Each agent has a model that answers without
a network. The environment is made first, with pip. Then the memory of 100 runs at once, each of which has answered and
waits.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

from agenteval_tui.agents.base import AgentRequest, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.process_tree import footprint
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
from benchmarks.table import Row, markdown

PACKAGES = ("pydantic-ai-slim", "langgraph", "openai-agents")
MOST_MB = 8.0
AGENTS = {
    "pydantic-ai with TestModel": (
        "of_pydantic_ai:agent",
        1.5,
        """\
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(custom_output_text="hello"), instructions="Be kind.")
""",
    ),
    "LangGraph": (
        "of_langgraph:graph",
        None,
        """\
from langchain_core.messages import AIMessage
from langgraph.graph import END, START, MessagesState, StateGraph


def model(state):
    return {"messages": [AIMessage("hello")]}


builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_edge(START, "model")
builder.add_edge("model", END)
graph = builder.compile()
""",
    ),
    "openai-agents": (
        "of_openai_agents:agent",
        None,
        """\
from agents import Agent, Model, ModelResponse, Usage, set_tracing_disabled
from openai.types.responses import Response, ResponseCompletedEvent, ResponseOutputMessage, ResponseOutputText

set_tracing_disabled(True)


class Fixed(Model):
    async def get_response(self, *args, **kwargs):
        return ModelResponse(output=[message()], usage=Usage(), response_id="r")

    async def stream_response(self, *args, **kwargs):
        response = Response(
            id="r", created_at=0, model="fixed", object="response", output=[message()], tool_choice="none", tools=[],
            parallel_tool_calls=False,
        )
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=response)


def message():
    text = ResponseOutputText(text="hello", type="output_text", annotations=[])
    return ResponseOutputMessage(id="m", role="assistant", status="completed", type="message", content=[text])


agent = Agent(name="Kind", instructions="Be kind.", model=Fixed())
""",
    ),
}
WAITS = """
import time
import {module}


def f(prompt):
    yield {answer}
    time.sleep(600)
"""
ANSWERS = {
    "LangGraph": (
        "of_langgraph",
        "of_langgraph.graph.invoke({'messages': [('user', prompt)]})['messages'][-1].content",
    ),
    "pydantic-ai": ("of_pydantic_ai", "of_pydantic_ai.agent.run_sync(prompt).output"),
}
"""By framework: the module that is imported, and an expression that runs its agent."""
SUITE = """\
name: Agents
agent: tested
agents:
  tested: {{kind: python, callable: '{target}', python: .venv/bin/python}}
tests:
  - id: hello
    prompt: Say hello
    criteria:
      - name: Greets
        prototype_class: TextResponse
        config_uxon: {{metrics: [{{type: TextMatch, contains: hello}}]}}
"""


def measure(folder: Path, target: str, repeat: int) -> tuple[float, float]:
    """The wall time and the processor time of one command with a new history, in seconds."""
    suite = folder / "agents.suite.yaml"
    suite.write_text(SUITE.format(target=target), encoding="utf-8")
    own = {f"AGENTEVAL_{one}_DIR": str(folder / "own") for one in ("DATA", "CONFIG", "RUNTIME", "CACHE")}
    database = folder / f"{time.monotonic_ns()}.db"
    command = [sys.executable, "-m", "agenteval_tui", "run", "--trust", "--repeat", str(repeat), "--db", str(database)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"} | own
    before, began = os.times(), time.perf_counter()
    subprocess.run([*command, str(suite)], env=environment, stdout=subprocess.DEVNULL, check=True)
    took, after = time.perf_counter() - began, os.times()
    return took, after.children_user + after.children_system - before.children_user - before.children_system


async def memory(folder: Path, framework: str, number: int) -> tuple[float, float]:
    """The memory of the levels with one run, and of the levels with so many more runs at once, in MB. What processes
    share counts once."""
    module, answer = ANSWERS[framework]
    (folder / "waits.py").write_text(WAITS.format(module=module, answer=answer), encoding="utf-8")
    config = {"kind": "python", "callable": "waits:f", "python": ".venv/bin/python"}
    permission = permission_for((), everything=True)
    agent = make_agent("waits", config, base_dir=folder, env=dict(os.environ), permission=permission)
    first = asyncio.Event()
    started = 0

    async def run() -> None:
        nonlocal started
        async for event in agent.run(AgentRequest((Message("user", "x"),))):
            if isinstance(event, TextDelta):
                started += 1
                first.set()

    tasks = [asyncio.create_task(run())]
    await first.wait()
    alone = footprint(os.getpid()).mb or 0.0
    tasks += [asyncio.create_task(run()) for _ in range(number)]
    while started <= number:
        await asyncio.sleep(0.05)
    together = footprint(os.getpid()).mb or 0.0
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await agent.close()
    return alone, together


def run(quick: bool = False) -> list[Row]:
    """The medians of several commands, the frameworks in turns. The first command of each doesn't count."""
    repeat, rounds, at_once = (4, 1, 10) if quick else (20, 5, 100)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / ".venv", with_pip=True)
        python = folder / ".venv" / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *PACKAGES], check=True)
        for target, _, source in AGENTS.values():
            (folder / f"{target.partition(':')[0]}.py").write_text(source, encoding="utf-8")
            measure(folder, target, 1)
        took: dict[str, list[tuple[float, float]]] = {what: [] for what in AGENTS}
        for _ in range(rounds):
            for what, (target, _, _) in AGENTS.items():
                took[what].append(measure(folder, target, repeat))
        for what, figures in took.items():
            clock, processor = (statistics.median(one) for one in zip(*figures, strict=True))
            due = AGENTS[what][1]
            rows.append(
                Row(
                    f"agenteval run: {repeat} runs of an agent of {what}, in its project's environment",
                    f"{clock:.2f} s ({processor:.2f} s of processor time)",
                    "" if due is None else f"< {due} s",
                    None if due is None else clock < due,
                )
            )
        for framework in ANSWERS:
            alone, together = asyncio.run(memory(folder, framework, at_once))
            each = (together - alone) / at_once
            measured = f"{alone:.0f} MB with one run; {each:.1f} MB for each more"
            what = f"memory of {at_once} runs at once of an agent of {framework}"
            rows.append(Row(what, measured, f"<= {MOST_MB:g} MB", each <= MOST_MB))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agents", description="Agents of frameworks.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
