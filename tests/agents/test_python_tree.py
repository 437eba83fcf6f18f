"""Python code of the user's runs in forks: each starts from the state right after the imports, and harms no other."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
import venv
from collections.abc import AsyncIterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from programs import lives, until

from agenteval_tui.agents.base import AgentRequest, Done, Failed, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process import orphan_reaper, python_start, python_tree
from agenteval_tui.agents.process.orphan_reaper import Listed, from_proc
from agenteval_tui.agents.process.process_tree import footprint
from agenteval_tui.agents.process.python import PythonAgent
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message, RunError
from agenteval_tui.views.traceback import traceback_block
from tests.agents.conftest import skip_without

ALLOWED = permission_for((), everything=True)
linux = pytest.mark.skipif(sys.platform != "linux", reason="on other systems, runs are seldom forks")

WHERE = """
import os
def level(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])
def levels():
    second = os.getppid()
    return f"{level(second)} {second} {os.getpid()}"
"""


class Played:
    """An agent of a module, and what its runs answer."""

    def __init__(self, folder: Path, module: str, name: str = "f", **config: Any) -> None:
        (folder / "mine.py").write_text(module, encoding="utf-8")
        (folder / "where.py").write_text(WHERE, encoding="utf-8")
        self.folder = folder
        config = {"kind": "python", "callable": f"mine:{name}", "capture": "none", **config}
        agent = make_agent("a", config, base_dir=folder, env=dict(os.environ), permission=ALLOWED)
        assert isinstance(agent, PythonAgent)
        self.agent = agent

    async def ended(self, text: str = "x") -> tuple[str, RunError | None]:
        """What a run said, and its error."""
        events = [event async for event in self.agent.run(AgentRequest((Message("user", text),)))]
        last = events[-1]
        said = "".join(event.text for event in events if isinstance(event, TextDelta))
        assert isinstance(last, Done | Failed)
        return said, last.error if isinstance(last, Failed) else None

    async def said(self, text: str = "x") -> str:
        """What a run said that went well."""
        said, error = await self.ended(text)
        assert error is None, error
        return said

    async def levels(self) -> tuple[int, int, int]:
        """The processes of level 1 and level 2, and of a run."""
        first, second, run = (await self.said("levels")).split()
        return int(first), int(second), int(run)

    @property
    def unsafe(self) -> list[tuple[str, Any]]:
        """Why runs are not forks."""
        return list(python_tree.starts()[-1].unsafe)


@pytest.fixture
async def play(tmp_path: Path) -> AsyncIterator[Any]:
    played: list[Played] = []

    def make(module: str, name: str = "f", **config: Any) -> Played:
        played.append(Played(tmp_path, module, name, **config))
        return played[-1]

    yield make
    for one in played:
        await one.agent.close()


@pytest.fixture
async def server() -> AsyncIterator[str]:
    """A server that answers "pong"."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\npong")
        await writer.drain()
        writer.close()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        yield f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"


# What packages import in a call

LAZY = """
import sys
def lazily(name):
    __import__("lazy." + name)
    return sys.modules["lazy." + name].PID
"""
LATE = "import os\nPID = os.getpid()\n"


