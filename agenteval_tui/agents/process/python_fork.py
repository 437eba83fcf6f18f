"""Requests of a process, and the forks that serve others. Runs in the child: only the standard library.

A process that forks is a level of the tree (`python_tree`). It does nothing else then, and has one thread, beside those
that packages start again in each fork.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import array
import contextlib
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_PR_SET_PDEATHSIG, _PR_SET_NAME, _PR_SET_CHILD_SUBREAPER = 1, 15, 36
_GRACE_S = 0.5  # forks of level 1 may be levels, which end their own forks first
_CHUNK = 1 << 18
_PAGE = 4096
_MORE_LIKELY = "300"  # when memory runs out, the system ends the largest of these, and not who asks
_SIGKILL, _SIGCHLD = int(signal.SIGKILL), int(signal.SIGCHLD)
_INT = array.array("i").itemsize
_SPACE = socket.CMSG_SPACE(32 * _INT)
_SOL_SOCKET, _SCM_RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)


class Requests:
    """What is asked on a socket. `next` waits for it; meanwhile, forks that end are told of."""

    def __init__(self, requests: socket.socket) -> None:
        self._socket = requests
        self._pid = os.getpid()
        self._depth = 0  # how many forks lie between this process and the first one
        self._buffer = b""
        self._lines: list[bytes] = []
        self._fds: list[int] = []  # what came with requests: for the forks that they ask for
        self._forks: dict[int, int] = {}  # by the id of their request, the processes
        self._list: int | None = None  # where the system lists the children of this process
        self._others: AbstractSet[str] = frozenset()  # children that are no forks, as `_list` has them
        self._wake: tuple[int, int] | None = None  # the pipe by which a fork's end wakes a level; None: this is none
        self._old_handler: Any = None
        self._watched = False
        self._poll: Any = None
        self._lock = threading.Lock()
        self._collects = gc.isenabled()
        self._prctl = _prctl()
        with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:  # noqa: PTH123
            # Forks inherit it.
            score.write(_MORE_LIKELY)
        self._die_with_parent(_SIGKILL)

    def next(self) -> dict[str, Any] | None:
        """The next request; None: there are no more."""
        while True:
            while self._lines:
                request = self._read(self._lines.pop(0))
                if request is not None:
                    return request
            if self._wake is None:
                more = self._receive()
            else:
                more = True
                for fd, _ in self._poll.poll():
                    if fd == self._wake[0]:
                        os.read(fd, _CHUNK)
                        self._reap()
                    else:
                        more = self._receive()
            if not more:
                self._end_forks()
                return None

    def send(self, text: str) -> None:
        """Answer. A process that code of the user's forked does not answer."""
        # A fork of the user's has a copy of this socket: it would answer in the place of this process.
        if os.getpid() != self._pid:
            os._exit(0)
        try:
            # Tools answer from several threads.
            with self._lock:
                self._socket.sendall(text.encode("ascii") + b"\n")
        except OSError:
            os._exit(1)  # nobody listens

    @property
    def forks(self) -> bool:
        """Whether this is a level."""
        return self._wake is not None

    def leads(self) -> None:
        """This process runs the user's code. Without a level that would see it, it must notice itself when it is no
        longer needed; that ends its whole group."""
        if self._watched or (self._depth and self._prctl is not None):
            return
        self._watched = True
        # The kernel would end this process alone; the thread ends the whole group.
        self._die_with_parent(0)
        threading.Thread(target=self._watch, name="agenteval", daemon=True).start()

    def new_fork(self, request: dict[str, Any]) -> tuple[int, str]:
        """(number of the new process, ""), (0, "") in the new process, or (0, why there is none).

        What the fork needs is made before: each part of the memory that it changes is copied for it, which takes most
        of its time.
        """
        if len(self._fds) < 2:
            return 0, "a fork needs a socket and a pipe"
        requests, errors = socket.socket(fileno=self._fds.pop(0)), self._fds.pop(0)
        # Only with the first fork: a process that serves by itself keeps its garbage collection and its signals.
        if self._wake is None:
            self._become_level()
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            pid, problem = -1, "the system can't fork the process: " + (error.strerror or str(error))
        if pid == 0:
            self._begin(requests, errors, parent)
            return 0, ""
        # The fork has both now. While they are open here, nobody would see that it has closed them.
        requests.close()
        os.close(errors)
        if pid < 0:
            return 0, problem
        self._forks[request["id"]] = pid
        return pid, ""

    def signal(self, fork: int, number: int, *, alone: bool = False) -> None:
        """Send a signal to a fork and its group, or to the fork `alone`."""
        pid = self._forks.get(fork)
        if pid is None:
            return
        if alone:
            os.kill(pid, number)  # it has not been waited for: the number is its own
        else:
            _kill_group(pid, number)

    def _read(self, line: bytes) -> dict[str, Any] | None:
        if not line.strip():
            return None
        try:
            request: dict[str, Any] = json.loads(line)
            if not isinstance(request["do"], str):
                raise TypeError("`do` is a text")
            return request
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            reason = "this line is not a request: " + type(error).__name__ + ": " + str(error)
            self.send(json.dumps({"id": None, "raised": reason}))
            return None

    def _receive(self) -> bool:
        try:
            data, more, _, _ = self._socket.recvmsg(_CHUNK, _SPACE)
        except OSError:
            return False
        for level, kind, sent in more:
            if level == _SOL_SOCKET and kind == _SCM_RIGHTS:
                for fd in array.array("i", sent[: len(sent) - len(sent) % _INT]):
                    # Files that come over a socket are inheritable: programs that the user's code starts would keep
                    # them open.
                    os.set_inheritable(fd, False)
                    self._fds.append(fd)
        if not data:
            return False
        *lines, self._buffer = (self._buffer + data).split(b"\n")
        self._lines += lines
        return True

    # As a level

    def _become_level(self) -> None:
        read, write = os.pipe()
        # Python wants it non-blocking: a full pipe must not hold up the handler of a signal.
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._wake = (read, write)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._poll.register(read, select.POLLIN)
        self._old_handler = _signal.signal(_SIGCHLD, _noted)
        # The end of a fork wakes the poll below. A handler in Python alone would not: `poll` goes on after a signal.
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)
        self._adopt_orphans()
        # What imports have started is no orphan of a run.
        self._others = self._children()
        # It sees the end of its socket, and ends its forks with their groups. A signal would leave those alone.
        self._die_with_parent(0)
        self._collects = self._collects or gc.isenabled()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        # Collected later, what is garbage now would be copied by each fork.
        gc.collect()
        gc.disable()
        gc.freeze()

    def _reap(self) -> None:
        for fork, pid in list(self._forks.items()):
            if _has_ended(pid):
                _kill_group(pid, _SIGKILL)  # what it left behind; its number is still its own
                _, status = os.waitpid(pid, 0)
                del self._forks[fork]
                code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                self.send('{"id": ' + str(fork) + ', "exited": ' + str(code) + "}")
        for orphan in self._children().difference(self._others, map(str, self._forks.values())):
            _end_orphan(int(orphan))

    def _children(self) -> set[str]:
        """The children of this process, which has one thread; none where the system doesn't list them."""
        if self._list is None:
            return set()
        size = _PAGE
        # Read at once: the list changes between two reads.
        while len(read := os.pread(self._list, size, 0)) == size:
            size *= 4
        return set(read.decode("ascii").split())

    def _end_forks(self) -> None:
        if self._wake is None:
            return
        # Forks of level 2 are runs, which have no forks to end first.
        until = time.monotonic() + (0 if self._depth else _GRACE_S)
        while self._forks and time.monotonic() < until:
            for fork, pid in list(self._forks.items()):
                if _has_ended(pid):
                    _kill_group(pid, signal.SIGKILL)
                    del self._forks[fork]
            time.sleep(0.002)
        for pid in self._forks.values():
            _kill_group(pid, signal.SIGKILL)

    # As a fork

    def _begin(self, requests: socket.socket, errors: int, parent: int) -> None:
        # A group of its own, by which the run is ended with all that it started; first of all, so that a signal finds
        # it.
        os.setsid()
        self._die_with_parent(_SIGKILL)
        # The parent ended before the line above: no signal will come.
        if os.getppid() != parent:
            os._exit(1)
        self._adopt_orphans()
        # The functions of `signal` look up names for what they take and give.
        _signal.set_wakeup_fd(-1)
        if self._old_handler is not None:
            _signal.signal(_SIGCHLD, self._old_handler)
        os.dup2(errors, 1)
        os.dup2(errors, 2)
        for fd in (errors, *(self._wake or ()), *self._fds, *(() if self._list is None else (self._list,))):
            os.close(fd)
        # While a fork had the level's socket open, the end of the level would not be seen at its other end.
        self._socket.close()
        self._socket = requests
        self._pid, self._depth = os.getpid(), self._depth + 1
        self._buffer, self._lines, self._fds, self._forks, self._wake = b"", [], [], {}, None
        self._list = None
        _after_fork()
        # The level disabled it, and froze what there was: a collection in the fork does not copy that memory.
        if self._collects:
            gc.enable()

    def _watch(self) -> None:
        poll = select.poll()
        # Data is left to `next`: two readers of one socket would take each other's lines.
        poll.register(self._socket, 0)  # only its end
        while not any(event & (select.POLLHUP | select.POLLERR | select.POLLNVAL) for _, event in poll.poll()):
            pass
        if os.getpid() == self._pid:
            if os.getpgrp() == self._pid:
                os.killpg(self._pid, signal.SIGKILL)
            os._exit(1)

    def will_fork(self, name: str) -> None:
        """This process is to be a level. It is named so in lists of the system (Linux; 15 bytes)."""
        if self._prctl is not None:
            self._prctl(_PR_SET_NAME, name.encode("ascii"), 0, 0, 0)
            with contextlib.suppress(OSError):  # opened here: no effect of the user's modules is seen yet
                self._list = os.open("/proc/self/task/" + str(self._pid) + "/children", os.O_RDONLY)

    def _adopt_orphans(self) -> None:
        """What its children leave behind becomes its own child (Linux), and at its end that of the level that it was
        forked from, which ends it: also what left the group."""
        if self._prctl is not None:
            self._prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def _die_with_parent(self, number: int) -> None:
        if self._prctl is not None:
            self._prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)


