"""`agenteval suggest` over stored runs and their labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import Specs
from agenteval_tui.suites.load import load_suite
from agenteval_tui.transcripts.model import Message, Transcript

ANSWERS = (
    "Your order was sent on Friday.", "I can't say where it is.", "It was sent yesterday.", "I don't know, sorry.",
    "It was sent.", "It may be lost.",
)  # fmt: skip


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Six runs of a test, the even ones good in the eyes of a judge; the last one's judge could not be asked."""
    path = tmp_path / "history.db"

    def runs() -> Any:
        for number, answer in enumerate(ANSWERS):
            run_id = f"RUN-{number}-OF-THE-TEST"
            outcome = (Outcome.PASSED, Outcome.FAILED)[number % 2] if number < 5 else Outcome.ERROR
            score = None if outcome is Outcome.ERROR else float(outcome is Outcome.PASSED)
            judged = CriterionResult("Helps", outcome, score, metrics=(MetricResult("Judge", "Judge", outcome, score),))
            other = CriterionResult("Is short", Outcome.PASSED, 1.0)
            messages = (Message("user", "Where is it?"), Message("assistant", answer))
            transcript = Transcript(messages, final_output=answer)
            planned = PlannedRun(run_id, "EXECUTION", number, "s.suite.yaml", "S", "where", "Where")
            yield planned, RunEnded(run_id, str(outcome), score, 1, 1.0, 1, transcript, (judged, other))

    with Store.open(path) as store:
        record = ExecutionRecord("EXECUTION", "s", "run", "s", ("s.suite.yaml",), started_ms=now_ms())
        store.import_runs(record, runs())
    return path


def suggest(cli: Any, db: Path, *words: str) -> Any:
    return cli("suggest", *words, "--db", db, "--all", "--json").json("suggest")


def test_labels_become_criteria(cli: Any, db: Path) -> None:
    nothing = cli("suggest", "where", "--db", db, "--all")
    assert nothing.code == 2
    assert "agenteval label RUN passed" in nothing.err
    for number, said in ((0, "passed"), (2, "passed"), (1, "failed")):
        assert cli("label", f"RUN-{number}-OF-THE-TEST", said, "--db", db, "--all").code == 0
    found = suggest(cli, db, "where")
    assert (found["test"], found["runs"], found["good"], found["bad"]) == ("where", 6, 2, 1)
    best = found["suggestions"][0]
    assert (best["agrees"], best["wrong"]) == (3, [])
    assert any("sent" in one["config_uxon"] for one in found["suggestions"])
    assert found["label_next"] in {f"RUN-{number}-OF-THE-TEST" for number in (3, 4, 5)}
    # What it prints can be written into a suite as it is, and a label counts at once.
    graded = cli("suggest", "RUN-0-OF-THE-TEST", "--db", db, "--all", "--most", "1")
    assert graded.out.count('"metrics"') == 1
    assert cli("label", "RUN-4-OF-THE-TEST", "failed", "--db", db, "--all").code == 0
    assert suggest(cli, db, "--execution", "EXECUTION")["bad"] == 2


def test_labels_of_a_criterion_count_for_that_criterion(cli: Any, db: Path) -> None:
    for number, said in ((0, "5"), (1, "1")):
        assert cli("label", f"RUN-{number}-OF-THE-TEST/Helps", said, "--db", db, "--all").code == 0
    found = suggest(cli, db, "where/1")
    assert (found["criterion"], found["good"], found["bad"]) == ("Helps", 1, 1)
    assert cli("suggest", "where", "--db", db, "--all").code == 2
    wrong = cli("suggest", "where/Nothing", "--db", db, "--all")
    assert wrong.code == 2
    assert "1 Helps, 2 Is short" in wrong.err


def test_what_a_judge_said_without_the_judge(cli: Any, db: Path) -> None:
    found = suggest(cli, db, "where", "--from-judge")
    assert (found["criterion"], found["from_judge"], found["good"], found["bad"]) == ("Helps", True, 3, 2)
    best = found["suggestions"][0]
    assert best["agrees"] == 5
    assert '"Judge"' not in best["config_uxon"]
    assert cli("suggest", "where/Is short", "--from-judge", "--db", db, "--all").code == 2


def test_wrong_use(cli: Any, db: Path) -> None:
    assert cli("suggest").code == 2
    assert cli("suggest", "where", "--execution", "last").code == 2
    assert cli("suggest", "nowhere", "--db", db, "--all").code == 2


