"""Asking judges, embedders and functions what metrics want to know; each question once."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any

from msgspec import Struct, field, to_builtins
from msgspec.structs import replace

from agenteval_tui.agents.base import AgentRequest, Failed, TranscriptSource
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.process.environment_messages import remedy
from agenteval_tui.agents.process.errors import stderr_tail, traceback_without_secrets
from agenteval_tui.agents.process.printed_output import PrintedEnd, returned_by
from agenteval_tui.agents.process.project_environment import ProjectEnvironment, project_environment
from agenteval_tui.agents.process.python_host import CallError, HostProcess, RaisedError
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.agents.process.python_tree import Lease, Root
from agenteval_tui.agents.registry import make_agent, make_embedder
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import now_ms
from agenteval_tui.grading.compile import compile_criterion
from agenteval_tui.grading.metrics.python import PRINTED, RETURNED
from agenteval_tui.grading.remote_requests import FROM_HISTORY, RemoteRequest, Reply
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.labels import Label
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.runs.budget import SpendingLimit
from agenteval_tui.runs.judge_resolution import Respondents
from agenteval_tui.runs.plan.agents import AgentPlan, expanded
from agenteval_tui.runs.pricing import price_for
from agenteval_tui.runs.retries import Retries
from agenteval_tui.runs.single_answer import SharedCalls, ask_once, cost_of
from agenteval_tui.runs.stored_judgments import JudgeLabels, label_reply, sole_of_specs
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.transcripts.codec import openai_messages, to_json
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import Message, RunError, Transcript, Usage
from agenteval_tui.transcripts.redact import TranscriptRedactor
from agenteval_tui.transcripts.traceback import Traceback

log = logging.getLogger(__name__)

TIMEOUT_S = 120.0
"""How long a judge or an embedder may take for one answer."""
AT_ONCE = 8
"""Questions to one respondent at the same time, where its configuration says nothing."""
ATTEMPTS = 3
ROUNDS = 3  # a reply may need a second question; a third round finds that nothing is left
_REMEMBERED = 2_000
_JSON_ONLY: Mapping[str, tuple[str, Any]] = {
    "openai": ("response_format", {"type": "json_object"}),
    "gemini": ("response_mime_type", "application/json"),
}
"""The option of a kind of agent that makes the server answer with a JSON object and nothing else."""
Known = Callable[[str, str], StoredReply | None]
"""`known(request hash, answerer)`: a reply from the history."""
_MOST = 4_000_000  # bytes of an answer


class JudgeRequestGroup(Struct, frozen=True):
    """One run to be graded: its criteria and what they look at.

    `labels` are people's verdicts on it, `replies` what is known already and not asked again (but for errors).
    """

    suite_key: str
    specs: tuple[CriterionSpec, ...]
    transcript: Transcript
    variables: Mapping[str, Any]
    labels: tuple[Label, ...] = ()
    replies: Mapping[str, Reply] = field(default_factory=dict)


class Answers(Struct, frozen=True):
    """What a case's questions were answered with: replies by hash, for grading, and the same to be stored."""

    replies: Mapping[str, Reply]
    stored: tuple[StoredReply, ...] = ()


