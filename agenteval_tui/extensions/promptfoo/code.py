"""promptfoo's assertions that are code, as functions of a Python module that stands beside the suite.

JavaScript runs in Node.js as promptfoo runs it: an expression, or the body of a function with `output` and `context`.
Source: promptfoo, src/assertions/javascript.ts, src/assertions/python.ts, src/util/transform.ts.
"""

from __future__ import annotations

import ast
import json
import math
import posixpath
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.formats.importers.message_formats import listed, plain_text, value_at
from agenteval_tui.formats.importers.suite_import import checked
from agenteval_tui.suites.templates import is_template

_MOST = 500  # functions of a module
_TIMEOUT = 60
_JAVASCRIPT_FILE = re.compile(r"file://((?!/)[^\s:]+\.[cm]?[jt]s)(?::([\w$]+))?")
_PYTHON_FILE = re.compile(r"file://((?!/)[^\s:]+\.py)(?::(\w+))?")
_NAME = r"(?!(?:true|false|none|null)\b)[A-Za-z_]\w*"
_VARIABLE = re.compile(rf"\{{\{{\s*{_NAME}(?:\.{_NAME})*\s*\}}\}}")
"""The templates that the module fills in; others need promptfoo's."""
_STRUCTURED = "try { return JSON.parse(output) }\ncatch { return output }"
_ON_TEXT = {
    "equals": "(typeof value === 'object' ? util.isDeepStrictEqual(value, JSON.parse(text)) : String(value) === text)",
    "contains": "text.includes(String(value))",
    "icontains": "text.toLowerCase().includes(String(value).toLowerCase())",
    "starts-with": "text.startsWith(String(value))",
    "ends-with": "text.endsWith(String(value))",
    "contains-all": "value.every(part => text.includes(part))",
    "contains-any": "value.some(part => text.includes(part))",
    "icontains-all": "value.every(part => text.toLowerCase().includes(part.toLowerCase()))",
    "icontains-any": "value.some(part => text.toLowerCase().includes(part.toLowerCase()))",
    "regex": "new RegExp(value).test(text)",
}
"""Assertions on a text, for an output that a program changes before they look at it."""


class AssertionCode:
    """Collects the functions. `module`: their module's name; `source`: the configuration's file; `structured`: the
    provider makes an object of an answer that is JSON. `note` is told what is not called."""

    def __init__(self, module: str, source: str, *, note: Callable[[str], None], structured: bool) -> None:
        self.module = module
        self._note = note
        self._source = source
        self._structured = structured
        self._functions: dict[tuple[str, ...], str] = {}
        self.names_files = False
        """Whether a criterion calls code in a file."""

    def criterion(
        self,
        one: Mapping[str, Any],
        name: str,
        kind: str,
        *,
        value: Any,
        threshold: float | None,
        inverse: bool,
    ) -> dict[str, Any] | None:
        """The criterion that calls an assertion of this kind; None if it is not code, or can't be called."""
        transforms = _transforms(one)
        if transforms is None or (kind not in ("javascript", "python") and not transforms):
            return None
        code = [*transforms, value] if kind in ("javascript", "python") else transforms
        files = [text.removeprefix("file://") for text in code if str(text).startswith("file://")]
        for file in files:
            # On Windows, a backslash leads out of the folder as well.
            if posixpath.normpath(file.replace("\\", "/")).split("/")[0] in ("", ".."):
                self._note(f"{file} is outside the folder and is not called")
                return None
        body: list[str] = []
        # Assertions that are code see the object; those on a text see the text.
        if self._structured and kind in ("javascript", "python"):
            body.append(f"output = changed_by_javascript({_STRUCTURED!r}, output, context)")
        for each in transforms:
            line = _transform(each)
            if line is None:
                return None
            body.append(line)
        if isinstance(config := one.get("config"), Mapping):
            body.append(f'context = {{**context, "config": {_literal(config, in_json=kind == "python")}}}')
        rest = f", threshold={threshold!r}" if threshold is not None else ""
        rest += ", inverse=True" if inverse else ""
        lines = (
            _javascript(value, rest)
            if kind == "javascript"
            else _python(value, rest)
            if kind == "python"
            else _text_check(kind, value, rest)
        )
        if lines is None:
            return None
        # Equal assertions, of many tests, share a function.
        key = (*body, *lines)
        self.names_files = self.names_files or bool(files)
        if key not in self._functions:
            if len(self._functions) >= _MOST:
                return None
            self._functions[key] = f"assertion_{len(self._functions) + 1}"
        function = f"{self.module}:{self._functions[key]}"
        return checked(name, {"type": "Python", "function": function, "timeout": _TIMEOUT})

    def text(self) -> str:
        """The module; "" without functions."""
        if not self._functions:
            return ""
        functions = (
            f"def {name}(output, context):\n{textwrap.indent(chr(10).join(lines), '    ', lambda line: True)}\n"
            for lines, name in self._functions.items()
        )
        head = _HEAD.replace("SOURCE", self._source.replace("\\", " ").replace('"', "'"))
        return (
            "\n\n\n".join([head.rstrip("\n"), *(function.rstrip("\n") for function in functions)]).replace(
                "    \n", "\n"
            )
            + "\n"
        )


