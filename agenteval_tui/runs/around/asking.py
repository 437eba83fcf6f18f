"""What the agent is asked once hooks have brought their variables: the test's templates are rendered then."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.around.plan import Asks
from agenteval_tui.runs.plan.conversation import Conversations
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.suites.model import Test

_ASKS = {"prompt", "messages", "turns", "user"}


def asks_of(test: Test) -> dict[str, Any]:
    """What a test asks, as it is written."""
    return test.model_dump(include=_ASKS, exclude_unset=True, exclude_none=True)


def asked_with(run: RunPlan, variables: Mapping[str, Any]) -> RunPlan:
    """The run with the variables that it has now. Raises `AgentevalError` when a template needs one that is
    missing, or an image or a file can't be read."""
    asks = run.around.asks if run.around is not None else None
    if variables == run.variables and asks is None:
        return run
    if asks is None or run.around is None:
        return replace(run, variables=variables)
    try:
        conversation = Conversations(_test(asks), Path(run.around.folder)).of(variables, asks.row)
    except AgentevalError as error:
        raise AgentevalError(f"test {run.ref.test!r}: {error.what}", where=error.where, fix=error.fix) from error
    user = run.user if run.user is None or conversation.user is None else replace(run.user, brief=conversation.user)
    return replace(
        run,
        variables=variables,
        messages=conversation.messages,
        tool_calls=conversation.tool_calls,
        turns=conversation.turns,
        files=conversation.files,
        user=user,
    )


def _test(asks: Asks) -> Test:
    criterion = {"name": "-", "prototype_class": "-", "config_uxon": ""}
    return Test.model_validate({**asks.test, "id": "-", "criteria": [criterion]})
