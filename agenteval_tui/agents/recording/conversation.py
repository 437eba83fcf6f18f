"""What a program did, put together from what it asked of models: one transcript, each message once.

A request holds the conversation until then, as a rule all of it. So of each request only what is new is taken. Requests
that continue one another are a conversation; a program may have several (agents that ask other agents). The messages
of the second and further ones have a name: "agent 2".
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.models.hosted_calls import HostedCall
from agenteval_tui.agents.models.requests import Request, RequestReader, first_words
from agenteval_tui.agents.recording.exchange import Exchange
from agenteval_tui.agents.recording.mcp_requests import ToolRequest, tool_request, tool_requests
from agenteval_tui.agents.recording.protocols import Reply, read_reply, read_request
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.agents.usage import UsageSum
from agenteval_tui.core.common_prefix import SharedStarts, common_start
from agenteval_tui.core.document import extended
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import cut
from agenteval_tui.transcripts.call_arguments import decode_arguments
from agenteval_tui.transcripts.codec import from_openai_messages, read_attachments
from agenteval_tui.transcripts.model import Note, Step, Timing, Transcript, Usage
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, RequestLine, RequestPart, message_key

_Message = dict[str, Any]
SHOW_S = 0.2
"""The fewest seconds between two transcripts."""
_SHARE = 10  # each transcript is built from all exchanges, which may take a tenth of the time


class Asked(Struct, frozen=True):
    """A request to a model, with its answer. Times are milliseconds since the run started; `first_ms`: when
    the answer started. `agent`: its name, where whoever recorded it knows that."""

    started_ms: float
    ended_ms: float
    first_ms: float
    request: Request
    reply: Reply
    agent: str = ""
    unrecorded: frozenset[RequestPart] = frozenset()
    """What of the request whoever recorded it could not see."""


class UsedTool(HostedCall, frozen=True, kw_only=True):
    """A call of a tool that no model made. `result` and `took_ms` are None if they are not known."""

    started_ms: float
    took_ms: float | None = None


class _Turn(Struct):
    """A request with its answer. `talk`: the conversation that it belongs to; `answer`: the message that it led to.
    `known`: how many messages the conversation then had. `before`: the place of the turn before it there."""

    asked: Asked
    talk: _Talk
    answer: _Message | None
    known: int
    before: int | None
    without: tuple[_Message, ...] = ()
    """Messages of a request that were searched for the answer in vain."""


class _Talk(Struct, eq=False):
    """A conversation: what was asked last, and what is known of it by now, each as keys (`message_key`). `first`: its
    first request. `callers`: the tool calls that were open when it started, as (conversation, key). `beside`: it was
    asked beside another conversation, with all that was known there."""

    number: int
    first: Asked
    callers: tuple[tuple[_Talk, str], ...] = ()
    system: str = ""
    conversation: str = ""
    """The id that the server has for it."""
    beside: bool = False
    asked: list[str] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    answer: str = ""
    ended_ms: float = 0.0
    open_calls: list[str] = field(default_factory=list)
    """Calls whose results were not told yet, by their ids in the transcript."""
    failed: bool = False
    told: _Message | None = None
    """The message of the last answer; None where there was none."""
    turn: int | None = None
    """The place of its last turn."""


def transcript_of(exchanges: Sequence[Exchange]) -> Transcript:
    """The transcript of what one run of a program asked. Times are milliseconds since the run started. A request that
    was made again because it failed counts once; its tokens count each time."""
    reader = RequestReader()
    model_calls = [asked for exchange in exchanges if (asked := asked_of(exchange, reader)) is not None]
    return transcript_of_asked(model_calls, tool_requests(exchanges))


def asked_of(exchange: Exchange, reader: RequestReader | None = None) -> Asked | None:
    """The request to a model, and its answer; None for one of another kind, or that can't be read. `reader` has read
    the requests before it."""
    if tool_request(exchange) is not None:
        return None
    request = read_request(exchange.question, reader)
    if request is None:
        return None
    reply = read_reply(exchange.question, exchange.answer)
    reply = reply if reply.model else replace(reply, model=request.model)
    first = exchange.started_ms + exchange.answer.at_ms[0] if exchange.answer.at_ms else exchange.ended_ms
    return Asked(exchange.started_ms, exchange.ended_ms, first, request, reply)


def transcript_of_asked(model_calls: Iterable[Asked], tools: Iterable[UsedTool | ToolRequest] = ()) -> Transcript:
    """The same of requests that somebody else has read, of calls that the program made by itself, and of those that a
    tool's server saw, whoever made them."""
    assembly = _Assembly()
    # By their starts: requests of agents that work beside each other end in any order.
    in_order: list[Asked | UsedTool | ToolRequest] = sorted([*model_calls, *tools], key=lambda entry: entry.started_ms)
    for entry in in_order:
        if isinstance(entry, Asked):
            assembly.take(entry)
        elif isinstance(entry, UsedTool):
            assembly.use(entry)
        else:
            assembly.serve(entry)
    return assembly.transcript()


