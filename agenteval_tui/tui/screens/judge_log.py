"""What judges, embedders and people were asked about a run, what they said (both unchanged), and which attempts of it
failed: a sheet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import BindingType

from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.core.numbers import moment, short_dollars, short_duration
from agenteval_tui.history.records import FailedAttempt
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.tui.actions import bindings
from agenteval_tui.tui.presenters.status_style import glyph
from agenteval_tui.tui.styled_text import Cell, Line, fit, paragraph
from agenteval_tui.tui.terminal.sheet import Sheet
from agenteval_tui.tui.widgets.lines_view import LinesView
from agenteval_tui.tui.widgets.sheet_frame import SheetFrame

_WHO = {"chat": "judge", "embed": "embedder", "call": "function", "person": "person"}
EMBEDDING = 12
"""How many numbers of an embedding are shown: people don't read a thousand."""


class LogEntry(Struct, frozen=True):
    """A question with its reply, or a failed attempt: its lines at a width, and its text to copy."""

    reply: StoredReply | None
    attempt: FailedAttempt | None
    criterion: str

    def lines(self, width: int) -> list[Line]:
        """Head, question, reply."""
        if self.attempt is not None:
            return _attempt(self.attempt, width)
        return _reply(self.reply, self.criterion, width) if self.reply is not None else []

    @property
    def text(self) -> str:
        """The whole of it, as it was sent and as it came."""
        if self.attempt is not None:
            return f"attempt {self.attempt.number}: {self.attempt.kind}: {self.attempt.message}"
        assert self.reply is not None
        request_text = json.dumps(self.reply.request.to_json(), ensure_ascii=False, indent=2)
        return f"{request_text}\n\n{self.reply.reply.error or self.reply.reply.raw}"


def entries_of(
    replies: Sequence[StoredReply], attempts: Sequence[FailedAttempt], names: Mapping[str, str], first: str
) -> list[LogEntry]:
    """All entries: replies for criterion `first` before the others, then failed attempts. `names` by hash."""
    ordered = sorted(replies, key=lambda stored_reply: stored_reply.criterion != first)
    log_entries = [LogEntry(stored_reply, None, names.get(stored_reply.criterion, "")) for stored_reply in ordered]
    return log_entries + [LogEntry(None, attempt, "") for attempt in attempts]


def entry_lines(entries: Sequence[LogEntry], width: int) -> tuple[list[Line], list[int]]:
    """All entries one below the other, and the row at which each begins."""
    lines: list[Line] = []
    rows: list[int] = []
    for entry in entries:
        if lines:
            lines.append(())
        rows.append(len(lines))
        lines += entry.lines(width)
    return lines, rows


def _reply(stored: StoredReply, criterion: str, width: int) -> list[Line]:
    request, reply = stored.request, stored.reply
    who = _WHO.get(request.kind, request.kind)
    target = one_line(request.target, 40)
    vote = request.payload.get("vote")
    head: list[Cell] = [(f"{who} {target}".strip(), "bold")]
    if isinstance(vote, int) and vote > 1:
        head.append((f"  vote {vote}", ""))
    if criterion:
        head.append((f"  for {one_line(criterion, 50)}", "accent"))
    lines: list[Line] = [fit(head, width), fit(((_figures(stored), "dim"),), width)]
    lines += _question(request.kind, request.payload, width)
    verdict = "" if reply.error else _verdict(reply.raw)
    lines.append(
        fit(
            ((f"{glyph('error')} no reply: ", "error") if reply.error else ("reply  ", "bold"), (verdict, "bold")),
            width,
        )
    )
    if reply.error:
        lines += paragraph(reply.error, width, "error", 2)
    if reply.raw:
        lines += paragraph(_pretty(reply.raw), width, "", 2)
    return lines


def _figures(stored: StoredReply) -> str:
    reply = stored.reply
    facts = [one_line(reply.model, 40)]
    if reply.input_tokens is not None or reply.output_tokens is not None:
        facts.append(f"{reply.input_tokens or 0:,} tokens in, {reply.output_tokens or 0:,} out")
    if reply.cost is not None:
        facts.append(short_dollars(reply.cost))
    if reply.at_ms:
        facts.append(moment(reply.at_ms))
    return "   ".join(fact for fact in facts if fact)


