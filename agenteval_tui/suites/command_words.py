"""The words of a command, as suites write one: a list of words, or a text that is split into words."""

from __future__ import annotations

import shlex

from agenteval_tui.core.schema_rules import Rule, set_to, where


def checked_command(command: str | list[str], shell: bool) -> None:
    """Raises `ValueError` in words when `command` can't be one."""
    if shell and not isinstance(command, str):
        raise ValueError("with `shell: true`, `command` is one text for /bin/sh, not a list")
    if not shell:
        argv_of(command, shell)


_COMMAND: Rule = {"pattern": r"\S", "minItems": 1, "not": {"const": [""]}}
COMMAND_RULE = where(
    set_to("shell", True), {"properties": {"command": {"type": "string"}}}, {"properties": {"command": _COMMAND}}
)
"""What `checked_command` checks of the options `command` and `shell`, for editors."""


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
