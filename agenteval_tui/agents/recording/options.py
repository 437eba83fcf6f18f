"""The options of agents whose requests to models are captured, and what they mean."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from agenteval_tui.agents.options import OptionGroup


class CassetteOptions(OptionGroup):
    """A cassette, and how it is used."""

    file: str = Field(min_length=1, description="The cassette, from the suite's folder.")
    on_miss: Literal["error", "live", "record"] = Field(
        "error",
        description="What happens to a request that is not in it: error; live: it and all that follow in its run go to "
        "the servers; record: their answers are added to the file at the end, too.",
    )
    match_system: bool = Field(True, description="false: the system prompt is left out of the comparison.")
    pace: float = Field(0.0, ge=0, description="How fast recorded answers come: 0 at once, 1 as recorded.")


Capture = Annotated[
    Literal["model"] | None,
    Field(
        default=None,
        description="model: its requests to model servers go through a proxy on this machine, and the transcript is "
        "made of them.",
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


def cassette_options(given: str | CassetteOptions | None) -> CassetteOptions | None:
    """The cassette in its long form."""
    return CassetteOptions.model_validate({"file": given}) if isinstance(given, str) else given
