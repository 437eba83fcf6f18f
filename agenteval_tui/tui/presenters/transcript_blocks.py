"""A transcript as blocks: one a message, its reasoning, each tool call, each result, and the error it ended with."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.core.display import one_line
from agenteval_tui.core.groups import grouped
from agenteval_tui.core.numbers import short_duration
from agenteval_tui.transcripts.codec import to_json
from agenteval_tui.transcripts.finish_reason import ending_of
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.transcripts.observed import TOLD_BY_AGENT
from agenteval_tui.transcripts.visible_messages import losses
from agenteval_tui.tui.presenters.arguments import Body, call_body, json_body
from agenteval_tui.tui.presenters.status_style import UNICODE
from agenteval_tui.tui.presenters.tool_results import is_formatted, result_body
from agenteval_tui.tui.styled_text import Cell
from agenteval_tui.views.attachment import attachment_text
from agenteval_tui.views.model_request import changes_text

BlockKey = tuple[str, int]
"""("message", index), ("reasoning", index), ("call", index), ("result", call), ("attachment", number), ("log", 0),
("error", 0), ("ending", 0), ("unseen", 0), ("setup", 0), ("sight", message), ("raw", index). Attachments are numbered
through the transcript."""

# Rows that a long block shows before someone unfolds it. None: as many as it has.
_FOLDED: dict[str, int | None] = {"result": 8, "system": 6, "reasoning": 8, "call": 24, "log": 8, "raw": 400}
FOLDED_BY_HAND = 2  # rows of a block: with all folded, many fit on a screen
SIMULATED = "sim. user"
"""The label of what a simulated user wrote."""
_SHORTEST_SETUP_MS = 10  # what was started sooner is not worth a line

CALL, ANSWER = ("▸", "◂") if UNICODE else (">", "<")


class Block(Struct, frozen=True):
    """A block before it is laid out.

    `text` is there already for messages; else `make` gives it when it is needed, and `raw` is what `make` formats, as
    it came, or `hint` guesses how many lines and characters that will be. `fold` is the number of rows that it is
    folded to when it is longer.
    """

    key: BlockKey
    label: str
    label_style: str
    style: str
    fold: int | None
    text: str | None = None
    make: Callable[[], Body] | None = None
    aside: Cell = ("", "")
    sign: str = ""
    is_step: bool = True
    source: object = None
    raw: str = ""
    hint: tuple[int, int] = (1, 0)

    @property
    def characters(self) -> int:
        """How many the text has, as far as that is known before it is made."""
        return len(self.raw or self.text or "") or self.hint[1]

    @property
    def lines(self) -> int:
        """How many the text has, as far as that is known before it is made."""
        text = self.raw or self.text
        return text.count("\n") + 1 if text else self.hint[0]

    def body(self) -> Body:
        """The text with its styles and places."""
        return Body(self.text or "") if self.make is None else self.make()


def blocks_of(transcript: Transcript, first: int = 0) -> Iterator[tuple[int, Block]]:
    """The blocks of messages `first`.. in reading order, each with the index of its message; then what is left over.

    A result is right below its call, wherever its message came. Calls that no message made, and the error, come
    last (with the number of messages as their index).
    """
    messages = transcript.messages
    calls = transcript.tool_calls
    answers = {m.tool_call: i for i, m in enumerate(messages) if m.role == "tool" and m.tool_call is not None}
    turns = _turns(transcript)
    lost = _losses(transcript)
    if not first:
        for block in _remarks(transcript):
            yield 0, block
    # Of all messages, also those before `first`: what these called is not left over.
    called = {number for message in messages for number in message.tool_calls}
    attached = sum(len(message.attachments) for message in messages[:first])
    for index in range(first, len(messages)):
        message = messages[index]
        if index in lost:
            yield index, lost[index]
        for block in _message(index, message, turns.get(index)):
            yield index, block
        for attachment in message.attachments:
            text = attachment_text(attachment)
            yield (
                index,
                Block(
                    ("attachment", attached), "file", "dim", "dim", None, text=text, is_step=False, source=attachment
                ),
            )
            attached += 1
        for number in message.tool_calls:
            if number < len(calls):
                # Text or reasoning of the message has the name of its agent already.
                agent = "" if message.content or message.reasoning else message.name or ""
                for block in _call(number, calls[number], answers.get(number), messages, agent):
                    yield index, block
    for number, call in enumerate(calls):
        if number not in called:
            for block in _call(number, call, answers.get(number), messages):
                yield len(messages), block
    if transcript.log:
        log = transcript.log.rstrip("\n")
        yield len(messages), Block(("log", 0), "log", "dim", "dim", _FOLDED["log"], text=log, is_step=False)
    if transcript.error is not None:
        error = transcript.error
        text = f"{error.kind}: {error.message}" + (f"\n{error.fix}" if error.fix else "")
        yield len(messages), Block(("error", 0), "error", "error", "error", None, text=text, sign="!")


def _losses(transcript: Transcript) -> dict[int, Block]:
    """Before each answer, what the model saw before and not any more."""
    requests = transcript.requests
    if requests is None:
        return {}
    changes = grouped(
        (answer, change)
        for number, change in losses(requests)
        if (answer := requests.references[number - 1].answer) is not None
    )
    return {
        answer: Block(
            ("sight", answer), "unseen", "review", "review", None, text=changes_text(lost), sign="!", is_step=False
        )
        for answer, lost in changes.items()
    }


def _remarks(transcript: Transcript) -> Iterator[Block]:
    """The first blocks: why the answer ended, what could not be read, what was started for the agent."""
    ending = ending_of(transcript)
    remarks = [ending.description] if ending is not None else []
    remarks += [note.description for note in transcript.notes if note.code not in TOLD_BY_AGENT]
    if remarks:
        text = "\n".join(remarks)
        yield Block(("ending", 0), "note", "error", "error", None, text=text, sign="!", is_step=False)
    unseen = [note.description for note in transcript.notes if note.code in TOLD_BY_AGENT]
    if unseen:
        yield Block(("unseen", 0), "unseen", "dim", "dim", None, text="\n".join(unseen), is_step=False)
    setup = {name: took for name, took in transcript.timing.setup.items() if took >= _SHORTEST_SETUP_MS}
    if setup:
        text = "\n".join(f"{name}: {short_duration(took)}" for name, took in setup.items())
        yield Block(("setup", 0), "start", "dim", "dim", None, text=text, is_step=False)


def raw_blocks(transcript: Transcript) -> Iterator[tuple[int, Block]]:
    """The transcript's stored form, a block a message and a tool call, as JSON."""
    for index, message in enumerate(transcript.messages):
        # A transcript of each message alone: else each block would make the stored form of all of it.
        make = _raw(Transcript(messages=(message,)), "messages")
        hint = (4 + 2 * len(message.tool_calls), len(message.content) + len(message.reasoning))
        yield index, Block(("raw", index), f"[{index}]", "dim", "", _FOLDED["raw"], hint=hint, make=make)
    offset = len(transcript.messages)
    for number, call in enumerate(transcript.tool_calls):
        make = _raw(Transcript(tool_calls=(call,)), "tool_calls")
        hint = (7, len(call.result or ""))
        yield offset, Block(("raw", offset + number), f"call {number}", "dim", "", _FOLDED["raw"], hint=hint, make=make)
    last = offset + len(transcript.tool_calls)
    yield offset, Block(("raw", last), "run", "dim", "", None, hint=(20, 400), make=_raw_rest(transcript))


