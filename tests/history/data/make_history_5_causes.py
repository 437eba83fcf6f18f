"""Makes `history-5-causes.db.gz`: failures and decisions about them as commit 23bd94c wrote them, when causes were read
out of sentences.

Run in a worktree of that commit: `python make_history_5_causes.py history-5-causes.db.gz`.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.history.triage import Context, Decision, decide, reopen
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript

SUITE = "/suites/causes.suite.yaml"


def said(text: str, *calls: tuple[str, Any], error: RunError | None = None) -> Transcript:
    made = tuple(ToolCall(f"c{n}", name, given, "ok", message=1) for n, (name, given) in enumerate(calls))
    messages = (Message("user", "Hi"), Message("assistant", text, tool_calls=tuple(range(len(made)))))
    return Transcript(messages=messages, tool_calls=made, final_output=text, error=error)


ORDER = {"type": "ToolCheck", "tools": [{"name": "get_order", "arguments": {"order_id": "#W1", "full": True}}]}
TRAJECTORY = {"type": "Trajectory", "mode": "superset", "calls": [{"name": "a"}, {"name": "c"}]}
TEXT = {"type": "TextMatch", "contains_all": ["country", "5000"]}
SLOW = "(a|a)*$"
CASES: dict[str, tuple[str, dict[str, Any], Transcript, str | None]] = {
    # name: prototype class, config, transcript, what whoever is asked replies
    "text": ("TextResponse", {"metrics": [TEXT]}, said("no"), None),
    "usage": ("ToolResponse", {"metrics": [ORDER]}, said("x", ("search", {})), None),
    "arguments": (
        "ToolResponse", {"metrics": [ORDER]}, said("x", ("get_order", {"order_id": "W1", "page": 2})), None,
    ),
    "unreadable": ("ToolResponse", {"metrics": [ORDER]}, said("x", ("get_order", "{broken")), None),
    "trajectory": (
        "ToolResponse", {"metrics": [TRAJECTORY]},
        said("x", ("b", {}), ("a", {})), None,
    ),
    "keys": ("JsonResponse", {"metrics": [{"type": "Json", "required_keys": ["a.b"]}]}, said('{"a": {}}'), None),
    "equals": (
        "JsonResponse", {"metrics": [{"type": "Json", "equals": {"a": 1, "b": [{"c": 2}]}}]},
        said('{"a": 1, "b": [{"c": 3}]}'), None,
    ),
    # The agent's own words were read as ours: wrong, and not to be told from the signature.
    "fooled": (
        "JsonResponse", {"metrics": [{"type": "Json", "equals": {"a": 1}}]}, said('{"a": "key missing in body"}'), None,
    ),
    "block": ("TextResponse", {"extract_code_block": 2, "metrics": []}, said("```\nx\n```"), None),
    "no judge": ("TextResponse", {"metrics": [{"type": "Judge", "criteria": "good"}]}, said("x"), None),
    "judge": ("TextResponse", {"metrics": [{"type": "Judge", "criteria": "good"}]}, said("x"), "no idea"),
    "off scale": ("TextResponse", {"metrics": [{"type": "Judge", "criteria": "good"}]}, said("x"), '{"score": 7}'),
    "function": ("TextResponse", {"metrics": [{"type": "Python", "function": "m:f"}]}, said("x"), "0.25"),
    "returned": ("TextResponse", {"metrics": [{"type": "Python", "function": "m:f"}]}, said("x"), "7"),
    "cost": ("TextResponse", {"metrics": [{"type": "Cost", "max": 1.0}]}, said("x"), None),
    "tokens": ("TextResponse", {"metrics": [{"type": "Tokens", "input_max": 1}]}, said("x"), None),
    "variable": ("TextResponse", {"metrics": [{"type": "TextMatch", "contains": "{{country}}"}]}, said("x"), None),
    "slow": ("TextResponse", {"metrics": [{"type": "Regex", "pattern": SLOW}]}, said("a" * 40 + "b"), None),
    "slow block": ("TextResponse", {"extract_by_regex": SLOW, "metrics": []}, said("a" * 40 + "b"), None),
    "config": ("TextResponse", {"metrics": [{"type": "TextMatch", "contains": 7}]}, said("x"), None),
    "agent": (
        "TextResponse", {"metrics": [{"type": "TextMatch", "contains": "x"}]},
        said("", error=RunError("timeout", "no answer for 30 s", "raise `timeouts.total`")), None,
    ),
}  # fmt: skip


def main(target: Path) -> None:
    specs = {name: CriterionSpec(name, kind, config) for name, (kind, config, *_) in CASES.items()}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        with Store.open(path) as store:
            runs = [
                PlannedRun(
                    f"CAUSE-{name.replace(' ', '-')}", "CAUSES", place,
                    suite_key=SUITE, suite_name="Causes", test_id=name.replace(" ", "-"), test_name=name,
                    agent="demo", prompt="Hi", criteria=(spec.hash,), specs=(spec_to_dict(spec),),
                )
                for place, (name, spec) in enumerate(specs.items())
            ]  # fmt: skip
            record = ExecutionRecord(
                "CAUSES", title="causes", kind="run", source="c", suite_keys=(SUITE,), started_ms=1
            )
            store.begin_execution(record, runs)
            signatures = {}
            for run in runs:
                _, _, transcript, reply = CASES[run.test_name]
                replies: dict[str, Reply] = {}
                for _ in range(2 if reply else 0):
                    asked = compile_criterion(specs[run.test_name]).requests(transcript, {}, replies)
                    replies |= {one.hash: Reply(reply or "") for one in asked}
                verdict = grade(transcript, (specs[run.test_name],), replies=replies or None)
                status = str(verdict.outcome)
                store.run_ended(
                    RunEnded(run.id, status, verdict.score, 2, 1.0, 1, transcript, verdict.results, why=verdict.reason)
                ).result()
            store.end_execution("CAUSES", "finished").result()
        connection = sqlite3.connect(path)
        for name, cause in connection.execute("SELECT name, cause FROM criterion_results WHERE cause > ''"):
            signatures[name] = cause
        connection.close()
        with Store.open(path) as store:
            for place, (name, cause) in enumerate(signatures.items()):
                decide(store, Decision(cause, "ignore", f"about {name}", "kim", 1_000 + place, None, Context()))
            # Two sentences of one kind: the judge's score that was none, and the reply that could not be read.
            parts = json.loads(signatures["judge"])
            parts[-1] = "the judge's score 'good' is no score"
            decide(
                store, Decision(json.dumps(parts, separators=(",", ":")), "fix", "older", "kim", 500, None, Context())
            )
            reopen(store, signatures["tokens"])
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
        connection.close()
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
