"""A process in which Python code of the user's runs. Needs nothing from this package, and no new Python: the
interpreter may be a different one (3.8 or later).

Standard input is a socket. It takes one JSON object a line, {"id", "do", "target": "module:name", ...}, and answers
with one a line: {"id", "event": {...}} as often as it likes, then {"id", "returned": ...} or {"id", "raised":
"KeyError: 'x' (checks.py, line 3)", "reduced": the same without values, "kinds": [names of its classes], "traceback":
as `transcripts.traceback` reads it}. What functions print goes to standard error; while an agent is called, it comes as
{"id", "output": {"source", "text", "level", "logger"}} between its events, as far as Python wrote it.

do: "fork"      comes with a socket and the end of a pipe: a process that continues from here, with these as its
                requests and its standard error; `first` is its first request. {"forked": its number}, and
                {"exited": its exit code} when it has ended
    "end"       `fork`, `signal`: a fork and its group get a signal, or with `alone` only the fork
    "readers"   `files`: what reads the objects of frameworks (`python_frameworks.FILES`); has no answer
    "outside"   import what the modules of `targets` import from outside of the project: level 1 of the tree
    "prepare"   `steps`, each [what is to be done, target]: level 2; says what forks would share (`python_fork`)
                `late`: modules that packages imported in earlier runs, imported after the steps
    "import"    the module is imported
    "import own"    the same, of a metric: only if it is the project's or a plug-in's
    "find"      the callable is there: its name
    "find agent"    the same, or an agent of a framework
    "agent"     `request`: call it with what its parameters ask for, or run it; {"prepared"} once it is there, events;
                `cwd`, `env`: where it works, if that is not the suite's folder; `proxy`: by way of which it asks models
    "describe"  its name, docstring and parameters as a JSON Schema
    "tool"      `arguments`: call it with these; runs beside others, in a thread or in the loop of all async tools
    "metric"    `value`, `arguments`, `offered`: what an evaluator says of a run (`python_evaluator`)
    "hook"      `offered`, `cwd`, `env`: call it there with what its parameters name; what it prints comes as "output"
    "cancel"    `id` of a "tool" whose answer is no longer awaited
`last`: nothing is asked after this; the process ends by itself.
SIGQUIT asks where the code is: {"id": -1, "place": a traceback}, with what was seen of the run.

The end of the socket is the end of the process, and of all forks with their groups. While it is busy it can't see
that; it dies with the process that forked it, which can.
"""

from __future__ import annotations

import sys
import time

# `pathlib` and `os.path` are not imported yet: this has to be done before any import that a module of ours could
# shadow.
_HERE = __file__.rpartition("/")[0]
sys.path[:] = [place for place in sys.path if place != _HERE]  # our modules are not the user's

import _signal  # type: ignore[import-not-found]  # noqa: E402
import atexit  # noqa: E402
import contextlib  # noqa: E402
import contextvars  # noqa: E402
import faulthandler  # noqa: E402
import importlib  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import signal  # noqa: E402
import socket  # noqa: E402
import threading  # noqa: E402
import traceback  # noqa: E402
import types  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

if TYPE_CHECKING:
    import asyncio
    import concurrent.futures
    from collections.abc import Awaitable, Callable, Iterator
    from types import FrameType, ModuleType
    from typing import NoReturn

# The modules beside this one are a package of a name that nothing else has: the project's own `python_errors` stays
# what it is, and so does agenteval itself, which the project may have installed in another version.
_PACKAGE = "_agenteval"
_package = sys.modules[_PACKAGE] = types.ModuleType(_PACKAGE)
_package.__path__ = [_HERE]

# asyncio takes longer to load than all else together: it is imported where it is wanted.
_SIGTERM = int(signal.SIGTERM)
_loops: dict[int, asyncio.AbstractEventLoop] = {}
_loop_of_tools: asyncio.AbstractEventLoop | None = None
"""The loop of all async tools, in a thread of its own."""
_running: dict[int, list[concurrent.futures.Future[None]]] = {}
"""The calls of tools that have not answered, each with what can cancel it: of one that runs in a thread, nothing."""
_call_number: Any = contextvars.ContextVar("agenteval_call", default=None)
_requests: Any = None  # `python_fork.Requests`
_files: list[str] = []
_folder = ""
"""The folder where the process started; relative paths start here."""
_moved = False
"""Whether the process works in the folder of a run."""
_readers: dict[str, tuple[str, str]] = {}
"""Of frameworks, as `python_frameworks.FILES`."""
_temporary: list[list[str]] = []
"""What imports from outside of the project left for the end of the process to remove."""
_python_path: list[str] = []
"""Where modules are found that are not the project's."""
_opened: list[tuple[int, str, int]] = []
"""Files that each fork has to open anew, as (fd, path, flags)."""
_threads: list[threading.Thread] = []
"""Those that each fork has to begin anew."""
_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_LEADING = ("agent", "hook", "metric")  # beside "tool": they run the user's code (`Requests.leads`)


