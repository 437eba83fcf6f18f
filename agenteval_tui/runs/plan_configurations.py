"""In which configurations a test runs: the default one and its variations, or the two arms of an A/B comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agenteval_tui.runs.merge import merged_context
from agenteval_tui.runs.plan_agents import AgentPlan, agent_plan
from agenteval_tui.runs.plan_arms import ARMS, arm_label
from agenteval_tui.runs.plan_model import DEFAULT, PlanOptions
from agenteval_tui.text.problems import AgentevalError
from agenteval_tui.text.quick_dataclass import dataclass

if TYPE_CHECKING:
    from agenteval_tui.runs.plan_choice import Chosen
    from agenteval_tui.suites.model import AgentConfig, Variation


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way in which a test runs. `variation` is what stands in its runs: "" for the default configuration."""

    variation: str
    agent: AgentPlan
    context: Mapping[str, Any]
    repeat: int


def configurations(
    chosen: Chosen, options: PlanOptions, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Configuration]:
    """The default configuration, then each variation in order; only the one that `options` name, if they do.

    Raises `AgentevalError` when an agent is missing.
    """
    if options.ab:
        yield from _arms(chosen, options, user_agents)
        return
    for variation in (None, *chosen.test.variations):
        name = variation.name if variation is not None else ""
        if options.variation is None or options.variation == (name or DEFAULT):
            agent = _agent(chosen, variation, options, user_agents)
            yield Configuration(
                name, agent, merged_context(chosen.test, variation), _repeat(chosen, variation, options)
            )


def _arms(chosen: Chosen, options: PlanOptions, user_agents: Mapping[str, AgentConfig]) -> Iterator[Configuration]:
    """Both arms alike but for what is compared: the same context, the same number of repetitions.

    A name means an agent; where there is none of that name, a variation of the test ("default": none).
    """
    base = _variation(chosen, options.variation)
    if options.variation is not None and base is None and options.variation != DEFAULT:
        return
    if options.agent is not None and all(_is_agent(chosen, name, user_agents) for name in options.ab):
        raise AgentevalError(
            f"both arms name their agent: there is nothing that {options.agent!r} could replace",
            mend="leave --agent out, or compare variations",
        )
    repeat = _repeat(chosen, base, options)
    for arm, name in zip(ARMS, options.ab, strict=True):
        label = arm_label(arm, name)
        if _is_agent(chosen, name, user_agents):
            agent = _agent_named(chosen, name, base, user_agents)
            yield Configuration(label, agent, merged_context(chosen.test, base), repeat)
            continue
        variation = _variation(chosen, name)
        if variation is None and name != DEFAULT:
            known = [*chosen.suite.agents, *user_agents, *(one.name for one in chosen.test.variations)]
            raise AgentevalError(
                f"arm {arm} is {name!r}, and test {chosen.test.id!r} knows no agent and has no variation of that name",
                where=chosen.where,
                mend=f"known here: {', '.join(dict.fromkeys(known))}" if known else "configure an agent",
            )
        agent = _agent(chosen, variation, options, user_agents)
        yield Configuration(label, agent, merged_context(chosen.test, variation), repeat)


def _is_agent(chosen: Chosen, name: str, user_agents: Mapping[str, AgentConfig]) -> bool:
    return name in chosen.suite.agents or name in user_agents


def _variation(chosen: Chosen, name: str | None) -> Variation | None:
    return next((one for one in chosen.test.variations if one.name == name), None)


def _agent(
    chosen: Chosen, variation: Variation | None, options: PlanOptions, user_agents: Mapping[str, AgentConfig]
) -> AgentPlan:
    own = variation.agent if variation is not None else None
    name = own or options.agent or chosen.test.agent or chosen.suite.agent
    if not name:
        raise AgentevalError(
            f"test {chosen.test.id!r} names no agent, and neither does its suite",
            where=chosen.where,
            mend="write `agent: NAME` at the top of the suite, or give --agent NAME",
        )
    return _agent_named(chosen, name, variation, user_agents)


def _agent_named(
    chosen: Chosen, name: str, variation: Variation | None, user_agents: Mapping[str, AgentConfig]
) -> AgentPlan:
    over = variation.config if variation is not None else None
    try:
        return agent_plan(name, chosen.suite, chosen.folder, user_agents, over)
    except AgentevalError as error:
        raise AgentevalError(error.what, where=error.where or chosen.where, mend=error.mend) from error


def _repeat(chosen: Chosen, variation: Variation | None, options: PlanOptions) -> int:
    own = variation.repeat if variation is not None else None
    for count in (options.repeat, own, chosen.test.repeat, chosen.suite.defaults.repeat):
        if count is not None:
            return int(count)
    return 1
