"""From a transcript and edits to the conversation that is continued. Pure: it calls no agent and reads nothing.

Steps count from 0 here, and from 1 in sentences: people see them so wherever a transcript is shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.tools.changes import ToolChanges
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import listed
from agenteval_tui.runs.fork.model import AnyEdit, Arguments, Drop, Insert, Result, System, Text, Tools
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Message, ToolCall, Transcript
from agenteval_tui.transcripts.visible_messages import Sight

ANSWERED = ("user", "tool")
"""Roles of messages that an agent answers."""


class ForkError(AgentevalError):
    """A run can't be continued so."""


class UnknownStepError(ForkError):
    """The run has no such step."""


class WrongStepError(ForkError):
    """The step is not of the kind that the edit changes."""


class NothingToAnswerError(ForkError):
    """Nothing is left that the agent could answer."""


class ResultWithoutCallError(ForkError):
    """A tool's result without its call, or a call without its result: no server takes such a conversation."""


def fork(transcript: Transcript, step: int, edits: Sequence[AnyEdit] = ()) -> Conversation:
    """The conversation up to and with `step`, with the edits made; what the user said after it follows in `turns`.

    A step is told with all that belongs to it: calls with their results. Where it ends with an answer, what the user
    said next is told too. After that a simulated user speaks anew. What the model did not see any more at that point is
    left out, and results of tools stand as it saw them, unless an edit is about them (`unseen_before`). Tools that it
    was not offered are left out, too (`unseen_tools`). Raises `ForkError`.
    """
    messages, calls = transcript.messages, transcript.tool_calls
    check_step(transcript, step)
    edited = {edit.step for edit in edits if not isinstance(edit, System | Tools)}
    # An edit of a later step means the conversation up to that one.
    last = max([step, *edited])
    check_step(transcript, last)
    end = end_of_step(transcript, last)
    later = [message for message in messages[end + 1 :] if message.role == "user"]
    if any(message.attachments for message in later):
        raise ForkError("the user sent an image or a file later, which can't be asked again", fix="choose a later step")
    # What an edit is about stays in the conversation, whether the model still saw it or not.
    edited |= {end_of_step(transcript, edit.step) for edit in edits if isinstance(edit, Insert)}
    unseen, shortened = unseen_before(transcript, end)
    messages_by_number = {
        number: replace(message, content=shortened[number]) if number in shortened.keys() - edited else message
        for number, message in enumerate(messages[: end + 1])
        if number not in unseen - edited
    }
    results = {
        message.tool_call: number for number, message in messages_by_number.items() if message.tool_call is not None
    }
    changed = [
        replace(call, result=messages_by_number[results[number]].content) if results.get(number) in shortened else call
        for number, call in enumerate(calls)
    ]
    inserted: dict[int, list[Message]] = {}
    dropped: set[int] = set()
    without: set[int] = set()
    system: str | None = None
    tools: ToolChanges | None = None
    for edit in edits:
        match edit:
            case System(text):
                system = text
            case Tools(changes):
                tools = changes
            case Text(at, text):
                if messages_by_number[at].role == "tool":
                    raise _wrong(transcript, at, "a result of a tool", "set its result: tool_result")
                # What the model thought led to the other text.
                messages_by_number[at] = replace(messages_by_number[at], content=text, reasoning="")
            case Arguments(at, value, number):
                own = messages_by_number[at].tool_calls
                if not 0 <= number < len(own):
                    raise _wrong(transcript, at, count(len(own), "call"), "choose a step that calls a tool")
                changed[own[number]] = replace(changed[own[number]], arguments=value, malformed=False)
            case Result(at, text, error):
                if messages_by_number[at].role != "tool":
                    raise _wrong(transcript, at, "no result of a tool", "choose the step after the call")
                messages_by_number[at] = replace(messages_by_number[at], content=text)
                call = messages_by_number[at].tool_call
                if call is not None:
                    changed[call] = replace(changed[call], result=text, status="error" if error else "ok")
            case Insert(at, role, text):
                # Behind the results of the step's calls: no server takes anything between a call and its result.
                inserted.setdefault(end_of_step(transcript, at), []).append(Message(role, text))
            case Drop(at):
                dropped.add(at)
                answers = messages_by_number[at].tool_call
                dropped_calls = set(messages_by_number[at].tool_calls) if answers is None else {answers}
                without |= dropped_calls
                dropped |= {results[call] for call in dropped_calls if call in results}
    # Before anything is put together: what is wrong is named by the steps of the run.
    _require_results(transcript, messages_by_number, results.keys() | without)
    only_told = told_before(transcript, end)
    for number in unseen & edited:
        only_told.pop(number - 1, None)  # the text that stood in its place
    conversation: list[Message] = [] if system is None else [Message("system", system)]
    conversation += only_told.get(-1, ())
    for number in _in_order(transcript, end):
        if number not in messages_by_number:
            conversation += only_told.get(number, ())
            continue
        message = messages_by_number[number]
        kept_calls = tuple(call for call in message.tool_calls if call not in without)
        # A message whose calls are all dropped, and that says nothing else, would be empty.
        emptied = bool(message.tool_calls) and not kept_calls and not message.content
        replaced = system is not None and message.role in SYSTEM_ROLES
        if number not in dropped and not emptied and not replaced:
            conversation.append(
                replace(message, tool_calls=kept_calls) if kept_calls != message.tool_calls else message
            )
        conversation += only_told.get(number, ())
        conversation += inserted.get(number, ())
    if later and later[0].simulated and (not conversation or conversation[-1].role not in ANSWERED):
        conversation.append(later[0])
    return complete(
        replace(_renumbered(conversation, changed), tools=tools, unseen_tools=unseen_tools(transcript, end)),
        [later_message.content for later_message in later if not later_message.simulated],
    )


