"""The pytest plug-in, in real pytest sessions: within this process, without any other plug-in."""

from __future__ import annotations

import gc
import io
import re
import subprocess
from collections import Counter
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

import pytest

import agenteval_tui as agenteval
from agenteval_tui.suites.trust import Trust

SUITE = """
name: Little
agent: d
agents: {d: {kind: demo, version: v1, pace: 0}}
tests:
  - id: good
    prompt: "Where is my order #W1042?"
    repeat: 2
    criteria:
      - name: says customs
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: customs}]}
  - id: bad
    prompt: "Where is my order #W1042?"
    repeat: 3
    criteria:
      - name: says moon
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: moon}]}
"""
CHECKS = """
import asyncio
POLITE = {"name": "polite", "prototype_class": "TextResponse",
          "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "please"}]}}

def test_text(agenteval):
    assert agenteval.check("yes please", POLITE).passed

def test_messages(agenteval):
    agenteval.check([{"role": "user", "content": "hi"}, {"role": "assistant", "content": "no"}], [POLITE])

async def ask():
    await asyncio.sleep(0)
    return "please"

def test_repeated(agenteval):
    agenteval.check(ask, POLITE, repeat=3, pass_rate=0.8)

def test_rate(agenteval):
    answers = iter(("please", "no", "please", "no"))
    agenteval.check(lambda: next(answers), POLITE, repeat=4, pass_rate=0.504)

def test_twice(agenteval):
    agenteval.check("please", POLITE)
    agenteval.check("please", POLITE, name="again")

def test_repeat_needs_a_function(agenteval):
    agenteval.check("please", POLITE, repeat=2)

def test_suite(agenteval):
    execution = agenteval.run("little.suite.yaml", tests=["good"], agent=lambda prompt: "customs", repeat=1)
    assert execution.passed
"""


@dataclass
class Outcome:
    """A session: its exit code, what it printed, and how many tests ended how."""

    code: int
    text: str
    ends: Counter[str] = field(default_factory=Counter)


@dataclass
class Session:
    """Runs pytest in a folder."""

    folder: Path

    def __call__(self, *arguments: str) -> Outcome:
        ends: Counter[str] = Counter()

        class Counting:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.when == "call":
                    ends[report.outcome] += 1

            def pytest_collectreport(self, report: pytest.CollectReport) -> None:
                ends["broken"] += report.failed

        with redirect_stdout(io.StringIO()) as out:
            code = pytest.main(
                [
                    *(
                        "-p",
                        "agenteval_tui.pytest_plugin",
                        "-p",
                        "no:faulthandler",
                        "--import-mode=importlib",
                        "--capture=sys",
                    ),
                    *("--rootdir", str(self.folder), "--agenteval-db", str(self.folder / "history.db"), *arguments),
                ],
                plugins=[Counting()],
            )
        return Outcome(int(code), out.getvalue(), +ends)

    @property
    def history(self) -> agenteval.History:
        return agenteval.History(self.folder / "history.db", all_projects=True)


