"""A program that runs in a folder of its run's own, and not in that of its suite."""

from __future__ import annotations

from pathlib import Path

WORKDIR, SUITE_DIR = "AGENTEVAL_WORKDIR", "AGENTEVAL_SUITE_DIR"
"""Variables of its environment: the folder of the run, and that of the suite."""


def found_in(folder: Path, cwd: Path, argv: list[str]) -> list[str]:
    """The words of a command that runs in `cwd`: those that name a file of the suite's `folder` name it there, unless
    `cwd` has such a file itself."""
    if cwd == folder:
        return argv
    return [_found(word, number, folder, cwd) for number, word in enumerate(argv)]


def _found(word: str, number: int, folder: Path, cwd: Path) -> str:
    if not word or word.startswith(("-", "/", "~")) or len(word) > 1_000 or "\0" in word:
        return word
    if not number and "/" not in word:
        return word  # a program of PATH
    return str(folder / word) if (folder / word).is_file() and not (cwd / word).exists() else word
