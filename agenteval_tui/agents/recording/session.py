"""One run of a program behind the proxy: what it asked, what it got, and where answers come from."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Literal

from agenteval_tui.agents.base import PaidRequests
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.recording.answers import Answers, Miss, RecordedAnswers
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.keys import KeyRedactor
from agenteval_tui.agents.recording.mcp_requests import is_mcp
from agenteval_tui.agents.recording.playback import PaidAnswers
from agenteval_tui.agents.recording.protocols import error_answer, used_by
from agenteval_tui.agents.request_bound import cost_at_most, size_of
from agenteval_tui.core.numbers import count
from agenteval_tui.transcripts.model import Note
from agenteval_tui.transcripts.observed import ASKED_PAST

MISSING = 404
"""The status of a request that is not in the cassette: clients do not ask again after it."""
REFUSED = 402
"""The status of a request that would cost too much."""

_NOT_AWAITED = Answer(0, error="the program did not wait for the answer", whole=False)
_SETTLE_S = 0.3


class Session:
    """The requests of one run of a program, in their order.

    `answers`: a recording that answers; None: the servers answer. `on_miss`: for a request that is not in the
    recording, "error" fails, "live" sends it and all later requests to the servers, and with "stop" it waits, and
    `stopped` is set: whoever runs the program ends it. `max_cost`: the US dollars
    that live requests may cost; `cost` gives the cost of one. Each request in flight counts as what it may cost at
    most; without a limit of its answer, as the dearest one to its model, and until there is one it is alone. `keys`:
    secrets known in advance, which must not be stored; the session finds the keys in requests itself. `pace`: recorded
    answers come as fast as recorded (1), or at once (0). `keep` gets each answer of a server, without keys, as soon as
    it arrives. `paid` has the answers that servers gave before the recording was cut off: they count as live answers,
    and no server is asked again. `recorded`: what answers a run that is made again; it says the answers, what a miss
    is, and the limit on cost.
    """

    def __init__(
        self,
        name: str = "",
        *,
        answers: Answers | None = None,
        on_miss: Literal["error", "live", "stop"] = "error",
        keys: Iterable[str] = (),
        cost: Cost | None = None,
        max_cost: float | None = None,
        pace: float = 0.0,
        keep: Callable[[Exchange], None] | None = None,
        paid: PaidRequests | PaidAnswers | None = None,
        stopped: asyncio.Event | None = None,
        recorded: RecordedAnswers | None = None,
    ) -> None:
        if recorded is not None:
            answers, on_miss, max_cost = recorded.playback(), "live" if recorded.live else "stop", recorded.max_cost
        self.name = name
        self.pace = pace
        self.misses: list[Miss] = []
        self.unreached = ""
        """The server of the last request that was sent on, if it could not be reached."""
        self.missed_at: int | None = None
        """How many requests had been made before the first that was not in the recording."""
        self.spent = 0.0
        self.priced = False
        """Whether the price of at least one live answer is known; `spent` is the sum of those."""
        self.unpriced: set[str] = set()
        """Models whose price is not known."""
        self.uncounted: dict[str, int] = {}
        """Models that answered without a count of tokens, and how often. The cost of these answers is not known."""
        self.has_stepped_aside = False
        """Whether the program asked a server by itself, because the proxy could not reach it."""
        self.missed: dict[str, int] = {}
        """How many messages of MCP servers (by name) did not reach the recording."""
        self.asked_past: tuple[str, ...] = ()
        """The servers that the program says to have asked past the proxy."""
        self._answers = answers
        self.on_miss = on_miss
        self._keys = set(keys)
        self._redactor = KeyRedactor(self._keys)
        self._cost = cost
        self._keep = keep
        self._paid = paid
        self.continued = 0
        """The number of answers that were paid for before the recording was cut off."""
        self._max_cost = max_cost
        self._dearest: dict[str, float] = {}
        self._freed = asyncio.Event()
        self._began = time.perf_counter()
        self._exchanges: list[OpenExchange] = []
        self.news = asyncio.Event()
        """Set by each new request and each new answer."""
        self.stopped = stopped or asyncio.Event()
        """Set by a request that is not recorded, where that ends the run."""
        self.over_limit: int | None = None
        """How many requests had been made before the first that the limit on cost refused; None: it refused none."""
        self.over = asyncio.Event()
        """Set when no more of its requests are answered."""
        self._live = False
        self._stands = 0 if recorded is None else recorded.stands
        self._looking = asyncio.Lock()  # equal requests at the same time get different answers

    def know(self, keys: Iterable[str]) -> None:
        """Hide these keys, which a request contained."""
        new = set(keys) - self._keys
        # As a rule, each request has the same key. With a new redactor, all exchanges are cleaned again (`_clean`).
        if new:
            self._keys |= new
            self._redactor = KeyRedactor(self._keys)

    def miss(self, server: str, messages: int) -> None:
        """Note that messages of an MCP server did not reach the recording."""
        self.missed[server] = self.missed.get(server, 0) + max(messages, 0)

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the run must say of its recording."""
        missed = [
            Note("unrecorded", f"{count(many, 'message')} of {server}") for server, many in self.missed.items() if many
        ]
        if self.asked_past:
            missed.append(Note(ASKED_PAST, ", ".join(self.asked_past)))
        return tuple(missed)

    def begin(self, question: Question) -> OpenExchange:
        """Add a new request."""
        exchange = OpenExchange(question, self.now_ms, len(self._exchanges))
        self._exchanges.append(exchange)
        self.news.set()
        return exchange

    def tell(self, exchange: OpenExchange) -> None:
        """A piece of its answer goes to the program now."""
        exchange.told_ms = self.now_ms

    def end(self, exchange: OpenExchange) -> None:
        """End a request: it has its answer, or the program no longer waits for one."""
        # The program may ask its next question with the last piece, before the connection says that the answer is over.
        exchange.ended_ms = self.now_ms if exchange.told_ms is None else exchange.told_ms
        self.news.set()
        # After `ended_ms`: who waits counts what is in flight.
        self._freed.set()
        if exchange.answer is None:
            exchange.answered(_NOT_AWAITED, live=False)
        elif exchange.live:
            self._pay(exchange)
            if self._keep is not None and not exchange.paid:
                self._keep(self._redactor.exchange(exchange.exchange(self.name, self.now_ms)))

    async def settle(self) -> None:
        """Wait until each request has its whole answer, for a moment: an agent may end with the last event of a stream,
        before its server has closed that."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SETTLE_S):
                while any(exchange.ended_ms is None for exchange in self._exchanges):
                    self._freed.clear()
                    await self._freed.wait()

    def open_exchange(self, number: int) -> OpenExchange | None:
        """The request with that number, if it waits for its answer."""
        open_exchange = self._exchanges[number] if 0 <= number < len(self._exchanges) else None
        return open_exchange if open_exchange is not None and open_exchange.ended_ms is None else None

    @asynccontextmanager
    async def asking(self, question: Question) -> AsyncIterator[OpenExchange]:
        """Add a request, and end it when the block ends."""
        exchange = self.begin(question)
        try:
            yield exchange
        finally:
            self.end(exchange)

    async def answer(self, exchange: OpenExchange) -> Answer | None:
        """The recorded answer, or the proxy's own error; None: ask a server."""
        tool = is_mcp(exchange.question)
        if self._answers is not None and not self._live and not (tool and not self._answers.knows(exchange.question)):
            async with self._looking:
                answer = await asyncio.to_thread(self._answers.answer, self._redactor.question(exchange.question))
            if not isinstance(answer, Miss):
                exchange.answered(answer, live=False)
                # Calls of tools are no answers of a model, which is what a step of a run is.
                self._stands -= not tool
                return answer
            if self.missed_at is None:
                self.missed_at = exchange.number
            self.misses.append(answer)
            # The beginning of the run is to be the recorded one: without it, what would be continued is another run.
            if self._stands > 0 and not tool:
                self.on_miss = "error"
            if self.on_miss == "stop":
                self.stopped.set()
                # Not answered at all: an error would make the program try something else, and ask again.
                await self.over.wait()
            if self.on_miss != "live":
                return self._refused(exchange, MISSING, f"agenteval: {answer.description}")
            # From here on the recording is of another conversation than the program's.
            self._live = True
        # After the recording, and before the limit on cost: nothing is paid twice.
        before = self._paid.take(self._redactor.question(exchange.question)) if self._paid is not None else None
        if before is not None:
            self.continued += 1
            exchange.paid = True
            exchange.answered(before, live=True)
            return before
        why = "" if tool else await self._allowed(exchange)
        if why:
            if self.over_limit is None:
                self.over_limit = exchange.number
            return self._refused(exchange, REFUSED, why)
        exchange.asks = not tool
        return None

    @staticmethod
    def _refused(exchange: OpenExchange, status: int, message: str) -> Answer:
        answer = error_answer(exchange.question, status, message)
        exchange.answered(answer, live=False, refused=True)
        return answer

    async def _allowed(self, exchange: OpenExchange) -> str:
        """Why this request may not go to a server, in words; "" if it may. Waits while requests in flight may use up
        the limit, however long their answers take."""
        cost, body = self._cost, exchange.question.body
        if self._max_cost is not None and cost is not None and isinstance(body, Mapping):
            model = _model_of(exchange.question)
            exchange.at_most = cost_at_most(lambda usage: cost(model, usage), size_of(body))
        # The limit is looked at again each time: what ended meanwhile may have used it up.
        while not (why := self._limit()) and not self._fits(exchange):
            self._freed.clear()
            await self._freed.wait()
        return why

    def _limit(self) -> str:
        """Why no more requests may go to a server, in words; "" if they may."""
        if self._max_cost is None:
            return ""
        if self.unpriced:
            names = ", ".join(sorted(self.unpriced))
            return (
                f"agenteval: the price of {names} is not known, so --max-cost can't be kept; write it into prices.yaml"
            )
        if self.uncounted:
            names = ", ".join(sorted(self.uncounted))
            return (
                f"agenteval: {names} answered without a count of tokens, so --max-cost can't be kept; ask for it "
                '(of a stream: `"stream_options": {"include_usage": true}`)'
            )
        if self.spent >= self._max_cost:
            return f"agenteval: --max-cost is reached: {self.spent:.4f} of {self._max_cost:g} dollars are spent"
        return ""

    def _fits(self, exchange: OpenExchange) -> bool:
        """Whether one more request can be in flight within the limit: for each, as much is set aside as it may cost at
        most, or, if that is not known, as the dearest one to its model has cost."""
        in_flight = [exchange for exchange in self._exchanges if exchange.asks and exchange.ended_ms is None]
        if self._max_cost is None or not in_flight:
            return True
        each = [
            self._dearest.get(_model_of(open_exchange.question))
            if open_exchange.at_most is None
            else open_exchange.at_most
            for open_exchange in (exchange, *in_flight)
        ]
        costs = [cost for cost in each if cost is not None]
        return len(costs) == len(each) and self.spent + sum(costs) <= self._max_cost

    @property
    def now_ms(self) -> float:
        """Milliseconds since the run started."""
        return (time.perf_counter() - self._began) * 1000

    @property
    def known_cost(self) -> float | None:
        """The cost of the servers' answers; None if the cost of one answer is not known."""
        if self.unpriced or self.uncounted or (self.live_requests and not self.priced):
            return None
        return self.spent

    @property
    def live_requests(self) -> int:
        """The number of its requests to models that servers answered."""
        return sum(exchange.live and not is_mcp(exchange.question) for exchange in self._exchanges)

    @property
    def went_live(self) -> bool:
        """Whether a server of models or of tools answered a request after the recording no longer matched."""
        return self._live and any(exchange.live for exchange in self._exchanges[self.missed_at :])

    def exchanges(self) -> tuple[Exchange, ...]:
        """All exchanges, without keys."""
        return tuple([self._clean(exchange) for exchange in self._exchanges])

    def ended(self, start: int = 0) -> list[tuple[int, Exchange]]:
        """The exchanges after the first `start` that have an answer, each with its number, without keys."""
        return [
            (exchange.number, self._clean(exchange))
            for exchange in self._exchanges[start:]
            if exchange.ended_ms is not None
        ]

    def _clean(self, open_exchange: OpenExchange) -> Exchange:
        """An exchange without keys. An ended exchange is searched again only if a new key is known."""
        # Live views ask for all exchanges again and again; cleaning a long one takes long.
        if open_exchange.clean is not None and open_exchange.clean[0] is self._redactor:
            return open_exchange.clean[1]
        exchange = self._redactor.exchange(open_exchange.exchange(self.name, self.now_ms))
        if open_exchange.ended_ms is not None:
            open_exchange.clean = self._redactor, exchange
        return exchange

    def clean(self, text: str) -> str:
        """A text without keys."""
        return self._redactor.text(text)

    def _pay(self, exchange: OpenExchange) -> None:
        if self._cost is None or exchange.answer is None or exchange.unreached:
            return
        used = used_by(exchange.question, exchange.answer)
        if used is None:
            return
        model, usage = used
        cost = self._cost(model, usage)
        if cost is not None:
            self.spent += cost
            self.priced = True
            # The next one may write into the cache what this one read from it.
            name, at_most = _model_of(exchange.question), max(cost, self._cost(model, usage.all_written) or 0.0)
            self._dearest[name] = max(self._dearest.get(name, 0.0), at_most)
        elif usage.total_tokens is None:
            self.uncounted[model] = self.uncounted.get(model, 0) + 1
        elif usage.total_tokens:
            self.unpriced.add(model)