class JudgeClient:
    """Answers the questions of cases. Use it in one event loop, and close it.

    Equal questions to the same respondent are asked once, also when several runs ask at the same time; `known` looks
    into the history before. Whatever goes wrong is a reply with an `error`: nothing raises but cancellation.
    `permission` (`trust_check.check_asking`) says who may be asked and which functions may run; who is not covered is
    not asked, and the reply says so. `labels`: what people said, for judges that may keep silent. With a `limit` one is
    asked after another, until it is reached.
    """

    def __init__(
        self,
        respondents: Respondents,
        *,
        env: Mapping[str, str] | None = None,
        known: Known | None = None,
        transcripts: TranscriptSource | None = None,
        permission: Permission = NOTHING,
        retry_base_s: float = 0.5,
        limit: SpendingLimit | None = None,
        labels: JudgeLabels | None = None,
    ) -> None:
        self._respondents = respondents
        self._env = dict(os.environ) if env is None else env
        self._known = known
        self._transcripts = transcripts
        self._permission = permission
        self._retry_base_s = retry_base_s
        self._limit = limit
        self._labels = labels
        self._made: dict[tuple[str, str], _Respondent] = {}
        self._without_form: set[str] = set()  # plans whose server refuses `_JSON_ONLY`
        self._calls: SharedCalls[tuple[str, str], Reply] = SharedCalls()
        self._lease: Lease | None = None
        self._remembered: OrderedDict[tuple[str, str], Reply] = OrderedDict()
        self.usage = Usage()
        """What was asked of servers since the start: tokens and cost, apart from those of the tested agents."""
        self.asked = 0

    async def answer(self, case: JudgeRequestGroup, keep: Callable[[StoredReply], None] | None = None) -> Answers:
        """Ask all questions of the case's criteria. A question without an answer is missing, or is a reply with
        `error`. `keep` gets each whole answer as soon as it is there: while others are waited for, all may be lost."""

        # Kept one by one: each was paid for, and the process may end while others are waited for.
        async def answered(request: RemoteRequest) -> StoredReply:
            stored_reply = replace(await self._answered(request, case), criterion=wants[request.hash])
            if keep is not None and not stored_reply.reply.error:
                keep(stored_reply)
            return stored_reply

        checkers = [compile_criterion(spec) for spec in case.specs]
        sole = sole_of_specs(case.specs)
        # An error is no answer: it is asked again.
        replies = {key: reply for key, reply in case.replies.items() if not reply.error}
        stored: dict[str, StoredReply] = {}
        wants: dict[str, str] = {}  # the first criterion that asks: what the reply cost is its cost
        for _ in range(ROUNDS):
            requests: dict[str, RemoteRequest] = {}
            for checker in checkers:
                for request in checker.requests(case.transcript, case.variables, replies):
                    if request.kind in FROM_HISTORY:
                        reply = await self._of_history(checker.spec, request, case, sole)
                        if reply is not None:
                            replies[request.hash] = reply
                    else:
                        requests[request.hash] = request
                        wants.setdefault(request.hash, checker.spec.hash)
            if not requests:
                break
            for new_reply in await asyncio.gather(*(answered(request) for request in requests.values())):
                replies[new_reply.request.hash] = new_reply.reply
                stored[new_reply.request.hash] = new_reply
        return Answers(replies, tuple(stored.values()))

    async def _of_history(
        self, spec: CriterionSpec, request: RemoteRequest, case: JudgeRequestGroup, sole: str
    ) -> Reply | None:
        if request.kind == "person":
            return label_reply(spec, request, case.labels, sole)
        if self._labels is None:
            return None
        try:
            judge = RemoteRequest("chat", str(request.payload["judge"]), {})
            answerer = self._respondents.asked(judge, case.suite_key).hash
            return await asyncio.to_thread(self._labels.reply, spec, case.suite_key, answerer)
        except AgentevalError:
            return None  # without a judge, or a history that can be read, no score is trusted

    async def ask(self, request: RemoteRequest, case: JudgeRequestGroup) -> StoredReply:
        """Ask one question again, whatever was answered before."""
        return await self._answered(request, case, anew=True)

    async def close(self) -> None:
        """End what is still being asked, and give back connections."""
        # First what is still being asked: it uses the respondents.
        await self._calls.close()
        for respondent in self._made.values():
            # Not for ever: the answers are there, and the program wants to end.
            try:
                await asyncio.wait_for(respondent.agent.close(), 5)
            except Exception:  # a respondent that can't be closed must not hide what it said
                log.warning("a judge could not be closed", exc_info=True)
        self._made.clear()
        if self._lease is not None:
            await self._lease.close()
            self._lease = None

    async def _answered(self, request: RemoteRequest, case: JudgeRequestGroup, *, anew: bool = False) -> StoredReply:
        if request.kind == "call":
            reply = await self._call(request, case)
            return StoredReply(request, request.target, reply)
        try:
            # The key has the respondent as well: another judge gives another answer to the same question.
            plan = self._respondents.asked(request, case.suite_key)
        except AgentevalError as error:
            return StoredReply(request, "", Reply(error=_message_of(error), at_ms=now_ms()))
        key = (request.hash, plan.hash)
        # A second opinion: neither an earlier answer nor one that another run is just getting will do.
        if anew:
            return StoredReply(request, plan.hash, await self._ask(request, plan))
        answer = self._remembered.get(key)
        if answer is None and self._known is not None:
            # Before it is asked: what an execution paid for, no other pays for again.
            try:
                stored_reply = self._known(*key)
            except AgentevalError:
                stored_reply = None  # a history that can't be read only means that it is asked again
            answer = stored_reply.reply if stored_reply is not None else None
        if answer is None:
            answer = await self._calls.get(key, lambda: self._ask(request, plan))
        # The history may be written later than the next run asks the same.
        if not answer.error:
            self._remembered[key] = answer
            self._remembered.move_to_end(key)
            while len(self._remembered) > _REMEMBERED:
                self._remembered.popitem(last=False)
        return StoredReply(request, plan.hash, answer)

    async def _ask(self, request: RemoteRequest, plan: AgentPlan) -> Reply:
        try:
            respondent = self._respondent(request.kind, plan)
        except AgentevalError as error:
            return Reply(error=_message_of(error), at_ms=now_ms())
        config, withheld = respondent.config, respondent.withheld
        retries = Retries(int(config.get("max_attempts") or ATTEMPTS), self._retry_base_s)
        price = price_for(config, config_dir())
        ask = _ask_judge if request.kind == "chat" else _ask_embedder
        attempt = 0
        try:
            # The wait for a place and for one's turn is not the respondent's time: the time-out begins last.
            async with respondent.room, self._turn(), asyncio.timeout(TIMEOUT_S):
                form = self._form(plan, request)
                while True:
                    if self._limit is not None and (refusal := self._limit.refusal):
                        outcome = _Got(Reply(error=refusal))
                        break
                    attempt += 1
                    # Each attempt counts, and its cost too: failed ones are paid for as well.
                    self.asked += 1
                    outcome = await ask(respondent.agent, {**config, **form}, request, price)
                    self._count(plan.name, outcome.reply)
                    # Not every server that speaks a protocol knows this option: it is asked once more without, and this
                    # is kept.
                    if outcome.refused and form:
                        form = {}
                        self._without_form.add(plan.hash)
                        continue
                    if not outcome.retry or attempt >= retries.attempts:
                        break
                    await asyncio.sleep(retries.wait_s(attempt, outcome.retry_after_s))
        except TimeoutError:
            outcome = _Got(Reply(error=f"did not answer within {TIMEOUT_S:g} s"))
        except Exception as error:
            outcome = _Got(Reply(error=f"raised {type(error).__name__}: {error}"))
        reply = outcome.reply
        # An embedder's reply is a vector: it has no text that a key could be in.
        raw = withheld.cut(withheld.text(reply.raw)) if request.kind == "chat" else reply.raw
        failure = withheld.error(RunError("", reply.error)).message
        reply = replace(reply, raw=raw, model=withheld.text(reply.model), error=failure)
        if reply.error:
            who = "the judge" if request.kind == "chat" else "the embedder"
            reply = replace(reply, error=f"{who} {plan.name!r}: {reply.error}")
        return replace(reply, at_ms=now_ms())

    def _respondent(self, kind: str, plan: AgentPlan) -> _Respondent:
        """The agent or embedder, made once. Raises `AgentevalError`."""
        key = (kind, plan.hash)
        if key not in self._made:
            env = environment_for(plan.base_dir, self._env, plan.config)
            config = expanded(plan, env)
            agent: Any
            if kind == "chat":
                agent = make_agent(
                    plan.name,
                    plan.config,
                    base_dir=plan.base_dir,
                    env=env,
                    permission=self._permission,
                    transcripts=self._transcripts,
                )
            else:
                agent = make_embedder(
                    plan.name, plan.config, base_dir=plan.base_dir, env=env, permission=self._permission
                )
            secrets = secrets_of(plan.config, env, plan.base_dir, trusted=self._permission.trusted)
            room = asyncio.Semaphore(int(config.get("concurrency") or AT_ONCE))
            self._made[key] = _Respondent(agent, config, room, TranscriptRedactor(secrets))
        return self._made[key]

    def _form(self, plan: AgentPlan, request: RemoteRequest) -> Mapping[str, Any]:
        """The option that asks a judge for JSON only, unless its configuration has one or its server refused it, or
        the question asks for another form."""
        if request.kind != "chat" or request.payload.get("reply") == "text":
            return {}
        option, value = _JSON_ONLY.get(str(plan.config.get("kind")), ("", None))
        own = option in plan.config or option in (plan.config.get("extra_body") or {})
        return {} if not option or own or plan.hash in self._without_form else {option: value}

    async def _call(self, request: RemoteRequest, case: JudgeRequestGroup) -> Reply:
        folder = self._respondents.base_dir(case.suite_key)
        self._lease = self._lease or Lease()
        return await call_function(request, case.transcript, folder, self._permission, self._lease)

    def _turn(self) -> AbstractAsyncContextManager[object]:
        return nullcontext() if self._limit is None else self._limit.turn

    def _count(self, name: str, reply: Reply) -> None:
        if self._limit is not None:
            self._limit.count(name, reply)
        self.usage += Usage(reply.input_tokens, reply.output_tokens, cost=reply.cost)


