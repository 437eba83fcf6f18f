"""The child process in which Python functions of the user's run. Needs nothing from this package, and no new Python:
the interpreter may be a different one (3.8 or later).

Standard input: one JSON object a line, {"id", "do", "target": "module:name", ...}. What it answers, one JSON object a
line on what was standard output: {"id", "event": {...}} as often as it likes, then {"id", "returned": ...} or
{"id", "raised": "KeyError: 'x' (checks.py, line 3)", "kinds": [names of its classes]}. What functions print goes to
standard error, as do tracebacks.

do: "find"      the callable is there: its name
    "find agent"    the same, or an agent of a framework
    "agent"     `request`: call it with what its parameters ask for, or run it; {"prepared"} once it is there, events
    "describe"  its name, docstring and parameters as a JSON Schema
    "tool"      `arguments`: call it with these; runs beside others, in a thread or in the loop of all async tools
    "metric"    `value`, `arguments`, `offered`
    "cancel"    `id` of a "tool" whose answer is no longer awaited
The end of standard input is the end: of the process, and, in the middle of a call, of its whole group.
"""

from __future__ import annotations

import sys
import time
from importlib import machinery

_HERE = __file__.rpartition("/")[0]
sys.path[:] = [place for place in sys.path if place != _HERE]  # our modules are not the user's

import dataclasses  # noqa: E402
import importlib  # noqa: E402
import importlib.util  # noqa: E402
import inspect  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import queue  # noqa: E402
import signal  # noqa: E402
import threading  # noqa: E402
import traceback  # noqa: E402
from typing import Any  # noqa: E402

# asyncio takes longer to load than all else together: it is imported where it is wanted.
_busy = threading.Event()
_lock = threading.Lock()
_waiting: queue.Queue[Any] = queue.Queue()
_loops: dict[Any, Any] = {}
_running: dict[int, Any] = {}
_out: Any = None


def main() -> Any:
    """Answer requests until there are no more."""
    global _out
    _out = os.fdopen(os.dup(1), "w", encoding="ascii")
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(2, 1)  # what a function prints must not be taken for an answer
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # and it must not read our requests
    os.close(nothing)
    places = [os.getcwd(), *sys.argv[1:]]  # noqa: PTH109
    _use_sources(places)
    sys.path[:0] = places
    threading.Thread(target=_listen, args=(requests,), daemon=True).start()
    while True:
        asked = _waiting.get()
        if asked is None:
            return
        if asked["do"] == "cancel":
            _cancel(asked["id"])
        elif asked["do"] == "tool":
            _begin_tool(asked)
        else:
            _answer(asked, _DO[asked["do"]])


