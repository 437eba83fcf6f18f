"""Which `.env` a suite's variables come from, and what is taken from it."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.env_files import env_files, loads_code, search_folders
from agenteval_tui.suites.environment import environment_for


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A git repository with suites in evals/shop."""
    (tmp_path / ".env").write_text("WHERE=outside\n")
    root = tmp_path / "repository"
    (root / ".git").mkdir(parents=True)
    (root / "evals" / "shop").mkdir(parents=True)
    return root


def test_the_nearest_file_up_to_the_root_of_the_repository_counts(repository: Path) -> None:
    suite = repository / "evals" / "shop"
    assert env_files(suite).files == ()
    assert env_files(suite).write_to == repository / ".env"
    assert "WHERE" not in environment_for(suite, {})

    (repository / ".env").write_text("WHERE=root\nROOT=1\n")
    assert environment_for(suite, {}) == {"WHERE": "root", "ROOT": "1"}

    (repository / "evals" / ".env").write_text("WHERE=evals\n")
    assert environment_for(suite, {}) == {"WHERE": "evals"}, "two files are not mixed"
    assert env_files(suite).files == (repository / "evals" / ".env",)
    assert env_files(suite).searched == (suite, repository / "evals")


def test_what_is_set_in_the_environment_wins(repository: Path) -> None:
    (repository / ".env").write_text("A=file\nB=file\n")
    assert environment_for(repository / "evals", {"A": "set", "C": ""}) == {"A": "set", "B": "file", "C": ""}


def test_a_folder_or_a_pipe_of_that_name_is_not_a_file_of_variables(repository: Path) -> None:
    (repository / "evals" / ".env").mkdir()  # a virtual environment may be called that
    (repository / ".env").write_text("A=1\n")
    assert environment_for(repository / "evals", {}) == {"A": "1"}


def test_without_a_repository_the_project_is_where_its_files_are(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "evals").mkdir(parents=True)
    (tmp_path / ".env").write_text("A=outside\n")
    (project / ".env").write_text("A=project\n")
    assert env_files(project / "evals").files == ()
    (project / "pyproject.toml").write_text("[project]\nname = 'x'\n")
    assert environment_for(project / "evals", {}) == {"A": "project"}
    assert search_folders(project / "evals") == (project / "evals", project)


def test_neither_the_home_folder_nor_that_of_temporary_files_is_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / "suites").mkdir(parents=True)
    (home / "pyproject.toml").touch()
    monkeypatch.setenv("HOME", str(home))
    assert search_folders(home / "suites") == (home / "suites",)


def test_an_agent_names_other_files(repository: Path) -> None:
    suite = repository / "evals" / "shop"
    (suite / ".env").write_text("A=near\n")
    (repository / "base.env").write_text("A=base\nB=base\n")
    (repository / "evals" / "more.env").write_text("B=more\n")
    assert environment_for(suite, {}, {"env_file": "../../base.env"}) == {"A": "base", "B": "base"}
    both = {"env_file": ["../../base.env", "../more.env"]}
    assert environment_for(suite, {}, both) == {"A": "base", "B": "more"}
    assert env_files(suite, both).write_to == repository / "evals" / "more.env"


def test_a_named_file_must_be_there_and_in_the_repository(repository: Path) -> None:
    with pytest.raises(AgentevalError, match=r"gone\.env, which does not exist"):
        env_files(repository, {"env_file": "gone.env"})
    with pytest.raises(AgentevalError, match="outside of"):
        env_files(repository / "evals", {"env_file": "../../.env"})
    (repository / "link.env").symlink_to(repository.parent / ".env")
    with pytest.raises(AgentevalError, match="outside of"):
        env_files(repository, {"env_file": "link.env"})


