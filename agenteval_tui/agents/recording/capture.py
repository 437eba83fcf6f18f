"""Agents whose requests to models are captured: each run has a proxy address of its own, or the one fixed port."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from agenteval_tui.agents.base import (
    Agent,
    AgentEvent,
    AgentRequest,
    AgentSetup,
    Captured,
    CheckReport,
    Closable,
    Done,
    Failed,
    Noted,
    ReadsFiles,
    Seen,
    TextDelta,
    UsageReported,
    closing,
)
from agenteval_tui.agents.options import AgentOptions
from agenteval_tui.agents.prices import Cost, Prices
from agenteval_tui.agents.recording.answers import NOT_RECORDED_KIND, Answers
from agenteval_tui.agents.recording.cassette import Cassette, append, documents, read
from agenteval_tui.agents.recording.conversation import transcript_of, transcripts
from agenteval_tui.agents.recording.exchange import Exchange
from agenteval_tui.agents.recording.keys import keys_of
from agenteval_tui.agents.recording.options import CassetteOptions, cassette_options
from agenteval_tui.agents.recording.playback import CassetteIndex, Playback
from agenteval_tui.agents.recording.protocols import used_by
from agenteval_tui.agents.recording.providers import environment, hiding, upstreams
from agenteval_tui.agents.recording.proxy import Proxy
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.tool_files import require_inside
from agenteval_tui.transcripts.model import ErrorCode, Note, RunError, Transcript, Usage
from agenteval_tui.transcripts.observed import NOTHING_PRINTED

WAITING = 64
"""The number of events that may wait for the engine to take them."""
NOTHING_SEEN = Note(
    "no_requests",
    "it asked none, or none by an HTTP client of Python or Node; in another language, give its client the "
    "address in OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL",
)
"""Why a program may have asked nothing, and what helps."""
_UNREACHED_REMEDY = (
    "{} is the server of its model, and can't be reached from here: look at the network, or name another server, as in "
    "OPENAI_BASE_URL"
)
_FAILED_FIRST = Note("no_requests", "the agent failed first")
"""The same of an agent that may have failed before it asked."""


class CapturingAgent:
    """Another agent, whose requests to models go through a proxy.

    A program gets the proxy's address in its environment; each run has its own address. If the agent is a server, start
    it with the address of `capture_port`; its runs then run one after another, because nothing else shows which run
    sends a request. This class adds failures of the kind cassette: a request is not in the cassette, or the cassette
    can't be read.
    """

    def __init__(self, inner: Agent, setup: AgentSetup, options: AgentOptions) -> None:
        self._inner = inner
        self._setup = setup
        self._port: int = getattr(options, "capture_port", None) or 0
        answer: str = getattr(options, "answer", "")
        # The last text of the model is the answer; with `auto` only if the program prints it.
        self._answers = answer in ("model", "auto")
        self._is_printed = answer == "auto"
        self._options: CassetteOptions | None = cassette_options(getattr(options, "cassette", None))
        self._proxy: Proxy | None = None
        self._recorded: CassetteIndex | None = None
        self._cost: Cost | None = None
        # Runs of an agent start beside each other: the first one starts the proxy for all.
        self._starting = asyncio.Lock()
        self._alone = asyncio.Lock()
        self._sessions: dict[str, Session] = {}
        self._told: dict[str, int] = {}
        self._new: list[Exchange] = []
        self._keeping = threading.Lock()

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """The agent's events; before the last one, the requests to its models."""
        async with AsyncExitStack() as stack:
            if self._port:
                # One port shows nothing of which run asks: one run at a time uses it.
                await stack.enter_async_context(self._alone)
            try:
                proxy = await self._started()
                session = self._session(request)
            except AgentevalError as error:
                yield Failed(RunError.told("cassette", error.sentence, ""))
                return
            if self._port:
                proxy.alone = session
            captured = self._request(request, proxy, session)
            usage: list[UsageReported] = []
            printed: list[str] = []
            counted: set[int] = set()
            has_ended = False
            events = _watched(self._inner.run(captured), session)
            stack.push_async_callback(events.aclose)
            try:
                async for event in events:
                    # Kept back: they count only where no request was seen. What was, says exactly what was paid.
                    if isinstance(event, UsageReported):
                        usage.append(event)
                    elif isinstance(event, Done | Failed):
                        if isinstance(event, Done):
                            await session.settle()
                        ended, has_ended = self._ended(request, session, usage, event, counted, "".join(printed)), True
                        with suppress(AgentevalError):  # `close` says it
                            await asyncio.to_thread(self._keep)
                        # The requests come before the last event: nobody reads what comes after it.
                        for last in ended:
                            yield last
                        return
                    else:
                        if isinstance(event, TextDelta) and self._answers:
                            printed.append(event.text)
                        if isinstance(event, Seen):  # paid for by now, whatever becomes of the run
                            for used in self._used_by_now(request, session, counted):
                                yield used
                        yield event
            finally:
                proxy.shut(session)
                proxy.alone = None
                if not has_ended:  # it was stopped: what servers answered is kept all the same
                    exchanges = session.exchanges()
                    self._take_new(request, session, exchanges)
                    if exchanges:
                        request.cut_off.captured = captured_of(exchanges, session, answers=self._answers)

    async def check(self, thorough: bool = False) -> CheckReport:
        """As the agent itself says; and whether its cassette can be read."""
        if self._options is not None:
            try:
                cassette = await asyncio.to_thread(self._read)
            except AgentevalError as error:
                return CheckReport(False, error.sentence)
            if not thorough:
                return CheckReport(True, f"the cassette has {len(cassette.exchanges)} answers")
        return await self._inner.check(thorough)

    @property
    def files(self) -> frozenset[str]:
        """The files of the agent's code, where the agent knows them."""
        return self._inner.files if isinstance(self._inner, ReadsFiles) else frozenset()

    def release(self, run: str) -> None:
        """The run is over."""
        self._sessions.pop(run, None)
        self._told.pop(run, None)
        if isinstance(self._inner, Closable):
            self._inner.release(run)

    async def close(self) -> None:
        """Stop the proxy, and close the agent."""
        try:
            await self._inner.close()
            await asyncio.to_thread(self._keep)
        finally:
            if self._proxy is not None:
                await self._proxy.close()

    async def _started(self) -> Proxy:
        async with self._starting:
            if self._proxy is None:
                if self._options is not None:
                    self._recorded = await asyncio.to_thread(self._index, self._options)
                self._cost = await asyncio.to_thread(known_prices)
                proxy = Proxy(upstreams(self._setup.env_with(self._setup.config)))
                await proxy.start(self._port)
                self._proxy = proxy
            return self._proxy

    def _index(self, options: CassetteOptions) -> CassetteIndex:
        return CassetteIndex(self._read(), system=options.match_system)

    def _read(self) -> Cassette:
        assert self._options is not None
        path = self._path()
        if self._records and not path.exists():
            return Cassette()
        return read(path)

    @property
    def _records(self) -> bool:
        """Whether the cassette gets what servers answer."""
        return self._options is not None and self._options.on_miss == "record"

    def _keep(self) -> None:
        """Add what servers answered to the cassette. What can't be written waits for the next time."""
        with self._keeping:
            if self._new:
                new = list(self._new)
                # Taken off the list only once they are written.
                append(self._path(), new)
                del self._new[: len(new)]

    def _path(self) -> Path:
        assert self._options is not None
        return require_inside(self._options.file, self._setup.base_dir, trusted=self._setup.trusted, what="cassette")

    def _session(self, request: AgentRequest) -> Session:
        """That of the run: a new one in each attempt, the same in all turns."""
        known = self._sessions.get(request.run)
        # The first turn again is another attempt: the recording answers it from its beginning.
        if known is not None and request.turn > 1:
            return known
        name = f"{request.test_id}#{request.repetition}"
        answers: Answers | None = None
        on_miss: Literal["error", "live"] = "error"
        if request.recorded is None and self._recorded is not None:
            answers = Playback(self._recorded, session=name, start=request.repetition - 1)
            on_miss = "error" if self._options is None or self._options.on_miss == "error" else "live"
        session = Session(
            name,
            answers=answers,
            on_miss=on_miss,
            recorded=request.recorded,
            keys=keys_of(self._setup.env_with(request.config or self._setup.config)),
            cost=self._cost,
            pace=self._options.pace if self._options is not None else 0.0,
            keep=request.paid.add if request.paid is not None else None,
            paid=request.paid,
        )
        if request.run:
            self._sessions[request.run] = session
            self._told[request.run] = 0
        return session

    def _request(self, request: AgentRequest, proxy: Proxy, session: Session) -> AgentRequest:
        """The request with the proxy's address in the program's environment."""
        if self._port:
            return request
        config = dict(request.config or self._setup.config)
        env = self._setup.env_with(config)
        before = config.get("env") or {}
        address = proxy.open(session)
        variables = environment(address, upstreams(env), env)
        # A cassette answers programs that read their server's address on machines where it is not set, too.
        hidden = hiding(variables, env) if self._options is None else {}
        config["env"] = {**before, **variables, **hidden}
        if "reuse" in config:
            config["reuse"] = False  # a process keeps the address that it was started with
        # A Python agent is forked from a process that has started already: no variable of its startup reaches it.
        return replace(request, config=config, proxy=address)

    def _ended(
        self,
        request: AgentRequest,
        session: Session,
        usage: list[UsageReported],
        end: Done | Failed,
        counted: set[int],
        printed: str,
    ) -> list[AgentEvent]:
        used = self._used_by_now(request, session, counted)
        exchanges = session.exchanges()
        start = self._told.get(request.run, 0)
        new = self._take_new(request, session, exchanges)
        if not exchanges:
            return [*usage, Noted(NOTHING_SEEN if isinstance(end, Done) else _FAILED_FIRST), end]
        captured = captured_of(exchanges, session, answers=self._answers)
        transcript = captured.transcript
        notes: list[Note] = []
        if self._answers and isinstance(end, Failed) and _has_answered(end.error, transcript):
            # A loop of questions and answers, which ends so for want of a second question.
            notes.append(Note("input_ended", end.error.message))
            end = Done()
        if self._answers and isinstance(end, Done):
            # What a person reads counts: else a fault in what is printed would not be seen.
            if self._is_printed and printed.strip() and not _is_in(_last_text(transcript), printed):
                captured = replace(captured, answers=False)
                notes.append(Note("printed_answer", ""))
            else:
                notes += _notes_of_answer(transcript, printed)
        # What nobody has answered yet was broken off: what had come of it may say what it used.
        cut = tuple([exchange for number, exchange in enumerate(new, start) if number not in counted])
        events: list[AgentEvent] = [*used, *usage_of(cut, self._cost), captured, *map(Noted, notes)]
        if request.recorded is not None and session.over_limit is not None:
            return [*events, Failed(over_limit(session))]
        # Also where the agent ended well: it may have gone on without the answer, and that is no run of this cassette.
        if session.misses and session.on_miss == "error":
            message = session.misses[0].description
            fix = "record it again, or set `on_miss: live` of the cassette"
            return [*events, Failed(RunError.told("cassette", message, fix))]
        if isinstance(end, Failed) and session.unreached:
            end = replace(end, error=replace(end.error, fix=_UNREACHED_REMEDY.format(session.unreached)))
        if isinstance(end, Done):
            end = replace(
                end, finish_reason=transcript.finish_reason or end.finish_reason, model=transcript.model or end.model
            )
        return [*events, end]

    def _take_new(
        self, request: AgentRequest, session: Session, exchanges: tuple[Exchange, ...]
    ) -> tuple[Exchange, ...]:
        """Those of this turn, which are told from now on; what servers answered is for the cassette, but no answer that
        is not over."""
        start = self._told.get(request.run, 0)
        new = exchanges[start:]
        if request.run:
            self._told[request.run] = len(exchanges)
        if self._records:
            ended = [exchange for _, exchange in session.ended(start)]
            # An error of the network is none of the model's answers: it would be replayed for ever.
            self._new += [exchange for exchange in ended if exchange.live and not exchange.answer.error]
        return new

    def _used_by_now(self, request: AgentRequest, session: Session, counted: set[int]) -> list[AgentEvent]:
        """What the answers of this turn used that were not `counted`: they are from now on."""
        new = [entry for entry in session.ended(self._told.get(request.run, 0)) if entry[0] not in counted]
        counted.update(number for number, _ in new)
        return usage_of([exchange for _, exchange in new], self._cost)


