"""What functions printed and logged, as their process tells it: `{"source", "text", "level", "logger"}`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from agenteval_tui.agents.base import Printed
from agenteval_tui.agents.process.python_secrets import without_secrets
from agenteval_tui.core.storable import storable

_MOST = 4_000  # characters of what a function printed


def printed_piece(output: object, env: Mapping[str, str]) -> Printed | None:
    """A piece, without the secrets of `env`; None where it is empty or something else."""
    if not isinstance(output, Mapping) or output.get("source") not in ("stdout", "stderr", "log"):
        return None
    # Whatever the process says: code of the user's may write to the same socket.
    text, level, logger = (storable(str(output.get(name) or "")) for name in ("text", "level", "logger"))
    return Printed(output["source"], without_secrets(text, env), level, logger) if text else None


class PrintedEnd:
    """The end of what one call printed."""

    def __init__(self) -> None:
        self.text = ""

    def add(self, text: str) -> None:
        """It printed more."""
        self.text = (self.text + text)[-_MOST:]


async def returned_by(events: AsyncGenerator[Mapping[str, Any], None], heard: Callable[[str], None]) -> object:
    """What a function returned, by the events of its call (`PythonHost.events`); `heard` gets what it prints."""
    returned = None
    async with aclosing(events) as answers:
        async for answer in answers:
            if "output" in answer:
                heard(printed_text(answer["output"]))
            returned = answer.get("returned")
    return returned


class PrintedPieces:
    """What one call printed, piece by piece: pieces of the same stream that follow one another are one."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Mapping[str, Any], list[str]]] = []

    def add(self, output: object) -> None:
        """One more piece, as the process tells it."""
        if not isinstance(output, Mapping):
            return
        last = self._pieces[-1] if self._pieces else None
        # A record is a piece by itself; what is printed comes in pieces of any length.
        if last is None or output.get("source") == "log" or output.get("source") != last[0].get("source"):
            self._pieces.append((output, []))
        self._pieces[-1][1].append(str(output.get("text") or ""))

    def joined(self, env: Mapping[str, str]) -> tuple[Printed, ...]:
        """All of it, without the secrets of `env`."""
        pieces = [printed_piece({**output, "text": "".join(texts)}, env) for output, texts in self._pieces]
        return tuple([piece for piece in pieces if piece is not None])


def printed_text(output: object) -> str:
    """A piece as it was printed; a record that was logged, as a line."""
    if not isinstance(output, Mapping):
        return ""
    text = str(output.get("text") or "")
    return f"{text}\n" if output.get("source") == "log" else text
