"""Agents of Google's Agent Development Kit: how to run one, and what it gives. Runs in the child: only the standard
library, of Python 3.8 or later."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_conversation import Conversation
    from agenteval_tui.agents.process.python_message import Call, Message, Note, Part, Read, Request, Run

if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_context as contexts
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    contexts = sys.modules["_agenteval.python_context"]
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]


def runner(agent: Any, target: str) -> Run | None:
    """See `python_frameworks.Framework`."""
    names = [cls.__name__ for cls in type(agent).__mro__]
    if "BaseAgent" in names or "App" in names or "Runner" in names:
        return lambda request: _run(agent, request, names, target)
    return None


async def _run(agent: Any, request: Request, names: list[str], target: str) -> AsyncIterator[object]:
    types: Any = importlib.import_module("google.genai.types")
    config: Any = importlib.import_module("google.adk.agents.run_config")
    runners: Any = importlib.import_module("google.adk.runners")
    if "Runner" in names:
        own = agent
    else:
        own = runners.InMemoryRunner(
            **({"app": agent} if "App" in names else {"agent": agent, "app_name": "agenteval"})
        )
    sessions = own.session_service
    state = contexts.fields_of(request, target, "the state of the session")
    # A new one for each request, which knows what the request says, and nothing else.
    session = await _awaited(sessions.create_session(app_name=own.app_name, user_id="agenteval", state=state or None))
    name = getattr(own.agent, "name", None) or "model"
    if pieces.is_continued(request):
        # The results of the last calls are what is new; the session has all before them.
        events = list(_history(pieces.conversation(request, target), name, types))
        answered = _last_results(events)
        content = types.Content(role="user", parts=[part for event in answered for part in event.content.parts])
        events = events[: len(events) - len(answered)]
    else:
        events = list(_history(pieces.before(request), name, types))
        content = types.Content(role="user", parts=[types.Part(text=pieces.prompt_of(request, target))])
    for event in events:
        await _awaited(sessions.append_event(session, event))
    # Else each answer comes whole, and nobody sees it grow.
    mode = config.RunConfig(streaming_mode=config.StreamingMode.SSE)
    running = own.run_async(user_id="agenteval", session_id=session.id, new_message=content, run_config=mode)
    async for event in running:
        yield event
    how = request.get("_how") or {}
    if how.get("output") or how.get("messages"):  # what agents with an `output_key` leave there
        asked = sessions.get_session(app_name=own.app_name, user_id="agenteval", session_id=session.id)
        after = await _awaited(asked)
        yield {"agenteval_state": dict(after.state)}


async def _awaited(result: Any) -> Any:
    """What a service of sessions gives: before version 1.0 of ADK, it gives that at once."""
    return await result if inspect.isawaitable(result) else result


def _history(messages: list[dict[str, Any]], name: Any, types: Any) -> Iterator[object]:
    """Events of the messages before."""
    event: Any = importlib.import_module("google.adk.events").Event
    names: Any = {}
    for message in messages:
        role, content = message.get("role"), message.get("content") or ""
        parts = [types.Part(text=content)] if content and role != "tool" else []
        if role == "tool":
            key = message.get("tool_call_id")
            answer = types.FunctionResponse(id=key, name=names.get(key, "tool"), response={"result": content})
            parts = [types.Part(function_response=answer)]
        for call in message.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
            arguments = pieces.decoded_arguments(call["function"]["arguments"])
            function_call = types.FunctionCall(id=call["id"], name=names[call["id"]], args=arguments)
            parts.append(types.Part(function_call=function_call))
        if parts:
            author = name if role in ("assistant", "tool") else "user"
            turn = types.Content(role="model" if role == "assistant" else "user", parts=parts)
            yield event(author=author, content=turn, invocation_id="before")


def _last_results(events: list[Any]) -> list[Any]:
    """The events with results of tools at the end. Raises WrongTarget where an answer is the last."""
    place = len(events)
    while place and events[place - 1].content.parts[0].function_response is not None:
        place -= 1
    if place == len(events):
        raise pieces.WrongTarget("an agent of ADK can't continue after an answer; fork the run at another step")
    return events[place:]


def whole_of(piece: Any, streamed: bool) -> str:
    """See `python_frameworks.Framework`."""
    return "" if streamed or getattr(piece, "author", None) == "user" else "yield all events of the run"


class Pieces:
    """Reads the events of a run."""

    def __init__(self, conversation: Conversation, read: Read) -> None:
        self._conversation = conversation
        self._number = 0  # of the model's answer
        self._ids: set[str] = set()
        self._codes = 0

    def read(self, piece: Any) -> bool:
        """Whether this could be read."""
        if not hasattr(piece, "author") or not hasattr(piece, "content"):
            return False
        self._conversation.empty = False
        content = piece.content
        parts = (getattr(content, "parts", None) or ()) if content is not None else ()
        if getattr(piece, "partial", None):
            for part in parts:
                if part.text:
                    what: Part = "reasoning" if part.thought else "text"
                    self._conversation.text(part.text, key=("answer", self._number), what=what, agent=piece.author)
            return True
        if piece.id and piece.id in self._ids:
            return True
        self._ids.add(piece.id)
        # What a person said is known; a result that comes in the user's name is not.
        if piece.author != "user" or any(part.function_response for part in parts):
            self._event(piece, parts)
        return True

    def _event(self, event: Any, parts: Any) -> None:
        answer: Message = {"role": "assistant", "text": "", "reasoning": "", "calls": [], "closed": True}
        results: list[Message] = []
        for part in parts:
            self._part(part, answer, results)
        used = getattr(event, "usage_metadata", None)
        answer["usage"] = pieces.usage_of(used) if used is not None else {}
        answer["model"] = getattr(event, "model_version", None)
        finish = getattr(event, "finish_reason", None)
        answer["finish"] = str(getattr(finish, "value", finish)).lower() if finish else None
        answer["id"], answer["agent"] = ("answer", self._number), event.author
        if answer["text"] or answer["reasoning"] or answer["calls"]:
            self._number += 1
            self._conversation.one(answer)
        elif answer["usage"]:
            self._conversation.total(event, answer["usage"])
        self._conversation.append(results)
        if getattr(event, "error_code", None):
            reason = getattr(event, "error_message", None)
            self._conversation.about(finish=str(event.error_code).lower())
            self._conversation.note(
                "left_out", "an error of the model: " + str(event.error_code) + (" " + reason if reason else "")
            )

    def _part(self, part: Any, message: Message, results: list[Message]) -> None:
        note = self._conversation.note
        if part.function_call is not None:
            arguments = pieces.plain(part.function_call.args or {})
            call: Call = {"name": str(part.function_call.name), "arguments": arguments}
            if part.function_call.id:
                call["id"] = str(part.function_call.id)
            message["calls"].append(call)
        elif part.function_response is not None:
            answer = part.function_response
            results.append(_result(answer.id, answer.name, answer.response, note))
        elif part.executable_code is not None:
            # ADK gives code no id: a result is of the code before it.
            self._codes += 1
            code = {"language": str(part.executable_code.language), "code": part.executable_code.code}
            message["calls"].append({"id": "code " + str(self._codes), "name": "code_execution", "arguments": code})
        elif part.code_execution_result is not None:
            outcome = str(getattr(part.code_execution_result.outcome, "value", part.code_execution_result.outcome))
            call_id, failed = "code " + str(self._codes), outcome not in ("OUTCOME_OK", "None")
            text = part.code_execution_result.output or ""
            name = "code_execution"
            results.append({"role": "tool", "call_id": call_id, "name": name, "text": text, "error": failed})
        elif part.text is not None:
            what: Part = "reasoning" if part.thought else "text"
            message[what] += part.text
        else:
            kinds = [name for name in ("inline_data", "file_data") if getattr(part, name, None) is not None]
            note("left_out", "a part of a message: " + (kinds[0] if kinds else "of another kind"))


def _result(key: object, name: str, response: object, note: Note) -> Message:
    """A tool's result: ADK puts what is not a dict under `result`."""
    failed = isinstance(response, dict) and bool(response.get("error"))
    if isinstance(response, dict) and len(response) == 1:
        response = response.get("result", response)
    call_id, text = str(key) if key else None, pieces.text_of(response, note)
    return {"role": "tool", "call_id": call_id, "name": name, "text": text, "error": failed}


FRAMEWORK = frameworks.Framework(
    title="Google ADK",
    runner=runner,
    pieces=Pieces,
    makers=(
        frameworks.Maker(
            "google.adk",
            ("Agent", "LlmAgent", "SequentialAgent", "ParallelAgent", "LoopAgent", "App", "Runner", "InMemoryRunner"),
        ),
    ),
    whole_of=whole_of,
)
