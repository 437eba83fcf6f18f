"""A request to a model as a program: Python without packages, or curl. Keys come from the environment."""

from __future__ import annotations

import json
import re
import shlex

from agenteval_tui.agents.http.exported_request import WrittenRequest
from agenteval_tui.core.display import one_line
from agenteval_tui.suites.environment import Reference, pieces


def request_program(request: WrittenRequest, form: str) -> str:
    """The program's text; `form` is "python" or "curl"."""
    return _python(request) if form == "python" else _curl(request)


def _headers(request: WrittenRequest) -> dict[str, str]:
    return {"content-type": "application/json", **request.headers}


def _python(request: WrittenRequest) -> str:
    headers = [f"    {name!r}: {_python_text(value)}," for name, value in _headers(request).items()]
    # JSON is Python but for three words, which are names here.
    body = json.dumps(request.body, indent=4, ensure_ascii=True)
    lines = [
        "#!/usr/bin/env python3",
        '"""What agenteval shrank: asks the model the same, and prints its reply."""',
        *([f"# Before that: {_note(request)}"] if request.note else []),
        "",
        "import json",
        *(["import os"] if any("os.environ" in header for header in headers) else []),
        "import urllib.request",
        "",
        "true, false, null = True, False, None",
        f"BODY = {body}",
        "HEADERS = {",
        *headers,
        "}",
        f"request = urllib.request.Request({request.url!r}, json.dumps(BODY).encode(), HEADERS)",
        "with urllib.request.urlopen(request) as reply:",
        "    print(json.dumps(json.load(reply), indent=2, ensure_ascii=False))",
    ]
    return "\n".join(lines) + "\n"


def _python_text(value: str) -> str:
    """An expression: the text, with what the environment has put in."""
    parts = []
    for piece in pieces(value):
        match piece:
            case Reference(name, ":-", default):
                parts.append(f"(os.environ.get({name!r}) or {default!r})")
            case Reference(name, "-", default):
                parts.append(f"os.environ.get({name!r}, {default!r})")
            case Reference(name):
                parts.append(f"os.environ[{name!r}]")
            case _:
                parts.append(repr(piece))
    return " + ".join(parts) or "''"


def _curl(request: WrittenRequest) -> str:
    lines = []
    if request.note:
        lines.append(f"# {_note(request)}\n")
    lines.append(f"curl -sS {shlex.quote(request.url)} \\\n")
    lines += [f"  -H {_shell_word(f'{name}: {value}')} \\\n" for name, value in _headers(request).items()]
    lines.append(f"  --data-binary {shlex.quote(json.dumps(request.body, indent=2, ensure_ascii=True))}\n")
    return "".join(lines)


def _shell_word(value: str) -> str:
    """A word of a shell: the text, with what the environment has put in."""
    parts = []
    for piece in pieces(value):
        if isinstance(piece, Reference):
            default = re.sub(r'([\\"$`])', r"\\\1", piece.default)
            parts.append(f'"${{{piece.name}{piece.mark}{default}}}"' if piece.mark else f'"${piece.name}"')
        else:
            parts.append(shlex.quote(piece))
    return "".join(parts)


def _note(request: WrittenRequest) -> str:
    """The note as a comment: names that a suite chose are in it, and must not end the line."""
    return one_line(request.note)
