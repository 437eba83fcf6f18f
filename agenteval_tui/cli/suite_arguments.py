"""The suites that a verb is about: at the paths that were given, in the current folder, or on standard input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval_tui.analysis.lint import check_suites, check_text
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.standard_input import NAME, STDIN, only_once, read_standard_input
from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import LoadedSuite

HERE = Path()


def paths_given(paths: Sequence[Path]) -> tuple[Path, ...]:
    """The paths; without any the current folder, as the app takes it. Raises `AgentevalError` when it has no suite."""
    if paths:
        return tuple(paths)

    if not discover([HERE]):
        raise AgentevalError(
            "there are no suites in the current folder",
            where=str(Path.cwd()),
            fix="name a suite or a folder; `agenteval init` writes a first suite",
        )
    return (HERE,)


def suites_given(invocation: Invocation, paths: Sequence[Path]) -> tuple[list[LoadedSuite], list[Problem]]:
    """The suites and all that is wrong with them. `-` is a suite on standard input: its relative paths are meant from
    the current folder. Raises `AgentevalError` as `paths_given` and `read_standard_input` do."""
    only_once(*paths)
    places = paths_given(paths)
    loaded, problems = check_suites([path for path in places if path != STDIN])
    # Last: a path that is not there is refused before a person types a suite.
    if STDIN in places:
        loaded_suite, wrong = check_text(read_standard_input(invocation, "a suite"), Path(NAME))
        loaded.append(loaded_suite)
        problems += wrong
    return loaded, problems
