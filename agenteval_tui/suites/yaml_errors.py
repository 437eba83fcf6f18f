"""What YAML's parser complains about, in sentences that say what to do."""

from __future__ import annotations

import re
from typing import Any

_NO_COLON = r"could not find expected ':'"
_NO_QUOTE = r"found unexpected end of stream"
_NO_BRACKET, _NO_BRACE = r"expected ',' or '\]'", r"expected ',' or '\}'"
_WHERE_IT_OPENS = (_NO_COLON, _NO_QUOTE, _NO_BRACKET, _NO_BRACE)

# PyYAML has no codes: its words are all that there is. (pattern on the parser's words, what is said, how to mend it)
_SAYINGS: list[tuple[str, str, str]] = [
    (r"mapping values are not allowed", "a second colon on this line can't start a value",
     "put quotes around the text that holds the colon, or begin a new line"),
    (r"tab character|found character '\\t'", "a tab can't be used for indentation", "indent with spaces"),
    (_NO_COLON, "a key without a colon",
     "write `key: value`, or indent this line as part of the text above"),
    (r"found undefined tag handle", "an exclamation mark begins a YAML tag here", "put the text in quotes"),
    (r"expected alphabetic or numeric|did not find expected alphabetic",
     "a name must follow here: `*` and `&` begin aliases and anchors", "put the text in quotes"),
    (_NO_QUOTE, "a quote is opened here and never closed", "close it"),
    (r"invalid Unicode character escape", "this escape is half a character (JSON writes emoji as two)",
     "write the character itself, or \\U with eight digits"),
    (r"found unknown escape character", "an unknown escape in a text with double quotes",
     "double the backslash, or use single quotes"),
    (_NO_BRACKET, "this list is not closed, or a comma is missing", "add `,` or `]`"),
    (_NO_BRACE, "this object is not closed, or a comma is missing", "add `,` or `}`"),
    (r"expected '-' indicator", "this line does not belong to the list above",
     "begin it with `- `, or indent it like the other lines of the item"),
    (r"expected key", "this line does not fit the indentation of the lines above",
     "indent it exactly like its neighbours, or put the text above in quotes"),
    (r"expected the node content|expected node content", "a value must stand here",
     "write a value; texts with braces or brackets need quotes"),
    (r"expected <document start>|did not find expected <document start>", "the document has ended before this line",
     "check the indentation of this line"),
    (r"block sequence entries are not allowed", "a list can't begin here", "begin the list on a new line"),
    (r"expected chomping or indentation|expected a? ?comment or a? ?line break",
     "only a comment may follow `|` or `>` on its line", "begin the text on the next line"),
    (r"wrongly indented line|found a tab", "a line of this text is indented less than it should be",
     "indent all lines of the text alike"),
    (r"exceeded maximum", "nested too deep", "flatten this"),
]  # fmt: skip


def explain(error: Any, text: str) -> tuple[int, int, str, str]:
    """(start, end, message, remedy) of a `yaml.YAMLError`."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return 0, 0, f"this is not YAML: {_plain(str(error))}", "compare with a sample suite"
    start = min(mark.index, len(text))
    problem = str(getattr(error, "problem", "") or "")
    context = str(getattr(error, "context", "") or "")
    if "cannot start any token" in problem:
        char = text[start : start + 1]
        if char == "\t":
            return start, start + 1, "a tab can't be used for indentation", "indent with spaces"
        return start, start + 1, f"a text can't begin with {char}", "put it in quotes"
    opened = getattr(error, "context_mark", None)
    for pattern, message, fix in _SAYINGS:
        if re.search(pattern, problem):
            if pattern in _WHERE_IT_OPENS:
                start = _opening(opened, start, len(text))
            return start, _line_end(text, start), message, fix
    words = " ".join(part for part in (context, problem) if part)
    return start, _line_end(text, start), f"this is not YAML: {_plain(words)}", "compare with a sample suite"


def _opening(opened: Any, start: int, length: int) -> int:
    """An unclosed quote or bracket, and a key without a colon, is mended where it begins, not where that shows."""
    return min(opened.index, length) if opened is not None else start


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    return max(min(end, start + 80), start + 1) if start < len(text) else start


def _plain(words: str) -> str:
    return " ".join(words.split())
