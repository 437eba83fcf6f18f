"""What the app has, without an app: notifications, running executions, the trail of screens, pictures."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from msgspec import structs
from textual.notifications import Notification

from agenteval_tui.core import directories
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.history.records import ExecutionRecord, PlannedRun, RunEnded
from agenteval_tui.history.store import Store
from agenteval_tui.runs.live_registry import Live
from agenteval_tui.transcripts.model import Message, Transcript
from agenteval_tui.tui.analysis_context import Session
from agenteval_tui.tui.execution_ends import ExecutionEnds
from agenteval_tui.tui.external_programs import save_picture
from agenteval_tui.tui.live_executions import LiveExecutions
from agenteval_tui.tui.navigation import MOST_BACK, Trail, first_screen
from agenteval_tui.tui.notifications import NotificationSource, Notifier

SUITE = "/suites/orders.suite.yaml"


class Notes(list[Notification]):
    """A notifier that shows its notes here."""

    def __init__(self, keymap: dict[str, str] | None = None, *, room: int = 0, typing: bool = False) -> None:
        super().__init__()
        self.notifier = Notifier(self.append, keymap or {}, lambda: room, lambda: typing)

    def said(self) -> list[str]:
        return [one.text for one in self.notifier.notices.all()][::-1]


def test_a_note_with_a_place_names_the_persons_own_key() -> None:
    notes = Notes({"notice.go": "f9"})
    notes.notifier.say("Run 3 failed.", place=NotificationSource("run", "3"))
    assert "F9: go there" in notes[0].message
    assert notes.said() == ["Run 3 failed."]
    assert notes.notifier.notices.last_place() == NotificationSource("run", "3")


def test_a_note_is_one_line_that_keeps_what_decides() -> None:
    error = AgentevalError("the model calls of run VDQJ were not stored", where="run 01M84RCY9B", fix="record it")
    said = str(error)
    for room, shown in (
        (95, said),
        (65, "the model calls of run VDQJ were not stored (record it)"),
        (50, "the model calls of run VDQJ were not stored"),
        (40, "the model calls of run VDQ…  N: the rest"),
    ):
        notes = Notes(room=room)
        notes.notifier.say_error(error)
        assert notes[0].message == shown
        assert notes.said() == [said], "the list of notices has all of it"


def test_a_note_that_is_cut_still_says_where_it_leads() -> None:
    notes = Notes(room=55)
    notes.notifier.say("A sentence that is much longer than the line.", place=NotificationSource("run", "3"))
    assert notes[0].message == "A sentence that is much lon…  N: the rest  ^g: go there"
    notes = Notes(room=55, typing=True)
    notes.notifier.say_error(AgentevalError("one thing after the other went wrong here, and again, and then again"))
    assert notes[0].message.startswith("one thing after the other went")
    assert notes[0].message.endswith("…"), "in a text, N would be a letter"
    notes.notifier.say("one line\nand another")
    assert notes[-1].message == "one line…"


def test_the_same_note_is_counted_and_few_stand_at_once() -> None:
    notes = Notes()
    for message in ("a", "a", "b", "c", "d"):
        notes.notifier.say(message)
    assert "×2" in notes[1].message
    assert [one.timeout == 0.0 for one in notes] == [True, True, True, False, False]
    notes.notifier.forget_standing()
    notes.notifier.say("d")
    assert "×" not in notes[-1].message, "it does not stand any more"


def test_a_bug_is_one_sentence_and_a_path_that_cannot_be_read_is_none() -> None:
    notes = Notes()
    notes.notifier.say_bug(IndexError("list index out of range"), "counting")
    notes.notifier.say_bug(PermissionError(13, "Permission denied", "/etc/shadow"), "reading")
    notes.notifier.say_bug(AgentevalError("there is no run with this id", fix="look in the history"), "reading")
    bug, path, known = notes.said()
    assert known == "there is no run with this id (look in the history)"
    assert bug.startswith("A bug in agenteval (counting: IndexError: list index out of range). The traceback is in ")
    assert "bug" not in path
    assert "/etc/shadow" in path


def test_files_that_changed_are_one_note_that_leads_to_the_first() -> None:
    notes = Notes()
    notes.notifier.say_changed([])
    notes.notifier.say_changed([("k1", "Orders", 2), ("k2", "Refunds", 0)])
    assert notes.said() == ["Orders and 1 more changed on disk and was reloaded; 2 problems in it."]
    assert notes.notifier.notices.last_place() == NotificationSource("suite", "k1")


class Screens:
    """What running executions know of the screens."""

    def __init__(self) -> None:
        self.watched = ""
        self.retitled = 0

    def watches(self, execution: str) -> bool:
        return execution == self.watched

    looks_at = watches

    def retitle(self) -> None:
        self.retitled += 1

    def tell_new_runs(self) -> None:
        """Nothing counts runs here."""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A history in which the execution E ended, with a run that passed and one that failed."""
    with Store.open(tmp_path / "history.db") as store:
        runs = []
        for number, status in ((1, "passed"), (2, "failed")):
            planned = PlannedRun(f"R{number}", "E", number, SUITE, "Orders", "t", "T", prompt="?", repetition=number)
            done = Transcript((Message("user", "?"), Message("assistant", "!")), final_output="!")
            why = "" if status == "passed" else "the word is missing"
            runs.append((planned, RunEnded(planned.id, status, 1.0, 5, 5.0, 1, done, (), 0, why)))
        store.import_runs(ExecutionRecord("E", "nightly", "run", "orders", (SUITE,), 5), runs)
    return Session([], tmp_path / "history.db")


