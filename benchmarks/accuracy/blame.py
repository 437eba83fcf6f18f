"""How often the free answer of `agenteval blame` names the step that people named.

    python -m benchmarks.accuracy.blame DATA [--write]

DATA is a folder with `agentrx/` (Barke et al.: failures of tau-bench retail and Magentic-One, with their root causes),
`who_and_when/` (Zhang et al.: failures of several agents, with the decisive step), and `tau_bench/`, whose recordings
get planted losses. `--write` puts the tables into docs/blame.md, and how often each kind of evidence was right into
analysis/blame/measurements.py: by these counts `blame` calls a step decisive, or does not.

`analysis/blame` fixes the rules and their order; the last column of the table of all answers shows the result if the
order is learned from all other cases and tried on the case left out.

The rules for conversations of Magentic-One were chosen on one part of the cases and confirmed on the other (`part_of`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.analysis.blame.data_flow import call_steps
from agenteval_tui.analysis.blame.expectation import expectation_of
from agenteval_tui.analysis.blame.free_answer import OTHERS, clues_in, suspects_of
from agenteval_tui.analysis.blame.model import STRENGTH, Clue, ClueCode
from agenteval_tui.analysis.blame.reliability import is_reliable
from agenteval_tui.analysis.statistics import wilson
from agenteval_tui.core.numbers import percent_interval
from agenteval_tui.extensions.multi_agent import importer as multi_agent
from agenteval_tui.extensions.tau_bench import importer as tau_bench
from agenteval_tui.formats.importers.derived_criteria import DerivedGrader
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.stream.json_stream import JsonElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_verbs import changes_something
from benchmarks.accuracy.blame_planted import LOST, SIMULATED, losses, repetitions

PAGE = Path(__file__).parents[2] / "docs" / "blame.md"
MEASUREMENTS_FILE = Path(__file__).parents[2] / "agenteval_tui" / "analysis" / "blame" / "measurements.py"
SHOWN_BEGIN, SHOWN_END = "<!-- shown: made by python -m benchmarks.accuracy.blame -->", "<!-- end of shown -->"
KINDS_BEGIN, KINDS_END = "<!-- kinds: made by python -m benchmarks.accuracy.blame -->", "<!-- end of kinds -->"
BEGIN, END = "<!-- accuracy: made by python -m benchmarks.accuracy.blame -->", "<!-- end of accuracy -->"
HELD_BEGIN, HELD_END = "<!-- held out: made by python -m benchmarks.accuracy.blame -->", "<!-- end of held out -->"
RECORDINGS = "gpt-4o-airline-tasks-00-24.json"
NEAR = 3
TAU, MAGENTIC = "tau-bench retail (AgentRx)", "Magentic-One (AgentRx)"
BY_HAND, GENERATED = "hand-crafted (Who&When)", "algorithm-generated (Who&When)"


BESIDE = (ClueCode.SEEN_IN_PART, ClueCode.CALLED_DONE)
"""Clues that name further steps, and the decisive step only if there is no other clue."""
_LATE = 10  # the first step at which the end of a broken-off run is a late end


_WIDTH = 120  # of a line of code
Measurements = dict[ClueCode, dict[str, tuple[int, int]]]


class Case(Struct, frozen=True):
    """A failed run with the step (from 0) that people named. A run in several data sets has the same `name` in each;
    `baselines`: the steps that simple rules name."""

    source: str
    name: str
    truth: int
    clues: tuple[Clue, ...]
    steps: int
    baselines: dict[str, int]

    @property
    def answer(self) -> int:
        """The step that the free answer names; the last step if it names none."""
        suspects = suspects_of(self.clues)
        return suspects[0].step if suspects else self.steps - 1

    @property
    def named(self) -> list[int]:
        """All steps that the free answer names: the decisive step and the others."""
        return named_by(self, self.clues)


class Score(Struct, frozen=True):
    """How many of `n` answers are right, and how many are within three steps."""

    n: int
    exact: int
    near: int


def tau_cases(folder: Path) -> Iterator[Case]:
    """The failures of tau-bench. Their root causes count steps from 1; step 1 is the system prompt."""
    causes = {one["trajectory_id"]: _root(one) for one in _read(folder / "tau_retail_root_causes.json")}
    failed = _read(folder / "tau_retail_failed.json")
    read = tau_bench.FORMAT.recordings
    assert read is not None
    with Source(folder / "tau_retail_failed.json") as source:
        recordings = [one for one in read(source) if isinstance(one, Recording)]
    for value, found in zip(failed, recordings, strict=True):
        grader = DerivedGrader()
        results = (*found.results, *grader.results(found.expected, found.transcript, found.variables))
        specs = {spec.hash: spec for spec in grader.specs(found.expected)}
        clues = clues_in("", found.transcript, results, specs)
        baselines = _writes(found.transcript, results)
        yield Case(
            TAU, str(value["task_id"]), causes[value["task_id"]] - 1, clues, len(found.transcript.messages), baselines
        )


def magentic_cases(folder: Path) -> Iterator[Case]:
    """The failures of Magentic-One; steps count from 1."""
    for one in _read(folder / "magentic_root_causes.json"):
        history = _read(folder / "magentic" / f"{one['trajectory_id']}.json")
        yield _of_several(MAGENTIC, str(one["trajectory_id"]), history, _root(one) - 1, len(history))


def who_and_when_cases(folder: Path) -> Iterator[Case]:
    """The failures of Who&When; steps count from 0, and the history may begin after the question."""
    for source, name in ((BY_HAND, "hand_crafted"), (GENERATED, "algorithm_generated")):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            yield _of_several(source, value["question_ID"], value, int(value["mistake_step"]), len(value["history"]))


def cases_of(data: Path) -> list[Case]:
    """All cases of a folder with the data sets."""
    return [
        *tau_cases(data / "agentrx"),
        *magentic_cases(data / "agentrx"),
        *who_and_when_cases(data / "who_and_when"),
    ]


class Outcome(Struct, frozen=True):
    """A measured failure of the set `source`: the kind of its strongest evidence, None where there is none, and whether
    that names the right step."""

    source: str
    code: ClueCode | None
    right: bool


def outcomes_of(cases: Sequence[Case], data: Path) -> list[Outcome]:
    """All measured failures: those that people labelled, and those with a planted step."""
    outcomes = []
    for case in cases:
        suspects = suspects_of(case.clues)
        code = suspects[0].clues[0].code if suspects else None
        outcomes.append(Outcome(case.source, code, case.answer == case.truth))
    planted = ((LOST, losses(data / "tau_bench" / RECORDINGS)), (SIMULATED, repetitions()))
    outcomes += [Outcome(source, one.code, one.right) for source, answered in planted for one in answered]
    return outcomes


def counts_of(outcomes: Iterable[Outcome]) -> Measurements:
    """For each kind of evidence and each set in which it was the strongest, how often it was right, of how many."""
    counts: Measurements = {}
    for outcome in outcomes:
        if outcome.code is not None:
            by_source = counts.setdefault(outcome.code, {})
            right, n = by_source.get(outcome.source, (0, 0))
            by_source[outcome.source] = right + outcome.right, n + 1
    return {code: counts[code] for codes in STRENGTH for code in codes if code in counts}


def measurements_text(counts: Measurements) -> str:
    """The module that holds the counts."""
    lines = [
        '"""How often each kind of evidence named the right step: (right, of how many), by the set of failures.',
        "",
        "Made by `python -m benchmarks.accuracy.blame DATA --write`, as are the tables of docs/blame.md. A failure",
        "counts for the kind of its strongest evidence.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "MEASUREMENTS: dict[str, dict[str, tuple[int, int]]] = {",
    ]
    for code, by_source in counts.items():
        entries = ", ".join(f'"{source}": ({right}, {n})' for source, (right, n) in by_source.items())
        one_line = f'    "{code}": {{{entries}}},'
        if len(one_line) <= _WIDTH:
            lines.append(one_line)
        else:
            entry_lines = [f'        "{source}": ({right}, {n}),' for source, (right, n) in by_source.items()]
            lines += [f'    "{code}": {{', *entry_lines, "    },"]
    return "\n".join([*lines, "}", ""])


