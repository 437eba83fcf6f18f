"""promptfoo's configuration: its tests as tests of a suite, one for each prompt and combination of variables.

Tests, variables and prompts may be in files that the configuration names; only those in its folder are read. Of a CSV
file, columns such as `__expected` and `__description` say what is asserted, and the others are variables (promptfoo,
src/csv.ts). Programs that make prompts, variables or tests are not run, and named in a note.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.delimited_text import HEAD, TextForm, from_header, table_form
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.json_values import parsed_json
from agenteval_tui.extensions.promptfoo.asserts import criteria_of
from agenteval_tui.extensions.promptfoo.code import AssertionCode, has_structured_answers, module_name
from agenteval_tui.extensions.promptfoo.providers import Providers
from agenteval_tui.formats.importers.format import Format
from agenteval_tui.formats.importers.message_formats import as_list, listed, plain_text
from agenteval_tui.formats.importers.suite_import import (
    NOT_TRANSLATED,
    FoundTests,
    PromptCall,
    checked,
    needs_manual_work,
)
from agenteval_tui.formats.importers.usage_import import number, share
from agenteval_tui.formats.stream.small_document import javascript_yaml, read_document
from agenteval_tui.formats.stream.source import Source
from agenteval_tui.suites.templates import is_template, literal, render, template_problems

_COMBINATIONS = 1000
_LARGEST_PROMPT = 1_000_000
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


def can_read(value: Any) -> bool:
    """Whether a file's first value is a configuration."""
    return isinstance(value, Mapping) and fits_yaml(frozenset(map(str, value)))


def fits_yaml(keys: frozenset[str]) -> bool:
    """Whether these keys of a document are those of a configuration."""
    tests, providers = keys & {"tests", "defaultTest", "scenarios"}, keys & {"providers", "targets"}
    return bool(tests or providers) if "prompts" in keys else bool(tests and providers)


def tests(source: Source) -> FoundTests:
    """The tests. Raises `AgentevalError` when there is no configuration."""
    document = read_document(source, "js-yaml")
    if not isinstance(document, Mapping):
        raise AgentevalError("this is not a promptfoo configuration", where=str(source.path), fix=FORMAT.described)
    return tests_of(document, source.path)


def tests_of(config: Mapping[str, Any], file: Path) -> FoundTests:
    """The tests of a configuration, whose paths are from the folder of `file`: one for each test and prompt."""
    found_tests = FoundTests(name=plain_text(config.get("description")))
    structured = has_structured_answers(config.get("providers") or config.get("targets"))
    code = AssertionCode(module_name(file), file.name, note=found_tests.note, structured=structured)
    files = Files(file.parent, found_tests)
    # Without prompts, promptfoo asks what the variable `prompt` holds.
    prompts = list(_prompts(config.get("prompts") or "{{prompt}}", files, found_tests))
    default = config.get("defaultTest")
    if isinstance(default, str):
        default = files.value(default.removeprefix("file://"))
    providers = Providers(found_tests.note)
    adding = _Adding(
        config,
        default=_mapping(default),
        prompts=prompts,
        files=files,
        found=found_tests,
        code=code,
        providers=providers,
    )
    scenarios = as_list(config.get("scenarios"))
    # Without tests and scenarios, promptfoo asks each prompt once.
    for entry in listed(config.get("tests")) or ([] if scenarios else [{}]):
        if isinstance(entry, str):
            adding.named(entry)
        # An object of these keys alone names a program that makes tests.
        elif isinstance(entry, Mapping) and not ("path" in entry and entry.keys() <= {"path", "config"}):
            adding.case(entry)
        else:
            found_tests.skipped.append(f"tests that stand elsewhere ({plain_text(entry)[:80]}) can't be read")
    for entry in scenarios:
        # A text names a file of scenarios, which is read as a file of tests is.
        for scenario in files.tests(entry) if isinstance(entry, str) else [entry]:
            adding.scenario(scenario)
    for key in ("nunjucksFilters", "extensions"):
        if config.get(key):
            found_tests.note(f"`{key}` is not translated")
    names = [providers.agent(provider) for provider in listed(config.get("providers") or config.get("targets"))]
    found_tests.agent = next(filter(None, names), "")
    found_tests.agents = providers.agents
    if len(found_tests.agents) > 1 and found_tests.agent:
        others = ", ".join(name for name in dict.fromkeys(names) if name not in ("", found_tests.agent))
        if others:
            found_tests.note(f"the tests run with {found_tests.agent}; run with --agent for the others: {others}")
    found_tests.module, found_tests.module_text, found_tests.names_files = code.module, code.text(), code.names_files
    if adding.asked:
        kinds = ", ".join(f"{kind} ({count:,})" if count > 1 else kind for kind, count in adding.asked.most_common(20))
        found_tests.note(f"a person decides assertions without a counterpart: {kinds}")
    return found_tests


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


