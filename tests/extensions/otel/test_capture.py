"""`capture: otel`: runs of programs and servers that are made of the spans that these send."""

from __future__ import annotations

import asyncio
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentRequest, Captured, Done, Failed, UsageReported
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.otel import protobuf
from agenteval_tui.extensions.otel.importer import span_of
from agenteval_tui.extensions.otel.traced_agent import environment, whole_transcript
from agenteval_tui.transcripts.model import Message, Transcript

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "servers"))
from scripted import Answer, Request, ScriptedServer

ALLOWED = permission_for((), everything=True)
# Spans by hand, in the GenAI conventions; TRACEPARENT is left to who knows it, as most programs do.
SPANS = """
import json
def message(role, **part):
    return {"role": role, "parts": [part]}
def conversation(tracer, prompt):
    asked = [message("user", type="text", content=prompt)]
    called = [message("assistant", type="tool_call", id="c1", name="get_order", arguments={"order": prompt})]
    told = [message("tool", type="tool_call_response", id="c1", result="shipped")]
    said = [message("assistant", type="text", content=f"{prompt} is shipped.")]
    def chat(name, given, answer):
        about = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "m-1", "gen_ai.usage.input_tokens": 20}
        with tracer.start_as_current_span(name, attributes=about) as span:
            span.set_attribute("gen_ai.input.messages", json.dumps(given))
            span.set_attribute("gen_ai.output.messages", json.dumps(answer))
    with tracer.start_as_current_span("execute_tool find_desk") as span:
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find_desk"})
        span.set_attributes({"gen_ai.tool.call.arguments": '{"of": 1}', "gen_ai.tool.call.result": "desk 7"})
    chat("chat m", asked, called)
    with tracer.start_as_current_span("execute_tool get_order") as span:
        span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.id": "c1"})
    chat("chat m", asked + called + told, said)
    kindly = message("user", type="text", content=f"Be kind about {prompt}.")
    chat("chat m", [kindly], [message("assistant", type="text", content="Gladly!")])
"""
PROGRAM = (
    SPANS
    + """
import sys
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("desk")
prompt = sys.stdin.read()
if prompt != "quiet":
    root = tracer.start_span("invoke_agent desk", attributes={"gen_ai.operation.name": "invoke_agent"})
    with trace.use_span(root, end_on_exit=prompt != "open"):
        conversation(tracer, prompt)
else:
    import os, urllib.request
    from contextlib import suppress
    place, kind = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces", {"Content-Type": "application/json"}
    with suppress(OSError):
        urllib.request.urlopen(urllib.request.Request(place, data=b"nonsense", headers=kind))
sys.stdout.write(f"The desk says: {prompt} is shipped.")
"""
)


def command(folder: Path, **more: Any) -> dict[str, Any]:
    (folder / "agent.py").write_text(PROGRAM, "utf-8")
    words = [sys.executable, "agent.py"]
    return {"kind": "command", "command": words, "input": "text", "output": "text", "capture": "otel", **more}


async def run(agent: Any, *turns: str, run: str = "r") -> tuple[Transcript, list[Any]]:
    """A run of an agent, turn by turn; what is stored of it, and its events."""
    recorder, events = Recorder((Message("user", turns[0]),)), list[Any]()
    asked = AgentRequest((Message("user", turns[0]),), run=run, test_id="status")
    for number, text in enumerate(turns, 1):
        if number > 1:
            recorder.next_turn(Message("user", text))
            asked = replace(asked, messages=(*recorder.transcript().messages, Message("user", text)), turn=number)
        async for event in agent.run(asked):
            recorder.apply(event)
            events.append(event)
    agent.release(run)
    return recorder.stored(), events


def told(transcript: Transcript) -> list[str]:
    return [f"{one.role}: {one.content}" for one in transcript.messages]


def whole(order: str) -> list[str]:
    return [
        *(f"user: {order}", "assistant: ", "tool: desk 7", "assistant: ", "tool: shipped"),
        *(f"assistant: {order} is shipped.", f"user: Be kind about {order}.", "assistant: Gladly!"),
    ]


