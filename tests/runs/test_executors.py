"""Where agents run: what a plug-in offers."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from agenteval_tui.agents.key_destinations import sends_keys
from agenteval_tui.core import entry_points
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.executors.base import executor_of
from agenteval_tui.runs.plan.model import Plan, check_executor, cluster_of
from agenteval_tui.runs.plan.options import PlanOptions
from agenteval_tui.runs.response_cache import fingerprint

PLUGIN = """
class Farm:
    address_variable = "FARM_ADDRESS"
    def __init__(self, address): self.address = address
class Clerk: pass
"""


def test_an_executor_and_a_local_kind_of_a_plugin_are_as_good_as_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "farming-1.0.dist-info"
    info.mkdir()
    (tmp_path / "farming.py").write_text(PLUGIN)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: farming\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[agenteval.executors]\nfarm = farming:Farm\nwreck = farming:Gone\n"
        "[agenteval.agents]\nclerk = farming:Clerk\n"
        "[agenteval.local_agents]\nclerk = farming:Clerk\nopenai = farming:Clerk\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    entry_points._plugins.cache_clear()
    try:
        with pytest.raises(AgentevalError, match="FARM_ADDRESS"):
            check_executor(PlanOptions(executor="farm"))
        asked = PlanOptions(executor="farm", scheduler="here")
        check_executor(asked)
        plan = Plan("E", "", (), 1, cluster=cluster_of(asked, all_threads=True))
        assert cast(Any, executor_of(plan)).address == "here"
        with pytest.raises(AgentevalError, match=r"executor is local or .*farm or wreck, not 'moon'"):
            check_executor(PlanOptions(executor="moon", scheduler="here"))
        with pytest.raises(AgentevalError, match="the executor 'wreck' can't be loaded: AttributeError"):
            check_executor(PlanOptions(executor="wreck", scheduler="here"))
        # A clerk sends no key anywhere and its answers need not be kept; what is agenteval's own stays as it is.
        url = {"url": "https://somewhere.example/x", "api_key_env": "SOME_KEY"}
        assert sends_keys({"kind": "clerk", **url}, tmp_path, {"SOME_KEY": "x"}) == ()
        assert fingerprint({"kind": "clerk"}, tmp_path) == ""
        assert fingerprint({"kind": "openai"}, tmp_path) != ""
    finally:
        entry_points._plugins.cache_clear()