class _Function(str):
    """A prompt that a Python function makes: `path/to/file.py:name`."""


def _prompts(prompts: Any, files: Files, imported: FoundTests) -> Iterator[str]:
    """The texts of the prompts, and Python functions. Any other program is refused by name: nothing of it runs here.

    An object may be one prompt, or the older form of a list: prompts, or their files, with their labels.
    """
    if isinstance(prompts, Mapping) and not prompts.keys() & {"raw", "id", "label"}:
        prompts = list(prompts)
    for prompt in prompts if isinstance(prompts, list) else [prompts]:
        text = (
            plain_text(prompt.get("raw") or prompt.get("id") or prompt.get("label"))
            if isinstance(prompt, Mapping)
            else prompt
        )
        if not isinstance(text, str) or not text.strip():
            continue
        named = text.startswith("file://") or ("\n" not in text and _PROMPT_FILE.search(text) is not None)
        name = text.removeprefix("file://").strip()
        # The only programs that can become a prompt: the import calls them, if it may run code.
        if named and _PYTHON.fullmatch(name) and files.paths(name.rpartition(":")[0]):
            yield _Function(name)
        elif text.startswith("exec:") or (named and _PROGRAM.search(name)):
            imported.skipped.append(f"prompt {text[:80]}: {_NOT_RUN}; write what it makes as a prompt")
        elif named:
            for path in files.paths(name):
                yield from _prompts_in(path, files, imported)
        else:
            yield text


def _prompts_in(path: Path, files: Files, imported: FoundTests) -> Iterator[str]:
    """A .txt file may have several, with a line `---` between them; a .jsonl file has one a line."""
    if path.suffix.lower() in (".csv", ".xlsx", ".pdf"):
        imported.skipped.append(f"prompt {path.name}: prompts in a {path.suffix} file are not read; write them as .txt")
        return
    try:
        text = files.text(path)[:_LARGEST_PROMPT]
    except OSError as error:
        imported.note(f"the prompt in {path.name} can't be read: {error.strerror or error}")
        return
    kind = path.suffix.lower()
    # A model gets YAML as JSON, as from promptfoo.
    if kind in (".yaml", ".yml") and isinstance(value := javascript_yaml(text), list | Mapping):
        text = json.dumps(value, ensure_ascii=False)
    parts = _SEPARATED.split(text) if kind == ".txt" else text.splitlines() if kind == ".jsonl" else [text]
    yield from (part.strip("\n") if kind == ".txt" and len(parts) > 1 else part for part in parts if part.strip())


_PROMPT_FILE = re.compile(r"^[^{}]+\.(txt|md|json|jsonl|ya?ml|j2|csv|py|[cm]?[jt]s|sh|rb|go)(:[\w.]+)?$", re.IGNORECASE)
_PROGRAM = re.compile(r"\.(py|[cm]?[jt]s|sh|bash|rb|go|exe)(:[\w.]+)?$", re.IGNORECASE)
_PYTHON = re.compile(r"(?:\./)?[\w./-]+\.py:[^\W\d]\w*")
_SEPARATED = re.compile(r"^---[ \t]*\r?\n", re.MULTILINE)
_NOT_RUN = "a program makes it, which is not run here"


def _variables(
    written: Mapping[str, Any], files: Files, imported: FoundTests, *, expanded: bool
) -> Iterator[dict[str, Any]]:
    """The variables. Where they are `expanded`, a list of texts means a test for each text, as in promptfoo, and any
    other list is one value. Raises `AgentevalError` for one that can't be had: the test would ask something else."""
    read = {key: _of_file(key, value, files) for key, value in written.items()}
    listed = {key: value for key, value in read.items() if expanded and _are_alternatives(written[key])}
    rest = {key: value for key, value in read.items() if key not in listed}
    # A few lists have millions of combinations: they are counted, and only the first are made.
    combinations = math.prod(map(len, listed.values()))
    if combinations > _COMBINATIONS:
        imported.note(f"only the first {_COMBINATIONS:,} of {combinations:,} combinations of variables became tests")
    for values in islice(product(*listed.values()), _COMBINATIONS):
        yield {**rest, **dict(zip(listed, values, strict=True))}


