"""The files that a run writes: whether they may be written, and writing them.

A report is requested before anything runs, so anything that could keep it from being written is reported then. An
existing file is overwritten only when that loses nothing: see `check_reports`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from agenteval_tui.cli.invocation import Invocation
from agenteval_tui.cli.output import json_text
from agenteval_tui.cli.prompts import can_ask, confirm
from agenteval_tui.cli.run_options import STDOUT, ReportFiles
from agenteval_tui.core.atomic_write import is_special, write_whole
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.documents.results import execution_document
from agenteval_tui.formats.exporters import html_parts, junit, report_html, report_md
from agenteval_tui.formats.exporters.results_csv import COLUMNS, results_csv
from agenteval_tui.history.records import ExecutionRow
from agenteval_tui.history.store import Store

_HEAD = 2_000  # bytes of a file that say whose it is


def check_reports(invocation: Invocation, reports: ReportFiles) -> None:
    """Raise `AgentevalError` now when a file can't be written later: a run may have cost money by then.

    On a terminal, the user is asked about an existing file. Without a terminal it may be overwritten when it is empty
    or an earlier report of the same kind (a job that runs again), or with `--force`.
    """
    kinds: dict[Path, str] = {}
    for kind, name in reports.files:
        if name == STDOUT:
            if kind != "json":
                raise AgentevalError("only --json can go to stdout", fix=f"name a file for --{kind}")
            continue
        path = Path(name)
        if path.is_dir():
            raise AgentevalError("this is a folder, not a file for a report", where=name)
        folder = path.resolve().parent
        if not folder.is_dir():
            raise AgentevalError("there is no such folder for a report", where=str(folder), fix="make it first")
        # `write_whole` writes beside the file and renames: the folder must take a new file.
        if not os.access(path if is_special(path) else folder, os.W_OK):
            raise AgentevalError("the report can't be written there", where=name, fix="check the permissions")
        # By where it is: two names may be links to one file.
        if (other := kinds.setdefault(path.resolve(), kind)) and other != kind:
            raise AgentevalError(f"--{other} and --{kind} name the same file", where=name)
        _check_overwriting(invocation, reports, kind, path)


def _check_overwriting(invocation: Invocation, reports: ReportFiles, kind: str, path: Path) -> None:
    if reports.force or not path.exists() or is_special(path):
        return

    if can_ask(invocation):
        if not confirm(invocation, f"{path} exists. Overwrite it?"):
            raise AgentevalError("nothing ran, and the file stays", where=str(path), fix="name another file")
    elif not _is_ours(kind, path):
        raise AgentevalError(
            f"this file exists and is not an earlier --{kind} report",
            where=str(path),
            fix="name another file, or give --force",
        )


def write_reports(invocation: Invocation, store: Store, reports: ReportFiles, execution: ExecutionRow) -> None:
    """Write them all. Raises `AgentevalError` for the first that can't be, after the others were written."""
    failed: AgentevalError | None = None
    for kind, name in reports.files:
        if name == STDOUT:
            invocation.out.json(execution_document(store, execution))
            continue
        try:
            _write(name, _TEXTS[kind](store, execution))
        except OSError as error:
            failed = failed or AgentevalError(f"the report can't be written: {error.strerror}", where=name)
    if failed is not None:
        raise failed


def _json(store: Store, execution: ExecutionRow) -> str:
    return json_text(execution_document(store, execution)) + "\n"


_TEXTS: Mapping[str, Callable[[Store, ExecutionRow], str]] = {
    "json": _json,
    "junit": junit.junit_xml,
    "csv": results_csv,
    "md": report_md.report_md,
    "html": report_html.report_html,
}
_MARKS: Mapping[str, tuple[str, ...]] = {
    "json": ('"version":', '"execution":', '"suite":'),
    "junit": (junit.MARK,),
    "csv": (",".join(COLUMNS[:6]),),
    "md": (report_md.MARK,),
    "html": (html_parts.MARK,),
}
"""What the beginning of each kind of report has, and no other file that people would miss."""


def _is_ours(kind: str, path: Path) -> bool:
    """Whether a file is empty or begins like a report of this kind that was written here before."""
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD).decode("utf-8", "replace")
    except OSError:
        return False
    return not head.strip() or all(mark in head for mark in _MARKS[kind])


def _write(name: str, text: str) -> None:
    """Whole or not at all: a report that is read while it is written would be half of one. Raises OSError."""
    data = text.encode("utf-8", "backslashreplace")
    path = Path(name)
    if is_special(path):
        # The file may be where stdout goes, such as /dev/stdout: what was printed comes first.
        sys.stdout.flush()
        with path.open("ab", buffering=0) as file:
            file.write(data)
        return
    path = path.resolve()  # a link stays one
    write_whole(path, (data,), like=path.stat() if path.exists() else None, durable=False)
