"""Clues in the conversation of one agent: from what failed, back over the data flow to the step that it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval_tui.analysis.blame.data_flow import (
    atoms,
    call_steps,
    has_value,
    origin_of,
    record_of,
    telling_words,
    words_of,
)
from agenteval_tui.analysis.blame.expectation import Expectation, WantedCall
from agenteval_tui.analysis.blame.model import Clue, ClueCode, Fault
from agenteval_tui.analysis.trajectory_alignment import arguments_json
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_verbs import changes_something

_SHOWN = 200  # characters of a value in the fields of a clue
_ID_LENGTH = 4
_NUMBER = re.compile(r"(?<![\w.,-])[$€£#]?(\d[\d,]*(?:\.\d+)?)(?![\w]|[.,]\d)")
# Errors of a run that are nobody's in the conversation.
_ENVIRONMENT = ("timeout", "connection", "rate_limit", "network", "server", "interrupted", "setup")


def clues_of(transcript: Transcript, expectation: Expectation) -> tuple[Clue, ...]:
    """All clues in a conversation of one agent, in no order."""
    walk = _Walk(transcript, expectation)
    clues = [
        *walk.out_of_order(),
        *walk.wrong_calls(),
        *walk.other_values(),
        *walk.failed_and_never_made(),
        *walk.errors(),
        *walk.repeated(),
        *walk.end(),
    ]
    # The same call may be found in two ways. A clue has a dict of fields, so that no set takes it.
    return tuple(clue for number, clue in enumerate(clues) if clue not in clues[:number])


class _Walk:
    """One walk over a transcript. `steps`: the message of each call."""

    def __init__(self, transcript: Transcript, expectation: Expectation) -> None:
        self.transcript = transcript
        self.expectation = expectation
        self.steps = call_steps(transcript)
        called = {call.call for call in expectation.calls if call.call is not None}
        self.writes = [
            (number, call)
            for number, call in enumerate(transcript.tool_calls)
            if call.status != "error" and changes_something(call.name) and number in self.steps
        ]
        self.extra = [(number, call) for number, call in self.writes if number not in called]

    def out_of_order(self) -> Iterator[Clue]:
        """An expected call failed, or was never made, after another tool had written to the same thing."""
        calls = self.expectation.calls
        for place, wanted_call in enumerate(calls):
            if wanted_call.call is not None and self.transcript.tool_calls[wanted_call.call].status != "error":
                continue
            # A call that was never made has no place: any write may be why.
            until = len(self.transcript.messages) if wanted_call.call is None else self.steps.get(wanted_call.call, 0)
            ids = {atom for atom in atoms(wanted_call.arguments) if _is_id(atom)}
            earlier = {other.call for other in calls[:place]}
            for number, call in self.writes:
                # A second call of the expected tool, or one that is expected before it, is in order.
                if call.name == wanted_call.tool or number in earlier or self.steps[number] >= until:
                    continue
                shared = sorted(ids.intersection(atoms(call.arguments)))
                if shared:
                    fields = {"tool": wanted_call.tool, "value": shared[0], "written_by": call.name}
                    yield Clue(ClueCode.OUT_OF_ORDER, self.steps[number], "agent", number, fields)
                    break

    def wrong_calls(self) -> Iterator[Clue]:
        """Calls that must not be made, writes that nothing expects, and arguments that are not as expected."""
        for number in self.expectation.forbidden:
            if number in self.steps:
                fields = {"tool": self.transcript.tool_calls[number].name, **self._source(number)}
                yield Clue(ClueCode.FORBIDDEN_CALL, self.steps[number], "agent", number, fields)
        near = {call.near: call for call in self.expectation.calls if call.call is None and call.near is not None}
        for number, wanted_call in near.items():
            if number is not None and number in self.steps:
                yield from self._arguments(number, wanted_call)
        # Where each expected call was made, a further write is not what the criteria failed for.
        if any(call.call is None for call in self.expectation.calls) or self.expectation.forbidden:
            for number, call in self.extra:
                if self.expectation.calls and number not in self.expectation.forbidden:
                    fields = {"tool": call.name, **self._source(number)}
                    yield Clue(ClueCode.UNEXPECTED_WRITE, self.steps[number], "agent", number, fields)

    def _source(self, number: int) -> dict[str, object]:
        """The result, or the user's words, that all arguments of a call are from: where the idea came from."""
        step = self.steps[number]
        values = list(dict.fromkeys(atoms(self.transcript.tool_calls[number].arguments)))
        origins = [origin_of(value, self.transcript, step) for value in values]
        shared = {origin for origin in origins if origin.source in ("result", "user")}
        if len(shared) != 1 or len(origins) != sum(origin in shared for origin in origins):
            return {}
        (origin,) = shared
        return {"origin": origin.source, "origin_step": origin.step}

    def _arguments(self, number: int, wanted_call: WantedCall) -> Iterator[Clue]:
        step = self.steps[number]
        for argument in wanted_call.differences:
            values, right = list(atoms(argument.found)), list(atoms(argument.wanted))
            extra = [value for value in values if value not in right]
            lacking = [value for value in right if value not in values]
            where = origin_of(extra[0], self.transcript, step) if extra else None
            fields = {
                "tool": wanted_call.tool,
                "argument": argument.name,
                "wanted": _cut(argument.wanted if argument.wanted is not None else argument.rule or None),
                **({} if argument.is_missing else {"found": _cut(argument.found)}),
                "origin": where.source if where else "",
                "origin_step": where.step if where else None,
            }
            yield Clue(ClueCode.WRONG_ARGUMENT, step, "agent", number, fields)
            chosen = self._chosen_by_user(extra, lacking, values, step)
            if chosen is not None:
                at, words = chosen
                fields = {"words": words, "wanted": _cut(argument.wanted), "found": _cut(argument.found)}
                yield Clue(ClueCode.CHOSEN_BY_USER, at, "user", number, fields)

    def _chosen_by_user(
        self, extra: list[str], lacking: list[str], values: list[str], step: int
    ) -> tuple[int, list[str]] | None:
        """The last message before the call in which the user named what was taken, and not what was left out."""
        # A user chooses among records, by words of theirs; the call names the record by its id.
        if not lacking or not all(map(_is_id, (*extra, *lacking))):
            return None
        right = record_of(lacking[0], self.transcript, step)
        chosen_record = record_of(extra[0], self.transcript, step) if extra else None
        if right is None or (extra and chosen_record is None):
            return None
        beside = [record_of(value, self.transcript, step) for value in values if value not in extra]
        theirs = [
            telling_words(record, right)
            for record in ([chosen_record] if chosen_record else beside)
            if record is not None
        ]
        ours = telling_words(right, chosen_record)
        for record in beside if not chosen_record else []:
            ours -= words_of(record or {})
        # The last word counts: a user may change their mind.
        for index in range(step - 1, -1, -1):
            message = self.transcript.messages[index]
            if message.role != "user":
                continue
            spoken = words_of(message.content)
            named = sorted({word for words in theirs for word in words & spoken})
            if named:
                return None if ours & spoken else (index, named)
        return None

    def other_values(self) -> Iterator[Clue]:
        """The agent stated a value of the same form as the one that was expected, and never that one."""
        for text in self.expectation.texts:
            form = _form(text)
            if form is None:
                continue
            answers = [
                (index, message.content)
                for index, message in enumerate(self.transcript.messages)
                if message.role == "assistant"
            ]
            if any(has_value(content, text) for _, content in answers):
                continue
            stated = [
                (index, value)
                for index, content in answers
                for value in (match[1].replace(",", "") for match in _NUMBER.finditer(content))
                if form.fullmatch(value)
            ]
            # What the user said is not the agent's statement; what the agent made up itself comes first.
            # Each look for an origin reads the conversation before: an answer may be a list of thousands of numbers.
            own = [(index, value, origin_of(value, self.transcript, index)) for index, value in stated[:40]]
            own = [entry for entry in own if entry[2].source not in ("user", "system")]
            if own:
                made_up = [entry for entry in own if entry[2].source == "nowhere"]
                index, value, origin = (made_up or own)[0]
                fields = {"wanted": text, "found": value, "origin": origin.source, "origin_step": origin.step}
                yield Clue(ClueCode.OTHER_VALUE, index, "agent", None, fields)

    def failed_and_never_made(self) -> Iterator[Clue]:
        """Expected calls that gave an error, and those that the conversation ended without."""
        calls = self.transcript.tool_calls
        for call in self.expectation.calls:
            if call.call is not None and calls[call.call].status == "error" and call.call in self.steps:
                fields = {"tool": call.tool, "result": _cut(calls[call.call].result)}
                yield Clue(ClueCode.CALL_FAILED, self.steps[call.call], "tool", call.call, fields)
            elif call.call is None and call.near is None:
                user_turns = [index for index, message in enumerate(self.transcript.messages) if message.role == "user"]
                # A user's last message of all has no answer behind it that could have made the call.
                last = [index for index in user_turns if index < len(self.transcript.messages) - 1]
                if last:
                    # In a dialogue the user's last message ended it; of a single question only the agent can have left
                    # the call out.
                    fault: Fault = "user" if len(user_turns) > 1 else "agent"
                    step = last[-1] if len(user_turns) > 1 else last[-1] + 1
                    yield Clue(ClueCode.NEVER_CALLED, step, fault, None, {"tool": call.tool})

    def errors(self) -> Iterator[Clue]:
        """Errors of tools after which the agent went on as if nothing had been."""
        calls = self.transcript.tool_calls
        for number, call in enumerate(calls):
            if call.status == "error" and number in self.steps:
                again = any(later.name == call.name and later.status != "error" for later in calls[number + 1 :])
                if not again:
                    fields = {"tool": call.name, "result": _cut(call.result)}
                    yield Clue(ClueCode.ERROR_IGNORED, self.steps[number], "agent", number, fields)

    def repeated(self) -> Iterator[Clue]:
        """The same call with the same arguments, with no write in between that could have changed its result."""
        by_call: dict[tuple[str, str], list[int]] = {}
        for number, call in enumerate(self.transcript.tool_calls):
            # After a write the same question may have another answer.
            if call.status != "error" and changes_something(call.name):
                by_call.clear()
            if number in self.steps:
                by_call.setdefault((call.name, arguments_json(call.arguments)), []).append(number)
                times = by_call[(call.name, arguments_json(call.arguments))]
                if len(times) == 2:
                    fields = {"tool": call.name, "times": len(times), "first_step": self.steps[times[0]]}
                    yield Clue(ClueCode.REPEATED, self.steps[number], "agent", number, fields)

    def end(self) -> Iterator[Clue]:
        """How the run ended: an error, words that must not be said, the answer."""
        messages = self.transcript.messages
        if self.transcript.error is not None:
            error = self.transcript.error
            fault: Fault = "environment" if error.kind in _ENVIRONMENT else "agent"
            yield Clue(ClueCode.BROKE_OFF, max(len(messages) - 1, 0), fault, None, {"kind": error.kind})
        for step in self.expectation.wrong:
            yield Clue(ClueCode.WRONG_TEXT, step)
        answers = [
            index for index, message in enumerate(messages) if message.role == "assistant" and message.content.strip()
        ]
        if answers and self.expectation.answer:
            yield Clue(ClueCode.ANSWER, answers[-1])


def _form(text: str) -> re.Pattern[str] | None:
    """Which numbers have the form of an expected text: as many digits or decimals; None: it is not a number."""
    plain = text.strip().lstrip("$€£#").replace(",", "")
    whole, point, decimals = plain.partition(".")
    if not whole.isdecimal() or (point and not decimals.isdecimal()):
        return None
    return re.compile(rf"\d+\.\d{{{len(decimals)}}}" if point else rf"\d{{{len(whole)}}}")


def _is_id(value: str) -> bool:
    return len(value) >= _ID_LENGTH and any(sign.isdigit() for sign in value) and " " not in value


def _cut(value: object) -> object:
    return value[:_SHOWN] if isinstance(value, str) else value