def _are_alternatives(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], str)


def _of_file(key: str, value: Any, files: Files) -> Any:
    """What a variable holds; of one that names a file, its text, as promptfoo puts it in."""
    if isinstance(value, list):
        return [_of_file(key, item, files) for item in value]
    if not isinstance(value, str) or not value.startswith("file://"):
        return value
    name = value.removeprefix("file://")
    if _PROGRAM.search(name):
        raise AgentevalError(f"variable {key}, {value[:80]}: {_NOT_RUN}")
    if Path(name).suffix.lower() in _BINARY:
        raise AgentevalError(f"variable {key}, {value[:80]}: this is not a text; attach the file to a message")
    for path in files.paths(name):
        try:
            content = files.value(name) if path.suffix.lower() in _PARSED else files.text(path).strip()
        except OSError as error:
            raise AgentevalError(f"variable {key}, {value[:80]}: {error.strerror or error}") from None
        return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    raise AgentevalError(f"variable {key}, {value[:80]}: there is no such file in the folder of the configuration")


_BINARY = (".pdf", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".mp3", ".wav", ".mp4", ".docx", ".xlsx")


class _Adding:
    """Makes tests of promptfoo's: of each test one for each prompt and combination of variables."""

    def __init__(
        self,
        config: Mapping[str, Any],
        default: Mapping[str, Any],
        prompts: list[str],
        files: Files,
        found: FoundTests,
        code: AssertionCode,
        providers: Providers,
    ) -> None:
        self._code = code
        self._providers = providers
        self._config = config
        self._default = default
        self._prompts = prompts
        self._files = files
        self._found = found
        self._number = 0
        self.asked: Counter[str] = Counter()
        """The kinds of assertions that a person is asked about."""

    def named(self, name: str) -> None:
        """The tests of a file, or of the files that match a pattern."""
        plain = name.removeprefix("file://")
        if "://" in plain:
            self._found.skipped.append(f"tests that stand elsewhere ({plain[:80]}) can't be read")
            return
        paths = self._files.paths(plain) if plain.lower().endswith(".csv") else []
        # A function is called with the variables of each row: a dataset, which is read at the run, has none yet.
        has_function = any(isinstance(prompt, _Function) for prompt in self._prompts)
        if len(paths) == 1 and not has_tests(paths[0]) and not has_function:
            self.case({}, dataset=_dataset(plain, paths[0]))  # its columns are variables, and nothing else
            return
        for test in self._files.tests(plain):
            self.case(test)

    def scenario(self, scenario: Any) -> None:
        """Each test of a scenario with each of its configurations."""
        if not isinstance(scenario, Mapping):
            self._found.skipped.append("a scenario is not an object")
            return
        # What a scenario leaves out counts as one empty entry.
        for data in list(self._parts(scenario.get("config"))) or [{}]:
            for test in list(self._parts(scenario.get("tests"))) or [{}]:
                self.case(
                    {
                        **data,
                        **test,
                        "vars": {**self._files.variables(data.get("vars")), **self._files.variables(test.get("vars"))},
                        "assert": [*as_list(data.get("assert")), *as_list(test.get("assert"))],
                        "options": {**_mapping(data.get("options")), **_mapping(test.get("options"))},
                    }
                )

    def _parts(self, written: Any) -> Iterator[Mapping[str, Any]]:
        for entry in written if isinstance(written, list) else [written]:
            if isinstance(entry, str):
                yield from self._files.tests(entry)
            elif isinstance(entry, Mapping):
                yield entry

    def case(self, test: Mapping[str, Any], *, dataset: Mapping[str, str] | None = None) -> None:
        """A test."""
        self._number += 1
        options = {**_mapping(self._default.get("options")), **_mapping(test.get("options"))}
        written = {**self._files.variables(self._default.get("vars")), **self._files.variables(test.get("vars"))}
        expanded = options.get("disableVarExpansion") is not True
        try:
            for variables in _variables(written, self._files, self._found, expanded=expanded):
                self._add(test, variables, dataset, options)
        except AgentevalError as error:
            self._found.skipped.append(f"{plain_text(test.get('description')) or f'test {self._number}'}: {error.what}")

    def _add(
        self,
        written: Mapping[str, Any],
        variables: Mapping[str, Any],
        dataset: Mapping[str, str] | None,
        options: Mapping[str, Any],
    ) -> None:
        # `null` is no threshold: the default test's counts.
        limit = number(written["threshold"] if written.get("threshold") is not None else self._default.get("threshold"))
        name = plain_text(written.get("description")) or _shown(variables) or f"test {self._number}"
        criteria = self._criteria(written, options, limit)
        if not self._prompts:
            self._found.skipped.append(f"{name}: no prompt can be read")
        for index, prompt in enumerate(self._prompts, 1):
            test: dict[str, Any] = {"name": f"{name} (prompt {index})" if len(self._prompts) > 1 else name}
            prefix, suffix = plain_text(options.get("prefix")), plain_text(options.get("suffix"))
            values = dict(variables)
            # What a function makes is not a template any more: nothing is filled in.
            if not isinstance(prompt, _Function):
                text = as_ours(f"{prefix}{prompt}{suffix}")
                try:
                    if dataset is None:
                        values |= without_values(text, variables)
                        test |= _asked(text, values)
                    else:  # its rows have the other variables
                        test |= _asked(text, None)
                except AgentevalError as error:
                    self._found.skipped.append(f"{test['name']}: its prompt can't be filled in: {error.what}")
                    continue
                if left_empty := [key for key in values if key not in variables]:
                    names = ", ".join(f"`{key}`" for key in left_empty)
                    self._found.note(f"{test['name']}: it has no {names} for its prompt: empty, as in promptfoo")
            if values:
                test["variables"] = values
            test["criteria"] = criteria
            if dataset:
                test["dataset"] = dict(dataset)
            if (threshold := share(limit)) is not None:
                test["pass_threshold"] = threshold
            if isinstance(prompt, _Function):
                self._found.calls.append(PromptCall(test, str(prompt), variables, prefix, suffix))
            else:
                self._found.tests.append(test)

    def _criteria(
        self, written: Mapping[str, Any], options: Mapping[str, Any], limit: float | None
    ) -> list[dict[str, Any]]:
        inherited = [] if options.get("disableDefaultAsserts") else as_list(self._default.get("assert"))
        assertions = [self._resolved(each) for each in (*as_list(written.get("assert")), *inherited)]
        change = options.get("transform") or options.get("postprocess")
        if change:
            # What is looked at is not what the agent said, but what a program makes of it.
            assertions = [_changed_before(each, change) for each in assertions]
        threshold = share(limit)
        judge = options.get("provider")
        if judge:
            assertions = [
                {**each, "provider": each.get("provider") or judge} if isinstance(each, Mapping) else each
                for each in assertions
            ]
        criteria = criteria_of(
            assertions,
            read=self._files.value,
            code=self._code,
            judge=self._judge,
            threshold=threshold,
            note=self._found.note,
        )
        scored = written.get("assertScoringFunction") or self._default.get("assertScoringFunction")
        if scored:
            for each in criteria:
                each["severity"] = "info"
            criteria.append(
                needs_manual_work("Scoring function", f"promptfoo's assertScoringFunction {plain_text(scored)[:300]}")
            )
        elif limit is not None and threshold is None:
            criteria.append(needs_manual_work("Threshold", f"promptfoo's threshold {limit:g}"))
        for each in criteria:
            if each.get("description", "").startswith(NOT_TRANSLATED):
                kind = each["description"].removeprefix(f"{NOT_TRANSLATED} promptfoo's ").removeprefix("assertion ")
                self.asked[kind.split(" ", 1)[0]] += 1
        if not criteria:
            self._found.note("tests without assertions pass with any answer, as in promptfoo")
        return criteria or [checked("Any answer", {"type": "Regex", "pattern": "^"})]

    def _judge(self, provider: Any, kind: str) -> str:
        """The agent that a judging assertion asks. A provider may be named by the type of model."""
        if isinstance(provider, Mapping) and ("text" in provider or "embedding" in provider):
            provider = provider.get("embedding" if kind.startswith("similar") else "text")
        return self._providers.agent(provider)

    def _resolved(self, assertion: object) -> object:
        """An assertion, also where it is a template of the configuration: `$ref: "#/assertionTemplates/name"`."""
        if not isinstance(assertion, Mapping):
            return assertion
        if isinstance(assertion.get("assert"), list):
            return {**assertion, "assert": [self._resolved(inner) for inner in assertion["assert"]]}
        ref = assertion.get("$ref")
        if not isinstance(ref, str) or not ref.startswith("#/"):
            return assertion
        there: Any = self._config
        for step in ref[2:].split("/"):
            there = there.get(step) if isinstance(there, Mapping) else None
        return there if isinstance(there, Mapping) and "$ref" not in there else {"type": f"$ref {ref}"}