def lazy_package(folder: Path) -> str:
    """A folder of packages with one that imports its modules when it is called."""
    place = folder / "site-packages"
    (place / "lazy").mkdir(parents=True)
    (place / "lazy" / "__init__.py").write_text(LAZY)
    (place / "lazy" / "mine.py").write_text(LATE)
    # As packages do to find out where temporary files go.
    (place / "lazy" / "plain.py").write_text(LATE + "import tempfile\ntempfile.NamedTemporaryFile().close()\n")
    (place / "lazy" / "busy.py").write_text(
        LATE + "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    )
    return str(place)


@linux
@pytest.mark.parametrize(
    ("before", "name", "ahead"),
    [
        ("", "plain", True),
        # The import may give something else after these.
        ("os.environ['LEVEL'] = 'debug'", "plain", False),
        ("sys.path.append('x')", "plain", False),
        # The project's own imports stay where they are.
        ("import lazy.mine", "mine", False),
        # A thread is in no fork.
        ("", "busy", False),
    ],
)
async def test_what_packages_import_in_a_call_is_imported_ahead_after_a_save(
    play: Any, tmp_path: Path, before: str, name: str, ahead: bool
) -> None:
    place = lazy_package(tmp_path)
    module = f"""
import os, sys, lazy
def f(prompt):
    {before}
    return f"{{lazy.lazily({name!r})}} {{os.getpid()}} {{os.getppid()}}"
"""
    played = play(module, path=[place])
    imported, own, level = (await played.said()).split()
    assert imported == own
    (tmp_path / "mine.py").write_text(module + "# saved\n")
    imported, own, other_level = (await played.said()).split()
    assert other_level != level
    assert (imported == other_level, imported == own) == (ahead, not ahead)
    assert not played.unsafe


@linux
async def test_many_modules_that_a_run_imports_are_imported_ahead_of_the_next_run(play: Any, tmp_path: Path) -> None:
    place = lazy_package(tmp_path)
    for number in range(120):
        (tmp_path / "site-packages" / "lazy" / f"part_{number}.py").write_text("")
    parts = "".join(f"import lazy.part_{number}\n" for number in range(120))
    (tmp_path / "site-packages" / "lazy" / "many.py").write_text(LATE + parts)
    module = """
import os, lazy
def f(prompt):
    return f"{lazy.lazily(prompt)} {os.getpid()} {os.getppid()}"
"""
    played = play(module, path=[place])
    imported, own, first_level = (await played.said("plain")).split()
    assert imported == own
    imported, own, level = (await played.said("many")).split()
    assert (imported, level) == (own, first_level)
    for name in ("many", "plain"):
        imported, own, level = (await played.said(name)).split()
        assert imported == level not in (own, first_level)
    # What is imported again is nothing new.
    assert (await played.said("many")).split()[2] == level


async def test_a_check_looks_for_changed_files_however_long_the_last_look_took(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who has saved a file checks the agent first: what runs then must be that file."""
    monkeypatch.setattr(python_tree, "_CHECK_FREE_S", 0.0)
    monkeypatch.setattr(python_tree, "_CHECK_SHARE", 1e-9)
    played = play("def f(prompt): return 'before'")
    assert await played.said() == "before"
    assert await played.said() == "before", "a look was taken"
    (played.folder / "mine.py").write_text("def f(prompt): return 'after it was saved'", encoding="utf-8")
    assert await played.said() == "before", "the next look would come too early"
    assert (await played.agent.check()).ok
    assert await played.said() == "after it was saved"


# Runs are apart


STATE = """
import asyncio, json, os, random, socket, sys, threading, logging
from where import levels
seen = []
lock = threading.Lock()
logging.getLogger("mine").setLevel("INFO")
os.makedirs("elsewhere", exist_ok=True)
def f(prompt):
    state = {
        "seen": list(seen), "environ": os.environ.get("LEFT"), "cwd": os.path.basename(os.getcwd()),
        "path": "/left" in sys.path, "module": "left" in sys.modules, "locked": lock.locked(),
        "threads": threading.active_count(), "sockets": sum(os.path.realpath(f"/proc/self/fd/{fd}").count("socket:")
            for fd in os.listdir("/proc/self/fd")), "level": logging.getLogger("mine").level,
        "loop": getattr(asyncio.get_event_loop_policy()._local, "_loop", None) is not None,
    }
    seen.append(prompt)
    os.environ["LEFT"] = prompt
    os.chdir("elsewhere")
    sys.path.append("/left")
    sys.modules["left"] = sys
    lock.acquire()
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    globals()["kept"] = socket.socketpair()
    logging.getLogger("mine").setLevel("ERROR")
    asyncio.set_event_loop(asyncio.new_event_loop())
    return json.dumps(state)
"""


@linux
async def test_a_run_sees_nothing_that_others_left_behind(play: Any, tmp_path: Path) -> None:
    played = play(STATE)
    first = json.loads(await played.said("a"))
    assert first == {
        "seen": [], "environ": None, "cwd": tmp_path.name, "path": False, "module": False, "locked": False,
        "threads": 1, "sockets": 1, "level": 20, "loop": False,
    }  # fmt: skip
    # The next one, and those beside each other.
    assert json.loads(await played.said("b")) == first
    beside = await asyncio.gather(*(played.said(str(number)) for number in range(6)))
    assert [json.loads(one) for one in beside] == [first] * 6
    assert played.unsafe == []


@linux
async def test_runs_are_forks_of_one_level_that_is_a_fork_of_another(play: Any) -> None:
    played = play("import os\nfrom where import levels\npid = os.getpid()\ndef f(prompt): return f'{levels()} {pid}'")
    first, second, third = [[int(one) for one in (await played.said()).split()] for _ in range(3)]
    assert first[:2] == second[:2] == third[:2]
    assert first[1] == first[3]  # the module was imported by level 2
    assert len({first[2], second[2], third[2]}) == 3
    await until(lambda: not any(lives(pid) for pid in (first[2], second[2], third[2])), "the end of the runs")
    await played.agent.close()
    await until(lambda: not any(lives(pid) for pid in first[:2]), "the end of the levels")


@pytest.mark.parametrize(
    ("before", "same"),
    [("", False), ("random.seed(7)", True), ("random.seed(7); random.seed()", False)],
)
async def test_each_run_has_random_numbers_of_its_own_unless_the_module_wants_certain_ones(
    play: Any, before: str, same: bool
) -> None:
    played = play(f"import random\n{before}\ndef f(prompt): return str(random.random())")
    numbers = {await played.said() for _ in range(3)}
    assert len(numbers) == (1 if same else 3)
    if same:
        import random

        assert numbers == {str(random.Random(7).random())}


async def test_a_file_that_the_module_holds_open_is_read_by_each_run_from_the_same_place(
    play: Any, tmp_path: Path
) -> None:
    (tmp_path / "data.txt").write_text("one\ntwo\nthree\n")
    played = play("data = open('data.txt')\ndata.readline()\ndef f(prompt): return data.readline()")
    assert [await played.said() for _ in range(3)] == ["two\n"] * 3


HARMFUL = """
import ctypes, os, resource, signal, subprocess, sys, time
from where import levels
def f(prompt):
    if prompt == "levels": return levels()
    if prompt == "exit": os._exit(3)
    if prompt == "raise": raise ValueError("no")
    if prompt == "system": sys.exit(4)
    if prompt == "abort": os.abort()
    if prompt == "much": return "y" * 100_000_000
    if prompt == "long": raise ValueError("y" * 20_000_000)
    if prompt == "crash": ctypes.string_at(0)
    if prompt == "kill": os.kill(os.getpid(), signal.SIGKILL)
    if prompt == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (600_000_000, 600_000_000))
        return str(len(bytearray(2_000_000_000)))
    if prompt == "stdout":
        sys.stdout.close(); os.close(1); os.close(2)
        return "closed"
    if prompt == "files": os.closerange(0, 1000); return "x"
    if prompt == "fork":
        if os.fork() == 0: return "child"
        return "parent"
    if prompt == "group": os.killpg(0, signal.SIGTERM); time.sleep(60)
    if prompt == "ignore": signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)
    return "well"
