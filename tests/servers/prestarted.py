"""Processes that have imported the program before they are asked to be it: each is forked off one that has.

To start Python and to import the screens takes half a second of a processor; to fork, some milliseconds. What is forked
has arguments, an environment, a folder, standard streams, a session and signals of its own, and ends with an exit code,
as any process. For tests that look at what the program does once it runs. Where its start is the subject (imports,
options of the interpreter, streams that are closed, the installed command), a test starts it itself.

Run as a program, this is the server: it listens at the sockets of its arguments, each of another process: one that has
imported the program, or what an agent's Python imports (`forked_python.py`). Each imports when it is first asked, and
ends with its standard input.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import importlib
import io
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType, ModuleType
from typing import Any, NoReturn

WHERE = "AGENTEVAL_TESTS_PRESTARTED"
"""In the environment of all test processes: the server's socket, and what it read of its own environment."""
READ_EARLY = ("PYTHON", "LANG", "LC_", "TEXTUAL", "NO_COLOR", "FORCE_COLOR")
"""How the names begin of variables that Python or a library reads when it starts: these are the server's."""
READ_LATE = ("PYTHON_KEYRING_BACKEND", "TEXTUAL_SNAPSHOT_TEMPDIR")
OF_SCREENS = ("TEXTUAL", "NO_COLOR", "FORCE_COLOR")
"""Of these: what makes no difference to a program without a terminal."""
SERVERS_OWN = {
    "TEXTUAL_ANIMATIONS": "none", "LANG": "C.UTF-8", "PYTHONPATH": str(Path(__file__).parents[2]),
}  # fmt: skip
PYTHON = sys.executable
AGENTS_PYTHON = str(Path(__file__).parents[2] / "agenteval_tui" / "agents" / "process" / "python_child.py")
PROGRAM = "program"
"""The process that has imported the program. The others, "python ...", have what an agent's Python imports."""
FRAMEWORKS = {
    "agents": ("agents",),
    "langgraph": ("langgraph.graph", "langgraph.prebuilt"),
    "openai": ("openai",),
    "pydantic_ai": ("pydantic_ai", "pydantic_ai.models.function", "pydantic_ai.models.test"),
    "streamlit": ("streamlit.testing.v1",),
}
"""Of agents: what an agent's Python imports."""
OF_THE_LIBRARY = (
    *("asyncio", "atexit", "contextvars", "dataclasses", "email.parser", "faulthandler", "http.client", "inspect"),
    *("logging", "resource", "ssl", "tempfile", "traceback", "typing", "urllib.parse"),
)
PYTHONS = {"python": (), **{f"python {name}": modules for name, modules in FRAMEWORKS.items()}}
DIGITS = 10
MOST_PASSED = 8


def read_early(env: Mapping[str, str], *, terminal: bool = True) -> dict[str, str]:
    return {
        name: env[name]
        for name in sorted(env)
        # An LC_ that is empty is as one that is not there (POSIX, "Internationalization Variables").
        if name.startswith(READ_EARLY)
        and name not in READ_LATE
        and (env[name] or not name.startswith("LC_"))
        # Without a language Python takes this one (PEP 538).
        and (terminal or not (name.startswith(OF_SCREENS) or (name, env[name]) == ("LANG", "C.UTF-8")))
    }