def captured_of(exchanges: tuple[Exchange, ...], session: Session, *, answers: bool) -> Captured:
    """The requests of a run. `answers`: the last text of the model is its answer."""
    transcript = transcript_of(exchanges)
    transcript = replace(transcript, notes=(*transcript.notes, *session.notes))
    if session.stopped.is_set():  # the request that it waits for has no answer, and the run's error says why
        exchanges = exchanges[: session.missed_at]
        notes = tuple([note for note in transcript.notes if note.code != "model_error"])
        transcript = replace(transcript, notes=notes)
    cassette = Cassette(tuple([exchange for exchange in exchanges if not exchange.refused]))
    return Captured(transcript, tuple(documents(cassette)) if cassette.exchanges else (), answers)


def _has_answered(error: RunError, transcript: Transcript) -> bool:
    """Whether a program only ended because there was no more input, when its model had given an answer."""
    last = transcript.messages[-1] if transcript.messages else None
    return error.code == ErrorCode.INPUT_ENDED and last is not None and last.role == "assistant" and bool(last.content)


def _last_text(transcript: Transcript) -> str:
    """What the model said last; "" where that is a call, or the program has asked for nothing since."""
    last = transcript.messages[-1] if transcript.messages else None
    return last.content if last is not None and last.role == "assistant" else ""


