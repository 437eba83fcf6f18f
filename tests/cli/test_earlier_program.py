"""A test that passed until the agent's code changed: `why`, `blame` and `compare` say which files, and no run with
other code counts as a repetition."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from conftest import CommandLine

SUITE = """\
name: words
agent: own
agents:
  own: AGENT
tests:
  - id: says
    prompt: which word?
    criteria:
      - {name: the word, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: first}]}}
"""
COMMAND = "{kind: command, command: [python3, agent.py], output: text}"
FUNCTION = "{kind: python, callable: 'agent:main'}"
AGENT = """\
import os

from lib import helper

def main(messages):
    return helper.WORD

if __name__ == "__main__":
    print(helper.WORD)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "lib").mkdir()
    (tmp_path / "agent.py").write_text(AGENT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGENTEVAL_DB", str(tmp_path / "history.db"))
    return tmp_path


def run(cli: CommandLine, agent: str, word: str, repeat: int) -> int:
    Path("words.suite.yaml").write_text(SUITE.replace("AGENT", agent))
    Path("lib/helper.py").write_text(f"WORD = {word!r}\n")
    return cli("run", "words.suite.yaml", "--trust", "--repeat", repeat, "-q").code


def blame(cli: CommandLine, run_id: str = "says") -> Any:
    return cli("blame", run_id, "--json").json("blame")


@pytest.mark.parametrize("agent", [FUNCTION, COMMAND])
def test_a_test_that_passed_with_earlier_code(project: Path, cli: CommandLine, agent: str) -> None:
    assert run(cli, agent, "the first word", 3) == 0
    Path("lib/more.py").write_text("")
    assert run(cli, agent, "another word", 1) == 1
    changes = cli("compare", "--json").json("compare")["files"]
    done = cli("run", "words.suite.yaml", "--trust")
    assert "says passed with earlier code; files changed since: lib/helper.py and lib/more.py (added)" in done.out

    sentence = "3 of 3 runs passed; files changed since: lib/helper.py and lib/more.py (added)"
    assert f"with earlier code: {sentence}" in cli("why", "last").out
    answer = blame(cli)
    assert (answer["reproduces"], answer["runs"], answer["passed"]) == ("always", 2, 0)
    assert (answer["earlier_program"]["runs"], answer["earlier_program"]["passed"]) == (3, 3)
    # How often such a step is the right one is not measured: new code may do another thing there, and rightly so.
    assert (answer["decision"], answer["others"][0]["clues"][0]["code"]) == ("not_known", "parted_elsewhere")
    assert sentence in cli("blame", "says").out
    assert (
        changes
        == answer["earlier_program"]["files"]
        == cli("why", "last", "--json").json("why")["earlier_program"]["files"]
    )
    assert {(change["name"], change["change"]) for change in changes} == {
        ("lib/helper.py", "changed"),
        ("lib/more.py", "added"),
    }

    # An older run is blamed by what was before it, and the first code is the same again.
    failed = answer["run"]
    Path("lib/more.py").unlink()
    assert run(cli, agent, "the first word", 1) == 0
    assert blame(cli, failed)["earlier_program"]["runs"] == 4
    assert cli("compare", "last", "last", "--json").code == 2


SERVER = """\
import http.server, json, sys

from lib import helper

class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"output": helper.WORD}).encode())

with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
    print("ready", flush=True)
    server.serve_forever()
"""


def test_the_code_of_a_service_is_that_of_the_agent_that_asks_it(project: Path, cli: CommandLine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    Path("server.py").write_text(SERVER.replace('"127.0.0.1", 0', f'"127.0.0.1", {port}'))
    service = "{command: [python3, server.py], ready: {log: ready}}"
    agent = f"{{kind: http, url: 'http://127.0.0.1:{port}/', services: {{shop: {service}}}}}"
    assert run(cli, agent, "the first word", 2) == 0
    assert run(cli, agent, "another word", 1) == 1
    assert "2 of 2 runs passed; files changed since: lib/helper.py" in cli("why", "last").out


def test_what_passes_with_the_same_code_has_not_changed(
    project: Path, cli: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(cli, FUNCTION, "the first word", 1) == 0
    Path("agent.py").write_text(AGENT.replace("helper.WORD", "os.environ.get('OTHER_WORD', helper.WORD)", 1))
    assert run(cli, FUNCTION, "the first word", 1) == 0
    monkeypatch.setenv("OTHER_WORD", "nothing")
    assert run(cli, FUNCTION, "the first word", 1) == 1
    answer = blame(cli)
    assert (answer["earlier_program"], answer["runs"], answer["passed"]) == (None, 2, 1)
    assert "with earlier code" not in cli("why", "last").out


def test_what_passed_with_earlier_criteria_is_no_luck(project: Path, cli: CommandLine) -> None:
    assert run(cli, FUNCTION, "the first word", 3) == 0
    suite = Path("words.suite.yaml")
    suite.write_text(suite.read_text().replace("contains: first", "contains: last"))
    assert cli("run", suite, "--trust", "--repeat", 2, "-q").code == 1
    answer = blame(cli)
    assert (answer["reproduces"], answer["runs"], answer["passed"]) == ("always", 2, 0)
    assert (answer["could_pass"], answer["earlier_program"]) == ("unknown", None)


def test_a_state_that_is_lost_is_no_change_of_all_files(project: Path, cli: CommandLine) -> None:
    assert run(cli, FUNCTION, "the first word", 1) == 0
    assert run(cli, FUNCTION, "another word", 1) == 1
    with closing(sqlite3.connect("history.db")) as connection, connection:
        first = "SELECT one.value FROM executions, json_each(programs) AS one ORDER BY executions.id LIMIT 1"
        assert connection.execute(f"DELETE FROM tasks WHERE lower(hex(hash)) = ({first})").rowcount == 1
    assert blame(cli)["earlier_program"] is None
    assert cli("compare", "--json").json("compare")["files"] == []


def test_the_code_of_an_agent_goes_with_its_history(project: Path, cli: CommandLine) -> None:
    assert run(cli, FUNCTION, "the first word", 1) == 0
    assert run(cli, FUNCTION, "another word", 1) == 1
    there = project / "there.db"
    assert cli("db", "import", "history.db", "--db", there).code == 0
    assert cli("db", "prune", "--keep", 2, "--yes", "--db", there).code == 0
    assert cli("db", "check", "--db", there).code == 0
    assert "files changed since: lib/helper.py" in cli("why", "last", "--db", there).out
