"""Agents over HTTP: the cost of a run in addition to its requests, and 500 streams of 50 tokens a second each.

The server is a separate process, which writes ready-made pieces of a Chat Completions stream. The execution is a real
one, in its own process on one core; the app watches it in a pseudo-terminal.
"""

from __future__ import annotations

import asyncio
import json
import os
import pty
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import ioctl
from pathlib import Path
from termios import TIOCSWINSZ
from typing import Any

from benchmarks.table import Row

STREAMS = 500
A_SECOND = 50
SYNC = b"\x1b[?2026h"  # starts a frame: the app asks the terminal to show it at once
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


def _piece(delta: dict[str, Any], finish: str | None = None) -> bytes:
    chunk = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "bench",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }
    return _chunked(b"data: " + json.dumps(chunk).encode() + b"\n\n")


def _chunked(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


TOKEN = _piece({"content": "word "})
LAST = _piece({}, "stop") + _chunked(b"data: [DONE]\n\n") + b"0\r\n\r\n"


async def serve(listening: socket.socket) -> None:
    """Answer each request with `max_tokens` tokens, `A_SECOND` tokens a second, or at once if `seed` is 0."""
    streams: dict[asyncio.StreamWriter, list[Any]] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                asked = json.loads(await reader.readexactly(length))
                if asked.get("seed") == 0:
                    writer.write(HEAD + TOKEN * asked["max_tokens"] + LAST)
                else:
                    done = asyncio.Event()
                    writer.write(HEAD)
                    streams[writer] = [asked["max_tokens"], done]
                    await done.wait()
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            streams.pop(writer, None)
            writer.close()

    async with await asyncio.start_server(answer, sock=listening):
        began = time.perf_counter()
        for tick in range(1, 10**9):
            await asyncio.sleep(max(0.0, began + tick / A_SECOND - time.perf_counter()))
            for writer, state in list(streams.items()):
                if state[0]:
                    state[0] -= 1
                    writer.write(TOKEN)
                else:
                    writer.write(LAST)
                    del streams[writer]
                    state[1].set()


@contextmanager
def server() -> Iterator[str]:
    """Run the server in a separate process. Yields its address."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
    listening.set_inheritable(True)
    command = [sys.executable, "-m", "benchmarks.streams", "--serve", str(listening.fileno())]
    process = subprocess.Popen(command, pass_fds=[listening.fileno()], cwd=Path(__file__).parents[1])
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    finally:
        process.kill()
        process.wait()
        listening.close()


def suite_file(folder: Path, url: str, runs: int, tokens: int, seed: int) -> Path:
    """A suite of one test with `runs` repetitions, answered with `tokens` words."""
    agent = {
        "kind": "openai",
        "base_url": url,
        "model": "bench",
        "max_tokens": tokens,
        "seed": seed,
        "concurrency": 500,
    }
    config = {"metrics": [{"type": "TextMatch", "contains": "word"}]}
    criterion = {"name": "Answers", "prototype_class": "TextResponse", "config_uxon": config}
    test = {"id": "stream", "prompt": "Go on.", "repeat": runs, "criteria": [criterion]}
    suite = {"name": "Streams", "agent": "bench", "agents": {"bench": agent}, "tests": [test]}
    path = folder / "streams.suite.yaml"
    path.write_text(json.dumps(suite), encoding="utf-8")  # JSON is YAML
    return path


# The cost of a run in addition to its request


def bare(url: str, runs: int, tokens: int, at_once: int) -> float:
    """The seconds for the same requests in a plain httpx loop that joins the pieces of the answers."""
    import httpx

    async def all_of_them() -> None:
        left = iter(range(runs))
        body = {"model": "bench", "messages": [{"role": "user", "content": "Go on."}], "stream": True, "seed": 0}

        async def worker(client: httpx.AsyncClient) -> None:
            for _ in left:
                text = []
                async with client.stream("POST", f"{url}/chat/completions", json={**body, "max_tokens": tokens}) as got:
                    async for line in got.aiter_lines():
                        if line.startswith("data: {"):
                            text.append(json.loads(line[6:])["choices"][0]["delta"].get("content") or "")
                if len("".join(text).split()) != tokens:
                    raise SystemExit("the server did not answer whole")

        async with httpx.AsyncClient(trust_env=False) as client:
            await asyncio.gather(*(worker(client) for _ in range(at_once)))

    began = time.perf_counter()
    asyncio.run(all_of_them())
    return time.perf_counter() - began


def ours(url: str, runs: int, tokens: int, at_once: int) -> float:
    """The seconds for an execution of the same requests, until it is graded and on the disk."""
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.engine import Engine
    from agenteval_tui.runs.events import Event
    from agenteval_tui.runs.live_view import ExecutionView
    from agenteval_tui.runs.plan.options import PlanOptions
    from agenteval_tui.runs.plan.planner import make_plan
    from agenteval_tui.suites.load import load_suite

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        loaded = load_suite(suite_file(folder, url, runs, tokens, 0))
        plan = make_plan([loaded], PlanOptions(concurrency=at_once), user_agents={})
        view = ExecutionView()

        def watch(event: Event) -> None:
            view.apply(event)

        with Store.open(folder / "history.db") as store:
            began = time.perf_counter()
            asyncio.run(Engine(plan, store, watch, env={}).run())
            took = time.perf_counter() - began
            if store.execution(plan.execution_id).passed != runs:
                raise SystemExit("something is wrong: not every run passed")
    return took


# Many streams at once


def streaming(url: str, streams: int, seconds: float) -> dict[str, float]:
    """An execution with `streams` runs at once for this number of seconds, which the app watches in a terminal."""
    tokens = int(seconds * A_SECOND)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "AGENTEVAL_DATA_DIR": name,
            "AGENTEVAL_CONFIG_DIR": name,
            "AGENTEVAL_RUNTIME_DIR": name,
            "TERM": "xterm-256color",
        }
        os.environ.update(environment)
        from agenteval_tui.history.store import Store
        from agenteval_tui.runs.client import start
        from agenteval_tui.runs.live_registry import ExecutionRequest
        from agenteval_tui.runs.plan.options import PlanOptions

        path = suite_file(folder, url, streams, tokens, 1)
        options = PlanOptions(concurrency=streams, timeout=seconds * 20 + 60)
        frames = _Frames([str(path)], environment, str(folder / "history.db"))
        live = start(ExecutionRequest((str(path),), options, str(folder / "history.db")))
        os.sched_setaffinity(live.pid, {max(os.sched_getaffinity(0))})
        frames.watch()
        spent = 0.0
        while Path(live.socket).exists():
            spent = _cpu_s(live.pid) or spent
            time.sleep(0.05)
        repaints = frames.stop()
        with Store.open(folder / "history.db", read_only=True) as store:
            rows = store.runs_of_execution(live.execution)
        late = sorted((row.duration_ms or 0.0) / 1000 - tokens / A_SECOND for row in rows if row.status == "passed")
        if len(late) != streams:
            raise SystemExit(f"only {len(late)} of {streams} streams arrived whole")
    return {
        "late_s": statistics.median(late),
        "late_95_s": late[int(len(late) * 0.95)],
        "cpu_s": spent,
        "repaints": repaints,
    }


def _cpu_s(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Frames:
    """The app on its Run screen, in a terminal; counts the frames of the busiest second."""

    def __init__(self, arguments: list[str], environment: dict[str, str], db: str) -> None:
        master, slave = pty.openpty()
        ioctl(slave, TIOCSWINSZ, struct.pack("HHHH", 45, 140, 0, 0))
        command = [sys.executable, "-m", "agenteval_tui", "--db", db, *arguments]
        self._process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True
        )
        os.close(slave)
        self._master = master
        self._times: list[float] = []
        self._usable = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        if not self._usable.wait(30.0):
            raise SystemExit("the app did not start")

    def watch(self) -> None:
        """Go to the Run screen, which finds the running execution."""
        self._times.clear()
        os.write(self._master, b"3")

    def _read(self) -> None:
        seen = b""
        while not self._ended.is_set():
            if not select.select([self._master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self._master, 1 << 16)
            except OSError:
                return
            if b"\x1b[?2026$p" in data:
                os.write(self._master, b"\x1b[?2026;2$y")
            if not self._usable.is_set():
                seen += data
                if b"help" in seen:  # the last line
                    self._usable.set()
            self._times += [time.perf_counter()] * data.count(SYNC)

    def stop(self) -> float:
        """End the app. Returns the most frames in one second."""
        self._ended.set()
        self._thread.join()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._master)
        times = self._times
        if len(times) < 10:
            raise SystemExit("the app did not show the execution")
        return max(sum(begin <= one < begin + 1 for one in times) for begin in times)


def run(quick: bool = False) -> list[Row]:
    """The figures as rows of the common table."""
    runs, rounds, seconds, streams = (40, 1, 4.0, 20) if quick else (400, 5, 10.0, STREAMS)
    with server() as url:
        bare(url, 20, 20, 8)
        ours(url, 20, 20, 8)
        pairs = [(bare(url, runs, 20, 8), ours(url, runs, 20, 8)) for _ in range(rounds)]
        plain, whole = (statistics.median(one[which] for one in pairs) for which in (0, 1))
        many = streaming(url, streams, seconds)
    overhead = (whole - plain) / runs * 1000
    return [
        Row(
            "a run over HTTP (20 tokens, graded, stored), compared with a plain httpx loop",
            f"{whole / plain:.2f} times; {overhead:+.1f} ms a run",
            "",
            None,
        ),
        Row(
            f"{streams} agents streaming {A_SECOND} tokens/s for {seconds:g} s: how late a stream ends",
            f"{many['late_s']:.1f} s (95 % under {many['late_95_s']:.1f})",
            f"< {seconds / 10:g} s",
            many["late_s"] < seconds / 10,
        ),
        Row("  the same: processor time of the execution, one core", f"{many['cpu_s']:.1f} s", "", None),
        Row(
            "  the same: repaints of the screen in its busiest second",
            f"{many['repaints']:.0f}/s",
            "< 20/s",
            many["repaints"] < 20,
        ),
    ]


if __name__ == "__main__":
    asyncio.run(serve(socket.socket(fileno=int(sys.argv[sys.argv.index("--serve") + 1]))))
