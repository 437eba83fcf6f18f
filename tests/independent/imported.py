"""Foreign files read a second time with `json` and `zipfile` alone; and damaged ones: right, or said."""

from __future__ import annotations

import json
import random
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from math import comb
from pathlib import Path
from typing import Any

from tally import Tally

from agenteval_tui.analysis.summary import execution_stats
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.import_file import import_file
from agenteval_tui.history.store import Store

if sys.version_info < (3, 14):
    from backports.zstd import zipfile as packed
else:
    packed = zipfile

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data"
INSPECT = [path for path in sorted((DATA / "inspect").glob("*")) if path.suffix in (".eval", ".json")]
INSPECT += sorted((DATA / "generated").glob("inspect_*"))
TAU = DATA / "tau_bench" / "gpt-4o-airline-tasks-00-24.json"
PASSED = {"C": "passed", "I": "failed", 1: "passed", 0: "failed"}  # true is 1


def samples(path: Path) -> list[dict[str, Any]]:
    """The samples of a log of Inspect, as they stand there."""
    if path.suffix == ".json":
        return list(json.loads(path.read_text("utf-8")).get("samples") or [])
    with packed.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("samples/")]
        return [json.loads(archive.read(name)) for name in names]


def with_attachments(sample: dict[str, Any], text: str) -> str:
    known = sample.get("attachments") or {}
    return str(known.get(text.removeprefix("attachment://"), text)) if text.startswith("attachment://") else text


def text_of(sample: dict[str, Any], content: Any) -> str:
    """The text in a message's content, whatever its shape: what must be found in what was imported."""
    if isinstance(content, str):
        return with_attachments(sample, content)
    parts = [part.get("text", "") for part in content if part.get("type") == "text"]
    return parts[0] and with_attachments(sample, parts[0]) if parts else ""


def compare_inspect(count: int, seed: int) -> Tally:
    """Every sample of the recorded logs: roles, texts, tool calls with arguments, results and scores."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "h.db")) as store:
        for path in INSPECT:
            there = samples(path)
            if not there:
                continue
            report = import_file(path, store)
            rows = store.runs_of_execution(report.execution_id)
            tally.same(len(rows) == len(there), path.name, len(rows), len(there))
            by_id = {(row.test_id, row.repetition): row for row in rows}
            for sample in there:
                row = by_id.get((str(sample["id"]), sample.get("epoch", 1)))
                if row is None and len(there) == len(rows) == 1:
                    row = rows[0]
                if row is None:
                    tally.same(False, path.name, sample["id"], "is missing")
                    continue
                transcript, results = store.transcript(row.id), store.results(row.id)
                messages = sample["messages"]
                roles = [one.role for one in transcript.messages] == [one["role"] for one in messages]
                texts = all(
                    text_of(sample, theirs["content"]).strip() in ours.content
                    for ours, theirs in zip(transcript.messages, messages, strict=False)
                )
                calls = [call for one in messages for call in one.get("tool_calls") or ()]
                named = [(one["function"], one["arguments"]) for one in calls]
                same_calls = [(one.name, one.arguments) for one in transcript.tool_calls] == named
                verdicts = [PASSED.get(one["value"]) for one in (sample.get("scores") or {}).values()
                            if isinstance(one["value"], str | int)]  # fmt: skip
                outcomes = [one.outcome.value for one in results]
                known = all(verdict is None or verdict in outcomes for verdict in verdicts)
                said = (roles, texts, same_calls, known)
                tally.same(all(said), path.name, sample["id"], said, verdicts, outcomes)
    return tally


def compare_tau(count: int, seed: int) -> Tally:
    """tau-bench's rewards and calls, run by run, and its pass^k, from the file alone by its own formula."""
    tally = Tally()
    if not TAU.is_file():
        return tally
    raw = json.loads(TAU.read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "h.db")) as store:
        report = import_file(TAU, store)
        rows = store.runs_of_execution(report.execution_id)
        by_id = {(row.test_id, row.repetition): row for row in rows}
        trials: dict[int, list[float]] = {}
        for one in raw:
            trials.setdefault(one["task_id"], []).append(one["reward"])
            row = by_id[str(one["task_id"]), one["trial"] + 1]
            tally.same(row.status == ("passed" if one["reward"] == 1 else "failed"), one["task_id"], row.status)
            calls = [call["function"] for message in one["traj"] for call in message.get("tool_calls") or ()]
            found = [(call.name, call.arguments) for call in store.transcript(row.id).tool_calls]
            wanted = [(call["name"], json.loads(call["arguments"])) for call in calls]
            tally.same(found == wanted, one["task_id"], one["trial"], found, wanted)
        told = execution_stats(rows).overall.pass_hat_k
        for k in range(1, 5):
            each = [comb(sum(map(int, rewards)), k) / comb(len(rewards), k) for rewards in trials.values()]
            expected = sum(each) / len(each)
            tally.same(abs(told[str(k)] - expected) < 1e-12, k, told, expected)
    return tally


def recordings() -> list[Path]:
    wanted = ("generated", "inspect", "langsmith", "wire", "otel")
    found = [path for folder in wanted for path in sorted((DATA / folder).glob("*"))]
    return [one for one in found if one.suffix in (".json", ".jsonl", ".eval") and one.stat().st_size < 300_000]


def runs_of(store: Store, execution: str) -> list[str]:
    """Each run of an execution as a text that says all of it."""
    return [
        repr((row.test_id, row.repetition, row.status, row.score, store.transcript(row.id), store.results(row.id)))
        for row in store.runs_of_execution(execution)
    ]


def is_whole(path: Path, data: bytes) -> bool:
    """Whether the file can still be read to its end by others: then what stands in it is what is meant."""
    if path.suffix == ".eval":
        return False
    try:
        lines = data.decode().split("\n") if path.suffix == ".jsonl" else [data.decode()]
        for line in filter(str.strip, lines):
            json.loads(line, strict=False)  # a control character in a text is read as it is
    except ValueError:
        return False
    return True


def damaged(dice: random.Random, data: bytes) -> Iterator[tuple[str, bytes]]:
    at = dice.randrange(1, len(data))
    yield f"cut off at {at} of {len(data)}", data[:at]
    at, bit = dice.randrange(len(data)), 1 << dice.randrange(8)
    yield f"bit {bit} of byte {at} of {len(data)}", data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :]


def compare_damaged(count: int, seed: int) -> Tally:
    """Files cut off and with a bit turned: refused, or said to be damaged, or read as the whole file is."""
    dice, tally, files = random.Random(seed), Tally(), recordings()
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder, "h.db")) as store:
        whole: dict[Path, tuple[list[str], tuple[str, ...]]] = {}
        while files and tally.cases < count:
            path = dice.choice(files)
            if path not in whole:
                try:
                    report = import_file(path, store)
                except AgentevalError:
                    files.remove(path)
                    continue
                whole[path] = runs_of(store, report.execution_id), report.notes
            runs, notes = whole[path]
            for how, data in damaged(dice, path.read_bytes()):
                target = Path(folder, path.name)
                target.write_bytes(data)
                try:
                    report = import_file(target, store)
                except AgentevalError:
                    tally.same(True)
                    continue
                found = runs_of(store, report.execution_id)
                told = report.cut_off or report.skipped or report.notes != notes
                right = found == runs or is_whole(path, data)
                tally.same(bool(told or right), path.name, how, len(found), len(runs), report)
    return tally
