"""Tables of test cases (Vizra's, and anybody's): .csv, .tsv, .xlsx, .parquet, .arrow, and lists of JSON objects.

The file stays what it is: the suite names it as its dataset. What was taken as the prompt and as the expectation is
said, and other criteria to choose from are below the tests, as comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct

from agenteval_tui.core.errors import AgentevalError, Problem
from agenteval_tui.core.numbers import count
from agenteval_tui.core.phrasing import on_one_line
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.suite_import import FoundTests, checked
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.suites.datasets import (
    EXPECTED,
    EXPECTED_COLUMNS,
    KINDS,
    PROMPT_COLUMNS,
    DatasetRow,
    folded_name,
    messages_of,
    rows_and_problems,
)
from agenteval_tui.suites.json_rows import LISTS
from agenteval_tui.suites.slugs import slug

_LOOKED_AT = 2_000  # rows that are looked at to tell what the columns are
_SHOWN = 8
"""Columns that are named in a note."""
_PROMPTS = (
    *PROMPT_COLUMNS,
    *("inputs", "messages", "message", "user_message", "user_prompt", "text", "request", "utterance", "instruction"),
    *("task", "frage", "eingabe", "anfrage", "nachricht"),
)
_ANSWERS = (
    *EXPECTED_COLUMNS,
    *("expected_answer", "expected_result", "reference", "reference_answer", "reference_output", "ground_truth"),
    *("ideal", "target", "gold", "label", "output", "outputs", "response", "completion", "antwort", "erwartet"),
    *("erwartete_antwort", "erwarteter_wert"),
)
_KEYWORDS = (
    *("must_contain", "must_include", "must_mention", "expected_contains", "should_contain", "should_mention"),
    *("contains", "keywords", "expected_keywords", "muss_enthalten"),
)
_DESCRIBED = re.compile(r"expected_|expectation|criteria|rubric|grading_|success_|erwart")
_WINDOWS = "windows-1252"
"""What Excel writes where it does not write UTF-8. The file does not say so."""
_ASSERTIONS = ("assertion_class", "assertion_params")  # Vizra's own convention
_OF_VIZRA = {*_ASSERTIONS, "scenario_type", "expected_behavior", "expected_context"}
_MADE_BY_VIZRA = {"prompt", "expected_response", "description"}
_LONGEST_HEAD = 200_000  # characters
_SHORT = 80
"""Characters of an answer that is looked for as it is. A longer one is an example of a good answer."""
_MOST_EMPTY = 0.5  # the share of empty cells from which a column decides nothing


class Columns(Struct, frozen=True):
    """What the columns of a table mean: names of columns, "" where there is none.

    `prompts` are all that could be the prompt, the chosen one first. `described` says in words what is expected.
    """

    prompts: tuple[str, ...]
    answer: str
    keywords: str
    described: str
    rest: tuple[str, ...]


def can_read(value: Any) -> bool:
    """Whether a file's first value is a row of a table: it has a prompt, and says what is expected. An object that has
    a list of such rows, or of LangSmith's, is one, too."""
    if not isinstance(value, Mapping):
        return False
    for key in LISTS:
        rows = value.get(key)
        if isinstance(rows, list) and rows and isinstance(rows[0], Mapping):
            return isinstance(rows[0].get("inputs"), Mapping) or can_read(rows[0])
    names = {str(name).casefold() for name in value}
    prompts = [name for name in value if str(name).casefold() in PROMPT_COLUMNS and isinstance(value[name], str)]
    return bool(prompts) and bool(names & {*EXPECTED_COLUMNS, *_KEYWORDS} or any(map(_DESCRIBED.match, names)))


def is_table(path: Path) -> bool:
    """Whether the name of a file is that of a table, which is no JSON."""
    return KINDS.get(path.suffix.lower()) in ("csv", "xlsx", "parquet", "arrow")


