"""What is shown of a shrunk run: how much is left, what is left, and what was taken out."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from agenteval_tui.core import numbers
from agenteval_tui.core.display import displayable, one_line
from agenteval_tui.extensions.shrink.case import Case, Part, pieces
from agenteval_tui.extensions.shrink.shrink import Count, Progress, Shrunk
from agenteval_tui.extensions.shrink.stored_run import ShrinkPrice
from agenteval_tui.views.model import Paragraph, Span, Text, View, text

GAP = " … "
_LABEL = 11  # cells of a role or a name, and the space behind it
STAGES = {
    "reproduce": "does it fail again?",
    "reduce": "removing parts",
    "confirm": "asking the smallest case again",
    "check": "removing each part by itself",
}


def progress_text(progress: Progress) -> str:
    """`removing parts: 212 of 1,240 characters, 31 questions, 44 continuations`."""
    return (
        f"{STAGES[progress.stage]}: {progress.smallest:,} of {numbers.count(progress.whole, 'character')}, "
        f"{numbers.count(progress.questions, 'question')}, {numbers.count(progress.answers, 'continuation')}"
    )


def price_text(price: ShrinkPrice) -> str:
    """What shrinking may take: `about 40 to 200 continuations · about $0.02 to $0.10 · about 20 s to 2 min`."""
    low, high = price.low, price.high
    parts = [f"about {low:,} to {high:,} continuations"]
    if price.cost is None:
        parts.append("cost not known")
    elif price.cost:
        parts.append(f"about {numbers.dollars(price.cost * low)} to {numbers.dollars(price.cost * high)}")
    else:
        parts.append("free")
    if price.seconds is not None:
        ends = [numbers.duration(1000 * price.seconds * many) for many in (low, high)]
        parts.append(f"about {ends[0]} to {ends[1]}")
    return " · ".join(parts)


def shrunk_view(shrunk: Shrunk, criterion: str, *, dimmed: bool = False) -> View:
    """What came of it, and the small case. `dimmed`: what was taken out is there too, dim; else a gap stands for it."""
    blocks: list[Paragraph] = [Paragraph(_verdict(shrunk, criterion))]
    if shrunk.ending in ("shrunk", "stopped") and shrunk.removed:
        blocks += [Paragraph(words, 1, _LABEL) for words in case_lines(shrunk.case, shrunk.removed, dimmed=dimmed)]
    blocks += [Paragraph(words) for words in _notes(shrunk)]
    return tuple(blocks)


def case_lines(case: Case, removed: Collection[int], *, dimmed: bool) -> Iterator[Text]:
    """A line for each tool, message and call of the case: its role or name, and what it says."""
    gone = [one_line(tool.text, 60) for tool in case.tools if tool.id in removed]
    for tool in case.tools:
        if tool.id not in removed:
            name = text((f"{one_line(tool.text, 60)} ", "bold"))
            yield _line("tool", (*name, *_pieces(tool.parts[0], removed, dimmed=dimmed)), there=True)
            if takes := tuple(_properties(tool, removed, dimmed=dimmed)):
                yield _line("  takes", takes, there=True)
    if gone and dimmed:
        yield _line("tools", text((", ".join(gone), "dim")), there=False)
    for message in case.messages:
        there = message.id not in removed
        role = case.original.messages[message.index].role
        for part in message.parts:
            if part.kind == "text":
                words = _pieces(part, removed, dimmed=dimmed, gone=not there)
                if words and (there or dimmed):
                    yield _line(role, words, there=there)
                continue
            if part.id in removed and not dimmed:
                continue
            arguments, result = part.parts
            here = part.id not in removed
            name = text((f"{one_line(part.text, 60)} ", "bold" if here else "dim"))
            yield _line("call", (*name, *_pieces(arguments, removed, dimmed=dimmed, gone=not here)), there=here)
            yield _line("result", _pieces(result, removed, dimmed=dimmed, gone=not here), there=here)


def _properties(tool: Part, removed: Collection[int], *, dimmed: bool) -> Iterator[Span]:
    properties = [part for part in tool.parts[1:] if dimmed or part.id not in removed]
    for part in properties:
        comma = ", " if part is not properties[-1] else ""
        yield f"{one_line(part.key, 60)}{comma}", "dim" if part.id in removed else ""


def _line(label: str, words: Text, *, there: bool) -> Text:
    return text((f"{label:<{_LABEL - 1}} ", "accent" if there else "dim"), *words)


def _pieces(part: Part, removed: Collection[int], *, dimmed: bool, gone: bool = False) -> Text:
    """The present words, and for removed ones a gap, or the words dimmed."""
    spans: list[Span] = []
    for words, there in pieces(part, removed, gone=gone):
        if not there and not dimmed:
            if spans and not spans[-1][0].endswith(GAP) and part.kind == "text":
                spans.append((GAP, "dim"))
            continue
        token = "" if there else "dim"
        if spans and spans[-1][1] == token:
            spans[-1] = (spans[-1][0] + words, token)
        else:
            spans.append((words, token))
    if spans and spans[-1][0] == GAP:
        spans.pop()
    return tuple((displayable(" ".join(words.splitlines())), token) for words, token in spans if words)


def _verdict(shrunk: Shrunk, criterion: str) -> Text:
    what = f"“{one_line(criterion, 60)}” fails" if criterion else "the agent ends in its error"
    before, after = shrunk.sizes
    if shrunk.ending == "not_reproduced":
        return text(
            ("It does not fail again often enough: ", "warn"),
            f"{what} for the same cause in {_rate(shrunk.first)}. Treat the failure as chance, or lower --rate.",
        )
    if shrunk.ending == "stopped" and not shrunk.removed:
        return text(("Stopped before anything was removed: ", "warn"), f"{shrunk.why}.")
    if shrunk.ending == "stopped":
        return text(
            ("Stopped: ", "warn"), f"{shrunk.why}. The smallest case so far has {after:,} of {before:,} characters."
        )
    if shrunk.ending == "whole":
        return text(f"Nothing can be removed: {what} for the same cause only with all {before:,} characters.")
    return text(
        (f"{after:,} of {before:,} characters", "bold"),
        f" are enough: {what} for the same cause in {_rate(shrunk.last)}.",
    )


def _notes(shrunk: Shrunk) -> Iterator[Text]:
    if shrunk.unseen:
        without = numbers.count(shrunk.unseen, "message")
        yield text((f"As the model saw it at that step: without {without}, or with a shorter text.", "dim"))
    tools = len(shrunk.case.tools)
    if tools and shrunk.ending in ("shrunk", "stopped"):
        yield text((f"{len(shrunk.tools)} of its {numbers.count(tools, 'tool')} are left.", "dim"))
    if shrunk.tools_stay:
        yield text((f"No tool was removed: {shrunk.tools_stay}.", "dim"))
    if shrunk.minimal:
        yield text(("No single part can be removed; agenteval tried each one.", "dim"))
    totals = f"{numbers.count(shrunk.questions, 'question')}, {numbers.count(shrunk.answers, 'continuation')}"
    yield text((f"{totals}. They are stored, and never count in rates, trends, baselines or gates.", "dim"))


def _rate(count: Count) -> str:
    return f"{count.hits} of {numbers.count(count.n, 'continuation')}"