def unseen_before(transcript: Transcript, end: int) -> tuple[frozenset[int], dict[int, str]]:
    """What the model did not see any more when it answered the conversation up to message `end`: the messages that were
    not in its request, and the results of tools that had another text there. A call goes with its results. Nothing
    where its requests are not known."""
    if transcript.requests is None:
        return frozenset(), {}
    sight = Sight(transcript)
    number = sight.request_at(end + 1)
    unseen, others = sight.out_of_sight(number), sight.other_results(number)
    messages = transcript.messages
    prompts = {place for place, message in enumerate(messages[: end + 1]) if message.role in SYSTEM_ROLES}
    unseen_calls = {call for place in unseen for call in messages[place].tool_calls}
    of_calls = {place: message.tool_call for place, message in enumerate(messages) if message.tool_call is not None}
    results = {place for place, call in of_calls.items() if call in unseen_calls}
    # A result that is nowhere stays where its call is seen: no server takes a call without one.
    kept_places = of_calls.keys() | (prompts if prompts <= unseen else set())
    left_out = frozenset(place for place in (unseen - kept_places) | results if place <= end)
    return left_out, {place: text for place, text in others.items() if place <= end and place not in left_out}


def _in_order(transcript: Transcript, end: int) -> list[int]:
    """The messages up to `end` as the request for the answer behind them has them: the system prompt first, results
    with their calls; one that it doesn't have stays behind the one before."""
    sight = Sight(transcript)
    standing = sight.standing(sight.request_at(end + 1))
    places: list[int] = []
    place = -1
    for number, message in enumerate(transcript.messages[: end + 1]):
        if message.tool_call is not None:
            calling = transcript.tool_calls[message.tool_call].message
            places.append(place if calling is None or calling >= number else places[calling])
            continue
        place = standing.get(number, place)
        places.append(-1 if standing and message.role in SYSTEM_ROLES else place)
    return sorted(range(end + 1), key=places.__getitem__)


def told_before(transcript: Transcript, end: int) -> dict[int, list[Message]]:
    """What the model saw when it answered the conversation up to message `end`, and the transcript does not have: a
    summary, a shortened text; by the message before it."""
    if transcript.requests is None:
        return {}
    sight = Sight(transcript)
    only = sight.only_told(sight.request_at(end + 1))
    return {place: messages for place, messages in only.items() if place <= end}


def unseen_tools(transcript: Transcript, end: int) -> tuple[str, ...]:
    """The tools that the model was not offered when it answered the conversation up to message `end`, and was offered
    in other requests of the same agent. Nothing where that is not known."""
    requests = transcript.requests
    number = 0 if requests is None or "tools" in requests.unrecorded else Sight(transcript).request_at(end + 1)
    if requests is None or not number:
        return ()
    at = requests.references[number - 1]
    offered = {tool.name for tool in requests.tools[at.tools]}
    same_agent = [reference for reference in requests.references if reference.line == at.line]
    others = dict.fromkeys(tool.name for reference in same_agent for tool in requests.tools[reference.tools])
    return tuple(name for name in others if name not in offered)


def _require_results(transcript: Transcript, messages: Mapping[int, Message], answered_calls: Collection[int]) -> None:
    """Raise `ResultWithoutCallError` for a call whose result was never recorded."""
    for number, message in messages.items():
        names = [transcript.tool_calls[call].name for call in message.tool_calls if call not in answered_calls]
        if names:
            raise ResultWithoutCallError(
                f"the recording has no result of {listed(names, 5)}, which step {number + 1} calls",
                fix=f"choose a step before step {number + 1}, or drop that step",
            )


CHANGES = ("tool_result", "tool_error", "arguments", "text", "system", "drop", "insert", "without_tools")
"""What a person may say about a step, by name; `system` and `without_tools` are of the whole conversation."""
WHOLE = ("system", "without_tools")


