"""What is stored: the tables of each version of the history, and old histories as they are shown today."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from recorder import HISTORIES, Files, Recorder

from agenteval_tui.history.schema import migrate, newest

COMMITTED = sorted((path.stem for path in HISTORIES.glob("[0-9]*.sql")), key=lambda name: (len(name), name))


def tables(recorder: Recorder) -> Files:
    """The SQL of all tables and indexes as the migrations make them: of the newest version, and what each version
    added to the one before (+) and took away from it (-)."""
    found: dict[str, str] = {}
    before: set[str] = set()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for version in range(1, newest() + 1):
            migrate(connection, upto=version)
            rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
            now = [f"{kind} {name}\n{sql};\n" for kind, name, sql in rows]
            changes = [f"- {one}" for one in sorted(before.difference(now))]
            changes += [f"+ {one}" for one in now if one not in before]
            found[f"{version:02}.sql"] = "\n".join(changes)
            found["newest.sql"] = "\n".join(now)
            before = set(now)
    return found


def opened_today(recorder: Recorder, name: str) -> Files:
    """What an old history says when it is opened by this program, which brings it to the newest version."""
    path = recorder.copy(name)
    found: dict[str, object] = {}

    def ask(*words: str) -> Any:
        said = recorder.call(*words, "--json", db=path)
        assert said.code in (0, 1), said.err
        document = found[" ".join(words)] = said.document
        return document

    first = ask("history")[-1]["execution"]
    runs = ask("show", first)["runs"]
    ask("show", next(one["run"] for one in runs if one["outcome"] == "failed"))
    for one in runs[1:]:  # the evidence of two runs is enough to see that it can be read
        one["criteria"] = [(result["criterion"], result["outcome"]) for result in one["criteria"]]
    ask("causes", first)
    for words in (("baseline", "list"), ("quarantine",), ("triage",), ("review",), ("stats", "--costs")):
        ask(*words)
    with closing(sqlite3.connect(path)) as connection:
        found["labels"] = connection.execute("SELECT * FROM labels ORDER BY id").fetchall()
    return {"shown.json": found}
