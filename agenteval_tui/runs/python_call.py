"""Calling a function of the user's in a process of its own, within a time limit."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.programs.python_host import HostError, RaisedError, start_host
from agenteval_tui.agents.programs.words import last_words
from agenteval_tui.grading.questions import RemoteRequest, Reply
from agenteval_tui.text.identity import now_ms
from agenteval_tui.text.problems import AgentevalError

_MOST = 4_000_000  # bytes of an answer


async def call_function(
    request: RemoteRequest, transcript: Mapping[str, Any], folder: Path, permission: Permission
) -> Reply:
    """What the function of a `call` request returns, as JSON text; never raises for what the function does.

    It runs in `folder`, from where its module is found, in a process group of its own that is killed whole when the
    time is over or this task is cancelled.
    """
    payload = request.payload
    asked = {
        "value": payload["value"],
        "arguments": payload["properties"],
        "offered": {
            "transcript": transcript,
            "expected": payload["expected"],
            "variables": payload["variables"],
        },
    }
    env = dict(os.environ)
    try:
        permission.require_code(folder, f"python function {request.target}")
        host = await start_host(folder, env, permission=permission)
    except AgentevalError as error:
        mend = f" ({error.mend})" if error.mend else ""
        return _failed(f"{request.target} can't be started: {error.what}{mend}")
    async with host:
        try:
            async with asyncio.timeout(float(payload["timeout"])):
                returned = await host.call("metric", request.target, limit=_MOST, **asked)
        except TimeoutError:
            await host.end()
            return _failed(f"{request.target} did not return within {payload['timeout']:g} s")
        except RaisedError as error:
            return _failed(f"{request.target} raised {error}")
        except HostError as error:
            said = last_words(host.program.stderr, env)
            return _failed(f"{request.target} {error}" + (f": {said}" if said else ""))
    return Reply(json.dumps(returned), at_ms=now_ms())


def _failed(said: str) -> Reply:
    return Reply(error=said, at_ms=now_ms())