class _Messages(NamedTuple):
    """Those of a request, with the key of each (`message_key`)."""

    messages: tuple[_Message, ...]
    keys: list[str]


class _Once:
    """Messages of requests, each once: a conversation is sent again with each request, and what is known of a message
    is found by its identity."""

    def __init__(self) -> None:
        self._requests = SharedStarts[_Messages]()
        self._alike: dict[tuple[str, ...], list[tuple[_Message, str]]] = {}

    def of(self, messages: tuple[_Message, ...]) -> _Messages:
        return self._requests.of(messages, partial(self._continued, messages))

    def _continued(self, messages: tuple[_Message, ...], shared: int, earlier: _Messages | None) -> _Messages:
        # Programs leave out the oldest messages: what is at no request's start may be in one all the same.
        new = [self._message(message) for message in messages[shared:]]
        told, keys = earlier or ((), [])
        return _Messages((*told[:shared], *(entry[0] for entry in new)), [*keys[:shared], *(entry[1] for entry in new)])

    def _message(self, message: _Message) -> tuple[_Message, str]:
        calls = message.get("tool_calls")
        told = str(message.get("content") or "")
        answers = str(message.get("tool_call_id") or "")  # thousands of calls may have one and the same result
        alike = self._alike.setdefault((message["role"], told, answers, str(calls) if calls else ""), [])
        for entry in alike:
            if entry[0] == message:
                return entry
        alike.append((message, message_key(message)))
        return alike[-1]


