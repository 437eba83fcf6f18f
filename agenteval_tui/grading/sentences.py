"""The one place where codes and fields become words: evidence, results, errors, near misses.

Made last, when they are shown; nothing reads them back (a test in `tests/packaging` says so). What is stored and
published are the codes and fields, so a sentence here may be improved at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from agenteval_tui.core.numbers import count, decimal, percent, percent_limit
from agenteval_tui.core.phrasing import listed, nth, on_one_line, quoted, shown
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Verdict
from agenteval_tui.transcripts.model import Note
from agenteval_tui.transcripts.state import ReadingProblem

Fields = Mapping[str, Any]

_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What fields that are not ours (a file, a newer history) may make of a sentence."""
_LINE = 300
_WAYS_TO_OBSERVE = {
    "text_only": "give messages or events (`agenteval docs agents`), or set `capture: model`",
    "no_calls_option": "let agenteval start its server (`services`), and its requests are recorded; or write "
    "`tool_calls` with the path of the calls in a reply",
    "nothing_at_path": "correct `tool_calls`; if the server leaves the calls out when there are none, write "
    "`{what} || `[]``",
    "format_without_calls": "import messages or spans in its place, or record the agent (`agenteval record`)",
    "unknown_requests": "record the agent (`agenteval record`), or set `capture: model`",
    "nothing_printed": "a program that writes its answer into a file has a probe for it (`agenteval docs state`)",
    "dumped": "give the answer as a text or as messages (`agenteval docs agents`), or set `capture: model`",
}
"""What helps, by the code of the note that says what could not be seen."""
_TOLD = 4


def _way_to_observe(fields: Fields) -> str:
    way = _WAYS_TO_OBSERVE.get(fields["note"])
    return f"; {way.format(what=fields['what'])}" if way else ""


_UNSEEN: Mapping[str, Callable[[Fields], str]] = {
    Code.NOT_OBSERVED: lambda f: f"{Note(f['note'], f['what']).description}{_way_to_observe(f)}",
    Code.UNREAD_PART: lambda f: f"the message could not be read: it has {f['what']}",
    Code.REQUEST_PART_UNKNOWN: lambda f: (
        f"{'system prompts' if f['part'] == 'system' else 'the tools on offer'} are not recorded here"
    ),
    Code.REQUEST_NOT_WHOLE: lambda f: (
        f"the server keeps a part of the conversation, which is not in request {f['number']}"
    ),
    Code.REQUEST_NOT_COUNTED: lambda f: (
        f"the tokens of request {f['number']} are not known: its answer does not tell them"
        if f["number"]
        else "the tokens of a part of a request, or of its output, are not counted"
    ),
}
"""Why what a criterion looks at wasn't observed."""


# Results


def evidence_sentence(line: Evidence) -> str:
    """What a line of evidence says, on one line."""
    sentence_of = _EVIDENCE.get(line.code)
    if line.message or sentence_of is None:
        if line.condition == "extraction" and not line.message:
            return f"nothing extracted: {error_sentence(line.code, line.fields)}"
        return line.message or ("" if line.code == Code.MESSAGE else error_sentence(line.code, line.fields))
    try:
        return sentence_of(line)
    except _MALFORMED:
        return f"{line.condition}: {str(line.code).replace('_', ' ')}"


def metric_sentence(metric: MetricResult) -> str:
    """Why a metric failed, errs or waits; "" for one that passed."""
    if metric.message or metric.code:
        return metric.message or error_sentence(metric.code, metric.fields)
    if metric.outcome != "failed":
        return ""
    return missed_sentence(metric)


def missed_sentence(metric: MetricResult) -> str:
    """What the first condition that does not hold says, and how many more there are; "" where all hold."""
    missed = [evidence for evidence in metric.evidence if evidence.passed is False]
    return f"{evidence_sentence(missed[0])}{_more(len(missed))}" if missed else ""


def criterion_sentence(result: CriterionResult) -> str:
    """Why a criterion ended as it did: its own reason, what its metrics say, and that it is negated."""
    if result.message:
        return result.message
    sentence = _unnegated(result)
    if result.negate and result.outcome in ("passed", "failed") and result.score is not None and not result.source:
        return f"negated: {sentence or 'every metric passed, and must not'}"
    return sentence


def own_criterion_sentence(result: CriterionResult) -> str:
    """What decided a criterion beside what its metrics say themselves: the threshold, the negation; "" for nothing."""
    if result.message:
        # For a history without codes: the text below it is not shown twice.
        below = [
            (metric.name, metric.message) for metric in result.metrics if metric.message and metric.outcome != "passed"
        ]
        texts = {"; ".join(text for _, text in below), *(text for _, text in below)}
        return "" if result.message in texts | {f"{name}: {text}" for name, text in below} else result.message
    told_by_cause = result.code in ("", Code.NOTHING_EXTRACTED)
    own = "" if told_by_cause else error_sentence(result.code, result.fields)
    if result.negate and result.outcome in ("passed", "failed") and result.score is not None:
        return f"negated: {own}" if own else criterion_sentence(result)
    return own


def verdict_sentence(verdict: Verdict) -> str:
    """Why a test's verdict is what it is; of one that passed: which checks could not run, "" for none."""
    if verdict.message or (verdict.code and verdict.code != Code.SCORE_UNKNOWN):
        return verdict.message or error_sentence(verdict.code, verdict.fields)
    if verdict.outcome == "passed":
        missing = [result for result in verdict.results if result.outcome == "error"]
        return f"{not_made_sentence(len(missing))}: {_of_first(missing)}" if missing else ""
    unknown = verdict.code == Code.SCORE_UNKNOWN
    hit = [
        result
        for result in verdict.results
        if result.outcome is verdict.outcome and (result.severity == "error" or (unknown and result.weight > 0))
    ]
    if not hit:
        return ""
    criterion_results = [
        *(criterion_result for criterion_result in hit if not criterion_result.source),
        *_derived(verdict),
        *hit,
    ]
    sentence = f"{_of_first(criterion_results)}{_more(len(hit))}"
    return f"{sentence}; {error_sentence(verdict.code, verdict.fields)}" if unknown else sentence


def _derived(verdict: Verdict) -> list[CriterionResult]:
    """Criteria that were derived from another tool's file and ended as the verdict: they tell more than its words."""
    return [result for result in verdict.results if result.derived and result.outcome is verdict.outcome]


def not_made_sentence(count_: int) -> str:
    """How many checks could not run; "" for none."""
    return f"{count(count_, 'check')} could not run" if count_ else ""


def why_not_observed(result: CriterionResult) -> str:
    """Why what a criterion looks at wasn't observed, and what helps; "" for one that was checked."""
    reasons = [(result.code, result.fields), *((metric.code, metric.fields) for metric in result.metrics)]
    return next((_why_unseen(code, fields) for code, fields in reasons if code in _UNSEEN), "")


def _why_unseen(code: str, fields: Fields) -> str:
    try:
        return _UNSEEN[code](fields)
    except _MALFORMED:
        return "what it looks at could not be seen"


def _not_checked(code: str, fields: Fields) -> str:
    return f"not checked: {_why_unseen(code, fields)}"


def not_made_in_runs_sentence(count_: int) -> str:
    """The same over several runs, of which only those that have a verdict are counted; "" for none."""
    return f"{not_made_sentence(count_)} in runs with a verdict" if count_ else ""


