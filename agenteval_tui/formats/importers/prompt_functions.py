"""Prompts of imported tests that Python functions of the user's make: called once, with permission, at the import."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenteval_tui.agents.permission import Permission, Use, uses_of_code
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.python_host import CallError
from agenteval_tui.agents.process.python_tree import Lease, Root
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.formats.importers.suite_import import FoundTests, PromptCall, literal_prompt
from agenteval_tui.runs.trust_check import check_use
from agenteval_tui.suites.environment import environment_for

_TIMEOUT_S = 60.0
_MOST = 4_000_000  # bytes of a prompt


def fill_prompts(found_tests: FoundTests, folder: Path, *, trusted: bool) -> None:
    """Call the functions of `found.calls`, whose files are in `folder`, and put the tests among the others.

    One that raises, or gives no text, is left out and named. Raises `NotTrustedError`, and `AgentevalError` where no
    Python can be started.
    """
    functions = dict.fromkeys(call.function for call in found_tests.calls)
    for function in functions:
        permission = check_use(Use(folder, (_use_of(function),)), trusted=trusted)
        for use in uses_of_code(folder, function, "python function", folder):
            permission = check_use(use, trusted=trusted)
        calls = [call for call in found_tests.calls if call.function == function]
        for call, text in zip(calls, asyncio.run(_texts(calls, function, folder, permission)), strict=True):
            if isinstance(text, AgentevalError):
                found_tests.skipped.append(f"{call.test['name']}: {text.what}")
                continue
            parts = literal_prompt(f"{call.prefix}{text}{call.suffix}")
            variables = {**call.test.get("variables", {}), **parts.pop("variables", {})}
            rest = {key: value for key, value in call.test.items() if key != "name"}
            own_variables = {"variables": variables} if variables else {}
            found_tests.tests.append({"name": call.test["name"], **parts, **rest, **own_variables})
    found_tests.calls.clear()


def refuse_prompts(found_tests: FoundTests) -> None:
    """Name the functions that were not called, in the place of their tests."""
    for function in dict.fromkeys(call.function for call in found_tests.calls):
        found_tests.skipped.append(f"prompt {function}: a function makes it, which runs only with --trust")
    found_tests.calls.clear()


def _use_of(function: str) -> str:
    return f"python function {function}"


async def _texts(
    calls: Sequence[PromptCall], function: str, folder: Path, permission: Permission
) -> list[str | AgentevalError]:
    permission.require_code(folder, _use_of(function))
    project = project_environment(folder, targets=(function,))
    env = {**os.environ, **environment_for(folder)}
    lease = Lease()
    try:
        tree = lease.tree(Root.of(project, env, (("import", function),)), permission)
        return [await _text(await tree.host(), call, function) for call in calls]
    except CallError as error:
        return [AgentevalError(f"{function} raised {error}")] * len(calls)
    finally:
        await lease.close()


async def _text(host: Any, call: PromptCall, function: str) -> str | AgentevalError:
    context = {"vars": dict(call.variables), "provider": {"id": "agenteval"}, "config": {}}
    offered = {**call.variables, "context": context}
    async with host:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                returned = await host.call("hook", function, limit=_MOST, last=True, offered=offered)
        except TimeoutError:
            await host.end()
            return AgentevalError(f"{function} did not return within {_TIMEOUT_S:g} s")
        except CallError as error:
            return AgentevalError(f"{function} raised {error}")
    if isinstance(returned, dict) and isinstance(returned.get("prompt"), str | list):
        returned = returned["prompt"]
    if returned in (None, "", [], {}):
        return AgentevalError(f"{function} returned no prompt")
    return returned if isinstance(returned, str) else json.dumps(returned, ensure_ascii=False)
