"""A transcript of 5 MB in the real Inspect screen: opening it, going from step to step, and searching it."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from textual.pilot import Pilot

from agenteval_tui.cli.app_start import AppStart
from agenteval_tui.core.garbage_collection import collect_less_often
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests
from agenteval_tui.tui.app import AgentevalApp
from agenteval_tui.tui.screens.inspect.run_views import ContextPane
from agenteval_tui.tui.screens.inspect.screen import RESTING_SECONDS, InspectScreen
from agenteval_tui.tui.widgets.transcript_view import TranscriptView
from benchmarks.table import Row

STEPS = 2_000
CHARACTERS = 5_000_000
MESSAGES = 3_000
BYTES = 2_000_000
SIZE = (140, 45)


def transcript(seed: int, steps: int = STEPS, characters: int = CHARACTERS) -> Transcript:
    """Turns of four steps (a prompt, a call, its long result, an answer). No two texts are equal."""
    messages: list[Message] = []
    calls: list[ToolCall] = []
    turns = steps // 4
    size = characters // turns
    for turn in range(turns):
        line = f"row {turn} of table {seed}: the parcel of customer {turn * 7 % 991} waits, nothing else is known.\n"
        messages.append(Message("user", f"Where is order #W{turn} of customer {seed}?"))
        messages.append(Message("assistant", "", tool_calls=(turn,)))
        result = line * max((size - 300) // len(line), 1)
        calls.append(ToolCall(f"c{turn}", "get_order", {"order_id": f"#W{turn}", "rows": [1, 2, 3]}, result))
        rare = "a needle in it" if turn % 100 == 99 else "nothing in it"
        messages.append(Message("assistant", f"Your order #W{turn} is on its way, {rare}. " * 3))
    return Transcript(tuple(messages), tuple(calls), final_output=messages[-1].content)


def context(seed: int) -> Transcript:
    """A conversation of 3,000 messages and 2 MB, of which the last 20 requests are recorded; one of them drops the
    oldest messages."""
    told: list[dict[str, str]] = []
    requests: list[ModelRequest] = []
    for turn in range(MESSAGES // 2):
        line = f"row {turn} of table {seed}: the parcel of customer {turn * 7 % 991} waits. "
        told.append({"role": "user", "content": line * (2 * BYTES // MESSAGES // len(line))})
        if turn >= MESSAGES // 2 - 20:
            kept = tuple(told if turn < MESSAGES // 2 - 5 else told[100:])
            requests.append(ModelRequest(len(requests) + 1, 1, "m", "Be kind.", kept, answer=len(told)))
        told.append({"role": "assistant", "content": f"It is on its way: {turn}."})
    return replace(from_openai_messages(told), requests=ModelRequests.of(requests))


def run(quick: bool = False) -> list[Row]:
    """Medians over a few rounds. Each figure includes a repaint, except the figures for searching."""
    collect_less_often()
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder) / "history.db"
        _store(db, [transcript(0), transcript(1), transcript(2), context(0), context(1)])
        return asyncio.run(_measured(Path(folder), db, quick))


def _store(db: Path, transcripts: Sequence[Transcript]) -> None:
    store = Store.open(db)
    try:
        record = ExecutionRecord("bench", "bench", "import", "bench", ("bench",), 1_795_262_400_000)
        runs = (
            (
                PlannedRun(f"run{one}", "bench", one, "bench", "bench", "long", "long", repetition=one + 1),
                RunEnded(f"run{one}", "failed", 0.0, 1_795_262_400_000, 1000.0, 1, made),
            )
            for one, made in enumerate(transcripts)
        )
        store.import_runs(record, runs)
    finally:
        store.close()


async def _measured(folder: Path, db: Path, quick: bool) -> list[Row]:
    app = AgentevalApp(AppStart(paths=(folder,), db=db))
    async with app.run_test(size=SIZE) as pilot:
        app.inspect("run0")
        await _shown(app, "run0")
        await pilot.pause(0.5)
        rounds = 3 if quick else 15
        asked = await _opened(app, pilot, [f"run{3 + number % 2}" for number in range(rounds)])
        pane = app.screen.query_one(ContextPane)
        shown = [_took(lambda number=number: pane.go_to(1 + number % 20)) for number in range(20 if quick else 100)]
        opened = await _opened(app, pilot, [f"run{(number + 1) % 3}" for number in range(rounds)])
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        view = screen.query_one("#transcript", TranscriptView)
        steps = [await _painted(view, view.next_step) for _ in range(20 if quick else 200)]
        ends = [await _painted(view, work) for work in (view.action_last, view.action_first) * 5]
        rows = [
            _row(f"transcript of 5 MB, {STEPS:,} steps, in Inspect: opened and painted", opened, 80),
            _row(f"a context of 2 MB, {MESSAGES:,} messages: opened and painted", asked, 80),
            _row("  a request in its tab context", shown, 80),
            _row("  to the next step", steps, 10),
            _row("  to its end, and back", ends, None),
        ]
        for words, about in (("needle", "a word with 15 hits"), ("customer", "a word with 10,000 hits")):
            whole, held = await _searched(view, words)
            rows.append(_row(f"  search for {about}: all found", [whole], None))
            rows.append(_row("    longest wait of a key", [held], 16))
        return rows


async def _opened(app: AgentevalApp, pilot: Pilot[Any], runs: Sequence[str]) -> list[float]:
    """The milliseconds that each of these runs takes to be open and painted."""
    took = []
    for run_id in runs:
        began = time.perf_counter()
        app.inspect(run_id)
        await _shown(app, run_id)
        took.append((time.perf_counter() - began) * 1e3)
        # No figure includes the background work on a run, but it must not run into the next round.
        await pilot.pause(RESTING_SECONDS + 0.1)
        screen = app.screen
        assert isinstance(screen, InspectScreen)
        while screen.unanswered:
            await pilot.pause(0.1)
    return took


def _took(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1e3


async def _shown(app: AgentevalApp, run: str) -> None:
    """Wait until the run is open and its transcript is painted."""
    while True:
        screen = app.screen
        if isinstance(screen, InspectScreen) and screen.shown_run == run:
            view = screen.query_one("#transcript", TranscriptView)
            await _painted(view, lambda: None)
            return
        # Wait a moment: constant asking would take the interpreter from the thread that reads.
        await asyncio.sleep(0.002)


async def _painted(view: TranscriptView, work: Callable[[], object]) -> float:
    """Do something and wait for the repaint. Returns the milliseconds of work, without the time that the toolkit waits
    for its clock (60 frames a second)."""
    done = asyncio.Event()
    began = time.process_time()
    work()
    view.call_after_refresh(done.set)
    await done.wait()
    return (time.process_time() - began) * 1e3


async def _searched(view: TranscriptView, words: str) -> tuple[float, float]:
    """How long a search of the screen takes, and the longest time in which it blocks everything else."""
    began = last = time.perf_counter()
    held = 0.0
    for _ in view.searching(words):
        held = max(held, time.perf_counter() - last)
        await asyncio.sleep(0)
        last = time.perf_counter()
    took = time.perf_counter() - began
    assert view.document.matches
    view.search("")
    return took * 1e3, held * 1e3


def _row(name: str, took: list[float], due: int | None) -> Row:
    middle = statistics.median(took)
    worst = f" (worst {max(took):.1f})" if len(took) > 1 else ""
    return Row(name, f"{middle:.1f} ms{worst}", f"< {due} ms" if due else "", middle < due if due else None)
