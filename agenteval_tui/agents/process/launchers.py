"""Programs that start others: interpreters, shells, runners of packages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

_LAUNCHERS = re.compile(
    r"(?:python|pypy|perl|ruby|php|lua)[\d.]*|node|tsx|ts-node|deno|bunx?|npx|npm|pnpm|yarn|uvx?|pipx|docker|podman"
    r"|exec|run|dlx|env|(?:ba|da|z|k|fi)?sh|nohup|nice|time|timeout|sudo|xargs|make|java|dotnet"
)
_VARIABLE = re.compile(r"\w+=.*", re.DOTALL)


def launched(argv: Sequence[str]) -> str | None:
    """The word of a command that says what is run, behind whatever only starts it: "agent.py" of `env X=1 python3 -I
    agent.py`. None: no word does, so that what follows the command would."""
    # Without options and variables; the argument of an option, as in `-m module`, is a word like any other.
    words = [word for word in argv if not word.startswith("-") and not _VARIABLE.fullmatch(word)]
    return next((word for word in words if not _LAUNCHERS.fullmatch(Path(word).name)), None)
