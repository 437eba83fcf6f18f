"""The servers of `http` agents in a check: it starts them itself. One that runs already has its own keys, and its
requests would not be answered from a recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from agenteval_tui.runs.around.plan import ServicePlan
from agenteval_tui.runs.plan.model import RunPlan


def with_own_servers(runs: Sequence[RunPlan]) -> tuple[RunPlan, ...]:
    """The same runs, in which no service that an agent asks may be one that runs already. Other services, such as a
    database, stay as they are."""
    ports = {_port_of(run.agent.config.get("url")) for run in runs if run.agent.config.get("kind") == "http"}
    return tuple([_with_own(run, ports) for run in runs]) if ports else tuple(runs)


def _with_own(run: RunPlan, ports: set[str]) -> RunPlan:
    if run.around is not None and run.around.services:
        services = tuple([_own(service) if _serves(service, ports) else service for service in run.around.services])
        run = replace(run, around=replace(run.around, services=services))
    declared = run.agent.config.get("services")
    if isinstance(declared, Mapping) and declared:
        config = {**run.agent.config, "services": {name: _declared(each, ports) for name, each in declared.items()}}
        run = replace(run, agent=replace(run.agent, config=config))
    return run


def _own(service: ServicePlan) -> ServicePlan:
    return replace(service, reuse_existing=False)


def _serves(service: ServicePlan, ports: set[str]) -> bool:
    return (str(service.port) if service.port else _port_of(service.url)) in ports


def _declared(service: Any, ports: set[str]) -> object:
    """A service as an agent's configuration has it."""
    ready = service.get("ready") if isinstance(service, Mapping) else None
    if not isinstance(ready, Mapping):
        return service
    port = str(ready["port"]) if ready.get("port") else _port_of(ready.get("url"))
    return {**service, "reuse_existing": False} if port in ports else service


def _port_of(url: object) -> str:
    """The port as it is written: it may be a variable, and both addresses name the same one."""
    parts = urlsplit(str(url))
    _, colon, port = parts.netloc.rpartition(":")
    return port if colon else "443" if parts.scheme == "https" else "80"