"""


@pytest.mark.sweep
@linux
@pytest.mark.parametrize(
    ("harm", "error"),
    [
        ("much", "gave more than 16 MB"),
        ("long", "ValueError: yyy"),
        ("crash", "SIGSEGV"),
        ("exit", "ended with exit code 3"),
        ("raise", "ValueError: no"),
        ("system", "SystemExit: 4"),
        ("abort", "SIGABRT"),
        ("kill", "SIGKILL"),
        ("memory", "MemoryError"),
        ("stdout", ""),
        ("files", "ended with exit code 1"),
        ("fork", ""),
        ("group", "SIGTERM"),
    ],
)
async def test_a_run_that_breaks_harms_no_other(play: Any, harm: str, error: str) -> None:
    played = play(HARMFUL)
    levels = await played.levels()
    beside = [asyncio.ensure_future(played.said("beside")) for _ in range(3)]
    said, failed = await played.ended(harm)
    assert (error in failed.message) if error else said in ("closed", "parent"), (said, failed)
    assert await asyncio.gather(*beside) == ["well"] * 3
    assert await played.said() == "well"
    assert (await played.levels())[:2] == levels[:2]


@linux
async def test_a_run_that_hangs_and_ignores_signals_ends_with_its_task(play: Any) -> None:
    played = play(HARMFUL)
    first, second, _ = await played.levels()
    hanging = asyncio.ensure_future(played.ended("ignore"))

    def forks() -> list[str]:
        return Path(f"/proc/{second}/task/{second}/children").read_text().split()

    await until(lambda: len(forks()) == 1, "the fork")
    (run,) = map(int, forks())
    hanging.cancel()
    await asyncio.wait([hanging])
    await until(lambda: not lives(run), "the end of the run")
    assert (await played.levels())[:2] == (first, second)


@pytest.mark.usefixtures("started_anew")  # its place is all that was called
async def test_a_crash_names_its_place(play: Any) -> None:
    played = play("import ctypes\ndef f(prompt):\n    ctypes.string_at(0)")
    _, error = await played.ended()
    assert error is not None
    assert 'mine.py", line 3 in f' in error.message
    assert "python_child" not in error.message
    assert "ctypes" not in error.message  # frames of packages push out the project's own
    assert error.traceback is not None
    (raised,) = error.traceback.exceptions
    assert raised.type == "SIGSEGV"
    assert traceback_block(error.traceback)[0] == "was ended by the signal SIGSEGV"
    assert [(one.file, one.line, one.source) for one in raised.frames if one.project] == [
        ("mine.py", 3, "ctypes.string_at(0)")
    ]


DUMPS = """
import faulthandler, os, signal
def f(prompt):
    os.write(2, b'Fatal Python error: Aborted\\n\\nCurrent thread 0x00 (most recent call first):\\n'
             b'  File "mine.py", line 1 in g\\n\\n')
    faulthandler.dump_traceback(2)
    os.kill(os.getpid(), int(prompt.split()[0]))
"""


@pytest.mark.usefixtures("started_anew")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGABRT])
async def test_only_a_fatal_signal_has_a_place(play: Any, number: signal.Signals) -> None:
    _, error = await play(DUMPS).ended(str(int(number)))
    assert error is not None
    frames = () if error.traceback is None else error.traceback.exceptions[0].frames
    fatal = [("mine.py", 7, "os.kill(os.getpid(), int(prompt.split()[0]))")] if number == signal.SIGABRT else []
    assert [(frame.file, frame.line, frame.source) for frame in frames if frame.project] == fatal


def ended(pid: int) -> bool:
    return not lives(pid)


LEAVES = """
import os, subprocess, sys, time
def start(way):
    if way == "session": return subprocess.Popen(["sleep", "600"], start_new_session=True).pid
    if way == "bare": return subprocess.Popen(["sleep", "600"], start_new_session=True, env={}).pid
    read, write = os.pipe()
    if way == "shell":
        shell = f"setsid sh -c 'sleep 600 & echo $! >&{write}; sleep 600' & sleep 0.2"
        subprocess.run(["sh", "-c", shell], pass_fds=[write], check=True)
    elif os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write, str(os.getpid()).encode())
            time.sleep(600)
        os._exit(0)
    return int(os.read(read, 20))
def f(prompt):
    yield str(start(prompt.split()[0]))
    if "waits" in prompt: time.sleep(600)
