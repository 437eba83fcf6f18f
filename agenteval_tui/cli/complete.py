"""Completes words in a shell: verbs, options and their values, and ids and names from the history and the suites.

The scripts in `completions/` call `agenteval __complete WORD...` with the words up to the cursor. The last word is
completed ("" for a new one). The answer has one line for each candidate (the word, a tab, and its description), and a
last line that says what else may follow: `:files`, `:folders` or `:none`.

click finds the candidates. Its own scripts are not used, because in bash they split words at `:` and `=`, which are in
FILE::ID and --option=value.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from click.shell_completion import ShellComplete

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.main import agenteval
from agenteval_tui.core.errors import AgentevalError

_ALSO = {"file": ":files", "dir": ":folders"}
_NONE = ":none"
_SAFE = re.compile(r"[\w@.:/+=,-]+")
"""Words that a shell doesn't split or expand. Names can contain anything; other names are not offered."""
_LONGEST = 70  # characters of a description


def main(words: Sequence[str]) -> int:
    """Print the answer for these words. After an error, the answer has no candidates; raises OSError only for an answer
    that can't be written."""
    try:
        lines = answer(words)
    except Exception:  # a message would land in the middle of what somebody types
        lines = [_NONE]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    sys.stdout.flush()
    return 0


def answer(words: Sequence[str]) -> list[str]:
    """The lines of the answer for these words. The last word is completed."""
    *before, current = words or [""]
    invocation = Invocation(lambda start: 0)  # a shell that completes opens no app
    completer = ShellComplete(agenteval, {"obj": invocation}, "agenteval", "")
    try:
        items = completer.get_completions(list(before), current)
    except AgentevalError:  # the words before it are wrong
        return [_NONE]
    # click gives the value alone, and the shell replaces the whole word.
    option, equals, _ = current.partition("=")
    prefix = f"{option}=" if equals and option.startswith("-") else ""
    described: dict[str, str] = {}
    for item in items:
        if item.type == "plain" and _SAFE.fullmatch(item.value):
            described.setdefault(f"{prefix}{item.value}", item.help or "")
    also = next((_ALSO[item.type] for item in items if item.type in _ALSO), _NONE)
    return [*(f"{word}\t{_described(about)}" for word, about in described.items()), also]


def _described(about: str) -> str:
    return "".join(char if char.isprintable() else " " for char in about)[:_LONGEST]