@dataclass
class Prestarted:
    """A process that the server forked off. As far as it goes it is used as a `subprocess.Popen`."""

    pid: int
    _status: socket.socket = field(repr=False)
    stdin: Any = None
    stdout: Any = None
    stderr: Any = None
    returncode: int | None = None

    def fileno(self) -> int:
        """What can be read once it has ended."""
        return self._status.fileno()

    def poll(self) -> int | None:
        """What it ended with (after a signal: its number, negative). None while it runs."""
        return self._ended_within(0)

    def wait(self, timeout: float | None = None) -> int:
        """What it ends with."""
        code = self._ended_within(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return code

    def _ended_within(self, seconds: float | None) -> int | None:
        if self.returncode is None and select.select([self._status], [], [], seconds)[0]:
            self.returncode = int(self._status.recv(DIGITS, socket.MSG_WAITALL))
            self._status.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[Any, Any]:
        """What it still writes until it ends; None for a stream that is not a pipe."""
        if self.stdin is not None:
            self.stdin.close()
        texts: dict[str, Any] = {}
        streams = {"stdout": self.stdout, "stderr": self.stderr}
        readers = [
            threading.Thread(target=lambda name=name, stream=stream: texts.update({name: stream.read()}))
            for name, stream in streams.items()
            if stream is not None
        ]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        self.wait(timeout)
        return texts.get("stdout"), texts.get("stderr")

    def __enter__(self) -> Prestarted:
        return self

    def __exit__(self, *exception: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                stream.close()
        self.wait()


def start(
    argv: Sequence[str],
    env: Mapping[str, str],
    streams: Sequence[int],
    *,
    terminal: bool,
    session: bool = False,
    passed: Sequence[int] = (),
    folder: Path | None = None,
    of: str = PROGRAM,
) -> Prestarted | None:
    """Run `python ARGV...` with these three streams, and what is `passed` by its numbers, in a `session` of its own if
    that is wanted, or if they are a `terminal`; in this folder, or in that of this process. It is forked off `of`.

    None if there is no server, or its environment is another one where that matters: start it yourself.
    """
    servers = json.loads(os.environ.get(WHERE, "null"))
    if servers is None:
        return None
    where = servers["program" if of == PROGRAM else "python"]
    if read_early(env, terminal=terminal) != read_early(where["env"], terminal=terminal):
        return None
    server = socket.socket(socket.AF_UNIX)
    server.connect(f"{servers['folder']}/{of}")
    asked = json.dumps(
        {
            "argv": list(argv),
            "env": dict(env),
            "folder": str(folder or Path.cwd()),
            "terminal": terminal,
            "session": session or terminal,
            "numbers": [0, 1, 2, *passed],
        }
    ).encode()
    socket.send_fds(server, [len(asked).to_bytes(4, "big")], [*streams, *passed])
    server.sendall(asked)
    return Prestarted(int(server.recv(DIGITS, socket.MSG_WAITALL)), server)


def popen(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: Any = None,
    stdout: Any = None,
    stderr: Any = None,
    text: bool = False,
    start_new_session: bool = False,
    pass_fds: Sequence[int] = (),
) -> Prestarted | subprocess.Popen[Any]:
    """As `subprocess.Popen`, of a command that the server can fork off; of any other it is that.

    In an `env` that says nothing of it, the PYTHONPATH is the server's: this checkout.
    """
    env = {"PYTHONPATH": SERVERS_OWN["PYTHONPATH"], **(os.environ if env is None else env)}
    mine: dict[str, int] = {}  # our ends of pipes
    theirs: list[int] = []
    opened: list[int] = []

    def end(name: str, wanted: Any, number: int) -> int:
        if wanted is None:
            return number
        if wanted == subprocess.STDOUT:
            return theirs[1]
        if wanted == subprocess.DEVNULL:
            opened.append(os.open(os.devnull, os.O_RDWR))
        elif wanted == subprocess.PIPE:
            reading, writing = os.pipe()
            mine[name], its = (writing, reading) if name == "stdin" else (reading, writing)
            opened.append(its)
        else:
            return wanted if isinstance(wanted, int) else wanted.fileno()
        return opened[-1]

    started = None
    if command[0] == PYTHON:
        for number, (name, wanted) in enumerate({"stdin": stdin, "stdout": stdout, "stderr": stderr}.items()):
            theirs.append(end(name, wanted, number))
        try:
            started = start(
                command[1:], env, theirs, terminal=False, session=start_new_session, passed=pass_fds, folder=cwd
            )
        finally:
            for number in opened:
                os.close(number)
    if started is None:
        for number in mine.values():
            os.close(number)
        return subprocess.Popen(
            command, env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, text=text,
            start_new_session=start_new_session, pass_fds=pass_fds,
        )  # fmt: skip
    for name, number in mine.items():
        mode = ("w" if name == "stdin" else "r") + ("" if text else "b")
        setattr(started, name, open(number, mode))  # noqa: SIM115
    return started


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`, of a command that the server can fork off: its text, and no error for what it ended with."""
    with popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options) as process:
        out, errors = process.communicate()
    return subprocess.CompletedProcess(command, process.returncode or 0, out, errors)


AGENTEVAL = ("-P", "-m", "agenteval_tui")
"""The words of Python that are the installed command."""


def stand_in(folder: Path, name: str = "agenteval", words: Sequence[str] = AGENTEVAL) -> Path:
    """A command of this name in this folder that is forked off, as `python WORDS...`: for what shells and builders call
    by its name. Without words it is a `python`."""
    file = folder / name
    servers = str(Path(__file__).parent)
    lines = (
        f"#!{PYTHON} -IS",
        f"import sys; sys.path.insert(0, {servers!r})",
        f"import prestarted; prestarted.stand_in_for(*{tuple(words)!r}, *sys.argv[1:])",
    )
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o755)
    return file


def stand_in_for(*words: str) -> NoReturn:
    """Be `python WORDS...`, in a process that is forked off, until its end."""
    env = {**os.environ, "PYTHONPATH": SERVERS_OWN["PYTHONPATH"]}
    made = start(words, env, [0, 1, 2], terminal=False)
    if made is None:
        os.execve(sys.executable, [sys.executable, *words], env)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: os.kill(made.pid, got))
    code = made.wait()
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code)


@contextmanager
def server() -> Iterator[None]:
    """The server, for this process and all that it starts."""
    no_test_has = (*OF_SCREENS, "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")  # see conftest.py
    plain = {name: value for name, value in os.environ.items() if not name.startswith(no_test_has)}
    env = plain | SERVERS_OWN
    with TemporaryDirectory(prefix="ae-") as folder, ExitStack() as running:
        for own, options, names in ((env, [], [PROGRAM]), (plain, ["-P"], PYTHONS)):
            sockets = {name: running.enter_context(socket.socket(socket.AF_UNIX)) for name in names}
            for name, listening in sockets.items():
                listening.bind(f"{folder}/{name}")
                listening.listen(64)
            files = [listening.fileno() for listening in sockets.values()]
            words = [f"{name}={file}" for name, file in zip(names, files, strict=True)]
            command = [sys.executable, *options, __file__, *words]
            running.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, env=own, pass_fds=files))
        servers = {"program": env, "python": plain}
        os.environ[WHERE] = json.dumps(
            {"folder": folder} | {name: {"env": read_early(its)} for name, its in servers.items()}
        )
        yield
        del os.environ[WHERE]


def import_all(name: str) -> None:
    """What is imported ahead."""
    if name == PROGRAM:
        import_program()
    else:
        import_of_agents(PYTHONS[name])
    gc.collect()
    gc.freeze()


def import_of_agents(modules: Sequence[str]) -> None:
    """What an agent's Python imports, and most modules of agents: no client of HTTP, as its import is looked at."""
    CODE[AGENTS_PYTHON] = compile(Path(AGENTS_PYTHON).read_bytes(), AGENTS_PYTHON, "exec")
    for module in (*OF_THE_LIBRARY, *modules):
        importlib.import_module(module)


def import_program() -> None:
    """What the program imports until its screens are shown."""
    import pkgutil

    import agenteval_tui.cli.commands
    import agenteval_tui.runs
    import agenteval_tui.tui

    for package in (agenteval_tui.cli.commands, agenteval_tui.runs, agenteval_tui.tui):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    import forked_python

    forked_python.take()


def serve_all(sockets: dict[str, socket.socket]) -> dict[str, Any]:
    """Fork, for each socket once it is asked, a process that serves it. Gives what `serve` does."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those that wait
    while True:
        asked, _, _ = select.select([*sockets.values(), 0], [], [])
        if 0 in asked:
            os._exit(0)
        for name in [name for name, listening in sockets.items() if listening in asked]:
            if len(sockets) == 1 or os.fork() == 0:
                return serve(name, sockets[name])
            sockets.pop(name).close()


def serve(name: str, listening: socket.socket) -> dict[str, Any]:
    """Fork for each that asks. Gives, in the process that is to be the program, what was asked."""
    ready = False
    while True:
        found, _, _ = select.select([listening, 0], [], [])
        if 0 in found:
            os._exit(0)
        if not ready:
            import_all(name)
            ready = True
        asking, _ = listening.accept()
        head, streams, _, _ = socket.recv_fds(asking, 4, MOST_PASSED)
        if os.fork() == 0:
            listening.close()
            asked = json.loads(asking.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
            return fork_again(asking, streams, asked)
        asking.close()
        for stream in streams:
            os.close(stream)


def fork_again(asking: socket.socket, streams: Sequence[int], asked: dict[str, Any]) -> dict[str, Any]:
    """A process of its own for the program, and this one waits for it and tells how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    leads, led = os.pipe()
    pid = os.fork()
    os.close(led if pid else leads)
    if pid:
        for stream in (0, 1, 2, *streams):
            os.close(stream)
        os.read(leads, 1)  # whoever is told its number may send its group a signal
        asking.send(f"{pid:{DIGITS}}".encode())
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        asking.send(f"{code:{DIGITS}}".encode())
        os._exit(0)
    asking.close()
    if asked["session"]:
        os.setsid()
    os.close(led)
    if asked["terminal"]:
        import termios

        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # as a shell has it, also where tests run under nohup
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
    above = max(asked["numbers"]) + 1
    aside = [fcntl.fcntl(stream, fcntl.F_DUPFD_CLOEXEC, above) for stream in streams]
    for stream in streams:
        os.close(stream)
    for stream, number in zip(aside, asked["numbers"], strict=True):
        os.dup2(stream, number)
        os.close(stream)
    return asked


def be(asked: dict[str, Any]) -> NoReturn:
    """Go on as the program, to its end.

    Python's own end is left out: to take 800 modules apart costs more than all else here.
    """
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["env"])
    for name, number in (("stdin", 0), ("stdout", 1), ("stderr", 2)):
        old = getattr(sys, name)
        raw: Any = open(number, "rb" if number == 0 else "wb", -1, closefd=False)  # noqa: SIM115
        new = io.TextIOWrapper(raw, old.encoding, old.errors, line_buffering=number == 2 or raw.isatty())
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)
    try:
        run_python(*asked["argv"])
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


def run_python(first: str, *words: str) -> None:
    """What `python FIRST WORDS...` runs."""
    if first == "-P" and words[0] != "-m":
        run_script(*words)
    elif first == "-P":
        del sys.path[0]
        sys.argv = ["", *words[2:]]
        runpy.run_module(words[1], run_name="__main__", alter_sys=True)
    elif first == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = ["", *words[1:]]
        runpy.run_module(words[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.path[0] = ""
        sys.argv = ["-c", *words[1:]]
        main = ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(compile(words[0], "<string>", "exec"), vars(main))
    else:
        sys.path[0] = str(Path(first).parent)
        sys.argv = [first, *words]
        runpy.run_path(first, run_name="__main__")


CODE: dict[str, CodeType] = {}
"""Scripts that were compiled ahead."""


def run_script(file: str, *words: str) -> None:
    """What `python -P FILE WORDS...` runs: Python compiles a script whenever it starts."""
    sys.argv = [file, *words]
    main = ModuleType("__main__")
    main.__file__ = file
    sys.modules["__main__"] = main
    exec(CODE.get(file) or compile(Path(file).read_bytes(), file, "exec"), vars(main))


if __name__ == "__main__":
    named = dict(word.split("=") for word in sys.argv[1:])
    be(serve_all({name: socket.socket(fileno=int(file)) for name, file in named.items()}))