def main() -> None:
    """Answer requests until there are no more."""
    global _requests, _folder
    _folder = os.getcwd()  # noqa: PTH109
    end = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    first, last = _sibling("python_target").places(_folder, sys.argv[1:end], sys.argv[end + 1 :])
    requests = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)  # a function must not read our requests
    os.close(nothing)
    # What C code and other programs print goes to standard error: nobody reads standard output, which is no pipe.
    os.dup2(2, 1)
    faulthandler.enable(2, all_threads=False)  # where a library of C crashed
    # Before any module of the project is imported: a handler of `logging` keeps the stream that it finds.
    _sibling("python_output").replace_streams()
    # After our own imports: a module of the project that is called `json` must not take the place of Python's.
    _python_path[:] = sys.path
    sys.path[:0] = first
    sys.path += last
    _requests = _sibling("python_fork").Requests(requests)
    # SIGQUIT asks where a run is whose time is over; `faulthandler` also writes where a process hangs that doesn't let
    # Python answer.
    _sibling("python_place").answer_with(_requests.send, _seen)
    faulthandler.register(signal.SIGQUIT, 2, all_threads=False, chain=True)
    _requests.send('{"id": 0}')  # this is a Python that can serve
    request: Any = None
    while True:
        request = request or _requests.next()
        if request is None:
            leave()
        # A fork gets its first request with the one that asks for it: it need not read its own socket for that.
        do, first = request["do"], None
        if do == "cancel":
            _cancel(request["id"])
        elif do == "tool":
            _requests.leads()
            _begin_tool(request)
        elif do == "fork":
            threads = _sibling("python_threads")
            awaited = threads.wait_until_idle()
            number, problem = _requests.new_fork(request)
            if number:
                _say(request["id"], forked=number)
            elif problem:
                _say(request["id"], raised=problem)
            else:  # this is the fork
                threads.begin(_threads, awaited)
                first = request.get("first")
        elif do == "end":
            _requests.signal(request["fork"], request["signal"], alone=request.get("alone", False))
        elif do == "readers":
            _readers.update(request["files"])
        elif do in _DO:
            if do in _LEADING:
                _requests.leads()
            _answer(request, _DO[do])
            if request.get("last"):
                leave()
        else:
            _say(request.get("id"), raised="this line is not a request: nothing is done for " + repr(do))
        request = first


def leave() -> None:
    """End as an interpreter does, but without taking all modules down: that would copy the memory that forks share."""
    if _running:  # whoever asked is gone
        # Tools run in threads that can't be ended: the group is killed, with what they have started.
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)
    if _requests.forks and not _temporary:
        os._exit(0)  # it has run nothing
    streams = (sys.stdout, sys.stderr)
    lasts = [stream.flush for stream in streams if stream is not None and not getattr(stream, "closed", False)]
    # In the order of Python's own end: threads are waited for, then exit handlers run, then streams are flushed.
    if atexit._ncallbacks():
        lasts.insert(0, atexit._run_exitfuncs)
    if threading.active_count() > 1 or getattr(threading, "_threading_atexits", True):
        lasts.insert(0, threading._shutdown)  # type: ignore[attr-defined]
    for last in lasts:
        try:
            last()
        except BaseException:
            traceback.print_exc()
    os._exit(0)


def _say(number: int | None, **answer: Any) -> None:
    try:
        # What can't be written as JSON is an error of that request: the caller must get an answer in any case.
        text = json.dumps(dict(id=number, **answer))
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({"id": number, "raised": _sibling("python_errors").words_of(error)})
    if number is not None:
        _running.pop(number, None)
    _requests.send(text)


