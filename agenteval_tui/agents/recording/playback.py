"""Gives recorded answers to equal requests, and names the nearest recorded request if there is no equal one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date

from agenteval_tui.agents.models.requests import RequestReader
from agenteval_tui.agents.recording.answers import Miss
from agenteval_tui.agents.recording.cassette import Cassette, Volatile
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.matching import Matcher, most_alike, nearest, without_clock
from agenteval_tui.agents.recording.mcp_requests import is_mcp, server_of
from agenteval_tui.agents.recording.protocols import read_request
from agenteval_tui.agents.recording.repeated_ids import answer_with_ids, ids_between
from agenteval_tui.core.document import extended
from agenteval_tui.core.groups import grouped
from agenteval_tui.transcripts.model_request import ModelRequest
from agenteval_tui.transcripts.request_changes import RequestChange, difference
from agenteval_tui.transcripts.visible_messages import LOSSES

_OF_CONTEXT = (*LOSSES, "moved", "system", "tool_added", "tool_removed", "tool_changed", "tools_moved")
"""Kinds of change that are of what a model is given, and not of what is asked."""
_AGAIN = (408, 409, 425, 429)  # a program asks again


class CassetteIndex:
    """The exchanges of a cassette by their requests. All runs that a cassette answers share one index: making it takes
    time (0.3 s for 400 requests, each of which repeats what was said before).

    `recorded_on`: a request that is not recorded gets the answer to one that differs only in the day and the time that
    a clock put into its prompt: that day and today. None: such a request is a different request.
    """

    def __init__(self, cassette: Cassette, *, system: bool = True, recorded_on: date | None = None) -> None:
        self.exchanges = cassette.exchanges
        self.recorded_on = recorded_on
        self._by_key_of_days: tuple[tuple[date, date], dict[str, list[Exchange]]] | None = None
        self.matcher = Matcher(cassette.volatile, system=system)
        self._by_key = self._keyed(self.matcher.key)
        self._servers = {server_of(exchange.question) for exchange in cassette.exchanges if is_mcp(exchange.question)}

    def of(self, question: Question) -> tuple[str, list[Exchange]]:
        """The key of a request, and the exchanges whose requests have it, in the order in which they were recorded."""
        key = self.matcher.key(question)
        exchanges = self._by_key.get(key, [])
        if exchanges or self.recorded_on is None:
            return key, exchanges
        # A clock in the prompt makes every request of another day a new one. Both days are masked on both sides: a date
        # that stays, such as that of a sale, is then masked on both or on none.
        days = self.recorded_on, date.today()
        if self._by_key_of_days is None or self._by_key_of_days[0] != days:
            keyed = self._keyed(lambda recorded: self.matcher.key(without_clock(recorded, *days)))
            self._by_key_of_days = days, keyed
        key = self.matcher.key(without_clock(question, *days))
        return key, self._by_key_of_days[1].get(key, [])

    def _keyed(self, key_of: Callable[[Question], str]) -> dict[str, list[Exchange]]:
        by_key: dict[str, list[Exchange]] = {}
        for exchange in self.exchanges:
            by_key.setdefault(key_of(exchange.question), []).append(exchange)
        return {key: _without_retries(exchanges) for key, exchanges in by_key.items()}

    def knows(self, question: Question) -> bool:
        """Whether anything was recorded of the MCP server of a request."""
        return server_of(question) in self._servers


class Playback:
    """The answers of a cassette for one run of a program.

    Equal requests get their answers in the order in which they were recorded; the last answer repeats. They are those
    of the run's own session. If that did not ask this, they are those of one recorded run that did: of number `start`
    (from 0, and the first again after the last). An answer that made the program ask again (429, a broken
    stream) is left out if the answer to the second request is recorded, too. `others` are asked in their order for
    what was not recorded here, but not for calls of MCP servers: these have a state. `varying` answers what is left.
    """

    def __init__(
        self,
        recorded: Cassette | CassetteIndex,
        *,
        system: bool = True,
        session: str = "",
        start: int = 0,
        others: Callable[[], Iterable[CassetteIndex]] = tuple,
        varying: VaryingRequests | None = None,
    ) -> None:
        self._index = CassetteIndex(recorded, system=system) if isinstance(recorded, Cassette) else recorded
        self._session = session
        self._start = start
        self._others = others
        self._varying = varying
        self._given: dict[str, int] = {}

    @property
    def answered(self) -> int:
        """How many requests it has answered."""
        return sum(self._given.values())

    def knows(self, question: Question) -> bool:
        """Whether anything was recorded of its MCP server."""
        return self._index.knows(question)

    def answer(self, question: Question) -> Answer | Miss:
        """The recorded answer to a request."""
        key, exchanges = self._index.of(question)
        # An edit may make one test ask what another one asked. Calls of MCP servers have a state, so another run's
        # answers are not theirs.
        if not exchanges and not is_mcp(question):
            found = (index.of(question) for index in self._others())
            key, exchanges = next((each for each in found if each[1]), (key, exchanges))
        if not exchanges and self._varying is not None and not is_mcp(question):
            exchanges = self._varying.take(question)
        if not exchanges:
            return self.miss(question)
        by_session = grouped((exchange.session, exchange) for exchange in exchanges)
        own = by_session.get(self._session) or [*by_session.values()][self._start % len(by_session)]
        number = self._given.get(key, 0)
        self._given[key] = number + 1
        # The last answer repeats: a program that asks once more than it did is answered all the same.
        exchange = own[min(number, len(own) - 1)]
        if exchange.question == question:
            return exchange.answer
        return answer_with_ids(exchange.answer, ids_between(exchange.question, question))

    def miss(self, question: Question) -> Miss:
        """The miss of a request that is not recorded, with the nearest request that is."""
        questions = [exchange.question for exchange in self._index.exchanges]
        match = nearest(self._index.matcher, questions, question)
        if match is None:
            return Miss(question)
        return Miss(question, match[0] + 1, tuple(match[1]), self._context(question, questions[match[0]]))

    def _context(self, question: Question, recorded_nearest: Question) -> tuple[RequestChange, ...]:
        reader = RequestReader()
        now = read_request(question, reader)
        if now is None or not now.messages:
            return ()
        same = (
            exchange.question for exchange in reversed(self._index.exchanges) if exchange.question.path == question.path
        )
        # The newest message says which turn it is. The nearest text may be that of another one.
        recorded = next(
            (
                candidate
                for earlier in same
                if (candidate := read_request(earlier, reader)) and candidate.messages[-1:] == now.messages[-1:]
            ),
            read_request(recorded_nearest, reader),
        )
        if recorded is None:
            return ()
        before, after = (extended(ModelRequest, request, number=1, line=1, previous="") for request in (recorded, now))
        last_answer = max(
            (place for place, message in enumerate(recorded.messages) if message["role"] == "assistant"), default=-1
        )
        return tuple(
            [
                change
                for change in difference(before, after).changes
                # What comes after the last answer is what is asked, and no context of it.
                if change.kind in _OF_CONTEXT and not (change.before and min(change.before) > last_answer)
            ]
        )


class VaryingRequests:
    """The recorded requests of a program whose code is still the same. What differs now in ids, dates and times, it
    makes anew each time: `rules` has what is known of that. A number may be of data that has changed."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._left = list(exchanges)
        self.rules: dict[Volatile, None] = {}

    def take(self, question: Question) -> list[Exchange]:
        """The exchange whose request differs in the least of that, in a list; each is taken once. []: there is none."""
        same = most_alike(question, [exchange.question for exchange in self._left], numbers=False)
        if same is None:
            return []
        place, rules = same
        self.rules.update(dict.fromkeys(rules))
        return [self._left.pop(place)]


