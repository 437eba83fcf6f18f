"""Makes `version5.db.gz`: a history as the program of commit 23bd94c wrote it (file version 5). To make it:

    git worktree add --detach OLD 23bd94c; PYTHONPATH=OLD python tests/history/old/make_version5.py version5.db.gz

Three executions of one suite with datasets whose rows turn; the agent changes before the third. The second one is
graded again, and so is that grading.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
from pathlib import Path
from unittest.mock import patch

SUITE = """
name: Shop
agent: bot
agents:
  bot: {kind: command, command: "sh -c 'cat >/dev/null; echo ANSWER # MODEL'"}
tests:
  - id: rows
    prompt: "{{question}}"
    dataset: {file: rows.csv}
    variables: {tone: kind}
    criteria:
      - name: says
        prototype_class: TextResponse
        config_uxon: {metrics: [{type: TextMatch, contains: "{{expected}}"}]}
  - id: named
    prompt: "{{question}}"
    dataset: {file: named.csv}
    criteria:
      - {name: says, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: yes}]}}
  - id: plain
    prompt: hi
    repeat: 3
    criteria:
      - {name: says, prototype_class: TextResponse, config_uxon: {metrics: [{type: TextMatch, contains: yes}]}}
"""
ROWS = [f"question {n},{'yes' if n < 4 else 'no'}" for n in range(6)]


def main(target: str) -> None:
    from agenteval_tui.__main__ import main as agenteval

    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        os.environ |= {"HOME": folder, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder, "AGENTEVAL_DB": "h.db"}

        def call(*words: str) -> None:
            with patch.object(sys, "argv", ["agenteval", *words]):
                try:
                    agenteval()
                except SystemExit:
                    pass

        for answer, model, turned in (("yes", "m1", 0), ("yes", "m1", 2), ("no", "m2", 4)):
            rows = ROWS[turned:] + ROWS[:turned]
            Path("rows.csv").write_text("\n".join(["question,expected", *rows]) + "\n")
            Path("named.csv").write_text(
                "\n".join(["id,question", *(f"{row.split()[1][0]}x,{row.partition(',')[0]}" for row in rows)]) + "\n"
            )
            Path("s.suite.yaml").write_text(SUITE.replace("ANSWER", answer).replace("MODEL", model))
            call("run", "s.suite.yaml", "--trust")
            if turned == 2:
                for _ in range(2):
                    call("grade", "s.suite.yaml", "--execution", "last", "--save")
        import sqlite3

        with sqlite3.connect("h.db") as history:
            history.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            history.execute("PRAGMA journal_mode=DELETE")
            history.execute("VACUUM")
            print(history.execute("SELECT kind, source, runs, passed, failed, errors FROM executions").fetchall())
            print(json.dumps(history.execute("PRAGMA user_version").fetchone()))
        Path(target).write_bytes(gzip.compress(Path("h.db").read_bytes(), 9))


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).absolute()))