def _answer(request: dict[str, Any], do: Callable[[dict[str, Any]], object]) -> None:
    try:
        answer = {"returned": do(request)}
    except BaseException as error:  # also SystemExit: the parent must hear of it
        answer = _said_of(error)
    _say(request["id"], **answer, **_seen())


def _seen() -> dict[str, Any]:
    """What was seen of the run, beside what it gives: the `files` that it has read, what it imported late, and the
    servers that it asked past the proxy."""
    answer: dict[str, Any] = {}
    # Metrics load this module, too; only a process that was prepared tracks anything.
    tracked = getattr(_loaded("python_effects"), "tracked", None)
    if tracked is not None and tracked.on:
        files = tracked.more(_files)
        if files:
            answer["files"] = files
        late = tracked.late_imports()
        if late:
            answer["late"], answer["new_modules"] = late, tracked.new_modules()
        clients = _loaded("python_http_clients")
        if clients is not None and tracked.hosts:
            answer["asked_past"] = clients.asked_past(list(tracked.hosts))
    return answer


def _raised(number: int, error: BaseException) -> None:
    _say(number, **_said_of(error))


def _said_of(error: BaseException) -> dict[str, Any]:
    _sibling("python_output").flush()
    try:
        return _description(error)
    # Whatever the user's exception does when it is looked at, whoever asked waits for an answer.
    except BaseException as problem:
        reason = type(problem).__name__ + ": " + str(problem)
        return {"raised": type(error).__name__ + ", which can't be described: " + reason}


def _description(error: BaseException) -> dict[str, Any]:
    if isinstance(error, _sibling("python_target").WrongTarget):
        return {"raised": str(error), "wrong": True}
    errors = _sibling("python_errors")
    kinds = [kind.__name__ for kind in type(error).__mro__]
    answer = {"raised": errors.words_of(error), "kinds": kinds}
    answer["clues"] = _sibling("python_clues").clues_of(error, errors.is_own)
    try:
        answer["reduced"], answer["traceback"] = errors.reduced(error), errors.traceback_of(error)
    # The words are known; the place is not worth losing them for.
    except Exception:  # an object of the user's that can't be looked at
        traceback.print_exception(type(error), error, error.__traceback__)
    return answer


def _find(target: str) -> Callable[..., object]:
    """What a target names; whether it can be called is not known yet."""
    function: Callable[..., object] = _sibling("python_target").find(target, _folder)
    return function


def _sibling(name: str) -> ModuleType:
    """A module beside this one, which is not on the path."""
    # `import_module` alone would look at the module's specification each time, and so copy it for each fork.
    return _loaded(name) or _import_own(_PACKAGE + "." + name)


def _import_own(name: str) -> ModuleType:
    """Import a module of ours with Python's library, whatever the project calls its own modules; `import random` in the
    project is its own afterwards, as in a program."""
    if not _python_path:
        return importlib.import_module(name)
    path, before = sys.path, set(sys.modules)
    sys.path = list(_python_path)
    try:
        return importlib.import_module(name)
    finally:
        sys.path = path
        places = [place for place in path if place not in _python_path]
        for new in [each for each in set(sys.modules) - before if "." not in each]:
            files = (place + end for place in places for end in (f"/{new}.py", f"/{new}/__init__.py"))
            if any(map(os.path.isfile, files)):
                del sys.modules[new]


def _loaded(name: str) -> ModuleType | None:
    return sys.modules.get(_PACKAGE + "." + name)


def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of this thread: one for all its calls, so that clients made at import go on working. It is the one
    that imports left, if they did: what they have used in it can't be used in another. One that a thread of theirs
    runs, or that was closed, can't be used here."""
    import asyncio
    import warnings

    number = threading.get_ident()
    loop = _loops.get(number)
    if loop is None:
        try:
            with warnings.catch_warnings():
                # Some versions of Python warn where there is no loop yet.
                warnings.simplefilter("ignore")
                loop = asyncio.get_event_loop()
        except RuntimeError:
            pass
    if loop is None or loop.is_closed() or loop.is_running():
        loop = asyncio.new_event_loop()
    _loops[number] = loop
    return loop


def _await(awaitable: Awaitable[object]) -> object:
    return _loop().run_until_complete(_awaited(awaitable))


async def _awaited(awaitable: Awaitable[object]) -> object:
    # `run_coroutine_threadsafe` takes only coroutines, and code of the user's may give any awaitable.
    return await awaitable


