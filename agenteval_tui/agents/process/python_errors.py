"""An exception of the user's code: in a sentence, and as a traceback with fields (`transcripts.traceback`). Runs in the
child: only the standard library, of Python 3.8 or later.

The project's own frames are what people can change: the sentence names the last one, and only these frames get their
locals. Frames of ours are left out.
"""

from __future__ import annotations

import linecache
import os
import re
import reprlib
import sys
import sysconfig
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from . import python_secrets as secrets

if TYPE_CHECKING:
    from types import FrameType

_HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib takes longer to load than this
_EXTENSIONS = os.path.dirname(os.path.dirname(_HERE)) + os.sep + "extensions" + os.sep  # noqa: PTH120
"""Where readers of frameworks are."""
HOME = os.getcwd()  # noqa: PTH109 - as it was before the agent could change it
_MOST_FRAMES = 80
_MOST_EXCEPTIONS = 16
_MOST_LOCALS = 24
_WITH_LOCALS = 2
_LONGEST_LOCAL = 300
_LONGEST_LINE = 300
_LONGEST_MESSAGE = 8000
_LONGEST_IN_SENTENCE = 2000  # of a message that is part of a sentence
_LONGEST_CAUSE = 300
_WORDS_OF_VALUE = 4  # at most, of a value that is more than half of a message
# Of names of variables in code: `tokens=12` and `author` are what people look for when something breaks.
_NO_SECRET = re.compile(r"tokens|tokenizer|author(?!i)|keyword|monkey|keys$|_auth_(?:url|type)$", re.IGNORECASE)
_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")  # says nothing, and is another one in each run
_INSTALLED = re.compile(r"[\\/](?:site|dist)-packages[\\/]")
_LIBRARY = tuple(
    {
        os.path.realpath(place) + os.sep
        for place in (*(sysconfig.get_path(name) for name in ("stdlib", "platstdlib")), os.path.dirname(os.__file__))  # noqa: PTH120
        if place
    }
)


def words_of(error: BaseException) -> str:
    """An exception in words: its type, what it says, and the last place in the user's code. Of a group also the first
    exception that is in it; then what it was raised from, if it doesn't repeat that."""
    words, root = _words(error), error
    for _ in range(_MOST_EXCEPTIONS):
        root = root.__cause__ or root
    message = message_of(root, notes=False)
    if root is error or not message or message in words:
        return words
    return words + ", caused by " + type(root).__name__ + ": " + message[:_LONGEST_CAUSE]


def _words(error: BaseException) -> str:
    words = _without_place(error)
    inner = _first_leaf(error)
    if inner is not None:
        words += ": " + _without_place(inner)
    place = (inner is not None and _place(inner)) or _place(error)
    return words + (" (" + place + ")" if place else "")


def _without_place(error: BaseException) -> str:
    message = message_of(error, notes=False)
    if len(message) > _LONGEST_IN_SENTENCE:
        message = message[:_LONGEST_IN_SENTENCE] + "…"
    return type(error).__name__ + (": " + message if message else "")


def _place(error: BaseException) -> str:
    """The last place in the user's code; "" where there is none."""
    if isinstance(error, SyntaxError) and not error.filename:  # of bytes that are no text: it names no file
        for frame, _ in reversed(_frames(error)):
            path = frame.f_locals.get("path")
            if frame.f_code.co_name == "source_to_code" and isinstance(path, str):
                return _base(path)
    own = _last_own(error)
    return "" if own is None else _base(own[0].f_code.co_filename) + ", line " + str(own[1])


def message_of(error: BaseException | None, *, notes: bool = True) -> str:
    """What an exception says, with the notes that were added to it: frameworks add ids and places there."""
    try:
        message = str(error)
    except Exception:  # a message that can't be made
        message = ""
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + "…"
    if type(error).__name__ == "BdbQuit" and not message:
        message = "a breakpoint was reached, and a run has no terminal"
    added = getattr(error, "__notes__", None)
    if notes and isinstance(added, list):
        message = "\n".join([message, *(note for note in added if isinstance(note, str))])
    return message