def kinds_table(counts: Measurements) -> str:
    """The reliability of each kind of evidence, and whether its step is called decisive."""
    rows = [
        "| evidence | right, by set of failures | in all | 95 % interval | called decisive |",
        "|---|---|---|---|---|",
    ]
    for code, by_source in counts.items():
        right, n = map(sum, zip(*by_source.values(), strict=True))
        low, high = percent_interval(*wilson(right, n))
        sets = "; ".join(f"{source} {right} of {n}" for source, (right, n) in by_source.items())
        decisive = "**yes**" if is_reliable(list(by_source.values())) else "no"
        rows.append(f"| `{code}` | {sets} | {right} of {n} | {low} to {high} % | {decisive} |")
    return "\n".join(rows)


def shown_table(outcomes: Sequence[Outcome]) -> str:
    """By set of failures: how many steps are called decisive and how many of these are right; the same where the counts
    are those of all other failures; and how it would be if the strongest evidence always decided."""
    counts = counts_of(outcomes)
    rows = [
        "| failures | n | a step is named | of these right | named and right, if decided by all other failures |"
        " if a step were always named, right |",
        "|---|---|---|---|---|---|",
    ]
    for source in dict.fromkeys(outcome.source for outcome in outcomes):
        group = [outcome for outcome in outcomes if outcome.source == source]
        shown = [outcome for outcome in group if _is_shown(outcome, counts)]
        right = sum(outcome.right for outcome in shown)
        left = [outcome for outcome in group if _is_shown(outcome, without(counts, outcome))]
        rows.append(
            f"| {source} | {len(group)} | {len(shown)} ({100 * len(shown) / len(group):.0f} %) |"
            f" {f'{right} ({100 * right / len(shown):.0f} %)' if shown else '–'} |"
            f" {len(left)}, {sum(outcome.right for outcome in left)} | {sum(outcome.right for outcome in group)} |"
        )
    return "\n".join(rows)


