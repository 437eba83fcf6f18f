"""Plays agents of Python frameworks through the child process of the kind `python`, each by one request.

Those that bring too many packages for an environment of ours have one each, in the folder that AGENTEVAL_FRAMEWORKS
names (tests/agents/frameworks/install.py makes them). The interpreter there needs nothing of agenteval.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from framework_models import as_openai
from scripted import Handler, ScriptedServer

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


CONTINUED = AgentRequest(
    (
        Message("system", "be kind"),
        Message("user", "hello"),
        Message("assistant", "let me see", tool_calls=(0, 1)),
        Message("tool", "HATS", tool_call=0),
        Message("tool", "none", tool_call=1),
    ),
    tool_calls=(
        ToolCall("a", "find", {"q": "socks"}, "HATS", message=2),
        ToolCall("b", "bad", {"x": 1}, "none", message=2),
    ),
)
"""A run that is continued from the results of its tools."""


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
    folder: Path = FOLDER,
) -> tuple[dict[str, Played], Any]:
    environment = {**os.environ, **env}
    async with (
        _by_way() as more,
        await start_host(folder, environment, permission=ALLOWED, interpreter=interpreter) as host,
    ):
        played = {target: await play(host, f"{module}:{target}", REQUEST, **more) for target in targets}
        for target in later:
            if target in played:
                played[f"{target}, later"] = await play(host, f"{module}:{target}", LATER, **more)
                played[f"{target}, continued"] = await play(host, f"{module}:{target}", CONTINUED, **more)
        truth = None
        with suppress(RaisedError):
            truth = await host.call("tool", f"{module}:truth", arguments={})
    return played, truth


def interpreter_of(name: str, module: str = "") -> str:
    """That of its own environment, or ours where that has the module. Skips the test where the framework is not
    installed."""
    place = Path(os.environ.get("AGENTEVAL_FRAMEWORKS", "")) / name / "bin" / "python"
    if "AGENTEVAL_FRAMEWORKS" in os.environ and place.is_file():
        return str(place.absolute())
    try:
        found = importlib.util.find_spec(module) if module else None
    except ModuleNotFoundError:  # of the package that it is in
        found = None
    if found is None:
        pytest.skip(f"{name} is not installed, and AGENTEVAL_FRAMEWORKS names no folder that has it")
    return sys.executable


def file_of(name: str, folder: Path) -> str:
    """The module with the cases of a framework."""
    file = "of_" + name.replace("-", "_")
    assert (folder / f"{file}.py").is_file()
    return file


def played_by(
    name: str, module: str, targets: Iterable[str], later: Iterable[str] = ("agent",), *, folder: Path = FOLDER
) -> Any:
    """The cases of a framework in one process, with what the framework itself says of them."""
    return asyncio.run(play_all(file_of(name, folder), targets, {}, interpreter_of(name, module), later, folder))


def played_with_model(
    name: str,
    module: str,
    targets: Iterable[str],
    later: Iterable[str] = (),
    answer: Handler = as_openai,
    *,
    folder: Path = FOLDER,
    **env: str,
) -> Any:
    """The same with a model on loopback."""

    async def play() -> Any:
        async with ScriptedServer(answer) as server:
            base = server.url.removesuffix("/v1")
            addresses = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "x", "ANTHROPIC_BASE_URL": base, **env}
            return await play_all(
                file_of(name, folder), targets, addresses, interpreter_of(name, module), later, folder
            )

    return asyncio.run(play())


def unseen_of(played: Any, *names: str) -> list[list[str]]:
    """Of these cases, the notes; each is a run's last piece alone, that says nothing of the calls before it."""
    assert [played[name].raised for name in names] == [""] * len(names)
    return [[note.code for note in played[name].transcript.notes] for name in names]


def named_apart(folder: Path, name: str, target: str, tests: Path, **more: Any) -> dict[str, Any]:
    """The configuration of an agent in the cases of a framework, which are copied to a folder; it has an environment of
    its own."""
    place = Path(os.environ.get("AGENTEVAL_FRAMEWORKS", "")) / name / "bin" / "python"
    if "AGENTEVAL_FRAMEWORKS" not in os.environ or not place.is_file():
        pytest.skip(f"AGENTEVAL_FRAMEWORKS names no folder that has {name}")
    file = file_of(name, tests)
    shutil.copy(tests / f"{file}.py", folder)
    return {"kind": "python", "callable": f"{file}:{target}", "python": str(place), **more}


def calls_of(transcript: Transcript) -> list[tuple[str, str, Any, str]]:
    return [(call.id, call.name, call.arguments, call.status) for call in transcript.tool_calls]


def authors_of(transcript: Transcript) -> list[str | None]:
    return [message.name for message in transcript.messages if message.role == "assistant"]


FIND = ("a", "find", {"q": "socks"}, "ok")
BAD = ("b", "bad", {"x": 1}, "error")


def assert_shop(played: Any, finish: str, authors: list[str | None]) -> None:
    """Two turns: a text and two calls, of which the second fails; then the answer."""
    assert played.raised == ""
    transcript = played.transcript
    assert transcript.notes == ()
    roles = [message.role for message in transcript.messages]
    assert roles[-5:] == ["user", "assistant", "tool", "tool", "assistant"]
    assert (transcript.messages[-4].content, transcript.final_output) == ("let me see", "3 pairs")
    assert calls_of(transcript)[-2:] == [FIND, BAD]
    assert transcript.tool_calls[-2].result == '["socks"]'
    assert "no such x" in (transcript.tool_calls[-1].result or "")
    assert (transcript.usage.input_tokens, transcript.usage.output_tokens) == (30, 7)
    assert (transcript.model, transcript.finish_reason) == ("m", finish)
    assert authors_of(transcript)[-2:] == authors


def assert_continued(played: Played) -> None:
    """It answered with the results that it was given, and called no tool again."""
    assert played.raised == ""
    transcript = played.transcript
    assert [(call.id, call.result) for call in transcript.tool_calls] == [("a", "HATS"), ("b", "none")]
    roles = [message.role for message in transcript.messages]
    assert roles == ["system", "user", "assistant", "tool", "tool", "assistant"]
    assert transcript.final_output not in ("", "let me see")


def assert_not_continued(played: Played) -> None:
    """What is asked with a prompt says that it would begin again, instead of that."""
    assert "asked with a prompt" in played.raised
    assert played.wrong
    assert len(played.transcript.messages) == len(CONTINUED.messages)


def assert_handed_over(played: Played, authors: list[str | None], first: str) -> None:
    """Each step says which agent wrote it; `first`: the call that hands over."""
    assert played.raised == ""
    transcript = played.transcript
    assert (authors_of(transcript), transcript.final_output) == (authors, "3 pairs")
    assert [(call.name, call.status) for call in transcript.tool_calls] == [
        (first, "ok"),
        ("find", "ok"),
        ("bad", "error"),
    ]
    assert (transcript.usage.input_tokens, transcript.notes) == (40, ())
