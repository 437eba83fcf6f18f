"""Nothing in the program reads a sentence: what is decided is decided by codes and fields (`grading.codes`).

A sentence is what `grading.sentences` makes, what `.reason`, `.message`, `.what` and the like hold, and the text of an
exception. Looking for words in one, cutting it up, or matching it with a pattern is an error here, in the one place
that makes sentences as well.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

import pytest
from sources import modules, of_all_sources

ATTRIBUTES = {"reason", "message", "sentence", "words", "why", "what", "fix", "said", "title"}
NAMES = {"reason", "message", "sentence", "said", "words", "why"}
EXCEPTIONS = {"error", "problem", "wrong", "broken", "exc", "exception", "failure", "slow", "unknown", "cause"}
CUTTING = {"split", "rsplit", "partition", "rpartition", "removeprefix", "removesuffix"}
LOOKING = {"startswith", "endswith", "find", "rfind", "index", "rindex", "count"}
MATCHING = {"search", "match", "fullmatch", "findall", "finditer", "split", "sub"}
SAME = {"lower", "upper", "casefold", "strip", "lstrip", "rstrip"}

ALLOWED = {
    # Libraries that have no codes: their words are all that there is.
    ("uxon/php_regex.py", "'missing )' in message"): "the regex package's error",
    ("uxon/php_regex.py", "'unterminated character set' in message"): "the regex package's error",
    ("uxon/php_regex.py", "key in message"): "the regex package's error",
    ("suites/datasets.py", "'field larger' in reason"): "csv.Error",
    ("suites/datasets.py", "'unexpected end' in reason"): "csv.Error",
    ("suites/datasets.py", "'expected after' in reason"): "csv.Error",
    ("history/open_database.py", "'no such table' not in str(error)"): "SQLite's code for it is that of any error",
    ("history/sql_query.py", "pattern.fullmatch(str(error))"): "SQLite has one code for all faults of a query",
    ("agents/models/stream.py", "str(error).startswith('EOF while parsing')"): "pydantic's JSON parser",
    ("agents/http/errors.py", "_STATUS_LINE.match(str(error))"): "httpx gives a proxy's status nowhere else",
    ("agents/process/environment_messages.py", "_NO_MODULE.match(message)"): "what Python printed in another process",
    ("agents/process/node_packages.py", "_MISSING.match(message)"): "what Node printed in another process",
    ("core/errors.py", "'\\n' in self.fix"): "a list of remedies, a line each",
    ("agents/process/python_errors.py", "message in words"): "a cause that an error repeats is not said twice",
    # Where an error is made, or comes in: its foreign words are reduced to a field.
    ("transcripts/model.py", "fingerprint(message)"): "RunError.told",
    ("transcripts/model.py", "fingerprint(reduced or message)"): "RunError.raised",
    ("transcripts/redact.py", "fingerprint(message)"): "the words with a secret taken out of them",
    (
        "grading/causes.py",
        "fingerprint(line.message or str(line.fields.get('message') or ''))",
    ): "a plug-in's words",
    ("grading/causes.py", "fingerprint(message)"): "a plug-in's words",
    ("grading/causes.py", "fingerprint(message or str(fields.get('message') or ''))"): "a plug-in's",
    # No sentences, but dicts and lists, or the agent's own answer.
    ("tui/command_providers.py", "' ' not in words"): "what a person types",
}
"""(file, code) and why it may."""

WORDS = ("evidence_sentence", "metric_sentence", "criterion_sentence", "verdict_sentence", "error_sentence")
"""What makes a sentence of a code and fields (`grading.sentences`)."""


def _called(node: ast.Call) -> str:
    """The last part of the name of what is called."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _sentence(node: ast.AST) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr in ATTRIBUTES
    if isinstance(node, ast.Name):
        return node.id in NAMES
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
        return bool(node.args) and isinstance(node.args[0], ast.Name) and node.args[0].id in EXCEPTIONS
    if isinstance(node, ast.Call) and _called(node) in WORDS:
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SAME:
        return _sentence(node.func.value)
    return False


def _reads(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare):
        left: ast.expr = node.left
        for sign, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(sign, ast.In | ast.NotIn) and _sentence(right):
                text = left.value if isinstance(left, ast.Constant) and isinstance(left.value, str) else ""
                if text.isidentifier() and isinstance(right, ast.Name) and right.id == "message":
                    continue  # a message of a conversation: an object, and whether it has that property
                if text or isinstance(left, ast.JoinedStr | ast.Name):
                    return True
            if isinstance(sign, ast.Eq | ast.NotEq):
                for one, other in ((left, right), (right, left)):
                    words = isinstance(other, ast.Constant) and isinstance(other.value, str) and " " in other.value
                    if words and _sentence(one):
                        return True
            left = right
    if isinstance(node, ast.Call) and _called(node) == "fingerprint":
        return any(_sentence(inner) for one in node.args for inner in ast.walk(one))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        name, of = node.func.attr, node.func.value
        if (name in LOOKING or (name in CUTTING and node.args)) and _sentence(of):
            return True
        return name in MATCHING and not isinstance(of, ast.Constant) and any(map(_sentence, node.args))
    return False


def _errors_without_a_code(path: str, nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Errors of agents that are known by nothing but their sentence."""
    for node in nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "RunError":
            starred = any(isinstance(one, ast.Starred) for one in node.args) or any(
                not one.arg for one in node.keywords
            )
            if len(node.args) < 4 and not starred and all(one.arg != "code" for one in node.keywords):
                yield f"{path}: {ast.unparse(node)}"


@of_all_sources
def test_nothing_reads_a_sentence() -> None:
    found = {(path, ast.unparse(node)) for path, nodes in modules().items() for node in nodes if _reads(node)}
    assert found - ALLOWED.keys() == set(), "give it a code and fields, and decide by those"
    assert ALLOWED.keys() - found == set(), "it is gone: take it out of ALLOWED"


@of_all_sources
def test_each_error_of_an_agent_has_a_code() -> None:
    """`RunError.told` is of words that are not ours: it reduces them where the error is made."""
    assert {one for path, nodes in modules().items() for one in _errors_without_a_code(path, nodes)} == {
        # Only to take secrets out of a text.
        "runs/judge_client.py: RunError('', reply.error)",
        "runs/agent_factory.py: RunError('', text)",
    }


@pytest.mark.parametrize(
    "code",
    [
        "'was never called' in line.reason",
        "fingerprint(error.message)",
        "text.fingerprint(one.why)",
        "f'{x} is' in message",
        "'was never called' in message",
        "word in result.reason",
        "line.reason.split(' was ', 1)",
        "metric.reason.removeprefix('waits for a person: ')",
        "re.search('missing', one.reason)",
        "_CALLED.search(line.reason)",
        "'was never called' in sentences.evidence_sentence(line)",
        "criterion_sentence(result).split(': ')",
        "why.startswith('not graded')",
        "'nothing was decided' not in error.what",
        "str(error).startswith('no such')",
        "'certificate' in str(error).lower()",
        "one.message == 'nothing extracted'",
    ],
)
def test_reading_is_found(code: str) -> None:
    assert any(map(_reads, ast.walk(ast.parse(code))))


@pytest.mark.parametrize(
    "code",
    ["' '.join(one.message.split())", "out.line(one.reason)", "line.code == Code.MISSING", "one.message or ''"],
)
def test_showing_is_none(code: str) -> None:
    assert not any(map(_reads, ast.walk(ast.parse(code))))