def _is_in(text: str, printed: str) -> bool:
    """Whether a text was printed, perhaps laid out anew, without marks or a few words."""
    words = set(_WORD.findall(text)) or set(text.split())
    may_miss = len(words) // 10
    # Only what is not among the words may be broken by the layout: to look for each in a long text takes seconds.
    letters = "".join(printed.split())
    for word in words.difference(_WORD.findall(printed), printed.split()):
        may_miss -= word not in letters
        if may_miss < 0:
            return False
    return bool(words)


def _notes_of_answer(transcript: Transcript, printed: str) -> Iterator[Note]:
    """What a person would miss who reads only what the program printed, or only what its model said last."""
    last = transcript.messages[-1] if transcript.messages else None
    if last is None or last.role != "assistant":
        return
    if not last.content.strip():
        if last.tool_calls:
            yield Note(
                "answer_is_call",
                ", ".join(dict.fromkeys(transcript.tool_calls[number].name for number in last.tool_calls)),
            )
        return
    if not printed.strip():
        yield Note(NOTHING_PRINTED, "")
        return
    # A program may lay its answer out anew, and print more around it.
    words = set(_WORD.findall(last.content.lower()))
    text = "".join(printed.lower().split())
    if words and 2 * sum(word in text for word in words) < len(words):
        yield Note("not_printed", "")


