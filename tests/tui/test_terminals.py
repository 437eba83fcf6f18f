"""Terminals that have less: the app starts, moves, helps, jumps and ends, and sends only what they understand."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from terminal import ROOT, Terminal

from agenteval_tui.tui.terminal.output_filters import as_ascii

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("terminals")]

SGR = re.compile(rb"\x1b\[([\d;]*)m")
MILLIONS, MANY, SIXTEEN, NONE = 3, 2, 1, 0


def most_colours(written: bytes) -> int:
    """How many colours what was written needs."""
    most = NONE
    for found in SGR.finditer(written):
        numbers = [int(number or 0) for number in found[1].split(b";")]
        while numbers:
            number = numbers.pop(0)
            if number in (38, 48) and numbers:
                most = max(most, MILLIONS if numbers[0] == 2 else MANY)
                del numbers[: 4 if numbers[0] == 2 else 2]
            elif number in (*range(30, 38), *range(40, 48), *range(90, 98), *range(100, 108)):
                most = max(most, SIXTEEN)
    return most


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("environment", "colours", "ascii_only"),
    [
        ({"TERM": "linux"}, SIXTEEN, False),
        ({"TERM": "xterm"}, SIXTEEN, False),
        ({"TERM": "screen"}, SIXTEEN, False),
        ({"TERM": "screen-256color"}, MANY, False),
        ({"TERM": "vt100", "LANG": "C"}, NONE, True),
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}, NONE, False),
    ],
    ids=["linux", "xterm", "screen", "screen-256color", "vt100-C", "NO_COLOR"],
)
def test_a_terminal_gets_only_what_it_understands(
    environment: dict[str, str], colours: int, ascii_only: bool, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "agenteval_tui", str(ROOT / "sample_suites" / "recorded")]
    with Terminal(
        command, columns=80, rows=24, env={"COLORTERM": "", "LC_ALL": "", "LC_CTYPE": "", **environment}
    ) as it:
        it.wait_for("customers-austria")
        it.wait_for("help")
        sign = ">" if ascii_only else "▌"

        def cursor_is_at(name: str) -> Callable[[Terminal], bool]:
            # By name: the lines above the list may come later and move its rows.
            return lambda t: any(line.startswith(sign) and name in line for line in t.screen.display)

        it.wait_for(cursor_is_at("customers-austria"))
        it.send("\x1b[B")
        it.wait_for(cursor_is_at("send-back-notebook"))
        it.send("?")
        it.wait_for("Help")
        it.send("q")
        it.wait_for(lambda t: "Help" not in t.text)
        it.send("\x0f")
        it.wait_for(
            lambda t: any(
                line.startswith(("a", "s", "d", "f", "g")) and "send-back-notebook" in line for line in t.screen.display
            )
        )
        it.send(" ")
        it.send("/speaker\r")
        it.wait_for(lambda t: "send-back-notebook" not in t.text)
        it.send("q")
        it.wait_for_end()
        assert most_colours(bytes(it.written)) == colours
        assert bytes(it.written).isascii() == ascii_only
        assert b"\\u" not in it.written


def test_ascii_keeps_every_cell() -> None:
    assert as_ascii("▸ ✓ Ünïcode … 日本 │ ½") == "> + Unicode . ???? | 1"
    assert as_ascii("plain") == "plain"
