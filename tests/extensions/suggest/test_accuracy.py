"""What docs/suggest.md publishes, on a part of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import agenteval_tui as agenteval
from agenteval_tui.extensions.suggest.examples import Example
from benchmarks.accuracy import suggest


def test_a_hidden_criterion_of_a_sample_is_found_again(tmp_path: Path) -> None:
    found = {
        "id": "return-window",
        "prompt": "How many days do I have to return headphones?",
        "criteria": [
            {
                "name": "Fourteen days",
                "prototype_class": "TextResponse",
                "config_uxon": {
                    "metrics": [{"type": "TextMatch", "contains": "14 days", "not_contains_any": ["30 days"]}]
                },
            }
        ],
    }
    suite = {"name": "S", "agents": {"shop": {"kind": "demo", "pace": 0}}, "agent": "shop", "tests": [found]}
    runs = agenteval.run(suite, repeat=40, db=tmp_path / "h.db")
    hidden = suggest.hidden(
        "it", [Example(run.id, run.transcript, {}, run.passed) for run in runs], rounds=1, labels=suggest.LABELS
    )
    assert hidden.agreement >= 0.9 > hidden.plain


@pytest.mark.shared
def test_recorded_checks_are_found_again(shared: Path) -> None:
    rows = suggest.ifeval_rows(shared / "data/ifeval/results_strict_half.jsonl")
    kinds = ("punctuation:no_comma", "startend:quotation")
    found = {one.name: one for one in suggest.recorded_kinds(rows, rounds=1, only=kinds)}
    assert set(found) == set(kinds)
    for one in found.values():
        assert one.agreement >= 0.85
        assert one.agreement > one.plain
