"""Why a run did not pass, as lines of the command line: the same facts that the screens show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agenteval_tui.cli.output import Output, Style
from agenteval_tui.grading.explain import Fact, explain
from agenteval_tui.grading.results import CriterionResult, Outcome
from agenteval_tui.text.display import one_line

_SIGNS = {"passed": "✓", "failed": "✗", "error": "!", "info": "·", "near": "≈"}
_STYLES: dict[str, Style] = {"passed": "good", "failed": "bad", "error": "broken", "info": "dim", "near": "warn"}
_LONGEST = 400


def print_failures(out: Output, results: Sequence[CriterionResult], indent: int) -> None:
    """What did not pass: criterion, what was expected, what was found, the nearest miss. Nothing of what passed."""
    missed = [one for one in results if one.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    print_facts(out, (_without_passed(fact) for fact in explain(missed)), indent)


def print_facts(out: Output, facts: Iterable[Fact], indent: int) -> None:
    """A tree of facts, a line each."""
    for depth, fact in _flat(facts, 0):
        text = one_line(fact.text, _LONGEST)
        out.line(" " * (indent + 2 * depth), (_SIGNS[fact.mark], _STYLES[fact.mark]), f" {text}")


def _without_passed(fact: Fact) -> Fact:
    return replace(fact, children=tuple(_without_passed(one) for one in fact.children if one.mark != "passed"))


def _flat(facts: Iterable[Fact], depth: int) -> Iterator[tuple[int, Fact]]:
    for fact in facts:
        yield depth, fact
        yield from _flat(fact.children, depth + 1)
