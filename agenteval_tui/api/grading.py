"""Grading what a program has in hand: messages, a server's reply, or what a framework returned."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from pydantic import ValidationError

from agenteval_tui.agents.base import AgentEvent
from agenteval_tui.agents.permission import allowed_once_by
from agenteval_tui.agents.process import python_answers, python_pieces
from agenteval_tui.agents.process.protocol import EventError, EventReader
from agenteval_tui.agents.recorder import Recorder
from agenteval_tui.analysis.judge_repeatability import respondents_for
from agenteval_tui.api.display import Shown, criteria_table, line
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.transcript_to_grade import transcript_to_grade
from agenteval_tui.grading.explain import explain
from agenteval_tui.grading.grade import grade as verdict
from agenteval_tui.grading.remote_requests import Reply
from agenteval_tui.grading.results import CriterionResult, Verdict
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.runs.criteria import specs_of
from agenteval_tui.runs.event_loop import run_in_thread
from agenteval_tui.runs.judge_client import Answers, JudgeClient, JudgeRequestGroup
from agenteval_tui.runs.trust_check import check_asking
from agenteval_tui.suites.model import Criterion, Test
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.evidence import fact_tree
from agenteval_tui.views.model import View, text
from agenteval_tui.views.terminal import plain_text

Criteria = Criterion | Mapping[str, Any] | Test | Sequence[Criterion | Mapping[str, Any]]
"""A criterion, several, each also as a mapping with the keys of a suite file; or a test, for its criteria."""


class Grade(Shown, Struct, frozen=True, eq=False):
    """What criteria said of one transcript."""

    transcript: Transcript
    verdict: Verdict
    specs: tuple[CriterionSpec, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.status == "passed"

    @property
    def status(self) -> str:
        """passed, failed, error (a check could not run), needs_review or skipped."""
        return str(self.verdict.outcome)

    @property
    def score(self) -> float | None:
        """The weighted mean of the criteria's scores, from 0 to 1; None where nothing was scored."""
        return self.verdict.score

    @property
    def criteria(self) -> tuple[CriterionResult, ...]:
        """What each criterion said: outcome, score, and the evidence."""
        return self.verdict.results

    def why(self) -> str:
        """Why it did not pass, in words; of what passed too where all did."""
        missed = [criterion for criterion in self.criteria if str(criterion.outcome) not in ("passed", "skipped")]
        return plain_text((fact_tree(explain(missed or self.criteria)),))

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        return f"<Grade {self.status}: {sum(str(criterion.outcome) == 'passed' for criterion in self.criteria)} of \
{len(self.criteria)} criteria passed>"

    def view(self) -> View:
        """What each criterion said."""
        return (line(text((self.status, "bold"))), criteria_table(self.criteria))


@allowed_once_by("trust=True")
def grade(
    what: Any,
    criteria: Criteria,
    *,
    variables: Mapping[str, Any] | None = None,
    judge: str | None = None,
    trust: bool = False,
) -> Grade:
    """Grade a transcript with criteria. Nothing is stored.

    `what`: chat messages (OpenAI's, Anthropic's), a server's whole reply, a text (the agent's answer), a `Transcript`,
    or what a framework returned (pydantic-ai's AgentRunResult, openai-agents' RunResult, a LangGraph state, ...).
    `variables`: for `{{name}}` in the criteria. Judges are asked only with `judge` (an agent's name in agents.yaml) or
    `trust`, which also lets Python functions of the criteria run. Raises `AgentevalError`.
    """
    transcript = transcript_of(what)
    specs = criteria_of(criteria)
    replies = _asked(specs, transcript, variables or {}, judge, trust=trust)
    return Grade(transcript, verdict(transcript, specs, variables, replies=replies), specs)


def criteria_of(criteria: Criteria) -> tuple[CriterionSpec, ...]:
    """Criteria ready to grade. Raises `AgentevalError` that names what is wrong in which."""
    listed: Sequence[Any]
    if isinstance(criteria, Test):
        listed = criteria.criteria
    else:
        listed = [criteria] if isinstance(criteria, Criterion | Mapping) else list(criteria)
    if not listed:
        raise AgentevalError("there are no criteria", fix="a criterion has `name`, `prototype_class`, `config_uxon`")
    return specs_of(_criterion(entry, number) for number, entry in enumerate(listed, 1))


def _criterion(value: object, number: int) -> Criterion:
    if isinstance(value, Criterion):
        return value
    if not isinstance(value, Mapping):
        raise AgentevalError(f"criterion {number} is a {type(value).__name__}", fix="give a Criterion or a mapping")
    try:
        # A name is for reports; in a program criteria are often written without one.
        return Criterion.model_validate({"name": f"criterion {number}", **value})
    except ValidationError as error:
        first: Any = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise AgentevalError(
            f"criterion {number}: {name}: {first['msg'].lower()}",
            fix=f"a criterion may have {', '.join(Criterion.model_fields)}",
        ) from None


def transcript_of(what: Any) -> Transcript:
    """The transcript in whatever a program has in hand. Raises `AgentevalError` for what is not understood."""
    if isinstance(what, Transcript):
        return what
    # Plain data first: a state of LangGraph is a mapping as well, but one that JSON can't hold.
    if isinstance(what, Mapping) or (isinstance(what, list) and all(isinstance(message, Mapping) for message in what)):
        try:
            return transcript_to_grade(json.loads(json.dumps(what)))
        except TypeError:
            pass  # objects of a framework in it
    # By the events of a run in a process, so that every framework that can be run can be graded as well.
    recorder = Recorder(())
    for event in _events(what):
        recorder.apply(event)
    transcript = recorder.stored()
    if not transcript.messages and transcript.error is None:
        raise AgentevalError(
            f"nothing in this {type(what).__name__} can be graded", fix="`agenteval docs python` says what can"
        )
    return transcript


def _events(what: Any) -> list[AgentEvent]:
    answers, reader = python_answers.Reader([]), EventReader()
    try:
        events = [*answers.take(what, False), *answers.end()]
        return [event for answer in events for event in reader.read(answer)]
    except (TypeError, ValueError, EventError, python_pieces.WrongTarget) as error:
        raise AgentevalError(
            f"this {type(what).__name__} can't be graded: {error}", fix="`agenteval docs python` says what can"
        ) from None


def _asked(
    specs: Sequence[CriterionSpec],
    transcript: Transcript,
    variables: Mapping[str, Any],
    judge: str | None,
    *,
    trust: bool,
) -> Mapping[str, Reply] | None:
    """What judges and functions say, where they may be asked."""
    # Without a word of the caller nobody is asked, since that may cost money; and an error is one whatever they say.
    if (judge is None and not trust) or transcript.error is not None:
        return None
    # "": there is no suite, so the judge is one of the user's own agents.
    respondents = respondents_for([""], judge)
    permission = check_asking(respondents, [("", spec) for spec in specs], trusted=trust)

    async def answers() -> Answers:
        client = JudgeClient(respondents, permission=permission)
        try:
            return await client.answer(JudgeRequestGroup("", tuple(specs), transcript, variables))
        finally:
            await client.close()

    return run_in_thread(answers).replies