class _Assembly:
    def __init__(self) -> None:
        self._messages: list[_Message] = []
        self._talks: list[_Talk] = []
        self._steps: list[Step] = []
        self._usage = UsageSum()
        self._first_token: float | None = None
        self._ended = 0.0
        self._last: tuple[float, _Talk, Reply] | None = None
        self._times: dict[str, tuple[float, float]] = {}  # call -> when it started, how long it took
        self._retries = 0
        self._notes: list[Note] = []
        self._ids: dict[str, int] = {}  # id of a call -> the conversation that made it
        self._named: dict[tuple[int, str], str] = {}  # the program's id for a call that came without one -> our id
        self._turns = 0
        self._unnamed = 0  # calls without an id
        self._early: list[UsedTool] = []  # before any request: told after what was asked
        self._served: list[ToolRequest] = []  # by the servers of tools, since the last request
        self._functions: dict[str, list[Mapping[str, Any]]] = {}  # call -> as it was made, each time
        self._seen: dict[str, ToolRequest] = {}  # call -> how its tool's server saw it
        self._results: dict[str, str] = {}  # call -> its result, as a model was told it
        self._turns_made: list[_Turn] = []
        self._once = _Once()
        self._owners: dict[int, int] = {}  # id of a message -> the place of the turn that it came with

    def take(self, model_call: Asked) -> None:
        """One request with its answer, in the order of the requests."""
        # What tools' servers saw until now was called for by earlier answers.
        self._settle()
        messages, keys = self._once.of(model_call.request.messages)
        request = replace(model_call.request, messages=messages)
        model_call = replace(model_call, request=request)
        # Steps: find the conversation, tell what is new in it, then the answer.
        talk, new, again = self._placed(model_call, request, keys)
        self._name_calls(talk, request)
        if again:
            self._retries += 1
            self._forget(talk)  # the program did not use that answer
        else:
            if request.system and request.system != talk.system:
                self._add(talk, {"role": "system", "content": request.system})
            for message in new:
                if message["role"] == "tool":
                    self._time(talk, model_call.started_ms)
                self._add(talk, message)
        talk.system = request.system or talk.system
        # With `previous` a request has only what is new: the server keeps the rest.
        talk.asked, talk.known = keys, list(keys) if not request.previous else [*talk.known, *keys]
        talk.ended_ms = model_call.ended_ms
        self._tell_early()
        self._answered(talk, model_call, model_call.reply)
        self._turns_made.append(_Turn(model_call, talk, talk.told, len(talk.known), talk.turn))
        talk.turn = len(self._turns_made) - 1

    def use(self, tool: UsedTool) -> None:
        """A call that the program made by itself."""
        # A transcript begins with the prompt: a call before the first request waits for it.
        self._early.append(tool)
        if self._messages:
            self._tell_early()

    def serve(self, tool: ToolRequest) -> None:
        """A call that a tool's server saw. Most often a model made it, and is told its result later."""
        self._served.append(tool)
        for began, ended in tool.rounds:
            self._steps.append(Step(f"{tool.name}: input required", began, max(0.0, ended - began)))

    def _settle(self) -> None:
        """Which calls of models the servers of tools saw: those of equal arguments, then those of the same name (the
        program may have changed the arguments). The program made all others by itself."""
        remaining, self._served = self._served, []
        # Exact matches first, for all of them: a call of the same name must not take the place of the right one.
        for equal in (True, False):
            served, remaining = remaining, []
            for tool in served:
                # Of a call of `order` and one of `find_order`, the shorter name is that of the tool `order`.
                call = min(
                    (open_call for open_call in self._open() if _is_of(tool, self._function(open_call), equal=equal)),
                    key=lambda open_call: len(self._tool_name(open_call)),
                    default="",
                )
                if call:
                    self._seen[call] = tool
                else:
                    remaining.append(tool)
        for tool in remaining:
            took = tool.ended_ms - tool.started_ms
            self.use(extended(UsedTool, tool, id="", took_ms=took))

    def _open(self) -> list[str]:
        """Calls that models made and no server of a tool saw, whose results are not told yet."""
        return [call for talk in self._talks for call in talk.open_calls if call not in self._seen]

    def _function(self, call: str) -> Mapping[str, Any]:
        """A call's tool and arguments, as a program wrote them: one or both may be missing."""
        # Servers that have no ids of their own give the same one again: the last call counts.
        return (self._functions.get(call) or [{}])[-1]

    def _tool_name(self, call: str) -> str:
        """The name of a call's tool; where it has none, "tool"."""
        return str(self._function(call).get("name") or "tool")

    def _tell_early(self) -> None:
        early, self._early = self._early, []
        for tool in early:
            self._add_used(tool)

    def _add_used(self, tool: UsedTool) -> None:
        self._unnamed += not tool.id
        own = self._own_id(0, tool.id or f"call_{self._unnamed}")
        call = {"id": own, "function": {"name": tool.name, "arguments": tool.arguments}}
        self._append({"role": "assistant", "content": "", "tool_calls": [call]})
        if tool.result is not None:
            message = {"role": "tool", "tool_call_id": own, "content": tool.result, "is_error": tool.failed}
            self._messages.append(message)
        if tool.took_ms is not None:
            self._clock(own, tool.started_ms, tool.took_ms)

    def transcript(self) -> Transcript:
        """All of it."""
        self._settle()
        self._tell_early()
        for key, tool in self._seen.items():
            if key not in self._results and tool.result is not None:  # no model was told: the program ended before
                self._messages.append({"role": "tool", "tool_call_id": key, "content": tool.result})
                self._clock(key, tool.started_ms, tool.ended_ms - tool.started_ms)
        lines = self._lines() if self._turns_made else {}
        self._name_speakers(lines)
        transcript = from_openai_messages(self._messages)
        calls = []
        for call in transcript.tool_calls:
            started, took = self._times.get(call.id, (None, None))
            tool_request = self._seen.get(call.id)
            status = "error" if tool_request is not None and tool_request.failed else call.status
            calls.append(replace(call, started_ms=started, duration_ms=took, status=status))
        final, model, finish = transcript.final_output, "", ""
        if self._last is not None:
            _, talk, reply = self._last
            model, finish = reply.model, reply.finish_reason
            # The answer of the run is that of the conversation that waited for the others, whatever came last.
            final = str((talk.told or {}).get("content") or "") or final
            if reply.error:
                self._notes.append(Note("model_error", reply.error))
        if self._retries:
            self._notes.append(Note("asked_again", count(self._retries, "request")))
        return replace(
            transcript,
            tool_calls=tuple(calls),
            final_output=final,
            model=model,
            finish_reason=finish,
            usage=self._usage.total,
            timing=Timing(self._first_token, self._ended or None, tuple(self._steps)),
            notes=(*self._notes, *self._usage.notes),
            requests=self._requests(lines, transcript) if self._turns_made else None,
        )

    def _requests(self, lines: Mapping[_Talk, _Line], transcript: Transcript) -> ModelRequests:
        places = {id(message): place for place, message in enumerate(self._messages)}
        requests = [
            extended(
                ModelRequest,
                turn.asked.request,
                number=number,
                line=lines[turn.talk].number,
                model=turn.asked.request.model or turn.asked.reply.model,
                previous=turn.asked.request.previous or turn.asked.request.conversation,
                cached_tokens=turn.asked.reply.usage.cached_tokens,
                error=turn.asked.reply.error,
                answer=None if turn.answer is None else places.get(id(turn.answer)),
                input_tokens=turn.asked.reply.usage.input_tokens,
            )
            for number, turn in enumerate(self._turns_made, 1)
        ]
        calls = {call.id: number for number, call in enumerate(transcript.tool_calls)}
        tables = ModelRequests.of(requests, (), {part for turn in self._turns_made for part in turn.asked.unrecorded})
        request_lines = [
            RequestLine(line.name, line.about, calls.get(line.caller), self._used_in(line, tables))
            for line in sorted(set(lines.values()), key=lambda line: line.number)
        ]
        return replace(tables, lines=tuple(request_lines))

    def _used_in(self, line: _Line, tables: ModelRequests) -> int | None:
        """The first request of another line that has the last answer of this one, where no call brought it there."""
        own = max(
            number
            for number, request_reference in enumerate(tables.references, 1)
            if request_reference.line == line.number
        )
        answer = self._turns_made[own - 1].asked.reply.message
        text = str((answer or {}).get("content") or "").strip()
        if line.number == 1 or line.caller or len(text) < _TELLING:
            return None
        # Looked for in the tables, where each text is once, and not in each request.
        systems = {place for place, system in enumerate(tables.systems) if text in system}
        places = [
            place
            for place, message in enumerate(tables.messages)
            if message["role"] != "assistant" and text in str(message.get("content") or "")
        ]
        for number, request_reference in enumerate(tables.references[own:], own + 1):
            in_messages = any(first <= place < end for first, end in request_reference.messages for place in places)
            if request_reference.line != line.number and (request_reference.system in systems or in_messages):
                return number
        return None

    def _lines(self) -> dict[_Talk, _Line]:
        """Which agent had each conversation.

        A conversation that begins anew is of an agent that had one before if it has the same system prompt and model,
        worked for the same call, and that one was never taken up again: an agent that forgot all it knew. Else it is
        another agent's: of a sub-agent that is called again, or of a program that asks something beside.
        """
        # Of several turns the last one written stays: so this has the first of each conversation, and `last` the last.
        began = {turn.talk: turn for turn in reversed(self._turns_made)}
        last = {turn.talk: turn for turn in self._turns_made}
        lines: dict[_Talk, _Line] = {}
        callers: set[str] = set()
        for talk in sorted(began, key=lambda talk: (began[talk].asked.started_ms, talk.number)):
            model_call = began[talk].asked
            over = {earlier: last[earlier].asked.ended_ms <= model_call.started_ms for earlier in lines}
            caller = self._caller(talk, last, callers)
            busy = {lines[earlier] for earlier, is_over in over.items() if not is_over}
            candidates = [
                earlier
                for earlier, is_over in over.items()
                if is_over
                and lines[earlier].caller == caller
                and lines[earlier] not in busy
                and (earlier.beside, earlier.conversation) == (talk.beside, talk.conversation)
                and _is_same_agent(last[earlier].asked, model_call)
                # A sub-agent that has given its answer is called anew.
                and (not caller or bool((last[earlier].answer or {}).get("tool_calls")))
            ]
            # The agent that has asked most is the one that can have forgotten something.
            if candidates:
                turns = Counter(lines[turn.talk] for turn in self._turns_made if turn.talk in lines)
                lines[talk] = lines[max(candidates, key=lambda talk: (turns[lines[talk]], last[talk].asked.ended_ms))]
                continue
            callers.add(caller)
            number = len(set(lines.values())) + 1
            tool = self._tool_name(caller) if caller else ""
            names = {line.name for line in lines.values()}
            name = model_call.agent or tool or f"agent {number}"
            name = next(
                candidate
                for candidate in (name, *(f"{name} {n}" for n in range(2, number + 2)))
                if candidate not in names
            )
            lines[talk] = _Line(number, name, _about(model_call.request), caller)
        return lines

    def _caller(self, talk: _Talk, last: Mapping[_Talk, _Turn], callers: Collection[str]) -> str:
        """The call that a conversation works for: one whose arguments have what it was asked, else one of any; "" for
        none. Of several, one whose result has the answer that it ended with, and that no other one works for. An
        agent's own call is none, unless that agent continues afterwards."""
        first = first_words(talk.first.request.messages)
        answer = str((last[talk].answer or {}).get("content") or "").strip()
        # Most programs pass a task on as it is. Where none is found in a call, each open one may be the one.
        fitting = [call for _, call in talk.callers if _has_task(self._function(call).get("arguments"), first)] or [
            call
            for calling, call in talk.callers
            if calling in last
            and (
                last[calling].asked.started_ms > talk.first.started_ms
                or not _is_same_agent(last[calling].asked, talk.first)
            )
        ]
        answered = [call for call in fitting if answer and answer in self._results.get(call, "")]
        calls = answered or fitting
        return next((call for call in calls if call not in callers), calls[-1] if calls else "")

    def _name_speakers(self, lines: Mapping[_Talk, _Line]) -> None:
        several = len(set(lines.values())) > 1
        for message in self._messages if several else ():
            turn = self._owners.get(id(message))
            line = None if turn is None else lines[self._turns_made[turn].talk]
            if (
                line is not None
                and message["role"] != "tool"
                and (line.number > 1 or not line.name.startswith("agent "))
            ):
                message["name"] = line.name

    def _placed(self, model_call: Asked, request: Request, keys: list[str]) -> tuple[_Talk, Sequence[_Message], bool]:
        """The conversation that a request belongs to, what is new in it, and whether it is only asked again."""
        messages = request.messages
        earlier = self._kept(request)
        if earlier is not None:
            again = keys == earlier.asked and earlier.failed
            return earlier, () if again else messages, again
        # In this order: asked again, continued, taken up at an earlier place, begun anew. The first needs least to be
        # assumed.
        best: tuple[int, _Talk, int] | None = None
        for talk in self._talks:
            if talk.conversation != request.conversation:
                continue
            over = talk.ended_ms <= model_call.started_ms
            # The same again while the first still runs is another agent's that asks the same.
            if keys == talk.asked and (talk.failed or over) and talk.system == request.system:
                return talk, (), True
            # A conversation whose answer is not there yet can't be continued.
            start = _continues(talk, keys) if over else None
            if start is not None and (best is None or start >= best[0]):
                best = start, talk, start
        if best is not None:
            return best[1], messages[best[2] :], False
        branch = self._branch(model_call, request, keys)
        if branch is not None:
            return branch[0], messages[branch[1] :], False
        self._summarised(model_call, request)
        # Of an agent that is known, its system prompt is told already.
        told_already = any(
            other.system == request.system and other.ended_ms <= model_call.started_ms and not other.open_calls
            for other in self._talks
        )
        talk = _Talk(
            len(self._talks) + 1,
            model_call,
            self._open_callers(model_call),
            request.system if told_already else "",
            request.conversation,
        )
        shared = max((common_start(other.known, keys) for other in self._talks), default=0)
        self._talks.append(talk)
        # What another conversation began with is there already; a prompt alone is told again.
        has_answer = any(key.startswith('["assistant"') for key in keys[:shared])
        return talk, messages[shared:] if has_answer else messages, False

    def _open_callers(self, model_call: Asked) -> tuple[tuple[_Talk, str], ...]:
        return tuple(
            (talk, call) for talk in self._talks if talk.ended_ms <= model_call.started_ms for call in talk.open_calls
        )

    def _kept(self, request: Request) -> _Talk | None:
        """The conversation that a request says it continues, of which the server keeps what was before. What was asked
        after the answer that it names was beside it."""
        # From the end, since most requests name the last answer.
        for place in range(len(self._turns_made) - 1, -1, -1) if request.previous else ():
            turn = self._turns_made[place]
            if turn.asked.reply.id == request.previous:
                later = [other for other in self._turns_made[place + 1 :] if other.talk is turn.talk]
                if any(other.answer is not None for other in later):
                    self._put_aside(place, turn)
                return turn.talk
        return next((talk for talk in self._talks if request.conversation == talk.conversation != ""), None)

    def _branch(self, model_call: Asked, request: Request, keys: list[str]) -> tuple[_Talk, int] | None:
        """The conversation that a request takes up where it was some turns ago, without those turns, and the first
        message that is new. What was asked in between was beside it (for a summary, a title)."""
        best: tuple[int, _Turn] | None = None
        for place, turn in enumerate(self._turns_made):
            talk, length = turn.talk, turn.known
            if (
                turn.answer is not None
                and length < min(len(talk.known), len(keys))
                and talk.system == request.system
                and talk.conversation == request.conversation
                and talk.ended_ms <= model_call.started_ms
                and not keys[length].startswith('["tool"')
                and keys[:length] == talk.known[:length]
                and not set(keys[length:]) & set(talk.known[length:])
            ):
                best = place, turn
        if best is None:
            return None
        self._put_aside(*best)
        return best[1].talk, best[1].known

    def _summarised(self, model_call: Asked, request: Request) -> None:
        """Put aside the turn that asked for a summary, where a request that begins anew has its answer."""
        for place in range(len(self._turns_made) - 1, 0, -1):
            turn = self._turns_made[place]
            text = str((turn.answer or {}).get("content") or "").strip()
            if (
                turn.before is not None
                and len(text) >= _TELLING
                and turn.talk.ended_ms <= model_call.started_ms
                # Who went on after the summary did not begin anew with it.
                and turn.known == len(turn.talk.known)
                and _is_same_agent(turn.asked, model_call)
            ):
                # A program that begins anew again and again repeats most of what it said the last time.
                searched, turn.without = common_start(request.messages, turn.without), request.messages
                if any(
                    text in str(message.get("content") or "")
                    for message in request.messages[searched:]
                    if message["role"] != "assistant"
                ):
                    self._put_aside(turn.before, self._turns_made[turn.before])
                    return

    def _put_aside(self, place: int, turn: _Turn) -> None:
        """Make what a conversation was asked after a turn a conversation of its own."""
        talk = turn.talk
        beside = [turn for turn in self._turns_made[place + 1 :] if turn.talk is talk]
        number = len(self._talks) + 1
        aside = replace(talk, number=number, first=beside[0].asked, callers=(), conversation="", beside=True)
        beside[0].before = None
        for later in beside:
            later.talk = aside
        self._talks.append(aside)
        # The conversation is again what it was after the turn: no request may ever take it up, and one that asks the
        # same as the last request beside it asks that one again.
        reply = turn.asked.reply
        talk.turn, talk.told, talk.open_calls = place, turn.answer, []
        talk.asked, talk.known = self._once.of(turn.asked.request.messages).keys, talk.known[: turn.known]
        talk.answer = message_key(reply.message) if reply.message is not None else ""
        talk.failed, talk.ended_ms = _has_failed(reply), turn.asked.ended_ms

    def _answered(self, talk: _Talk, model_call: Asked, reply: Reply) -> None:
        if reply.usage != Usage() or not reply.error:  # an error costs nothing
            self._usage.add(reply.usage)
        self._notes.extend(note for note in reply.notes if note not in self._notes)
        self._ended = max(self._ended, model_call.ended_ms)
        self._turns += 1
        took = model_call.ended_ms - model_call.started_ms
        self._steps.append(Step(f"turn {self._turns}", model_call.started_ms, max(0.0, took)))
        talk.failed, talk.told = _has_failed(reply), None
        if reply.message is not None:
            first = model_call.first_ms
            self._first_token = first if self._first_token is None else min(first, self._first_token)
            for tool_call in reply.before:
                talk.known.append(message_key(tool_call))
                self._add(talk, tool_call)
            talk.answer = message_key(reply.message)
            talk.known.append(talk.answer)
            talk.told = self._add(talk, reply.message)
            # As they were added, with ids of our own.
            talk.open_calls = [tool_call["id"] for tool_call in talk.told.get("tool_calls") or ()]
        # A sub-agent's answer goes to the agent that called it: the run's own is that of one that nobody waits for.
        if not self._inside(talk) and (self._last is None or model_call.ended_ms >= self._last[0]):
            self._last = model_call.ended_ms, talk, reply

    def _inside(self, talk: _Talk) -> bool:
        """Whether another conversation waits for the results of its calls: this one is part of those, as a rule."""
        return any(other.open_calls for other in self._talks if other.number < talk.number)

    def _add(self, talk: _Talk, message: _Message) -> _Message:
        """Tell a message of a conversation, with ids of our own in a copy of it."""
        message = dict(message)
        # The turn is added after its messages, at this place.
        self._owners[id(message)] = len(self._turns_made)
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            message["tool_calls"] = [self._own(talk, call) for call in calls]
        if "attachments" in message:
            message["attachments"] = [*read_attachments(message["attachments"])]
        if message["role"] == "tool" and isinstance(message.get("tool_call_id"), str):
            message["tool_call_id"] = self._own_id(talk.number, message["tool_call_id"])
            self._results[message["tool_call_id"]] = str(message.get("content") or "")
        self._append(message)
        return message

    def _append(self, message: _Message) -> None:
        for call, function in _functions_in(message):
            self._functions.setdefault(call, []).append(function)
        self._messages.append(message)

    def _own(self, talk: _Talk, call: object) -> object:
        if not isinstance(call, Mapping):
            return call
        call_id = str(call.get("id") or "")
        if call_id:
            return {**call, "id": self._own_id(talk.number, call_id)}
        self._unnamed += 1
        return {**call, "id": f"call_{self._unnamed}"}

    def _name_calls(self, talk: _Talk, request: Request) -> None:
        """Keep the ids that the program gave to the open calls, if the server gave none: results are told with them."""
        unnamed = [call for call in talk.open_calls if call not in self._ids]
        calling = next((message for message in reversed(request.messages) if message.get("tool_calls")), None)
        calls = calling["tool_calls"] if calling is not None else ()
        # Without ids, only the number and the order say which call is which.
        if not unnamed or not isinstance(calls, list) or len(calls) != len(talk.open_calls):
            return
        for call, open_call in zip(calls, talk.open_calls, strict=True):
            call_id = str(call.get("id") or "") if isinstance(call, Mapping) else ""
            if call_id and open_call in unnamed:
                self._named[talk.number, call_id] = open_call

    def _own_id(self, talk: int, call_id: str) -> str:
        """Two conversations may have calls of the same id."""
        if (talk, call_id) in self._named:
            return self._named[talk, call_id]
        return call_id if self._ids.setdefault(call_id, talk) == talk else f"{call_id} of {talk}"

    def _time(self, talk: _Talk, now_ms: float) -> None:
        """The results of the open calls are there: they took from the answer to this request, where no server of a
        tool says it better."""
        for call in talk.open_calls:
            tool_request = self._seen.get(call)
            if tool_request is None:
                self._clock(call, talk.ended_ms, now_ms - talk.ended_ms)
            else:
                self._clock(call, tool_request.started_ms, tool_request.ended_ms - tool_request.started_ms)
        talk.open_calls = []

    def _clock(self, call: str, started_ms: float, took_ms: float) -> None:
        self._times[call] = (started_ms, max(0.0, took_ms))
        self._steps.append(Step(self._tool_name(call), *self._times[call]))

    def _forget(self, talk: _Talk) -> None:
        """The last answer of a conversation does not count: it was asked for again."""
        message, talk.told, talk.open_calls = talk.told, None, []
        # A program may go back to an answer that was taken away before.
        if message is None or self._owners.pop(id(message), None) is None:
            return
        # By identity: two agents may have given the same answer.
        self._messages = [other for other in self._messages if other is not message]
        for call, _ in _functions_in(message):
            self._functions[call].pop()


