"""What is listed, counted and meant is of the project of the current folder, unless `--all-projects` is given."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from failing import make

from agenteval_tui.core import directories
from agenteval_tui.history import queries
from agenteval_tui.history.records import RunFilter
from agenteval_tui.history.scope import executions_in, in_scope
from agenteval_tui.history.store import Store
from agenteval_tui.suites.projects import SAMPLES, project_of_folder, project_of_keys, projects_open

VERBS = (
    ("history",), ("history", "--runs"), ("show",), ("why",), ("stats",), ("report",), ("causes",), ("compare",),
    ("trends",), ("flaky",), ("review", "--failures"), ("judge-report",), ("export",), ("triage",), ("open",),
    ("label", "last", "passed"), ("baseline", "set"), ("baseline",), ("quarantine",), ("resume",),
    ("grade", "--criteria", "c.json", "--execution", "last"),
)  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTEVAL_SCOPE", raising=False)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A history with two projects, each a git repository; two copies of one suite. The current folder is in `one`."""
    for name in ("one", "two"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "evals" / "deep").mkdir(parents=True)
    db = tmp_path / "all.db"
    with Store.open(db) as store:
        for execution, name in (("A1", "one"), ("A2", "one"), ("B1", "two"), ("B2", "two")):
            key = str(tmp_path / name / "evals" / "shop.suite.yaml")
            make(store, execution, suite_key=key, smoke=["text", ""], refund=["tool"])
    monkeypatch.chdir(tmp_path / "one" / "evals" / "deep")
    return db


def test_a_project_is_the_git_root_or_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    suites = tmp_path / "p" / "evals"
    suites.mkdir(parents=True)
    assert project_of_folder(suites) == str(suites)
    (tmp_path / "p" / ".git").write_text("gitdir: elsewhere")  # a worktree
    assert project_of_folder(suites) == str(tmp_path / "p")
    assert project_of_folder(suites / "gone" / "deeper") == str(tmp_path / "p")
    (tmp_path / "link").symlink_to(suites)
    assert project_of_folder(tmp_path / "link") == str(tmp_path / "p")
    checkout = directories.bundled("sample_suites").parent
    assert project_of_folder(checkout / "sample_suites" / "recorded") == str(checkout)
    installed = tmp_path / "p" / ".venv" / "sample_suites"
    (installed / "recorded").mkdir(parents=True)
    monkeypatch.setattr(directories, "bundled", lambda name: installed.parent / name)
    assert project_of_folder(installed / "recorded") == SAMPLES
    one, other = str(suites / "a.suite.yaml"), str(tmp_path / "q" / "b.suite.yaml")
    assert project_of_keys((one,)) == str(tmp_path / "p")
    assert project_of_keys((one, other)) == str(tmp_path)
    assert project_of_keys(("import:openai:x.json",)) == project_of_keys(()) == ""
    (tmp_path / "q").mkdir()
    assert projects_open((suites, tmp_path / "q")) == (str(tmp_path / "p"), str(tmp_path / "q"))


@pytest.mark.parametrize(
    ("project", "shown"),
    [("/p", True), ("/p/below", True), ("/p2", False), ("/", False), ("", False), ("/q", False), ("/P", False)],
)
def test_a_project_holds_what_is_below_it(project: str, shown: bool) -> None:
    assert in_scope(project, ("/p",)) is shown
    assert in_scope(project, ())


def test_each_list_is_of_this_project_and_all_of_them_on_demand(cli: Any, two: Path) -> None:
    listed = json.loads(cli("history", "--json", "--db", two).out)
    assert [one["execution"] for one in listed] == ["A2", "A1"]
    assert {one["project"] for one in listed} == {str(two.parent / "one")}
    assert len(json.loads(cli("history", "--all", "--json", "--db", two).out)) == 4
    assert str(two.parent / "two") in cli("history", "--all", "--db", two).out, "the place of each is shown"
    runs = cli("history", "--runs", "--all-projects", "--db", two).out
    assert runs.count(f"{two.parent / 'two'}/evals/shop.suite.yaml") == 6
    assert len(json.loads(cli("history", "--runs", "--outcome", "failed", "--json", "--db", two).out)) == 4
    counted = {
        verb[0]: [len(json.loads(cli(*verb, *everything, "--db", two).out)[key]) for everything in ((), ("--all",))]
        for verb, key in ((("review", "--failures", "--json"), "waiting"), (("judge-report", "--json"), "criteria"))
    }
    assert counted["review"] == [4, 8]
    for verb, runs_here, everywhere in (("trends", 6, 12),):
        assert _in_series(cli(verb, "--json", "--db", two)) == runs_here
        assert _in_series(cli(verb, "--json", "--all", "--db", two)) == everywhere
    flaky = [len(json.loads(cli("flaky", "--all", "--json", *more, "--db", two).out)["tests"])
             for more in ((), ("--all-projects",))]  # fmt: skip
    assert flaky == [2, 4]


