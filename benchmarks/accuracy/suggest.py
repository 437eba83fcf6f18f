"""Measures how often suggested criteria are right about runs that they were not made from.

    python -m benchmarks.accuracy.suggest [--write] [--ifeval FILE]

--write puts the tables into docs/suggest.md:

- The samples: each criterion is hidden. Its verdicts on 20 runs are the labels; the suggestion is compared with its
  verdicts on the other runs.
- IFEval's recorded checks (FILE, which is not part of the project): half of the rows of each kind (at most 20) are
  labelled. Every row has a different prompt, and rows of some kinds have different parameters.
- The same kinds of checks with one parameter, over all answers of FILE, as in one test.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

import agenteval_tui as agenteval
from agenteval_tui.extensions.suggest.conditions import graded
from agenteval_tui.extensions.suggest.examples import Example, Examples
from agenteval_tui.extensions.suggest.search import check, suggest
from agenteval_tui.grading.spec import CriterionSpec
from agenteval_tui.grading.tokenization import count_sentences, count_words
from agenteval_tui.transcripts.model import Message, Transcript

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/suggest.md"
IFEVAL = ROOT.parent / "shared/data/ifeval/results_strict_half.jsonl"
LABELS = 20
_ROUNDS = 4


class Figure(Struct, frozen=True):
    """How well a hidden check was found. Over `rounds` draws of labels: the mean share of the other runs on which the
    best criterion agrees, the share for always giving the more frequent label, and an example of a found criterion.
    `warned`: the number of rounds with the warning that the suggestions are no better than that label; `heeded`: the
    mean share for a person who then uses the label."""

    name: str
    runs: int
    labels: int
    agreement: float
    plain: float
    found: str
    rounds: int = 0
    warned: int = 0
    heeded: float = float("nan")


def hidden(name: str, runs: Sequence[Example], rounds: int = _ROUNDS, labels: int = LABELS) -> Figure:
    """Find a check whose verdicts are the labels of `runs`. Each round knows `labels` random labels, with at least one
    of each kind."""
    right, plain, found, warned = [], [], [], []
    for seed in range(rounds):
        known = _drawn(runs, labels, random.Random(seed))
        given = Examples([one if number in known else replace(one, good=None) for number, one in enumerate(runs)])
        best = suggest(given).suggestions[0]
        checked = check(given)
        warned.append(checked is not None and not checked.better)
        passed, _ = graded(given, CriterionSpec("", best.prototype_class, best.config))
        others = [number for number in range(len(runs)) if number not in known]
        usual = sum(runs[number].good is True for number in known) * 2 >= len(known)
        right.append(statistics.mean(bool(passed >> number & 1) == runs[number].good for number in others))
        plain.append(statistics.mean(usual == runs[number].good for number in others))
        found.append(best.title)
    middle = sorted(range(rounds), key=lambda round: right[round])[rounds // 2]
    advised = [usual if warning else one for one, usual, warning in zip(right, plain, warned, strict=True)]
    return Figure(
        name, len(runs), labels, statistics.mean(right), statistics.mean(plain), found[middle], rounds, sum(warned),
        statistics.mean(advised),
    )  # fmt: skip


def _drawn(runs: Sequence[Example], labels: int, chance: random.Random) -> set[int]:
    order = list(range(len(runs)))
    chance.shuffle(order)
    known = set(order[:labels])
    for label in (True, False):
        if not any(runs[number].good is label for number in known):
            known.add(next(number for number in order if runs[number].good is label))
    return known


# The samples


def samples(rounds: int = _ROUNDS, repeat: int = 30) -> Iterator[Figure]:
    """Every criterion of the samples that some runs of the bundled agent's two versions pass, and others fail."""
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted((ROOT / "sample_suites").glob("*.suite.yaml")):
            text = path.read_text("utf-8").replace("{kind: demo,", "{kind: demo, pace: 0,")
            suite = Path(folder) / path.name
            suite.write_text(text, "utf-8")
            agents = re.findall(r"^  (\S+): \{kind: demo", text, re.MULTILINE)
            stored = [run for agent in agents for run in agenteval.run(suite, agent=agent, repeat=repeat,
                                                                       db=Path(folder) / "history.db")]  # fmt: skip
            by_criterion: dict[tuple[str, str], list[Example]] = {}
            for one in stored:
                transcript = one.transcript
                for result in one.criteria:
                    if str(result.outcome) in ("passed", "failed"):
                        good = str(result.outcome) == "passed"
                        example = Example(one.id, transcript, one.row.variables, good)
                        by_criterion.setdefault((one.test, result.criterion), []).append(example)
            for (test, criterion), runs in by_criterion.items():
                if len({one.good for one in runs}) == 2:
                    yield hidden(f"{test} / {criterion}", runs, rounds)


# IFEval


