"""Several pictures out of one start of the app, each compared with its own stored SVG.

Starting the app and going somewhere costs far more than a picture, so a test walks and takes them on its way, at
one size of the terminal after the other. `make snapshots` writes them anew, and a failure is told as
pytest-textual-snapshot tells it: the names, and `snapshot_report.html` with each picture beside the stored one.
All that a picture shows must be readable in the theme that it shows (`faint.py`).
"""

from __future__ import annotations

import inspect
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from faint import faint
from pytest_textual_snapshot import PseudoApp, PseudoConsole, SVGImageExtension, node_to_report_path
from rich.console import Console
from shop import settle
from syrupy.assertion import SnapshotAssertion
from syrupy.location import PyTestLocation
from textual.pilot import Pilot

from agenteval_tui.tui.app import AgentevalApp

Size = tuple[int, int]
SMALL, LARGE = SIZES = ((80, 24), (140, 45))


class _NamedImage(SVGImageExtension):  # type: ignore[misc]
    """A picture whose file is called as the walk calls it, and not as the test."""

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: int | str = 0) -> str:
        assert isinstance(index, str)
        return index


class Pictures:
    """`async with pictures.of(app) as pilot:` and in it `await pictures.take("somewhere[{size}]")`."""

    def __init__(self, snapshot: SnapshotAssertion, node: pytest.Item) -> None:
        self._snapshot = snapshot.use_extension(_NamedImage)
        self._node = node
        self._pilot: Pilot[Any] | None = None
        self._different: list[str] = []
        self._taken: set[str] = set()
        self._faint: list[str] = []

    @asynccontextmanager
    async def of(self, app: AgentevalApp, size: Size = SMALL) -> AsyncIterator[Pilot[Any]]:
        """Start the app; at the end every picture must have been the same as the stored one."""
        try:
            # As where pictures are taken one at a time: with notifications.
            async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
                self._pilot = pilot
                await settle(pilot)
                yield pilot
        except BaseException:
            # `--snapshot-update` deletes pictures that nobody took: those that a walk did not reach are no such.
            self._snapshot.session.remove_unused_snapshots = lambda **_: None
            raise
        assert not self._faint, "too little contrast: " + "; ".join(self._faint)
        assert not self._different, "not what was stored (see snapshot_report.html): " + ", ".join(self._different)

    async def take(self, name: str, *sizes: Size) -> None:
        """Compare what the screen shows, at each of these sizes (the small and the large one, unless told).

        `name` is the stored file's, without its ending; `{size}` in it stands for the size.
        """
        assert self._pilot is not None
        for size in sizes or SIZES:
            await resized(self._pilot, size)
            await self._pilot.wait_for_scheduled_animations()
            await settle(self._pilot)
            self._compare(name.format(size=f"{size[0]}x{size[1]}"), self._pilot.app)

    def _compare(self, name: str, app: Any) -> None:
        assert name not in self._taken, f"two pictures are called {name}"
        self._taken.add(name)
        self._faint += [f"{name}, {piece}" for piece in faint(app)]
        picture = app.export_screenshot(title=app.title, simplify=True)
        same = self._snapshot(name=name) == picture
        if not same:
            self._different.append(name)
        # What the report is made of. Its key is the number of the comparison.
        result = self._snapshot.executions[self._snapshot.num_executions - 1]
        stored = result.final_data
        console = Console(legacy_windows=False, force_terminal=True)
        path, line, _ = self._node.reportinfo()
        data = (
            same,
            str(stored or ""),
            picture,
            PseudoApp(PseudoConsole(console.legacy_windows, console.size)),
            path,
            line,
            name,
            inspect.getdoc(self._node.function) or "",  # type: ignore[attr-defined]
            "",
            stored is not None,
        )
        place = node_to_report_path(self._node)
        place.with_name(f"{place.name}_{name}").write_bytes(pickle.dumps(data))


async def resized(pilot: Pilot[Any], size: Size) -> None:
    """The same app in a terminal of this size."""
    if tuple(pilot.app.size) != size:
        await pilot.resize_terminal(*size)
        await settle(pilot)


@pytest.fixture
def pictures(snapshot: SnapshotAssertion, request: pytest.FixtureRequest) -> Pictures:
    return Pictures(snapshot, request.node)