def _use_sources(places: Any) -> Any:
    """Modules in these folders, and below, are loaded from their sources: those are what the user trusted. Bytecode
    beside them (`module.pyc`) is never imported; that of `__pycache__` is kept elsewhere (PYTHONPYCACHEPREFIX)."""
    roots = tuple(os.path.realpath(place) for place in places)
    finder = machinery.FileFinder.path_hook(
        (machinery.ExtensionFileLoader, machinery.EXTENSION_SUFFIXES),
        (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES),
    )

    def hook(path: Any) -> Any:
        real = os.path.realpath(path or os.getcwd())  # noqa: PTH109
        if not any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots):
            raise ImportError
        return finder(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    if not sys.pycache_prefix:
        sys.dont_write_bytecode = True
        machinery.SourceFileLoader.path_stats = _no_stats  # type: ignore[method-assign]


def _no_stats(self: Any, path: Any) -> Any:
    raise OSError  # so that no bytecode is looked for


def _listen(requests: Any) -> Any:
    for line in requests:
        if not line.strip():
            continue
        try:
            asked = json.loads(line)
            at_once = asked["do"] in ("tool", "cancel")
            if not at_once and asked["do"] not in _DO:
                raise ValueError("nothing is done for " + repr(asked["do"]))
        except (TypeError, ValueError, KeyError, RecursionError) as error:
            _say(None, raised="this line is not a request: " + _sibling("python_errors").words_of(error))
            continue
        with _lock:
            if not at_once:
                _busy.set()
            _waiting.put(asked)
    if _busy.is_set() or _running:  # whoever asked is gone
        if os.getpgrp() == os.getpid():
            os.killpg(os.getpid(), signal.SIGKILL)
        os._exit(1)
    _waiting.put(None)


def _say(number: Any, **answer: Any) -> Any:
    try:
        text = json.dumps(dict(id=number, **answer))
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps({"id": number, "raised": _sibling("python_errors").words_of(error)})
    with _lock:
        if "event" not in answer and "prepared" not in answer and number not in _running and _waiting.empty():
            _busy.clear()
        _running.pop(number, None)
        try:
            _out.write(text + "\n")
            _out.flush()
        except OSError:
            os._exit(1)  # nobody listens


def _answer(asked: Any, do: Any) -> Any:
    try:
        returned = do(asked)
    except BaseException as error:  # also SystemExit: the parent must hear of it
        _raised(asked["id"], error)
    else:
        _say(asked["id"], returned=returned)


def _raised(number: Any, error: Any) -> Any:
    traceback.print_exception(type(error), error, error.__traceback__)
    sys.stdout.flush()
    sys.stderr.flush()
    if type(error).__name__ == "WrongTarget":
        _say(number, raised=str(error), wrong=True)
        return
    _say(number, raised=_sibling("python_errors").words_of(error), kinds=[one.__name__ for one in type(error).__mro__])


def _find(target: Any) -> Any:
    module, _, name = target.partition(":")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def _sibling(name: Any) -> Any:
    """A module beside this one, which is not on the path."""
    known: Any = sys.modules.get("_agenteval_" + name)
    if known is None:
        spec: Any = importlib.util.spec_from_file_location("_agenteval_" + name, _HERE + "/" + name + ".py")
        known = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = known
        spec.loader.exec_module(known)
    return known


def _loop() -> Any:
    """The event loop of this thread: one for all its calls, so that clients made at import go on working."""
    import asyncio

    number = threading.get_ident()
    if number not in _loops:
        _loops[number] = asyncio.new_event_loop()
    return _loops[number]


def _await(given: Any) -> Any:
    async def awaited() -> Any:
        return await given

    return _loop().run_until_complete(awaited())


# What can be asked for.


def _do_find(asked: Any) -> Any:
    found = _find(asked["target"])
    if not callable(found):
        raise TypeError(f"{asked['target']} is a {type(found).__name__}, not a function")
    return getattr(found, "__name__", type(found).__name__)


def _do_find_agent(asked: Any) -> Any:
    found = _find(asked["target"])
    _call().objects.runner(found, asked["target"])
    return getattr(found, "__name__", type(found).__name__)


def _do_describe(asked: Any) -> Any:
    return _sibling("python_signature").describe(_find(asked["target"]))


def _do_agent(asked: Any) -> Any:
    began = time.perf_counter()
    found = _find(asked["target"])
    call = _call()

    def prepared() -> Any:
        _say(asked["id"], prepared={"name": "import", "ms": (time.perf_counter() - began) * 1000})

    def tell(event: Any) -> Any:
        _say(asked["id"], event=event)

    call.run(found, asked["target"], asked["request"], tell=tell, wait=_await, prepared=prepared)
    return None


def _call() -> Any:
    for name in ("usage", "pieces", "frameworks", "conversation", "objects", "answers"):
        _sibling("python_" + name)
    return _sibling("python_call")


def _do_metric(asked: Any) -> Any:
    found = _find(asked["target"])
    arguments = dict(asked["arguments"])
    try:
        wanted = set(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # a function written in C
        wanted = set()
    for name, value in asked["offered"].items():
        if name in wanted:
            arguments.setdefault(name, value)
    returned = found(asked["value"], **arguments)
    return plain(_await(returned) if inspect.isawaitable(returned) else returned)


def _begin_tool(asked: Any) -> Any:
    """Start a call and go on reading: several run at once."""
    import asyncio

    number = asked["id"]
    try:
        found = _find(asked["target"])
        arguments = _sibling("python_signature").converted(found, asked["arguments"])
    except BaseException as error:
        _raised(number, error)
        return
    _running[number] = None
    if inspect.iscoroutinefunction(found) or inspect.iscoroutinefunction(type(found).__call__):
        _running[number] = asyncio.run_coroutine_threadsafe(_async_tool(number, found, arguments), _tool_loop())
    else:
        threading.Thread(target=_sync_tool, args=(number, found, arguments), daemon=True).start()


def _sync_tool(number: Any, found: Any, arguments: Any) -> Any:
    import asyncio

    try:
        returned = found(**arguments)
        if inspect.isawaitable(returned):
            returned = asyncio.run_coroutine_threadsafe(_awaited(returned), _tool_loop()).result()
        returned = plain(returned)
    except BaseException as error:
        _raised(number, error)
    else:
        _say(number, returned=returned)


async def _async_tool(number: Any, found: Any, arguments: Any) -> Any:
    import asyncio

    try:
        returned = plain(await found(**arguments))
    except asyncio.CancelledError:
        _say(number, raised="cancelled")
    except BaseException as error:
        _raised(number, error)
    else:
        _say(number, returned=returned)


async def _awaited(given: Any) -> Any:
    return await given


def _tool_loop() -> Any:
    """The loop of all async tools, in a thread of its own."""
    import asyncio

    if "tools" not in _loops:
        _loops["tools"] = asyncio.new_event_loop()
        threading.Thread(target=_loops["tools"].run_forever, daemon=True).start()
    return _loops["tools"]


def _cancel(number: Any) -> Any:
    call = _running.get(number)
    if call is not None:
        call.cancel()


def plain(given: Any) -> Any:
    """What was returned as JSON data: dataclasses, and objects with `passed` or `score`, become objects."""
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return dataclasses.asdict(given)
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json")
    if hasattr(given, "item") and not isinstance(given, (dict, list)):  # a number of numpy
        return given.item()
    if not isinstance(given, (dict, list, str)) and (hasattr(given, "passed") or hasattr(given, "score")):
        return {name: getattr(given, name) for name in ("passed", "score", "reason") if hasattr(given, name)}
    if isinstance(given, (set, frozenset)):
        return sorted(given, key=repr)
    return given


_DO = {
    "find": _do_find,
    "find agent": _do_find_agent,
    "describe": _do_describe,
    "agent": _do_agent,
    "metric": _do_metric,
}

if __name__ == "__main__":
    main()
