"""What is stored: the tables of the history."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from recorder import Files, Recorder

from agenteval_tui.history.schema import migrate, newest


def tables(recorder: Recorder) -> Files:
    """The SQL of all tables and indexes as the migrations make them: of the newest version, and what each version
    added to the one before (+) and took away from it (-)."""
    texts: dict[str, str] = {}
    before: set[str] = set()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for version in range(1, newest() + 1):
            migrate(connection, upto=version)
            rows = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").fetchall()
            now = [f"{kind} {name}\n{sql};\n" for kind, name, sql in rows]
            if version > 1:
                changes = [f"- {text}" for text in sorted(before.difference(now))]
                changes += [f"+ {text}" for text in now if text not in before]
                texts[f"{version:02}.sql"] = "\n".join(changes)
            texts["newest.sql"] = "\n".join(now)
            before = set(now)
    return texts
