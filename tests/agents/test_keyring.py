"""Keys out of the system's keyring, by a backend of the real package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripted import Answer, ScriptedServer

from agenteval_tui.agents.base import AgentSetup
from agenteval_tui.agents.http.client_factory import NoWayError, api_key
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.agents.tools.mcp import McpServer
from agenteval_tui.agents.tools.options import McpServerOptions
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites import environment
from agenteval_tui.suites.environment import key_from

keyring = pytest.importorskip("keyring")
backend = pytest.importorskip("keyring.backend")
errors = pytest.importorskip("keyring.errors")


class Memory(backend.KeyringBackend):  # type: ignore[misc, name-defined]
    """A keyring of the real package that keeps everything in memory."""

    priority = 1

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[tuple[str, str], str] = {}
        self.asked: list[str] = []
        self.error: Exception | None = None

    def get_password(self, service: str, username: str) -> str | None:
        self.asked.append(username)
        if self.error is not None:
            raise self.error
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.kept[service, username] = password


@pytest.fixture
def memory() -> Iterator[Memory]:
    before = keyring.get_keyring()
    made = Memory()
    keyring.set_keyring(made)
    environment._from_keyring.cache_clear()
    yield made
    keyring.set_keyring(before)
    environment._from_keyring.cache_clear()


def test_a_key_out_of_the_keyring(memory: Memory) -> None:
    keyring.set_password("agenteval", "MY_KEY", "from-the-keyring\n")
    keyring.set_password("somebody-else", "OTHER", "not-ours")
    assert key_from("MY_KEY", {"MY_KEY": " from-env "}) == "from-env"
    assert memory.asked == [], "what the environment has is not asked for"
    assert key_from("MY_KEY", {}) == key_from("MY_KEY", {"MY_KEY": ""}) == "from-the-keyring"
    assert memory.asked == ["MY_KEY"], "once for each name"
    assert key_from("OTHER", {}) is None
    assert key_from("", {}) is None
    assert secrets_of({"kind": "x", "api_key_env": "MY_KEY"}, {}) == ("from-the-keyring",)
    keyring.set_password("agenteval", "OPENAI_API_KEY", "sk-of-the-keyring")
    assert secrets_of({"kind": "openai"}, {}) == ("sk-of-the-keyring",), "a kind's own key too"


def test_a_keyring_that_can_not_be_read(memory: Memory) -> None:
    memory.error = errors.KeyringLocked("the secret is hunter2")
    with pytest.raises(AgentevalError, match="MY_KEY can't be read from the keyring") as caught:
        key_from("MY_KEY", {})
    assert "hunter2" not in str(caught.value)
    assert secrets_of({"kind": "x", "api_key_env": "MY_KEY"}, {}) == ()
    memory.error = errors.NoKeyringError()
    assert key_from("MY_KEY", {}) is None


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    environment._from_keyring.cache_clear()
    assert key_from("NOBODY_HAS_THIS", {}) is None
    environment._from_keyring.cache_clear()


def test_an_agents_key_comes_from_the_keyring(memory: Memory) -> None:
    keyring.set_password("agenteval", "MY_KEY", "from-the-keyring")
    assert api_key(AgentSetup("a", {}, Path()), "MY_KEY") == "from-the-keyring"
    assert api_key(AgentSetup("a", {}, Path()), "") == ""
    with pytest.raises(NoWayError, match="OTHER is not set"):
        api_key(AgentSetup("a", {}, Path()), "OTHER")
    memory.error = errors.KeyringLocked()
    with pytest.raises(NoWayError, match="THIRD can't be read from the keyring"):
        api_key(AgentSetup("a", {}, Path()), "THIRD")


@pytest.mark.xdist_group("mcp")
async def test_a_tool_servers_key_comes_from_the_keyring(memory: Memory, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    keyring.set_password("agenteval", "TOOLS_KEY", "from-the-keyring")
    async with ScriptedServer(lambda asked: Answer(401, f"bad key {asked.headers['authorization']}")) as server:
        options = McpServerOptions(url=f"{server.url}/mcp", api_key_env="TOOLS_KEY")
        with pytest.raises(AgentevalError) as caught:
            await McpServer("tools", options, tmp_path, {}).start()
    assert {one.headers["authorization"] for one in server.requests} == {"Bearer from-the-keyring"}
    assert "from-the-keyring" not in str(caught.value)
