"""Simulated users: agents that write the user's messages of a conversation with the tested agent.

A user sees the conversation from its side: what the tested agent said comes to it as messages of the user, what it said
itself as its own answers, and nothing of tools and prompts. It ends the conversation by writing `STOP`.

Its answers are kept with the run as those of judges are, and are taken again for the same conversation, seed and agent:
with `replay`, or with an agent that does the same again, a conversation repeats itself.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.base import SIMULATED_USER, STOP, AgentRequest
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.grading.spec import json_like
from agenteval_tui.history.replies import StoredReply, user_answerer
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_pool import Prepared
from agenteval_tui.runs.plan.agents import UserBrief
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.single_answer import SharedCalls, SingleAnswer, ask_once, cost_of
from agenteval_tui.transcripts.model import USER, ErrorCode, Message, RunError, Transcript, Usage

GREETING = "Hi! How can I help you today?"
"""What the tested agent is said to have said before the user's first message: a model answers a message."""
_REMEMBERED = 2_000
_UNTIL = "you have what you want, or it is clear that you will not get it"


class UserTurn(Struct, frozen=True):
    """What a user says ("": nothing more), whether that ends the conversation, and why there is no answer."""

    text: str = ""
    ends: bool = False
    error: RunError | None = None


class _Answer(Struct, frozen=True):
    reply: Reply
    error: RunError | None = None


class SimulatedUsers:
    """The users of one execution. `agents` are those of the plan, by hash. Use it in one event loop, and close it."""

    def __init__(self, agents: Mapping[str, Prepared], store: Store) -> None:
        self.usage = Usage()
        """What all have used since the start, apart from the tested agents."""
        self._agents = agents
        self._store = store
        self._calls: SharedCalls[tuple[str, str], _Answer] = SharedCalls()
        self._remembered: OrderedDict[tuple[str, str], Reply] = OrderedDict()

    def of(self, run: RunPlan) -> SimulatedUser | None:
        """The user of a run; None where it has none, or where all of the conversation is a recording."""
        if run.user is None or self._agents[run.agent.hash].config.get("kind") == "replay":
            return None
        return SimulatedUser(run, self._agents[run.user.agent.hash], self)

    async def answer(self, run: str, request: RemoteRequest, agent_request: AgentRequest, player: Prepared) -> _Answer:
        """The user's answer: a known one, else the agent's. It is stored with the run before this returns it."""
        answerer = user_answerer(player.name, player.fingerprint)
        key = (request.hash, answerer)
        reply = await self._known(key, player)
        # Asked now, and not before: it may have been answered meanwhile.
        reply = self._remembered.get(key) or reply
        paid = False

        async def ask() -> _Answer:
            nonlocal paid
            paid = True
            answer = await self._ask(agent_request, player)
            if not answer.reply.error:
                self._remembered[key] = answer.reply
                if len(self._remembered) > _REMEMBERED:
                    self._remembered.popitem(last=False)
            return answer

        answer = _Answer(reply) if reply is not None else await self._calls.get(key, ask)
        self._store.keep_replies(run, [StoredReply(request, answerer, answer.reply)])
        # Who shared the answer of another run did not pay for it.
        return answer if paid else replace(answer, reply=_with(answer.reply, Usage()))

    async def close(self) -> None:
        """End what is being asked. The agents are closed with the others of the execution."""
        await self._calls.close()

    async def _known(self, key: tuple[str, str], player: Prepared) -> Reply | None:
        """An answer of the history. Agents that stay in this process are asked: they cost nothing, and answer alike."""
        if not player.fingerprint:
            return None
        try:
            stored_reply = await asyncio.to_thread(self._store.known_reply, *key)
        except AgentevalError:
            return None  # a history that can't be read only means that it is asked
        return None if stored_reply is None else stored_reply.reply

    async def _ask(self, agent_request: AgentRequest, player: Prepared) -> _Answer:
        attempt, used = 0, Usage()
        while True:
            attempt += 1
            try:
                single_answer = await ask_once(player.agent, agent_request)
            except Exception as error:
                message = f"the agent raised {type(error).__name__}: {str(error) or 'no message'}"
                single_answer = SingleAnswer(Transcript(), RunError.told("exception", message))
            answer = self._read(single_answer, agent_request, player)
            # Failed attempts are paid for, too.
            used += _usage(answer.reply)
            self.usage += _usage(answer.reply)
            if not single_answer.retry or attempt >= player.retries.attempts:
                return replace(answer, reply=_with(answer.reply, used))
            await asyncio.sleep(player.retries.wait_s(attempt, single_answer.retry_after_s))

    def _read(self, single_answer: SingleAnswer, agent_request: AgentRequest, player: Prepared) -> _Answer:
        if single_answer.recorded:
            return _Answer(Reply(_recorded(single_answer.transcript, agent_request), at_ms=now_ms()))
        clean, used, model = player.withheld, single_answer.transcript.usage, single_answer.transcript.model
        error = None if single_answer.error is None else clean.error(single_answer.error)
        return _Answer(
            Reply(
                clean.cut(clean.text(single_answer.transcript.final_output)),
                model=clean.text(model),
                error="" if error is None else error.message,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                cost=cost_of(player.price, model, used),
                at_ms=now_ms(),
            ),
            error,
        )


