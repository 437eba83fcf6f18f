"""What is shown of blame: the four answers, the steps with their evidence, and the strip with a bar a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from agenteval_tui.analysis.blame.model import Blame, Clue, ClueCode, Decision, Fault, SampledAnswer, StepRate, Suspect
from agenteval_tui.analysis.blame.reliability import reliability_of
from agenteval_tui.analysis.code_changes import EarlierProgram
from agenteval_tui.core.display import one_line
from agenteval_tui.core.numbers import count, dollars, percent_interval
from agenteval_tui.core.phrasing import listed, on_one_line, shown
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.views.file_changes import file_changes_text
from agenteval_tui.views.model import (
    LEVELS,
    Fact,
    Facts,
    Node,
    Paragraph,
    Span,
    Text,
    Tree,
    View,
    paragraphs,
    sentence,
    text,
)
from agenteval_tui.views.model_request import lost_view

DECISIVE: Span = ("◆", "bad")
"""The sign of the decisive step."""
OTHER: Span = ("◇", "warn")
"""The sign of a step that is named beside it."""
_SHOWN = 60
_STANDS_OUT = "What stands out, though it may not be the cause:"
_FROM_HERE = "from this step on it no longer passes"

_STEPLESS: dict[Decision, str] = {
    "none": "none",
    "luck": "none: it was bad luck",
    "criterion": "none: a person labelled the run good",
}

FAULTS: dict[Fault, str] = {
    "agent": "the agent's",
    "user": "the (simulated) user's",
    "tool": "the tool's",
    "environment": "the environment's",
    "criterion": "the criterion's",
    "unknown": "not known",
}


def clue_text(clue: Clue) -> str:
    """The evidence against a step, in a sentence without a full stop."""
    fields = clue.fields
    words: Mapping[ClueCode, str] = _SENTENCES
    return words[clue.code].format_map(_Words(fields))


def reproduces_text(blame: Blame) -> str:
    """The first answer."""
    if blame.reproduces == "once":
        return "not known: it ran only once. To find out: agenteval run --repeat 5"
    low, high = percent_interval(blame.low, blame.high)
    rate = f"{blame.passed:,} of {count(blame.runs, 'run')} passed, {low} to {high} %"
    answers = {"always": "yes", "mostly": "yes, mostly", "luck": "no, it was bad luck: it passes most of the time"}
    return f"{answers[blame.reproduces]} ({rate})"


def could_pass_text(blame: Blame) -> str:
    """The second answer."""
    # Sampling says more than stored runs: it continued this very run.
    start = blame.sampled.rates[0] if blame.sampled is not None and blame.sampled.rates else None
    if start is not None and start.passed:
        return f"yes: continued from step {start.step + 1}, {start.passed:,} of {start.n:,} passed"
    if start is not None and blame.sampled is not None and blame.sampled.answer == "none" and blame.possible != "yes":
        return f"not from any step of this run: {start.passed:,} of {start.n:,} passed from step {start.step + 1}"
    if (earlier := blame.earlier_program) is not None:
        return f"yes: with earlier code, {passed_before_text(earlier)}"
    if blame.possible == "unknown":
        return "not known: only a few runs are stored, and none passed"
    if blame.possible == "never":
        return "no run ever passed: the cause may be the test, the criterion or the agent's ability"
    return "yes" if blame.passed else "yes, with another agent or other code"


def passed_before_text(earlier: EarlierProgram) -> str:
    """`7 of 7 runs passed; files changed since: tools.py, prompts.md (added)`."""
    runs = count(earlier.runs, "run")
    return f"{earlier.passed:,} of {runs} passed; files changed since: {file_changes_text(earlier.files)}"


def fault_text(blame: Blame) -> str:
    """The third answer. Where sampling found that no step decides, what the transcript says is said beside it."""
    fault = FAULTS[blame.fault]
    if blame.fault == "unknown" and blame.sampled is not None and blame.free_fault != "unknown":
        never = blame.sampled.rates and not any(rate.passed for rate in blame.sampled.rates)
        where = ": the test, the criterion or the agent's ability" if never and blame.possible != "yes" else ""
        return f"{fault}{where}; less sure, by the transcript alone: {FAULTS[blame.free_fault]}"
    return fault


def step_text(transcript: Transcript | None, step: int, of: int = 0, *, room: int = _SHOWN) -> str:
    """What a step is, in a few words: `step 7, get_order(...)`, or `step 7 of 12, ...`. Steps are shown from 1. `room`:
    characters of what was said, and of a call's arguments."""
    name = f"step {step + 1}" + (f" of {of}" if of else "")
    if transcript is None or step >= len(transcript.messages):
        return name
    message = transcript.messages[step]
    calls = [transcript.tool_calls[number] for number in message.tool_calls if number < len(transcript.tool_calls)]
    if calls:
        did = ", ".join(f"{call.name}({on_one_line(shown(call.arguments, room), room)})" for call in calls)
    else:
        did = f"{message.name or message.role}: {on_one_line(message.content, room)}"
    return f"{name}, {did}"


