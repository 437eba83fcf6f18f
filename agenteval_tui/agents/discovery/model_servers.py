"""Code that asks a model's server by itself, without an SDK: told by the address or the path that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from agenteval_tui.agents.discovery.python_module import Module, called_name, is_guard

_HOSTS = (
    r"https?://(?:[\w-]+\.)*(?:api\.openai\.com|openrouter\.ai/api|api\.anthropic\.com|generativelanguage\.googleapis\.com"
    r"|api\.groq\.com|api\.mistral\.ai|api\.deepseek\.com|api\.together\.xyz|api\.x\.ai|api\.perplexity\.ai"
    r"|api\.cerebras\.ai|api\.fireworks\.ai|openai\.azure\.com|dashscope\.aliyuncs\.com|open\.bigmodel\.cn"
    r"|api\.moonshot\.\w+|(?:localhost|127\.0\.0\.1):11434)(?!(?:/api)?/v\w+/models(?![\w/]))"
)
"""Who only lists the models asks none."""
_PATHS = r"/chat/completions\b|/v1/messages\b(?=[\s\S]*anthropic-version)|:(?:stream)?[gG]enerateContent\b"
_ADDRESS = re.compile(f"{_HOSTS}|{_PATHS}")
_ADDRESS_BYTES = re.compile(_ADDRESS.pattern.encode())

_PYTHON = {
    "requests": "requests",
    "httpx": "httpx",
    "httpx2": "httpx2",
    "aiohttp": "aiohttp",
    "urllib": "urllib",
    "urllib3": "urllib3",
    "http": "http.client",
}
_IMPORTS = re.compile(rb"^[ \t]*(?:from|import)\s+(?:[\w., ]+,\s*)?(?:%s)\b" % "|".join(_PYTHON).encode(), re.M)
_SENDS = frozenset(("post", "request", "stream", "send", "urlopen"))
_NODE = (
    ("axios", re.compile(r"""["']axios["']""")),
    ("undici", re.compile(r"""["']undici["']""")),
    ("got", re.compile(r"""["']got["']""")),
    ("superagent", re.compile(r"""["']superagent["']""")),
    ("https", re.compile(r"\bhttps?\.request\(")),
    ("fetch", re.compile(r"\bfetch\(")),
)
_IN_BROWSER = re.compile(
    r"\b(?:document|window|chrome|localStorage)\.|[\"'](?:react|vue|svelte|react-native)[\"']|\bexport default \{"
)
WAITS = re.compile(
    r"[\"'](?:discord\.js|telegraf|grammy|node-telegram-bot-api|whatsapp-web\.js|@slack/bolt|@whiskeysockets/baileys)[\"']"
)
"""A program for Node that answers what people write to it elsewhere, and asks nothing by itself."""


def may_ask(source: bytes) -> bool:
    """Whether a module in Python, as its source says, has an HTTP client and the address of a server of models."""
    return _IMPORTS.search(source) is not None and _ADDRESS_BYTES.search(source) is not None


def python_client(module: Module) -> str:
    """The HTTP client with which a module asks a server of models; "" where it asks none."""
    tops = dict.fromkeys(target.partition(".")[0] for target in module.imports.values())
    client = next((_PYTHON[top] for top in tops if top in _PYTHON), "")
    return client if client and any(map(_ADDRESS.search, _code_strings(module))) else ""


def sends(calls: Iterable[ast.Call]) -> bool:
    """Whether one of the calls sends a request."""
    return any(called_name(call) in _SENDS for call in calls)


def asks_at_once(module: Module) -> ast.stmt | None:
    """The first statement of a module that asks when the module is imported: it sends a request outside of functions,
    or calls one that does; None: none."""
    asking = {name for name, function in module.functions.items() if sends(module.calls_in(function))}
    # A function may ask by way of another.
    for _ in range(3):
        asking |= {name for name, function in module.functions.items() if asking & _called(module, function)}
    statements = (
        node
        for node in module.tree.body
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not is_guard(node)
    )
    return next((node for node in statements if sends(module.calls_in(node)) or asking & _called(module, node)), None)


def node_client(text: str) -> str:
    """The HTTP client with which a program for Node asks a server of models; "" where it asks none, runs in a browser,
    or waits for messages of others."""
    if _ADDRESS.search(text) is None or _IN_BROWSER.search(text) or WAITS.search(text):
        return ""
    return next((name for name, pattern in _NODE if pattern.search(text)), "")


def node_request(text: str) -> re.Match[str] | None:
    """Where a program for Node has the address of the server."""
    return _ADDRESS.search(text)


def _called(module: Module, scope: ast.AST) -> set[str]:
    return {call.func.id for call in module.calls_in(scope) if isinstance(call.func, ast.Name)}


def _code_strings(module: Module) -> list[str]:
    """The texts in a module that do not describe anything."""
    described = {
        id(node.body[0].value)
        for node in module.nodes
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        node.value
        for node in module.nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in described
    ]
