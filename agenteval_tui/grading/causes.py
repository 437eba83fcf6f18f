"""The cause of a failure: a signature that is the same wherever the same thing is wrong in the same way.

A failed criterion result has one cause, that of its first missed condition: the criterion's name and prototype class,
the metric's type, the condition, what it is about (a tool, an argument, a missing key, an entry of a list) and how it
was missed. What was found, where, and how near it was is in no cause; neither is the criterion's hash, nor the test: an
edit of anything else and another test leave the cause what it is. The order in which a criterion lists texts, keys or
tools is in no cause either: of several that are missed, the first in the order of their names counts. A run whose
agent failed has a cause of its own, by the error's kind, code and fields (`transcripts.model.ErrorCode`).

What a line of evidence is about, and how it was missed, are read from its code and fields, never from a sentence. Of
metrics that are not known here, a plug-in's, the condition alone is taken.

Signatures are kept in histories and decisions are made about them: changing how one is made makes those decisions
speak of nothing. `tests/grading/test_causes.py` holds them fast; after the first release, a change needs a migration
that rewrites what is stored (`history.schema`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from agenteval_tui.core.document import Document
from agenteval_tui.core.fingerprint import LONGEST, fingerprint
from agenteval_tui.core.phrasing import cut, quoted
from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.placeholders import names_in
from agenteval_tui.grading.results import CriterionResult, Evidence, MetricResult, Outcome
from agenteval_tui.grading.sentences import MEASURES, dotted_path
from agenteval_tui.transcripts.finish_reason import ENDING_SENTENCES as ENDINGS
from agenteval_tui.transcripts.model import SETUP, USER, ErrorCode, RunError

Kind = Literal["failed", "error", "agent", "threshold", "ending"]
"""`failed`: a criterion; `error`: a check that could not run; `agent`: the agent did not finish; `threshold`: every
criterion passed, and the score is below the test's `pass_threshold`; `ending`: the answer was cut, or stopped by a
filter, and then failed: `condition` is which."""
_KINDS: tuple[Kind, ...] = ("failed", "error", "agent", "threshold", "ending")
_OWN_ENDINGS = ("length", "content_filter", "malformed_call", "incomplete")  # an empty answer is each criterion's own
_ID = 10
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_EXTRACTION_WAYS: dict[str, str] = {
    Code.EMPTY_ANSWER: "empty answer",
    Code.NO_CODE_BLOCK: "no code block",
    Code.UNCLOSED_CODE_BLOCK: "code block not closed",
    Code.NO_PATTERN_MATCH: "no match",
    Code.NOT_JSON: "no JSON",
    Code.NOTHING_AT_PATH: "nothing at the path",
    Code.NEVER_CALLED: "tool not called",
    Code.NO_LIST: "no list in the result",
}
_NO_CLASS = frozenset(
    {"", Code.MESSAGE, Code.NOTHING_EXTRACTED, Code.BAD_CONFIG, Code.ASKING_FAILED, Code.UNUSABLE_REPLY}
)
"""Codes that say only who speaks: the message says what is wrong."""
_INDEX = re.compile(r"\[\d+\]")
_LISTED = re.compile(r"\[\d+\]|(?<=\.)\d+(?=\.|$)")
_KEYS = 6  # of those that are missing together, as many as a cause names
_ARGUMENT_WAYS = {"differs": "other value", "missing": "missing", "extra": "not expected"}
_CALL_WAYS: dict[str, str] = {
    Code.UNEXPECTED: "not expected",
    Code.CALLED: "called",
    Code.OUT_OF_PLACE: "at another place",
}
_JSON_WAYS: dict[str, str] = {
    Code.WRONG_TYPE: "another type",
    Code.NOT_A_CHOICE: "not one of the choices",
    Code.UNEXPECTED: "not expected",
    Code.TOO_FEW: "too few items",
    Code.OUT_OF_BOUNDS: "out of bounds",
}
_EXTRACTION_WORDS: dict[str, str] = {
    "empty answer": "the final answer is empty",
    "no code block": "the code block that was asked for is not in the answer",
    "code block not closed": "the answer's code block is never closed",
    "slow_pattern": "the pattern takes too long",
    "no match": "the pattern finds nothing in the answer",
    "no JSON": "the answer is not JSON",
    "nothing at the path": "the path finds nothing in the JSON",
    "tool not called": "the tool with the result to check was not called",
    "no list in the result": "the tool's result holds no list",
}
_TEXT: dict[str, tuple[str, str]] = {
    "equals": ("the text is not {}", "the text is not the expected one"),
    "equals_ignore_case": ("the text is not {}", "the text is not the expected one"),
    "contains": ("{} is not in the text", "the expected text is missing"),
    "contains_ignore_case": ("{} is not in the text", "the expected text is missing"),
    "contains_any": ("", "none of the expected texts is there"),
    "starts_with": ("the text does not begin with {}", "the text does not begin as expected"),
    "starts_with_any": ("", "the text does not begin as expected"),
    "ends_with": ("the text does not end with {}", "the text does not end as expected"),
    "ends_with_any": ("", "the text does not end as expected"),
}
"""Each with what was expected, where that is known ("": it is never one text), and without."""
_LISTS: dict[str, tuple[str, str]] = {
    "contains_all": ("{} is not in the text", "an expected text is missing"),
    "not_contains_any": ("the text contains {}, which is forbidden", "the text contains a forbidden text"),
    "keywords": ("the keyword {} is missing", "a keyword is missing"),
    "secrets": ("", "the text contains a secret"),
}
"""The same of an entry of a list."""
_SHOWN = 40  # characters of an expected text in a title
_NOT_OBSERVED: dict[str, str] = {
    "text_only": "the agent gives only a text, its tool calls are not known",
    "no_calls_option": "the agent has no option `tool_calls`, its tool calls are not known",
    "nothing_at_path": "no reply has anything at the path of `tool_calls`",
    "dumped": "what the agent gives can't be read",
    "format_without_calls": "the imported file has no tool calls",
    "unread_calls": "some tool calls could not be read",
    "unread": "something that the agent gave could not be read",
    "unknown_requests": "what the model saw is not recorded",
    "open_spans": "the trace is not whole",
    "unrecorded": "not everything was recorded",
    "asked_past": "some requests to models were not recorded",
}
"""Why what a criterion looks at wasn't observed, by the code of the transcript's note."""
_UNSEEN: dict[str, str] = {
    Code.UNREAD_PART: "a message could not be read",
    Code.REQUEST_PART_UNKNOWN: "a part of the requests was not recorded",
    Code.REQUEST_NOT_WHOLE: "the server keeps a part of the conversation",
    Code.REQUEST_NOT_COUNTED: "the tokens of a request are not known",
}
"""The same, where the code alone says it."""
_ERRORS: dict[str, str] = {
    Code.UNKNOWN_VARIABLE: "a variable is unknown",
    Code.BAD_PLACEHOLDER: "a placeholder can't be read",
    Code.BROKE: "it raised an exception",
    Code.SLOW_PATTERN: "a pattern takes too long",
    Code.TOO_LARGE: "there is too much to look at",
    Code.TOO_DEEP: "the value or the schema is nested too deeply",
    Code.UNREADABLE_NUMBER: "the JSON has a number that can't be read",
    Code.PATH_FAILED: "the path can't be applied",
    Code.UNRESOLVED_REFERENCE: "the schema refers to something that is not in it",
    Code.NO_EXPECTED_VALUE: "there is nothing to compare with",
    Code.NO_SYSTEM_PROMPT: "the system prompt was not recorded",
    Code.NO_WORDS: "the text has no words",
    Code.NOT_A_LIST: "the value is not a list of documents",
    Code.NOT_ASKED: "not judged yet",
    Code.NOT_ASKED_THIS: "it needs asking again",
    Code.UNREADABLE_REPLY: "the judge's reply can't be read",
    Code.OFF_SCALE: "the judge's score is not on the scale",
    Code.NO_CONTEXT: "{{context}} has nothing to show",
    Code.NO_SCORE: "the judge's reply has no score",
    Code.NOTHING_TO_SEE: "the judge would see nothing",
    Code.UNUSABLE_LABEL: "the label can't be used",
    Code.UNUSABLE_RETURN: "what the function returned can't be used",
    Code.UNUSABLE_VECTOR: "the embedder's vectors can't be used",
}
_AGENT: dict[str, str] = {
    ErrorCode.NO_CONNECTION: "no connection to the server",
    ErrorCode.CONNECT_TIMEOUT: "no connection to the server in time",
    ErrorCode.REQUEST_TIMEOUT: "the server did not take the request in time",
    ErrorCode.CLOSED_WITHOUT_ANSWER: "the server closed the connection without an answer",
    ErrorCode.CUT_OFF: "the server closed the connection in the middle of the answer",
    ErrorCode.PROXY_UNREACHABLE: "no connection to the proxy",
    ErrorCode.PROXY_PASSWORD: "the proxy wants a name and a password",
    ErrorCode.TLS_EXPECTED: "the server expects TLS, and was asked in plain HTTP",
    ErrorCode.NO_TLS: "the server does not speak TLS on this port",
    ErrorCode.NOT_HTTP: "the server does not speak HTTP on this port",
    ErrorCode.STATUS: "the server answered {}",
    ErrorCode.REDIRECT: "the server redirects to another place",
    ErrorCode.KEY_REFUSED: "the server refused the key",
    ErrorCode.NO_PERMISSION: "the server refused the request: no permission",
    ErrorCode.REGION: "the server does not serve the country or region that the request comes from",
    ErrorCode.NO_EMBEDDING: "the server sent no embedding",
    ErrorCode.NOT_AN_OBJECT: "the server sent no JSON object",
    ErrorCode.TOO_LONG: "the reply is too long",
    ErrorCode.SILENCE: "the server was silent for too long",
    ErrorCode.KEY_MISSING: "the environment variable {} is not set",
    ErrorCode.NO_PROMPT: "the conversation has no user message",
    ErrorCode.MAX_STEPS: "the model still called tools after the last request",
    ErrorCode.NOT_RECORDED: "it asked its model something that was not recorded",
    ErrorCode.PROMPT_ONLY: "it gets only the prompt, and the conversation has answers already",
    ErrorCode.INPUT_ENDED: "it asked for more than the prompt",
    ErrorCode.NOT_DONE: "it stopped without saying that it was done",
    ErrorCode.HOOK: "a hook failed",
    ErrorCode.SERVICE: "a service is not there",
    ErrorCode.WORKDIR: "the working folder can't be created",
    ErrorCode.RUN_TIMEOUT: "the run did not end in time",
    ErrorCode.CANCELLED: "the run was cancelled",
    ErrorCode.WORKER_LOST: "its worker was lost while it ran",
    ErrorCode.SCHEDULER_LOST: "the connection to the scheduler was lost",
    ErrorCode.NO_REASON: "it gave no reason",
    ErrorCode.USER_SILENT: "it said nothing",
    ErrorCode.USER_TIMEOUT: "it had not answered when the run's time was over",
}
_AGENT_WAYS: dict[tuple[str, str], str] = {
    (ErrorCode.NO_CONNECTION, "lookup_failed"): "the server's name can't be looked up",
    (ErrorCode.NO_CONNECTION, "unknown_host"): "there is no such host",
    (ErrorCode.NO_CONNECTION, "refused"): "nothing listens at the server's address",
    (ErrorCode.NO_CONNECTION, "no_route"): "no network leads to the server",
    (ErrorCode.NO_CONNECTION, "closed"): "the server closed the connection at once",
    (ErrorCode.CERTIFICATE, "expired"): "the server's certificate has expired",
    (ErrorCode.CERTIFICATE, "not_yet_valid"): "the server's certificate is not valid yet",
    (ErrorCode.CERTIFICATE, "other_host"): "the server's certificate was made for another host",
    (ErrorCode.CERTIFICATE, "self_signed"): "the server's certificate is self-signed",
    (ErrorCode.CERTIFICATE, "unknown_authority"): "the server's certificate was signed by an unknown authority",
    (ErrorCode.USER_SILENT, "opening"): "it ended the conversation before its first message",
    **{(ErrorCode.ENDING, code): phrase for code, phrase in ENDINGS.items()},
}


class Cause(Document, frozen=True):
    """What is wrong, and in which way. Of an agent's error `condition` is the kind, and
    `about` the code with what it is about in `way`; for foreign text, `way` is its fingerprint alone."""

    kind: Kind
    criterion: str = ""
    prototype: str = ""
    metric: str = ""
    condition: Annotated[str, Meta(description="the condition that was missed; of an agent's error its kind")] = ""
    about: Annotated[str, Meta(description="the tool, its arguments, the key or the label")] = ""
    way: Annotated[str, Meta(description="how it was missed; of an error its message without what varies")] = ""

    @property
    def signature(self) -> str:
        """The text that is stored and compared: a JSON array."""
        parts = [self.kind, self.criterion, self.prototype, self.metric, self.condition, self.about, self.way]
        while parts and not parts[-1]:
            parts.pop()
        return _encode(parts)

    @property
    def id(self) -> str:
        """Ten hexadecimal digits of the signature's hash: its name for people."""
        return cause_id(self.signature)

    @property
    def words(self) -> str:
        """What is wrong, without the criterion's name: `get_order was never called`."""

        return words_of(self)

    @property
    def title(self) -> str:
        """One line: `Looks it up: get_order was never called`."""
        return self.title_with("")

    def title_with(self, expected: str) -> str:
        """The title with what was expected, as people read it ("": not known): `Window: "14 days" is not in the
        text`."""
        words = words_of(self, expected)
        return f"{self.criterion}: {words}" if self.criterion else words