def answers_of(blame: Blame, transcript: Transcript | None = None) -> tuple[Fact, ...]:
    """The four answers."""
    return (
        Fact("Does it reproduce?", text(reproduces_text(blame))),
        Fact("Could it pass?", text(could_pass_text(blame))),
        Fact("Whose fault?", text(fault_text(blame))),
        Fact("Which step?", _which(blame, transcript)),
    )


def blame_view(blame: Blame, transcript: Transcript | None = None, options: str = "") -> View:
    """The four answers, the strip, and the steps with their evidence."""
    answers = Facts(answers_of(blame, transcript))
    sampled = () if blame.sampled is None else sampled_view(blame.sampled)
    return (
        answers,
        Paragraph(tuple((LEVELS[bar.level], bar.token) for bar in bars(blame))),
        *evidence_view(blame, transcript),
        *_unblamed(blame, options),
        *_sampling_command(blame, options),
        *sampled,
    )


def _unblamed(blame: Blame, options: str) -> View:
    """What left the model's sight, and no clue names."""
    numbers = {clue.fields.get("request") for suspect in blame.named for clue in suspect.clues}
    return lost_view([lost for lost in blame.lost if lost.request not in numbers], blame.run, options)


def rate_text(rate: StepRate) -> str:
    """`step 4 repeated: 5 of 8 passed, 22 to 91 %`."""
    low, high = percent_interval(rate.low, rate.high)
    return f"step {rate.step + 1} repeated: {rate.passed:,} of {rate.n:,} passed, {low} to {high} %"


def sampling_text(sampled: SampledAnswer) -> tuple[Text, ...]:
    """What sampling found, of how many continuations; and why it ended early, if it did."""
    verdict = {
        "step": f"sampling: {_FROM_HERE}",
        "none": "sampling: no step is decisive: it passes from no step, or equally often from all",
        "undecided": f"sampling: not decided with up to {count(sampled.samples, 'continuation')} from each step",
    }[sampled.answer]
    cost = "" if sampled.cost is None else f", {dollars(sampled.cost)}"
    stored = f", {sampled.known} stored before" if sampled.known else ""
    total = f"{count(sampled.asked, 'continuation')}{stored}{cost}"
    stopped = f"it ended early: {sampled.stopped}" if sampled.stopped else ""
    first = text((verdict, "bold"), f"  {total}")
    return (first, text((stopped, "warn"))) if stopped else (first,)


def sampled_view(sampled: SampledAnswer) -> View:
    """What sampling asked and found."""
    first, *stopped = sampling_text(sampled)
    rates = Tree(tuple(Node(text((rate_text(rate), "code"))) for rate in sampled.rates))
    return (Paragraph(first), rates, *paragraphs(stopped))


def suspects_in(blame: Blame) -> tuple[int, ...]:
    """The steps that are named, the decisive one first."""
    return tuple(suspect.step for suspect in blame.named)


