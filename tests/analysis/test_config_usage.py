"""Which words configs use."""

from __future__ import annotations

from pathlib import Path

from agenteval_tui.analysis.config_usage import words_of, words_used
from agenteval_tui.history.store import Store
from agenteval_tui.suites.load import load_suite

SUITE = """name: Words
tests:
  - id: one
    prompt: Hello
    criteria:
      - {name: A, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: hello}]}}
      - name: B
        prototype_class: TextResponse
        config_uxon: '{"metrics": [{"type": "TextMatch", "contains": "bye"} // "Tokens"
          ]}'
"""


def test_words_are_counted_in_configs_of_both_makes(tmp_path: Path) -> None:
    file = tmp_path / "words.suite.yaml"
    file.write_text(SUITE, encoding="utf-8")
    with Store.open(tmp_path / "history.db") as store:
        used = words_used(store, [load_suite(file)])
    assert used["TextMatch"] == used["contains"] == used["type"] == 2
    assert used["Tokens"] == 0, "a comment uses nothing"


def test_a_broken_config_has_words_and_long_texts_are_none() -> None:
    assert words_of('{"a": ["b", ') == ["a", "b"]
    assert words_of('{"a": "' + "x" * 100 + '"}') == ["a"]
