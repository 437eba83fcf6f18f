"""What a process started, as the system lists it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agenteval_tui.agents.process import orphan_reaper, process_tree
from agenteval_tui.agents.process.orphan_reaper import Listed, from_proc, from_ps
from agenteval_tui.agents.process.process_tree import Process, descendants, living, work_of


@pytest.mark.parametrize("listed", [from_proc, from_ps])
def test_what_a_process_started_is_found_and_ends(
    listed: Callable[[], dict[int, Listed]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not listed():
        pytest.skip("this system lists its processes in another way")
    monkeypatch.setattr(orphan_reaper, "listed", listed)
    script = "sh -c 'sleep 600 & echo $!; wait; true' & echo $!; wait; true"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as shell:
        assert shell.stdout is not None
        numbers = {int(shell.stdout.readline()), int(shell.stdout.readline())}
        found = descendants([shell.pid])
        assert {one.pid for one in found} == numbers
        assert living([*found, Process(shell.pid, "another start")]) == found
        shell.kill()
        for one in found:
            one.send(signal.SIGKILL)
        shell.wait()
    while living(found):
        pass
    assert descendants([shell.pid]) == set()


def test_nothing_is_listed_where_the_system_does_not_tell_of_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process_tree, "_PROC", tmp_path / "no proc")
    monkeypatch.setattr(orphan_reaper, "_PROC", tmp_path / "no proc")
    monkeypatch.setattr(orphan_reaper, "_PS", ("/bin/sh", "-c", f"touch {tmp_path}/listed"))
    assert work_of(os.getpid()) is None
    assert not (tmp_path / "listed").exists()
