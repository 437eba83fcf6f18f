"""The words of the inputs `suites` and `args` of the GitHub Action, split as a shell splits them.

`python -P -m agenteval_tui.cli.github_action_inputs` takes both from the environment (SUITES, ARGS) and prints each
word with a NUL character behind it. Nothing in them is expanded: an input may come from a stranger's pull request.
"""

from __future__ import annotations

import os
import re
import sys

_PIECE = re.compile(
    r"""
      (?P<blank>[ \t\n]+)
    | (?P<comment>\#[^\n]*)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:\\.|[^"\\])*)"
    | (?P<continued>\\(?:\n|\Z))
    | \\(?P<escaped>.)
    | (?P<plain>[^ \t\n'"\\]+)
    """,
    re.DOTALL | re.VERBOSE,
)


def shell_words(text: str) -> list[str]:
    """The words of a text of several lines, as a POSIX shell reads them. A line that ends with a backslash continues,
    and a `#` at the beginning of a word begins a comment. Raises `ValueError` if a quote is not closed.
    """
    text = text.replace("\r\n", "\n")
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            raise ValueError("a quote is not closed")
        at = piece.end()
        kind, value = piece.lastgroup, piece[piece.lastgroup or 0]
        if kind == "comment" and word is not None:  # within a word it is a character
            kind, value, at = "plain", "#", piece.start() + 1
        if kind == "blank":
            words += [] if word is None else [word]
            word = None
        elif kind == "double":
            word = (word or "") + re.sub(r'\\([$`"\\\n])', lambda match: match[1].strip("\n"), value)
        elif kind not in ("comment", "continued"):
            word = (word or "") + value
    return words if word is None else [*words, word]


def main() -> int:
    """Print the words. Returns 2, after an annotation that names the input, if an input can't be split."""
    words: list[str] = []
    for name in ("suites", "args"):
        try:
            words += shell_words(os.environ.get(name.upper(), ""))
        except ValueError as error:
            print(f"::error title=agenteval::In the input `{name}`, {error}. Close it.", file=sys.stderr)
            return 2
    sys.stdout.buffer.write(os.fsencode("".join(f"{word}\0" for word in words)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
