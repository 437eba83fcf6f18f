"""`${VAR}` and `${VAR:-default}` in agents, from the environment or a `.env` file; keys also from the keyring."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, overload

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import with_texts
from agenteval_tui.suites.env_files import env_files

_REFERENCE = re.compile(r"\$\$\{|\$\{([^}]*)\}")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:(:-|-)(.*))?\Z", re.DOTALL)


@overload
def expand(value: str, env: Mapping[str, str]) -> str: ...
@overload
def expand(value: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]: ...
@overload
def expand(value: Sequence[Any], env: Mapping[str, str]) -> list[Any]: ...
@overload
def expand(value: object, env: Mapping[str, str]) -> object: ...
def expand(value: object, env: Mapping[str, str]) -> object:
    """`value` with `${VAR}` put into all its texts (keys stay as they are); other values as they are.

    `${VAR:-default}` takes the default where VAR is not set or empty, `${VAR-default}` where it is not set. `$${`
    stands for `${` itself. Raises `AgentevalError` when a variable is not set and has no default.
    """
    return with_texts(value, lambda text: _REFERENCE.sub(lambda match: _value_of(match, env), text))


def _value_of(match: re.Match[str], env: Mapping[str, str]) -> str:
    if match.group() == "$${":
        return "${"
    inside = match.group(1)
    parts = _NAME.match(inside)
    if parts is None:
        raise AgentevalError(
            f"${{{inside}}} is not an environment variable",
            fix="write ${NAME} or ${NAME:-default}; $${ for the text ${",
        )
    name, mark, default = parts.groups()
    value = env.get(name)
    if mark is not None and (value is None or (mark == ":-" and not value)):
        return str(default)
    if value is None:
        raise AgentevalError(
            f"the environment variable {name} is not set",
            fix=f"set it, put it into a .env file beside the suite or above it, or write ${{{name}:-default}}",
        )
    return value


class Reference(Struct, frozen=True):
    """A `${VAR}` in a text. `mark`: `:-` or `-` where there is a default."""

    name: str
    mark: str = ""
    default: str = ""


def pieces(text: str) -> Iterator[str | Reference]:
    """A text in its pieces, as `expand` reads them: texts, and the references between them."""
    end = 0
    for match in _REFERENCE.finditer(text):
        if match.start() > end:
            yield text[end : match.start()]
        end = match.end()
        parts = None if match.group() == "$${" else _NAME.match(match.group(1))
        if parts is None:
            yield "${" if match.group() == "$${" else match.group()
        else:
            yield Reference(parts.group(1), parts.group(2) or "", parts.group(3) or "")
    if end < len(text):
        yield text[end:]


class ExpandedVariable(Struct, frozen=True):
    """A value of the environment that `expand` puts into a text: the variable, its value, and the first and the
    last key on the way to the text (one, where it is the same)."""

    name: str
    value: str
    path: tuple[str, ...]
    whole: bool
    """The text is this reference and nothing else."""


def expansions(value: object, env: Mapping[str, str], *, unset: bool = False) -> Iterator[ExpandedVariable]:
    """Every value that `expand(value, env)` takes from `env`; defaults are the text's own and are not among them.

    `unset`: also, with the value "", the variables that are not set and have no default. At any depth.
    """
    waiting: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    while waiting:
        current, path = waiting.pop()
        if isinstance(current, str):
            for match in _REFERENCE.finditer(current) if "${" in current else ():
                parts = None if match.group() == "$${" else _NAME.match(match.group(1))
                setting = env.get(parts.group(1)) if parts is not None else None
                if parts is not None and (setting or (unset and setting is None and parts.group(2) is None)):
                    yield ExpandedVariable(parts.group(1), setting or "", path, match.group() == current.strip())
        elif isinstance(current, Mapping):
            # Only the first and the last key are asked for: a path as deep as the value would make this slow.
            waiting += [(item, (*path[:1], str(key))) for key, item in reversed(list(current.items()))]
        elif isinstance(current, list | tuple):
            waiting += [(item, path) for item in reversed(current)]


def environment_for(
    folder: Path, environ: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The variables of the `.env` for a suite in `folder` (`env_files`), and the environment's, which win. `config` is
    the agent that they are for. Raises `AgentevalError` when a file can't be read.
    """
    return {**env_files(folder, config).variables, **(os.environ if environ is None else environ)}


def environment_if_readable(
    folder: Path, environ: Mapping[str, str] | None = None, config: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """As `environment_for`; without the `.env` where that can't be read: the run says so."""
    try:
        return environment_for(folder, environ, config)
    except AgentevalError:
        return dict(os.environ if environ is None else environ)


KEYRING_SERVICE = "agenteval"


def key_from(name: str, env: Mapping[str, str]) -> str | None:
    """The key called `name`: from `env`, else from the system's keyring (service "agenteval", user `name`), where
    the extra `[keyring]` is installed. None if there is none; white space around it is removed. The keyring is asked
    only for keys missing in `env`, once for each name. Raises `AgentevalError` when it can't be read: it is locked, or
    the user refused.
    """
    if not name:
        return None
    return env.get(name, "").strip() or _from_keyring(name)


@lru_cache(maxsize=256)
def _from_keyring(name: str) -> str | None:
    try:
        import keyring
        import keyring.errors
    except ImportError:
        return None
    try:
        password = keyring.get_password(KEYRING_SERVICE, name)
    except (keyring.errors.NoKeyringError, keyring.errors.InitError):
        return None  # this system has none
    except Exception as error:  # a backend raises what it likes
        # What a backend says of it may hold anything: only the kind of error is said.
        raise AgentevalError(
            f"the key {name} can't be read from the keyring ({type(error).__name__})",
            fix=f"unlock the keyring, or set the environment variable {name}",
        ) from None
    return (password or "").strip() or None
