"""What Inspect shows and writes, without the screen: searching, replies, JSON, rows of datasets, files."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from msgspec.structs import replace

from agenteval_tui.analysis.dataset_row_from_run import asked_of, dataset_for, provenance_of, row_of_run
from agenteval_tui.analysis.run_facts import disagrees, last_labels
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.exporters.export import export_run, file_name, forms
from agenteval_tui.grading.remote_requests import RemoteRequest, Reply
from agenteval_tui.history.labels import Label
from agenteval_tui.history.records import ExecutionRecord, FailedAttempt, PlannedRun, RunEnded, RunRow
from agenteval_tui.history.replies import StoredReply
from agenteval_tui.history.store import Store
from agenteval_tui.suites.dataset_edit import add_row, preview_row, undo_add_row
from agenteval_tui.transcripts.model import Message, ToolCall, Transcript
from agenteval_tui.tui.presenters.evidence_pane import asked_summary
from agenteval_tui.tui.presenters.tabs import tab_at, tab_cells
from agenteval_tui.tui.presenters.transcript import PIECE, TranscriptDocument, number_of, occurrences
from agenteval_tui.tui.screens.json_viewer import JsonDocument, parts_of
from agenteval_tui.tui.screens.judge_log import entries_of, entry_lines
from agenteval_tui.tui.styled_text import plain, width_of

NOON = 1_795_262_400_000
RUN = RunRow(
    1, "RUN1", "E", 0, "s", "suite", "test/1", "Test", "", 0, 3, "shop", "failed", 0.5, NOON, 10.0, 1, None, None,
    None, "head", "out", "why", "", "", {},
)  # fmt: skip
ASKED = Transcript((Message("system", "be kind"), Message("user", "Where?"), Message("assistant", "There.")))


def test_words_are_found_wherever_a_long_text_is_cut() -> None:
    chance = random.Random(7)
    for words in ("aa", "Needle", "ß", "İx"):
        text = "".join(chance.choice(["a", "b", "needle", "NEEDLE ", "ß", "İX", "\n"]) for _ in range(60_000))
        text = text[: PIECE - 3] + "neeDLE" + text[PIECE - 3 :]
        found = [place for part in occurrences(text, words) for place in part]
        assert all(one[1] <= other[0] for one, other in pairwise(found)), "none twice"
        folded = [text[start:end].lower() == words.lower() for start, end in found]
        assert all(folded)
        if words.isascii() and words != "aa":
            assert len(found) == text.replace("İ", "I").lower().count(words.lower())


def test_a_search_in_slices_finds_what_a_search_at_once_finds() -> None:
    messages = tuple(Message("user", f"order {n} or another Order\n" * (n % 5)) for n in range(300))
    calls = (ToolCall("a", "order", {"id": "order"}, "ordered"),)
    transcript = Transcript((*messages, Message("assistant", "", tool_calls=(0,))), calls)
    whole, sliced = TranscriptDocument(transcript), TranscriptDocument(transcript)
    assert whole.search("order") > 1000
    steps = list(sliced.searching("order", 0.0))
    assert len(steps) > 300, "keys are read between them"
    assert steps == sorted(steps)
    assert sliced.matches == whole.matches
    place = sliced.matches[700]
    sliced.show_place(place)
    assert number_of(sliced.matches, place) == 700
    assert sliced.next_place(sliced.matches, 0, 1) == sliced.matches[701]
    assert sliced.next_place(sliced.matches, 0, -1) == sliced.matches[699]
    list(sliced.searching(""))
    assert not sliced.matches
    assert sliced.current is None


@pytest.mark.sweep
@pytest.mark.parametrize("width", [30, 80])
def test_questions_and_replies_are_shown_as_they_were_sent(width: int) -> None:
    chat = RemoteRequest("chat", "tone", {"messages": [{"role": "user", "content": "is\x1b[2J it?"}], "vote": 2})
    embed = RemoteRequest("embed", "", {"text": "some text"})
    replies = [
        StoredReply(embed, "e", Reply(json.dumps([0.5] * 700), "small", "", 4, None, None, NOON), "other"),
        StoredReply(chat, "j", Reply('So: {"score": 2, "reason": "rude"} thus', "big", "", 10, 5, 0.25, NOON), "mine"),
        StoredReply(chat, "j", Reply("", "big", "it was too slow", 10, 0, None, NOON), "mine"),
    ]
    attempts = [FailedAttempt(1, "rate_limit", "429", 12.0, NOON, 3, 4, 0.25)]
    entries = entries_of(replies, attempts, {"mine": "Mine", "other": "Other"}, "mine")
    lines, rows = entry_lines(entries, width)
    assert len(rows) == 4
    assert all(width_of(line) <= width for line in lines)
    shown = "\n".join(map(plain, lines))
    assert "\x1b" not in shown
    assert "vote 2" in shown
    assert "2  rude" in shown
    assert "it was too slow" in shown
    assert "700 numbers" in shown
    assert shown.index("Mine") < shown.index("Other"), "the open criterion's first"
    assert "attempt 1 failed" in shown
    assert asked_summary(replies, attempts) == "3 replies, ≥$0.25; 1 failed attempt"
    assert asked_summary((), ()) == ""
    assert json.loads(entries[0].text.partition("\n\n")[0])["target"] == "tone"


def test_a_document_is_laid_out_in_parts() -> None:
    parts = parts_of({"version": 1, "steps": [{"text": f"step {n}"} for n in range(500)]}, "steps")
    for width in (30, 100):
        document = JsonDocument(parts, width)
        document.settle(0, 100_000)
        lines = [plain(document.line(row)) for row in range(document.height)]
        assert all(width_of(((line, ""),)) <= width for line in lines)
        assert sum("step 499" in line for line in lines) == 1
        whole = document.text_between(0, 0, document.height - 1, -1)
        assert json.loads(document.text(7)) == {"text": "step 6"}
        assert '"text": "step 6"' in whole
        assert "[6]" not in whole, "names are no text"


def test_labels_and_what_they_say_of_an_edit() -> None:
    good, bad = Label("r", 5, "h", who="kim"), Label("r", 1, "h", who="kim")
    lee, later = Label("r", 3, who="lee"), Label("r", 4, who="lee")
    assert last_labels((good, lee, bad, later)) == {"lee": later}
    assert disagrees(good, "failed")
    assert not disagrees(bad, "failed")
    assert not disagrees(good, "error"), "there is no verdict"


def test_a_run_becomes_a_row() -> None:
    assert row_of_run(RUN, ASKED) == {"input": "Where?", "expected": ""}, "its answer was wrong: a person says better"
    passed = replace(RUN, status="passed")
    assert row_of_run(passed, replace(ASKED, final_output="There.")) == {"input": "Where?", "expected": "There."}
    known = replace(RUN, variables={"question": "Who?", "answer": "Me", "expected_value": "Me", "provenance": {}})
    assert row_of_run(known, ASKED) == {"question": "Who?", "answer": "Me"}
    two = Transcript((Message("user", "a"), Message("user", "b"), Message("assistant", "c")))
    assert asked_of(two) == [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]
    made = provenance_of(RUN, (Label("RUN1", 2, comment="no", who="kim"),))
    assert made["label"] == {"verdict": "2 of 5", "who": "kim", "comment": "no"}
    assert made["at"] == "2026-11-21T12:00:00Z"
    path, encoding = dataset_for(RUN, None)
    assert (path.name, encoding) == ("test-1.rows.jsonl", None)


@pytest.mark.parametrize(
    ("name", "before"),
    [
        ("rows.csv", b"question,answer\r\na,b\r\n"),
        ("rows.jsonl", b'{"input": "a", "expected": "b"}'),
        ("rows.yaml", b"# mine\n- {input: a, expected: b}\n"),
        ("new.jsonl", None),
    ],
)
def test_a_row_is_shown_written_and_taken_back(tmp_path: Path, name: str, before: bytes | None) -> None:
    path = tmp_path / name
    if before is not None:
        path.write_bytes(before)
    row, origin = {"input": "ä, b", "expected": "c"}, {"run": "RUN1"}
    preview = preview_row(path, row, origin)
    assert (path.read_bytes() if path.exists() else None) == before, "looking changes nothing"
    assert "ä, b" in preview.text
    assert "RUN1" in preview.text
    assert preview.new_file == (before is None)
    assert preview.widened == (name == "rows.csv")
    added = add_row(path, row, origin)
    assert added.number == preview.number == (1 if before is None else 2)
    assert all(line in path.read_text("utf-8") for line in preview.text.splitlines())
    undo_add_row(added)
    assert (path.read_bytes() if path.exists() else None) == before
    added = add_row(path, row, origin)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(AgentevalError, match="has changed since"):
        undo_add_row(added)
    with pytest.raises(AgentevalError) as error:
        preview_row(tmp_path / "rows.txt", row)
    assert str(tmp_path / "rows.txt") in str(error.value), "not the copy that was tried"


def test_a_run_is_written_in_every_form(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "history.db")
    try:
        record = ExecutionRecord("E", "t", "import", "t", ("s",), NOON)
        planned = PlannedRun("RUN1", "E", 0, "s", "suite", "a/b", "Test")
        ended = RunEnded("RUN1", "failed", 0.0, NOON, 1.0, 1, ASKED)
        store.import_runs(record, [(planned, ended)])
        for form in forms():
            path = tmp_path / file_name("a/b", 1, form)
            assert export_run(store, "RUN1", form, path) == len(path.read_text("utf-8"))
            if form == "markdown":
                assert "agenteval why RUN1" in path.read_text("utf-8")
                assert "went wrong at" not in path.read_text("utf-8"), "nothing points to a step"
            else:
                assert json.loads(path.read_text("utf-8"))
            with pytest.raises(AgentevalError, match="already"):
                export_run(store, "RUN1", form, path)
            export_run(store, "RUN1", form, path, force=True)
        assert len({file_name("a/b", 1, form) for form in forms()}) == len(forms())
    finally:
        store.close()


def test_the_names_of_panes_shrink_and_none_goes() -> None:
    names = {"transcript": "transcript", "looked": "evidence", "config": "config_uxon ●"}
    for width in (60, 44, 40, 34, 28, 24, 20):
        cells, ends = tab_cells(names, "looked", width)
        line = plain(cells)
        assert width_of(cells) <= width
        assert "[evidence]" in line, "the one that is shown has its whole name"
        assert [pane for pane, _ in ends] == list(names)
        assert [tab_at(ends, x) for x in (-1, ends[0][1] - 1, ends[0][1], width)] == ["", "transcript", "looked", ""]
        assert line.lstrip()[0] == "t"
        assert line.rpartition("]")[2].strip()[0] == "c"
    assert "config_uxon ●" in plain(tab_cells(names, "looked", 40)[0])
    assert "…" in plain(tab_cells(names, "looked", 30)[0])


def test_tabs_take_short_names_before_they_are_cut() -> None:
    names = {"transcript": "transcript", "difference": "difference", "branches": "where runs diverge"}
    assert plain(tab_cells(names, "transcript", 60)[0]).split() == [
        "[transcript]",
        "difference",
        "where",
        "runs",
        "diverge",
    ]
    assert plain(tab_cells(names, "transcript", 36)[0]).split() == ["[transcript]", "difference", "diverge"]
    assert "[where runs diverge]" in plain(tab_cells(names, "branches", 36)[0]), "the one that is shown has its name"
