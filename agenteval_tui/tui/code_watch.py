"""The process that watches an agent's code for the app: its events, and what it is told to do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import Decoder

from agenteval_tui.core.directories import own_command, own_environment
from agenteval_tui.core.errors import AgentevalError, InfrastructureError
from agenteval_tui.core.numbers import count
from agenteval_tui.history.records import RunRow
from agenteval_tui.runs.change.model import WatchEvent

_LONGEST = 64_000_000  # bytes of an event
_END_S = 5.0  # so long may the process take to end by itself before it is killed


_event_of = Decoder(WatchEvent).decode  # a save with 2,000 runs is 1 MB: 8 ms by way of dicts, in the loop of the keys


class WatchRequest(Struct, frozen=True):
    """What to watch: suites' files, and their tests as `FILE::ID` (() for all). `trusted`: it may run this once.
    `recorded_tools`: tools get their recorded results, too."""

    paths: tuple[Path, ...]
    tests: tuple[str, ...]
    title: str
    trusted: bool = False
    recorded_tools: bool = False


def watched_tests(rows: Iterable[RunRow]) -> WatchRequest | None:
    """The tests of these runs, to be watched; None: their suites are not files of this machine."""
    tests = {
        (row.suite_key, row.test_id): f"{row.suite_key}::{row.test_id}" for row in rows if Path(row.suite_key).is_file()
    }
    if not tests:
        return None
    names = list(dict.fromkeys(test for _, test in tests))
    title = names[0] if len(names) == 1 else count(len(names), "test")
    return WatchRequest(tuple(dict.fromkeys(Path(key) for key, _ in tests)), tuple(tests.values()), title)


class CodeWatch:
    """One watch. Its process ends with the app, or with `close`."""

    def __init__(self, request: WatchRequest, db: Path) -> None:
        self._request = request
        self._db = db
        self._process: asyncio.subprocess.Process | None = None

    async def events(self) -> AsyncIterator[WatchEvent]:
        """Its events as they come, until it ends. Raises `AgentevalError` where it could not begin."""
        request = self._request
        words = ["--db", str(self._db), "run", "--watch", "--steer", "--json", "-", *(["--trust"] * request.trusted)]
        words += ["--recorded-tools"] * request.recorded_tools
        words += [word for test in request.tests for word in ("--test", test)]
        process = await asyncio.create_subprocess_exec(
            *own_command("agenteval_tui", *words, "--", *map(str, request.paths)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**own_environment(), "NO_COLOR": "1"},
            limit=_LONGEST,
            start_new_session=True,
        )
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        # Read beside the events: a pipe that nobody reads fills, and the process would stop.
        stderr_text = asyncio.create_task(process.stderr.read())
        async for line in process.stdout:
            with contextlib.suppress(DecodeError, ValidationError, ValueError):
                yield _event_of(line)
        error = (await stderr_text).decode("utf-8", "replace").strip()
        if await process.wait() and error:
            raise _told(error)

    def tell(self, command: str) -> None:
        """Tell it to do something: `model`, `real`, `check` or `stop`."""
        process = self._process
        if process is not None and process.stdin is not None and process.returncode is None:
            process.stdin.write(f"{command}\n".encode())

    async def close(self) -> None:
        """End it, with the runs that are being made."""
        process, self._process = self._process, None
        if process is None or process.returncode is not None:
            return
        if process.stdin is not None:
            # The end of its input tells it to end its runs; only if that takes too long is it killed.
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), _END_S)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def _told(stderr: str) -> AgentevalError:
    """What the process said last, as an error of ours."""
    return InfrastructureError(stderr.splitlines()[-1].removeprefix("agenteval: "))