# What can be asked for.


def _do_outside(request: dict[str, Any]) -> dict[str, Any]:
    """Level 1."""
    began = time.perf_counter()
    # Before effects are watched: it opens a file, which is no effect of the user's modules.
    _requests.will_fork("agenteval-1")
    effects, before = _tracked()
    _call()
    imports = _sibling("python_imports")
    name = _sibling("python_target").module_name
    outside = imports.outside([name(target, _folder) for target in request["targets"]], effects.is_installed)
    tracked = effects.tracked
    with _importing(tracked):
        loaded = imports.load(outside)
    _note_temporary(tracked.effects)
    tracked.forget()
    return dict(_shared(before), modules=loaded, ms=(time.perf_counter() - began) * 1000, places=_places_of_packages())


def _do_prepare(request: dict[str, Any]) -> dict[str, Any]:
    """Level 2."""
    global _files
    began = time.perf_counter()
    _requests.will_fork("agenteval-2")
    effects, before = _tracked()
    tracked = effects.tracked
    # Modules may read variables when they are imported.
    os.environ.update(request.get("env") or {})
    _sibling("python_hidden_variables").hide()
    _sibling("python_http_clients").begin_network()
    # A level lives through many saves of the project's files.
    _sibling("python_imports").keep_no_young_bytecode()
    outcomes = []
    with _importing(tracked), _sibling("python_fork").watching_seeds():
        for do, target in request["steps"]:
            try:
                outcomes.append({"returned": _DO[do]({"do": do, "target": target})})
            except BaseException as error:
                outcomes.append(_said_of(error))
        own = list(tracked.effects)
        # Runs imported these without harm: what they do beside that is no reason against forks.
        for name in request["late"]:
            _sibling("python_imports").imported(name)
        _note_temporary(tracked.effects[len(own) :])
        tracked.effects[:] = own
    shared = _shared(before)
    shared["unsafe"] += [["effect", effect] for effect in tracked.effects]
    files, folders = tracked.files()
    # A run tells the files that it reads beside these.
    _files = files
    tracked.forget()
    # This process, or each fork of it, notes on what a run reads, and says it with its answer. Only what is forked can
    # have modules ready for the next run.
    tracked.on, tracked.learns = True, not shared["unsafe"]
    return dict(shared, outcomes=outcomes, files=files, folders=folders, ms=(time.perf_counter() - began) * 1000)


@contextlib.contextmanager
def _importing(tracked: Any) -> Iterator[None]:
    """Modules are imported inside: their effects are noted."""
    tracked.on = True
    # SIGTERM asks a process that takes too long where it is; the exception says it with a traceback.
    handler = signal.signal(signal.SIGTERM, _late)
    try:
        yield
    finally:
        # A module of the user's may have set its own handler, which stays.
        if signal.getsignal(signal.SIGTERM) is _late:
            signal.signal(signal.SIGTERM, handler)
        tracked.on = False


def _note_temporary(effects: list[list[str]]) -> None:
    """A temporary file of a package does not prevent forks; but it is removed at exit, so this process has to end
    as Python does."""
    _temporary.extend(effect for effect in effects if effect[0].startswith("makes a temporary"))


def _tracked() -> tuple[Any, Any]:
    """The module that sees effects, which has begun to, and what is open by now."""
    effects: Any = _sibling("python_effects")
    if not hasattr(effects, "tracked"):
        effects.tracked = effects.Effects()
    return effects, effects.Before()


