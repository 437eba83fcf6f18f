"""Completion and hover of a config: the schema of its prototype class, and what recordings know."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.config.schema import config_schema, metric_schema
from agenteval_tui.uxon.complete import NO_USES, Completion, complete
from agenteval_tui.uxon.hover import Hover, hover
from agenteval_tui.uxon.name_source import NO_FACTS, Facts


def prepare() -> None:
    """Load all metrics now, some tenths of a second, so that no keystroke waits for it.

    To be called from a thread when an editor opens.
    """
    variants = metric_schema().variants
    if variants is not None:
        dict(variants.options)


def complete_config(
    text: str, offset: int, prototype_class: str, facts: Facts = NO_FACTS, uses: Mapping[str, int] = NO_USES
) -> tuple[Completion, ...]:
    """What can be written at `offset` (characters, 0-based) of a config text, best first.

    `uses`: how often a word occurs in existing configs. Nothing for an unknown prototype class: `diagnose` reports it.
    Labels may hold foreign text, raw.
    """
    try:
        schema = config_schema(prototype_class)
    except AgentevalError:
        return ()
    return complete(text, offset, schema, facts, uses)


def hover_config(text: str, offset: int, prototype_class: str) -> Hover | None:
    """What is known of the name or value at `offset`; None where there is nothing to say."""
    try:
        schema = config_schema(prototype_class)
    except AgentevalError:
        return None
    return hover(text, offset, schema)
