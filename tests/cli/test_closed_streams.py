"""Standard streams that are closed, full, or read by nobody; and errors of the program itself. None of them is a 1."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec import to_builtins

from agenteval_tui import __main__ as entrance
from agenteval_tui.cli.commands import validate
from agenteval_tui.core import directories, standard_streams
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.options import PlanOptions

SUITE = """\
name: Suite
agents:
  echo: {kind: demo, shop: none}
tests: []
"""
CLOSED = [*(f"{one}&-" for one in ("<", ">", "2>")), ">&- 2>&-", "<&- >&-", "<&- 2>&-", "<&- >&- 2>&-"]


def run(words: Sequence[str], redirected: str) -> subprocess.CompletedProcess[bytes]:
    command = f'exec "$0" -m agenteval_tui "$@" {redirected}'
    return subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, *words], capture_output=True, timeout=250, check=False
    )


@pytest.mark.sweep("words")
@pytest.mark.parametrize("redirected", ["", *CLOSED, "2>/dev/full", "<&- 2>/dev/full"])
@pytest.mark.parametrize(("words", "code"), [(["history"], 0), (["nonsense"], 2)])
def test_the_exit_code_says_what_happened_whatever_is_closed(redirected: str, words: list[str], code: int) -> None:
    ended = run(words, redirected)
    assert ended.returncode == code
    assert b"Traceback" not in ended.stdout + ended.stderr


@pytest.mark.sweep
@pytest.mark.parametrize(
    "words",
    [
        ["--version"],
        ["--help"],
        ["run", "--help"],
        ["history"],
        ["schema", "suite"],
        ["docs", "uxon"],
        ["__complete", ""],
    ],
)
def test_an_output_that_cannot_be_written_is_an_error_of_the_machine(words: list[str]) -> None:
    ended = run(words, ">/dev/full")
    assert ended.returncode == 3
    assert b"Traceback" not in ended.stderr
    assert ended.stderr.startswith(b"agenteval: the output can't be written: ")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.sweep
@pytest.mark.parametrize("words", [["--version"], ["history", "--json"], ["schema", "suite"], ["__complete", ""]])
def test_a_reader_who_has_gone_is_no_error(words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "agenteval_tui", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=250,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_nothing_is_written_into_a_file_that_got_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    """The first file that is opened would be number 2."""
    source = (
        "from agenteval_tui.core.standard_streams import open_missing_descriptors as opened\n"
        "opened(); opened()\n"
        "import os, sys\n"
        f"file = open({str(tmp_path / 'history')!r}, 'w')\n"
        "sys.stderr.write('an error'); sys.stderr.flush(); os.write(2, b'more')\n"
        "sys.stdout.write('said'); sys.stdout.flush(); assert sys.stdin.read() == ''\n"
        "assert sys.__stderr__ is sys.stderr and sys.stderr.fileno() == 2 and file.fileno() > 2\n"
    )
    ended = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" <&- >&- 2>&-', sys.executable, source], timeout=250, check=False
    )
    assert ended.returncode == 0
    assert (tmp_path / "history").read_text() == ""


def test_open_streams_are_left_alone() -> None:
    before = (sys.stdin, sys.stdout, sys.stderr)
    standard_streams.open_missing_descriptors()
    assert (sys.stdin, sys.stdout, sys.stderr) == before


@pytest.mark.parametrize("kind", [IndexError, RecursionError, MemoryError, OSError, UnicodeDecodeError])
def test_an_error_in_the_program_is_said_in_one_line_and_its_traceback_kept(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    secret = "sk-of-a-variable"

    def broken(*_: object, **__: object) -> None:
        key = secret
        raise kind("utf-8", b"", 0, 1, "two\nlines") if kind is UnicodeDecodeError else kind(f"{len(key)} two\nlines")

    monkeypatch.setattr(validate.command, "callback", broken)
    (tmp_path / "a.suite.yaml").write_text(SUITE, "utf-8")
    assert entrance.main(["validate", str(tmp_path)]) == 3
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1
    assert kind.__name__ in said
    log = directories.data_dir() / "errors.log"
    assert str(log) in said
    kept = log.read_text("utf-8")
    assert "in broken" in kept
    assert secret not in kept + said
    assert log.stat().st_mode & 0o777 == 0o600


def test_an_error_before_the_command_line_is_there_is_no_1() -> None:
    source = (
        "import gc, sys; from agenteval_tui import __main__ as entrance\n"
        "gc.set_threshold = lambda *_: 1 / 0\n"
        "sys.exit(entrance.main(['history']))\n"
    )
    ended = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=250, check=False)
    assert ended.returncode == 3
    assert len(ended.stderr.splitlines()) == 1
    assert "ZeroDivisionError" in ended.stderr
    assert "ZeroDivisionError" in (directories.data_dir() / "errors.log").read_text("utf-8")


def test_an_error_in_an_executions_process_is_told_and_kept() -> None:
    source = (
        "import sys; from agenteval_tui.runs import process\n"
        "def broken(*_): raise KeyError('inside')\n"
        "process._execute = broken\n"
        "sys.exit(process.main())\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", source],
        input=json.dumps(to_builtins(ExecutionRequest((), PlanOptions(), "history.db", "config"))).encode(),
        capture_output=True,
        timeout=250,
        check=False,
    )
    assert ended.returncode == 3
    assert b"KeyError" in ended.stdout
    assert "KeyError" in (directories.data_dir() / "errors.log").read_text("utf-8")


def test_a_log_that_is_a_fifo_or_a_folder_holds_nobody_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise IndexError

    monkeypatch.setattr(validate.command, "callback", broken)
    directories.data_dir().mkdir(parents=True, exist_ok=True)
    os.mkfifo(directories.data_dir() / "errors.log")
    assert entrance.main(["validate", "."]) == 3
    (directories.data_dir() / "errors.log").unlink()
    (directories.data_dir() / "errors.log").mkdir()
    assert entrance.main(["validate", "."]) == 3
    assert capsys.readouterr().err.count("IndexError") == 2
