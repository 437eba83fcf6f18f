"""What a command names only to write into it: logs, outputs, databases. Everything else that it names may be run.

A file's place in the command decides, never its name alone, and whatever is not surely only written is watched:

- the target of a redirection (`>`, `>>`, `>|`, `2>`, `&>`; not `<>`) in a text that a shell reads, also one after
  `sh -c`; the files of `tee`, `touch` and `rm`; the first file of `sqlite3`, where it is an SQLite database. These must
  look like data: by their ending, by their mode and by their first bytes;
- the value of an option that is named for what is written (`--log FILE`, `--log-file=FILE`, `-o FILE`, `--db=FILE`),
  or of a variable named so (`env: {LOG_FILE: FILE}`, `LOG_FILE=FILE ./agent`). No word in its name may speak of loading
  (`--log-config`, `--require`, `--init-db`). Such a file must look like a log or a database. An option of an
  interpreter, thus one before the interpreter's script, is never one: `node --log x.log` runs x.log.

A plain argument is watched (`python agent.py runs.log`: who knows?). So is a file that the same command also names
anywhere else (`echo true > x.log; sh x.log`), or that a pattern in it can become (`sh *.log`). Where the command runs
what can't be read off it (`sh "$X"`, `eval`, `xargs`, `find`, a here-document, a function), all of its files are
watched.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.process.shell_words import NotFollowedError, Word, simple_commands
from agenteval_tui.suites.watched_files import looks_like_data, looks_like_log

_SHELL = re.compile(r"(?:ba|da|z|k|mk|a|fi|c|tc|ya|o)?sh|rbash")
_PYTHON = re.compile(r"(?:i?python|pypy)[\d.]*")
_OTHERS = re.compile(
    r"\.|source|node(?:js)?|deno|bun|tsx|ts-node|uv|ruby[\d.]*|j?irb|perl[\d.]*|php[\d.]*|lua(?:jit)?[\d.]*|R|Rscript"
    r"|julia|tclsh[\d.]*|wish[\d.]*|expect|[gmn]?awk|sed|g?make|just|ninja|sqlite3|psql|mysql|mariadb|duckdb|osascript"
    r"|pwsh|java|jshell|groovy|scala|kotlin|guile|racket|clojure|clj|elixir|erl|escript|octave|gdb|lldb|n?vim?|ex|ed"
    r"|emacs|m4|jq|gnuplot|bc|dc|busybox|toybox"
)
_UNSEEN = frozenset(("eval", "xargs", "parallel", "alias", "find", "fd", "trap", "function", "case", "enable", "hash"))
_WRAPPERS = frozenset(
    ("env", "nohup", "timeout", "nice", "exec", "command", "builtin", "time", "setsid", "stdbuf", "sudo", "doas", "su",
     "ionice", "chrt", "taskset", "unbuffer", "flock", "script", "watch", "strace", "ltrace", "ssh", "chroot",
     "unshare", "npx", "pipx", "poetry", "pipenv", "docker", "podman")
)  # fmt: skip
_KEYWORDS = frozenset(("if", "then", "do", "else", "elif", "while", "until", "!", "{", "time"))
_WRITERS = frozenset(("tee", "touch", "rm"))
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_NAME_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WRITTEN = frozenset(
    ("log", "logs", "logfile", "out", "output", "outfile", "outputfile", "err", "error", "errors", "stderr", "stdout",
     "pid", "pidfile", "db", "dbfile", "database", "sqlite", "trace", "record", "report", "save", "write", "dump",
     "journal", "append", "history", "audit", "transcript", "dbpath", "logpath", "cache", "state", "store", "storage",
     "memory", "session", "sessions", "checkpoint", "checkpoints")
)  # fmt: skip
_LOADED = frozenset(
    ("load", "loader", "require", "import", "script", "config", "conf", "rc", "rcfile", "init", "plugin", "plugins",
     "include", "exec", "execute", "preload", "module", "source", "eval", "program", "command", "cmd", "hook",
     "startup", "boot", "bootstrap", "extension", "code", "read", "input", "in", "from", "replay", "restore", "env",
     "shell", "handler", "callback", "parser", "filter", "formatter", "class", "function", "entry", "main", "start")
)  # fmt: skip
_FLAGS = {  # of interpreters: options without a value, and with one
    "shell": (re.compile(r"[-+][abefhiklmnprtuvxBCEHPT]+|--(?:login|posix|norc|noprofile)"), re.compile("[-+][a-z]*o")),
    "python": (re.compile("-[bBdEhiIOPqsSuvx]+"), re.compile("-[bBdEhiIOPqsSuvx]*[WX]")),
    "": (re.compile(r"--no-[\w-]+|--allow-[\w-]+|--[\w-]+=.*|-A|-(?:batch|json|csv|header|line|readonly)"), None),
}


class Places(Struct, frozen=True):
    """Where a command runs: `file` gives the file that a word means there, `program` the one that it starts."""

    file: Callable[[str], Path | None]
    program: Callable[[str], str | None]

    @classmethod
    def of(cls, cwd: Path, env: Mapping[str, str]) -> Places:
        """Where a command of this folder and environment runs."""

        def file(word: str) -> Path | None:
            try:
                return (cwd / Path(word).expanduser()).resolve() if word and "\0" not in word else None
            except (OSError, RuntimeError, ValueError):
                return None

        def program(word: str) -> str | None:
            return str(cwd / word) if os.sep in word else shutil.which(word, path=env.get("PATH", os.defpath))

        return cls(file, program)


class Rest(Struct, frozen=True):
    """What is left of an entry without the names of what it only writes to: the words of its command, patterns (of
    `fnmatch`) that words can become, and variables of its `env`."""

    words: tuple[str, ...]
    patterns: tuple[str, ...]
    env: dict[str, str]

    def can_mean(self, file: Path) -> bool:
        """Whether a pattern can become this file, by its name."""
        return any(fnmatchcase(file.name, one.rpartition("/")[2]) for one in self.patterns)


def without_written(entry: Mapping[str, Any], places: Places) -> Rest | None:
    """The rest of an agent's, a tool's or a server's configuration. None where nothing can be left out for sure."""
    given = entry.get("env")
    env = {str(k): str(v) for k, v in given.items()} if isinstance(given, Mapping) else {}
    reading = _Reading(places)
    try:
        reading.whole(entry.get("command"), bool(entry.get("shell")))
    except NotFollowedError:
        return None
    left = {name: value for name, value in env.items() if not (_is_written(name) and reading.is_log(value))}
    # A shell may put the value of a variable in any place.
    variables = [*reading.variables, *(env.keys() - left.keys())]
    if any(re.search(rf"\$\{{?{re.escape(name)}\b", word) for name in variables for word in reading.words):
        return None
    return Rest(tuple(reading.words), tuple(reading.patterns), left)


