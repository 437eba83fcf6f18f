"""A folder of suites, a history and settings with texts of somebody else in every place that has one; and the program
walked through in a real terminal."""

from __future__ import annotations

import base64
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from attacks import ATTACKS, OURS, SEQUENCE, batched
from terminal import Terminal
from walked import NOTED, seen

from agenteval_tui.core import directories
from agenteval_tui.core.display import displayable
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

ENTER, ESCAPE, TAB = "\r", "\x1b", "\t"
F1, F2, F3, F4, F6, F7, F9 = "\x1bOP", "\x1bOQ", "\x1bOR", "\x1bOS", "\x1b[17~", "\x1b[18~", "\x1b[20~"
_AT_ONCE = 12
_WALKED = Path(__file__).with_name("walked.py")
_CLIPBOARD = re.compile(r"\x1b\]52;c;([A-Za-z0-9+/=]*)\x07")


def suite_of(texts: list[str]) -> dict[str, Any]:
    """A suite with the texts wherever a person can write words."""
    return {
        "name": "Suite " + texts[0],
        "description": " ".join(texts),
        "agent": "bundled",
        "agents": {
            "bundled": {"kind": "demo", "pace": 0, "description": texts[0]},
            "own " + texts[0]: {"kind": "command", "command": ["cat", texts[0]], "description": " ".join(texts)},
        },
        "tags": ["smoke", texts[0]],
        "tests": [
            {
                "id": f"test-{number}",  # an id may hold no such things: the broken suite tries
                "name": "Name " + text,
                "description": text * 3,
                "prompt": "How many customers? " + text,
                "variables": {"where": text},
                "criteria": [
                    {
                        "name": "Criterion " + text,
                        "description": text,
                        "expected_value": text,
                        "prototype_class": "TextResponse",
                        "config_uxon": {"metrics": [{"type": "TextMatch", "contains_all": [text, "{{where}}!"]}]},
                    },
                    {
                        "name": "Tools " + text,
                        "prototype_class": "ToolResponse",
                        "config_uxon": {"metrics": [{"type": "ToolCheck", "tools": [{"name": "tool" + text}]}]},
                    },
                ],
            }
            for number, text in enumerate(texts)
        ],
    }


def transcript_of(text: str, *, broken: bool) -> Transcript:
    """An answer with the text in all of its parts."""
    return Transcript(
        (
            Message("user", text),
            Message("assistant", "", text, (0, 1)),
            Message("tool", text, tool_call=0),
            Message("assistant", f"Answer {text}\n```sql\nSELECT '{text}'\n```"),
        ),
        (
            ToolCall("a", "tool" + text, {"key" + text: text, "in": [{text: [text]}]}, text, message=1),
            ToolCall("b", "broken" + text, text, text, "error", message=1, malformed=True),
        ),
        model=text,
        final_output=f"Answer {text}",
        error=RunError("kind" + text, "message " + text, "fix " + text) if broken else None,
        log="log " + text,
    )


class Walk:
    """The program in a terminal, and which of its screens is shown."""

    def __init__(self, terminal: Terminal, noted: Path, data: Path) -> None:
        self.terminal = terminal
        self.press, self.settle, self.wait_for = terminal.press, terminal.settle, terminal.wait_for
        self.copied = 0
        self._noted, self._data = noted, data

    def shown(self) -> str:
        """The screen that came up last, without its module."""
        names = self._noted.read_text("utf-8").split() if self._noted.exists() else []
        return names[-1] if names else ""

    def to(self, screen: str, *keys: str, holds: str = "") -> None:
        """Press keys until this screen is there, and (where a text is named) has it."""
        before = self.shown()
        self.press(*keys)
        self.wait_for(lambda _: self.shown().endswith(screen), what=f"{screen}, by {keys} on {before or 'nothing yet'}")
        if holds:
            self.wait_for(holds, what=f"{holds!r} on {screen}, by {keys} on {before}")
        self.settle(0.1)

    def sheet(self, key: str, sheet: str, *keys: str, holds: str = "") -> None:
        """Open a sheet, press keys in it, close it."""
        under = self.shown()
        self.to(sheet, key, holds=holds)
        self.press(*keys)
        self.to(under, ESCAPE)

    def copy(self, *keys: str) -> None:
        """Keys of which the last one copies."""
        self.press(*keys)
        self.copied += 1

    def leave(self) -> None:
        """End the program; nothing may have gone wrong in it."""
        self.press("q")
        self.terminal.wait_for_end()
        assert self.terminal.exit_code() == 0
        log = self._data / "errors.log"
        assert not log.exists(), log.read_text("utf-8")

    @property
    def screens(self) -> set[str]:
        """All that were shown."""
        return seen(self._noted)


