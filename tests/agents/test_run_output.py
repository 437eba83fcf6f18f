"""What an agent's code prints and logs: where it came, with its time, bounded, and without secrets."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.base import AgentRequest, Done, Printed
from agenteval_tui.agents.recorder import OUTPUT_KEPT, Recorder
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Message, Output, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor

from .conftest import ALLOWED, Run

AGENT = """
import logging, os, subprocess, sys
log = logging.getLogger("shop")
logging.basicConfig(stream=sys.stderr, level=logging.INFO)
print("imported")

def answer(prompt):
    print("looking")
    yield {"type": "tool_call", "id": "1", "name": "find", "arguments": {}}
    log.warning("order %s is late", 3)
    log.debug("not wanted")
    sys.stderr.write("careful\\n")
    yield {"type": "tool_result", "id": "1", "result": "x"}
    subprocess.run(["echo", "from a program"], check=True)
    print("half", end="")
    yield "done"

def breaks(prompt):
    print("before")
    raise ValueError("x")

def dies(prompt):
    print("last words")
    os._exit(3)

def secret(prompt):
    print("key:", os.environ["SHOP_API_KEY"])
    return "x"

def much(prompt):
    for number in range(20_000):
        print("line", number)
    return "x"

def closes(prompt):
    sys.stdout.close()
    return "x"

def fileno(prompt):
    os.write(sys.stdout.fileno(), b"by number\\n")
    sys.stdout.buffer.write(b"by bytes\\n")
    sys.stdout.reconfigure(line_buffering=False)
    return "x"

def configures(prompt):
    for handler in logging.root.handlers[:]:
        logging.root.removeHandler(handler)
    logging.basicConfig(stream=sys.stdout, level=logging.DEBUG, format="<%(message)s>")
    log.debug("fine")
    return "x"
"""


@pytest.fixture
def ran(tmp_path: Path, run_agent: Run) -> Any:
    (tmp_path / "agent.py").write_text(AGENT)

    async def run(name: str, **env: str) -> Transcript:
        return (await run_agent({"kind": "python", "callable": f"agent:{name}"}, env=env)).transcript

    return run


def told(transcript: Transcript) -> list[tuple[str, str]]:
    return [(piece.source, piece.text) for piece in transcript.output]


async def test_it_is_beside_the_step_at_which_it_came(ran: Any) -> None:
    transcript = await ran("answer")
    assert told(transcript) == [
        ("stderr", "imported\n"),
        ("stdout", "looking\n"),
        ("log", "order 3 is late"),
        ("stderr", "careful\n"),
        ("stdout", "half"),
        ("stderr", "from a program\n"),
    ]
    assert (transcript.output[2].level, transcript.output[2].logger) == ("WARNING", "shop")
    times = [piece.at_ms for piece in transcript.output]
    assert times == sorted(times)


@pytest.mark.parametrize(("name", "text"), [("breaks", "before\n"), ("dies", "last words\n")])
async def test_it_is_kept_when_the_agent_breaks(ran: Any, name: str, text: str) -> None:
    transcript = await ran(name)
    assert transcript.error is not None
    assert told(transcript) == [("stderr", "imported\n"), ("stdout", text)]


async def test_secrets_are_not_in_it(ran: Any) -> None:
    assert told(await ran("secret", SHOP_API_KEY="very-secret-value"))[1:] == [("stdout", "key: ***\n")]


async def test_of_much_the_end_is_kept(ran: Any) -> None:
    transcript = await ran("much")
    assert transcript.error is None
    assert sum(len(piece.text) for piece in transcript.output) <= OUTPUT_KEPT
    assert transcript.output[-1].text.endswith("line 19999\n")


@pytest.mark.parametrize(("name", "texts"), [("closes", ""), ("fileno", "by bytes\nby number\n")])
async def test_code_that_handles_the_streams_themselves(ran: Any, name: str, texts: str) -> None:
    transcript = await ran(name)
    assert transcript.final_output == "x"
    assert "".join(piece.text for piece in transcript.output[1:]) == texts


async def test_logging_stays_as_the_agent_configures_it(ran: Any) -> None:
    transcript = await ran("configures")
    assert told(transcript)[1:] == [("log", "fine")]


IMPORTED = """
import os, sys, threading
print("short")
print("at import", os.environ["SHOP_API_KEY"])
{end}
def f(prompt):
    print("in the run")
    return "x"
