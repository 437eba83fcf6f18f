"""What fails around a run and ends nothing (a hook after it, a probe that no criterion asks for) is said by `run`."""

from __future__ import annotations

import sys
from pathlib import Path

SUITE = """\
name: Orders
agent: shop
agents:
  shop: {{kind: demo, version: v1, pace: 0}}
tests:
  - id: order
    prompt: "Where is my order #W1042?"
    repeat: {repeat}
    after: [["{python}", -c, "{after}"]]
    state: {{mails: {{file: "{file}"}}}}
    criteria:
      - name: Names the order
        prototype_class: TextResponse
        config_uxon: {{metrics: [{{type: TextMatch, contains: W1042}}]}}
      - name: Has mails
        severity: info
        prototype_class: {prototype}
        config_uxon: {{{probe}metrics: [{{type: TextMatch, contains: W1042}}]}}
"""


def _suite(folder: Path, *, repeat: int = 1, after: str = "raise SystemExit(3)", asked: bool = False) -> Path:
    path = folder / "orders.suite.yaml"
    prototype, probe = ("State", "probe: mails, ") if asked else ("TextResponse", "")
    path.write_text(
        SUITE.format(
            python=sys.executable, after=after, file="gone.txt", repeat=repeat, prototype=prototype, probe=probe
        ),
        "utf-8",
    )
    return path


def test_run_says_each_once_and_passes(cli, tmp_path: Path) -> None:
    ran = cli("run", _suite(tmp_path), "--trust")
    assert ran.code == 0
    (after,) = [line for line in ran.out.splitlines() if line.startswith("  after ")]
    assert "order: " in after
    assert "exit code 3" in after
    (probe,) = [line for line in ran.out.splitlines() if line.startswith("  probe ")]
    assert "mails" in probe
    assert "gone.txt" in probe
    assert "no criterion asks for it" in probe
    quiet = cli("run", _suite(tmp_path), "--trust", "--quiet")
    assert "exit code 3" in quiet.out
    assert "gone.txt" in quiet.out


def test_the_summary_counts_what_failed_around_several_runs(cli, tmp_path: Path) -> None:
    ran = cli("run", _suite(tmp_path, repeat=3), "--trust")
    assert sum("exit code 3" in line for line in ran.out.splitlines()) == 2
    assert any(line.startswith("in 3 runs: ") and "exit code 3" in line for line in ran.out.splitlines())
    assert any(line.startswith("in 3 runs: ") and "gone.txt" in line for line in ran.out.splitlines())


def test_what_a_criterion_says_is_not_said_twice(cli, tmp_path: Path) -> None:
    ran = cli("run", _suite(tmp_path, asked=True, after="pass"), "--trust")
    assert not [line for line in ran.out.splitlines() if line.startswith(("  probe ", "  after "))]
    assert "1 check could not run" in ran.out
