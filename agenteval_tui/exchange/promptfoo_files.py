"""Files that promptfoo's configuration names: tests, variables, schemas. Only those in the configuration's folder.

Rows of a CSV file: promptfoo, src/csv.ts (`__expected`, `__description` and so on; all other columns are variables).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.exchange.document import read_document
from agenteval_tui.exchange.foreign_tests import FoundTests
from agenteval_tui.exchange.foreign_usage import number
from agenteval_tui.exchange.source import Source
from agenteval_tui.text.problems import AgentevalError

LARGEST = 20_000_000
"""Characters of a file that are read."""
_GLOB = re.compile(r"[*?\[]")
_MOST_FILES = 1_000
_PARSED = (".json", ".yaml", ".yml")
_TYPES = frozenset(
    re.findall(
        r"\S+",
        """
    agent-rubric answer-relevance bleu classifier contains contains-all contains-any contains-html contains-json
    contains-sql contains-xml context-faithfulness context-recall context-relevance conversation-relevance cost
    ends-with equals factuality finish-reason g-eval gleu guardrails human icontains icontains-all icontains-any is-html
    is-json is-refusal is-sql is-valid-function-call is-valid-openai-function-call is-valid-openai-tools-call is-xml
    javascript latency levenshtein llm-rubric max-score meteor model-graded-closedqa model-graded-factuality moderation
    perplexity perplexity-score pi python regex rouge-n ruby search-rubric select-best similar similar:cosine
    similar:dot similar:euclidean skill-used starts-with tool-call-f1 trace-error-spans trace-span-count
    trace-span-duration trajectory:goal-success trajectory:step-count trajectory:tool-args-match
    trajectory:tool-sequence trajectory:tool-used webhook word-count
""",
    )
)
_WITH_THRESHOLD = frozenset(
    re.findall(
        r"\S+",
        """
    answer-relevance classifier context-faithfulness context-recall context-relevance cost latency levenshtein
    perplexity-score perplexity rouge-n similar starts-with
""",
    )
)
_ASSERTION = re.compile(
    rf"(not-)?({'|'.join(map(re.escape, sorted(_TYPES)))})(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", re.DOTALL
)
_CONFIG = re.compile(r"__config:__expected(\d*):threshold")


class Files:
    """Reads the files that a configuration in `folder` names; what can't be read is said in `found`."""

    def __init__(self, folder: Path, found: FoundTests) -> None:
        self._folder = folder.resolve()
        self._found = found

    def paths(self, name: str) -> list[Path]:
        """The files that a name, or a pattern of names, stands for; [] and a note where there are none."""
        name = name.removeprefix("file://")
        if not _GLOB.search(name):
            path = (self._folder / name).resolve()
            if not path.is_relative_to(self._folder):
                self._found.note(f"{name} is outside of the folder and was not read")
                return []
            if not path.is_file():
                self._found.note(f"{name} can't be read: there is no such file")
                return []
            return [path]
        try:
            hits = sorted(self._folder.glob(name))[:_MOST_FILES]
        except (ValueError, NotImplementedError):
            hits = []
        inside = [one for one in hits if one.is_file() and one.resolve().is_relative_to(self._folder)]
        if not inside:
            self._found.note(f"{name} can't be read: there is no such file")
        return inside

    def value(self, name: str) -> Any:
        """What one file holds: the value of JSON or YAML, else its text. None and a note where it can't be read."""
        if Path(name).suffix.lower() not in (*_PARSED, ".txt", ".md"):
            return None  # a program, which is not run here
        for path in self.paths(name):
            return self._value(path)
        return None

    def _value(self, path: Path) -> Any:
        try:
            if path.suffix.lower() in _PARSED:
                with Source(path) as source:
                    return read_document(source)
            return self.text(path)
        except (AgentevalError, OSError) as error:
            self._found.note(f"{path.name} can't be read: {error}")
            return None

    def text(self, path: Path) -> str:
        """A file's text. Raises OSError."""
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8-sig", "replace")

    def variables(self, given: Any) -> dict[str, Any]:
        """A test's variables: an object, or the names of files that hold some."""
        if isinstance(given, Mapping):
            return dict(given)
        made: dict[str, Any] = {}
        for name in [given] if isinstance(given, str) else given if isinstance(given, list) else ():
            for path in self.paths(name) if isinstance(name, str) else ():
                value = self._value(path)
                if isinstance(value, Mapping):
                    made.update(value)
                elif value is not None:
                    self._found.note(f"the variables in {path.name} are no object and were left out")
        return made

    def tests(self, name: str) -> Iterator[Mapping[str, Any]]:
        """The tests in a file, or in the files that a pattern stands for."""
        for path in self.paths(name):
            suffix = path.suffix.lower()
            try:
                if suffix == ".csv":
                    yield from self._rows(path)
                elif suffix == ".jsonl":
                    yield from self._lines(path)
                elif suffix in _PARSED:
                    value = self._value(path)
                    for one in value if isinstance(value, list) else [value]:
                        if isinstance(one, Mapping):
                            yield one
                        elif one is not None:
                            self._found.skipped.append(f"{path.name}: a test is no object")
                else:
                    self._found.skipped.append(f"tests that a program makes ({path.name}) can't be read")
            except OSError as error:
                self._found.note(f"{path.name} can't be read: {error.strerror or error}")

    def _lines(self, path: Path) -> Iterator[Mapping[str, Any]]:
        for line, text in enumerate(self.text(path).splitlines(), 1):
            try:
                one = json.loads(text) if text.strip() else None
            except (ValueError, RecursionError):
                self._found.skipped.append(f"{path.name}, line {line}: not valid JSON")
                continue
            if isinstance(one, Mapping):
                # Promptfoo wants tests in it; lines that are none of their keys are variables.
                yield one if one.keys() & {"vars", "assert", "description", "options"} else {"vars": dict(one)}

    def _rows(self, path: Path) -> Iterator[dict[str, Any]]:
        rows = csv.reader(io.StringIO(self.text(path), newline=""))
        head: list[str] | None = None
        try:
            for cells in rows:
                if head is None:
                    head = [one.strip() for one in cells]
                elif any(cells):
                    yield of_row(dict(zip(head, (one.strip() for one in cells), strict=False)), self._found)
        except csv.Error as error:
            self._found.skipped.append(f"{path.name}, line {rows.line_num}: {error}")


