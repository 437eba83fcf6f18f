"""The kind `litellm`: a model of any provider that the package litellm knows, with our own loop of tool calls.

litellm is asked in this process (extra `litellm`). It takes and gives the forms of Chat Completions, so the
conversation and the answer are made and read as for the kind `openai`. What it does by itself, and a test must not
have, is switched off: retries, fallbacks, the `.env` of the current folder, a download of prices, printing.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from types import ModuleType
from typing import Any, TypeVar

import httpx

from agenteval_tui.agents.base import AgentEvent, AgentRequest, AgentSetup, Failed, Prepared, ToolCallFinished, ToolSpec
from agenteval_tui.agents.http import errors
from agenteval_tui.agents.http.client_factory import NoWayError, api_key
from agenteval_tui.agents.http.connection_pool import without_credentials
from agenteval_tui.agents.http.errors import ErrorMapper
from agenteval_tui.agents.http.exported_request import WrittenRequest
from agenteval_tui.agents.models.loop import ModelAgent
from agenteval_tui.agents.models.message_mapping import ProviderMessage
from agenteval_tui.agents.models.openai_chat import ChatDialogue, ChatReply
from agenteval_tui.agents.models.stream import EmptyResponseError, ModelProtocol, ModelReply, ProviderError
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.extensions.litellm.options import LiteLLMOptions
from agenteval_tui.suites.environment import key_from
from agenteval_tui.transcripts.model import ErrorCode

_Piece = TypeVar("_Piece")

_NO_KEY = "none"  # where a server of the suite's own wants no key, or must not get the one of the environment
_CAUSES = 20  # exceptions behind an exception that are looked at


class LiteLLMAgent(ModelAgent[LiteLLMOptions]):
    """Asks a model through litellm. Raises `AgentevalError` where that is not installed."""

    options_model = LiteLLMOptions

    def __init__(self, setup: AgentSetup) -> None:
        if find_spec("litellm") is None:
            raise AgentevalError(
                "agents of kind 'litellm' need the package litellm",
                where=f"agent {setup.name!r}",
                fix="pip install 'agenteval-tui[litellm]'",
            )
        super().__init__(setup)

    async def written_request(self, request: AgentRequest) -> WrittenRequest:
        """There is none: litellm makes the request."""
        raise AgentevalError(
            f"agent {self._setup.name!r} asks through litellm, which makes the request itself",
            fix="save the small case as a test: --save-test ID",
        )

    def _protocol(self, options: LiteLLMOptions) -> ModelProtocol:
        return LiteLLMProtocol(options)

    def _client(self, options: LiteLLMOptions, config: Mapping[str, Any] | None = None) -> LiteLLMClient:
        key = api_key(self._setup, options.key_env)
        secrets = self._secrets.of(config or self._setup.config, key, options.headers, {}, options.url)
        provider, _, model = options.model.partition("/")
        place = without_credentials(options.url) or (f"{provider} (through litellm)" if model else "litellm")
        option = "base_url" if options.url else "model"
        return LiteLLMClient(options, key, self._setup.env, ErrorMapper(place, options.key_env, secrets, option, ""))


class LiteLLMProtocol:
    """`litellm.acompletion`, which has no path, and no list of models that a server has."""

    path = ""
    models_path = ""

    def __init__(self, options: LiteLLMOptions) -> None:
        self._options = options

    def begin(self, messages: Sequence[ProviderMessage], tools: Sequence[ToolSpec], seed: int) -> LiteLLMDialogue:
        """A conversation that begins with these messages."""
        return LiteLLMDialogue(self._options, messages, tools, seed)


class LiteLLMDialogue(ChatDialogue):
    """One run's conversation. A model's own message goes back with what litellm wants to see again."""

    def add_results(self, reply: ChatReply, results: Mapping[int, ToolCallFinished]) -> None:
        super().add_results(reply, results)
        own = self._messages[-1 - len(reply.calls)]
        whole = reply.whole
        own.update({name: whole[name] for name in ("thinking_blocks", "provider_specific_fields") if whole.get(name)})
        for sent, whole_call in zip(own["tool_calls"], whole.get("tool_calls") or (), strict=False):
            if isinstance(whole_call, Mapping) and whole_call.get("provider_specific_fields"):  # signatures of thinking
                sent["provider_specific_fields"] = whole_call["provider_specific_fields"]


class LiteLLMClient:
    """litellm in place of a connection. `server` is what errors may say of the other side."""

    def __init__(self, options: LiteLLMOptions, key: str, env: Mapping[str, str], server: ErrorMapper) -> None:
        self._options = options
        self._key = key
        self._env = env
        self.server = server

    async def get(self, path: str) -> tuple[Any, Failed | None]:
        """There is no list of what a server has."""
        return None, None

    async def ask(self, path: str, reply: ModelReply, *, json: dict[str, Any]) -> AsyncGenerator[AgentEvent, None]:
        """One request; the events of its reply as they come. Ends early after a `Failed`."""
        assert isinstance(reply, ChatReply)
        began = time.perf_counter()
        try:
            first = "litellm" not in sys.modules
            litellm = await asyncio.to_thread(_load)
        except Exception as error:  # whatever importing a large package of others raises
            message = f"litellm can't be imported: {on_one_line(str(error), 200)}"
            yield self.server.told("bad_request", message, "install it again: pip install 'agenteval-tui[litellm]'")
            return
        if first:
            yield Prepared("import of litellm", (time.perf_counter() - began) * 1000)
        answer: Any = None
        wait = _Wait(self._options, self.server)
        try:
            completion = litellm.acompletion(**json, **self._arguments(litellm))
            answer = await wait.for_piece(completion)
            if not hasattr(answer, "__aiter__"):
                for event in self._take(litellm, answer, reply):
                    yield event
                reply.whole = _message(answer)
            else:
                reply.streamed = True
                pieces = []
                stream = aiter(answer)
                while (piece := await wait.for_piece(anext(stream, None))) is not None:
                    pieces.append(piece)
                    for event in self._take(litellm, piece, reply):
                        wait.heard(event)
                        yield event
                # Only a message with calls goes back to the model.
                if reply.calls:
                    reply.whole = _message(litellm.stream_chunk_builder(pieces))
            for event in reply.rest():
                yield event
        except NoWayError as missing:
            yield missing.failed
        except _TooLateError as late:
            yield late.failed
        except ProviderError as error:
            yield errors.from_reply(self.server, error.error)
        except EmptyResponseError as error:
            yield self.server.told("protocol", f"{self.server.url} sent no reply: {error}", "check the model")
        except Exception as error:  # litellm's own, and whatever the code for a provider raises
            yield _failure(litellm, self.server, error)
        finally:
            if hasattr(answer, "aclose"):
                await answer.aclose()

    def _arguments(self, litellm: Any) -> dict[str, Any]:
        """The arguments beside the request. Raises `NoWayError` where the key is missing."""
        options = self._options
        limit = max(options.timeouts.first_token, options.timeouts.silence) + 5  # ours come first
        # A run tries again by itself, and says so.
        arguments: dict[str, Any] = {"num_retries": 0, "max_retries": 0, "timeout": limit}
        if options.url:
            arguments["base_url"] = options.url
        key = self._key
        if not key and options.url:
            key = _NO_KEY  # else litellm sends the environment's key for this provider
        elif not key and "mock_response" not in options.params:
            key = self._usual_key(litellm)
        return {**arguments, "api_key": key} if key else arguments

    def _usual_key(self, litellm: Any) -> str:
        """The provider's key, if it is not in our environment, where litellm looks, but in `.env` or the keyring. ""
        where litellm finds what it needs, or where that is more than a key. Raises `NoWayError` where there is none."""
        try:
            missing = litellm.validate_environment(self._options.model)["missing_keys"]
            (name,) = [str(name_missing) for name_missing in missing]
        except Exception:  # a provider that litellm can't tell of, or that needs several things
            return ""
        if not name.endswith(("_API_KEY", "_TOKEN")):
            return ""
        try:
            key = key_from(name, self._env)
        except AgentevalError as error:
            raise NoWayError(self.server.told("auth", error.what, error.fix)) from None
        if not key:
            message, fix = f"the environment variable {name} is not set", f"set {name} to the provider's key"
            raise NoWayError(self.server.failed("auth", ErrorCode.KEY_MISSING, message, fix, variable=name))
        return key

    def _take(self, litellm: Any, piece: Any, reply: ChatReply) -> Iterator[AgentEvent]:
        """What a piece of a stream, or a whole reply, brings. Its cost is what litellm says."""
        value = piece.model_dump(exclude_none=True)
        usage = value.get("usage")
        if isinstance(usage, dict):
            # The agent's own price is the one that counts.
            if self._options.price is not None:
                usage.pop("cost", None)
            elif usage.get("cost") is None:
                usage["cost"] = _cost(litellm, piece, self._options.model)
        yield from reply.take_chunk(value)


class _TooLateError(Exception):
    """A limit of time or size was reached; `failed` says which."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.error.message)
        self.failed = failed


