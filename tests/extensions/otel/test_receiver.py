"""Traces that programs send: what the receiver takes, how a trace becomes a run, what real instrumentations send."""

from __future__ import annotations

import asyncio
import gc
import gzip
import json
import socket
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.demo import server as demo_server
from agenteval_tui.extensions.otel import export_request
from agenteval_tui.extensions.otel.export_request import events_of, spans_of
from agenteval_tui.extensions.otel.listener import HeardRun, Listener, ListenerSettings
from agenteval_tui.extensions.otel.open_traces import OpenTraces
from agenteval_tui.extensions.otel.receiver import Receiver
from agenteval_tui.history.store import Store
from agenteval_tui.runs.criteria import specs_of
from agenteval_tui.runs.events import Event, RunState
from agenteval_tui.runs.live_view import RECENT, ExecutionView
from agenteval_tui.suites.model import Criterion

TRACE = "0af7651916cd43dd8448eb211c80319c"
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Cancel order W77"}]}]
CALLED = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "get_order", "arguments": {"id": "W77"}}]}
]
TOLD = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": {"status": "shipped"}}]}]
SAID = [{"role": "assistant", "parts": [{"type": "text", "content": "It was shipped already."}]}]


def attributes(**given: Any) -> list[dict[str, Any]]:
    def value(one: Any) -> dict[str, Any]:
        text = one if isinstance(one, str) else json.dumps(one)
        return {"intValue": str(one)} if isinstance(one, int) else {"stringValue": text}

    return [{"key": key.replace("__", "."), "value": value(one)} for key, one in given.items()]


def span(number: int, parent: int, name: str, **given: Any) -> dict[str, Any]:
    made = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": name,
        "startTimeUnixNano": str(1_790_000_000_000_000_000 + number * 1_000_000),
        "endTimeUnixNano": str(1_790_000_000_900_000_000),
        "attributes": attributes(**given),
    }
    return {**made, "parentSpanId": f"{parent:016x}"} if parent else made


def request(*spans: dict[str, Any], service: str = "desk") -> dict[str, Any]:
    resource = {"attributes": attributes(service__name=service)}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


FIRST = span(
    2, 1, "chat m", gen_ai__operation__name="chat", gen_ai__input__messages=ASKED, gen_ai__output__messages=CALLED
)
TOOL = span(3, 1, "execute_tool", gen_ai__operation__name="execute_tool", gen_ai__tool__call__id="c1")
SECOND = span(
    4,
    1,
    "chat m",
    gen_ai__operation__name="chat",
    gen_ai__input__messages=[*ASKED, *CALLED, *TOLD],
    gen_ai__output__messages=SAID,
    gen_ai__usage__input_tokens=40,
)
ROOT = span(1, 0, "invoke_agent", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="support")


def sent(*spans: dict[str, Any], **more: Any) -> tuple[Any, Any]:
    return tuple(spans_of(request(*spans, **more))), ()


class Listening:
    """A listener in a thread of its own: `at` runs something in its loop, `view` is what a watcher knows."""

    def __init__(self, store: Store, options: ListenerSettings) -> None:
        self.heard: list[HeardRun] = []
        self.view = ExecutionView()
        self.loop = asyncio.new_event_loop()
        self.news = threading.Condition()
        self.listener = Listener(store, options, self._heard)
        tell = self.listener._socket.tell

        def watch(event: Event) -> None:
            with self.news:
                self.view.apply(event)
                self.news.notify_all()
            tell(event)

        self.listener._events.emit = watch
        self.receiver = Receiver(self.listener.take)
        self.thread = threading.Thread(target=self._run)

    def _heard(self, run: HeardRun) -> None:
        with self.news:
            self.heard.append(run)
            self.news.notify_all()

    def _run(self) -> None:
        async def main() -> None:
            await self.receiver.start(0)
            with self.news:
                self.news.notify_all()
            await self.listener.run(self.receiver.address)
            await self.receiver.close()

        self.loop.run_until_complete(main())
        self.loop.close()

    def post(self, body: dict[str, Any], path: str = "/v1/traces", unread: int = 0) -> None:
        told = httpx.post(self.receiver.address + path, json=body).json().get("partialSuccess", {})
        assert int(told.get("rejectedSpans", 0)) == unread

    def until(self, condition: Callable[[], object]) -> None:
        end = time.monotonic() + 250
        with self.news:
            while not condition():
                assert time.monotonic() < end
                self.news.wait(0.02)  # not everything that it may be is told

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.listener.stop)
        self.thread.join()


