"""What a probe is, and how its value is read: a reading always comes, with the value or with the reason for none."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.http.connection_pool import Connections
from agenteval_tui.agents.permission import NotTrustedError, Permission
from agenteval_tui.agents.probes.files import read_file, read_files
from agenteval_tui.agents.probes.limits import MOST_BYTES, UnreadError, decoded, too_large
from agenteval_tui.agents.probes.sqlite import query
from agenteval_tui.agents.process.child_process import start
from agenteval_tui.agents.process.environment_messages import remedy
from agenteval_tui.agents.process.errors import (
    exit_description,
    stderr_tail,
    traceback_without_secrets,
    with_last_words,
)
from agenteval_tui.agents.process.printed_output import PrintedEnd, returned_by
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.python_host import HostError, PythonHost, RaisedError
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.python_tree import Lease, Root
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import cut
from agenteval_tui.grading.spec import json_like
from agenteval_tui.suites.callable_name import named_callable
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.environment import expand
from agenteval_tui.suites.model import PROBE_KINDS
from agenteval_tui.suites.templates import render
from agenteval_tui.transcripts.state import Reading, ReadingProblem, unread

_IMPORT_S = 120.0
"""For the imports of a Python function, which don't count in its time."""
_LONGEST_WORDS = 400
"""Characters of foreign words that are kept of a problem."""


class ProbeSurroundings(Struct, frozen=True):
    """What the probes of a run are read with. `folder` is the suite's, from which Python code comes; relative paths
    begin in `workdir`, where commands run, too. `env` is the environment of programs, and what `${VAR}` means."""

    folder: Path
    workdir: Path
    env: Mapping[str, str]
    variables: Mapping[str, Any]
    permission: Permission
    lease: Lease
    connections: Connections