UNEXPLAINED = Cause("failed")
"""Of a failed run that has no result that says why."""


def cause_from(signature: str) -> Cause:
    """The cause that a signature was made of. Raises ValueError for anything else."""
    try:
        parts = json.loads(signature)
        if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts) or parts[0] not in _KINDS:
            raise ValueError
        return Cause(*parts)
    except (ValueError, TypeError, IndexError):
        raise ValueError(f"this is not the signature of a cause: {signature[:80]!r}") from None


@lru_cache(maxsize=4096)
def cause_id(signature: str) -> str:
    """The short name of a signature."""
    # Half of a surrogate pair, which a server may send, has no bytes in UTF-8.
    return hashlib.sha256(signature.encode("utf-8", "surrogatepass")).hexdigest()[:_ID]


def cause_of(result: CriterionResult) -> Cause | None:
    """The cause of a result that failed or is an error; None for any other."""
    name, prototype = cut(result.criterion, LONGEST), result.prototype_class
    if result.outcome is Outcome.ERROR:
        broken = next((metric for metric in result.metrics if metric.outcome is Outcome.ERROR), None)
        of = result if broken is None else broken
        condition, about, way = error_way(of.code, of.fields, of.message)
        return Cause(
            "error",
            criterion=name,
            prototype=prototype,
            metric="" if broken is None else broken.type,
            condition=condition,
            about=about,
            way=way,
        )
    if result.outcome is not Outcome.FAILED:
        return None
    if result.source:
        return Cause("failed", name, condition="verdict of " + cut(result.source, LONGEST))
    if result.negate:
        types = ", ".join(dict.fromkeys(metric.type for metric in result.metrics if not metric.neutral))
        return Cause("failed", name, prototype, cut(types, LONGEST), "negate")
    for metric in result.metrics:
        if metric.outcome is Outcome.FAILED:
            return _of_metric(result, metric, name)
    return Cause("failed", name, prototype, condition="score")


