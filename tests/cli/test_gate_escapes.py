"""Forty ways in which a real regression could pass `--no-regressions`: each misses the gate, or is named in its line.

Every way is two executions by the command line, before and after, against an agent behind HTTP whose answers are known.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from msgspec import Struct

Answers = Mapping[str, str]
"""By what is asked: a letter each repetition. y: "yes", n: "no", x: the server fails."""


class Agent:
    """Answers by what it is asked; the last letter is said again and again."""

    def __init__(self) -> None:
        self.answers: Answers = {}
        self.asked: Counter[str] = Counter()
        agent = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["prompt"]
                letters = agent.answers.get(question, "y")
                letter = letters[min(agent.asked[question], len(letters) - 1)]
                agent.asked[question] += 1
                reply = json.dumps({"answer": {"y": "yes", "n": "no", "x": ""}[letter], "tokens": 9}).encode()
                self.send_response(400 if letter == "x" else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(reply)))
                self.end_headers()
                self.wfile.write(reply)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/"
        Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture(scope="module")
def agent() -> Iterator[Agent]:
    served = Agent()
    yield served
    served.server.shutdown()
    served.server.server_close()


def criterion(name: str = "yes", contains: str = "yes", **more: Any) -> dict[str, Any]:
    config = {"metrics": [{"type": "TextMatch", "contains": contains}]}
    return {"name": name, "prototype_class": "TextResponse", "config_uxon": config, **more}


def human(name: str) -> dict[str, Any]:
    config = {"metrics": [{"type": "Human", "question": "Is it?"}]}
    return {"name": name, "prototype_class": "TextResponse", "config_uxon": config}


def a_test(name: str, *criteria: dict[str, Any], prompt: str = "", **more: Any) -> dict[str, Any]:
    return {"id": name, "prompt": prompt or name, "criteria": list(criteria) or [criterion()], **more}


ROWS = "id,q\n" + "".join(f"r{number},row {number}\n" for number in range(5))
ROW_TEST = a_test("t", prompt="{{ q }}", dataset={"file": "rows.csv"})
NO_IDS = "q\n" + "".join(f"row {number}\n" for number in range(5))
THREE = (a_test("a"), a_test("b"), a_test("c"))


class State(Struct, frozen=True):
    """A suite and what its agent answers. `file`: where the suite is, `rows`: its dataset, `top`: further keys."""

    tests: Sequence[dict[str, Any]] = THREE
    answers: Answers = {}
    rows: str = ""
    top: Mapping[str, Any] = {}
    file: str = "s.suite.yaml"
    body: Any = None
    options: Sequence[str] = ()


class Way(Struct, frozen=True):
    """`code` and `said` (a pattern): of the gate after. `strict`: an option with which it is missed."""

    before: State
    after: State
    code: int
    said: str
    strict: str = ""


def state(*tests: dict[str, Any], **more: Any) -> State:
    return State(tests=tests or THREE, **more)


SHORT = {"name": "short", "config": {"body": {"prompt": "short"}}}
TEN = [a_test(f"t{number}") for number in range(10)]
FIVE_EACH = {"defaults": {"repeat": 5}}
GATED = {"gate": {"pass_rate": 0.8}}
FAILS_B = {"b": "n"}

WAYS: dict[str, Way] = {
    # A verdict is worse.
    "one of ten tests breaks": Way(state(*TEN), state(*TEN, answers={"t4": "n"}), 1, r"t4: 1/1, now 0/1"),
    "one of ten tests breaks in all repetitions": Way(
        state(*TEN, top=FIVE_EACH), state(*TEN, top=FIVE_EACH, answers={"t4": "n"}), 1, r"t4: 5/5, now 0/5"
    ),
    "one breaks with two repetitions": Way(
        state(top={"defaults": {"repeat": 2}}), state(top={"defaults": {"repeat": 2}}, answers=FAILS_B), 1,
        r"b: 2/2, now 0/2",
    ),
    "all fall, each by itself within chance": Way(
        state(*TEN, top=FIVE_EACH, answers={f"t{n}": "yyynn" for n in range(10)}),
        state(*TEN, top=FIVE_EACH, answers={f"t{n}": "n" for n in range(10)}), 1,
        r"all tests together fell: 60 % to 0 %",
    ),
    "one row breaks": Way(
        state(ROW_TEST, rows=ROWS), state(ROW_TEST, rows=ROWS, answers={"row 3": "n"}), 1,
        r"t: 5/5, now 4/5; row r3 passed before and fails now",
    ),
    "rows break beside one that is known to fail": Way(
        state(ROW_TEST, rows=ROWS, answers={"row 0": "n"}),
        state(ROW_TEST, rows=ROWS, answers={"row 0": "n", "row 1": "n", "row 2": "n"}), 1,
        r"t: 4/5, now 2/5; rows r1, r2 passed before",
    ),
    "a row heals and another breaks": Way(
        state(ROW_TEST, rows=ROWS, answers={"row 0": "n"}), state(ROW_TEST, rows=ROWS, answers={"row 1": "n"}), 1,
        r"t: 4/5, now 4/5; row r1 passed before",
    ),
    "a test breaks while another heals": Way(
        state(answers={"a": "n"}), state(answers={"b": "n"}), 1, r"b: 1/1, now 0/1"
    ),
    "a test breaks beside flaky ones": Way(
        state(*TEN, top=FIVE_EACH, answers={f"t{n}": "yynyn" for n in range(9)}),
        state(*TEN, top=FIVE_EACH, answers={**{f"t{n}": "ynyny" for n in range(9)}, "t9": "n"}), 1,
        r"t9: 5/5, now 0/5",
    ),
    "one variation breaks": Way(
        state(a_test("t", variations=[SHORT])),
        state(a_test("t", variations=[SHORT]), answers={"short": "n"}), 1,
        r"t \[short\]: 1/1, now 0/1",
    ),
    "a failure is hidden in a dataset that grew": Way(
        state(ROW_TEST, rows=ROWS),
        state(ROW_TEST, rows=ROWS + "".join(f"n{n},new {n}\n" for n in range(40)), answers={"row 2": "n"}), 1,
        r"row r2 passed before",
    ),
    "rows are shuffled and one breaks": Way(
        state(ROW_TEST, rows=ROWS), state(ROW_TEST, rows="id,q\n" + "".join(ROWS.splitlines(True)[:0:-1]),
                                          answers={"row 4": "n"}), 1, r"row r4 passed before",
    ),
    "a row with an id is edited and breaks": Way(
        state(ROW_TEST, rows=ROWS), state(ROW_TEST, rows=ROWS.replace("row 1", "row 1 "), answers={"row 1 ": "n"}), 1,
        r"row r1 passed before",
    ),
    "the suite was moved and a test breaks": Way(
        state(), state(answers=FAILS_B, file="moved/here.suite.yaml"), 1, r"b: 1/1, now 0/1"
    ),
    # A verdict is gone.
    "a test is removed": Way(state(), state(THREE[0], THREE[2]), 0, r"did not run: b", "--no-missing"),
    "a test that fails gets another id": Way(
        state(), state(THREE[0], THREE[2], a_test("b2", prompt="b"), answers=FAILS_B), 0,
        r"(?s)did not run: b.*new tests that fail: b2", "--no-new-failures",
    ),
    "a row that fails is removed": Way(
        state(ROW_TEST, rows=ROWS), state(ROW_TEST, rows=ROWS.replace("r2,row 2\n", "")), 0,
        r"rows of the baseline that did not run: t \(row r2\)", "--no-missing",
    ),
    "a row without an id is edited": Way(
        state(ROW_TEST, rows=NO_IDS), state(ROW_TEST, rows=NO_IDS.replace("row 2", "row 2 "), answers={"row 2 ": "n"}),
        0, r"(?s)rows of the baseline that did not run: t \(row 3\).*new rows that fail: t \(row 3\)", "--no-missing",
    ),
    "a variation is removed": Way(
        state(a_test("t", variations=[SHORT])), state(a_test("t")), 0,
        r"did not run: t \[short\]", "--no-missing",
    ),
    "a test waits for a person": Way(
        state(), state(THREE[0], a_test("b", human("yes")), THREE[2], answers=FAILS_B), 0,
        r"no verdict to compare: b: waits for a person", "--no-missing",
    ),
    "all tests wait for a person": Way(
        state(THREE[1]), state(a_test("b", human("yes")), answers=FAILS_B), 1, r"nothing could be compared"
    ),
    "a limit stops it before the test": Way(
        state(), state(answers=FAILS_B, options=("--max-tokens", "1", "--concurrency", "1")), 1,
        r"no verdict to compare: b: was stopped",
    ),
    "the test ends in an error": Way(
        state(), state(answers={"b": "x"}), 3, r"no verdict to compare: b: ended in errors"
    ),
    "it ran less often": Way(
        state(top=FIVE_EACH), state(answers={"b": "yn"}), 0, r"ran less often than in the baseline: a: 5 times, now 1"
    ),
    "only other tests were chosen": Way(
        state(), state(answers=FAILS_B, options=("--test", "a")), 0, r"only the tests that --test chose were compared"
    ),
    "tags chose other tests": Way(
        state(a_test("a", tags=["fast"]), a_test("b")),
        state(a_test("a", tags=["fast"]), a_test("b"), answers=FAILS_B, options=("--tag", "fast")), 0,
        r"only the tests that --tag chose were compared",
    ),
    "a sample left it out": Way(
        state(*TEN), state(*TEN, options=("--sample", "1")), 0, r"only the tests that --sample chose were compared"
    ),
    "only what failed ran": Way(
        state(answers={"a": "n"}), state(answers={"a": "n", "b": "n"}, options=("--failed",)), 0,
        r"only the tests that --failed chose were compared",
    ),
    # It is judged differently.
    "the criterion became a remark": Way(
        state(), state(THREE[0], a_test("b", criterion(severity="info")), THREE[2], answers=FAILS_B), 0,
        r'judged differently than before, and counted all the same: b: severity of "yes" error → info',
    ),
    "the criterion became a warning": Way(
        state(), state(THREE[0], a_test("b", criterion(severity="warning")), THREE[2], answers=FAILS_B), 0,
        r'severity of "yes" error → warning',
    ),
    "the criterion counts nothing": Way(
        state(a_test("b", criterion(severity="warning"), criterion("other"), pass_threshold=0.6)),
        state(a_test("b", criterion(severity="warning", weight=0), criterion("other"), pass_threshold=0.6)), 0,
        r'weight of "yes" 1 → 0',
    ),
    "the test's threshold is lower": Way(
        state(a_test("b", criterion(), pass_threshold=0.9)), state(a_test("b", criterion(), pass_threshold=0.1)), 0,
        r"b: pass threshold 0.9 → 0.1",
    ),
    "the criterion's threshold is lower": Way(
        state(a_test("b", criterion(pass_threshold=0.9))),
        state(a_test("b", criterion(pass_threshold=0.0)), answers=FAILS_B), 0,
        r'judged differently than before, and counted all the same: b: criterion "yes"',
    ),
    "the criterion is loosened": Way(
        state(), state(THREE[0], a_test("b", criterion(contains="")), THREE[2], answers=FAILS_B), 0,
        r'judged differently than before, and counted all the same: b: criterion "yes"',
    ),
    "the criterion is removed": Way(
        state(a_test("b", criterion(), criterion("other", "e"))), state(a_test("b", criterion("other", "e"))), 0,
        r'judged differently than before, and counted all the same: b: criterion "yes"',
    ),
    "the criterion is negated": Way(
        state(), state(THREE[0], a_test("b", criterion(negate=True)), THREE[2], answers=FAILS_B), 0,
        r'judged differently than before, and counted all the same: b: criterion "yes"',
    ),
    "the suite's gate is lower": Way(
        state(top=GATED), state(top={"gate": {"pass_rate": 0.1}}), 0, r"a: gate 80 % → 10 %"
    ),
    "the option's gate is lower": Way(
        state(options=("--fail-under-test", "0.9")), state(options=("--fail-under-test", "0.1")), 0,
        r"a: gate 90 % → 10 %",
    ),
    # It is asked differently.
    "the prompt is easier": Way(
        state(), state(THREE[0], a_test("b", prompt="easy"), THREE[2], answers=FAILS_B), 0,
        r"asked differently than before: b: another prompt",
    ),
    "another agent answers": Way(
        state(), state(a_test("a"), answers=FAILS_B, top={"agent": "other"}), 0,
        r"asked differently than before: a: agent shop → other",
    ),
    "the agent is configured differently": Way(
        state(), state(body={"prompt": "{{ prompt }}", "model": "large"}), 0,
        r"asked differently than before: a: the agent's configuration",
    ),
    # It is new.
    "a new test fails": Way(
        state(), state(*THREE, a_test("d"), answers={"d": "n"}), 0, r"new tests that fail: d", "--no-new-failures"
    ),
    "a new row fails": Way(
        state(ROW_TEST, rows=ROWS), state(ROW_TEST, rows=ROWS + "r9,row 9\n", answers={"row 9": "n"}), 0,
        r"new rows that fail: t \(row r9\)", "--no-new-failures",
    ),
    "it had no verdict in the baseline": Way(
        state(answers={"b": "x"}), state(answers=FAILS_B), 0, r"new tests that fail: b", "--no-new-failures"
    ),
}  # fmt: skip


def write(folder: Path, wanted: State, url: str) -> Path:
    """The suite of a state, alone in the folder."""
    for old in folder.rglob("*.suite.yaml"):
        old.unlink()
    path = folder / wanted.file
    path.parent.mkdir(exist_ok=True)
    body = {} if wanted.body is None else {"body": wanted.body}
    shop = {"kind": "http", "url": url, "answer": "answer", "usage": {"output": "tokens"}, **body}
    document = {"name": "Escapes", "agent": "shop", "agents": {"shop": shop, "other": shop}, **wanted.top}
    path.write_text(yaml.safe_dump({**document, "tests": list(wanted.tests)}, sort_keys=False), "utf-8")
    if wanted.rows:
        (path.parent / "rows.csv").write_text(wanted.rows, "utf-8")
    return path


def execute(cli: Any, folder: Path, agent: Agent, wanted: State, *options: str) -> Any:
    agent.answers, agent.asked = wanted.answers, Counter()
    return cli("run", write(folder, wanted, agent.url), "--trust", *wanted.options, *options)


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_no_regression_passes_without_a_word(cli: Any, tmp_path: Path, agent: Agent, way: Way) -> None:
    assert execute(cli, tmp_path, agent, way.before).code in (0, 1, 3)
    assert cli("baseline", "set", "last").code == 0
    report = tmp_path / "report.json"
    done = execute(cli, tmp_path, agent, way.after, "--no-regressions", "--json", str(report))
    assert done.code == way.code, done.out
    line = next(part for part in re.split(r"(?m)^(?=gates reached|no gate missed|gate not reached)", done.out)[1:])
    assert re.search(way.said, line if way.code == 0 else done.out), done.out
    against = json.loads(report.read_text("utf-8"))["baseline"]
    assert against["regressions"] or against["notices"] or against["selected"]
    if way.strict:
        done = execute(cli, tmp_path, agent, way.after, way.strict)
        assert done.code == 1, done.out
        assert f"gate not reached: {way.strict}" in done.out


def test_there_are_forty_of_them() -> None:
    assert len(WAYS) >= 40


def test_nothing_is_said_where_nothing_changed(cli: Any, tmp_path: Path, agent: Agent) -> None:
    for number, same in enumerate((state(), state(ROW_TEST, rows=ROWS), state(top=FIVE_EACH))):
        folder = tmp_path / str(number)
        folder.mkdir()
        execute(cli, folder, agent, same)
        cli("baseline", "set", "last")
        done = execute(cli, folder, agent, same, "--no-regressions", "--no-missing", "--no-new-failures")
        assert done.code == 0
        assert "\ngates reached\n" in done.out


def test_gates_are_not_called_reached_where_a_test_has_no_verdict(cli: Any, tmp_path: Path, agent: Agent) -> None:
    execute(cli, tmp_path, agent, state())
    cli("baseline", "set", "last")
    done = execute(cli, tmp_path, agent, state(answers={"b": "x"}), "--no-regressions")
    assert done.code == 3
    assert "gates reached" not in done.out
    assert "no gate missed by the tests that have a verdict" in done.out


def test_a_baseline_does_not_slide_with_each_fall(cli: Any, tmp_path: Path, agent: Agent) -> None:
    """Each fall by itself may be chance: the baseline stays the better one, so that the next is measured against it."""
    falls = ("yyyyy", "yyyyn", "yyynn", "yynnn", "ynnnn")
    execute(cli, tmp_path, agent, state(top=FIVE_EACH, answers={"b": falls[0]}))
    cli("baseline", "set", "last")
    codes = []
    for letters in falls[1:]:
        after = state(top=FIVE_EACH, answers={"b": letters})
        done = execute(cli, tmp_path, agent, after, "--no-regressions", "--set-baseline")
        codes.append(done.code)
        if done.code == 0:
            assert f"kept the better baseline of 1 test: b: 5/5, now {letters.count('y')}/5" in done.out
            assert "agenteval baseline set last" in done.out
            assert "baseline set for 2 tests" in done.out
    assert codes[0] == 0, "one of five may be chance"
    assert codes[-1] == 1, "5/5, now 1/5 is not"
    # Told to, it moves.
    assert cli("baseline", "set", "last").code == 0
    assert execute(cli, tmp_path, agent, after, "--no-regressions").code == 0


def test_a_baseline_keeps_the_rows_that_did_not_run(cli: Any, tmp_path: Path, agent: Agent) -> None:
    execute(cli, tmp_path, agent, state(ROW_TEST, rows=ROWS))
    cli("baseline", "set", "last")
    fewer = state(ROW_TEST, rows=ROWS.replace("r2,row 2\n", ""))
    done = execute(cli, tmp_path, agent, fewer, "--no-regressions", "--set-baseline")
    assert done.code == 0
    assert "kept the better baseline of 1 test: t (row r2)" in done.out
    back = state(ROW_TEST, rows=ROWS, answers={"row 2": "n"})
    assert execute(cli, tmp_path, agent, back, "--no-regressions").code == 1


def test_compare_says_that_an_added_row_fails(cli: Any, tmp_path: Path, agent: Agent) -> None:
    """An edited row without an id is another row: in no figure of the comparison, which would look as if all passed."""
    execute(cli, tmp_path, agent, state(ROW_TEST, rows=ROWS))
    cli("baseline", "set", "last")
    edited = state(ROW_TEST, rows=ROWS.replace("r2,row 2\n", "r2b,row 2b\n"), answers={"row 2b": "n"})
    execute(cli, tmp_path, agent, edited, "--no-regressions")
    assert "t (1 added, 1 of the added failing, 1 removed)" in " ".join(cli("compare").out.split())


def test_quarantine_excuses_its_own_test_alone(cli: Any, tmp_path: Path, agent: Agent) -> None:
    execute(cli, tmp_path, agent, state())
    cli("baseline", "set", "last")
    assert cli("quarantine", "add", "a", "--until", "30d").code == 0
    done = execute(cli, tmp_path, agent, state(answers={"a": "n"}), "--no-regressions")
    assert done.code == 0
    assert "fell, in quarantine: a: 1/1, now 0/1" in done.out
    assert execute(cli, tmp_path, agent, state(answers={"a": "n", "b": "n"}), "--no-regressions").code == 1


def test_the_gate_is_the_same_everywhere(
    cli: Any, tmp_path: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    fell = {f"t{n}": "yyynn" for n in range(10)}
    execute(cli, tmp_path, agent, state(*TEN, top=FIVE_EACH, answers=fell))
    cli("baseline", "set", "last")
    files = {kind: tmp_path / f"r.{kind}" for kind in ("json", "junit", "md", "html")}
    after = state(*TEN[1:], top=FIVE_EACH, answers={f"t{n}": "n" for n in range(10)})
    options = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    done = execute(cli, tmp_path, agent, after, "--no-regressions", *options)
    words = "all tests together fell: 60 % to 0 % (exact test over 9 cases, p &lt; 0.001)"
    plain = words.replace("&lt;", "<")
    missing = "in the baseline, and did not run: t0"
    assert f"gate not reached: --no-regressions: {plain}" in done.out
    assert f"::error title=agenteval::{plain.replace('%', '%25')}" in done.err
    assert f"::notice title=agenteval::{missing}" in done.err
    against = json.loads(files["json"].read_text("utf-8"))["baseline"]
    assert [(one["scope"], one["cause"]) for one in against["regressions"]] == [("overall", "fell")]
    assert [(one["code"], one["test"]) for one in against["notices"]] == [("not_run", "t0")]
    for kind, text in (("junit", words), ("md", plain[1:]), ("html", words[1:])):
        written = files[kind].read_text("utf-8").replace("\\", "")  # as Markdown escapes it
        assert text in written, kind
        assert missing[1:] in written, kind
    assert cli("show", "--json").json("results")["baseline"] == against
    assert "2 more" not in done.out


def test_a_baseline_that_says_nothing_of_these_tests_is_no_gate(cli: Any, tmp_path: Path, agent: Agent) -> None:
    execute(cli, tmp_path, agent, state())
    cli("baseline", "set", "last")
    other = state(top={"name": "Another suite"}, file="other.suite.yaml")
    done = execute(cli, tmp_path, agent, other, "--no-regressions")
    assert done.code == 2
    assert "none of these tests has a baseline" in done.err
