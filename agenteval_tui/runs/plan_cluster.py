"""Where the options say that agents run: on this machine, or on a cluster."""

from __future__ import annotations

from agenteval_tui.runs.plan_model import Cluster, PlanOptions
from agenteval_tui.text.problems import AgentevalError

DASK = "dask"
LOCAL = "local"
ADDRESS = "DASK_SCHEDULER_ADDRESS"


def check_executor(options: PlanOptions) -> None:
    """Raise `AgentevalError` where there is no such executor, or nothing says where its scheduler is."""
    if options.executor not in ("", LOCAL, DASK):
        raise AgentevalError(f"executor is {LOCAL} or {DASK}, not {options.executor!r}")
    if options.executor == DASK and not options.scheduler:
        raise AgentevalError(
            "nothing says where the cluster's scheduler is",
            mend=f"give --scheduler tcp://HOST:PORT, or set {ADDRESS}",
        )


def cluster_of(options: PlanOptions, *, all_threads: bool) -> Cluster | None:
    """The cluster that the options name. `all_threads`: nobody limited how many runs may be at work at once."""
    return Cluster(options.scheduler, all_threads) if options.executor == DASK else None
