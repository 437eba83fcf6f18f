"""Which configuration of an agent answered: a hash of all that can change what it does (docs/decisions/0008)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenteval_tui.agents.inline_secrets import REFERENCE, SENT, is_key
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.suites.environment import expand
from agenteval_tui.suites.tool_files import tools_as_read

NEUTRAL = frozenset(("timeouts", "concurrency", "max_attempts", "price"))
"""Options that can't change what an agent answers: how long is waited, how many at once, what it costs."""
_DIGITS = 16
_USER = re.compile(r"://[^/@\s]*@")


def agent_version(config: Mapping[str, Any], base_dir: Path | None = None, env: Mapping[str, str] | None = None) -> str:
    """16 hexadecimal digits that are the same for the same configuration, whatever the agent is called.

    `config` is as it was merged, `${VAR}` not expanded; with `env` it is expanded here (as far as all variables are
    known). With `base_dir` a file of tools counts by what it says. Keys are left out, and `NEUTRAL` options.
    """
    values: dict[str, Any] = dict(config)
    if env is not None:
        with suppress(AgentevalError):  # a variable of another machine: as it is written
            values = dict(expand(config, env))
    if base_dir is not None and "tools" in values:
        values["tools"] = tools_as_read(values["tools"], base_dir, trusted=True)
    parts = {name: _kept(value, name) for name, value in values.items() if name not in NEUTRAL}
    return content_hash({name: value for name, value in parts.items() if value is not None})[:_DIGITS]


def _kept(value: object, name: str, sent: bool = False) -> object:
    """Without keys, whether they are written out or come from a variable, and without what names such a variable."""
    if isinstance(value, Mapping):
        below = sent or name.casefold() in SENT
        parts = {str(key): _kept(item, str(key), below) for key, item in value.items()}
        return {key: part for key, part in parts.items() if part is not None}
    if isinstance(value, list | tuple):
        return [_kept(item, name, sent) for item in value]
    if isinstance(value, str):
        if "://" in value and "@" in value:
            value = _USER.sub("://", value)
        if name.endswith("_env") or is_key(name, REFERENCE.sub("x", value), sent):
            return None
    return value