def without(counts: Measurements, outcome: Outcome) -> Measurements:
    """The counts without one failure."""
    if outcome.code is None:
        return counts
    by_source = dict(counts[outcome.code])
    right, n = by_source.pop(outcome.source)
    if n > 1:
        by_source[outcome.source] = right - outcome.right, n - 1
    return {**counts, outcome.code: by_source}


def _is_shown(outcome: Outcome, counts: Measurements) -> bool:
    return outcome.code is not None and is_reliable(list(counts[outcome.code].values()))


def score(cases: Sequence[Case], answer: Callable[[Case], int]) -> Score:
    """How often an answer is right."""
    off = [abs(answer(case) - case.truth) for case in cases]
    return Score(len(off), off.count(0), sum(one <= NEAR for one in off))


def score_named(cases: Sequence[Case], named: Callable[[Case], list[int]] = lambda case: case.named) -> Score:
    """How often one of the named steps is right."""
    off = [min(abs(step - case.truth) for step in named(case)) for case in cases]
    return Score(len(off), off.count(0), sum(one <= NEAR for one in off))


def left_out(cases: Sequence[Case]) -> Score:
    """The score with a learned order of clues: for each case, all other cases show how often the first clue of a code
    names the right step (with a prior of two cases at one half)."""
    names: Counter[ClueCode] = Counter()
    right: Counter[ClueCode] = Counter()
    for case in cases:
        for code, step in _first_steps(case).items():
            names[code] += 1
            right[code] += step == case.truth

    def answer(case: Case) -> int:
        steps = _first_steps(case)

        def precision(code: ClueCode) -> float:
            return (right[code] - (steps[code] == case.truth) + 1) / (names[code] - 1 + 2)

        return steps[max(steps, key=precision)] if steps else case.steps - 1

    return score(cases, answer)


def table(cases: Sequence[Case]) -> str:
    """The table of the page."""
    rows = [
        "| failures | n | exact | within three steps | one of up to three named, exact / within three |"
        " simple rule, exact / within three | order learned without the case, exact / within three |",
        "|---|---|---|---|---|---|---|",
    ]
    for source in dict.fromkeys(case.source for case in cases):
        group = [case for case in cases if case.source == source]
        ours, named, learned = score(group, lambda case: case.answer), score_named(group), left_out(group)
        simple = [
            (name, score(group, lambda case, name=name: case.baselines[name]))  # type: ignore[misc]
            for name in group[0].baselines
        ]
        said = "; ".join(f"{name} {one.exact} / {one.near}" for name, one in simple)
        rows.append(
            f"| {source} | {ours.n} | {ours.exact} ({100 * ours.exact / ours.n:.1f} %) | {ours.near} |"
            f" {named.exact} / {named.near} |"
            f" {said} | {learned.exact} / {learned.near} |"
        )
    return "\n".join(rows)


def part_of(case: Case) -> str:
    """The part of a case, from its name alone: rules are chosen on the cases of "a", and tried on those of "b"."""
    return "ab"[hashlib.sha256(case.name.encode()).digest()[0] & 1]


def named_by(case: Case, clues: Iterable[Clue]) -> list[int]:
    """The steps that the free answer would name with these clues; the last step if there is no clue."""
    return [one.step for one in suspects_of(clues)[: 1 + OTHERS]] or [case.steps - 1]


def _before(case: Case) -> list[int]:
    return named_by(case, (clue for clue in case.clues if clue.code not in BESIDE))