def _of_metric(result: CriterionResult, metric: MetricResult, name: str) -> Cause:
    prototype = result.prototype_class
    if metric.type == "extraction" and metric.evidence:
        return Cause("failed", name, prototype, "extraction", way=extraction_way(metric.evidence[0]))
    if result.value == "" and prototype == "TextResponse":
        # Whatever was looked for: nothing was there to look in.
        return Cause("failed", name, prototype, way="empty answer")
    line = _deciding(metric)
    if line is None:
        return Cause("failed", name, prototype, metric.type, "score")
    condition, about, way = way_of(metric.type, line)
    return Cause(
        "failed", criterion=name, prototype=prototype, metric=metric.type, condition=condition, about=about, way=way
    )


def deciding_line(result: CriterionResult) -> Evidence | None:
    """The missed condition that the cause of a failed result was made of; None where it is made of none."""
    failed = next((metric for metric in result.metrics if metric.outcome is Outcome.FAILED), None)
    return None if failed is None else _deciding(failed)


def _deciding(metric: MetricResult) -> Evidence | None:
    missed = [line for line in metric.evidence if line.passed is False]
    if metric.type == "Python" and len(missed) > 1:
        return missed[1]  # the function's own conditions say more than that it said no
    # In strict order the first one that is missed is where it went wrong.
    if metric.type not in _WAYS or len(missed) < 2 or missed[0].group == "strict":
        return missed[0] if missed else None
    modes = [way_of(metric.type, line) for line in missed]
    conditions = [mode.condition for mode in modes]
    is_ranked = metric.type == "ToolCheck" and set(conditions) <= set(_TOOL_CONDITIONS)
    first = min(conditions, key=_TOOL_CONDITIONS.index) if is_ranked else conditions[0]
    # By name, so that the order in which a criterion lists them makes no other cause.
    ranked = [
        (mode.way == "not expected", str(line.fields.get("tool") or mode.about), number)
        for number, (mode, line) in enumerate(zip(modes, missed, strict=True))
        if mode.condition == first
    ]
    return missed[min(ranked)[-1]]


