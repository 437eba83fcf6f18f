"""What may relax the extraction, a metric that nothing special is known of, and a negated criterion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.phrasing import nth, quoted, shown
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.extractors.json_response import JsonResponse
from agenteval_tui.grading.extractors.text_response import code_blocks
from agenteval_tui.grading.json_paths import compile_path
from agenteval_tui.grading.metrics.matchers import is_number
from agenteval_tui.grading.regex_search import compile_with_flags
from agenteval_tui.grading.relax.changes import Change, ConfigEdit, Path, entry_removal, missed_properties
from agenteval_tui.grading.results import MetricResult, Outcome
from agenteval_tui.grading.sentences import dotted_path
from agenteval_tui.transcripts.model import Transcript

_BLOCKS = 5
_STEPS = 6  # names of a path that are put right
_FLAGS = {"i": "ignore case", "m": "^ and $ match at each line", "s": ". matches line ends"}


def extraction_changes(value: Mapping[str, Any], transcript: Transcript) -> Iterator[Change]:
    """Other ways to take a value out of the final answer; each may be a relaxation alone, or the first step of one."""
    own = [name for name in value if name != "metrics"]
    yield from path_changes(value, transcript)
    number = value.get("extract_code_block")
    if number is not None or "code_language" in value:
        blocks = code_blocks(transcript.final_output, None)
        position = number if isinstance(number, int) else 1
        if "code_language" not in value and position <= len(blocks) and blocks[position - 1].language:
            language = blocks[position - 1].language
            title = f"leave the language tag out: `code_language` {quoted(language)}"
            yield Change(title, (ConfigEdit("set", ("code_language",), language),), 1.2)
        for other in range(1, min(len(blocks), _BLOCKS) + 1):
            if other != position:
                ops = (ConfigEdit("set", ("extract_code_block",), other),)
                yield Change(f"take the {nth(other)} code block", ops, 1.5)
    if "code_language" in value and number is not None:
        yield Change("a code block of any language", (ConfigEdit("remove", ("code_language",)),), 1.4)
    if value.get("extract_match", 1) != 1:
        yield Change("take the 1st match", (ConfigEdit("remove", ("extract_match",)),), 1.4)
    for name in own:
        if name == "of" and "probe" in own:
            yield Change("look at the value after the run", (ConfigEdit("remove", ("of",)),), 2.6)
        elif name not in ("with_block", "extract_match", "code_language", "probe"):
            yield Change(f"drop `{name}`", (ConfigEdit("remove", (name,)),), 2.6)
    if len(own) > 1 and "probe" not in own:
        away = tuple(ConfigEdit("remove", (name,)) for name in own)
        yield Change("look at the whole answer", away, 2.9)


def path_changes(value: Mapping[str, Any], transcript: Transcript) -> Iterator[Change]:
    """The path into the answer's JSON with the names that its keys have, where the evidence says which are meant."""
    path, written = value.get("extract_path"), value.get("extract_path")
    # One name at a time: only with the first put right is it known which names come next.
    for _ in range(_STEPS):
        try:
            prototype = JsonResponse(extract_path=path)
            steps = compile_path(path).steps if isinstance(path, str) else None
            fields = prototype.why_nothing(transcript).fields if steps is not None else {}
        except (ValueError, AgentevalError):
            return
        meant = fields.get("meant")
        if not meant or steps is None:
            break
        path = dotted_path([*meant, *steps[len(meant) :]])
    if path != written:
        yield Change(f"`extract_path` {path}", (ConfigEdit("set", ("extract_path",), path),), 1.1)


def json_changes(at: Path, raw: Mapping[str, Any], result: MetricResult) -> Iterator[tuple[str, Change]]:
    """What the evidence of a Json metric names: JSON within a text, and a key with nearly the name of one required."""
    for line in result.evidence:
        if line.passed is False and line.code == Code.NOT_JSON and {"part", "block"} & line.fields.keys():
            change = Change("JSON anywhere in the text", (ConfigEdit("set", (*at, "anywhere"), True),), 1.2)
            yield f"{at}{line.condition}", change
    for line, name, index in missed_properties(raw, result):
        if line.code != Code.MISSING or name != "required_keys" or index is None:
            continue
        before = [str(step) for step in line.fields.get("path", ())]
        rest = str(line.fields["key"]).split(".")[len(before) :]
        there = [str(name) for name in line.fields.get("there", {}).get("keys", ())]
        if rest and (near := closest(rest[0], there)):
            key = ".".join((*before, near, *rest[1:]))
            change = Change(f"require `{key}`", (ConfigEdit("set", (*at, name, index), key),), 1.2)
            yield f"{at}{line.condition}", change


