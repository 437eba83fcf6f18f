"""docs/agents.md says of every kind what its options are."""

from __future__ import annotations

import runpy
from pathlib import Path

from agenteval_tui.agents.registry import options_model
from agenteval_tui.core.entry_points import AGENTS, own

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_of_agents_is_made_anew() -> None:
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    made = runpy.run_path(str(ROOT / "docs" / "make_agents.py"))["page"](page)
    assert page == made, "run python docs/make_agents.py"
    for kind in own(AGENTS):
        assert f"\n## {kind}\n" in page


def test_every_option_says_what_it_is() -> None:
    for kind in own(AGENTS):
        model = options_model(kind)
        assert model is not None
        assert [name for name, one in model.model_fields.items() if not one.description] == []
