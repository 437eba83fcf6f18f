"""What is kept of an exception of an agent's code: from the process in which it was raised to where it is stored."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval_tui.agents.process import python_errors
from agenteval_tui.grading.causes import agent_cause
from agenteval_tui.history.blobs import pack_transcript, unpack_transcript
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import RunError, Transcript
from agenteval_tui.transcripts.redact import TranscriptRedactor
from agenteval_tui.transcripts.traceback import MOST_FRAMES, Traceback, frame_places, traceback_from

from .conftest import Run

LIBRARY = "def call(function):\n    return function()\n"
AGENT = '''
import asyncio, json, os, sys
sys.path.append("lib/site-packages")
import library

class Odd:
    def __repr__(self): raise RuntimeError("no repr")

def price(order_id, api_key, odd):
    """No order."""
    raise KeyError("missing " + order_id)

def raises(prompt):
    return price(prompt, "sk-local-secret", Odd())

def chained(prompt):
    try:
        raises(prompt)
    except KeyError as error:
        raise ValueError(f"no order for {prompt}") from error

def in_package(prompt):
    return json.loads("{" + prompt)

def through_package(prompt):
    return library.call(lambda: price(prompt, "", None))

def frozen(prompt):
    return os.environ["NO_SUCH_VARIABLE"]

async def group(prompt):
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(failing(prompt))

async def failing(prompt):
    raise ValueError("db down")

def says_secret(prompt):
    raise ValueError("key " + os.environ["SHOP_API_KEY"])

def recursive(prompt, depth=0):
    return recursive(prompt, depth + 1)

def stops(prompt):
    breakpoint()

def imports(prompt):
    import late

def moved(prompt):
    os.chdir("/")
    raise ValueError("moved")
'''


@pytest.fixture
def raised(tmp_path: Path, run_agent: Run) -> Any:
    (tmp_path / "lib" / "site-packages").mkdir(parents=True)
    (tmp_path / "lib" / "site-packages" / "library.py").write_text(LIBRARY)
    (tmp_path / "agent.py").write_text(AGENT)

    async def run(name: str, text: str = "hello", **env: str) -> RunError:
        done = await run_agent({"kind": "python", "callable": f"agent:{name}"}, text, env=env)
        assert done.transcript.error is not None
        return done.transcript.error

    return run


def frames_of(traceback: Traceback | None, exception: int = 0) -> list[tuple[str, str, bool]]:
    assert traceback is not None
    return [(frame.file, frame.function, frame.project) for frame in traceback.exceptions[exception].frames]


async def test_frames_lines_and_locals(raised: Any) -> None:
    error = await raised("raises")
    assert error.message == "agent:raises raised KeyError: 'missing hello' (agent.py, line 11)"
    assert frames_of(error.traceback) == [("agent.py", "raises", True), ("agent.py", "price", True)]
    last = error.traceback.exceptions[0].frames[-1]
    assert (last.line, last.source) == (11, 'raise KeyError("missing " + order_id)')
    assert last.locals["order_id"] == "'hello'"
    assert last.locals["api_key"] == "***"
    assert "RuntimeError" in last.locals["odd"]


async def test_a_cause_comes_with_its_frames(raised: Any) -> None:
    traceback = (await raised("chained")).traceback
    assert [(one.type, one.relation) for one in traceback.exceptions] == [("ValueError", ""), ("KeyError", "cause")]
    assert frames_of(traceback, 1)[-1] == ("agent.py", "price", True)


@pytest.mark.parametrize(
    ("name", "source", "package"),
    [
        ("in_package", "return json.loads(", "json"),
        ("frozen", "return os.environ[", "<frozen os>"),
        ("through_package", "raise KeyError(", "library.py"),
    ],
)
async def test_the_sentence_names_the_projects_own_frame(raised: Any, name: str, source: str, package: str) -> None:
    error = await raised(name)
    line = 1 + next(number for number, text in enumerate(AGENT.splitlines()) if source in text)
    assert error.message.endswith(f"(agent.py, line {line})")
    inside = [frame.file for frame in error.traceback.exceptions[0].frames if not frame.project]
    assert inside
    assert all(file.startswith((package, "os.py")) for file in inside)
    assert [frame.project for frame in (error.traceback.exceptions[0].frames[0],)] == [True]
    place = frame_places(error.traceback)[0]
    assert error.traceback.exceptions[place[0]].frames[place[1]].line == line


async def test_groups(raised: Any) -> None:
    error = await raised("group")
    assert "ValueError: db down (agent.py, line" in error.message
    assert [(one.type, one.relation, one.parent) for one in error.traceback.exceptions] == [
        ("ExceptionGroup", "", None),
        ("ValueError", "member", 0),
    ]


async def test_a_group_that_holds_what_was_never_raised_has_its_own_place(tmp_path: Path, run_agent: Run) -> None:
    (tmp_path / "agent.py").write_text("def answer(prompt):\n    raise ExceptionGroup('g', [ValueError('a')])\n")
    error = (await run_agent({"kind": "python", "callable": "agent:answer"})).transcript.error
    assert error is not None
    assert error.message.endswith("ValueError: a (agent.py, line 2)")


async def test_a_module_that_is_no_text_is_named(tmp_path: Path, run_agent: Run) -> None:
    (tmp_path / "agent.py").write_bytes("x = 1\n".encode("utf-16-le"))
    error = (await run_agent({"kind": "python", "callable": "agent:answer"})).transcript.error
    assert error is not None
    assert error.message.endswith("(agent.py)")


async def test_secrets_are_nowhere(raised: Any) -> None:
    error = await raised("says_secret", SHOP_API_KEY="very-secret-value")
    assert "very-secret" not in json.dumps(to_json(Transcript(error=error)))
    assert "***" in error.traceback.exceptions[0].message


async def test_a_recursion_is_bounded(raised: Any) -> None:
    traceback = (await raised("recursive")).traceback
    assert len(traceback.exceptions[0].frames) < 100
    assert traceback.exceptions[0].left_out > 500


async def test_a_breakpoint_says_what_to_do(raised: Any) -> None:
    error = await raised("stops")
    assert "breakpoint" in error.message
    assert "agent.py, line" in error.message
    assert "PYTHONBREAKPOINT" in error.fix


async def test_an_agent_that_changes_its_folder(raised: Any) -> None:
    assert frames_of((await raised("moved")).traceback) == [("agent.py", "moved", True)]


async def test_a_syntax_error_is_at_its_line(tmp_path: Path, run_agent: Run) -> None:
    (tmp_path / "agent.py").write_text("import broken\ndef answer(prompt): return 1\n")
    (tmp_path / "broken.py").write_text("x = 1\ny = (\n")
    done = await run_agent({"kind": "python", "callable": "agent:answer"})
    error = done.transcript.error
    assert error is not None
    assert error.traceback is not None
    last = error.traceback.exceptions[0].frames[-1]
    assert (last.file, last.line, last.source) == ("broken.py", 2, "y = (")


async def test_the_cause_is_the_same_for_other_values_and_lines(raised: Any, tmp_path: Path) -> None:
    first = agent_cause(await raised("chained", "Anna")).signature
    (tmp_path / "agent.py").write_text("# a line\n" + AGENT)
    assert agent_cause(await raised("chained", "somebody else")).signature == first
    assert agent_cause(await raised("group")).signature != first


async def test_a_program_in_python(tmp_path: Path, run_agent: Run) -> None:
    (tmp_path / "prog.py").write_text("import sys\ndef f():\n    raise KeyError('x')\nf()\n")
    done = await run_agent({"kind": "command", "command": [sys.executable, "prog.py"]})
    error = done.transcript.error
    assert error is not None
    assert error.message == f"{sys.executable} ended with exit code 1: KeyError: 'x' (prog.py, line 3)"
    assert frames_of(error.traceback) == [("prog.py", "<module>", True), ("prog.py", "f", True)]


async def test_it_is_stored_sent_and_redacted(raised: Any) -> None:
    transcript = Transcript(error=await raised("chained"))
    assert unpack_transcript(pack_transcript(transcript)[1]) == transcript
    assert from_json(json.loads(json.dumps(to_json(transcript)))) == transcript
    clean = TranscriptRedactor(["no order for hello"]).transcript(transcript)
    assert clean.error is not None
    assert clean.error.traceback is not None
    assert clean.error.traceback.exceptions[0].message == "***"


def test_what_a_program_claims_is_checked() -> None:
    frame = {"file": "a.py", "line": 1}
    assert traceback_from({"exceptions": []}) is None
    assert traceback_from({"exceptions": [{"type": 1}]}) is None
    assert traceback_from({"exceptions": [{"type": "E", "parent": 0, "relation": "cause"}]}) is None
    many = traceback_from({"exceptions": [{"type": "E", "frames": [frame] * 5000}]})
    assert many is not None
    assert len(many.exceptions[0].frames) == MOST_FRAMES
    assert many.exceptions[0].left_out == 5000 - MOST_FRAMES


def test_an_exception_whose_words_cannot_be_made() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert python_errors.words_of(OddError()) == "OddError"
    assert python_errors.traceback_of(OddError())["exceptions"][0]["message"] == ""


async def test_what_a_module_has_imported_and_defined_is_no_variable(raised: Any, tmp_path: Path) -> None:
    code = "from typing import Any\nfrom json import dumps\nlimit = 3\ndef answer(prompt: Any): ...\n"
    (tmp_path / "late.py").write_text(code + "raise LookupError(dumps(limit))\n")
    error = await raised("imports")
    assert error.traceback.exceptions[0].frames[-1].locals == {"limit": "3"}


CLIENTS = """
import httpx
import openai

