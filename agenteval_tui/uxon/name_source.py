"""What was seen of the world that a config speaks about: the source of completions that no schema knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

TOOL_NAME: Final = "tool-name"
"""The property holds the name of a tool (or a list of names)."""
TOOL_ARGUMENTS: Final = "tool-arguments"
"""The property maps argument names to values, of the tool that the TOOL_NAME property beside it names."""
ANSWER_TEXT: Final = "answer-text"
"""The property holds a text that is looked for in an answer (or a list of texts)."""

PROBE_NAME: Final = "probe-name"
"""The property holds the name of a probe of the test."""


class Facts(Protocol):
    """Names and values that were really seen, the most useful first. Nothing seen: empty. None raises."""

    def tools(self) -> Sequence[str]:
        """The names of tools."""
        ...

    def arguments(self, tool: str) -> Sequence[str]:
        """The names of the arguments that `tool` was given."""
        ...

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        """Values (JSON) that an argument had."""
        ...

    def texts(self) -> Sequence[str]:
        """Pieces of answers."""
        ...

    def probes(self) -> Sequence[str]:
        """The names of the test's probes."""
        ...

    def variables(self) -> Sequence[str]:
        """The names that a text may have as `{{name}}`."""
        ...


class NoFacts:
    """Nothing was seen yet."""

    def tools(self) -> Sequence[str]:
        """None."""
        return ()

    def arguments(self, tool: str) -> Sequence[str]:
        """None."""
        return ()

    def values(self, tool: str, argument: str) -> Sequence[Any]:
        """None."""
        return ()

    def texts(self) -> Sequence[str]:
        """None."""
        return ()

    def probes(self) -> Sequence[str]:
        """None."""
        return ()

    def variables(self) -> Sequence[str]:
        """None."""
        return ()


NO_FACTS: Final = NoFacts()