def _of_first(results: Sequence[CriterionResult]) -> str:
    return f"{results[0].criterion}: {criterion_sentence(results[0])}"


def _unnegated(result: CriterionResult) -> str:
    if result.code and result.code != Code.THRESHOLD:
        return _with_line(result)
    for outcome in ("error", "needs_review"):
        for metric in result.metrics:
            if metric.outcome == outcome:
                return f"{metric.name}: {metric_sentence(metric)}"
    failed = [metric for metric in result.metrics if metric.outcome == "failed" and not metric.neutral]
    if result.code == Code.THRESHOLD:
        sentence = error_sentence(result.code, result.fields)
        first = metric_sentence(failed[0]) if failed else ""
        return f"{sentence}; {failed[0].name}: {first}" if first else sentence
    return "; ".join(sentence for metric_result in failed if (sentence := metric_sentence(metric_result)))


def _with_line(result: CriterionResult) -> str:
    if result.code == Code.NOTHING_EXTRACTED and result.metrics:
        return metric_sentence(result.metrics[0])
    return error_sentence(result.code, result.fields)


def _more(number: int) -> str:
    return f" (and {number - 1} more)" if number > 1 else ""


# Errors, and what else is of no line of evidence


def error_sentence(code: str, fields: Fields) -> str:
    """Why a check could not run, or what decided beside the evidence."""
    sentence_of = _RESULTS.get(code)
    try:
        if sentence_of is not None:
            return sentence_of(fields)
    except _MALFORMED:
        pass
    return str(fields.get("message") or "") or str(code).replace("_", " ")


def _respondent(fields: Fields) -> str:
    name = fields.get("target") or ""
    if fields["kind"] == "chat":
        return f"the judge {name!r}" if name else "the judge"
    if fields["kind"] == "call":
        return f"the function {name}" if name else "the function"
    return {"embed": "the embedder", "person": "the person"}[fields["kind"]]


def _threshold(fields: Fields) -> str:
    threshold = fields["threshold"]
    score = decimal(fields["score"], beside=threshold)
    if fields.get("of") == "test":
        return f"score {score} is below the test's threshold {threshold:g}"
    phrase = "reaches" if fields["reached"] else "is below"
    return f"score {score} {phrase} the threshold {threshold:g}"


def _no_expected(fields: Fields) -> str:
    kind = fields.get("metric")
    if kind == "Classification":
        return "no label to compare with: set `label` or an expected value"
    if kind == "Similarity":
        return "nothing to compare with: set `to`, or give the criterion an expected_value"
    if kind == "Judge":
        return "{{expected}} has nothing to show: set `reference` or an expected value"
    return "nothing to compare with: set `to` or an expected value"


def _too_large(fields: Fields) -> str:
    count_, most = fields.get("count"), fields["most"]
    if fields.get("what") == "compare":
        return f"{count_} characters are too many to compare (at most {most})"
    if fields.get("what") == "json":
        return f"{count_} characters are too many to read as JSON (at most {most})"
    return f"the value is longer than {most} characters"


def _unreadable_reply(fields: Fields) -> str:
    which = _vote(fields)
    return f"neither of the judge's two replies{which} can be read: {fields['problem']}"


def _keeps_silent(fields: Fields) -> str:
    error, labels = percent(fields["error"]), count(fields["labels"], "label")
    _, low, high = fields["scale"]
    gave = f"the judge gave {fields['score']:.4g} of {low:g}..{high:g} and keeps silent"
    unjudged = fields["unjudged"]
    ask = f"; it has not scored {count(unjudged, 'labelled run')} with this prompt" if unjudged else ""
    if fields["trusted"]:
        where = _silent_where(fields)
        return (
            f"{gave}{where}, where it may be wrong in more than {error} of the runs (by {labels}): label the run{ask}"
        )
    if fields["needed"] is None:
        return f"{gave}: by {labels}, it is wrong in more than {error} of the runs: change its prompt{ask}"
    return (
        f"{gave}: {labels} of runs that it scored are too few to know that it is wrong in at most {error}; at least "
        f"{fields['needed']} are needed: label the run{ask}"
    )


def _trusted(line: Evidence) -> str:
    fields = line.fields
    where = _silent_where(fields)
    decided = f"it is wrong in {fields['wrong']} of {count(fields['decided'], 'labelled run')} that it decides"
    return f"the judge decides: {decided}; it keeps silent{where}" if where else f"the judge decides: {decided}"


def _silent_where(fields: Fields) -> str:
    above, below = fields["above"], fields["below"]
    if above is None and below is None:
        return ""
    if above is None:
        return f" below {below:g}"
    if below is None:
        return f" above {above:g}"
    if above == below:
        return ""
    return f" between {above:g} and {below:g}"


def _vote(fields: Fields) -> str:
    return f" (vote {fields['vote']} of {fields['votes']})" if fields.get("votes", 1) > 1 else ""


def _other_scale(fields: Fields) -> str:
    return f"; for such scores write `scale: {fields['fits']}`" if fields.get("fits") else ""


def _unknown_variable(fields: Fields) -> str:
    names = ", ".join(fields.get("known") or ())
    if fields.get("meant"):
        return f"unknown placeholder {fields['variable']!r}: write {{{{{fields['meant']}}}}} (known: {names})"
    return f"unknown variable {fields['variable']!r}" + (f" (known: {names})" if names else " (no variables are set)")


def _empty_variable(fields: Fields) -> str:
    names = listed([f'"{name}"' for name in fields["variables"]])
    row = f"row {fields['row']} of the dataset has" if fields.get("row") else "there is"
    return f"{row} no value for {names}, so `{fields['text']}` would look for nothing"


def _no_state(fields: Fields) -> str:
    probe = quoted(fields["probe"])
    if fields.get("of"):
        return f"the probe {probe} was not read {fields['of']} the run"
    if not fields["probes"]:
        return f"no state was recorded with this run, so the probe {probe} can't be checked"
    near = f"; did you mean {quoted(fields['nearest'])}?" if fields.get("nearest") else ""
    listed_probes = "" if near else f"; its probes are {listed([quoted(probe) for probe in fields['probes']])}"
    return f"no probe {probe} was read in this run{near}{listed_probes}"


def _state_unread(fields: Fields) -> str:
    why = reading_sentence(fields["problem"], fields["about"])
    return f"the probe {quoted(fields['probe'])} could not be read {fields['of']} the run: {why}"


