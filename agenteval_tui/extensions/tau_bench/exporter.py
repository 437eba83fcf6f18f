"""Runs as tau-bench results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agenteval_tui.formats.agenteval_run import KEY
from agenteval_tui.formats.exporters.exporter import (
    ATTACHED,
    LABELS,
    Exporter,
    StoredRun,
    chat_messages,
    json_list,
    own,
)

LOSSES = (LABELS, ATTACHED)


def _pieces(runs: Iterable[StoredRun]) -> Iterator[str]:
    yield from json_list(_tau_result(run) for run in runs)
    yield "\n"


def _tau_result(run: StoredRun) -> dict[str, Any]:
    variables = run.row.variables
    task = {
        "user_id": variables.get("user_id"),
        "actions": variables.get("expected_actions") or [],
        "instruction": variables.get("instruction") or run.row.prompt_head,
        "outputs": variables.get("outputs") or [],
    }
    info: dict[str, Any] = {"task": task}
    if run.transcript.error is not None:
        info["error"] = run.transcript.error.message
    if run.row.variation:
        info["variation"] = run.row.variation  # the format has none; without it these would be repetitions
    info[KEY] = own(run, LOSSES)
    return {
        "task_id": _task_id(run.row.test_id),
        "trial": run.row.repetition - 1,
        "reward": reward_of(run),
        "info": info,
        "traj": chat_messages(run.transcript),
    }


def reward_of(run: StoredRun) -> float | None:
    """The benchmark's own reward where the run came from there; else 1 for a pass, 0 for a failure."""
    foreign = next((result for result in run.results if result.source in ("tau-bench", "tau2-bench")), None)
    if foreign is not None:
        return foreign.score
    if run.row.status in ("passed", "failed"):
        return 1.0 if run.row.status == "passed" else 0.0
    return None


def _task_id(test_id: str) -> int | str:
    # tau-bench numbers its tasks. The id itself is beside it (`own`), so that "007" comes back.
    return int(test_id) if test_id.isascii() and test_id.isdecimal() and len(test_id) < 10 else test_id


EXPORTER = Exporter(
    name="tau-bench",
    title="tau-bench result",
    about="tau-bench results (a JSON list)",
    suffix=".tau.json",
    pieces=_pieces,
    losses=LOSSES,
    rank=40,
)
