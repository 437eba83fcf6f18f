"""From the save of an agent's file to the first verdict, and to all of its recorded runs.

Each agent is a project of its own, with a Python of its own (that of this process), and runs by its framework without
a network: pydantic-ai's test model, a LangGraph graph, and a function. Beside each figure stands what the import of the
project's modules and so many forks of it take by themselves, in this process' Python: the least that there is.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.table import Row

RUNS = 20
FIRST_S, ALL_S = 0.25, 0.5
SUITE = """
name: Saved
agent: a
agents: {{a: {{kind: python, callable: "agent.py:agent"}}}}
tests:
  - id: t
    prompt: Where is my order?
    repeat: {runs}
    criteria:
      - {{name: way, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: way}}]}}}}
"""
AGENTS = {
    "a function": "def agent(prompt):\n    return 'It is on its way.'\n",
    "pydantic-ai, its test model": (
        "from pydantic_ai import Agent\n"
        "from pydantic_ai.models.test import TestModel\n"
        "agent = Agent(TestModel(custom_output_text='It is on its way.'), system_prompt='Be brief.')\n"
        "@agent.tool_plain\n"
        "def order(order_id: str) -> str:\n"
        "    return 'shipped'\n"
    ),
    "LangGraph": (
        "from langgraph.graph import END, START, MessagesState, StateGraph\n"
        "def answer(state):\n"
        "    return {'messages': [('assistant', 'It is on its way.')]}\n"
        "graph = StateGraph(MessagesState)\n"
        "graph.add_node('answer', answer)\n"
        "graph.add_edge(START, 'answer')\n"
        "graph.add_edge('answer', END)\n"
        "agent = graph.compile()\n"
    ),
}
LEAST = """
import importlib.util, os, sys, time
sys.path.insert(0, sys.argv[1])
import {outside}
began = time.perf_counter()
reading, writing = os.pipe()
if not os.fork():
    import agent
    for _ in range({runs}):
        if not os.fork():
            os._exit(0)
    for _ in range({runs}):
        os.wait()
    os._exit(0)
os.wait()
print(time.perf_counter() - began)
"""
OUTSIDE = {
    "a function": "json",
    "pydantic-ai, its test model": "pydantic_ai.models.test",
    "LangGraph": "langgraph.graph",
}


async def seen(folder: Path, saves: int) -> list[tuple[float, float]]:
    """Seconds to the first verdict and to the last of each save."""
    words = ["run", "--watch", "--json", "-", "--trust", str(folder)]
    watch = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agenteval_tui", *words, stdout=asyncio.subprocess.PIPE, limit=64_000_000
    )
    assert watch.stdout is not None
    text, times = (folder / "agent.py").read_text(), []
    first = saved = 0.0
    async for line in watch.stdout:
        event = json.loads(line)
        if event["event"] == "run" and not first:
            first = time.perf_counter() - saved
        if event["event"] == "change":
            change = event["change"]
            assert change["unchanged"] == len(change["runs"]), change
            if saved:
                times.append((first, time.perf_counter() - saved))
            if len(times) == saves + 1:
                break
            await asyncio.sleep(1.0)
            (folder / "agent.py").write_text(f"{text}\n# {len(times)}\n")
            first, saved = 0.0, time.perf_counter()
    watch.terminate()
    await watch.wait()
    return times[1:]  # the first save of all makes what later ones use


async def least(folder: Path, name: str, runs: int) -> float:
    """Seconds that the import of the project's module and the forks take by themselves."""
    code = LEAST.format(outside=OUTSIDE[name], runs=runs)
    took = []
    for _ in range(5):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, str(folder), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        took.append(float(out))
    return statistics.median(took)


async def measured(name: str, text: str, saves: int) -> tuple[float, float, float]:
    """The medians: seconds to the first verdict, to all, and what the import and the forks take by themselves."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["AGENTEVAL_DATA_DIR"] = place
        folder = Path(place) / "project"
        await asyncio.to_thread(folder.mkdir)
        (folder / "agent.py").write_text(text)
        (folder / "saved.suite.yaml").write_text(SUITE.format(runs=RUNS))
        times = await seen(folder, saves)
        alone = await least(folder, name, RUNS)
    first, whole = (statistics.median(column) for column in zip(*times, strict=True))
    return first, whole, alone


def run(quick: bool) -> list[Row]:
    """For each agent: the first verdict, and all of them."""
    rows = []
    for name, text in AGENTS.items():
        first, whole, alone = asyncio.run(measured(name, text, 2 if quick else 7))
        known = name != "a function"
        rows += [
            Row(
                f"save and see, {name}: to the first verdict",
                f"{first:.2f} s",
                "0.25 s" if known else "",
                first <= FIRST_S if known else None,
            ),
            Row(
                f"save and see, {name}: to {RUNS} recorded runs",
                f"{whole:.2f} s, {whole / alone:.1f} of the import and the forks alone",
                "0.50 s, 1.3 of them" if known else "",
                whole <= ALL_S if known else None,
            ),
        ]
    return rows