def test_langgraph_names_its_own(repository: Path) -> None:
    graph = repository / "apps" / "graph"
    (graph / "evals").mkdir(parents=True)
    (graph / ".env").write_text("A=dotenv\n")
    (graph / "secrets.env").write_text("A=named\n")
    (graph / "langgraph.json").write_text(json.dumps({"env": "./secrets.env", "graphs": {}}))
    assert environment_for(graph / "evals", {}) == {"A": "named"}

    (graph / "langgraph.json").write_text(json.dumps({"env": {"A": "inline", "N": 1, "PYTHONPATH": "x"}}))
    found = env_files(graph / "evals")
    assert found.variables == {"A": "inline", "N": "1"}
    assert (found.files, found.refused) == ((graph / "langgraph.json",), ("PYTHONPATH",))

    for other in ({"env": "absent.env"}, {"env": "../../../outside.env"}, {"env": 5}, {}, []):
        (graph / "langgraph.json").write_text(json.dumps(other))
        assert environment_for(graph / "evals", {}) == {"A": "dotenv"}, other
    (graph / "langgraph.json").write_text("{ no json")
    assert environment_for(graph / "evals", {}) == {"A": "dotenv"}


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "DYLD_INSERT_LIBRARIES", "GCONV_PATH"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONINSPECT", "PYTHONBREAKPOINT"),
        *("PYTHONWARNINGS", "NODE_OPTIONS", "NODE_PATH", "PERL5OPT", "PERL5LIB", "RUBYOPT", "RUBYLIB", "CLASSPATH"),
        *("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "DOTNET_STARTUP_HOOKS", "BASH_ENV", "PATH", "OPENSSL_CONF"),
        *("GIT_SSH_COMMAND", "VIRTUAL_ENV", "ld_preload", "PythonPath", "CORECLR_PROFILER_PATH", "GOFLAGS"),
    ],
)
def test_what_makes_programs_load_code_is_never_taken(name: str, repository: Path) -> None:
    (repository / ".env").write_text(f"{name}=inj\nMODEL=small\n")
    found = env_files(repository / "evals")
    assert found.variables == {"MODEL": "small"}
    assert found.refused == (name,)
    (repository / "other.env").write_text(f"{name}=inj\n")
    assert environment_for(repository, {}, {"env_file": "other.env"}) == {}
    assert environment_for(repository, {name: "set"})[name] == "set"


@pytest.mark.parametrize(
    "name",
    [
        *("OPENAI_API_KEY", "DATABASE_URL", "NODE_ENV", "PYTHON_ENV", "PYTHONUNBUFFERED", "LD_SDK_KEY", "MODEL"),
        *("PORT", "DEBUG", "PYTHONIOENCODING", "PATHS", "MY_PATH", "LANGSMITH_TRACING", "SHELLS"),
    ],
)
def test_other_variables_are_taken(name: str) -> None:
    assert not loads_code(name)


CREDENTIALS = ("_KEY", "_TOKEN", "_TOKENS", "_SECRET", "_PASSWORD", "_PASSWD", "_ID", "_USER", "_USERNAME", "_EMAIL")


@given(st.text(string.ascii_uppercase + "_", min_size=1, max_size=12))
@example("KEY")
@example("_KEY")
def test_every_variable_of_the_loader_is_refused(rest: str) -> None:
    assert loads_code(f"LD_{rest}") or f"LD_{rest}".endswith(CREDENTIALS)  # LaunchDarkly has LD_SDK_KEY
    assert loads_code(f"DYLD_{rest}")


def test_a_missing_variable_belongs_into_the_nearest_project(repository: Path) -> None:
    suites = repository / "samples" / "shop" / "evals"
    suites.mkdir(parents=True)
    assert env_files(suites).write_to == repository / ".env"
    (repository / "samples" / "shop" / "requirements.txt").touch()
    assert env_files(suites).write_to == repository / "samples" / "shop" / ".env"
    (repository / ".env").write_text("MODEL=small\n")
    assert env_files(suites).write_to == repository / ".env", "where the others are"
