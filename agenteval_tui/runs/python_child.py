"""The child process in which a function of the user's runs. Needs nothing of this package.

Standard input: {"module", "name", "value", "arguments": {...}, "offered": {...}}. Standard output is the answer alone:
{"returned": ...} or {"raised": "KeyError: 'x' (checks.py, line 3)"}. What the function prints goes to standard error.
"""

import asyncio
import dataclasses
import importlib
import inspect
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any


def main() -> None:
    """Call the function, write what it returned."""
    answer = os.dup(1)
    os.dup2(2, 1)  # what it prints must not be taken for the answer
    asked = json.load(sys.stdin)
    sys.path.insert(0, str(Path.cwd()))
    try:
        said: dict[str, Any] = {"returned": _plain(_call(asked))}
        text = json.dumps(said)
    except BaseException as error:  # also SystemExit: the parent must hear of it
        text = json.dumps({"raised": _words(error)})
    sys.stdout.flush()
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        out.write(text)


def _call(asked: dict[str, Any]) -> Any:
    found: Any = importlib.import_module(asked["module"])
    for part in asked["name"].split("."):
        found = getattr(found, part)
    arguments = dict(asked["arguments"])
    try:
        wanted = set(inspect.signature(found).parameters)
    except (TypeError, ValueError):  # a function written in C
        wanted = set()
    for name, value in asked["offered"].items():
        if name in wanted:
            arguments.setdefault(name, value)
    returned = found(asked["value"], **arguments)
    return asyncio.run(_awaited(returned)) if inspect.isawaitable(returned) else returned


async def _awaited(given: Any) -> Any:
    return await given


def _plain(given: Any) -> Any:
    """What was returned as JSON data: dataclasses, and objects with `passed` or `score`, become objects."""
    if dataclasses.is_dataclass(given) and not isinstance(given, type):
        return dataclasses.asdict(given)
    if hasattr(given, "model_dump"):
        return given.model_dump(mode="json")
    if hasattr(given, "item") and not isinstance(given, (dict, list)):  # a number of numpy
        return given.item()
    if not isinstance(given, (dict, list, str)) and (hasattr(given, "passed") or hasattr(given, "score")):
        return {name: getattr(given, name) for name in ("passed", "score", "reason") if hasattr(given, name)}
    return given


def _words(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename != __file__ and "importlib" not in frame.filename]
    place = f" ({Path(own[-1].filename).name}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{place}"


main()