@contextmanager
def listening(store: Store, **options: Any) -> Iterator[Listening]:
    found = Listening(store, ListenerSettings(**{"quiet_s": 0.05, **options}))
    found.thread.start()
    try:
        found.until(lambda: found.view.planned is not None)
        yield found
    finally:
        if found.thread.is_alive():
            found.stop()


def test_a_trace_is_shown_while_it_grows_and_stored_when_it_is_complete(store: Store) -> None:
    with listening(store, quiet_s=0.2) as found:
        found.post(request(FIRST))
        found.until(lambda: any(state.parts for state in found.view.runs.values()))
        run = next(iter(found.view.runs))
        assert found.view.listens
        assert found.view.runs[run].status == "running"
        assert [(part.kind, part.name, part.done) for part in found.view.runs[run].parts] == [
            ("tool", "get_order", False)
        ]
        found.post(request(TOOL, SECOND))
        found.until(lambda: len(found.view.runs[run].parts) == 2)
        tool, answer = found.view.runs[run].parts
        assert (tool.done, tool.result, answer.text) == (True, '{"status": "shipped"}', "It was shipped already.")
        assert not found.heard, "its first span has not come"
        found.post(request(ROOT))
        found.until(lambda: found.heard)
        state, planned = found.view.runs[run], found.view.planned
        assert (state.status, state.ref.agent, state.ref.test) == ("skipped", "support", "Cancel-order-W77")
        assert planned is not None
        assert planned.runs == (state.ref,), "the names before its first span came were a guess"
    (row,) = store.runs_of_execution(found.listener.execution)
    assert (row.id, row.suite_name, row.test_id, row.agent) == (run, "desk", "Cancel-order-W77", "support")
    transcript = store.transcript(run)
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "assistant"]
    assert (transcript.usage.input_tokens, transcript.final_output) == (40, "It was shipped already.")
    assert store.execution(found.listener.execution).status == "finished"


async def test_who_watches_reads_that_what_came_was_not_stored(tmp_path: Path) -> None:
    store, view = Store.open(tmp_path / "h.db"), ExecutionView()
    listener = Listener(store, ListenerSettings(), lambda heard: None)
    listener._events.emit = view.apply
    listening = asyncio.ensure_future(listener.run("here"))
    while listener._socket.live is None:
        await asyncio.sleep(0)
    listener.take(*sent(FIRST, ROOT))
    store.close()
    listener.stop()
    with pytest.raises(AgentevalError) as caught:
        await listening
    assert view.ended is not None
    why = f"not all that came was stored: {caught.value.sentence}"
    assert (view.ended.status, view.ended.message) == ("failed", why)


def test_more_of_a_stored_trace_is_put_into_its_run(store: Store) -> None:
    with listening(store) as found:
        found.post(request(FIRST, ROOT))
        found.until(lambda: len(found.heard) == 1)
        found.post(request(SECOND))
        found.until(lambda: len(found.heard) == 2)
    assert [(run.again, len(run.ended.transcript.messages)) for run in found.heard] == [(False, 2), (True, 4)]
    (row,) = store.runs_of_execution(found.listener.execution)
    assert len(store.transcript(row.id).messages) == 4
    shown = found.view.runs[row.id]
    assert (shown.status, len(shown.parts), found.view.done) == ("skipped", 2, 1), "it has ended for watchers, too"
    assert {status: number for status, number in found.view.counts.items() if number} == {"skipped": 1}


def test_watchers_read_the_verdict_on_all_of_a_stored_trace(store: Store) -> None:
    config = {"metrics": [{"type": "TextMatch", "contains_any": ["shipped"]}]}
    criteria = specs_of([Criterion(name="Is shipped", prototype_class="TextResponse", config_uxon=config)])
    with listening(store, criteria=criteria) as found:
        found.post(request(FIRST, ROOT))
        found.until(lambda: len(found.heard) == 1)
        run = found.heard[0].planned.id
        assert (found.view.runs[run].status, found.view.failures) == ("failed", [run])
        found.post(request(SECOND))
        found.until(lambda: len(found.heard) == 2)
    assert (found.heard[1].ended.status, found.view.runs[run].status) == ("passed", "passed")
    assert (found.view.failures, found.view.runs[run].failed) == ([], ())
    assert store.run(run).status == "passed"


