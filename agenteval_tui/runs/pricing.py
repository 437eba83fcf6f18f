"""What tokens cost, where the server does not say: by the model that answered, else by the one that was asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.prices import Cost, Prices
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import Usage


def price_for(config: Mapping[str, Any], config_dir: Path) -> Cost:
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
        # The model that answered may have a name that no list has, such as one with a date.
        for candidate in dict.fromkeys((model, named)):
            if candidate or own is not None:
                cost = prices.cost(candidate, usage, own)
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
    # The bundled list can't be wrong, and is read when it is needed.
    if (config_dir / "prices.yaml").exists():
        _prices(config_dir)


class Priced:
    """The usage of one attempt with its cost. The model's name comes with the end of an answer, its tokens before."""

    def __init__(self, price: Cost) -> None:
        self._price = price
        self._model = ""
        self._open: list[int] = []
        self._spent: list[tuple[Usage, float | None]] = []
        self.at_most = 0.0
        """What the requests would have cost if all their input had been written into a cache, in US dollars: the next
        ones may cost that much. As far as it is known."""

    @property
    def whole(self) -> bool:
        """Whether the cost of all requests is known."""
        return all(cost is not None for _, cost in self._spent)

    @property
    def known_cost(self) -> float:
        """The cost of the requests whose cost is known, in US dollars."""
        return sum(cost for _, cost in self._spent if cost is not None)

    def priced(self, usage: Usage, model: str = "") -> Usage:
        """The usage with its cost, as far as it can be told now. `model` used it; "": the next `named` says which."""
        if usage.cost is not None:
            if usage.input_tokens is None and not self.whole:  # the cost of what it used until now
                self._spent, self._open = [], []
            self._spent.append((usage, usage.cost))
            self.at_most += usage.cost
            return usage
        if usage == Usage() and not model:
            self._spent.append((usage, None))  # of a request whose tokens were not counted
            return usage
        usage, unpriced = self._both_sides(usage, model), usage
        cost = self._price(model or self._model, usage)
        if cost is None and usage.total_tokens == 0:
            return usage
        if not model:
            self._open.append(len(self._spent))
        self._spent.append((usage, cost))
        self.at_most += max(cost or 0.0, self._price(model or self._model, usage.all_written) or 0.0)
        return unpriced if cost is None else replace(unpriced, cost=cost)

    def _both_sides(self, usage: Usage, model: str) -> Usage:
        """The usage with the input tokens that were told just before, if it has output tokens only."""
        if usage.input_tokens is not None or model or not self._spent:
            return usage
        before, cost = self._spent[-1]
        if cost is not None or before.input_tokens is None or before.output_tokens is not None:
            return usage
        self._spent.pop()
        self._open = [place for place in self._open if place < len(self._spent)]
        return before + usage

    def named(self, model: str) -> float | None:
        """The model that gave the last answer; what is to be added to the cost of all, which is None while that of one
        is not known. None for nothing."""
        before, self._model = self._model, model
        places, self._open = self._open, []
        if before == model or not places:
            return None
        whole, then = self.whole, self.known_cost
        for place in places:
            usage, cost = self._spent[place]
            now = self._price(model, usage)
            self._spent[place] = usage, cost if now is None else now
        if not self.whole:
            return None
        more = self.known_cost - then if whole else self.known_cost
        return more if more or not whole else None
