"""Runs the commands that pages show and writes what they print below them, so that no page shows what is not so.

python docs/make_console.py [PAGE]...

On a page, a fenced block `console` holds commands after `$ `; what follows each of them is made here. A fenced block
with a title (```yaml title="first.suite.yaml") is a file in the folder where they run, and so is every file that the
page links from `files/`. A page is run from its top to its end, in a new folder with a new history. Blocks of other
languages are left alone: commands that need a network or another tool are `sh`.

A command that is to be refused says so: `$ agenteval validate broken.suite.yaml  # exit code 2`. One that prints a lot
may show its end only: `$ agenteval demo  # last lines`.

What differs from run to run is made alike: ids by a clock and a chance of their own, durations and dates by replacing
them.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import platform
import random
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from agenteval_tui.cli.main import main
from agenteval_tui.core import ids
from agenteval_tui.extensions.demo.agent import DemoAgent

DOCS = Path(__file__).resolve().parent
_BLOCK = re.compile(r"^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*(?:\\\n.*)*)", re.MULTILINE)
_FILE = re.compile(r"\]\((files/[\w./-]+)\)")
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d \d\d:\d\d\b")
_TOOK = re.compile(r"( *)(?<![\w.])\d+(?:\.\d+)? (?:ms|s)\b(?! of)")
_LAST = 2
_OF_THE_MACHINE = ("CI", "NO_COLOR", "GITHUB_ACTIONS", "AGENTEVAL_DB", "AGENTEVAL_WHO", "OPENAI_API_KEY")


def page(path: Path, folder: Path) -> str:
    """The page with what its commands print, run in `folder`, which is empty. Raises `ValueError` for a command that
    can't be run."""
    text = path.read_text(encoding="utf-8")
    work = folder / "work"
    work.mkdir()
    for name in dict.fromkeys(_FILE.findall(text)):
        target = work / Path(name).relative_to("files")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path.parent / name, target)
    with _place(folder, work):

        def made(block: re.Match[str]) -> str:
            language, title, body = block.groups()
            if title:
                (work / title).parent.mkdir(parents=True, exist_ok=True)
                (work / title).write_text(body, encoding="utf-8")
            return f"```console\n{_session(body, work)}```" if language == "console" else block[0]

        return _BLOCK.sub(made, text)


def pages() -> list[Path]:
    """The pages that show commands with what they print, if all of them can be run here."""
    return [path for path in sorted(DOCS.rglob("*.md")) if _can_be_run(path.read_text(encoding="utf-8"))]


def _can_be_run(text: str) -> bool:
    blocks = [body for language, _, body in _BLOCK.findall(text) if language == "console"]
    commands = [command for body in blocks for command in _COMMAND.findall(body)]
    return bool(commands) and all(command.startswith(("agenteval ", "cat ")) for command in commands)


def _session(body: str, work: Path) -> str:
    lines = []
    for command in _COMMAND.findall(body):
        lines.append(f"$ {command}")
        said = _settled(_output(command.replace("\\\n", " ")), work)
        printed = said.rstrip("\n").split("\n") if said.strip() else []
        lines += ["…", *printed[-_LAST:]] if command.endswith("# last lines") else printed
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _output(command: str) -> str:
    """What a command prints, errors too."""
    words = shlex.split(command, comments=True)
    if words[0] == "cat":
        return "".join(Path(name).read_text(encoding="utf-8") for name in words[1:])
    if words[0] != "agenteval":
        raise ValueError(f"only agenteval and cat can be run here: {command}")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        code = main(words[1:], launch_app=lambda start: 0)
    said = printed.getvalue()
    said_so = re.search(r"# exit code (\d)", command)
    if code != int(said_so[1]) if said_so else code not in (0, 1):
        raise ValueError(f"exit code {code}: {command}\n{said}")
    return said


def _settled(text: str, work: Path) -> str:
    text = text.replace(f"{work}/", "").replace(str(work), ".")
    text = text.replace(f"{sys.executable} ({platform.python_version()})", "/usr/bin/python3 (3.12.4)")
    # After three spaces and more it is the cell of a column: its width stays.
    text = _TOOK.sub(lambda found: "240 ms".rjust(len(found[0])) if len(found[1]) > 2 else f"{found[1]}240 ms", text)
    text = text.replace("240 ms to 240 ms", "240 ms to 1.8 s")
    text = re.sub(r"(B minus A: )[-+]?240 ms  \(", r"\1+240 ms  (", text)  # chance has the sign
    text = re.sub(r"(B minus A: \+240 ms  )\(.* to .*\)", r"\1(-240 ms to +240 ms)", text)
    # Said if it took long.
    text = re.sub(
        r"^(start and imports before the runs: |.*: 240 ms, not counted as ).*\n", "", text, flags=re.MULTILINE
    )
    return _DATE.sub("2026-11-23 09:30", text)


_SPEAKS = dict(DemoAgent.__init__.__kwdefaults__)


async def _at_once(seconds: float) -> None:
    await asyncio.sleep(0)


class _Clock:
    """A clock that moves by a millisecond for each id, and chance that is always the same: ids are made of these."""

    def __init__(self) -> None:
        self._now_ms = 1_795_426_199_999
        self._chance = random.Random(17)  # noqa: S311 - it has to be the same each time

    def time_ns(self) -> int:
        return self._now_ms * 1_000_000

    def urandom(self, many: int) -> bytes:
        self._now_ms += 1
        return self._chance.randbytes(many)


@contextlib.contextmanager
def _place(folder: Path, work: Path) -> Iterator[None]:
    """A user who has nothing yet, in the folder of the page's files. The bundled agent speaks at once."""
    mine = {"AGENTEVAL_DATA_DIR": str(folder / "data"), "AGENTEVAL_CONFIG_DIR": str(folder / "config")}
    mine["AGENTEVAL_SCOPE"] = "all"
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(work))
        stack.enter_context(mock.patch.dict(os.environ, mine))
        stack.enter_context(mock.patch.object(DemoAgent.__init__, "__kwdefaults__", {**_SPEAKS, "sleep": _at_once}))
        clock = _Clock()
        for name, stand_in in (("time", clock), ("os", clock), ("_last", 0), ("_DRAWN", 1), ("_random", [])):
            stack.enter_context(mock.patch.object(ids, name, stand_in))
        for name in _OF_THE_MACHINE:
            os.environ.pop(name, None)
        yield


def _write(path: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path.write_text(page(path, Path(folder)), encoding="utf-8")


if __name__ == "__main__":
    for one in [Path(name).resolve() for name in sys.argv[1:]] or pages():
        _write(one)