class PaidAnswers:
    """The answers that servers gave before a recording was cut off. Each answer is used once, for an equal request. If
    no request is equal, it is used for a request that differs only in the date and time of the prompt (the program
    starts again, later) or in `volatile` parts. Errors are left out."""

    def __init__(self, exchanges: Sequence[Exchange] = (), volatile: Sequence[Volatile] = ()) -> None:
        self._equal, self._alike = Matcher(), Matcher(volatile)
        self._left = [exchange for exchange in exchanges if exchange.answer.succeeded]
        self._keys = [(self._equal.key(exchange.question), self._later(exchange.question)) for exchange in self._left]

    def take(self, question: Question) -> Answer | None:
        """The answer to a request without keys; None if it was not paid for."""
        if not self._left:
            return None
        # Equal requests first: a request that differs only in its date may be the answer that another one waits for.
        equal = self._equal.key(question)
        place = next((number for number, (key, _) in enumerate(self._keys) if key == equal), None)
        if place is None:
            alike = self._later(question)
            place = next((number for number, (_, key) in enumerate(self._keys) if key == alike), None)
        if place is None:
            return None
        del self._keys[place]
        return self._left.pop(place).answer

    def _later(self, question: Question) -> str:
        return self._alike.key(without_clock(question, date.today()))


class OrderedPlayback:
    """Gives each recorded answer once, to the request that is most similar to its own. This compares the requests of a
    program's second run with those of the first. `pairs`: each recorded request with its request of the second run."""

    def __init__(self, exchanges: Sequence[Exchange]) -> None:
        self._all = exchanges
        self._left = _without_retries(list(exchanges), any_key=True)
        self._matcher = Matcher()
        self.pairs: list[tuple[Question, Question]] = []

    def knows(self, question: Question) -> bool:
        """Whether anything was recorded of its MCP server."""
        return server_of(question) in {server_of(other.question) for other in self._all if is_mcp(other.question)}

    def answer(self, question: Question) -> Answer | Miss:
        """The answer to the most similar recorded request."""
        match = nearest(self._matcher, [exchange.question for exchange in self._left], question)
        # Another path is another kind of request, however alike the texts are.
        if match is None or self._left[match[0]].question.path != question.path:
            return Miss(question, None if match is None else match[0] + 1, () if match is None else tuple(match[1]))
        chosen = self._left.pop(match[0])
        self.pairs.append((chosen.question, question))
        return answer_with_ids(chosen.answer, ids_between(chosen.question, question))


def _without_retries(exchanges: list[Exchange], *, any_key: bool = False) -> list[Exchange]:
    """Without the answers after which a program asked the same again."""
    return [
        exchange
        for number, exchange in enumerate(exchanges)
        if not _asks_again(exchange.answer)
        or not any(
            other.session == exchange.session and (not any_key or other.question == exchange.question)
            for other in exchanges[number + 1 :]
        )
    ]


def _asks_again(answer: Answer) -> bool:
    return answer.status in _AGAIN or answer.status >= 500 or answer.status == 0 or not answer.whole
