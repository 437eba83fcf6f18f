"""What can be found wrong in services, hooks and working folders without running anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from agenteval_tui.core.errors import Problem, Severity
from agenteval_tui.suites.callable_name import callable_problem, parse_callable
from agenteval_tui.suites.command_words import argv_of
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import HOOKS, Hook, Suite, Test
from agenteval_tui.suites.yaml.tree import MappingNode, Node, ScalarNode, SequenceNode, resolve

_SCRIPTS = (".py", ".sh", ".js", ".mjs", ".ts", ".rb", ".pl")


def brings_variables(suite: Suite, test: Test) -> bool:
    """Whether hooks may bring variables that are not known before a run."""
    return bool(suite.before_all or suite.before or test.before_all or test.before)


def surroundings_problems(loaded: LoadedSuite, suite: Suite) -> Iterator[Problem]:
    """Missing folders, files and functions of a suite and its tests."""
    folder = loaded.path.parent
    services = child_of(loaded.root, "services")
    for name, service in suite.services.items():
        node = child_of(services, name)
        if "${" not in service.cwd and not (folder / service.cwd).is_dir():
            message = f"the service {name} runs in the folder {service.cwd}, which does not exist"
            yield problem_at(
                loaded, child_of(node, "cwd") or node, "no-folder", message, f"it is looked for in {folder}"
            )
        yield from _command(loaded, child_of(node, "command") or node, service.command, folder / service.cwd)
    yield from _of(loaded, loaded.root, suite, folder)
    for test in suite.tests:
        yield from _of(loaded, loaded.node(test.id), test, folder)


def _of(loaded: LoadedSuite, node: Node | None, holder: Suite | Test, folder: Path) -> Iterator[Problem]:
    workdir = holder.workdir
    if workdir is not None and not isinstance(workdir, str) and not (folder / workdir.copy_of).is_dir():
        message = f"the folder to copy, {workdir.copy_of}, does not exist"
        yield problem_at(loaded, child_of(node, "workdir"), "no-folder", message, f"it is looked for in {folder}")
    for key in HOOKS:
        listed = resolve(child) if (child := child_of(node, key)) is not None else None
        nodes = listed.items if isinstance(listed, SequenceNode) else []
        for number, hook in enumerate(getattr(holder, key)):
            place = nodes[number] if number < len(nodes) else child
            target = hook if isinstance(hook, str) else hook.callable if isinstance(hook, Hook) else None
            if target is not None:
                problem = callable_problem(parse_callable(target), folder)
                if problem:
                    yield problem_at(loaded, child_of(place, "callable") or place, "no-function", problem, None)
            elif isinstance(hook, list):
                yield from _command(loaded, place, hook, folder)
            elif isinstance(hook, Hook) and hook.command is not None and not hook.shell:
                yield from _command(loaded, child_of(place, "command") or place, hook.command, folder)


def _command(loaded: LoadedSuite, node: Node | None, command: str | list[str], folder: Path) -> Iterator[Problem]:
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
        yield problem_at(loaded, node, "no-file", f"there is no file {word} in {folder}", "check its name", "warning")


def child_of(node: Node | None, key: str) -> Node | None:
    """The value of a key; None where there is none, or no object."""
    real = resolve(node) if node is not None else None
    return real.get(key) if isinstance(real, MappingNode) else None


def problem_at(
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
