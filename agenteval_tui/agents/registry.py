"""Kinds of agent and of embedder by name: those of the entry points, and their options.

A kind's options are its class's `options_model`. Where the class takes long to import (httpx 100 ms, asyncio 20;
`agenteval validate` takes 250 in all), its options are a module of their own, named in the group
`agenteval.agent_options` under the kind's name: a suite is checked without the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import Agent, AgentSetup, Embedder, LocalEmbedder, TranscriptSource
from agenteval_tui.agents.options import AgentOptions, read_options
from agenteval_tui.agents.options import option_problems as problems_of
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.agents.recording.options import AUTO, MODEL, NONE
from agenteval_tui.core import entry_points
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.entry_points import (
    AGENT_OPTIONS,
    AGENTS,
    CAPTURE_CHECKS,
    CAPTURES,
    EMBEDDERS,
    LOCAL_EMBEDDERS,
    EntryPoint,
)
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import expand


def kinds() -> tuple[str, ...]:
    """The names of all kinds, sorted."""
    return entry_points.names(AGENTS)


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
    permission.require_agent(config, base_dir, env)
    full = expand(dict(config), env)
    setup = AgentSetup(
        name, config=full, base_dir=base_dir, env=env, transcripts=transcripts, permission=permission, written=config
    )
    agent = _class_of(name, full.get("kind"))(setup)
    if not isinstance(agent, Agent):
        raise AgentevalError(
            f"kind {config['kind']!r} gives a {type(agent).__name__} that is not an agent",
            where=f"agent {name!r}",
            fix="an agent has `run`, `check` and `close` (see agents/base.py)",
        )
    model, how = _options_of(name, full.get("kind")), capture_of(full)
    if model is None or how == NONE:
        return agent
    options = read_options(model, name, full)
    return agent if how == AUTO and not options.runs_here else _captured(how, agent, setup, options)


def capture_of(config: Mapping[str, Any]) -> str:
    """The capture of an agent with this configuration: the one that it names, or the usual one of its kind."""
    if config.get("cassette"):
        return MODEL
    model = options_model(str(config.get("kind", "")))
    return str(config.get("capture") or (NONE if model is None else model.usual_capture))


def _captured(how: str, agent: Agent, setup: AgentSetup, options: AgentOptions) -> Agent:
    """The agent with what sees what it does. Loading that takes 100 ms for some, for httpx and the protocols of
    models."""
    point = entry_points.find(CAPTURES, how)
    if point is None:
        raise AgentevalError(f"there is no capture {how!r}", where=f"agent {setup.name!r}")
    captured: Agent = point.load_as("capture")(agent, setup, options)
    return captured


def option_problems(name: str, config: Mapping[str, Any], *, as_written: bool = False) -> list[tuple[str, str]]:
    """What is wrong in an agent's configuration, without making it: (path of the option with dots, a sentence).

    `as_written`: what only the text of a `${VAR}` decides is not said. A kind without a model of its options
    (`options_model`, a pydantic model) can't be checked: no problems.
    """
    kind = config.get("kind")
    try:
        model = _options_of(name, kind)
    except AgentevalError as error:
        if entry_points.find(EMBEDDERS, str(kind)) is not None:
            return []  # it gives embeddings and no answers: `make_embedder` checks its options
        if as_written and "${" in str(kind):
            return []
        return [("kind", f"{error.what} ({error.fix})" if error.fix else error.what)]
    if model is None:
        return []
    return problems_of(model, config, as_written=as_written) or _lacks_of_capture(str(config.get("capture")))


def _lacks_of_capture(name: str) -> list[tuple[str, str]]:
    """What a capture needs, and is not there."""
    check = entry_points.own(CAPTURE_CHECKS).get(name)
    try:
        if check is not None:
            EntryPoint(CAPTURE_CHECKS, name, check, "").load_as("check of the capture")()
    except AgentevalError as error:
        return [("capture", f"`capture: {name}`: {error.what} ({error.fix})")]
    return []


def options_model(kind: str) -> type[AgentOptions] | None:
    """The model of a kind's options; None where it has none. Raises `AgentevalError`."""
    return _options_of(kind, kind)


