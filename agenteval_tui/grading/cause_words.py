"""A cause in words: one line that says what is wrong, as far as it is the same in every run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agenteval_tui.grading.codes import Code
from agenteval_tui.grading.sentences import MEASURES
from agenteval_tui.grading.words import nth
from agenteval_tui.transcripts.ending import SAID as ENDINGS
from agenteval_tui.transcripts.error_codes import ErrorCode

if TYPE_CHECKING:
    from agenteval_tui.grading.causes import Cause

_EXTRACTION: dict[str, str] = {
    "empty answer": "the final answer is empty",
    "no code block": "the code block that was asked for is not in the answer",
    "code block not closed": "the answer's code block is never closed",
    "slow_pattern": "the pattern takes too long",
    "no match": "the pattern finds nothing in the answer",
    "no JSON": "the answer is no JSON",
    "nothing at the path": "the path finds nothing in the JSON",
    "tool not called": "the tool whose result is looked at was not called",
    "no list in the result": "the tool's result holds no list",
}
_TEXT = {
    "equals": "the text is another one",
    "equals_ignore_case": "the text is another one",
    "contains": "a text is missing",
    "contains_ignore_case": "a text is missing",
    "contains_any": "none of the texts is there",
    "starts_with": "the text begins otherwise",
    "starts_with_any": "the text begins otherwise",
    "ends_with": "the text ends otherwise",
    "ends_with_any": "the text ends otherwise",
}
_LISTS = {
    "contains_all": "text of contains_all is missing",
    "not_contains_any": "forbidden text is there",
    "keywords": "keyword is missing",
    "secrets": "secret is in the text",
}
_PLACE = re.compile(r"^(\w+)\[(\d+)\]$")


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
    Code.NOT_ASKED: "nobody was asked yet",
    Code.NOT_ASKED_THIS: "it needs asking again",
    Code.UNREADABLE_REPLY: "the judge's reply can't be read",
    Code.OFF_SCALE: "the judge's score is not on the scale",
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
    ErrorCode.CUT_OFF: "the server closed the connection in the midst of the answer",
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
    ErrorCode.NOT_DONE: "it stopped without saying that it was done",
    ErrorCode.RUN_TIMEOUT: "the run did not end in time",
    ErrorCode.CANCELLED: "the run was cancelled",
    ErrorCode.WORKER_LOST: "its worker was lost while it ran",
    ErrorCode.SCHEDULER_LOST: "the connection to the scheduler was lost",
    ErrorCode.NO_REASON: "it gave no reason",
}
_AGENT_WAYS: dict[tuple[str, str], str] = {
    (ErrorCode.NO_CONNECTION, "lookup_failed"): "the server's name can't be looked up",
    (ErrorCode.NO_CONNECTION, "unknown_host"): "there is no such host",
    (ErrorCode.NO_CONNECTION, "refused"): "nobody listens at the server's address",
    (ErrorCode.NO_CONNECTION, "no_route"): "no network leads to the server",
    (ErrorCode.NO_CONNECTION, "closed"): "the server closed the connection at once",
    (ErrorCode.CERTIFICATE, "expired"): "the server's certificate has expired",
    (ErrorCode.CERTIFICATE, "not_yet_valid"): "the server's certificate is not valid yet",
    (ErrorCode.CERTIFICATE, "other_host"): "the server's certificate was made for another host",
    (ErrorCode.CERTIFICATE, "self_signed"): "the server's certificate is self-signed",
    (ErrorCode.CERTIFICATE, "unknown_authority"): "the server's certificate was signed by an unknown authority",
    **{(ErrorCode.ENDING, code): said for code, said in ENDINGS.items()},
}


def words_of(cause: Cause) -> str:
    """What is wrong, without the criterion's name."""
    if cause.kind == "agent":
        return f"the agent failed ({cause.condition.replace('_', ' ')}): {_of_agent(cause)}"
    if cause.kind == "ending":
        return ENDINGS.get(cause.condition, f"the answer ended with {cause.condition}")
    if cause.kind == "threshold":
        return "the score is below the test's threshold; this has the lowest"
    if cause.kind == "error":
        why = _ERRORS.get(cause.condition) or cause.condition.replace("_", " ")
        if cause.condition == Code.NOT_MEASURED:
            why = f"{MEASURES.get(cause.about, cause.about)} was not measured"
        said = ": ".join(part for part in (why, cause.way) if part)
        return f"{cause.metric or 'the check'} can't be made: {said or 'no reason given'}"
    if not (cause.criterion or cause.metric or cause.way or cause.condition):
        return "no stored result says why"
    if cause.condition.startswith("verdict of "):
        return f"failed, says {cause.condition.removeprefix('verdict of ')}"
    if cause.condition == "negate":
        return f"{cause.metric or 'everything'} holds, and must not"
    if cause.metric in ("", "extraction"):
        return _EXTRACTION.get(cause.way, cause.way) or "the score is too low"
    special = {
        "ToolCheck": _tools,
        "Trajectory": _tools,
        "Json": _json,
        "Classification": _label,
        "TextMatch": _condition,
    }.get(cause.metric)
    return special(cause) if special is not None else f"{cause.metric}: {_condition(cause)}"


def _of_agent(cause: Cause) -> str:
    if not cause.about:
        return cause.way or "no reason given"
    said = _AGENT_WAYS.get((cause.about, cause.way)) or _AGENT.get(cause.about) or cause.about.replace("_", " ")
    return said.format(cause.way or "?")


def _condition(cause: Cause) -> str:
    place = _PLACE.match(cause.condition)
    if place and place[1] in _LISTS:
        return f"the {nth(int(place[2]) + 1)} {_LISTS[place[1]]}"
    said = _TEXT.get(cause.condition) if cause.metric == "TextMatch" else None
    if said:
        return said
    plain = {
        "pattern": "the pattern is not found",
        "not": "the pattern is found",
        "score": "the score is too low",
        "function": "the function says no",
    }
    said = plain.get(cause.condition, f"{cause.condition} does not hold")
    return f"{said}: {cause.way}" if cause.way else said


def _tools(cause: Cause) -> str:
    about, way = cause.about, cause.way
    if not about:
        return {
            "called": "a tool was called, and none may be",
            "never called": "none of the expected tools was called",
            "not expected": "more calls than expected",
        }.get(way, f"{cause.metric}: {cause.condition} does not hold")
    if cause.condition == "forbidden_tools" or (cause.condition == "calls" and way == "called"):
        return f"{about} was called, and must not be"
    if cause.condition == "usage" and way == "called another number of times":
        return f"{about} was called another number of times"
    if way == "never called":
        return f"{about} was never called"
    if way == "at another place":
        return f"{about} was called, but at another place"
    if way == "not expected" and cause.condition == "calls":
        return f"{about} was called, which is not expected"
    return (
        f"the arguments of {about}: {way}" if way != "other arguments" else f"{about} was called with other arguments"
    )


def _json(cause: Cause) -> str:
    if cause.condition == "parses":
        return "the value is no JSON"
    rule = {"schema": " (schema)", "equals": " (equals)"}.get(cause.condition, "")
    if cause.way == "missing":
        return f"{cause.about} is missing in the JSON{rule}"
    return f"{cause.about or 'the JSON'}: {cause.way}{rule}"


def _label(cause: Cause) -> str:
    return f"{cause.about or 'the label'}: {cause.way}"