def flag_changes(at: Path, raw: Mapping[str, Any]) -> Iterator[Change]:
    """More flags for a pattern: each that it lacks, and several together."""
    if raw.get("not"):
        return
    pattern, flags = raw.get("pattern"), raw.get("flags", "")
    if not isinstance(pattern, str) or not isinstance(flags, str):
        return
    try:
        own = {*flags, *compile_with_flags(pattern, flags).flags}
    except ValueError:
        return
    lacking = [flag for flag in _FLAGS if flag not in own]
    for number in range(1, len(lacking) + 1):
        for some in combinations(lacking, number):
            more = flags + "".join(some)
            phrase = " and ".join(_FLAGS[flag] for flag in some)
            cost = 1.0 + 0.1 * number + (0.05 if "s" in some else 0.0)
            yield Change(f'{phrase}: `flags` "{more}"', (ConfigEdit("set", (*at, "flags"), more),), cost)


def metric_changes(at: Path, raw: Mapping[str, Any], result: MetricResult) -> Iterator[tuple[str, Change]]:
    """A limit moved to what was measured, an entry of a list left out, a property left out."""
    for line, name, index in missed_properties(raw, result):
        key, path, written = f"{at}{line.condition}", (*at, name), raw[name]
        # Larger ones can't be rounded to the digits that a limit keeps.
        if all(is_number(value) and abs(value) < 1e15 for value in (written, line.found)):
            limit = _rounded(line.found, written, up=line.found > written)
            yield key, Change(f"`{name}` {shown(limit)}", (ConfigEdit("set", path, limit),), 1.3)
        if index is not None and isinstance(written, list) and index < len(written):
            gone = entry_removal(at, name, index, len(written))
            yield key, Change(f"no longer look for {shown(written[index], 40)}", (gone,), 2.0)
        yield key, Change(f"drop `{name}`", (ConfigEdit("remove", path),), 3.0)


def whole_metric_changes(at: Path, raw: Mapping[str, Any], kind: str, result: MetricResult) -> Iterator[Change]:
    """Settings that make a metric as a whole more lenient: for whatever of it fails."""
    score = result.score or 0.0
    for type_name, name in (("Keywords", "min_fraction"), ("Lexical", "min"), ("Similarity", "min")):
        if kind == type_name and score > 0:
            # Rounded down, so that the score is still within.
            limit = math.floor(score * 100) / 100
            yield Change(f"`{name}` {limit:g}", (ConfigEdit("set", (*at, name), limit),), 1.6)
    if kind == "Regex":
        yield from flag_changes(at, raw)
    if kind == "Trajectory":
        for mode, cost in (("unordered", 1.3), ("superset", 1.6), ("subset", 1.6), ("any", 2.2)):
            if raw.get("mode") != mode:
                yield Change(f"`mode` {mode}", (ConfigEdit("set", (*at, "mode"), mode),), cost)
        for mode, cost in (("subset", 1.5), ("superset", 1.5), ("ignore", 1.9)):
            if raw.get("arguments_mode") != mode:
                yield Change(f"`arguments_mode` {mode}", (ConfigEdit("set", (*at, "arguments_mode"), mode),), cost)


def without_metric(at: Path, name: str) -> Change:
    """The metric taken out."""
    return Change(f"drop the metric {name}", (ConfigEdit("remove", at),), 5.0)


def negated_changes(value: Mapping[str, Any], results: tuple[MetricResult, ...]) -> Iterator[Change]:
    """A negated criterion passes when one metric fails: what makes the metrics stricter."""
    for number, raw in enumerate(value.get("metrics") or ()):
        if number >= len(results) or results[number].outcome is not Outcome.PASSED or not isinstance(raw, Mapping):
            continue
        at: Path = ("metrics", number)
        for line in results[number].evidence:
            listed = raw.get(line.condition)
            if (
                line.passed
                and isinstance(listed, list)
                and isinstance(line.found, list)
                and isinstance(line.expected, list)
            ):
                hits = [place for place, needle in enumerate(listed) if needle in line.found]
                if 0 < len(hits) < len([needle for needle in listed if needle]):
                    ops = tuple(ConfigEdit("remove", (*at, line.condition, place)) for place in hits)
                    phrase = " and ".join(quoted(listed[place], 40) for place in hits)
                    yield Change(f"no longer look for {phrase}", ops, 1.0 + len(hits))
        for name in ("contains_ignore_case", "equals_ignore_case"):
            exact = name.removesuffix("_ignore_case")
            if name in raw and exact not in raw:
                yield Change(f"only in this case: `{exact}`", (ConfigEdit("rename", (*at, name), exact),), 1.2)


def _rounded(actual: float, written: object, *, up: bool) -> int | float:
    """What was measured, rounded so that it still is within the limit."""
    if isinstance(written, int) and float(actual).is_integer():
        return int(actual)
    if isinstance(written, int) and abs(actual) >= 10:
        return math.ceil(actual) if up else math.floor(actual)
    digits = 4 - math.floor(math.log10(abs(actual))) if actual else 0
    scale = 10.0**digits
    return (math.ceil(actual * scale) if up else math.floor(actual * scale)) / scale
