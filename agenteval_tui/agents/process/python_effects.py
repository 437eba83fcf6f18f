"""What imports did beside defining things: what they read, and what forks would share. Runs in the child: only the
standard library, of Python 3.8 or later.

A fork shares with its parent, and with all other forks: connections, event loops, locks in shared memory, and what the
parent did to files. It does not have the parent's threads. Runs that are forks would see each other through the
former, and miss the latter.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import socket
import stat
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType, ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120
_OURS = (_HERE + os.sep, os.path.dirname(os.path.dirname(_HERE)) + os.sep + "extensions" + os.sep)  # noqa: PTH120
"""This folder, and that of readers of frameworks."""
_STDLIB = os.path.dirname(os.path.abspath(os.__file__))  # noqa: PTH100, PTH120
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_SYSTEM = ("/proc/", "/sys/", "/usr/", "/lib", "/etc/")
_FRAMEWORKS = "/System/Library/Frameworks/"
_HTTP = ("http.client", "httpcore", "urllib3")
_MOST = 2_000
"""Files of data, folders and hosts of a project."""
_MOST_EFFECTS = 20
_SQLITE = b"SQLite format 3\0"
_EFFECTS = {
    "tempfile.mkstemp": "makes a temporary file",
    "tempfile.mkdtemp": "makes a temporary folder",
    "sqlite3.connect": "opens a database",
    "subprocess.Popen": "starts a program",
    "os.system": "starts a program",
    "os.posix_spawn": "starts a program",
    "os.fork": "forks",
    "os.forkpty": "forks",
    "os.remove": "removes a file",
    "os.rename": "renames a file",
    "os.rmdir": "removes a folder",
    "os.truncate": "changes a file",
    "shutil.rmtree": "removes a folder",
    "shutil.copyfile": "writes a file",
    "shutil.move": "moves a file",
}
# Programs that only look something up. Packages that watch an agent start them for its version and its machine.
_LOOKING = ("arch", "getconf", "id", "locale", "lsb_release", "lscpu", "sw_vers", "uname", "which")
_LOOKING_WITH = (
    *(("git", word) for word in ("--version", "blame", "cat-file", "describe", "diff", "log", "ls-files", "ls-tree")),
    *(("git", word) for word in ("rev-list", "rev-parse", "shortlog", "show", "status", "version")),
    *(("git", "branch", "--show-current"), ("git", "config", "--get"), ("git", "config", "--list")),
    *(("git", "remote", "get-url"), ("ldconfig", "-p")),
)
"""Programs, and what they are told first."""


def is_installed(path: str | None) -> bool:
    """Whether a file belongs to Python or to an installed package, and not to the project."""
    if not path:
        return True
    path = os.path.abspath(path)  # noqa: PTH100
    return (
        any(part in path for part in _INSTALLED)
        or path.startswith((_STDLIB + os.sep, *_OURS))
        or not path.endswith((".py", ".so", ".pyc", ".pyd"))
    )


class Effects:
    """What is read, and what is done that lasts, while `on` is true. There is one; Python can't take it away again."""

    def __init__(self) -> None:
        self.on = False
        self.learns = False
        """Whether to note what packages import late (`call_begins`)."""
        self.read: dict[str, None] = {}
        self.listed: dict[str, None] = {}
        self.started: dict[str, None] = {}
        """The folders of the project's programs that were started: what these read is not seen."""
        self.effects: list[list[str]] = []
        self.hosts: dict[str, None] = {}
        """The names of servers whose addresses were looked up."""
        self.http: set[tuple[Any, ...]] = set()
        """The addresses to which clients of HTTP have connected."""
        self._late: dict[str, None] = {}
        self._setting: object = None
        self._modules = 0
        self.available = hasattr(sys, "addaudithook")
        if self.available:
            sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        # Always: a thread that imports started may connect after them.
        if event == "socket.connect" and isinstance(arguments[1], tuple) and _is_http_asking():
            self.http.add(arguments[1])
        # An audit hook can't be removed, and it is called for each file that any later code opens.
        if not self.on:
            return
        if event == "open":
            path, _, flags = arguments
            if not isinstance(path, (str, bytes)) or not isinstance(flags, int):
                return
            path = os.fsdecode(path)
            if flags & (os.O_WRONLY | os.O_RDWR):
                # Writers that append, such as log files, each write at the end: forks don't disturb one another.
                if not flags & os.O_APPEND and not _is_exempt(path):
                    self._note("writes a file", path)
            else:
                # A project may read thousands of files of data; what it runs is always told.
                path = os.path.abspath(path)  # noqa: PTH100
                if (len(self.read) < _MOST or path.endswith(".py")) and _is_of_project(path):
                    self.read[path] = None
        elif event in ("os.listdir", "os.scandir"):
            if arguments and isinstance(arguments[0], (str, bytes)) and len(self.listed) < _MOST:
                path = os.path.abspath(os.fsdecode(arguments[0]))  # noqa: PTH100
                if _is_of_project(path + os.sep):
                    self.listed[path] = None
        elif event == "socket.getaddrinfo":
            if isinstance(arguments[0], (str, bytes)) and len(self.hosts) < _MOST:
                self.hosts[os.fsdecode(arguments[0])] = None
        elif event == "import":
            # After a change of these, the import may give something else than before the call.
            if self._setting is not None and _is_package_asking() and self._setting == _setting():
                self._late[arguments[0]] = None
        elif event in _EFFECTS:
            if event in ("subprocess.Popen", "os.posix_spawn"):
                self._look_at_program(arguments[1], arguments[2] if event == "subprocess.Popen" else None)
            first = arguments[0] if arguments and isinstance(arguments[0], (str, bytes)) else ""
            if event in ("os.rename", "os.remove") and _is_exempt(os.fsdecode(first)):
                return
            if event in ("subprocess.Popen", "os.posix_spawn") and _only_looks(arguments[1]):
                return
            self._note(_EFFECTS[event], os.fsdecode(first))

    def forget(self) -> None:
        """What was seen by now is told."""
        for records in (self.effects, self.read, self.listed, self.started, self.hosts):
            records.clear()

    def _look_at_program(self, words: object, folder: object) -> None:
        """A program is started: files of the project that it is told count as read, and all that is beside them."""
        for path in _sources_named(words, folder if isinstance(folder, (str, bytes)) else "."):
            if len(self.started) < _MOST and _is_of_project(path):
                self.read[path] = None
                self.started[os.path.dirname(path)] = None  # noqa: PTH120

    def _note(self, what: str, path: str) -> None:
        if len(self.effects) < _MOST_EFFECTS:
            self.effects.append([what, path, _place()])

    def call_begins(self) -> None:
        """Note from now on what packages import first while they are called (by statements: Python tells of others by
        no event)."""
        self._setting = _setting()

    def late_imports(self) -> list[str]:
        """The modules of packages that packages imported since the call started."""
        # A list, here and below: a thread of the user's may import and read while this looks.
        modules = ((name, sys.modules.get(name)) for name in list(self._late))
        return [name for name, module in modules if module is not None and _source(module) is None]

    def files(self) -> tuple[list[str], list[str]]:
        """The files of the project that were imported or read by now, and the folders that were listed."""
        # `more` tells new modules by the length: modules are kept in the order in which they were imported.
        self._modules = len(sys.modules)
        return self._sources(list(sys.modules.values())), self._folders()

    def new_modules(self) -> int:
        """How many modules were imported since `files` was asked."""
        return len(sys.modules) - self._modules

    def more(self, before: Iterable[str]) -> list[str]:
        """The files that were imported or read since `before` was taken, and the folders that were listed."""
        number = self.new_modules()
        if not self.read and not self.listed and not self.started and number <= 0:
            return []
        # New modules are the last ones. To look at the others would copy the memory that they are in, for each run.
        new = list(itertools.islice(reversed(sys.modules.values()), max(0, number)))
        return sorted({*self._sources(new), *self._folders(), *self.started} - set(before))

    def _folders(self) -> list[str]:
        """The folders of the project that were listed."""
        # Folders that Python itself lists to find modules tell nothing about the project's data.
        return [folder for folder in list(self.listed) if folder not in sys.path_importer_cache]

    def _sources(self, modules: Iterable[ModuleType]) -> list[str]:
        """The files of the project among those of these modules and those that were read."""
        paths = dict.fromkeys(path for path in map(_source, modules) if path)
        paths.update(dict.fromkeys(list(self.read)))
        return sorted(paths)