def _changed_before(assertion: object, change: object) -> object:
    """The assertion, which looks at what `change` makes of the answer, and then at what its own makes of that."""
    if not isinstance(assertion, Mapping):
        return assertion
    if isinstance(assertion.get("assert"), list):
        return {**assertion, "assert": [_changed_before(each, change) for each in assertion["assert"]]}
    own = assertion.get("transform")
    return {**assertion, "transform": [change, *([own] if own else [])]}


def _asked(prompt: str, variables: Mapping[str, Any] | None) -> dict[str, Any]:
    """`messages` where the prompt is JSON or YAML of a conversation, also once the `variables` are put in; else
    `prompt`. Raises `AgentevalError` where they can't be. None: the variables are not known."""
    start = prompt.lstrip()
    # promptfoo reads a prompt that begins in this way as YAML.
    if start.startswith("- role:"):
        conversation = javascript_yaml(prompt)
    else:
        conversation = parsed_json(prompt) if start.startswith("[") else None
        if conversation is None and variables is not None:
            text = render(prompt, variables)
            if start.startswith("[") and is_template(prompt):
                # What was put in is a text now: braces in it are not a template again.
                conversation = literal(parsed_json(text))
    roles = ("system", "developer", "user", "assistant", "tool")
    if (
        isinstance(conversation, list)
        and conversation
        and all(isinstance(m, Mapping) and m.get("role") in roles for m in conversation)
    ):
        messages = [{"role": m["role"], "content": plain_text(m.get("content"))} for m in conversation]
        # The agent has to answer the last message. Any other conversation is sent as a text.
        if messages[-1]["role"] in ("user", "tool"):
            if variables is not None:
                for message in messages:
                    render(message["content"], variables)
            return {"messages": messages}
    return {"prompt": prompt}


