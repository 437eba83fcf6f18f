"""Statistics against SciPy and NumPy, and against statsmodels and scikit-learn where these are installed."""

from __future__ import annotations

import itertools
import math
import random
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Any

from tally import Tally, near

from agenteval_tui.analysis import classification_report
from agenteval_tui.analysis import statistics as own
from agenteval_tui.analysis.agreement import agreement
from agenteval_tui.analysis.permutation_test import sign_flip
from agenteval_tui.analysis.statistics import student_t_quantile
from agenteval_tui.extensions.retrieval.metric import measure

STATSMODELS, SKLEARN = (find_spec(name) is not None for name in ("statsmodels", "sklearn"))
Pair = tuple[str, float | None, float | None]
"""What it is, what the program says, what the other one says."""


def some_counts(dice: random.Random, most: int = 400) -> tuple[int, int]:
    n = dice.choice([1, 2, dice.randint(1, 20), dice.randint(1, most)])
    return dice.choice([0, n, dice.randint(0, n)]), n


def wilson(dice: random.Random) -> Iterator[Pair]:
    from scipy.stats import binomtest

    passed, n = some_counts(dice)
    found, expected = own.wilson(passed, n), binomtest(passed, n).proportion_ci(0.95, method="wilson")
    yield f"wilson low {passed}/{n}", found[0], float(expected.low)
    yield f"wilson high {passed}/{n}", found[1], float(expected.high)
    if STATSMODELS:
        from statsmodels.stats.proportion import proportion_confint

        low, high = proportion_confint(passed, n, 0.05, "wilson")
        yield f"wilson low, statsmodels {passed}/{n}", found[0], float(low)
        yield f"wilson high, statsmodels {passed}/{n}", found[1], float(high)


def pass_at_k(dice: random.Random) -> Iterator[Pair]:
    """Against the hypergeometric distribution and against the product that HumanEval computes."""
    from scipy.stats import hypergeom

    passed, n = some_counts(dice, 60)
    k = dice.randint(1, n)
    none = hypergeom.pmf(0, n, passed, k)
    yield f"pass@{k} {passed}/{n}", own.pass_at_k(passed, n, k), 1 - float(none)
    yield f"pass^{k} {passed}/{n}", own.pass_hat_k(passed, n, k), float(hypergeom.pmf(k, n, passed, k))
    product = 1.0 if n - passed < k else 1 - math.prod(1 - k / at for at in range(n - passed + 1, n + 1))
    yield f"pass@{k} {passed}/{n}, HumanEval", own.pass_at_k(passed, n, k), product


def mcnemar(dice: random.Random) -> Iterator[Pair]:
    from scipy.stats import binomtest

    a, b = dice.randint(0, 40), dice.randint(0, 40)
    expected = binomtest(min(a, b), a + b).pvalue if a + b else 1.0
    yield f"McNemar {a} {b}", own.mcnemar_exact(a, b), float(expected)
    if STATSMODELS and a + b:
        from statsmodels.stats.contingency_tables import mcnemar as theirs

        yield f"McNemar {a} {b}, statsmodels", own.mcnemar_exact(a, b), float(theirs([[3, a], [b, 5]]).pvalue)


def fisher(dice: random.Random) -> Iterator[Pair]:
    from scipy.stats import fisher_exact

    (a, n), (b, m) = some_counts(dice, 60), some_counts(dice, 60)
    expected = fisher_exact([[a, n - a], [b, m - b]]).pvalue
    yield f"Fisher {a}/{n} {b}/{m}", own.fisher_exact(a, n, b, m), float(expected)


def clustered(dice: random.Random) -> Iterator[Pair]:
    from scipy.stats import sem, t

    tests = [some_counts(dice, 12) for _ in range(dice.randint(2, 25))]
    rates = [passed / n for passed, n in tests]
    yield f"clustered error {tests}", own.clustered_standard_error(rates), float(sem(rates))
    if max(rates) > min(rates):
        low, high = t.interval(0.95, len(rates) - 1, math.fsum(rates) / len(rates), sem(rates))
        found = own.clustered_interval(tests)
        yield f"clustered interval {tests}", found[0], max(0.0, float(low))
        yield f"clustered interval {tests}", found[1], min(1.0, float(high))
    groups = [[1.0] * passed + [0.0] * (n - passed) for passed, n in tests]
    everything = [value for group in groups for value in group]
    middle = math.fsum(everything) / len(everything)
    meat = sum(sum(value - middle for value in group) ** 2 for group in groups)
    expected = math.sqrt(meat * len(groups) / (len(groups) - 1)) / len(everything)
    found_error = own.cluster_robust_standard_error(groups)
    yield f"cluster-robust error {tests}", found_error, expected
    if STATSMODELS and len(everything) > len(groups):
        import numpy
        from statsmodels.api import OLS

        names = [number for number, group in enumerate(groups) for _ in group]
        fit = OLS(numpy.array(everything), numpy.ones(len(everything))).fit(
            cov_type="cluster", cov_kwds={"groups": numpy.array(names), "df_correction": True}
        )
        yield f"cluster-robust error {tests}, statsmodels", found_error, float(fit.bse[0])


