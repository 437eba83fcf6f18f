"""Saving a fork that helped: as a test of its suite, or as the system prompt of its agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.agents.registry import options_model
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import short_id
from agenteval_tui.grading.spec import CriterionSpec, json_like
from agenteval_tui.runs.fork.model import AnyEdit, System
from agenteval_tui.runs.fork.plan import Source
from agenteval_tui.runs.plan.conversation import Conversation
from agenteval_tui.suites.agents_file import agents_path
from agenteval_tui.suites.editing import add_test, free_id, save_agent_option, save_own_agent_option
from agenteval_tui.suites.load import LoadedSuite, load_suite
from agenteval_tui.suites.templates import literal
from agenteval_tui.transcripts.codec import to_openai_messages
from agenteval_tui.transcripts.model import SYSTEM_ROLES, Transcript

SYSTEM = "system"


def test_of_fork(
    source: Source, conversation: Conversation, test_id: str, name: str, description: str
) -> dict[str, Any]:
    """A test, with the keys of a suite, that asks what a continuation was asked, with the criteria of its run.
    `description`: where it is from ("": which run it continues).

    What was put into templates stays as it is: braces in it are text.
    """
    run = source.stored.run
    messages = to_openai_messages(Transcript(conversation.messages, conversation.tool_calls))
    test: dict[str, Any] = {
        "id": test_id,
        "name": name,
        "description": description or _origin(source, conversation),
        "messages": [literal(message) for message in messages],
    }
    if conversation.turns:
        test["turns"] = [literal(turn) for turn in conversation.turns]
    if run.tags:
        test["tags"] = list(run.tags)
    if run.variables:
        test["variables"] = json_like(run.variables)
    if context := conversation.context(source.context):
        test["context"] = json_like(context)
    test["agent"] = run.agent.name
    test["criteria"] = [_criterion(spec) for spec in run.specs]
    return test


def _origin(source: Source, conversation: Conversation) -> str:
    row = source.row
    return f"Continues run {short_id(row.id)} of {row.test_id} from message {len(conversation.messages)}."


test_of_fork.__test__ = False  # type: ignore[attr-defined]  # not a test function


def save_as_test(
    source: Source,
    conversation: Conversation,
    *,
    test_id: str = "",
    name: str = "",
    description: str = "",
    suffix: str = "fork",
    edits: Sequence[AnyEdit] = (),
) -> tuple[LoadedSuite, str]:
    """Write the fork that these edits made as a test behind the last one of its run's suite; the suite as it then is,
    and the test's id. Raises `AgentevalError`: the file is not there, has changed, or can't hold it."""
    loaded = load_suite(_suite_of(source))
    called = name or f"{source.row.test_name or source.row.test_id}, continued"
    asked = source.asked(conversation, edits)
    new_id = test_id or free_id(loaded, f"{source.row.test_id}-{suffix}")
    return add_test(loaded, test_of_fork(source, asked, new_id, called, description)), new_id


def save_system_prompt(source: Source, edits: Sequence[AnyEdit]) -> Path:
    """Write the system prompt of these edits into the configuration of the run's agent; gives the file.

    Only that place of the file changes. Raises `AgentevalError` as `new_system_prompt`, or if the file can't be
    changed.
    """
    text, agent = new_system_prompt(source, edits), source.agent
    own = _suite_of(source)
    loaded = load_suite(own)
    # A suite's own agent hides the user's of that name.
    if loaded.suite is not None and agent.name in loaded.suite.agents:
        save_agent_option(loaded, agent.name, SYSTEM, text)
        return own
    user_file = agents_path(config_dir())
    save_own_agent_option(user_file, agent.name, SYSTEM, text)
    return user_file


def new_system_prompt(source: Source, edits: Sequence[AnyEdit]) -> str:
    """The system prompt of these edits, which the configuration of the run's agent can have. Raises `AgentevalError`:
    no edit changes the system prompt, it was not the agent's, or agents of that kind have none."""
    text = next((edit.text for edit in edits if isinstance(edit, System)), None)
    agent, row = source.agent, source.row
    if text is None:
        raise AgentevalError("this fork did not change the system prompt", fix="give one with --system")
    model = options_model(str(agent.config.get("kind", "")))
    if model is None or SYSTEM not in model.model_fields:
        raise AgentevalError(
            f"agent {agent.name!r} of kind {agent.config.get('kind')} has no system prompt in its configuration",
            fix="change it in the agent itself",
        )
    stored = source.stored.run
    # A test's own system prompt takes the place of the agent's: to change that would change nothing here.
    if stored.context.get("sample_system_prompt") or any(message.role in SYSTEM_ROLES for message in stored.messages):
        raise AgentevalError(
            f"the system prompt is that of test {row.test_id}, not that of agent {agent.name!r}",
            where=row.suite_key,
            fix="change it in the test",
        )
    return text


def _suite_of(source: Source) -> Path:
    path = Path(source.row.suite_key)
    if not path.is_file():
        raise AgentevalError(
            f"the suite of run {short_id(source.row.id)} no longer exists", where=str(path), fix="name a suite"
        )
    return path


def _criterion(spec: CriterionSpec) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": spec.name}
    for field, default in (
        ("description", ""),
        ("expected_value", None),
        ("weight", 1.0),
        ("severity", "error"),
        ("negate", False),
        ("pass_threshold", None),
    ):
        if (value := getattr(spec, field)) != default:
            fields[field] = value
    config = spec.config_text
    return {**fields, "prototype_class": spec.prototype_class, "config_uxon": config.rstrip("\n") + "\n"}