def _is_of_project(path: str) -> bool:
    """Whether a file that was read may be the project's own."""
    installed = any(part in path for part in _INSTALLED) or path.startswith((_STDLIB, *_OURS))
    return not installed and not path.startswith(_SYSTEM) and not _is_exempt(path)


def _sources_named(words: Any, folder: str | bytes) -> Iterator[str]:
    """The files that a program's words name: those with an ending, and modules of Python after `-m`."""
    if not isinstance(words, (list, tuple)) or not all(isinstance(word, (str, bytes)) for word in words):
        return
    # A shell is told a whole command in one word.
    parts = [part for word in words for part in os.fsdecode(word).split()]
    folder = os.path.abspath(os.fsdecode(folder))  # noqa: PTH100
    for before, word in zip(["", *parts], parts):  # noqa: B905 - Python 3.8
        # "python3.11" has no ending.
        named = [word] if os.path.splitext(word)[1][1:2].isalpha() else []  # noqa: PTH122
        if before == "-m":
            module = os.path.join(*word.split("."))  # noqa: PTH118
            named = [module + ".py", os.path.join(module, "__main__.py")]  # noqa: PTH118
        for path in (os.path.normpath(os.path.join(folder, name)) for name in named):  # noqa: PTH118
            # Of folders below the one that it is started in: a whole project may be in a hidden folder.
            parts_below = os.path.relpath(path, folder).split(os.sep)  # noqa: PTH206
            hidden = any(part.startswith(".") and part != ".." for part in parts_below) or "node_modules" in parts_below
            if not hidden and os.path.isfile(path):  # noqa: PTH113
                yield path


