"""A run as a row of a dataset: what was asked, what should be answered, and where it came from."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import RunRow
from agenteval_tui.suites.dataset_edit import PROVENANCE
from agenteval_tui.suites.datasets import EXPECTED, EXPECTED_COLUMNS, PROMPT_COLUMNS
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.transcripts.model import Transcript


def row_of_run(run: RunRow, transcript: Transcript) -> dict[str, Any]:
    """The run's variables (of a test without any: `input`, what it was asked) and `expected`.

    `expected` is the answer of a run that passed; else what its row wanted, or "": a person says what would be right.
    """
    row = {name: value for name, value in run.variables.items() if name != PROVENANCE}
    expected = row.pop(EXPECTED, None)
    column = next((name for name in EXPECTED_COLUMNS if name != EXPECTED and name in row), "expected")
    expected = row.pop(column, expected)
    if not any(name in row for name in (*PROMPT_COLUMNS, "messages")):
        row = {"input": asked_of(transcript) or run.prompt_head, **row}
    row[column] = transcript.final_output if run.status == "passed" else "" if expected is None else expected
    return row


def asked_of(transcript: Transcript) -> str | list[dict[str, str]]:
    """What the agent was asked before it first answered: the text of one message, or several chat messages."""
    prompts = []
    for message in transcript.messages:
        if message.role not in ("system", "developer", "user"):
            break
        if message.role == "user":
            prompts.append(message.content)
    return (
        prompts[0] if len(prompts) == 1 else [{"role": "user", "content": text} for text in prompts] if prompts else ""
    )


def provenance_of(run: RunRow, labels: tuple[Label, ...] = ()) -> dict[str, Any]:
    """Where a row came from: run, test, agent, when, how it ended, and what a person said last of it."""
    fields: dict[str, Any] = {"run": run.id, "test": run.test_id}
    if run.agent:
        fields["agent"] = run.agent
    if run.started_ms is not None:
        fields["at"] = datetime.fromtimestamp(run.started_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    fields["outcome"] = run.status
    if labels:
        last = labels[-1]
        of = last.criterion or ("criterion unknown" if last.unknown else "")
        fields["label"] = {"verdict": last.verdict_text, **({"criterion": of} if of else {})}
        if last.who:
            fields["label"]["who"] = last.who
        if last.comment:
            fields["label"]["comment"] = last.comment
    return fields


def dataset_for(run: RunRow, loaded: LoadedSuite | None) -> tuple[Path, str | None]:
    """The file that rows of this run's test go to, and its encoding if the suite says it: its dataset, else a new one
    beside the suite (or here).
    """
    test = None
    if loaded is not None and loaded.suite is not None:
        test = next((test for test in loaded.suite.tests if test.id == run.test_id), None)
    if loaded is not None and test is not None and test.dataset is not None:
        return loaded.path.parent / test.dataset.file, test.dataset.encoding
    name = "".join(char if char.isalnum() or char in "-_." else "-" for char in run.test_id)[:60].strip(".-") or "cases"
    folder = loaded.path.parent if loaded is not None else Path()
    return folder / f"{name}.rows.jsonl", None