"""


@pytest.mark.sweep
@linux
@pytest.mark.parametrize("way", ["session", "bare", "shell", "daemon"])
async def test_what_a_run_leaves_behind_ends_with_it_and_not_with_others(play: Any, way: str) -> None:
    played = play(LEAVES)
    kept: list[int] = []

    async def run() -> None:
        async for event in played.agent.run(AgentRequest((Message("user", f"{way} waits"),))):
            if isinstance(event, TextDelta):
                kept.append(int(event.text))

    task = asyncio.create_task(run())
    await until(lambda: bool(kept), "the start")
    for _ in range(2):
        left = int(await played.said(way))
        await until(partial(ended, left), "the end of what the run left behind")
    assert lives(kept[0])
    task.cancel()
    await asyncio.wait([task])
    await until(lambda: not lives(kept[0]), "the end of what the cancelled run started")


@linux
@pytest.mark.parametrize("way", ["session", "shell", "daemon"])
async def test_what_a_process_that_serves_one_run_leaves_behind_ends_with_it(play: Any, way: str) -> None:
    threads = "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    left = int(await play(threads + LEAVES).said(way))
    await until(lambda: not lives(left), "the end of what the run left behind")


async def test_the_first_level_ends_also_where_runs_are_no_forks(play: Any) -> None:
    threads = "import os, threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()\n"
    played = play(threads + "def f(prompt): return str(os.getppid())")
    first = int(await played.said())
    assert played.unsafe
    assert lives(first)
    await played.agent.close()
    assert not lives(first)


@linux
async def test_a_module_that_closes_the_standard_files(play: Any) -> None:
    played = play("import os, sys\nsys.stdout.close()\nos.closerange(0, 3)\ndef f(prompt): return 'well'")
    assert await asyncio.gather(*(played.said() for _ in range(3))) == ["well"] * 3


# Levels that are killed


SLEEPS = """
import os, subprocess, time
from where import levels
def f(prompt):
    if prompt == "levels": return levels()
    if prompt == "sleep":
        child = subprocess.Popen(["sleep", "600"])
        yield f"{levels()} {child.pid}\\n"
        time.sleep(600)
    yield "well"
"""


async def _sleeping(played: Played) -> tuple[asyncio.Task[Any], list[int]]:
    pids: list[int] = []

    async def run() -> Any:
        async for event in played.agent.run(AgentRequest((Message("user", "sleep"),))):
            if isinstance(event, TextDelta):
                pids.extend(int(one) for one in event.text.split())
        return event

    task = asyncio.create_task(run())
    await until(lambda: len(pids) == 4, "the start")
    return task, pids


@linux
@pytest.mark.parametrize("which", [0, 1, 2])
async def test_nothing_is_left_of_a_level_that_is_killed_and_the_next_run_goes_well(play: Any, which: int) -> None:
    played = play(SLEEPS)
    task, pids = await _sleeping(played)
    os.kill(pids[which], signal.SIGKILL)
    if which == 0:  # level 2 goes on without it
        task.cancel()
        await asyncio.wait([task])
    else:
        last = await task
        assert isinstance(last, Failed)
        assert "SIGKILL" in last.error.message
        await until(lambda: not any(lives(pid) for pid in pids[which:]), "the end of what it had")
    assert await played.said() == "well"
    await played.agent.close()
    await until(lambda: not any(lives(pid) for pid in pids), "the end of all")


@linux
async def test_nothing_is_left_when_whoever_asked_is_killed(play: Any, tmp_path: Path) -> None:
    play(SLEEPS)
    code = """
import asyncio, os
from pathlib import Path
from agenteval_tui.agents.base import AgentRequest, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
async def main():
    config = {"kind": "python", "callable": "mine:f"}
    allowed = permission_for((), everything=True)
    agent = make_agent("a", config, base_dir=Path("."), env=dict(os.environ), permission=allowed)
    async for event in agent.run(AgentRequest((Message("user", "sleep"),))):
        if isinstance(event, TextDelta):
            print(event.text, end="", flush=True)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pids = [int(one) for one in (await process.stdout.readline()).split()]
    assert len(pids) == 4
    assert all(lives(pid) for pid in pids)
    process.kill()
    await process.wait()
    await until(lambda: not any(lives(pid) for pid in pids), "the end of all")


# Where forks would see each other


STARTS_AGAIN = """
import os, threading
def start():
    threading.Thread(target=threading.Event().wait, name="sends", daemon=True).start()
start()
os.register_at_fork(after_in_child=start)
"""
COUNTED = (
    "\nimport os\ncount = 0\ndef f(prompt):\n    global count\n    count += 1\n    return f'{os.getpid()} {count}'\n"
)


@linux
@pytest.mark.parametrize(
    ("module", "code", "detail"),
    [
        ("import threading\nthreading.Thread(target=threading.Event().wait, name='tick', daemon=True).start()",
         "threads", "tick"),
        ("import socket\npair = socket.socketpair()", "open", "a connection"),
        ("import asyncio\nloop = asyncio.new_event_loop()", "open", "an event loop"),
        ("import sqlite3\ndatabase = sqlite3.connect('shop.db')\n", "effect", "opens a database"),
        ("import multiprocessing\nlock = multiprocessing.get_context('fork').Lock()", "shared", "sem"),
        ("import tempfile\nfolder = tempfile.mkdtemp()", "effect", "makes a temporary folder"),
        ("open('state.json', 'w').write('{}')", "effect", "writes a file"),
        ("import subprocess\nsubprocess.run(['true'])", "effect", "starts a program"),
        ("import subprocess\nsubprocess.run(['git', 'init', '-q', 'x'])", "effect", "starts a program"),
        ("import subprocess\nsubprocess.run(['git', 'log', '--output=x'], check=False)", "effect", "starts a program"),
        ("import os\nread, write = os.pipe()", "open", "a pipe"),
    ],
)  # fmt: skip
async def test_runs_that_would_share_something_have_processes_that_imported_it_themselves(
    play: Any, module: str, code: str, detail: str
) -> None:
    played = play(module + COUNTED)
    runs = [(await played.said()).split() for _ in range(2)]
    runs += [one.split() for one in await asyncio.gather(played.said(), played.said(), played.said())]
    assert len({pid for pid, _ in runs}) == 5
    assert {count for _, count in runs} == {"1"}
    details = [found for one, found in played.unsafe if one == code]
    assert any(detail in (found if isinstance(found, str) else found[0]) for found in details)
    if code == "effect":
        assert details[0][2] == f"mine.py, line {2 if module.startswith('import') else 1}"
    await played.agent.close()
    await until(lambda: not any(lives(int(pid)) for pid, _ in runs), "the end of all")


