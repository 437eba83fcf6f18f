"""pass@k and pass^k as Umbraco AI defines them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agenteval_tui.agents.base import Done, TextDelta
from agenteval_tui.analysis.umbraco_metrics import figures_of, umbraco_figures

SUITE = """
name: S
{metrics}
agent: bot
agents:
  bot: {{kind: scripted}}
tests:
  - id: a
    prompt: hi
    repeat: 3
    variations: [{{name: v2, repeat: 2}}]
    criteria:
      - {{name: x, prototype_class: TextResponse, config_uxon: {{metrics: [{{type: TextMatch, contains: hello}}]}}}}
"""


@pytest.mark.parametrize("metrics", ["metrics: umbraco", ""])
async def test_figures_of_a_suite_that_asks_for_them(execution: Callable[..., Any], scripts: Any, metrics: str) -> None:
    async def flaky(request: Any) -> Any:
        yield TextDelta("no" if request.repetition == 2 else "hello")
        yield Done()

    scripts.script = flaky
    made = execution(SUITE.format(metrics=metrics))
    await made.run()
    made.store.flush()
    row = made.store.execution(made.engine.plan.execution_id)
    figures = umbraco_figures(row.options, made.store.runs_of_execution(row.id))
    if not metrics:
        assert figures == ()
        return
    assert figures == (
        figures_of("a", "", [True, True, False]),
        figures_of("a", "v2", [True, False]),
        figures_of("a", "", [True] * 3 + [False] * 2, aggregate=True),
    )
    assert [(round(one.pass_at_k, 3), one.pass_hat_k) for one in figures] == [(0.667, 0.0), (0.5, 0.0), (0.6, 0.0)]


def test_without_runs_both_are_zero_and_with_all_passed_both_are_one() -> None:
    without, whole = figures_of("a", "", []), figures_of("a", "", [True] * 4)
    assert (without.pass_at_k, without.pass_hat_k) == (0.0, 0.0)
    assert (whole.pass_at_k, whole.pass_hat_k) == (1.0, 1.0)
