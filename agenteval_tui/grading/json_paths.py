"""JMESPath expressions that people wrote, compiled once, and what they find in a JSON value."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from agenteval_tui.grading.coded_error import CodedError
from agenteval_tui.grading.codes import Code

Steps = tuple[str | int, ...]


class PathError(ValueError):
    """An expression that cannot be used: why, and the character (0-based) where it goes wrong."""

    code = "bad-path"

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


class PathFailedError(CodedError):
    """The expression asks of a value what that value cannot do (the length of a number, ...)."""

    code = Code.PATH_FAILED


class Path(Struct, frozen=True):
    """A compiled expression. `steps`: the keys and indexes, when it is nothing else; None when it computes."""

    text: str
    compiled: Any
    steps: Steps | None

    def search(self, data: object) -> object:
        """What is there; None when there is nothing. Raises `PathFailedError`."""
        from jmespath.exceptions import JMESPathError

        try:
            return self.compiled.search(data)
        except JMESPathError as error:
            raise PathFailedError(pattern=self.text, problem=str(error)) from None
        except RecursionError:
            raise PathFailedError(pattern=self.text) from None


@lru_cache(maxsize=256)
def compile_path(text: str) -> Path:
    """Compile a JMESPath expression. Raises `PathError`."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    try:
        compiled = jmespath.compile(text)
    except JMESPathError as error:
        position = min(getattr(error, "lex_position", None) or 0, max(len(text) - 1, 0))
        message = str(getattr(error, "msg", "") or getattr(error, "message", "") or error).splitlines()[0]
        raise PathError(f"not a JMESPath expression: {message[:1].lower()}{message[1:]}", position) from None
    except RecursionError:
        raise PathError("this expression is nested too deeply", 0) from None
    return Path(text, compiled, _steps(compiled.parsed))


def usable_path(text: str | None) -> str | None:
    """`text`, which can be compiled where it is one: a validator. Raises `PathError`."""
    if text is not None:
        compile_path(text)
    return text


def walk(data: Any, steps: Steps) -> tuple[int, Any]:
    """How many of the steps lead somewhere in `data`, and where the last of those leads."""
    current = data
    for number, step in enumerate(steps):
        if isinstance(step, str):
            there = isinstance(current, Mapping) and step in current
        else:
            there = isinstance(current, list) and -len(current) <= step < len(current)
        if not there:
            return number, current
        current = current[step]
    return len(steps), current


def _steps(node: Mapping[str, Any]) -> Steps | None:
    kind, children = node["type"], node.get("children") or []
    if kind in ("field", "index"):
        return (node["value"],)
    if kind in ("current", "identity"):
        return ()
    if kind not in ("subexpression", "index_expression"):
        return None
    steps: Steps = ()
    for child in children:
        inner = _steps(child)
        if inner is None:
            return None
        steps += inner
    return steps
