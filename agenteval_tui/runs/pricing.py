"""What tokens cost, where the server does not say: by the model that answered, else by the one that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.prices import Prices
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import Usage

Price = Callable[[str, Usage], float | None]
"""`price(model, usage)`: US dollars, None when the price is not known. The model may be ""."""


def price_for(config: Mapping[str, Any], config_dir: Path) -> Price:
    """The prices of an agent with this configuration: its own `price`, else the lists'. Loaded when first asked.

    A list that can't be read has none: see `fresh_prices`.
    """
    named = str(config.get("model") or "")
    own = config.get("price")

    def price(model: str, usage: Usage) -> float | None:
        try:
            prices = _prices(config_dir)
        except AgentevalError:
            return None  # what is wrong in the list is said at the start; it must not break what is paid for
        for one in dict.fromkeys((model, named)):
            if one or own is not None:
                cost = prices.cost(one, usage, own)
                if cost is not None:
                    return cost
        return None

    return price


@lru_cache(maxsize=4)
def _prices(config_dir: Path) -> Prices:
    return Prices.load(config_dir)


def fresh_prices(config_dir: Path) -> None:
    """Read the user's list again: a new execution has the prices of its day. Raises `AgentevalError` where it is wrong,
    before anything is paid for."""
    _prices.cache_clear()
    if (config_dir / "prices.yaml").exists():
        _prices(config_dir)


class Priced:
    """The usage of one attempt with its cost. The model's name comes with the end of an answer, its tokens before."""

    def __init__(self, price: Price) -> None:
        self._price = price
        self._model = ""
        self._open: list[Usage] = []

    def priced(self, usage: Usage) -> Usage:
        """The usage with its cost, as far as it can be told now."""
        if usage.total_tokens is None:
            return usage
        self._open.append(usage)
        cost = self._price(self._model, usage)
        return usage if cost is None else replace(usage, cost=cost)

    def named(self, model: str) -> float | None:
        """The model that gave the last answer; what is to be added to its cost, None for nothing."""
        before, self._model = self._model, model
        spent, self._open = self._open, []
        if before == model or not spent:
            return None
        more, told = 0.0, False
        for usage in spent:
            now, then = self._price(model, usage), self._price(before, usage)
            if now is not None:
                more += now - (then or 0.0)
                told = told or then is None or now != then
        return more if told else None
