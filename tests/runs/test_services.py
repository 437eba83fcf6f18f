"""Services of suites and agents: real programs on this machine."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentRequest, Done, TextDelta
from agenteval_tui.history.store import Store
from agenteval_tui.runs.around.record import decoded
from agenteval_tui.runs.events import Command, ServiceChanged
from agenteval_tui.transcripts.model import ErrorCode

from .conftest import Scripts

ENV = {"PATH": os.environ["PATH"]}
SERVER = """
import http.server, os, sys
open('pid', 'a').write(f'{os.getpid()}\\n')
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(204 if self.path == '/health' else 404)
        self.end_headers()
    def do_POST(self):
        os._exit(9)
print('listening', flush=True)
http.server.HTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"""
SUITE = """
name: Shop
agent: bot
agents:
  bot: {{kind: scripted}}
services:
{services}
tests:
  - id: hello
    prompt: Say hello
    repeat: 3
    criteria:
      - {{name: a, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: hello}}]}}}}
"""


@pytest.fixture
def port() -> int:
    """A port that is free."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        number: int = one.getsockname()[1]
        return number


@pytest.fixture
def shop(tmp_path: Path, execution: Callable[..., Any], port: int) -> Callable[..., Any]:
    """An execution whose suite has these services. PORT and PY stand for the port and Python."""
    (tmp_path / "server.py").write_text(SERVER)

    def make(services: str, text: str = SUITE, **options: Any) -> Any:
        services = services.replace("PORT", str(port)).replace("PY", sys.executable)
        return execution(text.format(services=services), env=options.pop("env", ENV), trust=True, **options)

    return make


WEB = '  web: {command: [PY, server.py, "PORT"], ready: {url: "http://127.0.0.1:PORT/health"}}'


