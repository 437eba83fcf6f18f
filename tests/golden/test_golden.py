"""What is stored, sent and published stays as it is: see `recorder.py`."""

from __future__ import annotations

from functools import partial

import codes
import commands
import histories
import live
import pytest
import reports
import stored
from recorder import EXPECTED, Recorder, Subject, compare

SUBJECTS: dict[str, Subject] = {
    "tables": histories.tables,
    "commands": commands.overview,
    "codes": codes.evidence,
    "error-codes": codes.errors,
    "reports": reports.reports,
    "exports": reports.exports,
    "stored": stored.layouts,
    "events": live.events,
    "rows": live.rows,
    "run-and-resume": live.printed,
    "forms": commands.other_forms,
    **{name.replace(" ", "-"): partial(commands.printed, name=name) for name, asked in commands.ASKED.items() if asked},
}

OF_AN_EXECUTION = ("events", "run-and-resume")


@pytest.mark.parametrize(
    "name",
    [
        # Of one execution: not once in each process.
        pytest.param(name, marks=pytest.mark.xdist_group("golden-execution")) if name in OF_AN_EXECUTION else name
        for name in SUBJECTS
    ],
)
def test_golden(name: str, recorder: Recorder, request: pytest.FixtureRequest) -> None:
    compare(name, SUBJECTS[name](recorder), update=request.config.getoption("update_snapshots"))


def test_every_file_is_of_a_subject() -> None:
    assert {path.name for path in EXPECTED.iterdir()} == set(SUBJECTS)


def test_every_command_with_json_is_asked() -> None:
    assert sorted(commands.ASKED) == sorted(name for name, one in commands.leaves() if commands.json_option(one))