def _noted(number: int, frame: FrameType | None) -> None:
    return None


def _prctl() -> Callable[..., int] | None:
    if sys.platform != "linux":
        return None
    try:
        import ctypes

        return ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None


def _end_orphan(pid: int) -> None:
    """End what a run left behind. What that had started comes next: it is an orphan then."""
    _kill_group(pid, _SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, _SIGKILL)
        os.waitpid(pid, os.WNOHANG)


def open_standard() -> None:
    """Standard input, output and error are open files: else the next one that is opened would be taken for them."""
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # it gets the lowest number that is free


def _kill_group(pid: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, number)


def _has_ended(pid: int) -> bool:
    """Whether a child has ended. It is not waited for yet, so that its number stays its own."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except AttributeError:  # macOS before Python 3.13
        return bool(os.waitpid(pid, os.WNOHANG)[0] == pid)
    except OSError:
        return True


# Random numbers: each fork has its own, unless the user's modules wanted certain ones.

_seeded: set[str] = set()
_NUMPY = "numpy.random"


@contextlib.contextmanager
def watching_seeds() -> Iterator[None]:
    """Inside, it is noted if a generator is given a certain seed."""
    # What calls `random.seed(42)` at import wants the same numbers in each run; all others must differ.
    restored = [_noting(random, "random")]
    if "numpy" in sys.modules:
        with contextlib.suppress(Exception):  # numpy loads it at its first use
            restored.append(_noting(importlib.import_module(_NUMPY), _NUMPY))
    try:
        yield
    finally:
        for restore in restored:
            restore()


def _noting(module: Any, name: str) -> Callable[[], None]:
    seed = module.seed

    def noted(*arguments: object, **named: object) -> object:
        value = arguments[0] if arguments else next(iter(named.values()), None)
        (_seeded.discard if value is None else _seeded.add)(name)
        return seed(*arguments, **named)

    module.seed = noted

    def end() -> None:
        # A module may have put its own function there meanwhile.
        if module.seed is noted:
            module.seed = seed

    return end


_random_state: tuple[Any, ...] | None = None
_opened: list[tuple[int, str, int]] = []
_connections: list[int] = []


def remember(opened: list[tuple[int, str, int]], connections: list[int]) -> None:
    """Before forks: what they need of this process.

    `opened`: its open files, as (fd, path, flags); `connections`: those that are ended in a fork.
    """
    global _random_state
    _random_state = random.getstate() if "random" in _seeded else None
    _opened[:] = opened
    _connections[:] = connections


def _after_fork() -> None:
    if _random_state is not None:
        random.setstate(_random_state)  # Python gives each fork another seed
    if _NUMPY in sys.modules and _NUMPY not in _seeded:
        with contextlib.suppress(Exception):
            sys.modules[_NUMPY].seed()
    for fd, path, flags in _opened:
        # Opened again, it has a place of its own in the file.
        with contextlib.suppress(OSError):
            own = os.open(path, flags)
            os.lseek(own, os.lseek(fd, 0, os.SEEK_CUR), os.SEEK_SET)
            os.dup2(own, fd, os.get_inheritable(fd))
            os.close(own)
    for fd in _connections:
        # To the client, it looks as if the server had closed it.
        with contextlib.suppress(OSError):
            ended, other = socket.socketpair()
            os.dup2(ended.fileno(), fd, inheritable=False)
            ended.close()
            other.close()
