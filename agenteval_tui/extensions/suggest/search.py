"""The smallest configs that agree with what a person said of runs, ranked; and what to label next.

Every config that is suggested was compiled and graded as it would be saved. All of it is deterministic; nothing is
asked and nothing is written.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Any

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agenteval_tui.core.document import Count, Document, Share
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.options import Options, limits
from agenteval_tui.extensions.suggest.conditions import (
    TEXT,
    TOOLS,
    Condition,
    Family,
    agreed,
    graded,
    rank,
)
from agenteval_tui.extensions.suggest.examples import Example, Examples, numbers
from agenteval_tui.extensions.suggest.json_values import json_families
from agenteval_tui.extensions.suggest.shapes import metric_families, shape_families
from agenteval_tui.extensions.suggest.states import state_families
from agenteval_tui.extensions.suggest.texts import text_families
from agenteval_tui.extensions.suggest.tools import tool_families
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.uxon.serialize import to_text


class SuggestOptions(Options, frozen=True, kw_only=True):
    """Where labels come from, and how many criteria are suggested."""

    from_judge: Annotated[bool, limits("Use a judge's stored verdicts as labels.")] = False
    most: Annotated[int, limits("How many criteria to print.", "N", ge=1, le=20)] = 6


MOST = SuggestOptions().most
_PARTS = 40
"""Conditions that are combined with each other."""
_RIVALS = 60
"""Conditions that vote on what to label next."""
# Bits for each further condition; the number of labels from which a condition that was made of one run costs more; bits
# for that; runs below which more of them are advised; folds of the check.
_PART_COST = 2.0
_SEVERAL = 6
_ONCE = 3.0
_FEW_RUNS = 3
_FOLDS = 8
_TOLD = 5
"""Labels from which it can be told whether suggestions are better than a guess."""
_CHECKED = 40
"""Labels that suggestions are checked with, at most."""
_FREE_TEXT = 40
"""Characters from which an argument is a text that the agent made up."""
_WORTH = 14.0
"""What a further condition may cost for each label more that it agrees with, in bits."""


class SuggestionFigures(Document, frozen=True, kw_only=True):
    """What is published of a suggested criterion beside its name."""

    title: Annotated[str, Meta(description="what it checks, in words")]
    prototype_class: str
    config: Annotated[str, Meta(description="the config, as a suite file has it")] = field(name="config_uxon")
    conditions: Annotated[Count, Meta(description="how many conditions it has")]
    agrees: Annotated[Count, Meta(description="labels that it agrees with")]
    left_out: Annotated[
        Count | None,
        Meta(description="labels that the same kind of criterion agrees with, made without the run; null: no bad run"),
    ] = None
    size: Annotated[float, Meta(description="what it takes to say it, in bits; smaller ones come first")]
    margin: Annotated[Share, Meta(description="how clearly it parts good and bad")]
    wrong: Annotated[tuple[str, ...], Meta(description="labelled runs that it gets wrong")] = ()
    passes: Annotated[Count, Meta(description="runs that pass it, of all that were looked at")] = 0
    teaches: Annotated[str, Meta(description="the run without a label that would tell most about it; empty: none")] = ""


class Suggestion(SuggestionFigures, frozen=True, kw_only=True):
    """A criterion that agrees with `agrees` of `labelled` labels. `runs`: how many were looked at."""

    labelled: int
    runs: int = 0

    @property
    def name(self) -> str:
        """A name for the criterion."""
        return self.title[:1].upper() + self.title[1:]


class Check(Struct, frozen=True):
    """How far the first suggestion can be relied on. Of `labels` labels it is right about `right` where the whole
    search was made without them; saying always what most labels say is right about `usual`."""

    right: int
    labels: int
    usual: int
    mostly: bool
    """What most labels say: True, good."""

    @property
    def better(self) -> bool:
        """Whether the suggestion knows more than which label is the more frequent one."""
        return self.right > self.usual


class Suggestions(Struct, frozen=True):
    """The best criteria, best first.

    `good` and `bad` labels of `runs` runs. `label_next`: the run without a label on which the criteria that agree
    differ most; "" where none do. `unseen`: with good runs only, the share of good runs that may not have what these
    share, at 95 % confidence; None with bad ones. `contradictions`: pairs of a good and a bad run in which the same was
    said and done, so that no criterion agrees with both.
    """

    suggestions: tuple[Suggestion, ...]
    runs: int
    good: int
    bad: int
    label_next: str = ""
    unseen: float | None = None
    contradictions: tuple[tuple[str, str], ...] = ()


def suggest(examples: Examples, most: int = MOST, *, spent: bool = True) -> Suggestions:
    """The smallest criteria that agree with the labels of `examples`; with good runs only, what these share.

    `spent`: bounds of time, money and tokens are criteria, too.

    Raises AgentevalError without a good run.
    """
    good, bad = examples.good, examples.bad
    _check_labels(examples)
    families = [
        *tool_families(examples),
        *json_families(examples),
        *state_families(examples),
        *text_families(examples),
        *shape_families(examples),
        *metric_families(examples, spent=spent),
    ]
    if not bad:
        choices = _shared(examples, families, most)
        suggestions = tuple(_suggestion(examples, choice, ()) for choice in choices)
        return Suggestions(suggestions, len(examples), good.bit_count(), 0, unseen=unseen_share(good.bit_count()))
    pool = _pool(families, good, bad)
    ranked = sorted(
        [*(_Choice((condition,)) for condition in pool), *_together(pool, good, bad)],
        key=lambda choice: choice.rank(good, bad),
    )
    chosen = _different(examples, ranked, most)
    rivals = _rivals(examples, [*chosen, *ranked[:_RIVALS]])
    return Suggestions(
        tuple(_suggestion(examples, choice, rivals) for choice in chosen),
        len(examples),
        good.bit_count(),
        bad.bit_count(),
        label_next=_next(examples, rivals),
        contradictions=_contradictions(examples),
    )


def _check_labels(examples: Examples) -> None:
    """Raise AgentevalError if these labels are not enough for a suggestion."""
    if not examples.good:
        words = "label two good runs and one bad run: agenteval label RUN passed, agenteval label RUN failed"
        if examples.bad:
            words = "label a good run, too: agenteval label RUN passed"
        if not examples.unlabelled or len(examples) < _FEW_RUNS:
            words += "; agenteval run --repeat 8 makes more runs to label"
        what = (
            ("all labelled runs are bad, which is not enough for a criterion") if examples.bad else "no run is labelled"
        )
        raise AgentevalError(what, fix=words)
    good = [examples.runs[number].transcript for number in numbers(examples.good)]
    if not examples.bad and not any(
        transcript.final_output or transcript.tool_calls or transcript.state for transcript in good
    ):
        raise AgentevalError(
            "the runs labelled good have no answer, no tool call and no state",
            fix="label runs in which the agent did something: agenteval label RUN passed",
        )


def _contradictions(examples: Examples) -> tuple[tuple[str, str], ...]:
    """Pairs of a good and a bad run with the same messages, calls and state: (good, bad)."""
    # Reversed, so that of several equal bad runs the first is named.
    bad = {_said_and_done(examples.runs[number]): number for number in reversed([*numbers(examples.bad)])}
    pairs = ((number, bad.get(_said_and_done(examples.runs[number]))) for number in numbers(examples.good))
    return tuple((examples.runs[first].run, examples.runs[other].run) for first, other in pairs if other is not None)


def _said_and_done(example: Example) -> str:
    messages = [[message.role, message.content] for message in example.transcript.messages]
    calls = [[call.name, call.arguments, call.result, call.status] for call in example.transcript.tool_calls]
    state = [[probe.name, probe.before, probe.after] for probe in example.transcript.state]
    return repr([messages, example.transcript.final_output, calls, state, dict(example.variables)])


def check(examples: Examples) -> Check | None:
    """How good the suggestions are, measured on labels that they were not made from (cross-validation: Stone 1974).

    The labels are split into `_FOLDS` folds, each with its share of good and bad; the whole search runs once without
    each fold. A criterion that was chosen among thousands agrees with a few labels by chance alone, and its own
    leave-one-out does not show that, because the criterion was chosen with all labels. None if all labels are of one
    kind, or if there are fewer than `_TOLD`. Uses at most `_CHECKED` labels. Takes about as long as `_FOLDS` searches.
    """
    if not examples.good or not examples.bad or examples.labelled.bit_count() < _TOLD:
        return None
    ordered = [*numbers(examples.good), *numbers(examples.bad)]
    # Good ones first, then bad ones, and every n-th of them: the share of both stays.
    apart = -(-len(ordered) // _CHECKED)
    labelled = [examples.runs[number] for number in ordered[::apart]]
    folds = min(_FOLDS, len(labelled))
    right = 0
    for fold in range(folds):
        training = Examples([example for number, example in enumerate(labelled) if number % folds != fold])
        held_out = Examples(labelled[fold::folds])
        first = suggest(training, 1).suggestions if training.good else ()
        passed = 0
        if first:
            passed, _ = graded(held_out, CriterionSpec("", first[0].prototype_class, first[0].config))
        right += agreed(passed, held_out.good, held_out.bad)
    good = sum(example.good is True for example in labelled)
    return Check(right, len(labelled), max(good, len(labelled) - good), good * 2 >= len(labelled))


def criteria_of_good_runs(
    transcripts: Sequence[Transcript], variables: Mapping[str, Any] | None = None, most: int = 3
) -> tuple[CriterionSpec, ...]:
    """Criteria for a new test, made from what these good runs share: first their tool calls with arguments, then the
    facts in their answers that they got from tools, then the form of the answers. All these runs pass the criteria.
    One run is enough; () if no criterion can be made. There are no criteria for time, cost and tokens, because these
    differ between good runs.

    `variables`: the dataset's row of all these runs.
    """
    examples = Examples(
        [Example(str(number), transcript, variables or {}, True) for number, transcript in enumerate(transcripts)]
    )
    if not examples.good:
        return ()
    suggestions = suggest(examples, most, spent=False).suggestions
    return tuple(
        CriterionSpec(suggestion.name, suggestion.prototype_class, suggestion.config) for suggestion in suggestions
    )


def unseen_share(good: int) -> float:
    """The largest share of runs that may lack a property that all of `good` runs have, at 95 % confidence:
    1 - 0.05 ** (1 / n), about 3 / n ("rule of three": Hanley and Lippman-Hand 1983, JAMA 249:1743)."""
    return 1.0 - math.pow(0.05, 1.0 / good)


class _Choice(Struct, frozen=True):
    """Conditions that must all hold, or (`any_of`) texts of which the answer must contain one."""

    parts: tuple[Condition, ...]
    any_of: bool = False

    @property
    def passes(self) -> int:
        """The runs that pass."""
        mask = self.parts[0].passes
        for part in self.parts[1:]:
            mask = mask | part.passes if self.any_of else mask & part.passes
        return mask

    @property
    def cost(self) -> float:
        """The cost of all parts together, in bits."""
        return sum(part.cost for part in self.parts) + _PART_COST * (len(self.parts) - 1)

    @property
    def margin(self) -> float:
        """The narrowest of its parts'."""
        return min(part.margin for part in self.parts)

    @property
    def title(self) -> str:
        """In words."""
        return (" or " if self.any_of else " and ").join(part.title for part in self.parts)

    def rank(self, good: int, bad: int) -> tuple[float, float, float, str]:
        """Best first: agreement, then size, then margin."""
        return (-agreed(self.passes, good, bad), self.cost, -self.margin, self.title)

    @property
    def prototype(self) -> str:
        """What is looked at: what its parts need that need something."""
        needed = [part for part in self.parts if not part.whole]
        if needed:
            return needed[0].prototype
        return TOOLS if all(part.prototype == TOOLS for part in self.parts) else TEXT

    @property
    def spec(self) -> CriterionSpec:
        """The criterion."""
        needed = [part for part in self.parts if not part.whole]
        extraction = needed[0].extraction if needed else {}
        metrics = _any_of(self.parts) if self.any_of else _merged([part.metric for part in self.parts])
        text = to_text({**extraction, "metrics": metrics})
        return CriterionSpec(self.title[:1].upper() + self.title[1:], self.prototype, text)