def _is_exempt(path: str) -> bool:
    """Whether a file is bytecode, or no file."""
    prefix = getattr(sys, "pycache_prefix", None)
    return (
        "__pycache__" in path
        or path.startswith("/proc/")
        or (path.startswith("/dev/") and not path.startswith("/dev/shm/"))  # noqa: S108
        or bool(prefix and os.path.abspath(path).startswith(prefix))  # noqa: PTH100
        or ".pyc" in path
    )


def _only_looks(arguments: object) -> bool:
    """Whether a program with these arguments changes nothing, as its name and first words tell."""
    if not isinstance(arguments, (list, tuple)) or not all(isinstance(word, (str, bytes)) for word in arguments):
        return False
    name, *words = [os.fsdecode(word) for word in arguments] or [""]
    name = os.path.basename(name)  # noqa: PTH119
    if any(word.startswith("--output") for word in words):  # of git, where it writes to
        return False
    return name in _LOOKING or (name, *words[:1]) in _LOOKING_WITH or (name, *words[:2]) in _LOOKING_WITH


def _setting() -> tuple[dict[bytes, bytes], list[str], str]:
    """What the import of a package may depend on."""
    try:
        folder = os.getcwd()  # noqa: PTH109
    except OSError:  # it was removed
        folder = ""
    return dict(os.environb), list(sys.path), folder


def _is_package_asking() -> bool:
    """Whether a function of a package imports, not the project, and not a module that is itself being imported."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and "importlib" in frame.f_code.co_filename:
        frame = frame.f_back
    if frame is None or frame.f_code.co_name == "<module>":
        return False
    path = frame.f_code.co_filename
    return is_installed(path) and not path.startswith(_OURS)


def _is_http_asking() -> bool:
    """Whether a client of HTTP connects, that opens another connection when a server has closed the one it has."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if str(frame.f_globals.get("__name__")).startswith(_HTTP):
            return True
        frame = frame.f_back
    return False


