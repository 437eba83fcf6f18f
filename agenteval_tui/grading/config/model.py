"""What all property models have in common, and marks that say more of a field than its Python type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, model_validator

from agenteval_tui.uxon import name_source


class NullError(ValueError):
    """A property that is null: it is left out instead."""

    def __init__(self, name: str) -> None:
        super().__init__("null is not allowed here: leave the property out")
        self.path = (name,)


EXACT: Final = ConfigDict(extra="forbid", strict=True, frozen=True)
"""What people configure: types are exact, unknown names are errors, nothing changes later."""


def _refuse_null(cls: type[BaseModel], data: object) -> object:
    # None is the default of what is not given; written down it would say nothing, and means a mistake.
    if isinstance(data, Mapping):
        for name, value in data.items():
            field = cls.model_fields.get(name)
            if value is None and field is not None and field.annotation is not Any:
                raise NullError(name)
    return data


no_null: Final = model_validator(mode="before")(_refuse_null)
"""A validator of such a model: null is an error."""


class RegexText(Struct, frozen=True):
    """The string is a regular expression (`grading.regex_search`): the editor checks and colours it as one."""


# For a field's `json_schema_extra`: which values recordings have for it, so that the editor can offer them.
TOOL_NAMES: Final[dict[str, Any]] = {"facts": name_source.TOOL_NAME}
TOOL_ARGUMENTS: Final[dict[str, Any]] = {"facts": name_source.TOOL_ARGUMENTS}
ANSWER_TEXTS: Final[dict[str, Any]] = {"facts": name_source.ANSWER_TEXT}
PROBE_NAME: Final[dict[str, Any]] = {"facts": name_source.PROBE_NAME}
