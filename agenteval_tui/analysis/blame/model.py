"""What blame says of a run: four answers, and the evidence for each step, with codes and fields.

A step is a message of the transcript, by its index from 0. Nothing here is a probability: the free answer says what was
found, the sampled one counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, field

from agenteval_tui.analysis.code_changes import EarlierProgram
from agenteval_tui.analysis.lost_context import LostFromSight
from agenteval_tui.core.document import Count, Document, Share

Fault = Literal["agent", "user", "tool", "environment", "criterion", "unknown"]
"""Whose fault a step, or a run, is. `user`: whoever answers for the user, a simulated one as a rule."""

Reproduces = Literal["always", "mostly", "luck", "once"]
"""always: no repetition passed. mostly: some passed, at most half. luck: more than half passed. once: the only run."""

Possible = Literal["yes", "never", "unknown"]
"""yes: a run that started in the same way passed. never: none of many did. unknown: too few runs to say."""

Decision = Literal["step", "none", "luck", "criterion", "not_known"]
"""step: a step decides. none: sampling found that no step does. luck: more than half of the repetitions passed.
criterion: a person called the run good. not_known: no evidence is reliable enough, and sampling did not decide."""


Step = Annotated[int, Meta(ge=0, description="a message of the transcript, by its index from 0")]


class ClueCode(StrEnum):
    """What makes a step suspicious. A closed set, published with the document of `agenteval blame --json`."""

    OUT_OF_SIGHT = "out_of_sight"
    """From this step on the model no longer saw what the failed criterion needs: `needed` (texts or tools), which is a
    `need`: value, tool or instruction. It was in step `origin_step` (null: in none). `request` (from 1) was the first
    without it; `change` says how it went (as of `show --request`), with `messages` that went, `came` in their place,
    the `name` of a tool or the number of a line, and the `characters` before and after of a text in the same place."""
    SIGHT_CHANGED = "sight_changed"
    """Before this step something left the model's sight, and whether the failed criterion needs it can't be told.
    `request` and `change` as above. A weak clue."""
    PARTED = "parted"
    """Runs that did the same up to here and then another step passed. `passed` of `runs` before, `after_passed` of
    `after_runs` with this step."""
    FEW_PARTED = "few_parted"
    """As `parted`, but of so few runs that chance may explain it (Fisher's exact test gives more than 5 %)."""
    PARTED_ELSEWHERE = "parted_elsewhere"
    """As `parted`, but some of these runs have another agent, another configuration or other code."""
    OUT_OF_ORDER = "out_of_order"
    """A write to `value`, after which the expected call of `tool` on it failed or was never made."""
    UNEXPECTED_WRITE = "unexpected_write"
    """A call of `tool` that changes something, and that nothing expects. Where all its arguments are from one result,
    or one message of the user, `origin` (result, user) and `origin_step` say which."""
    WRONG_ARGUMENT = "wrong_argument"
    """A call of `tool` with an `argument` other than expected: `wanted` (null: it was not expected), `found` (left out
    where the argument is missing), and where that came from: `origin` (result, user, system, agent, nowhere) at step
    `origin_step`."""
    CHOSEN_BY_USER = "chosen_by_user"
    """The user's words (`words`) chose the value that was wrong: `wanted`, `found`."""
    FORBIDDEN_CALL = "forbidden_call"
    """A call of `tool` that must not be made, or one too many; `origin` and `origin_step` as above."""
    OTHER_VALUE = "other_value"
    """The agent stated `found`, where `wanted` was expected; `origin` and `origin_step` as above."""
    CALL_FAILED = "call_failed"
    """The expected call of `tool` was made and gave an error: `result`."""
    NEVER_CALLED = "never_called"
    """The conversation ended without the expected call of `tool`: this was the last time that the user asked."""
    ERROR_IGNORED = "error_ignored"
    """A call of `tool` gave an error, and the agent neither called it again nor ended."""
    REPEATED = "repeated"
    """The same call of `tool`, or the same message of `name`, `times` times in all, with nothing new in between."""
    REQUEST_LOST = "request_lost"
    """An agent (`name`) handed on a task that has few of the words of the request: `shared` of `words`."""
    EXECUTION_FAILED = "execution_failed"
    """What this step had executed failed at step `failed_step`."""
    SEEN_IN_PART = "seen_in_part"
    """A coordinator (`name`) went on to another task, though of the result before, at step `seen_step`, only a part had
    been seen: up to `seen` of `whole` (`unit`: page, or percent)."""
    CALLED_DONE = "called_done"
    """A coordinator (`name`) said here that the request is satisfied, and the run failed. No earlier trouble."""
    BROKE_OFF = "broke_off"
    """The run ended here in an error, with no earlier sign of trouble. `kind`, if it is known."""
    FIRST_RESULT = "first_result"
    """The first result of `name`, on which all others depend. A weak clue: there is no stronger one."""
    ANSWER = "answer"
    """The answer itself: the failed criteria are about the answer, and no earlier step has a clue."""
    WRONG_TEXT = "wrong_text"
    """The step contains a forbidden text."""


STRENGTH: tuple[tuple[ClueCode, ...], ...] = (
    (ClueCode.OUT_OF_SIGHT,),
    (ClueCode.PARTED,),
    (ClueCode.FEW_PARTED,),
    (ClueCode.REQUEST_LOST,),
    (ClueCode.OUT_OF_ORDER,),
    (ClueCode.CHOSEN_BY_USER,),
    (ClueCode.FORBIDDEN_CALL, ClueCode.UNEXPECTED_WRITE),
    (ClueCode.WRONG_ARGUMENT,),
    (ClueCode.CALL_FAILED,),
    (ClueCode.EXECUTION_FAILED,),
    (ClueCode.NEVER_CALLED,),
    (ClueCode.OTHER_VALUE,),
    (ClueCode.PARTED_ELSEWHERE,),
    (ClueCode.SIGHT_CHANGED,),
    (ClueCode.WRONG_TEXT,),
    (ClueCode.BROKE_OFF,),
    (ClueCode.ERROR_IGNORED,),
    (ClueCode.FIRST_RESULT,),
    (ClueCode.SEEN_IN_PART,),
    (ClueCode.CALLED_DONE,),
    (ClueCode.ANSWER,),
    (ClueCode.REPEATED,),
)
"""Clues from the strongest to the weakest. The clues of a group are equally strong; the earliest step of a group
counts, because later steps follow from it. Actions explain words, so calls come before texts. Repetition is the last
clue: it shows that a run was lost, and not where."""

_RANK = {code: rank for rank, codes in enumerate(STRENGTH) for code in codes}


class Clue(Struct, frozen=True):
    """Evidence against a step. `call` is the index of the tool call that it is about; `fields` as in `ClueCode`."""

    code: ClueCode
    step: int
    fault: Fault = "agent"
    call: int | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    @property
    def rank(self) -> tuple[int, int]:
        """To sort by: the strongest first."""
        return _RANK[self.code], self.step


class PrefixCount(Document, frozen=True):
    """The number of stored runs that did the same up to and including a step, and how many of these runs passed."""

    step: Step
    runs: Count
    passed: Count


class Suspect(Struct, frozen=True):
    """A step with all that was found against it, the strongest first."""

    step: int
    fault: Fault
    clues: tuple[Clue, ...]


class Rate(Document, frozen=True, kw_only=True):
    """How often continuations passed, with the confidence sequence."""

    passed: Count
    n: Count
    low: Annotated[Share, Meta(description="the lower end of the 95 % confidence sequence")]
    high: Share


class StepRate(Rate, frozen=True, kw_only=True):
    """How often the run passed after the agent repeated a step. The earlier steps stay the same."""

    step: Step


class SampledAnswer(Document, frozen=True):
    """What sampling says of a run. `step` is the decisive message."""

    answer: Literal["step", "none", "undecided"]
    step: Step | None
    rates: tuple[StepRate, ...]
    samples: Annotated[Count, Meta(description="the most continuations of one step")]
    asked: Annotated[Count, Meta(description="continuations in all")] = 0
    known: Annotated[Count, Meta(description="how many of these were stored before, and cost nothing")] = 0
    cost: Annotated[float | None, Meta(description="US dollars of the agents; null if it was not measured")] = None
    execution: Annotated[str, Meta(description="the execution that holds them; empty if nothing was asked")] = ""
    stopped: Annotated[str, Meta(description="why it ended early; empty if it did not")] = ""


class SamplingPrice(Document, frozen=True, kw_only=True):
    """What sampling would take at most, with the usual number of samples. What stands before a step is not asked again,
    and costs nothing."""

    samples: Annotated[Count, Meta(description="the most continuations of one step")]
    continuations: Annotated[Count, Meta(description="continuations that are not stored yet")] = 0
    requests: Annotated[Count, Meta(description="requests of the agent in these")] = 0
    cost: Annotated[float | None, Meta(description="US dollars; null if it is not known")] = None
    refused: Annotated[str, Meta(description="why the agent can't be sampled; empty if it can")] = ""


class BlameFigures(Document, frozen=True, kw_only=True):
    """What is published of a blame beside its suspects. `prefixes`: from the first step to the last that another run
    shared. `sampled`: what sampling found, now or before."""

    run: str
    steps: Annotated[Count, Meta(description="how many messages the transcript has")] = 0
    reproduces: Annotated[
        Reproduces,
        Meta(description="luck: more than half of the stored repetitions passed; once: it is the only run"),
    ]
    runs: Annotated[
        Count,
        Meta(
            description="stored repetitions of the same agent in the same configuration and with the same code, as far "
            "as that is known; this run included"
        ),
    ]
    passed: Count
    low: Annotated[Share, Meta(description="the lower end of the 95 % interval of the pass rate")]
    high: Share
    possible: Annotated[Possible, Meta(description="whether any stored run of the test passed")] = field(
        name="could_pass"
    )
    fault: Fault
    free_fault: Annotated[
        Fault,
        Meta(description="by the transcript and stored runs alone: less sure than `fault` if the run was sampled"),
    ] = "unknown"
    prefixes: tuple[PrefixCount, ...] = ()
    sampling_price: Annotated[
        SamplingPrice | None,
        Meta(description="what it would take to find the step by sampling; null if the step is known, or was sampled"),
    ] = None
    sampled: Annotated[SampledAnswer | None, Meta(description="null if the run was not sampled")] = None
    earlier_program: Annotated[
        EarlierProgram | None,
        Meta(description="the code of the agent's project that the test last passed with, if it has not passed since"),
    ] = None


class Blame(BlameFigures, frozen=True, kw_only=True):
    """The free answer, and what sampling found. `decisive`: sampling's answer where it could decide; else the step with
    the strongest evidence, if evidence of its kind is reliable (`reliability`). `decision` says why there is none.
    `others`: further steps with evidence, the strongest first, three steps in all. `lost`: what left the model's sight,
    what failed criteria need first."""

    decisive: Suspect | None = None
    others: tuple[Suspect, ...] = ()
    lost: tuple[LostFromSight, ...] = ()

    @property
    def named(self) -> tuple[Suspect, ...]:
        """All steps with evidence that are shown, the decisive one first."""
        return self.others if self.decisive is None else (self.decisive, *self.others)

    @property
    def decision(self) -> Decision:
        """The answer to which step it was."""
        if self.decisive is not None:
            return "step"
        if self.sampled is not None and self.sampled.answer == "none":
            return "none"
        if self.reproduces == "luck":
            return "luck"
        return "criterion" if self.fault == "criterion" else "not_known"
