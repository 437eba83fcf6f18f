"""A monkey at the keyboard and the mouse: random gestures out of a seed, and what must hold whatever it does.

As a program it plays as long as it is told (see CONTRIBUTING.md); `test_monkey.py` plays a short game.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import faulthandler
import gc
import os
import random
import shutil
import socket
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shop import copy_samples, run_samples
from textual import events
from textual.geometry import Size
from textual.pilot import Pilot
from textual.screen import ModalScreen

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.tui.actions import ACTIONS
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.base_screen import FrameScreen
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.form import Form

SIZES = ((80, 24), (140, 45), (200, 60), (120, 40), (100, 30), (40, 12), (20, 5), (1, 1), (3, 2), (250, 10))
ROUND = 250  # gestures between two starts of the app
BURST = 8  # gestures at most that come at once
LEAVING = 12  # escapes at most until a work screen is as it was opened, then q
HANG_S = 1.0  # of the main thread's own time, between two looks
STUCK_S = 180.0  # by the clock, without one more gesture: then it is not the machine that is slow
LOOKS = 12  # at where it is, while it does nothing else
LOOK = 20  # gestures between two looks at the project's files

KEYS = sorted({key for action in ACTIONS for key in action.keys.split(",")} - {"q", "ctrl+c"})
MORE_KEYS = (
    "enter", "enter", "escape", "escape", "tab", "shift+tab", "up", "down", "left", "right", "pageup", "pagedown",
    "home", "end", "backspace", "delete", "space", "ctrl+a", "ctrl+e", "ctrl+k", "ctrl+u", "ctrl+w", "ctrl+x",
    "ctrl+c", "ctrl+v", "ctrl+y", "ctrl+left", "ctrl+right", "shift+left", "shift+right", "shift+up", "shift+down",
    "ctrl+home", "ctrl+end", "f3", "shift+f3", "insert", "ctrl+j",
)  # fmt: skip
TEXT = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 .,:;/?!{}[]\"'()-_=+*#@ßé日🙂\u0301"
PASTES = ("", "x", "two\nlines", "\x1b[31mred", "a" * 5000, "{{", "name: 1\n  b: [", "\r\n\t", "🙂" * 50)
# What a person does on purpose to files of the project.
SAVES = frozenset({"save", "write", "duplicate", "move", "delete", "take_back_row", "undo", "take_back", "unmark"})

NAMED = {" ": "space", "/": "slash", ".": "full_stop", ",": "comma", ":": "colon", "?": "question_mark"}


@dataclass
class Game:
    """How it went: what was done, and everything that must not be."""

    seed: int
    gestures: int = 0
    rounds: int = 0
    longest_s: float = 0.0
    hang_s: float = HANG_S
    stuck_s: float = STUCK_S
    log: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str) -> None:
        """Something that must not be, with what led to it."""
        self.faults.append(f"seed {self.seed}, gesture {self.gestures}: {what}\n  last: {' '.join(self.log[-40:])}")


class Watched(AgentevalApp):
    """The app, which notes when a person saves something, and when something broke."""

    def __init__(self, start: AppStart, fault: Callable[[str], None]) -> None:
        super().__init__(start)
        self.saved = 0
        say_bug = self.say_bug

        def noted(error: BaseException, doing: str) -> None:
            fault(f"it broke ({doing}):\n" + "".join(traceback.format_exception(error)))
            say_bug(error, doing)

        self.say_bug = noted

    async def run_action(self, action: Any, *arguments: Any, **named: Any) -> bool:
        name = (action if isinstance(action, str) else str(action[1])).rpartition(".")[2].partition("(")[0]
        self.saved += name in SAVES
        return await super().run_action(action, *arguments, **named)


@contextmanager
def sheets_noted(app: Watched) -> Iterator[None]:
    """What is answered in a sheet (a new test, a row for a dataset, an export) may be written; so may what a form was
    asked to write, also where the sheet was left while it was being written."""
    leaves, submitted = Sheet.leaves, Form.Submitted.__init__

    def noted(self: Any, result: Any) -> None:
        app.saved += result is not None
        leaves(self, result)

    def asked(self: Any, *arguments: Any, **named: Any) -> None:
        app.saved += 1
        submitted(self, *arguments, **named)

    Sheet.leaves = noted  # type: ignore[method-assign]
    Form.Submitted.__init__ = asked  # type: ignore[method-assign]
    try:
        yield
    finally:
        Sheet.leaves = leaves  # type: ignore[method-assign]
        Form.Submitted.__init__ = submitted  # type: ignore[method-assign]


@contextmanager
def nothing_sent(faults: Callable[[str], None]) -> Iterator[None]:
    """Says of each connection that is not to a process of our own."""
    connect = socket.socket.connect

    def noted(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            faults(f"something was sent to {address!r}")
        connect(self, address)

    socket.socket.connect = noted  # type: ignore[method-assign]
    try:
        yield
    finally:
        socket.socket.connect = connect  # type: ignore[method-assign]


@contextmanager
def nothing_forgotten(faults: Callable[[str], None]) -> Iterator[None]:
    """Says of each thing that was to be done and was never begun."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        show = warnings.showwarning

        def noted(message: Warning | str, category: type[Warning], *rest: Any) -> None:
            if "never awaited" in str(message):
                faults(str(message))
            show(message, category, *rest)

        warnings.showwarning = noted  # type: ignore[assignment]
        yield


