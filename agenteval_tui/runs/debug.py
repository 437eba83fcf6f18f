"""One run in the foreground, with the terminal: for `breakpoint()`, the post-mortem of an exception, or an editor."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

from msgspec.structs import replace

from agenteval_tui.agents.base import AgentRequest, AgentSetup
from agenteval_tui.agents.options import read_options
from agenteval_tui.agents.permission import Permission
from agenteval_tui.agents.process.command import input_of, words_for
from agenteval_tui.agents.process.framework_readers import reader_files
from agenteval_tui.agents.process.options import CommandOptions, PythonOptions, folder_of, places_of
from agenteval_tui.agents.process.project_environment import project_environment
from agenteval_tui.agents.process.protocol import request_document
from agenteval_tui.agents.process.state_mapping import mapping_of
from agenteval_tui.agents.recording.cassette import Cassette
from agenteval_tui.agents.recording.keys import keys_of
from agenteval_tui.agents.recording.playback import Playback
from agenteval_tui.agents.recording.program import run_program
from agenteval_tui.agents.recording.providers import upstreams
from agenteval_tui.agents.recording.session import Session
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.runs.plan.agents import expanded
from agenteval_tui.runs.plan.model import RunPlan
from agenteval_tui.runs.recorded_program import Program
from agenteval_tui.suites.environment import environment_for

_DEBUGGED = Path(__file__).parents[1] / "agents" / "process" / "python_debug.py"


def program_for(
    run: RunPlan, permission: Permission, *, tape: Cassette | None = None, listen: int | None = None
) -> Program:
    """The program that makes this run's first request of its agent in the foreground.

    `tape`: a recording that answers its requests to models; None: the servers do. `listen`: the port on which debugpy
    waits for an editor. Raises `NotTrustedError` if the agent may not run, and `AgentevalError` if its kind can't be
    debugged here.
    """
    agent = run.agent
    env = environment_for(agent.base_dir, os.environ, agent.config)
    permission.require_agent(agent.config, agent.base_dir, env)
    config = expanded(agent, env)
    kind = config.get("kind")
    request, setup = run.request(config), AgentSetup(agent.name, config, agent.base_dir, env, permission=permission)
    if kind == "python":
        program = _python(request, setup, listen)
    elif kind == "command":
        program = _command(request, setup, listen)
    else:
        raise AgentevalError(
            f"agent {agent.name!r} is of the kind {kind}, whose code does not run here",
            where=f"test {run.ref.test}",
            fix="start its server under your debugger, then run the test; `debug` is for the kinds python and command",
        )
    return program if tape is None else replace(program, cassette=tape, on_miss="live")


async def make_run(program: Program, permission: Permission) -> tuple[int, Session]:
    """Run it to its end: (its exit code, what it asked of models). Nothing of it is stored."""
    session = Session(
        answers=None if program.cassette is None else Playback(program.cassette, system=program.system),
        on_miss="live",
        keys=keys_of(program.env),
    )
    code = await run_program(
        program.argv,
        session,
        upstreams=program.upstreams,
        cwd=program.cwd,
        env=program.env,
        permission=permission,
        reads=program.reads,
        input_data=program.given,
    )
    return code, session


def _python(request: AgentRequest, setup: AgentSetup, listen: int | None) -> Program:
    options = read_options(PythonOptions, setup.name, setup.config)
    project = project_environment(
        setup.base_dir,
        targets=(options.callable,),
        interpreter=options.python,
        path=places_of(options.callable, options.path, setup.base_dir, setup.trusted),
        config=setup.config,
    )
    document = request_document(request, options.settings)
    job = {
        "folder": str(project.folder),
        "path": [str(place) for place in project.path],
        "last": [str(place) for place in project.last],
        "target": options.callable,
        "request": document,
        "how": mapping_of(options, document),
        "listen": listen,
        "readers": reader_files(),
    }
    # The started program removes it once it has read it.
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False, encoding="utf-8") as file:
        json.dump(job, file, default=str)
    python = [project.program] if project.program else [sys.executable, "-P"]
    if listen is not None:
        python += ["-X", "frozen_modules=off"]  # debugpy can't stop in modules that are frozen into the interpreter
    variables = {**project.variables({**setup.env, **options.env})}
    return Program((*python, str(_DEBUGGED), file.name), project.folder, variables, upstreams(variables))


def _command(request: AgentRequest, setup: AgentSetup, listen: int | None) -> Program:
    if listen is not None:
        raise AgentevalError(
            f"agent {setup.name!r} is a program: agenteval can't make it wait for an editor",
            fix="write that into its command: [python, -m, debugpy, --listen, '5678', --wait-for-client, agent.py]",
        )
    options = read_options(CommandOptions, setup.name, setup.config)
    folder = folder_of(options.cwd, setup.base_dir, setup.trusted)
    variables = {**setup.env, **options.env}
    argv = tuple(words_for(request, options))
    return Program(argv, folder, variables, upstreams(variables), reads=False, given=input_of(request, options))
