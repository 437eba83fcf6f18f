"""What is said of traces that did not become runs, or not whole."""

from __future__ import annotations

from collections.abc import Mapping

from agenteval_tui.core.numbers import count


def loss_notes(
    skipped: Mapping[str, int], late: int, refused: int, last_refusal: str, *, option: str = "--quiet-after"
) -> tuple[str, ...]:
    """A sentence each. `skipped`: traces left out, by reason, the most frequent first; `late`: spans that came after
    their run was stored; `refused`: requests that could not be read, and why the last one could not. `option`: what
    lets a trace wait longer, as the reader writes it."""
    notes = [f"{count(times, 'trace')} left out: {reason}" for reason, times in skipped.items()]
    if late:
        notes.append(
            f"{count(late, 'span')} came too late and {'was' if late == 1 else 'were'} left out; increase {option}"
        )
    if refused:
        notes.append(f"{count(refused, 'request')} could not be read completely; the last one: {last_refusal}")
    return tuple(notes)
