"""The official clients of OpenAI, Anthropic and Google through the proxy, against somebody else's server (aimock)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aimock import Aimock, NotAvailable

from agenteval_tui.agents.recording.cassette import Cassette, lines, parse
from agenteval_tui.agents.recording.conversation import transcript_of
from agenteval_tui.agents.recording.playback import Playback
from agenteval_tui.agents.recording.providers import environment
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.transcripts.codec import to_openai_messages

pytestmark = pytest.mark.xdist_group("openai")

CITY = {"city": "Oslo"}
FIXTURES: list[dict[str, Any]] = [
    {
        "match": {"userMessage": "weather", "hasToolResult": False},
        "response": {
            "content": "Let me look.",
            "toolCalls": [{"name": "get_weather", "arguments": CITY}, {"name": "get_time", "arguments": CITY}],
        },
    },
    {"match": {"userMessage": "weather", "hasToolResult": True}, "response": {"content": "4 C in Oslo at 12:00."}},
]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOLS = {"get_weather": "4 C", "get_time": "12:00"}
KEY = "sk-planted-0123456789abcdef"
Agent = Callable[[dict[str, str], bool], Awaitable[None]]


async def _chat(base: dict[str, str], stream: bool) -> None:
    openai = pytest.importorskip("openai")
    tools = [{"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in TOOLS]
    said: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "weather?"}]
    async with openai.AsyncOpenAI(base_url=base["OPENAI_BASE_URL"], api_key=KEY, max_retries=0) as client:
        for _ in range(2):
            asked = {"model": "gpt-4o", "messages": said, "tools": tools}
            if stream:
                async with client.chat.completions.stream(**asked) as events:
                    message = (await events.get_final_completion()).choices[0].message
            else:
                message = (await client.chat.completions.create(**asked)).choices[0].message
            said.append(json.loads(message.model_dump_json(exclude_none=True, exclude={"parsed"})))
            for call in message.tool_calls or ():
                said.append({"role": "tool", "tool_call_id": call.id, "content": TOOLS[call.function.name]})
            for call in said[2].get("tool_calls") or ():
                call["function"].pop("parsed_arguments", None)


async def _responses(base: dict[str, str], stream: bool) -> None:
    openai = pytest.importorskip("openai")
    tools = [{"type": "function", "name": name, "parameters": SCHEMA, "strict": False} for name in TOOLS]
    items: list[Any] = [{"role": "user", "content": "weather?"}]
    async with openai.AsyncOpenAI(base_url=base["OPENAI_BASE_URL"], api_key=KEY, max_retries=0) as client:
        for _ in range(2):
            asked = {"model": "gpt-4o", "input": items, "tools": tools, "instructions": "Be brief."}
            if stream:
                async with client.responses.stream(**asked) as events:
                    reply = await events.get_final_response()
            else:
                reply = await client.responses.create(**asked)
            items += [one.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for one in reply.output]
            for one in reply.output:
                if one.type == "function_call":
                    items.append({"type": "function_call_output", "call_id": one.call_id, "output": TOOLS[one.name]})


async def _anthropic(base: dict[str, str], stream: bool) -> None:
    anthropic = pytest.importorskip("anthropic")
    tools = [{"name": name, "input_schema": SCHEMA} for name in TOOLS]
    said: list[Any] = [{"role": "user", "content": "weather?"}]
    async with anthropic.AsyncAnthropic(base_url=base["ANTHROPIC_BASE_URL"], api_key=KEY, max_retries=0) as client:
        for _ in range(2):
            asked = {"model": "claude", "max_tokens": 99, "system": "Be brief.", "messages": said, "tools": tools}
            if stream:
                async with client.messages.stream(**asked) as events:
                    message = await events.get_final_message()
            else:
                message = await client.messages.create(**asked)
            said.append(
                {"role": "assistant", "content": [one.model_dump(exclude_none=True) for one in message.content]}
            )
            results = [
                {"type": "tool_result", "tool_use_id": one.id, "content": TOOLS[one.name]}
                for one in message.content
                if one.type == "tool_use"
            ]
            if results:
                said.append({"role": "user", "content": results})


async def _gemini(base: dict[str, str], stream: bool) -> None:
    genai = pytest.importorskip("google.genai")
    types = genai.types
    options = types.HttpOptions(base_url=base["GOOGLE_GEMINI_BASE_URL"], api_version="v1beta")
    client = genai.Client(api_key=KEY, http_options=options)
    declared = [types.FunctionDeclaration(name=name, parameters_json_schema=SCHEMA) for name in TOOLS]
    config = types.GenerateContentConfig(
        system_instruction="Be brief.",
        tools=[types.Tool(function_declarations=declared)],
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    said = [types.Content(role="user", parts=[types.Part(text="weather?")])]
    for _ in range(2):
        asked = {"model": "gemini-2.5-flash", "contents": said, "config": config}
        if stream:
            parts: list[Any] = []
            async for chunk in await client.aio.models.generate_content_stream(**asked):
                parts += chunk.candidates[0].content.parts or []
        else:
            parts = (await client.aio.models.generate_content(**asked)).candidates[0].content.parts
        said.append(types.Content(role="model", parts=parts))
        results = [
            types.Part.from_function_response(
                name=one.function_call.name, response={"result": TOOLS[one.function_call.name]}
            )
            for one in parts
            if one.function_call
        ]
        if results:
            said.append(types.Content(role="user", parts=results))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aimock]:
    try:
        with Aimock(FIXTURES, tmp_path_factory.mktemp("aimock"), "-c", "8") as running:
            yield running
    except NotAvailable as why:
        pytest.skip(f"aimock can't be had: {why}")


@pytest.mark.sweep("agent")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("agent", [_chat, _responses, _anthropic, _gemini])
async def test_what_the_client_says_and_hears_is_the_transcript_and_comes_from_the_recording_alike(
    server: Aimock, agent: Agent, stream: bool
) -> None:
    root = server.url.removesuffix("/v1")
    servers = {"openai": server.url, "anthropic": root, "gemini": root}
    proxy = Proxy(servers)
    await proxy.start()
    try:
        session = Session()
        await agent(environment(proxy.open(session), servers, {}), stream)
        text = "".join(lines(Cassette(session.exchanges())))
        replayed = Session(answers=Playback(parse(text, "recorded")))
        await agent(environment(proxy.open(replayed), servers, {}), stream)
    finally:
        await proxy.close()
    transcript = transcript_of(session.exchanges())
    told = [(one["role"], one["content"]) for one in to_openai_messages(transcript)]
    assert told == [
        ("system", "Be brief."), ("user", "weather?"), ("assistant", "Let me look."), ("tool", "4 C"),
        ("tool", "12:00"), ("assistant", "4 C in Oslo at 12:00."),
    ]  # fmt: skip
    assert [(one.name, one.arguments, one.result) for one in transcript.tool_calls] == [
        ("get_weather", CITY, "4 C"), ("get_time", CITY, "12:00")
    ]  # fmt: skip
    assert len({one.id for one in transcript.tool_calls}) == 2
    assert (transcript.final_output, transcript.finish_reason) == ("4 C in Oslo at 12:00.", "stop")
    assert "planted" not in text
    streamed = [one.answer.streamed for one in session.exchanges()]
    assert streamed == [stream, stream]
    assert replayed.live_requests == 0
    assert replayed.misses == []
    assert transcript_of(replayed.exchanges()).messages == transcript.messages
