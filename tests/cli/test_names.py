"""Names, notes, metadata and commits of executions: given, found, shown, changed, and kept by exports and imports."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.directories import history_file
from agenteval_tui.core.errors import AmbiguousError
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store


@pytest.fixture
def named(cli: Any, suite: Path) -> Any:
    """An execution called v2.1 in a repository."""
    git = ("git", "-c", "user.name=kim", "-c", "user.email=kim@localhost", "-c", "commit.gpgsign=false")
    for words in (
        ("init", "--quiet", "--initial-branch=master"),
        ("add", "--all"),
        ("commit", "--quiet", "--message=first"),
    ):
        subprocess.run((*git, *words), cwd=suite.parent, check=True, capture_output=True)
    ran = cli(
        "run", suite, "--name", "v2.1", "--note", "before the <release>", "--meta", "model=mini", "--meta", "temp=0.2",
        "--json", "-",
    )  # fmt: skip
    return ran.json("results")


def head(suite: Path) -> str:
    done = subprocess.run(("git", "rev-parse", "HEAD"), cwd=suite.parent, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_they_are_kept_and_shown(cli: Any, suite: Path, named: Any) -> None:
    assert (named["name"], named["note"]) == ("v2.1", "before the <release>")
    assert named["meta"] == {"model": "mini", "temp": "0.2"}
    (commit,) = named["commits"]
    assert (commit["commit"], commit["dirty"]) == (head(suite), False)
    shown = cli("show", "v2.1").out
    assert "v2.1" in shown
    assert head(suite)[:9] in shown
    assert "model=mini" in shown
    assert "before the <release>" in shown
    listed = cli("history").out
    assert "v2.1" in listed
    assert head(suite)[:9] in listed


def test_a_name_is_an_id_and_means_the_newest(cli: Any, suite: Path, named: Any) -> None:
    second = cli("run", suite, "--name", "v2.1", "--json", "-").json("results")["execution"]
    for name in ("v2.1", "V2.1"):
        assert cli("show", name, "--json").json("results")["execution"] == second
    assert cli("compare", named["execution"], "v2.1", "--json").json("compare")["b"]["executions"] == [second]


def test_what_it_is_a_version_of_means_the_newest(cli: Any, suite: Path, named: Any) -> None:
    first = named["execution"]
    second = cli("run", suite, "--meta", "model=max", "--json", "-").json("results")["execution"]
    third = cli("run", suite, "--meta", "model=mini", "--meta", "temp=0.9", "--json", "-").json("results")["execution"]
    sides = cli("compare", "meta.model:max", "meta.model:mini", "--json").json("compare")
    assert (sides["a"]["executions"], sides["b"]["executions"]) == ([second], [third])
    for reference, execution in (
        ("meta.model:mini meta.temp:0.2", first),
        ("name:v2", first),
        (f"commit:{head(suite)[:9]}", third),
        ("meta.model:max", second),
    ):
        assert cli("show", reference, "--json").json("results")["execution"] == execution
    refused = cli("compare", "meta.model:other", "last")
    assert refused.code == 2
    assert "meta.model:other" in refused.err
    assert cli("show", "meta.model:").code == 2


def test_a_name_that_a_test_has_is_not_guessed(cli: Any, suite: Path, named: Any) -> None:
    test = named["runs"][0]["test"]
    assert cli("name", "v2.1", test).code == 0
    with (
        Store.open(history_file(None)) as store,
        pytest.raises(AmbiguousError, match="both a test and the name of an execution"),
    ):
        References(store).execution(test)


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("name:V2", True), ("name:v3", False), ("note:release", True), ("note:x", False), ("meta.model:MIN", True),
        ("meta.Model:mini meta.temp:0.2", True), ("meta.model:mini meta.temp:0.3", False), ("meta.other:m", False),
        ('note:"before the"', True),
    ],
)  # fmt: skip
def test_the_search_knows_them(cli: Any, named: Any, search: str, found: bool) -> None:
    assert bool(cli("history", search, "--json").json("history")) is found
    assert bool(cli("history", search, "--runs", "--json").json("history-runs")) is found


def test_the_search_knows_commits(cli: Any, suite: Path, named: Any) -> None:
    commit = head(suite)
    for words, found in ((commit, True), (commit[:7].upper(), True), (commit[1:9], False)):
        assert bool(cli("history", f"commit:{words}", "--json").json("history")) is found, words


def test_name_and_note_can_be_changed_later(cli: Any, named: Any) -> None:
    changed = cli("name", "last", "v2.2", "--note", "after", "--meta", "temp=", "--meta", "owner=kim", "--json")
    document = changed.json("name")
    assert (document["name"], document["note"]) == ("v2.2", "after")
    assert document["meta"] == {"model": "mini", "owner": "kim"}
    assert document["commits"] == named["commits"]
    assert "there is no run, no execution" in cli("show", "v2.1").err
    assert cli("name", "last", "", "--json").json("name")["name"] == ""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--meta", "model"), "--meta 'model' has no value"),
        (("--meta", "a b=1"), "can't be a key of metadata"),
        (("--meta", "a=1", "--meta", "a=2"), "--meta a is given twice"),
        (("--meta", "a=" + "x" * 1001), "has 1,001 characters"),
        (("--name", "last"), "an execution can't be called 'last'"),
        (("--name", "a\nb"), "a name is one line"),
        (("--name", "x" * 201), "at most 200 characters"),
    ],
)
def test_what_can_t_be_kept_is_said_before_anything_runs(
    cli: Any, suite: Path, options: tuple[str, ...], said: str
) -> None:
    ran = cli("run", suite, *options)
    assert (ran.code, said in ran.err) == (2, True), ran.err
    assert cli("history", "--json").json("history") == []


def test_names_of_foreign_text_stay_text(cli: Any, suite: Path, tmp_path: Path) -> None:
    name = "\x1b[31m<img src=x>| v1"
    assert cli("run", suite, "--name", name, "--html", tmp_path / "r.html", "--md", tmp_path / "r.md").code == 1
    for words in (cli("history").out, cli("show", "last").out, (tmp_path / "r.md").read_text()):
        assert "\x1b[31m" not in words
    assert "<img" not in (tmp_path / "r.html").read_text()


def test_reports_say_them(cli: Any, suite: Path, tmp_path: Path, named: Any) -> None:
    files = {kind: tmp_path / f"report.{kind}" for kind in ("md", "html", "junit", "csv")}
    cli("report", "v2.1", *(word for kind, file in files.items() for word in (f"--{kind}", file)))
    texts = {kind: file.read_text() for kind, file in files.items()}
    assert f"**Experiment:** v2.1 ({named['execution']})" in texts["md"]
    assert f"**Version:** commit {head(suite)[:9]}" in texts["md"]
    assert "model=mini" in texts["md"]
    assert f"v2.1 ({named['execution']})" in texts["html"]
    assert "before the &lt;release&gt;" in texts["html"]
    for name, value in (("name", "v2.1"), ("meta.model", "mini"), ("note", "before the &lt;release&gt;")):
        assert f'<property name="{name}" value="{value}"/>' in texts["junit"]
    assert f'<property name="commit" value="{head(suite)}' in texts["junit"]
    assert texts["csv"].splitlines()[1].endswith(",v2.1")


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["agenteval", "openai", "otel", "inspect", "atif", "tau2-bench", "tau-bench"])
def test_exports_and_imports_keep_them(cli: Any, tmp_path: Path, named: Any, form: str) -> None:
    suffix = {"agenteval": ".jsonl", "otel": ".otlp.jsonl", "openai": ".jsonl"}.get(form, ".json")
    file, other = tmp_path / f"runs{suffix}", tmp_path / "other.db"
    assert cli("export", "v2.1", file, "--format", form).code == 0
    assert cli("import", file, "--db", other).code == 0
    (document,) = cli("history", "--all-projects", "--json", "--db", other).json("history")
    for key in ("name", "note", "meta", "commits"):
        assert document[key] == named[key], key


def test_histories_keep_them(cli: Any, tmp_path: Path, named: Any) -> None:
    copy, other = tmp_path / "copy.db", tmp_path / "other.db"
    assert cli("db", "export", copy).code == 0
    assert cli("db", "import", copy, "--db", other).code == 0
    (document,) = cli("history", "--all-projects", "--json", "--db", other).json("history")
    for key in ("name", "note", "meta", "commits"):
        assert document[key] == named[key], key


def test_a_resumed_execution_keeps_its_name_and_takes_no_other(cli: Any, named: Any) -> None:
    refused = cli("run", "--resume", named["execution"], "--name", "v3")
    assert refused.code == 2
    assert "--name can't be given" in refused.err


def test_options_of_the_history_do_not_repeat_them(cli: Any, named: Any) -> None:
    with Store.open(history_file(None)) as store:
        options = json.dumps(dict(store.execution("v2.1").options))
    assert "v2.1" not in options
    assert "mini" not in options


@pytest.mark.parametrize(
    ("group", "names"),
    [
        ("name", {"v2.1", "(no name)"}),
        ("meta.model", {"mini", "large"}),
        ("meta.Model", {"mini", "large"}),
        ("meta.other", {"(no other)"}),
    ],
)
def test_trends_group_by_them(cli: Any, suite: Path, named: Any, group: str, names: set[str]) -> None:
    cli("run", suite, "--meta", "model=large")
    document = cli("trends", "--group", group, "--json").json("trends")
    assert document["group"] == group
    assert {series["name"] for series in document["series"]} == names
    assert sum(series["n"] for series in document["series"]) == 4


def test_trends_group_by_commit(cli: Any, suite: Path, named: Any) -> None:
    before = head(suite)
    suite.write_text(suite.read_text() + "\n")
    cli("run", suite)
    document = cli("trends", "--group", "commit", "--alert-below", "0.9", "--json").json("trends")
    assert {series["name"] for series in document["series"]} == {before[:9], f"{before[:9]} (changed)"}
    assert {alert["name"] for alert in document["alerts"]["groups"]} == {before[:9], f"{before[:9]} (changed)"}


def test_a_group_that_is_none_is_refused(cli: Any) -> None:
    for group in ("colour", "meta.", "meta.a b"):
        refused = cli("trends", "--group", group)
        assert refused.code == 2
        assert "runs can't be grouped by" in refused.err


def test_compare_says_what_the_sides_are_versions_of(cli: Any, suite: Path, named: Any) -> None:
    suite.write_text(suite.read_text() + "\n")
    cli("run", suite, "--name", "v2.2", "--meta", "model=large")
    words = cli("compare", "v2.1", "v2.2").out
    assert "v2.1" in words.splitlines()[0]
    assert "v2.2" in words.splitlines()[0]
    commit = head(suite)[:9]
    assert f"commit {commit} (master) → {commit} (master, changed), model=mini → large, temp=0.2 → nothing" in words
    assert f"Commit {commit}" in cli("compare", "v2.1", "v2.2", "--md").out
    document = cli("compare", "v2.1", "v2.2", "--json").json("compare")
    assert [document[side]["name"] for side in "ab"] == ["v2.1", "v2.2"]
    assert [document[side]["meta"].get("model") for side in "ab"] == ["mini", "large"]
    assert [document[side]["commits"][0]["dirty"] for side in "ab"] == [False, True]
