"""Completion: what is offered where, how it is written, and that no text and no offset breaks it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.uxon.complete import MOST_ITEMS, Completion, complete
from agenteval_tui.uxon.hover import Hover, hover
from agenteval_tui.uxon.name_source import ANSWER_TEXT, TOOL_ARGUMENTS, TOOL_NAME
from agenteval_tui.uxon.parse import parse
from agenteval_tui.uxon.schema import ArrayType, MapType, ObjectType, Property, ScalarType, UnionType, Variants

STRING = ScalarType("string")
ANY = ScalarType("any")
TEXT_MATCH = ObjectType(
    "TextMatch",
    "Compares the text. In many ways.",
    (
        Property("equals", STRING, doc="The whole text.", facts=ANSWER_TEXT),
        Property("contains", STRING, doc="A part of it.", facts=ANSWER_TEXT),
        Property("contains_all", ArrayType(STRING), doc="All of these.", facts=ANSWER_TEXT),
        Property("not_contains_any", ArrayType(STRING)),
    ),
)
TOOL = ObjectType(
    "Tool",
    "One tool.",
    (
        Property("name", STRING, required=True, facts=TOOL_NAME),
        Property("min_calls", ScalarType("integer", minimum=0)),
        Property(
            "arguments",
            UnionType((MapType(ANY), ArrayType(MapType(ANY)))),
            facts=TOOL_ARGUMENTS,
            examples=({"$any": True}, {"$contains": ""}),
        ),
        Property("exact", ScalarType("boolean"), default=True),
    ),
)
TOOL_CHECK = ObjectType(
    "ToolCheck",
    "Checks the calls.",
    (
        Property("tools", ArrayType(TOOL), doc="The tools.", aliases=("tool",)),
        Property("forbidden", ArrayType(STRING), facts=TOOL_NAME),
    ),
)
METRIC = ObjectType(
    "metric",
    properties=(Property("weight", ScalarType("number", minimum=0), doc="Its share.", default=1.0),),
    variants=Variants(
        {"TextMatch": TEXT_MATCH, "ToolCheck": TOOL_CHECK}, normalise=lambda name: name.rsplit(".", 1)[-1]
    ),
)
CONFIG = ObjectType(
    "Config",
    properties=(
        Property("pattern", ScalarType("regex"), doc="What to look for."),
        Property("block", ScalarType("integer", minimum=1), doc="Which block."),
        Property("mode", ScalarType("string", enum=("strict", "unordered")), doc="How.", default="strict"),
        Property("whole", ScalarType("boolean"), default=False),
        Property("metrics", ArrayType(METRIC), doc="How it is judged. With weights."),
    ),
)


class Seen:
    """Facts as a recording gives them."""

    def tools(self) -> Sequence[str]:
        return ("get_order", "search")

    def arguments(self, tool: str) -> Sequence[str]:
        return ("order_id", "limit") if tool == "get_order" else ()

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        return {"order_id": ("#W1", "#W2"), "limit": (5, float("nan"))}.get(argument, ()) if tool == "get_order" else ()

    def texts(self) -> Sequence[str]:
        return ("Your order is on its way.", 'He said "no"\n', "\x1b[31m\ud800")

    def probes(self) -> Sequence[str]:
        return ()

    def variables(self) -> Sequence[str]:
        return ("city", "expected_value", "customer")


SEEN = Seen()


def at(marked: str) -> tuple[str, int]:
    """The text and the offset of `|` in it."""
    assert marked.count("|") == 1
    return marked.replace("|", ""), marked.index("|")


def offered(marked: str) -> tuple[Completion, ...]:
    return complete(*at(marked), CONFIG, SEEN)


def labels(marked: str) -> list[str]:
    return [one.label for one in offered(marked)]


def written(marked: str, label: str) -> str:
    """The text after the item of that label, with `|` at the cursor."""
    one = next(item for item in offered(marked) if item.label == label)
    text = one.apply(at(marked)[0])
    return text[: one.cursor] + "|" + text[one.cursor :]


TEXT = '{"metrics": [{"type": "TextMatch", %s}]}'
CALL = '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "get_order", %s}]}]}'


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        ("|", ["metrics", "pattern", "block", "mode", "whole"]),
        ("// only a comment\n|", ["metrics", "pattern", "block", "mode", "whole"]),
        ("{|}", ["pattern", "block", "mode", "whole", "metrics"]),
        ("{|", ["pattern", "block", "mode", "whole", "metrics"]),
        ('{"block": 1, |}', ["pattern", "mode", "whole", "metrics"]),
        ('{|, "block": 1}', ["pattern", "mode", "whole", "metrics"]),
        ('{"block": 1 |}', ["pattern", "mode", "whole", "metrics"]),
        ('{"b|"}', ["block"]),
        ('{"B|', ["block"]),
        ("{b|}", ["block"]),
        ('{"o|": 1}', ["block", "mode", "whole"]),  # nothing begins with it; what holds it
        ('{"mode": "|"}', ["strict", "unordered"]),
        ('{"mode": "un|"}', ["unordered"]),
        ('{"mode": "or|"}', ["unordered"]),
        ('{"mode": |}', ["strict", "unordered"]),
        ('{"mode":|', ["strict", "unordered"]),
        ('{"whole": |}', ["true", "false"]),
        ('{"whole": f|}', ["false"]),
        ('{"metrics": [{"type": "|"}]}', ["TextMatch", "ToolCheck"]),
        ('{"metrics": [{"type": "|", "tools": []}]}', ["ToolCheck", "TextMatch"]),
        ('{"metrics": [{"type": "Tool|', ["ToolCheck"]),
        ('{"metrics": [|]}', ["TextMatch", "ToolCheck"]),
        ('{"metrics": |}', ["TextMatch", "ToolCheck"]),
        ('{"metrics": [{|}]}', ["type", "weight"]),
        (TEXT % '"e|"', ["equals", "weight"]),
        (TEXT % '"equals": "x", "con|"', ["contains", "contains_all", "not_contains_any"]),
        ('{"metrics": [{"type": "ns.TextMatch", "eq|"}]}', ["equals"]),
        ('{"metrics": [{"type": "ToolCheck", "tool": [], |}]}', ["weight", "forbidden"]),  # tool is tools
        ('{"metrics": [{"type": "ToolCheck", "tools": [{"name": "|"}]}]}', ["get_order", "search"]),
        ('{"metrics": [{"type": "ToolCheck", "tools": {"name": "|"}}]}', ["get_order", "search"]),
        ('{"metrics": [{"type": "ToolCheck", "forbidden": ["get_order", "|"]}]}', ["search"]),
        (CALL % '"arguments": {|}', ["order_id", "limit"]),
        (CALL % '"arguments": {"order_id": "#W1", "|"}', ["limit"]),
        (CALL % '"arguments": [{"order_id": "#W1"}, {"|"}]', ["order_id", "limit"]),
        (CALL % '"arguments": {"order_id": "#W|"}', ["#W1", "#W2"]),
        (CALL % '"arguments": {"order_id": {"$|"}}', ["$any", "$contains"]),
        ('{"metrics": [{"type": "ToolCheck", "tools": [{"name": "other", "arguments": {|}}]}]}', []),
        (TEXT % '"contains": "order|"', ["Your order is on its way."]),
        (TEXT % '"contains_all": ["Your order is on its way.", "said|"]', ['He said "no"\n']),
        # nothing belongs there
        ("{} |", []),
        ("| {}", []),
        ('{"block" |: 1}', []),
        ('{"block"|: 1}', []),
        ('{"block": | 1}', []),
        ('{"metrics": | []}', []),
        ('{// block: |\n"whole": true}', []),
        ("{/* | */}", []),
        ('{"pattern": "/|/"}', []),
        ('{"unknown": {|}}', []),
        ('{"pattern": ["// Multiline text delimited by `\\n`", "|"]}', []),
    ],
)
def test_what_is_offered(marked: str, expected: list[str]) -> None:
    assert labels(marked) == expected


@pytest.mark.parametrize(
    ("marked", "label", "expected"),
    [
        ("|", "metrics", '{\n  "metrics": [{"type": "|"}]\n}'),
        ("{|}", "pattern", '{"pattern": "|"}'),
        ("{|}", "block", '{"block": 1|}'),
        ('{"b|', "block", '{"block": 1|'),
        ("{ wh|ole }", "whole", '{ "whole": true| }'),
        ('{"mode": "|"}', "strict", '{"mode": "strict"|}'),
        ('{"mode":|}', "strict", '{"mode": "strict"|}'),
        ('{"mode": un|}', "unordered", '{"mode": "unordered"|}'),
        ('{"whole": "f|"}', "false", '{"whole": false|}'),
        # commas where they are missing, and only there
        ('{"block": 1|}', "pattern", None),
        ('{"block": 1 |}', "whole", '{"block": 1, "whole": true|}'),
        ('{"mode": "strict"|}', "whole", '{"mode": "strict", "whole": true|}'),
        ('{"block": 1\n  |\n}', "whole", '{"block": 1,\n  "whole": true|\n}'),
        ('{"block": 1 // why\n  |\n}', "whole", '{"block": 1, // why\n  "whole": true|\n}'),
        ('{"block": 1,|}', "whole", '{"block": 1, "whole": true|}'),
        ('{|"block": 1}', "whole", '{"whole": true|, "block": 1}'),
        ('{\n  |\n  "block": 1}', "whole", '{\n  "whole": true|,\n  "block": 1}'),
        ('{"mode": |\n "block": 1}', "strict", '{"mode": "strict"|,\n "block": 1}'),
        # a name that has its value keeps it
        ('{"pat|": 1}', "pattern", '{"pattern"|: 1}'),
        # an unclosed quote takes nothing of what follows
        ('{"mode": "un|, "block": 1}', "unordered", '{"mode": "unordered"|, "block": 1}'),
        # exact types: a list where a list is wanted
        (TEXT % '"contains_all": "way|"', "Your order is on its way.",
         TEXT % '"contains_all": ["Your order is on its way."|]'),
        ('{"metrics": |}', "ToolCheck", '{"metrics": [{"type": "ToolCheck"|}]}'),
        ('{"metrics": [{"type": "ToolCheck", "to|"}]}', "tools",
         '{"metrics": [{"type": "ToolCheck", "tools": [{"name": "|"}]}]}'),
        (CALL % '"arguments": {|}', "limit", CALL % '"arguments": {"limit": 5|}'),
        (CALL % '"arguments": {"x": {"$c|"}}', "$contains", CALL % '"arguments": {"x": {"$contains": "|"}}'),
        (CALL % '"ex|"', "exact", CALL % '"exact": false|'),
        (TEXT % '"contains": "said|"', 'He said "no"\n', TEXT % '"contains": "He said \\"no\\"\\n"|'),
    ],
)  # fmt: skip
def test_how_it_is_written(marked: str, label: str, expected: str | None) -> None:
    if expected is None:
        assert label not in labels(marked)
    else:
        assert written(marked, label) == expected


def test_items_say_what_they_are() -> None:
    first = offered("|")[0]
    assert (first.kind, first.detail, first.order) == ("property", "How it is judged.", 0)
    kind = offered('{"metrics": [{"type": "|"}]}')[0]
    assert (kind.kind, kind.detail) == ("type", "Compares the text.")
    argument = offered(CALL % '"arguments": {|}')[0]
    assert (argument.kind, argument.detail) == ("argument", 'an argument of get_order, as "#W1"')
    tool = offered('{"metrics": [{"type": "ToolCheck", "forbidden": ["|"]}]}')[0]
    assert (tool.kind, tool.detail) == ("tool", "a tool of the agent")


def test_a_long_list_is_cut() -> None:
    class Many(Seen):
        def tools(self) -> Sequence[str]:
            return [f"tool-{number}" for number in range(1000)]

    found = complete(*at('{"metrics": [{"type": "ToolCheck", "forbidden": ["|"]}]}'), CONFIG, Many())
    assert len(found) == MOST_ITEMS
    assert [one.order for one in found] == list(range(MOST_ITEMS))


PIECES = [
    *("{", "}", "[", "]", ":", ",", '"', "'", "\\", " ", "\n", "//", "/*", "*/", "{{x}}", "\ud800", "“", "=", "1"),
    *('"metrics": [', '{"type": "TextMatch"', '"type": "ToolCheck"', '"tools": [', '"name": "get_order"'),
    *('"arguments": {', '"order_id": ', '"contains": "a"', '"contains_all": ["a"', '"/*": 1', '"mode"', "tru"),
    '"// Multiline text delimited by `\\n`"',
]
texts = st.one_of(st.text(max_size=60), st.lists(st.sampled_from(PIECES), max_size=25).map("".join))


@settings(max_examples=150, deadline=None)
@given(texts, st.data())
def test_no_text_and_no_offset_breaks_it(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(-2, len(text) + 2))
    for item in complete(text, offset, CONFIG, SEEN):
        assert 0 <= item.cursor <= len(item.apply(text))
        assert all(0 <= edit.start <= edit.end <= len(text) for edit in item.edits)
    found = hover(text, offset, CONFIG)
    assert found is None or found.lines()


values = st.recursive(
    st.sampled_from(["", "x", 'a"b', 1, 2.5, True, None, "get_order"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "metrics", "tools", "name", "arguments", "order_id", "contains", "contains_all", "//"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
WHOLE = [
    TEXT % '"contains": "a", /* x */ "contains_all": ["b", // c\n "d",]',
    CALL % '"min_calls": 1, "arguments": {"order_id": {"$contains": "W"}, "limit": [1, 2,]}',
    '{\n  // note\n  "mode": "strict",\n  "metrics": [\n    {"type": "TextMatch"},\n    {"weight": 1}\n  ]\n}\n',
    '{"pattern": ["// Multiline text delimited by `\\n`", "a", "b"], "/*": "", "block": 1, "*/": "", "whole": true}',
]


def _readable(text: str) -> bool:
    return not parse(text).broken


@settings(max_examples=80, deadline=None)
@given(st.one_of(st.sampled_from(WHOLE), values.map(json.dumps)), st.data())
def test_what_could_be_read_can_be_read_after_it(text: str, data: st.DataObject) -> None:
    if not _readable(text):
        return
    offset = data.draw(st.integers(0, len(text)))
    for item in complete(text, offset, CONFIG, SEEN):
        after = item.apply(text)
        assert _readable(after), (text, offset, item.label, after)


def test_every_offset_of_whole_configs_keeps_them_readable() -> None:
    for text in WHOLE:
        made = 0
        for offset in range(len(text) + 1):
            for item in complete(text, offset, CONFIG, SEEN):
                made += 1
                assert _readable(item.apply(text)), (text, offset, item)
        assert made >= 20


# ---------------------------------------------------------------------- hover
def hovered(marked: str) -> Hover | None:
    return hover(*at(marked), CONFIG)


def test_hover_on_a_name_and_its_value() -> None:
    expected = ("block: a whole number, at least 1", "Which block.")
    for marked in ('{"bl|ock": 1}', '{"block": |1}', '{"block": 1|', "{bl|ock = 1"):
        found = hovered(marked)
        assert found is not None, marked
        assert found.lines() == expected


def test_hover_says_default_and_allowed_values() -> None:
    found = hovered('{"mode": "str|ict"}')
    assert found is not None
    assert found.lines() == ("mode: a string", "How.", 'default: "strict"', 'allowed: "strict", "unordered"')
    assert (found.start, found.end) == (9, 17)


def test_hover_on_a_variant() -> None:
    found = hovered('{"metrics": [{"type": "ns.Text|Match", "contains": "x"}]}')
    assert found is not None
    assert (found.title, found.doc) == ("TextMatch", "Compares the text. In many ways.")
    assert found.properties == ("equals", "contains", "contains_all", "not_contains_any")
    name = hovered('{"metrics": [{"ty|pe": "TextMatch"}]}')
    assert name is not None
    assert name.lines() == (
        "type: a string (required)",
        "The type of this metric.",
        'allowed: "TextMatch", "ToolCheck"',
    )


def test_hover_inside_of_lists_and_maps_is_their_property() -> None:
    found = hovered(TEXT % '"contains_all": ["a", "b|"]')
    assert found is not None
    assert found.title == "contains_all"
    found = hovered(CALL % '"arguments": {"order|_id": 1}')
    assert found is not None
    assert found.title == "arguments"


@pytest.mark.parametrize(
    "marked", ["|", "{|}", '{"block"| : 1}'.replace("| ", " |"), '{"unknown|": 1}', "// bl|ock", "{} b|"]
)
def test_hover_has_nothing_to_say(marked: str) -> None:
    assert hovered(marked) is None


def test_every_offset_of_the_broken_corpus_is_survived() -> None:
    corpus = Path(__file__).with_name("corpus.jsonl").read_text("utf-8").splitlines()
    for line in corpus[::4]:
        text = json.loads(line)["text"]
        for offset in range(0, min(len(text), 200) + 1, 5):
            complete(text, offset, CONFIG, SEEN)
            hover(text, offset, CONFIG)


def test_what_is_used_most_comes_first_among_what_begins_alike() -> None:
    text, offset = at('{"metrics": [{"type": "|"}]}')
    names = [one.label for one in complete(text, offset, CONFIG, SEEN)]
    last = names[-1]
    assert [one.label for one in complete(text, offset, CONFIG, SEEN, {last: 3})] == [last, *names[:-1]]
    text, offset = at("{|}")
    first, *_, other = [one.label for one in complete(text, offset, CONFIG, SEEN)]
    assert next(iter(complete(text, offset, CONFIG, SEEN, {other: 2, first: 1}))).label == other
    # What begins with what was typed stands before what only holds it, however often that is used.
    text, offset = at("{m|}")
    assert next(one.label for one in complete(text, offset, CONFIG, SEEN, {"metrics": 1})) == "metrics"
    assert all(one.label.startswith("m") for one in complete(text, offset, CONFIG, SEEN, {"whole": 9})[:2])


@pytest.mark.parametrize(
    ("marked", "offers"),
    [
        ('{"metrics": [{"type": "TextMatch", "equals": "{{|"}]}', ["{{city}}", "{{expected_value}}", "{{customer}}"]),
        ('{"metrics": [{"type": "TextMatch", "equals": "{{|}}"}]}', ["{{city}}", "{{expected_value}}", "{{customer}}"]),
        ('{"metrics": [{"type": "TextMatch", "equals": "in {{c|"}]}', ["in {{city}}", "in {{customer}}"]),
        ('{"metrics": [{"type": "TextMatch", "contains_all": ["{{city}} {{ ex|"]}]}', ["{{city}} {{expected_value}}"]),
        ('{"metrics": [{"type": "TextMatch", "equals": "{{city}}|"}]}', []),
        ('{"metrics": [{"type": "TextMatch", "equals": "{{c| and more"}]}', []),
        ('{"metrics": [{"type": "TextMatch", "equals": "{{none|"}]}', []),
    ],
)
def test_the_variables_of_a_test_are_offered_in_a_placeholder(marked: str, offers: list[str]) -> None:
    assert labels(marked) == offers
    for label in offers:
        assert json.loads(written(marked, label).replace("|", ""))["metrics"][0]
        assert json.dumps(label) in written(marked, label).replace("|", "")
