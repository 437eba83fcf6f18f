"""What was paid for, kept until the run is stored."""

from __future__ import annotations

import resource

import pytest

from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.runs.unfinished_recording import UnfinishedRecording

FIRST, SECOND, THIRD = (
    Exchange(Question("POST", name, body=name * 3000), Answer(200, body=name)) for name in ("a", "b", "c")
)


@pytest.mark.parametrize("room", [0, 10, 100, 4000])
def test_an_answer_that_does_not_fit_onto_the_disk_takes_no_later_one_with_it(room: int) -> None:
    recording = UnfinishedRecording(["a command"])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))  # as a disk with so much left
    try:
        recording.add(FIRST)
        recording.add(SECOND)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    recording.add(THIRD)
    recording.leave()
    later = UnfinishedRecording(["a command"])
    assert [later.take(one.question) for one in (FIRST, SECOND, THIRD)] == [
        FIRST.answer if room == 4000 else None,
        None,
        THIRD.answer,
    ]
