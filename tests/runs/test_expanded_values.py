"""What `${VAR}` brought in comes back nowhere, whatever the variable is called and wherever the text was cut."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from scripted import Answer, Request
from threaded import serving

from agenteval_tui.agents.base import Done, Failed, TextDelta, TurnEnded
from agenteval_tui.agents.permission import NotTrustedError
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.runs.agent_factory import Configured, check_configured
from agenteval_tui.runs.chat_session import Conversation
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor

VALUE = 'plain/Words-4711"of&nobody'
ENV = {"QKEY": VALUE, "HARMLESS": "another-value-12345"}


@pytest.mark.parametrize(
    "config",
    [
        {"system": "a ${QKEY} b"},
        {"system": "${QKEY:-x}"},
        {"headers": {"x-a": "${QKEY}"}},
        {"query": {"q": "${QKEY}"}},
        {"extra_body": {"deep": [{"er": "${QKEY}"}]}},
        {"url": "http://127.0.0.1/${QKEY}/x"},
        {"base_url": "http://${QKEY}.test/"},
        {"body": {"prompt": "{{ prompt }} ${QKEY}"}},
        {"tools": [{"name": "t", "description": "${QKEY}"}]},
        {"tools": [{"mcp": {"url": "http://127.0.0.1/", "headers": {"x": "${QKEY}"}}}]},
        {"env": {"PLAIN": "${QKEY}"}, "kind": "command", "command": "x"},
        {"command": ["x", "--a=${QKEY}"], "kind": "command"},
        {"settings": {"a": "${QKEY}"}, "kind": "python", "callable": "a:b"},
    ],
)
def test_every_value_is_secret_wherever_it_was_put(config: dict[str, Any]) -> None:
    assert VALUE in secrets_of({"kind": "openai", **config}, ENV)


def test_what_is_no_secret(tmp_path: Path) -> None:
    env = {"MODEL": "gpt-4o-mini-2024", "BASE": "http://127.0.0.1:8000/v1", "SAME": "europe-west1-a", "N": "abc"}
    config = {
        "kind": "openai",
        "model": "${MODEL}",
        "base_url": "${BASE}",
        "system": "${SAME} ${NOT_SET:-the default text} ${N}",
        "query": {"region": "europe-west1-a"},
    }
    assert secrets_of(config, env) == ()
    hook = {"url": "${HOOK}"}
    address = "https://user:pass-word-1@hooks.test/services/T00000000/B000AAAABBBB1111CCCC?token=tok-12345678"
    found = secrets_of({"kind": "http", **hook}, {"HOOK": address})
    assert {"pass-word-1", "B000AAAABBBB1111CCCC", "tok-12345678"} <= set(found)


FORMS = [
    VALUE,
    json.dumps(VALUE),
    json.dumps(json.dumps({"a": VALUE})),
    quote(VALUE, safe=""),
    b64encode(f"user:{VALUE}".encode()).decode(),
]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_found_in_every_text_of_a_transcript(form: str) -> None:
    redactor = TranscriptRedactor([VALUE])
    transcript = Transcript(
        messages=(Message("system", form), Message("assistant", f"a {form} b", reasoning=form)),
        tool_calls=(ToolCall("c", "t", {form: [form]}, form),),
        model=form,
        error=RunError("server", f"said {form}", form),
        log=form,
    )
    said = repr(redactor.transcript(transcript))
    assert "4711" not in said
    assert "cGxhaW4vV29yZHM" not in said  # of the base64 text


@pytest.mark.parametrize("size", range(6, len(VALUE)))
def test_a_beginning_at_the_end_of_a_text_is_taken_out(size: int) -> None:
    redactor = TranscriptRedactor([VALUE])
    part = VALUE[:size]
    transcript = Transcript(
        messages=(Message("assistant", f"it is {part}"),),
        tool_calls=(ToolCall("c", "t", f'{{"a": "{part}', f"x {part}"),),
        error=RunError("protocol", f"the answer ended: {part}…"),
    )
    shown = repr(redactor.transcript(transcript))
    assert part not in shown
    assert shown.count("***") == 4
    events = EventRedactor(redactor)
    told = [*events.clean(TextDelta("it is ")), *events.clean(TextDelta(part))]
    for end in (TurnEnded(), Done(), Failed(RunError("connection", "gone"))):
        events = EventRedactor(redactor)
        told = [*events.clean(TextDelta(f"it is {part}")), *events.clean(end)]
        assert "".join(one.text for one in told if isinstance(one, TextDelta)) == "it is ***"


@pytest.mark.parametrize("text", ["plain", "it is plai", "in plain", "", "Words"])
def test_ordinary_ends_stay(text: str) -> None:
    assert TranscriptRedactor([VALUE]).cut(text) is text


@pytest.fixture
def echo() -> Iterator[str]:
    """A server that says what it was told, and breaks off in the middle of it."""

    def answer(request: Request) -> Answer:
        told = json.loads(request.body)["messages"] if request.body else []
        text = " ".join(str(one["content"]) for one in told)
        if "cut" in text:
            half = json.dumps({"choices": [{"delta": {"content": VALUE[:14]}}]})
            return Answer(body=f"data: {half}\n\n", content_type="text/event-stream", cut=True)
        if "refuse" in text or not told:
            return Answer(status=400, body=json.dumps({"error": {"message": f"no: {VALUE}"}}))
        return Answer(body=json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}))

    with serving(answer) as server:
        yield server.url


@pytest.mark.parametrize("prompt", ["say it", "cut", "refuse"])
async def test_it_comes_back_neither_in_a_chat_nor_in_a_check(
    echo: str, tmp_path: Path, prompt: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QKEY", VALUE)
    config = {"kind": "openai", "base_url": echo, "model": "m", "stream": prompt == "cut", "system": "${QKEY}"}
    one = Configured("a", config, tmp_path / "s.suite.yaml", 1, "S")
    from agenteval_tui.runs.trust_check import check_agents

    with pytest.raises(NotTrustedError, match=r"sends QKEY to 127\.0\.0\.1:\d+"):
        check_agents([one])  # a port of this machine is anybody's
    permission = check_agents([one], trusted=True)
    chat = Conversation(one, permission)
    said = await chat.say(prompt, lambda: None)
    await chat.close()
    assert VALUE[:8] not in repr(chat.transcript) + repr(said)
    if prompt != "cut":
        assert "***" in repr(chat.transcript)
    assert VALUE[:8] not in repr(await check_configured(one, permission, thorough=True))
