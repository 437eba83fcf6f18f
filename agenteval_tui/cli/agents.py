"""`agenteval agents`: which agents are configured, and whether they are there."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agenteval_tui import places
from agenteval_tui.cli.invocation import Invocation, common_options, pass_invocation
from agenteval_tui.cli.output import Output, Style, duration
from agenteval_tui.text.display import one_line
from agenteval_tui.text.problems import INFRASTRUCTURE, AgentevalError

if TYPE_CHECKING:
    from agenteval_tui.agents.interface import CheckReport
    from agenteval_tui.suites.model import AgentConfig

_CHECK_S = 20.0
_THOROUGH_S = 90.0


_STEP_SIGNS: dict[bool | None, tuple[str, Style]] = {True: ("✓ ", "good"), False: ("✗ ", "bad"), None: ("– ", "dim")}


@dataclass(frozen=True, slots=True)
class Configured:
    """An agent, and the file that describes it."""

    name: str
    config: AgentConfig
    file: Path

    @property
    def about(self) -> str:
        """What its configuration says of it."""
        said = self.config.options.get("description")
        return said if isinstance(said, str) else ""


@click.command("agents")
@click.argument("verb", required=False, type=click.Choice(("list", "check")), default="list")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option("--agent", "names", multiple=True, metavar="A", help="Only this agent.")
@click.option("--quick", is_flag=True, help="check: ask for no answer where that can be helped.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON list.")
@common_options
@pass_invocation
def command(
    invocation: Invocation, verb: str, paths: tuple[Path, ...], names: tuple[str, ...], quick: bool, as_json: bool
) -> int:
    """List the agents of your agents.yaml and of the suites at PATHS; `check` asks each whether it is there.

    A check tries step by step whether an agent can be reached, takes the key, knows the model, streams and calls a
    tool. That costs a few tokens; --quick leaves out what does. Exit code 3 when one that was checked can't be used.
    """
    found = configured(paths)
    if names:
        unknown = [name for name in names if name not in {one.name for one in found}]
        if unknown:
            known = ", ".join(one.name for one in found) or "none"
            raise AgentevalError(f"there is no agent {unknown[0]!r}", mend=f"configured: {known}")
        found = [one for one in found if one.name in names]
    reports = check_all(found, thorough=not quick) if verb == "check" else {}
    if as_json:
        invocation.out.json([_data(one, reports.get(number)) for number, one in enumerate(found)])
    else:
        _print(invocation.out, found, reports)
    return INFRASTRUCTURE if any(not report.ok for report in reports.values()) else 0


def configured(paths: Sequence[Path]) -> list[Configured]:
    """The user's agents, then those of the suites at `paths`."""
    from agenteval_tui.suites.agents_file import agents_path, load_agents
    from agenteval_tui.suites.discover import discover
    from agenteval_tui.suites.load import load_suite

    folder = places.config_dir()
    found = [Configured(name, config, agents_path(folder)) for name, config in load_agents(folder).items()]
    for path in discover(paths):
        suite = load_suite(path).suite
        if suite is not None:
            found.extend(Configured(name, config, path) for name, config in suite.agents.items())
    return found


def check_all(agents: Sequence[Configured], *, thorough: bool = False) -> dict[int, CheckReport]:
    """What each says of itself, by its number; all are asked at once. What can't be made is a report as well.

    `thorough` also asks for a streamed answer and a call of a tool.
    """
    from agenteval_tui.runs.loop import run_to_end

    return dict(enumerate(run_to_end(_check_all(agents, thorough))))


async def _check_all(agents: Sequence[Configured], thorough: bool) -> list[CheckReport]:
    return list(await asyncio.gather(*(_check(one, thorough) for one in agents)))


async def _check(one: Configured, thorough: bool) -> CheckReport:
    from agenteval_tui.agents.interface import CheckReport
    from agenteval_tui.agents.registry import make_agent
    from agenteval_tui.suites.agents_file import environment_for, expand

    limit = _THOROUGH_S if thorough else _CHECK_S
    try:
        folder = one.file.resolve().parent
        env: Mapping[str, str] = environment_for(folder, os.environ)
        agent = make_agent(one.name, expand(one.config.as_dict(), env), base_dir=folder, env=env)
    except AgentevalError as error:
        return CheckReport(False, error.what, mend=error.mend)
    try:
        return await asyncio.wait_for(agent.check(thorough), limit)
    except TimeoutError:
        return CheckReport(False, f"no answer within {limit:.0f} s", mend="is the server running?")
    except AgentevalError as error:
        return CheckReport(False, error.what, mend=error.mend)
    finally:
        await agent.close()


def _print(out: Output, found: Sequence[Configured], reports: Mapping[int, CheckReport]) -> None:
    if not found:
        out.line("no agents are configured; name a suite, or write some into:")
        out.line(f"  {places.config_dir() / 'agents.yaml'}")
        return
    for number, one in enumerate(found):
        report = reports.get(number)
        head = f"{one_line(one.name)}  {one.config.kind}  "
        if report is None:
            out.line(head, (one_line(one.about, 70), "dim"), (f"  {one.file}", "dim"))
            continue
        mark: tuple[str, Style] = ("✓ ", "good") if report.ok else ("✗ ", "bad")
        mend = f" ({report.mend})" if report.mend and not report.ok else ""
        out.line(mark, head, one_line(report.message, 300), mend, (f"  {duration(report.latency_ms)}", "dim"))
        for step in report.steps:
            sign = _STEP_SIGNS[step.ok]
            took = "" if step.latency_ms is None else f"  {duration(step.latency_ms)}"
            out.line("  ", sign, f"{step.name:<10} ", one_line(step.message, 200), (took, "dim"))


def _data(one: Configured, report: CheckReport | None) -> dict[str, Any]:
    return {
        "agent": one.name,
        "kind": one.config.kind,
        "from": str(one.file),
        "description": one.about,
        "ok": None if report is None else report.ok,
        "message": "" if report is None else report.message,
        "mend": "" if report is None else report.mend,
        "latency_ms": None if report is None else report.latency_ms,
        "steps": [
            {"name": step.name, "ok": step.ok, "message": step.message, "latency_ms": step.latency_ms}
            for step in (() if report is None else report.steps)
        ],
    }
