"""Makes the client of an agent's server from the agent's options: the key, the headers, and the secrets to hide."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from typing import Any

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentEvent, AgentSetup, CheckReport, Failed
from agenteval_tui.agents.http.client import HttpClient
from agenteval_tui.agents.http.connection_pool import Connections, without_credentials
from agenteval_tui.agents.http.errors import ErrorMapper
from agenteval_tui.agents.models.stream import ModelClient
from agenteval_tui.agents.network_options import NetworkOptions
from agenteval_tui.agents.redaction import EventRedactor
from agenteval_tui.agents.secrets import secrets_of
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.environment import key_from
from agenteval_tui.transcripts.model import ErrorCode, RunError
from agenteval_tui.transcripts.redact import TranscriptRedactor


class NoWayError(Exception):
    """There is no key, or the environment names a proxy or certificates that don't work. `failed` has the reason."""

    def __init__(self, failed: Failed) -> None:
        super().__init__(failed.error.message)
        self.failed = failed

    @property
    def report(self) -> CheckReport:
        """The result of a check of this agent."""
        return CheckReport(False, self.failed.error.message, fix=self.failed.error.fix)


async def run_on_client(
    begin: Callable[[], tuple[ModelClient, AsyncIterator[AgentEvent]]],
) -> AsyncGenerator[AgentEvent, None]:
    """The events of one run, without secrets. `begin` reads the options that the run needs, and returns the client and
    the events. If it raises `AgentevalError` or `NoWayError`, the run has failed."""
    # What is wrong with options and keys is known only with the run: a variation may have changed them.
    try:
        wire, agent_events = begin()
    except AgentevalError as error:
        yield Failed(RunError.told("bad_request", error.what, error.fix))
        return
    except NoWayError as missing:
        yield missing.failed
        return
    # The last place that all events go through: whatever quotes a server or a library is cleaned here.
    async with aclosing(EventRedactor(wire.server.secrets).clean_all(agent_events)) as events:
        async for event in events:
            yield event


class Secrets:
    """The secrets that one agent must not repeat. Configuration and environment are read once, not for each run."""

    def __init__(self, setup: AgentSetup) -> None:
        self._setup = setup
        # Of the last configuration and of the last request: nearly all runs of an agent have the same.
        self._of_config: tuple[Mapping[str, Any], frozenset[str]] | None = None
        self._redactor: tuple[frozenset[str], TranscriptRedactor] = (frozenset(), TranscriptRedactor())

    def of(
        self, config: Mapping[str, Any], key: str, headers: Mapping[str, str], query: Mapping[str, str], url: str
    ) -> TranscriptRedactor:
        """For a request of this configuration, with what was filled into its headers, parameters and address."""
        if self._of_config is None or (self._of_config[0] is not config and self._of_config[0] != config):
            setup = self._setup
            # As the suite has it, and with its variables filled in: what was written may be a key by itself.
            both = [
                secrets_of(each, setup.env, setup.base_dir, trusted=setup.trusted) for each in (config, setup.written)
            ]
            self._of_config = config, frozenset().union(*both)
        # A template may have put a secret of the test into what is sent.
        sent = secrets_of({"key": key, "headers": headers, "query": query, "url": url}, {})
        secrets = self._of_config[1].union(sent)
        # Making a redactor takes longer than asking whether it is the same.
        if self._redactor[0] != secrets:
            self._redactor = secrets, TranscriptRedactor(secrets)
        return self._redactor[1]


def api_key(setup: AgentSetup, name: str) -> str:
    """The key called `name`, of the environment or the keyring; "" when no key is wanted. Raises `NoWayError`."""
    try:
        key = key_from(name, setup.env) or ""
    except AgentevalError as error:
        raise NoWayError(ErrorMapper("").told("auth", error.what, error.fix)) from None
    if name and not key:
        message, fix = f"the environment variable {name} is not set", f"set {name} to the server's key"
        raise NoWayError(ErrorMapper("").failed("auth", ErrorCode.KEY_MISSING, message, fix, variable=name))
    return key


def make_client(
    url: str,
    key: str,
    key_name: str,
    headers: Mapping[str, str],
    *,
    options: NetworkOptions,
    config: Mapping[str, Any],
    connections: Connections,
    secrets: Secrets,
    option: str = "base_url",
    usual: str = "",
) -> HttpClient:
    """The way to the server at `url`. Of equal names, the headers that carry the key win over those of the options.

    Raises `NoWayError`.
    """
    # Names of headers have no case: `Authorization` in the options and ours would both be sent.
    sent = {name.lower(): value for name, value in [*options.headers.items(), *headers.items()]}
    redactor = secrets.of(config, key, sent, options.query, url)
    server = ErrorMapper(without_credentials(url), key_name, redactor, option, usual)
    try:
        connection = connections.to(url)
    except AgentevalError as error:
        raise NoWayError(server.told("connection", error.what, error.fix)) from None
    return HttpClient(
        connection.client,
        url=url,
        headers=sent,
        server=replace(server, proxy=connection.proxy),
        timeouts=options.timeouts,
        max_bytes=int(options.max_reply_mb * 1_000_000),
        query=options.query,
    )
