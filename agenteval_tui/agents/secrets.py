"""Which values are secret in a configuration: they must be in nothing that is shown, stored or exported."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import KEY_FINDERS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.redaction import SHORTEST, SHORTEST_IN_ERRORS
from agenteval_tui.suites.environment import expand, expansions, key_from
from agenteval_tui.suites.tool_files import tools_as_read

# A name with one of these words in it. Not a path to a secret, and not a number of tokens.
_WORDS = re.compile(
    r"SECRET|TOKEN(?!S|IZ)|PASSW|PASSPHRASE|CREDENTIAL|COOKIE|APIKEY|ACCESSKEY|SIGNATURE"
    r"|(?:^|[^A-Z])(?:KEYS?|AUTH|AUTHORIZATION|PASS|PAT|BEARER)(?:[^A-Z]|$)|.[^A-Z]PWD$"
)
_NO_SECRET = re.compile(
    r"(?:^|[^A-Z])(?:PATH|FILE|DIR|SOCK|SCHEME|HEADER|TYPE|METHOD|CHOICE|ENV)$|APPLICATION_CREDENTIALS$"
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}")
# What people write where a server wants any key: no secrets, and parts of many an innocent answer.
_PLACEHOLDERS = frozenset(
    (
        "not-needed",
        "notneeded",
        "not needed",
        "no-key-required",
        "sk-no-key-required",
        "none-needed",
        "lm-studio",
        "dummy-key",
        "dummy_key",
        "placeholder",
        "undefined",
        "anything",
        "password",
        "your-key",
        "your-api-key",
        "none",
        "null",
        "empty",
        "test",
        "testing",
        "dummy",
        "demo",
        "fake",
        "local",
        "ollama",
        "vllm",
        "llama",
        "token",
        "secret",
        "apikey",
        "api-key",
        "api_key",
        "basic",
        "bearer",
        "unused",
        "default",
        "nothing",
        "1234",
        "12345",
        "123456",
        "xxxx",
        "changeit",
        "example",
        "sk-1234",
        "sk-test",
        "sk-fake",
        "sk-none",
        "sk-xxx",
        "api-key-here",
        "changeme",
        "localhost",
        "disabled",
        "no-key-needed",
        "not-required",
        "nokeyneeded",
        "whatever",
    )
)
_SEEN = frozenset(("kind", "model", "description"))
_ADDRESSES = frozenset(("base_url", "url"))
_LONG = 16  # characters of a part of a path that is a key rather than a word
# The variables that a kind of agent reads without being told.
_USUAL = {
    "openai": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
PROGRAMS = frozenset(("command", "python"))
"""The kinds whose agents are programs of a project."""


def secrets_of(
    config: Mapping[str, Any], env: Mapping[str, str], base_dir: Path | None = None, *, trusted: bool = False
) -> tuple[str, ...]:
    """The secret values that an agent of this configuration may have seen, the longest first; none of fewer than 4
    characters. Never raises.

    `config` is an agent's configuration (`kind` and options), best as it was written; `env` what `${VAR}` and key names
    are looked up in, beside the keyring. A file of tools is read where `base_dir` says what it is relative to. Secret
    are: the variables named by `api_key_env` and other `..._env` options, and those that the kind reads by itself;
    headers, parameters, and options whose names say so; passwords in addresses; whatever `${VAR}` brought in
    (docs/decisions/0009), and what is there expanded already where VAR's name says so. A program inherits the
    environment: for agents that are or call programs all variables whose names say so are secret.
    """
    secrets: set[str] = set()
    for name in _USUAL.get(str(config.get("kind", "")), ()):
        secrets |= _of_name(name, env)
    tools = config.get("tools")
    if tools is not None and base_dir is not None:
        config = {**config, "tools": tools_as_read(tools, base_dir, trusted=trusted)}
    texts = list(_texts(config, ""))
    for path, text in texts:
        secrets |= _of_text(path, text, env)
    secrets |= _expanded_values(config, texts, env)
    named = [(name, value) for name, value in env.items() if len(value) >= SHORTEST]
    kind = config.get("kind")
    if (
        kind in PROGRAMS
        or str(kind) in entry_points.own(KEY_FINDERS)
        or (tools and not str(tools).startswith("builtin:"))
    ):
        for name, value in named:
            if is_secret_name(name):
                secrets |= _parts(value)
            elif "://" in value:
                secrets |= set(_of_address(value))
    else:
        whole = "\n".join([text for _, text in texts])
        for name, value in named:
            # A key may be written out in the suite.
            if value.strip() in whole and is_secret_name(name):
                secrets |= _parts(value)
    long_enough = {
        value for value in secrets if len(value) >= SHORTEST_IN_ERRORS and value.casefold() not in _PLACEHOLDERS
    }
    return tuple(sorted(long_enough, key=lambda value: (-len(value), value)))


def _expanded_values(config: Mapping[str, Any], texts: list[tuple[str, str]], env: Mapping[str, str]) -> set[str]:
    """Every value that `${VAR}` brought in, whatever VAR is called: a value from the environment is not meant to be
    seen. Not: values that the suite itself contains, and those that identify an agent: its kind, its model, and its
    address without the part that gives access.
    """
    values: set[str] = set()
    written = "\n".join([_REFERENCE.sub("", text) for _, text in texts])
    for expansion in expansions(config, env):
        option = expansion.path[-1] if expansion.path else ""
        if len(expansion.path) == 1 and option in _ADDRESSES and expansion.whole:
            values |= set(_of_address(expansion.value)) | set(_places_of(expansion.value))
        elif not (len(expansion.path) == 1 and option in _SEEN) and expansion.value.strip() not in written:
            values |= _parts(expansion.value)
    return values


def is_secret_name(name: str) -> bool:
    """Whether a variable, header or option of this name holds a secret: OPENAI_API_KEY, X-Auth-Token, dbPassword."""
    upper = _CAMEL.sub("_", name).upper()
    return _WORDS.search(upper) is not None and _NO_SECRET.search(upper) is None


def _texts(value: object, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """Every text of a configuration with the key that it is under."""
    if isinstance(value, str):
        yield name, value
    elif depth > 100:
        return
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, name, depth + 1)


def _of_text(name: str, text: str, env: Mapping[str, str]) -> set[str]:
    values: set[str] = set()
    if name.endswith("_env"):
        return _of_name(text, env)
    if name == "env" and is_secret_name(text):
        values |= _parts(env.get(text) or "")  # a list of the variables that a program gets
    for match in _REFERENCE.finditer(text):
        if is_secret_name(match.group(1)):
            values |= _parts(_expanded(match.group(), env))
    value = _expanded(text, env)
    if is_secret_name(name):
        values |= _parts(value)
    if "://" in value:
        values |= set(_of_address(value))
    return values


def _of_name(name: str, env: Mapping[str, str]) -> set[str]:
    """The key that is called `name`."""
    try:
        return _parts(key_from(name, env) or "")
    except AgentevalError:
        return set()  # a keyring that can't be read gave no key either


def _expanded(text: str, env: Mapping[str, str]) -> str:
    try:
        return str(expand(text, env))
    except AgentevalError:
        return ""  # no agent can be built from it


def _parts(value: str) -> set[str]:
    """A value and what is secret in it: `Bearer abc` has abc, `Basic ...` the password too."""
    value = value.strip()
    parts = {value}
    scheme, _, rest = value.partition(" ")
    rest = rest.strip()
    if rest and " " not in rest:
        parts.add(rest)
        if scheme.casefold() == "basic":
            try:
                parts.add(base64.b64decode(rest, validate=True).decode().partition(":")[2])
            except (binascii.Error, ValueError):
                pass
    if "://" in value:
        parts |= set(_of_address(value))
    return parts


def _of_address(text: str) -> Iterator[str]:
    """The password and the secret parameters of an address."""
    for word in text.split():
        if "://" not in word or ("@" not in word and "?" not in word):
            continue
        try:
            parts = urlsplit(word)
            if parts.password:
                yield from (parts.password, unquote(parts.password))
            for name, value in parse_qsl(parts.query):
                if is_secret_name(name):
                    yield value
        except ValueError:
            continue


def _places_of(address: str) -> Iterator[str]:
    """The parts of an address's path that look like keys, as in a webhook's."""
    for part in address.partition("://")[2].partition("?")[0].split("/")[1:]:
        if len(part) >= _LONG and any(c.isdigit() for c in part) and any(c.isalpha() for c in part):
            yield part