def _in_series(done: Any) -> int:
    return sum(one["n"] for one in json.loads(done.out)["series"])


def test_last_is_of_this_project_and_a_newer_one_elsewhere_is_said(cli: Any, two: Path) -> None:
    shown = cli("stats", "--json", "--db", two)
    assert json.loads(shown.out)["execution"] == "A2"
    assert "2 executions of other projects are newer" in shown.err
    assert str(two.parent / "two") in shown.err
    assert shown.err.count("note:") == 1
    everywhere = cli("stats", "--all", "--json", "--db", two)
    assert json.loads(everywhere.out)["execution"] == "B2"
    assert everywhere.err == ""
    assert json.loads(cli("why", "--json", "--db", two).out)["run"] == "A2-002"
    assert json.loads(cli("why", "--json", "--all", "--db", two).out)["run"] == "B2-002"
    compared = json.loads(cli("compare", "--quick", "--json", "--db", two).out)
    assert "A2" in json.dumps(compared)
    assert "B" not in compared["b"]["reference"] if "b" in compared else True


def test_what_is_named_is_found_wherever_it_is_from(cli: Any, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert json.loads(cli("stats", "B1", "--json", "--db", two).out)["execution"] == "B1"
    assert json.loads(cli("why", "B2-000", "--json", "--db", two).out)["run"] == "B2-000"
    assert json.loads(cli("why", "smoke", "--json", "--db", two).out)["run"] == "A2-001", "of two copies that of here"
    there = f"{two.parent}/two/evals/shop.suite.yaml::smoke"
    assert json.loads(cli("why", there, "--json", "--db", two).out)["run"] == "B2-001"
    monkeypatch.chdir(two.parent / "two")
    assert json.loads(cli("why", "smoke", "--json", "--db", two).out)["run"] == "B2-001"
    monkeypatch.chdir(two.parent)
    assert cli("why", "smoke", "--db", two).code == 2, "both are below this folder"


@pytest.mark.sweep
@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_where_nothing_is_of_this_project_the_others_are_named(
    cli: Any, two: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: tuple[str, ...]
) -> None:
    (tmp_path / "three" / ".git").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "three")
    Path("c.json").write_text('{"prototype_class": "TextResponse", "config_uxon": {"metrics": []}}')
    if verb == ("quarantine",):
        cli("quarantine", "add", f"{two.parent}/two/evals/shop.suite.yaml::smoke", "--db", two)
    if verb == ("baseline",):
        cli("baseline", "set", "B1", "--db", two)
    if verb == ("triage",):
        return  # lists what was decided, which is of causes and no project
    done = cli(*verb, "--db", two)
    said = done.out + done.err
    has_option = "--all-projects" in cli(*verb, "--help").out
    assert ("--all-projects" if has_option else "AGENTEVAL_SCOPE=all") in said, said
    assert "other projects" in said
    assert "Traceback" not in said
    assert "A2" not in done.out
    assert "B2" not in done.out


def test_the_variable_of_the_environment_shows_all(cli: Any, two: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTEVAL_SCOPE", "all")
    assert len(json.loads(cli("history", "--json", "--db", two).out)) == 4


def test_an_import_is_of_the_folder_where_it_ran_and_regrading_stays_there(cli: Any, two: Path, tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}))
    assert cli("import", file, "--db", two).code == 0
    (newest, *_) = json.loads(cli("history", "--json", "--db", two).out)
    assert (newest["kind"], newest["project"]) == ("import", str(tmp_path / "one"))
    criteria = tmp_path / "c.json"
    criteria.write_text(
        '{"prototype_class": "TextResponse", "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "b"}]}}'
    )
    assert cli("grade", "--criteria", criteria, "--execution", "B1", "--save", "--db", two).code in (0, 1)
    with Store.open(two) as store:
        assert store.execution("last").project == str(tmp_path / "two")


