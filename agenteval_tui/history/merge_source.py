"""The other file of a merge: opened to read only, looked at before anything of it is taken."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval_tui.history import foreign
from agenteval_tui.history.copying import copy_history
from agenteval_tui.history.errors import HistoryError, explain

if TYPE_CHECKING:
    from agenteval_tui.history.store import Store


@contextmanager
def opened(path: Path) -> Iterator[Store]:
    """The other file, read only; one of an older version is copied and brought up to date first."""
    from agenteval_tui.history import schema
    from agenteval_tui.history.store import Store

    if not path.is_file():
        raise HistoryError("there is no such history file", where=str(path))
    with tempfile.TemporaryDirectory(prefix="agenteval-") as folder:
        wanted = path
        try:
            with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as looked:
                version = schema.version_of(looked)
                ours = looked.execute("PRAGMA application_id").fetchone()[0] == schema.APPLICATION_ID
                if ours and 0 < version <= schema.newest():
                    foreign.check_tables(looked, version, str(path))
        except sqlite3.DatabaseError:
            ours, version = False, 0
        if not ours or not version:
            raise HistoryError("this is not a history file", where=str(path), mend="name one that agenteval made")
        if version > schema.newest():
            raise HistoryError(
                f"this history was made by a newer agenteval (file version {version})",
                where=str(path),
                mend="update agenteval",
            )
        if version < schema.newest():
            wanted = Path(folder, "history.db")
            copy_history(path, wanted)
            Store.open(wanted).close()
        source = Store.open(wanted, read_only=True)
        try:
            source.read(lambda c: _check_rows(c, path))
            yield source
        finally:
            source.close()


def _check_rows(connection: sqlite3.Connection, path: Path) -> None:
    try:
        foreign.check_rows(connection, str(path))
    except sqlite3.Error as error:
        raise explain(error, path, doing="read") from error
