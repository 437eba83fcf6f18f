"""The words of a command, as suites write one: a list of words, or a text that is split into words."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.schema_rules import Rule, set_to, where
from agenteval_tui.suites.templates import render_value

_PROMPT = re.compile(r"\{\{\s*prompt\s*\}\}")
_TEMPLATE = re.compile(r"\{\{.*?\}\}")


def checked_command(command: str | list[str], shell: bool) -> None:
    """Raises `ValueError` in words when `command` can't be one."""
    if shell and not isinstance(command, str):
        raise ValueError("with `shell: true`, `command` is one text for /bin/sh, not a list")
    if shell and asks_in_words(command):
        # A prompt with a quote or a `;` would be a command of its own.
        raise ValueError("with `shell: true`, `{{prompt}}` can't be in `command`: write a list of words")
    if not shell:
        argv_of(command, shell)


_COMMAND: Rule = {"pattern": r"\S", "minItems": 1, "not": {"const": [""]}}
COMMAND_RULE = where(
    set_to("shell", True),
    {"properties": {"command": {"type": "string", "not": {"pattern": _PROMPT.pattern}}}},
    {"properties": {"command": _COMMAND}},
)
"""What `checked_command` checks of the options `command` and `shell`, for editors."""


def asks_in_words(command: object) -> bool:
    """Whether the program gets its prompt as a word of its command, and not on its standard input."""
    words = [command] if isinstance(command, str) else command if isinstance(command, list) else []
    return any(isinstance(word, str) and _PROMPT.search(word) for word in words)


def argv_for(command: str | list[str], shell: bool, variables: Mapping[str, Any]) -> list[str]:
    """The words of a command for one run: if a word has `{{prompt}}`, all are templates of `variables`. A word
    stays one word, whatever is filled in. Raises `AgentevalError` where a template can't be filled."""
    words = argv_of(command, shell)
    if shell or not asks_in_words(command):
        return words
    try:
        filled = [str(render_value(word, variables)) for word in words]
    except AgentevalError as error:
        raise AgentevalError(f"`command`: {error.what}", where="command", fix=error.fix) from None
    if any("\0" in word for word in filled):
        raise AgentevalError(
            "the prompt has a zero character, which no word of a command can have",
            where="command",
            fix="take `{{prompt}}` out of `command`, and let the program read `input: text`",
        )
    return filled


def argv_of(command: str | list[str], shell: bool = False) -> list[str]:
    """The words of a command. Raises `ValueError` when there are none, or a quote is not closed."""
    if shell:
        return ["/bin/sh", "-c", str(command)]
    if isinstance(command, str):
        if asks_in_words(command):  # a template with spaces is a part of one word
            command = _TEMPLATE.sub(lambda template: "".join(template[0].split()), command)
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ValueError(f"`command` can't be split into words: {str(error).lower()}") from None
    else:
        words = list(command)
    if not words or not words[0]:
        raise ValueError("`command` is empty")
    return words
