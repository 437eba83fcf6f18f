"""`agenteval suggest` over stored runs and their labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.results import CriterionResult, MetricResult, Outcome
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
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
