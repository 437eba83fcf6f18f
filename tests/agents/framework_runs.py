"""Plays agents of Python frameworks through the child process of the kind `python`, each by one request."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentRequest, Done
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.protocol import EventReader, request_document
from agenteval_tui.agents.process.python_host import PythonHost, RaisedError, start_host
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

ALLOWED = permission_for((), everything=True)


FOLDER = Path(__file__).parent / "frameworks"


@dataclass
class Played:
    """What one case gave: its transcript, and what was raised; whether something that was told was taken back. `told`:
    the transcript without what hooks saw of requests to models."""

    transcript: Transcript
    told: Transcript
    raised: str = ""
    wrong: bool = False


async def play(host: PythonHost, target: str, request: AgentRequest, **more: str) -> Played:
    recorder, reader = Recorder(request.messages, tool_calls=request.tool_calls), EventReader()
    try:
        async for answer in host.events("agent", target, request=request_document(request, {}), **more):
            for event in reader.read(answer["event"]) if "event" in answer else ():
                recorder.apply(event)
    except RaisedError as error:
        return Played(recorder.stored(), recorder.transcript(), str(error), error.wrong)
    if not reader.ended:
        recorder.apply(Done())
    return Played(recorder.stored(), recorder.transcript())


REQUEST = AgentRequest((Message("user", "hello"),))
LATER = AgentRequest(
    (
        Message("system", "be kind"),
        Message("user", "hello"),
        Message("assistant", "let me see", tool_calls=(0,)),
        Message("tool", "F", tool_call=0),
        Message("assistant", "yes?"),
        Message("user", "and now?"),
    ),
    tool_calls=(ToolCall("z", "find", {"q": "hats"}, "F", message=2),),
    turn=2,
)


@asynccontextmanager
async def _by_way() -> AsyncIterator[dict[str, str]]:
    """With AGENTEVAL_BY_PROXY all models are asked by way of a proxy, as with `capture: auto`: nothing may be
    otherwise. It names a file that gets a line for each recorded request."""
    log = os.environ.get("AGENTEVAL_BY_PROXY")
    if not log:
        yield {}
        return
    session = Session()
    proxy = Proxy({}, asides=True)
    await proxy.start()
    try:
        yield {"proxy": proxy.open(session)}
    finally:
        with Path(log).open("a", encoding="utf-8") as file:
            file.writelines(f"{each.question.title} {each.answer.status}\n" for each in session.exchanges())
        await proxy.close()


async def play_all(
    module: str,
    targets: Iterable[str],
    env: dict[str, str],
    interpreter: str | None = None,
    later: Iterable[str] = ("agent", "graph"),
) -> tuple[dict[str, Played], Any]:
    environment = {**os.environ, **env}
    async with (
        _by_way() as more,
        await start_host(FOLDER, environment, permission=ALLOWED, interpreter=interpreter) as host,
    ):
        played = {target: await play(host, f"{module}:{target}", REQUEST, **more) for target in targets}
        for target in later:
            if target in played:
                played[f"{target}, later"] = await play(host, f"{module}:{target}", LATER, **more)
        truth = None
        with suppress(RaisedError):
            truth = await host.call("tool", f"{module}:truth", arguments={})
    return played, truth