def test_a_listener_forgets_what_watchers_and_exporters_no_longer_ask_for(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval_tui.extensions.otel.open_traces._REMEMBERED", 2)
    gc.collect()
    before = {id(one) for one in gc.get_objects() if isinstance(one, RunState)}
    with listening(store) as found:
        for number in range(RECENT + 5):
            trace = f"{number + 1:032x}"
            found.post(request({**FIRST, "traceId": trace}, {**ROOT, "traceId": trace}))
        found.until(lambda: len(found.heard) == RECENT + 5)
        found.post(request({**SECOND, "traceId": f"{1:032x}"}))
        found.until(lambda: found.listener.late == 1)
        views = [found.view, found.listener._socket._server.view]
        watched = {id(run) for view in views for run in view.runs.values()}
        kept = [one for one in gc.get_objects() if isinstance(one, RunState) and id(one) not in before | watched]
        assert len(kept) <= 2
        assert not any(one.parts for one in kept)
    assert len(store.runs_of_execution(found.listener.execution)) == RECENT + 5


def test_a_trace_that_never_ends_is_taken_as_it_is(store: Store) -> None:
    with listening(store, patience_s=0.05) as found:
        found.post(request(FIRST))
        found.until(lambda: found.heard)
    with listening(store, patience_s=3600) as found:
        found.post(request(FIRST))
        found.until(lambda: found.view.runs)
        found.stop()  # as Ctrl-C does
        assert len(found.heard) == 1


@pytest.mark.parametrize(
    ("told", "test"),
    [
        ({"gen_ai__conversation__id": "01a202fe-4e67-703f-b955-22eed6b70935"}, "Cancel-order-W77"),
        ({"gen_ai__conversation__id": "conv_68f1c2d4e5a60781b2c3d4e5f6a70819"}, "Cancel-order-W77"),
        ({"gen_ai__conversation__id": "thread_AbC3dEf6GhI9jKl2MnO5pQr8"}, "Cancel-order-W77"),
        ({"gen_ai__conversation__id": "01M8KGA3WX65XKCSDC654YBHBV"}, "Cancel-order-W77"),
        ({"gen_ai__conversation__id": "cancellation-of-an-order"}, "cancellation-of-an-order"),
        ({"gen_ai__conversation__id": "customer-4711"}, "customer-4711"),
        ({"agenteval__test__id": "01a202fe-4e67-703f-b955-22eed6b70935"}, "01a202fe-4e67-703f-b955-22eed6b70935"),
    ],
)
def test_a_conversation_that_a_program_numbers_by_chance_is_called_by_what_was_asked(
    store: Store, told: dict[str, str], test: str
) -> None:
    root = span(1, 0, "agent", gen_ai__operation__name="invoke_agent", gen_ai__agent__name="support", **told)
    with listening(store) as found:
        found.post(request(FIRST, TOOL, SECOND, root))
        found.until(lambda: found.heard)
    (row,) = store.runs_of_execution(found.listener.execution)
    assert row.test_id == test


def test_runs_are_graded_as_they_arrive(store: Store) -> None:
    config = {"metrics": [{"type": "TextMatch", "contains_any": ["cancelled"]}]}
    criteria = specs_of([Criterion(name="Cancels it", prototype_class="TextResponse", config_uxon=config)])
    with listening(store, criteria=criteria, most=1) as found:
        found.post(request(FIRST, TOOL, SECOND, ROOT))
        found.thread.join()  # after one run it ends by itself
    (row,) = store.runs_of_execution(found.listener.execution)
    assert row.status == found.view.runs[row.id].status == "failed"
    assert "Cancels it" in row.why
    assert found.view.runs[row.id].failed[0][0] == "Cancels it"


def test_what_is_no_conversation_is_counted_and_left_out(store: Store) -> None:
    with listening(store) as found:
        found.post(request(span(1, 0, "GET /health", http__method="GET")))
        found.post(
            {"resourceSpans": [{"scopeSpans": [{"spans": [None, 3, {"traceId": "x"}]}]}, None, 7], "more": 1}, unread=5
        )
        found.until(lambda: found.listener.skipped)
    assert list(found.listener.skipped) == ["no span of it is about a model, an agent or a tool"]
    assert not store.runs_of_execution(found.listener.execution)


def test_what_was_said_may_come_as_log_records() -> None:
    """As instrumentations send it since version 1.28 of the conventions."""
    record = {
        "traceId": TRACE,
        "spanId": f"{2:016x}",
        "attributes": attributes(event__name="gen_ai.user.message"),
        "body": {"kvlistValue": {"values": attributes(content="Where is it?")}},
    }
    choice = {
        **record,
        "eventName": "gen_ai.choice",
        "attributes": [],
        "body": {"kvlistValue": {"values": attributes(message={"role": "assistant", "content": "On its way."})}},
    }
    logs = {"resourceLogs": [{"scopeLogs": [{"logRecords": [record, choice, {**record, "spanId": ""}, None]}]}]}
    traces = OpenTraces(1.0, 1.0)
    traces.add((), events_of(logs), 0.0)
    traces.add(spans_of(request(span(2, 0, "chat m", gen_ai__operation__name="chat"))), (), 0.0)
    (trace,) = traces.all()
    recording: Any = trace.recording()
    assert [(one.role, one.content) for one in recording.transcript.messages] == [
        ("user", "Where is it?"),
        ("assistant", "On its way."),
    ]


def test_open_traces_close_when_it_is_their_time() -> None:
    remote = {**span(9, 7, "chat m"), "traceId": "b" * 32, "flags": 0x301}
    traces = OpenTraces(2.0, 60.0)
    traces.add(spans_of(request(FIRST, remote)), (), 0.0)
    assert traces.next_s() == 2.0, "what has its parent in another program begins here"
    assert [one.id for one in traces.closed(2.0)] == ["b" * 32]
    assert not traces.closed(59.9)
    assert [one.id for one in traces.closed(60.0)] == [TRACE]
    assert traces.next_s() is None
    assert len(traces) == 0


def test_the_number_of_open_traces_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.extensions.otel.open_traces.MOST_TRACES", 2)
    monkeypatch.setattr("agenteval_tui.extensions.otel.open_traces.MOST_SPANS", 1)
    monkeypatch.setattr("agenteval_tui.extensions.otel.open_traces._REMEMBERED", 1)
    traces = OpenTraces(2.0, 60.0)
    for number in range(4):
        traces.add(
            spans_of(request({**FIRST, "traceId": f"{number:032x}"}, {**SECOND, "traceId": f"{number:032x}"})),
            (),
            number,
        )
    assert [(one.id, one.left_out) for one in traces.closed(5.0)] == [(f"{n:032x}", 1) for n in (0, 1)]
    traces.add(spans_of(request({**FIRST, "traceId": f"{0:032x}"})), (), 6.0)
    assert traces.late == 1, "it is not remembered any more, and that is said"


def test_the_spans_of_all_open_traces_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval_tui.extensions.otel.open_traces.MOST_OF_ALL", 5)
    traces = OpenTraces(2.0, 60.0)
    for number in range(4):
        one, other = ({**found, "traceId": f"{number:032x}"} for found in (FIRST, SECOND))
        traces.add(spans_of(request(one, other)), (), number)
    assert [one.id for one in traces.closed(3.0)] == [f"{n:032x}" for n in (0, 1)], "the quietest make room"
    traces.add(spans_of(request({**FIRST, "traceId": f"{0:032x}"})), (), 3.0)
    assert len(traces) == 3, "one that is remembered is opened again"
    assert [one.id for one in traces.all()] == [f"{n:032x}" for n in (2, 3, 0)]
    traces.add(spans_of(request({**FIRST, "traceId": f"{1:032x}"})), (), 4.0)
    assert (len(traces), traces.late) == (0, 1), "what is remembered is bounded as well"


@pytest.fixture
def receiver() -> Iterator[Callable[[bytes], bytes]]:
    """Sends bytes to a receiver, and gives all that comes back."""
    loop = asyncio.new_event_loop()
    server = Receiver(lambda spans, events: None)
    loop.run_until_complete(server.start(0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    def send(data: bytes) -> bytes:
        host, port = server.address.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=250) as connected:
            connected.sendall(data)
            connected.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: connected.recv(65536), b""))

    yield send
    asyncio.run_coroutine_threadsafe(server.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def posted(body: bytes, path: str = "/v1/traces", method: str = "POST", **headers: str) -> bytes:
    told = {"Host": "127.0.0.1:4318", "Content-Type": "application/json", "Content-Length": str(len(body)), **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in told.items())
    return f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body


NONSENSE: dict[str, tuple[bytes, bytes, bytes]] = {
    "no HTTP": (b"\x16\x03\x01 hello\r\n\r\n", b"400", b"not HTTP that can be read\n"),
    "no JSON": (posted(b"{"), b"400", b"not JSON"),
    "a list": (posted(b"[]"), b"400", b"not a request of OTLP"),
    "too deep": (posted(b"[" * 200_000), b"400", b"not JSON"),
    "no protobuf": (posted(b"\xff\xff\xff", Content_Type="application/x-protobuf"), b"400", b"not a request of OTLP"),
    "text": (posted(b"hello", Content_Type="text/plain"), b"415", b"application/x-protobuf"),
    "packed otherwise": (posted(b"x", Content_Encoding="br"), b"415", b"gzip"),
    "not packed": (posted(b"{}", Content_Encoding="gzip"), b"400", b"not gzip"),
    "cut off": (posted(gzip.compress(b"{}" * 99)[:-9], Content_Encoding="gzip"), b"400", b"cut off"),
    "a bomb": (b"", b"413", b"64 MB"),  # made where it is thrown: to pack it takes as long as many tests
    "another path": (posted(b"{}", "/"), b"404", b"OTEL_EXPORTER_OTLP_ENDPOINT"),
    "read": (posted(b"", method="GET"), b"405", b"POST"),
    "another host": (posted(b"{}", Host="evil.example"), b"403", b"programs of this machine"),
    "a page": (posted(b"{}", Origin="https://evil.example"), b"403", b"programs of this machine"),
}


HALF_READ: dict[str, tuple[Any, int]] = {
    "all of it": (request(FIRST, SECOND), 0),
    "a list in place of resources": ({"resourceSpans": [[[1]]]}, 1),
    "a word in place of resources": ({"resourceSpans": "x"}, 1),
    "no list of scopes": ({"resourceSpans": [{"scopeSpans": {}}]}, 1),
    "no list of spans": ({"resourceSpans": [{"scopeSpans": [{"spans": 3}]}]}, 1),
    "spans without ids": (request(FIRST, {"name": "x"}, {**SECOND, "spanId": ""}, {**SECOND, "traceId": 7}), 3),
}


@pytest.mark.parametrize("case", HALF_READ)
def test_what_is_left_out_of_an_export_is_told_to_the_exporter(receiver: Callable[[bytes], bytes], case: str) -> None:
    sent, unread = HALF_READ[case]
    answer = receiver(posted(json.dumps(sent).encode()))
    told = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert answer.startswith(b"HTTP/1.1 200")
    assert told == (
        {"partialSuccess": {"rejectedSpans": str(unread), "errorMessage": export_request.said_unread(unread)}}
        if unread
        else {}
    )


def test_an_exporter_of_protobuf_is_told_in_protobuf(receiver: Callable[[bytes], bytes]) -> None:
    traces = pytest.importorskip(
        "opentelemetry.proto.collector.trace.v1.trace_service_pb2", reason="the extra `otel` is not installed"
    )
    sent = traces.ExportTraceServiceRequest()
    sent.resource_spans.add().scope_spans.add().spans.add(name="without ids")
    answer = receiver(posted(sent.SerializeToString(), Content_Type="application/x-protobuf"))
    told = traces.ExportTraceServiceResponse.FromString(answer.partition(b"\r\n\r\n")[2]).partial_success
    assert (told.rejected_spans, told.error_message) == (1, export_request.said_unread(1))


@pytest.mark.parametrize("case", NONSENSE)
def test_what_is_no_export_gets_a_sentence(receiver: Callable[[bytes], bytes], case: str) -> None:
    if case == "no protobuf":
        pytest.importorskip("opentelemetry.proto", reason="the extra `otel` is not installed")
    data, status, said = NONSENSE[case]
    if case == "a bomb":
        data = posted(zlib.compress(b"\0" * (export_request.LARGEST + 1), 9), Content_Encoding="deflate")
    answer = receiver(data)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert said in answer
    assert receiver(posted(b"{}")).endswith(b"\r\n\r\n{}"), "it still listens"
    assert b"200" in receiver(posted(b"", "/v1/metrics", Content_Type="application/x-protobuf"))[:15]


def test_a_port_in_use_is_said_with_what_to_do() -> None:
    async def both() -> None:
        first = Receiver(lambda spans, events: None)
        await first.start(0)
        try:
            await Receiver(lambda spans, events: None).start(int(first.address.rpartition(":")[2]))
        finally:
            await first.close()

    with pytest.raises(AgentevalError, match=r"can't be had: address already in use \(choose") as told:
        asyncio.run(both())
    assert "--port" in (told.value.fix or "")


def instrumentor(name: str) -> Any:
    module = {
        "openinference": "openinference.instrumentation.openai",
        "traceloop": "opentelemetry.instrumentation.openai",
    }[name]
    return pytest.importorskip(module).OpenAIInstrumentor()


def unwrap_openai() -> None:
    """What `uninstrument` of Traceloop leaves wrapped: its first name that newer clients lack ends its list."""
    wrapt = pytest.importorskip("wrapt")
    for module in [one for name, one in sys.modules.items() if name.startswith("openai.resources.")]:
        for owner in [one for one in vars(module).values() if isinstance(one, type)]:
            for name, value in list(vars(owner).items()):
                if isinstance(value, wrapt.FunctionWrapper):
                    setattr(owner, name, value.__wrapped__)


@contextmanager
def demo_agent() -> Iterator[str]:
    """The bundled agent behind its HTTP server."""
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(demo_server.start(pace=0))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield server.address
    asyncio.run_coroutine_threadsafe(server.close(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


@pytest.mark.xdist_group("openai")
@pytest.mark.parametrize("name", ["openinference", "traceloop"])
def test_what_real_instrumentations_send_is_what_was_said(store: Store, name: str) -> None:
    """OpenTelemetry's SDK and exporter (protobuf, gzip), the openai package, and two vendors' instrumentations."""
    exporter = pytest.importorskip("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    from openai import OpenAI
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    wrapped = instrumentor(name)
    order = {"type": "object", "properties": {"order_id": {"type": "string"}}}
    tools: Any = [{"type": "function", "function": {"name": "get_order", "parameters": order}}]
    messages: list[Any] = [{"role": "user", "content": "Where is my order #W1044?"}]
    with listening(store) as found, demo_agent() as address:
        provider = TracerProvider(resource=Resource.create({"service.name": "shop-bot"}))
        endpoint = f"{found.receiver.address}/v1/traces"
        provider.add_span_processor(
            SimpleSpanProcessor(exporter.OTLPSpanExporter(endpoint=endpoint, compression=Compression.Gzip))
        )
        wrapped.instrument(tracer_provider=provider)
        try:
            client = OpenAI(base_url=address, api_key="none")
            with provider.get_tracer("test").start_as_current_span("support"):
                while True:
                    reply = client.chat.completions.create(model="demo-rules", messages=messages, tools=tools)
                    message = reply.choices[0].message
                    messages.append(message.model_dump(exclude_none=True))
                    if not message.tool_calls:
                        break
                    result = json.dumps({"order_id": "W1044", "status": "shipped", "items": []})
                    messages += [
                        {"role": "tool", "tool_call_id": call.id, "content": result} for call in message.tool_calls
                    ]
        finally:
            wrapped.uninstrument()
            unwrap_openai()
            provider.shutdown()
        found.until(lambda: found.heard)
    (heard,) = found.heard
    transcript = heard.ended.transcript
    assert [(one.role, one.content) for one in transcript.messages] == [
        (one["role"], one.get("content") or "") for one in messages
    ]
    assert [(call.name, call.arguments, call.result) for call in transcript.tool_calls] == [
        ("get_order", {"order_id": "W1044"}, messages[2]["content"])
    ]
    assert (heard.planned.suite_name, heard.planned.agent, transcript.model) == (
        "shop-bot",
        "shop-bot",
        "demo-rules v1",
    )
    assert transcript.usage.input_tokens
    assert not heard.notes
