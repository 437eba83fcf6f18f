"""Equal requests have equal answers, if that is asked for (`--cache`): which requests are equal.

Everything that reaches the agent counts: its configuration, the files that it names, the code of its programs, the
conversation, the testing context, the seed. The seed differs between tests and repetitions, so each repetition has an
answer of its own, and two runs of one execution hardly ever ask the same: no run waits for another's answer. Runs of
agents that stay in our process (`replay`) are not looked up: they cost nothing and always do the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval_tui.agents.base import AgentRequest
from agenteval_tui.agents.registry import is_model
from agenteval_tui.core.entry_points import is_local_agent
from agenteval_tui.core.ids import content_hash
from agenteval_tui.core.json_values import texts_in
from agenteval_tui.grading.spec import json_like
from agenteval_tui.runs.program_code import ProgramCode
from agenteval_tui.suites.tool_files import tools_as_read
from agenteval_tui.transcripts.model import known_by

# These say how the agent is asked and what it is called, not what it is asked.
_WITHOUT = ("concurrency", "max_attempts", "timeouts", "description", "price", "error_on_finish")
_LARGEST = 10_000_000  # bytes of a file that is looked into


def fingerprint(
    config: Mapping[str, Any], base_dir: Path, *, trusted: bool = False, code: ProgramCode | None = None
) -> str:
    """The identity of an agent (its expanded configuration), apart from what it is asked; "" when answers are not kept.
    If a configuration names a file of its folder, a tools file or a program, the file's content counts, and so does the
    `code` of its programs: an agent whose code was edited is a different one. Where that is unknown, no answers are
    kept, unless the configuration says the `revision`.
    """
    code = code or ProgramCode()
    if is_local_agent(config.get("kind")) or (code.unknown and not config.get("revision")):
        return ""
    relevant = {key: value for key, value in config.items() if key not in _WITHOUT}
    tools = tools_as_read(config.get("tools"), base_dir, trusted=trusted)
    files = dict(sorted(_files([relevant, tools], base_dir)))
    return content_hash([json_like(relevant), json_like(tools), files, code.hash])


def uses_environment(config: Mapping[str, Any]) -> bool:
    """Whether an agent is told a row's variables, beside the conversation into which they were filled."""
    kind = config.get("kind")
    if kind == "http":
        return "variables" in str(config)
    return not is_model(kind)


def request_hash(agent: str, request: AgentRequest, turns: tuple[str, ...], *, variables: bool = False) -> str:
    """The hash of a run's request; `agent` is the agent's fingerprint, `variables` says whether it is told those."""
    messages = [[m.role, m.content, m.tool_calls, m.tool_call, m.tool_call_id, m.name] for m in request.messages]
    calls = [[c.id, c.name, c.arguments, c.result, c.status] for c in request.tool_calls]
    parts = [agent, messages, calls, turns, request.context, request.seed]
    # Of other agents the variables are in the conversation already.
    if variables and request.variables:
        parts.append(request.variables)
    if attached := known_by(request.messages):
        parts.append(attached)
    try:
        return content_hash(parts)
    except TypeError:  # a date in the context, as YAML has them
        return content_hash(json_like(parts))


def _files(value: object, base_dir: Path) -> Iterator[tuple[str, str]]:
    """The files of the folder that a configuration names, with the hash of their content."""
    for text in texts_in(value):
        for name in _places(text) if 0 < len(text) < 1_000 and "\n" not in text else ():
            path = base_dir / name
            try:
                if path.is_file() and path.stat().st_size <= _LARGEST:
                    yield name, hashlib.sha256(path.read_bytes()).hexdigest()
            except (OSError, ValueError):
                continue


def _places(text: str) -> Iterator[str]:
    """What a text may name: a file, the words of a command, or the module of `package.module:callable`."""
    yield text
    if " " in text:
        yield from text.split()
    module, colon, _ = text.partition(":")
    if colon and module.replace(".", "").replace("_", "").isalnum():
        yield module.replace(".", "/") + ".py"
