"""Records what the program stores, sends and publishes, and compares it with the files of `expected/`.

A subject is a function that gives the contents of one file or several. It is deterministic: the clock stands still, the
time zone is UTC, and `settled` puts placeholders for what is another at each recording. That is the one place to say
what may differ.
"""

from __future__ import annotations

import difflib
import io
import json
import re
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from sql_text import loaded

from agenteval_tui.cli.main import main
from agenteval_tui.core import ids
from agenteval_tui.core.version import __version__

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
HISTORIES = HERE / "histories"
PROJECT_FILES = HERE / "project"
PROJECT = "/golden/project"
"""Where the committed histories say that their suites are."""

NOW_MS = 1_796_720_400_000
"""The moment at which everything is recorded: later than all that the committed histories tell of."""

WIDTH = 118
SHOWN = 60
"""Lines of a difference that are printed."""

Files = Mapping[str, "str | object"]
"""File name (below the subject's folder) to its text, or to a value that is written as JSON."""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@dataclass
class Said:
    """What one call of the command line printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        assert self.out, self.err
        return json.loads(self.out)

    @property
    def documents(self) -> list[Any]:
        """The JSON documents on stdout: one, or one a line; [] if there is none."""
        if not self.out.strip():
            return []
        try:
            return [json.loads(self.out)]
        except ValueError:
            return [json.loads(line) for line in self.out.splitlines()]

    def text(self) -> str:
        """All of it, for a file."""
        said = f"{self.out.rstrip()}\n" if self.out.strip() else ""
        if self.err.strip():
            said += f"--- stderr ---\n{self.err.rstrip()}\n"
        return f"{said}--- exit code {self.code} ---\n"


@dataclass(eq=False)
class Recorder:
    """Where subjects are recorded: folders of their own, and the committed histories opened."""

    folder: Path
    sockets: Path
    _histories: dict[str, Path] = field(default_factory=dict)
    _copies: int = 0
    last_id: int = 0  # that was made while recording

    @property
    def project(self) -> Path:
        """The suites of the committed history, as it names them."""
        path = self.folder / "project"
        if not path.exists():
            path.mkdir()
            for file in sorted(PROJECT_FILES.iterdir()):
                (path / file.name).write_bytes(file.read_bytes())
        return path

    def history(self, name: str) -> Path:
        """The committed history of this name (`histories/NAME.sql`) as a file, as it was written."""
        if name not in self._histories:
            path = self.folder / f"history-{name}.db"
            text = (HISTORIES / f"{name}.sql").read_text("utf-8")
            loaded(text.replace(PROJECT, str(self.project)), path)
            self._histories[name] = path
        return self._histories[name]

    def copy(self, name: str) -> Path:
        """A copy of that history, which the subject may change."""
        self._copies += 1
        path = self.folder / f"copy-{self._copies:06}" / "history.db"
        path.parent.mkdir()
        shutil.copyfile(self.history(name), path)  # nobody has it open
        return path

    def call(self, *words: object, db: Path | None = None, terminal: bool = False, given: str = "") -> Said:
        """One call of the command line in this process; `terminal`: 80 columns wide and without colours."""
        out, err = (_Terminal(), _Terminal()) if terminal else (io.StringIO(), io.StringIO())
        before = ["--db", str(db)] if db is not None else []
        with self.places(), pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setattr("sys.stdin", io.StringIO(given))
            code = main([*before, *map(str, words)], launch_app=lambda start: 0)
        return Said(code, self.settled(out.getvalue()), self.settled(err.getvalue()))

    @contextmanager
    def places(self) -> Iterator[None]:
        """The environment, the clock and the current folder of a recording."""
        with pytest.MonkeyPatch.context() as patch:
            for name in ("config", "data", "cache"):
                patch.setenv(f"AGENTEVAL_{name.upper()}_DIR", str(self.folder / name))
            patch.setenv("AGENTEVAL_RUNTIME_DIR", str(self.sockets))
            for name, value in {
                **{"AGENTEVAL_SCOPE": "all", "AGENTEVAL_WHO": "kim", "TZ": "UTC", "CI": "true", "NO_COLOR": "1"},
                **{"TERM": "xterm", "COLUMNS": "80", "LINES": "24"},
            }.items():
                patch.setenv(name, value)
            patch.delenv("AGENTEVAL_DB", raising=False)
            patch.chdir(self.project)
            patch.setattr(time, "time", lambda: NOW_MS / 1000)
            patch.setattr(time, "time_ns", lambda: NOW_MS * 1_000_000)
            patch.setattr(ids, "_last", self.last_id)  # another test of this process may have been in a later year
            time.tzset()
            try:
                yield
            finally:
                self.last_id = ids._last
                patch.undo()
                time.tzset()

    def settled(self, text: str) -> str:
        """`text` with placeholders for folders, the version, and ids that were made just now, by their order in it."""
        for folder, name in ((self.project, PROJECT), (self.folder, "/golden"), (HERE.parents[1], "/program")):
            text = text.replace(str(folder), name)
        text = re.sub(r"/golden/copy-\d{6}/", "/golden/", text)
        text = text.replace(f'"{__version__}"', '"VERSION"').replace(f"agenteval {__version__}", "agenteval VERSION")
        made: dict[str, str] = {}

        def placeholder(found: re.Match[str]) -> str:
            return made.setdefault(found.group(), f"ID-{len(made) + 1}")

        return NEW_ID.sub(placeholder, text)


# Fields that hold what was measured just now, or what the machine has.
MEASURED = ("bytes", "latency_ms", "size", "sqlite")
# So in words: times, sizes, shares, versions.
_MEASURED_WORDS = (
    (re.compile(r" *\b[\d.,]+ (ms|s|KB|MB|%)(?=[\s,;).]|$)"), r" N \1"),
    (re.compile(r"\b(CPython|version|SQLite) \d+(\.\d+)+( \(\w+\))?"), r"\1 N"),
)


def unmeasured(value: Any) -> Any:
    """A document, or a text, with placeholders for what was measured just now."""
    if isinstance(value, str):
        for pattern, placeholder in _MEASURED_WORDS:
            value = pattern.sub(placeholder, value)
        return value
    if isinstance(value, dict):
        return {key: MADE if key in MEASURED and one is not None else unmeasured(one) for key, one in value.items()}
    return [unmeasured(one) for one in value] if isinstance(value, list) else value


MADE = "<measured>"


def _new_id() -> re.Pattern[str]:
    """Ids begin with their moment: those of `NOW_MS` were made while recording."""
    digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    first = "".join(digits[NOW_MS >> shift & 31] for shift in range(45, -1, -5))
    return re.compile(rf"{first}[{digits}]{{16}}")


NEW_ID = _new_id()


Subject = Callable[[Recorder], Files]


def written(value: object) -> str:
    """What a file holds of it: text as it is, anything else as JSON that can be read and compared line by line."""
    text = value if isinstance(value, str) else "\n".join(_lines(value)) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")  # lone surrogates as escapes


def _lines(value: object, before: str = "", behind: str = "", indent: int = 0) -> Iterator[str]:
    """JSON whose lines are filled as those of a text are: a fifth of the lines, and differences are still short."""
    line = f"{' ' * indent}{before}{json.dumps(value, ensure_ascii=False)}{behind}"
    if len(line) <= WIDTH or not value or not isinstance(value, dict | list | tuple):
        yield line
        return
    first, last = "{}" if isinstance(value, dict) else "[]"
    pairs = value.items() if isinstance(value, dict) else (("", one) for one in value)
    yield f"{' ' * indent}{before}{first}"
    filled = ""
    for number, (key, one) in enumerate(pairs, 1):
        named = f"{json.dumps(key, ensure_ascii=False)}: " if key or isinstance(value, dict) else ""
        lines = list(_lines(one, named, "," if number < len(value) else "", indent + 1))
        if len(lines) == 1 and filled and len(filled) + len(lines[0]) - indent <= WIDTH:
            filled += f" {lines[0].strip()}"
            continue
        if filled:
            yield filled
        filled = lines[0] if len(lines) == 1 else ""
        if len(lines) > 1:
            yield from lines
    if filled:
        yield filled
    yield f"{' ' * indent}{last}{behind}"


def compare(subject: str, files: Files, *, update: bool) -> None:
    """Compare with the files of `expected/SUBJECT`, or write them. Raises AssertionError with the differences."""
    folder = EXPECTED / subject
    stale = {path for path in folder.rglob("*") if path.is_file()} - {folder / name for name in files}
    if update:
        for path in stale:
            path.unlink()
        for name, value in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(written(value), "utf-8")
        return
    wrong = [f"{path.relative_to(HERE)}: nothing records it any more" for path in sorted(stale)]
    for name, value in files.items():
        wrong += _difference(folder / name, written(value))
    if wrong:
        wrong.append("Is this change wanted? Then: make snapshots (or pytest tests/golden --snapshot-update)")
        raise AssertionError("\n\n".join(["", *wrong]))


def _difference(path: Path, now: str) -> Iterator[str]:
    name = str(path.relative_to(HERE))
    before = path.read_text("utf-8") if path.exists() else ""
    if now == before:
        return
    lines = list(difflib.unified_diff(before.splitlines(), now.splitlines(), name, "recorded now", n=3, lineterm=""))
    more = [f"... and {len(lines) - SHOWN} lines more"] if len(lines) > SHOWN else []
    yield "\n".join([*lines[:SHOWN], *more])