def sign_of(blame: Blame, step: int) -> Span:
    """The sign of a step; an empty one where nothing was found against it."""
    if blame.decisive is not None and blame.decisive.step == step:
        return DECISIVE
    return OTHER if any(other.step == step for other in blame.others) else ("", "")


def step_view(blame: Blame, step: int) -> View:
    """What is known of one step: its evidence, and how often runs passed that did the same, or did it anew."""
    clues = next((_distinct(suspect.clues) for suspect in blame.named if suspect.step == step), [])
    lines = [text((one_line(clue_text(clue)), "code")) for clue in clues]
    if blame.decisive is not None and blame.decisive.step == step and clues:
        lines += [text((words, "dim")) for words in _reliability_texts(blame)]
    if not lines:
        lines.append(text(("no evidence against this step", "dim")))
    for counted in blame.prefixes:
        if counted.step == step:
            runs = count(counted.runs, "run")
            lines.append(text((f"{counted.passed:,} of {runs} that did the same up to here passed", "dim")))
    if blame.sampled is not None:
        lines += [text(rate_text(rate)) for rate in blame.sampled.rates if rate.step == step]
    return paragraphs(lines)


def evidence_view(blame: Blame, transcript: Transcript | None = None) -> View:
    """The steps with their evidence, the decisive one first."""
    nodes = tuple(_node(suspect, blame, transcript) for suspect in blame.named)
    if not nodes:
        return ()
    head = (Paragraph(text((_STANDS_OUT, "dim"))),) if blame.decision == "not_known" else ()
    return (*head, Tree(nodes))


def blame_line(blame: Blame, transcript: Transcript | None = None) -> str:
    """The decisive step with its strongest evidence, on one line; "" where there is none."""
    if blame.decisive is None:
        return ""
    clues = blame.decisive.clues
    # Continuations that failed say more than any clue.
    by_sampling = blame.sampled is not None and blame.sampled.step == blame.decisive.step
    reason = _FROM_HERE if by_sampling or not clues else clue_text(clues[0])
    return one_line(f"{step_text(transcript, blame.decisive.step)}: {reason}")


def standout_line(blame: Blame, transcript: Transcript | None = None) -> str:
    """The step with the strongest evidence where it is not known which one decided, on one line; "" elsewhere."""
    if blame.decision != "not_known" or not blame.named:
        return ""
    first = blame.named[0]
    return one_line(f"{step_text(transcript, first.step)}: {clue_text(first.clues[0])}")


def suspect_line(blame: Blame, step: int) -> str:
    """What was found against a step that is named, as a sentence."""
    clues = next((suspect.clues for suspect in blame.named if suspect.step == step), ())
    reason = clue_text(clues[0]) if clues else _FROM_HERE
    role = " stands out, though it may not be the cause" if blame.decision == "not_known" else ", also suspected"
    decides = blame.decisive is not None and blame.decisive.step == step
    return sentence(f"step {step + 1}{'' if decides else role}: {reason}")


class Bar(Struct, frozen=True):
    """A bar of the strip: the step, how high (0 to 7), and what it means."""

    step: int
    level: int
    token: str


def bars(blame: Blame) -> tuple[Bar, ...]:
    """A bar for each step: full for the decisive one, half for the others, low where nothing was found. A step that a
    sampled continuation passed from is green."""
    others = {other.step for other in blame.others}
    decisive = None if blame.decisive is None else blame.decisive.step
    passes = set() if blame.sampled is None else {rate.step for rate in blame.sampled.rates if rate.passed}
    bars = []
    for step in range(blame.steps):
        if step == decisive:
            bars.append(Bar(step, 7, "bad"))
        elif step in others:
            bars.append(Bar(step, 4, "warn"))
        else:
            bars.append(Bar(step, 1, "good") if step in passes else Bar(step, 0, "dim"))
    return tuple(bars)


def _which(blame: Blame, transcript: Transcript | None) -> Text:
    if blame.decisive is not None:
        return text((one_line(step_text(transcript, blame.decisive.step, blame.steps)), "bold"))
    return text(_STEPLESS.get(blame.decision) or unknown_text(blame))


