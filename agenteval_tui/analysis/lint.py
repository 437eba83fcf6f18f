"""Everything that can be found wrong in suites without running them, each problem with its place in the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval_tui import places
from agenteval_tui.analysis.lint_conversations import conversation_problems, template_nodes
from agenteval_tui.analysis.lint_cut import cut_problems
from agenteval_tui.analysis.lint_datasets import Datasets, needles
from agenteval_tui.analysis.lint_respondents import respondent_problems
from agenteval_tui.grading.placeholders import is_blank
from agenteval_tui.suites.agents_file import agents_path, read_agents_file, resolve_agent
from agenteval_tui.suites.decode import quoted
from agenteval_tui.suites.discover import discover
from agenteval_tui.suites.load import LoadedSuite, load_bytes, load_suite
from agenteval_tui.suites.source import source_of
from agenteval_tui.suites.templates import template_problems
from agenteval_tui.suites.yaml_edit import content_end
from agenteval_tui.suites.yaml_tree import Mapping as MappingNode
from agenteval_tui.suites.yaml_tree import Node, Scalar, resolve
from agenteval_tui.suites.yaml_tree import Sequence as SequenceNode
from agenteval_tui.text.problems import AgentevalError, Problem, Severity

if TYPE_CHECKING:
    from agenteval_tui.suites.model import AgentConfig, Suite, Test
    from agenteval_tui.suites.source import ConfigSource


_CAN_FAIL = "give one criterion `severity: error`, or the test a `pass_threshold`"


def check_suites(paths: Sequence[Path | str]) -> tuple[list[LoadedSuite], list[Problem]]:
    """The suites at `paths` (files or folders), and all that is wrong with them, in the order of the files.

    What the user's agents.yaml has wrong comes first. A file that can't be read is a problem of its own and is not
    among the suites. Raises `AgentevalError` when a path does not exist.
    """
    agents, problems = _user_agents()
    loaded: list[LoadedSuite] = []
    for path in discover(paths):
        try:
            one = load_suite(path)
        except AgentevalError as error:
            problems.append(_unreadable(path, error))
            continue
        loaded.append(one)
        problems.extend(check_suite(one, agents))
    return loaded, problems


def check_loaded(
    loaded: Sequence[LoadedSuite], wanted: Callable[[], bool] = lambda: True
) -> dict[str, tuple[Problem, ...]]:
    """All problems in the files of suites that were read already, by the suite's key, as `check_suites` finds them.

    `wanted` is asked before each test: when nobody wants to know it any more, the suites that are not through are left
    out.
    """
    agents, _ = _user_agents()
    found = {}
    for one in loaded:
        problems = check_suite(one, agents, wanted)
        if not wanted():
            break
        found[one.key] = tuple(problem for problem in problems if problem.file == str(one.path))
    return found


def check_text(data: bytes, path: Path) -> tuple[LoadedSuite, list[Problem]]:
    """A suite from bytes, as if they stood in `path` (which need not exist), and all that is wrong with it
    (not with the user's agents.yaml).

    Raises `AgentevalError` when they are not UTF-8.
    """
    agents, _ = _user_agents()
    loaded = load_bytes(data, path)
    return loaded, check_suite(loaded, agents)


def check_suite(
    loaded: LoadedSuite, user_agents: Mapping[str, AgentConfig], wanted: Callable[[], bool] = lambda: True
) -> list[Problem]:
    """All problems of one suite, in the order of the file: those of loading, of its configs, and of what it names.

    `wanted` is asked before each test; False ends it, with a part of the problems.
    """
    suite = loaded.suite
    problems = list(loaded.problems)
    datasets = Datasets(loaded)
    if suite is not None:
        problems.extend(_agents(loaded, suite))
        problems.extend(_agent_named(loaded, loaded.root, suite.agent, suite, user_agents))
        for test in suite.tests:
            if not wanted():
                return problems
            problems.extend(_test(loaded, suite, test, user_agents, datasets))
    problems.extend(cut_problems(loaded, loaded.root))
    # What is wrong in a dataset comes behind the suite's own.
    files = {str(loaded.path): 0}
    for problem in problems:
        files.setdefault(problem.file, len(files))
    return sorted(problems, key=lambda problem: (files[problem.file], problem.line, problem.column))


def check_test(loaded: LoadedSuite, place: int, user_agents: Mapping[str, AgentConfig]) -> list[Problem]:
    """All problems of one test, by its place (0-based) in the file's list: what `check_suite` says of it."""
    items = _items(_child(loaded.root, "tests"))
    if loaded.suite is None or not 0 <= place < len(items):
        return list(loaded.problems)
    node = items[place]
    first, last = (loaded.places.line_and_column(at)[0] for at in (node.start, content_end(node, loaded.text)))
    problems = [one for one in loaded.problems if first <= one.line <= last]
    test = next((one for one in loaded.suite.tests if loaded.test_nodes.get(one.id.casefold()) is node), None)
    if test is not None:
        problems.extend(_test(loaded, loaded.suite, test, user_agents, Datasets(loaded)))
    problems.extend(cut_problems(loaded, node))
    return problems


def user_agents() -> dict[str, AgentConfig]:
    """The agents of the user's agents.yaml that can be read."""
    return _user_agents()[0]


def _user_agents() -> tuple[dict[str, AgentConfig], list[Problem]]:
    path = agents_path(places.config_dir())
    try:
        agents, problems = read_agents_file(path)
    except AgentevalError as error:
        return {}, [_unreadable(path, error)]
    return agents, list(problems)


def _unreadable(path: Path, error: AgentevalError) -> Problem:
    line, column = 1, 1
    head, _, last = error.where.rpartition(":")
    before, _, number = head.rpartition(":")
    if last.isdecimal() and number.isdecimal() and before:
        line, column = int(number), int(last)
    return Problem(str(path), line, column, line, column, "error", "unreadable", error.what, error.mend or None)


# Agents


def _agents(loaded: LoadedSuite, suite: Suite) -> Iterator[Problem]:
    from agenteval_tui.agents.registry import option_problems

    agents = _child(loaded.root, "agents")
    for name, config in suite.agents.items():
        node = _child(agents, name)
        plain = config.as_dict()
        for path, message in option_problems(name, plain):
            # `${VAR}` has its value, and so its type, only when it is run; "" is about several options together.
            option = path.partition(".")[0]
            if "${" not in str(plain.get(option, "") if option else plain):
                yield _at(loaded, _key_or_value(node, path.partition(".")[0]), "agent-option", message)
        if "tools" not in plain:
            continue
        from agenteval_tui.agents.tools_check import tool_problems  # most suites need none of its models

        for message in tool_problems(plain, loaded.path.parent):
            yield _at(loaded, _key_or_value(node, "tools"), "agent-tools", message)


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
        yield _at(loaded, _child(owner, "agent") or owner, "unknown-agent", error.what, error.mend)


# Tests


def _test(
    loaded: LoadedSuite, suite: Suite, test: Test, user_agents: Mapping[str, AgentConfig], datasets: Datasets
) -> Iterator[Problem]:
    node = loaded.node(test.id)
    yield from _agent_named(loaded, node, test.agent, suite, user_agents)
    variations = _items(_child(node, "variations"))
    for number, variation in enumerate(test.variations):
        owner = variations[number] if number < len(variations) else node
        yield from _agent_named(loaded, owner, variation.agent, suite, user_agents)
    if not suite.agent and not test.agent:
        message = f'test "{test.id}" names no agent, and neither does its suite'
        yield _at(loaded, node, "no-agent", message, "write `agent: NAME` at the top, or run with --agent", "warning")
    threshold = test.pass_threshold if test.pass_threshold is not None else suite.defaults.pass_threshold
    if not threshold and not any(criterion.severity == "error" for criterion in test.criteria):
        message = f'test "{test.id}" can\'t fail: none of its criteria has severity error'
        yield _at(loaded, node, "cannot-fail", message, _CAN_FAIL, "warning")
    yield from conversation_problems(loaded, test)
    yield from datasets.problems(test)
    columns = datasets.columns(test)
    if columns is not None:
        yield from _templates(loaded, node, {**dict.fromkeys(columns), **test.variables})
    yield from _same_names(loaded, test)
    empty = {name for name, value in test.variables.items() if is_blank(value)}
    # Where none is empty, which is nearly everywhere, no config is read for it.
    for number, (_, looked_for) in enumerate(needles(test) if empty else ()):
        for name in sorted(looked_for & empty):
            message = f'the variable "{name}" is empty, and this criterion looks for it: the check can\'t be made'
            owner = loaded.node(test.id, number)
            yield _at(loaded, owner, "empty-value", message, f'give "{name}" a value', "warning")
    for number, _ in enumerate(test.criteria):
        source = loaded.config_source(test.id, number)
        yield from _criterion(loaded, test, number, source, columns)
        yield from respondent_problems(loaded, suite, source, user_agents)


def _templates(loaded: LoadedSuite, node: Node, known: Mapping[str, Any]) -> Iterator[Problem]:
    for text in template_nodes(node):
        real = resolve(text)
        if not isinstance(real, Scalar):
            continue
        found = template_problems(real.text, known)
        if found:
            source = source_of(text, loaded.text, loaded.places)
            for one in found:
                start, end = source.to_offset(one.start), source.to_offset(one.end)
                yield loaded.problem(one.code, start, end, one.message, one.fix)


def _criterion(
    loaded: LoadedSuite, test: Test, number: int, source: ConfigSource, columns: Collection[str] | None
) -> Iterator[Problem]:
    from agenteval_tui.grading.diagnose import diagnose
    from agenteval_tui.grading.registry import prototype

    criterion = test.criteria[number]
    node = loaded.node(test.id, number)
    try:
        prototype(criterion.prototype_class)
    except AgentevalError as error:
        yield _at(loaded, _child(node, "prototype_class") or node, "unknown-prototype", error.what, error.mend)
        return
    for one in diagnose(source.text, criterion.prototype_class, _names(test, number, columns)):
        start, end = source.to_offset(one.start), source.to_offset(one.end)
        fix = one.fix.title if one.fix is not None else None
        yield loaded.problem(one.code, start, max(start, end), one.message, fix, one.severity)


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
            fix = "give it a name of its own: labels, versions, quarantines and trends go by the name"
            yield _at(loaded, _child(node, "name") or node, "same-name", message, fix, "warning")


def _names(test: Test, number: int, columns: Collection[str] | None) -> set[str] | None:
    """What `{{...}}` may name in a config; None: not known, because the columns of a dataset are not."""
    if columns is None:
        return None
    expected = test.criteria[number].expected_value is not None
    return {*test.variables, *columns, "expected_value"} if expected else {*test.variables, *columns}


# Nodes


def _child(node: Node | None, key: str) -> Node | None:
    real = resolve(node) if node is not None else None
    return real.get(key) if isinstance(real, MappingNode) else None


def _key_or_value(node: Node | None, key: str) -> Node | None:
    real = resolve(node) if node is not None else None
    found = real.key(key) if isinstance(real, MappingNode) else None
    return found or node


def _items(node: Node | None) -> list[Node]:
    real = resolve(node) if node is not None else None
    return list(real.items) if isinstance(real, SequenceNode) else []


def _at(
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
    end = node.end if isinstance(node, Scalar) and not node.style.startswith(("|", ">")) else node.start
    line_end = loaded.text.find("\n", node.start)
    if end == node.start:
        end = line_end if line_end >= 0 else len(loaded.text)
    return loaded.problem(code, node.start, end, message, fix or None, severity)
