"""The agent that a name means, and how a variation is laid over its configuration and over a test's context.

Apart from `agents`: whoever only reads executions does not load the suites.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.ids import content_hash
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.suites.agents_file import resolve_agent
from agenteval_tui.suites.model import AgentConfig, Context, Suite, Test, Variation


def deep_merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `over` laid over it; neither is changed.

    Objects merge key by key, everything else replaces: lists too, so that an empty list means none. A null in `over`
    sets null. A key that `over` does not have is inherited; an empty object has none, and so changes nothing.
    """
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(value, Mapping):
            merged[key] = deep_merge(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged


def merged_context(test: Test, variation: Variation | None) -> dict[str, Any]:
    """The test's context as an agent gets it, with the variation's context merged by the same rules.

    Mock tools become an object by name, even if the test has a list. If the variation has an object, it changes or adds
    the named tools; if it has a list, it replaces all tools, and an empty list removes them. Canned answers that are an
    object (request: response) merge by request; a list replaces them. Values that the variation sets to null, or to an
    empty list, stay in the result, because a missing value means that the agent's value is inherited.
    """
    base = test.context
    over = variation.context if variation is not None else None
    if over is None:
        return base.as_dict() if base is not None else {}

    merged = deep_merge(_by_name(base), over.model_dump(exclude_unset=True))
    context = Context.model_validate(merged).as_dict()
    for name in over.model_fields_set - context.keys():
        if merged[name] is None or merged[name] == []:
            context[name] = merged[name]  # `as_dict` leaves out what is empty
    return context


def _by_name(context: Context | None) -> dict[str, Any]:
    """The written values of a context, with its mock tools by name."""
    if context is None:
        return {}
    written = context.model_dump(exclude_unset=True)
    if isinstance(context.sample_tools, list) and context.sample_tools:
        written["sample_tools"] = {tool["name"]: tool for tool in written["sample_tools"]}
    return written


def agent_plan(
    name: str,
    suite: Suite | None,
    folder: Path,
    user_agents: Mapping[str, AgentConfig],
    config: Mapping[str, Any] | None = None,
) -> AgentPlan:
    """The agent of that name as the suite in `folder` sees it, with `config` merged in. Raises `AgentevalError`."""
    merged = deep_merge(resolve_agent(name, suite, user_agents).as_dict(), config or {})
    # Relative paths of an agent are meant from the file that describes it.
    base_dir = folder if suite is not None and name in suite.agents else config_dir()
    return AgentPlan(name, merged, base_dir, content_hash([name, merged, str(base_dir)]))