def reduced(error: BaseException) -> str:
    """The words of an exception with `…` for the values of variables in them: the same for the same fault, whichever
    values it had."""
    pattern = _words(error)
    values: set[str] = set()
    inner = _first_leaf(error)
    for frame, _ in _frames(error if inner is None else inner)[-3:]:
        for value in list(frame.f_locals.values())[:100]:
            _collect(value, values)
            for part in _parts(value):
                _collect(part, values)
    text = message_of(error if inner is None else inner)
    # What was made a message before it was raised, and what another exception said, is no value.
    values -= {text, message_of(error.__cause__), message_of(error.__context__)}
    # The longest first: a short one that is part of it would break it up.
    for value in sorted(values, key=lambda each: (-len(each), each)):
        if value in text and (len(value) * 2 < len(text) or len(value.split()) <= _WORDS_OF_VALUE):
            pattern = re.sub(r"(?<!\w)" + re.escape(value) + r"(?!\w)", "…", pattern)
    return pattern


def _collect(value: object, values: set[str]) -> None:
    if type(value) in (str, int, float) and 2 <= len(str(value)) <= 200 and len(values) < 2000:
        values.add(str(value))


def _parts(value: object) -> Sequence[object]:
    """The values in a dict or an object, one level deep."""
    try:
        fields = value if type(value) is dict else vars(value)
    except TypeError:
        return ()
    return list(fields.values())[:50] if type(fields) is dict and not isinstance(value, type(sys)) else ()


def traceback_of(error: BaseException) -> dict[str, Any]:
    """The whole traceback as JSON data: the exception first, then what it came from, and the members of groups."""
    exceptions: list[dict[str, Any]] = []
    waiting: list[tuple[BaseException, int | None, str]] = [(error, None, "")]
    visited = set()
    while waiting and len(exceptions) < _MOST_EXCEPTIONS:
        current, parent, relation = waiting.pop(0)
        # Causes can form a circle.
        if id(current) in visited:
            continue
        visited.add(id(current))
        number = len(exceptions)
        exceptions.append(_exception(current, parent, relation))
        cause, context = current.__cause__, current.__context__
        if cause is not None:
            waiting.append((cause, number, "cause"))
        elif context is not None and not current.__suppress_context__:
            waiting.append((context, number, "context"))
        waiting.extend((member, number, "member") for member in _members(current))
    return {"language": "python", "exceptions": exceptions}


