"""What a Python agent is called with, and what it gives, as events. Runs in the child: only the standard library.

An agent may give a text; an event (a dict with `type`); a message or messages as OpenAI or LangChain have them, items
of the Responses API; what LangGraph, pydantic-ai and openai-agents return and stream; a dict or an object with an
answer in it; or yield any of these.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import json
from collections.abc import Iterable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

from . import python_context as contexts
from . import python_conversation as conversation
from . import python_frameworks as frameworks
from . import python_pieces as pieces
from . import python_run_data as run_data

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_frameworks import Framework, PieceReader
    from agenteval_tui.agents.process.python_message import Event, Figures, Message, Request

OFFERED = ("prompt", "messages", "context", "variables", "config", "test", "repetition", "seed", "run", "turn")
# What frameworks call the prompt, where it is optional.
PROMPTS = ("user_prompt", "input", "message", "query", "question", "task", "text")
# What functions for a chat call the messages before the prompt, as Gradio's have them.
HISTORY = ("history", "chat_history", "conversation_history", "message_history")
_NO_OUTPUTS = ("messages", "tool_calls", "usage", "usage_metadata", "token_usage", "model", "remaining_steps")
ANSWERS = ("final_output", "output", "answer", "content", "text", "response", "result")
MODES = ("values", "updates", "messages", "custom", "debug", "tasks", "checkpoints")
WANTED = "give a text, an event, messages, or what a framework returns"
_ALL = "give all messages of the run"
_parameters: dict[int, tuple[object, list[inspect.Parameter] | None]] = {}


def parameters_of(function: Any) -> list[inspect.Parameter] | None:
    """Its parameters; None for one written in C. They are found once: the function must live as long as the process."""
    if id(function) not in _parameters:
        try:
            parameters = list(inspect.signature(function).parameters.values())
            wrapped = _wrapped(function) if _take_anything(parameters) else None
            if wrapped is not None:
                parameters = list(inspect.signature(wrapped).parameters.values())
            _parameters[id(function)] = function, parameters
        except (TypeError, ValueError):
            _parameters[id(function)] = function, None
    return _parameters[id(function)][1]


def hides_parameters(function: Any) -> bool:
    """Whether it takes anything: a decorator without `functools.wraps` hides what the function takes."""
    return _take_anything(parameters_of(function) or ())


def _take_anything(parameters: Sequence[inspect.Parameter]) -> bool:
    kinds = [parameter.kind for parameter in parameters]
    return kinds in (
        [inspect.Parameter.VAR_POSITIONAL],
        [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD],
    )


def _wrapped(function: Any) -> FunctionType | None:
    """The function that a decorator's own calls, if it keeps that one function and takes arguments by their names."""
    if not inspect.isfunction(function) or not function.__code__.co_flags & inspect.CO_VARKEYWORDS:
        return None
    kept = []
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # it is empty
            kept.append(cell.cell_contents)
    functions = [value for value in kept if inspect.isfunction(value) and value is not function]
    return functions[0] if len(functions) == 1 else None


def call(function: Any, request: Request, *, told: bool = False) -> object:
    """Call it with what its parameters ask for: names of the request, `request` itself, `inputs`, else the prompt.
    `told`: the prompt says what was said before it, as far as that matters."""
    parameters = parameters_of(function)
    if parameters is None or hides_parameters(function):
        if not told:
            pieces.refuse_answers(request, getattr(function, "__name__", type(function).__name__), "the parameter")
        return function(request["prompt"])
    positional, named = [], {}
    # What takes nothing but a history gets the prompt in it.
    takes_more = any(
        parameter.name in ("prompt", "messages", "request", *PROMPTS)
        or (parameter.default is parameter.empty and parameter.name not in (*HISTORY, *OFFERED))
        for parameter in parameters
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    )
    takes_history_too = any(parameter.name in HISTORY for parameter in parameters)
    history = pieces.before(request) if takes_more and takes_history_too else request["messages"]
    # Where a parameter has the prompt by its name, no other one gets it for want of anything better.
    prompted = any(parameter.name in ("prompt", "request") for parameter in parameters)
    takes_prompt = prompted or any(
        parameter.name == "messages" or parameter.default is parameter.empty for parameter in parameters
    )
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        value: Any
        if parameter.name == "request":
            value, told = request, True
        elif parameter.name in OFFERED:
            value, told = request[parameter.name], told or parameter.name == "messages"
            value = contexts.messages_for(function, "messages", value) if parameter.name == "messages" else value
        elif parameter.name in HISTORY and (history or parameter.default is parameter.empty):
            value, told = contexts.messages_for(function, parameter.name, history), True
        elif _takes_inputs(parameter, function) and not (prompted and parameter.name != "inputs"):
            value = run_data.inputs_of(request["variables"], request["prompt"], request["messages"])
            prompted = told = True
        elif not takes_prompt and parameter.name in PROMPTS:
            value, takes_prompt = request["prompt"], True
        elif parameter.default is parameter.empty and not prompted and parameter.kind is not parameter.KEYWORD_ONLY:
            value, prompted = request["prompt"], True
        elif parameter.default is parameter.empty:
            names = ", ".join(OFFERED)
            raise TypeError(f"an agent is not given {parameter.name!r}; what it may ask for: {names}, request")
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    if not told:
        pieces.refuse_answers(request, getattr(function, "__name__", type(function).__name__), "the parameter")
    return function(*positional, **named)


