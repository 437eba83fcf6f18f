"""Texts that a `#` cuts short: warned about, and put into quotes without changing another byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.analysis.edit_validation import check_edit
from agenteval_tui.analysis.lint import check_suite
from agenteval_tui.suites.editing import TestEdit
from agenteval_tui.suites.load import load_suite, load_text
from agenteval_tui.suites.unquoted_hash import cut_texts, quote_cut_text
from agenteval_tui.suites.yaml.save import FileChanged, SaveFailed

SUITE = """\
name: Shop   # the shop's
agent: a
agents:
  a:
    kind: demo
    system: Be kind #always
tests:
  - id: one
    prompt: Where is order #W123?   
    description: &said Found as
      order #1
    repeat: 5 #times
    criteria:
      - name: Says #W123  # a comment behind it
        description: *said
        expected_value: "whole #W123"
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "x"}]}'
  - id: two
    prompt: Say hello. # politely
    criteria: [{name: b, prototype_class: TextResponse, config_uxon: '{"metrics": [{"type": "Json"}]}'}]
"""  # noqa: W291


def test_every_cut_text_is_a_warning_with_its_fix_and_comments_are_none() -> None:
    loaded = load_text(SUITE, "s.suite.yaml")
    found = [one for one in check_suite(loaded, {}) if one.code == "cut-text"]
    assert [(one.severity, one.message.split(":")[0]) for one in found] == [
        ("warning", "the system ends before `#always`"),
        ("warning", "the prompt ends before `#W123?`"),
        ("warning", "the description ends before `#1`"),
        ("warning", "the name ends before `#W123 # a comment behind it`"),
    ]
    assert found[1].line == 9
    assert found[1].fix == 'put it in quotes: "Where is order #W123?"; or write `# ` if a comment is meant'


def test_the_form_says_it_at_its_field() -> None:
    loaded = load_text(SUITE, "s.suite.yaml")
    said = {
        (one.field, one.criterion) for one in check_edit(loaded, "one", TestEdit(), {}) if "ends" in one.problem.message
    }
    assert said == {("prompt", None), ("description", None), ("name", 0)}


def test_the_fix_changes_this_text_alone(tmp_path: Path) -> None:
    file = tmp_path / "s.suite.yaml"
    file.write_text(SUITE, encoding="utf-8")
    loaded = load_suite(file)
    prompt = next(one for one in cut_texts(loaded, loaded.root) if one.key == "prompt")
    saved = quote_cut_text(loaded, prompt.start)
    assert file.read_text(encoding="utf-8") == SUITE.replace(
        "prompt: Where is order #W123?", 'prompt: "Where is order #W123?"'
    )
    assert saved.suite is not None
    assert saved.suite.tests[0].prompt == "Where is order #W123?"
    # A text that goes over two lines and is shared: it is whole in both places.
    shared = next(one for one in cut_texts(saved, saved.root) if one.key == "description")
    again = quote_cut_text(saved, shared.start)
    assert again.suite is not None
    assert again.suite.tests[0].criteria[0].description == "Found as order #1"
    with pytest.raises(SaveFailed, match="no text is cut here"):
        quote_cut_text(again, 0)
    with pytest.raises(FileChanged):
        quote_cut_text(saved, shared.start)