def agent_cause(error: RunError) -> Cause:
    """The cause of a run whose agent, or simulated user, did not finish: what its code and fields say, or the reduced
    words of others."""
    error = error.coded
    condition, words = cut(error.kind, LONGEST) or "unknown", error.fields.get("fingerprint")
    if isinstance(words, str):
        return Cause("agent", condition=condition, way=cut(words, LONGEST))
    fields, code = dict(error.fields), error.code
    if code == ErrorCode.USER_FAILED:  # as the agent that played the user said it
        code = str(fields.pop("why", code))
    details = " ".join(str(value) for _, value in sorted(fields.items()))
    return Cause("agent", condition=condition, about=cut(code, LONGEST), way=cut(details, LONGEST))


def signatures(
    status: str, results: Sequence[CriterionResult], error: RunError | None = None, ending: str = ""
) -> list[str | None]:
    """For each result of a run its signature, as it is stored: None where nothing failed, "" where what failed did not
    decide (a warning).

    `error`: of a run whose agent did not finish: its first result stands for it. So does the result
    with the lowest score where only the test's threshold was missed. `ending`: why the answer ended (the codes of
    `transcripts.finish_reason`); where that is a cause, it stands for all that failed, at the first of it.
    """
    if status == "cancelled":
        return [None] * len(results)
    if error is not None:
        signatures: list[str | None] = [None] * len(results)
        if signatures:
            signatures[0] = agent_cause(error).signature
        return signatures
    if status == "passed" and all(result.outcome is Outcome.PASSED for result in results):
        return [None] * len(results)
    signatures = [_signature(result) for result in results]
    _derived(status, results, signatures)
    if status == "failed" and not any(signatures):
        scored = [number for number, criterion_result in enumerate(results) if criterion_result.score is not None]
        if scored:
            lowest = min(scored, key=lambda number: results[number].score or 0.0)
            signatures[lowest] = Cause("threshold", cut(results[lowest].criterion, LONGEST)).signature
    if status == "error" and not any(signatures):
        # Warnings that could not be checked decide where the score that a threshold needs is unknown without them.
        for number, result in enumerate(results):
            cause = cause_of(result) if result.outcome is Outcome.ERROR and result.weight > 0 else None
            signatures[number] = signatures[number] if cause is None else cause.signature
    if status == "failed" and ending in _OWN_ENDINGS:
        failed = [
            number
            for number, criterion_result in enumerate(results)
            if signatures[number] and criterion_result.outcome is not Outcome.ERROR
        ]
        for number in failed:
            signatures[number] = Cause("ending", condition=ending).signature if number == failed[0] else ""
    return signatures


