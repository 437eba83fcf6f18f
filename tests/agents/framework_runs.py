"""Plays agents of Python frameworks through the child process of the kind `python`, each by one request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentRequest, Done
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.protocol import EventReader, request_document
from agenteval_tui.agents.process.python_host import PythonHost, RaisedError, start_host
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript

ALLOWED = permission_for((), everything=True)


FOLDER = Path(__file__).parent / "frameworks"


@dataclass
class Played:
    """What one case gave: its transcript, and what was raised; whether something that was told was taken back."""

    transcript: Transcript
    raised: str = ""
    wrong: bool = False


async def play(host: PythonHost, target: str, request: AgentRequest) -> Played:
    recorder, reader = Recorder(request.messages, tool_calls=request.tool_calls), EventReader()
    try:
        async for answer in host.events("agent", target, request=request_document(request, {})):
            for event in reader.read(answer["event"]) if "event" in answer else ():
                recorder.apply(event)
    except RaisedError as error:
        return Played(recorder.stored(), str(error), error.wrong)
    if not reader.ended:
        recorder.apply(Done())
    return Played(recorder.stored())


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


async def play_all(
    module: str,
    targets: Iterable[str],
    env: dict[str, str],
    interpreter: str | None = None,
    later: Iterable[str] = ("agent", "graph"),
) -> tuple[dict[str, Played], Any]:
    environment = {**os.environ, **env}
    async with await start_host(FOLDER, environment, permission=ALLOWED, interpreter=interpreter) as host:
        played = {target: await play(host, f"{module}:{target}", REQUEST) for target in targets}
        for target in later:
            if target in played:
                played[f"{target}, later"] = await play(host, f"{module}:{target}", LATER)
        truth = None
        with suppress(RaisedError):
            truth = await host.call("tool", f"{module}:truth", arguments={})
    return played, truth
