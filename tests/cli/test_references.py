"""One way of naming everywhere: a run, an execution, a test, `last`, or nothing; and `-` for standard input."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from failing import make

from agenteval_tui.cli.commands.open_app import start_at
from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.standard_input import read_standard_input, standard_input_file
from agenteval_tui.core.errors import AgentevalError, AmbiguousError
from agenteval_tui.history.references import References
from agenteval_tui.history.store import Store


@pytest.fixture
def db(tmp_path: Path) -> Path:
    path = tmp_path / "made.db"
    with Store.open(path) as store:
        make(store, "E1", smoke=["text", ""], refund=["tool"])
        make(store, "E2", smoke=["text", "text", ""], refund=["text", "down", "down"], mood=["person"])
        make(store, "E3", mood=[""])
    return path


@pytest.mark.parametrize(
    ("reference", "run"),
    [
        ("", "E2-005"),  # the newest failure: an error of the agent is one
        ("last", "E3-000"),
        ("smoke", "E2-002"),
        ("SMOKE", "E2-002"),
        ("refund", "E2-005"),
        ("E2", "E2-005"),
        ("E1", "E1-002"),
        ("E3", "E3-000"),
        ("E1-000", "E1-000"),
        ("E2-003/1", "E2-003"),
        ("refund/1", "E2-005"),
    ],
)
def test_why_and_open_find_the_same_run(cli: Any, db: Path, reference: str, run: str) -> None:
    told = cli("why", *([reference] if reference else []), "--json", "--db", db)
    assert told.json("why")["run"] == run
    start = start_at(Invocation(lambda start: 0, db=db), reference)
    wanted = {"last": ("history", "E3"), "E1": ("history", "E1"), "E2": ("history", "E2"), "E3": ("history", "E3")}
    assert (start.screen, start.target) == wanted.get(reference, ("inspect", run))


@pytest.mark.parametrize(
    ("reference", "run", "note"),
    [
        ("smoke", "E2-001", "the newest run of smoke passed: this is run E2-001, the newest that failed"),
        (" smoke\t", "E2-001", "the newest run of smoke passed: this is run E2-001, the newest that failed"),
        ("refund", "E2-005", ""),
        ("E2-002", "E2-002", ""),  # who names a run means that one
        ("", "E2-005", "no run of the newest execution E3 failed: this is a run of E2, before it"),
        ("mood", "E3-000", ""),  # no run of it failed
    ],
)
def test_who_asks_what_failed_gets_the_newest_failure_of_a_test(db: Path, reference: str, run: str, note: str) -> None:
    said: list[str] = []
    with Store.open(db) as store:
        assert References(store, say=said.append).failed_run(reference).id == run
    assert said == [note] * bool(note)


def test_executions_are_found_by_a_test_a_run_and_last(cli: Any, db: Path) -> None:
    for reference, execution in (
        ("last", "E3"), ("", "E3"), ("smoke", "E2"), ("mood", "E3"), ("E1-002", "E1"), ("E2-00", None)
    ):  # fmt: skip
        told = cli("stats", *([reference] if reference else []), "--json", "--db", db)
        if execution is None:
            assert told.code == 2
            assert "E2-003" in told.err
            assert "name one of these" in told.err
        else:
            assert json.loads(told.out)["execution"] == execution
    for verb in (
        ("report", "smoke"), ("show", "smoke"), ("show",), ("causes", "smoke"), ("triage", "--execution", "smoke"),
        ("review", "--execution", "mood"), ("judge-report", "--execution", "smoke"), ("export", "smoke"), ("export",),
        ("compare", "E1", "smoke"), ("baseline", "set", "smoke"), ("baseline", "set"), ("stats", "--costs", "refund"),
    ):  # fmt: skip
        done = cli(*verb, "--db", db)
        assert done.code in (0, 1), (verb, done.err)
    listed = {one["test"]: one["execution"] for one in json.loads(cli("baseline", "--json", "--db", db).out)}
    assert listed == {"smoke": "E2", "mood": "E3"}, "the id of a test sets its own baseline and no other"


def test_what_is_shown_in_short_can_be_typed(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "made.db"
    ids = [f"01M8RDACAJ0000000000{ending}" for ending in ("00000A", "00000B")]  # in one millisecond: alike at first
    with Store.open(path) as store:
        for uid in ids:
            make(store, uid, smoke=["text"])
    said = cli("history", "--db", path).out.splitlines()
    shown = [line.split()[0] for line in said if "2" in line][:2]
    assert shown == ["0000000B", "0000000A"]
    assert [cli("show", one, "--json", "--db", path).json("results")["execution"] for one in shown] == ids[::-1]


def test_a_label_takes_every_name_of_a_run_and_never_guesses_among_several(cli: Any, db: Path) -> None:
    assert "E3-000" in cli("label", "last", "passed", "--db", db).out
    assert "E2-002" in cli("label", "smoke", "failed", "--db", db).out
    assert "E3-000" in cli("label", "E3", "5", "--db", db).out
    several = cli("label", "E2", "passed", "--db", db)
    assert several.code == 2
    assert all(f"E2-00{number}" in several.err for number in range(7))
    assert cli("label", "last/1", "passed", "--db", db).code == 0
    assert cli("label", "nothing", "passed", "--db", db).code == 2


def _of(db: Path) -> References:
    return References(Store.open(db))


def test_tests_of_one_name_in_two_suites_are_told_apart_by_their_file(tmp_path: Path) -> None:
    db = tmp_path / "two.db"
    with Store.open(db) as store:
        make(store, "E1", suite_key="/one/a.suite.yaml", smoke=["text"])
        make(store, "E2", suite_key="/two/a.suite.yaml", smoke=[""])
        references = References(store)
        with pytest.raises(AmbiguousError, match="several suites") as refused:
            references.run("smoke")
        assert refused.value.remedies[1:] == ["  /one/a.suite.yaml::smoke", "  /two/a.suite.yaml::smoke"]
        for reference, run in (
            ("/one/a.suite.yaml::smoke", "E1-000"), ("one/a.suite.yaml::smoke", "E1-000"),
            ("two/a.suite.yaml::SMOKE", "E2-000"), ("E1-000", "E1-000"),
        ):  # fmt: skip
            assert references.run(reference).id == run
            assert references.address(f"{reference}/1") == (references.run(run), "1")
        for wrong in ("three/a.suite.yaml::smoke", "::smoke", "a.suite.yaml::", "E1-000x", "smok", "last::smoke"):
            with pytest.raises(AgentevalError, match=r"there is no|several suites"):
                references.run(wrong)


def test_ids_with_slashes_colons_and_the_name_of_a_verb(tmp_path: Path) -> None:
    with Store.open(tmp_path / "odd.db") as store:
        make(store, "E1", **{"a/b": ["text"], "a::b": ["text"], "last": [""], "E1-000": [""]})
        find = References(store)
        assert find.address("a/b")[0].id == "E1-000"
        assert find.address("a/b/1") == (find.run("E1-000"), "1")
        assert find.address("a::b/2") == (find.run("E1-001"), "2")
        assert find.run("E1-000").test_id == "a/b", "a full id means what it says"
        assert find.run("last").id == "E1-003"


def test_without_a_failure_or_a_run_it_is_said(cli: Any, tmp_path: Path) -> None:
    db = tmp_path / "none.db"
    for verb in (("why",), ("why", "last"), ("show",), ("label", "last", "passed"), ("export",), ("compare",)):
        done = cli(*verb, "--db", db)
        assert (done.code, done.out) == (2, "")
        assert "nothing has run yet" in done.err
    with Store.open(db) as store:
        make(store, "E1", smoke=[""])
    none = cli("why", "--db", db)
    assert none.code == 2
    assert "no stored run failed" in none.err
    assert "E1-000" in cli("why", "last", "--db", db).out


def test_a_failure_of_an_older_execution_is_said_to_be_one(cli: Any, tmp_path: Path) -> None:
    suite, db = tmp_path / "one.suite.yaml", tmp_path / "h.db"
    text = """