def _shared(before: Any) -> dict[str, Any]:
    # Before open files are compared: what it opens belongs to us.
    _sibling("python_fork").open_standard()
    _sibling("python_output").flush()
    effects, threads = _sibling("python_effects"), _sibling("python_threads")
    http = effects.tracked.http
    unsafe = before.unsafe(http)
    lost, _threads[:] = threads.lost_in_forks(effects.is_installed)
    if lost:
        unsafe.append(["threads", ", ".join(lost)])
    opened = [] if unsafe else before.opened()
    _opened.extend(opened)
    _sibling("python_fork").remember(_opened, before.http_connections(http))
    return {"unsafe": unsafe, "kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


class StartTimeout(BaseException):
    """It takes too long until the agent can be asked."""


class ImportTimeout(StartTimeout):
    """The imports take too long."""


def _late(number: int, frame: FrameType | None) -> NoReturn:
    raise ImportTimeout("its import did not end in time")


def _made_late(number: int, frame: FrameType | None) -> NoReturn:
    raise StartTimeout("it was not made in time")


def _places_of_packages() -> list[str]:
    """The folders that change when a package is installed."""
    return [place for place in sys.path if place.endswith(("site-packages", "dist-packages"))]


def _find_agent(target: str) -> object:
    return _sibling("python_target").find_agent(target, _folder)


def _do_import(request: dict[str, Any]) -> None:
    _sibling("python_target").load(request["target"], _folder)


def _do_import_own(request: dict[str, Any]) -> None:
    target = _sibling("python_target").within(request["target"], _folder)
    _sibling("python_project").module_of(target, _sibling("python_effects").is_installed)


def _do_find(request: dict[str, Any]) -> str:
    function = _find(request["target"])
    if not callable(function):
        raise TypeError(f"{request['target']} is a {type(function).__name__}, not a function")
    return getattr(function, "__name__", type(function).__name__)


def _do_find_agent(request: dict[str, Any]) -> str:
    agent = _find_agent(request["target"])
    runner = _call().objects.runner(agent, request["target"])
    if runner is None:
        _sibling("python_answers").parameters_of(agent)
    # Only a plain function can do without an event loop.
    if runner is not None or not isinstance(agent, types.FunctionType) or agent.__code__.co_flags & _ASYNC:
        import asyncio  # noqa: F401 - each fork would import it
    # And these, too: to change a class is to copy all that knows it.
    _sibling("python_model_requests").add_hooks()
    _sibling("python_http_clients").add_hooks()
    return getattr(agent, "__name__", type(agent).__name__)


def _do_describe(request: dict[str, Any]) -> dict[str, Any]:
    import asyncio  # noqa: F401 - each fork would import it

    _load_for_tools()
    described: dict[str, Any] = _sibling("python_signature").describe(_find(request["target"]))
    return described


def _do_agent(request: dict[str, Any]) -> None:
    began = time.perf_counter()
    _go_to(request)
    agent = _find_agent(request["target"])
    call = _call()

    def prepared() -> None:
        # The call begins: from now on SIGTERM means what it means in any program, so that an agent can handle it.
        _signal.signal(_SIGTERM, handler)
        _say(request["id"], prepared={"name": "import", "ms": (time.perf_counter() - began) * 1000})

    def tell(event: Any) -> None:
        _say(request["id"], event=event)

    def state(value: object) -> None:
        _say(request["id"], state=value)

    how = dict(request.get("how") or {})
    if how.get("factory"):
        try:
            how["factory"] = _find(how["factory"])
        # A factory that is not there is a mistake in the suite, and not one of the agent.
        except AttributeError as error:
            raise _sibling("python_target").WrongTarget(f"`context: {how['factory']}`: {error}") from None
    ways = {"tell": tell, "wait": _await, "prepared": prepared, "how": how, "state": state}
    # The functions of `signal` look up names for what they take and give, which copies memory that forks share. None: a
    # handler that C code set; 0 is the system's own.
    handler = _signal.signal(_SIGTERM, _made_late) or 0
    tracked = getattr(_loaded("python_effects"), "tracked", None)
    # Level 2 has another folder and other variables than a run with its own.
    if tracked is not None and tracked.learns and not request.keys() & {"cwd", "env"}:
        tracked.call_begins()
    try:
        with _telling_output(request["id"]), _sibling("python_http_clients").by_way_of(request.get("proxy") or ""):
            call.run(agent, request["target"], request["request"], **ways)
    finally:
        # The call did not begin, and so `prepared` has not put it back.
        if _signal.getsignal(_SIGTERM) is _made_late:
            _signal.signal(_SIGTERM, handler)


@contextlib.contextmanager
def _telling_output(number: int) -> Iterator[None]:
    """What is printed inside is told as that of a request."""
    output = _sibling("python_output")
    # What was printed before belongs to the imports, and not to this run.
    output.flush()
    output.begin(lambda piece: _say(number, output=piece))
    try:
        yield
    finally:
        output.end()


def _call() -> ModuleType:
    _sibling("python_frameworks").FILES.update(_readers)
    return _sibling("python_call")


def _do_metric(request: dict[str, Any]) -> object:
    target = _sibling("python_target").within(request["target"], _folder)
    function = _sibling("python_project").function_of(target, _sibling("python_effects").is_installed)
    with _telling_output(request["id"]):
        return _sibling("python_evaluator").call(function, request["target"], request, _await)


def _go_to(request: dict[str, Any]) -> None:
    """Work in the folder of the run, if it has one of its own; a process that served another run goes back."""
    global _moved
    os.environ.update(request.get("env") or {})
    if "cwd" in request or _moved:
        os.chdir(request.get("cwd") or _folder)
        _moved = "cwd" in request


def _do_hook(request: dict[str, Any]) -> object:
    _go_to(request)
    function = _find(request["target"])
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function written in C
        parameters = ()  # type: ignore[assignment]
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [parameter.name for parameter in parameters if parameter.kind in by_name]
    with _telling_output(request["id"]):
        returned = function(**{name: request["offered"][name] for name in names if name in request["offered"]})
        return _plain(_await(returned) if inspect.isawaitable(returned) else returned)


def _load_for_tools() -> None:
    """Load, in the main thread, what calls need in theirs: a thread that imports changes `sys.path` for a moment, and
    what it has half loaded is what another one finds."""
    for name in ("python_errors", "python_clues", "python_pieces"):
        _sibling(name)


def _begin_tool(request: dict[str, Any]) -> None:
    """Start a call and go on reading: several run at once."""
    import asyncio

    number = request["id"]
    _load_for_tools()
    try:
        function = _find(request["target"])
        arguments = _sibling("python_signature").converted(function, request["arguments"])
    except BaseException as error:
        _raised(number, error)
        return
    # Before the call begins: it may have its answer, and `_say` may have taken it off the list, before the lines below
    # are done.
    calls = _running[number] = []
    _sibling("python_output").begin(_tell_of_call)
    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
        calls.append(asyncio.run_coroutine_threadsafe(_async_tool(number, function, arguments), _tool_loop()))
    else:
        threading.Thread(target=_sync_tool, args=(number, function, arguments), daemon=True).start()


def _tell_of_call(piece: Any) -> bool:
    """Calls run beside each other: what is printed belongs to the one whose context it is printed in. Of a thread that
    a tool started by itself, that is not known."""
    number = _call_number.get()
    if number is None or number not in _running:
        return False
    _requests.send(json.dumps({"id": number, "output": piece}))
    return True


def _sync_tool(number: int, function: Callable[..., object], arguments: dict[str, Any]) -> None:
    import asyncio

    _call_number.set(number)
    try:
        returned = function(**arguments)
        if inspect.isawaitable(returned):
            # All async tools share one loop: a client that one of them made belongs to it.
            returned = asyncio.run_coroutine_threadsafe(_awaited(returned), _tool_loop()).result()
        returned = _plain(returned)
    except BaseException as error:
        _raised(number, error)
    else:
        _sibling("python_output").flush()
        _say(number, returned=returned)


async def _async_tool(number: int, function: Callable[..., Any], arguments: dict[str, Any]) -> None:
    import asyncio

    _call_number.set(number)
    try:
        returned = _plain(await function(**arguments))
    except asyncio.CancelledError:
        # Nobody waits for this answer; it takes the call off the list of those that run.
        _say(number, raised="cancelled")
    except BaseException as error:
        _raised(number, error)
    else:
        _sibling("python_output").flush()
        _say(number, returned=returned)


def _tool_loop() -> asyncio.AbstractEventLoop:
    global _loop_of_tools
    import asyncio

    if _loop_of_tools is None:
        _loop_of_tools = asyncio.new_event_loop()
        threading.Thread(target=_loop_of_tools.run_forever, daemon=True).start()
    return _loop_of_tools


def _cancel(number: int) -> None:
    for call in _running.get(number, ()):
        call.cancel()


def _plain(value: object) -> object:
    """What was returned, as JSON data."""
    with contextlib.suppress(TypeError):
        return _sibling("python_pieces").plain(value)
    return value  # `_say` tells what can't be written


_DO = {
    "outside": _do_outside,
    "prepare": _do_prepare,
    "import": _do_import,
    "import own": _do_import_own,
    "find": _do_find,
    "find agent": _do_find_agent,
    "describe": _do_describe,
    "agent": _do_agent,
    "hook": _do_hook,
    "metric": _do_metric,
}

if __name__ == "__main__":
    main()
