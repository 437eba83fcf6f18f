"""action.yml: its steps as a runner starts them, against an API on loopback that records what it is asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval_tui.cli.github_comment import marker, pull_request, put_comment
from agenteval_tui.core.errors import AgentevalError

ACTION = yaml.safe_load((Path(__file__).resolve().parents[2] / "action.yml").read_text("utf-8"))
STEPS = ACTION["runs"]["steps"]
TOKEN = "token-of-the-job"


class GitHub:
    """Comments of one pull request. `locked`: ids that can't be edited; `refused`: everything is, with that status."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.asked: list[tuple[str, str]] = []
        self.tokens: set[str | None] = set()
        self.locked: set[int] = set()
        self.refused = 0

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        self.asked.append((method, path))
        if self.refused:
            return self.refused, {"message": "Resource not accessible by integration"}
        if method == "GET":
            page = int(re.findall(r"[?&]page=(\d+)", path)[0])
            return 200, self.comments[(page - 1) * 100 : page * 100]
        if method == "POST":
            self.comments.append({"id": 1000 + len(self.comments), "body": body["body"]})
            return 201, self.comments[-1]
        wanted = int(path.rpartition("/")[2])
        if wanted in self.locked:
            return 403, {"message": "no"}
        next(one for one in self.comments if one["id"] == wanted)["body"] = body["body"]
        return 200, {}


@pytest.fixture
def github() -> Iterator[tuple[GitHub, str]]:
    state = GitHub()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            state.tokens.add(self.headers.get("Authorization"))
            size = int(self.headers.get("Content-Length") or 0)
            status, said = state.answer(self.command, self.path, json.loads(self.rfile.read(size) or "null"))
            data = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_PATCH = answer  # noqa: N815 - the library's names

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield state, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(autouse=True)
def first_on_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(installed), prepend=os.pathsep)


def run_step(name: str, folder: Path, inputs: dict[str, str], **more: str) -> subprocess.CompletedProcess[str]:
    """A step of the action: `bash -e`, its own `env` with the expressions resolved."""
    (step,) = [one for one in STEPS if one.get("name") == name]
    known = {
        "github.token": TOKEN,
        "github.workspace": str(folder),
        **{f"inputs.{key}": v for key, v in inputs.items()},
    }
    known |= {"github.workflow": "CI", "github.job": "evals", "runner.temp": str(folder / "temp")}
    known |= {"toJSON(matrix)": more.pop("matrix", "null")}
    known |= {"steps.run.outputs.exit-code": more.pop("code", "")}
    own = {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda at: known[at[1]], value) for key, value in step["env"].items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]], cwd=folder, capture_output=True,
        text=True, env={**os.environ, "CI": "true", "GITHUB_ACTIONS": "true", **own, **more},
        stdin=subprocess.DEVNULL, timeout=250, check=False,
    )  # fmt: skip


def test_the_steps_run_gate_and_keep_one_comment(suite: Path, tmp_path: Path, github: tuple[GitHub, str]) -> None:
    state, address = github
    state.comments = [{"id": number, "body": "talk"} for number in range(120)]
    output, event = tmp_path / "output", tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()} | {"suites": suite.name}
    runner = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    ran = run_step("Run", tmp_path, inputs, **runner)
    assert ran.returncode == 0, ran.stderr
    assert "::error file=" in ran.stdout + ran.stderr
    assert output.read_text() == "exit-code=1\n"
    reports = {path.name for path in (tmp_path / inputs["reports"]).iterdir()}
    assert reports == {"junit.xml", "results.json", "report.md", "report.html", "runs.html"}
    api = {"GITHUB_API_URL": address, "GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_PATH": str(event)}
    for verb in ("made", "edited"):
        said = run_step("Comment", tmp_path, inputs, **api)
        assert said.stdout == f"the comment of pull request 7 was {verb}\n", said.stderr
    (ours,) = [one for one in state.comments if one["body"].startswith("<!-- agenteval comment ")]
    assert "Evaluation report" in ours["body"]
    assert [method for method, _ in state.asked] == ["GET", "GET", "POST", "GET", "GET", "PATCH"]
    # The other jobs of a matrix have comments of their own.
    for verb in ("made", "edited"):
        said = run_step("Comment", tmp_path, inputs, **api, matrix='{"python": "3.12"}')
        assert said.stdout == f"the comment of pull request 7 was {verb}\n", said.stderr
    assert len([one for one in state.comments if one["body"].startswith("<!-- agenteval comment ")]) == 2
    assert state.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in ran.stdout + ran.stderr + said.stdout + said.stderr
    state.refused = 403
    refused = run_step("Comment", tmp_path, inputs, **api)
    assert refused.returncode == 0
    assert "pull-requests: write" in refused.stderr
    assert "::warning" in refused.stdout
    assert [run_step("Gate", tmp_path, inputs, code=code).returncode for code in ("0", "1", "")] == [0, 1, 2]


