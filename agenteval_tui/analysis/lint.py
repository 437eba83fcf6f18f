"""Everything that can be found wrong in suites without running them, each problem with its place in the file."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.agents.registry import option_problems
from agenteval_tui.core import directories, entry_points
from agenteval_tui.core.did_you_mean import closest
from agenteval_tui.core.display import one_line
from agenteval_tui.core.entry_points import EMBEDDERS
from agenteval_tui.core.errors import AgentevalError, Problem, Severity
from agenteval_tui.core.json_values import texts_in
from agenteval_tui.grading import registry
from agenteval_tui.grading.config.diagnostics import diagnose
from agenteval_tui.grading.config_variables import variables_of, without_templates
from agenteval_tui.grading.placeholders import has_placeholders, is_blank, needle_names
from agenteval_tui.grading.registry import prototype
from agenteval_tui.grading.spec import metrics_in
from agenteval_tui.grading.type_names import short_name
from agenteval_tui.runs.criteria import spec_of
from agenteval_tui.runs.plan.conversation import conversation_of
from agenteval_tui.runs.plan.gates import TEST, gate_of, stop_threshold
from agenteval_tui.suites.agents_file import agents_path, read_agents_file, resolve_agent
from agenteval_tui.suites.callable_name import callable_problem, parse_callable
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.config_source import ConfigSource, source_of
from agenteval_tui.suites.dataset_check import DatasetCheck, check_dataset
from agenteval_tui.suites.decode import quoted
from agenteval_tui.suites.files import unreadable
from agenteval_tui.suites.load import LoadedSuite, load_bytes, load_suites
from agenteval_tui.suites.message_files import attached, is_address
from agenteval_tui.suites.model import HOOKS, AgentConfig, Dataset, Hook, Suite, Test
from agenteval_tui.suites.templates import MAX_SECONDS, refusal, template_problems
from agenteval_tui.suites.trust import Trust
from agenteval_tui.suites.unquoted_hash import cut_texts
from agenteval_tui.suites.yaml.edit import content_end
from agenteval_tui.suites.yaml.tree import MappingNode, Node, ScalarNode, SequenceNode, resolve, untyped
from agenteval_tui.uxon.diagnostics import Diagnostic
from agenteval_tui.uxon.parse import parse

_CAN_FAIL = "give one criterion `severity: error`, or the test a `pass_threshold`"
CUT = "cut-text"
_COMPARES = {"Lexical": "to", "Similarity": "to", "Classification": "label"}
"""Metrics that compare with the expected value where this property says nothing else."""
_PROPERTIES = ("judge", "embedder")


def check_suites(paths: Sequence[Path | str]) -> tuple[list[LoadedSuite], list[Problem]]:
    """The suites at `paths` (files or folders), and all that is wrong with them, in the order of the files.

    What the user's agents.yaml has wrong comes first. A file that can't be read is a problem of its own and is not
    among the suites. Raises `AgentevalError` when a path does not exist.
    """
    agents, problems = _user_agents()
    loaded: list[LoadedSuite] = []
    for suite in load_suites(paths, keep_unreadable=True):
        if suite.unreadable:
            problems.extend(suite.problems)
        else:
            loaded.append(suite)
            problems.extend(check_suite(suite, agents))
    return loaded, problems


def check_loaded(
    loaded: Sequence[LoadedSuite], still_wanted: Callable[[], bool] = lambda: True
) -> dict[str, tuple[Problem, ...]]:
    """All problems of suites that are already read, by the suite's key, as `check_suites` finds them. `still_wanted` is
    asked before each test: when it is False, the suites that are not finished are left out.
    """
    agents, _ = _user_agents()
    by_suite = {}
    for loaded_suite in loaded:
        problems = check_suite(loaded_suite, agents, still_wanted)
        if not still_wanted():
            break
        by_suite[loaded_suite.key] = tuple(problems)
    return by_suite


def check_text(data: bytes, path: Path) -> tuple[LoadedSuite, list[Problem]]:
    """A suite from bytes, as if they stood in `path` (which need not exist), and all that is wrong with it
    (not with the user's agents.yaml).

    Raises `AgentevalError` when they are not UTF-8.
    """
    agents, _ = _user_agents()
    loaded = load_bytes(data, path)
    return loaded, check_suite(loaded, agents)


def check_suite(
    loaded: LoadedSuite, user_agents: Mapping[str, AgentConfig], still_wanted: Callable[[], bool] = lambda: True
) -> list[Problem]:
    """All problems of one suite, in the order of the file: those of loading, of its configs, and of what it names.

    `still_wanted` is asked before each test; False ends it, with a part of the problems.
    """
    suite = loaded.suite
    problems = list(loaded.problems)
    datasets, diagnosed = Datasets(loaded), _Diagnosed()
    if suite is not None:
        problems.extend(_agents(loaded, suite))
        problems.extend(_agent_named(loaded, loaded.root, suite.agent, suite, user_agents))
        problems.extend(_surroundings_problems(loaded, suite))
        for test in suite.tests:
            # Somebody may be typing: what is found in a text that has changed meanwhile is of no use.
            if not still_wanted():
                return problems
            problems.extend(_test(loaded, suite, test, user_agents, datasets, diagnosed))
        for node in _unread_tests(loaded, suite):
            problems.extend(_unread_test(loaded, suite, node, user_agents, diagnosed))
    problems.extend(cut_problems(loaded, loaded.root))
    # What is wrong in a dataset comes behind the suite's own.
    files = {str(loaded.path): 0}
    for problem in problems:
        files.setdefault(problem.file, len(files))
    return sorted(problems, key=lambda problem: (files[problem.file], problem.line, problem.column))


def _unread_tests(loaded: LoadedSuite, suite: Suite) -> list[Node]:
    """The items of `tests` that can't be tests, because of their errors. Where the YAML breaks off, none: the last may
    be half of what was meant."""
    if not loaded.whole:
        return []
    read = {id(loaded.node(test.id)) for test in suite.tests}
    return [node for node in _items(_child_of(loaded.root, "tests")) if id(node) not in read]


def check_test(loaded: LoadedSuite, place: int, user_agents: Mapping[str, AgentConfig]) -> list[Problem]:
    """All problems of one test, by its place (0-based) in the file's list: what `check_suite` says of it."""
    items = _items(_child_of(loaded.root, "tests"))
    if loaded.suite is None or not 0 <= place < len(items):
        return list(loaded.problems)
    node = items[place]
    first, last = (loaded.places.line_and_column(at)[0] for at in (node.start, content_end(node, loaded.text)))
    problems = [problem for problem in loaded.problems if first <= problem.line <= last]
    test = next((test for test in loaded.suite.tests if loaded.test_nodes.get(test.id.casefold()) is node), None)
    if test is not None:
        problems.extend(_test(loaded, loaded.suite, test, user_agents, Datasets(loaded), _Diagnosed()))
    elif loaded.whole:
        problems.extend(_unread_test(loaded, loaded.suite, node, user_agents, _Diagnosed()))
    problems.extend(cut_problems(loaded, node))
    return problems


def user_agents() -> dict[str, AgentConfig]:
    """The agents of the user's agents.yaml that can be read."""
    return _user_agents()[0]


def _user_agents() -> tuple[dict[str, AgentConfig], list[Problem]]:
    path = agents_path(directories.config_dir())
    try:
        agents, problems = read_agents_file(path)
    except AgentevalError as error:
        return {}, [unreadable(path, error)]
    return agents, list(problems)


# Agents


def _agents(loaded: LoadedSuite, suite: Suite) -> Iterator[Problem]:
    agents = _child_of(loaded.root, "agents")
    for name, config in suite.agents.items():
        node = _child_of(agents, name)
        plain = config.as_dict()
        for path, message in option_problems(name, plain, as_written=True):
            yield _problem_at(loaded, _key_or_value(node, path.partition(".")[0]), "agent-option", message)
        if message := _missing_callable(plain, loaded.path.parent):
            yield _problem_at(loaded, _key_or_value(node, "callable"), "agent-option", message)
        if "tools" not in plain:
            continue
        from agenteval_tui.agents.tools.toolset import tool_problems  # most suites need none of its models

        for message in tool_problems(plain, loaded.path.parent):
            yield _problem_at(loaded, _key_or_value(node, "tools"), "agent-tools", message)


def _missing_callable(config: Mapping[str, Any], folder: Path) -> str:
    """What can be known of the code that an agent names, without running it."""
    target, path = config.get("callable"), config.get("path")
    if config.get("kind") != "python" or not isinstance(target, str) or "${" in target:
        return ""
    try:
        name = parse_callable(target)
    except ValueError:
        return ""  # said already
    listed = path if isinstance(path, list) else []
    problem = callable_problem(name, folder, [folder / entry for entry in listed if isinstance(entry, str)])
    if not problem and not name.name:
        from agenteval_tui.agents.process.framework_readers import script_problem  # few suites name a whole file

        problem = script_problem(folder / name.file, target)
    return f"`callable`: {problem}" if problem else ""


def _agent_named(
    loaded: LoadedSuite,
    owner: Node | None,
    name: str | None,
    suite: Suite,
    user_agents: Mapping[str, AgentConfig],
) -> Iterator[Problem]:
    if not name:
        return
    try:
        resolve_agent(name, suite, user_agents)
    except AgentevalError as error:
        if _child_of(_child_of(loaded.root, "agents"), name) is None:  # else it is there, with an error that is told
            yield _problem_at(loaded, _child_of(owner, "agent") or owner, "unknown-agent", error.what, error.fix)


# Tests


class _Diagnosed:
    """What is said of configs. Many criteria of a suite often have the same one: it is looked at once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, frozenset[str] | None], tuple[Diagnostic, ...]] = {}
        self._rendering = 0.0

    def of(self, text: str, prototype_class: str, names: frozenset[str] | None) -> tuple[Diagnostic, ...]:
        """As `diagnose`."""
        key = (text, prototype_class, names)
        if (diagnostics := self._known.get(key)) is None:
            diagnostics = self._known[key] = diagnose(text, prototype_class, names)
        return diagnostics

    def refusal(self, text: str, variables: Mapping[str, Any], columns: Collection[str]) -> AgentevalError | None:
        """As `refusal` of templates, for as long as a check may render. A run refuses the rest."""
        if self._rendering > MAX_SECONDS:
            return None
        before = time.thread_time()
        error = refusal(text, variables, columns)
        self._rendering += time.thread_time() - before
        return error


def _test(
    loaded: LoadedSuite,
    suite: Suite,
    test: Test,
    user_agents: Mapping[str, AgentConfig],
    datasets: Datasets,
    diagnosed: _Diagnosed,
) -> Iterator[Problem]:
    node = loaded.node(test.id)
    yield from _agent_named(loaded, node, test.agent, suite, user_agents)
    yield from user_problems(loaded, suite, test, user_agents)
    variations = _items(_child_of(node, "variations"))
    for number, variation in enumerate(test.variations):
        owner = variations[number] if number < len(variations) else node
        yield from _agent_named(loaded, owner, variation.agent, suite, user_agents)
    if not suite.agent and not test.agent:
        message = f'test "{test.id}" has no agent, and neither does its suite'
        yield _problem_at(
            loaded, node, "no-agent", message, "write `agent: NAME` at the top, or run with --agent", "warning"
        )
    threshold = test.pass_threshold if test.pass_threshold is not None else suite.defaults.pass_threshold
    # With a threshold the score decides, which warnings are part of.
    if not threshold and not any(criterion.severity == "error" for criterion in test.criteria):
        message = f'test "{test.id}" can\'t fail: none of its criteria has severity error'
        yield _problem_at(loaded, node, "cannot-fail", message, _CAN_FAIL, "warning")
    yield from gate_problems(loaded, suite, test)
    yield from conversation_problems(loaded, test)
    yield from attachment_problems(loaded, test, datasets)
    yield from datasets.problems(test)
    # What hooks bring is not known before a run.
    columns = None if _brings_variables(suite, test) else datasets.columns(test)
    if columns is not None:
        yield from _templates(loaded, node, test.variables, columns, diagnosed)
    yield from _same_names(loaded, test)
    empty = {name for name, value in test.variables.items() if is_blank(value)}
    # Where none is empty, which is nearly everywhere, no config is read for it.
    for number, (_, looked_for) in enumerate(needles(test) if empty else ()):
        for name in sorted(looked_for & empty):
            message = f'the variable "{name}" is empty, and this criterion looks for it: nothing can be checked'
            owner = loaded.node(test.id, number)
            yield _problem_at(loaded, owner, "empty-value", message, f'give "{name}" a value', "warning")
    for number, _ in enumerate(test.criteria):
        source = loaded.config_source(test.id, number)
        yield from _criterion(loaded, test, number, source, columns, diagnosed)
        yield from respondent_problems(loaded, suite, source, user_agents)


def gate_problems(loaded: LoadedSuite, suite: Suite, test: Test) -> Iterator[Problem]:
    """A gate of a test, its own or its suite's, that can't do what it says."""
    gate = gate_of(suite, test)
    if gate is None:
        return
    owner = loaded.node(test.id)
    node = _child_of(owner if gate.origin == TEST else loaded.root, "gate") or owner
    subject = f'test "{test.id}"'
    if gate.pass_rate == 0:
        message = f"{subject} can't miss its gate: a pass_rate of 0 is always reached"
        yield _problem_at(
            loaded, node, "gate-never-missed", message, "write the share of runs that must pass: 0.8", "warning"
        )
        return
    # Repetitions that stop at another rate than the gate's may end before it is known whether the gate is reached.
    stop = test.stop or suite.defaults.stop
    if stop is not None and stop_threshold(stop, gate) != gate.pass_rate:
        threshold = stop_threshold(stop, gate)
        message = (
            f"{subject} stops once its pass rate is decided against {threshold:g}, and its gate is {gate.pass_rate:g}"
        )
        fix = "leave out the threshold of `stop`, or write the gate's" if gate.pass_rate < 1 else "leave out `stop`"
        yield _problem_at(loaded, _child_of(owner, "stop") or node, "gate-and-stop", message, fix, "warning")
    # How many rows a dataset has is another question; a variation of its own number is the author's decision.
    repeat = test.repeat or suite.defaults.repeat
    # Less a little: a product of such fractions can lie just above the whole number that it is.
    if test.dataset is None and gate.pass_rate < 1 and math.ceil(gate.pass_rate * repeat - 1e-9) == repeat:
        runs = "its only run" if repeat == 1 else f"all {repeat} runs"
        message = f"the gate of {subject} changes nothing: with `repeat: {repeat}`, {gate.pass_rate:g} means {runs}"
        enough = math.ceil(1 / (1 - gate.pass_rate) - 1e-9)
        fix = f"write `repeat: {enough}` or more, so that a run may fail, or leave out the gate"
        yield _problem_at(loaded, node, "gate-without-effect", message, fix, "warning")


def _templates(
    loaded: LoadedSuite, node: Node, variables: Mapping[str, Any], columns: Collection[str], diagnosed: _Diagnosed
) -> Iterator[Problem]:
    names = {**dict.fromkeys(columns), **variables}
    for text in template_nodes(node):
        real = resolve(text)
        if not isinstance(real, ScalarNode):
            continue
        problems = template_problems(real.text, names)
        if problems:
            source = source_of(text, loaded.text, loaded.places)
            for template_problem in problems:
                span = (template_problem.start, template_problem.end)
                yield _problem_in(
                    loaded, source, span, template_problem.code, template_problem.message, template_problem.fix
                )
            # Rendered, it would only be refused for the same.
            continue
        if (error := diagnosed.refusal(real.text, variables, set(columns) - variables.keys())) is not None:
            yield loaded.problem("template", text.start, text.end, error.what, error.fix)


def _criterion(
    loaded: LoadedSuite,
    test: Test,
    number: int,
    source: ConfigSource,
    columns: Collection[str] | None,
    diagnosed: _Diagnosed,
) -> Iterator[Problem]:
    prototype_class, names = test.criteria[number].prototype_class, _names(test, number, columns)
    yield from _config_problems(loaded, loaded.node(test.id, number), prototype_class, source, names, diagnosed)
    if loaded.suite is not None and short_name(prototype_class) == "State":
        yield from _unknown_probe(loaded, source, tuple(loaded.suite.probes(test)))


def _config_problems(
    loaded: LoadedSuite,
    criterion: Node,
    prototype_class: str,
    source: ConfigSource,
    names: frozenset[str] | None,
    diagnosed: _Diagnosed,
) -> Iterator[Problem]:
    try:
        prototype(prototype_class)
    except AgentevalError as error:
        place = _child_of(criterion, "prototype_class") or criterion
        yield _problem_at(loaded, place, "unknown-prototype", error.what, error.fix)
        return
    for diagnostic in diagnosed.of(source.text, prototype_class, names):
        fix = diagnostic.fix.title if diagnostic.fix is not None else None
        span = (diagnostic.start, diagnostic.end)
        yield _problem_in(loaded, source, span, diagnostic.code, diagnostic.message, fix, diagnostic.severity)


def _unread_test(
    loaded: LoadedSuite, suite: Suite, test: Node, user_agents: Mapping[str, AgentConfig], diagnosed: _Diagnosed
) -> Iterator[Problem]:
    """What is wrong in the agent and the configs of a test that has other errors, so that all are told at once. Which
    names its templates may use is not known."""
    agent = _child_of(test, "agent")
    if agent is not None and isinstance(name := resolve(agent), ScalarNode) and isinstance(untyped(name), str):
        yield from _agent_named(loaded, test, name.text, suite, user_agents)
    for criterion in _items(_child_of(test, "criteria")):
        config, prototype_class = _child_of(criterion, "config_uxon"), _child_of(criterion, "prototype_class")
        if config is None or prototype_class is None or not isinstance(kind := resolve(prototype_class), ScalarNode):
            continue
        written = resolve(config)
        if isinstance(written, MappingNode) or (isinstance(written, ScalarNode) and isinstance(untyped(written), str)):
            source = source_of(config, loaded.text, loaded.places)
            yield from _config_problems(loaded, criterion, kind.text, source, None, diagnosed)


def _unknown_probe(loaded: LoadedSuite, source: ConfigSource, probes: Sequence[str]) -> Iterator[Problem]:
    """A criterion on a probe that its test does not have: it would never be checked."""
    document = parse(source.text)
    name = document.value.get("probe") if isinstance(document.value, Mapping) else None
    node = document.node(("probe",))
    if not isinstance(name, str) or not name or name in probes or has_placeholders(name) or node is None:
        return
    near = closest(name, probes)
    fix = f'did you mean "{near}"?' if near else f"add `{name}: ...` to `state` of the test or suite"
    message = f'the test has no probe "{name}", so this criterion is never checked'
    yield _problem_in(loaded, source, (node.start, node.end), "unknown-probe", message, fix)


def _same_names(loaded: LoadedSuite, test: Test) -> Iterator[Problem]:
    """Criteria whose name does not tell them from the others of their test."""
    for number, (criterion, unique) in enumerate(zip(test.criteria, test.criterion_names, strict=True)):
        if criterion.name != unique:
            node = loaded.node(test.id, number)
            blank = not criterion.name.strip()
            what = "a criterion without a name" if blank else f"a second criterion named {quoted(criterion.name)}"
            message = (
                f"test {quoted(test.id)} has {what}: its position tells it apart, and it is called {quoted(unique)}"
            )
            fix = "give it another name: labels, versions, quarantines and trends use the name"
            yield _problem_at(loaded, _child_of(node, "name") or node, "same-name", message, fix, "warning")


def _names(test: Test, number: int, columns: Collection[str] | None) -> frozenset[str] | None:
    """What `{{...}}` may name in a config; None: not known, because the columns of a dataset are not."""
    if columns is None:
        return None
    expected = test.criteria[number].expected_value is not None
    return frozenset((*test.variables, *columns, *(("expected_value",) if expected else ())))


# Nodes


def _child_of(node: Node | None, key: str) -> Node | None:
    """The value of a key; None where there is none, or no object."""
    real = resolve(node) if node is not None else None
    return real.get(key) if isinstance(real, MappingNode) else None


def _problem_in(
    loaded: LoadedSuite,
    source: ConfigSource,
    span: tuple[int, int],
    code: str,
    message: str,
    fix: str | None,
    severity: Severity = "error",
) -> Problem:
    """A problem in a config or a template: `span` counts the characters of `source`, not of the file."""
    start, end = source.to_offset(span[0]), source.to_offset(span[1])
    # A config that is a mapping in the file is another text there: an end may lie before its start.
    return loaded.problem(code, start, max(start, end), message, fix, severity)


def _problem_at(
    loaded: LoadedSuite,
    node: Node | None,
    code: str,
    message: str,
    fix: str | None = None,
    severity: Severity = "error",
) -> Problem:
    """A problem at a node: the whole of a scalar, the first line of anything longer."""
    if node is None:
        return loaded.problem(code, 0, 0, message, fix or None, severity)
    end = node.end if isinstance(node, ScalarNode) and not node.style.startswith(("|", ">")) else node.start
    line_end = loaded.text.find("\n", node.start)
    if end == node.start:
        end = line_end if line_end >= 0 else len(loaded.text)
    return loaded.problem(code, node.start, end, message, fix or None, severity)


def _key_or_value(node: Node | None, key: str) -> Node | None:
    real = resolve(node) if node is not None else None
    key_node = real.key(key) if isinstance(real, MappingNode) else None
    return key_node or node


def _items(node: Node | None) -> list[Node]:
    real = resolve(node) if node is not None else None
    return list(real.items) if isinstance(real, SequenceNode) else []


# What can be found wrong in the conversation that a test begins with, and where its templates are


def template_nodes(test_node: Node) -> Iterator[Node]:
    """The texts of a test that are templates: prompt, turns, contents of messages, arguments of their calls, and what a
    simulated user is told."""
    yield from _scalars(_child_of(test_node, "prompt"))
    for turn in _items(_child_of(test_node, "turns")):
        yield from _scalars(turn)
    for key in ("persona", "goal", "knows", "stop_when"):
        yield from _scalars(_child_of(_child_of(test_node, "user"), key))
    for message in _items(_child_of(test_node, "messages")):
        yield from _scalars(_child_of(message, "content"))
        for call in _items(_child_of(message, "tool_calls")):
            yield from _scalars(_child_of(_child_of(call, "function") or call, "arguments"))


def user_problems(
    loaded: LoadedSuite, suite: Suite, test: Test, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Problem]:
    """A simulated user that no agent plays, or one that would work with an agent's tools."""
    if test.user is None:
        return
    owner, name = _child_of(loaded.node(test.id), "user"), test.user.agent
    unknown = list(_agent_named(loaded, owner, name, suite, user_agents))
    yield from unknown
    # One of the suite's whose configuration can't be read is known, and is not here.
    agent = suite.agents.get(name) or user_agents.get(name)
    if agent is not None and agent.options.get("tools"):
        message = f'agent "{name}" plays the user of test "{test.id}", but has tools, which users do not have'
        fix = "let an agent without `tools` play the user"
        yield _problem_at(loaded, _child_of(owner, "agent") or owner, "user-has-tools", message, fix, "warning")


def attachment_problems(loaded: LoadedSuite, test: Test, datasets: Datasets) -> Iterator[Problem]:
    """Images and files in messages that can't be read, or that lead outside of the folder, which is not trusted. A path
    with variables in it is read with each row."""
    parts = [part for message in test.messages or () if isinstance(message.content, list) for part in message.content]
    if not any(part.image or part.file for part in parts):
        return
    for part in parts:
        source = part.image or part.file
        if source is None or "{{" in source or "{%" in source:
            continue
        try:
            if not is_address(source) and datasets.leads_outside(source) and not datasets.trusts(source):
                fix = "copy it beside the suite, or trust this folder"
                raise AgentevalError(f"{source} is outside the suite's folder", fix=fix)
            kind = "image" if part.image else "file"
            attached(datasets.folder, kind, source, media_type=part.media_type or "")
        except AgentevalError as error:
            node = _content_node(loaded, test, source)
            yield loaded.problem("attachment", node.start, node.end, error.what, error.fix or None)


def _content_node(loaded: LoadedSuite, test: Test, source: str) -> Node:
    """Where a path or an address is named."""
    top = loaded.node(test.id)
    for message in _items(_child_of(top, "messages")):
        for part in _items(_child_of(message, "content")):
            for key in ("image", "file"):
                real = resolve(node) if (node := _child_of(part, key)) is not None else None
                if isinstance(real, ScalarNode) and real.text == source:
                    return real
    return resolve(top)


def conversation_problems(loaded: LoadedSuite, test: Test) -> Iterator[Problem]:
    """Calls without results, results without calls: no server takes such messages."""
    if not test.messages or not any(message.tool_calls or message.role == "tool" for message in test.messages):
        return
    try:
        conversation_of([message.model_dump(exclude_unset=True) for message in test.messages])
    except AgentevalError as error:
        node = resolve(loaded.node(test.id))
        key = node.key("messages") if isinstance(node, MappingNode) else None
        start, end = (key.start, key.end) if key is not None else (node.start, node.start)
        yield loaded.problem("conversation", start, end, error.what, error.fix or None)


def _scalars(node: Node | None) -> Iterator[Node]:
    """The texts in a node, without the names of its properties."""
    real = resolve(node) if node is not None else None
    if node is not None and isinstance(real, ScalarNode):
        yield node
    elif isinstance(real, SequenceNode):
        for item in real.items:
            yield from _scalars(item)
    elif isinstance(real, MappingNode):
        for value in real.pairs.values():
            yield from _scalars(value)


# Texts that a `#` cuts short, as problems of a suite


def cut_problems(loaded: LoadedSuite, node: Node | None) -> Iterator[Problem]:
    """A warning for each text below `node` that YAML reads only up to a `#`."""
    for cut_text in cut_texts(loaded, node):
        rest = cut_text.meant[len(cut_text.read) :].strip()
        message = f"the {cut_text.key} ends before `{one_line(rest, 60)}`: YAML takes what follows ` #` for a comment"
        fix = f"put it in quotes: {cut_text.fix.edits[0].text}; or write `# ` if a comment is meant"
        yield loaded.problem(CUT, cut_text.start, cut_text.end, message, one_line(fix, 300), "warning")


# What can be found wrong in the datasets of a suite's tests: each file is read once


class Datasets:
    """The datasets that the tests of one suite name, read when they are asked for."""

    def __init__(self, loaded: LoadedSuite) -> None:
        self._loaded = loaded
        self._checks: dict[tuple[str, int | None, str | None, str | None, str | None], DatasetCheck] = {}
        self._reported: set[Problem] = set()
        self._trusted: bool | None = None

    def problems(self, test: Test) -> Iterator[Problem]:
        """What is wrong in the test's dataset, with places in that file; what another test had said already is not
        said again. A file that can't be read at all is a problem of the suite, where it names the file.
        """
        if test.dataset is None:
            return
        check = self._check(test.dataset)
        problems = list(check.problems)
        if check.read:
            if test.prompt is None and not test.messages and not test.turns and test.user is None:
                problems += check.prompt_problems()
            for who, names in _askers(test):
                problems += check.missing_problems(names - test.variables.keys(), who)
            for who, looked_for in needles(test):
                problems += check.empty_problems(looked_for - test.variables.keys(), who)
        # A problem at its very beginning is one of the whole file: it is told where people named it.
        elif check.problems[0].line == 1 and check.problems[0].column == 1:
            problems = [self._named(test, problem) for problem in problems]
        for problem in problems:
            if problem not in self._reported:
                self._reported.add(problem)
                yield problem

    def columns(self, test: Test) -> Collection[str] | None:
        """The variables that the rows give; () for a test without a dataset, None when they can't be known."""
        if test.dataset is None:
            return ()
        check = self._check(test.dataset)
        return check.columns.keys() if check.read and check.rows else None

    def _check(self, dataset: Dataset) -> DatasetCheck:
        key = (dataset.file, dataset.limit, dataset.row_id, dataset.split, dataset.encoding)
        dataset_check = self._checks.get(key)
        if dataset_check is None:
            dataset_check = check_dataset(dataset, self.folder, trusted=self.trusts(dataset.file))
            self._checks[key] = dataset_check
        return dataset_check

    @property
    def folder(self) -> Path:
        """Where the suite's files are: of one that is a link, where it really is."""
        path = Path(self._loaded.path)
        return path.resolve().parent if path.is_symlink() else path.parent

    def leads_outside(self, file: str) -> bool:
        """Whether a path leads out of the suite's folder. False for one that can't be followed: reading it says why."""
        try:
            return not (self.folder / file).resolve().is_relative_to(self.folder.resolve())
        except (OSError, RuntimeError, ValueError):
            return False

    def trusts(self, file: str) -> bool:
        """Whether this file may be anywhere. Asked only where it matters: it reads the whole folder."""
        if not self.leads_outside(file):
            return False
        if self._trusted is None:
            self._trusted = Trust.load().is_trusted(self.folder)
        return self._trusted

    def _named(self, test: Test, problem: Problem) -> Problem:
        node = self._loaded.node(test.id)
        for key in ("dataset", "file"):
            real = resolve(node)
            node = (real.get(key) if isinstance(real, MappingNode) else None) or node
        # Of a long text the beginning is enough to find it by.
        end = max(node.start, min(node.end, node.start + 200))
        return self._loaded.problem("dataset", node.start, end, f"{problem.file}: {problem.message}", problem.fix)


def needles(test: Test) -> Iterator[tuple[str, set[str]]]:
    """Which criteria would look for nothing, or compare with nothing, without which variables."""
    for criterion in test.criteria:
        spec = spec_of(criterion)
        config = None if spec.broken else spec.value
        names = set(needle_names(without_templates(config)))
        for metric in metrics_in(config):
            # A type may be written with its namespace.
            kind = str(metric.get("type")).rpartition(".")[2] if isinstance(metric, Mapping) else ""
            if kind in _COMPARES and metric.get(_COMPARES[kind]) is None:
                names.add("expected_value")
        # An expected value of the criterion's own hides that of the row, but may be made of the row's.
        if criterion.expected_value is not None:
            names.discard("expected_value")
            names |= needle_names(criterion.expected_value)
        yield f'criterion "{criterion.name}"', {name.partition(".")[0] for name in names}


def _askers(test: Test) -> Iterator[tuple[str, set[str]]]:
    """Who can't do without which variables: the prompt and the criteria's configs."""
    texts = [test.prompt, *(test.turns or ()), *(text for message in test.messages or () for text in message.templates)]
    for message in test.messages or ():
        for call in message.tool_calls:
            # A call may be written in either of OpenAI's forms.
            inner = call.get("function", call) if isinstance(call, dict) else None
            texts += texts_in(inner.get("arguments") if isinstance(inner, dict) else None)
    yield "the prompt", _variables_in(texts)
    if test.user is not None:
        yield "the simulated user", _variables_in(texts_in(test.user.model_dump(exclude={"agent"})))
    for criterion in test.criteria:
        spec = spec_of(criterion)
        if not spec.broken:
            own = {"expected_value"} if criterion.expected_value is not None else set()
            names = {name.partition(".")[0] for name in variables_of(spec.value)}
            yield f'criterion "{criterion.name}"', names - own


def _variables_in(texts: Iterable[str | None]) -> set[str]:
    """The variables that templates need."""
    names = set()
    for text in texts:
        for template_problem in template_problems(text or "", ()):
            if template_problem.code == "unknown-variable":
                names.add((text or "")[template_problem.start : template_problem.end])
    return names


# Judges and embedders that metrics name: whether there is an agent of that name


def respondent_problems(
    loaded: LoadedSuite, suite: Suite, source: ConfigSource, user_agents: Mapping[str, AgentConfig]
) -> Iterator[Problem]:
    """What is wrong with the names of judges and embedders in the config of one criterion, at the names."""
    if not any(name in source.text for name in _PROPERTIES):
        return  # nearly all of them: no need to read the config once more

    document = parse(source.text)
    for place, metric in enumerate(metrics_in(document.value)):
        if not isinstance(metric, Mapping) or not isinstance(metric.get("type"), str):
            continue
        for key in _PROPERTIES:
            name = metric.get(key)
            if not isinstance(name, str) or not name or has_placeholders(name):
                continue
            problem = _unknown(str(metric["type"]), key, name, suite, user_agents)
            node = document.node(("metrics", place, key))
            if problem is not None and node is not None:
                span = (node.start, node.end)
                yield _problem_in(loaded, source, span, "unknown-agent", problem.what, problem.fix or None)


def _unknown(
    type_name: str, key: str, name: str, suite: Suite, user_agents: Mapping[str, AgentConfig]
) -> AgentevalError | None:
    try:
        model = registry.metric(type_name)
    except AgentevalError:
        return None
    # Of another metric, a property of that name is none, and the config's own check says so.
    if model.asks != ("chat" if key == "judge" else "embed"):
        return None
    try:
        agent_config = resolve_agent(name, suite, user_agents)
    except AgentevalError as error:
        if key == "judge":
            return error
        # Some embedders need no configuration: the kind is name enough.
        return None if entry_points.is_ready_embedder(name) else error
    if key == "embedder":
        kind = str(agent_config.as_dict().get("kind", ""))
        if entry_points.find(EMBEDDERS, kind) is None:
            listed = ", ".join(entry_points.names(EMBEDDERS))
            return AgentevalError(f'agent "{name}" (kind {kind}) gives no embeddings', fix=f"these kinds do: {listed}")
    return None


_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl")


# Services, hooks and working folders: what of them is missing


def _brings_variables(suite: Suite, test: Test) -> bool:
    """Whether hooks may bring variables that are not known before a run."""
    return bool(suite.before_all or suite.before or test.before_all or test.before)


def _surroundings_problems(loaded: LoadedSuite, suite: Suite) -> Iterator[Problem]:
    """Missing folders, files and functions of a suite and its tests."""
    folder = loaded.path.parent
    services = _child_of(loaded.root, "services")
    for name, service in suite.services.items():
        node = _child_of(services, name)
        if "${" not in service.cwd and not (folder / service.cwd).is_dir():
            message = f"the service {name} runs in the folder {service.cwd}, which does not exist"
            yield _problem_at(
                loaded, _child_of(node, "cwd") or node, "no-folder", message, f"it is looked for in {folder}"
            )
        yield from _missing_scripts(loaded, _child_of(node, "command") or node, service.command, folder / service.cwd)
    yield from _holder_problems(loaded, loaded.root, suite, folder)
    for test in suite.tests:
        yield from _holder_problems(loaded, loaded.node(test.id), test, folder)


def _holder_problems(loaded: LoadedSuite, node: Node | None, holder: Suite | Test, folder: Path) -> Iterator[Problem]:
    workdir = holder.workdir
    if workdir is not None and not isinstance(workdir, str) and not (folder / workdir.copy_of).is_dir():
        message = f"the folder to copy, {workdir.copy_of}, does not exist"
        yield _problem_at(loaded, _child_of(node, "workdir"), "no-folder", message, f"it is looked for in {folder}")
    for key in HOOKS:
        child = _child_of(node, key)
        nodes = _items(child)
        for number, hook in enumerate(getattr(holder, key)):
            place = nodes[number] if number < len(nodes) else child
            target = hook if isinstance(hook, str) else hook.callable if isinstance(hook, Hook) else None
            if target is not None:
                problem = callable_problem(parse_callable(target), folder)
                if problem:
                    yield _problem_at(loaded, _child_of(place, "callable") or place, "no-function", problem, None)
            elif isinstance(hook, list):
                yield from _missing_scripts(loaded, place, hook, folder)
            elif isinstance(hook, Hook) and hook.command is not None and not hook.shell:
                yield from _missing_scripts(loaded, _child_of(place, "command") or place, hook.command, folder)


def _missing_scripts(
    loaded: LoadedSuite, node: Node | None, command: str | list[str], folder: Path
) -> Iterator[Problem]:
    """Scripts that are not there. They may be made before they run, so that this is a warning."""
    try:
        words = argv_of(command)
    except ValueError:
        return
    for word in words:
        if word.startswith(("-", "/", "~")) or "${" in word or not word.endswith(_SCRIPTS):
            continue
        try:
            if (folder / word).is_file():
                continue
        except (OSError, ValueError):
            continue
        yield _problem_at(loaded, node, "no-file", f"there is no file {word} in {folder}", "check its name", "warning")
