"""What left the model's sight in a recorded run, and what of it a failed criterion needs.

A criterion needs a value (a text that is missing, an argument of a call), a tool, or an instruction (lines about a
tool or a text that must not come). For each, the request that led to the failed answer is looked at: if an earlier
request of the same agent had it and this one has not, it left the model's sight in between.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Literal

from msgspec import Struct

from agenteval_tui.analysis.blame.data_flow import atoms, call_steps, has_value
from agenteval_tui.analysis.blame.expectation import LACKED, Expectation, expectation_of
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.regex_search import PatternError, SlowPatternError, compile_pattern
from agenteval_tui.grading.results import CriterionResult, Evidence, Outcome
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.model_request import ModelRequests, whole_text
from agenteval_tui.transcripts.request_changes import RequestChange, changes_since
from agenteval_tui.transcripts.visible_messages import LOSSES, losses

_MOST_TOLD = 3
_MOST_LOOKED_AT = 1_000
_SHORTEST = 3
"""Characters of an expected text that are looked for: shorter ones are in any message."""
_TELLING = 4
"""Characters of a word that is looked for by itself."""
_WORD = re.compile(r"[^\W_]+(?:[.'#-][^\W_]+)*")
LOST_KINDS = (*LOSSES, "changed", "system", "tool_removed", "tool_changed")

NeedKind = Literal["value", "tool", "instruction"]


class LostFromSight(Struct, frozen=True):
    """What request `request` (from 1) no longer had. `answer`: the transcript's message that it led to; None where it
    has no answer. `needed`: texts or tools that failed criteria need, which were there before and are nowhere in the
    request for the answer that failed; `need` says what they are. `stood`: the last message before that has it."""

    request: int
    change: RequestChange
    answer: int | None = None
    needed: tuple[str, ...] = ()
    need: NeedKind = "value"
    stood: int | None = None


class _Need(Struct, frozen=True):
    """What a failed condition needs. `at`: the message that failed for want of it; None: the final answer. `pieces`:
    what of a text it is (a value itself; of an instruction the lines about it); () where the text has nothing of it."""

    kind: NeedKind
    text: str
    at: int | None
    pieces: Callable[[str], tuple[str, ...]]


def lost_from_sight(
    transcript: Transcript, results: Sequence[CriterionResult], expectation: Expectation | None = None
) -> tuple[LostFromSight, ...]:
    """The losses of a run, those that a failed criterion needs first, at most three; () where its requests are not
    known, or nothing left the model's sight."""
    requests = transcript.requests
    if requests is None:
        return ()
    needed = needed_from_sight(transcript, results, expectation)
    reported = {(loss.request, loss.change) for loss in needed}
    # Of many messages that were shortened, none is worth hiding one that is gone.
    first = sorted(islice(losses(requests), _MOST_LOOKED_AT), key=lambda loss: loss[1].kind == "masked")
    others = (LostFromSight(number, change, _answer(requests, number)) for number, change in first)
    return (*needed, *(other for other in others if (other.request, other.change) not in reported))[:_MOST_TOLD]


def needed_from_sight(
    transcript: Transcript, results: Sequence[CriterionResult], expectation: Expectation | None = None
) -> tuple[LostFromSight, ...]:
    """The losses of what failed criteria need, in the order of the requests."""
    requests = transcript.requests
    if requests is None or not requests.references:
        return ()
    search = _Search(transcript, requests)
    lost: dict[tuple[int, NeedKind], tuple[RequestChange, list[str], list[str]]] = {}
    for need in _needs(results, expectation or expectation_of(results, {}), search):
        loss = search.loss(need)
        if loss is not None:
            number, change, gone = loss
            _, needed, pieces = lost.setdefault((number, need.kind), (change, [], []))
            pieces += gone
            needed += [text for text in (sorted(gone) if need.kind == "value" else [need.text]) if text not in needed]
    return tuple(
        LostFromSight(
            number,
            change,
            _answer(requests, number),
            tuple(needed),
            kind,
            None if kind == "tool" else search.message_with(pieces, _answer(requests, number)),
        )
        for (number, kind), (change, needed, pieces) in sorted(lost.items(), key=lambda item: item[0][0])
    )


