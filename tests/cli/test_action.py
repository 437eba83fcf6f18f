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

import prestarted
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agenteval_tui.cli.commands.report import marker, pull_request, put_comment
from agenteval_tui.cli.github_action_inputs import shell_words
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


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Python that takes no time to start, for steps that start it several times."""
    return str(prestarted.stand_in(tmp_path_factory.mktemp("python"), "python", ()))


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
    known |= {
        "steps.install.outputs.python": more.pop("python", sys.executable),
        "steps.install.outputs.project": more.pop("project", ""),
    }
    known |= {"steps.run.outputs.exit-code": more.pop("code", "")}
    own = {key: re.sub(r"\$\{\{ (.*?) \}\}", lambda at: known[at[1]], value) for key, value in step["env"].items()}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "-c", step["run"]], cwd=folder, capture_output=True,
        text=True, env={**os.environ, "CI": "true", "GITHUB_ACTIONS": "true", **own, **more},
        stdin=subprocess.DEVNULL, timeout=250, check=False,
    )  # fmt: skip


def test_the_steps_run_gate_and_keep_one_comment(
    suite: Path, tmp_path: Path, github: tuple[GitHub, str], forked: str
) -> None:
    state, address = github
    state.comments = [{"id": number, "body": "talk"} for number in range(120)]
    output, event = tmp_path / "output", tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7}}))
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()} | {"suites": suite.name}
    runner = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"), "python": forked}
    ran = run_step("Run", tmp_path, inputs, **runner)
    assert ran.returncode == 0, ran.stderr
    assert "::error file=" in ran.stdout + ran.stderr
    assert output.read_text() == "exit-code=1\n"
    reports = {path.name for path in (tmp_path / inputs["reports"]).iterdir()}
    assert reports == {"junit.xml", "results.json", "report.md", "report.html", "runs.html"}
    api = {"GITHUB_API_URL": address, "GITHUB_REPOSITORY": "o/r", "GITHUB_EVENT_PATH": str(event)}
    api["python"] = forked
    for verb in ("made", "edited"):
        said = run_step("Comment", tmp_path, inputs, **api)
        assert said.stdout == f"the comment of pull request 7 was {verb}\n", said.stderr
    (ours,) = [one for one in state.comments if one["body"].startswith("<!-- agenteval comment ")]
    assert "Evaluation report" in ours["body"]
    assert [method for method, _ in state.asked] == ["GET", "GET", "POST", "GET", "GET", "PATCH"]
    # The other jobs of a matrix have comments of their own.
    for verb in ("made", "edited"):
        said = run_step("Comment", tmp_path, inputs, **api, matrix='{\n  "python": "3.12"\n}')
        assert said.stdout == f"the comment of pull request 7 was {verb}\n", said.stderr
    comments = [one["body"] for one in state.comments if one["body"].startswith("<!-- agenteval comment ")]
    assert len(comments) == 2
    assert "\n\nCI / evals\n" in comments[0]
    assert '\n\nCI / evals \\{ "python": "3.12" \\}\n' in comments[1]
    assert state.tokens == {f"Bearer {TOKEN}"}
    assert TOKEN not in ran.stdout + ran.stderr + said.stdout + said.stderr
    state.refused = 403
    refused = run_step("Comment", tmp_path, inputs, **api)
    assert refused.returncode == 0
    assert "pull-requests: write" in refused.stderr
    assert "::warning" in refused.stdout
    assert [run_step("Gate", tmp_path, inputs, code=code).returncode for code in ("0", "1", "")] == [0, 1, 2]


SECOND = "a folder/second one.suite.yaml"
FORMS = [
    (f"NAME '{SECOND}'", "--repeat 1 --note second"),
    (f"NAME\n'{SECOND}'\n", "--repeat 1\n--note second\n"),
    ("NAME\r\n  a\\ folder/second\\ one.suite.yaml\r\n", "--repeat\r\n1\r\n--note second\r\n"),
    (f'# both\nNAME  # the first\n"{SECOND}"', "--repeat 1 \\\n  --note second \\\n"),
]
"""Inputs of the step: the same suites and options."""


@pytest.mark.parametrize(("suites", "arguments"), FORMS)
def test_suites_and_options_may_stand_on_many_lines(suites: str, arguments: str) -> None:
    assert shell_words(suites) == ["NAME", SECOND]
    assert shell_words(arguments) == ["--repeat", "1", "--note", "second"]


def test_the_step_runs_the_suites_with_the_options_of_its_inputs(suite: Path, tmp_path: Path, forked: str) -> None:
    second = tmp_path / SECOND
    second.parent.mkdir()
    second.write_text(suite.read_text())
    suites, arguments = FORMS[-1]
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()}
    inputs |= {"suites": suites.replace("NAME", suite.name), "args": arguments}
    output = tmp_path / "output"
    runner = {"GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    ran = run_step("Run", tmp_path, inputs, **runner, python=forked)
    assert output.read_text() == "exit-code=1\n", ran.stderr
    results = json.loads((tmp_path / inputs["reports"] / "results.json").read_text())
    assert len(results["runs"]) == 4, "two suites of two tests, each once"
    assert "pass rate 50 %" in ran.stdout + ran.stderr
    assert results["note"] == "second", "the option of the second line"


@pytest.mark.parametrize("broken", ["suites", "args"])
def test_an_input_that_cannot_be_split_runs_nothing(suite: Path, tmp_path: Path, broken: str) -> None:
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()} | {"suites": suite.name}
    inputs[broken] = f"{suite.name} 'and more\n"
    output = tmp_path / "output"
    ran = run_step("Run", tmp_path, inputs, GITHUB_OUTPUT=str(output))
    assert output.read_text() == "exit-code=2\n"
    assert f"::error title=agenteval::In the input `{broken}`, a quote is not closed." in ran.stderr
    assert list((tmp_path / inputs["reports"]).iterdir()) == []


@settings(max_examples=150, deadline=None)
@given(st.text(st.sampled_from("ab#'\"\\ \n\t"), max_size=14))
@example("a \\\n b")
@example("a\\\n#b")
@example("# it's\na")
@example("\"a\\\nb\" '' c#d")
def test_words_are_those_of_a_shell(text: str) -> None:
    program = f'words=(\n{text}\n)\nfor word in "${{words[@]}}"; do printf "%s\\0" "$word"; done'
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        with pytest.raises(ValueError, match="quote is not closed"):
            shell_words(text)
    else:
        assert shell_words(text) == done.stdout.split("\0")[:-1]


def test_nothing_in_an_input_is_expanded() -> None:
    assert shell_words("$(touch x) `touch x` $HOME ~ *.py {a,b} \"$(touch x)\"") == [
        "$(touch", "x)", "`touch", "x`", "$HOME", "~", "*.py", "{a,b}", "$(touch x)"
    ]  # fmt: skip


FAKE = """\
#!/bin/sh
case "$2" in
venv) echo "$(basename $0) $*" >> SAID; for folder; do :; done; mkdir -p "$folder/bin"; cp "$0" "$folder/bin/python" ;;
pip) echo "$0 $*" >> SAID ;;
*version_info*) [ OLD = no ] ;;
*) echo "KIND" ;;
esac
"""
"""A `python` that makes environments of itself, and writes down what it is asked to install."""


def fake_python(path: Path, *, said: Path, kind: str = "", old: bool = False) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = FAKE.replace("SAID", str(said)).replace("KIND", kind).replace("OLD", "yes" if old else "no")
    path.write_text(text)
    path.chmod(0o755)
    return path.parent


def install(tmp_path: Path, *folders: Path, venv: str = "") -> tuple[list[str], dict[str, str], str]:
    """What the step asked of Pythons, its outputs, and what it adds to PATH."""
    output, added = tmp_path / "output", tmp_path / "added"
    added.touch()
    runner = {"GITHUB_OUTPUT": str(output), "GITHUB_PATH": str(added), "GITHUB_ACTION_PATH": "HERE"}
    path = os.pathsep.join(map(str, (*folders, "/usr/bin", "/bin")))
    ran = run_step("Install", tmp_path, {}, **runner, PATH=path, VIRTUAL_ENV=venv)
    assert ran.returncode == 0, ran.stderr
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    return (tmp_path / "said").read_text().splitlines(), outputs, added.read_text()


def test_it_is_installed_where_the_packages_of_the_project_are(tmp_path: Path) -> None:
    own = fake_python(tmp_path / "own" / "python", said=tmp_path / "said")
    said, outputs, added = install(tmp_path, own)
    assert said == [f"{own}/python -m pip install --quiet HERE"]
    assert (outputs, added) == ({"python": f"{own}/python", "project": ""}, "")


@pytest.mark.parametrize("exported", [True, False])
@pytest.mark.parametrize("old", [True, False])
def test_beside_a_virtual_environment_python_stays_the_projects(tmp_path: Path, exported: bool, old: bool) -> None:
    """Also where it is only first on PATH, and where its Python is older than ours may be."""
    venv = tmp_path / "venv"
    folder = fake_python(venv / "bin" / "python", said=tmp_path / "said", kind=str(venv), old=old)
    other = fake_python(tmp_path / "other" / "python3", said=tmp_path / "said")
    said, outputs, added = install(tmp_path, folder, other, venv=str(venv) if exported else "")
    apart = tmp_path / "temp" / "agenteval"
    maker = "python3" if old else "python"
    assert said == [f"{maker} -m venv --clear {apart}", f"{apart}/bin/python -m pip install --quiet HERE"]
    assert outputs == {"python": f"{apart}/bin/python", "project": str(venv)}
    assert added == f"{apart}/command\n"
    assert {path.name for path in (apart / "command").iterdir()} == {"agenteval"}, "no other `python` for later steps"


def test_beside_a_python_of_the_system_its_packages_are_seen(tmp_path: Path) -> None:
    system = fake_python(tmp_path / "system" / "python3", said=tmp_path / "said", kind="managed")
    (system / "python").symlink_to("python3")
    said, outputs, _ = install(tmp_path, system)
    apart = tmp_path / "temp" / "agenteval"
    assert said[0] == f"python -m venv --clear --system-site-packages {apart}"
    assert outputs == {"python": f"{apart}/bin/python", "project": ""}


WITHOUT_PIP = """\
#!/bin/sh
real="$(dirname "$0")/real"
if [ "$2" = venv ]; then shift 2; exec "$real" -m venv --without-pip "$@"; fi
exec "$real" "$@"
"""
"""A real `python` that installs no pip into the environments that it makes: that takes it four seconds."""


def test_what_the_step_asks_of_a_python_is_answered_by_real_ones(tmp_path: Path) -> None:
    """A real virtual environment, made without pip: the step comes as far as to install."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.rename(python.with_name("real"))
    python.write_text(WITHOUT_PIP)
    python.chmod(0o755)
    runner = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_PATH": str(tmp_path / "added")}
    path = os.pathsep.join((str(tmp_path / "venv" / "bin"), "/usr/bin", "/bin"))
    nothing = {"GITHUB_ACTION_PATH": str(tmp_path / "nothing"), "PIP_NO_INDEX": "1"}
    run_step("Install", tmp_path, {}, **runner, **nothing, PATH=path, VIRTUAL_ENV="")
    apart = tmp_path / "temp" / "agenteval"
    assert (apart / "bin" / "python").exists()
    assert "include-system-site-packages = false" in (apart / "pyvenv.cfg").read_text()
    assert (tmp_path / "added").read_text() == f"{apart}/command\n"


