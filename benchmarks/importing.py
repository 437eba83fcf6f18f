"""The memory and time for importing a large Inspect log (25 MB compressed by zstd, many times that as JSON), and
conversations as lines of JSON.

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

from agenteval_tui.core.garbage_collection import collect_less_often
from benchmarks.table import Row

SAMPLES = 170
TURNS = 50
CONVERSATIONS = 8_000
LOG_MB, LOG_S = 92, 5.0
LINES_MB, LINES_PER_S = 93, 1_700


def _message(rng: random.Random, role: str, number: int, **more: Any) -> dict[str, Any]:
    text = " ".join(f"{rng.getrandbits(32):x}" for _ in range(330))  # 3 kB that compress to a half
    return {"id": f"m{number}", "role": role, "content": text, **more}


def sample(number: int, turns: int) -> dict[str, Any]:
    """A sample as Inspect writes it: the messages are in the sample, in a pool, and in the events' outputs."""
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
    """Write a log. Returns the number of bytes of its JSON."""
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


def make_lines(path: Path, number: int) -> int:
    """Write conversations in OpenAI's format, one a line, each with 16 messages and 5 KB. Returns the bytes of JSON."""
    rng = random.Random(1)
    with path.open("w", encoding="utf-8") as file:
        for one in range(number):
            messages: list[dict[str, Any]] = [{"role": "system", "content": "You help customers of a shop."}]
            for turn in range(5):
                call = {"id": f"c{turn}", "type": "function"}
                call["function"] = {"name": "get_order", "arguments": json.dumps({"order_id": f"#W{one}"})}  # type: ignore[assignment]
                text = " ".join(f"{rng.getrandbits(32):x}" for _ in range(30))
                messages.append({"role": "user", "content": f"Where is order {one}? {text}"})
                messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text[::-1] + text})
            file.write(json.dumps({"messages": messages}) + "\n")
    return path.stat().st_size


def import_into(path: Path, db: Path) -> dict[str, float]:
    """Import it in this process. Returns the seconds, and the peak memory of the whole process in megabytes."""
    from agenteval_tui.formats.import_file import import_file
    from agenteval_tui.history.store import Store

    collect_less_often()
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


def _memory(what: str, megabytes: float, due: int) -> Row:
    return Row(f"{what}: memory of the process", f"{megabytes:.0f} MB", f"<= {due} MB", round(megabytes) <= due)


def run(quick: bool) -> list[Row]:
    """The figures of this module. Separate processes make the file and import it."""
    samples, number = (SAMPLES // 10, CONVERSATIONS // 10) if quick else (SAMPLES, CONVERSATIONS)
    with tempfile.TemporaryDirectory() as folder:
        path, lines = Path(folder, "log.eval"), Path(folder, "conversations.jsonl")
        size, plain = _apart("--make", str(path), str(samples)), _apart("--lines", str(lines), str(number))
        packed = path.stat().st_size / 1e6
        log = _apart("--import", str(path), str(Path(folder, "log.db")))
        read = _apart("--import", str(lines), str(Path(folder, "lines.db")))
    assert (log["runs"], read["runs"]) == (samples, number)
    what = f"import an Inspect log of {packed:.0f} MB ({size / 1e6:,.0f} MB of JSON, {samples} samples)"
    other = f"import {number:,} conversations of 16 messages in JSONL, {plain / 1e6:.0f} MB"
    rate = number / read["seconds"]
    return [
        _memory(what, log["megabytes"], LOG_MB),
        Row(f"{what}: time", f"{log['seconds']:.1f} s", f"< {LOG_S:g} s", log["seconds"] < LOG_S),
        Row(other, f"{rate:,.0f} runs/s", f"> {LINES_PER_S:,} runs/s", rate > LINES_PER_S),
        _memory(other, read["megabytes"], LINES_MB),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--make", nargs=2, metavar=("FILE", "SAMPLES"), help=argparse.SUPPRESS)
    parser.add_argument("--lines", nargs=2, metavar=("FILE", "NUMBER"), help=argparse.SUPPRESS)
    parser.add_argument("--import", nargs=2, metavar=("FILE", "DB"), dest="log", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        print(json.dumps(make_log(Path(given.make[0]), int(given.make[1]))))
    elif given.lines:
        print(json.dumps(make_lines(Path(given.lines[0]), int(given.lines[1]))))
    elif given.log:
        print(json.dumps(import_into(Path(given.log[0]), Path(given.log[1]))))
    else:
        rows = run(given.quick)
        for row in rows:
            print(f"{row.what}: {row.measured} {row.due}")
        if given.json:
            Path(given.json).write_text(json.dumps([row.as_json() for row in rows], indent=2), "utf-8")


if __name__ == "__main__":
    main()
