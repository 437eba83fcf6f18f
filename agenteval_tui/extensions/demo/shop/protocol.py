"""The protocol between the assistant's program and its caller."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

from msgspec import Struct

from agenteval_tui.agents.base import ToolOutcome
from agenteval_tui.core.json_values import json_object


class Call(Struct, frozen=True):
    """A tool to call."""

    name: str
    arguments: Mapping[str, Any]


class Turn(Struct, frozen=True):
    """One message of the assistant: its text, and the calls it makes (at once). Without calls it is the answer."""

    text: str = ""
    calls: tuple[Call, ...] = ()


# Yields turns, is sent the outcomes of a turn's calls in their order. Whoever runs it calls the tools: the bundled
# agent itself, or a client of the demo server.
Talk = Generator[Turn, tuple[ToolOutcome, ...], None]


def value_of(outcome: ToolOutcome) -> dict[str, Any]:
    """The object that a tool gave; {} when it failed or gave something else."""
    return {} if outcome.error else json_object(outcome.text) or {}
