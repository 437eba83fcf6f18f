"""Calling a function of the user's in a process of its own, within a time limit."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agenteval_tui.grading.questions import RemoteRequest, Reply
from agenteval_tui.text.identity import now_ms

_CHILD = Path(__file__).with_name("python_child.py")
_MOST = 4_000_000  # bytes of an answer
_SAID = 400  # characters of standard error that an error repeats


async def call_function(request: RemoteRequest, transcript: Mapping[str, Any], folder: Path) -> Reply:
    """What the function of a `call` request returns, as JSON text; never raises for what the function does.

    It runs in `folder`, from where its module is found, in a process group of its own that is killed whole when the
    time is over or this task is cancelled.
    """
    payload = request.payload
    module, _, name = request.target.partition(":")
    asked = {
        "module": module,
        "name": name,
        "value": payload["value"],
        "arguments": payload["properties"],
        "offered": {
            "transcript": transcript,
            "expected": payload["expected"],
            "variables": payload["variables"],
        },
    }
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(_CHILD)),
            cwd=folder,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return _failed(f"{request.target} can't be started: {error.strerror or error}")
    try:
        async with asyncio.timeout(float(payload["timeout"])):
            out, err, _ = await asyncio.gather(
                _read(process.stdout), _read(process.stderr), _write(process.stdin, json.dumps(asked).encode("ascii"))
            )
            await process.wait()
    except TimeoutError:
        return _failed(f"{request.target} did not return within {payload['timeout']:g} s")
    finally:
        _kill(process)
        with suppress(ProcessLookupError):
            await asyncio.shield(process.wait())
    return _reply(request.target, out, err)


async def _read(stream: asyncio.StreamReader | None) -> bytes:
    assert stream is not None
    kept = bytearray()
    while data := await stream.read(65536):
        if len(kept) <= _MOST:
            kept += data  # the rest is read and forgotten, so that the function is not held up
    return bytes(kept)


async def _write(stream: asyncio.StreamWriter | None, data: bytes) -> None:
    assert stream is not None
    with suppress(ConnectionError):
        stream.write(data)
        await stream.drain()
    stream.close()


def _kill(process: asyncio.subprocess.Process) -> None:
    """The whole group: the function may have started others."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _reply(target: str, out: bytes, err: bytes) -> Reply:
    try:
        answer = json.loads(out.decode("utf-8"))
        returned, raised = answer.get("returned"), answer.get("raised")
    except (ValueError, AttributeError, RecursionError):
        said = " ".join(err.decode("utf-8", "replace").split())[-_SAID:]
        return _failed(f"{target} ended without an answer" + (f": {said}" if said else ""))
    if raised is not None:
        return _failed(f"{target} raised {raised}")
    return Reply(json.dumps(returned), at_ms=now_ms())


def _failed(said: str) -> Reply:
    return Reply(error=said, at_ms=now_ms())
