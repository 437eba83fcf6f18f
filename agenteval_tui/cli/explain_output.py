"""Why a run did not pass, as lines of the command line: the same facts that the screens show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agenteval_tui.cli.output import Output, Style
from agenteval_tui.grading.explain import SIGNS, Fact, explain, flat, on_one_line
from agenteval_tui.grading.results import CriterionResult, Outcome

_STYLES: dict[str, Style] = {"passed": "good", "failed": "bad", "error": "broken", "info": "dim", "near": "warn"}
_LONGEST = 400


def print_failures(out: Output, results: Sequence[CriterionResult], indent: int) -> None:
    """What did not pass: criterion, what was expected, what was found, the nearest miss. Nothing of what passed."""
    missed = [one for one in results if one.outcome not in (Outcome.PASSED, Outcome.SKIPPED)]
    print_facts(out, (_without_passed(fact) for fact in explain(missed)), indent)


def print_facts(out: Output, facts: Iterable[Fact], indent: int, *, longest: int | None = _LONGEST) -> None:
    """A tree of facts, a line each, cut to `longest` characters."""
    for depth, fact in flat(facts):
        text = on_one_line(fact.text)
        if longest is not None and len(text) > longest:
            text = text[: longest - 1] + "…"
        out.line(" " * (indent + 2 * depth), (SIGNS[fact.mark], _STYLES[fact.mark]), f" {text}")


def _without_passed(fact: Fact) -> Fact:
    return replace(fact, children=tuple(_without_passed(one) for one in fact.children if one.mark != "passed"))