def _derived(status: str, results: Sequence[CriterionResult], signatures: list[str | None]) -> None:
    """Where nothing but another tool's verdicts says that a run failed, the cause is what the first criterion misses
    that was derived from its file: the verdict alone is the same for every failure."""
    if status != "failed" or not any(result.derived for result in results):
        return
    decided = [number for number, criterion_result in enumerate(results) if signatures[number]]
    if not decided or any(not results[number].source for number in decided):
        return
    for number, result in enumerate(results):
        cause = cause_of(result) if result.derived and result.outcome is Outcome.FAILED else None
        if cause is not None:
            for other in decided:
                signatures[other] = ""
            signatures[number] = cause.signature
            return


def _signature(result: CriterionResult) -> str | None:
    if result.outcome not in (Outcome.FAILED, Outcome.ERROR):
        return None
    if result.severity != "error":
        return ""
    cause = cause_of(result)
    return None if cause is None else cause.signature


# What is wrong in a line of evidence, so that the same fault has the same name in every run


class FailureMode(NamedTuple):
    """`condition`: what was asked; `about`: a tool, an argument, a key, a label; `way`: how it was missed."""

    condition: str
    about: str = ""
    way: str = ""


def way_of(metric: str, line: Evidence) -> FailureMode:
    """What a missed line of evidence of a metric type comes down to."""
    mode_of = _WAYS.get(metric)
    try:
        condition, about, way = mode_of(line) if mode_of is not None else FailureMode(line.condition)
    except (LookupError, TypeError, ValueError, AttributeError):
        condition, about, way = FailureMode(line.condition)  # fields that are not ours: of a file, or a newer program
    return FailureMode(cut(condition, LONGEST), cut(about, LONGEST), cut(way, LONGEST))


