"""The options of `suggest` have the same limits on every door."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.extensions.suggest.search import SuggestOptions
from tests.cli import test_limits_of_options as doors


@pytest.mark.parametrize(("option", "value"), [("most", 0), ("most", -1), ("most", 21)])
def test_a_value_outside_them_is_refused(cli: Any, option: str, value: int, tmp_path: Path) -> None:
    doors.test_python_refuses_it_before_anything_is_looked_up("suggest", option, value, tmp_path)
    doors.test_the_command_line_refuses_it(cli, "suggest", option, value)


def test_python_has_the_defaults_of_the_record() -> None:
    doors.test_python_has_the_defaults_of_the_record("suggest", SuggestOptions)
