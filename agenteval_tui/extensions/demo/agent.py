"""The kind `demo`: the bundled agent `demo-rules`, a rule-based program, not an AI model."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence

from agenteval_tui.agents.base import (
    SIMULATED_USER,
    AgentEvent,
    AgentRequest,
    AgentSetup,
    CheckReport,
    Done,
    Failed,
    TextDelta,
    ToolArgumentsDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolOutcome,
    ToolSpec,
    TurnEnded,
    UsageReported,
)
from agenteval_tui.agents.http.exported_request import WrittenRequest
from agenteval_tui.agents.options import options_for, read_options
from agenteval_tui.agents.tools.changes import WITHOUT, tool_changes
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import canonical_json
from agenteval_tui.extensions.demo.options import DemoOptions
from agenteval_tui.extensions.demo.shop.assistant import VERSIONS, AssistantV1
from agenteval_tui.extensions.demo.shop.customer import next_message
from agenteval_tui.extensions.demo.shop.database import open_shop
from agenteval_tui.extensions.demo.shop.protocol import Call, Talk, Turn
from agenteval_tui.extensions.demo.shop.seeded_random import Dice
from agenteval_tui.extensions.demo.shop.tools import TOOLS, call_tool
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import ErrorCode, Message, RunError, ToolCall, Transcript, Usage

# Seconds at pace 1, so that a person can watch.
_THINKING = 0.09
_PER_WORD = 0.011
_PER_TOOL = 0.06
_OTHER = 1_000_003  # between the seeds of two chances


class DemoAgent:
    """Reads the customer's words by rules, calls the shop's tools, and answers. Each run has its own database.

    The agent first repeats the earlier calls of the conversation in that database: an order that the agent cancelled
    two turns ago is cancelled. If the conversation ends with the results of tools, the agent uses these results and
    doesn't call the tools again. If the context removes a tool, the agent doesn't call it, and the program gets the
    answer that there is no such tool.
    The request's seed decides what differs between repetitions. Usage is counted in words, so it is approximate;
    the cost is 0. Recordings set `sleep` and `clock`, because their times must not depend on the machine.
    """

    options_model = DemoOptions

    def __init__(
        self,
        setup: AgentSetup,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._setup = setup
        self._options = read_options(DemoOptions, setup.name, setup.config)
        self._sleep = sleep
        self._clock = clock

    async def offered_tools(self, request: AgentRequest) -> Sequence[ToolSpec]:
        """The shop's tools. The program only checks whether a tool exists."""
        changes = tool_changes(request.context)
        changes.check([spec.name for spec in TOOLS])
        return changes.offered(TOOLS)

    async def written_request(self, request: AgentRequest) -> WrittenRequest:
        """The same asked of `agenteval demo-server`, which lets the client call the tools."""
        options = options_for(request, self._setup, self._options)
        messages = to_openai_messages(Transcript(request.messages, request.tool_calls))
        without = tool_changes(request.context).withheld
        return WrittenRequest(
            "http://127.0.0.1:8137/v1/chat/completions",
            {},
            {
                "model": f"demo-rules-{options.version}",
                "messages": messages,
                **({WITHOUT: list(without)} if without else {}),
            },
            note="start `agenteval demo-server --port 8137`",
        )

    async def run(self, request: AgentRequest) -> AsyncIterator[AgentEvent]:
        """One conversation with the shop's assistant, or what the shop's customer says next in one."""
        options = options_for(request, self._setup, self._options)
        seed = request.seed if options.seed is None else options.seed
        brief = request.context.get(SIMULATED_USER)
        # It plays the simulated user of a test, and not the assistant.
        if isinstance(brief, Mapping):
            message = next_message(brief, request.messages, Dice(seed))
            async for event in self._stream(Turn(message), 0, options.pace, set()):
                yield event
            yield UsageReported(Usage(tokens(m.content for m in request.messages), tokens([message]), cost=0.0))
            yield Done("stop", "demo-rules customer")
            return
        version = VERSIONS[options.version]
        if not any(message.role == "user" for message in request.messages):
            yield Failed(
                RunError(
                    "bad_request",
                    "the conversation has no user message",
                    "give the test a prompt",
                    ErrorCode.NO_PROMPT,
                )
            )
            return
        try:
            offered = {spec.name for spec in await self.offered_tools(request)}
        except AgentevalError as error:
            yield Failed(RunError.told("tool", error.what, error.fix))
            return
        # A conversation that is continued: the program is run up to where it was, with the results that it got.
        rounds = made_since(request.messages, request.tool_calls)
        talk, turn, remaining = take_up(lambda chance: _talk(version, seed, chance, request), rounds)
        read_words = tokens(message.content for message in request.messages)
        shop = open_shop()
        used_ids = {call.id for call in request.tool_calls}
        try:
            for call in request.tool_calls:
                # The database is made anew for each run: what was changed in it before is changed again.
                if call.status == "ok" and isinstance(call.arguments, dict):
                    call_tool(shop, call.name, call.arguments)
            key = 0
            while True:
                outcomes = [
                    known_outcome(call.name, remaining) or (None if call.name in offered else missing_tool(call))
                    for call in turn.calls
                ]
                new = [call for call, tool_outcome in zip(turn.calls, outcomes, strict=True) if tool_outcome is None]
                # A turn whose calls are all known was said before.
                if new or not turn.calls:
                    spoken = tokens([turn.text, *(canonical_json(dict(call.arguments)) for call in new)])
                    async for event in self._stream(Turn(turn.text, tuple(new)), key, options.pace, used_ids):
                        yield event
                    yield UsageReported(Usage(read_words, spoken, cost=0.0))
                    read_words += spoken
                if not turn.calls:
                    break
                for shop_call in new:
                    began = self._clock()
                    await self._pause(_PER_TOOL, options.pace)
                    outcome = call_tool(shop, shop_call.name, shop_call.arguments)
                    outcomes[outcomes.index(None)] = outcome
                    read_words += tokens([outcome.text])
                    yield ToolCallFinished(key, outcome.text, outcome.error, (self._clock() - began) * 1000)
                    key += 1
                turn = talk.send(tuple(outcome for outcome in outcomes if outcome is not None))
            yield Done("stop", version.name)
        finally:
            talk.close()
            shop.close()

    async def check(self, thorough: bool = False) -> CheckReport:
        """It is always there: it is a part of this program."""
        return CheckReport(True, f"demo-rules {self._options.version}: a rule-based program, not an AI model", 0.0)

    async def close(self) -> None:
        """Nothing is open between runs."""

    async def _stream(self, turn: Turn, key: int, pace: float, used_ids: set[str]) -> AsyncIterator[AgentEvent]:
        await self._pause(_THINKING, pace)
        for piece in chunks(turn.text):
            yield TextDelta(piece)
            await self._pause(_PER_WORD, pace)
        for number, call in enumerate(turn.calls, key):
            yield ToolCallStarted(number, _free_id(used_ids), call.name)
            for piece in chunks(arguments_json(call)):
                yield ToolArgumentsDelta(number, piece)
                await self._pause(_PER_WORD, pace)
        yield TurnEnded()

    async def _pause(self, seconds: float, pace: float) -> None:
        # Also at pace 0 others get their turn: a hundred of these may run in one loop.
        await self._sleep(seconds * pace)


