"""`Transcript`: the whole conversation as text."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from pydantic import Field

from agenteval_tui.core.phrasing import listed, quoted
from agenteval_tui.grading.extracted_value import Value
from agenteval_tui.grading.extractors.extractor import Prototype
from agenteval_tui.grading.metrics.metric import ConfigWarning
from agenteval_tui.grading.results import Span
from agenteval_tui.transcripts.model import Transcript as Recorded
from agenteval_tui.transcripts.observed import ObservedKind

_ROLES = ("system", "user", "assistant", "tool")


class Transcript(Prototype):
    """The whole conversation as text: one block `role: text` per message, with a blank line between them.

    Messages without text (those that only call tools) are left out.
    """

    roles: list[str] | None = Field(
        None, description="Only messages with these roles: system, user, assistant, tool. Default: all."
    )

    @property
    def needs(self) -> frozenset[ObservedKind]:
        results = self.roles is None or "tool" in self.roles
        return frozenset(("text", "tool_results") if results else ("text",))

    def extract(self, transcript: Recorded) -> Value | None:
        roles = None if self.roles is None else frozenset(self.roles)
        pieces = cache(lambda: tuple(_pieces(transcript, roles)))

        def text() -> str:
            return "\n\n".join(f"{role}: {content}" for role, content, _ in pieces())

        def spans(start: int, end: int) -> tuple[Span, ...]:
            spans: list[Span] = []
            at = 0
            for role, content, index in pieces():
                begins = at + len(role) + 2
                left, right = max(start, begins), min(end, begins + len(content))
                if left < right or (start == end and begins <= start <= begins + len(content)):
                    if index is None:
                        spans.append(Span("value", 0, left, max(left, right)))
                    else:
                        spans.append(Span("message", index, left - begins, max(left, right) - begins))
                at = begins + len(content) + 2
            return tuple(spans) or (Span("value", 0, start, end),)

        return Value(transcript, text, spans)

    def findings(self) -> Iterator[ConfigWarning]:
        """Roles that no message has."""
        if self.roles is not None and not self.roles:
            yield ConfigWarning("warning", "checks-nothing", "`roles` is empty: no message is left", ("roles",))
        for number, role in enumerate(self.roles or ()):
            if role not in _ROLES and "{{" not in role:
                text = f"{quoted(role)} is not a role that messages usually have: {listed(list(_ROLES))}"
                yield ConfigWarning("warning", "unknown-role", text, ("roles", number))


def _pieces(transcript: Recorded, roles: frozenset[str] | None) -> Iterator[tuple[str, str, int | None]]:
    """Role, text and index of each message that has text."""
    for index, message in enumerate(transcript.messages):
        if message.content and (roles is None or message.role in roles):
            yield message.role, message.content, index
    # Some recordings keep the final answer beside the messages only.
    if transcript.final_output and transcript.final_message is None and (roles is None or "assistant" in roles):
        yield "assistant", transcript.final_output, None
