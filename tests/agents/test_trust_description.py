"""What a configuration would execute, said without executing anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.permission import executes

SERVER = {"mcp": {"command": ["npx", "-y", "a server"], "only": ["x"]}}


@pytest.mark.parametrize(
    ("config", "context", "said"),
    [
        ({"kind": "demo"}, {}, ()),
        ({"kind": "openai", "tools": "builtin:demo-shop"}, {}, ()),
        ({"kind": "openai", "tools": [{"name": "f", "sample_response": "x"}]}, {}, ()),
        ({"kind": "command", "command": ["./agent.sh", "a b"]}, {}, ("command: ./agent.sh 'a b'",)),
        ({"kind": "command", "command": "a | b", "shell": True}, {}, ("command: a | b (by a shell)",)),
        (
            {"kind": "python", "callable": "m:f", "python": "v/bin/python"},
            {},
            ("python agent m:f (with v/bin/python)",),
        ),
        ({"kind": "openai", "tools": [{"name": "f", "python": "lookup:find"}]}, {}, ("python tool lookup:find",)),
        (
            {"kind": "openai", "tools": [{"name": "f", "python": "m:f", "interpreter": "./py"}]},
            {},
            ("python tool m:f (with ./py)",),
        ),
        ({"kind": "anthropic", "tools": [{"name": "f", "command": ["./f"]}]}, {}, ("tool f: ./f",)),
        ({"kind": "openai", "tools": [SERVER, SERVER]}, {}, ("MCP server npx -y 'a server'",)),
        ({"kind": "openai", "tools": [{"mcp": {"url": "https://x/mcp"}}]}, {}, ()),
        ({"kind": "openai", "tools": "${TOOLS}"}, {}, ("all tools that the file ${TOOLS} declares",)),
        ({"kind": "openai"}, {"sample_tools": {"f": {"command": "./f"}}}, ("tool f: ./f",)),
        ({"kind": "openai"}, {"sample_tools": [{"function": {"name": "f", "python": "m:f"}}]}, ("python tool m:f",)),
        ({"kind": "openai", "tools": 3}, {"sample_tools": 7}, ()),
        ({"kind": "openai", "tools": "absent.yaml"}, {"sample_tools": ["x"]}, ()),
        ({"kind": "command"}, {}, ("command: ",)),
    ],
)
def test_what_would_be_executed(config: dict[str, Any], context: dict[str, Any], said: tuple[str, ...]) -> None:
    assert executes(config, Path(), context) == said


def test_a_file_of_tools_is_read_wherever_it_is(tmp_path: Path) -> None:
    suite = tmp_path / "suite"
    suite.mkdir()
    for place in (suite, tmp_path):
        (place / "tools.yaml").write_text("- {name: f, command: [./f.sh]}\n- {mcp: {command: node server.js}}\n")
        name = "tools.yaml" if place == suite else "../tools.yaml"
        assert executes({"kind": "openai", "tools": name}, suite, {}) == ("tool f: ./f.sh", "MCP server node server.js")
