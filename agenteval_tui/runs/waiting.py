"""The runs that wait for their turn, in plan order, with a limit for each agent."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from agenteval_tui.runs.plan import RunPlan


class WaitingRuns:
    """Gives out runs in plan order, never more of one agent at once than its limit allows.

    `limits` holds the greatest number of runs at once by agent hash; agents that are not in it have none.
    """

    def __init__(self, runs: Iterable[RunPlan], limits: Mapping[str, int]) -> None:
        self._limits = limits
        self._lines: dict[str, deque[tuple[int, RunPlan]]] = {}
        self._busy: dict[str, int] = {}
        self._length = 0
        for position, run in enumerate(runs):
            self._lines.setdefault(run.agent.hash, deque()).append((position, run))
            self._length += 1

    def __len__(self) -> int:
        return self._length

    def ready(self) -> int:
        """How many runs could begin now, were there no other limit."""
        return sum(self._room(agent, len(line)) for agent, line in self._lines.items())

    def take(self) -> RunPlan | None:
        """The next run that may begin; None when none waits or all their agents are busy. Give it back by `release`."""
        best: deque[tuple[int, RunPlan]] | None = None
        for agent, line in self._lines.items():
            if line and self._room(agent, 1) and (best is None or line[0][0] < best[0][0]):
                best = line
        if best is None:
            return None
        run = best.popleft()[1]
        self._length -= 1
        self._busy[run.agent.hash] = self._busy.get(run.agent.hash, 0) + 1
        return run

    def release(self, run: RunPlan) -> None:
        """The run no longer keeps its agent busy."""
        self._busy[run.agent.hash] -= 1

    def remove(self, run_id: str) -> RunPlan | None:
        """Take one run out of the line, wherever it stands; None when it does not wait."""
        for line in self._lines.values():
            for index, (_, run) in enumerate(line):
                if run.ref.run == run_id:
                    del line[index]
                    self._length -= 1
                    return run
        return None

    def clear(self) -> list[RunPlan]:
        """Take all runs out; gives them in plan order."""
        left = [item for line in self._lines.values() for item in line]
        self._lines.clear()
        self._length = 0
        return [run for _, run in sorted(left, key=lambda item: item[0])]

    def _room(self, agent: str, wanted: int) -> int:
        limit = self._limits.get(agent)
        return wanted if limit is None else min(wanted, max(0, limit - self._busy.get(agent, 0)))