def _question(kind: str, payload: Mapping[str, Any], width: int) -> list[Line]:
    messages = payload.get("messages")
    if kind == "chat" and isinstance(messages, list):
        lines: list[Line] = []
        for message in messages:
            fields = message if isinstance(message, Mapping) else {"role": "?", "content": message}
            content = fields.get("content")
            text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, indent=2)
            lines.append(fit(((one_line(str(fields.get("role")), 20), "role-user"),), width))
            lines += paragraph(text, width, "dim", 2)
        return lines
    if kind == "embed":
        return [(("text", "role-user"),), *paragraph(str(payload.get("text", "")), width, "dim", 2)]
    text = json.dumps(dict(payload), ensure_ascii=False, indent=2, default=str)
    return [(("asked", "role-user"),), *paragraph(text, width, "dim", 2)]


def _verdict(raw: str) -> str:
    """Score and reason out of a judge's JSON, wherever in the reply it stands; "" where there is none."""
    start, end = raw.find("{"), raw.rfind("}")
    try:
        data = json.loads(raw[start : end + 1]) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return ""
    if not isinstance(data, dict):
        return ""
    score = next((data[name] for name in ("score", "rating", "verdict", "passed") if name in data), None)
    reason = next(
        (data[name] for name in ("reason", "reasoning", "explanation") if isinstance(data.get(name), str)), ""
    )
    figure = "" if score is None else f"{one_line(json.dumps(score, default=str), 40)}  "
    return figure + one_line(reason, 300)


def _pretty(raw: str) -> str:
    """JSON laid out, embeddings cut short; anything else as it came."""
    # A text that looks like a number, or is in quotes, is the reply itself.
    if raw.lstrip()[:1] not in ("{", "["):
        return raw
    try:
        data = json.loads(raw)
    except (ValueError, RecursionError):
        return raw
    if isinstance(data, list) and len(data) > EMBEDDING and all(isinstance(number, int | float) for number in data):
        numbers = ", ".join(f"{number:.4g}" for number in data[:EMBEDDING])
        return f"[{numbers}, … {len(data):,} numbers]"
    return json.dumps(data, ensure_ascii=False, indent=2)


def _attempt(attempt: FailedAttempt, width: int) -> list[Line]:
    facts = [short_duration(attempt.duration_ms), moment(attempt.at_ms)]
    if attempt.input_tokens is not None or attempt.output_tokens is not None:
        facts.insert(1, f"{attempt.input_tokens or 0:,} tokens in, {attempt.output_tokens or 0:,} out")
    if attempt.cost is not None:
        facts.insert(1, short_dollars(attempt.cost))
    head: list[Cell] = [
        (f"{glyph('error')} ", "error"),
        (f"attempt {attempt.number} failed", "bold"),
        (f"  {one_line(attempt.kind, 40)}", "error"),
    ]
    return [fit(head, width), fit((("   ".join(facts), "dim"),), width), *paragraph(attempt.message, width, "", 2)]


class JudgeLogScreen(Sheet[None]):
    """`n` and `p` go from entry to entry, `y` copies the one at the top."""

    SCOPE = "replies"
    BINDINGS: ClassVar[list[BindingType]] = bindings("replies")

    def __init__(self, entries: Sequence[LogEntry], summary: str) -> None:
        super().__init__()
        self._entries = tuple(entries)
        self._summary = summary
        self._rows: list[int] = []

    def compose(self) -> ComposeResult:
        keys = self.edge("next", "previous", ("j k", "scroll"), "copy")
        with SheetFrame("Replies and failed attempts", keys, subject=self._summary, width="large"):
            yield LinesView(self._lines, id="asked")

    def _lines(self, width: int) -> list[Line]:
        lines, self._rows = entry_lines(self._entries, width)
        return lines

    def _here(self) -> int:
        top = self.query_one("#asked", LinesView).scroll_offset.y
        return max((number for number, row in enumerate(self._rows) if row <= top), default=0)

    def action_step(self, by: int) -> None:
        view = self.query_one("#asked", LinesView)
        here = self._here()
        # From the middle of this one, its own start is the previous one.
        number = here if by < 0 and view.scroll_offset.y > self._rows[here] else here + by
        if 0 <= number < len(self._rows):
            view.scroll_to(y=self._rows[number], animate=False)

    def action_copy(self) -> None:
        """The question and the reply at the top, whole."""
        text = displayable(self._entries[self._here()].text)
        self.agenteval.copy(text, "this question with its reply.")
