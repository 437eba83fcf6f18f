"""What an agent's code printed and logged, as lines with their time, under the step at which they came."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from agenteval_tui.core.display import one_line, printed_lines
from agenteval_tui.core.numbers import duration, short_duration
from agenteval_tui.runs.around.record import DIED, FAILED, NOTHING, AroundRecord, ServiceState
from agenteval_tui.transcripts.model import HookRun, Output, Transcript
from agenteval_tui.views.model import Span, Text, View, paragraphs, text
from agenteval_tui.views.traceback import traceback_block

NO_OUTPUT = "The agent's code printed and logged nothing."
_LAST_LINES = 10
_LOUD = frozenset(("ERROR", "CRITICAL", "FATAL"))


class OutputLine(Struct, frozen=True):
    """A line. `step`: the name of a step that begins here, and nothing else; else `at`, the time; `source` (stdout,
    stderr, or a record's level and logger) and the `text`. `tokens` are as of `views.model`."""

    step: str = ""
    at: str = ""
    source: str = ""
    text: str = ""
    tokens: str = ""


def has_output(transcript: Transcript, record: AroundRecord = NOTHING) -> bool:
    """Whether the agent's code, a hook or a service printed something, or failed."""
    return bool(transcript.output or transcript.log or transcript.hooks or record.services or record.hooks)


def output_lines(transcript: Transcript, record: AroundRecord = NOTHING) -> Iterator[OutputLine]:
    """The lines of a run's output, with a line for each step before its output. What an older run, or one of a
    program, wrote to its standard error has no time. Hooks come before and after it, then what its execution has in
    `record`: services, and hooks of no single run."""
    for hook in transcript.hooks:
        if hook.phase != "after":
            yield from hook_lines(hook)
    yield from _agent_lines(transcript)
    for hook in transcript.hooks:
        if hook.phase == "after":
            yield from hook_lines(hook)
    for hook in record.hooks:
        yield from hook_lines(hook)
    for service in record.services:
        yield from service_lines(service)


def hook_lines(hook: HookRun) -> Iterator[OutputLine]:
    """What a hook printed, below what it is."""
    attempt = f", attempt {hook.attempt}" if hook.attempt > 1 else ""
    yield OutputLine(step=f"{hook.phase} {hook.name} ({short_duration(hook.duration_ms)}{attempt})")
    yield from _plain(hook.phase, hook.output)
    if hook.error is not None:
        yield from _failed(hook.error.message, hook.error.fix)


def service_lines(service: ServiceState) -> Iterator[OutputLine]:
    """What a service printed, below what it is."""
    ready = f", ready after {short_duration(service.ready_ms)}" if service.ready_ms else ""
    yield OutputLine(step=f"service {service.name}: {service.command} ({service.status}{ready})")
    yield from _plain(service.name, service.output)
    if service.error:
        yield from _failed(service.error, service.fix)


def _plain(source: str, output: str) -> Iterator[OutputLine]:
    for line in printed_lines(output):
        yield OutputLine(source=source, text=line, tokens="code")
        source = ""


def _failed(message: str, fix: str) -> Iterator[OutputLine]:
    yield OutputLine(source="error", text=f"{message} ({fix})" if fix else message, tokens="broken code")


def _agent_lines(transcript: Transcript) -> Iterator[OutputLine]:
    steps = sorted((step for step in transcript.timing.steps if not step.setup), key=lambda step: step.started_ms)
    begun = 0
    for piece in transcript.output:
        before = begun
        while begun < len(steps) and steps[begun].started_ms <= piece.at_ms:
            begun += 1
        # Of several steps that began without output the last is named: the piece came in it.
        if begun > before:
            yield OutputLine(step=steps[begun - 1].name)
        yield from _lines(piece)
    # It has no times, and so no place among the steps.
    for line in printed_lines(transcript.log):
        yield OutputLine(source="stderr", text=line, tokens="warn code")


def _lines(piece: Output) -> Iterator[OutputLine]:
    at, source, tokens = short_duration(piece.at_ms), piece.source, "code"
    if piece.source == "log":
        source = f"{piece.level} {piece.logger}".strip()
        tokens = "broken code" if piece.level in _LOUD else "warn code" if piece.level == "WARNING" else "code"
    elif piece.source == "stderr":
        tokens = "warn code"
    for line in printed_lines(piece.text) or [""]:
        yield OutputLine(at=at, source=source, text=line, tokens=tokens)
        # Time and source stand at the first line of a piece, not at each.
        at, source = "", ""


def around_view(record: AroundRecord) -> View:
    """A line for each service, with the last lines of one that failed, and each hook that failed."""
    return paragraphs(_around_lines(record))


def _around_lines(record: AroundRecord) -> Iterator[Text]:
    for service in record.services:
        name = f"service {one_line(service.name, 40)}"
        if service.status not in (FAILED, DIED):
            ready = f", ready after {duration(service.ready_ms)}" if service.ready_ms else ""
            yield text((f"{name}: {one_line(service.command, 80)}, {service.status}{ready}", "dim"))
            continue
        yield text((f"{name}: ", "broken"), one_line(service.error, 600), _remedy(service.fix))
        yield from (text((f"  {one_line(line, 300)}", "dim")) for line in printed_lines(service.output)[-_LAST_LINES:])
    for hook in record.hooks:
        if hook.error is not None:
            message = one_line(hook.error.message, 600)
            yield text((f"{hook.phase}: ", "broken"), message, _remedy(hook.error.fix))
            if hook.error.traceback is not None:
                yield from (text((f"  {line}", "dim")) for line in traceback_block(hook.error.traceback))


def _remedy(fix: str) -> Span:
    return f" ({one_line(fix, 300)})" if fix else "", "dim"