def is_model(kind: Any) -> bool:
    """Whether agents of this kind are models on a server: it tells tokens and no cost, and hears the conversation and
    nothing else of a test."""
    try:
        model = options_model(str(kind))
    except AgentevalError:
        return False
    return model is not None and model.asks_model


def _options_of(name: str, kind: object) -> type[AgentOptions] | None:
    light = entry_points.find(AGENT_OPTIONS, str(kind))
    model = getattr(_class_of(name, kind), "options_model", None) if light is None else _loaded(name, light)
    # A plug-in's agent may have whatever it likes under that name.
    return model if isinstance(model, type) and issubclass(model, AgentOptions) else None


def _class_of(name: str, kind: object) -> Callable[[AgentSetup], object]:
    point = None if kind is None else entry_points.find(AGENTS, str(kind))
    if point is None:
        message = "an agent needs a `kind`" if kind is None else f"there is no kind of agent {kind!r}"
        fix = _kinds_hint(kind, kinds(), "kinds")
        raise AgentevalError(message, where=f"agent {name!r}", fix=fix)
    of_kind: Callable[[AgentSetup], object] = _loaded(name, point)
    return of_kind


def _kinds_hint(kind: object, kinds: Sequence[str], what: str) -> str:
    hint = did_you_mean(kind, kinds, quotes="'")
    return f"{hint} {what}: {', '.join(kinds)}".lstrip()


def _loaded(name: str, point: EntryPoint) -> Any:
    what, who = ("the embedder", "embedder") if point.group == EMBEDDERS else ("kind", "agent")
    try:
        return point.load()
    except Exception as error:  # the code of others
        raise AgentevalError(
            f"the plug-in for {what} {point.name!r} can't be loaded: {error}",
            where=f"{who} {name!r}",
            fix="update or uninstall the package that brings it",
        ) from error


# Embedders


def embedder_kinds() -> tuple[str, ...]:
    """The names of all kinds of embedder, sorted."""
    return entry_points.names(EMBEDDERS)


def local_embedders() -> Iterator[tuple[str, type[LocalEmbedder]]]:
    """The kinds of embedder that need no address, with their classes: agenteval's own first.

    Raises whatever the module of one raises when it is imported.
    """
    own = entry_points.own(LOCAL_EMBEDDERS)
    for kind, target in own.items():
        yield kind, EntryPoint(LOCAL_EMBEDDERS, kind, target, "").load()
    for kind in entry_points.names(LOCAL_EMBEDDERS):
        if kind not in own and (point := entry_points.find(LOCAL_EMBEDDERS, kind)) is not None:
            yield kind, point.load()


def make_embedder(
    name: str,
    config: Mapping[str, Any],
    *,
    base_dir: Path,
    env: Mapping[str, str],
    permission: Permission = NOTHING,
) -> Embedder:
    """The embedder that `config` (its `kind` and options as they are written) describes: see `make_agent`.

    Raises `AgentevalError` when it is wrong, `NotTrustedError` where `permission` does not cover it.
    """
    permission.require_agent(config, base_dir, env)
    full = expand(dict(config), env)
    kind = str(full.get("kind", ""))
    point = entry_points.find(EMBEDDERS, kind)
    if point is None:
        raise AgentevalError(
            f"agents of kind {kind!r} give no embeddings" if kind else "an embedder needs a `kind`",
            where=f"embedder {name!r}",
            fix=_kinds_hint(kind, embedder_kinds(), "kinds that do"),
        )
    embedder = _loaded(name, point)(AgentSetup(name, full, base_dir, env, permission=permission, written=config))
    if not isinstance(embedder, Embedder):
        raise AgentevalError(
            f"kind {kind!r} gives a {type(embedder).__name__} that is not an embedder",
            where=f"embedder {name!r}",
            fix="an embedder has `embed` and `close` (see agents/base.py)",
        )
    return embedder
