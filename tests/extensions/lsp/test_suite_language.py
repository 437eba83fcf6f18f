"""Completion, explanations, fixes, layout and definitions in the text of a suite, however its configs are written."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.analysis.lint import check_suite
from agenteval_tui.core import directories
from agenteval_tui.core.errors import apply_edits
from agenteval_tui.extensions.lsp.suite_language import (
    Offer,
    complete_suite,
    config_fixes,
    definition,
    explain_suite,
    format_suite,
)
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.suites.yaml.tree import MappingNode

SUITE = """\
name: 𝄞 x
agent: shop
agents:
  shop: {kind: demo, version: v1}
  other:
    kind: openai
    model: m
tests:
  - id: one
    prompt: "Where is it? 😀"
    dataset: {file: rows.csv}
    criteria:
      - name: literal
        prototype_class: TextResponse
        config_uxon: |
          {
            // 😀 why
            "metrics": [{"type": "TextMatch", "contains": "😀"}]
          }
      - name: native
        prototype_class: ToolResponse
        config_uxon:
          metrics:
            - type: ToolCheck
              tools: [{name: get_order}]
      - name: double
        prototype_class: TextResponse
        config_uxon: "{\\"metrics\\": [{\\"type\\": \\"Regex\\", \\"pattern\\": \\"a\\"}]}"
      - name: single
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "Length", "max_words": 5}]}'
  - id: two
    prompt: q
    criteria: [{name: flow, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: x}]}}]
