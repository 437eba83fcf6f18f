"""The pictures of the README: real screens of the app on the sample suites, run with the bundled agent.

python docs/screenshots/make.py
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from textual.pilot import Pilot

import agenteval_tui as agenteval
from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core import directories
from agenteval_tui.suites.trust import Trust
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.widgets.virtual_list import VirtualList

HERE = Path(__file__).parent
SIZE = (140, 40)
CAST = (120, 32)


def clean(svg: str) -> str:
    """Without the web font that Textual names: a picture loads nothing."""
    svg = re.sub(r"@font-face \{.*?\}", "", svg, flags=re.DOTALL)
    return svg.replace("Fira Code, monospace", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace")


def animated(frames: Sequence[tuple[str, float]]) -> str:
    """Pictures of one size, each shown for its seconds, as one SVG that plays in a browser without a script."""
    total = sum(seconds for _, seconds in frames)
    opening = re.match(r"<svg[^>]*>", frames[0][0])
    assert opening
    rules, bodies, at = [], [], 0.0
    for number, (svg, seconds) in enumerate(frames):
        start, end = 100 * at / total, 100 * (at + seconds) / total
        before = f"0%{{visibility:hidden}}{start:.3f}%{{visibility:visible}}" if start else "0%{visibility:visible}"
        rules.append(f"@keyframes f{number}{{{before}{end:.3f}%,100%{{visibility:hidden}}}}")
        rules.append(f".f{number}{{visibility:hidden;animation:f{number} {total:g}s step-end infinite}}")
        bodies.append(f'<g class="f{number}">{svg[svg.index(">") + 1 : svg.rindex("</svg>")]}</g>')
        at += seconds
    still = f"@media (prefers-reduced-motion){{*{{animation:none!important}}.f{len(frames) - 1}{{visibility:visible}}}}"
    return f"{opening.group()}<style>{''.join(rules)}{still}</style>{''.join(bodies)}</svg>\n"


class Camera:
    """An app on the sample suites, its keys, and pictures of it."""

    def __init__(self, app: AgentevalApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot
        self.frames: list[tuple[str, float]] = []

    async def until(self, text: str, *, gone: bool = False) -> None:
        """Wait until the screen shows `text`, or does so no more."""
        for _ in range(1500):
            rows = self.app.screen._compositor.render_strips()
            shown = any(text in "".join(segment.text for segment in row) for row in rows)
            if shown != gone:
                return
            await self.pilot.pause(0.02)
        shown = "\n".join("".join(segment.text for segment in row) for row in rows)
        raise AssertionError(f"never {'gone' if gone else 'shown'}: {text}\n{shown}")

    async def press(self, *keys: str, shows: str) -> None:
        await self.pilot.press(*keys)
        await self.until(shows)

    def picture(self, title: str = "agenteval") -> str:
        return clean(self.app.export_screenshot(title=title))

    async def frame(self, seconds: float, title: str) -> None:
        """A picture for the cast; its title says what was pressed, and what to look at."""
        await self.pilot.pause(0.3)
        self.frames.append((self.picture(title), seconds))

    def go_to(self, test: str) -> None:
        """Put the cursor of Suites on a test."""
        tree = self.app.screen.query_one("#tree", VirtualList)
        tree.move_to_key(next(key for key in map(tree.source.key, range(tree.count)) if key.endswith(test)))


@asynccontextmanager
async def on_samples(folder: Path, size: tuple[int, int]) -> AsyncIterator[Camera]:
    """The app on a copy of the sample suites in `folder`."""
    suites = folder / "suites"
    suites.mkdir(parents=True)
    for path in directories.bundled("sample_suites").glob("*.suite.yaml"):
        shutil.copy(path, suites)
    app = AgentevalApp(AppStart(paths=(suites,), db=folder / "history.db"))
    async with app.run_test(size=size) as pilot:
        yield Camera(app, pilot)


async def stills(folder: Path) -> None:
    """Suites after a run, and Inspect with an edit that passes, at 140 columns."""
    async with on_samples(folder, SIZE) as camera:
        await camera.press("R", shows="51 of 51")
        await camera.until("finished")
        await camera.press("1", shows="order-status")
        camera.go_to("order-status")
        await camera.until("in the last execution")
        (HERE / "suites.svg").write_text(camera.picture(), encoding="utf-8")
        await camera.press("enter", shows="config_uxon")
        await camera.press("f7", shows="enter apply")
        await camera.press("enter", shows="then")
        await camera.pilot.pause(0.5)
        (HERE / "inspect.svg").write_text(camera.picture(), encoding="utf-8")


async def cast(folder: Path) -> None:
    """The loop: run, find, understand, change the criterion, see what it changes, save, run again."""
    async with on_samples(folder, CAST) as camera:
        await camera.until("order-status")
        await camera.frame(2.5, "R runs every test")
        await camera.press("R", shows="of 51")
        await camera.until("✗")
        await camera.frame(2, "You watch the runs; they continue without the terminal")
        await camera.until("51 of 51")
        await camera.until("The clearest failure")
        await camera.frame(4, "enter opens the clearest failure")
        await camera.press("enter", shows="config_uxon")
        await camera.frame(6, "What the agent did | what the criterion expected, and got | the criterion")
        await camera.press("f7", shows="enter apply")
        await camera.frame(5, "F7 lists the smallest edits that pass, with the runs that each one flips")
        await camera.press("enter", shows="then")
        await camera.frame(6, "enter applies one: every stored run is graded again at once, and no agent is called")
        await camera.press("ctrl+s", shows="─ saved")
        await camera.frame(3, "^s writes the edited bytes of the YAML, and nothing else")
        await camera.press("ctrl+t", shows="3 of 3")
        await camera.until("finished")
        await camera.frame(4, "^t runs the test again: it passes")
        (HERE / "loop.svg").write_text(animated(camera.frames), encoding="utf-8")


AGENT = """\
ORDERS = {"W1042": {"status": "on its way", "total": 4200}, "W1017": {"status": "delivered", "total": 1999}}

