"""What `capture: auto` costs: nothing where no model is asked, and a little with each request; and what a long run
takes, to put its transcript together and to answer it again.

    python -m benchmarks.recording [--quick]

Runs of one-line Python functions with `capture: auto` and with `none`, by turns, so that what else the machine does
weighs on both. The model is a server in a process of its own, which answers at once.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentRequest, Done, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.recording.cassette import Cassette
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.playback import Playback
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
from benchmarks.table import Row, markdown

DUE_MS = 3.0
SERVER = """\
import asyncio, json
BODY = json.dumps({"model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
    "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}).encode()
ANSWER = b"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: %d\\r\\n\\r\\n" % len(BODY) + BODY
async def answer(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\\r\\n")[0]))
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
AGENT = """\
import os, time
def silent(prompt):
    return "hello"
def asks(prompt):
    import httpx
    times = []
    with httpx.Client() as client:
        for number in range(int(prompt)):
            began = time.perf_counter()
            body = {"model": "m", "messages": [{"role": "user", "content": "word " * 400}]}
            client.post(os.environ["MODEL"], json=body).json()
            times.append(round((time.perf_counter() - began) * 1000, 3))
    return repr(times[2:])
"""


def _processor_s() -> float:
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


async def _answers(folder: Path, function: str, capture: str, prompts: list[str], env: dict[str, str]) -> list[str]:
    """What the runs of a new agent answer, eight at a time."""
    config = {"kind": "python", "callable": f"agent:{function}", "python": sys.executable, "capture": capture}
    agent = make_agent(
        "a", config, base_dir=folder, env={**os.environ, **env}, permission=permission_for((), everything=True)
    )
    room = asyncio.Semaphore(8)

    async def one(number: int, prompt: str) -> str:
        async with room:
            events = [event async for event in agent.run(AgentRequest((Message("user", prompt),), run=f"r{number}"))]
        if not isinstance(events[-1], Done):
            raise SystemExit(f"something is wrong: {events[-1]}")
        if hasattr(agent, "release"):
            agent.release(f"r{number}")
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    try:
        return await asyncio.gather(*(one(number, prompt) for number, prompt in enumerate(prompts)))
    finally:
        await agent.close()


def without_requests(folder: Path, runs: int, rounds: int) -> dict[str, float]:
    """The seconds of processor time that the runs took, by capture."""
    took: dict[str, list[float]] = {"none": [], "auto": []}
    for number in range(2 * rounds):
        capture = ("none", "auto")[number % 2]
        began = _processor_s()
        asyncio.run(_answers(folder, "silent", capture, ["hi"] * runs, {}))
        took[capture].append(_processor_s() - began)
    return {capture: min(times) for capture, times in took.items()}


def of_a_request(folder: Path, requests: int, rounds: int) -> dict[str, float]:
    """The time in ms that a tenth of the requests stay below, by capture: what else the machine does is left out."""
    took: dict[str, list[float]] = {"none": [], "auto": []}
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        env = {"MODEL": f"http://127.0.0.1:{server.stdout.readline().strip()}/v1/chat/completions"}
        for number in range(2 * rounds):
            capture = ("none", "auto")[number % 2]
            (answer,) = asyncio.run(_answers(folder, "asks", capture, [str(requests)], env))
            took[capture].append(statistics.quantiles(json.loads(answer), n=10)[0])
    finally:
        server.terminate()
        server.communicate()
    return {capture: min(times) for capture, times in took.items()}


def conversation(requests: int) -> list[Exchange]:
    """A program that asks a model until it knows enough: each request repeats what was said before."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Where are my orders?"}]
    exchanges = []
    for number in range(requests):
        call = {"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": f'{{"n": {number}}}'}}
        answer = {"role": "assistant", "content": f"I look for order {number}.", "tool_calls": [call]}
        exchanges.append(
            Exchange(
                # As a server reads it: no message is the same object as in the request before.
                Question("POST", "openai/v1/chat/completions", {}, json.loads(json.dumps({"messages": messages}))),
                Answer(200, "application/json", {"choices": [{"message": answer}]}),
                started_ms=10.0 * number,
                ended_ms=10.0 * number + 5,
            )
        )
        messages += [answer, {"role": "tool", "tool_call_id": f"c{number}", "content": f"Order {number}. " * 40}]
    return exchanges


def of_a_conversation(requests: int, rounds: int, work: Callable[[list[Exchange]], object]) -> float:
    """The seconds of processor time that some work on so many requests takes."""
    exchanges, took = conversation(requests), []
    for _ in range(rounds):
        began = time.process_time()
        work(exchanges)
        took.append(time.process_time() - began)
    return min(took)


def answered(exchanges: list[Exchange]) -> None:
    """A program that asks the same again is answered from the recording."""
    playback = Playback(Cassette(tuple(exchanges)))
    for exchange in exchanges:
        playback.answer(exchange.question)


_WORK: dict[str, Callable[[list[Exchange]], object]] = {
    "transcript of a run of {}": transcript_of,
    "  the same run answered from its recording, {}": answered,
}


def run(quick: bool = False) -> list[Row]:
    """The figures as rows of the common table."""
    runs, requests, rounds = (20, 20, 1) if quick else (200, 200, 3)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "agent.py").write_text(AGENT, "utf-8")
        (folder / "pyproject.toml").touch()
        silent, asking = without_requests(folder, runs, rounds), of_a_request(folder, requests, rounds)
    more = silent["auto"] / silent["none"] - 1
    extra = asking["auto"] - asking["none"]
    return [
        Row(
            f"`capture: auto`, {runs} runs of a function that asks no model: processor time",
            f"{silent['auto']:.2f} s ({more:+.0%} of that with `none`)",
            "< +5 %",
            more < 0.05,
        ),
        Row(
            "  a request to a model, beside the time that it takes without",
            f"{extra:.1f} ms ({asking['auto']:.1f} in place of {asking['none']:.1f})",
            f"< {DUE_MS:g} ms",
            extra < DUE_MS,
        ),
        *(
            Row(
                what.format(f"{5 * requests:,} requests, each of which repeats what was said before"),
                f"{many:.2f} s, {many / few:.0f} times that of {requests // 2}",
                "< 60 times",  # all their texts together are a hundred times as long
                many < 60 * few,
            )
            for what, work in _WORK.items()
            for few, many in [[of_a_conversation(many, rounds, work) for many in (requests // 2, 5 * requests)]]
        ),
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    print(markdown(run(parser.parse_args().quick)))
