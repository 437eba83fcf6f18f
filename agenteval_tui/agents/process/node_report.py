"""What the Node programs of a command tell of themselves by `startup/node_report.cjs`: which files of the project they
load, read or list, and which servers of models they asked past the proxy."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from agenteval_tui.suites.trust import working_copy_of

_SOURCES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")


def is_node_source(path: str) -> bool:
    """Whether a file is one that Node programs load: which of these they do is seen."""
    return path.endswith(_SOURCES)


class NodeReport:
    """What the Node programs of one run have told."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def of(self, kind: str) -> tuple[str, ...]:
        """What was told of this kind by now: `read`, the paths; `past`, the servers; `ended`, the input of which more
        was wanted."""
        # Not `splitlines`: a path may have other ends of lines in it. Behind the last one there is nothing, or the half
        # of a line that a process left which was killed.
        *lines, _ = self._text().split("\n")
        told = [line.partition(" ") for line in lines]
        return tuple(dict.fromkeys(text for name, _, text in told if name == kind))

    def _text(self) -> str:
        try:
            return self.file.read_bytes().decode("utf-8", "surrogateescape")
        except OSError:  # a program that cleans the folder of temporary files took it away
            return ""


class NodePrograms:
    """What the Node programs of a command's runs have told. Each run tells it in a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._project = working_copy_of(folder)
        self._read: set[str] = set()
        self._written: set[str] = set()
        """Sources that runs wrote before they loaded them. What these are made of is not known."""

    @property
    def files(self) -> frozenset[str]:
        """Those that were read by now. Empty: it is not known which sources the programs consist of."""
        if self._written or not any(map(is_node_source, self._read)):
            return frozenset()
        return frozenset(self._read)

    @contextmanager
    def of_run(self) -> Iterator[NodeReport]:
        """A run begins. At its end, take what its programs read."""
        descriptor, name = tempfile.mkstemp(prefix="agenteval-node-")
        os.close(descriptor)
        report, began = NodeReport(Path(name)), time.time()
        try:
            yield report
        finally:
            self._take(report.of("read"), began)
            Path(name).unlink(missing_ok=True)

    def variables(self, report: NodeReport) -> dict[str, str]:
        """Those by which the processes of a run find where to tell it."""
        return {"AGENTEVAL_PROJECT": f"{self._project}{os.sep}", "AGENTEVAL_REPORT": str(report.file)}

    def _take(self, read: Iterable[str], began: float) -> None:
        for path in read:
            self._read.add(path)
            self._written.discard(path)
            if is_node_source(path) and not _is_older(path, began):
                self._written.add(path)


def _is_older(path: str, time_s: float) -> bool:
    try:
        return os.stat(path).st_mtime < time_s  # noqa: PTH116
    except OSError:  # it has gone, as the files that some tools write only to import them
        return False