def lost_before(transcript: Transcript, message: int | None = None) -> list[LostFromSight]:
    """All that left the sight of the agent that gave an answer, up to the request for it. `message`: which answer;
    None: the final one."""
    requests = transcript.requests
    if requests is None:
        return []
    last = _Search(transcript, requests).request_for(message)
    return [
        LostFromSight(number, change, _answer(requests, number))
        for number, change in losses(requests, (*LOSSES, "system", "tool_removed"))
        if number <= last and requests.references[number - 1].line == requests.references[last - 1].line
    ]


# Inside


def _answer(requests: ModelRequests, number: int) -> int | None:
    return requests.references[number - 1].answer


class _Search:
    """Where in the requests of a run something is. A text is in many requests, and is searched once."""

    def __init__(self, transcript: Transcript, requests: ModelRequests) -> None:
        self.transcript = transcript
        self.requests = requests
        self.steps = call_steps(transcript)
        self._texts = [whole_text(message) for message in requests.messages]
        self._tools = ["\n".join(f"{tool.name} {tool.description}" for tool in tools) for tools in requests.tools]
        self._numbers = {
            request_reference.answer: number for number, request_reference in enumerate(requests.references, 1)
        }

    def request_for(self, message: int | None) -> int:
        """The number of the request that led to a message; None: to the final answer, or that was to; 0: not known."""
        if message is not None:
            return self._numbers.get(message, 0)
        final = self.transcript.final_message
        # A run that broke off has no final answer: then the last request is the one that should have led to it.
        number = 0 if final is None else self._numbers.get(final, 0)
        line = self.requests.references[number - 1].line if number else 1
        return number or max(self.requests.numbers_of_line(line), default=0)

    def sight(self, number: int) -> str:
        """All that the model was given in a request, as one text."""
        request_reference = self.requests.references[number - 1]
        texts = [text for first, end in request_reference.messages for text in self._texts[first:end]]
        return "\n".join(
            [self.requests.systems[request_reference.system], *texts, self._tools[request_reference.tools]]
        )

    def message_with(self, pieces: Sequence[str], before: int | None) -> int | None:
        """The last message of the transcript before this one that has one of these texts."""
        messages = self.transcript.messages[:before]
        return next(
            (
                place
                for place in range(len(messages) - 1, -1, -1)
                if any(has_value(messages[place].content, piece) for piece in pieces)
            ),
            None,
        )

    def stood(self, need: _Need) -> bool:
        """Whether any request had it."""
        return any(map(need.pieces, (*self.requests.systems, *self._texts, *self._tools)))

    def loss(self, need: _Need) -> tuple[int, RequestChange, frozenset[str]] | None:
        """The request in which what is needed was first lacking for good, up to the one that failed; how it went, and
        what of it."""
        failed = self.request_for(need.at)
        if not failed:
            return None
        requests = self.requests
        own = [number for number in requests.numbers_of_line(requests.references[failed - 1].line) if number <= failed]
        if any(requests.references[number - 1].previous for number in own):
            return None  # the server keeps a part: what the model saw is not in the requests
        had = self._had(need, own)
        here = had[-1]
        # It was there when it was needed. Of an instruction a part may be gone all the same.
        if here and need.kind != "instruction":
            return None
        # From the end: what came back and was lost again left at the last loss.
        for place in range(len(own) - 1, 0, -1):
            gone = had[place - 1] - had[place] - here
            if gone:
                change = self._change(own[place], gone)
                return None if change is None else (own[place], change, gone)
        return None

    def _had(self, need: _Need, numbers: Sequence[int]) -> list[frozenset[str]]:
        """What of it each of these requests had."""
        requests = self.requests
        if need.kind == "tool":
            offered = [frozenset(tool.name for tool in tools if tool.name == need.text) for tools in requests.tools]
            return [offered[requests.references[number - 1].tools] for number in numbers]
        systems, tools = [[need.pieces(text) for text in texts] for texts in (requests.systems, self._tools)]
        ruled = need.kind == "instruction"  # only people give instructions
        stands = {
            place: pieces
            for place, text in enumerate(self._texts)
            if (not ruled or requests.messages[place].get("role") == "user") and (pieces := need.pieces(text))
        }
        # A conversation is in all later requests: each text is searched once, and then only counted by its place.
        places = sorted(stands)
        had = []
        for number in numbers:
            reference = requests.references[number - 1]
            here = {*systems[reference.system], *tools[reference.tools]}
            for first, end in reference.messages:
                for place in places[bisect_left(places, first) : bisect_left(places, end)]:
                    here.update(stands[place])
            had.append(frozenset(here))
        return had

    def _change(self, number: int, gone: frozenset[str]) -> RequestChange | None:
        """The change that took these texts away."""
        before, difference = self.requests.before(number), changes_since(self.requests, number)
        if before is None or difference is None:
            return None
        changes = [change for change in difference.changes if change.kind in LOST_KINDS]
        for change in changes:
            lost = [change.was, change.name, *(whole_text(before.messages[place]) for place in change.before)]
            if any(text in part for text in gone for part in lost):
                return change
        return changes[0] if changes else None


