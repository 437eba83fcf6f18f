"""Questions to the user at the terminal. They are asked on stderr: stdout may be a document."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.output import is_ci
from agenteval_tui.core.atomic_write import is_special
from agenteval_tui.core.errors import AgentevalError


def can_ask(invocation: Invocation) -> bool:
    """Whether a user can read and answer a question here: a terminal on stdin and stderr, and no CI."""
    try:
        reads = sys.stdin.isatty()
    except (AttributeError, ValueError):
        return False
    return reads and invocation.err.is_terminal and not is_ci(os.environ)


def confirm(invocation: Invocation, question: str) -> bool:
    """Whether the answer begins with y; anything else, also no answer, is a no."""
    return choose(invocation, question, ("y", "N")) == "y"


def agree_to_overwrite(invocation: Invocation, file: Path) -> bool:
    """Whether there is a file that is to be overwritten. Raises `AgentevalError` where it is not to be."""
    if not file.exists() or is_special(file):
        return False
    if not can_ask(invocation):
        raise AgentevalError("this file already exists", where=str(file), fix="--force overwrites it")
    if not confirm(invocation, f"{file} already exists. Overwrite it?"):
        raise AgentevalError("nothing was written", where=str(file))
    return True


def choose(invocation: Invocation, question: str, answers: Sequence[str]) -> str:
    """The answer that was given, of `answers` (each known by its first letter, whatever its case).

    The one with a capital letter is meant when nothing is said, and when the terminal goes away. Asked again for
    anything else.
    """
    default = next(answer for answer in answers if answer[0].isupper())
    err = invocation.err
    # What was printed on stdout belongs above the question, which is on stderr.
    invocation.out.flush()
    while True:
        err.line(question)
        err.prompt(f"[{'/'.join(answers)}] ")
        typed = sys.stdin.readline()
        if not typed:
            err.line()
            return default.lower()
        letter = typed.strip()[:1].casefold()
        if not letter:
            return default.lower()
        for answer in answers:
            if answer[0].casefold() == letter:
                return answer.lower()
