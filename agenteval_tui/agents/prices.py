"""What a run cost: tokens times the price of the model.

Prices come from the agent's own `price`, the user's prices.yaml in the configuration folder (what is written by hand
before what `agenteval prices update` wrote below it), or the bundled list, in this order. See docs/prices.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from agenteval_tui.core.document import Document
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import MappingNode, compose, is_null, plain_data, resolve
from agenteval_tui.transcripts.model import Usage

FILE = "prices.yaml"
UPDATED = '--- # By "agenteval prices update". Write nothing below this line; what is above it wins.'
"""The line of prices.yaml below which the downloaded prices are: a YAML document of its own, written as JSON."""
_FIELDS = ("input", "output", "cached", "cache_write", "cache_write_1h")
_MILLION = 1_000_000

Cost = Callable[[str, Usage], float | None]
"""`cost(model, usage)`: US dollars, None when the price is not known. The model may be ""."""
Source = Literal["yours", "updated", "bundled"]
"""Where a price is from: written by hand into prices.yaml, put there by `agenteval prices update`, or bundled."""

# A version's date behind a model's name: -2024-08-06, @20250514, -0613, -001, -05-2026, -05-20; and -latest.
_DATE = re.compile(r"[-@:](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|\d{2}-\d{4}|\d{2}-\d{2}|latest)\Z")
# What runs on one's own machine costs nothing that is known here, whatever its name is.
_LOCAL = frozenset(
    ("ollama", "ollama_chat", "lm_studio", "lmstudio", "llamafile", "llama.cpp", "vllm", "hosted_vllm", "local")
)


class Price(Document, frozen=True):
    """US dollars per million tokens. `cached` and `cache_write` are None where they cost as `input` does,
    `cache_write_1h` where it costs as `cache_write` does."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None
    cache_write_1h: float | None = None


class KnownPrice(Struct, frozen=True):
    """What a list has for a model, and the name that the model has there."""

    name: str
    price: Price
    source: Source


class Prices:
    """The prices of models, by name: those written by hand, the downloaded, the bundled. The bundled list is read when
    it is first needed."""

    def __init__(self, own: Mapping[str, Price], updated: Mapping[str, Price] | None = None) -> None:
        self._lists: list[tuple[Source, Mapping[str, Price]]] = [("yours", own), ("updated", updated or {})]
        self._folded = [{_folded(name): (name, price) for name, price in prices.items()} for _, prices in self._lists]
        self._found: dict[str, KnownPrice | None] = {}

    @classmethod
    def load(cls, config_dir: Path) -> Prices:
        """The prices of `prices.yaml` in the configuration folder, if there is one, before the bundled ones.

        Raises `AgentevalError` with the place of the first thing that is wrong in it.
        """
        path = config_dir / FILE
        return cls(*read_both(path)) if path.exists() else cls({})

    def of(self, model: str) -> Price | None:
        """The price of a model; None when it is not known."""
        known_price = self.find(model)
        return None if known_price is None else known_price.price

    def find(self, model: str) -> KnownPrice | None:
        """The price of a model, and where it is from; None when it is not known.

        The name itself first; then without a provider before it (`openai/gpt-4o`); then without a date behind it
        (`gpt-4o-2024-08-06`), from the longest name to the shortest. Upper and lower case are the same.
        """
        if model not in self._found:
            if len(self._found) > 10_000:
                self._found.clear()
            self._found[model] = self._look_up(model)
        return self._found[model]

    def every(self) -> list[KnownPrice]:
        """All prices that count, by name: where two lists have the same name, that of the first."""
        by_name: dict[str, KnownPrice] = {}
        bundled: tuple[Source, Mapping[str, Price]] = ("bundled", dict(_bundled().values()))
        for source, prices in (*self._lists, bundled):
            for name, price in prices.items():
                by_name.setdefault(_folded(name), KnownPrice(name, price, source))
        return [by_name[name] for name in sorted(by_name)]

    def _look_up(self, model: str) -> KnownPrice | None:
        for (source, _), prices in zip(self._lists, self._folded, strict=True):
            entry = _find(model, prices)
            if entry is not None:
                return KnownPrice(*entry, source)
        entry = _find(model, _bundled())
        return None if entry is None else KnownPrice(*entry, "bundled")

    def cost(
        self,
        model: str,
        usage: Usage,
        own: Price | Mapping[str, Any] | None = None,
    ) -> float | None:
        """US dollars; None when no price is known, or not both sides of the usage were measured.

        What the server reported (`usage.cost`) counts before everything else, then `own`, the agent's `price`.
        """
        if usage.cost is not None:
            return usage.cost
        tokens_in, answered = usage.input_tokens, usage.output_tokens
        if tokens_in is None or answered is None or tokens_in < 0 or answered < 0:
            return None
        price = price_of(own) if isinstance(own, Mapping) else own
        price = self.of(model) if price is None else price
        if price is None:
            return None
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        hour = usage.cache_write_1h_tokens or 0
        # Figures that contradict one another have no price.
        if not (cached >= 0 and 0 <= hour <= written and cached + written <= tokens_in):
            return None
        cache_write = price.input if price.cache_write is None else price.cache_write
        dollars = (
            (tokens_in - cached - written) * price.input
            + cached * (price.input if price.cached is None else price.cached)
            + (written - hour) * cache_write
            + hour * (cache_write if price.cache_write_1h is None else price.cache_write_1h)
            + answered * price.output
        )
        return dollars / _MILLION


