"""What code answers where an agent, or a tool of it, is a program: the content of its project, or why that is unknown.

An answer may be used again only when the same code would give it. Which files a program will load is known only once
it has run, so all code of its project counts: an agent is asked once too often rather than once too seldom.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.permission import program_words
from agenteval_tui.agents.process.launchers import launched
from agenteval_tui.agents.process.named_files import files_of_agent
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.core.entry_points import is_local_agent
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.open_histories import is_of_open_history
from agenteval_tui.runs.around.plan import services_of_agent
from agenteval_tui.runs.plan.agents import AgentPlan, expanded
from agenteval_tui.runs.plan.model import Plan
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.suites.tool_files import declared_tools

_INSTALLED = frozenset((".git", "__pycache__", "node_modules", "site-packages"))
_PASSED_OVER = _INSTALLED | frozenset(
    (
        # What build tools, servers and checkers write by themselves, some of them at each start.
        ".cache",
        ".ipynb_checkpoints",
        ".langgraph_api",
        ".mypy_cache",
        ".next",
        ".nuxt",
        ".output",
        ".parcel-cache",
        ".pytest_cache",
        ".ruff_cache",
        ".svelte-kit",
        ".turbo",
        ".vite",
    )
)
DATABASE_SUFFIXES = tuple(
    f".{name}{log}" for name in ("db", "db3", "sqlite", "sqlite3") for log in ("", "-journal", "-wal", "-shm")
)
"""Of SQLite's files, and of the logs beside them."""
# What programs write all the time. Whatever may be executed by its mode counts all the same.
_DATA = frozenset(
    (
        ".csv",
        ".tsv",
        ".jsonl",
        ".ndjson",
        ".json",
        ".txt",
        ".md",
        ".rst",
        ".log",
        ".out",
        ".err",
        ".html",
        ".htm",
        ".css",
        ".xml",
        ".svg",
        ".png",
        ".jpg",
        ".jpeg",
        ".gif",
        ".webp",
        ".ico",
        ".pdf",
        ".docx",
        ".xlsx",
        ".pptx",
        ".odt",
        *DATABASE_SUFFIXES,
        ".parquet",
        ".arrow",
        ".npy",
        ".npz",
        ".onnx",
        ".safetensors",
        ".eval",
        ".gz",
        ".zip",
        ".bak",
        ".tmp",
        ".swp",
        ".orig",
        ".woff2",
        ".mp3",
        ".mp4",
        ".yaml",
        ".yml",
        ".lock",
        ".pyc",
        ".pid",
        ".sock",
        ".tsbuildinfo",
        "",
    )
)
_ARCHIVES = frozenset((".zip", ".pyc"))  # data that Python runs
_LOGS = frozenset((".log", ".out", ".err", ".pid", *DATABASE_SUFFIXES))
_MOST = 5_000  # files of a project that are looked at
_MOST_BYTES = 200_000_000  # of their code
_LARGEST = 4_000_000  # bytes of a file that is searched for names of others
_START = 8_000  # bytes of a file in which a packed one has a zero
_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", "package.json", "go.mod", "Cargo.toml", "Gemfile", "deno.json")
_MODULE_PLACES = ("NODE_PATH", "PERL5LIB", "RUBYLIB", "CLASSPATH")
_ELSEWHERE = frozenset(("docker", "podman", "nerdctl", "kubectl", "ssh", "curl", "wget", "nc", "socat"))
"""Programs that pass a question on to where agenteval can't look."""
_CODE_SUFFIXES = frozenset(
    (".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".sh", ".bash", ".zsh", ".rb", ".pl", ".php", ".lua")
)
_INLINE = re.compile(r"(?:python|pypy|perl|ruby|php|node|tsx|ts-node|deno|bun|(?:ba|da|z|k)?sh)[\d.]*")
_IMPORT = re.compile(rb"^[ \t]*(?:from[ \t]+(\w+)[\w.]*[ \t]+import\b|import[ \t]+([^#;\n]+))", re.MULTILINE)
_SEARCHED = re.compile(rb"\bsys\.path\b|\baddsitedir\b")
_QUOTED = re.compile(rb"[\"'`]([^\"'`\n]{1,300})[\"'`]")
_WORDS = bytes(byte if bytes((byte,)).isalnum() or byte in b"_.-" else ord(" ") for byte in range(256))
"""Turns all that is in no ordinary name of a file into blanks."""
_WRITES = re.compile(rb"[\"'][wax][bt+]{0,2}[\"']|\bwrite|\bappend|\bdump\b|>")


class ProgramCode(Struct, frozen=True):
    """`hash`: of all code that may answer; "" where the agent starts no program of its own, and where that is unknown.
    `files`: this code, by its name in the project, with a hash of each file; where there may be more, what is known.
    `unknown`: why: server (it is elsewhere), installed (its code is not in a project), size (the project is too big),
    path (its code says at run time where modules are); "" if it can be told.
    """

    hash: str = ""
    unknown: str = ""
    files: Mapping[str, str] = {}


def program_code(config: Mapping[str, Any], base_dir: Path, contexts: Iterable[Mapping[str, Any]] = ()) -> ProgramCode:
    """The code behind an agent's expanded configuration: its program, and the programs of its tools, those of the
    testing `contexts` among them. Reads files; starts nothing and raises nothing.
    """
    if config.get("kind") == "function":
        return ProgramCode(unknown="installed")  # it is in the process that asks, and can't be asked from another
    programs: list[Mapping[str, Any]] = []
    for entry in (
        config,
        *_tools(config, base_dir),
        *(tool for context in contexts for tool in _sample_tools(context)),
    ):
        if entry.get("kind") == "http" or (entry is not config and entry.get("url")):
            return ProgramCode(unknown="server")
        if entry.get("command") or entry.get("callable") or (entry is not config and entry.get("python")):
            programs.append(entry)
    if not programs:
        return ProgramCode()
    digests: dict[str, str] = {}
    for entry in programs:
        unknown = _add(digests, entry, base_dir)
        if unknown:
            return ProgramCode(unknown=unknown, files=digests)
    return ProgramCode(content_hash(sorted(digests.items())), files=digests)


def code_in_plan(plan: Plan, agent: AgentPlan, config: Mapping[str, Any]) -> ProgramCode:
    """The code behind an agent of a plan, whose expanded configuration is `config`. If it asks a server, the files are
    those of the services that its runs need."""
    runs = [run for run in plan.runs if run.agent.hash == agent.hash]
    contexts = {id(run.context): run.context for run in runs if run.context}
    code = program_code(config, agent.base_dir, contexts.values())
    if code.unknown != "server":
        return code
    surroundings = {id(run.around): run.around for run in runs if run.around is not None}.values()
    services = [service for around in surroundings for service in around.services]
    with contextlib.suppress(AgentevalError):  # the run will say what is wrong with them
        services += services_of_agent(config, agent.base_dir)
    digests: dict[str, str] = {}
    for service in services:
        entry = {"command": service.shell or list(service.command), "cwd": service.cwd, "env": service.env}
        _add(digests, entry, Path(service.folder), serves=True)
    return replace(code, files=digests)


def agents_without_cache(plan: Plan, env: Mapping[str, str]) -> dict[str, str]:
    """The agents of a plan, by name, whose answers are not used again because it is unknown whether their program
    changed, with the reason (`ProgramCode.unknown`). An agent that can't be created is not among them."""
    reasons: dict[str, str] = {}
    hashes = set[str]()
    for run in plan.runs:
        for agent in run.agents:
            if agent.hash in hashes or agent.config.get("revision") or is_local_agent(agent.config.get("kind")):
                continue
            hashes.add(agent.hash)
            try:
                config = expanded(agent, environment_for(agent.base_dir, env, agent.config))
            except AgentevalError:
                continue
            if unknown := code_in_plan(plan, agent, config).unknown:
                reasons[agent.name] = unknown
    return reasons


def _tools(config: Mapping[str, Any], base_dir: Path) -> Iterator[Mapping[str, Any]]:
    for entry in declared_tools(config, base_dir):
        server = entry.get("mcp")
        yield server if isinstance(server, Mapping) else {"url": server} if isinstance(server, str) else entry


def _sample_tools(context: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    tools = context.get("sample_tools")
    for entry in tools.values() if isinstance(tools, Mapping) else tools or ():
        inner = entry.get("function", entry) if isinstance(entry, Mapping) else None
        if isinstance(inner, Mapping):
            yield inner


def _add(digests: dict[str, str], entry: Mapping[str, Any], base_dir: Path, *, serves: bool = False) -> str:
    """Add the hashes of a program's files to `digests`; gives why they can't be known, "" if they can. `serves`: an
    installed program runs the code of its project, as web servers do."""
    cwd = _folder(base_dir / str(entry.get("cwd") or "."))
    words = program_words(entry.get("command") or "").split()
    if any(Path(word).name in _ELSEWHERE for word in words):
        return "server"
    files = [file for file in files_of_agent(entry, base_dir) if not _looks_like_log(file)]
    home = project_of(_folder(base_dir))
    roots = dict.fromkeys((home, project_of(cwd), *_listed(entry, base_dir), *_places(entry, cwd, _MODULE_PLACES)))
    named = " ".join((*words, str(entry.get("callable") or "")))
    for file in files:
        # What a bare name means by PATH is installed, even where that is a script.
        own = file.suffix.lower() in _CODE_SUFFIXES and file.name in named and not _is_installed(file)
        if own and not any(file.is_relative_to(root) for root in roots):
            roots.setdefault(project_of(file.parent))
    code: dict[Path, None] = {}
    data: dict[Path, None] = {}
    for root in roots:
        for file in _below(root):
            (data if _looks_like_data(file) else code)[file] = None
            if len(code) + len(data) > _MOST:
                return "size"
    if sum(map(_size, code)) > _MOST_BYTES:
        return "size"
    if not serves and not _is_own(entry, words, files, code):
        return "installed"
    texts = {file: _text(file) for file in code}
    outside, complete = _imported_elsewhere(texts, _Modules(entry, base_dir, cwd))
    for file in dict.fromkeys((*files, *code, *outside, *_read_by(texts, data, roots))):
        digests[_key(file, home)] = _digest(file)
    return "" if complete else "path"


def project_of(folder: Path) -> Path:
    """The project that a folder belongs to: its Git work tree, or the nearest folder above with the file of a package;
    itself where there is neither. Never the home folder or the root as a whole."""
    above = [path for path in (folder, *folder.parents) if path != Path(path.anchor) and path != _folder(Path.home())]
    tree = next((path for path in above if (path / ".git").exists()), None)
    if tree is not None:
        return tree
    return next((path for path in above if any((path / mark).is_file() for mark in _MARKS)), folder)


def _folder(path: Path) -> Path:
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _listed(entry: Mapping[str, Any], base_dir: Path) -> Iterator[Path]:
    """The folders of the option `path`."""
    listed = entry.get("path")
    for place in listed if isinstance(listed, list | tuple) else ():
        yield _folder(base_dir / str(place))


def _places(entry: Mapping[str, Any], cwd: Path, names: Iterable[str]) -> Iterator[Path]:
    """The folders in which a program looks for modules by variables of these names."""
    own = entry.get("env")
    variables = {**os.environ, **(own if isinstance(own, Mapping) else {})}
    for name in names:
        for word in str(variables.get(name) or "").split(os.pathsep):
            if word and (place := _folder(cwd / word)).is_dir():
                yield place


def _below(root: Path) -> Iterator[Path]:
    """The files of a project; linked folders once, environments, installed packages and open histories left out."""
    waiting, visited = [root], set[tuple[int, int]]()
    while waiting:
        here = waiting.pop()
        try:
            status = here.stat()
            with os.scandir(here) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            continue
        # By device and inode: a link may lead back into the project. `pyvenv.cfg` marks a virtual environment.
        if (status.st_dev, status.st_ino) in visited or any(entry.name == "pyvenv.cfg" for entry in entries):
            continue
        visited.add((status.st_dev, status.st_ino))
        for entry in entries:
            try:
                mode = entry.stat().st_mode
            except OSError:
                continue
            if stat.S_ISDIR(mode) and entry.name not in _PASSED_OVER:
                waiting.append(Path(entry.path))
            elif stat.S_ISREG(mode) and not is_of_open_history(Path(entry.path)):
                yield Path(entry.path)


def _is_own(entry: Mapping[str, Any], words: list[str], files: list[Path], code: Mapping[Path, None]) -> bool:
    """Whether the program's code is in its project: it is named, or is in the command itself."""
    modules = [
        module
        for option in ("callable", "python")
        if ":" in (target := str(entry.get(option))) and not (module := target.rpartition(":")[0]).endswith(".py")
    ]
    modules += [after for word, after in pairwise(words) if word == "-m"]
    for module in modules:
        path = module.replace(".", "/")
        ends = tuple([f"/{path}{end}" for end in (".py", "/__init__.py", "/__main__.py")])
        if any(file.as_posix().endswith(ends) for file in code):
            return True
    if modules:
        return False
    own = {_folder(file) for file in code}
    if any(file in own for file in files):
        return True
    inline = any(word in ("-c", "-e") for word in words) and any(
        _INLINE.fullmatch(Path(word).name) for word in words[:3]
    )
    return inline and launched(words) is not None


def _is_installed(file: Path) -> bool:
    return not (_INSTALLED | {"dist-packages"}).isdisjoint(file.parts)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _text(file: Path) -> bytes:
    """What a file of code says; nothing of one that is packed, in which no name can be read, and that takes long."""
    try:
        if file.stat().st_size > _LARGEST:
            return b""
        with file.open("rb") as stream:
            start = stream.read(_START)
            return b"" if b"\0" in start and file.suffix != ".pyc" else start + stream.read()
    except OSError:
        return b""


def _imported_elsewhere(texts: Mapping[Path, bytes], modules: _Modules) -> tuple[list[Path], bool]:
    """The files of modules that Python code imports, and those import, that are neither in the project nor installed,
    and whether these are all: the code may look for modules in places that only it knows."""
    python = {file: text for file, text in texts.items() if file.suffix == ".py"}
    # Names of the project's own files and of the standard library need no look: the former count anyway, the latter
    # don't change.
    looked_at = {part.removesuffix(".py") for file in python for part in file.parts[-4:]} | sys.stdlib_module_names
    searched = any(_SEARCHED.search(text) for text in python.values())
    outside: dict[Path, None] = {}
    waiting = [name for text in python.values() for name in _imports(text)]
    complete = True
    while waiting and len(outside) <= _MOST:
        name = waiting.pop()
        # agenteval itself does not count: the agent's answer doesn't follow from it.
        if name in looked_at or name == __name__.partition(".")[0]:
            continue
        looked_at.add(name)
        files = modules.files(name)
        if files is None:
            complete = complete and not searched
            continue
        for file in files:
            if file not in outside:
                outside[file] = None
                waiting += _imports(_text(file)) if file.suffix == ".py" else ()
    return list(outside), complete


class _Modules:
    """Where the modules are that a program imports: in the folders of PYTHONPATH, in the environment of its project,
    or in agenteval's own."""

    def __init__(self, entry: Mapping[str, Any], base_dir: Path, cwd: Path) -> None:
        self._places = list(_places(entry, cwd, ("PYTHONPATH",)))
        self._installed: list[Path] = []
        target, interpreter = str(entry.get("callable") or ""), str(entry.get("python") or "")
        try:
            environment = project_environment(
                cwd,
                targets=(target,) if target else (),
                interpreter=interpreter if ":" not in interpreter else None,
                path=list(_listed(entry, base_dir)),
            )
        except AgentevalError:
            return  # the run will say what is wrong with it
        python = environment.interpreter
        self._installed += python.packages
        if python.prefix is not None:
            self._installed += python.prefix.glob("lib/python*/site-packages")
        self._places += (place for folder in self._installed for place in _linked(folder))

    def files(self, name: str) -> list[Path] | None:
        """The files of a module; of an installed one none. None: there is no such module here."""
        for place in self._places:
            if (place / f"{name}.py").is_file():
                return [place / f"{name}.py"]
            if (place / name).is_dir():
                return [file for file in _below(place / name) if not _looks_like_data(file)]
        if any((folder / name).is_dir() or any(folder.glob(f"{name}.*")) for folder in self._installed):
            return []
        return _own_module(name)


def _linked(folder: Path) -> Iterator[Path]:
    """The folders that the `.pth` files among installed packages name."""
    for file in folder.glob("*.pth"):
        for line in _text(file).decode("utf-8", "replace").splitlines():
            if line and not line.startswith(("import ", "import\t", "#")) and (place := folder / line.strip()).is_dir():
                yield place


def _own_module(name: str) -> list[Path] | None:
    """The files of a module that agenteval could import itself; of an installed one none."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    files: list[Path] = []
    for location in spec.submodule_search_locations or ([spec.origin] if spec.origin else ()):
        path = Path(location)
        if not _is_installed(path):
            files += [file for file in _below(path) if not _looks_like_data(file)] if path.is_dir() else [path]
    return files


def _imports(text: bytes) -> Iterator[str]:
    for origin, names in _IMPORT.findall(text):
        for name in (origin,) if origin else names.split(b","):
            word = name.strip().partition(b" ")[0].partition(b".")[0].decode("utf-8", "replace")
            if word.isidentifier():
                yield word


def _read_by(texts: Mapping[Path, bytes], data: Iterable[Path], roots: Iterable[Path]) -> Iterator[Path]:
    """The data that code names: a prompt, a template, settings. By name, or by the name of its folder. What it is only
    named for to be written (on the same line) is what it says, not what it is made of."""
    within = list(roots)
    folders_of: dict[Path, list[bytes]] = {}
    for file in data:
        if not _looks_like_log(file):
            root = next((root for root in within if file.is_relative_to(root)), file.parent)
            folders_of[file] = [os.fsencode(part) for part in file.relative_to(root).parts[:-1]]
    names = {os.fsencode(file.name) for file in folders_of}
    folders = {folder for listed in folders_of.values() for folder in listed}
    several = [name for name in names | folders if name.translate(_WORDS) != name]
    named, named_folders = set[bytes](), set[bytes]()
    for text in texts.values():
        words = set(text.translate(_WORDS).split())
        words.update([word.rstrip(b".") for word in words if word.endswith(b".")])
        words.update([name for name in several if name in text])
        # Few words of a text are names of data: only the lines with these are looked at.
        for name in (names - named) & words:
            if any(not _WRITES.search(line) for line in _lines_with(text, name)):
                named.add(name)
        for folder in (folders - named_folders) & words:
            quoted = (quoted for line in _lines_with(text, folder) for quoted in _QUOTED.findall(line))
            if any(folder in part.strip(b"/").split(b"/") for part in quoted):
                named_folders.add(folder)
    for file, listed in folders_of.items():
        if os.fsencode(file.name) in named or not named_folders.isdisjoint(listed):
            yield file


def _lines_with(text: bytes, name: bytes) -> Iterator[bytes]:
    place = text.find(name)
    while place >= 0:
        end = text.find(b"\n", place)
        end = len(text) if end < 0 else end
        yield text[text.rfind(b"\n", 0, place) + 1 : end]
        place = text.find(name, end)


def _key(file: Path, home: Path) -> str:
    """A file's name in the hash: the same in two checkouts of one project."""
    return file.relative_to(home).as_posix() if file.is_relative_to(home) else str(file)


def _digest(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


def _looks_like_log(path: Path) -> bool:
    """Whether this is a log, a list of errors, a process' number or a database, and nothing that may be executed."""
    return path.suffix.lower() in _LOGS and _looks_like_data(path)


def _looks_like_data(path: Path) -> bool:
    """Whether this is a file that programs write and do not run: by its ending, its mode and its first bytes."""
    suffix = path.suffix.lower()
    if suffix not in _DATA or suffix in _ARCHIVES:
        return False
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_mode & 0o111:
            return False
        with path.open("rb") as stream:
            return stream.read(2) != b"#!"
    except OSError:
        return False