def _pool(families: Sequence[Family], good: int, bad: int) -> list[Condition]:
    """The conditions that can be a part of a criterion: at least one good run passes each."""
    conditions = [condition for family in families for condition in family.fit(good, bad)]
    if (good | bad).bit_count() >= _SEVERAL:
        # A condition that was made from one of several labelled runs describes that run: it costs more.
        conditions = [
            replace(condition, cost=condition.cost + _ONCE)
            if condition.source > 0 and (condition.source & good).bit_count() == 1
            else condition
            for condition in conditions
        ]
    return sorted(
        (condition for condition in conditions if condition.passes & good),
        key=lambda condition: rank(condition, good, bad),
    )


# Several conditions


def _together(pool: Sequence[Condition], good: int, bad: int) -> Iterator[_Choice]:
    """Two or three conditions that together agree with more labels than each condition alone."""
    # First those that lack no good run and stop some bad ones: "and" only takes runs away.
    every = [condition for condition in pool if not good & ~condition.passes and bad & ~condition.passes]
    most = [condition for condition in pool if (good & ~condition.passes).bit_count() <= max(1, good.bit_count() // 10)]
    parts = list(_distinct([*every[: _PARTS // 2], *most], good | bad))[:_PARTS]
    pairs: list[_Choice] = []
    for left, right in combinations(parts, 2):
        if not _go_together(left, right):
            continue
        both = _Choice((left, right))
        least = max(agreed(left.passes, good, bad), agreed(right.passes, good, bad))
        gained = agreed(both.passes, good, bad) - least
        if gained > 0 and min(left.cost, right.cost) + _PART_COST <= _WORTH * gained:
            pairs.append(both)
    pairs.sort(key=lambda choice: choice.rank(good, bad))
    yield from pairs[:_PARTS]
    masks = [*(condition.passes for condition in pool[:1]), *(pair.passes for pair in pairs[:1])]
    best = max((agreed(passes, good, bad) for passes in masks), default=0)
    if best < (good | bad).bit_count():
        # Only where no pair agrees with all labels: triples are many.
        for pair in pairs[:8]:
            for part in parts:
                three = _Choice((*pair.parts, part))
                if (
                    part not in pair.parts
                    and all(_go_together(part, other) for other in pair.parts)
                    and part.cost + _PART_COST
                    <= _WORTH * (agreed(three.passes, good, bad) - agreed(pair.passes, good, bad))
                ):
                    yield three
    yield from _alternatives(pool, good, bad)


def _alternatives(pool: Sequence[Condition], good: int, bad: int) -> Iterator[_Choice]:
    """Texts that no bad answer contains, chosen greedily so that each good answer contains at least one."""
    for key in ("contains", "starts_with", "ends_with"):
        usable = [
            condition for condition in pool if set(condition.metric) == {"type", key} and not condition.passes & bad
        ]
        chosen: list[Condition] = []
        uncovered = good
        while uncovered and len(chosen) < 4:
            best = min(
                usable,
                key=lambda condition: (-(condition.passes & uncovered).bit_count(), condition.cost, condition.title),
                default=None,
            )
            if best is None or not best.passes & uncovered:
                break
            chosen.append(best)
            uncovered &= ~best.passes
        # A text for nearly each good run would list the runs, and say nothing of the next one.
        if 1 < len(chosen) <= good.bit_count() / 2:
            yield _Choice(tuple(chosen), any_of=True)


def _distinct(conditions: Sequence[Condition], labelled: int) -> Iterator[Condition]:
    """The first of those that hold of the same labelled runs."""
    keys: set[tuple[int, str]] = set()
    for condition in conditions:
        key = condition.passes & labelled, condition.prototype
        if key not in keys:
            keys.add(key)
            yield condition


def _go_together(left: Condition, right: Condition) -> bool:
    """Whether one criterion can have both."""
    # Two bounds of the same word, sign or tool are a range, which is one condition already.
    if left.about and left.about == right.about and left.about.startswith(("word", "sign", "tool")):
        return False
    if left.whole or right.whole:
        return True
    return left.prototype == right.prototype and left.extraction == right.extraction


def _any_of(parts: Sequence[Condition]) -> list[Mapping[str, Any]]:
    (key,) = set(parts[0].metric) - {"type"}
    return [{"type": "TextMatch", f"{key}_any": [part.metric[key] for part in parts]}]


def _merged(metrics: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The metrics; those of one type as one where that says the same."""
    merged: list[dict[str, Any]] = []
    for metric in metrics:
        for earlier in merged:
            joined = _joined(earlier, metric)
            if joined is not None:
                earlier.clear()
                earlier.update(joined)
                break
        else:
            merged.append(dict(metric))
    return list(merged)


def _joined(metric: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    kind = metric["type"]
    if kind != other["type"] or kind not in ("TextMatch", "ToolCheck", "Length", "Tokens"):
        return None
    joined = dict(metric)
    for key, value in other.items():
        if key == "type":
            continue
        if key == "contains" and ("contains" in joined or "contains_all" in joined):
            joined["contains_all"] = [*joined.get("contains_all", [joined.pop("contains", "")]), value]
        elif key not in joined:
            joined[key] = value
        elif key in ("not_contains_any", "forbidden_tools", "tools"):
            joined[key] = [*joined[key], *value]
        else:
            return None
    return joined


# From choices to suggestions


def _holds(examples: Examples, choice: _Choice) -> bool:
    """Whether its config grades as the choice says it does. If not, it would be another choice than the one ranked."""
    passed, failed = graded(examples, choice.spec)
    return passed == choice.passes and not examples.labelled & ~(passed | failed)


def _different(examples: Examples, ranked: Sequence[_Choice], most: int) -> list[_Choice]:
    """The best ones, without those that say of the same thing what a better one says, of the same runs. One that
    agrees with fewer labels than another is worth a look only if it is smaller."""
    good, bad = examples.good, examples.bad
    chosen: list[_Choice] = []
    least: dict[int, float] = {}
    keys: set[tuple[int, tuple[str, ...]]] = set()
    per_subject: dict[tuple[str, ...], int] = {}
    for choice in ranked:
        about = tuple(sorted({part.about.partition(" ")[0] for part in choice.parts}))
        key = choice.passes, about
        right = agreed(choice.passes, good, bad)
        # The grading comes last of the conditions: it costs most.
        if (
            key in keys
            or per_subject.get(about, 0) >= 2
            or any(choice.cost >= cost for better, cost in least.items() if better > right)
            or not _holds(examples, choice)
        ):
            continue
        least[right] = min(least.get(right, choice.cost), choice.cost)
        keys.add(key)
        per_subject[about] = per_subject.get(about, 0) + 1
        chosen.append(choice)
        if len(chosen) == most:
            break
    return chosen


def _suggestion(examples: Examples, choice: _Choice, rivals: Sequence[tuple[int, float]]) -> Suggestion:
    good, bad = examples.good, examples.bad
    wrong = (good & ~choice.passes) | (bad & choice.passes)
    spec = choice.spec
    return Suggestion(
        title=choice.title,
        prototype_class=spec.prototype_class,
        config=spec.config_text,
        conditions=len(choice.parts),
        agrees=agreed(choice.passes, good, bad),
        labelled=examples.labelled.bit_count(),
        size=round(choice.cost, 1),
        margin=round(choice.margin, 3),
        wrong=examples.ids(wrong),
        left_out=_left_out(examples, choice) if bad else None,
        passes=choice.passes.bit_count(),
        runs=len(examples),
        teaches=_teaches(examples, choice, rivals),
    )


def _left_out(examples: Examples, choice: _Choice) -> int:
    """On how many labelled runs the same kinds of conditions, fitted without the run, are right about it."""
    right = 0
    for number in numbers(examples.labelled):
        bit = 1 << number
        good, bad = examples.good & ~bit, examples.bad & ~bit
        holds = _refitted(choice, good, bad, bit)
        right += holds == bool(examples.good & bit)
    return right


def _refitted(choice: _Choice, good: int, bad: int, bit: int) -> bool:
    if not good:
        return True  # nothing is known of what is good
    if choice.any_of:
        return any(part.passes & bit and part.source & good for part in choice.parts)
    for part in choice.parts:
        # Each part answers for the bad runs that it keeps out.
        own = bad & ~part.passes if len(choice.parts) > 1 else bad
        conditions = part.family.fit(good, own)
        if not conditions or not conditions[0].passes & bit:
            return False
    return True


# What to label next


def _rivals(examples: Examples, choices: Sequence[_Choice]) -> list[tuple[int, float]]:
    """What could be meant, as (the runs that pass, weight): half of it for each bit more, a sixteenth for each label
    missed."""
    good, bad = examples.good, examples.bad
    needed: dict[int, float] = {}
    for choice in choices:
        missed = (good | bad).bit_count() - agreed(choice.passes, good, bad)
        needed[choice.passes] = min(needed.get(choice.passes, math.inf), choice.cost + 4.0 * missed)
    # Of the least, so that nothing is too small for a number.
    least = min(needed.values(), default=0.0)
    return sorted((passes, math.exp2(least - cost)) for passes, cost in needed.items())


def _next(examples: Examples, rivals: Sequence[tuple[int, float]]) -> str:
    """The run without a label on which the vote of what could be meant is closest to even (query by committee: Seung,
    Opper and Sompolinsky 1992)."""
    total = sum(weight for _, weight in rivals) or 1.0
    best, run = 0.0, ""
    for number in numbers(examples.unlabelled):
        share = sum(weight for passes, weight in rivals if passes >> number & 1) / total
        if min(share, 1 - share) > best:
            best, run = min(share, 1 - share), examples.runs[number].run
    return run


def _teaches(examples: Examples, choice: _Choice, rivals: Sequence[tuple[int, float]]) -> str:
    """The run without a label on which most of the others contradict this one."""
    best, run = 0.0, ""
    for number in numbers(examples.unlabelled):
        own = choice.passes >> number & 1
        against = sum(weight for passes, weight in rivals if passes >> number & 1 != own)
        if against > best:
            best, run = against, examples.runs[number].run
    return run


# Good runs only


def _shared(examples: Examples, families: Sequence[Family], most: int) -> list[_Choice]:
    """What all good runs have in common, one criterion for each subject: the calls, texts, the form, how much."""
    good = examples.good
    conditions = [condition for family in families for condition in family.fit(good, 0)]
    others = examples.unlabelled.bit_count()
    ranked = sorted(
        conditions,
        key=lambda condition: (
            -_tells(condition, good),
            (condition.passes & ~good).bit_count() / max(others, 1),
            condition.cost,
            condition.title,
        ),
    )
    chosen: list[_Choice] = []
    subjects: set[str] = set()
    for condition in ranked:
        subject = _subject(condition)
        if not _tells(condition, good) or subject in subjects:
            continue
        parts = [condition]
        if subject == "texts":
            parts += _more_texts(condition, [other for other in ranked if _subject(other) == subject])
        if subject == "tools":
            parts += _more_tools(condition, ranked, good)
        choice = _Choice(tuple(parts))
        if _holds(examples, choice):
            chosen.append(choice)
            subjects.add(subject)
        if len(chosen) == most:
            break
    return chosen


def _subject(condition: Condition) -> str:
    kind = condition.about.partition(" ")[0]
    if kind == "tool" and "forbidden_tools" in condition.metric:
        return "unused"
    if kind == "state":
        return condition.about.rpartition(" ")[0]  # each probe is a subject of its own
    return {"tool": "tools", "starts_with": "edges", "ends_with": "edges"}.get(kind, kind)


def _tells(condition: Condition, good: int) -> float:
    """How much a shared condition says about what a good run is: a call or a text more than how long an answer is. 0:
    it says what would be true of nearly anything."""
    kind = condition.about.partition(" ")[0]
    metric = condition.metric
    if kind in ("tool", "calls"):
        tool = (metric.get("tools") or [{}])[0]
        arguments = tool.get("arguments") or {}
        if any(len(str(value)) > _FREE_TEXT for value in arguments.values()):
            return 4.5  # words of the agent's own choice: the next good run may choose others
        if arguments and tool.get("required", True):
            return 6.0 + len(arguments) / 10
        return 4.0 if metric.get("tools") else 0.0
    if kind == "order":
        return 3.0 if metric.get("mode") == "strict" else 0.0
    if kind == "json":
        return 5.0 if "required_keys" in metric else 3.0 if metric["type"] in ("TextMatch",) else 1.0
    if kind == "row":
        return 5.0 if "not_contains_any" not in metric else 0.0
    if kind == "texts":
        return 4.0
    if kind in ("Json",):
        return 4.5
    if kind == "state":
        return 0.0 if "schema" in metric else 5.5 if condition.about.endswith("change") else 3.5
    if kind in ("Length", "Steps", "Latency"):
        # Time is the machine's as much as the agent's.
        return (0.5 if kind == "Latency" else 1.0) * any(key.startswith("max") for key in metric)
    return 2.0 * (kind == "starts_with" and good.bit_count() > 1)


def _more_texts(first: Condition, others: Sequence[Condition]) -> list[Condition]:
    """Up to two further texts, none a part of another."""
    chosen = [first]
    for other in others:
        text = other.metric.get("contains")
        if not text or "contains" not in first.metric or len(chosen) == 3:
            continue
        if not any(_overlap(text, condition.metric["contains"]) for condition in chosen):
            chosen.append(other)
    return chosen[1:]


def _overlap(text: str, other: str) -> bool:
    """Whether two texts share a word."""
    return bool(set(text.lower().split()) & set(other.lower().split())) or text in other or other in text


def _more_tools(first: Condition, ranked: Sequence[Condition], good: int) -> list[Condition]:
    """A call of each other tool."""
    subjects = {first.about}
    more = []
    for condition in ranked:
        if (
            _subject(condition) == "tools"
            and condition.about not in subjects
            and _tells(condition, good)
            and condition.metric["type"] == "ToolCheck"
        ):
            subjects.add(condition.about)
            more.append(condition)
    return more[:5]
