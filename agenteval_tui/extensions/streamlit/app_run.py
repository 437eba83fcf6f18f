"""One run of a Streamlit app, without a browser: its fields are filled in, its button is pressed, and what it then
shows is its answer. Runs in the child: the standard library, and Streamlit itself (`streamlit.testing`).
"""

from __future__ import annotations

import contextlib
import logging
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from agenteval_tui.agents.process.python_message import Request, Run

    class Widget(Protocol):
        """A field or a button of Streamlit's tests; a button is clicked, and a field gets a value."""

        @property
        def type(self) -> str:
            """What it is: "chat_input"."""
            ...

        def click(self) -> object:
            """Press it."""
            ...

        def set_value(self, value: object) -> object:
            """Fill it in."""
            ...


if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]

_FIELDS = (
    *("chat_input", "text_input", "text_area", "selectbox", "radio", "multiselect", "number_input", "checkbox"),
    *("toggle", "slider", "select_slider", "date_input", "time_input", "color_picker"),
)
_TEXTS = frozenset(
    (
        *("title", "header", "subheader", "markdown", "text", "caption", "code", "latex", "json", "html"),
        *("success", "info", "warning", "error"),
    )
)
_NO_LIMIT_S = 10_000_000.0  # the run has a limit of its own


class AppError(Exception):
    """The app shows an error, and nothing else."""


def script(path: str, target: str) -> Run:
    """See `python_frameworks.Framework`."""
    return lambda request: _run(path, request, target)


def _run(path: str, request: Request, target: str) -> object:
    how = request.get("_how") or {}
    app = import_module("streamlit.testing.v1").AppTest.from_file(path, default_timeout=_NO_LIMIT_S)
    with contextlib.suppress(Exception):  # where Rich prints exceptions of the app, none is logged
        import_module("streamlit.config").set_option("logger.enableRich", False)
    errors = _Errors()
    logger = logging.getLogger("streamlit.error_util")
    logger.addHandler(errors)
    try:
        _rerun(app, errors)
        steps = _steps(app, how.get("input"), request, target)
        before: list[tuple[str, str]] = []
        messages = 0
        asked = False
        while steps:
            name, widget = _next(app, steps, target)
            value = steps.pop(name)
            if not asked:
                asked = request["prompt"] in str(value)
                if asked and _continue(app, request, widget, target, errors):
                    widget = _next(app, {name: value}, target)[1]
                # What it shows before the prompt is filled in is no part of the answer.
                before, messages = list(_texts(app.main)), len(app.chat_message)
            if value is True and hasattr(widget, "click"):
                widget.click()
            else:
                widget.set_value(value)
            _rerun(app, errors)
        shown = _new(list(_texts(app.main)), before)
    finally:
        logger.removeHandler(errors)
    reply = _reply(app, messages)
    if not reply and shown and all(kind == "error" for kind, _ in shown):
        raise AppError("\n".join(text for _, text in shown))
    answer = reply or "\n\n".join(text for _, text in shown)
    if not how.get("output"):
        return answer
    return {"answer": answer, "shown": [{"type": kind, "text": text} for kind, text in shown]}


def _rerun(app: Any, errors: _Errors) -> None:
    app.run()
    if app.exception:
        # Streamlit shows an exception of the app, and logs it.
        raise errors.raised or AppError(app.exception[0].message)


class _Errors(logging.Handler):
    """Keeps the last exception that Streamlit logged."""

    raised: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info:
            self.raised = record.exc_info[1]


def _steps(app: Any, fields: object, request: Request, target: str) -> dict[str, Any]:
    """What is filled in and pressed, by the labels or keys, in this order."""
    if isinstance(fields, dict) and fields:
        return dict(fields)
    chats = list(app.chat_input)
    if len(chats) != 1:
        texts = [each.label for each in _elements(app.main) if each.type in ("text_area", "text_input")]
        buttons = [each.label for each in _elements(app.main) if each.type == "button"]
        example = (
            '{"'
            + (texts or ["LABEL"])[-1]
            + '": "{{prompt}}"'
            + ("" if not buttons else ', "' + buttons[0] + '": true')
        )
        problem = target + " has no chat input: say in the agent what is filled in and pressed, such as "
        raise pieces.WrongTarget(problem + "`input: " + example + "}`")
    return {chats[0].key or chats[0].placeholder: fields if isinstance(fields, str) else request["prompt"]}


def _continue(app: Any, request: Request, field: Widget, target: str, errors: _Errors) -> bool:
    """Give the app the conversation before the prompt, where it keeps one as Streamlit's own tutorials do. Gives
    whether there is one: the app was run again then, and has new fields."""
    earlier = [message for message in pieces.before(request) if message.get("role") in ("user", "assistant")]
    if not earlier:
        return False
    if field.type != "chat_input" or "messages" not in app.session_state:
        problem = " can't continue a conversation: it keeps none in `st.session_state.messages`; test each prompt alone"
        raise pieces.WrongTarget(target + problem)
    app.session_state["messages"] = [{"role": each["role"], "content": each.get("content") or ""} for each in earlier]
    _rerun(app, errors)
    return True


def _next(app: Any, steps: dict[str, Any], target: str) -> tuple[str, Widget]:
    """The first step whose field or button is there, by its label or key: some come only when others are filled in.
    Raises `WrongTarget` where none is."""
    widgets = {
        name: widget for kind in reversed((*_FIELDS, "button")) for widget in app.get(kind) for name in _names(widget)
    }
    name = next((name for name in steps if name in widgets), None)
    if name is not None:
        return name, widgets[name]
    fields = [_names(widget)[0] for kind in _FIELDS for widget in app.get(kind)]
    buttons = [_names(widget)[0] for widget in app.get("button")]
    problem = target + " shows no field or button " + repr(next(iter(steps))) + "; it has "
    parts = [
        words + ", ".join(map(repr, names))
        for words, names in (("the fields ", fields), ("the buttons ", buttons))
        if names
    ]
    raise pieces.WrongTarget(problem + (" and ".join(parts) or "none") + "; correct the option `input`")


def _names(widget: Any) -> list[str]:
    """Its label, and its key if it has one."""
    label = widget.placeholder if widget.type == "chat_input" else widget.label
    return [label] if widget.key is None else [label, widget.key]


def _texts(block: Any) -> Iterator[tuple[str, str]]:
    """The texts in a part of the page, in their order: (what they are, text)."""
    for element in _elements(block):
        # Versions before 1.50 name the format, too.
        kind = {"arrow_data_frame": "dataframe", "arrow_table": "table"}.get(element.type, element.type)
        if kind in ("dataframe", "table"):
            yield kind, element.value.to_csv(index=False)
        elif kind == "metric":
            yield kind, element.label + ": " + element.value
        # What a version doesn't know has no value.
        elif kind in _TEXTS and isinstance(element.value, str) and element.value.strip():
            yield kind, element.value


def _elements(block: Any) -> Iterator[Any]:
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from _elements(child)
        else:
            yield child


def _new(shown: list[tuple[str, str]], before: list[tuple[str, str]]) -> list[tuple[str, str]]:
    left = list(before)
    fresh = []
    for text in shown:
        if text in left:
            left.remove(text)
        else:
            fresh.append(text)
    return fresh


def _reply(app: Any, messages: int) -> str:
    """The text of the chat messages that came, and are not the user's."""
    came = [message for message in app.chat_message[messages:] if message.name not in ("user", "human")]
    return "\n\n".join(text for message in came for _, text in _texts(message))


FRAMEWORK = frameworks.Framework(title="Streamlit", script=script)
