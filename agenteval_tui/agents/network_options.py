"""The options that all kinds of agent behind a network share, and those of the kinds that talk to a model."""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Protocol, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator

from agenteval_tui.agents.options import AgentOptions, OptionGroup
from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import TOOLSETS
from agenteval_tui.core.schema_rules import NAME_CHARACTERS, Rule

# What people copy from a provider's page in place of the address that requests have in common.
_REQUEST_PATH = re.compile(
    r"/+(?:chat/+completions|completions|responses|messages|embeddings|models/[^/]+:(?:streamG|g)enerateContent)$"
)


class _HasKey(Protocol):
    @property
    def api_key_env(self) -> str | None: ...


_Keyed = TypeVar("_Keyed", bound=_HasKey)


class Timeouts(OptionGroup):
    """Seconds to wait for a server."""

    connect: float = Field(default=10.0, gt=0, description="For the connection.")
    first_token: float = Field(
        default=120.0, gt=0, description="For the first piece of an answer, after sending the request."
    )
    silence: float = Field(default=60.0, gt=0, description="For the next piece of a streamed answer.")


KeyVariable = Annotated[
    str | None, Field(default=None, description="The environment variable that holds the key; not the key itself.")
]
Headers = Annotated[dict[str, str], Field(default_factory=dict, description="Additional HTTP headers.")]
Query = Annotated[
    dict[str, str],
    Field(default_factory=dict, description="Query parameters of the address, such as Azure's `api-version`."),
]
Patience = Annotated[Timeouts, Field(default_factory=Timeouts, description="How long to wait, in seconds.")]
ReplyLimit = Annotated[
    float, Field(default=16.0, gt=0, description="The limit for a reply, in MB. A longer one is an error.")
]


class NetworkOptions(Protocol):
    """What every server needs: a key, headers, and how long and how much to take from it."""

    @property
    def headers(self) -> dict[str, str]: ...

    @property
    def query(self) -> dict[str, str]: ...

    @property
    def timeouts(self) -> Timeouts: ...

    @property
    def max_reply_mb(self) -> float: ...


def names_a_key(options: _Keyed) -> _Keyed:
    """`options`, whose `api_key_env` is a variable's name: a validator. Raises ValueError where it may be a key."""
    if options.api_key_env is not None and not options.api_key_env.replace("_", "").isalnum():
        raise ValueError("`api_key_env` is the name of an environment variable, not the key itself")
    return options


KEY_RULE: Rule = {"properties": {"api_key_env": {"pattern": rf"^_*[^_{NAME_CHARACTERS}][^{NAME_CHARACTERS}]*$"}}}
"""What `names_a_key` checks, for editors."""
MODEL_RULES: list[Any] = [KEY_RULE, {"properties": {"base_url": {"pattern": r"^https?://[^?]*$"}}}]
"""What is checked of all `ModelOptions` together, for editors."""


class ModelOptions(AgentOptions):
    """What every kind takes that asks a model and answers its tool calls."""

    model_config = ConfigDict(json_schema_extra={"allOf": MODEL_RULES})
    asks_model: ClassVar[bool] = True
    takes_tools: ClassVar[bool] = True

    api_key_env: KeyVariable
    headers: Headers
    query: Query
    timeouts: Patience
    max_reply_mb: ReplyLimit
    base_url: str = Field("", description="Where the server is.")
    model: str = Field(min_length=1, description="The model's name as the server knows it.")
    system: str | None = Field(None, description="The system prompt.")
    tools: str | list[Any] | None = Field(
        None,
        description="The tools: a list, a YAML file beside the suite, or "
        + " or ".join(f'"builtin:{name}"' for name in entry_points.own(TOOLSETS))
        + ".",
    )
    max_steps: int = Field(
        12, ge=1, description="How many requests one run may send; a longer loop of tool calls is an error."
    )
    stream: bool = Field(True, description="false: one reply instead of a stream.")
    extra_body: dict[str, Any] = Field(default_factory=dict, description="More fields for the request's JSON.")

    _names_a_key = model_validator(mode="after")(names_a_key)

    @model_validator(mode="after")
    def _right_address(self) -> Self:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"`base_url` must begin with http:// or https://, not {self.base_url[:60]!r}")
        if "?" in self.base_url:
            raise ValueError("`base_url` can't hold parameters: put them into `query`")
        return self

    @property
    def url(self) -> str:
        """The address without a slash at its end, and without the path of a request, which is added."""
        return _REQUEST_PATH.sub("", self.base_url.rstrip("/"))

    @property
    def key_env(self) -> str:
        """The variable that holds the key; "" for a server that wants none."""
        return self.api_key_env or ""

    def key_headers(self, key: str) -> dict[str, str]:
        """The headers that carry the key, and others that the protocol demands."""
        raise NotImplementedError

    def limited(self, tokens: int | None) -> Self:
        """The same, for an answer of at most this many tokens; None: the server decides."""
        raise NotImplementedError
