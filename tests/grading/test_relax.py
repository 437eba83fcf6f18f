"""Smallest relaxations: what is proposed makes the criterion pass, keeps what it can, and is in the right order."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.relax.suggest import Relaxation, relaxations
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.uxon.parse import parse

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def answer(text: str, *made: tuple[str, Any]) -> Transcript:
    calls = tuple(ToolCall(f"c{n}", name, arguments, message=0) for n, (name, arguments) in enumerate(made))
    messages = (Message("assistant", text, tool_calls=tuple(range(len(made)))),)
    return Transcript(messages, calls, final_output=text)


def relaxed(transcript: Transcript, config: Any, prototype: str = "TextResponse", **more: Any) -> list[Relaxation]:
    """The proposals, each of which is seen to make the criterion pass."""
    variables = more.pop("variables", {})
    spec = CriterionSpec("it", prototype, config, **more)
    found = list(relaxations(spec, transcript, variables))
    assert [one.cost for one in found] == sorted(one.cost for one in found)
    for one in found:
        assert one.edits.apply(spec.config_text) == one.new_text
        edited = CriterionSpec("it", prototype, one.new_text, **more)
        result = compile_criterion(edited).check(transcript, variables)
        assert result.outcome is Outcome.PASSED, one
        assert not result.neutral
        assert one.title == "; ".join(one.steps)
    return found


def text(transcript: str, **metric: Any) -> list[Relaxation]:
    return relaxed(answer(transcript), {"metrics": [{"type": "TextMatch", **metric}]})


def tools(transcript: Transcript, **metric: Any) -> list[Relaxation]:
    return relaxed(transcript, {"metrics": [{"type": "ToolCheck", **metric}]}, "ToolResponse")


def metric_of(one: Relaxation) -> dict[str, Any]:
    found: dict[str, Any] = parse(one.new_text).value["metrics"][0]
    return {key: value for key, value in found.items() if key != "type"}


@pytest.mark.parametrize(
    ("said", "metric", "best"),
    [
        ("It has SHIPPED.", {"contains": "shipped"}, {"contains_ignore_case": "shipped"}),
        ("It is 5.000 €", {"contains": "5000"}, {"contains_any": ["5000", "5.000"]}),
        ("YES", {"equals": "yes"}, {"equals_ignore_case": "yes"}),
        ("It is yes.", {"equals": "yes"}, {"contains": "yes"}),
        ("So: yes", {"starts_with": "yes"}, {"contains": "yes"}),
        ("a B", {"contains_all": ["a", "b"]}, {"contains_all": ["a"], "contains_ignore_case": "b"}),
        ("only a", {"contains_all": ["a", "zebra"]}, {"contains_all": ["a"]}),
        ("Berlin", {"contains_any": ["berlin", "zebra"]}, {"contains_any": ["berlin", "zebra", "Berlin"]}),
        ("a bad word", {"contains": "a", "not_contains_any": ["bad"]}, {"contains": "a"}),
        ("fine", {"equals_ignore_case": "Fin"}, {"contains_ignore_case": "Fin"}),
    ],
)
def test_the_best_for_a_text(said: str, metric: dict[str, Any], best: dict[str, Any]) -> None:
    assert metric_of(text(said, **metric)[0]) == best


def test_several_in_another_case() -> None:
    config = {"metrics": [{"type": "TextMatch", "contains_all": ["Standard", "Express"]}]}
    best = relaxed(answer("by standard or express"), config)[0]
    first, second = parse(best.new_text).value["metrics"]
    assert first["type"] == second["type"] == "TextMatch"
    assert {first["contains_ignore_case"], second["contains_ignore_case"]} == {"Standard", "Express"}
    assert "contains_all" not in best.new_text


def test_one_of_a_list_is_enough() -> None:
    found = [metric_of(one) for one in text("alpha", contains_all=["alpha", "beta", "gamma"])]
    assert {"contains_any": ["alpha", "beta", "gamma"]} in found
    assert {"contains_all": ["alpha"]} in found
    assert found.index({"contains_any": ["alpha", "beta", "gamma"]}) < found.index({"contains_all": ["alpha"]})


GET = ("get_order", {"order_id": "#W1"})


@pytest.mark.parametrize(
    ("made", "metric", "best"),
    [
        ([GET] * 3, {"tools": [{"name": "get_order", "max_calls": 2}]}, {"max_calls": 3}),
        ([GET], {"tools": [{"name": "get_order", "min_calls": 3}]}, {"min_calls": 1}),
        (
            [("f", {"a": 1, "b": 2})],
            {"tools": [{"name": "f", "arguments": {"a": 1}}]},
            {"allow_additional_arguments": True},
        ),
        (
            [("f", {"city": "berlin"})],
            {"tools": [{"name": "f", "arguments": {"city": "Berlin"}}]},
            {"arguments": {"city": {"$ignore_case": "Berlin"}}},
        ),
        (
            [("f", {"sql": "SELECT 1; --x"})],
            {"tools": [{"name": "f", "arguments": {"sql": "SELECT 1"}}]},
            {"arguments": {"sql": {"$contains": "SELECT 1"}}},
        ),
        (
            [("f", {"id": 7})],
            {"tools": [{"name": "f", "arguments": {"id": "7"}}]},
            {"arguments": {"id": {"$one_of": ["7", 7]}}},
        ),
        (
            [("f", {"where": {"id": 2, "x": "y"}})],
            {"tools": [{"name": "f", "arguments": {"where": {"id": 1, "x": "y"}}}]},
            {"arguments": {"where": {"id": {"$one_of": [1, 2]}, "x": "y"}}},
        ),
        (
            [("f", {"n": 3})],
            {"tools": [{"name": "f", "arguments": {"n": {"$gte": 5}}}]},
            {"arguments": {"n": {"$gte": 3}}},
        ),
        (
            [("f", {"n": 5})],
            {"tools": [{"name": "f", "arguments": {"n": {"$gt": 5}}}]},
            {"arguments": {"n": {"$gte": 5}}},
        ),
        (
            [("f", {"a": "z"})],
            {"tools": [{"name": "f", "arguments": [{"a": "x"}, {"a": "y"}]}]},
            {"arguments": [{"a": "x"}, {"a": "y"}, {"a": "z"}]},
        ),
        ([("f", {})], {"tools": [{"name": "f", "arguments": {"a": 1}}]}, {"arguments": {}}),
        ([("get_orders", {})], {"tools": [{"name": "get_order"}]}, {"name": "get_orders"}),
        (
            [("other", {})],
            {"tools": [{"name": "get_order"}], "forbidden_tools": ["drop_table"]},
            {"required": False},
        ),
    ],
)
def test_the_best_for_tools(made: list[Any], metric: dict[str, Any], best: dict[str, Any]) -> None:
    (tool,) = metric_of(tools(answer("", *made), **metric)[0])["tools"]
    assert {key: tool[key] for key in best} == best


def test_what_validate_would_complain_about_is_not_offered() -> None:
    # Without `required` nothing would be left that can fail.
    assert tools(answer("", ("other", {})), tools=[{"name": "get_order"}]) == []


def test_what_is_forbidden_is_allowed_last() -> None:
    found = tools(answer("", GET, ("drop", {})), tools=[{"name": "get_order"}], forbidden_tools=["drop", "delete"])
    assert metric_of(found[-1])["forbidden_tools"] == ["delete"]
    assert found[-1].cost > 10
    both = tools(answer("", GET, GET), tools=[{"name": "get_order", "max_calls": 1}], forbidden_tools=["get_order"])
    assert all(one.cost > 10 for one in both)


def test_several_conditions_at_once() -> None:
    found = relaxed(
        answer("It has SHIPPED today", GET, GET, ("track", {"id": "x1", "verbose": True})),
        {
            "metrics": [
                {"type": "TextMatch", "contains": "shipped", "contains_all": ["today", "thanks"]},
                {
                    "type": "ToolCheck",
                    "tools": [
                        {"name": "get_order", "max_calls": 1},
                        {"name": "track", "arguments": {"id": "X1"}},
                    ],
                },
            ]
        },
    )
    assert len(found[0].steps) == 5
    value = parse(found[0].new_text).value["metrics"]
    assert value[0] == {"type": "TextMatch", "contains_ignore_case": "shipped", "contains_all": ["today"]}
    assert value[1]["tools"] == [
        {"name": "get_order", "max_calls": 2},
        {"name": "track", "arguments": {"id": {"$ignore_case": "X1"}}, "allow_additional_arguments": True},
    ]


def test_comments_stay() -> None:
    config = """\
{
  // the first block
  "metrics": [
    {
      "type": "ToolCheck",
      "tools": [
        {
          "name": "describe", // by its name
          /* once */ "max_calls": 1,
          "arguments": {"table": "Customers"} // as it is called
        }
      ]
    }
  ]
}
"""
    transcript = answer("", ("describe", {"table": "customers"}), ("describe", {"table": "customers"}))
    best = relaxed(transcript, config, "ToolResponse")[0]
    assert best.new_text == config.replace('"max_calls": 1', '"max_calls": 2').replace(
        '"Customers"', '{"$ignore_case": "Customers"}'
    )
    assert len(best.edits.edits) == 2


@pytest.mark.parametrize(
    ("pattern", "flags", "best"),
    [
        ("^Total: 3$", None, "m"),
        ("Order.+Total", None, "s"),
        ("^total: 3$", None, "im"),
        ("^total: 3$", "i", "im"),
        ("/^Total: 3$/", None, "m"),
        ("/^total: 3$/i", None, "m"),
        ("^order.+^total", None, "ims"),
    ],
)
def test_a_pattern_gets_the_flags_that_it_lacks(pattern: str, flags: str | None, best: str) -> None:
    metric = {"type": "Regex", "pattern": pattern, **({"flags": flags} if flags else {})}
    found = relaxed(answer("Order #1\nTotal: 3\nBye"), {"metrics": [metric]})
    assert metric_of(found[0])["flags"] == best


@pytest.mark.parametrize(
    ("path", "best"),
    [("order.itmes", "order.items"), ("ordr.itmes[0].prise", "order.items[0].price"), ("Order", "order")],
)
def test_the_path_that_the_evidence_names_is_offered_first(path: str, best: str) -> None:
    config = {"extract_path": path, "metrics": [{"type": "TextMatch", "contains": "5"}]}
    reply = json.dumps({"order": {"items": [{"price": 5}]}, "total": 5})
    found = relaxed(answer(reply), config, "JsonResponse")
    assert parse(found[0].new_text).value == {**config, "extract_path": best}


@pytest.mark.parametrize("reply", ['Here it is: {"id": 1}.', 'Here it is:\n```json\n{"id": 1}\n```\nBye'])
def test_json_within_a_text_is_offered(reply: str) -> None:
    found = relaxed(answer(reply), {"metrics": [{"type": "Json", "required_keys": ["id"]}]})
    assert metric_of(found[0]) == {"required_keys": ["id"], "anywhere": True}


def test_a_required_key_gets_the_name_that_is_there() -> None:
    reply = json.dumps({"order": {"items": [], "total": 1}})
    found = relaxed(answer(reply), {"metrics": [{"type": "Json", "required_keys": ["order.itmes", "order.total"]}]})
    assert metric_of(found[0]) == {"required_keys": ["order.items", "order.total"]}


@pytest.mark.parametrize(
    ("metric", "best"),
    [
        ({"type": "Length", "max_words": 2}, {"max_words": 5}),
        ({"type": "Length", "min_chars": 900, "max_words": 50}, {"min_chars": 25}),
        ({"type": "Steps", "max": 1}, {"max": 2}),
        ({"type": "Keywords", "keywords": ["shipped", "zebra"]}, {"min_fraction": 0.5}),
        ({"type": "Regex", "pattern": "IT HAS"}, {"flags": "i"}),
        ({"type": "Lexical", "to": "It was shipped to Berlin", "min": 0.99}, {"min": 0.93}),
        ({"type": "Trajectory", "mode": "strict", "calls": [{"name": "g"}]}, {"mode": "superset"}),
    ],
)
def test_other_metrics(metric: dict[str, Any], best: dict[str, Any]) -> None:
    transcript = answer("It has shipped to Berlin.", ("f", {}), ("g", {}))
    found = relaxed(transcript, {"metrics": [metric, {"type": "TextMatch", "contains": "Berlin"}]})
    assert metric_of(found[0]) == {key: item for key, item in {**metric, **best}.items() if key != "type"}
    # The metric as a whole may go as well, but not only what it looks at.
    assert all(len(metric_of(one)) > 0 for one in found)
    assert parse(found[-1].new_text).value == {"metrics": [{"type": "TextMatch", "contains": "Berlin"}]}


def test_the_extraction_is_relaxed_too() -> None:
    said = "Here:\n```sql\nSELECT 1\n```\nor\n```\nDELETE\n```"
    config = {"extract_code_block": 1, "metrics": [{"type": "TextMatch", "starts_with": "SELECT"}]}
    best = relaxed(answer(said), config)[0]
    assert parse(best.new_text).value["code_language"] == "sql"
    config = {"extract_code_block": 3, "metrics": [{"type": "TextMatch", "contains": "delete"}]}
    found = relaxed(answer(said), config)
    assert parse(found[0].new_text).value == {
        "extract_code_block": 2,
        "metrics": [{"type": "TextMatch", "contains_ignore_case": "delete"}],
    }
    nothing = {"extract_by_regex": "/Total: (\\d+)/", "metrics": [{"type": "TextMatch", "contains": "SELECT"}]}
    assert "extract_by_regex" not in parse(relaxed(answer(said), nothing)[0].new_text).value


def test_placeholders_stay() -> None:
    config = {"metrics": [{"type": "TextMatch", "contains": "{{expected_value}} in {{city}}"}]}
    found = relaxed(answer("FIVE IN BONN"), config, expected_value="five", variables={"city": "Bonn"})
    assert metric_of(found[0]) == {"contains_ignore_case": "{{expected_value}} in {{city}}"}
    arguments = {"metrics": [{"type": "ToolCheck", "tools": [{"name": "f", "arguments": {"c": "{{city}}"}}]}]}
    found = relaxed(answer("", ("f", {"c": "bonn"})), arguments, "ToolResponse", variables={"city": "Bonn"})
    assert metric_of(found[0])["tools"][0]["arguments"] == {"c": {"$ignore_case": "{{city}}"}}


def test_a_threshold_needs_fewer_edits() -> None:
    config = {"metrics": [{"type": "TextMatch", "contains": "a", "starts_with": "b", "ends_with": "Z"}]}
    found = relaxed(answer("a z"), config, pass_threshold=0.6)
    assert len(found[0].steps) == 1


def test_a_negated_criterion_is_made_stricter() -> None:
    config = {"metrics": [{"type": "TextMatch", "contains_any": ["sorry", "cannot"]}]}
    found = relaxed(answer("sorry, here it is"), config, negate=True)
    assert metric_of(found[0]) == {"contains_any": ["cannot"]}


def test_nothing_where_there_is_nothing_to_relax() -> None:
    assert text("a", contains="a") == []
    assert relaxed(answer("a"), '{"metrics": [{"type": "TextMatch", "contains": ') == []
    assert relaxed(answer("a"), {"metrics": [{"type": "Nothing"}]}) == []
    assert relaxed(answer("a"), {"metrics": []}) == []
    # The only condition cannot be dropped: the criterion would check nothing.
    assert all(metric_of(one) for one in text("abc", contains="zebra crossing"))


def test_dozens_of_conditions_stay_bounded() -> None:
    found = text("alpha", contains_all=["alpha", *(f"word number {n}" for n in range(30))])
    assert found
    assert metric_of(found[0])["contains_any"][0] == "alpha"
    many = tools(
        answer("", *[(f"t{n}", {"a": n, "b": 1}) for n in range(12)]),
        tools=[{"name": f"t{n}", "arguments": {"a": str(n)}} for n in range(12)],
    )
    assert len(many[0].steps) == 24


WORDS = st.sampled_from(["alpha", "Alpha", "beta", "a b", "5.000", "5000", "{{x}}", ""])
METRIC = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("TextMatch")},
        optional={
            "contains": WORDS,
            "contains_all": st.lists(WORDS, max_size=3),
            "not_contains_any": st.lists(WORDS, max_size=2),
            "starts_with": WORDS,
            "equals": WORDS,
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("ToolCheck")},
        optional={
            "tools": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["f", "g"])},
                    optional={
                        "required": st.booleans(),
                        "min_calls": st.integers(0, 3),
                        "max_calls": st.integers(0, 3),
                        "arguments": st.dictionaries(
                            st.sampled_from(["a", "b"]), st.one_of(WORDS, st.integers(0, 3), st.just({"$gte": 2}))
                        ),
                        "allow_additional_arguments": st.booleans(),
                    },
                ),
                max_size=3,
            ),
            "forbidden_tools": st.lists(st.sampled_from(["f", "g", ""]), max_size=2),
            "tool_call_forbidden": st.booleans(),
        },
    ),
)
CALLS = st.lists(
    st.tuples(
        st.sampled_from(["f", "g", "ff"]),
        st.dictionaries(st.sampled_from(["a", "b", "c"]), st.one_of(WORDS, st.integers(0, 4), st.none())),
    ),
    max_size=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(METRIC, max_size=2), st.lists(WORDS, max_size=4).map(" ".join), CALLS)
@example(metrics=[{"type": "ToolCheck", "forbidden_tools": ["f"]}], said="", made=[("f", {})])
def test_whatever_is_proposed_passes(metrics: list[Any], said: str, made: list[Any]) -> None:
    relaxed(answer(said, *made), {"metrics": metrics}, variables={"x": "beta"})


@pytest.mark.skipif(not SHARED.is_dir(), reason="recordings beside the project are not here")
def test_on_recordings_a_run_is_made_to_pass_with_the_expectation_of_another() -> None:
    data = json.loads((SHARED / "data" / "tau_bench" / "gpt-4o-airline-tasks-00-24.json").read_text("utf-8"))
    transcripts = [from_openai_messages(one["traj"]) for one in data[:12]]
    proposed = 0
    for left, right in pairwise(transcripts):
        wanted = [
            {"name": call.name, "arguments": call.arguments}
            for call in left.tool_calls[:3]
            if isinstance(call.arguments, dict)
        ]
        spec = CriterionSpec("it", "ToolResponse", {"metrics": [{"type": "ToolCheck", "tools": wanted}]})
        if wanted and compile_criterion(spec).check(right).outcome is Outcome.FAILED:
            proposed += bool(tools(right, tools=wanted))
    assert proposed >= 8


@pytest.mark.parametrize(
    ("expected", "given", "best"),
    [
        ({"id": "#W1"}, {"id": "#w1"}, {"id": {"$ignore_case": "#W1"}}),
        ({"id": "#W1", "n": 1}, {"id": "W1", "n": 1}, {"id": {"$one_of": ["#W1", "W1"]}, "n": 1}),
        ({"id": "#W1"}, {"id": "#W1", "by": "me"}, {"id": "#W1", "by": {"$any": True}}),
    ],
)
def test_an_argument_of_a_trajectory_is_relaxed(
    expected: dict[str, Any], given: dict[str, Any], best: dict[str, Any]
) -> None:
    metric = {"type": "Trajectory", "calls": [{"name": "get_order", "arguments": expected}]}
    found = relaxed(answer("", ("get_order", given)), {"metrics": [metric]}, "ToolResponse")
    changed = [metric_of(one).get("calls") for one in found]
    assert [{"name": "get_order", "arguments": best}] in changed
    assert all(one.new_text for one in found)
    if "by" not in given:
        # A recording is what it is: nothing in it is widened.
        call = {"type": "function", "id": "1", "function": {"name": "get_order", "arguments": '{"id": "#W1"}'}}
        recorded = {"type": "Trajectory", "reference": [{"role": "assistant", "tool_calls": [call]}]}
        modes = relaxed(answer("", ("get_order", given)), {"metrics": [recorded]}, "ToolResponse")
        assert all("calls" not in metric_of(one) for one in modes)


@pytest.mark.parametrize(
    ("ids", "title", "arguments"),
    [
        ([1, 2], "expect the calls of get in one entry", [{"id": 1}, {"id": 2}]),
        (
            [1, 9],
            "expect the calls of get in one entry, also accept 9 as id",
            [{"id": 1}, {"id": 2}, {"id": 9}],
        ),
    ],
)
def test_several_entries_of_a_tool_become_one(ids: list[int], title: str, arguments: list[dict[str, int]]) -> None:
    entries = [{"name": "get", "arguments": {"id": 1}}, {"name": "get", "arguments": {"id": 2}}]
    config = {"metrics": [{"type": "ToolCheck", "tools": entries}]}
    first = relaxed(answer("", *(("get", {"id": number}) for number in ids)), config, "ToolResponse")[0]
    assert first.title == title
    (tool,) = parse(first.new_text).value["metrics"][0]["tools"]
    assert tool == {"name": "get", "arguments": arguments, "min_calls": 2}


def test_entries_that_bound_the_calls_stay_apart() -> None:
    entries = [{"name": "get", "arguments": {"id": 1}, "max_calls": 3}, {"name": "get", "arguments": {"id": 2}}]
    config = {"metrics": [{"type": "ToolCheck", "tools": entries}]}
    found = relaxed(answer("", ("get", {"id": 1}), ("get", {"id": 2})), config, "ToolResponse")
    assert found
    assert not any("in one entry" in one.title for one in found)