def has_structured_answers(providers: Any) -> bool:
    """Whether a provider of OpenAI is asked for a schema: promptfoo then reads its answer as JSON."""
    return any(
        value_at(provider, "config", "response_format", "type") == "json_schema"
        for provider in (providers if isinstance(providers, list) else [providers])
    )


def _transforms(assertion: Mapping[str, Any]) -> Sequence[str] | None:
    transforms = listed(assertion.get("transform"))
    odd = assertion.get("contextTransform") or assertion.get("normalizeUnicode")
    return None if odd or not all(isinstance(code, str) for code in transforms) else transforms


def _transform(code: str) -> str | None:
    """A line that changes `output`. A transform is not a template."""
    if file_match := _PYTHON_FILE.fullmatch(code):
        return f"output = python_file({file_match[1]!r}, {file_match[2] or 'get_transform'!r})(output, context)"
    if file_match := _JAVASCRIPT_FILE.fullmatch(code):
        return f"output = changed_by_javascript_file({file_match[1]!r}, {file_match[2] or ''!r}, output, context)"
    return None if code.startswith("file://") else f"output = changed_by_javascript({code!r}, output, context)"


def _javascript(value: Any, rest: str) -> list[str] | None:
    if not isinstance(value, str) or not value.strip() or value.startswith("package:"):
        return None
    if file_match := _JAVASCRIPT_FILE.fullmatch(value):
        return [f"return javascript_file({file_match[1]!r}, {file_match[2] or ''!r}, output, context{rest})"]
    if value.startswith("file://") or not _is_plain(value):
        return None
    code = value.rstrip()
    if "\n" not in code:
        return [f"return javascript({code!r}, output, context{rest})"]
    if "'''" in code or "\\" in code:
        written = "\n".join(f"    {line + chr(10)!r}" for line in code.split("\n"))
        return ["code = (", *written.split("\n"), ")", f"return javascript(code, output, context{rest})"]
    return [f"return javascript('''\n{code}\n''', output, context{rest})"]


def _python(value: Any, rest: str) -> list[str] | None:
    if not isinstance(value, str):
        return None
    if file_match := _PYTHON_FILE.fullmatch(value):
        return [
            f"return python(python_file({file_match[1]!r}, {file_match[2] or 'get_assert'!r}), output, context{rest})"
        ]
    if is_template(value) or value.startswith("file://"):
        return None
    code = textwrap.dedent(value.rstrip()).strip("\n")
    body = code if "\n" in code else f"return {code.strip()}"
    lines = ["def check(output, context):", *textwrap.indent(body, "    ").split("\n")]
    try:
        ast.parse("\n".join(lines))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    return [*lines, "", f"return python(check, output, context{rest})"]


