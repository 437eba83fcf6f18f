"""A test that is made of runs that went well: it asks what they were asked, and expects what they share."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core import entry_points
from agenteval_tui.core.entry_points import TEST_CRITERIA, EntryPoint
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.core.phrasing import listed, on_one_line
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.task_payload import task_messages
from agenteval_tui.suites.editing import add_test, free_id
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.suites.new_suite import check_name, write_suite
from agenteval_tui.suites.slugs import slug
from agenteval_tui.suites.templates import literal
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Message, Transcript

NEW_SUITE = Path("recorded.suite.yaml")
"""The file for a test whose runs don't come from a suite's file."""
CRITERIA = 3
_NAME = 60
_ID = 40


class GoodRuns(Struct, frozen=True):
    """The runs that a test is made from. All were asked the same question.

    `opening`: the first messages of the runs, if they are known; otherwise the test gets the first message that the
    user wrote, without a system prompt, because the prompt belongs to the agent. `failed`: the runs that did not pass.
    `suite`: the file of their suite. `origin` says where the runs come from.
    """

    transcripts: tuple[Transcript, ...]
    ids: tuple[str, ...] = ()
    agent: str = ""
    suite: Path | None = None
    opening: tuple[Message, ...] = ()
    origin: str = ""
    failed: tuple[str, ...] = ()

    @property
    def question(self) -> str:
        """The user's first message."""
        return questions_of(self.transcripts[0])[0]


class DraftedTest(Struct, frozen=True):
    """A test (with the keys of a suite) for the suite at `path`. `suite` is the suite with the new test, or None if the
    test was not written. `agentless`: the suite doesn't say which agent the test asks."""

    test: Mapping[str, Any]
    path: Path
    suite: LoadedSuite | None = None
    agentless: bool = False

    @property
    def id(self) -> str:
        """The test's id."""
        return str(self.test["id"])

    @property
    def written(self) -> bool:
        """Whether it is in the file."""
        return self.suite is not None

    @property
    def criteria(self) -> tuple[str, ...]:
        """The names of its criteria."""
        return tuple(str(criterion["name"]) for criterion in self.test["criteria"])


def stored_runs(store: Store, rows: Sequence[RunRow]) -> GoodRuns:
    """Stored runs as what a test is made of. Raises `AgentevalError`: one has no answer, or was asked something else
    than the first."""
    first = rows[0]
    transcripts = tuple(store.transcript(row.id) for row in rows)
    for row, transcript in zip(rows, transcripts, strict=True):
        if questions_of(transcript, where=f"run {row.id}") != questions_of(transcripts[0]):
            raise AgentevalError(
                f"run {short_id(row.id)} was asked something different from run {short_id(first.id)}",
                fix="make a separate test from each",
            )
    # A run that was graded again has its task where it was recorded.
    task = store.task_of(first.recording or first.id)
    path = Path(first.suite_key)
    names = ", ".join(short_id(row.id) for row in rows[:5])
    return GoodRuns(
        transcripts,
        ids=tuple(row.id for row in rows),
        agent=first.agent,
        suite=path if path.is_file() else None,
        opening=task_messages(task) if task is not None else (),
        origin=f"Made of run{'s' if len(rows) > 1 else ''} {names}{' and others' if len(rows) > 5 else ''}.",
        failed=tuple(row.id for row in rows if row.status in ("failed", "error")),
    )


def questions_of(transcript: Transcript, *, where: str = "") -> list[str]:
    """The user's messages up to the last answer. Raises `AgentevalError` if there is no question or no answer."""
    answers = [number for number, message in enumerate(transcript.messages) if message.role == "assistant"]
    last = answers[-1] if answers else -1
    questions = [message.content for message in transcript.messages[: last + 1] if message.role == "user"]
    if not questions or not (transcript.final_output or transcript.tool_calls):
        raise AgentevalError(
            "there is no answer yet to make a test from", where=where, fix="choose a run with a question and an answer"
        )
    return questions


def drafted_test(runs: GoodRuns, test_id: str = "", name: str = "") -> dict[str, Any]:
    """A test with the keys of a suite. It asks the same question, and each of the runs passes it. Its criteria are
    suggestions, which a person should make stricter; where nothing can be suggested, one that asks for an answer.

    The question is plain text: its braces are not a template. Raises `AgentevalError` if there is no answer yet.
    """
    first = runs.transcripts[0]
    questions = questions_of(first)
    if any(message.attachments for message in (*runs.opening, *first.messages) if message.role == "user"):
        raise AgentevalError(
            "the question has an image or a file, which is not in a suite's folder",
            fix="write the test by hand, with the file beside the suite",
        )
    called = name or on_one_line(questions[0], _NAME)
    test: dict[str, Any] = {"id": test_id or _id_for(called), "name": called}
    if runs.origin:
        test["description"] = runs.origin
    test.update(_asked(runs.opening, first, questions))
    criteria = [
        {
            "name": spec.name,
            "prototype_class": spec.prototype_class,
            "config_uxon": spec.config_text.rstrip("\n") + "\n",
        }
        for spec in _suggested(runs.transcripts)
    ]
    return {**test, "criteria": criteria or [_ANSWERS]}


