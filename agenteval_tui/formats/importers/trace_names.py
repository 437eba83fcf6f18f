"""How the tests of traces that name none are called.

A test is called as its agent, or as the root span, as long as that was asked one thing only; else by the question.
Equal questions repeat one test. Which it is, is known once the whole file was read, so runs wait on disk.
"""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from itertools import count
from tempfile import TemporaryFile

from msgspec.structs import replace

from agenteval_tui.core.display import one_line
from agenteval_tui.formats.importers.format import Recordings
from agenteval_tui.formats.importers.recording import Recording, as_id
from agenteval_tui.formats.stream.source import Source

_BY_CHANCE = re.compile(
    r"(?:[A-Za-z]+[-_:])?(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
    r"|(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[0-9A-Za-z]{16,})"
)
_LENGTH = 80  # characters of a question that name a test


def is_by_chance(name: str) -> bool:
    """Whether a name tells nothing: a UUID, or a long word of letters and digits. Many frameworks number each run or
    conversation so."""
    return _BY_CHANCE.fullmatch(name) is not None


def question_name(question: str) -> str:
    """A test's name made of what was asked; "" if nothing was."""
    return one_line(question, _LENGTH)


def with_test_names(read: Callable[[Source], Recordings]) -> Callable[[Source], Recordings]:
    """The reader of a format of traces. Those of its runs that have a `trace_name` get the name of their test."""

    def runs(source: Source) -> Recordings:
        names = _Names()
        with TemporaryFile(prefix="agenteval-") as waiting:
            size = 0
            for part in read(source):
                if isinstance(part, Recording) and part.trace_name:
                    names.add(part)
                # Nothing waits yet, so the order stays if this goes on at once.
                elif not size:
                    yield part
                    continue
                # Behind the first one that waits all wait: runs come in the order of the file.
                pickle.dump(part, waiting, pickle.HIGHEST_PROTOCOL)
                size += 1
            waiting.seek(0)
            for _ in range(size):
                part = pickle.load(waiting)  # noqa: S301 - written above
                yield names.named(part) if isinstance(part, Recording) and part.trace_name else part

    return runs


class _Names:
    def __init__(self) -> None:
        self._questions: dict[str, set[str]] = {}  # that were asked, by the name of the trace
        self._names: dict[str, str] = {}  # by the question
        self._ids: dict[str, str] = {}  # what each id stands for

    def add(self, recording: Recording) -> None:
        # Where it is not known what was asked, it is nothing that was asked before.
        self._questions.setdefault(recording.trace_name, set()).add(recording.prompt or recording.test_id)

    def named(self, recording: Recording) -> Recording:
        name, question = recording.trace_name, recording.prompt
        is_one = len(self._questions[name]) == 1
        if not is_one and not question:
            return recording
        key = f"trace {name}" if is_one else f"question {question}"
        if key not in self._names:
            whole = name if is_one else question_name(question)
            numbered = (whole if number == 1 else f"{whole} ({number})" for number in count(1))
            self._names[key] = next(name for name in numbered if self._ids.setdefault(as_id(name), key) == key)
        return replace(recording, test_id=as_id(self._names[key]), test_name=self._names[key])
