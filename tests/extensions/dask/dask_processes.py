"""Dask's programs as processes that do not each load Dask: they are forked from one that has."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
from collections.abc import Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

# Loaded before there is any of them: their programs, and what a worker runs.
_LOADED = ("distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "agenteval_tui.extensions.dask.worker")
# They look at themselves many times a second. Nobody here asks what they see.
_CALM = {
    "distributed.admin.tick.interval": "500ms",
    "distributed.admin.system-monitor.interval": "5s",
    "distributed.worker.profile.enabled": False,
}


def begin(program: str, *arguments: str, log: Path, env: Mapping[str, str]) -> BaseProcess:
    """`dask_scheduler` or `dask_worker` with these arguments, in the log's folder; what it says is written there."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*_LOADED])
    made = context.Process(target=_become, args=(program, arguments, str(log), dict(env)))
    made.start()
    return made


def _become(program: str, arguments: tuple[str, ...], log: str, env: dict[str, str]) -> None:
    """Be that program, as if the shell had started it."""
    import dask

    with open(log, "wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.stdout, sys.stderr = os.fdopen(1, "w", 1), os.fdopen(2, "w", 1)
    os.environ.clear()
    os.environ.update(env)
    os.chdir(Path(log).parent)
    dask.config.set(_CALM)
    sys.argv = [program, *arguments]
    importlib.import_module(f"distributed.cli.{program}").main()
