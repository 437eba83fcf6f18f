"""Shrinking: parts are taken out of a conversation while the agent still fails for the same cause.

Coarse parts go first: messages, calls, sentences, members of JSON by their depth, words. While the cause came back
every time, one answer a question is enough, and what is left at the end is asked as often as certainty needs; where it
does not hold, everything is asked again with the sequential test. At the end each part that is left is taken out by
itself: where the failure stays, it goes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal, TypeVar

from msgspec import Struct

from agenteval_tui.agents.base import ToolSpec
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.options import limits
from agenteval_tui.extensions.shrink.case import Case, Part
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.plan.conversation import Conversation


class ShrinkOptions(ContinuationOptions, frozen=True, kw_only=True):
    """What a small case must keep, and how often it must fail."""

    at: (
        Annotated[
            int,
            limits(
                "The last message the agent gets, a number in `agenteval show RUN` (default: the one before the step "
                "to blame).",
                "STEP",
                ge=1,
            ),
        ]
        | None
    ) = None
    criterion: Annotated[str, limits("The criterion that must fail (default: the first that failed).", "NAME")] = ""
    rate: Annotated[
        float, limits("How often it must fail for the cause to count as the same failure.", "RATE", ge=0.3, le=1)
    ] = 0.8
    keep_calls: Annotated[
        bool,
        limits(
            "Keep all calls, and shorten only the text in them and in their results: the agent may repeat a removed "
            "call."
        ),
    ] = False
    keep_tools: Annotated[bool, limits("Keep the list of tools.")] = False


DEFAULTS = ShrinkOptions()
Stage = Literal["reproduce", "reduce", "confirm", "check"]
Ending = Literal["shrunk", "whole", "not_reproduced", "stopped"]
Removed = frozenset[int]


class Count(Struct, frozen=True):
    """Answers to a question: `hits` of `n` failed for the cause. `stopped`: why there are no more; "": as asked."""

    hits: int
    n: int
    stopped: str = ""


Ask = Callable[[Conversation, int], Count]
"""`ask(conversation, n)`: n answers in all to this question, those that are known among them."""


class Progress(Struct, frozen=True):
    """How far it is. `size`, `smallest` and `whole` in characters; `questions` different conversations were asked."""

    stage: Stage
    size: int
    smallest: int
    whole: int
    questions: int
    answers: int


class Shrunk(Struct, frozen=True):
    """What came of it. `removed`: the ids of the case's parts that are gone. `ending`: `shrunk`; `whole`: nothing can
    go; `not_reproduced`: the cause did not come back often enough; `stopped`: `why` says by what, and `removed` is the
    smallest that was found until then.

    `first` and `last`: how often the cause came back for the whole case and for the small one. `minimal`: no single
    part can go, each was tried. `tools_stay`: why the list of tools was left as it is; "": it was not.
    `unseen`: how many messages of the run are not in the case, or are shorter there, because the model saw them so."""

    case: Case
    removed: Removed
    ending: Ending
    first: Count
    last: Count
    minimal: bool = False
    questions: int = 0
    answers: int = 0
    why: str = ""
    tools_stay: str = ""
    unseen: int = 0

    @property
    def conversation(self) -> Conversation:
        """The small case."""
        return self.case.conversation(self.removed) or self.case.original

    @property
    def tools(self) -> list[ToolSpec]:
        """What the model is told of its tools in the small case."""
        return self.case.offered(self.removed)

    @property
    def sizes(self) -> tuple[int, int]:
        """Characters before and after."""
        return self.case.size(frozenset()), self.case.size(self.removed)


class StoppedError(Exception):
    """The oracle gives no more answers."""


class Shrinker:
    """Shrinks one case. `rate`: how often the cause must come back (0..1). The others: see `Case`."""

    def __init__(
        self,
        conversation: Conversation,
        ask: Ask,
        *,
        rate: float = DEFAULTS.rate,
        keep_calls: bool = False,
        tools: Sequence[ToolSpec] = (),
        keep_tools: bool = False,
        on_progress: Callable[[Progress], None] = lambda progress: None,
    ) -> None:
        self.case = Case(conversation, keep_calls=keep_calls, tools=tools, keep_tools=keep_tools)
        self._ask = ask
        self._rate = rate
        self._on_progress = on_progress
        self._counts: dict[str, Count] = {}
        self._quick = False
        self._smallest: Removed = frozenset()
        self._confirmed: Removed = frozenset()
        self._stage: Stage = "reproduce"
        self._size = self._whole = self.case.size(frozenset())

    def run(self) -> Shrunk:
        """Shrink it."""
        first = Count(0, 0)
        try:
            holds = self._certain(frozenset())
            first = self._count(frozenset())
            if not holds:
                return self._result("not_reproduced", first)
            self._quick = first.hits == first.n
            removed = self._small(frozenset())
            minimal = False
            while not minimal:
                self._stage = "check"
                removed, minimal = self._check(removed)
            return self._result("shrunk" if removed else "whole", first, minimal=True)
        except StoppedError as stopped:
            return self._result("stopped", first, why=str(stopped))

    # The steps

    def _small(self, start: Removed) -> Removed:
        """Level by level, until the small case is as certain as the whole one was."""
        while True:
            removed = start
            self._stage = "reduce"
            for level in self.case.levels:
                removed = self._level(level, removed)
            self._stage = "confirm"
            if self._certain(removed):
                self._confirmed = removed
                return removed
            # Every question was asked until it was certain, and this one is not: the last certain case stands.
            if not self._quick:
                return self._confirmed
            self._quick = False  # it is not as sure as it seemed: from now on every question is asked until it is

    def _level(self, level: int, removed: Removed) -> Removed:
        parts = self.case.level(level, removed)
        if not parts:
            return removed

        def without(left_in: Sequence[Part]) -> Removed:
            ids = {part.id for part in left_in}
            return self.case.without(removed, [part.id for part in parts if part.id not in ids])

        return without(smallest(parts, lambda parts: self._holds(without(parts))))

    def _check(self, removed: Removed) -> tuple[Removed, bool]:
        """Take each part out by itself. True: none can go."""
        for level in self.case.levels:
            for part in self.case.level(level, removed):
                if part.id in removed:
                    continue
                less = self.case.without(removed, [part.id])
                if self._same(less, removed):
                    removed = less  # it says nothing
                # The cheap question first: most parts can't go.
                elif self._holds(less) and self._certain(less):
                    self._confirmed = less
                    return self._small(less), False
        return removed, True

    def _same(self, removed: Removed, other: Removed) -> bool:
        return self.case.conversation(removed) == self.case.conversation(other)

    # Questions

    def _holds(self, removed: Removed) -> bool:
        """Whether the cause is still there, as far as the answers of one question say it."""
        if not self._quick:
            return self._certain(removed)
        if self.case.conversation(removed) is None:
            return False
        count = self._asked(removed, 1)
        return self._note(removed, count.hits > 0 and count.hits == count.n)

    def _certain(self, removed: Removed) -> bool:
        """Whether the cause comes back at the rate, by the sequential test."""
        if self.case.conversation(removed) is None:
            return False
        count = self._count(removed)
        while (answer := decide(count.hits, count.n, self._rate)) == "open" and count.n < MOST:
            more = self._asked(removed, count.n + fewest(count.hits, count.n, self._rate))
            if more.n == count.n:
                break  # the agent ends in errors: nothing more can be known
            count = more
        return self._note(removed, answer == "yes")

    def _note(self, removed: Removed, holds: bool) -> bool:
        self._size = self.case.size(removed)
        if holds and self._size <= self.case.size(self._smallest):
            self._smallest = removed
        self._on_progress(
            Progress(
                self._stage,
                self._size,
                self.case.size(self._smallest),
                self._whole,
                len(self._counts),
                self._answers,
            )
        )
        return holds

    def _count(self, removed: Removed) -> Count:
        return self._counts.get(self._key(removed), Count(0, 0))

    def _asked(self, removed: Removed, n: int) -> Count:
        count_before = self._count(removed)
        if count_before.n >= n:
            return count_before
        conversation = self.case.conversation(removed)
        assert conversation is not None
        count = self._ask(conversation, n)
        if count.stopped:
            raise StoppedError(count.stopped)
        self._counts[self._key(removed)] = count
        return count

    def _key(self, removed: Removed) -> str:
        conversation = self.case.conversation(removed)
        if conversation is None:
            return ""
        messages = [
            [message.role, message.content, message.tool_calls, message.tool_call] for message in conversation.messages
        ]
        calls = [[tool_call.name, repr(tool_call.arguments), tool_call.result] for tool_call in conversation.tool_calls]
        return content_hash([messages, calls, conversation.turns, conversation.context({})])

    @property
    def _answers(self) -> int:
        return sum(count.n for count in self._counts.values())

    def _result(self, ending: Ending, first: Count, *, minimal: bool = False, why: str = "") -> Shrunk:
        # Who stopped it wants the smallest that was seen, confirmed or not.
        removed = self._confirmed if ending != "stopped" else self._smallest
        return Shrunk(
            self.case,
            removed=removed,
            ending=ending,
            first=first,
            last=self._count(removed),
            minimal=minimal and ending in ("shrunk", "whole"),
            questions=len(self._counts),
            answers=self._answers,
            why=why,
        )


ALPHA = 0.05
MOST = 24
"""Answers after which a question stays open."""
Answer = Literal["yes", "no", "open"]


def decide(hits: int, n: int, rate: float) -> Answer:
    """Whether the cause comes back at the rate of `rate` (0..1), as far as `hits` of `n` answers tell.

    This is Wald's sequential probability ratio test ("Sequential Tests of Statistical Hypotheses", Annals of
    Mathematical Statistics 16, 1945). The rate is taken as high enough (H1: `rate`) or as too low (H0: `rate / 2`),
    each with a chance of about `ALPHA` to be wrong at those rates. Between them either answer is acceptable: a rate
    that is only just too low costs hundreds of answers to tell.
    """
    bound = math.log((1 - ALPHA) / ALPHA)
    misses = n - hits
    if misses and rate >= 1:
        return "no"
    evidence = hits * math.log(2) + (misses * math.log((1 - rate) / (1 - rate / 2)) if misses else 0.0)
    return "yes" if evidence >= bound else "no" if evidence <= -bound else "open"


def fewest(hits: int, n: int, rate: float) -> int:
    """How many more answers can decide, at best."""
    for more in range(1, MOST + 1):
        if decide(hits + more, n + more, rate) != "open" or decide(hits, n + more, rate) != "open":
            return more
    return 1


T = TypeVar("T")


def smallest(parts: Sequence[T], holds: Callable[[Sequence[T]], bool]) -> list[T]:
    """A small selection of `parts`, in their order, for which `holds` is true. It is true of `parts` as a whole.

    `holds` is asked for the empty selection first. Equal questions may come again: the caller remembers answers.

    For independent parts a search by halves finds the k parts out of n that matter with about k log2(n) questions (U.
    Junker, "QuickXplain: Preferred Explanations and Relaxations for Over-Constrained Problems", AAAI 2004, is the same
    idea for constraints; Zeller's ddmin needs up to k^2 + 3n). Nothing is assumed about parts that need one another:
    what is given always holds, and the check at the end takes out what can still go.
    """
    chosen: list[int] = []
    remaining = len(parts)
    # What is behind the last part that matters is not needed, so only the parts before it are looked at next.
    while remaining and not holds(_chosen(parts, 0, chosen)):
        # Of the first `left` parts `least` are not enough, and `enough` are.
        least, enough = 0, remaining
        while enough - least > 1:
            middle = (least + enough) // 2
            if holds(_chosen(parts, middle, chosen)):
                enough = middle
            else:
                least = middle
        chosen.append(enough - 1)
        remaining = enough - 1
    return _chosen(parts, 0, chosen)


def _chosen(parts: Sequence[T], first: int, numbers: Sequence[int]) -> list[T]:
    """The first parts, and those known to matter."""
    return [*parts[:first], *(parts[number] for number in sorted(numbers))]
