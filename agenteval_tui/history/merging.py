"""Another history file comes in: what it has and this one has not, by the ids of executions and runs.

The same file a second time adds nothing. Of an execution that is in both, runs that are missing come in, and ends of
runs that had not ended here. Numbers of rows are given anew; whatever names them follows.
"""

# ruff: noqa: S608 - statements are put together from words of ours; values are always bound

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from agenteval_tui.history import foreign, taken_back
from agenteval_tui.history.blobs import json_text, search_document
from agenteval_tui.history.errors import HistoryError
from agenteval_tui.history.merge_decisions import Merged, MergeDecisions
from agenteval_tui.history.merge_rows import Batch, Numbers, Row, insert, read_batch, read_decisions, read_rows
from agenteval_tui.history.merge_source import opened
from agenteval_tui.history.outcomes import TOTAL_OF, withdraw
from agenteval_tui.history.recordings import ASKED, settle
from agenteval_tui.history.recounting import LOST
from agenteval_tui.history.removal import running_executions, spent_by_attempts
from agenteval_tui.history.writer import Totals
from agenteval_tui.text.problems import AgentevalError

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store

_BATCH = 100  # runs in a transaction
_UNENDED = ("queued", "running", "grading")
COMING = "it was running in the history that it was merged from"
MERGED = "merged"
"""The option of an execution of which something came from another history: to resume it needs a person's word."""
_NOT_HERE = ("executor", "scheduler")
_LEFT_OUT = "what can't be read of {} runs: they are listed without it"


def merge_history(store: Store, path: Path, on_progress: Callable[[int, int], None] | None = None) -> Merged:
    """Take in another history file, which is not changed. Blocks; others can write between batches.

    What waits for a person in `relabelled` runs is to be graded anew (`analysis.labels.settle`).
    Raises AgentevalError: it is this history itself, no history, or made by a newer program.
    """
    if path.exists() and path.samefile(store.path):
        raise AgentevalError("this is the history itself", where=str(path), mend="name another file")
    with opened(path) as source:
        total = int(source.read(lambda c: c.execute("SELECT count(*) FROM runs").fetchone()[0]))
        done = Merged()
        seen = 0
        for execution in source.read(lambda c: read_rows(c, "SELECT * FROM executions ORDER BY id")):
            runs: list[int] = source.read(
                lambda c, one=execution: [  # type: ignore[misc]
                    row[0] for row in c.execute("SELECT id FROM runs WHERE execution = ? ORDER BY id", (one["id"],))
                ]
            )
            for start in range(0, len(runs), _BATCH) or (0,):
                some = runs[start : start + _BATCH]
                batch = source.read(lambda c, one=execution, some=some: read_batch(c, one, some))  # type: ignore[misc]
                done += store.write(_Merge(batch)).result()
                seen += len(some)
                if on_progress is not None:
                    on_progress(seen, total)
        decided: Merged = store.write(MergeDecisions(source.read(read_decisions))).result()
        return done + decided