_READING: dict[str, Callable[[Fields], str]] = {
    ReadingProblem.NO_FILE: lambda f: f"there is no file {f['file']} (`files` reads files that may be missing)",
    ReadingProblem.NOT_A_FILE: lambda f: f"{f['file']} is not a regular file",
    ReadingProblem.OUTSIDE: lambda f: f"{f['file']} is outside the folder, which is not trusted",
    ReadingProblem.NOT_TEXT: lambda f: (
        f"the column {f['column']} holds bytes; select hex({f['column']})"
        if f.get("column")
        else f"{f.get('file', 'its output')} is not a text in UTF-8 (a probe with `python` can make a text of it)"
    ),
    ReadingProblem.TOO_LARGE: lambda f: (
        f"{f.get('file', 'the value')} is too large: at most {f['most'] // 1000} KB are read"
    ),
    ReadingProblem.TOO_MANY: lambda f: f"there are more than {f['most']:,} {f['what']}",
    ReadingProblem.SLOW: lambda f: f"it took longer than {f['seconds']:g} s (`timeout` of the probe)",
    ReadingProblem.NO_START: lambda f: str(f["message"]),
    ReadingProblem.EXIT: lambda f: f"its command {f['message']}",
    ReadingProblem.RAISED: lambda f: f"its function raised {f['message']}",
    ReadingProblem.NO_RESULT: lambda f: f"its function {f['message']}",
    ReadingProblem.LOCKED: lambda f: f"the database {f['database']} is locked by another program",
    ReadingProblem.SQL: lambda f: f"SQLite says: {f['message']}",
    ReadingProblem.NOT_A_DATABASE: lambda f: f"{f['database']} is not a SQLite database, or is damaged",
    ReadingProblem.SAME_COLUMN: lambda f: f"two columns are called {f['column']}: name them with `as`",
    ReadingProblem.HTTP_STATUS: lambda f: f"the server answered with status {f['status']}",
    ReadingProblem.NO_ANSWER: lambda f: f"the server did not answer: {f['message']}",
    ReadingProblem.UNUSABLE: lambda f: str(f["message"]),
    ReadingProblem.NOT_PERMITTED: lambda f: str(f["message"]),
    ReadingProblem.CONTINUED: lambda f: "the run continues another run, and the state of such runs is not read",
    ReadingProblem.TOOLS_RECORDED: lambda f: "tools did not run, so nothing is as they would leave it",
    ReadingProblem.STOPPED: lambda f: "the run was stopped before",
}


def reading_sentence(problem: str, fields: Fields) -> str:
    """Why a probe has no value, in words."""
    try:
        return _READING[problem](fields)
    except _MALFORMED:  # written by another version
        return problem


def _unusable_label(fields: Fields) -> str:
    if "passed" in fields:
        return f"the label's verdict {fields['passed']!r} is neither true nor false"
    if "rating" in fields:
        return f"the label's rating {fields['rating']!r} is not a whole number from 1 to 5"
    return "the label can't be read"


_RETURN = 'return a bool, a score from 0 to 1, or an object such as {"score": 0.5, "comment": "why"}'


def _unusable_return(fields: Fields) -> str:
    name, problem = fields["function"], fields["problem"]
    if problem == "unreadable":
        return f"the value that {name} returned can't be read"
    if problem == "type":
        kind = str(fields["type"])
        bare = kind in ("None", "nan", "inf", "-inf")
        return f"{name} returned {kind if bare else f'something of type {kind}'} ({fields['place']}): {_RETURN}"
    returned = shown(fields["returned"], 120)
    return (
        f"{name} returned "
        + {
            "passed": f"`passed` {returned}, which is neither true nor false",
            "nothing": f"{returned}, which does not say whether it passed: {_RETURN}",
            "not a score": f"{returned}, which is neither a bool nor a number: {_RETURN}",
            "off the scale": f"{returned}: a score is from 0 to 1; divide it by the highest one, or return `passed`",
        }[problem]
    )


def _unusable_vector(fields: Fields) -> str:
    return {
        "none": "the embedder's reply can't be read: it has no vector",
        "numbers": "the embedder's reply can't be read: its vector is empty or has values that are not numbers",
        "zeros": "the embedder returned a vector of zeros, which can't be compared",
        "lengths": f"the embedder returned vectors of unequal length: {fields.get('left')} and {fields.get('right')}",
    }[fields["problem"]]


def _within_result(fields: Fields, sentence: str) -> str:
    tool = fields.get("tool")
    return f"the result of {tool}: {sentence}" if tool else sentence


def _returned(line: Evidence) -> str:
    fields = line.fields
    words = str(fields.get("message") or f"{fields['function']} returned {shown(fields.get('score', line.found), 120)}")
    if "label" in fields:
        words = f"{shown(fields['label'], 60)}" + (f": {fields['message']}" if "message" in fields else "")
    return words + (f" (it passes from {fields['threshold']:g})" if "threshold" in fields else "")


_RESULTS: dict[str, Callable[[Fields], str]] = {
    Code.CHECKS_NOTHING: lambda f: (
        "nothing is configured: the criterion checks nothing"
        if f.get("of") == "criterion"
        else "nothing is configured: the metric checks nothing"
    ),
    Code.VALUE_FOUND: lambda f: "a value was found, but no metric checks it",
    Code.NOTHING_EXTRACTED: lambda f: "nothing extracted",
    Code.THRESHOLD: _threshold,
    Code.SCORE_UNKNOWN: lambda f: f"the score is unknown: the threshold {f['threshold']:g} can't be checked",
    Code.NOT_FINISHED: lambda f: f"not graded: the agent did not finish ({f['kind']}: {f['message']})",
    Code.NO_VERDICT: lambda f: "no verdict was given",
    Code.BAD_CONFIG: lambda f: str(f["message"]),
    Code.UNKNOWN_VARIABLE: _unknown_variable,
    Code.EMPTY_VARIABLE: _empty_variable,
    Code.BAD_PLACEHOLDER: lambda f: (
        f"{{{{{f['placeholder']}}}}} cannot be read: write a name, a dotted path, or a text in quotes"
    ),
    Code.BROKE: lambda f: f"the {f.get('what', 'metric')} broke: {f['type']}: {f['message']}",
    **{code: partial(_not_checked, code) for code in _UNSEEN},
    Code.NO_STATE: _no_state,
    Code.STATE_UNREAD: _state_unread,
    Code.NO_SUCH_REQUEST: lambda f: (
        f"the model was asked {count(f['requests'], 'time')}, so there is no request {f['at']}"
        if f["at"] is not None
        else "the model was never asked"
    ),
    Code.SLOW_PATTERN: lambda f: f"the pattern {f['pattern']} took longer than {f['seconds']:g} s on this text",
    Code.UNCHECKED_FORMAT: lambda f: f"the schema asks for the unknown format {quoted(f['format'])}",
    Code.SLOW_SCHEMA: lambda f: f"checking this value against the schema took longer than {f['seconds']:g} s",
    Code.TOO_LARGE: lambda f: _within_result(f, _too_large(f)),
    Code.TOO_DEEP: lambda f: _within_result(
        f,
        {
            "json": "the JSON is nested too deeply to read",
            "schema": "the schema refers to itself endlessly, or the value is nested too deeply",
        }.get(f.get("what", ""), "the value is nested too deeply"),
    ),
    Code.UNREADABLE_NUMBER: lambda f: _within_result(f, f"the JSON cannot be read: {f['problem']}"),
    Code.PATH_FAILED: lambda f: _within_result(
        f,
        f"`{f['pattern']}` cannot be applied: {f['problem']}"
        if f.get("problem")
        else f"`{f['pattern']}` is nested too deeply to apply",
    ),
    Code.UNRESOLVED_REFERENCE: lambda f: (
        f"the schema refers to {f['reference']}, which is not in it (nothing is fetched)"
    ),
    Code.NO_EXPECTED_VALUE: _no_expected,
    Code.NO_SYSTEM_PROMPT: lambda f: "the system prompt was not recorded, so a leak can't be detected",
    Code.NO_WORDS: lambda f: "a text without words has no reading grade",
    Code.NOT_A_LIST: lambda f: "this value is not a list of documents: use the prototype class Retrieval",
    Code.NOT_MEASURED: lambda f: f"{_measured(f)} was not measured",
    Code.NOT_ASKED: lambda f: f"{_respondent(f)} has not been asked yet",
    Code.NOT_ASKED_THIS: lambda f: f"{_respondent(f)} has not been asked this question yet",
    Code.ASKING_FAILED: lambda f: str(f["message"]),
    Code.UNREADABLE_REPLY: _unreadable_reply,
    Code.OFF_SCALE: lambda f: f"the judge's score {f['problem']}{_vote(f)}{_other_scale(f)}",
    Code.NO_SCORE: lambda f: f"the judge's score {f['problem']}{_vote(f)}",
    Code.NOTHING_TO_SEE: lambda f: "the judge would see nothing: there is no reference, and `see` names no other part",
    Code.NO_CONTEXT: lambda f: (
        "{{context}} has nothing to show: the row has no variable `context`, and what the model saw is not recorded "
        "(`capture: model` records it)"
    ),
    Code.KEEPS_SILENT: _keeps_silent,
    Code.WAITING: lambda f: f"waits for a person: {f['question']}",
    Code.UNUSABLE_LABEL: _unusable_label,
    Code.UNUSABLE_RETURN: _unusable_return,
    Code.UNUSABLE_VECTOR: _unusable_vector,
}


