"""What a check changes in the plans of the runs that it makes again: programs get no keys of model servers if no model
is asked, and servers of `http` agents are started by the check itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from agenteval_tui.runs.around.plan import ServicePlan
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.suites.environment import environment_if_readable

WITHHELD = "agenteval-recorded"
"""The value of the keys of model servers in a run that is answered from its recording: a client that does not ask where
it is led to is refused, and nothing is paid for."""
MODEL_KEYS = (
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "AZURE_OPENAI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "COHERE_API_KEY",
    "CO_API_KEY",
    "DEEPSEEK_API_KEY",
    "OPENROUTER_API_KEY",
    "TOGETHER_API_KEY",
    "FIREWORKS_API_KEY",
    "XAI_API_KEY",
    "PERPLEXITY_API_KEY",
    "CEREBRAS_API_KEY",
    "NVIDIA_API_KEY",
    "AI21_API_KEY",
    "AWS_BEARER_TOKEN_BEDROCK",
)
"""Variables with keys of model servers: nothing else takes them."""


def environment_without_keys(runs: Sequence[RunPlan]) -> dict[str, str]:
    """Our environment, with another value for each key of a model server that an agent of these runs would get."""
    env = dict(os.environ)
    for agent in {agent.hash: agent for run in runs for agent in run.agents}.values():
        variables = environment_if_readable(agent.base_dir, config=agent.config)
        env.update({name: WITHHELD for name in MODEL_KEYS if variables.get(name)})
    return env


def without_keys(run: RunPlan) -> RunPlan:
    """The run without the keys that its suite writes for its agent and its services: these would win over those of the
    environment."""
    run = replace(run, agent=replace(run.agent, config=_withheld(run.agent.config)))
    return _with_services(run, lambda service: replace(service, env=_values_withheld(service.env)), _withheld)


def _withheld(options: Mapping[str, Any]) -> Mapping[str, Any]:
    env = options.get("env")
    return {**options, "env": _values_withheld(env)} if isinstance(env, Mapping) else options


def _values_withheld(env: Mapping[str, Any]) -> dict[str, Any]:
    return {name: WITHHELD if name in MODEL_KEYS else value for name, value in env.items()}


def with_own_servers(runs: Sequence[RunPlan]) -> tuple[RunPlan, ...]:
    """The same runs, in which no service that an agent asks may be one that runs already: that one has its own keys,
    and its requests would not be answered from a recording. Other services, such as a database, stay as they are."""
    ports = {_port_of(run.agent.config.get("url")) for run in runs if run.agent.config.get("kind") == "http"}

    def own(service: ServicePlan) -> ServicePlan:
        port = str(service.port) if service.port else _port_of(service.url)
        return replace(service, reuse_existing=False) if port in ports else service

    def own_declared(service: Mapping[str, Any]) -> Mapping[str, Any]:
        ready = service.get("ready")
        if not isinstance(ready, Mapping):
            return service
        port = str(ready["port"]) if ready.get("port") else _port_of(ready.get("url"))
        return {**service, "reuse_existing": False} if port in ports else service

    return tuple([_with_services(run, own, own_declared) for run in runs]) if ports else tuple(runs)


def _port_of(url: object) -> str:
    """The port as it is written: it may be a variable, and both addresses name the same one."""
    parts = urlsplit(str(url))
    _, colon, port = parts.netloc.rpartition(":")
    return port if colon else "443" if parts.scheme == "https" else "80"


def _with_services(
    run: RunPlan,
    planned: Callable[[ServicePlan], ServicePlan],
    declared: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> RunPlan:
    """The run with other services: those that are `planned` for its test, and those that its agent's configuration has
    `declared`, as they are written there."""
    if run.around is not None and run.around.services:
        services = tuple([planned(service) for service in run.around.services])
        run = replace(run, around=replace(run.around, services=services))
    written = run.agent.config.get("services")
    if isinstance(written, Mapping) and written:
        changed = {name: declared(each) if isinstance(each, Mapping) else each for name, each in written.items()}
        run = replace(run, agent=replace(run.agent, config={**run.agent.config, "services": changed}))
    return run
