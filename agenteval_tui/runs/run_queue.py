"""The runs that wait for their turn, in plan order, with a limit for each agent and no more repetitions than needed."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from heapq import heappop, heappush

from msgspec import Struct, field

from agenteval_tui.runs.early_stopping import Repetitions
from agenteval_tui.runs.plan.model import RunPlan

# Added to a position: greater than any number of runs, so those that ask alone come after all others.
_BEHIND = 1 << 40


class _AgentQueue(Struct):
    """The waiting runs of one agent. Entries of `ready` and `resting` whose run was taken, or put back, are skipped.

    Runs that the server refused while it served others are `alone`: they start when nothing else of the agent is in
    flight, except runs that were put back like them. Those that are in flight together are one round. It ends when one
    of its runs is released, or when another kind of run starts.
    """

    limit: int | None
    throttled: int | None = None
    """How many may run at once as long as the server is busy; None: as many as `limit` allows."""
    throttled_until: float = 0.0
    """None starts before."""
    ready: list[tuple[int, str]] = field(default_factory=list)
    """A heap of (position, run id)."""
    ready_count: int = 0
    """Runs in `ready`, without the entries that are skipped."""
    resting: list[tuple[float, int, str]] = field(default_factory=list)
    """A heap of (when it may start, position, run id)."""
    resting_ids: set[str] = field(default_factory=set)
    """The runs of `resting`, and those that wait for what only one run may use."""
    alone: set[str] = field(default_factory=set)
    refused_before: set[str] = field(default_factory=set)
    """What was put back at any time."""
    round_asking: set[str] = field(default_factory=set)
    """Runs of the round that the server has not answered yet."""
    round_refused: list[str] = field(default_factory=list)
    """Runs of the round that were put back."""
    rounds_allowed: bool = True
    """Whether others may join a round; not where one was released beside others."""
    in_flight: int = 0

    @property
    def startable(self) -> int:
        """How many of those that are ready may begin as far as the others are concerned."""
        # Runs that ask alone come after all others, so they count only when nothing else is ready.
        alone = len(self.alone - self.resting_ids)
        return self.ready_count - alone or (alone if self.lone_may_start else 0)

    @property
    def all_refused_before(self) -> bool:
        """Whether nothing is in flight but a round of runs that were put back before."""
        return self.rounds_allowed and len(self.round_asking & self.refused_before) == self.in_flight

    @property
    def lone_may_start(self) -> bool:
        """Whether a run that asks alone may begin."""
        # Once one of the round is answered, none joins it: it would never end.
        return not self.in_flight or (self.all_refused_before and not self.round_refused)

    def begin(self, name: str) -> None:
        """A run that was taken out is in flight."""
        # Beside anything else, a refusal does not show that the server refuses the run itself.
        if self.in_flight and not (name in self.refused_before and self.all_refused_before):
            self.end_round()
        else:
            self.round_asking.add(name)
        self.in_flight += 1

    def end_round(self) -> None:
        """Forget the round: what is in flight does not show whether the server refuses runs also alone."""
        self.round_asking.clear()
        self.round_refused.clear()

    def leave(self, name: str) -> None:
        """A run that waits is taken out."""
        self.alone.discard(name)
        if name in self.resting_ids:
            self.resting_ids.remove(name)
        else:
            self.ready_count -= 1

    def room(self, most: int, clock: Callable[[], float]) -> int:
        """How many of `most` runs the limits let start now."""
        if self.throttled_until and clock() < self.throttled_until:
            return 0
        limit = self.limit
        # What is refused also alone is not refused for the number at once, so the throttle does not hold it.
        refused = (
            self.rounds_allowed
            and self.lone_may_start
            and (self.in_flight or self.ready_count == len(self.alone - self.resting_ids))
        )
        if self.throttled is not None and not refused and (limit is None or self.throttled < limit):
            limit = self.throttled
        return most if limit is None else min(most, max(0, limit - self.in_flight))


def exclusive_of(run: RunPlan) -> str:
    """What only one run may use at a time, and this one uses; "": nothing."""
    return run.around.exclusive if run.around is not None else ""


class WaitingRuns:
    """Gives out runs in plan order, never more of one agent at once than its limit allows.

    `limits` holds the greatest number of runs at once by agent hash; agents that are not in it have none. Of runs
    that are in `repetitions` (by id) no more are on their way at once than are needed.
    """

    def __init__(
        self,
        runs: Iterable[RunPlan],
        limits: Mapping[str, int],
        repetitions: Mapping[str, Repetitions] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._repetitions = repetitions or {}
        self._lines: dict[str, _AgentQueue] = {}
        self._waiting: dict[str, tuple[int, RunPlan]] = {}
        # By identity of the repetitions: all of them, and those that are not needed yet.
        self._members: dict[int, list[str]] = {}
        self._held_back: dict[int, deque[str]] = {}
        # All that is in `_held_back`: a look into each deque would cost as much as it is long.
        self._held: set[str] = set()
        # What only one run may use: how many use it, and the runs that wait for it.
        self._used: Counter[str] = Counter()
        self._blocked: dict[str, list[tuple[int, str]]] = {}
        self._last_position = 0
        for position, run in enumerate(runs):
            self._last_position = position
            name = run.ref.run
            self._waiting[name] = (position, run)
            line = self._lines.get(run.agent.hash)
            if line is None:
                line = self._lines[run.agent.hash] = _AgentQueue(limits.get(run.agent.hash))
            group = self._repetitions.get(name)
            if group is None:
                line.ready.append((position, name))
                line.ready_count += 1
            else:
                self._members.setdefault(id(group), []).append(name)
                self._held_back.setdefault(id(group), deque()).append(name)
                self._held.add(name)
        # Runs came in plan order, so each `ready` is a heap already.
        for group in {id(repetition): repetition for repetition in self._repetitions.values()}.values():
            self._admit(group)

    def __len__(self) -> int:
        return len(self._waiting)

    def ready(self) -> int:
        """How many runs could begin now, were there no other limit."""
        for line in self._lines.values():
            self._rested(line)
        return sum([line.room(line.startable, self._clock) for line in self._lines.values()])

    def next(self) -> RunPlan | None:
        """The run that `take` would give."""
        best = self._best()
        return None if best is None else self._waiting[best.ready[0][1]][1]

    def take(self) -> RunPlan | None:
        """The next run that may begin; None when none waits or all their agents are busy. Give it back by `release`."""
        best = self._best()
        if best is None:
            return None
        name = heappop(best.ready)[1]
        run = self._waiting.pop(name)[1]
        best.leave(name)
        best.begin(name)
        if exclusive := exclusive_of(run):
            self._used[exclusive] += 1
        return run

    def _best(self) -> _AgentQueue | None:
        """The line whose first run is the next one."""
        best: _AgentQueue | None = None
        for line in self._lines.values():
            self._rested(line)
            # Entries are dropped here, when they come up: taking one out of the middle of a heap costs all of it.
            while line.ready and (
                line.ready[0][1] not in self._waiting or line.ready[0][1] in self._held or self._blocks(line)
            ):
                heappop(line.ready)
            if line.ready and (best is None or line.ready[0][0] < best.ready[0][0]) and line.room(1, self._clock):
                if line.ready[0][1] in line.alone and not line.lone_may_start:
                    continue  # it comes after all others: there is nothing else
                best = line
        return best

    def hold(self, exclusive: str) -> None:
        """Something beside runs uses what only one run may use."""
        self._used[exclusive] += 1

    def free(self, exclusive: str) -> None:
        """It is free again; what waits for it may start if nothing else uses it."""
        self._used[exclusive] -= 1
        if self._used[exclusive] <= 0:
            del self._used[exclusive]
            for position, name in self._blocked.pop(exclusive, ()):
                line = self._lines[self._waiting[name][1].agent.hash] if name in self._waiting else None
                if line is not None and name in line.resting_ids:
                    line.resting_ids.remove(name)
                    self._ready(line, position, name)

    def _blocks(self, line: _AgentQueue) -> bool:
        """Whether the first that is ready waits for what another run uses: then it rests until that is free."""
        position, name = line.ready[0]
        exclusive = exclusive_of(self._waiting[name][1])
        if not exclusive or exclusive not in self._used:
            return False
        if name not in line.resting_ids:
            line.ready_count -= 1
            line.resting_ids.add(name)
        self._blocked.setdefault(exclusive, []).append((position, name))
        return True

    def release(self, run: RunPlan) -> None:
        """The run has ended: it no longer keeps its agent busy."""
        if exclusive := exclusive_of(run):
            self.free(exclusive)
        line = self._lines[run.agent.hash]
        line.in_flight -= 1
        line.rounds_allowed = line.rounds_allowed and len(line.round_asking) + len(line.round_refused) < 2
        line.end_round()
        group = self._repetitions.get(run.ref.run)
        if group is not None:
            group.begun -= 1
            # Its outcome changes how many more are needed.
            self._admit(group)

    def put_back(self, run: RunPlan, *, rest_s: float = 0.0, alone: bool = False) -> None:
        """A run that was taken waits again, after all others of its agent: a different one shows whether there is room.
        It does not start for `rest_s` seconds, and, with `alone`, only when nothing else of its agent is in flight
        except runs that were also put back.
        """
        line, name = self._lines[run.agent.hash], run.ref.run
        # While it waits, others may use what only one run may use.
        if exclusive := exclusive_of(run):
            self.free(exclusive)
        line.in_flight -= 1
        line.refused_before.add(name)
        self._last_position += 1
        position = self._last_position + _BEHIND * alone
        # An older entry of this run in the heap has another position, and is skipped when it comes up.
        self._waiting[name] = (position, run)
        if alone:
            line.alone.add(name)
        if rest_s > 0:
            line.resting_ids.add(name)
            heappush(line.resting, (self._clock() + rest_s, position, name))
        else:
            self._ready(line, position, name)

    def in_flight(self, agent: str) -> int:
        """How many runs of the agent are in flight."""
        return self._lines[agent].in_flight

    def refused(self, run: RunPlan) -> tuple[str, ...]:
        """The server refused this run, which is given back after this.

        Gives the ids of the runs that were refused while nothing of the agent was on its way but them, this one among
        them; () while that is not known yet, or not so.
        """
        line, name = self._lines[run.agent.hash], run.ref.run
        if name not in line.round_asking:
            return ()
        line.round_asking.remove(name)
        line.round_refused.append(name)
        if line.round_asking:
            return ()
        # A run of the round that is not `alone` may have asked twice in it.
        together = tuple(dict.fromkeys(line.round_refused))
        line.round_refused.clear()
        return together

    def wake(self, run: RunPlan) -> None:
        """A run that rests has rested long enough."""
        line, name = self._lines[run.agent.hash], run.ref.run
        if name in line.resting_ids:
            line.resting_ids.remove(name)
            self._ready(line, self._waiting[name][0], name)

    def throttle(self, agent: str, limit: int | None, until: float) -> None:
        """No more than `limit` runs of the agent at once for now (None: as many as ever), and none before `until`."""
        line = self._lines[agent]
        line.throttled, line.throttled_until = limit, until

    def remove(self, run_id: str) -> RunPlan | None:
        """Take one run out of the line, wherever it stands; None when it does not wait."""
        waiting = self._waiting.pop(run_id, None)
        if waiting is None:
            return None
        run = waiting[1]
        group = self._repetitions.get(run_id)
        if group is not None:
            if run_id in self._held:
                self._held.remove(run_id)
                self._held_back[id(group)].remove(run_id)
                return run
            group.begun -= 1
        self._lines[run.agent.hash].leave(run_id)
        if group is not None:
            self._admit(group)
        return run

    def take_unneeded(self, group: Repetitions) -> list[RunPlan]:
        """Take out all that wait of some repetitions, in plan order."""
        key = id(group)
        removed = []
        for name in self._members[key]:
            if name in self._held:
                self._held.remove(name)
                removed.append(self._waiting.pop(name)[1])
            elif (run := self.remove(name)) is not None:
                removed.append(run)
        self._held_back[key].clear()
        return removed

    def clear(self) -> list[RunPlan]:
        """Take all runs out; gives them in plan order."""
        remaining = sorted(self._waiting.values(), key=lambda item: item[0])
        self._waiting.clear()
        self._held_back = {key: deque() for key in self._held_back}
        self._held.clear()
        self._blocked.clear()
        for line in self._lines.values():
            line.ready.clear()
            line.resting.clear()
            line.resting_ids.clear()
            line.alone.clear()
            line.ready_count = 0
        return [run for _, run in remaining]

    def _admit(self, group: Repetitions) -> None:
        """As many of the repetitions into the line as are needed; out of it again when fewer are."""
        later = self._held_back.get(id(group))
        if later is None:
            return
        due = group.wanted
        while later and group.begun < due:
            name = later.popleft()
            self._held.remove(name)
            position, run = self._waiting[name]
            group.begun += 1
            self._ready(self._lines[run.agent.hash], position, name)
        if group.begun > due:
            fed = [name for name in self._members[id(group)] if name in self._waiting and name not in self._held]
            # The last ones leave, in an order that leaves `later` in plan order.
            for name in reversed(fed[-(group.begun - due) :]):
                later.appendleft(name)
                self._held.add(name)
                group.begun -= 1
                self._lines[self._waiting[name][1].agent.hash].leave(name)

    def _rested(self, line: _AgentQueue) -> None:
        """Runs that have rested long enough go back into the line."""
        while line.resting and line.resting[0][0] <= self._clock():
            _, position, name = heappop(line.resting)
            if name in line.resting_ids and self._waiting[name][0] == position:
                line.resting_ids.remove(name)
                self._ready(line, position, name)

    @staticmethod
    def _ready(line: _AgentQueue, position: int, name: str) -> None:
        heappush(line.ready, (position, name))
        line.ready_count += 1