def edits_of(transcript: Transcript, step: int, changes: Mapping[str, Any]) -> tuple[AnyEdit, ...]:
    """The edits that these changes of a step mean (`CHANGES`), for people and programs that name what they change.

    Where a message makes one call, its result is meant at the call too, and its arguments at the result. `arguments`
    is a value, or JSON text of one; `insert` is {role, text}; `without_tools` is a list of tool names, in a list
    or a text with commas. Raises `ForkError`.
    """
    check_step(transcript, step)
    unknown = [name for name in changes if name not in CHANGES]
    if unknown:
        raise ForkError(f"a step has no {unknown[0]!r} to change", fix=f"what can be changed: {', '.join(CHANGES)}")
    edits: list[AnyEdit] = []
    if changes.get("system") is not None:
        edits.append(System(_text(changes, "system")))
    for name in ("tool_result", "tool_error"):
        if changes.get(name) is not None:
            edits.append(Result(_result_step(transcript, step), _text(changes, name), name == "tool_error"))
    if changes.get("arguments") is not None:
        edits.append(_arguments(transcript, step, changes["arguments"]))
    if changes.get("text") is not None:
        if transcript.messages[step].role == "tool":
            raise _wrong(transcript, step, "the result of a tool", "set tool_result")
        edits.append(Text(step, _text(changes, "text")))
    if changes.get("drop"):
        edits.append(Drop(step))
    if changes.get("insert") is not None:
        edits.append(_insert(step, changes["insert"]))
    if changes.get("without_tools"):
        edits.append(Tools(ToolChanges(without=_names(changes["without_tools"]))))
    return tuple(edits)


def changeable(transcript: Transcript, step: int) -> dict[str, str]:
    """What can be changed at a step, by name (`CHANGES`), with what is there now; last what needs nothing there.

    `arguments` and `tool_result` are there where they are meant without a doubt (`edits_of`); "" under `insert`, which
    is what the user says behind the step.
    """
    check_step(transcript, step)
    message = transcript.messages[step]
    texts: dict[str, str] = {}
    calls = message.tool_calls if message.tool_call is None else (message.tool_call,)
    if len(calls) == 1 and calls[0] < len(transcript.tool_calls):
        call = transcript.tool_calls[calls[0]]
        arguments = {"arguments": json.dumps(call.arguments, ensure_ascii=False, indent=2)}
        result = {"tool_result": call.result or "", "tool_error": ""}
        texts |= {**result, **arguments} if message.role == "tool" else {**arguments, **result}
    elif message.role == "tool":
        texts |= {"tool_result": message.content, "tool_error": ""}
    if message.role != "tool" and (message.content or not message.tool_calls):
        texts["text"] = message.content
    prompts = (message.content for message in transcript.messages if message.role in SYSTEM_ROLES)
    return {**texts, "system": next(prompts, ""), "without_tools": "", "insert": "", "drop": ""}


def first_question(transcript: Transcript) -> int:
    """The last message before the first answer: where a conversation begins anew with another system prompt."""
    answers = (number for number, message in enumerate(transcript.messages) if message.role == "assistant")
    return max(next(answers, len(transcript.messages)) - 1, 0)


def _text(changes: Mapping[str, Any], name: str) -> str:
    value = changes[name]
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _result_step(transcript: Transcript, step: int) -> int:
    message = transcript.messages[step]
    if len(message.tool_calls) > 1:
        raise _wrong(transcript, step, count(len(message.tool_calls), "call"), "choose the step of the result itself")
    results = [number for number, other in enumerate(transcript.messages) if other.tool_call in message.tool_calls]
    return results[0] if results else step


def _arguments(transcript: Transcript, step: int, value: object) -> Arguments:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ForkError("these arguments are not JSON", fix='write an object, as {"id": 7}') from None
    call = transcript.messages[step].tool_call
    if call is not None:
        calling_step = next(
            (number for number, message in enumerate(transcript.messages) if call in message.tool_calls), step
        )
        return Arguments(
            calling_step, value, transcript.messages[calling_step].tool_calls.index(call) if calling_step != step else 0
        )
    calls = len(transcript.messages[step].tool_calls)
    if calls > 1:
        raise _wrong(transcript, step, count(calls, "call"), "choose the step of the call's result")
    return Arguments(step, value)


def _insert(step: int, insertion: Any) -> Insert:
    role = insertion.get("role") if isinstance(insertion, Mapping) else None
    if role not in ("user", "assistant", "system") or not isinstance(insertion.get("text"), str):
        raise ForkError("an inserted message needs a role and a text", fix="the role is user, assistant or system")
    return Insert(step, role, insertion["text"])


