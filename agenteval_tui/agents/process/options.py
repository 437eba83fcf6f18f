"""Options that the kinds of program have in common, and what they mean."""

from __future__ import annotations

import shlex
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from agenteval_tui.suites.tool_files import require_inside


class ProgramTimeouts(BaseModel):
    """Seconds to wait for a program. None: only the run's own time-out counts."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    first_token: float | None = Field(default=None, gt=0, description="For the first event or output, from the start.")
    silence: float | None = Field(default=None, gt=0, description="Between two events or pieces of output.")


def checked_command(command: str | list[str], shell: bool) -> None:
    """Raises `ValueError` in words when `command` can't be one."""
    if shell and not isinstance(command, str):
        raise ValueError("with `shell: true`, `command` is one text for /bin/sh, not a list")
    if not shell:
        argv_of(command, shell)


def argv_of(command: str | list[str], shell: bool = False) -> list[str]:
    """The words of a command. Raises `ValueError` when there are none, or a quote is not closed."""
    if shell:
        return ["/bin/sh", "-c", str(command)]
    if isinstance(command, str):
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"`command` can't be split into words: {str(error).lower()}") from None
    else:
        words = list(command)
    if not words or not words[0]:
        raise ValueError("`command` is empty")
    return words


def folder_of(cwd: str, base_dir: Path, trusted: bool) -> Path:
    """Where a program runs. Raises `AgentevalError` when that is outside of the suite's folder."""
    return require_inside(cwd, base_dir, trusted=trusted, what="folder")


def checked_callable(target: str, option: str) -> None:
    """Raises `ValueError` in words when `target` is not "package.module:name"."""
    module, _, name = target.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
        raise ValueError(f"`{option}` is written package.module:name, not {target!r}")