def tests(source: Source) -> FoundTests:
    """One test, whose dataset is the file. Raises `AgentevalError` where no column can be the prompt."""
    path = source.path
    if path.suffix.lower() not in KINDS:
        raise AgentevalError(
            "the name of this file does not say that it is a table",
            where=str(path),
            fix=f"rename it to end in one of {', '.join(KINDS)}",
        )
    rows, problems = _read(path)
    encoding = _WINDOWS if any(problem.code == "encoding" for problem in problems) else None
    if encoding:
        rows, problems = _read(path, encoding)
    if not rows:
        first = problems[0] if problems else None
        reason, fix = ("it has no rows", "add rows below the heading") if first is None else (first.message, first.fix)
        raise AgentevalError(reason, where=f"{path}:{first.line if first else 1}", fix=fix or "")
    names = tuple(dict.fromkeys(name for row in rows for name in row.variables if name != EXPECTED))
    if EXPECTED in rows[0].variables and not any(
        name.casefold() in _ANSWERS and not isinstance(rows[0].variables.get(name), Mapping) for name in names
    ):
        names = (*names, EXPECTED)
    columns = _columns(path, names, rows)
    found_tests = FoundTests(name=path.stem)
    if encoding:
        found_tests.note("the file is not UTF-8 and is read as Windows-1252: change `encoding` if letters are wrong")
    for problem in problems[:_SHOWN]:
        found_tests.skipped.append(
            f"line {problem.line}: {problem.message}" + (f"; {problem.fix}" if problem.fix else "")
        )
    if len(problems) > _SHOWN:
        found_tests.skipped.append(f"{count(len(problems) - _SHOWN, 'more row')} like this")
    _note(columns, names, found_tests)
    test: dict[str, Any] = {"id": slug(path.stem) or "rows", "name": path.stem}
    prompt = columns.prompts[0]
    # A dataset takes these columns as the prompt by itself.
    if messages_of(rows[0].variables) is None and folded_name(prompt) not in PROMPT_COLUMNS:
        if not prompt.isidentifier():
            raise AgentevalError(
                f"no template can name the column {prompt!r}", where=f"{path}:1", fix="call it `input`"
            )
        test["prompt"] = "{{ " + prompt + " }}"
    test["dataset"] = {"file": path.name, **({"encoding": encoding} if encoding else {})}
    test["criteria"] = _criteria(columns, rows, found_tests)
    found_tests.tests.append(test)
    found_tests.templates = _templates(columns)
    return found_tests


def _read(path: Path, encoding: str | None = None) -> tuple[list[DatasetRow], list[Problem]]:
    rows, problems = list[DatasetRow](), list[Problem]()
    for row in islice(rows_and_problems(path, encoding=encoding), _LOOKED_AT):
        if isinstance(row, Problem):
            problems.append(row)
        else:
            rows.append(row)
    return rows, problems


def _columns(path: Path, names: tuple[str, ...], rows: Sequence[DatasetRow]) -> Columns:
    # Of two names that are folded alike the first one counts.
    lower = {folded_name(name): name for name in reversed(names)}

    def named(names: Iterable[str]) -> list[str]:
        return [lower[name] for name in names if name in lower and _filled(lower[name], rows) >= 1 - _MOST_EMPTY]

    prompts = named(_PROMPTS)
    if not prompts:
        emptied = next((lower[name] for name in _PROMPTS if name in lower), "")
        # The name is right, and still nothing can be asked: the error names the column.
        if emptied:
            empty = count(round((1 - _filled(emptied, rows)) * len(rows)), "row")
            raise AgentevalError(
                f"the column `{emptied}`, which would be the prompt, is empty in {empty} of {len(rows):,}",
                where=f"{path}:1",
                fix="fill it, or remove the rows without a prompt",
            )
        raise AgentevalError(_without_prompt(names), where=f"{path}:1", fix=_name_it(names))
    # An object is no text that an answer could be compared with.
    answers = [name for name in named(_ANSWERS) if name != prompts[0] and not _holds_objects(name, rows)]
    if answers and not _can_be_named(answers[0]) and folded_name(answers[0]) in EXPECTED_COLUMNS:
        names = tuple(name for name in names if name != answers[0])
        answers[0] = EXPECTED
    keywords = named(_KEYWORDS)
    described = named(name for name in reversed(lower) if _DESCRIBED.match(name))
    described = [name for name in described if name in names and name not in (*answers, *keywords)]
    answers, keywords, described = (
        [name for name in group if _can_be_named(name)] for group in (answers, keywords, described)
    )
    answer = answers[0] if answers else ""
    meaning = {prompts[0], answer, *keywords[:1], *described[:1]}
    return Columns(
        prompts=tuple(prompts),
        answer=answer,
        keywords=keywords[0] if keywords else "",
        described=described[0] if described else "",
        rest=tuple(name for name in names if name not in meaning),
    )


def _can_be_named(name: str) -> bool:
    """Whether a criterion can name the column: `{{name}}`."""
    return all(part.isidentifier() for part in name.split("."))


def _holds_objects(name: str, rows: Sequence[DatasetRow]) -> bool:
    return any(isinstance(row.variables.get(name), Mapping) for row in rows)


def _filled(name: str, rows: Sequence[DatasetRow]) -> float:
    """The share of rows in which a column has something."""
    has = sum(1 for row in rows if row.variables.get(name) not in (None, "", [], {}))
    return has / len(rows)


def _without_prompt(names: Sequence[str]) -> str:
    if any(len(name.split()) > 4 or "?" in name for name in names):
        return f"the first line of this table has no column names: {on_one_line(', '.join(names), 100)}"
    return f"no column of this table is the prompt: it has {_listed(names)}"


def _name_it(names: Sequence[str]) -> str:
    if any(len(name.split()) > 4 or "?" in name for name in names):
        return "write a first line of names, such as input,expected"
    return f"call the column with the prompt `input`; other names: {', '.join(_PROMPTS[1:8])}"


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(on_one_line(name, 40) for name in names[:_SHOWN])
    return f"{listed} and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else listed


