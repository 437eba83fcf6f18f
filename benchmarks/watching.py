"""From the save of an agent's file to the first verdict, and to all of its recorded runs.

Each agent is a project of its own. Those in Python have that of this process, and run without a network: pydantic-ai's
test model, a LangGraph graph, and a function. The Node program asks a model server on this machine when it is recorded.

Beside each figure stands the least that there is, measured in turns with it: in this process' Python, the import of the
project's module and so many forks of it, and the same with forks in which the agent answers, as many at once as there
are cores; of the Node program, so many of its processes, which ask the server themselves.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.table import Row

RUNS = 20
MANY_TESTS, MATTER = 100, 50
FIRST_S, ALL_S, BESIDE_START_S = 0.25, 0.5, 0.2
SUITE = """
name: Saved
agent: a
agents: {{a: {agent}}}
defaults: {{repeat: {repeat}}}
tests:
"""
TEST = """
  - id: t{number}
    prompt: Where is my order?
    criteria:
      - {{name: way, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: way}}]}}}}
"""
LEAST = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import {outside}
began = time.perf_counter()
if not os.fork():
    import agent
    for number in range({runs}):
        if number >= {at_once}:
            os.wait()
        if not os.fork():
            {answer}
            os._exit(0)
    for _ in range(min({at_once}, {runs})):
        os.wait()
    os._exit(0)
os.wait()
print(time.perf_counter() - began)
"""


@dataclass(frozen=True)
class Measured:
    """An agent: its file, and how it is asked without agenteval. `outside`: what is imported before its module."""

    name: str
    text: str
    outside: str
    answer: str


FUNCTION = Measured(
    "a function", "def agent(prompt):\n    return 'It is on its way.'\n", "json", "agent.agent('Where is my order?')"
)
AGENTS = (
    FUNCTION,
    Measured(
        "pydantic-ai, its test model",
        "from pydantic_ai import Agent\n"
        "from pydantic_ai.models.test import TestModel\n"
        "agent = Agent(TestModel(custom_output_text='It is on its way.'), system_prompt='Be brief.')\n"
        "@agent.tool_plain\n"
        "def order(order_id: str) -> str:\n"
        "    return 'shipped'\n",
        "pydantic_ai.models.test",
        "agent.agent.run_sync('Where is my order?')",
    ),
    Measured(
        "LangGraph",
        "from langgraph.graph import END, START, MessagesState, StateGraph\n"
        "def answer(state):\n"
        "    return {'messages': [('assistant', 'It is on its way.')]}\n"
        "graph = StateGraph(MessagesState)\n"
        "graph.add_node('answer', answer)\n"
        "graph.add_edge(START, 'answer')\n"
        "graph.add_edge('answer', END)\n"
        "agent = graph.compile()\n",
        "langgraph.graph",
        "agent.agent.invoke({'messages': [('user', 'Where is my order?')]})",
    ),
)
NODE = """
const headers = {"content-type": "application/json", authorization: `Bearer ${process.env.OPENAI_API_KEY}`}
const body = JSON.stringify({model: "gpt-4o", messages: [{role: "user", content: process.argv[2]}]})
const address = `${process.env.OPENAI_BASE_URL}/chat/completions`
const reply = await (await fetch(address, {method: "POST", headers, body})).json()
console.log(reply.choices[0].message.content)
"""


