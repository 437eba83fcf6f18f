"""Attacks in everything that comes from elsewhere, through every screen of the real program in a real terminal.

The same walk is done twice: with plain words, which tells what the program itself writes, and with the attacks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import yaml
from attacks import ATTACKS, SEQUENCE, batched, shape
from terminal import Terminal

from agenteval_tui import places
from agenteval_tui.grading.grade import foreign_result, grade
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.rows import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.text.display import displayable
from agenteval_tui.text.identity import now_ms
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("e2e")]

AT_ONCE = 12
ENTER, ESCAPE, TAB = "\r", "\x1b", "\t"
F1, F2, F4, F6, F7, F9 = "\x1bOP", "\x1bOQ", "\x1bOS", "\x1b[17~", "\x1b[18~", "\x1b[20~"


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
        error=RunError("kind" + text, "message " + text, "mend " + text) if broken else None,
    )


def write_history(db: Path, suite: Path, texts: list[str]) -> None:
    """Runs of the suite, of which every third ended in an error, and with another tool's verdict."""
    store = Store.open(db)

    def runs() -> Iterator[tuple[PlannedRun, RunEnded]]:
        for number, text in enumerate(texts):
            for again in range(3):
                config = {"metrics": [{"type": "TextMatch", "contains_all": [text, "no " + text]}]}
                spec = CriterionSpec("Criterion " + text, "TextResponse", config, expected_value=text)
                transcript = transcript_of(text, broken=again == 2)
                verdict = grade(transcript, [spec], {})
                foreign = foreign_result("theirs " + text, passed=False, source="tool " + text, reason=text)
                planned = PlannedRun(
                    f"RUN-{number:04}-{again}",
                    "EXECUTION",
                    number * 3 + again,
                    str(suite.resolve()),
                    "Suite " + text,
                    f"test-{number}" + (text if again == 2 else ""),
                    "Name " + text,
                    "variation " + text,
                    repetition=again + 1,
                    agent="agent " + text,
                    prompt="prompt " + text,
                    tags=(text,),
                    variables={text: text},
                    criteria=(spec.hash,),
                    specs=(spec_to_dict(spec),),
                )
                status = "error" if again == 2 else str(verdict.outcome)
                results = () if again == 2 else (*verdict.results, foreign)
                yield planned, RunEnded(planned.id, status, 0.0, 1, 1.0, 1, transcript, results, why="why " + text)

    title = "title " + " ".join(texts)
    record = ExecutionRecord("EXECUTION", title, "import", "source " + texts[0], (str(suite.resolve()),), now_ms())
    store.import_runs(record, runs())
    store.close()