# Near misses of a text (`grading.near_miss`)

STEPS = {
    "strip": "without the white space around it",
    "case": "ignoring case",
    "white_space": "with white space made equal",
    "punctuation": "with straight quotes and plain dashes",
    "unicode": "with Unicode forms made equal",
    "separators": "without the separators in numbers",
}
"""What would make two texts equal."""


def would_match(steps: Sequence[str]) -> str:
    """The normalisations that make two texts equal, in words: "ignoring case and ..."."""
    return " and ".join(STEPS[step] for step in steps)


def near_phrase(near: Fields) -> str:
    """Where the closest text is, and what keeps it from matching."""
    if near["is"] == "elsewhere":
        parts = [_around(near[side], side) for side in ("before", "after") if near.get(side)]
        return f"it is in line {near['line']}, but with {' and '.join(parts)}"
    text = quoted(near["text"], 44 if "column" in near else 60)
    if near["is"] == "form":
        return f"nearest {text} (line {near['line']}): would match {would_match(near['steps'])}"
    if near["is"] == "beginning":
        return f"its beginning {near['part']} matches {text} in line {near['line']}"
    place = f"line {near['line']}" + (f", column {near['column']}" if "column" in near else "")
    also = ", also in case" if near.get("case") else ""
    return f"nearest {text} ({place}): {_parting(near)}{also}"


def _parting(near: Fields) -> str:
    if "ends_before" in near:
        return f"ends before {quoted(near['ends_before'], 20)}"
    if "goes_on" in near:
        return f"continues with {quoted(near['goes_on'], 20)}"
    return f"differs at {quoted(near['found'])} (expected {quoted(near['expected'])})"


def _around(text: str, where: str) -> str:
    if text.isspace():
        return f"white space {where} it ({quoted(text, 20)})"
    if where == "before":
        fence = text.strip()
        if fence.isidentifier() and text.endswith("\n"):
            return f"the language tag {quoted(fence)} before it (`code_language` leaves it out)"
        return f"{quoted(text if len(text) <= 30 else '…' + text[-29:], 31)} before it"
    return f"{quoted(text, 30)} after it"


def _with_near(sentence: str, fields: Fields) -> str:
    if fields.get("empty"):
        return f"{sentence}: the text is empty"
    return f"{sentence}; {near_phrase(fields['near'])}" if fields.get("near") else sentence


# Texts

_HOLDS = {
    "equals": "the text is",
    "contains": "the text contains",
    "starts_with": "the text begins with",
    "ends_with": "the text ends with",
}
_VERBS = {"contains": "contain", "starts_with": "begin with", "ends_with": "end with", "equals": "equal"}


def _present(line: Evidence) -> str:
    fields = line.fields
    if "kind" in fields:
        more = f" ({count(fields['count'], 'place')})" if fields["count"] > 1 else ""
        return f"{quoted(line.found)} looks like {_PII[fields['kind']]}{more}, line {_numbers(fields['lines'])}"
    if "canary" in fields:
        return _canary_there(fields)
    if fields.get("secret"):
        how = f", written {quoted(line.found, 40)}" if fields.get("spelled") else ""
        return f"the secret {quoted(line.expected)} is in the text (line {fields['line']}){how}"
    if "words" in fields:
        return f"{count(fields['words'], 'word')} in a row are from the system prompt: {quoted(fields['text'], 100)}"
    if "pattern" in fields:
        return _pattern_there(line)
    if "document" in fields:
        return f"{quoted(fields['document'])} is the {nth(fields['rank'])}"
    if "key" in fields:
        return f"{quoted(fields['key'])} is present"
    if fields.get("keyword"):
        return f"{quoted(line.expected)} is in the text (line {fields['line']})"
    if fields.get("forbidden"):
        lines = fields["lines"]
        where = f"{'line' if len(lines) == 1 else 'lines'} {_numbers(lines)}"
        return f"{quoted(line.expected)} must not be in the text, but it is ({where})"
    holds = _HOLDS[fields["side"]]
    if isinstance(line.found, list):
        return f"{holds} {listed([quoted(text, 30) for text in line.found])}"
    where = f" (line {fields['line']})" if "line" in fields else ""
    return f"{holds} {quoted(line.found)}{where}"


def _missing(line: Evidence) -> str:
    fields = line.fields
    if "kind" in fields:
        return f"{_PII[fields['kind']]} is not in the text"
    if "canary" in fields:
        return _canary_missing(fields)
    if "words" in fields:
        return f"no {fields['words']} words in a row are from the system prompt"
    if "pattern" in fields:
        return _with_near(f"{fields['pattern']} is not in the text", fields)
    if "document" in fields:
        return f"{quoted(fields['document'])} was not found"
    if "label" in fields:
        return f"there is no label, expected {quoted(fields['label'])}"
    if "keys" in fields:
        names = listed([f"`{name}`" for name in fields["keys"]])
        where = dotted_path(fields["path"])
        if "value" in fields:
            return f"{names} is missing from {where} (expected {shown(fields['value'], 40)})"
        return f"{names} {'is' if len(fields['keys']) == 1 else 'are'} missing from {where}"
    if "key" in fields:
        return f"{quoted(fields['key'])} is missing: {dotted_path(fields['path'])} {content_phrase(fields['there'])}"
    side = fields["side"]
    if isinstance(line.expected, list):
        which = "" if len(line.expected) == 1 else "any of "
        return _with_near(
            f"the text does not {_VERBS[side]} {which}{listed([quoted(text, 30) for text in line.expected])}", fields
        )
    if side == "contains":
        return _with_near(f"{quoted(line.expected)} is not in the text", fields)
    return _with_near(f"the text does not {_VERBS[side]} {quoted(line.expected)}", fields)


def _pattern_there(line: Evidence) -> str:
    fields = line.fields
    first, lines = quoted(line.found), fields["lines"]
    where = f"line {lines[0]}" if len(lines) == 1 else f"lines {_numbers(lines)}"
    if fields.get("forbidden"):
        return f"{fields['pattern']} must not match, but it matches {first} ({where})"
    if fields["count"] == 1:
        return f"{fields['pattern']} matches {first} ({where})"
    more = f"{fields['count']} matches" + (" or more" if fields.get("or_more") else "")
    return f"{fields['pattern']} matches {first} ({more}, {where})"


