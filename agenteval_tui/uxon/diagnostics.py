"""What is wrong in a config text, where, and the edit that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

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


CLOSE_THE_QUOTE = "close the quote"


def without_doubtful_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Where a quote is not closed, other edits of that line that touch quotes would be read as part of the string.

    Their diagnostics stay, and get their fixes back when the quote is closed.
    """
    found = list(diagnostics)
    unclosed = [d for d in found if d.fix is not None and d.fix.title == CLOSE_THE_QUOTE]
    lines = [(text.rfind("\n", 0, d.start) + 1, text.find("\n", d.end)) for d in unclosed]
    if not lines:
        return found
    return [d if d in unclosed or not _touches_quotes(text, d.fix, lines) else replace(d, fix=None) for d in found]


def _touches_quotes(text: str, fix: Fix | None, lines: Iterable[tuple[int, int]]) -> bool:
    return fix is not None and any(
        start <= edit.start and (edit.start <= end or end < 0)
        for edit in fix.edits
        if '"' in edit.text or '"' in text[edit.start : edit.end]
        for start, end in lines
    )


def replace_fix(title: str, start: int, end: int, text: str) -> Fix:
    """A fix of one edit: the characters `start`..`end` become `text`."""
    return Fix(title, (TextEdit(start, end, text),))


def surround_fix(title: str, start: int, end: int, before: str, after: str) -> Fix:
    """A fix that puts `before` and `after` around the characters `start`..`end`."""
    return Fix(title, (TextEdit(start, start, before), TextEdit(end, end, after)))
