"""The kind `python`: what a function is called with, what it may give, and that runs do not see each other."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import venv
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from programs import lives, until

from agenteval_tui.agents.base import AgentRequest, Done, Failed, Prepared, Preparing, Printed, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process import child_pool, python_child
from agenteval_tui.agents.process.python_tree import Lease
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.codec import from_json, to_json
from agenteval_tui.transcripts.model import Message, RunError, ToolCall, Usage

from .conftest import Run, run_in

ALLOWED = permission_for((), everything=True)


MODULE = r"""
import asyncio, dataclasses, json, os, sys, time

def text(prompt): return "Hi " + prompt
def question(what, *, seed): return f"{what} {seed}"
async def later(messages): await asyncio.sleep(0); return messages[-1]["content"]
def gradio(message, history):
    return json.dumps([message, history])
def grows(message, history):
    for end in range(1, len(message) + 1):
        yield message[:end]
async def streams(message, history):
    for letter in message:
        yield letter
def continues(chat_history, **more):
    return json.dumps(chat_history)
def remembers(message, chat_history=None):
    return json.dumps([message, chat_history])
def whole(request): return json.dumps(request)
def two(prompt, context, config, turn=0, other=5): return json.dumps([prompt, context, config, turn, other])
def needs(prompt, database): return "x"
def pieces(prompt):
    yield "a"
    yield {"type": "tool_call", "id": "1", "name": "f", "arguments": {"x": 1}}
    yield {"type": "tool_result", "id": "1", "result": 2}
    yield "b"
    return {"type": "usage", "input_tokens": 5}
async def flow(prompt):
    yield "a"
    await asyncio.sleep(0)
    yield {"type": "done", "model": "m"}
    yield "not counted"
def openai(prompt): return {"role": "assistant", "content": "ok", "tool_calls": [
    {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}}]}
def conversation(messages): return {"messages": [{"role": "system", "content": "Be brief."}, *messages,
    {"type": "ai", "content": "", "tool_calls": [{"name": "f", "args": {"x": 1}, "id": "1", "type": "tool_call"}]},
    {"type": "tool", "content": "2", "tool_call_id": "1", "status": "error"},
    {"type": "ai", "content": [{"type": "text", "text": "ok"}],
     "usage_metadata": {"input_tokens": 3, "output_tokens": 1}}]}
def completion(prompt): return {"choices": [{"message": {"content": "ok"}, "finish_reason": "length"}], "model": "m",
    "usage": {"prompt_tokens": 3}}
@dataclasses.dataclass
class Answer:
    output: str
    cost: float = 0.5
def dataclass(prompt): return Answer("ok")
class Model:
    def __init__(self, **fields): self.fields = fields
    def model_dump(self, mode): return self.fields
def model(prompt): return Model(city="Bern")
class Agent:
    def run(self, prompt): return Model(final_output="ok")
    def __call__(self, prompt): return {"answer": "ok", "tool_calls": [{"name": "f", "args": {"x": 1}, "result": [2]}]}
agent = Agent()
def number(prompt): return 42
from typing import Any, Dict, TypedDict
class Row(TypedDict):
    question: str
def rows(inputs): return {"answer": inputs["question"]}
def typed_rows(inputs: Dict[str, Any]) -> dict: return {"answer": inputs.get("question")}
def quoted_rows(example: "dict[str, str]"): return example["question"]
def inputs_of_a_class(row: Row): return row["question"]
def messages_of(inputs: dict): return inputs["messages"][-1]["content"]
def wrong_row(inputs: dict): return inputs["topic"]
def beside(prompt): return {"answer": "ok", "latency_ms": 12, "sources": ["a", "b"], "lock": object(), "model": "m"}
def beside_graph(prompt): return {"messages": [{"role": "assistant", "content": "ok"}], "documents": ["a"]}
def much_beside(prompt): return {"answer": "ok", "more": "x" * 300_000}
def nothing(prompt): print("said"); return None
def forgot(prompt): prompt + "!"
async def later_nothing(prompt): await asyncio.sleep(0)
def no_pieces(prompt):
    if prompt == "never": yield "x"