def asks(prompt):
    client = openai.OpenAI(api_key="k", base_url=prompt, max_retries=0)
    return client.chat.completions.create(model="m", messages=[]).choices

async def asks_later(prompt):
    async with httpx.AsyncClient() as client:
        await client.get(f"{prompt}/x?y=secret")

def asks_with_name(prompt):
    httpx.get("http://me:secret@127.0.0.1:1/x")
"""


@pytest.mark.parametrize("name", ["asks", "asks_later"])
async def test_a_server_that_is_not_there_is_named(run_agent: Any, tmp_path: Path, name: str) -> None:
    (tmp_path / "mine.py").write_text(CLIENTS)
    with socket.socket() as bound:  # nobody listens there
        bound.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{bound.getsockname()[1]}"
        ran = await run_agent({"kind": "python", "callable": f"mine:{name}", "capture": "none"}, address)
    error = ran.events[-1].error
    assert error.fix.startswith(f"nothing answers at {address}: start that server, or correct its address"), error
    assert "secret" not in error.fix


async def test_a_server_whose_name_is_not_known_is_not_to_be_started(run_agent: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CLIENTS)
    config = {"kind": "python", "callable": "mine:asks_later", "capture": "none"}
    error = (await run_agent(config, "http://no-such-server.invalid")).events[-1].error
    assert error.fix.startswith("the name of http://no-such-server.invalid is not known here: look at the network")


async def test_what_an_error_was_raised_from_stands_in_its_line(run_agent: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CLIENTS)
    ran = await run_agent({"kind": "python", "callable": "mine:asks", "capture": "none"}, "http://127.0.0.1:1")
    assert "raised APIConnectionError: Connection error. (mine.py, line " in ran.events[-1].error.message
    assert "), caused by ConnectError: [Errno " in ran.events[-1].error.message


async def test_a_name_in_an_address_is_not_shown(run_agent: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CLIENTS)
    ran = await run_agent({"kind": "python", "callable": "mine:asks_with_name", "capture": "none"})
    assert ran.events[-1].error.fix.startswith("nothing answers at http://127.0.0.1:1: ")


EMPTY_KEY = """
import os
import httpx

def asks(prompt):
    return httpx.get(prompt, headers={"authorization": "Bearer " + os.getenv("SHOP_API_KEY", "")})
"""


async def test_a_header_without_its_key_names_the_variable(run_agent: Any, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(EMPTY_KEY)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        ran = await run_agent({"kind": "python", "callable": "mine:asks", "capture": "none"}, address)
    error = ran.events[-1].error
    assert "Illegal header value" in error.message
    assert error.fix.startswith("SHOP_API_KEY is not set (.env: none "), error