@dataclass(slots=True)
class _Merge:
    """A batch of runs of one execution."""

    patient: ClassVar[bool] = False
    batch: Batch
    documents: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    unreadable: int = 0

    def prepare(self) -> None:
        """What search finds of the transcripts (by their number in the other file); what is broken is left out."""
        tables = self.batch.tables
        transcripts = [foreign.transcript_in(row) for row in tables["transcripts"]]
        for row, transcript in transcripts:
            if transcript is not None:
                self.documents[row["id"]] = search_document(transcript, "")
        results = [row for row in tables["evidence"] if foreign.are_results(row["data"])]
        self.unreadable = len(transcripts) - len(self.documents) + len(tables["evidence"]) - len(results)
        tables["transcripts"] = [row for row, _ in transcripts]
        tables["evidence"] = results
        tables["plans"] = [foreign.plan_in(row) for row in tables["plans"]]
        tables["tasks"] = [row for row in tables["tasks"] if foreign.is_packed(row["data"], row["hash"])]
        tables["judge_replies"] = [row for row in tables["judge_replies"] if foreign.is_packed(row["data"])]
        # What can't be read can't be run again; what was lost there is lost here.
        known = {row["id"] for row in tables["tasks"]}
        there = {row["id"] for row in tables["transcripts"]}
        tables["runs"] = [
            {
                **row,
                "task": row["task"] if row["task"] in known else None,
                "transcript": LOST
                if row["transcript"] is not None and row["transcript"] not in there
                else row["transcript"],
            }
            for row in tables["runs"]
        ]
        execution = tables["executions"][0]
        # Where it was run there is nothing that anything here should be sent to.
        options = {name: one for name, one in json.loads(execution["options"]).items() if name not in _NOT_HERE}
        setup = execution["setup"] if execution["setup"] in known else None
        tables["executions"] = [{**execution, "setup": setup, "options": json_text(options)}]

    def apply(self, connection: sqlite3.Connection, totals: Totals) -> Merged:
        """Insert what is not here."""
        tables, numbers = self.batch.tables, Numbers()
        for table in ("suites", "criteria", "plans", "tasks", "judge_replies"):
            numbers.take(connection, table, tables[table])
        numbers.take(connection, "tests", [{**row, "ended": 0} for row in tables["tests"]])
        numbers.take(connection, "dataset_rows", tables["dataset_rows"])
        numbers.take(connection, "criterion_texts", tables["criterion_texts"])
        execution, new = self._execution(connection, numbers)
        if not new and execution in running_executions(connection):
            return Merged(left_out=(f"execution {tables['executions'][0]['uid']}: it is running here",))
        coming, completed, already = self._coming(connection)
        numbers.maps["transcripts"] = {LOST: LOST}
        self._transcripts(connection, numbers, {row["transcript"] for row in coming})
        done = Merged(int(new), len(coming) - len(completed), len(completed), 0, already)
        numbers.find(connection, "runs", tables["runs"])
        for row in coming:
            self._run(connection, totals, numbers, row, completed)
        settle(connection, [name for row in coming for name in (row["recording"], row["uid"])])
        here = {row["id"] for row in coming}
        for table in ("criterion_results", "evidence", "failed_attempts", "run_replies"):
            for row in tables[table]:
                made = numbers.translated(table, row)
                if row["run"] in here and made is not None:
                    insert(connection, table, made)
        labels, relabelled = self._labels(connection, numbers, here)
        if completed:
            self._end(connection, execution)
        if coming:
            connection.execute(
                "UPDATE executions SET options = json_set(options, ?, json('true')) WHERE id = ?",
                (f"$.{MERGED}", execution),
            )
        unread = (_LEFT_OUT.format(self.unreadable),) if self.unreadable and coming else ()
        return replace(done, labels=labels, relabelled=relabelled, left_out=unread)

    def _labels(
        self, connection: sqlite3.Connection, numbers: Numbers, coming: set[int]
    ) -> tuple[int, tuple[str, ...]]:
        """Insert what is new and was not taken back here: how many, and the runs whose verdict doesn't know it yet."""
        uids = {row["id"]: row["uid"] for row in self.batch.tables["runs"]}
        hashes = {row["id"]: row["hash"] for row in self.batch.tables["criteria"]}
        came, relabelled = 0, dict[str, None]()
        for row in self.batch.tables["labels"]:
            named = (uids[row["run"]], hashes.get(row["criterion"], ""), row["who"], row["at_ms"])
            # What was taken back before version 6 was taken back without the criterion's name.
            names = {taken_back.name_of_label(*named), taken_back.name_of_label(*named, row["criterion_name"] or "")}
            gone = any(taken_back.when(connection, "label", name) is not None for name in names)
            new = not gone and bool(numbers.take(connection, "labels", [row]))
            came += new
            if gone if row["run"] in coming else new:
                relabelled[uids[row["run"]]] = None
        return came, tuple(relabelled)

    def _execution(self, connection: sqlite3.Connection, numbers: Numbers) -> tuple[int, bool]:
        row = self.batch.tables["executions"][0]
        none = dict.fromkeys(("runs", "input_tokens", "output_tokens", *TOTAL_OF.values()), 0)
        # What ran there is not run here; where it ended after all, its runs that come in later say so.
        status = {"status": "interrupted", "message": COMING} if row["status"] == "running" else {}
        came = numbers.take(connection, "executions", [{**row, **none, **status, "cost": None}])
        return numbers.maps["executions"][row["id"]], bool(came)

    def _end(self, connection: sqlite3.Connection, execution: int) -> None:
        """What was finished there is finished here, when nothing of it is missing any more."""
        row = self.batch.tables["executions"][0]
        connection.execute(
            "UPDATE executions SET status = 'finished', message = ?, finished_ms = ? WHERE id = ? AND ? = 'finished'"
            " AND NOT EXISTS (SELECT 1 FROM runs WHERE execution = executions.id"
            " AND status IN ('queued', 'running', 'grading', 'cancelled'))",
            (row["message"], row["finished_ms"], execution, row["status"]),
        )

    def _coming(self, connection: sqlite3.Connection) -> tuple[list[Row], dict[int, int], int]:
        """The runs to take in, those of them that are here and have not ended (there: here), and how many others."""
        coming, completed, already = [], {}, 0
        for row in self.batch.tables["runs"]:
            found = connection.execute("SELECT id, status FROM runs WHERE uid = ?", (row["uid"],)).fetchone()
            if found is None:
                coming.append(row)
            elif found[1] in (*_UNENDED, "cancelled") and row["status"] not in (*_UNENDED, "cancelled"):
                coming.append(row)
                completed[row["id"]] = found[0]
            else:
                already += 1
        return coming, completed, already

    def _transcripts(self, connection: sqlite3.Connection, numbers: Numbers, wanted: set[int | None]) -> None:
        calls: dict[int, list[Row]] = {}
        for row in self.batch.tables["tool_calls"]:
            calls.setdefault(row["transcript"], []).append(row)
        for row in self.batch.tables["transcripts"]:
            if row["id"] in wanted and numbers.take(connection, "transcripts", [row]):
                for call in calls.get(row["id"], ()):
                    made = numbers.translated("tool_calls", call)
                    if made is not None:
                        insert(connection, "tool_calls", made)

    def _run(
        self, connection: sqlite3.Connection, totals: Totals, numbers: Numbers, row: Row, completed: Mapping[int, int]
    ) -> None:
        made = numbers.translated("runs", row)
        if made is None:
            raise HistoryError(f"run {row['uid']} of the other history names something that is not in it")
        if made["status"] in ("running", "grading"):
            made["status"] = "queued"
        execution, status = made["execution"], made["status"]
        if row["id"] in completed:
            number = completed[row["id"]]
            self._withdraw(connection, totals, number, execution)
            sets = ", ".join(f"{name} = ?" for name in made)
            connection.execute(f"UPDATE runs SET {sets} WHERE id = ?", [*made.values(), number])
        else:
            number = insert(connection, "runs", made)
            totals.add(execution, "runs", 1)
        numbers.maps["runs"][row["id"]] = number
        if status in TOTAL_OF:
            totals.add(execution, TOTAL_OF[status], 1)
            if status != "cancelled":
                totals.tests[made["test"]] = totals.tests.get(made["test"], 0) + 1
        attempts = [one for one in self.batch.tables["failed_attempts"] if one["run"] == row["id"]]
        for one in (*attempts, *(() if made["cached"] or made["recording"] else (made,))):
            for column in ("input_tokens", "output_tokens", "cost"):
                if one[column] is not None:
                    totals.add(execution, column, one[column])
        document = self.documents.get(row["transcript"] or 0)
        if document is not None and status in TOTAL_OF:
            prompt, answer, tools = document
            planned = connection.execute("SELECT prompt FROM plans WHERE id = ?", (made["plan"],)).fetchone()[0]
            connection.execute(
                "INSERT INTO search (rowid, prompt, answer, tools) VALUES (?, ?, ?, ?)",
                (number, prompt or planned, answer, tools),
            )

    @staticmethod
    def _withdraw(connection: sqlite3.Connection, totals: Totals, run: int, execution: int) -> None:
        """Of a run that is completed by the other file: what it had here comes from there too."""
        for column, number in spent_by_attempts(connection, [run]).get(run, ()):
            totals.add(execution, column, -number)
        connection.execute("DELETE FROM failed_attempts WHERE run = ?", (run,))
        connection.execute("DELETE FROM run_replies WHERE run = ?", (run,))
        test, status, cached, *spent = connection.execute(
            f"SELECT test, status, {ASKED}, input_tokens, output_tokens, cost FROM runs WHERE id = ?", (run,)
        ).fetchone()
        if status == "cancelled":
            withdraw(connection, totals, run, execution, test, status, () if cached else spent)
