"""The app breaks: one line on a terminal that is as it was, the traceback in a file, an exit code of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from terminal import ROOT, Terminal

from agenteval_tui.core import directories

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("terminals")]

SOURCE = """
import sys
from agenteval_tui.__main__ import main
from agenteval_tui.tui.screens.suites.screen import SuitesScreen

def broken(self, *_):
    key = "sk-of-a-variable"
    {how}

{where} = broken
sys.exit(main([{folder!r}]))
"""
WAYS = {
    "an action": ("SuitesScreen.action_mark", "raise IndexError(len(key))"),
    "painting": (
        "SuitesScreen.action_mark",
        "type(self.query_one('#tree')).render_lines = lambda *_: 1 / 0; self.refresh(layout=True)",
    ),
    "a worker": (
        "SuitesScreen.action_mark",
        "async def work(): raise IndexError('in a worker')\n    self.run_worker(work())",
    ),
    "a timer": ("SuitesScreen.action_mark", "self.set_timer(0.01, lambda: 1 / 0)"),
    "what Textual shows itself": ("SuitesScreen.action_mark", "self.app.panic('a panic of its own')"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
def test_it_ends_in_one_line(way: str, run_in_terminal: Callable[..., Terminal]) -> None:
    where, how = WAYS[way]
    source = SOURCE.format(how=how, where=where, folder=str(ROOT / "sample_suites" / "recorded"))
    with run_in_terminal(source, columns=80, rows=24) as it:
        it.wait_for("customers-austria")
        it.settle()
        it.send(" ")
        it.wait_for_end()
        assert it.exit_code() == 3
        assert b"\x1b[?1049l" in it.written, "the terminal is as it was"
        after = bytes(it.written).rpartition(b"\x1b[?1049l")[2].decode("utf-8")
    assert after.count("\n") == 1
    assert "agenteval: an error in the program" in after
    log = directories.data_dir() / "errors.log"
    assert str(log) in after
    kept = log.read_text("utf-8")
    assert "running the app" in kept
    assert "Traceback" in kept or "panic" in kept
    assert "sk-of-a-variable" not in kept.replace('key = "sk-of-a-variable"', "") + after
