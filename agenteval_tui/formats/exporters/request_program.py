"""A request to a model as a program: Python without packages, or curl. The key comes from the environment."""

from __future__ import annotations

import json
import shlex

from agenteval_tui.agents.http.written_request import KEY, WrittenRequest

FORMS = ("python", "curl")


def request_program(request: WrittenRequest, form: str) -> str:
    """The program's text; `form` is one of `FORMS`."""
    return _python(request) if form == "python" else _curl(request)


def _headers(request: WrittenRequest) -> dict[str, str]:
    return {"content-type": "application/json", **request.headers}


def _python(request: WrittenRequest) -> str:
    key = f'os.environ["{request.key_env}"]' if request.key_env else ""
    headers = []
    for name, value in _headers(request).items():
        before, found, after = value.partition(KEY)
        parts = [repr(before) if before else "", key if found else "", repr(after) if after else ""]
        headers.append(f"    {name!r}: {' + '.join(filter(None, parts))},")
    # JSON is Python but for three words, which are names here.
    body = json.dumps(request.body, indent=4, ensure_ascii=True)
    lines = [
        "#!/usr/bin/env python3",
        f'"""What agenteval shrank: asks the model the same, and prints its reply.{_note(request)}"""',
        "",
        "import json",
        *(["import os"] if key else []),
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


def _curl(request: WrittenRequest) -> str:
    lines = []
    if request.note:
        lines.append(f"# {request.note}\n")
    lines.append(f"curl -sS {shlex.quote(request.url)} \\\n")
    for name, value in _headers(request).items():
        before, found, after = value.partition(KEY)
        quoted = shlex.quote(f"{name}: {before}") + (f'"${request.key_env}"' if found else "")
        lines.append(f"  -H {quoted}{shlex.quote(after) if after else ''} \\\n")
    lines.append(f"  --data-binary {shlex.quote(json.dumps(request.body, indent=2, ensure_ascii=True))}\n")
    return "".join(lines)


def _note(request: WrittenRequest) -> str:
    return f" {request.note[:1].upper()}{request.note[1:]}." if request.note else ""