class _Wait:
    """The limits of one reply's time and size."""

    def __init__(self, options: LiteLLMOptions, server: ErrorMapper) -> None:
        self._limits = options.timeouts
        self._most = int(options.max_reply_mb * 1_000_000)
        self._server = server
        self._began = time.monotonic()
        self._characters = 0
        self._spoke = False

    async def for_piece(self, awaited: Awaitable[_Piece]) -> _Piece:
        """What comes next. Raises `_TooLateError`."""
        passed = time.monotonic() - self._began
        wait = self._limits.silence if self._spoke else max(0.001, self._limits.first_token - passed)
        try:
            async with asyncio.timeout(wait) as limit:
                return await awaited
        except TimeoutError:
            if not limit.expired():
                raise
            option = "silence" if self._spoke else "first_token"
            url = self._server.url
            message = f"{url} sent no answer within {self._limits.first_token:g} s"
            if self._spoke:
                message = f"{url} fell silent for {self._limits.silence:g} s in the middle of its answer"
            fix = f"raise `timeouts.{option}`"
            raise _TooLateError(
                self._server.failed("timeout", ErrorCode.SILENCE, message, fix, retry=True, after=option)
            ) from None

    def heard(self, event: AgentEvent) -> None:
        """A part of the answer. Raises `_TooLateError` where it is too much."""
        self._spoke = True
        self._characters += len(getattr(event, "text", ""))
        if self._characters > self._most:
            message = f"{self._server.url}: the reply is longer than {self._most / 1_000_000:g} MB"
            raise _TooLateError(self._server.failed("protocol", ErrorCode.TOO_LONG, message, "raise `max_reply_mb`"))


