"""An agent's configuration as it is kept: without the keys that are written in it, which are put back from the place
where they are written; and its version, a hash of all that can change what the agent does (docs/decisions/0008)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.suites.environment import expand
from agenteval_tui.suites.tool_files import tools_as_read

_SECRET_NAME = re.compile(r"auth|key|token|cookie|secret|password|credential|signature", re.IGNORECASE)
SENT = {"headers", "query", "env", "environment"}
"""Below these, a name that sounds like a secret is enough; elsewhere it must be one (`key_path` is none)."""
_PLAIN_NAME = re.compile(r"(api[_-]?)?key|((access|auth|bearer)[_-]?)?token|secret|password|authorization", re.I)
REFERENCE = re.compile(r"\$\{[^}]*\}")

Place = tuple[str, ...]
"""Keys, and numbers of lists as text, from the configuration's top."""
NEUTRAL = frozenset(("timeouts", "concurrency", "max_attempts", "price"))
"""Options that can't change what an agent answers: how long is waited, how many at once, what it costs."""
_DIGITS = 16
_USER = re.compile(r"://[^/@\s]*@")


def without_keys(config: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[Place, ...]]:
    """The configuration with null for the keys that are written in it, and the places of those.

    A text with `${VAR}` in it is kept: it says where a key is, not what it is.
    """
    places: list[Place] = []
    cleaned: dict[str, Any] = {key: _without(item, (key,), False, places) for key, item in config.items()}
    return cleaned, tuple(places)


def put_back(config: Mapping[str, Any], places: tuple[Place, ...], source: Mapping[str, Any]) -> dict[str, Any] | None:
    """The configuration with what `source` has at these places; None where it has nothing at one of these places."""
    restored: Any = deepcopy(dict(config))
    for path in places:
        current: Any = source
        for name in path:
            current = _step(current, name)
        place: Any = restored
        for name in path[:-1]:
            place = _step(place, name)
        if current is None or place is None:
            return None
        if isinstance(place, list):
            place[int(path[-1])] = current
        else:
            place[path[-1]] = current
    return dict(restored)


def _without(value: object, path: Place, sent: bool, places: list[Place]) -> object:
    if isinstance(value, Mapping):
        below = sent or bool(path and path[-1].casefold() in SENT)
        return {str(key): _without(item, (*path, str(key)), below, places) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without(item, (*path, str(number)), sent, places) for number, item in enumerate(value)]
    if isinstance(value, str) and path and is_key(path[-1], value, sent):
        places.append(path)
        return None
    return value


def is_key(name: str, value: str, sent: bool) -> bool:
    if not value or REFERENCE.search(value):
        return False
    if "://" in value:
        try:
            if urlsplit(value).password:
                return True
        except ValueError:
            return False
    return bool(_SECRET_NAME.search(name) if sent else _PLAIN_NAME.fullmatch(name))


def _step(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return value.get(name)
    if isinstance(value, list | tuple) and name.isdecimal() and int(name) < len(value):
        return value[int(name)]
    return None


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