def pids(tmp_path: Path) -> list[int]:
    """The services that were started."""
    file = tmp_path / "pid"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def lives(pid: int) -> bool:
    """Whether a process has not ended."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"


def record(made: Any) -> Any:
    """What is stored of the services."""
    made.store.flush()
    return decoded(made.store.around_of(made.engine.plan.execution_id))


@pytest.mark.parametrize("ready", ['url: "http://127.0.0.1:PORT/health"', "port: PORT", "log: list.n"])
async def test_a_service_is_there_before_the_first_run_and_ends_with_the_last(
    shop: Any, scripts: Scripts, tmp_path: Path, port: int, ready: str
) -> None:
    async def asks(request: AgentRequest) -> Any:
        assert lives(pids(tmp_path)[0])
        yield TextDelta("hello")
        yield Done()

    scripts.script = asks
    made = shop(f'  web: {{command: [PY, server.py, "PORT"], ready: {{{ready}}}}}')
    ended = await made.run()
    assert (ended.status, ended.message, set(made.statuses().values())) == ("finished", "", {"passed"})
    (pid,) = pids(tmp_path)
    assert not lives(pid)
    (web,) = record(made).services
    assert (web.name, web.status) == ("web", "ended")
    assert web.ready_ms > 0
    # Python writes the end of a line apart from the line: the service may be ended between the two.
    assert web.output.splitlines()[0] == "listening"
    assert [one.status for one in made.of(ServiceChanged)] == ["starting", "ready", "ended"]


async def test_services_of_an_agent(shop: Any, execution: Any, tmp_path: Path, port: int) -> None:
    text = SUITE.replace("services:\n{services}\n", "").replace(
        "{{kind: scripted}}",
        f'{{{{kind: demo, services: {{{{web: {{{{command: [{sys.executable}, server.py, "{port}"], '
        f"ready: {{{{port: {port}}}}}}}}}}}}}}}}}",
    )
    made = execution(text.format(), env=ENV, trust=True)
    await made.run()
    (pid,) = pids(tmp_path)
    assert not lives(pid)
    assert [one.name for one in record(made).services] == ["web"]


async def test_a_service_waits_for_the_one_before_it(shop: Any, tmp_path: Path) -> None:
    second = "  second: {command: [sh, -c, 'cat pid > seen; echo ok; exec sleep 60'], ready: {log: ok}}"
    made = shop(f"{WEB}\n{second}")
    assert (await made.run()).status == "finished"
    assert (tmp_path / "seen").read_text() == (tmp_path / "pid").read_text()


@pytest.mark.parametrize(
    ("service", "why", "said"),
    [
        ("{command: [sh, -c, 'echo no database >&2; exit 3'], ready: {port: PORT}}", "exit",
         "ended with exit code 3 before it was ready: no database"),
        ("{command: [sleep, '60'], ready: {port: PORT}, timeout: 0.3}", "timeout",
         "was not ready within 0.3 s: port PORT is closed"),
        ("{command: [sh, -c, 'echo here; exec sleep 60'], ready: {log: there}, timeout: SHORT}", "timeout",
         "no line of its output matches 'there': here"),
        ("{command: [PY, server.py, 'PORT'], ready: {url: 'http://127.0.0.1:PORT/no'}, timeout: SHORT}", "timeout",
         "http://127.0.0.1:PORT/no answered 404"),
        ("{command: [no-such-program], ready: {port: PORT}}", "start", "there is no program 'no-such-program' in PATH"),
        ("{command: [sleep, '1'], cwd: missing, ready: {port: PORT}}", "start", "does not exist"),
    ],
    ids=["exits", "never", "no-line", "404", "missing", "no-folder"],
)  # fmt: skip
async def test_a_service_that_is_not_there_ends_the_execution(
    shop: Any, scripts: Scripts, tmp_path: Path, port: int, service: str, why: str, said: str
) -> None:
    # On a busy machine the time may be over before it has said something.
    for seconds in ("1", "10", "100"):
        made = shop(f"  web: {service}".replace("SHORT", seconds), concurrency=1)
        ended = await made.run()
        if "SHORT" not in service or said.replace("PORT", str(port)) in ended.message:
            break
    assert ended.status == "failed"
    assert ended.message.startswith("the service web ")
    assert said.replace("PORT", str(port)) in ended.message
    statuses = list(made.statuses().values())
    assert (statuses.count("error"), statuses.count("queued")) == (1, 2), "the others can be resumed"
    transcript = made.store.transcript(made.store.runs_of_execution(made.engine.plan.execution_id)[0].id)
    error = transcript.error
    assert (error.kind, error.code, error.fields["why"]) == ("setup", ErrorCode.SERVICE, why)
    assert error.fix
    assert scripts.requests == []
    assert record(made).services[0].status == "failed"
    assert not any(map(lives, pids(tmp_path)))


@pytest.fixture
def taken(port: int) -> Iterator[socket.socket]:
    """Another program listens there."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", port))
        one.listen()
        yield one


async def test_a_port_that_is_taken_is_said(shop: Any, taken: socket.socket, port: int, tmp_path: Path) -> None:
    made = shop("  web: {command: [PY, server.py, 'PORT'], ready: {port: PORT}}")
    ended = await made.run()
    assert ended.status == "failed"
    assert f"port {port} of 127.0.0.1 is taken by another program" in ended.message
    assert "reuse_existing: true" in ended.message
    assert pids(tmp_path) == [], "it was not started"


async def test_what_is_there_already_can_be_used(shop: Any, taken: socket.socket, tmp_path: Path) -> None:
    made = shop("  web: {command: [PY, server.py, 'PORT'], ready: {port: PORT}, reuse_existing: true}")
    assert (await made.run()).status == "finished"
    assert set(made.statuses().values()) == {"passed"}
    assert pids(tmp_path) == []
    assert record(made).services[0].status == "reused"


async def test_a_service_that_dies_ends_the_execution(shop: Any, scripts: Scripts, tmp_path: Path, port: int) -> None:
    async def kill_it(request: AgentRequest) -> Any:
        yield TextDelta("hello")
        os.kill(pids(tmp_path)[0], signal.SIGTERM)
        await asyncio.Event().wait()

    scripts.script = kill_it
    made = shop(WEB, concurrency=1)
    ended = await made.run()
    assert ended.status == "failed"
    assert "the service web ended while it was needed: it was ended by the signal SIGTERM: listening" in ended.message
    assert sorted(made.statuses().values()) == ["error", "queued", "queued"]
    row = made.store.runs_of_execution(made.engine.plan.execution_id)[0]
    assert made.store.transcript(row.id).error.code == ErrorCode.SERVICE
    assert record(made).services[0].status == "died"


