"""The text of a config as an editor shows it, and the place of each of its characters in the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites import config_source as source_module
from agenteval_tui.suites.config_source import body_start, source_of
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.suites.yaml.tree import ScalarNode, plain_data, resolve

HEAD = """\
# Prüfung 😀
name: ä😀
tests:
  - name: t
    prompt: p
    criteria:
      - name: ü 😀
        prototype_class: TextResponse
"""


def load(config: str, head: str = HEAD) -> LoadedSuite:
    loaded = load_text(head + config, "x.suite.yaml")
    assert loaded.ok, [str(problem) for problem in loaded.problems]
    return loaded


def at(loaded: LoadedSuite, needle: str, times: int = 1) -> str:
    """What stands in the file at the place of `needle` in the config's text."""
    source = loaded.config_source("t", 0)
    offset = -1
    for _ in range(times):
        offset = source.text.index(needle, offset + 1)
    line, column = source.to_file(offset)
    return loaded.text.split("\n")[line - 1][column - 1 :]


def test_a_literal_block_maps_through_its_indentation() -> None:
    loaded = load('        config_uxon: |\n          {\n            // 😀 ä\n            "a": 1\n          }\n')
    source = loaded.config_source("t", 0)
    assert source.style == "literal"
    assert source.text == '{\n  // 😀 ä\n  "a": 1\n}\n'
    assert source.to_file(0) == (10, 11)
    assert at(loaded, "ä").startswith("ä")
    assert source.to_file(source.text.index('"a"')) == (12, 13)
    assert source.to_file(len(source.text) - 1) == (13, 12)  # the newline behind the brace
    assert source.to_file(10_000) == source.to_file(len(source.text))


def test_a_literal_block_with_an_indentation_indicator_and_blank_lines() -> None:
    loaded = load("        config_uxon: |2\n\n            {\n\n           x: 1\n")
    source = loaded.config_source("t", 0)
    assert source.text == "\n  {\n\n x: 1\n"
    assert at(loaded, "{") == "{"
    assert at(loaded, "x: 1") == "x: 1"


def test_crlf_files_have_the_same_lines_and_columns() -> None:
    config = '        config_uxon: |\n          {\n            "a": 1\n          }\n'
    unix, windows = load(config), load(config.replace("\n", "\r\n"), HEAD.replace("\n", "\r\n"))
    left, right = unix.config_source("t", 0), windows.config_source("t", 0)
    assert left.text == right.text
    assert [left.to_file(i) for i in range(len(left.text))] == [right.to_file(i) for i in range(len(left.text))]


def test_escapes_of_double_quotes_count_as_they_are_written() -> None:
    loaded = load(r'        config_uxon: "{\"a\": \"\u00e4\U0001f600x\",\n \"zz\": 1}"' + "\n")
    source = loaded.config_source("t", 0)
    assert source.style == "double"
    assert source.text == '{"a": "ä😀x",\n "zz": 1}'
    assert at(loaded, "x").startswith(r"x\",\n")
    assert at(loaded, "zz").startswith(r"zz\"")
    assert at(loaded, "ä").startswith(r"\u00e4")
    assert at(loaded, "}") == '}"'


def test_a_double_quoted_text_over_several_lines() -> None:
    loaded = load('        config_uxon: "{\\\n           a: 1,\n           b: 2}"\n')
    assert loaded.config_source("t", 0).text == "{a: 1, b: 2}"
    assert at(loaded, "b").startswith("b: 2")
    assert at(loaded, "a").startswith("a: 1")


def test_single_quotes_plain_and_folded_texts() -> None:
    loaded = load("        config_uxon: '{\"it''s\": 1, \"q\":\n           2}'\n")
    assert at(loaded, "s").startswith('s": 1')
    assert at(loaded, "2").startswith("2}")
    folded = load('        config_uxon: >\n          {"a": 1,\n          "b": 2\n\n            }\n')
    assert folded.config_source("t", 0).style == "folded"
    assert at(folded, '"b"').startswith('"b": 2')
    assert at(folded, "}") == "}"
    plain = load("        config_uxon: some words\n          and more\n")
    assert plain.config_source("t", 0).text == "some words and more"
    assert at(plain, "more") == "more"


def test_an_anchor_and_a_tag_stand_before_the_text() -> None:
    loaded = load('        config_uxon: &one !!str |\n          {"a": 1}\n')
    assert loaded.config_source("t", 0).text == '{"a": 1}\n'
    assert at(loaded, '"a"') == '"a": 1}'


def test_yaml_is_shown_as_json_and_maps_to_the_nearest_value() -> None:
    loaded = load(
        "        config_uxon:\n          metrics:\n            - type: TextMatch\n"
        "              contains_all: [ä😀, '5000', 7]   # why\n"
    )
    source = loaded.config_source("t", 0)
    assert source.style == "mapping"
    assert json.loads(source.text) == {"metrics": [{"type": "TextMatch", "contains_all": ["ä😀", "5000", 7]}]}
    assert at(loaded, "contains_all").startswith("contains_all: [")
    assert at(loaded, "TextMatch") == "TextMatch"
    assert at(loaded, "😀").startswith("😀, '5000'")
    assert at(loaded, "5000").startswith("5000', 7")
    assert at(loaded, "7").startswith("7]")