def none_pieces(prompt):
    yield None
async def no_flow(prompt):
    if prompt == "never": yield "x"
def empty(prompt): return ""
def empty_pieces(prompt): yield ""
def usage(prompt): return [{"type": "text", "text": "ok"}, {"type": "usage", "input_tokens": -5, "output_tokens": 3,
    "cost": float("inf")}]
def odd(prompt): return object()
def event(prompt): yield {"type": "tool_result", "id": "x"}
def raises(prompt): raise KeyError("x")
class WrongTarget(Exception): pass
def misses(prompt): raise WrongTarget("no such shop")
def leaves(prompt): sys.exit("gone")
def dies(prompt): sys.stderr.write("last words"); sys.stderr.flush(); os._exit(7)
def half(prompt):
    yield "a"
    raise ValueError("no more")
def sleeps(prompt): time.sleep(600)
def reads(prompt): return repr(sys.stdin.read())
def flood(prompt):
    while True: yield "x" * 100_000
def environment(prompt): return os.environ["MINE"] + os.path.basename(os.getcwd())
count = 0
def counts(prompt):
    global count
    count += 1
    return f"{os.getpid()} {count}"
async def keeps(prompt):
    import subprocess
    child = subprocess.Popen(["sleep", "600"])
    yield f"{os.getpid()} {child.pid}"
    time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _module(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")


def python(name: str, **more: Any) -> dict[str, Any]:
    return {"kind": "python", "callable": f"mine:{name}", **more}


in_module_loop = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def run_function(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Run]:
    """For tests of what a function is called with and gives: all runs are forked off one process that has imported the
    functions (`Lease`), which would else be started for each test."""
    folder = tmp_path_factory.mktemp("functions")
    (folder / "mine.py").write_text(MODULE, encoding="utf-8")
    lease = Lease()
    yield run_in(folder)
    await lease.close()


def failure(ran: Any) -> RunError:
    assert isinstance(ran.events[-1], Failed)
    assert sum(isinstance(event, Done | Failed) for event in ran.events) == 1
    return ran.events[-1].error


@in_module_loop
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("text", "Hi hello"),
        ("question", "hello 7"),
        ("later", "hello"),
        ("two", '["hello", {"a": 1}, {"b": 2}, 3, 5]'),
        ("dataclass", "ok"),
        ("model", '{"city": "Bern"}'),
        ("agent.run", "ok"),
        ("number", "42"),
        ("empty", ""),
        ("empty_pieces", ""),
        ("reads", "''"),
    ],
)
async def test_what_it_is_called_with_and_returns(run_function: Run, name: str, answer: str) -> None:
    ran = await run_function(python(name, settings={"b": 2}), context={"a": 1}, seed=7, turn=3)
    assert (ran.transcript.error, ran.transcript.final_output) == (None, answer)


@in_module_loop
@pytest.mark.parametrize(
    ("name", "said", "missing"),
    [
        ("nothing", "returned nothing (None)", "return"),
        ("forgot", "returned nothing (None)", "return"),
        ("later_nothing", "returned nothing (None)", "return"),
        ("no_pieces", "yielded nothing", "yield"),
        ("none_pieces", "yielded nothing", "yield"),
        ("no_flow", "yielded nothing", "yield"),
    ],
)
async def test_a_function_that_gives_nothing_is_an_error(run_function: Run, name: str, said: str, missing: str) -> None:
    ran = await run_function(python(name))
    failed = ran.events[-1]
    assert isinstance(failed, Failed)
    assert (failed.error.kind, failed.error.message) == ("protocol", f"mine:{name} {said}")
    assert f"is `{missing}` missing?" in failed.error.fix


@in_module_loop
@pytest.mark.parametrize("name", ["rows", "typed_rows", "quoted_rows", "inputs_of_a_class"])
async def test_a_function_that_takes_a_row_as_a_dict(run_function: Run, name: str) -> None:
    ran = await run_function(python(name), variables={"question": "Which?", "expected_value": "x"})
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "Which?")


