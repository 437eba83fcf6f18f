"""A judge with a prompt of a person's own that may keep silent: run, label, grade again, report, review."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted import Answer, Request, ScriptedServer
from threaded import serving

from agenteval_tui.analysis.agreement import judge_figures
from agenteval_tui.analysis.labels import give_labels, gradings_of
from agenteval_tui.analysis.review_queue import queue
from agenteval_tui.analysis.workbench import Workbench
from agenteval_tui.core.directories import history_file
from agenteval_tui.history.labels import Label
from agenteval_tui.history.store import Store
from tests.work import lines_run

PROMPT = "Rate from 1 to 5.\nQuestion: {{prompt}}\nAnswer: {{output}}\nOne number only."
ROWS = 60
# Answers that end with 1 or 5 are judged right. One in two that end with 3 is good, and the judge gives 3.
SCORES = [5] * 25 + [1] * 25 + [3] * 10
GOOD = [True] * 25 + [False] * 25 + [True, False] * 5


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    def answer(request: Request) -> Answer:
        asked = request.json["messages"][-1]["content"]
        text = (
            f"Answer of {asked}" if request.json["model"] == "bot" else asked.split("Answer of q")[1].split("s")[1][0]
        )
        choice = {"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 1}
        return Answer(body=json.dumps({"model": request.json["model"], "choices": [choice], "usage": usage}))

    with serving(answer) as running:
        yield running


class Project:
    """A suite with a data set of a row for each of `SCORES`, and its history."""

    def __init__(self, cli: Any, folder: Path, server: ScriptedServer) -> None:
        self.cli, self.path, self.server = cli, folder / "support.suite.yaml", server
        rows = [{"question": f"q{number}s{score}"} for number, score in enumerate(SCORES)]
        (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
        self.write()

    def write(self, **judge: Any) -> None:
        metric = {"type": "Judge", "prompt": PROMPT, "reply": "number", "scale": "one_to_five", **judge}
        criterion = {"name": "Fine", "prototype_class": "TextResponse", "config_uxon": {"metrics": [metric]}}
        agent = {"kind": "openai", "base_url": self.server.url, "stream": False}
        test = {"id": "ask", "prompt": "{{question}}", "dataset": {"file": "rows.jsonl"}, "criteria": [criterion]}
        agents = {"bot": {**agent, "model": "bot"}, "judge": {**agent, "model": "judge-1"}}
        suite = {"name": "Support", "agent": "bot", "agents": agents, "tests": [test]}
        self.path.write_text(json.dumps(suite), "utf-8")

    def asked(self) -> int:
        return sum(request.json["model"] == "judge-1" for request in self.server.requests)

    def document(self, *arguments: Any) -> Any:
        done = self.cli(*arguments, "--json")
        assert done.code in (0, 1, 3), done.out + done.err
        return json.loads(done.out)

    def label(self, rows: range) -> None:
        """People's labels of these rows of the last execution."""
        with Store.open(history_file()) as store:
            runs = {one["row"]: one["run"] for one in self.document("show", "last")["runs"]}
            give_labels(store, [Label(runs[row], criterion="Fine", passed=GOOD[row - 1]) for row in rows])


@pytest.fixture
def project(cli: Any, tmp_path: Path, server: ScriptedServer) -> Project:
    return Project(cli, tmp_path, server)