"""


@pytest.mark.parametrize(
    ("end", "error"),
    [
        ("raise ValueError('no')", "ValueError: no (agent.py, line 5)"),
        ("sys.exit(3)", "SystemExit: 3 (agent.py, line 5)"),
        ("os._exit(3)", "exit code 3"),
        ("os.abort()", "SIGABRT"),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", ""),
        ("", ""),
    ],
)
async def test_what_imports_print_is_kept(tmp_path: Path, run_agent: Run, end: str, error: str) -> None:
    (tmp_path / "agent.py").write_text(IMPORTED.format(end=end))
    config = {"kind": "python", "callable": "agent:f"}
    transcript = (await run_agent(config, env={"SHOP_API_KEY": "very-secret-value"})).transcript
    assert error in ("" if transcript.error is None else transcript.error.message)
    assert (transcript.error is None) == (not error)
    assert transcript.output[0].text.startswith("short\nat import ***\n")
    assert told(transcript)[1:] == ([] if error else [("stdout", "in the run\n")])


async def test_of_much_that_imports_print_the_end_is_kept(tmp_path: Path, run_agent: Run) -> None:
    (tmp_path / "agent.py").write_text("print('x' * 5_000_000 + 'end')\ndef f(prompt): return 'x'\n")
    transcript = (await run_agent({"kind": "python", "callable": "agent:f"})).transcript
    (piece,) = transcript.output
    assert (len(piece.text), piece.text[-4:]) == (16_000, "end\n")


FORKS = """
import logging, os, sys
def f(prompt):
    pid = os.fork()
    if pid == 0:
        print("the child prints")
        logging.warning("the child logs")
        os._exit(7)
    return str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


async def test_what_a_child_of_the_agent_prints_is_kept_and_does_not_end_it(tmp_path: Path, run_agent: Run) -> None:
    (tmp_path / "agent.py").write_text(FORKS)
    transcript = (await run_agent({"kind": "python", "callable": "agent:f"})).transcript
    assert transcript.final_output == "7"
    assert told(transcript) == [("stderr", "the child prints\nWARNING:root:the child logs\n")]


def test_the_recorder_goes_on_with_an_open_line_and_lets_go_of_the_first() -> None:
    recorder = Recorder([Message("user", "hi")])
    for text in ("a", "b\n", "c\n"):
        recorder.apply(Printed("stdout", text))
    assert [piece.text for piece in recorder.transcript().output] == ["ab\n", "c\n"]
    recorder.apply(Printed("stderr", "x" * OUTPUT_KEPT))
    assert [piece.text for piece in recorder.transcript().output] == ["x" * OUTPUT_KEPT]
    recorder.apply(Printed("log", "yy"))
    assert [len(piece.text) for piece in recorder.transcript().output] == [OUTPUT_KEPT - 2, 2]


def test_it_is_stored_and_redacted() -> None:
    transcript = Transcript(
        output=(Output(1.5, "log", "key very-secret-value", "INFO", "shop"), Output(2.0, "stdout", "x"))
    )
    assert unpack_transcript(pack_transcript(transcript)[1]) == transcript
    assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript
    clean = TranscriptRedactor(["very-secret-value"]).transcript(transcript)
    assert clean.output[0].text == "key ***"


async def test_who_reads_slowly_what_an_agent_prints_is_not_cancelled(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, time\ndef f(prompt):\n    print('looking')\n"
        "    while not os.path.exists('go'): time.sleep(0.01)\n    return 'x'\n"
    )
    config = {"kind": "python", "callable": "agent:f", "timeouts": {"first_token": 2}}
    agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)
    events = []
    try:
        async with aclosing(agent.run(AgentRequest((Message("user", "hi"),)))) as running:
            async for event in running:
                events.append(event)
                if isinstance(event, Printed):
                    # Longer than the limit, which is the agent's and not ours.
                    await asyncio.sleep(3)
                    (tmp_path / "go").touch()
    finally:
        await agent.close()
    assert isinstance(events[-1], Done), events[-1]
