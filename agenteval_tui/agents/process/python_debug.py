"""One call of a Python agent in the foreground, with the terminal, for a debugger. Runs in the project's Python: only
the standard library, of Python 3.8 or later.

Its one argument is a file with JSON: `folder`, `path` and `last` (folders with modules), `target`, `request`, `how`,
`readers` (of frameworks, see `python_frameworks.FILES`), and `listen` (the port on which debugpy waits for an editor;
null: none). The file is deleted.
"""

# pathlib takes longer to load than all else.
# ruff: noqa: PTH100, PTH108, PTH118, PTH120, PTH123
from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import traceback
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import ModuleType, TracebackType


def main() -> int:
    """Make the call; the exit code is 1 if it raised."""
    with open(sys.argv[1], encoding="utf-8") as file:
        job = json.load(file)
    # It may hold what a test must not leave lying around.
    os.unlink(sys.argv[1])
    child: Any = _child()
    child._folder = job["folder"]
    child._readers.update(job["readers"])
    # A parser of arguments in the agent's code must not find our file among them.
    sys.argv[:] = [job["target"]]
    own = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [place for place in sys.path if os.path.abspath(place or ".") != own]
    first, last = child._sibling("python_target").places(job["folder"], job["path"], job["last"])
    sys.path[:0] = first
    sys.path += last
    if job["listen"] is not None:
        _wait_for_editor(job["listen"])
    try:
        target, call = job["target"], child._call()
        loaded = child._find_agent(target)
        how = dict(job["how"])
        if how.get("factory"):
            how["factory"] = child._find(how["factory"])
        ways = {"tell": _show, "wait": child._await, "how": how, "state": _show_state}
        call.run(loaded, target, job["request"], **ways)
        sys.stdout.write("\n")
    except SystemExit:
        raise
    except BaseException as error:
        # The person left the debugger: that is no error of the agent.
        if type(error).__name__ == "BdbQuit":
            sys.stdout.write("\n")
            return 0
        frames = _from_project(error.__traceback__, child._sibling("python_errors"))
        traceback.print_exception(type(error), error, frames)
        sys.stderr.flush()
        # An editor has stopped there by itself, if it was told to.
        if job["listen"] is None:
            _post_mortem(frames)
        return 1
    return 0


def _child() -> ModuleType:
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_child.py")
    spec: Any = importlib.util.spec_from_file_location("_agenteval_python_child", place)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _wait_for_editor(port: int) -> None:
    try:
        debugpy: Any = importlib.import_module("debugpy")
    except ImportError:
        sys.stderr.write("agenteval: debugpy is not installed for " + sys.executable + "; install it there: ")
        sys.stderr.write(sys.executable + " -m pip install debugpy\n")
        raise SystemExit(3) from None
    host, port = debugpy.listen(("127.0.0.1", port))
    sys.stderr.write("waiting for an editor on " + host + ":" + str(port) + " (attach; Ctrl-C ends)\n")
    sys.stderr.flush()
    debugpy.wait_for_client()


def _from_project(trace: TracebackType | None, errors: Any) -> TracebackType | None:
    """The traceback from the first frame that is not agenteval's."""
    first = trace
    while first is not None:
        if not errors.is_ours(os.path.abspath(first.tb_frame.f_code.co_filename)):
            return first
        first = first.tb_next
    return trace


def _post_mortem(trace: TracebackType | None) -> None:
    """The debugger that PYTHONBREAKPOINT names, else pdb, at the frame that raised."""
    named = os.environ.get("PYTHONBREAKPOINT") or "pdb.set_trace"
    if named == "0" or not sys.stdin.isatty():
        return
    try:
        debugger: Any = importlib.import_module(named.rpartition(".")[0])
    except ImportError as error:
        sys.stderr.write(
            "agenteval: PYTHONBREAKPOINT names " + named + ", which can't be imported: " + str(error) + "\n"
        )
        debugger = importlib.import_module("pdb")
    if not hasattr(debugger, "post_mortem"):
        debugger = importlib.import_module("pdb")
    debugger.post_mortem(trace)


def _show(event: dict[str, Any]) -> None:
    kind = event["type"]
    if kind == "text":
        sys.stdout.write(event["text"])
    elif kind == "tool_call":
        sys.stdout.write("\n-> " + event["name"] + " " + _as_text(event.get("arguments")) + "\n")
    elif kind == "tool_result":
        # `error` says whether the tool failed; of one that raised it is the message itself.
        outcome = event["error"] if isinstance(event.get("error"), str) else event.get("result")
        sys.stdout.write("<- " + _as_text(outcome) + "\n" + _raised(event.get("traceback")))
    elif kind == "error":
        sys.stdout.write("\n" + str(event.get("message")) + "\n")
    elif kind == "message_end":
        sys.stdout.write("\n")
    elif kind == "restart":
        # What was streamed was not what came out.
        sys.stdout.write("\n-- the whole conversation, as it is in the end:\n")
    sys.stdout.flush()


def _raised(told: Any) -> str:
    """What a tool raised that its framework caught, with the last place in the project."""
    if not told:
        return ""
    raised = told["exceptions"][0]
    frames = [frame for frame in raised["frames"] if frame["project"]] or raised["frames"]
    place = " (" + frames[-1]["file"] + ":" + str(frames[-1]["line"]) + ")" if frames else ""
    return f"   it raised {raised['type']}: {raised['message']}{place}\n"


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _show_state(value: object) -> None:
    sys.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n")


if __name__ == "__main__":
    sys.exit(main())