def takes_history(function: Any) -> bool:
    """Whether it is a function for a chat, as Gradio has them."""
    return any(parameter.name in HISTORY for parameter in parameters_of(function) or ())


class Grown:
    """What is new in each piece of a stream that gives the whole text so far, as functions for a chat do; a piece that
    doesn't begin with the text so far is new as it is."""

    def __init__(self) -> None:
        self._so_far = ""

    def of(self, piece: object) -> object:
        """What is new in it."""
        if not isinstance(piece, str):
            return piece
        is_whole = piece.startswith(self._so_far)
        new = piece[len(self._so_far) :] if is_whole else piece
        self._so_far = piece if is_whole else self._so_far + piece
        return new


def _takes_inputs(parameter: inspect.Parameter, function: Any) -> bool:
    """Whether it wants the row as a dict: a parameter `inputs`, or one that has no default and the type of a dict."""
    kind = parameter.annotation
    if isinstance(kind, str):
        # With `from __future__ import annotations`, types are texts; they are looked up where the function was defined.
        namespace = getattr(inspect.unwrap(function), "__globals__", {}) if inspect.isroutine(function) else {}
        kind = namespace.get(kind, {"dict": dict, "Dict": dict, "Mapping": dict}.get(kind.partition("[")[0], str))
    kind = getattr(kind, "__origin__", kind)
    if kind is parameter.empty:
        return parameter.name == "inputs"
    names = {base.__name__ for base in getattr(kind, "__mro__", ())}
    wants = bool(names & {"dict", "Mapping"})
    return wants and (parameter.name == "inputs" or parameter.default is parameter.empty)