class _Reading:
    """Goes through a command, and keeps what is not only written."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self.words: list[str] = []
        self.patterns: list[str] = []
        self.variables: list[str] = []

    def whole(self, command: Any, shell: bool) -> None:
        if isinstance(command, list | tuple):
            if shell:
                raise NotFollowedError
            self._command([Word(str(one), str(one)) for one in command])
        elif shell:
            self._text(str(command or ""))
        else:
            try:
                self._command([Word(one, one) for one in shlex.split(str(command or ""))])
            except ValueError:
                raise NotFollowedError from None

    def is_log(self, word: str) -> bool:
        file = self._places.file(word)
        return file is not None and looks_like_log(file)

    def _is_data(self, word: str) -> bool:
        file = self._places.file(word)
        return file is not None and looks_like_data(file)

    def _text(self, text: str) -> None:
        for one in simple_commands(text):
            self._keep(word for word in one.written if word.fixed and not self._is_data(word.text))
            self._keep(one.others)
            self._command(one.words)

    def _keep(self, words: Iterable[Word]) -> None:
        for word in words:
            self.words.extend(dict.fromkeys((word.text, word.raw)))
            if word.pattern:
                self.patterns.append(word.pattern)

    def _command(self, words: list[Word]) -> None:
        """The words of one simple command."""
        begin = 0
        while begin < len(words) and words[begin].text in _KEYWORDS:
            begin += 1
        first = begin
        while first < len(words) and _ASSIGNMENT.fullmatch(words[first].text):
            first += 1
        if first == len(words):
            self._keep(words)
            return
        names = [self._names(word.text) for word in words]
        wrapped = bool(names[first] & _WRAPPERS)
        if not words[first].fixed or any(one & _UNSEEN for one in (names[first:] if wrapped else [names[first]])):
            raise NotFollowedError
        if words[first].text in _WRITERS:
            self._keep(words[: first + 1])
            self._keep(
                one
                for one in words[first + 1 :]
                if one.text.startswith("-") or not one.fixed or not self._is_data(one.text)
            )
            return
        free, texts = self._free_from(words, names, first)
        for at, word in enumerate(words):
            if at not in texts and not self._is_written_place(words, names, at, first, free):
                self._keep([word])

    def _is_written_place(
        self, words: list[Word], names: list[frozenset[str]], at: int, first: int, free: int | None
    ) -> bool:
        word = words[at]
        if not word.fixed:
            return False
        assignment = _ASSIGNMENT.fullmatch(word.text)
        if assignment and (at < first or all(_is_env(words, names, one, first) for one in range(first, at))):
            written = _is_written(assignment[1]) and self.is_log(assignment[2])
            if written:
                self.variables.append(assignment[1])
            return written
        if at <= first:
            return False
        before = words[at - 1]
        if "sqlite3" in names[first] and all(_flag(one.text, "") for one in words[first + 1 : at]):
            return self._is_data(word.text)
        if free is None or at < free:
            return False
        option, equals, value = word.text.partition("=")
        if equals and option.startswith("-"):
            return _is_written(option) and self.is_log(value)
        return (
            before.fixed
            and at - 1 >= free
            and before.text.startswith("-")
            and "=" not in before.text
            and _is_written(before.text)
            and self.is_log(word.text)
        )

    def _free_from(
        self, words: list[Word], names: list[frozenset[str]], first: int
    ) -> tuple[int | None, frozenset[int]]:
        """The first word whose options are the program's own, not an interpreter's; None where there is none. And the
        words that are texts for a shell: they are checked here."""
        free: int | None = first + 1
        interpreters, texts = 0, set[int]()
        for at in range(first, len(words)):
            family = _family(names[at] if at == first else names[at] - {".", "source"})
            if family is None:
                continue
            interpreters += 1
            script, text = _script(words, at, family)
            if any(not one.fixed for one in (words[at + 1 :] if script is None else words[at + 1 : script + 1])):
                raise NotFollowedError
            if script is None or text:
                free = None  # after `sh -c TEXT`, the words are arguments that TEXT can hand on
            elif free is not None:
                free = max(free, script + 1)
            if script is not None and text and script not in texts:
                texts.add(script)
                self._text(words[script].text)
        if not interpreters and names[first] & _WRAPPERS and any(not word.fixed for word in words[first + 1 :]):
            raise NotFollowedError
        return free, frozenset(texts)

    def _names(self, word: str) -> frozenset[str]:
        """What a word is called as a program: its own name, and that of what it leads to."""
        found = {word.rpartition(os.sep)[2]}
        if word and len(word) < 4_096 and "\0" not in word:
            program = self._places.program(word)
            if program:
                found.add(Path(program).resolve().name)
        return frozenset(found)


def _is_env(words: list[Word], names: list[frozenset[str]], at: int, first: int) -> bool:
    """Whether this word only leads to the variables that `env` gives to a program."""
    return (at == first and "env" in names[at]) or (at > first and _ASSIGNMENT.fullmatch(words[at].text) is not None)


def _is_written(name: str) -> bool:
    """Whether an option or a variable is named for what is written to."""
    parts = {one.lower() for one in _NAME_PARTS.findall(name)}
    return name == "-o" or (bool(parts & _WRITTEN) and not parts & _LOADED)


def _family(names: frozenset[str]) -> str | None:
    for family, pattern in (("shell", _SHELL), ("python", _PYTHON), ("", _OTHERS)):
        if any(pattern.fullmatch(name) for name in names):
            return family
    return None


def _script(words: list[Word], at: int, family: str) -> tuple[int | None, bool]:
    """Where an interpreter's script is (None: can't be told), and whether it is a text for a shell."""
    place = at + 1
    while place < len(words):
        text = words[place].text
        if not words[place].fixed:
            return place, False
        if family == "shell" and re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", text):
            return (place + 1, True) if place + 1 < len(words) else (None, False)
        if (family == "python" and re.fullmatch("-[bBdEhiIOPqsSuvx]*[mc]", text)) or (not family and text == "-jar"):
            return (place + 1, False) if place + 1 < len(words) else (None, False)
        if not text.startswith(("-", "+")) or text == "-":
            if text == "run" and not family and place == at + 1:
                place += 1
                continue
            return place, False
        valued = _FLAGS[family][1]
        if _flag(text, family):
            place += 1
        elif valued is not None and valued.fullmatch(text):
            place += 2
        else:
            return None, False
    return None, False


def _flag(text: str, family: str) -> bool:
    pattern = _FLAGS[family][0]
    return pattern is not None and pattern.fullmatch(text) is not None