class _Respondent(Struct, frozen=True):
    """A judge or an embedder, and the places for questions at the same time."""

    agent: Any
    config: Mapping[str, Any]
    room: asyncio.Semaphore
    withheld: TranscriptRedactor


class _Got(Struct, frozen=True):
    """An attempt's reply, and whether another attempt may help. `refused`: the server doesn't take such a request."""

    reply: Reply
    retry: bool = False
    retry_after_s: float | None = None
    refused: bool = False


async def _ask_judge(agent: Any, config: Mapping[str, Any], request: RemoteRequest, price: Cost) -> _Got:
    messages = tuple(Message(message["role"], message["content"]) for message in request.payload["messages"])
    vote = int(request.payload.get("vote", 1))
    # The seed follows from the question: whoever asks it again asks the same.
    agent_request = AgentRequest(messages, config, {}, "judge", vote, int(request.hash[:8], 16))
    single_answer = await ask_once(agent, agent_request)
    usage, model = single_answer.transcript.usage, single_answer.transcript.model
    error = "" if single_answer.error is None else _failure(single_answer.error)
    ending = ending_of(single_answer.transcript) if request.payload.get("reply") == "text" else None
    if not error and ending is not None and ending.code != "empty":
        # "1" may be the beginning of "10".
        error = f"{ending.description}, so its score can't be trusted: give the judge more max_tokens"
    cost = cost_of(price, model, usage)
    reply = Reply(single_answer.transcript.final_output, model, error, usage.input_tokens, usage.output_tokens, cost)
    refused = single_answer.error is not None and single_answer.error.kind == "bad_request"
    return _Got(reply, single_answer.retry, single_answer.retry_after_s, refused)


