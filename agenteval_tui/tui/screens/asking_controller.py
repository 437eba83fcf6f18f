"""What a sheet that asks the agent about a stored run knows and does, without Textual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal

from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.history.records import RunRow
from agenteval_tui.history.store import Store
from agenteval_tui.runs.fork.model import Purpose
from agenteval_tui.runs.fork.options import ContinuationOptions
from agenteval_tui.runs.fork.oracle import Oracle

Stage = Literal["reading", "ready", "running", "stopping", "refused"]


class AskingController(ABC):
    """One run. `read` and `run` block: call them in a thread. `error` says why the agent can't be asked, or what went
    wrong."""

    def __init__(self, store: Store, run: str) -> None:
        self.stage: Stage = "reading"
        self.error: AgentevalError | None = None
        self.gone = ""
        """Which tools of the run the agent does not have any more, in words."""
        self._store = store
        self._run = run
        self._oracle: Oracle | None = None

    @property
    def running(self) -> bool:
        """Whether the agent is being asked."""
        return self.stage in ("running", "stopping")

    @property
    def can_ask(self) -> bool:
        """Whether asking may tell something that is not known."""
        return self.stage == "ready"

    @property
    @abstractmethod
    def cost(self) -> float | None:
        """What asking may cost, in dollars; None: it is not known."""

    @property
    def may_cost(self) -> bool:
        """Whether asking may cost something, or its price is not known."""
        return self.cost != 0

    def read(self) -> None:
        """Find out what would be asked, and what it may cost."""
        try:
            self._look(self._store.run(self._run))
            self.stage = "ready"
        except AgentevalError as error:
            self.error, self.stage = error, "refused"

    def begin(self) -> None:
        """From now on it asks; `run` does the work."""
        self.stage, self.error = "running", None

    def run(self) -> None:
        """Ask until it is done or stopped."""
        try:
            self._ask()
        except AgentevalError as error:
            self.error = error
        finally:
            self.stage = "ready"

    def stop(self) -> None:
        """Ask nothing more; what was answered is kept."""
        if self.stage == "running" and self._oracle is not None:
            self.stage = "stopping"
            self._oracle.stop()

    @abstractmethod
    def _look(self, row: RunRow) -> None:
        """Find out what would be asked about the run, and what it may cost. Raises `AgentevalError`."""

    @abstractmethod
    def _ask(self) -> None:
        """Ask until it is done or stopped. Raises `AgentevalError`."""

    def _new_oracle(self, row: RunRow, options: ContinuationOptions, purpose: Purpose) -> Oracle:
        """What answers from now on."""
        self._oracle = Oracle(self._store, row, options, purpose=purpose)
        return self._oracle
