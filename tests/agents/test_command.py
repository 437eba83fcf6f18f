"""The kind `command` with real programs: what they are told, what they say, and every way to go wrong."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from programs import executable, lives, script, until

from agenteval_tui.agents.base import AgentRequest, Done, Failed, Noted, TextDelta
from agenteval_tui.agents.permission import permission_for
from agenteval_tui.agents.process.child_process import found_in
from agenteval_tui.agents.registry import make_agent, option_problems
from agenteval_tui.core.errors import AgentevalError
from agenteval_tui.transcripts.model import ErrorCode, Message, Note, RunError, ToolCall, Usage

from .conftest import Run

ALLOWED = permission_for((), everything=True)


EVENTS = r"""
import json, sys
def say(**event): print(json.dumps(event), flush=True)
asked = json.load(sys.stdin)
say(type="reasoning", text="hm")
say(type="text", text="Looking. ")
say(type="tool_call", id="a", name="find", arguments={"q": asked["prompt"]})
say(type="tool_call", id="a", name="find", arguments='{"q": ')
say(type="tool_result", id="a", result={"n": 1}, duration_ms=5)
say(type="tool_result", id="a", error="no such thing")
say(type="text", text="Done.")
say(type="usage", input_tokens=3, output_tokens=2, cost=0.5)
say(type="usage", prompt_tokens=1, cost=0.25)
say(type="done", model="m", finish_reason="length")
print("this does not count")
sys.exit(4)
"""


def command(*words: str, **more: Any) -> dict[str, Any]:
    return {"kind": "command", "command": list(words), **more}


def python(code: str, **more: Any) -> dict[str, Any]:
    return command(sys.executable, "-c", code, **more)


def failure(ran: Any) -> RunError:
    assert isinstance(ran.events[-1], Failed)
    assert sum(isinstance(event, Done | Failed) for event in ran.events) == 1
    return ran.events[-1].error


async def test_events_become_a_transcript(run_agent: Run, tmp_path: Path) -> None:
    ran = await run_agent(command(*script(tmp_path, EVENTS)), "what?")
    transcript = ran.transcript
    assert transcript.error is None
    assert (transcript.final_output, transcript.model, transcript.finish_reason) == ("Done.", "m", "length")
    assert [message.role for message in transcript.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert transcript.messages[1].reasoning == "hm"
    first, second = transcript.tool_calls
    assert (first.arguments, first.result, first.status, first.duration_ms) == ({"q": "what?"}, '{"n": 1}', "ok", 5)
    assert (second.arguments, second.malformed, second.result, second.status) == (
        '{"q": ', True, "no such thing", "error"
    )  # fmt: skip
    assert transcript.usage == Usage(4, None, cost=0.75), "of the second request no output is known"
    assert Note("partly_counted", "2 out") in transcript.notes


async def test_the_request_holds_all_there_is(run_agent: Run) -> None:
    calls = (ToolCall("c", "f", {"x": 1}, "r"),)
    messages = (
        Message("user", "one"),
        Message("assistant", "", tool_calls=(0,)),
        Message("tool", "r", tool_call=0),
        Message("user", "grüß ✓\x00"),
    )
    ran = await run_agent(
        python("import sys; print('The request: ' + sys.stdin.read())", settings={"temperature": 0.5}, env={"K": "x"}),
        messages=messages, tool_calls=calls, context={"input_data": [1]}, test_id="t", repetition=2, seed=7, run="r",
        turn=2, variables={"day": date(2026, 1, 2)},
    )  # fmt: skip
    said = json.loads(ran.transcript.final_output.removeprefix("The request: "))
    assert said == {
        "version": 1,
        "prompt": "grüß ✓\x00",
        "messages": [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}]},
            {"role": "tool", "content": "r", "tool_call_id": "c"},
            {"role": "user", "content": "grüß ✓\x00"},
        ],
        "context": {"input_data": [1]},
        "variables": {"day": "2026-01-02"},
        "config": {"temperature": 0.5},
        "test": "t", "repetition": 2, "seed": 7, "run": "r", "turn": 2,
    }  # fmt: skip


async def test_a_text_in_a_text_out(run_agent: Run, tmp_path: Path) -> None:
    ran = await run_agent(command("cat", input="text"), 'say "{hi}"\n')
    assert ran.transcript.final_output == 'say "{hi}"'
    executable(tmp_path / "agent.sh", '#!/bin/sh\nread line; echo "$GREETING $line from $(basename "$PWD")"')
    (tmp_path / "sub").mkdir()
    config = {
        "kind": "command",
        "command": "../agent.sh 'a b'",
        "input": "text",
        "env": {"GREETING": "ho"},
        "cwd": "sub",
    }
    assert (await run_agent(config, "you")).transcript.final_output == "ho you from sub"
    config = {"kind": "command", "command": "cat | tr a-z A-Z", "shell": True, "input": "text"}
    assert (await run_agent(config, "loud")).transcript.final_output == "LOUD"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
async def test_a_program_that_waits_for_the_end_of_a_line(run_agent: Run) -> None:
    code = """
        const io = require('readline').createInterface({ input: process.stdin, output: process.stdout });
        io.question('', (question) => console.log('asked: ' + question));
    """
    ran = await run_agent(command("node", "-e", code, input="line"), "Where is\nmy order?")
    assert ran.transcript.final_output.endswith("asked: Where is my order?")


SAYS_WORDS = "import sys; print(sys.argv[1:], sys.stdin.read())"


@pytest.mark.parametrize(
    ("words", "more", "prompt", "said"),
    [
        (["{{prompt}}"], {}, "a b; 'c' $HOME {{x}}", ["a b; 'c' $HOME {{x}}"]),
        (["-q", "Q: {{ prompt }} in {{country}}"], {}, "hi", ["-q", "Q: hi in Austria"]),
        (["--in", "{{country}}", "{{prompt}}"], {"input": "text"}, "hi", ["--in", "Austria", "hi"]),
        (["{{country}}", "{{.State}}"], {"input": "none"}, "hi", ["{{country}}", "{{.State}}"]),
    ],
)
async def test_a_prompt_as_a_word(
    run_agent: Run, words: list[str], more: dict[str, Any], prompt: str, said: list[str]
) -> None:
    config = {"kind": "command", "command": [sys.executable, "-c", SAYS_WORDS, *words], **more}
    ran = await run_agent(config, prompt, variables={"country": "Austria"})
    read = "hi" if more.get("input") == "text" else ""
    assert ran.transcript.final_output == f"{said} {read}", ran.events


async def test_a_command_that_is_a_text_keeps_a_template_with_spaces_in_one_word(run_agent: Run) -> None:
    words = shlex.join([sys.executable, "-c", SAYS_WORDS])
    config = {"kind": "command", "command": f"{words} --in={{{{ country }}}} {{{{ prompt }}}}"}
    ran = await run_agent(config, "hi you", variables={"country": "Austria"})
    assert ran.transcript.final_output == "['--in=Austria', 'hi you'] ", ran.events


@pytest.mark.parametrize(
    ("word", "prompt", "said"),
    [
        ("{{prompt}} {{missing}}", "hi", "missing"),
        ("{{prompt}}", "a\0b", "a zero character"),
        ("{{prompt}}", "x" * 3_000_000, "rgument list too long"),
    ],
)
async def test_a_prompt_that_can_not_be_a_word(run_agent: Run, word: str, prompt: str, said: str) -> None:
    error = failure(await run_agent({"kind": "command", "command": [sys.executable, "-c", SAYS_WORDS, word]}, prompt))
    assert said in error.message
    assert error.fix


def test_no_prompt_in_a_text_for_the_shell() -> None:
    ((_, problem),) = option_problems("a", {"kind": "command", "command": "echo {{prompt}}", "shell": True})
    assert "`{{prompt}}` can't be in `command`: write a list of words" in problem


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('{not json')", "{not json"),
        ("print('{\"answer\": 1}')", '{"answer": 1}'),
        ('print(); print(\'{"type": "text", "text": "x"}\', end=\'\')', "x"),
        ('print(\'\ufeff{"type": "text", "text": "x"}\')', "x"),
        ('print(\'{"type": "text", "text": "\\\\ud800 x\\\\u0000"}\')', "\ufffd x\x00"),
        ("print()", ""),
        ("print('a\\n\\nb\\n\\n')", "a\n\nb"),
        ("sys.stdout.write('a\\r\\n'); sys.stdout.flush(); print('b ')", "a\r\nb "),
    ],
)
async def test_which_form_the_output_has_is_seen_from_its_first_line(run_agent: Run, code: str, answer: str) -> None:
    ran = await run_agent(python(f"import sys; sys.stdout.reconfigure(encoding='utf-8'); {code}"))
    assert (ran.transcript.error, ran.transcript.final_output) == (None, answer)


async def test_text_comes_while_the_program_still_runs(tmp_path: Path) -> None:
    code = "import os; os.write(1, b'first'); open('go').read(); os.write(1, b'second')"
    os.mkfifo(tmp_path / "go")
    agent = make_agent("a", python(code), base_dir=tmp_path, env={}, permission=ALLOWED)
    events = agent.run(AgentRequest((Message("user", "x"),)))
    assert (await anext(events)).name == "start of the process"
    assert await anext(events) == TextDelta("first")
    await asyncio.to_thread((tmp_path / "go").write_text, "go")
    assert [event async for event in events] == [
        TextDelta("second"),
        Noted(Note("text_only", "standard output")),
        Done(),
    ]


@pytest.mark.parametrize(
    ("code", "kind", "said"),
    [
        ("import sys; print('part'); sys.exit('it is\\nbroken')", "program", "exit code 1: it is broken"),
        ("import sys; print('Error: it is\\nbroken'); sys.exit(3)", "program", "exit code 3: Error: it is broken"),
        ("print('{half', end=''); raise SystemExit(3)", "program", "exit code 3: {half"),
        # What is only noted says less than what is printed.
        (
            "import sys, warnings; warnings.warn('old'); print('\x1b[92m9:01 - L:WARNING\x1b[0m: a.py:2 - slow',"
            "file=sys.stderr); print('Unknown argument: x'); sys.exit(1)",
            "program",
            "exit code 1: Unknown argument: x",
        ),
        ("import logging, sys; logging.warning('slow'); sys.exit(1)", "program", "exit code 1: WARNING:root:slow"),
        (
            "import logging, sys; print('x'); logging.error('no key'); sys.exit(1)",
            "program",
            "exit code 1: ERROR:root:no key",
        ),
        ("import sys; sys.exit('\x1b[1;31mIt fell\x1b[0m')", "program", "exit code 1: It fell"),
        ("import os; os.kill(os.getpid(), 9)", "program", "ended by the signal SIGKILL"),
        ('print(\'{"type": "text", "text": "x"}\'); print(\'{"type": "te\', end=\'\')', "protocol", "line, 2, is cut"),
        (
            'print(\'{"type": "text", "text": "x"}\'); print(\'oops\')',
            "protocol",
            "line 2 of its output is not an event",
        ),
        ('print(\'{"type": "text", "text": "x"}\'); print(\'{"type": "txt"}\')', "protocol", "did you mean 'text'?"),
        ('print(\'{"type": "tool_result", "id": "q"}\')', "protocol", "the call 'q', which was not made"),
        ('print(\'{"type": "text"}\')', "protocol", "an event of type 'text' has no `text`"),
        ('print(\'{"type": "error", "message": "no luck", "kind": "mine"}\')', "mine", "no luck"),
        ("import time; print('x', flush=True); time.sleep(100)", "timeout", "was silent for 0.7 s"),
    ],
)
async def test_what_goes_wrong_is_said(run_agent: Run, code: str, kind: str, said: str) -> None:
    ran = await run_agent(python(code, timeouts={"silence": 0.7 if kind == "timeout" else 60}))
    error = failure(ran)
    assert (error.kind, error.message.count(said)) == (kind, 1), error


@pytest.mark.parametrize(
    ("code", "named"),
    [
        ("print('Error: SHOP_API_KEY environment variable is not set.'); sys.exit(1)", "SHOP_API_KEY is not set"),
        ("import os; os.environ['SHOP_TOKEN']", "SHOP_TOKEN is not set"),
        ("print('SET_TOKEN is no good'); sys.exit(1)", ""),
        ("print('SHOP_API_KEY is not set.\\nYour key: ', end=''); sys.exit(1)", "SHOP_API_KEY is not set"),
    ],
)
async def test_a_key_that_a_program_misses(run_agent: Run, tmp_path: Path, code: str, named: str) -> None:
    (tmp_path / ".env").write_text("OTHER=1\n")
    error = failure(await run_agent(python(f"import sys; {code}"), env={"SET_TOKEN": "x", "PATH": os.environ["PATH"]}))
    assert ("is not set" in error.fix) == bool(named)
    assert error.fix.startswith(named)
    assert not named or f"=... into {tmp_path / '.env'}" in error.fix


@pytest.mark.parametrize(
    ("code", "question"),
    [
        ("print('Ready.'); input('Which model? [m]: ')", "Which model? [m]:"),
        ("print('Hello'); input('you> ')", "you>"),
        ("print('Hello'); input('\\x1b[1G\\x1b[0JUser: \\x1b[7G')", "User:"),  # as readline writes it for a terminal
        ("print('Which model? [m]:'); sys.exit(1)", ""),
        ("print('<b>bold</b>', end=''); sys.exit(1)", ""),
    ],
)
async def test_a_program_that_asks_and_gets_no_answer(run_agent: Run, code: str, question: str) -> None:
    error = failure(await run_agent(python(f"import sys; sys.stdin.read(); {code}")))
    assert ("a run can't answer" in error.fix) == bool(question)
    assert f"“{question}”" in error.fix or not question


async def test_the_last_lines_of_an_error_are_whole(run_agent: Run) -> None:
    code = "import sys; print('a warning' + ' and more' * 60, file=sys.stderr); sys.exit('Aborted.')"
    assert failure(await run_agent(python(code))).message.endswith("exit code 1: …Aborted.")


async def test_a_line_that_is_cut_off_because_the_program_fell_is_the_lesser_news(run_agent: Run) -> None:
    code = 'import sys; print(\'{"type": "text", "text": "x"}\'); print(\'{"ty\', end=\'\'); sys.exit(\'fell\')'
    error = failure(await run_agent(python(code)))
    assert (error.kind, "exit code 1: fell" in error.message) == ("program", True)


async def test_events_are_asked_for_and_text_comes(run_agent: Run) -> None:
    error = failure(await run_agent(python("print('hello')", output="jsonl")))
    assert "line 1 of its output is not an event" in error.message
    assert "line N of its output is not an event" in error.fields["fingerprint"]  # as decisions are stored with it
    assert "standard error" in error.fix
    ran = await run_agent(python('print(\'{"type": "text", "text": "x"}\')', output="text"))
    assert ran.transcript.final_output == '{"type": "text", "text": "x"}'


async def test_a_program_that_gives_no_sign(run_agent: Run) -> None:
    error = failure(await run_agent(command("sleep", "100", timeouts={"first_token": 0.2})))
    assert (error.kind, error.message) == ("timeout", "sleep gave no sign for 0.2 s")


async def test_more_input_than_a_pipe_holds(run_agent: Run) -> None:
    text = "x" * 3_000_000
    ran = await run_agent(python("import sys; print(len(sys.stdin.read()))", input="text"), text)
    assert ran.transcript.final_output == "3000000"


@pytest.mark.parametrize("code", ["import os; os.close(0); print('ok')", "print('ok')"])
async def test_a_program_that_does_not_read_its_input(run_agent: Run, code: str) -> None:
    ran = await run_agent(python(code), "x" * 3_000_000)
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "ok")


@pytest.mark.parametrize("output", ["auto", "jsonl", "text"])
async def test_a_flood_is_bounded(run_agent: Run, output: str) -> None:
    code = "import os; b = b'{' * 65536\nfor _ in range(1600): os.write(1, b)"
    ran = await run_agent(python(code, output=output, max_reply_mb=0.5))
    error = failure(ran)
    assert "wrote more than 0.5 MB" in error.message
    assert len(ran.transcript.final_output) <= 500_000


async def test_a_flood_of_errors_is_bounded_and_its_end_is_kept(run_agent: Run) -> None:
    code = "import os, sys\nfor _ in range(800): os.write(2, b'y' * 65536)\nsys.exit('the end')"
    error = failure(await run_agent(python(code)))
    assert error.message.endswith("the end")
    assert len(error.message) < 600


async def test_garbage_is_text(run_agent: Run) -> None:
    code = "import os; os.write(1, bytes(range(256)) * 40)"
    ran = await run_agent(python(code))
    assert ran.transcript.error is None
    assert ran.transcript.final_output == (bytes(range(256)) * 40).decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("words", "said", "fix"),
    [
        (["./absent.sh"], "there is no program ./absent.sh", "looked for in"),
        (["no-such-program-xyz"], "no program 'no-such-program-xyz' in PATH", "install"),
        (["plain.sh"], "no program 'plain.sh' in PATH", "write ./plain.sh"),
        (["./plain.sh"], "./plain.sh is not executable", "chmod +x"),
        (["./blank"], "no #! line", "#!/bin/sh"),
        (["./odd"], "its first line names an interpreter that does not exist (#!/no/such/thing)", "correct that line"),
        (["./folder"], "is a folder", ""),
        (["sh", "a\0b"], "null byte", ""),
    ],
)
async def test_what_can_not_be_started(run_agent: Run, tmp_path: Path, words: list[str], said: str, fix: str) -> None:
    (tmp_path / "plain.sh").write_text("#!/bin/sh\n")
    executable(tmp_path / "blank", "\x00\x01\x02")
    executable(tmp_path / "odd", "#!/no/such/thing\n")
    (tmp_path / "folder").mkdir()
    error = failure(await run_agent(command(*words)))
    assert (error.kind, said in error.message, fix in error.fix) == ("program", True, True), error


@pytest.mark.parametrize("place", ["", "packages/bot"])
async def test_a_program_of_an_installed_package_is_found_as_npm_finds_it(
    run_agent: Run, tmp_path: Path, place: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / place / "node_modules" / ".bin").mkdir(parents=True)
    executable(tmp_path / place / "node_modules" / ".bin" / "greet", "#!/bin/sh\necho hello $1\n")
    executable(tmp_path / "elsewhere", "#!/bin/sh\necho not this one\n").rename(tmp_path / "greet")
    (tmp_path / "packages" / "bot").mkdir(parents=True, exist_ok=True)
    agent = command("greet", "you", cwd="packages/bot")
    ran = await run_agent(agent, env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"})
    assert (ran.transcript.error, ran.transcript.final_output) == (None, "hello you")
    # A run in a folder of its own has the packages of the suite's.
    assert found_in(tmp_path / "packages" / "bot", tmp_path, ["greet"])[0].endswith("node_modules/.bin/greet")


@pytest.mark.parametrize(
    ("lock", "install"), [("package-lock.json", "npm install"), ("pnpm-lock.yaml", "pnpm install"), ("", "npm install")]
)
async def test_a_package_that_is_not_installed_yet(run_agent: Run, tmp_path: Path, lock: str, install: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "package.json").write_text("{}")
    if lock:
        (tmp_path / lock).write_text("")
    (tmp_path / "bot").mkdir()
    error = failure(await run_agent(command("tsx-of-nobody", "agent.ts", cwd="bot")))
    assert error.fix.startswith(f"{install}, if a package of the project has it"), error.fix


async def test_what_a_program_caught_and_printed_in_place_of_an_answer_is_its_error(
    run_agent: Run, tmp_path: Path
) -> None:
    (tmp_path / "agent.py").write_text(
        "import traceback\ntry:\n    [][1]\nexcept IndexError:\n    traceback.print_exc()\n"
    )
    error = failure(await run_agent(command(sys.executable, "agent.py")))
    assert error.message.endswith("printed nothing: IndexError: list index out of range (agent.py, line 3)")
    assert error.code == ErrorCode.NO_ANSWER
    assert error.traceback is not None
    assert error.traceback.exceptions[0].frames[-1].source == "[][1]"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(
    ("package", "name", "fix"),
    [
        ('{"dependencies": {"@of/nobody": "1"}}', "@of/nobody/part", "install the project's packages: npm install"),
        ("{}", "of-nobody", "package.json doesn't list of-nobody: npm add of-nobody"),
        ("{}", "./own", "run it by hand"),
    ],
)
@pytest.mark.parametrize("form", ["agent.mjs", "agent.cjs"])
async def test_a_package_for_node_that_is_missing(
    run_agent: Run, tmp_path: Path, form: str, package: str, name: str, fix: str
) -> None:
    (tmp_path / "package.json").write_text(package)
    (tmp_path / form).write_text(f"import '{name}';" if form.endswith(".mjs") else f"require('{name}');")
    error = failure(await run_agent(command("node", form)))
    assert error.fix.startswith(fix), error


async def test_secrets_in_last_words_are_hidden(run_agent: Run) -> None:
    code = "import os, sys; sys.exit('bad key ' + os.environ['MY_API_KEY'])"
    error = failure(await run_agent(python(code), env={"MY_API_KEY": "sk-1234567890"}))
    assert error.message.endswith("bad key ***")


STUBBORN = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
child.stdout.read(1)
print(f"{os.getpid()} {child.pid}", flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("how", ["cancel", "timeout", "closed"])
async def test_a_stubborn_grandchild_does_not_outlive_the_run(tmp_path: Path, how: str) -> None:
    config = command(*script(tmp_path, STUBBORN), timeouts={"silence": 0.1} if how == "timeout" else {})
    agent = make_agent("a", config, base_dir=tmp_path, env={}, permission=ALLOWED)
    pids: list[int] = []

    async def run() -> None:
        events = agent.run(AgentRequest((Message("user", "x"),)))
        async for event in events:
            if isinstance(event, TextDelta):
                pids.extend(int(one) for one in event.text.split())
                if how == "closed":
                    await events.aclose()  # type: ignore[attr-defined]

    task = asyncio.create_task(run())
    await until(lambda: len(pids) == 2 or task.done(), "the program's start")
    if how == "cancel":
        assert all(lives(pid) for pid in pids)
        task.cancel()
    await asyncio.wait([task])
    assert len(pids) == 2
    await until(lambda: not any(lives(pid) for pid in pids), "the end of both processes")


async def test_what_a_program_leaves_behind_ends_with_it(run_agent: Run) -> None:
    code = "import subprocess; p = subprocess.Popen(['sleep', '600']); print(p.pid)"
    ran = await run_agent(python(code))
    assert ran.transcript.error is None
    await until(lambda: not lives(int(ran.transcript.final_output)), "the end of what was left behind")


async def test_a_process_that_left_the_group_does_not_hold_up_the_run(run_agent: Run) -> None:
    code = "import subprocess; p = subprocess.Popen(['sleep', '30'], start_new_session=True); print(p.pid)"
    ran = await run_agent(python(code))
    assert ran.transcript.error is None
    os.kill(int(ran.transcript.final_output), 9)


async def test_many_at_once(tmp_path: Path) -> None:
    agent = make_agent("a", command("cat", input="text"), base_dir=tmp_path, env={}, permission=ALLOWED)

    async def one(number: int) -> str:
        events = [event async for event in agent.run(AgentRequest((Message("user", str(number)),)))]
        return "".join(event.text for event in events if isinstance(event, TextDelta))

    assert await asyncio.gather(*(one(n) for n in range(30))) == [str(n) for n in range(30)]


async def test_the_check_says_what_is_there(tmp_path: Path) -> None:
    agent = make_agent("a", command("cat", input="text"), base_dir=tmp_path, env={}, permission=ALLOWED)
    report = await agent.check()
    assert (report.ok, [step.name for step in report.steps]) == (True, ["reachable"])
    report = await agent.check(thorough=True)
    assert report.ok
    assert "answers 'ping' with 'ping'" in report.message
    assert [(step.name, step.ok) for step in report.steps] == [("reachable", True), ("streams", None), ("tools", None)]
    report = await make_agent("a", command("./absent"), base_dir=tmp_path, env={}, permission=ALLOWED).check(
        thorough=True
    )
    assert (report.ok, report.steps[0].ok) == (False, False)
    report = await make_agent("a", command("false"), base_dir=tmp_path, env={}, permission=ALLOWED).check(thorough=True)
    assert not report.ok
    assert "exit code 1" in report.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "option `command` is missing"),
        ({"command": []}, "`command` is empty"),
        ({"command": " "}, "`command` is empty"),
        ({"command": "a 'b"}, "can't be split into words"),
        ({"command": ["a"], "shell": True}, "not a list"),
        ({"command": "a", "input": "xml"}, "option `input` must be 'json', 'text', 'line' or 'none'"),
        ({"command": "a", "timeouts": {"connect": 1}}, "unknown option `timeouts.connect`"),
    ],
)
def test_wrong_options(options: dict[str, Any], said: str) -> None:
    problems = option_problems("a", {"kind": "command", **options})
    assert len(problems) == 1
    assert said in problems[0][1]


def test_a_program_needs_a_permission(tmp_path: Path) -> None:
    with pytest.raises(AgentevalError, match="this needs your trust: command: ls"):
        make_agent("a", command("ls", cwd=".."), base_dir=tmp_path, env={})


async def test_what_it_writes_to_standard_error_is_the_log(run_agent: Run) -> None:
    noisy = "import os, sys; print('looking at', os.environ['SERVICE_TOKEN'], file=sys.stderr); print('Here.')"
    ran = await run_agent(python(noisy, output="text", env={"SERVICE_TOKEN": "token-123456"}))
    assert (ran.transcript.final_output.strip(), ran.transcript.log) == ("Here.", "looking at ***\n")
    many = "import sys; sys.stderr.write('x' * 200_000 + 'the end'); sys.exit(3)"
    ran = await run_agent(python(many, output="text"))
    assert failure(ran).kind == "program"
    assert len(ran.transcript.log) == 64 * 1024
    assert ran.transcript.log.endswith("xthe end")


@pytest.mark.parametrize("form", ["auto", "text", "jsonl"])
@pytest.mark.parametrize(
    ("code", "said"),
    [("pass", "printed nothing"), ("import sys; sys.stderr.write('thinking')", "printed nothing: thinking")],
)
async def test_a_program_that_prints_nothing_is_an_error(run_agent: Run, form: str, code: str, said: str) -> None:
    error = failure(await run_agent(python(code, output=form)))
    assert error.kind == "protocol"
    assert error.message.endswith(said)
    assert "empty answer on purpose" in error.fix


async def test_a_program_that_only_tells_its_usage_gave_no_answer(run_agent: Run) -> None:
    error = failure(await run_agent(python("""print('{"type": "usage", "input_tokens": 3}')""")))
    assert error.message.endswith("printed no answer")


@pytest.mark.parametrize(
    "code", ["print()", """print('{"type": "text", "text": ""}')""", """print('{"type": "done"}')"""]
)
async def test_an_answer_may_be_empty_on_purpose(run_agent: Run, code: str) -> None:
    ran = await run_agent(python(code))
    assert isinstance(ran.events[-1], Done)
    assert ran.transcript.final_output.strip() == ""


@pytest.mark.parametrize(
    ("figures", "usage"),
    [
        ('"input_tokens": -1, "output_tokens": 2', Usage(None, 2)),
        ('"input_tokens": NaN, "cost": NaN', Usage()),
        ('"input_tokens": Infinity, "cost": -Infinity', Usage()),
        ('"input_tokens": 1e300, "cost": 1e300', Usage()),
        ('"input_tokens": %d' % 10**60, Usage()),  # noqa: UP031
        ('"input_tokens": "12", "cost": "0.5"', Usage()),
        ('"input_tokens": true, "cost": false', Usage()),
        ('"input_tokens": [3], "cost": {}', Usage()),
        ('"input_tokens": 3.5, "cost": 0.5', Usage(cost=0.5)),
        ('"cost": -0.01, "reasoning_tokens": -7, "cached_tokens": 1', Usage(cached_tokens=1)),
    ],
)
async def test_figures_that_can_not_be_so_are_noted(run_agent: Run, figures: str, usage: Usage) -> None:
    code = f"""print('{{"type": "text", "text": "ok"}}'); print('{{"type": "usage", {figures}}}')"""
    ran = await run_agent(python(code))
    assert (ran.transcript.error, ran.transcript.usage) == (None, usage)
    (note,) = ran.transcript.notes
    assert (note.code, len(note.description) < 300) == ("usage", True)


async def test_a_program_that_was_killed_has_a_remedy_of_its_own(run_agent: Run) -> None:
    error = failure(await run_agent(python("import os; os.kill(os.getpid(), 9)")))
    assert "memory" in error.fix
    assert "by hand" in failure(await run_agent(python("raise SystemExit(3)"))).fix
