"""Agents in words: in lines, in full, and what a check found."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.agents.base import CheckReport, CheckStep
from agenteval_tui.runs.agent_factory import Configured, Surrounding
from agenteval_tui.tui.presenters.view_lines import view_lines
from agenteval_tui.tui.styled_text import plain as plain_line
from agenteval_tui.views import terminal
from agenteval_tui.views.agents import agent_in_full, agents_view, report_view
from agenteval_tui.views.model import View, plain

CONFIG = {"kind": "openai", "description": "The assistant", "model": "gpt-test", "api_key_env": "SHOP_KEY"}
AGENT = Configured("mine", CONFIG, Path("/home/agents.yaml"), 2)
OF_SUITE = Configured("theirs", {"kind": "command", "command": ["python", "agent.py"]}, Path("/s.yaml"), 4, "Shop")
STEPS = (
    CheckStep("reachable", True, latency_ms=41.2),
    CheckStep("key", False, "401: not accepted", 120),
    CheckStep("model", None),
)
GONE = CheckReport(False, "the key is not accepted", 161, "set SHOP_KEY", STEPS)
WELL = CheckReport(True, "answered", 1_500, "nothing")


def printed(view: View) -> list[str]:
    return [plain(line) for line in terminal.lines(view)]


def test_a_line_an_agent_and_below_it_the_steps_of_its_check() -> None:
    assert printed(agents_view((AGENT, OF_SUITE, AGENT), {1: WELL, 2: GONE})) == [
        "mine  openai  The assistant  /home/agents.yaml",
        "✓ theirs  command  answered  1.5 s",
        "! mine  openai  the key is not accepted (set SHOP_KEY)  161 ms",
        "  ✓ reachable    41 ms  yes",
        "  ! key         120 ms  401: not accepted",
        "  · model               unknown",
    ]


def test_an_agent_in_full_names_its_python_and_its_env_file() -> None:
    around = [Surrounding("python", "/p/.venv/bin/python (3.12.1)"), Surrounding(".env", "/p/.env: odd", "correct it")]
    lines = printed(agent_in_full(AGENT, [], [], around))
    assert any(line.split() == ["runs", "with", "/p/.venv/bin/python", "(3.12.1)"] for line in lines), lines
    assert any("/p/.env: odd; correct it" in line for line in lines), lines


def test_an_agent_in_full_says_of_keys_only_whether_they_are_set() -> None:
    assert printed(agent_in_full(AGENT, [("SHOP_KEY", False)], ["not asked for: it is yours"])) == [
        "mine  openai", "The assistant", "", "from      agents.yaml:2, your own", "model     gpt-test",
        "key from  $SHOP_KEY is not set",
    ]  # fmt: skip
    lines = printed(agent_in_full(OF_SUITE, [], ["command: python agent.py", "reads: agent.py"]))
    assert lines[2] == "from      s.yaml:4, suite Shop"
    assert lines[-2:] == ["to trust  command: python agent.py", "          reads: agent.py"]


def test_a_report_says_what_to_do_before_its_steps() -> None:
    lines = printed(report_view(GONE))
    assert lines[:3] == ["! the key is not accepted", "remedy  set SHOP_KEY", ""]
    assert len(lines) == 6
    assert printed(report_view(replace(WELL, fix=""))) == ["✓ answered"]


@pytest.mark.parametrize("width", [12, 30, 64])
def test_nothing_of_it_is_wider_than_a_narrow_pane(width: int) -> None:
    hostile = replace(
        AGENT, name="\x1b[31mred\n" * 9, config={"kind": "k", "description": "語" * 90, "x" * 40: "y" * 90}
    )
    lines = [
        plain_line(line)
        for view in (agent_in_full(hostile, [], []), report_view(GONE))
        for line in view_lines(view, width)
    ]
    assert max(map(terminal.cells, lines)) <= width
    assert not any("\x1b" in line or "\n" in line for line in lines)
