"""The files of a project that the Node programs of a command load, read or list, as `startup/node_files.cjs` tells
them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from agenteval_tui.suites.trust import working_copy_of

_SOURCES = (".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs")


def is_node_source(path: str) -> bool:
    """Whether a file is one that Node programs load: which of these they do is seen."""
    return path.endswith(_SOURCES)


class NodeFiles:
    """The files that the runs of one command have read. Each run tells them in a file of its own."""

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
    def told(self) -> Iterator[Mapping[str, str]]:
        """The variables by which the processes of a run tell what they read; at the end, take it."""
        descriptor, report = tempfile.mkstemp(prefix="agenteval-files-")
        os.close(descriptor)
        began = time.time()
        try:
            yield {"AGENTEVAL_PROJECT": f"{self._project}{os.sep}", "AGENTEVAL_FILES": report}
        finally:
            # Not `splitlines`: a path may have other ends of lines in it. Behind the last one there is nothing, or the
            # half of a line that a process left which was killed.
            *paths, _ = Path(report).read_bytes().decode("utf-8", "surrogateescape").split("\n")
            self._take(set(paths), began)
            with suppress(OSError):
                os.unlink(report)  # noqa: PTH108

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
