"""The keys of model servers, which programs do not get in a check that asks no model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.suites.environment import environment_for

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
        try:
            variables: Mapping[str, str] = environment_for(agent.base_dir, os.environ, agent.config)
        except AgentevalError:  # the .env can't be read: the run will say so
            variables = os.environ
        env.update({name: WITHHELD for name in MODEL_KEYS if variables.get(name)})
    return env


def without_keys(run: RunPlan) -> RunPlan:
    """The run without the keys that its suite writes for its agent and its services: these would win over those of the
    environment."""
    config = {**run.agent.config, **_withheld(run.agent.config)}
    if isinstance(services := config.get("services"), Mapping):
        config["services"] = {name: _service_without_keys(service) for name, service in services.items()}
    run = replace(run, agent=replace(run.agent, config=config))
    if run.around is not None and run.around.services:
        own = tuple([replace(service, env=_values_withheld(service.env)) for service in run.around.services])
        run = replace(run, around=replace(run.around, services=own))
    return run


def _service_without_keys(service: Any) -> object:
    """A service as an agent's configuration has it."""
    return {**service, **_withheld(service)} if isinstance(service, Mapping) else service


def _withheld(options: Mapping[str, Any]) -> dict[str, Any]:
    env = options.get("env")
    return {"env": _values_withheld(env)} if isinstance(env, Mapping) else {}


def _values_withheld(env: Mapping[str, Any]) -> dict[str, Any]:
    return {name: WITHHELD if name in MODEL_KEYS else value for name, value in env.items()}