@in_module_loop
async def test_a_row_without_variables_has_the_prompt_by_every_name(run_function: Run) -> None:
    ran = await run_function(python("rows"))
    assert ran.transcript.final_output == "hello"
    ran = await run_function(python("messages_of"))
    assert ran.transcript.final_output == "hello"
    ran = await run_function(python("wrong_row"))
    assert "KeyError: 'topic (there is: input)'" in failure(ran).message


@in_module_loop
async def test_what_a_function_returns_beside_its_answer_is_kept(run_function: Run) -> None:
    ran = await run_function(python("beside"))
    assert ran.transcript.final_output == "ok"
    assert ran.transcript.outputs == {"answer": "ok", "latency_ms": 12, "sources": ["a", "b"]}
    assert from_json(to_json(ran.transcript)) == ran.transcript
    ran = await run_function(python("beside_graph"))
    assert ran.transcript.outputs == {"documents": ["a"]}
    assert (await run_function(python("text"))).transcript.outputs == {}
    ran = await run_function(python("much_beside"))
    assert (ran.transcript.final_output, ran.transcript.outputs) == ("ok", {})
    assert [note.code for note in ran.transcript.notes if note.code == "left_out"]


@in_module_loop
async def test_figures_that_can_not_be_so_are_not_counted(run_function: Run) -> None:
    ran = await run_function(python("usage"))
    assert ran.transcript.error is None
    assert ran.transcript.usage == Usage(None, 3)
    (note,) = ran.transcript.notes
    assert note.code == "usage"
    assert "input_tokens = -5" in note.description


@in_module_loop
@pytest.mark.parametrize("name", ["pieces", "conversation", "openai", "agent"])
async def test_tool_calls_are_seen(run_function: Run, name: str) -> None:
    ran = await run_function(python(name))
    assert ran.transcript.error is None
    (call,) = ran.transcript.tool_calls
    assert (call.name, call.arguments) == ("f", {"x": 1})
    result = {"pieces": "2", "conversation": "2", "openai": None, "agent": "[2]"}[name]
    status = {"conversation": "error", "openai": "pending"}.get(name, "ok")
    assert (call.result, call.status) == (result, status)
    assert ran.transcript.final_output == ("b" if name == "pieces" else "ok")
    roles = [message.role for message in ran.transcript.messages]
    assert roles == (["user", "assistant"] if name == "openai" else ["user", "assistant", "tool", "assistant"])


@in_module_loop
async def test_usage_model_and_reason(run_function: Run) -> None:
    assert (await run_function(python("pieces"))).transcript.usage == Usage(5)
    assert (await run_function(python("conversation"))).transcript.usage == Usage(3, 1)
    transcript = (await run_function(python("completion"))).transcript
    assert (transcript.usage, transcript.model, transcript.finish_reason) == (Usage(3), "m", "length")
    ran = await run_function(python("flow"))
    assert isinstance(ran.events[0], Preparing)
    assert isinstance(ran.events[1], Prepared)
    assert ran.events[2:] == [TextDelta("a"), Done("stop", "m")]


@in_module_loop
async def test_a_conversation_with_earlier_calls(run_function: Run) -> None:
    messages = (
        Message("user", "one"),
        Message("assistant", "", tool_calls=(0,)),
        Message("tool", "r", tool_call=0),
        Message("assistant", "so"),
        Message("user", "two"),
    )
    calls = (ToolCall("c", "f", {"x": 1}, "r"),)
    ran = await run_function(python("conversation"), messages=messages, tool_calls=calls)
    assert len(ran.transcript.messages) == len(messages) + 3
    said = json.loads(
        (await run_function(python("whole"), messages=messages, tool_calls=calls)).transcript.final_output
    )
    assert (said["prompt"], said["messages"][1]["tool_calls"][0]["id"]) == ("two", "c")


@in_module_loop
async def test_a_function_for_a_chat_gets_the_messages_before_the_prompt(run_function: Run) -> None:
    messages = (Message("user", "one"), Message("assistant", "so"), Message("user", "two"))
    before = [{"role": "user", "content": "one"}, {"role": "assistant", "content": "so"}]
    for name, without in (("gradio", []), ("remembers", None)):
        ran = await run_function(python(name), messages=messages)
        assert json.loads(ran.transcript.final_output) == ["two", before]
        ran = await run_function(python(name), "one")
        assert json.loads(ran.transcript.final_output) == ["one", without]


