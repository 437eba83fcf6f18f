"""What changed from the request before to a request, with its texts whole: what `show --request N --diff` prints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval_tui.core.display import one_line
from agenteval_tui.transcripts.model_request import ModelRequest, ModelRequests, whole_text
from agenteval_tui.transcripts.request_changes import RequestChange, changes_since
from agenteval_tui.views.difference import texts_view
from agenteval_tui.views.model import Element, Paragraph, Span, View, text
from agenteval_tui.views.model_request import cache_notices, change_text, request_head

_REMOVED: Span = ("-", "removed")
_ADDED: Span = ("+", "added")


def request_difference_view(requests: ModelRequests, number: int, calls: Sequence[str]) -> View:
    """What is different in this request since the one before of the same agent: each message that went or came, and
    both texts of each that changed. `calls`: the tools that the transcript's calls are of."""
    request, before, difference = requests.request(number), requests.before(number), changes_since(requests, number)
    elements: list[Element] = list(request_head(requests, number, calls))
    if before is None or difference is None:
        whose = " of this agent" if len(requests.lines) > 1 else ""
        elements.append(Paragraph(text((f"the first request{whose}: there is none before it", "dim"))))
        return tuple(elements)
    elements.append(Paragraph(text((f"since request {before.number}", "dim"))))
    if not difference.changes:
        elements.append(Paragraph(text(("Nothing changed.", "dim")), 2))
    for change in difference.changes:
        elements.append(Paragraph(text((change_text(change), "dim" if change.kind == "added" else "warn")), 2))
        elements += _texts(before, request, change)
    if not request.previous:
        elements += [Paragraph(text((notice, "dim")), 2) for notice in cache_notices(before, request, difference)]
    return tuple(elements)


def _texts(before: ModelRequest, after: ModelRequest, change: RequestChange) -> Iterator[Element]:
    if change.kind == "moved":
        for old, new in zip(change.before, change.after, strict=True):
            role = one_line(str(after.messages[new].get("role")))
            yield Paragraph(text((f"{old + 1} → {new + 1} {role}", "bold")), 2)
            yield from (Paragraph(text((line, "dim")), 4) for line in whole_text(after.messages[new]).splitlines())
    elif change.was or change.now:
        yield from texts_view(change.was, change.now)
    else:
        for request, places, sign in ((before, change.before, _REMOVED), (after, change.after, _ADDED)):
            yield from _messages(request, places, sign)


def _messages(request: ModelRequest, places: Sequence[int], sign: Span) -> Iterator[Element]:
    for place in places:
        message = request.messages[place]
        yield Paragraph(text(sign, " ", (f"{place + 1} {one_line(str(message.get('role')))}", "bold")))
        words = whole_text(message)
        yield from texts_view(words, "") if sign is _REMOVED else texts_view("", words)