FAILING = """
import http.server, sys, time, traceback
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        what = self.rfile.read(int(self.headers['content-length'])).decode()
        try:
            answer(what)
        except Exception:
            # As uvicorn: the answer goes out before what was raised is written.
            self.send_response(500); self.send_header('content-length', '0'); self.end_headers()
            self.wfile.flush(); time.sleep(0.05)
            traceback.print_exc()
def answer(what):
    return {}['deep' if 'deep' in what else 'flat']
print('listening', flush=True)
http.server.ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
"""
BEHIND = """
name: Shop
agent: desk
agents:
  desk: {{kind: http, url: "http://127.0.0.1:PORT/", max_attempts: 1, body: {{message: "{{{{ prompt }}}}"}}, answer: a}}
services:
{services}
tests:
  - id: deep
    prompt: deep
    criteria: &answers
      - {{name: a, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: hello}}]}}}}
  - {{id: flat, prompt: flat, criteria: *answers}}
"""


@pytest.fixture
def behind(shop: Any, tmp_path: Path, port: int) -> Callable[..., Any]:
    """An execution of an agent behind a server that raises."""
    (tmp_path / "failing.py").write_text(FAILING)

    def make(concurrency: int = 1) -> Any:
        text = BEHIND.replace("PORT", str(port))
        service = "  web: {command: [PY, failing.py, 'PORT'], ready: {port: PORT}}"
        return shop(service, text, concurrency=concurrency)

    return make


async def test_what_a_server_raised_is_the_error_of_the_run(behind: Any) -> None:
    made = behind()
    await made.run()
    for row in made.store.runs_of_execution(made.engine.plan.execution_id):
        transcript = made.store.transcript(row.id)
        error = transcript.error
        assert (error.kind, error.code, error.fields["status"]) == ("server", ErrorCode.STATUS, 500)
        assert f"; the service web raised KeyError: '{row.test_id}' (failing.py, line " in error.message
        (raised,) = error.traceback.exceptions
        assert [(frame.file, frame.function) for frame in raised.frames] == [
            ("failing.py", "do_POST"),
            ("failing.py", "answer"),
        ]
        (printed,) = transcript.output
        assert (printed.source, printed.logger) == ("log", "web")
        assert printed.text.endswith(f"KeyError: '{row.test_id}'\n")


async def test_what_a_server_raised_for_one_of_two_runs_is_not_said_of_the_other(behind: Any) -> None:
    """Both run at once, and each sees what the server printed for both."""
    made = behind(concurrency=2)
    await made.run()
    for row in made.store.runs_of_execution(made.engine.plan.execution_id):
        error = made.store.transcript(row.id).error
        other = {"deep": "flat", "flat": "deep"}[row.test_id]
        assert f"KeyError: '{other}'" not in error.message
        assert error.traceback is None or f"'{row.test_id}'" in error.traceback.exceptions[0].message


