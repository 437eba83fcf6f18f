"""Tracebacks in a program's standard error: what Python prints is read back to what Python knows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval_tui.agents.process import traceback_text
from agenteval_tui.agents.process.traceback_text import frames_in_dump, traceback_in, tracebacks_in
from agenteval_tui.transcripts.traceback import raised_words

CAUSE = """
def low(key):
    return {}[key]

def high():
    try:
        low('missing thing')
    except KeyError as error:
        raise ValueError('no order\\nsecond line') from error

high()
"""
CONTEXT = CAUSE.replace(" from error", "")
RECURSION = """
def again(n):
    return again(n + 1)
again(0)
"""
GROUP = """
def fail(n):
    raise ValueError(n)

def collect():
    errors = []
    for n in (1, 2):
        try:
            fail(n)
        except ValueError as error:
            errors.append(error)
    raise ExceptionGroup('both', [*errors, TypeError('never raised')])

collect()
"""
NODE = """\
noise
/app/agent.js:3
    throw new Error('db down');
    ^

Error: db down
    at lookup (/app/agent.js:3:11)
    at async main (file:///app/main.mjs:10:3)
    at Module._compile (node:internal/modules/cjs/loader:1105:14)
    at run (/app/node_modules/openai/lib/index.js:2:1) {
  code: 'X',
  [cause]: TypeError: inner
      at deep (/app/deep.js:1:2)
}

Node.js v20.1.0
"""


def stderr_of(tmp_path: Path, code: str) -> str:
    (tmp_path / "prog.py").write_text(code)
    done = subprocess.run([sys.executable, "prog.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    return done.stderr


def test_a_cause(tmp_path: Path) -> None:
    found = traceback_in(f"before\n{stderr_of(tmp_path, CAUSE)}", str(tmp_path))
    assert found is not None
    first, second = found.exceptions
    assert (first.type, first.message) == ("ValueError", "no order\nsecond line")
    assert [(frame.file, frame.function, frame.project) for frame in first.frames] == [
        ("prog.py", "<module>", True),
        ("prog.py", "high", True),
    ]
    assert first.frames[-1].source.startswith("raise ValueError")
    assert (second.type, second.relation, second.parent) == ("KeyError", "cause", 0)
    assert second.frames[-1].line == 3
    assert raised_words(found).endswith("(prog.py, line 9)")


def test_what_was_being_handled(tmp_path: Path) -> None:
    found = traceback_in(stderr_of(tmp_path, CONTEXT), str(tmp_path))
    assert found is not None
    assert [one.relation for one in found.exceptions] == ["", "context"]


def test_a_recursion_is_bounded(tmp_path: Path) -> None:
    found = traceback_in(stderr_of(tmp_path, RECURSION), str(tmp_path))
    assert found is not None
    assert found.exceptions[0].type == "RecursionError"
    assert found.exceptions[0].left_out > 900


def test_a_group_and_its_members(tmp_path: Path) -> None:
    found = traceback_in(stderr_of(tmp_path, GROUP), str(tmp_path))
    assert found is not None
    assert [(one.type, one.message, one.relation, one.parent) for one in found.exceptions] == [
        ("ExceptionGroup", "both (3 sub-exceptions)", "", None),
        ("ValueError", "1", "member", 0),
        ("ValueError", "2", "member", 0),
        ("TypeError", "never raised", "member", 0),
    ]
    assert [frame.function for frame in found.exceptions[1].frames] == ["collect", "fail"]


def test_a_syntax_error(tmp_path: Path) -> None:
    found = traceback_in(stderr_of(tmp_path, "x = (\n"), str(tmp_path))
    assert found is None or found.exceptions[0].type == "SyntaxError"


def test_node() -> None:
    found = traceback_in(NODE, "/app")
    assert found is not None
    first, second = found.exceptions
    assert (found.language, first.type, first.message) == ("javascript", "Error", "db down")
    assert [(frame.file, frame.line, frame.function, frame.project) for frame in reversed(first.frames)] == [
        ("agent.js", 3, "lookup", True),
        ("main.mjs", 10, "main", True),
        ("node:internal/modules/cjs/loader", 1105, "Module._compile", False),
        ("openai/lib/index.js", 2, "run", False),
    ]
    assert first.frames[-1].source == "throw new Error('db down');"
    assert (second.type, second.relation, second.frames[0].file) == ("TypeError", "cause", "deep.js")


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("code", "type_name", "message", "places"),
    [
        ("const x = 1;\nconst = 2;\n", "SyntaxError", "Unexpected token '='", [("part.mjs", 2, "const = 2;")]),
        (
            "const p = new Promise((ok) => { throw new TypeError('no order') });\nawait Promise.all([p]);\n",
            "TypeError",
            "no order",
            [
                ("part.mjs", 1, "const p = new Promise((ok) => { throw new TypeError('no order') });"),
                ("part.mjs", 1, ""),
            ],
        ),
        (
            "try { null.x; } catch (error) { console.error('Error:', error); process.exit(1); }",
            "TypeError",
            "Cannot read properties of null (reading 'x')",
            [("part.mjs", 1, "")],
        ),
    ],
)
def test_what_node_prints(
    tmp_path: Path, code: str, type_name: str, message: str, places: list[tuple[str, int, str]]
) -> None:
    (tmp_path / "main.mjs").write_text("import './part.mjs';\n")
    (tmp_path / "part.mjs").write_text(code)
    done = subprocess.run(["node", "main.mjs"], cwd=tmp_path, capture_output=True, text=True, check=False)
    traceback = traceback_in(done.stderr, str(tmp_path))
    assert traceback is not None
    (raised,) = traceback.exceptions
    assert (raised.type, raised.message) == (type_name, message)
    own = [(frame.file, frame.line, frame.source) for frame in reversed(raised.frames) if frame.project]
    assert own == places


@pytest.mark.parametrize(
    "fault",
    [
        '/app/src/tools.ts:20:52: ERROR: Expected identifier but found "="',
        "src/tools.ts:20:52 - error TS1005: ',' expected.",
    ],
)
def test_typescript_that_can_not_be_read_is_the_place(fault: str) -> None:
    text = f"Error: Transform failed with 1 error:\n{fault}\n"
    text += (
        "    at failureErrorWithLog (/app/node_modules/esbuild/lib/main.js:1752:15)\n    at emit (node:events:524:28)\n"
    )
    traceback = traceback_in(text, "/app")
    assert traceback is not None
    own = [(frame.file, frame.line) for frame in traceback.exceptions[0].frames if frame.project]
    assert own == [("src/tools.ts", 20)]


def test_agentevals_own_part_of_a_program_for_node_is_no_frame() -> None:
    own = Path(traceback_text.__file__).parent / "startup" / "node_clients.cjs"
    text = (
        f"Error: Cannot find module 'x'\n    at Module._load [as _load] ({own}:169:25)\n    at main (/app/a.js:1:1)\n"
    )
    traceback = traceback_in(text, "/app")
    assert traceback is not None
    assert [frame.file for frame in traceback.exceptions[0].frames] == ["a.js"]


@pytest.mark.parametrize("text", ["", "KeyError: 'x'", "at home: 3", 'File "x.py", line 3'])
def test_other_words_are_no_traceback(text: str) -> None:
    assert traceback_in(text, "/") is None


CRASH = "Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007fa (most recent call first):\n"
ASKED = "Stack (most recent call first):\n"


def dump(begin: str, *places: tuple[Path | str, int]) -> str:
    return begin + "".join(f'  File "{file}", line {line} in f\n' for file, line in places)


def sources(text: str, folder: Path, *, fatal: bool = True) -> list[tuple[str, str]]:
    return [(frame.file, frame.source) for frame in frames_in_dump(text, folder, fatal=fatal)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose suite is in a folder of it; beside the project is what is nobody's business."""
    (tmp_path / "outside.py").write_text("secret = 1\n")
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    (project / "suite").mkdir()
    (project / "agent.py").write_text("first\nsecond\n")
    (project / ".env").write_text("KEY=secret\n")
    (project / "linked.py").symlink_to(tmp_path / "outside.py")
    return project


def test_a_dump_shows_lines_of_the_projects_python_files_only(project: Path) -> None:
    own = project / "agent.py"
    places = (own, 2), (project / ".env", 1), (project / "linked.py", 1), (project.parent / "outside.py", 1)
    text = dump(CRASH, *places, ("/etc/hostname", 1), (project / "suite" / ".." / ".." / "outside.py", 1))
    assert [source for _, source in sources(text, project / "suite")] == ["", "", "", "", "", "second"]


def test_a_line_of_a_dump_is_as_the_file_is_now(project: Path) -> None:
    text = dump(CRASH, (project / "agent.py", 1))
    assert sources(text, project) == [("agent.py", "first")]
    (project / "agent.py").write_text("changed line\n")
    assert sources(text, project) == [("agent.py", "changed line")]


def test_only_the_stack_of_the_crash_counts(project: Path) -> None:
    crash, own = dump(CRASH, (project / "agent.py", 1)), dump("", (project / "agent.py", 2))
    harmless = dump("Current thread 0x00007fa (most recent call first):\n", (project / "agent.py", 2))
    asked = dump(ASKED, (project / "agent.py", 2))
    for text in (crash + harmless, harmless + crash, crash + asked, f"{crash}it says:\n{own}", asked + crash):
        assert sources(text, project) == [("agent.py", "first")], text
    of_one_thread = crash.replace("Current thread 0x00007fa", "Stack")
    assert sources(of_one_thread + asked, project) == [("agent.py", "first")]
    assert sources(asked + harmless, project) == []
    assert sources(crash + asked, project, fatal=False) == [("agent.py", "second")]


SERVER = """
import logging, traceback
for what in ({}, None):
    try:
        try:
            what['order']
        except KeyError as error:
            raise ValueError('no order\\nsecond line') from error
    except Exception:
        logging.exception('failed to answer')
        print('GET /next 200', flush=True)
        traceback.print_exc()
"""


def test_a_server_goes_on_after_each_traceback(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(SERVER)
    program = subprocess.run([sys.executable, "server.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    words = [raised_words(traceback).splitlines()[0] for traceback in tracebacks_in(program.stderr, str(tmp_path))]
    assert (
        words
        == ["ValueError: no order"] * 2 + ["TypeError: 'NoneType' object is not subscriptable (server.py, line 6)"] * 2
    )
    assert [*tracebacks_in("listening\nGET / 200\n", str(tmp_path))] == []