class Model(BaseHTTPRequestHandler):
    """A model that always says the same."""

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": "It is on its way."}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
        answer = json.dumps({"model": "gpt-4o", "choices": choices, "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@contextmanager
def serving() -> Iterator[None]:
    """The model's address is in the environment."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    before = dict(os.environ)
    os.environ["OPENAI_BASE_URL"] = f"http://127.0.0.1:{server.server_address[1]}/v1"
    os.environ["OPENAI_API_KEY"] = "no-key"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        server.shutdown()
        server.server_close()


@dataclass(frozen=True)
class Saved:
    """Seconds from a save to the first verdict, to the first `MATTER`, and to all."""

    first: float
    matter: float
    whole: float


async def seen(folder: Path, file: Path, comment: str, saves: int) -> list[Saved]:
    """The times of each save."""
    words = ["run", "--watch", "--json", "-", "--trust", str(folder)]
    watch = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "agenteval_tui", *words, stdout=asyncio.subprocess.PIPE, limit=64_000_000
    )
    assert watch.stdout is not None
    text, times = file.read_text(), []
    ended: list[float] = []
    saved = 0.0
    async for line in watch.stdout:
        event = json.loads(line)
        if event["event"] == "run":
            ended.append(time.perf_counter() - saved)
        if event["event"] == "change":
            change = event["change"]
            assert change["unchanged"] == len(change["runs"]), change
            if saved:
                times.append(Saved(ended[0], ended[min(MATTER, len(ended)) - 1], time.perf_counter() - saved))
            if len(times) == saves + 1:
                break
            await asyncio.sleep(1.0)
            file.write_text(f"{text}\n{comment} {len(times)}\n")
            ended, saved = [], time.perf_counter()
    watch.terminate()
    await watch.wait()
    return times[1:]  # the first save of all makes what later ones use


def made(folder: Path, file: str, text: str, agent: str, *, tests: int, repeat: int) -> Path:
    """A project with an agent and a suite; gives the agent's file."""
    folder.mkdir()
    (folder / file).write_text(text)
    suite = SUITE.format(agent=agent, repeat=repeat) + "".join(TEST.format(number=number) for number in range(tests))
    (folder / "saved.suite.yaml").write_text(suite)
    return folder / file


async def in_python(agent: Measured, saves: int, tests: int = 1) -> list[Saved]:
    """The times of saves of a Python agent, `RUNS` runs of each test."""
    with tempfile.TemporaryDirectory() as place:
        os.environ["AGENTEVAL_DATA_DIR"] = place
        named = '{kind: python, callable: "agent.py:agent"}'
        file = made(Path(place) / "project", "agent.py", agent.text, named, tests=tests, repeat=RUNS)
        return await seen(file.parent, file, "#", saves)


async def least(agent: Measured, *, answered: bool) -> float:
    """Seconds that the import of the project's module and the forks take by themselves; with an answer in each if they
    are `answered`."""
    code = LEAST.format(
        outside=agent.outside,
        runs=RUNS,
        at_once=(os.cpu_count() or 1) if answered else RUNS,
        answer=agent.answer if answered else "pass",
    )
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "agent.py").write_text(agent.text)
        command = [sys.executable, "-c", code, place]
        process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
    return float(out)


async def by_turns(agent: Measured, quick: bool) -> list[Row]:
    """The figures of a Python agent, and of the least that there is, in turns."""
    times: list[Saved] = []
    forked: list[float] = []
    answered: list[float] = []
    for _ in range(1 if quick else 3):
        times += await in_python(agent, 2 if quick else 4)
        for _ in range(2):
            forked.append(await least(agent, answered=False))
            answered.append(await least(agent, answered=True))
    first, whole = (statistics.median(column) for column in ([t.first for t in times], [t.whole for t in times]))
    alone, own = statistics.median(forked), statistics.median(answered)
    known = agent is not FUNCTION
    return [
        Row(
            f"save and see, {agent.name}: to the first verdict",
            f"{first:.2f} s",
            f"{FIRST_S} s" if known else "",
            first <= FIRST_S if known else None,
        ),
        Row(
            f"save and see, {agent.name}: to {RUNS} recorded runs",
            f"{whole:.2f} s: {whole / alone:.1f} times the import and the forks alone, "
            f"{whole / own:.1f} times those in which the agent answers",
            f"{ALL_S} s, 1.3 times the latter" if known else "",
            (whole <= ALL_S and whole <= 1.3 * own) if known else None,
        ),
    ]


async def programs(file: Path) -> tuple[float, float]:
    """Seconds until the first of `RUNS` processes of a Node program has ended, and until all have."""
    began = time.perf_counter()
    room = asyncio.Semaphore(os.cpu_count() or 1)
    ended: list[float] = []

    async def one() -> None:
        async with room:
            words = ["node", str(file), "Where is my order?"]
            process = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.DEVNULL)
            await process.wait()
            ended.append(time.perf_counter() - began)

    await asyncio.gather(*[one() for _ in range(RUNS)])
    return ended[0], ended[-1]


async def in_node(quick: bool) -> list[Row]:
    """The figures of a Node program, and of its processes by themselves, in turns."""
    times: list[Saved] = []
    alone: list[tuple[float, float]] = []
    for _ in range(1 if quick else 3):
        with tempfile.TemporaryDirectory() as place, serving():
            os.environ["AGENTEVAL_DATA_DIR"] = place
            named = '{kind: command, command: [node, agent.mjs, "{{prompt}}"]}'
            file = made(Path(place) / "project", "agent.mjs", NODE, named, tests=1, repeat=RUNS)
            times += await seen(file.parent, file, "//", 2 if quick else 4)
            alone += [await programs(file) for _ in range(2)]
    first, whole = (statistics.median(column) for column in ([t.first for t in times], [t.whole for t in times]))
    own_first, own_whole = (statistics.median(column) for column in zip(*alone, strict=True))
    due = own_first + BESIDE_START_S
    return [
        Row(
            "save and see, a Node program: to the first verdict",
            f"{first:.2f} s; its process alone {own_first:.2f} s",
            f"its process + {BESIDE_START_S} s",
            first <= due,
        ),
        Row(
            f"save and see, a Node program: to {RUNS} recorded runs",
            f"{whole:.2f} s: {whole / own_whole:.1f} times its processes alone",
            "",
            None,
        ),
    ]


def run(quick: bool) -> list[Row]:
    """For each agent: the first verdict, and all of them."""
    rows = [row for agent in AGENTS for row in asyncio.run(by_turns(agent, quick))]
    if shutil.which("node"):
        rows += asyncio.run(in_node(quick))
    times = asyncio.run(in_python(FUNCTION, 1 if quick else 2, tests=5 if quick else MANY_TESTS))
    matter, whole = (statistics.median(column) for column in ([t.matter for t in times], [t.whole for t in times]))
    runs = RUNS * (5 if quick else MANY_TESTS)
    rows.append(
        Row(
            f"save and see, a function, {runs:,} recorded runs: to the first {MATTER}",
            f"{matter:.2f} s; to all {whole:.1f} s",
            "",
            None,
        )
    )
    return rows