@pytest.fixture(scope="module", autouse=True)
def only_what_is_made_here_is_looked_through() -> None:
    """Each session ends with five looks through all there is for what breaks as it goes: a second and a half where
    thousands of tests ran before."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "little.suite.yaml").write_text(SUITE)
    return Session(tmp_path)


def test_suites_are_collected_run_once_and_say_why(session: Session) -> None:
    done = session("--junitxml=out.xml")
    assert done.ends == {"passed": 1, "failed": 1}
    assert "Little: bad" in done.text
    assert "3 of 3 runs did not pass" in done.text
    assert 'contains: "moon" is not in the text' in done.text
    (execution,) = session.history.executions()  # both tests ran together
    assert len(execution.of("good")) == 2
    assert len(execution.of("bad")) == 3
    assert f"execution {execution.id}: agenteval show {execution.id}" in done.text
    cases = ElementTree.parse(session.folder / "out.xml").iter("testcase")
    kept = {(case.get("name"), one.get("name"), one.get("value")) for case in cases for one in case.iter("property")}
    assert {("good", "says customs", "passed 2 of 2"), ("bad", "says moon", "passed 0 of 3")} <= kept


def test_only_what_is_selected_runs(session: Session) -> None:
    assert session("-k", "bad", "--agenteval-repeat=1").ends == {"failed": 1}
    assert session("--lf", "--agenteval-agent=d").ends == {"failed": 1}
    assert session("little.suite.yaml::good").ends == {"passed": 1}
    assert [run.test for run in session.history.runs()] == ["good", "good", "bad", "bad", "bad", "bad"]


def test_tags_are_marks(session: Session) -> None:
    tagged = SUITE.replace("  - id: good\n", "  - id: good\n    tags: [smoke, skip, two-words]\n")
    assert tagged != SUITE
    (session.folder / "little.suite.yaml").write_text(tagged)
    (session.folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
    assert session("-m", "smoke").ends == {"passed": 1}
    assert session("-m", "two-words").ends == {"passed": 1}
    assert session("-m", "not smoke").ends == {"failed": 1}


def test_what_to_do_next_names_the_history(session: Session) -> None:
    done = session()
    (execution,) = session.history.executions()
    option = f" --db {session.folder / 'history.db'}"
    assert f"agenteval show {execution.id}{option}" in done.text
    why = [line for line in done.text.splitlines() if "agenteval why " in line]
    assert why
    assert all(line.endswith(option) for line in why)


def test_an_assertion_on_an_execution_says_why(session: Session) -> None:
    (session.folder / "test_says_why.py").write_text(
        "def test_it(agenteval):\n"
        "    execution = agenteval.run('little.suite.yaml', tests=['bad'])\n"
        "    assert execution\n"
    )
    done = session("test_says_why.py")
    assert done.ends == {"failed": 1}
    assert '"moon" is not in the text' in done.text


def test_a_suite_in_error_is_an_error_of_collecting_and_they_can_be_left_out(session: Session) -> None:
    (session.folder / "broken.suite.yaml").write_text("name: x\ntests:\n  - {id: a, promt: x, criteria: []}\n")
    done = session("broken.suite.yaml")
    assert done.ends == {"broken": 1}
    assert "broken.suite.yaml:3:" in done.text
    assert "promt" in done.text
    assert "Traceback" not in done.text
    assert session("-o", "agenteval_suites=false").code == pytest.ExitCode.NO_TESTS_COLLECTED


def test_checks_of_a_session_are_one_execution(session: Session) -> None:
    (session.folder / "test_it.py").write_text(CHECKS)
    done = session("test_it.py")
    assert done.ends == {"passed": 4, "failed": 3}
    assert 'contains: "please" is not in the text' in done.text
    assert "2 of 4 runs passed: 50 % (too few for an interval), wanted 50.4 %" in done.text
    assert "give a function that asks the agent" in done.text
    checks = next(one for one in session.history if one.row.title.startswith("pytest: "))
    assert checks.status == "finished"
    assert list(dict.fromkeys(run.test for run in checks)) == [
        *("test_text", "test_messages", "test_repeated", "test_rate", "test_twice", "test_twice again")
    ]
    assert [run.passed for run in checks.of("test_rate")] == [True, False, True, False]
    assert len(checks.of("test_repeated")) == 3
    assert '"please" is not in the text' in checks.of("test_messages")[0].why()


def test_executions_of_a_session_have_its_name_and_the_commit(session: Session) -> None:
    config = {"metrics": [{"type": "TextMatch", "contains": "x"}]}
    criterion = {"name": "has x", "prototype_class": "TextResponse", "config_uxon": config}
    code = f"def test_text(agenteval):\n    agenteval.check('x', [{criterion!r}])\n"
    (session.folder / "test_it.py").write_text(code)
    us = ("git", "-c", "user.name=kim", "-c", "user.email=kim@localhost", "-c", "commit.gpgsign=false")
    for words in (("init", "--quiet"), ("add", "--all"), ("commit", "--quiet", "--message=first")):
        subprocess.run((*us, *words), cwd=session.folder, check=True, capture_output=True)
    session("--agenteval-name", "v2", "--agenteval-meta", "model=mini")
    executions = session.history.executions(search="name:v2 meta.model:mini")
    assert len(executions) == 2
    assert len({commit.commit for one in executions for commit in one.commits}) == 1
    assert "--agenteval-meta 'x' has no value" in session("--agenteval-meta", "x").text


def test_a_gate_decides_how_many_runs_must_pass(session: Session) -> None:
    # A name of its own: this process keeps the modules of the sessions before.
    (session.folder / "test_with_gate.py").write_text("""
