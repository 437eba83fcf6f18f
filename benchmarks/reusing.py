"""The cost of 8 requests at once and one after the other, for a `python` agent with `reuse`.

    python -m benchmarks.reusing [--quick]

The function is quick. Measures the processor time of this process and of all processes that it started, until their
ends, and counts these processes. On a busy machine, a call takes more than `reused.BUSY_S`, and more processes start.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
from pathlib import Path

from agenteval_tui.agents.base import AgentRequest, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
from benchmarks.table import Row, markdown


async def calls(folder: Path, number: int, at_once: int) -> int:
    """Make this number of calls. Returns the number of processes that answered."""
    config = {"kind": "python", "callable": "quick:f", "reuse": True}
    agent = make_agent("quick", config, base_dir=folder, env={}, permission=permission_for((), everything=True))
    left, answered = iter(range(number)), set()

    async def one_by_one() -> None:
        for _ in left:
            async for event in agent.run(AgentRequest((Message("user", "x"),))):
                if isinstance(event, TextDelta):
                    answered.add(event.text)

    await asyncio.gather(*(one_by_one() for _ in range(at_once)))
    await agent.close()
    return len(answered)


def measure(folder: Path, number: int, at_once: int) -> tuple[float, int]:
    """The processor time in seconds, and the number of processes."""
    before = os.times()
    processes = asyncio.run(calls(folder, number, at_once))
    after = os.times()
    return sum(after[:4]) - sum(before[:4]), processes


def run(quick: bool = False) -> list[Row]:
    """Both figures, in turns."""
    number, rounds = (100, 1) if quick else (1_000, 7)
    with tempfile.TemporaryDirectory() as name:
        Path(name, "quick.py").write_text("import os\ndef f(prompt): return str(os.getpid())\n", encoding="utf-8")
        measure(Path(name), 10, 1)
        both = [(measure(Path(name), number, 1), measure(Path(name), number, 8)) for _ in range(rounds)]
    ratio = statistics.median(eight[0] / one[0] for one, eight in both)
    seconds = statistics.median(eight[0] for _, eight in both)
    processes = statistics.median(eight[1] for _, eight in both)
    what = f"{number:,} calls of a reused function, 8 at once: processor time"
    return [Row(what, f"{seconds:.2f} s, {ratio:.2f} of one by one; {processes:g} processes", "", None)]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reusing", description="A reused function.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