async def test_what_a_server_raised_before_it_was_ready_is_the_error(shop: Any, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def load():\n    open('missing/' + 100 * 'x')\n\n\nload()\n")
    made = shop("  web: {command: [PY, broken.py], ready: {port: PORT}}", concurrency=1)
    ended = await made.run()
    assert "exit code 1 before it was ready: FileNotFoundError: " in ended.message
    assert "(broken.py, line 2)" in ended.message
    row = made.store.runs_of_execution(made.engine.plan.execution_id)[0]
    (raised,) = made.store.transcript(row.id).error.traceback.exceptions
    assert [frame.function for frame in raised.frames] == ["<module>", "load"]


async def test_a_package_that_a_server_lacks_is_said_with_what_installs_it(shop: Any, tmp_path: Path) -> None:
    (tmp_path / "lacking.py").write_text("import package_that_nobody_has\n")
    made = shop("  web: {command: [PY, lacking.py], ready: {port: PORT}}", concurrency=1)
    await made.run()
    row = made.store.runs_of_execution(made.engine.plan.execution_id)[0]
    error = made.store.transcript(row.id).error
    assert error.traceback.exceptions[0].type == "ModuleNotFoundError"
    assert f"{sys.executable} -m pip install package_that_nobody_has" in error.fix, error.fix


async def test_a_cancelled_execution_leaves_nothing_running(shop: Any, scripts: Scripts, tmp_path: Path) -> None:
    async def waits(request: AgentRequest) -> Any:
        yield TextDelta("hello")
        await asyncio.Event().wait()

    scripts.script = waits
    made = shop(WEB)
    running = asyncio.ensure_future(made.run())
    await made.until(lambda: scripts.requests)
    made.engine.command(Command("cancel"))
    assert (await running).status == "cancelled"
    assert not lives(pids(tmp_path)[0])


async def test_a_cancelled_execution_ends_a_service_that_starts(shop: Any, tmp_path: Path) -> None:
    made = shop("  web: {command: [sh, -c, 'echo $$ > pid; exec sleep 60'], ready: {port: PORT}}")
    running = asyncio.ensure_future(made.run())
    await made.until(lambda: pids(tmp_path))
    made.engine.command(Command("cancel"))
    assert (await running).status == "cancelled"
    assert not lives(pids(tmp_path)[0])


async def test_a_service_starts_only_if_a_run_needs_it(shop: Any, tmp_path: Path) -> None:
    made = shop(WEB)
    made.engine.command(Command("cancel"))
    await made.run()
    assert pids(tmp_path) == []


async def test_output_is_bounded_and_without_secrets(shop: Any) -> None:
    loud = "{command: [sh, -c, 'yes $SHOP_API_KEY | head -c 400000; echo ok; exec sleep 60'], ready: {log: ok}}"
    made = shop(f"  loud: {loud}", env={**ENV, "SHOP_API_KEY": "sk-very-secret-1234"})
    await made.run()
    (service,) = record(made).services
    assert len(service.output) <= 64 * 1024
    assert service.output.endswith("ok\n")
    assert "sk-very-secret" not in service.output


async def test_the_time_until_it_is_ready_is_not_the_runs(shop: Any) -> None:
    made = shop("  slow: {command: [sh, -c, 'sleep 2.2; echo ok; exec sleep 60'], ready: {log: ok}}", timeout=2)
    assert (await made.run()).status == "finished"
    rows = made.store.runs_of_execution(made.engine.plan.execution_id)
    assert {row.status for row in rows} == {"passed"}
    assert all(row.duration_ms < 2000 for row in rows)


KILLED = """
import asyncio, sys
from pathlib import Path
from agenteval_tui.history.store import Store
from agenteval_tui.runs.engine import Engine
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.plan.planner import make_plan
from agenteval_tui.suites.load import load_suite
plan = make_plan([load_suite(sys.argv[1])], PlanOptions(trust=True), user_agents={})
store = Store.open(sys.argv[2])
asyncio.run(Engine(plan, store, lambda event: print(event.type, flush=True)).run())
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system hides environments")
def test_nothing_is_left_of_a_killed_execution(tmp_path: Path, port: int) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    hook = "[sh, -c, 'echo $$ >> pid; echo > begun; exec sleep 60']"
    suite = tmp_path / "s.suite.yaml"
    text = SUITE.replace("{{kind: scripted}}", "{{kind: demo}}").replace("repeat: 3", f"before: [{hook}]")
    suite.write_text(text.format(services=WEB.replace("PORT", str(port)).replace("PY", sys.executable)))
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(suite), str(tmp_path / "h.db")], stdout=subprocess.PIPE, text=True
    )
    try:
        _until(lambda: (tmp_path / "begun").exists())
    finally:
        child.kill()
        child.wait()
    assert len(pids(tmp_path)) == 2
    _until(lambda: not any(map(lives, pids(tmp_path))))


def _until(condition: Callable[[], object]) -> None:
    """Wait until it holds, at most 30 s."""
    import time

    end = time.monotonic() + 250
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)


def test_a_store_without_the_record_has_none(store: Store) -> None:
    assert decoded(store.around_of("nothing")) == decoded("")