def _exception(error: BaseException, parent: int | None, relation: str) -> dict[str, Any]:
    frames = _frames(error)
    described = [_frame(frame, line) for frame, line in frames]
    own = [place for place, frame in enumerate(described) if frame["project"]] or list(range(len(described)))
    for number in own[-_WITH_LOCALS:]:
        described[number]["locals"] = _locals(frames[number][0])
    if isinstance(error, SyntaxError) and error.filename:
        # Where it is; its frames say who imported it.
        place = {"file": _shown(error.filename), "line": error.lineno or 0, "function": ""}
        place.update(source=(error.text or "").strip()[:_LONGEST_LINE], project=is_own(error.filename))
        described.append(place)
    left_out = max(0, len(described) - _MOST_FRAMES)
    if left_out:  # of a recursion
        described[_MOST_FRAMES // 2 : _MOST_FRAMES // 2 + left_out] = []
    kind = type(error)
    module = "" if kind.__module__ in ("builtins", "__main__") else kind.__module__ + "."
    answer: dict[str, Any] = {
        "type": module + kind.__qualname__,
        "message": _clean(message_of(error))[:_LONGEST_MESSAGE],
    }
    answer["frames"] = described
    if left_out:
        answer["left_out"] = left_out
    if relation:
        answer["relation"], answer["parent"] = relation, parent
    return answer


def _frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """Each frame with its line, the first call first, without ours."""
    frames: list[tuple[FrameType, int]] = []
    trace = error.__traceback__
    while trace is not None:
        if not is_ours(trace.tb_frame.f_code.co_filename):
            frames.append((trace.tb_frame, trace.tb_lineno or 0))
        trace = trace.tb_next
    if type(error).__name__ == "BdbQuit" and frames:  # raised by a debugger for a frame that is about to return
        stopped = frames[-1][0].f_locals.get("frame")
        if stopped is not None and hasattr(stopped, "f_code") and all(frame is not stopped for frame, _ in frames):
            frames.append((stopped, stopped.f_lineno or 0))
    return frames


def is_ours(file: str) -> bool:
    """Whether a file is agenteval's part of the process: its frames are not shown."""
    # The kind `function` calls agents from there, in a process that is ours.
    of_sample = os.path.join(os.path.dirname(_HERE), "function.py")  # noqa: PTH118, PTH120
    return bool(os.path.dirname(file) == _HERE or file == of_sample or file.startswith(_EXTENSIONS))  # noqa: PTH120


def _last_own(error: BaseException) -> tuple[FrameType, int] | None:
    own = [pair for pair in _frames(error) if is_own(pair[0].f_code.co_filename)]
    return own[-1] if own else None


def is_own(file: str) -> bool:
    """Whether a file is the project's: nothing that was installed, nothing of Python's own, and nothing of ours."""
    if not file or file.startswith("<") or _INSTALLED.search(file) or is_ours(file):
        return False
    return not os.path.realpath(file).startswith(_LIBRARY)


def _frame(frame: FrameType, line: int) -> dict[str, Any]:
    file = frame.f_code.co_filename
    source = linecache.getline(file, line, frame.f_globals).strip()[:_LONGEST_LINE]
    name = getattr(frame.f_code, "co_qualname", frame.f_code.co_name)
    return {"file": _shown(file), "line": line, "function": name, "source": _clean(source), "project": is_own(file)}


def _shown(file: str) -> str:
    """A path from the suite's folder; of what is installed, the one that it is imported by."""
    if file.startswith("<"):
        return file
    installed = list(_INSTALLED.finditer(file))
    if installed:
        return file[installed[-1].end() :]
    real = os.path.realpath(file)
    for place in _LIBRARY:
        if real.startswith(place):
            return real[len(place) :]
    try:
        way = os.path.relpath(real, os.path.realpath(HOME))
    except ValueError:  # another drive
        return file
    return file if way.startswith(os.path.join("..", "..", "..", "..", "")) else way  # noqa: PTH118


def _base(file: str) -> str:
    return os.path.basename(file)  # noqa: PTH119


def _members(error: BaseException) -> Sequence[BaseException]:
    members = getattr(error, "exceptions", None)
    if not isinstance(members, (list, tuple)):
        return ()
    return [member for member in members if isinstance(member, BaseException)]


def _first_leaf(error: BaseException) -> BaseException | None:
    """The first exception in a group that is none itself; None if it isn't a group."""
    leaf, depth = None, 0
    members = _members(error)
    while members and depth < _MOST_EXCEPTIONS:
        leaf, depth = members[0], depth + 1
        members = _members(leaf)
    return leaf


# Locals: nothing secret, nothing long, and nothing that raises.


def _locals(frame: FrameType) -> dict[str, str]:
    variables: dict[str, str] = {}
    # What a module has imported and defined is no value of a variable.
    of_module = frame.f_code.co_name == "<module>"
    for name, value in list(frame.f_locals.items()):
        if name.startswith("__") or isinstance(value, type(sys)) or name.startswith("@"):
            continue
        if of_module and (callable(value) or type(value).__module__ in ("typing", "__future__")):
            continue
        if len(variables) == _MOST_LOCALS:
            break
        variables[str(name)[:80]] = "***" if _is_secret(name, value) else _short(value)
    return variables


def _is_secret(name: object, value: object) -> bool:
    if not isinstance(name, str) or value is None or isinstance(value, (bool, int, float)):
        return False
    return bool(secrets.SECRET_NAME.search(name)) and not _NO_SECRET.search(name)


def _short(value: object) -> str:
    try:
        text = _clean(_repr.repr(value))
    except Exception as error:  # its repr raises
        text = "<" + type(value).__name__ + ", which can't be shown: " + type(error).__name__ + ">"
    return text if len(text) <= _LONGEST_LOCAL else text[: _LONGEST_LOCAL - 1] + "…"


def _clean(text: str) -> str:
    """`text` without the secrets of the environment: before anything is cut, or half of one would stay."""
    return secrets.without_secrets(text, os.environ)


class _Repr(reprlib.Repr):
    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 4
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = self.maxdeque = 12
        self.maxlong = self.maxother = self.maxstring = _LONGEST_LOCAL

    def repr_str(self, x: str, level: int) -> str:
        text = _clean(str(x[: 50 * _LONGEST_LOCAL]))
        return repr(text if len(text) <= self.maxstring else text[: self.maxstring] + "…")

    def repr_dict(self, x: dict[Any, Any], level: int) -> str:
        if level <= 0:
            return "{…}"
        pairs = []
        for key, value in list(x.items())[: self.maxdict]:
            text = "'***'" if _is_secret(key, value) else self.repr1(value, level - 1)
            pairs.append(self.repr1(key, level - 1) + ": " + text)
        return "{" + ", ".join(pairs) + (", …" if len(x) > self.maxdict else "") + "}"

    def repr_instance(self, x: Any, level: int) -> str:
        text = _ADDRESS.sub("", _clean(repr(x)))
        return text if len(text) <= self.maxother else text[: self.maxother] + "…"


_repr = _Repr()