def ifeval_rows(path: Path) -> list[dict[str, object]]:
    """The recorded rows."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def recorded_kinds(
    rows: Sequence[dict[str, object]], rounds: int = _ROUNDS, only: Sequence[str] = ()
) -> Iterator[Figure]:
    """Each kind of check (or only these kinds) with its recorded verdicts, over the rows that have it."""
    kinds = sorted({kind for row in rows for kind in row["instruction_id_list"]})  # type: ignore[attr-defined]
    for kind in kinds:
        if only and kind.removeprefix("en:") not in only:
            continue
        runs = []
        for number, row in enumerate(rows):
            verdicts = zip(row["instruction_id_list"], row["follow_instruction_list"], strict=True)  # type: ignore[call-overload]
            said = [verdict for one, verdict in verdicts if one == kind]
            if said:
                runs.append(_example(number, row, all(said)))
        name = kind.removeprefix("en:")
        if len({one.good for one in runs}) < 2:
            yield Figure(name, len(runs), 0, float("nan"), float("nan"), "")
        else:
            yield hidden(name, runs, rounds, min(LABELS, len(runs) // 2))


def fixed_checks(rows: Sequence[dict[str, object]], rounds: int = _ROUNDS) -> Iterator[Figure]:
    """Checks with one parameter over all answers."""
    for name, holds in CHECKS.items():
        yield hidden(
            name, [_example(number, row, bool(holds(str(row["response"])))) for number, row in enumerate(rows)], rounds
        )


def _example(number: int, row: dict[str, object], good: bool) -> Example:
    text = str(row["response"])
    messages = (Message("user", str(row["prompt"])), Message("assistant", text))
    return Example(str(number), Transcript(messages, final_output=text), {}, good)


def _is_json(text: str) -> bool:
    try:
        json.loads(text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip())
    except ValueError:
        return False
    return True


def _paragraphs(text: str) -> list[str]:
    return [part for part in re.split(r"\n\s*\n", text) if part.strip()]


def _words(text: str) -> list[str]:
    return re.findall(r"[\w'-]+", text)


CHECKS: dict[str, Callable[[str], object]] = {
    "no comma": lambda text: "," not in text,
    "all in lower case": lambda text: text.lower() == text,
    "in quotation marks": lambda text: len(text.strip()) > 1 and text.strip()[0] == text.strip()[-1] == '"',
    "JSON": _is_json,
    "a title in << >>": lambda text: re.search(r"<<[^\n]+>>", text),
    "a postscript": lambda text: re.search(r"P\.\s?(?:P\.\s?)?S", text),
    "two answers, separated by ******": lambda text: len([part for part in text.split("******") if part.strip()]) == 2,
    "3 list items or more": lambda text: len(re.findall(r"^\s*(?:\*[^*]|-).*$", text, re.MULTILINE)) >= 3,
    "exactly 3 list items": lambda text: len(re.findall(r"^\s*(?:\*[^*]|-).*$", text, re.MULTILINE)) == 3,
    "5 words in capitals or more": lambda text: sum(word.isupper() for word in _words(text)) >= 5,
    "fewer than 10 words in capitals": lambda text: sum(word.isupper() for word in _words(text)) < 10,
    "the letter k 10 times or more": lambda text: text.lower().count("k") >= 10,
    "the letter c fewer than 30 times": lambda text: text.lower().count("c") < 30,
    'the word "time"': lambda text: re.search(r"\btime\b", text, re.IGNORECASE),
    'not the word "time"': lambda text: not re.search(r"\btime\b", text, re.IGNORECASE),
    'the word "you" 3 times or more': lambda text: len(re.findall(r"\byou\b", text, re.IGNORECASE)) >= 3,
    "10 sentences or more": lambda text: count_sentences(text) >= 10,
    "fewer than 15 sentences": lambda text: count_sentences(text) < 15,
    "200 words or more": lambda text: count_words(text) >= 200,
    "fewer than 100 words": lambda text: count_words(text) < 100,
    "5 paragraphs or more": lambda text: len(_paragraphs(text)) >= 5,
    'first word "here"': lambda text: re.match(r"\W*here\b", text, re.IGNORECASE),
    "ends with ? or !": lambda text: text.strip()[-1:] in "?!",
}


# The page


def table(head: str, figures: Sequence[Figure]) -> str:
    """The figures as Markdown."""
    lines = [
        f"| {head} | runs | labels | agreement | warned | if heeded | without a criterion | for example |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in figures:
        if one.labels:
            found = one.found.replace("|", "\\|").replace("<", "&lt;")
            shares = f"{one.agreement:.0%} | {one.warned} of {one.rounds} | {one.heeded:.0%} | {one.plain:.0%}"
            lines.append(f"| {one.name.replace('<', '&lt;')} | {one.runs} | {one.labels} | {shares} | {found} |")
        else:
            lines.append(f"| {one.name} | {one.runs} | | | | | | every run passes: nothing to tell apart |")
    counted = [one for one in figures if one.labels]
    mean, heeded, plain = (
        statistics.mean(getattr(one, name) for one in counted) for name in ("agreement", "heeded", "plain")
    )
    return "\n".join([*lines, f"| **mean** | | | **{mean:.0%}** | | **{heeded:.0%}** | {plain:.0%} | |"])


def page_with(page: str, name: str, made: str) -> str:
    """The page with a new table between the marks of that name."""
    begin, end = f"<!-- {name}: made by python -m benchmarks.accuracy.suggest --write -->", f"<!-- end of {name} -->"
    head, found, rest = page.partition(begin)
    _, closed, tail = rest.partition(end)
    if not found or not closed:
        raise SystemExit(f"{PAGE.name} has no marks for {name}: {begin} and {end}")
    return f"{head}{begin}\n\n{made}\n\n{end}{tail}"


def main() -> None:
    """Measure, print the tables, and with --write put them into the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.suggest")
    parser.add_argument("--write", action="store_true", help=f"put the tables into {PAGE.name}")
    parser.add_argument("--ifeval", type=Path, default=IFEVAL, metavar="FILE")
    given = parser.parse_args()
    tables = {"samples": table("criterion", list(samples()))}
    if given.ifeval.is_file():
        rows = ifeval_rows(given.ifeval)
        tables["ifeval"] = table("kind", list(recorded_kinds(rows)))
        tables["checks"] = table("check", list(fixed_checks(rows)))
    page = PAGE.read_text("utf-8") if given.write else ""
    for name, made in tables.items():
        print(f"{name}\n\n{made}\n")
        if given.write:
            page = page_with(page, name, made)
    if given.write:
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
