"""What is wrong in a config text, where, and the edit that fixes it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.errors import Fix, Severity, TextEdit

MOST_DIAGNOSTICS = 200
"""More diagnostics than this for one text are of no help: the rest is left out."""


class Diagnostic(Struct, frozen=True):
    """One thing wrong with the characters `start`..`end` (0-based, end exclusive) of a config text.

    `code` is stable and in kebab case ("syntax", "trailing-comma", "unknown-property", ...). `message` is one sentence:
    what was expected, and how to fix it. `fix`, where there is one, is an edit of the same text after which this
    diagnostic is gone. The range is empty only in an empty text.
    """

    severity: Severity
    code: str
    message: str
    start: int
    end: int
    fix: Fix | None = None


CLOSE_THE_QUOTE = "close the quote"
ESCAPE_THE_QUOTES = "escape the quotes inside"


def without_doubtful_fixes(text: str, diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Leave out the edits that would go wrong because of another mistake beside them.

    Where a quote is not closed or not escaped, other edits that touch quotes of that line or of a later one would be
    read as part of a string, or of none; so would brackets at its end, where a quote is not closed. Where the end of a
    switched-off part goes is certain only in a text that reads well. The diagnostics stay, and get their fixes back
    when the other mistake is fixed.
    """
    cleaned = list(diagnostics)
    quotes = [d for d in cleaned if d.fix is not None and d.fix.title in (CLOSE_THE_QUOTE, ESCAPE_THE_QUOTES)]
    lines = [(text.rfind("\n", 0, d.start) + 1, text.find("\n", d.end)) for d in quotes]
    open_ends = [
        line for d, line in zip(quotes, lines, strict=True) if d.fix is not None and d.fix.title == CLOSE_THE_QUOTE
    ]
    broken = any(d.code == "syntax" for d in cleaned)
    for index, diagnostic in enumerate(cleaned):
        doubtful = diagnostic.code == "open-comment" and broken
        doubtful = doubtful or (diagnostic not in quotes and _ends_a_line(diagnostic.fix, open_ends, len(text)))
        if doubtful or (lines and diagnostic not in quotes and _touches_quotes(text, diagnostic.fix, lines)):
            cleaned[index] = replace(diagnostic, fix=None)
    return cleaned


def _ends_a_line(fix: Fix | None, lines: Iterable[tuple[int, int]], length: int) -> bool:
    """Whether it only adds closing brackets at the end of one of these lines."""
    return fix is not None and any(
        edit.start == edit.end == (length if end < 0 else end) and not edit.text.strip("]}")
        for edit in fix.edits
        for _, end in lines
    )


def _touches_quotes(text: str, fix: Fix | None, lines: Iterable[tuple[int, int]]) -> bool:
    return fix is not None and any(
        start <= edit.start
        for edit in fix.edits
        if '"' in edit.text or '"' in text[edit.start : edit.end]
        for start, _ in lines
    )


def replace_fix(title: str, start: int, end: int, text: str) -> Fix:
    """A fix of one edit: the characters `start`..`end` become `text`."""
    return Fix(title, (TextEdit(start, end, text),))


def surround_fix(title: str, start: int, end: int, before: str, after: str) -> Fix:
    """A fix that puts `before` and `after` around the characters `start`..`end`."""
    return Fix(title, (TextEdit(start, start, before), TextEdit(end, end, after)))