@contextmanager
def walking(
    folder: Path, texts: list[str], suite: dict[str, Any], write_history: Callable[[Path, Path, list[str]], None]
) -> Iterator[Walk]:
    """The program on a folder with this suite, one that is broken, settings and a history; `texts` stand in all."""
    folder.mkdir()
    file = folder / "words.suite.yaml"
    written = [text.encode("utf-8", "ignore").decode() for text in texts]
    file.write_text(yaml.safe_dump(suite), "utf-8")
    broken = {"name": "Broken " + written[0], "tests": [{"id": written[0], "pro" + written[0]: written[0]}]}
    (folder / "broken.suite.yaml").write_text(yaml.safe_dump(broken), "utf-8")
    write_history(folder / "history.db", file, texts)
    # Several walks go at once: what one keeps must not lie in the other's way.
    own = {name: folder.parent / f"{folder.name}-{name}" for name in ("config", "data")}
    own["runtime"] = directories.runtime_dir() / folder.name  # sockets need a short path
    own["runtime"].mkdir(mode=0o700, parents=True, exist_ok=True)
    settings = own["config"]
    (settings / "themes").mkdir(parents=True, exist_ok=True)
    (settings / "themes" / "mine.yaml").write_text(yaml.safe_dump({"name": "theme " + written[0]}), "utf-8")
    # What is in the palette only has a key here.
    rare = dict.fromkeys(("new_suite", "history.prune", "trends.alert"), "Z") | {"history.share": "ctrl+e"}
    (settings / "keys.yaml").write_text(yaml.safe_dump({"suites.run" + written[0]: written[0]} | rare), "utf-8")
    command = [sys.executable, str(_WALKED), "--db", str(folder / "history.db"), str(folder)]
    noted = folder.parent / f"{folder.name}-screens"
    env = {f"AGENTEVAL_{name.upper()}_DIR": str(path) for name, path in own.items()} | {NOTED: str(noted)}
    with Terminal(command, columns=130, rows=40, env=env) as terminal:
        yield Walk(terminal, noted, own["data"])


def hostile_texts() -> list[str]:
    """All attacks, in few texts: each of them stands in all places of a test."""
    return ["".join(ATTACKS[name] for name in some) for some in batched(list(ATTACKS), _AT_ONCE)]


def assert_harmless(written: str) -> None:
    """What the terminal received has no sequence but the program's own, and no control of anybody else."""
    assert written.count("31337") > 100, "the harmless part is shown"
    for copied in copies(written):
        assert displayable(copied) == copied
    written = _CLIPBOARD.sub("", written)
    for found in SEQUENCE.finditer(written):
        assert OURS.fullmatch(found[0]), repr(written[found.start() - 60 : found.end() + 60])
    rest = SEQUENCE.sub("", written).replace("\r", "").replace("\n", "")
    assert displayable(rest) == rest, [c for c in rest if displayable(c) != c][:9]
    assert "\x1b" not in rest


def copies(written: str) -> list[str]:
    """What was put into the clipboard."""
    return [base64.b64decode(found).decode() for found in _CLIPBOARD.findall(written)]