def unknown_text(blame: Blame) -> str:
    """That the decisive step is not known, and what it would cost to find it by sampling."""
    if blame.sampled is not None:
        return "not known: sampling did not decide"
    unknown, price = "not known from the recording", blame.sampling_price
    if price is None:
        return unknown
    if price.refused:
        return f"{unknown}, and sampling is not possible: {one_line(price.refused)}"
    if price.cost == 0:
        return f"{unknown}; sampling would be free"
    if price.cost is not None:
        return f"{unknown}; sampling would cost about {dollars(price.cost)} at most"
    requests = count(price.requests, "request")
    return f"{unknown}; sampling would take about {requests} at most, and their cost is not known"


def _sampling_command(blame: Blame, options: str) -> View:
    price = blame.sampling_price
    if price is None or price.refused:
        return ()
    command = f"agenteval blame {one_line(blame.run + options)} --samples {price.samples}"
    return (Paragraph(text((command, "dim code"))),)


def _reliability_texts(blame: Blame) -> list[str]:
    """How reliable the evidence is that decided; nothing where sampling did."""
    if (
        blame.decisive is None
        or not blame.decisive.clues
        or (blame.sampled is not None and blame.sampled.step is not None)
    ):
        return []
    reliability = reliability_of(blame.decisive.clues[0].code)
    if reliability is None:
        return []
    low, high = percent_interval(reliability.low, reliability.high)
    failures = count(reliability.n, "measured failure")
    return [f"evidence of this kind named the right step in {reliability.right} of {failures}, {low} to {high} %"]


def _node(suspect: Suspect, blame: Blame, transcript: Transcript | None) -> Node:
    lines = [text((one_line(clue_text(clue)), "code")) for clue in _distinct(suspect.clues)]
    if suspect is blame.decisive:
        lines += [text((words, "dim")) for words in _reliability_texts(blame)]
    title = text((one_line(step_text(transcript, suspect.step)), "bold"))
    return Node(title, tuple(map(Node, lines)), sign_of(blame, suspect.step))


def _distinct(clues: Sequence[Clue]) -> list[Clue]:
    # Clues may differ in fields that their sentence does not have.
    by_text: dict[str, Clue] = {}
    for clue in clues:
        by_text.setdefault(clue_text(clue), clue)
    return list(by_text.values())


_ORIGINS = {
    "result": "which step {step} returned",
    "user": "which the user said in step {step}",
    "system": "which is in the system prompt",
    "agent": "which the agent itself said in step {step}",
    "nowhere": "which appears nowhere before",
}

_ASKED = {
    "result": "; all of its arguments are in what step {step} returned",
    "user": "; all of its arguments are the user's, from step {step}",
}

_HOW = {
    "dropped": "{gone} left out",
    "replaced": "{gone} replaced by {came}",
    "restarted": "it started over without the {gone} before",
    "masked": "a message shortened from {was} to {now}",
    "changed": "a message changed",
    "system": "the system prompt changed at line {name}",
    "tool_removed": "without the tool {name}",
    "tool_changed": "the tool {name} described otherwise",
}
"""How something left the model's sight, by the kind of the change."""

_NEEDED = {
    "value": "from here on the model did not see {needed}{stood}",
    "tool": "from here on the model could not call {needed}",
    "instruction": "from here on the model did not see what it was told about {needed}{stood}",
}

