"""A/B: two agents or variations over the same tests, rows, repetitions and seeds.

The arm is part of a run's variation ("A: small-model"): so test, variation, row and repetition are enough to tell two
runs apart, also where an agent is compared with itself, and every list says which arm a run belongs to.
"""

from __future__ import annotations

from agenteval_tui.text.problems import AgentevalError

ARMS = ("A", "B")


def arm_label(arm: str, name: str) -> str:
    """What stands as variation in the runs of an arm: "A: small-model"."""
    return f"{arm}: {name}"


def arm_of(variation: str) -> str:
    """A or B; "" for a variation that is no arm. Only of an execution with the option `ab` it can be one."""
    arm, mark, _ = variation.partition(": ")
    return arm if mark and arm in ARMS else ""


def check_arms(names: tuple[str, ...]) -> None:
    """Raises `AgentevalError` unless there are none, or two."""
    if names and len(names) != len(ARMS):
        raise AgentevalError(
            f"an A/B comparison needs two agents or variations, not {len(names)}", mend="give --ab NAME NAME"
        )
    for name in names:
        if not name.strip():
            raise AgentevalError("an agent of the A/B comparison has no name", mend="give --ab NAME NAME")