def contents(folder: Path) -> dict[str, bytes]:
    """All files of the project."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class Monkey:
    """Does something at random to an app."""

    def __init__(self, rng: random.Random, app: Watched, game: Game) -> None:
        self._rng = rng
        self._app = app
        self._game = game
        self._at = (0, 0)

    def gesture(self) -> None:
        """One gesture; nobody waits for what it does."""
        rng = self._rng
        kind = rng.choices(
            (self._key, self._text, self._click, self._mouse, self._scroll, self._resize, self._paste, self._focus),
            (40, 14, 18, 12, 6, 3, 2, 1),
        )[0]
        self._game.gestures += 1
        kind()

    def _key(self) -> None:
        rng = self._rng
        key = rng.choice(KEYS if rng.random() < 0.6 else MORE_KEYS)
        for _ in range(rng.choice((1, 1, 1, 1, 2, 3))):
            self.press(key)

    def press(self, key: str) -> None:
        """A key, once."""
        self._note(key)
        printable = {"space": " ", "slash": "/", "colon": ":", "question_mark": "?"}.get(key)
        self._app.post_message(events.Key(key, key if len(key) == 1 else printable))

    def _text(self) -> None:
        for char in self._rng.choices(TEXT, k=self._rng.choice((1, 1, 2, 5))):
            if char in "qQ":
                continue
            self._note(repr(char))
            self._app.post_message(events.Key(NAMED.get(char, char), char))

    def _place(self) -> tuple[int, int]:
        width, height = self._app.size
        if self._rng.random() < 0.3:
            return self._at
        self._at = (self._rng.randrange(max(width, 1)), self._rng.randrange(max(height, 1)))
        if self._rng.random() < 0.02:
            self._at = (self._at[0] + 50, self._at[1] + 50)  # a terminal that was larger when the button was pressed
        return self._at

    def _click(self) -> None:
        place, button = self._place(), self._rng.choice((1, 1, 1, 1, 2, 3))
        for _ in range(self._rng.choice((1, 1, 2, 2, 3, 5))):
            self._send(events.MouseDown, place, button)
            self._send(events.MouseUp, place, button)

    def _mouse(self) -> None:
        kind = self._rng.choice((events.MouseDown, events.MouseUp, events.MouseMove, events.MouseMove))
        self._send(kind, self._place(), self._rng.choice((0, 1)))

    def _scroll(self) -> None:
        kind = self._rng.choice(
            (events.MouseScrollDown, events.MouseScrollUp, events.MouseScrollLeft, events.MouseScrollRight)
        )
        place = self._place()
        for _ in range(self._rng.choice((1, 3, 9))):
            self._send(kind, place, 0)

    def _send(self, kind: type[events.MouseEvent], place: tuple[int, int], button: int) -> None:
        self._note(f"{kind.__name__}{place}")
        shift, meta, control = (self._rng.random() < 0.05 for _ in range(3))
        self._app.post_message(kind(None, *place, 0, 0, button, shift, meta, control, *place))

    def _resize(self) -> None:
        self.resize(self._rng.choice(SIZES))

    def resize(self, size: tuple[int, int]) -> None:
        """The terminal has another size now."""
        self._note(f"resize{size}")
        driver = self._app._driver
        assert driver is not None
        driver._size = size
        self._app.post_message(events.Resize(Size(*size), Size(*size)))

    def _paste(self) -> None:
        text = self._rng.choice(PASTES)
        self._note(f"paste{text[:10]!r}")
        self._app.post_message(events.Paste(text))

    def _focus(self) -> None:
        kind = self._rng.choice((events.AppFocus, events.AppBlur))
        self._note(kind.__name__)
        self._app.post_message(kind())

    def _note(self, what: str) -> None:
        self._game.log.append(what)
        del self._game.log[:-400]


class Files:
    """The project's files, looked at now and then: none may change unless somebody saved shortly before."""

    def __init__(self, app: Watched, game: Game) -> None:
        self._app = app
        self._game = game
        self._folder = Path.cwd()
        self._known = contents(self._folder)
        self._saved = [0, 0]  # how often was saved at the last looks
        self._doubtful: list[str] = []
        self._next = game.gestures + LOOK

    def look(self) -> None:
        """Once in a while: what has changed?"""
        if self._game.gestures >= self._next:
            self._next = self._game.gestures + LOOK
            self.compare()

    def compare(self, *, last: bool = False) -> None:
        """What has changed since the last look? Something that is written now may be said to be saved in a moment."""
        before, now, saved = self._known, contents(self._folder), self._app.saved
        if self._doubtful and saved == self._saved[-1]:
            self._game.fault(f"nobody saved, and these changed: {self._doubtful}")
        self._doubtful = []
        changed = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        if changed and saved == self._saved[0]:
            self._doubtful = changed
            if last:
                self._game.fault(f"nobody saved, and these changed: {changed}")
        self._known = now
        self._saved = [self._saved[-1], saved]


