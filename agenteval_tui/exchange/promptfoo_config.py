"""promptfoo's configuration: its tests as tests of a suite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice, product
from pathlib import Path
from typing import Any

from agenteval_tui.exchange.document import read_document
from agenteval_tui.exchange.foreign_tests import FoundTests, by_hand
from agenteval_tui.exchange.foreign_usage import number
from agenteval_tui.exchange.message_dialects import plain_text
from agenteval_tui.exchange.promptfoo_asserts import criteria_of
from agenteval_tui.exchange.source import Source
from agenteval_tui.text.problems import AgentevalError

NAME = "promptfoo-config"
LOOKS_LIKE = "a promptfoo configuration: YAML or JSON with `prompts` and `providers` or `tests`"

_COMBINATIONS = 1000
_LARGEST_PROMPT = 1_000_000
_DATA = (".csv", ".jsonl", ".yaml", ".yml")


def fits(value: Any) -> bool:
    """Whether a file's first value is a configuration."""
    return isinstance(value, Mapping) and fits_yaml(frozenset(map(str, value)))


def fits_yaml(keys: frozenset[str]) -> bool:
    """Whether these keys of a document are those of a configuration."""
    return "prompts" in keys and bool(keys & {"providers", "targets", "tests", "defaultTest", "scenarios"})


def tests(source: Source) -> FoundTests:
    """The tests. Raises `AgentevalError` when there is no configuration."""
    document = read_document(source)
    if not isinstance(document, Mapping):
        raise AgentevalError("this is no promptfoo configuration", where=str(source.path), mend=LOOKS_LIKE)
    return tests_of(document, source.path.parent)


def tests_of(config: Mapping[str, Any], folder: Path) -> FoundTests:
    """The tests of a configuration that stands in `folder`: one for each test and prompt."""
    found = FoundTests(name=plain_text(config.get("description")))
    prompts = list(_prompts(config.get("prompts"), folder, found))
    default = config["defaultTest"] if isinstance(config.get("defaultTest"), Mapping) else {}
    if isinstance(config.get("defaultTest"), str):
        found.note(f"defaultTest {config['defaultTest']} stands in another file and was not read")
    given = config.get("tests")
    listed = given if isinstance(given, list) else [given] if given else []
    for number_, one in enumerate(listed or [{}], 1):
        if isinstance(one, Mapping):
            for variables in _variables({**_mapping(default.get("vars")), **_mapping(one.get("vars"))}, found):
                _add(one, default, variables, prompts, found, number_)
        elif isinstance(one, str) and one.removeprefix("file://").endswith(_DATA):
            _add({}, default, {}, prompts, found, number_, dataset=one.removeprefix("file://"))
            found.note(f"rows of {one}: their columns __expected are not translated")
        else:
            found.skipped.append(f"tests that stand elsewhere ({plain_text(one)[:80]}) can't be read")
    for key in ("scenarios", "nunjucksFilters", "extensions"):
        if config.get(key):
            found.note(f"`{key}` is not translated")
    if config.get("providers") or config.get("targets"):
        found.note("the providers are not translated: name the agent as `agent:` or with --agent")
    return found


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _prompts(given: Any, folder: Path, found: FoundTests) -> Iterator[str]:
    for one in given if isinstance(given, list) else [given]:
        text = plain_text(one.get("raw") or one.get("id") or one.get("label")) if isinstance(one, Mapping) else one
        if not isinstance(text, str) or not text.strip():
            continue
        if text.startswith("file://") or (text.endswith((".txt", ".md", ".json")) and "\n" not in text):
            text = _read(folder, text.removeprefix("file://"), found)
        if text:
            yield text


def _read(folder: Path, name: str, found: FoundTests) -> str:
    """The text of a prompt's file beside the configuration; "" and a note where it can't be had."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        found.note(f"the prompt in {name} is outside of the folder and was not read")
        return ""
    try:
        with path.open("rb") as file:
            return file.read(_LARGEST_PROMPT).decode("utf-8", "replace")
    except OSError:
        found.note(f"the prompt in {name} can't be read")
        return ""


def _variables(given: Mapping[str, Any], found: FoundTests) -> Iterator[dict[str, Any]]:
    """The variables; a list stands for a test for each of its values, as promptfoo has it."""
    listed = {key: value for key, value in given.items() if isinstance(value, list)}
    for key, value in given.items():
        if isinstance(value, str) and value.startswith("file://"):
            found.note(f"the variable {key} stands in another file ({value}) and was not read")
    rest = {key: value for key, value in given.items() if key not in listed}
    for values in islice(product(*listed.values()), _COMBINATIONS):
        yield {**rest, **dict(zip(listed, values, strict=True))}


def _add(
    one: Mapping[str, Any],
    default: Mapping[str, Any],
    variables: Mapping[str, Any],
    prompts: list[str],
    found: FoundTests,
    number_: int,
    *,
    dataset: str = "",
) -> None:
    options = _mapping(one.get("options"))
    own = one["assert"] if isinstance(one.get("assert"), list) else []
    inherited = [] if options.get("disableDefaultAsserts") else default.get("assert")
    criteria = criteria_of([*own, *(inherited if isinstance(inherited, list) else [])])
    name = plain_text(one.get("description")) or _shown(variables) or f"test {number_}"
    if not criteria:
        criteria = [by_hand("Good", f"{name}: promptfoo asserts nothing of it")]
    threshold = number(one.get("threshold", default.get("threshold")))
    if threshold is not None:
        found.note("a test with a threshold passes in promptfoo whatever single assertions say; here they count, too")
    if not prompts:
        found.skipped.append(f"{name}: no prompt can be read")
    for index, prompt in enumerate(prompts, 1):
        test: dict[str, Any] = {"name": f"{name} (prompt {index})" if len(prompts) > 1 else name}
        test |= _asked(prompt)
        if variables:
            test["variables"] = dict(variables)
        test["criteria"] = criteria
        if dataset:
            test["dataset"] = {"file": dataset}
        if threshold is not None and 0 <= threshold <= 1:
            test["pass_threshold"] = threshold
        found.tests.append(test)


def _asked(prompt: str) -> dict[str, Any]:
    """`messages` where the prompt is JSON of a conversation, else `prompt`."""
    try:
        given = json.loads(prompt) if prompt.lstrip().startswith("[") else None
    except (ValueError, RecursionError):
        given = None
    roles = ("system", "developer", "user", "assistant", "tool")
    if isinstance(given, list) and given and all(isinstance(m, Mapping) and m.get("role") in roles for m in given):
        messages = [{"role": m["role"], "content": plain_text(m.get("content"))} for m in given]
        if messages[-1]["role"] in ("user", "tool"):
            return {"messages": messages}
    return {"prompt": prompt}


def _shown(variables: Mapping[str, Any]) -> str:
    return " ".join(", ".join(f"{key}={plain_text(one)}" for key, one in variables.items()).split())[:80]
