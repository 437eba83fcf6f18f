"""Which criterion people mean."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval_tui.core.errors import AgentevalError


def criterion_place(names: Sequence[str], reference: str, where: str = "") -> int:
    """The place in `names` of the criterion that a reference means: by its number from 1, its name, or the beginning of
    its name. Raises `AgentevalError` when there is no such criterion, or several begin with it."""
    if reference.isdecimal() and 1 <= int(reference) <= len(names):
        return int(reference) - 1
    folded, cases = reference.casefold(), [name.casefold() for name in names]
    same = [place for place, name in enumerate(names) if name == reference]
    same = same or [place for place, name in enumerate(cases) if name == folded]
    alike = same[:1] or [place for place, name in enumerate(cases) if name.startswith(folded)]
    if len(alike) != 1:
        what = f"several criteria begin with {reference!r}" if alike else f"there is no criterion {reference!r}"
        listing = ", ".join(f"{number} {name}" for number, name in enumerate(names, 1)) or "none"
        raise AgentevalError(what, where=where, fix=f"its criteria: {listing}")
    return alike[0]
