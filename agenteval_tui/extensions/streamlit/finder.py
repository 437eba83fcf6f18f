"""How a Streamlit app is asked, found by reading it: the field for the prompt, those for keys, and the button."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from agenteval_tui.agents.discovery.fields import MESSAGE_FIELDS
from agenteval_tui.agents.discovery.frameworks import FrameworkFinder
from agenteval_tui.agents.discovery.model import FoundApp
from agenteval_tui.agents.discovery.python_module import Module, Modules, code_of, keyword, source_of
from agenteval_tui.suites.slugs import slug

_WIDGETS = ("chat_input", "text_input", "text_area", "button", "form_submit_button")
_QUESTION = re.compile(
    r"\b(?:ask|question|query|prompt|message|topic|search|request|task|goal|idea|describe|tell|what|how|enter)\b", re.I
)
_OTHER_BUTTON = re.compile(
    r"\b(?:reset|clear|delete|remove|random|sample|example|download|refresh|log ?(?:in|out)|back|cancel|stop|save|load|"
    r"upload|connect|initiali[sz]e|test)\b",
    re.I,
)
_INVITATION = re.compile(r"(?:enter|type|write|paste|ask|tell|describe|your)\b", re.I)
"""How a placeholder begins if it is not an example."""
_KEY_OF = re.compile(r"(\w+)(?:\s+AI)?\s+(API[\s_-]*(?:key|token)|token)\b", re.I)
_LOGS_IN = re.compile(r"log_?(?:ged_?)?in|auth", re.I)
_NO_NAME = frozenset(("your", "the", "an", "enter", "its", "valid"))


class _Widget(Struct, frozen=True):
    kind: str
    label: str
    line: int
    call: ast.Call
    variable: str
    """What it is bound to; "" for nothing."""


def _app(modules: Modules, module: Module) -> FoundApp | None:
    """How the app in a module is asked; None where it has no field for a prompt."""
    widgets = sorted(_widgets(modules, module), key=lambda widget: widget.line)
    keys = {widget.label: variable for widget in widgets if (variable := _key_variable(module, widget))}
    fields = {label: f"${{{variable}}}" for label, variable in keys.items()}
    chat = next((widget for widget in widgets if widget.kind == "chat_input"), None)
    prompt = chat or _prompt_field(widgets)
    if prompt is None:
        return None
    source = source_of(prompt.call)
    if chat is not None and not fields:
        return FoundApp(framework="Streamlit", line=prompt.line, source=source)
    button = None if chat is not None else _button(widgets, prompt)
    pressed = {button.label: True} if button is not None else {}
    return FoundApp(
        framework="Streamlit",
        line=prompt.line,
        source=source,
        input={**fields, prompt.label: "{{prompt}}", **pressed},
        prompts=_examples(modules, module, prompt),
    )


def _widgets(modules: Modules, module: Module) -> Iterator[_Widget]:
    bound = {
        id(node.value): code_of(node.targets[0]).rpartition(".")[2]
        for node in module.nodes
        if isinstance(node, ast.Assign)
    }
    bound.update((id(node.value), code_of(node.target)) for node in module.nodes if isinstance(node, ast.NamedExpr))
    # Another page, that is shown to whoever isn't logged in: if the app asks for that at all, tests can't do it.
    of_login = {
        id(part)
        for node in module.nodes
        if isinstance(node, ast.If) and _LOGS_IN.search(code_of(node.test)) and _stops(node.body[-1])
        for statement in node.body
        for part in ast.walk(statement)
    }
    for call in module.calls:
        # Also of a column, a form or the sidebar.
        kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        if kind not in _WIDGETS or id(call) in of_login:
            continue
        label = modules.text(module, call.args[0] if call.args else keyword(call, "label", "placeholder"))
        if not label and kind == "chat_input":
            label = "Your message"  # what Streamlit writes there itself
        if label:
            yield _Widget(kind, label, call.lineno, call, bound.get(id(call), ""))


def _stops(statement: ast.stmt) -> bool:
    """Whether it ends the page: a call of Streamlit's `stop`."""
    return isinstance(statement, ast.Expr) and code_of(statement.value).endswith(".stop()")


def _key_variable(module: Module, widget: _Widget) -> str:
    """The variable of the environment whose value a field for a secret wants; "" for another field, and for one that
    takes it from there itself."""
    kind = keyword(widget.call, "type")
    if not (isinstance(kind, ast.Constant) and kind.value == "password"):
        return ""
    default = keyword(widget.call, "value")
    if default is not None and re.search(r"environ|getenv|secrets", code_of(default)):
        return ""
    for node in module.nodes:
        # os.environ["OPENAI_API_KEY"] = openai_api_key
        if not (isinstance(node, ast.Assign) and isinstance(target := node.targets[0], ast.Subscript)):
            continue
        name = code_of(node.value).rpartition(".")[2]
        if name == widget.variable != "" and isinstance(target.slice, ast.Constant) and "environ" in code_of(target):
            return str(target.slice.value)
    label = _KEY_OF.search(widget.label)
    if label is not None and label.group(1).lower() not in _NO_NAME:
        return _variable(" ".join(label.groups()))
    return _variable(widget.variable or widget.label)


def _variable(words: str) -> str:
    return slug(words).replace("-", "_").replace(".", "_").upper()


def _prompt_field(widgets: list[_Widget]) -> _Widget | None:
    """The field that is called as questions are; a large one rather than a small one, and of equal ones the last."""
    texts = [widget for widget in widgets if widget.kind in ("text_input", "text_area")]
    texts = [widget for widget in texts if keyword(widget.call, "type") is None]

    def rank(widget: _Widget) -> tuple[int, int]:
        asks = widget.variable.lower() in MESSAGE_FIELDS or bool(_QUESTION.search(widget.label))
        return 2 * asks + (widget.kind == "text_area"), widget.line

    return max(texts, key=rank, default=None)


def _button(widgets: list[_Widget], prompt: _Widget) -> _Widget | None:
    buttons = [widget for widget in widgets if widget.kind in ("button", "form_submit_button")]
    buttons = [widget for widget in buttons if not _OTHER_BUTTON.search(widget.label)]

    def rank(widget: _Widget) -> tuple[bool, bool, int]:
        kind = keyword(widget.call, "type")
        is_first = isinstance(kind, ast.Constant) and kind.value == "primary"
        return not is_first, widget.line < prompt.line, abs(widget.line - prompt.line)

    return min(buttons, key=rank, default=None)


def _examples(modules: Modules, module: Module, prompt: _Widget) -> tuple[str, ...]:
    texts = (modules.text(module, keyword(prompt.call, name)) for name in ("value", "placeholder"))
    examples = (re.sub(r"^(?:e\.?g\.?|for example)[.,:]*\s*", "", text.strip(), flags=re.I) for text in texts)
    return tuple(text for text in examples if text.count(" ") > 2 and not _INVITATION.match(text))


FINDER = FrameworkFinder(framework="Streamlit", app=_app)