def _text_check(kind: str, value: Any, rest: str) -> list[str] | None:
    code = _ON_TEXT.get(kind)
    if code is None or not _is_plain(json.dumps(value, default=str)):
        return None
    if isinstance(value, bool | int | float) or value is None or (value == "" and kind != "equals"):
        return None if value is None or value == "" else [_check(code, value, rest)]
    if kind.endswith(("-all", "-any")):
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            return None
    elif not isinstance(value, str) and kind != "equals":
        return None
    return [_check(code, value, rest)]


def _check(code: str, value: Any, rest: str) -> str:
    return f"return on_text({code!r}, {_literal(value)}, output, context{rest})"


def _literal(value: Any, *, in_json: bool = False) -> str:
    """A value of the configuration in Python. `in_json`: promptfoo passes it on as JSON, where NaN is null."""
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_literal(item, in_json=in_json)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(_literal(item, in_json=in_json) for item in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return "None" if in_json else f"float({str(value)!r})"
    return repr(value)


def _is_plain(text: str) -> bool:
    """Whether the module can fill in its templates."""
    return not is_template(_VARIABLE.sub("", text))


def module_name(source: Path) -> str:
    """The module's name, from that of the configuration's file."""
    stem = re.sub(r"\W", "_", plain_text(source.name.partition(".")[0]), flags=re.ASCII).strip("_").lower()
    return f"{stem or 'promptfoo'}_assertions"


_HEAD = r'''"""Assertions of SOURCE that are code, called as promptfoo calls them.

`agenteval import` wrote this file; it is yours to change. JavaScript needs Node.js.
"""

import functools
import json
import math
import re
import runpy
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
NUMBER = r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?"
NODE = r"""
const {pathToFileURL} = require("node:url");
console.log = console.info = console.error;
process.mainModule = process.mainModule || {require};
// Python's JSON has NaN and Infinity, which are JavaScript.
const asked = new Function(`return ${require("node:fs").readFileSync(0, "utf8")}`)();
const compiles = code => { try { return Boolean(new Function(code)); } catch { return false; } };

// With the test's variables in place of {{name}}, as Nunjucks writes them.
function filled(value) {
  if (Array.isArray(value)) return value.map(filled);
  if (typeof value !== "string") return value;
  const names = {env: process.env, ...asked.context.vars};
  return value.replace(/\{\{\s*([A-Za-z_]\w*(?:\.\w+)*)\s*\}\}/g, (_, path) =>
    String(path.split(".").reduce((parent, name) => parent?.[name], names) ?? ""));
}

// A line is an expression, perhaps after declarations; several lines are the body of a function.
function bodyOf(assertion) {
  const lines = assertion.trimEnd();
  if (lines.includes("\n")) return lines;
  const code = lines.trim().replace(/;+\s*$/, "");
  if (!/^(const|let|var)\s/.test(code)) return `return ${code}`;
  for (let at = code.length; (at = code.lastIndexOf(";", at - 1)) > 0; ) {
    const declared = code.slice(0, at + 1), last = code.slice(at + 1);
    // In a text or a block it leaves something open; in a comment anything may follow.
    const isSeparator = compiles(declared) && !compiles(declared + "@");
    if (isSeparator && !/^(\s|;|\/\/.*|\/\*.*?\*\/)*$/.test(last)) return `${declared} return ${last}`;
  }
  return code;
}

let isLoading = Boolean(asked.file);
(async () => {
  let call;
  if (asked.file) {
    const module = await import(pathToFileURL(asked.file));
    const whole = module.default ?? module;
    call = asked.name ? module[asked.name] ?? whole[asked.name] : whole.default ?? whole;
    if (typeof call !== "function") throw new Error(`${asked.file} exports no function ${asked.name}`);
  } else if (asked.check) {
    const check = new Function("text", "value", "util", `return ${asked.check}`);
    call = text => check(text, filled(asked.value), require("node:util"));
  } else {
    call = new Function("output", "context", "process", asked.code ?? bodyOf(filled(asked.assertion)));
  }
  isLoading = false;
  const value = await call(asked.output, asked.context, process);
  process.stdout.write(JSON.stringify({value}));
})().catch(error => {
  const isMissing = ["MODULE_NOT_FOUND", "ERR_MODULE_NOT_FOUND"].includes(error?.code);
  const place = isLoading ? `${asked.file}: ` : "";
  process.stdout.write(JSON.stringify({error: place + String(error), ran: !isLoading && !isMissing}));
});
"""


class JavaScriptError(Exception):
    """The code raised an error."""


class NotRunError(Exception):
    """JavaScript that can't run here: without Node.js, or without a file or package that it needs."""


def run_node(**asked):
    try:
        done = subprocess.run(
            ["node", "-e", NODE], input=json.dumps(asked, default=str), capture_output=True, text=True, cwd=HERE
        )
    except FileNotFoundError:
        raise NotRunError("node was not found: install Node.js, or put it on the PATH") from None
    if done.returncode:
        raise JavaScriptError((done.stderr.strip().splitlines() or ["node failed"])[-1])
    reply = json.loads(done.stdout)
    if "error" in reply:
        raise (JavaScriptError if reply["ran"] else NotRunError)(reply["error"])
    return reply.get("value")


def javascript(code, output, context, **how):
    return judged(lambda: run_node(assertion=code, output=output, context=context), **how)


def javascript_file(file, name, output, context, **how):
    path = str((HERE / file).resolve(strict=True))
    return judged(lambda: run_node(file=path, name=name, output=output, context=context), **how)


def on_text(check, value, output, context, **how):
    text = output if isinstance(output, str) else json.dumps(output, separators=(",", ":"), ensure_ascii=False)
    return judged(lambda: run_node(check=check, value=value, output=text, context=context), **how)


def changed_by_javascript(code, output, context):
    code = code if "\n" in code else f"return {code}"
    return changed(run_node(code=code, output=output, context=context))


def changed_by_javascript_file(file, name, output, context):
    return changed(run_node(file=str(HERE / file), name=name, output=output, context=context))


def changed(output):
    if output is None:
        raise ValueError("the transform returned nothing")
    return output


@functools.lru_cache(None)
def python_file(file, name):
    folder = str((HERE / file).parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return runpy.run_path(str(HERE / file))[name]


def python(check, output, context, **how):
    return judged(lambda: check(output, context), python=True, **how)


def judged(call, threshold=None, inverse=False, python=False):
    """The verdict: code that raises an error, or returns something else, fails. A number passes above 0, or from the
    threshold on; so does the score of an object, if it is Python's, which may also return what it means as a text."""
    try:
        result = call()
        if python and isinstance(result, str):
            result = read(result)
        if isinstance(result, bool):
            return {"pass": result != inverse, "score": float(result != inverse), "reason": f"returned {result}"}
        if isinstance(result, (int, float)):
            passed = (finite(result) > 0 if threshold is None else finite(result) >= threshold) != inverse
            return {"pass": passed, "score": min(max(float(result), 0.0), 1.0), "reason": f"returned {result}"}
        passed = result["pass_"] if "pass_" in result else result["pass"]
        score = finite(result["score"])
        if not isinstance(passed, bool) or not isinstance(result["reason"], str):
            raise TypeError("`pass` must be true or false, and `reason` a text")
        if python and threshold is not None:
            passed = passed and score >= threshold
        return {**result, "pass": passed != inverse, "score": min(max(float(score), 0.0), 1.0)}
    except (ImportError, NotRunError):
        raise  # it never ran
    except Exception as error:
        return {"pass": False, "score": 0.0, "reason": f"{type(error).__name__}: {error}"}


def read(text):
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    return json.loads(text) if text.startswith("{") else float(re.match(NUMBER, text)[0])


def finite(number):
    if isinstance(number, bool) or not math.isfinite(number):
        raise ValueError(f"{number} is not a finite number")
    return number
'''
