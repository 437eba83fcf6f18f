"""What an execution had around its runs: its services, and the hooks of no single run that failed."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval_tui.core import numbers
from agenteval_tui.core.display import one_line
from agenteval_tui.runs.around.record import DIED, FAILED, AroundRecord
from agenteval_tui.views.model import Text, View, paragraphs, text
from agenteval_tui.views.traceback import traceback_block

_LAST_LINES = 10


def around_view(record: AroundRecord) -> View:
    """A line for each service, with the last lines of one that failed, and each hook that failed."""
    return paragraphs(_lines(record))


def _lines(record: AroundRecord) -> Iterator[Text]:
    for service in record.services:
        name = f"service {one_line(service.name, 40)}"
        if service.status not in (FAILED, DIED):
            ready = f", ready after {numbers.duration(service.ready_ms)}" if service.ready_ms else ""
            yield text((f"{name}: {one_line(service.command, 80)}, {service.status}{ready}", "dim"))
            continue
        yield text((f"{name}: ", "broken"), one_line(service.error, 600), (f" ({one_line(service.fix, 300)})", "dim"))
        yield from (text((f"  {one_line(line, 300)}", "dim")) for line in service.output.splitlines()[-_LAST_LINES:])
    for hook in record.hooks:
        if hook.error is not None:
            message = one_line(hook.error.message, 600)
            yield text((f"{hook.phase}: ", "broken"), message, (f" ({one_line(hook.error.fix, 300)})", "dim"))
            if hook.error.traceback is not None:
                yield from (text((f"  {line}", "dim")) for line in traceback_block(hook.error.traceback))