@cache
def _load() -> ModuleType:
    """The package, imported once (3 s), with what it does by itself switched off."""
    # Else the import reads `.env` of the current folder, and downloads a list of prices.
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    import litellm

    litellm.suppress_debug_info = True  # it prints advice otherwise
    litellm.telemetry = False
    litellm.disable_aiohttp_transport = True  # httpx, as elsewhere here: proxies, certificates
    logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)
    module: ModuleType = litellm
    return module


def _message(built: Any) -> Mapping[str, Any]:
    """The message of a whole reply of litellm."""
    choices = built.model_dump(exclude_none=True).get("choices") if built is not None else None
    message = choices[0].get("message") if choices else None
    return message if isinstance(message, Mapping) else {}


def _cost(litellm: Any, reply: Any, model: str) -> float | None:
    """US dollars; None for a model that litellm has no price for."""
    cost = getattr(reply, "_hidden_params", {}).get("response_cost")
    if cost is not None:
        return float(cost)
    try:
        return float(litellm.completion_cost(completion_response=reply, model=model))
    except Exception:  # it raises a plain one for a model without a price
        return None


def _failure(litellm: Any, server: ErrorMapper, error: Exception) -> Failed:
    """The failure for an exception of litellm: what the connection or the server's reply was, if it is known."""
    chain = _chain(error)
    for error_behind in chain[1:]:
        if isinstance(error_behind, httpx.TransportError | httpx.InvalidURL | httpx.DecodingError):
            return errors.from_exception(server, error_behind)
        if isinstance(error_behind, ImportError):
            message = f"litellm lacks a package for this model: {on_one_line(str(error_behind), 200)}"
            return server.told("bad_request", message, "install it beside litellm")
    if isinstance(error, litellm.exceptions.APIConnectionError):  # what litellm calls any failure of its own too
        message = f"{type(chain[-1]).__name__}: {on_one_line(str(chain[-1]), 200)}"
        return server.told("protocol", f"litellm can't use the answer of {server.url}: {message}", "check the model")
    status = getattr(error, "status_code", None)
    if not isinstance(status, int) or not 300 <= status < 600:
        message = f"litellm failed: {type(error).__name__}: {on_one_line(str(error), 300)}"
        return server.told("bad_request", message, "check the options of the agent, `params` among them")
    return errors.from_status(server, status, _headers(chain), _body(chain))


def _chain(error: BaseException) -> list[BaseException]:
    """The exception, and those that led to it."""
    errors_behind: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in errors_behind and len(errors_behind) < _CAUSES:
        errors_behind.append(at)
        at = at.__cause__ or at.__context__
    return errors_behind


def _headers(chain: Sequence[BaseException]) -> Mapping[str, str]:
    """The headers of the server's reply. Only some of litellm's exceptions have them."""
    for error in chain:
        for holder in (error, getattr(error, "response", None)):
            for name in ("litellm_response_headers", "headers"):
                headers = getattr(holder, name, None)
                if isinstance(headers, Mapping) and headers:
                    return headers
    return {}


def _body(chain: Sequence[BaseException]) -> str:
    """The server's words. litellm's own exception adds words to them; an exception below it has the server's words
    alone, as bytes if they are unchanged."""
    messages = [words for error in chain if (words := getattr(error, "message", None))]
    for words in messages:
        if isinstance(words, bytes):
            return words.decode("utf-8", "replace")
    return next((words for words in messages[1:] if isinstance(words, str)), str(chain[0]))