@in_module_loop
async def test_a_function_that_takes_only_a_history_gets_the_prompt_in_it(run_function: Run) -> None:
    messages = (Message("user", "one"), Message("assistant", "so"), Message("user", "two"))
    ran = await run_function(python("continues"), messages=messages)
    assert [message["content"] for message in json.loads(ran.transcript.final_output)] == ["one", "so", "two"]


@in_module_loop
@pytest.mark.parametrize("name", ["grows", "streams"])
async def test_a_function_for_a_chat_may_stream_the_whole_text_so_far(run_function: Run, name: str) -> None:
    ran = await run_function(python(name), "letters")
    assert ran.transcript.final_output == "letters"
    assert [event.text for event in ran.events if isinstance(event, TextDelta) and event.text] == list("letters")


@in_module_loop
@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("raises", "program", "mine:raises raised KeyError: 'x' (mine.py, line "),
        ("misses", "program", "mine:misses raised WrongTarget: no such shop (mine.py, line "),
        ("leaves", "program", "mine:leaves raised SystemExit: gone"),
        ("dies", "program", "ended without an answer, its process ended with exit code 7: last words"),
        ("half", "program", "raised ValueError: no more"),
        ("needs", "program", "is not given 'database'"),
        ("absent", "program", "has no attribute 'absent'"),
        ("odd", "program", "an agent can't give an object"),
        ("event", "protocol", "the call 'x', which was not made"),
        ("sleeps", "timeout", "mine:sleeps gave no sign for 0.3 s"),
        ("flood", "program", "mine:flood gave more than 1 MB, 0.1 MB of it in one `text`"),
    ],
)
async def test_what_goes_wrong_is_said(run_function: Run, name: str, kind: str, said: str) -> None:
    error = failure(
        await run_function(python(name, timeouts={"first_token": 0.3 if name == "sleeps" else 60}, max_reply_mb=1))
    )
    assert (error.kind, said in error.message) == (kind, True), error


async def test_a_module_that_is_not_there(run_agent: Run) -> None:
    error = failure(await run_agent({"kind": "python", "callable": "absent:f"}))
    assert "No module named 'absent'" in error.message
    assert "`path`" in error.fix
    error = failure(await run_agent(python("text", python="no-such-python")))
    assert "no program 'no-such-python'" in error.message


async def test_its_surroundings(run_agent: Run, tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "deep.py").write_text("from mine import text as f")
    ran = await run_agent({"kind": "python", "callable": "deep:f", "path": ["lib"]})
    assert ran.transcript.final_output == "Hi hello"
    ran = await run_agent(python("environment", env={"MINE": "x/"}))
    assert ran.transcript.final_output == f"x/{tmp_path.name}"


async def test_another_interpreter(run_agent: Run, tmp_path: Path) -> None:
    venv.create(tmp_path / "own", symlinks=True)
    (tmp_path / "where.py").write_text("import sys\ndef f(prompt): return sys.prefix")
    ran = await run_agent({"kind": "python", "callable": "where:f", "python": "own/bin/python"})
    assert Path(ran.transcript.final_output) == (tmp_path / "own").resolve()
    assert str(tmp_path) not in sys.prefix


@pytest.mark.parametrize("reuse", [False, True])
async def test_runs_share_a_process_only_if_asked(tmp_path: Path, reuse: bool) -> None:
    agent = make_agent("a", python("counts", reuse=reuse), base_dir=tmp_path, env={}, permission=ALLOWED)

    async def one() -> tuple[int, int]:
        events = [event async for event in agent.run(AgentRequest((Message("user", "x"),)))]
        pid, count = "".join(event.text for event in events if isinstance(event, TextDelta)).split()
        return int(pid), int(count)

    first, second = await one(), await one()
    assert (first[0] == second[0], second[1]) == (reuse, 2 if reuse else 1)
    assert lives(first[0]) == reuse
    together = await asyncio.gather(one(), one(), one())
    pids = {pid for pid, _ in together}
    assert (first[0] in pids and len(pids) <= 3) if reuse else len(pids) == 3
    await agent.close()
    await until(lambda: not any(lives(pid) for pid, _ in [first, *together]), "the end of all processes")


