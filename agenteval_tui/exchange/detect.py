"""Which format a file is in, told by its first values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agenteval_tui.exchange import openai_messages, tau_bench
from agenteval_tui.exchange.json_stream import Broken, Item
from agenteval_tui.exchange.recorded import Recording, Skipped
from agenteval_tui.text.problems import AgentevalError

_TRIED = 20  # broken values at the start of a file that do not yet make it unreadable


@dataclass(frozen=True, slots=True)
class Format:
    """A foreign format: its name, what it looks like in words, a test of one value, and its reader."""

    name: str
    looks_like: str
    fits: Callable[[Any], bool]
    recordings: Callable[[Iterable[Item | Broken]], Iterator[Recording | Skipped]]


# The order in which they are tried.
FORMATS = {
    module.NAME: Format(module.NAME, module.LOOKS_LIKE, module.fits, module.recordings)
    for module in (tau_bench, openai_messages)
}

# Signs of what this version does not read: better a true word than "unknown".
_OTHERS: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset({"simulations", "tasks"}), "tau2-bench results"),
    (frozenset({"eval", "samples"}), "an Inspect log"),
    (frozenset({"evalId", "results"}), "promptfoo results"),
    (frozenset({"resourceSpans"}), "OpenTelemetry spans"),
)


def format_named(name: str) -> Format:
    """The format of that name. Raises `AgentevalError`."""
    if name not in FORMATS:
        raise AgentevalError(f"there is no format {name!r}", mend=f"formats: {', '.join(sorted(FORMATS))}")
    return FORMATS[name]


def detect(found: Iterator[Item | Broken], where: str) -> tuple[Format, Iterator[Item | Broken]]:
    """The file's format, and all its values (those that were looked at among them).

    Raises `AgentevalError` that says what was looked for and what was found instead.
    """
    head: list[Item | Broken] = []
    first: Item | None = None
    for one in found:
        head.append(one)
        if isinstance(one, Item):
            first = one
            break
        if len(head) >= _TRIED:
            break
    if first is None:
        raise AgentevalError(_nothing(head), where=where, mend=_looked_for())
    for candidate in FORMATS.values():
        if candidate.fits(first.value):
            return candidate, chain(head, found)
    raise AgentevalError(
        f"this is in no format that can be imported: its first value is {_described(first)}",
        where=where,
        mend=_looked_for(),
    )


def _nothing(head: list[Item | Broken]) -> str:
    broken = next((one for one in head if isinstance(one, Broken)), None)
    if broken is None:
        return "there is nothing in this file"
    return f"nothing in this file can be read as JSON (line {broken.line}: {broken.reason})"


def _described(item: Item) -> str:
    value = item.value
    if not isinstance(value, Mapping):
        kinds = {str: "a text", bool: "true or false", list: "a list", type(None): "null"}
        return kinds.get(type(value), "a number")
    for keys, name in _OTHERS:
        if keys <= value.keys():
            return f"an object as in {name}, which this version does not read"
    names = ", ".join(repr(str(key)[:40]) for key in list(value)[:8])
    more = " and more" if len(value) > 8 else ""
    return f"an object with the keys {names}{more}" if value else "an empty object"


def _looked_for() -> str:
    return "looked for " + "; ".join(one.looks_like for one in FORMATS.values())