SUITE = {"name": "x", "tests": [{"id": "some", "prompt": "?", "repeat": 4, "gate": {"pass_rate": 0.5}, "criteria": [
    {"name": "yes", "prototype_class": "TextResponse",
     "config_uxon": {"metrics": [{"type": "TextMatch", "contains": "yes"}]}}]}]}

def test_reached(agenteval):
    answers = iter(("yes", "no", "yes", "no"))
    execution = agenteval.run(SUITE, agent=lambda prompt: next(answers), concurrency=1)
    assert execution.passed and not execution.failures and execution.pass_rate == 0.5
    assert [bool(run.excuse) for run in execution] == [False, True, False, True]

def test_missed(agenteval):
    answers = iter(("yes", "no", "no", "no"))
    assert agenteval.run(SUITE, agent=lambda prompt: next(answers), concurrency=1).passed
""")
    path = session.folder / "little.suite.yaml"
    path.write_text(SUITE.replace("repeat: 3", "repeat: 3\n    gate: {pass_rate: 0.8}"))
    done = session()
    assert done.ends == {"passed": 2, "failed": 2}
    assert "gate 80 % missed: 0 of 3 runs passed (0 %)" in done.text


def test_the_repository_of_the_tests_is_trusted_but_not_to_send_secrets(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_KEY", "sk-secret")
    path = session.folder / "little.suite.yaml"
    program = "{kind: command, command: [echo, customs moon], output: text}"
    path.write_text(SUITE.replace("{kind: demo, version: v1, pace: 0}", program))
    assert session().ends == {"passed": 2}
    model = '{kind: openai, model: m, base_url: "https://shop.test", api_key_env: SHOP_KEY}'
    path.write_text(SUITE.replace("{kind: demo, version: v1, pace: 0}", model))
    done = session()
    assert done.ends == {"failed": 2}
    assert "needs your trust: sends SHOP_KEY to shop.test" in done.text
    assert "--agenteval-trust allows it once" in done.text
    assert "Traceback" not in done.text
    assert Trust.load().listed() == [], "nothing is remembered"


def test_another_repository_is_not_trusted_with_it(session: Session) -> None:
    (session.folder / ".git").mkdir()
    vendor = session.folder / "vendor"
    (vendor / ".git").mkdir(parents=True)
    (vendor / "theirs.py").write_text("def main(messages): return 'customs moon'\n")
    agent = "{kind: python, callable: 'vendor.theirs:main'}"
    path = session.folder / "little.suite.yaml"
    path.write_text(SUITE.replace("{kind: demo, version: v1, pace: 0}", agent))
    assert "needs your trust: python agent vendor.theirs:main" in session().text
    assert session("--agenteval-trust").ends == {"passed": 2}


def test_the_page_does_what_it_says(session: Session) -> None:
    page = (Path(__file__).resolve().parents[2] / "docs/pytest.md").read_text("utf-8")
    (session.folder / "test_page.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    done = session("test_page.py")
    assert done.ends == {"passed": 3}
    options = re.findall(r"`(--agenteval-[a-z-]+)", page)
    assert set(options) == set(re.findall(r"(--agenteval-[a-z-]+)", session("--help").text))
