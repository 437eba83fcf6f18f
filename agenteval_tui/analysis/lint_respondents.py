"""Judges and embedders that metrics name: whether there is an agent of that name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from agenteval_tui.text.problems import AgentevalError, Problem

if TYPE_CHECKING:
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.suites.model import AgentConfig, Suite
    from agenteval_tui.suites.source import ConfigSource

_PROPERTIES = ("judge", "embedder")


def respondent_problems(
    loaded: LoadedSuite, suite: Suite, source: ConfigSource, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Problem]:
    """What is wrong with the names of judges and embedders in the config of one criterion, at the names."""
    if not any(name in source.text for name in _PROPERTIES):
        return  # nearly all of them: no need to read the config once more
    from agenteval_tui.grading.placeholders import has_placeholders
    from agenteval_tui.uxon.parse import parse

    document = parse(source.text)
    value = document.value
    metrics = value.get("metrics") if isinstance(value, Mapping) else None
    for place, metric in enumerate(metrics if isinstance(metrics, list) else ()):
        if not isinstance(metric, Mapping) or not isinstance(metric.get("type"), str):
            continue
        for key in _PROPERTIES:
            name = metric.get(key)
            if not isinstance(name, str) or not name or has_placeholders(name):
                continue
            problem = _unknown(str(metric["type"]), key, name, suite, user_agents)
            node = document.node(("metrics", place, key))
            if problem is not None and node is not None:
                start, end = source.to_offset(node.start), source.to_offset(node.end)
                yield loaded.problem("unknown-agent", start, end, problem.what, problem.mend or None)


def _unknown(
    type_name: str, key: str, name: str, suite: Suite, user_agents: Mapping[str, AgentConfig]
) -> AgentevalError | None:
    from agenteval_tui.grading import registry
    from agenteval_tui.grading.remote import RemoteMetric
    from agenteval_tui.suites.agents_file import resolve_agent

    try:
        model = registry.metric(type_name)
    except AgentevalError:
        return None
    if not issubclass(model, RemoteMetric) or model.asks != ("chat" if key == "judge" else "embed"):
        return None
    try:
        found = resolve_agent(name, suite, user_agents)
    except AgentevalError as error:
        if key == "judge":
            return error
        from agenteval_tui.agents.embedders.registry import embedder_kinds

        # A kind stands for itself; that of a server needs an address, and so an agent.
        return None if name in embedder_kinds() and name != "openai" else error
    if key == "embedder":
        from agenteval_tui.agents.embedders.registry import embedder_kinds

        kind = str(found.as_dict().get("kind", ""))
        if kind not in embedder_kinds():
            listed = ", ".join(sorted(embedder_kinds()))
            return AgentevalError(f'agent "{name}" (kind {kind}) gives no embeddings', mend=f"kinds that do: {listed}")
    return None
