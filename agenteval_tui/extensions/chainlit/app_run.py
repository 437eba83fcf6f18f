"""One run of a Chainlit app, without its server: it gets a message, and what it sends then is its answer.

Chainlit gives an app a context with an emitter, which sends what the app says to a browser, or to Slack or Teams. The
emitter here keeps it. Runs in the child: the standard library, and Chainlit itself.
"""

from __future__ import annotations

import logging
import os
import sys
import uuid
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Protocol

    from agenteval_tui.agents.process.python_message import Request, Run

    class Chat(Protocol):
        """An emitter that keeps what an app says. `texts`: its messages, by their ids and in their order."""

        session: Any
        texts: dict[str, str]


if not __name__.startswith("_agenteval_"):
    from agenteval_tui.agents.process import python_frameworks as frameworks
    from agenteval_tui.agents.process import python_pieces as pieces
else:  # in the child, where this package need not be installed
    frameworks = sys.modules["_agenteval.python_frameworks"]
    pieces = sys.modules["_agenteval.python_pieces"]


def script(path: str, target: str) -> Run:
    """See `python_frameworks.Framework`."""
    return lambda request: _run(path, request, target)


async def _run(path: str, request: Request, target: str) -> object:
    config = import_module("chainlit.config")
    errors = _Errors()
    logger = logging.getLogger("chainlit")
    logger.addHandler(errors)
    try:
        config.load_module(path)
        code = config.config.code
        if code.on_message is None:
            raise pieces.WrongTarget(target + " answers no message: it has no function with `@cl.on_message`")
        sent = _begin(config.config)
        if code.set_chat_profiles is not None:
            sent.session.chat_profile = _first(await code.set_chat_profiles(None, None))
        if code.on_chat_start is not None:
            await code.on_chat_start()
            errors.check()
        _continue(path, request, sent.session.id, target)
        message = import_module("chainlit.message").Message(request["prompt"], type="user_message", author="User")
        await message.send()
        # What it says when the chat begins is no part of the answer.
        sent.texts.clear()
        await code.on_message(message)
        errors.check()
    finally:
        logger.removeHandler(errors)
    return "\n\n".join(text for text in sent.texts.values() if text.strip())


class _Errors(logging.Handler):
    """Keeps the first exception that Chainlit logged: it does not pass on what an app raises."""

    raised: BaseException | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and self.raised is None:
            self.raised = record.exc_info[1]

    def check(self) -> None:
        if self.raised is not None:
            raise self.raised


def _begin(config: Any) -> Chat:
    """A chat of its own, as one in a browser is."""
    context = import_module("chainlit.context")
    base: Any = import_module("chainlit.emitter").BaseChainlitEmitter

    class Emitter(base):  # type: ignore[misc]
        def __init__(self, session: Any) -> None:
            super().__init__(session)
            self.texts: dict[str, str] = {}

        async def send_step(self, step_dict: Any) -> None:
            if step_dict.get("type") == "assistant_message":
                self.texts[step_dict["id"]] = str(step_dict.get("output") or "")

        update_step = stream_start = send_step

        async def delete_step(self, step_dict: Any) -> None:
            self.texts.pop(step_dict["id"], None)

        async def send_token(self, id: str, token: str, is_sequence: bool = False, is_input: bool = False) -> None:
            if id in self.texts:
                self.texts[id] = token if is_sequence else self.texts[id] + token

    keys = {name: os.environ.get(name, "") for name in config.project.user_env or ()}
    session = context.HTTPSession(id=str(uuid.uuid4()), client_type="webapp", user_env=keys)
    begun = context.ChainlitContext(session)
    # What an app sends to its page goes through the emitter, and nowhere else.
    begun.emitter = chat = Emitter(session)
    context.context_var.set(begun)
    return chat


def _first(profiles: Any) -> str | None:
    """The profile that a new chat has."""
    chosen = next((profile for profile in profiles or () if getattr(profile, "default", False)), None)
    return getattr(chosen or next(iter(profiles or ()), None), "name", None)


def _continue(path: str, request: Request, session: str, target: str) -> None:
    """Give the app the conversation before the message, where it keeps one as Chainlit's own examples do. Raises
    `WrongTarget` where it keeps none."""
    earlier = [message for message in pieces.before(request) if message.get("role") in ("user", "assistant")]
    if not earlier:
        return
    message = import_module("chainlit.message").Message
    for each in earlier:
        added = message(each.get("content") or "", type=each["role"] + "_message")
        import_module("chainlit.chat_context").chat_context.add(added)
    keeps = "chat_context" in Path(path).read_text(encoding="utf-8", errors="replace")
    for kept in import_module("chainlit.user_session").user_sessions.get(session, {}).values():
        if isinstance(kept, list) and all(isinstance(each, dict) and "role" in each for each in kept):
            kept += [{"role": each["role"], "content": each.get("content") or ""} for each in earlier]
            keeps = True
    if not keeps:
        problem = " can't continue a conversation: it keeps none in `chat_context` or in a list in `user_session`"
        raise pieces.WrongTarget(target + problem + "; test each prompt alone")


FRAMEWORK = frameworks.Framework(title="Chainlit", script=script)
"""Apps of Chainlit as agents: the kind `python`, with `callable: app.py`."""
