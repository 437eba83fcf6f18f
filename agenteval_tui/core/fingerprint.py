"""A foreign message without what differs from run to run, so that the same fault has the same text in every run.

It is for words that are not ours (a server's, a program's, a library's), and is made where they come in: what groups
errors later reads the finished text as it is.
"""

from __future__ import annotations

import re

from agenteval_tui.core.phrasing import cut

LONGEST = 120
"""Characters of a name or message that a cause keeps."""


def fingerprint(message: str) -> str:
    """`message` without numbers, ids, addresses, paths and quoted values; one line of at most `LONGEST` characters.

    An HTTP status stays: it is the class of the error.
    """
    text = " ".join(message.split())[: 8 * LONGEST]
    for pattern, instead in _VARYING:
        text = pattern.sub(instead, text)
    return cut(_NUMBERS.sub(lambda match: match[0] if match[1] else "N", text), LONGEST)


_VARYING: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>)\]]+"), "URL"),
    (re.compile(r"\"[^\"]*\"|`[^`]*`|“[^”]*”|(?<!\w)'[^']*'(?!\w)"), "…"),
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "ID"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\b(?=[a-fA-F]*\d)(?=\d*[a-fA-F])[0-9a-fA-F]{8,}\b"), "ID"),
    (re.compile(r"\b[A-Za-z]+[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{8,}\b"), "ID"),
    (re.compile(r"\b(?=[A-Z]*\d)(?=\d*[A-Z])[0-9A-Z]{16,}\b"), "ID"),
    (re.compile(r"(?<![\w.])(?:~|\.{1,2})?(?:/[\w.@+-]+)+/?"), "PATH"),
)
_NUMBERS = re.compile(
    r"((?:HTTP(?:/[\d.]+)?|status(?: code)?|answered(?: with)?|code) [1-5]\d\d\b)|\d+(?:[.,:]\d+)*", re.IGNORECASE
)
