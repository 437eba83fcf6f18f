"""What a run cost: tokens times the price of the model.

Prices come from the agent's own `price`, the user's prices.yaml in the configuration folder, or the bundled list, in
this order. See docs/prices.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.files import decode_utf8, read_bytes
from agenteval_tui.suites.yaml.line_index import LineIndex
from agenteval_tui.suites.yaml.tree import MappingNode, compose, is_null, plain_data, resolve
from agenteval_tui.transcripts.model import Usage

FILE = "prices.yaml"
_FIELDS = ("input", "output", "cached", "cache_write")
_MILLION = 1_000_000

# A version's date behind a model's name: -2024-08-06, @20250514, -0613, -001, -05-2026, -05-20; and -latest.
_DATE = re.compile(r"[-@:](?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6}|\d{4}|\d{3}|\d{2}-\d{4}|\d{2}-\d{2}|latest)\Z")
# What runs on one's own machine costs nothing that is known here, whatever its name is.
_LOCAL = frozenset(
    ("ollama", "ollama_chat", "lm_studio", "lmstudio", "llamafile", "llama.cpp", "vllm", "hosted_vllm", "local")
)


class PriceLike(Protocol):
    """US dollars per million tokens; `cached` and `cache_write` are None where they cost as `input` does."""

    @property
    def input(self) -> float: ...
    @property
    def output(self) -> float: ...
    @property
    def cached(self) -> float | None: ...
    @property
    def cache_write(self) -> float | None: ...


class Price(Struct, frozen=True):
    """US dollars per million tokens; `cached` and `cache_write` are None where they cost as `input` does."""

    input: float
    output: float
    cached: float | None = None
    cache_write: float | None = None


class Prices:
    """The prices of models, by name. The bundled list is read when it is first needed."""

    def __init__(self, own: Mapping[str, Price]) -> None:
        self._own = {_folded(name): price for name, price in own.items()}
        self._found: dict[str, Price | None] = {}

    @classmethod
    def load(cls, config_dir: Path) -> Prices:
        """The prices of `prices.yaml` in the configuration folder, if there is one, before the bundled ones.

        Raises `AgentevalError` with the place of the first thing that is wrong in it.
        """
        path = config_dir / FILE
        return cls(read_prices(path) if path.exists() else {})

    def of(self, model: str) -> Price | None:
        """The price of a model; None when it is not known.

        The name itself first; then without a provider before it (`openai/gpt-4o`); then without a date behind it
        (`gpt-4o-2024-08-06`), from the longest name to the shortest. Upper and lower case are the same.
        """
        if model not in self._found:
            if len(self._found) > 10_000:
                self._found.clear()
            found = _find(model, self._own)
            self._found[model] = _find(model, _bundled()) if found is None else found
        return self._found[model]

    def cost(
        self,
        model: str,
        usage: Usage,
        own: PriceLike | Mapping[str, Any] | None = None,
        *,
        cache_write_tokens: int = 0,
    ) -> float | None:
        """US dollars; None when no price is known, or nothing was measured.

        What the server reported (`usage.cost`) counts before everything else, then `own`, the agent's `price`.
        `usage.input_tokens` includes the cached ones, and `cache_write_tokens` of it were written into the cache.
        """
        if usage.cost is not None:
            return usage.cost
        if usage.input_tokens is None and usage.output_tokens is None:
            return None
        price = _price_of(own) if isinstance(own, Mapping) else own
        price = self.of(model) if price is None else price
        if price is None:
            return None
        total = max(usage.input_tokens or 0, 0)
        cached = min(max(usage.cached_tokens or 0, 0), total)
        written = min(max(cache_write_tokens, 0), total - cached)
        dollars = (
            (total - cached - written) * price.input
            + cached * (price.input if price.cached is None else price.cached)
            + written * (price.input if price.cache_write is None else price.cache_write)
            + max(usage.output_tokens or 0, 0) * price.output
        )
        return dollars / _MILLION


def _price_of(data: Mapping[str, Any]) -> Price:
    """The price in `{"input": ..., "output": ...}`. Raises `AgentevalError` when it is none."""
    for key, value in data.items():
        if key not in _FIELDS:
            raise AgentevalError(f'a price has no "{key}"', mend=f"it has {', '.join(_FIELDS)}")
        if value is None and key in ("cached", "cache_write"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise AgentevalError(
                f'"{key}" must be US dollars per million tokens, 0 or more, not {value!r}', mend="write a number"
            )
    for key in ("input", "output"):
        if key not in data:
            raise AgentevalError(f'this price has no "{key}"', mend=f"add `{key}: ...`, US dollars per million tokens")
    cached, written = data.get("cached"), data.get("cache_write")
    return Price(
        float(data["input"]),
        float(data["output"]),
        None if cached is None else float(cached),
        None if written is None else float(written),
    )


def read_prices(path: Path) -> dict[str, Price]:
    """The prices of a file: `model: {input: 2.5, output: 10, cached: 1.25}`, or the same below `models:`.

    Raises `AgentevalError` with the place of the first thing that is wrong.
    """

    text = decode_utf8(read_bytes(path), path)
    index = LineIndex(text)

    def where(offset: int) -> str:
        line, column = index.line_and_column(offset)
        return f"{path}:{line}:{column}"

    def report(code: str, start: int, end: int, message: str, fix: str | None) -> None:
        raise AgentevalError(message, where=where(start), mend=fix or "")

    root, _ = compose(text, report)
    if root is None or is_null(root):
        return {}
    top = resolve(root)
    if isinstance(top, MappingNode) and [key.text for key, _ in top.pairs] == ["models"]:
        top = resolve(top.pairs[0][1])
    if not isinstance(top, MappingNode):
        raise AgentevalError(
            "prices must be an object by model", where=where(top.start), mend="write `gpt-4o: {input: 2.5, output: 10}`"
        )
    prices: dict[str, Price] = {}
    for key, node in top.pairs:
        data = plain_data(node)
        if not isinstance(data, dict):
            mend = "write `{input: ..., output: ...}`"
            raise AgentevalError(f'the price of "{key.text}" must be an object', where=where(key.start), mend=mend)
        try:
            prices[key.text] = _price_of(data)
        except AgentevalError as error:
            raise AgentevalError(f'"{key.text}": {error.what}', where=where(key.start), mend=error.mend) from None
    return prices


@lru_cache(maxsize=1)
def _bundled() -> dict[str, Price]:
    return {_folded(name): price for name, price in read_prices(Path(__file__).with_name(FILE)).items()}


def _folded(name: str) -> str:
    return name.strip().casefold()


def _find(model: str, prices: Mapping[str, Price]) -> Price | None:
    name = _folded(model)
    names = [name]
    parts = name.split("/")
    if parts[0] not in _LOCAL:
        names += ["/".join(parts[start:]) for start in range(1, len(parts))]
    for one in names:
        found = prices.get(one)
        if found is not None:
            return found
    for one in names:
        for _ in range(2):  # -2024-08-06, and -latest before it
            shorter = _DATE.sub("", one)
            if shorter == one:
                break
            one = shorter
            found = prices.get(one)
            if found is not None:
                return found
    return None
