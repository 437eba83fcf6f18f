"""Agents, their variables, `.env` files and tool files."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.agents_file import load_agents, read_agents_file, resolve_agent
from agenteval_tui.suites.env_files import read_dotenv
from agenteval_tui.suites.environment import environment_for, expand
from agenteval_tui.suites.model import AgentConfig, Suite
from agenteval_tui.suites.tool_files import load_tools


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${HOST}/v1", "http://x/v1"),
        ("${NOPE:-http://y}", "http://y"),
        ("${EMPTY:-default}", "default"),
        ("${EMPTY-default}", ""),
        ("${EMPTY}", ""),
        ("$${HOST} $HOST", "${HOST} $HOST"),
        ("${HOST}${HOST}", "http://xhttp://x"),
    ],
)
def test_variables_are_put_in(text: str, value: str) -> None:
    assert expand(text, {"HOST": "http://x", "EMPTY": ""}) == value
    assert expand({"a": [text, 5, None], "${HOST}": True}, {"HOST": "http://x", "EMPTY": ""}) == {
        "a": [value, 5, None],
        "${HOST}": True,
    }


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(AgentevalError, match="OPENAI_BASE_URL is not set") as caught:
        expand({"kind": "openai", "base_url": "${OPENAI_BASE_URL}"}, {})
    assert ".env" in caught.value.fix
    with pytest.raises(AgentevalError, match="is not an environment variable"):
        expand("${not a name}", {})


def test_what_is_put_in_is_not_read_again() -> None:
    assert expand("${A}", {"A": "${B}", "B": "x"}) == "${B}"


def test_dotenv_files(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "# comment\n\nexport A=1\nB = 'single $x # no comment' # yes\nC=\"two\\nlines\"\nD=plain # note\nE=\nF=a#b\n"
        "HOST=from-file\n",
        encoding="utf-8-sig",
    )
    assert read_dotenv(tmp_path / ".env") == {
        "A": "1", "B": "single $x # no comment", "C": "two\nlines", "D": "plain", "E": "", "F": "a#b",
        "HOST": "from-file",
    }  # fmt: skip
    assert environment_for(tmp_path, {"HOST": "from-environment"})["HOST"] == "from-environment"
    assert environment_for(tmp_path / "nowhere", {"X": "1"}) == {"X": "1"}
    (tmp_path / ".env").write_text("A=1\nsecret-without-name\n")
    with pytest.raises(AgentevalError) as caught:
        read_dotenv(tmp_path / ".env")
    assert caught.value.where.endswith(".env:2:1")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=$B", "$B"),
        ('A="${B}"', "${B}"),
        ("A=sk-abc#def", "sk-abc#def"),
        ("A = x # note", "x"),
        ('A="x" # note', "x"),
        ("A='it\\'s'", "it's"),
        ('A="say \\"hi\\""', 'say "hi"'),
        ('A="-----BEGIN KEY-----\nabc\n-----END KEY-----"', "-----BEGIN KEY-----\nabc\n-----END KEY-----"),
        ("A=a\u2028b", "a\u2028b"),
        ("A==b", "=b"),
        ("export A=b\r", "b"),
    ],
)
def test_a_value_of_a_dotenv_file(line: str, value: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"B=1\n{line}\nC=2\n", encoding="utf-8", newline="")
    assert read_dotenv(tmp_path / ".env") == {"B": "1", "A": value, "C": "2"}


@pytest.mark.parametrize("line", ['A="secret', "A='secret", "secret", "A: secret", "=secret", 'A="x" secret'])
def test_what_a_dotenv_file_may_not_hold_is_said_by_its_place_alone(line: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(f"# one\n\n{line}\nB=2\n")
    with pytest.raises(AgentevalError) as caught:
        read_dotenv(tmp_path / ".env")
    assert caught.value.where.endswith(".env:3:1")
    assert "secret" not in str(caught.value)


def test_the_users_agents(tmp_path: Path) -> None:
    assert load_agents(tmp_path) == {}
    path = tmp_path / "agents.yaml"
    path.write_text("agents:\n  mine: {kind: openai, model: 4, temperature: 0.5}\n")
    agents = load_agents(tmp_path)
    assert agents["mine"].as_dict() == {"kind": "openai", "model": 4, "temperature": 0.5}
    path.write_text("mine: {kind: demo}\nother: {knd: demo}\n")
    with pytest.raises(AgentevalError, match='agent "other" has no kind'):
        load_agents(tmp_path)
    good, problems = read_agents_file(path)
    assert list(good) == ["mine"]
    assert [(one.line, one.column, one.code) for one in problems] == [(2, 9, "missing-required")]


def test_a_name_stands_for_the_suites_agent_first() -> None:
    own = AgentConfig(kind="demo")
    suite = Suite(agent="a", agents={"a": own})
    user = {"a": AgentConfig(kind="openai"), "shop/sql": AgentConfig(kind="replay")}
    assert resolve_agent(None, suite, user) is own
    assert resolve_agent("a", None, user).kind == "openai"
    assert resolve_agent("shop/sql", suite, user).kind == "replay"
    with pytest.raises(AgentevalError) as caught:
        resolve_agent("shop/sq", suite, user)
    assert caught.value.fix == "did you mean shop/sql?"
    with pytest.raises(AgentevalError, match="no agent given"):
        resolve_agent(None, None, user)
    with pytest.raises(AgentevalError, match='there is no agent "x"'):
        resolve_agent("x", Suite(), {})


def test_tools_in_place_and_in_a_file(tmp_path: Path) -> None:
    tools = [{"name": "get_order", "parameters": {"type": "object"}}]
    (tmp_path / "tools.yaml").write_text("- {name: get_order, parameters: {type: object}}\n")
    (tmp_path / "wrapped.yaml").write_text("tools:\n  - {type: function, function: {name: x}}\n")
    assert load_tools(tools, tmp_path) == load_tools("tools.yaml", tmp_path) == tools
    assert load_tools("wrapped.yaml", tmp_path) == [{"name": "x"}]
    assert load_tools(None, tmp_path) == []


@pytest.mark.parametrize(
    ("tools", "said"),
    [
        ("../outside.yaml", "outside the suite's folder"),
        ("/etc/passwd", "outside the suite's folder"),
        ("link.yaml", "outside the suite's folder"),
        ("absent.yaml", "there is no such file"),
        ("broken.yaml", "is not closed"),
        ("text.yaml", "no list of tools"),
        ([{"nam": "x"}], "tool 1 has no name"),
        ([{"python": "lookup"}], "tool 1: `python` is written package.module:name"),
        (5, "tools must be a list"),
    ],
)
def test_tools_that_can_not_be_read(tmp_path: Path, tools: object, said: str) -> None:
    folder = tmp_path / "suite"
    folder.mkdir()
    (tmp_path / "outside.yaml").write_text("- {name: x}\n")
    (folder / "link.yaml").symlink_to(tmp_path / "outside.yaml")
    (folder / "broken.yaml").write_text("- {name: x\n")
    (folder / "text.yaml").write_text("just text\n")
    with pytest.raises(AgentevalError) as caught:
        load_tools(tools, folder)
    assert said in str(caught.value)


def test_files_of_tools_that_no_path_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for name, why in (("a/tools.yaml", "a"), ("a", "a"), ("tools\0.yaml", "no name holds such a character")):
        for trusted in (False, True):
            with pytest.raises(AgentevalError) as caught:
                load_tools(name, tmp_path, trusted=trusted)
            assert why in caught.value.what
            assert "\0" not in str(caught.value)