LOOP_IN_A_THREAD = """\
import asyncio, threading
loop = asyncio.new_event_loop()
asyncio.set_event_loop(loop)
async def echo(text): return text
def begin():
    begun = threading.Event()
    loop.call_soon_threadsafe(begun.set)
    threading.Thread(target=loop.run_forever, daemon=True).start()
    begun.wait()
async def at_import(prompt):
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(echo(prompt), loop))
def at_a_call(prompt):
    if not loop.is_running(): begin()
    return at_import(prompt)
"""


@pytest.mark.parametrize("name", ["at_import", "at_a_call"])
async def test_a_loop_of_the_project_may_run_in_a_thread(tmp_path: Path, name: str) -> None:
    ending = "begin()\n" if name == "at_import" else ""
    (tmp_path / "looping.py").write_text(LOOP_IN_A_THREAD + ending)
    config = {"kind": "python", "callable": f"looping:{name}", "reuse": True}
    agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)
    for _ in range(2):
        events = [event async for event in agent.run(AgentRequest((Message("user", "x"),)))]
        assert TextDelta("x") in events, events[-1]
    await agent.close()


MEETING = """\
import os, pathlib, time
def f(prompt):
    word, number = prompt.split()
    pathlib.Path(word + str(os.getpid())).touch()
    while len(list(pathlib.Path(".").glob(word + "*"))) < int(number):
        time.sleep(0.005)
    return str(os.getpid())
"""


IMPORTED_SLOWLY = """\
pathlib.Path("module" + str(os.getpid())).touch()
while not pathlib.Path("go").exists():
    time.sleep(0.005)
"""


class Meeting:
    """Calls of one agent that reuses its processes; "word 3" ends when three processes were given such a word."""

    def __init__(self, folder: Path) -> None:
        (folder / "meeting.py").write_text(MEETING)
        config = {"kind": "python", "callable": "meeting:f", "reuse": True}
        self.agent = make_agent("a", config, base_dir=folder, env={}, permission=ALLOWED)

    async def ask(self, text: str) -> str:
        """The process that answered."""
        events = [event async for event in self.agent.run(AgentRequest((Message("user", text),)))]
        assert isinstance(events[-1], Done), events[-1]
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    async def all(self, text: str, times: int) -> list[str]:
        """So many requests at once."""
        return await asyncio.gather(*(self.ask(text) for _ in range(times)))


async def test_requests_wait_for_a_process_that_is_free_in_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BUSY_S", "STARTING_S"):
        monkeypatch.setattr(child_pool, name, 60.0)  # a moment, on a machine that has much to do
    meeting = Meeting(tmp_path)
    assert len(set(await meeting.all("a 1", 8))) == 1
    assert len(set(await meeting.all("b 1", 8))) == 1
    await meeting.agent.close()


async def test_a_busy_moment_brings_one_more_process_and_not_one_for_each_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(child_pool, "STARTING_S", 60.0)
    meeting = Meeting(tmp_path)
    (tmp_path / "meeting.py").write_text(MEETING + IMPORTED_SLOWLY)
    (tmp_path / "go").touch()
    await meeting.ask("a 1")
    (tmp_path / "go").unlink()
    asked = asyncio.ensure_future(meeting.all("b 2", 8))
    await until(lambda: len(list(tmp_path.glob("module*"))) > 1, "the start of another")
    monkeypatch.setattr(child_pool, "BUSY_S", 60.0)
    (tmp_path / "go").touch()
    assert len(set(await asked)) == len(list(tmp_path.glob("module*"))) == 2
    await meeting.agent.close()


