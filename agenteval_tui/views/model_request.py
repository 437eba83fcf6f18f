"""What a model was asked for an answer, and what changed since the request before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from agenteval_tui.analysis.lost_context import LostFromSight
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, RequestPart, content_of
from agenteval_tui.transcripts.request_changes import Kind, RequestChange, RequestDifference, changes_since
from agenteval_tui.views.model import Paragraph, Span, Text, View, text

_WORDS = 72
_MOST_GROUPED = 6
"""Messages that were shortened before the rest is counted."""
_MOST_LINES = 12
"""Lines of a changed text, and of messages that went, before the rest is counted."""


def requests_view(
    requests: ModelRequests, differences: Sequence[RequestDifference | None], calls: Sequence[str]
) -> View:
    """A line for each agent that asked, if there are several, and one for each request, with what changed since the one
    before of the same agent. `calls`: the tools that the transcript's calls are of."""
    # Of a single agent the run says which it is.
    several = len(requests.lines) > 1
    lines = [Paragraph(line_text(requests, number, calls)) for number in range(1, len(requests.lines) + 1) if several]
    lines += [Paragraph(line) for line in _unrecorded(requests)]
    for number, difference in enumerate(differences, 1):
        request = requests.request(number)
        size = f"{count(len(request.messages), 'message')}, {count(_size(request), 'character')}{_tokens(request)}"
        whose = f"  {one_line(requests.line(request.line).name, 40)}" if several else ""
        lines.append(
            Paragraph(text((f"{request.number:>3}", "bold"), (whose, "dim"), f"  {size}  ", *_in_short(difference)))
        )
    return tuple(lines)


def line_text(requests: ModelRequests, number: int, calls: Sequence[str]) -> Text:
    """An agent that asked: `research: "You look things up." 3 requests, called by tool call 2 (research)`."""
    line = requests.line(number)
    requests_made = sum(reference.line == number for reference in requests.references)
    about = f' "{one_line(line.about, 60)}"' if line.about else ""
    called = ""
    if line.called_by is not None:
        name = f" ({one_line(calls[line.called_by], 40)})" if line.called_by < len(calls) else ""
        called = f", called by tool call {line.called_by + 1}{name}"
    used = f", its answer is in request {line.used_in}" if line.used_in is not None else ""
    return text((one_line(line.name, 40), "bold"), (f"{about}  {count(requests_made, 'request')}{called}{used}", "dim"))


def _unrecorded(requests: ModelRequests) -> Iterator[Text]:
    if requests.unrecorded:
        parts = listed([_PARTS[part] for part in requests.unrecorded])
        yield text((f"Not recorded: {parts}. The model may have seen some.", "warn"))


_PARTS: Mapping[RequestPart, str] = {
    "system": "system prompts",
    "tools": "the tools that it could call",
    "parameters": "parameters",
}


def request_view(
    requests: ModelRequests, number: int, calls: Sequence[str], *, most: int | None = None, more: str = ""
) -> View:
    """One request: what changed since the one before of the same agent, then all that the model was given. `calls`: the
    tools that the transcript's calls are of. `most`: how many of its messages are shown, the newest; None: all. `more`:
    how the others are shown."""
    request, before, difference = requests.request(number), requests.before(number), changes_since(requests, number)
    lines = list(request_head(requests, number, calls))
    if before is not None and difference is not None:
        lines.append(Paragraph(text((f"since request {before.number}", "dim"))))
        lines += [Paragraph(line, 2) for line in _difference_lines(before, request, difference)]
    lines.append(Paragraph(text("")))
    lines += _contents(request, most, more)
    return tuple(lines)


def request_head(requests: ModelRequests, number: int, calls: Sequence[str]) -> Iterator[Paragraph]:
    """Which request it is, whose, and what is not known of it."""
    request = requests.request(number)
    which = f"request {number:,} of {len(requests.references):,}"
    yield Paragraph(text((which, "bold"), (_model(request) + _tokens(request), "dim")))
    if len(requests.lines) > 1:
        yield Paragraph(line_text(requests, request.line, calls))
    yield from map(Paragraph, _unrecorded(requests))
    if request.previous:
        notice = "The server keeps the conversation before this: what the model saw of it is not in the request."
        yield Paragraph(text((notice, "warn")))
    if request.error:
        yield Paragraph(text((f"It has no answer: {one_line(request.error, 200)}", "broken")))


def _model(request: ModelRequest) -> str:
    return f"  {one_line(request.model)}" if request.model else ""


