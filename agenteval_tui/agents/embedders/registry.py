"""Kinds of embedder by name: those of the entry point group `agenteval.embedders`, and the built-in ones."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentSetup
from agenteval_tui.agents.embedders.base import Embedder
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import expand

GROUP = "agenteval.embedders"

# The same names as in pyproject.toml: a checkout that is not installed has no entry points.
BUILT_IN = {
    "openai": "agenteval_tui.agents.embedders.openai:OpenAIEmbedder",
    "minilm": "agenteval_tui.agents.embedders.minilm:MiniLMEmbedder",
}


@cache
def embedder_kinds() -> dict[str, str]:
    """Every kind's name with the place of its class. Plug-ins can't replace built-in kinds."""
    from importlib.metadata import entry_points

    found = {point.name: point.value for point in entry_points(group=GROUP)}
    return {**found, **BUILT_IN}


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
    written, config = config, expand(dict(config), env)
    known = embedder_kinds()
    kind = str(config.get("kind", ""))
    if kind not in known:
        near = get_close_matches(kind, known, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise AgentevalError(
            f"agents of kind {kind!r} give no embeddings" if kind else "an embedder needs a `kind`",
            where=f"embedder {name!r}",
            mend=f"{hint}kinds that do: {', '.join(sorted(known))}",
        )
    setup = AgentSetup(name, config, base_dir, env, permission=permission, written=written)
    module, _, attribute = known[kind].partition(":")
    try:
        made = getattr(import_module(module), attribute)(setup)
    except (ImportError, AttributeError) as error:
        raise AgentevalError(
            f"the plug-in for the embedder {kind!r} can't be loaded: {error}",
            where=f"embedder {name!r}",
            mend="update or uninstall the package that brings it",
        ) from error
    if not isinstance(made, Embedder):
        raise AgentevalError(
            f"kind {kind!r} gives a {type(made).__name__} that is no embedder",
            where=f"embedder {name!r}",
            mend="an embedder has `embed` and `close` (see agents/embedders/base.py)",
        )
    return made