class Reader:
    """Reads what one call of an agent gives, piece by piece. `messages`: those that it was asked with, which a
    framework may give back before its own."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        self.conversation = conversation.Conversation(messages)
        self._note = self.conversation.note
        # Of the Responses API, as they came: (key, item, the name of the agent).
        self._items: list[tuple[object, object, str | None]] = []
        self._agent: str | None = None  # of openai-agents' stream, the one that is running
        self._responses = 0  # of pydantic-ai's stream
        self._open = False
        self._chunks: dict[str, Any] = {}  # LangChain's, by the id of their message
        self._state: dict[str, Any] | None = None  # of a graph without messages
        self._graph: dict[str, Any] | None = None  # the last one of a graph that has some
        self._frameworks: dict[Framework, PieceReader] = {}  # the readers of what only one framework has, by its module
        self.gave = False
        """Whether anything came but None: an answer that is empty on purpose is an empty text."""
        self._told_whole = False  # something came that has its tool calls in it
        self._last: str | None = None  # what came instead of that says nothing of the calls before it
        self._outputs: list[Any] = []  # of openai-agents' stream, what each response has
        self._plain: str | None = None  # the type of what has none
        self._foreign: str | None = None  # the type of an object of a package that is being read as a dict
        self._dumped: str | None = None  # the type of what is shown as JSON, for want of anything that is known in it

    def take(self, piece: object, streamed: bool) -> Iterator[Event]:
        """The events that something an agent gave means. `streamed`: it is one of several. Raises TypeError."""
        self.gave = self.gave or piece is not None
        self._read(piece, streamed)
        return self.conversation.news()

    def end(self) -> Iterator[Event]:
        """What can be told only at the end."""
        self._settle()
        if self._outputs and not self._items:
            self.conversation.whole(
                [message for output in self._outputs for message in pieces.from_items(output, self._note)]
            )
        if self._dumped is not None:
            self._note("dumped", self._dumped)
        elif self._plain is not None and not self._told_whole:
            self._note("text_only", self._plain)
        elif self._last is not None and not self._told_whole and not self.conversation.acts:
            self._note("unread_calls", self._last)
        return self.conversation.news(end=True)

    def end_graph(self) -> None:
        """The answer of a graph is the last message of its state, and not what a model said after that."""
        self._settle_chunks()
        state = self._graph
        if state is None or state.get("structured_response") is not None:
            return
        if not all(map(pieces.is_message, state["messages"])):
            return
        after, answered = self.conversation.ends_with(self._messages(state["messages"]))
        if after is not None:
            where = next((name for name, value in state.items() if value == after), "no field")
            self._note("after_answer" if answered else "not_in_state", where)

    def _last_piece(self, piece: object, instead: str) -> None:
        """An answer that does not say which tools were called before it. `instead`: what would."""
        name = "message" if isinstance(piece, dict) else type(piece).__name__
        self._last = self._last or "those before " + pieces.article(name) + "; " + instead

    def _told(self, piece: object, messages: Sequence[Message]) -> None:
        """These messages are in `piece`: answers alone, or a conversation."""
        if all(message["role"] == "assistant" for message in messages):
            self._last_piece(piece, _ALL)
        else:
            self._told_whole = True

    def _text(self, text: str, kind: str) -> None:
        """An answer that says nothing of tool calls."""
        self._plain = kind
        self.conversation.text(text)

    # What it is.

    def _read(self, piece: Any, streamed: bool) -> None:
        if piece is None:
            return
        if isinstance(piece, str):
            self._text(piece, "str")
        elif isinstance(piece, (bytes, bytearray)):
            text = bytes(piece).decode("utf-8", "replace")
            try:  # as all_messages_json() gives it
                self._read(json.loads(text), streamed)
            except (ValueError, RecursionError):
                self._text(text, "bytes")
        elif isinstance(piece, dict):
            self._dict(piece, streamed)
        elif self._of_framework(piece, streamed):
            return
        elif isinstance(piece, (list, tuple)):
            self._list(piece, streamed)
        elif isinstance(piece, (bool, int, float)):
            self._text(json.dumps(piece), pieces.type_of(piece))
        elif pieces.is_message(piece):
            self._message(piece, streamed)
        elif pieces.made_by(piece, "openai") and pieces.is_item(piece):
            self._item(piece, streamed)
        else:
            self._object(piece, streamed)

    def _of_framework(self, piece: Any, streamed: bool) -> bool:
        """Read what only one framework has; False where this is something else."""
        if isinstance(piece, tuple):
            is_part = self._part_of_stream(piece, streamed)
            self._told_whole = self._told_whole or (is_part and streamed)
            return is_part
        # By the package that made it, and not by its form: objects of several frameworks have the same attributes.
        if pieces.made_by(piece, "pydantic_ai", "pydantic_graph"):
            return self._pydantic(piece, streamed)
        if pieces.made_by(piece, "agents"):
            return self._openai_agents(piece, streamed)
        framework = frameworks.of(piece)
        if framework is None:
            return False
        if framework not in self._frameworks:
            self._frameworks[framework] = framework.pieces(self.conversation, self._read)
        if not self._frameworks[framework].read(piece):
            return False
        if instead := framework.whole_of(piece, streamed):
            self._last_piece(piece, instead)
        else:
            self._told_whole = True
        return True

    def _dict(self, piece: dict[str, Any], streamed: bool) -> None:
        kind = piece.get("type")
        # The order decides: each form is looked for before those that would take it for their own, and plain data comes
        # last.
        if kind in MODES and "data" in piece and "ns" in piece:  # LangGraph's stream, version 2
            self._told_whole = True
            self._mode(kind, piece["data"])
        elif isinstance(piece.get("event"), str) and piece["event"].startswith("on_") and "data" in piece:
            self._told_whole = True
            self._stream_event(piece)
        elif kind in conversation.EVENTS and not pieces.is_message(piece):
            self._told_whole = True
            self._raw(piece)
        elif pieces.is_pydantic(piece):
            messages = pieces.from_pydantic(piece, self._note)
            self._told(piece, messages)
            self.conversation.whole(messages)
        elif isinstance(piece.get("messages"), (list, tuple)):
            self._graph_state(piece)
        elif isinstance(piece.get("replies"), list) and all(map(self._messages_of, piece["replies"])):
            self._list(piece["replies"], streamed)
        elif self._is_completion(piece):
            self._of_model()
            self._completion(piece)
        elif pieces.is_item(piece) and not (kind == "message" and isinstance(piece.get("content"), str)):
            self._item(piece, streamed)
        elif pieces.is_message(piece):
            self._message(piece, streamed)
        elif isinstance(piece.get("output"), list) and piece["output"] and all(map(pieces.is_item, piece["output"])):
            self._of_model()
            self._response(piece)
        elif self._task(piece) or self._updates(piece):
            self._told_whole = True
        else:
            self._answer(piece, streamed)

    @staticmethod
    def _is_completion(piece: dict[str, Any]) -> bool:
        """Whether it is a reply of Chat Completions, or a chunk of one: data of the project's may have `choices`."""
        choices = piece.get("choices")
        if not isinstance(choices, list):
            return False
        keys = {"delta", "message", "finish_reason"}
        return not keys.isdisjoint(_fields(choices[0])) if choices else "usage" in piece

    def _of_model(self) -> None:
        """A whole reply of a server, which is what a model gave last."""
        name = self._foreign or "reply"
        self._last = self._last or "those before " + pieces.article(name) + "; " + _ALL

    def _item(self, piece: object, streamed: bool) -> None:
        if streamed:
            self._told_whole = True
        else:
            self._told(piece, pieces.from_items([piece], self._note))
        self._response_items([piece])

    def _list(self, piece: Any, streamed: bool) -> None:
        if not piece and streamed:
            return  # a list that is still to grow
        if all(isinstance(item, (str, bool, int, float, type(None))) for item in piece):
            self._text(json.dumps(list(piece), ensure_ascii=False), "list")
        elif pieces.is_content(piece):
            text, thought = pieces.content_of(piece, self._note)
            if thought:
                self.conversation.text(thought, what="reasoning")
            self._text(text, "list")
        elif piece and all(self._is_common(item) for item in piece):
            if any(pieces.is_item(item) for item in piece):
                messages = pieces.from_items(piece, self._note)
            else:
                messages = self._messages(piece)
            if isinstance(piece[0], dict):
                self._told_whole = True
            else:
                self._told(piece[0], messages)
            self.conversation.whole(messages)
        elif any(self._readable(item) for item in piece):
            messages = []
            for item in piece:
                if pieces.is_pydantic(item):
                    messages.extend(pieces.from_pydantic(item, self._note))
                elif (own := self._messages_of(item)) is not None:
                    messages.extend(own)
                elif pieces.is_message(item):
                    messages.extend(self._messages([item]))
                elif self._readable(item):
                    self._read(item, True)
                else:
                    self._note("unread", pieces.type_of(item))
            if messages:
                self._told(piece[0], messages)
                self.conversation.whole(messages)
        else:
            self._as_json(piece)

    @staticmethod
    def _is_common(value: object) -> bool:
        """Whether it has the form of a message that many libraries use, and is of none that has its own reader."""
        return frameworks.of(value) is None and (pieces.is_item(value) or pieces.is_message(value))

    def _messages_of(self, value: object) -> Sequence[Message] | None:
        """The messages in a message of a framework; None where this is something else."""
        framework = frameworks.of(value)
        return None if framework is None else framework.messages_of(value, self._note)

    def _readable(self, value: object) -> bool:
        if pieces.is_pydantic(value) or pieces.is_message(value) or pieces.is_item(value):
            return True
        return (
            (isinstance(value, dict) and value.get("type") in conversation.EVENTS)
            or self._is_result(value)
            or hasattr(value, "raw_item")
        )

    @staticmethod
    def _is_result(value: object) -> bool:
        return hasattr(value, "new_messages") or hasattr(value, "to_input_list") or frameworks.of(value) is not None

    def _raw(self, event: Event) -> None:
        if event.get("type") == "done":
            self._settle()
        self.conversation.event(event)

    # Messages of Chat Completions, LangChain and LangGraph.

    def _messages(self, items: Iterable[Any]) -> list[Message]:
        messages: list[Message] = []
        for item in items:
            message, results = pieces.message_of(item, self._note), list(pieces.results_in(item, self._note))
            if not results or message["role"] != "user" or message["text"]:
                messages.append(message)
            messages.extend(results)
        return messages

    def _message(self, piece: Any, streamed: bool) -> None:
        if type(piece).__name__.endswith("MessageChunk") and pieces.made_by(piece, "langchain_core"):
            self._chunk(piece)
            return
        messages = self._messages([piece])
        self._told(piece, messages)
        if streamed and isinstance(piece, dict) and messages[0]["role"] == "assistant" and not messages[0]["calls"]:
            usage = messages[0].pop("usage")
            # A dict of a role and a text, as clients of OpenAI's stream pass it on, is a piece of the answer; with an
            # id or usage it is a whole message.
            if not piece.get("id") and not usage and not messages[0]["reasoning"]:
                self.conversation.text(messages[0]["text"])  # as deltas come
                return
            messages[0]["usage"] = usage
        self.conversation.append(messages)

    def _chunk(self, piece: Any) -> None:
        key = piece.id or "chunks"
        earlier = self._chunks.get(key)
        # LangChain adds chunks up itself: it alone knows how the arguments of calls go together.
        self._chunks[key] = merged = piece if earlier is None else earlier + piece
        message = pieces.message_of(merged, self._note)
        self._told(piece, [message])
        message["id"] = key
        message["closed"] = getattr(piece, "chunk_position", None) == "last"
        if message["role"] == "assistant":
            message["provisional"] = True  # of the Responses API, the whole message has the id of the response
            if not message["closed"]:
                message["calls"] = []  # their arguments are not whole
            if message["text"] or message["reasoning"] or message["calls"] or message["usage"] or earlier is not None:
                self.conversation.one(message)
        elif message["role"] == "tool":
            self.conversation.append([message])

    def _settle(self) -> None:
        """Chunks whose end was not announced are whole now; so is the state that a graph had at the end."""
        self._settle_chunks()
        state, self._state = self._state, None
        if state is not None:
            self._answer(state, False)

    def _settle_chunks(self) -> None:
        for key, merged in self._chunks.items():
            message = pieces.message_of(merged, self._note)
            if message["role"] == "assistant" and (
                message["text"] or message["reasoning"] or message["calls"] or message["usage"]
            ):
                message.update({"id": key, "provisional": True})
                self.conversation.one(message)
        self._chunks = {}

    def _graph_state(self, piece: dict[str, Any]) -> None:
        self._graph = piece
        # A state has all messages so far: they are compared with what was told, and not told again.
        messages = [message for message in piece["messages"] if pieces.is_message(message)]
        if len(messages) == len(piece["messages"]):
            self._list(messages, True)
            self.conversation.empty = self.conversation.empty and not messages
        else:
            self._list(piece["messages"], False)
        self._interrupted(piece)
        self._beside(piece, None)
        structured = piece.get("structured_response")
        if structured is not None:
            self.conversation.final(pieces.text_of(structured, self._note))
        self.conversation.total(piece, _usage(piece))

    def _interrupted(self, piece: dict[str, Any]) -> None:
        for interrupt in piece.get("__interrupt__") or ():
            value = pieces.field(interrupt, "value")
            self._note("interrupted", value if isinstance(value, str) else type(value).__name__)

    def _updates(self, piece: dict[str, Any]) -> bool:
        """What nodes of a graph changed, by their names; False where this is something else."""
        values = [update for value in piece.values() for update in (value if isinstance(value, list) else [value])]
        changed = [value for value in values if isinstance(value, dict) and "messages" in value]
        # A graph that waits for a person has stopped without an error: the run says so in a note.
        if "__interrupt__" in piece:
            self._interrupted(piece)
            self.conversation.empty = False
            return True
        # A dict of dicts may as well be an answer. It is one of updates only where one of them has messages.
        if not changed or not all(value is None or isinstance(value, dict) for value in values):
            return False
        for update in values:
            if update is None:
                continue
            listed = update.get("messages")
            if listed is not None:
                listed = listed if isinstance(listed, (list, tuple)) else [listed]
                messages: list[Message] = []
                for each in listed:
                    own = self._messages_of(each)
                    if own is None and not pieces.is_message(each):
                        self._note("unread", pieces.type_of(each))
                    else:
                        messages += self._messages([each]) if own is None else own
                self.conversation.append(messages)
            if update.get("structured_response") is not None:
                self.conversation.final(pieces.text_of(update["structured_response"], self._note))
        return True

    def _task(self, piece: dict[str, Any]) -> bool:
        """An event of the stream modes `tasks` and `debug`; False where this is something else."""
        if isinstance(piece.get("payload"), dict) and {"step", "timestamp", "type"} <= set(piece):
            piece = piece["payload"]
        elif not ({"id", "name", "triggers"} <= set(piece) or {"id", "name", "result", "interrupts"} <= set(piece)):
            return False
        self._mode("tasks", piece)
        return True

    def _part_of_stream(self, piece: tuple[Any, ...], streamed: bool) -> bool:
        """A tuple as LangGraph streams it; False for others."""
        if piece and isinstance(piece[0], tuple) and all(isinstance(step, str) for step in piece[0]):
            piece = piece[1:]  # the graph within the graph that it comes from
            if len(piece) == 1:
                self._read(piece[0], streamed)
                return True
        if len(piece) == 2 and piece[0] in MODES and isinstance(piece[0], str):
            self._mode(*piece)
            return True
        about = piece[1] if len(piece) == 2 else None
        if isinstance(about, dict) and pieces.is_message(piece[0]) and not pieces.is_message(about):
            self._message(piece[0], True)
            return True
        return False

    def _mode(self, mode: str, data: Any) -> None:
        if mode == "custom":
            self._custom(data)
        elif mode in ("debug", "tasks"):
            data = data.get("payload", data) if isinstance(data, dict) else {}
            result = data.get("result")
            # Older versions of LangGraph give the changes as pairs.
            result = dict(result) if isinstance(result, list) and all(len(pair) == 2 for pair in result) else result
            if isinstance(result, dict) and "messages" in result:
                self._updates({"task": result})
        elif mode == "messages" and isinstance(data, (tuple, list)) and data:
            self._message(data[0], True)
        elif mode == "updates" and isinstance(data, dict):
            if not self._updates(data):
                for value in data.values():
                    if isinstance(value, dict):
                        self._state = {**(self._state or {}), **value}
        elif mode == "values" and isinstance(data, dict) and "messages" not in data:
            self._state = data
        elif mode != "checkpoints":
            self._read(data, True)

    def _custom(self, data: object) -> None:
        if isinstance(data, str) or self._readable(data):
            self._read(data, True)
        else:
            self._note("left_out", "custom data of a graph: " + pieces.type_of(data))

    def _stream_event(self, event: dict[str, Any]) -> None:
        """An event of `astream_events`."""
        data = event["data"] if isinstance(event["data"], dict) else {}
        name, top = event["event"], not event.get("parent_ids")
        if name == "on_chat_model_stream" and pieces.is_message(data.get("chunk")):
            self._message(data["chunk"], True)
        elif name in ("on_chat_model_end", "on_tool_end") and pieces.is_message(data.get("output")):
            self._message(data["output"], True)
        # Only of the outermost chain: inner ones tell the same messages.
        elif name in ("on_chain_stream", "on_chain_end") and top and "parent_ids" in event:
            output = data.get("output")
            if isinstance(output, dict) and isinstance(output.get("messages"), list):
                self._graph_state(output)
            elif name == "on_chain_end" and self.conversation.empty:
                self._read(output, False)

    # Chat Completions and the Responses API.

    def _completion(self, piece: dict[str, Any]) -> None:
        choice = _fields(piece["choices"][0]) if piece["choices"] else {"delta": {}}
        if choice.get("delta") is not None and choice.get("message") is None:
            answer = pieces.message_of({**_fields(choice["delta"]), "role": "assistant"}, self._note)
            if answer["calls"]:
                self._note("unread_calls", "calls of a tool in the pieces of a stream; give the whole completion")
            for what in ("reasoning", "text"):
                if answer[what]:
                    self.conversation.text(answer[what], what=what)
        else:
            answer = pieces.message_of({**_fields(choice.get("message")), "role": "assistant"}, self._note)
            answer["id"] = piece.get("id")
            self.conversation.one(answer)
        self.conversation.total(piece.get("id") or piece, _usage(piece))
        about = {"finish": choice.get("finish_reason"), "model": piece.get("model")}
        self.conversation.about(**{name: value for name, value in about.items() if value})

    def _response_items(self, items: Iterable[object], agent: str | None = None) -> None:
        for item in items:
            key = (pieces.field(item, "type"), pieces.field(item, "call_id") or id(item))
            # A stream tells an item when it is added and again when it is done.
            if all(item[0] != key for item in self._items):
                self._items.append((key, item, agent))
        _, raw_items, agents = zip(*self._items) if self._items else ((), (), ())  # noqa: B905 - Python 3.8
        self.conversation.whole(pieces.from_items(raw_items, self._note, agents))

    def _response(self, response: Any) -> None:
        """A whole response of the Responses API."""
        self._response_items(pieces.field(response, "output") or ())
        self._of_response(response)

    def _of_response(self, response: Any) -> None:
        self.conversation.total(
            pieces.real_id(pieces.field(response, "id")) or response,
            pieces.usage_of(pieces.field(response, "usage") or {}),
        )
        details = pieces.field(response, "incomplete_details")
        reason = pieces.field(details, "reason") if details is not None else None
        self.conversation.about(model=pieces.field(response, "model"), finish=reason)

    # openai-agents.

    def _openai_agents(self, piece: Any, streamed: bool) -> bool:
        if hasattr(piece, "to_input_list") and hasattr(piece, "new_items"):
            items = [new_item for new_item in piece.new_items if pieces.field(new_item, "raw_item") is not None]
            raw, agents = [item.raw_item for item in items], [_agent_of(item) for item in items]
            self.conversation.whole(pieces.from_items(raw, self._note, agents))
            waiting = [str(pieces.field(each.raw_item, "name")) for each in getattr(piece, "interruptions", ())]
            if waiting:
                self._note("interrupted", ", ".join(waiting))
            context = getattr(piece, "context_wrapper", None)
            used = pieces.usage_of(getattr(context, "usage", None) or {})
            # The run knows what all its requests used; what was counted while it streamed lacks those without usage.
            self.conversation.only_total(piece, used)
            output = getattr(piece, "final_output", None)
            if output is not None:
                self.conversation.final(pieces.text_of(output, self._note))
            self._told_whole = True
            return True
        kind = getattr(piece, "type", None)
        if kind == "raw_response_event":
            self._raw_response(piece.data)
            self._last_piece(piece, "give all events of the stream")
        elif kind == "run_item_stream_event":
            self._told_whole = True
            self._response_items([piece.item.raw_item], _agent_of(piece.item))
        elif kind == "agent_updated_stream_event":
            self._agent = getattr(piece.new_agent, "name", None)
            self.conversation.empty = False
        elif hasattr(piece, "raw_item"):
            if streamed:
                self._told_whole = True
            else:
                self._last_piece(piece, "return the whole RunResult")
            self._response_items([piece.raw_item], _agent_of(piece))
        elif hasattr(piece, "output") and hasattr(piece, "usage") and hasattr(piece, "to_input_items"):
            self._last_piece(piece, "return the whole RunResult")
            self._response(piece)
        elif pieces.usage_of(piece):
            self.conversation.total(piece, pieces.usage_of(piece))
        else:
            return False
        return True

    def _raw_response(self, data: Any) -> None:
        kind = pieces.field(data, "type") or ""
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            self.conversation.text(data.delta, agent=self._agent)
        elif kind in ("response.reasoning_summary_text.delta", "response.reasoning_text.delta"):
            self.conversation.text(data.delta, what="reasoning", agent=self._agent)
        elif kind in ("response.completed", "response.incomplete"):
            self._told_whole = True
            self._outputs.append(data.response.output)
            self.conversation.close()
            self._of_response(data.response)

    # pydantic-ai.

    def _pydantic(self, piece: Any, streamed: bool) -> bool:
        kind, name = getattr(piece, "event_kind", None), type(piece).__name__
        if pieces.is_pydantic(piece):
            messages = pieces.from_pydantic(piece, self._note)
            self._told(piece, messages)
            self.conversation.whole(messages)
            return True
        if hasattr(piece, "new_messages") and hasattr(piece, "all_messages"):
            self._pydantic_result(piece)
        elif kind is not None:
            self._pydantic_event(kind, piece)
        elif name == "CallToolsNode":
            self.conversation.whole(pieces.from_pydantic(piece.model_response, self._note))
        elif name == "ModelRequestNode":
            self.conversation.whole(pieces.from_pydantic(piece.request, self._note))
        elif name == "UserPromptNode":
            self.conversation.empty = False
        elif name == "End":
            output = getattr(piece.data, "output", piece.data)
            self.conversation.final(pieces.text_of(output, self._note))
        elif name == "AgentRun" and getattr(piece, "result", None) is not None:
            self._pydantic_result(piece.result)
        elif name in ("RunUsage", "RequestUsage", "Usage"):
            self.conversation.total(piece, pieces.usage_of(piece))
            return True
        else:
            return False
        if name == "End" and not streamed:
            self._last_piece(piece, "return the result of the run")
        else:
            self._told_whole = True
        return True

    def _pydantic_result(self, result: Any) -> None:
        messages = [message for each in result.new_messages() for message in pieces.from_pydantic(each, self._note)]
        self.conversation.whole(messages)
        self.conversation.only_total(result, pieces.usage_of(_used(result)))
        output = getattr(result, "output", None)
        if output is None:
            output = getattr(result, "data", None)  # as it was called before 0.1
        if output is not None and not callable(output):
            self.conversation.final(pieces.text_of(output, self._note))

    def _pydantic_event(self, kind: str, event: Any) -> None:
        self.conversation.empty = False
        if kind == "part_start":
            # The parts of each response are counted from 0: with the first one, a new response begins.
            if event.index == 0 or not self._open:
                self._responses += 1
                self._open = True
            self._pydantic_piece(event.part.part_kind, getattr(event.part, "content", None))
        elif kind == "part_delta":
            delta = event.delta
            self._pydantic_piece(delta.part_delta_kind, getattr(delta, "content_delta", None))
        elif kind in ("part_end", "function_tool_call", "output_tool_call", "builtin_tool_call"):
            if event.part.part_kind.endswith("tool-call"):
                call = pieces.pydantic_call(event.part, self._note)
                self.conversation.call(("response", self._responses), call)
        elif kind in ("function_tool_result", "output_tool_result", "builtin_tool_result"):
            # After a result the model is asked again: what comes next is another response.
            part = getattr(event, "part", None) or getattr(event, "result", None)
            self._open = False
            if pieces.field(part, "part_kind") is not None:
                self.conversation.append(pieces.pydantic_request_part(part, self._note))
        elif kind == "agent_run_result":
            self._pydantic_result(event.result)
        elif kind != "final_result":
            self._note("left_out", "an event of the kind " + str(kind))

    def _pydantic_piece(self, kind: str, text: object) -> None:
        if isinstance(text, str) and text and kind in ("text", "thinking"):
            key = ("response", self._responses)
            self.conversation.text(text, key=key, what="text" if kind == "text" else "reasoning")

    # Anything else.

    def _object(self, piece: Any, streamed: bool) -> None:
        data = _data(piece)
        if isinstance(data, dict):
            self._foreign = pieces.foreign_type(piece)
            self._dict(data, streamed)
            self._foreign = None
        # Where something else could be read, an object that can't be is noted and does not fail the run.
        elif self.conversation.empty and not streamed:
            raise pieces.WrongTarget("an agent can't give " + pieces.article(pieces.type_of(piece)) + "; " + WANTED)
        else:
            self._note("unread", pieces.type_of(piece))

    def _answer(self, piece: dict[str, Any], streamed: bool) -> None:
        """A dict with an answer in it, or one that is the answer."""
        answer = next((name for name in ANSWERS if piece.get(name) is not None), None)
        if answer is None:
            if streamed and piece and not pieces.is_usage(piece):
                # Of a graph, as a rule, or what its nodes changed: the last state is the answer.
                changes = list(piece.values())
                if not all(change is None or isinstance(change, dict) for change in changes):
                    changes = [piece]
                for change in changes:
                    self._state = {**(self._state or {}), **(change or {})}
                self.conversation.empty = False
            else:
                self._as_json(piece)
            return
        if streamed and self._state is not None:
            self._state = {**self._state, **piece}
            return
        calls = pieces.listed(piece, "tool_calls")
        self._told_whole = self._told_whole or isinstance(piece.get("tool_calls"), (list, tuple))
        self._plain = "dict"
        if calls:
            self.conversation.append(self._messages([{"role": "assistant", "tool_calls": calls, "content": ""}]))
        value = piece[answer]
        if pieces.is_message(value):
            value = pieces.message_of(value, self._note)["text"]
        if isinstance(value, str) or (isinstance(value, (list, tuple)) and value and isinstance(value[0], dict)):
            self.conversation.text(pieces.content_of(value, self._note)[0])
        else:
            self.conversation.text(pieces.text_of(_data(value), self._note))
        self.conversation.total(piece, _usage(piece))
        if piece.get("model"):
            self.conversation.about(model=str(piece["model"]))
        self._beside(piece, answer)

    def _beside(self, piece: dict[str, Any], answer: str | None) -> None:
        """What a dict has beside its answer, by name, as far as it is JSON data."""
        outputs: dict[str, object] = {}
        for name in piece:
            if isinstance(name, str) and not name.startswith("__") and name not in _NO_OUTPUTS:
                with contextlib.suppress(TypeError, ValueError, RecursionError):
                    outputs[name] = json.loads(json.dumps(pieces.plain(piece[name]), allow_nan=False))
        # The answer alone would be told twice.
        if outputs.keys() - {answer}:
            self.conversation.about(outputs=outputs)

    def _as_json(self, piece: object) -> None:
        try:
            text = json.dumps(pieces.plain(piece), ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            if self.conversation.empty:
                holds = "itself, or too much" if isinstance(error, RecursionError) else pieces.article(str(error))
                what = pieces.article(type(piece).__name__) + " that holds " + holds
                raise pieces.WrongTarget("an agent can't give " + what + "; " + WANTED) from None
            self._note("unread", str(error))
            return
        self._plain = pieces.type_of(piece)
        self._dumped = self._dumped or self._foreign or pieces.foreign_type(piece)
        self.conversation.text(text)


def _agent_of(item: object) -> str | None:
    """The name of the agent that made an item of openai-agents."""
    return getattr(getattr(item, "agent", None), "name", None)


def _used(result: object) -> object:
    """What a run of pydantic-ai used: a property, once a method."""
    used = type(result).__dict__.get("usage")
    usage = getattr(result, "usage", None)
    if callable(usage) and not isinstance(used, property):
        try:
            usage = usage()
        except Exception:
            usage = None
    return usage or {}


def _usage(piece: dict[str, Any]) -> Figures:
    figures = pieces.usage_of(piece.get("usage") or piece.get("usage_metadata") or {})
    if not figures and isinstance(piece.get("cost"), (int, float)) and not isinstance(piece["cost"], bool):
        return {"cost": piece["cost"]}
    return figures


def _fields(value: object) -> dict[str, Any]:
    """The fields of an object that is a dict, or has the form of one; {} of anything else."""
    data = _data(value)
    return data if isinstance(data, dict) else {}


def _data(data: object) -> Any:
    """An object as a dict, where it has the form of one."""
    if data is None or isinstance(data, (str, dict, list, tuple, bool, int, float)):
        return data
    if hasattr(data, "model_dump"):
        return data.model_dump(mode="json")
    if dataclasses.is_dataclass(data) and not isinstance(data, type):
        return {field.name: getattr(data, field.name) for field in dataclasses.fields(data)}
    fields = {}
    for name in (*ANSWERS, "role", "tool_calls", "messages", "usage", "model"):
        value = getattr(data, name, None)
        if value is not None and not callable(value):
            fields[name] = value
    return fields or data
