"""The newest recorded run of each planned run, and what answers its requests when it is made again."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from itertools import chain
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.http.proxies import is_local
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.recording.cassette import Cassette, Volatile
from agenteval_tui.agents.recording.exchange import Exchange
from agenteval_tui.agents.recording.matching import varying_parts
from agenteval_tui.agents.recording.mcp_requests import is_mcp
from agenteval_tui.agents.recording.playback import CassetteIndex, Playback, VaryingRequests
from agenteval_tui.agents.registry import is_model
from agenteval_tui.agents.secrets import PROGRAMS
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.ids import content_hash, new_id
from agenteval_tui.core.outcomes import DECIDED
from agenteval_tui.history.records import RunFilter, RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.around.execution import services_of
from agenteval_tui.runs.fork.model import ForkOrigin
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.tapes import replay_price, tape_of
from agenteval_tui.transcripts.model import ToolCall
from agenteval_tui.transcripts.model_request import ModelRequests

DOUBLE = re.compile(r"test|function:.*|(?:fake|mock|dummy|stub)\b.*", re.IGNORECASE)
"""The names of models that frameworks bring for tests, and that ask no server, such as `TestModel` of pydantic-ai."""
_ENDED = (*DECIDED, "error", "needs_review")
_EXECUTIONS = 50  # of a suite that are looked through for recorded runs
_TAPES = 256  # that are kept in memory
_OTHERS = 100  # recorded runs that are asked for what is not on a run's own tape
_LOOKED_AT = 10  # recorded runs of an agent
_TWINS = 2  # recordings of the same test that are compared to find what varies


class RecordedRun(Struct, frozen=True):
    """A planned run, as the suite has it now, and the run of it that is recorded. `twins`: further recorded runs of
    the same test by the same configuration of the agent."""

    plan: RunPlan
    row: RunRow
    twins: tuple[RunRow, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether it did not pass."""
        return self.row.status != "passed"

    def again(self, *, live: bool) -> RunPlan:
        """The plan of the run that is made again. `live`: what it pays for is kept until it ends."""
        question = content_hash([self.row.id, "live"])[:16] if live else ""
        origin = ForkOrigin(self.row.id, 0, purpose="change", question=question)
        ref = replace(self.plan.ref, run=new_id(), gate=None)
        return replace(self.plan, ref=ref, stop=None, fork=origin)


class RecordedRuns(Struct, frozen=True):
    """The recorded runs of a plan, those that failed first; and the planned runs of which none is recorded."""

    runs: tuple[RecordedRun, ...]
    missing: tuple[RunPlan, ...]


def is_of_program(run: RunPlan) -> bool:
    """Whether the code of the run's agent is edited here: that of a program, or of a server that is a service."""
    kind = run.agent.config.get("kind")
    return kind in PROGRAMS or (kind == "http" and _is_here(run.agent.config.get("url")) and bool(services_of(run)))


def _is_here(url: object) -> bool:
    try:
        return is_local(urlsplit(str(url)).hostname or "")
    except ValueError:
        return False


def recorded_runs(store: Store, runs: Sequence[RunPlan]) -> RecordedRuns:
    """The newest ended run of each planned run, by suite, test, variation, row, repetition and agent. Runs of agents
    that are not programs are left out: their code is not here."""
    planned = {_key_of_plan(run): run for run in runs if is_of_program(run)}
    rows: dict[tuple[str, ...], RunRow] = {}
    of_test: dict[tuple[str, ...], list[RunRow]] = {}
    for suite_key in dict.fromkeys(run.suite_key for run in planned.values()):
        unrecorded = {key for key in planned if key[0] == suite_key}
        executions = store.execution_ids(RunFilter(suite_key=suite_key, counted=True))[:_EXECUTIONS]
        for number, execution in enumerate(store.execution_rows(executions), 1):
            for row in store.runs_of_execution(execution.id):
                key = _key(row)
                if key not in planned or row.status not in _ENDED:
                    continue
                # Executions come newest first: the first row of a key is its newest run.
                rows.setdefault(key, row)
                unrecorded.discard(key)
                of_test.setdefault(key[:4], []).append(row)
            # A few executions more than needed: the twins come from them.
            if not unrecorded and number > _TWINS:
                break
    programs = store.programs_of({row.execution_id for others in of_test.values() for row in others})
    code = {
        row.id: programs.get(row.execution_id, {}).get(row.agent, "") for others in of_test.values() for row in others
    }
    recorded = [
        RecordedRun(run, rows[key], _twins(rows[key], of_test[key[:4]], code))
        for key, run in planned.items()
        if key in rows
    ]
    return RecordedRuns(_most_telling_first(recorded), tuple([run for key, run in planned.items() if key not in rows]))