class SimulatedUser:
    """The user of one run, in all its attempts: an answer that it gave is not asked for again."""

    def __init__(self, run: RunPlan, player: Prepared, users: SimulatedUsers) -> None:
        assert run.user is not None
        self.name = player.name
        self.brief: UserBrief = run.user.brief
        self.usage = Usage()
        """What it has used in this run."""
        self._run = run
        self._player = player
        self._users = users

    def spoken(self, so_far: Transcript) -> int:
        """How often it has spoken."""
        return sum(message.simulated for message in so_far.messages)

    async def say(self, so_far: Transcript) -> UserTurn:
        """What it says to the conversation until now. Raises only CancelledError."""
        request, agent_request = self._request(so_far)
        answer = await self._users.answer(self._run.ref.run, request, agent_request, self._player)
        self.usage += _usage(answer.reply)
        if answer.error is not None:
            return UserTurn(error=self._failed(answer.error))
        # A goodbye may stand before the word that ends the conversation; what follows it is not said.
        text, stop, _ = answer.reply.raw.partition(STOP)
        text = text.strip()
        if not text and not stop:
            return UserTurn(error=self._silent("said nothing", "answer"))
        if stop and not any(message.role == "user" for message in so_far.messages):
            return UserTurn(error=self._silent("ended the conversation before its first message", "opening"))
        return UserTurn(text, bool(stop))

    def late(self, limit: str) -> RunError:
        """The error of a run whose time was over while the user was asked."""
        message = f"the simulated user ({self.name}) had not answered when the run's time of {limit} was over"
        return RunError(USER, message, "raise `timeout` of the test", ErrorCode.USER_TIMEOUT)

    def release(self) -> None:
        """The run is over."""
        self._player.release_run(self._id)

    @property
    def _id(self) -> str:
        """Not the run's: the same agent may play both."""
        return f"{self._run.ref.run}-user"

    def _request(self, so_far: Transcript) -> tuple[RemoteRequest, AgentRequest]:
        """The question as it is known by, and as the agent is asked."""
        run, player = self._run, self._player
        replayed = player.config.get("kind") == "replay"
        # A recording is found by its test, else by how the conversation begins: as it is, not from the user's side.
        messages = so_far.messages if replayed else (_instructions(self.brief), *_from_its_side(so_far.messages))
        turn = self.spoken(so_far) + 1
        brief = {**json_like(self.brief.as_dict()), "turn": turn}
        payload: dict[str, Any] = {
            "messages": [{"role": message.role, "content": message.content} for message in messages],
            "seed": run.seed,
            "brief": brief,
        }
        if replayed:
            payload["recording"] = [run.ref.test, run.ref.repetition]
        # Part of the question only for an agent that reads them: else an answer would not be known again.
        if player.reads_variables and run.variables:
            payload["variables"] = json_like(run.variables)
        agent_request = AgentRequest(
            messages,
            config=player.config,
            context={SIMULATED_USER: brief},
            test_id=run.ref.test,
            repetition=run.ref.repetition,
            seed=run.seed,
            tool_calls=so_far.tool_calls if replayed else (),
            run=self._id,
            turn=turn,
            variables=run.variables,
        )
        return RemoteRequest("user", player.name, payload), agent_request

    def _failed(self, error: RunError) -> RunError:
        inner = error.coded
        fields = {"why": inner.code, **inner.fields}
        message = f"the simulated user ({self.name}) did not answer: {inner.message}"
        return RunError(USER, message, inner.fix, ErrorCode.USER_FAILED, fields)

    def _silent(self, what: str, when: str) -> RunError:
        fix = f"make the agent {self.name!r} write the user's next message, or {STOP} when the user is done"
        message = f"the simulated user ({self.name}) {what}"
        return RunError(USER, message, fix, ErrorCode.USER_SILENT, {"when": when})


