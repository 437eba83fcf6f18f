"""Whatever stands around a config, saving it changes nothing else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval_tui.suites.decode import node_at
from agenteval_tui.suites.load import load_suite
from agenteval_tui.suites.yaml.save import save_config

WORDS = [
    "a",
    "no",
    "1e3",
    "5",
    "2024-01-01",
    "ä 😀",
    "x: y",
    "it's",
    'say "hi"',
    "# no comment",
    "{{country}}",
    "",
    " pad ",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.sampled_from([0.5, 1.0, 1e30]) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "no", "k e", "ü"]), inner, max_size=3)
    ),
    max_leaves=10,
)
OBJECT = st.dictionaries(st.sampled_from(["metrics", "a", "ü 😀", "null", "7"]), JSON, max_size=4)
LINE = st.text(st.sampled_from("ab{}[]\":,#|>-&*!% '\\ä😀\t"), max_size=12)
TEXT = st.lists(LINE, max_size=6).map("\n".join)
FREE = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).map(
    lambda text: text.replace("\r\n", "\n").replace("\r", "\n")
)
COMMENT = st.sampled_from(["", "   # ein Kommentar: 'ä' {😀}", " #"])
GAP = st.sampled_from(["", "\n", "\n\n   \n", "      # between\n", "# at the margin\n\n"])


def block_yaml(value: Any, indent: int) -> str:
    text = yaml.safe_dump(value, allow_unicode=True, default_flow_style=False, width=10_000)
    return "\n" + "".join(" " * indent + line + "\n" for line in text.splitlines())


def commented(line: str) -> str:
    """A line of block YAML with comments around, where they can't be part of a text."""
    plain = line and not line.endswith(("|", "|-", "|+")) and "  " not in line.strip()
    return f"          # über\n{line}   # 'x'\n" if plain else f"{line}\n"


@st.composite
def configs(draw: st.DrawFn) -> str:
    """A config in any style, as it stands behind `config_uxon:` (indented for a key at column 8), with its newline."""
    style = draw(st.sampled_from(["literal", "folded", "double", "single", "flow", "block", "plain"]))
    comment = draw(COMMENT)
    if style in ("literal", "folded"):
        lines = ["{", *draw(st.lists(st.sampled_from(['  "a": 1,', "// ä 😀", "", "  x"]), max_size=4)), "}"]
        mark = "|" if style == "literal" else ">"
        chomp = draw(st.sampled_from(["", "-", "+"]))
        pad = " " * draw(st.integers(9, 13))
        body = "".join(pad + line + "\n" if line else "\n" for line in lines)
        return f" {mark}{chomp}{comment}\n{body}{draw(st.sampled_from(['', chr(10), chr(10) * 2]))}"
    if style == "double":
        return f" {json.dumps(draw(TEXT), ensure_ascii=False)}{comment}\n"
    if style == "single":
        return " '" + draw(LINE).replace("'", "''").replace("\t", " ") + "'" + comment + "\n"
    if style == "plain":
        return f" some words{comment}\n"
    value = draw(OBJECT.filter(bool))
    if style == "flow":
        return f" {json.dumps(value, ensure_ascii=False)}{comment}\n"
    return comment + block_yaml(value, draw(st.integers(9, 12)))


