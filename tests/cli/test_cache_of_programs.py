"""`run --cache`: an answer is used again only while the program that gave it is the same."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SUITE = """\
name: words
agent: own
agents:
  own: AGENT
tests:
  - id: says
    prompt: which word?
    criteria:
      - {name: any, prototype_class: TextResponse, config_uxon: {metrics: [{type: Length, min_chars: 1}]}}
"""
COMMAND = "{kind: command, command: [python3, agent.py], output: text}"
FUNCTION = "{kind: python, callable: 'agent:main'}"
AGENT = """\
from lib import helper

def main(messages):
    return helper.WORD

if __name__ == "__main__":
    print(helper.WORD)
"""


# A command is a process of its own: Python runs old bytecode where a source was saved twice in a second in one size.
@pytest.mark.parametrize(("agent", "other_word"), [(COMMAND, "another"), (FUNCTION, "two")])
def test_a_changed_helper_is_asked_again(
    tmp_path: Path, program: Callable[..., subprocess.CompletedProcess[str]], agent: str, other_word: str
) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "words.suite.yaml").write_text(SUITE.replace("AGENT", agent))

    def said(word: str) -> tuple[bool, str]:
        (tmp_path / "lib" / "helper.py").write_text(f"WORD = {word!r}\n")
        done = program(
            "run", "words.suite.yaml", "--trust", "--cache", "--json", "-", "--db", "history.db", cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
        assert "--cache can't tell" not in done.stderr
        (run,) = json.loads(done.stdout)["runs"]
        return run["attempts"] == 0, run["final_output"].strip()

    assert said("one") == (False, "one")
    assert said("one") == (True, "one")
    assert said(other_word) == (False, other_word)


def test_where_nobody_can_tell_it_says_so(
    tmp_path: Path, program: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    agent = "{kind: http, url: 'http://127.0.0.1:1/', max_attempts: 1}"
    suite = tmp_path / "words.suite.yaml"
    said = "--cache can't tell whether the program of own changed (it runs elsewhere)"
    for text, told in ((agent, True), (agent.replace("max_", "revision: a1b2, max_"), False)):
        suite.write_text(SUITE.replace("AGENT", text))
        plan = program("run", suite, "--trust", "--cache", "--plan", "--db", tmp_path / "history.db")
        assert (said in " ".join(plan.stdout.split())) == told
        done = program("run", suite, "--trust", "--cache", "--db", tmp_path / "history.db")
        assert (said in done.stderr) == told
    plain = program("run", suite, "--trust", "--db", tmp_path / "history.db")
    assert "--cache" not in plain.stderr