def _needs(results: Sequence[CriterionResult], expectation: Expectation, search: _Search) -> Iterator[_Need]:
    for result in results:
        if result.outcome is not Outcome.FAILED:
            continue
        for text in result.fields.get(LACKED) or ():
            yield from _of_text(str(text), None, search)
        for metric in result.metrics:
            for line in metric.evidence:
                if line.passed is False and "tool" not in line.fields:
                    yield from _of_evidence(line, search, negated=result.negate)
    for call in expectation.calls:
        if call.call is None:
            at = None if call.near is None else search.steps.get(call.near)
            yield _Need("tool", call.tool, at, lambda text: ())
            due = [difference.wanted for difference in call.differences] if call.near is not None else call.arguments
            for text in atoms(due):
                yield from _of_text(text, at, search)
    for number in expectation.forbidden:
        name = search.transcript.tool_calls[number].name
        yield _Need("instruction", name, search.steps.get(number), _lines_about(name))


def _of_evidence(line: Evidence, search: _Search, *, negated: bool) -> Iterator[_Need]:
    listed = line.expected if isinstance(line.expected, list | tuple) else [line.expected]
    texts = [entry.strip() for entry in listed if isinstance(entry, str) and len(entry.strip()) >= _SHORTEST]
    at = next((span.index for span in line.spans if span.kind == "message"), None)
    for text in texts:
        if negated or line.code == Code.PRESENT or line.fields.get("forbidden"):
            yield _Need("instruction", text, at, _lines_about(text))
        elif line.group == "Regex":
            yield from _of_pattern(text)
        else:
            yield from _of_text(text, None, search)


def _of_pattern(text: str) -> Iterator[_Need]:
    try:
        pattern = compile_pattern(text)
    except PatternError:
        return

    def pieces(content: str) -> tuple[str, ...]:
        try:
            match = pattern.search(content)
        except SlowPatternError:
            return ()
        return (match.group(),) if match is not None and match.group().strip() else ()

    yield _Need("value", text, None, pieces)


def _of_text(text: str, at: int | None, search: _Search) -> Iterator[_Need]:
    """The text itself. If no request ever had it: those of its words that the failed request lacks, provided that an
    earlier request had most of its words, because the criterion may word it differently than the conversation."""
    if len(text) < _SHORTEST:
        return
    need = _Need("value", text, at, _stands(text))
    if search.stood(need):
        yield need
        return
    words = [
        word for word in dict.fromkeys(_WORD.findall(text)) if len(word) >= _TELLING or any(map(str.isdigit, word))
    ]
    failed = search.request_for(at)
    if len(words) < 2 or not failed:
        return
    here = search.sight(failed)
    lacking = [word for word in words if not has_value(here, word)]
    needs = [need for word in lacking if search.stood(need := _Need("value", word, at, _stands(word)))]
    if 2 * len(needs) >= len(lacking):
        yield from needs


def _stands(text: str) -> Callable[[str], tuple[str, ...]]:
    return lambda context: (text,) if has_value(context, text) else ()


def _lines_about(text: str) -> Callable[[str], tuple[str, ...]]:
    """The lines about a text or a tool."""
    # Its words, too: instructions say "refund" where the tool is called `issue_refund`.
    parts = (part for part in re.split(r"[_\W]+", text) if _TELLING <= len(part) < len(text))
    words = [part.casefold() for part in (text, *parts)]
    return lambda context: tuple(
        [line for line in map(str.strip, context.splitlines()) if any(word in line.casefold() for word in words)]
    )
