"""What functions printed and logged, as their process tells it: `{"source", "text", "level", "logger"}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agenteval_tui.agents.base import Printed
from agenteval_tui.agents.process.errors import truncate_for_store, without_secrets


def printed_piece(told: Any, env: Mapping[str, str]) -> Printed | None:
    """A piece, without the secrets of `env`; None where it is empty or something else."""
    if not isinstance(told, Mapping) or told.get("source") not in ("stdout", "stderr", "log"):
        return None
    text, level, logger = (truncate_for_store(str(told.get(name) or "")) for name in ("text", "level", "logger"))
    return Printed(told["source"], without_secrets(text, env), level, logger) if text else None


class PrintedPieces:
    """What one call printed, piece by piece: pieces of the same stream that follow one another are one."""

    def __init__(self) -> None:
        self._pieces: list[tuple[Mapping[str, Any], list[str]]] = []

    def add(self, told: Any) -> None:
        """One more piece, as the process tells it."""
        if not isinstance(told, Mapping):
            return
        last = self._pieces[-1] if self._pieces else None
        if last is None or told.get("source") == "log" or told.get("source") != last[0].get("source"):
            self._pieces.append((told, []))
        self._pieces[-1][1].append(str(told.get("text") or ""))

    def joined(self, env: Mapping[str, str]) -> tuple[Printed, ...]:
        """All of it, without the secrets of `env`."""
        pieces = [printed_piece({**told, "text": "".join(texts)}, env) for told, texts in self._pieces]
        return tuple([piece for piece in pieces if piece is not None])


def printed_text(told: Any) -> str:
    """A piece as it was printed; a record that was logged, as a line."""
    if not isinstance(told, Mapping):
        return ""
    text = str(told.get("text") or "")
    return f"{text}\n" if told.get("source") == "log" else text