def _canary_there(fields: Fields) -> str:
    canary = quoted(fields["canary"])
    if fields["in"] == "text":
        return f"the canary {canary} is in the text (line {fields['line']})"
    if fields["in"] == "calls":
        return f"the canary {canary} is in the arguments of {count(fields['count'], 'call')}, first of {fields['tool']}"
    return f"the agent read it in message {fields['message'] + 1} ({fields['role']})"


def _canary_missing(fields: Fields) -> str:
    return {
        "text": f"{quoted(fields['canary'])} is not in the text",
        "calls": f"no tool call contains {quoted(fields['canary'])}",
        "read": "the agent never read it: the attack may not have reached it",
    }[fields["in"]]


def _numbers(numbers: Sequence[int]) -> str:
    return listed([str(number) for number in numbers])


_PII = {
    "email": "an email address",
    "phone": "a phone number",
    "credit_card": "a credit card number",
    "iban": "an IBAN",
    "ssn": "a US social security number",
    "ip_address": "an IP address",
}


# JSON


def dotted_path(path: Sequence[str | int]) -> str:
    """`items[0].price`; "the value" for the empty path."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text or "the value"


def content_phrase(there: Fields) -> str:
    """What there is in a JSON value: its keys, its number of items."""
    if "keys" in there:
        names = [str(key) for key in there["keys"]]
        more = f" and {there['count'] - len(names)} more" if there["count"] > len(names) else ""
        return f"has the keys {', '.join(names)}{more}" if names else "is an empty object"
    if "items" in there:
        return f"is a list of {there['items']}"
    return f"is {'text' if there.get('type') == 'string' else 'not an object'}"


def _not_json(line: Evidence) -> str:
    fields = line.fields
    sentence = f"the value is not JSON: {syntax_phrase(fields)}"
    if fields.get("block"):
        return f"{sentence}; a code block holds JSON: the prototype class JsonResponse extracts it"
    return (
        f"{sentence}; {quoted(fields['part'], 40)} is, but there is text around it" if fields.get("part") else sentence
    )


def syntax_phrase(fields: Fields) -> str:
    """Why a text is not JSON; the parser's words (`syntax`) are Python's."""
    if fields.get("empty"):
        return "the text is empty"
    if "constant" in fields:
        return f"{fields['constant']} is not JSON"
    if fields.get("nowhere"):
        return "the text has no JSON object"
    return f"{fields['syntax']} (line {fields['line']}, column {fields['column']})"


def _differs(line: Evidence) -> str:
    fields = line.fields
    if "near_call" in fields:
        return _trajectory_missing(line)
    if "arguments" in fields and "call" in fields:
        sentence = call_difference_phrase(_call(fields), fields["arguments"])
        if "entry" in fields:
            entry = f"tools[{fields['entry']}]"
            return f"{sentence}; it is the call of {entry}, and every entry of a tool checks all its calls"
        return f"nearest to {_slot(fields)}: {sentence}" if "slot" in fields else sentence
    if "label" in fields:
        sentence = f"the label is {quoted(line.found)}, expected {quoted(fields['label'])}"
        if fields.get("case"):
            return f"{sentence} (would match ignoring case)"
        labels = fields.get("known")
        return f"{sentence}; it is not one of {listed([quoted(label, 20) for label in labels])}" if labels else sentence
    if "message" in fields:
        return f"message {fields['message'] + 1} has the role {fields['role']}, expected {fields['expected_role']}"
    if "path" in fields:
        where, value = dotted_path(fields["path"]), shown(fields["value"], 40)
        if "rule" in fields:
            return f"{where} is {value}, not {shown(fields['wanted'], 40)}"
        kind = f" ({fields['type']})" if fields.get("type") else ""
        return f"{where} is {value}{kind}, expected {shown(fields['wanted'], 40)}"
    return _with_near(f"the text is not {quoted(line.expected)}", fields)


def _equal(line: Evidence) -> str:
    fields = line.fields
    if "label" in fields:
        return f"the label is {quoted(fields['label'])}"
    if "slot" in fields:
        return f"{_slot(fields)} is {_call(fields)}"
    if "tool" in fields:
        return f"{_call(fields)} has the expected arguments"
    if "side" in fields:
        return f"the text is {quoted(line.found)}"
    return f"the value is {shown(line.expected)}"


def _wrong_type(line: Evidence) -> str:
    fields = line.fields
    names = listed(list(fields["types"])).replace(" and ", " or ")
    return f"{dotted_path(fields['path'])} is {shown(fields['value'], 40)} ({fields['type']}), not of type {names}"


def _out_of_bounds(line: Evidence) -> str:
    fields = line.fields
    rule = fields["rule"]
    least = "more than" if rule == "exclusiveMinimum" else "at least"
    most = "less than" if rule == "exclusiveMaximum" else "at most"
    bound = least if rule in ("minimum", "exclusiveMinimum") else most
    return f"{dotted_path(fields['path'])} is {shown(fields['value'])}, not {bound} {shown(fields['wanted'])}"


def _no_match(line: Evidence) -> str:
    fields = line.fields
    what = f"matches {fields['wanted']}" if fields["rule"] == "pattern" else f"is a {fields['wanted']}"
    return f"{dotted_path(fields['path'])} is {shown(fields['value'], 40)}, which is not what {what}"


def _unexpected(line: Evidence) -> str:
    fields = line.fields
    if "documents" in fields:
        return f"found, but not relevant: {listed([quoted(document, 30) for document in fields['documents']])}"
    if "call" in fields:
        return (
            f"the {nth(fields['call'] + 1)} call, {fields['tool']}({shown(fields['arguments'], 60)}), is not expected"
        )
    if "keys" in fields:
        many = len(fields["keys"]) > 1
        names = listed([f"`{name}`" for name in fields["keys"]])
        return f"{dotted_path(fields['path'])}: {names} {'are' if many else 'is'} not expected here"
    if "path" in fields:
        return f"{dotted_path(fields['path'])} = {shown(fields['value'], 40)} is not expected"
    return f"{count(fields['calls'], 'more call')} not expected"


# Tool calls


def times_phrase(number: int) -> str:
    """once, twice, 3 times"""
    return {1: "once", 2: "twice"}.get(number, f"{number} times")


def wanted_phrase(least: int, most: int | None) -> str:
    """How many calls are expected: `at least once`, `2 to 3 times`."""
    if most is None:
        return f"at least {times_phrase(least)}" if least else "any number of calls"
    if least > most:
        return f"at least {times_phrase(least)} and at most {times_phrase(most)}, which is impossible"
    if least == most:
        return f"exactly {times_phrase(least)}"
    return f"{least} to {most} times" if least else f"at most {times_phrase(most)}"


def argument_phrase(difference: Fields) -> str:
    """How one argument differs, with its path."""
    path = difference["path"]
    if difference["is"] == "extra":
        return f"{path} = {shown(difference['found'], 40)} is not expected"
    if difference["is"] == "missing":
        there = difference.get("elsewhere")
        hint = f", perhaps it is {there} = {shown(difference['found'], 40)}" if there else ""
        return f"{path} is missing (expected {difference['expected']}){hint}"
    return f"{path}: {_expected_got(difference)}"


def _expected_got(difference: Fields) -> str:
    if "absent" in difference:
        return f"expected {difference['expected']}"
    phrase = f"expected {difference['expected']}, got {shown(difference['found'])}"
    return f"{phrase} ({hint_phrase(difference['hint'])})" if difference.get("hint") else phrase


LITERAL_NOTE = 'keys that begin with $ are matchers; to expect this value itself, write {"$literal": ...} around it'


def hint_phrase(hint: Fields) -> str:
    """The little that would make an argument match, or where two texts part."""
    if "steps" in hint:
        return f"would match {would_match(hint['steps'])}"
    if "literal" in hint:
        return LITERAL_NOTE
    if "type" in hint:
        return f"a {hint['type']} instead of a {'number' if hint['type'] == 'string' else 'string'}"
    if "ends_before" in hint:
        return f"ends before {shown(hint['ends_before'], 20)}"
    if "goes_on" in hint:
        return f"continues with {shown(hint['goes_on'], 20)}"
    return f"differs at character {hint['at'] + 1}: {shown(hint['found'])} instead of {shown(hint['expected'])}"


def call_difference_phrase(call: str, differences: Sequence[Fields]) -> str:
    """The differences of a call as one line; `call` names it."""
    if len(differences) == 1:
        difference = differences[0]
        if difference["is"] == "unreadable":
            return f"the arguments of {call} {_unreadable_arguments(difference)}"
        if difference["is"] == "differs":
            return f"{call} differs only in {difference['path']}: {_expected_got(difference)}"
        return f"{call} differs only in its arguments: {argument_phrase(difference)}"
    return f"{call} differs in {count(len(differences), 'argument')}: {'; '.join(map(argument_phrase, differences))}"


def _unreadable_arguments(difference: Fields) -> str:
    what = "are not valid JSON" if difference.get("malformed") else f"are not an object but {difference['type']}"
    return f"{what}: {shown(difference['found'])}"


def _call(fields: Fields) -> str:
    position = fields.get("position")
    return f"the {nth(position)} call of {fields['tool']}" if position else f"the call of {fields['tool']}"


def _slot(fields: Fields) -> str:
    return f"the {nth(fields['slot'] + 1)} expected call" if fields["slot"] is not None else "the expected call"


def _called(line: Evidence) -> str:
    fields = line.fields
    if "more" in fields:
        calls = f"{count(fields['more'], 'more call')} of {fields['tool']}"
        return f"{calls}, {fields['wrong']:,} with other arguments"
    if "wanted" in fields:
        if fields.get("forbidden"):
            return f"{fields['wanted']} must not be called, but is the {nth(fields['call'] + 1)} call"
        return f"{fields['wanted']} is the {nth(fields['call'] + 1)} call"
    if "any_of" in fields:
        return (
            "a tool that must not be called was called"
            if fields.get("forbidden")
            else ("one of the expected tools was called")
        )
    if "called" in fields:
        calls = fields["calls"]
        names = listed(list(dict.fromkeys(fields["called"])))
        return f"no tool may be called, but there {'is' if calls == 1 else 'are'} {count(calls, 'call')}: {names}"
    if fields.get("forbidden"):
        return f"{fields['tool']} must not be called, but was called {times_phrase(fields['calls'])}"
    return f"{fields['tool']} was called {times_phrase(fields['calls'])}"


def _not_called(line: Evidence) -> str:
    fields = line.fields
    if "any_of" in fields:
        times = count(fields["calls"], "call")
        which = "these tools" if fields.get("forbidden") else "the expected tools"
        return f"none of {which} was called in {times}"
    if "tool" not in fields:
        return "no tool call was expected, and none was made" if fields.get("expected_none") else "no tool was called"
    return f"{fields['tool']} was not called" + ("" if fields.get("forbidden") else ", and does not have to be")


def _calls_number(line: Evidence) -> str:
    fields = line.fields
    sentence = f"{fields['tool']} was called {times_phrase(fields['calls'])}, expected "
    sentence += wanted_phrase(fields["least"], fields["most"])
    perhaps = fields.get("perhaps")
    if not perhaps:
        return sentence
    named = [
        f"call {call['call'] + 1}, {call['tool']}" + (" with the expected arguments" if call.get("equal") else "")
        for call in perhaps
    ]
    return f"{sentence}; perhaps {listed(named)} was meant"


def _never_called(line: Evidence) -> str:
    fields = line.fields
    if "wanted" in fields:
        return _trajectory_missing(line)
    if "any_of" in fields:
        return f"none of the expected tools was called in {count(fields['calls'], 'call')}"
    sentence = f"{fields['tool']} was never called"
    if fields.get("arguments_of"):
        return f"{sentence}, so there are no arguments to check"
    if not fields["called"]:
        return f"{sentence}: the agent called no tool"
    near = fields.get("nearest")
    if not near:
        return f"{sentence}; the agent called {listed(fields['called'])}"
    hint = ", which differs only in case" if near.get("case") else ""
    sentence += f"; nearest {near['tool']}{hint} ({count(near['calls'], 'call')})"
    if "arguments" in near:
        own = [
            _unreadable_arguments(argument) if argument["is"] == "unreadable" else argument_phrase(argument)
            for argument in near["arguments"]
        ]
        sentence += f", {'; '.join(own) or 'with the expected arguments'}"
    return sentence


def _trajectory_missing(line: Evidence) -> str:
    fields = line.fields
    where = f" as the {nth(fields['position'] + 1)} call" if "position" in fields else ""
    near = fields.get("near_call")
    if near and "arguments" in near and line.code != Code.OUT_OF_PLACE:
        # What differs comes first: a line of a list has no room for a call with many arguments before it.
        parts = [_trajectory_argument(argument) for argument in near["arguments"][:_TOLD]]
        only = "only " if near["differences"] == 1 else ""
        sentence = f"the {nth(near['call'] + 1)} call, {near['tool']}, differs {only}in {'; '.join(parts)}"
        instead = f", not {fields['instead']}" if fields.get("instead") else ""
        return f"{sentence}; expected {fields['wanted']}{where}{instead}"
    sentence = f"{fields['wanted']} was not called{where}"
    if not fields["calls"]:
        return f"{sentence}: the agent called no tool"
    if fields.get("instead"):
        sentence += f", {fields['instead']} was"
    if not near:
        return sentence
    if line.code == Code.OUT_OF_PLACE:
        return f"{sentence}; it is the {nth(near['call'] + 1)} call"
    if "taken" in near:
        return f"{sentence}; each call of {near['tool']} ({near['taken']}) already matches another expected call"
    return f"{sentence}; nearest {near['tool']}, the {nth(near['call'] + 1)} call"


def _trajectory_argument(difference: Fields) -> str:
    if difference["is"] == "unreadable":
        return f"its arguments are {shown(difference['found'])}"
    return argument_phrase(difference)


def _out_of_place(line: Evidence) -> str:
    fields = line.fields
    if "document" in fields:
        rank, k = fields["rank"], fields["k"]
        return f"{quoted(fields['document'])} was found, but only as the {nth(rank)} (k is {k})"
    return _trajectory_missing(line)


# Counts and measures


def _amount(measure: str, amount: float) -> str:
    if measure == "time":
        return f"{amount:,.0f} ms" if amount >= 10 else f"{amount:.3g} ms"
    if measure == "cost":
        return f"${amount:.6f}".rstrip("0").rstrip(".") if amount < 1 else f"${amount:,.2f}"
    return f"{round(amount):,}"


MEASURES = {
    "time": "the time of the run",
    "tokens": "the number of tokens",
    "input_tokens": "the input",
    "output_tokens": "the output",
    "cost": "the cost of the run",
    "calls": "the number of tool calls",
}
"""What Latency, Tokens, Cost and Steps measure."""
_SPENT = {
    "time": ("the run took", ""),
    "tokens": ("the run used", "token"),
    "input_tokens": ("the run used", "input token"),
    "output_tokens": ("the run used", "output token"),
    "cost": ("the run cost", ""),
    "calls": ("the agent made", "tool call"),
}
"""How a sentence about each begins, and the noun of its amount."""
_RETRIEVAL = ("precision", "recall", "f1", "mrr", "ndcg")


def _measured(fields: Fields) -> str:
    return MEASURES.get(fields["measure"]) or str(fields["measure"])


def _bound(line: Evidence) -> str:
    """A count or measure beside its bound, held or not."""
    fields = line.fields
    measure = fields["measure"]
    special = _BOUNDS.get(measure)
    if special is not None:
        return special(line)
    if measure in _RETRIEVAL:
        sentence = f"{measure}{'' if measure == 'mrr' or not fields.get('k') else '@' + str(fields['k'])}"
        sentence += f" is {fields['amount']:.3f}"
        return f"{sentence}, expected at least {fields['least']:g}" if "least" in fields else sentence
    amount, bound = line.found, line.expected
    if measure == "request_tokens":
        begins, noun = f"request {fields['number']} has", "token"
    else:
        begins, noun = _SPENT.get(measure, (f"{_measured(fields)}:", "token"))
    spent = _amount(measure, amount) if measure in ("time", "cost") else count(round(amount), noun)
    if line.passed:
        return f"{begins} {spent}, expected at most {_amount(measure, bound)}"
    return f"{begins} {spent}, {_amount(measure, amount - bound)} more than the maximum of {_amount(measure, bound)}"


def _length(line: Evidence) -> str:
    fields = line.fields
    size = fields["count"]
    sentence = count(size, "word" if fields["measure"] == "words" else "character")
    bound = fields["least"] if "least" in fields else fields["most"]
    if line.passed:
        return f"{sentence}, expected at {'least' if 'least' in fields else 'most'} {bound}"
    if "least" in fields:
        return f"{sentence}, {bound - size} fewer than the minimum of {bound}"
    return f"{sentence}, {size - bound} more than the maximum of {bound}"


def _keywords(line: Evidence) -> str:
    fields = line.fields
    hits, number, least = fields["count"], fields["of"], fields["least"]
    share = percent(hits / number, beside=least)
    return f"{hits:,} of {count(number, 'keyword')} found ({share}), expected at least {percent_limit(least)}"


def _likeness(line: Evidence) -> str:
    fields = line.fields
    amount = decimal(fields["amount"], beside=fields["least"])
    sentence = f"similarity {amount} ({fields['method']}), expected at least {fields['least']:g}"
    return sentence if line.passed else _with_near(sentence, fields)


def _grade(line: Evidence) -> str:
    fields = line.fields
    sentence = (
        f"grade {fields['amount']:g} ({count(fields['words'], 'word')} in {count(fields['sentences'], 'sentence')}, "
        f"{fields['syllables']:.2f} syllables a word), expected at most {fields['most']:g}"
    )
    hard = [quoted(on_one_line(word, 60), 30) for word in fields.get("hardest") or ()]
    return f"{sentence}; the longest words: {listed(hard)}" if hard else sentence


def _repetition(line: Evidence) -> str:
    fields = line.fields
    amount = decimal(fields["amount"], beside=fields["most"])
    sentence = f"{count(fields['count'], 'repetition')} in {count(fields['words'], 'word')} ({amount}), "
    sentence += f"expected at most {fields['most']:g}"
    if line.passed:
        return sentence
    often = [f"{quoted(word, 20)} ({number} times)" for word, number in fields["often"]]
    return f"{sentence}; most frequent: {listed(often)}"


def _similarity(line: Evidence) -> str:
    fields = line.fields
    model = f" ({fields['model']})" if fields.get("model") else ""
    sign = ">=" if line.passed else "<"
    to = quoted(fields["to"], 80)
    return f"semantic similarity {fields['amount']:.3f} {sign} {fields['least']:g}{model}; compared with {to}"


def _judged(line: Evidence) -> str:
    fields = line.fields
    scale, score = fields["scale"], fields["score"]
    if "dimension" in fields:
        sentence = f"{fields['dimension']}: {score_phrase(scale, score)}"
        if "least" not in fields:
            return sentence
        return f"{sentence}, {'at least' if line.passed else 'below the minimum'} {fields['least']:g}"
    needs = "reaches" if line.passed else "is below"
    sentence = f"the judge gave {score_phrase(scale, score)}, which {needs} {score_phrase(scale, fields['least'])}"
    return f"{sentence}: {on_one_line(fields['reasoning'], _LINE)}" if fields.get("reasoning") else sentence


def score_phrase(scale: Sequence[Any], score: float) -> str:
    """A judge's score as people say it: "4 of 1..5", "pass". `scale`: its name, its lowest and its highest score."""
    name, low, high = scale
    if name == "pass_fail" and score in (0, 1):
        return "pass" if score else "fail"
    return f"{score:.4g} of {low:g}..{high:g}"


