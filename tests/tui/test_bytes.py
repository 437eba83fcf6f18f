"""What a key costs on the line to the terminal, in bytes: what differs on the screen, as it is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from compared import two_executions, write_suite
from pictures import resized
from rich.console import Console
from shop import app_on, settle
from textual.geometry import Region
from textual.pilot import Pilot

from agenteval_tui.history.store import Store
from agenteval_tui.tui.terminal.screen_buffer import Mirror
from agenteval_tui.tui.widgets.virtual_list import VirtualList
from tests.sweeps import share

SIZES = ((120, 40), (200, 60))
MOVE, EDIT = 500, 1_000
FRAME = 24  # bytes around a picture: when it begins and ends, and where the cursor is
CONSOLE = Console(color_system="truecolor", force_terminal=True)
LISTS = ("1", "5", "5 tab", "6", "9", "2")


class Line:
    """A terminal that shows a part of the screen, and counts what is sent to it."""

    def __init__(self, pilot: Pilot[Any], region: Region) -> None:
        self._app, self._region = pilot.app, region
        self._mirror = Mirror(*pilot.app.size, erases=True)
        self.sent()

    def sent(self) -> int:
        """So many bytes, for it to show what the screen shows now."""
        region = self._region
        strips = self._app.screen._compositor.render_strips()
        rows = [(y, strips[y].crop(region.x, region.right)) for y in range(region.y, region.bottom)]
        text = self._mirror.paint([(y, [(region.x, row, row.cell_length)]) for y, row in rows], CONSOLE)
        return len(text.encode()) + FRAME if text else 0


async def test_a_cursor_move_in_any_list_sends_at_most_500_bytes_and_a_key_in_the_editor_1000(tmp_path: Path) -> None:
    """The row of the cursor is as wide as the list."""
    suite = write_suite(tmp_path / "suites")
    with Store.open(tmp_path / "history.db") as store:
        two_executions(store, str(suite))
    found: dict[str, int] = {}
    app = app_on(suite.parent, tmp_path / "history.db")
    async with app.run_test(size=SIZES[0]) as pilot:
        await settle(pilot)
        for keys in share(LISTS):
            await pilot.press(*keys.split())
            for size in SIZES:
                await resized(pilot, size)
                await settle(pilot)
                view = app.focused
                assert isinstance(view, VirtualList), keys
                line = Line(pilot, view.region)
                for step in (1, 1, 1, -1) if view.cursor < view.count - 1 else (-1, 1):
                    view.cursor += step
                    await pilot.pause()
                    found[f"{keys} at {size[0]}"] = max(line.sent(), found.get(f"{keys} at {size[0]}", 0))
        await pilot.press("1", "j", "enter")
        await settle(pilot)
        await pilot.press("e")
        await settle(pilot)
        whole = Line(pilot, app.screen.region)
        keys = {}
        for key in ("down", "end", "a", "b", "c", "backspace", "backspace", "backspace"):
            await pilot.press(key)
            await settle(pilot)
            keys[f"{key} {len(keys)}"] = whole.sent()
    assert max(found.values()) <= MOVE, found
    assert max(keys.values()) <= EDIT, keys