@pytest.mark.parametrize(
    "module",
    [
        "import logging\nlogging.basicConfig(filename='agent.log')\n",
        "import os\nos.makedirs('out', exist_ok=True)\n",
        "import threading\nthread = threading.Thread(target=print)\nthread.start()\nthread.join()\n",
        "import asyncio\nasyncio.run(asyncio.sleep(0))\n",
        "import socket\nsocket.socketpair()[0].close()\n",
        "import subprocess\nsubprocess.run(['git', 'rev-parse', 'HEAD'], check=False, stderr=subprocess.DEVNULL)\n",
        "import subprocess\nsubprocess.run([b'uname', '-p'], check=False)\n",
        STARTS_AGAIN,
    ],
)
async def test_what_forks_may_share_does_not_keep_them_from_being_forks(play: Any, module: str) -> None:
    played = play(module + COUNTED)
    assert (await played.said()).split()[1] == (await played.said()).split()[1] == "1"
    assert played.unsafe == []


SENDER = """
import atexit, queue, threading
class Sender:
    def __init__(self):
        self.texts = queue.Queue()
        threading.Thread(target=self.run, daemon=True).start()
        atexit.register(self.texts.join)
    def run(self):
        while True:
            text = self.texts.get(timeout=60)
            open("sent.txt", "a").write(text + chr(10))
            self.texts.task_done()
"""


@linux
async def test_a_thread_of_a_package_that_waits_for_something_to_send_is_begun_anew_in_each_fork(
    play: Any, tmp_path: Path
) -> None:
    (tmp_path / "site-packages").mkdir()
    (tmp_path / "site-packages" / "sends.py").write_text(SENDER)
    module = "import sends\nsender = sends.Sender()\ndef f(prompt): sender.texts.put(prompt); return 'ok'\n"
    played = play(module, path=[str(tmp_path / "site-packages")])
    assert await asyncio.gather(*(played.said(str(number)) for number in range(4))) == ["ok"] * 4
    assert played.unsafe == []
    await until(lambda: sorted((tmp_path / "sent.txt").read_text().split()) == list("0123"), "all texts are sent")


@linux
async def test_a_pool_of_threads_that_was_made_at_import_works_in_each_fork(play: Any) -> None:
    module = """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(2)
list(pool.map(str, range(4)))
def f(prompt): return "".join(pool.map(str.upper, prompt))
"""
    played = play(module)
    assert await asyncio.gather(*(played.said("abcd") for _ in range(3))) == ["ABCD"] * 3
    assert played.unsafe == []


@linux
async def test_a_connection_that_was_kept_open_since_the_imports_is_no_connection_of_its_forks(play: Any) -> None:
    pytest.importorskip("requests")
    asked: dict[str, set[object]] = {}

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                path = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
                asked.setdefault(path, set()).add(writer)
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(path)}\r\n\r\n{path}".encode())
                await writer.drain()

    listening = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with listening:
        address = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        module = f"""
import requests
session = requests.Session()
session.trust_env = False
session.get("{address}/import")
def f(prompt): return session.get("{address}/" + prompt).text + session.get("{address}/" + prompt).text
"""
        played = play(module)
        answers = await asyncio.gather(*(played.said(str(number)) for number in range(4)))
    assert answers == [f"/{number}" * 2 for number in range(4)]
    assert played.unsafe == []
    assert all(len(connections) == 1 for connections in asked.values())
    assert len(set.union(*asked.values())) == 5


async def test_exit_handlers_run_after_an_error_too(play: Any, tmp_path: Path) -> None:
    module = (
        "import atexit, pathlib\natexit.register(pathlib.Path('left').touch)\ndef f(prompt): raise ValueError(prompt)"
    )
    _, error = await play(module).ended()
    assert error is not None
    await until((tmp_path / "left").exists, "the exit handler of a run that raised")


# With real packages


@linux
async def test_clients_that_were_made_at_import_work_in_each_fork(play: Any, server: Any) -> None:
    skip_without("httpx")
    module = f"""
import asyncio, os
import httpx
sync, later = httpx.Client(trust_env=False), httpx.AsyncClient(trust_env=False)
def f(prompt): return f"{{sync.get('{server}').text}} {{os.getpid()}}"
async def g(prompt):
    both = await asyncio.gather(later.get('{server}'), later.get('{server}'))
    return " ".join(one.text for one in both)
"""
    played = play(module)
    answers = [one.split() for one in await asyncio.gather(*(played.said() for _ in range(6)))]
    assert {word for word, _ in answers} == {"pong"}
    assert len({pid for _, pid in answers}) == 6
    assert played.unsafe == []
    other = play(module, "g")
    assert await asyncio.gather(*(other.said() for _ in range(3))) == ["pong pong"] * 3


