"""The options of a kind of agent: a pydantic model each, and errors that name the option and the remedy."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agenteval_tui.agents.base import AgentRequest, AgentSetup, Failed
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.suites.model import Service
from agenteval_tui.transcripts.model import ErrorCode, RunError


class OptionGroup(BaseModel):
    """Options that are grouped below one option of a kind."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class PriceOption(OptionGroup):
    """What the tokens of an agent's model cost, in US dollars per million."""

    input: float = Field(ge=0, allow_inf_nan=False, description="Tokens of the request.")
    output: float = Field(ge=0, allow_inf_nan=False, description="Tokens of the answer, reasoning included.")
    cached: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Tokens read from the server's cache. Default: the price of `input`.",
    )
    cache_write: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Tokens written to the server's cache. Default: the price of `input`.",
    )
    cache_write_1h: float | None = Field(
        None,
        ge=0,
        allow_inf_nan=False,
        description="Tokens written to a cache that keeps them for an hour. Default: the price of `cache_write`.",
    )


class AgentOptions(BaseModel):
    """What every kind takes. A kind's own model adds to it; unknown options are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)

    asks_model: ClassVar[bool] = False
    """Whether agents of this kind are models on a server."""
    usual_capture: ClassVar[str] = "none"
    """What `capture` is where the agent does not say it."""
    takes_tools: ClassVar[bool] = False
    """Whether agents of this kind have tools of which one can be left out (`agents.base.OffersTools`)."""

    @property
    def runs_here(self) -> bool:
        """Whether the agent's code may run on this machine, where its requests to models can be recorded."""
        return True

    @property
    def prefix_problem(self) -> tuple[str, str] | None:
        """Why an agent with these options can't continue a conversation in which it answered already, as the end of a
        sentence that begins with "it", and how to fix that. None: it can continue."""
        return None

    kind: str = Field("", description="Which kind of agent this is.")
    description: str = Field("", description="What this agent is, for people.")
    concurrency: int | None = Field(None, ge=1, description="How many runs may use this agent at once.")
    max_attempts: int | None = Field(
        None, ge=1, le=20, description="How many attempts a run gets if its failure may be temporary. Default 3."
    )
    error_on_finish: list[Literal["length", "content_filter", "empty"]] = Field(
        default_factory=list,
        description="Finish reasons that make the run an error, not graded: length (cut by max_tokens), "
        "content_filter, empty.",
    )
    env_file: str | list[str] = Field(
        default_factory=list,
        description="Files with variables, relative to the suite's folder, in place of the nearest .env.",
    )
    revision: str | None = Field(
        None,
        min_length=1,
        description="Which version of its program answers: a commit, say. Change it with the program, and `--cache` "
        "works also where agenteval can't see the program's code.",
    )
    services: dict[str, Service] = Field(
        default_factory=dict, description="Programs to run beside its runs, by name, such as its server."
    )
    price: PriceOption | None = Field(
        None, description="What its tokens cost, in US dollars per million. Wins over every prices.yaml."
    )


# pydantic names the member of a union in an error's place; people did not write that.
_UNION_MEMBER = re.compile(r"(str|int|float|bool|none)$|(list|dict|literal|tuple)\[")

Options = TypeVar("Options", bound=AgentOptions)


def read_options(model: type[Options], agent: str, config: Mapping[str, Any]) -> Options:
    """`config` as the kind's options. Raises `AgentevalError` that names every wrong option of agent `agent`."""
    problems = option_problems(model, config)
    if problems:
        raise AgentevalError(
            "; ".join(message for _, message in problems),
            where=f"agent {agent!r}",
            fix=f"options of kind {config.get('kind', '')!r}: {', '.join(sorted(option_names(model)))}",
        )
    return model.model_validate(dict(config))


def options_for(request: AgentRequest, setup: AgentSetup, own: Options) -> Options:
    """The options with which a request runs: the agent's `own`, or those of a variation. Raises `AgentevalError`."""
    changed = request.config and request.config != setup.config
    return read_options(type(own), setup.name, request.config) if changed else own


