"""Two recordings that go on with what one before them left."""

from __future__ import annotations

import resource
from pathlib import Path

from agenteval_tui.agents.recording.cassette import Cassette
from agenteval_tui.agents.recording.exchange import Answer, Exchange, Question
from agenteval_tui.agents.recording.journal import Journal, journals_of


def test_a_recording_keeps_the_journal_of_one_that_began_in_the_same_moment(tmp_path: Path) -> None:
    cassette = tmp_path / "c.jsonl"
    Journal(cassette, Cassette()).close()  # one that was cut off
    left = journals_of(cassette).left
    assert [one.name for one in left] == ["c.jsonl.partial"]
    # Both have looked before either of them begins.
    first, second = Journal(cassette, Cassette(), left), Journal(cassette, Cassette(), left)
    assert journals_of(cassette).running == 2, "nobody removes what the other writes"
    for one in (first, second):
        one.done()
        one.close()
    assert list(tmp_path.glob("*.partial*")) == []


def test_what_was_left_goes_once_a_later_recording_has_it(tmp_path: Path) -> None:
    cassette = tmp_path / "c.jsonl"
    one, other = Journal(cassette, Cassette()), Journal(cassette, Cassette())
    one.close()
    other.close()
    found = journals_of(cassette)
    assert [path.name for path in found.left] == ["c.jsonl.partial", "c.jsonl.partial2"]
    later = Journal(cassette, Cassette(), found.left)
    assert [path.name for path in sorted(tmp_path.iterdir()) if "partial" in path.name] == ["c.jsonl.partial"]
    later.done()
    later.close()


def test_an_answer_that_does_not_fit_onto_the_disk_takes_no_later_one_with_it(tmp_path: Path) -> None:
    cassette = tmp_path / "c.jsonl"
    journal = Journal(cassette, Cassette())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, limits[1]))  # as a disk with so much left
    try:
        journal.add(Exchange(Question("POST", "a", body="x" * 5000), Answer(200)))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    journal.add(Exchange(Question("POST", "b"), Answer(200)))
    journal.close()
    assert [one.question.path for one in journals_of(cassette).exchanges] == ["b"]