def _model_of(question: Question) -> str:
    """What tells requests of different prices apart: the model, or the path, which names it at Gemini."""
    body = question.body if isinstance(question.body, Mapping) else {}
    return str(body.get("model") or question.path)


class OpenExchange:
    """A request, with its answer once it has one. `number`: the number of requests before it."""

    def __init__(self, question: Question, started_ms: float, number: int) -> None:
        self.number = number
        self.question = question
        self.started_ms = started_ms
        self.ended_ms: float | None = None
        self.told_ms: float | None = None
        """When the program got the last piece of its answer: it may ask the next thing before the answer ends."""
        self.answer: Answer | None = None
        self.live = False
        self.refused = False
        self.asks = False
        """Its answer comes from a server of models."""
        self.at_most: float | None = None
        """What it may cost at most, in US dollars, if that is known."""
        self.unreached = False
        """There was no server to ask."""
        self.so_far: Callable[[], Answer] | None = None
        """The received part of an answer that a server streams."""
        self.paid = False
        """Its answer was paid for before the recording was cut off, and is stored already."""
        self.clean: tuple[KeyRedactor, Exchange] | None = None
        """The exchange without keys, and the redactor that made it."""

    def answered(self, answer: Answer, *, live: bool, refused: bool = False) -> None:
        """Set the answer."""
        self.answer, self.live, self.refused = answer, live, refused

    def exchange(self, session: str, now_ms: float) -> Exchange:
        """The exchange as it is stored."""
        # While a server still streams, live views see what has come.
        answer = self.answer or (self.so_far() if self.so_far is not None else None) or _NOT_AWAITED
        ended = now_ms if self.ended_ms is None else self.ended_ms
        return Exchange(
            self.question,
            answer=answer,
            session=session,
            started_ms=self.started_ms,
            ended_ms=ended,
            # Of an answer that a server is still sending, what has come is paid for, too.
            live=self.live or (self.answer is None and self.so_far is not None),
            refused=self.refused,
        )