def _shown(variables: Mapping[str, Any]) -> str:
    return " ".join(", ".join(f"{key}={plain_text(value)}" for key, value in variables.items()).split())[:80]


FORMAT = Format(
    name="promptfoo-config",
    title="a promptfoo configuration",
    looks_like="YAML or JSON with two of `prompts`, `providers` and `tests`",
    can_read=can_read,
    tests=tests,
    yaml=fits_yaml,
    page="coming-from/promptfoo",
    rank=100,
)


# Files that promptfoo's configuration names: tests, variables, schemas. Only those in the configuration's folder.


class Files:
    """Reads the files that a configuration in `folder` names; what can't be read is said in `imported`."""

    def __init__(self, folder: Path, imported: FoundTests) -> None:
        self._folder = folder.resolve()
        self._found = imported

    def paths(self, name: str) -> list[Path]:
        """The files that match a name, or a pattern of names; [] and a note where there are none."""
        name = name.removeprefix("file://")
        try:
            hits = self._matching(name) if _GLOB.search(name) else [self._folder / name]
            # Resolved first: a link, or `..`, may lead out of the folder.
            within = [hit for hit in hits if hit.resolve().is_relative_to(self._folder)]
            if hits and not within:
                self._found.note(f"{name} is outside the folder and was not read")
                return []
            files = [hit for hit in within if hit.is_file()]
        except (OSError, RuntimeError, ValueError, NotImplementedError):
            files = []  # no pattern, a loop of links, or a character that no name can have
        if not files:
            self._found.note(f"{name} can't be read: there is no such file")
        return files

    def _matching(self, pattern: str) -> list[Path]:
        every = sorted(self._folder.glob(pattern))
        if len(every) > _MOST_FILES:
            self._found.note(f"only the first {_MOST_FILES:,} of {len(every):,} files that match {pattern} were read")
        return every[:_MOST_FILES]

    def value(self, name: str) -> object:
        """What one file holds: the value of JSON or YAML, else its text. None and a note where it can't be read."""
        if Path(name).suffix.lower() not in (*_PARSED, ".txt", ".md"):
            return None  # a program, which is not run here
        for path in self.paths(name):
            return self._value(path)
        return None

    def _value(self, path: Path) -> object:
        try:
            if path.suffix.lower() in _PARSED:
                with Source(path) as source:
                    return read_document(source, "js-yaml")
            return self.text(path)
        except (AgentevalError, OSError) as error:
            self._found.note(f"{path.name} can't be read: {error}")
            return None

    def text(self, path: Path) -> str:
        """A file's text. Raises OSError."""
        with path.open("rb") as file:
            return file.read(LARGEST).decode("utf-8-sig", "replace")

    def variables(self, written: Any) -> dict[str, Any]:
        """A test's variables: an object, or the names of files that hold some."""
        if isinstance(written, Mapping):
            return dict(written)
        variables: dict[str, Any] = {}
        for name in [written] if isinstance(written, str) else written if isinstance(written, list) else ():
            for path in self.paths(name) if isinstance(name, str) else ():
                value = self._value(path)
                if isinstance(value, Mapping):
                    variables.update(value)
                elif value is not None:
                    self._found.note(f"the variables in {path.name} are not objects and were left out")
        return variables

    def tests(self, name: str) -> Iterator[Mapping[str, Any]]:
        """The tests in a file, or in the files that match a pattern. Files of variables are named from the test's."""
        for path in self.paths(name):
            for test in self._tests_in(path):
                variables = test.get("vars")
                if isinstance(variables, str):
                    yield {**test, "vars": self._from_folder(path, variables)}
                elif isinstance(variables, list):
                    named = [
                        self._from_folder(path, name_or_object) if isinstance(name_or_object, str) else name_or_object
                        for name_or_object in variables
                    ]
                    yield {**test, "vars": named}
                else:
                    yield test

    def _from_folder(self, path: Path, name: str) -> str:
        return os.path.relpath(path.parent / name.removeprefix("file://"), self._folder)

    def _tests_in(self, path: Path) -> Iterator[Mapping[str, Any]]:
        suffix = path.suffix.lower()
        try:
            if suffix == ".csv":
                yield from self._rows(path)
            elif suffix == ".jsonl":
                yield from self._lines(path)
            elif suffix in _PARSED:
                value = self._value(path)
                for test in value if isinstance(value, list) else [value]:
                    if isinstance(test, Mapping):
                        yield test
                    elif test is not None:
                        self._found.skipped.append(f"{path.name}: a test is not an object")
            else:
                self._found.skipped.append(f"tests that a program makes ({path.name}) can't be read")
        except OSError as error:
            self._found.note(f"{path.name} can't be read: {error.strerror or error}")

    def _lines(self, path: Path) -> Iterator[Mapping[str, Any]]:
        for line, text in enumerate(self.text(path).splitlines(), 1):
            try:
                test = json.loads(text) if text.strip() else None
            except (ValueError, RecursionError):
                self._found.skipped.append(f"{path.name}, line {line}: not valid JSON")
                continue
            if isinstance(test, Mapping):
                # Promptfoo wants tests in it; lines that are none of their keys are variables.
                yield test if test.keys() & {"vars", "assert", "description", "options"} else {"vars": dict(test)}

    def _rows(self, path: Path) -> Iterator[dict[str, Any]]:
        form, text = table_of(path, LARGEST)
        if assumed := form.describe_assumed():
            self._found.note(f"{path.name} is read {assumed}")
        lines = io.StringIO(text, newline="")
        rows = csv.reader(from_header(lines), delimiter=form.delimiter)
        head: list[str] | None = None
        try:
            for cells in rows:
                if head is None:
                    head = [cell.strip() for cell in cells]
                elif any(cells):
                    # Not strict: spreadsheets leave out empty cells at the end of a row.
                    yield test_of_row(dict(zip(head, (cell.strip() for cell in cells), strict=False)), self._found)
        except csv.Error as error:
            self._found.skipped.append(f"{path.name}, line {rows.line_num}: {error}")