def test_the_lists_of_a_project_are_read_from_an_index(two: Path) -> None:
    condition, values = executions_in(("/one", SAMPLES))
    with Store.open(two) as store:
        executions = f"SELECT id FROM executions WHERE {condition}"
        for statement in (executions, f"SELECT id FROM runs WHERE execution IN ({executions})"):
            plan = store.read(lambda c, s=statement: c.execute(f"EXPLAIN QUERY PLAN {s}", values).fetchall())
            steps = " | ".join(row[-1] for row in plan)
            assert "executions_by_project" in steps, steps
            assert "SCAN" not in steps.replace("SCAN CONSTANT ROW", ""), steps
        assert queries.executions  # a page is read by rowid from what these give
        assert len(store.run_ids(RunFilter(projects=(str(two.parent / "one"),)))) == 6


def test_moving_suites_moves_their_project(cli: Any, two: Path, tmp_path: Path) -> None:
    (tmp_path / "new" / ".git").mkdir(parents=True)
    shutil.move(tmp_path / "two" / "evals", tmp_path / "new" / "evals")
    assert cli("db", "move", tmp_path / "two" / "evals", tmp_path / "new" / "evals", "--db", two).code == 0
    with Store.open(two) as store:
        assert {row.project for row in store.executions()} == {str(tmp_path / "one"), str(tmp_path / "new")}


def test_the_demo_leaves_the_user_s_history_alone(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own = tmp_path / "own.db"
    monkeypatch.setenv("AGENTEVAL_DB", str(own))
    done = cli("demo", "--headless")
    assert done.code == 0, done.err
    assert not own.exists()
    assert str(directories.demo_history()) in done.err + done.out
    rows = json.loads(cli("history", "--json", "--db", directories.demo_history()).out)
    assert len(rows) == 2, "the samples' labelled runs, and those of now"
    for row in rows:
        assert row["project"].startswith(str(directories.demo_dir()))
    assert "nothing has run yet" in cli("history").out


def test_a_search_knows_the_fields_of_the_history_screen(cli: Any, two: Path) -> None:
    def found(*search: str) -> list[str]:
        return [one["run"] for one in json.loads(cli("history", "--runs", "--json", *search, "--db", two).out)]

    assert cli("label", "A1-001", "passed", "--db", two).code == 0
    assert found("is:labelled") == ["A1-001"]
    assert found("outcome:failed") == ["A2-002", "A2-000", "A1-002", "A1-000"]
    assert found("outcome:failed", "test:smoke") == found("outcome:failed test:smoke") == ["A2-000", "A1-000"]
    assert found("outcome:failed", "--test", "refund") == ["A2-002", "A1-002"]
    assert found("outcome:failed", "--outcome", "passed") == []
    assert found("outcome:passed,failed", "--outcome", "passed") == ["A2-001", "A1-001"]
    assert found("test:smoke customers outcome:passed") == ["A2-001", "A1-001"]
    assert (
        found("kind:import") == found("is:baseline") == found("agent:nobody") == found("since:1min before:2001-01-01")
    )
    assert [one["execution"] for one in json.loads(cli("history", "is:labelled", "--json", "--db", two).out)] == ["A1"]
    assert found("--all", "outcome:failed", "suite:two")[0] == "B2-002"
    for wrong in ("outcome:nice", "is:pretty", "since:soon", "kind:cat"):
        refused = cli("history", wrong, "--db", two)
        assert (refused.code, refused.out) == (2, ""), wrong
        assert wrong.partition(":")[2] in refused.err


@pytest.mark.parametrize("form", [(), ("--json",), ("--md",), ("--quick",)], ids=" ".join)
def test_what_has_no_test_in_common_is_not_compared(cli: Any, two: Path, form: tuple[str, ...]) -> None:
    with Store.open(two) as store:
        make(store, "C1", suite_key="/other/x.suite.yaml", other=["text", ""])
    for sides in (("A1", "C1"), ("C1", "A1"), ("A1-000", "C1"), ("A1-000", "A2-002")):
        refused = cli("compare", *sides, *form, "--db", two)
        assert (refused.code, refused.out) == (2, ""), sides
        assert "there is nothing to compare" in refused.err
        assert "in common" in refused.err
    assert cli("compare", "A1", "A2", *form, "--db", two).code == 0


def test_no_figure_is_made_of_tests_that_only_one_side_decided(cli: Any, two: Path) -> None:
    with Store.open(two) as store:
        make(store, "D1", suite_key="/d.suite.yaml", one=["", "text"], other=["down"])
        make(store, "D2", suite_key="/d.suite.yaml", one=["down"], other=["text"])
    told = json.loads(cli("compare", "D1", "D2", "--json", "--db", two).out)
    assert told["overall"]["p_value"] is None
    assert told["overall"]["pass_rate"] is None or told["overall"]["pass_rate"].get("difference") is None
