"""What an agent's code printed and logged, as lines with their time, under the step at which they came."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from agenteval_tui.core.numbers import short_duration
from agenteval_tui.transcripts.model import Output, Transcript

NO_OUTPUT = "The agent's code printed and logged nothing."
_LOUD = frozenset(("ERROR", "CRITICAL", "FATAL"))


class OutputLine(Struct, frozen=True):
    """A line. `step`: the name of a step that begins here, and nothing else; else `at`, the time; `source` (stdout,
    stderr, or a record's level and logger) and the `text`. `tokens` are as of `views.model`."""

    step: str = ""
    at: str = ""
    source: str = ""
    text: str = ""
    tokens: str = ""


def output_lines(transcript: Transcript) -> Iterator[OutputLine]:
    """The lines of a run's output, with a line for each step before what came in it. What an older run, or one of a
    program, wrote to its standard error has no time."""
    steps = sorted((step for step in transcript.timing.steps if not step.setup), key=lambda step: step.started_ms)
    begun = 0
    for piece in transcript.output:
        before = begun
        while begun < len(steps) and steps[begun].started_ms <= piece.at_ms:
            begun += 1
        if begun > before:
            yield OutputLine(step=steps[begun - 1].name)
        yield from _lines(piece)
    for text in transcript.log.splitlines():
        yield OutputLine(source="stderr", text=text, tokens="warn code")


def _lines(piece: Output) -> Iterator[OutputLine]:
    at, source, tokens = short_duration(piece.at_ms), piece.source, "code"
    if piece.source == "log":
        source = f"{piece.level} {piece.logger}".strip()
        tokens = "broken code" if piece.level in _LOUD else "warn code" if piece.level == "WARNING" else "code"
    elif piece.source == "stderr":
        tokens = "warn code"
    for text in piece.text.splitlines() or [""]:
        yield OutputLine(at=at, source=source, text=text, tokens=tokens)
        at, source = "", ""
