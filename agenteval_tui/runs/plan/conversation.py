"""What an agent is asked: prompt, messages and turns of a test, with the variables of a row put in.

Templates are the contents of messages, the turns, and the texts in the arguments of tool calls. What a row of a
dataset brings along as its own prompt is data: braces in it stay as they are. Where hooks bring variables, the
templates are rendered again once these have run.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from agenteval_tui.agents.tools.changes import NO_CHANGES, ToolChanges
from agenteval_tui.core.attachment_files import keep
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import texts_in, with_texts
from agenteval_tui.runs.around.plan import Asks
from agenteval_tui.runs.plan.agents import UserBrief
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.suites.datasets import messages_of, prompt_of
from agenteval_tui.suites.message_files import attached, is_address
from agenteval_tui.suites.model import ContentPart, Test
from agenteval_tui.suites.templates import MAX_RENDERED, is_template, render
from agenteval_tui.transcripts.codec import from_openai_messages
from agenteval_tui.transcripts.content_parts import attachment_and_bytes
from agenteval_tui.transcripts.model import Attachment, Message, ToolCall, Transcript

_NAME = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*) *\}\}")
# Names that mean something to Jinja itself, whatever the variables are.
_RESERVED = frozenset(
    ("true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else", "self", "super")
)
_ASKS = {"prompt", "messages", "turns", "user"}


class Conversation(Struct, frozen=True):
    """`messages` are what the agent answers first, with the calls in them; `turns` are sent after that, and then a
    simulated user with the brief `user` speaks. `files`: those that were read for it, as the suite names them.

    `tools`: what is changed of the agent's tools, beside what the test's context changes; None: nothing.
    `unseen_tools`: those that the model was not offered at that point of the run that this is made of."""

    messages: tuple[Message, ...]
    tool_calls: tuple[ToolCall, ...] = ()
    turns: tuple[str, ...] = ()
    user: UserBrief | None = None
    files: tuple[str, ...] = ()
    tools: ToolChanges | None = None
    unseen_tools: tuple[str, ...] = ()

    def context(self, context: Mapping[str, Any]) -> Mapping[str, Any]:
        """The testing context with which it is asked."""
        if self.tools is None and not self.unseen_tools:
            return context
        return replace(self.tools or NO_CHANGES, unseen=self.unseen_tools).laid_over(context)


class Conversations:
    """Makes the conversations of one test: what its rows have in common is read once.

    Messages that end with one of the user (or with a tool's result) are answered before the first turn is sent; after
    any other end the first turn, or what a simulated user says, is what the agent answers.
    """

    def __init__(self, test: Test, folder: Path) -> None:
        """`folder`: where the paths of images and files begin. Raises `AgentevalError` when the test's messages are not
        a conversation."""
        transcript = conversation_of([message.model_dump(exclude_unset=True) for message in test.messages or ()])
        messages, turns = transcript.messages, tuple(test.turns or ())
        if test.prompt is not None:
            messages = (*messages, Message("user", test.prompt))
        elif turns and not answers_last(messages):
            messages, turns = (*messages, Message("user", turns[0])), turns[1:]
        user = None if test.user is None else UserBrief(**test.user.model_dump(exclude={"agent"}))
        self._files = _Files(folder)
        self._parts = {
            place: [_Part(part) for part in input_message.content]
            for place, input_message in enumerate(test.messages or ())
            if isinstance(input_message.content, list)
        }
        self._given = Conversation(messages, transcript.tool_calls, turns, user)
        self._messages = [(message, Text(message.content)) for message in messages]
        self._turns = [Text(turn) for turn in turns]
        calls = [text for call in transcript.tool_calls for text in (*texts_in(call.arguments), call.result or "")]
        self._constant_calls = not any(map(is_template, calls))
        texts = [*self._turns, *(text for _, text in self._messages)]
        self._constant_user = user is None or not any(map(is_template, texts_in(user.as_dict())))
        self._constant = self._constant_calls and self._constant_user and all(text.constant for text in texts)
        self._made: Conversation | None = None  # of parts without variables: files are read once

    def of(self, variables: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> Conversation:
        """The conversation with `variables` put in; where the test asks nothing itself, what `row` asks.

        Raises `AgentevalError`: an unknown variable, or a row that asks nothing.
        """
        user = self._given.user
        if user is not None and not self._constant_user:
            user = UserBrief(**with_texts(user.as_dict(), lambda text: render(text, variables)))
        if not self._given.messages:
            return _of_row(row or {}, user)
        # Most tests have no variables, and 100,000 rows may share them.
        if self._constant and not self._parts:
            return self._given
        if self._made is not None:
            return self._made
        calls = self._given.tool_calls
        messages = [
            message if text.constant else _with(message, text.of(variables)) for message, text in self._messages
        ]
        files: set[str] = set()
        for place, parts in self._parts.items():
            content, attachments = self._files.content(parts, variables, files)
            messages[place] = replace(messages[place], content=content, attachments=attachments)
        conversation = Conversation(
            tuple(messages),
            calls if self._constant_calls else tuple([_rendered_call(call, variables) for call in calls]),
            tuple([turn.of(variables) for turn in self._turns]),
            user,
            tuple(sorted(files)),
        )
        if self._constant and all(part.constant for parts in self._parts.values() for part in parts):
            self._made = conversation
        return conversation

    def as_written(self, row: Mapping[str, Any] | None = None) -> Conversation:
        """The conversation with its templates as they are: hooks are to bring the variables. Raises `AgentevalError`
        for a row that asks nothing."""
        return self._given if self._given.messages else _of_row(row or {}, self._given.user)


class _Part:
    """A part of a message's content, taken apart once."""

    def __init__(self, part: ContentPart) -> None:
        self.text = None if part.text is None else Text(part.text)
        self.kind = "image" if part.image is not None else "file"
        self.place = Text(part.image or part.file or "")
        self.description = Text(part.description or "")
        self.media_type = part.media_type or ""
        self.constant = all(text.constant for text in (self.text, self.place, self.description) if text is not None)


class _Files:
    """The images and files of a test's messages. Each is read once, and its bytes are kept for who sends them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[tuple[str, str, str], Attachment] = {}

    def content(
        self, parts: Sequence[_Part], variables: Mapping[str, Any], files: set[str]
    ) -> tuple[str, tuple[Attachment, ...]]:
        """The content of a message, and its attachments; the paths that were read are added to `files`."""
        texts: list[str] = []
        attachments: list[Attachment] = []
        for part in parts:
            if part.text is not None:
                texts.append(part.text.of(variables))
                continue
            location, words = part.place.of(variables), part.description.of(variables)
            attachment = self._read.get(key := (part.kind, location, words))
            if attachment is None:
                attachment, data = attached(
                    self._folder, part.kind, location, description=words, media_type=part.media_type
                )
                if data is not None:
                    attachment = replace(attachment, sha256=keep(data))
                self._read[key] = attachment
            if not is_address(location):
                files.add(location)
            texts.append(attachment.mark)
            attachments.append(attachment)
        return "\n".join(texts), tuple(attachments)


def conversation_of(messages: Sequence[Mapping[str, Any]]) -> Transcript:
    """OpenAI chat messages as messages with calls. Raises `AgentevalError` when a call has no result, or a result no
    call: no server would take those.
    """
    if not messages:
        return Transcript()

    for number, message in enumerate(messages, 1):
        for call in message.get("tool_calls") or ():
            if not _named(call):
                raise AgentevalError(
                    f"message {number} has a tool call without a name",
                    fix='write {id: ..., type: function, function: {name: ..., arguments: "{...}"}}',
                )
    transcript = from_openai_messages(messages)
    for call in transcript.tool_calls:
        if call.status == "pending":
            raise AgentevalError(
                f"the call of {call.name} ({call.id}) in `messages` has no result",
                fix=f"add a message {{role: tool, tool_call_id: {call.id}, content: ...}} after it",
            )
    for number, converted in enumerate(transcript.messages, 1):
        if converted.role == "tool" and converted.tool_call is None:
            raise AgentevalError(
                f"message {number} is the result of a missing tool call",
                fix="name the `id` of a call before it as its `tool_call_id`",
            )
    return transcript


def _named(call: Any) -> bool:
    inner = call.get("function", call) if isinstance(call, Mapping) else None
    return isinstance(inner, Mapping) and isinstance(inner.get("name"), str) and bool(inner["name"])


def answers_last(messages: Sequence[Message]) -> bool:
    """Whether the agent has something to answer: the user, or a tool, has the last word."""
    return bool(messages) and messages[-1].role in ("user", "tool")


def _of_row(row: Mapping[str, Any], user: UserBrief | None) -> Conversation:
    messages = messages_of(row)
    if messages is not None:
        transcript = conversation_of(messages)
        for message in messages:
            for part in message["content"] if isinstance(message.get("content"), list) else ():
                data = attachment_and_bytes(part)[1]
                if data is not None:
                    keep(data)
        if user is None and not answers_last(transcript.messages):
            raise AgentevalError(
                f"the row's last message has the role {transcript.messages[-1].role}, which an agent can't answer",
                fix="end the messages with a user message",
            )
        return Conversation(transcript.messages, transcript.tool_calls, user=user)
    prompt = prompt_of(row)
    if prompt is None and user is not None:
        return Conversation((), user=user)
    if prompt is None:
        raise AgentevalError(
            "neither the test nor this row says what to ask the agent",
            fix="write `prompt:` in the test, or call a column input, prompt or question",
        )
    return Conversation((Message("user", prompt),), user=user)


def _with(message: Message, content: str) -> Message:
    # Thrice as quick as `replace`, for 100,000 rows.
    return Message(
        message.role,
        content=content,
        reasoning=message.reasoning,
        tool_calls=message.tool_calls,
        tool_call=message.tool_call,
        tool_call_id=message.tool_call_id,
        name=message.name,
        simulated=message.simulated,
        attachments=message.attachments,
    )


def _rendered_call(call: ToolCall, variables: Mapping[str, Any]) -> ToolCall:
    result = None if call.result is None else render(call.result, variables)
    return replace(call, arguments=with_texts(call.arguments, lambda text: render(text, variables)), result=result)


# Putting variables into one text, for many rows: most texts only name variables, and need no template engine


class Text:
    """A text with `{{name}}` in it, taken apart once. Gives what `suites.templates.render` gives."""

    __slots__ = ("_names", "_parts", "constant", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.constant = not is_template(text)
        pieces = _NAME.split(text)
        literals, self._names = pieces[::2], tuple(pieces[1::2])
        plain = "\r" not in text and not any(is_template(literal) or "}}" in literal for literal in literals)
        # A literal that ends with a brace makes `{{{name}}`, which is another template.
        plain = (
            plain and not any(literal.endswith("{") for literal in literals) and not _RESERVED.intersection(self._names)
        )
        self._parts = tuple(literals) if plain else ()

    def of(self, variables: Mapping[str, Any]) -> str:
        """The text with the variables put in. Raises `AgentevalError` naming the variable that is not known."""
        if self.constant:
            return self.text
        # Jinja also says which variable is missing, and where.
        if not self._parts or any(name not in variables for name in self._names):
            return render(self.text, variables)
        pieces = [self._parts[0]]
        for name, literal in zip(self._names, self._parts[1:], strict=True):
            pieces += (str(variables[name]), literal)
        text = "".join(pieces)
        return text if len(text) <= MAX_RENDERED else render(self.text, variables)  # which refuses it


def asks_of(test: Test) -> dict[str, Any]:
    """What a test asks, as it is written."""
    return test.model_dump(include=_ASKS, exclude_unset=True, exclude_none=True)


def asked_with(run: RunPlan, variables: Mapping[str, Any]) -> RunPlan:
    """The run with the variables that it has now. Raises `AgentevalError` when a template needs one that is
    missing, or an image or a file can't be read."""
    asks = run.around.asks if run.around is not None else None
    if variables == run.variables and asks is None:
        return run
    if asks is None or run.around is None:
        return replace(run, variables=variables)
    try:
        conversation = Conversations(_test(asks), Path(run.around.folder)).of(variables, asks.row)
    except AgentevalError as error:
        raise AgentevalError(f"test {run.ref.test!r}: {error.what}", where=error.where, fix=error.fix) from error
    user = run.user if run.user is None or conversation.user is None else replace(run.user, brief=conversation.user)
    return replace(
        run,
        variables=variables,
        messages=conversation.messages,
        tool_calls=conversation.tool_calls,
        turns=conversation.turns,
        files=conversation.files,
        user=user,
    )


def _test(asks: Asks) -> Test:
    criterion = {"name": "-", "prototype_class": "-", "config_uxon": ""}
    return Test.model_validate({**asks.test, "id": "-", "criteria": [criterion]})