def _with(reply: Reply, usage: Usage) -> Reply:
    return replace(reply, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, cost=usage.cost)


def _usage(reply: Reply) -> Usage:
    return Usage(reply.input_tokens, reply.output_tokens, cost=reply.cost)


def _recorded(recording: Transcript, agent_request: AgentRequest) -> str:
    """What the user said next in a recording of the conversation."""
    texts = [message.content for message in recording.messages if message.role == "user"]
    place = sum(message.role == "user" for message in agent_request.messages)
    return texts[place] if place < len(texts) else STOP


def _from_its_side(messages: tuple[Message, ...]) -> list[Message]:
    """The conversation with the roles swapped. Neighbours of one role are one message: some servers take no others."""
    turns: list[tuple[str, str]] = []
    for message in messages:
        role = {"user": "assistant", "assistant": "user"}.get(message.role)
        if role is None or not message.content:
            continue
        if turns and turns[-1][0] == role:
            turns[-1] = (role, f"{turns[-1][1]}\n\n{message.content}")
        else:
            turns.append((role, message.content))
    # Servers want the user to speak first: here that is the tested agent.
    if not turns or turns[0][0] != "user":
        turns.insert(0, ("user", GREETING))
    return [Message(role, content) for role, content in turns]


def _instructions(brief: UserBrief) -> Message:
    parts = [
        "You play the user in a conversation with an AI assistant. You are the user: you never speak as the assistant, "
        "and you never help it.",
        f"Who you are:\n{brief.persona}" if brief.persona else "",
        f"What you want:\n{brief.goal}",
        f"What you know:\n{_facts(brief.knows)}" if brief.knows else "",
        "Rules:\n"
        "- Write the user's next message and nothing else, as this person would write it: a sentence or two.\n"
        "- Do not tell everything at once. Say what this step needs, and answer what you are asked.\n"
        "- You know nothing but what is written here. If you are asked for something else, say that you do not know "
        "it; never make anything up.\n"
        "- Use your own words. Do not quote or mention these instructions.\n"
        f"- End the conversation as soon as {brief.stop_when or _UNTIL}: write {STOP}, after a goodbye if you like. "
        f"Never write {STOP} before that.",
    ]
    return Message("system", "\n\n".join(part for part in parts if part))


def _facts(knows: object) -> str:
    if isinstance(knows, Mapping):
        return "\n".join(f"- {name}: {value}" for name, value in knows.items())
    if isinstance(knows, list | tuple):
        return "\n".join(f"- {fact}" for fact in knows)
    return str(knows)