def notes(transcript: Transcript) -> list[str]:
    return [one.code for one in transcript.notes]


async def test_runs_of_a_program_have_every_call_that_their_own_spans_tell(tmp_path: Path) -> None:
    config = command(tmp_path, env={"OTEL_RESOURCE_ATTRIBUTES": "service.name=desk"})
    agent = make_agent("tested", config, base_dir=tmp_path, env={}, permission=ALLOWED)
    try:
        (first, events), (second, _), (opened, _), (quiet, _) = await asyncio.gather(
            run(agent, "W1", "W3", run="a"), run(agent, "W2", run="b"), run(agent, "open", run="c"),
            run(agent, "quiet", run="d"),
        )  # fmt: skip
    finally:
        await agent.close()
    for order, found in (("W1", first), ("W2", second)):
        assert told(found)[:8] == whole(order)
        assert [call.name for call in found.tool_calls][:2] == ["find_desk", "get_order"]
        assert found.tool_calls[1].arguments == {"order": order}
        assert found.tool_calls[1].result == "shipped"
        assert found.model == "m-1"
        assert not found.notes
        total = found.timing.total_ms or 0
        assert all(one.started_ms + one.duration_ms <= total + 50 for one in found.timing.steps if not one.setup)
    assert told(second)[8:] == ["assistant: The desk says: W2 is shipped."]
    assert second.final_output == "The desk says: W2 is shipped."
    assert (second.usage.input_tokens, first.usage.input_tokens) == (60, 120)
    assert "user: W3" in told(first)[8:]
    assert first.final_output == "The desk says: W3 is shipped."
    assert (
        sum(isinstance(one, Captured) for one in events) == sum(isinstance(one, UsageReported) for one in events) == 2
    )
    # A span that does not end is not sent: what it holds is.
    assert (told(opened)[:8], notes(opened)) == (whole("open"), ["open_spans"])
    # No span that can be read: what the program said is the run.
    assert told(quiet) == ["user: quiet", "assistant: The desk says: quiet is shipped."]
    assert notes(quiet) == ["text_only", "no_spans"]
    assert quiet.notes[1].what.endswith("its last request could not be read: the body is not JSON")


async def test_a_program_that_knows_its_parent_needs_no_attribute(tmp_path: Path) -> None:
    source = """
import json, os, urllib.request
def respond(request):
    _, trace, parent, _ = os.environ["TRACEPARENT"].split("-")
    def attribute(key, value): return {"key": key, "value": {"stringValue": value}}
    said = [attribute("gen_ai.input.messages", json.dumps([{"role": "user", "content": "hi"}])),
            attribute("gen_ai.output.messages", json.dumps([{"role": "assistant", "content": "ho"}]))]
    span = {"traceId": trace, "spanId": "1" * 16, "parentSpanId": parent, "name": "chat", "attributes": said,
            "startTimeUnixNano": "1790000000000000000", "endTimeUnixNano": "1790000000900000000"}
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span, {**span, "traceId": "f" * 32}]}]}]}).encode()
    address = os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] + "/v1/traces"
    urllib.request.urlopen(urllib.request.Request(address, body, {"content-type": "application/json"})).read()
    return "ho"
"""
    (tmp_path / "my_agent.py").write_text(source, "utf-8")
    config = {"kind": "python", "callable": "my_agent:respond", "capture": "otel", "reuse": True}
    agent = make_agent("tested", config, base_dir=tmp_path, env={}, permission=ALLOWED)
    try:
        found, events = await run(agent, "hello")
    finally:
        await agent.close()
    assert (told(found), found.final_output, notes(found)) == (["user: hi", "assistant: ho"], "ho", [])
    assert isinstance(events[-1], Done)