def test_an_alias_is_shown_where_it_stands() -> None:
    head = HEAD.replace("name: ä😀\n", "name: ä😀\ndescription: &x a text\n")
    loaded = load("        config_uxon: *x\n", head)
    source = loaded.config_source("t", 0)
    assert source.text == "a text"
    assert loaded.places.line_and_column(loaded.config_node("t", 0).start) == (10, 22)


TEXT = st.text(st.sampled_from("ab{}[]\":,# '\n\\ä😀\t"), max_size=60)


def literal(text: str) -> str:
    return "        config_uxon: |2-\n" + "\n".join("          " + line if line else "" for line in text.split("\n"))


@given(TEXT)
def test_every_visible_character_of_a_block_is_found_where_it_stands(text: str) -> None:
    if not text.strip() or text.endswith("\n") or any(line and not line.strip() for line in text.split("\n")):
        return
    loaded = load_text(HEAD + literal(text) + "\n", "x.suite.yaml")
    source = loaded.config_source("t", 0)
    assert source.text == text
    for offset, char in enumerate(text):
        if char not in "\n":
            assert loaded.text[source.to_offset(offset)] == char


@given(TEXT, st.sampled_from(["'", '"']))
def test_every_visible_character_of_a_quoted_text_is_found_where_it_stands(text: str, quote: str) -> None:
    if quote == "'":
        written = "'" + text.replace("'", "''").replace("\n", "\n\n           ") + "'"
    else:
        written = json.dumps(text, ensure_ascii=False)
    loaded = load_text(HEAD + f"        config_uxon: {written}\n", "x.suite.yaml")
    source = loaded.config_source("t", 0)
    if quote == '"':
        assert source.text == text
    starts = {"\n": "\\n", "\t": "\\t", '"': '\\"', "\\": "\\\\"} if quote == '"' else {}
    for offset, char in enumerate(source.text):
        if char not in " \n\t" or char in starts:
            assert loaded.text.startswith(starts.get(char, char), source.to_offset(offset))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.sampled_from([0.5, 1e3, "", "no", "1e3", "ä 😀", 'q"\\']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["k", "l"]), JSON, min_size=1))
def test_the_json_shown_for_yaml_is_what_python_would_write(value: dict[str, object]) -> None:
    loaded = load_text(HEAD + f"        config_uxon: {json.dumps(value, ensure_ascii=False)}\n", "x.suite.yaml")
    node, shown = loaded.config_node("t", 0), loaded.config_source("t", 0).text
    assert plain_data(node) == value
    assert shown == json.dumps(value, indent=2, ensure_ascii=False)
    # Places are found by going through the same text once more.
    printer = source_module._Printer()
    printer.write(node, 0)
    assert printer.length == len(shown)


@pytest.mark.parametrize("test_id", ["nobody", "t"])
def test_what_is_not_there_is_said(test_id: str) -> None:
    loaded = load("        config_uxon: '{}'\n")
    with pytest.raises(AgentevalError, match=r"there is no test|no criterion 8"):
        loaded.config_source(test_id, 7)
    assert loaded.line_of("t") == 4
    assert loaded.line_of("t", 0) == 7
    assert loaded.line_of("nobody") == 1


LINES = st.lists(st.text(' \t{}":,#ab\\😀ä-', max_size=6), max_size=8)


@given(
    LINES,
    st.sampled_from(["|", "|-", "|+", "|2", "|2-", "|2+", "&a |"]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 3),
)
def test_a_literal_block_maps_by_line_as_it_does_by_character(
    lines: list[str], header: str, windows: bool, last: bool, more: int
) -> None:
    """Blank lines, lines that are indented deeper or less, trailing blanks, no newline at the end, CRLF."""
    body = "".join(f"          {' ' * (more if '2' in header else 0)}{line}\n" for line in lines)
    text = HEAD + f"        config_uxon: {header}\n{body}"
    text = text if last else text.rstrip("\n")
    if windows:
        text = text.replace("\n", "\r\n")
    loaded = load_text(text, "x.suite.yaml")
    try:
        node = loaded.config_node("t", 0)
    except AgentevalError:
        return  # what hypothesis wrote is no such block
    real = resolve(node)
    if not isinstance(real, ScalarNode) or real.style != "|":
        return
    start = body_start(real, loaded.text)
    block = source_module._INDICATORS.match(loaded.text, start)
    at = block.end() if block else start
    spots = source_module._block(real, loaded.text, at, min(real.end, len(loaded.text)))
    source = source_of(node, loaded.text, loaded.places)
    assert [source.to_offset(offset) for offset in range(len(real.text) + 1)] == spots


def test_places_are_found_only_where_somebody_asks() -> None:
    loaded = load('        config_uxon: |\n          {\n            "a": 1\n          }\n')
    source = loaded.config_source("t", 0)
    assert source._steps is None
    assert source.to_file(0) == (10, 11)
    assert source._steps is not None
    as_yaml = load("        config_uxon: {a: 1}\n").config_source("t", 0)
    assert as_yaml._steps is None
    assert as_yaml.to_file(0) == (9, 22)
