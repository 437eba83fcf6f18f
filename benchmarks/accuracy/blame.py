"""How often the free answer of `agenteval blame` names the step that people named.

    python -m benchmarks.accuracy.blame DATA [--write]

DATA is a folder with `agentrx/` (Barke et al.: failures of tau-bench retail and Magentic-One, with their root causes)
and `who_and_when/` (Zhang et al.: failures of several agents, with the decisive step). `--write` puts the table into
docs/blame.md. The rules, and which of them counts more, are fixed in `analysis/blame`; the last column shows how the
answer fares where that order is learned from all other cases and tried on the one left out.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from agenteval_tui.analysis.blame.data_flow import call_steps
from agenteval_tui.analysis.blame.expectation import expectation_of
from agenteval_tui.analysis.blame.free_answer import clues_in, suspects_of
from agenteval_tui.analysis.blame.model import Clue, ClueCode
from agenteval_tui.formats.importers import multi_agent, tau_bench
from agenteval_tui.formats.importers.derived_criteria import DerivedGrader
from agenteval_tui.formats.importers.recording import Recording
from agenteval_tui.formats.stream.json_stream import JsonElement
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.grading.results import CriterionResult
from agenteval_tui.transcripts.model import Transcript
from agenteval_tui.transcripts.tool_verbs import changes_something

PAGE = Path(__file__).parents[2] / "docs" / "blame.md"
BEGIN, END = "<!-- accuracy: made by python -m benchmarks.accuracy.blame -->", "<!-- end of accuracy -->"
NEAR = 3
TAU, MAGENTIC = "tau-bench retail (AgentRx)", "Magentic-One (AgentRx)"
BY_HAND, GENERATED = "hand-crafted (Who&When)", "algorithm-generated (Who&When)"


class Case(Struct, frozen=True):
    """A failed run with the step, from 0, that people named. `baselines`: the steps that simple rules name."""

    source: str
    truth: int
    clues: tuple[Clue, ...]
    steps: int
    baselines: dict[str, int]

    @property
    def answer(self) -> int:
        """The step that the free answer names; the last one where nothing was found."""
        suspects = suspects_of(self.clues)
        return suspects[0].step if suspects else self.steps - 1


class Score(Struct, frozen=True):
    """How many of `n` answers are right, and how many are within three steps."""

    n: int
    exact: int
    near: int


def tau_cases(folder: Path) -> Iterator[Case]:
    """The failures of tau-bench. Their root causes count steps from 1, the system prompt is the first."""
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
        yield Case(TAU, causes[value["task_id"]] - 1, clues, len(found.transcript.messages), baselines)


def magentic_cases(folder: Path) -> Iterator[Case]:
    """The failures of Magentic-One; steps count from 1."""
    for one in _read(folder / "magentic_root_causes.json"):
        history = _read(folder / "magentic" / f"{one['trajectory_id']}.json")
        yield _of_several(MAGENTIC, history, _root(one) - 1, len(history))


def who_and_when_cases(folder: Path) -> Iterator[Case]:
    """The failures of Who&When; steps count from 0, and the history may begin after the question."""
    for source, name in ((BY_HAND, "hand_crafted"), (GENERATED, "algorithm_generated")):
        for line in (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
            value = json.loads(line)
            yield _of_several(source, value, int(value["mistake_step"]), len(value["history"]))


def cases_of(data: Path) -> list[Case]:
    """All cases of a folder with the data sets."""
    return [
        *tau_cases(data / "agentrx"),
        *magentic_cases(data / "agentrx"),
        *who_and_when_cases(data / "who_and_when"),
    ]


def score(cases: Sequence[Case], answer: Callable[[Case], int]) -> Score:
    """How right an answer is."""
    off = [abs(answer(case) - case.truth) for case in cases]
    return Score(len(off), off.count(0), sum(one <= NEAR for one in off))


def left_out(cases: Sequence[Case]) -> Score:
    """The score where it is learned which clue counts more: for each case from all others, by how often the first clue
    of a code names the right step (with a weight of two cases of one half)."""
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
        "| failures | n | exact | within three steps | simple rule, exact / within three |"
        " order learned without the case, exact / within three |",
        "|---|---|---|---|---|---|",
    ]
    for source in dict.fromkeys(case.source for case in cases):
        group = [case for case in cases if case.source == source]
        ours, learned = score(group, lambda case: case.answer), left_out(group)
        simple = [
            (name, score(group, lambda case, name=name: case.baselines[name]))  # type: ignore[misc]
            for name in group[0].baselines
        ]
        said = "; ".join(f"{name} {one.exact} / {one.near}" for name, one in simple)
        rows.append(
            f"| {source} | {ours.n} | {ours.exact} ({100 * ours.exact / ours.n:.1f} %) | {ours.near} |"
            f" {said} | {learned.exact} / {learned.near} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Measure, print the table, and write it into the page if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    made = table(cases_of(given.data))
    print(made)
    if given.write:
        head, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
        PAGE.write_text(f"{head}{BEGIN}\n\n{made}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


# Inside


def _read(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _root(one: dict[str, object]) -> int:
    failures, cause = one["failures"], one["root_cause"]
    assert isinstance(failures, list)
    assert isinstance(cause, dict)
    return next(int(failure["step_number"]) for failure in failures if failure["failure_id"] == cause["failure_id"])


def _of_several(source: str, value: object, truth: int, steps: int) -> Case:
    (found,) = multi_agent.recordings([JsonElement(value, 1, 1)])
    assert isinstance(found, Recording)
    before = len(found.transcript.messages) - steps
    clues = clues_in("", found.transcript, (), {})
    baselines = {"last message": before + steps - 1, "first message": before + (before == 0)}
    return Case(source, truth + before, clues, len(found.transcript.messages), baselines)


def _writes(transcript: Transcript, results: Sequence[CriterionResult]) -> dict[str, int]:
    """The last call that changes something, and the first one that the ground truth does not have."""
    made = expectation_of(results, {}).made
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
