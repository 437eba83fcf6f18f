"""A figure with its target and whether it is reached, printed as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`reached` is None for a figure that is only for comparison."""

    what: str
    measured: str
    due: str
    reached: bool | None

    def as_json(self) -> dict[str, object]:
        """For `--json`."""
        return {"what": self.what, "measured": self.measured, "due": self.due, "reached": self.reached}


def markdown(rows: Iterable[Row]) -> str:
    """The table for README.md of this folder."""
    lines = ["| what | measured | due | |", "|---|---|---|---|"]
    for row in rows:
        sign = "" if row.reached is None else "✓" if row.reached else "✗"
        lines.append(f"| {row.what} | {row.measured} | {row.due} | {sign} |")
    return "\n".join(lines)
