"""Keys written in an agent's configuration: they are never stored, and are put back from the place where they are
written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import urlsplit

_SECRET_NAME = re.compile(r"auth|key|token|cookie|secret|password|credential|signature", re.IGNORECASE)
SENT = {"headers", "query", "env", "environment"}
"""Below these, a name that sounds like a secret is enough; elsewhere it must be one (`key_path` is none)."""
_PLAIN_NAME = re.compile(r"(api[_-]?)?key|((access|auth|bearer)[_-]?)?token|secret|password|authorization", re.I)
REFERENCE = re.compile(r"\$\{[^}]*\}")

Place = tuple[str, ...]
"""Keys, and numbers of lists as text, from the configuration's top."""


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
