"""The program in a real pseudo-terminal: colours and progress where they are wanted, and the app."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte
import pytest
import yaml
from terminal import Terminal

pytestmark = pytest.mark.e2e


def in_terminal(
    arguments: Sequence[object],
    *,
    until: bytes = b"",
    keys: bytes = b"",
    then: Callable[[], object] | None = None,
    **env: str,
) -> tuple[bytes, int]:
    """What the program wrote, and its exit code. After `until` was seen, `keys` are typed and `then` is called."""
    with Terminal([sys.executable, "-m", "agenteval_tui", *map(str, arguments)], columns=80, rows=24, env=env) as it:
        if until:
            it.wait_for(lambda terminal: until in terminal.written, what=repr(until))
            os.write(it.fd, keys)
            if then is not None:
                then()
        it.wait_for_end()
        code = it.exit_code()
        assert code is not None
        return bytes(it.written), code


def screen_of(written: bytes) -> list[str]:
    screen = pyte.Screen(80, 200)
    pyte.ByteStream(screen).feed(written)
    return [line.rstrip() for line in screen.display if line.strip()]


def test_progress_and_colours(suite: Path) -> None:
    # The agent answers when the line at the bottom was seen, and not before.
    seen = suite.with_name("seen")
    answer = f'until [ -e "{seen}" ]; do sleep 0.05; done; echo W1042'
    agent = yaml.safe_dump(
        {"kind": "command", "command": ["sh", "-c", answer], "output": "text"}, default_flow_style=True
    )
    text = suite.read_text("utf-8")
    assert "{kind: demo, version: v1, pace: 0}" in text
    suite.write_text(text.replace("{kind: demo, version: v1, pace: 0}", agent), "utf-8")
    arguments = ["run", suite, "--repeat", "5", "--trust"]
    written, code = in_terminal(arguments, until=b"/10 ", then=seen.touch, TERM="xterm-256color")
    assert code == 1, written
    assert b"\x1b[32m" in written
    assert b"/10 " in written  # the line at the bottom, written over
    lines = screen_of(written)
    assert lines[0].startswith("10 runs on shop")  # the plan
    assert lines[1].startswith("✓ good  5/5")
    assert not any("░" in line for line in lines)  # and gone at the end


@pytest.mark.parametrize(
    ("env", "colours"),
    [
        ({"TERM": "dumb"}, False),
        ({"TERM": "xterm-256color", "NO_COLOR": "1", "CI": "1"}, False),
        ({"TERM": "xterm-256color", "CI": "1"}, True),
    ],
)
def test_terminals_that_want_less(suite: Path, env: dict[str, str], colours: bool) -> None:
    written, code = in_terminal(["run", suite], **env)
    assert code == 1
    assert (b"\x1b" in written) is colours
    assert b"\x1b[2K" not in written


def test_quiet_shows_no_progress_of_a_merge_either(suite: Path, tmp_path: Path) -> None:
    in_terminal(["run", suite, "--db", tmp_path / "other.db"])
    for quiet in (False, True):
        words = ["db", "import", tmp_path / "other.db", "--db", tmp_path / f"{quiet}.db", *["-q"] * quiet]
        written, code = in_terminal(words, TERM="xterm-256color")
        assert (code, b"\x1b[2K" in written) == (0, not quiet), written


def test_a_dumb_terminal_gets_no_app() -> None:
    written, code = in_terminal([], TERM="dumb")
    assert code == 2
    assert b"needs a terminal" in written


def test_no_verb_opens_the_app_on_the_suite(suite: Path) -> None:
    written, code = in_terminal([suite], until=b"Orders", keys=b"\x11", TERM="xterm-256color")
    assert b"Orders" in written
    assert b"\x1b[?1049h" in written  # the alternate screen
    assert b"\x1b[?1049l" in written  # and back
    assert code == 0
