"""Makes `history-5.db.gz`: a history as commit 23bd94c wrote it, before criteria went by their names.

Run in a worktree of that commit: `python make_history_5.py history-5.db.gz`.
"""

from __future__ import annotations

import gzip
import sqlite3
import sys
import tempfile
from pathlib import Path

from agenteval_tui.grading.grade import grade
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history import quarantines
from agenteval_tui.history.labels import TakeBackLabel
from agenteval_tui.history.quarantines import Quarantine
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import spec_to_dict
from agenteval_tui.transcripts.model import Message, Transcript

SUITE = "/suites/old.suite.yaml"
HUMAN = '{"metrics": [{"type": "Human", "question": "Is it good?"}]}'
HI = '{"metrics": [{"type": "TextMatch", "contains": "hi"}]}'
BYE = '{"metrics": [{"type": "TextMatch", "contains": "bye"}]}'


def spec(name: str, config: str) -> CriterionSpec:
    return CriterionSpec(name, "TextResponse", config)


TESTS = {
    "greet": (spec("tone", HUMAN), spec("facts", HUMAN), spec("says hi", HI)),
    "twin": (spec("same", HI), spec("same", HI), spec("same", BYE), spec("same (3)", HI), spec(" ", BYE)),
    "lone": (spec("tone", HUMAN),),
}


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "history.db"
        with Store.open(path) as store:
            runs = [
                PlannedRun(
                    f"OLD-{test}-{number}",
                    "OLD",
                    place * 2 + number,
                    suite_key=SUITE,
                    suite_name="Old",
                    test_id=test,
                    test_name=test,
                    repetition=number + 1,
                    agent="demo",
                    prompt="Say hi",
                    criteria=tuple(one.hash for one in specs),
                    specs=tuple(spec_to_dict(one) for one in specs),
                )
                for place, (test, specs) in enumerate(TESTS.items())
                for number in range(2)
            ]
            record = ExecutionRecord(
                "OLD", title="old", kind="run", source="old", suite_keys=(SUITE,), started_ms=1_000
            )
            store.begin_execution(record, runs)
            transcript = Transcript((Message("user", "Say hi"), Message("assistant", "hi")), final_output="hi")
            for run in runs:
                verdict = grade(transcript, TESTS[run.test_id])
                store.run_ended(
                    RunEnded(
                        run.id, str(verdict.outcome), verdict.score, 2_000, 10.0, 1, transcript, verdict.results,
                        why=verdict.reason,
                    )
                ).result()  # fmt: skip
            human, hi = TESTS["greet"][0].hash, TESTS["greet"][2].hash
            store.label("OLD-greet-0", passed=True, criterion_hash=human, comment="which one?", who="kim").result()
            store.label("OLD-greet-0", passed=True, criterion_hash=hi, comment="it does", who="kim").result()
            store.label("OLD-greet-1", passed=False, comment="the run", who="kim").result()
            store.label("OLD-lone-0", 5, criterion_hash=human, comment="good", who="kim").result()
            gone = store.label("OLD-lone-1", 1, criterion_hash=human, comment="a slip", who="kim").result()
            store.write(TakeBackLabel(gone)).result()
            quarantines.put(store, Quarantine(SUITE, "twin", 4_000_000_000_000, "same", "odd", "kim")).result()
            store.end_execution("OLD", "finished").result()
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
        connection.close()
        target.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