def _talk(version: type[AssistantV1], seed: int, chance: int, request: AgentRequest) -> Talk:
    """The assistant's program for a request; with another `chance` than 0 chance decides otherwise."""
    return version(Dice(seed + chance * _OTHER)).answer(request.messages)


def missing_tool(call: Call) -> ToolOutcome:
    """What the program is told of a call to a tool that was taken away."""
    return ToolOutcome(f"there is no tool {call.name!r}", error=True)


def _free_id(used_ids: set[str]) -> str:
    """The next id that no call of the conversation has; it is taken then."""
    number = len(used_ids) + 1
    while f"call_{number}" in used_ids:
        number += 1
    used_ids.add(f"call_{number}")
    return f"call_{number}"


def arguments_json(call: Call) -> str:
    """The call's arguments as sent on the wire."""
    return canonical_json(dict(call.arguments))


def chunks(text: str) -> list[str]:
    """A text in words with the white space behind them, as it is streamed."""
    return re.findall(r"\S+\s*|\s+", text)


def tokens(texts: Iterable[str]) -> int:
    """How many words there are: an approximation of tokens."""
    return sum(len(text.split()) for text in texts)


Made = list[tuple[str, ToolOutcome]]
"""The calls of one message: the tool's name, and what it gave."""
_CHANCES = 64  # ways that are tried until one is the recorded one


def made_since(messages: Sequence[Message], calls: Sequence[ToolCall]) -> list[Made]:
    """The calls that were made since the last user message, message by message; those without a result are none."""
    last = max((number for number, message in enumerate(messages) if message.role == "user"), default=0)
    answers = {message.tool_call: message.content for message in messages if message.tool_call is not None}
    rounds: list[Made] = []
    for message in messages[last:]:
        own = [(calls[at], answers.get(at, calls[at].result)) for at in message.tool_calls if at < len(calls)]
        outcomes = [(call.name, ToolOutcome(text, call.status == "error")) for call, text in own if text is not None]
        if outcomes:
            rounds.append(outcomes)
    return rounds


def take_up(start: Callable[[int], Talk], rounds: Sequence[Made]) -> tuple[Talk, Turn, Made]:
    """The assistant's program, told what was called, with the turn that comes next. `start` gives the program; its
    number is one of chance, 0 for the one that is meant.

    Chance had a say in which calls were made, so the first number is taken with which the program makes them. Where
    there is none (a call was left out, or is not what the program does), the calls that are left are given back: their
    results are for whatever call of that name comes.
    """
    for number in range(_CHANCES if rounds else 1):
        talk = start(number)
        turn = _told(talk, rounds)
        if turn is not None:
            return talk, turn, []
        talk.close()
    talk = start(0)
    return talk, next(talk), [call for calls in rounds for call in calls]


def _told(talk: Talk, rounds: Sequence[Made]) -> Turn | None:
    turn = next(talk)
    for calls in rounds:
        if [call.name for call in turn.calls] != [name for name, _ in calls]:
            return None
        try:
            turn = talk.send(tuple(outcome for _, outcome in calls))
        except StopIteration:
            return None
    return turn


def known_outcome(name: str, outcomes: Made) -> ToolOutcome | None:
    """The recorded outcome of the first call of that name, which is taken out of `outcomes`; None: there is none."""
    for place, (tool_name, outcome) in enumerate(outcomes):
        if tool_name == name:
            del outcomes[place]
            return outcome
    return None
