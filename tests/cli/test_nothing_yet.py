"""On an empty history, in an empty folder: each verb says that nothing has run, and what to do next."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.cli.verbs import find_verb
from agenteval_tui.core import entry_points

NAMED = ("compare", "label", "why", "show", "causes", "export", "make-test", "report", "stats")
"""Verbs that take a run, an execution or a test by its name."""
OF_EXTENSIONS = tuple(
    verb
    for verb in entry_points.own(entry_points.COMMANDS)
    if (command := find_verb(verb)) is not None
    and any(argument.name in ("reference", "what") for argument in command.params)
)
MORE = {
    "label": ("passed",),
    "export": ("--format", "openai"),
    "triage": ("accept",),
}


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize(
    "verb",
    [*NAMED, *OF_EXTENSIONS, "fork", "resume", "open", "judge-report", "triage"],
)
def test_a_name_is_not_called_unknown_where_nothing_has_run(cli: Any, tmp_path: Path, verb: str) -> None:
    names = ("a", "b") if verb == "compare" else ("abcd",)
    done = cli(verb, *names, *MORE.get(verb, ()), "--db", tmp_path / "none.db")
    assert (done.code, done.out) == (2, "")
    assert "nothing has run yet" in done.err
    assert "agenteval run PATH" in done.err
    assert "agenteval demo" in done.err


@pytest.mark.parametrize("verb", ["history", "flaky", "trends", "judge-report", "review"])
def test_a_list_without_rows_says_that_nothing_has_run(cli: Any, tmp_path: Path, verb: str) -> None:
    done = cli(verb, "--db", tmp_path / "none.db")
    assert done.code == 0
    assert "nothing has run yet" in done.out
    assert "agenteval run PATH" in done.out
    assert "--window" not in done.out, "a longer window would not help"


@pytest.mark.parametrize(
    ("words", "next_step"),
    [
        (("ps",), "agenteval run PATH"),
        (("attach",), "agenteval run PATH"),
        (("cancel",), "agenteval run PATH"),
        (("pause", "abcd"), "agenteval run PATH"),
        (("quarantine",), "agenteval quarantine add TEST"),
        (("trust", "--list"), "agenteval trust"),
        (("baseline",), "agenteval baseline set"),
        (("agents",), "agents.yaml"),
        (("db", "check"), "agenteval run PATH"),
        (("run",), "agenteval init"),
        (("validate",), "agenteval init"),
        (("trends", "."), "agenteval run ."),
    ],
)
def test_what_is_missing_has_a_next_step(cli: Any, tmp_path: Path, words: tuple[str, ...], next_step: str) -> None:
    done = cli(*words, "--db", tmp_path / "none.db")
    assert next_step in done.out + done.err