def _has_failed(reply: Reply) -> bool:
    return reply.message is None or bool(reply.error)


def _functions_in(message: _Message) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The id, tool and arguments of each call, as a program wrote them: servers refuse much of that, and it is kept."""
    listed = message.get("tool_calls")
    for call in listed if isinstance(listed, list) else ():
        function = call.get("function") if isinstance(call, Mapping) else None
        if isinstance(function, Mapping):
            yield call["id"], function


class _Line(Struct, frozen=True, eq=False):
    """An agent. `caller`: the key of the call that it worked for; "": none is known."""

    number: int
    name: str
    about: str
    caller: str


_TELLING = 20
"""Characters by which a text is recognised inside another."""
_ABOUT = 60


def _about(request: Request) -> str:
    """How the system prompt begins, or what was asked."""
    text = next(
        filter(None, (line.strip() for line in (request.system or first_words(request.messages)).splitlines())), ""
    )
    return cut(text, _ABOUT)


def _is_same_agent(model_call: Asked, other: Asked) -> bool:
    """Whether two requests may be of one agent, as far as what stays the same in an agent tells."""
    if (model_call.agent, model_call.request.model) != (other.agent, other.request.model):
        return False
    first, last = sorted((model_call.request.system, other.request.system), key=len)
    if not last.startswith(first):
        return False
    tools, other_tools = [{tool.name for tool in each.request.tools} for each in (model_call, other)]
    # A summary, or what the agent learned, is often added to its system prompt.
    has_grown = len(first) >= _TELLING and bool(tools) and tools == other_tools
    return has_grown or (first == last and bool(tools & other_tools) == bool(tools or other_tools))


def _has_task(arguments: object, task: str) -> bool:
    """Whether the arguments of a call have what an agent was asked first, or a part of it."""
    decoded = decode_arguments(arguments)[0]
    texts = [
        value.strip()
        for value in (decoded.values() if isinstance(decoded, Mapping) else (decoded,))
        if isinstance(value, str)
    ]
    return bool(task.strip()) and any(
        task.strip() in text or (len(text) >= _TELLING and text in task) for text in texts
    )


def _is_of(tool: ToolRequest, function: Mapping[str, Any], *, equal: bool) -> bool:
    """Whether a server saw this call of a model, by the tool's name (which frameworks put the server's before:
    "mcp__shop__get_order") and, if wanted, equal arguments."""
    name = str(function.get("name"))
    before = name[: -len(tool.name)] if tool.name and name.endswith(tool.name) else "x"
    if before and before[-1] not in "_-./:":
        return False
    return not equal or decode_arguments(function.get("arguments"))[0] == decode_arguments(tool.arguments)[0]


def _continues(talk: _Talk, keys: list[str]) -> int | None:
    """From which message on a request is new, where it continues a conversation; None where it does not."""
    talk_keys = talk.known
    if len(keys) >= len(talk_keys) and keys[: len(talk_keys)] == talk_keys:
        return len(talk_keys) if talk_keys else None
    count = len(talk.asked)
    # The program tells the answer in other words (without the text beside a call, say).
    if talk.told is not None and count and keys[:count] == talk.asked and len(keys) > count:
        end = count
        while end < len(keys) and keys[end].startswith('["assistant"'):
            end += 1
        # Or it tells only the results of the calls.
        has_results = bool(talk.told.get("tool_calls")) and keys[count].startswith('["tool"')
        return end if end > count or has_results else None
    # It leaves out or shortens what was before.
    if talk.told is None or talk.answer not in keys:
        return None
    end = len(keys) - keys[::-1].index(talk.answer)
    # An answer such as "Yes." is said twice; so is hardly what was asked before it.
    repeats = _says_much(talk.answer) or keys[end - 2 : end] == talk_keys[-2:]
    if repeats and sum((Counter(keys) & Counter(talk_keys)).values()) * 2 >= min(len(keys), len(talk_keys)):
        return end
    return None


def _says_much(key: str) -> bool:
    """Whether a message is not likely to be said twice."""
    _, text, calls, *_ = json.loads(key)
    return bool(calls) or len(text) >= 12


async def transcripts(session: Session) -> AsyncIterator[Transcript]:
    """The transcript after each change: a new request, or a new answer. It does not end."""
    while True:
        await session.news.wait()
        # Before the look: what comes meanwhile wakes the next one.
        session.news.clear()
        began = time.perf_counter()
        transcript = transcript_of(session.exchanges())
        took = time.perf_counter() - began
        yield transcript
        await asyncio.sleep(max(SHOW_S, _SHARE * took))