def _tokens(request: ModelRequest) -> str:
    return "" if request.input_tokens is None else f", {count(request.input_tokens, 'token')}"


def change_text(change: RequestChange) -> str:
    """A change in a few words: `4 messages dropped`, `result masked: 1,204 → 27 characters`."""
    return _ONE_LINE[change.kind](change)


def changes_text(changes: Iterable[RequestChange]) -> str:
    """Several changes in a few words; many messages that were shortened are counted."""
    return "; ".join(map(_group_text, _grouped(changes)))


def lost_view(lost: Sequence[LostFromSight], run: str, options: str = "") -> View:
    """What the model no longer saw, before a step is blamed for what it could not know."""
    return tuple(Paragraph(text(("not seen by the model: ", "bold"), lost_text(loss, run, options))) for loss in lost)


def lost_text(lost: LostFromSight, run: str, options: str = "") -> str:
    """`in request 4: 3 messages dropped; "W1" stood there (agenteval show RUN --request 4 --diff)`."""
    needed = ", ".join(f'"{one_line(needle, 40)}"' for needle in lost.needed[:3])
    stood = f"; {needed} stood there" if needed else ""
    command = f"agenteval show {run} --request {lost.request} --diff{options}"
    return f"in request {lost.request}: {change_text(lost.change)}{stood} ({command})"


def _size(request: ModelRequest) -> int:
    return len(request.system) + sum(len(content_of(message)) for message in request.messages)


def _in_short(difference: RequestDifference | None) -> Iterator[str | Span]:
    if difference is None:
        yield ("first request", "dim")
        return
    for number, group in enumerate(_grouped(difference.changes)):
        yield ("; " if number else "", "dim")
        yield (_group_text(group), "dim" if group[0].kind == "added" else "warn")


def _grouped(changes: Iterable[RequestChange]) -> list[list[RequestChange]]:
    """The changes, with those together that are of one message each and of the same kind."""
    groups: list[list[RequestChange]] = []
    for change in changes:
        # Agents that shorten old results do so with many messages at once.
        if groups and groups[-1][0].kind == change.kind in ("masked", "changed"):
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _group_text(group: Sequence[RequestChange]) -> str:
    """As `change_text`; of several messages `145 messages shortened: 96,135 → 2,900 characters`."""
    if len(group) == 1:
        return change_text(group[0])
    if group[0].kind == "changed":
        return f"{count(len(group), 'message')} changed"
    was, now = (sum(map(len, texts)) for texts in zip(*((change.was, change.now) for change in group), strict=True))
    return f"{count(len(group), 'message')} shortened: {was:,} → {count(now, 'character')}"


def _messages(places: Sequence[int]) -> str:
    return count(len(places), "message")


def _lengths(change: RequestChange) -> str:
    return f"{len(change.was):,} → {count(len(change.now), 'character')}"


def _set(value: str) -> str:
    return one_line(value, 40) or "not set"


_ONE_LINE: Mapping[Kind, Callable[[RequestChange], str]] = {
    "added": lambda change: f"{_messages(change.after)} added",
    "dropped": lambda change: f"{_messages(change.before)} dropped",
    "replaced": lambda change: f"{_messages(change.before)} replaced by {len(change.after):,}",
    "masked": lambda change: f"message {change.before[0] + 1} shortened: {_lengths(change)}",
    "changed": lambda change: f"message {change.before[0] + 1} changed",
    "moved": lambda change: f"{_messages(change.before)} moved",
    "restarted": lambda change: f"starts over, without the {_messages(change.before)} before",
    "system": lambda change: f"system prompt changed at line {change.name}",
    "tool_added": lambda change: f"tool {one_line(change.name, 40)} added",
    "tool_removed": lambda change: f"tool {one_line(change.name, 40)} removed",
    "tool_changed": lambda change: f"tool {one_line(change.name, 40)} described otherwise",
    "tools_moved": lambda change: "tools in another order",
    "parameter": lambda change: f"{one_line(change.name, 40)} {_set(change.was)} → {_set(change.now)}",
}