async def _ask_embedder(embedder: Any, config: Mapping[str, Any], request: RemoteRequest, price: Cost) -> _Got:
    embedding = await embedder.embed(request.payload["text"])
    if isinstance(embedding, Failed):
        return _Got(Reply(error=_failure(embedding.error)), embedding.retry, embedding.retry_after_s)
    raw: dict[str, Any] = {"vector": list(embedding.vector)}
    if embedding.note:
        raw["note"] = embedding.note
    used = embedding.usage
    cost = cost_of(price, embedding.model, used)
    return _Got(Reply(json.dumps(raw), embedding.model, "", used.input_tokens, used.output_tokens, cost))


def _failure(error: RunError) -> str:
    return f"{error.message}" + (f" ({error.fix})" if error.fix else "")


def _message_of(error: AgentevalError) -> str:
    return error.what + (f" ({error.fix})" if error.fix else "")


# Calling a function of the user's in a process of its own, within a time limit


async def call_function(
    request: RemoteRequest, transcript: Transcript, folder: Path, permission: Permission, lease: Lease
) -> Reply:
    """What the function of a `call` request returns, as JSON text; never raises for what the function does.

    It runs in `folder`, from where its module is found, in a process group of its own that is killed whole when the
    time is over or this task is cancelled. The time is that of the function, without its import.
    """
    payload = request.payload
    call = {
        "value": payload["value"],
        "arguments": payload["properties"],
        "offered": {
            "transcript": to_json(transcript),
            "messages": to_builtins(openai_messages(transcript)),
            "expected": payload["expected"],
            "variables": payload["variables"],
        },
    }
    env = dict(os.environ)
    project: ProjectEnvironment | None = None
    try:
        permission.require_code(folder, f"python function {request.target}")
        env = environment_for(folder)
        project = project_environment(folder, targets=(request.target,))
        # Evaluators of one module share what its import took.
        root = Root.of(project, env, (("import own", request.target.rpartition(":")[0]),))
        host = await lease.tree(root, permission).host()
    except AgentevalError as error:
        return _failed(f"{request.target} can't be started: {_message_of(error)}")
    except CallError as error:
        return _call_failure(request.target, error, error.program, env, project)
    printed = PrintedEnd()
    async with host:
        try:
            async with asyncio.timeout(float(payload["timeout"])):
                events = host.events("metric", request.target, limit=_MOST, last=True, **call)
                returned = await returned_by(events, printed.add)
        except TimeoutError:
            # At once: what holds it up may hold up a polite end as well.
            await host.end()
            return _failed(f"{request.target} did not return within {payload['timeout']:g} s", printed.text)
        except CallError as error:
            return _call_failure(request.target, error, host.program, env, project, printed.text)
    answer = {PRINTED: printed.text, RETURNED: returned} if printed.text.strip() else returned
    return Reply(json.dumps(answer), at_ms=now_ms())


def _call_failure(
    target: str,
    error: CallError,
    program: HostProcess | None,
    env: Mapping[str, str],
    project: ProjectEnvironment | None,
    printed: str = "",
) -> Reply:
    if not isinstance(error, RaisedError):
        words = "" if program is None else stderr_tail(program.stderr, env)
        return _failed(f"{target} {error}" + (f": {words}" if words else ""), printed)
    if error.wrong:
        return _failed(str(error), printed)
    fix = "" if project is None else remedy(error.clues, project)
    words = without_secrets(f"{target} raised {error}", env) + (f" ({fix})" if fix else "")
    return _failed(words, printed, traceback_without_secrets(error.traceback, env))


def _failed(message: str, printed: str = "", traceback: Traceback | None = None) -> Reply:
    """A reply that is none; what the function printed stays with it, as it was."""
    return Reply(raw=printed, error=message, at_ms=now_ms(), traceback=traceback)