def _most_telling_first(runs: Sequence[RecordedRun]) -> tuple[RecordedRun, ...]:
    """Those that failed come first; among them, and among the others, a run of each test before a second one of any:
    repetitions of a test mostly say the same."""
    places: list[tuple[bool, int, int]] = []
    earlier: Counter[tuple[object, ...]] = Counter()
    for place, run in enumerate(runs):
        alike = (run.failed, *_test_of(run), run.row.agent)
        places.append((not run.failed, earlier[alike], place))
        earlier[alike] += 1
    return tuple([runs[place] for _, _, place in sorted(places)])


def _twins(row: RunRow, others: Iterable[RunRow], code: Mapping[str, str]) -> tuple[RunRow, ...]:
    """Runs of the same agent with the same code: what other code brought does not vary by itself. `code`: a hash of it
    by the run's id, where it is known."""
    alike = [other for other in others if other.id != row.id and other.agent_version == row.agent_version]
    return tuple([other for other in alike if code[other.id] == code[row.id]][:_TWINS])


def _key(row: RunRow) -> tuple[str, ...]:
    return (
        row.suite_key,
        row.test_id,
        row.variation,
        row.row_key or str(row.row),
        str(row.repetition),
        row.agent,
    )


def _key_of_plan(run: RunPlan) -> tuple[str, ...]:
    ref = run.ref
    return (run.suite_key, ref.test, ref.variation, ref.row_key or str(ref.row), str(ref.repetition), ref.agent)


class Playbacks:
    """The answers for a run, begun anew by each attempt."""

    def __init__(
        self,
        index: Callable[[], CassetteIndex],
        others: Callable[[], Iterable[CassetteIndex]],
        *,
        is_same_code: bool = False,
    ) -> None:
        self._index = index
        self._others = others
        self._is_same_code = is_same_code
        self._begun: list[Playback] = []
        self._varying: list[VaryingRequests] = []

    def begin(self) -> Playback:
        """Those for one more attempt."""
        index = self._index()
        varying = VaryingRequests(index.exchanges) if self._is_same_code else None
        self._varying += [] if varying is None else [varying]
        self._begun.append(Playback(index, others=self._others, varying=varying))
        return self._begun[-1]

    @property
    def rules(self) -> tuple[Volatile, ...]:
        """What was seen to vary in the requests of the same code."""
        return tuple(dict.fromkeys(rule for varying in self._varying for rule in varying.rules))

    @property
    def answered(self) -> int:
        """How many requests they answered."""
        return sum(playback.answered for playback in self._begun)


