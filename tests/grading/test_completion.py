"""Completion and hover with the real models: every prototype class and metric, and facts of recordings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.grading import registry
from agenteval_tui.grading.config.completion import complete_config, hover_config, prepare
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.config.schema import config_schema, metric_schema
from agenteval_tui.grading.observed_tools import AgentFacts, ArgumentFacts, ToolFacts
from agenteval_tui.uxon.name_source import Facts
from agenteval_tui.uxon.parse import parse


class Seen:
    """Facts as a recording gives them."""

    def tools(self) -> Sequence[str]:
        return ("get_order", "search")

    def arguments(self, tool: str) -> Sequence[str]:
        return ("order_id",) if tool == "get_order" else ()

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        return ("#W1",)

    def texts(self) -> Sequence[str]:
        return ("on its way",)


def labels(marked: str, prototype_class: str = "TextResponse") -> list[str]:
    text, offset = marked.replace("|", ""), marked.index("|")
    return [one.label for one in complete_config(text, offset, prototype_class, Seen())]


def test_every_metric_is_offered_with_what_its_docstring_says() -> None:
    text = '{"metrics": [{"type": ""}]}'
    items = complete_config(text, text.index('""') + 1, "TextResponse")
    assert sorted(one.label for one in items) == sorted(metric_schema().variants.options)  # type: ignore[union-attr]
    assert {"TextMatch", "ToolCheck"} <= {one.label for one in items}
    assert all(one.detail for one in items)


@pytest.mark.parametrize("name", sorted(registry.prototype_names()))
def test_the_properties_of_every_prototype_class_are_offered(name: str) -> None:
    offered = labels("{|}", name)
    assert set(offered) == {prop.name for prop in config_schema(name).properties}
    for label in offered:
        text = f'{{"{label}": 1}}'
        hovered = hover_config(text, 2, name)
        assert hovered is not None
        assert hovered.title == label
        assert hovered.doc


@pytest.mark.parametrize("name", sorted(registry.metric_names()))
def test_the_properties_of_every_metric_are_offered_and_written_as_the_metric_wants_them(name: str) -> None:
    text = f'{{"metrics": [{{"type": "{name}", }}]}}'
    offset = text.index(", }") + 2
    items = complete_config(text, offset, "TextResponse")
    assert {"name", "weight"} <= {one.label for one in items}
    assert [one.label for one in items][-2:] == ["name", "weight"]
    for item in items:
        after = item.apply(text)
        assert not parse(after).broken
        wrong = [d for d in diagnose(after, "TextResponse") if d.code in ("wrong-type", "unknown-property", "syntax")]
        assert not wrong, (item.label, after, wrong)


def test_facts_stand_where_they_belong() -> None:
    call = '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", %s}]}]}'
    assert labels('{"metrics": [{"type": "ToolCheck", "tools": [{"name": "|"}]}]}') == ["get_order", "search"]
    assert labels('{"metrics": [{"type": "ToolCheck", "forbidden_tools": ["|"]}]}') == ["get_order", "search"]
    assert labels(call % '"arguments": {|}') == ["order_id"]
    assert labels(call % '"arguments": {"order_id": |}')[:2] == ["#W1", '{"$any": true}']
    assert "$contains" in labels(call % '"arguments": {"order_id": {"|"}}')
    for name in ("equals", "contains", "starts_with"):
        assert labels(f'{{"metrics": [{{"type": "TextMatch", "{name}": "|"}}]}}') == ["on its way"]
    for name in ("contains_all", "not_contains_any", "ends_with_any"):
        assert labels(f'{{"metrics": [{{"type": "TextMatch", "{name}": ["|"]}}]}}') == ["on its way"]
    assert labels('{"extract_by_regex": "|"}') == []


def test_names_of_prototype_classes_as_power_ui_writes_them_and_unknown_ones() -> None:
    assert "extract_by_regex" in labels("{|}", "axenox\\GenAI\\TextResponseTestCriterion.php")
    assert labels("{|}", "NoSuchClass") == []
    assert hover_config('{"metrics": []}', 3, "NoSuchClass") is None


def test_a_matcher_that_is_offered_is_one_that_can_be_used() -> None:
    text = '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "t", "arguments": {"a": }}]}]}'
    items = complete_config(text, text.index("}}]}]}"), "ToolResponse")
    assert len(items) >= 10
    for item in items:
        errors = [d for d in diagnose(item.apply(text), "ToolResponse") if d.severity == "error"]
        assert not errors or item.label == '{"$regex": ""}', item.label  # the pattern is still to be written


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(sorted(registry.metric_names())), st.data())
def test_no_cut_of_a_config_breaks_it(name: str, data: st.DataObject) -> None:
    metric = f'{{"type": "{name}", "weight": 2, "name": "x", "tools": [{{"name": ""}}]}}'
    whole = f'{{"extract_code_block": 1, "metrics": [{metric}]}}'
    text = whole[: data.draw(st.integers(0, len(whole)))]
    offset = data.draw(st.integers(0, len(text)))
    complete_config(text, offset, "TextResponse", Seen())
    hover_config(text, offset, "TextResponse")


def test_what_is_known_of_an_agent_is_such_facts() -> None:
    argument = ArgumentFacts("order_id", 3, {"string": 3}, ("#W1",), choices=("#W2",))
    facts: Facts = AgentFacts(
        1, {"get_order": ToolFacts("get_order", 3, {"order_id": argument})}, ("Refund.\n\nSoon.",)
    )
    for marked, expected in [
        ('{"metrics": [{"type": "ToolCheck", "forbidden_tools": ["|"]}]}', ["get_order"]),
        ('{"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {|}}]}]}', ["order_id"]),
        (
            '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#|"}}]}]}',
            ["#W1", "#W2"],
        ),
        ('{"metrics": [{"type": "TextMatch", "contains_all": ["|"]}]}', ["Refund.", "Soon."]),
    ]:
        items = complete_config(marked.replace("|", ""), marked.index("|"), "TextResponse", facts)
        assert [one.label for one in items] == expected


def test_prepared_is_loaded() -> None:
    prepare()
    variants = metric_schema().variants
    assert variants is not None
    assert all(variants.options[name].properties for name in variants.options)
    with pytest.raises(KeyError):
        variants.options["NoSuchMetric"]