def extraction_way(line: Evidence) -> str:
    """Why nothing was extracted, as a class."""
    phrase = _EXTRACTION_WAYS.get(line.code)
    if phrase is not None:
        return phrase
    message = line.message or str(line.fields.get("message") or "")
    return fingerprint(message) if message or line.code in _NO_CLASS else str(line.code)


def error_way(code: str, fields: Mapping[str, Any], message: str) -> FailureMode:
    """Why a check could not run: its code; of what others say (an exception, a server, a plug-in) also their
    message without what differs from run to run."""
    if code == Code.BROKE:
        return FailureMode(code, "", fingerprint(f"{fields.get('type')}: {fields.get('message')}"))
    if message or code in _NO_CLASS:
        return FailureMode("", "", fingerprint(message or str(fields.get("message") or "")))
    return FailureMode(code, cut(str(fields.get("note" if code == Code.NOT_OBSERVED else "measure") or ""), LONGEST))


def _base(condition: str) -> str:
    return condition.split("[", 1)[0]


def _entry(line: Evidence) -> FailureMode:
    """An entry of a list is known by its text: as the config has it where that holds variables, which differ from row
    to row. Of a secret nothing is kept."""
    base = _base(line.condition)
    if base not in _LISTS or base == "secrets":
        return FailureMode(base)
    text = line.fields.get("template") or line.expected
    return FailureMode(base, text if isinstance(text, str) else "")


def _tool_check(line: Evidence) -> FailureMode:
    """Usage, arguments, forbidden tools."""
    fields = line.fields
    tool = str(fields.get("tool") or "")
    if fields.get("forbidden"):
        return (
            FailureMode("forbidden_tools", tool, "called") if tool else FailureMode("tool_call_forbidden", "", "called")
        )
    if line.code in (Code.TOO_FEW, Code.TOO_MANY):
        return FailureMode("usage", tool, "called another number of times")
    if line.code == Code.NEVER_CALLED:
        return FailureMode("arguments" if fields.get("arguments_of") else "usage", tool, "never called")
    if line.code == Code.UNREADABLE:
        return FailureMode("arguments", tool, "unreadable")
    if line.code == Code.MESSAGE:
        return FailureMode(_part(line.condition))  # of a history that had no codes yet
    names, way = _arguments(fields.get("arguments") or ())
    return FailureMode("arguments", f"{tool}({', '.join(names)})" if names else tool, way)


def _part(condition: str) -> str:
    """The part of a ToolCheck that a condition is of: `tools[1].arguments[2]` is of the arguments."""
    return _base(condition.rsplit(".", 1)[-1])