def outcomes(runs: list[Any]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in runs:
        found[one["outcome"]] = found.get(one["outcome"], 0) + 1
    return found


def test_a_judge_keeps_silent_where_people_show_it_to_be_wrong(project: Project, tmp_path: Path) -> None:
    project.cli("run", project.path)
    assert outcomes(project.document("show", "last")["runs"]) == {"passed": 25, "failed": 35}
    project.label(range(1, 57))
    asked = project.asked()
    project.write(accept={"error": 0.12})
    graded = project.document("grade", project.path, "--execution", "last", "--save")
    # Of the ten that the judge scored 3, people have decided six; four wait.
    assert outcomes(graded["runs"]) == {"passed": 28, "failed": 28, "needs_review": 4}
    assert project.asked() == asked  # the answers are known: this costs nothing
    (waiting, *_) = [one for one in project.document("show", "last")["runs"] if one["outcome"] == "needs_review"]
    shown = project.cli("show", waiting["run"]).out
    assert "the judge gave 3 of 1..5 and keeps silent between 2 and 3.5" in shown
    figures = project.document("show", "last")["summary"]
    assert (figures["passed"], figures["failed"], figures["needs_review"]) == (28, 28, 4)

    with Store.open(history_file()) as store:
        items = queue(store)
    assert len(items) == 4
    assert all("keeps silent between 2 and 3.5" in item.question for item in items)
    labelled = project.cli("label", f"{items[0].run_id}/Fine", "passed")
    assert "the run now counts as passed" in labelled.out

    report = project.document("judge-report")["criteria"][0]
    assert (report["silent"], report["undecided"], report["n"], report["accuracy"]) == (10, 7, 50, 1.0)
    assert [(one["n"], one["silent"]) for one in report["versions"]] == [(50, 10), (57, 0)]
    assert (report["silent_n"], report["silent_right"]) == (7, 3)  # it would have failed all of them
    words = project.cli("judge-report").out
    assert "10 left to people" in words
    assert "of 7 labelled runs that it left to people, it would have been right in 3" in words


def test_a_run_of_a_judge_that_knows_its_limits(project: Project, tmp_path: Path) -> None:
    project.write(accept={"error": 0.12})
    first = project.cli("run", project.path)
    assert "60 to be reviewed" in first.out
    assert "0 labels of runs that it scored are too few" in first.out
    # The second half has twice the labels to look at: once, and not for each run.
    halves = [lines_run(lambda rows=rows: project.label(rows)) for rows in (range(1, 31), range(31, 61))]
    assert halves[1] < 1.5 * halves[0]
    junit, markdown, results = tmp_path / "j.xml", tmp_path / "r.md", tmp_path / "r.json"
    done = project.cli("run", project.path, "--junit", junit, "--md", markdown, "--json", results)
    assert done.code == 1
    totals = json.loads(results.read_text("utf-8"))["summary"]
    assert (totals["passed"], totals["failed"], totals["needs_review"]) == (25, 25, 10)
    suite = ET.parse(junit).getroot().find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert sum(case.find("failure") is not None for case in cases) == 25
    assert sum(case.find("skipped") is not None for case in cases) == 10
    assert "wait for a person" in markdown.read_text("utf-8")


def test_a_changed_prompt_is_compared_before_it_is_trusted(project: Project) -> None:
    project.cli("run", project.path)
    project.label(range(1, 61))
    project.write(prompt=PROMPT.replace("Rate", "Score"))
    before = project.cli("judge-report").out
    assert "version" not in before
    unasked = project.document("grade", project.path, "--execution", "last")
    assert outcomes(unasked["runs"]) == {"error": 60}
    asked = project.asked()
    project.cli("grade", project.path, "--execution", "last", "--judge", "judge", "--save")
    assert project.asked() == asked + 60
    report = project.document("judge-report")["criteria"][0]
    newest, first = report["versions"]
    assert (newest["n"], first["n"], newest["both"]) == (60, 60, 60)
    assert (newest["better"], newest["worse"], newest["p_value"]) == (0, 0, 1.0)
    words = project.cli("judge-report").out
    assert "of 60 labelled runs that both newest versions decided" in words
    # The same in the app's sheet, which looks at the labels' runs first.
    with Store.open(history_file()) as store:
        rows = gradings_of(store, dict.fromkeys(one.run_id for one in store.labels()))
        (figures,) = judge_figures(store, rows)
    assert [version.n for version in figures.versions] == [60, 60]


def test_what_an_edit_costs_in_the_workbench(project: Project) -> None:
    """Bounds and thresholds are graded on a keystroke; another prompt asks the judge, and the workbench says so."""
    project.cli("run", project.path)
    project.label(range(1, 61))
    project.cli("run", project.path)  # the same cases again, which nobody has labelled
    asked = project.asked()
    with Store.open(history_file()) as store:
        run = project.document("show", "last")["runs"][-1]["run"]
        bench = Workbench.open(store, run)
        saved = bench.criteria[0].text

        def edited(text: str) -> dict[str, int]:
            *_, impact = bench.impact(0, text)
            return {str(outcome): number for outcome, number in impact.then.items()}

        # The execution that people labelled, and the one after it.
        assert edited(saved) == {"passed": 50, "failed": 70}
        silent = saved.replace('"type"', '"accept": {"error": 0.12}, "type"')
        assert edited(silent) == {"passed": 55, "failed": 55, "needs_review": 10}
        assert edited(silent.replace("0.12", "0.3")) == {"passed": 50, "failed": 70}
        assert edited(silent.replace("0.12", "0.01")) == {"passed": 30, "failed": 30, "needs_review": 60}
        assert edited(saved.replace("Rate from", "Score from")) == {"error": 120}
        result = bench.judge(0, saved.replace("Rate from", "Score from"))
        assert result.metrics[0].code == "not_asked_this"
    assert project.asked() == asked
