"""Who is asked: which agent a judge's or an embedder's name means."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct, field

from agenteval_tui.agents.registry import local_embedders
from agenteval_tui.core.directories import config_dir
from agenteval_tui.core.entry_points import is_ready_embedder
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.core.ids import content_hash
from agenteval_tui.grading.remote_requests import RemoteRequest
from agenteval_tui.history.records import is_imported
from agenteval_tui.runs.plan.agents import AgentPlan
from agenteval_tui.runs.plan.variation import agent_plan
from agenteval_tui.suites.load import LoadedSuite
from agenteval_tui.suites.model import AgentConfig, Suite

JUDGE = "judge"
"""The agent of this name is the judge where a metric names none."""
EMBEDDER = "embedder"
"""The agent of this name gives embeddings where a metric names none."""

NO_JUDGE = AgentevalError(
    "no judge given", fix='give --judge NAME, write `judge: NAME` in the metric, or call an agent "judge"'
)


class Respondents(Struct, frozen=True):
    """The agents that suites and the user have, to be asked by name.

    `suites`: by suite key, the suite with the folder of its file. `judge` replaces whatever judges metrics name.
    """

    suites: Mapping[str, tuple[Suite, Path]] = field(default_factory=dict)
    user_agents: Mapping[str, AgentConfig] = field(default_factory=dict)
    judge: str = ""

    @classmethod
    def of(
        cls, loaded: tuple[LoadedSuite, ...], user_agents: Mapping[str, AgentConfig], judge: str | None = None
    ) -> Respondents:
        """The respondents for these suites. Raises `AgentevalError` when there is no agent `judge`."""
        suites = {
            loaded_suite.key: (loaded_suite.suite, Path(loaded_suite.path).resolve().parent)
            for loaded_suite in loaded
            if loaded_suite.suite is not None
        }
        respondents = cls(suites, user_agents, judge or "")
        if judge:
            # Without suites, as where a file is graded, only the user's own agents can be meant.
            for key in suites or ("",):
                respondents.named(judge, key)
        return respondents

    def base_dir(self, suite_key: str) -> Path:
        """The folder of the suite's file; for a suite that is not here, the one that its key names."""
        if suite_key in self.suites:
            return self.suites[suite_key][1]
        return Path(suite_key).parent if suite_key and not is_imported(suite_key) else Path.cwd()

    def named(self, name: str, suite_key: str) -> AgentPlan:
        """The agent of that name, as a suite sees it. Raises `AgentevalError`."""
        suite, folder = self.suites.get(suite_key, (None, None))
        return agent_plan(name, suite, folder or config_dir(), self.user_agents)

    def asked(self, request: RemoteRequest, suite_key: str) -> AgentPlan:
        """Who answers a request to a judge or an embedder. Raises `AgentevalError` if there is none."""
        if request.kind == "embed":
            return self._embedder(request.target, suite_key)
        if self.judge or request.target:
            return self.named(self.judge or request.target, suite_key)
        if self._knows(JUDGE, suite_key):
            return self.named(JUDGE, suite_key)
        raise NO_JUDGE

    def _embedder(self, name: str, suite_key: str) -> AgentPlan:
        if name:
            if not self._knows(name, suite_key) and is_ready_embedder(name):
                return _kind_itself(name)
            return self.named(name, suite_key)
        if self._knows(EMBEDDER, suite_key):
            return self.named(EMBEDDER, suite_key)
        installs: list[str] = []
        for kind, embedder in local_embedders():
            if not embedder.missing():
                return _kind_itself(kind)
            installs.append(embedder.install)
        local = f", or install the local model ({'; or '.join(installs)})" if installs else ""
        raise AgentevalError(
            "no embedder is configured",
            fix='call an agent of kind openai "embedder" (base_url and model of a server with /embeddings)'
            f"{local}; the metric `Lexical` compares words and needs {'neither' if installs else 'none'}",
        )

    def _knows(self, name: str, suite_key: str) -> bool:
        suite = self.suites.get(suite_key, (None, None))[0]
        return name in self.user_agents or (suite is not None and name in suite.agents)


def _kind_itself(kind: str) -> AgentPlan:
    config = {"kind": kind}
    return AgentPlan(kind, config, config_dir(), content_hash([kind, config]))