def _arguments(differing: Sequence[Mapping[str, Any]]) -> tuple[list[str], str]:
    """Which arguments are wrong, and whether they are other ones, missing or too many."""
    by_kind: dict[str, list[str]] = {"differs": [], "missing": [], "extra": []}
    for difference in differing:
        # A kind that is not known here, as a newer program may store, says nothing.
        by_kind.get(difference["is"], []).append(difference["path"])
    ways = [phrase for kind, phrase in _ARGUMENT_WAYS.items() if by_kind[kind]]
    names = sorted({_LISTED.sub("[]", path) for paths in by_kind.values() for path in paths})
    return names, ", ".join(ways) or "other value"


def _trajectory(line: Evidence) -> FailureMode:
    fields = line.fields
    if line.group == "messages":
        return FailureMode("messages")
    if line.code == Code.MESSAGE:
        return FailureMode("calls")
    tool = str(fields.get("tool") or "")
    near = fields.get("near_call") or {}
    if line.code == Code.DIFFERS:
        wrong = [
            argument["argument"] for argument in near.get("arguments") or () if argument["is"] in ("differs", "extra")
        ]
        names = sorted({_LISTED.sub("[]", name) for name in wrong})
        return FailureMode("calls", f"{tool}({', '.join(names)})" if names else tool, "other arguments")
    return FailureMode("calls", tool, _CALL_WAYS.get(line.code, "never called"))


def _json(line: Evidence) -> FailureMode:
    base, fields = _base(line.condition), line.fields
    if line.code == Code.NOT_JSON or base == "parses":
        return FailureMode("parses", "", "no JSON")
    if line.code == Code.MESSAGE:
        return FailureMode(base)
    if line.code == Code.MISSING:
        names = sorted(str(key) for key in fields.get("keys") or (fields.get("key"),))
        return FailureMode(base, ", ".join(names[:_KEYS]), "missing")
    return FailureMode(
        base, _LISTED.sub("[]", dotted_path(fields.get("path") or ())), _JSON_WAYS.get(line.code, "another value")
    )


def _label(line: Evidence) -> FailureMode:
    """A pair of labels is a cause: this one is taken for that one."""
    label = str(line.fields.get("taken") or ("" if line.found is None else line.found)).strip()
    if not label:
        return FailureMode(line.condition, str(line.expected), "no label")
    way = f"taken for {label}" if len(label) <= 40 and "\n" not in label else "no label but a text"
    return FailureMode(line.condition, str(line.expected), way)


def _function(line: Evidence) -> FailureMode:
    """What a function itself says of why it is not content; that it returned something says nothing."""
    return FailureMode(line.condition, "", fingerprint(line.message or str(line.fields.get("message") or "")))


def _without_index(line: Evidence) -> FailureMode:
    return FailureMode(_INDEX.sub("", line.condition))


_WAYS: dict[str, Callable[[Evidence], FailureMode]] = {
    "TextMatch": _entry,
    "Keywords": _entry,
    "Leak": _entry,
    "ToolCheck": _tool_check,
    "Trajectory": _trajectory,
    "Json": _json,
    "Classification": _label,
    "Python": _function,
    "Human": _without_index,
}
_TOOL_CONDITIONS = ("usage", "arguments", "forbidden_tools", "tool_call_forbidden")
"""Those of a ToolCheck, in the order in which they count: a tool that was not called has no arguments."""


# A cause in words: one line that says what is wrong, as far as it is the same in every run