def _dataset(name: str, path: Path) -> dict[str, str]:
    """A CSV file as a test's dataset, with its encoding where the file does not say it."""
    form, _ = table_of(path, LARGEST)
    return {"file": name} if form.encoding.startswith("utf-") else {"file": name, "encoding": "windows-1252"}


def table_of(path: Path, most: int) -> tuple[TextForm, str]:
    """A table of another tool, up to `most` bytes. Nobody can be asked for its encoding: Windows-1252 if it is not
    UTF-8. Raises OSError.
    """
    with path.open("rb") as file:
        data = file.read(most)
    form = table_form(data[:HEAD])
    try:
        return form, form.decode(data)
    except UnicodeDecodeError as error:
        # The last character may be cut off, which says nothing of the encoding.
        cut_off = len(data) == most and error.start > most - 4
        if form.encoding != "utf-8" or form.bom or cut_off:
            return form, data.removeprefix(form.bom).decode(form.encoding, "replace")
    form = table_form(data[:HEAD], "cp1252")
    return replace(form, assumed=("encoding", *form.assumed)), data.decode("cp1252", "replace")


def has_tests(path: Path) -> bool:
    """Whether the head of a CSV file has columns that are not variables, such as `__expected`."""
    try:
        form, text = table_of(path, HEAD)
        lines = from_header(io.StringIO(text, newline=""))
        return any(column.strip().startswith("__") for column in next(csv.reader(lines, delimiter=form.delimiter), []))
    except (OSError, csv.Error):
        return False


