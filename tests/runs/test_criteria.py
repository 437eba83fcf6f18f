"""Criteria on their way from the file to grading and the store."""

from __future__ import annotations

import json

from agenteval_tui.runs.criteria import spec_from_dict, spec_of, spec_to_dict
from agenteval_tui.suites.model import Criterion

CRITERION = Criterion(
    name="The right filter",
    description="why",
    expected_value="x",
    weight=2.0,
    severity="warning",
    negate=True,
    pass_threshold=0.5,
    prototype_class="TextResponse",
    config_uxon='{"metrics": [] /* none */}',
)


def test_a_spec_says_what_the_criterion_says() -> None:
    spec = spec_of(CRITERION)
    assert (spec.name, spec.prototype_class, spec.config) == (CRITERION.name, "TextResponse", CRITERION.config_uxon)
    assert (spec.description, spec.expected_value, spec.weight) == ("why", "x", 2.0)
    assert (spec.severity, spec.negate, spec.pass_threshold) == ("warning", True, 0.5)


def test_a_stored_spec_is_read_back_with_the_same_hash() -> None:
    for config in (CRITERION.config_uxon, {"metrics": [{"type": "TextMatch", "equals": "a"}]}, "{broken"):
        spec = spec_of(CRITERION.model_copy(update={"config_uxon": config}))
        stored = json.loads(json.dumps(spec_to_dict(spec)))
        assert stored["hash"] == spec.hash
        assert spec_to_dict(spec_from_dict(stored)) == stored
