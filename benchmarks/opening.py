"""How long it takes to open a screen or a sheet for the first time, and to leave one, with 100,000 runs stored.

    python -m benchmarks.opening [--quick]

A real pseudo-terminal of 120x40. Measures the time from the key until the screen's text is there, and until the last
byte. Each round starts a new app, in which no screen was open before.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from agenteval_tui.suites.projects import SCOPE
from benchmarks.history import filled
from benchmarks.table import Row, markdown
from benchmarks.terminal import SAMPLES, Terminal, environment_in

QUIET_S = 1.0
KEYS = (
    # name, key, the text that appears, target in milliseconds until the last byte (0: none)
    ("command palette", "\x10", "Plan a run", 100),
    ("esc: close the palette", "\x1b", "customers-austria", 0),
    ("help", "?", "Used most", 100),
    ("esc: close the help", "\x1b", "customers-austria", 0),
    ("Compare", "6", "test-", 200),
    ("Editor", "2", "prompt", 100),
    ("Compare again", "6", "test-", 100),
)


def round_of(db: Path, folder: str) -> list[tuple[float, float]]:
    """The milliseconds from each key until the text is there, and until the last byte, in one app."""
    # In a git checkout, the samples are a separate project, which has no stored run.
    environment = {**environment_in(folder), SCOPE: "all"}
    with Terminal([sys.executable, "-m", "agenteval_tui", "--db", str(db), str(SAMPLES)], environment) as app:
        app.until("customers-austria")
        return [app.opened(key, seen, QUIET_S) for _, key, seen, _ in KEYS]


def run(quick: bool = False) -> list[Row]:
    """The medians of several apps."""
    number, rounds = (6_000, 1) if quick else (100_000, 7)  # at least two executions of a suite
    with tempfile.TemporaryDirectory() as folder:
        db = Path(folder, "history.db")
        filled(db, number).close()
        # An app starts on the last app's screen, so each app has separate folders.
        took = [round_of(db, tempfile.mkdtemp(dir=folder)) for _ in range(rounds)]
    rows = []
    for (what, _, _, due), each in zip(KEYS, zip(*took, strict=True), strict=True):
        shown, last = zip(*each, strict=True)
        middle = statistics.median(last)
        said = f"{middle:.0f} ms (least {min(last):.0f}); read after {statistics.median(shown):.0f}"
        rows.append(
            Row(f"opening, {number:,} runs: {what}", said, f"< {due} ms" if due else "", middle < due if due else None)
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.opening", description="Opening screens and sheets.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
