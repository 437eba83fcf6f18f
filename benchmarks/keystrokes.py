"""A key in the config editor, in a terminal, with wrapped lines and the verdicts of 200 stored runs.

    python -m benchmarks.keystrokes [--quick]

A real pseudo-terminal of 120x40. The first bytes of the answer show the key; the last bytes show the verdicts of the
open run and of all other runs.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from agenteval_tui.suites.projects import SCOPE
from benchmarks.table import Row, markdown
from benchmarks.terminal import EDIT, Terminal, environment_in

DUE_MS = 16
UP, DOWN, LEFT, END = "\x1b[A", "\x1b[B", "\x1b[D", "\x1b[F"
_WORDS = "order refund card parcel address invoice customer delivery Friday receipt complaint voucher warehouse return"
SUITE = """\
name: Keystrokes
agent: shop
agents: {{shop: {{kind: demo}}}}
tests:
  - id: refund-of-an-order
    prompt: Where is the refund of my order?
    repeat: {repeat}
    criteria:
      - name: Answers
        prototype_class: TextResponse
        config_uxon: |
          {{
            // what a person edits
            "metrics": [
              {{"type": "TextMatch", "contains_any": [{words}]}},
              {{"type": "TextMatch", "name": "start", "starts_with_any": ["The", "Your", "I"]}},
              {{"type": "TextMatch", "name": "case", "contains_ignore_case": "ORDER"}},
              {{"type": "TextMatch", "name": "polite", "not_contains_any": ["cannot", "never"]}},
              {{"type": "TextMatch", "name": "end", "ends_with": "."}}
            ]
          }}
"""


def suite_with(repeat: int) -> str:
    """A suite with one test that runs this number of times, and whose config has a wrapped line."""
    words = ", ".join(f'"{word}"' for word in (_WORDS + " " + _WORDS.upper()).split())
    return SUITE.format(repeat=repeat, words=words)


def run(quick: bool = False) -> list[Row]:
    """Medians over keys at the end of a long line."""
    repeat, times = (20, 5) if quick else (200, 40)
    with tempfile.TemporaryDirectory() as folder:
        suite, db = Path(folder, "keystrokes.suite.yaml"), Path(folder, "history.db")
        suite.write_text(suite_with(repeat), encoding="utf-8")
        environment = {**environment_in(folder), SCOPE: "all"}
        agenteval = [sys.executable, "-m", "agenteval_tui"]
        command = [*agenteval, "run", "--db", str(db), str(suite)]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        with Terminal([*agenteval, "--db", str(db), str(suite)], environment) as app:
            app.until("refund-of-an-order")
            app.press("gj\r", "transcript")
            app.press("e")
            app.press(DOWN * 3 + END + LEFT * 4)
            before = app.text
            answers = app.answers(list("abcdefghij" * 4)[:times])
            if app.text == before or "Editor" in app.text.split("\n")[1]:
                raise SystemExit(f"nothing was typed:\n{app.text}")
    what = f"key in the config editor, a wrapped line, {repeat} stored runs, 120x40"
    sizes, first, last = zip(*answers, strict=True)
    size, painted = statistics.median(sizes), statistics.median(first)
    return [
        Row(f"{what}: until it is painted", f"{painted:.1f} ms (worst {max(first):.1f})", f"< {DUE_MS} ms",
            painted < DUE_MS),
        Row("  until all verdicts are painted", f"{statistics.median(last):.1f} ms (worst {max(last):.1f})", "", None),
        Row("  bytes of both", f"{size:,.0f} bytes (most {max(sizes):,})", f"< {EDIT:,}", size < EDIT),
    ]  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.keystrokes", description="A key in the config editor.")
    parser.add_argument("--quick", action="store_true", help="a small round, to see that it works")
    print(markdown(run(parser.parse_args().quick)))
