"""Depth, size, places, and the kinds of tokens."""

from __future__ import annotations

import json

import pytest

from agenteval_tui.uxon.check import check
from agenteval_tui.uxon.parse import MAX_DEPTH, parse
from agenteval_tui.uxon.schema import ArrayType, ObjectType, Property, ScalarType
from agenteval_tui.uxon.serialize import to_text
from agenteval_tui.uxon.tokens import tokenize

SEED = """{
  "metrics":
    [
      {
        "name": "TextMatch1",
        "type": "TextMatch",
        "contains_all": [
          "Techcorp"
        ]
      },
      {
        "type": "ToolCheck",
        "tools": [
          {
            "name": "search_user",
            // wird benötigt
            "required": true,
            //standartmäßig auf true
            "min_calls": 1,
            "arguments": {
              "name": "John"
              //Key (hier name) muss übereinstimmen mit den Argument was der Agent nutzt
            }
          }
        ]
      }
    ]
}"""


def kinds(text: str) -> list[tuple[str, str]]:
    return [(token.kind, text[token.start : token.end]) for token in tokenize(text)]


def test_an_example_of_power_ui_reads_without_a_word() -> None:
    document = parse(SEED)
    assert document.diagnostics == ()
    assert document.value["metrics"][1]["tools"][0] == {
        "name": "search_user",
        "required": True,
        "min_calls": 1,
        "arguments": {"name": "John"},
    }


def test_names_and_strings_are_told_apart() -> None:
    assert kinds('{"a": "b", c: [1, null, "d"], // e\n \'f\': word, "g"') == [
        ("brace", "{"),
        *(("key", '"a"'), ("colon", ":"), ("string", '"b"'), ("comma", ",")),
        *(("key", "c"), ("colon", ":"), ("bracket", "["), ("number", "1"), ("comma", ",")),
        *(("literal", "null"), ("comma", ","), ("string", '"d"'), ("bracket", "]"), ("comma", ",")),
        *(("comment", "// e"), ("key", "'f'"), ("colon", ":"), ("error", "word"), ("comma", ",")),
        ("key", '"g"'),
    ]


def test_an_open_block_comment_ends_with_its_line() -> None:
    assert kinds("/* a\n1 /* b */ 2") == [
        *(("comment", "/* a\n1 /* b */"), ("number", "2")),
    ]
    assert kinds("/* a\r\n1 /* b") == [("comment", "/* a"), ("number", "1"), ("comment", "/* b")]


@pytest.mark.parametrize("piece", ["[", "{", '{"a":', "[{"])
def test_depth_is_no_reason_to_fail(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    document = parse(text)
    assert [d.message for d in document.diagnostics if "nested deeper" in d.message]
    nested = ArrayType(ScalarType("any"))
    assert check(document, ObjectType("Config", properties=(Property("a", nested),)))
    json.dumps(document.value)


def test_what_is_not_too_deep_is_read_whole() -> None:
    text = "[" * MAX_DEPTH + "]" * MAX_DEPTH
    assert parse(text).diagnostics == ()
    deeper = parse("[1, " + text + ", 2]")
    assert deeper.value[0] == 1
    assert deeper.value[-1] == 2
    assert len(deeper.diagnostics) == 1


NASTY = [
    *(
        '"',
        '"\n',
        "'",
        "/*",
        "/*\n",
        "//",
        '"\\',
        '"a:\\"b:',
        'a"b',
        '{"a":"b"c',
        '{"a" "b" ',
        "“",
        "`",
        "1e",
        "[1,",
        "]",
    ),
    *(
        '{"a":1,"a":1,',
        "{{x}}",
        '{"/*":1,',
        "\ud800",
        "\0",
        '["a":1,',
        "[;",
        '"x\ny"',
        "[{]",
        "[1}",
        "}{",
        "https://",
        "*/",
    ),
]


@pytest.mark.sweep
@pytest.mark.parametrize("piece", NASTY)
def test_nasty_texts_take_time_by_their_length_only(piece: str) -> None:
    """Were any of them quadratic, the test's time limit would end it."""
    text = '{"a":["' + piece * (100_000 // len(piece))
    document = parse(text)
    assert len(document.diagnostics) <= 210
    assert document.text is text


def test_places() -> None:
    document = parse(SEED)
    offset = SEED.index("John")
    assert document.path_at(offset) == ("metrics", 1, "tools", 0, "arguments", "name")
    assert document.path_at(SEED.index("min_calls")) == ("metrics", 1, "tools", 0, "min_calls")
    node = document.node(("metrics", 1, "tools", 0, "min_calls"))
    assert node is not None
    assert (node.kind, node.value, SEED[node.start : node.end]) == ("number", 1, "1")
    inner = document.node_at(SEED.index("wird"))
    assert inner is not None
    assert inner.kind == "object"
    assert document.node(("metrics", 7)) is None
    assert document.node(("metrics", "x")) is None
    assert document.node_at(len(SEED) + 5) is None
    token = document.token_at(offset)
    assert token is not None
    assert token.kind == "string"


@pytest.mark.parametrize(
    ("text", "index", "there"),
    [
        ('"abc"', 1, "bc"),
        ('"a\\nb"', 1, "\\nb"),
        ('"a\\nb"', 2, 'b"'),
        ('"\\u0041\\ud83d\\ude00z"', 2, 'z"'),
        ('"\\dz"', 1, 'dz"'),
        ("'it\\'s'", 3, "s'"),
        ('"ab"', 9, '"'),
        ('["// Multiline text delimited by `\\n`", "one", "two"]', 4, 'two"]'),
        ('["// Multiline text delimited by `\\r\\n`", "a", "b"]', 3, 'b"]'),
    ],
)
def test_a_character_of_a_value_has_a_place_in_the_text(text: str, index: int, there: str) -> None:
    document = parse(text)
    assert document.root is not None
    assert text[document.string_offset(document.root, index) :].startswith(there)


def test_comments_of_power_ui_stay_in_the_tree() -> None:
    document = parse('{"// note": 1, "a": 1, "/*": "", "b": 2, "*/": "", "l": [{"/*": "", "c": 1, "*/": ""}]}')
    assert document.root is not None
    assert [(m.key, m.commented) for m in document.root.members] == [
        *(("// note", True), ("a", False), ("/*", True), ("b", True), ("*/", True), ("l", False)),
    ]
    item = document.node(("l", 0))
    assert item is not None
    assert item.commented
    assert document.node(("b",)) is not None


def test_dump_is_compact_where_it_fits() -> None:
    value = {"metrics": [{"type": "TextMatch", "contains_all": ["a", "ü"]}], "empty": {}, "when": None}
    assert to_text(value) == (
        '{\n  "metrics": [\n    {\n      "type": "TextMatch",\n      "contains_all": ["a", "ü"]\n    }\n  ],\n'
        '  "empty": {},\n  "when": null\n}'
    )
    assert parse(to_text({2: "x", True: 2})).value == {"2": "x", "true": 2}