def prefix_refusal(options: AgentOptions, request: AgentRequest) -> Failed | None:
    """Why an agent is not asked this, because it would not be told what it answered before; None: it may be asked."""
    if options.prefix_problem is None or not request.has_answers:
        return None
    problem, fix = options.prefix_problem
    message = f"the conversation has answers already, and this agent {problem}"
    return Failed(RunError("bad_request", message, fix, ErrorCode.PROMPT_ONLY))


def option_problems(
    model: type[BaseModel], config: Mapping[str, Any], *, as_written: bool = False
) -> list[tuple[str, str]]:
    """Every wrong option as (its path with dots, what is wrong in one sentence); empty when all is well.

    `as_written`: each `${VAR}` is still to become a text. What that text alone decides is not said.
    """
    try:
        model.model_validate(dict(config))
    except ValidationError as error:
        messages: dict[str, str] = {}
        choices: dict[str, list[str]] = {}  # of each option the types that would have been right: an error for each
        errors = [(_path(detail), detail) for detail in error.errors()]
        undecided = {path for path, detail in errors if _is_undecided(detail, config)} if as_written else set()
        for path, detail in errors:
            if path in undecided:
                continue
            expected = _wanted(detail)
            if expected is None:
                messages[path] = _message_of(model, detail, path)
                continue
            wanted_here = choices.setdefault(path, [])
            wanted_here.append(expected)
            messages[path] = f"option `{path}` must be {' or '.join(wanted_here)}, not {detail['input']!r}"
        return list(messages.items())
    return []


def _path(error: Any) -> str:
    return ".".join(str(part) for part in error["loc"] if not _UNION_MEMBER.match(str(part)))


def _is_undecided(error: Any, config: Mapping[str, Any]) -> bool:
    """Whether the text of a `${VAR}` decides if this is an error. A text is never a number, a list or an object."""
    if not error["loc"]:  # a rule about several options together
        return "${" in str(config)
    raw, kind = error["input"], error["type"]
    return isinstance(raw, str) and "${" in raw and kind != "extra_forbidden" and not kind.endswith("_type")


def option_names(model: type[BaseModel]) -> set[str]:
    """The options that a kind takes, apart from `kind` itself."""
    return set(model.model_fields) - {"kind"}


def _wanted(error: Any) -> str | None:
    """What the value must be, in words; None where the error is of another kind."""
    kind = error["type"]
    if kind == "literal_error":
        return str(error.get("ctx", {}).get("expected", "another value"))
    if kind in ("extra_forbidden", "missing", "value_error"):
        return None
    # pydantic's own words: they name the type or the bound.
    return str(error["msg"]).removeprefix("Input should be ").removeprefix("a valid ")


def _message_of(model: type[BaseModel], error: Any, path: str) -> str:
    kind, context = error["type"], error.get("ctx", {})
    if kind == "extra_forbidden":
        names = _names_at(model, error["loc"])
        hint = did_you_mean(error["loc"][-1], names, quotes="`")
        listed = f"; there are: {', '.join(names)}" if names else ""
        return f"unknown option `{path}`" + (f", {hint}" if hint else listed)
    if kind == "missing":
        return f"option `{path}` is missing"
    message = str(context.get("error", error["msg"]))
    return f"option `{path}`: {message}" if path else message


def _names_at(model: type[BaseModel], place: tuple[Any, ...]) -> list[str]:
    """The names that are known at the place of the unknown one: of the nested model when there is one."""
    here: type[BaseModel] = model
    for part in place[:-1]:
        field = here.model_fields.get(part) if isinstance(part, str) else None
        if field is not None:
            nested = _model_in(field.annotation)
            if nested is None:
                return []
            here = nested
    return sorted(here.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for argument in getattr(annotation, "__args__", ()):
        model = _model_in(argument)
        if model is not None:
            return model
    return None
