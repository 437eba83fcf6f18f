"""The agents of a plan, made: what can be found wrong before anything is run is found here."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import Agent, AgentRequest, Closable
from agenteval_tui.agents.prices import Cost
from agenteval_tui.agents.registry import is_model, make_agent
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import canonical_json
from agenteval_tui.grading.spec import json_like
from agenteval_tui.history.programs import ProgramFiles
from agenteval_tui.history.store import Store
from agenteval_tui.runs.agent_factory import recordings_of
from agenteval_tui.runs.executors.base import Executor
from agenteval_tui.runs.plan.agents import AgentPlan, expanded
from agenteval_tui.runs.plan.model import Plan, RunPlan
from agenteval_tui.runs.pricing import fresh_prices, price_for
from agenteval_tui.runs.program_code import ProgramCode, code_in_plan
from agenteval_tui.runs.response_cache import fingerprint, request_hash, uses_environment
from agenteval_tui.runs.retries import MAX_ATTEMPTS, Retries
from agenteval_tui.suites.environment import environment_for
from agenteval_tui.transcripts.model import Usage
from agenteval_tui.transcripts.redact import NOTHING, TranscriptRedactor

log = logging.getLogger(__name__)


class Identity(Struct, frozen=True):
    """What answers. `fingerprint` says which answers of the history may be its own; "": none. `program`: the files of
    its project; none: not known, or it starts no program."""

    fingerprint: str
    program: ProgramFiles


class Prepared(Struct, frozen=True):
    """An agent ready to be asked. `limit`: runs at once, None: any. `identity` is found out beside the first runs: to
    read a large project takes a quarter of a second."""

    name: str
    agent: Agent
    config: Mapping[str, Any]
    retries: Retries
    limit: int | None
    price: Cost | None
    identity: Future[Identity]
    withheld: TranscriptRedactor = NOTHING
    release: Callable[[str], None] | None = None
    """To be told of each run that is over, where the agent wants to know."""
    reads_variables: bool = True
    error_on_finish: frozenset[str] = frozenset()
    """Endings of an answer that make the run an error."""

    @property
    def fingerprint(self) -> str:
        """Which answers of the history may be its own; "": none. Waits until that is known."""
        return self.identity.result().fingerprint

    def request_hash(self, request: AgentRequest, turns: tuple[str, ...]) -> str:
        """The hash by which the history knows the answer to a request; "" where no answer may be used again."""
        if not self.fingerprint:
            return ""
        return request_hash(self.fingerprint, request, turns, variables=self.reads_variables)

    def release_run(self, run: str) -> None:
        """The run is over: tell the agent. What it does wrong then changes nothing."""
        if self.release is not None:
            try:
                self.release(run)
            except Exception:
                log.warning("agent %s could not let a run go", self.name, exc_info=True)


def asked_hash(agents: Mapping[str, Prepared], run: RunPlan, request: AgentRequest) -> str:
    """The hash by which the history knows what a run is asked; "" where no answer may be used again. What a simulated
    user says follows from its brief and from the agent that plays it."""
    turns = run.turns
    if run.user is not None:
        player = agents[run.user.agent.hash]
        if not player.fingerprint:
            return ""
        turns = (*turns, canonical_json([player.fingerprint, json_like(run.user.brief.as_dict())]))
    return agents[run.agent.hash].request_hash(request, turns)


def prepare_agents(
    plan: Plan, store: Store, env: Mapping[str, str], retry_base_s: float, executor: Executor | None = None
) -> dict[str, Prepared]:
    """By hash, the agents of all runs of the plan, those of simulated users among them. Raises `AgentevalError` where
    one is wrong (unknown kind or option, missing variable), or where a limit on cost can't be kept because a price is
    not known.

    With an `executor` those that it takes run there: a variable that is missing here may be set there.
    """
    fresh_prices(config_dir())
    prepared: dict[str, Prepared] = {}
    for run in plan.runs:
        for agent in run.agents:
            if agent.hash not in prepared:
                prepared[agent.hash] = _prepared(agent, plan, store, env, retry_base_s, executor)
    return prepared


def _prepared(
    agent_plan: AgentPlan,
    plan: Plan,
    store: Store,
    env: Mapping[str, str],
    retry_base_s: float,
    executor: Executor | None,
) -> Prepared:
    variables = environment_for(agent_plan.base_dir, env, agent_plan.config)
    away = executor is not None and executor.takes(agent_plan)
    agent: Agent | None = None
    try:
        config = expanded(agent_plan, variables)
    except AgentevalError:
        # A variable that is missing here may be set where the agent runs.
        if not away:
            raise
        config = dict(agent_plan.config)
    else:
        agent = _made(agent_plan, plan, store, variables)
    if executor is not None and away:
        agent = executor.agent(agent_plan, agent, permission=plan.permission)
    assert agent is not None
    price = price_for(config, config_dir())
    if plan.limits.cost is not None:
        _check_price(agent_plan.name, config, price)
    return Prepared(
        name=agent_plan.name,
        agent=agent,
        config=config,
        retries=Retries(int(config.get("max_attempts") or MAX_ATTEMPTS), retry_base_s),
        limit=int(config["concurrency"]) if config.get("concurrency") else None,
        price=price,
        error_on_finish=frozenset(config.get("error_on_finish") or ()),
        # Without `cache` nothing is looked up, but a later execution may look up what this one is told.
        identity=_in_thread(lambda: _identity(agent_plan, plan, config, away=away)),
        release=agent.release if isinstance(agent, Closable) else None,
        reads_variables=uses_environment(config),
        withheld=TranscriptRedactor(
            secrets_of(agent_plan.config, variables, agent_plan.base_dir, trusted=plan.permission.trusted)
        ),
    )


def _in_thread(read: Callable[[], Identity]) -> Future[Identity]:
    future = Future[Identity]()

    def work() -> None:
        try:
            future.set_result(read())
        except Exception:
            # The runs go on: no answer of theirs is used again, and what their code was stays unknown.
            log.warning("what an agent is made of could not be read", exc_info=True)
            future.set_result(Identity("", {}))

    threading.Thread(target=work, name="identity of an agent", daemon=True).start()
    return future


def _identity(agent: AgentPlan, plan: Plan, config: Mapping[str, Any], *, away: bool) -> Identity:
    code = code_in_plan(plan, agent, config)
    if away and code.hash:
        code = ProgramCode(unknown="server")  # the workers' files are their own
    # A variable's value elsewhere is not known here: such an answer is never treated as equal.
    if away and "${" in str(agent.config):
        return Identity("", code.files)
    return Identity(fingerprint(config, agent.base_dir, trusted=plan.permission.trusted, code=code), code.files)


def _made(agent: AgentPlan, plan: Plan, store: Store, env: Mapping[str, str]) -> Agent:
    return make_agent(
        agent.name,
        agent.config,
        base_dir=agent.base_dir,
        env=env,
        permission=plan.permission,
        transcripts=lambda reference: recordings_of(store, reference, plan.execution_id),
    )


def _check_price(name: str, config: Mapping[str, Any], price: Cost) -> None:
    """A limit that nothing could ever reach is none: say so before money is spent."""
    model = str(config.get("model") or "")
    if is_model(config.get("kind")) and price(model, Usage(1_000, 1_000)) is None:
        raise AgentevalError(
            f"the price of model {model!r} is not known, so a limit on cost can't be kept",
            where=f"agent {name!r}",
            fix="write the price into prices.yaml, or `price:` into the agent; use a limit on tokens instead",
        )
