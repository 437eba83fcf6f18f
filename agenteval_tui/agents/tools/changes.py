"""What differs, for one run, of the tools that an agent has: which it is not given, and what is told otherwise of one.

It travels in the testing context (`without_tools`, `unseen_tools`, `changed_tools`), as mock tools do: so it is stored
with a run, is part of what tells requests apart, and goes wherever the context goes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from agenteval_tui.agents.base import ToolSpec
from agenteval_tui.core.errors import AgentevalError

WITHOUT = "without_tools"
UNSEEN = "unseen_tools"
CHANGED = "changed_tools"


class ToolChange(Struct, frozen=True, omit_defaults=True):
    """What is told of a tool in place of its own words; None: its own."""

    description: str | None = None
    parameters: Mapping[str, Any] | None = None


class ToolChanges(Struct, frozen=True, omit_defaults=True):
    """`without`: the names of tools that the model is not offered, and can't call. `changed`: by name, what it is told
    of a tool that it is offered. `unseen`: as `without`, of tools that the agent need not have."""

    without: tuple[str, ...] = ()
    changed: Mapping[str, ToolChange] = field(default_factory=dict)
    unseen: tuple[str, ...] = ()

    @property
    def withheld(self) -> tuple[str, ...]:
        """The names of all tools that the model is not offered."""
        return (*self.without, *self.unseen)

    def offered(self, specs: Sequence[ToolSpec]) -> list[ToolSpec]:
        """What the model is told, of tools that have these specs."""
        return [self._changed(spec) for spec in specs if spec.name not in self.withheld]

    def check(self, names_of_tools: Collection[str]) -> None:
        """Raise `AgentevalError` where a tool is named that is not among the known ones."""
        for option, names in ((WITHOUT, self.without), (CHANGED, tuple(self.changed))):
            for name in names:
                if name not in names_of_tools:
                    raise AgentevalError(
                        f"`{option}` names {name!r}, and the agent has no such tool",
                        fix=f"its tools: {', '.join(names_of_tools) or 'none'}",
                    )

    def laid_over(self, context: Mapping[str, Any]) -> dict[str, Any]:
        """The context with these changes beside those that it has; a change of the same tool wins."""
        before = tool_changes(context)
        without = (*before.without, *(name for name in self.without if name not in before.without))
        unseen = dict.fromkeys((*before.unseen, *self.unseen))
        changed = {**before.changed, **self.changed}
        changed_context = {name: value for name, value in context.items() if name not in (WITHOUT, UNSEEN, CHANGED)}
        if without:
            changed_context[WITHOUT] = list(without)
        if unseen:
            changed_context[UNSEEN] = list(unseen)
        if remaining := {name: tool_change for name, tool_change in changed.items() if name not in without}:
            changed_context[CHANGED] = {name: _plain(tool_change) for name, tool_change in remaining.items()}
        return changed_context

    def _changed(self, spec: ToolSpec) -> ToolSpec:
        change = self.changed.get(spec.name)
        if change is None:
            return spec
        return replace(
            spec,
            description=spec.description if change.description is None else change.description,
            parameters=spec.parameters if change.parameters is None else change.parameters,
        )


def tool_changes(context: Mapping[str, Any]) -> ToolChanges:
    """The changes that a testing context has."""
    without, unseen = tuple(context.get(WITHOUT) or ()), tuple(context.get(UNSEEN) or ())
    changed = context.get(CHANGED) or {}
    if not without and not unseen and not changed:
        return NO_CHANGES
    return ToolChanges(without, {name: ToolChange(**fields) for name, fields in changed.items()}, unseen)


def _plain(change: ToolChange) -> dict[str, Any]:
    fields = {"description": change.description, "parameters": change.parameters}
    return {name: value for name, value in fields.items() if value is not None}


NO_CHANGES = ToolChanges()
