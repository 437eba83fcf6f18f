"""One call of a Python agent: a function, or an object of a framework; what it gives becomes events.

Used in the child process of the kind `python`, where it needs only the standard library, of Python 3.8 or later, and in
this process for the kind `function`.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import AsyncIterator, Callable, Collection
from typing import TYPE_CHECKING, Any

from . import python_answers as answers
from . import python_context as contexts
from . import python_errors as errors
from . import python_model_requests as model_requests
from . import python_objects as objects
from . import python_pieces as pieces
from . import python_recorded_tools as recorded_tools
from . import python_salvage as salvage
from . import python_target as targets

if TYPE_CHECKING:
    from agenteval_tui.agents.process.python_message import Event, Request, Run, Tell, Wait


def run(
    loaded: Any,
    target: str,
    request: Request,
    *,
    tell: Tell,
    wait: Wait,
    prepared: Callable[[], object] | None = None,
    how: dict[str, Any] | None = None,
    state: Callable[[object], object] | None = None,
) -> None:
    """Call what was found at `target` with a request (docs/schemas/agent-request.json), and tell what it gives.

    `tell` takes each event (docs/schemas/agent-event.json) as it comes; `wait` runs an awaitable to its end and gives
    its result; `prepared` is called when the call begins. `how` has the options `context` (or `factory`, which makes
    it), `input`, `output` and `messages`; its `recorded_tools` are the calls of tools that get their recorded results.
    `state` takes what `output` and `messages` are to map: the result, also of a stream. Raises what the agent raises;
    before that, `tell` has had what was done and used until then, as far as that can be known.
    """
    how = how or {}
    runner: Run | None
    # Steps: make what is called (of a factory, a class, a context manager); call it; read what it gives, piece by
    # piece; tell what is only known at the end.
    if isinstance(loaded, targets.Method):
        loaded = objects.bound(loaded, request, target)
    if objects.is_factory(loaded, request.get("config") or ()):
        gave = _awaited(objects.make(loaded, request), wait)
        entered = hasattr(gave, "__aenter__") or hasattr(gave, "__enter__")
        # Some agents are context managers as well; those are run as what they are.
        if entered and not objects.is_agent(gave, target, ways=False):
            runner = functools.partial(objects.entered, gave, target)
        elif objects.is_agent(gave, target):
            runner, loaded = objects.runner(gave, target), gave
        elif inspect.isclass(loaded):
            problem = target + " makes a " + pieces.type_of(gave) + ", which has none of the methods "
            raise pieces.WrongTarget(problem + ", ".join(objects.WAYS) + ", __call__; " + objects.WANTED)
        else:
            contexts.refuse_option({"_how": how}, target)
            runner = functools.partial(_answered, gave)
    else:
        runner = objects.runner(loaded, target)
    if how.get("factory") is not None:
        how = dict(how, made_context=_awaited(objects.make(how["factory"], request), wait))
    # The time limits of the run begin here: what came before was preparation.
    if prepared is not None:
        prepared()
    reader = answers.Reader(request["messages"])
    streamed = False
    mapped = state is not None and bool(how.get("output") or how.get("messages"))
    result: Any = None  # of a stream, where it is mapped
    # (id, name of the tool), by the id as text: an event of the agent's own may have any value.
    open_calls: dict[str, tuple[object, str]] = {}

    def telling(event: Event) -> None:
        if tools is not None:
            tools.told(event)
        if event["type"] == "tool_call":
            open_calls[str(event.get("id"))] = event.get("id"), str(event.get("name"))
        elif event["type"] == "tool_result":
            open_calls.pop(str(event.get("id")), None)
            raised = requests.tool_errors.pop(str(event.get("id")), None)
            if raised is not None and not event.get("error"):
                event = dict(event, error=True, traceback=errors.traceback_of(raised))
        tell(event)

    with contextlib.ExitStack() as watching:
        messages = watching.enter_context(salvage.watching())
        requests = watching.enter_context(model_requests.watching(tell))
        tools = watching.enter_context(recorded_tools.answering(how.get("recorded_tools")))
        try:
            asking = dict(request, _how=how)
            returned: Any = objects.asked(loaded, request, how, target) if runner is None else runner(asking)
            returned = _awaited(returned, wait)
            # Only now it shows that it was a factory, as it needs the prompt or the variables to make its agent.
            if runner is None and inspect.isroutine(loaded) and objects.is_agent(returned, target, ways=False):
                inner = objects.runner(returned, target)  # a factory that takes more
                assert inner is not None
                returned = _awaited(inner(asking), wait)
            elif runner is None and not objects.takes_context(loaded):
                contexts.refuse_option(asking, target)
            # The run itself comes last: it has the answer and the usage, which its stream leaves out.
            if hasattr(returned, "stream_events") and hasattr(returned, "to_input_list"):
                returned = _and_itself(returned, returned.stream_events())  # what openai-agents streams
            streamed = any(hasattr(returned, name) for name in ("__next__", "__anext__", "__aiter__"))
            if mapped and not streamed:
                returned = {"agenteval_state": objects.result_of(returned)}
            grown = answers.Grown() if runner is None and answers.takes_history(loaded) else None
            last = _follow(returned, reader, telling, wait, state, grown)
            if mapped and streamed and last is not _MAPPED:
                result = {"agenteval_state": objects.result_of(last)}
        # Each step by itself: what can't be read must not hide the error of the agent.
        except BaseException as error:
            with contextlib.suppress(Exception):
                for piece in salvage.done_before(error, messages):
                    for event in reader.take(piece, False):
                        telling(event)
            with contextlib.suppress(Exception):
                for event in reader.end():  # what was used until then
                    if event["type"] != "done":
                        telling(event)
            with contextlib.suppress(Exception):
                _blame(error, open_calls, tell)
            with contextlib.suppress(Exception):
                _tell_raised(requests.tool_errors, open_calls, tell)
            if tools is not None:
                tools.tell_real(tell)
            raise
    # The mapped state goes between the last event and `done`, which ends a run.
    if not mapped:
        reader.end_graph()
    rest = list(reader.end())
    for event in rest:
        if event["type"] != "done":
            telling(event)
    _tell_raised(requests.tool_errors, open_calls, tell)
    if tools is not None:
        tools.tell_real(tell)
    if result is not None and state is not None:
        state(pieces.plain(result["agenteval_state"]))
    for event in rest:
        if event["type"] == "done":
            tell(event)
    if not reader.gave:
        gives, missing = ("yielded", "yield") if streamed else ("returned", "return")
        message = f"{target} {gives} nothing" + ("" if streamed else " (None)")
        fix = f"is `{missing}` missing? For an empty answer give an empty text"
        tell({"type": "error", "kind": "protocol", "message": message, "fix": fix})


def _tell_raised(raised: dict[str, BaseException], told: Collection[str], tell: Tell) -> None:
    """What tools raised whose calls the agent did not tell, and which its framework hid from the model."""
    for call, error in raised.items():
        if call in told:  # it has no result yet, and what the model gets is not known
            continue
        tell(
            {
                "type": "tool_result",
                "id": call,
                "error": errors.words_of(error),
                "traceback": errors.traceback_of(error),
            }
        )


def _answered(answer: object, request: Request) -> object:
    """What a function gave that asks for nothing: it has answered already."""
    return answer


_MAPPED: Any = object()
"""A state was among the pieces, and is mapped already."""


def _awaited(result: object, wait: Wait) -> object:
    return wait(result) if inspect.isawaitable(result) else result


def _blame(error: BaseException, open_calls: dict[str, tuple[object, str]], tell: Tell) -> None:
    """The tool that raised has that as its result. It is one of the calls without a result, and in the traceback."""
    functions = salvage.functions_in(error)
    raised = [(call, name) for call, name in open_calls.values() if name in functions]
    # With several calls of the same tool in progress it is not known which one raised.
    if len(raised) == 1:
        ((call, name),) = raised
        inner = list(salvage.chain(error))
        last = next(
            each for each in reversed(inner) if name in {frame.f_code.co_name for frame in salvage.frames_of(each)}
        )
        tell({"type": "tool_result", "id": call, "error": errors.words_of(last)})


async def _and_itself(result: object, stream: Any) -> AsyncIterator[object]:
    async for event in stream:
        yield event
    yield result


def _follow(
    returned: Any,
    reader: answers.Reader,
    tell: Tell,
    wait: Wait,
    state: Callable[[object], object] | None,
    grown: answers.Grown | None,
) -> object:
    """Tell what was returned, or what it yields, as it comes. Returns the last of it."""
    last: Any = None

    def events(piece: object, streamed: bool) -> None:
        nonlocal last
        if grown is not None and streamed:
            piece = grown.of(piece)
        if isinstance(piece, dict) and "agenteval_state" in piece and state is not None:
            reader.gave, last = True, _MAPPED
            state(pieces.plain(piece["agenteval_state"]))
            return
        last = piece if piece is not None else last
        for event in reader.take(piece, streamed):
            tell(event)

    if inspect.isgenerator(returned):
        while True:
            try:
                piece = next(returned)
            # A generator may return its answer: what `return` gives is in the exception.
            except StopIteration as stop:
                events(stop.value, False)
                return last
            events(piece, True)
    if hasattr(returned, "__anext__") or inspect.isasyncgen(returned):

        async def following() -> None:
            # All in one task: what a framework keeps in context variables holds from one piece to the next.
            async for piece in returned:
                events(piece, True)

        wait(following())
        if hasattr(returned, "result"):  # a run of pydantic-ai that was still to be driven, or had been
            events(returned, False)
        return last
    if hasattr(returned, "__next__"):
        for piece in returned:
            events(piece, True)
        return last
    events(returned, False)
    return last
