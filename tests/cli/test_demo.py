"""`agenteval demo`, started more than once in the same moment: what it begins with is made once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from agenteval_tui.core.directories import bundled
from agenteval_tui.history.store import Store

AT_ONCE = 4
BEGIN = """
import sys
from pathlib import Path
from agenteval_tui.cli.labelled_samples import label_samples
from agenteval_tui.core.directories import demo_history
from agenteval_tui.suites.samples import copied_samples

print("ready", flush=True)
sys.stdin.readline()
label_samples(demo_history(), copied_samples())
"""


def test_starts_in_the_same_moment_store_the_labelled_runs_once(tmp_path: Path) -> None:
    environment = os.environ | {"AGENTEVAL_DATA_DIR": str(tmp_path)}
    started = [
        subprocess.Popen(
            (sys.executable, "-c", BEGIN), env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(AT_ONCE)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    for one in started:
        one.communicate()
        assert one.returncode == 0
    with Store.open_to_look(tmp_path / "demo" / "history.db") as store:
        executions = store.executions()
        assert [len(store.runs_of_execution(one.id)) for one in executions] == [8]
        assert len(store.labels()) == 3
    (copies,) = (tmp_path / "demo").glob("suites-*")
    samples = bundled("sample_suites")
    for one in (path for path in samples.rglob("*") if path.is_file()):
        assert (copies / one.relative_to(samples)).read_bytes() == one.read_bytes()
    if (copies / ".git").exists():
        said = subprocess.run(
            ("git", "status", "--porcelain"), cwd=copies, capture_output=True, text=True, check=True
        ).stdout
        assert said == "", "git diff shows only what a person changed"
