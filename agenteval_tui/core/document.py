"""The base of typed documents (what is stored, sent or printed as JSON), and the kinds of values that they hold."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct

from agenteval_tui.core.outcomes import OUTCOMES, STATUSES

Count = Annotated[int, Meta(ge=0)]
Figure = Annotated[int, Meta(extra_json_schema={"minimum": 0})]
"""A `Count` of a foreign program: what can't be so is sorted out where it is read, with a note."""
Share = Annotated[float, Meta(ge=0, le=1)]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
"""ISO 8601, with its time zone."""
Rating = Annotated[int, Meta(ge=1, le=5)] | None
RowKey = Annotated[
    str,
    Meta(
        description="what the dataset's row is, wherever it stands: `id:ID` or `content:HASH`; empty without a dataset"
    ),
]


def one_of(*words: str | None) -> Meta:
    """One of these words, of a field that holds a `str` (or None, where that is among them)."""
    return Meta(extra_json_schema={"enum": list(words)})


Outcome = Annotated[str, one_of(*OUTCOMES)]
Status = Annotated[str, one_of(*STATUSES)]
StatusOrNone = Annotated[str, Meta(extra_json_schema={"anyOf": [{"enum": list(STATUSES)}, {"const": ""}]})]
"""A status, or "" where there is none."""
ExecutionStatus = Annotated[str, one_of("running", "finished", "cancelled", "stopped", "failed", "interrupted")]
Severity = Annotated[str, one_of("error", "warning", "info")]


class Document(Struct, frozen=True, forbid_unknown_fields=True):
    """The base of a document and of each object in it: fields by name, no others. A field that may be absent has the
    default `UNSET`; one that may be empty is `None`. `formats.documents.schema` makes a JSON Schema of it.
    """


_D = TypeVar("_D", bound=Struct)


def extended(kind: type[_D], *records: object, **fields: Any) -> _D:
    """A document made of records: what they have of its fields (properties, too; the first that has one counts), and
    the `fields` that only the document has, or that it has in words."""
    for record in records:
        names = [name for name in kind.__struct_fields__ if name not in fields and hasattr(record, name)]
        fields |= {name: getattr(record, name) for name in names}
    return kind(**fields)