def _message(index: int, message: Message, turn_ms: float | None) -> Iterator[Block]:
    if message.role == "tool" and message.tool_call is not None:
        return
    timing = (short_duration(turn_ms), "dim")
    if message.reasoning:
        yield Block(
            ("reasoning", index),
            "reasoning",
            "reasoning",
            "reasoning italic",
            _FOLDED["reasoning"],
            text=message.reasoning,
            aside=timing,
            is_step=not message.content,
            source=message,
        )
        timing = ("", "")
    if message.role == "tool":
        yield Block(
            ("message", index),
            "tool",
            "role-tool",
            "",
            _FOLDED["result"],
            text=message.content,
            sign=ANSWER,
            aside=("matches no call", "dim"),
            source=message,
        )
    elif message.content or not (message.reasoning or message.tool_calls):
        style = "dim" if message.role == "system" else ""
        yield Block(
            ("message", index),
            role_label(message),
            _role_style(message.role),
            style,
            _FOLDED.get(message.role),
            text=message.content,
            aside=timing,
            source=message,
        )


def _call(
    number: int, call: ToolCall, answer: int | None, messages: tuple[Message, ...], agent: str = ""
) -> Iterator[Block]:
    arguments = call.arguments
    lines = 1 + (len(arguments) if isinstance(arguments, dict) else bool(arguments))
    if call.malformed:
        aside = ("arguments are not JSON", "error")
    elif call.status == "pending":
        aside = ("no answer", "dim")
    else:
        aside = (short_duration(call.duration_ms), "dim")
    if agent:
        aside = (f"{one_line(agent, 12)}  {aside[0]}".rstrip(), aside[1])
    yield Block(
        ("call", number),
        "tool",
        "role-tool",
        "",
        _FOLDED["call"],
        sign=CALL,
        aside=aside,
        hint=(lines, 0),
        make=lambda: call_body(call.name, arguments),
        source=call,
    )
    text = call.result if answer is None else messages[answer].content
    if text is None:
        return
    failed = call.status == "error"
    # Formatted when it is seen: thousands of results would keep a transcript from the screen.
    formatted = is_formatted(text)
    yield Block(
        ("result", number),
        "",
        "role-tool",
        "error" if failed else "",
        _FOLDED["result"],
        text=None if formatted else text,
        make=(lambda: result_body(text)) if formatted else None,
        sign=ANSWER,
        aside=("error", "error") if failed else ("", ""),
        is_step=False,
        source=call,
        raw=text if formatted else "",
    )


def _turns(transcript: Transcript) -> dict[int, float]:
    """How long each turn of the model took, by message: the recorder names its steps "turn 1", "turn 2", ..."""
    turns = [step.duration_ms for step in transcript.timing.steps if step.name.startswith("turn ")]
    spoken = [index for index, message in enumerate(transcript.messages) if message.role == "assistant"]
    # The conversation that was given may hold answers too: the turns that were measured are the last ones.
    return dict(zip(reversed(spoken), reversed(turns), strict=False))


def role_label(message: Message) -> str:
    """Who says it, in the column of roles: a simulated user is told from a person, and agents by their names."""
    who = message.name if message.role == "assistant" and message.name else message.role
    return SIMULATED if message.simulated else one_line(who, 9)


def _role_style(role: str) -> str:
    return {"user": "role-user", "assistant": "role-assistant bold", "tool": "role-tool"}.get(role, "dim")


def _raw(part: Transcript, name: str) -> Callable[[], Body]:
    return lambda: json_body(to_json(part)[name][0])


def _raw_rest(transcript: Transcript) -> Callable[[], Body]:
    bare = replace(transcript, messages=(), tool_calls=())
    return lambda: json_body({k: v for k, v in to_json(bare).items() if k not in ("messages", "tool_calls")})
