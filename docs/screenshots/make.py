"""The pictures of the README: real screens of the app on the sample suites, run with the bundled agent.

python docs/screenshots/make.py
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
SIZE = (140, 40)


def clean(svg: str) -> str:
    """Without the web font that Textual names: a picture loads nothing."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace")


async def main() -> None:
    """Run the samples once, open a failure, edit its criterion, take pictures on the way."""
    from agenteval_tui.cli.start import AppStart
    from agenteval_tui.core import directories
    from agenteval_tui.history.store import Store
    from agenteval_tui.runs.engine import Engine
    from agenteval_tui.runs.plan.model import PlanOptions
    from agenteval_tui.runs.plan.planner import make_plan
    from agenteval_tui.suites.discover import discover
    from agenteval_tui.suites.load import load_suite
    from agenteval_tui.tui.app import AgentevalApp
    from agenteval_tui.tui.widgets.config_editor import ConfigEditor
    from agenteval_tui.tui.widgets.virtual_list import VirtualList

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        suites = folder / "suites"
        suites.mkdir()
        for path in directories.bundled("sample_suites").glob("*.suite.yaml"):
            shutil.copy(path, suites)
        db = folder / "history.db"
        store = Store.open(db)
        loaded = [load_suite(path) for path in discover([suites])]
        plan = make_plan(loaded, PlanOptions(title="all suites"), user_agents={}, store=store)
        await Engine(plan, store, lambda event: None).run()
        store.close()
        app = AgentevalApp(AppStart(paths=(suites,), db=db))
        async with app.run_test(size=SIZE) as pilot:

            async def until(text: str) -> None:
                for _ in range(500):
                    rows = app.screen._compositor.render_strips()
                    if any(text in "".join(segment.text for segment in row) for row in rows):
                        return
                    await pilot.pause(0.02)
                raise AssertionError(f"never shown: {text}")

            await until("order-status")
            tree = app.screen.query_one("#tree", VirtualList)
            tree.move_to_key(next(k for k in map(tree.source.key, range(tree.count)) if k.endswith("-deutschland")))
            await until("last runs")
            (HERE / "suites.svg").write_text(clean(app.export_screenshot(title="agenteval")), encoding="utf-8")
            await pilot.press("e")
            await until("stored: 5 runs")
            editor = app.screen.query_one("#config", ConfigEditor)
            editor.replace_all(editor.text.replace("country = '{{country}}'", "country"))
            await until("flip to passed")
            editor.go_to(0)
            await pilot.pause(0.3)
            (HERE / "inspect.svg").write_text(clean(app.export_screenshot(title="agenteval")), encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as private:
        os.environ |= {"TERM": "xterm-256color", "TZ": "UTC"}
        os.environ |= {f"AGENTEVAL_{kind}_DIR": private for kind in ("DATA", "CONFIG", "RUNTIME")}
        asyncio.run(main())