_BOUNDS: dict[str, Callable[[Evidence], str]] = {
    "words": _length,
    "chars": _length,
    "keywords": _keywords,
    "likeness": _likeness,
    "grade": _grade,
    "repetition": _repetition,
    "similarity": _similarity,
    "score": _judged,
}


def _too_few(line: Evidence) -> str:
    fields = line.fields
    if "tool" in fields:
        return _calls_number(line)
    if "message" in fields:
        return f"message {fields['message'] + 1} calls {fields['calls']} tools, expected {fields['expected_calls']}"
    if "messages" in fields:
        return f"there are {fields['messages']} messages, expected {fields['expected_messages']}"
    if "path" in fields:
        return f"{dotted_path(fields['path'])} has {fields['count']} items, expected {fields['least']}"
    return _bound(line)


# What others say


def _labelled(line: Evidence) -> str:
    fields = line.fields
    who = f" ({fields['who']})" if fields.get("who") else ""
    comment = f": {fields['comment']}" if fields.get("comment") else ""
    stars, passed = fields.get("rating"), fields.get("passed")
    sentence = f"rated it {stars} of 5"
    if passed is not None:
        sentence = f"said that it {'passed' if passed else 'failed'}" + (
            f" and {sentence}" if stars is not None else ""
        )
    return f"a person{who} {sentence}{comment}"