def test_imported_conversations(cli: Any, tmp_path: Path) -> None:
    path = tmp_path / "messages.jsonl"
    talks = ([{"role": "user", "content": "hi"}, {"role": "assistant", "content": text}] for text in ANSWERS[:3])
    path.write_text("".join(json.dumps({"messages": talk}) + "\n" for talk in talks), "utf-8")
    db = tmp_path / "imported.db"
    assert cli("import", path, "--db", db).code == 0
    runs = json.loads(cli("show", "last", "--json", "--db", db, "--all").out)["runs"]
    for run, said in zip(runs, ("passed", "failed", "passed"), strict=True):
        assert cli("label", run["run"], said, "--db", db, "--all").code == 0
    found = suggest(cli, db, "--execution", "last")
    assert (found["test"], found["good"], found["bad"]) == ("", 2, 1)
    assert found["suggestions"][0]["agrees"] == 3


def test_runs_become_a_test_that_they_pass(cli: Any, db: Path, tmp_path: Path) -> None:
    suite = tmp_path / "new.suite.yaml"
    words = ("--db", db, "--all", "--suite", suite)
    planned = cli("make-test", "RUN-0-OF-THE-TEST", *words, "--dry-run")
    assert planned.code == 0
    assert "it would be test where-is-it in " in planned.out
    assert 'prompt: "Where is it?"' in planned.out
    assert not suite.exists()
    good = [f"RUN-{number}-OF-THE-TEST" for number in (0, 2, 4)]
    made = cli("make-test", *good, *words, "--json").json("make-test")
    assert (made["id"], made["runs"], made["failed"], made["agent"]) == ("where-is-it", good, [], None)
    assert made["written"]
    loaded = load_suite(suite)
    assert loaded.suite is not None
    (test,) = loaded.suite.tests
    specs = Specs().of(test.criteria)
    outcomes = [
        str(grade(Transcript((Message("user", "Where is it?"),), final_output=answer), specs).outcome)
        for answer in ANSWERS
    ]
    assert [outcomes[0], outcomes[2], outcomes[4]] == ["passed"] * 3
    assert "failed" in outcomes
    again = cli("make-test", "RUN-1-OF-THE-TEST", *words)
    assert "new test where-is-it-2 in " in again.out
    assert "did not pass, and these criteria expect what it did" in again.out
    assert "! no agent: agenteval run " in again.out
    wrong = cli("make-test", "RUN-0-OF-THE-TEST", *words, "--agent", "nobody")
    assert wrong.code == 2
    assert "there is no agent 'nobody'" in wrong.err


def test_what_can_be_no_test_is_said(cli: Any, db: Path, tmp_path: Path) -> None:
    told = (Message("system", "Be kind."), Message("user", "Why?"), Message("assistant", "So."))
    others = Transcript((Message("user", "Where is it?"),)), Transcript(told, final_output="So.")
    with Store.open(db) as store:
        for number, transcript in enumerate(others):
            planned = PlannedRun(f"OTHER-{number}-RUN", f"E{number}", 0, "s.suite.yaml", "S", "other", "Other")
            ended = RunEnded(planned.id, "passed", 1.0, 1, 1.0, 1, transcript, ())
            record = ExecutionRecord(f"E{number}", "s", "run", "s", ("s.suite.yaml",), started_ms=now_ms())
            store.import_runs(record, iter([(planned, ended)]))
    words = ("--db", db, "--all", "--suite", tmp_path / "new.suite.yaml")
    # Somebody else's file stays as it is, which is said before anything is listened for.
    other = tmp_path / "compose.yaml"
    other.write_text("services: {}\n", "utf-8")
    for verb, option in (("make-test", "--suite"), ("listen", "--save-test")):
        run = ("RUN-0-OF-THE-TEST", "--all") if verb == "make-test" else ("--port", "0")
        for place, why in ((other, "this file is not a suite"), (tmp_path / "x.yaml", "is called *.suite.yaml")):
            refused = cli(verb, *run, option, place, "--db", db)
            assert (refused.code, why in refused.err) == (2, True), refused.err
    assert other.read_text("utf-8") == "services: {}\n"
    nothing = cli("make-test", "OTHER-0-RUN", *words)
    assert nothing.code == 2
    assert "there is no answer yet to make a test from (choose a run with a question and an answer)" in nothing.err
    mixed = cli("make-test", "OTHER-1-RUN", "RUN-0-OF-THE-TEST", *words)
    assert "was asked something different from run" in mixed.err
    assert "(make a separate test from each)" in mixed.err
    own = cli("make-test", "OTHER-1-RUN", *words, "--json").json("make-test")["test"]
    assert own["prompt"] == "Why?", "the system prompt is the agent's"
