"""What is copied to be pasted into a shell."""

from __future__ import annotations

import shlex

import pytest
from attacks import ATTACKS

from agenteval_tui.core.display import command_line, one_line


@pytest.mark.parametrize("word", ["; rm -rf ~", "$(id)", "`id`", "it's", "a\nb", "--agent", "", *ATTACKS.values()])
def test_a_name_stays_one_word_of_a_command(word: str) -> None:
    command = command_line("agenteval", "compare", word)
    assert shlex.split(command) == ["agenteval", "compare", one_line(word)]
    assert "\n" not in command
    assert "\x1b" not in command


def test_what_needs_no_quotes_has_none() -> None:
    assert command_line("agenteval", "open", "01ABC/2") == "agenteval open 01ABC/2"