async def test_requests_that_take_long_get_as_many_processes_as_they_are(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    first = await meeting.all("a 4", 4)
    assert len(set(first)) == 4
    # All are there: the next requests find them, in whatever order, and no more are started.
    assert set(await meeting.all("b 4", 4)) == set(first)
    more = await meeting.all("d 5", 5)
    assert len(set(more)) == 5
    assert set(first) < set(more)
    await meeting.agent.close()
    await until(lambda: not any(lives(int(pid)) for pid in more), "the end of all processes")


async def test_who_is_cancelled_while_it_waits_for_a_process_keeps_none(tmp_path: Path) -> None:
    meeting = Meeting(tmp_path)
    held = asyncio.ensure_future(meeting.ask("held 2"))
    await until(lambda: any(tmp_path.glob("held*")), "the first call")
    for wait in (0.0, 0.001, 0.005, 0.019, 0.021):
        waiting = [asyncio.ensure_future(meeting.ask("x 1")) for _ in range(3)]
        await asyncio.sleep(wait)
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
    other = await meeting.ask("held 2")
    assert other != await held
    # Both are free again, whatever became of those who waited.
    assert len(set(await meeting.all("two 2", 2)) | {other, await held}) == 2
    await meeting.agent.close()


async def test_requests_that_wait_hear_of_a_process_that_can_not_be_started(tmp_path: Path) -> None:
    config = {"kind": "python", "callable": "m:f", "reuse": True, "python": "no-such-python"}
    agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)

    async def one() -> Any:
        return [event async for event in agent.run(AgentRequest((Message("user", "x"),)))][-1]

    ended = await asyncio.gather(*(one() for _ in range(5)))
    assert [type(event) for event in ended] == [Failed] * 5
    await agent.close()


async def test_a_process_that_falls_frees_those_that_wait_for_it(tmp_path: Path) -> None:
    (tmp_path / "falls.py").write_text(
        "import os\ndef f(prompt): os._exit(3) if prompt == 'die' else None; return 'ok'"
    )
    config = {"kind": "python", "callable": "falls:f", "reuse": True}
    agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)

    async def one(text: str) -> Any:
        return [event async for event in agent.run(AgentRequest((Message("user", text),)))][-1]

    ended = await asyncio.gather(*(one(text) for text in ["die", "a", "die", "b", "c", "die"]))
    assert [type(event) for event in ended] == [Failed, Done, Failed, Done, Done, Failed]
    await agent.close()


async def test_a_process_that_fell_is_not_used_again(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(
        "import os\ndef f(prompt): os._exit(1) if prompt == 'die' else None; return 'ok'"
    )
    agent = make_agent(
        "a", {"kind": "python", "callable": "first:f", "reuse": True}, base_dir=tmp_path, env={}, permission=ALLOWED
    )
    ends = []
    for text in ("a", "die", "b", "die", "c"):
        events = [event async for event in agent.run(AgentRequest((Message("user", text),)))]
        ends.append(type(events[-1]))
    assert ends == [Done, Failed, Done, Failed, Done]
    await agent.close()


async def test_a_run_has_nothing_that_earlier_runs_of_its_process_wrote(tmp_path: Path) -> None:
    (tmp_path / "writes.py").write_text("import os\ndef f(prompt): os.write(2, prompt.encode()); return 'ok'")
    config = {"kind": "python", "callable": "writes:f", "reuse": True}
    agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)
    written = []
    for text in ("first" * 20_000, "second"):
        events = [event async for event in agent.run(AgentRequest((Message("user", text),)))]
        written.append("".join(event.text for event in events if isinstance(event, Printed)))
    await agent.close()
    assert written[1] == "second"


async def test_nothing_outlives_a_cancelled_run(tmp_path: Path) -> None:
    agent = make_agent("a", python("keeps", reuse=True), base_dir=tmp_path, env={}, permission=ALLOWED)
    pids: list[int] = []

    async def run() -> None:
        async for event in agent.run(AgentRequest((Message("user", "x"),))):
            if isinstance(event, TextDelta):
                pids.extend(int(one) for one in event.text.split())

    task = asyncio.create_task(run())
    await until(lambda: len(pids) == 2, "the start")
    task.cancel()
    await asyncio.wait([task])
    await until(lambda: not any(lives(pid) for pid in pids), "the end of both processes")
    await agent.close()