async def test_a_server_is_told_by_its_traceparent_and_asked_by_many_at_once(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    names: dict[str, Any] = {}

    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    exec(SPANS, names)
    exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=50))
    tracer = provider.get_tracer("desk")

    async def serve(request: Request) -> Answer:
        prompt = request.json["prompt"]
        above = TraceContextTextMapPropagator().extract({"traceparent": request.headers["traceparent"]})
        with tracer.start_as_current_span("POST /", context=above):
            names["conversation"](tracer, prompt)
        return Answer(body=f"{prompt} is shipped.")

    try:
        async with ScriptedServer(serve) as server:
            config = {"kind": "http", "url": server.url, "capture": "otel", "capture_port": port}
            agent = make_agent("tested", config, base_dir=tmp_path, env={}, permission=ALLOWED)
            other = make_agent("other", config, base_dir=tmp_path, env={}, permission=ALLOWED)
            found = await asyncio.gather(*(run(agent, f"W{n}", run=f"r{n}") for n in range(3)))
            refused = (await run(other, "W1"))[1][-1]
            await agent.close()
            await other.close()
    finally:
        await asyncio.to_thread(provider.shutdown)
    for number, (transcript, _) in enumerate(found):
        assert told(transcript) == [*whole(f"W{number}"), f"assistant: W{number} is shipped."]
        assert not transcript.notes
    assert isinstance(refused, Failed)
    assert refused.error.kind == "capture"
    assert "another `capture_port`" in refused.error.message


def test_what_can_not_be_is_said_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = command(tmp_path)
    assert option_problems("a", config) == []
    ((_, said),) = option_problems("a", {**config, "cassette": "c.jsonl"})
    assert "`capture: otel` has no `cassette`" in said
    ((_, said),) = option_problems("a", {"kind": "http", "url": "http://x", "capture": "otel"})
    assert "the port that the server sends its spans to" in said
    monkeypatch.setattr(protobuf, "find_spec", lambda name: None)
    ((path, said),) = option_problems("a", config)
    assert (path, "pip install 'agenteval-tui[otel]'" in said) == ("capture", True)
    with pytest.raises(AgentevalError, match="not installed"):
        make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)


def test_a_programs_own_way_to_a_collector_is_overruled() -> None:
    env = {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://far/v1/traces", "OTEL_RESOURCE_ATTRIBUTES": "a=b",
           "NO_PROXY": "x", "TRACELOOP_TRACE_CONTENT": "false"}  # fmt: skip
    made = environment("http://127.0.0.1:9", f"00-{'a' * 32}-{'b' * 16}-01", "run 1", env)
    assert made["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] == "http://127.0.0.1:9/v1/traces"
    assert made["OTEL_RESOURCE_ATTRIBUTES"] == f"a=b,agenteval.run.id=run%201,agenteval.trace.id={'a' * 32}"
    assert made["NO_PROXY"] == "x,127.0.0.1,localhost"
    assert "TRACELOOP_TRACE_CONTENT" not in made


def test_a_request_that_two_instrumentations_told_is_there_once_and_tools_alone_are_a_transcript() -> None:
    def span(number: int, parent: int, **about: str) -> dict[str, Any]:
        given = {key.replace("__", "."): value for key, value in about.items()}
        return span_of({"spanId": f"{number:x}", "parentSpanId": f"{parent:x}", "name": f"span {number}",
                        "startTimeUnixNano": str(number * 10**9), "attributes": given})  # fmt: skip

    said = {
        "gen_ai__input__messages": '[{"role": "user", "content": "hi"}]',
        "gen_ai__output__messages": '[{"role": "assistant", "content": "ho"}]',
    }
    found = whole_transcript([span(1, 0, **said), span(2, 1, **said)])
    assert found is not None
    assert (told(found[0]), found[1], found[0].notes) == (["user: hi", "assistant: ho"], 1000.0, ())
    tool = {"gen_ai__operation__name": "execute_tool", "gen_ai__tool__name": "look", "gen_ai__tool__call__result": "x"}
    found = whole_transcript([span(1, 0, **tool), span(2, 0, **tool)])
    assert found is not None
    assert [(call.name, call.result) for call in found[0].tool_calls] == [("look", "x"), ("look", "x")]
    assert whole_transcript([]) is None
