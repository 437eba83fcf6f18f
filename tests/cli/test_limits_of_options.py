"""An option has the same limits on every door: the command line, Python, the tools for coding agents."""

from __future__ import annotations

import inspect
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import convert, to_builtins

import agenteval_tui as agenteval
from agenteval_tui.core.options import OptionError, Options, options_of
from agenteval_tui.runs.fork.options import ForkRequest
from agenteval_tui.runs.live_registry import ExecutionRequest
from agenteval_tui.runs.plan.options import PlanOptions

LIMITS: dict[str, dict[str, tuple[Any, ...]]] = {
    "fork": {"n": (0, -1, 1001, True, 1.5, "5"), "at": (0, -3), "max_cost": (0, -1, math.nan, math.inf),
             "concurrency": (0, 10_001)},
    "run": {"repeat": (0, -1, 100_001, 200_000), "concurrency": (0, 10_001), "timeout": (0, -1, math.nan, math.inf),
            "max_cost": (0, -1, math.nan, math.inf)},
}  # fmt: skip
"""By activity and option: values that no door takes."""
RECORDS: dict[str, type[Options]] = {
    "fork": ForkRequest, "run": PlanOptions
}  # fmt: skip
WRONG = [
    (activity, option, value)
    for activity, options in LIMITS.items()
    for option, values in options.items()
    for value in values
]


@pytest.mark.parametrize(("activity", "option", "value"), WRONG)
def test_python_refuses_it_before_anything_is_looked_up(activity: str, option: str, value: Any, tmp_path: Path) -> None:
    function: Callable[..., Any] = getattr(agenteval, activity)
    with pytest.raises(OptionError, match=f"{option} must be a") as raised:
        function("no-such", **{option: value}, db=tmp_path / "nothing.db")
    assert raised.value.option == option
    assert not (tmp_path / "nothing.db").exists()


@pytest.mark.parametrize(
    ("activity", "option", "value"), [case for case in WRONG if not isinstance(case[2], str | bool)]
)
def test_the_command_line_refuses_it(cli: Any, activity: str, option: str, value: Any) -> None:
    flag = "-n" if option == "n" else f"--{option.replace('_', '-')}"
    result = cli(activity, f"{flag}={value}" if flag != "-n" else f"-n{value}", "no-such")
    assert result.code == 2
    assert flag in result.err
    assert "no-such" not in result.err


@pytest.mark.parametrize(("activity", "record"), RECORDS.items())
def test_python_has_the_defaults_of_the_record(activity: str, record: type[Options]) -> None:
    declared = options_of(record)
    for name, argument in inspect.signature(getattr(agenteval, activity)).parameters.items():
        if name in declared and name != "run":
            assert argument.default in (declared[name].default, ()), name


@pytest.mark.parametrize("limit", [-1, math.nan, math.inf])
def test_a_program_is_not_started_with_a_limit_that_is_none(limit: float, tmp_path: Path) -> None:
    started = tmp_path / "started"
    program = [sys.executable, "-c", f"open({str(started)!r}, 'w')"]
    with pytest.raises(OptionError, match="max_cost must be a number of US dollars from 0"):
        agenteval.record(program, max_cost=limit, db=tmp_path / "h.db")
    with pytest.raises(OptionError, match="max_cost must be a number of US dollars from 0"):
        agenteval.replay("last", program, max_cost=limit, db=tmp_path / "h.db")
    assert not started.exists()


@pytest.mark.parametrize(
    "wrong", [{"port": -1}, {"port": 65_536}, {"quiet_after": 0}, {"quiet_after": math.nan}, {"patience": math.inf}]
)
def test_nothing_is_listened_for_with_wrong_options(cli: Any, wrong: dict[str, float]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(OptionError, match=f"{name} must be a"):
        agenteval.listen(**wrong)  # type: ignore[arg-type]
    assert cli("listen", f"--{name.replace('_', '-')}={value}").code == 2


def test_a_request_reaches_the_process_that_runs_it() -> None:
    request = ExecutionRequest(
        options=PlanOptions(repeat=100_000, timeout=0.5, fail_under_test=1.0),
        fork=ForkRequest("run", 2, {"text": "no"}, 1000, max_cost=0.5, concurrency=3),
    )
    assert convert(json.loads(json.dumps(to_builtins(request))), ExecutionRequest) == request
