"""The pages in docs/metrics: made from the models, up to date, and their examples do what they say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.config.schema import object_type
from agenteval_tui.grading.registry import metric, metric_names, prototype, prototype_names
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.sentences import criterion_sentence, metric_sentence

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics"


def _make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_metrics_make", DOCS / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = _make()
BUILT_IN = [name for name in metric_names() if metric(name).__module__.startswith("agenteval_tui.")]


def test_pages_are_up_to_date() -> None:
    made = make.pages()
    there = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    stale = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
    assert not stale, f"run python docs/metrics/make.py: {', '.join(stale)}"
    assert made.keys() == {f"{name}.md" for name in BUILT_IN} | {"README.md"}


@pytest.mark.parametrize("name", BUILT_IN)
def test_examples_pass_and_fail_as_they_say(name: str) -> None:
    example = make.example_of(name)
    assert not diagnose(example["config"], example.get("prototype_class", "TextResponse"))
    passed, failed = make.run(name, "passes"), make.run(name, "fails")
    assert (passed.outcome, failed.outcome) == (Outcome.PASSED, Outcome.FAILED), (
        criterion_sentence(passed),
        criterion_sentence(failed),
    )
    assert name in {one.type for one in failed.metrics if one.outcome is Outcome.FAILED}
    assert all(one.evidence and metric_sentence(one) for one in failed.metrics if one.outcome is Outcome.FAILED)


@pytest.mark.parametrize("model", [metric(name) for name in BUILT_IN] + [prototype(name) for name in prototype_names()])
def test_everything_has_words(model: type) -> None:
    kind = object_type(model)
    assert len(kind.doc) > 30
    for one in kind.properties:
        assert one.doc.endswith((".", "`", ")")), f"{kind.name}.{one.name}: {one.doc!r}"
