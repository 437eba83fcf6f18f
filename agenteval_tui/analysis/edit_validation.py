"""What would be wrong with a test if an edit of it were saved: the same as `validate` says, by field."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from agenteval_tui.analysis.lint import check_test
from agenteval_tui.core.errors import Problem
from agenteval_tui.suites.editing import TestEdit, apply_edit, apply_edit_to_test, place_of
from agenteval_tui.suites.load import LoadedSuite, load_text
from agenteval_tui.suites.model import AgentConfig
from agenteval_tui.suites.yaml.tree import MappingNode, Node, ScalarNode, SequenceNode, resolve


class FieldProblem(Struct, frozen=True):
    """A problem, and the field that it is about: a key of the test, or of its criterion number `criterion` (0-based).

    `field` is "" for the test (or the criterion) as a whole.
    """

    problem: Problem
    field: str = ""
    criterion: int | None = None


def check_edit(
    loaded: LoadedSuite, test_id: str, edit: TestEdit, user_agents: Mapping[str, AgentConfig]
) -> list[FieldProblem]:
    """What would be wrong with the test. Raises `SaveFailed` where saving would: the edit can't be written."""
    place, text = 0, apply_edit_to_test(loaded, test_id, edit)
    if text is None:
        place, text = place_of(loaded, test_id), apply_edit(loaded, test_id, edit)
    after = load_text(text, loaded.path)
    test = _test_node(after, place)
    problems = check_test(after, place, user_agents)
    # Of two tests with one id the later one is blamed; here the one that was edited is meant.
    problems = [problem for problem in problems if problem.code != "duplicate-id"]
    located = [
        _located(problem, test, after) if problem.file == str(after.path) else _dataset(problem) for problem in problems
    ]
    return [*_twice(loaded, test_id, after, test), *located]


def errors_once_saved(
    loaded: LoadedSuite, test_id: str, edit: TestEdit, user_agents: Mapping[str, AgentConfig]
) -> list[str]:
    """What would keep the suite from running once the edit is saved, each in a sentence. () also where saving would
    refuse it, and say why."""
    after = load_text(apply_edit(loaded, test_id, edit), loaded.path)
    ids = {test.id.casefold() for test in after.suite.tests} if after.suite is not None else set()
    if str(edit.changes.get("id") or test_id).casefold() not in ids:
        return []
    problems = [field_problem.problem for field_problem in check_edit(loaded, test_id, edit, user_agents)]
    return [problem.message for problem in problems if problem.severity == "error"]


def _twice(loaded: LoadedSuite, test_id: str, after: LoadedSuite, test: Node | None) -> list[FieldProblem]:
    """The id is another test's."""
    ids = {folded for folded, node in after.test_nodes.items() if node is test}
    others = loaded.test_nodes.keys() - {test_id.casefold()}
    if test is None or not ids & others:
        return []
    message = f'there is another test with the id "{min(ids & others)}"'
    return [FieldProblem(after.problem("duplicate-id", test.start, test.start, message, "give it another id"), "id")]


def _dataset(problem: Problem) -> FieldProblem:
    return FieldProblem(problem, "dataset")


def _located(problem: Problem, test: Node | None, loaded: LoadedSuite) -> FieldProblem:
    real = resolve(test) if test is not None else None
    if not isinstance(real, MappingNode):
        return FieldProblem(problem)
    offset = loaded.places.offset(problem.line, problem.column)
    key, value = _around(real, offset)
    if key == "criteria" and value is not None:
        items = resolve(value)
        for number, item in enumerate(items.items if isinstance(items, SequenceNode) else ()):
            node = resolve(item)
            if item.start <= offset <= max(node.end, item.end) and isinstance(node, MappingNode):
                field, _ = _around(node, offset)
                return FieldProblem(problem, field, number)
    # What has no place of its own is said of the whole: its first line.
    if problem.code in _WHOLE and offset <= real.start + 1:
        key = _WHOLE[problem.code]
    return FieldProblem(problem, key)


_WHOLE = {"no-agent": "agent", "cannot-fail": "criteria"}


def _around(owner: MappingNode, offset: int) -> tuple[str, Node | None]:
    """The key whose name or value is at `offset`."""
    for key, value in owner.pairs.items():
        end = value.end if isinstance(value, ScalarNode) else max(value.end, resolve(value).end)
        if key.start <= offset <= max(end, key.end):
            return key.text, value
    return "", None


def _test_node(loaded: LoadedSuite, place: int) -> Node | None:
    top = resolve(loaded.root) if loaded.root is not None else None
    listed = top.get("tests") if isinstance(top, MappingNode) else None
    items = resolve(listed) if listed is not None else None
    return items.items[place] if isinstance(items, SequenceNode) and place < len(items.items) else None