def _suggested(transcripts: Sequence[Transcript]) -> Iterator[CriterionSpec]:
    """The criteria of those who suggest some (extensions): all these runs pass them."""
    for name, target in sorted(entry_points.own(TEST_CRITERIA).items()):
        yield from EntryPoint(TEST_CRITERIA, name, target, "").load_as("suggestions of")(transcripts, None, CRITERIA)


def _id_for(name: str) -> str:
    whole = slug(name)
    cut = whole if len(whole) <= _ID else whole[: _ID + 1].rpartition("-")[0] or whole[:_ID]
    return cut.strip("-._") or "recorded"


_ANSWERS = {
    "name": "Answers",
    "prototype_class": "TextResponse",
    "config_uxon": {"metrics": [{"type": "Length", "min_words": 1}]},
}


def make_test(
    runs: GoodRuns,
    path: Path | None = None,
    *,
    test_id: str = "",
    name: str = "",
    agent: str = "",
    agents: Mapping[str, AgentConfig] | None = None,
    new_agents: Mapping[str, Mapping[str, Any]] | None = None,
    write: bool = True,
) -> DraftedTest:
    """Write a test made of these runs behind the last one of a suite (None: theirs, or `NEW_SUITE`), which is made
    where it is not there.

    `agent`: the one that it asks; "": that of the runs, if the suite or the user (`agents`) has it, else the suite's.
    `new_agents`: those that a new suite has itself, whose first it asks.
    Raises `AgentevalError`: there is no answer, or the file can't hold it.
    """
    path = path or runs.suite or NEW_SUITE
    test = drafted_test(runs, test_id, name)
    mine, own = agents or {}, new_agents or {}
    if not path.exists():
        _check_agent(agent, {*mine, *own})
        asks = agent or next(iter(own), "") or (runs.agent if runs.agent in mine else "")
        title = path.name.removesuffix(".suite.yaml")
        written = write_suite(path, title, asks, own, test) if write else None
        return DraftedTest(test, path, written, agentless=not asks)
    loaded = _suite_at(path)
    assert loaded.suite is not None
    _check_agent(agent, {*mine, *loaded.suite.agents})
    if not test_id:
        test["id"] = free_id(loaded, str(test["id"]))
    asks = agent or (runs.agent if runs.agent in {*loaded.suite.agents, *mine} else "")
    if asks and asks != loaded.suite.agent:
        # Criteria last, as in a suite that people write.
        test = {**test, "agent": asks, "criteria": test.pop("criteria")}
    agentless = not asks and not loaded.suite.agent
    return DraftedTest(test, path, add_test(loaded, test) if write else None, agentless=agentless)


def check_place(path: Path) -> None:
    """Raise `AgentevalError` where no test can be written to this file."""
    if path.exists():
        _suite_at(path)
    else:
        check_name(path)


def _suite_at(path: Path) -> LoadedSuite:
    loaded = load_suite(path)
    if loaded.suite is None:
        raise AgentevalError("this suite can't be read", where=str(path), fix="agenteval validate lists why")
    wrong = [problem for problem in loaded.problems if problem.severity == "error"]
    # A file of Compose has `services`, too, and nothing else that a suite has.
    is_compose = "services" in (fields := loaded.suite.model_fields_set) and fields <= {"name", "services", "tests"}
    if not loaded.suite.tests and (len(wrong) > 1 or is_compose):  # beside that it has none
        raise AgentevalError("this file is not a suite", where=str(path), fix="name a suite, or a new file")
    return loaded


def _check_agent(name: str, agents: Collection[str]) -> None:
    if name and name not in agents:
        there = f"there are {listed(sorted(agents))}; " if agents else ""
        raise AgentevalError(
            f"there is no agent {name!r}", fix=f"{there}write it into the suite or agents.yaml: agenteval docs agents"
        )


def _asked(beginning: Sequence[Message], transcript: Transcript, questions: Sequence[str]) -> dict[str, Any]:
    """The keys of a test that say what is asked."""
    beginning = beginning or _beginning(transcript)
    count = sum(message.role == "user" for message in beginning)
    # What the task already has as its beginning is not asked once more.
    turns = [literal(question) for question in questions[count:]]
    if [message.role for message in beginning] == ["user"]:
        prompt = literal(beginning[0].content)
        return {"turns": [prompt, *turns]} if turns else {"prompt": prompt}
    messages = [literal(message) for message in to_openai_messages(Transcript(tuple(beginning), transcript.tool_calls))]
    return {"messages": messages, **({"turns": turns} if turns else {})}


def _beginning(transcript: Transcript) -> tuple[Message, ...]:
    """The messages up to the first that the user wrote, without the agent's system prompt."""
    first = next(number for number, message in enumerate(transcript.messages) if message.role == "user")
    return tuple(message for message in transcript.messages[: first + 1] if message.role not in SYSTEM_ROLES)