def test_an_agent_runs_in_the_environment_of_the_project(suite: Path, tmp_path: Path) -> None:
    """A kind `python` agent and a command: beside agenteval's own environment, both run with the project's Python."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    packages = next((venv / "lib").glob("python*/site-packages"))
    (packages / "only_here.py").write_text("def answer(prompt):\n    return 'of the project'\n")
    (tmp_path / "command.py").write_text("import only_here; print(only_here.answer(''))\n")
    suite.write_text(
        "name: Mine\nagents:\n  function: {kind: python, callable: 'only_here:answer'}\n"
        "  command: {kind: command, command: python command.py}\ntests:\n"
        + "".join(
            f"  - {{id: {name}, agent: {name}, prompt: hi, criteria: [{{name: says, prototype_class: TextResponse, "
            "config_uxon: {metrics: [{type: TextMatch, contains: of the project}]}}]}\n"
            for name in ("function", "command")
        )
    )
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()}
    inputs |= {"suites": suite.name, "trust": "true"}
    runner = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    path = f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ran = run_step("Run", tmp_path, inputs, **runner, project=str(venv), PATH=path, VIRTUAL_ENV="")
    assert (tmp_path / "output").read_text() == "exit-code=0\n", ran.stdout + ran.stderr


def test_code_beside_the_suites_is_none_of_ours(suite: Path, tmp_path: Path) -> None:
    """What a stranger's pull request has in its folder is not imported for a module of ours."""
    for name in ("click", "agenteval_tui"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w')\n")
    inputs = {name: str(given["default"]) for name, given in ACTION["inputs"].items()} | {"suites": suite.name}
    runner = {"GITHUB_OUTPUT": str(tmp_path / "output"), "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    run_step("Run", tmp_path, inputs, **runner)
    assert (tmp_path / "output").read_text() == "exit-code=1\n"
    assert not (tmp_path / "imported").exists()


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
