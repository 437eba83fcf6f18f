"""Judges from the command line: run with one, label, report, ask again, grade again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.grading.sentences import criterion_sentence

SUITE = """\
name: Orders
agent: shop
agents:
  shop: {kind: demo, version: v1, pace: 0}
  strict: {kind: openai, base_url: "%s", model: judge-1, stream: false}
defaults: {timeout: 30}
tests:
  - id: order
    name: Says where it is
    prompt: "Where is my order #W1042?"
    criteria:
      - name: Helps
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: Judge, criteria: "Is it helpful?"}]}
"""


class Judge:
    """Says what `scores` holds, one after the other, for ever."""

    def __init__(self) -> None:
        self.say(0.9)

    def say(self, *scores: Any) -> None:
        self.scores = cycle(scores)

    def __call__(self, request: Request) -> Answer:
        said = json.dumps({"score": next(self.scores), "reasoning": "because \x1b[31mred"})
        message = {"role": "assistant", "content": said}
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return Answer(body=json.dumps({"model": "judge-1", "choices": [{"message": message}], "usage": usage}))


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def server(judge: Judge) -> Iterator[ScriptedServer]:
    with serving(judge) as running:
        yield running


@pytest.fixture
def suite(server: ScriptedServer, tmp_path: Path) -> Path:
    path = tmp_path / "orders.suite.yaml"
    path.write_text(SUITE % server.url, "utf-8")
    return path


def run_ids(cli: Any) -> list[str]:
    return [one["run"] for one in json.loads(cli("show", "last", "--json").out)["runs"]]


def test_a_run_with_a_judge_says_what_the_judge_used(cli: Any, suite: Path) -> None:
    without = cli("run", suite)
    assert without.code == 3
    assert "--judge" in without.out
    done = cli("run", suite, "--judge", "strict")
    assert done.code == 0, done.out + done.err
    assert "judges and others: 1 reply, 100 + 10 tokens" in done.out
    unknown = cli("run", suite, "--judge", "strikt")
    assert unknown.code == 2
    assert "strict" in unknown.err


def test_judge_report_compares_with_labels(cli: Any, suite: Path, judge: Judge) -> None:
    assert "nothing has run yet" in cli("judge-report").out
    other = suite.parent / "other"
    other.mkdir()
    unjudged = suite.read_text().replace('{type: Judge, criteria: "Is it helpful?"}', "{type: Length}")
    (other / "plain.suite.yaml").write_text(unjudged.replace("name: Orders", "name: Plain"), "utf-8")
    cli("run", other)
    assert cli("judge-report").out == "no stored run was judged or labelled\n"
    for score in (0.9, 0.1):
        judge.say(score)
        # Another wording asks anew; the same would be answered from the history.
        suite.write_text(suite.read_text().replace("helpful", f"helpful ({score})"), "utf-8")
        cli("run", suite, "--judge", "strict")
        (run,) = run_ids(cli)
        cli("label", f"{run}/1", 5, "--who", "kim", "--comment", "good")
    report = cli("judge-report", "--suite", "Orders")
    assert "n = 2" in report.out
    assert "accuracy 50 %" in report.out
    assert "only the person 1" in report.out
    assert f"{run}/1" in report.out
    # Each wording judged a labelled run, but none the other's.
    assert "no labelled run has a verdict of both newest versions" in report.out
    (one,) = cli("judge-report", "--suite", suite, "--json").json("judge-report")["criteria"]
    assert (one["judged"], one["labelled"], one["n"], one["accuracy"], one["kappa"]) == (2, 2, 2, 0.5, 0.0)
    assert (one["criterion"], one["judges"], one["differ"]) == ("Helps", ["judge-1"], [f"{run}/1"])
    assert cli("judge-report", "--suite", "Other").code == 2
    either = cli("judge-report", "--suite", "Orders", "--suite", "Other")
    assert (either.code, "Other: this suite has no stored runs" in either.err) == (2, True)


def test_what_the_judge_was_asked_and_said(cli: Any, suite: Path) -> None:
    cli("run", suite, "--judge", "strict")
    (run,) = run_ids(cli)
    cli("label", run, 2, "--who", "kim")
    said = cli("judge-report", f"{run}/Helps")
    for part in ("Is it helpful?", "<<<DATA", '"score": 0.9', "a person (kim) rated it 2 of 5", "100 + 10 tokens"):
        assert part in said.out
    assert "\x1b" not in said.out
    shown = cli("judge-report", run, "--json").json("judge-replies")
    assert json.loads(shown["replies"][0]["raw"])["score"] == 0.9
    assert shown["label"]["rating"] == 2
    assert shown["replies"][0]["request"]["payload"]["messages"][0]["role"] == "system"


def test_asking_again_shows_how_far_the_judge_agrees_with_itself(cli: Any, suite: Path, judge: Judge) -> None:
    cli("run", suite, "--judge", "strict")
    (run,) = run_ids(cli)
    judge.say(0.9, 0.8, 0.2)
    told = cli("judge-report", f"{run}/1", "--reask", 6, "--judge", "strict", "--json").json("judge-reask")
    assert told["outcomes"] == {"passed": 4, "failed": 2}
    assert sorted(told["scores"]) == [0.2, 0.2, 0.8, 0.8, 0.9, 0.9]
    assert (told["median"], told["flips"], told["asked"]) == (pytest.approx(0.8), 2, 6)
    assert told["spread"] == pytest.approx(0.7)
    text = cli("judge-report", f"{run}/1", "--reask", 3, "--judge", "strict").out
    assert "1 verdict of 3 differs from the majority" in text
    assert "stored: passed" in text
    assert "2 error" in cli("judge-report", f"{run}/1", "--reask", 2).out


def test_wrong_use(cli: Any, suite: Path) -> None:
    assert cli("judge-report", "--reask", 3).code == 2
    assert cli("judge-report", "nothing/1").code == 2
    assert cli("label", "nothing", 3).code == 2
    cli("run", suite, "--judge", "strict")
    (run,) = run_ids(cli)
    assert cli("label", run, 6).code == 2
    assert cli("judge-report", f"{run}/7").code == 2
    assert cli("judge-report", f"{run}/1", "--judge", "strict").code == 2
    assert cli("judge-report", f"{run}/1", "--trust").code == 2


def test_a_criterion_that_asks_no_judge_is_not_asked_again(cli: Any, suite: Path) -> None:
    suite.write_text(suite.read_text().replace('{type: Judge, criteria: "Is it helpful?"}', "{type: Length}"), "utf-8")
    cli("run", suite)
    (run,) = run_ids(cli)
    again = cli("judge-report", f"{run}/1", "--reask", 3, "--judge", "strict")
    assert (again.code, again.out) == (2, "")
    assert "the criterion 'Helps' asks no judge" in again.err
    assert "has 0 judged criteria" in cli("judge-report", run).err


def test_stored_runs_are_graded_again_without_asking(
    cli: Any, suite: Path, server: ScriptedServer, judge: Judge
) -> None:
    cli("run", suite, "--judge", "strict")
    asked = len(server.requests)
    stricter = suite.read_text().replace('helpful?"', 'helpful?", pass_threshold: 0.95')
    suite.write_text(stricter, "utf-8")
    again = cli("grade", suite, "--execution", "last")
    assert again.code == 1, again.out
    assert len(server.requests) == asked
    suite.write_text(stricter.replace("helpful?", "polite?"), "utf-8")
    other = cli("grade", suite, "--execution", "last")
    assert other.code == 3
    assert "has not been asked this question yet" in other.out
    judge.say(1.0)
    kept = cli("grade", suite, "--execution", "last", "--judge", "strict", "--save")
    assert kept.code == 0, kept.out
    assert len(server.requests) == asked + 1
    (run,) = run_ids(cli)
    assert "Is it polite?" in cli("judge-report", run).out
    assert cli("grade", suite, "--execution", "last").code == 0  # the new execution has its replies


def test_given_transcripts_are_judged_when_asked_for(cli: Any, server: ScriptedServer, tmp_path: Path) -> None:
    from agenteval_tui.core.directories import config_dir

    config_dir().mkdir(parents=True)
    judge = {"kind": "openai", "base_url": server.url, "model": "judge-1", "stream": False}
    (config_dir() / "agents.yaml").write_text(json.dumps({"agents": {"mine": judge}}))
    criterion = {
        "name": "Helps",
        "prototype_class": "TextResponse",
        "config_uxon": {"metrics": [{"type": "Judge", "criteria": "Helpful?"}]},
    }
    criteria, transcript = tmp_path / "criteria.json", tmp_path / "transcript.json"
    criteria.write_text(json.dumps(criterion))
    transcript.write_text('[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]')
    alone = cli("grade", "--criteria", criteria, "--transcript", transcript)
    assert alone.code == 3
    assert "not been asked yet" in alone.out
    asked = cli("grade", "--criteria", criteria, "--transcript", transcript, "--judge", "mine", "--json")
    assert json.loads(asked.out)[0]["score"] == 0.9


def test_a_person_decides(cli: Any, suite: Path, tmp_path: Path) -> None:
    suite.write_text(
        suite.read_text().replace('type: Judge, criteria: "Is it helpful?"', 'type: Human, question: "Helpful?"'),
        "utf-8",
    )
    cli("run", suite)
    (run,) = run_ids(cli)
    assert json.loads(cli("show", run, "--json").out)["outcome"] == "needs_review"
    # Somebody decides in a copy of the history: when that comes in, nothing waits here either.
    copied = tmp_path / "copied.db"
    cli("db", "export", copied)
    assert cli("--db", copied, "label", run, "2").code == 0
    assert cli("db", "import", copied).code == 0
    assert json.loads(cli("show", run, "--json").out)["outcome"] == "failed"
    labelled = cli("label", f"{run}/1", 5, "--who", "kim")
    assert "passed" in labelled.out
    assert json.loads(cli("show", run, "--json").out)["outcome"] == "passed"
    assert "failed" in cli("label", run + "/Helps", 1).out
    assert "a person (kim)" not in cli("why", run).out, "the last label decides"
    assert json.loads(cli("show", "last", "--json").out)["summary"]["failed"] == 1


def test_functions_run_only_with_trust(cli: Any, suite: Path) -> None:
    (suite.parent / "checks.py").write_text("def short(value, most): return len(value) <= most\n")
    metric = 'type: Python, function: "checks:short", most: 100000'
    suite.write_text(suite.read_text().replace('type: Judge, criteria: "Is it helpful?"', metric), "utf-8")
    refused = cli("run", suite)
    assert refused.code == 2
    assert "python function checks:short" in refused.err
    assert "--trust" in refused.err
    assert cli("run", suite, "--trust").code == 0


def test_the_workbench_grades_with_what_was_said(cli: Any, suite: Path, server: ScriptedServer) -> None:
    from agenteval_tui.analysis.workbench import Workbench
    from agenteval_tui.core.directories import history_file
    from agenteval_tui.history.store import Store

    cli("run", suite, "--judge", "strict", "--repeat", "3")
    asked = len(server.requests)
    with Store.open(history_file(None)) as store:
        bench = Workbench.open(store, run_ids(cli)[0])
        assert bench.judge(0).outcome == "passed", bench.judge(0)
        text = bench.criteria[0].text
        stricter = text.replace('"Judge",', '"Judge", "pass_threshold": 0.95,')
        assert stricter != text
        assert bench.judge(0, stricter).outcome == "failed"
        *_, impact = bench.impact(0, stricter)
        assert (impact.now, impact.then) == ({"passed": 3}, {"failed": 3})
        other = bench.judge(0, text.replace("helpful", "polite"))
        assert other.outcome == "error"
        assert "has not been asked this question yet" in criterion_sentence(other)
    assert len(server.requests) == asked