def words_of(cause: Cause, expected: str = "") -> str:
    """What is wrong, without the criterion's name. `expected`: it, where that is the same in every run."""
    if expected and cause.kind == "failed" and cause.metric not in ("", "extraction"):
        phrase = _told(cause, expected)
        return phrase or f"{words_of(cause)} ({expected})"
    if cause.kind == "agent":
        whose = f"the agent failed ({cause.condition.replace('_', ' ')})"
        whose = {USER: "the simulated user failed", SETUP: "the run could not be prepared"}.get(cause.condition, whose)
        return f"{whose}: {_of_agent(cause)}"
    if cause.kind == "ending":
        return ENDINGS.get(cause.condition, f"the answer ended with {cause.condition}")
    if cause.kind == "threshold":
        return "the score is below the test's threshold; this has the lowest"
    if cause.kind == "error":
        if cause.condition == Code.NOT_OBSERVED:
            return f"not checked: {_NOT_OBSERVED.get(cause.about, 'what it looks at could not be seen')}"
        if cause.condition in _UNSEEN:
            return f"not checked: {_UNSEEN[cause.condition]}"
        why = _ERRORS.get(cause.condition) or cause.condition.replace("_", " ")
        if cause.condition == Code.NOT_MEASURED:
            why = f"{MEASURES.get(cause.about, cause.about)} was not measured"
        reason = ": ".join(part for part in (why, cause.way) if part)
        return f"{cause.metric or 'the check'} cannot be decided: {reason or 'no reason given'}"
    if not (cause.criterion or cause.metric or cause.way or cause.condition):
        return "no stored result says why"
    if cause.condition.startswith("verdict of "):
        return f"failed, says {cause.condition.removeprefix('verdict of ')}"
    if cause.condition == "negate":
        return f"{cause.metric or 'everything'} holds, but must not"
    if cause.metric in ("", "extraction"):
        return _EXTRACTION_WORDS.get(cause.way, cause.way) or "the score is too low"
    if cause.condition in _LISTS:
        return _condition(cause)
    special = {
        "ToolCheck": _tools,
        "Trajectory": _tools,
        "Json": _json_words,
        "Classification": _label_words,
        "TextMatch": _condition,
    }.get(cause.metric)
    return special(cause) if special is not None else f"{cause.metric}: {_condition(cause)}"


def _of_agent(cause: Cause) -> str:
    if not cause.about:
        return cause.way or "no reason given"
    phrase = _AGENT_WAYS.get((cause.about, cause.way)) or _AGENT.get(cause.about) or cause.about.replace("_", " ")
    return phrase.format(cause.way or "?")


def _told(cause: Cause, expected: str) -> str:
    """What is wrong, in a sentence with what was expected; "" where there is none."""
    if cause.condition in _LISTS:
        return _LISTS[cause.condition][0].format(expected)
    return (
        _TEXT[cause.condition][0].format(expected) if cause.metric == "TextMatch" and cause.condition in _TEXT else ""
    )


def _condition(cause: Cause) -> str:
    if cause.condition in _LISTS:
        template, unknown = _LISTS[cause.condition]
        about = cause.about if names_in(cause.about) else quoted(cause.about, _SHOWN)
        return template.format(about) if cause.about and template else unknown
    if cause.metric == "TextMatch" and cause.condition in _TEXT:
        return _TEXT[cause.condition][1]
    plain = {
        "pattern": "the pattern is not found",
        "not": "the pattern is found",
        "score": "the score is too low",
        "function": "the function says no",
    }
    phrase = plain.get(cause.condition, f"{cause.condition} does not hold")
    return f"{phrase}: {cause.way}" if cause.way else phrase


def _tools(cause: Cause) -> str:
    about, way = cause.about, cause.way
    if not about:
        return {
            "called": "a tool was called, and none may be",
            "never called": "none of the expected tools was called",
            "not expected": "more calls than expected",
        }.get(way, f"{cause.metric}: {cause.condition} does not hold")
    if cause.condition == "forbidden_tools" or (cause.condition == "calls" and way == "called"):
        return f"{about} was called, which is forbidden"
    if cause.condition == "usage" and way == "called another number of times":
        return f"{about} was called another number of times"
    if way == "never called":
        return f"{about} was never called"
    if way == "at another place":
        return f"{about} was called, but at another place"
    if way == "not expected" and cause.condition == "calls":
        return f"{about} was called, which is not expected"
    return _ARGUMENTS[way].format(about) if way in _ARGUMENTS else f"the arguments of {about} differ: {way}"


_ARGUMENTS = {
    "other arguments": "{} was called with other arguments",
    "other value": "{} was called with another value",
    "missing": "{}: an argument is missing",
    "not expected": "{}: an argument is not expected",
    "unreadable": "the arguments of {} can't be read",
}


def _json_words(cause: Cause) -> str:
    if cause.condition == "parses":
        return "the value is not JSON"
    rule = {"schema": " (schema)", "equals": " (equals)"}.get(cause.condition, "")
    if cause.way == "missing":
        return f"{cause.about} is missing in the JSON{rule}"
    return f"{cause.about or 'the JSON'}: {cause.way}{rule}"


def _label_words(cause: Cause) -> str:
    return f"{cause.about or 'the label'}: {cause.way}"