def has_tests(path: Path) -> bool:
    """Whether the head of a CSV file has columns that are not variables, such as `__expected`."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return any(one.strip().startswith("__") for one in next(csv.reader(file), []))
    except (OSError, csv.Error):
        return False


def of_row(row: Mapping[str, str], found: FoundTests) -> dict[str, Any]:
    """A row of a CSV file as a test."""
    test: dict[str, Any] = {"vars": {}, "assert": [], "options": {}}
    thresholds: dict[int, float] = {}
    for key, value in row.items():
        if key.startswith("__expected"):
            if value:
                test["assert"].append(assertion_of(value))
        elif key in ("__prefix", "__suffix"):
            test["options"][key[2:]] = value
        elif key == "__description" and value:
            test["description"] = value
        elif key == "__metric" and value:
            test["metric"] = value
        elif key == "__threshold":
            if (limit := number(value)) is not None:
                test["threshold"] = limit
        elif told := _CONFIG.fullmatch(key):
            if (limit := number(value)) is not None:
                thresholds[int(told.group(1) or 1) - 1] = limit
        elif key.startswith("__"):
            found.note(f"the column {key} is not translated")
        else:
            test["vars"][key] = value
    metric = test.pop("metric", None)
    for index, one in enumerate(test["assert"]):
        one |= {"threshold": thresholds[index]} if index in thresholds else {}
        one |= {"metric": metric} if metric else {}
    return test


def assertion_of(expected: str) -> dict[str, Any]:
    """The assertion in a cell: `contains:x`, `similar(0.8):x`, `fn:...`, `grade:...`; a text alone is to be equal."""
    expected = expected.strip()
    for prefix in ("javascript:", "fn:", "eval:"):
        if expected.startswith(prefix):
            return {"type": "javascript", "value": expected.removeprefix(prefix).strip()}
    for prefix in ("grade:", "llm-rubric:"):
        if expected.startswith(prefix):
            return {"type": "llm-rubric", "value": expected.removeprefix(prefix)}
    if expected.startswith("python:"):
        return {"type": "python", "value": expected.removeprefix("python:").strip()}
    if expected.startswith("file://") and re.search(r"\.(py|js|ts|mjs|cjs)(:|$)", expected, re.IGNORECASE):
        kind = "python" if re.search(r"\.py(:|$)", expected, re.IGNORECASE) else "javascript"
        return {"type": kind, "value": expected}
    told = _ASSERTION.fullmatch(expected)
    if told is None:
        return {"type": "equals", "value": expected}
    negated, kind, threshold, value = told.groups()
    made: dict[str, Any] = {"type": f"{negated or ''}{kind}"}
    if value is not None:
        made["value"] = value
    if kind in _WITH_THRESHOLD:
        made["threshold"] = float(threshold) if threshold and float(threshold) else 0.8 if kind == "similar" else 0.75
    return made