def test_of_row(row: Mapping[str, str], imported: FoundTests) -> dict[str, Any]:
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
        elif column := _CONFIG.fullmatch(key):
            if (limit := number(value)) is not None:
                # Columns are counted from 1, and `__expected` is the first.
                thresholds[int(column.group(1) or 1) - 1] = limit
        elif key.startswith("__"):
            imported.note(f"the column {key} is not translated")
        else:
            test["vars"][key] = value
    metric = test.pop("metric", None)
    for index, assertion in enumerate(test["assert"]):
        assertion |= {"threshold": thresholds[index]} if index in thresholds else {}
        assertion |= {"metric": metric} if metric else {}
    return test


def assertion_of(expected: str) -> dict[str, Any]:
    """The assertion in a cell: `contains:x`, `similar(0.8):x`, `fn:...`, `grade:...`; a text alone is to be equal."""
    expected = expected.strip()
    # These first: what follows is code, whose brackets and colons are not those of an assertion.
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
    parts = _ASSERTION.fullmatch(expected)
    if parts is None:
        return {"type": "equals", "value": expected}
    negated, kind, threshold, value = parts.groups()
    assertion: dict[str, Any] = {"type": f"{negated or ''}{kind}"}
    if value is not None:
        assertion["value"] = value
    if kind in _WITH_THRESHOLD:
        assertion["threshold"] = (
            # In JavaScript `0 || 0.75` is 0.75: a threshold of 0 is the default one.
            float(threshold) if threshold and float(threshold) else 0.8 if kind == "similar" else 0.75
        )
    return assertion


# Nunjucks goes through the keys and values of an object as through a list of pairs.
_PAIRS = re.compile(r"(\{%-?\s*for\s+\w+\s*,\s*\w+\s+in\s+)([\w.]+)(\s*-?%\})")
_OF_PROMPTFOO = ("_conversation",)
"""Variables that promptfoo gives while it runs."""


def as_ours(text: str) -> str:
    """The template with what Jinja2 writes in another way."""
    return _PAIRS.sub(r"\1(\2.items() if \2 is mapping else \2)\3", text)


def without_values(text: str, variables: Mapping[str, Any]) -> dict[str, str]:
    """The variables of a template that have no value: empty, as in promptfoo. Raises `AgentevalError` for one that
    promptfoo sets while it runs, and for a template that Jinja2 can't read."""
    values: dict[str, str] = {}
    for problem in template_problems(text, variables):
        name = text[problem.start : problem.end]
        if problem.code != "unknown-variable" or not name.isidentifier() or name in variables:
            raise AgentevalError(problem.message)
        if name in _OF_PROMPTFOO:
            raise AgentevalError(f"promptfoo gives it `{name}` while it runs")
        values[name] = ""
    return values