def _names(value: object) -> tuple[str, ...]:
    names = [name.strip() for name in re.split(r"[,\n]", value) if name.strip()] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise ForkError("`without_tools` is a list of tool names", fix="write a list, as [issue_voucher]")
    return tuple(names)


def complete(conversation: Conversation, turns: Iterable[str] = ()) -> Conversation:
    """The conversation as it can be asked, with `turns` after those that it has. Raises `ForkError` where it can't be:
    a call without a result, a result without its call, nothing to answer."""
    check_calls(conversation)
    messages, remaining = conversation.messages, [*conversation.turns, *turns]
    # An agent answers the user or a tool: behind an answer the next turn comes first.
    if remaining and (not messages or messages[-1].role not in ANSWERED):
        messages, remaining = (*messages, Message("user", remaining[0])), remaining[1:]
    if not messages or messages[-1].role not in ANSWERED or not any(message.role == "user" for message in messages):
        raise NothingToAnswerError(
            "nothing is left for the agent to answer",
            fix="choose an earlier step, or insert a user message",
        )
    return replace(conversation, messages=messages, turns=tuple(remaining))


def check_calls(conversation: Conversation) -> None:
    """Raise `ResultWithoutCallError` unless each call is followed by its one result, and each result has its call."""
    open_calls: set[int] = set()
    for number, message in enumerate(conversation.messages):
        if message.role == "tool":
            if message.tool_call is None or message.tool_call not in open_calls:
                raise ResultWithoutCallError(
                    f"message {number + 1} is the result of a missing call",
                    fix="keep the call, or drop both",
                )
            open_calls.discard(message.tool_call)
            continue
        # Another message before all results are there: what is open stays without one.
        if open_calls:
            break
        open_calls = set(message.tool_calls)
    if open_calls:
        names = ", ".join(conversation.tool_calls[call].name for call in sorted(open_calls))
        raise ResultWithoutCallError(f"a call has no result: {names}", fix="keep the result, or drop both")


def check_step(transcript: Transcript, step: int) -> None:
    """Raise `UnknownStepError` unless the transcript has this step."""
    if not 0 <= step < len(transcript.messages):
        last = len(transcript.messages) - 1
        remedy = f"its steps are 1 to {last + 1}" if last >= 0 else "its transcript is empty"
        raise UnknownStepError(f"this run has no step {step + 1}", fix=remedy)


def end_of_step(transcript: Transcript, step: int) -> int:
    """The last message that belongs to a step. For a message with calls, or a result of a call, that is the last result
    of these calls."""
    check_step(transcript, step)
    messages = transcript.messages
    start = step
    while messages[start].role == "tool" and start > 0:
        start -= 1
    if not messages[start].tool_calls:
        return step
    end = start
    while end + 1 < len(messages) and messages[end + 1].role == "tool":
        end += 1
    return max(end, step)


def without_own_prompts(
    conversation: Conversation, asked: Sequence[Message], edits: Sequence[AnyEdit] = ()
) -> Conversation:
    """The conversation with the system prompts of these edits and those that the run was `asked` with, and no others:
    its agent's program adds its own to each request, where they were seen."""
    written = {edit.text for edit in edits if isinstance(edit, System | Text | Insert)}
    kept = [
        message for message in conversation.messages if message.role not in SYSTEM_ROLES or message.content in written
    ]
    if len(kept) == len(conversation.messages):
        return conversation
    # A request has all prompts as one text: what the test asked with is in it, and can't be told from the program's.
    if not any(isinstance(edit, System) for edit in edits):
        kept = [*(message for message in asked if message.role in SYSTEM_ROLES), *kept]
    own = _renumbered(kept, conversation.tool_calls)
    return replace(conversation, messages=own.messages, tool_calls=own.tool_calls)


def _renumbered(messages: Sequence[Message], calls: Sequence[ToolCall]) -> Conversation:
    """The conversation without calls that no message makes, and without times, which belong to a different run."""
    order = [call for message in messages for call in message.tool_calls if call < len(calls)]
    numbers = {call: number for number, call in enumerate(order)}
    at = {call: place for place, message in enumerate(messages) for call in message.tool_calls}
    renumbered = tuple(
        replace(
            message,
            tool_calls=tuple(numbers[call] for call in message.tool_calls if call in numbers),
            tool_call=None if message.tool_call is None else numbers.get(message.tool_call),
        )
        if message.tool_calls or message.tool_call is not None
        else message
        for message in messages
    )
    renumbered_calls = tuple(
        replace(calls[call], message=at[call], started_ms=None, duration_ms=None) for call in order
    )
    return Conversation(renumbered, renumbered_calls)


def _wrong(transcript: Transcript, step: int, what: str, fix: str) -> WrongStepError:
    return WrongStepError(f"step {step + 1} ({transcript.messages[step].role}) has {what}", fix=fix)