def kappa(dice: random.Random) -> Iterator[Pair]:
    share = dice.random()
    pairs = [(dice.random() < share, dice.random() < dice.choice([share, 0.5])) for _ in range(dice.randint(1, 40))]
    told = agreement(pairs)
    n = len(pairs)
    observed = sum(one == other for one, other in pairs) / n
    left, right = sum(one for one, _ in pairs) / n, sum(other for _, other in pairs) / n
    yield f"accuracy {pairs}", told.accuracy, observed
    only_one_thing = len({one for pair in pairs for one in pair}) == 1
    chance = left * right + (1 - left) * (1 - right)
    yield f"kappa {pairs}", told.kappa, None if only_one_thing else (observed - chance) / (1 - chance)
    if SKLEARN and not only_one_thing:
        from sklearn.metrics import cohen_kappa_score

        yield f"kappa {pairs}, scikit-learn", told.kappa, float(cohen_kappa_score(*zip(*pairs, strict=True)))


def classification(dice: random.Random) -> Iterator[Pair]:
    labels = "abcd"[: dice.randint(2, 4)]
    pairs = [(dice.choice(labels), dice.choice(labels)) for _ in range(dice.randint(1, 30))]
    told = classification_report.classification(pairs)
    for one in told.per_label:
        hits = sum(right == given == one.label for right, given in pairs)
        given = sum(given == one.label for _, given in pairs)
        right = sum(right == one.label for right, _ in pairs)
        precision, recall = hits / given if given else None, hits / right if right else None
        yield f"precision of {one.label} {pairs}", one.precision, precision
        yield f"recall of {one.label} {pairs}", one.recall, recall
        yield f"F1 of {one.label} {pairs}", one.f1, 2 * hits / (given + right)
    if SKLEARN:
        from sklearn.metrics import accuracy_score, f1_score

        rights, givens = zip(*pairs, strict=True)
        yield f"accuracy {pairs}", told.accuracy, float(accuracy_score(rights, givens))
        for kind, found in (("macro", told.macro_f1), ("weighted", told.weighted_f1)):
            score = f1_score(rights, givens, average=kind, zero_division=0)
            yield f"{kind} F1 {pairs}, scikit-learn", found, float(score)


def retrieval(dice: random.Random) -> Iterator[Pair]:
    documents = [f"d{number}" for number in range(8)]
    found = dice.sample(documents, dice.randint(0, 8))
    relevant = dice.sample(documents, dice.randint(1, 5))
    k = dice.choice([None, dice.randint(1, 10)])
    told = measure(found, relevant, k)
    top = found[:k] if k else found
    gains = [float(one in relevant) for one in top]
    precision = sum(gains) / (k or len(top)) if top else 0.0
    recall = sum(gains) / len(relevant)
    said = f"{found} {relevant} k={k}"
    yield f"precision {said}", told.precision, precision
    yield f"recall {said}", told.recall, recall
    yield f"F1 {said}", told.f1, 2 * precision * recall / (precision + recall) if sum(gains) else 0.0
    yield f"MRR {said}", told.mrr, next((1 / rank for rank, gain in enumerate(gains, 1) if gain), 0.0)
    discounted = sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, 1))
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(len(relevant), k or len(relevant)) + 1))
    yield f"nDCG {said}", told.ndcg, discounted / best
    if SKLEARN and len(found) == len(documents):
        from sklearn.metrics import ndcg_score

        truth = [[float(one in relevant) for one in found]]
        theirs = ndcg_score(truth, [[float(-rank) for rank in range(len(found))]], k=k)
        yield f"nDCG {said}, scikit-learn", told.ndcg, float(theirs)


def percentiles(dice: random.Random) -> Iterator[Pair]:
    import numpy

    values = [dice.choice([dice.uniform(-1e6, 1e6), float(dice.randint(0, 5))]) for _ in range(dice.randint(1, 40))]
    for percent in (50, 95, dice.uniform(0, 100)):
        yield f"percentile {percent}", own.percentile(values, percent), float(numpy.percentile(values, percent))
    degrees, chance = dice.randint(1, 200), dice.choice([0.8, 0.95, 0.975, 0.99])
    from scipy.stats import t

    yield f"t {degrees} {chance}", student_t_quantile(chance, degrees), float(t.ppf(chance, degrees))


def signs(dice: random.Random) -> Iterator[Pair]:
    """All signs are tried here, too; and by SciPy, which tries them all for so few."""
    from scipy.stats import permutation_test

    values = [dice.choice([0.0, 0.25, 0.5, 1.0, -0.25, -1.0, dice.uniform(-1, 1)]) for _ in range(dice.randint(1, 9))]
    sums = [abs(sum(one * sign for one, sign in zip(values, way, strict=True)))
            for way in itertools.product((1, -1), repeat=len(values))]  # fmt: skip
    seen = abs(sum(values))
    expected = sum(one >= seen - 1e-12 for one in sums) / len(sums)
    yield f"sign flips {values}", sign_flip(values), expected
    if len(values) > 1 and any(values) and dice.random() < 0.2:

        def total(x: Any, axis: int = -1) -> Any:
            return abs(x.sum(axis=axis))

        theirs = permutation_test(
            (values,), total, permutation_type="samples", n_resamples=math.inf, alternative="greater", vectorized=True
        )
        yield f"sign flips {values}, SciPy", sign_flip(values), float(theirs.pvalue)


FIGURES: tuple[Callable[[random.Random], Iterator[Pair]], ...] = (
    wilson, pass_at_k, mcnemar, fisher, clustered, kappa, classification, retrieval, percentiles, signs,
)  # fmt: skip


def compare(count: int, seed: int) -> Tally:
    """At least so many figures, of each kind about as many draws."""
    dice, tally = random.Random(seed), Tally()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what other packages say of small samples
        while tally.cases < count:
            for figure in FIGURES:
                for name, found, expected in figure(dice):
                    tally.same(near(found, expected, 1e-8), name, found, expected)
    return tally
