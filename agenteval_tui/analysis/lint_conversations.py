"""What can be found wrong in the conversation that a test begins with, and where its templates are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agenteval_tui.suites.yaml_tree import Mapping, Node, Scalar, Sequence, resolve
from agenteval_tui.text.problems import AgentevalError, Problem

if TYPE_CHECKING:
    from agenteval_tui.suites.load import LoadedSuite
    from agenteval_tui.suites.model import Test


def template_nodes(test_node: Node) -> Iterator[Node]:
    """The texts of a test that are templates: prompt, turns, contents of messages, and arguments of their calls."""
    yield from _scalars(_child(test_node, "prompt"))
    for turn in _items(_child(test_node, "turns")):
        yield from _scalars(turn)
    for message in _items(_child(test_node, "messages")):
        yield from _scalars(_child(message, "content"))
        for call in _items(_child(message, "tool_calls")):
            yield from _scalars(_child(_child(call, "function") or call, "arguments"))


def conversation_problems(loaded: LoadedSuite, test: Test) -> Iterator[Problem]:
    """Calls without results, results without calls: no server takes such messages."""
    if not test.messages or not any(one.tool_calls or one.role == "tool" for one in test.messages):
        return
    from agenteval_tui.runs.plan_conversation import conversation_of

    try:
        conversation_of([one.model_dump(exclude_unset=True) for one in test.messages])
    except AgentevalError as error:
        node = resolve(loaded.node(test.id))
        key = node.key("messages") if isinstance(node, Mapping) else None
        start, end = (key.start, key.end) if key is not None else (node.start, node.start)
        yield loaded.problem("conversation", start, end, error.what, error.mend or None)


def _scalars(node: Node | None) -> Iterator[Node]:
    """The texts in a node, without the names of its properties."""
    real = resolve(node) if node is not None else None
    if node is not None and isinstance(real, Scalar):
        yield node
    elif isinstance(real, Sequence):
        for item in real.items:
            yield from _scalars(item)
    elif isinstance(real, Mapping):
        for _, value in real.pairs:
            yield from _scalars(value)


def _child(node: Node | None, key: str) -> Node | None:
    real = resolve(node) if node is not None else None
    return real.get(key) if isinstance(real, Mapping) else None


def _items(node: Node | None) -> list[Node]:
    real = resolve(node) if node is not None else None
    return list(real.items) if isinstance(real, Sequence) else []
