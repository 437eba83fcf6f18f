"""The options of agents whose requests to models are captured, and what they mean."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from agenteval_tui.agents.options import OptionGroup
from agenteval_tui.core import entry_points
from agenteval_tui.core.did_you_mean import did_you_mean
from agenteval_tui.core.entry_points import CAPTURES
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.schema_rules import given, set_to, where, without

AUTO, NONE = "auto", "none"
MODEL = "model"
"""The capture that a `cassette` implies, and that alone has one."""
OWN_CAPTURES = tuple(name for name in sorted(entry_points.own(CAPTURES)) if name != AUTO)
"""Those that are not a plug-in's: what they see of a server comes to a port."""


class CassetteOptions(OptionGroup):
    """A cassette, and how it is used."""

    file: str = Field(min_length=1, description="The cassette, relative to the suite's folder.")
    on_miss: Literal["error", "live", "record"] = Field(
        "error",
        description="What to do with a request that isn't in it. error: fail; live: send it and all later requests of "
        "the run to the servers; record: as live, and add the answers to the file at the end.",
    )
    match_system: bool = Field(True, description="false: ignore the system prompt when comparing requests.")
    pace: float = Field(0.0, ge=0, description="How fast recorded answers come. 0: at once; 1: as recorded.")


def _known(name: str | None) -> str | None:
    """The name, if a capture has it. Raises `ValueError` with a sentence otherwise."""
    try:
        if name in (None, NONE) or entry_points.find(CAPTURES, str(name)) is not None:
            return name
    except AgentevalError as error:  # two plug-ins do
        raise ValueError(error.sentence) from None
    names = _names()
    hint = did_you_mean(name, names, f"there are: {', '.join(names)}", quotes="'")
    raise ValueError(f"there is no capture {name!r} ({hint})")


def _names() -> list[str]:
    return sorted((NONE, *entry_points.names(CAPTURES)))


def _list_names(schema: dict[str, Any]) -> None:
    """For editors: the existing names."""
    schema["anyOf"] = [{"type": "string", "enum": _names()}, {"type": "null"}]


Capture = Annotated[
    str | None,
    AfterValidator(_known),
    Field(
        default=None,
        description="model: its requests to model servers go through a proxy on this machine, and become the "
        "transcript. auto: its requests are recorded where that changes nothing in the agent (the default of "
        "`command`, of `python`, and of `http` with a server on this machine). otel: the OpenTelemetry spans that it "
        "sends become the transcript (needs the extra `otel`). none: nothing is recorded. Packages can add others.",
        json_schema_extra=_list_names,
    ),
]
CassetteOption = Annotated[
    str | CassetteOptions | None,
    Field(
        default=None,
        description="A cassette (`agenteval record --cassette`) that answers its requests to models; it implies "
        "`capture: model`.",
    ),
]


CAPTURE_RULE = where(
    {**given("capture"), "not": set_to("capture", MODEL)},
    without("cassette", why="`cassette` needs `capture: model`: it answers requests to models"),
)
"""What `checked_capture` checks, for editors."""


def checked_capture(capture: str | None, cassette: object) -> None:
    """Raises `ValueError` in words where both can't be."""
    # A cassette alone is enough: it implies `capture: model`.
    if capture not in (None, MODEL) and cassette is not None:
        raise ValueError(
            f"`capture: {capture}` has no `cassette`: that one answers requests to models (`capture: model`)"
        )


def cassette_options(options: str | CassetteOptions | None) -> CassetteOptions | None:
    """The cassette in its long form."""
    return CassetteOptions.model_validate({"file": options}) if isinstance(options, str) else options
