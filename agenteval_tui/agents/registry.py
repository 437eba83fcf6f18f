"""Kinds of agent by name: those of the entry point group `agenteval.agents`, and the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import expand

if TYPE_CHECKING:
    from agenteval_tui.agents.base import Agent, TranscriptSource
    from agenteval_tui.agents.options import AgentOptions

GROUP = "agenteval.agents"

# The same names as in pyproject.toml: a checkout that is not installed has no entry points.
BUILT_IN = {
    "demo": "agenteval_tui.agents.demo:DemoAgent",
    "replay": "agenteval_tui.agents.replay:ReplayAgent",
    "openai": "agenteval_tui.agents.models.openai:OpenAIChatAgent",
    "anthropic": "agenteval_tui.agents.models.anthropic:AnthropicAgent",
    "http": "agenteval_tui.agents.http.agent:HttpAgent",
    "command": "agenteval_tui.agents.process.command:CommandAgent",
    "python": "agenteval_tui.agents.process.python:PythonAgent",
}

# Where their options are: these modules load neither the shop nor a network, so that checking a suite is quick.
_OPTIONS = {
    "demo": "agenteval_tui.agents.demo_options:DemoOptions",
    "replay": "agenteval_tui.agents.replay_options:ReplayOptions",
    "openai": "agenteval_tui.agents.models.openai_options:OpenAIOptions",
    "anthropic": "agenteval_tui.agents.models.anthropic_options:AnthropicOptions",
    "http": "agenteval_tui.agents.http.options:HttpOptions",
    "command": "agenteval_tui.agents.process.command_options:CommandOptions",
    "python": "agenteval_tui.agents.process.python_options:PythonOptions",
}


@cache
def kinds() -> dict[str, str]:
    """Every kind's name with the place of its class, "module:name". Plug-ins can't replace built-in kinds."""
    from importlib.metadata import entry_points  # looks through all that is installed

    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**found, **BUILT_IN}


def make_agent(
    name: str,
    config: Mapping[str, Any],
    *,
    base_dir: Path,
    env: Mapping[str, str],
    permission: Permission = NOTHING,
    transcripts: TranscriptSource | None = None,
) -> Agent:
    """The agent that `config` describes; `name` is what the user calls it. Nothing is connected yet.

    `config` holds `kind` and the kind's options as they are written: `${VAR}` is expanded from `env` here, after the
    permission was looked at. Relative paths in it are meant from `base_dir`; keys are looked up by their name in `env`.
    `transcripts` serves `replay` agents with `execution:`. Raises `NotTrustedError` where `permission` (from the trust
    check) does not cover the agent, `AgentevalError` when the kind or an option is wrong, or a plug-in can't be loaded.
    """
    from agenteval_tui.agents.base import Agent, AgentSetup

    permission.require_agent(config, base_dir, env)
    full = expand(dict(config), env)
    agent = _class_of(name, full)(AgentSetup(name, full, base_dir, env, transcripts, permission, config))
    if not isinstance(agent, Agent):
        raise AgentevalError(
            f"kind {config['kind']!r} gives a {type(agent).__name__} that is no agent",
            where=f"agent {name!r}",
            mend="an agent has `run`, `check` and `close` (see agents/base.py)",
        )
    return agent


def option_problems(name: str, config: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What is wrong in an agent's configuration, without making it: (path of the option with dots, a sentence).

    A kind without a model of its options (`options_model`, a pydantic model) can't be checked: no problems.
    """
    from agenteval_tui.agents import options

    kind = config.get("kind")
    if kind not in BUILT_IN and kind not in kinds():
        from agenteval_tui.agents.embedders.registry import embedder_kinds

        if kind in embedder_kinds():
            return []  # it gives embeddings and no answers: `make_embedder` checks its options
    try:
        known = _OPTIONS.get(str(kind))
        model = _attribute(known) if known else getattr(_class_of(name, config), "options_model", None)
    except AgentevalError as error:
        return [("kind", f"{error.what} ({error.mend})" if error.mend else error.what)]
    if isinstance(model, type) and issubclass(model, options.AgentOptions):
        return options.option_problems(model, config)
    return []


def options_model(kind: str) -> type[AgentOptions]:
    """The model of the options of a built-in kind."""
    model: type[AgentOptions] = _attribute(_OPTIONS[kind])
    return model


def _class_of(name: str, config: Mapping[str, Any]) -> Any:
    kind = config.get("kind")
    known = BUILT_IN if kind in BUILT_IN else kinds()
    if kind not in known:
        near = get_close_matches(str(kind), known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        said = "an agent needs a `kind`" if kind is None else f"there is no kind of agent {kind!r}"
        raise AgentevalError(said, where=f"agent {name!r}", mend=f"{hint}kinds: {', '.join(sorted(known))}")
    try:
        return _attribute(known[str(kind)])
    except (ImportError, AttributeError) as error:
        raise AgentevalError(
            f"the plug-in for kind {kind!r} can't be loaded: {error}",
            where=f"agent {name!r}",
            mend="update or uninstall the package that brings it",
        ) from error


def _attribute(place: str) -> Any:
    module, _, name = place.partition(":")
    return getattr(import_module(module), name)
