"""A short game of the monkey; CONTRIBUTING.md says how to let it play for long.

`MONKEY_EVENTS` is the number of gestures, `MONKEY_SEED` the seed: a failure says which one it was.
"""

from __future__ import annotations

import os
from pathlib import Path

import monkey
import pytest
from sampled import fresh, samples

__all__ = ["fresh", "samples"]  # fixtures

SEED = int(os.environ.get("MONKEY_SEED", "7"))
EVENTS = int(os.environ.get("MONKEY_EVENTS", "80"))


@pytest.mark.timeout(300 + EVENTS)
@pytest.mark.xdist_group("monkey")
async def test_whatever_is_done_nothing_breaks_hangs_or_is_lost(
    fresh: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suites, db = fresh
    # What it saves is its own.
    mine = tmp_path / "suites"
    monkey.copy_samples(tmp_path)
    monkeypatch.chdir(mine)
    del suites
    game = monkey.Game(SEED)
    # A busy machine is no hang; the program `monkey.py` looks closer.
    game.hang_s, game.stuck_s = 20.0, 1e9
    await monkey.play(mine, db, game, EVENTS, monkey.SIZES[:3])
    assert game.gestures >= EVENTS
    assert not game.faults, "\n".join(game.faults)
    assert game.rounds >= 1


async def test_the_monkey_would_see_a_crash_a_change_and_what_cannot_be_left(
    fresh: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that can't fail is none."""
    suites, db = fresh
    monkeypatch.chdir(suites)

    async def seen(gesture: object) -> str:
        game = monkey.Game(1, stuck_s=1e9)
        monkeypatch.setattr(monkey.Monkey, "gesture", gesture)
        await monkey.play(suites, db, game, 1, ((80, 24),))
        return "\n".join(game.faults)

    def crash(self: monkey.Monkey) -> None:
        self._game.gestures += 1
        self._app.call_later(lambda: 1 / 0)

    def litter(self: monkey.Monkey) -> None:
        self._game.gestures += 1
        (suites / f"litter-{self._game.gestures}.svg").touch()

    def stay(self: monkey.Monkey) -> None:
        self._game.gestures += 1
        monkeypatch.setattr(type(self._app), "action_quit", lambda _: None)

    def forget(self: monkey.Monkey) -> None:
        self._game.gestures += 1

        async def work() -> None:
            return

        work()  # type: ignore[unused-coroutine]

    def stumble(self: monkey.Monkey) -> None:
        self._game.gestures += 1

        async def work() -> None:
            raise LookupError("on the way")

        self._app.screen.run_worker(work(), exit_on_error=False)

    assert "ZeroDivisionError" in await seen(crash)
    assert "litter-1.svg" in await seen(litter)
    assert "never awaited" in await seen(forget)
    assert "LookupError: on the way" in await seen(stumble)
    assert "do not leave" in await seen(stay)