@linux
@pytest.mark.parametrize(
    ("package", "module", "safe"),
    [
        ("opentelemetry.sdk", """
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(ConsoleSpanExporter()))
def f(prompt):
    with provider.get_tracer("mine").start_as_current_span("x"):
        pass
    provider.force_flush()
    return "ok"
""", True),
        ("grpc", """
import grpc
def f(prompt):
    grpc.insecure_channel("127.0.0.1:1").close()
    return "ok"
""", True),
        ("numexpr", """
import numexpr
def f(prompt): return "ok" if numexpr.nthreads > 1 and numexpr.evaluate("2 * 3") == 6 else ""
""", True),
        ("numpy", """
import numpy
def f(prompt):
    square = numpy.ones((300, 300))
    return "ok" if (square @ square).sum() else ""
""", True),
    ],
)  # fmt: skip
async def test_what_packages_start_does_not_break_runs(play: Any, package: str, module: str, safe: bool) -> None:
    skip_without(package)
    played = play(module)
    assert await asyncio.gather(*(played.said() for _ in range(4))) == ["ok"] * 4
    assert (played.unsafe == []) == safe, played.unsafe


async def test_numpy_has_random_numbers_of_its_own_in_each_run(play: Any) -> None:
    skip_without("numpy")
    played = play("import numpy\ndef f(prompt): return str(numpy.random.rand())")
    assert len({await played.said() for _ in range(3)}) == 3
    played = play("import numpy\nnumpy.random.seed(3)\ndef f(prompt): return str(numpy.random.rand())")
    assert len({await played.said() for _ in range(3)}) == 1


