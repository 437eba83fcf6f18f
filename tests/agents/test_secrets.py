"""What is secret in a configuration, and keys out of the system's keyring."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.secrets import is_secret_name, secrets_of

ENV = {
    "MY_KEY": "sk-my-key-123",
    "OPENAI_API_KEY": "sk-openai-123",
    "ANTHROPIC_API_KEY": "sk-ant-12345",
    "SERVICE_TOKEN": "token-123456",
    "BASE_URL": "https://user:pass%2Fword1@host/v1",
    "HOST": "example.org/harmless",
    "DATABASE_URL": "postgres://u:database-pw@host/db",
    "SSH_AUTH_SOCK": "/run/user/1000/sock",
    "SHORT_KEY": "abc",
}


@pytest.mark.parametrize(
    ("config", "secrets"),
    [
        ({"kind": "http", "api_key_env": "MY_KEY"}, {"sk-my-key-123"}),
        ({"kind": "http", "api_key_env": "ABSENT"}, set()),
        ({"kind": "http", "api_key_env": "SHORT_KEY"}, set()),
        ({"kind": "x", "nested": [{"token_env": "MY_KEY"}]}, {"sk-my-key-123"}),
        ({"kind": "x", "server": {"env": ["SERVICE_TOKEN", "HOST"]}}, {"token-123456"}),
        ({"kind": "x", "server": {"env": {"A_TOKEN": "literal-123", "HOST": "harmless-1"}}}, {"literal-123"}),
        ({"kind": "openai"}, {"sk-openai-123"}),
        ({"kind": "anthropic"}, {"sk-ant-12345"}),
        ({"kind": "demo"}, set()),
        ({"kind": "http", "headers": {"Authorization": "Bearer literal-123"}}, {"Bearer literal-123", "literal-123"}),
        ({"kind": "http", "headers": {"X-Trace": "no-secret-at-all"}}, set()),
        ({"kind": "http", "headers": {"X-Api-Key": "${SERVICE_TOKEN}"}}, {"token-123456"}),
        (
            {"kind": "http", "body": {"note": "say ${SERVICE_TOKEN} and ${HOST}"}},
            {"token-123456", "example.org/harmless"},
        ),
        ({"kind": "http", "note": "${ABSENT_TOKEN:-fallback-1}"}, {"fallback-1"}),
        ({"kind": "http", "note": "${ABSENT_TOKEN}"}, set()),
        (
            {"kind": "http", "base_url": "${BASE_URL}"},
            {"pass%2Fword1", "pass/word1"},
        ),
        ({"kind": "http", "url": "https://host/x?api_key=in-the-query&q=harmless-1"}, {"in-the-query"}),
        ({"kind": "http", "url": "http://[broken?a@b"}, set()),
        ({"kind": "http", "headers": {"x-key": "not-needed"}}, set()),
        ({"kind": "http", "max_tokens": "12345678", "api_key_header": "authorization"}, set()),
    ],
)
def test_secrets(config: dict[str, Any], secrets: set[str]) -> None:
    assert set(secrets_of(config, ENV)) == secrets


def test_what_was_sent_and_what_was_expanded_before() -> None:
    sent = {
        "key": "the-key-12",
        "headers": {"Authorization": "Bearer abcdefgh1", "accept": "json-1234", "X-Api-Key": "defghijk1"},
        "query": {"token": "ghi/12345", "api-version": "7"},
        "url": "https://user:pa%20ss-word@host/",
        "body": [{"deep": "x SECRETVALUE y"}],
        "place": "http://h/PUBLICVALUE",
    }
    env = {"MY_SECRET": "SECRETVALUE", "MY_PLACE": "PUBLICVALUE", "OTHER_KEY": "nowhere-in-it"}
    found = secrets_of(sent, env)
    assert set(found) == {
        *("the-key-12", "Bearer abcdefgh1", "abcdefgh1", "defghijk1", "ghi/12345"),
        *("pa%20ss-word", "pa ss-word", "SECRETVALUE"),
    }
    assert list(found) == sorted(found, key=len, reverse=True)


def test_which_texts_are_secret() -> None:
    env = {"MY_KEY": "sk-123456789", "URL": "http://example.org/v1", "PLACE": "s3cret-place", "SHORT_KEY": "abc",
           "WORD_TOKEN": "lm-studio", "PLAIN_KEY": "password"}  # fmt: skip
    written = {
        "kind": "openai", "base_url": "${URL}", "api_key_env": "MY_KEY",
        "headers": {"authorization": "Bearer ${PLACE}", "x-api-key": "wr1tten-here"}, "note": "${SHORT_KEY}",
        "judge": {"api_key_env": "PLAIN_KEY"},
    }  # fmt: skip
    assert set(secrets_of(written, env)) == {"sk-123456789", "Bearer s3cret-place", "s3cret-place", "wr1tten-here"}
    assert secrets_of({"kind": "demo"}, env) == ()


def test_the_secrets_of_a_file_of_tools(tmp_path: Path) -> None:
    (tmp_path / "tools.yaml").write_text("- mcp: {url: 'http://h/mcp', headers: {x-api-key: written-123}}\n")
    assert secrets_of({"kind": "openai", "tools": "tools.yaml"}, {}, tmp_path) == ("written-123",)
    assert secrets_of({"kind": "openai", "tools": "absent.yaml"}, {}, tmp_path) == ()


def test_basic_authentication() -> None:
    encoded = b64encode(b"user:pass-word-1").decode()
    found = secrets_of({"kind": "http", "headers": {"authorization": f"Basic {encoded}"}}, {})
    assert found == (f"Basic {encoded}", encoded, "pass-word-1")


@pytest.mark.parametrize(
    "config", [{"kind": "command"}, {"kind": "python"}, {"kind": "openai", "tools": [{"name": "x"}]}]
)
def test_a_program_knows_the_environment(config: dict[str, Any]) -> None:
    found = set(secrets_of(config, ENV))
    assert found == {"sk-my-key-123", "sk-openai-123", "sk-ant-12345", "token-123456", "pass%2Fword1", "pass/word1",
                     "database-pw"}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("OPENAI_API_KEY", True), ("apiKey", True), ("X-Auth-Token", True), ("authorization", True), ("Cookie", True),
        ("dbPassword", True), ("AWS_SECRET_ACCESS_KEY", True), ("DB_PWD", True), ("GITHUB_PAT", True), ("PAT", True),
        ("PWD", False), ("OLDPWD", False), ("KEYBOARD", False), ("MONKEY", False), ("max_tokens", False),
        ("TOKENIZERS_PARALLELISM", False), ("SSH_AUTH_SOCK", False), ("KEY_FILE", False), ("PATH", False),
        ("GOOGLE_APPLICATION_CREDENTIALS", False), ("AUTHOR", False), ("COMPASS", False), ("api_key_env", False),
    ],
)  # fmt: skip
def test_names(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret


def test_deep_and_odd_configurations() -> None:
    deep: Any = "x"
    for _ in range(3_000):
        deep = [deep]
    assert secrets_of({"kind": 5, "a": deep, "b": None, 7: {"token": "number-key-1"}}, {}) == ("number-key-1",)  # type: ignore[dict-item]