def _difference_lines(before: ModelRequest, after: ModelRequest, difference: RequestDifference) -> Iterator[Text]:
    if not difference.changes:
        yield text(("Nothing changed.", "dim"))
    for group in _grouped(difference.changes):
        change = group[0]
        token = "dim" if change.kind == "added" else "warn"
        yield text((_group_text(group), token))
        if len(group) > 1:
            for similar in group[:_MOST_GROUPED]:
                yield text(("  ", ""), (change_text(similar), "dim"))
                yield from _sides(similar)
            if len(group) > _MOST_GROUPED:
                yield text((f"  … {count(len(group) - _MOST_GROUPED, 'more message')}", "dim"))
            continue
        # What went first, then what came, as in any difference.
        if change.kind in ("dropped", "replaced", "restarted", "moved"):
            yield from _message_lines(before, change.before, ("- ", "removed"))
        if change.kind in ("replaced", "added", "restarted"):
            yield from _message_lines(after, change.after, ("+ ", "added"))
        if change.kind in ("masked", "changed", "system", "tool_changed", "tools_moved"):
            yield from _sides(change)
    # Of a conversation that the server keeps the request shows only the end: nothing can be said of its beginning.
    if not after.previous:
        yield from (text((notice, "dim")) for notice in cache_notices(before, after, difference))


def cache_notices(before: ModelRequest, after: ModelRequest, difference: RequestDifference) -> Iterator[str]:
    """Where what a server has cached can't be used any more, and what it read. A request begins with the tools; the
    system prompt follows, then the messages."""
    system = next((int(change.name) for change in difference.changes if change.kind == "system"), 0)
    if before.model != after.model:
        yield "Another model: nothing that a server has cached can be used."
    elif any(change.kind.startswith("tool") for change in difference.changes):
        yield "A request begins with its tools: nothing that a server has cached can be used."
    elif system:
        yield f"What a server has cached is lost from line {system:,} of the system prompt on."
    elif difference.common < len(before.messages):
        shared = count(difference.common, "message")
        yield (
            f"Both begin with the same {shared}; what a server has cached behind them is lost."
            if difference.common
            else "They have no beginning in common: nothing that a server has cached can be used."
        )
    read = before.cached_tokens, after.cached_tokens
    # What the server itself counted: told where it read less, also if the beginning is the same.
    if read[0] is not None and read[1] is not None and read[1] < read[0]:
        yield f"The server read {count(read[1], 'token')} from its cache, and {read[0]:,} for request {before.number}."


def _message_lines(request: ModelRequest, places: Sequence[int], sign: Span) -> Iterator[Text]:
    for place in places[:_MOST_LINES]:
        message = request.messages[place]
        words = one_line(content_of(message), _WORDS)
        yield text(("  ", ""), sign, (f"{place + 1} {one_line(str(message.get('role')))}  ", "dim"), (words, "code"))
    if len(places) > _MOST_LINES:
        yield text((f"  … {count(len(places) - _MOST_LINES, 'more message')}", "dim"))


def _sides(change: RequestChange) -> Iterator[Text]:
    for sign, token, words in (("- ", "removed", change.was), ("+ ", "added", change.now)):
        lines = words.splitlines()
        for line in lines[:_MOST_LINES]:
            yield text(("  ", ""), (sign, token), (one_line(line, 400), "code"))
        if len(lines) > _MOST_LINES:
            yield text((f"  … {count(len(lines) - _MOST_LINES, 'more line')}", "dim"))


def _contents(request: ModelRequest, most: int | None, more: str) -> Iterator[Paragraph]:
    if request.system:
        yield Paragraph(text(("system", "bold"), (f"  {count(len(request.system), 'character')}", "dim")))
        yield from (Paragraph(text((line, "code")), 3) for line in request.system.splitlines())
    first = 0 if most is None else max(0, len(request.messages) - most)
    if first:
        size = count(sum(len(content_of(message)) for message in request.messages[:first]), "character")
        yield Paragraph(text((f"{count(first, 'earlier message')}, {size}: {more}", "dim")))
    for number, message in enumerate(request.messages[first:], first + 1):
        words = content_of(message)
        role = one_line(str(message.get("role")))
        yield Paragraph(text((f"{number} {role}", "bold"), (f"  {count(len(words), 'character')}", "dim")))
        yield from (Paragraph(text((line, "code")), 3) for line in words.splitlines())
    if request.tools:
        yield Paragraph(text(("tools", "bold"), (f"  {count(len(request.tools), 'tool')}", "dim")))
        for tool in request.tools:
            yield Paragraph(text((one_line(tool.name, 60), "code"), (f"  {one_line(tool.description, 200)}", "dim")), 3)
    if request.parameters:
        listed = ", ".join(f"{name}: {one_line(str(value), 60)}" for name, value in sorted(request.parameters.items()))
        yield Paragraph(text(("parameters", "bold"), (f"  {listed}", "dim")))