_SENTENCES: dict[ClueCode, str] = {
    ClueCode.OUT_OF_SIGHT: "{needs}: {how} in request {request}",
    ClueCode.SIGHT_CHANGED: "the model saw less from here on ({how} in request {request}); whether the failed criterion"
    " needs that is not known",
    ClueCode.PARTED: "{passed} of {runs} runs that did the same before passed; with this step {after_passed} of"
    " {after_runs}",
    ClueCode.FEW_PARTED: "{passed} of {runs} runs that did the same before passed; with this step {after_passed} of"
    " {after_runs}, which may be chance",
    ClueCode.PARTED_ELSEWHERE: "{passed} of {runs} runs that did the same before passed, some with other code or"
    " another agent; with this step {after_passed} of {after_runs}",
    ClueCode.OUT_OF_ORDER: "{written_by} changed {value} before {tool} did, which then failed or was never called",
    ClueCode.UNEXPECTED_WRITE: "{tool} changes something, and no criterion expects this call{asked}",
    ClueCode.WRONG_ARGUMENT: "{tool} {argument} is {found}{came}; {due}",
    ClueCode.CHOSEN_BY_USER: "the user's words ({named}) chose {found}; expected {wanted}",
    ClueCode.FORBIDDEN_CALL: "{tool} must not be called here{asked}",
    ClueCode.OTHER_VALUE: "the agent says {found}{came}; expected {wanted}",
    ClueCode.CALL_FAILED: "the expected call to {tool} returned an error: {result}",
    ClueCode.NEVER_CALLED: "the conversation ended without the expected call to {tool}",
    ClueCode.ERROR_IGNORED: "{tool} returned an error and was not called again: {result}",
    ClueCode.REPEATED: "{who} does the same again",
    ClueCode.REQUEST_LOST: "{name} passes on a different task: {shared} of {words} words of the request are in it",
    ClueCode.EXECUTION_FAILED: "what {name} wrote failed when it was executed in {failed}",
    ClueCode.SEEN_IN_PART: "{name} starts another task after seeing only {much} of what {seen_at} returned",
    ClueCode.CALLED_DONE: "{name} considers the request done here, with no earlier sign of trouble",
    ClueCode.BROKE_OFF: "the run broke off here{kind_said}, with no earlier sign of trouble",
    ClueCode.FIRST_RESULT: "everything later builds on what {name} adds here; there is no stronger evidence",
    ClueCode.ANSWER: "the failure is in this answer, and nothing points to an earlier step",
    ClueCode.WRONG_TEXT: "it says what must not be said",
}


class _Words(dict[str, str]):
    """The fields of a clue as words of its sentence."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__({key: value if isinstance(value, str) else shown(value) for key, value in fields.items()})
        for key in ("wanted", "found", "result"):
            if key in fields:
                self[key] = shown(fields[key])
        step = fields.get("origin_step")
        question = _ASKED.get(fields.get("origin", ""), "")
        self["asked"] = question.format(step=step + 1) if question and step is not None else ""
        origin = _ORIGINS.get(fields.get("origin", ""), "")
        self["came"] = f", {origin.format(step=step + 1 if step is not None else '')}" if origin else ""
        if "failed_step" in fields:
            self["failed"] = f"step {fields['failed_step'] + 1}"
        if "seen_step" in fields:
            self["seen_at"] = f"step {fields['seen_step'] + 1}"
            part, whole = fields["seen"], fields["whole"]
            self["much"] = f"{part} %" if fields["unit"] == "percent" else f"page {part} of {whole}"
        if "words" in fields and not isinstance(fields["words"], int):
            self["named"] = listed([shown(word) for word in fields["words"]])
        # Null, not "": an argument may be expected to be empty.
        self["due"] = "it was not expected" if fields.get("wanted") is None else f"expected {self['wanted']}"
        self.setdefault("found", "missing")
        if "change" in fields:
            sizes = [count(number, "character") for number in fields["characters"]]
            self["how"] = _HOW[fields["change"]].format(
                gone=count(fields["messages"], "message"),
                came=f"{fields['came']:,}",
                was=sizes[0],
                now=sizes[1],
                name=fields["name"],
            )
        if "need" in fields:
            needed = listed([shown(word) for word in fields["needed"]])
            origin_step = fields["origin_step"]
            stood = "" if origin_step is None else f", which is in step {origin_step + 1}"
            self["needs"] = _NEEDED[fields["need"]].format(needed=needed, stood=stood)
        self["who"] = str(fields.get("tool") or fields.get("name") or "")
        self["kind_said"] = f" ({fields['kind']})" if fields.get("kind") else ""
