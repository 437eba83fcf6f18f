"""How an outcome looks: a glyph, a word, a style token. Never a colour alone."""

from __future__ import annotations

import locale
import os
import sys

from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.views.model import ASCII, OUTCOMES

_SIGNS = {outcome: sign for outcome, (sign, _) in OUTCOMES.items()} | {
    "queued": "○",
    "running": "◐",
    "grading": "◐",
    "interrupted": "–",
    "none": "–",
    "flaky": "~",
    "finished": "✓",
}
_TOKENS = {
    **{outcome: outcome for outcome in ("passed", "failed", "error", "running", "flaky")},
    **dict.fromkeys(("queued", "cancelled", "none", "skipped", "finished"), "dim"),
    "grading": "running",
    "interrupted": "error",
    "needs_review": "review",
}
_NO_LOCALE = ("C", "POSIX")
_COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
WORDS = {"needs_review": "review"}


def _unicode() -> bool:
    """Can the person's terminal show more than ASCII? What the locale says counts, not what Python made of it: under
    `LANG=C` Python writes UTF-8 all the same."""
    named = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or ""
    if not os.environ.get("LC_ALL") and named in _COERCED and os.environ.get("LANG") in _NO_LOCALE:
        return False  # Python set LC_CTYPE itself (PEP 538)
    if named in _NO_LOCALE:
        return False
    encoding = getattr(sys.__stderr__, "encoding", None) or locale.getpreferredencoding(False)
    return "utf" in encoding.lower()


UNICODE = _unicode()
# As `ThemeController.colourless`, before Textual takes NO_COLOR out of the environment.
COLOURS = "NO_COLOR" not in os.environ and not os.environ.get("TERM", "").startswith(("vt", "mono"))
CARET = "‸" if UNICODE else "^"  # marks a place where something is missing
WARNING = "▲" if UNICODE else "^"
DOTS = "⋯" if UNICODE else "..."  # stands for rows that are not shown
DOT = "●" if UNICODE else "*"  # marked, or edited
ARROW = "→" if UNICODE else "->"  # from a value to another
RULE = "─" if UNICODE else "-"  # a cell of a line across
COLUMN_RULE = " │ " if UNICODE else " | "  # two columns


def glyph(outcome: str) -> str:
    """The sign of an outcome or status: one cell; ASCII where the locale has no UTF-8."""
    sign = _SIGNS.get(outcome, " ")
    return sign if UNICODE else sign.translate(ASCII)


def token(outcome: str) -> str:
    """The style token of an outcome or status."""
    return _TOKENS.get(outcome, "")


def word(outcome: str) -> str:
    """The outcome in a word for people."""
    return WORDS.get(outcome, outcome)


def word_of_run(status: str, why: str) -> str:
    """How a run ended that has a transcript, for people. One that was brought in without a verdict was not left out:
    nothing judged it, and `why` says so."""
    return why if status == "skipped" and why else word(status)


def mark(outcome: str) -> Cell:
    """The glyph as a styled cell."""
    return glyph(outcome), token(outcome)


def flaky(passed: int, n: int) -> bool:
    """A test is flaky when some but not all of its runs passed (page 3, section 4)."""
    return 0 < passed < n


def of_runs(passed: int, failed: int, errors: int) -> str:
    """One word for several runs of a test: flaky when they differ, else what they all are; "" for none."""
    if passed and (failed or errors):
        return "flaky"
    if failed:
        return "failed"
    if errors:
        return "error"
    return "passed" if passed else ""
