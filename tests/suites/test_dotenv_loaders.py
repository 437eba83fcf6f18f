"""A folder's `.env` gives values, and nothing that makes a program load code."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval_tui.suites.env_files import env_files
from agenteval_tui.suites.environment import environment_for


@pytest.mark.parametrize(
    "name",
    ["LD_PRELOAD", "ld_library_path", "DYLD_INSERT_LIBRARIES", "PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PATH",
     "NODE_OPTIONS", "RUBYOPT", "PERL5OPT", "JAVA_TOOL_OPTIONS", "BASH_ENV", "GIT_SSH_COMMAND",
     "GIT_CONFIG_COUNT", "R_PROFILE_USER", "PYTHONBREAKPOINT", "NPM_CONFIG_SCRIPT_SHELL"],
)  # fmt: skip
def test_what_makes_loaders_load_is_not_taken_from_a_dotenv(tmp_path: Path, name: str) -> None:
    (tmp_path / ".env").write_text(f"{name}=inj\nSHOP_TOKEN=abc\nNODE_ENV=test\n")
    assert environment_for(tmp_path, {}) == {"SHOP_TOKEN": "abc", "NODE_ENV": "test"}
    assert environment_for(tmp_path, {name: "the user's"})[name] == "the user's"


@pytest.mark.parametrize(
    "name",
    ["GIT_TOKEN", "CARGO_REGISTRY_TOKEN", "UV_PUBLISH_PASSWORD", "PIP_API_KEY", "LD_CLIENT_SIDE_ID", "GIT_AUTHOR_EMAIL",
     "BUNDLE_GITHUB_TOKEN", "DENO_AUTH_TOKENS"],
)  # fmt: skip
def test_what_somebody_signs_in_with_is_taken(tmp_path: Path, name: str) -> None:
    (tmp_path / ".env").write_text(f"{name}=abc\n")
    assert environment_for(tmp_path, {}) == {name: "abc"}


@pytest.mark.parametrize(
    "name", ["GIT_CONFIG_KEY_0", "GIT_ASKPASS", "PIP_INDEX_URL", "CARGO_TARGET_X_RUNNER", "COR_PROFILER_PATH"]
)
def test_what_only_looks_like_it_is_not(tmp_path: Path, name: str) -> None:
    (tmp_path / ".env").write_text(f"{name}=abc\n")
    assert environment_for(tmp_path, {}) == {}


@pytest.mark.parametrize("value", ["dev", "production", "us-east-1.test", ""])
def test_env_is_taken_when_its_value_is_a_word(tmp_path: Path, value: str) -> None:
    (tmp_path / ".env").write_text(f"ENV={value}\n")
    (tmp_path / "dev").mkdir()
    assert env_files(tmp_path).variables == {"ENV": value}


@pytest.mark.parametrize("value", ["./dev", "/tmp/x.sh", "'$HOME'", "'`id`'", "~root", "start.sh", "'a b'", "d\u00e9v"])
def test_env_is_not_taken_when_a_shell_could_read_it_as_a_script(tmp_path: Path, value: str) -> None:
    (tmp_path / ".env").write_text(f"ENV={value}\n", encoding="utf-8")
    (tmp_path / "start.sh").touch()
    assert (env_files(tmp_path).variables, env_files(tmp_path).refused) == ({}, ("ENV",))


def test_env_is_not_taken_when_a_folder_above_has_such_a_file(tmp_path: Path) -> None:
    evals = tmp_path / "evals"
    evals.mkdir()
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "dev").touch()
    (evals / ".env").write_text("ENV=dev\n")
    assert env_files(evals).refused == ("ENV",)