def live(*executions: str) -> dict[str, Live]:
    return {one: Live(one, 1, "", one, 0) for one in executions}


async def test_an_execution_is_counted_its_first_failure_is_said_once_and_so_is_its_end(session: Session) -> None:
    notes, screens = Notes(), Screens()
    running = LiveExecutions(session, notes.notifier, screens)
    for now in (live("E", "of another history"), live("E", "of another history"), live("E")):
        await running.take(now)
    assert notes.said() == ["t run 2 failed: the word is missing"]
    assert running.running == 1
    await running.take({})
    assert notes.said()[1:] == ["nightly finished: 1 of 2 passed, 1 failed."]
    assert notes.notifier.notices.last_place() == NotificationSource("execution", "E")
    assert screens.retitled == 3
    session.close()


async def test_the_note_of_a_failure_has_the_two_values_where_there_are_some(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    missed = Evidence(
        "contains",
        False,
        expected="5000",
        found="5.000",
        code=Code.MISSING,
        fields={"side": "contains", "near": {"is": "form", "text": "5.000", "line": 4, "steps": ["separators"]}},
    )
    metric = MetricResult("m", "TextMatch", Outcome.FAILED, 0.0, evidence=(missed,))
    result = CriterionResult("Right order", Outcome.FAILED, 0.0, metrics=(metric,))
    monkeypatch.setattr(session.store, "results", lambda run: [result])
    notes = Notes()
    await LiveExecutions(session, notes.notifier, Screens()).take(live("E"))
    assert notes.said() == ['t run 2 failed: expected "5000", got "5.000"']
    session.close()


async def test_nothing_is_said_of_an_execution_that_a_screen_watches(session: Session) -> None:
    notes, screens = Notes(), Screens()
    screens.watched = "E"
    running = LiveExecutions(session, notes.notifier, screens)
    await running.take(live("E"))
    await running.take({})
    assert notes.said() == []
    session.close()


async def test_nothing_is_said_of_what_a_sheet_of_this_app_asks(session: Session) -> None:
    notes = Notes()
    running = LiveExecutions(session, notes.notifier, Screens())
    for now in ({"E": Live("E", os.getpid(), "", "blame", 0)}, {}):
        await running.take(now)
    assert notes.said() == []
    session.close()


async def test_an_end_is_told_to_who_is_away_and_to_the_web_hook_of_who_started_it(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes, screens, sent, posted = Notes(), Screens(), list[str](), list[Any]()
    answers = [httpx.Response(200), httpx.Response(404)]

    def post(address: str, **given: Any) -> httpx.Response:
        posted.append((address, json.loads(given["content"])))
        return answers.pop(0)

    monkeypatch.setattr(httpx, "post", post)
    directories.config_dir().mkdir(parents=True, exist_ok=True)
    settings = directories.config_dir() / "notify.yaml"
    settings.write_text("webhook: https://hooks.example.com/secret\n", "utf-8")
    away = [True]
    ends = ExecutionEnds(session, notes.notifier, sent.append, lambda: away[0], {"TERM": "foot"})
    heard: list[tuple[str, bool, bool]] = []
    running = LiveExecutions(
        session, notes.notifier, screens, lambda row, here, looked: heard.append((row.id, here, looked))
    )
    running.started(live("E")["E"])
    await running.take({})  # it ended before anybody looked
    assert heard == [("E", True, False)]
    row = structs.replace(session.store.execution("E"), started_ms=0, finished_ms=500)
    await ends.tell(row, started_here=True, looked_at=False)
    text = "nightly: did not pass (1 passed, 1 failed, 0 in error, 50 % passed)"
    assert sent == [f"\x1b]777;notify;agenteval;{text}\x1b\\"]
    ((address, document),) = posted
    assert (address, document["text"], document["exit_code"]) == ("https://hooks.example.com/secret", text, 1)
    # Who is there has seen it; of what somebody else started the web hook hears nothing.
    away[0] = False
    await ends.tell(row, started_here=False, looked_at=False)
    assert (len(sent), len(posted)) == (1, 1)
    # Who is there, and did not look at what took long.
    long = structs.replace(row, finished_ms=31_000)
    await ends.tell(long, started_here=True, looked_at=False)
    await ends.tell(long, started_here=False, looked_at=True)
    assert (len(sent), len(posted)) == (2, 2)
    assert notes.said()[-1] == "hooks.example.com could not be notified: it answered 404"
    settings.write_text("terminal: loud\n", "utf-8")
    before = len(notes.said())
    for _ in range(2):
        await ends.tell(long, started_here=True, looked_at=False)
    assert len(notes.said()) == before + 1  # once
    assert "secret" not in "".join(notes.said())
    session.close()


def test_the_trail_leads_back_the_way_one_came_and_ends() -> None:
    trail = Trail()
    for name in ("suites", "history", "run"):
        trail.go(name)
    assert (trail.back(), trail.back(), trail.back(), trail.shown) == ("history", "suites", "", "suites")
    for _ in range(MOST_BACK * 2):
        trail.go("run")
    assert [bool(trail.back()) for _ in range(MOST_BACK + 1)] == [True] * MOST_BACK + [False]


@pytest.mark.parametrize(
    ("last", "wanted", "first"),
    [
        ("", "", "suites"),
        ("", "history", "history"),
        ("trends", "suites", "trends"),
        ("run", "suites", "suites"),  # it shows nothing without an execution
        ("of a later version", "history", "history"),
    ],
)
def test_a_start_begins_where_the_one_before_ended(last: str, wanted: str, first: str) -> None:
    assert first_screen(last, wanted) == first


def test_pictures_do_not_overwrite_each_other() -> None:
    first, second = save_picture("<svg>1</svg>", "history"), save_picture("<svg>2</svg>", "history")
    assert first == directories.data_dir() / "agenteval-history.svg"
    assert second.name == "agenteval-history-2.svg"
    assert (first.read_text(), second.read_text()) == ("<svg>1</svg>", "<svg>2</svg>")


def test_an_error_is_said_with_its_remedy() -> None:
    notes = Notes()
    notes.notifier.say_error(AgentevalError("no editor is set", where="a:1", fix="set $EDITOR"))
    assert notes[0].severity == "error"
    assert "set $EDITOR" in notes.said()[0]
