"""What an exception tells about an environment that lacks something. Runs in the child: only the standard library, of
Python 3.8 or later."""

from __future__ import annotations

import os
import re
import socket
import sys
import traceback
import urllib.parse
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import FrameType

_VARIABLE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z")
_SECRET = re.compile(r"(?:KEY|TOKEN|SECRET|PASSWORD|CREDENTIALS|ENDPOINT)\Z")
_READERS = {"environ", "getenv", "get_from_env", "get_from_dict_or_env", "get_secret_from_env", "secret_from_env"}
# Modules that raise where a client lacks its key, which they looked for in another function.
_CLIENTS = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google.genai": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "google.auth": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "langchain_google_genai": ("GOOGLE_API_KEY",),
    "langchain_anthropic": ("ANTHROPIC_API_KEY",),
    "langchain_openai": ("OPENAI_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "agents": ("OPENAI_API_KEY",),
    "botocore": ("AWS_ACCESS_KEY_ID",),
    "crewai": ("OPENAI_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistralai": ("MISTRAL_API_KEY",),
    "cohere": ("CO_API_KEY",),
}
_BY_TYPE = {"OpenAIError", "GroqError", "UserError", "NoCredentialsError", "DefaultCredentialsError"}
_CHECKS = {"_validate_headers", "__init__", "_validate_auth", "auth_headers", "validate_environment"}
_NEWER = ("tomllib", "zoneinfo", "graphlib", "annotationlib", "compression", "concurrent.interpreters")
_MOST = 10  # exceptions of a chain


def clues_of(error: BaseException, is_own: Callable[[str], bool]) -> dict[str, Any]:
    """What an exception lacks in the environment, as far as its type, its fields and the code that raised it tell:
    {"module": name of a module that is not installed}, {"language": True} where the code may be for a newer Python,
    {"variables": [names that are not set]}, {"refused": True} where a server answered 401, {"unreachable": address}
    of a server that is not there, with {"unknown": True} where its name is not known, {"state_key": name of what a
    graph's state has not}; {} if nothing. `is_own` tells whether a file is the project's.
    """
    try:
        chain = _chain(error)
        clues = next(filter(None, (_clues(cause, error, is_own) for cause in chain)), {})
        return clues or _empty_key(chain, is_own) or _unreachable(chain)
    except Exception:  # an exception's own fields may raise
        return {}


def _unreachable(chain: list[BaseException]) -> dict[str, Any]:
    """Where nothing answers, if an HTTP client of the chain tells the address."""
    if not isinstance(chain[-1], (ConnectionError, socket.gaierror)):
        return {}
    unknown = isinstance(chain[-1], socket.gaierror)
    for error in chain:
        url = getattr(getattr(error, "_request", None) or getattr(error, "request", None), "url", None)
        if url is not None:
            address = urllib.parse.urlsplit(str(url))
            # Without a name and a password that it may have.
            return {"unreachable": address.scheme + "://" + address.netloc.rpartition("@")[2], "unknown": unknown}
        host, port = getattr(error, "host", None), getattr(error, "port", None)
        if host and port:
            return {"unreachable": str(host) + ":" + str(port), "unknown": unknown}
    return {}


def _empty_key(chain: list[BaseException], is_own: Callable[[str], bool]) -> dict[str, Any]:
    """The variables for the key of a client whose header has none: "Bearer " alone is refused, so nothing is sent."""
    frames = _frames(chain[-1])
    if type(chain[-1]).__name__ != "LocalProtocolError" or not frames:
        return {}
    values = [value for frame in _frames(chain[-1]) for value in frame.f_locals.values() if isinstance(value, bytes)]
    if not any(value.lower() == b"bearer " for value in values):
        return {}
    for error in chain:
        names = _given_keys(error, is_own)
        if names:
            return {"variables": names}
    modules = [_module(frame) for error in chain for frame in _frames(error)]
    for client, usual in _CLIENTS.items():
        if any((module + ".").startswith(client + ".") for module in modules):
            return {} if any(os.environ.get(name) for name in usual) else {"variables": list(usual)}
    return {}


def _chain(error: BaseException | None) -> list[BaseException]:
    causes: list[BaseException] = []
    while error is not None and error not in causes and len(causes) < _MOST:
        causes.append(error)
        error = error.__cause__ or error.__context__
    return causes


def _is_of_python(module: str) -> bool:
    """Whether a module is one of Python's own, which newer versions have more of."""
    return module.partition(".")[0] in getattr(sys, "stdlib_module_names", ()) or module in _NEWER


def _clues(error: BaseException, outermost: BaseException, is_own: Callable[[str], bool]) -> dict[str, Any]:
    if isinstance(error, SyntaxError):
        return {"language": True}
    if isinstance(error, ImportError):
        if error.name and _is_of_python(error.name):
            return {"language": True}
        # A fallback for a package that is not there is no cause of what went wrong then.
        if isinstance(error, ModuleNotFoundError) and error.name and isinstance(outermost, ImportError):
            top = error.name.partition(".")[0]
            return {"module": error.name, "has_top": top != error.name and top in sys.modules}
        return {}
    frames = _frames(error)
    if isinstance(error, KeyError) and frames and frames[-1].f_locals.get("self") is os.environ:
        return {"variables": [str(error.args[0])]}
    key = getattr(error, "agenteval_state_key", "")  # `python_objects` sets it
    if key:
        return {"state_key": key}
    missing = _settings(error, frames) or _looked_for(error, frames, is_own)
    if missing and not is_own(frames[-1].f_code.co_filename):
        # A client may be given another key than the one that it looks for itself.
        missing = _given_keys(error, is_own) or missing
    if missing:
        return {"variables": missing}
    response = getattr(error, "response", None)
    status = getattr(error, "status_code", None) or getattr(response, "status_code", None)
    return {"refused": True} if status == 401 else {}


def _frames(error: BaseException) -> list[FrameType]:
    return [frame for frame, _ in traceback.walk_tb(error.__traceback__)]


def _settings(error: Any, frames: list[FrameType]) -> list[str]:
    """The variables that a settings class of pydantic lacks."""
    model: Any = None
    for frame in frames:
        if _module(frame).startswith("pydantic_settings"):
            model = frame.f_locals.get("__pydantic_self__") or frame.f_locals.get("self") or model
    config = getattr(model, "model_config", None)
    if config is None or not hasattr(error, "errors"):
        return []
    prefix = str(config.get("env_prefix") or "")
    names = [
        str(problem["loc"][0]) for problem in error.errors() if problem.get("type") == "missing" and problem.get("loc")
    ]
    return [(prefix + name).upper() for name in names]


def _looked_for(error: BaseException, frames: list[FrameType], is_own: Callable[[str], bool]) -> list[str]:
    """The variables for keys that are not set, and that the code which raised looks for."""
    if not frames:
        return []
    raiser = frames[-1]
    package = _module(raiser).partition(".")[0]
    around = [frame for frame in frames[-4:] if _module(frame).partition(".")[0] == package]
    if is_own(raiser.f_code.co_filename):
        around = [raiser]
    elif isinstance(error, TypeError):
        around = []  # a wrong argument: a client also reads keys that nobody needs, such as those of webhooks
    for frame in reversed(around):
        code = frame.f_code
        if _READERS.isdisjoint(code.co_names):
            continue
        names = [text for text in _texts(code.co_consts) if _VARIABLE.match(text) and _SECRET.search(text)]
        missing = [name for name in dict.fromkeys(names) if not os.environ.get(name)]
        if missing and len(missing) == len(set(names)):
            return missing
    for start, usual in () if is_own(raiser.f_code.co_filename) else _CLIENTS.items():
        is_client = (_module(raiser) + ".").startswith(start + ".")
        if is_client and (type(error).__name__ in _BY_TYPE or raiser.f_code.co_name in _CHECKS):
            return [] if any(os.environ.get(name) for name in usual) else list(usual)
    return []


def _given_keys(error: BaseException, is_own: Callable[[str], bool]) -> list[str]:
    """The variables for keys that are not set, and that the project's statement which led to the error reads, by itself
    or in a variable of the code: `OpenAI(api_key=os.getenv("DEEPSEEK_API_KEY"))`."""
    import ast  # takes some milliseconds, and most errors need neither
    import linecache

    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    file, line = next(((file, line) for file, line in reversed(places) if is_own(file)), ("", 0))
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    statements = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not hasattr(node, "body") and node.lineno <= line <= (node.end_lineno or 0)
    ]
    used = {node.id for statement in statements for node in ast.walk(statement) if isinstance(node, ast.Name)}
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id in used for to in node.targets)
    ]
    names: list[str] = []
    for read in (*statements, *values):
        nodes = list(ast.walk(read))
        words = {getattr(node, "attr", None) or getattr(node, "id", None) for node in nodes}
        if not _READERS.isdisjoint(words):
            names += [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    keys = [name for name in names if _VARIABLE.match(name) and _SECRET.search(name) and not os.environ.get(name)]
    return list(dict.fromkeys(keys))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _texts(constants: Iterable[object]) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _texts(constant)
