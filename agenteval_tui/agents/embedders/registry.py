"""Kinds of embedder by name: those of the entry points."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentSetup
from agenteval_tui.agents.embedders.base import Embedder, LocalEmbedder
from agenteval_tui.agents.permission import NOTHING, Permission
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import EMBEDDERS, LOCAL_EMBEDDERS, EntryPoint
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import expand


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
    written, config = config, expand(dict(config), env)
    kind = str(config.get("kind", ""))
    found = entry_points.find(EMBEDDERS, kind)
    if found is None:
        near = get_close_matches(kind, embedder_kinds(), n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise AgentevalError(
            f"agents of kind {kind!r} give no embeddings" if kind else "an embedder needs a `kind`",
            where=f"embedder {name!r}",
            mend=f"{hint}kinds that do: {', '.join(embedder_kinds())}",
        )
    setup = AgentSetup(name, config, base_dir, env, permission=permission, written=written)
    try:
        made = found.load()(setup)
    except (ImportError, AttributeError) as error:
        raise AgentevalError(
            f"the plug-in for the embedder {kind!r} can't be loaded: {error}",
            where=f"embedder {name!r}",
            mend="update or uninstall the package that brings it",
        ) from error
    if not isinstance(made, Embedder):
        raise AgentevalError(
            f"kind {kind!r} gives a {type(made).__name__} that is not an embedder",
            where=f"embedder {name!r}",
            mend="an embedder has `embed` and `close` (see agents/embedders/base.py)",
        )
    return made