def walk(folder: Path, texts: list[str]) -> str:
    """Through all screens, pressing what is there; gives all that the terminal received."""
    folder.mkdir()
    suite = folder / "words.suite.yaml"
    written = [text.encode("utf-8", "ignore").decode() for text in texts]
    suite.write_text(yaml.safe_dump(suite_of(written)), "utf-8")
    broken = {"name": "Broken " + written[0], "tests": [{"id": written[0], "pro" + written[0]: written[0]}]}
    (folder / "broken.suite.yaml").write_text(yaml.safe_dump(broken), "utf-8")
    write_history(folder / "history.db", suite, texts)
    # Two walks go at once: what one keeps must not lie in the other's way.
    own = {name: folder.parent / f"{folder.name}-{name}" for name in ("config", "data")}
    own["runtime"] = places.runtime_dir() / folder.name  # sockets need a short path
    own["runtime"].mkdir(mode=0o700, parents=True)
    settings = own["config"]
    (settings / "themes").mkdir(parents=True, exist_ok=True)
    (settings / "themes" / "mine.yaml").write_text(yaml.safe_dump({"name": "theme " + written[0]}), "utf-8")
    (settings / "keys.yaml").write_text(yaml.safe_dump({"suites.run" + written[0]: written[0]}), "utf-8")
    command = [sys.executable, "-m", "agenteval_tui", "--db", str(folder / "history.db"), str(folder)]
    env = {f"AGENTEVAL_{name.upper()}_DIR": str(path) for name, path in own.items()}
    with Terminal(command, columns=130, rows=40, env=env) as terminal:
        press = terminal.press
        terminal.wait_for("R run shown")
        terminal.wait_for("test-0")
        press(F1, ESCAPE, F2)
        terminal.settle()
        press(ESCAPE, "\x10")
        terminal.settle()
        press(ESCAPE)
        for number in range(len(texts)):
            press("g", *["j"] * (2 + number), " ", "j", TAB, TAB, "k", " ")
            press(ENTER)
            terminal.wait_for("looked at")
            terminal.settle()
            press("c", "c", "t", "t", "x", "x", ".", ",", "F", "F", "/", "3133", ENTER, ESCAPE)
            press("D")
            terminal.wait_for("Compare run")
            press(ESCAPE, "d")
            terminal.wait_for("compare with")
            terminal.settle()
            press("n", "f", "F", "x", "b")
            terminal.wait_for("divergence")
            terminal.settle()
            press("g", "j", "f", "a", "s", "j", "d", "y", "4")
            terminal.wait_for("looked at")
            press("e", "\x1b[B", " ", F4, F7)
            terminal.settle()
            press(ESCAPE, F9, ESCAPE, F6, ESCAPE, "N", "N", "n", "p")
            press("1")
            terminal.wait_for("R run shown")
        press("G", "/", "3133", ESCAPE, "5")
        terminal.wait_for("1 execution")
        press(ENTER, "j", "f", "f", TAB, "G", "/", "31337")
        terminal.settle()
        press(ESCAPE, ESCAPE, ESCAPE, "1", "g", "r")
        terminal.settle(1.0)
        press("3", "l", "n", TAB, TAB, "5")
        terminal.wait_for("execution")
        press("8")
        terminal.wait_for("check all")
        terminal.wait_for("bundled")
        # A conversation in which the words are sent and come back, and the test that is made of it.
        press(ENTER, "31337 of customers", ENTER)
        terminal.settle(0.5)
        press(ESCAPE, "t")
        terminal.settle(0.5)
        press("\x1b[C", "\x1b[B", ESCAPE, "G", "c")
        terminal.wait_for("needs your trust")
        press("j", ESCAPE, "/", "31337", ESCAPE, TAB, TAB, TAB, ESCAPE, "1")
        terminal.wait_for("R run shown")
        press("g", "P")
        terminal.wait_for("Plan a run")
        terminal.settle(0.5)
        press("\x1b[B", "\x1b[C", "\x1b[C", ESCAPE)
        press("3", "x", ESCAPE, "w", ESCAPE, "1")
        terminal.wait_for("R run shown")
        # The Editor: all fields of a test, its criteria, an edit, and the questions of both screens.
        press("g", "j", "j", "m", "t", ESCAPE, "x", ESCAPE, "n", ESCAPE, "E")
        terminal.wait_for("config_uxon")
        terminal.settle()
        press("x", TAB, "x", TAB, "x", TAB, "\x1b[C", ENTER, ESCAPE, "\x1b[19~")
        press("\x0e", "j", "d", "K", "a", ESCAPE, ENTER)
        terminal.settle(0.5)
        press("x", "\x1a", "\x0e", "/", "31337", ESCAPE, F6, ESCAPE)
        terminal.settle()  # out of the field, however busy the machine: in it a 1 is a 1
        press("1")
        terminal.wait_for("R run shown")
        press("q")
        terminal.wait_for_end()
        ended = os.waitid(os.P_PID, terminal.pid, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        assert ended.si_status == 0
        log = own["data"] / "errors.log"
        assert not log.exists(), log.read_text("utf-8")
        return terminal.written.decode("utf-8")


@pytest.mark.timeout(400)
def test_no_attack_reaches_the_terminal_through_any_screen(tmp_path: Path) -> None:
    groups = batched(list(ATTACKS), AT_ONCE)
    harmless = ["31337 words"]
    attacks = ["".join(ATTACKS[name] for name in some) for some in groups]
    with ThreadPoolExecutor(2) as both:
        plain, written = both.map(walk, (tmp_path / "plain", tmp_path / "attacked"), (harmless, attacks))
    ours = {shape(found) for found in SEQUENCE.findall(plain)}
    assert written.count("31337") > 100, "the harmless part is shown"
    for found in SEQUENCE.finditer(written):
        assert "31337" not in found[0], repr(written[found.start() - 60 : found.end() + 60])
        assert shape(found[0]) in ours, repr(written[found.start() - 60 : found.end() + 60])
    rest = SEQUENCE.sub("", written).replace("\r", "").replace("\n", "")
    assert displayable(rest) == rest, [c for c in rest if displayable(c) != c][:9]
    assert "\x1b" not in rest
