"""How well `accept` of a judge keeps its promise: of the runs that it decides, at most `error` are wrong.

    python -m benchmarks.accuracy.silence [--splits 200]

Five sets of labelled cases are made by published rules. A judge is simulated for each: it sees a part of a case, and
its scores have noise. The labels of some cases say for which scores it may decide; the others show how often it is
wrong then. The rules are those of the program (`grading.metrics.judge_acceptance`), without its store.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from statistics import fmean

from msgspec import Struct

from agenteval_tui.grading.metrics.judge_acceptance import LabelledScore, acceptance
from agenteval_tui.grading.metrics.judge_scale import SCALES

CASES = 1_500
LABELS = 300
SEED = 7
Draw = Callable[[random.Random], tuple[bool, float]]
"""A case: what people say of it, and the logarithm of the odds for it that its visible part gives."""


class SimulatedJudge(Struct, frozen=True):
    """A judge of a set: its scale, how far its opinion varies (log odds), how strict it is (below 1: lenient)."""

    draw: Draw
    scale: str
    noise: float
    strict: float = 1.0


class Kept(Struct, frozen=True):
    """How a judge does: wrong in `alone` of all cases; with `accept` it decides `decided`, and is wrong in `wrong` of
    these; `holds`: the share of splits in which that is at most `error`; `trusted`: in which it decides anything."""

    alone: float
    decided: float
    wrong: float
    holds: float
    trusted: float


def twonorm(draw: random.Random) -> tuple[bool, float]:
    """L. Breiman, "Bias, variance, and arcing classifiers" (1996): normal around (a, ..., a) or (-a, ..., -a) in 20
    dimensions, a = 2/sqrt(20). Visible: 12 of them."""
    good, a = draw.random() < 0.5, 2 / math.sqrt(20)
    seen = sum(draw.gauss(a if good else -a, 1) for _ in range(12))
    return good, 2 * a * seen


def threenorm(draw: random.Random) -> tuple[bool, float]:
    """The same paper: a mixture of normals around (a, ..., a) and (-a, ..., -a), or one around (a, -a, a, ...)."""
    good, a = draw.random() < 0.5, 2 / math.sqrt(20)
    sign = draw.choice((1, -1))
    x = [draw.gauss(a * sign if good else (a if i % 2 == 0 else -a), 1) for i in range(20)]
    mixed = [_log_normal(x, [b * a] * 20, 1) for b in (1, -1)]
    other = _log_normal(x, [a if i % 2 == 0 else -a for i in range(20)], 1)
    return good, _log_mean(mixed) - other


def ringnorm(draw: random.Random) -> tuple[bool, float]:
    """The same paper: normal around 0 with variance 4, or around (a, ..., a) with variance 1. Visible: 8 dimensions."""
    return _ringnorm(draw, 8)


def half_a_ring(draw: random.Random) -> tuple[bool, float]:
    """The same, of which only 4 dimensions are visible."""
    return _ringnorm(draw, 4)


def _ringnorm(draw: random.Random, visible: int) -> tuple[bool, float]:
    good, a = draw.random() < 0.5, 2 / math.sqrt(20)
    x = [draw.gauss(0, 2) if good else draw.gauss(a, 1) for _ in range(visible)]
    return good, _log_normal(x, [0] * visible, 4) - _log_normal(x, [a] * visible, 1)


def waveform(draw: random.Random) -> tuple[bool, float]:
    """L. Breiman, J. Friedman, R. Olshen, C. Stone, "Classification and regression trees" (1984), section 2.6.2: two of
    the three classes of noisy mixtures of triangular waves, at 21 points."""
    waves = [[max(0, 6 - abs(i - middle)) for i in range(1, 22)] for middle in (11, 15, 7)]
    good, u = draw.random() < 0.5, draw.random()
    other = waves[1] if good else waves[2]
    x = [u * h + (1 - u) * o + draw.gauss(0, 1) for h, o in zip(waves[0], other, strict=True)]
    odds = []
    for wave in waves[1:]:
        means = [
            [v * h + (1 - v) * o for h, o in zip(waves[0], wave, strict=True)] for v in (n / 10 for n in range(11))
        ]
        odds.append(_log_mean([_log_normal(x, mean, 1) for mean in means]))
    return good, odds[0] - odds[1]


def hastie(draw: random.Random) -> tuple[bool, float]:
    """T. Hastie, R. Tibshirani, J. Friedman, "The elements of statistical learning" (2009), formula 10.2: is the sum of
    ten squared normals above its median? Visible: nine of them."""
    squares = [draw.gauss(0, 1) ** 2 for _ in range(10)]
    return sum(squares) > 9.34, 3 * (sum(squares[:9]) + 1 - 9.34)


def _log_normal(x: Sequence[float], mean: Sequence[float], variance: float) -> float:
    squares = sum((value - middle) ** 2 for value, middle in zip(x, mean, strict=True))
    return -squares / (2 * variance) - len(x) / 2 * math.log(variance)


def _log_mean(logs: Sequence[float]) -> float:
    most = max(logs)
    return most + math.log(fmean(math.exp(one - most) for one in logs))


JUDGES: dict[str, SimulatedJudge] = {
    "twonorm, 1 to 5": SimulatedJudge(twonorm, "one_to_five", 2.0),
    "threenorm, 0 to 1, lenient": SimulatedJudge(threenorm, "zero_to_one", 0.7, 0.8),
    "ringnorm, 0 to 10": SimulatedJudge(ringnorm, "zero_to_ten", 1.0),
    "waveform, 1 to 5, strict": SimulatedJudge(waveform, "one_to_five", 2.0, 1.5),
    "hastie, 0 to 1": SimulatedJudge(hastie, "zero_to_one", 2.0),
    "a weak judge of ringnorm": SimulatedJudge(half_a_ring, "zero_to_ten", 1.0),
}


def scored(judge: SimulatedJudge, cases: int, draw: random.Random) -> list[LabelledScore]:
    """Cases as the judge scores them, with what people say."""
    scale, made = SCALES[judge.scale], []
    steps = 4 if judge.scale == "one_to_five" else 10
    for _ in range(cases):
        good, odds = judge.draw(draw)
        opinion = 1 / (1 + math.exp(-max(-30.0, min(30.0, odds + draw.gauss(0, judge.noise)))))
        share = round(opinion**judge.strict * steps) / steps
        made.append(LabelledScore(share, scale.passes(scale.score(share), scale.share(scale.threshold)), good))
    return made


def kept(judge: SimulatedJudge, *, splits: int, labels: int = LABELS, error: float = 0.1, seed: int = SEED) -> Kept:
    """Calibrate with the labels of some cases, and count mistakes on the others, `splits` times."""
    draw = random.Random(seed)
    cases = scored(judge, CASES, draw)
    scale = SCALES[judge.scale]
    decided, wrong, trusted = [], [], 0
    for _ in range(splits):
        draw.shuffle(cases)
        found = acceptance(tuple(cases[:labels]), judge.scale, scale.share(scale.threshold), error, 0.95)
        others = [one for one in cases[labels:] if found.decides(one.share, one.passed)]
        decided.append(len(others) / (CASES - labels))
        wrong.append(sum(one.passed != one.good for one in others) / len(others) if others else 0.0)
        trusted += found.trusted
    alone = sum(one.passed != one.good for one in cases) / CASES
    return Kept(alone, fmean(decided), fmean(wrong), sum(one <= error for one in wrong) / splits, trusted / splits)


def main() -> None:
    """Print a table: a line for each set and its judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=200)
    parser.add_argument("--labels", type=int, default=LABELS)
    given = parser.parse_args()
    print(f"{given.splits} splits, {given.labels} labels of {CASES} cases, accept: {{error: 0.1}}")
    print(f"{'set and judge':<30}{'wrong alone':>12}{'decided':>9}{'wrong':>8}{'holds':>8}{'trusted':>9}")
    for name, judge in JUDGES.items():
        one = kept(judge, splits=given.splits, labels=given.labels)
        print(f"{name:<30}{one.alone:>12.1%}{one.decided:>9.1%}{one.wrong:>8.1%}{one.holds:>8.1%}{one.trusted:>9.1%}")


if __name__ == "__main__":
    main()