_WORD = re.compile(r"\w{3,}")


def usage_of(exchanges: Iterable[Exchange], price: Cost | None) -> list[AgentEvent]:
    """What each answer used. What came from the cassette was paid for when it was recorded."""
    events: list[AgentEvent] = []
    for exchange in exchanges:
        model, usage = used_by(exchange.question, exchange.answer) or ("", Usage())
        if usage == Usage() and not (model and exchange.live):
            continue
        cost: float | None = 0.0
        if exchange.live:
            cost = price(model, usage) if price is not None else None
        events.append(UsageReported(replace(usage, cost=cost), model))
    return events


async def _watched(events: AsyncIterator[AgentEvent], session: Session) -> AsyncGenerator[AgentEvent]:
    """The events up to the agent's end, and between them what its models were asked. Raises what the agent raises."""
    # A queue, because three sources tell events: the agent, its requests, and a request that is not recorded.
    queue: asyncio.Queue[AgentEvent | Exception | None] = asyncio.Queue(WAITING)

    ended = False

    async def pass_on() -> None:
        nonlocal ended
        try:
            async with closing(events):
                async for event in events:
                    ended = isinstance(event, Done | Failed)
                    await queue.put(event)
                    if ended:
                        break
        except Exception as error:  # the agent's
            await queue.put(error)
        except asyncio.CancelledError:
            # Of the agent's own code: the run would wait for it without end. Where the run itself is cancelled, nobody
            # reads this.
            await queue.put(RuntimeError("what it waited for was cancelled"))
        await queue.put(None)

    async def watch() -> None:
        async for transcript in transcripts(session):
            await queue.put(Seen(transcript))

    async def stop() -> None:
        await session.stopped.wait()
        await queue.put(Failed(not_recorded(session)))

    passing, *watching = [asyncio.create_task(work()) for work in (pass_on, watch, stop)]
    try:
        while (event := await queue.get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event
    finally:
        for task in watching:
            task.cancel()
        if not ended:  # else it is closing the agent
            passing.cancel()
        while not queue.empty():  # nobody reads it any more, and what is left to say needs room
            queue.get_nowait()
        await asyncio.gather(passing, *watching, return_exceptions=True)


def not_recorded(session: Session) -> RunError:
    """Why a run that is made again from its recording ended: a request that the recording has no answer to."""
    number, miss = (session.missed_at or 0) + 1, session.misses[0]
    at = miss.differences[0].at if miss.differences else ""
    fields = {"request": number, "at": at, "change": miss.change}
    message = f"request {number} is not as it was recorded: {miss.change}"
    return RunError(NOT_RECORDED_KIND, message, "let it ask the model", ErrorCode.NOT_RECORDED, fields)


def over_limit(session: Session) -> RunError:
    """Why a run that is made again ended: the limit on cost let it ask no more."""
    number = (session.over_limit or 0) + 1
    message = f"request {number} was not asked: the limit on cost is reached"
    fields = {"request": number, "at": "", "change": "the limit on cost is reached"}
    return RunError(NOT_RECORDED_KIND, message, "give a higher --max-cost", ErrorCode.NOT_RECORDED, fields)


def known_prices() -> Cost | None:
    """What models cost; None where the list can't be read."""
    try:
        return Prices.load(config_dir()).cost
    except AgentevalError:
        return None  # what is wrong in the list is said where an execution begins
