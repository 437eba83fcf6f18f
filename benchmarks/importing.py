"""How much memory and time it takes to import a large Inspect log: 25 MB packed by zstd, many times that as JSON.

python -m benchmarks.importing [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.table import Row

SAMPLES = 170
TURNS = 50
DUE_MB = 200


def _message(rng: random.Random, role: str, number: int, **more: Any) -> dict[str, Any]:
    text = " ".join(f"{rng.getrandbits(32):x}" for _ in range(330))  # 3 kB that pack to a half
    return {"id": f"m{number}", "role": role, "content": text, **more}


def sample(number: int, turns: int) -> dict[str, Any]:
    """A sample as Inspect writes it: the messages, the same in a pool, and again in the events' outputs."""
    rng = random.Random(number)
    messages = [_message(rng, "user", 0)]
    events: list[dict[str, Any]] = []
    for turn in range(turns):
        call = {"id": f"c{turn}", "function": "bash", "arguments": {"cmd": f"ls {turn}"}, "type": "function"}
        said = _message(rng, "assistant", 2 * turn + 1, tool_calls=[call])
        answer = _message(rng, "tool", 2 * turn + 2, tool_call_id=call["id"], function="bash")
        at = f"2026-01-02T03:{turn % 60:02}:00+00:00"
        events.append({
            "event": "model", "model": "m", "timestamp": at, "input": [], "input_refs": [[0, len(messages)]],
            "output": {"model": "m", "choices": [{"message": said}]}, "working_time": 1.0,
            "call": {"request": {"messages": messages[-2:]}, "response": said},
        })  # fmt: skip
        events.append({
            "event": "tool", "id": call["id"], "function": "bash", "timestamp": at, "result": answer["content"],
            "working_time": 0.5,
        })  # fmt: skip
        messages += [said, answer]
    last = _message(rng, "assistant", 2 * turns + 1)
    return {
        "id": number, "epoch": 1, "input": messages[0]["content"], "target": "x", "messages": [*messages, last],
        "output": {"model": "m", "choices": [{"message": last, "stop_reason": "stop"}], "completion": last["content"]},
        "scores": {"match": {"value": "C" if number % 2 else "I"}}, "store": {}, "events": events,
        "events_data": {"messages": messages, "calls": []}, "model_usage": {"m": {"input_tokens": 5}},
        "total_time": 9.0,
    }  # fmt: skip


def make_log(path: Path, samples: int) -> int:
    """Write a log; the bytes of JSON in it."""
    if sys.version_info >= (3, 14):
        import zipfile
    else:
        from backports.zstd import zipfile

    size = 0
    about = {"version": 3, "status": "success", "eval": {"task": "t", "model": "m", "dataset": {}}}
    with zipfile.ZipFile(path, "w", 93) as archive:
        archive.writestr("_journal/start.json", json.dumps(about))
        for number in range(samples):
            text = json.dumps(sample(number, TURNS))
            size += len(text)
            archive.writestr(f"samples/{number}_epoch_1.json", text)
        archive.writestr("header.json", json.dumps(about))
    return size


def import_log(path: Path, db: Path) -> dict[str, float]:
    """Import it in this process: seconds, and the most memory that the whole process had, in megabytes."""
    from agenteval_tui.formats.import_file import import_file
    from agenteval_tui.history.store import Store

    with Store.open(db) as store:
        began = time.perf_counter()
        report = import_file(path, store)
        took = time.perf_counter() - began
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": took, "megabytes": most, "runs": report.added}


def _apart(*arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.importing", *arguments], stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout)


def run(quick: bool) -> list[Row]:
    """The figures of this module. Making the log and importing it are processes of their own."""
    samples = SAMPLES // 10 if quick else SAMPLES
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.eval")
        size = _apart("--make", str(path), str(samples))
        packed = path.stat().st_size / 1e6
        measured = _apart("--import", str(path), str(Path(folder, "h.db")))
    assert measured["runs"] == samples
    what = f"import an Inspect log of {packed:.0f} MB ({size / 1e6:,.0f} MB of JSON, {samples} samples)"
    return [
        Row(
            f"{what}: memory of the process",
            f"{measured['megabytes']:.0f} MB",
            f"< {DUE_MB} MB",
            measured["megabytes"] < DUE_MB,
        ),
        Row(f"{what}: time", f"{measured['seconds']:.1f} s", "", None),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--make", nargs=2, metavar=("FILE", "SAMPLES"), help=argparse.SUPPRESS)
    parser.add_argument("--import", nargs=2, metavar=("FILE", "DB"), dest="log", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make_log(Path(given.make[0]), int(given.make[1]))))
    elif given.log:
        print(json.dumps(import_log(Path(given.log[0]), Path(given.log[1]))))
    else:
        rows = run(given.quick)
        for row in rows:
            print(f"{row.what}: {row.measured} {row.due}")
        if given.json:
            Path(given.json).write_text(json.dumps([row.as_json() for row in rows], indent=2), "utf-8")


if __name__ == "__main__":
    main()
