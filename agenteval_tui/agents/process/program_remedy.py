"""What to do about a program that ended with an error: an agent's command, or a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agenteval_tui.agents.process.node_packages import remedy_for_package
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.project_words import remedy_for_module, remedy_in
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.env_files import EnvFiles
from agenteval_tui.transcripts.traceback import Traceback

_TAIL = 2_000  # characters of its output


def program_remedy(
    words: str, traceback: Traceback | None, argv: Sequence[str], folder: Path, env: Mapping[str, str], files: EnvFiles
) -> str:
    """How to fix what a program said last (`words`), and raised; "" if that is not known. It ran as `argv` in `folder`
    with `env`, of which `files` gave a part. Reads files of the project."""
    raised = None if traceback is None else traceback.exceptions[0]
    try:
        if raised is not None and raised.type == "ModuleNotFoundError":
            return remedy_for_module(raised.message, argv, project_environment(folder), env)
        if raised is not None and (remedy := remedy_for_package(raised.message, folder)):
            return remedy
        return remedy_in(words[-_TAIL:], env, files)
    except AgentevalError as problem:  # a file of it changed meanwhile
        return problem.fix
