"""The tool `suggest` of `agenteval mcp`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import Field

from agenteval_tui.core.directories import db_option, history_file
from agenteval_tui.core.options import options_of
from agenteval_tui.extensions.suggest.api import suggest as suggest_criteria
from agenteval_tui.extensions.suggest.search import SuggestOptions
from agenteval_tui.extensions.suggest.view import suggestions_view
from agenteval_tui.views.terminal import plain_text


def tool(db: Path | None) -> Callable[..., str]:
    """The tool, for this history."""

    def suggest(
        test: Annotated[
            str, Field(description="A test's id, TEST/CRITERION, or a run. Empty: that of the first good run.")
        ] = "",
        good: Annotated[list[str], Field(description="Good runs, in addition to those that a person labelled.")] = [],  # noqa: B006
        bad: Annotated[list[str], Field(description="Bad runs.")] = [],  # noqa: B006
        from_judge: Annotated[bool, Field(description=options_of(SuggestOptions)["from_judge"].help)] = False,
    ) -> str:
        """Suggest criteria for a test: the smallest configs that agree with which runs are good and bad (two good and a
        bad one are enough), and the run whose label would tell most. No model is asked and nothing is stored."""
        named = test or "".join(good[:1])
        criteria = suggest_criteria(named, good=good, bad=bad, from_judge=from_judge, db=db)
        return plain_text(suggestions_view(criteria.found, criteria.given, criteria.check, db_option(history_file(db))))

    return suggest