def _place() -> str:
    """Where the project's code is: "agent.py, line 3"; "" where no module of the project is being run."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.endswith(".py") and not is_installed(path):
            return os.path.basename(path) + ", line " + str(frame.f_lineno)  # noqa: PTH119
        frame = frame.f_back
    return ""


def _source(module: ModuleType) -> str | None:
    try:
        path = module.__file__
    except Exception:  # whatever a module's own __getattr__ raises
        return None
    if not isinstance(path, str) or is_installed(path):
        return None
    return os.path.abspath(path)  # noqa: PTH100


class Before:
    """What was open before imports; `unsafe` compares it with what is open now."""

    def __init__(self) -> None:
        self._fds = set(_fds())
        self._shared = _shared_memory()

    def unsafe(self, http: set[tuple[Any, ...]]) -> list[list[str]]:
        """Why runs must not be forks of this process, as [[code, detail], ...]; () when they may. `http`: addresses to
        which connections may stay open, as `http_connections` are ended in each fork."""
        reasons = []
        if not hasattr(os, "fork"):
            reasons.append(["no_fork", ""])
        elif sys.platform == "darwin" and _has_frameworks():
            reasons.append(["frameworks", ""])
        kinds = [kind for kind in map(_kind, set(_fds()) - self._fds - set(self.http_connections(http))) if kind]
        reasons += [["open", kind] for kind in dict.fromkeys(kinds)]
        shared = _shared_memory() - self._shared
        if shared:
            reasons.append(["shared", sorted(shared)[0]])
        return reasons

    def opened(self) -> list[tuple[int, str, int]]:
        """Regular files that are open now and were not before, as (fd, path, flags)."""
        open_files = []
        for fd in set(_fds()) - self._fds:
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    path = os.readlink("/proc/self/fd/" + str(fd))  # noqa: PTH115
                    # Opened again in each fork with the same flags: a shared one would share the place in the file.
                    flags = fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | os.O_APPEND)
                    open_files.append((fd, path, flags | os.O_CLOEXEC))
        return open_files

    def http_connections(self, http: set[tuple[Any, ...]]) -> list[int]:
        """The connections to these addresses that are open now and were not before."""
        return [fd for fd in set(_fds()) - self._fds if _peer(fd) in http]


def _peer(fd: int) -> tuple[Any, ...] | None:
    """To which address a file is a connection; None for others."""
    try:
        if not stat.S_ISSOCK(os.fstat(fd).st_mode):
            return None
        # `detach` leaves the file open.
        connection = socket.socket(fileno=fd)
        try:
            peer = connection.getpeername()
        finally:
            connection.detach()
    except OSError:
        return None
    return peer if isinstance(peer, tuple) else None


def _fds() -> list[int]:
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            names = os.listdir(folder)  # noqa: PTH208
        except OSError:
            continue
        # The one with which the folder is read is closed again by now.
        return [int(name) for name in names if name.isdecimal() and _is_open(int(name))]
    return []


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _kind(fd: int) -> str:
    """What an open file is that forks must not share; "" for what they may."""
    try:
        mode = os.fstat(fd).st_mode
    except OSError:
        return ""
    if stat.S_ISSOCK(mode):
        return "a connection"
    if stat.S_ISFIFO(mode):
        return "a pipe"
    if stat.S_ISREG(mode):
        with contextlib.suppress(OSError):
            # SQLite forbids to use a connection across a fork.
            if os.pread(fd, len(_SQLITE), 0) == _SQLITE:
                return "a database"
        return ""
    if stat.S_ISCHR(mode):
        path = ""
        with contextlib.suppress(OSError):
            path = os.readlink("/proc/self/fd/" + str(fd))  # noqa: PTH115
        return "a device" if path.startswith("/dev/nvidia") else ""
    return "an event loop"  # epoll, eventfd, inotify: neither of these


def _shared_memory() -> set[str]:
    """Memory that is written to and shared with forks: locks of `multiprocessing`, files that are mapped."""
    names = set()
    with contextlib.suppress(OSError), open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:  # noqa: PTH123
        for line in maps:
            parts = line.split(None, 5)
            if len(parts) > 1 and "w" in parts[1] and parts[1].endswith("s"):
                names.add(parts[5].strip() if len(parts) > 5 else "anonymous")
    return names


def _has_frameworks() -> bool:
    """Whether frameworks of macOS are loaded: a fork of a process that has used them may crash."""
    try:
        import ctypes

        library = ctypes.CDLL(None)
        name = library._dyld_get_image_name
        name.restype = ctypes.c_char_p
        count = library._dyld_image_count()
        return any(_FRAMEWORKS.encode() in (name(number) or b"") for number in range(count))
    except (ImportError, OSError, AttributeError):
        return True