@linux
async def test_a_variable_of_one_run_alone_is_set_when_its_module_is_imported(play: Any) -> None:
    played = play("import os\nseen = os.environ.get('ONLY')\ndef f(prompt): return str(seen)")
    config = {"kind": "python", "callable": "mine:f", "env": {"ONLY": "here"}}
    request = AgentRequest((Message("user", "x"),), config=config)
    events = [event async for event in played.agent.run(request)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "here"
    assert await played.said() == "None"


# What changes


async def test_a_file_that_changed_makes_level_2_anew_and_not_level_1(play: Any, tmp_path: Path) -> None:
    (tmp_path / "prompt.txt").write_text("kind")
    (tmp_path / "helper.py").write_text("word = 'a'")
    module = """
from pathlib import Path
import helper
from where import levels
prompt_text = Path("prompt.txt").read_text()
def f(prompt): return f"{helper.word} {prompt_text} {levels()}"
"""
    played = play(module)
    answers = [(await played.said()).split()]
    for path, content in (
        ("helper.py", "word = 'other'"),
        ("prompt.txt", "strict"),
        ("mine.py", module.replace("{helper.word}", "{helper.word}!")),
    ):
        (tmp_path / path).write_text(content)
        answers.append((await played.said()).split())
    assert [one[:2] for one in answers] == [["a", "kind"], ["other", "kind"], ["other", "strict"], ["other!", "strict"]]
    assert len({one[2] for one in answers}) == 1
    assert len({one[3] for one in answers}) == 4
    (tmp_path / "unrelated.py").write_text("")
    assert (await played.said()).split()[3] == answers[-1][3]


async def test_a_module_that_is_broken_and_then_right_again(play: Any, tmp_path: Path) -> None:
    played = play("def f(prompt): return 'a'")
    assert await played.said() == "a"
    (tmp_path / "mine.py").write_text("def f(prompt) return 'b'")
    for _ in range(5):
        _, error = await played.ended()
        assert error is not None
        assert "SyntaxError" in error.message
    (tmp_path / "mine.py").write_text("def f(prompt): return 'b and more'")
    assert await played.said() == "b and more"


async def test_a_save_in_the_same_second_that_leaves_the_size_as_it_is(play: Any, tmp_path: Path) -> None:
    """Python takes bytecode for that of a source of the same second and size."""
    second = int(time.time())
    played = play("import helper\ndef f(prompt): return helper.word")
    for number, word in enumerate("abc"):
        (tmp_path / "helper.py").write_text(f"word = '{word}'")
        os.utime(tmp_path / "helper.py", ns=(second * 10**9 + number, second * 10**9 + number))
        assert await played.said() == word


async def test_an_installed_package_makes_level_1_anew(play: Any, tmp_path: Path) -> None:
    venv.create(tmp_path / "own", symlinks=True)
    (packages,) = (tmp_path / "own").glob("lib/*/site-packages")
    (packages / "outside_one.py").write_text("word = 'a'")
    (packages / "outside_two.py").write_text("from outside_one import word")
    module = "import outside_two\nfrom where import levels\ndef f(prompt): return f'{outside_two.word} {levels()}'"
    played = play(module, python="own/bin/python")
    before = (await played.said()).split()
    (packages / "outside_one.py").write_text("word = 'other'")
    (packages / "outside_one-2.dist-info").mkdir()
    after = (await played.said()).split()
    assert (before[0], after[0]) == ("a", "other")
    assert before[1] != after[1]


# Bounds

HERE = "open('here', 'w').close()"
"""A module writes this file at the place where it stays."""


async def error_at_limit(played: Played, monkeypatch: pytest.MonkeyPatch, limit: str = "START_S") -> RunError:
    """The error of a run whose limit ends a second after its module came to its place: however slow the machine is,
    it is ended there and nowhere before."""
    began = time.monotonic()
    run = asyncio.create_task(played.ended())
    await until((played.folder / "here").exists, "the place where the module stays")
    monkeypatch.setattr(python_start, limit, 1.0 if limit == "STILL_S" else time.monotonic() - began + 1.0)
    _, error = await run
    assert error is not None
    return error


async def test_imports_that_take_too_long_are_an_error_with_their_place(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = play(f"import time; {HERE}\ntime.sleep(600)\ndef f(prompt): return 'x'")
    error = await error_at_limit(played, monkeypatch)
    assert "did not end in time (mine.py, line 2)" in error.message
    assert "move that into the function" in error.fix


# A lock that is taken twice, in C, while it holds the interpreter: no signal ends that.
DEADLOCK = "import ctypes; m = ctypes.create_string_buffer(64); lock = ctypes.PyDLL(None).pthread_mutex_lock; lock(m)"


@pytest.mark.parametrize(
    ("module", "message", "function"),
    [
        (
            f"{DEADLOCK}; {HERE}\nlock(m)\ndef f(prompt): return 'x'",
            "ImportTimeout: its import did not end in time",
            "<module>",
        ),
        (f"def f():\n    {DEADLOCK}; {HERE}\n    lock(m)", "StartTimeout: it was not made in time", "f"),
    ],
)
@pytest.mark.parametrize("limit", ["START_S", "STILL_S"])
async def test_code_of_c_that_ignores_signals_is_ended_with_its_place(
    play: Any, monkeypatch: pytest.MonkeyPatch, module: str, message: str, function: str, limit: str
) -> None:
    error = await error_at_limit(play(module), monkeypatch, limit)
    line = 2 + module.startswith("def")
    assert f"{message}, and could not be interrupted (mine.py, line {line})" in error.message
    assert error.traceback is not None
    assert error.traceback.exceptions[0].frames[-1].function == function
    assert error.traceback.exceptions[0].frames[-1].source == "lock(m)"


async def test_imports_that_work_for_long_are_not_ended(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # A second without the processor is no such time, however busy the machine is. Here it works for longer than that.
    monkeypatch.setattr(python_start, "STILL_S", 1.0)
    monkeypatch.setattr(python_start, "_LOOK_S", 0.1)
    busy = "import time\nend = time.monotonic() + 1.5\nwhile time.monotonic() < end: sum(range(1000))\n"
    threads = set()

    def listed() -> dict[int, Listed]:
        threads.add(threading.get_ident())
        return from_proc()

    monkeypatch.setattr(orphan_reaper, "listed", listed)
    assert await play(f"{busy}def f(prompt): return 'ready'").said() == "ready"
    assert threading.get_ident() not in threads, "the event loop does not wait for the list of all processes"
    assert threads or sys.platform != "linux"


async def test_imports_that_take_too_long_are_tried_once(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start_s = python_start.START_S
    count = "open('count', 'a').write('x')\n"
    played = play(f"{count}import time; {HERE}\ntime.sleep(600)\ndef f(prompt): return 'x'")
    await error_at_limit(played, monkeypatch)
    for _ in range(3):
        _, error = await played.ended()
        assert error is not None
        assert "did not end in time (mine.py, line 3)" in error.message
    assert (played.folder / "count").read_text() == "x"
    monkeypatch.setattr(python_start, "START_S", start_s)
    (played.folder / "mine.py").write_text("def f(prompt): return 'well again'")
    assert await played.said() == "well again"


@pytest.mark.parametrize(
    ("module", "more"),
    [
        (f"import time\ndef f():\n    {HERE}; time.sleep(600)", {}),
        (
            f"import time\ndef make():\n    {HERE}; time.sleep(600)\ndef f(prompt): return 'x'",
            {"context": "mine:make"},
        ),
    ],
)
async def test_what_is_made_too_slowly_is_an_error_with_its_place(
    play: Any, monkeypatch: pytest.MonkeyPatch, module: str, more: dict[str, Any]
) -> None:
    error = await error_at_limit(play(module, **more), monkeypatch)
    assert "it was not made in time (mine.py, line 3)" in error.message
    assert "what it waits for" in error.fix


async def test_levels_end_after_a_time_without_work(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_tree, "IDLE_S", 0.0)
    monkeypatch.setattr(python_tree, "_CHECK_S", 0.01)
    played = play("from where import levels\ndef f(prompt): return levels()")
    first, second, _ = await played.levels()
    await until(lambda: not lives(first) and not lives(second), "the end of the levels")
    monkeypatch.setattr(python_tree, "IDLE_S", 600.0)
    again = await played.levels()
    assert again[0] != first


async def levels_of(lease: python_tree.Lease, folder: Path, target: str) -> tuple[int, int]:
    """The processes of level 1 and level 2 of a function."""
    root = python_tree.Root(folder, tuple(sorted(os.environ.items())), (("find", target),))
    async with await lease.tree(root, ALLOWED).host() as host:
        first, second, _ = (await host.call("tool", "where:levels", arguments={})).split()
    return int(first), int(second)


def write_modules(folder: Path) -> None:
    """Four modules, each with the functions f0 to f3."""
    (folder / "where.py").write_text(WHERE)
    functions = "".join(f"f{number} = lambda prompt: levels()\n" for number in range(4))
    for number in range(4):
        (folder / f"mine{number}.py").write_text(f"from where import levels\n{functions}")


async def test_there_are_only_so_many_trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_tree, "MOST_TREES", 2)
    write_modules(tmp_path)
    lease = python_tree.Lease()
    firsts = [(await levels_of(lease, tmp_path, f"mine{number}:f0"))[0] for number in range(4)]
    await until(lambda: [lives(pid) for pid in firsts] == [False, False, True, True], "the end of the older ones")
    await lease.close()
    await until(lambda: not any(map(lives, firsts)), "the end of all")


@linux
async def test_functions_of_one_module_have_one_level_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_tree, "MOST_TREES", 2)
    write_modules(tmp_path)
    lease = python_tree.Lease()
    levels = [await levels_of(lease, tmp_path, f"mine0:f{number}") for number in range(4)]
    first, seconds = levels[0][0], [second for _, second in levels]
    assert [first for first, _ in levels] == [first] * 4
    assert len(set(seconds)) == 4
    await until(lambda: [lives(pid) for pid in seconds] == [False, False, True, True], "the end of the older ones")
    assert lives(first)  # for those that are left
    other, _ = await levels_of(lease, tmp_path, "mine1:f0")
    assert other != first
    assert lives(first)
    last, _ = await levels_of(lease, tmp_path, "mine1:f1")
    assert last == other
    await until(lambda: not lives(first), "the end of a level 1 without trees")
    await lease.close()
    await until(lambda: not lives(other), "the end of all")


@linux
async def test_the_levels_and_their_memory_are_seen_from_outside(play: Any) -> None:
    played = play(SLEEPS)
    started = [await _sleeping(played) for _ in range(3)]
    tasks = [task for task, _ in started]
    first = started[0][1][0]
    used = footprint(first)  # of level 1: what level 2 and the runs have
    assert (used.levels, used.processes) == (1, 7)  # each of the three runs has started one
    assert used.mb is not None
    assert 0 < used.mb < 300
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)


async def test_what_a_run_read_is_told(play: Any, tmp_path: Path) -> None:
    (tmp_path / "later.py").write_text("word = 'x'")
    (tmp_path / "data.txt").write_text("y")
    (tmp_path / "helper.py").write_text("")
    played = play("import helper\ndef f(prompt):\n    import later\n    return later.word + open('data.txt').read()")
    assert await played.said() == "xy"
    names = {Path(path).name for path in played.agent.files}
    assert names == {"mine.py", "helper.py", "later.py", "data.txt"}


def interpreters() -> list[str]:
    """Other interpreters of this machine, as their users name them."""
    from shutil import which

    return [name for name in (f"python3.{minor}" for minor in range(8, 15)) if which(name)]


@pytest.mark.sweep
@pytest.mark.parametrize("name", interpreters())
async def test_interpreters_that_people_have(play: Any, name: str) -> None:
    version = await _version(name)
    if version is None:
        pytest.skip(f"{name} is a name without an interpreter")
    module = "import sys, asyncio\nseen = []\nasync def f(prompt):\n    seen.append(1)\n"
    played = play(module + "    return f'{sys.version_info[1]} {len(seen)}'", python=name)
    assert [await played.said() for _ in range(2)] == [f"{version} 1"] * 2
    assert played.unsafe == []


async def _version(name: str) -> str | None:
    process = await asyncio.create_subprocess_exec(
        *(name, "-c", "import sys; print(sys.version_info[1])"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, _ = await process.communicate()
    return out.decode().strip() if process.returncode == 0 else None


@pytest.mark.sweep
@linux
@pytest.mark.usefixtures("started_anew")  # what the first level has imported is the subject
@pytest.mark.parametrize(
    ("begin", "call"),
    [
        ("import anyio", "await anyio.sleep(0)"),
        ("import anyio, asyncio, warnings", "await asyncio.to_thread(print)"),
        ("import openai; client = openai.AsyncOpenAI(api_key='x')", "client.chat.completions.with_raw_response.create"),
    ],
)
async def test_runs_import_nothing_that_packages_import_at_their_first_call(play: Any, begin: str, call: str) -> None:
    skip_without(begin.split()[1].strip(",;"))
    module = f"import sys\n{begin}\nbefore = set(sys.modules)\nasync def f(prompt):\n    {call}\n"
    played = play(module + "    return ' '.join(sorted(set(sys.modules) - before)) or 'nothing'")
    assert await played.said() == "nothing"
    assert played.unsafe == []


@linux
@pytest.mark.usefixtures("started_anew")
async def test_an_agent_of_pydantic_ai_has_run_before_runs_are_forked(play: Any) -> None:
    skip_without("pydantic_ai")
    played = play("import pydantic_ai, sys\ndef f(prompt): return str('pydantic_ai.models.test' in sys.modules)")
    assert await played.said() == "True"
    assert played.unsafe == []


@linux
@pytest.mark.usefixtures("started_anew")
async def test_hooks_of_frameworks_are_added_before_runs_are_forked(play: Any) -> None:
    skip_without("pydantic_ai")
    module = "import gc\nfrom pydantic_ai import Agent\n"
    # What was there before the fork is frozen: the collector does not list it.
    module += "def f(prompt): return str((hasattr(Agent.iter, '__wrapped__'), Agent.iter in gc.get_objects()))"
    assert await play(module).said() == "(True, False)"


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="asyncio makes no event loop by itself")
async def test_what_anyio_begins_leaves_the_event_loop_of_imports_alone(play: Any) -> None:
    module = "import anyio, asyncio, warnings\nwarnings.simplefilter('ignore')\nloop = asyncio.get_event_loop()\n"
    played = play(module + "async def f(prompt): return str(asyncio.get_running_loop() is loop)")
    assert await played.said() == "True"


async def test_what_imports_used_in_their_event_loop_can_be_used_by_runs(play: Any) -> None:
    module = """
import asyncio
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
event = asyncio.Event()
async def use():
    try:
        await asyncio.wait_for(event.wait(), 0.01)
    except asyncio.TimeoutError:
        return "waited"
loop.run_until_complete(use())
async def f(prompt):
    return await use()
"""
    assert await play(module).said() == "waited"