name: One
agent: played
agents:
  played: {kind: replay, transcripts: {t: [{role: user, content: hi}, {role: assistant, content: SAID}]}}
tests:
  - id: t
    prompt: hi
    criteria: [{name: Greets, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: ho}]}}]
"""
    executions = []
    for said, code in (("no", 1), ("ho", 0)):
        suite.write_text(text.replace("SAID", f'"{said}"'))
        ran = cli("run", suite, "--db", db, "--json", "-")
        assert ran.code == code
        executions.append(ran.json("results")["execution"])
    failed, passed = executions
    why = cli("why", "--db", db)
    assert f"no run of the newest execution {passed} failed: this is a run of {failed}, before it" in why.err
    assert "newest execution" not in cli("why", "last", "--db", db).err


def test_run_and_validate_take_the_current_folder(cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    empty = suite.parent / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    for verb in ("run", "validate"):
        refused = cli(verb)
        assert refused.code == 2
        assert "there are no suites in the current folder" in refused.err
        assert str(empty) in refused.err
    monkeypatch.chdir(suite.parent)
    assert "1 suite, 2 tests" in cli("validate").out
    assert cli("run").code == 1
    assert "Names a whale" in cli("why").out


def _stdin(monkeypatch: pytest.MonkeyPatch, data: str | bytes, *, terminal: bool = False) -> None:
    stream = io.TextIOWrapper(io.BytesIO(data.encode() if isinstance(data, str) else data))
    stream.isatty = lambda: terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stdin", stream)


@pytest.fixture
def rows(suite: Path) -> str:
    """A suite that reads a dataset beside it, and is in no file itself."""
    (suite.parent / "rows.csv").write_text("order\nW1042\n")
    text = suite.read_text().replace("    tags: [smoke]\n", "    dataset: {file: rows.csv}\n")
    suite.unlink()
    return text.replace('#W1042?"', '{{order}}?"', 1)


def test_a_suite_on_standard_input_is_checked_and_run_from_the_current_folder(
    cli: Any, tmp_path: Path, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _stdin(monkeypatch, rows)
    checked = cli("validate", "-")
    assert (checked.code, "2 tests" in checked.out) == (0, True), checked.out
    _stdin(monkeypatch, rows.replace("TextMatch", "TextMach"))
    wrong = cli("validate", "-", "--json")
    assert wrong.code == 2
    assert {one["file"] for one in json.loads(wrong.out)} == {"<stdin>"}
    _stdin(monkeypatch, rows)
    ran = cli("run", "-", "--json", "-")
    assert ran.code == 1, ran.err
    assert json.loads(ran.out)["summary"]["runs"] == 2
    assert "Names a whale" in cli("why", "bad").out
    again = cli("resume", "last")
    assert again.code in (0, 1, 2)
    assert "Traceback" not in again.err
    for twice in (("validate", "-", "-"), ("run", "-", "-"), ("run", "-", "--detach")):
        _stdin(monkeypatch, rows)
        assert cli(*twice).code == 2


def test_no_folder_s_trust_speaks_for_a_suite_on_standard_input(
    cli: Any, suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = suite.read_text().replace("{kind: demo, version: v1, pace: 0}", '{kind: command, command: ["true"]}')
    assert cli("trust", tmp_path).code == 0
    _stdin(monkeypatch, text)
    refused = cli("run", "-")
    assert refused.code == 2
    assert "a suite on standard input has no folder to trust" in refused.err
    assert json.loads(cli("history", "--json").out) == []
    _stdin(monkeypatch, text)
    assert "needs your trust" not in cli("run", "-", "--trust").err


TRANSCRIPT = json.dumps([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "W1042 is here"}])
CRITERION = json.dumps(
    {
        "name": "x",
        "prototype_class": "TextResponse",
        "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "W1"}]},
    }
)


def test_grade_and_import_read_standard_input(cli: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    criteria, transcript = tmp_path / "c.json", tmp_path / "t.json"
    criteria.write_text(CRITERION)
    transcript.write_text(TRANSCRIPT)
    for given, verb in (
        (TRANSCRIPT, ("--criteria", criteria, "--transcript", "-")),
        (CRITERION, ("--criteria", "-", "--transcript", transcript)),
        (f"{TRANSCRIPT}\n{TRANSCRIPT}\n", ("--criteria", criteria, "--transcripts", "-")),
    ):
        _stdin(monkeypatch, given)
        graded = cli("grade", *verb)
        assert graded.code == 0, graded.err
        _stdin(monkeypatch, "{")
        broken = cli("grade", *verb)
        assert (broken.code, "<stdin>:1" in broken.err) == (2, True), broken.err
    _stdin(monkeypatch, TRANSCRIPT)
    assert cli("grade", "--criteria", "-", "--transcript", "-").code == 2
    _stdin(monkeypatch, json.dumps({"messages": json.loads(TRANSCRIPT)}) + "\n")
    taken = cli("import", "-", "--format", "openai")
    assert taken.code == 0, taken.err
    assert taken.out.startswith("<stdin>: openai, 1 run read, 1 added")
    _stdin(monkeypatch, "what is this")
    refused = cli("import", "-")
    assert (refused.code, refused.err.startswith("agenteval: <stdin>: ")) == (2, True), refused.err


def test_standard_input_is_bounded_never_silent_and_never_needed(
    cli: Any, suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for verb in (("validate", "-"), ("run", "-"), ("import", "-"), ("grade", "--criteria", "-", "--execution", "last")):
        _stdin(monkeypatch, "")
        assert (cli(*verb).code) == 2
        monkeypatch.setattr(sys, "stdin", None)
        assert "there is no standard input" in cli(*verb).err or verb[0] == "grade"
    _stdin(monkeypatch, suite.read_text(), terminal=True)
    assert "Reading a suite from the terminal. Ctrl+D" in cli("validate", "-").err
    for most, text in ((10, "a" * 11), (10, b"\xff" * 11)):
        _stdin(monkeypatch, text)
        with pytest.raises(AgentevalError, match="standard input has more than"):
            read_standard_input(Invocation(lambda start: 0), "a suite", most)
        _stdin(monkeypatch, text)
        with (
            pytest.raises(AgentevalError, match="standard input has more than"),
            standard_input_file(Invocation(lambda start: 0), "a suite", most),
        ):
            pytest.fail("more came than is taken")
    _stdin(monkeypatch, "a" * 10)
    assert read_standard_input(Invocation(lambda start: 0), "a suite", 10) == b"a" * 10