def pace() -> float:
    """Seconds of processor time that something takes that is always the same."""
    before = time.thread_time()
    sum(number * number for number in range(5000))
    return time.thread_time() - before


class Heart:
    """How long the main thread had something to do between two turns of the loop, and where it was meanwhile.

    Its own processor time, less where the processor is slower now than it was at its best (others share its caches and
    its cores): a busy machine is no fault of the app. Only what comes to no end is measured by the clock.
    """

    def __init__(self, game: Game) -> None:
        self._game = game
        self._beat = time.monotonic()
        self._where = ""
        self._ends = threading.Event()
        self._main = threading.get_ident()
        self._best = min(pace() for _ in range(20))

    async def beat(self) -> None:
        """Forever: notes each turn that was too long."""
        threading.Thread(target=self._look, daemon=True).start()
        try:
            before = time.thread_time()
            while True:
                self._beat, self._where = time.monotonic(), ""
                await asyncio.sleep(0.02)
                now = time.thread_time()
                spent = now - before
                if spent > self._game.hang_s / 4:
                    slower = max(pace(), pace()) / self._best
                    spent /= max(slower, 1.0)
                self._best = min(self._best, pace())
                before = time.thread_time()
                self._game.longest_s = max(spent, self._game.longest_s)
                if spent > self._game.hang_s:
                    self._game.fault(f"the app did nothing else for {spent:.1f} s:\n{self._where}")
        finally:
            self._ends.set()

    def _look(self) -> None:
        seen, since = -1, time.monotonic()
        while not self._ends.wait(0.05):
            if seen != self._game.gestures:
                seen, since = self._game.gestures, time.monotonic()
            elif time.monotonic() - since > self._game.stuck_s:
                self._game.fault(f"nothing more was done for {self._game.stuck_s:.0f} s")
                give_up(self._game)
            late = time.monotonic() - self._beat
            frame = sys._current_frames().get(self._main)
            if late > self._game.hang_s * 0.6 and frame is not None and self._where.count("after ") < LOOKS:
                self._where += f"after {late:.2f} s\n" + "".join(traceback.format_stack(frame)[-10:])


def give_up(game: Game) -> None:
    """Say what is known of a game that comes to no end, and end with it."""
    print(*game.faults, sep="\n", flush=True)
    faulthandler.dump_traceback(all_threads=True)
    os._exit(1)


async def play_round(app: Watched, rng: random.Random, game: Game, gestures: int, size: tuple[int, int]) -> None:
    """Start the app, play, leave with escape and q."""
    gc.freeze()  # people start the app once: what earlier rounds and tests left must not hold up the collector
    with sheets_noted(app), nothing_sent(game.fault), nothing_forgotten(game.fault):
        heart = asyncio.create_task(Heart(game).beat())
        try:
            async with app.run_test(size=size, notifications=True, tooltips=True) as pilot:
                files = Files(app, game)
                await _play(app, pilot, rng, game, gestures, files)
                await _leave(app, pilot, game)
                files.compare(last=True)
        finally:
            heart.cancel()
            gc.collect()  # what was never awaited is said when it is thrown away
    game.rounds += 1