def _note(columns: Columns, names: Sequence[str], found_tests: FoundTests) -> None:
    first, *others = columns.prompts
    found_tests.note(f"`{first}` is the prompt")
    if others:
        found_tests.note(f'{_listed(others)} could be the prompt, too: write `prompt: "{{{{ {others[0]} }}}}"`')
    if columns.answer:
        found_tests.note(f"`{columns.answer}` is the expected answer")
    if columns.keywords:
        found_tests.note(f"`{columns.keywords}` lists what the answer must contain, separated by commas")
    if columns.described:
        found_tests.note(f"`{columns.described}` says in words what is expected: a person decides, or a judge")
    unnamed = [name for name in columns.rest if not _can_be_named(name)]
    if unnamed:
        found_tests.note(f"criteria can't use {_listed(unnamed)}: write names without spaces")
    if columns.rest:
        found_tests.note(f"{count(len(columns.rest), 'variable')}: {_listed(columns.rest)}")
    if any(name.casefold() in _ASSERTIONS for name in names):
        found_tests.note("`assertion_class` names PHP code, which is not run: write what it checks as a criterion")


# Criteria


def _criteria(columns: Columns, rows: Sequence[DatasetRow], found_tests: FoundTests) -> list[dict[str, Any]]:
    criteria = []
    if columns.answer and _has_short_answers(columns.answer, rows):
        criteria.append(_says(columns.answer))
    elif columns.answer:
        criteria.append(_asks_person("As expected", columns.answer))
    if columns.keywords:
        criteria.append(_has_keywords(columns.keywords))
    if columns.described:
        criteria.append(_asks_person(_title(columns.described), columns.described))
    for name in (columns.answer, columns.keywords, columns.described):
        empty = sum(1 for row in rows if name and row.variables.get(name) in (None, ""))
        if empty:
            found_tests.note(f"`{name}` is empty in {count(empty, 'row')}: its criterion is an error there, no verdict")
    if not criteria:
        found_tests.note("no column says what is expected: a person decides, until you write a criterion")
        question = "Is this a good answer?"
        criteria.append(checked("Good", {"type": "Human", "question": question}))
    return criteria


def _has_short_answers(name: str, rows: Sequence[DatasetRow]) -> bool:
    values = [row.variables.get(name) for row in rows]
    return all(not isinstance(value, list) and len(str(value or "")) <= _SHORT for value in values)


def _title(name: str) -> str:
    return name.replace("_", " ").strip().capitalize() or "As expected"


def _says(name: str) -> dict[str, Any]:
    return checked("As expected", {"type": "TextMatch", "contains_ignore_case": "{{" + name + "}}"})


def _has_keywords(name: str) -> dict[str, Any]:
    return checked(_title(name), {"type": "Keywords", "keywords": "{{" + name + "}}"})


def _asks_person(title: str, name: str) -> dict[str, Any]:
    return checked(title, {"type": "Human", "question": "Does the answer fit this? {{" + name + "}}"})


def _templates(columns: Columns) -> list[dict[str, Any]]:
    """Criteria to choose from, beside those that the test has."""
    name = columns.answer or columns.described or columns.keywords
    criteria = []
    if name:
        text = "{{" + name + "}}"
        criteria = [
            checked("Says it word for word", {"type": "TextMatch", "equals_ignore_case": text}),
            checked("Says it", {"type": "TextMatch", "contains_ignore_case": text}),
            checked("Similar words", {"type": "Lexical", "min": 0.5}, expected_value=text),
            checked("The same meaning", {"type": "Similarity"}, expected_value=text),
            checked("Judged", {"type": "Judge", "scale": "one_to_five", "criteria": f"The answer fits this: {text}"}),
            checked("A person decides", {"type": "Human", "question": f"Does the answer fit this? {text}"}),
        ]
    criteria.append(checked("Not too long", {"type": "Length", "min_words": 10, "max_words": 200}))
    criteria.append(checked("Quick enough", {"type": "Latency", "max": 5000}))
    return criteria


def page_of(path: Path) -> str:
    """By the columns that DeepEval, LangSmith and Vizra write, or have in their documentation."""
    try:
        with path.open(encoding="utf-8-sig", errors="replace") as file:
            # Only the first line is looked at: the file may be large, and in any encoding.
            head = {cell.strip(' "\n') for cell in re.split("[,;\t]", file.readline(_LONGEST_HEAD))}
    except OSError:
        return ""
    if len(head & {"actual_output", "expected_output", "retrieval_context"}) > 1:
        return "coming-from/deepeval"
    if any(cell in ("inputs", "outputs") or cell.startswith(("inputs.", "outputs.")) for cell in head):
        return "coming-from/langsmith-course"
    return "coming-from/vizra" if head & _OF_VIZRA or head >= _MADE_BY_VIZRA else ""


FORMAT = Format(
    name="table",
    title="a table of test cases",
    looks_like=".csv, .xlsx, .parquet, or JSON objects with a prompt and what is expected",
    can_read=can_read,
    of_name=is_table,
    tests=tests,
    page_of=page_of,
    rank=2000,
)