def _replied(line: Evidence) -> str:
    fields = line.fields
    if "error" in fields:
        return fields["error"] or "the judge's reply, unchanged"
    if "votes" in fields:
        scores = fields["votes"]
        spread = max(scores) - min(scores)
        figures = ", ".join(f"{score:.4g}" for score in scores)
        return f"{len(scores)} votes: {figures}; median {fields['median']:.4g}, spread {spread:.4g}"
    if "remarks" in fields:
        return on_one_line("; ".join(fields["remarks"]), _LINE)
    model = f" ({fields['model']})" if fields.get("model") else ""
    repaired = ", readable on the second try" if fields.get("repaired") else ""
    return f"the judge{model}{repaired}: {on_one_line(fields['text'], _LINE) or 'no reasons given'}"


# Extraction


def _extraction(phrase_of: Callable[[Fields], str]) -> Callable[[Evidence], str]:
    return lambda line: f"nothing extracted: {phrase_of(line.fields)}"


def _no_block(fields: Fields) -> str:
    language, blocks = fields.get("language"), fields.get("blocks") or ()
    block = f"{language} code block" if language else "code block"
    if not blocks:
        return f"no {block} in the final answer ({_size(fields)})"
    have = count(fields["count"], "code block")
    sentence = f"the {nth(fields['position'])} {block} was asked for, but the final answer has {have}"
    if not language:
        return sentence
    there = (f"{quoted(name) if name else 'no language'} (line {line})" for name, line in blocks)
    return f"{sentence}: {', '.join(there)}"