def _strongest(case: Case) -> list[int]:
    first = [one.step for one in suspects_of(clue for clue in case.clues if clue.code in BESIDE)]
    return list(dict.fromkeys([*first, *_before(case)]))[: 1 + OTHERS]


def _no_late_end(case: Case) -> list[int]:
    late = [clue for clue in case.clues if clue.code is ClueCode.BROKE_OFF and clue.step >= _LATE]
    return named_by(case, (clue for clue in case.clues if clue.code not in BESIDE and clue not in late))


VARIANTS: dict[str, Callable[[Case], list[int]]] = {
    "as they were": _before,
    "with the two clues, as further steps": lambda case: case.named,
    "with the two clues as the strongest": _strongest,
    "without late break-offs": _no_late_end,
}


def held_out_table(cases: Sequence[Case]) -> str:
    """The rules that were tried for Magentic-One: on the part of the cases where they were found, and on the other."""
    group = [case for case in cases if case.source in (MAGENTIC, BY_HAND)]
    parts = {name: [case for case in group if part_of(case) == name] for name in "ab"}
    heads = [f"{said} ({len(parts[name])})" for name, said in (("a", "chosen on"), ("b", "held out"))]
    rows = [
        f"| rules | {heads[0]}: decisive step | one of the named steps |"
        f" {heads[1]}: decisive step | one of the named steps |",
        "|---|---|---|---|---|",
    ]
    for said, variant in VARIANTS.items():
        scores = []
        for name in "ab":
            scores += [score(parts[name], lambda case, of=variant: of(case)[0]), score_named(parts[name], variant)]  # type: ignore[misc]
        rows.append(f"| {said} | " + " | ".join(f"{one.exact} / {one.near}" for one in scores) + " |")
    return "\n".join(rows)


def people(cases: Sequence[Case]) -> Score:
    """How often the people of two data sets named the same step for the same run."""
    by_hand = {case.name: case.truth for case in cases if case.source == BY_HAND}
    both = [case for case in cases if case.source == MAGENTIC and case.name in by_hand]
    return score(both, lambda case: by_hand[case.name])


def main() -> None:
    """Measure, print the table, and with --write put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    cases = cases_of(given.data)
    outcomes = outcomes_of(cases, given.data)
    counts = counts_of(outcomes)
    if given.write:
        MEASUREMENTS_FILE.write_text(measurements_text(counts), encoding="utf-8")
    for begin, made, end in (
        (SHOWN_BEGIN, shown_table(outcomes), SHOWN_END),
        (KINDS_BEGIN, kinds_table(counts), KINDS_END),
        (BEGIN, table(cases), END),
        (HELD_BEGIN, held_out_table(cases), HELD_END),
    ):
        print(made)
        if given.write:
            head, _, rest = PAGE.read_text(encoding="utf-8").partition(begin)
            PAGE.write_text(f"{head}{begin}\n\n{made}\n\n{end}{rest.partition(end)[2]}", encoding="utf-8")
    print(people(cases))


# Inside


def _read(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _root(one: dict[str, object]) -> int:
    failures, cause = one["failures"], one["root_cause"]
    assert isinstance(failures, list)
    assert isinstance(cause, dict)
    return next(int(failure["step_number"]) for failure in failures if failure["failure_id"] == cause["failure_id"])


def _of_several(source: str, name: str, value: object, truth: int, steps: int) -> Case:
    (found,) = multi_agent.recordings([JsonElement(value, 1, 1)])
    assert isinstance(found, Recording)
    before = len(found.transcript.messages) - steps
    clues = clues_in("", found.transcript, (), {})
    baselines = {"last message": before + steps - 1, "first message": before + (before == 0)}
    return Case(source, name, truth + before, clues, len(found.transcript.messages), baselines)


def _writes(transcript: Transcript, results: Sequence[CriterionResult]) -> dict[str, int]:
    """The last call that changes something, and the first call that is not in the ground truth."""
    made = {call.call for call in expectation_of(results, {}).calls if call.call is not None}
    steps = call_steps(transcript)
    writes = [
        number
        for number, call in enumerate(transcript.tool_calls)
        if call.status != "error" and changes_something(call.name)
    ]
    last = len(transcript.messages) - 1
    unexpected = [number for number in writes if number not in made]
    return {
        "last write": steps[writes[-1]] if writes else last,
        "first unexpected write": steps[unexpected[0]] if unexpected else last,
    }


def _first_steps(case: Case) -> dict[ClueCode, int]:
    first: dict[ClueCode, int] = {}
    for clue in sorted(case.clues, key=lambda one: one.step):
        first.setdefault(clue.code, clue.step)
    return first


if __name__ == "__main__":
    main()
