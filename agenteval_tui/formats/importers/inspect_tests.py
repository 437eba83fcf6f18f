"""The samples of an Inspect log as tests of a suite."""

from __future__ import annotations

from typing import Any

from agenteval_tui.formats.importers.inspect_log import SOURCE, recordings
from agenteval_tui.formats.importers.message_formats import plain_text
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.importers.suite_import import LARGEST, FoundTests, checked, literal_prompt, needs_manual_work
from agenteval_tui.formats.stream.source import Source


def tests(source: Source) -> FoundTests:
    """A test for each sample: its input, its target as expected value, and a criterion for each scorer."""
    found = FoundTests(name=source.path.stem)
    seen: set[str] = set()
    for one in recordings(source):
        if not isinstance(one, Recording):
            if one.counts:
                found.skipped.append(f"{one.place}: {one.reason}" if one.place else one.reason)
            continue
        if one.test_id in seen or len(seen) > LARGEST:
            continue  # another epoch of the same sample
        seen.add(one.test_id)
        if not one.prompt.strip():
            found.skipped.append(f"{one.test_name}: its input is no text")
            continue
        found.tests.append(_test(one))
    found.note("solvers, tools and system messages are not translated: they belong to the agent")
    return found


def _test(one: Recording) -> dict[str, Any]:
    expected = one.variables.get("expected_value")
    scorers = [result.criterion.removeprefix(f"{SOURCE} ") for result in one.results] or ["as expected"]
    criteria = []
    for scorer in scorers:
        criterion = _criterion(scorer, expected)
        if expected is not None:
            criterion["expected_value"] = plain_text(expected)
        criteria.append(criterion)
    return {"id": one.test_id, "name": one.test_name, **literal_prompt(one.prompt), "criteria": criteria}


def _criterion(scorer: str, expected: Any) -> dict[str, Any]:
    """Inspect's own text scorers ignore case; what its options were is not looked at."""
    targets = [plain_text(target) for target in expected] if isinstance(expected, list) else [plain_text(expected)]
    if len(targets) == 1 and targets[0]:
        if scorer == "includes":
            return checked(scorer, {"type": "TextMatch", "contains_ignore_case": targets[0]})
        if scorer == "exact":
            return checked(scorer, {"type": "TextMatch", "equals_ignore_case": targets[0]})
        if scorer in ("model_graded_qa", "model_graded_fact"):
            criteria = "The answer agrees with the reference."
            return checked(scorer, {"type": "Judge", "criteria": criteria, "reference": targets[0]})
    return needs_manual_work(scorer, f"Inspect's scorer {scorer}, target {' or '.join(targets)[:300]}")