async def test_the_check_finds_the_function(tmp_path: Path) -> None:
    report = await make_agent("a", python("text"), base_dir=tmp_path, env={}, permission=ALLOWED).check()
    assert (report.ok, report.steps[0].name) == (True, "reachable")
    report = await make_agent("a", python("pieces"), base_dir=tmp_path, env={}, permission=ALLOWED).check(thorough=True)
    assert [(step.name, step.ok) for step in report.steps] == [("reachable", True), ("streams", True), ("tools", True)]
    for name, said in (("absent", "no attribute 'absent'"), ("count", "is an int, not a function or an agent")):
        report = await make_agent("a", python(name), base_dir=tmp_path, env={}, permission=ALLOWED).check()
        assert not report.ok
        assert said in report.message


@pytest.mark.parametrize("target", ["mine", "mine:", ":f", "mine.py:f x", "a-b:c", 3])
def test_a_callable_is_written_with_a_colon(target: Any) -> None:
    assert len(option_problems("a", {"kind": "python", "callable": target})) == 1


def test_a_function_needs_a_permission(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="this needs your trust: python agent"):
        make_agent("a", python("text", path=["../lib"]), base_dir=tmp_path, env={})


async def test_a_function_does_not_outlive_whoever_asked(tmp_path: Path) -> None:
    """As after `kill -9`: nobody is left to end the process, so it does that itself."""
    code = """
import asyncio, os, sys
from pathlib import Path
from agenteval_tui.agents.base import AgentRequest, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process import child_pool, python_child
from agenteval_tui.agents.process.python_tree import Lease
from agenteval_tui.agents.registry import make_agent
from agenteval_tui.transcripts.model import Message
async def main():
    config = {"kind": "python", "callable": "mine:keeps"}
    allowed = permission_for((), everything=True)
    agent = make_agent("a", config, base_dir=Path("."), env=dict(os.environ), permission=allowed)
    async for event in agent.run(AgentRequest((Message("user", "x"),))):
        if isinstance(event, TextDelta):
            print(event.text, flush=True)
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    pids = [int(one) for one in (await process.stdout.readline()).split()]
    assert len(pids) == 2
    assert all(lives(pid) for pid in pids)
    process.kill()
    await process.wait()
    await until(lambda: not any(lives(pid) for pid in pids), "the end of both processes")


def test_what_is_no_request_is_said_and_ends_nothing(tmp_path: Path) -> None:
    asked = (
        "",
        "  ",
        "no request",
        "[]",
        '{"id": 1, "do": "dance"}',
        '{"id": 2, "do": "find", "target": "json:dumps"}',
    )
    own, its = socket.socketpair()
    command = [sys.executable, python_child.__file__]
    with own, subprocess.Popen(command, stdin=its, stderr=subprocess.PIPE, cwd=tmp_path) as child:
        its.close()
        own.sendall("\n".join((*asked, "")).encode())
        with own.makefile("r") as lines:
            assert json.loads(lines.readline()) == {"id": 0}
            answers = [json.loads(lines.readline()) for _ in range(4)]
        own.shutdown(socket.SHUT_WR)
        assert child.communicate(timeout=250) == (None, b"")
    assert child.returncode == 0
    assert [(one["id"], "raised" in one) for one in answers] == [(None, True), (None, True), (1, True), (2, False)]
    assert "this line is not a request" in answers[0]["raised"]


@in_module_loop
async def test_a_function_with_a_prompt_and_a_history_can_not_go_on_after_the_prompt(run_function: Run) -> None:
    said = (Message("user", "hello"), Message("assistant", "", tool_calls=(0,)), Message("tool", "F", tool_call=0))
    calls = (ToolCall("a", "find", {}, "F", message=1),)
    error = (await run_function(python("gradio"), messages=said, tool_calls=calls)).transcript.error
    assert error is not None
    assert "can't continue a conversation that has answers after it" in error.message
    everything = await run_function(python("continues"), messages=said, tool_calls=calls)
    assert [message["role"] for message in json.loads(everything.transcript.final_output)] == [
        *("user", "assistant", "tool")
    ]