class Probe(Struct, frozen=True):
    """A probe of a test, as it was written (`suites.model.Probe`): `kind` is one of `PROBE_KINDS`, `target` what it
    reads."""

    name: str
    kind: str
    target: str | list[str]
    database: str = ""
    timeout_s: float = 10.0

    @classmethod
    def of(cls, name: str, written: Mapping[str, Any]) -> Probe:
        """The probe of that name. Raises `KeyError` where it reads nothing."""
        kind = next((candidate for candidate in PROBE_KINDS if written.get(candidate) is not None), None)
        if kind is None:
            raise KeyError(name)
        return cls(name, kind, written[kind], written.get("database", ""), float(written.get("timeout", 10.0)))

    @property
    def description(self) -> str:
        """What it would run, read or get, in words."""
        target = self.target if isinstance(self.target, str) else " ".join(self.target)
        return f"state probe {self.name}: {self.kind} {target}"

    @property
    def runs_code(self) -> bool:
        """Whether it starts code of the suite's folder."""
        return self.kind in ("command", "python")

    @property
    def places(self) -> tuple[str, ...]:
        """The paths that it reads, as they were written."""
        if self.kind in ("file", "files"):
            return (str(self.target),)
        return (self.database,) if self.kind == "sql" else ()

    async def read(self, around: ProbeSurroundings) -> Reading:
        """Its value now, or why there is none. Never raises but `CancelledError`."""
        try:
            if self.kind == "python":
                return await self._python(around)
            async with asyncio.timeout(self.timeout_s):
                return _reading(await self._value(around))
        except TimeoutError:
            return unread(ReadingProblem.SLOW, seconds=self.timeout_s)
        except UnreadError as problem:
            return problem.reading
        except NotTrustedError as error:
            return unread(ReadingProblem.NOT_PERMITTED, message=_message_of(error))
        except AgentevalError as error:
            return unread(ReadingProblem.UNUSABLE, message=_message_of(error))
        except (TypeError, ValueError, OSError, RuntimeError) as error:  # such as a value that JSON can't hold
            return unread(ReadingProblem.UNUSABLE, message=str(error)[:_LONGEST_WORDS])

    async def _value(self, around: ProbeSurroundings) -> object:
        until = time.monotonic() + self.timeout_s
        if self.kind == "command":
            return await self._command(around)
        target = render(str(self.target), around.variables) if self.kind != "sql" else str(self.target)
        if self.kind == "url":
            return await self._url(str(expand(target, around.env)), around)
        # In threads that end by themselves: no file is waited for, and a query looks at the clock.
        if self.kind == "file":
            return await asyncio.to_thread(read_file, target, around.workdir, trusted=around.permission.trusted)
        if self.kind == "files":
            return await asyncio.to_thread(
                read_files, target, around.workdir, trusted=around.permission.trusted, until=until
            )
        database = render(self.database, around.variables)
        return await asyncio.to_thread(
            query, target, database, around.workdir, around.variables, trusted=around.permission.trusted, until=until
        )

    async def _command(self, around: ProbeSurroundings) -> str:
        words = [render(word, around.variables) for word in argv_of(self.target)]
        around.permission.require_code(around.folder, self.description)
        try:
            program = await start(words, cwd=around.workdir, env=around.env, permission=around.permission)
        except NotTrustedError:
            raise
        except AgentevalError as error:
            raise UnreadError(ReadingProblem.NO_START, message=_message_of(error)) from None
        async with program:
            document = {"workdir": str(around.workdir), "variables": json_like(dict(around.variables))}
            program.write(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            program.close_stdin()
            written = bytearray()
            while data := await program.read():
                written += data
                if len(written) > MOST_BYTES:
                    raise too_large()
            await program.exited()
            if program.returncode != 0:
                words_said = stderr_tail(program.stderr, around.env) or without_secrets(
                    bytes(written).decode("utf-8", "replace").strip()[-_LONGEST_WORDS:], around.env
                )
                message = exit_description(program.returncode) + (f": {words_said}" if words_said else "")
                raise UnreadError(ReadingProblem.EXIT, status=program.returncode, message=message)
        text = decoded(bytes(written))
        return text.removesuffix("\n").removesuffix("\r")

    async def _python(self, around: ProbeSurroundings) -> Reading:
        target = str(self.target)
        try:
            named_callable(target, "python")
        except ValueError as error:
            raise UnreadError(ReadingProblem.UNUSABLE, message=str(error)) from None
        around.permission.require_code(around.folder, self.description)
        project = await asyncio.to_thread(project_environment, around.folder, targets=(target,))
        root = Root.of(project, around.env, (("find", target),))
        variables = json_like(around.variables)
        offered = {**variables, "variables": variables, "workdir": str(around.workdir)}
        host: PythonHost | None = None
        printed = PrintedEnd()
        try:
            async with asyncio.timeout(_IMPORT_S):
                host = await around.lease.tree(root, around.permission).host()
            async with host, asyncio.timeout(self.timeout_s):
                fields = {"offered": offered, "cwd": str(around.workdir), "env": {}, "last": True}
                events = host.events("hook", target, limit=2 * MOST_BYTES, **fields)
                returned = await returned_by(events, printed.add)
        except RaisedError as error:
            fix = remedy(error.clues, project)
            message = without_secrets(str(error), around.env) + (f" ({fix})" if fix else "")
            reading = unread(ReadingProblem.RAISED, message=cut(message, _LONGEST_WORDS))
            traceback = traceback_without_secrets(error.traceback, around.env)
            return replace(reading, traceback=traceback, output=without_secrets(printed.text, around.env))
        except HostError as error:
            if error.too_much:
                raise too_large() from None
            program = host.program if host is not None else error.program
            code = None if program is None else program.returncode
            ended = str(error) if code is None else f"{error}, its process {exit_description(code)}"
            words = printed.text + ("" if program is None else program.stderr)
            sentence = with_last_words(ended, words, around.env)
            raise UnreadError(ReadingProblem.NO_RESULT, message=cut(sentence, _LONGEST_WORDS)) from None
        return _reading(json.dumps(returned) if isinstance(returned, int | float) else returned)

    async def _url(self, url: str, around: ProbeSurroundings) -> str:
        if urlsplit(url).scheme not in ("http", "https"):
            raise UnreadError(ReadingProblem.UNUSABLE, message="the address of a probe begins with http:// or https://")
        client = around.connections.to(url).client
        written = bytearray()
        try:
            async with client.stream("GET", url, timeout=self.timeout_s) as response:
                if not response.is_success:
                    raise UnreadError(ReadingProblem.HTTP_STATUS, status=response.status_code)
                async for piece in response.aiter_bytes():
                    written += piece
                    if len(written) > MOST_BYTES:
                        raise too_large()
        except httpx.TimeoutException:
            raise TimeoutError from None
        except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
            message = str(error) or type(error).__name__
            raise UnreadError(
                ReadingProblem.NO_ANSWER, message=cut(without_secrets(message, around.env), _LONGEST_WORDS)
            ) from None
        return decoded(bytes(written))


async def read_all(probes: Sequence[Probe], around: ProbeSurroundings) -> tuple[Reading, ...]:
    """The readings of the probes, all at the same time. Never raises but `CancelledError`."""
    return tuple(await asyncio.gather(*(probe.read(around) for probe in probes)))


def _reading(value: object) -> Reading:
    size = len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    return too_large().reading if size > 2 * MOST_BYTES else Reading(value)


def _message_of(error: AgentevalError) -> str:
    return cut(error.problem + (f" ({error.fix})" if error.fix else ""), _LONGEST_WORDS)