def money(cents):
    return f"${cents // 100}"

def answer(prompt):
    number = next(word.strip("#?.") for word in prompt.split() if word.startswith("#"))
    order = ORDERS[number]
    if "refund" in prompt:
        return f"I refund {money(order['total'])} for order #{number}."
    return f"Order #{number} is {order['status']}."
"""
SHOP = """\
name: Shop
agent: shop
agents: {shop: {kind: python, callable: "agent:answer"}}
defaults: {repeat: 3}
tests:
  - id: refund-amount
    prompt: "Please refund order #W1017."
    criteria:
      - name: Says the amount
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "$19.99"}]}
  - id: where-is-it
    prompt: "Where is order #W1042?"
    criteria:
      - name: Says that it is on its way
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: on its way}]}
  - id: refund-number
    prompt: "I want a refund for #W1042."
    criteria:
      - name: Names the order
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "W1042"}]}
"""


async def watching(folder: Path) -> None:
    """Edit the agent, save, and see which verdicts change."""
    await asyncio.to_thread(folder.mkdir)
    agent, suite = folder / "agent.py", folder / "shop.suite.yaml"
    agent.write_text(AGENT)
    suite.write_text(SHOP)
    Trust.load().trust(folder)
    agenteval.run(suite, db=folder / "history.db")
    app = AgentevalApp(AppStart(paths=(folder,), db=folder / "history.db"))
    async with app.run_test(size=CAST) as pilot:
        camera = Camera(app, pilot)
        await camera.until("refund-amount")
        await camera.press("home", shows="Shop")
        await camera.frame(2.5, "W watches the code of the selected tests' agent")
        await camera.press("W", shows="9 unchanged")
        await camera.frame(3.5, "Now edit the agent in your own editor, in another terminal")
        agent.write_text(AGENT.replace('{cents // 100}"', '{cents / 100:.2f}"'))
        await camera.until("3 of 3 failures pass now")
        await camera.until("recorded   assistant")
        await camera.frame(6, "You saved agent.py: half a second later you see which verdicts change, and why")
        agent.write_text(AGENT.replace('{cents // 100}"', '{cents / 100:.2f}"').replace("['status']", "['state']"))
        await camera.until("3 runs fail now")
        await camera.until("KeyError")
        await camera.frame(6, "The next save breaks another test")
        agent.write_text(AGENT.replace('{cents // 100}"', '{cents / 100:.2f}"') + "# fixed\n")
        await camera.until("6 unchanged;")
        await camera.until("recorded   assistant")
        await camera.press("d", shows="$19.99")
        await camera.frame(5, "d shows the recorded run and the new one side by side")
        await camera.press("escape", shows="pass now")
        await camera.press("R", shows="9 recorded runs, 0 failed")
        await camera.frame(4, "R runs the changed tests for real; until then nothing counts, and nothing is paid for")
        (HERE / "watch.svg").write_text(animated(camera.frames), encoding="utf-8")


async def main() -> None:
    """All pictures, of real screens on real runs."""
    with tempfile.TemporaryDirectory() as name:
        await stills(Path(name) / "stills")
        await cast(Path(name) / "cast")
        await watching(Path(name) / "watching")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as private:
        os.environ |= {"TERM": "xterm-256color", "TZ": "UTC"}
        os.environ |= {f"AGENTEVAL_{kind}_DIR": private for kind in ("DATA", "CONFIG", "RUNTIME")}
        asyncio.run(main())