def _no_pattern_match(fields: Fields) -> str:
    where = "the code block" if fields.get("block") else "the final answer"
    pattern = fields["pattern"]
    if fields.get("group"):
        return f"{pattern} matches, but its group 1 matched nothing"
    if fields.get("count"):
        have = "1 match" if fields["count"] == 1 else f"{fields['count']} matches"
        return f"the {nth(fields['position'])} match of {pattern} was asked for, but {where} has {have}"
    sentence = f"no match for {pattern} in {where} ({_size(fields)})"
    return f"{sentence}; {near_phrase(fields['near'])}" if fields.get("near") else sentence


def _size(fields: Fields) -> str:
    return f"{count(fields['lines'], 'line')}, {count(fields['characters'], 'character')}"


def _answer_not_json(fields: Fields) -> str:
    if fields.get("in") == "result":
        return f"the result of {fields['tool']} is not JSON: {syntax_phrase(fields)}"
    if fields.get("in") == "block":
        return f"the code block is not JSON: {syntax_phrase(fields)}"
    if fields.get("part"):
        piece = quoted(fields["part"], 40)
        return f"the final answer as a whole is not JSON; {piece} in line {fields['part_line']} is, with text around it"
    return f"the final answer is not JSON: {syntax_phrase(fields)}"


def _nothing_at_path(fields: Fields) -> str:
    path = fields["pattern"]
    if fields.get("null"):
        return f"`{path}` is null"
    if "there" not in fields:
        return f"`{path}` finds nothing in the JSON"
    where = "the JSON" if not fields["path"] else dotted_path(fields["path"])
    sentence = f"`{path}` finds nothing: {where} {content_phrase(fields['there'])}"
    return f"{sentence}; did you mean {dotted_path(fields['meant'])}?" if fields.get("meant") else sentence


def _tool_not_called(fields: Fields) -> str:
    if not fields.get("called"):
        return "the agent called no tool"
    near = fields.get("nearest")
    hint = f"; nearest {near}" if near else f"; the agent called {listed(fields['called'])}"
    return f"{fields['tool']} was never called{hint}"


def _no_list(fields: Fields) -> str:
    tool, problem = fields.get("tool"), fields.get("problem")
    if problem == "missing":
        return f"the result of {tool} is missing"
    if problem == "not_a_list":
        return f"the result of {tool} is not a list, it {content_phrase(fields['there'])}: set `path` to a list in it"
    if problem == "at_path":
        return f"the result of {tool} has no list at `{fields['pattern']}`"
    return "no tool returned a list"


_EXTRACTIONS: dict[str, Callable[[Fields], str]] = {
    Code.EMPTY_ANSWER: lambda f: "the final answer is empty",
    Code.NO_CODE_BLOCK: _no_block,
    Code.UNCLOSED_CODE_BLOCK: lambda f: (
        f"no complete {f['language'] + ' ' if f.get('language') else ''}code block: "
        f"the fence in line {f['line']} of the final answer is never closed"
    ),
    Code.NO_PATTERN_MATCH: _no_pattern_match,
    Code.NOTHING_AT_PATH: _nothing_at_path,
    Code.NO_LIST: _no_list,
    Code.NOT_JSON: _answer_not_json,
    Code.NEVER_CALLED: _tool_not_called,
}


def _or_extraction(code: Code, otherwise: Callable[[Evidence], str] | None = None) -> Callable[[Evidence], str]:
    extraction = _extraction(_EXTRACTIONS[code])
    if otherwise is None:
        return extraction
    return lambda line: extraction(line) if line.condition == "extraction" else otherwise(line)


_EVIDENCE: dict[str, Callable[[Evidence], str]] = {
    Code.PRESENT: _present,
    Code.MISSING: _missing,
    Code.EQUAL: _equal,
    Code.DIFFERS: _differs,
    Code.UNEXPECTED: _unexpected,
    Code.OUT_OF_PLACE: _out_of_place,
    Code.EMPTY: lambda line: "the value is empty, so there is no meaning to compare",
    Code.CALLED: _called,
    Code.NOT_CALLED: _not_called,
    Code.NEVER_CALLED: _or_extraction(Code.NEVER_CALLED, _never_called),
    Code.UNREADABLE: lambda line: f"the arguments of {_call(line.fields)} {_unreadable_arguments(line.fields)}",
    Code.WITHIN: _bound,
    Code.TOO_FEW: _too_few,
    Code.TOO_MANY: _too_few,
    Code.TOO_LOW: _bound,
    Code.TOO_HIGH: _bound,
    Code.MEASURED: _bound,
    Code.PARSES: lambda line: "the value is JSON",
    Code.NOT_JSON: _or_extraction(Code.NOT_JSON, _not_json),
    Code.FITS: lambda line: "the value fits the schema",
    Code.WRONG_TYPE: _wrong_type,
    Code.NOT_A_CHOICE: lambda line: (
        f"{dotted_path(line.fields['path'])} is {shown(line.fields['value'], 40)}, "
        f"not one of {shown(line.fields['wanted'], 80)}"
    ),
    Code.OUT_OF_BOUNDS: _out_of_bounds,
    Code.NO_MATCH: _no_match,
    Code.BREAKS_RULE: lambda line: f"{dotted_path(line.fields['path'])}: {on_one_line(line.fields['message'], 160)}",
    Code.EMPTY_ANSWER: _or_extraction(Code.EMPTY_ANSWER),
    Code.NO_CODE_BLOCK: _or_extraction(Code.NO_CODE_BLOCK),
    Code.UNCLOSED_CODE_BLOCK: _or_extraction(Code.UNCLOSED_CODE_BLOCK),
    Code.NO_PATTERN_MATCH: _or_extraction(Code.NO_PATTERN_MATCH),
    Code.NOTHING_AT_PATH: _or_extraction(Code.NOTHING_AT_PATH),
    Code.NO_LIST: _or_extraction(Code.NO_LIST),
    Code.NOTHING_EXTRACTED: lambda line: (
        f"nothing extracted: {line.fields.get('message') or 'there is no such value in the transcript'}"
    ),
    Code.LABELLED: _labelled,
    Code.TRUSTED: _trusted,
    Code.KEEPS_SILENT: lambda line: _keeps_silent(line.fields),
    Code.REPLIED: _replied,
    Code.RETURNED: _returned,
}