async def _play(app: Watched, pilot: Pilot[Any], rng: random.Random, game: Game, gestures: int, files: Files) -> None:
    monkey = Monkey(rng, app, game)
    end = game.gestures + gestures
    while game.gestures < end and app._exception is None:
        for _ in range(rng.randint(1, BURST)):
            monkey.gesture()
        for _ in range(rng.choice((0, 1, 3, 10))):
            await asyncio.sleep(0)
        if rng.random() < 0.3:
            await pilot.pause(rng.choice((0.0, 0.0, 0.02, 0.15)))
        if app._exception is None and not app.screen_stack:
            game.fault("there is no screen")
        files.look()


async def _leave(app: Watched, pilot: Pilot[Any], game: Game) -> None:
    """Escape leaves whatever is open, q the app."""
    monkey = Monkey(random.Random(0), app, game)
    monkey.resize((100, 30))
    await _quiet(app, pilot)
    for _ in range(LEAVING):
        if app._exit or app._exception is not None:
            break
        monkey.press("escape")
        await _quiet(app, pilot)
        screen = app.screen
        if isinstance(screen, FrameScreen) and not isinstance(screen, ModalScreen):
            monkey.press("q")
            await _quiet(app, pilot)
    if app._exception is None and not app._exit:
        focused = app.focused
        game.fault(f"escape and q do not leave {app.screen_stack}, focus on {focused!r}")
        app.exit(0)


async def _quiet(app: Watched, pilot: Pilot[Any]) -> None:
    """Until the gestures so far are dealt with."""
    for _ in range(200):
        if app._exit or app._exception is not None:
            return
        await pilot.pause(0.01)
        if app.input_queue.is_empty and app._message_queue.empty():
            return


def prepare(folder: Path) -> tuple[Path, Path]:
    """(a project of the sample suites, a history in which they ran once)."""
    suites = copy_samples(folder)
    run_samples(suites, folder / "history.db")
    return suites, folder / "history.db"


async def play(suites: Path, db: Path, game: Game, gestures: int, sizes: tuple[tuple[int, int], ...]) -> None:
    """Play that many gestures, the app started anew every now and then."""
    rng = random.Random(game.seed)
    while game.gestures < gestures and not game.faults:
        if game.rounds and game.rounds % 10 == 0:
            print(f"seed {game.seed}: {game.gestures} gestures, longest {game.longest_s * 1000:.0f} ms", flush=True)
        app = Watched(AppStart(paths=(suites,), db=db), game.fault)
        size = sizes[game.rounds % len(sizes)]
        try:
            await play_round(app, rng, game, min(ROUND, gestures - game.gestures), size)
        except Exception as error:
            game.fault("".join(traceback.format_exception(error)))


def main() -> int:
    """Play in a folder of its own; says how it went, and 1 if something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=int(os.environ.get("MONKEY_EVENTS", "20000")))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--size", default="", help="such as 80x24; several in turn when not given")
    given = parser.parse_args()
    sizes = SIZES[:5] if not given.size else ((int(given.size.split("x")[0]), int(given.size.split("x")[1])),)
    faulthandler.enable()
    gc.freeze()
    collect_less_often()
    found = 0
    for seed in given.seeds:
        with tempfile.TemporaryDirectory(prefix="monkey-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            for one in ("config", "data", "runtime"):
                os.environ[f"AGENTEVAL_{one.upper()}_DIR"] = str(folder / one)
            for one in ("EDITOR", "VISUAL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
                os.environ.pop(one, None)
            suites, db = prepare(folder)
            os.chdir(suites)
            game = Game(seed)
            began = time.monotonic()
            # Who ends it early wants to know how far it came.
            with contextlib.suppress(KeyboardInterrupt):
                asyncio.run(play(suites, db, game, given.events, sizes))
            spent = time.monotonic() - began
            os.chdir("/")
            print(
                f"seed {seed}: {game.gestures} gestures, {game.rounds} rounds, {spent:.0f} s, "
                f"longest {game.longest_s * 1000:.0f} ms, {len(game.faults)} faults",
                flush=True,
            )
            for fault in game.faults:
                print(fault, flush=True)
            found += len(game.faults)
            shutil.rmtree(folder, ignore_errors=True)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
