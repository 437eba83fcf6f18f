"""What is wrong in a config text, where, and the edit that mends it."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval_tui.text.problems import Fix, Severity, TextEdit

MOST_DIAGNOSTICS = 200
"""More than this many of one text help nobody: the rest is left out."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One thing wrong with the characters `start`..`end` (0-based, end exclusive) of a config text.

    `code` is stable and in kebab case ("syntax", "trailing-comma", "unknown-property", ...). `message` is one sentence:
    what was expected, and how to mend it. `fix`, where there is one, is an edit of the same text after which this
    diagnostic is gone. The range is empty only in an empty text.
    """

    severity: Severity
    code: str
    message: str
    start: int
    end: int
    fix: Fix | None = None


def replace_fix(title: str, start: int, end: int, text: str) -> Fix:
    """A fix of one edit: the characters `start`..`end` become `text`."""
    return Fix(title, (TextEdit(start, end, text),))


def surround_fix(title: str, start: int, end: int, before: str, after: str) -> Fix:
    """A fix that puts `before` and `after` around the characters `start`..`end`."""
    return Fix(title, (TextEdit(start, start, before), TextEdit(end, end, after)))