def test_suites_and_options_may_stand_on_many_lines(suite: Path, tmp_path: Path) -> None:
    second = tmp_path / "a folder" / "second one.suite.yaml"
    second.parent.mkdir()
    second.write_text(suite.read_text())
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()}
    inputs["suites"] = f"{suite.name}\n'a folder/second one.suite.yaml'\n"
    inputs["args"] = "--repeat 1\n--fail-under 1.0\n"
    output = tmp_path / "output"
    runner = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    ran = run_step("Run", tmp_path, inputs, **runner)
    assert output.read_text() == "exit-code=1\n", ran.stderr
    results = json.loads((tmp_path / inputs["reports"] / "results.json").read_text())
    assert len(results["runs"]) == 4, "two suites of two tests, each once"
    assert "pass rate 50 %" in ran.stdout + ran.stderr
    assert "100 %" in ran.stdout + ran.stderr, "the gate of the second line"


def test_it_is_installed_where_the_packages_of_the_project_are(tmp_path: Path) -> None:
    """A `python` that only says what it is asked for; beside a virtual environment another one is made."""
    programs = tmp_path / "bin"
    programs.mkdir()
    said = tmp_path / "said"
    fake = f'#!/bin/sh\nif [ "$1" = -m ]; then echo "$0 $*" >> {said}; else exec {sys.executable} "$@"; fi\n'
    fake += 'if [ "$2" = venv ]; then mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; fi\n'
    (programs / "python").write_text(fake)
    (programs / "python").chmod(0o755)
    path = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "GITHUB_ACTION_PATH": "HERE"}
    path["GITHUB_PATH"] = str(tmp_path / "added")
    run_step("Install", tmp_path, {}, **path, VIRTUAL_ENV="")
    assert said.read_text() == f"{programs}/python -m pip install --quiet HERE\n"
    said.unlink()
    run_step("Install", tmp_path, {}, **path, VIRTUAL_ENV=str(tmp_path / "own"))
    apart = tmp_path / "temp" / "agenteval"
    lines = said.read_text().splitlines()
    assert lines == [f"{programs}/python -m venv {apart}", f"{apart}/bin/python -m pip install --quiet HERE"]
    assert (tmp_path / "added").read_text() == f"{apart}/bin\n"


def test_only_the_comment_step_has_the_token_and_no_input_is_part_of_a_script() -> None:
    assert [one.get("name") for one in STEPS if "github.token" in str(one)] == ["Comment"]
    assert not [one for one in STEPS if "${{" in one.get("run", "")]
    assert all(re.search(r"@[0-9a-f]{40}$", one["uses"]) for one in STEPS if "uses" in one)
    assert "token" not in ACTION["inputs"]


def test_a_job_without_a_pull_request_and_addresses_that_must_not_get_the_token(
    tmp_path: Path, github: tuple[GitHub, str]
) -> None:
    event = tmp_path / "event.json"
    for text in ("{}", "[]", "no json", '{"pull_request": {"number": true}}', '{"pull_request": 3}'):
        event.write_text(text)
        assert pull_request({"GITHUB_EVENT_PATH": str(event)}) is None
    assert pull_request({}) is None
    state, address = github
    mark = marker()
    job = {"GITHUB_TOKEN": TOKEN, "GITHUB_REPOSITORY": "o/r"}
    with pytest.raises(AgentevalError, match="only sent over https"):
        put_comment("x", 1, {**job, "GITHUB_API_URL": "http://example.com"})
    with pytest.raises(AgentevalError, match="needs GITHUB_TOKEN"):
        put_comment("x", 1, {"GITHUB_API_URL": address})
    # Somebody else wrote our marker: theirs can't be edited, and ours is made.
    state.comments, state.locked = [{"id": 5, "body": f"{mark}\nmine"}], {5}
    assert put_comment(f"{mark}\nnew", 1, {**job, "GITHUB_API_URL": address}) == "made"
    assert put_comment(f"{mark}\nnewer", 1, {**job, "GITHUB_API_URL": address}) == "edited"
    assert [one["body"] for one in state.comments] == [f"{mark}\nmine", f"{mark}\nnewer"]
