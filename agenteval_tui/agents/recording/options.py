"""The options of agents whose requests to models are captured, and what they mean."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Literal

from pydantic import Field

from agenteval_tui.agents.options import OptionGroup
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.schema_rules import set_to, where, without

NO_CASSETTE = "`capture: otel` has no `cassette`: that one answers requests to models (`capture: model`)"


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
    Literal["model", "otel"] | None,
    Field(
        default=None,
        description="model: its requests to model servers go through a proxy on this machine, and the transcript is "
        "made of them. otel: the transcript is made of the OpenTelemetry spans that it sends (the extra `otel`).",
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


CAPTURE_RULE = where(set_to("capture", "otel"), without("cassette", why=NO_CASSETTE))
"""What `checked_capture` checks, for editors."""


def checked_capture(capture: str | None, cassette: object) -> None:
    """Raises `ValueError` in words where both can't be."""
    if capture == "otel" and cassette is not None:
        raise ValueError(NO_CASSETTE)


def require_otlp() -> None:
    """Raises `AgentevalError` where the package that reads OTLP's protobuf is not installed."""
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.proto") is None:
        raise AgentevalError(
            "the package that reads OTLP's protobuf is not installed", mend="pip install 'agenteval-tui[otel]'"
        )


def cassette_options(given: str | CassetteOptions | None) -> CassetteOptions | None:
    """The cassette in its long form."""
    return CassetteOptions.model_validate({"file": given}) if isinstance(given, str) else given