@st.composite
def suites(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """A suite's text, and where each config stands in it (from the colon to the next key)."""
    parts = [
        f"name: 'ü'{draw(COMMENT)}\n",
        draw(GAP),
        "tests:\n",
        "- id: t\n",
        "  prompt: 'p'\n",
        draw(GAP),
        "  criteria:\n",
    ]
    spans = []
    for number in range(draw(st.integers(1, 3))):
        parts.append(f"      - name: c{number}{draw(COMMENT)}\n")
        parts.append("        prototype_class:   TextResponse\n        config_uxon:")
        start = sum(map(len, parts))
        parts.append(draw(configs()))
        spans.append((start, sum(map(len, parts))))
        parts.append(draw(GAP) + f"        weight: {number}.50{draw(COMMENT)}\n")
    return "".join(parts), spans


NEW = st.one_of(
    TEXT,
    FREE,
    OBJECT.map(lambda value: json.dumps(value, indent=2, ensure_ascii=False)),
    TEXT.map("{{\n{}\n}}\n".format),
)


@settings(max_examples=60, deadline=None)
@given(suites(), NEW, st.integers(0, 2), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_saving_a_config_changes_nothing_else(
    made: tuple[str, list[tuple[int, int]]], new: str, which: int, newline: str, bom: bool
) -> None:
    text, spans = made
    which %= len(spans)
    before = (b"\xef\xbb\xbf" if bom else b"") + text.replace("\n", newline).encode()
    head = (b"\xef\xbb\xbf" if bom else b"") + text[: spans[which][0]].replace("\n", newline).encode()
    tail = text[spans[which][1] :].replace("\n", newline).encode()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.suite.yaml"
        path.write_bytes(before)
        loaded = load_suite(path)
        assert loaded.ok, [str(problem) for problem in loaded.problems]
        old = [loaded.config_source("t", number).text for number in range(len(spans))]
        was_text = loaded.config_source("t", which).style != "mapping"
        saved = save_config(loaded, "t", which, new)
        after = path.read_bytes()
        read = load_suite(path)
    assert saved.text == read.text
    assert after.startswith(head)
    # Blank lines and comments behind a block may come to belong to it or to the surroundings, but the bytes stay.
    assert after.endswith(tail.lstrip(b" \r\n"))
    for number in range(len(spans)):
        source = read.config_source("t", number)
        if number != which:
            assert source.text == old[number]
        elif was_text or source.style != "mapping":
            assert source.text == new
        else:
            assert json.loads(source.text) == json.loads(new)
    assert loaded.suite is not None
    assert read.suite is not None
    left, right = loaded.suite.model_dump(), read.suite.model_dump()
    for dumped in (left, right):
        del dumped["tests"][0]["criteria"][which]["config_uxon"]
    assert left == right
    if old[which] == new:
        assert after == before


@settings(max_examples=50, deadline=None)
@given(OBJECT.filter(bool), OBJECT, st.sampled_from(["flow", "block"]))
def test_a_config_in_yaml_stays_yaml(old: dict[str, Any], new: dict[str, Any], style: str) -> None:
    """Whatever JSON the new value is, it is spliced into the YAML; a value that stays equal keeps its bytes."""
    written = f" {json.dumps(old, ensure_ascii=False)}\n" if style == "flow" else block_yaml(old, 10)
    head = (
        "tests:\n- id: t\n  prompt: p\n  criteria:\n      - name: c\n        prototype_class: T\n        config_uxon:"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.suite.yaml"
        path.write_text(head + written + "        weight: 1\n", encoding="utf-8")
        loaded = load_suite(path)
        # The two readers differ in what a plain scalar is; begin with what ours has read.
        value = json.loads(loaded.config_source("t", 0).text)
        saved = save_config(loaded, "t", 0, json.dumps(new))
        source = saved.config_source("t", 0)
        assert source.style == "mapping"
        assert json.dumps(json.loads(source.text), sort_keys=True) == json.dumps(new, sort_keys=True)
        assert saved.text.endswith("        weight: 1\n")
        if json.dumps(value, sort_keys=True) == json.dumps(new, sort_keys=True):  # (0 == False in Python)
            assert saved.text == loaded.text


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        return [leaf for step, one in steps for leaf in leaves(one, (*path, step))]
    return [path]


def with_leaf(value: Any, path: tuple[Any, ...], leaf: Any) -> Any:
    if not path:
        return leaf
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = with_leaf(copy[path[0]], path[1:], leaf)
    return copy


@settings(max_examples=60, deadline=None)
@given(OBJECT.filter(bool), st.sampled_from(["flow", "block", "commented"]), JSON, st.integers(0, 99))
def test_only_the_value_that_differs_is_replaced(old: dict[str, Any], style: str, leaf: Any, which: int) -> None:
    written = f" {json.dumps(old, ensure_ascii=False)}\n" if style == "flow" else block_yaml(old, 10)
    if style == "commented":
        written = "".join(map(commented, written.split("\n")[:-1]))
    head = (
        "tests:\n- id: t\n  prompt: p\n  criteria:\n      - name: c\n        prototype_class: T\n        config_uxon:"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.suite.yaml"
        path.write_text(head + written + "        weight: 1\n", encoding="utf-8")
        loaded = load_suite(path)
        value = json.loads(loaded.config_source("t", 0).text)
        places = leaves(value)
        place = places[which % len(places)]
        if not place:
            return
        node, _ = node_at(loaded.config_node("t", 0), place)
        saved = save_config(loaded, "t", 0, json.dumps(with_leaf(value, place, leaf)))
    assert saved.text.startswith(loaded.text[: node.start])
    assert saved.text.endswith(loaded.text[node.end :].lstrip("\n"))
    assert json.loads(saved.config_source("t", 0).text) == with_leaf(value, place, leaf)