"""


class Seen:
    """What recordings would know."""

    def tools(self) -> Sequence[str]:
        return ("get_order", "refund")

    def arguments(self, tool: str) -> Sequence[str]:
        return ("order_id",) if tool == "get_order" else ()

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        return ("#W1",)

    def texts(self) -> Sequence[str]:
        return ("It's “here”",)


def ask(old: str, new: str) -> tuple[str, tuple[Offer, ...]]:
    """The suite with `old` written as `new`, in which | is the cursor; and what is offered there."""
    assert SUITE.count(old) == 1, old
    marked = SUITE.replace(old, new.replace("|", "\0"))
    at = marked.index("\0")
    text = marked[:at] + marked[at + 1 :]
    return text, complete_suite(text, at, ("shop", "other"), Seen())


@pytest.mark.parametrize(
    ("old", "new", "offered"),
    [
        ("name: 𝄞 x\n", "name: 𝄞 x\n|\n", ["description", "tags", "defaults", "gate"]),
        ("agent: shop\n", "agent: |\n", ["shop", "other"]),
        ("version: v1}", "version: |}", ["v1", "v2"]),
        ("version: v1}", "version: v1, |}", ["pace", "seed", "description"]),
        ("kind: openai\n", "kind: o|\n", ["demo", "openai"]),
        ("    model: m\n", "    model: m\n    |\n", ["base_url", "temperature"]),
        ("    dataset: {", "    |\n    dataset: {", ["name", "category", "variables"]),
        ("    dataset: {", "    category: |\n    dataset: {", ["happy_path", "edge_case", "negative"]),
        ("  - id: two\n", "  - |\n  - id: two\n", ["id", "name", "prompt"]),
        ("      - name: native\n", "      - |\n      - name: native\n", ["name", "prototype_class"]),
        ("prototype_class: ToolResponse", "prototype_class: |", ["JsonResponse", "ToolResponse"]),
        ("            - type: ToolCheck\n", "            - type: |\n", ["ToolCheck", "TextMatch"]),
        ("            - type: ToolCheck\n", "            - |\n            - type: ToolCheck\n", ["type", "ToolCheck"]),
        ("name: get_order}", "name: |}", ["get_order", "refund"]),
        ("name: get_order}", "name: get_order, |}", ["arguments", "min_calls"]),
        ("name: get_order}", "name: get_order, arguments: {|}}", ["order_id"]),
        ("name: get_order}", "name: get_order, arguments: {order_id: |}}", ["#W1"]),
        ("contains: x}", "|: x}", ["contains_all", "equals"]),
        ('"contains": "😀"', '"contains": "😀", |', ["contains_all", "equals"]),
        ('"contains": "😀"', '"contains": |', ["It's “here”"]),
        ('{"type": "TextMatch", "contains": "😀"}', '{"type": "|"}', ["TextMatch", "Regex"]),
        ('\\"pattern\\": \\"a\\"', '\\"pattern\\": \\"a\\", |', ["flags", "not"]),
        ('\\"type\\": \\"Regex\\"', '\\"type\\": |', ["Regex"]),
        ('"max_words": 5', '"max_words": 5, |', ["min_words"]),
    ],
)
def test_what_is_offered_where(old: str, new: str, offered: list[str]) -> None:
    text, offers = ask(old, new)
    labels = [one.label for one in offers]
    assert [one for one in offered if one in labels] == offered, labels
    # Whatever is taken, the suite is still one, with all its tests and criteria.
    for one in [one for one in offers if one.label in offered]:
        after = load_text(apply_edits(text, one.edits), "x.suite.yaml")
        assert isinstance(after.root, MappingNode)
        assert after.whole, (one, apply_edits(text, one.edits))


@pytest.mark.parametrize("new", ["# |\n    dataset: {", "# a |comment\n    dataset: {"])
def test_nothing_is_offered_in_a_comment(new: str) -> None:
    assert ask("    dataset: {", f"    {new}")[1] == ()


def test_what_is_offered_in_a_text_config_is_the_apps_and_is_written_as_the_text_is() -> None:
    text, offers = ask('"contains": "😀"}]\n', '"contains": "😀"}, {"type": "TextMatch", "contains": |}]\n')
    (one,) = [one for one in offers if one.kind == "text"]
    assert '"contains": "It\'s “here”"}]' in apply_edits(text, one.edits)
    text, offers = ask("'{\"metrics\": [{\"type\": \"Length\", \"max_words\": 5}]}'",
                       "'{\"metrics\": [{\"type\": \"TextMatch\", \"contains\": |}]}'")  # fmt: skip
    (one,) = [one for one in offers if one.kind == "text"]
    assert "\"It''s “here”\"}]}'" in apply_edits(text, one.edits)


@pytest.mark.parametrize(
    ("at", "title", "said"),
    [
        ("prompt: ", "prompt", "Jinja2"),
        ("prototype_class: Tool", "prototype_class", "criterion"),
        ("version: v1", "version", "Two versions"),
        ("type: ToolCheck", "type", "metric"),
        ("ToolCheck\n", "ToolCheck", "Checks the tool calls"),
        ("tools: [{", "tools", "one entry per tool"),
        ('TextMatch", "contains": "😀', "TextMatch", "Compares the text"),
        ('contains": "😀"', "contains", "text contains this"),
        ('pattern\\"', "pattern", "PHP's style"),
        ('max_words"', "max_words", "At most"),
        ("contains: x", "contains", "text contains this"),
        ("dataset: {", "dataset", "file with rows"),
    ],
)
def test_what_is_explained(at: str, title: str, said: str) -> None:
    found = explain_suite(SUITE, SUITE.index(at) + 1)
    assert found is not None
    assert found.lines[0].partition(":")[0] == title
    assert said in " ".join(found.lines)
    assert title in SUITE[found.start : found.end]


def fixed(loaded: LoadedSuite) -> str:
    """All that F4 would fix, fixed one after the other."""
    for _ in range(9):
        fix = next(config_fixes(loaded, 0, len(loaded.text)), None)
        if fix is None:
            return loaded.text
        loaded = load_text(apply_edits(loaded.text, fix.fix.edits), loaded.path)
    return loaded.text


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
def test_fixes_are_the_apps_however_the_config_is_written(eol: str) -> None:
    wrong = SUITE.replace('"contains": "😀"', '"containz": "😀"').replace('\\"pattern\\"', '\\"patern\\"')
    wrong = wrong.replace("tools: [{name", "toolz: [{name").replace('"max_words"', '"max_word"')
    wrong = (
        wrong.replace("contains: x", "contains_any: x").replace("prompt: q", "prompt: Where is #W1").replace("\n", eol)
    )
    right = SUITE.replace("contains: x", 'contains_any: ["x"]').replace("name: get_order", 'name: "get_order"')
    right = right.replace("prompt: q", 'prompt: "Where is #W1"')
    assert fixed(load_text(wrong, "x.suite.yaml")) == right.replace("\n", eol)
    loaded = load_text(wrong, "x.suite.yaml")
    codes = {problem.code for problem in check_suite(loaded, {})}
    places = {(one.code, loaded.text[one.start : one.end]) for one in config_fixes(loaded, 0, len(wrong))}
    assert {code for code, _ in places} <= codes
    assert ("unknown-property", '"containz"') in places
    here = loaded.text.index("toolz")
    assert [one.fix.title for one in config_fixes(loaded, here, here)] == ["rename it to tools"]


def test_layout_touches_text_configs_only() -> None:
    messy = SUITE.replace('"contains": "😀"}]', '  "contains":"😀"}   ]')
    loaded = load_text(messy, "x.suite.yaml")
    assert apply_edits(messy, format_suite(loaded)) == SUITE
    assert format_suite(load_text(SUITE, "x.suite.yaml")) == ()
    broken = load_text(SUITE.replace('"contains": "😀"}]', '"contains": "😀"}'), "x.suite.yaml")
    assert format_suite(broken) == ()


def test_definitions(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("a\n1\n")
    text = SUITE.replace('{"type": "Length", "max_words": 5}', '{"type": "Judge", "judge": "other"}')
    loaded = load_text(text, tmp_path / "x.suite.yaml")
    for place, key in (("shop\nagents", "shop: {"), ('other"}]', "other:\n")):
        target = definition(loaded, text.index(place) + 1)
        assert target is not None
        assert (target.path, target.text[target.start :].startswith(key)) == (loaded.path, True)
    target = definition(loaded, text.index("rows.csv") + 1)
    assert target is not None
    assert target.path == (tmp_path / "rows.csv").resolve()
    assert definition(loaded, text.index("Where is it")) is None
    assert definition(load_text("agent: nobody", tmp_path / "x.suite.yaml"), 8) is None
    agents = directories.config_dir() / "agents.yaml"
    agents.parent.mkdir(parents=True)
    agents.write_text("agents: {𝄞: {kind: demo}, mine: {kind: demo}}\n", "utf-8")
    target = definition(load_text("agent: mine", tmp_path / "x.suite.yaml"), 8)
    assert target is not None
    assert (target.path, target.text[target.start : target.end]) == (agents, "mine")


def test_no_text_is_too_broken() -> None:
    """Whatever stands there while somebody types, nothing is raised."""
    chance = random.Random(3)
    for _ in range(60):
        start = chance.randrange(len(SUITE))
        text = (
            SUITE[:start]
            + chance.choice(["", '"', "{", ": ", "\t", "*a", "- ", "😀", "\n", "'"])
            + SUITE[start + chance.randrange(9) :]
        )
        at = min(len(text), start + chance.randrange(3))
        complete_suite(text, at)
        explain_suite(text, at)
        loaded = load_text(text, "x.suite.yaml")
        list(config_fixes(loaded, at, at))
        definition(loaded, at)
    for text in ("", "\n", "[]", "x", "tests: 5", "\x00", "{{", "tests:\n  - criteria: [{config_uxon: {{}}}]\n"):
        for at in range(len(text) + 1):
            complete_suite(text, at)
            explain_suite(text, at)
            format_suite(load_text(text, "x.suite.yaml"))
