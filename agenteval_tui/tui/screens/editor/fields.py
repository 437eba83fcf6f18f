"""The fields of the Editor's forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenteval_tui.grading.registry import prototype_names
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.tui.presenters.test_form import YAMLS
from agenteval_tui.tui.widgets.form import Field, Form

if TYPE_CHECKING:
    from agenteval_tui.suites.model import AgentConfig

MOST_ROWS = 8
PROMPT_ROWS = 5
CATEGORIES = (("", "none"), ("happy_path", "happy path"), ("edge_case", "edge case"), ("negative", "negative"))
SEVERITIES = (("error", "error: fails the test"), ("warning", "warning"), ("info", "info"))
NEGATE = (("", "passes when it holds"), ("true", "passes when it does NOT hold"))


def test_fields() -> list[Field]:
    """Those of a test, in the order in which people think of them."""
    return [
        Field("name", "name"),
        Field("id", "id", placeholder="made from the name"),
        Field("prompt", "prompt", rows=PROMPT_ROWS),
        Field("agent", "agent", choices=(("", "the suite's"),)),
        Field("category", "category", choices=CATEGORIES),
        Field("tags", "tags", placeholder="smoke, sql"),
        Field("repeat", "repeat", placeholder="the suite's"),
        Field("description", "about", rows=2),
        Field("timeout", "timeout", placeholder="seconds; the suite's"),
        Field("pass_threshold", "passes from", placeholder="a score 0 to 1, else all its criteria"),
        Field("variables", "variables", rows=1, placeholder="country: Germany"),
        Field("dataset_file", "dataset", placeholder="rows.csv: a run for each row"),
        Field("dataset_limit", "rows", placeholder="all"),
        Field("variations", "variations", rows=1, placeholder="- {name: mini, agent: shop/mini}"),
        Field("context", "context", rows=1, placeholder="sample_tools: {lookup: {sample_response: found}}"),
        Field("turns", "turns", rows=1, placeholder="- a message, and another when it is answered"),
        Field("messages", "messages", rows=1, placeholder="- {role: user, content: Hello}"),
        Field("stop", "stop early", rows=1, placeholder="{when: decided}"),
    ]


def criterion_fields() -> list[Field]:
    """Those of a criterion, but for its config."""
    return [
        Field("name", "name"),
        Field("prototype_class", "looks at", choices=tuple((one, one) for one in prototype_names())),
        Field("expected_value", "expected", rows=1, placeholder="{{expected_value}} in the config"),
        Field("severity", "severity", choices=SEVERITIES),
        Field("weight", "weight", placeholder="1"),
        Field("negate", "negate", choices=NEGATE),
        Field("pass_threshold", "passes from", placeholder="a score, else all its metrics"),
        Field("description", "about"),
    ]


def refine_choices(form: Form, loaded: LoadedSuite, agents: Mapping[str, AgentConfig]) -> None:
    """All known agents: the suite's own, then the user's."""
    suite = loaded.suite
    own = suite.agent if suite is not None else None
    names = list(dict.fromkeys([*(suite.agents if suite is not None else ()), *agents]))
    default = f"the suite's: {own}" if own else "none named"
    form.offer("agent", [("", default), *((name, name) for name in names)])
    form.hold("repeat", f"{suite.defaults.repeat}, as the suite says" if suite is not None else "")


def rows_of(form: Form, values: Mapping[str, str]) -> None:
    """Texts over several lines are as high as they need, within reason."""
    for key in YAMLS:
        form.grow(key, min(max(values.get(key, "").count("\n") + 1, 1), MOST_ROWS))


def criterion_rows(form: Form, values: Mapping[str, str]) -> None:
    """The same for a criterion, which shares its pane with a list and an editor."""
    form.grow("expected_value", min(values.get("expected_value", "").count("\n") + 1, 3))
