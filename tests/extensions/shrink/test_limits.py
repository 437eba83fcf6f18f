"""The options of `shrink` have the same limits on every door."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.extensions.shrink.shrink import ShrinkOptions
from tests.cli import test_limits_of_options as doors

LIMITS: dict[str, tuple[Any, ...]] = {
    "rate": (5, 0, 0.29, -0.5, math.nan, math.inf),
    "at": (0,),
    "max_cost": (0, math.nan),
    "concurrency": (0, 10_001),
}
"""By option: values that no door takes."""


@pytest.mark.parametrize(("option", "value"), [(option, value) for option in LIMITS for value in LIMITS[option]])
def test_a_value_outside_them_is_refused(cli: Any, option: str, value: Any, tmp_path: Path) -> None:
    doors.test_python_refuses_it_before_anything_is_looked_up("shrink", option, value, tmp_path)
    doors.test_the_command_line_refuses_it(cli, "shrink", option, value)


def test_python_has_the_defaults_of_the_record() -> None:
    doors.test_python_has_the_defaults_of_the_record("shrink", ShrinkOptions)
