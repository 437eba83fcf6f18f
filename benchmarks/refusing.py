"""How much longer an execution takes if a server always refuses some of its requests (429).

    python -m benchmarks.refusing [--quick]

The server is on loopback. It refuses as slowly as it answers, and asks to wait for a second. The rows differ in the
positions of the refused requests among the others.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import Collection
from pathlib import Path

from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_text
from benchmarks.table import Row, markdown

ANSWERED_S = 0.6
BEHIND = b"content-type: application/json\r\nretry-after: 1\r\ncontent-length: "
REFUSED = b'{"error": {"message": "slow down"}}'
SERVED = b'{"model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "hello"}}]}'
DUE = 1.5


def suite_text(port: int, tests: int) -> str:
    """Tests that ask for their number."""
    agent = {
        "kind": "openai",
        "base_url": f"http://127.0.0.1:{port}/v1",
        "model": "m",
        "stream": False,
        "concurrency": 16,
    }
    config = {"metrics": [{"type": "TextMatch", "contains": "hello"}]}
    criterion = {"name": "Greets", "prototype_class": "TextResponse", "config_uxon": config}
    listed = [{"id": f"t-{one}", "prompt": f"number {one}!", "criteria": [criterion]} for one in range(tests)]
    return json.dumps({"name": "Refused", "agent": "a", "agents": {"a": agent}, "tests": listed})  # JSON is YAML


async def execute(tests: int, refused: Collection[int], folder: Path) -> float:
    """The seconds for an execution, with 16 runs at once."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                asked = await reader.readexactly(int(head.partition(b"content-length:")[2].split(b"\r\n")[0]))
                refuses = any(b"number %d!" % one in asked for one in refused)
                await asyncio.sleep(ANSWERED_S)
                status, body = (b"429 Too Many Requests", REFUSED) if refuses else (b"200 OK", SERVED)
                writer.write(b"HTTP/1.1 %s\r\n%s%d\r\n\r\n%s" % (status, BEHIND, len(body), body))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    loaded = load_text(suite_text(server.sockets[0].getsockname()[1], tests), folder / "refused.suite.yaml")
    plan = make_plan([loaded], PlanOptions(concurrency=16), user_agents={})
    with Store.open(folder / "history.db") as store:
        began = time.perf_counter()
        await Engine(plan, store, lambda event: None, env={}).run()
        took = time.perf_counter() - began
        row = store.execution(plan.execution_id)
    if (row.passed, row.errors) != (tests - len(refused), len(refused)):
        raise SystemExit(f"something is wrong: {row}")
    server.close()
    return took


def run(quick: bool = False) -> list[Row]:
    """One row for each position of the refused requests."""
    tests = 32 if quick else 200
    third = tests // 4
    places = {
        "the first three": {0, 1, 2},
        "in between": {third, 2 * third, 3 * third},
        "the last three": {tests - 3, tests - 2, tests - 1},
    }
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        took = [asyncio.run(execute(tests, refused, Path(folder))) for refused in ((), *places.values(), ())]
        without = min(took[0], took[-1])
        for place, ratio in zip(places, [one / without for one in took[1:-1]], strict=True):
            what = f"{tests} runs, 3 of them always refused by a slow server ({place}), compared with none"
            rows.append(Row(what, f"{ratio:.2f} times", f"<= {DUE} times", None if quick else ratio <= DUE))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refusing")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
