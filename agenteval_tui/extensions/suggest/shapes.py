"""Bounds: how often shapes occur in an answer, and what metrics measure.

A shape is a kind of thing that a text may have: a comma, a word in capitals, a list item, a placeholder, a paragraph.
What metrics measure comes from their registry: every property that is a bound, also of a plug-in's metric.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, get_args

import regex
from pydantic import ValidationError

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.extensions.suggest.conditions import Family, Measure, Pool, Say, Worded, bits, graded
from agenteval_tui.extensions.suggest.examples import Examples
from agenteval_tui.extensions.suggest.texts import counter, escaped
from agenteval_tui.grading import registry
from agenteval_tui.grading.compile import Checker
from agenteval_tui.grading.metrics.metric import Metric
from agenteval_tui.grading.metrics.run_limits import LimitMetric
from agenteval_tui.grading.results import Outcome
from agenteval_tui.grading.spec import CriterionSpec

# What it is called, the pattern, its flags. Each pattern is linear, and takes at least one character.
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("a capital letter", r"\p{Lu}", ""),
    ("a small letter", r"\p{Ll}", ""),
    ("a letter", r"\p{L}", ""),
    ("a digit", r"\d", ""),
    ("a number", r"\d+(?:[.,]\d+)*", ""),
    ("a word in capitals", r"\b\p{Lu}+\b", ""),
    ("a longer word in capitals", r"\b\p{Lu}{2,}\b", ""),
    ("a word with a capital", r"\b\p{Lu}\p{Ll}+\b", ""),
    ("a line", r"^[^\n]*\S[^\n]*$", "m"),
    ("an empty line", r"^[ \t]*\n", "m"),
    ("a paragraph", r"\S(?>[^\n]+|\n(?![ \t]*(?:\n|$(?!\n))))*+", ""),
    ("a sentence", r"[.!?…。！？]+[\"'”’)\]*_]*(?=\s|$)", ""),
    ("a question", r"\?(?=\W|$)", ""),
    ("a list item", r"^[ \t]*[*•-](?=[ \t]+\S)", "m"),
    ("a list item with *", r"^[ \t]*\*(?=[ \t]+\S)", "m"),
    ("a list item with -", r"^[ \t]*-(?=[ \t]+\S)", "m"),
    ("a numbered item", r"^[ \t]*\d+[.)](?=[ \t])", "m"),
    ("a heading", r"^#{1,6}[ \t]", "m"),
    ("a line with a label", r"^[ \t*]*\p{Lu}[^\n:.!?]{0,40}:", "m"),
    ("a numbered section", r"\b(?:section|part|chapter|day|step|paragraph)[ \t]+\d+", "i"),
    ("a table row", r"^[ \t]*\|[^\n]*\|[ \t]*$", "m"),
    ("a quoted line", r"^>[ \t]", "m"),
    ("a dividing line", r"^[ \t]*(?:\*{3,}|-{3,}|_{3,}|={3,})[ \t]*$", "m"),
    ("a placeholder in [ ]", r"\[[^\[\]\n]+\]", ""),
    ("a placeholder in < >", r"<[^<>\n]+>", ""),
    ("a title in << >>", r"<<[^<>\n]+>>", ""),
    ("something in { }", r"\{[^{}\n]+\}", ""),
    ("something in ( )", r"\([^()\n]+\)", ""),
    ("something in bold", r"\*\*[^*\n]+\*\*", ""),
    ("something highlighted", r"(?<!\*)\*[^*\s\n][^*\n]*\*", ""),
    ("something in quotation marks", r"[\"“][^\"“”\n]+[\"”]", ""),
    ("code", r"`[^`\n]+`", ""),
    ("a code block", r"^[ \t]*```[^`]*```", "m"),
    ("a link", r"https?://\S+", "i"),
    ("a mail address", r"[\w.+-]{1,64}@[\w-]+\.\w+", ""),
    ("a date", r"\b\d{4}-\d{2}-\d{2}\b|\b\d{1,2}[./]\d{1,2}[./]\d{2,4}\b", ""),
    ("a time", r"\b\d{1,2}:\d{2}\b", ""),
    ("an amount of money", r"[$€£]\s?\d+|(?<!\d)\d+(?:[.,]\d+)?\s?(?:€|EUR\b|USD\b)", ""),
    ("a percentage", r"(?<!\d)\d+(?:[.,]\d+)?\s?%", ""),
    ("a hashtag", r"(?<!\w)#\p{L}\w*", ""),
    ("an id", r"#?\b\p{Lu}{1,4}-?\d{2,}\b", ""),
    ("a postscript", r"^[ \t*]*P\.[ \t]?(?:P\.[ \t]?)?S\b", "m"),
    ("an emoji", "[\U0001f300-\U0001faff☀-➿]", ""),
    ("a letter with an accent", r"[^\x00-\x7f\W\d_]", ""),
    ("a Cyrillic letter", r"\p{Cyrillic}", ""),
    ("an Arabic letter", r"\p{Arabic}", ""),
    ("a Chinese character", r"\p{Han}", ""),
    ("a Japanese letter", r"[\p{Hiragana}\p{Katakana}]", ""),
    ("a Korean letter", r"\p{Hangul}", ""),
    ("a Devanagari letter", r"\p{Devanagari}", ""),
    ("a Greek letter", r"\p{Greek}", ""),
    ("a Hebrew letter", r"\p{Hebrew}", ""),
    ("a Thai letter", r"\p{Thai}", ""),
    ("an Indic letter", r"[\p{Bengali}\p{Gujarati}\p{Gurmukhi}\p{Kannada}\p{Malayalam}\p{Tamil}\p{Telugu}]", ""),
)
_COMMON = ("a letter", "a small letter")
"""Nearly every text has them; their number says what Length says."""
_READ = 50_000
_SYMBOLS = 40
_RUN = regex.compile(r"([^\w\s])\1{2,}")
_UNITS = {"Latency": "ms", "Cost": "US dollars", "Steps": "tool calls", "Readability": ""}
_BOUND = re.compile(r"(?:^|_)(min|max|least|most)(?:_|$)")


def shape_families(examples: Examples) -> list[Family]:
    """How often each shape, each letter and each sign occurs."""
    answers = [answer[:_READ] for answer in examples.answers]
    labelled = [answers[number] for number in range(len(answers)) if examples.labelled >> number & 1]
    signs: Counter[str] = Counter()
    runs: Counter[str] = Counter()
    for answer in labelled:
        signs.update({char for char in answer if not char.isalnum() and not char.isspace()})
        runs.update({match[0] for match in _RUN.finditer(answer) if len(match[0]) <= 12})
    ordered = sorted(signs, key=lambda sign: (-signs[sign], sign))[:_SYMBOLS]
    rows = sorted(runs, key=lambda run: (-runs[run], run))[:_SYMBOLS]
    families: list[Family] = []
    cost = bits(len(SHAPES) + len(ordered) + len(rows))
    for what, pattern, flags in SHAPES:
        find = _compiled(pattern, flags)
        values = [float(sum(1 for _ in find.finditer(answer))) for answer in answers]
        more = 3.0 if what in _COMMON else 0.0
        families.append(Measure(values, counter(pattern, flags, what), cost + more, about=what))
    for sign in ordered:
        values = [float(answer.count(sign)) for answer in answers]
        families.append(
            Measure(values, counter(escaped(sign), "", f"the sign {sign}", sign), cost, about=f"sign {sign}")
        )
    for run in rows:
        values = [float(answer.count(run)) for answer in answers]
        families.append(Measure(values, counter(escaped(run), "", run, run), cost, about=f"sign {run}"))
    lower = [answer.lower() for answer in answers]
    for letter in "abcdefghijklmnopqrstuvwxyz":
        values = [float(answer.count(letter)) for answer in lower]
        what = f"the letter {letter}"
        families.append(Measure(values, counter(letter, "i", what), cost + 3.0, about=what))
    return families


@cache
def _compiled(pattern: str, flags: str) -> regex.Pattern[str]:
    return regex.compile(pattern, (regex.M if "m" in flags else 0) | (regex.I if "i" in flags else 0) | regex.V0)


# What metrics measure, from their registry


def metric_families(examples: Examples, *, spent: bool = True) -> list[Family]:
    """The bounds of every metric that asks no model, and the metrics that check something without any property.
    `spent`: with those of what a run took (time, money, tokens)."""
    families: list[Family] = []
    bare = Pool(examples)
    names = registry.metric_names()
    cost = bits(len(names))
    for name in names:
        try:
            kind = registry.metric(name)
        except AgentevalError:
            continue
        if kind.asks is not None or name == "Python" or (_is_spent(name, kind) and not spent):
            continue
        families += _bounds(examples, name, kind, cost)
        _add_bare(bare, name, cost)
    return [*families, bare]


def _is_spent(name: str, kind: type[Metric]) -> bool:
    return issubclass(kind, LimitMetric) and name != "Steps"


def _bounds(examples: Examples, name: str, kind: type[Metric], cost: float) -> Iterator[Family]:
    """A family for each thing that a metric has bounds for: `min_words` and `max_words` are one."""
    measured: dict[str, dict[str, tuple[str, bool]]] = {}
    for field, about in kind.model_fields.items():
        side = _BOUND.search(field)
        types = get_args(about.annotation) or (about.annotation,)
        if side is None or not (int in types or float in types):
            continue
        thing = _BOUND.sub("", field)
        measured.setdefault(thing, {})["least" if side[1] in ("min", "least") else "most"] = field, int in types
    for thing, sides in measured.items():
        field, counts = next(iter(sides.values()))
        values = _measure(examples, name, kind, field)
        if values is None or (len(set(values)) < 2 and examples.bad):
            continue
        what = " ".join(part for part in (name, thing.replace("_", " ")) if part)
        of_run = issubclass(kind, LimitMetric)
        timed = _is_spent(name, kind)
        yield Measure(
            values,
            _say(name, _UNITS.get(name) or thing.replace("_", " "), {side: names[0] for side, names in sides.items()}),
            cost + (4.0 if timed else 2.0),
            whole_numbers=counts,
            whole=of_run,
            about=what,
            slack=1.0 if timed else 0.5,
        )


def _say(name: str, thing: str, sides: Mapping[str, str]) -> Say:
    def say(least: float | None, most: float | None) -> Worded | None:
        metric: dict[str, Any] = {"type": name}
        for side, bound in (("least", least), ("most", most)):
            if bound is not None and side not in sides:
                return None
            if bound is not None:
                metric[sides[side]] = bound
        words = [f"at least {least:g}"] if least is not None else []
        words += [f"at most {most:g}"] if most is not None else []
        return f"{name}: {' and '.join(words)}{f' {thing}' if thing else ''}", metric

    return say


def _measure(examples: Examples, name: str, kind: type[Metric], field: str) -> list[float | None] | None:
    """What a metric measures for a bound: the evidence of a check says what it found. None: it measures nothing."""
    # Which values a bound may have differs from metric to metric: any that is taken, and checks something, will do.
    for bound in (0, 1, 0.5, 0.0, 1_000_000):
        try:
            metric = kind.model_validate({field: bound})
        except (ValidationError, ValueError):
            continue
        if metric.checks_nothing():
            continue
        checker = Checker(CriterionSpec("", "TextResponse", {"metrics": [{"type": name, field: bound}]}))
        values: list[float | None] = []
        for example in examples.runs:
            result = checker.check(example.transcript, example.variables)
            lines = [line for metric in result.metrics for line in metric.evidence if line.condition == field]
            amount = lines[0].found if lines else None
            if isinstance(amount, int | float) and not isinstance(amount, bool) and math.isfinite(amount):
                values.append(float(amount))
            else:
                values.append(None)
        return values if any(value is not None for value in values) else None
    return None


def _add_bare(pool: Pool, name: str, cost: float) -> None:
    """Add the metric without properties, where that checks something."""
    examples = pool.examples
    for prototype, where in (("TextResponse", ""), ("JsonResponse", " in a code block or as a whole")):
        if prototype == "JsonResponse" and name != "Json":
            continue
        spec = CriterionSpec("", prototype, {"metrics": [{"type": name}]})
        first = Checker(spec).check(examples.runs[0].transcript, examples.runs[0].variables, explain=False)
        if first.neutral or first.outcome is Outcome.ERROR:
            continue
        passed, failed = graded(examples, spec)
        if passed and (failed or not examples.bad):
            title = f"is JSON{where}" if name == "Json" else f"passes {name}"
            more = 0.0 if name == "Json" else 3.0
            pool.add(title, {"type": name}, cost + more, passes=passed, prototype=prototype, about=name)
