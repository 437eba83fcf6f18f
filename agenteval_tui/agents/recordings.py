"""Recorded transcripts, read from a file or a mapping, and which of them belongs to a run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.text.quick_dataclass import dataclass
from agenteval_tui.transcripts.codec import from_json
from agenteval_tui.transcripts.model import Message, Transcript

_TEST_KEYS = ("test", "test_id", "task_id", "id")
_TRANSCRIPT_KEYS = ("transcript", "messages", "traj")


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded run: the id of its test ("" when the recording does not say) and what the agent did."""

    test: str
    transcript: Transcript


class Library:
    """Recordings, found by test id or, where recordings have none, by how their conversation begins."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self._by_test: dict[str, list[Transcript]] = {}
        self._without_test: list[Transcript] = []
        for recording in recordings:
            if recording.test:
                self._by_test.setdefault(recording.test, []).append(recording.transcript)
            else:
                self._without_test.append(recording.transcript)

    def __len__(self) -> int:
        return sum(map(len, self._by_test.values())) + len(self._without_test)

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids of the tests that have recordings, in the order of the recordings."""
        return tuple(self._by_test)

    def find(self, test: str, messages: Sequence[Message]) -> Sequence[Transcript]:
        """The recordings of test `test`, else those that begin with `messages` (system messages apart), in order."""
        if test in self._by_test:
            return self._by_test[test]
        start = _spoken(messages)
        return [
            transcript
            for transcript in self._everything()
            if start and _spoken(transcript.messages)[: len(start)] == start
        ]

    def _everything(self) -> Iterator[Transcript]:
        for transcripts in self._by_test.values():
            yield from transcripts
        yield from self._without_test


def read_file(path: Path) -> Library:
    """The recordings in a .json or .jsonl file.

    An item is a transcript (this project's JSON or a list of OpenAI messages), or an object that holds one as
    `transcript`, `messages` or `traj` beside the id of its test (`test`, `test_id`, `task_id` or `id`). A .jsonl file
    has one item a line; a .json file one item, a list of items, or an object of test id -> item or list of items.
    Raises `AgentevalError` with the line of the first item that is none.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise AgentevalError(
            f"the recordings can't be read: {error.strerror}", where=str(path), mend="check the option `file`"
        ) from error
    except UnicodeDecodeError as error:
        raise AgentevalError("the recordings are not UTF-8", where=str(path), mend="save the file as UTF-8") from error
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        return Library(_from_lines(text, path))
    return Library(from_value(_decoded(text, str(path)), str(path)))


def from_value(data: Any, where: str) -> Iterator[Recording]:
    """The recordings in a decoded .json file or a mapping out of the configuration (see `read_file`)."""
    if isinstance(data, Mapping) and not any(key in data for key in _TRANSCRIPT_KEYS):
        for test, value in data.items():
            for item in _listed(value):
                yield _recording(item, f"{where}: {test}", test=str(test))
    else:
        for number, item in enumerate(_listed(data), 1):
            yield _recording(item, f"{where}: item {number}")


def _from_lines(text: str, path: Path) -> Iterator[Recording]:
    # Only newlines end a line: a JSON string may hold other characters that `splitlines` takes for ends of line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{path}:{number}"
            yield _recording(_decoded(line, place), place)


def _decoded(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AgentevalError(f"this is not JSON: {error}", where=where, mend="mend or remove it") from error


def _listed(value: Any) -> list[Any]:
    """A list of items; one item alone (an object, or a list of messages) is a list of one."""
    if not isinstance(value, list):
        return [value]
    is_messages = bool(value) and all(isinstance(one, Mapping) and "role" in one for one in value)
    return [value] if is_messages else value


def _recording(item: Any, where: str, test: str = "") -> Recording:
    value = item
    if isinstance(item, Mapping):
        if not test:
            given = next((item[key] for key in _TEST_KEYS if isinstance(item.get(key), str | int)), "")
            test = str(given)
        if "transcript" in item:
            value = item["transcript"]
        elif isinstance(item.get("traj"), list):
            value = item["traj"]
    try:
        return Recording(test, from_json(value))
    except AgentevalError as error:
        raise AgentevalError(error.what, where=where, mend=error.mend) from error


def _spoken(messages: Sequence[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content.strip()) for message in messages if message.role != "system"]
