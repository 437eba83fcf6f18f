"""Which texts an agent's runs must not tell: values of variables that its configuration takes secrets from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from agenteval_tui.runs.written_keys import without_keys

_SECRET_NAME = re.compile(r"auth|key|token|cookie|secret|passw|credential|signature", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(\w+)")
# Shorter ones may stand in any text by chance: an answer must not be made unreadable for the sake of "none".
_SHORTEST = 8


def secrets_of(written: Mapping[str, Any], config: Mapping[str, Any], env: Mapping[str, str]) -> frozenset[str]:
    """The secrets that an agent is given: variables that `..._env` options name, those that are put into its
    configuration by `${NAME}` where the variable or the option has a secret's name, and keys that somebody wrote there.

    `written` is the configuration as it was written, `config` the same with variables put in.
    """
    names = set(_named(config))
    for option, text in _texts(written):
        secret = bool(_SECRET_NAME.search(option))
        names |= {name for name in _VARIABLE.findall(text) if secret or _SECRET_NAME.search(name)}
    found = {env.get(name, "").strip() for name in names} | set(_written(written))
    return frozenset(one for one in found if len(one) >= _SHORTEST and not one.isalpha())


def _written(config: Mapping[str, Any]) -> Iterator[str]:
    for place in without_keys(config)[1]:
        value: Any = config
        for name in place:
            value = value[int(name)] if isinstance(value, list | tuple) else value[name]
        # "Bearer abc": the word before it is none. Of an address only the password is secret.
        yield (urlsplit(value).password or "") if "://" in value else str(value).rpartition(" ")[2]


def _named(value: Any) -> Iterator[str]:
    """The variables that options such as `api_key_env` (a name) or `env` (a list of names) hand to the agent."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            if isinstance(key, str) and key.endswith("_env") and isinstance(one, str):
                yield one
            elif key == "env" and isinstance(one, list | tuple):
                yield from (name for name in one if isinstance(name, str) and _SECRET_NAME.search(name))
            else:
                yield from _named(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _named(one)


def _texts(value: Any, option: str = "") -> Iterator[tuple[str, str]]:
    """All texts, each with the name of the option in which it stands."""
    if isinstance(value, str):
        yield option, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _texts(one, str(key))
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one, option)