def price_of(data: Mapping[str, Any]) -> Price:
    """The price in `{"input": ..., "output": ...}`. Raises `AgentevalError` when it is none."""
    for key, value in data.items():
        if key not in _FIELDS:
            raise AgentevalError(f'a price has no "{key}"', fix=f"it has {', '.join(_FIELDS)}")
        if value is None and key not in ("input", "output"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise AgentevalError(
                f'"{key}" must be US dollars per million tokens, 0 or more, not {value!r}', fix="write a number"
            )
    for key in ("input", "output"):
        if key not in data:
            raise AgentevalError(f'this price has no "{key}"', fix=f"add `{key}: ...`, US dollars per million tokens")
    return Price(**{key: float(value) for key, value in data.items() if value is not None})


def read_prices(path: Path) -> dict[str, Price]:
    """The prices of a file: `model: {input: 2.5, output: 10, cached: 1.25}`, or the same below `models:`.

    Raises `AgentevalError` with the place of the first thing that is wrong.
    """
    own, updated = read_both(path)
    return {**updated, **own}


def read_both(path: Path) -> tuple[dict[str, Price], dict[str, Price]]:
    """(the prices of a file that were written by hand, those below the line `UPDATED`). Raises as `read_prices`."""
    own, updated = split(decode_utf8(read_bytes(path), path))
    return prices_in(own, str(path)), _updated_prices(updated, path, own.count("\n"))


def split(text: str) -> tuple[str, str]:
    """(what was written by hand, what is below the line `UPDATED`)."""
    match = re.search(rf"^{re.escape(UPDATED)}[ \t\r]*$\n?", text, re.MULTILINE)
    return (text, "") if match is None else (text[: match.start()], text[match.end() :])


def _updated_prices(text: str, path: Path, lines: int) -> dict[str, Price]:
    """The prices below the line `UPDATED`, which follows this many lines."""
    try:
        data = json.loads(text) if text.strip() else {}  # 40 times as fast as the reader that knows places
        return {name: price_of(price) for name, price in data.items()}
    except (ValueError, RecursionError, AttributeError, AgentevalError):
        return prices_in("\n" * (lines + 1) + text, str(path))


def prices_in(text: str, place: str) -> dict[str, Price]:
    """The prices in the text of the file at `place`. Raises as `read_prices`."""
    index = LineIndex(text)

    def where(offset: int) -> str:
        line, column = index.line_and_column(offset)
        return f"{place}:{line}:{column}"

    def report(code: str, start: int, end: int, message: str, fix: str | None) -> None:
        raise AgentevalError(message, where=where(start), fix=fix or "")

    root, _ = compose(text, report)
    if root is None or is_null(root):
        return {}
    top = resolve(root)
    if isinstance(top, MappingNode) and [key.text for key in top.pairs] == ["models"]:
        top = resolve(*top.pairs.values())
    if not isinstance(top, MappingNode):
        raise AgentevalError(
            "prices must be an object by model", where=where(top.start), fix="write `gpt-4o: {input: 2.5, output: 10}`"
        )
    prices: dict[str, Price] = {}
    for key, node in top.pairs.items():
        data = plain_data(node)
        if not isinstance(data, dict):
            fix = "write `{input: ..., output: ...}`"
            raise AgentevalError(f'the price of "{key.text}" must be an object', where=where(key.start), fix=fix)
        try:
            prices[key.text] = price_of(data)
        except AgentevalError as error:
            raise AgentevalError(f'"{key.text}": {error.what}', where=where(key.start), fix=error.fix) from None
    return prices


@lru_cache(maxsize=1)
def _bundled() -> dict[str, tuple[str, Price]]:
    return {_folded(name): (name, price) for name, price in read_prices(Path(__file__).with_name(FILE)).items()}


def _folded(name: str) -> str:
    return name.strip().casefold()


def _find(model: str, prices: Mapping[str, tuple[str, Price]]) -> tuple[str, Price] | None:
    name = _folded(model)
    names = [name]
    parts = name.split("/")
    # On this machine, a model costs nothing of what it costs at a provider.
    if parts[0] not in _LOCAL:
        names += ["/".join(parts[start:]) for start in range(1, len(parts))]
    for candidate in names:
        price = prices.get(candidate)
        if price is not None:
            return price
    for candidate in names:
        for _ in range(2):  # -2024-08-06, and -latest before it
            shorter = _DATE.sub("", candidate)
            if shorter == candidate:
                break
            candidate = shorter
            price = prices.get(candidate)
            if price is not None:
                return price
    return None
