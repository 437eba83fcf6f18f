"""Runs with what is known of each: good, bad, or not labelled. A set of runs is a whole number, a bit for each run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct, field

from agenteval_tui.transcripts.model import Transcript

K = TypeVar("K", bound=Hashable)


class Example(Struct, frozen=True):
    """A run: its transcript, the variables of its row, and whether it is good (None: not said)."""

    run: str
    transcript: Transcript
    variables: Mapping[str, Any] = field(default_factory=dict)
    good: bool | None = None


class Examples:
    """The runs that criteria are looked for in, in the order given (the newest first, where it matters)."""

    def __init__(self, examples: Sequence[Example]) -> None:
        self.runs = tuple(examples)
        self.good = self.mask(lambda example: example.good is True)
        self.bad = self.mask(lambda example: example.good is False)
        self.everything = (1 << len(self.runs)) - 1

    def __len__(self) -> int:
        return len(self.runs)

    @property
    def labelled(self) -> int:
        """The runs of which a person said something."""
        return self.good | self.bad

    @property
    def unlabelled(self) -> int:
        """The others."""
        return self.everything & ~self.labelled

    @cached_property
    def answers(self) -> tuple[str, ...]:
        """The final answer of each run."""
        return tuple(example.transcript.final_output for example in self.runs)

    def mask(self, holds: Callable[[Example], bool]) -> int:
        """The runs of which this holds."""
        return sum(1 << number for number, example in enumerate(self.runs) if holds(example))

    def mask_of_texts(self, text: str) -> int:
        """The runs whose answer has this text, given in lower case, anywhere."""
        return sum(1 << number for number, answer in enumerate(self._lower) if text in answer)

    @cached_property
    def _lower(self) -> tuple[str, ...]:
        return tuple(answer.lower() for answer in self.answers)

    def ids(self, mask: int) -> tuple[str, ...]:
        """The ids of these runs."""
        return tuple(self.runs[number].run for number in numbers(mask))


def runs_by_key(pairs: Iterable[tuple[K, int]]) -> dict[K, int]:
    """The set of runs that have each key, out of pairs of a key and a run's place."""
    masks: dict[K, int] = {}
    for key, number in pairs:
        masks[key] = masks.get(key, 0) | 1 << number
    return masks


def most_frequent(masks: Mapping[K, int], most: int) -> list[tuple[K, int]]:
    """Up to `most` keys with their runs: those of most runs first, equally frequent ones in their own order."""
    return sorted(masks.items(), key=lambda entry: (-entry[1].bit_count(), entry[0]))[:most]


def numbers(mask: int) -> Iterator[int]:
    """The places of the runs of a set, from the first."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest
