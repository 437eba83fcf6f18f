"""A program that forks processes of executions: each as `client.start` makes them, but for the second that imports
take. So one of them can be killed fifty times in a test.

For each line of JSON on stdin ({"request", "environment", "answer", "log"}) it prints a process number.
"""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from typing import Any

import anyio._backends._asyncio  # noqa: F401
import httpx  # noqa: F401
import jinja2.sandbox  # noqa: F401
import keyring.core  # noqa: F401
import yaml  # noqa: F401

import agenteval_tui.agents.key_destinations
import agenteval_tui.agents.models.openai
import agenteval_tui.agents.registry
import agenteval_tui.grading.extractors.text_response
import agenteval_tui.grading.metrics.text_match
import agenteval_tui.history.store
import agenteval_tui.runs.execution_host
import agenteval_tui.runs.plan.planner
import agenteval_tui.runs.resume
import agenteval_tui.suites.agents_file
import agenteval_tui.suites.discover  # noqa: F401
from agenteval_tui.runs import live_socket, process


def run(job: dict[str, Any]) -> None:
    """Run an execution request; how the start went is written to the file `answer`."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    live_socket.FIRST_WATCHER_S = 0.01  # nobody comes to see the end
    os.environ.update(job["environment"])
    sys.stdin = io.TextIOWrapper(io.BytesIO(json.dumps(job["request"]).encode()))
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    ready = os.open(job["answer"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os._exit(process.main(["--ready", str(ready)]))


if __name__ == "__main__":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the dead are gone at once
    for line in sys.stdin:
        child = os.fork()
        if not child:
            run(json.loads(line))
        print(child, flush=True)
