"""Tokens and costs as agents, servers, frameworks and traces report them.

What can't be so is not counted, and noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from agenteval_tui.agents.process.python_usage import dollars_in, figures_in, is_usage_attribute, tokens_in
from agenteval_tui.transcripts.impossible_figures import shown_figure
from agenteval_tui.transcripts.model import Note, Usage

T = TypeVar("T", int, float)


class UsageSum:
    """Adds up usages. A side of which one usage has no figure is not known in all, and what is known of it is noted."""

    def __init__(self) -> None:
        self._known = Usage()
        self._inputs = self._outputs = 0
        self._uncounted = False

    def add(self, usage: Usage) -> None:
        """One more: of a request, or of one side of it. An empty one is a request whose usage is not known."""
        self._known += usage
        self._inputs += usage.input_tokens is not None
        self._outputs += usage.output_tokens is not None
        self._uncounted = self._uncounted or (
            usage.cost is None and usage.input_tokens is None and usage.output_tokens is None
        )

    @property
    def total(self) -> Usage:
        """The usage of all requests, as far as it is known."""
        requests = max(self._inputs, self._outputs)
        usage = self._known
        return replace(
            usage,
            input_tokens=None if self._uncounted or self._inputs < requests else usage.input_tokens,
            output_tokens=None if self._uncounted or self._outputs < requests else usage.output_tokens,
            cost=None if self._uncounted else usage.cost,
        )

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is known of tokens that `total` does not have."""
        total, usage = self.total, self._known
        sides = [
            f"{count:,} {side}"
            for side, whole, count in (
                ("in", total.input_tokens, usage.input_tokens),
                ("out", total.output_tokens, usage.output_tokens),
            )
            if whole is None and count
        ]
        return (Note("partly_counted", ", ".join(sides)),) if sides else ()


class UsageReader:
    """Reads usage in any dialect (`python_usage` knows them). `odd` has the figures that were not accepted, by name,
    `wrong_sums` says what does not add up, in words."""

    def __init__(self) -> None:
        self.odd: dict[str, Any] = {}
        self.wrong_sums: dict[str, None] = {}
        self._sum = UsageSum()

    def read(self, raw: object) -> Usage:
        """The usage in a mapping, or in the attributes of a span."""
        figures, odd, wrong_sum = figures_in(raw)
        for name, value in odd.items():
            self.odd.setdefault(name, value)
        if wrong_sum:
            self.wrong_sums[wrong_sum] = None
        return Usage(**figures)

    def add(self, raw: object) -> None:
        """Add the usage of one more request to `total`; nothing where there is none."""
        if raw:
            before = len(self.odd)
            usage = self.read(raw)
            if usage != Usage() or len(self.odd) > before:
                self._sum.add(usage)

    @property
    def total(self) -> Usage:
        """The sum of what was added."""
        return self._sum.total

    def tokens(self, raw: object, key: str) -> int | None:
        """The number of tokens at a key; None where there is none."""
        return self._at(raw, key, tokens_in)

    def cost(self, raw: object, key: str = "cost") -> float | None:
        """The cost at a key; None where there is none."""
        return self._at(raw, key, dollars_in)

    def _at(self, raw: object, key: str, read: Callable[[Any], T | None]) -> T | None:
        value = raw.get(key) if isinstance(raw, Mapping) else None
        figure = read(value)
        if figure is None and value is not None:
            self.odd[key] = value
        return figure

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is said of figures that were not accepted, of totals that do not add up, and of sums that are not
        whole."""
        notes = list(self._sum.notes)
        if self.odd:
            listed = (f"{name} = {shown_figure(value)}" for name, value in list(self.odd.items())[:8])
            notes.append(Note("usage", ", ".join(listed)))
        if self.wrong_sums:
            notes.append(Note("usage_total", "; ".join(list(self.wrong_sums)[:4])))
        return tuple(notes)


def total_tokens(raw: object) -> int | None:
    """The total in a usage that has nothing else; None for none. Some servers of embeddings tell only that."""
    count: int | None = tokens_in(raw.get("total_tokens")) if isinstance(raw, Mapping) else None
    return count


def read_usage(raw: object) -> Usage:
    """The usage in a mapping of any dialect, without notes about odd values."""
    return UsageReader().read(raw)


def usage_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those attributes of a span that tell of the usage: what `UsageReader` reads."""
    return {key: value for key, value in attributes.items() if is_usage_attribute(key)}
