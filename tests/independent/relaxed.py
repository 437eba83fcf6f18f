"""Every relaxation that is proposed passes when it is applied: for the program, and for the second readings."""

from __future__ import annotations

import random
from typing import Any

import text_match
import tool_check
import verdicts
from tally import Tally

from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.relax.suggest import relaxations
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.uxon.parse import parse


def compare(count: int, seed: int) -> Tally:
    """At least so many proposals for criteria that fail."""
    dice, tally = random.Random(seed), Tally()
    while tally.cases < count:
        (config, text), (tools, calls) = text_match.case(dice), tool_check.case(dice)
        metrics: list[dict[str, Any]] = [{"type": "TextMatch", **config}, {"type": "ToolCheck", **tools}]
        metrics = dice.choice([metrics, metrics[:1], metrics[1:]])
        spec = CriterionSpec("it", "TextResponse", {"metrics": metrics})
        transcript = tool_check.transcript_of(calls, text)
        for one in relaxations(spec, transcript):
            edited = CriterionSpec("it", "TextResponse", one.new_text)
            result = Checker(edited).check(transcript)
            read = verdicts.of_criterion(
                {"metrics": parse(one.new_text).value["metrics"], "pass_threshold": None, "negate": False}, text, calls
            )
            tally.same(
                one.edits.apply(spec.config_text) == one.new_text
                and (result.outcome.value, result.neutral) == ("passed", False)
                and read[0] == "passed"
                and read[1] is not None,
                metrics,
                text,
                calls,
                one.new_text,
                result.outcome.value,
                read,
            )
    return tally