class Tapes:
    """The tapes of recorded runs, each read when its run is made again."""

    def __init__(self, store: Store, cost: Cost, *, tools_recorded: bool = False) -> None:
        self._store = store
        self._cost = cost
        self._tools_recorded = tools_recorded
        # Whether a run used a model, and nothing was recorded; asked at each save, and a transcript is read for it.
        self._unrecorded: dict[str, bool] = {}
        self._indexes: OrderedDict[str, CassetteIndex | None] = OrderedDict()
        self._rules: dict[str, tuple[Volatile, ...]] = {}  # what varies, as runs of the same code have shown
        self._runs: dict[str, RecordedRun] = {}
        self._of_others: dict[tuple[object, ...], CassetteIndex] = {}

    def know(self, runs: Iterable[RecordedRun]) -> None:
        """From now on, each of these recorded runs may answer for the others, too."""
        new = {run.row.id: run for run in runs if run.row.id not in self._runs}
        if new:
            self._runs.update(new)
            # Joined without the tapes of the new ones.
            self._of_others.clear()

    def index(self, run: RecordedRun) -> CassetteIndex | None:
        """What answers the requests of the run; None: nothing was recorded."""
        name = run.row.recorded
        if name not in self._indexes:
            self._indexes[name] = self._read(run)
            while len(self._indexes) > _TAPES:
                self._indexes.popitem(last=False)
        self._indexes.move_to_end(name)
        return self._indexes[name]

    def playbacks(self, run: RecordedRun, *, is_same_code: bool = False) -> Playbacks:
        """What answers the requests of the run when it is made again. `is_same_code`: by the code that was recorded."""
        return Playbacks(
            lambda: self.index(run) or CassetteIndex(Cassette()), lambda: self._others(run), is_same_code=is_same_code
        )

    def learn(self, run: RecordedRun, playbacks: Playbacks) -> None:
        """From now on, leave out of the run's requests what varied in those that these answered."""
        if playbacks.rules:
            name = run.row.recorded
            self._rules[name] = (*self._rules.get(name, ()), *playbacks.rules)
            self._indexes.pop(name, None)

    def without_tools(self, runs: Iterable[RecordedRun]) -> tuple[str, ...]:
        """The agents of other kinds than `python` in whose newest recorded runs no MCP server was called."""
        programs = [run for run in runs if run.plan.agent.config.get("kind") != "python"]
        by_agent = grouped((run.row.agent, run) for run in programs)
        tapes = {name: [self._tape(run.row) for run in own[:_LOOKED_AT]] for name, own in by_agent.items()}
        return tuple(
            [
                name
                for name, own in tapes.items()
                if not any(is_mcp(exchange.question) for tape in own if tape is not None for exchange in tape.exchanges)
            ]
        )

    def tool_calls(self, run: RecordedRun) -> tuple[ToolCall, ...] | None:
        """The calls of the program's own tools that get their recorded results; None: all of its tools run. A tool that
        asks models, as a sub-agent does, is code that is checked."""
        if not self._tools_recorded:
            return None
        if run.plan.agent.config.get("kind") != "python":
            # What such a program calls is answered by the shims of its MCP servers, as far as these were recorded.
            tape = self._tape(run.row)
            is_recorded = tape is not None and any(is_mcp(exchange.question) for exchange in tape.exchanges)
            return () if is_recorded else None
        transcript = self._store.transcript(run.row.id)
        requests = transcript.requests or ModelRequests()
        sub_agents = {line.called_by for line in requests.lines}
        own = [
            call
            for place, call in enumerate(transcript.tool_calls)
            if call.result is not None and call.status == "ok" and place not in sub_agents
        ]
        names = {call.id for call in transcript.tool_calls}
        return (*own, *(call for call in _called_in(requests) if call.id not in names))

    def needs_model(self, run: RecordedRun) -> bool:
        """Whether the run asked a model, as far as is known, and none of that was recorded: from its beginning, it
        needs the model again. So does one whose user is played by a model, and one of a server of which nothing is
        recorded: a container, say, gets its keys from elsewhere, and would ask."""
        if run.plan.user is not None and is_model(run.plan.user.agent.config.get("kind")):
            return True
        name = run.row.id
        if name not in self._unrecorded:
            self._unrecorded[name] = not self._store.tape(run.row.recorded) and self._used_model(run)
        return self._unrecorded[name] and not run.plan.agent.config.get("cassette")

    def _used_model(self, run: RecordedRun) -> bool:
        model = self._store.transcript(run.row.id).model
        if DOUBLE.fullmatch(model) and not run.row.cost:
            return False
        if run.plan.agent.config.get("kind") == "http":
            return True
        return bool(model or run.row.tokens or run.row.cost)

    def price(self, run: RecordedRun, request: int = 1) -> float | None:
        """What the model's answers from that request (from 1) on have cost when they were recorded, in US dollars."""
        index = self.index(run)
        if index is None:
            return run.row.cost
        return replay_price(_of_models(index.exchanges)[request - 1 :], self._cost).cost

    def _read(self, run: RecordedRun) -> CassetteIndex | None:
        tape = self._tape(run.row)
        if tape is None:
            return None
        exchanges = tape.exchanges if self._tools_recorded else tuple(_of_models(tape.exchanges))
        varies = tape.volatile or self._varying(exchanges, run.twins)
        varies = tuple(dict.fromkeys((*varies, *self._rules.get(run.row.recorded, ()))))
        recorded_on = None if run.row.started_ms is None else date.fromtimestamp(run.row.started_ms / 1000)
        return CassetteIndex(Cassette(exchanges, varies), recorded_on=recorded_on)

    def _others(self, run: RecordedRun) -> Iterator[CassetteIndex]:
        """What answers a request that is not on the run's own tape: other recorded runs of its test, then of its
        agent."""
        of_agent = [other for other in self._runs.values() if other.row.agent == run.row.agent]
        of_test = [other for other in of_agent if _test_of(other) == _test_of(run)]
        twins = {row.id: row for row in run.twins} | {other.row.id: other.row for other in of_test}
        # Nearest first, and lazily: most requests that a run's own tape lacks are on a tape of the same test.
        yield self._joined((_test_of(run), run.row.agent), twins.values(), run)
        rest = [other.row for other in of_agent if _test_of(other) != _test_of(run)]
        yield self._joined((run.row.suite_key, run.row.agent), rest, run)

    def _joined(self, name: tuple[object, ...], rows: Iterable[RunRow], run: RecordedRun) -> CassetteIndex:
        """The tapes of several runs as one, which are compared as that of the run is."""
        own = self.index(run)
        # Part of the key: a request matches by what varies in the run that asks, and by the day of its recording.
        varies, day = ((), None) if own is None else (own.matcher.volatile, own.recorded_on)
        key = (name, varies, day)
        if key not in self._of_others:
            tapes = [tape for row in list(rows)[:_OTHERS] if (tape := self._tape(row)) is not None]
            exchanges = [exchange for tape in tapes for exchange in _of_models(tape.exchanges)]
            self._of_others[key] = CassetteIndex(Cassette(tuple(exchanges), varies), recorded_on=day)
        return self._of_others[key]

    def _tape(self, row: RunRow) -> Cassette | None:
        try:
            return tape_of(self._store, row)
        except AgentevalError:
            return None

    def _varying(self, exchanges: Sequence[Exchange], twins: Sequence[RunRow]) -> tuple[Volatile, ...]:
        """What the same program asks anew each time."""
        asked = [exchange.question for exchange in _of_models(exchanges)]
        tapes = [tape for row in twins if (tape := self._tape(row)) is not None]
        rules = [varying_parts(asked, [exchange.question for exchange in _of_models(tape.exchanges)]) for tape in tapes]
        return tuple(dict.fromkeys(chain.from_iterable(rules)))


def _called_in(requests: ModelRequests) -> Iterator[ToolCall]:
    """The calls in what models were asked that have a result there: those of sub-agents are nowhere else."""
    asked = {
        str(call.get("id")): call["function"]
        for message in requests.messages
        for call in message.get("tool_calls") or ()
        if isinstance(call.get("function"), Mapping)
    }
    for message in requests.messages:
        function, result = asked.get(str(message.get("tool_call_id"))), message.get("content")
        if function is not None and isinstance(result, str) and not message.get("is_error"):
            yield ToolCall(str(message["tool_call_id"]), str(function.get("name")), function.get("arguments"), result)


def _test_of(run: RecordedRun) -> tuple[str, ...]:
    return _key(run.row)[:4]


def _of_models(exchanges: Iterable[Exchange]) -> list[Exchange]:
    return [exchange for exchange in exchanges if not is_mcp(exchange.question)]
